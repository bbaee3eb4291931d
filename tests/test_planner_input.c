/* What the planner is asked that it cannot answer, spaces without a plan that fits, and refused memory. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/planner/planner.h"
#include "results/plan_table.h"
#include "tests/planner_example.h"

#include <math.h>

static const pc_plan_request fastest = {
    .objectives = {PC_PLAN_THROUGHPUT}, .objective_count = 1, .top = 1, .threads = 1};

static void check_refused(const pc_plan_space *space, const pc_plan_request *request, const char *part) {
    pc_plan_answer answer;
    pc_error error = {0};
    assert_int_equal(pc_plan_run(space, request, &answer, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, part)) fail_msg("\"%s\"; expected \"%s\" in it", error.message, part);
}

/* A space that has plans. */
static void draw_plans(test_random *random, example_space *drawn) {
    for (int i = 0; i < 100; i++) {
        pc_plan_answer answer;
        draw_space(random, 2000, false, drawn);
        assert_int_equal(pc_plan_run(&drawn->space, &fastest, &answer, NULL), PC_OK);
        int64_t count = answer.count;
        pc_plan_answer_free(&answer);
        if (count > 0) return;
    }
    fail();
}

static void test_lists(void **state) {
    (void)state;
    test_random random = {721};
    static const int64_t odd[] = {-1};
    example_space drawn;
    draw_plans(&random, &drawn);
    const struct {
        size_t at;
        const char *name;
    } lists[] = {{offsetof(pc_plan_space, gpus), "gpus"},
                 {offsetof(pc_plan_space, global_batch), "global_batch"},
                 {offsetof(pc_plan_space, tp), "tp"},
                 {offsetof(pc_plan_space, pp), "pp"},
                 {offsetof(pc_plan_space, chunks), "chunks"},
                 {offsetof(pc_plan_space, layouts), "layouts"},
                 {offsetof(pc_plan_space, microbatch_size), "microbatch_size"},
                 {offsetof(pc_plan_space, recompute), "recompute"},
                 {offsetof(pc_plan_space, zero), "zero"},
                 {offsetof(pc_plan_space, sequence_parallel), "sequence_parallel"},
                 {offsetof(pc_plan_space, overlaps_tp), "overlaps_tp"},
                 {offsetof(pc_plan_space, overlaps_gradients), "overlaps_gradients"},
                 {offsetof(pc_plan_space, overlaps_parameters), "overlaps_parameters"},
                 {offsetof(pc_plan_space, overlaps_p2p), "overlaps_p2p"}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        pc_plan_space space = drawn.space;
        pc_plan_list *list = (pc_plan_list *)((char *)&space + lists[i].at);
        *list = (pc_plan_list){odd, 0};
        check_refused(&space, &fastest, lists[i].name);
        *list = (pc_plan_list){odd, 1};
        check_refused(&space, &fastest, lists[i].name);
    }
    pc_plan_space space = drawn.space;
    space.base_count = 0;
    check_refused(&space, &fastest, "machines");
    space = drawn.space;
    space.generator_count = 0;
    check_refused(&space, &fastest, "schedules");
    space = drawn.space;
    space.order_count = 0;
    check_refused(&space, &fastest, "orders");
}

static void test_requests(void **state) {
    (void)state;
    test_random random = {722};
    example_space drawn;
    draw_plans(&random, &drawn);
    pc_plan_request request = fastest;
    request.top = 0;
    check_refused(&drawn.space, &request, "top 0");
    request = fastest;
    request.objective_count = 0;
    check_refused(&drawn.space, &request, "0 objectives");
    request.objective_count = 2;
    check_refused(&drawn.space, &request, "each once");
    request = fastest;
    request.most_iteration_s = -1;
    check_refused(&drawn.space, &request, "-1 s");
    request = fastest;
    request.objectives[0] = PC_PLAN_COST;
    drawn.space.base_count = 2;
    drawn.bases[1] = drawn.bases[0];
    drawn.bases[1].gpu_hour_price = NAN;
    check_refused(&drawn.space, &request, "1 of 2");
    drawn.bases[0].gpu_hour_price = -2;
    check_refused(&drawn.space, &request, "price -2");
}

