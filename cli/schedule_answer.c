/* The work of `pipecast schedule`: limits and costs, the schedule made or loaded, improved and replayed. */
#include "cli/schedule_answer.h"

#include "engine/alloc.h"
#include "engine/clock.h"
#include "models/schedule/exchange.h"
#include "models/schedule/given.h"
#include "models/schedule/least_span.h"
#include "results/figures/figure.h"
#include "scenarios/block_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_USUAL = 1000 };

/* ---- memory limits ---- */

static pc_code read_limit(const char *word, double *limit, pc_error *error) {
    char *end;
    *limit = strtod(word, &end);
    if (end != word && *end == '\0' && *limit >= 0.0) return PC_OK; /* not a NaN either */
    return pc_error_set(error, PC_ERROR_INPUT, "--memory-limit: '%s'; expected a number from 0 up, or one a device",
                        word);
}

static pc_code read_limits(const schedule_request *r, char *text, int devices, double *limit, pc_error *error) {
    int count = 0;
    for (char *word; (word = strsep(&text, ",")); count++) {
        double number;
        int device = count < devices ? count : 0;
        pc_code code =
            counts_bytes(r) ? read_size_limit(r, word, device, &number, error) : read_limit(word, &number, error);
        if (code) return code;
        if (count < devices) limit[count] = number;
    }
    if (count != 1 && count != devices)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "--memory-limit: %d numbers; expected one, or one for each of %d devices", count, devices);
    pc_code code = PC_OK;
    for (int d = 1; d < devices && count == 1 && !code; d++) {
        limit[d] = limit[0];
        if (counts_bytes(r)) code = read_size_limit(r, r->memory_limit, d, &limit[d], error); /* less what it holds */
    }
    return code;
}

/* Of every device, in microbatches, into limit[0 .. devices-1]: infinite where none was given. */
static pc_code read_limits_of(const schedule_request *r, int devices, double *limit, pc_error *error) {
    for (int d = 0; d < devices; d++) limit[d] = INFINITY;
    if (!r->memory_limit) return PC_OK;
    char *copy = strdup(r->memory_limit);
    if (!copy) return pc_error_no_memory(error);
    pc_code code = read_limits(r, copy, devices, limit, error);
    free(copy);
    return code;
}

void free_answer(answer *a) {
    pc_steady_free(&a->steady);
    pc_replay_free(&a->replay);
    pc_improvement_free(&a->improvement);
    pc_robustness_free(&a->robustness);
    pc_block_free(&a->block);
    pc_schedule_free(&a->schedule);
    pc_costs_free(&a->costs);
    pc_given_block_free(a->given);
    pc_free(a->limit);
    pc_free(a->limit_bytes);
}

static pc_memory_limit limit_of(const answer *a) {
    return (pc_memory_limit){a->limit_bytes};
}

/* Where nothing waits, the replay is to say what the schedule needs, not where it stops. */
pc_memory_limit limit_of_replay(const answer *a) {
    return a->request->waits_for_memory ? limit_of(a) : (pc_memory_limit){NULL};
}

double in_microbatches(const answer *a, int64_t bytes) {
    return (double)bytes / a->report.microbatch_bytes;
}

/* ---- the work ---- */

static pc_code expect(const char *name, const char *what, int64_t given, int64_t found, pc_error *error) {
    if (given == 0 || given == found) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: %" PRId64 " %s; expected the %" PRId64 " that the command line says", name, found, what,
                        given);
}

static pc_code load(const schedule_request *r, pc_schedule *schedule, pc_error *error) {
    pc_code code = pc_schedule_load(r->name, schedule, error);
    if (code) return code;
    code = expect(r->name, "devices", r->devices, schedule->devices, error);
    if (!code) code = expect(r->name, "microbatches", r->microbatches, schedule->microbatches, error);
    if (!code) code = expect(r->name, "chunks", r->chunks, schedule->chunks, error);
    if (code) pc_schedule_free(schedule);
    return code;
}

static bool keeps_grid(const answer *a) {
    return a->given && pc_given_block_draft(a->given)->steps == PC_BLOCK_NONE;
}

