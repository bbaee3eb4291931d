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
    {"layout", NULL, "layout", "", STYLE_TEXT, SHOWN_VARYING, 5, NULL},
    {"zero", NULL, "ZeRO", "", STYLE_INTEGER, SHOWN_UNNAMED, 0, NULL},
    {"iteration_s", NULL, "iteration", "[s]", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, 0, NULL},
    {"iteration_mean_s", NULL, "mean of", "samples [s]", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, 0, NULL},
    {"iteration_p50_s", NULL, "median", "[s]", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, 0, NULL},
    {"iteration_p95_s", NULL, "95%", "[s]", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, 0, NULL},
    {"slowdown_mean", NULL, "mean over", "good day", STYLE_RATE, SHOWN_ALWAYS, 0, NULL},
    {"goodput_mean", NULL, "goodput", "mean", STYLE_RATE, SHOWN_ALWAYS, 0, NULL},
    {"goodput_p05", NULL, "goodput", "5%", STYLE_RATE, SHOWN_ALWAYS, 0, NULL},
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
    {"cost_per_million_tokens", NULL, "cost of 1M", "tokens", STYLE_FOUR_DIGITS, SHOWN_ALWAYS, 8, NULL},
    {"status", NULL, "status", "", STYLE_TEXT, SHOWN_FAILED, 0, NULL},
};

enum { VIEW_COUNT = sizeof views / sizeof views[0] };

/* What a look at all rows says of a view's values. */
typedef struct view_facts {
    bool any;           /* one of them is defined */
    bool varies;        /* not all are equal to the first row's */
    double least, most; /* of the sizes of numbers that are not zero, and of all; STYLE_FOUR_DIGITS alone */
} view_facts;

/* Rows are read three times, whatever their number: to know what there is, how wide it is, and to write it. */
typedef struct table_layout {
    pc_table_rows *rows;
    pc_run_row first;
    const pc_column *column[VIEW_COUNT], *minus[VIEW_COUNT]; /* NULL where there is nothing to compare with */
    view_facts facts[VIEW_COUNT];
    bool pp_is_gpus, hfu_is_mfu; /* in every row */
    bool named;                  /* every row has a name */
    bool all_ok;                 /* every row's status is */
    bool shown[VIEW_COUNT];
    bool sacrificed[VIEW_COUNT];
    int decimals[VIEW_COUNT]; /* -1: the numbers are too far apart for one count of them */
    size_t width[VIEW_COUNT];
} table_layout;

static bool is_text(int index) {
    return views[index].style == STYLE_TEXT;
}

/* --- what a cell says --- */

static bool is_defined(const table_layout *table, int index, const pc_run_row *row) {
    const pc_column *minus = table->minus[index];
    return pc_column_defined(table->column[index], row) && (!minus || pc_column_defined(minus, row));
}

static double number_of(const table_layout *table, int index, const pc_run_row *row) {
    double value = pc_column_real(table->column[index], row);
    if (!table->minus[index]) return value;
    double theirs = pc_column_real(table->minus[index], row);
    if (views[index].style == STYLE_SHARE) return 100 * value / theirs;
    return views[index].style == STYLE_PERCENT ? 100 * (value / theirs - 1) : value - theirs;
}

/* A difference that rounds to nothing has no sign of its own. */
static double without_negative_zero(double value, int decimals) {
    return fabs(value) < 0.5 * pow(10, -decimals) ? 0.0 : value;
}

static void add_signed(pc_text *cell, double value, int decimals, const char *unit) {
    pc_text_printf(cell, "%+.*f%s", decimals, without_negative_zero(value, decimals), unit);
}

static void add_text(pc_text *cell, const pc_column *column, const pc_run_row *row) {
    char text[PC_COLUMN_TEXT_SIZE];
    pc_column_text(column, row, text, sizeof text);
    pc_text_add_line(cell, text, CELL_MAX);
}

