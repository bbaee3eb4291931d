/* picture.h: private to results/ and calib/: a gnuplot script becomes a file, svg, png or pdf by its ending. */
#ifndef PC_RESULTS_PICTURE_H
#define PC_RESULTS_PICTURE_H

#include "engine/error.h"
#include "results/text.h"

/* Adds the lines that choose the form of the picture, `width` x `height` pixels; the path has passed
 * pc_figure_check_path. Within a number scope. */
void pc_picture_begin(pc_text *script, const char *path, double width, double height);

/* Draws the script and puts the file in place. */
pc_code pc_picture_draw(const pc_text *script, const char *path, pc_error *error);

#endif
