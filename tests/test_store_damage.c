/* The results file, refused where it is damaged or foreign; read where memory is short. */
#include "tests/refusals.h"
#include "tests/store_example.h"

#include <math.h>

enum { SEAL_SIZE = 35 }; /* "\npipecast-fnv1a64 ", 16 digits, a newline: docs/results-format.md */

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
    assert_unreadable(at->file, "of another kind; expected a results file of pipecast");
    run_h5py(at, "w", "f.attrs['format'] = 7");
    assert_unreadable(at->file, "of another kind; expected a results file of pipecast");
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
    char lines[32768];
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
        "f['runs/run'][2] = 2**63 - 1",
        "f['runs/run'][0] = 0",
        "f['runs/run'][1] = -2**63",
        "f['runs/run'][1] = 2**53 + 1",
        "f.attrs['sweep_runs'] = 2",
        "f.attrs['sweep_runs'] = 2**63 - 1; f['runs/run'][2] = 2**63 - 1",
        "f.attrs['sweep_runs'] = -2",
        "del f['runs/run']; f['runs/run'] = numpy.array([1, 2, 2**64 - 1], dtype='u8')",
    };
    static const char *const parts[] = {
        "/runs/mfu",
        "/runs/mfu",
        "/runs/mfu",
        "/runs/mfu",
        "/runs/mfu",
        "/runs/mfu",
        "/runs/mfu",
        "/runs/status",
        "/runs/model",
        "/runs/gpus",
        "/runs/run: row 3 has 9223372036854775807; expected a run's number, 1 to 900719",
        "/runs/run: row 1 has 0; expected a run's number, 1 to 9007199254740992",
        "/runs/run: row 2 has -9223372036854775808",
        "/runs/run: row 2 has 9007199254740993",
        "/runs/run: row 3 has 3; expected a run's number, 1 to 2 as sweep_runs says",
        "sweep_runs is 9223372036854775807; expected 0 to 9007199254740992",
        "sweep_runs is -2; expected 0 to ",
        "/runs/run: row 3 has "};
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
        "f['traces/1'].attrs['microbatches'] = 2**20",
        "del f['traces/1/pass_end_ps']; f['traces/1/pass_end_ps'] = numpy.zeros(7, dtype='i8')",
        "del f['traces/1'].attrs['span_ps']",
        "del f['traces/1']; f['traces/1'] = [1, 2]",
        "f['traces/1/device_parameters_bytes'] = numpy.zeros(2, dtype='i8')",
        "f['traces/1/device_parameters_bytes'] = numpy.zeros(3, dtype='i8')",
        "f['traces/1/device_parameters_bytes'] = ['a', 'b']",
    };
    static const char *const parts[] = {"pass_device",
                                        "pass_device",
                                        "pass_chunk",
                                        "pass_microbatch",
                                        "pass_kind",
                                        "level_device",
                                        "device_start_ps",
                                        "devices",
                                        "placement",
                                        "chunks",
                                        "microbatches",
                                        "pass_end_ps",
                                        "span_ps",
                                        "is damaged",
                                        "device_gradients_bytes",
                                        "device_parameters_bytes",
                                        "device_parameters_bytes"};
    enum { COUNT = sizeof changes / sizeof changes[0] };
    _Static_assert(COUNT == sizeof parts / sizeof parts[0], "a part for every change");
    change_copies(at, changes, COUNT);
    for (int i = 0; i < COUNT; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%d.h5", at->path, i);
        assert_trace_refused(path, parts[i]);
    }
}

/* What goes between stages, and the block: all of it or nothing, and nothing out of range. */
/* What is done to a trace, and the part of it that the message names. */
struct damage {
    const char *change, *part;
};

