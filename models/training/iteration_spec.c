#include "models/training/iteration_spec.h"

#include "models/training/outline_pairs.h"
#include "models/training/units.h"

pc_iteration_spec pc_iteration_spec_default(void) {
    return (pc_iteration_spec){
        .order = {{PC_AXIS_TP, PC_AXIS_CP, PC_AXIS_DP, PC_AXIS_PP}},
        .overlaps_p2p = true,
        .overlaps_tp = true,
        .overlaps_gradients = true,
        .overlaps_parameters = true,
        .fsdp_prefetch = 1,
        .scatters_boundary = true,
        .memory_limit_bytes = PC_NO_LIMIT,
    };
}

bool pc_iteration_can_pair(const pc_iteration_spec *spec) {
    int chunks = (int)pc_generator_chunks(spec->generator, spec->cut.chunks, spec->cut.slices);
    return pc_generator_pairs(spec->generator, spec->cut.pp, chunks) && pc_iteration_check_pairs(spec, NULL) == PC_OK;
}

static pc_code check_bad_days(const pc_iteration_spec *spec, pc_error *error) {
    pc_machine other = spec->machine;
    pc_code code = pc_bad_days_check(&spec->bad_days, error);
    if (code || spec->bad_days.other_nodes == 0) return code;
    other.gpu = spec->bad_days.other_gpu;
    return pc_machine_check(&other, error);
}

pc_code pc_iteration_spec_check(const pc_iteration_spec *spec, pc_error *error) {
    pc_code code = pc_model_check(&spec->model, error);
    if (!code) code = pc_machine_check(&spec->machine, error);
    if (code) return code;
    if (!(spec->pass_overhead >= 0) || !(spec->pass_overhead <= 1000) || spec->overhead_ps < 0 ||
        spec->bucket_bytes < 0 || spec->memory_limit_bytes < 0 || spec->cut.gradient_bytes < 0 ||
        spec->cut.gradient_bytes > 8)
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "iteration: an overhead, a bucket, a gradient's size or a memory limit out of range; expected "
            "a pass's overhead from 0 to 1000, gradients of at most 8 bytes, and nothing below zero");
    if (spec->fsdp_prefetch < 0 || spec->fsdp_prefetch > PC_PREFETCH_MAX || spec->unit_layers < 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "iteration: fsdp_prefetch %d, units of %lld layers; expected 0 to %d, and no fewer than 0",
                            spec->fsdp_prefetch, (long long)spec->unit_layers, PC_PREFETCH_MAX);
    bool has_replicas = spec->expands || spec->bad_days.samples > 0;
    if (!(spec->jitter >= 0) || !(spec->jitter <= 10) || (spec->jitter > 0 && !has_replicas))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "iteration: jitter %g%s; expected 0 to 10, and replicas expanded or samples where it is "
                            "not 0",
                            spec->jitter, has_replicas ? "" : " of folded replicas");
    if (spec->expands && spec->granularity == PC_GRANULARITY_OPERATIONS)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "iteration: expanded replicas by operations; expected them by passes");
    if (spec->pipelines_tp && spec->granularity == PC_GRANULARITY_OPERATIONS)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "overlap.tp_pieces with granularity operations; expected tp_pieces false, or passes");
    code = pc_iteration_check_pairs(spec, error);
    return code ? code : check_bad_days(spec, error);
}

void pc_iteration_fill_exchange(pc_iteration_spec *spec) {
    pc_cut *cut = &spec->cut;
    bool is_asked = cut->cp > 1 && cut->cp_comm == PC_CP_A2A_P2P && cut->cp_a2a == 0;
    bool can_be = is_asked && cut->tp > 0 && spec->model.heads >= cut->tp;
    if (can_be) cut->cp_a2a = pc_cut_most_exchange(&spec->model, cut, spec->machine.domain_gpus / cut->tp);
}
