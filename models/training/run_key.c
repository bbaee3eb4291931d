#include "models/training/run_key.h"

#include "engine/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the hash ---- */

static void add(pc_run_key *key, uint64_t word) {
    pc_hash hash = {key->high, key->low};
    pc_hash_add(&hash, word);
    *key = (pc_run_key){hash.high, hash.low};
}

static void add_integer(pc_run_key *key, int64_t value) {
    add(key, (uint64_t)value);
}

static void add_real(pc_run_key *key, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    add(key, value != value ? UINT64_C(0x7ff8000000000000) : bits); /* "not given" has one form */
}

/* Byte by byte into words, so that the order of bytes in memory does not show; its length first. */
static void add_text(pc_run_key *key, const char *text, size_t room) {
    size_t length = strnlen(text, room);
    add(key, length);
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = 0;
        for (size_t k = i; k < length && k < i + 8; k++) word |= (uint64_t)(unsigned char)text[k] << (8 * (k - i));
        add(key, word);
    }
}

static void add_integers(pc_run_key *key, const int64_t *values, int64_t count) {
    add_integer(key, values ? count : -1);
    for (int64_t i = 0; values && i < count; i++) add_integer(key, values[i]);
}

/* ---- costs that were given ---- */

static void add_transfer(pc_run_key *key, const pc_transfer *transfer) {
    add_integer(key, transfer->mode);
    add_integer(key, transfer->delay_ps);
    add_integer(key, transfer->latency_ps);
    add_real(key, transfer->bandwidth_bytes_per_s);
    add_integer(key, transfer->size_bytes);
}

static void add_costs(pc_run_key *key, const pc_costs *costs) {
    int64_t chunks = (int64_t)costs->devices * costs->chunks;
    add_integer(key, costs->devices);
    add_integer(key, costs->chunks);
    add_integers(key, costs->duration_ps, chunks * PC_PASS_KINDS);
    add_integers(key, costs->activation_bytes, chunks);
    add_integers(key, costs->activation_b_bytes, chunks);
    add_integers(key, costs->activation_kept_bytes, chunks);
    add_integers(key, costs->memory_capacity_bytes, costs->devices);
    add_transfer(key, &costs->transfer);
    add_integers(key, costs->hop_delay_ps, costs->devices);
    add_integers(key, costs->ready_ps, chunks);
    if (costs->recomputes_in_b) add_integer(key, 1); /* no other key changes by it */
}

/* ---- a model on a machine ---- */

static void add_model(pc_run_key *key, const pc_model *model) {
    const int64_t numbers[] = {model->layers,        model->hidden,    model->ffn_hidden, model->heads,
                               model->kv_heads,      model->head_dim,  model->vocab,      model->vocab_multiple,
                               model->max_positions, model->positions, model->norm,       model->mlp,
                               model->attention,     model->precision, model->is_tied,    model->has_bias,
                               model->has_dropout};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) add_integer(key, numbers[i]);
}

/* The lists have a value a part. Where the run is known to be infeasible they may be of any length, and do not count.
 */
static void add_cut(pc_run_key *key, const pc_run_spec *spec) {
    const pc_iteration_spec *iteration = &spec->iteration;
    const pc_cut *cut = &iteration->cut;
    const int64_t numbers[] = {cut->tp,
                               cut->pp,
                               cut->dp,
                               cut->chunks,
                               cut->sequence_parallel,
                               cut->zero,
                               cut->microbatch_size,
                               cut->microbatches,
                               cut->seq_len,
                               cut->recompute,
                               cut->layout,
                               cut->gradient_bytes,
                               cut->cross_entropy,
                               cut->cross_entropy_chunks,
                               cut->layers_of_part != NULL,
                               cut->recompute_of_part != NULL};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) add_integer(key, numbers[i]);
    if (spec->infeasible[0] || !iteration->generator) return;
    int chunks = cut->chunks > 0 ? cut->chunks : iteration->generator->chunks_default;
    int parts = pc_placement_parts(iteration->generator->placement, cut->pp, chunks);
    for (int i = 0; cut->layers_of_part && i < parts; i++) add_integer(key, cut->layers_of_part[i]);
    for (int i = 0; cut->recompute_of_part && i < parts; i++) add_integer(key, cut->recompute_of_part[i]);
}

static void add_gpu(pc_run_key *key, const pc_gpu *gpu) {
    add_real(key, gpu->matrix_flops_per_s);
    add_real(key, gpu->vector_flops_per_s);
    add_real(key, gpu->memory_bytes_per_s);
    add_integer(key, gpu->memory_bytes);
    add_integer(key, gpu->memory_reserved_bytes);
    add_integer(key, gpu->l2_bytes);
    add_integer(key, gpu->processors);
    add_integer(key, gpu->tile_m);
    add_integer(key, gpu->tile_n);
    add_real(key, gpu->gemm_efficiency);
    add_real(key, gpu->gemm_ramp_k);
    add_real(key, gpu->attention_efficiency);
    add_real(key, gpu->attention_backward);
    add_real(key, gpu->memory_efficiency);
    add_real(key, gpu->kernel_s);
    add_real(key, gpu->launch_s);
    add_real(key, gpu->estimated_error);
}

