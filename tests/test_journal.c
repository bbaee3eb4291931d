/* The journal: what was added comes back, whatever happened to the file's end; what is not ours stays as it is. */
#include "sweep/journal.h"

#include "engine/alloc.h"
#include "results/columns.h"
#include "results/store/build.h"
#include "storage/sealed.h"
#include "sweep/journal_private.h"
#include "tests/engine_example.h"
#include "tests/store_example.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { HEADER = 32, HEAD = 40, RECORDS = 3 };

static pc_run_key key(uint64_t number) {
    return (pc_run_key){number, ~number};
}

/* Run 1 with a trace, 2 without, 3 infeasible. */
static pc_code add_record(pc_journal *journal, int64_t run, pc_error *error) {
    example made;
    make_example(&made);
    add_transfers(&made);
    add_engine(&made);
    pc_run_detail detail = {.replay = made.replay, .devices = DEVICES, .memory = made.memory, .block = made.block};
    pc_run_row row = run == 3 ? infeasible_row(run) : ok_row(run);
    return pc_journal_add(journal, key((uint64_t)run), (uint64_t)run * 10, &row, &made.schedule,
                          run == 1 ? &detail : NULL, error);
}

static void write_journal(const char *path) {
    pc_journal *journal;
    assert_int_equal(pc_journal_open(path, PC_JOURNAL_FRESH, &journal, NULL), PC_OK);
    for (int64_t run = 1; run <= RECORDS; run++) assert_int_equal(add_record(journal, run, NULL), PC_OK);
    assert_int_equal(pc_journal_sync(journal, NULL), PC_OK);
    pc_journal_close(journal);
}

static void assert_rows_equal(const pc_run_row *found, const pc_run_row *wanted) {
    int count;
    const pc_column *columns = pc_columns(&count);
    for (int i = 0; i < count; i++) {
        const char *one = (const char *)found + columns[i].field.place,
                   *other = (const char *)wanted + columns[i].field.place;
        if (strcmp(columns[i].field.name, "key") == 0) continue;
        if (columns[i].field.type == PC_FIELD_TEXT)
            assert_string_equal(one, other);
        else
            assert_memory_equal(one, other, columns[i].field.size);
    }
}

/* The first `count` records are there, as they were added. */
static void assert_records(const pc_journal *journal, int64_t count) {
    assert_int_equal(pc_journal_count(journal), count);
    for (int64_t i = 0; i < count; i++) {
        pc_run_row row, wanted = i == 2 ? infeasible_row(3) : ok_row(i + 1);
        char text[PC_RUN_KEY_SIZE];
        bool has_trace = false;
        assert_true(pc_run_key_equal(pc_journal_key(journal, i), key((uint64_t)i + 1)));
        assert_int_equal(pc_journal_labels(journal, i), 10 * (i + 1));
        assert_int_equal(pc_journal_row(journal, i, &row, NULL), PC_OK);
        assert_rows_equal(&row, &wanted);
        pc_run_key_text(key((uint64_t)i + 1), text);
        assert_string_equal(row.key, text);
        assert_int_equal(pc_journal_has_trace(journal, i, &has_trace, NULL), PC_OK);
        assert_int_equal(has_trace, i == 0);
    }
}

static void records_come_back(void **state) {
    const folder *at = *state;
    pc_journal *journal;
    write_journal(at->file);
    assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_GO_ON, &journal, NULL), PC_OK);
    assert_records(journal, RECORDS);
    example wanted;
    pc_trace_record record;
    const pc_engine_trace made_by_engine = engine_example;
    make_example(&wanted);
    assert_int_equal(pc_journal_trace(journal, 0, &record, NULL), PC_OK);
    assert_memory_equal(record.replay.trace.pass_start_ps, wanted.start, sizeof wanted.start);
    assert_memory_equal(record.memory, wanted.memory, sizeof wanted.memory);
    assert_int_equal(record.block.interval, 3);
    assert_true(record.has_transfers);
    assert_int_equal(record.replay.way, PC_WAY_EVENTS);
    assert_int_equal(record.replay.engine.flow_count, made_by_engine.flow_count);
    assert_memory_equal(record.replay.engine.flow_end_ps, made_by_engine.flow_end_ps,
                        (size_t)made_by_engine.flow_count * sizeof(pc_time));
    pc_trace_record_free(&record);
    assert_int_equal(add_record(journal, 1, NULL), PC_OK);
    assert_int_equal(pc_journal_count(journal), RECORDS + 1);
    pc_journal_remove(journal);
    assert_int_equal(count_entries(at->path), 0);
}

