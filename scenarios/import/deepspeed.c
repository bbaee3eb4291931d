#include "scenarios/import/deepspeed.h"

#include "scenarios/import/foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAMES_SHOWN = 12, MEGA = 1000000 };

typedef struct reader {
    pc_tree tree;
    pc_imported *import;
    pc_error *error;
} reader;

static const char used[] =
    "train_batch_size|train_micro_batch_size_per_gpu|gradient_accumulation_steps|zero_optimization|"
    "bf16|bfloat16|fp16|optimizer|data_types|tensor_parallel|sequence_parallel_size|"
    "activation_checkpointing|pipeline|zero_allow_untested_optimizer|torch_autocast|amp";
static const char without_effect[] =
    "scheduler|gradient_clipping|prescale_gradients|gradient_predivide_factor|sparse_gradients|steps_per_print|"
    "wall_clock_breakdown|dump_state|tensorboard|wandb|csv_monitor|comms_logger|flops_profiler|autotuning|checkpoint|"
    "memory_breakdown|zero_force_ds_cpu_optimizer|seed|dataloader_drop_last|communication_data_type|comet|elasticity|"
    "nebula|data_efficiency|curriculum_learning|load_universal_checkpoint|use_node_local_storage|local_rank|disable_"
    "allgather";

/* Of ZeRO's mapping, beside its "stage3_...". */
static const char of_zero[] =
    "stage|overlap_comm|reduce_bucket_size|offload_optimizer|offload_param|cpu_offload|cpu_offload_params|"
    "cpu_offload_use_pin_memory|zero_hpz_partition_size|zero_quantized_weights|zero_quantized_gradients|"
    "zero_quantized_nontrainable_weights|allgather_partitions|allgather_bucket_size|reduce_scatter|"
    "contiguous_gradients|sub_group_size|round_robin_gradients|ignore_unused_parameters|elastic_checkpoint|"
    "load_from_fp32_weights|legacy_stage1|memory_efficient_linear|pipeline_loading_checkpoint|"
    "override_module_apply|use_multi_rank_bucket_allreduce|mics_shard_size|mics_hierarchical_params_gather|"
    "gather_16bit_weights_on_model_save|use_all_reduce_for_fetch_params|log_trace_cache_warnings|zeropp_loco_param|"
    "prefetch_bucket_size|param_persistence_threshold|model_persistence_threshold|max_live_parameters|"
    "max_reuse_distance|module_granularity_threshold|leaf_module";

/* "auto" is whatever Hugging Face's trainer says. */
static const pc_node *find(reader *r, const char *path) {
    const pc_node *node = pc_foreign_find(r->tree.nodes, path);
    if (!node || !node->text || strcasecmp(node->text, "auto") != 0) return node;
    pc_imported_note(r->import, PC_IMPORT_ASSUMED, "%s is auto: as if it were not there", path);
    return NULL;
}

static pc_code count(reader *r, const char *path, int64_t least, int64_t most, int64_t *number) {
    const pc_node *node = find(r, path);
    return node ? pc_foreign_count(&r->tree, node, least, most, number, r->error) : PC_OK;
}

/* check_switches has looked at all of them. */
static bool is_on(reader *r, const char *path) {
    bool is_true = false;
    const pc_node *node = find(r, path);
    return node && !pc_foreign_switch(&r->tree, node, &is_true, NULL) && is_true;
}

static const char *text_of(reader *r, const char *path) {
    const pc_node *node = find(r, path);
    return pc_foreign_text(node);
}

/* ---- what the file may hold ---- */

static pc_code check_switches(reader *r) {
    static const char *const switches[] = {"zero_optimization.cpu_offload",
                                           "zero_optimization.overlap_comm",
                                           "zero_optimization.zero_quantized_weights",
                                           "zero_optimization.zero_quantized_gradients",
                                           "fp16.enabled",
                                           "bf16.enabled",
                                           "bfloat16.enabled",
                                           "optimizer.params.torch_adam"};
    pc_code code = PC_OK;
    bool is_true;
    for (size_t i = 0; i < sizeof switches / sizeof *switches && !code; i++) {
        const pc_node *node = pc_foreign_find(r->tree.nodes, switches[i]);
        if (node && strcasecmp(pc_foreign_text(node), "auto") != 0)
            code = pc_foreign_switch(&r->tree, node, &is_true, r->error);
    }
    if (!code && is_on(r, "fp16.enabled") && (is_on(r, "bf16.enabled") || is_on(r, "bfloat16.enabled")))
        code = pc_node_refuse(&r->tree, pc_foreign_find(r->tree.nodes, "fp16.enabled"), r->error,
                              "true beside bf16.enabled; expected one of them");
    return code;
}

