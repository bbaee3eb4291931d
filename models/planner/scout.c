/* A first look, for who waits: points here and there, of which those that fit by their bounds, with the best bounds,
 * are simulated. It takes a moment by the clock, so what it finds is said and then forgotten: the search does not know.
 */
#include "engine/clock.h"
#include "models/planner/plan_search.h"

#include <math.h>

static const double LOOKS_S = 0.15, SIMULATES_S = 0.3;
enum { SCOUTED = 16, STRIDE = 7919 /* a prime */ };

/* The first shape of the frame that breaks no rule and may fit; false if there is none, or only a schedule that
 * searches. */
static bool look_at_frame(const plan_search *search, plan_bounder *bounder, int64_t frame, plan_candidate *candidate) {
    const plan_numbers *numbers = &search->numbers;
    int64_t first = frame * numbers->of_frame;
    pc_plan_choice choice = plan_choice_of(numbers, first * numbers->variants);
    pc_plan_rule broken;
    plan_bounds bounds;
    if (choice.generator->searches || plan_check_frame(search->space, &choice, &broken)) return false;
    for (int64_t i = 0; i < numbers->of_frame; i++) {
        candidate->rank.number = (first + i) * numbers->variants;
        choice = plan_choice_of(numbers, candidate->rank.number);
        if (plan_check_rules(search->space, &choice, &broken) ||
            plan_bound_choice(bounder, search->space, &choice, &bounds, NULL) ||
            bounds.memory_bytes > bounds.capacity_bytes)
            continue;
        candidate->bound_s = bounds.time_s;
        candidate->rank =
            plan_rank_of(&search->ranking, &choice, candidate->rank.number, bounds.time_s, bounds.memory_bytes);
        return true;
    }
    return false;
}

static void look_around(const plan_search *search, plan_heap *heap) {
    plan_bounder bounder = {0};
    int64_t frames = search->numbers.frames, step = STRIDE % frames;
    double until = pc_now_s() + LOOKS_S;
    while (frames % (step ? step : frames) == 0 && frames > 1 && step != 1) step = step > 1 ? step - 1 : 1;
    for (int64_t i = 0, frame = 0; i < frames && pc_now_s() < until; i++, frame = (frame + step) % frames) {
        plan_candidate candidate = {.is_rest = false};
        if (look_at_frame(search, &bounder, frame, &candidate)) plan_heap_offer(heap, &candidate);
    }
    plan_bounder_free(&bounder);
}

pc_code plan_scout(const plan_search *search, pc_error *error) {
    const pc_plan_progress *progress = &search->request->progress;
    plan_heap heap;
    plan_ranked best = {.found.number = -1};
    if (!progress->better) return PC_OK;
    pc_code code = plan_heap_make(&heap, &search->ranking, SCOUTED, error);
    if (code) return code;
    look_around(search, &heap);
    plan_heap_sort(&heap);
    double until = pc_now_s() + SIMULATES_S;
    for (int64_t i = 0; i < heap.count && !code && pc_now_s() < until; i++) {
        const pc_plan_choice choice = plan_choice_of(&search->numbers, heap.list[i].rank.number);
        pc_plan_fact fact;
        code = plan_check_stop(search, error);
        if (!code) code = plan_simulate(search, &choice, &fact, error);
        if (code || fact.status) continue;
        plan_ranked plan = plan_ranked_of(search, &heap.list[i], &fact);
        if (best.found.number >= 0 && plan_rank_compare(&search->ranking, &plan.rank, &best.rank) >= 0) continue;
        best = plan;
        progress->better(progress->self, &best.found);
    }
    plan_heap_free(&heap);
    return code;
}
