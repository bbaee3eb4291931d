#include "models/planner/planner.h"

#include "engine/alloc.h"
#include "engine/clock.h"
#include "engine/order.h"
#include "engine/parallel.h"
#include "models/planner/plan_search.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void plan_say_progress(const plan_search *search, int worker, pc_plan_phase phase, int64_t done, int64_t total) {
    const pc_plan_progress *progress = &search->request->progress;
    if (progress->say && worker == 0) progress->say(progress->self, phase, done, total); /* pc_parallel_run */
}

pc_code plan_check_stop(const plan_search *search, pc_error *error) {
    const pc_plan_progress *progress = &search->request->progress;
    if (!progress->is_stopped || !progress->is_stopped(progress->self)) return PC_OK;
    return pc_error_set(error, PC_ERROR_STOPPED, "the search was stopped");
}

/* ---- one plan ---- */

/* A candidate simulated, by whoever: what ranks tell each other of it is `done`. */
typedef struct plan_done {
    pc_plan_fact fact;
    int64_t is_kept; /* it was known */
} plan_done;

typedef struct plan_trial {
    plan_candidate candidate;
    pc_code code;
    pc_error error;
} plan_trial;

static int64_t fullest(const pc_iteration *iteration) {
    int64_t most = 0;
    for (int d = 0; d < iteration->devices; d++)
        if (iteration->memory[d].peak_bytes > most) most = iteration->memory[d].peak_bytes;
    return most;
}

static pc_plan_fact fact_of(const pc_iteration *iteration) {
    if (iteration->status) return (pc_plan_fact){.status = iteration->status};
    return (pc_plan_fact){.memory_bytes = fullest(iteration),
                          .iteration_s = iteration->iteration_s,
                          .sequences = iteration->sequences,
                          .mfu = iteration->mfu,
                          .exposed = iteration->exposed};
}

plan_ranked plan_ranked_of(const plan_search *search, const plan_candidate *candidate, const pc_plan_fact *fact) {
    const pc_plan_choice choice = plan_choice_of(&search->numbers, candidate->rank.number);
    plan_ranked plan = {.found = {
                            .number = candidate->rank.number,
                            .choice = choice,
                            .iteration_s = fact->iteration_s,
                            .sequences_per_s = fact->sequences / fact->iteration_s,
                            .memory_bytes = fact->memory_bytes,
                            .cost = plan_cost_of(&search->ranking, &choice, fact->iteration_s),
                            .exposed = fact->exposed,
                            .mfu = fact->mfu,
                            .bound_s = candidate->bound_s,
                        }};
    plan.rank = plan_rank_of(&search->ranking, &choice, candidate->rank.number, fact->iteration_s, fact->memory_bytes);
    return plan;
}

/* What cannot be counted cannot be: its iteration has no time. */
pc_code plan_simulate(const plan_search *search, const pc_plan_choice *choice, pc_plan_fact *fact, pc_error *error) {
    pc_iteration_spec spec = pc_plan_spec(search->space, choice);
    pc_iteration iteration;
    spec.memo = search->memo;
    spec.is_trial = true;
    pc_code code = pc_iteration_run(&spec, search->space->bases[choice->base].cost, false, &iteration, error);
    *fact = (pc_plan_fact){.status = PC_RUN_INFEASIBLE};
    if (code) return code == PC_ERROR_INPUT ? PC_OK : code;
    *fact = fact_of(&iteration);
    pc_iteration_free(&iteration);
    return PC_OK;
}

static void run_trial(const plan_search *search, plan_trial *trial, plan_done *done) {
    const pc_plan_choice choice = plan_choice_of(&search->numbers, trial->candidate.rank.number);
    const pc_iteration_spec spec = pc_plan_spec(search->space, &choice);
    done->is_kept = plan_find_fact(search, &choice, &spec, PC_PLAN_SIMULATED, &done->fact);
    if (!done->is_kept) trial->code = plan_simulate(search, &choice, &done->fact, &trial->error);
}

/* ---- rounds ---- */

