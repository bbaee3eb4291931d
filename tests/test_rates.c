/* A faster machine is no slower: over random settings, no rate raised and no latency lowered makes an iteration longer.
 * Over closed costs, and of schedules whose order no cost decides: a search may find a worse one for better costs, and
 * what shares links may meet where it did not. */
#include "tests/support.h"

#include "models/training/finish.h"
#include "tests/iteration_example.h"
#include "tests/random_machine.h"
#include "tests/random_model.h"

#include <stddef.h>

enum { SAMPLES = 2, TIMES = 1 + SAMPLES }; /* of an iteration, and of its samples on bad days */

/* ---- settings ---- */

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

/* 1 / most to most, as often below 1 as above. */
static double random_factor(test_random *random, int64_t most) {
    double factor = random_thousandths(random, 1000, 1000 * most);
    return toss(random) ? factor : 1 / factor;
}

static const pc_generator *random_generator(test_random *random) {
    int count;
    const pc_generator *all = pc_generators(&count), *drawn;
    do drawn = &all[test_between(random, 0, count - 1)];
    while (drawn->searches);
    return drawn;
}

/* From bound by launches to bound by kernels. */
static void draw_gpu(test_random *random, pc_gpu *gpu) {
    gpu->matrix_flops_per_s *= random_factor(random, 8);
    gpu->vector_flops_per_s *= random_factor(random, 8);
    gpu->memory_bytes_per_s *= random_factor(random, 8);
    gpu->gemm_efficiency = random_thousandths(random, 300, 1000);
    gpu->memory_efficiency = random_thousandths(random, 300, 1000);
    gpu->attention_efficiency = random_thousandths(random, 200, 1000);
    gpu->kernel_s *= toss(random) ? random_factor(random, 4) : 0;
    gpu->launch_s *= toss(random) ? random_factor(random, 8) : 0;
}

static void draw_machine(test_random *random, pc_machine *machine) {
    pc_gpu gpu = machine->gpu;
    if (toss(random)) *machine = random_machine(random);
    machine->gpu = gpu;
    machine->in_switch_latency_s = toss(random) ? 0 : 1e-6 * random_thousandths(random, 0, 20000);
    machine->speed_variation = toss(random) ? 0 : 0.02;
    draw_gpu(random, &machine->gpu);
}

static void draw_bad_days(test_random *random, pc_iteration_spec *spec) {
    pc_bad_days *x = &spec->bad_days;
    *x = (pc_bad_days){.samples = SAMPLES, .slow_factor = 1.5, .bad_factor = 0.5};
    x->gpu_jitter = toss(random) ? 0 : 0.03;
    x->link_jitter = toss(random) ? 0 : 0.2;
    x->slow_gpus = test_between(random, 0, 1);
    x->bad_links = test_between(random, 0, 1);
}

static void draw_noise(test_random *random, pc_iteration_spec *spec) {
    int64_t kind = test_between(random, 0, 7);
    spec->seed = test_draw(random);
    spec->expands = kind == 0;
    if (kind == 1) draw_bad_days(random, spec);
    if (kind < 2) spec->jitter = 0.05;
}

static void draw_cut(test_random *random, pc_iteration_spec *spec) {
    static const int64_t sequences[] = {64, 128, 256, 512, 1024, 2048};
    static const pc_cut_layout layouts[] = {PC_CUT_EVEN, PC_CUT_ENDS, PC_CUT_OWN};
    pc_cut *cut = &spec->cut;
    spec->generator = random_generator(random);
    cut->chunks = spec->generator->chunks_default;
    cut->microbatches = cut->pp * 2 * test_between(random, 1, 3);
    cut->seq_len = sequences[test_between(random, 0, 5)];
    cut->zero = (int)test_between(random, 0, 3);
    cut->recompute = (pc_recompute)test_between(random, 0, PC_RECOMPUTE_KINDS - 1);
    cut->recompute_modules = (int32_t)test_between(random, 1, PC_RECOMPUTES_ALL);
    cut->recompute_layers = (int32_t)test_between(random, 1, 2);
    cut->layout = layouts[test_between(random, 0, 5) % 3];
    if (toss(random)) spec->model = random_model(random);
    spec->model.layers = cut->pp * cut->chunks * test_between(random, 2, 5);
    if (cut->layout == PC_CUT_ENDS && spec->model.layers > 2) spec->model.layers -= 2;
}

