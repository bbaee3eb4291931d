/* tune.h: a few numbers fitted to runs that were measured, each forecast whole: what a forecast is made of is unknown
 * here.
 *
 * Minimised is the sum over rows of a bounded loss of log(forecast / measured) over its scatter, and over numbers of
 * the square of what they moved, in units of what was known of them beforehand (Gaussian priors). The loss is Huber's
 * (1964, 'Robust estimation of a location parameter') first and Tukey's bisquare then, each as GSL's trust region sees
 * it: a residual whose square is twice the loss. A configuration weighs one however often it was measured.
 */
#ifndef PC_CALIB_TUNE_TUNE_H
#define PC_CALIB_TUNE_TUNE_H

#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_TUNE_NUMBERS = 8, PC_TUNE_FOLDS = 10, PC_TUNE_ROWS = 3 };

/* Takes the numbers, each as what it moved in units of its prior (0: what is known beforehand), and puts the logarithm
 * of the seconds of every row that is wanted (NULL: all) into log_seconds; the others stay. */
typedef pc_code pc_tune_forecast(void *self, const double *moved, const bool *wanted, double *log_seconds,
                                 pc_error *error);

typedef struct pc_tune_problem {
    int numbers;                  /* 1 to PC_TUNE_NUMBERS */
    int64_t count;                /* of rows */
    const double *log_measured;   /* [count] */
    const int64_t *configuration; /* [count], 0 to configurations - 1: rows of one are one run measured again */
    int64_t configurations;
    const int *fold; /* [configurations], 0 to folds - 1 */
    int folds;       /* 0: no cross-validation */
    pc_tune_forecast *forecast;
    void *self;
} pc_tune_problem;

typedef struct pc_tune_solution {
    double moved[PC_TUNE_NUMBERS];
    double deviation[PC_TUNE_NUMBERS]; /* of each, data and prior together: 1 where the data say nothing */
    double scatter;                    /* robust, of what is left of log(forecast / measured) */
    /* [count], log(forecast / measured): as known beforehand, fitted, and by a fit that saw nothing of the row's
     * configuration nor of its fold (untouched without folds). The caller's. */
    double *before, *after, *unseen;
} pc_tune_solution;

/* The same problem gives the same solution, in whatever order its rows stand but for rounding. PC_ERROR_NO_MEMORY, and
 * what the forecast returns. */
pc_code pc_tune_fit(const pc_tune_problem *problem, pc_tune_solution *solution, pc_error *error);

/* Whether the data say more of a number than was known beforehand: half of its variance or more is gone. */
bool pc_tune_is_determined(double deviation);

#ifdef __cplusplus
}
#endif
#endif
