/* The lists of a plan that nobody gave: what model and machines allow. */
#include "scenarios/plan_section.h"

#include "engine/alloc.h"
#include "models/workload/layout.h"

#include <string.h>

/* Parts that the model can have: is[n] for n from 1 to `most`. */
typedef struct part_counts {
    bool is[PC_PARTS_MAX + 1];
    int most;
} part_counts;

static const pc_iteration_spec *first_spec(const pc_plan_scenario *scenario) {
    return &scenario->runs[0].iteration;
}

/* Whether the model can be cut into `tp` ranks and `parts` parts, in one of the listed layouts; the machine, and all
 * else, is not looked at. */
static bool can_cut(const pc_plan_scenario *scenario, int64_t tp, int parts) {
    const pc_iteration_spec *spec = first_spec(scenario);
    const pc_choice_list *layouts = &scenario->list[PC_CHOICE_LAYOUT];
    pc_cut cut = spec->cut;
    bool can = false;
    cut.tp = (int)tp;
    cut.sequence_parallel = tp > 1 && pc_model_has_experts(&spec->model); /* they need it */
    cut.offload = (pc_offload){0}; /* what it needs depends on sizes that are chosen later */
    for (int i = 0; i < layouts->count && !can; i++) {
        int64_t listed = layouts->values[i].whole;
        cut.layout = listed == PC_PLAN_LAYOUT_AUTO ? pc_layout_auto(spec->model.layers, parts) : (pc_cut_layout)listed;
        can = pc_cut_check(&spec->model, &cut, parts, NULL) == PC_OK;
    }
    return can;
}

static part_counts count_parts(const pc_plan_scenario *scenario) {
    part_counts counts = {.most = PC_PARTS_MAX};
    int64_t layers = first_spec(scenario)->model.layers;
    if (layers + 2 < counts.most) counts.most = (int)layers + 2;
    for (int n = 1; n <= counts.most; n++) counts.is[n] = can_cut(scenario, 1, n);
    return counts;
}

static int64_t largest(const pc_choice_list *list) {
    int64_t most = 0;
    for (int i = 0; i < list->count; i++)
        if (list->values[i].whole > most) most = list->values[i].whole;
    return most;
}

/* GPUs that a node or an NVLink domain joins, the most over machines. */
static int64_t gpus_together(const pc_plan_scenario *scenario) {
    int64_t most = 1;
    for (int i = 0; i < pc_plan_base_count(scenario); i++) {
        const pc_machine *machine = &scenario->runs[i].iteration.machine;
        if (machine->gpus_per_node > most) most = machine->gpus_per_node;
        if (machine->domain_gpus > most) most = machine->domain_gpus;
    }
    return most;
}

/* ---- lists ---- */

static pc_code set_values(pc_choice_list *list, const pc_value *values, int count, pc_error *error) {
    list->values = pc_alloc((size_t)count, sizeof *list->values);
    if (!list->values) return pc_error_no_memory(error);
    memcpy(list->values, values, (size_t)count * sizeof *values);
    list->count = count;
    list->origin = PC_CHOICE_DEFAULT;
    return PC_OK;
}

static pc_code set_numbers(pc_choice_list *list, const int64_t *numbers, int count, pc_error *error) {
    pc_value values[PC_CHOICE_VALUES_MAX];
    for (int i = 0; i < count; i++) values[i] = (pc_value){.whole = numbers[i]};
    return set_values(list, values, count, error);
}

static int64_t least(const pc_choice_list *list) {
    int64_t found = list->values[0].whole;
    for (int i = 1; i < list->count; i++)
        if (list->values[i].whole < found) found = list->values[i].whole;
    return found;
}

static bool has_goal(const pc_plan_scenario *scenario) {
    return scenario->goal.deadline_s > 0.0 || scenario->goal.budget > 0.0;
}

