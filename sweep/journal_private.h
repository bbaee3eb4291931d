/* journal_private.h: private to sweep/journal_*.c: what a record holds, as bytes. */
#ifndef PC_SWEEP_JOURNAL_PRIVATE_H
#define PC_SWEEP_JOURNAL_PRIVATE_H

#include "sweep/journal.h"

#include <stddef.h>
#include <stdint.h>

/* Room for any row: a text is at most as long as its field, a number has eight bytes, a text's length one. */
enum { PC_JOURNAL_ROW_MAX = sizeof(pc_run_row) + 512 };

/* The row column by column: numbers as they are in memory, texts behind their length. Returns how many bytes. */
size_t pc_journal_row_encode(const pc_run_row *row, unsigned char bytes[PC_JOURNAL_ROW_MAX]);

/* And back: false if the bytes are no row. */
bool pc_journal_row_decode(const unsigned char *bytes, size_t size, pc_run_row *row);

/* A trace as bytes, of this build alone (journal_trace.c). The caller frees them. PC_ERROR_INPUT, in which `path` is
 * named, where bytes are no trace. */
pc_code pc_journal_trace_encode(const pc_schedule *schedule, const pc_run_detail *detail, unsigned char **bytes,
                                size_t *size, pc_error *error);
pc_code pc_journal_trace_decode(const char *path, const unsigned char *bytes, size_t size, pc_trace_record *record,
                                pc_error *error);

/* The file: a header, and records one behind the other. Numbers are in the byte order of the machine; the build's hash
 * in the header is another one on a machine with the other order. */
typedef struct pc_journal_header {
    char magic[16];
    uint64_t build;
    uint64_t check; /* of what stands before it: pc_sealed_hash */
} pc_journal_header;

typedef struct pc_journal_head {
    uint32_t mark; /* PC_JOURNAL_MARK */
    uint32_t row_size;
    uint64_t trace_size; /* 0: none */
    pc_run_key key;
    uint64_t labels;
} pc_journal_head; /* then the row, the trace, and a hash of all of the record before it, eight bytes */

enum { PC_JOURNAL_MARK = 0x4352504a };

_Static_assert(sizeof(pc_journal_header) == 32 && sizeof(pc_journal_head) == 40, "both are written without padding");

typedef struct pc_journal_entry {
    pc_run_key key;
    uint64_t labels;
    int64_t offset; /* of its head */
} pc_journal_entry;

/* An open file with its records; `descriptor` is the caller's. Without one, -1, what would stand in the file is in
 * memory, but for the header and the hashes, which are for files that damage can come to. */
typedef struct pc_journal_file {
    int descriptor;
    unsigned char *memory;
    int64_t room; /* of it, in bytes */
    int64_t size; /* up to the end of the last whole record */
    pc_journal_entry *entries;
    int64_t count, capacity;
} pc_journal_file;

/* Finds the header and all whole records. PC_ERROR_INPUT if the file is no journal, its header is damaged or of
 * another build. *is_new where it is empty or ends within a header: nothing was found, and one must be written. */
pc_code pc_journal_file_scan(pc_journal_file *file, const char *path, bool *is_new, pc_error *error);

/* Makes it an empty journal; only for one that is new, or is a journal. */
pc_code pc_journal_file_start(pc_journal_file *file, const char *path, pc_error *error);

/* Appends a record; on failure the file is as before. */
pc_code pc_journal_file_append(pc_journal_file *file, const char *path, const pc_journal_head *head,
                               const unsigned char *row, const unsigned char *trace, pc_error *error);

/* Whether it begins as a journal, of whatever build. */
bool pc_journal_file_is_journal(const pc_journal_file *file);

/* Bytes of a record, which is known to be whole. */
pc_code pc_journal_file_read(const pc_journal_file *file, const char *path, int64_t offset, void *bytes, size_t size,
                             pc_error *error);

void pc_journal_file_free(pc_journal_file *file);

#endif
