#include "models/training/outline_memo.h"

#include "engine/alloc.h"
#include "engine/hash.h"
#include "models/training/outline_experts.h"
#include "models/training/outline_units.h"
#include "models/training/pass_costs.h"
#include "models/workload/expert_slice.h"

#include <string.h>

pc_code pc_outline_memo_create(pc_outline_memo **memo, pc_error *error) {
    pc_outline_memo *made = pc_alloc(1, sizeof *made);
    if (made) made->parts = pc_alloc(PC_OUTLINE_MEMO_PARTS, sizeof *made->parts);
    if (!made || !made->parts) {
        pc_free(made);
        return pc_error_no_memory(error);
    }
    *memo = made;
    return PC_OK;
}

void pc_outline_memo_free(pc_outline_memo *memo) {
    if (!memo) return;
    for (int i = 0; i < PC_OUTLINE_MEMO_PLACES; i++) pc_free(memo->places[i].hop);
    pc_free(memo->parts);
    pc_free(memo);
}

/* ---- places ---- */

static uint64_t hash_places(const pc_outline_places *places) {
    int32_t numbers[PC_AXES + 7] = {places->tp,       places->pp, places->dp, places->cp,
                                    places->exchange, places->ep, places->etp};
    for (int i = 0; i < PC_AXES; i++) numbers[7 + i] = (int32_t)places->order.axis[i];
    return pc_hash_bytes(numbers, sizeof numbers);
}

static bool is_same_places(const pc_outline_places *a, const pc_outline_places *b) {
    for (int i = 0; i < PC_AXES; i++)
        if (a->order.axis[i] != b->order.axis[i]) return false;
    return a->tp == b->tp && a->pp == b->pp && a->dp == b->dp && a->cp == b->cp && a->exchange == b->exchange &&
           a->ep == b->ep && a->etp == b->etp;
}

/* Heads are exchanged among neighbours, keys go round one of each row of them. */
void pc_outline_place_context(const pc_outline *outline, pc_outline_places *places) {
    const pc_machine *machine = &outline->spec->machine;
    const pc_ranks *ranks = &outline->ranks;
    int exchange = pc_cut_exchange(&outline->spec->model, &outline->cut), cp = pc_cut_cp(&outline->cut);
    pc_ranks inner, outer;
    memset(places->cp_groups, 0, sizeof places->cp_groups);
    places->cp_hop = (pc_hop){0};
    places->replicas = pc_group_of_both(machine, ranks, PC_AXIS_DP, PC_AXIS_CP);
    places->cp_groups[PC_GROUP_CP] = pc_group_of(machine, ranks, PC_AXIS_CP);
    pc_ranks_split(ranks, PC_AXIS_CP, exchange, &inner, &outer);
    if (exchange > 1) places->cp_groups[PC_GROUP_CP_A2A] = pc_group_of(machine, &inner, PC_AXIS_CP);
    if (exchange == cp) return;
    places->cp_hop = pc_hop_round(machine, &outer, PC_AXIS_CP);
    places->cp_groups[PC_GROUP_CP_RING] = pc_group_of_hop(&places->cp_hop);
}

pc_code pc_outline_memo_find_places(pc_outline_memo *memo, const pc_outline *outline, const pc_outline_places **places,
                                    pc_error *error) {
    const pc_machine *machine = &outline->spec->machine;
    pc_outline_places wanted = {.order = outline->spec->order,
                                .tp = outline->cut.tp,
                                .pp = outline->cut.pp,
                                .dp = outline->cut.dp,
                                .cp = pc_cut_cp(&outline->cut),
                                .exchange = pc_cut_exchange(&outline->spec->model, &outline->cut)};
    bool is_folded = pc_cut_folds_experts(&outline->spec->model, &outline->cut);
    if (is_folded) wanted.ep = pc_cut_ep(&outline->cut), wanted.etp = pc_cut_etp(&outline->cut);
    pc_outline_places *known = &memo->places[hash_places(&wanted) % PC_OUTLINE_MEMO_PLACES];
    *places = known;
    if (is_same_places(known, &wanted)) return PC_OK;
    wanted.hop = pc_alloc((size_t)wanted.pp, sizeof *wanted.hop);
    if (!wanted.hop) return pc_error_no_memory(error);
    for (int axis = 0; axis < PC_AXES; axis++)
        wanted.group[axis] = pc_group_of(machine, &outline->ranks, (pc_axis)axis);
    for (int d = 0; d < wanted.pp && wanted.pp > 1; d++)
        wanted.hop[d] = pc_hop_between(machine, &outline->ranks, d, (d + 1) % wanted.pp);
    if (wanted.cp > 1) pc_outline_place_context(outline, &wanted);
    if (is_folded) wanted.experts = pc_outline_place_experts(outline);
    pc_free(known->hop);
    *known = wanted;
    return PC_OK;
}

