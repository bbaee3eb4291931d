#include "scenarios/import/megatron_write.h"

#include "models/cost/dispatch.h"
#include "models/machine/ranks.h"
#include "models/schedule/generate.h"
#include "models/training/outline.h"
#include "models/workload/cut.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What is being written, and what cannot be. */
typedef struct writer {
    const pc_model *model;
    const pc_cut *cut;
    const pc_iteration_spec *iteration;
    pc_text *to;
    pc_text lacking; /* lines of comments */
} writer;

static void number(writer *w, const char *name, int64_t value) {
    pc_text_printf(w->to, "  --%s %" PRId64 "\n", name, value);
}

/* A number above 0 that is not the default. */
static void maybe(writer *w, const char *name, int64_t value, int64_t otherwise) {
    if (value > 0 && value != otherwise) number(w, name, value);
}

static void word(writer *w, const char *name, const char *value) {
    pc_text_printf(w->to, "  --%s %s\n", name, value);
}

static void flag(writer *w, const char *name, bool is_on) {
    if (is_on) pc_text_printf(w->to, "  --%s\n", name);
}

static void lack(writer *w, bool is_lacking, const char *what) {
    if (is_lacking) pc_text_printf(&w->lacking, "# Megatron-LM has no argument for: %s\n", what);
}

static void begin(writer *w, const char *array) {
    pc_text_printf(w->to, "%s=(\n", array);
}

static void end(writer *w) {
    pc_text_printf(w->to, ")\n");
}

/* ---- the model ---- */

static void write_attention(writer *w) {
    const pc_model *m = w->model;
    const char *kind = w->iteration->model.attention == PC_ATTENTION_FLASH ? "flash" : "unfused";
    if (pc_model_is_latent(m)) {
        flag(w, "multi-latent-attention", true);
        maybe(w, "q-lora-rank", m->mla.q_lora_rank, 0);
        number(w, "kv-lora-rank", m->mla.kv_lora_rank);
        number(w, "qk-head-dim", m->mla.qk_nope_head_dim);
        number(w, "qk-pos-emb-head-dim", m->mla.qk_rope_head_dim);
        number(w, "v-head-dim", m->mla.v_head_dim);
    } else {
        flag(w, "group-query-attention", m->kv_heads != m->heads);
        maybe(w, "num-query-groups", m->kv_heads, m->heads);
        if (m->head_dim * m->heads != m->hidden) number(w, "kv-channels", m->head_dim);
    }
    flag(w, "qk-layernorm", m->qk_norm == PC_QK_NORM_HEAD);
    word(w, "attention-backend", kind);
    if (m->sliding_window > 0) pc_text_printf(w->to, "  --window-size '(%" PRId64 ", 0)'\n", m->sliding_window - 1);
    maybe(w, "window-attn-skip-freq", m->sliding_window > 0 ? m->sliding_window_pattern : 0, 0);
    lack(w, m->qk_norm == PC_QK_NORM_FULL, "norms over all heads (qk_norm: full)");
    lack(w, m->attention_chunk_size > 0, "attention in chunks");
    lack(w, m->has_attention_sinks, "attention sinks: --softmax-type learnable");
    lack(w, m->norm_place != PC_NORM_PRE, "norms behind attention and MLP (norm_place)");
}

static void write_experts(writer *w) {
    const pc_experts *x = &w->model->experts;
    if (!pc_model_has_experts(w->model)) return;
    number(w, "num-experts", x->num_experts);
    number(w, "moe-router-topk", x->topk);
    number(w, "moe-ffn-hidden-size", x->ffn_hidden);
    maybe(w, "moe-shared-expert-intermediate-size", x->shared_ffn_hidden, 0);
    flag(w, "moe-shared-expert-gate", x->has_shared_gate);
    word(w, "moe-router-score-function", x->score == PC_ROUTER_SIGMOID ? "sigmoid" : "softmax");
    flag(w, "moe-router-enable-expert-bias", x->has_router_bias);
    maybe(w, "moe-router-num-groups", x->router_groups, 0);
    maybe(w, "moe-router-group-topk", x->router_groups > 0 ? x->router_group_topk : 0, 0);
    flag(w, "moe-pad-expert-input-to-capacity", x->pads_to_capacity);
    if (x->capacity_factor > 0) pc_text_printf(w->to, "  --moe-expert-capacity-factor %g\n", x->capacity_factor);
    if (x->first_dense > 0 && x->layer_freq <= 1)
        pc_text_printf(w->to, "  --moe-layer-freq '([0]*%" PRId64 "+[1]*%" PRId64 ")'\n", x->first_dense,
                       w->model->layers - x->first_dense);
    else
        maybe(w, "moe-layer-freq", x->layer_freq, 1);
    flag(w, "moe-grouped-gemm", true);
    lack(w, x->first_dense > 0 && x->layer_freq > 1, "dense layers in front of every so many-th with experts");
}

