/* fit.h: cost models fitted to measurements: few parameters with a meaning, how sure they are, and how well they foretell
 * what they have not seen.
 *
 * All fits minimise robust residuals of log(seconds), so that an error of 1% counts the same in a microsecond as in a
 * second, and a few outliers do not pull (GSL: multifit_nlinear with a robust loss by reweighting). Then: covariance of
 * the parameters, 95% prediction intervals for one fresh measurement, and the error of cross-validation.
 */
#ifndef PC_CALIB_FIT_H
#define PC_CALIB_FIT_H

#include "engine/api.h"
#include "engine/error.h"
#include "models/cost/cost.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TRANSFER: x = {bytes}; pieces, in each seconds = alpha + bytes / beta, breakpoints found from the data.
 * MEMORY: x = {bytes}; the same form; for kernels that move bytes: norms, elementwise, optimizer.
 * GEMM: x = {batch, m, n, k}; a roofline with wave quantisation, and a residual surface over log(m), log(n), log(k).
 * ATTENTION: x = {batch (sequences * heads), m, n, k}; likewise, is_causal is part of the key. */
typedef enum pc_fit_form { PC_FIT_TRANSFER, PC_FIT_MEMORY, PC_FIT_GEMM, PC_FIT_ATTENTION, PC_FIT_FORMS } pc_fit_form;

enum { PC_FIT_DIMENSIONS = 4, PC_FIT_PARAMETERS = 24 };

/* What a fit is for. Unused texts are empty, unused numbers 0. */
typedef struct pc_fit_key {
    pc_fit_form form;
    char subject[48]; /* the kernel's family ("gemm_forward"), or the collective ("all_reduce") */
    char dtype[8];
    char link[32];
    int32_t cache; /* pc_cache_state */
    int32_t ranks, nodes;
    bool is_causal;
} pc_fit_key;

typedef struct pc_fit {
    pc_fit_key key;
    int32_t processors; /* GEMM, ATTENTION: of the device, for waves */
    int32_t parameter_count;
    char parameter_name[PC_FIT_PARAMETERS][32];
    char parameter_unit[PC_FIT_PARAMETERS][16];
    double parameter[PC_FIT_PARAMETERS];
    double covariance[PC_FIT_PARAMETERS * PC_FIT_PARAMETERS]; /* parameter_count rows of as many, packed */
    double residual_deviation; /* robust standard deviation of log(seconds) around the fit, of one measurement */
    int32_t dimensions;
    double least[PC_FIT_DIMENSIONS], most[PC_FIT_DIMENSIONS]; /* of x, measured: for distances */
    /* The points it was fitted to; the residual surface stands on them. Owned. */
    int64_t count;
    double *x;        /* count rows of `dimensions` */
    double *seconds;  /* measured */
    double *residual; /* log(seconds) less log(fit), the surface in it; for figures */
    double *weight;   /* of the residual surface, one a point; NULL: no surface */
    double surface_length, surface_amplitude, surface_noise; /* a Gaussian process over log x (fit_surface.c) */
    /* By cross-validation (10 folds, or each point by itself where there are fewer): relative errors of points not
     * seen, and how many of them their 95% interval held. */
    double cv_median, cv_p95, cv_coverage;
} pc_fit;

PC_API void pc_fit_free(pc_fit *fit); /* zeroes it */

/* Fits `count` points: x[count * dimensions], seconds[count], all above zero. PC_ERROR_INPUT where they are too few for
 * the form, with how many it needs. `processors` for GEMM and ATTENTION. Same input, same bytes. */
PC_API pc_code pc_fit_make(const pc_fit_key *key, int32_t processors, const double *x, const double *seconds,
                           int64_t count, pc_fit *fit, pc_error *error);

/* What it says of x, and the standard error of one fresh measurement (both in seconds). Pure, thread-safe, without
 * allocation. */
PC_API pc_estimate pc_fit_predict(const pc_fit *fit, const double *x);

/* The interval that holds a fresh measurement with this probability (0.95). */
PC_API void pc_fit_interval(const pc_fit *fit, const double *x, double probability, double *low_s, double *high_s);

/* How far x lies outside what was measured: the largest ratio, over the dimensions, to the nearest measured edge; 1
 * inside. *dimension is the one that is farthest. */
PC_API double pc_fit_distance(const pc_fit *fit, const double *x, int *dimension);

/* A name for people: "gemm_forward bf16 cold", "all_reduce, 8 ranks, nvlink". */
PC_API void pc_fit_name(const pc_fit_key *key, char *name, size_t size);

#ifdef __cplusplus
}
#endif
#endif
