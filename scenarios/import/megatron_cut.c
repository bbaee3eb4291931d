/* How it is cut over GPUs, as several arguments together say it. */
#include "scenarios/import/megatron_private.h"

#include "models/workload/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODE = 8, REPLICAS_TRIED = 8192, PARTS_MAX = 1 << 20 };

static void set(pc_megatron_reader *r, const char *key, const char *from, const char *value) {
    pc_imported_set(r->import, key, from, value);
}

static int64_t number_of(const pc_megatron_reader *r, const char *key) {
    int64_t number = pc_imported_number(r->import, key, 1);
    return number > 0 ? number : 1;
}

/* ---- parts ---- */

/* Parts of "Et*3|(tt|)*6tmL": one more than there are bars, those in brackets as often as is said; 0 if it is none. */
static int64_t parts_of(const char *layout) {
    int64_t bars = 0, inner = -1;
    if (layout[0] != 'E') return 0;
    for (const char *c = layout; *c; c++) {
        if (!strchr("EtmL|()*0123456789, ", *c)) return 0;
        if (*c == '(') inner = bars;
        bars += *c == '|';
        if (*c != ')') continue;
        int64_t times = c[1] == '*' ? strtoll(c + 2, NULL, 10) : 1;
        if (inner < 0 || times < 1 || times > PARTS_MAX || bars > PARTS_MAX) return 0;
        bars = inner + (bars - inner) * times;
        inner = -1;
    }
    return bars < PARTS_MAX ? bars + 1 : 0;
}

/* As many m as the model has layers of multi-token prediction stay; others would be refused, and go. */
static void match_predictions(pc_megatron_reader *r, const char *argument, char *layout) {
    int64_t layers = pc_imported_number(r->import, "model.mtp_num_layers", 0);
    pc_layout_shape shape;
    char *to = layout;
    if (!strchr(layout, 'm') || (pc_layout_parse(layout, NULL, &shape, NULL) == PC_OK && shape.mtp_layers == layers))
        return;
    pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED,
                     "m of the layout (%s) with mtp-num-layers %" PRId64 ": such layers stand with the head", argument,
                     layers);
    for (const char *c = layout; *c; c++)
        if (*c != 'm') *to++ = *c;
    *to = '\0';
}

static pc_code take_layout(pc_megatron_reader *r, int64_t *chunks) {
    char layout[1024];
    const pc_argument *argument = pc_megatron_find(r, "pipeline-model-parallel-layout");
    if (!argument) return PC_OK;
    const char *text = argument->value + strspn(argument->value, "'\" ");
    snprintf(layout, sizeof layout, "%.*s", (int)strcspn(text, "'\""), text);
    int64_t parts = parts_of(layout), pp = number_of(r, "pp");
    if (parts == 0 || parts % pp)
        return pc_megatron_refuse(r, argument, "a layout such as Et*7|t*7mL, with parts for all stages");
    *chunks = parts / pp;
    match_predictions(r, argument->name, layout);
    set(r, "model.layout", argument->name, layout);
    return PC_OK;
}

static pc_code take_chunks(pc_megatron_reader *r) {
    int64_t chunks = 1, layers = 0, pp = number_of(r, "pp");
    const pc_argument *argument = pc_megatron_find(r, "num-layers-per-virtual-pipeline-stage");
    pc_code code = pc_megatron_number(r, "num-layers-per-virtual-pipeline-stage", 1, &layers);
    if (!code && layers > 0) {
        int64_t all = number_of(r, "model.layers") + pc_megatron_is_on(r, "account-for-embedding-in-pipeline-split") +
                      pc_megatron_is_on(r, "account-for-loss-in-pipeline-split");
        if (all % (pp * layers)) return pc_megatron_refuse(r, argument, "a number that divides the layers of a stage");
        chunks = all / (pp * layers);
    }
    if (!code)
        code = pc_megatron_number(r, "num-virtual-stages-per-pipeline-rank|virtual-pipeline-model-parallel-size", 1,
                                  &chunks);
    if (!code) code = take_layout(r, &chunks);
    if (code || pp == 1 || chunks == 1) return code;
    pc_imported_set_number(r->import, "chunks", "virtual stages", chunks);
    set(r, "schedule", "virtual stages", "1f1b-interleaved");
    return PC_OK;
}

/* ---- sharding ---- */

static void take_fsdp(pc_megatron_reader *r, const char *from, const char *version) {
    const char *strategy = pc_megatron_text(r, "data-parallel-sharding-strategy");
    bool is_torch = strcmp(version, "2") == 0;
    const char *zero = is_torch || pc_megatron_has_word(strategy, "optim_grads_params") ? "3"
                       : pc_megatron_has_word(strategy, "optim_grads")                  ? "2"
                       : pc_megatron_has_word(strategy, "optim")                        ? "1"
                                                                                        : "0";
    set(r, "zero", from, zero);
    if (*zero != '3') return;
    set(r, "fsdp_unit", from, "layer");
    set(r, "fsdp_version", from, version);
}

