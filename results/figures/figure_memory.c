#include "results/figures/figure_private.h"
#include "results/figures/picture.h"

#include <math.h>

/* Every device has a band of its own, in the place and order of its row in the timeline: curves of many devices, laid
 * over each other, coincide or hide each other, whatever their colours. All bands have one scale; a band's height is
 * the highest peak, so that a curve that touches the top is one that reaches it. Those stand out by a darker fill. */

enum { PEAK_FONT = 11, PEAK_GAP = 8, RULE_DISTANCE = 9, SECOND_LINE_Y = 18, NAMED_MAX = 6 };

#define BAND_BOTTOM 0.44 /* of a row, down from its middle */
#define BAND_HEIGHT 0.88

/* --- what there is to see --- */

/* The rows of one device, from first to last - 1. */
typedef struct curve {
    int64_t first, last;
    int64_t peak; /* in bytes */
} curve;

static curve next_curve(const pc_figure_levels *levels, int64_t first) {
    curve found = {first, first, 0};
    for (; found.last < levels->count && levels->device[found.last] == levels->device[first]; found.last++)
        if (levels->bytes[found.last] > found.peak) found.peak = levels->bytes[found.last];
    return found;
}

static int64_t highest_peak(const pc_figure_levels *levels) {
    int64_t highest = 0;
    for (int64_t i = 0; i < levels->count; i++)
        if (levels->bytes[i] > highest) highest = levels->bytes[i];
    return highest;
}

static int first_device(const pc_figure *figure) {
    return figure->memory.first_device;
}

/* Behind the last. */
static int end_device(const pc_figure *figure) {
    return figure->memory.first_device + figure->memory.devices;
}

/* A capacity far above all peaks would leave no room for what there is to see. */
static bool shows_capacity(const pc_figure *figure, int device, int64_t highest) {
    int64_t capacity = pc_memory_limit_of(figure->levels.capacity, device);
    return capacity != PC_NO_LIMIT && capacity / 2 < highest;
}

/* How high a band is: the highest peak, or a capacity that is shown above it. */
static int64_t band_bytes(const pc_figure *figure, int64_t highest) {
    int64_t most = highest;
    for (int d = first_device(figure); d < end_device(figure); d++) {
        int64_t capacity = pc_memory_limit_of(figure->levels.capacity, d);
        if (shows_capacity(figure, d, highest) && capacity > most) most = capacity;
    }
    return most;
}

static double in_memory_units(const pc_figure *figure, int64_t bytes) {
    return (double)bytes / figure->timeline->memory_unit_bytes;
}

/* --- the curves: time, level and device; a blank line between two devices --- */

static void add_point(const pc_figure *figure, pc_text *script, pc_time time, int64_t bytes, int device) {
    pc_text_printf(script, "%.9g %.9g %d\n", fmin((double)time / figure->memory.unit_ps, figure->memory.end),
                   in_memory_units(figure, bytes), device);
}

/* A vertical line from level to level. What is given back and taken again in the same instant is no dip; but a peak of
 * no duration is one, for the device needs that memory. */
static int64_t add_step(const pc_figure *figure, pc_text *script, const curve *of, int64_t *i, int64_t level) {
    const pc_figure_levels *levels = &figure->levels;
    int device = levels->device[*i];
    pc_time time = levels->time_ps[*i];
    int64_t top = 0, after = level;
    for (; *i < of->last && levels->time_ps[*i] == time; ++*i) {
        after = levels->bytes[*i];
        if (after > top) top = after;
    }
    if (after == level && top <= level) return level;
    add_point(figure, script, time, level, device);
    if (top > level && top > after) add_point(figure, script, time, top, device);
    add_point(figure, script, time, after, device);
    return after;
}

static void add_curve(const pc_figure *figure, pc_text *script, const curve *of) {
    int device = figure->levels.device[of->first];
    int64_t level = 0;
    pc_text_printf(script, "%.9g 0 %d\n", figure->memory.begin, device);
    for (int64_t i = of->first; i < of->last;) level = add_step(figure, script, of, &i, level);
    pc_text_printf(script, "%.9g %.9g %d\n%.9g 0 %d\n\n", figure->memory.end, in_memory_units(figure, level), device,
                   figure->memory.end, device);
}

