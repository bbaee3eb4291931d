/* fitted.h: building blocks in the instance's own times, made for its memory limit. Private to the generators.
 *
 * The patterns (pattern.h) stand in cells that are all as long. Where passes take 3, 4 and 2, or a transfer takes a
 * part of a cell, or a limit below half of 1F1B's memory asks for more than one interval can give, no such block is
 * near the best one. A fitted block is a modular schedule: its passes go through the model in their order, each into
 * the first gap of its device, modulo the interval, that is as long as the pass. A drawn few wait for longer than they
 * must; W stand right behind their B, or where there is room in the end. Memory then is a number: what stands in one
 * interval, and how many intervals each pass stands behind the start.
 *
 * The shortest interval with a block within the limit is searched for by drawing many blocks for one interval, and then
 * for the next shorter one. The stream is fixed, so that the same instance has the same blocks.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_FITTED_H
#define PC_MODELS_SCHEDULE_SEARCH_FITTED_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/search/instance.h"

#include <stdbool.h>

/* A block of one or two microbatches. */
typedef struct pc_fitted_block {
    int microbatches;
    pc_time interval;
    pc_time *start; /* [microbatches][devices][types] */
} pc_fitted_block;

typedef struct pc_fitted {
    int count;
    pc_fitted_block *blocks; /* shortest interval first, those of one microbatch before those of two */
} pc_fitted;

/* Up to `wanted` blocks of one microbatch and as many of two, `draws` for every interval that is tried. None where
 * passes take no time; nor, if `if_tight`, where the limits leave more room than a quarter above what passes hold that
 * wait for nothing, while their device works all the time. Free with pc_fitted_free. */
pc_code pc_fitted_find(const pc_instance *instance, int wanted, int draws, bool if_tight, pc_fitted *fitted,
                       pc_error *error);
void pc_fitted_free(pc_fitted *fitted);

/* Writes order->pass: the block put down again and again, for as many microbatches as the instance has. Those of one
 * type are numbered as they come, whichever of the block's two they are. */
void pc_fitted_repeat(const pc_fitted_block *block, const pc_instance *instance, pc_instance_order *order);

#endif