static void add_number(pc_text *cell, double value, int decimals) {
    if (decimals < 0)
        pc_text_printf(cell, "%.4g", value);
    else
        pc_text_printf(cell, "%.*f", decimals, value);
}

/* The cell is emptied first. */
static void set_cell(pc_text *cell, const table_layout *table, int index, int decimals, const pc_run_row *row) {
    cell->size = 0;
    pc_text_add(cell, "", 0);
    if (!is_defined(table, index, row)) return;
    switch (views[index].style) {
    case STYLE_TEXT:
        return add_text(cell, table->column[index], row);
    case STYLE_INTEGER:
        return pc_text_printf(cell, "%" PRId64, pc_column_integer(table->column[index], row));
    case STYLE_PLAIN:
        return pc_text_printf(cell, "%.6g", number_of(table, index, row));
    case STYLE_SHARE:
        return pc_text_printf(cell, "%.1f%%", number_of(table, index, row));
    case STYLE_DIFFERENCE:
        return add_signed(cell, number_of(table, index, row), 4, "");
    case STYLE_PERCENT:
        return add_signed(cell, number_of(table, index, row), 1, "%");
    case STYLE_RATE:
    case STYLE_GIB:
    case STYLE_FOUR_DIGITS:
        return add_number(cell, number_of(table, index, row), decimals);
    }
}

/* Enough that the smallest number has four digits; -1 where that would write the largest with ten. */
static int decimals_for_four_digits(const view_facts *facts) {
    if (facts->most == 0) return 0;
    if (facts->most / facts->least > 1e5 || facts->most >= 1e9 || facts->least < 1e-6) return -1;
    int decimals = 3 - (int)floor(log10(facts->least));
    return decimals < 0 ? 0 : decimals;
}

static int decimals_of(const table_layout *table, int index) {
    switch (views[index].style) {
    case STYLE_RATE:
        return 4;
    case STYLE_GIB:
        return 2;
    case STYLE_FOUR_DIGITS:
        return decimals_for_four_digits(&table->facts[index]);
    default:
        return 0;
    }
}

/* --- what there is: the first look --- */

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

static void look_at_value(table_layout *table, int index, const pc_run_row *row) {
    view_facts *facts = &table->facts[index];
    facts->varies = facts->varies || !same_value(table->column[index], &table->first, row);
    if (!is_defined(table, index, row)) return;
    facts->any = true;
    if (views[index].style != STYLE_FOUR_DIGITS) return;
    double value = fabs(number_of(table, index, row));
    if (value > 0 && value < facts->least) facts->least = value;
    if (value > facts->most) facts->most = value;
}

static bool equals(const pc_run_row *row, const char *one, const char *other) {
    const pc_column *a = pc_column_find(one), *b = pc_column_find(other);
    if (pc_column_defined(a, row) != pc_column_defined(b, row)) return false;
    return memcmp((const char *)row + a->offset, (const char *)row + b->offset, 8) == 0;
}

static void look_at_row(table_layout *table, const pc_run_row *row) {
    table->named = table->named && row->name[0] != '\0';
    table->all_ok = table->all_ok && row->status == PC_RUN_OK;
    table->pp_is_gpus = table->pp_is_gpus && equals(row, "pp", "gpus");
    table->hfu_is_mfu = table->hfu_is_mfu && equals(row, "hfu", "mfu");
    for (int i = 0; i < VIEW_COUNT; i++) look_at_value(table, i, row);
}

static bool look(table_layout *table) {
    table->named = table->all_ok = table->pp_is_gpus = table->hfu_is_mfu = true;
    for (int i = 0; i < VIEW_COUNT; i++) {
        table->column[i] = pc_column_find(views[i].column);
        table->minus[i] = views[i].minus ? pc_column_find(views[i].minus) : NULL;
        table->facts[i] = (view_facts){.least = INFINITY};
    }
    for (int64_t i = 0; i < table->rows->count; i++) {
        const pc_run_row *row = pc_table_row(table->rows, i);
        if (!row) return false;
        if (i == 0) table->first = *row;
        look_at_row(table, row);
    }
    return true;
}

