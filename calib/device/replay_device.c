/* Both sides together. */
#include "calib/device/replay_private.h"

#include "engine/alloc.h"
#include "engine/order.h"
#include "models/cost/cost.h"

#include <stdio.h>
#include <string.h>

pc_replay_request pc_replay_request_default(void) {
    return (pc_replay_request){.warm_ups = 2, .repeats = 5};
}

/* ---- the simulated side ---- */

/* Rows of statistics and of log-sum-exp, which the simulation does not count: of F_TO_B, those in fp32. */
static int64_t vector_bytes(const pc_layer *layer) {
    int64_t sum = 0;
    for (int i = 0; i < layer->slot_count; i++)
        if (layer->slot[i].life == PC_SLOT_F_TO_B && layer->slot[i].dtype == PC_FP32)
            sum += pc_slot_bytes(&layer->slot[i]);
    return sum;
}

/* The most activations, without the vectors and with them. */
static pc_code find_peaks(const pc_replay_stage *stage, const pc_layer *layer, pc_replay_outcome *outcome,
                          pc_error *error) {
    size_t chunks = (size_t)stage->chunks;
    int64_t *taken = pc_alloc(2 * chunks, sizeof *taken);
    if (!taken) return pc_error_no_memory(error);
    int64_t *b_frees = taken + chunks;
    for (size_t c = 0; c < chunks; c++) {
        taken[c] = stage->chunk[c].activation.taken;
        b_frees[c] = stage->chunk[c].activation.b_frees;
    }
    outcome->simulated_activations = pc_replay_stage_peak(stage, taken, b_frees);
    for (size_t c = 0; c < chunks; c++) {
        int64_t vectors = stage->chunk[c].layers * vector_bytes(layer);
        taken[c] += vectors;
        b_frees[c] += vectors;
    }
    outcome->vector_bytes = pc_replay_stage_peak(stage, taken, b_frees) - outcome->simulated_activations;
    pc_free(taken);
    return PC_OK;
}

static pc_code simulate(const pc_replay_stage *stage, pc_replay_outcome *outcome, pc_error *error) {
    enum { STATE_BYTES = 2 + 4 }; /* of a parameter: 16 bits, and an fp32 gradient */
    pc_layer *layer = pc_alloc(1, sizeof *layer);
    if (!layer) return pc_error_no_memory(error);
    for (int c = 0; c < stage->chunks; c++) outcome->simulated_state += STATE_BYTES * stage->chunk[c].parameters;
    for (int64_t i = 0; i < stage->pass_count; i++) {
        const pc_replay_chunk *chunk = &stage->chunk[stage->pass[i].chunk];
        outcome->report.simulated_s += chunk->pass_s[stage->pass[i].kind];
        outcome->launch_bound_s += chunk->launch_bound_s[stage->pass[i].kind];
    }
    pc_code code = pc_replay_layer(stage, layer, error);
    if (!code) code = find_peaks(stage, layer, outcome, error);
    pc_free(layer);
    return code;
}

/* ---- the report ---- */

/* Means of a kind; nothing if the stage has none of it. */
static void report_kind(const pc_replay_stage *stage, const double *pass_s, pc_pass_kind kind,
                        pc_replay_report *report) {
    pc_replay_pass_report x = {0};
    for (int64_t i = 0; i < stage->pass_count; i++) {
        if (stage->pass[i].kind != (int)kind) continue;
        x.count++;
        x.measured_s += pass_s[i];
        x.simulated_s += stage->chunk[stage->pass[i].chunk].pass_s[kind];
    }
    if (x.count == 0) return;
    x.measured_s /= (double)x.count;
    x.simulated_s /= (double)x.count;
    snprintf(x.kind, sizeof x.kind, "%s", pc_pass_kind_name(kind));
    report->pass[report->pass_kind_count++] = x;
}

static void report_all(const pc_replay_request *request, const pc_replay_stage *stage, pc_replay_measured *measured,
                       pc_replay_outcome *outcome) {
    pc_replay_report *report = &outcome->report;
    snprintf(report->scenario, sizeof report->scenario, "%s", request->scenario ? request->scenario : "");
    snprintf(report->schedule, sizeof report->schedule, "%s", stage->schedule);
    report->stage = request->stage;
    report->passes = stage->pass_count;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) report_kind(stage, measured->pass_s, (pc_pass_kind)kind, report);
    pc_sort_reals(measured->busy_s, request->repeats);
    report->measured_s = pc_quantile_at(measured->busy_s, request->repeats, 0.5);
    outcome->measured_state = measured->state_bytes;
    outcome->measured_activations = measured->peak_bytes;
    outcome->held_activations = measured->held_bytes;
    outcome->working_bytes = measured->working_bytes;
    report->measured_peak_bytes = outcome->measured_state + outcome->measured_activations;
    report->simulated_peak_bytes = outcome->simulated_state + outcome->simulated_activations;
    outcome->is_roofline = stage->is_roofline;
    snprintf(outcome->left_out, sizeof outcome->left_out, "%s", stage->left_out);
    snprintf(outcome->warnings, sizeof outcome->warnings, "%s", stage->warnings);
}

static pc_code run_stage(pc_device *device, const pc_replay_request *request, const pc_replay_stage *stage,
                         pc_replay_outcome *outcome, pc_error *error) {
    pc_replay_measured measured = {0};
    pc_replay_outcome made;
    memset(&made, 0, sizeof made);
    measured.pass_s = pc_alloc((size_t)stage->pass_count, sizeof *measured.pass_s);
    measured.busy_s = pc_alloc((size_t)request->repeats, sizeof *measured.busy_s);
    if (request->kernel) measured.steps = pc_alloc(1, sizeof *measured.steps);
    bool has_room = measured.pass_s && measured.busy_s && (measured.steps || !request->kernel);
    pc_code code = has_room ? simulate(stage, &made, error) : pc_error_no_memory(error);
    if (!code) code = pc_replay_session(device, stage, request->warm_ups, request->repeats, &measured, error);
    if (!code) report_all(request, stage, &measured, &made);
    if (!code && measured.steps)
        made.kernel_count = pc_replay_kernels_of(measured.steps, request->profile, request->kernel);
    if (!code) *outcome = made;
    pc_free(measured.pass_s);
    pc_free(measured.busy_s);
    pc_free(measured.steps);
    return code;
}

pc_code pc_replay_with_device(pc_device *device, const pc_replay_request *request, pc_replay_outcome *outcome,
                              pc_error *error) {
    pc_replay_stage stage;
    pc_code code = pc_replay_stage_make(request, &stage, error);
    if (code) return code;
    code = run_stage(device, request, &stage, outcome, error);
    pc_replay_stage_free(&stage);
    return code;
}

pc_code pc_replay_on_device(const pc_replay_request *request, pc_replay_outcome *outcome, pc_error *error) {
    pc_device *device;
    pc_code code = pc_device_open(request->device, &device, error);
    if (code) return code;
    code = pc_replay_with_device(device, request, outcome, error);
    pc_device_close(device);
    return code;
}
