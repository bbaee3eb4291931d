/* Which kernels answer a run: those of the library that the machine's GPU names, a profile that the scenario names, or
 * the roofline; what a GPU's file says of it. */
#include "models/training/run.h"
#include "models/workload/format.h"
#include "scenarios/library.h"
#include "scenarios/run_key.h"
#include "sweep/run_profiles.h"
#include "tests/scenario_files.h"

#include <unistd.h>

#define MODEL "setting.model.from=gpt3-1.3b", "setting.dp=8", "setting.global_batch=64"
#define B200  MODEL, "setting.machine=dgx-b200"
#define H100  MODEL, "setting.machine=dgx-h100"

static pc_run_spec spec_with(const char *const *sets, int count, pc_run_labels *labels) {
    pc_scenario *scenario = load_with(NULL, sets, count);
    pc_run_spec spec = spec_of(scenario, 0);
    *labels = labels_of(scenario, 0);
    pc_scenario_free(scenario);
    return spec;
}

#define COUNT(...)             (sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))
#define SPEC_WITH(labels, ...) spec_with((const char *const[]){__VA_ARGS__}, COUNT(__VA_ARGS__), labels)
#define MESSAGE_WITH(...)      message_of(NULL, (const char *const[]){__VA_ARGS__}, COUNT(__VA_ARGS__))

/* ---- which ---- */

static void a_gpu_with_kernels_answers_by_them(void **state) {
    (void)state;
    pc_run_labels labels;
    pc_run_spec spec = SPEC_WITH(&labels, B200);
    assert_string_equal(spec.shipped_profile, "b200");
    assert_string_equal(labels.profile, "b200");
    assert_null(spec.profile_path);
    assert_int_equal(spec.iteration.machine.gpu.kernels_for, PC_KERNELS_FOR_ALL);
    assert_int_equal(spec.iteration.machine.gpu.basis, PC_GPU_MEASURED);
    pc_run_spec_free(&spec);
}

static void none_is_the_roofline(void **state) {
    (void)state;
    pc_run_labels labels;
    pc_run_spec spec = SPEC_WITH(&labels, B200, "setting.profile=none");
    assert_true(!spec.shipped_profile && !spec.profile_path && labels.profile[0] == '\0');
    pc_run_spec_free(&spec);
}

/* Its roofline is fitted to runs: kernels answer formats that no run was fitted to. */
static void an_h100_in_16_bits_has_its_roofline(void **state) {
    (void)state;
    pc_run_labels labels;
    pc_run_spec spec = SPEC_WITH(&labels, H100), without = SPEC_WITH(&labels, H100, "setting.profile=none");
    pc_run_spec low = SPEC_WITH(&labels, H100, "setting.model.precision=fp8-delayed");
    pc_run_key key = pc_run_key_of(&spec), key_without = pc_run_key_of(&without);
    int32_t low_bits = low.iteration.machine.gpu.kernels_for;
    assert_null(spec.shipped_profile);
    assert_memory_equal(&key, &key_without, sizeof key);
    assert_string_equal(low.shipped_profile, "h100-sxm");
    assert_true(low_bits & 1 << PC_PRODUCT_FP8 && !(low_bits & 1 << PC_PRODUCT_BF16));
    assert_true(!(low_bits & PC_KERNELS_FOR_TRANSFERS) && !(low_bits & PC_KERNELS_FOR_ATTENTION));
    pc_run_spec_free(&spec);
    pc_run_spec_free(&without);
    pc_run_spec_free(&low);
}

static void one_by_name_answers_all(void **state) {
    (void)state;
    pc_run_labels labels;
    pc_run_spec spec = SPEC_WITH(&labels, H100, "setting.profile=h100-sxm");
    assert_string_equal(spec.shipped_profile, "h100-sxm");
    assert_int_equal(spec.iteration.machine.gpu.kernels_for, PC_KERNELS_FOR_ALL);
    pc_run_spec_free(&spec);
    assert_non_null(strstr(MESSAGE_WITH(H100, "setting.profile=b200"),
                           "b200 has the kernels of another GPU than the machine's, h100-sxm; expected h100-sxm"));
}

/* Measured attention is the best that there is. */
static void other_attention_is_the_rooflines(void **state) {
    (void)state;
    pc_run_labels labels;
    pc_run_spec spec = SPEC_WITH(&labels, MODEL, "setting.machine=hgx-h200", "setting.attention_kernel=flash-2");
    assert_string_equal(spec.shipped_profile, "h200-sxm");
    assert_int_equal(spec.iteration.machine.gpu.kernels_for, PC_KERNELS_FOR_ALL & ~PC_KERNELS_FOR_ATTENTION);
    pc_run_spec_free(&spec);
}

/* ---- what it does to a run ---- */

static void run_spec(pc_run_spec *spec, pc_run_profiles *opened, pc_run_result *result) {
    pc_error error = {0};
    pc_run_detail detail = {.devices = 0};
    if (pc_run_profiles_open(opened, spec, &error)) fail_msg("%s", error.message);
    pc_run_profiles_use(opened, spec);
    assert_int_equal(pc_run(spec, result, &detail, &error), PC_OK);
    pc_run_detail_free(&detail);
}

