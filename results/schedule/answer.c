/* The work: limits and costs, the schedule made or loaded, improved and replayed. */
#include "results/schedule/schedule_private.h"

#include "engine/alloc.h"
#include "engine/clock.h"
#include "models/schedule/exchange.h"
#include "models/schedule/given.h"
#include "models/schedule/least_span.h"
#include "results/figures/figure.h"
#include "scenarios/block_file.h"

#include <inttypes.h>

enum { SAMPLES_USUAL = 1000 };

void pc_schedule_answer_free(pc_schedule_answer *a) {
    pc_steady_free(&a->steady);
    pc_replay_free(&a->replay);
    pc_improvement_free(&a->improvement);
    pc_robustness_free(&a->robustness);
    pc_block_free(&a->block);
    pc_schedule_free(&a->schedule);
    pc_costs_free(&a->costs);
    pc_given_block_free(a->given);
    pc_free(a->limit);
    pc_free(a->slice_shares);
    pc_free(a->limit_bytes);
}

/* ---- the work ---- */

/* Of what was asked for and what a file has. */
static pc_code expect(const pc_schedule_request *r, const char *what, int64_t given, int64_t found, pc_error *error) {
    if (given == 0 || given == found) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %" PRId64 " %s; expected the %" PRId64 " that %s", r->name, found,
                        what, given, r->is_command ? "the command line says" : "were asked for");
}

static pc_code load(const pc_schedule_request *r, pc_schedule *schedule, pc_error *error) {
    pc_code code = pc_schedule_load(r->name, schedule, error);
    if (code) return code;
    code = expect(r, "devices", r->devices, schedule->devices, error);
    if (!code) code = expect(r, "microbatches", r->microbatches, schedule->microbatches, error);
    if (!code) code = expect(r, "chunks", r->chunks, schedule->chunks, error);
    if (code) pc_schedule_free(schedule);
    return code;
}

static bool keeps_grid(const pc_schedule_answer *a) {
    return a->given && pc_given_block_draft(a->given)->steps == PC_BLOCK_NONE;
}

/* On a grid nothing is left to wait for, for events to say, or to improve. */
static pc_code refuse_on_grid(const pc_schedule_answer *a, pc_error *error) {
    const pc_schedule_request *r = &a->request;
    bool draws = pc_schedule_request_draws_times(r);
    pc_schedule_option option = r->improves                   ? PC_ASK_IMPROVE
                                : r->waits_for_memory         ? PC_ASK_OUT_OF_MEMORY
                                : r->engine != PC_ENGINE_AUTO ? PC_ASK_ENGINE
                                                              : PC_SCHEDULE_OPTIONS;
    const char *value = option == PC_ASK_OUT_OF_MEMORY ? ": wait" : option == PC_ASK_ENGINE ? ": events" : "";
    if (!keeps_grid(a) || (option == PC_SCHEDULE_OPTIONS && !draws)) return PC_OK;
    bool is_drawn = draws && option != PC_ASK_IMPROVE;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s%s, of a block with steps none, whose passes start where their cells do; expected %s "
                        "squeeze or reorder",
                        is_drawn ? "times that are drawn" : pc_schedule_option_name(r, option), is_drawn ? "" : value,
                        pc_schedule_option_name(r, PC_ASK_BLOCK_STEPS));
}

/* A file's order is its own, as that of a block, and of a name that does not search, unless it is improved. */
static pc_code check_goal_of_file(const pc_schedule_request *r, const char *whose, pc_error *error) {
    if (r->goal == PC_GOAL_SPAN || r->improves) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: goal %s: the order is the %s's; expected a name, or %s", r->name,
                        pc_goal_names[r->goal], whose, pc_schedule_option_name(r, PC_ASK_IMPROVE));
}

/* A block that is for one number of devices says which. */
static pc_code open_block(pc_schedule_answer *a, pc_error *error) {
    pc_schedule_request *r = &a->request;
    pc_code code = pc_block_file_read(r->block, &a->given, error);
    if (!code && r->block_steps >= 0) code = pc_given_block_set_steps(a->given, (pc_block_steps)r->block_steps, error);
    if (!code) code = refuse_on_grid(a, error);
    if (code) return code;
    a->generator = pc_given_block_generator(a->given);
    r->name = a->generator->name;
    if (r->devices == 0) r->devices = a->generator->given->devices;
    return check_goal_of_file(r, "block", error);
}

