#include "results/figures/figure_private.h"

#include <math.h>

enum { SHADES_MAX = 6, WHITE = 0xFFFFFF, BLACK = 0x000000, DARK_GROUND = 0x2A2A2A };

/* How much white a pale shade has: little enough to tell the kinds apart, enough to stand back. */
#define PALE_PART 0.68

/* From the palette of Okabe and Ito (https://jfly.uni-koeln.de/color/): blue, vermilion, yellow and purple, apart in
 * hue and in lightness, and for the last chunk a tint of each. B and BW share a colour: no schedule needs both told
 * apart at a glance, and the legend names what is there. */
typedef struct kind_style {
    const char *label;
    uint32_t first, last; /* colours of the first and the last chunk */
} kind_style;

static const kind_style kind_styles[PC_PASS_KINDS] = {
    [PC_PASS_F] = {"F forward", PC_STYLE_BLUE, 0x7CC4EE},
    [PC_PASS_B] = {"B backward, input", PC_STYLE_VERMILION, 0xF7AE7C},
    [PC_PASS_W] = {"W backward, weights", 0xE9D628, 0xF6EE9C},
    [PC_PASS_BW] = {"BW backward", PC_STYLE_VERMILION, 0xF7AE7C},
    [PC_PASS_R] = {"R recompute", PC_STYLE_PURPLE, 0xEBCBDD},
    [PC_PASS_S] = {"S logits", 0x009E73, 0x7FCEB9},
    [PC_PASS_T] = {"T vocabulary gradients", 0x56785F, 0xAABBAF},
};

const char *pc_figure_kind_label(int kind) {
    return kind_styles[kind].label;
}

static unsigned channel(uint32_t colour, int shift) {
    return colour >> shift & 0xFF;
}

static uint32_t blend(uint32_t from, uint32_t to, double part) {
    uint32_t colour = 0;
    for (int shift = 16; shift >= 0; shift -= 8)
        colour |= (uint32_t)lround(channel(from, shift) + part * ((double)channel(to, shift) - channel(from, shift)))
                  << shift;
    return colour;
}

int pc_figure_shade_count(const pc_timeline *timeline) {
    return timeline->chunks < SHADES_MAX ? timeline->chunks : SHADES_MAX;
}

int pc_figure_shade_of(const pc_timeline *timeline, int chunk) {
    int shades = pc_figure_shade_count(timeline);
    return timeline->chunks <= shades ? chunk : (int)((int64_t)chunk * shades / timeline->chunks);
}

uint32_t pc_figure_fill_colour(const pc_timeline *timeline, int kind, int shade) {
    int shades = pc_figure_shade_count(timeline);
    double part = shades > 1 ? (double)shade / (shades - 1) : 0;
    return blend(kind_styles[kind].first, kind_styles[kind].last, part);
}

uint32_t pc_figure_pale(const pc_timeline *timeline, uint32_t fill) {
    return blend(fill, timeline->is_dark ? DARK_GROUND : WHITE, PALE_PART);
}

uint32_t pc_figure_pale_ink(const pc_timeline *timeline) {
    return timeline->is_dark ? 0xA0A0A0 : 0x777777;
}

/* By the weights of Rec. 709 for the channels' light. */
uint32_t pc_figure_ink_on(uint32_t fill) {
    double light = 0.2126 * channel(fill, 16) + 0.7152 * channel(fill, 8) + 0.0722 * channel(fill, 0);
    return light > 140 ? BLACK : WHITE;
}
