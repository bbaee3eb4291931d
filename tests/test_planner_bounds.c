/* The planner's bounds: never above what the simulation says, whatever the spec; and numbers that are no points mean
 * the same iteration as the one that is. */
#include "tests/support.h"

#include "models/planner/bound_twin.h"
#include "models/planner/plan_search.h"
#include "models/training/outline_restate.h"
#include "tests/planner_example.h"

static void describe(const pc_plan_space *space, const pc_plan_choice *choice, char text[512]) {
    const pc_iteration_spec *base = &space->bases[choice->base].spec;
    snprintf(text, 512,
             "%s tp %d pp %d dp %d cp %d by %s chunks %d, %d microbatches of %d, recompute %d zero %d sp %d, overlaps "
             "%d%d%d%d, "
             "order %d%d%d, network %d granularity %d step %d layout %d",
             choice->generator->name, choice->tp, choice->pp, choice->dp, choice->cp, pc_cp_comm_name(choice->cp_comm),
             choice->chunks, (int)choice->microbatches, (int)choice->microbatch_size, (int)choice->recompute,
             choice->zero, choice->sequence_parallel, choice->overlaps_tp, choice->overlaps_gradients,
             choice->overlaps_parameters, choice->overlaps_p2p, (int)choice->order.axis[0], (int)choice->order.axis[1],
             (int)choice->order.axis[2], (int)base->network, (int)base->granularity, (int)base->step,
             (int)choice->layout);
}

static int64_t fullest(const pc_iteration *iteration) {
    int64_t most = 0;
    for (int d = 0; d < iteration->devices; d++)
        if (iteration->memory[d].peak_bytes > most) most = iteration->memory[d].peak_bytes;
    return most;
}

/* A number of the space whose rules are kept; false where a few draws find none. */
static bool draw_number(test_random *random, const plan_numbers *numbers, int64_t *number, pc_plan_choice *choice) {
    pc_plan_rule broken;
    for (int i = 0; i < 50; i++) {
        *number = test_between(random, 0, numbers->shapes * numbers->variants - 1);
        *choice = plan_choice_of(numbers, *number);
        if (!plan_check_rules(numbers->space, choice, &broken)) return true;
    }
    return false;
}

/* What was seen, so that a test that checks nothing fails. */
typedef struct what_was_seen {
    long checked, flows, out_of_memory, untimed, searched;
    double mean, close_mean;
    bool of_times; /* whether bounds on memory are exact is not asked */
} what_was_seen;

/* Of an order of its own, whose parts between the first and the last, of a stage, are alike: no recipe leaves some
 * layers wide, and none has a layer more. Bounds know nothing of S and T, of copies beside passes, nor of
 * what CUDA graphs keep beside the step, and torch's pipelines of every microbatch. */
static bool is_bound_exact(const pc_plan_space *space, const pc_plan_choice *choice) {
    const pc_iteration_spec *spec = &space->bases[choice->base].spec;
    const pc_low_precision *low = &spec->model.low;
    if (choice->offload & PC_OFFLOAD_BESIDE_PASSES || spec->cut.graphs || spec->stage_buffers) return false;
    if (pc_layout_is_balanced(choice->layout) && plan_parts_of(choice) > choice->pp) return false;
    /* With BW beside W, gathered gradients that W waits with may stand beside more than the bound takes. F and BW that
     * run together share memory layer by layer, of which the bound takes the least. */
    bool mixes = strcmp(choice->generator->name, "dualpipe-v") == 0 && (choice->tp > 1 || spec->overlaps_pairs);
    if (mixes) return false;
    bool is_cut = pc_placement_has_slices(choice->generator->placement); /* whose slices of one part differ */
    bool has_vocab = choice->generator->barriers != PC_BARRIERS_NONE;
    return !choice->generator->searches && !is_cut && !has_vocab && low->bf16_first == 0 && low->bf16_last == 0;
}

