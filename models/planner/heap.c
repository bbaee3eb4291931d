#include "models/planner/plan_search.h"

#include "engine/alloc.h"

#include <string.h>

pc_code plan_heap_make(plan_heap *heap, const plan_ranking *ranking, int64_t room, pc_error *error) {
    *heap = (plan_heap){.ranking = ranking, .room = room, .list = pc_alloc((size_t)room, sizeof *heap->list)};
    return heap->list ? PC_OK : pc_error_no_memory(error);
}

void plan_heap_free(plan_heap *heap) {
    pc_free(heap->list);
    memset(heap, 0, sizeof *heap);
}

static bool is_worse(const plan_heap *heap, int64_t a, int64_t b) {
    const plan_candidate *x = &heap->list[a], *y = &heap->list[b];
    int order = plan_rank_compare(heap->ranking, &x->rank, &y->rank);
    return order > 0 || (order == 0 && x->is_rest && !y->is_rest);
}

static void swap(plan_heap *heap, int64_t a, int64_t b) {
    plan_candidate other = heap->list[a];
    heap->list[a] = heap->list[b];
    heap->list[b] = other;
}

static void sift_down(plan_heap *heap, int64_t at, int64_t count) {
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_worse(heap, child + 1, child)) child++;
        if (!is_worse(heap, child, at)) return;
        swap(heap, child, at);
        at = child;
    }
}

bool plan_heap_turns_away(plan_heap *heap, const plan_rank *rank) {
    if (heap->count < heap->room || plan_rank_compare(heap->ranking, rank, &heap->list[0].rank) <= 0) return false;
    heap->is_over = true;
    return true;
}

void plan_heap_offer(plan_heap *heap, const plan_candidate *candidate) {
    if (heap->count == heap->room) {
        heap->is_over = true;
        if (plan_heap_turns_away(heap, &candidate->rank)) return;
        heap->list[0] = *candidate;
        sift_down(heap, 0, heap->count);
        return;
    }
    int64_t at = heap->count++;
    heap->list[at] = *candidate;
    for (; at > 0 && is_worse(heap, at, (at - 1) / 2); at = (at - 1) / 2) swap(heap, at, (at - 1) / 2);
}

void plan_heap_sort(plan_heap *heap) {
    for (int64_t count = heap->count; count > 1;) {
        swap(heap, 0, --count);
        sift_down(heap, 0, count);
    }
}
