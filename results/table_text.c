#include "results/columns.h"
#include "results/table_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH_MAX = 120, /* of a table before columns that matter less are left out */
    GAP = 2,         /* blanks between columns */
    CELL_MAX = 60    /* characters of a text in a cell */
};

/* How a column's values are written. */
typedef enum table_style {
    STYLE_TEXT,
    STYLE_INTEGER,
    STYLE_FOUR_DIGITS, /* at least four significant digits, the same decimals in all rows */
    STYLE_RATE,        /* a fraction of one, four decimals */
    STYLE_GIB,         /* two decimals */
    STYLE_PLAIN,       /* as short as six digits allow */
    STYLE_SHARE,       /* of another column, in percent with one decimal */
    STYLE_DIFFERENCE,  /* ours less theirs, with its sign, four decimals */
    STYLE_PERCENT      /* ours over theirs less one, with its sign */
} table_style;

/* When a column with values is shown. */
typedef enum table_shown {
    SHOWN_ALWAYS,
    SHOWN_VARYING,  /* where not all rows have the same value; otherwise the line above the table says it once */
    SHOWN_UNNAMED,  /* as VARYING, but where the rows have names, their names say it */
    SHOWN_COMPARED, /* where there is a published value of it */
    SHOWN_FAILED    /* where not all rows are ok */
} table_shown;

typedef struct table_view {
    const char *column;       /* of columns.h */
    const char *minus;        /* the column to compare with, for the last three styles */
    const char *top, *bottom; /* the header's two lines */
    table_style style;
    table_shown shown;
    int sacrifice;       /* where the table is too wide, columns go in this order, 1 first; 0 never goes */
    const char *instead; /* where not NULL: it goes only where this column, which says as much, has values */
} table_view;

/* The last columns to be given up: what the iteration waits for; and, only where there is something to compare with,
 * what is nearest to it. */
enum { WAITS = 10, BESIDE_COMPARED, COMPARED };

