/* Plans as a table for people. */
#include "engine/numbers.h"
#include "results/lines.h"
#include "results/plan_private.h"
#include "results/stream_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Choices stand in the table where plans differ in them, else above it; results always, where there are any: the cost
 * with a price, and without one, if it is wanted, the hours that stand for it. Ranks are of plans alone, and what
 * IF_ANY says is there if some plan has it. */
typedef enum column_kind { CHOICE, RESULT, RANK, COST, HOURS, IF_ANY } column_kind;

/* A column of the CSV, which says how the table has it where tables of runs have it otherwise or not at all. Where a
 * terminal is too narrow, columns go in the order of `sacrifice`, 1 first: those that follow from others, then
 * switches, then results that say nearly the same. 0: it never goes. */
static const struct column {
    const char *name;
    column_kind kind;
    int sacrifice;
    const char *top, *bottom; /* the header's two lines; NULL: those of tables of runs, and their style */
    pc_column_style style;
    bool is_switch;
    const char *label, *unit; /* above the table, where it is not the header; and behind the number */
    const char *plain;        /* goes without saying above the table; or NULL */
} columns[] = {
    {"rank", RANK, 0, "plan", "", .style = PC_STYLE_INTEGER},
    {.name = "machine", .kind = CHOICE},
    {.name = "precision", .kind = CHOICE},
    {.name = "gpus", .kind = CHOICE},
    {.name = "global_batch", .kind = CHOICE},
    {.name = "tp", .kind = CHOICE},
    {.name = "cp", .kind = CHOICE},
    {"cp_comm_type", CHOICE, 10, "cp comm", "type", .style = PC_STYLE_TEXT, .plain = "none"},
    {.name = "ep", .kind = CHOICE, .plain = "1"},
    {.name = "etp", .kind = CHOICE, .plain = "1"},
    {.name = "pp", .kind = CHOICE},
    {.name = "dp", .kind = CHOICE, .sacrifice = 3},
    {.name = "virtual_pp", .kind = CHOICE},
    {.name = "layout", .kind = CHOICE, .sacrifice = 7},
    {.name = "microbatch_size", .kind = CHOICE, .sacrifice = 11},
    {.name = "microbatches", .kind = CHOICE, .sacrifice = 2},
    {.name = "schedule", .kind = CHOICE},
    {.name = "recompute", .kind = CHOICE, .sacrifice = 10},
    {"offload", CHOICE, 10, "offload", "", .style = PC_STYLE_TEXT, .plain = "none"},
    {"dispatcher", CHOICE, 10, "dispatcher", "", .style = PC_STYLE_TEXT, .plain = "none"},
    {.name = "zero", .kind = CHOICE, .sacrifice = 9},
    {"sequence_parallel", CHOICE, 7, "sequence", "parallel", .is_switch = true},
    {"rank_order", CHOICE, 7, "order of", "ranks", .style = PC_STYLE_TEXT},
    {"overlap_p2p", CHOICE, 5, "overlap", "p2p", .is_switch = true},
    {"overlap_tp", CHOICE, 5, "overlap", "tp", .is_switch = true},
    {"overlap_gradients", CHOICE, 6, "overlap", "gradients", .is_switch = true},
    {"overlap_parameters", CHOICE, 6, "overlap", "parameters", .is_switch = true},
    {.name = "iteration_s", .kind = RESULT},
    {.name = "tokens_per_s_per_gpu", .kind = RESULT, .sacrifice = 8},
    {.name = "mfu", .kind = RESULT, .sacrifice = 12},
    {"memory_gib_max", RESULT, 0, "memory", "[GiB]", .style = PC_STYLE_GIB},
    {"memory_limit_gib", CHOICE, 1, "of", "[GiB]", .style = PC_STYLE_GIB, .label = "memory of a GPU", .unit = " GiB"},
    {"cost_per_million_tokens", COST, 0, "cost of", "1M tokens", .style = PC_STYLE_FOUR_DIGITS},
    {"gpu_hours_per_million_tokens", HOURS, 0, "GPU-hours,", "1M tokens", .style = PC_STYLE_FOUR_DIGITS},
    {"goodput_mean", IF_ANY, 8, "goodput", "", .style = PC_STYLE_RATE},
    {"training_days", IF_ANY, 0, "training", "[days]", .style = PC_STYLE_FOUR_DIGITS},
    {"training_gpu_hours", IF_ANY, 6, "training", "GPU-hours", .style = PC_STYLE_FOUR_DIGITS},
    {"training_mwh", IF_ANY, 6, "training", "[MWh]", .style = PC_STYLE_FOUR_DIGITS},
    {"training_cost", IF_ANY, 0, "training", "cost", .style = PC_STYLE_FOUR_DIGITS},
    {"limits", RESULT, 4, "limits", "", .style = PC_STYLE_TEXT},
};
enum { COLUMNS = sizeof columns / sizeof *columns, SACRIFICE_LAST = 12 };

