/* Scored runs for people: the rows that were asked, what they come to, what is missing, pairs and groups. */
#include "results/lines.h"
#include "results/score/score_private.h"
#include "results/stream_text.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { COLUMNS_MOST = 16, NAME_MOST = 40, GROUPS_SHOWN = 10 };

/* ---- a table of any rows ---- */

/* Adds what row `index` has in a column. */
typedef void cell_writer(const pc_score *score, int64_t index, pc_text *cell);

typedef struct column {
    const char *top, *bottom; /* the header's two lines */
    bool is_left;
    cell_writer *write;
} column;

typedef struct layout {
    const pc_score *score;
    const column *columns;
    int count;
    size_t width[COLUMNS_MOST];
    bool has_values[COLUMNS_MOST];
} layout;

static const char *written(const layout *l, int c, int64_t index, pc_text *cell) {
    cell->size = 0;
    pc_text_add(cell, "", 0);
    if (cell->data) cell->data[0] = '\0';
    l->columns[c].write(l->score, index, cell);
    return cell->failed || !cell->data ? "" : cell->data;
}

static void lay_out(layout *l, const int64_t *rows, int64_t count, pc_text *cell) {
    for (int c = 0; c < l->count; c++) {
        l->width[c] = pc_max(pc_utf8_length(l->columns[c].top), pc_utf8_length(l->columns[c].bottom));
        for (int64_t i = 0; i < count; i++) {
            size_t length = pc_utf8_length(written(l, c, rows ? rows[i] : i, cell));
            l->has_values[c] |= length > 0;
            l->width[c] = pc_max(l->width[c], length);
        }
    }
}

static void add_header(const layout *l, bool is_top, pc_text *text) {
    pc_line line = {text, false, 0};
    for (int c = 0; c < l->count; c++)
        if (l->has_values[c])
            pc_line_add(&line, is_top ? l->columns[c].top : l->columns[c].bottom, l->width[c], l->columns[c].is_left,
                        PC_INK_PLAIN);
    pc_line_end(&line);
}

static void add_rule(const layout *l, pc_text *text) {
    pc_line line = {text, false, 0};
    for (int c = 0; c < l->count; c++)
        if (l->has_values[c]) pc_line_add_rule(&line, l->width[c]);
    pc_line_end(&line);
}

/* Of `count` rows, those that `rows` lists (NULL: all), the columns in which any has a value. */
static bool write_table(const pc_score *score, const column *columns, int column_count, const int64_t *rows,
                        int64_t count, pc_text *text, FILE *stream) {
    layout l = {.score = score, .columns = columns, .count = column_count};
    pc_text cell = {0};
    bool going = true;
    lay_out(&l, rows, count, &cell);
    text->failed = text->failed || cell.failed;
    add_header(&l, true, text);
    add_header(&l, false, text);
    add_rule(&l, text);
    for (int64_t i = 0; i < count && going; i++) {
        pc_line line = {text, false, 0};
        for (int c = 0; c < l.count; c++)
            if (l.has_values[c])
                pc_line_add(&line, written(&l, c, rows ? rows[i] : i, &cell), l.width[c], columns[c].is_left,
                            PC_INK_PLAIN);
        pc_line_end(&line);
        text->failed = text->failed || cell.failed;
        going = pc_stream_text_flush(text, stream);
    }
    pc_text_free(&cell);
    return going;
}

/* ---- cells ---- */

static void add_name(pc_text *cell, const char *name) {
    pc_text_add_line(cell, name, NAME_MOST);
}

static void add_whole(pc_text *cell, int64_t number) {
    if (number >= 0) pc_text_printf(cell, "%" PRId64, number);
}

static void add_seconds(pc_text *cell, double seconds) {
    if (isfinite(seconds)) pc_text_printf(cell, "%.4g", seconds);
}

static void add_gib(pc_text *cell, double gib) {
    if (isfinite(gib)) pc_text_printf(cell, "%.1f", gib);
}

static void add_percent(pc_text *cell, double share) {
    if (isfinite(share)) pc_text_printf(cell, "%.1f%%", 100.0 * share);
}

