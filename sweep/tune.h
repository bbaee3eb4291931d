/* tune.h: a profile's tuning, fitted to runs that were measured (calib/tune/tune.h) by forecasting them again and
 * again. A call of the library, as score.h: nothing is printed, nothing written, and the same table gives the same
 * profiles on any number of threads.
 *
 * Rows of which the measured time is known and which are called feasible count, all else is left out. A configuration
 * is what a row asks for: rows that ask for the same are one run measured again, and stand in one fold.
 */
#ifndef PC_SWEEP_TUNE_H
#define PC_SWEEP_TUNE_H

#include "calib/profile/profile.h"
#include "engine/error.h"
#include "sweep/score.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is wanted; all is borrowed. */
typedef struct pc_tune_request {
    pc_score_request score;   /* the rows, as `pipecast score` asks them; a base is no set of it */
    const char *base;         /* a profile over which it is fitted; NULL: over what machines' files say */
    const char *version;      /* of the program, for the provenance */
    bool is_wanted[PC_TUNED]; /* which numbers are fitted; the others stay as they are */
    const char *const *by;    /* columns: a fit for every value of these together */
    int by_count;
} pc_tune_request;

typedef enum pc_tune_left {
    PC_TUNE_NO_TIME,       /* no time was measured */
    PC_TUNE_NOT_ASKED,     /* something is missing */
    PC_TUNE_OUT_OF_MEMORY, /* called so */
    PC_TUNE_INFEASIBLE,
    PC_TUNE_LEFT
} pc_tune_left;

/* "without a measured time" */
const char *pc_tune_left_name(pc_tune_left why);

/* A fit: of one value of the columns. Where there are fewer than PC_TUNE_ROWS rows the profile has no tuning. */
typedef struct pc_tuned_group {
    char value[PC_SCORE_LABEL_SIZE]; /* "nemo; dgx-h100"; "" without columns */
    char only[PC_SCORE_LABEL_SIZE];  /* "software nemo, system dgx-h100" */
    int64_t rows, left[PC_TUNE_LEFT];
    pc_profile profile; /* the base with its tuning, or nothing but a tuning; owned */
} pc_tuned_group;

typedef struct pc_tune_result {
    pc_tuned_group *groups; /* in the order in which the table has them */
    int64_t count;
} pc_tune_result;

/* PC_ERROR_INPUT, one line: no column of that name, rows of several GPUs or with profiles of their own in one fit, a
 * base that is tuned itself or of another GPU, and where no group has rows enough. Free with pc_tune_free. */
pc_code pc_tune_run(const pc_tune_request *request, const pc_score_sink *sink, pc_tune_result *result, pc_error *error);
void pc_tune_free(pc_tune_result *result);

#ifdef __cplusplus
}
#endif
#endif
