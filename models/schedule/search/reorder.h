/* reorder.h: makes an order of passes shorter without more memory: squeeze, and the reordering of warm-up and cool-down
 * of 'Pipeline Parallelism with Controllable Memory' (arXiv 2405.15362, section 3), generalised.
 *
 * One sweep runs the orders of all devices forward in time. A device whose next pass is not ready yet may pull a later
 * one into the gap, where that neither delays the next one nor lifts the device's memory above its limit. The same
 * sweep over the instance run backwards in time pushes passes towards the end. Sweeps to and fro (forward-backward
 * improvement; Li & Willis 1992, European Journal of Operational Research 56, for projects with limited resources) move
 * idle time out of the middle of a schedule to its ends, where it does not count. Private to the generators.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_REORDER_H
#define PC_MODELS_SCHEDULE_SEARCH_REORDER_H

#include "engine/error.h"
#include "models/schedule/block.h"
#include "models/schedule/search/instance.h"

#include <stdbool.h>
#include <stdint.h>

/* Room to work in, for orders of one instance; one thread at a time. */
typedef struct pc_reorder pc_reorder;

/* The instance must outlive it. Free with pc_reorder_free (NULL is fine). */
pc_code pc_reorder_create(const pc_instance *instance, pc_reorder **reorder, pc_error *error);
void pc_reorder_free(pc_reorder *reorder);

/* Writes order->pass: a building block, repeated and packed on the grid of its own cells. In the order in which they
 * start in the repeated block, passes move into the first gap of their device that memory allows. So the F of later
 * chunks get memory before the F of chunk 0 that run far ahead; in a sweep it would go to whichever is ready first. */
void pc_reorder_pack(pc_reorder *reorder, const pc_block *block, pc_instance_order *order);

/* Fills in start, span, makespan and peak for the order that stands in order->pass: every pass as early as it can run.
 * False where the order has a deadlock or does not keep the limits. */
bool pc_reorder_squeeze(pc_reorder *reorder, pc_instance_order *order);

/* The ways in which an order can be improved, which lead to different ends. Bit 0 chooses which of two rules for the
 * size of a gap goes first; they alternate. The rest is a seed: 0 lets every sweep pull what it can; with others a
 * sweep looks only a few passes ahead, how few being drawn anew for each sweep from the seed. */
enum { PC_REORDER_EAGER = 0, PC_REORDER_STRICT = 1 };
static inline int pc_reorder_drawn(int seed) {
    return 2 * seed;
}

/* Replaces a squeezed order by the best that up to `rounds` sweeps to and fro find: its span is never longer, its
 * memory within the limits. Ends early where the span is down to `enough` or, with seed 0, several rounds gained
 * nothing, or changed nothing. True if it ended so and has left the order as it was: done again it would do the same.
 */
bool pc_reorder_improve(pc_reorder *reorder, int rounds, int way, pc_time enough, pc_instance_order *order);

/* Goes on from a squeezed order in which sweeps find nothing more, up to `kicks` times. In a kick a few passes move to
 * another place of their device's order, and sweeps improve what that gives. The next kick goes on from that unless it
 * is longer. The order changes where the span gets shorter. Ends early where `patience` kicks in a row gained nothing
 * or the span is down to `enough`. The stream is fixed by `way`.
 */
void pc_reorder_kick(pc_reorder *reorder, int kicks, int patience, int way, pc_time enough, pc_instance_order *order);

/* Moves a drawn pass of a drawn device up to six places; not past others of its type. Writes order->pass alone. */
void pc_reorder_move(const pc_instance *instance, uint64_t *stream, pc_instance_order *order);

/* The same, but it goes on from longer orders too: by up to a pass at first, and less and less towards the end
 * (simulated annealing, with a threshold that is drawn). For small instances, where the shortest order can be hidden
 * behind longer ones. */
void pc_reorder_walk(pc_reorder *reorder, int kicks, int way, pc_time enough, pc_instance_order *order);

#endif
