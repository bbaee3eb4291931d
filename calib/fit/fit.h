/* fit.h: cost models fitted to measurements: few parameters with a meaning, how sure they are, and how well they
 * foretell what they have not seen.
 *
 * All fits minimise robust residuals of log(seconds), so that an error of 1% counts the same in a microsecond as in a
 * second, and a few outliers do not pull (GSL: multifit_nlinear with a robust loss by reweighting). Then: covariance of
 * the parameters, 95% prediction intervals for one fresh measurement, and the error of cross-validation.
 */
#ifndef PC_CALIB_FIT_FIT_H
#define PC_CALIB_FIT_FIT_H

#include "calib/fit/log_grid.h"
#include "engine/error.h"
#include "models/cost/cost.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A form in each file calib/fit/fit_*.c; fit_forms.c has the table of them.
 * - TRANSFER: x = {bytes}; pieces, in each seconds = alpha + bytes / beta. How many, where they begin, and whether they
 *   meet or jump is found from the data. Parameters: alpha, beta and scatter of the first piece; for each further one
 *   where it begins, and its own three. Scatter is of log(seconds) in this piece, and has no error of its own. alpha of
 *   the first piece is not below zero. That of a piece whose rate is lower than the one before (a cache left behind)
 *   may be; its seconds are not. Beyond the largest size the last piece goes on.
 * - MEMORY: x = {bytes}; the same form; for kernels that move bytes: norms, elementwise, optimizer.
 * - GEMM: x = {batch, m, n, k}; launch + the longer of whole waves of tiles at `rate` with `ramp`, and bytes at
 *   `memory` (models/cost/roofline.c has the formula), times the exponential of a residual surface.
 * - ATTENTION: x = {batch (sequences * heads), m, n, k}; likewise, is_causal is part of the key.
 * - FLASH: x = {batch (sequences * heads), m, n, group (heads that share keys)}; the size of a head and the window are
 *   part of the key. For tables of thousands of shapes (fit_flash.c).
 * - LAW: x = {bytes, ranks}; a collective of any number of ranks inside a domain (fit_law.h has the formula). Numbers
 *   of ranks that were not measured have a standard error of 10% more for each doubling.
 * - DISPATCH: x = {tokens, token_bytes, ranks_reached, nodes_reached, ranks, nodes, sms}, of one rank; the messages of
 *   expert parallelism (fit_dispatch.c has the formula).
 * - GROUPED_GEMM, MOE: experts' products, a whole expert layer (their files). */
typedef enum pc_fit_form {
    PC_FIT_TRANSFER,
    PC_FIT_MEMORY,
    PC_FIT_GEMM,
    PC_FIT_ATTENTION,
    PC_FIT_GROUPED_GEMM,
    PC_FIT_MOE,
    PC_FIT_LAW,
    PC_FIT_DISPATCH,
    PC_FIT_FLASH,
    PC_FIT_FORMS
} pc_fit_form;

enum { PC_FIT_DIMENSIONS = 8, PC_FIT_PARAMETERS = 64 };

typedef enum pc_cache_state { PC_CACHE_COLD, PC_CACHE_HOT, PC_CACHE_STATES } pc_cache_state;

/* What a fit is for. Unused texts are empty, unused numbers 0. */
typedef struct pc_fit_key {
    pc_fit_form form;
    char subject[48]; /* the kernel's family ("gemm_forward"), or the collective ("all_reduce") */
    char dtype[16];
    char link[32];
    int32_t cache; /* pc_cache_state */
    int32_t ranks, nodes;
    bool is_causal;
    char library[32];   /* what computed or sent: "trtllm" */
    char site[32];      /* who measured: "b200_training" */
    char out_dtype[16]; /* of the output, where it is not that of the inputs */
    char variant[48];   /* of an expert layer: kernel and distribution */
    int32_t head_dim;   /* attention */
    int64_t window;     /* attention: keys that a query sees; 0: all */
} pc_fit_key;

typedef struct pc_fit {
    pc_fit_key key;
    int32_t processors; /* GEMM, ATTENTION: of the device, for waves */
    int32_t parameter_count;
    char parameter_name[PC_FIT_PARAMETERS][32];
    char parameter_unit[PC_FIT_PARAMETERS][16];
    double parameter[PC_FIT_PARAMETERS];
    double covariance[PC_FIT_PARAMETERS * PC_FIT_PARAMETERS]; /* parameter_count rows of as many, packed */
    double residual_deviation; /* robust standard deviation of log(seconds) around the fit, of one measurement; wider
                                * where cross-validation shows that 95% intervals would else hold too few */
    int32_t dimensions;
    double least[PC_FIT_DIMENSIONS], most[PC_FIT_DIMENSIONS]; /* of x, measured: for distances */
    /* The points it was fitted to; the residual surface stands on them. Owned. */
    int64_t count;
    double *x;        /* count rows of `dimensions` */
    double *seconds;  /* measured */
    double *residual; /* log(seconds) less log(fit), the surface in it; for figures */
    /* What is left, where it is more than noise; NULL and zeros: it is not. GEMM, ATTENTION: a Gaussian process over
     * log x, of each point its weight (fit_surface.c). TRANSFER, MEMORY: a local mean of residuals, of each point its
     * residual; no length (fit_local.c). Deviations are of log(seconds). */
    double *weight;
    double surface_length, surface_amplitude, surface_noise;
    /* The same for thousands of points: residuals smoothed onto nodes (log_grid.h); no axes: there is none. */
    pc_log_grid grid;
    /* By cross-validation (10 folds, points of one shape in the same one; each shape by itself where there are fewer):
     * relative errors of points not seen, outliers among them, and the part of them that their 95% interval held. NaN
     * where there are too few points to leave one out. */
    double cv_median, cv_p95, cv_coverage;
} pc_fit;

