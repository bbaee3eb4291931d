#include "results/figures/figure_private.h"

#include <math.h>

/* In pixels. */
enum {
    WIDTH_SCREEN = 2560, /* a wider picture is hardly looked at unscaled */
    LEGEND_Y = 54,
    LEGEND_Y_SUBTITLE = 76,
    LEGEND_BELOW = 26, /* from the legend's middle to the plot, or to the heading of its panel */
    HEADING_BELOW = 16,
    SECOND_LINE = 18,  /* below the heading of the memory */
    MARK_HEIGHT = 20,  /* of the bar that shows the block's interval */
    TICS_HEIGHT = 28,  /* numbers below a plot */
    LABEL_HEIGHT = 22, /* "Time" below them */
    PANEL_GAP = 22,
    MARGIN_BOTTOM = 8,
    PEAK_COLUMN = 62, /* right of the memory curves */
    CELL_MOST = 36,
    CELL_LEAST = 8
};

double pc_figure_clamp(double value, double least, double most) {
    return fmin(fmax(value, least), most);
}

double pc_figure_length(const pc_figure *figure, double usual) {
    return usual * figure->scale;
}

static double plot_width(const pc_figure *figure) {
    return figure->width - figure->margin_left - figure->margin_right;
}

/* --- what there is --- */

static const pc_timeline_window *window_of(const pc_figure *figure) {
    return &figure->timeline->window;
}

static int device_count(const pc_figure *figure) {
    if (!window_of(figure)->has_devices) return figure->timeline->devices;
    return window_of(figure)->last_device - window_of(figure)->first_device + 1;
}

static void begin_passes(pc_figure *figure) {
    const pc_timeline *timeline = figure->timeline;
    figure->passes = (pc_figure_panel){.name = "timeline",
                                       .label = timeline->time_unit,
                                       .unit = timeline->time_unit,
                                       .unit_ps = timeline->time_unit_ps,
                                       .first_device = window_of(figure)->first_device,
                                       .devices = device_count(figure),
                                       .trace = timeline->trace,
                                       .window = window_of(figure)->has_microbatches ? window_of(figure) : NULL,
                                       .full = timeline->trace->pass_count};
}

static pc_code begin_block(pc_figure *figure, pc_error *error) {
    const pc_block *block = figure->timeline->block;
    figure->block = (pc_figure_panel){.name = "block",
                                      .heading = "Building block, and its repetitions in pale; time in cells",
                                      .unit = "cells",
                                      .unit_ps = 1,
                                      .devices = block->devices,
                                      .trace = &figure->repeated};
    pc_code code = pc_figure_repeat_block(block, &figure->repeated, &figure->block.full, error);
    if (code) return code;
    pc_figure_survey_passes(&figure->block);
    figure->has_block = figure->block.end > 0;
    figure->has_lifespans = figure->has_block && figure->timeline->explains_block;
    figure->lifespans =
        (pc_figure_panel){.name = "lifespans",
                          .heading = "Lifespans in cells: from the start of F to the end of W, a bar for "
                                     "each chunk",
                          .end = figure->block.end,
                          .devices = block->devices};
    return figure->has_lifespans ? pc_figure_find_stable(figure->timeline, &figure->stable, error) : PC_OK;
}

static pc_figure_levels find_levels(const pc_timeline *timeline) {
    const pc_replay_trace *trace = timeline->trace;
    const pc_engine_trace *engine = timeline->engine;
    if (!engine || engine->memory_count == 0)
        return (pc_figure_levels){
            trace->level_count, trace->level_device, trace->level_time_ps, trace->level_bytes, {NULL}};
    return (pc_figure_levels){engine->memory_count,
                              engine->memory_device,
                              engine->memory_time_ps,
                              engine->memory_bytes,
                              {engine->devices ? engine->memory_capacity_bytes : NULL}};
}

static void begin_memory(pc_figure *figure) {
    const pc_timeline *timeline = figure->timeline;
    figure->levels = find_levels(timeline);
    figure->has_memory = timeline->memory && figure->levels.count > 0;
    figure->memory =
        (pc_figure_panel){.name = "memory",
                          .heading = timeline->memory_heading ? timeline->memory_heading : "Activation memory",
                          .label = timeline->time_unit,
                          .unit_ps = timeline->time_unit_ps,
                          .first_device = window_of(figure)->first_device,
                          .devices = device_count(figure),
                          .trace = timeline->trace};
}

/* From here on there is nothing but what the window has. */
static pc_code look_through_window(pc_figure *figure, pc_error *error) {
    pc_time from, to;
    pc_code code = pc_figure_window_times(figure->timeline, &from, &to, error);
    if (!code) code = pc_figure_cut(figure->timeline, &figure->levels, from, to, &figure->cut, error);
    if (code) return code;
    figure->passes.trace = figure->memory.trace = &figure->cut;
    figure->passes.full = figure->cut.pass_count;
    figure->passes.begin = (double)from / figure->passes.unit_ps;
    figure->passes.end = (double)to / figure->passes.unit_ps;
    figure->levels.count = figure->cut.level_count;
    figure->levels.device = figure->cut.level_device;
    figure->levels.time_ps = figure->cut.level_time_ps;
    figure->levels.bytes = figure->cut.level_bytes;
    return PC_OK;
}

/* --- widths --- */