static void check_memory(const plan_bounds *bounds, const pc_iteration *iteration, bool is_exact, const char *what) {
    int64_t found = fullest(iteration);
    bool is_held = iteration->status != PC_RUN_OUT_OF_MEMORY || found >= bounds->memory_bytes;
    if (!is_held) return; /* what is held all the time was too much alone: activations were not added up */
    if (bounds->memory_bytes > found || (is_exact && bounds->memory_bytes != found))
        fail_msg("bound of %lld bytes; simulated %lld: %s", (long long)bounds->memory_bytes, (long long)found, what);
}

/* With the spans of searches, or the times of a known order, for what fits: an order may hold more than there is, and
 * then be shorter. The bound over the time. */
static double check_close(plan_bounder *bounder, const pc_plan_space *space, const pc_plan_choice *choice,
                          const pc_iteration *iteration, const char *what) {
    const pc_iteration_spec spec = pc_plan_spec(space, choice);
    pc_outline outline;
    pc_error error = {0};
    pc_time bound_ps = 0;
    if (iteration->status != PC_RUN_OK) return 0;
    if (plan_bounder_outline(bounder, space, choice->base, &spec, &outline, &error)) fail_msg("%s", error.message);
    if (plan_bound_spans(bounder, &outline, true, &error)) fail_msg("%s", error.message);
    if (plan_bound_order(bounder, &outline, &error)) fail_msg("%s", error.message);
    if (plan_bound_time(bounder, &outline, SCOPE_ONE, &bound_ps, &error)) fail_msg("%s", error.message);
    if (pc_time_to_seconds(bound_ps) > iteration->iteration_s)
        fail_msg("close bound of %.12g s; simulated %.12g: %s", pc_time_to_seconds(bound_ps), iteration->iteration_s,
                 what);
    pc_outline_free(&outline);
    return pc_time_to_seconds(bound_ps) / iteration->iteration_s;
}

/* A trial, which asks whether an order fits before it is timed, comes to the same. */
static void check_trial(const pc_plan_space *space, const pc_plan_choice *choice, const pc_iteration *iteration,
                        const char *what, what_was_seen *seen) {
    pc_iteration_spec spec = pc_plan_spec(space, choice);
    pc_iteration trial;
    pc_error error = {0};
    spec.is_trial = true;
    if (pc_iteration_run(&spec, space->bases[choice->base].cost, false, &trial, &error))
        fail_msg("%s: %s", error.message, what);
    bool is_same = trial.status == iteration->status;
    if (iteration->status == PC_RUN_OK) is_same = is_same && trial.iteration_s == iteration->iteration_s;
    if (!is_same) fail_msg("a trial has status %d, not %d: %s", (int)trial.status, (int)iteration->status, what);
    seen->untimed += strstr(trial.message, "in this order") != NULL;
    pc_iteration_free(&trial);
}

static void check_point(plan_bounder *bounder, const pc_plan_space *space, const pc_plan_choice *choice,
                        what_was_seen *seen) {
    char what[512];
    plan_bounds bounds;
    pc_iteration iteration;
    pc_error error = {0};
    describe(space, choice, what);
    if (plan_bound_choice(bounder, space, choice, &bounds, &error)) fail_msg("%s: %s", error.message, what);
    pc_iteration_spec spec = pc_plan_spec(space, choice);
    if (pc_iteration_run(&spec, space->bases[choice->base].cost, false, &iteration, &error))
        fail_msg("%s: %s", error.message, what);
    if (iteration.status == PC_RUN_OK && bounds.time_s > iteration.iteration_s)
        fail_msg("bound of %.12g s; simulated %.12g: %s", bounds.time_s, iteration.iteration_s, what);
    seen->close_mean += check_close(bounder, space, choice, &iteration, what);
    check_trial(space, choice, &iteration, what, seen);
    bool is_over = bounds.memory_bytes > bounds.capacity_bytes;
    bool is_misfit = is_over && choice->layout == PC_CUT_BALANCED_MEMORY;
    bool is_exact = !seen->of_times && is_bound_exact(space, choice) && !is_misfit;
    if (iteration.status != PC_RUN_INFEASIBLE) check_memory(&bounds, &iteration, is_exact, what);
    if (is_over && iteration.status == PC_RUN_OK) fail_msg("fits, and its bound does not: %s", what);
    if (iteration.status == PC_RUN_OK) {
        seen->checked++;
        seen->mean += bounds.time_s / iteration.iteration_s;
        seen->flows += iteration.link_utilisation_max >= 0;
        seen->searched += choice->generator->searches;
    }
    seen->out_of_memory += iteration.status == PC_RUN_OUT_OF_MEMORY;
    pc_iteration_free(&iteration);
}

