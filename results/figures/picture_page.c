/* Texts and legends of pictures that place them by pixels. */
#include "results/figures/gnuplot.h"
#include "results/figures/picture.h"
#include "results/figures/style.h"

#include <inttypes.h>
#include <math.h>

static void add_place(const pc_picture_page *page, double left, double top) {
    pc_text_printf(page->script, "screen %.6f,%.6f", left / page->width, 1 - top / page->height);
}

void pc_picture_add_text(const pc_picture_page *page, const char *text, double left, double top, int font,
                         bool is_bold) {
    double room = page->width - left - page->margin;
    pc_text_printf(page->script, "set label ");
    pc_gnuplot_add_string(page->script, text, (size_t)fmax(room / (PC_STYLE_LETTER_WIDTH * font), 1));
    pc_text_printf(page->script, " at ");
    add_place(page, left, top);
    pc_text_printf(page->script, " left noenhanced textcolor rgb '" PC_STYLE_INK "' ");
    pc_picture_add_font(page->script, page->path, font, is_bold);
    pc_text_printf(page->script, "\n");
}

void pc_picture_add_swatch(const pc_picture_page *page, double left, double top, double size, uint32_t colour) {
    pc_text_printf(page->script, "set object rectangle from ");
    add_place(page, left, top + size / 2);
    pc_text_printf(page->script, " to ");
    add_place(page, left + size, top - size / 2);
    pc_text_printf(page->script, " front fillstyle solid 1 noborder fillcolor rgb 0x%06" PRIx32 "\n", colour);
}

double pc_picture_step(double wanted) {
    double power = pow(10, floor(log10(wanted)));
    if (wanted <= power) return power;
    if (wanted <= 2 * power) return 2 * power;
    return wanted <= 5 * power ? 5 * power : 10 * power;
}