static pc_code find_named(pc_schedule_answer *a, pc_error *error) {
    const pc_schedule_request *r = &a->request;
    char names[512], hint[PC_NEAREST_TEXT];
    a->generator = pc_generator_find(r->name);
    if (a->generator) return PC_OK;
    pc_generator_names(names, sizeof names);
    return pc_error_set(error, PC_ERROR_INPUT, "unknown schedule '%s'%s; expected %s, a FILE.csv, or %s", r->name,
                        pc_generator_hint(r->name, hint), names,
                        r->is_command ? "--block FILE" : "a block's FILE.yaml");
}

static pc_code refuse_missing(const pc_schedule_request *r, pc_schedule_option option, pc_error *error) {
    const char *name = pc_schedule_option_name(r, option);
    return pc_error_set(error, PC_ERROR_INPUT, "schedule: %s is missing; expected %s%s", name, name,
                        !r->is_command             ? ", a whole number"
                        : option == PC_ASK_DEVICES ? " DEVICES"
                                                   : " MICROBATCHES");
}

static pc_code find_generator(pc_schedule_answer *a, pc_error *error) {
    const pc_schedule_request *r = &a->request;
    pc_code code = r->block ? open_block(a, error) : find_named(a, error);
    if (!code) code = pc_schedule_take_slices(a, a->generator, error);
    if (code) return code;
    if (r->devices == 0) return refuse_missing(r, PC_ASK_DEVICES, error);
    if (r->microbatches == 0) return refuse_missing(r, PC_ASK_MICROBATCHES, error);
    code = pc_generator_check(a->generator, r->devices, r->microbatches, r->chunks, error);
    if (!code) code = pc_generator_check_making(a->generator, r->making, error);
    return code || r->improves ? code : pc_generator_check_goal(a->generator, r->making, r->goal, error);
}

static pc_unit_shape shape_of(const pc_schedule_request *r, const pc_generator *generator) {
    return (pc_unit_shape){.devices = (int)r->devices,
                           .microbatches = (int)r->microbatches,
                           .chunks = (int)pc_generator_chunks(generator, r->chunks, r->slices),
                           .placement = pc_generator_placement(generator, r->chunks, r->slices),
                           .recomputes = generator->recomputes,
                           .barriers = generator->barriers};
}

static pc_code check_part_times(const pc_schedule_request *r, const pc_unit_shape *shape, pc_error *error) {
    if (pc_unit_costs_suit(&r->units, shape)) return PC_OK;
    int parts = pc_placement_parts(shape->placement, shape->devices, shape->chunks);
    if (parts == shape->devices)
        return pc_schedule_refuse(r, PC_ASK_TIMES, error,
                                  "%d times F,B,W; expected one for all, or one for each of %d stages",
                                  r->units.part_count, parts);
    return pc_schedule_refuse(
        r, PC_ASK_TIMES, error,
        "%d times F,B,W; expected one for all, one for each of %d stages, or one for each of %d parts of the model",
        r->units.part_count, shape->devices, parts);
}

/* Costs and limits for the shape. */
static pc_code prepare(const pc_unit_shape *shape, pc_schedule_answer *a, pc_error *error) {
    const pc_schedule_request *r = &a->request;
    if (r->times_file) {
        pc_code code = pc_schedule_prepare_measured(shape, a, error);
        return code ? code : pc_schedule_read_limits(a, shape->devices, error);
    }
    pc_code code = check_part_times(r, shape, error);
    if (code) return code;
    a->report.time_unit_ps = pc_unit_ticks(&r->units, shape);
    if (a->report.time_unit_ps == 0.0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s, %s: too large or too far apart; expected all passes together to last less than 10^18 "
                            "times the shortest of them",
                            pc_schedule_option_name(r, PC_ASK_TIMES), pc_schedule_option_name(r, PC_ASK_COMM));
    a->report.microbatch_bytes = (double)PC_UNIT_CHUNK_BYTES * pc_placement_visited(shape->placement, shape->chunks);
    code = pc_schedule_read_limits(a, shape->devices, error);
    return code ? code : pc_unit_costs_make(&r->units, shape, a->report.time_unit_ps, &a->costs, error);
}

/* A block keeps to the memory that it holds repeated, which is judged when that is known. A table tells of one's own.
 */
static pc_code generate(pc_schedule_answer *a, pc_error *error) {
    const pc_schedule_request *r = &a->request;
    pc_generate_request request = {.devices = r->devices,
                                   .microbatches = r->microbatches,
                                   .chunks = r->chunks,
                                   .slices = r->slices,
                                   .costs = &a->costs,
                                   .making = r->making,
                                   .goal = a->given || r->making != PC_MAKING_COSTS ? PC_GOAL_SPAN : r->goal};
    bool wants_block = a->given || r->figure || r->wants_block;
    if (!a->given) request.memory_limit = pc_schedule_limit(a);
    return pc_generate(a->generator, &request, &a->schedule, wants_block ? &a->block : NULL, error);
}

