/* Which fit of others' tables answers for an operation: formats, libraries, sizes of heads, gradients of forward
 * tables, profiles of the library; and answers that several threads ask for and remember at once. */
#include "calib/profile/profile_cost.h"
#include "calib/profile/profile_index.h"
#include "calib/profile/profile_private.h"
#include "engine/alloc.h"
#include "models/cost/roofline.h"
#include "tests/profile_cost_example.h"
#include "tests/support.h"

#include <math.h>
#include <pthread.h>

static void check_close(double got, double expected, double tolerance) {
    if (!(fabs(got - expected) <= tolerance * fabs(expected))) fail_msg("%.17g instead of %.17g", got, expected);
}

/* ---- a profile by hand ---- */

static void add_fit(pc_profile *profile, pc_fit *fit) {
    fit->x = pc_alloc(1, sizeof *fit->x);
    assert_int_equal(pc_profile_add_fit(profile, fit, NULL), PC_OK);
}

/* A product of a table; the rate says which one answers. Measured from 1 x 256^3 to 4 x 8192^3. */
static int64_t add_table(pc_profile *profile, const char *dtype, const char *library, const char *site, double rate) {
    pc_fit fit = {.key = {.form = PC_FIT_GEMM, .subject = "gemm_forward"},
                  .processors = 100,
                  .parameter_count = 4,
                  .parameter = {rate, 50.0, 1e12, 2e-6},
                  .residual_deviation = 0.02,
                  .dimensions = 4,
                  .least = {1, 256, 256, 256},
                  .most = {4, 8192, 8192, 8192}};
    snprintf(fit.key.dtype, sizeof fit.key.dtype, "%s", dtype);
    snprintf(fit.key.library, sizeof fit.key.library, "%s", library);
    snprintf(fit.key.site, sizeof fit.key.site, "%s", site);
    add_fit(profile, &fit);
    return profile->fit_count - 1;
}

static pc_operation rows_of(const char *function, pc_gemm_role role, int64_t bytes) {
    return (pc_operation){.kind = PC_OPERATION_ELEMENTWISE,
                          .role = role,
                          .name = function,
                          .function = function,
                          .batch = 1,
                          .bytes = bytes,
                          .launches = 1,
                          .repeat = 1};
}

/* ---- others' tables ---- */

static double table_s(const pc_profile *profile, int64_t fit) {
    const double shape[PC_FIT_DIMENSIONS] = {1, 4096, 4096, 4096};
    return pc_fit_predict_sustained(&profile->fit[fit], shape).seconds;
}

static double asked_s(const pc_profile_cost *cost, pc_product_format format, pc_gemm_role role) {
    pc_operation x = product(role, 4096, 4096, 4096);
    x.format = format;
    return ask(cost, &x).seconds;
}

/* Each format its own; of several tables trtllm's, which has the most shapes, even before one that was measured as
 * training runs; mxfp8 as fp8; nvfp4, which was not measured, never by another. */
