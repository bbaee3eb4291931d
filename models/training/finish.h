/* finish.h: from the end of the pipelines to the end of the iteration: the last gradients, the norm, the step. Private
 * to models/training/. */
#ifndef PC_MODELS_TRAINING_FINISH_H
#define PC_MODELS_TRAINING_FINISH_H

#include "models/training/expand_replicas.h"
#include "models/training/outline.h"

/* Until when each stage's stream of collectives is taken by gradients of other passes than the last ones, backlog_ps
 * [devices]: ZeRO 2 reduces those of every microbatch. 0 otherwise. */
void pc_outline_find_backlog(const pc_outline *outline, const pc_schedule *schedule, const pc_time *end_ps,
                             pc_time *backlog_ps);

/* When each stage's gradients are reduced, done_ps [devices]: the last passes' buckets, as they become ready, one after
 * the other on a stage's one stream, each at what it takes when alone. `ends` are those of one pipeline, or the latest
 * of all replicas: a bucket waits for them all. What the stage's kernels lose beside such collectives (slowed_ps) comes
 * on top of its end: that it is lost is known of the stage, not when. */
void pc_outline_reduce_gradients(const pc_outline *outline, int without, const pc_pipeline_ends *ends,
                                 const pc_time *backlog_ps, pc_time *done_ps);

/* PC_ERROR_INPUT if the last stage is done so late that what follows may run over. */
pc_code pc_outline_check_end(pc_time end_ps, pc_error *error);

/* The iteration from its first gathering of parameters to its last step, overhead included, given when each stage's own
 * work begins (begin_ps), and when the stage has its gradients (done_ps, overwritten: POST_VALIDATION, with how long
 * the stage takes from where its own work begins to its own step's end). */
pc_code pc_outline_finish(const pc_outline *outline, int without, const pc_time *begin_ps, pc_time *done_ps,
                          pc_time *iteration_ps, pc_error *error);

/* POST_VALIDATION: iterations follow each other at the pace of the stage that takes longest for its own, from its own
 * beginning, all else being there in time. That is no longer than what pc_outline_finish has found, and shorter where a
 * stage begins early only to wait for what another one began late: then that stage, begun later, would be done as
 * early.
 *
 * So stages are held back, one at a time, the one first that took longest, until all that does not wait for it is long
 * over. What it takes from there on are the chains that begin with it. Those are sums of times, and the longest of them
 * counts: no faster pass or transfer makes it longer. The difference of a stage's end and its beginning, where each
 * comes as early as it can, may grow, for both may come earlier. (Iterations that wait for each other through several
 * stages may take longer still: of 10,000 random ones one in a hundred does, by 0.02% at most.)
 *
 * begin_ps [devices] and period_ps [devices], overwritten: pc_outline_finish's, the latter what that left in done_ps.
 * Likewise *iteration_ps, which stays if iterations take weeks: two of them could not be counted. `time_held` times
 * all once more with one stage held back, by pc_outline_hold, and writes when that one's step ends. */
typedef pc_code pc_time_held(void *context, int device, pc_time held_ps, pc_time *step_end_ps);
pc_code pc_outline_own_pace(const pc_outline *outline, const pc_time *begin_ps, pc_time *period_ps,
                            pc_time_held *time_held, void *context, pc_time *iteration_ps);

/* When chunks are ready, ready_ps [devices][chunks], with one stage held back. */
void pc_outline_hold(const pc_costs *costs, int device, pc_time held_ps, pc_time *ready_ps);

/* What of that the norm and the step of the slowest stage are. */
pc_time pc_outline_step_ps(const pc_outline *outline);

#endif