/* Whether times are drawn. */
bool draws_times(const schedule_request *r) {
    return pc_scatter_varies(&r->scatter);
}

/* On a grid nothing is left to wait for, for events to say, or to improve. */
static pc_code refuse_on_grid(const schedule_request *r, const answer *a, pc_error *error) {
    const char *option = r->improves                   ? "--improve"
                         : draws_times(r)              ? "times that are drawn"
                         : r->waits_for_memory         ? "--out-of-memory: wait"
                         : r->engine != PC_ENGINE_AUTO ? "--engine: events"
                                                       : NULL;
    if (!keeps_grid(a) || !option) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s, of a block with steps none, whose passes start where their cells do; expected "
                        "--block-steps squeeze or reorder",
                        option);
}

/* A file's order is its own, as that of a block, and of a name that does not search, unless it is improved. */
static pc_code check_goal_of_file(const schedule_request *r, const char *whose, pc_error *error) {
    if (r->goal == PC_GOAL_SPAN || r->improves) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: goal %s: the order is the %s's; expected a name, or --improve",
                        r->name, pc_goal_names[r->goal], whose);
}

/* A block that is for one number of devices says which. */
static pc_code open_block(schedule_request *r, answer *a, const pc_generator **generator, pc_error *error) {
    pc_code code = pc_block_file_read(r->block, &a->given, error);
    if (!code && r->block_steps >= 0) code = pc_given_block_set_steps(a->given, (pc_block_steps)r->block_steps, error);
    if (!code) code = refuse_on_grid(r, a, error);
    if (code) return code;
    *generator = pc_given_block_generator(a->given);
    r->name = (*generator)->name;
    if (r->devices == 0) r->devices = (*generator)->given->devices;
    return check_goal_of_file(r, "block", error);
}

static pc_code find_named(const schedule_request *r, const pc_generator **generator, pc_error *error) {
    *generator = pc_generator_find(r->name);
    if (*generator) return PC_OK;
    char names[512], hint[PC_NEAREST_TEXT];
    pc_generator_names(names, sizeof names);
    return pc_error_set(error, PC_ERROR_INPUT, "unknown schedule '%s'%s; expected %s, a FILE.csv, or --block FILE",
                        r->name, pc_generator_hint(r->name, hint), names);
}

static pc_code find_generator(schedule_request *r, answer *a, const pc_generator **generator, pc_error *error) {
    pc_code code = r->block ? open_block(r, a, generator, error) : find_named(r, generator, error);
    if (code) return code;
    code = take_slices(r, *generator, error);
    if (code) return code;
    if (r->devices == 0 || r->microbatches == 0)
        return pc_error_set(error, PC_ERROR_INPUT, "schedule: %s is missing; expected %s",
                            r->devices == 0 ? "-p" : "-m", r->devices == 0 ? "-p DEVICES" : "-m MICROBATCHES");
    code = pc_generator_check(*generator, r->devices, r->microbatches, r->chunks, error);
    if (!code) code = pc_generator_check_making(*generator, r->making, error);
    return code || r->improves ? code : pc_generator_check_goal(*generator, r->making, r->goal, error);
}

static pc_unit_shape shape_of(const schedule_request *r, const pc_generator *generator) {
    return (pc_unit_shape){.devices = (int)r->devices,
                           .microbatches = (int)r->microbatches,
                           .chunks = (int)pc_generator_chunks(generator, r->chunks, r->slices),
                           .placement = pc_generator_placement(generator, r->chunks, r->slices),
                           .recomputes = generator->recomputes,
                           .barriers = generator->barriers};
}

static pc_unit_shape shape_of_loaded(const pc_schedule *schedule) {
    return (pc_unit_shape){.devices = schedule->devices,
                           .microbatches = schedule->microbatches,
                           .chunks = schedule->chunks,
                           .placement = schedule->placement,
                           .recomputes = pc_schedule_has(schedule, PC_PASS_R),
                           .barriers = schedule->barriers};
}

