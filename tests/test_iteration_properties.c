/* Iterations of specs drawn at random: against a recount from operations up, and what must hold whatever the spec. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "tests/iteration_example.h"
#include "tests/iteration_experts.h"
#include "tests/iteration_recount.h"

#include <math.h>

static void check_near(double found, double expected, double relative, const pc_iteration_spec *spec) {
    if (fabs(found - expected) <= relative * fabs(expected)) return;
    fail_msg("%.12g; expected %.12g (%s, tp %d pp %d dp %d, zero %d)", found, expected, spec->generator->name,
             spec->cut.tp, spec->cut.pp, spec->cut.dp, spec->cut.zero);
}

/* From one that launches as fast as can be to one that runs Python for everything. */
static void random_host(test_random *random, pc_iteration_spec *spec) {
    spec->machine.gpu.launch_s *= (double)test_between(random, 0, 12);
    spec->counts_modules = test_between(random, 0, 1) > 0;
    spec->machine.gpu.module_s = 1e-6 * (double)test_between(random, 0, 200);
    spec->machine.gpu.expert_s = 1e-6 * (double)test_between(random, 0, 50);
}

/* Times are rounded to whole picoseconds, a few thousand times. From bound by kernels to bound by launches. */
static void test_agrees_with_a_recount(void **state) {
    (void)state;
    test_random random = {21};
    long folded = 0;
    for (long i = 0; i < test_cases(60, 800); i++) {
        pc_iteration_spec spec = random_spec(&random);
        random_host(&random, &spec);
        folded += random_folded_experts(&random, &spec);
        pc_iteration iteration = run_spec(&spec);
        check_near(iteration.iteration_s, recount_iteration(&spec), 1e-7, &spec);
        pc_iteration_free(&iteration);
    }
    print_message("%ld with folded experts\n", folded);
    assert_true(test_saw(folded, 5));
}

/* Sums of doubles, in whatever order of chunks. */
static void test_flops_do_not_depend_on_the_schedule(void **state) {
    (void)state;
    static const char *const names[] = {"gpipe", "zb-h1", "1f1b-interleaved", "v-half", "zb-1p", "1f1b-v"};
    test_random random = {22};
    for (long i = 0; i < test_cases(12, 800); i++) {
        pc_iteration_spec spec = random_spec(&random);
        spec.generator = pc_generator_find("1f1b");
        spec.cut.chunks = 1;
        random_folded_experts(&random, &spec);
        pc_iteration first = run_spec(&spec);
        spec.generator = pc_generator_find(names[i % 6]);
        spec.cut.chunks = spec.generator->chunks_default;
        pc_iteration other = run_spec(&spec);
        check_near(other.hardware_flops, first.hardware_flops, 1e-12, &spec);
        check_near(other.model_flops, first.model_flops, 0, &spec);
        int64_t parameters = 0, others = 0;
        for (int d = 0; d < first.devices; d++) parameters += first.memory[d].parameters + first.memory[d].optimizer;
        for (int d = 0; d < other.devices; d++) others += other.memory[d].parameters + other.memory[d].optimizer;
        if (!spec.model.is_tied && spec.model.mtp_layers == 0)           /* a V holds what both ends have once */
            check_near((double)others, (double)parameters, 1e-7, &spec); /* a share is rounded up */
        pc_iteration_free(&first);
        pc_iteration_free(&other);
    }
}

static void test_memory_ends_where_it_began(void **state) {
    (void)state;
    test_random random = {23};
    for (long i = 0; i < test_cases(40, 800); i++) {
        pc_iteration_spec spec = random_spec(&random);
        if (test_between(&random, 0, 1)) spec.network = PC_NETWORK_FLOWS;
        random_folded_experts(&random, &spec);
        pc_iteration iteration = run_spec(&spec);
        const pc_replay_trace *trace = &iteration.replay.trace;
        int64_t peak[64] = {0};
        pc_time peak_ps[64] = {0};
        for (int64_t k = 0; k < trace->level_count; k++) {
            int d = trace->level_device[k];
            bool is_last = k + 1 == trace->level_count || trace->level_device[k + 1] != d;
            if (is_last) assert_int_equal(trace->level_bytes[k], 0);
            if (trace->level_bytes[k] <= peak[d]) continue;
            peak[d] = trace->level_bytes[k];
            peak_ps[d] = trace->level_time_ps[k];
        }
        for (int d = 0; d < iteration.devices; d++) {
            const pc_device_memory *x = &iteration.memory[d];
            assert_int_equal(x->activations, peak[d]);
            assert_int_equal(x->peak_ps, peak_ps[d]);
            assert_int_equal(x->peak_bytes, x->parameters + x->gradients + x->optimizer + x->buffers + peak[d]);
        }
        pc_iteration_free(&iteration);
    }
}