static void add_signed(pc_text *cell, double share) {
    if (isfinite(share)) pc_text_printf(cell, "%+.1f%%", 100.0 * share);
}

/* ---- rows ---- */

static const char *cell_at(const pc_score *score, int64_t index, pc_measured_column which) {
    return pc_measured_cell(score->measured, score->rows[index].row, which);
}

static void row_line(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->measured->line[score->rows[i].row]);
}
static void row_model(const pc_score *score, int64_t i, pc_text *cell) {
    add_name(cell, cell_at(score, i, PC_MEASURED_MODEL));
}
static void row_system(const pc_score *score, int64_t i, pc_text *cell) {
    add_name(cell, cell_at(score, i, PC_MEASURED_SYSTEM));
}
static void row_gpus(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->rows[i].run.gpus);
}
static void row_cut(const pc_score *score, int64_t i, pc_text *cell) {
    const pc_measured_run *run = &score->rows[i].run;
    pc_text_printf(cell, "%" PRId64 "/%" PRId64 "/%" PRId64, run->tp, run->pp, run->chunks > 0 ? run->chunks : 1);
}
static void row_batch(const pc_score *score, int64_t i, pc_text *cell) {
    const pc_measured_run *run = &score->rows[i].run;
    pc_text_printf(cell, "%" PRId64 "/%" PRId64, run->microbatch_size, run->global_batch);
}
static void row_seq(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->rows[i].run.seq_len);
}
static void row_measured(const pc_score *score, int64_t i, pc_text *cell) {
    add_seconds(cell, score->rows[i].run.step_s);
}
static void row_forecast(const pc_score *score, int64_t i, pc_text *cell) {
    add_seconds(cell, score->rows[i].forecast_s);
}
static void row_error(const pc_score *score, int64_t i, pc_text *cell) {
    add_signed(cell, score->rows[i].error);
}
static void row_memory(const pc_score *score, int64_t i, pc_text *cell) {
    add_gib(cell, score->rows[i].run.memory_gib);
}
static void row_memory_forecast(const pc_score *score, int64_t i, pc_text *cell) {
    add_gib(cell, score->rows[i].forecast_gib);
}
static void row_memory_error(const pc_score *score, int64_t i, pc_text *cell) {
    add_signed(cell, score->rows[i].memory_error);
}
static void row_status(const pc_score *score, int64_t i, pc_text *cell) {
    pc_score_status status = (pc_score_status)score->rows[i].status;
    if (status != PC_SCORE_OK) pc_text_printf(cell, "%s", pc_score_status_name(status));
}

static const column row_columns[] = {
    {"line", "", false, row_line},
    {"model", "", true, row_model},
    {"system", "", true, row_system},
    {"gpus", "", false, row_gpus},
    {"tp/pp/vp", "", false, row_cut},
    {"mbs/gbs", "", false, row_batch},
    {"seq", "", false, row_seq},
    {"measured", "[s]", false, row_measured},
    {"forecast", "[s]", false, row_forecast},
    {"error", "", false, row_error},
    {"memory", "[GiB]", false, row_memory},
    {"forecast", "[GiB]", false, row_memory_forecast},
    {"error", "", false, row_memory_error},
    {"status", "", true, row_status},
};

static bool write_rows(const pc_score *score, pc_text *text, FILE *stream) {
    int64_t count = 0, *asked = pc_alloc((size_t)score->count, sizeof *asked);
    text->failed = text->failed || !asked;
    for (int64_t i = 0; asked && i < score->count; i++)
        if (score->rows[i].status != PC_SCORE_NOT_ASKED) asked[count++] = i;
    bool going = asked && (count == 0 || write_table(score, row_columns, sizeof row_columns / sizeof *row_columns,
                                                     asked, count, text, stream));
    pc_free(asked);
    return going;
}

/* ---- sums ---- */

