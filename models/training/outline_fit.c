#include "models/training/outline_fit.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/timing.h"
#include "models/training/footprint.h"
#include "models/training/outline_balance.h"
#include "models/training/outline_memo.h"
#include "models/training/sample.h"

#include <string.h>

/* A fitting at work; the outline is borrowed. */
typedef struct fitting {
    pc_outline *outline;
    pc_layer_dealing dealing;
    pc_schedule schedule;
    bool has_order;           /* whether the schedule is there, and stays as it is */
    pc_timing *timing;        /* where levels depend on times */
    pc_time *zero_ps;         /* a number a pass, where they do not; as many as the schedule has */
    int64_t *most;            /* [devices]: the layers that a stage may have */
    int64_t *missing;         /* [devices]: bytes that a stage of the division at hand lacks; 0 or less if it fits */
    int32_t *best;            /* [parts]: the division that lacks least so far */
    int64_t least_missing;    /* and what it lacks */
    int64_t balanced_missing; /* what BALANCED lacks with the order that is searched for; INT64_MAX: nobody knows */
    bool lacks_host;          /* whether some division lacked host memory */
} fitting;

/* ---- what a division lacks ---- */

/* The named searches, whose limits are known before their orders are. */
static bool goes_by_name(const pc_iteration_spec *spec) {
    bool is_own = spec->making == PC_MAKING_COSTS || spec->making == PC_MAKING_EQUAL;
    return spec->generator->searches && !spec->generator->given && is_own;
}

static bool has_own_order(const pc_iteration_spec *spec) {
    return !spec->generator->searches && !pc_generator_has_making(spec->generator, spec->making);
}

bool pc_outline_fits_by_costs(const pc_iteration_spec *spec) {
    return pc_offload_is_beside_passes(&spec->cut.offload) || !(goes_by_name(spec) || has_own_order(spec));
}

/* Beside graphs the step has no room that activations have left. */
static void add_levels(const fitting *x, const pc_costs *costs, bool is_least, pc_iteration *iteration) {
    const pc_outline *outline = x->outline;
    const pc_generator *generator = outline->spec->generator;
    const pc_generate_request request = pc_outline_request(outline, costs);
    for (int d = 0; d < outline->devices; d++) {
        int64_t step = outline->device[d].step_bytes;
        int64_t held = is_least ? pc_generator_least_memory(generator, costs, d)
                                : pc_generator_named_memory(generator, &request, d);
        iteration->memory[d].peak_bytes += outline->cut.graphs ? held + step : pc_max(held, step);
        iteration->memory[d].host_bytes = outline->device[d].host_bytes;
    }
}

static pc_code find_order(fitting *x, const pc_costs *costs, pc_error *error) {
    const pc_iteration_spec *spec = x->outline->spec;
    const pc_generate_request request = pc_outline_request(x->outline, costs);
    if (x->has_order) return PC_OK;
    pc_schedule_free(&x->schedule);
    pc_free(x->zero_ps);
    x->zero_ps = NULL;
    pc_code code = pc_generate(spec->generator, &request, &x->schedule, NULL, error);
    if (code) return code;
    x->has_order = has_own_order(spec);
    x->zero_ps = pc_alloc((size_t)x->schedule.offsets[x->schedule.devices], sizeof *x->zero_ps);
    return x->zero_ps ? PC_OK : pc_error_no_memory(error);
}

/* When passes run counts beside copies alone. */
static pc_code find_times(fitting *x, const pc_costs *costs, pc_timing_result *times, pc_error *error) {
    *times = (pc_timing_result){.start_ps = x->zero_ps, .end_ps = x->zero_ps};
    if (!pc_costs_have_copies(costs)) return PC_OK;
    pc_code code = x->timing ? PC_OK : pc_timing_create(&x->timing, error);
    return code ? code : pc_timing_run(x->timing, &x->schedule, costs, times, error);
}

