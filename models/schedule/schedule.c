#include "models/schedule/schedule.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const pc_pass_kind_names[PC_PASS_KINDS + 1] = {"F", "B", "W", "BW", "R", "S", "T", NULL};

const char *pc_pass_kind_name(pc_pass_kind kind) {
    return pc_pass_kind_names[kind];
}

const char *const pc_placement_names[PC_PLACEMENTS + 1] = {"linear",        "interleaved", "v",
                                                           "bidirectional", "slices",      NULL};

const char *pc_placement_name(pc_placement placement) {
    return pc_placement_names[pc_placement_has_slices(placement) ? PC_PLACEMENT_SLICES : placement];
}

bool pc_placement_is_known(int64_t placement, int64_t chunks) {
    if (placement >= 0 && placement < (int64_t)PC_PLACEMENTS) return true;
    int64_t slices = placement / 16;
    bool is_sliced = placement % 16 == (int64_t)PC_PLACEMENT_SLICES && slices >= 1 && slices <= PC_CHUNKS_MAX;
    return is_sliced && chunks % slices == 0;
}

static bool runs_back_up(pc_placement placement, int chunk) {
    return (placement == PC_PLACEMENT_V || placement == PC_PLACEMENT_BIDIRECTIONAL) && chunk % 2 == 1;
}

int pc_placement_part(pc_placement placement, int devices, int stage, int chunk) {
    int step = runs_back_up(placement, chunk) ? devices - 1 - stage : stage;
    if (placement == PC_PLACEMENT_BIDIRECTIONAL || placement == PC_PLACEMENT_SLICES) return step;
    return chunk / pc_placement_slices(placement, 1) * devices + step;
}

int pc_placement_stage(pc_placement placement, int devices, int part, int microbatch) {
    int step = part % devices;
    return runs_back_up(placement, pc_placement_chunk(placement, devices, part, microbatch)) ? devices - 1 - step
                                                                                             : step;
}

int pc_placement_chunk(pc_placement placement, int devices, int part, int microbatch) {
    if (placement == PC_PLACEMENT_BIDIRECTIONAL) return microbatch % 2;
    return part / devices * pc_placement_slices(placement, 1);
}

bool pc_placement_visits(pc_placement placement, int chunk, int microbatch) {
    return placement != PC_PLACEMENT_BIDIRECTIONAL || chunk == microbatch % 2;
}

int pc_placement_visited(pc_placement placement, int chunks) {
    return placement == PC_PLACEMENT_BIDIRECTIONAL ? 1 : chunks;
}

int pc_placement_parts(pc_placement placement, int devices, int chunks) {
    return devices * pc_placement_visited(placement, chunks) / pc_placement_slices(placement, chunks);
}

static pc_code check_range(const char *what, int64_t number, int64_t most, pc_error *error) {
    if (number >= 1 && number <= most) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %" PRId64 " is out of range; expected 1 to %" PRId64, what, number,
                        most);
}

pc_code pc_schedule_check_size(int64_t devices, int64_t microbatches, int64_t chunks, pc_error *error) {
    pc_code code = check_range("devices", devices, PC_DEVICES_MAX, error);
    if (!code) code = check_range("microbatches", microbatches, PC_MICROBATCHES_MAX, error);
    if (!code) code = check_range("chunks", chunks, PC_CHUNKS_MAX, error);
    if (code) return code;
    int64_t passes = devices * microbatches * chunks; /* at most 2^16 * 2^24 * 2^10: no overflow */
    if (passes <= PC_PASSES_MAX / 3) return PC_OK;    /* F, B and W of each */
    return pc_error_set(error, PC_ERROR_INPUT,
                        "schedule: %" PRId64 " devices x %" PRId64 " microbatches x %" PRId64
                        " chunks is too large; expected a product of at most %" PRId64,
                        devices, microbatches, chunks, PC_PASSES_MAX / 3);
}

pc_code pc_schedule_create(const char *name, int devices, int microbatches, int chunks, pc_placement placement,
                           const int64_t *passes_per_stage, pc_schedule *schedule, pc_error *error) {
    pc_schedule made = {.devices = devices, .microbatches = microbatches, .chunks = chunks, .placement = placement};
    snprintf(made.name, sizeof made.name, "%s", name);
    made.offsets = pc_alloc((size_t)devices + 1, sizeof *made.offsets);
    if (!made.offsets) return pc_error_no_memory(error);
    for (int d = 0; d < devices; d++) made.offsets[d + 1] = made.offsets[d] + passes_per_stage[d];
    made.passes = pc_alloc((size_t)made.offsets[devices], sizeof *made.passes);
    if (!made.passes) {
        pc_schedule_free(&made);
        return pc_error_no_memory(error);
    }
    *schedule = made;
    return PC_OK;
}