/* "zero_optimization": 3 would be as if nothing stood there. */
static pc_code check_mappings(reader *r) {
    static const char *const parts[][2] = {{"zero_optimization", "{\"stage\": 3}"},
                                           {"bf16", "{\"enabled\": true}"},
                                           {"bfloat16", "{\"enabled\": true}"},
                                           {"fp16", "{\"enabled\": true}"},
                                           {"optimizer", "{\"type\": \"AdamW\"}"},
                                           {"zero_optimization.offload_optimizer", "{\"device\": \"cpu\"}"},
                                           {"zero_optimization.offload_param", "{\"device\": \"cpu\"}"},
                                           {"tensor_parallel", "{\"autotp_size\": 4}"},
                                           {"pipeline", "{\"stages\": 4}"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const pc_node *node = pc_foreign_find(r->tree.nodes, parts[i][0]);
        if (node && node->kind != PC_NODE_MAPPING && pc_foreign_says(node))
            return pc_node_refuse(&r->tree, node, r->error, "%.40s; expected a mapping such as %s",
                                  node->text ? node->text : "a list", parts[i][1]);
    }
    return PC_OK;
}

static pc_code check_devices(reader *r) {
    static const char *const devices[] = {"zero_optimization.offload_optimizer.device",
                                          "zero_optimization.offload_param.device"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        const pc_node *node = pc_foreign_find(r->tree.nodes, devices[i]);
        const char *text = pc_foreign_text(node);
        if (node && !pc_foreign_is_one_of(text, strlen(text), "cpu|nvme|none|auto"))
            return pc_node_refuse(&r->tree, node, r->error, "%.40s; expected cpu, nvme or none", text);
    }
    return PC_OK;
}

/* A file of another program has none of the keys. */
static pc_code check_sort(reader *r) {
    const char *sort = NULL;
    const pc_node *top = r->tree.nodes;
    for (const pc_node *node = pc_node_first(top); node < pc_node_end(top); node = pc_node_end(node))
        if (pc_foreign_is_one_of(node->key, strlen(node->key), used)) return PC_OK;
    for (const pc_node *node = pc_node_first(top); node < pc_node_end(top) && !sort; node++)
        if (node->key) sort = pc_foreign_sort_of(node->key);
    return pc_error_refuse(r->error, r->tree.source.name, 0, "",
                           "no key of DeepSpeed; expected such as train_batch_size or zero_optimization%s%s",
                           sort ? ": it looks like " : "", sort ? sort : "");
}

static pc_code check(reader *r) {
    pc_code code = check_sort(r);
    if (!code) code = check_mappings(r);
    if (!code) code = check_switches(r);
    return code ? code : check_devices(r);
}

/* ---- what it says ---- */

/* The batch is microbatch x steps x replicas, so that the other two say how many replicas there are. */
static pc_code take_replicas(reader *r, int64_t batch, int64_t micro, int64_t steps) {
    int64_t each = (micro > 0 ? micro : 1) * (steps > 0 ? steps : 1);
    const pc_node *node = find(r, "train_batch_size");
    if (batch % each && micro > 0 && steps > 0)
        return pc_node_refuse(&r->tree, node, r->error,
                              "%" PRId64 "; expected a multiple of %" PRId64 ", train_micro_batch_size_per_gpu x "
                              "gradient_accumulation_steps (%" PRId64 " x %" PRId64 ")",
                              batch, each, micro, steps);
    if (batch % each)
        return pc_node_refuse(&r->tree, node, r->error, "%" PRId64 "; expected a multiple of %s, %" PRId64, batch,
                              micro > 0 ? "train_micro_batch_size_per_gpu" : "gradient_accumulation_steps", each);
    if (micro > 0 && steps > 0)
        pc_imported_note(r->import, PC_IMPORT_ASSUMED,
                         "GPUs for the %" PRId64 " replicas of its batch (%" PRId64 " = %" PRId64 " x %" PRId64
                         " x %" PRId64 "): with others, other steps of accumulation",
                         batch / each, batch, micro, steps, batch / each);
    return PC_OK;
}

static pc_code take_batch(reader *r) {
    int64_t batch = 0, micro = 0, steps = 0;
    pc_code code = count(r, "train_micro_batch_size_per_gpu", 1, INT32_MAX, &micro);
    if (!code) code = count(r, "gradient_accumulation_steps", 1, INT32_MAX, &steps);
    if (!code) code = count(r, "train_batch_size", 1, INT32_MAX, &batch);
    if (code) return code;
    if (micro > 0) pc_imported_set_number(r->import, "microbatch_size", "train_micro_batch_size_per_gpu", micro);
    if (batch > 0)
        pc_imported_set_number(r->import, "global_batch", "train_batch_size", batch);
    else if (steps > 0)
        pc_imported_set_number(r->import, "microbatches", "gradient_accumulation_steps", steps);
    else
        pc_imported_note(r->import, PC_IMPORT_ASSUMED, "no batch: --global-batch");
    return batch > 0 ? take_replicas(r, batch, micro, steps) : PC_OK;
}

/* Of elements, as they are reduced. */
static pc_code take_bucket(reader *r, int64_t gradient_bytes) {
    int64_t elements = 0;
    double number = 0;
    char text[32];
    const pc_node *node = find(r, "zero_optimization.reduce_bucket_size");
    pc_code code = node ? pc_foreign_number(&r->tree, node, &number, r->error) : PC_OK;
    if (code || !node || number > 1e12) return code;
    elements = (int64_t)number;
    if (elements * gradient_bytes < MEGA) return PC_OK;
    snprintf(text, sizeof text, "%" PRId64 " MB", elements * gradient_bytes / MEGA);
    pc_imported_set(r->import, "bucket", node->key, text);
    return PC_OK;
}

static void take_offload(reader *r, int64_t stage) {
    const char *optimizer = text_of(r, "zero_optimization.offload_optimizer.device");
    const char *parameters = text_of(r, "zero_optimization.offload_param.device");
    bool has_optimizer = (*optimizer && strcmp(optimizer, "none") != 0) || is_on(r, "zero_optimization.cpu_offload");
    bool has_parameters = stage == 3 && *parameters && strcmp(parameters, "none") != 0;
    if (strcmp(optimizer, "nvme") == 0 || strcmp(parameters, "nvme") == 0)
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "offload to NVMe: to the host's memory");
    if (has_optimizer || has_parameters) /* what holds parameters on the host steps them there */
        pc_imported_set(r->import, "offload", "offload_optimizer, offload_param",
                        has_parameters ? "parameters" : "optimizer");
}

