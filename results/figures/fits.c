#include "results/figures/fits.h"

#include "results/figures/figure.h"
#include "results/figures/fits_choice.h"
#include "results/figures/gnuplot.h"
#include "results/figures/picture.h"
#include "results/figures/style.h"
#include "storage/text.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { FITS_MAX = 64, KEYS_MAX = 14, WIDTH = 900, HEIGHT = 980 };

static const unsigned colours[] = {PC_STYLE_BLUE,   PC_STYLE_ORANGE, PC_STYLE_GREEN, PC_STYLE_VERMILION,
                                   PC_STYLE_PURPLE, PC_STYLE_SKY,    PC_STYLE_BLACK};
enum { COLOURS = sizeof colours / sizeof *colours };
static const int shapes[] = {7, 9, 5, 11, 13}; /* of gnuplot's points, filled ones, behind all colours */
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct chosen {
    const pc_profile *profile; /* whose they are */
    const pc_fit *fit[FITS_MAX];
    int count;
} chosen;

/* ---- numbers ---- */

/* What a point's time goes with. */
static double work_of(const pc_fit *fit, const double *point) {
    if (fit->dimensions == 1) return point[0];
    return (fit->key.form == PC_FIT_ATTENTION ? 4.0 : 2.0) * point[0] * point[1] * point[2] * point[3];
}

/* A block of points: predicted and measured microseconds, work, residual in percent. */
static void add_points(const pc_fit *fit, int number, pc_text *script) {
    pc_text_printf(script, "$fit%d << EOD\n", number);
    for (int64_t i = 0; i < fit->count && fit->seconds; i++) {
        const double *x = fit->x + i * fit->dimensions;
        double residual = fit->residual[i];
        pc_text_printf(script, "%.9g %.9g %.9g %.9g\n", 1e6 * fit->seconds[i] * exp(-residual), 1e6 * fit->seconds[i],
                       work_of(fit, x), 100.0 * (exp(residual) - 1.0));
    }
    pc_text_printf(script, "EOD\n");
}

/* ---- panels ---- */

static void add_name(const pc_fit *fit, pc_text *script) {
    char name[128];
    pc_fit_name(&fit->key, name, sizeof name);
    pc_gnuplot_add_string(script, name, 60);
}

/* Of many fits not every one is named. */
static void add_series(const chosen *fits, const char *columns, bool is_named, pc_text *script) {
    for (int i = 0; i < fits->count; i++) {
        pc_text_printf(script, ", $fit%d using %s with points pointtype %d pointsize 0.5 linecolor rgb '#%06x' ", i,
                       columns, shapes[i / COLOURS % SHAPES], colours[i % COLOURS]);
        if (is_named && i < KEYS_MAX) {
            pc_text_printf(script, "title ");
            add_name(fits->fit[i], script);
        } else {
            pc_text_printf(script, "notitle");
        }
    }
    pc_text_printf(script, "\n");
}

static void add_times(const chosen *fits, pc_text *script) {
    pc_text_printf(script, "set size 1,0.55\nset origin 0,0.42\nset logscale xy\n"
                           "set xlabel 'Predicted [us]'\nset ylabel 'Measured [us]'\n"
                           "plot x with lines linecolor rgb '#888888' notitle");
    add_series(fits, "1:2", true, script);
}

static void add_residuals(const chosen *fits, pc_text *script) {
    bool is_flops = fits->fit[0]->dimensions > 1;
    double band = fits->count == 1 ? 200.0 * fits->fit[0]->residual_deviation : 0.0;
    pc_text_printf(script,
                   "set size 1,0.40\nset origin 0,0\nunset logscale y\nset xlabel '%s'\nset ylabel 'Residual [%%]'\n",
                   fits->count > 1 ? "Work [bytes; FLOP]"
                   : is_flops      ? "Work [FLOP]"
                                   : "Size [bytes]");
    pc_text_printf(script, "plot 0 with lines linecolor rgb '#888888' notitle");
    if (band > 0.0)
        pc_text_printf(script,
                       ", %.9g with lines dashtype 2 linecolor rgb '#888888' notitle, %.9g with lines dashtype 2 "
                       "linecolor rgb '#888888' notitle",
                       band, -band);
    add_series(fits, "3:4", false, script);
}

static void add_title(const pc_profile *profile, pc_text *script) {
    char title[256];
    const pc_profile_device *d = &profile->device;
    snprintf(title, sizeof title, "%.128s: fits and what they were made of",
             d->name[0] ? d->name : "a GPU without a name");
    pc_text_printf(script, "set multiplot title ");
    pc_gnuplot_add_string(script, title, 100);
    pc_text_printf(script, " noenhanced textcolor rgb '" PC_STYLE_INK "'\n");
}

static void add_script(const void *of, const char *path, pc_text *script) {
    const chosen *fits = of;
    pc_picture_begin(script, path, WIDTH, HEIGHT);
    for (int i = 0; i < fits->count; i++) add_points(fits->fit[i], i, script);
    add_title(fits->profile, script);
    pc_text_printf(script, PC_STYLE_TEXTS
                   "set border 3 linecolor rgb '" PC_STYLE_AXIS "'\nset tics nomirror out\nset format xy '%%g'\n"
                   "set grid linecolor rgb '" PC_STYLE_GRID "'\nset key left top noenhanced samplen 1\n"
                   "set lmargin 12\nset rmargin 3\n");
    add_times(fits, script);
    add_residuals(fits, script);
    pc_text_printf(script, "unset multiplot\n");
}

/* A profile of the library has the fits of what others measured, and nothing else. */
static pc_code check_measured(const chosen *fits, pc_error *error) {
    for (int i = 0; i < fits->count; i++)
        if (fits->fit[i]->seconds && fits->fit[i]->count > 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "a profile without measurements has no residuals; expected a file of `pipecast profile fit`, "
                        "or --figure");
}

pc_code pc_figure_fits(const pc_profile *profile, const char *fit, bool is_dark, const char *path, pc_error *error) {
    pc_code code = pc_figure_check_path(path, error);
    if (code) return code;
    chosen x;
    x.profile = profile;
    code = pc_fits_choose(profile, fit, x.fit, FITS_MAX, &x.count, error);
    if (!code) code = check_measured(&x, error);
    return code ? code : pc_picture_make(add_script, &x, is_dark, path, error);
}