static void test_bases(void **state) {
    (void)state;
    test_random random = {723};
    example_space drawn;
    static const int32_t layers[] = {6, 6};
    draw_plans(&random, &drawn);
    drawn.space.base_count = 1;
    pc_iteration_spec good = drawn.bases[0].spec, *spec = &drawn.bases[0].spec;
    spec->expands = true;
    check_refused(&drawn.space, &fastest, "expanded");
    *spec = good;
    spec->bad_days.samples = 10;
    check_refused(&drawn.space, &fastest, "samples");
    *spec = good;
    spec->cut.layout = PC_CUT_LISTED;
    spec->cut.layers_of_part = layers;
    check_refused(&drawn.space, &fastest, "part by part");
    *spec = good;
    spec->model.heads = 0;
    check_refused(&drawn.space, &fastest, "heads");
    *spec = good;
    spec->machine.gpu.memory_bytes_per_s = -1;
    check_refused(&drawn.space, &fastest, "expected");
    *spec = good;
    spec->overhead_ps = -1;
    check_refused(&drawn.space, &fastest, "below zero");
}

/* No plan is an answer, too: where nothing fits, nothing divides, or all is too slow. */
static void test_no_plan_is_no_error(void **state) {
    (void)state;
    test_random random = {724};
    example_space drawn;
    pc_plan_answer answer;
    draw_plans(&random, &drawn);
    pc_plan_request request = fastest;
    request.most_iteration_s = 1e-9;
    assert_int_equal(pc_plan_run(&drawn.space, &request, &answer, NULL), PC_OK);
    assert_int_equal(answer.count, 0);
    assert_int_equal(answer.log.simulated, 0);
    assert_true(answer.log.too_slow > 0 && isnan(answer.log.mean_bound));
    pc_plan_answer_free(&answer);
    for (int i = 0; i < drawn.space.base_count; i++) drawn.bases[i].spec.memory_limit_bytes = 1;
    assert_int_equal(pc_plan_run(&drawn.space, &fastest, &answer, NULL), PC_OK);
    assert_int_equal(answer.count, 0);
    assert_int_equal(answer.log.over_memory, answer.log.points - answer.log.broken_rule);
    pc_plan_answer_free(&answer);
    static const int64_t prime[] = {7919};
    drawn.space.gpus = (pc_plan_list){prime, 1};
    drawn.space.global_batch = (pc_plan_list){prime, 1};
    static const int64_t two[] = {2};
    drawn.space.tp = (pc_plan_list){two, 1};
    assert_int_equal(pc_plan_run(&drawn.space, &fastest, &answer, NULL), PC_OK);
    assert_int_equal(answer.log.broken_rule, answer.log.points);
    pc_plan_answer_free(&answer);
}

/* ---- rules and what lifts them ---- */

/* A model of 6 layers with 8 heads on 8 GPUs, batch 8; whatever is asked for that breaks a rule. */
typedef struct ruled_space {
    pc_plan_base base;
    const pc_generator *generator;
    pc_rank_order order;
    pc_plan_space space;
} ruled_space;

static const int64_t one[] = {1}, two[] = {2}, three[] = {3}, four[] = {4}, eight[] = {8}, none[] = {0},
                     odd_batch[] = {9}, even_only[] = {PC_CUT_EVEN},
                     all_layouts[] = {PC_CUT_EVEN, PC_CUT_ENDS, PC_CUT_OWN};
#define LIST(values) ((pc_plan_list){values, (int)(sizeof(values) / sizeof *(values))})

static void make_ruled(test_random *random, const char *schedule, ruled_space *ruled) {
    example_space drawn;
    draw_plans(random, &drawn);
    *ruled = (ruled_space){.base = drawn.bases[0], .generator = pc_generator_find(schedule), .order = drawn.orders[0]};
    pc_model *model = &ruled->base.spec.model;
    model->layers = 6;
    model->heads = model->kv_heads = 8;
    model->hidden = model->ffn_hidden = 512;
    model->experts = (pc_experts){0};
    ruled->base.spec.cut.etp = 0;
    ruled->base.spec.memory_limit_bytes = PC_NO_LIMIT;
    ruled->base.spec.cut.offload = (pc_offload){0};
    pc_plan_list ones = LIST(one), zeros = LIST(none);
    ruled->space = (pc_plan_space){.bases = &ruled->base,
                                   .base_count = 1,
                                   .gpus = LIST(eight),
                                   .global_batch = LIST(eight),
                                   .tp = LIST(two),
                                   .pp = LIST(four),
                                   .chunks = LIST(one),
                                   .layouts = LIST(even_only),
                                   .microbatch_size = ones,
                                   .recompute = zeros,
                                   .zero = zeros,
                                   .sequence_parallel = zeros,
                                   .overlaps_tp = zeros,
                                   .overlaps_gradients = zeros,
                                   .overlaps_parameters = zeros,
                                   .overlaps_p2p = zeros,
                                   .generators = &ruled->generator,
                                   .generator_count = 1,
                                   .orders = &ruled->order,
                                   .order_count = 1};
}

