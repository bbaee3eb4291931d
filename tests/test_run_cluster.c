/* Runs on a cluster: the row says what iteration.h's iteration is, no more and no less. */
#include "engine/alloc.h"
#include "models/workload/layout.h"
#include "results/row.h"
#include "tests/scenario_files.h"

#include <math.h>

static const double GIB = 1073741824.0;

/* The run of GPT-3 2.7B on DGX A100 with these further sets. */
static pc_run_spec make_labelled(const char *const *more, int count, pc_run_labels *labels) {
    const char *sets[16] = {"setting.model.from=gpt3-2.7b", "setting.machine=dgx-a100", "setting.tp=2", "setting.pp=4",
                            "setting.gpus=32"};
    for (int i = 0; i < count; i++) sets[5 + i] = more[i];
    pc_scenario *scenario = load_with(NULL, sets, 5 + count);
    pc_run_spec spec = spec_of(scenario, 0);
    *labels = labels_of(scenario, 0);
    pc_scenario_free(scenario);
    return spec;
}

static pc_run_spec make_spec(const char *const *more, int count) {
    pc_run_labels labels;
    return make_labelled(more, count, &labels);
}

static int64_t most(const pc_iteration *iteration, size_t place) {
    int64_t most = 0;
    for (int d = 0; d < iteration->devices; d++) {
        int64_t bytes;
        memcpy(&bytes, (const char *)&iteration->memory[d] + place, sizeof bytes);
        if (bytes > most) most = bytes;
    }
    return most;
}

/* The columns that follow from others by definition. */
static void check_definitions(const pc_run_row *row, const pc_run_spec *spec) {
    double batch = 512;
    assert_true(fabs(row->samples_per_s_per_gpu * 32 * row->iteration_s - batch) < 1e-9 * batch);
    assert_true(fabs(row->tokens_per_s_per_gpu - 2048 * row->samples_per_s_per_gpu) < 1e-9 * row->tokens_per_s_per_gpu);
    assert_true(row->peak_tflops == spec->iteration.machine.gpu.matrix_flops_per_s / 1e12);
    assert_true(fabs(row->mfu * row->peak_tflops - row->tflops_per_gpu) < 1e-9 * row->tflops_per_gpu);
    assert_true(fabs(row->hfu * row->peak_tflops - row->hardware_tflops_per_gpu) < 1e-9 * row->tflops_per_gpu);
    assert_int_equal(row->gpus, 32);
    assert_true(row->tp == 2 && row->pp == 4 && row->dp == 4 && row->virtual_pp == 1 && row->microbatches == 128);
    assert_int_equal(row->global_batch, 512);
    assert_true(row->zero == 1 && row->sequence_parallel == 1);
    assert_string_equal(row->recompute, "none");
    assert_string_equal(row->model, "gpt3-2.7b");
    assert_string_equal(row->machine, "dgx-a100");
}

static void test_row_is_the_iteration(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_detail detail;
    pc_iteration iteration;
    pc_error error = {0};
    static const char *const more[] = {"setting.trace=true", "setting.network=flows"};
    pc_run_labels labels;
    pc_run_spec spec = make_labelled(more, 2, &labels);
    if (pc_run_row_make(&spec, &labels, &row, &detail, &error)) fail_msg("%s", error.message);
    assert_int_equal(pc_iteration_run(&spec.iteration, NULL, true, &iteration, &error), PC_OK);
    assert_string_equal(row.message, "");
    assert_int_equal(row.status, PC_RUN_OK);
    assert_true(row.iteration_s == iteration.iteration_s && row.iteration_s > 0);
    assert_true(row.mfu == iteration.mfu && row.hfu == iteration.hfu && row.mfu > 0 && row.mfu < 1);
    assert_true(row.exposed_tp_s == iteration.exposed.tp && row.exposed_pp_s == iteration.exposed.pp);
    assert_true(row.exposed_dp_s == iteration.exposed.dp && row.exposed_optimizer_s == iteration.exposed.optimizer);
    assert_true(row.exposed_bubble_s == iteration.exposed.bubble);
    assert_true(row.standard_error_s == iteration.standard_error_s && row.standard_error_s > 0);
    assert_true(row.bubble_rate_span == iteration.replay.bubble_rate_span);
    assert_true(row.memory_gib_max == (double)most(&iteration, offsetof(pc_device_memory, peak_bytes)) / GIB);
    assert_true(row.parameters_gib_max == (double)most(&iteration, offsetof(pc_device_memory, parameters)) / GIB);
    assert_true(row.gradients_gib_max == (double)most(&iteration, offsetof(pc_device_memory, gradients)) / GIB);
    assert_true(row.optimizer_gib_max == (double)most(&iteration, offsetof(pc_device_memory, optimizer)) / GIB);
    assert_true(row.buffers_gib_max == (double)most(&iteration, offsetof(pc_device_memory, buffers)) / GIB);
    assert_int_equal(row.trace_hash, iteration.replay.trace_hash);
    assert_true(row.cp == 1 && row.exposed_cp_s == 0 && row.sent_cp_gib == 0);
    assert_true(row.sent_tp_gib == iteration.sent.tp_bytes / GIB && row.sent_tp_gib > 0);
    assert_true(row.sent_pp_gib == iteration.sent.pp_bytes / GIB && row.sent_pp_gib > 0);
    assert_true(row.sent_dp_gib == iteration.sent.dp_bytes / GIB && row.sent_dp_gib > 0);
    assert_true(row.link_utilisation_max == iteration.link_utilisation_max && row.link_utilisation_max > 0);
    check_definitions(&row, &spec);
    assert_int_equal(detail.devices, 4);
    assert_memory_equal(detail.memory, iteration.memory, 4 * sizeof *detail.memory);
    assert_int_equal(detail.replay.trace.pass_count, 4 * 128 * 2);
    pc_iteration_free(&iteration);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
}

