/* fit_terms.h: private to calib/fit/: times that are sums of terms beside parameters, none of them below zero. */
#ifndef PC_CALIB_FIT_FIT_TERMS_H
#define PC_CALIB_FIT_FIT_TERMS_H

#include <stdbool.h>
#include <stdint.h>

enum { PC_TERMS_MAX = 8 };

/* What was measured: `count` rows of `terms`, none below zero, and their seconds, above zero. */
typedef struct pc_terms {
    int terms;
    int64_t count;
    const double *row, *seconds;
    const bool *is_in; /* of count: which rows count; NULL: all */
} pc_terms;

/* The parameters that fit best by relative errors: least squares over all subsets of terms, so the best of all that
 * are not below zero; errors beyond 8% count by their size alone (Huber). All 0 where there is no row. `covariance`,
 * rows of `terms`, in units of the variance of a relative error; NULL: not asked. */
void pc_terms_fit(const pc_terms *terms, double *parameter, double *covariance);

#endif
