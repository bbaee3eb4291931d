/* fit_private.h: private to calib/fit/: the parts of a fit. */
#ifndef PC_CALIB_FIT_FIT_PRIVATE_H
#define PC_CALIB_FIT_FIT_PRIVATE_H

#include "calib/fit/fit.h"

/* ---- forms (fit_forms.c has the table) ---- */

/* What a form is. Functions may be NULL where it says so. */
typedef struct pc_form {
    int dimensions;
    const char *dimension[PC_FIT_DIMENSIONS]; /* names of x */
    bool has_processors;                      /* pc_fit.processors has to be above zero */
    bool has_weights;                         /* pc_fit.weight has room for count while it is fitted */
    pc_parameter_label (*label)(int i);
    /* Parameters, covariance, residual_deviation and what is left, of fit->x and ->seconds, which are in order. `near`:
     * parameters to start from, or NULL. PC_ERROR_INPUT where points are too few, or no descent leads anywhere. */
    pc_code (*fit)(pc_fit *fit, const double *near, pc_error *error);
    /* The parameters' part of the time. `gradient` is zero before, NULL: not asked; `scatter` is residual_deviation
     * before, and may be set to that of one measurement there. */
    double (*seconds)(const pc_fit *fit, const double *point, double *gradient, double *scatter);
    /* What is added to log(seconds), and the variance of that. NULL: nothing. */
    double (*left)(const pc_fit *fit, const double *point, double *variance);
    bool (*has_parameters)(const pc_fit *fit);
    /* Whether rates are above zero, without which there is no time. NULL: they need not. */
    bool (*has_rates)(const pc_fit *fit);
    /* Parameters that are scatter become wider; NULL: there are none. */
    void (*widen)(pc_fit *fit, double factor);
    /* Seconds in training over seconds in a burst; NULL: 1. */
    double (*sustained)(const pc_fit *fit, const double *point);
    /* As `seconds`, in training: where that costs less than a factor beside it. NULL: the factor. */
    double (*sustained_seconds)(const pc_fit *fit, const double *point, double *gradient, double *scatter);
} pc_form;

const pc_form *pc_form_of(pc_fit_form form);
extern const pc_form pc_form_transfer, pc_form_memory, pc_form_gemm, pc_form_attention, pc_form_grouped_gemm,
    pc_form_moe, pc_form_law, pc_form_dispatch, pc_form_flash;

/* ---- what parameters are called ---- */

pc_parameter_label pc_roofline_label(int i, const char *ramp_unit);

/* Calls all parameters of the fit so. */
void pc_fit_name_parameters(pc_fit *fit);

/* ---- robust least squares (fit_robust.c) ---- */

/* What a model says of one point, in seconds; `gradient`, where not NULL, takes its derivatives by the parameters. All
 * parameters are above zero. */
typedef double (*pc_point_function)(const void *self, const double *parameter, const double *point, double *gradient);

typedef struct pc_robust_problem {
    pc_point_function seconds_at;
    const void *self;
    int parameters, dimensions;
    const double *x, *seconds; /* rows of `dimensions`; all above zero */
    int64_t count;
    const double *prior;           /* of each parameter, what is known beforehand; NULL: where it starts */
    const double *prior_deviation; /* of each one's logarithm around that; NULL: 3 of each */
    double usual_deviation; /* of log residuals, what is known beforehand: counts as much as 5 points. 0: nothing */
} pc_robust_problem;

typedef struct pc_robust_solution {
    double parameter[PC_FIT_PARAMETERS];                      /* in: where to start; out: the fit */
    double covariance[PC_FIT_PARAMETERS * PC_FIT_PARAMETERS]; /* packed */
    double deviation; /* robust, of log residuals; free of the parameters' bias */
    double loss;      /* sum of the bounded loss of residuals, in units of the variance: for comparing starts */
    double *residual; /* of count: log(seconds) less log(fit); the caller's */
} pc_robust_solution;

/* The parameters by reweighting (Huber, then Tukey's bisquare) around GSL's trust region, in their logarithms. What the
 * data do not determine stays where it started: of each logarithm a deviation is known beforehand. */
pc_code pc_robust_fit(const pc_robust_problem *problem, pc_robust_solution *solution, pc_error *error);

/* The spread of residuals around their median: biweight, from the median absolute deviation. `work` has room for count.
 */
double pc_robust_deviation(const double *residual, int64_t count, double *work);

/* The middle of the numbers, or any other part of them, between neighbours; sorts them. */
double pc_fit_quantile(double *numbers, int64_t count, double part);

/* ---- pieces: seconds over bytes (fit_pieces.c finds them, fit_transfer.c fits them) ---- */

enum { PC_PIECES_MAX = (PC_FIT_PARAMETERS + 1) / 4 };

