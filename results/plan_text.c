/* Plans as a table for people. */
#include "engine/numbers.h"
#include "results/lines.h"
#include "results/plan_private.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Choices stand in the table where plans differ in them, else above it; results always, where there are any. */
typedef enum column_kind { CHOICE, RESULT } column_kind;

typedef enum column_id {
    RANK,
    MACHINE,
    GPUS,
    GLOBAL_BATCH,
    TP,
    PP,
    DP,
    CHUNKS,
    LAYOUT,
    MICROBATCH_SIZE,
    MICROBATCHES,
    SCHEDULE,
    RECOMPUTE,
    ZERO,
    SEQUENCE_PARALLEL,
    ORDER,
    OVERLAP_P2P,
    OVERLAP_TP,
    OVERLAP_GRADIENTS,
    OVERLAP_PARAMETERS,
    ITERATION,
    TOKENS,
    MFU,
    MEMORY,
    ROOM,
    COST,
    GPU_HOURS,
    LIMITS,
    COLUMNS
} column_id;

static const struct column {
    const char *top, *bottom; /* the header's two lines */
    const char *name;         /* above the table */
    column_kind kind;
    bool is_text; /* stands to the left */
} columns[COLUMNS] = {
    [RANK] = {"plan", "", "", RESULT, false},
    [MACHINE] = {"machine", "", "machine", CHOICE, true},
    [GPUS] = {"GPUs", "", "GPUs", CHOICE, false},
    [GLOBAL_BATCH] = {"global", "batch", "global batch", CHOICE, false},
    [TP] = {"tp", "", "tp", CHOICE, false},
    [PP] = {"pp", "", "pp", CHOICE, false},
    [DP] = {"dp", "", "dp", CHOICE, false},
    [CHUNKS] = {"chunks", "", "chunks", CHOICE, false},
    [LAYOUT] = {"layout", "", "layout", CHOICE, true},
    [MICROBATCH_SIZE] = {"microbatch", "size", "microbatch size", CHOICE, false},
    [MICROBATCHES] = {"micro-", "batches", "microbatches", CHOICE, false},
    [SCHEDULE] = {"schedule", "", "schedule", CHOICE, true},
    [RECOMPUTE] = {"recompute", "", "recompute", CHOICE, true},
    [ZERO] = {"ZeRO", "", "ZeRO", CHOICE, false},
    [SEQUENCE_PARALLEL] = {"sequence", "parallel", "sequence parallel", CHOICE, true},
    [ORDER] = {"order of", "ranks", "order of ranks", CHOICE, true},
    [OVERLAP_P2P] = {"overlap", "p2p", "overlap p2p", CHOICE, true},
    [OVERLAP_TP] = {"overlap", "tp", "overlap tp", CHOICE, true},
    [OVERLAP_GRADIENTS] = {"overlap", "gradients", "overlap gradients", CHOICE, true},
    [OVERLAP_PARAMETERS] = {"overlap", "parameters", "overlap parameters", CHOICE, true},
    [ITERATION] = {"iteration", "[s]", "", RESULT, false},
    [TOKENS] = {"tokens/s", "per GPU", "", RESULT, false},
    [MFU] = {"MFU", "", "", RESULT, false},
    [MEMORY] = {"memory", "[GiB]", "", RESULT, false},
    [ROOM] = {"of", "[GiB]", "memory of a GPU", CHOICE, false},
    [COST] = {"cost of", "1M tokens", "", RESULT, false},
    [GPU_HOURS] = {"GPU-hours,", "1M tokens", "", RESULT, false},
    [LIMITS] = {"limits", "", "", RESULT, true},
};

/* What the CSV calls a column; and where a terminal is too narrow, columns go in the order of these numbers, 1 first:
 * those that follow from others, then switches, then results that say nearly the same. 0: it never goes. */