/* The first rounds are small: most often they already have the best plan, and what comes behind is ruled out. Later
 * ones stay so: what one of a cut's plans takes rules others of the cut out, but not in its own round. */
enum { ROUND_LEAST = 16, ROUND_MOST = 64 };

typedef struct plan_round {
    const plan_search *search;
    plan_trial *trials;
    plan_done *results; /* theirs */
    int64_t done, left; /* simulated before this round; in it, and behind it */
} plan_round;

static void run_one(void *context, int worker, int64_t index) {
    const plan_round *x = context;
    plan_say_progress(x->search, worker, PC_PLAN_SIMULATION, x->done + index, x->done + x->left);
    plan_trial *trial = &x->trials[index];
    trial->code = plan_check_stop(x->search, &trial->error);
    if (!trial->code && plan_is_mine(x->search, index)) run_trial(x->search, trial, &x->results[index]);
}

static bool is_within_limits(const pc_plan_request *request, const pc_plan_found *found) {
    if (request->most_iteration_s > 0 && found->iteration_s > request->most_iteration_s) return false;
    return !(request->most_cost > 0) || found->cost <= request->most_cost;
}

static pc_code keep_trial(const plan_search *search, const plan_trial *trial, const plan_done *done, pc_error *error) {
    return done->is_kept ? PC_OK
                         : plan_keep_fact(search, trial->candidate.rank.number, PC_PLAN_SIMULATED, &done->fact, error);
}

/* Says the best plan where that is another one than `before`. */
static void say_better(const plan_search *search, int64_t before) {
    const pc_plan_progress *progress = &search->request->progress;
    if (!progress->better || search->best.count == 0 || search->best.list[0].found.number == before) return;
    progress->better(progress->self, &search->best.list[0].found);
}

/* The log's means are added up in the order of the candidates, as everything. */
static pc_code take_trial(plan_search *search, const plan_trial *trial, const plan_done *done, pc_error *error) {
    pc_plan_log *log = &search->log;
    pc_code code = keep_trial(search, trial, done, error);
    if (code) return code;
    log->simulated++;
    log->simulated_over_memory += done->fact.status == PC_RUN_OUT_OF_MEMORY;
    log->simulated_infeasible += done->fact.status == PC_RUN_INFEASIBLE;
    if (done->fact.status) return PC_OK;
    plan_ranked plan = plan_ranked_of(search, &trial->candidate, &done->fact);
    double part = plan.found.bound_s / plan.found.iteration_s;
    log->mean_bound += part; /* the sum, until the end */
    if (!(part >= log->worst_bound)) log->worst_bound = part;
    if (!is_within_limits(search->request, &plan.found) || plan_best_rejects(&search->best, &plan.rank)) return PC_OK;
    return plan_best_add(&search->best, &plan, error);
}

/* The first error of this rank's own; then what all ranks found, which is the same for all. */
static pc_code take_round(plan_search *search, plan_round *x, int64_t count, pc_error *error) {
    pc_code code = PC_OK;
    int64_t before = search->best.count > 0 ? search->best.list[0].found.number : -1;
    for (int64_t i = 0; !code && i < count; i++)
        if (x->trials[i].code) code = pc_error_copy(error, &x->trials[i].error);
    code = plan_share_items(search, code, x->results, sizeof *x->results, count, error);
    for (int64_t i = 0; !code && i < count; i++) code = take_trial(search, &x->trials[i], &x->results[i], error);
    if (!code) say_better(search, before);
    return code;
}

static pc_code fill_round(plan_queue *queue, int64_t most, plan_trial *trials, int64_t *count, pc_error *error) {
    plan_candidate next[ROUND_MOST];
    pc_code code = plan_queue_next(queue, most, next, count, error);
    for (int64_t i = 0; !code && i < *count; i++) trials[i] = (plan_trial){.candidate = next[i]};
    return code;
}