static void choose_width(pc_figure *figure, double pixels_wanted) {
    double right = figure->has_memory ? PEAK_COLUMN : PC_FIGURE_MARGIN_RIGHT;
    double width = ceil((figure->passes.end - figure->passes.begin) * pixels_wanted + PC_FIGURE_MARGIN_LEFT + right);
    figure->width = pc_figure_clamp(width, PC_FIGURE_WIDTH_USUAL, PC_FIGURE_WIDTH_MAX);
    figure->scale = fmax(1, figure->width / WIDTH_SCREEN);
    figure->margin_left = round(pc_figure_length(figure, PC_FIGURE_MARGIN_LEFT));
    figure->margin_right = round(pc_figure_length(figure, right));
}

/* The memory's time axis is the timeline's. */
static void choose_time_axis(pc_figure *figure) {
    figure->passes.pixels_per_unit = plot_width(figure) / (figure->passes.end - figure->passes.begin);
    figure->passes.right = figure->width - figure->margin_right;
    figure->memory.begin = figure->passes.begin;
    figure->memory.end = figure->passes.end;
    figure->memory.pixels_per_unit = figure->passes.pixels_per_unit;
    figure->memory.right = figure->passes.right;
}

/* In whole pixels a cell where there is room, and no wider than a picture of usual width: beside a long timeline, the
 * block need not be long. */
static void choose_cell_axis(pc_figure *figure) {
    double usual = PC_FIGURE_WIDTH_USUAL - PC_FIGURE_MARGIN_LEFT - PEAK_COLUMN;
    double cell = pc_figure_clamp(usual / figure->block.end, CELL_LEAST, CELL_MOST);
    cell = fmax(1, floor(pc_figure_length(figure, cell)));
    figure->block.pixels_per_unit = fmin(cell, plot_width(figure) / figure->block.end);
    figure->block.right = figure->margin_left + figure->block.end * figure->block.pixels_per_unit;
    figure->lifespans.pixels_per_unit = figure->block.pixels_per_unit;
    figure->lifespans.right = figure->block.right;
}

/* --- heights --- */

/* As much of `together` as falls to each row, within limits; but all rows must fit into a picture. */
static double row_height(const pc_figure *figure, double together, double least, double most) {
    int devices = device_count(figure);
    double height = pc_figure_length(figure, pc_figure_clamp(together / devices, least, most));
    height = fmin(height, (double)PC_FIGURE_PLOT_HEIGHT_MAX / devices);
    return height < 1 ? height : floor(height);
}

static void choose_rows(pc_figure *figure) {
    figure->block.row = row_height(figure, 260, 9, 30);
    figure->lifespans.row = figure->block.row;
    figure->passes.row = row_height(figure, 420, 20, 44);
    figure->memory.row = row_height(figure, 256, 32, 56);
}

/* Puts a panel at y, with so much above its plot; returns where the next may begin. */
static double place(const pc_figure *figure, pc_figure_panel *panel, double y, double above) {
    double below = panel->label ? TICS_HEIGHT + LABEL_HEIGHT : TICS_HEIGHT;
    if (panel->heading) above += HEADING_BELOW;
    panel->heading_y = y;
    panel->top = round(y + pc_figure_length(figure, above));
    return panel->top + panel->row * panel->devices + pc_figure_length(figure, below);
}

static void place_panels(pc_figure *figure) {
    bool has_subtitle = figure->timeline->subtitle && *figure->timeline->subtitle;
    double gap = pc_figure_length(figure, PANEL_GAP);
    figure->legend_y = pc_figure_length(figure, has_subtitle ? LEGEND_Y_SUBTITLE : LEGEND_Y);
    double y = figure->legend_y + pc_figure_length(figure, LEGEND_BELOW);
    if (figure->has_block || figure->has_memory) figure->passes.heading = "Timeline";
    if (figure->passes.window) figure->passes.heading = pc_figure_window_heading(figure);
    if (figure->stable.interval > 0) figure->passes.heading = pc_figure_stable_heading(figure);
    if (figure->has_memory) figure->passes.label = NULL; /* it stands below the memory */
    if (figure->has_block) y = place(figure, &figure->block, y, MARK_HEIGHT) + gap;
    if (figure->has_lifespans) y = place(figure, &figure->lifespans, y, 0) + gap;
    y = place(figure, &figure->passes, y, figure->stable.interval > 0 ? MARK_HEIGHT : 0);
    if (figure->has_memory) y = place(figure, &figure->memory, y + gap, SECOND_LINE);
    figure->height = ceil(y + pc_figure_length(figure, MARGIN_BOTTOM));
}

pc_code pc_figure_lay_out(pc_figure *figure, pc_error *error) {
    begin_passes(figure);
    begin_memory(figure);
    bool has_window = pc_figure_has_window(figure->timeline);
    pc_code code = figure->timeline->block && !has_window ? begin_block(figure, error) : PC_OK;
    if (!code && has_window) code = look_through_window(figure, error);
    if (code) return code;
    double end = figure->passes.end, pixels_wanted = pc_figure_survey_passes(&figure->passes);
    if (has_window) figure->passes.end = end;
    if (figure->passes.end <= 0) return PC_OK;
    choose_width(figure, pixels_wanted);
    choose_rows(figure);
    choose_time_axis(figure);
    pc_figure_choose_fonts(figure, &figure->passes);
    if (figure->has_block) {
        choose_cell_axis(figure);
        pc_figure_choose_fonts(figure, &figure->block);
    }
    place_panels(figure);
    return PC_OK;
}
