/* plan_search.h: from the points of a space to the best plans. Private to models/planner/.
 *
 * A pass bounds every point, and keeps the best so many by their bounds; these are simulated in rounds, from the best
 * bound on, until the next bound is beaten. Where more points were left than are kept, another pass follows, for the
 * best of those behind. Memory is flat, whatever the number of points, and neither a round nor what is kept depends on
 * the number of threads.
 *
 * If one plan a cut is wanted, the first pass keeps few candidates of each frame (space.h), so that all cuts that may
 * be among the best have some. Beside them it keeps a mark that says from which rank on a frame has more. If such a
 * mark is still not ruled out when all that was kept is simulated, further passes look at every point again, but for
 * those of frames that the first pass's bounds rule out as a whole.
 */
#ifndef PC_MODELS_PLANNER_PLAN_SEARCH_H
#define PC_MODELS_PLANNER_PLAN_SEARCH_H

#include "models/planner/bounder.h"
#include "models/planner/rank.h"
#include "models/planner/space.h"

/* A point that its bounds do not rule out. */
typedef struct plan_candidate {
    plan_rank rank; /* of its bounds; exhaustive: of its number alone */
    double bound_s;
    bool is_rest; /* no point: more of its frame, which are no better */
} plan_candidate;

/* The best of the candidates that were offered, at most `room` of them: a heap, the worst on top. Most often few are
 * enough, and the fewer are kept the sooner others are turned away: the first pass keeps fewer. */
enum { PLAN_KEPT_FIRST = 1 << 10, PLAN_KEPT = 1 << 16, PLAN_KEPT_OF_FRAME = 4 };
typedef struct plan_heap {
    const plan_ranking *ranking; /* borrowed */
    plan_candidate *list;
    int64_t count, room;
    bool is_over; /* more were offered than are kept */
} plan_heap;

/* What the first pass found of a frame: none of its shapes that may fit has less of either. And of a pass that kept
 * few: the least first keys of what it offered, and of what it did not. */
typedef struct plan_frame_bound {
    bool has_shapes;
    pc_time least_ps;
    int64_t memory_bytes;
    double offered, rest;
} plan_frame_bound;

/* Frames whose bounds are kept: 40 MB. Of a larger space further passes look at every shape. */
enum { PLAN_FRAMES_KEPT = 1 << 20 };

typedef struct plan_search {
    const pc_plan_space *space;
    const pc_plan_request *request;
    plan_numbers numbers;
    plan_ranking ranking;
    plan_best best;
    pc_plan_log log;
    int threads;
    pc_search_memo *memo;  /* of all simulations; owned */
    bool is_searched;      /* the stage: of schedules that search, or of the others, which come first */
    int passes;            /* done in this stage */
    int64_t kept;          /* in this pass */
    int64_t kept_of_frame; /* likewise; 0: any number */
    int64_t *scouted;      /* numbers of what such a pass simulated or ruled out, ascending; owned */
    int64_t scouted_count;
    plan_frame_bound *frames; /* by number; NULL: not kept. Owned */
    bool has_rests;           /* of them */
    double dropped;           /* no first key of what was offered and not kept is below; infinite: all was kept */
    bool has_floor;
    plan_rank floor; /* candidates up to this one are done */
} plan_search;

/* crew.c: whether item `index` of a piece of work is this rank's; every one is one rank's. */
static inline bool plan_is_mine(const plan_search *search, int64_t index) {
    return search->request->crew.size <= 1 || index % search->request->crew.size == search->request->crew.rank;
}
/* Items of which each rank has made its own: on return all have all. `code` is that of the own work. Alone: `code`. */
pc_code plan_share_items(const plan_search *search, pc_code code, void *items, size_t size, int64_t count,
                         pc_error *error);
/* The same of what a pass left in each rank's heap, and of what the log counts since it was `before`. */
pc_code plan_share_pass(plan_search *search, pc_code code, const pc_plan_log *before, plan_heap *heap, pc_error *error);
/* Whether a frame's cut is in the share that was asked for. */
bool plan_is_in_shard(const plan_search *search, int64_t frame);

/* Facts that are kept; false and PC_OK if nobody keeps any. */
bool plan_find_fact(const plan_search *search, const pc_plan_choice *choice, const pc_iteration_spec *spec,
                    pc_plan_work work, pc_plan_fact *fact);
pc_code plan_keep_fact(const plan_search *search, int64_t number, pc_plan_work work, const pc_plan_fact *fact,
                       pc_error *error);

/* scout.c: says some plans that fit, found in a moment and far from the best, to who asked for better ones. */
pc_code plan_scout(const plan_search *search, pc_error *error);

/* planner.c: what simulating a point gives; the plan of that, if it is one (status OK). */
pc_code plan_simulate(const plan_search *search, const pc_plan_choice *choice, pc_plan_fact *fact, pc_error *error);
plan_ranked plan_ranked_of(const plan_search *search, const plan_candidate *candidate, const pc_plan_fact *fact);

/* planner.c: of no plans yet; numbers and ranking are there. */
void plan_best_make(plan_search *search);

/* planner.c: says it to who asked, if this is the caller's thread. */
void plan_say_progress(const plan_search *search, int worker, pc_plan_phase phase, int64_t done, int64_t total);

/* PC_ERROR_STOPPED if whoever asked wants no more of it. */
pc_code plan_check_stop(const plan_search *search, pc_error *error);

/* heap.c */
pc_code plan_heap_make(plan_heap *heap, const plan_ranking *ranking, int64_t room, pc_error *error);
void plan_heap_free(plan_heap *heap);
void plan_heap_offer(plan_heap *heap, const plan_candidate *candidate);
/* Whether a candidate of this rank, or of one no better, would not be kept; it then counts as offered. */
bool plan_heap_turns_away(plan_heap *heap, const plan_rank *rank);
/* Best first; the heap is none from then on. */
void plan_heap_sort(plan_heap *heap);

/* queue.c */
typedef struct plan_queue {
    const plan_search *search; /* borrowed, as the heap, which is sorted */
    const plan_heap *heap;
    int64_t next;          /* of the heap's that come by the bounds that they have */
    plan_candidate *close; /* with close bounds, from `taken` on in their order; owned, as the next */
    int64_t taken, count, room;
    plan_bounder *bounders; /* one a thread */
} plan_queue;
pc_code plan_queue_make(const plan_search *search, const plan_heap *heap, plan_queue *queue, pc_error *error);
void plan_queue_free(plan_queue *queue);
/* The next candidates that what was found does not rule out, at most `most`: none that is left can be better than any
 * of them. */
pc_code plan_queue_next(plan_queue *queue, int64_t most, plan_candidate *list, int64_t *count, pc_error *error);
int64_t plan_queue_left(const plan_queue *queue); /* how many may still come, at most */

/* walk.c: bounds all points, and leaves the best of those that are not ruled out, sorted, in `heap`. The first pass
 * fills in the log's counts of points, broken rules and memory. */
pc_code plan_walk(plan_search *search, plan_heap *heap, pc_error *error);

/* Both bounds of one choice, whose rules are kept; and its room. PC_ERROR_INPUT if it has a time that cannot be. */
typedef struct plan_bounds {
    int64_t memory_bytes, capacity_bytes;
    double time_s;
} plan_bounds;
pc_code plan_bound_choice(plan_bounder *bounder, const pc_plan_space *space, const pc_plan_choice *choice,
                          plan_bounds *bounds, pc_error *error);

#endif