static void formats_ask_their_own_tables(void **state) {
    (void)state;
    pc_profile profile = {.device = {.gpu = "example"}};
    pc_machine machine = example_machine();
    add_table(&profile, "bf16", "transformer_engine", "x_training", 3e14);
    int64_t bf16 = add_table(&profile, "bf16", "trtllm", "x_sxm", 2e14);
    int64_t block = add_table(&profile, "fp8_block", "sglang", "x_sxm", 4e14);
    add_table(&profile, "fp8", "sglang", "x_sxm", 5e14);
    int64_t fp8 = add_table(&profile, "fp8", "trtllm", "x_sxm", 6e14);
    pc_profile_cost *cost = make_cost(&profile, &machine);
    pc_cost_model roofline = pc_roofline(&machine.gpu);
    pc_operation nvfp4 = product(PC_GEMM_FORWARD, 4096, 4096, 4096);
    nvfp4.format = PC_PRODUCT_NVFP4;
    assert_true(asked_s(cost, PC_PRODUCT_BF16, PC_GEMM_FORWARD) == table_s(&profile, bf16));
    assert_true(asked_s(cost, PC_PRODUCT_FP8_BLOCK, PC_GEMM_FORWARD) == table_s(&profile, block));
    assert_true(asked_s(cost, PC_PRODUCT_FP8, PC_GEMM_FORWARD) == table_s(&profile, fp8));
    assert_int_equal(count_warnings(cost), 0);
    assert_true(asked_s(cost, PC_PRODUCT_MXFP8, PC_GEMM_FORWARD) == table_s(&profile, fp8));
    check_warning(cost, "gemm_forward mxfp8: not in the profile; fp8 answers for it");
    assert_true(ask(cost, &nvfp4).seconds == roofline.kernel(roofline.self, &nvfp4).seconds);
    check_warning(cost, "the roofline of the machine's file answers: gemm_forward nvfp4");
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* Gradients that another site measured are left alone: those of the forward products' own site follow from them, or
 * are asked for where that site has them. */
static void gradients_are_of_the_forward_products_site(void **state) {
    (void)state;
    pc_profile profile = {.device = {.gpu = "example"}};
    pc_machine machine = example_machine();
    int64_t forward = add_table(&profile, "bf16", "trtllm", "x_sxm", 2e14);
    int64_t other = add_table(&profile, "bf16", "transformer_engine", "x_training", 3e14);
    snprintf(profile.fit[other].key.subject, sizeof profile.fit[other].key.subject, "gemm_input_gradient");
    pc_profile_cost *cost = make_cost(&profile, &machine);
    assert_true(asked_s(cost, PC_PRODUCT_BF16, PC_GEMM_INPUT_GRADIENT) == table_s(&profile, forward));
    pc_profile_cost_free(cost);
    snprintf(profile.fit[other].key.site, sizeof profile.fit[other].key.site, "x_sxm");
    cost = make_cost(&profile, &machine);
    assert_true(table_s(&profile, other) != table_s(&profile, forward));
    assert_true(asked_s(cost, PC_PRODUCT_BF16, PC_GEMM_INPUT_GRADIENT) == table_s(&profile, other));
    assert_int_equal(count_warnings(cost), 0);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* Of forward tables; what we measured ourselves has its own gradients, or none. */
static void gradients_follow_from_forward_tables(void **state) {
    (void)state;
    pc_profile profile = {.device = {.gpu = "example"}};
    pc_machine machine = example_machine();
    int64_t bf16 = add_table(&profile, "bf16", "trtllm", "x_sxm", 2e14);
    pc_profile_cost *cost = make_cost(&profile, &machine);
    double forward = table_s(&profile, bf16), weight = asked_s(cost, PC_PRODUCT_BF16, PC_GEMM_WEIGHT_GRADIENT);
    assert_true(asked_s(cost, PC_PRODUCT_BF16, PC_GEMM_INPUT_GRADIENT) == forward);
    assert_true(weight > forward && weight < 1.3 * forward);
    assert_int_equal(count_warnings(cost), 0);
    pc_profile_cost_free(cost);
    profile.fit[bf16].key.site[0] = '\0';
    cost = make_cost(&profile, &machine);
    asked_s(cost, PC_PRODUCT_BF16, PC_GEMM_INPUT_GRADIENT);
    check_warning(cost, "gemm_input_gradient bf16");
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

static int64_t add_flash(pc_profile *profile, const char *subject, int32_t head_dim, double rate) {
    pc_fit fit = {.key = {.form = PC_FIT_FLASH,
                          .dtype = "bf16",
                          .library = "trtllm",
                          .site = "x_sxm",
                          .is_causal = true,
                          .head_dim = head_dim},
                  .processors = 100,
                  .parameter_count = 4,
                  .parameter = {rate, 1e12, 1e12, 1e-5},
                  .residual_deviation = 0.02,
                  .dimensions = 4,
                  .least = {1, 256, 256, 1},
                  .most = {512, 8192, 8192, 8}};
    snprintf(fit.key.subject, sizeof fit.key.subject, "%s", subject);
    add_fit(profile, &fit);
    return profile->fit_count - 1;
}

/* Of the next larger size of head, in proportion; backward by its own fit, or by the forward one's. */
static void attention_asks_by_the_size_of_its_heads(void **state) {
    (void)state;
    pc_profile profile = {.device = {.gpu = "example"}};
    pc_machine machine = example_machine();
    const double shape[] = {64, 4096, 4096, 1};
    int64_t large = add_flash(&profile, "attention_forward", 128, 5e14);
    int64_t small = add_flash(&profile, "attention_forward", 64, 4e14);
    int64_t backward = add_flash(&profile, "attention_backward", 128, 3e14);
    int64_t few = add_flash(&profile, "attention_forward", 128, 9e14);
    snprintf(profile.fit[few].key.dtype, sizeof profile.fit[few].key.dtype, "fp8");
    pc_profile_cost *cost = make_cost(&profile, &machine);
    pc_operation x = product(PC_GEMM_FORWARD, 4096, 4096, 128);
    x.kind = PC_OPERATION_ATTENTION, x.batch = 64, x.is_causal = true;
    assert_true(ask(cost, &x).seconds == pc_fit_predict_sustained(&profile.fit[large], shape).seconds);
    x.k = 96;
    check_close(ask(cost, &x).seconds, 0.75 * pc_fit_predict_sustained(&profile.fit[large], shape).seconds, 1e-15);
    x.k = 64, x.role = PC_GEMM_INPUT_GRADIENT;
    assert_true(ask(cost, &x).seconds == pc_fit_predict_attention_backward(&profile.fit[small], shape).seconds);
    x.k = 128;
    assert_true(ask(cost, &x).seconds == pc_fit_predict_sustained(&profile.fit[backward], shape).seconds);
    assert_int_equal(count_warnings(cost), 0);
    x.format = PC_PRODUCT_FP8, x.role = PC_GEMM_FORWARD;
    assert_true(ask(cost, &x).seconds == pc_fit_predict_sustained(&profile.fit[few], shape).seconds);
    x.role = PC_GEMM_INPUT_GRADIENT;
    assert_true(ask(cost, &x).seconds == pc_fit_predict_attention_backward(&profile.fit[few], shape).seconds);
    x.format = PC_PRODUCT_BF16;
    x.k = 256;
    ask(cost, &x);
    check_warning(cost, "the roofline of the machine's file answers: attention_backward causal bf16");
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* A profile of the library answers what the GPU's file says; the rest is the roofline's, and there is no warning. */
static void shipped_profiles_answer_what_they_are_for(void **state) {
    (void)state;
    pc_profile profile = {.device = {.gpu = "example"}, .is_shipped = true};
    pc_machine machine = example_machine();
    int64_t bf16 = add_table(&profile, "bf16", "trtllm", "x_sxm", 2e14);
    int64_t fp8 = add_table(&profile, "fp8", "trtllm", "x_sxm", 6e14);
    const int32_t all = PC_KERNELS_FOR_ALL, low = 1 << PC_PRODUCT_FP8, none = 0;
    const int32_t answers_for[] = {all, low, none};
    pc_cost_model roofline = pc_roofline(&machine.gpu);
    pc_operation x = product(PC_GEMM_FORWARD, 4096, 4096, 4096), y = x;
    y.format = PC_PRODUCT_FP8;
    for (int i = 0; i < 3; i++) {
        machine.gpu.kernels_for = answers_for[i];
        pc_profile_cost *cost = make_cost(&profile, &machine);
        double own_x = roofline.kernel(roofline.self, &x).seconds, own_y = roofline.kernel(roofline.self, &y).seconds;
        assert_true(ask(cost, &x).seconds == (answers_for[i] == all ? table_s(&profile, bf16) : own_x));
        assert_true(ask(cost, &y).seconds == (answers_for[i] == none ? own_y : table_s(&profile, fp8)));
        pc_operation other = rows_of("gelu", PC_GEMM_FORWARD, 1 << 20);
        assert_true(ask(cost, &other).seconds == roofline.kernel(roofline.self, &other).seconds);
        x.m = y.m = 1 << 20;
        ask(cost, &x), ask(cost, &y);
        x.m = y.m = 4096;
        assert_int_equal(count_warnings(cost), 0);
        pc_profile_cost_free(cost);
    }
    pc_profile_free(&profile);
}

/* What changes the numbers' format moves bytes, in either pass, as a copy does; a cast that was measured answers for
 * itself. */
static void casts_are_copies(void **state) {
    (void)state;
    static const char *const functions[] = {"cast", "cast_transpose", "transpose", "amax", "hadamard"};
    pc_profile profile = {.device = {.gpu = "example"}};
    pc_machine machine = example_machine();
    pc_fit fit = {.key = {.form = PC_FIT_MEMORY, .subject = "copy", .dtype = "bf16"},
                  .parameter_count = 3,
                  .parameter = {2e-6, 1e12, 0.01},
                  .residual_deviation = 0.01,
                  .dimensions = 1,
                  .least = {0x1p16},
                  .most = {0x1p30}};
    pc_fit own = fit;
    snprintf(own.key.subject, sizeof own.key.subject, "cast_transpose");
    own.parameter[1] = 5e11;
    add_fit(&profile, &fit);
    pc_profile_cost *cost = make_cost(&profile, &machine);
    for (int i = 0; i < 10; i++) {
        pc_operation x = rows_of(functions[i / 2], i % 2 ? PC_GEMM_INPUT_GRADIENT : PC_GEMM_FORWARD, 1 << 24);
        check_close(ask(cost, &x).seconds, 2e-6 + 0x1p24 / 1e12, 1e-12);
    }
    assert_int_equal(count_warnings(cost), 0);
    pc_profile_cost_free(cost);
    add_fit(&profile, &own);
    cost = make_cost(&profile, &machine);
    for (int i = 0; i < 10; i++) {
        pc_operation x = rows_of(functions[i / 2], i % 2 ? PC_GEMM_INPUT_GRADIENT : PC_GEMM_FORWARD, 1 << 24);
        check_close(ask(cost, &x).seconds, 2e-6 + 0x1p24 / (i / 2 == 1 ? 5e11 : 1e12), 1e-12);
    }
    assert_int_equal(count_warnings(cost), 0);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* However many fits a family has, the next one is found. */
static void families_are_counted_once(void **state) {
    (void)state;
    pc_profile profile = {.device = {.gpu = "example"}};
    pc_machine machine = example_machine();
    pc_fit fit = {.key = {.form = PC_FIT_MEMORY, .subject = "copy", .dtype = "bf16"},
                  .parameter_count = 3,
                  .parameter = {2e-6, 1e12, 0.01},
                  .residual_deviation = 0.01,
                  .dimensions = 1,
                  .least = {0x1p16},
                  .most = {0x1p30}};
    for (int i = 0; i <= PC_INDEX_FAMILIES; i++) {
        pc_fit made = fit;
        snprintf(made.key.subject, sizeof made.key.subject, i < PC_INDEX_FAMILIES ? "copy" : "gelu_forward");
        add_fit(&profile, &made);
    }
    pc_profile_cost *cost = make_cost(&profile, &machine);
    pc_operation x = rows_of("gelu", PC_GEMM_FORWARD, 1 << 24);
    check_close(ask(cost, &x).seconds, 2e-6 + 0x1p24 / 1e12, 1e-12);
    assert_int_equal(count_warnings(cost), 0);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* ---- answers, remembered ---- */

/* More shapes than are remembered, each asked by all threads in another order: what it was kept with, or nothing. */
enum { SHAPES = 12000, THREADS = 4 };

typedef struct asker {
    pc_memo *memo;
    int64_t start, wrong, found;
} asker;

static pc_operation shape_of(int64_t i) {
    return product((pc_gemm_role)(i % 3), 1 + i, 64, 64);
}

static void *ask_and_keep(void *argument) {
    asker *a = argument;
    for (int64_t i = 0; i < 2 * SHAPES; i++) {
        int64_t number = (a->start + i * 7919) % SHAPES;
        pc_operation x = shape_of(number);
        pc_estimate found = {0}, right = {(double)number, 2.0 * (double)number};
        bool is_found = pc_memo_find(a->memo, &x, &found);
        a->found += is_found;
        a->wrong += is_found && (found.seconds != right.seconds || found.standard_error != right.standard_error);
        if (!is_found) pc_memo_keep(a->memo, &x, right);
    }
    return NULL;
}

static void threads_remember_what_is_right(void **state) {
    (void)state;
    pc_memo *memo = pc_memo_make();
    pthread_t thread[THREADS];
    asker all[THREADS];
    for (int t = 0; t < THREADS; t++) {
        all[t] = (asker){.memo = memo, .start = 1000 * t};
        assert_int_equal(pthread_create(&thread[t], NULL, ask_and_keep, &all[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
        assert_int_equal(all[t].wrong, 0);
        assert_true(all[t].found > 0);
    }
    pc_memo_free(memo);
}

/* Whatever decides a cost makes another operation. */
static void every_number_of_an_operation_counts(void **state) {
    (void)state;
    pc_memo *memo = pc_memo_make();
    pc_operation x = product(PC_GEMM_FORWARD, 64, 32, 16), others[12];
    pc_estimate found;
    for (int i = 0; i < 12; i++) others[i] = x;
    others[0].batch++, others[1].m++, others[2].n++, others[3].k++, others[4].bytes++, others[5].flops++;
    others[6].function = "gelu", others[7].kind = PC_OPERATION_ATTENTION, others[8].role = PC_GEMM_WEIGHT_GRADIENT;
    others[9].precision = PC_PRECISION_FP16, others[10].format = PC_PRODUCT_FP8, others[11].launches++;
    pc_memo_keep(memo, &x, (pc_estimate){1.0, 0.5});
    assert_true(pc_memo_find(memo, &x, &found) && found.seconds == 1.0 && found.standard_error == 0.5);
    for (int i = 0; i < 12; i++) assert_false(pc_memo_find(memo, &others[i], &found));
    others[0] = x, others[0].is_causal = true;
    others[1] = x, others[1].splits_accumulator = true;
    for (int i = 0; i < 2; i++) assert_false(pc_memo_find(memo, &others[i], &found));
    others[0] = x, others[0].name = "other", others[0].repeat = 7;
    assert_true(pc_memo_find(memo, &others[0], &found));
    pc_memo_free(memo);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_ask_their_own_tables),
        cmocka_unit_test(gradients_are_of_the_forward_products_site),
        cmocka_unit_test(gradients_follow_from_forward_tables),
        cmocka_unit_test(attention_asks_by_the_size_of_its_heads),
        cmocka_unit_test(shipped_profiles_answer_what_they_are_for),
        cmocka_unit_test(casts_are_copies),
        cmocka_unit_test(families_are_counted_once),
        cmocka_unit_test(threads_remember_what_is_right),
        cmocka_unit_test(every_number_of_an_operation_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
