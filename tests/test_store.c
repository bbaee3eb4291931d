/* The results file: written, read back, read by others, refused where it is damaged. Rows and traces are made here. */
#include "engine/alloc.h"
#include "results/columns.h"
#include "results/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEAL_SIZE = 35 }; /* "\npipecast-fnv1a64 ", 16 digits, a newline: docs/results-format.md */

/* --- a folder of its own for every test --- */

typedef struct folder {
    char path[64];
    char file[128]; /* "<path>/results.h5" */
} folder;

static int make_folder(void **state) {
    folder *made = calloc(1, sizeof *made);
    snprintf(made->path, sizeof made->path, "/tmp/pipecast-store-XXXXXX");
    if (!made || !mkdtemp(made->path)) return -1;
    snprintf(made->file, sizeof made->file, "%s/results.h5", made->path);
    *state = made;
    return 0;
}

static int remove_folder(void **state) {
    folder *made = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", made->path);
    int status = system(command);
    free(made);
    return status;
}

static int count_entries(const char *path) {
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) count++;
    closedir(directory);
    return count;
}

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static bytes read_bytes(const char *path) {
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    bytes all = {0};
    fseek(stream, 0, SEEK_END);
    all.size = (size_t)ftell(stream);
    rewind(stream);
    all.data = malloc(all.size + 1);
    assert_int_equal(fread(all.data, 1, all.size, stream), all.size);
    fclose(stream);
    return all;
}

