/* A ladder queue, laid out for the cache.
 *
 * The near future, all events before `near_end`, is a short sorted run. What lies behind is kept unsorted in the
 * buckets of a rung, each bucket a stretch of time; what lies behind the last rung's end, in one array, `far`. When the
 * run is used up the next bucket is sorted into it; a bucket that holds too many is first spread over a finer rung. So
 * an event is handled a few times, and sorted only among its neighbours in time: near-constant cost where a heap pays a
 * cache miss for each of its levels. With few events there is only the run. Where the run grows long and time cannot be
 * divided (all at one instant) it becomes a 4-ary heap, which a sorted run already is: no pattern costs more than a
 * heap. After: Tang, Goh, Thng, 'Ladder queue', ACM TOMACS 15(3), 2005; widths are powers of two here, the bottom is an
 * array.
 *
 * With a million events pending every first touch of a node or a bucket is a miss, and what counts is that none waits
 * for another. So a bucket holds numbers of nodes in a cache line instead of a chain through them. All nodes of a
 * bucket are then asked for at once, one bucket ahead of their use.
 */
#include "engine/queue_internal.h"

#include "engine/alloc.h"

#include <assert.h>
#include <string.h>

static inline void near_clear(pc_queue *queue) {
    queue->first = queue->last = 0;
    queue->is_heap = false;
}

/* ---- near as a sorted run ---- */

static void near_to_front(pc_queue *queue) {
    memmove(queue->near, queue->near + queue->first, near_count(queue) * sizeof *queue->near);
    queue->last -= queue->first;
    queue->first = 0;
}

/* Moves those before it to the front, into the room that events that have left gave back, or those behind it to the
 * back: whichever are fewer. */
static inline void run_insert(pc_queue *queue, event_key k, uint32_t slot) {
    uint32_t *near = queue->near;
    size_t place, first = queue->first, last = queue->last;
    if (first > 0 && first < last && before(k, key_at(queue, first + (last - first) / 2))) {
        for (place = first - 1; place + 1 < last && before(key_at(queue, place + 1), k); place++)
            near[place] = near[place + 1];
        queue->first--;
    } else {
        for (place = last; place > first && before(k, key_at(queue, place - 1)); place--) near[place] = near[place - 1];
        queue->last++;
    }
    near[place] = slot;
}

/* Sorts `count` events into the empty run by counting for each how many come before it: no branch to mispredict. */
static void run_fill(pc_queue *queue, const uint32_t *slots, uint32_t count) {
    event_key keys[BUCKET_SPLIT];
    uint8_t rank[BUCKET_SPLIT] = {0};
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = queue->nodes[slots[i]].key;
        uint8_t mine = 0;
        for (uint32_t j = 0; j < i; j++) {
            bool is_later = before(keys[j], keys[i]);
            mine += is_later;
            rank[j] += !is_later;
        }
        rank[i] = mine;
    }
    for (uint32_t i = 0; i < count; i++) queue->near[rank[i]] = slots[i];
    queue->first = 0;
    queue->last = count;
}

/* ---- near as a heap ---- */

static size_t least_child(const pc_queue *queue, size_t place) {
    size_t child = 4 * place + 1, best = child;
    for (size_t i = 1; i < 4 && child + i < queue->last; i++)
        if (before(key_at(queue, child + i), key_at(queue, best))) best = child + i;
    return best;
}

static void sift_down(pc_queue *queue, size_t place, uint32_t slot) {
    event_key k = queue->nodes[slot].key;
    while (4 * place + 1 < queue->last) {
        size_t child = least_child(queue, place);
        if (!before(key_at(queue, child), k)) break;
        queue->near[place] = queue->near[child];
        place = child;
    }
    queue->near[place] = slot;
}

static void heap_insert(pc_queue *queue, event_key k, uint32_t slot) {
    size_t place = queue->last++;
    for (; place > 0 && before(k, key_at(queue, (place - 1) / 4)); place = (place - 1) / 4)
        queue->near[place] = queue->near[(place - 1) / 4];
    queue->near[place] = slot;
}