/* Of a goal also whole nodes, or parts of one, between those that are listed may be tried. */
static bool makes_up_between(const pc_plan_scenario *scenario, int64_t size) {
    const pc_choice_list *gpus = &scenario->list[PC_CHOICE_GPUS];
    int64_t from = least(gpus), to = largest(gpus);
    for (int i = 0; i < pc_plan_base_count(scenario); i++) {
        int64_t node = scenario->runs[i].iteration.machine.gpus_per_node;
        int64_t step = from < node ? size : node;
        while (step % size != 0 && step <= to) step += node;
        if (to / step * step >= from) return true;
    }
    return false;
}

/* Whether groups of `size` GPUs make up one of the numbers of GPUs. */
static bool makes_up_gpus(const pc_plan_scenario *scenario, int64_t size) {
    const pc_choice_list *gpus = &scenario->list[PC_CHOICE_GPUS];
    for (int i = 0; i < gpus->count; i++)
        if (gpus->values[i].whole % size == 0) return true;
    return has_goal(scenario) && gpus->count > 1 && makes_up_between(scenario, size);
}

/* Where GPUs are joined best. With fewer sequences than there are such nodes or domains, replicas leave GPUs over, and
 * tp goes on beyond one until they do not. A goal tries numbers of GPUs that nobody listed, most of them too many. */
static int64_t most_tp(const pc_plan_scenario *scenario) {
    const pc_choice_list *gpus = &scenario->list[PC_CHOICE_GPUS];
    int64_t most = gpus_together(scenario), all = largest(gpus), batch = least(&scenario->list[PC_CHOICE_GLOBAL_BATCH]);
    bool is_of_goal = gpus->origin == PC_CHOICE_DEFAULT && gpus->count > 1;
    while (!scenario->batch_follows_dp && !is_of_goal && most < all && batch < all / most) most *= 2;
    return most;
}

/* All that divide the heads (of keys and values too, or the other way round) and make up the GPUs; over several nodes
 * or domains whole ones. */
static pc_code fill_tp(pc_plan_scenario *scenario, const part_counts *parts, pc_error *error) {
    int64_t tp[PC_CHOICE_VALUES_MAX], most = most_tp(scenario), gpus = largest(&scenario->list[PC_CHOICE_GPUS]);
    int64_t together = gpus_together(scenario);
    int any = 1, count = 0;
    while (any < parts->most && !parts->is[any]) any++;
    for (int64_t n = 1; n <= most && n <= gpus && count < PC_CHOICE_VALUES_MAX; n += n < together ? 1 : together)
        if (n == 1 || (makes_up_gpus(scenario, n) && can_cut(scenario, n, any))) tp[count++] = n;
    return set_numbers(&scenario->list[PC_CHOICE_TP], tp, count, error);
}

/* All by which some number of parts that the model can have divides, and some number of GPUs. */
static pc_code fill_pp(pc_plan_scenario *scenario, const part_counts *parts, pc_error *error) {
    int64_t pp[PC_PARTS_MAX], gpus = largest(&scenario->list[PC_CHOICE_GPUS]);
    int count = 0;
    for (int p = 1; p <= parts->most && p <= gpus; p++) {
        bool can = p == 1;
        for (int n = p; n <= parts->most && !can; n += p) can = parts->is[n];
        if (can && makes_up_gpus(scenario, p)) pp[count++] = p;
    }
    return set_numbers(&scenario->list[PC_CHOICE_PP], pp, count, error);
}

/* From 2 on, since with one chunk an interleaved schedule is 1F1B. */
static pc_code fill_chunks(pc_plan_scenario *scenario, const part_counts *parts, pc_error *error) {
    int64_t chunks[PC_CHUNKS_MAX];
    const pc_choice_list *pp = &scenario->list[PC_CHOICE_PP];
    int count = 0;
    for (int v = 2; v <= parts->most && v <= PC_CHUNKS_MAX; v++) {
        bool can = false;
        for (int i = 0; i < pp->count && !can; i++) {
            int64_t n = pp->values[i].whole * v;
            can = n <= parts->most && parts->is[n];
        }
        if (can) chunks[count++] = v;
    }
    if (count == 0) chunks[count++] = 1;
    return set_numbers(&scenario->list[PC_CHOICE_CHUNKS], chunks, count, error);
}

