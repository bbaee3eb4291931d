#include "results/figures/plan_figures.h"

#include "engine/alloc.h"
#include "results/figures/figure.h"
#include "results/figures/gnuplot.h"
#include "results/figures/picture.h"
#include "results/figures/style.h"
#include "storage/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIDES_MOST = 256, TEXT_SIZE = 64, REASONS_MOST = 9, CELL_WIDTH = 86, CELL_HEIGHT = 34 };
enum { MARGIN_LEFT = 110, MARGIN_RIGHT = 40, MARGIN_TOP = 96, LINE_HEIGHT = 20, WIDTH_LEAST = 760 };

bool pc_plan_row_is_of(const pc_run_row *row, const char *part) {
    size_t length = strlen(part);
    return strncmp(row->name, part, length) == 0 && (row->name[length] == '.' || row->name[length] == '-');
}

/* ---- the cells ---- */

typedef struct map_cell {
    int place[2]; /* across and down */
    const pc_run_row *row;
    int reason; /* -1: it has a plan */
} map_cell;

typedef struct map {
    char axis[2][TEXT_SIZE];
    char (*value[2])[TEXT_SIZE]; /* SIDES_MOST of each */
    int size[2];
    map_cell *cells;
    int64_t count;
    const char *reason[REASONS_MOST]; /* what cells say, the last one for all others */
    int reasons;
    double least, most;
} map;

/* "map.tp=8,pp=4" as axes and values; false if it is none. */
static bool read_name(const char *name, char axis[2][TEXT_SIZE], char value[2][TEXT_SIZE]) {
    return sscanf(name, "map.%63[^=]=%63[^,],%63[^=]=%63[^\n]", axis[0], value[0], axis[1], value[1]) == 4;
}

static int find_value(map *of, int side, const char *value) {
    for (int i = 0; i < of->size[side]; i++)
        if (strcmp(of->value[side][i], value) == 0) return i;
    if (of->size[side] == SIDES_MOST) return -1;
    snprintf(of->value[side][of->size[side]], TEXT_SIZE, "%s", value);
    return of->size[side]++;
}

/* Of sizes and names that stand in reasons the first words tell them apart. */
static bool are_alike(const char *a, const char *b) {
    size_t length = strcspn(a, "(0123456789");
    return length > 0 && strncmp(a, b, length) == 0;
}

static const char *words_of(const pc_run_row *row) {
    return row->status == PC_RUN_OUT_OF_MEMORY ? "over memory" : row->message;
}

static int find_reason(map *of, const pc_run_row *row) {
    const char *words = words_of(row);
    for (int i = 0; i < of->reasons; i++)
        if (strcmp(of->reason[i], words) == 0 || are_alike(of->reason[i], words)) return i;
    if (of->reasons == REASONS_MOST) return REASONS_MOST - 1;
    of->reason[of->reasons] = of->reasons == REASONS_MOST - 1 ? "another reason" : words;
    return of->reasons++;
}

static void add_cell(map *of, const pc_run_row *row) {
    char axis[2][TEXT_SIZE], value[2][TEXT_SIZE];
    if (!read_name(row->name, axis, value)) return;
    if (of->count == 0) memcpy(of->axis, axis, sizeof axis);
    map_cell *cell = &of->cells[of->count];
    *cell = (map_cell){{find_value(of, 0, value[0]), find_value(of, 1, value[1])}, row, -1};
    if (cell->place[0] < 0 || cell->place[1] < 0) return;
    of->count++;
    if (row->status == PC_RUN_OK) {
        of->least = fmin(of->least, row->tokens_per_s_per_gpu);
        of->most = fmax(of->most, row->tokens_per_s_per_gpu);
    } else {
        cell->reason = find_reason(of, row);
    }
}

static void free_map(map *of) {
    for (int i = 0; i < 2; i++) pc_free(of->value[i]);
    pc_free(of->cells);
}

static pc_code collect(const pc_run_row *rows, int64_t count, map *of, pc_error *error) {
    *of = (map){.least = INFINITY};
    for (int i = 0; i < 2; i++) of->value[i] = pc_alloc(SIDES_MOST, sizeof *of->value[i]);
    of->cells = pc_alloc((size_t)count + 1, sizeof *of->cells);
    if (!of->value[0] || !of->value[1] || !of->cells) return pc_error_no_memory(error);
    for (int64_t i = 0; i < count; i++)
        if (pc_plan_row_is_of(&rows[i], "map")) add_cell(of, &rows[i]);
    if (of->count > 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "no map; expected the results of `pipecast plan --map AXIS,AXIS -o`");
}

/* ---- the picture ---- */

/* From a pale to a dark blue, which prints in grey, too. */
static unsigned colour_of(double share) {
    static const int pale[3] = {0xde, 0xeb, 0xf7}, dark[3] = {0x08, 0x45, 0x94};
    unsigned colour = 0;
    for (int i = 0; i < 3; i++) colour = colour << 8 | (unsigned)lround(pale[i] + share * (dark[i] - pale[i]));
    return colour;
}

static double share_of(const map *of, const pc_run_row *row) {
    return of->most > of->least ? (row->tokens_per_s_per_gpu - of->least) / (of->most - of->least) : 1.0;
}