static const struct damage damages[] = {
    {"t['transfer_from'][0] = 2", "transfer_from"},
    {"t['transfer_to'][0] = -1", "transfer_to"},
    {"t['transfer_to'][0] = 1", "transfer_to"},
    {"t['transfer_chunk'][3] = 1", "transfer_chunk"},
    {"t['transfer_kind'][3] = 7", "transfer_kind"},
    {"t['transfer_microbatch'][3] = 2", "transfer_microbatch"},
    {"t['transfer_start_ps'][3] = -1", "transfer_start_ps"},
    {"t['transfer_end_ps'][1] = 1", "transfer_end_ps"},
    {"del t['transfer_kind']", "transfer_kind"},
    {"del t['transfer_end_ps']; t['transfer_end_ps'] = [1, 2, 3]", "transfer_end_ps"},
    {"del t['block_kind']", "block_kind"},
    {"del t.attrs['block_interval']", "block_interval"},
    {"t.attrs['block_interval'] = 0", "block_interval"},
    {"t.attrs['block_interval'] = 2**62", "block_interval"},
    {"t['block_device'][0] = 2", "block_device"},
    {"t['block_chunk'][0] = 1", "block_chunk"},
    {"t['block_kind'][0] = 9", "block_kind"},
    {"t['block_kind'][0] = 3", "block_kind"},
    {"t['block_microbatch'][0] = -1", "block_microbatch"},
    {"t['block_microbatch'][3] = 2**24 - 1", "block_microbatch"},
    {"t['block_start_cells'][1] = -1", "block_start_cells"},
    {"t['block_start_cells'][1] = 2**62", "block_start_cells"},
    {"t['block_duration_cells'][1] = 0", "block_duration_cells"},
    {"t['block_duration_cells'][1] = 3", "block_duration_cells"},
    {"del t['block_device']; t['block_device'] = numpy.array([0, 0, 1, 1, 1], dtype='i4')", "block_chunk"},
    {"t['pass_end_ps'][1] = 0", "pass_end_ps"},
    {"t['pass_start_ps'][1] = -5", "pass_start_ps"},
    {"t['level_time_ps'][1] = -5", "level_time_ps"},
    {"t['block_duration_cells'][1] = -2**63", "block_duration_cells"},
    {"t.attrs['block_interval'] = -2**63", "block_interval"},
    {"t.attrs['placement'] = 'bidirectional'", "placement"},
};