static void write_dropout(writer *w) {
    word(w, "attention-dropout", w->model->has_dropout ? "0.1" : "0.0");
    word(w, "hidden-dropout", w->model->has_dropout ? "0.1" : "0.0");
}

static void write_model(writer *w) {
    const pc_model *m = w->model;
    bool is_learned = m->positions == PC_POSITIONS_LEARNED;
    begin(w, "MODEL_ARGS");
    number(w, "num-layers", m->layers);
    number(w, "hidden-size", m->hidden);
    number(w, "ffn-hidden-size", m->ffn_hidden);
    number(w, "num-attention-heads", m->heads);
    number(w, "seq-length", w->cut->seq_len);
    number(w, "max-position-embeddings", is_learned ? m->max_positions : w->cut->seq_len);
    number(w, "vocab-size", m->vocab);
    number(w, "make-vocab-size-divisible-by", m->vocab_multiple);
    word(w, "position-embedding-type", is_learned ? "learned_absolute" : "rope");
    word(w, "normalization", m->norm == PC_NORM_RMS ? "RMSNorm" : "LayerNorm");
    flag(w, "swiglu", m->mlp == PC_MLP_SWIGLU);
    flag(w, "squared-relu", m->mlp == PC_MLP_SQUARED_RELU);
    flag(w, "disable-bias-linear", !m->has_bias);
    flag(w, "add-qkv-bias", !m->has_bias && m->has_qkv_bias);
    flag(w, "untie-embeddings-and-output-weights", !m->is_tied);
    write_attention(w);
    write_experts(w);
    maybe(w, "mtp-num-layers", m->mtp_layers, 0);
    write_dropout(w);
    end(w);
    lack(w, m->mlp == PC_MLP_GEGLU || m->mlp == PC_MLP_RELU, "an MLP of GeGLU or ReLU");
    lack(w, m->norm == PC_NORM_LAYER_NO_AFFINE, "norms without scale");
    lack(w, m->attn_logit_softcapping > 0 || m->final_logit_softcapping > 0, "soft caps");
    lack(w, m->document_length > 0, "packed documents");
}

/* ---- the schedule ---- */

const char *pc_megatron_nearest_schedule(const pc_run_spec *spec) {
    const char *name = spec->generator->name;
    bool is_known = strcmp(name, "1f1b") == 0 || strncmp(name, "1f1b-interleaved", 16) == 0;
    if (is_known || spec->devices == 1) return NULL;
    return spec->chunks > 1 ? "1f1b-interleaved" : "1f1b";
}

static void write_nearest(const pc_run_spec *spec, pc_text *to) {
    const char *nearest = pc_megatron_nearest_schedule(spec);
    if (nearest)
        pc_text_printf(to,
                       "# Megatron-LM does not have the schedule %s: with these arguments it runs %s, its nearest\n",
                       spec->generator->name, nearest);
}

/* ---- the cut ---- */

/* "Et*3|t*4|t*3L": E and L stand with layers unless these are parts of their own. */
static void write_layout(writer *w, int parts) {
    pc_text_printf(w->to, "  --pipeline-model-parallel-layout 'E");
    for (int i = 0; i < parts; i++) {
        pc_part part = pc_cut_part(w->model, w->cut, parts, i);
        int64_t layers = part.layers - part.mtp_layers;
        if (i > 0) pc_text_printf(w->to, "|");
        if (layers > 0) pc_text_printf(w->to, "t*%" PRId64, layers);
        for (int64_t k = 0; k < part.mtp_layers; k++) pc_text_printf(w->to, "m");
    }
    pc_text_printf(w->to, "L'\n");
}

static void write_pipeline(writer *w, const pc_run_spec *spec) {
    bool is_plain = w->cut->layout == PC_CUT_EVEN;
    number(w, "pipeline-model-parallel-size", w->cut->pp);
    if (w->cut->pp > 1 && !is_plain) write_layout(w, w->cut->pp * spec->chunks);
    if (w->cut->pp > 1 && is_plain && spec->chunks > 1) number(w, "num-virtual-stages-per-pipeline-rank", spec->chunks);
    flag(w, "overlap-moe-expert-parallel-comm", w->iteration->overlaps_pairs);
    flag(w, "no-overlap-p2p-communication", !w->iteration->overlaps_p2p);
}

