#include "models/training/state.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/training/buckets.h"
#include "models/training/outline_pairs.h"
#include "models/training/outline_units.h"
#include "models/training/state_host.h"
#include "models/workload/dummy_wgrad.h"
#include "models/workload/lora_base.h"
#include "models/workload/muon.h"
#include "models/workload/slice.h"

#include <stddef.h>
#include <string.h>

pc_group pc_outline_pair(const pc_outline *outline, int stage, int other) {
    pc_hop hop = pc_hop_between(&outline->spec->machine, &outline->ranks, stage, other);
    return pc_group_of_hop(&hop);
}

static pc_alone alone(const pc_outline *outline, const pc_group *group, pc_collective collective, double bytes) {
    return pc_outline_alone(&outline->spec->machine, group, collective, bytes);
}

double pc_outline_tied_bytes(const pc_outline *outline) {
    double rows = (double)pc_model_padded_vocab(&outline->spec->model, outline->cut.tp) / outline->cut.tp;
    return rows * (double)outline->spec->model.hidden * pc_cut_gradient_bytes(&outline->cut);
}

/* Over all stages: the last part's output to all; three numbers a token from all to all (as add_loss_by_steps has
 * them); and the sum of the slices' gradients of it. A broadcast takes what an all-gather of as much does, a reduction
 * what a reduce-scatter does. */
static pc_code add_vocab(pc_outline *outline, pc_error *error) {
    const pc_cut *cut = &outline->cut;
    if (cut->vocab_stages == 0) return PC_OK;
    double rows = (double)pc_boundary_bytes(&outline->spec->model, cut, false);
    double numbers = 4.0 * (double)pc_slice_of(&outline->spec->model, cut).tokens;
    double reduce_s = alone(outline, &outline->pp, PC_COLLECTIVE_REDUCE_SCATTER, rows).seconds;
    double exchange_s = 3 * alone(outline, &outline->pp, PC_COLLECTIVE_ALL_REDUCE, numbers).seconds;
    bool is_at_once = cut->vocab_barriers == 1;
    pc_vocab_costs *x = &outline->vocab;
    x->held_bytes = pc_vocab_held_bytes(&outline->spec->model, cut);
    pc_code code = pc_outline_time("vocabulary", alone(outline, &outline->pp, PC_COLLECTIVE_ALL_GATHER, rows).seconds,
                                   1, &x->broadcast_ps, error);
    if (!code)
        code = pc_outline_time("vocabulary", exchange_s + (is_at_once ? reduce_s : 0), 1, &x->exchange_ps, error);
    return code || is_at_once ? code : pc_outline_time("vocabulary", reduce_s, 1, &x->reduce_ps, error);
}

/* Megatron-LM's embedding group (megatron/core/distributed/finalize_model_grads.py, _allreduce_word_embedding_grads):
 * of a tied model both ends, with multi-token prediction also its stage. The first stage: nobody else has the matrix,
 * or all do. */
static int tied_stage(const pc_outline *outline) {
    const pc_model *model = &outline->spec->model;
    const pc_cut *cut = &outline->cut;
    int32_t matrix = model->is_tied ? (int32_t)PC_FROZEN_HEAD : (int32_t)PC_FROZEN_EMBEDDING;
    int part = 0;
    bool is_alone = cut->vocab_stages > 0 || pc_cut_frozen(cut) & matrix;
    if (!is_alone && model->is_tied) part = outline->parts - 1;
    if (!is_alone && !model->is_tied && model->mtp_layers > 0) part = outline->parts - 1 - cut->mtp_ahead;
    return pc_placement_stage(outline->placement, outline->devices, part, 0);
}

/* Adapters that all experts share are summed over their ranks, too, once all replicas' are (lora.h): of the stage that
 * has most of them. */
static double shared_adapters_s(const pc_outline *outline) {
    int64_t most = 0;
    if (outline->cut.lora.rank == 0 || !outline->cut.lora.shares_experts || pc_cut_ep(&outline->cut) < 2) return 0;
    for (int d = 0; d < outline->devices; d++) {
        int64_t count = 0;
        for (int c = 0; c < outline->chunks; c++) count += pc_outline_part(outline, d, c)->expert_trained;
        most = pc_max(most, count);
    }
    double bytes = (double)most * pc_cut_gradient_bytes(&outline->cut);
    return most > 0 ? alone(outline, &outline->experts.ep, PC_COLLECTIVE_ALL_REDUCE, bytes).seconds : 0;
}