/* A trace that was read is written as it was: the same image, and the same part of a results file. */
static void a_trace_read_is_written_the_same(void **state) {
    const folder *at = *state;
    pc_journal *journal;
    pc_trace_record record;
    write_journal(at->file);
    assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_GO_ON, &journal, NULL), PC_OK);
    assert_int_equal(pc_journal_trace(journal, 0, &record, NULL), PC_OK);
    pc_run_row row = ok_row(1);
    pc_schedule shape = pc_trace_record_schedule(&record, "1f1b");
    pc_run_detail detail = pc_trace_record_detail(&record);
    assert_int_equal(pc_journal_add(journal, key(1), 10, &row, &shape, &detail, NULL), PC_OK);
    pc_trace_record_free(&record);
    pc_journal_close(journal);
    bytes all = read_bytes(at->file);
    uint64_t trace_size;
    memcpy(&trace_size, all.data + HEADER + 8, sizeof trace_size);
    uint32_t row_size;
    memcpy(&row_size, all.data + HEADER + 4, sizeof row_size);
    size_t record_size = HEAD + row_size + trace_size + 8;
    assert_memory_equal(all.data + HEADER, all.data + all.size - record_size, record_size);
    free(all.data);
}

/* Bytes of a trace that are not what was written, under a hash that is right, are refused, or are a trace that can be
 * written: nothing is read outside of it. */
static void a_trace_that_is_none_is_refused(void **state) {
    const folder *at = *state;
    example made;
    unsigned char *image;
    size_t size;
    long refused = 0, taken = 0;
    make_example(&made);
    add_transfers(&made);
    add_engine(&made);
    pc_run_detail detail = {.replay = made.replay, .devices = DEVICES, .memory = made.memory, .block = made.block};
    pc_run_row row = ok_row(1);
    assert_int_equal(pc_journal_trace_encode(&made.schedule, &detail, &image, &size, NULL), PC_OK);
    for (size_t i = 0; i < 2 * size; i++) {
        pc_trace_record record;
        pc_error error;
        size_t place = i / 2;
        if (i % 2) image[place] ^= 0x81; /* else it is cut off there */
        pc_code code = pc_journal_trace_decode("j", image, i % 2 ? size : place, &record, &error);
        assert_int_equal(code, i % 2 == 0 || code ? PC_ERROR_INPUT : PC_OK);
        if (code) assert_string_equal(error.message, "j: a trace is damaged; expected it as pipecast wrote it");
        refused += code != PC_OK;
        if (!code && taken++ % 50 == 0) {
            pc_results_writer *writer;
            pc_schedule shape = pc_trace_record_schedule(&record, "1f1b");
            pc_run_detail again = pc_trace_record_detail(&record);
            assert_int_equal(pc_results_create(at->file, &writer, NULL), PC_OK);
            assert_int_equal(pc_results_add_run(writer, &row, &shape, &again, NULL), PC_OK);
            pc_results_discard(writer);
        }
        if (!code) pc_trace_record_free(&record);
        if (i % 2) image[place] ^= 0x81;
    }
    assert_true(refused > (long)size && taken > 0);
    pc_free(image);
}

/* Cut off at every byte of the last record: the two before it are there, and a third can be added. */
static void a_half_written_record_is_cut_off(void **state) {
    const folder *at = *state;
    write_journal(at->file);
    bytes all = read_bytes(at->file);
    uint32_t row_size;
    size_t second = 0, last = HEADER;
    for (int i = 0; i < RECORDS - 1; i++) {
        uint64_t trace_size;
        second = last;
        memcpy(&row_size, all.data + last + 4, sizeof row_size);
        memcpy(&trace_size, all.data + last + 8, sizeof trace_size);
        last += HEAD + row_size + trace_size + 8;
    }
    assert_true(second > HEADER && last < all.size);
    for (size_t size = last; size < all.size; size += (size_t)test_part(13, 1)) {
        pc_journal *journal;
        write_bytes(at->file, all.data, size);
        assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_READ, &journal, NULL), PC_OK);
        assert_int_equal(pc_journal_count(journal), RECORDS - 1);
        pc_journal_close(journal);
        assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_GO_ON, &journal, NULL), PC_OK);
        assert_int_equal(add_record(journal, 3, NULL), PC_OK);
        if (size % 64 == 0) assert_records(journal, RECORDS);
        pc_journal_close(journal);
        bytes again = read_bytes(at->file);
        assert_int_equal(again.size, all.size);
        assert_memory_equal(again.data, all.data, all.size);
        free(again.data);
    }
    test_count("damage.journal", (long)(all.size - last));
    free(all.data);
}

