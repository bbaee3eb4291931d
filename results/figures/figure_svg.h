/* figure_svg.h: private to results/: what is added to a picture in svg after gnuplot drew it. A <title> for every shape
 * of a plot is what browsers show under the pointer; ids are made so that they do not clash if several pictures stand
 * in one page.
 */
#ifndef PC_RESULTS_FIGURE_SVG_H
#define PC_RESULTS_FIGURE_SVG_H

#include "engine/error.h"
#include "storage/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What makes a font bold, behind its name. The svg terminal takes it for a part of the name: pc_svg_finish mends that.
 */
#define PC_SVG_BOLD ":Bold"

enum { PC_SVG_NOTES_MAX = 100000 }; /* a picture with more would be slow to open */

/* For plots, in the order in which they are drawn, what their shapes say. Zeroed: nothing. */
typedef struct pc_svg_notes {
    const char *title;             /* of the picture, plain text, for those who cannot see it; NULL: none */
    pc_text text;                  /* freed by pc_text_free */
    size_t plot_start, note_start; /* private */
} pc_svg_notes;

/* The plot of the data block `$data`, whose values are drawn as elements `shape` ("polygon", "use"), one a line of the
 * block; then a note for each of them, in that order; then the end. A plot without notes counts for nothing. */
void pc_svg_begin_plot(pc_svg_notes *notes, const char *data, const char *shape);
void pc_svg_end_plot(pc_svg_notes *notes);

/* `attributes` is XML, "" or `name="value" ...`; `title` is plain text. */
void pc_svg_add_note(pc_svg_notes *notes, const char *attributes, const char *title);

/* Finishes what gnuplot drew: adds it to `finished`. The prefix of ids is a hash of the picture: the same picture, the
 * same bytes. gnuplot's own titles, which are pieces of the script, are taken out. Where the picture does not have the
 * plots and shapes that the notes are of, it gets none of them; what is no svg stays as it is. */
void pc_svg_finish(const char *drawn, size_t size, const pc_svg_notes *notes, pc_text *finished);

#ifdef __cplusplus
}
#endif
#endif
