#include "results/compare_private.h"
#include "results/stream_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    LINES_MAX = 24,  /* differences that are shown, unless all are asked for */
    LONELY_MAX = 8,  /* runs that only one has, likewise */
    LABEL_MAX = 60,  /* characters of a run's name in a cell */
    VALUE_MAX = 40,  /* of a value */
    PREFIX_MIN = 16, /* of two long texts that begin alike, what they share is shown to this length */
    PATH_SHOWN_MAX = 512,
    CELLS_MAX = 5,
    GAP = 2
};

/* --- a grid: cells that stand below each other; formatted once to measure, once to print --- */

typedef struct grid {
    int count; /* of columns */
    const char *const *heads;
    const bool *is_right;
    size_t width[CELLS_MAX];
    pc_text cell[CELLS_MAX];
} grid;

static void grid_start(grid *g, int count, const char *const *heads, const bool *is_right) {
    *g = (grid){.count = count, .heads = heads, .is_right = is_right};
    for (int i = 0; i < count; i++) g->width[i] = strlen(heads[i]);
}

static void grid_free(grid *g) {
    for (int i = 0; i < g->count; i++) pc_text_free(&g->cell[i]);
}

static void grid_clear(grid *g) {
    for (int i = 0; i < g->count; i++) {
        g->cell[i].size = 0;
        pc_text_add(&g->cell[i], "", 0);
    }
}

static bool grid_failed(const grid *g) {
    for (int i = 0; i < g->count; i++)
        if (g->cell[i].failed) return true;
    return false;
}

static void grid_measure(grid *g) {
    if (grid_failed(g)) return;
    for (int i = 0; i < g->count; i++) {
        size_t length = pc_utf8_length(g->cell[i].data);
        if (length > g->width[i]) g->width[i] = length;
    }
}

/* Blanks wait until something follows them, so that no line ends in one. */
static void add_cell(pc_text *text, const char *cell, size_t width, bool is_right, size_t *waiting) {
    size_t length = pc_utf8_length(cell), rest = width - length;
    if (length == 0) return (void)(*waiting += width + GAP);
    pc_text_printf(text, "%*s%s", (int)(*waiting + (is_right ? rest : 0)), "", cell);
    *waiting = GAP + (is_right ? 0 : rest);
}

static void grid_print(grid *g, pc_text *text) {
    size_t waiting = 0;
    if (grid_failed(g)) return (void)(text->failed = true);
    for (int i = 0; i < g->count; i++) add_cell(text, g->cell[i].data, g->width[i], g->is_right[i], &waiting);
    pc_text_add(text, "\n", 1);
}

static void grid_print_head(const grid *g, pc_text *text) {
    size_t waiting = 0;
    for (int i = 0; i < g->count; i++) add_cell(text, g->heads[i], g->width[i], g->is_right[i], &waiting);
    pc_text_add(text, "\n", 1);
    for (int i = 0; i < g->count; i++) {
        pc_text_printf(text, "%*s", i ? GAP : 0, "");
        for (size_t k = 0; k < g->width[i]; k++) pc_text_add(text, "-", 1);
    }
    pc_text_add(text, "\n", 1);
}

/* --- cells --- */

/* The name of a run; with its scenario where the two files have several. */
void pc_compare_add_label(pc_text *cell, const pc_run_row *row, bool with_scenario) {
    if (with_scenario) {
        pc_text_add_line(cell, row->scenario, LABEL_MAX);
        pc_text_add(cell, ": ", 2);
    }
    if (row->name[0])
        pc_text_add_line(cell, row->name, LABEL_MAX);
    else
        pc_text_printf(cell, "run %" PRId64, row->run);
}

/* In percent, with three digits or all before the point. */
static void add_relative(pc_text *cell, double relative) {
    bool is_large = fabs(relative) >= 10 && fabs(relative) < 1e6;
    if (!isnan(relative)) pc_text_printf(cell, is_large ? "%+.0f%%" : "%+.3g%%", relative * 100);
}

