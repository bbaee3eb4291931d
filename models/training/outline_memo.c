#include "models/training/outline_memo.h"

#include "engine/alloc.h"
#include "engine/hash.h"
#include "models/training/pass_costs.h"

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
    int32_t numbers[PC_AXES + 3] = {places->tp, places->pp, places->dp};
    for (int i = 0; i < PC_AXES; i++) numbers[3 + i] = (int32_t)places->order.axis[i];
    return pc_hash_bytes(numbers, sizeof numbers);
}

static bool is_same_places(const pc_outline_places *a, const pc_outline_places *b) {
    for (int i = 0; i < PC_AXES; i++)
        if (a->order.axis[i] != b->order.axis[i]) return false;
    return a->tp == b->tp && a->pp == b->pp && a->dp == b->dp;
}

pc_code pc_outline_memo_find_places(pc_outline_memo *memo, const pc_outline *outline, const pc_outline_places **places,
                                    pc_error *error) {
    const pc_machine *machine = &outline->spec->machine;
    pc_outline_places wanted = {
        .order = outline->spec->order, .tp = outline->cut.tp, .pp = outline->cut.pp, .dp = outline->cut.dp};
    pc_outline_places *known = &memo->places[hash_places(&wanted) % PC_OUTLINE_MEMO_PLACES];
    *places = known;
    if (is_same_places(known, &wanted)) return PC_OK;
    wanted.hop = pc_alloc((size_t)wanted.pp, sizeof *wanted.hop);
    if (!wanted.hop) return pc_error_no_memory(error);
    for (int axis = 0; axis < PC_AXES; axis++)
        wanted.group[axis] = pc_group_of(machine, &outline->ranks, (pc_axis)axis);
    for (int d = 0; d < wanted.pp && wanted.pp > 1; d++)
        wanted.hop[d] = pc_hop_between(machine, &outline->ranks, d, (d + 1) % wanted.pp);
    pc_free(known->hop);
    *known = wanted;
    return PC_OK;
}

/* ---- parts ---- */

static pc_outline_part_key key_of(const pc_outline *outline, const pc_part *part) {
    return (pc_outline_part_key){.group = outline->tp,
                                 .part = *part,
                                 .microbatch_size = outline->cut.microbatch_size,
                                 .seq_len = outline->cut.seq_len,
                                 .sums_apart = pc_cut_sums_apart(&outline->cut),
                                 .casts_over = pc_cut_casts_over(&outline->spec->model, &outline->cut),
                                 .offload_layers = outline->cut.offload_layers,
                                 .tp = outline->cut.tp,
                                 .gradient_bytes = outline->cut.gradient_bytes,
                                 .cross_entropy = outline->cut.cross_entropy,
                                 .cross_entropy_chunks = outline->cut.cross_entropy_chunks,
                                 .kernels = outline->cut.kernels,
                                 .sequence_parallel = outline->cut.sequence_parallel,
                                 .gathers_low_weights =
                                     pc_cut_gathers_low_weights(&outline->spec->model, &outline->cut),
                                 .overlaps_tp = outline->spec->overlaps_tp,
                                 .pipelines_tp = outline->spec->pipelines_tp,
                                 .splits = outline->spec->generator->splits,
                                 .mixes = outline->spec->generator->mixes,
                                 .recomputes = outline->spec->generator->recomputes,
                                 .vocab_stages = outline->cut.vocab_stages,
                                 .vocab_barriers = outline->cut.vocab_barriers,
                                 .shares_embedding = outline->shares_embedding};
}

static bool is_same_group(const pc_group *a, const pc_group *b) {
    return a->ranks == b->ranks && a->in_domain == b->in_domain && a->domains == b->domains &&
           a->in_leaf == b->in_leaf && a->groups_beside == b->groups_beside &&
           a->nic_bytes_per_s == b->nic_bytes_per_s && a->uplink_bytes_per_s == b->uplink_bytes_per_s &&
           a->crosses_leaves == b->crosses_leaves && a->crosses_nics == b->crosses_nics;
}

static bool is_same_key(const pc_outline_part_key *a, const pc_outline_part_key *b) {
    return a->part.layers == b->part.layers && a->part.wide_layers == b->part.wide_layers &&
           a->part.has_embedding == b->part.has_embedding && a->part.has_head == b->part.has_head &&
           a->part.recompute == b->part.recompute && a->part.recompute_layers == b->part.recompute_layers &&
           a->part.has_vocab == b->part.has_vocab && a->vocab_stages == b->vocab_stages &&
           a->vocab_barriers == b->vocab_barriers && a->kernels == b->kernels &&
           a->microbatch_size == b->microbatch_size && a->seq_len == b->seq_len && a->sums_apart == b->sums_apart &&
           a->casts_over == b->casts_over && a->offload_layers == b->offload_layers && a->tp == b->tp &&
           a->gradient_bytes == b->gradient_bytes && a->cross_entropy == b->cross_entropy &&
           a->cross_entropy_chunks == b->cross_entropy_chunks && a->sequence_parallel == b->sequence_parallel &&
           a->gathers_low_weights == b->gathers_low_weights && a->overlaps_tp == b->overlaps_tp &&
           a->pipelines_tp == b->pipelines_tp && a->splits == b->splits && a->mixes == b->mixes &&
           a->recomputes == b->recomputes && a->shares_embedding == b->shares_embedding &&
           is_same_group(&a->group, &b->group);
}

static uint64_t hash_key(const pc_outline_part_key *key) {
    const int64_t numbers[] = {
        key->part.layers,
        key->part.wide_layers,
        pc_recomputation_code((pc_recomputation){key->part.recompute, key->part.recompute_layers}),
        key->part.has_embedding,
        key->part.has_head,
        key->part.has_vocab,
        key->vocab_stages,
        key->vocab_barriers,
        key->microbatch_size,
        key->seq_len,
        key->casts_over,
        key->gathers_low_weights,
        key->tp,
        key->sequence_parallel,
        key->overlaps_tp,
        key->splits,
        key->mixes,
        key->recomputes,
        key->shares_embedding,
        key->group.in_domain,
        key->group.groups_beside};
    return pc_hash_bytes(numbers, sizeof numbers);
}

pc_code pc_outline_memo_find_part(const pc_outline *outline, pc_part_cost *cost, pc_error *error) {
    pc_outline_part_key key = key_of(outline, &cost->part);
    uint64_t at = hash_key(&key) % PC_OUTLINE_MEMO_PARTS;
    if (outline->memo->parts[at].is_known && is_same_key(&outline->memo->parts[at].key, &key)) {
        *cost = outline->memo->parts[at].cost;
        return PC_OK;
    }
    pc_collective_memo collectives = {.machine = &outline->spec->machine, .group = &outline->tp};
    pc_code code = pc_part_cost_make(outline, &collectives, cost, error);
    if (code) return code;
    outline->memo->parts[at].is_known = true;
    outline->memo->parts[at].key = key;
    outline->memo->parts[at].cost = *cost;
    return PC_OK;
}
