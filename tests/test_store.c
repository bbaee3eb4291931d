/* The results file: what is written comes back, here and in other readers. */
#include "engine/alloc.h"
#include "results/columns.h"
#include "tests/engine_example.h"
#include "tests/store_example.h"

static void assert_rows_equal(const pc_run_row *a, const pc_run_row *b) {
    int count;
    const pc_column *columns = pc_columns(&count);
    for (int i = 0; i < count; i++) {
        char text_a[PC_COLUMN_TEXT_SIZE], text_b[PC_COLUMN_TEXT_SIZE];
        assert_int_equal(pc_column_defined(&columns[i], a), pc_column_defined(&columns[i], b));
        if (!pc_column_defined(&columns[i], a)) continue;
        if (columns[i].field.type == PC_FIELD_INT64 || columns[i].field.type == PC_FIELD_NUMBER) {
            assert_memory_equal((const char *)a + columns[i].field.place, (const char *)b + columns[i].field.place, 8);
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

static void assert_transfers_equal(const pc_replay_trace *found, const example *wanted) {
    assert_int_equal(found->transfer_count, TRANSFERS);
    assert_memory_equal(found->transfer_from, wanted->transfer_from, sizeof wanted->transfer_from);
    assert_memory_equal(found->transfer_to, wanted->transfer_to, sizeof wanted->transfer_to);
    assert_memory_equal(found->transfer_pass, wanted->transfer_pass, sizeof wanted->transfer_pass);
    assert_memory_equal(found->transfer_start_ps, wanted->transfer_start, sizeof wanted->transfer_start);
    assert_memory_equal(found->transfer_end_ps, wanted->transfer_end, sizeof wanted->transfer_end);
}

static void assert_blocks_equal(const pc_block *found, const example *wanted) {
    assert_int_equal(found->placement, PC_PLACEMENT_LINEAR);
    assert_int_equal(found->devices, DEVICES);
    assert_int_equal(found->chunks, 1);
    assert_int_equal(found->microbatches, 1);
    assert_int_equal(found->interval, 3);
    assert_memory_equal(found->start, wanted->block_start, sizeof wanted->block_start);
    assert_memory_equal(found->duration, wanted->block_duration, sizeof wanted->block_duration);
}

/* Run 1 says what goes between stages and what the schedule repeats; run 3, as older files, does not. */
static void transfers_and_blocks_come_back(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    pc_results_reader *reader;
    example wanted;
    pc_trace_record found = {0};
    make_example(&wanted);
    add_transfers(&wanted);
    assert_int_equal(pc_results_open(at->file, &reader, NULL), PC_OK);
    assert_int_equal(pc_results_read_trace(reader, 1, &found, NULL), PC_OK);
    assert_true(found.has_transfers);
    assert_transfers_equal(&found.replay.trace, &wanted);
    assert_blocks_equal(&found.block, &wanted);
    pc_trace_record_free(&found);
    assert_int_equal(pc_results_read_trace(reader, 3, &found, NULL), PC_OK);
    assert_false(found.has_transfers);
    assert_int_equal(found.replay.trace.transfer_count, 0);
    assert_int_equal(found.block.devices, 0);
    pc_trace_record_free(&found);
    pc_results_close(reader);
}

/* Of one stage: that nothing went anywhere is not the same as not to know. */
static void no_transfers_are_told_from_unknown_ones(void **state) {
    const folder *at = *state;
    example made;
    pc_results_writer *writer;
    pc_results_reader *reader;
    pc_trace_record found;
    pc_run_row row = ok_row(1);
    make_example(&made);
    add_transfers(&made);
    made.replay.trace.transfer_count = 0;
    pc_run_detail detail = {.replay = made.replay};
    assert_int_equal(pc_results_create(at->file, &writer, NULL), PC_OK);
    assert_int_equal(pc_results_add_run(writer, &row, &made.schedule, &detail, NULL), PC_OK);
    assert_int_equal(pc_results_commit(writer, NULL), PC_OK);
    assert_int_equal(pc_results_open(at->file, &reader, NULL), PC_OK);
    assert_int_equal(pc_results_read_trace(reader, 1, &found, NULL), PC_OK);
    assert_true(found.has_transfers);
    assert_int_equal(found.replay.trace.transfer_count, 0);
    pc_trace_record_free(&found);
    pc_results_close(reader);
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
    assert_null(found.memory); /* not known of a run whose costs were given */
    pc_trace_record_free(&found);

    assert_int_equal(pc_results_read_trace(reader, 3, &found, &error), PC_OK);
    assert_traces_equal(&found, &wanted);
    assert_true(found.replay.out_of_memory);
    assert_int_equal(found.replay.oom.device, 1);
    assert_int_equal(found.replay.oom.pass.kind, PC_PASS_W);
    assert_int_equal(found.replay.oom.capacity_bytes, 8);
    assert_memory_equal(found.memory, wanted.memory, sizeof wanted.memory);
    pc_trace_record_free(&found);

    assert_int_equal(pc_results_read_trace(reader, 2, &found, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "run 2 kept no trace"));
    assert_int_equal(pc_results_read_trace(reader, -7, &found, &error), PC_ERROR_INPUT);
    pc_trace_record_free(&found);
    pc_results_close(reader);
}

#define SAME(field, count) assert_memory_equal(found->field, wanted.field, (count) * sizeof *wanted.field)

static void assert_engine_traces_equal(const pc_engine_trace *found) {
    const pc_engine_trace wanted = engine_example;
    assert_int_equal(found->link_count, ENGINE_LINKS);
    SAME(link_replica, ENGINE_LINKS), SAME(link_device, ENGINE_LINKS), SAME(link_peer, ENGINE_LINKS);
    SAME(link_sort, ENGINE_LINKS), SAME(link_is_in, ENGINE_LINKS), SAME(link_shared, ENGINE_LINKS);
    SAME(link_bytes_per_s, ENGINE_LINKS);
    assert_int_equal(found->load_count, ENGINE_LOADS);
    SAME(load_link, ENGINE_LOADS), SAME(load_time_ps, ENGINE_LOADS), SAME(load_bytes_per_s, ENGINE_LOADS);
    assert_int_equal(found->flow_count, ENGINE_FLOWS);
    SAME(flow_sort, ENGINE_FLOWS), SAME(flow_replica, ENGINE_FLOWS), SAME(flow_from, ENGINE_FLOWS);
    SAME(flow_to, ENGINE_FLOWS), SAME(flow_chunk, ENGINE_FLOWS), SAME(flow_microbatch, ENGINE_FLOWS);
    SAME(flow_out, ENGINE_FLOWS), SAME(flow_in, ENGINE_FLOWS), SAME(flow_bytes, ENGINE_FLOWS);
    SAME(flow_ready_ps, ENGINE_FLOWS), SAME(flow_start_ps, ENGINE_FLOWS), SAME(flow_end_ps, ENGINE_FLOWS);
    SAME(flow_alone_ps, ENGINE_FLOWS);
    assert_int_equal(found->queue_count, ENGINE_PASSES);
    SAME(queue_ready_ps, ENGINE_PASSES);
    assert_int_equal(found->memory_count, ENGINE_LEVELS);
    SAME(memory_device, ENGINE_LEVELS), SAME(memory_time_ps, ENGINE_LEVELS), SAME(memory_bytes, ENGINE_LEVELS);
    assert_int_equal(found->devices, ENGINE_DEVICES);
    SAME(memory_capacity_bytes, ENGINE_DEVICES);
    assert_int_equal(found->work_count, ENGINE_WORK);
    SAME(work_sort, ENGINE_WORK), SAME(work_replica, ENGINE_WORK), SAME(work_device, ENGINE_WORK);
    SAME(work_start_ps, ENGINE_WORK), SAME(work_end_ps, ENGINE_WORK);
    assert_int_equal(found->event_count, 42);
}

/* Run 1 has what the engine saw; run 3, as other ways and older files, has nothing of it. */
static void engine_traces_come_back(void **state) {
    const folder *at = *state;
    pc_results_reader *reader;
    pc_trace_record found = {0};
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    assert_int_equal(pc_results_open(at->file, &reader, NULL), PC_OK);
    assert_int_equal(pc_results_read_trace(reader, 1, &found, NULL), PC_OK);
    assert_int_equal(found.replay.way, PC_WAY_EVENTS);
    assert_engine_traces_equal(&found.replay.engine);
    pc_trace_record_free(&found);
    assert_int_equal(pc_results_read_trace(reader, 3, &found, NULL), PC_OK);
    assert_int_equal(found.replay.engine.queue_count, 0);
    assert_int_equal(found.replay.engine.link_count, 0);
    pc_trace_record_free(&found);
    pc_results_close(reader);
}

static void many_rows_come_back(void **state) {
    const folder *at = *state;
    enum { COUNT = 40000 }; /* more than a chunk of the numbers holds */
    pc_results_writer *writer;
    assert_int_equal(pc_results_create(at->file, &writer, NULL), PC_OK);
    for (int64_t i = 0; i < COUNT; i++) {
        pc_run_row row = ok_row(i + 1);
        assert_int_equal(pc_results_add_run(writer, &row, NULL, NULL, NULL), PC_OK);
    }
    assert_int_equal(pc_results_commit(writer, NULL), PC_OK);
    pc_results_reader *reader;
    assert_int_equal(pc_results_open(at->file, &reader, NULL), PC_OK);
    assert_int_equal(pc_results_run_count(reader), COUNT);
    for (int64_t i = 0; i < COUNT; i += 997) {
        pc_run_row row = ok_row(i + 1);
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
    pc_run_detail detail = {.replay = made.replay};
    pc_run_row row = ok_row(5);
    assert_int_equal(pc_results_create(at->file, &writer, NULL), PC_OK);
    assert_int_equal(pc_results_add_run(writer, &row, &made.schedule, &detail, NULL), PC_OK);
    assert_int_equal(pc_results_add_run(writer, &row, &made.schedule, &detail, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "two runs with the number 5"));
    pc_results_discard(writer);
}

/* --- other readers --- */

static void h5py_reads_all_of_it(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    run_h5py(at, "r",
             "assert f.attrs['format'] == 'pipecast-results' and f.attrs['format_version'] == 1\n"
             "assert isinstance(f.attrs['pipecast_version'], str)\n"
             "runs = f['runs']\n"
             "assert len(runs) == 158 and 'key' in runs\n"
             "assert len(f.attrs['build']) == 16\n"
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
             "assert kinds == {'F': 0, 'B': 1, 'W': 2, 'BW': 3, 'R': 4, 'S': 5, 'T': 6}\n"
             "assert list(trace['pass_kind']) == [0, 0, 3, 3, 0, 3, 0, 3]\n"
             "assert list(trace['pass_microbatch']) == [0, 1, 0, 1, 0, 0, 1, 1]\n"
             "assert list(trace['pass_start_ps'][4:] // 10**12) == [1, 2, 3, 4]\n"
             "engine = trace['engine']\n"
             "columns = [d for d in trace.values() if d != engine] + list(engine.values())\n"
             "assert all(d.attrs['unit'] and d.attrs['description'] for d in columns)\n"
             "assert len(trace) == 27 and trace.attrs['block_interval'] == 3\n"
             "sent = [list(trace['transfer_' + name]) for name in ['from', 'to', 'chunk', 'kind', 'microbatch']]\n"
             "assert sent == [[1, 1, 0, 0], [0, 0, 1, 1], [0] * 4, [3, 3, 0, 0], [0, 1, 0, 1]], sent\n"
             "assert list(trace['transfer_start_ps'][:] // 10**12) == [3, 5, 1, 2]\n"
             "assert list(trace['transfer_end_ps']) == list(trace['transfer_start_ps'])\n"
             "names = ['device', 'chunk', 'kind', 'microbatch', 'start_cells', 'duration_cells']\n"
             "block = [list(trace['block_' + name]) for name in names]\n"
             "assert block == [[0, 0, 1, 1], [0] * 4, [0, 3, 0, 3], [0] * 4, [0, 4, 1, 2], [1, 2, 1, 2]], block\n"
             "memory = f['traces/3']\n"
             "assert len(memory) == 21 and memory.attrs['block_interval'] == 0\n"
             "kinds = ['parameters', 'gradients', 'optimizer', 'buffers', 'activations']\n"
             "assert [memory['device_%s_bytes' % kind][1] for kind in kinds] == [2, 11, 101, 1001, 10001]\n"
             "assert list(memory['device_peak_total_bytes']) == [11111, 11116]\n"
             "assert list(memory['device_peak_ps']) == [77, 78] and memory['device_peak_ps'].attrs['unit'] == 'ps'\n"
             "assert list(memory['device_capacity_bytes']) == [88, 89]\n"
             "assert all(d.attrs['unit'] and d.attrs['description'] for d in memory.values())\n");
}

static void h5py_reads_what_the_engine_saw(void **state) {
    const folder *at = *state;
    assert_int_equal(write_example(at->file, NULL), PC_OK);
    run_h5py(at, "r",
             "t = f['traces/1/engine']\n"
             "assert t.attrs['event_count'] == 42 and len(t) == 33\n"
             "assert all(len(column.shape) == 1 for column in t.values())\n"
             "assert t['link_bytes_per_s'].attrs['unit'] == 'B/s' and t['flow_bytes'].attrs['unit'] == 'B'\n"
             "sorts = {n: h5py.check_enum_dtype(t[n + '_sort'].dtype) for n in ['link', 'flow', 'work']}\n"
             "numbered = lambda names: {name: i for i, name in enumerate(names.split())}\n"
             "assert sorts['link'] == numbered('stages domain nic uplink'), sorts\n"
             "assert sorts['flow'] == numbered('message tensor gather reduce tied loss norm'), sorts\n"
             "assert sorts['work'] == numbered('optimizer overhead'), sorts\n"
             "assert list(t['link_sort']) == [0, 0, 2, 2] and list(t['link_peer']) == [1, 0, -1, -1]\n"
             "assert list(t['load_bytes_per_s'][6:]) == [2e9, 2e9, 4e9, 4e9, 0, 0]\n"
             "assert list(t['flow_bytes']) == [5e8, 5e8, 1e9, 2e9, 1e9] and t['flow_end_ps'][0] == 1.5e12\n"
             "assert list(t['memory_capacity_bytes']) == [2**32, 0] and len(t['memory_bytes']) == 6\n"
             "assert list(t['work_end_ps'][:] // 10**10) == [600, 575, 650]\n"
             "assert 'engine' not in f['traces/3']\n");
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
             "ASAN_OPTIONS=detect_leaks=0 %s doc.py results.h5 1 >/dev/null",
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
    pc_results_reader *reader;
    assert_int_equal(pc_results_open(at->file, &reader, NULL), PC_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *text;
        size_t size;
        assert_int_equal(pc_results_scenario_text(reader, names[i], &text, &size, NULL), PC_OK);
        assert_int_equal(size, strlen(names[i]));
        assert_string_equal(text, names[i]);
        pc_free(text);
    }
    pc_error error = {0};
    assert_int_equal(pc_results_scenario_text(reader, "a (2)", &(char *){NULL}, &(size_t){0}, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "results.h5: no scenario 'a (2)'; expected"));
    pc_results_close(reader);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(rows_come_back),
        TEST(no_transfers_are_told_from_unknown_ones),
        TEST(traces_come_back),
        TEST(transfers_and_blocks_come_back),
        TEST(engine_traces_come_back),
        TEST(many_rows_come_back),
        TEST(no_rows_come_back),
        TEST(same_rows_give_the_same_bytes),
        TEST(two_writers_do_not_meet),
        TEST(a_run_number_has_one_trace),
        TEST(h5py_reads_all_of_it),
        TEST(h5py_reads_what_the_engine_saw),
        TEST(h5dump_reads_all_of_it),
        TEST(the_documented_example_works),
        TEST(scenario_names_may_be_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
