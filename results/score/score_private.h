/* score_private.h: private to results/score/: the steps of pc_score_sum_up, and what they share. */
#ifndef PC_RESULTS_SCORE_PRIVATE_H
#define PC_RESULTS_SCORE_PRIVATE_H

#include "results/score/score.h"
#include "storage/text.h"

#include <stdio.h>

/* The median of values, which are sorted; NaN of none. */
double pc_score_median(double *values, int64_t count);
int pc_score_compare_reals(const void *left, const void *right);

/* Spearman's rank correlation of `count` pairs: that of their ranks, ties with the mean of theirs. NaN where one side
 * does not vary, and of fewer than three. `room` is for 4 * count numbers. */
double pc_score_rank_correlation(const double *a, const double *b, int64_t count, double *room);

pc_code pc_score_make_pairs(pc_score *score, pc_error *error);
pc_code pc_score_make_groups(pc_score *score, pc_error *error);

/* ---- as text ---- */

/* The table for people, within a number scope; false if the text or the stream fails. */
bool pc_score_text_write(const pc_score *score, pc_text *text, FILE *stream);

/* The columns of sums, missing, pairs and groups, each with its fields: what JSON and files walk. */
typedef struct pc_score_part {
    const char *name;
    const pc_field *field;
    int field_count;
    size_t row_size;
} pc_score_part;
enum { PC_SCORE_PARTS = 4 };
extern const pc_score_part pc_score_parts[PC_SCORE_PARTS];

/* The rows of a part, `*count`. */
const void *pc_score_part_rows(const pc_score *score, int part, int64_t *count);

#endif
