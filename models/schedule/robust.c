/* What could be a robust order: the given one, those of the names that keep its limits, what is searched for at the
 * times of single draws, and what moving single passes makes of the best. Each is timed by the same draws. There are
 * three lots of these: one to look for orders, one to choose among the best, one to judge.
 */
#include "models/schedule/robust.h"

#include "models/schedule/robust_private.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "engine/order.h"
#include "engine/parallel.h"
#include "models/schedule/improve.h"
#include "models/schedule/replay.h"

#include <math.h>
#include <string.h>

const char *const pc_robust_names[PC_ROBUSTS + 1] = {"none", "mean", "p95", NULL};

enum {
    FINALISTS = 6,  /* orders that go on from the first round, the given one among them */
    WAYS = 2,       /* in which each goes on */
    MOVES = 3,      /* of passes in a trial, at most */
    BATCHES = 4,    /* of draws to look with, at most */
    CHOOSING = 512, /* draws to choose by, at most as many as there are to judge by */
    KICKS = 2000,   /* trials of each way, at most */
    KICKS_LEAST = 100
};
static const int64_t looking = INT64_C(1) << 21; /* passes times draws to look with, about */
static const int64_t effort = INT64_C(1) << 29;  /* passes times draws times kicks, about */

/* Lots of draws never meet. */
static const int64_t first_to_choose = INT64_C(1) << 32, first_to_judge = INT64_C(1) << 33;

/* ---- memory ---- */

static void free_entry(pc_robust_entry *e) {
    pc_instance_order_free(&e->order);
    pc_sampled_sequence_free(&e->sequence);
    pc_free(e->span_ps);
}

static void free_worker(pc_robust_worker *w) {
    pc_reorder_free(w->room);
    pc_sampled_free(w->sampled);
    pc_sampled_draws_free(&w->draws);
    pc_sampled_sequence_free(&w->sequence);
    pc_instance_order_free(&w->walk);
    pc_instance_order_free(&w->trial);
    pc_free(w->pass);
    pc_free(w->span_ps);
    pc_free(w->sorted);
}

static void free_work(pc_robust_work *w) {
    for (int i = 0; i < PC_ROBUST_ENTRIES; i++) free_entry(&w->entries[i]);
    for (int i = 0; w->workers && i < w->threads; i++) free_worker(&w->workers[i]);
    for (int i = 0; w->looking && i < w->batches; i++) pc_sampled_draws_free(&w->looking[i]);
    pc_free(w->workers);
    pc_free(w->looking);
    pc_instance_free(&w->instance);
    pc_free(w->none);
    pc_search_memo_free(w->own_memo);
}

static pc_code open_worker(const pc_robust_work *w, pc_robust_worker *x, pc_error *error) {
    int64_t factors = pc_drawn_factors(&w->costs, w->instance.microbatches);
    size_t spans = (size_t)pc_max(w->batches * PC_SAMPLED_LANES, (int)PC_SAMPLED_LANES);
    pc_code code = pc_reorder_create(&w->instance, &x->room, error);
    if (!code) code = pc_sampled_create(&w->instance, &x->sampled, error);
    if (!code) code = pc_sampled_draws_create(&w->instance, w->request->draws_transfers, &x->draws, error);
    if (!code) code = pc_sampled_sequence_create(&w->instance, &x->sequence, error);
    if (!code) code = pc_instance_order_create(&w->instance, &x->walk, error);
    if (!code) code = pc_instance_order_create(&w->instance, &x->trial, error);
    if (code) return code;
    x->pass = pc_alloc(2 * (size_t)factors, sizeof *x->pass);
    x->span_ps = pc_alloc(2 * spans, sizeof *x->span_ps);
    x->sorted = pc_alloc(spans, sizeof *x->sorted);
    if (!x->pass || !x->span_ps || !x->sorted) return pc_error_no_memory(error);
    x->transfer = w->request->draws_transfers ? x->pass + factors : NULL;
    x->walk_ps = x->span_ps + spans;
    return PC_OK;
}

static pc_code open_workers(pc_robust_work *w, pc_error *error) {
    w->workers = pc_alloc((size_t)w->threads, sizeof *w->workers);
    pc_code code = w->workers ? PC_OK : pc_error_no_memory(error);
    for (int i = 0; i < w->threads && !code; i++) code = open_worker(w, &w->workers[i], error);
    return code;
}

/* The first that failed, by its number. */
static pc_code failure_of(const pc_robust_work *w, pc_error *error) {
    for (int i = 0; i < w->threads; i++)
        if (w->workers[i].error.code) return pc_error_copy(error, &w->workers[i].error);
    return PC_OK;
}