/* Two numbers, with as many digits as tell them apart, and no fewer than six. */
static void add_reals(pc_text *cell_a, pc_text *cell_b, double a, double b) {
    char text_a[PC_NUMBER_SIZE], text_b[PC_NUMBER_SIZE];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text_a, sizeof text_a, "%.*g", digits, a);
        snprintf(text_b, sizeof text_b, "%.*g", digits, b);
        if (strcmp(text_a, text_b) != 0) break;
    }
    pc_text_add(cell_a, text_a, strlen(text_a));
    pc_text_add(cell_b, text_b, strlen(text_b));
}

/* How many bytes, whole characters, may be left out at the start of both so that it is seen where they part. */
static size_t shared_start(const char *a, const char *b) {
    size_t shared = 0;
    while (a[shared] && a[shared] == b[shared]) shared++;
    if (shared <= PREFIX_MIN || (pc_utf8_length(a) <= VALUE_MAX && pc_utf8_length(b) <= VALUE_MAX)) return 0;
    shared -= PREFIX_MIN;
    while (shared > 0 && ((unsigned char)a[shared] & 0xC0) == 0x80) shared--;
    return shared;
}

static void add_part(pc_text *cell, const char *text, size_t from) {
    if (from > 0) pc_text_add_character(cell, 0x2026);
    pc_text_add_line(cell, text + from, from > 0 ? VALUE_MAX - 1 : VALUE_MAX);
}

static void add_texts(pc_text *cell_a, pc_text *cell_b, const char *a, const char *b) {
    size_t from = shared_start(a, b);
    add_part(cell_a, a, from);
    add_part(cell_b, b, from);
}

/* Any value on its own. */
static void get_text(const pc_column *column, const pc_run_row *row, char text[PC_COLUMN_TEXT_SIZE]) {
    if (!pc_column_defined(column, row))
        snprintf(text, PC_COLUMN_TEXT_SIZE, "not defined");
    else if (pc_column_is_number(column) && !pc_field_is_real(&column->field))
        snprintf(text, PC_COLUMN_TEXT_SIZE, "%" PRId64, pc_column_integer(column, row));
    else if (pc_field_is_real(&column->field))
        snprintf(text, PC_COLUMN_TEXT_SIZE, "%.6g", pc_column_real(column, row));
    else
        pc_column_text(column, row, text, PC_COLUMN_TEXT_SIZE);
}

static void add_values(pc_text *cell_a, pc_text *cell_b, const pc_column *column, const pc_run_row *a,
                       const pc_run_row *b) {
    char text_a[PC_COLUMN_TEXT_SIZE], text_b[PC_COLUMN_TEXT_SIZE];
    if (pc_field_is_real(&column->field) && pc_column_defined(column, a) && pc_column_defined(column, b))
        return add_reals(cell_a, cell_b, pc_column_real(column, a), pc_column_real(column, b));
    get_text(column, a, text_a);
    get_text(column, b, text_b);
    add_texts(cell_a, cell_b, text_a, text_b);
}

/* --- what differs, run by run --- */

bool pc_comparison_has_one_scenario(const pc_comparison *c) {
    const char *first = c->a_count > 0 ? c->a[0].scenario : c->b_count > 0 ? c->b[0].scenario : "";
    for (int64_t i = 0; i < c->a_count; i++)
        if (strcmp(c->a[i].scenario, first) != 0) return false;
    for (int64_t i = 0; i < c->b_count; i++)
        if (strcmp(c->b[i].scenario, first) != 0) return false;
    return true;
}