/* In bytes; what no memory has is no limit. */
static pc_code count_limits(const schedule_request *r, int devices, answer *a, pc_error *error) {
    if (!r->memory_limit) return PC_OK;
    a->limit_bytes = pc_alloc((size_t)devices, sizeof *a->limit_bytes);
    if (!a->limit_bytes) return pc_error_no_memory(error);
    for (int d = 0; d < devices; d++)
        a->limit_bytes[d] = a->limit[d] < 0.0   ? 0
                            : a->limit[d] < 1e9 ? (int64_t)(a->limit[d] * a->report.microbatch_bytes)
                                                : PC_NO_LIMIT;
    return PC_OK;
}

static pc_code prepare_limits(const schedule_request *r, int devices, answer *a, pc_error *error) {
    a->limit = pc_alloc((size_t)devices, sizeof *a->limit);
    if (!a->limit) return pc_error_no_memory(error);
    pc_code code = read_limits_of(r, devices, a->limit, error);
    return code ? code : count_limits(r, devices, a, error);
}

static pc_code check_part_times(const schedule_request *r, const pc_unit_shape *shape, pc_error *error) {
    if (pc_unit_costs_suit(&r->units, shape)) return PC_OK;
    int parts = pc_placement_parts(shape->placement, shape->devices, shape->chunks);
    if (parts == shape->devices)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "--times: %d times F,B,W; expected one for all, or one for each of %d stages",
                            r->units.part_count, parts);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "--times: %d times F,B,W; expected one for all, one for each of %d stages, or one for each of "
                        "%d parts of the model",
                        r->units.part_count, shape->devices, parts);
}

/* Costs and limits for the shape. */
static pc_code prepare(const schedule_request *r, const pc_unit_shape *shape, answer *a, pc_error *error) {
    if (r->times_file) {
        pc_code code = prepare_measured(r, shape, a, error);
        return code ? code : prepare_limits(r, shape->devices, a, error);
    }
    pc_code code = check_part_times(r, shape, error);
    if (code) return code;
    a->report.time_unit_ps = pc_unit_ticks(&r->units, shape);
    if (a->report.time_unit_ps == 0.0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "--times, --comm: too large or too far apart; expected all passes together to last less "
                            "than 10^18 times the shortest of them");
    a->report.microbatch_bytes = (double)PC_UNIT_CHUNK_BYTES * pc_placement_visited(shape->placement, shape->chunks);
    code = prepare_limits(r, shape->devices, a, error);
    return code ? code : pc_unit_costs_make(&r->units, shape, a->report.time_unit_ps, &a->costs, error);
}

/* EXIT_DID_NOT_FIT where no schedule can keep the limit. */
static int check_limits(const answer *a, const pc_generator *generator) {
    for (int d = 0; d < a->costs.devices; d++) {
        int64_t least = pc_generator_least_memory(generator, &a->costs, d);
        if (in_microbatches(a, least) > a->limit[d]) return report_too_little(a, d, in_microbatches(a, least));
    }
    return EXIT_DONE;
}

/* Where the block that the schedule repeats is to be read or drawn: to find it takes as long as to replay the schedule.
 * A table tells of one's own. */
static bool wants_block(const answer *a) {
    return a->given || a->request->figure || a->request->format == FORMAT_JSON || a->request->format == FORMAT_BLOCK;
}

/* A block keeps to the memory that it holds repeated, which is judged when that is known. */
static pc_code generate(const schedule_request *r, const pc_generator *generator, answer *a, pc_error *error) {
    pc_generate_request request = {.devices = r->devices,
                                   .microbatches = r->microbatches,
                                   .chunks = r->chunks,
                                   .slices = r->slices,
                                   .costs = &a->costs,
                                   .making = r->making,
                                   .goal = a->given || r->making != PC_MAKING_COSTS ? PC_GOAL_SPAN : r->goal};
    if (!a->given) request.memory_limit = limit_of(a);
    return pc_generate(generator, &request, &a->schedule, wants_block(a) ? &a->block : NULL, error);
}

