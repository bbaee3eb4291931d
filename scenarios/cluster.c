#include "scenarios/cluster.h"
#include "scenarios/cluster_check.h"
#include "scenarios/cluster_profile.h"

#include "engine/alloc.h"
#include "models/training/iteration_spec.h"
#include "models/workload/layout.h"
#include "models/workload/layout_stages.h"
#include "scenarios/bad_days_keys.h"
#include "scenarios/library_private.h"
#include "scenarios/recompute_keys.h"
#include "scenarios/references.h"
#include "scenarios/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const pc_reference *reference_of(const pc_setting *setting, pc_key key) {
    return setting->given[key] ? setting->value[key].reference : NULL;
}

bool pc_setting_is_cluster(const pc_setting *setting) {
    bool any = setting->given[PC_KEY_MACHINE] || setting->given[PC_KEY_MODEL_FROM];
    if (setting->stages || setting->given[PC_KEY_PASS_TIMES]) return false;
    for (pc_key key = 0; key < PC_KEYS; key++) {
        if (setting->given[key] && key >= PC_KEY_TIMES && key < PC_KEY_TIMES + PC_PASS_KINDS) return false;
        any = any || (setting->given[key] && pc_key_is_of_cluster(key));
    }
    return any;
}

/* What a schedule of a file has, and nobody says otherwise. */
static void take_given(pc_setting *setting, const pc_given *given) {
    bool *is_given = setting->given;
    if (!given) return;
    if (given->devices && !is_given[PC_KEY_PP] && !is_given[PC_KEY_DEVICES])
        pc_setting_set(setting, PC_KEY_PP, (pc_value){.whole = given->devices});
    if (given->microbatches && !is_given[PC_KEY_MICROBATCHES] && !is_given[PC_KEY_GLOBAL_BATCH])
        pc_setting_set(setting, PC_KEY_MICROBATCHES, (pc_value){.whole = given->microbatches});
}

/* Of a file that the setting names what it says of these keys, where the setting says nothing. How ZeRO 1 divides what
 * it shards means nothing to ZeRO 2 and 3. */
static void take_from(pc_setting *setting, const pc_reference *file) {
    for (pc_key key = 0; file && key < PC_KEYS; key++) {
        if (setting->given[key] || !file->model.setting.given[key]) continue;
        if (key == PC_KEY_ZERO_PARTITION && pc_setting_whole(setting, PC_KEY_ZERO, 1) > 1) continue;
        setting->given[key] = true;
        setting->value[key] = file->model.setting.value[key];
    }
}

/* What measured passes have: their stages, and their chunks if the schedule has a choice. */
static void take_measured(pc_setting *setting) {
    const pc_reference *file = reference_of(setting, PC_KEY_PASS_TIMES);
    const pc_generator *generator = setting->given[PC_KEY_SCHEDULE] ? setting->value[PC_KEY_SCHEDULE].generator : NULL;
    if (!file || file->error.code) return;
    if (!setting->given[PC_KEY_PP] && !setting->given[PC_KEY_DEVICES])
        pc_setting_set(setting, PC_KEY_PP, (pc_value){.whole = file->pass_times.devices});
    bool has_choice = generator && generator->chunks_min != generator->chunks_max &&
                      pc_placement_is_plain(generator->placement) && file->pass_times.chunks > 1;
    if (has_choice && !setting->given[PC_KEY_CHUNKS])
        pc_setting_set(setting, PC_KEY_CHUNKS, (pc_value){.whole = file->pass_times.chunks});
}

void pc_setting_complete(pc_setting *setting) {
    take_from(setting, reference_of(setting, PC_KEY_MODEL_FROM));
    take_from(setting, reference_of(setting, PC_KEY_SOFTWARE));
    take_measured(setting);
    if (setting->given[PC_KEY_SCHEDULE]) {
        take_given(setting, setting->value[PC_KEY_SCHEDULE].generator->given);
    } else if (pc_setting_is_cluster(setting)) {
        setting->given[PC_KEY_SCHEDULE] = true;
        setting->value[PC_KEY_SCHEDULE].generator = pc_generator_find("1f1b");
    }
}