static void sum_value(const pc_score *score, int64_t i, pc_text *cell) {
    const pc_score_sum *sum = &score->sums[i];
    pc_text_add_line(cell, sum->by[0] ? sum->value : "all rows", 60);
}
static void sum_count(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->sums[i].rows);
}
static void sum_asked(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->sums[i].asked);
}
static void sum_compared(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->sums[i].compared);
}
static void sum_mean(const pc_score *score, int64_t i, pc_text *cell) {
    add_percent(cell, score->sums[i].mean);
}
static void sum_median(const pc_score *score, int64_t i, pc_text *cell) {
    add_percent(cell, score->sums[i].median);
}
static void sum_worst(const pc_score *score, int64_t i, pc_text *cell) {
    add_signed(cell, score->sums[i].worst);
}
static void sum_worst_line(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->sums[i].worst_line);
}
static void sum_bias(const pc_score *score, int64_t i, pc_text *cell) {
    add_signed(cell, score->sums[i].bias);
}
static void sum_unfit(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->sums[i].out_of_memory > 0 ? score->sums[i].out_of_memory : -1);
}
static void sum_infeasible(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->sums[i].infeasible > 0 ? score->sums[i].infeasible : -1);
}
static void sum_memory(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->sums[i].memory_compared > 0 ? score->sums[i].memory_compared : -1);
}
static void sum_memory_mean(const pc_score *score, int64_t i, pc_text *cell) {
    add_percent(cell, score->sums[i].memory_mean);
}

static bool write_sums(const pc_score *score, int64_t first, int64_t count, pc_text *text, FILE *stream) {
    const column columns[] = {
        {score->sums[first].by, "", true, sum_value},
        {"rows", "", false, sum_count},
        {"asked", "", false, sum_asked},
        {"com-", "pared", false, sum_compared},
        {"mean", "error", false, sum_mean},
        {"median", "error", false, sum_median},
        {"worst", "error", false, sum_worst},
        {"its", "line", false, sum_worst_line},
        {"bias", "", false, sum_bias},
        {"called out", "of memory", false, sum_unfit},
        {"called", "infeasible", false, sum_infeasible},
        {"memory", "compared", false, sum_memory},
        {"mean", "error", false, sum_memory_mean},
    };
    int64_t *rows = pc_alloc((size_t)count, sizeof *rows);
    text->failed = text->failed || !rows;
    for (int64_t i = 0; rows && i < count; i++) rows[i] = first + i;
    bool going = rows && write_table(score, columns, sizeof columns / sizeof *columns, rows, count, text, stream);
    pc_free(rows);
    return going;
}

/* All rows, and a table for each list of columns by which they are summed up. */
static bool write_all_sums(const pc_score *score, pc_text *text, FILE *stream) {
    bool going = true;
    for (int64_t i = 0, next; i < score->sum_count && going; i = next) {
        for (next = i; next < score->sum_count && strcmp(score->sums[next].by, score->sums[i].by) == 0;) next++;
        pc_text_printf(text, "\n");
        going = write_sums(score, i, next - i, text, stream);
    }
    return going;
}

/* ---- what is missing ---- */

static void missing_feature(const pc_score *score, int64_t i, pc_text *cell) {
    add_name(cell, score->missing[i].feature);
}
static void missing_rows(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->missing[i].rows);
}
static void missing_alone(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->missing[i].alone);
}

static const column missing_columns[] = {
    {"not asked for", "want of", true, missing_feature},
    {"rows", "", false, missing_rows},
    {"of these for", "this alone", false, missing_alone},
};

static bool write_missing(const pc_score *score, pc_text *text, FILE *stream) {
    if (score->missing_count == 0) return true;
    pc_text_printf(text, "\n");
    return write_table(score, missing_columns, sizeof missing_columns / sizeof *missing_columns, NULL,
                       score->missing_count, text, stream);
}

/* ---- pairs ---- */

static void pair_thing(const pc_score *score, int64_t i, pc_text *cell) {
    add_name(cell, score->pairs[i].thing);
}
static void pair_count(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->pairs[i].pairs);
}
static void pair_right(const pc_score *score, int64_t i, pc_text *cell) {
    const pc_score_pair *pair = &score->pairs[i];
    if (pair->told > 0) pc_text_printf(cell, "%" PRId64 " of %" PRId64, pair->right, pair->told);
}
static void pair_mean(const pc_score *score, int64_t i, pc_text *cell) {
    add_percent(cell, score->pairs[i].mean);
}
static void pair_worst(const pc_score *score, int64_t i, pc_text *cell) {
    add_signed(cell, score->pairs[i].worst);
}
static void pair_lines(const pc_score *score, int64_t i, pc_text *cell) {
    const pc_score_pair *pair = &score->pairs[i];
    if (pair->worst_first_line > 0)
        pc_text_printf(cell, "%" PRId64 ", %" PRId64, pair->worst_first_line, pair->worst_second_line);
}