typedef struct plan_entry {
    const struct column *column;
    const pc_column *run; /* NULL: it is a plan's own */
    const char *top, *bottom;
    pc_column_style style;
    int own; /* its number among the plan's own */
    int decimals;
    bool is_text; /* stands to the left */
    bool is_shown, is_sacrificed;
    size_t width;
} plan_entry;

typedef struct plan_table {
    const pc_plan_report *report;
    pc_table_extras own;
    plan_entry entry[COLUMNS];
} plan_table;

/* What lines may have, but the table itself where there is no terminal. */
static size_t width_of(const pc_plan_report *report) {
    return report->look.width > 0 ? (size_t)report->look.width : PC_LINES_WIDTH;
}

/* ---- cells ---- */

/* With the decimals that give the smallest number of all plans four digits. */
static int decimals_of(const pc_plan_report *report, const pc_column *column) {
    double least = INFINITY;
    for (int64_t i = 0; i < report->count; i++) least = fmin(least, pc_column_real(column, &report->rows[i].row));
    int decimals = least > 0.0 && isfinite(least) ? 3 - (int)floor(log10(least)) : 0;
    return decimals > 0 ? decimals : 0;
}

static plan_entry entry_of(const plan_table *table, const struct column *column) {
    const pc_column *run = pc_column_find(column->name);
    bool is_runs = run && !column->top;
    plan_entry entry = {.column = column,
                        .run = run,
                        .top = is_runs ? run->top : column->top,
                        .bottom = is_runs ? run->bottom : column->bottom,
                        .style = is_runs ? run->style : column->style};
    entry.is_text = column->is_switch || entry.style == PC_STYLE_TEXT;
    while (!run && strcmp(table->own.extra[entry.own].name, column->name) != 0) entry.own++;
    entry.decimals = entry.style == PC_STYLE_FOUR_DIGITS ? decimals_of(table->report, run)
                     : entry.style == PC_STYLE_RATE      ? 4
                                                         : 2;
    return entry;
}

static void add_of_run(pc_text *cell, const plan_entry *entry, const pc_run_row *row) {
    char text[PC_COLUMN_TEXT_SIZE];
    double number = pc_column_real(entry->run, row);
    if (!pc_column_is_number(entry->run)) {
        pc_column_text(entry->run, row, text, sizeof text);
        pc_text_add_line(cell, text, sizeof text);
    } else if (entry->run->field.type == PC_FIELD_INT64) {
        pc_text_printf(cell, "%" PRId64, pc_column_integer(entry->run, row));
    } else if (!isnan(number)) {
        pc_text_printf(cell, "%.*f", entry->decimals, number);
    }
}

/* The cell is emptied first. */
static void set_cell(const plan_table *table, pc_text *cell, int64_t index, const plan_entry *entry) {
    cell->size = 0;
    pc_text_add(cell, "", 0);
    if (entry->run)
        add_of_run(cell, entry, &table->report->rows[index].row);
    else
        table->own.add(table->own.context, index, entry->own, cell);
    if (!entry->column->is_switch || cell->failed) return;
    bool is_on = strcmp(cell->data, "1") == 0;
    cell->size = 0;
    pc_text_printf(cell, "%s", is_on ? "yes" : "no");
}

/* ---- which columns ---- */

static bool varies(const plan_table *table, const plan_entry *entry, pc_text *first, pc_text *cell) {
    set_cell(table, first, 0, entry);
    for (int64_t i = 1; i < table->report->count; i++) {
        set_cell(table, cell, i, entry);
        if (!first->failed && !cell->failed && strcmp(first->data, cell->data) != 0) return true;
    }
    return false;
}

