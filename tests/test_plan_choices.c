/* Choices of a plan that a file can list beside the cut: how context ranks communicate, lists of modules. Lists, what
 * counts once, and runs that are what their words say. */
#include "engine/alloc.h"
#include "models/workload/recompute.h"
#include "scenarios/plan_axes.h"
#include "scenarios/setting.h"
#include "tests/scenario_files.h"

static const char tiny[] =
    "scenario: tiny\n"
    "setting:\n"
    "  model: {name: tiny, layers: 4, hidden: 512, heads: 8, kv_heads: 4, seq_len: 4096, vocab: 1000}\n"
    "  machine: dgx-a100\n"
    "  gpus: 16\n"
    "  global_batch: 16\n"
    "plan:\n"
    "  schedule: [1f1b]\n"
    "  layout: [even]\n"
    "  microbatch_size: [1]\n"
    "  zero: [0]\n"
    "  offload: [none]\n"
    "  rank_order: [tp-dp-pp]\n";

static pc_plan_scenario *load_tiny(const char *plan, const char *const *sets, int set_count) {
    char text[2048];
    pc_error error;
    pc_plan_scenario *made = NULL;
    snprintf(text, sizeof text, "%s%s", tiny, plan);
    write_temporary(text, strlen(text));
    if (pc_plan_scenario_load(temporary, sets, set_count, &made, &error)) fail_msg("%s", error.message);
    return made;
}

static void check_refused(const char *const *sets, int count, const char *message) {
    pc_error error;
    pc_plan_scenario *made = NULL;
    write_temporary(tiny, strlen(tiny));
    assert_int_equal(pc_plan_scenario_load(temporary, sets, count, &made, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, message)) fail_msg("%s", error.message);
}

