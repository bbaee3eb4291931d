/* A scenario as a search for plans: lists, defaults, sets, runs of choices; and plans as text. */
#include "engine/alloc.h"
#include "results/plan_table.h"
#include "scenarios/plan_scenario.h"
#include "tests/scenario_files.h"

#include <math.h>

static const char tiny[] =
    "scenario: tiny\n"
    "setting:\n"
    "  model: {name: tiny, layers: 12, hidden: 512, heads: 8, kv_heads: 2, seq_len: 256, vocab: 1000}\n"
    "  machine: dgx-a100\n"
    "  gpus: 12\n"
    "  global_batch: 24\n";

static pc_plan_scenario *load_plan(const char *text, const char *const *sets, int set_count) {
    pc_error error;
    pc_plan_scenario *made = NULL;
    write_temporary(text, strlen(text));
    if (pc_plan_scenario_load(temporary, sets, set_count, &made, &error)) fail_msg("%s", error.message);
    return made;
}

static pc_plan_scenario *load_tiny(const char *plan) {
    char text[2048];
    snprintf(text, sizeof text, "%s%s", tiny, plan);
    return load_plan(text, NULL, 0);
}

static void assert_list(pc_plan_list list, const int64_t *expected, int count) {
    assert_int_equal(list.count, count);
    for (int i = 0; i < count; i++) assert_int_equal(list.values[i], expected[i]);
}
#define ASSERT_LIST(list, ...)                                                                                         \
    assert_list(list, (int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* ---- lists ---- */

/* tp: divides 8 heads, and 2 heads of keys divide it or the reverse; 8 GPUs a node, of 12 that it divides. Parts: with
 * `balanced` up to 12 layers and two ends. pp: divides 12 GPUs. chunks: with pp 1 as many as parts. Microbatches:
 * powers of two that divide 24. Groups: a node's GPUs; 64 are more than there are. */
static void test_defaults(void **state) {
    (void)state;
    pc_plan_scenario *x = load_tiny("");
    const pc_plan_space *space = pc_plan_scenario_space(x);
    pc_plan_request request = pc_plan_scenario_request(x);
    assert_int_equal(space->base_count, 1);
    ASSERT_LIST(space->gpus, 12);
    ASSERT_LIST(space->global_batch, 24);
    ASSERT_LIST(space->tp, 1, 2, 4);
    ASSERT_LIST(space->pp, 1, 2, 3, 4, 6, 12);
    ASSERT_LIST(space->chunks, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
    ASSERT_LIST(space->layouts, PC_CUT_EVEN, PC_CUT_ENDS, PC_CUT_OWN, PC_CUT_BALANCED);
    ASSERT_LIST(space->shard_group, 0, 8);
    ASSERT_LIST(space->offload, 0, PC_OFFLOAD_OPTIMIZER);
    ASSERT_LIST(space->microbatch_size, 1, 2, 4, 8);
    ASSERT_LIST(space->recompute, PC_RECOMPUTE_NONE, INT64_C(4) << 32 | PC_RECOMPUTE_MODULES, PC_RECOMPUTE_FULL);
    ASSERT_LIST(space->zero, 0, 1, 2, 3);
    ASSERT_LIST(space->sequence_parallel, 1);
    ASSERT_LIST(space->overlaps_tp, 1);
    assert_int_equal(space->dp.count, 0);
    assert_int_equal(space->generator_count, 9);
    assert_int_equal(space->bases[0].spec.effort, PC_EFFORT_QUICK);
    assert_int_equal(space->order_count, 2);
    assert_int_equal(request.objective_count, 1);
    assert_int_equal(request.objectives[0], PC_PLAN_THROUGHPUT);
    assert_int_equal(request.top, 10);
    pc_plan_scenario_free(x);
}

/* Where least memory is wanted four schedules more, which an adaptive one stands for elsewhere; and an effort that is
 * said holds. */
static void test_schedules_follow_the_objective(void **state) {
    (void)state;
    const char *const sets[] = {"plan.objective=[throughput, memory]", "setting.search_effort=full"};
    pc_plan_scenario *x = load_plan(tiny, sets, 2);
    assert_int_equal(pc_plan_scenario_space(x)->generator_count, 13);
    assert_int_equal(pc_plan_scenario_space(x)->bases[0].spec.effort, PC_EFFORT_FULL);
    pc_plan_scenario_free(x);
}

/* With embedding and head counted as a layer each there are 14 to divide: 1, 2, 7 or 14 parts. */
static void test_defaults_follow_the_layout(void **state) {
    (void)state;
    const char *const sets[] = {"setting.model.layout=ends", "setting.model.attention=materialised", "setting.gpus=6"};
    pc_plan_scenario *x = load_plan(tiny, sets, 3);
    const pc_plan_space *space = pc_plan_scenario_space(x);
    ASSERT_LIST(space->tp, 1, 2);
    ASSERT_LIST(space->pp, 1, 2);
    ASSERT_LIST(space->chunks, 2, 7, 14);
    ASSERT_LIST(space->layouts, PC_CUT_ENDS);
    ASSERT_LIST(space->recompute, PC_RECOMPUTE_NONE, PC_RECOMPUTE_SELECTIVE, INT64_C(5) << 32 | PC_RECOMPUTE_MODULES,
                PC_RECOMPUTE_FULL);
    pc_plan_scenario_free(x);
}

static void test_lists(void **state) {
    (void)state;
    pc_plan_scenario *x = load_tiny("plan:\n"
                                    "  objective: [cost, memory]\n"
                                    "  machine: [dgx-h100, dgx-a100]\n"
                                    "  price: [3/h, 1.5 /h]\n"
                                    "  gpus: [4..6, 12]\n"
                                    "  dp: [1, 2]\n"
                                    "  recompute: [full]\n"
                                    "  shard_group: [2, 4]\n"
                                    "  layout: [own, even, balanced, auto]\n"
                                    "  offload: [none, full+optimizer]\n"
                                    "  rank_order: [dp-tp-pp]\n"
                                    "  overlap: {p2p: [false, true]}\n"
                                    "  most_iteration: 1.5 min\n"
                                    "  most_cost: 0.25\n");
    const pc_plan_space *space = pc_plan_scenario_space(x);
    pc_plan_request request = pc_plan_scenario_request(x);
    assert_int_equal(space->base_count, 2);
    assert_string_equal(space->bases[0].spec.machine.name, "dgx-h100");
    assert_true(space->bases[0].gpu_hour_price == 3 && space->bases[1].gpu_hour_price == 1.5);
    ASSERT_LIST(space->gpus, 4, 5, 6, 12);
    ASSERT_LIST(space->dp, 1, 2);
    ASSERT_LIST(space->recompute, PC_RECOMPUTE_FULL);
    ASSERT_LIST(space->layouts, PC_CUT_OWN, PC_CUT_EVEN, PC_CUT_BALANCED, PC_PLAN_LAYOUT_AUTO);
    ASSERT_LIST(space->offload, 0, PC_OFFLOAD_FULL | PC_OFFLOAD_OPTIMIZER);
    ASSERT_LIST(space->overlaps_p2p, 0, 1);
    ASSERT_LIST(space->shard_group, 2, 4);
    assert_int_equal(space->orders[0].axis[0], PC_AXIS_DP);
    assert_int_equal(request.objective_count, 2);
    assert_int_equal(request.objectives[0], PC_PLAN_COST);
    assert_int_equal(request.top, 0); /* of a front all */
    assert_true(request.most_iteration_s == 90 && request.most_cost == 0.25);
    pc_plan_scenario_free(x);
}

/* What is said later wins: a set over the file, and of sets the last. Within a document `plan` wins over the rest. */
static void test_order_of_words(void **state) {
    (void)state;
    char text[2048];
    snprintf(text, sizeof text, "%s  tp: 4\nsweep:\n  tp: [1, 2]\n  zero: [2, 3]\nplan:\n  tp: [2, 4]\n  pp: [1]\n",
             tiny);
    const char *const sets[] = {"setting.tp=8", "plan.tp=[1]", "sweep.pp=[2, 3]", "setting.zero=0"};
    const int64_t tp[][2] = {{2, 4}, {8, 0}, {1, 0}, {1, 0}, {1, 0}};
    for (int count = 0; count <= 4; count++) {
        pc_plan_scenario *x = load_plan(text, sets, count);
        const pc_plan_space *space = pc_plan_scenario_space(x);
        assert_list(space->tp, tp[count], count == 0 ? 2 : 1);
        if (count < 3)
            ASSERT_LIST(space->pp, 1);
        else
            ASSERT_LIST(space->pp, 2, 3);
        if (count < 4)
            ASSERT_LIST(space->zero, 2, 3);
        else
            ASSERT_LIST(space->zero, 0);
        pc_plan_scenario_free(x);
    }
}

/* ---- runs ---- */

static void join(void *context, const char *key, const char *value) {
    char *text = context;
    snprintf(text + strlen(text), 512 - strlen(text), "%s=%s ", key, value);
}

/* The iteration that the planner means is the one that the scenario makes, and what it put in words says no more than
 * the setting does not. */
static void test_runs(void **state) {
    (void)state;
    pc_plan_scenario *x =
        load_tiny("plan:\n  tp: [1, 2]\n  zero: [1, 3]\n  overlap: {p2p: [false]}\n  price: [2 /h]\n");
    static const char *const layouts[] = {"even", "ends", "own", "listed", "balanced"};
    const pc_plan_space *space = pc_plan_scenario_space(x);
    pc_plan_request request = pc_plan_scenario_request(x);
    pc_plan_answer answer;
    pc_error error;
    request.threads = 1;
    if (pc_plan_run(space, &request, &answer, &error)) fail_msg("%s", error.message);
    assert_int_equal(answer.count, 10);
    for (int64_t i = 0; i < answer.count; i++) {
        const pc_plan_choice *choice = &answer.found[i].choice;
        pc_run_spec spec;
        pc_run_labels labels;
        char words[512] = "", expected[512], order[16];
        pc_iteration iteration;
        if (pc_plan_scenario_run_spec(x, choice, i + 1, &spec, &labels, &error)) fail_msg("%s", error.message);
        pc_iteration_spec meant = pc_plan_spec(space, choice);
        assert_int_equal(labels.run, i + 1);
        assert_true(spec.gpu_hour_price == 2);
        assert_int_equal(meant.cut.dp, spec.iteration.cut.dp);
        assert_int_equal(meant.cut.layout, spec.iteration.cut.layout);
        if (pc_iteration_run(&spec.iteration, NULL, false, &iteration, &error)) fail_msg("%s", error.message);
        assert_true(iteration.iteration_s == answer.found[i].iteration_s);
        pc_iteration_free(&iteration);
        pc_run_spec_free(&spec);
        if (pc_plan_scenario_put(x, choice, join, words, &error)) fail_msg("%s", error.message);
        pc_rank_order_write(choice->order, order);
        snprintf(expected, sizeof expected, "price=2 /h tp=%d pp=%d ", choice->tp, choice->pp);
        assert_starts(words, expected);
        assert_null(strstr(words, "gpus="));
        assert_true((strstr(words, "chunks=") != NULL) ==
                    (choice->generator->chunks_min != choice->generator->chunks_max));
        assert_non_null(strstr(words, order));
        snprintf(expected, sizeof expected, " model.layout=%s ", layouts[choice->layout]);
        assert_non_null(strstr(words, expected));
        assert_non_null(strstr(words, "overlap.p2p=false "));
        assert_null(strstr(words, "overlap.tp"));
    }
    pc_plan_answer_free(&answer);
    pc_plan_scenario_free(x);
}

/* What is offloaded, and layers by time, are the run's as they are the plan's: modules go with fine-grained alone. */
static void test_offloaded_runs(void **state) {
    (void)state;
    pc_plan_scenario *x = load_tiny("  offload_modules: core_attn\nplan:\n  tp: [2]\n  pp: [3]\n  zero: [1]\n"
                                    "  layout: [balanced]\n  recompute: [none]\n  schedule: [1f1b]\n"
                                    "  offload: [none, fine-grained, full+optimizer]\n");
    pc_plan_request request = pc_plan_scenario_request(x);
    const pc_plan_space *space = pc_plan_scenario_space(x);
    pc_plan_answer answer;
    pc_error error;
    int32_t seen = 0;
    request.threads = 1;
    request.all_variants = true;
    request.top = 1000;
    if (pc_plan_run(space, &request, &answer, &error)) fail_msg("%s", error.message);
    for (int64_t i = 0; i < answer.count; i++) {
        const pc_plan_choice *choice = &answer.found[i].choice;
        pc_run_spec spec;
        pc_run_labels labels;
        pc_iteration iteration;
        char words[512] = "";
        if (pc_plan_scenario_run_spec(x, choice, i + 1, &spec, &labels, &error)) fail_msg("%s", error.message);
        if (pc_iteration_run(&spec.iteration, NULL, false, &iteration, &error)) fail_msg("%s", error.message);
        assert_true(iteration.iteration_s == answer.found[i].iteration_s);
        assert_int_equal(spec.iteration.cut.offload.kinds, choice->offload);
        assert_int_equal(spec.iteration.cut.layout, PC_CUT_BALANCED);
        if (pc_plan_scenario_put(x, choice, join, words, &error)) fail_msg("%s", error.message);
        assert_true((strstr(words, "offload=") != NULL) == (choice->offload != 0));
        assert_non_null(strstr(words, "model.layout=balanced "));
        seen |= choice->offload ? choice->offload : 1 << 30;
        pc_iteration_free(&iteration);
        pc_run_spec_free(&spec);
    }
    assert_int_equal(seen, 1 << 30 | PC_OFFLOAD_FINE_GRAINED | PC_OFFLOAD_FULL | PC_OFFLOAD_OPTIMIZER);
    pc_plan_answer_free(&answer);
    pc_plan_scenario_free(x);
}

static const char experts[] =
    "scenario: experts\n"
    "setting:\n"
    "  model: {layers: 4, hidden: 512, heads: 8, seq_len: 256, vocab: 1000, num_experts: 24, moe_router_topk: 2,\n"
    "          moe_ffn_hidden_size: 96}\n"
    "  machine: dgx-a100\n"
    "  gpus: 16\n"
    "  global_batch: 16\n";

/* 24 experts: 1, 2, 4 or 8 of them on as many ranks, whole. Where the setting has a key of flex, no other dispatcher is
 * meant. A model without experts has none of these lists. */
static void test_defaults_of_experts(void **state) {
    (void)state;
    const char *const sets[] = {"setting.moe_fp8_dispatch=true"};
    pc_plan_scenario *x = load_plan(experts, NULL, 0), *flex = load_plan(experts, sets, 1), *dense = load_tiny("");
    const pc_plan_space *space = pc_plan_scenario_space(x);
    ASSERT_LIST(space->ep, 1, 2, 4, 8);
    ASSERT_LIST(space->etp, 1);
    ASSERT_LIST(space->dispatchers, PC_DISPATCHER_ALLTOALL, PC_DISPATCHER_DEEPEP);
    ASSERT_LIST(space->recompute, PC_RECOMPUTE_NONE, INT64_C(16) << 32 | PC_RECOMPUTE_MODULES,
                INT64_C(8) << 32 | PC_RECOMPUTE_MODULES, PC_RECOMPUTE_FULL);
    ASSERT_LIST(pc_plan_scenario_space(flex)->dispatchers, PC_DISPATCHER_DEEPEP);
    space = pc_plan_scenario_space(dense);
    assert_int_equal(space->ep.count + space->etp.count + space->dispatchers.count, 0);
    pc_plan_scenario_free(x);
    pc_plan_scenario_free(flex);
    pc_plan_scenario_free(dense);
}

/* What a plan says of experts is its run's, and takes as long there. */
static void check_experts_run(const pc_plan_scenario *x, const pc_plan_found *found) {
    static const char *const types[] = {"type=allgather", "type=alltoall", "type=flex", "type=flex"};
    const pc_plan_choice *choice = &found->choice;
    pc_run_spec spec;
    pc_run_labels labels;
    pc_iteration iteration;
    pc_error error;
    char words[512] = "", ep[16], etp[16];
    snprintf(ep, sizeof ep, " ep=%d ", choice->ep);
    snprintf(etp, sizeof etp, " etp=%d ", choice->etp);
    if (pc_plan_scenario_run_spec(x, choice, 1, &spec, &labels, &error)) fail_msg("%s", error.message);
    if (pc_iteration_run(&spec.iteration, NULL, false, &iteration, &error)) fail_msg("%s", error.message);
    assert_true(iteration.iteration_s == found->iteration_s);
    assert_int_equal(pc_cut_ep(&spec.iteration.cut), choice->ep);
    assert_int_equal(pc_cut_etp(&spec.iteration.cut), choice->etp);
    assert_int_equal(spec.iteration.cut.dispatcher, choice->dispatcher);
    if (pc_plan_scenario_put(x, choice, join, words, &error)) fail_msg("%s", error.message);
    assert_true((strstr(words, ep) != NULL) == (choice->ep > 1));
    assert_true((strstr(words, etp) != NULL) == (choice->etp != choice->tp));
    assert_true((strstr(words, types[choice->dispatcher]) != NULL) == (choice->dispatcher != PC_DISPATCHER_ALLTOALL));
    assert_true((strstr(words, "backend=hybridep") != NULL) == (choice->dispatcher == PC_DISPATCHER_HYBRIDEP));
    pc_iteration_free(&iteration);
    pc_run_spec_free(&spec);
}

static void test_runs_of_experts(void **state) {
    (void)state;
    char text[1024];
    snprintf(text, sizeof text, "%s%s", experts,
             "plan:\n  tp: [1, 2]\n  pp: [2]\n  zero: [1]\n  ep: [1, 4]\n  etp: [1, 2]\n  recompute: [none]\n"
             "  schedule: [1f1b]\n  microbatch_size: [1]\n  layout: [even]\n"
             "  moe_token_dispatcher_type: [allgather, alltoall, flex]\n"
             "  moe_flex_dispatcher_backend: [deepep, hybridep]\n");
    pc_plan_scenario *x = load_plan(text, NULL, 0);
    pc_plan_request request = pc_plan_scenario_request(x);
    pc_plan_answer answer;
    pc_error error;
    int seen[PC_DISPATCHER_HYBRIDEP + 1] = {0};
    request.threads = 1;
    request.all_variants = true;
    request.top = 1000;
    ASSERT_LIST(pc_plan_scenario_space(x)->dispatchers, PC_DISPATCHER_ALLGATHER, PC_DISPATCHER_ALLTOALL,
                PC_DISPATCHER_DEEPEP, PC_DISPATCHER_HYBRIDEP);
    if (pc_plan_run(pc_plan_scenario_space(x), &request, &answer, &error)) fail_msg("%s", error.message);
    for (int64_t i = 0; i < answer.count; i++) {
        check_experts_run(x, &answer.found[i]);
        seen[answer.found[i].choice.dispatcher] += answer.found[i].choice.ep > 1;
    }
    for (int i = 0; i <= PC_DISPATCHER_HYBRIDEP; i++) assert_true(seen[i] > 0);
    pc_plan_answer_free(&answer);
    pc_plan_scenario_free(x);
}

/* A group that divides a plan's replicas is part of its run; else all replicas share, whatever the setting says. */
static void test_shard_groups(void **state) {
    (void)state;
    pc_plan_scenario *x =
        load_tiny("plan:\n  gpus: [8]\n  tp: [1, 2]\n  pp: [1, 2]\n  zero: [0, 3]\n  shard_group: [4]\n");
    pc_plan_request request = pc_plan_scenario_request(x);
    pc_plan_answer answer;
    pc_error error;
    int grouped = 0, whole = 0;
    request.threads = 1;
    request.all_variants = true;
    request.top = 10000;
    if (pc_plan_run(pc_plan_scenario_space(x), &request, &answer, &error)) fail_msg("%s", error.message);
    for (int64_t i = 0; i < answer.count; i++) {
        const pc_plan_choice *choice = &answer.found[i].choice;
        pc_run_spec spec;
        pc_run_labels labels;
        if (pc_plan_scenario_run_spec(x, choice, i + 1, &spec, &labels, &error)) fail_msg("%s", error.message);
        bool has_groups = choice->zero == 3 && choice->dp == 8;
        assert_int_equal(choice->shard_group, has_groups ? 4 : 0);
        assert_int_equal(spec.iteration.cut.shard_group, choice->shard_group);
        grouped += has_groups;
        whole += !has_groups;
        pc_run_spec_free(&spec);
    }
    assert_true(grouped > 0 && whole > 0);
    pc_plan_answer_free(&answer);
    pc_plan_scenario_free(x);
}

/* ---- words ---- */

static pc_plan_row row_of(double iteration_s, double tp_s, double dp_s, double bubble_s, int64_t gpus) {
    pc_plan_row x = {.row = {.iteration_s = iteration_s,
                             .gpus = gpus,
                             .global_batch = 10,
                             .seq_len = 100,
                             .exposed_tp_s = tp_s,
                             .exposed_dp_s = dp_s,
                             .exposed_bubble_s = bubble_s,
                             .gpu_hours_per_million_tokens = 1,
                             .cost_per_million_tokens = NAN}};
    return x;
}

/* Best: 10 s, of which 1 TP, 1 bubble, 8 kernels. Other: 12 s, 1 TP, 0.5 DP, 2.5 bubble, 8 kernels: 20% more, of which
 * 15 points bubble and 5 DP. As costs on half as many GPUs: 10 x 2 = 20 against 12, so that all is -40%: kernels 8 -
 * 16, TP 1 - 2, bubble 2.5 - 2, DP 0.5, over 20. */
static void test_behind(void **state) {
    (void)state;
    char text[PC_PLAN_TEXT_SIZE];
    pc_plan_row best = row_of(10, 1, 0, 1, 2), other = row_of(12, 1, 0.5, 2.5, 1);
    pc_plan_behind(PC_PLAN_THROUGHPUT, &best, &best, text);
    assert_string_equal(text, "");
    pc_plan_behind(PC_PLAN_THROUGHPUT, &best, &other, text);
    assert_string_equal(text, "+20.0%: bubble +15.0, DP +5.0");
    pc_plan_behind(PC_PLAN_COST, &best, &other, text);
    assert_string_equal(text, "-40.0%: kernels -40.0, TP -5.0, DP +2.5, bubble +2.5");
    best.fullest = (pc_device_memory){.parameters = 40, .optimizer = 40, .activations = 20};
    other.fullest = (pc_device_memory){.parameters = 40, .optimizer = 30, .activations = 40, .buffers = 5};
    pc_plan_behind(PC_PLAN_MEMORY, &best, &other, text);
    assert_string_equal(text, "+15.0%: activations +20.0, optimizer -10.0, buffers +5.0");
    other = best;
    pc_plan_behind(PC_PLAN_MEMORY, &best, &other, text);
    assert_string_equal(text, "+0.0%");
}

/* Context parallelism waits for itself: of 12 s, 1 TP and 3 CP, against 10 s with 1 and 1, 20 points are CP's. */
static void test_context_has_its_own_line(void **state) {
    (void)state;
    char text[PC_PLAN_TEXT_SIZE];
    pc_plan_row best = row_of(10, 1, 0, 0, 2), other = row_of(12, 1, 0, 0, 2);
    best.row.exposed_cp_s = 1;
    other.row.exposed_cp_s = 3;
    pc_plan_behind(PC_PLAN_THROUGHPUT, &best, &other, text);
    assert_string_equal(text, "+20.0%: CP +20.0");
    pc_plan_limits(&other, text);
    assert_string_equal(text, "CP traffic 25.0%");
}

/* And so does expert parallelism: of 12 s, 1 CP and 3 EP, against 10 s with 1 and 1. */
static void test_experts_have_their_own_line(void **state) {
    (void)state;
    char text[PC_PLAN_TEXT_SIZE];
    pc_plan_row best = row_of(10, 0, 0, 0, 2), other = row_of(12, 0, 0, 0, 2);
    best.row.exposed_cp_s = other.row.exposed_cp_s = best.row.exposed_ep_s = 1;
    other.row.exposed_ep_s = 3;
    pc_plan_behind(PC_PLAN_THROUGHPUT, &best, &other, text);
    assert_string_equal(text, "+20.0%: EP +20.0");
    pc_plan_limits(&other, text);
    assert_string_equal(text, "EP traffic 25.0%");
}

static void test_limits(void **state) {
    (void)state;
    char text[PC_PLAN_TEXT_SIZE];
    pc_plan_row plan = row_of(12, 1, 0.5, 2.5, 1);
    pc_plan_limits(&plan, text);
    assert_string_equal(text, "bubble 20.8%");
    plan.found.memory_limits = true;
    plan.row.exposed_tp_s = 3;
    pc_plan_limits(&plan, text);
    assert_string_equal(text, "TP traffic 25.0%, memory");
    plan = row_of(1, 0, 0, 0, 1);
    pc_plan_limits(&plan, text);
    assert_string_equal(text, "kernels");
    plan = row_of(1, 0, 0, 0.0004, 1); /* 0.04%: it would be shown as 0.0 */
    pc_plan_limits(&plan, text);
    assert_string_equal(text, "kernels");
    plan = row_of(1, 0, 0, 0.0006, 1);
    pc_plan_limits(&plan, text);
    assert_string_equal(text, "bubble 0.1%");
}

/* ---- recomputation ---- */

typedef struct said {
    char recompute[64];
} said;

static void hear(void *context, const char *key, const char *value) {
    if (strcmp(key, "recompute") == 0) snprintf(((said *)context)->recompute, 64, "%s", value);
}

/* Any name that a run takes, with its number; each choice's run has it again, and so has its command. */
static void test_recomputation(void **state) {
    (void)state;
    char text[2048];
    pc_plan_scenario *x = NULL;
    pc_error error = {0};
    snprintf(text, sizeof text, "%splan:\n  machine: [dgx-a100]\n  recompute: [none, full-block-2, selective-op]\n",
             tiny);
    write_temporary(text, strlen(text));
    if (pc_plan_scenario_load(temporary, NULL, 0, &x, &error)) fail_msg("%s", error.message);
    const pc_plan_space *space = pc_plan_scenario_space(x);
    ASSERT_LIST(space->recompute, PC_RECOMPUTE_NONE, 2 << 16 | PC_RECOMPUTE_BLOCK, PC_RECOMPUTE_OP);
    pc_plan_choice choice = {.gpus = 1,
                             .global_batch = 1,
                             .tp = 1,
                             .pp = 1,
                             .dp = 1,
                             .chunks = 1,
                             .microbatch_size = 1,
                             .microbatches = 1,
                             .generator = pc_generator_find("1f1b"),
                             .recompute = PC_RECOMPUTE_BLOCK,
                             .recompute_layers = 2};
    said heard = {""};
    assert_int_equal(pc_plan_scenario_put(x, &choice, hear, &heard, &error), PC_OK);
    assert_string_equal(heard.recompute, "full-block-2");
    pc_plan_scenario_free(x);
}

/* ---- short memory ---- */

static void test_short_memory(void **state) {
    (void)state;
    char text[2048];
    const char *const sets[] = {"plan.tp=[1..4]"};
    pc_code code = PC_ERROR_NO_MEMORY;
    pc_error error;
    snprintf(text, sizeof text, "%ssweep:\n  recompute: [full]\nplan:\n  machine: [dgx-a100]\n", tiny);
    write_temporary(text, strlen(text));
    for (long i = 0; code == PC_ERROR_NO_MEMORY; i++) {
        pc_plan_scenario *x = NULL;
        pc_alloc_fail_after(i);
        code = pc_plan_scenario_load(temporary, sets, 1, &x, &error);
        pc_alloc_fail_after(-1);
        assert_true(code == PC_OK || (code == PC_ERROR_NO_MEMORY && !x && i < 10000));
        pc_plan_scenario_free(x);
    }
    pc_plan_scenario_free(NULL);
}

static void test_short_memory_of_text(void **state) {
    (void)state;
    pc_plan_row rows[] = {row_of(10, 1, 0, 1, 2), row_of(12, 1, 0.5, 2.5, 1)};
    pc_plan_report report = {.scenario = "x", .rows = rows, .count = 2, .request = {.objective_count = 1}};
    FILE *stream = tmpfile();
    assert_non_null(stream);
    rows[0].command = rows[1].command = "pipecast run";
    rows[0].found.choice.order = rows[1].found.choice.order = (pc_rank_order){{PC_AXIS_TP, PC_AXIS_DP, PC_AXIS_PP}};
    const char *const notes[] = {"a note"};
    report.look = (pc_table_look){.width = 30, .is_coloured = true, .notes = notes, .note_count = 1};
    for (pc_format format = PC_FORMAT_TABLE; format <= PC_FORMAT_JSON; format++) {
        pc_code code = PC_ERROR_NO_MEMORY;
        for (long i = 0; code == PC_ERROR_NO_MEMORY; i++) {
            pc_error error;
            pc_alloc_fail_after(i);
            code = pc_plan_table_write(&report, format, stream, &error);
            pc_alloc_fail_after(-1);
            assert_true(code == PC_OK || code == PC_ERROR_NO_MEMORY);
            assert_int_equal(ftell(stream) > 0, code == PC_OK); /* nothing half-written */
        }
        rewind(stream);
    }
    assert_int_equal(fclose(stream), 0);
}

/* ---- what stands above the table ---- */

/* `tiny` says nothing of what GPT and Llama differ in. */
static void test_assumed(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.model.positions=rotary", "setting.model.tied=false",
                                       "setting.model.bias=false",       "setting.model.dropout=false",
                                       "setting.model.norm=rmsnorm",     "setting.model.mlp=swiglu",
                                       "setting.model.ffn_hidden=2048"};
    pc_model_assumed assumed;
    pc_plan_scenario *x = load_tiny("");
    assert_true(pc_plan_scenario_assumed(x, &assumed));
    assert_string_equal(assumed.model, "tiny");
    assert_string_equal(assumed.keys,
                        "positions learned, tied true, bias true, dropout true, norm layernorm, mlp gelu");
    pc_plan_scenario_free(x);
    x = load_plan(tiny, sets, 7);
    assert_false(pc_plan_scenario_assumed(x, &assumed));
    pc_plan_scenario_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assumed),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_schedules_follow_the_objective),
        cmocka_unit_test(test_defaults_follow_the_layout),
        cmocka_unit_test(test_offloaded_runs),
        cmocka_unit_test(test_defaults_of_experts),
        cmocka_unit_test(test_runs_of_experts),
        cmocka_unit_test(test_shard_groups),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_order_of_words),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_behind),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_context_has_its_own_line),
        cmocka_unit_test(test_experts_have_their_own_line),
        cmocka_unit_test(test_recomputation),
        cmocka_unit_test(test_short_memory),
        cmocka_unit_test(test_short_memory_of_text),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
