#include "models/schedule/search/sampled.h"

#include "engine/alloc.h"

#include <string.h>

enum { LANES = PC_SAMPLED_LANES };

/* One pass: rows of the arrays of times. `before` is the row of zeros for a pass that waits for nothing. */
typedef struct pc_sampled_step {
    int64_t row, before;
    double delay_ps;
    int32_t device;
    bool is_first; /* of its device */
} pc_sampled_step;

struct pc_sampled {
    const pc_instance *instance;
    double *end;          /* [devices * types * microbatches + 1][LANES]; the last row is of zeros */
    double *free, *first; /* [devices][LANES]: when the device is free, and when it started */
    uint8_t *done;        /* [devices * types * microbatches] */
    int64_t *cursor;      /* [devices] */
    int32_t *ready;       /* [devices]: a stack of devices that may go on */
    bool *is_ready;       /* [devices]: whether it stands there */
    int32_t ready_count;
};

static size_t rows_of(const pc_instance *instance) {
    return (size_t)instance->devices * (size_t)instance->passes;
}

/* ---- memory ---- */

pc_code pc_sampled_draws_create(const pc_instance *instance, bool has_delays, pc_sampled_draws *draws,
                                pc_error *error) {
    size_t numbers = rows_of(instance) * LANES;
    draws->pass = pc_alloc(numbers, sizeof *draws->pass);
    draws->delay = has_delays ? pc_alloc(numbers, sizeof *draws->delay) : NULL;
    return draws->pass && (draws->delay || !has_delays) ? PC_OK : pc_error_no_memory(error);
}

void pc_sampled_draws_free(pc_sampled_draws *draws) {
    pc_free(draws->pass);
    pc_free(draws->delay);
    *draws = (pc_sampled_draws){0};
}

pc_code pc_sampled_sequence_create(const pc_instance *instance, pc_sampled_sequence *sequence, pc_error *error) {
    sequence->steps = pc_alloc(rows_of(instance), sizeof *sequence->steps);
    return sequence->steps ? PC_OK : pc_error_no_memory(error);
}

void pc_sampled_sequence_free(pc_sampled_sequence *sequence) {
    pc_free(sequence->steps);
    sequence->steps = NULL;
}

void pc_sampled_free(pc_sampled *sampled) {
    if (!sampled) return;
    pc_free(sampled->end);
    pc_free(sampled->free);
    pc_free(sampled->done);
    pc_free(sampled->cursor);
    pc_free(sampled->ready);
    pc_free(sampled->is_ready);
    pc_free(sampled);
}

static bool make_arrays(pc_sampled *s) {
    size_t devices = (size_t)s->instance->devices, rows = rows_of(s->instance);
    s->end = pc_alloc((rows + 1) * LANES, sizeof *s->end);
    s->free = pc_alloc(2 * devices * LANES, sizeof *s->free);
    s->done = pc_alloc(rows, sizeof *s->done);
    s->cursor = pc_alloc(devices, sizeof *s->cursor);
    s->ready = pc_alloc(devices, sizeof *s->ready);
    s->is_ready = pc_alloc(devices, sizeof *s->is_ready);
    if (!s->end || !s->free || !s->done || !s->cursor || !s->ready || !s->is_ready) return false;
    s->first = s->free + devices * LANES;
    return true;
}

pc_code pc_sampled_create(const pc_instance *instance, pc_sampled **sampled, pc_error *error) {
    pc_sampled *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    made->instance = instance;
    if (!make_arrays(made)) {
        pc_sampled_free(made);
        return pc_error_no_memory(error);
    }
    *sampled = made;
    return PC_OK;
}

/* ---- the sequence ---- */

static int64_t row_of(const pc_instance *instance, int cell, int microbatch) {
    return (int64_t)cell * instance->microbatches + microbatch;
}

static void make_ready(pc_sampled *s, int device) {
    if (s->is_ready[device]) return;
    s->is_ready[device] = true;
    s->ready[s->ready_count++] = device;
}

static bool is_done(const pc_sampled *s, int32_t cell, int microbatch) {
    return cell == PC_INSTANCE_NONE || s->done[row_of(s->instance, cell, microbatch)];
}