static void check_rule(const pc_plan_space *space, pc_plan_rule rule, pc_plan_way way, int64_t value,
                       const char *text) {
    pc_plan_answer answer;
    pc_plan_remedy remedy;
    char said[PC_PLAN_REASON_SIZE];
    assert_int_equal(pc_plan_run(space, &fastest, &answer, NULL), PC_OK);
    assert_int_equal(answer.log.broken[rule], answer.log.broken_rule);
    assert_int_equal(pc_plan_find_remedy(space, &answer.log, &remedy, NULL), PC_OK);
    assert_int_equal(remedy.blamed, rule);
    assert_int_equal(remedy.way, way);
    if (way != PC_PLAN_WAY_NONE && way != PC_PLAN_WAY_SCHEDULE) assert_int_equal(remedy.value, value);
    pc_plan_rule_text(space, &answer.log, &remedy, said);
    assert_string_equal(said, text);
    pc_plan_answer_free(&answer);
}

/* 6 layers over 4 stages: not even; as `ends` (6 + 2) / 4 = 2, so 1 2 2 1; as `own` 6 / 2 = 3, too; of equals the
 * first. With all layouts searched over 7 stages of 7 GPUs: 6, 8 and 6 / 5 do not divide, and the nearest that divides
 * 7 GPUs is 1. */
static void test_rules_and_remedies(void **state) {
    (void)state;
    static const int64_t seven[] = {7};
    test_random random = {727};
    ruled_space ruled;
    make_ruled(&random, "1f1b", &ruled);
    check_rule(&ruled.space, PC_PLAN_RULE_LAYERS, PC_PLAN_WAY_LAYOUT, PC_CUT_ENDS,
               "6 layers do not divide by pp x chunks, laid out even (1 point); --layout ends lifts that for 1 point");
    ruled.space.layouts = LIST(all_layouts);
    ruled.space.gpus = ruled.space.pp = LIST(seven);
    ruled.space.tp = LIST(one);
    ruled.space.global_batch = LIST(seven);
    check_rule(&ruled.space, PC_PLAN_RULE_LAYERS, PC_PLAN_WAY_LAYOUT, PC_CUT_BALANCED,
               "6 layers do not divide by pp x chunks, laid out even, ends or own (1 point); --layout balanced lifts "
               "that for 1 point");
    make_ruled(&random, "1f1b", &ruled);
    ruled.space.tp = LIST(three);
    ruled.space.pp = LIST(two);
    check_rule(&ruled.space, PC_PLAN_RULE_GPUS, PC_PLAN_WAY_TP, 2,
               "tp x pp does not divide the GPUs (1 point); --tp 2 lifts that");
    make_ruled(&random, "1f1b", &ruled); /* dp 2: 9 in ones; 8 and 10 are as near, and less is taken */
    ruled.space.pp = LIST(two);
    ruled.space.global_batch = LIST(odd_batch);
    check_rule(&ruled.space, PC_PLAN_RULE_BATCH, PC_PLAN_WAY_BATCH, 10,
               "dp x microbatch size does not divide the batch (1 point); --global-batch 10 lifts that");
}

/* 8 GPUs: tp 1 over two stages leaves dp 4, not 3, and beside 3 context ranks nothing divides. Of two points the one
 * that comes further is to blame, and not the one that breaks the rule of the GPUs. The model has no experts. */
