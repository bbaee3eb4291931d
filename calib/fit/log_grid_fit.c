/* The values of a grid: a sparse, symmetric system, solved by conjugate gradients (Hestenes and Stiefel 1952), a few
 * times with points that lie far off counting less (Huber 1964). */
#include "calib/fit/fit_private.h"
#include "calib/fit/log_grid.h"

#include "engine/alloc.h"
#include "engine/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FOLDS = 5, ROUNDS = 3, STEPS_MAX = 400 };

/* Of the smoothness beside second differences: first ones, and the values. */
static const double slope_part = 0.3, value_part = 0.01;

typedef struct solving {
    const double *residual;
    int64_t count, values;
    int corners;
    int32_t *node;  /* of each point, its corners */
    double *part;   /* and what each of them has of it */
    int32_t *fold;  /* of each point */
    double *weight; /* of each point; 0: left out */
    double *away;   /* of each point: work */
    double *work;   /* of each point: work */
    double smoothing;
    double *value, *diagonal, *right, *rest, *direction, *image, *scaled; /* of each node */
} solving;

/* ---- where nodes stand ---- */

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All sizes that there are, or of too many as many as there may be, evenly by their rank. */
static void place_nodes(const double *x, int dimensions, int64_t count, int32_t axis, int32_t most, double *sizes,
                        pc_log_grid *grid) {
    int64_t different = 0;
    for (int64_t i = 0; i < count; i++) sizes[i] = log(x[i * dimensions + grid->axis[axis]]);
    qsort(sizes, (size_t)count, sizeof *sizes, by_size);
    for (int64_t i = 0; i < count; i++)
        if (different == 0 || sizes[i] > sizes[different - 1]) sizes[different++] = sizes[i];
    int32_t nodes = different < most ? (int32_t)different : most;
    for (int32_t i = 0; i < nodes; i++)
        grid->place[axis][i] =
            sizes[nodes > 1 ? (int64_t)llround((double)i * (double)(different - 1) / (nodes - 1)) : 0];
    grid->nodes[axis] = nodes;
}

static void place_all(const pc_grid_plan *plan, const double *x, int dimensions, int64_t count, double *sizes,
                      pc_log_grid *grid) {
    grid->axes = plan->axes;
    for (int32_t a = 0; a < plan->axes; a++) {
        int32_t most = plan->nodes[a] < PC_GRID_NODES ? plan->nodes[a] : PC_GRID_NODES;
        grid->axis[a] = plan->axis[a];
        place_nodes(x, dimensions, count, a, most, sizes, grid);
    }
}

/* ---- which corners a point lies between ---- */

static void take_corners(solving *s, const pc_log_grid *grid, const double *point, int64_t at) {
    int32_t *node = s->node + at * s->corners, below;
    double *part = s->part + at * s->corners;
    int filled = 1;
    node[0] = 0, part[0] = 1.0;
    for (int32_t a = 0; a < grid->axes; a++) {
        double upper = pc_log_grid_locate(grid, a, log(point[grid->axis[a]]), &below);
        for (int64_t c = filled - 1; c >= 0; c--) { /* backwards: each becomes two */
            int32_t low = node[c] * grid->nodes[a] + below;
            double share = part[c];
            node[2 * c] = low, part[2 * c] = share * (1.0 - upper);
            node[2 * c + 1] = upper > 0.0 ? low + 1 : low, part[2 * c + 1] = share * upper;
        }
        filled *= 2;
    }
}

static double value_at(const solving *s, const double *value, int64_t at) {
    const int32_t *node = s->node + at * s->corners;
    const double *part = s->part + at * s->corners;
    double sum = 0.0;
    for (int c = 0; c < s->corners; c++) sum += part[c] * value[node[c]];
    return sum;
}

/* ---- smoothness ---- */

/* Adds smoothing times (differences' matrix) times `from`; or, of `from` NULL, the matrix's diagonal. */
static void add_difference(const int64_t *node, const double *factor, int terms, double strength, const double *from,
                           double *to) {
    double sum = 0.0;
    for (int i = 0; i < terms && from; i++) sum += factor[i] * from[node[i]];
    for (int i = 0; i < terms; i++) to[node[i]] += strength * factor[i] * (from ? sum : factor[i]);
}

static void add_line(const pc_log_grid *grid, int32_t axis, int64_t first, int64_t stride, double smoothing,
                     const double *from, double *to) {
    static const double slope[] = {1.0, -1.0};
    const double *place = grid->place[axis];
    for (int32_t i = 0; i + 1 < grid->nodes[axis]; i++) {
        const int64_t node[] = {first + i * stride, first + (i + 1) * stride, first + (i + 2) * stride};
        add_difference(node, slope, 2, smoothing * slope_part, from, to);
        if (i + 2 == grid->nodes[axis]) break;
        double before = place[i + 1] - place[i], behind = place[i + 2] - place[i + 1], both = before + behind;
        const double bend[] = {behind / both, -1.0, before / both};
        add_difference(node, bend, 3, smoothing, from, to);
    }
}

