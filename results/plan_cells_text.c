/* What parts of a plan's answer have to say, for people. */
#include "engine/alloc.h"
#include "engine/numbers.h"
#include "results/lines.h"
#include "results/plan_cells.h"
#include "results/plan_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINE_SIZE = 1024 };

static size_t width_of(const pc_plan_report *report) {
    return report->look.width > 0 ? (size_t)report->look.width : PC_LINES_WIDTH;
}

static const char *word_of(const char *axis) {
    return strcmp(axis, "gpus") == 0 ? "GPUs" : axis;
}

/* "gpus", "machine and gpus". */
static void write_axes(const pc_plan_cells *cells, char *text, size_t size) {
    bool has_two = cells->axis_count > 1;
    snprintf(text, size, "%s%s%s", word_of(cells->axis[0]), has_two ? " and " : "",
             has_two ? word_of(cells->axis[1]) : "");
}

/* ---- the best of each ---- */

static void add_lacking(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    char line[LINE_SIZE];
    for (int64_t i = 0; i < cells->count; i++) {
        if (!cells->rows[i].lacks_plan) continue;
        snprintf(line, sizeof line, "%s: no plan: %s", cells->rows[i].what, cells->rows[i].row.message);
        pc_lines_add_wrapped(text, line, width_of(report));
    }
}

/* Rows of plans alone. */
static void add_each_table(const pc_plan_report *of_part, pc_text *text) {
    pc_plan_report with_plans = *of_part;
    pc_plan_row *rows = pc_alloc((size_t)of_part->count, sizeof *rows);
    text->failed = text->failed || !rows;
    if (!rows) return;
    with_plans.count = 0;
    for (int64_t i = 0; i < of_part->count; i++)
        if (!of_part->rows[i].lacks_plan) rows[with_plans.count++] = of_part->rows[i];
    with_plans.rows = rows;
    with_plans.look.note_count = 0;
    if (with_plans.count > 0) pc_plan_table_add(&with_plans, text);
    pc_free(rows);
}

static void write_goal(const pc_plan_goal *goal, char *text, size_t size) {
    bool has_both = goal->deadline_s > 0.0 && goal->budget > 0.0;
    int used = 0;
    if (goal->deadline_s > 0.0)
        used = snprintf(text, size, "%.6g day%s", goal->deadline_s / 86400, goal->deadline_s == 86400 ? "" : "s");
    if (goal->budget > 0.0)
        snprintf(text + used, size - (size_t)used, "%sa cost of %.10g", has_both ? " and " : "", goal->budget);
}

/* Where it was looked for, for more GPUs need not be faster. */
static void write_tried(const pc_plan_tried *tried, char *text, size_t size) {
    char of[32] = "";
    bool has_step = tried->step > 1;
    if (has_step) snprintf(of, sizeof of, " of %" PRId64, tried->step);
    if (tried->misses == 0)
        snprintf(text, size, "; no fewer were tried");
    else if (tried->is_every)
        snprintf(text, size, "; every %s%s from %" PRId64 " on was tried", has_step ? "multiple" : "number", of,
                 tried->misses);
    else
        snprintf(text, size,
                 "; of the %s%s between %" PRId64 ", which miss that, and %" PRId64 ", %" PRId64 " were tried",
                 has_step ? "multiples" : "numbers", of, tried->misses, tried->reaches, tried->count);
}

/* By how much the goal is missed: what takes the least time, or with a budget alone costs the least. */
static void write_nearest(const pc_plan_goal *goal, const pc_plan_cells *cells, char *text, size_t size) {
    const pc_run_row *nearest = NULL;
    text[0] = '\0';
    for (int64_t i = 0; i < cells->count; i++) {
        const pc_run_row *row = &cells->rows[i].row;
        if (cells->rows[i].lacks_plan) continue;
        bool is_less = nearest && (goal->deadline_s > 0.0 ? row->training_days < nearest->training_days
                                                          : row->training_cost < nearest->training_cost);
        if (!nearest || is_less) nearest = row;
    }
    if (!nearest) return;
    int used = snprintf(text, size, "; the nearest above is %" PRId64 " of %s, %.4g days", nearest->gpus,
                        nearest->machine, nearest->training_days);
    if (isfinite(nearest->training_cost))
        used += snprintf(text + used, size - (size_t)used, ", cost %.*f", nearest->training_cost < 1000 ? 2 : 0,
                         nearest->training_cost);
    if (cells->passed_over > 0)
        snprintf(text + used, size - (size_t)used, "; %" PRId64 " more would be too slow even at the GPU's peak rate",
                 cells->passed_over);
}

