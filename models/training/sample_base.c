#include "models/training/sample_base.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/training/pass_costs.h"
#include "models/workload/expert_slice.h"

#include <string.h>

int64_t pc_sample_first_other(const pc_iteration_spec *spec, const pc_ranks *ranks) {
    int64_t gpus = pc_ranks_gpus(ranks), per_node = spec->machine.gpus_per_node;
    int64_t nodes = pc_divide_up(gpus, per_node), first = (nodes - spec->bad_days.other_nodes) * per_node;
    return first < 0 ? 0 : first < gpus ? first : gpus;
}

/* ---- outlines beside the good day's ---- */

/* A leaf's uplinks carry what they did. */
static void worsen_links(pc_machine *machine, double factor) {
    machine->network.bandwidth_bytes_per_s *= factor;
    machine->oversubscription *= factor;
}

static pc_iteration_spec spec_of(const pc_iteration_spec *good, bool has_bad_links, bool has_other_gpu) {
    pc_iteration_spec spec = *good;
    if (has_bad_links) worsen_links(&spec.machine, good->bad_days.bad_factor);
    if (has_other_gpu) spec.machine.gpu = good->bad_days.other_gpu;
    return spec;
}

/* The model is divided as on the good day, whatever passes take now. */
static void keep_layers(const pc_outline *good, pc_iteration_spec *spec) {
    spec->cut.layout = good->cut.layout;
    spec->cut.layers_of_part = good->cut.layers_of_part;
}

/* ---- tables ---- */

static pc_code fill_own(const pc_sample_base *base, const pc_outline *outline, double *own_ps, pc_error *error) {
    pc_outline at_pace = *outline;
    pc_code code = PC_OK;
    if (base->bad_days->gpu_jitter > 0) at_pace.pace = 1 + outline->spec->pass_overhead;
    for (int64_t row = 0; !code && row < base->rows; row++) {
        int kind = (int)(row % PC_PASS_KINDS), chunk = (int)(row / PC_PASS_KINDS % base->chunks);
        int device = (int)(row / PC_PASS_KINDS / base->chunks);
        pc_time time = -1;
        if (pc_outline_has_kind(outline->spec->generator, (pc_pass_kind)kind)) {
            pc_pass pass = {0, (int16_t)chunk, (int16_t)kind};
            double seconds = pc_outline_pass_s(&at_pace, device, pass);
            code = pc_outline_time(pc_pass_kind_name((pc_pass_kind)kind), seconds, 1, &time, error);
        }
        own_ps[row] = (double)time;
    }
    return code;
}

/* Of passes with such a load. */
static pc_code fill_loaded(const pc_sample_base *base, const pc_outline *outline, double load, double *own_ps,
                           pc_error *error) {
    pc_iteration_spec spec = *outline->spec;
    pc_outline loaded;
    spec.cut.moe_load_fullest = load;
    keep_layers(outline, &spec);
    pc_code code = pc_outline_make(&spec, &outline->cost, &loaded, error);
    if (code) return code;
    code = fill_own(base, &loaded, own_ps, error);
    pc_outline_free(&loaded);
    return code;
}

/* Times rise with rows nearly in a line: between balanced loads and as much over the mean one, or a quarter more. */
static pc_code fill_loads(pc_sample_base *base, const pc_outline *outline, int links, int kind, pc_error *error) {
    double high = pc_max(2 * base->mean_load - 1, 1.25);
    double *slope_ps = base->load_ps[links][kind] = pc_alloc((size_t)base->rows, sizeof *slope_ps);
    double *balanced_ps = pc_alloc((size_t)base->rows, sizeof *balanced_ps);
    pc_code code = slope_ps && balanced_ps ? PC_OK : pc_error_no_memory(error);
    if (!code) code = fill_loaded(base, outline, 1, balanced_ps, error);
    if (!code) code = fill_loaded(base, outline, high, slope_ps, error);
    for (int64_t i = 0; !code && i < base->rows; i++) slope_ps[i] = (slope_ps[i] - balanced_ps[i]) / (high - 1);
    pc_free(balanced_ps);
    return code;
}

static pc_code fill_from(pc_sample_base *base, const pc_outline *outline, int links, int kind, pc_error *error) {
    double *own_ps = base->own_ps[links][kind] = pc_alloc((size_t)base->rows, sizeof *own_ps);
    if (!own_ps) return pc_error_no_memory(error);
    if (links == 0) {
        base->step_ps[kind] = pc_alloc((size_t)base->devices, sizeof *base->step_ps[kind]);
        if (!base->step_ps[kind]) return pc_error_no_memory(error);
        for (int d = 0; d < base->devices; d++) base->step_ps[kind][d] = outline->device[d].step_ps;
    }
    pc_code code = fill_own(base, outline, own_ps, error);
    return code || !(base->mean_load > 0) ? code : fill_loads(base, outline, links, kind, error);
}