static const struct sacrifice {
    const char *csv;
    int order;
} sacrifices[COLUMNS] = {
    [ROOM] = {"memory_limit_gib", 1},
    [MICROBATCHES] = {"microbatches", 2},
    [DP] = {"dp", 3},
    [LIMITS] = {"limits", 4},
    [OVERLAP_P2P] = {"overlap_p2p", 5},
    [OVERLAP_TP] = {"overlap_tp", 5},
    [OVERLAP_GRADIENTS] = {"overlap_gradients", 6},
    [OVERLAP_PARAMETERS] = {"overlap_parameters", 6},
    [ORDER] = {"rank_order", 7},
    [SEQUENCE_PARALLEL] = {"sequence_parallel", 7},
    [LAYOUT] = {"layout", 7},
    [TOKENS] = {"tokens_per_s_per_gpu", 8},
    [ZERO] = {"zero", 9},
    [RECOMPUTE] = {"recompute", 10},
    [MICROBATCH_SIZE] = {"microbatch_size", 11},
    [MFU] = {"mfu", 12},
};
enum { SACRIFICE_LAST = 12 };

typedef struct plan_table {
    const pc_plan_report *report;
    bool shown[COLUMNS], sacrificed[COLUMNS];
    size_t width[COLUMNS];
} plan_table;

/* What lines may have, but the table itself where there is no terminal. */
static size_t width_of(const pc_plan_report *report) {
    return report->look.width > 0 ? (size_t)report->look.width : PC_LINES_WIDTH;
}

/* ---- cells ---- */

static const char *yes(bool is_on) {
    return is_on ? "yes" : "no";
}

static void add_order(pc_text *cell, pc_rank_order order) {
    char text[16];
    pc_rank_order_write(order, text);
    pc_text_printf(cell, "%s", text);
}

static void add_choice(pc_text *cell, const pc_plan_row *plan, column_id id) {
    const pc_plan_choice *choice = &plan->found.choice;
    const pc_run_row *row = &plan->row;
    const int64_t numbers[] = {[GPUS] = row->gpus,
                               [GLOBAL_BATCH] = row->global_batch,
                               [TP] = row->tp,
                               [PP] = row->pp,
                               [DP] = row->dp,
                               [CHUNKS] = row->virtual_pp,
                               [MICROBATCH_SIZE] = row->microbatch_size,
                               [MICROBATCHES] = row->microbatches,
                               [ZERO] = row->zero,
                               [SEQUENCE_PARALLEL] = row->sequence_parallel};
    const bool switches[] = {[OVERLAP_P2P] = choice->overlaps_p2p,
                             [OVERLAP_TP] = choice->overlaps_tp,
                             [OVERLAP_GRADIENTS] = choice->overlaps_gradients,
                             [OVERLAP_PARAMETERS] = choice->overlaps_parameters};
    if (id == MACHINE)
        pc_text_add_line(cell, row->machine, PC_LABEL_SIZE);
    else if (id == SCHEDULE || id == RECOMPUTE || id == LAYOUT)
        pc_text_printf(cell, "%s", id == SCHEDULE ? row->schedule : id == LAYOUT ? row->layout : row->recompute);
    else if (id == ORDER)
        add_order(cell, choice->order);
    else if (id == ROOM)
        pc_text_printf(cell, "%.2f GiB", row->memory_limit_gib);
    else if (id == SEQUENCE_PARALLEL || id >= OVERLAP_P2P)
        pc_text_printf(cell, "%s", yes(id == SEQUENCE_PARALLEL ? numbers[id] == 1 : switches[id]));
    else
        pc_text_printf(cell, "%" PRId64, numbers[id]);
}

static double smallest(const plan_table *table, double (*number)(const pc_run_row *)) {
    double least = INFINITY;
    for (int64_t i = 0; i < table->report->count; i++) least = fmin(least, number(&table->report->rows[i].row));
    return least;
}

static double iteration_of(const pc_run_row *row) {
    return row->iteration_s;
}
static double tokens_of(const pc_run_row *row) {
    return row->tokens_per_s_per_gpu;
}
static double cost_of(const pc_run_row *row) {
    return row->cost_per_million_tokens;
}
static double hours_of(const pc_run_row *row) {
    return row->gpu_hours_per_million_tokens;
}