/* ---- what must be there ---- */

static pc_code check_reference(const pc_setting *setting, pc_key key, pc_error *error) {
    const pc_reference *reference = reference_of(setting, key);
    if (!reference || !reference->error.code) return PC_OK;
    return pc_error_copy_blame(error, pc_key_path(key), &reference->error);
}

static pc_code check_scopes(const pc_setting *setting, pc_error *error) {
    for (pc_key key = 0; key < PC_KEYS; key++)
        if (setting->given[key] && pc_key_is_of_times(key))
            return pc_error_blame(error, pc_key_path(key),
                                  "means nothing here; expected it only where times or stages are given");
    return PC_OK;
}

static pc_code check_model(const pc_setting *setting, pc_error *error) {
    pc_model model;
    pc_key culprit;
    bool any = false;
    for (pc_key key = 0; key < PC_KEY_MODEL_END; key++) any = any || setting->given[key];
    if (!any)
        return pc_error_blame(error, "model",
                              "missing; expected model.from, one of `pipecast list models`, or the model's dimensions");
    pc_code code = pc_setting_model(setting, &model, &culprit, error);
    if (code) pc_error_set_key(error, culprit == PC_KEY_MODEL_END ? "model" : pc_key_path(culprit));
    return code;
}

/* The GPU that the machine has, with the kernels and the host that the setting asks for. */
static pc_code choose_kernels(const pc_setting *setting, pc_gpu *gpu, pc_error *error) {
    pc_attention_kernel kernel = (pc_attention_kernel)pc_setting_integer(setting, PC_KEY_ATTENTION_KERNEL);
    if (setting->given[PC_KEY_LAUNCH]) gpu->launch_s = pc_time_to_seconds(setting->value[PC_KEY_LAUNCH].whole);
    if (setting->given[PC_KEY_UNFUSED]) gpu->unfused = setting->value[PC_KEY_UNFUSED].real;
    if (kernel != PC_ATTENTION_KERNEL_BEST) gpu->kernels_for &= ~PC_KERNELS_FOR_ATTENTION; /* measured: the best */
    return pc_gpu_choose_attention(gpu, kernel, error);
}

/* Whether the scenario says it, and not its software alone. */
static bool is_own(const pc_setting *setting, pc_key key) {
    const pc_reference *software = reference_of(setting, PC_KEY_SOFTWARE);
    if (!setting->given[key]) return false;
    return !software || !software->model.setting.given[key] ||
           software->model.setting.value[key].whole != setting->value[key].whole;
}

static pc_code check_kernels(const pc_setting *setting, pc_error *error) {
    pc_gpu gpu = reference_of(setting, PC_KEY_MACHINE)->machine.gpu;
    if (!choose_kernels(setting, &gpu, error)) return PC_OK;
    bool is_asked = is_own(setting, PC_KEY_ATTENTION_KERNEL);
    pc_error_set_key(error, pc_key_path(is_asked ? PC_KEY_ATTENTION_KERNEL : PC_KEY_SOFTWARE));
    return PC_ERROR_INPUT;
}

/* What the GPU has no units for. */
static pc_code check_precision(const pc_setting *setting, pc_error *error) {
    const pc_reference *precision = reference_of(setting, PC_KEY_PRECISION);
    const pc_gpu *gpu = &reference_of(setting, PC_KEY_MACHINE)->machine.gpu;
    if (!precision || !pc_precision_check_gpu(&precision->recipe.low, gpu, error)) return PC_OK;
    pc_error_set_key(error, pc_key_path(PC_KEY_PRECISION));
    return PC_ERROR_INPUT;
}

