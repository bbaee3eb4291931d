#include "results/figures/chart_private.h"

#include "engine/character.h"
#include "engine/numbers.h"
#include "results/figures/style.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* In pixels. */
enum {
    COLUMN_GAP = 18,
    ROW_GAP = 16,
    BLOCK_GAP = 14,
    TITLE_FIRST = 28, /* the middle of the first line */
    LEGEND_LINE = 22,
    LEGEND_BELOW = 20, /* from the last line's middle to the plot, or to the heading's middle */
    HEADING_BELOW = 16,
    TICKS = 28, /* numbers below a plot; in svg they stand lower than elsewhere */
    X_LABEL = 24,
    TICK_GAP = 20, /* between the numbers left of a plot and what stands beside them */
    ENTRY_GAP = 22,
    COLUMNS_MOST = 4,
    BAR_LEAST = 8,
    BARS_WIDTH_MOST = 2400,
    NAME_LEAST = 24, /* from one name to the next, where they are turned */
    NAME_GAP = 8     /* between names of bars beside each other */
};

/* Of PC_CHART_TURN. */
#define TURN_COSINE 0.819
#define TURN_SINE   0.574

static double text_width(const char *text) {
    return (double)pc_utf8_length(text) * PC_STYLE_LETTER_WIDTH * PC_STYLE_TEXT_FONT;
}

/* --- texts in lines --- */

int pc_chart_wrap(const char *text, size_t characters, int most, char (*lines)[PC_CHART_LINE_SIZE]) {
    int count = 0;
    while (*text == ' ') text++;
    while (*text && count < most) {
        size_t length = strlen(text);
        if (count < most - 1 && pc_utf8_length(text) > characters) {
            const char *at = text, *blank = NULL;
            for (size_t i = 0; *at && i <= characters; i++) {
                if (*at == ' ') blank = at;
                pc_utf8_next(&at);
            }
            if (blank) length = (size_t)(blank - text);
        }
        snprintf(lines[count++], PC_CHART_LINE_SIZE, "%.*s", (int)length, text);
        text += length;
        while (*text == ' ') text++;
    }
    return count;
}

/* --- sizes of plots --- */

static const struct {
    double width, height;
} sizes[] = {{640, 340}, {440, 250}, {340, 205}, {272, 185}}; /* by how many columns, and rows, there are */

/* As many as fit, and all rows about as long. */
static int choose_columns(int panels) {
    int64_t rows = pc_divide_up(panels, COLUMNS_MOST);
    return (int)pc_divide_up(panels, rows);
}

static int block_count(const pc_chart_data *data, const pc_chart_layout *layout) {
    return (int)pc_divide_up(data->panels.count, layout->columns);
}

static void choose_sizes(const pc_chart_data *data, pc_chart_layout *layout) {
    layout->columns = choose_columns(data->panels.count);
    int rows = data->chart->y_count * block_count(data, layout);
    layout->plot_width = sizes[layout->columns - 1].width;
    layout->plot_height = sizes[rows < COLUMNS_MOST ? rows - 1 : COLUMNS_MOST - 1].height;
    if (data->chart->style != PC_CHART_BARS) return;
    int groups = 0;
    for (int panel = 0; panel < data->panels.count; panel++) {
        pc_chart_axis axis;
        pc_chart_make_x_axis(data, panel, layout->plot_width, &axis);
        if (axis.tick_count > groups) groups = axis.tick_count;
    }
    double wanted = (double)groups * (data->series.count + 1) * BAR_LEAST;
    wanted = fmin(wanted, (double)BARS_WIDTH_MOST / layout->columns);
    layout->plot_width = fmax(layout->plot_width, fmax(wanted, groups * NAME_LEAST));
}

/* --- what stands left of and below the plots --- */

static double longest_label(const pc_chart_axis *axis) {
    double longest = 0;
    for (int i = 0; i < axis->tick_count; i++) longest = fmax(longest, text_width(axis->tick[i].label));
    return longest;
}

static void choose_left(const pc_chart_data *data, pc_chart_layout *layout) {
    double numbers = 0;
    for (int i = 0; i < data->chart->y_count; i++) numbers = fmax(numbers, longest_label(&layout->y[i]));
    layout->left = ceil(PC_CHART_MARGIN + PC_CHART_Y_LABEL_LINES * PC_CHART_Y_LABEL_LINE + numbers + TICK_GAP);
}

