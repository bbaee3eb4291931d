/* The invariants of the queue, for tests. */
#include "engine/queue_internal.h"

#undef NDEBUG /* this file is nothing but assertions */
#include <assert.h>

static uint32_t check_near(const pc_queue *queue) {
    assert(queue->first <= queue->last && (queue->first == 0 || !queue->is_heap));
    for (size_t place = queue->first; place < queue->last; place++) {
        assert(key_at(queue, place).time < queue->near_end);
        size_t above = queue->is_heap ? (place - 1) / 4 : place - 1;
        assert(place == queue->first || before(key_at(queue, above), key_at(queue, place)));
    }
    return near_count(queue);
}

static uint32_t check_later(const pc_queue *queue) {
    uint32_t held = 0;
    for (uint32_t i = 0; i < LATER; i++) held += queue->later[i] != NONE;
    assert(held == 0 || queue->rung_count > 0);
    return held;
}

static void check_in(const pc_queue *queue, uint32_t slot, uint64_t least, uint64_t end) {
    assert(slot < queue->capacity);
    uint64_t time = queue->nodes[slot].key.time;
    assert(time >= least && time < end && time >= queue->near_end);
}

static uint32_t check_bucket(const pc_queue *queue, const bucket *b, uint64_t least, uint64_t end) {
    uint32_t held = b->count < BUCKET_ROOM ? b->count : BUCKET_ROOM;
    for (uint32_t i = 0; i < held; i++) check_in(queue, b->slots[i], least, end);
    for (uint32_t slot = b->chain; slot != NONE; slot = queue->nodes[slot].next, held++)
        check_in(queue, slot, least, end);
    assert(held == b->count);
    return held;
}

static uint32_t check_rung(const pc_queue *queue, const rung *r) {
    uint32_t held = 0;
    for (uint32_t i = r->current; i < r->count; i++) {
        uint64_t start = r->start + ((uint64_t)i << r->shift);
        held += check_bucket(queue, &r->buckets[i], start, saturating_add(start, UINT64_C(1) << r->shift));
    }
    return held;
}

void pc_queue_check(const pc_queue *queue) {
    uint32_t held = check_near(queue) + check_later(queue) + queue->far_count, unused = 0;
    for (int i = 0; i < queue->rung_count; i++) {
        assert(i == 0 || queue->rungs[i].end <= queue->rungs[i - 1].end);
        held += check_rung(queue, &queue->rungs[i]);
    }
    for (uint32_t i = 0; i < queue->far_count; i++)
        check_in(queue, queue->far[i], queue->rung_count ? queue->rungs[0].end : 0, UINT64_MAX);
    for (uint32_t slot = queue->free; slot != NONE; slot = queue->nodes[slot].next) unused++;
    assert(held + unused == queue->capacity);
    assert(queue->pending <= held); /* the rest is cancelled and waits for its time */
}
