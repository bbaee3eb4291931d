/* sample_base.h: what samples of an iteration start from: what passes take on each kind of GPU, over good links and bad
 * ones, and who lies where. Private to models/training/.
 */
#ifndef PC_MODELS_TRAINING_SAMPLE_BASE_H
#define PC_MODELS_TRAINING_SAMPLE_BASE_H

#include "models/training/outline.h"

/* GPUs are the machine's, or the bad days' other ones. Links are good, or bad: then what crosses them takes what the
 * best algorithm takes at the rate that is left; uplinks of leaf switches and domains are what they were. */
enum { PC_GPU_KINDS = 2, PC_LINK_STATES = 2 };

/* Tables are by row: pc_costs_index's, times PC_PASS_KINDS, plus the pass's kind. Owned: pc_sample_base_free. */
typedef struct pc_sample_base {
    const pc_outline *outline;   /* borrowed */
    const pc_bad_days *bad_days; /* of its spec */
    int devices, chunks, replicas;
    int64_t rows, gpus;
    int kinds;                                     /* of GPUs: 1 or 2 */
    int64_t first_other;                           /* GPUs from this number on are of the other kind */
    double *own_ps[PC_LINK_STATES][PC_GPU_KINDS];  /* [rows]: a pass with its collectives of TP, in whole ps; -1 where
                                                    * there is none. NULL if there is no such GPU or link */
    double *load_ps[PC_LINK_STATES][PC_GPU_KINDS]; /* [rows]: what the pass takes more where the fullest rank of each
                                                    * layer gets once more the mean rows. NULL if loads do not vary */
    double mean_load;                              /* of the fullest rank, over the mean: own_ps is with it */
    pc_time *step_ps[PC_GPU_KINDS];                /* [devices] */
    int32_t *hop;                                  /* [rows]: the transfer that the pass waits for before it starts, or,
                                                    * where stages do not go on meanwhile, behind itself; -1: none */
    pc_iteration_spec worse_spec;                  /* of the next */
    pc_outline worse; /* of bad links: for its transfers and collectives; empty if there are none */
} pc_sample_base;

/* Where the bad days say how GPUs differ in speed, the machine's expected slowest one is not counted on top. */
pc_code pc_sample_base_make(const pc_outline *outline, pc_sample_base *base, pc_error *error);
void pc_sample_base_free(pc_sample_base *base);

/* The first GPU that is on one of the last nodes, bad_days.other_nodes of them, that a placement of ranks takes; where
 * there are none, the number of GPUs. */
int64_t pc_sample_first_other(const pc_iteration_spec *spec, const pc_ranks *ranks);

#endif
