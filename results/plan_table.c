/* Plans as CSV and JSON, and the door to all three formats. */
#include "results/plan_table.h"

#include "results/columns.h"
#include "results/plan_cells.h"
#include "results/plan_private.h"
#include "results/stream_text.h"
#include "results/table_private.h"

#include <inttypes.h>
#include <string.h>

/* What a plan has beside the columns of its run: its rank, which stands before them in the CSV, and the rest. */
enum {
    EXTRA_RANK,
    EXTRA_ORDER,
    EXTRA_OFFLOAD,
    EXTRA_CP_COMM,
    EXTRA_DISPATCHER,
    EXTRA_P2P,
    EXTRA_TP,
    EXTRA_GRADIENTS,
    EXTRA_PARAMETERS,
    EXTRA_LIMITS,
    EXTRA_BEHIND,
    EXTRA_TIES,
    EXTRA_CLOSE,
    EXTRA_PART,
    EXTRA_WHAT,
    EXTRA_FACTOR,
    EXTRA_COMMAND,
    EXTRAS
};
static const pc_table_extra extras[EXTRAS] = {[EXTRA_RANK] = {"rank", false},
                                              [EXTRA_ORDER] = {"rank_order", true},
                                              [EXTRA_OFFLOAD] = {"offload", true},
                                              [EXTRA_CP_COMM] = {"cp_comm_type", true},
                                              [EXTRA_DISPATCHER] = {"dispatcher", true},
                                              [EXTRA_P2P] = {"overlap_p2p", false},
                                              [EXTRA_TP] = {"overlap_tp", false},
                                              [EXTRA_GRADIENTS] = {"overlap_gradients", false},
                                              [EXTRA_PARAMETERS] = {"overlap_parameters", false},
                                              [EXTRA_LIMITS] = {"limits", true},
                                              [EXTRA_BEHIND] = {"behind", true},
                                              [EXTRA_TIES] = {"ties", false},
                                              [EXTRA_CLOSE] = {"close", false},
                                              [EXTRA_PART] = {"part", true},
                                              [EXTRA_WHAT] = {"what", true},
                                              [EXTRA_FACTOR] = {"factor", false},
                                              [EXTRA_COMMAND] = {"command", true}};

/* ---- which columns ---- */

static int run_columns(void) {
    int count;
    pc_columns(&count);
    return count;
}

/* Column `number` of the CSV, as tables of runs count it. */
static int number_in_runs(int number) {
    int count = run_columns();
    if (number == 0) return count + EXTRA_RANK;
    return number <= count ? number - 1 : number; /* the rank is not before the others */
}

static const char *name_of(int number) {
    int count;
    const pc_column *columns = pc_columns(&count);
    return number < count ? columns[number].field.name : extras[number - count].name;
}

const char *pc_plan_column_name(int number) {
    return number < run_columns() + EXTRAS ? name_of(number_in_runs(number)) : NULL;
}

pc_column_choice pc_plan_choice_of_run(const pc_column_choice *choice) {
    pc_column_choice made = *choice;
    for (int i = 0; i < choice->count; i++) made.column[i] = number_in_runs(choice->column[i]);
    return made;
}

static int column_count(const pc_plan_report *report) {
    return report->look.columns ? report->look.columns->count : run_columns() + EXTRAS;
}

/* The i-th column that is written. */
static int column_at(const pc_plan_report *report, int i) {
    return number_in_runs(report->look.columns ? report->look.columns->column[i] : i);
}

/* ---- what is in them ---- */

static const char *switch_text(bool is_on) {
    return is_on ? "1" : "0";
}

/* Of a run in which ranks share out experts, or cut them otherwise than the rest. */
const char *pc_plan_dispatcher(const pc_plan_row *plan) {
    static const char *const words[] = {[PC_DISPATCHER_ALLGATHER] = "allgather",
                                        [PC_DISPATCHER_ALLTOALL] = "alltoall",
                                        [PC_DISPATCHER_DEEPEP] = "deepep",
                                        [PC_DISPATCHER_HYBRIDEP] = "hybridep"};
    return plan->row.ep > 1 ? words[plan->found.choice.dispatcher] : "none";
}

const char *pc_plan_cp_comm(const pc_plan_row *plan) {
    return plan->row.cp > 1 ? pc_cp_comm_name(plan->found.choice.cp_comm) : "none";
}

