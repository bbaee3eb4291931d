/* What a program decides: files of `software`, and the kernels of a GPU that they ask for. */
#include "scenarios/library.h"
#include "tests/scenario_files.h"

#include "engine/simtime.h"

#define CLUSTER "setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100", "setting.dp=8", "setting.global_batch=64"

static pc_run_spec spec_with(const char *const *sets, int count) {
    pc_scenario *scenario = load_with(NULL, sets, count);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_scenario_free(scenario);
    return spec;
}

#define SPEC_WITH(...)                                                                                                 \
    spec_with((const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static void test_files_of_the_library(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = pc_library_files(PC_LIBRARY_SOFTWARE, &count);
    assert_true(count >= 6);
    for (int i = 0; i < count; i++) {
        char title[PC_TITLE_SIZE], set[128];
        pc_error error = {0};
        if (pc_library_load_software(files[i].name, title, &error)) fail_msg("%s", error.message);
        assert_true(title[0] && strstr(files[i].text, "\nsource: "));
        snprintf(set, sizeof set, "setting.software=%s", files[i].name);
        pc_run_spec spec = SPEC_WITH(CLUSTER, set);
        assert_true(spec.is_cluster);
        pc_run_spec_free(&spec);
    }
}

/* mosaic: the first FlashAttention, at 0.4 of an A100's rate and not 0.6; kernels that are not fused; a fused loss. */
static void test_sets_what_is_not_given(void **state) {
    (void)state;
    pc_run_spec spec = SPEC_WITH(CLUSTER, "setting.software=mosaic");
    assert_true(spec.iteration.machine.gpu.attention_efficiency == 0.4 && spec.iteration.machine.gpu.unfused == 1.5);
    assert_int_equal(spec.iteration.cut.cross_entropy, PC_CROSS_ENTROPY_FUSED);
    assert_true(spec.iteration.overlap_slowdown == 0.3);
    assert_int_equal(spec.iteration.overhead_ps, INT64_C(40000000000));
    pc_run_spec_free(&spec);
}

/* InternEvo gives whole tensors to ranks with ZeRO 1, and cuts them as FSDP does. */
static void test_sets_what_has_meaning(void **state) {
    (void)state;
    pc_run_spec one = SPEC_WITH(CLUSTER, "setting.software=internevo");
    pc_run_spec three = SPEC_WITH(CLUSTER, "setting.software=internevo", "setting.zero=3");
    pc_run_spec other = SPEC_WITH(CLUSTER, "setting.software=internevo", "setting.zero_partition=even");
    assert_int_equal(one.iteration.cut.zero_partition, PC_ZERO_PARTITION_TENSOR);
    assert_int_equal(three.iteration.cut.zero_partition, PC_ZERO_PARTITION_EVEN);
    assert_int_equal(other.iteration.cut.zero_partition, PC_ZERO_PARTITION_EVEN);
    pc_run_spec_free(&one);
    pc_run_spec_free(&three);
    pc_run_spec_free(&other);
}

static void test_gives_way(void **state) {
    (void)state;
    pc_run_spec spec = SPEC_WITH(CLUSTER, "setting.software=mosaic", "setting.attention_kernel=flash-2",
                                 "setting.unfused=1.25", "setting.overlap.slowdown=0", "setting.launch=8 us",
                                 "setting.cross_entropy=plain", "setting.overhead=0 s");
    assert_int_equal(spec.iteration.overhead_ps, 0);
    assert_true(spec.iteration.machine.gpu.attention_efficiency == 0.6 && spec.iteration.machine.gpu.unfused == 1.25);
    assert_int_equal(spec.iteration.cut.cross_entropy, PC_CROSS_ENTROPY_PLAIN);
    assert_true(spec.iteration.overlap_slowdown == 0 && spec.iteration.machine.gpu.launch_s == 8e-6);
    pc_run_spec_free(&spec);
}

/* What a profile may have measured itself: whoever opens it learns what the machine's file says, and what the scenario
 * says of it and not its software alone. */
static void test_beside_a_profile(void **state) {
    (void)state;
    pc_run_spec spec = SPEC_WITH(CLUSTER, "setting.software=mosaic", "setting.profile=own.h5");
    assert_true(spec.iteration.machine.gpu.attention_efficiency == 0.4 && spec.iteration.machine.gpu.unfused == 1.5);
    assert_true(spec.beside_profile.own.attention_efficiency == 0.6 && spec.beside_profile.own.unfused == 0);
    assert_null(spec.beside_profile.said);
    pc_run_spec_free(&spec);
    spec = SPEC_WITH(CLUSTER, "setting.software=mosaic", "setting.profile=own.h5", "setting.unfused=2");
    assert_true(spec.iteration.machine.gpu.unfused == 2);
    assert_string_equal(spec.beside_profile.said, "unfused");
    pc_run_spec_free(&spec);
}

/* Without a software all is as the machine's file has it. */
static void test_without(void **state) {
    (void)state;
    pc_library_machine dgx;
    assert_int_equal(pc_library_load_machine("dgx-a100", &dgx, NULL), PC_OK);
    pc_run_spec spec = SPEC_WITH(CLUSTER);
    assert_memory_equal(&spec.iteration.machine.gpu, &dgx.machine.gpu, sizeof dgx.machine.gpu);
    assert_true(spec.iteration.overlap_slowdown == 0);
    pc_run_spec_free(&spec);
}

/* A sweep of programs: the names of runs tell them apart. */
static void test_is_swept(void **state) {
    (void)state;
    static const char *const sets[] = {CLUSTER, "sweep.software=[nemo, mosaic]"};
    pc_scenario *scenario = load_with(NULL, sets, 5);
    assert_int_equal(pc_scenario_run_count(scenario), 2);
    pc_run_labels first = labels_of(scenario, 0), second = labels_of(scenario, 1);
    assert_non_null(strstr(first.name, ".nemo"));
    assert_non_null(strstr(second.name, ".mosaic"));
    pc_scenario_free(scenario);
}

#define ASSERT_REFUSED(start, ...)                                                                                     \
    assert_starts(                                                                                                     \
        message_of(NULL, (const char *const[]){__VA_ARGS__}, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),  \
        start)

static void test_refusals(void **state) {
    (void)state;
    ASSERT_REFUSED("--set setting.software=mosiac: setting.software: mosiac: no such software in the library (did you "
                   "mean mosaic?); expected one "
                   "of `pipecast list software`, or a file such as ./own.yaml",
                   CLUSTER, "setting.software=mosiac");
    ASSERT_REFUSED("--set setting.attention_kernel=flash-3: setting.attention_kernel: flash-3: how fast it is on "
                   "a100-sxm-80gb is not known; expected best",
                   CLUSTER, "setting.attention_kernel=flash-3");
    ASSERT_REFUSED("--set setting.software=torchtitan-compiled: setting.software: flash-2: how fast it is on mi300x is "
                   "not known",
                   CLUSTER, "setting.machine=mi300x", "setting.software=torchtitan-compiled");
    ASSERT_REFUSED("--set setting.unfused=0.5: setting.unfused: 0.5", CLUSTER, "setting.unfused=0.5");
}

/* What a program does not decide, it does not say. */
static void test_own_file(void **state) {
    (void)state;
    char set[PATH_SIZE + 32], text[] = "software: own\nlaunch: 12 us\n", bad[] = "software: own\ntp: 8\n";
    snprintf(set, sizeof set, "setting.software=%s", temporary);
    write_temporary(text, sizeof text - 1);
    pc_run_spec spec = SPEC_WITH(CLUSTER, set);
    assert_true(spec.iteration.machine.gpu.launch_s == 12e-6);
    pc_run_spec_free(&spec);
    write_temporary(bad, sizeof bad - 1);
    static const char *const sets_of[] = {CLUSTER};
    const char *sets[] = {sets_of[0], sets_of[1], sets_of[2], sets_of[3], set};
    assert_non_null(strstr(message_of(NULL, sets, 5), "tp"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_the_library),
        cmocka_unit_test(test_sets_what_is_not_given),
        cmocka_unit_test(test_sets_what_has_meaning),
        cmocka_unit_test(test_gives_way),
        cmocka_unit_test(test_beside_a_profile),
        cmocka_unit_test(test_without),
        cmocka_unit_test(test_is_swept),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_own_file),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
