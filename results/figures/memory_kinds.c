#include "results/figures/memory_kinds.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "results/figures/figure.h"
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

enum { CAPACITY_COLOUR = 0xC00000 };
static const char capacity_name[] = "capacity";

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
    pc_picture_page page;
    bool is_drawn[PC_DEVICES_MAX], has_kind[PC_MEMORY_KINDS];
    int panels, legend_lines;
    bool shows_capacity; /* in one panel at least */
    double most_gib;     /* up to which all panels go, that stages can be compared */
    column *columns;     /* [COLUMNS] of the panel at work */
    double end_ps;
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

static double in_gib(int64_t bytes) {
    return (double)bytes / PC_BYTES_PER_GIB;
}

/* A capacity of more than twice what is used at most would leave the pictures flat. */
static void choose_scale(picture *canvas) {
    const pc_trace_record *record = canvas->figure->record;
    double peak = 0, most = 0;
    for (int d = 0; d < record->devices; d++)
        if (canvas->is_drawn[d]) peak = fmax(peak, in_gib(record->memory[d].peak_bytes));
    for (int d = 0; d < record->devices; d++) {
        double capacity = in_gib(record->memory[d].capacity_bytes);
        if (!canvas->is_drawn[d] || !(capacity > 0) || capacity >= 2 * peak) continue;
        canvas->shows_capacity = true;
        most = fmax(most, capacity);
    }
    canvas->most_gib = fmax(fmax(most, peak) * HEADROOM, 1e-9);
}

/* --- texts --- */

static double entry_width(const char *name) {
    double letters = (double)strlen(name) * PC_STYLE_LETTER_WIDTH * PC_STYLE_TEXT_FONT;
    return SWATCH + SWATCH_GAP + letters + ENTRY_GAP;
}

/* Where the next entry of a legend stands. */
typedef struct legend {
    double x;
    int line;
    bool draws;
} legend;

static void add_entry(const picture *canvas, const char *name, uint32_t colour, legend *at) {
    if (at->x + entry_width(name) > LEFT + COLUMNS) {
        at->x = LEFT;
        at->line++;
    }
    double y = LEGEND_Y + LEGEND_LINE * at->line;
    if (at->draws) pc_picture_add_swatch(&canvas->page, at->x, y, SWATCH, colour);
    if (at->draws) pc_picture_add_text(&canvas->page, name, at->x + SWATCH + SWATCH_GAP, y, PC_STYLE_TEXT_FONT, false);
    at->x += entry_width(name);
}

/* In as many lines as it takes, which it returns; adds them only if `draws`. */
static int add_legend(const picture *canvas, bool draws) {
    legend at = {LEFT, 0, draws};
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++)
        if (canvas->has_kind[kind]) add_entry(canvas, pc_memory_kind_names[kind], colours[kind], &at);
    if (canvas->shows_capacity) add_entry(canvas, capacity_name, CAPACITY_COLOUR, &at);
    return at.line + 1;
}

/* --- panels --- */

static double top_of(const picture *canvas, int panel) {
    return LEGEND_Y + LEGEND_LINE * canvas->legend_lines + HEADING + panel * (HEADING + PLOT + TICKS);
}

static void add_axes(const picture *canvas, int panel, int device) {
    const pc_device_memory *memory = &canvas->figure->record->memory[device];
    double capacity = in_gib(memory->capacity_bytes), peak = in_gib(memory->peak_bytes), top = top_of(canvas, panel);
    char heading[96];
    pc_write_message(heading, sizeof heading, "Stage %d: at most %.4g GiB of %.4g", device, peak, capacity);
    pc_picture_add_text(&canvas->page, heading, LEFT, top - HEADING / 2.0, PC_STYLE_HEADING_FONT, true);
    pc_text_printf(canvas->page.script,
                   "set lmargin at screen %.6f\nset rmargin at screen %.6f\n"
                   "set tmargin at screen %.6f\nset bmargin at screen %.6f\n"
                   "set xrange [0:%.9g]\nset yrange [0:%.9g]\nset ylabel 'GiB' noenhanced textcolor rgb '" PC_STYLE_INK
                   "'\n",
                   LEFT / canvas->page.width, (LEFT + COLUMNS) / canvas->page.width, 1 - top / canvas->page.height,
                   1 - (top + PLOT) / canvas->page.height, canvas->end_ps / PS_PER_MS, canvas->most_gib);
    if (panel == canvas->panels - 1)
        pc_text_printf(canvas->page.script, "set xlabel 'Time [ms]' noenhanced textcolor rgb '" PC_STYLE_INK "'\n");
}

