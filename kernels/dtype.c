#include "kernels/dtype.h"

#include <assert.h>
#include <math.h>

/* A binary format: bits of its significand, the exponent of its least normal number, its largest number. */
static const struct format {
    const char *name;
    int64_t bytes;
    int digits, least_exponent; /* digits 0: whole numbers */
    double largest;
} formats[PC_DTYPES] = {
    [PC_BF16] = {"bf16", 2, 8, -126, 0x1.fep127},
    [PC_FP16] = {"fp16", 2, 11, -14, 65504},
    [PC_FP32] = {"fp32", 4, 24, -126, 0x1.fffffep127},
    [PC_INT32] = {"int32", 4, 0, 0, INT32_MAX},
    [PC_UINT8] = {"uint8", 1, 0, 0, UINT8_MAX},
    [PC_E4M3] = {"e4m3", 1, 4, -6, 448},
    [PC_E5M2] = {"e5m2", 1, 3, -14, 57344},
    [PC_E8M0] = {"e8m0", 1, 1, -127, 0x1p127},
};

int64_t pc_dtype_bytes(pc_dtype dtype) {
    assert((unsigned)dtype < PC_DTYPES);
    return formats[dtype].bytes;
}

const char *pc_dtype_name(pc_dtype dtype) {
    assert((unsigned)dtype < PC_DTYPES);
    return formats[dtype].name;
}

/* The exponent of a unit in the last place at `value`. */
static int unit_exponent(const struct format *format, double value) {
    int exponent, least = format->least_exponent + 1; /* |value| is in [2^(exponent - 1), 2^exponent) */
    (void)frexp(value, &exponent);
    if (value == 0) exponent = least;
    return (exponent > least ? exponent : least) - format->digits;
}

static double round_whole(pc_dtype dtype, double value) {
    double least = dtype == PC_INT32 ? INT32_MIN : 0, rounded = nearbyint(value);
    if (!(rounded <= formats[dtype].largest)) return formats[dtype].largest; /* NaN too */
    return rounded < least ? least : rounded;
}

static bool saturates(pc_dtype dtype) {
    return dtype == PC_E4M3 || dtype == PC_E5M2;
}

/* The power of two that is not above it. */
static double round_power(const struct format *format, double value) {
    if (isnan(value)) return value;
    int exponent;
    (void)frexp(value, &exponent);
    bool is_least = value == 0 || exponent - 1 < format->least_exponent;
    return fabs(value) >= format->largest ? format->largest
                                          : ldexp(1, is_least ? format->least_exponent : exponent - 1);
}

double pc_dtype_round(pc_dtype dtype, double value) {
    const struct format *format = &formats[dtype];
    if (dtype == PC_E8M0) return round_power(format, value);
    if (format->digits == 0) return round_whole(dtype, value);
    if (isnan(value) || value == 0) return value;
    double beyond = copysign(saturates(dtype) ? format->largest : INFINITY, value);
    if (isinf(value)) return beyond;
    int unit = unit_exponent(format, value);
    double rounded = ldexp(nearbyint(ldexp(value, -unit)), unit);
    return fabs(rounded) > format->largest ? beyond : rounded;
}

double pc_dtype_half_unit(pc_dtype dtype, double value) {
    const struct format *format = &formats[dtype];
    if (format->digits == 0 || !isfinite(value)) return 0;
    return ldexp(0.5, unit_exponent(format, value));
}

double pc_dtype_get(pc_dtype dtype, const void *address, int64_t i) {
    switch (dtype) {
    case PC_BF16:
        return (double)pc_bf16_to_float(((const uint16_t *)address)[i]);
    case PC_FP16:
        return (double)pc_fp16_to_float(((const uint16_t *)address)[i]);
    case PC_FP32:
        return (double)((const float *)address)[i];
    case PC_INT32:
        return ((const int32_t *)address)[i];
    case PC_E4M3:
        return (double)pc_e4m3_to_float(((const uint8_t *)address)[i]);
    case PC_E5M2:
        return (double)pc_e5m2_to_float(((const uint8_t *)address)[i]);
    case PC_E8M0:
        return (double)pc_e8m0_to_float(((const uint8_t *)address)[i]);
    default:
        return ((const uint8_t *)address)[i];
    }
}

void pc_dtype_set(pc_dtype dtype, void *address, int64_t i, double value) {
    double rounded = pc_dtype_round(dtype, value); /* exact as a float, so that nothing is rounded twice */
    switch (dtype) {
    case PC_BF16:
        ((uint16_t *)address)[i] = pc_bf16_from_float((float)rounded);
        break;
    case PC_FP16:
        ((uint16_t *)address)[i] = pc_fp16_from_float((float)rounded);
        break;
    case PC_FP32:
        ((float *)address)[i] = (float)rounded;
        break;
    case PC_INT32:
        ((int32_t *)address)[i] = (int32_t)rounded;
        break;
    case PC_E4M3:
        ((uint8_t *)address)[i] = pc_e4m3_from_float((float)rounded);
        break;
    case PC_E5M2:
        ((uint8_t *)address)[i] = pc_e5m2_from_float((float)rounded);
        break;
    case PC_E8M0:
        ((uint8_t *)address)[i] = pc_e8m0_from_float((float)rounded);
        break;
    default:
        ((uint8_t *)address)[i] = (uint8_t)rounded;
    }
}
