/* Journals, of records whose hashes are mostly right: what a row and a trace in them may be, and what follows damage.
 *
 * The file is made of the input: a byte (bit 0: the header's hash is wrong, bit 1: it is gone on with), then records. A
 * record is a byte (bit 0: wrong hash, bit 1: wrong mark, bit 2: the row is cut, bit 3: it is longer, bit 4: there is
 * no trace); then the number of bytes to change in a row that is right (1 byte). For each of those comes its place (2
 * bytes) and what it becomes. In a trace that is right it is the same, behind how many bytes of it there are less than
 * all (2 bytes). */
#include "sweep/journal.h"
#include "engine/alloc.h"
#include "results/store/build.h"
#include "storage/sealed.h"
#include "sweep/journal_private.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/held_file.h"

#include <fcntl.h>
#include <string.h>

/* A journal that is a link is refused; the path of a file in memory is one. meson.build puts these before the real
 * ones. */
int __real_open(const char *path, int flags, ...);
int __real_open64(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...) {
    return __real_open(path, flags & ~O_NOFOLLOW, 0600);
}

int __wrap_open64(const char *path, int flags, ...) {
    return __real_open64(path, flags & ~O_NOFOLLOW, 0600);
}

enum { FILE_MAX = 1 << 17, RECORDS_MAX = 6 };

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

typedef struct made_file {
    unsigned char bytes[FILE_MAX];
    size_t size;
    int whole; /* records before the first damaged one */
    bool is_damaged;
} made_file;

static unsigned take(input *from) {
    if (from->left == 0) return 0;
    from->left--;
    return *from->at++;
}

static unsigned take_pair(input *from) {
    unsigned low = take(from);
    return low | take(from) << 8;
}

static void put(made_file *file, const void *bytes, size_t size) {
    if (size > 0) memcpy(file->bytes + file->size, bytes, size); /* no bytes may have no place */
    file->size += size;
}

static void put_header(made_file *file, bool is_wrong) {
    pc_journal_header header = {.build = pc_build_hash()};
    memcpy(header.magic, "pipecast-journal", sizeof header.magic);
    header.check = pc_sealed_hash(PC_SEALED_HASH_START, &header, sizeof header - sizeof header.check) + is_wrong;
    put(file, &header, sizeof header);
}

static size_t make_row(input *from, unsigned flags, unsigned char row[PC_JOURNAL_ROW_MAX + 1]) {
    static pc_run_row good;
    if (!good.scenario[0]) {
        pc_run_row_clear(&good);
        good.run = 1;
        strcpy(good.scenario, "a");
        strcpy(good.name, "b");
    }
    size_t size = pc_journal_row_encode(&good, row);
    for (unsigned changes = take(from); changes > 0; changes--) {
        size_t place = take_pair(from) % size;
        row[place] = (unsigned char)take(from);
    }
    if (flags & 4) size -= 1 + take(from) % 64;
    if (flags & 8) row[size++] = 0;
    return size;
}

/* Of two devices, two microbatches and three passes; whatever else a trace has is not there, or empty. */
static unsigned char *make_trace(input *from, size_t *size) {
    pc_schedule shape = {.devices = 2, .microbatches = 2, .chunks = 1};
    pc_time times[3] = {0};
    int32_t stages[3] = {0, 0, 1};
    int64_t bytes[3] = {0};
    pc_pass passes[3] = {{0}};
    pc_run_detail detail = {
        .replay = {
            .devices = 2,
            .device_start_ps = times,
            .device_end_ps = times,
            .device_busy_ps = times,
            .device_peak_bytes = bytes,
            .trace = {
                .pass_count = 3, .pass_device = stages, .pass = passes, .pass_start_ps = times, .pass_end_ps = times}}};
    unsigned char *trace = NULL;
    fuzz_require(!pc_journal_trace_encode(&shape, &detail, &trace, size, NULL), "memory is not short");
    size_t less = take_pair(from);
    *size -= less < *size ? less : 0;
    for (unsigned changes = take(from); changes > 0; changes--) {
        size_t place = take_pair(from) % *size;
        trace[place] = (unsigned char)take(from);
    }
    return trace;
}

