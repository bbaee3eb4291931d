#include "results/figures/figure_private.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

enum { GAP_FROM = 4 /* the width from which a pass gives a pixel to the gap behind it */ };

#define ROW_FILL 0.45 /* of a row, up and down from its middle */

/* --- what there is to draw --- */

static double in_units(const pc_figure_panel *panel, pc_time time) {
    return (double)time / panel->unit_ps;
}

/* A replay that ended early may hold passes that never ran. */
static bool is_drawn(const pc_replay_trace *trace, int64_t i) {
    return trace->pass_start_ps[i] >= 0 && trace->pass_end_ps[i] > trace->pass_start_ps[i];
}

static int digits_of(int32_t number) {
    int digits = 1;
    for (; number >= 10; number /= 10) digits++;
    return digits;
}

static double number_width(int32_t number, double font) {
    return digits_of(number) * PC_STYLE_DIGIT_WIDTH * font + 2;
}

double pc_figure_survey_passes(pc_figure_panel *panel) {
    const pc_replay_trace *trace = panel->trace;
    double duration = 0;
    int64_t drawn = 0;
    int32_t longest = 0;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (!is_drawn(trace, i)) continue;
        double end = in_units(panel, trace->pass_end_ps[i]);
        panel->passes[trace->pass[i].kind]++;
        panel->end = fmax(panel->end, end);
        duration += end - in_units(panel, trace->pass_start_ps[i]);
        if (trace->pass[i].microbatch > longest) longest = trace->pass[i].microbatch;
        drawn++;
    }
    return duration > 0 ? number_width(longest, PC_FIGURE_NUMBER_FONT_MIN + 1) * (double)drawn / duration : 0;
}

/* --- fonts of the numbers --- */

static double pass_width(const pc_figure_panel *panel, int64_t i) {
    const pc_replay_trace *trace = panel->trace;
    double start = fmax(in_units(panel, trace->pass_start_ps[i]), panel->begin);
    return (fmin(in_units(panel, trace->pass_end_ps[i]), panel->end) - start) * panel->pixels_per_unit;
}

static bool number_fits(const pc_figure_panel *panel, int64_t i, int font) {
    return number_width(panel->trace->pass[i].microbatch, font) <= pass_width(panel, i);
}

static int64_t count_fitting(const pc_figure_panel *panel, int kind, int font) {
    const pc_replay_trace *trace = panel->trace;
    int64_t count = 0;
    for (int64_t i = 0; i < trace->pass_count; i++)
        if (trace->pass[i].kind == kind && is_drawn(trace, i) && number_fits(panel, i, font)) count++;
    return count;
}

/* The largest in which nearly all numbers of a kind fit, one for the whole kind; 0 if there is none: numbers on some
 * passes only would look like a meaning. */
static int choose_number_font(const pc_figure *figure, const pc_figure_panel *panel, int kind) {
    int font = (int)fmin(pc_figure_length(figure, PC_FIGURE_NUMBER_FONT_MAX), 0.7 * panel->row);
    for (; font >= PC_FIGURE_NUMBER_FONT_MIN; font--)
        if ((double)count_fitting(panel, kind, font) >= 0.9 * (double)panel->passes[kind]) return font;
    return 0;
}

/* Fonts that differ by a little look like a mistake: they become the smallest of them. */
static void even_out_fonts(pc_figure_panel *panel) {
    int largest = 0, smallest = INT_MAX;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (panel->number_font[kind] > largest) largest = panel->number_font[kind];
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (panel->number_font[kind] >= largest - 2 && panel->number_font[kind] < smallest)
            smallest = panel->number_font[kind];
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (panel->number_font[kind] > smallest) panel->number_font[kind] = smallest;
}

void pc_figure_choose_fonts(const pc_figure *figure, pc_figure_panel *panel) {
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (panel->passes[kind]) panel->number_font[kind] = choose_number_font(figure, panel, kind);
    even_out_fonts(panel);
}

