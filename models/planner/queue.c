/* Candidates in the order of their bounds, where a close bound takes long: it is made close only when the candidate's
 * turn comes by the bound that it has. A candidate is given away when no other one can have a
 * better bound. So the order is that of close bounds, though few are worked out. */
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

/* The candidate's bound rises to that of its outline; of an exhaustive search its rank stays. */
static pc_code raise(const plan_search *search, plan_bounder *bounder, const pc_plan_choice *choice,
                     const pc_outline *outline, plan_candidate *candidate, pc_error *error) {
    pc_time bound_ps;
    pc_code code = plan_bound_time(bounder, outline, SCOPE_ONE, &bound_ps, error);
    if (code || pc_time_to_seconds(bound_ps) <= candidate->bound_s) return code;
    candidate->bound_s = pc_time_to_seconds(bound_ps);
    if (!search->request->exhaustive)
        candidate->rank = plan_rank_of(&search->ranking, choice, candidate->rank.number, candidate->bound_s,
                                       plan_bound_memory(bounder, outline));
    return PC_OK;
}

/* A known order has one close bound, those that are searched for a quick one and a closer one. */
static pc_code bound_closely(plan_bounder *bounder, const pc_outline *outline, bool is_close, pc_error *error) {
    bool is_searched = outline->spec->generator->searches;
    return is_searched ? plan_bound_spans(bounder, outline, is_close, error)
                       : plan_bound_order(bounder, outline, error);
}

/* What cannot be counted keeps the bound that it has. */
static pc_code make_close(const plan_search *search, plan_bounder *bounder, plan_candidate *candidate,
                          pc_error *error) {
    const pc_plan_choice choice = plan_choice_of(&search->numbers, candidate->rank.number);
    const pc_iteration_spec spec = pc_plan_spec(search->space, &choice);
    pc_outline outline;
    pc_code code = plan_bounder_outline(bounder, search->space, choice.base, &spec, &outline, error);
    if (code) return code == PC_ERROR_INPUT ? PC_OK : code;
    for (int is_close = choice.generator->searches ? 0 : 1; !code && is_close < 2 && !is_rejected(search, candidate);
         is_close++) {
        code = bound_closely(bounder, &outline, is_close, error);
        if (!code) code = raise(search, bounder, &choice, &outline, candidate, error);
    }
    pc_outline_free(&outline);
    return code == PC_ERROR_INPUT ? PC_OK : code;
}

/* ---- its turn by the first bound ---- */

enum { BATCH = 32 }; /* whatever the number of threads */

typedef struct plan_batch {
    plan_queue *queue;
    plan_candidate list[BATCH];
    pc_code code[BATCH];
    pc_error error[BATCH];
} plan_batch;

static void close_one(void *context, int worker, int64_t index) {
    plan_batch *x = context;
    const plan_search *search = x->queue->search;
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

static pc_code take_batch(plan_queue *queue, pc_error *error) {
    plan_batch batch = {.queue = queue};
    const plan_candidate *candidate;
    int count = 0;
    while (count < BATCH && (candidate = first_open(queue))) {
        batch.list[count++] = *candidate;
        queue->next++;
    }
    pc_code code = make_room(queue, count, error);
    if (code) return code;
    pc_parallel_run(queue->search->threads, count, close_one, &batch);
    for (int i = 0; i < count && !code; i++) {
        if (batch.code[i])
            code = pc_error_copy(error, &batch.error[i]);
        else if (!is_rejected(queue->search, &batch.list[i]))
            insert(queue, &batch.list[i]);
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
