/* The planner against simulating every point: the same plans, in the same order, to the bit, whatever is asked for. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/planner/bounder.h"
#include "models/planner/plan_search.h"
#include "models/planner/planner.h"
#include "models/planner/space.h"
#include "tests/planner_example.h"

#include <math.h>
#include <pthread.h>

static pc_plan_answer run_plan(const pc_plan_space *space, const pc_plan_request *request) {
    pc_plan_answer answer;
    pc_error error = {0};
    if (pc_plan_run(space, request, &answer, &error)) fail_msg("%s", error.message);
    return answer;
}

/* Field by field: what lies between fields is nobody's. */
static bool is_same_choice(const pc_plan_choice *a, const pc_plan_choice *b) {
    for (int i = 0; i < PC_AXES; i++)
        if (a->order.axis[i] != b->order.axis[i]) return false;
    return a->base == b->base && a->gpus == b->gpus && a->global_batch == b->global_batch && a->tp == b->tp &&
           a->pp == b->pp && a->dp == b->dp && a->cp == b->cp && a->ep == b->ep && a->etp == b->etp &&
           a->cp_comm == b->cp_comm && a->dispatcher == b->dispatcher && a->chunks == b->chunks &&
           a->layout == b->layout && a->microbatch_size == b->microbatch_size && a->microbatches == b->microbatches &&
           a->generator == b->generator && a->recompute == b->recompute && a->offload == b->offload &&
           a->zero == b->zero && a->shard_group == b->shard_group && a->sequence_parallel == b->sequence_parallel &&
           a->overlaps_tp == b->overlaps_tp && a->overlaps_gradients == b->overlaps_gradients &&
           a->overlaps_parameters == b->overlaps_parameters && a->overlaps_p2p == b->overlaps_p2p;
}

static void check_same_plans(const pc_plan_answer *a, const pc_plan_answer *b) {
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        const pc_plan_found *found = &a->found[i], *y = &b->found[i];
        assert_int_equal(found->number, y->number);
        assert_true(is_same_choice(&found->choice, &y->choice));
        assert_true(found->iteration_s == y->iteration_s && found->sequences_per_s == y->sequences_per_s);
        assert_int_equal(found->memory_bytes, y->memory_bytes);
        assert_true(found->cost == y->cost && found->mfu == y->mfu && found->bound_s == y->bound_s);
        assert_memory_equal(&found->exposed, &y->exposed, sizeof found->exposed);
        assert_int_equal(found->memory_limits, y->memory_limits);
    }
}

static void check_log(const pc_plan_log *log) {
    assert_true(log->broken_rule >= 0 && log->over_memory >= 0 && log->too_slow >= 0);
    assert_int_equal(log->points, log->broken_rule + log->over_memory + log->too_slow + log->simulated);
    int64_t broken = 0;
    for (int i = 0; i < PC_PLAN_RULES; i++) broken += log->broken[i];
    assert_int_equal(log->broken_rule, broken);
    assert_true(log->simulated_over_memory + log->simulated_infeasible <= log->simulated);
    bool has_bounds = log->simulated_over_memory + log->simulated_infeasible < log->simulated;
    assert_int_equal(has_bounds, !isnan(log->mean_bound));
    /* A mean of equal numbers is rounded, and may be a last bit below each. */
    if (has_bounds) assert_true(log->worst_bound <= log->mean_bound * (1 + 1e-14) && log->mean_bound <= 1);
}

static pc_plan_request draw_request(test_random *random) {
    pc_plan_request request = {.objective_count = (int)test_between(random, 1, 3), .threads = 1};
    int first = (int)test_between(random, 0, 2), step = (int)test_between(random, 1, 2);
    for (int i = 0; i < PC_PLAN_OBJECTIVES; i++)
        request.objectives[i] = (pc_plan_objective)((first + i * step) % PC_PLAN_OBJECTIVES);
    if (test_between(random, 0, 1)) request.objective_count = 1;
    request.top = (int)test_between(random, request.objective_count == 1, 6);
    request.all_variants = test_between(random, 0, 2) == 0;
    return request;
}

/* Limits between the best and the worst of what there is. */
static void draw_limits(test_random *random, const pc_plan_space *space, pc_plan_request *request) {
    pc_plan_request all = {.objectives = {PC_PLAN_THROUGHPUT}, .objective_count = 1, .top = 1 << 20, .threads = 1};
    all.all_variants = true;
    if (test_between(random, 0, 2)) return;
    pc_plan_answer answer = run_plan(space, &all);
    if (answer.count > 0) {
        const pc_plan_found *found = &answer.found[test_between(random, 0, answer.count - 1)];
        if (test_between(random, 0, 1))
            request->most_iteration_s = found->iteration_s;
        else
            request->most_cost = found->cost;
    }
    pc_plan_answer_free(&answer);
}

