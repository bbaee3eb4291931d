/* picture.h: private to results/: a gnuplot script becomes a file, svg, png or pdf by its ending. */
#ifndef PC_RESULTS_PICTURE_H
#define PC_RESULTS_PICTURE_H

#include "engine/error.h"
#include "results/figures/figure_svg.h"
#include "storage/text.h"

#include <stdbool.h>

/* Adds the lines that choose the form of the picture, `width` x `height` pixels; the path has passed
 * pc_figure_check_path. Within a number scope. */
void pc_picture_begin(pc_text *script, const char *path, double width, double height);

/* Adds "font '...'" for letters so many pixels high. */
void pc_picture_add_font(pc_text *script, const char *path, double pixels, bool is_bold);

/* What to ask gnuplot for, for points of the same size in all formats. */
double pc_picture_point_size(const char *path, double size);

/* Draws the script and puts the file in place; of an svg, with the notes (NULL: none). */
pc_code pc_picture_draw(const pc_text *script, const pc_svg_notes *notes, const char *path, pc_error *error);

#endif
