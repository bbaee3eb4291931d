/* What the stage runs: the order of its passes, as the simulation of the whole iteration has it; and what the
 * simulation says of each pass, of the layers alone. */
#include "calib/device/replay_private.h"

#include "calib/profile/profile_cost.h"
#include "engine/alloc.h"
#include "models/cost/roofline.h"
#include "models/schedule/dependencies.h"
#include "models/workload/operation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The model and cut as both sides have them, and the cost model, while what the stage runs is found. */
typedef struct setting {
    const pc_replay_request *request;
    pc_model model;
    pc_cut cut;
    pc_cost_model cost;
    pc_profile_cost *fitted; /* or NULL */
} setting;

/* ---- what can be ---- */

static pc_code check_recompute(const pc_iteration_spec *spec, pc_error *error) {
    bool recomputes =
        spec->generator->recomputes || spec->cut.recompute_of_part || spec->cut.recompute >= PC_RECOMPUTE_FULL;
    if (!recomputes) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "replay: %s with recomputation; expected a schedule and a cut that recompute nothing",
                        spec->generator->name);
}

static pc_code check_request(const pc_replay_request *request, pc_error *error) {
    if (request->warm_ups < 1 || request->repeats < 1)
        return pc_error_set(error, PC_ERROR_INPUT, "replay: %d warm-ups and %d repeats; expected 1 and more of both",
                            request->warm_ups, request->repeats);
    if (request->stage < 0 || request->stage >= request->spec->cut.pp)
        return pc_error_set(error, PC_ERROR_INPUT, "replay: stage %d; expected 0 to %d", request->stage,
                            request->spec->cut.pp - 1);
    return check_recompute(request->spec, error);
}

/* ---- the order ---- */

static int64_t count_passes(const pc_replay_trace *trace, int number) {
    int64_t count = 0;
    for (int64_t i = 0; i < trace->pass_count; i++) count += trace->pass_device[i] == number;
    return count;
}

static pc_code take_order(const pc_iteration *iteration, int number, pc_replay_stage *stage, pc_error *error) {
    const pc_replay_trace *trace = &iteration->replay.trace;
    if (iteration->status)
        return pc_error_set(error, PC_ERROR_INPUT, "replay: the scenario's run is no schedule that could be run: %s",
                            iteration->message);
    stage->pass = pc_alloc((size_t)count_passes(trace, number), sizeof *stage->pass);
    if (!stage->pass) return pc_error_no_memory(error);
    for (int64_t i = 0; i < trace->pass_count; i++)
        if (trace->pass_device[i] == number) stage->pass[stage->pass_count++] = trace->pass[i];
    return PC_OK;
}

/* Of one replica, and without noise: neither changes an order. */
static pc_code find_order(const setting *in, pc_replay_stage *stage, pc_error *error) {
    pc_iteration_spec spec = *in->request->spec;
    pc_iteration iteration;
    spec.expands = false;
    spec.jitter = 0;
    pc_code code = pc_iteration_run(&spec, &in->cost, true, &iteration, error);
    if (code) return code;
    code = take_order(&iteration, in->request->stage, stage, error);
    pc_iteration_free(&iteration);
    return code;
}

/* ---- what both sides have ---- */

static void leave_out(pc_replay_stage *stage, const char *what) {
    size_t length = strlen(stage->left_out);
    snprintf(stage->left_out + length, sizeof stage->left_out - length, "%s%s", length ? "; " : "", what);
}

/* Of one GPU and whole layers; attention as the kernels have it. */
static void adapt(setting *in, pc_replay_stage *stage) {
    in->model = in->request->spec->model;
    in->cut = in->request->spec->cut;
    if (in->cut.chunks == 0) in->cut.chunks = in->request->spec->generator->chunks_default;
    in->cut.recompute = PC_RECOMPUTE_NONE;
    if (in->cut.tp > 1) leave_out(stage, "collectives of tensor parallelism");
    if (in->cut.tp > 1 && in->cut.sequence_parallel) leave_out(stage, "sequence parallelism (norms are of all tokens)");
    in->cut.sequence_parallel = false;
    if (in->model.attention != PC_ATTENTION_FLASH) leave_out(stage, "the attention matrix (flash attention instead)");
    in->model.attention = PC_ATTENTION_FLASH;
}

/* ---- the simulated side ---- */

/* Without collectives, whose launches would count too. */
static void drop_collectives(pc_operations *operations) {
    int kept = 0;
    for (int i = 0; i < operations->count; i++)
        if (operations->list[i].kind < PC_OPERATION_ALL_REDUCE) operations->list[kept++] = operations->list[i];
    operations->count = kept;
}

static pc_code cost_pass(const setting *in, const pc_part *part, pc_pass_kind kind, pc_replay_chunk *chunk,
                         pc_error *error) {
    pc_operations operations;
    pc_code code = pc_pass_operations(&in->model, &in->cut, part, kind, false, &operations, error);
    if (code) return code;
    drop_collectives(&operations);
    pc_pass_estimate sum = pc_cost_pass(&in->cost, &operations);
    chunk->launch_bound_s[kind] = sum.launch_bound_s;
    chunk->pass_s[kind] = sum.kernel_s > sum.launch_bound_s ? sum.kernel_s : sum.launch_bound_s;
    return PC_OK;
}