static void add_connection(pc_run_key *key, const pc_connection *connection) {
    add_real(key, connection->bandwidth_bytes_per_s);
    add_real(key, connection->efficiency);
    add_real(key, connection->latency_s);
    add_real(key, connection->fast_latency_s);
    add_real(key, connection->fast_efficiency);
}

/* Its name, too, since messages say it. What was measured of its transfers is the profile's. */
static void add_machine(pc_run_key *key, const pc_machine *machine) {
    add_text(key, machine->name, sizeof machine->name);
    add_gpu(key, &machine->gpu);
    add_integer(key, machine->gpus_per_node);
    add_integer(key, machine->domain_gpus);
    add_integer(key, machine->nics_per_node);
    add_integer(key, machine->nodes);
    add_connection(key, &machine->domain);
    add_connection(key, &machine->network);
    add_integer(key, machine->leaf_nodes);
    add_real(key, machine->oversubscription);
    add_real(key, machine->switch_latency_s);
    add_integer(key, machine->reduces_in_switch);
    add_real(key, machine->in_switch_efficiency);
    add_real(key, machine->in_switch_latency_s);
    add_real(key, machine->nic_crossing_efficiency);
    add_real(key, machine->speed_variation);
    add_real(key, machine->collective_call_s);
    add_integer(key, machine->measured != NULL);
}

/* ---- bad days ---- */

static void add_empirical(pc_run_key *key, const pc_empirical *empirical) {
    add_integer(key, empirical->quantiles ? empirical->count : -1);
    for (int i = 0; empirical->quantiles && i < empirical->count; i++) add_real(key, empirical->quantiles[i]);
}

static void add_bad_days(pc_run_key *key, const pc_bad_days *days) {
    add_integer(key, days->samples);
    add_real(key, days->gpu_jitter);
    add_real(key, days->link_jitter);
    add_empirical(key, &days->passes);
    add_integer(key, days->slow_gpus);
    add_real(key, days->slow_factor);
    add_integer(key, days->bad_links);
    add_real(key, days->bad_factor);
    add_integer(key, days->slow_stage);
    add_integer(key, days->has_slow_stage);
    add_integer(key, days->other_nodes);
    add_gpu(key, &days->other_gpu);
    add_real(key, days->mtbf_s);
    add_real(key, days->checkpoint_s);
    add_real(key, days->interval_s);
    add_real(key, days->restart_s);
    add_real(key, days->repair_s);
    add_integer(key, days->spare_nodes);
    add_real(key, days->horizon_s);
}

/* ---- the run ---- */

enum { GENERATOR_NAME_MAX = 128 };

/* Names tell generators apart, but for what files give. */
static void add_generator(pc_run_key *key, const pc_generator *generator) {
    add_text(key, generator ? generator->name : "", GENERATOR_NAME_MAX);
    if (generator && generator->given) add_integer(key, (int64_t)generator->given->hash);
}

static void add_iteration(pc_run_key *key, const pc_run_spec *spec) {
    const pc_iteration_spec *x = &spec->iteration;
    add_model(key, &x->model);
    add_cut(key, spec);
    add_machine(key, &x->machine);
    add_generator(key, x->generator);
    for (int i = 0; i < PC_AXES; i++) add_integer(key, x->order.axis[i]);
    const int64_t numbers[] = {
        x->plans_equal,       x->overlaps_p2p,       x->overlaps_tp, x->overlaps_gradients, x->overlaps_parameters,
        x->scatters_boundary, x->bucket_bytes,       x->step,        x->granularity,        x->network,
        x->overhead_ps,       x->memory_limit_bytes, x->expands,     (int64_t)x->seed};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) add_integer(key, numbers[i]);
    if (x->engine != PC_ENGINE_AUTO || x->waits_for_memory) { /* so that known keys stay */
        add_integer(key, x->engine);
        add_integer(key, x->waits_for_memory);
    }
    add_real(key, x->pass_overhead);
    add_real(key, x->jitter);
    add_bad_days(key, &x->bad_days);
}

pc_run_key pc_run_key_of(const pc_run_spec *spec) {
    pc_run_key key = {UINT64_C(0x706970656361737f), UINT64_C(0x72756e206b657931)};
    add_generator(&key, spec->generator);
    const int64_t numbers[] = {spec->gpus,
                               spec->devices,
                               spec->microbatches,
                               spec->chunks,
                               spec->plans_equal,
                               spec->microbatch_size,
                               spec->seq_len,
                               spec->has_activation,
                               spec->has_profile_jitter,
                               spec->trace,
                               spec->overhead_ps,
                               spec->is_cluster,
                               (int64_t)spec->profile_hash};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) add_integer(&key, numbers[i]);
    if (spec->engine != PC_ENGINE_AUTO || spec->waits_for_memory) {
        add_integer(&key, spec->engine);
        add_integer(&key, spec->waits_for_memory);
    }
    add_real(&key, spec->gpu_hour_price);
    add_text(&key, spec->infeasible, sizeof spec->infeasible);
    if (spec->is_cluster)
        add_iteration(&key, spec);
    else
        add_costs(&key, &spec->costs);
    return key;
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