static pc_code check_parts_given(const pc_setting *setting, pc_error *error) {
    pc_code code = check_reference(setting, PC_KEY_MODEL_FROM, error);
    if (!code) code = check_reference(setting, PC_KEY_MACHINE, error);
    if (!code) code = check_reference(setting, PC_KEY_PRECISION, error);
    if (!code) code = check_reference(setting, PC_KEY_SOFTWARE, error);
    if (!code) code = check_reference(setting, PC_KEY_PROFILE, error);
    if (!code) code = check_reference(setting, PC_KEY_MOE_LOAD_COUNTS, error);
    if (code) return code;
    if (!setting->given[PC_KEY_MACHINE])
        return pc_error_blame(error, "machine",
                              "missing; expected one of `pipecast list machines` or a file, or times or stages");
    code = check_kernels(setting, error);
    if (!code) code = pc_setting_check_profile(setting, error);
    if (!code) code = check_precision(setting, error);
    if (!code) code = pc_setting_check_together(setting, error);
    if (!code) code = pc_setting_check_bad_days(setting, error);
    return code ? code : check_model(setting, error);
}

/* ---- how the GPUs are shared out ---- */

typedef struct cluster_shape {
    int64_t tp, pp, dp, gpus; /* 0 where neither given nor known */
    int64_t cp;
    int64_t microbatch_size, microbatches;
} cluster_shape;

static pc_key pp_key(const pc_setting *setting) {
    return setting->given[PC_KEY_PP] ? PC_KEY_PP : PC_KEY_DEVICES;
}

/* A contradiction between numbers that are each fine. */
#define BREAK_RULE(error, key, ...)                                                                                    \
    ((void)pc_error_blame(error, key, __VA_ARGS__), (error)->is_rule = true, PC_ERROR_INPUT)

/* "tp 2 x pp 4 x dp 8", with cp where there is one. */
enum { SHAPE_TEXT = 128 };
static const char *write_shape(const cluster_shape *x, char text[SHAPE_TEXT]) {
    char cp[32] = "";
    if (x->cp > 1) snprintf(cp, sizeof cp, " x cp %" PRId64, x->cp);
    snprintf(text, SHAPE_TEXT, "tp %" PRId64 "%s x pp %" PRId64 " x dp %" PRId64, x->tp, cp, x->pp, x->dp);
    return text;
}

/* The axis that is left to follow from `gpus` and the other two. */
static pc_code divide_gpus(cluster_shape *shape, int64_t *left, const char *name, pc_error *error) {
    char text[SHAPE_TEXT];
    int64_t others = shape->tp * shape->cp * shape->pp * shape->dp; /* *left is 1 so far */
    if (others > shape->gpus || shape->gpus % others) {
        write_shape(shape, text);
        *left = 0; /* not known */
        return BREAK_RULE(error, "gpus",
                          "%" PRId64
                          " GPUs for %s, of which %s is to follow; expected a multiple of the product of the %s",
                          shape->gpus, text, name, shape->cp > 1 ? "others" : "other two");
    }
    *left = shape->gpus / others;
    return PC_OK;
}

static int64_t or_one(int64_t number) {
    return number ? number : 1;
}

/* gpus = tp * cp * pp * dp: of all but cp what is not given is 1, but for the one that follows: dp, else pp, else tp.
 */
static pc_code share_gpus(cluster_shape *shape, pc_error *error) {
    int64_t *axes[] = {&shape->dp, &shape->pp, &shape->tp}, *left = NULL;
    static const char *const names[] = {"dp", "pp", "tp"};
    const char *name = "";
    for (int i = 0; i < 3; i++)
        if (!*axes[i] && shape->gpus && !left) left = axes[i], name = names[i];
    for (int i = 0; i < 3; i++) *axes[i] = or_one(*axes[i]);
    int64_t product;
    char text[SHAPE_TEXT];
    const char *all = shape->cp > 1 ? "tp x cp x pp x dp" : "tp x pp x dp";
    bool is_over = __builtin_mul_overflow(shape->tp * shape->pp, shape->dp, &product) ||
                   __builtin_mul_overflow(product, shape->cp, &product) || product > INT32_MAX;
    if (is_over) return BREAK_RULE(error, "dp", "%s are more than 2147483647 GPUs; expected fewer", all);
    if (left) return divide_gpus(shape, left, name, error);
    if (!shape->gpus) shape->gpus = product;
    if (shape->gpus == product) return PC_OK;
    return BREAK_RULE(error, "gpus", "%" PRId64 " GPUs, but %s are %" PRId64 "; expected gpus = %s", shape->gpus,
                      write_shape(shape, text), product, all);
}