/* Cut off anywhere: what was whole is there, and nothing else. */
static void a_cut_leaves_whole_records(void **state) {
    const folder *at = *state;
    write_journal(at->file);
    bytes all = read_bytes(at->file);
    long cuts = 0;
    int64_t most = 0;
    long edge = test_part(11, 1), step = test_part(211, 37);
    for (size_t size = HEADER; size < all.size; size += (size_t)(size < 512 ? edge : step), cuts++) {
        pc_journal *journal;
        write_bytes(at->file, all.data, size);
        assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_READ, &journal, NULL), PC_OK);
        int64_t count = pc_journal_count(journal);
        assert_true(count >= most && count < RECORDS);
        assert_records(journal, count);
        most = count;
        pc_journal_close(journal);
    }
    assert_int_equal(most, RECORDS - 1);
    test_count("damage.journal", cuts);
    free(all.data);
}

/* Records behind a damaged one are gone for good: they do not come back when one as long as it takes its place. */
static void what_follows_damage_does_not_come_back(void **state) {
    const folder *at = *state;
    pc_journal *journal;
    assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_FRESH, &journal, NULL), PC_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(add_record(journal, 2, NULL), PC_OK);
    pc_journal_close(journal);
    bytes all = read_bytes(at->file);
    size_t record = (all.size - HEADER) / 3;
    all.data[HEADER + 2 * record - 1] ^= 1;
    write_bytes(at->file, all.data, all.size);
    free(all.data);
    assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_GO_ON, &journal, NULL), PC_OK);
    assert_int_equal(pc_journal_count(journal), 1);
    assert_int_equal(add_record(journal, 2, NULL), PC_OK);
    pc_journal_close(journal);
    assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_READ, &journal, NULL), PC_OK);
    assert_int_equal(pc_journal_count(journal), 2);
    pc_journal_close(journal);
}

/* A text that fills its field, without room for the zero behind it; a byte too few; a byte too many. */
static void bytes_that_are_no_row(void **state) {
    (void)state;
    int count;
    const pc_column *columns = pc_columns(&count);
    pc_run_row row = ok_row(1), made;
    unsigned char whole[PC_JOURNAL_ROW_MAX + 1], longer[2 * PC_JOURNAL_ROW_MAX];
    size_t size = pc_journal_row_encode(&row, whole), at = 0, used;
    assert_true(pc_journal_row_decode(whole, size, &made));
    assert_false(pc_journal_row_decode(whole, size - 1, &made));
    whole[size] = 0;
    assert_false(pc_journal_row_decode(whole, size + 1, &made));
    int text = 0;
    for (; columns[text].field.type != PC_FIELD_TEXT || columns[text].field.size > 255; text++)
        at += columns[text].field.type == PC_FIELD_TEXT ? 1 + (size_t)whole[at] : columns[text].field.size;
    memcpy(longer, whole, at);
    longer[at] = (unsigned char)columns[text].field.size;
    memset(longer + at + 1, 'x', columns[text].field.size);
    used = at + 1 + columns[text].field.size;
    at += 1 + (size_t)whole[at];
    memcpy(longer + used, whole + at, size - at);
    assert_false(pc_journal_row_decode(longer, used + size - at, &made));
}

