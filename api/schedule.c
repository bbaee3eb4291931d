#include "api/handles.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "models/schedule/given.h"
#include "models/schedule/given_block.h"
#include "models/schedule/least_span.h"
#include "models/schedule/unit_costs.h"
#include "scenarios/block_file.h"
#include "scenarios/setting_flags.h"
#include "storage/replace.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)PIPECAST_PASS_F == (int)PC_PASS_F && (int)PIPECAST_PASS_B == (int)PC_PASS_B &&
                   (int)PIPECAST_PASS_W == (int)PC_PASS_W && (int)PIPECAST_PASS_BW == (int)PC_PASS_BW &&
                   (int)PIPECAST_PASS_R == (int)PC_PASS_R && (int)PIPECAST_PASS_S == (int)PC_PASS_S &&
                   (int)PIPECAST_PASS_T == (int)PC_PASS_T,
               "passes are what they are inside");
_Static_assert((int)PIPECAST_LINEAR == (int)PC_PLACEMENT_LINEAR &&
                   (int)PIPECAST_INTERLEAVED == (int)PC_PLACEMENT_INTERLEAVED &&
                   (int)PIPECAST_V == (int)PC_PLACEMENT_V &&
                   (int)PIPECAST_BIDIRECTIONAL == (int)PC_PLACEMENT_BIDIRECTIONAL &&
                   (int)PIPECAST_SLICES == (int)PC_PLACEMENT_SLICES,
               "placements are what they are inside");
_Static_assert(sizeof(pipecast_costs) == 12 * sizeof(double), "it never changes its size");

/* ---- costs ---- */

/* Costs in whole picoseconds and bytes, and how many of those the caller's units have. */
typedef struct scaled_costs {
    pc_costs costs;
    double time_unit_ps, microbatch_bytes;
} scaled_costs;

static pc_code check_cost(const char *name, double number, double most, pc_error *error) {
    if (number >= 0.0 && number <= most && isfinite(number)) return PC_OK; /* no NaN either */
    if (isinf(most)) return pc_error_set(error, PC_ERROR_INPUT, "%s: %g; expected a number from 0 up", name, number);
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %g; expected a fraction from 0 to 1", name, number);
}

static pc_code read_units(const pipecast_costs *costs, pc_unit_costs *units, pc_error *error) {
    static const pipecast_costs standard = PIPECAST_COSTS;
    const pipecast_costs *c = costs ? costs : &standard;
    pc_code code = check_cost("f", c->f, INFINITY, error);
    if (!code) code = check_cost("b", c->b, INFINITY, error);
    if (!code) code = check_cost("w", c->w, INFINITY, error);
    if (!code) code = check_cost("transfer", c->transfer, INFINITY, error);
    if (!code) code = check_cost("release_b", c->release_b, 1.0, error);
    if (!code) code = check_cost("keep", c->keep, 1.0, error);
    for (size_t i = 0; i < sizeof c->reserved / sizeof *c->reserved && !code; i++)
        if (c->reserved[i] != 0.0) code = pc_error_set(error, PC_ERROR_INPUT, "reserved costs: expected 0");
    *units =
        (pc_unit_costs){.times = {c->f, c->b, c->w}, .comm = c->transfer, .release_b = c->release_b, .keep = c->keep};
    return code;
}

static pc_code scale(const pipecast_costs *costs, const pc_unit_shape *shape, scaled_costs *scaled, pc_error *error) {
    pc_unit_costs units;
    pc_code code = read_units(costs, &units, error);
    if (code) return code;
    scaled->microbatch_bytes = (double)PC_UNIT_CHUNK_BYTES * pc_placement_visited(shape->placement, shape->chunks);
    scaled->time_unit_ps = pc_unit_ticks(&units, shape);
    if (scaled->time_unit_ps > 0.0)
        return pc_unit_costs_make(&units, shape, scaled->time_unit_ps, &scaled->costs, error);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "f, b, w, transfer: too large or too far apart; expected all passes together to last less than "
                        "10^18 times the shortest of them");
}

/* ---- named ones ---- */