/* Likewise. */
static pc_code check_making_of_file(const pc_schedule_request *r, pc_error *error) {
    if (r->making <= PC_MAKING_PUBLISHED) return check_goal_of_file(r, "file", error);
    return pc_error_set(error, PC_ERROR_INPUT, "%s: making %s: the order is the file's; expected a name", r->name,
                        pc_making_names[r->making]);
}

/* Makes or loads the schedule. */
static pc_code make(pc_schedule_answer *a, pc_error *error) {
    const pc_schedule_request *r = &a->request;
    pc_unit_shape shape;
    if (!r->block && pc_schedule_is_file(r->name)) {
        pc_code code = check_making_of_file(r, error);
        if (!code) code = pc_schedule_take_slices(a, NULL, error);
        if (!code) code = load(r, &a->schedule, error);
        if (code) return code;
        shape = pc_unit_shape_of(&a->schedule);
        return prepare(&shape, a, error);
    }
    pc_code code = find_generator(a, error);
    if (code) return code;
    shape = shape_of(r, a->generator);
    code = prepare(&shape, a, error);
    if (!code && a->generator->searches && !a->given) code = pc_schedule_check_limits(a, a->generator, error);
    return code ? code : generate(a, error);
}

/* Another order takes the place of the one that was made or loaded, and what it repeats that of the block. */
static pc_code replace_order(pc_schedule_answer *a, pc_schedule *other, bool is_changed, pc_error *error) {
    pc_schedule_free(&a->schedule);
    a->schedule = *other;
    if (!is_changed) return PC_OK;
    pc_block_free(&a->block);
    return pc_block_of_schedule(&a->schedule, &a->block, error);
}

static pc_code improve(pc_schedule_answer *a, pc_error *error) {
    const pc_improve_request request = {
        .schedule = &a->schedule, .costs = &a->costs, .memory_limit = pc_schedule_limit(a), .goal = a->request.goal};
    pc_generator like = pc_generator_of_given(a->schedule.name, a->schedule.placement, a->schedule.chunks, NULL);
    pc_schedule improved;
    pc_code code = pc_improve_check(&a->schedule, error);
    if (!code) code = pc_schedule_check_limits(a, &like, error);
    if (!code) code = pc_schedule_improve(&request, &improved, &a->improvement, error);
    return code ? code : replace_order(a, &improved, a->improvement.is_changed, error);
}

/* Within what the schedule's name, the memory limit or the order itself limits each device to, in `limits`. */
static pc_code make_robust_within(pc_schedule_answer *a, int64_t *limits, pc_error *error) {
    const pc_schedule_request *r = &a->request;
    const pc_generate_request limited = {.costs = &a->costs, .memory_limit = pc_schedule_limit(a)};
    pc_robust_request request = {.schedule = &a->schedule,
                                 .costs = &a->costs,
                                 .goal = r->robust,
                                 .samples = r->samples < 0 ? SAMPLES_USUAL : r->samples,
                                 .memory_limit = {limits}};
    pc_replay given;
    pc_schedule chosen;
    pc_scatter_fill_request(&r->scatter, &request);
    pc_code code = pc_replay_run(&a->schedule, &a->costs, NULL, &given, error);
    if (code) return code;
    pc_least_span_limits(a->generator, &limited, &given, limits);
    pc_replay_free(&given);
    code = pc_schedule_robust(&request, &chosen, &a->robustness, error);
    return code ? code : replace_order(a, &chosen, a->robustness.is_changed, error);
}

static pc_code make_robust(pc_schedule_answer *a, pc_error *error) {
    const pc_schedule_request *r = &a->request;
    int devices = a->schedule.devices;
    if (r->slow_stage >= devices)
        return pc_schedule_refuse(r, PC_ASK_SLOW_STAGE, error, "%" PRId64 " of %d devices; expected at most %d",
                                  r->slow_stage, devices, devices - 1);
    int64_t *limits = pc_alloc((size_t)devices, sizeof *limits);
    pc_code code = limits ? make_robust_within(a, limits, error) : pc_error_no_memory(error);
    pc_free(limits);
    return code;
}

