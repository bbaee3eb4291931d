#include "results/figures/memory_kinds.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "results/figures/figure.h"
#include "results/figures/gnuplot.h"
#include "results/figures/picture.h"
#include "results/figures/style.h"
#include "results/memory_curve.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* In pixels. */
enum {
    COLUMNS = 900,
    MARGIN = 20,
    LEFT = 80,
    TITLE_Y = 28,
    SUBTITLE_Y = 51,
    LEGEND_Y = 76,
    LEGEND_LINE = 20,
    SWATCH = 14,
    SWATCH_GAP = 6,
    ENTRY_GAP = 20,
    HEADING = 34, /* above a plot */
    PLOT = 170,
    TICKS = 28,
    BOTTOM = 26
};

#define PS_PER_MS 1e9
#define HEADROOM  1.05

/* Families of colours: state blue, activations warm, buffers grey to green. */
static const uint32_t colours[PC_MEMORY_KINDS] = {[PC_MEMORY_PARAMETERS] = PC_STYLE_BLUE,
                                                  [PC_MEMORY_GRADIENTS] = PC_STYLE_SKY,
                                                  [PC_MEMORY_OPTIMIZER] = 0x9AC7E8,
                                                  [PC_MEMORY_ATTENTION] = PC_STYLE_VERMILION,
                                                  [PC_MEMORY_MLP] = PC_STYLE_ORANGE,
                                                  [PC_MEMORY_NORMS] = PC_STYLE_YELLOW,
                                                  [PC_MEMORY_EMBEDDING] = 0xF4E3A1,
                                                  [PC_MEMORY_HEAD] = PC_STYLE_PURPLE,
                                                  [PC_MEMORY_OFFLOADED] = 0xF2C9DF,
                                                  [PC_MEMORY_BOUNDARY] = PC_STYLE_GREEN,
                                                  [PC_MEMORY_GATHERED] = 0x66C2A5,
                                                  [PC_MEMORY_CONTEXT] = 0xA6DBC8,
                                                  [PC_MEMORY_SEQUENCE] = 0xD9F0E6,
                                                  [PC_MEMORY_RECOMPUTATION] = 0x777777,
                                                  [PC_MEMORY_LOSS] = 0xAAAAAA,
                                                  [PC_MEMORY_COPIES] = 0x444444,
                                                  [PC_MEMORY_STEP] = 0xCCCCCC,
                                                  [PC_MEMORY_WORKSPACE] = 0xE5E5E5};

typedef int64_t column[PC_MEMORY_KINDS];

typedef struct picture {
    const pc_memory_kinds_figure *figure;
    const char *path;
    pc_text *script;
    bool is_drawn[PC_DEVICES_MAX], has_kind[PC_MEMORY_KINDS];
    int panels, legend_lines;
    column *columns; /* [COLUMNS] of the panel at work */
    double width, height, end_ps;
} picture;

/* --- what is drawn --- */

/* The stages that are fullest, the first of equals. */
static void choose_stages(picture *canvas) {
    const pc_trace_record *record = canvas->figure->record;
    for (canvas->panels = 0; canvas->panels < canvas->figure->most && canvas->panels < record->devices;
         canvas->panels++) {
        int most = -1;
        for (int d = 0; d < record->devices; d++) {
            if (canvas->is_drawn[d]) continue;
            if (most < 0 || record->memory[d].peak_bytes > record->memory[most].peak_bytes) most = d;
        }
        if (most < 0) return;
        canvas->is_drawn[most] = true;
        for (int kind = 0; kind < PC_MEMORY_KINDS; kind++)
            canvas->has_kind[kind] = canvas->has_kind[kind] || record->memory[most].kinds[kind] > 0;
    }
}

static int column_of(const picture *canvas, pc_time time) {
    double at = (double)time / canvas->end_ps * COLUMNS;
    return at < COLUMNS ? (int)at : COLUMNS - 1;
}

static void put_if_fuller(column found, const column bytes) {
    if (pc_memory_curve_sum(bytes) > pc_memory_curve_sum(found)) memcpy(found, bytes, sizeof(column));
}

/* Of each column the fullest moment, that at which it begins among them. */
static void fill_columns(picture *canvas, int device) {
    const pc_trace_record *record = canvas->figure->record;
    const pc_replay_trace *trace = &record->replay.trace;
    column level;
    int at = 0;
    pc_memory_curve_fixed(record, device, level);
    memcpy(canvas->columns[0], level, sizeof level);
    for (int64_t row = 0; row < trace->level_count; row++) {
        if (trace->level_device[row] != device) continue;
        for (int next = column_of(canvas, trace->level_time_ps[row]); at < next;)
            memcpy(canvas->columns[++at], level, sizeof level);
        pc_memory_curve_at(record, row, level);
        put_if_fuller(canvas->columns[at], level);
    }
    while (at + 1 < COLUMNS) memcpy(canvas->columns[++at], level, sizeof level);
}