static pc_code find_generator(const char *name, const pc_generator **generator, pc_error *error) {
    char names[512], hint[PC_NEAREST_TEXT];
    *generator = pc_generator_find(name);
    if (*generator) return PC_OK;
    pc_generator_names(names, sizeof names);
    return pc_error_set(error, PC_ERROR_INPUT, "unknown schedule '%s'%s; expected %s", name,
                        pc_generator_hint(name, hint), names);
}

/* A path, of a building block's file, has a folder or ends in ".yaml". */
static bool is_file(const char *name) {
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 5 && strcmp(name + length - 5, ".yaml") == 0);
}

/* `given`, the block of the file, is the caller's to free, also on failure. */
static pc_code open_generator(const char *name, pc_given_block **given, const pc_generator **generator,
                              pc_error *error) {
    if (!is_file(name)) return find_generator(name, generator, error);
    pc_code code = pc_block_file_read(name, given, error);
    if (!code) *generator = pc_given_block_generator(*given);
    return code;
}

/* By the words that the setting has; NULL is the first. */
static pc_code find_making(const char *word, pc_making *making, pc_error *error) {
    pc_setting_flag flags[PC_SETTING_FLAGS_MAX];
    const char *words = "";
    int count = pc_setting_flags(flags), number = 0;
    for (int i = 0; i < count; i++)
        if (strcmp(flags[i].key, "making") == 0) words = flags[i].words;
    for (const char *at = words; word && *at; number++) {
        size_t length = strcspn(at, "|");
        if (strlen(word) == length && memcmp(at, word, length) == 0) break;
        at += length + (at[length] == '|');
        if (*at == '\0') return pc_error_set(error, PC_ERROR_INPUT, "making: '%s'; expected %s", word, words);
    }
    *making = (pc_making)number;
    return PC_OK;
}

static pc_code check_limit(const pc_generator *generator, const scaled_costs *scaled, int device, double limit,
                           pc_error *error) {
    if (!(limit >= 0.0))
        return pc_error_set(error, PC_ERROR_INPUT, "memory_limit of device %d: %g; expected a number from 0 up", device,
                            limit);
    double least = (double)pc_generator_least_memory(generator, &scaled->costs, device) / scaled->microbatch_bytes;
    if (!generator->searches || least <= limit) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "memory_limit of device %d: %.6g is too little for %s; expected at least %.6g", device, limit,
                        generator->name, least);
}

/* In bytes; what no memory has is no limit. The caller frees them. */
static pc_code count_limits(const pc_generator *generator, const scaled_costs *scaled, const double *limit,
                            int64_t **bytes, pc_error *error) {
    int devices = scaled->costs.devices;
    if (!limit) return PC_OK;
    *bytes = pc_alloc((size_t)devices, sizeof **bytes);
    if (!*bytes) return pc_error_no_memory(error);
    for (int d = 0; d < devices; d++) {
        pc_code code = check_limit(generator, scaled, d, limit[d], error);
        if (code) return code;
        (*bytes)[d] = limit[d] < 1e9 ? (int64_t)(limit[d] * scaled->microbatch_bytes) : PC_NO_LIMIT;
    }
    return PC_OK;
}

static pc_code generate(const pc_generator *generator, pc_generate_request request, const pipecast_costs *costs,
                        const double *memory_limit, pc_schedule *schedule, pc_error *error) {
    scaled_costs scaled = {.time_unit_ps = 0.0};
    int64_t *limit_bytes = NULL;
    pc_code code = pc_generator_check(generator, request.devices, request.microbatches, request.chunks, error);
    if (code) return code;
    pc_unit_shape shape = {.devices = (int)request.devices,
                           .microbatches = (int)request.microbatches,
                           .chunks = (int)pc_generator_chunks(generator, request.chunks, 0),
                           .placement = pc_generator_placement(generator, request.chunks, 0),
                           .recomputes = generator->recomputes,
                           .barriers = generator->barriers};
    code = scale(costs, &shape, &scaled, error);
    if (!code) code = count_limits(generator, &scaled, memory_limit, &limit_bytes, error);
    request.costs = &scaled.costs;
    request.memory_limit = (pc_memory_limit){limit_bytes};
    if (!code) code = pc_generate(generator, &request, schedule, NULL, error);
    pc_free(limit_bytes);
    pc_costs_free(&scaled.costs);
    return code;
}

