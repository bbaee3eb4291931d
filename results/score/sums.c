/* Sums of scored rows, and what is missing. */
#include "results/score/score_private.h"

#include "engine/alloc.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- by which columns ---- */

enum { BY_MOST = 8 };
typedef struct by_columns {
    int at[BY_MOST];
    int count;
} by_columns;

static pc_code refuse_by(const pc_measured *m, const char *name, size_t length, pc_error *error) {
    return pc_error_refuse(error, m->path, 0, "--by",
                           "no column '%.*s'; expected columns of the header, with commas between, 8 at most",
                           (int)length, name);
}

static pc_code find_by(const pc_measured *m, const char *by, by_columns *found, pc_error *error) {
    found->count = 0;
    for (const char *name = by;; name++) {
        size_t length = strcspn(name, ",");
        int i = 0;
        while (i < m->column_count && (strlen(m->column[i]) != length || strncasecmp(m->column[i], name, length) != 0))
            i++;
        if (i == m->column_count || found->count == BY_MOST) return refuse_by(m, name, length, error);
        found->at[found->count++] = i;
        name += length;
        if (*name == '\0') return PC_OK;
    }
}

pc_code pc_score_check_by(const pc_measured *measured, const char *by, pc_error *error) {
    by_columns found;
    return find_by(measured, by, &found, error);
}

/* "H100; 64"; an empty cell is "-". */
static void value_of(const pc_score *score, const pc_score_row *row, const by_columns *by,
                     char value[PC_SCORE_LABEL_SIZE]) {
    const pc_measured *m = score->measured;
    size_t used = 0;
    value[0] = '\0';
    for (int i = 0; i < by->count && used < PC_SCORE_LABEL_SIZE; i++) {
        const char *cell = m->cell[row->row * m->column_count + by->at[i]];
        used += (size_t)snprintf(value + used, PC_SCORE_LABEL_SIZE - used, "%s%s", i ? "; " : "", cell[0] ? cell : "-");
    }
}

void pc_score_row_value(const pc_score *score, const pc_score_row *row, const char *by,
                        char value[PC_SCORE_LABEL_SIZE]) {
    by_columns columns = {.count = 0};
    pc_code code = find_by(score->measured, by, &columns, NULL);
    assert(!code);
    value_of(score, row, &columns, value);
}

/* ---- one sum ---- */

static void count_status(pc_score_sum *sum, const pc_score_row *row) {
    sum->rows++;
    sum->asked += row->status != PC_SCORE_NOT_ASKED;
    sum->ok += row->status == PC_SCORE_OK;
    sum->out_of_memory += row->status == PC_SCORE_OUT_OF_MEMORY;
    sum->infeasible += row->status == PC_SCORE_INFEASIBLE;
}