static void check_space(test_random *random, const pc_plan_space *space, what_was_seen *seen) {
    plan_numbers numbers;
    plan_bounder bounder = {0};
    int64_t number;
    pc_plan_choice choice;
    if (plan_numbers_make(space, &numbers, NULL)) fail();
    for (int k = 0; k < 12 && draw_number(random, &numbers, &number, &choice); k++)
        check_point(&bounder, space, &choice, seen);
    plan_bounder_free(&bounder);
}

static void test_bounds_are_never_above(void **state) {
    (void)state;
    test_random random = {701};
    what_was_seen seen = {0};
    for (long i = 0; i < test_cases(120, 1000); i++) {
        example_space x;
        draw_space(&random, 40000, i % 4 == 0, &x);
        check_space(&random, &x.space, &seen);
    }
    print_message("%ld checked, %ld over flows, %ld searched, %ld out of memory; bounds %.4f of the time\n",
                  seen.checked, seen.flows, seen.searched, seen.out_of_memory, seen.mean / (double)seen.checked);
    assert_true(seen.checked > 0);
    assert_true(test_saw(seen.flows, 1) && test_saw(seen.out_of_memory, 1) && test_saw(seen.searched, 1));
    assert_true(test_saw(seen.untimed, 1));
    assert_true(seen.mean / (double)seen.checked > 0.8);
}

/* Of schedules that search alone: with what check_close looks at. */
static void test_bounds_of_searches(void **state) {
    (void)state;
    test_random random = {2027};
    what_was_seen seen = {0};
    for (long i = 0; i < test_cases(60, 600); i++) {
        example_space x;
        draw_searched_space(&random, 40000, false, &x);
        check_space(&random, &x.space, &seen);
    }
    print_message("%ld checked, %ld out of memory\n", seen.checked, seen.out_of_memory);
    assert_true(test_saw(seen.searched, 20));
}

/* The room that the point's order needs as BALANCED lays it out, or a little more or less. */
static int64_t room_about(test_random *random, const pc_plan_space *space, const pc_plan_choice *choice) {
    pc_iteration_spec spec = pc_plan_spec(space, choice);
    pc_iteration iteration;
    spec.cut.layout = PC_CUT_BALANCED;
    spec.memory_limit_bytes = INT64_C(1) << 50;
    if (pc_iteration_run(&spec, space->bases[choice->base].cost, false, &iteration, NULL)) fail();
    int64_t bytes = iteration.status ? INT64_C(1) << 50 : fullest(&iteration);
    pc_iteration_free(&iteration);
    return bytes + bytes / 200 * test_between(random, -4, 20);
}

static bool has_twin(const pc_plan_space *space, const pc_plan_choice *choice) {
    const pc_iteration_spec spec = pc_plan_spec(space, choice);
    plan_bounder bounder = {0};
    pc_outline outline;
    if (plan_bounder_outline(&bounder, space, choice->base, &spec, &outline, NULL)) fail();
    bool has = plan_twin_of(&bounder) != NULL;
    pc_outline_free(&outline);
    plan_bounder_free(&bounder);
    return has;
}