static const pc_plan_row *best_of(const pc_plan_report *report) {
    return report->best ? report->best : report->rows;
}

/* What a choice says; the text lives in `room`, or longer. */
static const char *choice_text(const pc_plan_row *plan, int extra, char room[PC_PLAN_TEXT_SIZE]) {
    const pc_plan_choice *choice = &plan->found.choice;
    switch (extra) {
    case EXTRA_ORDER:
        pc_rank_order_write(choice->order, room);
        return room;
    case EXTRA_OFFLOAD:
        pc_offload_write(choice->offload, room);
        return room;
    case EXTRA_CP_COMM:
        return pc_plan_cp_comm(plan);
    case EXTRA_DISPATCHER:
        return pc_plan_dispatcher(plan);
    case EXTRA_P2P:
        return switch_text(choice->overlaps_p2p);
    case EXTRA_TP:
        return switch_text(choice->overlaps_tp);
    case EXTRA_GRADIENTS:
        return switch_text(choice->overlaps_gradients);
    default:
        return switch_text(choice->overlaps_parameters);
    }
}

/* What it is beside the best one, which only other plans, and changes of it, are. */
static const char *compared_text(const pc_plan_report *report, const pc_plan_row *plan, int extra,
                                 char room[PC_PLAN_TEXT_SIZE]) {
    pc_plan_objective objective = report->request.objectives[0];
    const pc_plan_row *best = best_of(report);
    bool is_compared = plan->part == PC_PLAN_PART_PLANS || plan->part == PC_PLAN_PART_SENSITIVITY;
    if (!is_compared) return "";
    if (extra == EXTRA_TIES) return switch_text(pc_plan_ties(objective, best, plan));
    if (extra == EXTRA_CLOSE) return switch_text(pc_plan_is_close(objective, best, plan));
    pc_plan_behind(objective, best, plan, room);
    return room;
}

/* The text lives in `room`, or longer; empty where there is nothing to say. */
static const char *extra_text(const pc_plan_report *report, int64_t index, int extra, char room[PC_PLAN_TEXT_SIZE]) {
    const pc_plan_row *plan = &report->rows[index];
    bool is_said = extra == EXTRA_PART || extra == EXTRA_WHAT || extra == EXTRA_FACTOR;
    room[0] = '\0';
    if (plan->lacks_plan && !is_said) return "";
    switch (extra) {
    case EXTRA_RANK:
        if (plan->part == PC_PLAN_PART_PLANS) snprintf(room, PC_PLAN_TEXT_SIZE, "%" PRId64, index + 1);
        return room;
    case EXTRA_LIMITS:
        if (plan->part != PC_PLAN_PART_MIX) pc_plan_limits(plan, room); /* means have no waits */
        return room;
    case EXTRA_BEHIND:
    case EXTRA_TIES:
    case EXTRA_CLOSE:
        return compared_text(report, plan, extra, room);
    case EXTRA_PART:
        return pc_plan_part_name(plan->part);
    case EXTRA_WHAT:
        return plan->what;
    case EXTRA_FACTOR:
        if (plan->part == PC_PLAN_PART_SENSITIVITY) pc_number_format(plan->factor, room);
        return room;
    case EXTRA_COMMAND:
        return plan->command ? plan->command : "";
    default:
        return choice_text(plan, extra, room);
    }
}

/* ---- CSV ---- */

static void add_quoted(pc_text *text, const char *cell) {
    bool quoted = strpbrk(cell, ",\"\r\n") != NULL;
    if (quoted) pc_text_add(text, "\"", 1);
    for (; *cell; cell++) pc_text_add(text, *cell == '"' ? "\"\"" : cell, *cell == '"' ? 2 : 1);
    if (quoted) pc_text_add(text, "\"", 1);
}

static void add_csv_header(const pc_plan_report *report, pc_text *text) {
    for (int i = 0; i < column_count(report); i++)
        pc_text_printf(text, "%s%s", i ? "," : "", name_of(column_at(report, i)));
    pc_text_add(text, "\n", 1);
}