/* A block that is left as it is keeps to its grid. */
pc_code pc_schedule_answer_replay(const pc_schedule_answer *a, bool with_trace, pc_replay *replay, pc_error *error) {
    const pc_replay_options how = {.with_trace = with_trace,
                                   .engine = a->request.engine,
                                   .waits_for_memory = a->request.waits_for_memory,
                                   .memory_limit = pc_schedule_limit_of_replay(a)};
    if (keeps_grid(a)) return pc_given_block_replay(a->given, &a->schedule, &a->costs, with_trace, replay, error);
    return pc_replay_run(&a->schedule, &a->costs, &how, replay, error);
}

/* On a grid passes start later than they could, and take as long as cells. An improvement has found the bound. */
pc_code pc_schedule_answer_bound(const pc_schedule_answer *a, pc_time *bound_ps, pc_error *error) {
    const pc_generate_request request = {
        .microbatches = a->schedule.microbatches, .costs = &a->costs, .memory_limit = pc_schedule_limit(a)};
    *bound_ps = a->request.improves ? a->improvement.bound_ps : PC_TIME_NOT_GIVEN;
    if (a->request.improves || keeps_grid(a)) return PC_OK;
    int64_t *limits = pc_alloc((size_t)a->schedule.devices, sizeof *limits);
    if (!limits) return pc_error_no_memory(error);
    pc_least_span_limits(a->generator, &request, &a->replay, limits);
    pc_code code = pc_schedule_least_span(&a->schedule, &a->costs, (pc_memory_limit){limits}, bound_ps, error);
    pc_free(limits);
    return code;
}

pc_code pc_schedule_answer_judge(pc_schedule_answer *a, pc_error *error) {
    if (a->is_judged || keeps_grid(a)) return PC_OK;
    pc_code code = pc_schedule_answer_bound(a, &a->report.bound_ps, error);
    if (!code) code = pc_steady_find(&a->schedule, &a->costs, &a->steady, error);
    a->is_judged = !code;
    pc_schedule_link_report(a);
    return code;
}

/* What a search for the order minimised; NULL: there was none. */
static const char *goal_of(const pc_schedule_answer *a) {
    const pc_schedule_request *r = &a->request;
    bool is_searched = r->improves || (a->generator && pc_generator_has_goal(a->generator, r->making));
    return is_searched ? pc_goal_names[r->goal] : NULL;
}

void pc_schedule_link_report(pc_schedule_answer *a) {
    pc_schedule_report *report = &a->report;
    report->schedule = &a->schedule;
    report->costs = &a->costs;
    report->replay = &a->replay;
    report->block = a->block.devices ? &a->block : NULL;
    report->improvement = a->request.improves ? &a->improvement : NULL;
    report->steady = a->steady.microbatches ? &a->steady : NULL;
    report->robustness = pc_schedule_request_draws_times(&a->request) ? &a->robustness : NULL;
}

static void fill_report(pc_schedule_answer *a) {
    const pc_schedule_request *r = &a->request;
    pc_schedule_link_report(a);
    a->report.describes_block = a->given != NULL;
    a->report.keeps_grid = keeps_grid(a);
    a->report.goal = goal_of(a);
    a->report.has_part_times = r->units.part_count > 0 || r->times_file;
    a->report.memory_limit = r->memory_limit ? a->limit : NULL;
    a->report.bound_ps = r->improves ? a->improvement.bound_ps : PC_TIME_NOT_GIVEN;
}

pc_code pc_schedule_work_out(pc_schedule_answer *a, pc_error *error) {
    const pc_schedule_request *r = &a->request;
    double start = pc_now_s();
    pc_code code = r->figure ? pc_figure_check_path(r->figure, error) : PC_OK;
    if (!code) code = make(a, error);
    if (!code && r->improves) code = improve(a, error);
    if (!code && pc_schedule_request_draws_times(r)) code = make_robust(a, error);
    if (!code && r->figure) code = pc_figure_check_size(r->figure, a->schedule.offsets[a->schedule.devices], error);
    if (code) return code;
    double made = pc_now_s();
    code = pc_schedule_answer_replay(a, r->figure != NULL, &a->replay, error);
    if (!code && a->replay.out_of_memory) code = pc_schedule_refuse_standstill(a, error);
    fill_report(a);
    a->report.generate_s = made - start;
    a->report.replay_s = pc_now_s() - made;
    return code;
}

pc_code pc_schedule_answer_find(const pc_schedule_request *r, pc_schedule_answer *a, pc_error *error) {
    a->request = *r;
    return pc_schedule_asks_for_best(r) ? pc_schedule_find_best(r, a, error) : pc_schedule_work_out(a, error);
}
