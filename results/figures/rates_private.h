/* rates_private.h: private to results/: what pictures of rates are made of. */
#ifndef PC_RESULTS_RATES_PRIVATE_H
#define PC_RESULTS_RATES_PRIVATE_H

#include "results/figures/rates.h"

#include <stdbool.h>
#include <stdint.h>

enum { PC_RATES_FITS = 512, PC_RATES_STEPS = 64, PC_RATES_POINTS = 250 };

typedef struct pc_rates_fits {
    const pc_fit *fit[PC_RATES_FITS];
    int count;
} pc_rates_fits;

/* A line of a panel: of a fit, and of a law over ranks one for each number of them. */
typedef struct pc_rates_series {
    const pc_fit *fit;
    double ranks; /* 0: no matter */
    int panel;
    char label[96];
} pc_rates_series;

typedef struct pc_rates_panel {
    char title[160];
    bool is_bytes; /* rates are GB/s over bytes; otherwise TFLOP/s over FLOPs */
    int series;    /* how many */
} pc_rates_panel;

enum { PC_RATES_SERIES = 2048 };
typedef struct pc_rates {
    pc_rates_panel *panel; /* at most a panel a fit */
    pc_rates_series *series;
    int panels, series_count;
    bool is_cut; /* there was more than fits in */
} pc_rates;

/* PC_ERROR_NO_MEMORY. Then free with pc_rates_free. */
pc_code pc_rates_make(const pc_rates_fits *fits, pc_rates *rates, pc_error *error);
void pc_rates_free(pc_rates *rates);

/* What a point's rate is of: bytes, or FLOPs, those that a mask leaves. */
double pc_rates_work(const pc_fit *fit, const double *point);

/* Point `step` of PC_RATES_STEPS along the series' line. */
void pc_rates_way(const pc_rates_series *series, int step, double point[PC_FIT_DIMENSIONS]);

/* Whether a measured point is of the series. */
bool pc_rates_is_of(const pc_rates_series *series, const double *point);

#endif