/* Of what was drawn apart and cannot be together, one goes; other tests ask for the refusals. */
static void settle(pc_iteration_spec *spec) {
    pc_cut *cut = &spec->cut;
    if (cut->kernels == PC_KERNELS_EAGER) cut->fuses_operations = cut->compiles = false;
    if (spec->model.document_length > cut->seq_len)
        spec->model.document_length = spec->model.document_length_square = 0;
}

/* Some break a rule. */
static pc_iteration_spec draw_spec(test_random *random) {
    pc_iteration_spec spec = random_spec(random);
    draw_cut(random, &spec);
    draw_machine(random, &spec.machine);
    spec.overlaps_tp = test_between(random, 0, 3) > 0;
    draw_noise(random, &spec);
    settle(&spec);
    return spec;
}

/* ---- what is made better ---- */

typedef struct knob {
    const char *name;
    size_t offset; /* of a double in pc_machine */
    bool is_time;  /* better when less */
    bool is_part;  /* a fraction of one, at most 1 */
} knob;

/* clang-format off */
#define RATE(member) {#member, offsetof(pc_machine, member), false, false}
#define PART(member) {#member, offsetof(pc_machine, member), false, true}
#define TIME(member) {#member, offsetof(pc_machine, member), true, false}
/* clang-format on */

static const knob knobs[] = {
    RATE(gpu.matrix_flops_per_s),
    RATE(gpu.vector_flops_per_s),
    RATE(gpu.memory_bytes_per_s),
    PART(gpu.gemm_efficiency),
    PART(gpu.attention_efficiency),
    PART(gpu.memory_efficiency),
    TIME(gpu.gemm_ramp_k),
    TIME(gpu.attention_backward),
    TIME(gpu.kernel_s),
    TIME(gpu.launch_s),
    RATE(domain.bandwidth_bytes_per_s),
    PART(domain.efficiency),
    TIME(domain.latency_s),
    TIME(domain.fast_latency_s),
    PART(domain.fast_efficiency),
    RATE(network.bandwidth_bytes_per_s),
    PART(network.efficiency),
    TIME(network.latency_s),
    TIME(network.fast_latency_s),
    PART(network.fast_efficiency),
    TIME(oversubscription),
    TIME(switch_latency_s),
    PART(in_switch_efficiency),
    TIME(in_switch_latency_s),
    PART(nic_crossing_efficiency),
    TIME(speed_variation),
    TIME(collective_call_s),
};
enum { KNOBS = sizeof knobs / sizeof *knobs };

/* Zero stands for another number, or for none, and stays. */
static void improve(const knob *turned, double factor, pc_machine *machine) {
    double *value = (double *)(void *)((char *)machine + turned->offset);
    *value = turned->is_time ? *value / factor : *value * factor;
    if (turned->is_part && *value > 1) *value = 1;
}

/* One number, or several at once: all rates of a newer GPU, say. */
static void improve_some(test_random *random, pc_machine *machine, char what[512]) {
    int64_t many = toss(random) ? 1 : test_between(random, 2, KNOBS);
    double factor = 1 + random_thousandths(random, 1, 1000) * (toss(random) ? 3 : 0.05);
    int at = snprintf(what, 512, "%g times better:", factor);
    for (int64_t i = 0; i < many; i++) {
        const knob *turned = &knobs[test_between(random, 0, KNOBS - 1)];
        improve(turned, factor, machine);
        if (at < 480) at += snprintf(what + at, 512 - (size_t)at, " %.*s", 30, turned->name);
    }
}

/* ---- the test ---- */

/* Of an iteration and of its samples; false where the spec breaks a rule. */
static bool run_times(const pc_iteration_spec *spec, pc_time times_ps[TIMES]) {
    pc_iteration x;
    pc_error error = {0};
    if (pc_iteration_run(spec, NULL, false, &x, &error)) fail_msg("%s", error.message);
    bool is_done = x.status == PC_RUN_OK;
    for (int i = 0; i < TIMES; i++) times_ps[i] = 0;
    if (is_done && !pc_time_from_seconds(x.iteration_s, &times_ps[0])) fail();
    for (int i = 0; is_done && i < spec->bad_days.samples; i++) times_ps[1 + i] = x.sample_ps[i];
    pc_iteration_free(&x);
    return is_done;
}

/* A pass, a transfer and a bucket are each rounded to a picosecond, and a bucket's share of its pass is rounded down.
 */
static const pc_time rounding_ps = 200;