/* The sequences of an iteration are microbatches x microbatch_size x dp. */
static pc_code share_batch(const pc_setting *setting, cluster_shape *shape, pc_error *error) {
    bool is_own = setting->given[PC_KEY_GLOBAL_BATCH];
    int64_t batch =
        is_own ? pc_setting_whole(setting, PC_KEY_GLOBAL_BATCH, 0) : pc_setting_whole(setting, PC_KEY_MODEL_BATCH, 0);
    int64_t step = shape->microbatch_size * shape->dp; /* both below 2^31 */
    shape->microbatches = pc_setting_whole(setting, PC_KEY_MICROBATCHES, 0);
    if (shape->microbatches && !is_own) return PC_OK;
    if (!batch)
        return pc_error_blame(error, "microbatches",
                              "missing; expected microbatches or global_batch, since the model's file has none");
    if (batch % step)
        return BREAK_RULE(error, "global_batch",
                          "%" PRId64 " sequences do not divide into microbatches of %" PRId64 " on %" PRId64
                          " replicas; expected a multiple of microbatch_size x dp = %" PRId64,
                          batch, shape->microbatch_size, shape->dp, step);
    if (shape->microbatches && shape->microbatches != batch / step)
        return BREAK_RULE(error, "global_batch",
                          "%" PRId64 " sequences are %" PRId64 " microbatches of %" PRId64 " on %" PRId64
                          " replicas, not %" PRId64 "; expected one of the two keys, or both to agree",
                          batch, batch / step, shape->microbatch_size, shape->dp, shape->microbatches);
    shape->microbatches = batch / step;
    return PC_OK;
}

static pc_code find_shape(const pc_setting *setting, cluster_shape *shape, pc_error *error) {
    *shape = (cluster_shape){.tp = pc_setting_whole(setting, PC_KEY_TP, 0),
                             .pp = pc_setting_whole(setting, pp_key(setting), 0),
                             .dp = pc_setting_whole(setting, PC_KEY_DP, 0),
                             .cp = pc_setting_whole(setting, PC_KEY_CP, 1),
                             .gpus = pc_setting_whole(setting, PC_KEY_GPUS, 0),
                             .microbatch_size = pc_setting_whole(setting, PC_KEY_MICROBATCH_SIZE, 1)};
    pc_code code = share_gpus(shape, error);
    if (!code) code = share_batch(setting, shape, error);
    if (!code) code = pc_setting_check_slices(setting, error);
    if (code) return code;
    if (pc_schedule_check_size(shape->pp, shape->microbatches, pc_setting_chunks(setting), error)) {
        error->is_rule = true;
        pc_error_set_key(error, setting->given[PC_KEY_MICROBATCHES] ? "microbatches" : "schedule");
        return error->code;
    }
    return PC_OK;
}

static int parts_of(const pc_setting *setting, const cluster_shape *shape) {
    return pc_placement_parts(pc_setting_placement(setting), (int)shape->pp, pc_setting_chunks(setting));
}

static pc_stage_layout stage_layout_of(const pc_setting *setting) {
    return (pc_stage_layout){.first = pc_setting_whole(setting, PC_KEY_FIRST_STAGE_LAYERS, 0),
                             .last = pc_setting_whole(setting, PC_KEY_LAST_STAGE_LAYERS, 0),
                             .counts_embedding = pc_setting_whole(setting, PC_KEY_ACCOUNT_FOR_EMBEDDING, 0) != 0,
                             .counts_loss = pc_setting_whole(setting, PC_KEY_ACCOUNT_FOR_LOSS, 0) != 0};
}

