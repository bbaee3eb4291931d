/* memory_limit.h: how much memory each device may use for activations. A limit is part of a request, and absent if
 * there is none: costs say what passes take, not what there is room for.
 */
#ifndef PC_MODELS_SCHEDULE_MEMORY_LIMIT_H
#define PC_MODELS_SCHEDULE_MEMORY_LIMIT_H

#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A number of bytes that nobody can exceed. A limit of 0 bytes is another thing: nothing fits. */
#define PC_NO_LIMIT INT64_MAX

/* A zeroed one is no limit. */
typedef struct pc_memory_limit {
    const int64_t
        *device_bytes; /* [devices]; PC_NO_LIMIT for a device without one. NULL: no device has one. Borrowed */
} pc_memory_limit;

static inline int64_t pc_memory_limit_of(pc_memory_limit limit, int device) {
    return limit.device_bytes ? limit.device_bytes[device] : PC_NO_LIMIT;
}

/* Whether some device has one. */
bool pc_memory_limit_is_given(pc_memory_limit limit, int devices);

/* PC_ERROR_INPUT, naming the device, where one is negative. */
pc_code pc_memory_limit_check(pc_memory_limit limit, int devices, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
