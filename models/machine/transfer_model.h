/* transfer_model.h: the interface of measured transfers, which stand in the place of a machine's closed costs.
 *
 * Calibrated profiles implement it (calib/profile/profile_cost.h). What was not measured stays the machine's:
 * collective.h.
 */
#ifndef PC_MODELS_MACHINE_TRANSFER_MODEL_H
#define PC_MODELS_MACHINE_TRANSFER_MODEL_H

#include "engine/marks.h"
#include "models/machine/collective.h"
#include "models/machine/ranks.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Dispatch of tokens to experts, or combine of what comes back from them, as a rank does it: each of its tokens goes to
 * the ranks of the group that have its experts, once to each. */
typedef struct pc_exchange {
    double tokens, token_bytes; /* of one rank; bytes of one token, as it is sent */
    double ranks_reached;       /* to how many a token goes, its own rank among them where it has an expert there */
    double domains_reached;     /* in how many domains these are */
    bool is_combine;
} pc_exchange;

/* Thread-safe. Seconds of one of them alone, starting it included; false where such a one was not measured. Sizes as in
 * collective.h. */
typedef struct pc_transfer_model {
    const void *self; /* borrowed: outlives the model */
    bool (*collective)(const void *self, pc_collective collective, const pc_group *group, double size_bytes,
                       double *seconds);
    bool (*message)(const void *self, const pc_hop *hop, double size_bytes, double *seconds);
    bool (*exchange)(const void *self, const pc_group *group, const pc_exchange *exchange, double *seconds);
} pc_transfer_model;

#ifdef __cplusplus
}
#endif
#endif