/* The curves that reach the highest peak, or those that do not; how many there are. */
static int add_curves(const pc_figure *figure, pc_text *script, const char *name, int64_t highest, bool reaching) {
    const pc_figure_levels *levels = &figure->levels;
    int count = 0;
    pc_text_printf(script, "$memory_%s << EOD\n", name);
    for (int64_t i = 0; i < levels->count;) {
        curve found = next_curve(levels, i);
        i = found.last;
        if ((found.peak == highest) != reaching) continue;
        add_curve(figure, script, &found);
        count++;
    }
    pc_text_printf(script, "EOD\n");
    return count;
}

/* --- the bands behind, and white lines across where they have room --- */

static void add_bands(const pc_figure *figure, pc_text *script) {
    pc_text_printf(script, "$memory_bands << EOD\n");
    for (int d = first_device(figure); d < end_device(figure); d++) pc_text_printf(script, "%d\n", d);
    pc_text_printf(script, "EOD\n");
}

/* The step of the lines; 0 if there is no room for one. */
static double add_rules(const pc_figure *figure, pc_text *script, double highest) {
    double band = BAND_HEIGHT * figure->memory.row, distance = pc_figure_length(figure, RULE_DISTANCE);
    if (highest <= 0 || band < 3 * distance) return 0;
    double step = pc_picture_step(highest * distance / band);
    if (step >= highest) return 0;
    pc_text_printf(script, "$memory_rules << EOD\n");
    for (int d = first_device(figure); d < end_device(figure); d++)
        for (int i = 1; i * step < highest * 0.999; i++) pc_text_printf(script, "%.9g %d\n", i * step, d);
    pc_text_printf(script, "EOD\n");
    return step;
}

/* --- peaks --- */

static void add_peaks(const pc_figure *figure, pc_text *script) {
    const pc_figure_levels *levels = &figure->levels;
    int step = pc_figure_label_step(figure, &figure->memory);
    pc_text_printf(script, "$memory_peaks << EOD\n");
    for (int64_t i = 0; i < levels->count;) {
        curve found = next_curve(levels, i);
        int device = levels->device[i];
        if (device % step == 0) pc_text_printf(script, "%d %.4g\n", device, in_memory_units(figure, found.peak));
        i = found.last;
    }
    pc_text_printf(script, "EOD\n");
    pc_figure_add_text(figure, script, "peak", figure->memory.right + pc_figure_length(figure, PEAK_GAP),
                       figure->memory.heading_y + pc_figure_length(figure, SECOND_LINE_Y), PEAK_FONT, "");
}

/* Before the next name in a list. */
static const char *joint(int named, int count) {
    if (named == 0) return count > 1 ? "devices " : "device ";
    return named == count - 1 ? " and " : ", ";
}

/* How the fill of those looks that reach the highest peak. */
static const char *fill_word(const pc_figure *figure) {
    return figure->timeline->is_dark ? "bright" : "dark";
}

static void name_each(const pc_figure *figure, int64_t highest, int count, pc_text *text) {
    const pc_figure_levels *levels = &figure->levels;
    int named = 0;
    for (int64_t i = 0; i < levels->count;) {
        curve found = next_curve(levels, i);
        if (found.peak == highest) pc_text_printf(text, "%s%d", joint(named++, count), levels->device[i]);
        i = found.last;
    }
    pc_text_printf(text, " (%s)", fill_word(figure));
}

/* "device 3 (dark)"; "devices 0, 1 and 2 (dark)"; where they are many, how many. */
static void name_reaching(const pc_figure *figure, int64_t highest, int count, pc_text *text) {
    int devices = figure->memory.devices;
    if (count > 1 && count == devices)
        pc_text_printf(text, devices == 2 ? "both devices" : "all %d devices", count);
    else if (count > NAMED_MAX)
        pc_text_printf(text, "%d devices (%s)", count, fill_word(figure));
    else
        name_each(figure, highest, count, text);
}

static bool shows_any_capacity(const pc_figure *figure, int64_t highest) {
    for (int d = first_device(figure); d < end_device(figure); d++)
        if (shows_capacity(figure, d, highest)) return true;
    return false;
}