static pc_code simulate(plan_search *search, const plan_heap *heap, pc_error *error) {
    plan_round x = {.search = search,
                    .trials = pc_alloc(ROUND_MOST, sizeof *x.trials),
                    .results = pc_alloc(ROUND_MOST, sizeof *x.results)};
    plan_queue queue = {.search = search};
    int64_t size = ROUND_LEAST, count = 1;
    pc_code code = x.trials && x.results ? PC_OK : pc_error_no_memory(error);
    if (!code) code = plan_queue_make(search, heap, &queue, error);
    while (!code && count > 0) {
        code = fill_round(&queue, size, x.trials, &count, error);
        if (code) break;
        x.done = search->log.simulated;
        x.left = count + plan_queue_left(&queue);
        pc_parallel_run(search->threads, count, run_one, &x);
        code = take_round(search, &x, count, error);
        if (size < ROUND_MOST) size *= 2;
    }
    plan_queue_free(&queue);
    pc_free(x.trials);
    pc_free(x.results);
    return code;
}

/* ---- the search ---- */

/* Whether some point that was left out may still be among the best. */
static bool has_more(const plan_search *search, const plan_heap *heap) {
    bool is_exhaustive = search->request->exhaustive;
    for (int64_t i = 0; i < heap->count; i++)
        if (heap->list[i].is_rest && !plan_best_rejects(&search->best, &heap->list[i].rank)) return true;
    return heap->is_over && (is_exhaustive || !plan_best_is_full(&search->best, &heap->list[heap->count - 1].rank));
}

/* All that was kept is done, simulated or ruled out. */
static pc_code note_scouted(plan_search *search, const plan_heap *heap, pc_error *error) {
    search->scouted = pc_alloc((size_t)heap->count, sizeof *search->scouted);
    if (!search->scouted) return pc_error_no_memory(error);
    for (int64_t i = 0; i < heap->count; i++)
        if (!heap->list[i].is_rest) search->scouted[search->scouted_count++] = heap->list[i].rank.number;
    if (search->scouted_count > 0)
        qsort(search->scouted, (size_t)search->scouted_count, sizeof *search->scouted, pc_compare_integers);
    return PC_OK;
}

static void note_dropped(plan_search *search, const plan_heap *heap) {
    search->has_rests = true;
    search->dropped = heap->is_over ? heap->list[heap->count - 1].rank.key[0] : INFINITY;
}

/* The next pass begins behind this one's last candidate; behind one that kept few of each frame, anew. */
static pc_code end_pass(plan_search *search, const plan_heap *heap, pc_error *error) {
    pc_code code = PC_OK;
    if (search->kept_of_frame > 0) {
        note_dropped(search, heap);
        code = note_scouted(search, heap, error);
    } else if (heap->count > 0) {
        search->has_floor = true;
        search->floor = heap->list[heap->count - 1].rank;
    }
    search->passes++;
    return code;
}

/* Schedules of one stage. */
static pc_code search_stage(plan_search *search, pc_error *error) {
    bool is_over = true;
    pc_code code = PC_OK;
    while (!code && is_over) {
        plan_heap heap;
        double begin = pc_now_s();
        bool is_first = search->passes == 0, has_few = search->best.numbers && !search->request->exhaustive;
        search->kept = is_first ? PLAN_KEPT_FIRST : PLAN_KEPT;
        search->kept_of_frame = is_first && has_few ? PLAN_KEPT_OF_FRAME : 0;
        code = plan_walk(search, &heap, error);
        if (code) break;
        double bounded = pc_now_s();
        code = simulate(search, &heap, error);
        search->log.bound_s += bounded - begin;
        search->log.simulate_s += pc_now_s() - bounded;
        is_over = has_more(search, &heap);
        if (!code) code = end_pass(search, &heap, error);
        plan_heap_free(&heap);
    }
    return code;
}

static bool has_stage(const pc_plan_space *space, bool is_searched) {
    bool has = false;
    for (int i = 0; i < space->generator_count; i++) has = has || space->generators[i]->searches == is_searched;
    return has;
}