static pc_code add_group_collectives(pc_outline *outline, pc_error *error) {
    double number = 4; /* bytes of an fp32 number */
    double loss_s = alone(outline, &outline->dp, PC_COLLECTIVE_ALL_REDUCE, number).seconds;
    double norm_s = loss_s + alone(outline, &outline->tp, PC_COLLECTIVE_ALL_REDUCE, number).seconds +
                    alone(outline, &outline->pp, PC_COLLECTIVE_ALL_REDUCE, number).seconds;
    norm_s += shared_adapters_s(outline);
    pc_code code = pc_outline_time("loss", loss_s, 1, &outline->loss_ps, error);
    if (!code) code = pc_outline_time("norm", norm_s, 1, &outline->norm_ps, error);
    int first = pc_placement_stage(outline->placement, outline->devices, 0, 0);
    outline->tied_stage = tied_stage(outline);
    if (!code) code = add_vocab(outline, error);
    if (code || outline->tied_stage == first) return code;
    pc_group pair = pc_outline_pair(outline, first, outline->tied_stage);
    pc_alone tied = alone(outline, &pair, PC_COLLECTIVE_ALL_REDUCE, pc_outline_tied_bytes(outline));
    outline->tied_bytes = tied.sent_bytes;
    return pc_outline_time("tied embedding", tied.seconds, 1, &outline->tied_ps, error);
}

/* ---- kernels beside them ---- */

/* What kernels of k lose beside collectives of c that take the part s of their speed: s of the time that both are under
 * way, which is c, or k / (1 - s) where the kernels are done first. As in pc_outline_with_zero. */
static double lost(double kernels, double beside, double slowdown) {
    if (!(kernels > 0)) return 0;
    return slowdown * ((1 - slowdown) * beside < kernels ? beside : kernels / (1 - slowdown));
}

static double whole_s(const pc_outline *outline, int d, int chunk, bool of_gradients) {
    const pc_chunk_outline *x = &outline->chunks_of[(int64_t)d * outline->chunks + chunk];
    return x->buckets * pc_time_to_seconds(of_gradients ? x->reduce_ps : x->gather_ps);
}

/* Passes that one of these collectives may run beside: of gradients those that add to them, of parameters F. */
static double pass_s(const pc_outline *outline, int d, int chunk, bool of_gradients) {
    double f = pc_outline_pass_s(outline, d, (pc_pass){0, (int16_t)chunk, PC_PASS_F});
    double w = pc_outline_pass_s(outline, d, (pc_pass){0, (int16_t)chunk, PC_PASS_W});
    double bw = pc_outline_pass_s(outline, d, (pc_pass){0, (int16_t)chunk, PC_PASS_BW});
    return !of_gradients ? f : bw > w ? bw : w;
}

/* Of all chunks, one pass each. The first bucket of parameters comes before all passes, the last one of gradients goes
 * behind them: they slow nothing. */
static double lost_beside(const pc_outline *outline, int d, int64_t passes, bool of_gradients) {
    int first = pc_outline_nth_chunk(outline, d, 0);
    double kernels = 0, beside = 0;
    for (int c = 0; c < outline->chunks; c++) {
        kernels += pass_s(outline, d, c, of_gradients) * (double)passes;
        beside += whole_s(outline, d, c, of_gradients) * (double)passes;
    }
    beside -=
        whole_s(outline, d, first, of_gradients) / outline->chunks_of[(int64_t)d * outline->chunks + first].buckets;
    return lost(kernels, beside, outline->spec->overlap_slowdown);
}

/* ZeRO 2 reduces the gradients of every microbatch, of which two replicas in one pipeline do half each. */
static int64_t reducing_passes(const pc_outline *outline) {
    int halves = outline->placement == PC_PLACEMENT_BIDIRECTIONAL ? 2 : 1;
    return outline->cut.zero == 2 ? outline->cut.microbatches / halves : 1;
}

static pc_code add_slowed(pc_outline *outline, int d, pc_error *error) {
    const pc_iteration_spec *spec = outline->spec;
    double seconds = 0;
    if (spec->overlap_slowdown == 0) return PC_OK;
    if (pc_outline_gathers_first(outline) && spec->overlaps_parameters) seconds += lost_beside(outline, d, 1, false);
    if (pc_outline_reduces_behind(outline) && pc_outline_overlaps_gradients(outline))
        seconds += lost_beside(outline, d, reducing_passes(outline), true);
    return pc_outline_time("overlap.slowdown", seconds, 1, &outline->device[d].slowed_ps, error);
}

