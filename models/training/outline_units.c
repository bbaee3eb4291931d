#include "models/training/outline_units.h"

#include "engine/numbers.h"
#include "models/training/buckets.h"
#include "models/training/expand_replicas.h"
#include "models/training/outline_pairs.h"
#include "models/training/state.h"
#include "models/training/state_host.h"

bool pc_outline_has_wide_shards(const pc_outline *outline) {
    return pc_outline_has_units(outline) && outline->spec->fsdp_version != PC_FSDP_MEGATRON;
}

bool pc_outline_has_units(const pc_outline *outline) {
    return outline->cut.zero == 3 && outline->spec->unit == PC_UNIT_LAYER && pc_outline_has_replicas(outline);
}

/* torchtitan's `default` (torchtitan/parallelize: get_fsdp_reshard_after_forward_policy): gathers of every microbatch
 * would be many, and nothing would hide them. */
bool pc_outline_keeps_parameters(const pc_outline *outline) {
    pc_reshard reshard = outline->spec->reshard_after_forward;
    return reshard == PC_RESHARD_NEVER || (reshard == PC_RESHARD_DEFAULT && outline->devices > 1);
}

/* torch's pipelines reshard behind the last microbatch's backward pass alone, and reduce there (torch/distributed/
 * pipelining/stage.py, backward_maybe_with_nosync); elsewhere every backward pass reshards. */
bool pc_outline_gathers_once(const pc_outline *outline) {
    return pc_outline_has_units(outline) && outline->devices > 1 && pc_outline_keeps_parameters(outline);
}

bool pc_outline_reduces_last(const pc_outline *outline) {
    pc_gradient_sync sync = outline->spec->gradient_sync;
    bool is_last = sync == PC_GRADIENT_SYNC_LAST || (sync == PC_GRADIENT_SYNC_DEFAULT && outline->devices > 1);
    return pc_outline_has_units(outline) && is_last;
}

/* ---- traffic ---- */

/* Parameters of the embedding, the head and the last norm, as far as the part has them: those that are trained, and
 * all. */
static int64_t end_trained(const pc_outline *outline, const pc_part *part) {
    pc_part end = *part;
    end.layers = end.expert_layers = 0;
    return pc_part_trained(&outline->spec->model, &outline->cut, &end, outline->shares_embedding);
}

static int64_t end_parameters(const pc_outline *outline, const pc_part *part) {
    pc_part end = *part;
    end.layers = end.wide_layers = end.expert_layers = 0;
    return pc_part_parameters(&outline->spec->model, &outline->cut, &end, outline->shares_embedding);
}

static int64_t layers_a_unit(const pc_outline *outline) {
    return outline->spec->unit_layers > 0 ? outline->spec->unit_layers : 1;
}

/* Of kernels that copy: on the device, beside no other. */
static double copy_s(const pc_outline *outline, double bytes) {
    pc_operation copy = {.kind = PC_OPERATION_ELEMENTWISE,
                         .name = "unit",
                         .function = "copy",
                         .batch = 1,
                         .m = 1,
                         .n = 1,
                         .k = 1,
                         .bytes = (int64_t)bytes,
                         .launches = 1,
                         .repeat = 1};
    return bytes > 0 ? outline->pace * outline->cost.kernel(outline->cost.self, &copy).seconds : 0;
}

/* Bytes a parameter that kernels move for a reduction. FSDP2: chunk_cat reads 16-bit gradients and writes what is sent.
 * Megatron-FSDP copies them so, too (megatron_fsdp/param_and_grad_buffer.py). FSDP1: a cast, where they are sent in
 * fp32, and a division of that by its part of the ranks, which reads and writes
 * (_runtime_utils.py, _reduce_grad). */
static int moved_by_reduction(const pc_outline *outline) {
    int sent = pc_cut_gradient_bytes(&outline->cut), made = PC_PARAMETER_BYTES;
    if (outline->spec->fsdp_version == PC_FSDP_1) return (sent == made ? 0 : made + sent) + 2 * sent;
    return made + sent;
}

