/* clock.h: seconds that pass, for what takes how long and when to give up. No result depends on them. Private. */
#ifndef PC_ENGINE_CLOCK_H
#define PC_ENGINE_CLOCK_H

#include <time.h>

/* From some moment of this machine's on, never back. */
static inline double pc_now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