static void test_other_remedies(void **state) {
    (void)state;
    static const int64_t three_and_one[] = {3, 1}, huge[] = {INT64_C(2000000000)};
    test_random random = {730};
    ruled_space ruled;
    make_ruled(&random, "1f1b", &ruled);
    ruled.space.tp = LIST(one);
    ruled.space.pp = LIST(two);
    ruled.space.dp = LIST(three);
    check_rule(&ruled.space, PC_PLAN_RULE_GPUS, PC_PLAN_WAY_DP, 4,
               "tp x pp x dp is not the number of GPUs (1 point); --dp 4 lifts that");
    ruled.space.dp.count = 0;
    ruled.space.cp = LIST(three);
    ruled.base.spec.model.attention = PC_ATTENTION_FLASH; /* other attention has no context ranks */
    ruled.base.spec.cut.seq_len = 256;
    check_rule(&ruled.space, PC_PLAN_RULE_GPUS, PC_PLAN_WAY_CP, 2,
               "tp x cp x pp does not divide the GPUs (1 point); --cp 2 lifts that");
    make_ruled(&random, "1f1b", &ruled); /* 8 sequences over dp 2: however far away, 4 is the nearest */
    ruled.space.pp = LIST(two);
    ruled.space.global_batch = LIST(eight);
    ruled.space.microbatch_size = LIST(huge);
    check_rule(&ruled.space, PC_PLAN_RULE_BATCH, PC_PLAN_WAY_MICROBATCH_SIZE, 4,
               "dp x microbatch size does not divide the batch (1 point); --microbatch-size 4 lifts that");
    make_ruled(&random, "1f1b", &ruled);
    ruled.space.tp = LIST(three_and_one);
    ruled.space.pp = LIST(two);
    ruled.space.ep = LIST(two);
    pc_plan_answer answer;
    pc_plan_remedy remedy;
    assert_int_equal(pc_plan_run(&ruled.space, &fastest, &answer, NULL), PC_OK);
    assert_int_equal(answer.log.broken[PC_PLAN_RULE_GPUS], 1);
    assert_int_equal(answer.log.broken[PC_PLAN_RULE_EXPERTS], 1);
    assert_int_equal(pc_plan_find_remedy(&ruled.space, &answer.log, &remedy, NULL), PC_OK);
    assert_int_equal(remedy.blamed, PC_PLAN_RULE_EXPERTS);
    assert_int_equal(remedy.way, PC_PLAN_WAY_EP);
    assert_int_equal(remedy.value, 1);
    pc_plan_answer_free(&answer);
}

/* One chunk is no plan, nor is one stage with several, whatever the schedule. 6 layers divide over 2 stages by 3
 * chunks, not by 2; and by 2 chunks, as zb-v has, over no number of stages that divides 8 GPUs. */
static void test_nothing_to_interleave(void **state) {
    (void)state;
    test_random random = {728};
    ruled_space ruled;
    make_ruled(&random, "1f1b-interleaved", &ruled);
    ruled.space.pp = LIST(two);
    check_rule(&ruled.space, PC_PLAN_RULE_INTERLEAVING, PC_PLAN_WAY_CHUNKS, 3,
               "one stage, or one chunk, has nothing to interleave (1 point); --chunks 3 lifts that");
    ruled.space.pp = LIST(one);
    ruled.space.chunks = LIST(three);
    check_rule(&ruled.space, PC_PLAN_RULE_INTERLEAVING, PC_PLAN_WAY_PP, 2,
               "one stage, or one chunk, has nothing to interleave (1 point); --pp 2 lifts that");
    make_ruled(&random, "zb-v", &ruled);
    ruled.space.pp = LIST(one);
    check_rule(&ruled.space, PC_PLAN_RULE_INTERLEAVING, PC_PLAN_WAY_SCHEDULE, 0,
               "one stage, or one chunk, has nothing to interleave (1 point); --schedule 1f1b lifts that");
}