static const column pair_columns[] = {
    {"runs that differ", "in one thing", true, pair_thing},
    {"pairs", "", false, pair_count},
    {"the faster one", "known", false, pair_right},
    {"ratio:", "mean error", false, pair_mean},
    {"worst", "", false, pair_worst},
    {"its", "lines", false, pair_lines},
};

static bool write_pairs(const pc_score *score, pc_text *text, FILE *stream) {
    if (score->pair_count == 0) return true;
    pc_text_printf(text, "\n");
    return write_table(score, pair_columns, sizeof pair_columns / sizeof *pair_columns, NULL, score->pair_count, text,
                       stream);
}

/* ---- groups ---- */

static void group_model(const pc_score *score, int64_t i, pc_text *cell) {
    add_name(cell, score->groups[i].model);
}
static void group_machine(const pc_score *score, int64_t i, pc_text *cell) {
    add_name(cell, score->groups[i].machine);
}
static void group_gpus(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->groups[i].gpus);
}
static void group_batch(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->groups[i].global_batch);
}
static void group_seq(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->groups[i].seq_len);
}
static void group_count(const pc_score *score, int64_t i, pc_text *cell) {
    add_whole(cell, score->groups[i].configurations);
}
static void group_ranks(const pc_score *score, int64_t i, pc_text *cell) {
    if (isfinite(score->groups[i].rank_correlation)) pc_text_printf(cell, "%.2f", score->groups[i].rank_correlation);
}
static void group_regret(const pc_score *score, int64_t i, pc_text *cell) {
    add_percent(cell, score->groups[i].regret);
}
static void group_lines(const pc_score *score, int64_t i, pc_text *cell) {
    pc_text_printf(cell, "%" PRId64 ", %" PRId64, score->groups[i].best_line, score->groups[i].chosen_line);
}

static const column group_columns[] = {
    {"model", "", true, group_model},
    {"machine", "", true, group_machine},
    {"gpus", "", false, group_gpus},
    {"gbs", "", false, group_batch},
    {"seq", "", false, group_seq},
    {"configu-", "rations", false, group_count},
    {"rank cor-", "relation", false, group_ranks},
    {"regret", "", false, group_regret},
    {"lines: best,", "chosen", false, group_lines},
};

static void add_group_words(const pc_score *score, pc_text *text) {
    int64_t right = 0;
    double regret = 0.0;
    for (int64_t i = 0; i < score->group_count; i++) {
        right += score->groups[i].regret == 0.0;
        regret += score->groups[i].regret;
    }
    pc_text_printf(text,
                   "\nthe fastest configuration is chosen in %" PRId64 " of %" PRId64
                   " groups of one model, machine, number of GPUs and batch; mean regret %.1f%%\n",
                   right, score->group_count, 100.0 * regret / (double)score->group_count);
}

static bool write_groups(const pc_score *score, pc_text *text, FILE *stream) {
    int64_t shown = score->group_count < GROUPS_SHOWN ? score->group_count : GROUPS_SHOWN;
    if (score->group_count == 0) return true;
    add_group_words(score, text);
    bool going =
        write_table(score, group_columns, sizeof group_columns / sizeof *group_columns, NULL, shown, text, stream);
    if (shown < score->group_count)
        pc_text_printf(text, "and %" PRId64 " groups with less regret (json and the results file have all)\n",
                       score->group_count - shown);
    return going;
}

bool pc_score_text_write(const pc_score *score, pc_text *text, FILE *stream) {
    return write_rows(score, text, stream) && write_all_sums(score, text, stream) &&
           write_missing(score, text, stream) && write_pairs(score, text, stream) &&
           write_groups(score, text, stream) && pc_stream_text_flush(text, stream);
}