/* Where a search decides how layers lie, bounds hold for both. */
static void test_bounds_where_searches_lay_out(void **state) {
    (void)state;
    static const int64_t layouts[] = {PC_CUT_BALANCED_MEMORY};
    static const char *const names[] = {"zb-1p", "zb-2p", "zb-two-thirds", "v-half", "zb-v", "1f1b-v"};
    test_random random = {2029};
    what_was_seen seen = {0};
    long open = 0;
    for (long i = 0; i < test_cases(400, 4000); i++) {
        example_space x;
        plan_numbers numbers;
        plan_bounder bounder = {0};
        int64_t number;
        pc_plan_choice choice;
        draw_searched_space(&random, 40000, false, &x);
        for (int k = 0; k < x.space.generator_count; k++)
            x.generators[k] = pc_generator_find(names[test_between(&random, 0, 5)]);
        for (int k = 0; k < x.space.base_count; k++) x.bases[k].spec.making = PC_MAKING_COSTS;
        x.space.layouts = (pc_plan_list){layouts, 1};
        if (plan_numbers_make(&x.space, &numbers, NULL)) fail();
        if (!draw_number(&random, &numbers, &number, &choice)) continue;
        x.bases[choice.base].spec.memory_limit_bytes = room_about(&random, &x.space, &choice);
        if (!has_twin(&x.space, &choice)) continue;
        check_point(&bounder, &x.space, &choice, &seen);
        plan_bounder_free(&bounder);
        open++;
    }
    print_message("%ld open, %ld of them fit; bounds %.4f of the time\n", open, seen.checked,
                  seen.mean / (double)seen.checked);
    assert_true(test_saw(seen.checked, 10));
}

/* Some of whose backward passes are BW, and others B and W: either may be shorter, and where layers are recomputed they
 * hold other things. */
static void test_bounds_of_mixed_passes(void **state) {
    (void)state;
    test_random random = {702};
    what_was_seen seen = {0};
    for (long i = 0; i < test_cases(120, 1000); i++) {
        example_space x;
        draw_space(&random, 40000, false, &x);
        x.generators[0] = pc_generator_find("dualpipe-v");
        x.space.generator_count = 1;
        check_space(&random, &x.space, &seen);
    }
    print_message("%ld checked; bounds %.4f of the time\n", seen.checked, seen.mean / (double)seen.checked);
    assert_true(test_saw(seen.checked, 10));
    assert_true(seen.checked == 0 || seen.mean / (double)seen.checked > 0.7);
}

/* ZeRO 2 reduces the gradients of every backward pass; here that takes longer than the passes. Then a stage's stream is
 * busy from its first backward pass on, of which the bound knows when it begins, and the close one when it ends. */
static void test_bounds_of_gradients_of_every_pass(void **state) {
    (void)state;
    test_random random = {704};
    what_was_seen seen = {.of_times = true};
    static const int64_t two[] = {2}, yes[] = {1};
    static const char *const names[] = {"1f1b", "1f1b-interleaved", "zb-h1"};
    for (long i = 0; i < test_cases(120, 1000); i++) {
        example_space x;
        draw_space(&random, 40000, false, &x);
        x.space.zero = (pc_plan_list){two, 1};
        x.space.overlaps_gradients = x.space.overlaps_p2p = (pc_plan_list){yes, 1};
        for (int k = 0; k < 3; k++) x.generators[k] = pc_generator_find(names[k]);
        x.space.generator_count = 3;
        for (int k = 0; k < x.space.base_count; k++) {
            pc_iteration_spec *spec = &x.bases[k].spec;
            spec->machine.network.bandwidth_bytes_per_s /= 10;
            spec->machine.domain.bandwidth_bytes_per_s /= 10;
            spec->step = PC_STEP_NORM;
            spec->granularity = PC_GRANULARITY_PASS;
        }
        check_space(&random, &x.space, &seen);
    }
    double count = (double)seen.checked, mean = seen.mean / count, close_mean = seen.close_mean / count;
    print_message("%ld checked; bounds %.4f of the time, close ones %.4f\n", seen.checked, mean, close_mean);
    assert_true(test_saw(seen.checked, 100));
    assert_true(seen.checked < 100 || (mean > 0.95 && close_mean > 0.985));
}