/* What the engine saw: orders are kept, and every index leads to what is there. */
static const struct damage engine_damages[] = {
    {"del t.attrs['event_count']", "event_count"},
    {"t.attrs['event_count'] = -1", "event_count"},
    {"del t['flow_sort']", "flow_sort"},
    {"t['link_replica'][0] = -1", "link_replica"},
    {"t['link_device'][3] = 2", "link_device"},
    {"t['link_sort'][0] = 4", "link_sort"},
    {"t['link_peer'][0] = 2", "link_peer"},
    {"t['link_peer'][2] = 0", "link_peer"},
    {"t['link_is_in'][1] = 2", "link_is_in"},
    {"t['link_shared'][1] = 77", "link_shared"},
    {"t['link_bytes_per_s'][1] = 0", "link_bytes_per_s"},
    {"t['link_bytes_per_s'][1] = numpy.nan", "link_bytes_per_s"},
    {"del t['link_bytes_per_s']; t['link_bytes_per_s'] = ['1', '2', '3', '4']", "link_bytes_per_s"},
    {"del t['link_sort']; t['link_sort'] = numpy.zeros(4, dtype='u1')", "link_sort"},
    {"t['load_link'][0] = 4", "load_link"},
    {"t['load_link'][0] = -1", "load_link"},
    {"t['load_time_ps'][0] = -1", "load_time_ps"},
    {"t['load_time_ps'][5] = 1", "load_time_ps"},
    {"t['load_bytes_per_s'][0] = -1", "load_bytes_per_s"},
    {"t['load_bytes_per_s'][0] = numpy.inf", "load_bytes_per_s"},
    {"del t['load_link']; t['load_link'] = numpy.zeros(11, dtype='i4')", "load_time_ps"},
    {"t['flow_sort'][0] = 7", "flow_sort"},
    {"t['flow_replica'][0] = -3", "flow_replica"},
    {"t['flow_from'][0] = 2", "flow_from"},
    {"t['flow_to'][0] = -1", "flow_to"},
    {"t['flow_chunk'][0] = 1", "flow_chunk"},
    {"t['flow_microbatch'][0] = 2", "flow_microbatch"},
    {"t['flow_microbatch'][0] = -2", "flow_microbatch"},
    {"t['flow_out'][0] = -2", "flow_out"},
    {"t['flow_in'][0] = 4", "flow_in"},
    {"t['flow_bytes'][0] = numpy.nan", "flow_bytes"},
    {"t['flow_ready_ps'][0] = -1", "flow_ready_ps"},
    {"t['flow_start_ps'][0] = 1", "flow_start_ps"},
    {"t['flow_start_ps'][1] = 6 * 10**12; t['flow_end_ps'][1] = 7 * 10**12", "flow_start_ps"},
    {"t['flow_end_ps'][0] = 1", "flow_end_ps"},
    {"t['flow_alone_ps'][0] = -1", "flow_alone_ps"},
    {"t['queue_ready_ps'][0] = 1", "queue_ready_ps"},
    {"t['queue_ready_ps'][0] = -1", "queue_ready_ps"},
    {"del t['queue_ready_ps']; t['queue_ready_ps'] = numpy.zeros(7, dtype='i8')", "queue_ready_ps"},
    {"t['memory_device'][0] = 1", "memory_device"},
    {"t['memory_device'][5] = 2", "memory_device"},
    {"t['memory_time_ps'][2] = 5", "memory_time_ps"},
    {"t['memory_time_ps'][3] = -5", "memory_time_ps"},
    {"t['memory_bytes'][3] = -5", "memory_bytes"},
    {"t['memory_capacity_bytes'][1] = -5", "memory_capacity_bytes"},
    {"del t['memory_capacity_bytes']; t['memory_capacity_bytes'] = [1, 2, 3]", "memory_capacity_bytes"},
    {"t['work_sort'][0] = 2", "work_sort"},
    {"t['work_replica'][0] = -1", "work_replica"},
    {"t['work_device'][0] = 2", "work_device"},
    {"t['work_start_ps'][0] = -1", "work_start_ps"},
    {"t['work_end_ps'][0] = 1", "work_end_ps"},
    {"del f['traces/1/engine']; f['traces/1/engine'] = [1]", "engine"},
    {"del f['traces/1/engine']; f['traces/1/engine'] = h5py.SoftLink('/traces/3')", "engine"},
};

enum { DAMAGES_MAX = 64 };

static void check_refused(const folder *at, const char *const *changes, const struct damage *list, size_t count) {
    change_copies(at, changes, count);
    for (size_t i = 0; i < count; i++) {
        char path[160];
        snprintf(path, sizeof path, "%s/%zu.h5", at->path, i);
        assert_trace_refused(path, list[i].part);
    }
}

static void assert_each_refused(const folder *at, const char *group, const struct damage *list, size_t count) {
    char lines[DAMAGES_MAX][160];
    const char *with_trace[DAMAGES_MAX];
    assert_true(count <= DAMAGES_MAX);
    for (size_t i = 0; i < count; i++) {
        snprintf(lines[i], sizeof lines[i], "t = f['%s']; %s", group, list[i].change);
        with_trace[i] = lines[i];
    }
    check_refused(at, with_trace, list, count);
}

static void transfers_and_blocks_out_of_range_are_refused(void **state) {
    assert_each_refused(*state, "traces/1", damages, sizeof damages / sizeof *damages);
}

/* Of levels and devices by kind: none below zero, each row's the level, and a device's together with its fullest row to
 * be counted. */