/* Whether this choice would be faster than the plan, by its bound, and does not fit. */
static bool is_faster_and_too_large(const pc_plan_space *space, pc_plan_choice choice, const pc_plan_found *than) {
    plan_bounder bounder = {0};
    plan_bounds bounds;
    pc_plan_rule broken;
    pc_error error;
    int64_t sequences = choice.dp * choice.microbatch_size;
    if (choice.global_batch % sequences) return false;
    choice.microbatches = choice.global_batch / sequences;
    if (plan_check_rules(space, &choice, &broken)) return false;
    bool is_bounded = !plan_bound_choice(&bounder, space, &choice, &bounds, &error);
    plan_bounder_free(&bounder);
    return is_bounded && bounds.time_s < than->iteration_s && bounds.memory_bytes > bounds.capacity_bytes;
}

/* planner.h, memory_limits, over the choice itself: less recomputation, a larger microbatch, more chunks, less
 * sharding.
 */
/* Of none, half of the activations, all, the optimizer, and the last two. */
static bool offloads_less(int32_t other, int32_t kinds) {
    if (kinds == (PC_OFFLOAD_FULL | PC_OFFLOAD_OPTIMIZER)) return other != kinds;
    return kinds != 0 &&
           (other == 0 || (kinds == PC_OFFLOAD_FULL && other & (PC_OFFLOAD_SELECTIVE | PC_OFFLOAD_TENSORS)));
}

static bool should_be_limited(const pc_plan_space *space, const pc_plan_found *found) {
    bool limited = false;
    for (int i = 0; i < space->recompute.count; i++) {
        pc_plan_choice choice = found->choice;
        choice.recompute = (pc_recompute)space->recompute.values[i];
        limited =
            limited || (choice.recompute < found->choice.recompute && is_faster_and_too_large(space, choice, found));
    }
    for (int i = 0; i < space->microbatch_size.count; i++) {
        pc_plan_choice choice = found->choice;
        choice.microbatch_size = space->microbatch_size.values[i];
        limited = limited || (choice.microbatch_size > found->choice.microbatch_size &&
                              is_faster_and_too_large(space, choice, found));
    }
    for (int i = 0; i < space->chunks.count; i++) {
        pc_plan_choice choice = found->choice;
        choice.chunks = (int)space->chunks.values[i];
        limited = limited || (choice.chunks > found->choice.chunks && is_faster_and_too_large(space, choice, found));
    }
    for (int i = 0; i < space->zero.count; i++) {
        pc_plan_choice choice = found->choice;
        choice.zero = (int)space->zero.values[i];
        limited = limited || (choice.zero < found->choice.zero && is_faster_and_too_large(space, choice, found));
    }
    for (int i = 0; i < space->offload.count; i++) {
        pc_plan_choice choice = found->choice;
        choice.offload = (int32_t)space->offload.values[i];
        limited = limited || (offloads_less(choice.offload, found->choice.offload) &&
                              is_faster_and_too_large(space, choice, found));
    }
    return limited;
}

/* So that memory limits for one reason and no other: 1 leaves the microbatch, 2 sharding, 3 recomputation, 0 all. */
static void leave_one_reason(long reason, pc_plan_space *space) {
    if (reason == 0) return;
    space->chunks.count = 1;
    if (reason != 1) space->microbatch_size.count = 1;
    if (reason != 2) space->zero.count = 1;
    if (reason != 3) space->recompute.count = 1;
}