static void heap_drop_root(pc_queue *queue) {
    uint32_t slot = queue->near[--queue->last];
    if (queue->last > 0) sift_down(queue, 0, slot);
}

/* A sorted run is a heap once it starts at the front. */
static void run_to_heap(pc_queue *queue) {
    near_to_front(queue);
    queue->is_heap = true;
    queue->spill_at = 2 * near_count(queue);
}

static inline void near_drop_first(pc_queue *queue) {
    if (queue->is_heap)
        heap_drop_root(queue);
    else
        queue->first++;
}

/* ---- nodes ---- */

static inline void release(pc_queue *queue, uint32_t slot) {
    queue_node *n = &queue->nodes[slot];
    n->generation++;
    n->next = queue->free;
    queue->free = slot;
}

/* ---- the ladder ---- */

static inline void far_insert(pc_queue *queue, uint32_t slot) {
    uint64_t time = queue->nodes[slot].key.time;
    if (time < queue->far_least) queue->far_least = time;
    if (time > queue->far_most) queue->far_most = time;
    queue->far_sum += time;
    queue->far[queue->far_count++] = slot;
}

static inline void bucket_insert(pc_queue *queue, bucket *b, uint32_t slot) {
    if (b->count < BUCKET_ROOM) {
        b->slots[b->count] = slot;
    } else {
        queue->nodes[slot].next = b->chain;
        b->chain = slot;
    }
    b->count++;
}

static inline void rung_insert(pc_queue *queue, rung *r, uint32_t slot) {
    r->held++;
    bucket_insert(queue, &r->buckets[(queue->nodes[slot].key.time - r->start) >> r->shift], slot);
}

/* The first rung's buckets are many and seldom in the cache. So its line is asked for now, and the event goes in when
 * some others have come after it. */
static inline void first_rung_insert(pc_queue *queue, uint32_t slot) {
    rung *r = &queue->rungs[0];
    if (r->count <= CACHED_BUCKETS) {
        rung_insert(queue, r, slot);
        return;
    }
    __builtin_prefetch(&r->buckets[(queue->nodes[slot].key.time - r->start) >> r->shift], 1);
    uint32_t ready = queue->later[queue->later_next];
    queue->later[queue->later_next] = slot;
    queue->later_next = (queue->later_next + 1) % LATER;
    if (ready != NONE) rung_insert(queue, r, ready);
}

/* Before the first rung is looked at. */
static inline void first_rung_settle(pc_queue *queue) {
    for (uint32_t i = 0; i < LATER; i++) {
        if (queue->later[i] == NONE) continue;
        rung_insert(queue, &queue->rungs[0], queue->later[i]);
        queue->later[i] = NONE;
    }
}

/* For a time that is not before near_end: the finest rung that reaches so far, or far. */
static inline void ladder_insert(pc_queue *queue, uint32_t slot) {
    uint64_t time = queue->nodes[slot].key.time;
    for (int i = queue->rung_count - 1; i > 0; i--)
        if (time < queue->rungs[i].end) {
            rung_insert(queue, &queue->rungs[i], slot);
            return;
        }
    if (queue->rung_count > 0 && time < queue->rungs[0].end)
        first_rung_insert(queue, slot);
    else
        far_insert(queue, slot);
}

/* Lays out the next finer rung for about `count` events between `least` and `most`; nothing at or after `limit` is its.
 * The rung starts empty. */
static rung *rung_add(pc_queue *queue, uint32_t count, uint64_t least, uint64_t most, uint64_t limit) {
    rung *r = &queue->rungs[queue->rung_count++];
    uint64_t wanted = count / BUCKET_AIM + 1;
    if (wanted > r->capacity) wanted = r->capacity;
    r->shift = 0;
    while (((most - least) >> r->shift) >= wanted) r->shift++;
    r->count = (uint32_t)((most - least) >> r->shift) + 1;
    r->current = 0;
    r->held = 0;
    r->crowded = count < BUCKET_SPLIT ? CROWD * BUCKET_SPLIT : count < UINT32_MAX / CROWD ? CROWD * count : UINT32_MAX;
    r->start = least;
    r->end = saturating_add(least, (uint64_t)r->count << r->shift);
    if (r->end > limit) r->end = limit;
    for (uint32_t i = 0; i < r->count; i++) {
        r->buckets[i].count = 0;
        r->buckets[i].chain = NONE;
    }
    return r;
}