static void write_context(writer *w) {
    static const char *const kinds[] = {"p2p", "all_gather", "a2a", "a2a+p2p"};
    if (pc_cut_cp(w->cut) == 1) return;
    number(w, "context-parallel-size", w->cut->cp);
    word(w, "cp-comm-type", kinds[w->cut->cp_comm]);
    if (w->cut->cp_comm == PC_CP_A2A_P2P && w->cut->cp_a2a > 0)
        pc_text_printf(w->to, "  --hierarchical-context-parallel-sizes %d %d\n", w->cut->cp_a2a,
                       w->cut->cp / w->cut->cp_a2a);
}

static void write_expert_ranks(writer *w) {
    if (!pc_model_has_experts(w->model)) return;
    pc_dispatcher dispatcher = w->cut->dispatcher;
    bool is_flex = dispatcher == PC_DISPATCHER_DEEPEP || dispatcher == PC_DISPATCHER_HYBRIDEP;
    number(w, "expert-model-parallel-size", pc_cut_ep(w->cut));
    number(w, "expert-tensor-parallel-size", pc_cut_etp(w->cut));
    word(w, "moe-token-dispatcher-type",
         is_flex                                 ? "flex"
         : dispatcher == PC_DISPATCHER_ALLGATHER ? "allgather"
                                                 : "alltoall");
    if (!is_flex) return;
    bool is_deepep = dispatcher == PC_DISPATCHER_DEEPEP;
    int sms = is_deepep ? w->cut->deepep_sms : w->cut->hybridep_sms;
    word(w, "moe-flex-dispatcher-backend", is_deepep ? "deepep" : "hybridep");
    if (sms > 0 && sms != pc_dispatch_processors(dispatcher))
        number(w, is_deepep ? "moe-deepep-num-sms" : "moe-hybridep-num-sms", sms);
}

static void write_sharding(writer *w) {
    static const char *const strategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    const pc_cut *cut = w->cut;
    int replicas = pc_cut_replicas(cut);
    if (cut->zero >= 2) {
        flag(w, "use-megatron-fsdp", true);
        word(w, "data-parallel-sharding-strategy", strategies[cut->zero]);
        lack(w,
             cut->zero == 3 && (w->iteration->unit != PC_UNIT_LAYER || w->iteration->fsdp_version != PC_FSDP_MEGATRON),
             "another FSDP than Megatron's");
    }
    flag(w, "use-distributed-optimizer", cut->zero == 1);
    if (cut->zero > 0 && cut->shard_group > 0 && cut->shard_group < replicas)
        number(w, "num-distributed-optimizer-instances", replicas / cut->shard_group);
    flag(w, "overlap-grad-reduce", w->iteration->overlaps_gradients);
    flag(w, "overlap-param-gather", w->iteration->overlaps_parameters);
}

/* ---- memory and precision ---- */

/* "core_attn mlp" of "selective:core_attn+mlp". */
static void write_modules(writer *w, pc_recomputation of) {
    char text[PC_RECOMPUTATION_SIZE];
    pc_recomputation_write(of, text);
    const char *names = strchr(text, ':');
    if (!names) return;
    pc_text_printf(w->to, "  --recompute-modules");
    for (names++; *names; names += strcspn(names, "+"), names += *names == '+')
        pc_text_printf(w->to, " %.*s", (int)strcspn(names, "+"), names);
    pc_text_printf(w->to, "\n");
}

static void write_recomputation(writer *w) {
    const pc_cut *cut = w->cut;
    pc_recompute kind = cut->recompute;
    bool is_full = kind == PC_RECOMPUTE_FULL || kind == PC_RECOMPUTE_UNIFORM || kind == PC_RECOMPUTE_BLOCK;
    bool is_selective = kind == PC_RECOMPUTE_SELECTIVE || kind == PC_RECOMPUTE_MODULES;
    if (is_full || is_selective) word(w, "recompute-granularity", is_full ? "full" : "selective");
    if (is_full) {
        word(w, "recompute-method", kind == PC_RECOMPUTE_BLOCK ? "block" : "uniform");
        number(w, "recompute-num-layers", kind == PC_RECOMPUTE_FULL ? 1 : cut->recompute_layers);
    }
    if (kind == PC_RECOMPUTE_MODULES) write_modules(w, (pc_recomputation){kind, 0, cut->recompute_modules});
    lack(w, !is_full && !is_selective && kind != PC_RECOMPUTE_NONE, "this recomputation");
    lack(w, cut->recompute_of_part != NULL, "recomputation that differs from part to part");
}