static pc_code check_layout(const pc_setting *setting, const cluster_shape *shape, pc_error *error) {
    int count, parts = parts_of(setting, shape);
    const pc_stage_layout asked = stage_layout_of(setting);
    const char *word = pc_setting_text(setting, PC_KEY_LAYOUT);
    if (pc_stage_layout_is_asked(&asked) && strcmp(word, "auto") != 0)
        return BREAK_RULE(error, pc_key_path(PC_KEY_LAYOUT),
                          "%.40s beside first_stage_layers, last_stage_layers or account_for_...; expected auto, or "
                          "none of those",
                          word);
    char own[PC_RECOMPUTATION_SIZE];
    const char *recompute;
    pc_code code = pc_recompute_of_setting(setting, own, &recompute, error);
    if (code) return code;
    if (pc_recompute_list(recompute, NULL, &count) && count != 1 && count != parts)
        return BREAK_RULE(error, pc_key_path(PC_KEY_RECOMPUTE),
                          "%d words for %" PRId64 " devices x %d chunks; expected one for all, or one a part of the "
                          "model, %d",
                          count, shape->pp, pc_setting_chunks(setting), parts);
    pc_layout_shape listed;
    if (!pc_layout_list(pc_setting_text(setting, PC_KEY_LAYOUT), NULL, &listed) || listed.parts == parts) return PC_OK;
    return BREAK_RULE(error, pc_key_path(PC_KEY_LAYOUT),
                      "%d parts for %" PRId64 " devices x %d chunks; expected the layers of %d parts of the model",
                      listed.parts, shape->pp, pc_setting_chunks(setting), parts);
}

static pc_code find_checked_shape(const pc_setting *setting, cluster_shape *shape, pc_error *error) {
    pc_code code = find_shape(setting, shape, error);
    if (!code) code = pc_setting_check_given(setting, shape->pp, shape->microbatches, error);
    if (!code) code = check_layout(setting, shape, error);
    return code ? code : pc_setting_check_bad_shape(setting, shape->gpus, shape->pp, error);
}

pc_code pc_cluster_check(const pc_setting *setting, pc_error *error) {
    cluster_shape shape;
    pc_code code = check_scopes(setting, error);
    if (!code) code = check_parts_given(setting, error);
    return code ? code : find_checked_shape(setting, &shape, error);
}

/* ---- the spec ---- */

/* Megatron-LM: local's full_iteration is a scope, a later release's an implementation; no scope is the whole layer. */
static int32_t graphs_of(const pc_setting *setting) {
    enum { NONE, LOCAL, TRANSFORMER_ENGINE, FULL_ITERATION };
    int64_t impl = pc_setting_integer(setting, PC_KEY_CUDA_GRAPH_IMPL);
    int64_t scope = pc_setting_whole(setting, PC_KEY_CUDA_GRAPH_SCOPE, 0);
    if (impl == NONE) return 0;
    if (impl == FULL_ITERATION || (impl == LOCAL && scope & PC_GRAPHS_ITERATION)) return PC_GRAPHS_ITERATION;
    return scope ? (int32_t)(scope & (PC_GRAPHS_LAYER | PC_GRAPHS_ROUTER)) : (int32_t)PC_GRAPHS_LAYER;
}

/* Types are the first dispatchers, and `flex` is the first of its kernels. */
static pc_dispatcher dispatcher_of(const pc_setting *setting) {
    int64_t type = pc_setting_integer(setting, PC_KEY_MOE_TOKEN_DISPATCHER_TYPE);
    int64_t kernels = pc_setting_integer(setting, PC_KEY_MOE_FLEX_DISPATCHER_BACKEND);
    return (pc_dispatcher)(type + (type == PC_DISPATCHER_DEEPEP ? kernels : 0));
}
_Static_assert(PC_DISPATCHER_ALLGATHER == 0 && PC_DISPATCHER_ALLTOALL == 1 && PC_DISPATCHER_DEEPEP == 2 &&
                   PC_DISPATCHER_HYBRIDEP == 3,
               "the words of moe_token_dispatcher_type, and behind them those of moe_flex_dispatcher_backend");