static void multiply_rates(pc_machine *machine, double factor) {
    machine->gpu.matrix_flops_per_s *= factor;
    machine->gpu.vector_flops_per_s *= factor;
    machine->gpu.memory_bytes_per_s *= factor;
    machine->domain.bandwidth_bytes_per_s *= factor;
    machine->network.bandwidth_bytes_per_s *= factor;
}

/* Every time is then an amount over a rate. The machine is slow, so that a picosecond is little even where flows meet:
 * one that comes so much later may leave twice as much later. */
static void test_twice_the_rates_halve_the_time(void **state) {
    (void)state;
    test_random random = {24};
    for (long i = 0; i < test_cases(40, 800); i++) {
        pc_iteration_spec spec = random_spec(&random);
        if (test_between(&random, 0, 1)) spec.network = PC_NETWORK_FLOWS;
        random_folded_experts(&random, &spec);
        drop_latencies(&spec.machine);
        multiply_rates(&spec.machine, 1e-3);
        pc_iteration slow = run_spec(&spec);
        multiply_rates(&spec.machine, 2);
        pc_iteration fast = run_spec(&spec);
        check_near(fast.iteration_s, slow.iteration_s / 2, 1e-7, &spec);
        pc_iteration_free(&slow);
        pc_iteration_free(&fast);
    }
}

/* ---- flows ---- */

/* Nothing meets where there is one stage; or two, of one chunk and one replica, each of which waits for what it has
 * sent. Returns how near that makes flows and closed costs: with one stage and whole passes to the rounding of times.
 */
static double let_nothing_meet(test_random *random, pc_iteration_spec *spec) {
    bool is_one_stage = test_between(random, 0, 1);
    if (spec->generator->placement == PC_PLACEMENT_BIDIRECTIONAL || !is_one_stage)
        spec->generator = pc_generator_find(test_between(random, 0, 1) ? "1f1b" : "zb-h1");
    spec->cut.chunks = spec->generator->chunks_default;
    spec->cut.pp = is_one_stage ? 1 : 2;
    if (!is_one_stage) {
        spec->cut.dp = spec->cut.cp = 1;
        spec->overlaps_p2p = false;
    }
    bool can_meet_tp = spec->cut.cp > 1 || (spec->cut.tp > 1 && spec->cut.dp > 1);
    if (!can_meet_tp && test_between(random, 0, 2) == 0) spec->granularity = PC_GRANULARITY_OPERATIONS;
    return is_one_stage && spec->granularity == PC_GRANULARITY_PASS ? 1e-7 : 0.02;
}

static void test_flows_alone_are_the_closed_costs(void **state) {
    (void)state;
    test_random random = {25};
    for (long i = 0; i < test_cases(90, 800); i++) {
        pc_iteration_spec spec = random_spec(&random);
        double tolerance = let_nothing_meet(&random, &spec);
        random_folded_experts(&random, &spec);
        pc_iteration closed = run_spec(&spec);
        spec.network = PC_NETWORK_FLOWS;
        pc_iteration flows = run_spec(&spec);
        check_near(flows.iteration_s, closed.iteration_s, tolerance, &spec);
        pc_iteration_free(&closed);
        pc_iteration_free(&flows);
    }
}

/* Nor does a pass in operations take longer than a pass as one, where it is alone: bound by kernels, by launches, or by
 * launches for which collectives make up. A task of it is rounded by itself. */
