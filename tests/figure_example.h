/* figure_example.h: a schedule to draw, for the tests of figures; files; programs that stand in for gnuplot. */
#ifndef PC_TESTS_FIGURE_EXAMPLE_H
#define PC_TESTS_FIGURE_EXAMPLE_H

#include "results/figures/figure.h"
#include "tests/folder.h"

/* --- files --- */

/* The whole file, terminated; the caller frees it. */
char *read_text(const char *path, size_t *size);
void write_file(const char *path, const char *text);
int count_of(const char *text, const char *part);

/* --- a schedule: every stage runs F, B, W of each microbatch, a second each, one stage behind the other --- */

typedef struct figure_example {
    pc_replay_trace trace;
    pc_timeline timeline;
    pc_block block;
} figure_example;

void make_figure_example(figure_example *made, int devices, int microbatches, int chunks);

/* F takes a GiB, W gives it back. Of the given example every device holds 1 GiB for 3 s a chunk and microbatch. */
void add_levels(figure_example *made);

/* Chunks one after the other, in each F down the devices, then B and W up them: a block for the panel. */
void add_block(figure_example *made);
void free_example(figure_example *made);

/* --- drawing --- */

/* gnuplot is needed to build nothing: without it these tests have nothing to say. */
void need_gnuplot(void);
void assert_drawn(const pc_timeline *timeline, const char *path);

/* Draws with `path` as the only folder of programs. */
pc_code draw_with_programs_of(const char *path, const pc_timeline *timeline, const char *svg, pc_error *error);

/* What gnuplot would be told; needs no gnuplot. The caller frees it. */
char *script_of(const folder *at, const pc_timeline *timeline);

#endif
