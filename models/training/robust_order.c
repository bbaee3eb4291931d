#include "models/training/robust_order.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "engine/random.h"
#include "models/schedule/least_span.h"
#include "models/training/sample.h"
#include "models/training/scatter.h"

enum { DRAWS = 1000, SAMPLES_LEAST = 200, SAMPLES_MOST = 1000 }; /* to judge pipelines by, and iterations */

/* Seeds of draws that no sample of the run has. */
enum { OF_PIPELINES = 1, OF_ITERATIONS = 2 };

static uint64_t seed_of(const pc_iteration_spec *spec, int what) {
    return pc_seed_of(pc_seed_of(spec->seed) ^ (PC_GOLDEN * (uint64_t)what));
}

/* Of one pipeline. Replicas wait for the one with the slow GPU, so that there is a slow stage in every draw; of several
 * slow GPUs most are in other replicas. */
static pc_scatter scatter_of(const pc_iteration_spec *spec) {
    const pc_bad_days *days = &spec->bad_days;
    return (pc_scatter){.jitter = spec->jitter,
                        .passes = days->passes,
                        .gpu_jitter = days->gpu_jitter,
                        .gpus = spec->cut.tp * pc_cut_cp(&spec->cut),
                        .link_jitter = days->link_jitter,
                        .has_slow = days->has_slow_stage || days->slow_gpus > 0,
                        .slow_stage = days->has_slow_stage ? days->slow_stage : -1,
                        .slow_factor = days->slow_factor,
                        .seed = seed_of(spec, OF_PIPELINES)};
}

bool pc_robust_order_is_wanted(const pc_outline *outline) {
    const pc_iteration_spec *spec = outline->spec;
    pc_scatter scatter = scatter_of(spec);
    return spec->bad_days.robust && spec->bad_days.samples > 0 && spec->generator->searches &&
           spec->making == PC_MAKING_COSTS && !spec->waits_for_memory && outline->devices > 1 &&
           pc_scatter_varies(&scatter);
}

/* ---- one pipeline ---- */

/* What the name allows, if there is room for it. Where B takes more than F kept, a name limits what F keep, and nothing
 * says in bytes what that comes to (generate_recomputed.c): then it is what the good day's order holds, of all devices
 * the most. */
static void find_limits(const pc_outline *outline, const pc_order_given *given, int64_t *limits) {
    const pc_generator *generator = outline->spec->generator;
    pc_generate_request request = pc_outline_request(outline, given->costs);
    bool is_held = !generator->adapts && given->costs->recomputes_in_b;
    if (generator->adapts) request.memory_limit = (pc_memory_limit){given->room_bytes};
    pc_least_span_limits(generator, &request, given->replay, limits);
    for (int d = 0; d < outline->devices; d++)
        limits[d] = pc_min(is_held ? given->replay->peak_bytes : limits[d], given->room_bytes[d]);
}

static pc_code look(const pc_outline *outline, const pc_order_given *given, const int64_t *limits, pc_robust goal,
                    pc_schedule *other, bool *is_other, pc_error *error) {
    const pc_iteration_spec *spec = outline->spec;
    const pc_scatter scatter = scatter_of(spec);
    pc_robustness found;
    pc_robust_request request = {.schedule = given->schedule,
                                 .costs = given->costs,
                                 .memory_limit = {limits},
                                 .goal = goal,
                                 .samples = DRAWS,
                                 .threads = spec->threads > 0 ? spec->threads : 1,
                                 .memo = given->memo};
    pc_scatter_fill_request(&scatter, &request);
    pc_code code = pc_schedule_robust(&request, other, &found, error);
    if (code) return code;
    *is_other = found.is_changed;
    if (!*is_other) pc_schedule_free(other);
    pc_robustness_free(&found);
    return PC_OK;
}

/* ---- the iteration ---- */

/* What the spec asks to be small, of samples that the run does not report. */
static pc_code judge(const pc_outline *outline, const pc_schedule *schedule, double *seconds, pc_error *error) {
    pc_iteration_spec spec = *outline->spec;
    pc_outline judged = *outline;
    pc_iteration iteration = {0};
    spec.seed = seed_of(&spec, OF_ITERATIONS);
    spec.bad_days.samples = pc_min(pc_max(spec.bad_days.samples, (int64_t)SAMPLES_LEAST), (int64_t)SAMPLES_MOST);
    judged.spec = &spec;
    pc_code code = pc_samples_run(&judged, schedule, &iteration, error);
    if (code) return code;
    *seconds = spec.bad_days.robust == PC_ROBUST_P95 ? iteration.bad_days.iteration_p95_s.value
                                                     : iteration.bad_days.iteration_mean_s;
    pc_free(iteration.sample_ps);
    return PC_OK;
}

/* Looks with one goal; *other becomes what is found where that is better than *least_s, which becomes its own then. */
static pc_code try_goal(const pc_outline *outline, const pc_order_given *given, const int64_t *limits, pc_robust goal,
                        double *least_s, pc_schedule *other, bool *is_other, pc_error *error) {
    pc_schedule found;
    bool is_found;
    double seconds = 0;
    pc_code code = look(outline, given, limits, goal, &found, &is_found, error);
    if (code || !is_found) return code;
    code = judge(outline, &found, &seconds, error);
    if (code || seconds >= *least_s) {
        pc_schedule_free(&found);
        return code;
    }
    if (*is_other) pc_schedule_free(other);
    *other = found;
    *least_s = seconds;
    *is_other = true;
    return PC_OK;
}

/* A pipeline's mean and the mean of iterations are two things where the slowest of several replicas counts: then both
 * goals are tried. */
pc_code pc_robust_order_find(const pc_outline *outline, const pc_order_given *given, pc_schedule *other, bool *is_other,
                             pc_error *error) {
    const pc_robust asked = outline->spec->bad_days.robust;
    const pc_robust goals[] = {asked, asked == PC_ROBUST_MEAN ? PC_ROBUST_P95 : PC_ROBUST_MEAN};
    int64_t *limits = pc_alloc((size_t)outline->devices, sizeof *limits);
    double least_s = 0;
    *is_other = false;
    if (!limits) return pc_error_no_memory(error);
    find_limits(outline, given, limits);
    pc_code code = judge(outline, given->schedule, &least_s, error);
    for (int i = 0; i < (outline->cut.dp > 1 ? 2 : 1) && !code; i++)
        code = try_goal(outline, given, limits, goals[i], &least_s, other, is_other, error);
    pc_free(limits);
    if (code && *is_other) pc_schedule_free(other);
    return code;
}
