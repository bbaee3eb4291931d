/* robust_private.h: what the files of robust orders share. Private to models/schedule/. */
#ifndef PC_MODELS_SCHEDULE_ROBUST_PRIVATE_H
#define PC_MODELS_SCHEDULE_ROBUST_PRIVATE_H

#include "models/schedule/robust.h"

#include "engine/random.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/reorder.h"
#include "models/schedule/search/sampled.h"

/* Entries in all, and of candidates at most. */
enum { PC_ROBUST_ENTRIES = 64, PC_ROBUST_NAMED = 48 };

/* An order, and what it is worth: `score` is to be small, and INFINITY where it is worth nothing. */
typedef struct pc_robust_entry {
    pc_instance_order order;
    pc_sampled_sequence sequence; /* of those that are chosen among, as the next */
    double *span_ps;              /* [samples] */
    double score;
} pc_robust_entry;

/* A thread's things; all owned. */
typedef struct pc_robust_worker {
    pc_reorder *room;
    pc_sampled *sampled;
    pc_sampled_draws draws;
    pc_sampled_sequence sequence;
    pc_instance_order walk, trial;
    double *pass, *transfer;            /* pc_drawn_factors; one block; transfer is NULL where none are drawn */
    double *span_ps, *walk_ps, *sorted; /* of draws to look with; the first two are one block */
    pc_error error;                     /* of the first draw that failed here */
} pc_robust_worker;

typedef struct pc_robust_work {
    const pc_robust_request *request;
    pc_costs costs; /* the request's, as an instance counts them */
    int64_t *none;  /* zeros, where these need them */
    bool splits;    /* whether B and W are apart */
    pc_instance instance;
    pc_search_memo *memo, *own_memo;
    int threads, batches, count, finalists;
    pc_robust_worker *workers;
    pc_sampled_draws *looking;                  /* [batches] */
    pc_robust_entry entries[PC_ROBUST_ENTRIES]; /* the first is the given order, and stays it */
} pc_robust_work;

/* In robust_candidates.c. Orders that keep the limits, behind the given one. */
pc_code pc_robust_add_candidates(pc_robust_work *work, pc_error *error);

#endif
