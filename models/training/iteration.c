#include "models/training/iteration.h"

#include "engine/alloc.h"
#include "engine/hash.h"
#include "models/schedule/timing.h"
#include "models/training/expand_replicas.h"
#include "models/training/footprint.h"
#include "models/training/iteration_private.h"
#include "models/training/iteration_spec.h"
#include "models/training/outline.h"
#include "models/training/robust_order.h"
#include "models/training/sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void close_run(pc_iteration_work *run) {
    pc_ends_free(&run->ends);
    pc_free(run->done_ps);
    pc_free(run->room_bytes);
    pc_timing_free(run->timing);
    pc_timing_free(run->held);
    pc_schedule_free(&run->schedule);
    pc_costs_free(&run->costs);
    pc_outline_free(&run->outline);
    pc_search_memo_free(run->own_memo);
}

/* ---- before the passes ---- */

void pc_iteration_note_infeasible(pc_iteration *iteration, const char *why) {
    iteration->status = PC_RUN_INFEASIBLE;
    snprintf(iteration->message, sizeof iteration->message, "%.*s", (int)sizeof iteration->message - 1, why);
}

static pc_code find_room(pc_iteration_work *run, pc_error *error) {
    run->room_bytes = pc_alloc((size_t)run->outline.devices, sizeof *run->room_bytes);
    if (!run->room_bytes) return pc_error_no_memory(error);
    for (int d = 0; d < run->outline.devices; d++) run->room_bytes[d] = pc_outline_room(&run->outline, d);
    return PC_OK;
}

/* Makes the outline, the costs and the room; where the spec cannot be, or what it holds all the time does not fit, says
 * so in the iteration's status. */
static pc_code prepare(pc_iteration_work *run, const pc_cost_model *cost, pc_iteration *iteration, pc_error *error) {
    const pc_iteration_spec *spec = run->spec;
    pc_error why = {0};
    pc_code code = pc_iteration_spec_check(spec, error);
    if (code) return code;
    code = pc_outline_check(spec, &why);
    if (!code) code = pc_samples_check(spec, &why);
    if (code == PC_ERROR_INPUT) {
        pc_iteration_note_infeasible(iteration, why.message);
        return PC_OK;
    }
    if (code) return pc_error_copy(error, &why);
    code = pc_outline_make(spec, cost, &run->outline, error);
    if (!code) pc_samples_limit_memory(&run->outline);
    if (!code) code = pc_footprint_fixed(&run->outline, iteration, error);
    if (code || iteration->status) return code;
    code = pc_outline_costs(&run->outline, 0, &run->costs, error);
    if (!code) code = find_room(run, error);
    if (!code && spec->generator->adapts) pc_footprint_least(&run->outline, &run->costs, iteration);
    return code;
}

/* For searches of the outline's, too (outline_fit.h). */
static pc_code open_memo(pc_iteration_work *run, pc_error *error) {
    pc_code code = PC_OK;
    if (!run->spec->memo) code = pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &run->own_memo, error);
    run->memo = run->spec->memo ? run->spec->memo : run->own_memo;
    run->with_memo = *run->spec;
    run->with_memo.memo = run->memo;
    run->spec = &run->with_memo;
    return code;
}

static void clear(pc_iteration *iteration) {
    double none = NAN;
    *iteration = (pc_iteration){.iteration_s = none,
                                .sequences = none,
                                .model_flops = none,
                                .hardware_flops = none,
                                .tflops_per_gpu = none,
                                .mfu = none,
                                .hfu = none,
                                .standard_error_s = none,
                                .exposed = pc_exposed_none(),
                                .sent = pc_sent_none(),
                                .link_utilisation_max = none,
                                .bad_days = pc_bad_days_none()};
}

/* ---- other orders ---- */

/* Notes a schedule that is to be timed; false if one of the same passes was: it would take as long. */
static bool add_timed(pc_iteration_work *run, const pc_schedule *schedule) {
    pc_hash hash = {UINT64_C(0x7061737365732069), UINT64_C(0x6e206f7264657273)};
    pc_hash_add_bytes(&hash, schedule->passes, (size_t)schedule->offsets[schedule->devices] * sizeof *schedule->passes);
    for (int i = 0; i < run->timed_count; i++)
        if (pc_hash_equal(run->timed[i], hash)) return false;
    run->timed[run->timed_count++] = hash;
    return true;
}

static void swap_schedules(pc_schedule *a, pc_schedule *b) {
    pc_schedule other = *a;
    *a = *b;
    *b = other;
}

