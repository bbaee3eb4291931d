#include "models/workload/format.h"

#include <string.h>

static const struct {
    const char *name;
    int bytes_of_32, multiple, gathered_multiple;
} formats[PC_PRODUCT_FORMATS] = {
    [PC_PRODUCT_BF16] = {"bf16", 64, 1, 1},
    [PC_PRODUCT_FP16] = {"fp16", 64, 1, 1},
    [PC_PRODUCT_FP8] = {"fp8", 32, 16, 16},
    [PC_PRODUCT_FP8_BLOCK] = {"fp8_block", 32 + 1, 16, 128}, /* 4 bytes for 128 */
    [PC_PRODUCT_MXFP8] = {"mxfp8", 32 + 1, 32, 32},
    [PC_PRODUCT_NVFP4] = {"nvfp4", 16 + 2, 16, 16},
};

const char *pc_product_format_name(pc_product_format format) {
    return formats[format].name;
}

bool pc_product_format_find(const char *name, pc_product_format *format) {
    for (int i = 0; i < PC_PRODUCT_FORMATS; i++) {
        if (strcmp(formats[i].name, name) != 0) continue;
        *format = (pc_product_format)i;
        return true;
    }
    return false;
}

int pc_product_format_bytes_of_32(pc_product_format format) {
    return formats[format].bytes_of_32;
}

int pc_product_format_multiple(pc_product_format format) {
    return formats[format].multiple;
}

int pc_product_format_gathered_multiple(pc_product_format format) {
    return formats[format].gathered_multiple;
}

bool pc_product_format_is_low(pc_product_format format) {
    return format > PC_PRODUCT_FP16;
}