static void test_out_of_memory(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_detail detail;
    static const char *const more[] = {"setting.memory=3 GiB"};
    pc_run_spec spec = make_spec(more, 1);
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_OK);
    assert_int_equal(row.status, PC_RUN_OUT_OF_MEMORY);
    assert_non_null(strstr(row.message, "stage "));
    assert_non_null(strstr(row.message, "of 3 GiB"));
    assert_true(isnan(row.iteration_s) && isnan(row.mfu) && isnan(row.exposed_tp_s) && isnan(row.exposed_bubble_s));
    assert_int_equal(row.dp, 4);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
}

static void assert_infeasible(const char *const *more, int count, const char *rule) {
    pc_run_row row;
    pc_run_detail detail;
    pc_run_spec spec = make_spec(more, count);
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_OK);
    assert_int_equal(row.status, PC_RUN_INFEASIBLE);
    if (!strstr(row.message, rule)) fail_msg("%s\nhas no %s", row.message, rule);
    assert_true(isnan(row.iteration_s) && isnan(row.mfu) && isnan(row.memory_gib_max));
    assert_true(row.peak_tflops == 312);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
}

/* The message names the rule, whoever finds it: the loader, the cut, the machine, the schedule. */
static void test_infeasible(void **state) {
    (void)state;
    static const char *const batch[] = {"setting.microbatch_size=3", "sweep.zero=[0, 1]"};
    static const char *const heads[] = {"setting.tp=3", "setting.gpus=96", "setting.global_batch=64"};
    static const char *const layers[] = {"setting.pp=5", "setting.gpus=40"};
    static const char *const gpus[] = {"setting.machine=a100-roce-5-nodes", "setting.gpus=64"};
    /* More sequences than an int64 counts: none, and no overflow. */
    static const char *const sequences[] = {"setting.tp=1", "setting.pp=1", "setting.gpus=2147483647",
                                            "setting.microbatches=16777216", "setting.microbatch_size=2147483647"};
    static const char *const overhead[] = {"setting.overhead=2000 h"}; /* 83 days */
    assert_infeasible(overhead, 1, "expected one under 26 days");
    assert_infeasible(sequences, 5, "expected up to 2^40 tokens");
    assert_infeasible(batch, 2, "expected a multiple of microbatch_size x dp = 12");
    assert_infeasible(heads, 3, "heads");
    assert_infeasible(layers, 2, "layers");
    assert_infeasible(gpus, 2, "64 GPUs");
}

/* Every refused allocation is an error, and nothing is lost. */
static void test_no_memory(void **state) {
    (void)state;
    static const char *const more[] = {"setting.trace=true", "setting.microbatches=8"};
    pc_run_spec spec = make_spec(more, 2);
    for (long after = 0;; after++) {
        pc_run_row row;
        pc_run_detail detail;
        long asked = pc_alloc_count();
        pc_alloc_fail_after(after);
        pc_code code = pc_run_row_make(&spec, NULL, &row, &detail, NULL);
        pc_alloc_fail_after(-1);
        pc_run_detail_free(&detail);
        if (pc_alloc_count() - asked <= after) {
            assert_int_equal(code, PC_OK);
            assert_true(after > 3);
            break;
        }
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
    }
    pc_run_spec_free(&spec);
}