/* --- which columns are shown --- */

/* Of a pipeline of all GPUs pp says nothing more; without recomputation HFU is MFU. */
static bool repeats_another(const table_layout *table, int index) {
    return (table->pp_is_gpus && strcmp(views[index].column, "pp") == 0) ||
           (table->hfu_is_mfu && strcmp(views[index].column, "hfu") == 0);
}

/* Whether any row has a value of the column, which has a view of its own. */
static bool has_values(const table_layout *table, const char *column) {
    for (int i = 0; i < VIEW_COUNT; i++)
        if (!views[i].minus && strcmp(views[i].column, column) == 0) return table->facts[i].any;
    return false;
}

/* Whether any row has a published value of the column. */
static bool is_published(const table_layout *table, const char *column) {
    char name[64];
    snprintf(name, sizeof name, "published_%s", column);
    return has_values(table, name);
}

static bool must_show(const table_layout *table, int index) {
    if (!table->facts[index].any || repeats_another(table, index)) return false;
    switch (views[index].shown) {
    case SHOWN_ALWAYS:
        return true;
    case SHOWN_VARYING:
        return table->facts[index].varies;
    case SHOWN_UNNAMED:
        return !table->named && table->facts[index].varies;
    case SHOWN_COMPARED:
        return is_published(table, views[index].column);
    case SHOWN_FAILED:
        return !table->all_ok;
    }
    return false;
}

static size_t wider(size_t a, size_t b) {
    return a > b ? a : b;
}

static void measure_row(table_layout *table, const pc_run_row *row, pc_text *cell) {
    for (int i = 0; i < VIEW_COUNT && !cell->failed; i++) {
        if (!table->shown[i]) continue;
        set_cell(cell, table, i, table->decimals[i], row);
        if (!cell->failed) table->width[i] = wider(table->width[i], pc_utf8_length(cell->data));
    }
}

/* The second look: how wide the columns are. */
static bool measure(table_layout *table, pc_text *cell) {
    for (int i = 0; i < VIEW_COUNT; i++) {
        table->decimals[i] = decimals_of(table, i);
        table->width[i] = wider(strlen(views[i].top), strlen(views[i].bottom));
    }
    for (int64_t i = 0; i < table->rows->count && !cell->failed; i++) {
        const pc_run_row *row = pc_table_row(table->rows, i);
        if (!row) return false;
        measure_row(table, row, cell);
    }
    return !cell->failed;
}

static size_t total_width(const table_layout *table) {
    size_t total = 0;
    for (int i = 0; i < VIEW_COUNT; i++)
        if (table->shown[i]) total += table->width[i] + GAP;
    return total > 0 ? total - GAP : 0;
}

/* What stands beside published values stays for comparison. */
static bool may_go(const table_layout *table, int index) {
    if (!views[index].instead) return true;
    bool compared = strcmp(views[index].column, "activation_gib_max") == 0 && is_published(table, "activation_gib");
    return has_values(table, views[index].instead) && !compared;
}