/* The number with every digit at the first value that means the same: tried one after the other, by the iteration. */
static void check_same(const pc_plan_space *space, const plan_numbers *numbers, int64_t number, int64_t lowest) {
    pc_plan_choice a = plan_choice_of(numbers, number), b = plan_choice_of(numbers, lowest);
    pc_iteration_spec first = pc_plan_spec(space, &a), second = pc_plan_spec(space, &b);
    pc_iteration x, y;
    char what[512];
    pc_error error = {0};
    describe(space, &a, what);
    if (pc_iteration_run(&first, NULL, false, &x, &error)) fail_msg("%s: %s", error.message, what);
    if (pc_iteration_run(&second, NULL, false, &y, &error)) fail_msg("%s: %s", error.message, what);
    bool is_same = x.status == y.status && fullest(&x) == fullest(&y);
    if (x.status == PC_RUN_OK)
        is_same = is_same && x.iteration_s == y.iteration_s && x.replay.trace_hash == y.replay.trace_hash &&
                  /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): doubles only, and of the same bits */
                  memcmp(&x.exposed, &y.exposed, sizeof x.exposed) == 0;
    if (!is_same)
        fail_msg("%.12g s, not %.12g as number %lld: %s", x.iteration_s, y.iteration_s, (long long)lowest, what);
    pc_iteration_free(&x);
    pc_iteration_free(&y);
}

/* Lowers digits as long as the number is no point. */
static int64_t lower_digits(const plan_numbers *numbers, int64_t number) {
    for (int digit = DIGITS; digit-- > 0;) {
        int value = plan_digit_of(numbers, number, (plan_digit)digit);
        for (int i = 0; i < value; i++) {
            int64_t lower = plan_with_digit(numbers, number, (plan_digit)digit, i);
            if (plan_is_same(numbers, number, lower)) {
                number = lower;
                break;
            }
        }
    }
    return number;
}

static void test_numbers_that_are_no_points_mean_one(void **state) {
    (void)state;
    test_random random = {702};
    long checked = 0;
    for (long i = 0; i < test_cases(60, 1000); i++) {
        example_space x;
        plan_numbers numbers;
        int64_t number;
        pc_plan_choice choice;
        draw_space(&random, 40000, false, &x);
        if (plan_numbers_make(&x.space, &numbers, NULL)) fail();
        for (int k = 0; k < 10 && draw_number(&random, &numbers, &number, &choice); k++) {
            int64_t lowest = lower_digits(&numbers, number);
            assert_true(plan_is_point(&numbers, lowest));
            assert_int_equal(plan_is_point(&numbers, number), lowest == number);
            if (lowest == number) continue;
            check_same(&x.space, &numbers, number, lowest);
            checked++;
        }
    }
    assert_true(test_saw(checked, 51));
}

/* Every number by itself against the log, which counts whole frames at once: points, and the rules that they break. */
static void test_points_are_counted(void **state) {
    (void)state;
    test_random random = {703};
    int64_t seen[PC_PLAN_RULES] = {0};
    for (long i = 0; i < test_cases(20, 1000); i++) {
        example_space x;
        plan_numbers numbers;
        pc_plan_answer answer;
        pc_plan_request request = {.objective_count = 1, .top = 1, .most_iteration_s = 1e-9, .threads = 1};
        int64_t points = 0, broken[PC_PLAN_RULES] = {0};
        draw_space(&random, 8000, false, &x);
        if (plan_numbers_make(&x.space, &numbers, NULL)) fail();
        for (int64_t number = 0; number < numbers.shapes * numbers.variants; number++) {
            pc_plan_choice choice = plan_choice_of(&numbers, number);
            pc_plan_rule rule;
            if (!plan_is_point(&numbers, number)) continue;
            points++;
            if (plan_check_rules(&x.space, &choice, &rule)) broken[rule]++;
        }
        assert_int_equal(pc_plan_run(&x.space, &request, &answer, NULL), PC_OK);
        assert_int_equal(answer.log.points, points);
        for (int k = 0; k < PC_PLAN_RULES; k++) assert_int_equal(answer.log.broken[k], broken[k]);
        for (int k = 0; k < PC_PLAN_RULES; k++) seen[k] += broken[k];
        pc_plan_answer_free(&answer);
    }
    for (int k = 0; k < PC_PLAN_RULE_SCHEDULE; k++) assert_true(seen[k] > 0);
}

/* ---- outlines made over ---- */

