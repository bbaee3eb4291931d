/* buckets.h: collectives of data parallelism: what reduces a chunk's gradients and brings its parameters back, bucket
 * by bucket. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_BUCKETS_H
#define PC_MODELS_TRAINING_BUCKETS_H

#include "models/training/outline.h"

/* What a bucket goes through, one after the other, each over its group (borrowed from the outline). Folded experts of
 * the bucket come last, over the ranks that have the same ones, likewise. */
enum { PC_BUCKET_COURSES = 4 };
typedef struct pc_bucket_courses {
    int count; /* at least 1 */
    const pc_group *group[PC_BUCKET_COURSES];
    pc_collective_course course[PC_BUCKET_COURSES];
} pc_bucket_courses;

/* Whether some of a stage's parameters stand on more ranks than one. */
static inline bool pc_outline_has_replicas(const pc_outline *outline) {
    return outline->dp.ranks > 1 || outline->experts.replicas.ranks > 1;
}

/* Whether whole tensors are given to ranks. One rank has nobody to give to: all that it has is its own, as without
 * ZeRO. */
static inline bool pc_outline_gives_tensors(const pc_outline *outline) {
    return pc_outline_has_replicas(outline) && pc_cut_gives_tensors(&outline->cut);
}

/* Who shares the state of folded experts, at least one. */
static inline int pc_outline_expert_ranks(const pc_outline *outline) {
    return outline->experts.shard.ranks > 1 ? outline->experts.shard.ranks : 1;
}

/* Of gradients: over outline->shard, and a share of them is then all-reduced over outline->replicate, if that has
 * ranks. Where whole tensors are given to ranks it is all of outline->dp, and there is no second one. */
pc_bucket_courses pc_outline_reduction(const pc_outline *outline, int device, int chunk);

/* Of parameters: all-gathers; or, where whole tensors are given to ranks, the bucket's part of their broadcasts. */
pc_bucket_courses pc_outline_gathering(const pc_outline *outline, int device, int chunk);

/* Alone. */
double pc_bucket_seconds(const pc_bucket_courses *courses);

/* Fills in the collectives of a chunk, of an outline whose parts are known. */
pc_code pc_outline_add_buckets(pc_outline *outline, int device, int chunk, pc_error *error);

#endif