static void test_operations_alone_are_the_pass(void **state) {
    (void)state;
    test_random random = {32};
    int bound_by_launches = 0, hidden = 0;
    for (long i = 0; i < test_cases(60, 800); i++) {
        pc_iteration_spec spec = random_spec(&random);
        spec.overlaps_tp = test_between(&random, 0, 2) > 0;
        spec.cut.pp = spec.cut.dp = 1;
        spec.cut.zero = 0;
        spec.cut.tp = 1 << test_between(&random, 1, 3);
        bool is_folded = random_folded_experts(&random, &spec);
        if (spec.cut.cp > 1 || is_folded) spec.overlaps_gradients = false; /* or they meet */
        random_host(&random, &spec);
        pc_iteration passes = run_spec(&spec);
        spec.network = PC_NETWORK_FLOWS;
        spec.granularity = PC_GRANULARITY_OPERATIONS;
        pc_iteration operations = run_spec(&spec);
        check_near(operations.iteration_s, passes.iteration_s, 1e-7, &spec);
        spec.machine.gpu.launch_s = 0;
        pc_iteration kernels = run_spec(&spec);
        bound_by_launches += passes.iteration_s > kernels.iteration_s;
        hidden += passes.exposed.tp > 0 && passes.exposed.tp < kernels.exposed.tp;
        pc_iteration_free(&passes);
        pc_iteration_free(&operations);
        pc_iteration_free(&kernels);
    }
    print_message("%d bound by launches, %d by kernels and collectives beside idle time\n", bound_by_launches, hidden);
    assert_true(bound_by_launches > 0 && hidden > 0);
}

/* What a stage gets from both its neighbours can meet, and its last messages meet its gradients that follow: at most
 * two on a link, or three, where stages wait for what they have sent. Each then gets no less than so small a part of
 * the link, and the iteration is no longer than on links that are so much slower. */
static void test_sharing_is_bounded(void **state) {
    (void)state;
    test_random random = {29};
    for (long i = 0; i < test_cases(60, 800); i++) {
        pc_iteration_spec spec = random_spec(&random);
        if (spec.generator->placement == PC_PLACEMENT_BIDIRECTIONAL) spec.generator = pc_generator_find("1f1b");
        spec.cut.chunks = spec.generator->chunks_default;
        spec.cut.tp = 1;
        spec.cut.sequence_parallel = spec.overlaps_p2p = spec.overlaps_gradients = spec.overlaps_parameters = false;
        spec.machine.domain.fast_latency_s = spec.machine.network.fast_latency_s = 0; /* or slower links have another */
        spec.machine.domain.fast_efficiency = spec.machine.network.fast_efficiency = 0;
        pc_iteration closed = run_spec(&spec);
        spec.network = PC_NETWORK_FLOWS;
        pc_iteration flows = run_spec(&spec);
        spec.network = PC_NETWORK_CLOSED;
        double part = spec.cut.dp > 1 ? 1.0 / 3 : 1.0 / 2;
        spec.machine.domain.bandwidth_bytes_per_s *= part;
        spec.machine.network.bandwidth_bytes_per_s *= part;
        pc_iteration slower = run_spec(&spec);
        if (flows.iteration_s < 0.999 * closed.iteration_s) check_near(flows.iteration_s, closed.iteration_s, 0, &spec);
        if (flows.iteration_s > 1.001 * slower.iteration_s) check_near(flows.iteration_s, slower.iteration_s, 0, &spec);
        pc_iteration_free(&closed);
        pc_iteration_free(&flows);
        pc_iteration_free(&slower);
    }
}

/* What meets takes no less than what does not, and no link is filled for longer than the iteration lasts. */
static void test_flows_that_meet(void **state) {
    (void)state;
    test_random random = {26};
    int met = 0;
    for (long i = 0; i < test_cases(60, 800); i++) {
        pc_iteration_spec spec = random_spec(&random);
        spec.overlaps_gradients = spec.overlaps_parameters = true;
        random_folded_experts(&random, &spec);
        pc_iteration closed = run_spec(&spec);
        spec.network = PC_NETWORK_FLOWS;
        pc_iteration flows = run_spec(&spec);
        assert_true(isnan(closed.link_utilisation_max));
        assert_true(flows.link_utilisation_max >= 0 && flows.link_utilisation_max <= 1);
        if (flows.iteration_s < 0.999 * closed.iteration_s) check_near(flows.iteration_s, closed.iteration_s, 0, &spec);
        met += flows.iteration_s > 1.0001 * closed.iteration_s;
        pc_iteration_free(&closed);
        pc_iteration_free(&flows);
    }
    assert_true(met > 0);
}