/* Sequences so long are where activations of one rank fill a GPU. */
enum { LONG_SEQUENCE = 16384, CP_MOST = 8 };

/* Powers of two that cut the sequence and make up the GPUs; 1 alone where sequences are short, or attention keeps its
 * scores. */
static pc_code fill_cp(pc_plan_scenario *scenario, pc_error *error) {
    const pc_iteration_spec *spec = first_spec(scenario);
    bool is_long = spec->cut.seq_len >= LONG_SEQUENCE && spec->model.attention == PC_ATTENTION_FLASH;
    int64_t cp[8] = {1};
    int count = 1;
    for (int64_t n = 2; is_long && n <= CP_MOST; n *= 2)
        if (spec->cut.seq_len % (2 * n) == 0 && makes_up_gpus(scenario, n)) cp[count++] = n;
    return set_numbers(&scenario->list[PC_CHOICE_CP], cp, count, error);
}

/* ---- experts ---- */

const char *pc_plan_key_of_flex(const pc_plan_scenario *scenario) {
    static const pc_key keys[] = {PC_KEY_MOE_FLEX_DISPATCHER_BACKEND, PC_KEY_MOE_FP8_DISPATCH,
                                  PC_KEY_MOE_DEEPEP_NUM_SMS, PC_KEY_MOE_HYBRIDEP_NUM_SMS};
    bool is_listed = scenario->list[PC_CHOICE_MOE_FLEX_DISPATCHER_BACKEND].count > 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (pc_setting_has(&scenario->given, keys[i]) || (i == 0 && is_listed)) return pc_key_path(keys[i]);
    return NULL;
}

/* Powers of two that divide the experts and make up the GPUs, within a domain and beyond. */
static pc_code fill_ep(pc_plan_scenario *scenario, pc_error *error) {
    const int64_t experts = first_spec(scenario)->model.experts.num_experts;
    int64_t ep[32];
    int count = 0;
    for (int64_t n = 1; n <= experts && n <= PC_DEVICES_MAX && experts % n == 0; n *= 2)
        if (n == 1 || makes_up_gpus(scenario, n)) ep[count++] = n;
    return set_numbers(&scenario->list[PC_CHOICE_EP], ep, count, error);
}

/* What Megatron-LM's users choose from. Experts are narrow: nobody cuts one where there are others to share out. */
static pc_code fill_experts(pc_plan_scenario *scenario, pc_error *error) {
    static const int64_t whole[] = {1}, types[] = {PC_DISPATCHER_ALLTOALL, PC_DISPATCHER_DEEPEP};
    pc_choice_list *list = scenario->list;
    pc_code code = PC_OK;
    if (!pc_model_has_experts(&first_spec(scenario)->model)) return PC_OK;
    if (list[PC_CHOICE_EP].count == 0) code = fill_ep(scenario, error);
    if (!code && list[PC_CHOICE_ETP].count == 0) code = set_numbers(&list[PC_CHOICE_ETP], whole, 1, error);
    bool is_flex = pc_plan_key_of_flex(scenario) != NULL;
    if (!code && list[PC_CHOICE_MOE_TOKEN_DISPATCHER_TYPE].count == 0)
        code = set_numbers(&list[PC_CHOICE_MOE_TOKEN_DISPATCHER_TYPE], &types[is_flex], is_flex ? 1 : 2, error);
    return code;
}