static void start_walk(pc_sampled *s) {
    memset(s->done, 0, rows_of(s->instance));
    s->ready_count = 0;
    for (int d = s->instance->devices - 1; d >= 0; d--) {
        s->cursor[d] = 0;
        s->is_ready[d] = false;
        make_ready(s, d);
    }
}

/* Goes on with a device until it waits for another one; returns the steps that there are then. */
static int64_t walk_device(pc_sampled *s, const pc_instance_order *order, int device, pc_sampled_step *steps,
                           int64_t count) {
    const pc_instance *instance = s->instance;
    for (; s->cursor[device] < instance->passes; s->cursor[device]++) {
        pc_instance_pass pass = order->pass[device * instance->passes + s->cursor[device]];
        int cell_index = device * instance->types + pc_instance_pass_type(pass);
        int microbatch = pc_instance_pass_microbatch(pass);
        const pc_instance_cell *cell = &instance->cells[cell_index];
        if (!is_done(s, cell->before, microbatch) || !is_done(s, cell->own, microbatch)) break;
        int64_t row = row_of(instance, cell_index, microbatch);
        s->done[row] = 1;
        steps[count++] =
            (pc_sampled_step){.row = row,
                              .before = cell->before == PC_INSTANCE_NONE ? (int64_t)rows_of(instance)
                                                                         : row_of(instance, cell->before, microbatch),
                              .delay_ps = (double)cell->before_delay,
                              .device = device,
                              .is_first = s->cursor[device] == 0};
        if (cell->after != PC_INSTANCE_NONE && cell->after / instance->types != device)
            make_ready(s, cell->after / instance->types);
    }
    return count;
}

bool pc_sampled_line_up(pc_sampled *s, const pc_instance_order *order, pc_sampled_sequence *sequence) {
    int64_t count = 0;
    start_walk(s);
    while (s->ready_count > 0) {
        int device = s->ready[--s->ready_count];
        s->is_ready[device] = false;
        count = walk_device(s, order, device, sequence->steps, count);
    }
    return count == (int64_t)rows_of(s->instance);
}

/* ---- the times ---- */

static inline double later(double a, double b) {
    return a > b ? a : b;
}

/* `free` becomes the end of the pass, which starts when its device is free and its input is there. */
static inline void run_pass(const double *restrict arrival, const double *restrict duration, double *restrict free,
                            double *restrict end) {
    for (int lane = 0; lane < LANES; lane++) end[lane] = later(free[lane], arrival[lane]) + duration[lane];
    memcpy(free, end, LANES * sizeof *free);
}

static inline void add_same(const double *restrict a, double b, double *restrict sum) {
    for (int lane = 0; lane < LANES; lane++) sum[lane] = a[lane] + b;
}

static inline void add_each(const double *restrict a, const double *restrict b, double *restrict sum) {
    for (int lane = 0; lane < LANES; lane++) sum[lane] = a[lane] + b[lane];
}

static void find_spans(const pc_sampled *s, double *span_ps) {
    for (int lane = 0; lane < LANES; lane++) span_ps[lane] = 0;
    for (int64_t d = 0; d < s->instance->devices; d++)
        for (int lane = 0; lane < LANES; lane++) {
            double span = s->free[d * LANES + lane] - s->first[d * LANES + lane];
            span_ps[lane] = later(span_ps[lane], span);
        }
}

void pc_sampled_run(pc_sampled *s, const pc_sampled_sequence *sequence, const pc_sampled_draws *draws,
                    double *span_ps) {
    const pc_sampled_step *behind = sequence->steps + rows_of(s->instance);
    double arrival[LANES];
    memset(s->free, 0, 2 * (size_t)s->instance->devices * LANES * sizeof *s->free);
    for (const pc_sampled_step *step = sequence->steps; step < behind; step++) {
        double *free = s->free + (int64_t)step->device * LANES;
        const double *duration = draws->pass + step->row * LANES;
        if (draws->delay)
            add_each(s->end + step->before * LANES, draws->delay + step->row * LANES, arrival);
        else
            add_same(s->end + step->before * LANES, step->delay_ps, arrival);
        run_pass(arrival, duration, free, s->end + step->row * LANES);
        for (int lane = 0; step->is_first && lane < LANES; lane++)
            s->first[(int64_t)step->device * LANES + lane] = free[lane] - duration[lane];
    }
    find_spans(s, span_ps);
}
