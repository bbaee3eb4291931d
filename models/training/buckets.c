#include "models/training/buckets.h"

#include "engine/numbers.h"
#include "models/training/outline_units.h"
#include "models/training/state.h"
#include "models/training/state_host.h"

/* A bound on what a tiny bucket can make of a large chunk. */
enum { BUCKETS_MAX = 65536 };

/* Megatron's least bucket, 40 million gradients of whatever size (`ddp_bucket_size`; beyond 40 replicas it takes a
 * million a replica); and how many it takes until more of them change little. */
enum { USUAL_BUCKET_GRADIENTS = 40000000, USUAL_BUCKETS_MAX = 16 };

/* Where a whole chunk's gradients or parameters are never there at once (ZeRO 2 and 3), a bucket is a layer at most. */
static int32_t count_buckets(const pc_outline *outline, const pc_part_cost *part) {
    int64_t each = pc_cut_gradient_bytes(&outline->cut), given = outline->spec->bucket_bytes;
    int64_t bucket = given > 0 ? given : USUAL_BUCKET_GRADIENTS * each;
    int64_t in_them = outline->cut.zero == 3 ? part->parameters : part->trained;
    int64_t layers = part->part.layers, count = (in_them * each - 1) / bucket + 1;
    if (given == 0 && count > USUAL_BUCKETS_MAX) count = USUAL_BUCKETS_MAX;
    if (outline->cut.zero >= 2 && count < layers) count = layers;
    return (int32_t)(count < 1 ? 1 : count > BUCKETS_MAX ? BUCKETS_MAX : count);
}

/* ---- what they carry ---- */

/* Of one of the chunk's buckets: those parameters that are trained, and are not folded experts'; and those that are. */
static double gradient_bytes(const pc_outline *outline, int device, int chunk, bool of_experts) {
    const pc_chunk_outline *x = &outline->chunks_of[(int64_t)device * outline->chunks + chunk];
    const pc_part_cost *part = &outline->part_costs[x->sort];
    int64_t count = of_experts ? part->expert_trained : part->trained - part->expert_trained;
    return (double)count * pc_cut_gradient_bytes(&outline->cut) / x->buckets;
}

/* What a gather of parameters carries: all that ZeRO 3 has cut, otherwise what the step has changed; few bits for those
 * of the recipe, if it gathers them so, as many of folded experts' as of all. */
static double gathered_bytes(const pc_outline *outline, int device, int chunk, bool of_experts) {
    const pc_low_precision *low = &outline->spec->model.low;
    const pc_chunk_outline *x = &outline->chunks_of[(int64_t)device * outline->chunks + chunk];
    const pc_part_cost *part = &outline->part_costs[x->sort];
    bool is_frozen = pc_cut_frozen(&outline->cut) & (int32_t)PC_FROZEN_LAYERS && outline->cut.zero < 3;
    int64_t all = outline->cut.zero < 3 ? part->trained : part->parameters;
    int64_t of_folded = outline->cut.zero < 3 ? part->expert_trained : part->expert_parameters;
    int64_t gathered = of_experts ? of_folded : all - of_folded;
    if (part->low_weights == 0 || !low->gathers_parameters || is_frozen)
        return (double)gathered * PC_PARAMETER_BYTES / x->buckets;
    int64_t few = pc_min(part->low_weights, of_folded);
    few = of_experts ? few : part->low_weights - few;
    return ((double)(gathered - few) * PC_PARAMETER_BYTES + (double)pc_product_format_bytes(low->product[0], few)) /
           x->buckets;
}

/* ---- what they go through ---- */

static void add_course(const pc_outline *outline, const pc_group *group, pc_collective collective, double bytes,
                       pc_bucket_courses *courses) {
    courses->group[courses->count] = group;
    courses->course[courses->count++] =
        pc_collective_course_of(&outline->spec->machine, group, collective, PC_ALGORITHM_BEST, bytes);
}

/* A group that shards a bucket in pieces reduces each with those of the other groups. */
pc_bucket_courses pc_outline_reduction(const pc_outline *outline, int device, int chunk) {
    bool gives = pc_outline_gives_tensors(outline);
    pc_collective collective =
        outline->cut.zero == 0 || gives ? PC_COLLECTIVE_ALL_REDUCE : PC_COLLECTIVE_REDUCE_SCATTER;
    double bytes = gradient_bytes(outline, device, chunk, false),
           of_experts = gradient_bytes(outline, device, chunk, true);
    pc_bucket_courses courses = {.count = 0};
    add_course(outline, gives ? &outline->dp : &outline->shard, collective, bytes, &courses);
    if (outline->replicate.ranks > 1 && !gives)
        add_course(outline, &outline->replicate, PC_COLLECTIVE_ALL_REDUCE, bytes / outline->shard.ranks, &courses);
    if (!(of_experts > 0)) return courses;
    const pc_expert_places *experts = &outline->experts;
    add_course(outline, gives ? &experts->replicas : &experts->shard, collective, of_experts, &courses);
    if (experts->replicate.ranks > 1 && !gives)
        add_course(outline, &experts->replicate, PC_COLLECTIVE_ALL_REDUCE,
                   of_experts / pc_outline_expert_ranks(outline), &courses);
    return courses;
}

/* A stage may have no layers, and no end. */
static pc_collective_course share_of(const pc_owners *owners, int64_t parameters, int64_t all, int64_t buckets) {
    return pc_course_share(&owners->course, (double)parameters / (double)pc_max(all, 1) / (double)buckets);
}