/* All of a column with the decimals that give its smallest number four digits. */
static void add_number(const plan_table *table, pc_text *cell, const pc_run_row *row,
                       double (*number)(const pc_run_row *)) {
    double value = number(row), least = smallest(table, number);
    int decimals = least > 0.0 && isfinite(least) ? 3 - (int)floor(log10(least)) : 0;
    if (!isnan(value)) pc_text_printf(cell, "%.*f", decimals > 0 ? decimals : 0, value);
}

static void add_result(const plan_table *table, pc_text *cell, int64_t index, column_id id) {
    const pc_plan_row *plan = &table->report->rows[index];
    char text[PC_PLAN_TEXT_SIZE];
    switch (id) {
    case RANK:
        return pc_text_printf(cell, "%" PRId64, index + 1);
    case ITERATION:
        return add_number(table, cell, &plan->row, iteration_of);
    case TOKENS:
        return add_number(table, cell, &plan->row, tokens_of);
    case MFU:
        return pc_text_printf(cell, "%.4f", plan->row.mfu);
    case MEMORY:
        return pc_text_printf(cell, "%.2f", plan->row.memory_gib_max);
    case COST:
        return add_number(table, cell, &plan->row, cost_of);
    case GPU_HOURS:
        return add_number(table, cell, &plan->row, hours_of);
    default:
        pc_plan_limits(plan, text);
        return pc_text_printf(cell, "%s", text);
    }
}

/* The cell is emptied first. */
static void set_cell(const plan_table *table, pc_text *cell, int64_t index, column_id id) {
    cell->size = 0;
    pc_text_add(cell, "", 0);
    if (columns[id].kind == CHOICE)
        add_choice(cell, &table->report->rows[index], id);
    else
        add_result(table, cell, index, id);
}

/* ---- which columns ---- */

static bool varies(const plan_table *table, column_id id, pc_text *first, pc_text *cell) {
    set_cell(table, first, 0, id);
    for (int64_t i = 1; i < table->report->count; i++) {
        set_cell(table, cell, i, id);
        if (!first->failed && !cell->failed && strcmp(first->data, cell->data) != 0) return true;
    }
    return false;
}

static bool wants(const pc_plan_request *request, pc_plan_objective objective) {
    for (int i = 0; i < request->objective_count; i++)
        if (request->objectives[i] == objective) return true;
    return false;
}

static bool must_show(const plan_table *table, column_id id, pc_text *first, pc_text *cell) {
    bool has_price = !isnan(table->report->rows[0].row.cost_per_million_tokens);
    if (columns[id].kind == CHOICE) return varies(table, id, first, cell);
    if (id == COST) return has_price;
    return id != GPU_HOURS || (!has_price && wants(&table->report->request, PC_PLAN_COST));
}

static size_t total_width(const plan_table *table) {
    size_t total = 0;
    for (column_id id = 0; id < COLUMNS; id++)
        if (table->shown[id]) total += table->width[id] + (total ? PC_LINES_GAP : 0);
    return total;
}

static void sacrifice_columns(plan_table *table) {
    if (table->report->look.width <= 0) return;
    for (int order = 1; order <= SACRIFICE_LAST && total_width(table) > width_of(table->report); order++)
        for (column_id id = 0; id < COLUMNS; id++) {
            if (!table->shown[id] || sacrifices[id].order != order) continue;
            table->shown[id] = false;
            table->sacrificed[id] = true;
        }
}

static void lay_out(plan_table *table, pc_text *first, pc_text *cell) {
    for (column_id id = 0; id < COLUMNS; id++) {
        table->shown[id] = must_show(table, id, first, cell);
        table->width[id] = pc_max(strlen(columns[id].top), strlen(columns[id].bottom));
        for (int64_t i = 0; table->shown[id] && i < table->report->count; i++) {
            set_cell(table, cell, i, id);
            if (!cell->failed) table->width[id] = pc_max(table->width[id], pc_utf8_length(cell->data));
        }
    }
    sacrifice_columns(table);
}

/* ---- the lines ---- */

static pc_line line_of(const plan_table *table, pc_text *text) {
    return (pc_line){.text = text, .is_coloured = table->report->look.is_coloured};
}