/* A flipped bit anywhere: the file is refused, or the records from there on are not there; none is another. */
static void a_flipped_bit_never_gives_another_record(void **state) {
    const folder *at = *state;
    write_journal(at->file);
    bytes all = read_bytes(at->file);
    long flips = 0;
    long edge = test_part(13, 1), step = test_part(1009, 211);
    for (size_t i = 0; i < all.size; i += (size_t)(i < 256 || all.size - i < 2048 ? edge : step), flips++) {
        pc_journal *journal;
        pc_error error = {0};
        all.data[i] ^= (char)(1 << (i % 8));
        write_bytes(at->file, all.data, all.size);
        pc_code code = pc_journal_open(at->file, PC_JOURNAL_GO_ON, &journal, &error);
        assert_int_equal(code, i < HEADER ? PC_ERROR_INPUT : PC_OK);
        if (!code) {
            assert_true(pc_journal_count(journal) < RECORDS);
            assert_records(journal, pc_journal_count(journal));
            pc_journal_close(journal);
        }
        all.data[i] ^= (char)(1 << (i % 8));
    }
    test_count("damage.journal", flips);
    free(all.data);
}

static void assert_refused(const char *path, pc_journal_mode mode, pc_code code, const char *part) {
    pc_journal *journal = NULL;
    pc_error error = {0};
    assert_int_equal(pc_journal_open(path, mode, &journal, &error), code);
    assert_null(journal);
    if (!strstr(error.message, part)) fail_msg("'%s' is not in '%s'", part, error.message);
    assert_non_null(strstr(error.message, path));
}

static void what_is_no_journal_stays_as_it_is(void **state) {
    const folder *at = *state;
    static const char *const texts[] = {"x", "run,scenario\n1,a\n", "pipecast-journax",
                                        "pipecast-results pipecast-results"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_bytes(at->file, texts[i], strlen(texts[i]));
        for (int mode = PC_JOURNAL_GO_ON; mode <= PC_JOURNAL_READ; mode++)
            assert_refused(at->file, (pc_journal_mode)mode, PC_ERROR_INPUT, "is no journal of pipecast");
        bytes found = read_bytes(at->file);
        assert_int_equal(found.size, strlen(texts[i]));
        free(found.data);
    }
    assert_refused(at->path, PC_JOURNAL_GO_ON, PC_ERROR_INPUT, "Is a directory");
    assert_refused("/dev/null", PC_JOURNAL_GO_ON, PC_ERROR_INPUT, "is not a regular file");
    assert_refused("/nowhere/x", PC_JOURNAL_GO_ON, PC_ERROR_INPUT, "No such file or directory");
    assert_refused("/nowhere/x", PC_JOURNAL_READ, PC_ERROR_INPUT, "No such file or directory");
}

/* Killed while the header was being written: as if it had not begun. */
static void a_piece_of_a_header_is_a_start(void **state) {
    const folder *at = *state;
    write_journal(at->file);
    bytes all = read_bytes(at->file);
    for (size_t size = 0; size < HEADER; size++) {
        pc_journal *journal;
        write_bytes(at->file, all.data, size);
        assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_GO_ON, &journal, NULL), PC_OK);
        assert_int_equal(pc_journal_count(journal), 0);
        pc_journal_close(journal);
        bytes found = read_bytes(at->file);
        assert_int_equal(found.size, HEADER);
        assert_memory_equal(found.data, all.data, HEADER);
        free(found.data);
    }
    free(all.data);
}

static void another_build_is_not_gone_on_with(void **state) {
    const folder *at = *state;
    write_journal(at->file);
    bytes all = read_bytes(at->file);
    uint64_t build;
    memcpy(&build, all.data + 16, sizeof build);
    assert_true(build == pc_build_hash());
    build++;
    memcpy(all.data + 16, &build, sizeof build);
    uint64_t check = pc_sealed_hash(PC_SEALED_HASH_START, all.data, 24);
    memcpy(all.data + 24, &check, sizeof check);
    write_bytes(at->file, all.data, all.size);
    free(all.data);
    assert_refused(at->file, PC_JOURNAL_GO_ON, PC_ERROR_INPUT, "of another build of pipecast");
    assert_refused(at->file, PC_JOURNAL_READ, PC_ERROR_INPUT, "of another build of pipecast");
    pc_journal *journal;
    assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_FRESH, &journal, NULL), PC_OK);
    assert_int_equal(pc_journal_count(journal), 0);
    pc_journal_close(journal);
}