/* Folded experts' tensors are given to the ranks that have the same experts (Megatron-LM's
 * megatron/core/optimizer/layer_wise_optimizer.py has a list for each of the two groups). */
static pc_bucket_courses broadcasts(const pc_outline *outline, const pc_device_outline *held,
                                    const pc_chunk_outline *x) {
    const pc_part_cost *part = &outline->part_costs[x->sort];
    pc_bucket_courses courses = {.count = 1, .group = {&outline->shard}};
    courses.course[0] = share_of(&held->owners, part->parameters - part->expert_parameters,
                                 held->parameter_count - held->expert_count, x->buckets);
    if (part->expert_parameters == 0) return courses;
    courses.group[1] = &outline->experts.shard;
    courses.course[1] = share_of(&held->expert_owners, part->expert_parameters, held->expert_count, x->buckets);
    courses.count = 2;
    return courses;
}

pc_bucket_courses pc_outline_gathering(const pc_outline *outline, int device, int chunk) {
    const pc_chunk_outline *x = &outline->chunks_of[(int64_t)device * outline->chunks + chunk];
    const pc_device_outline *held = &outline->device[device];
    pc_bucket_courses courses = {.count = 0};
    if (pc_outline_gives_tensors(outline)) return broadcasts(outline, held, x);
    double of_experts = gathered_bytes(outline, device, chunk, true);
    add_course(outline, &outline->shard, PC_COLLECTIVE_ALL_GATHER, gathered_bytes(outline, device, chunk, false),
               &courses);
    if (of_experts > 0) add_course(outline, &outline->experts.shard, PC_COLLECTIVE_ALL_GATHER, of_experts, &courses);
    return courses;
}

double pc_bucket_seconds(const pc_bucket_courses *courses) {
    double seconds = courses->course[0].seconds;
    for (int i = 1; i < courses->count; i++) seconds += courses->course[i].seconds;
    return seconds;
}

static double sent_bytes(const pc_bucket_courses *courses) {
    double bytes = pc_outline_alone_by(courses->course[0]).sent_bytes;
    for (int i = 1; i < courses->count; i++) bytes += pc_outline_alone_by(courses->course[i]).sent_bytes;
    return bytes;
}

/* ---- a chunk's ---- */

/* A neighbour that holds the same sort of part, or NULL. */
static const pc_chunk_outline *find_like(const pc_outline *outline, int device, int chunk) {
    const pc_chunk_outline *x = &outline->chunks_of[(int64_t)device * outline->chunks + chunk];
    if (chunk > 0 && x[-1].sort == x->sort) return &x[-1];
    return device > 0 && x[-outline->chunks].sort == x->sort ? &x[-outline->chunks] : NULL;
}

/* Of the shares that a rank has of a bucket, over the host's link where they are there. */
static double copy_s(const pc_outline *outline, double bytes, double of_experts) {
    double all = pc_outline_share_copy_s(outline, bytes, outline->shard.ranks);
    return of_experts > 0 ? all + pc_outline_share_copy_s(outline, of_experts, outline->experts.shard.ranks) : all;
}

static pc_code add_gathering(pc_outline *outline, int device, int chunk, pc_error *error) {
    pc_chunk_outline *x = &outline->chunks_of[(int64_t)device * outline->chunks + chunk];
    pc_bucket_courses gathering = pc_outline_gathering(outline, device, chunk);
    x->gather_bytes = sent_bytes(&gathering);
    double copied_s =
        copy_s(outline, gathered_bytes(outline, device, chunk, false), gathered_bytes(outline, device, chunk, true));
    return pc_outline_time("parameters", pc_bucket_seconds(&gathering) + copied_s, x->buckets, &x->gather_ps, error);
}

static pc_code add_reduction(pc_outline *outline, int device, int chunk, pc_error *error) {
    pc_chunk_outline *x = &outline->chunks_of[(int64_t)device * outline->chunks + chunk];
    pc_bucket_courses reduction = pc_outline_reduction(outline, device, chunk);
    x->reduce_bytes = sent_bytes(&reduction);
    double copied_s =
        copy_s(outline, gradient_bytes(outline, device, chunk, false), gradient_bytes(outline, device, chunk, true));
    return pc_outline_time("gradients", pc_bucket_seconds(&reduction) + copied_s, x->buckets, &x->reduce_ps, error);
}

/* Where each rank steps its share of the parameters alone they are gathered, too. Of the slices of a sequence the first
 * has collectives, whose backward pass is the last of its microbatch. */
pc_code pc_outline_add_buckets(pc_outline *outline, int device, int chunk, pc_error *error) {
    pc_chunk_outline *x = &outline->chunks_of[(int64_t)device * outline->chunks + chunk];
    const pc_chunk_outline *like = find_like(outline, device, chunk);
    if (like) {
        bool is_later = outline->part_costs[x->sort].part.slice > 0;
        *x = *like;
        return !is_later && pc_outline_gives_tensors(outline) ? add_gathering(outline, device, chunk, error) : PC_OK;
    }
    *x = (pc_chunk_outline){.sort = x->sort, .buckets = count_buckets(outline, &outline->part_costs[x->sort])};
    if (!pc_outline_has_replicas(outline) || outline->part_costs[x->sort].part.slice > 0) return PC_OK;
    if (pc_outline_has_units(outline) && pc_outline_add_units(outline, device, chunk, &x->units, error))
        return error ? error->code : PC_ERROR_INPUT;
    pc_code code = add_reduction(outline, device, chunk, error);
    return code || outline->cut.zero == 0 ? code : add_gathering(outline, device, chunk, error);
}