/* A fixed order of passes, over a network up to 300 times as slow. */
static pc_iteration_spec draw_slow(test_random *random) {
    pc_iteration_spec spec = random_spec(random);
    if (test_between(random, 0, 3) == 0) {
        spec.generator = pc_generator_find("1f1b-v");
        spec.cut.chunks = 2;
        spec.making = PC_MAKING_EQUAL;
    }
    spec.cut.microbatches *= test_between(random, 1, 3);
    double slower = (double)test_between(random, 1, 17) * (double)test_between(random, 1, 17);
    spec.machine.network.bandwidth_bytes_per_s /= slower;
    if (test_between(random, 0, 1)) spec.machine.domain.bandwidth_bytes_per_s /= slower;
    return spec;
}

/* What a search is planned for, its own costs, is no worse a plan than equal times. The iteration is no longer, over
 * whatever network, with and without a wait for the global norm, though the search goes by the span of the passes
 * alone.
 */
static void test_planned_for_costs_is_no_slower_than_for_equal_times(void **state) {
    (void)state;
    static const char *const names[] = {"zb-1p", "zb-2p", "v-min", "v-half", "v-zb", "v-adaptive"};
    test_random random = {37};
    for (long i = 0; i < test_cases(60, 800) / 2; i++) {
        pc_iteration_spec spec = draw_slow(&random);
        spec.generator = pc_generator_find(names[i % 6]);
        spec.cut.chunks = spec.generator->chunks_default;
        spec.cut.pp = (int)test_between(&random, 2, 4);
        spec.making = PC_MAKING_COSTS;
        pc_iteration costs, equal;
        pc_code code = pc_iteration_run(&spec, NULL, false, &costs, NULL);
        spec.making = PC_MAKING_EQUAL;
        assert_int_equal(pc_iteration_run(&spec, NULL, false, &equal, NULL), code);
        if (code) continue;
        assert_int_equal(costs.status, equal.status);
        if (costs.status == PC_RUN_OK && costs.iteration_s > equal.iteration_s)
            check_near(costs.iteration_s, equal.iteration_s, 0, &spec);
        pc_iteration_free(&costs);
        pc_iteration_free(&equal);
    }
}

/* That a stage goes on while what it sent is under way is no slower than to wait for it: by closed costs never, for no
 * path is longer. Over flows messages of two stages may meet on their way into a third, and gradients, which do not
 * when stages wait; one that is in more of a hurry may so come later. Of 5,000 drawn at random that was by 1.0% at most
 * with messages alone, of 3,500 by 9.0% with other traffic. Shared evenly, messages of one stage made it 71%. */
static void test_to_go_on_is_no_slower_than_to_wait(void **state) {
    (void)state;
    test_random random = {31};
    for (long i = 0; i < test_cases(150, 800); i++) {
        pc_iteration_spec spec = draw_slow(&random);
        spec.network = test_between(&random, 0, 3) ? PC_NETWORK_FLOWS : PC_NETWORK_CLOSED;
        if (test_between(&random, 0, 1)) spec.cut.dp = 1;
        double most = spec.network == PC_NETWORK_CLOSED ? 1 : spec.cut.dp == 1 ? 1.03 : 1.15;
        spec.overlaps_p2p = true;
        pc_iteration goes_on = run_spec(&spec);
        spec.overlaps_p2p = false;
        pc_iteration waits = run_spec(&spec);
        if (goes_on.iteration_s > most * waits.iteration_s)
            check_near(goes_on.iteration_s, waits.iteration_s, most - 1, &spec);
        pc_iteration_free(&goes_on);
        pc_iteration_free(&waits);
    }
}

/* ---- every replica for itself ---- */