static void set_difference(grid *g, const pc_comparison *c, pc_difference at, bool is_new_run, bool with_scenario) {
    int count;
    const pc_column *column = &pc_columns(&count)[at.column];
    const pc_run_row *a = &c->a[at.row], *b = &c->b[c->b_of_a[at.row]];
    grid_clear(g);
    if (is_new_run) pc_compare_add_label(&g->cell[0], a, with_scenario);
    pc_text_printf(&g->cell[1], "%s", column->field.name);
    add_values(&g->cell[2], &g->cell[3], column, a, b);
    add_relative(&g->cell[4], pc_relative_difference(column, a, b));
}

/* Goes over the lines twice: only then is it known how wide they are. */
static bool write_differences(const pc_comparison *c, pc_text *text, FILE *stream, bool with_scenario) {
    static const char *const heads[] = {"run", "column", "a", "b", "difference"};
    static const bool is_right[] = {false, false, true, true, true};
    const bool shows_all = c->options->all || c->difference_count <= LINES_MAX;
    const int64_t most = shows_all ? c->difference_count : LINES_MAX; /* behind the last, nothing is looked for */
    bool going = true;
    grid g;
    grid_start(&g, 5, heads, is_right);
    for (int print = 0; print < 2; print++) {
        pc_difference at = PC_DIFFERENCE_START;
        int64_t last = -1;
        if (print) grid_print_head(&g, text);
        for (int64_t line = 0; line < most && going && pc_difference_next(c, &at); line++, last = at.row) {
            set_difference(&g, c, at, at.row != last, with_scenario);
            if (print)
                grid_print(&g, text), going = pc_stream_text_flush(text, stream);
            else
                grid_measure(&g);
        }
    }
    grid_free(&g);
    if (c->difference_count > most)
        pc_text_printf(text, "%" PRId64 " more differences are left out; --all shows them\n",
                       c->difference_count - most);
    return going;
}

/* --- and column by column --- */

static void set_column(grid *g, const pc_comparison *c, const pc_column *column, const pc_column_difference *what,
                       bool with_scenario) {
    const pc_run_row *a = &c->a[what->largest_row];
    grid_clear(g);
    pc_text_printf(&g->cell[0], "%s", column->field.name);
    pc_text_printf(&g->cell[1], "%" PRId64, what->runs);
    add_relative(&g->cell[2], what->largest);
    if (!isnan(what->largest)) pc_compare_add_label(&g->cell[3], a, with_scenario);
}

static void add_columns(const pc_comparison *c, pc_text *text, bool with_scenario) {
    static const char *const heads[] = {"column", "runs", "largest", "in run"};
    static const bool is_right[] = {false, true, true, false};
    int count;
    const pc_column *columns = pc_columns(&count);
    grid g;
    grid_start(&g, 4, heads, is_right);
    for (int print = 0; print < 2; print++) {
        if (print) pc_text_add(text, "\n", 1), grid_print_head(&g, text);
        for (int i = 0; i < count; i++) {
            if (c->columns[i].runs == 0) continue;
            set_column(&g, c, &columns[i], &c->columns[i], with_scenario);
            if (print)
                grid_print(&g, text);
            else
                grid_measure(&g);
        }
    }
    grid_free(&g);
}

/* Columns that differ more than once make the second table worth its lines. */
static int64_t differing_columns(const pc_comparison *c, bool *any_twice) {
    int count;
    int64_t differing = 0;
    (void)pc_columns(&count);
    *any_twice = false;
    for (int i = 0; i < count; i++) {
        differing += c->columns[i].runs > 0;
        *any_twice = *any_twice || c->columns[i].runs > 1;
    }
    return differing;
}

/* --- runs that only one has --- */

static void add_lonely(const pc_comparison *c, pc_text *text, bool of_a, bool with_scenario) {
    const int64_t total = of_a ? c->summary.only_a : c->summary.only_b, count = of_a ? c->a_count : c->b_count;
    const int64_t most = c->options->all ? INT64_MAX : LONELY_MAX;
    int64_t shown = 0;
    if (total > 0) pc_text_printf(text, "\nonly in %s:\n", of_a ? "a" : "b");
    for (int64_t i = 0; i < count && shown < most; i++) {
        if (of_a ? c->b_of_a[i] >= 0 : c->b_is_used[i]) continue;
        pc_text_add(text, "  ", 2);
        pc_compare_add_label(text, of_a ? &c->a[i] : &c->b[i], with_scenario);
        pc_text_add(text, "\n", 1);
        shown++;
    }
    if (total > shown) pc_text_printf(text, "  and %" PRId64 " more; --all shows them\n", total - shown);
}

