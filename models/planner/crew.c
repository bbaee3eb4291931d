/* What several processes do of one search, and what is kept of others. */
#include "engine/alloc.h"
#include "engine/hash.h"
#include "models/planner/plan_search.h"

#include <assert.h>
#include <string.h>

/* ---- items ---- */

/* Whether those of rank `rank` are `count` in number: 0, 1, ... are dealt out in turn. */
static int64_t share_of(int64_t count, int rank, int size) {
    return count > rank ? (count - rank - 1) / size + 1 : 0;
}

static void take_items(const pc_plan_crew *crew, const char *all, char *items, size_t size, int64_t count) {
    for (int rank = 0; rank < crew->size; rank++)
        for (int64_t i = rank; i < count; i += crew->size, all += size) memcpy(items + (size_t)i * size, all, size);
}

pc_code plan_share_items(const plan_search *search, pc_code code, void *items, size_t size, int64_t count,
                         pc_error *error) {
    const pc_plan_crew *crew = &search->request->crew;
    size_t all_size, used = 0;
    void *all;
    if (crew->size <= 1) return code;
    char *mine = pc_alloc((size_t)share_of(count, crew->rank, crew->size) + 1, size);
    if (!mine && !code) code = pc_error_no_memory(error);
    for (int64_t i = crew->rank; mine && i < count; i += crew->size, used += size)
        memcpy(mine + used, (char *)items + (size_t)i * size, size);
    code = crew->share(crew->self, code, mine, used, &all, &all_size, error);
    pc_free(mine);
    if (code) return code;
    assert(all_size == (size_t)count * size);
    take_items(crew, all, items, size, count);
    pc_free(all);
    return PC_OK;
}

/* ---- a pass ---- */

/* In front of a rank's candidates. */
typedef struct pass_head {
    int64_t count, is_over, points, over_memory, broken[PC_PLAN_RULES];
} pass_head;

static pass_head head_of(const pc_plan_log *log, const pc_plan_log *before, const plan_heap *heap) {
    pass_head head = {.count = heap->count,
                      .is_over = heap->is_over,
                      .points = log->points - before->points,
                      .over_memory = log->over_memory - before->over_memory};
    for (int i = 0; i < PC_PLAN_RULES; i++) head.broken[i] = log->broken[i] - before->broken[i];
    return head;
}

static void add_head(const pass_head *head, pc_plan_log *log) {
    log->points += head->points;
    log->over_memory += head->over_memory;
    for (int i = 0; i < PC_PLAN_RULES; i++) {
        log->broken[i] += head->broken[i];
        log->broken_rule += head->broken[i];
    }
}

static void take_pass(plan_search *search, const char *at, const char *end, plan_heap *heap) {
    heap->count = 0;
    heap->is_over = false;
    while (at < end) {
        pass_head head;
        plan_candidate candidate;
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        for (int64_t i = 0; i < head.count; i++, at += sizeof candidate) {
            memcpy(&candidate, at, sizeof candidate);
            plan_heap_offer(heap, &candidate);
        }
        heap->is_over = heap->is_over || head.is_over;
        add_head(&head, &search->log);
    }
}

pc_code plan_share_pass(plan_search *search, pc_code code, const pc_plan_log *before, plan_heap *heap,
                        pc_error *error) {
    const pc_plan_crew *crew = &search->request->crew;
    if (crew->size <= 1) return code;
    size_t size = sizeof(pass_head) + (size_t)heap->count * sizeof *heap->list, all_size;
    pass_head head = head_of(&search->log, before, heap);
    void *all;
    char *mine = pc_alloc(1, size);
    if (!mine && !code) code = pc_error_no_memory(error);
    if (mine) memcpy(mine, &head, sizeof head);
    if (mine) memcpy(mine + sizeof head, heap->list, size - sizeof head);
    code = crew->share(crew->self, code, mine, mine ? size : 0, &all, &all_size, error);
    pc_free(mine);
    if (code) return code;
    search->log = *before;
    take_pass(search, all, (char *)all + all_size, heap);
    pc_free(all);
    return PC_OK;
}

/* ---- shares ---- */

/* By a hash, so that neighbours, which cost about the same, go to different shares whatever the lists are. */
bool plan_is_in_shard(const plan_search *search, int64_t frame) {
    const pc_plan_request *r = search->request;
    const plan_numbers *numbers = &search->numbers;
    if (r->shard_count <= 1) return true;
    pc_hash hash = {UINT64_C(0x706c616e), UINT64_C(0x7368617264)};
    pc_hash_add(&hash, (uint64_t)plan_cut_of(numbers, frame * numbers->of_frame * numbers->variants));
    return (int64_t)(hash.high % (uint64_t)r->shard_count) == r->shard - 1;
}

/* ---- what is kept ---- */

bool plan_find_fact(const plan_search *search, const pc_plan_choice *choice, const pc_iteration_spec *spec,
                    pc_plan_work work, pc_plan_fact *fact) {
    const pc_plan_keeper *keeper = &search->request->keeper;
    return keeper->find && keeper->find(keeper->self, &search->space->bases[choice->base], spec, work, fact);
}

pc_code plan_keep_fact(const plan_search *search, int64_t number, pc_plan_work work, const pc_plan_fact *fact,
                       pc_error *error) {
    const pc_plan_keeper *keeper = &search->request->keeper;
    if (!keeper->keep) return PC_OK;
    const pc_plan_choice choice = plan_choice_of(&search->numbers, number);
    const pc_iteration_spec spec = pc_plan_spec(search->space, &choice);
    return keeper->keep(keeper->self, &search->space->bases[choice.base], &spec, work, fact, error);
}