/* --- the passes, one data block a colour --- */

typedef struct colour_group {
    int kind, shade;
    bool pale;
    const char *border; /* as gnuplot writes it */
    char name[32];      /* how its data blocks' names end */
    int64_t boxes, numbers;
} colour_group;

static bool is_in(const pc_figure *figure, const pc_figure_panel *panel, const colour_group *group, int64_t i) {
    const pc_pass *pass = &panel->trace->pass[i];
    return pass->kind == group->kind && pc_figure_is_pale(panel, i) == group->pale && is_drawn(panel->trace, i) &&
           pc_figure_shade_of(figure->timeline, pass->chunk) == group->shade;
}

typedef struct box_extent {
    double left, right; /* in the panel's unit */
} box_extent;

/* Where a pass is drawn: on whole pixels and one short, so that all gaps between neighbours look the same; a border
 * would do so with a second shape a pass. Passes too narrow to spare a pixel are drawn where they are. */
static box_extent extent_of(const pc_figure_panel *panel, int64_t i) {
    const pc_replay_trace *trace = panel->trace;
    box_extent exact = {fmax(in_units(panel, trace->pass_start_ps[i]), panel->begin),
                        fmin(in_units(panel, trace->pass_end_ps[i]), panel->end)};
    double scale = panel->pixels_per_unit, begin = panel->begin;
    if ((exact.right - exact.left) * scale < GAP_FROM) return exact;
    return (box_extent){begin + round((exact.left - begin) * scale) / scale,
                        begin + (round((exact.right - begin) * scale) - 1) / scale};
}

/* What a pass says under the pointer, and the same for programs. */
static void add_note(const pc_figure *figure, const pc_figure_panel *panel, int64_t i) {
    const pc_replay_trace *trace = panel->trace;
    const pc_pass *pass = &trace->pass[i];
    const char *kind = pc_pass_kind_name((pc_pass_kind)pass->kind);
    double start = in_units(panel, trace->pass_start_ps[i]), end = in_units(panel, trace->pass_end_ps[i]);
    char attributes[256], title[256];
    bool is_beside = figure->timeline->is_beside;
    int32_t stage = is_beside ? trace->pass_device[i] / PC_TIMELINE_ROWS_BESIDE : trace->pass_device[i];
    const char *whose = !is_beside ? "" : trace->pass_device[i] % PC_TIMELINE_ROWS_BESIDE ? "measured " : "simulated ";
    snprintf(attributes, sizeof attributes,
             "class=\"%s\" data-panel=\"%s\" data-kind=\"%s\" data-microbatch=\"%" PRId32
             "\" data-chunk=\"%d\" data-stage=\"%" PRId32 "\" data-start=\"%.9g\" data-end=\"%.9g\"",
             pc_figure_is_pale(panel, i) ? "pass pale" : "pass", is_beside ? whose : panel->name, kind,
             pass->microbatch, pass->chunk, stage, start, end);
    snprintf(title, sizeof title, "%s%s of microbatch %" PRId32 ", chunk %d, stage %" PRId32 ": %.6g to %.6g%s%.32s",
             whose, kind, pass->microbatch, pass->chunk, stage, start, end, *panel->unit ? " " : "", panel->unit);
    pc_svg_add_note(figure->notes, attributes, title);
}

static bool wants_notes(const pc_figure *figure) {
    return figure->format->is_svg && figure->passes.trace->pass_count + figure->repeated.pass_count <= PC_SVG_NOTES_MAX;
}

static void add_boxes(const pc_figure *figure, const pc_figure_panel *panel, pc_text *script, colour_group *group) {
    const pc_replay_trace *trace = panel->trace;
    char name[64];
    snprintf(name, sizeof name, "boxes_%s", group->name);
    pc_text_printf(script, "$%s << EOD\n", name);
    if (wants_notes(figure)) pc_svg_begin_plot(figure->notes, name, "polygon");
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (!is_in(figure, panel, group, i)) continue;
        box_extent extent = extent_of(panel, i);
        pc_text_printf(script, "%.9g %.9g %d\n", extent.left, extent.right, trace->pass_device[i]);
        if (wants_notes(figure)) add_note(figure, panel, i);
        group->boxes++;
    }
    pc_text_printf(script, "EOD\n");
    if (wants_notes(figure)) pc_svg_end_plot(figure->notes);
}

