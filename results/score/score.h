/* score.h: measured runs beside their forecasts: plain rows, and what they come to as sums, pairs and groups.
 *
 * Errors are forecast / measured - 1: below zero the forecast is too fast, or too small. All that is not known is NaN.
 */
#ifndef PC_RESULTS_SCORE_H
#define PC_RESULTS_SCORE_H

#include "engine/error.h"
#include "engine/field.h"
#include "scenarios/intervals.h"
#include "scenarios/measured.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* OUT_OF_MEMORY also has a forecast: that of a GPU with room enough. */
typedef enum pc_score_status {
    PC_SCORE_OK,
    PC_SCORE_OUT_OF_MEMORY,
    PC_SCORE_INFEASIBLE,
    PC_SCORE_NOT_ASKED,
    PC_SCORE_BAD, /* the row cannot be read: it is in no table and no sum */
    PC_SCORE_STATUSES
} pc_score_status;

const char *pc_score_status_name(pc_score_status status);

/* A row that was scored. */
typedef struct pc_score_row {
    int64_t row;         /* of the measured table, from 0 */
    int32_t status;      /* pc_score_status */
    pc_measured_run run; /* what was measured, and what was asked */
    char message[256];   /* why it is infeasible or out of memory */
    double forecast_s;
    double forecast_low_s, forecast_high_s; /* of an interval of 80%; NaN: none is given */
    double error;                           /* of the time */
    double forecast_gib;
    double forecast_gib_low, forecast_gib_high; /* likewise */
    double memory_error;
    char kind[PC_KIND_SIZE]; /* what it is compared as, and what its intervals are learned from (intervals.h) */
    char basis[PC_BASIS_SIZE];
} pc_score_row;

/* The columns that stand behind the table's own, `*count`: names, units, words, places in pc_score_row. Static
 * storage. */
const pc_field *pc_score_fields(int *count);

/* Whether a column of a measured table is called as one of them: ours takes its place. */
bool pc_score_is_column(const char *name);

/* Works the errors out of what was measured and forecast. */
void pc_score_row_judge(pc_score_row *row);

/* ---- sums ---- */

/* Of some rows. Shares and errors are of the rows that have what it takes. */
enum { PC_SCORE_LABEL_SIZE = 160 };
typedef struct pc_score_sum {
    char by[PC_SCORE_LABEL_SIZE]; /* the columns by which it was summed up, "source" or "system,gpus"; "": all rows */
    char value[PC_SCORE_LABEL_SIZE]; /* theirs, with "; " between */
    int64_t rows, asked, ok, out_of_memory, infeasible;
    int64_t compared;                 /* rows with a measured time and a forecast */
    double mean, median, worst, bias; /* of |error|; worst and bias, the mean, with their sign */
    int64_t worst_line;               /* of the file; -1: none */
    int64_t memory_compared;
    double memory_mean, memory_bias;
} pc_score_sum;

/* A feature that is missing, and how many rows are lost by it: `alone` if it were there, all else being as it is. */
typedef struct pc_score_missing {
    char feature[64];
    int64_t rows, alone;
} pc_score_missing;

/* Runs that differ in one thing alone, next to each other in its order. A pair's error is the forecast of the second
 * time over the first, over the same as measured, less one. */
typedef struct pc_score_pair {
    char thing[32];
    int64_t pairs;
    int64_t told;       /* measured times that differ by more than 2%: the floor between releases of one software */
    int64_t right;      /* of these, those that the forecast orders likewise */
    double mean, worst; /* of |error|; the worst with its sign */
    int64_t worst_first_line, worst_second_line;
} pc_score_pair;

/* Configurations of one model on as many GPUs of one machine with the same batch. */
typedef struct pc_score_group {
    char model[PC_SCORE_LABEL_SIZE], machine[PC_SCORE_LABEL_SIZE], precision[16];
    int64_t gpus, global_batch, seq_len;
    int64_t configurations;
    double
        rank_correlation; /* Spearman's, of measured and forecast times; NaN for fewer than three, and for ties alone */
    double regret;        /* the measured time of what is forecast to be the fastest over the fastest's, less one */
    int64_t best_line, chosen_line;
} pc_score_group;

/* All of it; owned: pc_score_free. */
typedef struct pc_score {
    const pc_measured *measured; /* borrowed */
    pc_score_row *rows;          /* without bad ones */
    int64_t count;
    pc_score_sum *sums; /* all rows, then by each of what was asked for, in the order of their values' first rows */
    int64_t sum_count;
    pc_score_missing *missing; /* the most rows first */
    int64_t missing_count;
    pc_score_pair *pairs; /* by what differs */
    int64_t pair_count;
    pc_score_group *groups; /* the largest regret first */
    int64_t group_count;
} pc_score;

/* Makes sums, missing, pairs and groups of the rows. `by` are `by_count` lists of columns, "source" or "system,gpus".
 * PC_ERROR_INPUT where there is no such column. */
pc_code pc_score_sum_up(pc_score *score, const char *const *by, int by_count, pc_error *error);
void pc_score_free(pc_score *score);

/* What a row has in the columns `by`, which are there, as sums have it: "H100; 64". */
void pc_score_row_value(const pc_score *score, const pc_score_row *row, const char *by,
                        char value[PC_SCORE_LABEL_SIZE]);

/* PC_ERROR_INPUT where `by` names a column that the table does not have. For checking before the work. */
pc_code pc_score_check_by(const pc_measured *measured, const char *by, pc_error *error);

/* What rows come to as a table: sums, missing, pairs and groups, in this order from 0. Static storage, but for `rows`.
 * False if there is no such part. */
typedef struct pc_score_part_table {
    const void *rows; /* the score's own */
    int64_t row_count;
    size_t row_size;
    const pc_field *fields;
    int field_count;
} pc_score_part_table;
bool pc_score_part_at(const pc_score *score, int part, pc_score_part_table *table);

#ifdef __cplusplus
}
#endif
#endif