static const table_view views[] = {
    {"run", NULL, "run", "", STYLE_INTEGER, SHOWN_ALWAYS, 0, NULL},
    {"scenario", NULL, "scenario", "", STYLE_TEXT, SHOWN_VARYING, 5, NULL},
    {"name", NULL, "name", "", STYLE_TEXT, SHOWN_ALWAYS, 0, NULL},
    {"model", NULL, "model", "", STYLE_TEXT, SHOWN_UNNAMED, 0, NULL},
    {"machine", NULL, "machine", "", STYLE_TEXT, SHOWN_VARYING, 0, NULL},
    {"schedule", NULL, "schedule", "", STYLE_TEXT, SHOWN_UNNAMED, 0, NULL},
    {"gpus", NULL, "GPUs", "", STYLE_INTEGER, SHOWN_ALWAYS, 0, NULL},
    {"tp", NULL, "tp", "", STYLE_INTEGER, SHOWN_VARYING, 0, NULL},
    {"pp", NULL, "pp", "", STYLE_INTEGER, SHOWN_VARYING, 0, NULL},
    {"dp", NULL, "dp", "", STYLE_INTEGER, SHOWN_VARYING, 0, NULL},
    {"virtual_pp", NULL, "chunks", "", STYLE_INTEGER, SHOWN_UNNAMED, 0, NULL},
    {"microbatch_size", NULL, "microbatch", "size", STYLE_INTEGER, SHOWN_UNNAMED, 0, NULL},
    {"microbatches", NULL, "micro-", "batches", STYLE_INTEGER, SHOWN_ALWAYS, 0, NULL},
    {"global_batch", NULL, "global", "batch", STYLE_INTEGER, SHOWN_UNNAMED, 7, NULL},
    {"seq_len", NULL, "sequence", "[tokens]", STYLE_INTEGER, SHOWN_UNNAMED, 0, NULL},
    {"recompute", NULL, "recompute", "", STYLE_TEXT, SHOWN_UNNAMED, 0, NULL},
    {"zero", NULL, "ZeRO", "", STYLE_INTEGER, SHOWN_UNNAMED, 0, NULL},
    {"iteration_s", NULL, "iteration", "[s]", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, 0, NULL},
    {"published_iteration_s", NULL, "published", "[s]", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, COMPARED, NULL},
    {"iteration_s", "published_iteration_s", "differ-", "ence", STYLE_PERCENT, SHOWN_ALWAYS, COMPARED, NULL},
    {"samples_per_s_per_gpu", NULL, "samples/s", "per GPU", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, 3, "mfu"},
    {"published_samples_per_s_per_gpu", NULL, "published", "", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, 3, NULL},
    {"samples_per_s_per_gpu", "published_samples_per_s_per_gpu", "differ-", "ence", STYLE_PERCENT, SHOWN_ALWAYS, 3,
     NULL},
    {"tflops_per_gpu", NULL, "TFLOP/s", "per GPU", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, 2, NULL},
    {"published_tflops_per_gpu", NULL, "published", "", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, COMPARED, NULL},
    {"tflops_per_gpu", "published_tflops_per_gpu", "differ-", "ence", STYLE_PERCENT, SHOWN_ALWAYS, COMPARED, NULL},
    {"hardware_tflops_per_gpu", NULL, "hardware", "TFLOP/s", STYLE_FOUR_DIGITS, SHOWN_COMPARED, 9, NULL},
    {"published_hardware_tflops_per_gpu", NULL, "published", "hardware", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, COMPARED,
     NULL},
    {"hardware_tflops_per_gpu", "published_hardware_tflops_per_gpu", "differ-", "ence", STYLE_PERCENT, SHOWN_ALWAYS,
     COMPARED, NULL},
    {"peak_tflops", NULL, "peak", "TFLOP/s", STYLE_PLAIN, SHOWN_VARYING, 0, NULL},
    {"mfu", NULL, "MFU", "", STYLE_RATE, SHOWN_ALWAYS, 0, NULL},
    {"published_mfu", NULL, "published", "MFU", STYLE_RATE, SHOWN_ALWAYS, 0, NULL},
    {"mfu", "published_mfu", "differ-", "ence", STYLE_DIFFERENCE, SHOWN_ALWAYS, 0, NULL},
    {"hfu", NULL, "HFU", "", STYLE_RATE, SHOWN_ALWAYS, 1, NULL},
    {"exposed_tp_s", "iteration_s", "TP", "wait", STYLE_SHARE, SHOWN_ALWAYS, WAITS, NULL},
    {"exposed_pp_s", "iteration_s", "PP", "wait", STYLE_SHARE, SHOWN_ALWAYS, WAITS, NULL},
    {"exposed_dp_s", "iteration_s", "DP", "wait", STYLE_SHARE, SHOWN_ALWAYS, WAITS, NULL},
    {"exposed_optimizer_s", "iteration_s", "opti-", "mizer", STYLE_SHARE, SHOWN_ALWAYS, WAITS, NULL},
    {"bubble_rate_span", NULL, "bubble", "(span)", STYLE_RATE, SHOWN_ALWAYS, BESIDE_COMPARED, "mfu"},
    {"published_bubble_rate_span", NULL, "published", "(span)", STYLE_RATE, SHOWN_ALWAYS, 0, NULL},
    {"bubble_rate_span", "published_bubble_rate_span", "differ-", "ence", STYLE_DIFFERENCE, SHOWN_ALWAYS, 0, NULL},
    {"bubble_rate_makespan", NULL, "bubble", "(makespan)", STYLE_RATE, SHOWN_ALWAYS, 4, NULL},
    {"activation_gib_max", NULL, "activ.", "max [GiB]", STYLE_GIB, SHOWN_ALWAYS, 6, "memory_gib_max"},
    {"published_activation_gib", NULL, "published", "[GiB]", STYLE_GIB, SHOWN_ALWAYS, 0, NULL},
    {"memory_gib_max", NULL, "memory", "max [GiB]", STYLE_GIB, SHOWN_ALWAYS, 0, NULL},
    {"status", NULL, "status", "", STYLE_TEXT, SHOWN_FAILED, 0, NULL},
};