static pc_code take_zero(reader *r) {
    int64_t stage = 0, partition = 1, bytes;
    pc_code code = count(r, "zero_optimization.stage", 0, 3, &stage);
    if (!code) code = count(r, "zero_optimization.zero_hpz_partition_size", 1, INT32_MAX, &partition);
    if (code) return code;
    bool is_fp32 = strstr(text_of(r, "data_types.grad_accum_dtype"), "32");
    bool overlaps = find(r, "zero_optimization.overlap_comm") ? is_on(r, "zero_optimization.overlap_comm") : stage == 3;
    bytes = is_fp32 ? 4 : 2;
    pc_imported_set_number(r->import, "zero", "zero_optimization.stage", stage);
    pc_imported_set_number(r->import, "gradient_bytes", "data_types.grad_accum_dtype", bytes);
    pc_imported_set_switch(r->import, "overlap.gradients", "overlap_comm", overlaps);
    pc_imported_set_switch(r->import, "overlap.parameters", "overlap_comm", stage == 3);
    if (partition > 1)
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "a second copy of parameters in a node (hpZ)");
    if (is_on(r, "zero_optimization.zero_quantized_weights") || is_on(r, "zero_optimization.zero_quantized_gradients"))
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "quantised collectives (ZeRO++)");
    take_offload(r, stage);
    return take_bucket(r, bytes);
}