/* Where nothing differs between replicas, simulating each of them gives what simulating one gives: the same time to the
 * last bit, in every part, the same passes and memories, by any number of threads. */
static void test_expanded_is_folded(void **state) {
    (void)state;
    test_random random = {30};
    long cases = test_cases(60, 5000);
    for (long i = 0; i < cases; i++) {
        pc_iteration_spec spec = random_spec(&random);
        spec.overlaps_tp = test_between(&random, 0, 1);
        if (spec.cut.zero == 1 && spec.cut.dp > 1) spec.cut.zero = (int)test_between(&random, 1, 3);
        random_folded_experts(&random, &spec);
        pc_iteration folded = run_spec(&spec);
        spec.expands = true;
        spec.threads = (int)test_between(&random, 1, 3);
        pc_iteration expanded = run_spec(&spec);
        check_near(expanded.iteration_s, folded.iteration_s, 0, &spec);
        assert_memory_equal(&expanded.exposed, &folded.exposed, sizeof folded.exposed);
        assert_memory_equal(&expanded.sent, &folded.sent, sizeof folded.sent);
        assert_true(expanded.replay.trace_hash == folded.replay.trace_hash);
        assert_int_equal(expanded.devices, folded.devices);
        assert_memory_equal(expanded.memory, folded.memory, (size_t)folded.devices * sizeof *folded.memory);
        pc_iteration_free(&folded);
        pc_iteration_free(&expanded);
    }
    test_count("folded.expanded", cases);
}

/* ---- the same again ---- */

static void test_the_same_spec_gives_the_same_iteration(void **state) {
    (void)state;
    test_random random = {27};
    for (long i = 0; i < test_cases(20, 800); i++) {
        pc_iteration_spec spec = random_spec(&random);
        spec.network = test_between(&random, 0, 1) ? PC_NETWORK_FLOWS : PC_NETWORK_AUTO;
        random_folded_experts(&random, &spec);
        pc_iteration a = run_spec(&spec), b = run_spec(&spec);
        assert_true(a.replay.trace_hash == b.replay.trace_hash);
        assert_memory_equal(&a.iteration_s, &b.iteration_s, sizeof a.iteration_s);
        assert_memory_equal(&a.exposed, &b.exposed, sizeof a.exposed);
        pc_iteration_free(&a);
        pc_iteration_free(&b);
    }
}

/* One number of a spec made odd. */
static void damage(test_random *random, pc_iteration_spec *spec) {
    static const int64_t odd[] = {-1, 0, 1, 3, 7, 1000, 65537, INT32_MAX, INT64_MAX};
    int64_t number = odd[test_between(random, 0, 8)];
    int *const narrow[] = {&spec->cut.tp,
                           &spec->cut.pp,
                           &spec->cut.dp,
                           &spec->cut.chunks,
                           &spec->cut.gradient_bytes,
                           &spec->cut.cross_entropy_chunks};
    int64_t *const wide[] = {&spec->cut.microbatch_size,
                             &spec->cut.microbatches,
                             &spec->cut.seq_len,
                             &spec->bucket_bytes,
                             &spec->memory_limit_bytes,
                             &spec->overhead_ps,
                             &spec->model.layers,
                             &spec->model.hidden,
                             &spec->model.vocab,
                             &spec->model.heads,
                             &spec->machine.gpu.memory_bytes};
    double *const rates[] = {&spec->pass_overhead, &spec->machine.gpu.matrix_flops_per_s,
                             &spec->machine.network.bandwidth_bytes_per_s, &spec->machine.network.latency_s};
    int64_t which = test_between(random, 0, 20);
    if (which < 6)
        *narrow[which] = (int)(number > INT32_MAX ? INT32_MAX : number);
    else if (which < 17)
        *wide[which - 6] = number;
    else
        *rates[which - 17] = (double)number;
}

