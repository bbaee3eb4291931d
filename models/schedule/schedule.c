#include "models/schedule/schedule.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const pc_pass_kind_names[PC_PASS_KINDS + 1] = {"F", "B", "W", "BW", "R", NULL};

const char *pc_pass_kind_name(pc_pass_kind kind) {
    return pc_pass_kind_names[kind];
}

const char *const pc_placement_names[PC_PLACEMENTS + 1] = {"linear",        "interleaved", "v",
                                                           "bidirectional", "slices",      NULL};

const char *pc_placement_name(pc_placement placement) {
    return pc_placement_names[placement];
}

static bool runs_back_up(pc_placement placement, int chunk) {
    return (placement == PC_PLACEMENT_V || placement == PC_PLACEMENT_BIDIRECTIONAL) && chunk % 2 == 1;
}

int pc_placement_part(pc_placement placement, int devices, int stage, int chunk) {
    int step = runs_back_up(placement, chunk) ? devices - 1 - stage : stage;
    bool is_whole = placement == PC_PLACEMENT_BIDIRECTIONAL || placement == PC_PLACEMENT_SLICES;
    return is_whole ? step : chunk * devices + step;
}

int pc_placement_stage(pc_placement placement, int devices, int part, int microbatch) {
    int step = part % devices;
    return runs_back_up(placement, pc_placement_chunk(placement, devices, part, microbatch)) ? devices - 1 - step
                                                                                             : step;
}

int pc_placement_chunk(pc_placement placement, int devices, int part, int microbatch) {
    return placement == PC_PLACEMENT_BIDIRECTIONAL ? microbatch % 2 : part / devices;
}

bool pc_placement_visits(pc_placement placement, int chunk, int microbatch) {
    return placement != PC_PLACEMENT_BIDIRECTIONAL || chunk == microbatch % 2;
}

int pc_placement_visited(pc_placement placement, int chunks) {
    return placement == PC_PLACEMENT_BIDIRECTIONAL ? 1 : chunks;
}

int pc_placement_parts(pc_placement placement, int devices, int chunks) {
    return placement == PC_PLACEMENT_SLICES ? devices : devices * pc_placement_visited(placement, chunks);
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

pc_code pc_schedule_copy(const pc_schedule *from, pc_schedule *to, pc_error *error) {
    int64_t *lengths = pc_alloc((size_t)from->devices, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(error);
    for (int d = 0; d < from->devices; d++) lengths[d] = from->offsets[d + 1] - from->offsets[d];
    pc_code code = pc_schedule_create(from->name, from->devices, from->microbatches, from->chunks, from->placement,
                                      lengths, to, error);
    pc_free(lengths);
    if (!code) memcpy(to->passes, from->passes, (size_t)from->offsets[from->devices] * sizeof *from->passes);
    return code;
}

void pc_schedule_free(pc_schedule *schedule) {
    pc_free(schedule->offsets);
    pc_free(schedule->passes);
    memset(schedule, 0, sizeof *schedule);
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
