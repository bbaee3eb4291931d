/* store_private.h: private to results/store_*.c: what the writer and the reader of a results file must agree on.
 *
 * The layout as users see it is docs/results-format.md.
 */
#ifndef PC_RESULTS_STORE_PRIVATE_H
#define PC_RESULTS_STORE_PRIVATE_H

#include "engine/error.h"
#include "results/store/plan_share.h"
#include "results/store/store.h"
#include "storage/fields.h"
#include "storage/h5.h"
#include "storage/sealed.h"

#include <stdbool.h>
#include <stdint.h>

/* The version rises when a file can no longer be read by the rules of the one before; a new column or attribute is no
 * reason. */
static const pc_sealed_kind pc_store_kind = {"pipecast-results", "a results file", 1};

/* "'NAME' is missing or damaged", PC_ERROR_INPUT; and what to say where HDF5 could not write. */
pc_code pc_store_refuse(pc_error *error, const char *name);
pc_code pc_store_fail(pc_error *error);

/* least <= value < limit: of what is used as an index. */
static inline bool pc_store_is_within(int64_t value, int64_t least, int64_t limit) {
    return value >= least && value < limit;
}

/* A dataset of one text, byte for byte, open: -1 if HDF5 refuses. A text of no bytes is stored as one zero byte. And
 * back: pc_free; PC_ERROR_INPUT if it is none. */
hid_t pc_store_text_write(hid_t group, const char *name, const char *text, size_t size);
pc_code pc_store_text_read(hid_t dataset, char **text, size_t *size, pc_error *error);

/* A share of a search for plans as a group of the file; and back, where there is one: PC_ERROR_INPUT if it is damaged.
 */
pc_code pc_store_share_write(hid_t file, const pc_plan_share *share, pc_error *error);
bool pc_store_share_is_there(hid_t file);
pc_code pc_store_share_read(hid_t file, pc_plan_share *share, pc_error *error);

/* The trace of one run as a group of its own; and back. PC_ERROR_INPUT if the group is not a trace. */
pc_code pc_store_trace_write(hid_t group, const pc_schedule *schedule, const pc_run_detail *detail, pc_error *error);
pc_code pc_store_trace_read(hid_t group, pc_trace_record *record, pc_error *error);
/* Of its passes, levels, kinds and transfers; PC_ERROR_INPUT and the dataset whose numbers cannot be. */
pc_code pc_store_trace_check(const pc_trace_record *record, pc_error *error);

/* The block in it, where there is one; and back, into a record that has the rest. */
pc_code pc_store_block_write(hid_t group, const pc_block *block, pc_error *error);
pc_code pc_store_block_read(hid_t group, pc_trace_record *record, pc_error *error);

/* Whether a trace's group says what levels are made of. */
bool pc_store_kinds_are_there(hid_t group);

/* What the engine saw, a group in it, where it ran all of the replay; and back, likewise. */
bool pc_store_engine_is_there(hid_t group);
pc_code pc_store_engine_write(hid_t group, const pc_replay *replay, pc_error *error);
pc_code pc_store_engine_read(hid_t group, pc_trace_record *record, pc_error *error);
int pc_store_engine_arrays(const pc_trace_record *record, pc_trace_array *arrays); /* as pc_trace_record_arrays */

#endif