static pc_code add_ordered(fitting *x, const pc_costs *costs, pc_iteration *iteration, pc_error *error) {
    pc_timing_result times;
    pc_error why = {0};
    pc_code code = find_order(x, costs, &why);
    if (code == PC_ERROR_INPUT) { /* the iteration will say so */
        add_levels(x, costs, true, iteration);
        return PC_OK;
    }
    if (code) return pc_error_copy(error, &why);
    code = find_times(x, costs, &times, error);
    if (code) return code;
    return pc_footprint_activations(x->outline, &x->schedule, costs, times.start_ps, times.end_ps, NULL, iteration,
                                    error);
}

static void read_missing(fitting *x, const pc_iteration *iteration) {
    int64_t share = pc_machine_host_memory(&x->outline->spec->machine);
    for (int d = 0; d < x->outline->devices; d++) {
        const pc_device_memory *held = &iteration->memory[d];
        x->missing[d] = held->peak_bytes - held->capacity_bytes;
        if (share == 0) continue;
        x->missing[d] = pc_max(x->missing[d], held->host_bytes - share);
        x->lacks_host |= held->host_bytes > share;
    }
}

/* What a stage's activations are counted by: the least that any order needs, the most that the name allows, the order
 * itself. */
typedef enum fit_by { FIT_BY_LEAST, FIT_BY_NAME, FIT_BY_ORDER } fit_by;

static pc_code measure(fitting *x, fit_by by, pc_error *error) {
    pc_iteration iteration = {0};
    pc_costs costs = {0};
    pc_samples_limit_memory(x->outline);
    pc_code code = pc_footprint_fixed(x->outline, &iteration, error);
    if (!code) code = pc_outline_costs(x->outline, 0, &costs, error);
    if (!code && by == FIT_BY_ORDER)
        code = add_ordered(x, &costs, &iteration, error);
    else if (!code)
        add_levels(x, &costs, by == FIT_BY_LEAST, &iteration);
    if (!code) read_missing(x, &iteration);
    pc_costs_free(&costs);
    pc_iteration_free(&iteration);
    return code;
}

static int64_t worst_missing(const fitting *x) {
    int64_t worst = x->missing[0];
    for (int d = 1; d < x->outline->devices; d++) worst = pc_max(worst, x->missing[d]);
    return worst;
}

/* An order is searched for again with every division. */
static fit_by way_of(const pc_iteration_spec *spec) {
    if (!goes_by_name(spec)) return FIT_BY_ORDER;
    return spec->generator->adapts ? FIT_BY_LEAST : FIT_BY_NAME;
}

/* ---- as balanced ---- */

/* Whether the layers as they lie lack memory by the name, and may fit with less. */
static pc_code is_open(fitting *x, bool *open, pc_error *error) {
    pc_code code = measure(x, FIT_BY_NAME, error);
    *open = !code && worst_missing(x) > 0;
    if (*open) code = measure(x, FIT_BY_LEAST, error);
    *open = *open && worst_missing(x) <= 0;
    return code;
}

/* Where the name says that BALANCED does not fit, the order that is searched for so may hold less. Who bounds leaves
 * that open. */
static pc_code try_balanced(fitting *x, pc_error *error) {
    pc_outline *outline = x->outline;
    bool open = false;
    pc_code code = way_of(outline->spec) == FIT_BY_NAME ? is_open(x, &open, error) : PC_OK;
    if (code || !open) return code;
    outline->may_be_balanced = outline->memo && outline->memo->is_for_what_fits;
    if (outline->may_be_balanced) return PC_OK;
    code = measure(x, FIT_BY_ORDER, error);
    x->balanced_missing = worst_missing(x);
    return code;
}

/* ---- divisions ---- */

static void keep_best(fitting *x, int64_t missing) {
    if (missing >= x->least_missing) return;
    x->least_missing = missing;
    memcpy(x->best, x->outline->layers_of_part, (size_t)x->outline->parts * sizeof *x->best);
}

/* Leaves stages that lack so much a layer less than they have; false if no division is left. */
static bool lower_most(fitting *x, int64_t bar) {
    const pc_outline *outline = x->outline;
    int64_t sum = 0;
    for (int d = 0; d < outline->devices; d++) {
        int64_t layers = 0;
        for (int i = 0; i < outline->parts; i++)
            layers += x->dealing.stage_of_part[i] == d ? outline->layers_of_part[i] : 0;
        if (x->missing[d] >= bar) x->most[d] = layers - 1;
        if (x->most[d] < 0) return false;
        sum += x->most[d];
    }
    return sum >= outline->spec->model.layers;
}