static void check_no_longer(const pc_iteration_spec *spec, const pc_machine *better, const char *what) {
    pc_iteration_spec faster = *spec;
    pc_time before_ps[TIMES], after_ps[TIMES];
    faster.machine = *better;
    assert_true(run_times(spec, before_ps) && run_times(&faster, after_ps));
    for (int i = 0; i < TIMES; i++)
        if (after_ps[i] > before_ps[i] + rounding_ps)
            fail_msg("%s, tp %d pp %d dp %d, zero %d, recompute %d, step %d: %lld ps, and %lld ps %s",
                     spec->generator->name, spec->cut.tp, spec->cut.pp, spec->cut.dp, spec->cut.zero,
                     (int)spec->cut.recompute, (int)spec->step, (long long)before_ps[i], (long long)after_ps[i], what);
}

/* Draws a setting, and betters it in four ways; false where it breaks a rule. */
static bool check_setting(test_random *random) {
    pc_iteration_spec spec = draw_spec(random);
    pc_time unused_ps[TIMES];
    if (!run_times(&spec, unused_ps)) return false;
    for (int k = 0; k < 4; k++) {
        pc_machine better = spec.machine;
        char what[512];
        improve_some(random, &better, what);
        check_no_longer(&spec, &better, what);
    }
    return true;
}

static void test_better_numbers_are_no_slower(void **state) {
    (void)state;
    test_random random = {31};
    long tried = 0, cases = test_cases(500, 20000);
    for (long i = 0; i < cases; i++) tried += check_setting(&random);
    print_message("%ld of %ld settings\n", tried, cases);
    assert_true(test_saw(tried, 2 * cases / 5));
}

/* Over a link at random and over a better one; whether it runs at all. */
static bool check_host_link(test_random *random, pc_iteration_spec spec) {
    const knob host_link = RATE(host_link_bytes_per_s);
    pc_time unused_ps[TIMES];
    spec.machine.host_link_bytes_per_s = 1e9 * (double)test_between(random, 1, 64);
    if (!run_times(&spec, unused_ps)) return false;
    pc_machine better = spec.machine;
    improve(&host_link, 1 + random_thousandths(random, 1, 4000), &better);
    check_no_longer(&spec, &better, host_link.name);
    return true;
}

/* The link to the host counts only for what is held there, in settings of their own. */
static void test_a_better_host_link_is_no_slower(void **state) {
    (void)state;
    test_random random = {37};
    long tried = 0, cases = test_cases(100, 2000);
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = draw_spec(&random);
        spec.generator = pc_generator_find("1f1b");
        spec.cut.pp = spec.cut.chunks = 1;
        spec.cut.recompute = PC_RECOMPUTE_NONE;
        spec.cut.offload_layers = test_between(&random, 1, 2);
        tried += check_host_link(&random, spec);
    }
    assert_true(4 * tried >= cases);
}

/* Nor is it where copies run beside passes, in whatever order those are. */
static void test_faster_copies_are_no_slower(void **state) {
    (void)state;
    test_random random = {39};
    long tried = 0, cases = test_cases(100, 2000);
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = draw_spec(&random);
        if (spec.generator->recomputes || spec.generator->adapts) continue;
        spec.cut.recompute = PC_RECOMPUTE_NONE;
        spec.cut.offload.kinds = test_between(&random, 0, 1) ? PC_OFFLOAD_FULL : PC_OFFLOAD_SELECTIVE;
        spec.cut.offload.fraction = (double)test_between(&random, 1, 4) / 4;
        tried += check_host_link(&random, spec);
    }
    assert_true(4 * tried >= cases);
}

/* ---- iterations that follow each other ---- */

/* Of 600,000 settings eighteen, these twelve among them, were slower for a better number when an iteration with
 * post-validation counted from where a stage's first pass could begin. */
static void test_what_was_slower_with_post_validation(void **state) {
    (void)state;
    static const uint64_t seeds[] = {17286007,  28588007,  52011007,  75870007,  100734007, 182086007,
                                     187604007, 192214007, 241955007, 340604007, 341126007, 377908007};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        test_random random = {seeds[i]};
        check_setting(&random);
    }
}

/* What each of three stages takes from its own beginning, and how often it was asked. */
typedef struct stages {
    pc_time own_ps[3];
    int asked[3];
} stages;

static pc_code time_stage(void *context, int device, pc_time held_ps, pc_time *step_end_ps) {
    stages *x = context;
    assert_true(held_ps >= 30 + 107); /* all else is over: the latest beginning and the longest stage */
    *step_end_ps = held_ps + x->own_ps[device];
    x->asked[device]++;
    return PC_OK;
}