pc_code pc_schedule_add_pairs(pc_schedule *schedule, pc_error *error) {
    size_t passes = (size_t)schedule->offsets[schedule->devices];
    if (schedule->pairs) return PC_OK;
    schedule->pairs = pc_alloc(passes, sizeof *schedule->pairs);
    return schedule->pairs ? PC_OK : pc_error_no_memory(error);
}

/* Not of one chunk and microbatch: that backward pass waits for that F. */
static bool are_pair(pc_pass f, pc_pass back) {
    bool is_back = back.kind == PC_PASS_B || back.kind == PC_PASS_BW;
    return f.kind == PC_PASS_F && is_back && (f.chunk != back.chunk || f.microbatch != back.microbatch);
}

pc_code pc_schedule_check_pairs(const pc_schedule *schedule, pc_error *error) {
    for (int d = 0; schedule->pairs && d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d], last = schedule->offsets[d + 1] - 1; i <= last; i++)
            if (schedule->pairs[i] && (i == last || !are_pair(schedule->passes[i], schedule->passes[i + 1])))
                return pc_error_set(error, PC_ERROR_INPUT,
                                    "schedule: stage %d, place %" PRId64
                                    ": begins a pair; expected F, and behind it B or BW of another microbatch or chunk",
                                    d, i - schedule->offsets[d]);
    return PC_OK;
}

pc_code pc_schedule_copy(const pc_schedule *from, pc_schedule *to, pc_error *error) {
    int64_t *lengths = pc_alloc((size_t)from->devices, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(error);
    for (int d = 0; d < from->devices; d++) lengths[d] = from->offsets[d + 1] - from->offsets[d];
    pc_code code = pc_schedule_create(from->name, from->devices, from->microbatches, from->chunks, from->placement,
                                      lengths, to, error);
    pc_free(lengths);
    if (!code) to->barriers = from->barriers;
    size_t passes = (size_t)from->offsets[from->devices];
    if (!code) memcpy(to->passes, from->passes, passes * sizeof *from->passes);
    if (!code && from->pairs) {
        code = pc_schedule_add_pairs(to, error);
        if (code)
            pc_schedule_free(to);
        else
            memcpy(to->pairs, from->pairs, passes * sizeof *from->pairs);
    }
    return code;
}

void pc_schedule_free(pc_schedule *schedule) {
    pc_free(schedule->offsets);
    pc_free(schedule->passes);
    pc_free(schedule->pairs);
    memset(schedule, 0, sizeof *schedule);
}

/* Whether the stage's T of the microbatch stands before the backward pass of it in the chunk. */
static bool has_t_first(const pc_schedule *schedule, int stage, int chunk, int microbatch) {
    for (int64_t i = schedule->offsets[stage]; i < schedule->offsets[stage + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        if (pass.microbatch != microbatch) continue;
        if (pass.kind == PC_PASS_T) return true;
        if (pass.chunk == chunk && (pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW)) return false;
    }
    return false;
}

pc_barriers pc_schedule_find_barriers(const pc_schedule *schedule) {
    if (!pc_schedule_has(schedule, PC_PASS_S) && !pc_schedule_has(schedule, PC_PASS_T)) return PC_BARRIERS_NONE;
    int last = pc_placement_parts(schedule->placement, schedule->devices, schedule->chunks) - 1;
    int stage = pc_placement_stage(schedule->placement, schedule->devices, last, 0);
    int chunk = pc_placement_chunk(schedule->placement, schedule->devices, last, 0);
    return has_t_first(schedule, stage, chunk, 0) ? PC_BARRIERS_TWO : PC_BARRIERS_ONE;
}

bool pc_schedule_has(const pc_schedule *schedule, pc_pass_kind kind) {
    for (int64_t i = 0; i < schedule->offsets[schedule->devices]; i++)
        if (schedule->passes[i].kind == (int16_t)kind) return true;
    return false;
}

bool pc_schedule_recomputes(const pc_schedule *schedule, int stage, pc_pass pass) {
    for (int64_t i = schedule->offsets[stage]; i < schedule->offsets[stage + 1]; i++) {
        pc_pass other = schedule->passes[i];
        if (other.kind == PC_PASS_R && other.chunk == pass.chunk && other.microbatch == pass.microbatch) return true;
    }
    return false;
}