void pc_fit_free(pc_fit *fit); /* zeroes it */

/* Fits `count` points: points[count * dimensions], seconds[count], all above zero. PC_ERROR_INPUT if they are too
 * few for the form, with how many it needs (pieces: 5 points of 3 sizes; rooflines: 8 shapes). `processors` for GEMM
 * and ATTENTION. Same points in any order, same bytes. Threads wait for each other here: GSL has one error handler for
 * all.
 */
pc_code pc_fit_make(const pc_fit_key *key, int32_t processors, const double *points, const double *seconds,
                    int64_t count, pc_fit *fit, pc_error *error);

/* What it says of a point, and the standard error of one fresh measurement (both in seconds). Pure, thread-safe,
 * without allocation. */
pc_estimate pc_fit_predict(const pc_fit *fit, const double *point);

/* Its seconds alone: a third of the time. */
double pc_fit_seconds(const pc_fit *fit, const double *point);

/* The same of a kernel in training, where the chip is hot and power-limited all the time: tables of inference kernels
 * are measured in short bursts, at a higher clock. Of products of 8 and 4 bits without the casts that such tables have
 * in them: recipes count these themselves. Forms without a burst: as pc_fit_predict. */
pc_estimate pc_fit_predict_sustained(const pc_fit *fit, const double *point);

/* The backward pass of flash attention beside a measured forward one, FLASH: launch, and the forward pass's products
 * that many times. They are 2.5 times as many FLOPs, each 1.2 times as long: 13 shapes of heads of 128 on a B200
 * (operators/b200_training, SimuMax's) have 1.17 in the median, and their spread is the error. The A100s of the library
 * have 1.3, fitted to whole runs. */
#define PC_ATTENTION_BACKWARD       3.0
#define PC_ATTENTION_BACKWARD_ERROR 0.09
pc_estimate pc_fit_predict_attention_backward(const pc_fit *forward, const double *point);

/* What causal flash attention of so many queries and keys takes with a window, over what it takes without one. Both are
 * blocks of keys that a block of queries walks along, on average, and what filling and draining it adds, as in FLASH.
 */
double pc_fit_attention_window(double queries, double window);

/* The interval that holds a fresh measurement, no outlier, with this probability (0.95). */
void pc_fit_interval(const pc_fit *fit, const double *point, double probability, double *low_s, double *high_s);

/* How far a point lies outside what was measured: the largest ratio, over the dimensions, to the nearest measured edge;
 * 1 inside. *dimension is the one that is farthest. */
double pc_fit_distance(const pc_fit *fit, const double *point, int *dimension);

/* A name for people: "gemm_forward bf16 cold", "all_reduce, 8 ranks, nvlink". */
void pc_fit_name(const pc_fit_key *key, char *name, size_t size);

bool pc_fit_key_is(const pc_fit_key *key, const pc_fit_key *other); /* whether both are for the same */
/* An order of keys: below zero, zero where both are for the same, above zero. */
int pc_fit_key_order(const pc_fit_key *key, const pc_fit_key *other);

/* ---- what a form has ---- */

bool pc_fit_form_is_roofline(pc_fit_form form);
bool pc_fit_form_is_transfer(pc_fit_form form); /* of messages, not of kernels: TRANSFER, LAW, DISPATCH */
bool pc_fit_form_has_processors(pc_fit_form form);

/* The dimensions of its x: names and number. */
const char *const *pc_fit_form_dimensions(pc_fit_form form, int *count);

/* Of its parameter `i`: "alpha 2" and "s". One table, for fits that are made and for those that are read. */
typedef struct pc_parameter_label {
    char name[32];
    const char *unit;
} pc_parameter_label;
pc_parameter_label pc_fit_label(pc_fit_form form, int i);

/* Root of the covariance's diagonal. */
double pc_fit_standard_error(const pc_fit *fit, int parameter);

/* ---- whether a fit that somebody wrote down is one ---- */

/* As many parameters as its form has, and of a roofline processors. */
bool pc_fit_has_parameters(const pc_fit *fit);
/* Rates above zero, and times at both ends of what was measured: numbers that are each fine may yet foretell none. */
bool pc_fit_foretells(const pc_fit *fit);

#ifdef __cplusplus
}
#endif
#endif