/* Spreads a crowded run or heap over a rung of its own, which reaches to near_end, where the coarser one goes on. Where
 * all its events are at one time it cannot be: then it is a heap, and the next try waits for twice as many. */
static __attribute__((noinline)) void spill_near(pc_queue *queue) {
    if (!queue->is_heap) run_to_heap(queue);
    uint32_t count = near_count(queue);
    uint64_t least = key_at(queue, 0).time, most = least;
    for (uint32_t i = 1; i < count; i++)
        if (key_at(queue, i).time > most) most = key_at(queue, i).time;
    queue->spill_at = 2 * count;
    if (least == most || queue->rung_count == RUNGS) return;
    if (queue->near_end != UINT64_MAX) most = queue->near_end - 1;
    rung *r = rung_add(queue, count, least, most, queue->near_end);
    for (uint32_t i = 0; i < count; i++) rung_insert(queue, r, queue->near[i]);
    near_clear(queue);
    queue->near_end = least;
}

static inline void near_insert(pc_queue *queue, event_key k, uint32_t slot) {
    if (queue->is_heap) {
        heap_insert(queue, k, slot);
        if (near_count(queue) > queue->spill_at) spill_near(queue);
        return;
    }
    if (queue->last == RUN_WINDOW) near_to_front(queue);
    run_insert(queue, k, slot);
    if (near_count(queue) > RUN_LIMIT) spill_near(queue);
}

/* Moves a crowded bucket over a finer rung; `r` has its times. */
static void rung_take_bucket(pc_queue *queue, rung *r, const bucket *b) {
    uint32_t in_line = b->count < BUCKET_ROOM ? b->count : BUCKET_ROOM;
    for (uint32_t i = 0; i < in_line; i++) rung_insert(queue, r, b->slots[i]);
    for (uint32_t slot = b->chain, next; slot != NONE; slot = next) {
        next = queue->nodes[slot].next;
        rung_insert(queue, r, slot);
    }
}

/* Moves a bucket into the empty near; one of more than BUCKET_SPLIT (it could not be divided) becomes a heap. */
static void near_take_bucket(pc_queue *queue, const bucket *b) {
    uint32_t slots[BUCKET_SPLIT], in_line = b->count < BUCKET_ROOM ? b->count : BUCKET_ROOM, slot = b->chain;
    memcpy(slots, b->slots, sizeof b->slots); /* all of the line: faster than the part of it that counts */
    uint32_t count = in_line;
    for (; slot != NONE && count < BUCKET_SPLIT; slot = queue->nodes[slot].next) slots[count++] = slot;
    near_clear(queue);
    run_fill(queue, slots, count);
    if (slot == NONE) return;
    run_to_heap(queue);
    for (; slot != NONE; slot = queue->nodes[slot].next) heap_insert(queue, queue->nodes[slot].key, slot);
    queue->spill_at = 2 * near_count(queue);
}

static void near_take_far(pc_queue *queue) {
    near_clear(queue);
    queue->near_end = UINT64_MAX;
    if (queue->far_count <= BUCKET_SPLIT) {
        run_fill(queue, queue->far, queue->far_count);
        return;
    }
    run_to_heap(queue);
    for (uint32_t i = 0; i < queue->far_count; i++) heap_insert(queue, queue->nodes[queue->far[i]].key, queue->far[i]);
    queue->spill_at = 2 * near_count(queue);
}

/* Where the first rung ends: at one and a half times the mean distance, so that a few events far away do not stretch
 * its buckets for all the others. They stay in `far`. */