static void write_precision(writer *w) {
    static const char *const recipes[][2] = {
        {"fp8-current", "tensorwise"}, {"fp8-delayed", "delayed"}, {"fp8-blockwise", "blockwise"}, {"mxfp8", "mxfp8"}};
    const pc_low_precision *low = &w->model->low;
    bool is_known = !pc_low_precision_is_on(low);
    flag(w, w->model->precision == PC_PRECISION_FP16 ? "fp16" : "bf16", true);
    for (int i = 0; i < 4; i++) {
        if (strcmp(low->name, recipes[i][0]) != 0) continue;
        word(w, "fp8-format", "hybrid");
        word(w, "fp8-recipe", recipes[i][1]);
        is_known = true;
    }
    if (strcmp(low->name, "nvfp4") == 0) {
        word(w, "fp4-format", "e2m1");
        is_known = true;
    }
    lack(w, !is_known, "this recipe of few bits");
}

static void write_training(writer *w) {
    const pc_cut *cut = w->cut;
    pc_optimizer_kind kind = cut->optimizer.kind;
    begin(w, "TRAINING_ARGS");
    number(w, "micro-batch-size", cut->microbatch_size);
    number(w, "global-batch-size", cut->microbatch_size * cut->microbatches * cut->dp);
    write_precision(w);
    word(w, "transformer-impl", cut->transformer_impl == PC_TRANSFORMER_ENGINE ? "transformer_engine" : "local");
    write_recomputation(w);
    flag(w, "grad-reduce-in-bf16", pc_cut_gradient_bytes(cut) == 2);
    flag(w, "no-gradient-accumulation-fusion", cut->gradient_accumulation == PC_GRADIENT_ACCUMULATION_SEPARATE);
    flag(w, "cross-entropy-loss-fusion", true);
    word(w, "cross-entropy-fusion-impl", cut->cross_entropy == PC_CROSS_ENTROPY_FUSED ? "te" : "native");
    if (kind == PC_OPTIMIZER_SGD || kind == PC_OPTIMIZER_MUON)
        word(w, "optimizer", kind == PC_OPTIMIZER_SGD ? "sgd" : "muon");
    flag(w, "optimizer-cpu-offload", cut->offload.kinds == PC_OFFLOAD_OPTIMIZER);
    maybe(w, "cpu-offloading-num-layers", cut->offload_layers, 0);
    end(w);
    lack(w, cut->offload.kinds != 0 && cut->offload.kinds != PC_OFFLOAD_OPTIMIZER, "this offload");
    lack(w, cut->cross_entropy != PC_CROSS_ENTROPY_IN_PLACE && cut->cross_entropy != PC_CROSS_ENTROPY_FUSED,
         "this way to compute the loss");
    lack(w, kind == PC_OPTIMIZER_ADAFACTOR || kind == PC_OPTIMIZER_ADAM_8BIT, "this optimizer");
    lack(w, cut->lora.rank > 0, "LoRA's adapters");
}

/* tp, (cp,) dp, pp is the default; with pp in front of dp there is a flag. */
static void write_order(writer *w) {
    char order[16];
    pc_rank_order_write(w->iteration->order, order);
    bool is_other = strcmp(order, "tp-pp-dp") == 0;
    flag(w, "use-tp-pp-dp-mapping", is_other && w->cut->pp > 1);
    lack(w, !is_other && strcmp(order, "tp-dp-pp") != 0, "this order of ranks");
}

static void write_parallelism(writer *w, const pc_run_spec *spec) {
    begin(w, "PARALLEL_ARGS");
    number(w, "tensor-model-parallel-size", w->cut->tp);
    flag(w, "sequence-parallel", w->cut->sequence_parallel);
    flag(w, "tp-comm-overlap", w->iteration->pipelines_tp);
    write_pipeline(w, spec);
    write_context(w);
    write_expert_ranks(w);
    write_order(w);
    write_sharding(w);
    end(w);
}

/* The outline knows the layers of a balanced layout. */
pc_code pc_megatron_write(const pc_run_spec *spec, pc_text *to, pc_error *error) {
    pc_outline outline;
    const pc_iteration_spec *x = &spec->iteration;
    int64_t node = x->machine.gpus_per_node < spec->gpus ? x->machine.gpus_per_node : spec->gpus;
    pc_code code = pc_outline_make(x, spec->cost, &outline, error);
    if (code) return code;
    writer w = {.model = &x->model, .cut = &outline.cut, .iteration = x, .to = to};
    write_nearest(spec, to);
    begin(&w, "DISTRIBUTED_ARGS");
    number(&w, "nproc-per-node", node);
    number(&w, "nnodes", (spec->gpus + node - 1) / node);
    end(&w);
    write_model(&w);
    write_parallelism(&w, spec);
    write_training(&w);
    if (w.lacking.size > 0) pc_text_add(to, w.lacking.data, w.lacking.size);
    if (w.lacking.failed || to->failed) code = pc_error_no_memory(error);
    pc_text_free(&w.lacking);
    pc_outline_free(&outline);
    return code;
}