typedef struct pc_pieces {
    int count;
    double alpha[PC_PIECES_MAX], gamma[PC_PIECES_MAX]; /* seconds = alpha + gamma * bytes */
    double end[PC_PIECES_MAX];                         /* the last size of a piece; of the last one infinite */
    double next[PC_PIECES_MAX];                        /* the first measured size behind it */
    double deviation;                                  /* of log(seconds) around their neighbours', typically */
    bool is_joined[PC_PIECES_MAX];                     /* the next piece begins where this one ends */
} pc_pieces;

/* How many pieces, and which. `points` are sorted. PC_ERROR_NO_MEMORY. */
pc_code pc_pieces_find(const double *points, const double *seconds, int64_t count, pc_pieces *pieces, pc_error *error);

enum { PC_TRANSFER_POINTS = 5, PC_TRANSFER_SIZES = 3 }; /* a piece has at least so many */

/* Sets the scatter of each piece from residuals of its points. */
void pc_transfer_scatter(pc_fit *fit, const double *residual, double *work);

/* What pieces leave (fit_local.c): fits it to fit->residual and takes it from them. fit->weight then has the residuals
 * that it is the local mean of; surface_noise, what is added to the sum of their weights;
 * surface_amplitude, their scatter. */
pc_code pc_local_fit(pc_fit *fit, pc_error *error);
double pc_local_at(const pc_fit *fit, const double *point, double *variance);

/* ---- rooflines (fit_gemm.c, fit_attention.c) ---- */

enum { PC_ROOFLINE_PARAMETERS = 4, PC_ROOFLINE_SHAPES = 8 };

/* The parameters of both, in this order. */
enum { PC_ROOFLINE_FLOPS, PC_ROOFLINE_RAMP, PC_ROOFLINE_MEMORY, PC_ROOFLINE_LAUNCH };

/* What a shape needs, by its key alone. */
typedef struct pc_roofline_shape {
    double processors;
    double operand_bytes, output_bytes; /* an element; output_bytes with what is read of it */
    double flops;                       /* a product of two numbers and its sum; of attention a query and a key */
    bool is_backward, is_causal;
} pc_roofline_shape;

pc_roofline_shape pc_roofline_shape_of(const pc_fit_key *key, int32_t processors);
double pc_gemm_seconds(const void *shape, const double *parameter, const double *point, double *gradient);
/* The products alone, of rate, ramp and memory. */
double pc_gemm_compute_seconds(const pc_roofline_shape *shape, const double *parameter, const double *point,
                               double *gradient);
double pc_attention_seconds(const void *shape, const double *parameter, const double *point, double *gradient);
/* Sums of an operation beside its time, for where to start. */
void pc_gemm_work(const pc_roofline_shape *shape, const double *point, double *flops, double *bytes);
void pc_attention_work(const pc_roofline_shape *shape, const double *point, double *flops, double *bytes);

/* Functions of forms that are rooflines. `near` NULL: from what is seen, and several times. */
pc_code pc_roofline_fit(pc_fit *fit, const double *near, pc_error *error);
double pc_roofline_seconds(const pc_fit *fit, const double *point, double *gradient, double *scatter);
bool pc_roofline_has_parameters(const pc_fit *fit);
bool pc_roofline_has_rates(const pc_fit *fit);
/* Of forms whose parameters are logarithms while they are fitted: what is below zero was not fitted. */
bool pc_fit_has_none_below_zero(const pc_fit *fit);

/* ---- tables of products (fit_gemm_table.c): hundreds of shapes that somebody measured with a library ---- */

/* Behind those of a roofline: bytes that each element of the activations costs beside the product (casts). Then how
 * much faster than the sustained clock the boost clock is, and how long a kernel has to run for the chip to settle. */
enum { PC_TABLE_CASTS = PC_ROOFLINE_PARAMETERS, PC_TABLE_BURST, PC_TABLE_SETTLE, PC_TABLE_PARAMETERS };

bool pc_gemm_is_table(const pc_fit *fit); /* by its points, before it has parameters */
pc_code pc_gemm_table_fit(pc_fit *fit, const double *near, pc_error *error);
double pc_gemm_table_seconds(const void *shape, const double *parameter, const double *point, double *gradient);
/* At the sustained clock. */
double pc_gemm_table_sustained(const pc_fit *fit, const double *point);

/* Parameters of a robust fit, and residuals, taken over. */
void pc_roofline_keep(const pc_robust_solution *solution, int parameters, pc_point_function function, pc_fit *fit);
/* Rates that 95% of the points stay below, launch and ramp, for a start. */
void pc_roofline_best_seen(const pc_fit *fit, const pc_roofline_shape *shape, double *parameter);
pc_code pc_roofline_check_points(const pc_fit *fit, pc_error *error);

/* Different rows of x. */
int64_t pc_fit_count_shapes(const pc_fit *fit);

/* ---- the surface of what is left (fit_surface.c) ---- */

/* Fits it to fit->residual, takes it from them, and sets fit->residual_deviation to what remains. Where it explains
 * nothing there is none. */
pc_code pc_surface_fit(pc_fit *fit, pc_error *error);

/* What it adds to log(seconds) there, and the variance of that. */
double pc_surface_at(const pc_fit *fit, const double *point, double *variance);

#endif
