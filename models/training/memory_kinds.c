#include "models/training/memory_kinds.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/dependencies.h"
#include "models/training/pass_costs.h"
#include "models/training/state.h"
#include "models/workload/memory_kinds.h"
#include "models/workload/slice.h"

const char *const pc_memory_kind_names[PC_MEMORY_KINDS + 1] = {
    "parameters", "gradients", "optimizer", "attention", "mlp",     "norms",    "embedding",
    "head",       "offloaded", "boundary",  "gathered",  "context", "sequence", "recomputation",
    "loss",       "copies",    "step",      "workspace", NULL};

/* ---- activations ---- */

/* A stage at some time: what a microbatch of each of its chunks has, and what it holds of all. */
typedef struct stage {
    const pc_schedule *schedule;
    const pc_pass_index *index;
    const pc_costs *costs;
    int device;
    pc_part_kinds *kinds;      /* [chunks] */
    pc_activation_bytes *rows; /* where the levels go, one after the other; and how many have room there */
    int64_t room;
    pc_activation_bytes level;
    pc_activation_bytes shared; /* of the pair at work: what its backward pass has given back before it ends */
} stage;

static void change(pc_activation_bytes *level, const pc_activation_bytes *bytes, int64_t times) {
    for (int kind = 0; kind < PC_ACTIVATION_KINDS; kind++) level->of[kind] += times * bytes->of[kind];
}

/* So much of the sum in all, each kind in proportion. */
static pc_activation_bytes part_of(const pc_activation_bytes *whole, int64_t bytes) {
    pc_activation_bytes part = {{0}};
    pc_wide before = 0, until = 0, sum = pc_activation_bytes_sum(whole);
    for (int kind = 0; sum > 0 && kind < PC_ACTIVATION_KINDS; kind++) {
        until += whole->of[kind];
        part.of[kind] = (int64_t)(until * bytes / sum - before * bytes / sum);
        before = until;
    }
    return part;
}

/* What a backward pass gives back. */
static pc_activation_bytes given_by(const stage *x, pc_pass pass) {
    const pc_part_kinds *kinds = &x->kinds[pass.chunk];
    pc_activation_bytes given = {{0}};
    if (pass.kind == PC_PASS_BW) change(&given, x->costs->recomputes_in_b ? &kinds->kept : &kinds->taken, 1);
    if (pass.kind != PC_PASS_B) return given;
    change(&given, &kinds->taken, 1);
    change(&given, &kinds->left, -1);
    return given;
}

/* The backward pass of a pair gives back what F takes, layer by layer (pc_costs_shared). */
static void start_pair(stage *x, int64_t position) {
    int64_t bytes = pc_costs_shared(x->costs, x->schedule, x->device, position);
    pc_activation_bytes given = given_by(x, x->schedule->passes[position + 1]);
    x->shared = part_of(&given, bytes);
    change(&x->level, &x->shared, -1);
}

/* As pc_costs_taken_at and pc_costs_given_at have it in sum. */
static void start_pass(stage *x, int64_t position) {
    pc_pass pass = x->schedule->passes[position];
    const pc_part_kinds *kinds = &x->kinds[pass.chunk];
    bool is_again = pc_pass_is_recomputed(x->index, x->device, pass) || x->costs->recomputes_in_b;
    bool makes_again = pass.kind == PC_PASS_R || (pass.kind == PC_PASS_B && x->costs->recomputes_in_b);
    if (pass.kind == PC_PASS_F) change(&x->level, is_again ? &kinds->kept : &kinds->taken, 1);
    if (pc_schedule_pairs_at(x->schedule, position)) start_pair(x, position);
    if (pass.kind == PC_PASS_S) x->level.of[PC_ACTIVATION_HEAD] += x->costs->vocab.held_bytes;
    if (!makes_again) return;
    change(&x->level, &kinds->taken, 1);
    change(&x->level, &kinds->kept, -1);
}