static void assert_list(pc_plan_list list, const int64_t *expected, int count) {
    assert_int_equal(list.count, count);
    for (int i = 0; i < count; i++) assert_int_equal(list.values[i], expected[i]);
}
#define ASSERT_LIST(list, ...)                                                                                         \
    assert_list(list, (int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static pc_plan_answer run_all(pc_plan_scenario *x) {
    pc_plan_request request = pc_plan_scenario_request(x);
    pc_plan_answer answer;
    pc_error error;
    request.threads = 1;
    request.all_variants = true;
    request.top = 1000;
    if (pc_plan_run(pc_plan_scenario_space(x), &request, &answer, &error)) fail_msg("%s", error.message);
    return answer;
}

static void join(void *context, const char *key, const char *value) {
    char *words = context;
    size_t used = strlen(words);
    snprintf(words + used, 512 - used, " %s=%s ", key, value);
}

/* The words that a plan is run again with, and that the run takes as long. */
static void check_run(const pc_plan_scenario *x, const pc_plan_found *found, char words[512]) {
    pc_run_spec spec;
    pc_run_labels labels;
    pc_iteration iteration;
    pc_error error;
    if (pc_plan_scenario_run_spec(x, &found->choice, 1, &spec, &labels, &error)) fail_msg("%s", error.message);
    if (pc_iteration_run(&spec.iteration, NULL, false, &iteration, &error)) fail_msg("%s", error.message);
    assert_true(iteration.iteration_s == found->iteration_s);
    pc_iteration_free(&iteration);
    pc_run_spec_free(&spec);
    words[0] = '\0';
    if (pc_plan_scenario_put(x, &found->choice, join, words, &error)) fail_msg("%s", error.message);
}

/* ---- context parallelism ---- */

/* Without a list the setting's word; of one word, or of none, no list. */
static void test_exchanges_are_listed(void **state) {
    (void)state;
    const char *const one[] = {"setting.cp=2", "setting.cp_comm_type=a2a"};
    const char *const many[] = {"plan.cp=[1, 2]", "plan.cp_comm_type=[a2a, a2a+p2p, all_gather]"};
    pc_plan_scenario *plain = load_tiny("", NULL, 0), *fixed = load_tiny("", one, 2), *listed = load_tiny("", many, 2);
    assert_int_equal(pc_plan_scenario_space(plain)->cp_comm.count, 0);
    ASSERT_LIST(pc_plan_scenario_space(fixed)->cp_comm, PC_CP_A2A);
    ASSERT_LIST(pc_plan_scenario_space(listed)->cp_comm, PC_CP_A2A, PC_CP_A2A_P2P, PC_CP_ALL_GATHER);
    for (pc_cp_comm comm = PC_CP_P2P; comm <= PC_CP_A2A_P2P; comm++) {
        size_t length;
        const char *word = pc_word_of(PC_KEY_CP_COMM_TYPE, comm, &length);
        assert_true(strlen(pc_cp_comm_name(comm)) == length && memcmp(word, pc_cp_comm_name(comm), length) == 0);
    }
    pc_plan_scenario_free(plain);
    pc_plan_scenario_free(fixed);
    pc_plan_scenario_free(listed);
}

/* tp 2, pp 1; cp 4 has four points more than cp 1, whose only one says no word. Of 8 and 4 heads, 4 and 2 on a rank of
 * TP, four context ranks cannot exchange all: that point breaks a rule, and rows of two are what a2a+p2p has. */
static void test_exchanges_are_points_where_cp_is_not_1(void **state) {
    (void)state;
    pc_plan_scenario *x = load_tiny("  tp: [2]\n  pp: [1]\n  cp: [1, 4]\n  recompute: [none]\n"
                                    "  cp_comm_type: [p2p, all_gather, a2a, a2a+p2p]\n",
                                    NULL, 0);
    pc_plan_answer answer = run_all(x);
    int seen[PC_CP_A2A_P2P + 1] = {0}, alone = 0;
    assert_int_equal(answer.log.points, 5);
    assert_int_equal(answer.log.broken[PC_PLAN_RULE_TENSOR], 1);
    assert_int_equal(answer.count, 4);
    for (int64_t i = 0; i < answer.count; i++) {
        const pc_plan_choice *choice = &answer.found[i].choice;
        const pc_iteration_spec spec = pc_plan_spec(pc_plan_scenario_space(x), choice);
        char words[512], wanted[64];
        check_run(x, &answer.found[i], words);
        snprintf(wanted, sizeof wanted, " cp_comm_type=%s ", pc_cp_comm_name(choice->cp_comm));
        bool is_said = choice->cp > 1 && choice->cp_comm != PC_CP_P2P;
        assert_true(is_said ? strstr(words, wanted) != NULL : strstr(words, "cp_comm_type") == NULL);
        if (choice->cp_comm == PC_CP_A2A_P2P) assert_int_equal(spec.cut.cp_a2a, 2);
        alone += choice->cp == 1;
        seen[choice->cp_comm] += choice->cp > 1;
    }
    assert_int_equal(alone, 1);
    assert_true(seen[PC_CP_P2P] == 1 && seen[PC_CP_ALL_GATHER] == 1 && seen[PC_CP_A2A] == 0 &&
                seen[PC_CP_A2A_P2P] == 1);
    pc_plan_answer_free(&answer);
    pc_plan_scenario_free(x);
}

/* A word that the setting has is unsaid by none of the plans that have another. */
static void test_a_list_is_said_over_the_setting(void **state) {
    (void)state;
    const char *const sets[] = {"setting.cp_comm_type=a2a", "plan.cp_comm_type=[p2p, a2a]"};
    pc_plan_scenario *x = load_tiny("  tp: [1]\n  pp: [1]\n  cp: [1, 2]\n  recompute: [none]\n", sets, 2);
    pc_plan_answer answer = run_all(x);
    assert_int_equal(answer.count, 3);
    for (int64_t i = 0; i < answer.count; i++) {
        char words[512];
        check_run(x, &answer.found[i], words);
        bool is_ring = answer.found[i].choice.cp > 1 && answer.found[i].choice.cp_comm == PC_CP_P2P;
        assert_true((strstr(words, " cp_comm_type=p2p ") != NULL) == is_ring);
    }
    pc_plan_answer_free(&answer);
    pc_plan_scenario_free(x);
}

/* As an axis a list goes by its words, and without one it is the setting's. */
static void test_exchanges_are_an_axis(void **state) {
    (void)state;
    const char *const sets[] = {"plan.cp_comm_type=[all_gather, a2a]"};
    pc_plan_scenario *listed = load_tiny("", sets, 1), *plain = load_tiny("", NULL, 0);
    pc_plan_axis axis = pc_plan_axis_of(listed, "cp_comm_type");
    char text[PC_PLAN_VALUE_SIZE];
    pc_plan_space space = *pc_plan_scenario_space(listed);
    assert_int_equal(axis.count, 2);
    pc_plan_axis_value(listed, &axis, 1, text);
    assert_string_equal(text, "a2a");
    pc_plan_axis_narrow(listed, &axis, 1, &space);
    ASSERT_LIST(space.cp_comm, PC_CP_A2A);
    axis = pc_plan_axis_of(plain, "cp_comm_type");
    assert_int_equal(axis.count, 1);
    pc_plan_axis_value(plain, &axis, 0, text);
    assert_string_equal(text, "p2p");
    pc_plan_scenario_free(listed);
    pc_plan_scenario_free(plain);
}

static void test_bad_exchanges_are_refused(void **state) {
    (void)state;
    const char *const rows[] = {"setting.cp_a2a=2", "plan.cp_comm_type=[p2p, a2a+p2p]"};
    const char *const twice[] = {"plan.cp_comm_type=[p2p, p2p]"}, *const word[] = {"plan.cp_comm_type=[ring]"};
    check_refused(rows, 2,
                  "cp_a2a: given beside a list of cp_comm_type; expected none, for it follows from each cut, or "
                  "cp_comm_type: a2a+p2p in the setting");
    check_refused(twice, 1, "plan.cp_comm_type: the same twice, values 0 and 1; expected values that differ");
    check_refused(word, 1, "plan.cp_comm_type[0]: ring: unknown word; expected one of p2p, all_gather, a2a, a2a+p2p");
}

/* ---- modules ---- */

/* Each list of Megatron's modules is a plan of its own, whose command has its name; flash attention without a list of
 * modules has nothing to recompute by `selective`, which is no point beside none. */
static void test_lists_of_modules_are_plans(void **state) {
    (void)state;
    static const char *const names[] = {"none",          "selective:core_attn",     "selective:layernorm",
                                        "selective:mlp", "selective:layernorm+mlp", "selective:core_attn+layernorm+mlp",
                                        "full"};
    enum { NAMES = sizeof names / sizeof *names };
    char text[512] = "  tp: [2]\n  pp: [1]\n  recompute: [selective";
    bool seen[NAMES] = {false};
    for (int i = 0; i < NAMES; i++) snprintf(text + strlen(text), sizeof text - strlen(text), ", '%s'", names[i]);
    snprintf(text + strlen(text), sizeof text - strlen(text), "]\n");
    pc_plan_scenario *x = load_tiny(text, NULL, 0);
    pc_plan_answer answer = run_all(x);
    assert_int_equal(answer.log.points, NAMES);
    assert_int_equal(answer.count, NAMES);
    for (int64_t i = 0; i < answer.count; i++) {
        const pc_plan_choice *choice = &answer.found[i].choice;
        char words[512], name[PC_RECOMPUTATION_SIZE], wanted[PC_RECOMPUTATION_SIZE + 16];
        pc_recomputation_write(
            (pc_recomputation){choice->recompute, choice->recompute_layers, choice->recompute_modules}, name);
        check_run(x, &answer.found[i], words);
        snprintf(wanted, sizeof wanted, " recompute=%s ", name);
        assert_non_null(strstr(words, wanted));
        for (int k = 0; k < NAMES; k++) seen[k] = seen[k] || strcmp(name, names[k]) == 0;
    }
    /* `selective` stands first, and is the point that both it and `none` are */
    for (int k = 1; k < NAMES; k++) assert_true(seen[k]);
    pc_plan_answer_free(&answer);
    pc_plan_scenario_free(x);
}

/* ---- tp over nodes ---- */

static double best_of(const pc_plan_space *space, int *tp) {
    pc_plan_request request = {.objectives = {PC_PLAN_THROUGHPUT}, .objective_count = 1, .top = 1, .threads = 1};
    pc_plan_answer answer;
    pc_error error;
    if (pc_plan_run(space, &request, &answer, &error)) fail_msg("%s", error.message);
    assert_int_equal(answer.count, 1);
    double found = answer.found[0].iteration_s;
    *tp = answer.found[0].choice.tp;
    pc_plan_answer_free(&answer);
    return found;
}

/* 64 GPUs are 8 nodes. With as many sequences or more tp ends at a node; with 2, 8 < 64 / 2: 16 and 32 are tried, not
 * 64, for there are as many sequences as groups of 32. */
static void test_tp_goes_over_nodes_where_sequences_are_few(void **state) {
    (void)state;
    static const char *const batches[] = {"setting.global_batch=2", "setting.global_batch=8"};
    for (int i = 0; i < 2; i++) {
        const char *const sets[] = {batches[i], "setting.gpus=64", "setting.model.heads=64",
                                    "setting.model.kv_heads=64", "setting.model.hidden=2048"};
        pc_plan_scenario *x = load_tiny("", sets, 5);
        if (i == 0)
            ASSERT_LIST(pc_plan_scenario_space(x)->tp, 1, 2, 4, 8, 16, 32);
        else
            ASSERT_LIST(pc_plan_scenario_space(x)->tp, 1, 2, 4, 8);
        pc_plan_scenario_free(x);
    }
}

/* The best plan without a list of tp is that with all of them, on networks as they are and as fast as NVLink. */
static void test_default_tp_holds_the_best(void **state) {
    (void)state;
    static const int64_t all[] = {1, 2, 4, 8, 16, 32};
    static const char *const machines[] = {"setting.machine=dgx-a100", "setting.machine=dgx-h100"};
    int over = 0, within = 0;
    for (int i = 0; i < 16; i++) {
        static const char *const batches[] = {"setting.global_batch=1", "setting.global_batch=2",
                                              "setting.global_batch=4", "setting.global_batch=32"};
        const char *const sets[] = {machines[i % 2],
                                    batches[i / 4],
                                    "setting.gpus=32",
                                    "setting.model.heads=32",
                                    "setting.model.kv_heads=32",
                                    "setting.model.hidden=4096",
                                    "setting.model.layers=8"};
        pc_plan_scenario *x = load_tiny("  recompute: [none]\n", sets, 7);
        pc_plan_space space = *pc_plan_scenario_space(x);
        pc_plan_base first = space.bases[0];
        pc_machine *machine = &first.spec.machine;
        int tp, other;
        if (i / 2 % 2) machine->network.bandwidth_bytes_per_s = machine->domain.bandwidth_bytes_per_s;
        space.bases = &first;
        double found = best_of(&space, &tp);
        space.tp = (pc_plan_list){all, 6};
        assert_true(found == best_of(&space, &other));
        over += tp > 8;
        within += tp <= 8;
        pc_plan_scenario_free(x);
    }
    assert_true(over > 0 && within > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchanges_are_listed),
        cmocka_unit_test(test_exchanges_are_points_where_cp_is_not_1),
        cmocka_unit_test(test_a_list_is_said_over_the_setting),
        cmocka_unit_test(test_exchanges_are_an_axis),
        cmocka_unit_test(test_bad_exchanges_are_refused),
        cmocka_unit_test(test_lists_of_modules_are_plans),
        cmocka_unit_test(test_tp_goes_over_nodes_where_sequences_are_few),
        cmocka_unit_test(test_default_tp_holds_the_best),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