/* What was measured was measured on the machine's own GPU: the other one is its datasheet's roofline. */
static pc_code fill_other(pc_sample_base *base, int links, pc_error *error) {
    pc_iteration_spec spec = spec_of(base->outline->spec, links > 0, true);
    keep_layers(base->outline, &spec);
    pc_outline outline;
    pc_code code = pc_outline_make(&spec, NULL, &outline, error);
    if (code) return code;
    code = fill_from(base, &outline, links, 1, error);
    pc_outline_free(&outline);
    return code;
}

static pc_code fill_worse(pc_sample_base *base, pc_error *error) {
    base->worse_spec = spec_of(base->outline->spec, true, false);
    keep_layers(base->outline, &base->worse_spec);
    pc_code code = pc_outline_make(&base->worse_spec, &base->outline->cost, &base->worse, error);
    return code ? code : fill_from(base, &base->worse, 1, 0, error);
}

/* The hop by which the input of a pass comes from another stage, or -1. */
static int32_t hop_to(const pc_outline *outline, int device, pc_pass pass) {
    int part = pc_placement_part(outline->placement, outline->devices, device, pass.chunk), before;
    if (pass.kind == PC_PASS_F)
        before = part - 1;
    else if (pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW)
        before = part + 1;
    else
        return -1;
    if (before < 0 || before == outline->parts) return -1;
    int from = pc_placement_stage(outline->placement, outline->devices, before, pass.chunk);
    return from == device ? -1 : pc_outline_hop(outline, from, device);
}

static int32_t hop_from(const pc_outline *outline, int device, pc_pass pass) {
    int to = pc_outline_receiver(outline, device, pass);
    return to < 0 ? -1 : pc_outline_hop(outline, device, to);
}

static void fill_hops(pc_sample_base *base) {
    const pc_outline *outline = base->outline;
    for (int64_t row = 0; row < base->rows; row++) {
        int64_t cell = row / PC_PASS_KINDS;
        pc_pass pass = {0, (int16_t)(cell % base->chunks), (int16_t)(row % PC_PASS_KINDS)};
        int device = (int)(cell / base->chunks);
        base->hop[row] = outline->spec->overlaps_p2p ? hop_to(outline, device, pass) : hop_from(outline, device, pass);
    }
}

static pc_code fill_in(pc_sample_base *base, pc_error *error) {
    base->hop = pc_alloc((size_t)base->rows, sizeof *base->hop);
    if (!base->hop) return pc_error_no_memory(error);
    fill_hops(base);
    bool has_bad_links = base->bad_days->bad_links > 0;
    pc_code code = fill_from(base, base->outline, 0, 0, error);
    if (!code && has_bad_links) code = fill_worse(base, error);
    if (!code && base->kinds > 1) code = fill_other(base, 0, error);
    if (!code && base->kinds > 1 && has_bad_links) code = fill_other(base, 1, error);
    return code;
}

pc_code pc_sample_base_make(const pc_outline *outline, pc_sample_base *base, pc_error *error) {
    *base = (pc_sample_base){.outline = outline,
                             .bad_days = &outline->spec->bad_days,
                             .devices = outline->devices,
                             .chunks = outline->chunks,
                             .replicas = outline->cut.dp,
                             .rows = (int64_t)outline->devices * outline->chunks * PC_PASS_KINDS,
                             .gpus = pc_ranks_gpus(&outline->ranks),
                             .kinds = outline->spec->bad_days.other_nodes > 0 ? 2 : 1,
                             .first_other = pc_sample_first_other(outline->spec, &outline->ranks)};
    if (pc_cut_expert_load_varies(&outline->spec->model, &outline->cut))
        base->mean_load = pc_cut_mean_expert_load(&outline->spec->model, &outline->cut);
    pc_code code = fill_in(base, error);
    if (code) pc_sample_base_free(base);
    return code;
}

void pc_sample_base_free(pc_sample_base *base) {
    for (int kind = 0; kind < PC_GPU_KINDS; kind++) {
        for (int links = 0; links < PC_LINK_STATES; links++) {
            pc_free(base->own_ps[links][kind]);
            pc_free(base->load_ps[links][kind]);
        }
        pc_free(base->step_ps[kind]);
    }
    pc_free(base->hop);
    pc_outline_free(&base->worse);
    memset(base, 0, sizeof *base);
}
