/* same_replay.h: two replays are the same to the last bit, however they were worked out. */
#ifndef PC_TESTS_SAME_REPLAY_H
#define PC_TESTS_SAME_REPLAY_H

#include "models/schedule/replay.h"
#include "tests/support.h"

/* `count` elements of `size` bytes; of none nothing is looked at. */
void check_column(const void *a, const void *b, int64_t count, size_t size);

void check_same_transfers(const pc_replay_trace *a, const pc_replay_trace *b);
void check_same_trace(const pc_replay_trace *a, const pc_replay_trace *b);

/* All but the way, and what the engine alone saw. */
void check_same_replay(const pc_replay *a, const pc_replay *b);

#endif
