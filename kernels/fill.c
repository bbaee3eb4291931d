#include "kernels/fill.h"

#include <math.h>

static const char *const names[PC_FILLS] = {"zero", "one", "normal", "uniform", "index", "poison"};

pc_code pc_fill_check(pc_dtype dtype, pc_fill fill, double scale, pc_error *error) {
    bool is_whole = dtype == PC_INT32 || dtype == PC_UINT8;
    if ((unsigned)dtype >= PC_DTYPES || (unsigned)fill >= PC_FILLS)
        return pc_error_set(error, PC_ERROR_INPUT, "fill: dtype %d, fill %d; expected ones that are", dtype, fill);
    if (is_whole && (fill == PC_FILL_NORMAL || fill == PC_FILL_UNIFORM))
        return pc_error_set(error, PC_ERROR_INPUT, "fill: %s numbers as %s; expected a format with a point",
                            names[fill], pc_dtype_name(dtype));
    if (!is_whole && fill == PC_FILL_INDEX)
        return pc_error_set(error, PC_ERROR_INPUT, "fill: an index as %s; expected int32 or uint8",
                            pc_dtype_name(dtype));
    double most = dtype == PC_UINT8 ? 256 : 2147483648.0;
    if (fill == PC_FILL_INDEX && !(scale >= 1 && scale <= most))
        return pc_error_set(error, PC_ERROR_INPUT, "fill: an index below %g as %s; expected 1 to %g", scale,
                            pc_dtype_name(dtype), most);
    if (!isfinite(scale)) return pc_error_set(error, PC_ERROR_INPUT, "fill: a scale of %g; expected a number", scale);
    return PC_OK;
}