/* ---- the step ---- */

enum { FP32_BYTES = 4, STEP_LAUNCHES = 4, SEPARATE_LAUNCHES = 10 };

/* Of a rank's share. FSDP's is as wide as its weights, fp32, whatever it reduces in. */
static int held_gradient_bytes(const pc_outline *outline) {
    return pc_outline_has_wide_shards(outline) ? FP32_BYTES : pc_cut_gradient_bytes(&outline->cut);
}

/* Gradients that are narrower than fp32 are copied to fp32 for the step, all at once (Megatron's `.float()` of every
 * main_grad, in megatron/core/optimizer: distrib_optimizer.py and Float16OptimizerWithFloat16Params), unless the
 * step reads them as they are. */
static bool copies_gradients(const pc_outline *outline) {
    bool reads_narrow = outline->cut.optimizer.main_grads == PC_MAIN_GRADS_BF16;
    return held_gradient_bytes(outline) < FP32_BYTES && !reads_narrow;
}

/* As the step reads a gradient. */
static int gradient_width(const pc_outline *outline) {
    return copies_gradients(outline) ? FP32_BYTES : held_gradient_bytes(outline);
}

static int moved_by_update(const pc_outline *outline) {
    bool is_separate = outline->spec->optimizer_kernels == PC_OPTIMIZER_SEPARATE;
    return pc_optimizer_moved_bytes(&outline->cut.optimizer, is_separate, gradient_width(outline));
}

/* Bytes that a parameter's step moves. The copy reads the gradient as it is held and writes fp32. Then, w wide, the
 * norm reads it (w), and clipping reads and writes it (2w). The update follows, whose fused kernel reads it as wide;
 * Muon's is worked out tensor by tensor. Of Adam in fp32 that is 42. */
static int moved_by_step(const pc_outline *outline) {
    int held = held_gradient_bytes(outline), width = gradient_width(outline);
    bool is_muon = outline->cut.optimizer.kind == PC_OPTIMIZER_MUON;
    return (copies_gradients(outline) ? held + width : 0) + 3 * width + (is_muon ? 0 : moved_by_update(outline));
}

/* Of them, those that the GPU does not move of a parameter that the host steps: Adam's, or, where its gradient is
 * there, all. */
static int moved_by_host(const pc_outline *outline) {
    bool has_gradients = outline->cut.offload.kinds & PC_OFFLOAD_PARAMETERS;
    return has_gradients ? moved_by_step(outline) : moved_by_update(outline);
}

/* Its launches: norm, clipping, Adam, zeroing; and a copy. */
static int step_launches(const pc_outline *outline) {
    bool is_fused = outline->spec->optimizer_kernels == PC_OPTIMIZER_FUSED;
    return STEP_LAUNCHES + (is_fused ? 0 : SEPARATE_LAUNCHES - 1) + copies_gradients(outline);
}

/* Parameters that one rank steps: its share, with ZeRO; of whole tensors, those of the rank that has most. That rank
 * may have most of both, experts' and others'. */
static int64_t stepped(const pc_outline *outline, const pc_device_outline *held) {
    if (pc_outline_gives_tensors(outline)) return held->owners.fullest + held->expert_owners.fullest;
    bool is_shared = outline->cut.zero >= 1;
    int64_t of_experts = pc_divide_up(held->expert_trained, is_shared ? pc_outline_expert_ranks(outline) : 1);
    return pc_divide_up(held->trained_count - held->expert_trained, is_shared ? outline->shard.ranks : 1) + of_experts;
}

/* Every rank zeroes all the gradients that it holds. What is on the host the CPU steps (state_host.c): of its
 * parameters Adam has no bytes here. */