static void fill_cut(const pc_setting *setting, const cluster_shape *shape, pc_cut *cut) {
    bool may_cut =
        setting->given[PC_KEY_SEQUENCE_PARALLEL] ? setting->value[PC_KEY_SEQUENCE_PARALLEL].whole != 0 : true;
    cut->tp = (int)shape->tp;
    cut->pp = (int)shape->pp;
    cut->dp = (int)shape->dp;
    cut->cp = (int)shape->cp;
    cut->chunks = pc_setting_chunks(setting);
    cut->slices = pc_setting_slices(setting);
    cut->sequence_split = (pc_sequence_split)pc_setting_integer(setting, PC_KEY_SEQUENCE_SPLIT);
    cut->sequence_parallel = shape->tp > 1 && may_cut;
    cut->microbatch_size = shape->microbatch_size;
    cut->microbatches = shape->microbatches;
    cut->graphs = graphs_of(setting);
    cut->dispatcher = dispatcher_of(setting);
    const pc_reference *counts = reference_of(setting, PC_KEY_MOE_LOAD_COUNTS);
    if (counts && cut->moe_load == PC_MOE_LOAD_GIVEN) cut->moe_load_counts = &counts->counts;
}

/* `parts` is below 1 if the numbers contradict each other, and nothing is cut. */
static pc_cut_layout named_layout(const char *word, int64_t layers, int parts) {
    for (pc_cut_layout layout = PC_CUT_EVEN; layout <= PC_CUT_OWN; layout++)
        if (strcmp(word, pc_layout_name(layout)) == 0) return layout;
    for (pc_cut_layout layout = PC_CUT_BALANCED; layout <= PC_CUT_BALANCED_MEMORY; layout++)
        if (strcmp(word, pc_layout_name(layout)) == 0) return layout;
    return parts < 1 ? PC_CUT_EVEN : pc_layout_auto(layers, parts);
}

/* Layers by stage as Megatron-LM's arguments say them; what does not divide is infeasible, as with other layouts. */
static pc_code fill_stages(const pc_setting *setting, const cluster_shape *shape, const pc_stage_layout *asked,
                           pc_run_spec *spec, pc_error *error) {
    int parts = parts_of(setting, shape);
    pc_error why = {0};
    if (parts < 1 || spec->infeasible[0]) return PC_OK;
    spec->layers_of_part = pc_alloc((size_t)parts, sizeof *spec->layers_of_part);
    if (!spec->layers_of_part) return pc_error_no_memory(error);
    spec->iteration.cut.layout = PC_CUT_LISTED;
    spec->iteration.cut.layers_of_part = spec->layers_of_part;
    if (pc_stage_layout_list(asked, spec->iteration.model.layers, pc_setting_placement(setting), (int)shape->pp,
                             pc_setting_chunks(setting), spec->layers_of_part, &why))
        snprintf(spec->infeasible, sizeof spec->infeasible, "%.*s", (int)sizeof spec->infeasible - 1, why.message);
    return PC_OK;
}

/* Of a list the numbers become the spec's own. */
static pc_code fill_layout(const pc_setting *setting, const cluster_shape *shape, pc_run_spec *spec, pc_error *error) {
    const char *layout = pc_setting_text(setting, PC_KEY_LAYOUT);
    const pc_stage_layout asked = stage_layout_of(setting);
    pc_cut *cut = &spec->iteration.cut;
    pc_layout_shape listed;
    if (pc_stage_layout_is_asked(&asked)) return fill_stages(setting, shape, &asked, spec, error);
    if (!pc_layout_list(layout, NULL, &listed)) {
        cut->layout = named_layout(layout, spec->iteration.model.layers, parts_of(setting, shape));
        return PC_OK;
    }
    spec->layers_of_part = pc_alloc((size_t)listed.parts, sizeof *spec->layers_of_part);
    if (!spec->layers_of_part) return pc_error_no_memory(error);
    pc_layout_list(layout, spec->layers_of_part, &listed);
    cut->layout = PC_CUT_LISTED;
    cut->layers_of_part = spec->layers_of_part;
    cut->mtp_listed = listed.mtp_layers;
    cut->mtp_ahead = listed.mtp_ahead;
    return PC_OK;
}

