/* score_table.h: scored runs as text: a table for people, CSV and JSON for programs. */
#ifndef PC_RESULTS_SCORE_TABLE_H
#define PC_RESULTS_SCORE_TABLE_H

#include "engine/error.h"
#include "results/score/score.h"
#include "storage/format.h"

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CSV: the measured table's columns and those of pc_score_fields behind them, a row a run; of the table's own, one that
 * is called as one of ours is left out. JSON: an object of `rows`, `sums`, `missing`, `pairs` and `groups`. TABLE: the
 * rows, and below them the same sums, for people. Independent of the locale. PC_ERROR_IO if the stream fails. */
pc_code pc_score_table_write(const pc_score *score, pc_format format, FILE *stream, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