/* Likewise. */
static pc_code check_making_of_file(const schedule_request *r, pc_error *error) {
    if (r->making <= PC_MAKING_PUBLISHED) return check_goal_of_file(r, "file", error);
    return pc_error_set(error, PC_ERROR_INPUT, "%s: making %s: the order is the file's; expected a name", r->name,
                        pc_making_names[r->making]);
}

/* Where people or programs are to read of what the order comes to. On a grid passes start later than they could, and
 * take as long as cells. */
static bool wants_judgement(const answer *a) {
    return (a->request->format == FORMAT_TABLE || a->request->format == FORMAT_JSON) && !keeps_grid(a);
}

/* `generator` is NULL for a schedule from a file. */
static pc_code find_bound(const pc_generator *generator, answer *a, pc_error *error) {
    const pc_generate_request request = {
        .microbatches = a->schedule.microbatches, .costs = &a->costs, .memory_limit = limit_of(a)};
    a->report.bound_ps = a->request->improves ? a->improvement.bound_ps : PC_TIME_NOT_GIVEN;
    if (!wants_judgement(a) || a->request->improves) return PC_OK;
    int64_t *limits = pc_alloc((size_t)a->schedule.devices, sizeof *limits);
    if (!limits) return pc_error_no_memory(error);
    pc_least_span_limits(generator, &request, &a->replay, limits);
    pc_code code =
        pc_schedule_least_span(&a->schedule, &a->costs, (pc_memory_limit){limits}, &a->report.bound_ps, error);
    pc_free(limits);
    return code;
}

/* Makes or loads the schedule; *generator stays NULL for a file. *status is EXIT_DID_NOT_FIT where that cannot be,
 * which has been said then. */
static pc_code make(schedule_request *r, answer *a, const pc_generator **generator, int *status, pc_error *error) {
    pc_unit_shape shape;
    if (!r->block && pc_schedule_is_file(r->name)) {
        pc_code code = check_making_of_file(r, error);
        if (!code) code = take_slices(r, NULL, error);
        if (!code) code = load(r, &a->schedule, error);
        if (code) return code;
        shape = shape_of_loaded(&a->schedule);
        return prepare(r, &shape, a, error);
    }
    pc_code code = find_generator(r, a, generator, error);
    if (code) return code;
    shape = shape_of(r, *generator);
    code = prepare(r, &shape, a, error);
    if (!code && (*generator)->searches && !a->given) *status = check_limits(a, *generator);
    return code || *status != EXIT_DONE ? code : generate(r, *generator, a, error);
}

/* Another order takes the place of the one that was made or loaded, and what it repeats that of the block. */
static pc_code replace_order(answer *a, pc_schedule *other, bool is_changed, pc_error *error) {
    pc_schedule_free(&a->schedule);
    a->schedule = *other;
    if (!is_changed) return PC_OK;
    pc_block_free(&a->block);
    return pc_block_of_schedule(&a->schedule, &a->block, error);
}

static pc_code improve(answer *a, int *status, pc_error *error) {
    const pc_improve_request request = {
        .schedule = &a->schedule, .costs = &a->costs, .memory_limit = limit_of(a), .goal = a->request->goal};
    pc_generator like = pc_generator_of_given(a->schedule.name, a->schedule.placement, a->schedule.chunks, NULL);
    pc_schedule improved;
    pc_code code = pc_improve_check(&a->schedule, error);
    if (code) return code;
    *status = check_limits(a, &like);
    if (*status != EXIT_DONE) return PC_OK;
    code = pc_schedule_improve(&request, &improved, &a->improvement, error);
    return code ? code : replace_order(a, &improved, a->improvement.is_changed, error);
}