/* The shorter one stays. */
static pc_code try_another(pc_iteration_work *run, pc_order_search *search, bool with_trace, pc_iteration *iteration,
                           pc_error *error) {
    pc_iteration other;
    pc_schedule schedule = {0};
    clear(&other);
    pc_code code = pc_footprint_fixed(&run->outline, &other, error);
    if (!code) code = search(run, with_trace, &schedule, &other, error);
    bool is_timed = !code && !other.status && add_timed(run, &schedule);
    swap_schedules(&run->schedule, &schedule);
    if (is_timed) code = pc_iteration_time(run, with_trace, &other, error);
    if (is_timed && !code && !other.status && other.iteration_s < iteration->iteration_s) {
        pc_iteration_free(iteration);
        *iteration = other;
    } else {
        swap_schedules(&run->schedule, &schedule);
        pc_iteration_free(&other);
    }
    pc_schedule_free(&schedule);
    return code;
}

static pc_code try_others(pc_iteration_work *run, bool with_trace, pc_iteration *iteration, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; !code && i < PC_ORDER_ATTEMPTS; i++)
        if (pc_order_attempts[i].is_wanted(run, iteration))
            code = try_another(run, pc_order_attempts[i].search, with_trace, iteration, error);
    return code;
}

/* The order that is best on bad days takes the place of the good day's, with the good day that it has. */
static pc_code try_robust(pc_iteration_work *run, bool with_trace, pc_iteration *iteration, pc_error *error) {
    const pc_order_given given = {&run->schedule, &run->costs, &iteration->replay, run->room_bytes, run->memo};
    pc_schedule schedule = {0};
    pc_iteration other;
    bool is_other = false;
    clear(&other);
    pc_code code = pc_robust_order_find(&run->outline, &given, &schedule, &is_other, error);
    if (code || !is_other) return code;
    swap_schedules(&run->schedule, &schedule);
    code = pc_footprint_fixed(&run->outline, &other, error);
    if (!code) code = pc_iteration_time(run, with_trace, &other, error);
    if (!code && with_trace && !other.status) code = pc_block_of_schedule(&run->schedule, &other.block, error);
    if (!code && !other.status) {
        pc_iteration_free(iteration);
        *iteration = other;
    } else {
        swap_schedules(&run->schedule, &schedule);
        pc_iteration_free(&other);
    }
    pc_schedule_free(&schedule);
    return code;
}

pc_code pc_iteration_run(const pc_iteration_spec *spec, const pc_cost_model *cost, bool with_trace,
                         pc_iteration *iteration, pc_error *error) {
    pc_iteration made;
    pc_iteration_work run = {.spec = spec};
    clear(&made);
    pc_code code = spec->generator->searches ? open_memo(&run, error) : PC_OK;
    if (!code) code = prepare(&run, cost, &made, error);
    if (!code && !made.status) code = pc_iteration_search_first(&run, with_trace, &run.schedule, &made, error);
    if (!code && !made.status) code = pc_footprint_order(&run.outline, &run.schedule, &run.costs, &made, error);
    if (!code && !made.status) code = pc_iteration_open_timing(&run, error);
    if (!code && !made.status && spec->generator->searches) add_timed(&run, &run.schedule);
    if (!code && !made.status) code = pc_iteration_time(&run, with_trace, &made, error);
    if (!code && !made.status) code = try_others(&run, with_trace, &made, error);
    if (!code && !made.status && pc_robust_order_is_wanted(&run.outline))
        code = try_robust(&run, with_trace, &made, error);
    if (!code && !made.status && spec->bad_days.samples > 0)
        code = pc_samples_run(&run.outline, &run.schedule, &made, error);
    close_run(&run);
    if (code)
        pc_iteration_free(&made);
    else
        *iteration = made;
    return code;
}

void pc_iteration_free(pc_iteration *iteration) {
    pc_free(iteration->memory);
    pc_replay_free(&iteration->replay);
    pc_block_free(&iteration->block);
    pc_free(iteration->sample_ps);
    memset(iteration, 0, sizeof *iteration);
}

pc_code pc_iteration_costs(const pc_iteration_spec *spec, const pc_cost_model *cost, pc_costs *costs, pc_error *error) {
    pc_outline outline;
    pc_code code = pc_iteration_spec_check(spec, error);
    if (!code) code = pc_outline_check(spec, error);
    if (!code) code = pc_outline_make(spec, cost, &outline, error);
    if (code) return code;
    pc_samples_limit_memory(&outline);
    code = pc_outline_costs(&outline, 0, costs, error);
    pc_outline_free(&outline);
    return code;
}