static void sacrifice_order(table_layout *table, int order) {
    for (int i = 0; i < VIEW_COUNT; i++) {
        if (!table->shown[i] || views[i].sacrifice != order || !may_go(table, i)) continue;
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

static bool lay_out(table_layout *table, pc_text *cell) {
    if (!look(table)) return false;
    for (int i = 0; i < VIEW_COUNT; i++) table->shown[i] = must_show(table, i);
    if (!measure(table, cell)) return false;
    sacrifice_columns(table);
    return true;
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
        add_aligned(text, top ? views[i].top : views[i].bottom, table->width[i], !is_text(i), &waiting);
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
        set_cell(cell, table, i, table->decimals[i], row);
        if (!cell->failed) add_aligned(text, cell->data, table->width[i], !is_text(i), &waiting);
    }
    end_line(text);
}

/* A column's name as words: "microbatch size". */
static void add_words(pc_text *text, const char *name) {
    for (; *name; name++) pc_text_add(text, *name == '_' ? " " : name, 1);
}

static bool is_constant(const table_layout *table, int index) {
    bool may = views[index].shown == SHOWN_VARYING || views[index].shown == SHOWN_UNNAMED;
    return may && !table->shown[index] && table->facts[index].any && !table->facts[index].varies &&
           !repeats_another(table, index);
}

/* One rank, one microbatch; layers alike on all parts. */
static bool goes_without_saying(const table_view *view, const char *value) {
    return (view->style == STYLE_INTEGER && strcmp(value, "1") == 0) ||
           (strcmp(view->column, "layout") == 0 && strcmp(value, "even") == 0);
}

/* What all runs have in common stands above the table: "model gpt-1.5b, machine a100, tp 8"; on several lines, where
 * one would be too wide. */
static void add_constants(const table_layout *table, pc_text *text, pc_text *cell) {
    size_t line = 0; /* characters on this one */
    for (int i = 0; i < VIEW_COUNT && !cell->failed; i++) {
        if (!is_constant(table, i)) continue;
        set_cell(cell, table, i, 0, &table->first);
        if (cell->failed || goes_without_saying(&views[i], cell->data)) continue;
        size_t width = strlen(views[i].column) + 1 + pc_utf8_length(cell->data);
        bool breaks = line > 0 && line + 2 + width + 1 > WIDTH_MAX; /* a comma may follow */
        pc_text_printf(text, "%s", breaks ? ",\n" : line > 0 ? ", " : "");
        add_words(text, views[i].column);
        pc_text_printf(text, " %s", cell->data);
        line = width + (breaks || line == 0 ? 0 : line + 2);
    }
    if (line > 0) pc_text_add(text, "\n\n", 2);
}

static bool write_rows(const table_layout *table, pc_text *text, pc_text *cell, FILE *stream) {
    for (int64_t i = 0; i < table->rows->count; i++) {
        const pc_run_row *row = pc_table_row(table->rows, i);
        if (!row) return false;
        add_row(table, text, cell, row);
        if (cell->failed || !pc_table_flush(text, stream)) return false;
    }
    return true;
}

/* Why rows are not ok, one a line. */
static bool write_messages(const table_layout *table, pc_text *text, FILE *stream) {
    bool any = false;
    for (int64_t i = 0; !table->all_ok && i < table->rows->count; i++) {
        const pc_run_row *row = pc_table_row(table->rows, i);
        if (!row) return false;
        if (row->status == PC_RUN_OK || row->message[0] == '\0') continue;
        pc_text_printf(text, "%srun %" PRId64 ": ", any ? "" : "\n", row->run);
        pc_text_add_line(text, row->message, sizeof row->message);
        end_line(text);
        any = true;
        if (!pc_table_flush(text, stream)) return false;
    }
    return true;
}

/* What was left out for width. */
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

bool pc_table_text_write(pc_table_rows *rows, pc_text *text, FILE *stream) {
    table_layout table = {.rows = rows};
    pc_text cell = {0};
    if (rows->count == 0) pc_text_printf(text, "no runs\n");
    bool going = rows->count == 0 || lay_out(&table, &cell);
    if (going && rows->count > 0) {
        add_constants(&table, text, &cell);
        add_header_line(&table, text, true);
        add_header_line(&table, text, false);
        add_rule(&table, text);
        going = write_rows(&table, text, &cell, stream) && write_messages(&table, text, stream);
        add_sacrificed(&table, text);
    }
    text->failed = text->failed || cell.failed;
    pc_text_free(&cell);
    return going && pc_table_flush(text, stream);
}