static pc_code add_step(pc_outline *outline, int d, pc_error *error) {
    pc_device_outline *x = &outline->device[d];
    int64_t count = stepped(outline, x), on_host = pc_outline_stepped_by_host(outline, count);
    bool is_as_before = d > 0 && x[-1].trained_count == x->trained_count && x[-1].expert_trained == x->expert_trained &&
                        x[-1].fixed_gradients == x->fixed_gradients && x[-1].owners.fullest == x->owners.fullest &&
                        x[-1].owners.most_step_ps == x->owners.most_step_ps &&
                        x[-1].expert_owners.fullest == x->expert_owners.fullest &&
                        x[-1].expert_owners.most_step_ps == x->expert_owners.most_step_ps;
    if (is_as_before) {
        x->step_ps = x[-1].step_ps;
        return PC_OK;
    }
    pc_operations step; /* zeroing what is not used of it would take longer than all the rest */
    step.count = 1;
    step.list[0] =
        (pc_operation){.kind = PC_OPERATION_OPTIMIZER,
                       .name = "step",
                       .function = "adam",
                       .batch = 1,
                       .m = count,
                       .n = 1,
                       .k = 1,
                       .bytes = moved_by_step(outline) * count + x->fixed_gradients - moved_by_host(outline) * on_host,
                       .launches = step_launches(outline),
                       .repeat = 1};
    pc_pass_estimate sum = pc_cost_pass(&outline->cost, &step);
    pc_time own_ps = x->owners.most_step_ps + x->expert_owners.most_step_ps;
    double seconds = pc_max(sum.kernel_s, sum.launch_bound_s) + pc_time_to_seconds(own_ps);
    return pc_outline_time("step", seconds + pc_outline_host_step_s(outline, on_host), 1, &x->step_ps, error);
}

/* ---- memory ---- */

/* The chunk of a stage whose passes work with most. */
static const pc_part_activation *most_working(const pc_outline *outline, int d) {
    const pc_part_activation *most = &pc_outline_part(outline, d, 0)->activation;
    for (int c = 1; c < outline->chunks; c++) {
        const pc_part_activation *other = &pc_outline_part(outline, d, c)->activation;
        if (other->working > most->working) most = other;
    }
    return most;
}

/* What a chunk keeps of all its microbatches: outputs and their gradients; or logits, unless a loss in pieces has none.
 * Of two directions a chunk has half of them. */
static pc_wide kept_between_stages(const pc_outline *outline, const pc_part *part, int64_t boundary) {
    const pc_cut *cut = &outline->cut;
    pc_slice slice = pc_slice_of_part(&outline->spec->model, cut, part);
    pc_wide passes = (pc_wide)pc_cut_slices(cut) * cut->microbatches;
    if (outline->placement == PC_PLACEMENT_BIDIRECTIONAL) passes /= 2;
    if (!part->has_head) return passes * 2 * boundary;
    bool has_logits = cut->vocab_stages == 0 && cut->cross_entropy != PC_CROSS_ENTROPY_CHUNKED;
    return passes * 2 * (pc_wide)(has_logits ? slice.tokens * slice.vocab : slice.norm_tokens * slice.hidden);
}

int64_t pc_outline_boundary_bytes(const pc_outline *outline, int device) {
    bool is_scattered = outline->spec->scatters_boundary && outline->cut.tp > 1;
    if (outline->devices == 1) return 0;
    int64_t boundary = pc_boundary_bytes(&outline->spec->model, &outline->cut, is_scattered);
    if (outline->spec->stage_buffers == PC_STAGE_BUFFERS_SHARED) return 4 * boundary;
    pc_wide sum = 2 * (pc_wide)boundary;
    for (int c = 0; c < outline->chunks; c++)
        sum += kept_between_stages(outline, &pc_outline_part(outline, device, c)->part, boundary);
    return (int64_t)pc_min(sum, INT64_MAX / 4); /* fits no GPU, and may be added to */
}

/* Of two buckets, or of the only one. */
static int64_t in_buckets(int64_t count, int64_t buckets) {
    return buckets > 1 && count > 0 ? 2 * ((count - 1) / buckets + 1) : count;
}

/* Beside that: with a neighbour, an activation and its gradient on their way out and in. ZeRO 2 and 3 reduce gradients,
 * and ZeRO 3 gathers parameters, bucket by bucket, one at work and one on its way. Each of two passes that run together
 * gathers for itself. */
