#include "models/schedule/dependencies.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int64_t cell(const pc_schedule *schedule, int stage, int chunk, int microbatch, int kind) {
    return (((int64_t)stage * schedule->chunks + chunk) * schedule->microbatches + microbatch) * PC_PASS_KINDS + kind;
}

static bool in_range(const pc_schedule *schedule, pc_pass pass) {
    return pass.microbatch >= 0 && pass.microbatch < schedule->microbatches && pass.chunk >= 0 &&
           pass.chunk < schedule->chunks && pass.kind >= 0 && pass.kind < PC_PASS_KINDS;
}

static pc_code note(pc_pass_index *index, int stage, int64_t position, pc_error *error) {
    const pc_schedule *schedule = index->schedule;
    pc_pass pass = schedule->passes[position];
    int64_t place = position - schedule->offsets[stage];
    if (!in_range(schedule, pass))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "schedule: stage %d, place %" PRId64
                            ": kind %d, microbatch %d, chunk %d; expected microbatches below %d and chunks below %d",
                            stage, place, pass.kind, pass.microbatch, pass.chunk, schedule->microbatches,
                            schedule->chunks);
    int32_t *known = &index->position[cell(schedule, stage, pass.chunk, pass.microbatch, pass.kind)];
    if (*known != PC_NO_PASS) {
        char name[PC_PASS_NAME_SIZE];
        pc_pass_name(schedule, pass, name);
        return pc_error_set(error, PC_ERROR_INPUT,
                            "schedule: stage %d, place %" PRId64 ": %s stands at place %" PRId64
                            " already; expected every pass once",
                            stage, place, name, *known - schedule->offsets[stage]);
    }
    *known = (int32_t)position;
    return PC_OK;
}

pc_code pc_pass_index_create(const pc_schedule *schedule, pc_pass_index *index, pc_error *error) {
    int stage;
    return pc_pass_index_create_at(schedule, index, &stage, error);
}

pc_code pc_pass_index_create_at(const pc_schedule *schedule, pc_pass_index *index, int *stage, pc_error *error) {
    size_t cells = (size_t)cell(schedule, schedule->devices, 0, 0, 0);
    pc_pass_index made = {schedule, pc_realloc(NULL, cells, sizeof *made.position)};
    if (!made.position) return pc_error_no_memory(error);
    memset(made.position, 0xff, cells * sizeof *made.position); /* PC_NO_PASS */
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            pc_code code = note(&made, d, i, error);
            if (code) {
                *stage = d;
                pc_pass_index_free(&made);
                return code;
            }
        }
    *index = made;
    return PC_OK;
}

pc_code pc_pass_index_create_if_recomputing(const pc_schedule *schedule, pc_pass_index *index, pc_error *error) {
    if (pc_schedule_has(schedule, PC_PASS_R)) return pc_pass_index_create(schedule, index, error);
    memset(index, 0, sizeof *index);
    return PC_OK;
}

void pc_pass_index_free(pc_pass_index *index) {
    pc_free(index->position);
    memset(index, 0, sizeof *index);
}

int32_t pc_pass_position(const pc_pass_index *index, int stage, int chunk, int microbatch, pc_pass_kind kind) {
    return index->position[cell(index->schedule, stage, chunk, microbatch, kind)];
}

bool pc_pass_is_recomputed(const pc_pass_index *index, int stage, pc_pass pass) {
    return index->position && pc_pass_position(index, stage, pass.chunk, pass.microbatch, PC_PASS_R) != PC_NO_PASS;
}

int pc_pass_chunk_in(const pc_schedule *schedule, pc_pass pass, int part) {
    int first = pc_placement_chunk(schedule->placement, schedule->devices, part, pass.microbatch);
    return first + pass.chunk % pc_placement_slices(schedule->placement, schedule->chunks);
}

/* Passes that one waits for, while they are found. */
typedef struct found {
    const pc_pass_index *index;
    pc_predecessor *list;
    int count;
} found;

/* Adds the pass of this chunk of the first kind, or where there is none the second. */
static void add_of_chunk(found *x, int stage, int chunk, int microbatch, pc_pass_kind first, pc_pass_kind second) {
    const int32_t *of_kind = &x->index->position[cell(x->index->schedule, stage, chunk, microbatch, 0)];
    int32_t position = of_kind[first] != PC_NO_PASS ? of_kind[first] : of_kind[second];
    if (position != PC_NO_PASS) x->list[x->count++] = (pc_predecessor){position, stage};
}

/* The same of the chunk in which the pass's microbatch finds `part`. */
static void add(found *x, pc_pass pass, int part, pc_pass_kind first, pc_pass_kind second) {
    const pc_schedule *schedule = x->index->schedule;
    int stage = pc_placement_stage(schedule->placement, schedule->devices, part, pass.microbatch);
    add_of_chunk(x, stage, pc_pass_chunk_in(schedule, pass, part), pass.microbatch, first, second);
}