/* --- what stands above and below --- */

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

static void add_versions(const pc_compare_options *options, pc_text *text) {
    if (!options->version_a || !options->version_b || strcmp(options->version_a, options->version_b) == 0) return;
    pc_text_printf(text, "written by different versions of pipecast: a by ");
    pc_text_add_line(text, options->version_a, PATH_SHOWN_MAX);
    pc_text_printf(text, ", b by ");
    pc_text_add_line(text, options->version_b, PATH_SHOWN_MAX);
    pc_text_printf(text, "\n");
}

static void add_file(pc_text *text, const char *which, const char *name, int64_t count) {
    if (!name) return;
    pc_text_printf(text, "%s: ", which);
    pc_text_add_line(text, name, PATH_SHOWN_MAX);
    pc_text_printf(text, ", %" PRId64 " run%s\n", count, plural(count));
}

static void add_files(const pc_comparison *c, pc_text *text) {
    add_file(text, "a", c->options->name_a, c->a_count);
    add_file(text, "b", c->options->name_b, c->b_count);
}

static void add_tolerance(const pc_comparison *c, pc_text *text) {
    if (c->options->tolerance > 0)
        pc_text_printf(text, ", within %g of a%s", c->options->tolerance,
                       pc_comparison_has_choice(c) ? "" : "; trace_hash left out");
}

static void add_same(const pc_comparison *c, pc_text *text) {
    const int64_t runs = c->summary.both;
    pc_text_printf(text, "the same: %" PRId64 " run%s, ", runs, plural(runs));
    if (!pc_comparison_has_choice(c)) return pc_text_printf(text, "every column");
    pc_text_printf(text, "%d chosen column%s", c->options->columns->count, plural(c->options->columns->count));
}

static void add_sum(const pc_comparison *c, pc_text *text, int64_t columns) {
    const pc_compare_summary *sum = &c->summary;
    bool is_same = sum->different == 0 && sum->only_a == 0 && sum->only_b == 0;
    if (is_same) {
        add_same(c, text);
    } else if (sum->different == 0) {
        pc_text_printf(text, "\nthe same in the %" PRId64 " run%s that both have", sum->both, plural(sum->both));
    } else {
        pc_text_printf(text, "\ndifferent: %" PRId64 " of %" PRId64 " run%s that both have, in %" PRId64 " column%s",
                       sum->different, sum->both, plural(sum->both), columns, plural(columns));
    }
    if (sum->only_a) pc_text_printf(text, "; %" PRId64 " only in a", sum->only_a);
    if (sum->only_b) pc_text_printf(text, "; %" PRId64 " only in b", sum->only_b);
    add_tolerance(c, text);
    pc_text_add(text, "\n", 1);
}

bool pc_compare_table(const pc_comparison *c, pc_text *text, FILE *stream) {
    const bool with_scenario = !pc_comparison_has_one_scenario(c);
    bool any_twice;
    int64_t columns = differing_columns(c, &any_twice);
    add_versions(c->options, text);
    if (columns > 0 || c->summary.only_a > 0 || c->summary.only_b > 0) add_files(c, text);
    if (columns > 0) {
        pc_text_add(text, "\n", 1);
        if (!write_differences(c, text, stream, with_scenario)) return false;
    }
    if (any_twice) add_columns(c, text, with_scenario);
    add_lonely(c, text, true, with_scenario);
    add_lonely(c, text, false, with_scenario);
    add_sum(c, text, columns);
    return pc_stream_text_flush(text, stream);
}
