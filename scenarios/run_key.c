#include "scenarios/run_key.h"

#include "engine/field.h"
#include "engine/hash.h"
#include "scenarios/library_private.h"
#include "scenarios/precision_file.h"
#include "scenarios/run_labels.h"
#include "scenarios/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(pc_hash *hash, int64_t value) {
    pc_hash_add(hash, (uint64_t)value);
}

static void add_fields(pc_hash *hash, const pc_field *fields, size_t count, const pc_run_spec *spec) {
    for (size_t i = 0; i < count; i++) pc_field_hash(&fields[i], spec, hash);
}

#define ADD_FIELDS(hash, list, spec) add_fields(hash, list, sizeof(list) / sizeof(list)[0], spec)
#define AT(member)                                                                                                     \
    { .name = #member, .type = PC_FIELD_TYPE(pc_run_spec, member), PC_FIELD_AT(pc_run_spec, member) }

/* ---- settings ---- */

/* The values that settings give as they are. */
static void add_settings(pc_hash *hash, const pc_run_spec *spec) {
    for (pc_key key = 0; key < PC_KEYS; key++) {
        const pc_setting_rule *rule = pc_setting_rule_of(key);
        if (rule->field.size == 0 || !pc_setting_has_field(rule, spec->is_cluster)) continue;
        pc_field_hash(&rule->field, spec, hash);
        if (pc_setting_has_twin(rule, spec->is_cluster))
            pc_field_hash(&rule->field, (const char *)spec + pc_setting_twin(rule), hash);
    }
}

/* What was worked out of settings. */
static const pc_field of_any[] = {AT(gpus),
                                  AT(devices),
                                  AT(microbatches),
                                  AT(chunks),
                                  AT(microbatch_size),
                                  AT(has_activation),
                                  AT(has_profile_jitter),
                                  AT(is_cluster),
                                  AT(profile_hash),
                                  AT(infeasible)};

static const pc_field of_clusters[] = {
    AT(iteration.model.precision),
    AT(iteration.cut.tp),
    AT(iteration.cut.pp),
    AT(iteration.cut.dp),
    AT(iteration.cut.dispatcher),
    AT(iteration.cut.cp),
    AT(iteration.cut.cp_a2a),
    AT(iteration.cut.chunks),
    AT(iteration.cut.sequence_parallel),
    AT(iteration.cut.microbatch_size),
    AT(iteration.cut.microbatches),
    AT(iteration.cut.recompute),
    AT(iteration.cut.recompute_layers),
    AT(iteration.cut.recompute_modules),
    AT(iteration.cut.transformer_impl),
    AT(iteration.cut.stores_low_input),
    AT(iteration.cut.offload.kinds),
    AT(iteration.cut.offload.modules),
    AT(iteration.cut.layout),
    AT(iteration.cut.graphs),
    AT(iteration.order.axis[0]),
    AT(iteration.order.axis[1]),
    AT(iteration.order.axis[2]),
    AT(iteration.order.axis[3]),
    AT(iteration.memory_limit_bytes),
    AT(iteration.jitter),
    AT(iteration.bad_days.has_slow_stage),
};
_Static_assert(PC_AXES == 4, "each has a line");

static const pc_field of_costs[] = {
    AT(costs.devices),
    AT(costs.chunks),
    AT(costs.transfer.mode),
    AT(costs.transfer.delay_ps),
    AT(costs.transfer.latency_ps),
    AT(costs.transfer.bandwidth_bytes_per_s),
    AT(costs.transfer.size_bytes),
    AT(costs.recomputes_in_b),
    AT(costs.leaves_gradients),
};

/* ---- lists ---- */

static void add_integers(pc_hash *hash, const int64_t *values, int64_t count) {
    add(hash, values ? count : -1);
    for (int64_t i = 0; values && i < count; i++) add(hash, values[i]);
}

/* Of all kinds but S and T, as if there were no others; and of those where they are given. */
static void add_times(pc_hash *hash, const pc_costs *costs, int64_t chunks) {
    add(hash, costs->duration_ps ? chunks * PC_PASS_S : -1);
    for (int64_t i = 0; costs->duration_ps && i < chunks * PC_PASS_KINDS; i++)
        if (i % PC_PASS_KINDS < PC_PASS_S) add(hash, costs->duration_ps[i]);
    for (int64_t i = 0; costs->duration_ps && i < chunks * PC_PASS_KINDS; i++) {
        bool is_given = i % PC_PASS_KINDS >= PC_PASS_S && costs->duration_ps[i] != PC_TIME_NOT_GIVEN;
        if (!is_given) continue;
        add(hash, i);
        add(hash, costs->duration_ps[i]);
    }
}

/* Nothing where there is nothing to add. */
static void add_vocab(pc_hash *hash, const pc_vocab_costs *vocab) {
    const int64_t numbers[] = {vocab->broadcast_ps, vocab->exchange_ps, vocab->reduce_ps, vocab->held_bytes};
    bool has_any = numbers[0] || numbers[1] || numbers[2] || numbers[3];
    if (has_any) add_integers(hash, numbers, 4);
}

static void add_pairs(pc_hash *hash, const pc_costs *costs) {
    int64_t count = 2 * (int64_t)costs->devices * costs->chunks * costs->chunks;
    if (!costs->pair_ps) return;
    add_integers(hash, costs->pair_ps, count);
    add_integers(hash, costs->pair_own_ps, count);
    add_integers(hash, costs->pair_apart_ps, count);
}

static void add_costs(pc_hash *hash, const pc_costs *costs, const int64_t *memory_limit_bytes) {
    int64_t chunks = (int64_t)costs->devices * costs->chunks;
    add_times(hash, costs, chunks);
    add_vocab(hash, &costs->vocab);
    add_pairs(hash, costs);
    add_integers(hash, costs->activation_bytes, chunks);
    add_integers(hash, costs->activation_b_bytes, chunks);
    add_integers(hash, costs->activation_kept_bytes, chunks);
    add_integers(hash, memory_limit_bytes, costs->devices);
    add_integers(hash, costs->hop_delay_ps, costs->devices);
    add_integers(hash, costs->ready_ps, chunks);
}

/* They have a value a part. Where the run is known to be infeasible they may be of any length, and do not count. */
static void add_parts(pc_hash *hash, const pc_run_spec *spec) {
    const pc_generator *generator = spec->iteration.generator;
    const pc_cut *cut = &spec->iteration.cut;
    add(hash, cut->layers_of_part != NULL);
    add(hash, cut->recompute_of_part != NULL);
    if (spec->infeasible[0] || !generator) return;
    int chunks = (int)pc_generator_chunks(generator, cut->chunks, cut->slices);
    int parts = pc_placement_parts(pc_generator_placement(generator, chunks, cut->slices), cut->pp, chunks);
    for (int i = 0; cut->layers_of_part && i < parts; i++) add(hash, cut->layers_of_part[i]);
    if (cut->mtp_listed > 0) add(hash, INT64_C(65536) * cut->mtp_listed + cut->mtp_ahead);
    for (int i = 0; cut->recompute_of_part && i < parts; i++)
        add(hash, pc_recomputation_code(cut->recompute_of_part[i]));
}

static void add_empirical(pc_hash *hash, const pc_empirical *empirical) {
    const pc_field quantile = {.type = PC_FIELD_REAL};
    add(hash, empirical->quantiles ? empirical->count : -1);
    for (int i = 0; empirical->quantiles && i < empirical->count; i++)
        pc_field_hash(&quantile, &empirical->quantiles[i], hash);
}

/* ---- the run ---- */

/* Names tell generators apart, but for what files give. */
static void add_generator(pc_hash *hash, const pc_generator *generator) {
    const pc_field name = {.type = PC_FIELD_TEXT, .size = PC_LABEL_SIZE};
    pc_field_hash(&name, generator ? generator->name : "", hash);
    if (generator && generator->given) add(hash, (int64_t)generator->given->hash);
}

/* Beside the chunks they count where these do not say how many slices there are. */
static void add_slices(pc_hash *hash, const pc_run_spec *spec) {
    if (spec->generator && pc_generator_has_sliced_parts(spec->generator)) add(hash, spec->slices);
}

/* Nothing where they are not asked for. */
static void add_load(pc_hash *hash, const pc_cut *cut) {
    if (cut->moe_load == PC_MOE_LOAD_GIVEN && cut->moe_load_counts) add(hash, (int64_t)cut->moe_load_counts->hash);
}

static void add_iteration(pc_hash *hash, const pc_run_spec *spec) {
    const pc_iteration_spec *iteration = &spec->iteration;
    bool has_slices = iteration->generator && pc_placement_has_slices(iteration->generator->placement);
    ADD_FIELDS(hash, of_clusters, spec);
    if (has_slices && iteration->cut.chunks > 1) add(hash, iteration->cut.sequence_split);
    add_parts(hash, spec);
    add_load(hash, &iteration->cut);
    add_generator(hash, iteration->generator);
    pc_low_precision_hash(&iteration->model.low, hash);
    pc_machine_hash(&iteration->machine, hash);
    if (spec->shipped_profile) add(hash, iteration->machine.gpu.kernels_for);
    pc_gpu_hash(&iteration->bad_days.other_gpu, hash);
    add_empirical(hash, &iteration->bad_days.passes);
}

pc_run_key pc_run_key_of(const pc_run_spec *spec) {
    pc_hash hash = {UINT64_C(0x706970656361737f), UINT64_C(0x72756e206b657932)};
    add_generator(&hash, spec->generator);
    add_slices(&hash, spec);
    ADD_FIELDS(&hash, of_any, spec);
    add_settings(&hash, spec);
    if (spec->is_cluster) {
        add_iteration(&hash, spec);
    } else {
        ADD_FIELDS(&hash, of_costs, spec);
        add_costs(&hash, &spec->costs, spec->memory_limit_bytes);
    }
    return (pc_run_key){hash.high, hash.low};
}

void pc_run_key_text(pc_run_key key, char text[PC_RUN_KEY_SIZE]) {
    snprintf(text, PC_RUN_KEY_SIZE, "%016" PRIx64 "%016" PRIx64, key.high, key.low);
}

bool pc_run_key_parse(const char *text, pc_run_key *key) {
    char half[17] = "";
    if (strlen(text) != 32 || strspn(text, "0123456789abcdef") != 32) return false;
    memcpy(half, text, 16);
    *key = (pc_run_key){strtoull(half, NULL, 16), strtoull(text + 16, NULL, 16)};
    return true;
}
