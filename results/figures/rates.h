/* rates.h: what kernels and collectives reach, by size, as a profile has it; drawn by gnuplot (figure.h). */
#ifndef PC_RESULTS_RATES_H
#define PC_RESULTS_RATES_H

#include "calib/profile/profile.h"
#include "engine/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A panel for each operation of each library and site: rate over work, TFLOP/s of FLOPs or GB/s of bytes. Points are
 * measured, at most 250 of a fit; the line is the fit, from its least shape to its most (rates_data.c says along which
 * way). A fit without points (the library's) is a line. `fit` as of pc_figure_fits: which of them; NULL: all. svg, png
 * or pdf by the path's ending. PC_ERROR_INPUT where no fit has that name. `is_dark`: light on a dark
 * ground. Same profile, same bytes. */
pc_code pc_figure_rates(const pc_profile *profile, const char *fit, bool is_dark, const char *path, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
