/* links.h: an order timed over links, where one transfer waits for the other (costs.h: PC_TRANSFER_LINK). Sweeps take
 * transfers for delays; what orders come to is judged here. Private to the generators.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_LINKS_H
#define PC_MODELS_SCHEDULE_SEARCH_LINKS_H

#include "engine/error.h"
#include "models/schedule/costs.h"
#include "models/schedule/search/instance.h"

/* Room to work in, for orders of one instance; one thread at a time. */
typedef struct pc_stage_links pc_stage_links;

/* *links becomes NULL if transfers are delays, or no link can carry them. The instance must outlive it. Free with
 * pc_stage_links_free (NULL is fine). */
pc_code pc_stage_links_create(const pc_instance *instance, const pc_transfer *transfer, pc_stage_links **links,
                              pc_error *error);
void pc_stage_links_free(pc_stage_links *links);

/* Fills in start, span and makespan of an order that can run: every pass as early as links let it. The times are those
 * of pc_replay_run. */
void pc_stage_links_squeeze(pc_stage_links *links, pc_instance_order *order);

#endif