static void kinds_out_of_range_are_refused(void **state) {
    static const struct damage of_kinds[] = {
        {"t['level_mlp_bytes'][1] = -1", "level_attention_bytes"},
        {"t['level_mlp_bytes'][1] += 1", "level_attention_bytes"},
        {"t['level_mlp_bytes'][1] = t['level_norms_bytes'][1] = 2**63 - 1", "level_attention_bytes"},
        {"t['device_gathered_bytes'][1] = -1", "device_gathered_bytes"},
        {"t['device_mlp_bytes'][0] = -2**63", "device_mlp_bytes"},
        {"t['device_parameters_bytes'][0] = t['device_gradients_bytes'][0] = 2**62", "device_gradients_bytes"},
        {"t['device_step_bytes'][1] = 2**63 - 1", "device_step_bytes"},
        {"t['level_bytes'][2] = t['level_attention_bytes'][2] = 2**63 - 1", "level_bytes"},
        {"del t['level_head_bytes']", "level_head_bytes"},
        {"del t['device_loss_bytes']", "device_loss_bytes"},
    };
    static const char kinds[] =
        "L = t['level_bytes']; F = f['traces/1']\n"
        "for n in 'attention mlp norms embedding head offloaded'.split(): F['level_%s_bytes' % n] = 0 * L[:]\n"
        "F['level_attention_bytes'][:] = L[:]\n"
        "for n in ('parameters gradients optimizer buffers activations peak_total capacity attention mlp norms "
        "embedding head "
        "offloaded boundary gathered context sequence recomputation loss copies step').split():\n"
        "  F['device_%s_bytes' % n] = numpy.full(2, 1, dtype='i8')\n"
        "F['device_peak_ps'] = numpy.zeros(2, dtype='i8')\n";
    char changes[sizeof of_kinds / sizeof *of_kinds][1024];
    const char *list[sizeof of_kinds / sizeof *of_kinds];
    const folder *at = *state;
    for (size_t i = 0; i < sizeof of_kinds / sizeof *of_kinds; i++) {
        snprintf(changes[i], sizeof changes[i], "t = f['traces/1']\n%s%s", kinds, of_kinds[i].change);
        list[i] = changes[i];
    }
    check_refused(at, list, of_kinds, sizeof of_kinds / sizeof *of_kinds);
}

static void engine_traces_out_of_range_are_refused(void **state) {
    assert_each_refused(*state, "traces/1/engine", engine_damages, sizeof engine_damages / sizeof *engine_damages);
}

/* A file as pipecast wrote it before it knew of transfers and blocks, and of the engine's trace. */
static void older_traces_are_read(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    run_h5py(at, "r+",
             "t = f['traces/1']\n"
             "for name in [n for n in t if n.startswith(('transfer_', 'block_', 'engine'))]: del t[name]\n"
             "del t.attrs['block_interval']");
    pc_results_reader *reader;
    pc_trace_record record;
    assert_int_equal(pc_results_open(at->file, &reader, NULL), PC_OK);
    assert_int_equal(pc_results_read_trace(reader, 1, &record, NULL), PC_OK);
    assert_false(record.has_transfers);
    assert_int_equal(record.block.devices, 0);
    assert_int_equal(record.replay.engine.link_count, 0);
    assert_int_equal(record.replay.trace.pass_count, PASSES);
    pc_trace_record_free(&record);
    pc_results_close(reader);
}