static pc_alone alone(const pc_outline *outline, const pc_group *group, pc_collective collective, double bytes) {
    return pc_outline_alone(&outline->spec->machine, group, collective, bytes);
}

/* Parameters of a unit, or of some of its layers. */
typedef struct unit_size {
    double trained, gathered;               /* gathered: bytes. Without folded experts, */
    double expert_trained, expert_gathered; /* and of those */
} unit_size;

static unit_size times(unit_size size, double count) {
    return (unit_size){size.trained * count, size.gathered * count, size.expert_trained * count,
                       size.expert_gathered * count};
}

/* Over the ranks that share them: folded experts have their own, behind the others. */
static pc_alone with_experts(const pc_outline *outline, pc_collective collective, double bytes, double of_experts) {
    pc_alone all = alone(outline, &outline->shard, collective, bytes);
    if (!(of_experts > 0)) return all;
    pc_alone experts = alone(outline, &outline->experts.shard, collective, of_experts);
    return (pc_alone){all.seconds + experts.seconds, all.sent_bytes + experts.sent_bytes};
}

/* Shares of gradients, with the ranks of other groups that have the same. */
static pc_alone over_groups(const pc_outline *outline, double bytes, double of_experts) {
    const pc_expert_places *experts = &outline->experts;
    pc_alone all = {0}, of_folded = {0};
    if (outline->replicate.ranks > 1)
        all = alone(outline, &outline->replicate, PC_COLLECTIVE_ALL_REDUCE, bytes / outline->shard.ranks);
    if (of_experts > 0 && experts->replicate.ranks > 1)
        of_folded = alone(outline, &experts->replicate, PC_COLLECTIVE_ALL_REDUCE, of_experts / experts->shard.ranks);
    return (pc_alone){all.seconds + of_folded.seconds, all.sent_bytes + of_folded.sent_bytes};
}

static double share_copy_s(const pc_outline *outline, double bytes, double of_experts) {
    double all = pc_outline_share_copy_s(outline, bytes, outline->shard.ranks);
    return of_experts > 0 ? all + pc_outline_share_copy_s(outline, of_experts, outline->experts.shard.ranks) : all;
}

static pc_code fill_traffic(const pc_outline *outline, unit_size size, pc_unit_traffic *x, pc_error *error) {
    double trained = size.trained + size.expert_trained, gathered = size.gathered + size.expert_gathered;
    double gradients = size.trained * pc_cut_gradient_bytes(&outline->cut);
    double of_experts = size.expert_trained * pc_cut_gradient_bytes(&outline->cut);
    *x = (pc_unit_traffic){0};
    if (!(gathered > 0)) return PC_OK;
    pc_alone gather = with_experts(outline, PC_COLLECTIVE_ALL_GATHER, size.gathered, size.expert_gathered);
    pc_alone reduce = with_experts(outline, PC_COLLECTIVE_REDUCE_SCATTER, gradients, of_experts);
    pc_alone replicate = over_groups(outline, gradients, of_experts);
    bool copies_out = outline->spec->fsdp_version == PC_FSDP_2;
    x->gathered_bytes = size.gathered;
    x->gradient_bytes = gradients;
    x->expert_gathered_bytes = size.expert_gathered;
    x->expert_gradient_bytes = of_experts;
    x->gather_bytes = gather.sent_bytes;
    x->reduce_bytes = reduce.sent_bytes + replicate.sent_bytes;
    pc_code code =
        pc_outline_time("parameters", gather.seconds + share_copy_s(outline, size.gathered, size.expert_gathered), 1,
                        &x->gather_ps, error);
    if (!code)
        code = pc_outline_time("gradients", reduce.seconds + share_copy_s(outline, gradients, of_experts), 1,
                               &x->reduce_ps, error);
    if (!code) code = pc_outline_time("gradients", replicate.seconds, 1, &x->replicate_ps, error);
    if (!code && copies_out)
        code = pc_outline_time("copy of parameters", copy_s(outline, 2 * gathered), 1, &x->copy_out_ps, error);
    if (!code)
        code = pc_outline_time("copy of gradients", copy_s(outline, trained * moved_by_reduction(outline)), 1,
                               &x->copy_in_ps, error);
    return code;
}

