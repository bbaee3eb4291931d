/* queue_internal.h: how the queue lies in memory; for queue.c and queue_check.c only. */
#ifndef PC_ENGINE_QUEUE_INTERNAL_H
#define PC_ENGINE_QUEUE_INTERNAL_H

#include "engine/queue.h"

enum {
    NONE = 0xffffffff,     /* the end of a chain */
    RUN_LIMIT = 48,        /* a longer run is spread over a rung, or becomes a heap */
    RUN_WINDOW = 256,      /* a run moves back to the first place when it has wandered so far */
    BUCKET_ROOM = 14,      /* node numbers in a bucket's cache line; more are chained */
    BUCKET_AIM = 3,        /* events in a bucket, on average, when a rung is laid out and has buckets enough */
    BUCKET_SHARE = 5,      /* room for so many events for each bucket of the first rung: bounds the memory */
    BUCKET_SPLIT = 48,     /* a bucket of more is spread over a rung of its own */
    CROWD = 4,             /* a rung that holds so many times what it was laid out for is laid out anew */
    CACHED_BUCKETS = 4096, /* a first rung of no more stays in the cache */
    RUNGS = 8,             /* the first as long as the capacity allows, the others FINE_BUCKETS at most */
    FIRST_BUCKETS = 1024,  /* the first rung has these at least */
    FINE_BUCKETS = 256,
    LATER = 8, /* events on their way into the first rung while its cache lines are fetched */
    PRIORITY_SHIFT = 48,
    CACHE_LINE = 64,
};

typedef struct event_key {
    uint64_t time;
    uint64_t order; /* priority, then sequence */
} event_key;

typedef struct queue_node {
    event_key key;
    uint32_t next; /* in a bucket's chain, or in the free list */
    uint32_t generation;
    pc_event event;
} queue_node;

typedef struct bucket {
    uint32_t count;
    uint32_t chain; /* of those that the line has no room for */
    uint32_t slots[BUCKET_ROOM];
} bucket;

_Static_assert(sizeof(queue_node) == 40,
               "a node, its places in near and far (8) and its share of a bucket (13): 61 bytes");
_Static_assert(sizeof(bucket) == CACHE_LINE, "a bucket is a cache line");

/* Buckets of 2^shift picoseconds from `start` on; those before `current` are spent. Times from `end` on are not its. */
typedef struct rung {
    bucket *buckets;
    uint32_t capacity, count, current;
    uint32_t held, crowded; /* events in it, and so many that it must be laid out anew */
    int shift;
    uint64_t start, end;
} rung;

struct pc_queue {
    uint32_t *near; /* a run, or a heap from place 0 on; places first to last-1 */
    uint32_t first, last;
    bool is_heap;
    uint32_t spill_at; /* a heap of so many is tried to be spread again */
    uint64_t near_end;
    int rung_count; /* the last one is the finest, and the next in time */
    rung rungs[RUNGS];
    uint32_t *far;
    uint32_t far_count;
    uint64_t far_least, far_most;
    unsigned __int128 far_sum;
    uint32_t later[LATER]; /* a ring of events whose buckets have been asked for; NONE is an empty place */
    uint32_t later_next;
    queue_node *nodes;
    uint32_t capacity, free, pending;
    uint64_t sequence;
};

#define DEAD UINT32_MAX /* event.kind of a cancelled event */

static inline bool before(event_key a, event_key b) {
    unsigned __int128 x = (unsigned __int128)a.time << 64 | a.order, y = (unsigned __int128)b.time << 64 | b.order;
    return x < y;
}

static inline uint32_t near_count(const pc_queue *queue) {
    return queue->last - queue->first;
}

static inline event_key key_at(const pc_queue *queue, size_t place) {
    return queue->nodes[queue->near[place]].key;
}

/* Where a bucket ends. */
static inline uint64_t saturating_add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif
