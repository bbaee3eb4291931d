/* tuning.h: the few numbers by which a cluster differs from what its profile or its machine's file says, fitted to runs
 * that were measured on it (sweep/tune.h), and what they were fitted to.
 *
 * Factors multiply seconds: 1.1 takes a tenth longer. What is added is added to what the run's setting says, whatever
 * its software. So all of them are relative to the library, and a factor of 1 or a sum of 0 changes nothing.
 */
#ifndef PC_CALIB_PROFILE_TUNING_H
#define PC_CALIB_PROFILE_TUNING_H

#include "engine/error.h"
#include "models/cost/cost.h"
#include "models/machine/machine.h"
#include "storage/text.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_tuned {
    PC_TUNED_GEMM,      /* times the seconds of matrix products */
    PC_TUNED_ATTENTION, /* of flash attention */
    PC_TUNED_MEMORY,    /* of norms, elementwise kernels and the optimizer's */
    PC_TUNED_LAUNCH,    /* times the host's seconds a launch */
    PC_TUNED_NETWORK,   /* times the seconds of bytes between domains; no faster than the link's bandwidth */
    PC_TUNED_OVERLAP,   /* added to overlap.slowdown, 0 to 1 in all */
    PC_TUNED_OVERHEAD,  /* seconds an iteration, added to overhead; not below zero in all */
    PC_TUNED
} pc_tuned;

/* What is known of each before any run was seen. Gaussian: of a factor its logarithm. */
typedef struct pc_tuned_rule {
    const char *name, *unit;
    bool is_factor;
    double width;       /* the prior's standard deviation around what changes nothing */
    double least, most; /* of the value */
} pc_tuned_rule;
const pc_tuned_rule *pc_tuned_rule_of(pc_tuned which);

/* 1 of a factor, 0 of what is added. */
double pc_tuned_nothing(pc_tuned which);

typedef struct pc_tuned_number {
    char name[16];
    double value;          /* as above */
    double prior_width;    /* pc_tuned_rule.width at the time */
    double standard_error; /* of the value; 0: not fitted */
    bool is_fitted, is_determined;
} pc_tuned_number;

typedef struct pc_tuning_errors { /* of forecast over measured, less one; NaN: not known */
    double mean, median, bias;
} pc_tuning_errors;

typedef struct pc_tuning {
    bool is_there;
    char pipecast[64]; /* version that fitted */
    char source[256];  /* of the rows */
    char only[128];    /* "software nemo": which rows of it; "": all */
    char base[64];     /* hash of the profile that it is over; "": the machine's file */
    int64_t rows, configurations, left_out, folds;
    double scatter;                         /* robust standard deviation of log(forecast / measured) that is left */
    pc_tuning_errors before, after, unseen; /* unseen: cross-validated by configuration */
    pc_tuned_number number[PC_TUNED];
} pc_tuning;

/* There, and everything as the library has it. */
pc_tuning pc_tuning_none(void);

/* ---- what it changes ---- */

/* Times the seconds of a kernel. */
double pc_tuning_factor(const pc_tuning *tuning, pc_operation_kind kind);
/* Launches and the network of a machine. */
void pc_tuning_apply(const pc_tuning *tuning, pc_machine *machine);
/* What the setting says, with what is added. */
double pc_tuning_overlap(const pc_tuning *tuning, double slowdown);
int64_t pc_tuning_overhead_ps(const pc_tuning *tuning, int64_t overhead_ps);

/* ---- as text ---- */

/* A table of the numbers, and lines of rows and errors; rows of CSV as of profiles' fits; an object of JSON. */
void pc_tuning_add_table(pc_text *text, const pc_tuning *tuning);
#define PC_PROFILE_CSV_HEADER                                                                                          \
    "fit,form,parameter,unit,points,value,standard_error,residual_deviation,cv_median,cv_p95,cv_coverage\n"
void pc_tuning_add_csv(pc_text *text, const char *name, const pc_tuning *tuning);
void pc_tuning_add_json(pc_text *text, const pc_tuning *tuning);

#ifdef __cplusplus
}
#endif
#endif