static void add_smoothness(const solving *s, const pc_log_grid *grid, const double *from, double *to) {
    int64_t stride = s->values;
    for (int32_t a = 0; a < grid->axes; a++) {
        int64_t block = stride;
        stride /= grid->nodes[a];
        for (int64_t outer = 0; outer < s->values; outer += block)
            for (int64_t inner = 0; inner < stride; inner++)
                add_line(grid, a, outer + inner, stride, s->smoothing, from, to);
    }
    for (int64_t i = 0; i < s->values; i++) to[i] += s->smoothing * value_part * (from ? from[i] : 1.0);
}

/* ---- the system ---- */

static void apply(const solving *s, const pc_log_grid *grid, const double *from, double *to) {
    memset(to, 0, (size_t)s->values * sizeof *to);
    for (int64_t i = 0; i < s->count; i++) {
        if (s->weight[i] == 0.0) continue;
        double weighted = s->weight[i] * value_at(s, from, i);
        for (int c = 0; c < s->corners; c++) to[s->node[i * s->corners + c]] += s->part[i * s->corners + c] * weighted;
    }
    add_smoothness(s, grid, from, to);
}

static void take_sides(solving *s, const pc_log_grid *grid) {
    memset(s->diagonal, 0, (size_t)s->values * sizeof *s->diagonal);
    memset(s->right, 0, (size_t)s->values * sizeof *s->right);
    add_smoothness(s, grid, NULL, s->diagonal);
    for (int64_t i = 0; i < s->count; i++)
        for (int c = 0; c < s->corners; c++) {
            double part = s->part[i * s->corners + c];
            s->right[s->node[i * s->corners + c]] += s->weight[i] * part * s->residual[i];
            s->diagonal[s->node[i * s->corners + c]] += s->weight[i] * part * part;
        }
}

static double product(const double *a, const double *b, int64_t count) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* From the values at hand. */
static void solve(solving *s, const pc_log_grid *grid) {
    static const double steady = 1e-5;
    int64_t n = s->values;
    take_sides(s, grid);
    apply(s, grid, s->value, s->image);
    for (int64_t i = 0; i < n; i++) s->rest[i] = s->right[i] - s->image[i];
    for (int64_t i = 0; i < n; i++) s->direction[i] = s->scaled[i] = s->rest[i] / s->diagonal[i];
    double length = product(s->rest, s->scaled, n), goal = 0.0;
    for (int64_t i = 0; i < n; i++) goal += steady * steady * s->right[i] * s->right[i] / s->diagonal[i];
    for (int step = 0; step < STEPS_MAX && length > goal; step++) {
        apply(s, grid, s->direction, s->image);
        double along = length / product(s->direction, s->image, n), before = length;
        for (int64_t i = 0; i < n; i++) s->value[i] += along * s->direction[i], s->rest[i] -= along * s->image[i];
        for (int64_t i = 0; i < n; i++) s->scaled[i] = s->rest[i] / s->diagonal[i];
        length = product(s->rest, s->scaled, n);
        for (int64_t i = 0; i < n; i++) s->direction[i] = s->scaled[i] + length / before * s->direction[i];
    }
}

/* ---- robust, and with folds left out ---- */

/* `fold` is left out; -1: none. */
static void reweigh(solving *s, int fold) {
    int64_t taken = 0;
    for (int64_t i = 0; i < s->count; i++) {
        s->away[i] = s->residual[i] - value_at(s, s->value, i);
        if (s->fold[i] != fold) s->work[taken++] = fabs(s->away[i]);
    }
    double limit = 2.0 * 1.4826 * pc_fit_quantile(s->work, taken, 0.5) + 1e-12;
    for (int64_t i = 0; i < s->count; i++) {
        double away = fabs(s->away[i]);
        s->weight[i] = s->fold[i] == fold ? 0.0 : away > limit ? limit / away : 1.0;
    }
}

static void fit_values(solving *s, const pc_log_grid *grid, int fold) {
    memset(s->value, 0, (size_t)s->values * sizeof *s->value);
    for (int64_t i = 0; i < s->count; i++) s->weight[i] = s->fold[i] == fold ? 0.0 : 1.0;
    for (int round = 0; round < ROUNDS; round++) {
        if (round > 0) reweigh(s, fold);
        solve(s, grid);
    }
}