static pc_code search_all(plan_search *search, pc_error *error) {
    pc_code code = PC_OK;
    for (int stage = 0; !code && stage < 2; stage++) {
        if (!has_stage(search->space, stage)) continue;
        pc_free(search->scouted);
        search->scouted = NULL;
        search->scouted_count = 0;
        search->has_floor = search->has_rests = false;
        search->passes = 0;
        search->is_searched = stage;
        code = search_stage(search, error);
    }
    return code;
}

/* ---- what limits them ---- */

/* Whether another value of one digit would be faster than the plan, by its bound, and does not fit. */
static pc_code try_other(const plan_search *search, plan_bounder *bounder, const pc_plan_found *found, plan_digit digit,
                         int value, bool *limits, pc_error *error) {
    int64_t number = plan_with_digit(&search->numbers, found->number, digit, value);
    pc_plan_choice choice = plan_choice_of(&search->numbers, number);
    plan_bounds bounds;
    pc_plan_rule broken;
    pc_error ignored = {0};
    pc_code code = plan_check_rules(search->space, &choice, &broken);
    if (!code) code = plan_bound_choice(bounder, search->space, &choice, &bounds, &ignored);
    if (code == PC_ERROR_INPUT) return PC_OK;
    if (code) return pc_error_copy(error, &ignored);
    *limits = *limits || (bounds.time_s < found->iteration_s && bounds.memory_bytes > bounds.capacity_bytes);
    return PC_OK;
}

/* Or may: of those between nothing and all of it the bounds tell. */
static bool recomputes_less(pc_recomputation other, const pc_plan_choice *choice) {
    bool is_between = other.kind > PC_RECOMPUTE_FULL || choice->recompute > PC_RECOMPUTE_FULL;
    bool is_same = other.kind == choice->recompute && other.layers == choice->recompute_layers &&
                   other.modules == choice->recompute_modules;
    return is_between ? !is_same : other.kind < choice->recompute;
}

/* A part of the kinds, or some of the activations in the place of all. */
static bool offloads_less(int64_t other, int64_t kinds) {
    const int64_t some = PC_OFFLOAD_SELECTIVE | PC_OFFLOAD_TENSORS;
    int64_t as_all = other & some && kinds & PC_OFFLOAD_FULL ? (other & ~some) | PC_OFFLOAD_FULL : other;
    return other != kinds && (as_all & ~kinds) == 0;
}

static bool takes_more(const pc_plan_space *space, const pc_plan_choice *choice, plan_digit digit, int value) {
    switch (digit) {
    case DIGIT_RECOMPUTE:
        return recomputes_less(pc_recomputation_of_code(space->recompute.values[value]), choice);
    case DIGIT_OFFLOAD:
        return space->offload.count > 0 && offloads_less(space->offload.values[value], choice->offload);
    case DIGIT_SIZE:
        return space->microbatch_size.values[value] > choice->microbatch_size;
    case DIGIT_CHUNKS:
        return plan_chunks_of(choice, space->chunks.values[value]) > choice->chunks;
    default:
        return space->zero.values[value] < choice->zero;
    }
}

static pc_code find_limit(const plan_search *search, plan_bounder *bounder, pc_plan_found *found, pc_error *error) {
    static const plan_digit digits[] = {DIGIT_RECOMPUTE, DIGIT_OFFLOAD, DIGIT_SIZE, DIGIT_CHUNKS, DIGIT_ZERO};
    pc_code code = PC_OK;
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++)
        for (int value = 0; !code && !found->memory_limits && value < search->numbers.radix[digits[i]]; value++)
            if (takes_more(search->space, &found->choice, digits[i], value))
                code = try_other(search, bounder, found, digits[i], value, &found->memory_limits, error);
    return code;
}

/* ---- the answer ---- */

