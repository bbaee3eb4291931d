#include "models/training/state_host.h"

#include "engine/numbers.h"

#include <math.h>

enum { FP32_BYTES = 4, WEIGHT_BYTES = 2, OPTIMIZER_BYTES = 12 };

static bool has_shares(const pc_outline *outline) {
    return outline->cut.offload.kinds & PC_OFFLOAD_PARAMETERS;
}

int64_t pc_outline_stepped_by_host(const pc_outline *outline, int64_t stepped) {
    double fraction = pc_offload_state_fraction(&outline->cut.offload);
    return pc_min((int64_t)ceil((double)stepped * fraction), stepped);
}

double pc_outline_host_step_s(const pc_outline *outline, int64_t count) {
    const pc_machine *machine = &outline->spec->machine;
    double n = (double)count, width = pc_cut_gradient_bytes(&outline->cut);
    if (count == 0) return 0;
    double adam = 2 * 3 * FP32_BYTES + WEIGHT_BYTES + width, clipping = has_shares(outline) ? 3 * width : 0;
    double step_s = n * (adam + clipping) / pc_machine_host_bandwidth(machine);
    if (has_shares(outline)) return step_s;
    double out_s = n * width / pc_machine_host_link(machine), back_s = n * WEIGHT_BYTES / pc_machine_host_link(machine);
    return outline->cut.offload.overlaps_copies ? fmax(step_s, fmax(out_s, back_s)) : out_s + step_s + back_s;
}

double pc_outline_share_copy_s(const pc_outline *outline, double bucket_bytes, int ranks) {
    if (!has_shares(outline)) return 0;
    return bucket_bytes / ranks / pc_machine_host_link(&outline->spec->machine);
}

/* With an fp32 gradient of each on the host, in pinned memory. */
void pc_outline_move_state(const pc_outline *outline, int64_t stepped, pc_device_outline *device) {
    int64_t count = pc_outline_stepped_by_host(outline, stepped);
    if (has_shares(outline)) {
        device->host_bytes = device->fixed_parameters + device->fixed_gradients + device->fixed_optimizer;
        device->fixed_parameters = device->fixed_gradients = device->fixed_optimizer = 0;
        return;
    }
    device->host_bytes = (OPTIMIZER_BYTES + FP32_BYTES) * count;
    device->fixed_optimizer = pc_max(device->fixed_optimizer - OPTIMIZER_BYTES * count, 0);
}
