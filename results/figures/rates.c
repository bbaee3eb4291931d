#include "results/figures/rates_private.h"

#include "results/figures/figure.h"
#include "results/figures/fits_choice.h"
#include "results/figures/gnuplot.h"
#include "results/figures/picture.h"
#include "results/figures/style.h"
#include "storage/text.h"

#include <math.h>
#include <stdio.h>

/* In pixels. */
enum { PANEL_WIDTH = 500, PANEL_HEIGHT = 320, TITLE_HEIGHT = 48, COLUMNS = 3, LABELLED = 9 };

static const unsigned colours[] = {PC_STYLE_BLUE,   PC_STYLE_ORANGE, PC_STYLE_GREEN, PC_STYLE_VERMILION,
                                   PC_STYLE_PURPLE, PC_STYLE_SKY,    PC_STYLE_BLACK};
enum { COLOURS = sizeof colours / sizeof *colours };

/* ---- numbers ---- */

static double unit_of(const pc_rates_panel *panel) {
    return panel->is_bytes ? 1e9 : 1e12;
}

/* How many there are to draw: a profile of the library has shapes, which its surfaces stand on, but no times. */
static int64_t points_of(const pc_fit *fit) {
    return fit->seconds ? fit->count : 0;
}

/* So many at even steps of the file's order, so that the picture does not grow with the tables. */
static void add_points(const pc_rates_series *series, int number, double unit, pc_text *script) {
    const pc_fit *fit = series->fit;
    int64_t step = fit->count / PC_RATES_POINTS + 1;
    pc_text_printf(script, "$points%d << EOD\n", number);
    for (int64_t i = 0; i < points_of(fit); i += step) {
        const double *x = fit->x + i * fit->dimensions;
        double work = pc_rates_work(fit, x);
        if (pc_rates_is_of(series, x)) pc_text_printf(script, "%.6g %.6g\n", work, work / fit->seconds[i] / unit);
    }
    pc_text_printf(script, "EOD\n");
}

static void add_line(const pc_rates_series *series, int number, double unit, pc_text *script) {
    double point[PC_FIT_DIMENSIONS];
    pc_text_printf(script, "$line%d << EOD\n", number);
    for (int i = 0; i < PC_RATES_STEPS; i++) {
        pc_rates_way(series, i, point);
        double work = pc_rates_work(series->fit, point), seconds = pc_fit_predict(series->fit, point).seconds;
        if (seconds > 0.0 && isfinite(seconds)) pc_text_printf(script, "%.6g %.6g\n", work, work / seconds / unit);
    }
    pc_text_printf(script, "EOD\n");
}

static bool has_points(const pc_rates_series *series) {
    for (int64_t i = 0; i < points_of(series->fit); i += series->fit->count / PC_RATES_POINTS + 1)
        if (pc_rates_is_of(series, series->fit->x + i * series->fit->dimensions)) return true;
    return false;
}

/* ---- panels ---- */

/* Of many lines not every one is named. */
static void add_label(const pc_rates_series *series, int place, pc_text *script) {
    if (place >= LABELLED || series->label[0] == '\0') {
        pc_text_printf(script, "notitle");
        return;
    }
    pc_text_printf(script, "title ");
    pc_gnuplot_add_string(script, series->label, 44);
}

/* Points lie over all lines of the panel, which hide what they meet. */
static void plot_lines(const pc_rates *rates, int panel, pc_text *script) {
    for (int i = 0, place = 0; i < rates->series_count; i++) {
        if (rates->series[i].panel != panel) continue;
        pc_text_printf(script, "%s$line%d with lines linewidth 1.5 dashtype %d linecolor rgb '#%06x' ",
                       place > 0 ? ", " : "plot ", i, place / COLOURS % 4 + 1, colours[place % COLOURS]);
        add_label(&rates->series[i], place++, script);
    }
}

static void plot_points(const pc_rates *rates, int panel, const char *path, pc_text *script) {
    for (int i = 0, place = 0; i < rates->series_count; i++) {
        if (rates->series[i].panel != panel) continue;
        unsigned colour = colours[place++ % COLOURS];
        if (has_points(&rates->series[i]))
            pc_text_printf(script, ", $points%d with points pointtype 7 pointsize %.3g linecolor rgb '#80%06x' notitle",
                           i, pc_picture_point_size(path, rates->panel[panel].is_bytes ? 0.45 : 0.3), colour);
    }
}