/* Gives what was made to the caller, or frees it. */
static int hand_over(pc_code code, const pc_error *why, pipecast_schedule *made, pipecast_schedule **schedule,
                     pipecast_error *error) {
    if (code)
        pc_free(made);
    else
        *schedule = made;
    return api_answer(code, why, error);
}

int pipecast_schedule_generate(const char *name, int64_t devices, int64_t microbatches, int64_t chunks,
                               const pipecast_costs *costs, const double *memory_limit, const char *making,
                               pipecast_schedule **schedule, pipecast_error *error) {
    pc_error why = {0};
    const pc_generator *generator;
    pc_given_block *given = NULL;
    pc_generate_request request = {.devices = devices, .microbatches = microbatches, .chunks = chunks};
    pipecast_schedule *made = pc_alloc(1, sizeof *made);
    pc_code code = made ? open_generator(name, &given, &generator, &why) : pc_error_no_memory(&why);
    if (!code) code = find_making(making, &request.making, &why);
    if (!code) code = generate(generator, request, costs, memory_limit, &made->schedule, &why);
    pc_given_block_free(given);
    return hand_over(code, &why, made, schedule, error);
}

/* ---- the caller's ---- */

static pc_code check_shape(const char *name, int64_t devices, int64_t microbatches, int64_t chunks, int placement,
                           pc_error *error) {
    if (strlen(name) >= PC_SCHEDULE_NAME_SIZE)
        return pc_error_set(error, PC_ERROR_INPUT, "name: %zu bytes; expected at most %d", strlen(name),
                            PC_SCHEDULE_NAME_SIZE - 1);
    if (!pc_placement_is_known(placement, chunks))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "placement: %d; expected a pipecast_placement, or PIPECAST_SLICES_OF of a divisor of the "
                            "chunks",
                            placement);
    if ((placement == PC_PLACEMENT_LINEAR && chunks != 1) || (placement == PC_PLACEMENT_BIDIRECTIONAL && chunks != 2))
        return pc_error_set(error, PC_ERROR_INPUT, "chunks: %" PRId64 "; expected %d where the placement is %s", chunks,
                            placement == PC_PLACEMENT_LINEAR ? 1 : 2, pc_placement_names[placement]);
    return pc_schedule_check_size(devices, microbatches, chunks, error);
}

static pc_code check_counts(int64_t devices, const int64_t *pass_count, pc_error *error) {
    int64_t left = PC_PASSES_MAX;
    for (int64_t d = 0; d < devices; d++) {
        if (pass_count[d] < 0 || pass_count[d] > left)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "pass_count of device %" PRId64 ": %" PRId64 "; expected 0 or more, in all at most "
                                "%" PRId64,
                                d, pass_count[d], PC_PASSES_MAX);
        left -= pass_count[d];
    }
    return PC_OK;
}

static pc_code refuse_pass(int64_t index, const char *what, int64_t number, int64_t most, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT, "pass %" PRId64 ": %s %" PRId64 "; expected 0 to %" PRId64, index, what,
                        number, most);
}

static pc_code fill(pc_schedule *schedule, const int64_t *kind, const int64_t *chunk, const int64_t *microbatch,
                    pc_error *error) {
    for (int64_t i = 0; i < schedule->offsets[schedule->devices]; i++) {
        if (kind[i] < 0 || kind[i] >= PC_PASS_KINDS) return refuse_pass(i, "kind", kind[i], PC_PASS_KINDS - 1, error);
        if (chunk[i] < 0 || chunk[i] >= schedule->chunks)
            return refuse_pass(i, "chunk", chunk[i], schedule->chunks - 1, error);
        if (microbatch[i] < 0 || microbatch[i] >= schedule->microbatches)
            return refuse_pass(i, "microbatch", microbatch[i], schedule->microbatches - 1, error);
        schedule->passes[i] =
            (pc_pass){.microbatch = (int32_t)microbatch[i], .chunk = (int16_t)chunk[i], .kind = (int16_t)kind[i]};
    }
    return PC_OK;
}