static void add_box(pc_text *script, int across, int down, unsigned colour) {
    pc_text_printf(script,
                   "set object rectangle from %d,%d to %d,%d fillstyle solid 1 border rgb '#ffffff' fillcolor rgb "
                   "0x%06x\n",
                   across, down, across + 1, down + 1, colour);
}

static void add_words(pc_text *script, const char *words, int across, int down, unsigned colour) {
    pc_text_printf(script, "set label ");
    pc_gnuplot_add_string(script, words, 12);
    pc_text_printf(script, " at %g,%g center noenhanced front textcolor rgb 0x%06x\n", across + 0.5, down + 0.5,
                   colour);
}

static void add_cell_box(const map *of, const map_cell *cell, pc_text *script) {
    char words[32];
    bool has_plan = cell->reason < 0;
    double share = has_plan ? share_of(of, cell->row) : 0.0, rate = cell->row->tokens_per_s_per_gpu;
    if (has_plan)
        snprintf(words, sizeof words, "%.*f", of->most >= 1000 ? 0 : of->most >= 100 ? 1 : 2, rate);
    else
        snprintf(words, sizeof words, "%c", 'a' + cell->reason);
    add_box(script, cell->place[0], cell->place[1], has_plan ? colour_of(share) : 0xd9d9d9);
    add_words(script, words, cell->place[0], cell->place[1], has_plan && share > 0.5 ? 0xffffff : 0x222222);
}

static void add_tics(const map *of, int side, const char *axis, pc_text *script) {
    pc_text_printf(script, "set %stics (", axis);
    for (int i = 0; i < of->size[side]; i++) {
        if (i > 0) pc_text_printf(script, ", ");
        pc_gnuplot_add_string(script, of->value[side][i], 20);
        pc_text_printf(script, " %g", i + 0.5);
    }
    pc_text_printf(script, ") scale 0 nomirror noenhanced textcolor rgb '" PC_STYLE_INK "'\n");
}

static void add_legend(const map *of, const pc_picture_page *page, double top) {
    char line[320];
    for (int i = 0; i < of->reasons; i++) {
        const char *points = strstr(of->reason[i], " ("); /* how many of one cell, which others share the words of */
        snprintf(line, sizeof line, "%c: %.*s", 'a' + i,
                 points ? (int)(points - of->reason[i]) : (int)strlen(of->reason[i]), of->reason[i]);
        pc_picture_add_text(page, line, MARGIN_LEFT, top + i * LINE_HEIGHT, PC_STYLE_TEXT_FONT, false);
    }
}

static void add_heading(const map *of, const pc_picture_page *page) {
    const pc_run_row *row = of->cells[0].row;
    char line[4 * PC_LABEL_SIZE];
    snprintf(line, sizeof line, "Best plan by %s and %s: %s on %s", of->axis[0], of->axis[1], row->model, row->machine);
    pc_picture_add_text(page, line, 20, 24, PC_STYLE_TITLE_FONT, true);
    pc_picture_add_text(page, "Tokens a second and GPU; grey: no plan", 20, 50, PC_STYLE_TEXT_FONT, false);
}

static void add_script(const void *plans, const char *path, pc_text *script) {
    const map *of = plans;
    double high = of->size[1] * CELL_HEIGHT, legend = of->reasons > 0 ? (of->reasons + 1) * LINE_HEIGHT : 0;
    double wide = of->size[0] * CELL_WIDTH, width = fmax(wide + MARGIN_LEFT + MARGIN_RIGHT, WIDTH_LEAST);
    double height = MARGIN_TOP + high + 56 + legend;
    pc_picture_begin(script, path, width, height);
    pc_picture_page page = {.script = script, .path = path, .width = width, .height = height, .margin = 10};
    add_heading(of, &page);
    add_legend(of, &page, MARGIN_TOP + high + 66);
    pc_text_printf(script, "set lmargin at screen %.6f\nset rmargin at screen %.6f\n", MARGIN_LEFT / width,
                   (MARGIN_LEFT + wide) / width);
    pc_text_printf(script, "set tmargin at screen %.6f\nset bmargin at screen %.6f\n", 1 - MARGIN_TOP / height,
                   1 - (MARGIN_TOP + high) / height);
    pc_text_printf(script, "unset key\nset border 0\nset xrange [0:%d]\nset yrange [%d:0]\n", of->size[0], of->size[1]);
    add_tics(of, 0, "x", script);
    add_tics(of, 1, "y", script);
    pc_text_printf(script, "set xlabel ");
    pc_gnuplot_add_string(script, of->axis[0], TEXT_SIZE);
    pc_text_printf(script, " noenhanced textcolor rgb '" PC_STYLE_INK "'\nset ylabel ");
    pc_gnuplot_add_string(script, of->axis[1], TEXT_SIZE);
    pc_text_printf(script, " noenhanced textcolor rgb '" PC_STYLE_INK "'\n");
    for (int64_t i = 0; i < of->count; i++) add_cell_box(of, &of->cells[i], script);
    pc_text_printf(script, "plot NaN notitle\n");
}

pc_code pc_figure_plan_map(const pc_run_row *rows, int64_t count, bool is_dark, const char *path, pc_error *error) {
    map of;
    pc_code code = pc_figure_check_path(path, error);
    if (code) return code;
    code = collect(rows, count, &of, error);
    if (!code) code = pc_picture_make(add_script, &of, is_dark, path, error);
    free_map(&of);
    return code;
}