static int64_t bits_of(double number) {
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* ---- loads ---- */

void pc_outline_know_load(pc_outline *outline) {
    const pc_model *model = &outline->spec->model;
    pc_cut *cut = &outline->cut;
    if (!pc_cut_expert_load_varies(model, cut) || cut->moe_load_fullest > 0) return;
    const int64_t number[] = {cut->moe_load,
                              bits_of(cut->moe_load_exponent),
                              cut->moe_load_counts ? (int64_t)cut->moe_load_counts->hash : 0,
                              pc_cut_ep(cut),
                              bits_of(pc_cut_expert_tokens(cut)),
                              bits_of(cut->memory_quantile)};
    uint64_t at = pc_hash_bytes(number, sizeof number) % PC_OUTLINE_MEMO_LOADS;
    pc_outline_load *known = outline->memo ? &outline->memo->loads[at] : NULL;
    bool is_known = known && known->load.tokens > 0 && memcmp(known->number, number, sizeof number) == 0;
    cut->known_load = is_known ? known->load : pc_cut_find_load(model, cut);
    if (!known || is_known) return;
    memcpy(known->number, number, sizeof number);
    known->load = cut->known_load;
}

/* ---- parts ---- */

typedef struct key_writer {
    pc_outline_part_key key;
    int count;
} key_writer;

static void put(key_writer *writer, const int64_t *numbers, size_t size) {
    memcpy(writer->key.number + writer->count, numbers, size);
    writer->count += (int)(size / sizeof *numbers);
}

static void put_group(key_writer *writer, const pc_group *group) {
    const int64_t numbers[] = {group->ranks,
                               group->in_domain,
                               group->domains,
                               group->in_leaf,
                               group->groups_beside,
                               group->crosses_leaves,
                               group->crosses_nics,
                               bits_of(group->nic_bytes_per_s),
                               bits_of(group->uplink_bytes_per_s)};
    put(writer, numbers, sizeof numbers);
}

/* Zeros without context parallelism. */
static void put_context(key_writer *writer, const pc_outline *outline) {
    const pc_hop *hop = &outline->cp_hop;
    const int64_t numbers[] = {
        pc_cut_cp(&outline->cut), outline->cut.cp_comm, pc_cut_exchange(&outline->spec->model, &outline->cut),
        hop->in_domain,           hop->crosses_leaves,  bits_of(hop->bytes_per_s),
        bits_of(hop->latency_s)};
    if (pc_cut_cp(&outline->cut) == 1) return;
    put(writer, numbers, sizeof numbers);
    for (int i = 0; i <= PC_GROUP_CP_RING; i++) put_group(writer, &outline->cp_groups[i]);
}

/* Zeros where experts are not folded. */
static void put_experts(key_writer *writer, const pc_outline *outline) {
    const int64_t numbers[] = {pc_cut_ep(&outline->cut),  pc_cut_etp(&outline->cut), outline->cut.dispatcher,
                               outline->cut.fp8_dispatch, outline->cut.deepep_sms,   outline->cut.hybridep_sms};
    if (!pc_cut_folds_experts(&outline->spec->model, &outline->cut)) return;
    put(writer, numbers, sizeof numbers);
    put_group(writer, &outline->experts.ep);
    put_group(writer, &outline->experts.etp);
}

static void put_part(key_writer *writer, const pc_part *part) {
    const int64_t numbers[] = {
        part->layers,           part->wide_layers, part->local_layers,
        part->expert_layers,    part->mtp_layers,  part->mtp_heads,
        part->has_embedding,    part->has_head,    part->has_vocab,
        part->offloaded_layers, part->slice,       pc_recomputation_code(pc_part_recomputation(part))};
    put(writer, numbers, sizeof numbers);
}

static void put_cut(key_writer *writer, const pc_model *model, const pc_cut *cut) {
    const int64_t numbers[] = {cut->microbatch_size,
                               cut->seq_len,
                               cut->tp,
                               pc_cut_ep(cut),
                               pc_cut_etp(cut),
                               cut->dispatcher,
                               cut->moe_load,
                               bits_of(cut->moe_load_exponent),
                               cut->moe_load_counts ? (int64_t)cut->moe_load_counts->hash : 0,
                               bits_of(cut->moe_load_fullest),
                               bits_of(cut->memory_quantile),
                               cut->sequence_parallel,
                               cut->gradient_bytes,
                               cut->cross_entropy,
                               cut->cross_entropy_chunks,
                               cut->kernels,
                               cut->transformer_impl,
                               cut->stores_low_input,
                               cut->attention_is_low,
                               cut->attention_hands_low,
                               cut->fuses_operations,
                               cut->compiles,
                               cut->graphs,
                               cut->frozen,
                               cut->lora.rank,
                               cut->lora.targets,
                               cut->lora.base,
                               cut->lora.shares_experts,
                               cut->lora.divides_rank,
                               bits_of(cut->lora.dropout),
                               cut->slices,
                               cut->sequence_split,
                               cut->vocab_stages,
                               cut->vocab_barriers,
                               cut->offload.kinds & ~PC_OFFLOAD_STATE, /* the state is no part's */
                               cut->offload.modules,
                               pc_cut_sums_apart(cut),
                               pc_cut_casts_over(model, cut),
                               pc_cut_gathers_low_weights(model, cut)};
    put(writer, numbers, sizeof numbers);
}

/* What is new in a part, a cut or a spec and counts here stands in these lists alone. */
static pc_outline_part_key key_of(const pc_outline *outline, const pc_part *part) {
    const pc_generator *generator = outline->spec->generator;
    const int64_t numbers[] = {outline->spec->overlaps_tp,
                               outline->spec->pipelines_tp,
                               outline->spec->counts_modules,
                               generator->splits,
                               generator->mixes,
                               generator->recomputes,
                               outline->shares_embedding,
                               pc_outline_has_units(outline)};
    key_writer writer = {0};
    put_part(&writer, part);
    put_cut(&writer, &outline->spec->model, &outline->cut);
    put(&writer, numbers, sizeof numbers);
    put_group(&writer, &outline->tp);
    put_context(&writer, outline);
    put_experts(&writer, outline);
    return writer.key;
}

bool pc_outline_memo_has_same_parts(const pc_outline *a, const pc_outline *b) {
    const pc_part none = {.layers = 0};
    pc_outline_part_key of_a = key_of(a, &none), of_b = key_of(b, &none);
    return memcmp(&of_a, &of_b, sizeof of_a) == 0;
}

pc_code pc_outline_memo_find_part(const pc_outline *outline, pc_part_cost *cost, pc_error *error) {
    pc_outline_part_key key = key_of(outline, &cost->part);
    uint64_t at = pc_hash_bytes(&key, sizeof key) % PC_OUTLINE_MEMO_PARTS;
    if (outline->memo->parts[at].is_known && memcmp(&outline->memo->parts[at].key, &key, sizeof key) == 0) {
        *cost = outline->memo->parts[at].cost;
        return PC_OK;
    }
    pc_collective_memo collectives = {.outline = outline};
    pc_code code = pc_part_cost_make(outline, &collectives, cost, error);
    if (code) return code;
    outline->memo->parts[at].is_known = true;
    outline->memo->parts[at].key = key;
    outline->memo->parts[at].cost = *cost;
    return PC_OK;
}