enum { VIEW_COUNT = sizeof views / sizeof views[0] };

typedef struct table_layout {
    const pc_run_row *rows;
    int64_t count;
    bool named;  /* every row has a name */
    bool all_ok; /* every row's status is */
    bool shown[VIEW_COUNT];
    bool sacrificed[VIEW_COUNT];
    int decimals[VIEW_COUNT]; /* -1: the numbers are too far apart for one count of them */
    size_t width[VIEW_COUNT];
} table_layout;

static const pc_column *column_of(const table_view *view) {
    return pc_column_find(view->column);
}

/* --- what a cell says --- */

static bool is_defined(const table_view *view, const pc_run_row *row) {
    return pc_column_defined(column_of(view), row) &&
           (!view->minus || pc_column_defined(pc_column_find(view->minus), row));
}

static double number_of(const table_view *view, const pc_run_row *row) {
    double value = pc_column_real(column_of(view), row);
    if (!view->minus) return value;
    double theirs = pc_column_real(pc_column_find(view->minus), row);
    if (view->style == STYLE_SHARE) return 100 * value / theirs;
    return view->style == STYLE_PERCENT ? 100 * (value / theirs - 1) : value - theirs;
}

/* A difference that rounds to nothing has no sign of its own. */
static double without_negative_zero(double value, int decimals) {
    return fabs(value) < 0.5 * pow(10, -decimals) ? 0.0 : value;
}

static void add_signed(pc_text *cell, double value, int decimals, const char *unit) {
    pc_text_printf(cell, "%+.*f%s", decimals, without_negative_zero(value, decimals), unit);
}

static void add_text(pc_text *cell, const table_view *view, const pc_run_row *row) {
    char text[PC_COLUMN_TEXT_SIZE];
    pc_column_text(column_of(view), row, text, sizeof text);
    pc_text_add_line(cell, text, CELL_MAX);
}

static void add_number(pc_text *cell, double value, int decimals) {
    if (decimals < 0)
        pc_text_printf(cell, "%.4g", value);
    else
        pc_text_printf(cell, "%.*f", decimals, value);
}

/* The cell is emptied first. */
static void set_cell(pc_text *cell, const table_view *view, int decimals, const pc_run_row *row) {
    cell->size = 0;
    pc_text_add(cell, "", 0);
    if (!is_defined(view, row)) return;
    switch (view->style) {
    case STYLE_TEXT:
        return add_text(cell, view, row);
    case STYLE_INTEGER:
        return pc_text_printf(cell, "%" PRId64, pc_column_integer(column_of(view), row));
    case STYLE_PLAIN:
        return pc_text_printf(cell, "%.6g", number_of(view, row));
    case STYLE_SHARE:
        return pc_text_printf(cell, "%.1f%%", number_of(view, row));
    case STYLE_DIFFERENCE:
        return add_signed(cell, number_of(view, row), 4, "");
    case STYLE_PERCENT:
        return add_signed(cell, number_of(view, row), 1, "%");
    case STYLE_RATE:
    case STYLE_GIB:
    case STYLE_FOUR_DIGITS:
        return add_number(cell, number_of(view, row), decimals);
    }
}

/* Enough that the smallest number has four digits; -1 where that would write the largest with ten. */
static int decimals_for_four_digits(const table_layout *table, const table_view *view) {
    double least = INFINITY, most = 0;
    for (int64_t i = 0; i < table->count; i++) {
        if (!is_defined(view, &table->rows[i])) continue;
        double value = fabs(number_of(view, &table->rows[i]));
        if (value > 0 && value < least) least = value;
        if (value > most) most = value;
    }
    if (most == 0) return 0;
    if (most / least > 1e5 || most >= 1e9 || least < 1e-6) return -1;
    int decimals = 3 - (int)floor(log10(least));
    return decimals < 0 ? 0 : decimals;
}