/* What is claimed holds: with the value in the place of its list some point breaks no rule. */
static void test_remedies_lift(void **state) {
    (void)state;
    test_random random = {729};
    long claimed = 0;
    for (long i = 0; i < test_cases(60, 300); i++) {
        example_space drawn;
        pc_plan_answer answer;
        pc_plan_remedy remedy;
        draw_space(&random, 2000, false, &drawn);
        if (i % 2) drawn.space.layouts.count = 1;
        if (i % 2) drawn.space.pp.count = drawn.space.chunks.count = drawn.space.gpus.count = 1;
        assert_int_equal(pc_plan_run(&drawn.space, &fastest, &answer, NULL), PC_OK);
        pc_plan_log before = answer.log;
        pc_plan_answer_free(&answer);
        if (before.broken_rule == 0) continue;
        assert_int_equal(pc_plan_find_remedy(&drawn.space, &before, &remedy, NULL), PC_OK);
        if (remedy.way == PC_PLAN_WAY_NONE) continue;
        pc_plan_list *lists[] = {[PC_PLAN_WAY_LAYOUT] = &drawn.space.layouts,
                                 [PC_PLAN_WAY_TP] = &drawn.space.tp,
                                 [PC_PLAN_WAY_PP] = &drawn.space.pp,
                                 [PC_PLAN_WAY_DP] = &drawn.space.dp,
                                 [PC_PLAN_WAY_CP] = &drawn.space.cp,
                                 [PC_PLAN_WAY_EP] = &drawn.space.ep,
                                 [PC_PLAN_WAY_ETP] = &drawn.space.etp,
                                 [PC_PLAN_WAY_CHUNKS] = &drawn.space.chunks,
                                 [PC_PLAN_WAY_MICROBATCH_SIZE] = &drawn.space.microbatch_size,
                                 [PC_PLAN_WAY_BATCH] = &drawn.space.global_batch};
        if (remedy.way == PC_PLAN_WAY_SCHEDULE) {
            drawn.space.generators = &remedy.generator;
            drawn.space.generator_count = 1;
        } else {
            *lists[remedy.way] = (pc_plan_list){&remedy.value, 1};
        }
        assert_int_equal(pc_plan_run(&drawn.space, &fastest, &answer, NULL), PC_OK);
        assert_true(answer.log.broken_rule < answer.log.points);
        if (remedy.way == PC_PLAN_WAY_LAYOUT)
            assert_true(answer.log.points - answer.log.broken_rule >= remedy.points && remedy.points > 0);
        pc_plan_answer_free(&answer);
        claimed++;
    }
    assert_true(test_saw(claimed, 6));
}

/* Without prices a cost is GPU-hours: the same plan, whatever base has been priced alike. */
static void test_costs_without_prices(void **state) {
    (void)state;
    test_random random = {725};
    example_space drawn;
    pc_plan_answer priced, plain;
    draw_plans(&random, &drawn);
    pc_plan_request request = fastest;
    request.objectives[0] = PC_PLAN_COST;
    for (int i = 0; i < drawn.space.base_count; i++) drawn.bases[i].gpu_hour_price = 4;
    assert_int_equal(pc_plan_run(&drawn.space, &request, &priced, NULL), PC_OK);
    for (int i = 0; i < drawn.space.base_count; i++) drawn.bases[i].gpu_hour_price = NAN;
    assert_int_equal(pc_plan_run(&drawn.space, &request, &plain, NULL), PC_OK);
    assert_int_equal(priced.count, 1);
    assert_int_equal(priced.found[0].number, plain.found[0].number);
    assert_true(priced.found[0].cost == 4 * plain.found[0].cost); /* a power of two: to the bit */
    pc_plan_answer_free(&priced);
    pc_plan_answer_free(&plain);
}

/* Each allocation refused once: an error and nothing leaked, or the whole answer. */
static void test_refused_memory(void **state) {
    (void)state;
    test_random random = {726};
    example_space drawn;
    pc_plan_answer answer;
    draw_plans(&random, &drawn);
    pc_plan_request request = fastest;
    request.top = 2;
    long before = pc_alloc_count();
    assert_int_equal(pc_plan_run(&drawn.space, &request, &answer, NULL), PC_OK);
    long asked = pc_alloc_count() - before;
    pc_plan_answer_free(&answer);
    assert_true(asked > 100);
    for (long i = 0; i < asked; i += 1 + i / 8) {
        pc_error error = {0};
        pc_alloc_fail_after(i);
        pc_code code = pc_plan_run(&drawn.space, &request, &answer, &error);
        pc_alloc_fail_after(-1);
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
        assert_true(error.message[0] != '\0');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_bases),
        cmocka_unit_test(test_no_plan_is_no_error),
        cmocka_unit_test(test_rules_and_remedies),
        cmocka_unit_test(test_other_remedies),
        cmocka_unit_test(test_nothing_to_interleave),
        cmocka_unit_test(test_remedies_lift),
        cmocka_unit_test(test_costs_without_prices),
        cmocka_unit_test(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
