/* Measured costs: which fit answers for which operation, what stands outside the measured range, which transfers are
 * measured, and that an iteration is made of them. Fits are made by hand: straight lines and rooflines whose answers
 * the tests reckon with. */
#include "calib/profile/profile_cost.h"
#include "engine/alloc.h"
#include "models/cost/roofline.h"
#include "models/machine/collective.h"
#include "tests/profile_cost_example.h"
#include "tests/random_machine.h"
#include "tests/refusals.h"

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

/* seconds = alpha + bytes / beta, measured from 2^16 to 2^30 bytes. */
static void add_line(pc_profile *profile, pc_fit_key key, double alpha, double beta) {
    pc_fit fit = {.key = key,
                  .parameter_count = 3,
                  .parameter = {alpha, beta, 0.01},
                  .residual_deviation = 0.01,
                  .dimensions = 1,
                  .least = {0x1p16},
                  .most = {0x1p30}};
    add_fit(profile, &fit);
}

static void add_memory(pc_profile *profile, const char *family, double beta) {
    pc_fit_key key = {.form = PC_FIT_MEMORY, .dtype = "bf16", .cache = PC_CACHE_COLD};
    snprintf(key.subject, sizeof key.subject, "%s", family);
    add_line(profile, key, 2e-6, beta);
}

/* rate (FLOP/s), ramp (of k), memory (bytes/s), launch (s); measured from 1 x 256^3 to 4 x 8192^3. */
static void add_product(pc_profile *profile, const char *family, const char *dtype, pc_cache_state cache, double rate) {
    pc_fit fit = {.key = {.form = PC_FIT_GEMM, .cache = cache},
                  .processors = 100,
                  .parameter_count = 4,
                  .parameter = {rate, 50.0, 1e12, 2e-6},
                  .residual_deviation = 0.02,
                  .dimensions = 4,
                  .least = {1, 256, 256, 256},
                  .most = {4, 8192, 8192, 8192}};
    snprintf(fit.key.subject, sizeof fit.key.subject, "%s", family);
    snprintf(fit.key.dtype, sizeof fit.key.dtype, "%s", dtype);
    if (strstr(family, "attention")) fit.key.form = PC_FIT_ATTENTION, fit.key.is_causal = true;
    if (strstr(family, "attention")) fit.least[3] = 64, fit.most[3] = 128, fit.most[0] = 512;
    add_fit(profile, &fit);
}

static const char *const products[] = {"gemm_forward", "gemm_input_gradient", "gemm_weight_gradient"};
static const char *const rows[] = {"layer_norm_forward",
                                   "layer_norm_backward",
                                   "gelu_forward",
                                   "gelu_backward",
                                   "residual_forward",
                                   "residual_backward",
                                   "softmax_forward",
                                   "softmax_backward",
                                   "embedding_forward",
                                   "embedding_backward",
                                   "cross_entropy_forward",
                                   "cross_entropy_backward",
                                   "bias_gradient",
                                   "add",
                                   "copy",
                                   "adam"};
enum { ROWS = sizeof rows / sizeof *rows };

/* The family's number makes its rate, so that a wrong one shows. */
static double rate_of(int row) {
    return 1e12 * (1.0 + 0.0625 * row);
}

static double row_s(const char *family, double bytes) {
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i], family) == 0) return 2e-6 + bytes / rate_of(i);
    fail_msg("no family %s", family);
    return 0.0;
}

static pc_profile full_profile(void) {
    pc_profile profile = {.device = {.name = "Some GPU", .gpu = "example", .launch_s = 3e-6}};
    for (int role = 0; role < 3; role++) {
        add_product(&profile, products[role], "bf16", PC_CACHE_HOT, 9e14);
        add_product(&profile, products[role], "bf16", PC_CACHE_COLD, (3.0 + role) * 1e14);
    }
    add_product(&profile, "attention_forward", "bf16", PC_CACHE_COLD, 2e14);
    add_product(&profile, "attention_backward", "bf16", PC_CACHE_COLD, 1e14);
    for (int i = 0; i < ROWS; i++) add_memory(&profile, rows[i], rate_of(i));
    return profile;
}