/* Within what the schedule's name, --memory-limit or the order itself limits each device to. */
static pc_code make_robust(answer *a, const pc_generator *generator, pc_error *error) {
    const schedule_request *r = a->request;
    const pc_generate_request limited = {.costs = &a->costs, .memory_limit = limit_of(a)};
    pc_robust_request request = {.schedule = &a->schedule, .costs = &a->costs, .goal = r->robust};
    pc_replay given;
    pc_schedule chosen;
    int64_t *limits = pc_alloc((size_t)a->schedule.devices, sizeof *limits);
    if (!limits) return pc_error_no_memory(error);
    if (r->slow_stage >= a->schedule.devices) {
        pc_free(limits);
        return pc_error_set(error, PC_ERROR_INPUT, "--slow-stage: %" PRId64 " of %d devices; expected at most %d",
                            r->slow_stage, a->schedule.devices, a->schedule.devices - 1);
    }
    pc_scatter_fill_request(&r->scatter, &request);
    request.samples = r->samples < 0 ? SAMPLES_USUAL : r->samples;
    request.memory_limit = (pc_memory_limit){limits};
    pc_code code = pc_replay_run(&a->schedule, &a->costs, NULL, &given, error);
    if (!code) {
        pc_least_span_limits(generator, &limited, &given, limits);
        pc_replay_free(&given);
        code = pc_schedule_robust(&request, &chosen, &a->robustness, error);
    }
    pc_free(limits);
    return code ? code : replace_order(a, &chosen, a->robustness.is_changed, error);
}

/* A block that is left as it is keeps to its grid. */
static pc_code replay(answer *a, const schedule_request *r, pc_error *error) {
    const pc_replay_options how = {.with_trace = r->figure != NULL,
                                   .engine = r->engine,
                                   .waits_for_memory = r->waits_for_memory,
                                   .memory_limit = limit_of_replay(a)};
    if (keeps_grid(a))
        return pc_given_block_replay(a->given, &a->schedule, &a->costs, how.with_trace, &a->replay, error);
    return pc_replay_run(&a->schedule, &a->costs, &how, &a->replay, error);
}

/* What a search for the order minimised; NULL: there was none. */
static const char *goal_of(const schedule_request *r, const pc_generator *generator) {
    bool is_searched = r->improves || (generator && pc_generator_has_goal(generator, r->making));
    return is_searched ? pc_goal_names[r->goal] : NULL;
}

/* Fills in the answer; what it holds so far stays the caller's to free, also on failure. */
pc_code work_out(schedule_request *r, answer *a, int *status, pc_error *error) {
    double start = pc_now_s();
    const pc_generator *generator = NULL;
    pc_code code = r->figure ? pc_figure_check_path(r->figure, error) : PC_OK;
    if (!code) code = make(r, a, &generator, status, error);
    if (!code && *status == EXIT_DONE && r->improves) code = improve(a, status, error);
    if (!code && *status == EXIT_DONE && draws_times(r)) code = make_robust(a, generator, error);
    if (code || *status != EXIT_DONE) return code;
    if (r->figure) code = pc_figure_check_size(r->figure, a->schedule.offsets[a->schedule.devices], error);
    if (code) return code;
    double made = pc_now_s(), replayed;
    code = replay(a, r, error);
    replayed = pc_now_s();
    if (!code && a->replay.out_of_memory) *status = report_standstill(a);
    if (!code && *status == EXIT_DONE) code = find_bound(generator, a, error);
    if (!code && *status == EXIT_DONE && wants_judgement(a))
        code = pc_steady_find(&a->schedule, &a->costs, &a->steady, error);
    a->report.schedule = &a->schedule;
    a->report.block = a->block.devices ? &a->block : NULL;
    a->report.costs = &a->costs;
    a->report.describes_block = a->given != NULL;
    a->report.keeps_grid = keeps_grid(a);
    a->report.goal = goal_of(r, generator);
    a->report.has_part_times = r->units.part_count > 0 || r->times_file;
    a->report.memory_limit = r->memory_limit ? a->limit : NULL;
    a->report.replay = &a->replay;
    a->report.improvement = r->improves ? &a->improvement : NULL;
    a->report.steady = a->steady.microbatches ? &a->steady : NULL;
    a->report.robustness = draws_times(r) ? &a->robustness : NULL;
    a->report.generate_s = made - start;
    a->report.replay_s = replayed - made;
    return code;
}