/* ---- draws ---- */

/* Draw `number` becomes lane `lane`. */
static pc_code draw_lane(const pc_robust_work *w, pc_robust_worker *x, int64_t number, int lane,
                         pc_sampled_draws *draws) {
    const pc_instance *instance = &w->instance;
    int drawn = PC_DRAWN_KINDS * instance->chunks;
    pc_code code = w->request->draw(w->request->context, number, &w->costs, instance->microbatches, x->pass,
                                    x->transfer, &x->error);
    if (code) return code;
    for (int d = 0; d < instance->devices; d++)
        for (int type = 0; type < instance->types; type++) {
            int cell = d * instance->types + type;
            int64_t at = pc_sampled_index(instance, cell, 0) + lane;
            int64_t from = ((int64_t)d * drawn + type) * instance->microbatches;
            for (int i = 0; i < instance->microbatches; i++, at += PC_SAMPLED_LANES) {
                draws->pass[at] = (double)instance->cells[cell].duration * x->pass[from + i];
                if (draws->delay) draws->delay[at] = (double)instance->cells[cell].before_delay * x->transfer[from + i];
            }
        }
    return PC_OK;
}

static void draw_batch(const pc_robust_work *w, pc_robust_worker *x, int64_t first, pc_sampled_draws *draws) {
    for (int lane = 0; lane < PC_SAMPLED_LANES && !x->error.code; lane++)
        draw_lane(w, x, first + lane, lane, draws); /* x->error says what failed */
}

static void draw_to_look(void *context, int worker, int64_t batch) {
    pc_robust_work *w = context;
    draw_batch(w, &w->workers[worker], batch * PC_SAMPLED_LANES, &w->looking[batch]);
}

static pc_code draw_all_to_look(pc_robust_work *w, pc_error *error) {
    pc_code code = PC_OK;
    w->looking = pc_alloc((size_t)w->batches, sizeof *w->looking);
    if (!w->looking) return pc_error_no_memory(error);
    for (int i = 0; i < w->batches && !code; i++)
        code = pc_sampled_draws_create(&w->instance, w->request->draws_transfers, &w->looking[i], error);
    if (code) return code;
    pc_parallel_run(w->threads, w->batches, draw_to_look, w);
    return failure_of(w, error);
}

/* ---- what an order is worth ---- */

/* Sorts. Of the 95th percentile the mean of the upper tenth stands for it where orders are looked for: it lies near,
 * and no single draw decides. */
static double score_of(pc_robust goal, double *span_ps, int64_t count) {
    int64_t first = goal == PC_ROBUST_P95 ? count - pc_divide_up(count, 10) : 0;
    double sum = 0;
    if (goal == PC_ROBUST_P95) pc_sort_reals(span_ps, count);
    for (int64_t i = first; i < count; i++) sum += span_ps[i];
    return sum / (double)(count - first);
}

/* Whether the trial's mean is longer by more than its standard error, by the first `count` draws. */
static bool is_clearly_worse(const double *trial_ps, const double *walk_ps, int64_t count) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        double more = trial_ps[i] - walk_ps[i];
        sum += more;
        squares += more * more;
    }
    return sum > 0 && sum * sum > squares;
}

/* The score of an order in line by the draws to look with, whose spans are then in x->span_ps. INFINITY where it is
 * given up, being worse than x->walk_ps says. */
static double score_line(const pc_robust_work *w, pc_robust_worker *x, const pc_sampled_sequence *line, bool gives_up) {
    int64_t count = (int64_t)w->batches * PC_SAMPLED_LANES;
    for (int b = 0; b < w->batches; b++) {
        pc_sampled_run(x->sampled, line, &w->looking[b], x->span_ps + (int64_t)b * PC_SAMPLED_LANES);
        if (gives_up && is_clearly_worse(x->span_ps, x->walk_ps, (int64_t)(b + 1) * PC_SAMPLED_LANES)) return INFINITY;
    }
    memcpy(x->sorted, x->span_ps, (size_t)count * sizeof *x->sorted);
    return score_of(w->request->goal, x->sorted, count);
}

static void score_entry(void *context, int worker, int64_t index) {
    pc_robust_work *w = context;
    pc_robust_worker *x = &w->workers[worker];
    pc_robust_entry *e = &w->entries[index];
    e->score =
        pc_sampled_line_up(x->sampled, &e->order, &x->sequence) ? score_line(w, x, &x->sequence, false) : INFINITY;
}

/* ---- moving passes ---- */