static void end_pass(stage *x, int64_t position) {
    pc_pass pass = x->schedule->passes[position];
    pc_activation_bytes given = given_by(x, pass);
    change(&x->level, &given, -1);
    if (pc_schedule_is_second(x->schedule, position)) change(&x->level, &x->shared, 1);
    if (pass.kind == PC_PASS_W) change(&x->level, &x->kinds[pass.chunk].left, -1);
    if (pass.kind == PC_PASS_T) x->level.of[PC_ACTIVATION_HEAD] -= x->costs->vocab.held_bytes;
}

static void add_row(stage *x) {
    if (x->room == 0) return;
    *x->rows++ = x->level;
    x->room--;
}

/* Goes through a stage's passes: returns the level at the first moment at which it is highest, and adds a row at every
 * change of its sum, as the trace has them. */
static pc_activation_bytes walk(stage *x) {
    int64_t highest = 0;
    pc_activation_bytes peak = {{0}};
    x->level = peak;
    for (int64_t i = x->schedule->offsets[x->device]; i < x->schedule->offsets[x->device + 1]; i++) {
        pc_pass pass = x->schedule->passes[i];
        bool is_recomputed = pc_pass_is_recomputed(x->index, x->device, pass);
        start_pass(x, i);
        if (pc_costs_taken_at(x->costs, x->schedule, x->device, i, is_recomputed) > 0) add_row(x);
        int64_t sum = pc_activation_bytes_sum(&x->level);
        if (sum > highest) peak = x->level;
        if (sum > highest) highest = sum;
        end_pass(x, i);
        if (pc_costs_given_at(x->costs, x->schedule, x->device, i) > 0) add_row(x);
    }
    return peak;
}

/* ---- beside copies to the host ---- */

/* What is more than passes have of a level is on its way to the host or back. Of several rows at one moment the last
 * says how things stand; those before it have their sums, in the same proportions. */
static pc_activation_bytes beside_copies(const pc_activation_bytes *of_passes, int64_t level) {
    pc_activation_bytes bytes = *of_passes;
    pc_wide before = 0, until = 0, sum = pc_activation_bytes_sum(of_passes);
    bytes.of[PC_ACTIVATION_OFFLOADED] = (int64_t)pc_max(level - sum, 0);
    for (int kind = 0; level < sum && kind < PC_ACTIVATION_OFFLOADED; kind++) {
        until += of_passes->of[kind];
        bytes.of[kind] = (int64_t)(until * level / sum - before * level / sum);
        before = until;
    }
    return bytes;
}

/* Starts and ends the passes that do so until then; `next` counts both, two a pass. */
static int64_t pass_until(stage *x, const pc_replay_trace *trace, int64_t next, pc_time when_ps) {
    for (; next < 2 * x->schedule->offsets[x->device + 1]; next++) {
        const pc_time *times = next % 2 ? trace->pass_end_ps : trace->pass_start_ps;
        if (times[next / 2] > when_ps) break;
        if (next % 2)
            end_pass(x, next / 2);
        else
            start_pass(x, next / 2);
    }
    return next;
}

/* The rows of a trace whose levels copies change, too; the level at the peak. */
static pc_activation_bytes walk_trace(stage *x, const pc_replay_trace *trace) {
    int64_t next = 2 * x->schedule->offsets[x->device], highest = 0;
    pc_activation_bytes peak = {{0}};
    x->level = peak;
    for (int64_t row = trace->level_count - x->room; x->room > 0 && trace->level_device[row] == x->device; row++) {
        next = pass_until(x, trace, next, trace->level_time_ps[row]);
        *x->rows = beside_copies(&x->level, trace->level_bytes[row]);
        if (trace->level_bytes[row] > highest) peak = *x->rows;
        if (trace->level_bytes[row] > highest) highest = trace->level_bytes[row];
        x->rows++;
        x->room--;
    }
    return peak;
}

static void split_chunks(const pc_outline *outline, stage *x) {
    const pc_iteration_spec *spec = outline->spec;
    for (int c = 0; c < outline->chunks; c++) {
        const pc_part_cost *part = pc_outline_part(outline, x->device, c);
        x->kinds[c] =
            pc_part_kinds_of(&spec->model, &outline->cut, &part->part, pc_outline_forms(outline), &part->activation);
    }
}

/* ---- what is held all the time ---- */