/* --- texts --- */

static void add_place(const picture *canvas, double at_x, double at_y) {
    pc_text_printf(canvas->script, "screen %.6f,%.6f", at_x / canvas->width, 1 - at_y / canvas->height);
}

static void add_text(const picture *canvas, const char *text, double at_x, double at_y, int font, bool is_bold) {
    double room = canvas->width - at_x - MARGIN;
    pc_text_printf(canvas->script, "set label ");
    pc_gnuplot_add_string(canvas->script, text, (size_t)fmax(room / (PC_STYLE_LETTER_WIDTH * font), 1));
    pc_text_printf(canvas->script, " at ");
    add_place(canvas, at_x, at_y);
    pc_text_printf(canvas->script, " left noenhanced textcolor rgb '" PC_STYLE_INK "' ");
    pc_picture_add_font(canvas->script, canvas->path, font, is_bold);
    pc_text_printf(canvas->script, "\n");
}

static double entry_width(int kind) {
    double letters = (double)strlen(pc_memory_kind_names[kind]) * PC_STYLE_LETTER_WIDTH * PC_STYLE_TEXT_FONT;
    return SWATCH + SWATCH_GAP + letters + ENTRY_GAP;
}

static void add_entry(const picture *canvas, int kind, double x, double y) {
    pc_text_printf(canvas->script, "set object rectangle from ");
    add_place(canvas, x, y + SWATCH / 2.0);
    pc_text_printf(canvas->script, " to ");
    add_place(canvas, x + SWATCH, y - SWATCH / 2.0);
    pc_text_printf(canvas->script, " front fillstyle solid 1 noborder fillcolor rgb '#%06" PRIx32 "'\n", colours[kind]);
    add_text(canvas, pc_memory_kind_names[kind], x + SWATCH + SWATCH_GAP, y, PC_STYLE_TEXT_FONT, false);
}

/* In as many lines as it takes, which it returns; adds them only if `draws`. */
static int add_legend(const picture *canvas, bool draws) {
    double x = LEFT;
    int line = 0;
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++) {
        if (!canvas->has_kind[kind]) continue;
        if (x + entry_width(kind) > LEFT + COLUMNS) {
            x = LEFT;
            line++;
        }
        if (draws) add_entry(canvas, kind, x, LEGEND_Y + LEGEND_LINE * line);
        x += entry_width(kind);
    }
    return line + 1;
}

/* --- panels --- */

static double top_of(const picture *canvas, int panel) {
    return LEGEND_Y + LEGEND_LINE * canvas->legend_lines + HEADING + panel * (HEADING + PLOT + TICKS);
}

static void add_axes(const picture *canvas, int panel, int device) {
    const pc_device_memory *memory = &canvas->figure->record->memory[device];
    double capacity = (double)memory->capacity_bytes / PC_BYTES_PER_GIB, top = top_of(canvas, panel);
    double peak = (double)memory->peak_bytes / PC_BYTES_PER_GIB;
    double most = capacity > 0 && capacity < 2 * peak ? fmax(capacity, peak) : peak;
    char heading[96];
    pc_write_message(heading, sizeof heading, "Stage %d: at most %.4g GiB of %.4g", device, peak, capacity);
    add_text(canvas, heading, LEFT, top - HEADING / 2.0, PC_STYLE_HEADING_FONT, true);
    pc_text_printf(canvas->script,
                   "set lmargin at screen %.6f\nset rmargin at screen %.6f\n"
                   "set tmargin at screen %.6f\nset bmargin at screen %.6f\n"
                   "set xrange [0:%.9g]\nset yrange [0:%.9g]\nset ylabel 'GiB' noenhanced\n",
                   LEFT / canvas->width, (LEFT + COLUMNS) / canvas->width, 1 - top / canvas->height,
                   1 - (top + PLOT) / canvas->height, canvas->end_ps / PS_PER_MS, fmax(most * HEADROOM, 1e-9));
    if (panel == canvas->panels - 1) pc_text_printf(canvas->script, "set xlabel 'Time [ms]' noenhanced\n");
}

