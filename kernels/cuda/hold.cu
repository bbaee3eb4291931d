/* hold.cu: a kernel that does nothing for a while, so that what is enqueued behind it waits in the stream. */
#include "kernels/cuda/runtime.h"

namespace {

/* One thread, no memory: caches stay as they are. */
__global__ void hold_kernel(long long cycles) {
    const long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
}

} // namespace

extern "C" pc_code pc_device_hold(pc_device *device, pc_error *error) {
    constexpr long long cycles = 250000; /* at 1 to 2 GHz */
    pc_device_enter(device);
    hold_kernel<<<1, 1, 0, device->stream>>>(cycles);
    return pc_device_launched(device, "hold", error);
}