static void add_axes(const pc_rates_panel *panel, pc_text *script) {
    pc_text_printf(script, "set title ");
    pc_gnuplot_add_string(script, panel->title, 70);
    pc_text_printf(script, " noenhanced\n");
    if (panel->is_bytes)
        pc_text_printf(
            script,
            "set logscale xy\nset format x '%%.0s%%c'\nset format y '%%g'\nset yrange [*:*]\nset offsets 0,0,0,0\n"
            "set xlabel 'Bytes'\nset ylabel 'GB/s'\nset key bottom right\n");
    else
        pc_text_printf(script, "unset logscale y\nset logscale x\nset format x '%%.0s%%c'\nset format y '%%g'\n"
                               "set yrange [0:*]\nset offsets 0,0,graph 0.2,0\nset xlabel 'FLOP'\nset ylabel "
                               "'TFLOP/s'\nset key top left\n");
}

static void add_panel(const pc_rates *rates, int panel, int columns, int rows, const char *path, pc_text *script) {
    int row = panel / columns;
    double height = rows * PANEL_HEIGHT + TITLE_HEIGHT, high = PANEL_HEIGHT / height;
    pc_text_printf(script, "set size %.9g,%.9g\nset origin %.9g,%.9g\n", 1.0 / columns, high,
                   (double)(panel % columns) / columns, (double)(rows - 1 - row) * high);
    add_axes(&rates->panel[panel], script);
    plot_lines(rates, panel, script);
    plot_points(rates, panel, path, script);
    pc_text_printf(script, "\n");
}

static void add_title(const pc_profile *profile, bool is_cut, pc_text *script) {
    char title[320];
    const pc_profile_device *d = &profile->device;
    const char *name = d->name[0] ? d->name : d->gpu[0] ? d->gpu : "a GPU without a name";
    snprintf(title, sizeof title, "%.128s: rates by size, measured (points) and fitted (lines)%s", name,
             is_cut ? "; not all fits" : "");
    pc_text_printf(script, "set multiplot title ");
    pc_gnuplot_add_string(script, title, 120);
    pc_text_printf(script, " noenhanced textcolor rgb '" PC_STYLE_INK "'\n");
}

typedef struct drawn_rates {
    const pc_profile *profile;
    pc_rates rates;
} drawn_rates;

static void add_script(const void *of, const char *path, pc_text *script) {
    const drawn_rates *drawn = of;
    const pc_rates *rates = &drawn->rates;
    int columns = rates->panels < COLUMNS ? rates->panels : COLUMNS, rows = (rates->panels + columns - 1) / columns;
    pc_picture_begin(script, path, columns * PANEL_WIDTH, rows * PANEL_HEIGHT + TITLE_HEIGHT);
    for (int i = 0; i < rates->series_count; i++) {
        double unit = unit_of(&rates->panel[rates->series[i].panel]);
        add_points(&rates->series[i], i, unit, script);
        add_line(&rates->series[i], i, unit, script);
    }
    add_title(drawn->profile, rates->is_cut, script);
    pc_text_printf(script, PC_STYLE_TEXTS "set border 3 linecolor rgb '" PC_STYLE_AXIS "'\nset tics nomirror out\n"
                                          "set grid linecolor rgb '" PC_STYLE_GRID
                                          "'\nset key noenhanced Left reverse samplen 1 spacing 0.9\n"
                                          "set lmargin 10\nset rmargin 3\n");
    for (int i = 0; i < rates->panels; i++) add_panel(rates, i, columns, rows, path, script);
    pc_text_printf(script, "unset multiplot\n");
}

pc_code pc_figure_rates(const pc_profile *profile, const char *fit, bool is_dark, const char *path, pc_error *error) {
    pc_rates_fits fits;
    drawn_rates drawn = {.profile = profile};
    pc_code code = pc_figure_check_path(path, error);
    if (!code) code = pc_fits_choose(profile, fit, fits.fit, PC_RATES_FITS, &fits.count, error);
    if (!code) code = pc_rates_make(&fits, &drawn.rates, error);
    if (code) return code;
    code = pc_picture_make(add_script, &drawn, is_dark, path, error);
    pc_rates_free(&drawn.rates);
    return code;
}
