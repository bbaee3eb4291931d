#include "results/figures/figure_private.h"

#include <inttypes.h>
#include <stdio.h>

/* A bar for every chunk that a device holds of a block, from the start of its F to the end of its W: in the place and
 * on the time axis of the block above. How long bars are together is what the device holds, an interval counting one
 * ('Pipeline Parallelism with Controllable Memory', section 3). */

enum { NUMBER_FONT = 11 };

#define BAND 0.88 /* of a row */

typedef struct bar {
    int device, place, places; /* the place from the top, of how many */
    int chunk;
    int64_t from, to; /* in cells */
} bar;

static int64_t first_start(const pc_block *block) {
    int64_t first = INT64_MAX, count = pc_block_index(block, block->microbatches, 0, 0, 0);
    for (int64_t i = 0; i < count; i++)
        if (block->start[i] != PC_TIME_NOT_GIVEN && block->start[i] < first) first = block->start[i];
    return first;
}

static void add_bar(const bar *lifespan, pc_text *script) {
    double height = BAND / lifespan->places, top = lifespan->device - BAND / 2 + height * lifespan->place;
    pc_text_printf(script, "%" PRId64 " %" PRId64 " %.6g %.6g %" PRId64 "\n", lifespan->from, lifespan->to,
                   top + 0.08 * height, top + 0.92 * height, lifespan->to - lifespan->from);
}

/* Those of one shade; how many there are. */
static int add_bars(const pc_figure *figure, int shade, pc_text *script) {
    const pc_block *block = figure->timeline->block;
    int64_t zero = first_start(block);
    int count = 0, places = block->microbatches * pc_placement_visited(block->placement, block->chunks);
    pc_text_printf(script, "$lifespans_%d << EOD\n", shade);
    for (int d = 0; d < block->devices; d++)
        for (int c = 0, place = 0; c < block->chunks; c++)
            for (int i = 0; i < block->microbatches; i++) {
                if (!pc_placement_visits(block->placement, c, i)) continue;
                bar lifespan = {d, place++, places, c, pc_block_start(block, i, d, c, PC_PASS_F) - zero, 0};
                if (pc_figure_shade_of(figure->timeline, c) != shade) continue;
                lifespan.to = lifespan.from + pc_block_lifespan(block, i, d, c);
                add_bar(&lifespan, script);
                count++;
            }
    pc_text_printf(script, "EOD\n");
    return count;
}

void pc_figure_add_lifespans(const pc_figure *figure, pc_text *script) {
    const pc_block *block = figure->timeline->block;
    int places = block->microbatches * pc_placement_visited(block->placement, block->chunks);
    bool has_numbers = figure->lifespans.row * BAND / places >= pc_figure_length(figure, NUMBER_FONT);
    pc_text plot = {0};
    for (int shade = 0; shade < pc_figure_shade_count(figure->timeline); shade++) {
        uint32_t fill = pc_figure_fill_colour(figure->timeline, PC_PASS_F, shade);
        if (add_bars(figure, shade, script) == 0) continue;
        pc_text_printf(&plot,
                       "%s$lifespans_%d using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 noborder fillcolor rgb "
                       "0x%06" PRIx32,
                       plot.size ? ", " : "plot ", shade, fill);
        if (has_numbers)
            pc_text_printf(&plot,
                           ", $lifespans_%d using (($1+$2)/2.0):(($3+$4)/2.0):5 with labels center font '%s,%.4g' "
                           "textcolor rgb 0x%06" PRIx32,
                           shade, figure->format->font,
                           pc_figure_font_size(figure, pc_figure_length(figure, NUMBER_FONT)), pc_figure_ink_on(fill));
    }
    if (plot.data) pc_text_add(script, plot.data, plot.size);
    pc_text_add(script, "\n", 1);
    script->failed = script->failed || plot.failed;
    pc_text_free(&plot);
}
