/* What scenarios say of bad days and of jobs. */
#include "tests/scenario_files.h"

#include <string.h>

/* Every key of bad days and of jobs, where the spec has it. */
static void test_bad_days(void **state) {
    (void)state;
    static const char text[] =
        "scenario: x\n"
        "setting:\n"
        "  model: {from: gpt3-1.3b}\n"
        "  machine: dgx-a100\n"
        "  gpus: 32\n"
        "  pp: 4\n"
        "  microbatches: 8\n"
        "  samples: 7\n"
        "  jitter: 0.25\n"
        "  seed: 3\n"
        "  bad_days: {gpu_jitter: 0.5, link_jitter: 0.125, slow_gpus: 2, slow_factor: 1.5, slow_stage: 0, bad_links: "
        "3,\n"
        "             bad_factor: 0.75, other_gpu: dgx-h100, other_nodes: 1}\n"
        "  job: {mtbf: 2 years, checkpoint: 30 s, interval: 1 h, restart: 5 min, repair: 3 days, spare_nodes: 4}\n";
    write_temporary(text, strlen(text));
    pc_scenario *scenario = load_with(temporary, NULL, 0);
    pc_run_spec spec = spec_of(scenario, 0);
    const pc_bad_days *x = &spec.iteration.bad_days;
    assert_true(x->samples == 7 && spec.iteration.jitter == 0.25 && !spec.has_profile_jitter);
    assert_true(x->gpu_jitter == 0.5 && x->link_jitter == 0.125);
    assert_true(x->slow_gpus == 2 && x->slow_factor == 1.5 && x->has_slow_stage && x->slow_stage == 0);
    assert_true(x->bad_links == 3 && x->bad_factor == 0.75 && x->other_nodes == 1);
    assert_string_equal(x->other_gpu.name, "h100-sxm");
    assert_true(x->mtbf_s == 2 * 31557600.0 && x->checkpoint_s == 30 && x->interval_s == 3600 && x->restart_s == 300);
    assert_true(x->repair_s == 3 * 86400 && x->spare_nodes == 4 && x->horizon_s == 30 * 86400);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* The profile's own jitter is nobody's number; and without samples there are no bad days. */
static void test_jitter_of_the_profile(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100",
                                       "setting.profile=x.h5", "setting.jitter=profile", "setting.samples=5"};
    pc_scenario *scenario = load_with(NULL, sets, 5);
    pc_run_spec spec = spec_of(scenario, 0);
    assert_true(spec.has_profile_jitter && spec.iteration.jitter == 0 && spec.iteration.bad_days.samples == 5);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    scenario = load_with(NULL, sets, 2);
    spec = spec_of(scenario, 0);
    assert_true(!spec.has_profile_jitter && spec.iteration.bad_days.samples == 0);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_days),
        cmocka_unit_test(test_jitter_of_the_profile),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