static pc_code divide(fitting *x, pc_error *error) {
    pc_outline *outline = x->outline;
    pc_layout_balance(outline->spec->model.layers, outline->parts, outline->devices, x->dealing.stage_of_part,
                      &x->dealing.times, x->most, outline->layers_of_part);
    return pc_outline_divide_again(outline, error);
}

/* Divides, and divides again, until all fits or nothing is left. `fits`: whether what does not fit is passed over, and
 * not what is no better than the best so far; the layers then lie as if memory had no end. */
static pc_code try_divisions(fitting *x, bool fits, pc_error *error) {
    bool is_divided = fits;
    for (int d = 0; d < x->outline->devices; d++) x->most[d] = x->outline->spec->model.layers;
    for (;;) {
        pc_code code = is_divided ? PC_OK : divide(x, error);
        is_divided = false;
        if (!code) code = measure(x, way_of(x->outline->spec), error);
        if (code) return code;
        keep_best(x, worst_missing(x));
        if (x->least_missing <= 0 || !lower_most(x, fits ? 1 : x->least_missing)) return PC_OK;
    }
}

static pc_code open_fitting(fitting *x, pc_error *error) {
    size_t devices = (size_t)x->outline->devices;
    x->most = pc_alloc(2 * devices, sizeof *x->most);
    x->best = pc_alloc((size_t)x->outline->parts, sizeof *x->best);
    if (!x->most || !x->best) return pc_error_no_memory(error);
    x->missing = x->most + devices;
    x->least_missing = x->balanced_missing = INT64_MAX;
    return pc_outline_dealing(x->outline, &x->dealing, error);
}

static void close_fitting(fitting *x) {
    pc_free(x->most);
    pc_free(x->best);
    pc_timing_free(x->timing);
    pc_free(x->zero_ps);
    pc_schedule_free(&x->schedule);
}

/* Whether no division has room on all GPUs: what the most by a name has no room for may run with less. */
static bool fits_nowhere(const fitting *x) {
    const pc_iteration_spec *spec = x->outline->spec;
    bool is_certain = has_own_order(spec) || (goes_by_name(spec) && spec->generator->adapts);
    return is_certain && x->least_missing > 0 && !x->lacks_host;
}

static pc_code take_best(fitting *x, pc_error *error) {
    pc_outline *outline = x->outline;
    memcpy(outline->layers_of_part, x->best, (size_t)outline->parts * sizeof *x->best);
    return pc_outline_divide_again(outline, error);
}

/* Of a division that lacks least by the name, and BALANCED, the one that lacks less by its order. */
static pc_code take_less(fitting *x, pc_error *error) {
    pc_code code = measure(x, FIT_BY_ORDER, error);
    if (code || worst_missing(x) < x->balanced_missing) return code;
    for (int d = 0; d < x->outline->devices; d++) x->most[d] = x->outline->spec->model.layers;
    return divide(x, error);
}

static pc_code divide_to_fit(fitting *x, pc_error *error) {
    pc_outline *outline = x->outline;
    pc_code code = try_divisions(x, true, error);
    outline->fits_nowhere = !code && fits_nowhere(x);
    bool is_enough = outline->fits_nowhere && outline->memo && outline->memo->is_for_what_fits;
    if (code || x->least_missing <= 0) return code;
    if (!is_enough) code = try_divisions(x, false, error);
    if (!code) code = take_best(x, error);
    bool is_known = x->least_missing > 0 && x->balanced_missing < INT64_MAX;
    return code || !is_known ? code : take_less(x, error);
}

pc_code pc_outline_fit(pc_outline *outline, pc_error *error) {
    fitting x = {.outline = outline};
    pc_code code = open_fitting(&x, error);
    if (!code) code = try_balanced(&x, error);
    if (!code && x.balanced_missing > 0) code = divide_to_fit(&x, error);
    close_fitting(&x);
    return code;
}
