/* pair_overlap.h: how long two passes take together, of which the one computes while the other one communicates.
 *
 * DeepSeek-V3 (arXiv 2412.19437, section 3.2.1) and Megatron-LM's combined 1F1B run the forward pass of one microbatch
 * with the backward pass of another in this way: all-to-all of the one beside attention and experts of the other.
 */
#ifndef PC_MODELS_TRAINING_PAIR_OVERLAP_H
#define PC_MODELS_TRAINING_PAIR_OVERLAP_H

#include <stdbool.h>

/* One step of a pass. Steps of a pass run one after the other. */
typedef struct pc_pair_step {
    double seconds; /* alone; not negative */
    bool is_comm;   /* on the network, or else on the GPU's processors */
    double share;   /* of communication: the part of the processors that it takes, from 0 to below 1 */
} pc_pair_step;

typedef struct pc_pair_steps {
    const pc_pair_step *steps; /* borrowed */
    int count;
} pc_pair_steps;

/* Seconds of a pass alone. */
double pc_pair_alone_s(pc_pair_steps pass);

/* Seconds of both together: computation takes turns, and so does communication, but either runs beside the other. Each
 * pass goes on as soon as it can (list scheduling); if both could, the one that has more left. Kernels beside
 * communication slow down by its share. Never longer than both alone one behind the other, which it is exactly where
 * one resource does everything; never shorter than either pass, or than all computation, or all communication. */
double pc_pair_seconds(pc_pair_steps a, pc_pair_steps b);

/* Kernels of the second pass that wait until neither has another one to run, as products of weights' gradients may. */
typedef struct pc_delayed_steps {
    pc_pair_steps steps; /* computation, in order */
    const int *behind;   /* borrowed; of each, how many steps of the second pass are over before it */
} pc_delayed_steps;

double pc_pair_seconds_with(pc_pair_steps a, pc_pair_steps b, pc_delayed_steps delayed);

/* The same, and when each step is under way, in the order in which they begin: where both are no longer together than
 * one behind the other, as they are then. Steps of no time are left out. `course`: room for all steps. */
typedef struct pc_pair_moment {
    int pass, step; /* of a, of b, or of what is delayed: 0, 1, 2 */
    double begin_s, end_s;
} pc_pair_moment;
typedef struct pc_pair_course {
    pc_pair_moment *moments; /* borrowed */
    int count;               /* written */
} pc_pair_course;
double pc_pair_seconds_course(pc_pair_steps a, pc_pair_steps b, pc_delayed_steps delayed, pc_pair_course *course);

#endif