static pc_code make_chunk(const setting *in, int number, pc_replay_stage *stage, pc_error *error) {
    const pc_generator *generator = in->request->spec->generator;
    pc_placement placement = pc_generator_placement(generator, in->cut.chunks, in->cut.slices);
    int parts = pc_placement_parts(placement, in->cut.pp, in->cut.chunks);
    int of_part = pc_placement_part(placement, in->cut.pp, in->request->stage, number);
    pc_part part = pc_cut_part(&in->model, &in->cut, parts, of_part);
    pc_replay_chunk *chunk = &stage->chunk[number];
    if (part.has_embedding) leave_out(stage, "the embedding");
    if (part.has_head) leave_out(stage, "the head and the loss");
    part.has_embedding = part.has_head = false;
    part.recompute = PC_RECOMPUTE_NONE;
    chunk->layers = part.layers;
    chunk->parameters = pc_part_parameters(&in->model, &in->cut, &part, false);
    pc_code code = pc_part_activations(&in->model, &in->cut, &part, (pc_pass_forms){.splits = generator->splits},
                                       &chunk->activation, error);
    for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++)
        code = cost_pass(in, &part, (pc_pass_kind)kind, chunk, error);
    return code;
}

static pc_code make_chunks(const setting *in, pc_replay_stage *stage, pc_error *error) {
    int64_t layers = 0;
    pc_code code = PC_OK;
    stage->chunk = pc_alloc((size_t)stage->chunks, sizeof *stage->chunk);
    if (!stage->chunk) return pc_error_no_memory(error);
    for (int c = 0; !code && c < stage->chunks; c++) {
        code = make_chunk(in, c, stage, error);
        layers += stage->chunk[c].layers;
    }
    if (code || layers > 0) return code;
    return pc_error_set(error, PC_ERROR_INPUT, "replay: stage %d has no layers; expected another stage",
                        in->request->stage);
}

static pc_code open_cost(setting *in, pc_error *error) {
    const pc_replay_request *request = in->request;
    in->cost = pc_roofline(&request->spec->machine.gpu);
    if (!request->profile || request->profile->fit_count == 0) return PC_OK;
    pc_code code = pc_profile_cost_make(request->profile, &request->spec->machine, &in->fitted, error);
    if (!code) in->cost = pc_profile_cost_model(in->fitted);
    return code;
}

/* The iteration asks for more than the layers that are replayed: a cost model of their own says what they lack. */
static pc_code open_cost_of_layers(setting *in, pc_error *error) {
    pc_profile_cost_free(in->fitted);
    in->fitted = NULL;
    return open_cost(in, error);
}

static void keep_warnings(const setting *in, pc_replay_stage *stage) {
    char line[512];
    size_t used = 0;
    for (int i = 0; in->fitted && pc_profile_cost_warning(in->fitted, i, line, sizeof line); i++) {
        if (used + strlen(line) + 2 > sizeof stage->warnings) return;
        used += (size_t)snprintf(stage->warnings + used, sizeof stage->warnings - used, "%s\n", line);
    }
}

static pc_code fill_in(setting *in, pc_replay_stage *stage, pc_error *error) {
    pc_code code = open_cost(in, error);
    if (!code) code = find_order(in, stage, error);
    if (!code) code = open_cost_of_layers(in, error);
    if (code) return code;
    adapt(in, stage);
    stage->is_roofline = !in->fitted;
    stage->model = in->model;
    stage->cut = in->cut;
    stage->number = in->request->stage;
    stage->microbatches = (int)in->cut.microbatches;
    stage->chunks = in->cut.chunks;
    snprintf(stage->schedule, sizeof stage->schedule, "%s", in->request->spec->generator->name);
    code = make_chunks(in, stage, error);
    if (!code) keep_warnings(in, stage);
    return code;
}

pc_code pc_replay_stage_make(const pc_replay_request *request, pc_replay_stage *stage, pc_error *error) {
    setting x = {.request = request};
    memset(stage, 0, sizeof *stage);
    pc_code code = check_request(request, error);
    if (!code) code = fill_in(&x, stage, error);
    pc_profile_cost_free(x.fitted);
    if (code) pc_replay_stage_free(stage);
    return code;
}

pc_code pc_replay_check(const pc_replay_request *request, pc_error *error) {
    pc_replay_request of_roofline = *request;
    pc_replay_stage stage;
    of_roofline.profile = NULL;
    pc_code code = pc_replay_stage_make(&of_roofline, &stage, error);
    if (!code) pc_replay_stage_free(&stage);
    return code;
}

void pc_replay_stage_free(pc_replay_stage *stage) {
    pc_free(stage->pass);
    pc_free(stage->chunk);
    memset(stage, 0, sizeof *stage);
}

int64_t pc_replay_stage_peak(const pc_replay_stage *stage, const int64_t *taken, const int64_t *b_frees) {
    int64_t level = 0, peak = 0;
    for (int64_t i = 0; i < stage->pass_count; i++) {
        pc_pass pass = stage->pass[i];
        int64_t all = taken[pass.chunk], early = b_frees[pass.chunk];
        if (pass.kind == PC_PASS_F) level += all;
        if (level > peak) peak = level;
        if (pass.kind == PC_PASS_B) level -= early;
        if (pass.kind == PC_PASS_W) level -= all - early;
        if (pass.kind == PC_PASS_BW) level -= all;
    }
    return peak;
}
