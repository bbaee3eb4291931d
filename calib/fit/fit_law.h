/* fit_law.h: private to calib/fit/: the law of a collective over bytes S and ranks n.
 *
 * NCCL has three protocols (LL, LL128, Simple). Each takes
 *     seconds = alpha + step * (n - 1) + own * S + link * (n - 1)/n * S:
 * a start; a step for every further rank; what a rank does with the whole tensor, whoever it comes from (copies in its
 * memory; what a switch reduces or multicasts); and the bytes of a ring or of direct messages over its link. An
 * all-reduce passes the ring twice, which its step and link have in them. Steps of up to 8 ranks add up (B200 with 2, 4
 * and 8 GPUs). Of more, a library uses trees and switches: n - 1 becomes 7 * ((n - 1)/7)^0.61, which gives the 0.53 ms
 * that an all-reduce of 72 GB200 has beside its bytes (github.com/coreweave/nccl-tests, pull request 43: 512 MiB to
 * 8 GiB). Large messages have the rate
 * 1 / (own + link * (n - 1)/n), which is bounded as n grows. Terms: Thakur, Rabenseifner, Gropp 2005, 'Optimization of
 * collective communication operations in MPICH'; protocols: github.com/NVIDIA/nccl, src/graph/tuning.cc.
 *
 * Libraries change protocols at sizes of their own model, not where the curves meet, so these sizes are parameters:
 * size(n) = at * (n/4)^power, with power 0, 1/2 or 1 (1 is the ring's: equal bytes a step), and for each measured n the
 * size where it really was.
 */
#ifndef PC_CALIB_FIT_FIT_LAW_H
#define PC_CALIB_FIT_FIT_LAW_H

#include "calib/fit/fit_private.h"

#include <math.h>

enum {
    PC_LAW_PROTOCOLS = 3,
    PC_LAW_SWITCHES = PC_LAW_PROTOCOLS - 1,
    PC_LAW_TERMS = 4,
    PC_LAW_RANKS = 15,      /* different numbers of ranks, at most */
    PC_LAW_POINTS = 12,     /* at least, */
    PC_LAW_RANKS_LEAST = 2, /* of so many numbers of ranks */
    PC_LAW_RANKS_REFERENCE = 4
};

typedef struct pc_law {
    double term[PC_LAW_PROTOCOLS][PC_LAW_TERMS]; /* alpha, step (s), own, link (s/byte); none below zero */
    double at[PC_LAW_SWITCHES], power[PC_LAW_SWITCHES];
    int ranks;                                    /* measured numbers of ranks, ascending */
    double rank[PC_LAW_RANKS];                    /* n */
    double change[PC_LAW_RANKS][PC_LAW_SWITCHES]; /* bytes from which on the next protocol sends, at n */
} pc_law;

static inline double pc_law_steps(double ranks) {
    static const double ring = 7.0, power = 0.61;
    double steps = ranks - 1.0;
    return steps <= ring ? steps : ring * pow(steps / ring, power);
}

/* What stands beside the four parameters. */
static inline void pc_law_terms(double bytes, double ranks, double term[PC_LAW_TERMS]) {
    term[0] = 1.0;
    term[1] = pc_law_steps(ranks);
    term[2] = bytes;
    term[3] = bytes * (ranks - 1.0) / ranks;
}

static inline double pc_law_sum(const double parameter[PC_LAW_TERMS], const double term[PC_LAW_TERMS]) {
    return parameter[0] * term[0] + parameter[1] * term[1] + parameter[2] * term[2] + parameter[3] * term[3];
}

/* A size and number of ranks that was measured, once or often. */
typedef struct pc_law_site {
    double bytes, ranks, seconds; /* median */
} pc_law_site;

/* Finds protocols and where they change. `sites` by ranks, then bytes. PC_ERROR_NO_MEMORY; PC_ERROR_INPUT where there
 * are more than PC_LAW_RANKS numbers of ranks. */
pc_code pc_law_search(const pc_law_site *sites, int64_t count, pc_law *law, pc_error *error);

#endif