/* Of a layer's parameters those of few bits come as such, if the recipe gathers them so: `low` of a part's. */
static double layer_bytes(const pc_outline *outline, const pc_part_cost *part, int64_t low_weights, double parameters) {
    const pc_low_precision *low = &outline->spec->model.low;
    double few = low->gathers_parameters ? (double)low_weights / (double)part->part.layers : 0;
    double sent =
        few > 0 ? (double)pc_product_format_bytes(low->product[0], low_weights) / (double)part->part.layers : 0;
    return (parameters - few) * PC_PARAMETER_BYTES + sent;
}

/* A mean layer. Of few bits are folded experts, as far as anything is. */
static unit_size layer_size(const pc_outline *outline, const pc_part_cost *part, int64_t ends, int64_t trained_ends) {
    double layers = (double)part->part.layers, experts = (double)part->expert_parameters / layers;
    int64_t low_experts = pc_min(part->low_weights, part->expert_parameters);
    double others = (double)(part->parameters - ends - part->expert_parameters) / layers;
    return (unit_size){.trained = (double)(part->trained - trained_ends - part->expert_trained) / layers,
                       .gathered = layer_bytes(outline, part, part->low_weights - low_experts, others),
                       .expert_trained = (double)part->expert_trained / layers,
                       .expert_gathered = experts > 0 ? layer_bytes(outline, part, low_experts, experts) : 0};
}

pc_code pc_outline_add_units(const pc_outline *outline, int device, int chunk, pc_chunk_units *units, pc_error *error) {
    const pc_part_cost *part = pc_outline_part(outline, device, chunk);
    int64_t layers = part->part.layers, a_unit = pc_min(layers_a_unit(outline), pc_max(layers, 1));
    int64_t ends = end_parameters(outline, &part->part);
    int64_t trained_ends = end_trained(outline, &part->part);
    unit_size layer = layers > 0 ? layer_size(outline, part, ends, trained_ends) : (unit_size){0};
    *units = (pc_chunk_units){.count = (int)pc_divide_up(layers, a_unit)};
    int64_t rest = layers - (units->count - 1) * a_unit;
    units->each_share = layers > 0 ? (double)a_unit / (double)layers : 0;
    const unit_size root = {(double)trained_ends, (double)ends * PC_PARAMETER_BYTES, 0, 0};
    pc_code code = fill_traffic(outline, times(layer, (double)a_unit), &units->each, error);
    if (!code) code = fill_traffic(outline, times(layer, (double)rest), &units->rest, error);
    return code ? code : fill_traffic(outline, root, &units->root, error);
}

/* Of units that are gathered and reduced so often. */
static double sent_for(const pc_chunk_units *units, double of_root, double of_layers, double reduced) {
    const pc_unit_traffic *root = &units->root, *each = &units->each, *rest = &units->rest;
    double others = units->count > 0 ? units->count - 1 : 0;
    double gathered = others * each->gather_bytes + (units->count > 0 ? rest->gather_bytes : 0);
    double gradients = others * each->reduce_bytes + (units->count > 0 ? rest->reduce_bytes : 0);
    return of_root * root->gather_bytes + of_layers * gathered + reduced * (root->reduce_bytes + gradients);
}