/* Likewise; one word is for all parts. */
static pc_code fill_recomputation(const pc_setting *setting, pc_run_spec *spec, pc_error *error) {
    char own[PC_RECOMPUTATION_SIZE];
    const char *text;
    pc_recomputation one;
    pc_cut *cut = &spec->iteration.cut;
    int count;
    pc_code code = pc_recompute_of_setting(setting, own, &text, error);
    if (code) return code;
    pc_recompute_list(text, NULL, &count);
    if (count == 1) {
        pc_recompute_list(text, &one, &count);
        cut->recompute = one.kind;
        cut->recompute_layers = one.layers;
        cut->recompute_modules = one.modules;
        return PC_OK;
    }
    spec->recompute_of_part = pc_alloc((size_t)count, sizeof *spec->recompute_of_part);
    if (!spec->recompute_of_part) return pc_error_no_memory(error);
    pc_recompute_list(text, spec->recompute_of_part, &count);
    cut->recompute_of_part = spec->recompute_of_part;
    return PC_OK;
}

/* Texts that were read before. */
static pc_code fill_offload(const pc_setting *setting, pc_offload *offload, pc_error *error) {
    pc_code code = pc_offload_parse(pc_setting_text(setting, PC_KEY_OFFLOAD), &offload->kinds, error);
    if (code || !setting->given[PC_KEY_OFFLOAD_MODULES]) return code;
    return pc_offload_modules_parse(setting->value[PC_KEY_OFFLOAD_MODULES].text, &offload->modules, error);
}

static pc_rank_order order_of(const pc_setting *setting) {
    pc_rank_order order = setting->value[PC_KEY_RANK_ORDER].order;
    if (!setting->given[PC_KEY_RANK_ORDER])
        pc_rank_order_parse(pc_setting_text(setting, PC_KEY_RANK_ORDER), &order, NULL);
    return order;
}

static void fill_iteration(const pc_setting *setting, const cluster_shape *shape, pc_iteration_spec *spec) {
    fill_cut(setting, shape, &spec->cut);
    spec->machine = reference_of(setting, PC_KEY_MACHINE)->machine;
    choose_kernels(setting, &spec->machine.gpu, NULL); /* which check_kernels has let through */
    spec->generator = setting->value[PC_KEY_SCHEDULE].generator;
    spec->order = order_of(setting);
    spec->sequence_slices = (int)pc_setting_whole(setting, PC_KEY_SEQUENCE_SLICES, 0);
    spec->memory_limit_bytes = pc_setting_whole(setting, PC_KEY_MEMORY, PC_NO_LIMIT);
    /* what Megatron-LM shares over its replicas of Muon (`dist_muon`) are whole tensors */
    bool takes_tensors = pc_optimizer_takes_tensors(&spec->cut.optimizer);
    if (takes_tensors && !setting->given[PC_KEY_ZERO_PARTITION]) spec->cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
}

static int64_t or_unknown(int64_t number) {
    return number > 0 ? number : -1;
}

/* What a profile that has measured kernels says itself: then the machine's file holds, whatever the software, and the
 * scenario says nothing. Whether it has, who opens it knows. */
static pc_run_kernels kernels_of(const pc_setting *setting, const pc_gpu *other) {
    static const pc_key keys[] = {PC_KEY_ATTENTION_KERNEL, PC_KEY_UNFUSED, PC_KEY_KERNELS, PC_KEY_LAUNCH};
    const pc_gpu *gpu = &reference_of(setting, PC_KEY_MACHINE)->machine.gpu;
    pc_run_kernels kernels = {{gpu->attention_efficiency, gpu->unfused, gpu->launch_s},
                              {other->attention_efficiency, other->unfused, other->launch_s},
                              NULL};
    for (size_t i = sizeof keys / sizeof *keys; i-- > 0;)
        if (is_own(setting, keys[i])) kernels.said = pc_key_path(keys[i]);
    return kernels;
}