/* Powers of two that divide one of the batches. */
static pc_code fill_microbatch_size(pc_plan_scenario *scenario, pc_error *error) {
    int64_t sizes[64];
    const pc_choice_list *batches = &scenario->list[PC_CHOICE_GLOBAL_BATCH];
    int count = 0;
    for (int64_t size = 1; size <= largest(batches); size *= 2) {
        bool can = false;
        for (int i = 0; i < batches->count && !can; i++) can = batches->values[i].whole % size == 0;
        if (can) sizes[count++] = size;
    }
    return set_numbers(&scenario->list[PC_CHOICE_MICROBATCH_SIZE], sizes, count, error);
}

/* One of each sort: whole backward passes and split ones, one chunk and several, interleaved and in a V, known orders
 * and searched ones. Relatives that hold more for the same bubble (`gpipe`, `looped-bfs`, `eager-1f1b`) or idle more
 * (`gems`, `chimera`) are left out. So is what asks for two replicas or slices. Of those that search, the adaptive one
 * of a V stands for all others, which keep less memory, unless least memory is wanted. */
static pc_code fill_schedule(pc_plan_scenario *scenario, pc_error *error) {
    static const char *const names[] = {"1f1b",  "1f1b-interleaved", "zb-h1",     "zb-h2", "zb-interleaved", "zb-1p",
                                        "zb-2p", "v-adaptive",       "dualpipe-v"};
    static const char *const of_memory[] = {"1f1b-v", "zb-two-thirds", "v-min", "v-half"};
    enum { COUNT = sizeof names / sizeof *names, MORE = sizeof of_memory / sizeof *of_memory };
    pc_value values[COUNT + MORE];
    int count = COUNT;
    bool wants_memory = false;
    for (int i = 0; i < scenario->request.objective_count; i++)
        wants_memory = wants_memory || scenario->request.objectives[i] == PC_PLAN_MEMORY;
    for (int i = 0; i < COUNT; i++) values[i] = (pc_value){.generator = pc_generator_find(names[i])};
    for (int i = 0; wants_memory && i < MORE; i++)
        values[count++] = (pc_value){.generator = pc_generator_find(of_memory[i])};
    return set_values(&scenario->list[PC_CHOICE_SCHEDULE], values, count, error);
}

#define MODULES(set) ((int64_t)(set) << 32 | PC_RECOMPUTE_MODULES) /* pc_recomputation_code */

/* What is cheapest for its bytes first: queries, keys and values that latents are made into, then the experts'
 * activation, then all of the experts, whose tokens are sent once more. */
static pc_code fill_recompute_of_experts(pc_plan_scenario *scenario, pc_error *error) {
    const int64_t latents =
        pc_model_is_latent(&first_spec(scenario)->model) ? (int64_t)PC_RECOMPUTES_MLA_UP_PROJ : INT64_C(0);
    const int64_t all[] = {PC_RECOMPUTE_NONE, MODULES(PC_RECOMPUTES_MOE_ACT | latents),
                           MODULES(PC_RECOMPUTES_MOE | latents), PC_RECOMPUTE_FULL, MODULES(latents)};
    return set_numbers(&scenario->list[PC_CHOICE_RECOMPUTE], all, latents ? 5 : 4, error);
}

/* Attention is worth the least time for its bytes, then the MLP, then whole layers. Flash attention has no scores that
 * could be recomputed. */
static pc_code fill_recompute(pc_plan_scenario *scenario, pc_error *error) {
    static const int64_t all[] = {PC_RECOMPUTE_NONE, PC_RECOMPUTE_SELECTIVE,
                                  MODULES(PC_RECOMPUTES_CORE_ATTN | PC_RECOMPUTES_MLP), PC_RECOMPUTE_FULL};
    static const int64_t with_flash[] = {PC_RECOMPUTE_NONE, MODULES(PC_RECOMPUTES_MLP), PC_RECOMPUTE_FULL};
    bool is_flash = first_spec(scenario)->model.attention == PC_ATTENTION_FLASH;
    if (is_flash && pc_model_has_experts(&first_spec(scenario)->model))
        return fill_recompute_of_experts(scenario, error);
    return set_numbers(&scenario->list[PC_CHOICE_RECOMPUTE], is_flash ? with_flash : all, is_flash ? 3 : 4, error);
}

