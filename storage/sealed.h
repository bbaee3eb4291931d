/* sealed.h: what results and profiles have in common: HDF5 files that end in a hash of themselves.
 *
 * A line after the end of what HDF5 reads: the FNV-1a hash of all before it. HDF5 1.10 may crash on a damaged file, so
 * that it only gets to see one whose hash is right. HDF5 ignores the line, and drops it when it changes the file.
 */
#ifndef PC_STORAGE_SEALED_H
#define PC_STORAGE_SEALED_H

#include "engine/error.h"
#include "storage/h5.h"
#include "storage/replace.h"

#include <stddef.h>
#include <stdint.h>

/* What a file is: in its attributes `format` and `format_version`, and in messages. */
typedef struct pc_sealed_kind {
    const char *format;  /* "pipecast-results" */
    const char *article; /* "a results file" */
    int64_t version;     /* the newest that is understood; rises when a file can no longer be read by the old rules */
} pc_sealed_kind;

/* FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923), of more bytes; start from PC_SEALED_HASH_START. Seals, journals, the
 * hash of a profile and tests/data/trace_hashes.txt hold its values; what no file holds is hashed by engine/hash.h. */
#define PC_SEALED_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t pc_sealed_hash(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Writes the attributes that pc_sealed_open looks for, and the program's version. */
bool pc_sealed_describe(hid_t file, const pc_sealed_kind *kind);

/* Opens a file for reading within a quiet scope (h5.h); the caller closes *file. PC_ERROR_INPUT with the path where
 * there is none, where it is no HDF5 file, cut short or damaged, of another kind, or of a newer version. */
pc_code pc_sealed_open(const char *path, const pc_sealed_kind *kind, hid_t *file, pc_error *error);

/* The message for what turns out to be damaged later. */
pc_code pc_sealed_refuse_damaged(const char *path, pc_error *error);

/* Writes of `content` what a file of its kind holds, but for what pc_sealed_describe writes. */
typedef pc_code pc_sealed_body(hid_t file, const void *content, pc_error *error);

/* A file built in memory, described, sealed and put in the place of `path`, whole or not at all. */
pc_code pc_sealed_write(const char *path, const pc_sealed_kind *kind, pc_sealed_body *body, const void *content,
                        pc_error *error);

/* The seal of a file on the disk that HDF5 has closed: its seal is appended to it. */
pc_code pc_sealed_finish(pc_replacement *replacement, pc_error *error);

#endif
