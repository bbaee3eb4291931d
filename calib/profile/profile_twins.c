/* TensorRT-LLM's tables have a shape of attention twice in 16 bits and do not say why: the second keeps keys and values
 * in 8 bits, and then computes in 8 bits as well. So it takes what the row of 8 bits takes, to some percent, where the
 * other takes 1.1 to 1.6 times as long. Training has no cache of keys. */
#include "calib/profile/profile_private.h"

#include "engine/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Nearer to the row of 8 bits than this, in log(seconds), a row without a second is of 8 bits. */
static const double near = 0.06;

typedef struct twin_row {
    const pc_kernel_measurement *kernel;
    int64_t number;
} twin_row;

static bool is_candidate(const pc_kernel_measurement *k) {
    return k->kind == PC_OPERATION_ATTENTION && k->role == PC_GEMM_FORWARD && strcmp(k->library, "trtllm") == 0 &&
           k->seconds.median > 0.0;
}

/* Of one system, size of head and window: a table within the table. */
static int compare_table(const pc_kernel_measurement *a, const pc_kernel_measurement *b) {
    if (a->k != b->k) return a->k < b->k ? -1 : 1;
    if (a->window != b->window) return a->window < b->window ? -1 : 1;
    return strcmp(a->site, b->site);
}

static int compare_shape(const pc_kernel_measurement *a, const pc_kernel_measurement *b) {
    const int64_t one[] = {a->batch, a->m, a->n, a->heads, a->kv_heads, a->is_causal};
    const int64_t other[] = {b->batch, b->m, b->n, b->heads, b->kv_heads, b->is_causal};
    int table = compare_table(a, b);
    for (size_t i = 0; i < sizeof one / sizeof *one && table == 0; i++)
        if (one[i] != other[i]) return one[i] < other[i] ? -1 : 1;
    return table;
}

static int by_shape(const void *a, const void *b) {
    const twin_row *one = a, *other = b;
    int shape = compare_shape(one->kernel, other->kernel);
    return shape ? shape : one->number < other->number ? -1 : one->number > other->number;
}

static bool is_8_bits(const pc_kernel_measurement *k) {
    return strcmp(k->dtype, "fp8") == 0;
}

/* How far from the row of 8 bits; without one the faster of two is the nearer. */
static double away_of(const pc_kernel_measurement *k, double eight_s) {
    return eight_s > 0.0 ? fabs(log(k->seconds.median / eight_s)) : k->seconds.median;
}

static int64_t count_16_bits(const twin_row *row, int64_t count) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) found += !is_8_bits(row[i].kernel);
    return found;
}

static int64_t end_of(const twin_row *row, int64_t count, int64_t first,
                      int (*compare)(const pc_kernel_measurement *, const pc_kernel_measurement *)) {
    int64_t end = first + 1;
    while (end < count && compare(row[first].kernel, row[end].kernel) == 0) end++;
    return end;
}

/* Of the rows of one shape: all in 16 bits but the one that is farthest from the row of 8 bits. One alone, where
 * others have a second, is of either: of 8 bits if it is as fast, and not to be told without a row of 8 bits. */
static void mark_shape(const twin_row *row, int64_t count, bool has_pairs, bool *is_twin) {
    double eight_s = 0.0;
    int64_t farthest = -1;
    for (int64_t i = 0; i < count; i++)
        if (is_8_bits(row[i].kernel)) eight_s = row[i].kernel->seconds.median;
    for (int64_t i = 0; i < count; i++) {
        if (is_8_bits(row[i].kernel)) continue;
        if (farthest < 0 || away_of(row[i].kernel, eight_s) > away_of(row[farthest].kernel, eight_s)) farthest = i;
    }
    bool is_alone = has_pairs && count_16_bits(row, count) == 1;
    bool is_8_alone = is_alone && (eight_s == 0.0 || away_of(row[farthest].kernel, eight_s) < near);
    for (int64_t i = 0; i < count; i++)
        if (!is_8_bits(row[i].kernel) && (i != farthest || is_8_alone)) is_twin[row[i].number] = true;
}

static void mark_table(const twin_row *row, int64_t count, bool *is_twin) {
    bool has_pairs = false;
    int64_t end;
    for (int64_t first = 0; first < count; first = end) {
        end = end_of(row, count, first, compare_shape);
        has_pairs = has_pairs || count_16_bits(row + first, end - first) > 1;
    }
    for (int64_t first = 0; first < count; first = end) {
        end = end_of(row, count, first, compare_shape);
        mark_shape(row + first, end - first, has_pairs, is_twin);
    }
}

pc_code pc_profile_mark_twins(const pc_profile *profile, bool *is_twin, pc_error *error) {
    twin_row *row = pc_alloc((size_t)profile->kernel_count, sizeof *row);
    int64_t count = 0, end;
    if (!row) return pc_error_no_memory(error);
    for (int64_t i = 0; i < profile->kernel_count; i++) {
        is_twin[i] = false;
        if (is_candidate(&profile->kernel[i])) row[count++] = (twin_row){&profile->kernel[i], i};
    }
    qsort(row, (size_t)count, sizeof *row, by_shape);
    for (int64_t first = 0; first < count; first = end) {
        end = end_of(row, count, first, compare_table);
        mark_table(row + first, end - first, is_twin);
    }
    pc_free(row);
    return PC_OK;
}