static void write_bytes(const char *path, const char *data, size_t size) {
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

/* --- rows and a trace --- */

static pc_run_row ok_row(int64_t run) {
    pc_run_row row;
    pc_run_row_clear(&row);
    row.run = run;
    snprintf(row.scenario, sizeof row.scenario, "zero-bubble");
    snprintf(row.name, sizeof row.name, "1.5B-m24.zb-h%d \xc3\xa9", (int)run);
    snprintf(row.schedule, sizeof row.schedule, "1f1b");
    row.gpus = row.pp = 8;
    row.tp = row.dp = 1;
    row.status = PC_RUN_OK;
    row.iteration_s = 1.0 / 3 * (double)run;
    row.bubble_rate_span = 0.2431;
    row.trace_hash = UINT64_C(0xfedcba9876543210);
    return row;
}

static pc_run_row infeasible_row(int64_t run) {
    pc_run_row row;
    pc_run_row_clear(&row);
    row.run = run;
    row.status = PC_RUN_INFEASIBLE;
    memset(row.message, 'm', sizeof row.message - 1); /* as long as there is room */
    return row;
}

/* Two devices, two microbatches, F and BW of one second each: device 1 may start when device 0 has done its F. */
enum { DEVICES = 2, PASSES = 8, LEVELS = 8 };

typedef struct example {
    pc_schedule schedule;
    pc_replay replay;
    int32_t pass_device[PASSES], level_device[LEVELS];
    pc_pass pass[PASSES];
    pc_time start[PASSES], end[PASSES], level_time[LEVELS];
    int64_t level[LEVELS];
    pc_time device_start[DEVICES], device_end[DEVICES], device_busy[DEVICES];
    int64_t device_peak[DEVICES];
} example;

static void link_arrays(example *made) {
    made->replay.device_start_ps = made->device_start;
    made->replay.device_end_ps = made->device_end;
    made->replay.device_busy_ps = made->device_busy;
    made->replay.device_peak_bytes = made->device_peak;
    made->replay.trace = (pc_replay_trace){.pass_count = PASSES,
                                           .pass_device = made->pass_device,
                                           .pass = made->pass,
                                           .pass_start_ps = made->start,
                                           .pass_end_ps = made->end,
                                           .level_count = LEVELS,
                                           .level_device = made->level_device,
                                           .level_time_ps = made->level_time,
                                           .level_bytes = made->level};
}

static void make_example(example *made) {
    static const pc_time starts[PASSES] = {0, 1, 3, 5, 1, 2, 3, 4}; /* F0 F1 BW0 BW1 | F0 BW0 F1 BW1, in seconds */
    static const int16_t kinds[PASSES] = {PC_PASS_F, PC_PASS_F,  PC_PASS_BW, PC_PASS_BW,
                                          PC_PASS_F, PC_PASS_BW, PC_PASS_F,  PC_PASS_BW};
    static const int32_t microbatches[PASSES] = {0, 1, 0, 1, 0, 0, 1, 1};
    memset(made, 0, sizeof *made);
    made->schedule = (pc_schedule){.name = "1f1b", .devices = DEVICES, .microbatches = 2, .chunks = 1};
    link_arrays(made);
    for (int i = 0; i < PASSES; i++) {
        made->pass_device[i] = made->level_device[i] = i / 4;
        made->pass[i] = (pc_pass){.microbatch = microbatches[i], .chunk = 0, .kind = kinds[i]};
        made->start[i] = made->level_time[i] = starts[i] * PC_PICOSECONDS_PER_SECOND;
        made->end[i] = made->start[i] + PC_PICOSECONDS_PER_SECOND;
        made->level[i] = (int64_t)(i % 4) << 30;
    }
    for (int d = 0; d < DEVICES; d++) {
        made->device_start[d] = made->start[4 * d];
        made->device_end[d] = made->end[4 * d + 3];
        made->device_busy[d] = 4 * PC_PICOSECONDS_PER_SECOND;
        made->device_peak[d] = INT64_C(3) << 30;
    }
    made->replay.devices = DEVICES;
    made->replay.span_ps = made->replay.makespan_ps = 6 * PC_PICOSECONDS_PER_SECOND;
    made->replay.bubble_rate_span = made->replay.bubble_rate_makespan = 1.0 / 3;
    made->replay.peak_bytes = INT64_C(3) << 30;
    made->replay.trace_hash = UINT64_C(0xfedcba9876543210);
}

static pc_code add_example(pc_results_writer *writer, pc_error *error) {
    example made;
    make_example(&made);
    pc_run_row rows[] = {ok_row(1), infeasible_row(2), ok_row(3)};
    pc_code code = pc_results_add_scenario(writer, "zero-bubble", "name: zero-bubble\n", 18, error);
    if (!code) code = pc_results_add_run(writer, &rows[0], &made.schedule, &made.replay, error);
    if (!code) code = pc_results_add_run(writer, &rows[1], NULL, NULL, error);
    made.replay.out_of_memory = true;
    made.replay.oom = (pc_out_of_memory){.device = 1,
                                         .pass = {.microbatch = 1, .chunk = 0, .kind = PC_PASS_W},
                                         .time_ps = 5,
                                         .requested_bytes = 6,
                                         .level_bytes = 7,
                                         .capacity_bytes = 8};
    return code ? code : pc_results_add_run(writer, &rows[2], &made.schedule, &made.replay, error);
}

static pc_code write_example(const char *path, pc_error *error) {
    pc_results_writer *writer;
    pc_code code = pc_results_create(path, &writer, error);
    if (code) return code;
    code = add_example(writer, error);
    if (!code) return pc_results_commit(writer, error);
    pc_results_discard(writer);
    return code;
}

static void assert_rows_equal(const pc_run_row *a, const pc_run_row *b) {
    int count;
    const pc_column *columns = pc_columns(&count);
    for (int i = 0; i < count; i++) {
        char text_a[PC_COLUMN_TEXT_SIZE], text_b[PC_COLUMN_TEXT_SIZE];
        assert_int_equal(pc_column_defined(&columns[i], a), pc_column_defined(&columns[i], b));
        if (!pc_column_defined(&columns[i], a)) continue;
        if (columns[i].type == PC_COLUMN_INTEGER || columns[i].type == PC_COLUMN_REAL) {
            assert_memory_equal((const char *)a + columns[i].offset, (const char *)b + columns[i].offset, 8);
            continue;
        }
        pc_column_text(&columns[i], a, text_a, sizeof text_a);
        pc_column_text(&columns[i], b, text_b, sizeof text_b);
        assert_string_equal(text_a, text_b);
    }
}

/* --- there and back --- */

static void rows_come_back(void **state) {
    const folder *at = *state;
    pc_error error = {0};
    assert_int_equal(write_example(at->file, &error), PC_OK);
    pc_results_reader *reader;
    assert_int_equal(pc_results_open(at->file, &reader, &error), PC_OK);
    assert_int_equal(pc_results_run_count(reader), 3);
    pc_run_row wanted[] = {ok_row(1), infeasible_row(2), ok_row(3)};
    for (int i = 0; i < 3; i++) assert_rows_equal(pc_results_row(reader, i), &wanted[i]);
    pc_results_close(reader);
    assert_int_equal(count_entries(at->path), 1);
}

static void assert_traces_equal(const pc_trace_record *found, const example *wanted) {
    assert_int_equal(found->devices, DEVICES);
    assert_int_equal(found->microbatches, 2);
    assert_int_equal(found->chunks, 1);
    assert_int_equal(found->placement, PC_PLACEMENT_LINEAR);
    const pc_replay *replay = &found->replay;
    assert_int_equal(replay->devices, DEVICES);
    assert_int_equal(replay->span_ps, wanted->replay.span_ps);
    assert_int_equal(replay->makespan_ps, wanted->replay.makespan_ps);
    assert_true(replay->bubble_rate_span == wanted->replay.bubble_rate_span);
    assert_true(replay->bubble_rate_makespan == wanted->replay.bubble_rate_makespan);
    assert_int_equal(replay->peak_bytes, wanted->replay.peak_bytes);
    assert_true(replay->trace_hash == wanted->replay.trace_hash);
    assert_memory_equal(replay->device_start_ps, wanted->device_start, sizeof wanted->device_start);
    assert_memory_equal(replay->device_end_ps, wanted->device_end, sizeof wanted->device_end);
    assert_memory_equal(replay->device_busy_ps, wanted->device_busy, sizeof wanted->device_busy);
    assert_memory_equal(replay->device_peak_bytes, wanted->device_peak, sizeof wanted->device_peak);
    assert_int_equal(replay->trace.pass_count, PASSES);
    assert_int_equal(replay->trace.level_count, LEVELS);
    assert_memory_equal(replay->trace.pass_device, wanted->pass_device, sizeof wanted->pass_device);
    assert_memory_equal(replay->trace.pass, wanted->pass, sizeof wanted->pass);
    assert_memory_equal(replay->trace.pass_start_ps, wanted->start, sizeof wanted->start);
    assert_memory_equal(replay->trace.pass_end_ps, wanted->end, sizeof wanted->end);
    assert_memory_equal(replay->trace.level_device, wanted->level_device, sizeof wanted->level_device);
    assert_memory_equal(replay->trace.level_time_ps, wanted->level_time, sizeof wanted->level_time);
    assert_memory_equal(replay->trace.level_bytes, wanted->level, sizeof wanted->level);
}

static void traces_come_back(void **state) {
    const folder *at = *state;
    pc_error error = {0};
    assert_int_equal(write_example(at->file, &error), PC_OK);
    pc_results_reader *reader;
    assert_int_equal(pc_results_open(at->file, &reader, &error), PC_OK);
    example wanted;
    make_example(&wanted);
    pc_trace_record found = {0};
    assert_int_equal(pc_results_read_trace(reader, 1, &found, &error), PC_OK);
    assert_traces_equal(&found, &wanted);
    assert_false(found.replay.out_of_memory);
    pc_trace_record_free(&found);

    assert_int_equal(pc_results_read_trace(reader, 3, &found, &error), PC_OK);
    assert_traces_equal(&found, &wanted);
    assert_true(found.replay.out_of_memory);
    assert_int_equal(found.replay.oom.device, 1);
    assert_int_equal(found.replay.oom.pass.kind, PC_PASS_W);
    assert_int_equal(found.replay.oom.capacity_bytes, 8);
    pc_trace_record_free(&found);

    assert_int_equal(pc_results_read_trace(reader, 2, &found, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "run 2 kept no trace"));
    assert_int_equal(pc_results_read_trace(reader, -7, &found, &error), PC_ERROR_INPUT);
    pc_trace_record_free(&found);
    pc_results_close(reader);
}

static void many_rows_come_back(void **state) {
    const folder *at = *state;
    enum { COUNT = 40000 }; /* more than a chunk of the numbers holds */
    pc_results_writer *writer;
    assert_int_equal(pc_results_create(at->file, &writer, NULL), PC_OK);
    for (int64_t i = 0; i < COUNT; i++) {
        pc_run_row row = ok_row(i);
        assert_int_equal(pc_results_add_run(writer, &row, NULL, NULL, NULL), PC_OK);
    }
    assert_int_equal(pc_results_commit(writer, NULL), PC_OK);
    pc_results_reader *reader;
    assert_int_equal(pc_results_open(at->file, &reader, NULL), PC_OK);
    assert_int_equal(pc_results_run_count(reader), COUNT);
    for (int64_t i = 0; i < COUNT; i += 997) {
        pc_run_row row = ok_row(i);
        assert_rows_equal(pc_results_row(reader, i), &row);
    }
    pc_results_close(reader);
}

static void no_rows_come_back(void **state) {
    const folder *at = *state;
    pc_results_writer *writer;
    pc_results_reader *reader;
    assert_int_equal(pc_results_create(at->file, &writer, NULL), PC_OK);
    assert_int_equal(pc_results_commit(writer, NULL), PC_OK);
    assert_int_equal(pc_results_open(at->file, &reader, NULL), PC_OK);
    assert_int_equal(pc_results_run_count(reader), 0);
    pc_results_close(reader);
}

static void same_rows_give_the_same_bytes(void **state) {
    const folder *at = *state;
    char other[160];
    snprintf(other, sizeof other, "%s/other.h5", at->path);
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    sleep(1); /* HDF5 would note the time, in seconds */
    assert_int_equal(write_example(other, NULL), PC_OK);
    bytes a = read_bytes(at->file), b = read_bytes(other);
    assert_int_equal(a.size, b.size);
    assert_memory_equal(a.data, b.data, a.size);
    free(a.data);
    free(b.data);
}

static void two_writers_do_not_meet(void **state) {
    const folder *at = *state;
    char other[160];
    snprintf(other, sizeof other, "%s/other.h5", at->path);
    pc_results_writer *one, *two;
    assert_int_equal(pc_results_create(at->file, &one, NULL), PC_OK);
    assert_int_equal(pc_results_create(other, &two, NULL), PC_OK);
    assert_int_equal(add_example(one, NULL), PC_OK);
    assert_int_equal(pc_results_commit(one, NULL), PC_OK);
    assert_int_equal(pc_results_commit(two, NULL), PC_OK);
    pc_results_reader *reader;
    assert_int_equal(pc_results_open(other, &reader, NULL), PC_OK);
    assert_int_equal(pc_results_run_count(reader), 0);
    pc_results_close(reader);
}

static void a_run_number_has_one_trace(void **state) {
    const folder *at = *state;
    pc_results_writer *writer;
    pc_error error = {0};
    example made;
    make_example(&made);
    pc_run_row row = ok_row(5);
    assert_int_equal(pc_results_create(at->file, &writer, NULL), PC_OK);
    assert_int_equal(pc_results_add_run(writer, &row, &made.schedule, &made.replay, NULL), PC_OK);
    assert_int_equal(pc_results_add_run(writer, &row, &made.schedule, &made.replay, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "two runs with the number 5"));
    pc_results_discard(writer);
}

/* --- other readers --- */

static bool has_program(const char *command) {
    char line[256];
    snprintf(line, sizeof line, "%s >/dev/null 2>&1", command);
    return system(line) == 0;
}

/* Debian's h5py belongs to Debian's Python, which need not be the first one on the path. */
static const char *find_h5py(void) {
    static const char *const names[] = {"python3", "/usr/bin/python3"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char command[128];
        snprintf(command, sizeof command, "%s -c 'import h5py'", names[i]);
        if (has_program(command)) return names[i];
    }
    return NULL;
}

/* Runs Python lines with `f` open on the file; skips the test where there is no h5py. */
static void run_h5py(const folder *at, const char *mode, const char *lines) {
    const char *python = find_h5py();
    char script[160], command[512];
    if (!python) {
        print_message("h5py is not installed\n");
        skip();
    }
    snprintf(script, sizeof script, "%s/script.py", at->path);
    FILE *stream = fopen(script, "w");
    fprintf(stream, "import h5py, numpy\nf = h5py.File('%s', '%s')\n%s\nf.close()\n", at->file, mode, lines);
    fclose(stream);
    /* Python leaks by design: LeakSanitizer's library may be loaded into it by a wrapper. */
    snprintf(command, sizeof command, "ASAN_OPTIONS=detect_leaks=0 %s %s", python, script);
    assert_int_equal(system(command), 0);
}

static void h5py_reads_all_of_it(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    run_h5py(at, "r",
             "assert f.attrs['format'] == 'pipecast-results' and f.attrs['format_version'] == 1\n"
             "assert isinstance(f.attrs['pipecast_version'], str)\n"
             "runs = f['runs']\n"
             "assert len(runs) == 31\n"
             "for name, column in runs.items():\n"
             "    assert column.shape == (3,), name\n"
             "    assert column.compression == 'gzip' and column.shuffle, name\n"
             "    assert isinstance(column.attrs['unit'], str) and column.attrs['description'], name\n"
             "    assert column.attrs['missing'], name\n"
             "    assert name == 'run' or column.dims[0][0] == runs['run'], name\n"
             "assert list(runs['run']) == [1, 2, 3]\n"
             "assert runs['iteration_s'].attrs['unit'] == 's'\n"
             "assert runs['iteration_s'][0] == 1 / 3 and numpy.isnan(runs['iteration_s'][1])\n"
             "assert runs['name'].asstr()[0] == '1.5B-m24.zb-h1 \\u00e9' and runs['name'].asstr()[1] == ''\n"
             "assert list(runs['status'].asstr()) == ['ok', 'infeasible', 'ok']\n"
             "assert list(runs['gpus']) == [8, -1, 8]\n"
             "assert len(runs['message'].asstr()[1]) == 255\n"
             "assert f['scenarios/zero-bubble'].asstr()[()] == 'name: zero-bubble\\n'\n"
             "assert f['scenarios/zero-bubble'].attrs['name'] == 'zero-bubble'\n"
             "trace = f['traces/1']\n"
             "assert trace.attrs['devices'] == 2 and trace.attrs['placement'] == 'linear'\n"
             "assert trace.attrs['trace_hash'] == 'fedcba9876543210'\n"
             "kinds = h5py.check_enum_dtype(trace['pass_kind'].dtype)\n"
             "assert kinds == {'F': 0, 'B': 1, 'W': 2, 'BW': 3, 'R': 4}\n"
             "assert list(trace['pass_kind']) == [0, 0, 3, 3, 0, 3, 0, 3]\n"
             "assert list(trace['pass_microbatch']) == [0, 1, 0, 1, 0, 0, 1, 1]\n"
             "assert list(trace['pass_start_ps'][4:] // 10**12) == [1, 2, 3, 4]\n"
             "assert all(d.attrs['unit'] and d.attrs['description'] for d in trace.values())\n"
             "assert len(trace) == 13\n");
}

static void h5dump_reads_all_of_it(void **state) {
    const folder *at = *state;
    if (!has_program("h5dump --version")) {
        print_message("h5dump is not installed\n");
        skip();
    }
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    char command[512];
    snprintf(command, sizeof command, "h5dump %s 2>&1 >%s/dump | grep -c . >%s/complaints; h5dump -H %s >/dev/null",
             at->file, at->path, at->path, at->file);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "grep -q '^0$' %s/complaints && grep -q zero-bubble %s/dump", at->path, at->path);
    assert_int_equal(system(command), 0);
}