/* All replicas, those of a node or an NVLink domain, and eight such: what hybrid sharding gains is within either. A
 * group that does not divide a plan's replicas is all of them. */
static pc_code fill_shard_group(pc_plan_scenario *scenario, pc_error *error) {
    int64_t groups[3] = {0}, together = gpus_together(scenario), gpus = largest(&scenario->list[PC_CHOICE_GPUS]);
    int count = 1;
    for (int64_t group = together; group > 1 && group < gpus && count < 3; group *= 8) groups[count++] = group;
    return set_numbers(&scenario->list[PC_CHOICE_SHARD_GROUP], groups, count, error);
}

/* As with schedules, what frameworks run: nothing, or the optimizer (Megatron-LM, DeepSpeed), where every machine can.
 */
static pc_code fill_offload(pc_plan_scenario *scenario, pc_error *error) {
    static const int64_t kinds[] = {0, PC_OFFLOAD_OPTIMIZER};
    bool can = true;
    for (int i = 0; i < pc_plan_base_count(scenario) && can; i++) {
        const pc_machine *machine = &scenario->runs[i].iteration.machine;
        can = machine->host_link_bytes_per_s > 0 && machine->host_memory_bytes_per_s > 0;
    }
    return set_numbers(&scenario->list[PC_CHOICE_OFFLOAD], kinds, can ? 2 : 1, error);
}

static pc_code fill_orders(pc_plan_scenario *scenario, pc_error *error) {
    static const pc_value orders[] = {{.order = {{PC_AXIS_TP, PC_AXIS_CP, PC_AXIS_DP, PC_AXIS_PP}}},
                                      {.order = {{PC_AXIS_TP, PC_AXIS_CP, PC_AXIS_PP, PC_AXIS_DP}}}};
    return set_values(&scenario->list[PC_CHOICE_RANK_ORDER], orders, 2, error);
}

/* What the setting would have without a word; a machine's is there already. */
static pc_code fill_switches(pc_plan_scenario *scenario, pc_error *error) {
    static const pc_choice switches[] = {PC_CHOICE_SEQUENCE_PARALLEL, PC_CHOICE_OVERLAP_P2P, PC_CHOICE_OVERLAP_TP,
                                         PC_CHOICE_OVERLAP_GRADIENTS, PC_CHOICE_OVERLAP_PARAMETERS};
    static const int64_t on[] = {1};
    pc_code code = PC_OK;
    for (size_t i = 0; i < sizeof switches / sizeof *switches && !code; i++)
        if (scenario->list[switches[i]].count == 0) code = set_numbers(&scenario->list[switches[i]], on, 1, error);
    return code;
}

/* ---- what has no default but the setting's ---- */

static pc_code refuse_missing(const pc_plan_scenario *scenario, const char *path, const char *expected,
                              pc_error *error) {
    pc_error fault;
    pc_error_blame(&fault, path, "missing; expected %s", expected);
    return pc_plan_refuse_setting(scenario, &fault, error);
}

static pc_code fill_batch(pc_plan_scenario *scenario, pc_error *error) {
    pc_setting setting = pc_plan_base_setting(scenario, 0);
    if (!pc_setting_has(&setting, PC_KEY_MODEL_BATCH))
        return refuse_missing(scenario, "global_batch", "it, or plan.global_batch, since the model's file has none",
                              error);
    return set_values(&scenario->list[PC_CHOICE_GLOBAL_BATCH], &setting.value[PC_KEY_MODEL_BATCH], 1, error);
}

