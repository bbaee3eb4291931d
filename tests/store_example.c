#include "tests/store_example.h"

#include "results/columns.h"
#include "tests/engine_example.h"

/* --- rows and a trace --- */

pc_run_row ok_row(int64_t run) {
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

pc_run_row infeasible_row(int64_t run) {
    pc_run_row row;
    pc_run_row_clear(&row);
    row.run = run;
    row.status = PC_RUN_INFEASIBLE;
    memset(row.message, 'm', sizeof row.message - 1); /* as long as there is room */
    return row;
}

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

/* Of 1F1B on two devices: every three cells F, and BW, which takes two. */
static void make_block(example *made) {
    for (int i = 0; i < DEVICES * PC_PASS_KINDS; i++) made->block_start[i] = PC_TIME_NOT_GIVEN;
    made->block = (pc_block){.placement = PC_PLACEMENT_LINEAR,
                             .devices = DEVICES,
                             .chunks = 1,
                             .microbatches = 1,
                             .interval = 3,
                             .start = made->block_start,
                             .duration = made->block_duration};
    made->block_start[PC_PASS_F] = 0;
    made->block_start[PC_PASS_BW] = 4;
    made->block_start[PC_PASS_KINDS + PC_PASS_F] = 1;
    made->block_start[PC_PASS_KINDS + PC_PASS_BW] = 2;
    made->block_duration[PC_PASS_F] = 1;
    made->block_duration[PC_PASS_BW] = 2;
}

void add_transfers(example *made) {
    static const int waiting[TRANSFERS] = {2, 3, 4, 6}; /* BW0 BW1 of device 0, F0 F1 of device 1 */
    static const int making[TRANSFERS] = {5, 7, 0, 1};
    for (int k = 0; k < TRANSFERS; k++) {
        made->transfer_from[k] = making[k] / 4;
        made->transfer_to[k] = waiting[k] / 4;
        made->transfer_pass[k] = made->pass[waiting[k]];
        made->transfer_start[k] = made->transfer_end[k] = made->end[making[k]];
    }
    pc_replay_trace *trace = &made->replay.trace;
    trace->transfer_count = TRANSFERS;
    trace->transfer_from = made->transfer_from;
    trace->transfer_to = made->transfer_to;
    trace->transfer_pass = made->transfer_pass;
    trace->transfer_start_ps = made->transfer_start;
    trace->transfer_end_ps = made->transfer_end;
}

void add_engine(example *made) {
    made->replay.way = PC_WAY_EVENTS;
    made->replay.engine = engine_example;
}

void make_example(example *made) {
    static const pc_time starts[PASSES] = {0, 1, 3, 5, 1, 2, 3, 4}; /* F0 F1 BW0 BW1 | F0 BW0 F1 BW1, in seconds */
    static const int16_t kinds[PASSES] = {PC_PASS_F, PC_PASS_F,  PC_PASS_BW, PC_PASS_BW,
                                          PC_PASS_F, PC_PASS_BW, PC_PASS_F,  PC_PASS_BW};
    static const int32_t microbatches[PASSES] = {0, 1, 0, 1, 0, 0, 1, 1};
    memset(made, 0, sizeof *made);
    made->schedule = (pc_schedule){.name = "1f1b", .devices = DEVICES, .microbatches = 2, .chunks = 1};
    link_arrays(made);
    make_block(made);
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
        made->memory[d] = (pc_device_memory){.parameters = 1 + d,
                                             .gradients = 10 + d,
                                             .optimizer = 100 + d,
                                             .buffers = 1000 + d,
                                             .activations = 10000 + d,
                                             .peak_bytes = 11111 + 5 * d,
                                             .peak_ps = 77 + d,
                                             .capacity_bytes = 88 + d};
    }
    made->replay.devices = DEVICES;
    made->replay.span_ps = made->replay.makespan_ps = 6 * PC_PICOSECONDS_PER_SECOND;
    made->replay.bubble_rate_span = made->replay.bubble_rate_makespan = 1.0 / 3;
    made->replay.peak_bytes = INT64_C(3) << 30;
    made->replay.trace_hash = UINT64_C(0xfedcba9876543210);
}

pc_code add_example(pc_results_writer *writer, pc_error *error) {
    example made;
    make_example(&made);
    pc_run_detail detail = {.replay = made.replay}, full = detail;
    add_transfers(&made);
    add_engine(&made);
    full.replay = made.replay;
    full.block = made.block;
    pc_run_row rows[] = {ok_row(1), infeasible_row(2), ok_row(3)};
    pc_code code = pc_results_add_scenario(writer, "zero-bubble", "name: zero-bubble\n", 18, error);
    if (!code) code = pc_results_add_run(writer, &rows[0], &made.schedule, &full, error);
    if (!code) code = pc_results_add_run(writer, &rows[1], NULL, NULL, error);
    detail.devices = DEVICES;
    detail.memory = made.memory;
    detail.replay.out_of_memory = true;
    detail.replay.oom = (pc_out_of_memory){.device = 1,
                                           .pass = {.microbatch = 1, .chunk = 0, .kind = PC_PASS_W},
                                           .time_ps = 5,
                                           .requested_bytes = 6,
                                           .level_bytes = 7,
                                           .capacity_bytes = 8};
    return code ? code : pc_results_add_run(writer, &rows[2], &made.schedule, &detail, error);
}

pc_code write_example(const char *path, pc_error *error) {
    pc_results_writer *writer;
    pc_code code = pc_results_create(path, &writer, error);
    if (code) return code;
    code = add_example(writer, error);
    if (!code) return pc_results_commit(writer, error);
    pc_results_discard(writer);
    return code;
}

/* --- bytes --- */

bytes read_bytes(const char *path) {
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

void write_bytes(const char *path, const char *data, size_t size) {
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

/* --- h5py --- */

bool has_program(const char *command) {
    char line[256];
    snprintf(line, sizeof line, "%s >/dev/null 2>&1", command);
    return system(line) == 0;
}

/* Debian's h5py belongs to Debian's Python, which need not be the first one on the path. */
const char *find_h5py(void) {
    static const char *const names[] = {"python3", "/usr/bin/python3"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char command[128];
        snprintf(command, sizeof command, "%s -c 'import h5py'", names[i]);
        if (has_program(command)) return names[i];
    }
    return NULL;
}

void run_h5py(const folder *at, const char *mode, const char *lines) {
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
