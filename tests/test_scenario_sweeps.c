/* Sweeps over memory, attention, layout and plans: what they set, and what runs are called. */
#include "scenarios/units.h"
#include "tests/scenario_files.h"

static const int64_t GIB = INT64_C(1) << 30;

/* The scenario `base` with more lines at its end. */
static pc_scenario *load_base_with(const char *lines, const char *const *sets, int set_count) {
    char text[2048];
    snprintf(text, sizeof text, "%s%s", base, lines);
    write_temporary(text, strlen(text));
    return load_with(temporary, sets, set_count);
}

static void assert_name(const pc_scenario *scenario, int64_t index, const char *name) {
    pc_run_spec spec = spec_of(scenario, index);
    pc_run_labels labels = labels_of(scenario, index);
    assert_string_equal(labels.name, name);
    pc_run_spec_free(&spec);
}

static void assert_limits(const pc_scenario *scenario, int64_t index, int64_t bytes) {
    pc_run_spec spec = spec_of(scenario, index);
    for (int d = 0; d < spec.costs.devices; d++) assert_int_equal(spec.memory_limit_bytes[d], bytes);
    pc_run_spec_free(&spec);
}

/* Behind devices, before chunks, and microbatches change faster. */
static void test_memory(void **state) {
    (void)state;
    static const char *const names[] = {"base.1f1b.m8.p4.mem40GiB.v1",   "base.1f1b.m16.p4.mem40GiB.v1",
                                        "base.1f1b.m8.p4.mem40.5GiB.v1", "base.1f1b.m16.p4.mem40.5GiB.v1",
                                        "base.1f1b.m8.p4.mem40GB.v1",    "base.1f1b.m16.p4.mem40GB.v1",
                                        "base.1f1b.m8.p8.mem40GiB.v1"};
    static const int64_t bytes[] = {40 * GIB, 40 * GIB, 81 * GIB / 2, 81 * GIB / 2, 40000000000, 40000000000, 40 * GIB};
    pc_scenario *scenario = load_base_with("sweep:\n"
                                           "  memory: [40 GiB, 41472 MiB, 40 GB]\n"
                                           "  chunks: [1]\n"
                                           "  devices: [4, 8]\n"
                                           "  microbatches: [8, 16]\n",
                                           NULL, 0);
    assert_int_equal(pc_scenario_run_count(scenario), 12);
    for (int i = 0; i < 7; i++) {
        assert_name(scenario, i, names[i]);
        assert_limits(scenario, i, bytes[i]);
    }
    pc_scenario_free(scenario);
}

/* A sweep stands behind the entries of stages, as a --set does. */
static void test_memory_replaces_that_of_stages(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.devices=2",
                                       "setting.stages=[{F: 1 ms, BW: 2 ms, memory: 3 GiB}, {F: 1 ms, BW: 2 ms}]",
                                       "sweep.memory=[5 GiB, 7 GiB]"};
    pc_scenario *scenario = load_base_with("", sets, 3);
    assert_limits(scenario, 0, 5 * GIB);
    assert_limits(scenario, 1, 7 * GIB);
    pc_scenario_free(scenario);
    scenario = load_base_with("", sets, 2);
    pc_run_spec spec = spec_of(scenario, 0);
    assert_int_equal(spec.memory_limit_bytes[0], 3 * GIB);
    assert_int_equal(spec.memory_limit_bytes[1], PC_NO_LIMIT);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* ".1f1b" and ".mem40.5GiB" leave 111 of the 127 characters of a run's name. */
static void test_long_names(void **state) {
    (void)state;
    char lines[512];
    const char *sweep = "sweep: {memory: [40 GiB, 40.5 GiB, 40 GB]}\n";
    snprintf(lines, sizeof lines, "cases: [{name: %0111d}]\n%s", 0, sweep);
    pc_scenario *scenario = load_base_with(lines, NULL, 0);
    pc_run_spec spec = spec_of(scenario, 1);
    pc_run_labels labels = labels_of(scenario, 1);
    assert_int_equal(strlen(labels.name), 127);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    char text[2048];
    snprintf(text, sizeof text, "%scases: [{name: %0112d}]\n%s", base, 0, sweep);
    write_temporary(text, strlen(text));
    assert_non_null(strstr(message_of(temporary, NULL, 0), "expected at most 111 bytes"));
}

