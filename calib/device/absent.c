/* In place of the measuring program and the replay, where the command is built without CUDA. */
#include "calib/device/measure.h"
#include "calib/device/replay_device.h"

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

pc_replay_request pc_replay_request_default(void) {
    return (pc_replay_request){.warm_ups = 2, .repeats = 5};
}

pc_code pc_replay_check(const pc_replay_request *request, pc_error *error) {
    (void)request, (void)error;
    return PC_OK;
}

pc_code pc_replay_on_device(const pc_replay_request *request, pc_replay_outcome *outcome, pc_error *error) {
    (void)request, (void)outcome;
    return pc_error_set(error, PC_ERROR_IO,
                        "replay: this pipecast was built without CUDA; expected one built where the CUDA toolkit is "
                        "(meson setup -Dcuda=enabled)");
}
