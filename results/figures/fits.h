/* fits.h: how well the fits of a profile describe what they were made of, drawn by gnuplot (figure.h). */
#ifndef PC_RESULTS_FITS_H
#define PC_RESULTS_FITS_H

#include "calib/profile/profile.h"
#include "engine/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Two panels: measured over predicted seconds, both logarithmic, with the diagonal; and residuals in percent over the
 * work (bytes; FLOPs of products and attention), with the band of twice the scatter where it is one fit. `fit` is the
 * name of one, or part of the names of several; NULL: all. svg, png or pdf by the path's ending. PC_ERROR_INPUT where
 * no fit has that name, with those that there are, and where none has measurements. `is_dark`: light on
 * a dark ground. Same profile, same bytes. */
pc_code pc_figure_fits(const pc_profile *profile, const char *fit, bool is_dark, const char *path, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
