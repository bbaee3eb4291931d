/* profile_index.h: private to calib/profile/: which fit of a profile answers for which operation, found once for all,
 * so that to ask is to look up: no names are compared but those of what moves bytes. */
#ifndef PC_CALIB_PROFILE_PROFILE_INDEX_H
#define PC_CALIB_PROFILE_PROFILE_INDEX_H

#include "calib/profile/profile.h"
#include "models/workload/format.h"

#include <stdbool.h>
#include <stdint.h>

/* How a fit says it. */
typedef enum pc_answer_way {
    PC_ANSWER_FIT,             /* pc_fit_predict: measured under load, as training runs */
    PC_ANSWER_SUSTAINED,       /* pc_fit_predict_sustained: of others' tables */
    PC_ANSWER_INPUT_GRADIENT,  /* of a forward product that others measured */
    PC_ANSWER_WEIGHT_GRADIENT, /* likewise */
    PC_ANSWER_BACKWARD         /* of forward attention: pc_fit_predict_attention_backward */
} pc_answer_way;

typedef struct pc_kernel_answer {
    int64_t fit; /* its number in the profile; -1: the roofline answers */
    pc_answer_way way;
    bool is_silent;      /* not a word where it is missing: nobody asked this profile for it */
    const char *instead; /* the fit's dtype, where another was wanted; NULL: it is the right one */
} pc_kernel_answer;

enum { PC_INDEX_DIRECTIONS = 2, PC_INDEX_HEADS = 16, PC_INDEX_PRECISIONS = 2, PC_INDEX_FAMILIES = 256 };

/* Attention of one size of head, by others' tables. */
typedef struct pc_head_answer {
    int32_t head_dim;
    pc_kernel_answer answer;
} pc_head_answer;

typedef struct pc_family_answer {
    const char *family; /* of a fit's key; NULL: a free slot */
    pc_kernel_answer answer[PC_INDEX_PRECISIONS];
} pc_family_answer;

/* By role; format; direction (forward, backward); whether causal. Borrows the profile. */
typedef struct pc_profile_index {
    const pc_profile *profile;
    pc_kernel_answer product[3][PC_PRODUCT_FORMATS];
    pc_kernel_answer attention[PC_INDEX_DIRECTIONS][2][PC_INDEX_PRECISIONS];
    pc_head_answer head[2][PC_INDEX_DIRECTIONS][2][PC_INDEX_HEADS]; /* rising sizes; in 16 bits, in 8 */
    int heads[2][PC_INDEX_DIRECTIONS][2];
    pc_kernel_answer no_low_attention;          /* of sizes that were not measured in 8 bits */
    pc_family_answer family[PC_INDEX_FAMILIES]; /* by a hash of its name */
    pc_kernel_answer none;                      /* of families that are not there */
} pc_profile_index;

/* `answers_for`: bits of PC_KERNELS_FOR (models/machine/machine.h); the rest is the roofline's, silently. */
void pc_profile_index_set(pc_profile_index *index, const pc_profile *profile, int32_t answers_for);

/* A product: its format, where that has fewer than 16 bits, or else its precision. */
const pc_kernel_answer *pc_index_product(const pc_profile_index *index, const pc_operation *operation);

/* Attention: a fit of all sizes of head; or that of the next larger size, whose *scale is the time of this one over its
 * own (1 of the same size). */
const pc_kernel_answer *pc_index_attention(const pc_profile_index *index, const pc_operation *operation, double *scale);

/* What goes by bytes: the family is `function` and `direction` in one. */
const pc_kernel_answer *pc_index_family(const pc_profile_index *index, const char *function, const char *direction,
                                        pc_precision precision);

/* "bf16"; of products of fewer bits the format's name. */
const char *pc_operation_dtype(const pc_operation *operation);

#endif
