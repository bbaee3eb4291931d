#include "models/workload/low_precision.h"

int64_t pc_product_format_bytes(pc_product_format format, int64_t elements) {
    int64_t bytes = pc_product_format_bytes_of_32(format);
    return elements / 32 * bytes + (elements % 32 * bytes + 31) / 32;
}

int64_t pc_low_precision_weight_bytes(const pc_low_precision *recipe, int64_t elements) {
    int64_t low = recipe->copies * pc_product_format_bytes(recipe->product[0], elements);
    if (!pc_low_precision_is_on(recipe) || recipe->weights == PC_LOW_WEIGHTS_EACH) return 2 * elements;
    return recipe->weights == PC_LOW_WEIGHTS_HELD ? low : 2 * elements + low;
}