static void add_csv_cell(const pc_plan_report *report, int64_t index, int column, pc_text *text) {
    char room[PC_PLAN_TEXT_SIZE];
    int count;
    const pc_column *columns = pc_columns(&count);
    if (column < count)
        pc_table_add_csv(text, &columns[column], &report->rows[index].row);
    else
        add_quoted(text, extra_text(report, index, column - count, room));
}

/* A line with nothing in it would be no row to most readers. */
static void add_csv_row(const pc_plan_report *report, int64_t index, pc_text *text) {
    size_t start = text->size;
    for (int i = 0; i < column_count(report); i++) {
        if (i) pc_text_add(text, ",", 1);
        add_csv_cell(report, index, column_at(report, i), text);
    }
    pc_text_printf(text, "%s\n", text->size == start ? "\"\"" : "");
}

static void add_csv(const pc_plan_report *report, pc_text *text) {
    add_csv_header(report, text);
    for (int64_t i = 0; i < report->count; i++) add_csv_row(report, i, text);
    for (int part = 0; part < report->part_count; part++) {
        pc_plan_report of_part = pc_plan_report_of(report, &report->parts[part]);
        for (int64_t i = 0; i < of_part.count; i++) add_csv_row(&of_part, i, text);
    }
}

/* ---- JSON ---- */

/* Ranks and switches are numbers. */
static void add_json_extra(const pc_plan_report *report, int64_t index, int extra, pc_text *text) {
    char room[PC_PLAN_TEXT_SIZE];
    const char *cell = extra_text(report, index, extra, room);
    if (extras[extra].is_text)
        pc_text_add_json(text, cell);
    else
        pc_text_printf(text, "%s", cell[0] ? cell : "null");
}

static void add_json_plan(const pc_plan_report *report, int64_t index, bool is_first, pc_text *text) {
    int count;
    const pc_column *columns = pc_columns(&count);
    pc_text_printf(text, "%s\n    {", is_first ? "" : ",");
    for (int i = 0; i < column_count(report); i++) {
        int column = column_at(report, i);
        pc_text_printf(text, "%s\"%s\": ", i ? ", " : "", name_of(column));
        if (column < count)
            pc_table_add_json(text, &columns[column], &report->rows[index].row);
        else
            add_json_extra(report, index, column - count, text);
    }
    pc_text_add(text, "}", 1);
}

static void add_json_number(pc_text *text, const char *name, double number) {
    char written[PC_NUMBER_SIZE];
    pc_number_format(number, written);
    pc_text_printf(text, ", \"%s\": %s", name, number == number ? written : "null");
}

static void add_json_rules(const pc_plan_report *report, pc_text *text) {
    static const char *const names[PC_PLAN_RULES] = {
        [PC_PLAN_RULE_GPUS] = "gpus",         [PC_PLAN_RULE_INTERLEAVING] = "interleaving",
        [PC_PLAN_RULE_LAYERS] = "layers",     [PC_PLAN_RULE_BATCH] = "batch",
        [PC_PLAN_RULE_SCHEDULE] = "schedule", [PC_PLAN_RULE_TENSOR] = "tensor",
        [PC_PLAN_RULE_SIZE] = "size",         [PC_PLAN_RULE_OFFLOAD] = "offload",
        [PC_PLAN_RULE_EXPERTS] = "experts"};
    pc_text_printf(text, ", \"broken\": {");
    for (int i = 0; i < PC_PLAN_RULES; i++)
        pc_text_printf(text, "%s\"%s\": %" PRId64, i ? ", " : "", names[i], report->log.broken[i]);
    pc_text_printf(text, "}, \"rule\": ");
    if (report->rule)
        pc_text_add_json(text, report->rule);
    else
        pc_text_printf(text, "null");
}

static void add_json_log(const pc_plan_report *report, pc_text *text) {
    const pc_plan_log *log = &report->log;
    pc_text_printf(text,
                   "  \"log\": {\"points\": %" PRId64 ", \"broken_rule\": %" PRId64 ", \"over_memory\": %" PRId64
                   ", \"too_slow\": %" PRId64 ", \"simulated\": %" PRId64 ", \"simulated_over_memory\": %" PRId64
                   ", \"simulated_infeasible\": %" PRId64,
                   log->points, log->broken_rule, log->over_memory, log->too_slow, log->simulated,
                   log->simulated_over_memory, log->simulated_infeasible);
    add_json_number(text, "worst_bound", log->worst_bound);
    add_json_number(text, "mean_bound", log->mean_bound);
    add_json_rules(report, text);
    pc_text_add(text, "}\n", 2);
}