double pc_score_median(double *values, int64_t count) {
    if (count == 0) return NAN;
    qsort(values, (size_t)count, sizeof *values, pc_score_compare_reals);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

int pc_score_compare_reals(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* `sizes` is room for the rows' |error|. */
static void sum_rows(const pc_score *score, const int64_t *rows, int64_t count, double *sizes, pc_score_sum *sum) {
    double total = 0.0, bias = 0.0, memory = 0.0, memory_bias = 0.0;
    sum->worst = NAN;
    sum->worst_line = -1;
    for (int64_t i = 0; i < count; i++) {
        const pc_score_row *row = &score->rows[rows[i]];
        count_status(sum, row);
        if (isfinite(row->memory_error)) {
            sum->memory_compared++;
            memory += fabs(row->memory_error);
            memory_bias += row->memory_error;
        }
        if (!isfinite(row->error)) continue;
        sizes[sum->compared++] = fabs(row->error);
        total += fabs(row->error);
        bias += row->error;
        if (!(fabs(row->error) <= fabs(sum->worst))) {
            sum->worst = row->error;
            sum->worst_line = score->measured->line[row->row];
        }
    }
    sum->mean = total / (double)sum->compared;
    sum->bias = bias / (double)sum->compared;
    sum->median = pc_score_median(sizes, sum->compared);
    sum->memory_mean = memory / (double)sum->memory_compared;
    sum->memory_bias = memory_bias / (double)sum->memory_compared;
}

/* ---- all of them ---- */

/* A row and what it is summed up under, to be sorted by that, and then as it stood. */
typedef struct labelled {
    char value[PC_SCORE_LABEL_SIZE];
    int64_t row, first; /* first: of the rows of its value */
} labelled;

static int compare_values(const void *left, const void *right) {
    const labelled *a = left, *b = right;
    int order = strcmp(a->value, b->value);
    return order ? order : (a->row > b->row) - (a->row < b->row);
}

static int compare_firsts(const void *left, const void *right) {
    const labelled *a = left, *b = right;
    int64_t d = a->first - b->first;
    if (d == 0) d = a->row - b->row;
    return (d > 0) - (d < 0);
}

static pc_code add_sum(pc_score *score, const pc_score_sum *sum, pc_error *error) {
    pc_score_sum *all = pc_realloc(score->sums, (size_t)score->sum_count + 1, sizeof *all);
    if (!all) return pc_error_no_memory(error);
    score->sums = all;
    all[score->sum_count++] = *sum;
    return PC_OK;
}

/* Of all rows there is one, be there rows or not. */
static pc_code sum_values(pc_score *score, const char *by, const labelled *list, pc_error *error) {
    int64_t *rows = pc_alloc((size_t)score->count, sizeof *rows);
    double *sizes = pc_alloc((size_t)score->count, sizeof *sizes);
    pc_code code = rows && sizes ? PC_OK : pc_error_no_memory(error);
    if (!code && score->count == 0 && by[0] == '\0')
        code = add_sum(score,
                       &(pc_score_sum){.mean = NAN,
                                       .median = NAN,
                                       .worst = NAN,
                                       .bias = NAN,
                                       .worst_line = -1,
                                       .memory_mean = NAN,
                                       .memory_bias = NAN},
                       error);
    for (int64_t i = 0, next; i < score->count && !code; i = next) {
        pc_score_sum sum = {.rows = 0};
        for (next = i; next < score->count && list[next].first == list[i].first; next++)
            rows[next - i] = list[next].row;
        snprintf(sum.by, sizeof sum.by, "%s", by);
        snprintf(sum.value, sizeof sum.value, "%s", list[i].value);
        sum_rows(score, rows, next - i, sizes, &sum);
        code = add_sum(score, &sum, error);
    }
    pc_free(rows);
    pc_free(sizes);
    return code;
}

/* Values stand in the order of their first rows. */
static pc_code sum_by(pc_score *score, const char *by, pc_error *error) {
    by_columns columns = {.count = 0};
    pc_code code = by[0] ? find_by(score->measured, by, &columns, error) : PC_OK;
    if (code) return code;
    labelled *list = pc_alloc((size_t)score->count, sizeof *list);
    if (!list) return pc_error_no_memory(error);
    for (int64_t i = 0; i < score->count; i++) {
        value_of(score, &score->rows[i], &columns, list[i].value);
        list[i].row = i;
    }
    if (score->count > 0) qsort(list, (size_t)score->count, sizeof *list, compare_values);
    for (int64_t i = 0; i < score->count; i++)
        list[i].first = i > 0 && strcmp(list[i].value, list[i - 1].value) == 0 ? list[i - 1].first : list[i].row;
    if (score->count > 0) qsort(list, (size_t)score->count, sizeof *list, compare_firsts);
    code = sum_values(score, by, list, error);
    pc_free(list);
    return code;
}

/* ---- what is missing ---- */

static pc_score_missing *find_missing(pc_score *score, const char *feature, size_t length) {
    for (int64_t i = 0; i < score->missing_count; i++)
        if (strlen(score->missing[i].feature) == length && strncmp(score->missing[i].feature, feature, length) == 0)
            return &score->missing[i];
    pc_score_missing *all = pc_realloc(score->missing, (size_t)score->missing_count + 1, sizeof *all);
    if (!all) return NULL;
    score->missing = all;
    pc_score_missing *made = &all[score->missing_count++];
    *made = (pc_score_missing){.rows = 0};
    snprintf(made->feature, sizeof made->feature, "%.*s", (int)length, feature);
    return made;
}

static int compare_missing(const void *left, const void *right) {
    const pc_score_missing *a = left, *b = right;
    return a->rows != b->rows ? (a->rows < b->rows) - (a->rows > b->rows) : strcmp(a->feature, b->feature);
}

static pc_code count_missing(pc_score *score, pc_error *error) {
    for (int64_t i = 0; i < score->count; i++) {
        const char *list = score->rows[i].run.missing;
        bool is_alone = !strchr(list, ';');
        for (size_t length; (length = strcspn(list, ";")) > 0; list += length + (list[length] == ';')) {
            pc_score_missing *missing = find_missing(score, list, length);
            if (!missing) return pc_error_no_memory(error);
            missing->rows++;
            missing->alone += is_alone;
        }
    }
    if (score->missing_count > 0)
        qsort(score->missing, (size_t)score->missing_count, sizeof *score->missing, compare_missing);
    return PC_OK;
}

pc_code pc_score_sum_up(pc_score *score, const char *const *by, int by_count, pc_error *error) {
    pc_code code = sum_by(score, "", error);
    for (int i = 0; i < by_count && !code; i++) code = sum_by(score, by[i], error);
    if (!code) code = count_missing(score, error);
    if (!code) code = pc_score_make_pairs(score, error);
    return code ? code : pc_score_make_groups(score, error);
}

void pc_score_free(pc_score *score) {
    pc_free(score->rows);
    pc_free(score->sums);
    pc_free(score->missing);
    pc_free(score->pairs);
    pc_free(score->groups);
    *score = (pc_score){0};
}
