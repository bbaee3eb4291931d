/* `pipecast calibrate-rank`: one rank of a group whose transfers are measured. The program starts it by itself. */
#include "calib/device/transfers.h"
#include "cli/cli.h"

int command_calibrate_rank(int argc, char **argv) {
    pc_rank_task task;
    pc_error error = {0};
    pc_code code = pc_rank_task_parse(argc - 1, argv + 1, &task, &error);
    if (!code) code = pc_rank_measure(&task, &error);
    return code ? report(&error) : EXIT_DONE;
}