static int decimals_of(const table_layout *table, const table_view *view) {
    switch (view->style) {
    case STYLE_RATE:
        return 4;
    case STYLE_GIB:
        return 2;
    case STYLE_FOUR_DIGITS:
        return decimals_for_four_digits(table, view);
    default:
        return 0;
    }
}

/* --- which columns are shown --- */

static bool any_defined(const table_layout *table, const table_view *view) {
    for (int64_t i = 0; i < table->count; i++)
        if (is_defined(view, &table->rows[i])) return true;
    return false;
}

static bool same_value(const pc_column *column, const pc_run_row *a, const pc_run_row *b) {
    if (pc_column_defined(column, a) != pc_column_defined(column, b)) return false;
    if (!pc_column_defined(column, a)) return true;
    if (column->type == PC_COLUMN_REAL) return pc_column_real(column, a) == pc_column_real(column, b);
    if (column->type == PC_COLUMN_INTEGER) return pc_column_integer(column, a) == pc_column_integer(column, b);
    char text_a[PC_COLUMN_TEXT_SIZE], text_b[PC_COLUMN_TEXT_SIZE];
    pc_column_text(column, a, text_a, sizeof text_a);
    pc_column_text(column, b, text_b, sizeof text_b);
    return strcmp(text_a, text_b) == 0;
}

static bool varies(const table_layout *table, const table_view *view) {
    for (int64_t i = 1; i < table->count; i++)
        if (!same_value(column_of(view), &table->rows[0], &table->rows[i])) return true;
    return false;
}

static bool equals_everywhere(const table_layout *table, const char *one, const char *other) {
    const pc_column *a = pc_column_find(one), *b = pc_column_find(other);
    for (int64_t i = 0; i < table->count; i++) {
        const pc_run_row *row = &table->rows[i];
        if (pc_column_defined(a, row) != pc_column_defined(b, row)) return false;
        if (memcmp((const char *)row + a->offset, (const char *)row + b->offset, 8) != 0) return false;
    }
    return true;
}

/* A pipeline of all GPUs says pp twice; without recomputation MFU and HFU are one. */
static bool repeats_another(const table_layout *table, const table_view *view) {
    return (strcmp(view->column, "pp") == 0 && equals_everywhere(table, "pp", "gpus")) ||
           (strcmp(view->column, "hfu") == 0 && equals_everywhere(table, "hfu", "mfu"));
}

/* Whether any row has a published value of the column. */
static bool is_published(const table_layout *table, const char *column) {
    char name[64];
    snprintf(name, sizeof name, "published_%s", column);
    const table_view published = {.column = name};
    return any_defined(table, &published);
}

static bool must_show(const table_layout *table, const table_view *view) {
    if (!any_defined(table, view) || repeats_another(table, view)) return false;
    switch (view->shown) {
    case SHOWN_ALWAYS:
        return true;
    case SHOWN_VARYING:
        return varies(table, view);
    case SHOWN_UNNAMED:
        return !table->named && varies(table, view);
    case SHOWN_COMPARED:
        return is_published(table, view->column);
    case SHOWN_FAILED:
        return !table->all_ok;
    }
    return false;
}

static size_t wider(size_t a, size_t b) {
    return a > b ? a : b;
}

static void measure(table_layout *table, int index, pc_text *cell) {
    const table_view *view = &views[index];
    table->decimals[index] = decimals_of(table, view);
    table->width[index] = wider(strlen(view->top), strlen(view->bottom));
    for (int64_t i = 0; i < table->count && !cell->failed; i++) {
        set_cell(cell, view, table->decimals[index], &table->rows[i]);
        if (!cell->failed) table->width[index] = wider(table->width[index], pc_utf8_length(cell->data));
    }
}

