/* dtype.h: the 16-bit formats on the host: to and from float and double, to the nearest, ties to even.
 *
 * bf16 is the upper half of an IEEE single (8 bits of significand); fp16 is IEEE 754 binary16 (11 bits, largest 65504).
 */
#ifndef PC_KERNELS_DTYPE_H
#define PC_KERNELS_DTYPE_H

#include "kernels/device.h"

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline uint32_t pc_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float pc_float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float pc_bf16_to_float(uint16_t bits) {
    return pc_float_of_bits((uint32_t)bits << 16);
}

/* NaN becomes 0x7fff, as on GPUs. */
static inline uint16_t pc_bf16_from_float(float value) {
    uint32_t bits = pc_float_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

static inline float pc_fp16_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = (bits >> 10) & 0x1f, fraction = bits & 0x3ff;
    if (exponent == 0) { /* whole numbers of 2^-24 */
        float x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    if (exponent == 31) return pc_float_of_bits(sign | 0x7f800000 | fraction << 13);
    return pc_float_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline uint16_t pc_fp16_from_float(float value) {
    uint32_t bits = pc_float_bits(value), sign = (bits >> 16) & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return 0x7fff;
    if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* from 65520 on nearer to 65536 than to 65504 */
    if (size < 0x38800000) /* below 2^-14: the sum's last place is 2^-24, and it rounds */
        return (uint16_t)(sign | (pc_float_bits(pc_float_of_bits(size) + 0.5f) - 0x3f000000));
    size += 0xfff + ((size >> 13) & 1);
    return (uint16_t)(sign | (size - (112u << 23)) >> 13);
}

/* Of element `i` at `address`. */
double pc_dtype_get(pc_dtype dtype, const void *address, int64_t i);
void pc_dtype_set(pc_dtype dtype, void *address, int64_t i, double value); /* rounded once */

/* `value` as dtype holds it; beyond the largest one, infinity (whole numbers: the largest one). */
double pc_dtype_round(pc_dtype dtype, double value);

/* Half a unit in the last place at `value`: the most that rounding it to dtype changes; 0 of whole numbers. */
double pc_dtype_half_unit(pc_dtype dtype, double value);

#ifdef __cplusplus
}
#endif
#endif
