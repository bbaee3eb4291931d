/* store_private.h: private to results/store_*.c: what the writer and the reader of a results file must agree on.
 *
 * The layout as users see it is docs/results-format.md.
 */
#ifndef PC_RESULTS_STORE_PRIVATE_H
#define PC_RESULTS_STORE_PRIVATE_H

#include "engine/error.h"
#include "results/h5.h"
#include "results/store.h"

#include <stdbool.h>
#include <stdint.h>

#define PC_STORE_FORMAT "pipecast-results"
/* Rises when a file can no longer be read by the rules of the one before; a new column or attribute is no reason. */
#define PC_STORE_FORMAT_VERSION 1

/* A line after the end of what HDF5 reads: the FNV-1a hash of all before it. HDF5 1.10 may crash on a damaged file, so
 * that it only gets to see one whose hash is right. HDF5 ignores the line, and drops it when it changes the file. */
#define PC_STORE_SEAL_PREFIX "\npipecast-fnv1a64 "
enum {
    PC_STORE_SEAL_PREFIX_SIZE = sizeof PC_STORE_SEAL_PREFIX - 1,
    PC_STORE_SEAL_SIZE = PC_STORE_SEAL_PREFIX_SIZE + 17
};

/* FNV-1a, 64 bits, of more bytes; start from PC_STORE_HASH_START. */
#define PC_STORE_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t pc_store_hash(uint64_t hash, const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The trace of one run as a group of its own; and back. PC_ERROR_INPUT where the group is not a trace. */
pc_code pc_store_trace_write(hid_t group, const pc_schedule *schedule, const pc_run_detail *detail, pc_error *error);
pc_code pc_store_trace_read(hid_t group, pc_trace_record *record, pc_error *error);

#endif