/* The first stage takes 100 from its beginning, which is the whole's. The second begins at 10 and ends at 117, though
 * only 90 of its time are chains from its own beginning: it waits in between for what the third makes of parameters
 * that come late. Begun at 27 it would be done as early. So iterations follow each other every 100, not 107; and the
 * third, which takes 80 at most, need not be asked. Were the first pass of all 5 faster, the second would begin at 5
 * and end at 117, and take 112 by its ends alone. */
static void test_a_stage_that_waits_sets_no_pace(void **state) {
    (void)state;
    pc_iteration_spec spec = {.overhead_ps = 1000};
    pc_outline outline = {.spec = &spec, .devices = 3};
    pc_time begin_ps[] = {0, 10, 30}, period_ps[] = {100, 107, 80}, pace_ps = 107 + 1000;
    stages x = {.own_ps = {100, 90, 80}};
    assert_int_equal(pc_outline_own_pace(&outline, begin_ps, period_ps, time_stage, &x, &pace_ps), PC_OK);
    assert_int_equal(pace_ps, 100 + 1000);
    assert_true(x.asked[0] == 1 && x.asked[1] == 1 && x.asked[2] == 0);
}

/* ---- a pass that is bound by its launches ---- */

/* What the first stage's F does. */
static pc_operations operations_of_f(const pc_iteration_spec *spec) {
    pc_operations operations;
    pc_part part = pc_cut_part(&spec->model, &spec->cut, spec->cut.pp, 0);
    assert_int_equal(pc_pass_operations(&spec->model, &spec->cut, &part, PC_PASS_F, false, &operations, NULL), PC_OK);
    return operations;
}

static double longest_f_s(pc_iteration_spec spec, double launch_s) {
    spec.machine.gpu.launch_s = launch_s;
    pc_iteration x = run_spec(&spec);
    double seconds = (double)x.longest_ps[PC_PASS_F] / PC_PICOSECONDS_PER_SECOND;
    pc_iteration_free(&x);
    return seconds;
}

/* One stage of TP 8, without sequence parallelism: F is kernels, K in all, and all-reduces, E in all, none beside
 * another. Their launches, n, take L = n * launch on the host. With no launches to wait for, F is K + E. With launches
 * of (K + E) / 2n it still is, for the host is done first. From (K + E) / n on it is L, and of E nothing is left. At
 * twice that F takes 2 (K + E), whatever the collectives. */
static void test_launches_run_ahead(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.tp = 8;
    spec.cut.pp = spec.cut.dp = 1;
    spec.cut.sequence_parallel = false;
    pc_operations operations = operations_of_f(&spec);
    double n = (double)pc_operations_sum(&operations).launches, alone_s = longest_f_s(spec, 0);
    assert_float_equal(longest_f_s(spec, alone_s / n / 2), alone_s, 1e-12);
    assert_float_equal(longest_f_s(spec, alone_s / n * 2), 2 * alone_s, 1e-11);
    spec.machine.collective_call_s = 0;
    assert_true(longest_f_s(spec, 0) < alone_s);
    assert_float_equal(longest_f_s(spec, alone_s / n * 2), 2 * alone_s, 1e-11);
}

/* A model of 1.3 billion parameters, TP 8, short sequences: bound by kernels at first, then by launches, then by
 * launches for which collectives make up. */
static void test_a_faster_gpu_is_faster(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    double last_s = 1e9;
    spec.cut = (pc_cut){.tp = 8, .pp = 4, .dp = 2, .chunks = 1, .sequence_parallel = true, .zero = 1};
    spec.cut.microbatch_size = 1;
    spec.cut.microbatches = 32;
    spec.cut.seq_len = 512;
    for (double factor = 1; factor <= 8; factor *= 2) {
        pc_iteration_spec faster = spec;
        pc_gpu *gpu = &faster.machine.gpu;
        gpu->matrix_flops_per_s *= factor;
        gpu->vector_flops_per_s *= factor;
        gpu->memory_bytes_per_s *= factor;
        pc_iteration x = run_spec(&faster);
        assert_true(x.iteration_s < last_s);
        last_s = x.iteration_s;
        pc_iteration_free(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_better_numbers_are_no_slower),
        cmocka_unit_test(test_a_better_host_link_is_no_slower),
        cmocka_unit_test(test_faster_copies_are_no_slower),
        cmocka_unit_test(test_what_was_slower_with_post_validation),
        cmocka_unit_test(test_a_stage_that_waits_sets_no_pace),
        cmocka_unit_test(test_launches_run_ahead),
        cmocka_unit_test(test_a_faster_gpu_is_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