/* What is set from outside takes the place of what the file sweeps. */
static void test_memory_set(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.memory=3 GiB", "sweep.memory=[1 GiB, 2 GiB, 3 GiB]"};
    const char *sweep = "sweep: {memory: [40 GiB, 80 GiB], making: [costs, equal]}\n";
    pc_scenario *scenario = load_base_with(sweep, sets, 1);
    assert_int_equal(pc_scenario_run_count(scenario), 2);
    assert_name(scenario, 1, "base.1f1b.making-equal");
    assert_limits(scenario, 0, 3 * GIB);
    pc_scenario_free(scenario);
    scenario = load_base_with(sweep, sets + 1, 1);
    assert_int_equal(pc_scenario_run_count(scenario), 6);
    assert_name(scenario, 2, "base.1f1b.making-costs.mem2GiB");
    pc_scenario_free(scenario);
}

static void test_plans(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.making=equal"};
    pc_scenario *scenario = load_base_with("cases: [{name: a}, {name: b, making: equal}]\n", NULL, 0);
    pc_run_spec a = spec_of(scenario, 0), b = spec_of(scenario, 1);
    assert_int_equal(a.making, PC_MAKING_COSTS);
    assert_int_equal(b.making, PC_MAKING_EQUAL);
    assert_string_equal(labels_of(scenario, 1).name, "b.1f1b");
    pc_run_spec_free(&a);
    pc_run_spec_free(&b);
    pc_scenario_free(scenario);
    scenario = load_base_with("sweep: {making: [costs, equal]}\n", sets, 1);
    assert_int_equal(pc_scenario_run_count(scenario), 1);
    a = spec_of(scenario, 0);
    assert_int_equal(a.making, PC_MAKING_EQUAL);
    pc_run_spec_free(&a);
    pc_scenario_free(scenario);
}

/* Both kinds of settings know them, and neither says anything by itself. */
static void test_engine_and_memory(void **state) {
    (void)state;
    pc_scenario *scenario =
        load_base_with("cases: [{name: a}, {name: b, engine: events, out_of_memory: wait}]\n", NULL, 0);
    pc_run_spec a = spec_of(scenario, 0), b = spec_of(scenario, 1);
    assert_true(a.engine == PC_ENGINE_AUTO && !a.waits_for_memory);
    assert_true(b.engine == PC_ENGINE_EVENTS && b.waits_for_memory);
    pc_run_spec_free(&a);
    pc_run_spec_free(&b);
    pc_scenario_free(scenario);
    static const char *const sets[] = {"setting.model.from=gpt3-1.3b",
                                       "setting.machine=dgx-a100",
                                       "setting.tp=1",
                                       "setting.pp=4",
                                       "setting.global_batch=16",
                                       "setting.engine=events",
                                       "setting.out_of_memory=wait"};
    for (int count = 5; count <= 7; count += 2) {
        scenario = load_with(NULL, sets, count);
        a = spec_of(scenario, 0);
        assert_int_equal(a.iteration.engine, count == 7 ? PC_ENGINE_EVENTS : PC_ENGINE_AUTO);
        assert_int_equal(a.iteration.waits_for_memory, count == 7);
        pc_run_spec_free(&a);
        pc_scenario_free(scenario);
    }
}

static void test_on_a_cluster(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.model.from=gpt3-1.3b",
                                       "setting.machine=dgx-a100",
                                       "setting.tp=1",
                                       "setting.pp=4",
                                       "setting.global_batch=16",
                                       "setting.making=equal",
                                       "sweep.attention=[flash, materialised]",
                                       "sweep.layout=[even, ends, \"6,6,6,6\"]",
                                       "sweep.memory=[40 GiB, 60 GiB]"};
    pc_scenario *scenario = load_with(NULL, sets, 9);
    assert_int_equal(pc_scenario_run_count(scenario), 12);
    assert_name(scenario, 0, "flags.1f1b.flash.layout-even.mem40GiB");
    assert_name(scenario, 11, "flags.1f1b.materialised.layout-6,6,6,6.mem60GiB");
    pc_run_spec flash = spec_of(scenario, 1), other = spec_of(scenario, 11);
    assert_int_equal(flash.iteration.model.attention, PC_ATTENTION_FLASH);
    assert_int_equal(flash.iteration.cut.layout, PC_CUT_ENDS);
    assert_int_equal(flash.iteration.memory_limit_bytes, 40 * GIB);
    assert_int_equal(other.iteration.model.attention, PC_ATTENTION_MATERIALISED);
    assert_int_equal(other.iteration.cut.layout, PC_CUT_LISTED);
    assert_int_equal(other.iteration.memory_limit_bytes, 60 * GIB);
    assert_true(flash.making == PC_MAKING_EQUAL && flash.iteration.making == PC_MAKING_EQUAL);
    pc_run_spec_free(&flash);
    pc_run_spec_free(&other);
    pc_scenario_free(scenario);
}

