/* In place of the replay on a device, where the command is built without CUDA. */
#include "calib/device/replay.h"

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