double pc_outline_unit_traffic(const pc_outline *outline, const pc_chunk_outline *chunk, double n, double uses) {
    bool once = pc_outline_gathers_once(outline);
    double of_root = once ? 1 : n, of_layers = pc_outline_keeps_parameters(outline) ? of_root : uses;
    return sent_for(&chunk->units, of_root, of_layers, pc_outline_reduces_last(outline) ? 1 : n);
}

/* ---- passes ---- */

static pc_code kernels_of_ends(const pc_outline *outline, pc_part end, pc_pass_kind kind, double *seconds,
                               pc_error *error) {
    pc_operations operations;
    end.layers = end.wide_layers = end.expert_layers = 0;
    pc_code code = pc_pass_operations(&outline->spec->model, &outline->cut, &end, kind,
                                      outline->spec->generator->recomputes, &operations, error);
    if (!code) *seconds = pc_cost_pass(&outline->cost, &operations).kernel_s;
    return code;
}

pc_code pc_outline_share_kernels(const pc_outline *outline, const pc_part *part, pc_pass_kind kind, pc_pass_cost *pass,
                                 pc_error *error) {
    pc_part head = *part, embedding = *part;
    double head_s = 0, embedding_s = 0;
    head.has_embedding = embedding.has_head = false;
    pc_code code = part->has_head ? kernels_of_ends(outline, head, kind, &head_s, error) : PC_OK;
    if (!code && part->has_embedding) code = kernels_of_ends(outline, embedding, kind, &embedding_s, error);
    double all_s = pc_max(pass->kernel_s, head_s + embedding_s);
    pass->head_share = all_s > 0 ? head_s / all_s : 0;
    pass->embedding_share = all_s > 0 ? embedding_s / all_s : 0;
    return code;
}

/* What a pass does with its units. */
typedef struct doing {
    bool gathers_root, gathers, reduces;
} doing;

static doing what(const pc_outline *outline, pc_pass pass) {
    bool once = pc_outline_gathers_once(outline), keeps = pc_outline_keeps_parameters(outline);
    bool is_f = pass.kind == PC_PASS_F;
    return (doing){.gathers_root = is_f && !once,
                   .gathers = pass.kind != PC_PASS_W && (is_f ? !once : !keeps),
                   .reduces = pc_pass_adds_gradients(pass) && !pc_outline_reduces_last(outline)};
}

static pc_unit_step step_of(const pc_unit_traffic *x, bool gathers, bool reduces, pc_time kernels_ps) {
    return (pc_unit_step){.kernels_ps = kernels_ps + (gathers ? x->copy_out_ps : 0),
                          .gather_ps = gathers ? x->gather_ps : 0,
                          .copy_ps = reduces ? x->copy_in_ps : 0,
                          .reduce_ps = reduces ? x->reduce_ps : 0,
                          .replicate_ps = reduces ? x->replicate_ps : 0};
}

/* The root gathers before the embedding and keeps that for the head and the backward pass, whose last kernels are the
 * embedding's: then its gradients are there. The part's own kernels are divided without a rest. */
pc_units pc_outline_units_of(const pc_outline *outline, int device, pc_pass pass, pc_time alone_ps) {
    const pc_chunk_units *x = &outline->chunks_of[(int64_t)device * outline->chunks + pass.chunk].units;
    const pc_pass_cost *cost = &pc_outline_part(outline, device, pass.chunk)->pass[pass.kind];
    doing does = what(outline, pass);
    pc_time head_ps = (pc_time)((double)alone_ps * cost->head_share);
    pc_time layers_ps = alone_ps - head_ps - (pc_time)((double)alone_ps * cost->embedding_share);
    if (x->count == 0) layers_ps = 0;
    pc_time embedding_ps = alone_ps - head_ps - layers_ps;
    pc_time each_ps = (pc_time)((double)layers_ps * x->each_share);
    pc_time rest_ps = layers_ps - each_ps * (x->count - 1);
    pc_unit_step root = step_of(&x->root, does.gathers_root, does.reduces, embedding_ps);
    pc_unit_step head = {.kernels_ps = head_ps};
    bool is_forward = pass.kind == PC_PASS_F;
    return (pc_units){.before = is_forward ? root : head,
                      .each = step_of(&x->each, does.gathers, does.reduces, each_ps),
                      .other = step_of(&x->rest, does.gathers, does.reduces, x->count > 0 ? rest_ps : 0),
                      .behind = is_forward ? head : root,
                      .count = x->count,
                      .odd = is_forward ? x->count - 1 : 0};
}