/* A column says how layers lie: the word, or the list, as a layout can be read. */
static void test_layout(void **state) {
    (void)state;
    char parts[2][320];
    for (int i = 0; i < 2; i++) {
        int used = snprintf(parts[i], sizeof parts[i], "setting.model.layout='");
        for (int k = 0; k < 64 << i; k++) used += snprintf(parts[i] + used, 3, "%d,", k < 32);
        parts[i][used - 1] = '\'';
    }
    const struct {
        const char *sets[3], *layout; /* NULL: a list that begins with 32 ones */
    } cases[] = {{{"setting.trace=false"}, "even"},
                 {{"setting.model.layout=own"}, "own"},
                 {{"setting.model.layout='8,7,8,9'"}, "8,7,8,9"},
                 {{"setting.model.layout='7,9,8,8'"}, ""}, /* made infeasible: a list may then be of any length */
                 {{parts[0], "setting.schedule=1f1b-interleaved", "setting.chunks=16"}, NULL},
                 {{parts[1], "setting.schedule=1f1b-interleaved", "setting.chunks=32"}, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_run_row row;
        pc_run_detail detail = {.devices = 0};
        pc_error error = {0};
        int32_t layers[PC_PARTS_MAX];
        pc_layout_shape shape = {.parts = 0};
        pc_run_spec spec = make_spec(cases[i].sets, cases[i].sets[1] ? 3 : 1);
        bool is_infeasible = cases[i].layout && !cases[i].layout[0];
        if (is_infeasible) snprintf(spec.infeasible, sizeof spec.infeasible, "a rule");
        if (pc_run_row_make(&spec, NULL, &row, &detail, &error)) fail_msg("%s", error.message);
        if (cases[i].layout) assert_string_equal(row.layout, cases[i].layout);
        if (!cases[i].layout) assert_int_equal(pc_layout_parse(row.layout, layers, &shape, NULL), PC_OK);
        if (!cases[i].layout) assert_int_equal(shape.parts, 4 * spec.chunks);
        for (int k = 0; k < shape.parts; k++) assert_int_equal(layers[k], k < 32);
        pc_run_detail_free(&detail);
        pc_run_spec_free(&spec);
    }
}

static pc_run_row row_of(const char *const *sets, int count) {
    pc_run_row row;
    pc_run_detail detail;
    pc_error error = {0};
    pc_run_spec spec = make_spec(sets, count);
    if (pc_run_row_make(&spec, NULL, &row, &detail, &error)) fail_msg("%s", error.message);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    return row;
}

static void assert_close(double one, double other) {
    if (!(fabs(one - other) <= 1e-12 * fabs(other))) fail_msg("%.17g, expected %.17g", one, other);
}

/* A training of 300 * 10^9 tokens in iterations of 512 x 2048 = 2^20 takes 3e11 / 2^20 of them. Each takes the
 * iteration's time; where there are samples, their mean; of a job, what an undisturbed one takes over the goodput. 32
 * GPUs at 2 an hour cost 32 * 24 * 2 a day. */
static void test_training(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.tokens=300B",       "setting.price=2/h",
                                       "setting.samples=20",        "setting.jitter=0.05",
                                       "setting.job.mtbf=1 y",      "setting.job.checkpoint=1 min",
                                       "setting.job.restart=5 min", "setting.job.repair=1 h"};
    const double iterations = 3e11 / 1048576;
    pc_run_row row = row_of(sets, 2);
    assert_close(row.training_days, iterations * row.iteration_s / 86400);
    assert_close(row.training_days, 3e11 / (32 * row.tokens_per_s_per_gpu) / 86400);
    assert_close(row.training_gpu_hours, row.training_days * 32 * 24);
    assert_close(row.training_cost, row.training_gpu_hours * 2);
    assert_close(row.training_mwh, row.training_gpu_hours * 400 / 1e6); /* the board of an A100 */
    row = row_of(sets, 4);
    assert_true(row.iteration_mean_s > row.iteration_s);
    assert_close(row.training_days, iterations * row.iteration_mean_s / 86400);
    row = row_of(sets, 8);
    assert_true(row.goodput_mean > 0.5 && row.goodput_mean < 1);
    assert_close(row.training_days, iterations * row.iteration_good_s / row.goodput_mean / 86400);
    row = row_of(sets, 1);
    assert_true(row.training_days > 0 && isnan(row.training_cost));
    row = row_of(sets + 1, 1);
    assert_true(isnan(row.training_days) && isnan(row.training_cost));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_row_is_the_iteration),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_infeasible),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
