#include "results/compare.h"

#include "engine/alloc.h"
#include "engine/index.h"
#include "results/compare_private.h"
#include "results/stream_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- which rows belong together --- */

static pc_hash key_of(const pc_run_row *row) {
    pc_hash key = {0};
    pc_hash_add_bytes(&key, row->scenario, strnlen(row->scenario, sizeof row->scenario));
    pc_hash_add_bytes(&key, row->name, strnlen(row->name, sizeof row->name));
    return key;
}

static pc_code refuse_twins(const char *file, const pc_run_row *one, const pc_run_row *other, pc_error *error) {
    return pc_error_set_file(error, PC_ERROR_INPUT, file,
                             "runs %" PRId64 " and %" PRId64
                             " are both '%.128s' of scenario '%.128s'; expected every name "
                             "once, to know which runs belong together",
                             one->run, other->run, one->name, one->scenario);
}

/* Rows by scenario and name. */
static pc_code index_rows(const pc_run_row *rows, int64_t count, const char *file, pc_index *index, pc_error *error) {
    pc_code code = pc_index_reserve(index, count, error);
    for (int64_t i = 0; i < count && !code; i++) {
        int64_t first = pc_index_add(index, key_of(&rows[i]), i);
        if (first < i) code = refuse_twins(file, &rows[first], &rows[i], error);
    }
    return code;
}

static void match_rows(pc_comparison *c, const pc_index *of_b) {
    for (int64_t i = 0; i < c->a_count; i++) {
        c->b_of_a[i] = pc_index_find(of_b, key_of(&c->a[i]));
        if (c->b_of_a[i] < 0) continue;
        c->b_is_used[c->b_of_a[i]] = true;
        c->summary.both++;
    }
    c->summary.only_a = c->a_count - c->summary.both;
    c->summary.only_b = c->b_count - c->summary.both;
}

/* One index after the other: that of A only shows that no run stands there twice. */
static pc_code match(pc_comparison *c, pc_error *error) {
    const pc_compare_options *options = c->options;
    pc_index of_a = {0}, of_b = {0};
    pc_code code = index_rows(c->a, c->a_count, options->name_a ? options->name_a : "a", &of_a, error);
    pc_index_free(&of_a);
    if (!code) code = index_rows(c->b, c->b_count, options->name_b ? options->name_b : "b", &of_b, error);
    if (!code) match_rows(c, &of_b);
    pc_index_free(&of_b);
    return code;
}

/* --- where they differ --- */

static double number_of(const pc_column *column, const pc_run_row *row) {
    return pc_field_is_real(&column->field) ? pc_column_real(column, row) : (double)pc_column_integer(column, row);
}

static bool numbers_differ(double a, double b, double tolerance) {
    return a != b && !(fabs(b - a) <= tolerance * fabs(a));
}

bool pc_comparison_has_choice(const pc_comparison *c) {
    return c->options->columns && !c->options->columns->is_all;
}

static bool is_chosen(const pc_column_choice *choice, int column) {
    for (int i = 0; i < choice->count; i++)
        if (choice->column[i] == column) return true;
    return false;
}

/* What is compared: what was asked for; else all but what says which run it is, and hashes of times only where times
 * must be equal. */
static bool is_compared(const pc_comparison *c, int number) {
    int count;
    const pc_column *column = &pc_columns(&count)[number];
    if (pc_comparison_has_choice(c)) return is_chosen(c->options->columns, number);
    return !column->tells_runs && !(c->options->tolerance > 0 && column->is_of_times);
}

static bool differs(const pc_column *column, const pc_run_row *a, const pc_run_row *b, double tolerance) {
    const pc_field *field = &column->field;
    const char *value_a = (const char *)a + field->place, *value_b = (const char *)b + field->place;
    if (memcmp(value_a, value_b, field->size) == 0) return false; /* nearly always */
    if (field->type == PC_FIELD_TEXT) return strncmp(value_a, value_b, field->size) != 0;
    bool is_defined = pc_column_defined(column, a);
    if (is_defined != pc_column_defined(column, b)) return true;
    if (!is_defined) return false;
    if (pc_column_is_number(column) && (tolerance > 0 || pc_field_is_real(field)))
        return numbers_differ(number_of(column, a), number_of(column, b), tolerance);
    return true;
}

static bool next_by_change(const pc_comparison *c, pc_difference *at) {
    const int64_t next = at->next;
    if (next == c->difference_count) return false;
    *at = c->by_change[next];
    at->next = next + 1;
    return true;
}

bool pc_difference_next(const pc_comparison *c, pc_difference *at) {
    int count;
    if (c->by_change) return next_by_change(c, at);
    const pc_column *columns = pc_columns(&count);
    double tolerance = c->options->tolerance;
    for (; at->row < c->a_count; at->row++, at->column = -1) {
        if (c->b_of_a[at->row] < 0) continue;
        const pc_run_row *a = &c->a[at->row], *b = &c->b[c->b_of_a[at->row]];
        while (++at->column < count)
            if (is_compared(c, at->column) && differs(&columns[at->column], a, b, tolerance)) return true;
    }
    return false;
}