static double stacked_gib(const column bytes, int kind) {
    double sum = 0;
    for (int below = 0; below <= kind; below++) sum += (double)bytes[below];
    return sum / PC_BYTES_PER_GIB;
}

/* A kind with all that is below it, as steps: it is drawn before them. */
static void add_curve(const picture *canvas, int panel, int kind) {
    double unit = canvas->end_ps / PS_PER_MS / COLUMNS;
    pc_text_printf(canvas->script, "$kind_%d_%d << EOD\n", panel, kind);
    for (int i = 0, end; i < COLUMNS; i = end) {
        double level = stacked_gib(canvas->columns[i], kind);
        for (end = i + 1; end < COLUMNS && !(stacked_gib(canvas->columns[end], kind) < level) &&
                          !(stacked_gib(canvas->columns[end], kind) > level);)
            end++;
        pc_text_printf(canvas->script, "%.9g %.9g\n%.9g %.9g\n", i * unit, level, end * unit, level);
    }
    pc_text_printf(canvas->script, "EOD\n");
}

static void add_panel(picture *canvas, int panel, int device) {
    double capacity = (double)canvas->figure->record->memory[device].capacity_bytes / PC_BYTES_PER_GIB;
    fill_columns(canvas, device);
    add_axes(canvas, panel, device);
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++)
        if (canvas->has_kind[kind]) add_curve(canvas, panel, kind);
    pc_text_printf(canvas->script, "plot ");
    for (int kind = PC_MEMORY_KINDS - 1; kind >= 0; kind--)
        if (canvas->has_kind[kind])
            pc_text_printf(canvas->script,
                           "$kind_%d_%d using 1:2 with filledcurves y=0 fillstyle solid 1 noborder fillcolor rgb "
                           "'#%06" PRIx32 "', ",
                           panel, kind, colours[kind]);
    pc_text_printf(canvas->script, "%.9g with lines linewidth 1.5 linecolor rgb '#c00000'\n", capacity);
    pc_text_printf(canvas->script, "unset label\nunset object\n");
}

static void add_script(picture *canvas) {
    const pc_trace_record *record = canvas->figure->record;
    choose_stages(canvas);
    canvas->end_ps = fmax((double)record->replay.makespan_ps, 1);
    canvas->legend_lines = add_legend(canvas, false);
    canvas->width = LEFT + COLUMNS + MARGIN;
    canvas->height = top_of(canvas, canvas->panels) - HEADING + BOTTOM;
    pc_picture_begin(canvas->script, canvas->path, canvas->width, canvas->height);
    pc_text_printf(canvas->script, "set multiplot\nunset key\nset border 3 linecolor rgb '" PC_STYLE_AXIS "'\n"
                                   "set tics nomirror out scale 0.5 textcolor rgb '" PC_STYLE_QUIET "'\n");
    add_text(canvas, canvas->figure->title, MARGIN, TITLE_Y, PC_STYLE_TITLE_FONT, true);
    if (canvas->figure->subtitle)
        add_text(canvas, canvas->figure->subtitle, MARGIN, SUBTITLE_Y, PC_STYLE_HEADING_FONT, false);
    add_legend(canvas, true);
    for (int d = 0, panel = 0; d < record->devices; d++)
        if (canvas->is_drawn[d]) add_panel(canvas, panel++, d);
    pc_text_printf(canvas->script, "unset multiplot\n");
}

static pc_code make_script(const pc_memory_kinds_figure *figure, const char *path, pc_text *script, pc_error *error) {
    pc_number_scope scope = {0};
    picture canvas = {.figure = figure, .path = path, .script = script};
    if (!pc_memory_curve_is_known(figure->record)) return pc_error_set(error, PC_ERROR_INPUT, PC_MEMORY_CURVE_UNKNOWN);
    canvas.columns = pc_alloc(COLUMNS, sizeof *canvas.columns);
    if (!canvas.columns || !pc_number_scope_enter(&scope)) {
        pc_free(canvas.columns);
        return pc_error_no_memory(error);
    }
    add_script(&canvas);
    pc_number_scope_leave(&scope);
    pc_free(canvas.columns);
    return script->failed ? pc_error_no_memory(error) : PC_OK;
}

pc_code pc_figure_memory_kinds(const pc_memory_kinds_figure *figure, const char *path, pc_error *error) {
    pc_text script = {0};
    pc_code code = pc_figure_check_path(path, error);
    if (!code) code = make_script(figure, path, &script, error);
    if (!code) code = pc_picture_draw(&script, NULL, path, error);
    pc_text_free(&script);
    return code;
}
