/* store_example.h: an example of a results file, for the tests of the store; its bytes, and Python's view of it. */
#ifndef PC_TESTS_STORE_EXAMPLE_H
#define PC_TESTS_STORE_EXAMPLE_H

#include "results/store/store.h"
#include "tests/folder.h"

/* --- rows and a trace --- */

pc_run_row ok_row(int64_t run);
pc_run_row infeasible_row(int64_t run);

/* Two devices, two microbatches, F and BW of one second each: device 1 may start when device 0 has done its F. */
enum { DEVICES = 2, PASSES = 8, LEVELS = 8, TRANSFERS = 4 };

typedef struct example {
    pc_schedule schedule;
    pc_replay replay;
    int32_t pass_device[PASSES], level_device[LEVELS];
    pc_pass pass[PASSES];
    pc_time start[PASSES], end[PASSES], level_time[LEVELS];
    int64_t level[LEVELS];
    pc_time device_start[DEVICES], device_end[DEVICES], device_busy[DEVICES];
    int64_t device_peak[DEVICES];
    pc_device_memory memory[DEVICES]; /* of run 3 */
    /* Of run 1: what goes between stages, and the block. */
    int32_t transfer_from[TRANSFERS], transfer_to[TRANSFERS];
    pc_pass transfer_pass[TRANSFERS];
    pc_time transfer_start[TRANSFERS], transfer_end[TRANSFERS];
    pc_block block;
    int64_t block_start[DEVICES * PC_PASS_KINDS], block_duration[PC_PASS_KINDS];
} example;

void make_example(example *made);

/* Gives the example's replay its transfers: two F to device 1, two BW to device 0, all at once. */
void add_transfers(example *made);

/* And what the engine saw (engine_example.h). */
void add_engine(example *made);

/* Runs 1, 2 and 3: the first and the last with a trace, the first the engine's too, the last out of memory; the second
 * infeasible. */
pc_code add_example(pc_results_writer *writer, pc_error *error);
pc_code write_example(const char *path, pc_error *error);

/* --- bytes --- */

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

/* The whole file; the caller frees the data. */
bytes read_bytes(const char *path);
void write_bytes(const char *path, const char *data, size_t size);

/* --- h5py --- */

bool has_program(const char *command);

/* The Python that has h5py; NULL where there is none. */
const char *find_h5py(void);

/* Runs Python lines with `f` open on the file; skips the test where there is no h5py. */
void run_h5py(const folder *at, const char *mode, const char *lines);

#define TEST(function) TEST_IN_FOLDER(function, "results.h5")

#endif
