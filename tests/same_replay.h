/* same_replay.h: two replays are the same to the last bit, however they were worked out. */
#ifndef PC_TESTS_SAME_REPLAY_H
#define PC_TESTS_SAME_REPLAY_H

#include "models/schedule/replay.h"
#include "tests/support.h"

/* All but the way, and what the engine alone saw. */
void check_same_replay(const pc_replay *a, const pc_replay *b);

#endif