static void test_equals_simulating_every_point(void **state) {
    (void)state;
    test_random random = {720};
    int64_t simulated = 0, points = 0, found = 0, limited = 0, shared_out = 0, exchanged = 0;
    for (long i = 0; i < test_cases(600, 1000); i++) {
        example_space x;
        draw_space(&random, i % 6 == 0 ? 600 : 4000, i % 6 == 0, &x);
        leave_one_reason(i % 4, &x.space);
        pc_plan_request request = draw_request(&random);
        draw_limits(&random, &x.space, &request);
        pc_plan_answer searched = run_plan(&x.space, &request);
        request.exhaustive = true;
        pc_plan_answer all = run_plan(&x.space, &request);
        check_same_plans(&searched, &all);
        check_log(&searched.log);
        check_log(&all.log);
        assert_int_equal(searched.log.points, all.log.points);
        assert_int_equal(searched.log.broken_rule, all.log.broken_rule);
        assert_int_equal(all.log.too_slow + all.log.over_memory, 0);
        simulated += searched.log.simulated;
        points += all.log.simulated;
        found += all.count;
        for (int64_t k = 0; k < all.count; k++) {
            limited += all.found[k].memory_limits;
            shared_out += all.found[k].choice.ep > 1;
            exchanged += all.found[k].choice.cp > 1 && all.found[k].choice.cp_comm >= PC_CP_A2A;
            assert_int_equal(all.found[k].memory_limits, should_be_limited(&x.space, &all.found[k]));
        }
        pc_plan_answer_free(&searched);
        pc_plan_answer_free(&all);
    }
    print_message(
        "%lld simulated of %lld points; %lld plans, %lld share out experts, %lld exchange heads, memory limits %lld\n",
        (long long)simulated, (long long)points, (long long)found, (long long)shared_out, (long long)exchanged,
        (long long)limited);
    test_count("plans.searched", test_cases(600, 1000));
    test_count("plans.points", (long)points);
    assert_true(test_saw(shared_out, 5) && test_saw(exchanged, 5));
    assert_true(test_saw(found, 1) && test_saw(limited, 1) && test_saw(points - simulated, 1));
}

/* The best of every group are those of a search of the group alone; bases that are no group share one list. */
/* With schedules that search among them, whose close bounds leave most unsimulated. */
static void test_equals_with_searches(void **state) {
    (void)state;
    test_random random = {2026};
    int64_t simulated = 0, points = 0, found = 0, searched = 0;
    for (long i = 0; i < test_cases(60, 400); i++) {
        example_space x;
        draw_searched_space(&random, 400, i % 3 > 0, &x);
        pc_plan_request request = draw_request(&random);
        request.threads = (int)test_between(&random, 1, 3);
        pc_plan_answer by_bounds = run_plan(&x.space, &request);
        request.exhaustive = true;
        pc_plan_answer all = run_plan(&x.space, &request);
        check_same_plans(&by_bounds, &all);
        check_log(&by_bounds.log);
        assert_int_equal(by_bounds.log.points, all.log.points);
        simulated += by_bounds.log.simulated;
        points += all.log.simulated;
        found += all.count;
        for (int64_t k = 0; k < all.count; k++) searched += all.found[k].choice.generator->searches;
        pc_plan_answer_free(&by_bounds);
        pc_plan_answer_free(&all);
    }
    print_message("%lld simulated of %lld points; %lld plans, %lld of schedules that search\n", (long long)simulated,
                  (long long)points, (long long)found, (long long)searched);
    assert_true(test_saw(searched, 5) && test_saw(points - simulated, 1));
}

static void test_groups_have_their_own_best(void **state) {
    (void)state;
    test_random random = {2024};
    int64_t beside = 0;
    for (long i = 0; i < test_cases(80, 300); i++) {
        example_space x;
        int64_t of_group[SPACE_BASES_MAX] = {0};
        draw_space(&random, 2000, false, &x);
        pc_plan_request request = draw_request(&random);
        request.objective_count = 1;
        request.top = (int)test_between(&random, 1, 3);
        for (int base = 0; base < x.space.base_count; base++) x.bases[base].group = base;
        pc_plan_answer all = run_plan(&x.space, &request);
        for (int base = 0; base < x.space.base_count; base++) {
            pc_plan_space one = x.space;
            one.bases = &x.bases[base];
            one.base_count = 1;
            pc_plan_answer alone = run_plan(&one, &request);
            for (int64_t k = 0; k < all.count; k++) {
                if (all.found[k].choice.base != base) continue;
                assert_true(of_group[base] < alone.count);
                assert_true(all.found[k].iteration_s == alone.found[of_group[base]].iteration_s);
                assert_int_equal(all.found[k].memory_bytes, alone.found[of_group[base]++].memory_bytes);
            }
            assert_int_equal(of_group[base], alone.count);
            pc_plan_answer_free(&alone);
        }
        beside += of_group[0] > 0 && of_group[1] > 0;
        pc_plan_answer_free(&all);
    }
    assert_true(test_saw(beside, 1));
}

static bool is_same_cut(const pc_plan_choice *a, const pc_plan_choice *b) {
    return a->base == b->base && a->gpus == b->gpus && a->tp == b->tp && a->pp == b->pp && a->dp == b->dp &&
           a->cp == b->cp && a->ep == b->ep && a->etp == b->etp;
}

