/* Plans as CSV and JSON, and the door to all three formats. */
#include "results/plan_table.h"

#include "results/columns.h"
#include "results/plan_private.h"
#include "results/table_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* What a plan has beside the columns of its run, behind its rank. */
enum { EXTRA_ORDER, EXTRA_P2P, EXTRA_TP, EXTRA_GRADIENTS, EXTRA_PARAMETERS, EXTRA_LIMITS, EXTRA_BEHIND, EXTRA_COMMAND };
static const char *const extras[] = {"rank_order",         "overlap_p2p", "overlap_tp", "overlap_gradients",
                                     "overlap_parameters", "limits",      "behind",     "command"};
enum { EXTRAS = sizeof extras / sizeof *extras };

static const char *switch_text(bool is_on) {
    return is_on ? "1" : "0";
}

static bool is_switch(int extra) {
    return extra >= EXTRA_P2P && extra <= EXTRA_PARAMETERS;
}

/* The text lives in `room`, or longer. */
static const char *extra_text(const pc_plan_report *report, const pc_plan_row *plan, int extra,
                              char room[PC_PLAN_TEXT_SIZE]) {
    const pc_plan_choice *choice = &plan->found.choice;
    switch (extra) {
    case EXTRA_ORDER:
        pc_rank_order_write(choice->order, room);
        return room;
    case EXTRA_P2P:
        return switch_text(choice->overlaps_p2p);
    case EXTRA_TP:
        return switch_text(choice->overlaps_tp);
    case EXTRA_GRADIENTS:
        return switch_text(choice->overlaps_gradients);
    case EXTRA_PARAMETERS:
        return switch_text(choice->overlaps_parameters);
    case EXTRA_LIMITS:
        pc_plan_limits(plan, room);
        return room;
    case EXTRA_BEHIND:
        pc_plan_behind(report->request.objectives[0], report->rows, plan, room);
        return room;
    default:
        return plan->command;
    }
}

/* ---- CSV ---- */

static void add_quoted(pc_text *text, const char *cell) {
    bool quoted = strpbrk(cell, ",\"\r\n") != NULL;
    if (quoted) pc_text_add(text, "\"", 1);
    for (; *cell; cell++) pc_text_add(text, *cell == '"' ? "\"\"" : cell, *cell == '"' ? 2 : 1);
    if (quoted) pc_text_add(text, "\"", 1);
}

static void add_csv_header(pc_text *text) {
    int count;
    const pc_column *columns = pc_columns(&count);
    pc_text_printf(text, "rank");
    for (int i = 0; i < count; i++) pc_text_printf(text, ",%s", columns[i].name);
    for (int i = 0; i < EXTRAS; i++) pc_text_printf(text, ",%s", extras[i]);
    pc_text_add(text, "\n", 1);
}

static void add_csv_row(const pc_plan_report *report, int64_t index, pc_text *text) {
    char room[PC_PLAN_TEXT_SIZE];
    int count;
    const pc_column *columns = pc_columns(&count);
    pc_text_printf(text, "%" PRId64, index + 1);
    for (int i = 0; i < count; i++) {
        pc_text_add(text, ",", 1);
        pc_table_add_csv(text, &columns[i], &report->rows[index].row);
    }
    for (int i = 0; i < EXTRAS; i++) {
        pc_text_add(text, ",", 1);
        add_quoted(text, extra_text(report, &report->rows[index], i, room));
    }
    pc_text_add(text, "\n", 1);
}

static void add_csv(const pc_plan_report *report, pc_text *text) {
    add_csv_header(text);
    for (int64_t i = 0; i < report->count; i++) add_csv_row(report, i, text);
}

/* ---- JSON ---- */

static void add_json_plan(const pc_plan_report *report, int64_t index, pc_text *text) {
    char room[PC_PLAN_TEXT_SIZE];
    int count;
    const pc_column *columns = pc_columns(&count);
    pc_text_printf(text, "%s\n    {\"rank\": %" PRId64, index ? "," : "", index + 1);
    for (int i = 0; i < count; i++) {
        pc_text_printf(text, ", \"%s\": ", columns[i].name);
        pc_table_add_json(text, &columns[i], &report->rows[index].row);
    }
    for (int i = 0; i < EXTRAS; i++) {
        const char *cell = extra_text(report, &report->rows[index], i, room);
        pc_text_printf(text, ", \"%s\": ", extras[i]);
        if (is_switch(i))
            pc_text_add(text, cell, strlen(cell));
        else
            pc_text_add_json(text, cell);
    }
    pc_text_add(text, "}", 1);
}

static void add_json_number(pc_text *text, const char *name, double number) {
    char written[PC_NUMBER_SIZE];
    pc_number_format(number, written);
    pc_text_printf(text, ", \"%s\": %s", name, number == number ? written : "null");
}

static void add_json_log(const pc_plan_log *log, pc_text *text) {
    pc_text_printf(text,
                   "  \"log\": {\"points\": %" PRId64 ", \"broken_rule\": %" PRId64 ", \"over_memory\": %" PRId64
                   ", \"too_slow\": %" PRId64 ", \"simulated\": %" PRId64 ", \"simulated_over_memory\": %" PRId64
                   ", \"simulated_infeasible\": %" PRId64,
                   log->points, log->broken_rule, log->over_memory, log->too_slow, log->simulated,
                   log->simulated_over_memory, log->simulated_infeasible);
    add_json_number(text, "worst_bound", log->worst_bound);
    add_json_number(text, "mean_bound", log->mean_bound);
    pc_text_add(text, "}\n", 2);
}

static void add_json(const pc_plan_report *report, pc_text *text) {
    pc_text_printf(text, "{\n  \"scenario\": ");
    pc_text_add_json(text, report->scenario);
    pc_text_printf(text, ",\n  \"objective\": [");
    for (int i = 0; i < report->request.objective_count; i++)
        pc_text_printf(text, "%s\"%s\"", i ? ", " : "", pc_plan_objective_name(report->request.objectives[i]));
    pc_text_printf(text, "],\n  \"plans\": [");
    for (int64_t i = 0; i < report->count; i++) add_json_plan(report, i, text);
    pc_text_printf(text, "%s],\n", report->count > 0 ? "\n  " : "");
    add_json_log(&report->log, text);
    pc_text_add(text, "}\n", 2);
}

/* ---- all formats ---- */

pc_code pc_plan_table_write(const pc_plan_report *report, pc_format format, FILE *stream, pc_error *error) {
    static void (*const writers[])(const pc_plan_report *, pc_text *) = {
        [PC_FORMAT_TABLE] = pc_plan_text_add, [PC_FORMAT_CSV] = add_csv, [PC_FORMAT_JSON] = add_json};
    pc_text text = {0};
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    writers[format](report, &text);
    pc_number_scope_leave(&scope);
    errno = 0;
    bool starved = text.failed;
    bool done = !starved && fwrite(text.data, 1, text.size, stream) == text.size && fflush(stream) == 0;
    int cause = errno;
    pc_text_free(&text);
    if (done) return PC_OK;
    if (starved) return pc_error_no_memory(error);
    return pc_error_set(error, PC_ERROR_IO, "cannot write the plans: %s", cause ? strerror(cause) : "stream error");
}