static void check_device(const pc_device_outline *a, const pc_device_outline *b) {
    assert_int_equal(a->parameter_count, b->parameter_count);
    assert_int_equal(a->expert_trained, b->expert_trained);
    assert_int_equal(a->fixed_parameters, b->fixed_parameters);
    assert_int_equal(a->fixed_gradients, b->fixed_gradients);
    assert_int_equal(a->fixed_optimizer, b->fixed_optimizer);
    assert_int_equal(a->fixed_buffers, b->fixed_buffers);
    assert_int_equal(a->step_bytes, b->step_bytes);
    assert_int_equal(a->host_bytes, b->host_bytes);
    assert_int_equal(a->hop_ps, b->hop_ps);
    assert_int_equal(a->step_ps, b->step_ps);
    assert_int_equal(a->slowed_ps, b->slowed_ps);
    assert_int_equal(a->owners.fullest, b->owners.fullest);
}

static void check_chunk(const pc_chunk_outline *a, const pc_chunk_outline *b) {
    assert_int_equal(a->sort, b->sort);
    assert_int_equal(a->buckets, b->buckets);
    assert_int_equal(a->reduce_ps, b->reduce_ps);
    assert_int_equal(a->gather_ps, b->gather_ps);
    assert_true(a->reduce_bytes == b->reduce_bytes && a->gather_bytes == b->gather_bytes);
    assert_int_equal(a->units.count, b->units.count);
    assert_int_equal(a->units.root.gather_ps, b->units.root.gather_ps);
    assert_int_equal(a->units.each.reduce_ps, b->units.each.reduce_ps);
    assert_int_equal(a->units.rest.gather_ps, b->units.rest.gather_ps);
}

static void check_outlines(plan_bounder *bounder, plan_bounder *other, const pc_outline *a, const pc_outline *b) {
    for (int d = 0; d < b->devices; d++) check_device(&a->device[d], &b->device[d]);
    for (int i = 0; i < b->devices * b->chunks; i++) check_chunk(&a->chunks_of[i], &b->chunks_of[i]);
    assert_int_equal(a->norm_ps, b->norm_ps);
    assert_int_equal(a->loss_ps, b->loss_ps);
    assert_int_equal(a->tied_ps, b->tied_ps);
    assert_int_equal(a->replicate.ranks, b->replicate.ranks);
    assert_int_equal(plan_bound_memory(bounder, a), plan_bound_memory(other, b));
    for (int scope = SCOPE_ONE; scope <= SCOPE_SHAPE; scope++) {
        pc_time of_a = -1, of_b = -2;
        assert_int_equal(plan_bound_time(bounder, a, (plan_scope)scope, &of_a, NULL), PC_OK);
        assert_int_equal(plan_bound_time(other, b, (plan_scope)scope, &of_b, NULL), PC_OK);
        assert_int_equal(of_a, of_b);
    }
}

/* The same but for what of the state is where, who shares it, and overlaps. */
static int64_t draw_state(test_random *random, const plan_numbers *numbers, int64_t number) {
    static const plan_digit digits[] = {
        DIGIT_OFFLOAD,     DIGIT_ZERO, DIGIT_SHARD, DIGIT_OVERLAPS_GRADIENTS, DIGIT_OVERLAPS_PARAMETERS,
        DIGIT_OVERLAPS_P2P};
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++)
        number =
            plan_with_digit(numbers, number, digits[i], (int)test_between(random, 0, numbers->radix[digits[i]] - 1));
    return number;
}

typedef struct states_seen {
    long again, zero, shard, host, refused;
} states_seen;

