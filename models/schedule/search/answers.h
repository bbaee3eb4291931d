/* answers.h: the best of several schedules of one instance, whichever search they come from. Private to the generators.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_ANSWERS_H
#define PC_MODELS_SCHEDULE_SEARCH_ANSWERS_H

#include "engine/error.h"
#include "models/schedule/block.h"
#include "models/schedule/schedule.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/links.h"
#include "models/schedule/search/reorder.h"

#include <stdbool.h>

typedef struct pc_answers {
    const pc_instance *instance;
    pc_reorder *room;
    pc_stage_links *links; /* over which orders are judged; NULL: transfers are delays */
    pc_instance_order best, other;
    pc_block block;  /* that the best one was made from; empty where that has passes of other kinds */
    bool has_answer; /* whether `best` stands */
} pc_answers;

/* The costs are the instance's. Both must outlive it. Free with pc_answers_free, also after a failure. */
pc_code pc_answers_create(const pc_instance *instance, const pc_costs *costs, pc_answers *answers, pc_error *error);
void pc_answers_free(pc_answers *answers);

/* Judges a schedule of the instance's shape at the instance's costs; of one with whole backward passes, where the
 * instance has B and W apart, each becomes a B and a W. It is the best one if it can run, keeps the limits, and has
 * less span (then less makespan, then less memory) than the best so far. Over links transfers wait for each other, and
 * in place of the span stands what the instance has there. Takes both over, whatever comes of them: they are empty
 * then.
 */
pc_time pc_answers_offer(pc_answers *answers, pc_schedule *schedule, pc_block *block);

/* Sweeps to and fro and kicks go on from the best order, until it is down to `enough`; what comes out counts if it is
 * better. */
void pc_answers_improve(pc_answers *answers, pc_time enough);

/* Whether no schedule of an instance, the answers' own or one of the same shape within less memory, can be shorter than
 * the best so far. `bound` is that instance's. */
pc_code pc_answers_reach(const pc_answers *answers, const pc_instance *instance, pc_bound *bound, bool *is_reached,
                         pc_error *error);

#endif
