/* picture.h: private to results/: a gnuplot script becomes a file, svg, png or pdf by its ending. */
#ifndef PC_RESULTS_PICTURE_H
#define PC_RESULTS_PICTURE_H

#include "engine/error.h"
#include "results/figures/figure_svg.h"
#include "storage/text.h"

#include <stdbool.h>
#include <stdint.h>

/* Adds the lines that choose the form of the picture, `width` x `height` pixels; the path has passed
 * pc_figure_check_path. Within a number scope. */
void pc_picture_begin(pc_text *script, const char *path, double width, double height);

/* Adds "font '...'" for letters so many pixels high. */
void pc_picture_add_font(pc_text *script, const char *path, double pixels, bool is_bold);

/* The script of a picture, which is `width` x `height` pixels. */
typedef struct pc_picture_page {
    pc_text *script;
    const char *path;
    double width, height;
    double margin; /* at the right, which texts leave free */
} pc_picture_page;

/* Adds a text whose middle left is so many pixels from the left and from the top; cut where its room ends. */
void pc_picture_add_text(const pc_picture_page *page, const char *text, double left, double top, int font,
                         bool is_bold);

/* Adds a square of a legend, `size` pixels wide, with its middle left there; colour: 0xRRGGBB. */
void pc_picture_add_swatch(const pc_picture_page *page, double left, double top, double size, uint32_t colour);

/* Of the colours of a light picture, that which takes its place in a dark one: greys change places, tints of the page
 * become tints of the dark one, others stay, but lighter where they would not stand out. */
uint32_t pc_dark_colour(uint32_t colour);

/* Makes the whole script that of a dark picture. Colours written rgb '#...' change; those written as a number, rgb
 * 0x..., stay: fills that carry numbers, and the ink on them. */
void pc_picture_darken(pc_text *script);

/* For marks of an axis: the least of 1, 2 and 5 times a power of ten that is no less than what is wanted. */
double pc_picture_step(double wanted);

/* What to ask gnuplot for, for points of the same size in all formats. */
double pc_picture_point_size(const char *path, double size);

/* Draws the script, made dark where asked, and puts the file in place; of an svg, with the notes (NULL: none).
 * PC_ERROR_NO_MEMORY where either text has failed. */
pc_code pc_picture_draw(pc_text *script, bool is_dark, const pc_svg_notes *notes, const char *path, pc_error *error);

/* Adds the script of a picture without notes, within a number scope. */
typedef void pc_picture_writer(const void *of, const char *path, pc_text *script);

/* Has `of` written, and draws it. */
pc_code pc_picture_make(pc_picture_writer *add, const void *of, bool is_dark, const char *path, pc_error *error);

#endif