/* Names of bars are turned where they would run into each other; then the first may reach beyond the plot. */
static void choose_turn(const pc_chart_data *data, pc_chart_layout *layout) {
    const double cut = PC_CHART_NAME_LETTERS * PC_STYLE_LETTER_WIDTH * PC_STYLE_TEXT_FONT;
    pc_chart_axis axis;
    layout->below = TICKS;
    for (int panel = 0; data->chart->style == PC_CHART_BARS && panel < data->panels.count; panel++) {
        pc_chart_make_x_axis(data, panel, layout->plot_width, &axis);
        double slot = layout->plot_width / axis.tick_count, longest = longest_label(&axis);
        if (longest + NAME_GAP <= slot) continue;
        longest = fmin(longest, cut);
        layout->ticks_turned = true;
        layout->below = fmax(layout->below, ceil(TICKS + TURN_SINE * longest));
        layout->left = fmax(layout->left, ceil(PC_CHART_MARGIN + TURN_COSINE * longest - slot / 2));
    }
}

/* --- title and legend --- */

/* The y below it. */
static double place_title(const pc_chart_data *data, pc_chart_layout *layout) {
    const char *title = data->chart->title;
    double room = layout->width - PC_CHART_MARGIN - PC_CHART_MARGIN_RIGHT;
    size_t letters = (size_t)(room / (PC_STYLE_LETTER_WIDTH * PC_STYLE_TITLE_FONT));
    layout->title_y = TITLE_FIRST;
    if (title) layout->title_line_count = pc_chart_wrap(title, letters, PC_CHART_TITLE_LINES, layout->title_line);
    return layout->title_line_count ? TITLE_FIRST + (layout->title_line_count - 1) * PC_CHART_TITLE_LINE + 4
                                    : PC_CHART_MARGIN - 8;
}

static double entry_width(const pc_chart_data *data, int entry) {
    char label[PC_CHART_LABEL_SIZE] = "published";
    if (entry < data->series.count) pc_chart_group_label(&data->series, entry, label);
    return PC_CHART_MARK + text_width(label) + ENTRY_GAP;
}

/* Below the title, in lines: there it covers nothing. The y below it. */
static double place_legend(const pc_chart_data *data, pc_chart_layout *layout, double y) {
    int entries = data->series.count + data->has_published;
    layout->has_legend = data->series.column_count || data->series.files || data->has_published;
    if (!layout->has_legend) return y;
    double x = PC_CHART_MARGIN, end = layout->width - PC_CHART_MARGIN_RIGHT + ENTRY_GAP;
    y += LEGEND_LINE;
    for (int i = 0; i < entries; i++) {
        double width = entry_width(data, i);
        if (x + width > end && x > PC_CHART_MARGIN) {
            x = PC_CHART_MARGIN;
            y += LEGEND_LINE;
        }
        layout->legend[i] = (pc_chart_spot){x, y};
        x += width;
    }
    layout->hidden_y = y + LEGEND_LINE;
    return layout->hidden[0] ? layout->hidden_y : y;
}

/* --- all of it --- */

static void make_y_axes(const pc_chart_data *data, pc_chart_layout *layout) {
    for (int i = 0; i < data->chart->y_count; i++) pc_chart_make_y_axis(data, i, layout->plot_height, &layout->y[i]);
}

void pc_chart_lay_out(const pc_chart_data *data, pc_chart_layout *layout) {
    memset(layout, 0, sizeof *layout);
    int rows = data->chart->y_count;
    choose_sizes(data, layout);
    make_y_axes(data, layout);
    choose_left(data, layout);
    choose_turn(data, layout);
    layout->width =
        layout->left + layout->columns * (layout->plot_width + COLUMN_GAP) - COLUMN_GAP + PC_CHART_MARGIN_RIGHT;
    pc_chart_name_hidden(data, layout, layout->hidden);
    double heading = data->panels.column_count ? HEADING_BELOW : 0;
    layout->panels_top = ceil(place_legend(data, layout, place_title(data, layout)) + LEGEND_BELOW + heading);
    double block = rows * (layout->plot_height + ROW_GAP) - ROW_GAP + layout->below;
    layout->block_height = block + heading + BLOCK_GAP;
    double bottom = layout->panels_top + (block_count(data, layout) - 1) * layout->block_height + block;
    layout->x_label_y = bottom + X_LABEL / 2.0;
    layout->height = ceil(bottom + X_LABEL + PC_CHART_MARGIN / 2.0);
}

pc_chart_spot pc_chart_plot_spot(const pc_chart_layout *layout, int y_index, int panel) {
    int row = panel / layout->columns;
    return (pc_chart_spot){layout->left + panel % layout->columns * (layout->plot_width + COLUMN_GAP),
                           layout->panels_top + row * layout->block_height + y_index * (layout->plot_height + ROW_GAP)};
}
