/* Dark pictures: the colours of a script become those of a dark page. */
#include "results/figures/picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUND = 0x17, /* a channel of the page; white becomes it */
    BRIGHT = 0xEB, /* what black becomes */
    GREY_MOST = 24 /* how far channels of a grey may be apart */
};

#define PALE_LIGHT 0.80 /* the lightness from which a colour is a tint of the page */
#define CONTRAST_LEAST                                                                                                 \
    3.0 /* of what is drawn to the page, as WCAG 2.1 wants of graphics (success criterion 1.4.11)                      \
         */

/* --- colours --- */

typedef struct channels {
    int value[3]; /* red, green, blue */
} channels;

static channels split(uint32_t colour) {
    return (channels){{(int)(colour >> 16 & 0xFF), (int)(colour >> 8 & 0xFF), (int)(colour & 0xFF)}};
}

static uint32_t join(const channels *of) {
    return (uint32_t)of->value[0] << 16 | (uint32_t)of->value[1] << 8 | (uint32_t)of->value[2];
}

static int least_of(const channels *of) {
    return (int)fmin(of->value[0], fmin(of->value[1], of->value[2]));
}

static int most_of(const channels *of) {
    return (int)fmax(of->value[0], fmax(of->value[1], of->value[2]));
}

/* Part 0 leaves the colour, part 1 makes it `to`. */
static channels blend(const channels *of, int to, double part) {
    channels blended;
    for (int i = 0; i < 3; i++) blended.value[i] = (int)lround(of->value[i] + part * (to - of->value[i]));
    return blended;
}

/* Light of sRGB, of which white has 1. */
static double luminance(const channels *of) {
    static const double weight[3] = {0.2126, 0.7152, 0.0722};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        double part = of->value[i] / 255.0;
        sum += weight[i] * (part <= 0.04045 ? part / 12.92 : pow((part + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static double contrast_to_page(const channels *of) {
    const channels page = {{GROUND, GROUND, GROUND}};
    return (luminance(of) + 0.05) / (luminance(&page) + 0.05);
}

/* Greys change places: black is bright, white the page. */
static channels turn_grey(const channels *of) {
    channels turned;
    for (int i = 0; i < 3; i++)
        turned.value[i] = (int)lround(GROUND + (255 - of->value[i]) * (BRIGHT - GROUND) / 255.0);
    return turned;
}

/* A tint, little colour in much white, becomes as little of it in the page. */
static channels turn_tint(const channels *of) {
    channels turned;
    int most = most_of(of);
    for (int i = 0; i < 3; i++) turned.value[i] = GROUND + (255 - most) + (of->value[i] - least_of(of));
    return turned;
}

uint32_t pc_dark_colour(uint32_t colour) {
    channels turned = split(colour);
    int least = least_of(&turned), most = most_of(&turned);
    if (most - least <= GREY_MOST)
        turned = turn_grey(&turned);
    else if (least + most >= 2 * 255 * PALE_LIGHT)
        turned = turn_tint(&turned);
    else
        while (contrast_to_page(&turned) < CONTRAST_LEAST) turned = blend(&turned, 255, 0.1);
    return join(&turned);
}

/* --- scripts --- */

static const char *find_either(const char *at) {
    const char *colour = strstr(at, "rgb '#"), *page = strstr(at, "background '#");
    if (!colour || (page && page < colour)) return page;
    return colour;
}

void pc_picture_darken(pc_text *script) {
    enum { DIGITS = 6, WITH_ALPHA = 8 };
    if (script->failed || !script->data) return;
    for (const char *found = script->data; (found = find_either(found));) {
        char *digits = script->data + (strchr(found, '#') + 1 - script->data);
        size_t count = strspn(digits, "0123456789abcdefABCDEF");
        found = digits;
        if (count != DIGITS && count != WITH_ALPHA) continue;
        char *colour = digits + (count - DIGITS), changed[DIGITS + 1];
        uint32_t value = (uint32_t)strtoul(colour, NULL, 16) & 0xFFFFFF;
        snprintf(changed, sizeof changed, "%06" PRIx32, pc_dark_colour(value) & 0xFFFFFF);
        memcpy(colour, changed, DIGITS);
    }
}