/* Outlines of one cut's states, each made over from the one before, and each made by itself. */
static void check_states(test_random *random, const plan_numbers *numbers, int64_t number, states_seen *seen) {
    plan_bounder bounder = {0}, other = {0};
    pc_outline again = {.devices = 0};
    pc_iteration_spec spec;
    pc_plan_choice before = plan_choice_of(numbers, number);
    for (int i = 0; i < 8; i++) {
        pc_plan_choice choice = plan_choice_of(numbers, draw_state(random, numbers, number));
        pc_plan_rule broken;
        pc_outline made;
        if (plan_check_rules(numbers->space, &choice, &broken)) continue;
        spec = pc_plan_spec(numbers->space, &choice);
        bool is_again = again.devices > 0 && pc_outline_can_restate(&again, &spec);
        seen->refused += again.devices > 0 && !is_again;
        assert_int_equal(plan_bounder_restate(&bounder, numbers->space, choice.base, &spec, &again, NULL), PC_OK);
        assert_int_equal(plan_bounder_outline(&other, numbers->space, choice.base, &spec, &made, NULL), PC_OK);
        check_outlines(&bounder, &other, &again, &made);
        pc_outline_free(&made);
        seen->again += is_again;
        seen->zero += is_again && choice.zero != before.zero;
        seen->shard += is_again && choice.shard_group != before.shard_group;
        seen->host += is_again && (choice.offload ^ before.offload) & PC_OFFLOAD_STATE;
        before = choice;
    }
    pc_outline_free(&again);
    plan_bounder_free(&bounder);
    plan_bounder_free(&other);
}

static void test_outlines_made_over_are_those_made_anew(void **state) {
    (void)state;
    test_random random = {704};
    states_seen seen = {0};
    const int64_t levels[] = {0, 1, 2, 3}, groups[] = {0, 2, 4};
    const int64_t offloads[] = {0, PC_OFFLOAD_OPTIMIZER, PC_OFFLOAD_SELECTIVE | PC_OFFLOAD_OPTIMIZER};
    for (long i = 0; i < test_cases(120, 1000); i++) {
        example_space x;
        plan_numbers numbers;
        int64_t number;
        pc_plan_choice choice;
        draw_space(&random, 40000, i % 4 == 0, &x);
        x.space.zero = (pc_plan_list){levels, 4};
        x.space.shard_group = (pc_plan_list){groups, 3};
        x.space.offload = (pc_plan_list){offloads, 3};
        if (plan_numbers_make(&x.space, &numbers, NULL)) fail();
        for (int k = 0; k < 4 && draw_number(&random, &numbers, &number, &choice); k++)
            check_states(&random, &numbers, number, &seen);
    }
    print_message(
        "%ld made over: %ld of another ZeRO, %ld of other groups, %ld with other state on the host; %ld anew\n",
        seen.again, seen.zero, seen.shard, seen.host, seen.refused);
    assert_true(test_saw(seen.zero, 20) && test_saw(seen.shard, 1) && test_saw(seen.host, 1));
    assert_true(test_saw(seen.refused, 1));
}

/* Another variant of the shape: of the same parts, layers lie alike and take the same memory at most; whether they do
 * not counts in `apart`. */
static void check_variant(plan_bounder *bounder, const plan_numbers *numbers, int64_t number, const pc_outline *first,
                          int64_t first_bytes, long *apart) {
    pc_plan_choice choice = plan_choice_of(numbers, number);
    pc_iteration_spec spec = pc_plan_spec(numbers->space, &choice);
    pc_outline outline;
    if (plan_bounder_outline(bounder, numbers->space, choice.base, &spec, &outline, NULL)) return;
    size_t size = (size_t)outline.parts * sizeof *outline.layers_of_part;
    bool is_alike = memcmp(outline.layers_of_part, first->layers_of_part, size) == 0 &&
                    plan_bound_memory(bounder, &outline) == first_bytes;
    if (pc_outline_has_parts_of(first, &spec)) assert_true(is_alike);
    *apart += !is_alike;
    pc_outline_free(&outline);
}

/* Where tensor ranks lie weighs a layer beside both ends, so that a shape's balanced layers may differ by the order of
 * ranks and by what overlaps. */