/* Each point by a grid that has not seen it; the sum of what is left, of which a point counts at most `most`. */
static double leave_folds_out(solving *s, const pc_log_grid *grid, double most, double *left) {
    double sum = 0.0;
    for (int fold = 0; fold < FOLDS; fold++) {
        fit_values(s, grid, fold);
        for (int64_t i = 0; i < s->count; i++)
            if (s->fold[i] == fold) left[i] = s->residual[i] - value_at(s, s->value, i);
    }
    for (int64_t i = 0; i < s->count; i++) sum += fabs(left[i]) < most ? fabs(left[i]) : most;
    return sum;
}

/* 0: no grid. left[] has what the best one leaves. */
static double best_smoothing(solving *s, const pc_log_grid *grid, double *trial, double *left) {
    static const double choices[] = {0.03, 0.3, 3.0};
    double best = 0.0, most = 0.0, without = 0.0;
    for (int64_t i = 0; i < s->count; i++) s->work[i] = fabs(s->residual[i]);
    most = 6.0 * pc_fit_quantile(s->work, s->count, 0.5);
    for (int64_t i = 0; i < s->count; i++) without += fabs(s->residual[i]) < most ? fabs(s->residual[i]) : most;
    double least = 0.95 * without;
    memcpy(left, s->residual, (size_t)s->count * sizeof *left);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        s->smoothing = choices[i];
        double sum = leave_folds_out(s, grid, most, trial);
        if (!(sum < least)) continue;
        least = sum, best = choices[i];
        memcpy(left, trial, (size_t)s->count * sizeof *left);
    }
    return best;
}

/* ---- all of it ---- */

/* Points of one shape, which stand together, are in one fold. */
static void deal_folds(solving *s, const double *x, int dimensions) {
    uint64_t state = 1;
    for (int64_t i = 0; i < s->count; i++) {
        const double *row = x + i * dimensions;
        bool is_same = i > 0 && memcmp(row, row - dimensions, (size_t)dimensions * sizeof *row) == 0;
        s->fold[i] = is_same ? s->fold[i - 1] : (int32_t)(pc_splitmix64(&state) % FOLDS);
    }
}

static void solving_free(solving *s) {
    pc_free(s->node);
    pc_free(s->part);
    pc_free(s->fold);
    pc_free(s->weight);
    pc_free(s->value);
}

static bool solving_make(solving *s, const double *residual, int64_t count, const pc_log_grid *grid) {
    size_t n = (size_t)count, values = (size_t)pc_log_grid_count(grid);
    *s = (solving){.residual = residual, .count = count, .values = (int64_t)values, .corners = 1 << grid->axes};
    s->node = pc_alloc(n * (size_t)s->corners, sizeof *s->node);
    s->part = pc_alloc(n * (size_t)s->corners, sizeof *s->part);
    s->fold = pc_alloc(n, sizeof *s->fold);
    s->weight = pc_alloc(3 * n, sizeof *s->weight);
    s->value = pc_alloc(7 * values, sizeof *s->value);
    if (!s->node || !s->part || !s->fold || !s->weight || !s->value) return false;
    s->away = s->weight + n, s->work = s->away + n;
    s->diagonal = s->value + values, s->right = s->diagonal + values, s->rest = s->right + values;
    s->direction = s->rest + values, s->image = s->direction + values, s->scaled = s->image + values;
    return true;
}

static double root_mean_square(const double *values, int64_t count) {
    return sqrt(product(values, values, count) / (double)count);
}

static pc_code keep_values(solving *s, double smoothing, pc_log_grid *grid, pc_error *error) {
    grid->value = pc_alloc((size_t)s->values, sizeof *grid->value);
    if (!grid->value) return pc_error_no_memory(error);
    s->smoothing = smoothing;
    fit_values(s, grid, -1);
    memcpy(grid->value, s->value, (size_t)s->values * sizeof *s->value);
    grid->deviation = root_mean_square(s->value, s->values);
    return PC_OK;
}

pc_code pc_log_grid_fit(const pc_grid_plan *plan, const double *x, int dimensions, const double *residual,
                        int64_t count, double *left, pc_log_grid *grid, pc_error *error) {
    solving s = {0};
    pc_log_grid made = {0};
    double *sizes = pc_alloc(2 * (size_t)count, sizeof *sizes), *own = sizes ? sizes + count : NULL;
    *grid = made;
    if (!sizes) return pc_error_no_memory(error);
    if (count > 0) place_all(plan, x, dimensions, count, sizes, &made);
    pc_code code = solving_make(&s, residual, count, &made) ? PC_OK : pc_error_no_memory(error);
    if (!code && count > 0) {
        for (int64_t i = 0; i < count; i++) take_corners(&s, &made, x + i * dimensions, i);
        deal_folds(&s, x, dimensions);
        double smoothing = best_smoothing(&s, &made, sizes, left ? left : own);
        if (smoothing > 0.0) code = keep_values(&s, smoothing, &made, error);
        if (!code && smoothing > 0.0) *grid = made;
    }
    solving_free(&s);
    pc_free(sizes);
    return code;
}
