#include "results/figures/chart_private.h"

#include "models/schedule/generate.h"
#include "results/figures/style.h"

#include <string.h>

enum { CIRCLE = 7, SQUARE = 5, TRIANGLE = 9, INVERTED = 11, DIAMOND = 13, PENTAGON = 15 };
enum { SOLID = 1, DASHED = 2, DOTTED = 3 };
enum { GREY = 0x8C8C8C, BROWN = 0x8A5A00, DARK_GREEN = 0x005C42, DARK_BLUE = 0x004B75, DARK_PURPLE = 0x7A3E6B };

/* In the order of pc_generators. Those that papers set beside each other have colours of the palette; all differ in
 * colour or shape. */
static const pc_look schedule_looks[] = {
    {GREY, SQUARE, SOLID},               /* gpipe */
    {PC_STYLE_BLACK, CIRCLE, SOLID},     /* 1f1b */
    {GREY, TRIANGLE, DASHED},            /* 1f1b-r */
    {GREY, PENTAGON, SOLID},             /* eager-1f1b */
    {PC_STYLE_SKY, SQUARE, SOLID},       /* 1f1b-interleaved */
    {PC_STYLE_SKY, PENTAGON, DOTTED},    /* 1f1b-interleaved-overlap */
    {PC_STYLE_SKY, DIAMOND, DASHED},     /* 1f1b-interleaved-low-memory */
    {GREY, CIRCLE, DASHED},              /* looped-bfs */
    {DARK_GREEN, TRIANGLE, SOLID},       /* 1f1b-v */
    {PC_STYLE_YELLOW, INVERTED, SOLID},  /* zb-h1 */
    {BROWN, DIAMOND, SOLID},             /* zb-h2 */
    {PC_STYLE_SKY, INVERTED, DASHED},    /* zb-interleaved */
    {DARK_BLUE, PENTAGON, DASHED},       /* gis */
    {DARK_BLUE, SQUARE, DOTTED},         /* gis-h */
    {DARK_BLUE, DIAMOND, SOLID},         /* gis-uniform */
    {DARK_BLUE, INVERTED, DASHED},       /* gis-h-uniform */
    {PC_STYLE_SKY, CIRCLE, DOTTED},      /* interleaved-adaptive */
    {PC_STYLE_ORANGE, TRIANGLE, SOLID},  /* zb-1p */
    {PC_STYLE_PURPLE, INVERTED, SOLID},  /* zb-2p */
    {BROWN, CIRCLE, DASHED},             /* zb-two-thirds */
    {PC_STYLE_GREEN, DIAMOND, SOLID},    /* v-min */
    {PC_STYLE_BLUE, CIRCLE, SOLID},      /* v-half */
    {PC_STYLE_VERMILION, SQUARE, SOLID}, /* v-zb */
    {DARK_PURPLE, PENTAGON, SOLID},      /* zb-v */
    {DARK_BLUE, TRIANGLE, DASHED},       /* v-adaptive */
    {DARK_PURPLE, DIAMOND, SOLID},       /* dualpipe-v */
    {DARK_PURPLE, TRIANGLE, DASHED},     /* dualpipe */
    {GREY, INVERTED, DOTTED},            /* gems */
    {GREY, DIAMOND, DOTTED},             /* chimera */
    {BROWN, SQUARE, DOTTED},             /* seq-gpipe */
    {BROWN, PENTAGON, SOLID},            /* seq-1f1b */
    {BROWN, INVERTED, DASHED},           /* seq-zb-h1 */
    {DARK_GREEN, PENTAGON, SOLID},       /* seq-1f1b-interleaved */
    {DARK_GREEN, INVERTED, DASHED},      /* seq-zb-interleaved */
    {DARK_BLUE, CIRCLE, DASHED},         /* 1f1b-vocab-1 */
    {BROWN, TRIANGLE, SOLID},            /* 1f1b-vocab-2 */
    {DARK_GREEN, SQUARE, DASHED},        /* v-half-vocab-1 */
    {DARK_GREEN, CIRCLE, SOLID},         /* v-half-vocab-2 */
};
enum { SCHEDULE_LOOKS = sizeof schedule_looks / sizeof *schedule_looks };

static const uint32_t colours[] = {PC_STYLE_BLUE,   PC_STYLE_VERMILION, PC_STYLE_GREEN, PC_STYLE_ORANGE,
                                   PC_STYLE_PURPLE, PC_STYLE_SKY,       PC_STYLE_BLACK};
static const int shapes[] = {CIRCLE, SQUARE, TRIANGLE, DIAMOND, INVERTED, PENTAGON};
enum { PALER = 45 /* how much white a variant has, in percent */ };
enum { COLOURS = sizeof colours / sizeof *colours, SHAPES = sizeof shapes / sizeof *shapes };

static const pc_look *find_schedule(const char *name, size_t length) {
    int count;
    const pc_generator *generators = pc_generators(&count);
    for (int i = 0; i < count && i < SCHEDULE_LOOKS; i++)
        if (strlen(generators[i].name) == length && memcmp(generators[i].name, name, length) == 0)
            return &schedule_looks[i];
    return NULL;
}

static uint32_t paler(uint32_t of) {
    uint32_t colour = 0;
    for (int shift = 0; shift <= 16; shift += 8) {
        uint32_t channel = of >> shift & 0xFF;
        colour |= (channel + (0xFF - channel) * PALER / 100) << shift;
    }
    return colour;
}

static int place_of_shape(int shape) {
    int place = 0;
    while (shapes[place] != shape) place++;
    return place;
}

static pc_look make_variant(const pc_look *of, int number) {
    int shape = shapes[(place_of_shape(of->shape) + 1 + number % (SHAPES - 1)) % SHAPES];
    return (pc_look){paler(of->colour), shape, DASHED};
}

pc_look pc_chart_look_in_file(pc_look look, int file) {
    if (file == 0) return look;
    int shape = shapes[(place_of_shape(look.shape) + file) % SHAPES];
    return (pc_look){paler(look.colour), shape, SOLID + (look.dash - SOLID + file) % DOTTED};
}

pc_look pc_chart_look(const char *name, int number) {
    size_t length = strcspn(name, ",");
    const pc_look *schedule = find_schedule(name, length);
    if (schedule) return name[length] ? make_variant(schedule, number) : *schedule;
    /* 7 and 6 have no common factor: 42 series differ in colour or shape. */
    return (pc_look){colours[number % COLOURS], shapes[number % SHAPES], SOLID + number / COLOURS % DOTTED};
}