/* ---- kernels ---- */

static pc_operation rows_of(pc_operation_kind kind, pc_gemm_role role, const char *function, int64_t bytes,
                            int32_t launches) {
    return (pc_operation){.kind = kind,
                          .role = role,
                          .name = function,
                          .function = function,
                          .batch = 1,
                          .bytes = bytes,
                          .launches = launches,
                          .repeat = 1};
}

/* In the range the cold fit of its role answers, to the bit, and nothing is warned of. */
static void products_ask_the_fit_of_their_role(void **state) {
    (void)state;
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    pc_profile_cost *cost = make_cost(&profile, &machine);
    for (int role = 0; role < 3; role++) {
        pc_operation x = product((pc_gemm_role)role, 4096, 6144, 1024);
        double shape[] = {1, 4096, 6144, 1024};
        pc_estimate expected = pc_fit_predict(&profile.fit[2 * role + 1], shape);
        assert_true(expected.seconds > 0.0);
        assert_true(ask(cost, &x).seconds == expected.seconds);
        assert_true(ask(cost, &x).standard_error == expected.standard_error);
    }
    pc_operation attention = product(PC_GEMM_INPUT_GRADIENT, 2048, 2048, 128);
    attention.kind = PC_OPERATION_ATTENTION;
    attention.is_causal = true;
    attention.batch = 32;
    double shape[] = {32, 2048, 2048, 128};
    assert_true(ask(cost, &attention).seconds == pc_fit_predict(&profile.fit[7], shape).seconds);
    assert_int_equal(count_warnings(cost), 0);
    /* A window of 256 reaches into 3 of 16 blocks of 128: 1 + 2 + 14 * 3 of 136, and on average one more each way. */
    attention.flops = INT64_C(10) * 32 * 2048 * 256 * 128;
    attention.window = 256;
    double part = (45.0 / 16 + 1) / (136.0 / 16 + 1), found = ask(cost, &attention).seconds;
    double asked = pc_fit_predict(&profile.fit[7], shape).seconds * part;
    assert_true(found > asked * (1 - 1e-12) && found < asked * (1 + 1e-12));
    attention.window = 0;
    attention.is_causal = false;
    ask(cost, &attention);
    check_warning(cost, "not in the profile, the roofline of the machine's file answers: attention_backward bf16");
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* Families in the order of the alphabet, whole names alone. */
static void a_list_that_is_too_long_says_how_many_are_left(void **state) {
    (void)state;
    static const char *const functions[] = {"softmax", "add", "gelu", "rotary", "copy"};
    pc_profile profile = {.device = {.gpu = "example"}};
    pc_machine machine = example_machine();
    pc_profile_cost *cost = make_cost(&profile, &machine);
    char line[sizeof "not in the profile, the roofline of the machine's file answers: " + 50];
    for (int i = 0; i < 5; i++) {
        pc_operation x = rows_of(PC_OPERATION_ELEMENTWISE, PC_GEMM_FORWARD, functions[i], 1 << 20, 1);
        ask(cost, &x);
    }
    assert_true(pc_profile_cost_warning(cost, 0, line, sizeof line));
    assert_string_equal(strchr(line, ':'), ": add bf16, copy bf16, and 3 more");
    check_warning(cost, ": add bf16, copy bf16, gelu_forward bf16, rotary_forward bf16, softmax_forward bf16");
    pc_profile_cost_free(cost);
}

/* 16 bits take as long as other 16 bits; that it is so, a warning says. */
static void another_dtype_stands_in(void **state) {
    (void)state;
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    pc_profile_cost *cost = make_cost(&profile, &machine);
    pc_operation x = product(PC_GEMM_FORWARD, 4096, 4096, 4096);
    double bf16 = ask(cost, &x).seconds;
    x.precision = PC_PRECISION_FP16;
    assert_true(ask(cost, &x).seconds == bf16);
    check_warning(cost, "gemm_forward fp16: not in the profile; bf16 answers for it");
    pc_profile_cost_free(cost);
    add_product(&profile, "gemm_forward", "fp16", PC_CACHE_HOT, 1e14);
    cost = make_cost(&profile, &machine);
    assert_true(ask(cost, &x).seconds > 2.0 * bf16);
    assert_int_equal(count_warnings(cost), 0);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* Bytes as the workload counts them, and the runs of families that they are (calib/profile/profile_runs.c). */
static void rows_are_runs_of_families(void **state) {
    (void)state;
    const pc_gemm_role F = PC_GEMM_FORWARD, B = PC_GEMM_INPUT_GRADIENT;
    const pc_operation_kind norm = PC_OPERATION_NORM, other = PC_OPERATION_ELEMENTWISE;
    const int64_t n = 1 << 22; /* elements */
    const struct {
        pc_operation x;
        double expected;
    } cases[] = {
        {rows_of(norm, F, "layer_norm", 4 * n, 1), row_s("layer_norm_forward", 4.0 * n)},
        {rows_of(norm, B, "layer_norm", 10 * n, 3), row_s("layer_norm_backward", 6.0 * n)},
        {rows_of(other, F, "gelu", 4 * n, 1), row_s("gelu_forward", 4.0 * n)},
        {rows_of(other, B, "gelu", 6 * n, 1), row_s("gelu_backward", 6.0 * n)},
        {rows_of(other, B, "gelu", 8 * n, 2), row_s("gelu_backward", 6.0 * n) + row_s("bias_gradient", 2.0 * n)},
        {rows_of(other, F, "residual", 7 * n, 1), row_s("residual_forward", 7.0 * n)},
        {rows_of(other, B, "residual", 5 * n, 1), row_s("residual_backward", 5.0 * n)},
        {rows_of(other, B, "residual", 7 * n, 2),
         row_s("residual_backward", 5.0 * n) + row_s("bias_gradient", 2.0 * n)},
        {rows_of(other, B, "dropout", 5 * n, 1), row_s("residual_backward", 5.0 * n)},
        {rows_of(other, B, "bias_gradient", 2 * n, 1), row_s("bias_gradient", 2.0 * n)},
        {rows_of(other, B, "add", 6 * n, 1), row_s("add", 6.0 * n)},
        {rows_of(other, F, "copy", 4 * n, 1), row_s("copy", 4.0 * n)},
        {rows_of(other, B, "softmax", 6 * n, 1), row_s("softmax_backward", 6.0 * n)},
        {rows_of(other, F, "cross_entropy", 32 * n, 14), 14 * row_s("cross_entropy_forward", 32.0 * n / 14)},
        {rows_of(other, F, "embedding", 4 * n, 8), 8 * row_s("embedding_forward", 4.0 * n / 8)},
        {rows_of(PC_OPERATION_OPTIMIZER, F, "adam", 42 * n, 4), 4 * row_s("adam", 42.0 * n / 4)},
    };
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    pc_profile_cost *cost = make_cost(&profile, &machine);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_close(ask(cost, &cases[i].x).seconds, cases[i].expected, 1e-12);
    assert_int_equal(count_warnings(cost), 0);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* Every operation of every pass of many models is some family's. */
static void every_operation_has_a_family(void **state) {
    (void)state;
    pc_profile nothing = {.device = {.gpu = "example"}};
    pc_machine machine = example_machine();
    for (int variant = 0; variant < 32; variant++) {
        pc_iteration_spec spec = example_spec();
        pc_profile_cost *cost = make_cost(&nothing, &machine);
        pc_cost_model model = pc_profile_cost_model(cost);
        char line[1024];
        spec.model.mlp = variant & 1 ? PC_MLP_SWIGLU : PC_MLP_GELU;
        spec.model.norm = variant & 1 ? PC_NORM_RMS : PC_NORM_LAYER;
        spec.model.has_bias = variant & 2;
        spec.model.has_dropout = variant & 4;
        spec.model.attention = variant & 8 ? PC_ATTENTION_FLASH : PC_ATTENTION_MATERIALISED;
        spec.cut.recompute = variant & 16 ? PC_RECOMPUTE_FULL : PC_RECOMPUTE_NONE;
        pc_iteration with, without;
        assert_int_equal(pc_iteration_run(&spec, &model, false, &with, NULL), PC_OK);
        assert_int_equal(pc_iteration_run(&spec, NULL, false, &without, NULL), PC_OK);
        assert_true(with.iteration_s == without.iteration_s); /* the roofline answers for all */
        pc_iteration_free(&with);
        pc_iteration_free(&without);
        assert_true(pc_profile_cost_warning(cost, 0, line, sizeof line));
        char *rest = NULL, *name = strtok_r(strstr(line, "answers: ") + 9, ",", &rest);
        for (; name; name = strtok_r(NULL, ",", &rest)) {
            name += *name == ' ';
            bool is_known = strstr(name, "gemm_") || strstr(name, "attention_") || strstr(name, "rms_norm_") ||
                            strstr(name, "swiglu_") || strstr(name, "rotary_");
            for (int r = 0; r < ROWS; r++) is_known = is_known || strstr(name, rows[r]) == name;
            if (!is_known) fail_msg("no family: %s", name);
        }
        pc_profile_cost_free(cost);
    }
}

/* ---- outside of what was measured ---- */

/* m from far below to far above what was measured: no step where the roofline takes over, and never a warning too few.
 */
static void there_is_no_step_at_any_distance(void **state) {
    (void)state;
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    for (int64_t m = 8192; m < 8192 * 64; m += m / 64) {
        pc_profile_cost *cost = make_cost(&profile, &machine);
        pc_operation x = product(PC_GEMM_FORWARD, m, 4096, 4096), next = product(PC_GEMM_FORWARD, m + 1, 4096, 4096);
        pc_estimate here = ask(cost, &x);
        assert_int_equal(count_warnings(cost), (double)m / 8192.0 > 1.25);
        check_close(ask(cost, &next).seconds, here.seconds, 0.04); /* a wave of tiles */
        double shape[] = {1, (double)m, 4096, 4096};
        if (m <= 4 * 8192) check_close(here.seconds, pc_fit_predict(&profile.fit[1], shape).seconds, 1e-12);
        pc_profile_cost_free(cost);
    }
    pc_profile_free(&profile);
}

/* Sixteen times above: the fit at four times, and four times as much by the roofline's own proportions. */
static void far_away_the_roofline_answers(void **state) {
    (void)state;
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    machine.gpu.estimated_error = 0.05;
    pc_profile_cost *cost = make_cost(&profile, &machine);
    pc_cost_model roofline = pc_roofline(&machine.gpu);
    pc_operation far = rows_of(PC_OPERATION_NORM, PC_GEMM_FORWARD, "layer_norm", INT64_C(1) << 34, 1), near = far;
    near.bytes = INT64_C(1) << 32;
    double ratio = roofline.kernel(roofline.self, &far).seconds / roofline.kernel(roofline.self, &near).seconds;
    pc_estimate got = ask(cost, &far);
    check_close(got.seconds, row_s("layer_norm_forward", 0x1p32) * ratio, 1e-12);
    check_close(got.standard_error, got.seconds * hypot(0.01, 0.05),
                1e-9); /* the line's scatter, the roofline's doubt */
    check_warning(cost,
                  "bytes 17179869184 is 16 times above what was measured, 65536 to 1073741824; the roofline goes on");
    pc_operation small = product(PC_GEMM_FORWARD, 4096, 8, 4096);
    ask(cost, &small);
    check_warning(cost,
                  "gemm_forward bf16 cold: n 8 (batch 1, m 4096, n 8, k 4096) is 32 times below what was measured, "
                  "256 to 8192");
    small.n = 64; /* less far: not a line of its own */
    ask(cost, &small);
    assert_int_equal(count_warnings(cost), 2);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

typedef struct asker {
    const pc_profile_cost *cost;
    int first, step;
} asker;

static void *ask_all(void *context) {
    asker *x = context;
    for (int i = 0, n = x->first; i < 97; i++, n = (n + x->step) % 97) {
        pc_operation a = product((pc_gemm_role)(n % 3), 100000 + 64 * n, 4096, 64),
                     b = product(PC_GEMM_FORWARD, 4096, 2, n + 1);
        ask(x->cost, &a);
        ask(x->cost, &b);
        if (n % 2)
            pc_collective_course_of(pc_profile_cost_machine(x->cost),
                                    &(pc_group){.ranks = 2 + n % 7, .in_domain = 2 + n % 7, .domains = 1},
                                    PC_COLLECTIVE_ALL_REDUCE, PC_ALGORITHM_BEST, 1e6);
    }
    return NULL;
}

/* Whoever asks what first. */
static void warnings_do_not_depend_on_threads(void **state) {
    (void)state;
    char lines[2][16][512] = {{{0}}};
    int counts[2] = {0, 0};
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    for (int round = 0; round < 2; round++) {
        pc_profile_cost *cost = make_cost(&profile, &machine);
        asker askers[] = {{cost, 0, 1}, {cost, 96, round ? 5 : 96}};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, ask_all, &askers[1]), 0);
        if (round == 0) ask_all(&askers[0]);
        pthread_join(thread, NULL);
        while (pc_profile_cost_warning(cost, counts[round], lines[round][counts[round]], 512)) counts[round]++;
        pc_profile_cost_free(cost);
    }
    assert_int_equal(counts[0], counts[1]);
    assert_int_equal(counts[0], 4); /* three products, one collective */
    for (int i = 0; i < counts[0]; i++) assert_string_equal(lines[0][i], lines[1][i]);
    assert_non_null(strstr(lines[0][3], "all_reduce of 2, 3, 4, 5, 6, 7, 8 ranks in a domain: not in the profile"));
    pc_profile_free(&profile);
}

/* ---- the machine ---- */

static void another_gpus_profile_is_refused(void **state) {
    (void)state;
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    pc_profile_cost *cost = NULL;
    snprintf(machine.gpu.name, sizeof machine.gpu.name, "another");
    assert_int_equal(pc_profile_cost_make(&profile, &machine, &cost, NULL), PC_ERROR_INPUT);
    assert_null(cost);
    pc_profile_free(&profile);
}

static void what_the_device_knows_better_it_says(void **state) {
    (void)state;
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    machine.gpu.memory_reserved_bytes = 1000;
    profile.device.reserved_bytes = 2000;
    pc_profile_cost *cost = make_cost(&profile, &machine);
    assert_true(pc_profile_cost_model(cost).launch_s == 3e-6);
    assert_int_equal(pc_profile_cost_machine(cost)->gpu.memory_reserved_bytes, 2000);
    pc_profile_cost_free(cost);
    profile.device.reserved_bytes = 500; /* the file counts more than the driver's */
    profile.device.launch_s = 0.0;
    cost = make_cost(&profile, &machine);
    assert_int_equal(pc_profile_cost_machine(cost)->gpu.memory_reserved_bytes, 1000);
    assert_true(pc_profile_cost_model(cost).launch_s == machine.gpu.launch_s);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

static void add_transfer(pc_profile *profile, const char *collective, const char *link, int ranks, int nodes,
                         double beta) {
    pc_fit_key key = {.form = PC_FIT_TRANSFER, .ranks = ranks, .nodes = nodes};
    snprintf(key.subject, sizeof key.subject, "%s", collective);
    snprintf(key.link, sizeof key.link, "%s", link);
    add_line(profile, key, 2e-5, beta);
}

static double plan_s(const pc_machine *machine, const pc_group *group, pc_collective collective, double bytes) {
    return pc_collective_course_of(machine, group, collective, PC_ALGORITHM_BEST, bytes).seconds;
}

static void measured_collectives_take_what_was_measured(void **state) {
    (void)state;
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    add_transfer(&profile, "all_reduce", "loopback", 8, 1, 1e9);
    add_transfer(&profile, "all_reduce", "network", 8, 1, 1e9);
    add_transfer(&profile, "all_reduce", "nvlink", 8, 2, 1e9);
    add_transfer(&profile, "all_reduce", "nvlink", 8, 1, 2e11);
    add_transfer(&profile, "all_gather", "loopback", 8, 1, 1e9);
    pc_profile_cost *cost = make_cost(&profile, &machine);
    const pc_machine *measured = pc_profile_cost_machine(cost);
    pc_group eight = {.ranks = 8, .in_domain = 8, .domains = 1}, four = {.ranks = 4, .in_domain = 4, .domains = 1};
    check_close(plan_s(measured, &eight, PC_COLLECTIVE_ALL_REDUCE, 1e8), 2e-5 + 1e8 / 2e11, 1e-12);
    assert_int_equal(count_warnings(cost), 0);
    /* what is smaller than all that was measured takes as long as the smallest; what is larger goes on */
    check_close(plan_s(measured, &eight, PC_COLLECTIVE_ALL_REDUCE, 4.0), 2e-5 + 0x1p16 / 2e11, 1e-12);
    assert_int_equal(count_warnings(cost), 0);
    check_close(plan_s(measured, &eight, PC_COLLECTIVE_ALL_REDUCE, 0x1p32), 2e-5 + 0x1p32 / 2e11, 1e-12);
    check_warning(cost, "all_reduce, 8 ranks, nvlink: bytes 4294967296 is 4 times above");
    /* not measured: the file's */
    assert_true(plan_s(measured, &four, PC_COLLECTIVE_ALL_REDUCE, 1e8) ==
                plan_s(&machine, &four, PC_COLLECTIVE_ALL_REDUCE, 1e8));
    assert_true(plan_s(measured, &eight, PC_COLLECTIVE_ALL_GATHER, 1e8) ==
                plan_s(&machine, &eight, PC_COLLECTIVE_ALL_GATHER, 1e8));
    check_warning(cost, "all_reduce of 4 ranks in a domain: not in the profile; the machine's file answers");
    check_warning(cost, "all_gather of 8 ranks in a domain");
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

static void measured_messages_take_what_was_measured(void **state) {
    (void)state;
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    add_transfer(&profile, "send_recv", "nvlink", 2, 1, 5e10);
    pc_profile_cost *cost = make_cost(&profile, &machine);
    const pc_machine *measured = pc_profile_cost_machine(cost);
    pc_hop hop = {.in_domain = true, .bytes_per_s = 1e11, .latency_s = 1e-6};
    check_close(pc_message_seconds(measured, &hop, 1e7), 2e-5 + 1e7 / 5e10, 1e-12);
    assert_true(pc_message_seconds(measured, &hop, 0.0) == 0.0);
    hop.in_domain = false;
    assert_true(pc_message_seconds(measured, &hop, 1e7) == pc_message_seconds(&machine, &hop, 1e7));
    check_warning(cost, "send_recv of 2 ranks across domains");
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* As flows, alone on their links, measured collectives take as long as measured, whatever the machine's own numbers. */
static void flows_take_what_was_measured(void **state) {
    (void)state;
    static const char *const names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
    test_random random = {7};
    for (long i = 0; i < test_cases(200, 200); i++) {
        pc_machine machine = random_machine(&random);
        pc_profile profile = {.device = {.gpu = "example"}};
        int collective = (int)test_between(&random, 0, 3), ranks = (int)test_between(&random, 2, 8);
        double beta = 1e9 * (double)test_between(&random, 1, 1000), bytes = (double)test_between(&random, 1, 1 << 28);
        if (machine.domain_gpus < ranks) continue;
        snprintf(machine.gpu.name, sizeof machine.gpu.name, "example");
        add_transfer(&profile, names[collective], "nvlink", ranks, 1, beta);
        pc_profile_cost *cost = make_cost(&profile, &machine);
        const pc_machine *measured = pc_profile_cost_machine(cost);
        pc_group group = {.ranks = ranks, .in_domain = ranks, .domains = 1};
        pc_collective_course course =
            pc_collective_course_of(measured, &group, (pc_collective)collective, PC_ALGORITHM_BEST, bytes);
        const pc_collective_phase *x = &course.phase[0];
        double expected = 2e-5 + (bytes > 0x1p16 ? bytes : 0x1p16) / beta;
        assert_int_equal(course.phase_count, 1);
        check_close(course.seconds, expected, 1e-12);
        check_close(x->latency_s + x->domain_bytes / x->domain_bytes_per_s, expected, 1e-9);
        double link = machine.domain.bandwidth_bytes_per_s * machine.domain.efficiency;
        check_close(x->latency_s + x->domain_wire_bytes / link, expected, 1e-9);
        assert_true(x->latency_s >= 0.0 && x->network_bytes == 0.0);
        pc_profile_cost_free(cost);
        pc_profile_free(&profile);
    }
}

/* ---- an iteration ---- */

/* Every kernel at half of the time that the same profile with half the rates says: passes take half as long. */
static void an_iteration_is_made_of_measured_costs(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    pc_iteration made[2];
    spec.machine = example_machine();
    spec.network = PC_NETWORK_CLOSED;
    spec.cut.tp = spec.cut.dp = 1; /* no collectives but those of the end */
    spec.machine.gpu.memory_bytes = INT64_C(1) << 42;
    for (int i = 0; i < 2; i++) {
        pc_profile profile = full_profile();
        for (int64_t f = 0; f < profile.fit_count; f++) {
            double *p = profile.fit[f].parameter;
            bool is_line = profile.fit[f].parameter_count == 3;
            double slower = i ? 2.0 : 1.0;
            p[0] *= is_line ? slower : 1.0 / slower; /* alpha; rate */
            p[1] /= is_line ? slower : 1.0;          /* beta */
            if (!is_line) p[2] /= slower, p[3] *= slower;
        }
        profile.device.launch_s = 1e-9;
        pc_profile_cost *cost = make_cost(&profile, &spec.machine);
        pc_cost_model model = pc_profile_cost_model(cost);
        pc_iteration_spec with = spec;
        with.machine = *pc_profile_cost_machine(cost);
        assert_int_equal(pc_iteration_run(&with, &model, false, &made[i], NULL), PC_OK);
        assert_int_equal(made[i].status, PC_RUN_OK);
        pc_profile_cost_free(cost);
        pc_profile_free(&profile);
    }
    double passes[] = {made[0].iteration_s - made[0].exposed.pp, made[1].iteration_s - made[1].exposed.pp};
    check_close(passes[1], 2.0 * passes[0], 0.01);
    assert_true(made[0].standard_error_s > 0.0);
    pc_iteration_free(&made[0]);
    pc_iteration_free(&made[1]);
}

static void refused_allocations_are_reported(void **state) {
    (void)state;
    pc_profile profile = full_profile();
    pc_machine machine = example_machine();
    for (refusals x = {0}; next_refusal(&x);) {
        pc_profile_cost *cost = NULL;
        x.code = pc_profile_cost_make(&profile, &machine, &cost, NULL);
        assert_int_equal(x.code, cost ? PC_OK : PC_ERROR_NO_MEMORY);
        pc_profile_cost_free(cost);
    }
    pc_profile_free(&profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_ask_the_fit_of_their_role),
        cmocka_unit_test(a_list_that_is_too_long_says_how_many_are_left),
        cmocka_unit_test(another_dtype_stands_in),
        cmocka_unit_test(rows_are_runs_of_families),
        cmocka_unit_test(every_operation_has_a_family),

        cmocka_unit_test(there_is_no_step_at_any_distance),
        cmocka_unit_test(far_away_the_roofline_answers),
        cmocka_unit_test(warnings_do_not_depend_on_threads),
        cmocka_unit_test(another_gpus_profile_is_refused),
        cmocka_unit_test(what_the_device_knows_better_it_says),
        cmocka_unit_test(measured_collectives_take_what_was_measured),
        cmocka_unit_test(measured_messages_take_what_was_measured),
        cmocka_unit_test(flows_take_what_was_measured),
        cmocka_unit_test(an_iteration_is_made_of_measured_costs),
        cmocka_unit_test(refused_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