/* Whole nodes, doubled, and one and a half times that: what a deadline or a budget chooses from. */
static pc_code fill_gpus_of_goal(pc_plan_scenario *scenario, pc_error *error) {
    enum { NUMBERS_MOST = 64 };
    const int64_t gpus_most = 65536;
    int64_t gpus[NUMBERS_MOST], node = gpus_together(scenario);
    int count = 0;
    for (int64_t n = node; n <= gpus_most && count + 2 <= NUMBERS_MOST; n *= 2) {
        gpus[count++] = n;
        if (n % 2 == 0 && n > node && n / 2 * 3 <= gpus_most) gpus[count++] = n / 2 * 3;
    }
    if (count == 0) gpus[count++] = node;
    return set_numbers(&scenario->list[PC_CHOICE_GPUS], gpus, count, error);
}

/* Where all three axes are fixed they say how many. */
static pc_code fill_gpus(pc_plan_scenario *scenario, pc_error *error) {
    static const pc_choice axes[] = {PC_CHOICE_TP, PC_CHOICE_PP, PC_CHOICE_DP};
    const pc_choice_list *cp = &scenario->list[PC_CHOICE_CP];
    int64_t gpus = cp->count == 1 ? cp->values[0].whole : 1;
    bool all = cp->count < 2;
    for (int i = 0; i < 3 && all; i++) {
        const pc_choice_list *list = &scenario->list[axes[i]];
        all = list->count == 1 && !__builtin_mul_overflow(gpus, list->values[0].whole, &gpus);
    }
    if (!all && has_goal(scenario)) return fill_gpus_of_goal(scenario, error);
    if (!all || gpus > INT32_MAX)
        return refuse_missing(scenario, "gpus", "it, or plan.gpus, or one value each of tp, pp and dp", error);
    return set_numbers(&scenario->list[PC_CHOICE_GPUS], &gpus, 1, error);
}

pc_code pc_plan_defaults_fill(pc_plan_scenario *scenario, pc_error *error) {
    static const int64_t zero[] = {0, 1, 2, 3}, layouts[] = {PC_CUT_EVEN, PC_CUT_ENDS, PC_CUT_OWN, PC_CUT_BALANCED};
    const pc_choice_list *list = scenario->list;
    pc_code code = PC_OK;
    if (list[PC_CHOICE_LAYOUT].count == 0) code = set_numbers(&scenario->list[PC_CHOICE_LAYOUT], layouts, 4, error);
    if (code) return code;
    part_counts parts = count_parts(scenario);
    if (list[PC_CHOICE_GPUS].count == 0) code = fill_gpus(scenario, error);
    if (!code && list[PC_CHOICE_GLOBAL_BATCH].count == 0) code = fill_batch(scenario, error);
    if (!code && list[PC_CHOICE_TP].count == 0) code = fill_tp(scenario, &parts, error);
    if (!code && list[PC_CHOICE_CP].count == 0) code = fill_cp(scenario, error);
    if (!code) code = fill_experts(scenario, error);
    if (!code && list[PC_CHOICE_PP].count == 0) code = fill_pp(scenario, &parts, error);
    if (!code && list[PC_CHOICE_CHUNKS].count == 0) code = fill_chunks(scenario, &parts, error);
    if (!code && list[PC_CHOICE_MICROBATCH_SIZE].count == 0) code = fill_microbatch_size(scenario, error);
    if (!code && list[PC_CHOICE_SCHEDULE].count == 0) code = fill_schedule(scenario, error);
    if (!code && list[PC_CHOICE_RECOMPUTE].count == 0) code = fill_recompute(scenario, error);
    if (!code && list[PC_CHOICE_ZERO].count == 0) code = set_numbers(&scenario->list[PC_CHOICE_ZERO], zero, 4, error);
    if (!code && list[PC_CHOICE_SHARD_GROUP].count == 0) code = fill_shard_group(scenario, error);
    if (!code && list[PC_CHOICE_OFFLOAD].count == 0) code = fill_offload(scenario, error);
    if (!code && list[PC_CHOICE_RANK_ORDER].count == 0) code = fill_orders(scenario, error);
    return code ? code : fill_switches(scenario, error);
}