static void damaged_scenarios_are_refused(void **state) {
    const folder *at = *state;
    static const char *const changes[] = {
        "del f['scenarios']",
        "del f['scenarios/zero-bubble'].attrs['name']",
        "s = f['scenarios']; del s['zero-bubble']; s['x'] = 7; s['x'].attrs['name'] = 'zero-bubble'",
        "s = f['scenarios']; del s['zero-bubble']; s['x'] = ['a', 'b']; s['x'].attrs['name'] = 'zero-bubble'",
        "s = f['scenarios']; del s['zero-bubble']; s.create_group('x').attrs['name'] = 'zero-bubble'",
    };
    enum { COUNT = sizeof changes / sizeof changes[0] };
    change_copies(at, changes, COUNT);
    for (int i = 0; i < COUNT; i++) {
        char path[160], *text;
        size_t size;
        pc_results_reader *reader;
        pc_error error = {0};
        snprintf(path, sizeof path, "%s/%d.h5", at->path, i);
        assert_int_equal(pc_results_open(path, &reader, &error), PC_OK);
        assert_int_equal(pc_results_scenario_text(reader, "zero-bubble", &text, &size, &error), PC_ERROR_INPUT);
        assert_non_null(strstr(error.message, "scenario 'zero-bubble'"));
        pc_results_close(reader);
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
    char *text = NULL;
    size_t size;
    code = pc_results_scenario_text(reader, "zero-bubble", &text, &size, &error);
    assert_true(code == PC_OK || code == PC_ERROR_INPUT);
    pc_free(text);
    pc_results_close(reader);
    return true;
}

/* A file cut anywhere is refused, but for one that lacks exactly the seal: what HDF5 reads of it is all there. */
static void truncated_files_are_refused(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    bytes whole = read_bytes(at->file);
    size_t image = whole.size - SEAL_SIZE;
    long cuts = 0;
    long edge = test_part(11, 1), step = test_part(8009, 293);
    for (size_t size = 0; size < whole.size; cuts++) {
        write_bytes(at->file, whole.data, size);
        assert_int_equal(reads_well(at->file), size == image);
        size += (size_t)(size < 600 || size > image - 100 ? edge : step);
    }
    test_count("damage.results", cuts);
    free(whole.data);
}

static void flipped_bytes_are_noticed(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    bytes whole = read_bytes(at->file);
    test_random random = {1};
    long flips = 0;
    long edge = test_part(7, 1), step = test_part(4001, 211);
    for (size_t i = 0; i < whole.size; i += (size_t)(i < 100 || i > whole.size - 100 ? edge : step), flips++) {
        char flip = (char)test_between(&random, 1, 255);
        whole.data[i] ^= flip;
        write_bytes(at->file, whole.data, whole.size);
        assert_false(reads_well(at->file));
        whole.data[i] ^= flip;
    }
    test_count("damage.results", flips);
    free(whole.data);
}

/* As a disk loses them: blocks of zeros, and blocks in another's place. */
static void lost_blocks_are_noticed(void **state) {
    enum { BLOCK = 4096 };
    const folder *at = *state;
    char kept[BLOCK];
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    bytes whole = read_bytes(at->file);
    long lost = 0;
    for (size_t i = 0; i + BLOCK <= whole.size; i += BLOCK, lost++) {
        const char *other = whole.data + whole.size - SEAL_SIZE - BLOCK;
        memcpy(kept, whole.data + i, BLOCK);
        if (lost % 2)
            memset(whole.data + i, 0, BLOCK);
        else
            memmove(whole.data + i, other, BLOCK);
        bool is_same = memcmp(kept, whole.data + i, BLOCK) == 0;
        write_bytes(at->file, whole.data, whole.size);
        assert_int_equal(reads_well(at->file), is_same);
        memcpy(whole.data + i, kept, BLOCK);
    }
    test_count("damage.results", lost);
    free(whole.data);
}

/* --- memory --- */

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
    for (refusals x = {0}; next_refusal(&x);) x.code = read_example(at->file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_no_results_file_is_refused),
        TEST(a_foreign_hdf5_file_is_refused),
        TEST(a_newer_file_is_refused),
        TEST(missing_columns_are_not_defined),
        TEST(columns_of_another_type_are_refused),
        TEST(a_length_decides_no_allocation),
        TEST(traces_out_of_range_are_refused),
        TEST(transfers_and_blocks_out_of_range_are_refused),
        TEST(kinds_out_of_range_are_refused),
        TEST(engine_traces_out_of_range_are_refused),
        TEST(older_traces_are_read),
        TEST(damaged_scenarios_are_refused),
        TEST(truncated_files_are_refused),
        TEST(flipped_bytes_are_noticed),
        TEST(lost_blocks_are_noticed),
        TEST(every_refused_allocation_of_the_reader_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