static void put_record(input *from, made_file *file) {
    unsigned char row[PC_JOURNAL_ROW_MAX + 1];
    unsigned flags = take(from);
    size_t start = file->size, row_size = make_row(from, flags, row), trace_size = 0;
    unsigned char *trace = flags & 16 ? NULL : make_trace(from, &trace_size);
    pc_journal_head head = {.mark = PC_JOURNAL_MARK + (flags >> 1 & 1),
                            .row_size = (uint32_t)row_size,
                            .trace_size = trace_size,
                            .key = {start, flags}};
    put(file, &head, sizeof head);
    put(file, row, row_size);
    put(file, trace, trace_size);
    pc_free(trace);
    uint64_t hash = pc_sealed_hash(PC_SEALED_HASH_START, file->bytes + start, file->size - start) + (flags & 1);
    put(file, &hash, sizeof hash);
    file->is_damaged = file->is_damaged || flags & 3;
    file->whole += !file->is_damaged;
}

static void read_trace(const pc_journal *journal, int64_t index) {
    pc_trace_record record = {0};
    pc_error error = {0};
    bool has_trace = false;
    pc_code code = pc_journal_has_trace(journal, index, &has_trace, &error);
    fuzz_require(code == PC_OK, "a record has a trace or has none");
    if (!has_trace) return;
    code = pc_journal_trace(journal, index, &record, &error);
    fuzz_check_error(code, &error);
    fuzz_require(!code == (record.devices > 0), "a trace is there or is refused");
    pc_trace_record_free(&record);
}

static void read_records(const pc_journal *journal) {
    for (int64_t i = 0; i < pc_journal_count(journal); i++) {
        pc_run_row row;
        pc_error error = {0};
        pc_code code = pc_journal_row(journal, i, &row, &error);
        fuzz_check_error(code, &error);
        if (!code) fuzz_check_row(&row);
        read_trace(journal, i);
    }
}

/* What is damaged is cut off, and the next record stands in its place. */
static void go_on(const char *path, int whole) {
    pc_journal *journal = NULL;
    pc_error error = {0};
    pc_run_row row;
    pc_run_row_clear(&row);
    fuzz_require(pc_journal_open(path, PC_JOURNAL_GO_ON, &journal, &error) == PC_OK, "it can be gone on with");
    pc_code code = pc_journal_add(journal, (pc_run_key){1, 2}, 3, &row, NULL, NULL, &error);
    fuzz_require(code == PC_OK, "a record can be added");
    pc_journal_close(journal);
    fuzz_require(pc_journal_open(path, PC_JOURNAL_READ, &journal, &error) == PC_OK, "it can be read again");
    fuzz_require(pc_journal_count(journal) == whole + 1, "what was whole is there, and what was added");
    pc_journal_close(journal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static made_file file;
    input from = {data, size};
    pc_journal *journal = NULL;
    pc_error error = {0};
    if (size > FILE_MAX / 2) return -1;
    unsigned flags = take(&from);
    bool is_wrong = flags & 1;
    file.size = 0;
    file.whole = 0;
    file.is_damaged = false;
    put_header(&file, is_wrong);
    for (int i = 0; i < RECORDS_MAX && from.left; i++) put_record(&from, &file);
    const char *path = held_file_put(file.bytes, file.size);
    pc_code code = pc_journal_open(path, PC_JOURNAL_READ, &journal, &error);
    fuzz_check_error(code, &error);
    fuzz_require((code == PC_ERROR_INPUT) == is_wrong, "the header decides whether it is a journal");
    if (code) return 0;
    fuzz_require(pc_journal_count(journal) == file.whole, "whole records are there, and none behind a damaged one");
    read_records(journal);
    pc_journal_close(journal);
    if (flags & 2) go_on(path, file.whole);
    return 0;
}