/* Numbers that contradict each other whatever is swept are an error, not a run without a result. */
static void test_sweep_of_no_number(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.model.from=gpt3-1.3b",
                                       "setting.machine=dgx-a100",
                                       "setting.gpus=12",
                                       "setting.tp=8",
                                       "sweep.memory=[40 GiB, 60 GiB]",
                                       "sweep.making=[costs, equal]",
                                       "sweep.attention=[flash, materialised]"};
    assert_non_null(strstr(message_of(NULL, sets, 7), "12 GPUs for tp 8 x pp 1 x dp 1, of which dp is to follow"));
}

/* Beside a2a+p2p the other words have no use for its neighbours: they run as without them. Where no word has any, they
 * are refused, as in a single run. */
static void test_neighbours_of_one_word(void **state) {
    (void)state;
    static const char *const sets[] = {
        "setting.model.from=llama2-7b", "setting.machine=dgx-a100", "setting.cp=4",
        "setting.global_batch=16",      "setting.cp_a2a=2",         "sweep.cp_comm_type=[p2p, a2a, a2a+p2p]"};
    const char *const none[] = {sets[0], sets[1], sets[2], sets[3], sets[4], "sweep.cp_comm_type=[p2p, a2a]"};
    pc_scenario *scenario = load_with(NULL, sets, 6);
    assert_int_equal(pc_scenario_run_count(scenario), 3);
    for (int i = 0; i < 3; i++) {
        pc_run_spec spec = spec_of(scenario, i);
        assert_string_equal(spec.infeasible, "");
        assert_int_equal(spec.iteration.cut.cp_a2a, spec.iteration.cut.cp_comm == PC_CP_A2A_P2P ? 2 : 0);
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
    assert_non_null(strstr(message_of(NULL, none, 6), "cp_a2a: stands without cp_comm_type: a2a+p2p; expected both"));
}

/* Processors of kernels that nobody runs. */
static void test_kernels_of_a_dispatcher(void **state) {
    (void)state;
    const char *const sets[] = {"setting.model.from=mixtral-8x7b",
                                "setting.machine=dgx-h100",
                                "setting.ep=8",
                                "setting.etp=1",
                                "setting.global_batch=16",
                                "setting.moe_hybridep_num_sms=32",
                                "setting.moe_token_dispatcher_type=flex"};
    pc_scenario *scenario = load_with(NULL, sets, 7);
    pc_run_spec spec = spec_of(scenario, 0);
    assert_int_equal(spec.iteration.cut.hybridep_sms, 32);
    assert_int_equal(spec.iteration.cut.deepep_sms, 20);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    assert_non_null(
        strstr(message_of(NULL, sets, 6), "moe_hybridep_num_sms: stands without moe_token_dispatcher_type"));
}

/* ---- sizes as names ---- */

static void assert_size_text(int64_t bytes, const char *expected) {
    char text[PC_SIZE_TEXT];
    pc_write_size(bytes, text);
    assert_string_equal(text, expected);
}

static void test_size_texts(void **state) {
    (void)state;
    assert_size_text(0, "0B");
    assert_size_text(1, "1B");
    assert_size_text(1023, "1023B");
    assert_size_text(1024, "1KiB");
    assert_size_text(1000, "1kB");
    assert_size_text(1536, "1536B");
    assert_size_text(1536 << 10, "1.5MiB");
    assert_size_text(40 * GIB, "40GiB");
    assert_size_text(40 * GIB + GIB / 2, "40.5GiB");
    assert_size_text(80000000000, "80GB");
    assert_size_text(1536 * GIB, "1.5TiB");
    assert_size_text(500000000000, "500GB");
    assert_size_text(1395864371, "1.3GiB"); /* 1395864371.2 bytes */
    assert_size_text(40 * GIB + 1, "42949672961B");
    assert_size_text(INT64_MAX, "9223372036854775807B");
}

/* Whatever the size, its text is that size again, so that no two have one text. */
static void test_size_texts_are_exact(void **state) {
    (void)state;
    test_random random = {11};
    for (long i = 0; i < test_cases(2000, 10000); i++) {
        char text[PC_SIZE_TEXT];
        int64_t read, bytes = (int64_t)(test_draw(&random) >> (1 + test_draw(&random) % 63));
        pc_write_size(bytes, text);
        assert_null(strchr(text, ' '));
        assert_int_equal(pc_parse_size(text, &read, NULL), PC_OK);
        assert_true(read == bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_replaces_that_of_stages),
        cmocka_unit_test(test_long_names),
        cmocka_unit_test(test_memory_set),
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_engine_and_memory),
        cmocka_unit_test(test_engine_and_memory),
        cmocka_unit_test(test_on_a_cluster),
        cmocka_unit_test(test_sweep_of_no_number),
        cmocka_unit_test(test_neighbours_of_one_word),
        cmocka_unit_test(test_kernels_of_a_dispatcher),
        cmocka_unit_test(test_size_texts),
        cmocka_unit_test(test_size_texts_are_exact),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