/* Nothing is gathered ahead, nor is a reduction left behind, where these do not overlap. */
pc_unit_rules pc_outline_unit_rules(const pc_outline *outline) {
    const pc_iteration_spec *spec = outline->spec;
    return (pc_unit_rules){.prefetch = spec->overlaps_parameters ? spec->fsdp_prefetch : 0,
                           .slowdown = spec->overlap_slowdown,
                           .waits_for_reduce = !spec->overlaps_gradients,
                           .replicates_beside = outline->shard.domains <= 1 && outline->replicate.domains > 1};
}

/* ---- memory ---- */

/* Weights 4, gradients 4, and moments. Gradients that wait for the last microbatch are 16-bit ones in FSDP1, as
 * autograd has made them, and in FSDP2 as wide as they are sent (to_accumulated_grad_if_needed). */
enum { SHARD_BYTES = 4 };

/* Whether units are gathered in few bits; held so, too, the share that Megatron-FSDP keeps has them (its buffers of
 * fp8 parameters, megatron_fsdp/param_and_grad_buffer.py). */
static bool gathers_few(const pc_outline *outline) {
    return pc_low_precision_is_on(&outline->spec->model.low) && outline->spec->model.low.gathers_parameters;
}

static bool holds_few(const pc_outline *outline) {
    return gathers_few(outline) && outline->spec->model.low.weights == PC_LOW_WEIGHTS_HELD;
}

static int64_t few_bytes(const pc_outline *outline, int64_t elements) {
    return pc_product_format_bytes(outline->spec->model.low.product[0], elements);
}

/* Of Megatron-FSDP, whose copies beyond the first are shared, too, unless they are transpositions, which passes make.
 */
static int64_t narrow_share_bytes(const pc_outline *outline, int64_t count, int64_t few) {
    int64_t copies = pc_low_frozen_copies(&outline->spec->model.low);
    return PC_PARAMETER_BYTES * (count - few) + (few > 0 ? copies * few_bytes(outline, few) : 0);
}

/* Of few bits as many of folded experts' as of all. */
static int64_t narrow_state_bytes(const pc_outline *outline, const pc_device_outline *held) {
    int64_t few = holds_few(outline) ? held->low_weights : 0, of_experts = pc_min(few, held->expert_count);
    int64_t dense = narrow_share_bytes(outline, held->parameter_count - held->expert_count, few - of_experts);
    int64_t experts = narrow_share_bytes(outline, held->expert_count, of_experts);
    return pc_divide_up(dense, outline->shard.ranks) + pc_divide_up(experts, pc_outline_expert_ranks(outline));
}

/* Of `all` parameters, so many of them `trained`. What is frozen has no other copy than that of the passes. */
static void add_shards(const pc_outline *outline, int64_t trained, int64_t all, int64_t ranks,
                       pc_device_outline *held) {
    int64_t frozen = all - trained;
    held->fixed_gradients += pc_divide_up(SHARD_BYTES * trained, ranks);
    held->fixed_parameters += pc_divide_up(SHARD_BYTES * trained + PC_PARAMETER_BYTES * frozen, ranks);
    held->fixed_optimizer += pc_divide_up(pc_optimizer_moment_bytes(&outline->cut.optimizer, trained), ranks);
}