/* The example of docs/results-format.md must work as it stands there. */
static void the_documented_example_works(void **state) {
    const folder *at = *state;
    const char *root = getenv("PC_SOURCE_ROOT"), *python = find_h5py();
    if (!root || !python) skip();
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    char command[512];
    snprintf(command, sizeof command,
             "cd %s && sed -n '/^```python/,/^```/{/^```/d;p}' %s/docs/results-format.md >doc.py && test -s doc.py && "
             "ASAN_OPTIONS=detect_leaks=0 %s doc.py >/dev/null",
             at->path, root, python);
    assert_int_equal(system(command), 0);
}

/* --- scenarios --- */

static void scenario_names_may_be_anything(void **state) {
    const folder *at = *state;
    static const char *const names[] = {"a", "a", "a/b", "", ".", "\xff\n", "a"};
    pc_results_writer *writer;
    assert_int_equal(pc_results_create(at->file, &writer, NULL), PC_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(pc_results_add_scenario(writer, names[i], names[i], strlen(names[i]), NULL), PC_OK);
    assert_int_equal(pc_results_commit(writer, NULL), PC_OK);
    run_h5py(
        at, "r",
        "assert set(f['scenarios']) == {'a', 'a (2)', 'a (3)', 'a_b', '_', '._', '\\ufffd?'}, list(f['scenarios'])\n"
        "assert f['scenarios/a_b'].attrs['name'] == 'a/b'\n"
        "assert f['scenarios/a_b'][()] == b'a/b'\n");
}

/* --- paths that cannot be written --- */

static void assert_refused(const char *path, const char *part) {
    pc_results_writer *writer = NULL;
    pc_error error = {0};
    assert_int_equal(pc_results_create(path, &writer, &error), PC_ERROR_INPUT);
    assert_null(writer);
    if (!strstr(error.message, part)) fail_msg("'%s' is not in '%s'", part, error.message);
    assert_non_null(strstr(error.message, path));
}

static void impossible_paths_are_refused_at_once(void **state) {
    const folder *at = *state;
    char path[512];
    snprintf(path, sizeof path, "%s/no/such.h5", at->path);
    assert_refused(path, "there is no folder");
    assert_refused(at->path, "is a folder");
    snprintf(path, sizeof path, "%s/", at->path);
    assert_refused(path, "a file's name was expected");
    write_bytes(at->file, "old", 3);
    snprintf(path, sizeof path, "%s/x.h5", at->file);
    assert_refused(path, "Not a directory");
    assert_refused("", "a file's name was expected");
    assert_refused("/dev/full", "a regular file was expected");
    assert_refused("/dev/null", "a regular file was expected");
    snprintf(path, sizeof path, "%s/%0300d", at->path, 0);
    assert_refused(path, "File name too long");
    assert_int_equal(count_entries(at->path), 1);
}

static void folders_that_may_not_be_written_are_refused(void **state) {
    const folder *at = *state;
    if (geteuid() == 0) skip(); /* root may write anywhere */
    assert_int_equal(chmod(at->path, 0500), 0);
    assert_refused(at->file, "cannot write in the folder");
    assert_int_equal(chmod(at->path, 0700), 0);
}

static void links_lead_to_the_file_that_is_replaced(void **state) {
    const folder *at = *state;
    char link[160], loop[160], other[160];
    snprintf(link, sizeof link, "%s/link.h5", at->path);
    snprintf(loop, sizeof loop, "%s/loop.h5", at->path);
    snprintf(other, sizeof other, "%s/link2.h5", at->path);
    write_bytes(at->file, "old", 3);
    assert_int_equal(symlink("results.h5", link), 0);
    assert_int_equal(symlink(link, other), 0);
    assert_int_equal(symlink("loop.h5", loop), 0);
    assert_int_equal(chmod(at->file, 0640), 0);
    assert_int_equal(write_example(other, NULL), PC_OK);
    struct stat status;
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(lstat(at->file, &status), 0);
    assert_true(S_ISREG(status.st_mode) && status.st_size > 3);
    assert_int_equal(status.st_mode & 0777, 0640); /* as it was */
    assert_int_equal(pc_results_create(loop, &(pc_results_writer *){NULL}, NULL), PC_ERROR_INPUT);

    assert_int_equal(unlink(at->file), 0); /* now the links lead to nothing: it is made */
    assert_int_equal(write_example(link, NULL), PC_OK);
    assert_int_equal(lstat(at->file, &status), 0);
    assert_int_equal(count_entries(at->path), 4);
}

static void what_was_there_stays_until_the_end(void **state) {
    const folder *at = *state;
    write_bytes(at->file, "old", 3);
    pc_results_writer *writer;
    assert_int_equal(pc_results_create(at->file, &writer, NULL), PC_OK);
    assert_int_equal(add_example(writer, NULL), PC_OK);
    bytes found = read_bytes(at->file);
    assert_int_equal(found.size, 3);
    free(found.data);
    assert_int_equal(count_entries(at->path), 1); /* no temporary file lies about while the simulation runs */
    pc_results_discard(writer);
    found = read_bytes(at->file);
    assert_int_equal(found.size, 3);
    free(found.data);
    pc_results_discard(NULL);
}

/* A limit on the size of files fails a write as a full disk does. */
static void a_full_disk_leaves_what_was_there(void **state) {
    const folder *at = *state;
    struct rlimit before, small;
    write_bytes(at->file, "old", 3);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    small = before;
    small.rlim_cur = 5000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pc_error error = {0};
    pc_code code = write_example(at->file, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(code, PC_ERROR_IO);
    assert_non_null(strstr(error.message, at->file));
    assert_non_null(strstr(error.message, "cannot write: File too large"));
    assert_int_equal(count_entries(at->path), 1);
    bytes found = read_bytes(at->file);
    assert_int_equal(found.size, 3);
    free(found.data);
}

static void a_folder_that_vanishes_is_an_error(void **state) {
    const folder *at = *state;
    char folder_path[160], path[200];
    snprintf(folder_path, sizeof folder_path, "%s/sub", at->path);
    snprintf(path, sizeof path, "%s/sub/results.h5", at->path);
    assert_int_equal(mkdir(folder_path, 0777), 0);
    pc_results_writer *writer;
    assert_int_equal(pc_results_create(path, &writer, NULL), PC_OK);
    assert_int_equal(rmdir(folder_path), 0);
    pc_error error = {0};
    assert_int_not_equal(pc_results_commit(writer, &error), PC_OK);
    assert_non_null(strstr(error.message, "there is no folder"));
}

/* --- files that cannot be read --- */

static void assert_unreadable(const char *path, const char *part) {
    pc_results_reader *reader = NULL;
    pc_error error = {0};
    assert_int_equal(pc_results_open(path, &reader, &error), PC_ERROR_INPUT);
    assert_null(reader);
    assert_non_null(strstr(error.message, path));
    if (!strstr(error.message, part)) fail_msg("'%s' is not in '%s'", part, error.message);
}

static void what_is_no_results_file_is_refused(void **state) {
    const folder *at = *state;
    assert_unreadable(at->file, "No such file");
    assert_unreadable(at->path, "not a regular file");
    assert_unreadable("/dev/zero", "not a regular file");
    write_bytes(at->file, "", 0);
    assert_unreadable(at->file, "not an HDF5 file");
    write_bytes(at->file, "run,scenario\n1,a\n", 17);
    assert_unreadable(at->file, "not an HDF5 file");
    write_bytes(at->file, "\x89HDF\r\n\x1a\n", 8);
    assert_unreadable(at->file, "damaged");
}

static void a_foreign_hdf5_file_is_refused(void **state) {
    const folder *at = *state;
    run_h5py(at, "w", "f['runs/run'] = [1, 2]");
    assert_unreadable(at->file, "not a results file of pipecast");
    run_h5py(at, "w", "f.attrs['format'] = 7");
    assert_unreadable(at->file, "not a results file of pipecast");
}

static void a_newer_file_is_refused(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    run_h5py(at, "r+", "f.attrs['format_version'] = 2");
    assert_unreadable(at->file, "newer pipecast");
}

static void missing_columns_are_not_defined(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    run_h5py(at, "r+", "del f['runs/iteration_s'], f['runs/name'], f['traces/1/pass_kind']\nf['runs/extra'] = [1]");
    pc_results_reader *reader;
    pc_error error = {0};
    assert_int_equal(pc_results_open(at->file, &reader, &error), PC_OK);
    assert_int_equal(pc_results_run_count(reader), 3);
    assert_true(isnan(pc_results_row(reader, 0)->iteration_s));
    assert_string_equal(pc_results_row(reader, 0)->name, "");
    assert_int_equal(pc_results_row(reader, 0)->gpus, 8);
    pc_trace_record record;
    assert_int_equal(pc_results_read_trace(reader, 1, &record, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "trace of run 1: 'pass_kind' is missing or damaged"));
    pc_results_close(reader);
}

/* Copies of the example, "<folder>/0.h5" and on, each changed by one piece of Python; a single start of Python for all.
 */
static void change_copies(const folder *at, const char *const *changes, size_t count) {
    char lines[8192];
    int used = snprintf(lines, sizeof lines, "f.close()\nimport shutil\n");
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    for (size_t i = 0; i < count; i++)
        used += snprintf(lines + used, sizeof lines - (size_t)used,
                         "shutil.copy('%s', '%s/%zu.h5')\nf = h5py.File('%s/%zu.h5', 'r+')\n%s\nf.close()\n", at->file,
                         at->path, i, at->path, i, changes[i]);
    assert_true((size_t)used < sizeof lines);
    run_h5py(at, "r", lines);
}

static void columns_of_another_type_are_refused(void **state) {
    const folder *at = *state;
    static const char *const changes[] = {
        "del f['runs/mfu']; f['runs/mfu'] = ['a', 'b', 'c']",
        "del f['runs/mfu']; f['runs/mfu'] = [1.0]",
        "del f['runs/mfu']; f['runs/mfu'] = [[1.0], [2.0], [3.0]]",
        "del f['runs/mfu']; f['runs/mfu'] = numpy.array([b'x', b'y', b'z'])",
        "del f['runs/mfu']; f['runs/mfu'] = 1.0",
        "del f['runs/mfu']; f.create_group('runs/mfu')",
        "del f['runs/mfu']; f['runs/mfu'] = h5py.SoftLink('/nowhere')",
        "del f['runs/status']; f['runs/status'] = numpy.array([b'ok', b'fine', b'ok'])",
        "del f['runs/model']; f['runs/model'] = numpy.array([b'x' * 200] * 3)",
        "del f['runs/gpus']; f['runs/gpus'] = [1.5, 2.5, 3.5]",
    };
    static const char *const parts[] = {"/runs/mfu", "/runs/mfu", "/runs/mfu",    "/runs/mfu",   "/runs/mfu",
                                        "/runs/mfu", "/runs/mfu", "/runs/status", "/runs/model", "/runs/gpus"};
    enum { COUNT = sizeof changes / sizeof changes[0] };
    _Static_assert(COUNT == sizeof parts / sizeof parts[0], "a part for every change");
    change_copies(at, changes, COUNT);
    for (int i = 0; i < COUNT; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%d.h5", at->path, i);
        assert_unreadable(path, parts[i]);
    }
}

/* A dataset may say that it has any length without storing one byte. */
static void a_length_decides_no_allocation(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    run_h5py(at, "r+", "del f['runs/run']\nf.create_dataset('runs/run', (2**50,), dtype='i8', chunks=(2**20,))");
    assert_unreadable(at->file, "/runs/run");
}

static void assert_trace_refused(const char *path, const char *part) {
    pc_results_reader *reader;
    pc_trace_record record;
    pc_error error = {0};
    assert_int_equal(pc_results_open(path, &reader, &error), PC_OK);
    assert_int_equal(pc_results_read_trace(reader, 1, &record, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, part)) fail_msg("'%s' is not in '%s'", part, error.message);
    pc_results_close(reader);
}

static void traces_out_of_range_are_refused(void **state) {
    const folder *at = *state;
    static const char *const changes[] = {
        "f['traces/1/pass_device'][3] = 2",
        "f['traces/1/pass_device'][3] = -1",
        "f['traces/1/pass_chunk'][0] = 1",
        "f['traces/1/pass_microbatch'][0] = 2",
        "f['traces/1/pass_kind'][0] = 77",
        "f['traces/1/level_device'][0] = 9",
        "f['traces/1'].attrs['devices'] = 3",
        "f['traces/1'].attrs['devices'] = 0",
        "f['traces/1'].attrs['placement'] = 'diagonal'",
        "f['traces/1'].attrs['chunks'] = 2**40",
        "del f['traces/1/pass_end_ps']; f['traces/1/pass_end_ps'] = numpy.zeros(7, dtype='i8')",
        "del f['traces/1'].attrs['span_ps']",
        "del f['traces/1']; f['traces/1'] = [1, 2]",
    };
    static const char *const parts[] = {
        "pass_device", "pass_device", "pass_chunk", "pass_microbatch", "pass_kind", "level_device", "device_start_ps",
        "devices",     "placement",   "chunks",     "pass_end_ps",     "span_ps",   "kept no trace"};
    enum { COUNT = sizeof changes / sizeof changes[0] };
    _Static_assert(COUNT == sizeof parts / sizeof parts[0], "a part for every change");
    change_copies(at, changes, COUNT);
    for (int i = 0; i < COUNT; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%d.h5", at->path, i);
        assert_trace_refused(path, parts[i]);
    }
}

/* --- damage --- */

/* Reads all there is to read, and wants an error of the user's input at most. */
static bool reads_well(const char *path) {
    pc_results_reader *reader;
    pc_error error = {0};
    pc_code code = pc_results_open(path, &reader, &error);
    assert_true(code == PC_OK || (code == PC_ERROR_INPUT && error.message[0]));
    if (code) return false;
    for (int64_t i = 0; i < pc_results_run_count(reader); i++) {
        pc_trace_record record = {0};
        code = pc_results_read_trace(reader, pc_results_row(reader, i)->run, &record, &error);
        assert_true(code == PC_OK || code == PC_ERROR_INPUT);
        pc_trace_record_free(&record);
    }
    pc_results_close(reader);
    return true;
}

/* A file cut anywhere is refused, but for one that lacks exactly the seal. */
static void truncated_files_are_refused(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    bytes whole = read_bytes(at->file);
    size_t image = whole.size - SEAL_SIZE;
    for (size_t size = 0; size < whole.size; size += size < 600 || size > image - 100 ? 1 : 97) {
        write_bytes(at->file, whole.data, size);
        assert_int_equal(reads_well(at->file), size == image);
    }
    free(whole.data);
}

static uint64_t next_random(uint64_t *state) { /* xorshift64 */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void flipped_bytes_are_noticed(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    bytes whole = read_bytes(at->file);
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 1000; i++) {
        size_t place = next_random(&random) % whole.size;
        char flip = (char)(1 + next_random(&random) % 255);
        whole.data[place] ^= flip;
        write_bytes(at->file, whole.data, whole.size);
        assert_false(reads_well(at->file));
        whole.data[place] ^= flip;
    }
    free(whole.data);
}

/* --- memory --- */

static void every_refused_allocation_of_the_writer_is_reported(void **state) {
    const folder *at = *state;
    pc_code code = PC_ERROR_NO_MEMORY;
    for (long after = 0; code != PC_OK; after++) {
        assert_true(after < 1000);
        pc_alloc_fail_after(after);
        code = write_example(at->file, NULL);
        pc_alloc_fail_after(-1);
        assert_true(code == PC_OK || code == PC_ERROR_NO_MEMORY);
        assert_int_equal(count_entries(at->path), code == PC_OK);
    }
}

static pc_code read_example(const char *path) {
    pc_results_reader *reader;
    pc_code code = pc_results_open(path, &reader, NULL);
    if (code) return code;
    pc_trace_record record = {0};
    code = pc_results_read_trace(reader, 1, &record, NULL);
    pc_trace_record_free(&record);
    pc_results_close(reader);
    return code;
}

static void every_refused_allocation_of_the_reader_is_reported(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    pc_code code = PC_ERROR_NO_MEMORY;
    for (long after = 0; code != PC_OK; after++) {
        assert_true(after < 1000);
        pc_alloc_fail_after(after);
        code = read_example(at->file);
        pc_alloc_fail_after(-1);
        assert_true(code == PC_OK || code == PC_ERROR_NO_MEMORY);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rows_come_back),
        TEST(traces_come_back),
        TEST(many_rows_come_back),
        TEST(no_rows_come_back),
        TEST(same_rows_give_the_same_bytes),
        TEST(two_writers_do_not_meet),
        TEST(a_run_number_has_one_trace),
        TEST(h5py_reads_all_of_it),
        TEST(h5dump_reads_all_of_it),
        TEST(the_documented_example_works),
        TEST(scenario_names_may_be_anything),
        TEST(impossible_paths_are_refused_at_once),
        TEST(folders_that_may_not_be_written_are_refused),
        TEST(links_lead_to_the_file_that_is_replaced),
        TEST(what_was_there_stays_until_the_end),
        TEST(a_full_disk_leaves_what_was_there),
        TEST(a_folder_that_vanishes_is_an_error),
        TEST(what_is_no_results_file_is_refused),
        TEST(a_foreign_hdf5_file_is_refused),
        TEST(a_newer_file_is_refused),
        TEST(missing_columns_are_not_defined),
        TEST(columns_of_another_type_are_refused),
        TEST(a_length_decides_no_allocation),
        TEST(traces_out_of_range_are_refused),
        TEST(truncated_files_are_refused),
        TEST(flipped_bytes_are_noticed),
        TEST(every_refused_allocation_of_the_writer_is_reported),
        TEST(every_refused_allocation_of_the_reader_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