static void add_least(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    char goal[96], line[LINE_SIZE];
    int64_t least = pc_plan_cells_least(cells, &report->goal);
    write_goal(&report->goal, goal, sizeof goal);
    if (least < 0) {
        int used = snprintf(line, sizeof line, "nothing that was tried keeps to %s", goal);
        write_nearest(&report->goal, cells, line + used, sizeof line - (size_t)used);
    } else {
        const pc_run_row *row = &cells->rows[least].row;
        int used = snprintf(line, sizeof line, "fewest GPUs within %s: %" PRId64 " of %s, %.4g days", goal, row->gpus,
                            row->machine, row->training_days);
        if (isfinite(row->training_cost))
            used += snprintf(line + used, sizeof line - (size_t)used, ", cost %.*f", row->training_cost < 1000 ? 2 : 0,
                             row->training_cost);
        write_tried(&cells->tried, line + used, sizeof line - (size_t)used);
    }
    pc_text_add(text, "\n", 1);
    pc_lines_add_wrapped(text, line, width_of(report));
    if (least >= 0 && cells->rows[least].command) pc_text_printf(text, "it: %s\n", cells->rows[least].command);
}

static void add_each(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    char axes[64];
    pc_plan_report of_part = pc_plan_report_of(report, cells);
    write_axes(cells, axes, sizeof axes);
    pc_text_printf(text, "\nthe best plan by %s:\n", axes);
    add_each_table(&of_part, text);
    add_lacking(report, cells, text);
    if (cells->is_of_goal) add_least(report, cells, text);
}

/* ---- the map ---- */

static const pc_plan_row *cell_at(const pc_plan_cells *cells, int across, int down) {
    return &cells->rows[(int64_t)across * cells->size[1] + down];
}

/* With as many decimals as give the fastest of them four digits. */
static void write_cell(const pc_plan_cells *cells, const pc_plan_row *row, char text[16]) {
    double most = 0.0;
    for (int64_t i = 0; i < cells->count; i++)
        if (!cells->rows[i].lacks_plan) most = fmax(most, cells->rows[i].row.tokens_per_s_per_gpu);
    int decimals = most >= 1000 ? 0 : most >= 100 ? 1 : 2;
    if (row->lacks_plan)
        snprintf(text, 16, "%c", pc_plan_cell_letter(row));
    else
        snprintf(text, 16, "%.*f", decimals, row->row.tokens_per_s_per_gpu);
}

static size_t cell_width(const pc_plan_cells *cells) {
    size_t width = 1;
    char text[16];
    for (int64_t i = 0; i < cells->count; i++) {
        write_cell(cells, &cells->rows[i], text);
        width = pc_max(width, strlen(text));
    }
    for (int i = 0; i < cells->size[0]; i++) width = pc_max(width, strlen(cells->value[0][i]));
    return width;
}

static size_t side_width(const pc_plan_cells *cells) {
    size_t width = strlen(word_of(cells->axis[1]));
    for (int i = 0; i < cells->size[1]; i++) width = pc_max(width, strlen(cells->value[1][i]));
    return width;
}

static void add_grid(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    size_t side = side_width(cells), width = cell_width(cells);
    char cell[16];
    pc_line line = {.text = text, .is_coloured = report->look.is_coloured};
    pc_line_add(&line, word_of(cells->axis[1]), side, false, PC_INK_PLAIN);
    for (int i = 0; i < cells->size[0]; i++) pc_line_add(&line, cells->value[0][i], width, false, PC_INK_PLAIN);
    pc_line_end(&line);
    for (int down = 0; down < cells->size[1]; down++) {
        line.waiting = 0;
        pc_line_add(&line, cells->value[1][down], side, false, PC_INK_PLAIN);
        for (int across = 0; across < cells->size[0]; across++) {
            const pc_plan_row *row = cell_at(cells, across, down);
            write_cell(cells, row, cell);
            pc_line_add(&line, cell, width, false, row->lacks_plan ? PC_INK_DIM : PC_INK_PLAIN);
        }
        pc_line_end(&line);
    }
}

