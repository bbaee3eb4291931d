/* run_labels.h: what only labels a row: the run's number, its name and its scenario's, the labels of model and machine,
 * the path of the profile, and what others published. */
#ifndef PC_MODELS_TRAINING_RUN_LABELS_H
#define PC_MODELS_TRAINING_RUN_LABELS_H

#include "engine/api.h"
#include "models/training/run.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A hash of what is not in the key of a run but in the row: runs of one key and these labels have one row. Not 0. */
PC_API uint64_t pc_run_labels_of(const pc_run_spec *spec);

/* Gives a row that was worked out for another run of the same key the labels and published figures of `spec`. */
PC_API void pc_run_row_relabel(const pc_run_spec *spec, pc_run_row *row);

#ifdef __cplusplus
}
#endif
#endif