static int64_t buffer_bytes(const pc_outline *outline, int d) {
    int64_t boundary = pc_outline_boundary_bytes(outline, d), most = 0;
    int zero = pc_outline_has_replicas(outline) ? outline->cut.zero : 0;
    int gathered = zero < 3 ? 0 : PC_PARAMETER_BYTES * (pc_outline_has_pairs(outline) ? 2 : 1);
    if (pc_outline_has_units(outline)) return boundary + pc_outline_unit_bytes(outline, d);
    for (int c = 0; c < outline->chunks; c++) {
        const pc_part_cost *part = pc_outline_part(outline, d, c);
        int64_t buckets = outline->chunks_of[(int64_t)d * outline->chunks + c].buckets;
        int64_t gradients = zero >= 2 ? pc_cut_gradient_bytes(&outline->cut) * in_buckets(part->trained, buckets) : 0;
        most = pc_max(most, gradients + gathered * in_buckets(part->parameters, buckets));
    }
    return boundary + most;
}

/* Megatron-FSDP's recipes turn gradient_accumulation_fusion off (Megatron-Bridge, llama3_llm_pretrain.py), and torch's
 * FSDP has none. */
static int64_t workspace_bytes(const pc_outline *outline, int d) {
    bool has_layers = false, has_head = false;
    if (pc_outline_has_units(outline)) return 0;
    for (int c = 0; c < outline->chunks; c++) {
        const pc_part *part = &pc_outline_part(outline, d, c)->part;
        has_layers |= part->layers > 0;
        has_head |= part->has_head || part->has_vocab;
    }
    return pc_dummy_wgrad_bytes(&outline->spec->model, &outline->cut, has_layers, has_head);
}

int64_t pc_iteration_capacity(const pc_iteration_spec *spec) {
    const pc_gpu *gpu = &spec->machine.gpu;
    bool has_limit = spec->memory_limit_bytes != PC_NO_LIMIT;
    return has_limit ? spec->memory_limit_bytes : gpu->memory_bytes - gpu->memory_reserved_bytes;
}

/* What weights of few bits take more than those of 16 that they stand beside or replace, with one that is made 16 bits.
 * ZeRO 3 gathers them for each pass, and keeps its share as it is. */
static int64_t low_weight_bytes(const pc_outline *outline, const pc_device_outline *held, int ranks) {
    const pc_low_precision *low = &outline->spec->model.low;
    if (held->low_weights == 0 || (outline->cut.zero == 3 && ranks > 1)) return 0;
    pc_low_precision kept = *low;
    if (outline->cut.lora.base == PC_LORA_BASE_NF4)
        return pc_nf4_bytes(held->low_weights) + pc_lora_base_workspace(&outline->spec->model, &outline->cut) -
               PC_PARAMETER_BYTES * held->low_weights;
    if (pc_cut_frozen(&outline->cut) & (int32_t)PC_FROZEN_LAYERS) kept.copies = pc_low_frozen_copies(low);
    if (outline->cut.lora.base == PC_LORA_BASE_PRE_QUANTIZED) kept.weights = PC_LOW_WEIGHTS_HELD;
    return pc_low_precision_weight_bytes(&kept, held->low_weights) - PC_PARAMETER_BYTES * held->low_weights;
}

/* Whether state and step go by tensors. */
static bool looks_at_tensors(const pc_outline *outline) {
    return pc_outline_gives_tensors(outline) || pc_optimizer_takes_tensors(&outline->cut.optimizer);
}

static pc_state_bytes state_over(const pc_outline *outline, int ranks, int64_t count) {
    pc_cut shared = outline->cut;
    shared.dp = ranks;
    shared.cp = 1;
    return pc_state_of(&shared, count);
}

/* Of so many parameters, some of which are folded experts' and have their own replicas. */
static pc_state_bytes state_of(const pc_outline *outline, int64_t count, int64_t of_experts) {
    pc_state_bytes sum = state_over(outline, outline->shard.ranks, count - of_experts);
    if (of_experts == 0) return sum;
    pc_state_bytes experts = state_over(outline, pc_outline_expert_ranks(outline), of_experts);
    return (pc_state_bytes){sum.parameters + experts.parameters, sum.gradients + experts.gradients,
                            sum.optimizer + experts.optimizer};
}

/* What whole master weights take more than remainders beside weights of few bits, which are no part of them. */
static int64_t whole_master_bytes(const pc_outline *outline, int64_t count) {
    const pc_low_precision *low = &outline->spec->model.low;
    bool is_low = pc_low_precision_is_on(low) && low->weights == PC_LOW_WEIGHTS_HELD;
    return is_low && pc_optimizer_has_remainders(&outline->cut.optimizer) ? (FP32_BYTES - PC_PARAMETER_BYTES) * count
                                                                          : 0;
}