static bool wants(const pc_plan_request *request, pc_plan_objective objective) {
    for (int i = 0; i < request->objective_count; i++)
        if (request->objectives[i] == objective) return true;
    return false;
}

static bool has_any(const pc_plan_report *report, const pc_column *column) {
    for (int64_t i = 0; i < report->count; i++)
        if (pc_column_defined(column, &report->rows[i].row)) return true;
    return false;
}

static bool must_show(const plan_table *table, const plan_entry *entry, pc_text *first, pc_text *cell) {
    bool has_price = !isnan(table->report->rows[0].row.cost_per_million_tokens);
    switch (entry->column->kind) {
    case CHOICE:
        return varies(table, entry, first, cell);
    case COST:
        return has_price;
    case RANK:
        return table->report->rows[0].part == PC_PLAN_PART_PLANS;
    case IF_ANY:
        return has_any(table->report, entry->run);
    case HOURS:
        return !has_price && wants(&table->report->request, PC_PLAN_COST);
    default:
        return true;
    }
}

static size_t total_width(const plan_table *table) {
    size_t total = 0;
    for (int i = 0; i < COLUMNS; i++)
        if (table->entry[i].is_shown) total += table->entry[i].width + (total ? PC_LINES_GAP : 0);
    return total;
}

static void sacrifice_columns(plan_table *table) {
    if (table->report->look.width <= 0) return;
    for (int order = 1; order <= SACRIFICE_LAST && total_width(table) > width_of(table->report); order++)
        for (int i = 0; i < COLUMNS; i++) {
            plan_entry *entry = &table->entry[i];
            if (!entry->is_shown || entry->column->sacrifice != order) continue;
            entry->is_shown = false;
            entry->is_sacrificed = true;
        }
}

