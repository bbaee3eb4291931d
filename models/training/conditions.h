/* conditions.h: what the GPUs and links of one sample are like, drawn. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_CONDITIONS_H
#define PC_MODELS_TRAINING_CONDITIONS_H

#include "models/training/draws.h"
#include "models/training/sample_base.h"

/* Of one sample at a time; owned: pc_conditions_close. */
typedef struct pc_conditions {
    double *slowness; /* [replicas][devices][base.kinds]: how many times as long the slowest GPU of that kind takes in
                       * the tensor group; 0: there is none */
    uint8_t *is_bad;  /* [replicas][devices]: whether some GPU of the tensor group has a bad link */
    double *share;    /* [devices]: how many times as long the slowest replica's share of collectives takes */
    double *load;     /* [replicas][devices]: rows of the fullest rank of each layer of experts over the mean ones, on
                       * average over the layers of the stage; base.mean_load where they do not vary */
    uint8_t *marks;   /* [gpus], 0 between calls */
    int64_t *places;  /* of as many GPUs as are slow, or links bad */
} pc_conditions;

pc_code pc_conditions_open(const pc_sample_base *base, pc_conditions *conditions, pc_error *error);
void pc_conditions_close(pc_conditions *conditions);

/* Nothing is slow or bad, and all GPUs are the machine's. */
void pc_conditions_be_good(const pc_sample_base *base, pc_conditions *conditions);

/* Those of sample number `sample`. */
void pc_conditions_draw(const pc_sample_base *base, int64_t sample, gsl_rng *rng, pc_conditions *conditions);

/* Whether two replicas have the same. */
bool pc_conditions_are_equal(const pc_sample_base *base, const pc_conditions *conditions, int64_t replica,
                             int64_t other);

#endif