/* Whatever is asked is answered: with an iteration, a reason why not, or what is wrong with the numbers. */
static void test_odd_specs_are_answered(void **state) {
    (void)state;
    test_random random = {28};
    int answers[4] = {0};
    for (long i = 0; i < test_cases(400, 800); i++) {
        pc_iteration_spec spec = random_spec(&random);
        pc_iteration iteration;
        pc_error error = {0};
        damage(&random, &spec);
        if (spec.cut.microbatches > 1000) spec.cut.pp = spec.cut.tp = 1;
        pc_code code = pc_iteration_run(&spec, NULL, false, &iteration, &error);
        assert_true(code == PC_OK || (code == PC_ERROR_INPUT && error.message[0]));
        answers[code ? 3 : (int)iteration.status]++;
        if (code) continue;
        assert_true((iteration.status == PC_RUN_OK) == (iteration.message[0] == '\0'));
        assert_true(iteration.status != PC_RUN_OK || iteration.iteration_s > 0);
        pc_iteration_free(&iteration);
    }
    for (int i = 0; i < 4; i++) assert_true(test_saw(answers[i], 1));
}

/* Every `step`-th allocation of a run is refused once; nothing leaks (the sanitizers look), and it works afterwards. */
static void sweep_every(long step, const pc_iteration_spec *spec) {
    long before = pc_alloc_count();
    pc_iteration iteration = run_spec(spec);
    pc_iteration_free(&iteration);
    long count = pc_alloc_count() - before;
    for (long i = 0; i < count; i += step) {
        pc_error error = {0};
        pc_alloc_fail_after(i);
        assert_int_equal(pc_iteration_run(spec, NULL, true, &iteration, &error), PC_ERROR_NO_MEMORY);
        pc_alloc_fail_after(-1);
    }
    iteration = run_spec(spec);
    pc_iteration_free(&iteration);
}

static void sweep(const pc_iteration_spec *spec) {
    sweep_every(1, spec);
}

/* Messages so long that a second schedule is searched for: no iteration over flows is nearly as short as the closed one
 * is. Searches ask for memory often: every 16th time is refused, and in the slow suite every time. */
static void sweep_two_searches(pc_iteration_spec *spec) {
    spec->generator = pc_generator_find("1f1b-v");
    spec->cut.chunks = 2;
    spec->cut.tp = 8;
    spec->cut.dp = 1;
    spec->model.layers = 4;
    spec->cut.microbatches = 4;
    spec->machine.network.bandwidth_bytes_per_s = 1e8;
    pc_iteration closed = run_spec(spec);
    spec->network = PC_NETWORK_FLOWS;
    pc_iteration flows = run_spec(spec);
    assert_true(flows.iteration_s > 1.02 * closed.iteration_s);
    pc_iteration_free(&closed);
    pc_iteration_free(&flows);
    sweep_every(test_part(16, 1), spec);
}

static void test_without_memory(void **state) {
    (void)state;
    pc_iteration_spec spec = example_spec();
    spec.cut.pp = 2;
    spec.cut.microbatches = 2;
    sweep(&spec);
    spec.network = PC_NETWORK_FLOWS;
    sweep(&spec);
    spec.granularity = PC_GRANULARITY_OPERATIONS;
    spec.model.layers = 2;
    sweep(&spec);
    spec.network = PC_NETWORK_CLOSED;
    spec.granularity = PC_GRANULARITY_PASS;
    spec.expands = true;
    sweep(&spec);
    spec.expands = false;
    sweep_two_searches(&spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_a_recount),
        cmocka_unit_test(test_flops_do_not_depend_on_the_schedule),
        cmocka_unit_test(test_memory_ends_where_it_began),
        cmocka_unit_test(test_twice_the_rates_halve_the_time),
        cmocka_unit_test(test_flows_alone_are_the_closed_costs),
        cmocka_unit_test(test_operations_alone_are_the_pass),
        cmocka_unit_test(test_sharing_is_bounded),
        cmocka_unit_test(test_flows_that_meet),
        cmocka_unit_test(test_to_go_on_is_no_slower_than_to_wait),
        cmocka_unit_test(test_planned_for_costs_is_no_slower_than_for_equal_times),
        cmocka_unit_test(test_expanded_is_folded),
        cmocka_unit_test(test_the_same_spec_gives_the_same_iteration),
        cmocka_unit_test(test_odd_specs_are_answered),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
