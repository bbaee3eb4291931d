/* Where a schedule does the same again and again: between its warm-up and its cool-down. */
#include "engine/alloc.h"
#include "results/figures/figure_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { PERIODS_MAX = 4 /* of so many blocks together */ };

/* When every pass starts: [types][microbatches], a type being a device, chunk and kind; PC_TIME_NOT_GIVEN where there
 * is none. */
typedef struct starts {
    pc_time *time; /* owned */
    int64_t types, microbatches;
    pc_time end; /* of the iteration */
} starts;

static pc_time at(const starts *s, int64_t type, int64_t microbatch) {
    return microbatch < 0 || microbatch >= s->microbatches ? PC_TIME_NOT_GIVEN
                                                           : s->time[type * s->microbatches + microbatch];
}

static pc_code read_starts(const pc_timeline *timeline, starts *s, pc_error *error) {
    const pc_replay_trace *trace = timeline->trace;
    *s = (starts){.types = (int64_t)timeline->devices * timeline->chunks * PC_PASS_KINDS};
    for (int64_t i = 0; i < trace->pass_count; i++)
        if (trace->pass[i].microbatch >= s->microbatches) s->microbatches = trace->pass[i].microbatch + 1;
    s->time = pc_alloc((size_t)(s->types * s->microbatches), sizeof *s->time);
    if (!s->time) return pc_error_no_memory(error);
    for (int64_t i = 0; i < s->types * s->microbatches; i++) s->time[i] = PC_TIME_NOT_GIVEN;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        const pc_pass *pass = &trace->pass[i];
        int64_t type = ((int64_t)trace->pass_device[i] * timeline->chunks + pass->chunk) * PC_PASS_KINDS + pass->kind;
        s->time[type * s->microbatches + pass->microbatch] = trace->pass_start_ps[i];
        if (trace->pass_end_ps[i] > s->end) s->end = trace->pass_end_ps[i];
    }
    return PC_OK;
}

/* Narrows the phase, which holds `middle`, so that what happens at `time` and does not happen again stands outside. */
static void exclude(pc_time time, pc_time middle, pc_figure_phase *phase) {
    if (time < middle && time >= phase->begin) phase->begin = time + 1;
    if (time >= middle && time + phase->interval < phase->end) phase->end = time + phase->interval;
}

/* A pass whose like stands `step` microbatches later, an interval later, in both directions of time. Times are rounded
 * to picoseconds, pass by pass. */
static void look_at(const starts *s, int64_t type, int64_t i, int step, pc_time middle, pc_figure_phase *phase) {
    pc_time start = at(s, type, i), next = at(s, type, i + step), before = at(s, type, i - step);
    pc_time slack = phase->interval / 1000000 + 2;
    if (start == PC_TIME_NOT_GIVEN) return;
    bool goes_on = next != PC_TIME_NOT_GIVEN && llabs(next - start - phase->interval) <= slack;
    bool has_come = before != PC_TIME_NOT_GIVEN && llabs(start - before - phase->interval) <= slack;
    if (!goes_on) exclude(start, middle, phase);
    if (!has_come) exclude(start - phase->interval, middle, phase);
}

/* The phase begins with a pass. */
static pc_time first_start(const starts *s, pc_time begin) {
    pc_time first = s->end;
    for (int64_t i = 0; i < s->types * s->microbatches; i++)
        if (s->time[i] >= begin && s->time[i] < first) first = s->time[i];
    return first;
}

/* Around the interval that begins with the middle microbatch of the first type. */
static pc_figure_phase find_around(const starts *s, int64_t type, int step) {
    int64_t i = (s->microbatches - step) / 2 / step * step;
    pc_time middle = at(s, type, i), next = at(s, type, i + step);
    if (middle == PC_TIME_NOT_GIVEN || next == PC_TIME_NOT_GIVEN || next <= middle) return (pc_figure_phase){0};
    pc_figure_phase phase = {0, s->end, next - middle};
    for (int64_t t = 0; t < s->types; t++)
        for (int64_t k = 0; k < s->microbatches; k++) look_at(s, t, k, step, middle, &phase);
    phase.begin = first_start(s, phase.begin);
    return phase.end - phase.begin >= 2 * phase.interval ? phase : (pc_figure_phase){0};
}

pc_code pc_figure_find_stable(const pc_timeline *timeline, pc_figure_phase *phase, pc_error *error) {
    starts s;
    pc_code code = read_starts(timeline, &s, error);
    if (code) return code;
    *phase = (pc_figure_phase){0};
    for (int periods = 1; periods <= PERIODS_MAX && phase->interval == 0; periods++)
        *phase = find_around(&s, PC_PASS_F, periods * timeline->block->microbatches);
    pc_free(s.time);
    return PC_OK;
}

/* --- as a shade --- */

const char *pc_figure_stable_heading(pc_figure *figure) {
    const pc_figure_panel *panel = &figure->passes;
    snprintf(figure->timeline_heading, sizeof figure->timeline_heading,
             "Timeline; shaded: the stable phase, which repeats itself every %.6g%s%.16s",
             (double)figure->stable.interval / panel->unit_ps, *panel->unit ? " " : "", panel->unit);
    return figure->timeline_heading;
}

enum { MARK_ABOVE = 9, MARK_TICK = 5 };

void pc_figure_add_stable(const pc_figure *figure, pc_text *script) {
    const pc_figure_panel *panel = &figure->passes;
    const pc_figure_phase *phase = &figure->stable;
    double begin = (double)phase->begin / panel->unit_ps, end = (double)phase->end / panel->unit_ps;
    double left = figure->margin_left + begin * panel->pixels_per_unit;
    double right = figure->margin_left + end * panel->pixels_per_unit;
    double above = panel->top - pc_figure_length(figure, MARK_ABOVE), y = pc_figure_screen_y(figure, above);
    pc_text_printf(script,
                   "set object rectangle from screen %.6f,%.6f to screen %.6f,%.6f behind fillstyle solid 1 noborder "
                   "fillcolor rgb '#cfe8cf'\n",
                   pc_figure_screen_x(figure, left), y, pc_figure_screen_x(figure, right),
                   pc_figure_screen_y(figure, panel->top + panel->row * panel->devices));
    pc_text_printf(script,
                   "set arrow from screen %.6f,%.6f to screen %.6f,%.6f heads size screen %.6f,90 linewidth 1.5 "
                   "linecolor rgb '#222222'\n",
                   pc_figure_screen_x(figure, left), y, pc_figure_screen_x(figure, right), y,
                   pc_figure_screen_x(figure, pc_figure_length(figure, MARK_TICK)));
}
