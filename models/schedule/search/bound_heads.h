/* bound_heads.h: how early every pass can start, counted from the start of one device. Private to the bound of an
 * instance.
 *
 * A pass comes after what it waits for, after the passes of its type before it, and after the work that its own device
 * must have done. That is all the passes of the device that it waits for, through whatever devices. And it is what
 * gives back the memory that the pass, and those it waits for, need: the j-th that gives must come before the (M+j)-th
 * that takes, of each chunk and of all together. Which chunks give is not known, so that of every kind those passes
 * count that can be there first. And memory must never be taken in such a way that nobody can give it back: a device
 * that holds F of chunk 0 and has no room for F of chunk 1 stands still for ever. So the F of chunk 1 of all but the
 * last few microbatches comes before an F of chunk 0.
 *
 * Some devices take memory by passes of one kind, all alike. These have joint heads as well: the n-th of them, of
 * whatever chunk, comes after so many that give as make room for n. With those it comes after all that must be there
 * for them. Take any of these passes, in the order of their heads. The i-th of them in time starts no earlier than the
 * i-th of their heads, nor than the i-th joint head. As they are as long as each other, a machine does not care which
 * is which. A pass that is put in later only moves those behind it back. So the number of those before it, when it is
 * put in, is never too many. Joint heads take heads of all microbatches, and heads take joint ones. So all is done
 * again with those of the time before, which are no later than any start either. */
#ifndef PC_MODELS_SCHEDULE_SEARCH_BOUND_HEADS_H
#define PC_MODELS_SCHEDULE_SEARCH_BOUND_HEADS_H

#include "engine/error.h"
#include "models/schedule/search/instance.h"

/* Room to work in, for one instance or its mirror. */
typedef struct pc_heads pc_heads;

enum { PC_HEADS_CHUNKS_MAX = 4, PC_HEADS_TYPES_MAX = 3 * PC_HEADS_CHUNKS_MAX }; /* no more can be asked for */

/* The instance must outlive it. Free with pc_heads_free (NULL is fine). */
pc_code pc_heads_create(const pc_instance *instance, pc_heads **heads, pc_error *error);
void pc_heads_free(pc_heads *heads);

/* The heads of the device's own passes, [types][microbatches], counted from the start of its first pass; those of the
 * others are counted from there too, and far below zero where nothing on this device comes before them. The room's, and
 * good until the next call. */
const pc_time *pc_heads_of(pc_heads *heads, int device);

/* A span that no schedule is shorter than: of the device that the last pc_heads_of was for, of both the instance and
 * its mirror. Take any device and the last pass of any type there. All passes of that device that are followed by at
 * least as much as this one run one after the other, as their heads say, and those that take memory as joint heads say
 * too. Then comes what follows. 0 where no device has joint heads. */
pc_time pc_heads_least_span(const pc_heads *heads, const pc_heads *mirror);

#endif