static uint64_t far_reach(const pc_queue *queue) {
    uint64_t mean = (uint64_t)(queue->far_sum / queue->far_count) - queue->far_least;
    uint64_t range = queue->far_most - queue->far_least;
    return queue->far_least + (mean / 2 < range / 3 ? mean + mean / 2 + 1 : range);
}

static void far_clear(pc_queue *queue) {
    queue->far_count = 0;
    queue->far_least = UINT64_MAX;
    queue->far_most = 0;
    queue->far_sum = 0;
}

/* Turns `far` into the first rung. */
static void rung_take_far(pc_queue *queue) {
    enum { AHEAD = 12 };
    uint32_t count = queue->far_count;
    queue->near_end = queue->far_least;
    rung_add(queue, count, queue->far_least, far_reach(queue), UINT64_MAX);
    far_clear(queue);
    for (uint32_t i = 0; i < count; i++) { /* those that stay in far go to places that have been read already */
        if (i + AHEAD < count) __builtin_prefetch(&queue->nodes[queue->far[i + AHEAD]]);
        ladder_insert(queue, queue->far[i]);
    }
}

static void take_far(pc_queue *queue) {
    if (queue->far_count <= BUCKET_SPLIT || queue->far_least == queue->far_most) {
        near_take_far(queue);
        far_clear(queue);
    } else {
        rung_take_far(queue);
    }
}

/* Asks for the nodes of the bucket after this one, and for the line of the one after that. */
static inline void prefetch_behind(const pc_queue *queue, const rung *r) {
    if (r->current + 1 >= r->count || r->count <= CACHED_BUCKETS) return;
    const bucket *next = &r->buckets[r->current];
    __builtin_prefetch(next + 1);
    uint32_t in_line = next->count < BUCKET_ROOM ? next->count : BUCKET_ROOM;
    for (uint32_t i = 0; i < in_line; i++) __builtin_prefetch(&queue->nodes[next->slots[i]]);
}

/* Moves the finest rung's bucket `current`, which is not empty, into near or over a finer rung. */
static void take_bucket(pc_queue *queue, rung *r) {
    const bucket *b = &r->buckets[r->current];
    uint64_t start = r->start + ((uint64_t)r->current << r->shift);
    uint64_t end = saturating_add(start, UINT64_C(1) << r->shift);
    if (end > r->end) end = r->end;
    r->current++;
    r->held -= b->count;
    prefetch_behind(queue, r);
    if (b->count > BUCKET_SPLIT && r->shift > 0 && queue->rung_count < RUNGS) {
        rung_take_bucket(queue, rung_add(queue, b->count, start, end - 1, end), b);
        queue->near_end = start;
    } else {
        near_take_bucket(queue, b);
        queue->near_end = end;
    }
}

/* Brings the next events into the empty near; false if there are none at all. */
static __attribute__((noinline)) bool refill(pc_queue *queue) {
    near_clear(queue);
    while (near_count(queue) == 0) {
        if (queue->rung_count == 0) {
            if (queue->far_count == 0) {
                queue->near_end = UINT64_MAX;
                return false;
            }
            take_far(queue);
            continue;
        }
        rung *r = &queue->rungs[queue->rung_count - 1];
        if (queue->rung_count == 1 && r->count > CACHED_BUCKETS) first_rung_settle(queue);
        while (r->current < r->count && r->buckets[r->current].count == 0) r->current++;
        if (r->current < r->count) {
            take_bucket(queue, r);
        } else {
            queue->near_end = r->end;
            queue->rung_count--;
        }
    }
    return true;
}

/* Whether there is a first event; if so it is the first of near, and alive. */
static inline bool find_first(pc_queue *queue) {
    for (;;) {
        if (queue->first == queue->last && !refill(queue)) return false;
        uint32_t slot = queue->near[queue->first];
        if (queue->nodes[slot].event.kind != DEAD) return true;
        near_drop_first(queue);
        release(queue, slot);
    }
}

/* ---- starting anew ---- */

