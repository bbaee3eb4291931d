/* score_file.h: scored runs as an HDF5 file: docs/score.md has its layout. */
#ifndef PC_RESULTS_SCORE_FILE_H
#define PC_RESULTS_SCORE_FILE_H

#include "engine/error.h"
#include "results/score/score.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_SCORE_FILE_VERSION = 1 };

/* Groups: `measured`, the table's columns as texts; `rows`, the line of each row and the columns of pc_score_fields;
 * `sums`, `missing`, `pairs` and `groups`. Puts it in place in one step; the same score gives the same bytes. */
pc_code pc_score_file_write(const pc_score *score, const char *path, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
