/* style.h: private to results/: what all pictures have in common. */
#ifndef PC_RESULTS_STYLE_H
#define PC_RESULTS_STYLE_H

/* As gnuplot takes them: titles and values; names of axes and their numbers; axes; lines behind what is drawn. */
#define PC_STYLE_INK   "#222222"
#define PC_STYLE_QUIET "#444444"
#define PC_STYLE_AXIS  "#888888"
#define PC_STYLE_GRID  "#dcdcdc"
/* Before a plot's texts are set: gnuplot's own black stays black in a dark picture. */
#define PC_STYLE_TEXTS                                                                                                 \
    "set title textcolor rgb '" PC_STYLE_INK "'\nset xlabel textcolor rgb '" PC_STYLE_INK                              \
    "'\nset ylabel textcolor rgb '" PC_STYLE_INK "'\nset key textcolor rgb '" PC_STYLE_INK "'\n"

/* The palette of Okabe and Ito ('Color universal design', https://jfly.uni-koeln.de/color/), which colour-blind readers
 * tell apart; its yellow, too pale for lines and marks on white, is darker here. */
enum {
    PC_STYLE_BLACK = 0x000000,
    PC_STYLE_ORANGE = 0xE69F00,
    PC_STYLE_SKY = 0x56B4E9,
    PC_STYLE_GREEN = 0x009E73,
    PC_STYLE_YELLOW = 0xC4AD00,
    PC_STYLE_BLUE = 0x0072B2,
    PC_STYLE_VERMILION = 0xD55E00,
    PC_STYLE_PURPLE = 0xCC79A7
};

/* Heights of letters, in pixels of a picture of usual width. */
enum { PC_STYLE_TITLE_FONT = 18, PC_STYLE_HEADING_FONT = 13, PC_STYLE_TEXT_FONT = 12 };

/* Of a digit and of an average letter, in font sizes; Helvetica's are 0.556 and about 0.5, its stand-ins are wider. */
#define PC_STYLE_DIGIT_WIDTH  0.6
#define PC_STYLE_LETTER_WIDTH 0.58

#endif