/* Into far with it if it is alive; otherwise its node is free. */
static void keep_or_release(pc_queue *queue, uint32_t slot) {
    if (queue->nodes[slot].event.kind == DEAD)
        release(queue, slot);
    else
        far_insert(queue, slot);
}

static void keep_bucket(pc_queue *queue, const bucket *b) {
    uint32_t in_line = b->count < BUCKET_ROOM ? b->count : BUCKET_ROOM;
    for (uint32_t i = 0; i < in_line; i++) keep_or_release(queue, b->slots[i]);
    for (uint32_t slot = b->chain, next; slot != NONE; slot = next) {
        next = queue->nodes[slot].next;
        keep_or_release(queue, slot);
    }
}

/* Puts all events into far, but for the cancelled ones, from where they are laid out as is best now. */
static void start_anew(pc_queue *queue) {
    uint32_t far_count = queue->far_count;
    first_rung_settle(queue);
    far_clear(queue);
    for (uint32_t i = 0; i < far_count; i++) keep_or_release(queue, queue->far[i]); /* far only gets shorter */
    for (uint32_t i = queue->first; i < queue->last; i++) keep_or_release(queue, queue->near[i]);
    for (int i = 0; i < queue->rung_count; i++)
        for (uint32_t b = queue->rungs[i].current; b < queue->rungs[i].count; b++)
            keep_bucket(queue, &queue->rungs[i].buckets[b]);
    near_clear(queue);
    queue->rung_count = 0;
    queue->near_end = 0;
}

/* Whether the first rung has got many more events than it was laid out for: then its buckets are long chains. */
static inline bool is_crowded(const pc_queue *queue) {
    return queue->rung_count > 0 && queue->rungs[0].held > queue->rungs[0].crowded;
}

/* ---- memory ---- */

static bool grow_array(uint32_t **array, size_t count) {
    uint32_t *grown = pc_realloc(*array, count, sizeof *grown);
    if (!grown) return false;
    *array = grown;
    return true;
}

/* Buckets move only while the rung is not in use, or by whole copies. */
static bool grow_rung(rung *r, uint32_t capacity) {
    if (capacity <= r->capacity) return true;
    bucket *buckets = pc_alloc_aligned(CACHE_LINE, capacity, sizeof *buckets);
    if (!buckets) return false;
    if (r->buckets) memcpy(buckets, r->buckets, r->capacity * sizeof *buckets);
    pc_free(r->buckets);
    r->buckets = buckets;
    r->capacity = capacity;
    return true;
}

static bool grow_rungs(pc_queue *queue, size_t capacity) {
    size_t first = capacity / BUCKET_SHARE + 1;
    if (!grow_rung(&queue->rungs[0], first > FIRST_BUCKETS ? (uint32_t)first : FIRST_BUCKETS)) return false;
    for (int i = 1; i < RUNGS; i++)
        if (!grow_rung(&queue->rungs[i], FINE_BUCKETS)) return false;
    return true;
}

static void add_free_nodes(pc_queue *queue, uint32_t from, uint32_t to) {
    for (uint32_t i = to; i-- > from;) {
        queue->nodes[i] = (queue_node){.next = queue->free};
        queue->free = i;
    }
}

/* All arrays first, the capacity last: where one is refused the queue is as it was, only roomier in places. */
static bool grow(pc_queue *queue, size_t capacity) {
    if (capacity > PC_QUEUE_PENDING_MAX) return false;
    queue_node *nodes = pc_realloc(queue->nodes, capacity, sizeof *nodes);
    if (!nodes) return false;
    queue->nodes = nodes;
    if (!grow_array(&queue->far, capacity)) return false;
    if (!grow_array(&queue->near, capacity > RUN_WINDOW ? capacity : RUN_WINDOW)) return false;
    if (capacity > RUN_LIMIT && !grow_rungs(queue, capacity)) return false;
    add_free_nodes(queue, queue->capacity, (uint32_t)capacity);
    queue->capacity = (uint32_t)capacity;
    return true;
}