static void add_header(const plan_table *table, pc_text *text, bool is_top) {
    pc_line line = line_of(table, text);
    for (column_id id = 0; id < COLUMNS; id++)
        if (table->shown[id])
            pc_line_add(&line, is_top ? columns[id].top : columns[id].bottom, table->width[id], columns[id].is_text,
                        PC_INK_PLAIN);
    pc_line_end(&line);
}

static void add_rule(const plan_table *table, pc_text *text) {
    pc_line line = line_of(table, text);
    for (column_id id = 0; id < COLUMNS; id++)
        if (table->shown[id]) pc_line_add_rule(&line, table->width[id]);
    pc_line_end(&line);
}

static void add_rows(const plan_table *table, pc_text *text, pc_text *cell) {
    for (int64_t i = 0; i < table->report->count; i++) {
        pc_line line = line_of(table, text);
        for (column_id id = 0; id < COLUMNS; id++) {
            if (!table->shown[id]) continue;
            set_cell(table, cell, i, id);
            if (!cell->failed) pc_line_add(&line, cell->data, table->width[id], columns[id].is_text, PC_INK_PLAIN);
        }
        pc_line_end(&line);
    }
}

static void add_pair(pc_items *items, const char *name, const char *value) {
    pc_text pair = {0};
    pc_text_printf(&pair, "%s %s", name, value);
    if (!pair.failed) pc_items_add(items, pair.data);
    items->text->failed = items->text->failed || pair.failed;
    pc_text_free(&pair);
}

static void add_model(pc_items *items, const pc_run_row *row) {
    pc_text name = {0}, count = {0};
    pc_text_add_line(&name, row->model, PC_LABEL_SIZE);
    if (name.size > 0 && !name.failed) add_pair(items, "model", name.data);
    if (isfinite(row->parameters)) pc_text_add_count(&count, row->parameters);
    if (count.size > 0 && !count.failed) add_pair(items, count.data, "parameters");
    items->text->failed = items->text->failed || name.failed || count.failed;
    pc_text_free(&name);
    pc_text_free(&count);
}

/* What all plans have in common. */
static void add_constants(const plan_table *table, pc_text *lines, pc_text *cell) {
    pc_items items = {.text = lines, .width = width_of(table->report)};
    add_model(&items, &table->report->rows[0].row);
    for (column_id id = 0; id < COLUMNS; id++) {
        if (columns[id].kind != CHOICE || table->shown[id] || table->sacrificed[id]) continue;
        set_cell(table, cell, 0, id);
        if (!cell->failed) add_pair(&items, columns[id].name, cell->data);
    }
    pc_text_add(lines, "\n", 1);
}

static void add_heading(const plan_table *table, pc_text *text, pc_text *cell) {
    const pc_table_look *look = &table->report->look;
    pc_text lines = {0};
    add_constants(table, &lines, cell);
    if (!lines.failed) pc_lines_add_block(text, lines.data, PC_INK_DIM, look->is_coloured);
    for (int i = 0; i < look->note_count; i++) pc_lines_add_wrapped(text, look->notes[i], width_of(table->report));
    pc_text_add(text, "\n", 1);
    text->failed = text->failed || lines.failed;
    pc_text_free(&lines);
}

static void add_sacrificed(const plan_table *table, pc_text *text) {
    pc_text names = {0};
    for (column_id id = 0; id < COLUMNS; id++)
        if (table->sacrificed[id])
            pc_text_printf(&names, "%s%s", names.size > 0 ? ", " : PC_LINES_LEFT_OUT, sacrifices[id].csv);
    if (names.size > 0 && !names.failed) {
        pc_text_add(text, "\n", 1);
        pc_lines_add_wrapped(text, names.data, width_of(table->report));
    }
    text->failed = text->failed || names.failed;
    pc_text_free(&names);
}