double pc_relative_difference(const pc_column *column, const pc_run_row *a, const pc_run_row *b) {
    if (!pc_column_is_number(column) || !pc_column_defined(column, a) || !pc_column_defined(column, b)) return NAN;
    double from = number_of(column, a), relative = (number_of(column, b) - from) / fabs(from);
    return isfinite(relative) ? relative : NAN;
}

double pc_difference_size(const pc_comparison *c, const pc_difference *at) {
    int count;
    const pc_column *column = &pc_columns(&count)[at->column];
    if (!pc_column_is_number(column)) return -1;
    double relative = pc_relative_difference(column, &c->a[at->row], &c->b[c->b_of_a[at->row]]);
    return isnan(relative) ? INFINITY : fabs(relative);
}

static void count_differences(pc_comparison *c) {
    int count;
    const pc_column *columns = pc_columns(&count);
    int64_t last = -1;
    for (int i = 0; i < count; i++) c->columns[i].largest = NAN;
    for (pc_difference at = PC_DIFFERENCE_START; pc_difference_next(c, &at); last = at.row) {
        pc_column_difference *column = &c->columns[at.column];
        double relative = pc_relative_difference(&columns[at.column], &c->a[at.row], &c->b[c->b_of_a[at.row]]);
        if (column->runs == 0 || fabs(relative) > fabs(column->largest) ||
            (!isnan(relative) && isnan(column->largest))) {
            column->largest = relative;
            column->largest_row = at.row;
        }
        column->runs++;
        c->difference_count++;
        c->summary.different += at.row != last;
    }
}

/* --- by size --- */

typedef struct sized {
    double size;
    pc_difference at;
} sized;

static int compare_sizes(const void *left, const void *right) {
    const sized *a = left, *b = right;
    if (a->size != b->size) return a->size < b->size ? 1 : -1;
    if (a->at.row != b->at.row) return a->at.row < b->at.row ? -1 : 1;
    return a->at.column < b->at.column ? -1 : a->at.column > b->at.column;
}

/* The order is set last: until then differences come run by run. */
static pc_code sort_by_change(pc_comparison *c, pc_error *error) {
    sized *all = pc_alloc((size_t)c->difference_count, sizeof *all);
    pc_difference *order = pc_alloc((size_t)c->difference_count, sizeof *order);
    pc_code code = all && order ? PC_OK : pc_error_no_memory(error);
    int64_t count = 0;
    for (pc_difference at = PC_DIFFERENCE_START; !code && pc_difference_next(c, &at);)
        all[count++] = (sized){pc_difference_size(c, &at), at};
    if (!code) qsort(all, (size_t)count, sizeof *all, compare_sizes);
    for (int64_t i = 0; i < count; i++) order[i] = all[i].at;
    pc_free(all);
    if (code) pc_free(order);
    c->by_change = code ? NULL : order;
    return code;
}

/* --- all of it --- */

static pc_code make(pc_comparison *c, pc_error *error) {
    int count;
    (void)pc_columns(&count);
    c->b_of_a = pc_alloc((size_t)c->a_count, sizeof *c->b_of_a);
    c->b_is_used = pc_alloc((size_t)c->b_count, sizeof *c->b_is_used);
    c->columns = pc_alloc((size_t)count, sizeof *c->columns);
    if (!c->b_of_a || !c->b_is_used || !c->columns) return pc_error_no_memory(error);
    pc_code code = match(c, error);
    if (!code) count_differences(c);
    return code || !c->options->by_change ? code : sort_by_change(c, error);
}

pc_code pc_comparison_make(const pc_run_row *a, int64_t a_count, const pc_run_row *b, int64_t b_count,
                           const pc_compare_options *options, pc_comparison *c, pc_error *error) {
    *c = (pc_comparison){.options = options, .a = a, .b = b, .a_count = a_count, .b_count = b_count};
    return make(c, error);
}

void pc_comparison_free(pc_comparison *c) {
    pc_free(c->b_of_a);
    pc_free(c->b_is_used);
    pc_free(c->columns);
    pc_free(c->by_change);
}

static bool write_as(void *context, pc_text *text, FILE *stream) {
    const pc_comparison *c = context;
    return c->options->format == PC_FORMAT_TABLE ? pc_compare_table(c, text, stream) : pc_compare_rows(c, text, stream);
}

pc_code pc_compare(const pc_run_row *a, int64_t a_count, const pc_run_row *b, int64_t b_count,
                   const pc_compare_options *options, FILE *stream, pc_compare_summary *summary, pc_error *error) {
    pc_comparison c;
    pc_code code = pc_comparison_make(a, a_count, b, b_count, options, &c, error);
    if (!code) code = pc_stream_text_write(write_as, &c, "what differs", stream, error);
    if (!code) *summary = c.summary;
    pc_comparison_free(&c);
    return code;
}
