/* kernel_table.h: the kernels of replayed passes as CSV (`calibrate --replay-kernels`). */
#ifndef PC_CLI_KERNEL_TABLE_H
#define PC_CLI_KERNEL_TABLE_H

#include "calib/device/replay_device.h"
#include "storage/text.h"

/* Zeroed at first. */
typedef struct kernel_table {
    pc_replay_kernel kernel[PC_REPLAY_KERNELS]; /* room for those of one run */
    pc_text text;
} kernel_table;

/* A line for every kernel of a run. */
void kernel_table_add(kernel_table *table, const pc_replay_outcome *outcome);
pc_code kernel_table_write(kernel_table *table, const char *path, pc_error *error);
void kernel_table_free(kernel_table *table);

#endif