int pipecast_schedule_create(const char *name, int64_t devices, int64_t microbatches, int64_t chunks, int placement,
                             const int64_t *pass_count, const int64_t *kind, const int64_t *chunk,
                             const int64_t *microbatch, pipecast_schedule **schedule, pipecast_error *error) {
    pc_error why = {0};
    pipecast_schedule *made = pc_alloc(1, sizeof *made);
    pc_code code = made ? check_shape(name, devices, microbatches, chunks, placement, &why) : pc_error_no_memory(&why);
    if (!code) code = check_counts(devices, pass_count, &why);
    if (!code)
        code = pc_schedule_create(name, (int)devices, (int)microbatches, (int)chunks, (pc_placement)placement,
                                  pass_count, &made->schedule, &why);
    if (!code && (code = fill(&made->schedule, kind, chunk, microbatch, &why))) pc_schedule_free(&made->schedule);
    if (!code) made->schedule.barriers = pc_schedule_find_barriers(&made->schedule);
    return hand_over(code, &why, made, schedule, error);
}

/* ---- files ---- */

int pipecast_schedule_load(const char *path, pipecast_schedule **schedule, pipecast_error *error) {
    pc_error why = {0};
    pipecast_schedule *made = pc_alloc(1, sizeof *made);
    pc_code code = made ? pc_schedule_load(path, &made->schedule, &why) : pc_error_no_memory(&why);
    return hand_over(code, &why, made, schedule, error);
}

/* A stream has a descriptor of its own, which closing it takes. */
static pc_code write_csv(const pc_schedule *schedule, const pc_replacement *into, pc_error *error) {
    int descriptor = dup(into->descriptor);
    FILE *stream = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!stream) {
        int cause = errno;
        if (descriptor >= 0) close(descriptor);
        return pc_error_set(error, PC_ERROR_IO, "%s: %s", into->path, strerror(cause));
    }
    pc_code code = pc_schedule_write_torch_csv(schedule, stream, error);
    bool has_failed = ferror(stream) != 0;
    has_failed = fclose(stream) != 0 || has_failed;
    if (code || !has_failed) return code;
    return pc_error_set(error, PC_ERROR_IO, "%s: cannot write: %s", into->path, strerror(errno));
}

int pipecast_schedule_write(const pipecast_schedule *schedule, const char *path, pipecast_error *error) {
    pc_error why = {0};
    pc_replacement into;
    pc_code code = pc_replacement_begin(path, &into, &why);
    if (code) return api_answer(code, &why, error);
    code = write_csv(&schedule->schedule, &into, &why);
    if (code)
        pc_replacement_discard(&into);
    else
        code = pc_replacement_commit(&into, &why);
    return api_answer(code, &why, error);
}

/* ---- what it is ---- */

void pipecast_schedule_free(pipecast_schedule *schedule) {
    if (schedule && schedule->made)
        api_made_schedule_free(schedule->made);
    else if (schedule)
        pc_schedule_free(&schedule->schedule);
    pc_free(schedule);
}

const char *pipecast_schedule_name(const pipecast_schedule *schedule) {
    return schedule->schedule.name;
}

void pipecast_schedule_shape(const pipecast_schedule *schedule, int64_t *devices, int64_t *microbatches,
                             int64_t *chunks, int *placement) {
    const pc_schedule *of = &schedule->schedule;
    if (devices) *devices = of->devices;
    if (microbatches) *microbatches = of->microbatches;
    if (chunks) *chunks = of->chunks;
    if (placement) *placement = (int)of->placement;
}