/* The slice before reads and keeps what F needs; the one behind has summed what B adds to. */
static void add_slice(found *x, int stage, pc_pass pass) {
    int slices = pc_placement_slices(x->index->schedule->placement, x->index->schedule->chunks);
    int slice = pass.chunk % slices;
    if (pass.kind == PC_PASS_F && slice > 0)
        add_of_chunk(x, stage, pass.chunk - 1, pass.microbatch, PC_PASS_F, PC_PASS_F);
    bool is_backward = pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW;
    if (is_backward && slice + 1 < slices)
        add_of_chunk(x, stage, pass.chunk + 1, pass.microbatch, PC_PASS_B, PC_PASS_BW);
}

/* Those of this kind of all stages. */
static void add_all(found *x, int microbatch, pc_pass_kind kind) {
    for (int d = 0; d < x->index->schedule->devices && d < PC_VOCAB_DEVICES_MAX; d++)
        add_of_chunk(x, d, 0, microbatch, kind, kind);
}

/* What the last part's backward pass waits for where the loss is computed by all stages. */
static void add_barrier(found *x, int microbatch) {
    pc_barriers barriers = x->index->schedule->barriers;
    if (barriers != PC_BARRIERS_NONE) add_all(x, microbatch, barriers == PC_BARRIERS_TWO ? PC_PASS_T : PC_PASS_S);
}

int pc_pass_predecessors(const pc_pass_index *index, int stage, pc_pass pass,
                         pc_predecessor predecessors[PC_PREDECESSORS_MAX]) {
    const pc_schedule *schedule = index->schedule;
    int part = pc_placement_part(schedule->placement, schedule->devices, stage, pass.chunk);
    int last = pc_placement_parts(schedule->placement, schedule->devices, schedule->chunks) - 1;
    found x = {.index = index, .list = predecessors};
    switch ((pc_pass_kind)pass.kind) {
    case PC_PASS_F:
        if (part > 0) add(&x, pass, part - 1, PC_PASS_F, PC_PASS_F);
        break;
    case PC_PASS_R:
        add(&x, pass, part, PC_PASS_F, PC_PASS_F);
        break;
    case PC_PASS_B:
    case PC_PASS_BW:
        add(&x, pass, part, PC_PASS_R, PC_PASS_F);
        if (part < last)
            add(&x, pass, part + 1, PC_PASS_B, PC_PASS_BW);
        else
            add_barrier(&x, pass.microbatch);
        break;
    case PC_PASS_W:
        add(&x, pass, part, PC_PASS_B, PC_PASS_B);
        break;
    case PC_PASS_S:
        add(&x, pass, last, PC_PASS_F, PC_PASS_F);
        break;
    case PC_PASS_T:
        add_all(&x, pass.microbatch, PC_PASS_S);
        break;
    case PC_PASS_KINDS:
        break;
    }
    add_slice(&x, stage, pass);
    return x.count;
}

/* B waits for F or R and for B of the part behind, or for a barrier in its place; T for S of every stage. */
int pc_pass_predecessors_most(const pc_schedule *schedule) {
    int of_slices = pc_placement_has_slices(schedule->placement);
    int of_barrier = schedule->barriers == PC_BARRIERS_NONE ? 0 : (int)pc_min(schedule->devices, PC_VOCAB_DEVICES_MAX);
    return 2 + of_slices + of_barrier;
}

bool pc_pass_sender(const pc_pass_index *index, int stage, pc_pass pass, pc_predecessor *sender) {
    pc_predecessor predecessors[PC_PREDECESSORS_MAX];
    int count = pc_pass_predecessors(index, stage, pass, predecessors);
    for (int k = 0; k < count; k++) {
        if (predecessors[k].stage == stage) continue;
        if (pc_pass_is_of_vocab(index->schedule->passes[predecessors[k].position], pass)) return false;
        *sender = predecessors[k];
        return true;
    }
    return false;
}

int pc_stage_of_position(const pc_schedule *schedule, int64_t position) {
    int low = 0, high = schedule->devices - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (position < schedule->offsets[middle + 1])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void pc_pass_name(const pc_schedule *schedule, pc_pass pass, char name[PC_PASS_NAME_SIZE]) {
    const char *kind = pc_pass_kind_name((pc_pass_kind)pass.kind);
    if (schedule->chunks == 1)
        snprintf(name, PC_PASS_NAME_SIZE, "%s%d", kind, pass.microbatch);
    else
        snprintf(name, PC_PASS_NAME_SIZE, "%s%d.%d", kind, pass.microbatch, pass.chunk);
}