static double stacked_gib(const column bytes, int kind) {
    double sum = 0;
    for (int below = 0; below <= kind; below++) sum += (double)bytes[below];
    return sum / PC_BYTES_PER_GIB;
}

/* A kind with all that is below it, as steps: it is drawn before them. */
static void add_curve(const picture *canvas, int panel, int kind) {
    double unit = canvas->end_ps / PS_PER_MS / COLUMNS;
    pc_text_printf(canvas->page.script, "$kind_%d_%d << EOD\n", panel, kind);
    for (int i = 0, end; i < COLUMNS; i = end) {
        double level = stacked_gib(canvas->columns[i], kind);
        for (end = i + 1; end < COLUMNS && !(stacked_gib(canvas->columns[end], kind) < level) &&
                          !(stacked_gib(canvas->columns[end], kind) > level);)
            end++;
        pc_text_printf(canvas->page.script, "%.9g %.9g\n%.9g %.9g\n", i * unit, level, end * unit, level);
    }
    pc_text_printf(canvas->page.script, "EOD\n");
}

static void add_panel(picture *canvas, int panel, int device) {
    double capacity = in_gib(canvas->figure->record->memory[device].capacity_bytes);
    fill_columns(canvas, device);
    add_axes(canvas, panel, device);
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++)
        if (canvas->has_kind[kind]) add_curve(canvas, panel, kind);
    pc_text_printf(canvas->page.script, "plot ");
    for (int kind = PC_MEMORY_KINDS - 1; kind >= 0; kind--)
        if (canvas->has_kind[kind])
            pc_text_printf(canvas->page.script,
                           "$kind_%d_%d using 1:2 with filledcurves y=0 fillstyle solid 1 noborder fillcolor rgb "
                           "0x%06" PRIx32 ", ",
                           panel, kind, colours[kind]);
    pc_text_printf(canvas->page.script, "%.9g with lines linewidth 1.5 linecolor rgb 0x%06x\n", capacity,
                   (unsigned)CAPACITY_COLOUR);
    pc_text_printf(canvas->page.script, "unset label\nunset object\n");
}

static void add_script(picture *canvas) {
    const pc_trace_record *record = canvas->figure->record;
    choose_stages(canvas);
    choose_scale(canvas);
    canvas->end_ps = fmax((double)record->replay.makespan_ps, 1);
    canvas->legend_lines = add_legend(canvas, false);
    canvas->page.width = LEFT + COLUMNS + MARGIN;
    canvas->page.height = top_of(canvas, canvas->panels) - HEADING + BOTTOM;
    pc_picture_begin(canvas->page.script, canvas->page.path, canvas->page.width, canvas->page.height);
    pc_text_printf(canvas->page.script, "set multiplot\nunset key\nset border 3 linecolor rgb '" PC_STYLE_AXIS "'\n"
                                        "set tics nomirror out scale 0.5 textcolor rgb '" PC_STYLE_QUIET "'\n");
    pc_picture_add_text(&canvas->page, canvas->figure->title, MARGIN, TITLE_Y, PC_STYLE_TITLE_FONT, true);
    if (canvas->figure->subtitle)
        pc_picture_add_text(&canvas->page, canvas->figure->subtitle, MARGIN, SUBTITLE_Y, PC_STYLE_HEADING_FONT, false);
    add_legend(canvas, true);
    for (int d = 0, panel = 0; d < record->devices; d++)
        if (canvas->is_drawn[d]) add_panel(canvas, panel++, d);
    pc_text_printf(canvas->page.script, "unset multiplot\n");
}

static pc_code make_script(const pc_memory_kinds_figure *figure, const char *path, pc_text *script, pc_error *error) {
    pc_number_scope scope = {0};
    picture canvas = {.figure = figure, .page = {.path = path, .script = script, .margin = MARGIN}};
    if (!pc_memory_curve_is_known(figure->record)) return pc_error_set(error, PC_ERROR_INPUT, PC_MEMORY_CURVE_UNKNOWN);
    canvas.columns = pc_alloc(COLUMNS, sizeof *canvas.columns);
    if (!canvas.columns || !pc_number_scope_enter(&scope)) {
        pc_free(canvas.columns);
        return pc_error_no_memory(error);
    }
    add_script(&canvas);
    pc_number_scope_leave(&scope);
    pc_free(canvas.columns);
    return PC_OK;
}

pc_code pc_figure_memory_kinds(const pc_memory_kinds_figure *figure, const char *path, pc_error *error) {
    pc_text script = {0};
    pc_code code = pc_figure_check_path(path, error);
    if (!code) code = make_script(figure, path, &script, error);
    if (!code) code = pc_picture_draw(&script, figure->is_dark, NULL, path, error);
    pc_text_free(&script);
    return code;
}