/* The step's copies: of gradients all at once; of state one optimizer's after the other's, for experts have their own
 * (megatron/core/optimizer: ChainedOptimizer). */
static int64_t copied_for_step(const pc_outline *outline, const pc_device_outline *held, int64_t by_gpu) {
    bool is_shared = outline->cut.zero >= 1;
    int64_t of_experts = pc_divide_up(held->expert_trained, is_shared ? pc_outline_expert_ranks(outline) : 1);
    int64_t largest = pc_max(of_experts, by_gpu - of_experts);
    int64_t gradients = copies_gradients(outline) ? FP32_BYTES * by_gpu : 0;
    return gradients + pc_optimizer_copied_bytes(&outline->cut.optimizer) * largest;
}

static void add_memory(pc_outline *outline, int d) {
    const pc_iteration_spec *spec = outline->spec;
    pc_device_outline *x = &outline->device[d];
    pc_state_bytes all = state_of(outline, x->parameter_count, x->expert_count);
    pc_state_bytes state = state_of(outline, x->trained_count, x->expert_trained);
    x->fixed_parameters = all.parameters + low_weight_bytes(outline, x, outline->shard.ranks);
    x->fixed_gradients = state.gradients;
    int64_t of_tensors = x->owners.most_state_bytes + x->expert_owners.most_state_bytes;
    x->fixed_optimizer = looks_at_tensors(outline) ? of_tensors : state.optimizer;
    if (pc_outline_has_units(outline)) pc_outline_unit_state(outline, x);
    const pc_part_activation *most = most_working(outline, d);
    int64_t working = most->working, count = stepped(outline, x);
    int64_t by_gpu = count - pc_outline_stepped_by_host(outline, count);
    int64_t copy = copied_for_step(outline, x, by_gpu);
    x->fixed_optimizer += whole_master_bytes(outline, count);
    pc_outline_move_state(outline, count, x);
    x->workspace_bytes = workspace_bytes(outline, d);
    x->reserved_bytes = most->reserved;
    x->fixed_buffers = working + buffer_bytes(outline, d) + x->workspace_bytes;
    x->graph_bytes = outline->cut.graphs & (int32_t)PC_GRAPHS_ITERATION ? working : 0;
    x->step_bytes = pc_max(copy - (working - x->graph_bytes), 0); /* nothing else is at work then; a pool stays */
    x->capacity_bytes = pc_iteration_capacity(spec);
}

/* ---- parameters, and who steps them ---- */

/* Two replicas come to a stage in an order that depends on which half of the pipeline it is in. */
static bool holds_as_before(const pc_outline *outline, int d) {
    const pc_chunk_outline *x = &outline->chunks_of[(int64_t)d * outline->chunks];
    bool is_as_before = d > 0 && outline->placement != PC_PLACEMENT_BIDIRECTIONAL;
    for (int c = 0; is_as_before && c < outline->chunks; c++) is_as_before = x[c].sort == x[c - outline->chunks].sort;
    return is_as_before;
}

/* What one tensor of a sort has of state and, if its step is its own, takes for that. Muon's other tensors step with
 * Adam, all in one launch. */
static pc_code price_tensor(const pc_outline *outline, pc_tensor_sort *sort, pc_error *error) {
    const pc_optimizer *optimizer = &outline->cut.optimizer;
    int width = gradient_width(outline);
    pc_operations step;
    sort->state_bytes =
        pc_optimizer_tensor_bytes(optimizer, sort->parameters, sort->rows, sort->columns, sort->is_in_layer);
    if (optimizer->kind != PC_OPTIMIZER_MUON) return PC_OK;
    pc_muon_operations(sort, width, &step);
    if (!sort->is_in_layer) {
        step.count = 1;
        step.list[0].bytes = moved_by_update(outline) * sort->parameters;
        step.list[0].launches = 0;
    }
    pc_pass_estimate sum = pc_cost_pass(&outline->cost, &step);
    return pc_outline_time("step", pc_max(sum.kernel_s, sum.launch_bound_s), 1, &sort->step_ps, error);
}

/* Moves folded experts' behind all others; returns how many others there are. */
static int part_experts(pc_tensor_sort *sorts, int count) {
    int others = 0;
    for (int i = 0; i < count; i++) {
        if (sorts[i].is_expert) continue;
        pc_tensor_sort other = sorts[i];
        sorts[i] = sorts[others];
        sorts[others++] = other;
    }
    return others;
}