void pc_outline_unit_state(const pc_outline *outline, pc_device_outline *held) {
    int64_t count = held->trained_count;
    int whole = outline->spec->fsdp_version == PC_FSDP_1 ? PC_PARAMETER_BYTES : pc_cut_gradient_bytes(&outline->cut);
    if (pc_outline_has_wide_shards(outline)) {
        held->fixed_gradients = held->fixed_parameters = held->fixed_optimizer = 0;
        add_shards(outline, count - held->expert_trained, held->parameter_count - held->expert_count,
                   outline->shard.ranks, held);
        add_shards(outline, held->expert_trained, held->expert_count, pc_outline_expert_ranks(outline), held);
    } else {
        held->fixed_parameters = narrow_state_bytes(outline, held);
    }
    if (pc_outline_reduces_last(outline)) held->fixed_gradients += whole * count;
}

/* Gathered parameters, so many of them in few bits. */
static int64_t gathered_bytes(const pc_outline *outline, int64_t parameters, int64_t low_weights) {
    int64_t few = gathers_few(outline) ? low_weights : 0;
    return PC_PARAMETER_BYTES * (parameters - few) + (few > 0 ? few_bytes(outline, few) : 0);
}

/* Of the unit at work, where the product of gradients reads weights transposed: the backward pass makes them and drops
 * them (Megatron-FSDP's keep_fp8_transpose_cache is off). */
static int64_t transposed_bytes(const pc_outline *outline, const pc_part_cost *part) {
    const pc_low_precision *low = &outline->spec->model.low;
    int64_t layers = pc_min(part->part.layers, layers_a_unit(outline));
    bool makes = gathers_few(outline) && pc_low_precision_is_per_tensor(low) && low->copies > 1;
    return makes && layers > 0 ? few_bytes(outline, layers * (part->low_weights / part->part.layers)) : 0;
}

/* Torch's fully_shard, on each layer and on the part around them: the root is not resharded after F, for B needs it
 * first. Gathered stand the ends of every chunk, and of the layers one unit at work and those on their way; or all,
 * where they are kept. FSDP2's gather writes one buffer, from which parameters are copied; a reduction reads one, to
 * which gradients are copied, and the next may begin before it is over. Both are of streams of their own, whose memory
 * the allocator gives to nothing else: each has the size of the largest end, or of all units on their way. FSDP1
 * gathers into the parameters themselves. Two passes that run together gather each for itself. */
int64_t pc_outline_unit_bytes(const pc_outline *outline, int d) {
    int64_t ends = 0, largest_end = 0, layer = 0, all = 0, reduced = 0, transposed = 0;
    int64_t at_once = layers_a_unit(outline) * (1 + outline->spec->fsdp_prefetch);
    for (int c = 0; c < outline->chunks; c++) {
        const pc_part_cost *part = pc_outline_part(outline, d, c);
        int64_t of_end = PC_PARAMETER_BYTES * end_parameters(outline, &part->part), of_all = part->part.layers;
        int64_t layers = pc_min(of_all, at_once), of_trained = end_trained(outline, &part->part);
        int64_t whole = gathered_bytes(outline, part->parameters, part->low_weights);
        if (layers > 0) layer = pc_max(layer, layers * pc_divide_up(whole - of_end, of_all));
        if (layers > 0) reduced = pc_max(reduced, layers * ((part->trained - of_trained) / of_all));
        reduced = pc_max(reduced, of_trained);
        transposed = pc_max(transposed, transposed_bytes(outline, part));
        ends += of_end;
        all += whole;
        largest_end = pc_max(largest_end, of_end);
    }
    if (pc_outline_has_pairs(outline) && !pc_outline_keeps_parameters(outline)) layer *= 2;
    int64_t gathered = pc_outline_keeps_parameters(outline) ? all : ends + layer;
    int64_t copied = outline->spec->fsdp_version == PC_FSDP_2 ? pc_max(largest_end, layer) : 0;
    return gathered + copied + transposed + pc_cut_gradient_bytes(&outline->cut) * reduced;
}
