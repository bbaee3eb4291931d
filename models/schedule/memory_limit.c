#include "models/schedule/memory_limit.h"

#include <inttypes.h>

bool pc_memory_limit_is_given(pc_memory_limit limit, int devices) {
    for (int d = 0; d < devices; d++)
        if (pc_memory_limit_of(limit, d) != PC_NO_LIMIT) return true;
    return false;
}

pc_code pc_memory_limit_check(pc_memory_limit limit, int devices, pc_error *error) {
    for (int d = 0; d < devices; d++)
        if (pc_memory_limit_of(limit, d) < 0)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "memory limit: device %d: %" PRId64 " bytes; expected none below zero", d,
                                limit.device_bytes[d]);
    return PC_OK;
}