static void add_letters(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    char line[LINE_SIZE] = "";
    int used = 0;
    for (const char *letter = pc_plan_letters; *letter; letter++) {
        bool is_there = false;
        for (int64_t i = 0; i < cells->count && !is_there; i++)
            is_there = pc_plan_cell_letter(&cells->rows[i]) == *letter;
        if (is_there)
            used += snprintf(line + used, sizeof line - (size_t)used, "%s%c: %s", used ? ", " : "no plan: ", *letter,
                             pc_plan_letter_words(*letter));
    }
    if (used > 0) pc_lines_add_wrapped(text, line, width_of(report));
}

static void add_map(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    pc_text_printf(text, "\ntokens a second and GPU of the best plan, %s across and %s down:\n",
                   word_of(cells->axis[0]), word_of(cells->axis[1]));
    add_grid(report, cells, text);
    add_letters(report, cells, text);
}

/* ---- what would change plan 1 ---- */

static void write_change(const pc_plan_report *report, const pc_plan_row *row, char text[32]) {
    double change = pc_plan_row_change(report->request.objectives[0], report->rows, row);
    if (row->row.status == PC_RUN_OUT_OF_MEMORY)
        snprintf(text, 32, "does not fit");
    else if (isnan(change))
        snprintf(text, 32, "no plan");
    else
        snprintf(text, 32, "%+.1f%%", fabs(change) < 0.0005 ? 0.0 : 100 * change);
}

/* Rows of one thing: less and more of it, and with the best plan then. */
static int changes_of_thing(const pc_plan_cells *cells) {
    return cells->count > 2 && strstr(cells->rows[2].what, PC_PLAN_ANEW) ? 4 : 2;
}

static void add_changes(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    static const char *const heads[] = {"x 0.8", "x 1.2", "anew x 0.8", "anew x 1.2"};
    int each = changes_of_thing(cells);
    size_t side = 0, width = sizeof "does not fit" - 1;
    char cell[32];
    pc_line line = {.text = text, .is_coloured = report->look.is_coloured};
    for (int64_t i = 0; i < cells->count; i += each) side = pc_max(side, strlen(cells->rows[i].what));
    pc_line_add(&line, "", side, true, PC_INK_PLAIN);
    for (int k = 0; k < each; k++) pc_line_add(&line, heads[k], width, false, PC_INK_PLAIN);
    pc_line_end(&line);
    for (int64_t i = 0; i + each <= cells->count; i += each) {
        line.waiting = 0;
        pc_line_add(&line, cells->rows[i].what, side, true, PC_INK_PLAIN);
        for (int k = 0; k < each; k++) {
            write_change(report, &cells->rows[i + k], cell);
            pc_line_add(&line, cell, width, false, PC_INK_PLAIN);
        }
        pc_line_end(&line);
    }
}

static void add_sensitivity(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    static const char *const of[] = {
        [PC_PLAN_THROUGHPUT] = "time a token", [PC_PLAN_MEMORY] = "memory", [PC_PLAN_COST] = "cost a token"};
    pc_text_printf(text, "\nwhat would change plan 1, %s:\n", of[report->request.objectives[0]]);
    add_changes(report, cells, text);
}

/* ---- a mix of lengths ---- */

static void add_mix(const pc_plan_report *report, const pc_plan_cells *cells, pc_text *text) {
    pc_plan_report of_part = pc_plan_report_of(report, cells);
    pc_text_printf(text, "\nthese plans with the mix of lengths, the fastest first:\n");
    add_each_table(&of_part, text);
    add_lacking(report, cells, text);
}

void pc_plan_parts_add(const pc_plan_report *report, pc_text *text) {
    for (int i = 0; i < report->part_count; i++) {
        const pc_plan_cells *cells = &report->parts[i];
        if (cells->part == PC_PLAN_PART_EACH || cells->is_of_goal) add_each(report, cells, text);
        if (cells->part == PC_PLAN_PART_MIX) add_mix(report, cells, text);
        if (cells->part == PC_PLAN_PART_MAP) add_map(report, cells, text);
        if (cells->part == PC_PLAN_PART_SENSITIVITY && cells->count > 1) add_sensitivity(report, cells, text);
    }
}