/* Without profile the same as ever: no cost, no hash. With one it has both, and another time; what the machine's file
 * and the setting say of host and memory stays. */
static void kernels_change_times_and_nothing_else(void **state) {
    (void)state;
    pc_run_labels labels;
    pc_run_profiles opened = {0};
    pc_run_result with_result, without_result;
    pc_run_spec with = SPEC_WITH(&labels, B200), without = SPEC_WITH(&labels, B200, "setting.profile=none");
    run_spec(&with, &opened, &with_result);
    run_spec(&without, &opened, &without_result);
    assert_int_equal(opened.profile_count, 1);
    assert_true(without.cost == NULL && without.profile_hash == 0);
    assert_true(with.cost != NULL && with.profile_hash != 0 && !with.has_kernels);
    assert_true(with_result.iteration_s > 0.0 && with_result.iteration_s != without_result.iteration_s);
    assert_true(with_result.memory_bytes == without_result.memory_bytes);
    assert_true(with.iteration.machine.gpu.launch_s == without.iteration.machine.gpu.launch_s);
    pc_run_profiles_close(&opened);
    pc_run_spec_free(&with);
    pc_run_spec_free(&without);
}

/* ---- files ---- */

/* Two machines that differ in one number of the GPU's profile: whoever says that number means it. */
static void a_machine_that_departs_has_no_kernels(void **state) {
    (void)state;
    static const char scenario[] = "scenario: x\nsetting: {model: {from: gpt3-1.3b}, machine: ./%s}\n";
    char path[PATH_SIZE], text[2 * PATH_SIZE];
    snprintf(path, sizeof path, "%s.yaml", temporary);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("machine: own\nfrom: dgx-b200\nprofile: {gemm_efficiency: 0.5}\n", file);
    fclose(file);
    snprintf(text, sizeof text, scenario, strrchr(path, '/') + 1);
    pc_scenario *loaded = load_text(text);
    pc_run_spec spec = spec_of(loaded, 0);
    assert_null(spec.shipped_profile);
    assert_int_equal(spec.iteration.machine.gpu.basis, PC_GPU_DATASHEET);
    pc_run_spec_free(&spec);
    pc_scenario_free(loaded);
    unlink(path);
}

static void a_gpu_file_that_is_wrong_says_where(void **state) {
    (void)state;
    static const struct {
        const char *lines, *message;
    } cases[] = {
        {"kernels: mine\n", "kernels: mine: no profile of the library; expected one that `pipecast list profiles`"},
        {"kernels: b200\nkernels_for: [bf8]\n", "kernels_for[0]: bf8: nothing that kernels answer; expected bf16"},
        {"kernels_for: [bf16]\n", "kernels_for: stands without kernels; expected the profile"},
        {"kernels: b200\nkernels_for: bf16\n", "kernels_for: "},
        {"basis: hearsay\n", "basis: hearsay: no basis; expected measured-kernels, fitted-to-runs or datasheet"},
        {"basis_date: yesterday\n", "basis_date: yesterday: no date; expected a day as 2026-11-23"},
        {"basis_date: 2026-13-01\n", "basis_date: 2026-13-01: no date"},
        {"basis_date: 2026-12-011\n", "basis_date: 2026-12-011: no date"},
        {"basis_date: 2026-02-30\n", "basis_date: 2026-02-30: no date"},
        {"basis_date: '+026-12-01'\n", "basis_date: +026-12-01: no date"},
    };
    static const char *const gpu = "gpu: own\nmatrix: 1 TFLOP/s\nvector: 1 TFLOP/s\nmemory_bandwidth: 1 GB/s\n"
                                   "memory: 1 GiB\nl2: 1 MiB\nprocessors: 1\n%s"
                                   "profile: {tile: 128x256, gemm_efficiency: 1, gemm_ramp_k: 1, "
                                   "attention_efficiency: 1, attention_backward: 1, memory_efficiency: 1, "
                                   "kernel: 1 us, launch: 1 us, estimated_error: 0}\n";
    char path[PATH_SIZE], set[2 * PATH_SIZE], text[4096];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(path, sizeof path, "%s.yaml", temporary);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        snprintf(text, sizeof text, gpu, cases[i].lines);
        fputs(text, file);
        fclose(file);
        snprintf(set, sizeof set, "setting.bad_days.other_gpu=%s", path);
        const char *message = MESSAGE_WITH(B200, "setting.samples=10", "setting.bad_days.other_nodes=1", set);
        if (!strstr(message, cases[i].message)) fail_msg("case %zu: %s", i, message);
        unlink(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_with_kernels_answers_by_them),
        cmocka_unit_test(none_is_the_roofline),
        cmocka_unit_test(an_h100_in_16_bits_has_its_roofline),
        cmocka_unit_test(one_by_name_answers_all),
        cmocka_unit_test(other_attention_is_the_rooflines),
        cmocka_unit_test(kernels_change_times_and_nothing_else),
        cmocka_unit_test(a_machine_that_departs_has_no_kernels),
        cmocka_unit_test(a_gpu_file_that_is_wrong_says_where),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