static void test_balanced_layers_of_variants(void **state) {
    (void)state;
    static const int64_t layouts[] = {PC_CUT_BALANCED, PC_CUT_BALANCED_MEMORY};
    test_random random = {5};
    long apart = 0;
    for (long i = 0; i < test_cases(3000, 30000); i++) {
        example_space x;
        plan_numbers numbers;
        plan_bounder bounder = {0};
        pc_plan_choice choice;
        pc_outline first;
        int64_t number;
        draw_space(&random, 2000, false, &x);
        x.space.layouts = (pc_plan_list){&layouts[i % 2], 1};
        if (plan_numbers_make(&x.space, &numbers, NULL)) fail();
        if (!draw_number(&random, &numbers, &number, &choice)) continue;
        number -= number % numbers.variants;
        choice = plan_choice_of(&numbers, number);
        pc_iteration_spec spec = pc_plan_spec(&x.space, &choice);
        if (plan_parts_of(&choice) > 1 && !plan_bounder_outline(&bounder, &x.space, choice.base, &spec, &first, NULL)) {
            int64_t bytes = plan_bound_memory(&bounder, &first);
            for (int64_t variant = 1; variant < numbers.variants; variant++)
                check_variant(&bounder, &numbers, number + variant, &first, bytes, &apart);
            pc_outline_free(&first);
        }
        plan_bounder_free(&bounder);
    }
    assert_true(test_saw(apart, 3));
}

/* Layers of each part in each layout, by hand. Of 12 over 4 parts there are 3 3 3 3, or 0 6 6 0, and 14 do not divide;
 * of 10 over 4 parts 2 3 3 2, or 0 5 5 0. Over 2 parts `ends`, listed first, stands for `even` too, and 2 parts are too
 * few for `own`. Over 5 parts, of 12, only `own` divides. Over 9 none does, and the first listed layout stands for all;
 * over 14 `own` is `ends`. */
static void test_layouts_that_differ(void **state) {
    (void)state;
    static const struct {
        int layers, pp;
        const char *points; /* e: even, d: ends, o: own */
    } cases[] = {{12, 4, "eo"}, {10, 4, "do"}, {12, 2, "d"}, {12, 5, "o"}, {12, 9, "d"}, {12, 14, "d"}};
    static const int64_t layouts[] = {PC_CUT_ENDS, PC_CUT_EVEN, PC_CUT_OWN};
    test_random random = {704};
    example_space x;
    draw_space(&random, 4000, false, &x);
    const pc_generator *generators[] = {pc_generator_find("1f1b")};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char points[4] = "";
        int64_t pp[] = {cases[i].pp}, gpus[] = {cases[i].pp}, one[] = {1}, zero[] = {0};
        pc_plan_list ones = {one, 1}, zeros = {zero, 1};
        pc_plan_space space = x.space;
        plan_numbers numbers;
        x.bases[0].spec.model.layers = cases[i].layers;
        space.base_count = space.order_count = space.generator_count = 1;
        space.generators = generators;
        space.gpus = (pc_plan_list){gpus, 1};
        space.pp = (pc_plan_list){pp, 1};
        space.tp = space.chunks = space.microbatch_size = space.global_batch = ones;
        space.recompute = space.zero = space.sequence_parallel = zeros;
        space.overlaps_tp = space.overlaps_gradients = space.overlaps_parameters = space.overlaps_p2p = zeros;
        space.dp.count = space.ep.count = space.etp.count = space.dispatchers.count = 0;
        space.layouts = (pc_plan_list){layouts, 3};
        if (plan_numbers_make(&space, &numbers, NULL)) fail();
        for (int64_t number = 0; number < 3; number++)
            if (plan_is_point(&numbers, number)) strcat(points, (char[]){"deo"[number], '\0'});
        assert_string_equal(points, cases[i].points);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_are_never_above),
        cmocka_unit_test(test_bounds_of_searches),
        cmocka_unit_test(test_bounds_where_searches_lay_out),
        cmocka_unit_test(test_bounds_of_mixed_passes),
        cmocka_unit_test(test_bounds_of_gradients_of_every_pass),
        cmocka_unit_test(test_numbers_that_are_no_points_mean_one),
        cmocka_unit_test(test_points_are_counted),
        cmocka_unit_test(test_layouts_that_differ),
        cmocka_unit_test(test_balanced_layers_of_variants),
        cmocka_unit_test(test_outlines_made_over_are_those_made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