/* A trial is the walk's order with one to three passes moved. False where it cannot run, or needs more memory. */
static bool make_trial(const pc_robust_work *w, pc_robust_worker *x, uint64_t *stream) {
    pc_instance_order_copy(&w->instance, &x->walk, &x->trial);
    for (int moves = 1 + (int)((pc_xorshift64star(stream) >> 32) % MOVES); moves > 0; moves--)
        pc_reorder_move(&w->instance, stream, &x->trial);
    return pc_reorder_squeeze(x->room, &x->trial) && pc_sampled_line_up(x->sampled, &x->trial, &x->sequence);
}

static int64_t kicks_of(const pc_robust_work *w) {
    int64_t kick = w->instance.devices * w->instance.passes * w->batches * PC_SAMPLED_LANES;
    return pc_max(pc_min((int64_t)KICKS, effort / kick), (int64_t)KICKS_LEAST);
}

/* The walk goes on from a trial that is not worse. */
static void walk_on(const pc_robust_work *w, pc_robust_worker *x, pc_robust_entry *e, uint64_t stream) {
    bool gives_up = w->request->goal == PC_ROBUST_MEAN;
    size_t spans = (size_t)w->batches * PC_SAMPLED_LANES;
    if (!pc_sampled_line_up(x->sampled, &x->walk, &x->sequence)) return;
    e->score = score_line(w, x, &x->sequence, false);
    memcpy(x->walk_ps, x->span_ps, spans * sizeof *x->walk_ps);
    for (int64_t kick = 0, kicks = kicks_of(w); kick < kicks; kick++) {
        if (!make_trial(w, x, &stream)) continue;
        double score = score_line(w, x, &x->sequence, gives_up);
        if (score > e->score) continue;
        pc_instance_order_copy(&w->instance, &x->trial, &x->walk);
        memcpy(x->walk_ps, x->span_ps, spans * sizeof *x->walk_ps);
        e->score = score;
    }
    pc_instance_order_copy(&w->instance, &x->walk, &e->order);
}

/* Item i goes on from finalist i / WAYS, and becomes the entry behind the finalists. */
static void go_on(void *context, int worker, int64_t index) {
    pc_robust_work *w = context;
    pc_robust_worker *x = &w->workers[worker];
    pc_instance_order_copy(&w->instance, &w->entries[index / WAYS].order, &x->walk);
    walk_on(w, x, &w->entries[w->finalists + index], pc_seed_of((uint64_t)index + 1));
}

/* ---- draws that were not looked with ---- */

typedef struct lot {
    pc_robust_work *work;
    int64_t first; /* number of a draw */
    int count;     /* of entries, from the first on; their spans are written */
    int64_t draws;
} lot;

static void time_batch(void *context, int worker, int64_t batch) {
    const lot *l = context;
    pc_robust_worker *x = &l->work->workers[worker];
    double span_ps[PC_SAMPLED_LANES];
    int64_t at = batch * PC_SAMPLED_LANES, left = pc_min(l->draws - at, (int64_t)PC_SAMPLED_LANES);
    draw_batch(l->work, x, l->first + at, &x->draws);
    for (int i = 0; i < l->count && !x->error.code; i++) {
        pc_sampled_run(x->sampled, &l->work->entries[i].sequence, &x->draws, span_ps);
        memcpy(l->work->entries[i].span_ps + at, span_ps, (size_t)left * sizeof *span_ps);
    }
}

/* The spans of the first `count` entries in a lot of draws. */
static pc_code time_lot(pc_robust_work *w, int64_t first, int count, int64_t draws, pc_error *error) {
    lot l = {w, first, count, draws};
    pc_parallel_run(w->threads, pc_divide_up(draws, PC_SAMPLED_LANES), time_batch, &l);
    return failure_of(w, error);
}

static pc_code line_up_entry(pc_robust_work *w, pc_robust_entry *e, pc_error *error) {
    pc_code code = PC_OK;
    if (!e->sequence.steps) code = pc_sampled_sequence_create(&w->instance, &e->sequence, error);
    if (!code && !e->span_ps) e->span_ps = pc_alloc((size_t)w->request->samples, sizeof *e->span_ps);
    if (!code && !e->span_ps) code = pc_error_no_memory(error);
    if (!code) pc_sampled_line_up(w->workers[0].sampled, &e->order, &e->sequence);
    return code;
}

/* ---- the search ---- */

static void swap_entries(pc_robust_entry *a, pc_robust_entry *b) {
    pc_robust_entry other = *a;
    *a = *b;
    *b = other;
}

/* The best of those from entry 1 on move to the front, `keep` of all with the given one at place 0; a tie goes to the
 * one that was there first, and none is there twice. */