static void add_json_rows(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    pc_plan_report of_part = pc_plan_report_of(report, cells);
    pc_text_printf(text, "[");
    for (int64_t i = 0; i < of_part.count; i++) add_json_plan(&of_part, i, i == 0, text);
    pc_text_printf(text, "\n  ]");
}

/* A list. A goal's rows are in its object; without others of EACH they are in that list, too. */
static void add_json_part(const pc_plan_report *report, pc_plan_part part, pc_text *text) {
    for (int i = 0; i < report->part_count; i++) {
        if (report->parts[i].part != part || part == PC_PLAN_PART_GOAL) continue;
        pc_text_printf(text, "  \"%s\": ", pc_plan_part_name(part));
        add_json_rows(report, &report->parts[i], text);
        pc_text_printf(text, ",\n");
    }
}

/* What the fewest GPUs are, and where they were looked for. */
static void add_json_goal(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    const pc_plan_tried *tried = &cells->tried;
    int64_t least = pc_plan_cells_least(cells, &report->goal);
    pc_text_printf(text, "  \"goal\": {\"gpus\": ");
    if (least < 0) {
        pc_text_printf(text, "null");
    } else {
        pc_text_printf(text, "%" PRId64 ", \"machine\": ", cells->rows[least].row.gpus);
        pc_text_add_json(text, cells->rows[least].row.machine);
        pc_text_printf(text,
                       ", \"misses\": %" PRId64 ", \"step\": %" PRId64 ", \"tried_between\": %" PRId64
                       ", \"every_step\": %s",
                       tried->misses, tried->step, tried->count, tried->is_every ? "true" : "false");
    }
    pc_text_printf(text, ", \"each\": ");
    add_json_rows(report, cells, text);
    pc_text_printf(text, "},\n");
}

static void add_json(const pc_plan_report *report, pc_text *text) {
    pc_text_printf(text, "{\n  \"scenario\": ");
    pc_text_add_json(text, report->scenario);
    pc_text_printf(text, ",\n  \"objective\": [");
    for (int i = 0; i < report->request.objective_count; i++)
        pc_text_printf(text, "%s\"%s\"", i ? ", " : "", pc_plan_objective_name(report->request.objectives[i]));
    pc_text_printf(text, "],\n  \"plans\": [");
    for (int64_t i = 0; i < report->count; i++) add_json_plan(report, i, i == 0, text);
    pc_text_printf(text, "%s],\n", report->count > 0 ? "\n  " : "");
    for (pc_plan_part part = 0; part < PC_PLAN_PARTS; part++) add_json_part(report, part, text);
    for (int i = 0; i < report->part_count; i++)
        if (report->parts[i].is_of_goal) add_json_goal(report, &report->parts[i], text);
    add_json_log(report, text);
    pc_text_add(text, "}\n", 2);
}

/* ---- for the table ---- */

static void add_extra(const void *context, int64_t index, int extra, pc_text *cell) {
    enum { COMMAND_MAX = 4096 };
    char room[PC_PLAN_TEXT_SIZE];
    pc_text_add_line(cell, extra_text(context, index, extra, room), COMMAND_MAX);
}

pc_table_extras pc_plan_extras(const pc_plan_report *report) {
    return (pc_table_extras){.extra = extras, .count = EXTRAS, .add = add_extra, .context = report};
}

/* ---- all formats ---- */

/* A report in one format. */
typedef struct plan_job {
    const pc_plan_report *report;
    pc_format format;
} plan_job;

static bool write_as(void *context, pc_text *text, FILE *stream) {
    const plan_job *job = context;
    if (job->format == PC_FORMAT_TABLE) return pc_plan_text_write(job->report, text, stream);
    if (job->format == PC_FORMAT_CSV) add_csv(job->report, text);
    if (job->format == PC_FORMAT_JSON) add_json(job->report, text);
    return pc_stream_text_flush(text, stream);
}

pc_code pc_plan_table_write(const pc_plan_report *report, pc_format format, FILE *stream, pc_error *error) {
    plan_job job = {report, format};
    return pc_stream_text_write(write_as, &job, "the plans", stream, error);
}