/* Of all plans, best first, those that are the first of their cut: the answer to a request for so many cuts. */
static void test_one_plan_a_cut(void **state) {
    (void)state;
    test_random random = {715};
    int64_t cuts = 0, plans = 0, front = 0;
    for (long i = 0; i < test_cases(80, 500); i++) {
        example_space x;
        draw_space(&random, 4000, false, &x);
        pc_plan_request request = {.objectives = {(pc_plan_objective)(i % 3)}, .objective_count = 1, .threads = 1};
        request.top = 1 << 20;
        request.all_variants = true;
        pc_plan_answer every = run_plan(&x.space, &request);
        request.top = (int)test_between(&random, 1, 4);
        request.all_variants = false;
        pc_plan_answer found = run_plan(&x.space, &request);
        int64_t next = 0;
        for (int64_t k = 0; k < every.count && next < request.top; k++) {
            bool is_first = true;
            for (int64_t j = 0; j < k; j++)
                is_first = is_first && !is_same_cut(&every.found[j].choice, &every.found[k].choice);
            if (!is_first) continue;
            assert_true(next < found.count);
            assert_int_equal(found.found[next].number, every.found[k].number);
            next++;
        }
        assert_int_equal(found.count, next);
        cuts += found.count;
        plans += every.count;
        pc_plan_answer_free(&found);
        request = (pc_plan_request){.objectives = {0, 1}, .objective_count = 2, .threads = 1};
        found = run_plan(&x.space, &request);
        request.all_variants = true;
        pc_plan_answer variants = run_plan(&x.space, &request);
        check_same_plans(&found, &variants); /* a front has what nothing beats, of one cut or of several */
        front += found.count;
        pc_plan_answer_free(&found);
        pc_plan_answer_free(&variants);
        pc_plan_answer_free(&every);
    }
    assert_true(test_saw(cuts, 20) && test_saw(plans, 10 * cuts) && test_saw(front, 10));
}

/* ---- progress ---- */

typedef struct heard {
    pthread_t thread;
    bool is_alone;       /* of several threads the others may take a whole phase */
    pc_plan_phase phase; /* the last */
    int64_t done, total, times[2];
} heard;

static void hear(void *self, pc_plan_phase phase, int64_t done, int64_t total) {
    heard *x = self;
    assert_true(pthread_equal(x->thread, pthread_self()));
    assert_true(phase == PC_PLAN_BOUNDS || phase == PC_PLAN_SIMULATION);
    assert_true(0 <= done && done < total);
    bool goes_on = x->times[phase] > 0 && x->phase == phase;
    if (goes_on && x->is_alone) assert_true(done > x->done && total <= x->total);
    *x = (heard){x->thread, x->is_alone, phase, done, total, {x->times[0], x->times[1]}};
    x->times[phase]++;
}

/* Shapes in their order, then plans, no more of them than it was said that there may be. */
static void test_progress_is_said(void **state) {
    (void)state;
    test_random random = {712};
    int64_t most = 0, wanted = test_part(0, PLAN_KEPT_FIRST + 1); /* in full there is a second pass */
    for (int i = 0; i < 6 || (i < 400 && most < wanted); i++) {
        int threads = i % 2 ? 4 : 1;
        example_space x;
        draw_space(&random, i < 4 ? 4000 : 20000, false, &x);
        heard h = {.thread = pthread_self(), .is_alone = threads == 1};
        pc_plan_request request = {
            .objective_count = 1, .top = 3, .threads = threads, .progress = {.say = hear, .self = &h}};
        request.exhaustive = i >= 4;
        pc_plan_answer with = run_plan(&x.space, &request);
        request.progress = (pc_plan_progress){0};
        pc_plan_answer without = run_plan(&x.space, &request);
        check_same_plans(&with, &without);
        if (h.is_alone) {
            assert_true(h.times[PC_PLAN_BOUNDS] > 0);
            assert_int_equal(h.times[PC_PLAN_SIMULATION], with.log.simulated);
            bool was_simulating = h.phase == PC_PLAN_SIMULATION;
            if (was_simulating) assert_int_equal(h.done, with.log.simulated - 1);
            if (was_simulating) assert_true(h.total >= with.log.simulated);
        }
        if (with.log.simulated > most && h.is_alone) most = with.log.simulated;
        pc_plan_answer_free(&with);
        pc_plan_answer_free(&without);
    }
    assert_true(most >= wanted);
}