/* Of the chunk whose passes work with most. */
static pc_working_bytes split_working(const pc_outline *outline, int device) {
    const pc_part_cost *most = pc_outline_part(outline, device, 0);
    for (int c = 1; c < outline->chunks; c++) {
        const pc_part_cost *part = pc_outline_part(outline, device, c);
        if (part->activation.working > most->activation.working) most = part;
    }
    return pc_part_working_of(&outline->spec->model, &outline->cut, &most->part, pc_outline_forms(outline),
                              &most->activation);
}

static void split_fixed(const pc_outline *outline, int device, pc_device_memory *x) {
    pc_working_bytes working = split_working(outline, device);
    int64_t sum = working.recomputation + working.loss + working.sequence + working.context + working.copies;
    int64_t fixed = outline->device[device].fixed_buffers, boundary = pc_outline_boundary_bytes(outline, device);
    x->kinds[PC_MEMORY_PARAMETERS] = x->parameters;
    x->kinds[PC_MEMORY_GRADIENTS] = x->gradients;
    x->kinds[PC_MEMORY_OPTIMIZER] = x->optimizer;
    x->kinds[PC_MEMORY_BOUNDARY] = boundary;
    x->kinds[PC_MEMORY_WORKSPACE] = outline->device[device].workspace_bytes;
    x->kinds[PC_MEMORY_GATHERED] = fixed - boundary - sum - x->kinds[PC_MEMORY_WORKSPACE];
    x->kinds[PC_MEMORY_CONTEXT] = working.context;
    x->kinds[PC_MEMORY_SEQUENCE] = working.sequence;
    x->kinds[PC_MEMORY_RECOMPUTATION] = working.recomputation;
    x->kinds[PC_MEMORY_LOSS] = working.loss;
    x->kinds[PC_MEMORY_COPIES] = working.copies;
    x->kinds[PC_MEMORY_STEP] = x->buffers - fixed;
}

/* ---- the stages ---- */

static void fill_in_stage(const pc_outline *outline, stage *x, pc_iteration *iteration) {
    pc_device_memory *memory = &iteration->memory[x->device];
    split_chunks(outline, x);
    split_fixed(outline, x->device, memory);
    bool has_copies = pc_costs_have_copies(x->costs);
    pc_activation_bytes peak = has_copies ? walk_trace(x, &iteration->replay.trace) : walk(x);
    for (int kind = 0; kind < PC_ACTIVATION_KINDS; kind++) memory->kinds[PC_MEMORY_ATTENTION + kind] = peak.of[kind];
}

static int fullest(const pc_iteration *iteration) {
    int found = 0;
    for (int d = 1; d < iteration->devices; d++)
        if (iteration->memory[d].peak_bytes > iteration->memory[found].peak_bytes) found = d;
    return found;
}

static bool fill_in_all(const pc_outline *outline, stage *x, bool with_trace, pc_iteration *iteration) {
    pc_replay_trace *trace = &iteration->replay.trace;
    if (!with_trace && pc_costs_have_copies(x->costs)) return true;
    if (!with_trace) {
        x->device = fullest(iteration);
        fill_in_stage(outline, x, iteration);
        return true;
    }
    trace->level_kinds = pc_alloc((size_t)trace->level_count, sizeof *trace->level_kinds);
    if (!trace->level_kinds) return false;
    x->rows = trace->level_kinds;
    x->room = trace->level_count;
    for (x->device = 0; x->device < outline->devices; x->device++) fill_in_stage(outline, x, iteration);
    return true;
}

pc_code pc_memory_kinds_fill_in(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs,
                                bool with_trace, pc_iteration *iteration, pc_error *error) {
    pc_pass_index index;
    pc_code code = pc_pass_index_create_if_recomputing(schedule, &index, error);
    if (code) return code;
    stage x = {.schedule = schedule,
               .index = &index,
               .costs = costs,
               .kinds = pc_alloc((size_t)outline->chunks, sizeof *x.kinds)};
    if (!x.kinds || !fill_in_all(outline, &x, with_trace, iteration)) code = pc_error_no_memory(error);
    pc_free(x.kinds);
    pc_pass_index_free(&index);
    return code;
}