static void take_rest(reader *r) {
    const char *type = text_of(r, "optimizer.type");
    bool is_half = is_on(r, "fp16.enabled"), is_bf16 = is_on(r, "bf16.enabled") || is_on(r, "bfloat16.enabled");
    pc_imported_set(r->import, "model.precision", is_half ? "fp16" : is_bf16 ? "bf16" : "", is_half ? "fp16" : "bf16");
    if (!is_half && !is_bf16) pc_imported_note(r->import, PC_IMPORT_ASSUMED, "bf16");
    if (strcasecmp(type, "sgd") == 0) pc_imported_set(r->import, "optimizer", "optimizer.type", "sgd");
    if (strcasecmp(type, "muon") == 0) pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "Muon under ZeRO: Adam");
    if (*type && !pc_foreign_is_one_of(type, strlen(type), "Adam|AdamW|adam|adamw|SGD|sgd|Muon|muon|FusedAdam|CPUAdam"))
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "the optimizer %.40s: Adam", type);
    if (is_on(r, "optimizer.params.torch_adam"))
        pc_imported_set(r->import, "optimizer_kernels", "optimizer.params.torch_adam", "separate");
    pc_imported_set(r->import, "gradient_accumulation", "", "separate");
    if (find(r, "activation_checkpointing"))
        pc_imported_note(r->import, PC_IMPORT_ASSUMED,
                         "no recomputation, which the model's code turns on: --recompute");
}

static pc_code take_cut(reader *r) {
    int64_t tp = 1, sequence = 1;
    pc_code code = count(r, "tensor_parallel.autotp_size", 0, INT16_MAX, &tp);
    if (!code) code = count(r, "sequence_parallel_size", 1, INT16_MAX, &sequence);
    if (code) return code;
    if (pc_foreign_says(find(r, "pipeline.stages")))
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED,
                         "stages of a pipeline (pipeline.stages), which the model's code cuts: --pp");
    if (tp > 1) pc_imported_set_number(r->import, "tp", "tensor_parallel.autotp_size", tp);
    if (sequence == 1) return PC_OK;
    pc_imported_set_number(r->import, "cp", "sequence_parallel_size", sequence);
    pc_imported_set(r->import, "cp_comm_type", "sequence_parallel_size", "a2a");
    return PC_OK;
}

static void note_keys_of_zero(reader *r) {
    const pc_node *zero = pc_foreign_find(r->tree.nodes, "zero_optimization");
    int unknown = 0;
    if (!zero) return;
    for (const pc_node *node = pc_node_first(zero); node < pc_node_end(zero); node = pc_node_end(node))
        if (!pc_foreign_is_one_of(node->key, strlen(node->key), of_zero) && pc_foreign_says(node) &&
            strncmp(node->key, "stage3_", 7) != 0 && unknown++ < NAMES_SHOWN)
            pc_imported_note(r->import, PC_IMPORT_UNKNOWN, "zero_optimization.%.60s", node->key);
}

static void note_keys(reader *r) {
    const pc_node *top = r->tree.nodes;
    int unknown = 0;
    for (const pc_node *node = pc_node_first(top); node < pc_node_end(top); node = pc_node_end(node)) {
        size_t length = strlen(node->key);
        if (pc_foreign_is_one_of(node->key, length, used) || !pc_foreign_says(node)) continue;
        bool is_known = pc_foreign_is_one_of(node->key, length, without_effect);
        if (is_known || unknown++ < NAMES_SHOWN)
            pc_imported_note(r->import, is_known ? PC_IMPORT_NO_EFFECT : PC_IMPORT_UNKNOWN, "%.60s", node->key);
    }
}

pc_code pc_import_deepspeed(pc_source *source, pc_imported *import, pc_error *error) {
    reader r = {.tree.source = *source, .import = import, .error = error};
    *source = (pc_source){.text = NULL};
    pc_code code = pc_foreign_read(&r.tree, "a configuration of DeepSpeed", error);
    if (!code) code = check(&r);
    if (!code) code = take_batch(&r);
    if (!code) code = take_zero(&r);
    if (!code) code = take_cut(&r);
    if (!code) {
        take_rest(&r);
        note_keys(&r);
        note_keys_of_zero(&r);
        pc_imported_note(import, PC_IMPORT_ASSUMED, "no model, machine or GPUs: --model, --machine, --gpus");
        code = pc_imported_check(import, error);
    }
    pc_tree_free(&r.tree);
    return code;
}