/* Where nobody shares them, all are the rank's own. */
static pc_code give_tensors(pc_outline *outline, int d, pc_tensor_sort *sorts, int count, pc_error *error) {
    static const pc_group own = {.ranks = 1, .in_domain = 1, .domains = 1, .in_leaf = 1};
    const pc_machine *machine = &outline->spec->machine;
    pc_device_outline *x = &outline->device[d];
    bool gives = pc_outline_gives_tensors(outline);
    const pc_group *experts = gives && outline->experts.shard.ranks > 1 ? &outline->experts.shard : &own;
    int others = x->expert_count > 0 ? part_experts(sorts, count) : count;
    pc_code code =
        pc_owners_of(machine, gives ? &outline->shard : &own, sorts, others, PC_PARAMETER_BYTES, &x->owners, error);
    if (code) return code;
    return pc_owners_of(machine, experts, sorts + others, count - others, PC_PARAMETER_BYTES, &x->expert_owners, error);
}

static pc_code find_owners(pc_outline *outline, int d, pc_error *error) {
    pc_code code = PC_OK;
    int count = 0;
    pc_tensor_sort *sorts = pc_alloc((size_t)outline->chunks * PC_TENSOR_SORTS_MAX, sizeof *sorts);
    if (!sorts) return pc_error_no_memory(error);
    for (int c = 0; c < outline->chunks; c++)
        count += pc_part_tensors(&outline->spec->model, &outline->cut, &pc_outline_part(outline, d, c)->part,
                                 outline->shares_embedding, sorts + count);
    for (int i = 0; !code && i < count; i++) code = price_tensor(outline, &sorts[i], error);
    if (!code) code = give_tensors(outline, d, sorts, count, error);
    pc_free(sorts);
    return code;
}

/* What is of the device before other state is put on it; what goes over links to other stages stays. */
static void clear_device(pc_device_outline *x) {
    *x = (pc_device_outline){.hop = x->hop, .message_s = x->message_s, .hop_ps = x->hop_ps};
}

static pc_code add_parameters(pc_outline *outline, int d, pc_error *error) {
    pc_device_outline *x = &outline->device[d];
    for (int c = 0; c < outline->chunks; c++) {
        x->parameter_count += pc_outline_part(outline, d, c)->parameters;
        x->trained_count += pc_outline_part(outline, d, c)->trained;
        x->low_weights += pc_outline_part(outline, d, c)->low_weights;
        x->expert_count += pc_outline_part(outline, d, c)->expert_parameters;
        x->expert_trained += pc_outline_part(outline, d, c)->expert_trained;
    }
    return looks_at_tensors(outline) ? find_owners(outline, d, error) : PC_OK;
}

/* Of a device whose chunks are those of the one before. */
static void add_as_before(pc_outline *outline, int d) {
    pc_device_outline *x = &outline->device[d];
    pc_chunk_outline *chunk = &outline->chunks_of[(int64_t)d * outline->chunks];
    const pc_device_outline own = *x;
    *x = x[-1];
    x->hop = own.hop;
    x->message_s = own.message_s;
    x->hop_ps = own.hop_ps;
    memcpy(chunk, chunk - outline->chunks, (size_t)outline->chunks * sizeof *chunk);
}

static pc_code add_device(pc_outline *outline, int d, pc_error *error) {
    if (holds_as_before(outline, d)) {
        add_as_before(outline, d);
        return PC_OK;
    }
    clear_device(&outline->device[d]);
    pc_code code = add_parameters(outline, d, error);
    for (int c = 0; !code && c < outline->chunks; c++) code = pc_outline_add_buckets(outline, d, c, error);
    if (code) return code;
    add_memory(outline, d);
    code = add_slowed(outline, d, error);
    return code ? code : add_step(outline, d, error);
}

pc_code pc_outline_share_state(pc_outline *outline, pc_error *error) {
    pc_code code = PC_OK;
    for (int d = 0; !code && d < outline->devices; d++) code = add_device(outline, d, error);
    return code;
}

pc_code pc_outline_add_state(pc_outline *outline, pc_error *error) {
    pc_code code = add_group_collectives(outline, error);
    return code ? code : pc_outline_share_state(outline, error);
}