static pc_code check_bases(const pc_plan_space *space, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; !code && i < space->base_count; i++) {
        const pc_iteration_spec *spec = &space->bases[i].spec;
        if (space->bases[i].group < 0 || space->bases[i].group >= PC_PLAN_GROUPS_MAX)
            return pc_error_set(error, PC_ERROR_INPUT, "plan: group %d of a base; expected 0 to %d",
                                space->bases[i].group, PC_PLAN_GROUPS_MAX - 1);
        code = pc_model_check(&spec->model, error);
        if (!code) code = pc_machine_check(&spec->machine, error);
        if (code) return code;
        if (spec->expands || spec->jitter != 0 || spec->bad_days.samples > 0)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "plan: expanded replicas, jitter or samples; expected undisturbed iterations, which "
                                "plans are compared by");
        if (spec->cut.layout == PC_CUT_LISTED || spec->cut.recompute_of_part)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "plan: layers or recomputation listed part by part; expected a layout that any number "
                                "of parts can have");
        if (!(spec->pass_overhead >= 0) || spec->overhead_ps < 0 || spec->bucket_bytes < 0 ||
            spec->memory_limit_bytes < 0 || spec->cut.gradient_bytes < 0 || spec->cut.seq_len < 1)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "plan: an overhead, a bucket, a memory limit, a gradient's size or a sequence below "
                                "zero; expected none");
    }
    return code;
}

static pc_code give_answer(plan_search *search, pc_plan_answer *answer, pc_error *error) {
    plan_bounder bounder = {0};
    plan_best *best = &search->best;
    int top = search->request->top;
    bool is_cut = search->request->objective_count > 1 && top > 0 && best->count > top;
    int64_t count = is_cut ? top : best->count;
    pc_plan_log *log = &search->log;
    int64_t measured = log->simulated - log->simulated_over_memory - log->simulated_infeasible;
    log->too_slow = log->points - log->broken_rule - log->over_memory - log->simulated;
    if (measured > 0) log->mean_bound /= (double)measured;
    if (measured == 0) log->mean_bound = log->worst_bound = NAN;
    pc_plan_found *found = pc_alloc((size_t)count, sizeof *found);
    pc_code code = found ? PC_OK : pc_error_no_memory(error);
    for (int64_t i = 0; !code && i < count; i++) {
        found[i] = best->list[i].found;
        code = find_limit(search, &bounder, &found[i], error);
    }
    plan_bounder_free(&bounder);
    if (code)
        pc_free(found);
    else
        *answer = (pc_plan_answer){.found = found, .count = count, .log = *log};
    return code;
}

static pc_code make_frames(plan_search *search, pc_error *error) {
    if (search->numbers.frames > PLAN_FRAMES_KEPT || search->request->exhaustive) return PC_OK;
    search->frames = pc_alloc((size_t)search->numbers.frames, sizeof *search->frames);
    return search->frames ? PC_OK : pc_error_no_memory(error);
}

void plan_best_make(plan_search *search) {
    const pc_plan_request *request = search->request;
    search->best =
        (plan_best){.ranking = &search->ranking,
                    .numbers = request->objective_count == 1 && !request->all_variants ? &search->numbers : NULL,
                    .top = request->objective_count == 1 ? request->top : 0,
                    .of_base = plan_numbers_of_base(&search->numbers)};
}

pc_code pc_plan_run(const pc_plan_space *space, const pc_plan_request *request, pc_plan_answer *answer,
                    pc_error *error) {
    plan_search search = {.space = space, .request = request, .log.worst_bound = INFINITY};
    pc_code code = plan_numbers_make(space, &search.numbers, error);
    if (!code) code = check_bases(space, error);
    if (!code) code = plan_ranking_make(space, request, &search.ranking, error);
    if (code) return code;
    search.threads = request->threads > 0 ? request->threads : pc_parallel_processors();
    plan_best_make(&search);
    code = make_frames(&search, error);
    if (!code) code = pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &search.memo, error);
    if (!code) code = plan_scout(&search, error);
    if (!code) code = search_all(&search, error);
    if (!code) code = give_answer(&search, answer, error);
    pc_search_memo_free(search.memo);
    plan_best_free(&search.best);
    pc_free(search.scouted);
    pc_free(search.frames);
    return code;
}

void pc_plan_answer_free(pc_plan_answer *answer) {
    pc_free(answer->found);
    memset(answer, 0, sizeof *answer);
}