/* The run's own fields, as runs at given times have them too. */
static void describe(const pc_setting *setting, const cluster_shape *shape, pc_run_spec *spec) {
    spec->is_cluster = true;
    spec->generator = setting->value[PC_KEY_SCHEDULE].generator;
    spec->gpus = or_unknown(shape->gpus);
    spec->devices = (int)shape->pp;
    spec->microbatches = (int)shape->microbatches;
    spec->chunks = pc_setting_chunks(setting);
    spec->slices = pc_setting_slices(setting);
    spec->microbatch_size = shape->microbatch_size;
    spec->has_activation = true;
    pc_setting_choose_profile(setting, spec);
}

/* Of a text that is too long the end, from a whole character of it on. */
static void copy_end(char to[PC_LABEL_SIZE], const char *from) {
    size_t length = strlen(from);
    if (length >= PC_LABEL_SIZE) from += length - (PC_LABEL_SIZE - 1);
    while (((unsigned char)*from & 0xc0) == 0x80) from++;
    snprintf(to, PC_LABEL_SIZE, "%s", from);
}

static void label_software(const char *name, pc_run_labels *labels) {
    bool is_own = pc_library_is_path(name) || strlen(name) >= sizeof labels->software;
    snprintf(labels->software, sizeof labels->software, "%.*s", (int)sizeof labels->software - 1,
             is_own ? "other" : name);
}

static void label(const pc_setting *setting, const pc_run_spec *spec, pc_run_labels *labels) {
    snprintf(labels->model, sizeof labels->model, "%s", spec->iteration.model.name);
    snprintf(labels->machine, sizeof labels->machine, "%s", spec->iteration.machine.name);
    if (spec->profile_path) copy_end(labels->profile, setting->value[PC_KEY_PROFILE].reference->text);
    if (spec->shipped_profile) copy_end(labels->profile, spec->shipped_profile);
    if (setting->given[PC_KEY_SOFTWARE]) label_software(setting->value[PC_KEY_SOFTWARE].reference->text, labels);
}

pc_code pc_cluster_expand(const pc_setting *setting, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    pc_run_spec made = pc_run_spec_default();
    pc_error contradiction;
    cluster_shape shape;
    pc_key culprit;
    if (find_checked_shape(setting, &shape, &contradiction))
        snprintf(made.infeasible, sizeof made.infeasible, "%.*s", (int)sizeof made.infeasible - 1,
                 contradiction.message);
    made.iteration = pc_iteration_spec_default();
    pc_setting_fill(setting, true, &made);
    fill_iteration(setting, &shape, &made.iteration);
    pc_setting_fill_bad_days(setting, &made);
    if (pc_setting_has_profile_file(setting))
        made.beside_profile = kernels_of(setting, &made.iteration.bad_days.other_gpu);
    choose_kernels(setting, &made.iteration.bad_days.other_gpu, NULL); /* its best, where it has no others */
    pc_code code = pc_setting_model(setting, &made.iteration.model, &culprit, error);
    pc_precision_fit_gpu(&made.iteration.machine.gpu, &made.iteration.model.low);
    made.iteration.cut.cp_a2a = (int)pc_setting_whole(setting, PC_KEY_CP_A2A, 0);
    if (!code) pc_iteration_fill_exchange(&made.iteration);
    if (!code) code = fill_layout(setting, &shape, &made, error);
    if (!code) code = fill_recomputation(setting, &made, error);
    if (!code) code = fill_offload(setting, &made.iteration.cut.offload, error);
    if (code) {
        pc_run_spec_free(&made);
        return code;
    }
    describe(setting, &shape, &made);
    label(setting, &made, labels);
    *spec = made;
    return PC_OK;
}
