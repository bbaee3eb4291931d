/* Candidates in the order of their bounds, where a close bound takes long: it is made close only when the candidate's
 * turn comes by the bound that it has. A candidate is given away when no other one can have a better bound. So the
 * order is that of close bounds, though few are worked out. */
#include "models/planner/plan_search.h"

#include "engine/alloc.h"
#include "engine/parallel.h"

#include <string.h>

pc_code plan_queue_make(const plan_search *search, const plan_heap *heap, plan_queue *queue, pc_error *error) {
    *queue = (plan_queue){
        .search = search, .heap = heap, .bounders = pc_alloc((size_t)search->threads, sizeof *queue->bounders)};
    return queue->bounders ? PC_OK : pc_error_no_memory(error);
}

void plan_queue_free(plan_queue *queue) {
    for (int i = 0; queue->bounders && i < queue->search->threads; i++) plan_bounder_free(&queue->bounders[i]);
    pc_free(queue->bounders);
    pc_free(queue->close);
    memset(queue, 0, sizeof *queue);
}

int64_t plan_queue_left(const plan_queue *queue) {
    return queue->heap->count - queue->next + queue->count - queue->taken;
}

static bool is_rejected(const plan_search *search, const plan_candidate *candidate) {
    return !search->request->exhaustive && plan_best_rejects(&search->best, &candidate->rank);
}

/* ---- close bounds ---- */

/* What a batch has of a candidate. Facts: its bounds, of spans and of close ones, as far as they were needed. */
enum { CLOSER = 2 };
typedef struct plan_turn {
    plan_candidate candidate;
    pc_plan_fact fact[CLOSER];
    int64_t is_new[CLOSER]; /* is to be kept */
} plan_turn;

static const pc_plan_work work_of[CLOSER] = {PC_PLAN_BOUNDED, PC_PLAN_BOUNDED_CLOSE};

/* The candidate's bound rises to the fact's; of an exhaustive search its rank stays. */
static void raise(const plan_search *search, const pc_plan_choice *choice, const pc_plan_fact *fact,
                  plan_candidate *candidate) {
    if (fact->iteration_s <= candidate->bound_s) return;
    candidate->bound_s = fact->iteration_s;
    if (!search->request->exhaustive)
        candidate->rank =
            plan_rank_of(&search->ranking, choice, candidate->rank.number, candidate->bound_s, fact->memory_bytes);
}

/* A known order has one close bound, those that are searched for a quick one and a closer one. */
static pc_code bound_closely(plan_bounder *bounder, const pc_outline *outline, bool is_close, pc_error *error) {
    bool is_searched = outline->spec->generator->searches;
    return is_searched ? plan_bound_spans(bounder, outline, is_close, error)
                       : plan_bound_order(bounder, outline, error);
}

static pc_code find_bound(plan_bounder *bounder, const pc_outline *outline, bool is_close, pc_plan_fact *fact,
                          pc_error *error) {
    pc_time bound_ps;
    pc_code code = bound_closely(bounder, outline, is_close, error);
    if (!code) code = plan_bound_time(bounder, outline, SCOPE_ONE, &bound_ps, error);
    if (!code)
        *fact = (pc_plan_fact){.iteration_s = pc_time_to_seconds(bound_ps),
                               .memory_bytes = plan_bound_memory(bounder, outline)};
    return code;
}

/* Its outline is made when the first bound is not known. What cannot be counted keeps the bound that it has. */
static pc_code make_close(const plan_search *search, plan_bounder *bounder, plan_turn *turn, pc_error *error) {
    const pc_plan_choice choice = plan_choice_of(&search->numbers, turn->candidate.rank.number);
    const pc_iteration_spec spec = pc_plan_spec(search->space, &choice);
    pc_outline outline = {.devices = 0};
    pc_code code = PC_OK;
    for (int i = choice.generator->searches ? 0 : 1; !code && i < CLOSER && !is_rejected(search, &turn->candidate);
         i++) {
        if (!plan_find_fact(search, &choice, &spec, work_of[i], &turn->fact[i])) {
            if (outline.devices == 0)
                code = plan_bounder_outline(bounder, search->space, choice.base, &spec, &outline, error);
            if (!code) code = find_bound(bounder, &outline, i, &turn->fact[i], error);
            turn->is_new[i] = !code;
        }
        if (!code) raise(search, &choice, &turn->fact[i], &turn->candidate);
    }
    pc_outline_free(&outline);
    return code == PC_ERROR_INPUT ? PC_OK : code;
}

