/* In place of the measuring program, where the command is built without CUDA. */
#include "calib/device/measure.h"
#include "calib/device/transfers.h"

static pc_code say_absent(pc_error *error) {
    return pc_error_set(error, PC_ERROR_IO,
                        "calibrate: this pipecast was built without CUDA; expected one built where the CUDA toolkit is "
                        "(meson setup -Dcuda=enabled); without a GPU `pipecast profile fit` makes a profile of others' "
                        "measurements");
}

pc_code pc_calibrate(const pc_calibrate_request *request, pc_profile *profile, char **warnings, pc_error *error) {
    (void)request, (void)profile;
    *warnings = NULL;
    return say_absent(error);
}

pc_code pc_rank_task_parse(int count, char **arguments, pc_rank_task *task, pc_error *error) {
    (void)count, (void)arguments, (void)task;
    return say_absent(error);
}

pc_code pc_rank_measure(const pc_rank_task *task, pc_error *error) {
    (void)task;
    return say_absent(error);
}