static int keep_best(pc_robust_work *w, int keep) {
    int kept = 1;
    while (kept < keep) {
        int best = -1;
        for (int i = kept; i < w->count; i++) {
            bool is_new = w->entries[i].score < INFINITY;
            for (int k = 0; k < kept && is_new; k++) is_new = w->entries[i].score != w->entries[k].score;
            if (is_new && (best < 0 || w->entries[i].score < w->entries[best].score)) best = i;
        }
        if (best < 0) break;
        swap_entries(&w->entries[kept++], &w->entries[best]);
    }
    return kept;
}

static pc_code look(pc_robust_work *w, pc_error *error) {
    pc_code code = draw_all_to_look(w, error);
    if (!code) code = pc_robust_add_candidates(w, error);
    if (code) return code;
    pc_parallel_run(w->threads, w->count, score_entry, w);
    w->finalists = keep_best(w, FINALISTS);
    w->count = w->finalists;
    for (int i = 0; i < w->finalists * WAYS && !code; i++) {
        pc_robust_entry *e = &w->entries[w->count++];
        if (!e->order.pass) code = pc_instance_order_create(&w->instance, &e->order, error);
    }
    if (!code) pc_parallel_run(w->threads, (int64_t)w->finalists * WAYS, go_on, w);
    return code;
}

/* The one that is best by draws that none was made with moves to place 1; false where that is the given one. */
static pc_code choose(pc_robust_work *w, bool *is_other, pc_error *error) {
    int64_t draws = pc_min((int64_t)CHOOSING, w->request->samples);
    pc_code code = PC_OK;
    int best = 0;
    w->count = keep_best(w, w->count);
    for (int i = 0; i < w->count && !code; i++) code = line_up_entry(w, &w->entries[i], error);
    if (!code) code = time_lot(w, first_to_choose, w->count, draws, error);
    if (code) return code;
    for (int i = 0; i < w->count; i++) {
        w->entries[i].score = score_of(w->request->goal, w->entries[i].span_ps, draws);
        if (w->entries[i].score < w->entries[best].score) best = i;
    }
    *is_other = best > 0;
    if (best > 1) swap_entries(&w->entries[1], &w->entries[best]);
    return PC_OK;
}

/* What the goal says of spans. */
static pc_code value_of(pc_robust goal, const double *span_ps, int64_t count, double *value, pc_error *error) {
    double *sorted;
    *value = pc_robust_mean(span_ps, count).mean_ps;
    if (goal != PC_ROBUST_P95) return PC_OK;
    sorted = pc_alloc((size_t)count, sizeof *sorted);
    if (!sorted) return pc_error_no_memory(error);
    memcpy(sorted, span_ps, (size_t)count * sizeof *sorted);
    pc_sort_reals(sorted, count);
    *value = sorted[(int64_t)ceil(0.95 * (double)count) - 1];
    pc_free(sorted);
    return PC_OK;
}

/* By draws that nothing was chosen by. */
static pc_code judge(pc_robust_work *w, bool *is_other, pc_error *error) {
    const pc_robust_request *r = w->request;
    double before, after;
    pc_code code = line_up_entry(w, &w->entries[0], error);
    if (!code) code = time_lot(w, first_to_judge, *is_other ? 2 : 1, r->samples, error);
    if (code || !*is_other) return code;
    code = value_of(r->goal, w->entries[0].span_ps, r->samples, &before, error);
    if (!code) code = value_of(r->goal, w->entries[1].span_ps, r->samples, &after, error);
    *is_other = !code && after < before;
    return code;
}

/* ---- the parts ---- */

static pc_code check(const pc_robust_request *r, pc_replay *given, pc_error *error) {
    const pc_schedule *schedule = r->schedule;
    if (r->costs->transfer.mode != PC_TRANSFER_DELAY)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: transfers over links; expected delays, where times are drawn",
                            schedule->name);
    if (r->samples < 2 || r->samples > PC_ROBUST_SAMPLES_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: %lld draws to judge by; expected 2 to %d", schedule->name,
                            (long long)r->samples, PC_ROBUST_SAMPLES_MAX);
    pc_code code = PC_OK;
    if (pc_improve_check(schedule, NULL))
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "%s recomputes, or has replicas, slices or too many chunks; expected F, B, W and BW alone, and every "
            "microbatch in every chunk, where times are drawn",
            schedule->name);
    code = pc_replay_run(schedule, r->costs, NULL, given, error);
    for (int d = 0; !code && d < schedule->devices; d++)
        if (given->device_peak_bytes[d] > pc_memory_limit_of(r->memory_limit, d))
            code = pc_error_set(error, PC_ERROR_INPUT,
                                "%s: holds more than the memory limit on device %d; expected an order within it, where "
                                "times are drawn",
                                schedule->name, d);
    return code;
}