/* ---- its turn by the first bound ---- */

enum { BATCH = 32 }; /* whatever the number of threads */

typedef struct plan_batch {
    plan_queue *queue;
    plan_turn list[BATCH];
    pc_code code[BATCH];
    pc_error error[BATCH];
} plan_batch;

static void close_one(void *context, int worker, int64_t index) {
    plan_batch *x = context;
    const plan_search *search = x->queue->search;
    if (plan_is_mine(search, index))
        x->code[index] = make_close(search, &x->queue->bounders[worker], &x->list[index], &x->error[index]);
}

static pc_code make_room(plan_queue *queue, int64_t more, pc_error *error) {
    if (queue->count + more <= queue->room) return PC_OK;
    int64_t room = 2 * queue->room + more;
    plan_candidate *moved = pc_realloc(queue->close, (size_t)room, sizeof *moved);
    if (!moved) return pc_error_no_memory(error);
    queue->close = moved;
    queue->room = room;
    return PC_OK;
}

static void insert(plan_queue *queue, const plan_candidate *candidate) {
    const plan_ranking *ranking = &queue->search->ranking;
    int64_t low = queue->taken, high = queue->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (plan_rank_compare(ranking, &queue->close[middle].rank, &candidate->rank) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&queue->close[low + 1], &queue->close[low], (size_t)(queue->count - low) * sizeof *queue->close);
    queue->close[low] = *candidate;
    queue->count++;
}

/* Passes over what is ruled out, and over marks, which are no points. */
static const plan_candidate *first_open(plan_queue *queue) {
    const plan_heap *heap = queue->heap;
    while (queue->next < heap->count &&
           (heap->list[queue->next].is_rest || is_rejected(queue->search, &heap->list[queue->next])))
        queue->next++;
    return queue->next < heap->count ? &heap->list[queue->next] : NULL;
}

/* Each rank's own, and then all. */
static pc_code close_all(plan_batch *batch, int count, pc_error *error) {
    const plan_search *search = batch->queue->search;
    pc_code code = PC_OK;
    pc_parallel_run(search->threads, count, close_one, batch);
    for (int i = 0; i < count && !code; i++)
        if (batch->code[i]) code = pc_error_copy(error, &batch->error[i]);
    return plan_share_items(search, code, batch->list, sizeof *batch->list, count, error);
}

static pc_code keep_bounds(const plan_search *search, const plan_turn *turn, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; !code && i < CLOSER; i++)
        if (turn->is_new[i])
            code = plan_keep_fact(search, turn->candidate.rank.number, work_of[i], &turn->fact[i], error);
    return code;
}

static pc_code take_batch(plan_queue *queue, pc_error *error) {
    plan_batch batch = {.queue = queue};
    const plan_candidate *candidate;
    int count = 0;
    while (count < BATCH && (candidate = first_open(queue))) {
        batch.list[count++].candidate = *candidate;
        queue->next++;
    }
    pc_code code = make_room(queue, count, error);
    if (!code && count > 0) code = close_all(&batch, count, error);
    for (int i = 0; i < count && !code; i++) {
        code = keep_bounds(queue->search, &batch.list[i], error);
        if (!code && !is_rejected(queue->search, &batch.list[i].candidate)) insert(queue, &batch.list[i].candidate);
    }
    return code;
}

/* ---- given away ---- */

pc_code plan_queue_next(plan_queue *queue, int64_t most, plan_candidate *list, int64_t *count, pc_error *error) {
    const plan_ranking *ranking = &queue->search->ranking;
    pc_code code = PC_OK;
    for (*count = 0; !code && *count < most;) {
        while (queue->taken < queue->count && is_rejected(queue->search, &queue->close[queue->taken])) queue->taken++;
        const plan_candidate *open = first_open(queue);
        bool has_close = queue->taken < queue->count;
        if (!open && !has_close) break;
        if (has_close && (!open || plan_rank_compare(ranking, &queue->close[queue->taken].rank, &open->rank) <= 0))
            list[(*count)++] = queue->close[queue->taken++];
        else
            code = take_batch(queue, error);
    }
    return code;
}