static pc_code take_sharding(pc_megatron_reader *r, int64_t replicas) {
    int64_t instances = 1;
    if (pc_megatron_is_on(r, "use-torch-fsdp2"))
        take_fsdp(r, "use-torch-fsdp2", "2");
    else if (pc_megatron_is_on(r, "use-megatron-fsdp|use-custom-fsdp"))
        take_fsdp(r, "data-parallel-sharding-strategy", "megatron");
    else if (pc_megatron_find(r, "use-distributed-optimizer") || !r->is_recipe)
        set(r, "zero", "use-distributed-optimizer", pc_megatron_is_on(r, "use-distributed-optimizer") ? "1" : "0");
    const char *zero = pc_imported_get(r->import, "zero");
    pc_code code = pc_megatron_number(r, "num-distributed-optimizer-instances", 1, &instances);
    if (code || instances == 1 || !zero || *zero == '0') return code;
    if (replicas % instances == 0 && number_of(r, "ep") == 1)
        pc_imported_set_number(r->import, "shard_group", "num-distributed-optimizer-instances", replicas / instances);
    else
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED,
                         "%" PRId64 " instances of the distributed optimizer beside experts (%s): one", instances,
                         "num-distributed-optimizer-instances");
    return PC_OK;
}

/* Muon works on whole matrices. */
static void limit_muon(pc_megatron_reader *r) {
    const char *optimizer = pc_imported_get(r->import, "optimizer"), *zero = pc_imported_get(r->import, "zero");
    if (!optimizer || strcmp(optimizer, "muon") != 0 || !zero || *zero == '0') return;
    if (*zero == '1' && number_of(r, "ep") == 1) return;
    pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "Muon's state sharded (zero %s) beside experts: not sharded",
                     zero);
    set(r, "zero", "optimizer", "0");
}

/* Pairs of F and BW need a schedule that has them. */
static void take_pairs(pc_megatron_reader *r) {
    bool is_on = pc_imported_get(r->import, "overlap.moe_expert_parallel_comm");
    if (is_on && pc_imported_get(r->import, "chunks"))
        return set(r, "schedule", "virtual stages", "1f1b-interleaved-overlap");
    if (pc_imported_get(r->import, "overlap.delay_wgrad_compute"))
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED,
                         "weight gradients apart from the backward pass without pairs of passes (delay-wgrad-compute)");
    pc_imported_clear(r->import, "overlap.delay_wgrad_compute");
    pc_imported_clear(r->import, "overlap.moe_expert_parallel_comm");
    if (!is_on) return;
    pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED,
                     "overlap of experts' communication without virtual stages (overlap-moe-expert-parallel-comm)");
}

static void take_overlaps(pc_megatron_reader *r) {
    static const char *const names[][2] = {{"overlap-grad-reduce", "overlap.gradients"},
                                           {"overlap-param-gather", "overlap.parameters"}};
    for (int i = 0; i < 2; i++)
        if (pc_megatron_find(r, names[i][0]) || !r->is_recipe)
            pc_imported_set_switch(r->import, names[i][1], names[i][0], pc_megatron_is_on(r, names[i][0]));
}

/* ---- experts ---- */

static pc_code take_expert_ranks(pc_megatron_reader *r) {
    const char *type = pc_megatron_text(r, "moe-token-dispatcher-type");
    const char *backend = pc_megatron_text(r, "moe-flex-dispatcher-backend");
    bool has_experts = pc_imported_get(r->import, "model.num_experts") || !pc_imported_get(r->import, "model.layers");
    if (!has_experts) return PC_OK;
    pc_code code = pc_megatron_take(r, "expert-model-parallel-size", "ep");
    if (!code) code = pc_megatron_take(r, "expert-tensor-parallel-size", "etp");
    if (code || !pc_imported_get(r->import, "model.num_experts")) return code;
    bool is_flex = pc_megatron_has_word(type, "flex") || pc_megatron_is_on(r, "moe-enable-deepep");
    bool is_exchange = pc_megatron_has_word(type, "alltoall") || (r->is_recipe && !type[0]);
    set(r, "moe_token_dispatcher_type", type[0] ? "moe-token-dispatcher-type" : "its default",
        is_flex       ? "flex"
        : is_exchange ? "alltoall"
                      : "allgather");
    if (!is_flex) return PC_OK;
    bool is_hybrid = pc_megatron_has_word(backend, "hybridep");
    set(r, "moe_flex_dispatcher_backend", "moe-flex-dispatcher-backend", is_hybrid ? "hybridep" : "deepep");
    return is_hybrid ? pc_megatron_take(r, "moe-hybridep-num-sms|moe-flex-dispatcher-num-sms", "moe_hybridep_num_sms")
                     : pc_megatron_take(r, "moe-deepep-num-sms|moe-flex-dispatcher-num-sms", "moe_deepep_num_sms");
}