/* All nodes are in use. Where most of them are cancelled events, throwing those out is cheaper than more memory, and
 * keeps a caller that cancels all the time (flows whose rates change) from growing for ever. */
static bool make_room(pc_queue *queue) {
    if (queue->pending <= queue->capacity / 2) {
        start_anew(queue);
        return true;
    }
    return grow(queue, 2 * (size_t)queue->capacity);
}

pc_code pc_queue_create(size_t capacity, pc_queue **queue, pc_error *error) {
    pc_queue *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    made->free = NONE;
    if (!grow(made, capacity < RUN_LIMIT ? RUN_LIMIT : capacity)) {
        pc_queue_free(made);
        return pc_error_no_memory(error);
    }
    pc_queue_clear(made);
    *queue = made;
    return PC_OK;
}

void pc_queue_free(pc_queue *queue) {
    if (!queue) return;
    for (int i = 0; i < RUNGS; i++) pc_free(queue->rungs[i].buckets);
    pc_free(queue->near);
    pc_free(queue->far);
    pc_free(queue->nodes);
    pc_free(queue);
}

/* Every node gets the next generation, so that no old handle fits. */
static void free_all_nodes(pc_queue *queue) {
    queue->free = NONE;
    for (uint32_t i = queue->capacity; i-- > 0;) release(queue, i);
}

void pc_queue_clear(pc_queue *queue) {
    free_all_nodes(queue);
    near_clear(queue);
    far_clear(queue);
    queue->near_end = UINT64_MAX;
    queue->rung_count = 0;
    memset(queue->later, 0xff, sizeof queue->later);
    queue->pending = 0;
    queue->sequence = 0;
}

/* ---- what callers see ---- */

size_t pc_queue_size(const pc_queue *queue) {
    return queue->pending;
}

bool pc_queue_push(pc_queue *queue, pc_time time, uint16_t priority, const pc_event *event, pc_event_handle *handle) {
    assert(time >= 0 && event->kind != DEAD);
    if (queue->free == NONE && !make_room(queue)) return false;
    if (queue->sequence >= (uint64_t)PC_QUEUE_PUSHES_MAX) return false;
    uint32_t slot = queue->free;
    queue_node *n = &queue->nodes[slot];
    queue->free = n->next;
    n->key = (event_key){(uint64_t)time, (uint64_t)priority << PRIORITY_SHIFT | queue->sequence++};
    n->event = *event;
    queue->pending++;
    if (handle) *handle = (pc_event_handle){slot, n->generation};
    if (n->key.time < queue->near_end) {
        near_insert(queue, n->key, slot);
        return true;
    }
    ladder_insert(queue, slot);
    if (is_crowded(queue)) start_anew(queue);
    return true;
}

bool pc_queue_pop(pc_queue *queue, pc_time *time, pc_event *event) {
    if (!find_first(queue)) return false;
    uint32_t slot = queue->near[queue->first];
    *time = (pc_time)queue->nodes[slot].key.time;
    *event = queue->nodes[slot].event;
    near_drop_first(queue);
    queue->pending--;
    release(queue, slot);
    return true;
}

bool pc_queue_next_time(pc_queue *queue, pc_time *time) {
    if (!find_first(queue)) return false;
    *time = (pc_time)key_at(queue, queue->first).time;
    return true;
}

bool pc_queue_cancel(pc_queue *queue, pc_event_handle handle) {
    if (handle.index >= queue->capacity) return false;
    queue_node *n = &queue->nodes[handle.index];
    if (n->generation != handle.generation || n->event.kind == DEAD) return false;
    n->event.kind = DEAD; /* its place is given back when its time comes */
    queue->pending--;
    return true;
}

size_t pc_queue_bytes(const pc_queue *queue) {
    size_t bytes = sizeof *queue + queue->capacity * (sizeof(queue_node) + 2 * sizeof(uint32_t));
    for (int i = 0; i < RUNGS; i++) bytes += queue->rungs[i].capacity * sizeof(bucket);
    return bytes;
}