static size_t total_width(const table_layout *table) {
    size_t total = 0;
    for (int i = 0; i < VIEW_COUNT; i++)
        if (table->shown[i]) total += table->width[i] + GAP;
    return total > 0 ? total - GAP : 0;
}

/* What stands beside published values stays for comparison. */
static bool may_go(const table_layout *table, const table_view *view) {
    if (!view->instead) return true;
    const table_view instead = {.column = view->instead}, published = {.column = "published_activation_gib"};
    bool compared = strcmp(view->column, "activation_gib_max") == 0 && any_defined(table, &published);
    return any_defined(table, &instead) && !compared;
}

static void sacrifice_order(table_layout *table, int order) {
    for (int i = 0; i < VIEW_COUNT; i++) {
        if (!table->shown[i] || views[i].sacrifice != order || !may_go(table, &views[i])) continue;
        table->shown[i] = false;
        table->sacrificed[i] = true;
    }
}

static bool compares(const table_layout *table) {
    for (int i = 0; i < VIEW_COUNT; i++)
        if (table->shown[i] && strncmp(views[i].column, "published_", 10) == 0) return true;
    return false;
}

/* Where there is something to compare with, that matters more than where the time goes. */
static void sacrifice_columns(table_layout *table) {
    if (compares(table) && total_width(table) > WIDTH_MAX) sacrifice_order(table, WAITS);
    int last = compares(table) ? COMPARED : WAITS;
    for (int order = 1; order <= last && total_width(table) > WIDTH_MAX; order++) sacrifice_order(table, order);
}

static void lay_out(table_layout *table, pc_text *cell) {
    const table_view name = {.column = "name"}, status = {.column = "status"};
    const pc_column *status_column = column_of(&status);
    table->named = table->all_ok = true;
    for (int64_t i = 0; i < table->count; i++) {
        table->named = table->named && is_defined(&name, &table->rows[i]);
        table->all_ok = table->all_ok && pc_column_integer(status_column, &table->rows[i]) == PC_RUN_OK;
    }
    for (int i = 0; i < VIEW_COUNT; i++) {
        table->shown[i] = must_show(table, &views[i]);
        if (table->shown[i]) measure(table, i, cell);
    }
    sacrifice_columns(table);
}

/* --- the lines --- */

static void add_blanks(pc_text *text, size_t count) {
    pc_text_printf(text, "%*s", (int)count, "");
}

/* Numbers stand to the right. Blanks wait until something follows them, so that no line ends in one. */
static void add_aligned(pc_text *text, const char *cell, size_t width, bool right, size_t *waiting) {
    size_t length = pc_utf8_length(cell), rest = width > length ? width - length : 0;
    if (length > 0) {
        add_blanks(text, *waiting + (right ? rest : 0));
        pc_text_add(text, cell, strlen(cell));
        *waiting = (right ? 0 : rest) + GAP;
    } else {
        *waiting += width + GAP;
    }
}

static void end_line(pc_text *text) {
    pc_text_add(text, "\n", 1);
}

static void add_header_line(const table_layout *table, pc_text *text, bool top) {
    size_t waiting = 0;
    for (int i = 0; i < VIEW_COUNT; i++) {
        if (!table->shown[i]) continue;
        add_aligned(text, top ? views[i].top : views[i].bottom, table->width[i], views[i].style != STYLE_TEXT,
                    &waiting);
    }
    end_line(text);
}

static void add_rule(const table_layout *table, pc_text *text) {
    bool first = true;
    for (int i = 0; i < VIEW_COUNT; i++) {
        if (!table->shown[i]) continue;
        add_blanks(text, first ? 0 : GAP);
        for (size_t k = 0; k < table->width[i]; k++) pc_text_add(text, "-", 1);
        first = false;
    }
    end_line(text);
}