/* What differs is the clock's alone. */
static void check_same_log(const pc_plan_log *a, const pc_plan_log *b) {
    bool has_bounds = !isnan(a->mean_bound);
    assert_int_equal(a->points, b->points);
    assert_int_equal(a->broken_rule, b->broken_rule);
    for (int i = 0; i < PC_PLAN_RULES; i++) assert_int_equal(a->broken[i], b->broken[i]);
    assert_int_equal(a->over_memory, b->over_memory);
    assert_int_equal(a->too_slow, b->too_slow);
    assert_int_equal(a->simulated, b->simulated);
    assert_int_equal(a->simulated_over_memory, b->simulated_over_memory);
    assert_int_equal(a->simulated_infeasible, b->simulated_infeasible);
    assert_int_equal(has_bounds, !isnan(b->mean_bound));
    if (has_bounds) assert_true(a->mean_bound == b->mean_bound && a->worst_bound == b->worst_bound);
}

static void test_threads_do_not_show(void **state) {
    (void)state;
    test_random random = {712};
    for (long i = 0; i < test_cases(4, 40); i++) {
        example_space x;
        draw_space(&random, 4000, false, &x);
        pc_plan_request request = draw_request(&random);
        pc_plan_answer one = run_plan(&x.space, &request);
        for (int threads = 2; threads <= 3; threads++) {
            request.threads = threads;
            pc_plan_answer more = run_plan(&x.space, &request);
            check_same_plans(&one, &more);
            check_same_log(&one.log, &more.log);
            pc_plan_answer_free(&more);
        }
        pc_plan_answer_free(&one);
    }
}

/* A plan is what its spec gives: pc_plan_spec and nothing else. */
static void test_a_plan_is_its_iteration(void **state) {
    (void)state;
    test_random random = {713};
    int64_t checked = 0;
    for (long i = 0; i < test_cases(40, 100); i++) {
        example_space x;
        draw_space(&random, 2000, false, &x);
        pc_plan_request request = {.objectives = {PC_PLAN_COST}, .objective_count = 1, .top = 3, .threads = 1};
        pc_plan_answer answer = run_plan(&x.space, &request);
        for (int64_t k = 0; k < answer.count; k++) {
            const pc_plan_found *plan = &answer.found[k];
            const pc_plan_choice *choice = &plan->choice;
            pc_iteration_spec spec = pc_plan_spec(&x.space, choice);
            pc_iteration iteration;
            assert_int_equal(pc_iteration_run(&spec, NULL, false, &iteration, NULL), PC_OK);
            assert_int_equal(iteration.status, PC_RUN_OK);
            assert_true(iteration.iteration_s == plan->iteration_s && iteration.mfu == plan->mfu);
            assert_int_equal((int64_t)choice->tp * choice->pp * choice->dp * choice->cp, choice->gpus);
            assert_int_equal(choice->microbatches * choice->microbatch_size * choice->dp, choice->global_batch);
            /* GPU-hours times their price, over the tokens of an iteration, times a million. */
            double tokens = (double)choice->global_batch * (double)spec.cut.seq_len;
            double expected =
                plan->iteration_s / 3600 * (double)choice->gpus * x.bases[choice->base].gpu_hour_price / tokens * 1e6;
            assert_true(fabs(plan->cost - expected) <= 1e-12 * expected);
            if (k > 0) assert_true(answer.found[k - 1].cost <= plan->cost);
            pc_iteration_free(&iteration);
            checked++;
        }
        pc_plan_answer_free(&answer);
    }
    assert_true(test_saw(checked, 6));
}

/* Nothing on a front is as good as another in both, and better in one. */
static void test_a_front_has_no_plan_that_another_beats(void **state) {
    (void)state;
    test_random random = {714};
    int64_t longest = 0;
    for (long i = 0; i < test_cases(20, 100); i++) {
        example_space x;
        draw_space(&random, 4000, false, &x);
        pc_plan_request request = {
            .objectives = {PC_PLAN_THROUGHPUT, PC_PLAN_MEMORY}, .objective_count = 2, .threads = 1};
        pc_plan_answer answer = run_plan(&x.space, &request);
        for (int64_t k = 1; k < answer.count; k++) {
            assert_true(answer.found[k].sequences_per_s < answer.found[k - 1].sequences_per_s);
            assert_true(answer.found[k].memory_bytes < answer.found[k - 1].memory_bytes);
        }
        if (answer.count > longest) longest = answer.count;
        pc_plan_answer_free(&answer);
    }
    assert_true(longest > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_simulating_every_point),
        cmocka_unit_test(test_equals_with_searches),
        cmocka_unit_test(test_groups_have_their_own_best),
        cmocka_unit_test(test_one_plan_a_cut),
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_progress_is_said),
        cmocka_unit_test(test_a_plan_is_its_iteration),
        cmocka_unit_test(test_a_front_has_no_plan_that_another_beats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
