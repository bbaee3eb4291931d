/* lines.h: private to results/: the lines of tables for people: aligned cells, lists that break, colour. */
#ifndef PC_RESULTS_LINES_H
#define PC_RESULTS_LINES_H

#include "storage/text.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_LINES_GAP = 2 /* blanks between columns */, PC_LINES_WIDTH = 120 /* where there is no terminal */ };

/* Stands before the names of columns that a table has no room for. */
#define PC_LINES_LEFT_OUT "left out for width (--columns NAME,... shows them, csv and json have all): "

/* How words stand out. Colours are put around words that pc_text_add_line has made plain. */
typedef enum pc_ink { PC_INK_PLAIN, PC_INK_DIM, PC_INK_RED, PC_INK_YELLOW } pc_ink;

void pc_lines_add_inked(pc_text *text, const char *words, pc_ink ink, bool is_coloured);

/* The same for several lines, each for itself: pagers forget colours at the end of a line. */
void pc_lines_add_block(pc_text *text, const char *lines, pc_ink ink, bool is_coloured);

/* One line of a table. Blanks wait until something follows them, so that no line ends in one. */
typedef struct pc_line {
    pc_text *text;
    bool is_coloured;
    size_t waiting; /* blanks; 0 to begin */
} pc_line;

/* The next cell, `width` characters wide, to the left or the right. */
void pc_line_add(pc_line *line, const char *cell, size_t width, bool is_left, pc_ink ink);
void pc_line_add_rule(pc_line *line, size_t width);
void pc_line_end(pc_line *line);

/* "a, b, c" in lines of at most `width` characters, which break between items. */
typedef struct pc_items {
    pc_text *text;
    size_t width;
    size_t used; /* characters of the last line; 0 before the first item */
} pc_items;

void pc_items_add(pc_items *items, const char *item);

/* Words in lines of at most `width` characters, which break at blanks, and end in a newline. What is foreign in them is
 * made plain. */
void pc_lines_add_wrapped(pc_text *text, const char *words, size_t width);

#ifdef __cplusplus
}
#endif
#endif