static void add_row(const table_layout *table, pc_text *text, pc_text *cell, const pc_run_row *row) {
    size_t waiting = 0;
    for (int i = 0; i < VIEW_COUNT && !cell->failed; i++) {
        if (!table->shown[i]) continue;
        set_cell(cell, &views[i], table->decimals[i], row);
        if (!cell->failed) add_aligned(text, cell->data, table->width[i], views[i].style != STYLE_TEXT, &waiting);
    }
    end_line(text);
}

/* A column's name as words: "microbatch size". */
static void add_words(pc_text *text, const char *name) {
    for (; *name; name++) pc_text_add(text, *name == '_' ? " " : name, 1);
}

static bool is_constant(const table_layout *table, int index) {
    const table_view *view = &views[index];
    bool may = view->shown == SHOWN_VARYING || view->shown == SHOWN_UNNAMED;
    return may && !table->shown[index] && any_defined(table, view) && !varies(table, view) &&
           !repeats_another(table, view);
}

/* What all runs have in common stands above the table: "model gpt-1.5b, machine a100, tp 8"; on several lines, where
 * one would be too wide. */
static void add_constants(const table_layout *table, pc_text *text, pc_text *cell) {
    size_t line = 0; /* characters on this one */
    for (int i = 0; i < VIEW_COUNT && !cell->failed; i++) {
        const table_view *view = &views[i];
        if (!is_constant(table, i)) continue;
        set_cell(cell, view, 0, &table->rows[0]);
        if (cell->failed || (view->style == STYLE_INTEGER && strcmp(cell->data, "1") == 0)) continue;
        size_t width = strlen(view->column) + 1 + pc_utf8_length(cell->data);
        bool breaks = line > 0 && line + 2 + width + 1 > WIDTH_MAX; /* a comma may follow */
        pc_text_printf(text, "%s", breaks ? ",\n" : line > 0 ? ", " : "");
        add_words(text, view->column);
        pc_text_printf(text, " %s", cell->data);
        line = width + (breaks || line == 0 ? 0 : line + 2);
    }
    if (line > 0) pc_text_add(text, "\n\n", 2);
}

/* Why rows are not ok, one a line, and what was left out for width. */
static void add_messages(const table_layout *table, pc_text *text) {
    bool any = false;
    for (int64_t i = 0; i < table->count; i++) {
        const pc_run_row *row = &table->rows[i];
        if (row->status == PC_RUN_OK || row->message[0] == '\0') continue;
        pc_text_printf(text, "%srun %" PRId64 ": ", any ? "" : "\n", row->run);
        pc_text_add_line(text, row->message, sizeof row->message);
        end_line(text);
        any = true;
    }
}

static void add_sacrificed(const table_layout *table, pc_text *text) {
    bool any = false;
    for (int i = 0; i < VIEW_COUNT; i++) {
        if (!table->sacrificed[i] || (views[i].minus && views[i].style != STYLE_SHARE)) continue;
        pc_text_printf(text, "%s%s",
                       any ? ", " : "\nleft out for width (csv and json have every column): ", views[i].column);
        any = true;
    }
    if (any) end_line(text);
}

void pc_table_text_add(const pc_run_row *rows, int64_t count, pc_text *text) {
    if (count == 0) return pc_text_printf(text, "no runs\n");
    table_layout table = {.rows = rows, .count = count};
    pc_text cell = {0};
    lay_out(&table, &cell);
    add_constants(&table, text, &cell);
    add_header_line(&table, text, true);
    add_header_line(&table, text, false);
    add_rule(&table, text);
    for (int64_t i = 0; i < count; i++) add_row(&table, text, &cell, &rows[i]);
    add_messages(&table, text);
    add_sacrificed(&table, text);
    text->failed = text->failed || cell.failed;
    pc_text_free(&cell);
}