/* Of a child that ends the hold ends, too. */
static void one_process_holds_it(void **state) {
    const folder *at = *state;
    int ready[2];
    char byte = 0;
    write_journal(at->file);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        pc_journal *held;
        byte = pc_journal_open(at->file, PC_JOURNAL_GO_ON, &held, NULL) == PC_OK;
        if (write(ready[1], &byte, 1) != 1) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    assert_refused(at->file, PC_JOURNAL_GO_ON, PC_ERROR_IO, "held by another pipecast");
    assert_refused(at->file, PC_JOURNAL_FRESH, PC_ERROR_IO, "held by another pipecast");
    assert_int_equal(pc_journal_check_free(at->file, NULL), PC_ERROR_IO);
    pc_journal *journal;
    assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_READ, &journal, NULL), PC_OK);
    assert_records(journal, RECORDS);
    pc_journal_close(journal);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(pc_journal_check_free(at->file, NULL), PC_OK);
    assert_int_equal(pc_journal_check_free(at->path, NULL), PC_OK); /* a folder; nobody holds it */
    assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_GO_ON, &journal, NULL), PC_OK);
    assert_records(journal, RECORDS);
    pc_journal_close(journal);
}

static void without_a_name_it_leaves_nothing(void **state) {
    const folder *at = *state;
    pc_journal *journal;
    setenv("TMPDIR", at->path, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pc_journal_open(NULL, PC_JOURNAL_GO_ON, &journal, NULL), PC_OK);
        for (int64_t run = 1; run <= RECORDS; run++) assert_int_equal(add_record(journal, run, NULL), PC_OK);
        assert_records(journal, RECORDS);
        assert_int_equal(count_entries(at->path), 0);
        pc_journal_close(journal);
        setenv("TMPDIR", "/nowhere", 1); /* then in memory */
    }
    unsetenv("TMPDIR");
    pc_journal_close(NULL);
    pc_journal_remove(NULL);
}

/* A limit on the size of files fails a write as a full disk does. */
static void a_full_disk_leaves_whole_records(void **state) {
    const folder *at = *state;
    struct rlimit before, small;
    pc_journal *journal;
    write_journal(at->file);
    struct stat status;
    assert_int_equal(stat(at->file, &status), 0);
    assert_int_equal(pc_journal_open(at->file, PC_JOURNAL_GO_ON, &journal, NULL), PC_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    small = before;
    small.rlim_cur = (rlim_t)status.st_size + 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pc_error error = {0};
    pc_code code = add_record(journal, 2, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(code, PC_ERROR_IO);
    assert_non_null(strstr(error.message, "cannot write: File too large"));
    assert_records(journal, RECORDS);
    pc_journal_close(journal);
    struct stat after;
    assert_int_equal(stat(at->file, &after), 0);
    assert_int_equal(after.st_size, status.st_size);
}

static void refused_allocations_are_reported(void **state) {
    const folder *at = *state;
    write_journal(at->file);
    pc_code code = PC_ERROR_NO_MEMORY;
    for (long after = 0; code != PC_OK; after++) {
        pc_journal *journal = NULL;
        pc_trace_record record = {0};
        assert_true(after < 1000);
        pc_alloc_fail_after(after);
        code = pc_journal_open(at->file, PC_JOURNAL_GO_ON, &journal, NULL);
        if (!code) code = pc_journal_trace(journal, 0, &record, NULL);
        if (!code) code = add_record(journal, 1, NULL);
        pc_alloc_fail_after(-1);
        assert_true(code == PC_OK || code == PC_ERROR_NO_MEMORY);
        pc_trace_record_free(&record);
        if (journal && code) assert_records(journal, RECORDS);
        pc_journal_close(journal);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(records_come_back),
        TEST(a_trace_read_is_written_the_same),
        TEST(a_trace_that_is_none_is_refused),
        TEST(a_half_written_record_is_cut_off),
        TEST(a_cut_leaves_whole_records),
        TEST(what_follows_damage_does_not_come_back),
        TEST(bytes_that_are_no_row),
        TEST(a_flipped_bit_never_gives_another_record),
        TEST(what_is_no_journal_stays_as_it_is),
        TEST(a_piece_of_a_header_is_a_start),
        TEST(another_build_is_not_gone_on_with),
        TEST(one_process_holds_it),
        TEST(without_a_name_it_leaves_nothing),
        TEST(a_full_disk_leaves_whole_records),
        TEST(refused_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
