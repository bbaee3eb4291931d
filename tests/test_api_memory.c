/* The library where memory is short: every allocation refused once, one after the other. Nothing leaks (the sanitizers
 * look), nothing is handed over, and the call says so. Linked with the library's inside, which knows how to refuse. */
#include "api/pipecast.h"
#include "tests/folder.h"
#include "tests/refusals.h"
#include "tests/support.h"

static const char text[] =
    "scenario: short\n"
    "setting: {schedule: 1f1b, devices: 2, microbatches: 2, times: {F: 1 ms, BW: 2 ms}, trace: true}\n";

static void test_scenario(void **state) {
    (void)state;
    for (refusals x = {0}; next_refusal(&x);) {
        pipecast_scenario *scenario = NULL;
        pipecast_error error = {0};
        x.code = (pc_code)pipecast_scenario_load(NULL, text, NULL, 0, 0, &scenario, &error);
        assert_int_equal(scenario != NULL, x.code == PC_OK);
        assert_int_equal(error.code, (int)x.code);
        pipecast_scenario_free(scenario);
    }
}

static void test_import(void **state) {
    const folder *at = *state;
    FILE *file = fopen(at->file, "wb");
    assert_non_null(file);
    fputs("--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --vocab-size 512 --of-old 3",
          file);
    assert_int_equal(fclose(file), 0);
    for (refusals x = {0}; next_refusal(&x);) {
        pipecast_imported *imported = NULL;
        x.code = (pc_code)pipecast_import_file("megatron", at->file, NULL, NULL, &imported, NULL);
        assert_int_equal(imported != NULL, x.code == PC_OK);
        if (imported) assert_non_null(strstr(pipecast_imported_text(imported), "layers: 8"));
        pipecast_imported_free(imported);
    }
}

static int run(const pipecast_scenario *scenario, pipecast_results **results, pipecast_replay **replay) {
    pipecast_sweep *sweep = NULL;
    int code = pipecast_sweep_create(&scenario, 1, &sweep, NULL);
    if (!code) code = pipecast_sweep_set_output(sweep, "unused", 0, NULL);
    if (!code) code = pipecast_sweep_set_output(sweep, NULL, 0, NULL);
    if (!code) code = pipecast_sweep_set_threads(sweep, 1, NULL);
    if (!code) code = pipecast_sweep_run(sweep, results, NULL);
    if (!code) code = pipecast_results_replay(*results, 0, replay, NULL);
    pipecast_sweep_free(sweep);
    return code;
}

static void test_sweep(void **state) {
    (void)state;
    pipecast_scenario *scenario = NULL;
    assert_int_equal(pipecast_scenario_load(NULL, text, NULL, 0, 0, &scenario, NULL), PIPECAST_OK);
    for (refusals x = {0}; next_refusal(&x);) {
        pipecast_results *results = NULL;
        pipecast_replay *replay = NULL;
        x.code = (pc_code)run(scenario, &results, &replay);
        assert_int_equal(replay != NULL, x.code == PC_OK);
        pipecast_replay_free(replay);
        pipecast_results_free(results);
    }
    pipecast_scenario_free(scenario);
}

static int judge(pipecast_replay **replay) {
    static const int64_t count[] = {2}, kind[] = {PIPECAST_PASS_F, PIPECAST_PASS_BW}, zero[] = {0, 0};
    static const double limit[] = {2, 2};
    pipecast_schedule *schedule = NULL, *own = NULL;
    int code = pipecast_schedule_generate("1f1b", 2, 4, 0, NULL, limit, NULL, &schedule, NULL);
    if (!code) code = pipecast_schedule_check(schedule, NULL);
    if (!code) code = pipecast_schedule_replay(schedule, NULL, replay, NULL);
    if (!code) code = pipecast_schedule_create("own", 1, 1, 1, PIPECAST_LINEAR, count, kind, zero, zero, &own, NULL);
    pipecast_schedule_free(own);
    pipecast_schedule_free(schedule);
    return code;
}

static void test_schedule(void **state) {
    (void)state;
    for (refusals x = {0}; next_refusal(&x);) {
        pipecast_replay *replay = NULL;
        x.code = (pc_code)judge(&replay);
        pipecast_replay_free(replay);
    }
}

static void test_made_schedule(void **state) {
    (void)state;
    static const char *const options[] = {"devices=2", "microbatches=4", "times=1,2,1/2,1,1", "memory_limit=2,2",
                                          "improve=true"};
    for (refusals x = {.most = 100000}; next_refusal(&x);) {
        pipecast_schedule *schedule = NULL;
        const char *said = NULL;
        x.code = (pc_code)pipecast_schedule_make("1f1b", options, 5, &schedule, NULL);
        assert_int_equal(schedule != NULL, x.code == PC_OK);
        if (schedule) x.code = (pc_code)pipecast_schedule_report(schedule, "json", &said, NULL);
        assert_int_equal(said != NULL, x.code == PC_OK);
        pipecast_schedule_free(schedule);
    }
}

static int search(const pipecast_plan *plan, pipecast_results **plans) {
    return pipecast_plan_run((pipecast_plan *)plan, 1, 0, NULL, NULL, plans, NULL);
}

static void test_plan(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.model.from=gpt3-1.3b",
                                       "setting.machine=dgx-a100",
                                       "setting.gpus=2",
                                       "setting.global_batch=2",
                                       "plan.tp=[2]",
                                       "plan.pp=[1]",
                                       "plan.schedule=[1f1b]",
                                       "plan.microbatch_size=[1]",
                                       "plan.recompute=[none]"};
    bool asks = test_part(0, 1) > 0; /* some 10 s of it */
    for (refusals x = {.most = 10000}; next_refusal(&x);) {
        pipecast_plan *plan = NULL;
        pipecast_results *plans = NULL;
        x.code = (pc_code)pipecast_plan_load(NULL, NULL, sets, sizeof sets / sizeof *sets, 0, &plan, NULL);
        if (!x.code) x.code = (pc_code)search(plan, &plans);
        assert_int_equal(plans != NULL, x.code == PC_OK);
        pipecast_results *cells = NULL, *changes = NULL, *mixed = NULL;
        if (!x.code && asks) x.code = (pc_code)pipecast_plan_each(plan, "tp", 1, NULL, NULL, &cells, NULL);
        if (!x.code && asks)
            x.code = (pc_code)pipecast_plan_sensitivity(plan, plans, 0, 1, 0, NULL, NULL, &changes, NULL);
        assert_int_equal(changes != NULL, x.code == PC_OK && asks);
        if (!x.code && asks) x.code = (pc_code)pipecast_plan_mix(plan, plans, "2048:1", 1, NULL, NULL, &mixed, NULL);
        assert_int_equal(mixed != NULL, x.code == PC_OK && asks);
        pipecast_results_free(mixed);
        pipecast_results_free(changes);
        pipecast_results_free(cells);
        pipecast_results_free(plans);
        pipecast_plan_free(plan);
    }
}

static void test_lists(void **state) {
    (void)state;
    for (int subject = 0; subject < 4; subject++) {
        for (refusals x = {.most = 100000}; next_refusal(&x);) {
            pipecast_results *list = NULL;
            x.code = (pc_code)pipecast_list(subject, &list, NULL);
            assert_int_equal(list != NULL, x.code == PC_OK);
            pipecast_results_free(list);
        }
    }
}

int main(void) {
    static char name[] = "train.sh";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scenario),
        cmocka_unit_test_prestate_setup_teardown(test_import, make_folder, remove_folder, name),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_made_schedule),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