static pc_code make_instances(pc_robust_work *w, pc_error *error) {
    const pc_robust_request *r = w->request;
    const pc_schedule *schedule = r->schedule;
    w->costs = *r->costs;
    w->splits = pc_schedule_has(schedule, PC_PASS_W);
    if (r->costs->recomputes_in_b && w->splits) { /* an instance counts what W gives back (improve.c) */
        w->none = pc_alloc((size_t)r->costs->devices * (size_t)r->costs->chunks, sizeof *w->none);
        if (!w->none) return pc_error_no_memory(error);
        w->costs.activation_b_bytes = w->none;
    }
    pc_code code = pc_instance_create(&w->costs, schedule->placement, w->splits, schedule->microbatches,
                                      r->memory_limit, &w->instance, error);
    if (code) return code;
    for (int i = 0; i < w->instance.devices * w->instance.types; i++)
        if (w->instance.cells[i].duration < 0)
            return pc_error_set(error, PC_ERROR_INPUT, "%s: the time of a pass is not given; expected all of them",
                                schedule->name);
    int64_t passes = pc_max(w->instance.devices * w->instance.passes * PC_SAMPLED_LANES, INT64_C(1));
    w->batches = (int)pc_max(pc_min(looking / passes, (int64_t)BATCHES), INT64_C(1));
    return PC_OK;
}

static pc_code take_given(pc_robust_work *w, pc_error *error) {
    pc_robust_entry *e = &w->entries[w->count++];
    pc_code code = pc_instance_order_create(&w->instance, &e->order, error);
    if (!code) pc_instance_of_schedule(&w->instance, w->request->schedule, &e->order);
    return code;
}

static pc_code find(pc_robust_work *w, pc_schedule *chosen, pc_robustness *made, pc_error *error) {
    pc_code code = make_instances(w, error);
    if (!code) code = open_workers(w, error);
    if (!code && !w->memo) code = pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &w->own_memo, error);
    if (!w->memo) w->memo = w->own_memo;
    if (!code) code = take_given(w, error);
    if (!code && w->request->goal) code = look(w, error);
    if (!code && w->request->goal) code = choose(w, &made->is_changed, error);
    if (!code) code = judge(w, &made->is_changed, error);
    if (code) return code;
    code = made->is_changed
               ? pc_instance_to_schedule(&w->instance, &w->entries[1].order, w->request->schedule->name, chosen, error)
               : pc_schedule_copy(w->request->schedule, chosen, error);
    if (code) return code;
    made->given_ps = w->entries[0].span_ps;
    w->entries[0].span_ps = NULL;
    made->chosen_ps = made->given_ps;
    if (!made->is_changed) return PC_OK;
    made->chosen_ps = w->entries[1].span_ps;
    w->entries[1].span_ps = NULL;
    return PC_OK;
}

pc_code pc_schedule_robust(const pc_robust_request *request, pc_schedule *chosen, pc_robustness *robustness,
                           pc_error *error) {
    pc_robust_work w = {.request = request,
                        .memo = request->memo,
                        .threads = request->threads > 0 ? request->threads : pc_parallel_processors()};
    pc_robustness made = {.goal = request->goal, .samples = request->samples};
    pc_replay given = {0};
    pc_code code = check(request, &given, error);
    if (!code) code = find(&w, chosen, &made, error);
    if (!code) {
        made.span_before_ps = given.span_ps;
        *robustness = made;
    }
    free_work(&w);
    pc_replay_free(&given);
    return code;
}

/* ---- what came of it ---- */

/* Of `a`, or of a - b. */
static pc_span_mean mean_of(const double *a, const double *b, int64_t count) {
    double sum = 0, squares = 0, n = (double)count;
    for (int64_t i = 0; i < count; i++) sum += b ? a[i] - b[i] : a[i];
    for (int64_t i = 0; i < count; i++) {
        double off = (b ? a[i] - b[i] : a[i]) - sum / n;
        squares += off * off;
    }
    return (pc_span_mean){sum / n, sqrt(squares / (n - 1) / n)};
}

pc_span_mean pc_robust_mean(const double *span_ps, int64_t count) {
    return mean_of(span_ps, NULL, count);
}

pc_span_mean pc_robust_gain(const pc_robustness *x) {
    return mean_of(x->given_ps, x->chosen_ps, x->samples);
}

void pc_robustness_free(pc_robustness *robustness) {
    if (robustness->chosen_ps != robustness->given_ps) pc_free(robustness->chosen_ps);
    pc_free(robustness->given_ps);
    memset(robustness, 0, sizeof *robustness);
}