static void add_behind(const pc_plan_report *report, pc_text *text) {
    char behind[PC_PLAN_TEXT_SIZE];
    pc_plan_objective objective = report->request.objectives[0];
    const char *of[] = {
        [PC_PLAN_THROUGHPUT] = "time a token", [PC_PLAN_MEMORY] = "memory", [PC_PLAN_COST] = "cost a token"};
    if (report->count < 2) return;
    pc_text_printf(text, "\nagainst plan 1, %s in percent, and where it comes from:\n", of[objective]);
    for (int64_t i = 1; i < report->count; i++) {
        pc_plan_behind(objective, report->rows, &report->rows[i], behind);
        pc_text_printf(text, "%4" PRId64 "  %s\n", i + 1, behind);
    }
}

static void add_share(pc_text *text, int64_t count, const char *what, bool *any) {
    if (count > 0) pc_text_printf(text, "%s %" PRId64 " %s", *any ? "," : "", count, what);
    *any = *any || count > 0;
}

static void add_rule_broken(const pc_plan_report *report, pc_text *text) {
    char words[PC_PLAN_TEXT_SIZE + 32];
    if (!report->rule) return;
    snprintf(words, sizeof words, "rule broken most often: %s", report->rule);
    pc_lines_add_wrapped(text, words, width_of(report));
}

static void add_log(const pc_plan_report *report, pc_text *text) {
    const pc_plan_log *log = &report->log;
    bool any = false, any_simulated = false;
    pc_text_printf(text, "\n%" PRId64 " points:", log->points);
    add_share(text, log->broken_rule, "break a rule", &any);
    add_share(text, log->over_memory, "over memory by a bound", &any);
    add_share(text, log->too_slow, "not among the best by a bound", &any);
    add_share(text, log->simulated, "simulated", &any);
    if (log->simulated_over_memory + log->simulated_infeasible > 0) {
        pc_text_printf(text, ", of which");
        add_share(text, log->simulated_over_memory, "over memory", &any_simulated);
        add_share(text, log->simulated_infeasible, "infeasible", &any_simulated);
    }
    pc_text_add(text, "\n", 1);
    add_rule_broken(report, text);
}

static void add_table(const pc_plan_report *report, pc_text *text) {
    plan_table table = {.report = report};
    pc_text cell = {0}, first = {0};
    lay_out(&table, &first, &cell);
    add_heading(&table, text, &cell);
    add_header(&table, text, true);
    add_header(&table, text, false);
    add_rule(&table, text);
    add_rows(&table, text, &cell);
    add_sacrificed(&table, text);
    text->failed = text->failed || cell.failed || first.failed;
    pc_text_free(&cell);
    pc_text_free(&first);
}

static void add_below(const pc_plan_report *report, pc_text *text) {
    if (report->count == 0) {
        pc_lines_add_inked(text, "no plan", PC_INK_RED, report->look.is_coloured);
        pc_text_add(text, "\n", 1);
    }
    add_behind(report, text);
    add_log(report, text);
    if (report->count > 0) pc_text_printf(text, "\nplan 1: %s\n", report->rows[0].command);
}

/* ---- with columns that the user chose ---- */

static pc_code give_row(void *context, int64_t index, pc_run_row *row, pc_error *error) {
    (void)error;
    const pc_plan_report *report = context;
    *row = report->rows[index].row;
    return PC_OK;
}

/* As a table of the runs that plans are. */
static bool write_chosen(const pc_plan_report *report, pc_text *text, FILE *stream) {
    pc_column_choice choice = pc_plan_choice_of_run(report->look.columns);
    pc_table_look look = report->look;
    pc_plan_report borrowed = *report;
    look.columns = &choice;
    pc_table_rows rows = {.source = give_row,
                          .context = &borrowed,
                          .count = report->count,
                          .look = &look,
                          .extras = pc_plan_extras(report)};
    return pc_table_text_write(&rows, text, stream);
}

bool pc_plan_text_write(const pc_plan_report *report, pc_text *text, FILE *stream) {
    bool is_chosen = report->count > 0 && report->look.columns;
    if (is_chosen && !write_chosen(report, text, stream)) return false;
    if (report->count > 0 && !is_chosen) add_table(report, text);
    add_below(report, text);
    return pc_table_flush(text, stream);
}