static void lay_out(plan_table *table, pc_text *first, pc_text *cell) {
    table->own = pc_plan_extras(table->report);
    for (int k = 0; k < COLUMNS; k++) {
        plan_entry *entry = &table->entry[k];
        *entry = entry_of(table, &columns[k]);
        entry->is_shown = must_show(table, entry, first, cell);
        entry->width = pc_max(strlen(entry->top), strlen(entry->bottom));
        for (int64_t i = 0; entry->is_shown && i < table->report->count; i++) {
            set_cell(table, cell, i, entry);
            if (!cell->failed) entry->width = pc_max(entry->width, pc_utf8_length(cell->data));
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
    for (int i = 0; i < COLUMNS; i++) {
        const plan_entry *entry = &table->entry[i];
        if (!entry->is_shown) continue;
        pc_line_add(&line, is_top ? entry->top : entry->bottom, entry->width, entry->is_text, PC_INK_PLAIN);
    }
    pc_line_end(&line);
}

static void add_rule(const plan_table *table, pc_text *text) {
    pc_line line = line_of(table, text);
    for (int i = 0; i < COLUMNS; i++)
        if (table->entry[i].is_shown) pc_line_add_rule(&line, table->entry[i].width);
    pc_line_end(&line);
}

static void add_rows(const plan_table *table, pc_text *text, pc_text *cell) {
    for (int64_t i = 0; i < table->report->count; i++) {
        pc_line line = line_of(table, text);
        for (int k = 0; k < COLUMNS; k++) {
            const plan_entry *entry = &table->entry[k];
            if (!entry->is_shown) continue;
            set_cell(table, cell, i, entry);
            if (!cell->failed) pc_line_add(&line, cell->data, entry->width, entry->is_text, PC_INK_PLAIN);
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

/* "global batch 512", "microbatches 8": the header's words, unless it has others here. */
static void add_choice(pc_items *items, const plan_entry *entry, const char *value) {
    char words[64];
    size_t length = strlen(entry->top);
    bool joins = entry->top[length - 1] == '-';
    snprintf(words, sizeof words, "%.*s%s%s", (int)(joins ? length - 1 : length), entry->top,
             joins || !entry->bottom[0] ? "" : " ", entry->bottom);
    add_pair(items, entry->column->label ? entry->column->label : words, value);
}

/* What all plans have in common. */
static void add_constants(const plan_table *table, pc_text *lines, pc_text *cell) {
    pc_items items = {.text = lines, .width = width_of(table->report)};
    add_model(&items, &table->report->rows[0].row);
    for (int i = 0; i < COLUMNS; i++) {
        const plan_entry *entry = &table->entry[i];
        if (entry->column->kind != CHOICE || entry->is_shown || entry->is_sacrificed) continue;
        set_cell(table, cell, 0, entry);
        bool is_plain = entry->column->plain && !cell->failed && strcmp(cell->data, entry->column->plain) == 0;
        if (entry->column->unit) pc_text_printf(cell, "%s", entry->column->unit);
        if (!cell->failed && !is_plain) add_choice(&items, entry, cell->data);
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
    for (int i = 0; i < COLUMNS; i++)
        if (table->entry[i].is_sacrificed)
            pc_text_printf(&names, "%s%s", names.size > 0 ? ", " : PC_LINES_LEFT_OUT, table->entry[i].column->name);
    if (names.size > 0 && !names.failed) {
        pc_text_add(text, "\n", 1);
        pc_lines_add_wrapped(text, names.data, width_of(table->report));
    }
    text->failed = text->failed || names.failed;
    pc_text_free(&names);
}

static const char *mark_of(const pc_plan_report *report, const pc_plan_row *plan) {
    pc_plan_objective objective = report->request.objectives[0];
    if (pc_plan_is_close(objective, report->rows, plan)) return "=";
    return pc_plan_ties(objective, report->rows, plan) ? "~" : " ";
}

static void add_close(const pc_plan_report *report, pc_text *text) {
    bool is_memory = report->request.objectives[0] == PC_PLAN_MEMORY;
    char words[PC_PLAN_TEXT_SIZE];
    snprintf(
        words, sizeof words,
        "=: closer to plan 1 than ratios of two such runs are forecast: of 80%% of the measured pairs within %.1f%%",
        100 * report->rows[0].ratio_error[is_memory ? PC_INTERVAL_MEMORY : PC_INTERVAL_TIME]);
    pc_lines_add_wrapped(text, words, width_of(report));
}

static void add_behind(const pc_plan_report *report, pc_text *text) {
    char behind[PC_PLAN_TEXT_SIZE];
    bool tie = false, are_close = false;
    pc_plan_objective objective = report->request.objectives[0];
    const char *of[] = {
        [PC_PLAN_THROUGHPUT] = "time a token", [PC_PLAN_MEMORY] = "memory", [PC_PLAN_COST] = "cost a token"};
    if (report->count < 2) return;
    pc_text_printf(text, "\nagainst plan 1, %s in percent, and where it comes from:\n", of[objective]);
    for (int64_t i = 1; i < report->count; i++) {
        const char *mark = mark_of(report, &report->rows[i]);
        pc_plan_behind(objective, report->rows, &report->rows[i], behind);
        pc_text_printf(text, "%4" PRId64 "%s %s\n", i + 1, mark, behind);
        are_close = are_close || mark[0] == '=';
        tie = tie || mark[0] == '~';
    }
    if (tie) pc_text_printf(text, "~: its interval of 80%% overlaps that of plan 1\n");
    if (are_close) add_close(report, text);
}

static void add_share(pc_text *text, int64_t count, const char *what, bool *any) {
    if (count > 0) pc_text_printf(text, "%s %" PRId64 " %s", *any ? "," : "", count, what);
    *any = *any || count > 0;
}

static void add_rule_broken(const pc_plan_report *report, pc_text *text) {
    char words[PC_PLAN_REASON_SIZE + 64];
    if (!report->rule) return;
    bool has_others = report->log.broken_rule < report->log.points;
    snprintf(words, sizeof words, "%s: %s",
             has_others ? "rule broken most often" : "rule that stops the points that come furthest", report->rule);
    pc_lines_add_wrapped(text, words, width_of(report));
}

static void add_log(const pc_plan_report *report, pc_text *text) {
    const pc_plan_log *log = &report->log;
    bool any = false, any_simulated = false;
    if (log->points == 0) return; /* nothing keeps to a goal, and no plans were looked for */
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

void pc_plan_table_add(const pc_plan_report *report, pc_text *text) {
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
    pc_plan_parts_add(report, text);
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
    if (report->count > 0 && !is_chosen) pc_plan_table_add(report, text);
    add_below(report, text);
    return pc_stream_text_flush(text, stream);
}