/* ---- GPUs ---- */

/* 0: nothing says how many. */
static pc_code find_gpus(const pc_megatron_reader *r, int64_t *gpus) {
    int64_t world = 0, nodes = 1, each = 0, replicas = 0;
    pc_code code = pc_megatron_number(r, "world-size", 0, &world);
    if (!code) code = pc_megatron_number(r, "data-parallel-size", 0, &replicas);
    bool is_fixed = pc_megatron_text(r, "nnodes|num-nodes")[0] != '$' &&
                    pc_megatron_text(r, "nproc-per-node|devices|num-gpus-per-node|gpus-per-node")[0] != '$';
    if (!code && is_fixed) code = pc_megatron_number(r, "nnodes|num-nodes", 1, &nodes);
    if (!code && is_fixed)
        code = pc_megatron_number(r, "nproc-per-node|devices|num-gpus-per-node|gpus-per-node", 1, &each);
    int64_t cut = number_of(r, "tp") * number_of(r, "pp");
    *gpus = world > 1 ? world : each > 0 ? nodes * each : replicas > 0 ? replicas * cut * number_of(r, "cp") : 0;
    return code;
}

/* Whether experts and the batch go with so many replicas. */
static bool fits(const pc_megatron_reader *r, int64_t dp) {
    int64_t ranks = number_of(r, "tp") * number_of(r, "cp") * dp, ep = number_of(r, "ep");
    int64_t etp = pc_imported_number(r->import, "etp", number_of(r, "tp"));
    int64_t batch = pc_imported_number(r->import, "global_batch", 0), size = number_of(r, "microbatch_size") * dp;
    bool is_cut = etp < 1 || ranks % (etp * ep) == 0;
    int64_t pp = number_of(r, "pp");
    bool is_round = pc_imported_number(r->import, "chunks", 1) == 1 || batch / size % pp == 0;
    return is_cut && (batch == 0 || (batch % size == 0 && is_round));
}

/* The fewest replicas that fill a node; fewer if the batch has no more. */
static int64_t assume_replicas(const pc_megatron_reader *r) {
    int64_t one = number_of(r, "tp") * number_of(r, "pp") * number_of(r, "cp"), best = 0;
    for (int64_t dp = 1; dp <= REPLICAS_TRIED; dp++) {
        if (!fits(r, dp)) continue;
        best = dp;
        if (one * dp >= NODE) break;
    }
    return best > 0 ? best : 1;
}

static pc_code take_gpus(pc_megatron_reader *r, int64_t *replicas) {
    int64_t gpus, one = number_of(r, "tp") * number_of(r, "pp") * number_of(r, "cp");
    pc_code code = find_gpus(r, &gpus);
    if (code) return code;
    bool is_assumed = gpus == 0 || gpus % one;
    if (is_assumed) gpus = assume_replicas(r) * one;
    pc_imported_set_number(r->import, "gpus", is_assumed ? "" : "world size", gpus);
    if (is_assumed) pc_imported_note(r->import, PC_IMPORT_ASSUMED, "%" PRId64 " GPUs", gpus);
    set(r, "machine", "", "dgx-h100");
    pc_imported_note(r->import, PC_IMPORT_ASSUMED, "machine dgx-h100");
    *replicas = gpus / (number_of(r, "tp") * number_of(r, "pp"));
    if (!pc_imported_get(r->import, "global_batch"))
        pc_imported_set_number(r->import, "global_batch", "its default",
                               number_of(r, "microbatch_size") * (gpus / one > 0 ? gpus / one : 1));
    return PC_OK;
}

/* "2 2": the first are neighbours that exchange heads. */
static pc_code take_context(pc_megatron_reader *r) {
    const char *kind = pc_imported_get(r->import, "cp_comm_type");
    if (!kind || strcmp(kind, "a2a+p2p") != 0) return PC_OK;
    return pc_megatron_take_first(r, "hierarchical-context-parallel-sizes", "cp_a2a");
}

pc_code pc_megatron_take_cut(pc_megatron_reader *r) {
    int64_t replicas = 1;
    pc_imported_set_switch(r->import, "sequence_parallel", "sequence-parallel",
                           pc_megatron_is_on(r, "sequence-parallel"));
    pc_code code = take_expert_ranks(r);
    if (!code) code = take_chunks(r);
    if (!code) code = take_context(r);
    if (!code) code = take_gpus(r, &replicas);
    if (!code) code = take_sharding(r, replicas);
    limit_muon(r);
    take_overlaps(r);
    take_pairs(r);
    return code;
}