static void add_numbers(const pc_figure *figure, const pc_figure_panel *panel, pc_text *script, colour_group *group) {
    const pc_replay_trace *trace = panel->trace;
    int font = panel->number_font[group->kind];
    if (font == 0) return;
    pc_text_printf(script, "$numbers_%s << EOD\n", group->name);
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (!is_in(figure, panel, group, i) || !number_fits(panel, i, font)) continue;
        box_extent extent = extent_of(panel, i);
        double middle = (extent.left + extent.right) / 2;
        pc_text_printf(script, "%.9g %d %d\n", middle, trace->pass_device[i], trace->pass[i].microbatch);
        group->numbers++;
    }
    pc_text_printf(script, "EOD\n");
}

/* gnuplot warns of a plot without a point: what is empty is left out. */
static void add_group_plots(const pc_figure *figure, const pc_figure_panel *panel, pc_text *plot,
                            const colour_group *group) {
    uint32_t fill = pc_figure_fill_colour(figure->timeline, group->kind, group->shade);
    if (group->pale) fill = pc_figure_pale(figure->timeline, fill);
    if (group->boxes == 0) return;
    pc_text_printf(plot,
                   "%s$boxes_%s using 1:3:1:2:($3-%.2f):($3+%.2f) with boxxyerror fillstyle solid 1 %s "
                   "fillcolor rgb 0x%06" PRIx32,
                   plot->size ? ", " : "plot ", group->name, ROW_FILL, ROW_FILL, group->border, fill);
    if (group->numbers == 0) return;
    uint32_t ink = group->pale ? pc_figure_pale_ink(figure->timeline) : pc_figure_ink_on(fill);
    pc_text_printf(plot, ", $numbers_%s using 1:2:3 with labels center font '%s,%.4g' textcolor rgb 0x%06" PRIx32,
                   group->name, figure->format->font, pc_figure_font_size(figure, panel->number_font[group->kind]),
                   ink);
}

static void add_group(const pc_figure *figure, const pc_figure_panel *panel, pc_text *script, pc_text *plot,
                      colour_group *group) {
    snprintf(group->name, sizeof group->name, "%s%s_%s_%d", panel->name, group->pale ? "_pale" : "",
             pc_pass_kind_name((pc_pass_kind)group->kind), group->shade);
    add_boxes(figure, panel, script, group);
    add_numbers(figure, panel, script, group);
    add_group_plots(figure, panel, plot, group);
}

/* Beside pale ones, the others have a border: the light shade of a late chunk looks like the pale one of an early
 * chunk. */
void pc_figure_add_passes(const pc_figure *figure, const pc_figure_panel *panel, pc_text *script) {
    pc_text plot = {0};
    bool has_pale = panel->full < panel->trace->pass_count || panel->window;
    const char *border = has_pale ? "border linecolor rgb '#222222'" : "noborder";
    int shades = pc_figure_shade_count(figure->timeline);
    for (int i = 0; i < PC_PASS_KINDS * shades; i++) {
        int kind = i / shades, shade = i % shades;
        if (!panel->passes[kind]) continue;
        add_group(figure, panel, script, &plot, &(colour_group){kind, shade, .border = border});
        if (has_pale) add_group(figure, panel, script, &plot, &(colour_group){kind, shade, true, .border = "noborder"});
    }
    if (plot.data) pc_text_add(script, plot.data, plot.size);
    pc_text_add(script, "\n", 1);
    script->failed = script->failed || plot.failed;
    pc_text_free(&plot);
}