static void add_second_line(const pc_figure *figure, pc_text *script, int64_t highest, int count, double step) {
    const char *unit = figure->timeline->memory_unit;
    int64_t band = band_bytes(figure, highest);
    pc_text text = {0};
    pc_text_printf(&text, "at most %.4g", in_memory_units(figure, highest));
    if (unit && *unit) pc_text_printf(&text, " %s", unit);
    pc_text_printf(&text, ", on ");
    name_reaching(figure, highest, count, &text);
    if (band > highest)
        pc_text_printf(&text, "; a band is %.4g high", in_memory_units(figure, band));
    else
        pc_text_printf(&text, "; a band is that high");
    if (step > 0) pc_text_printf(&text, ", with a line every %.4g", step);
    if (shows_any_capacity(figure, highest)) pc_text_printf(&text, "; the red line is the capacity");
    pc_figure_add_text(figure, script, text.data, figure->margin_left,
                       figure->memory.heading_y + pc_figure_length(figure, SECOND_LINE_Y), PC_STYLE_TEXT_FONT, "");
    script->failed = script->failed || text.failed;
    pc_text_free(&text);
}

/* --- the plot --- */

static void add_curve_plots(pc_text *script, const char *name, const char *fill, const char *line) {
    pc_text_printf(script,
                   ", $memory_%s using 1:(y($2,$3)) with filledcurves closed fillstyle solid 1 noborder fillcolor rgb "
                   "'%s', $memory_%s using 1:(y($2,$3)) with lines linewidth 1 linecolor rgb '%s'",
                   name, fill, name, line);
}

/* A row for each line; how many there are. */
static int add_capacities(const pc_figure *figure, pc_text *script, int64_t highest) {
    int count = 0;
    pc_text_printf(script, "$memory_capacities << EOD\n");
    for (int d = first_device(figure); d < end_device(figure); d++) {
        if (!shows_capacity(figure, d, highest)) continue;
        pc_text_printf(script, "%.9g %d\n", in_memory_units(figure, pc_memory_limit_of(figure->levels.capacity, d)), d);
        count++;
    }
    pc_text_printf(script, "EOD\n");
    return count;
}

void pc_figure_add_memory(const pc_figure *figure, pc_text *script) {
    int64_t highest = highest_peak(&figure->levels), band = band_bytes(figure, highest);
    double top = band > 0 ? in_memory_units(figure, band) : 1, begin = figure->memory.begin, end = figure->memory.end;
    add_bands(figure, script);
    int others = add_curves(figure, script, "others", highest, false);
    int reaching = add_curves(figure, script, "highest", highest, true);
    int capacities = figure->levels.capacity.device_bytes ? add_capacities(figure, script, highest) : 0;
    double step = add_rules(figure, script, top);
    add_peaks(figure, script);
    add_second_line(figure, script, highest, reaching, step);
    pc_text_printf(script, "y(level, device) = device + %.2f - %.2f * level / %.9g\n", BAND_BOTTOM, BAND_HEIGHT, top);
    pc_text_printf(script,
                   "plot $memory_bands using (%.9g):1:(%.9g):(%.9g):(y(%.9g,$1)):(y(0,$1)) with boxxyerror "
                   "fillstyle solid 1 noborder fillcolor rgb '#e2e2e2'",
                   begin, begin, end, top);
    if (others) add_curve_plots(script, "others", "#c7e6dc", "#4d9c82");
    if (reaching) add_curve_plots(script, "highest", "#5dbd9d", "#00634a");
    if (step > 0)
        pc_text_printf(script,
                       ", $memory_rules using (%.9g):(y($1,$2)):(%.9g):(0) with vectors nohead linewidth 0.6 "
                       "linecolor rgb '#ffffff'",
                       begin, end - begin);
    if (capacities)
        pc_text_printf(script,
                       ", $memory_capacities using (%.9g):(y($1,$2)):(%.9g):(0) with vectors nohead linewidth 1 "
                       "linecolor rgb '#c00000'",
                       begin, end - begin);
    pc_text_printf(script,
                   ", $memory_peaks using (%.9g):1:2 with labels left offset screen %.6f,0 font '%s,%.4g' "
                   "textcolor rgb '#222222'\n",
                   end, pc_figure_screen_x(figure, pc_figure_length(figure, PEAK_GAP)), figure->format->font,
                   pc_figure_font_size(figure, pc_figure_length(figure, PEAK_FONT)));
}
