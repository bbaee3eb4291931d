/* A program that is one rank of a group on the emulated device, as `pipecast calibrate-rank` is on a real one. */
#include "calib/device/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    pc_rank_task task;
    pc_error error = {0};
    const char *fault = getenv("PC_TEST_RANK_FAULT");
    if (fault && strcmp(fault, "silent") == 0) return 1;
    if (fault && strcmp(fault, "hangs") == 0) sleep(600);
    if (argc < 2 || strcmp(argv[1], PC_RANK_COMMAND) != 0) return 2;
    pc_code code = pc_rank_task_parse(argc - 2, argv + 2, &task, &error);
    if (!code && fault && strcmp(fault, "one") == 0 && task.rank == 1)
        code = pc_error_set(&error, PC_ERROR_IO, "rank 1 was told to fail");
    task.device = 0; /* there is but one; ranks share it as well as real ones would their own */
    if (!code) code = pc_rank_measure(&task, &error);
    if (code) fprintf(stderr, "%s\n", error.message);
    return code ? 1 : 0;
}