int64_t pipecast_schedule_passes(const pipecast_schedule *schedule, int64_t device, int64_t *kind, int64_t *chunk,
                                 int64_t *microbatch) {
    const pc_schedule *of = &schedule->schedule;
    if (device < 0 || device >= of->devices) return 0;
    int64_t first = of->offsets[device], count = of->offsets[device + 1] - first;
    for (int64_t i = 0; i < count; i++) {
        const pc_pass *pass = &of->passes[first + i];
        if (kind) kind[i] = pass->kind;
        if (chunk) chunk[i] = pass->chunk;
        if (microbatch) microbatch[i] = pass->microbatch;
    }
    return count;
}

int pipecast_schedule_check(const pipecast_schedule *schedule, pipecast_error *error) {
    pc_error why = {0};
    return api_answer(pc_schedule_check(&schedule->schedule, &why), &why, error);
}

/* ---- its replay ---- */

static pc_code run_at(const pc_schedule *schedule, const pipecast_costs *costs, pipecast_replay *replay,
                      pc_error *error) {
    static const pc_replay_options how = {.with_trace = true};
    scaled_costs scaled = {.time_unit_ps = 0.0};
    pc_unit_shape shape = pc_unit_shape_of(schedule);
    pc_code code = scale(costs, &shape, &scaled, error);
    if (!code) code = pc_replay_run(schedule, &scaled.costs, &how, &replay->record.replay, error);
    replay->time_unit_ps = scaled.time_unit_ps;
    replay->memory_unit_bytes = scaled.microbatch_bytes;
    pc_costs_free(&scaled.costs);
    return code;
}

static pc_code run(const pipecast_schedule *handle, const pipecast_costs *costs, pipecast_replay *replay,
                   pc_error *error) {
    const pc_schedule *schedule = &handle->schedule;
    replay->chunks = schedule->chunks;
    replay->placement = schedule->placement;
    return handle->made && !costs ? api_made_replay(handle->made, replay, error)
                                  : run_at(schedule, costs, replay, error);
}

int pipecast_schedule_replay(const pipecast_schedule *schedule, const pipecast_costs *costs, pipecast_replay **replay,
                             pipecast_error *error) {
    pc_error why = {0};
    pipecast_replay *made = pc_alloc(1, sizeof *made);
    pc_code code = made ? run(schedule, costs, made, &why) : pc_error_no_memory(&why);
    if (code)
        pc_free(made);
    else
        *replay = made;
    return api_answer(code, &why, error);
}

/* ---- the least span ---- */

/* Within the memory that the schedule itself holds. */
static pc_code find_bound(const pc_schedule *schedule, const scaled_costs *scaled, pc_time *bound_ps, pc_error *error) {
    const pc_generate_request request = {.microbatches = schedule->microbatches, .costs = &scaled->costs};
    pc_replay replay = {0};
    int64_t *limits = pc_alloc((size_t)schedule->devices, sizeof *limits);
    pc_code code = limits ? PC_OK : pc_error_no_memory(error);
    if (!code) code = pc_replay_run(schedule, &scaled->costs, NULL, &replay, error);
    if (!code) {
        pc_least_span_limits(pc_generator_find(schedule->name), &request, &replay, limits);
        code = pc_schedule_least_span(schedule, &scaled->costs, (pc_memory_limit){limits}, bound_ps, error);
        pc_replay_free(&replay);
    }
    pc_free(limits);
    return code;
}

int pipecast_schedule_bound(const pipecast_schedule *schedule, const pipecast_costs *costs, double *bound,
                            pipecast_error *error) {
    pc_error why = {0};
    scaled_costs scaled = {.time_unit_ps = 0.0};
    pc_time bound_ps = PC_TIME_NOT_GIVEN;
    if (schedule->made && !costs) return api_answer(api_made_bound(schedule->made, bound, &why), &why, error);
    pc_unit_shape shape = pc_unit_shape_of(&schedule->schedule);
    pc_code code = scale(costs, &shape, &scaled, &why);
    if (!code) code = find_bound(&schedule->schedule, &scaled, &bound_ps, &why);
    if (!code) *bound = bound_ps == PC_TIME_NOT_GIVEN ? NAN : (double)bound_ps / scaled.time_unit_ps;
    pc_costs_free(&scaled.costs);
    return api_answer(code, &why, error);
}
