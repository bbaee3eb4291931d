/* dtype.h: formats of 16 and 8 bits on the host: to and from float and double, to the nearest, ties to even.
 *
 * Bf16 is the upper half of an IEEE single (8 bits of significand). Fp16 is IEEE 754 binary16 (11 bits, largest 65504).
 * E4m3 has 4 bits of significand, its largest number is 448, and it has no infinity. E5m2 has 3 bits of fp16's numbers,
 * and its largest is 57344 (Micikevicius et al. 2022, arXiv 2209.05433). What is beyond the largest number of either
 * becomes that, infinity too, as in the casts of Transformer Engine and in CUDA's __NV_SATFINITE.
 * e8m0 is an exponent alone, of scales of blocks (OCP MX 1.0): a power of two. A number becomes the largest that is not
 * above it, without its sign, 2^-127 at the least.
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

/* An 8-bit format: bits of the fraction, what the exponent is shifted by against a float's, the largest number. */
typedef struct pc_format_8 {
    uint32_t fraction_bits, shift, largest_bits;
    float least, add; /* the least normal number; a float of which the last place is this format's least number */
    uint8_t largest;
} pc_format_8;

static const pc_format_8 pc_format_e4m3 = {3, 120, 0x43e00000, 0x1p-6f, 0x1p14f, 0x7e};
static const pc_format_8 pc_format_e5m2 = {2, 112, 0x47600000, 0x1p-14f, 0x1p7f, 0x7b};

static inline uint8_t pc_8_from_float(const pc_format_8 *format, float value) {
    uint32_t bits = pc_float_bits(value), sign = (bits >> 24) & 0x80, size = bits & 0x7fffffff;
    uint32_t cut = 23 - format->fraction_bits;
    if (size > 0x7f800000) return 0x7f;
    if (size >= format->largest_bits) return (uint8_t)(sign | format->largest);
    float positive = pc_float_of_bits(size);
    if (positive < format->least) /* the sum rounds */
        return (uint8_t)(sign | (pc_float_bits(positive + format->add) - pc_float_bits(format->add)));
    size += (1u << (cut - 1)) - 1 + ((size >> cut) & 1);
    return (uint8_t)(sign | (size - (format->shift << 23)) >> cut);
}

static inline float pc_8_to_float(const pc_format_8 *format, uint8_t code) {
    uint32_t sign = (uint32_t)(code & 0x80) << 24, cut = 23 - format->fraction_bits, size = code & 0x7f;
    uint32_t exponent = size >> format->fraction_bits;
    if (exponent == 0) { /* whole numbers of the least one */
        float x = pc_float_of_bits(pc_float_bits(format->add) + size) - format->add;
        return sign ? -x : x;
    }
    return pc_float_of_bits(sign | ((format->shift << 23) + (size << cut)));
}

static inline uint8_t pc_e4m3_from_float(float value) {
    return pc_8_from_float(&pc_format_e4m3, value);
}

static inline uint8_t pc_e5m2_from_float(float value) {
    return pc_8_from_float(&pc_format_e5m2, value);
}

static inline float pc_e4m3_to_float(uint8_t code) {
    return (code & 0x7f) == 0x7f ? pc_float_of_bits(0x7fffffff) : pc_8_to_float(&pc_format_e4m3, code);
}

static inline float pc_e5m2_to_float(uint8_t code) {
    uint32_t sign = (uint32_t)(code & 0x80) << 24, size = code & 0x7f;
    if (size == 0x7c) return pc_float_of_bits(sign | 0x7f800000);
    return size > 0x7c ? pc_float_of_bits(0x7fffffff) : pc_8_to_float(&pc_format_e5m2, code);
}

/* The exponent of a float, as it stands there; 0xff is NaN. */
static inline uint8_t pc_e8m0_from_float(float value) {
    return (uint8_t)(pc_float_bits(value) >> 23);
}

static inline float pc_e8m0_to_float(uint8_t code) {
    return code == 0xff ? pc_float_of_bits(0x7fffffff) : pc_float_of_bits(code ? (uint32_t)code << 23 : 1u << 22);
}

/* Of element `i` at `address`. */
double pc_dtype_get(pc_dtype dtype, const void *address, int64_t i);
void pc_dtype_set(pc_dtype dtype, void *address, int64_t i, double value); /* rounded once */

/* `value` as dtype holds it; beyond the largest one, infinity (whole numbers and 8 bits: the largest one). */
double pc_dtype_round(pc_dtype dtype, double value);

/* Half a unit in the last place at `value`: the most that rounding it to dtype changes; 0 of whole numbers. */
double pc_dtype_half_unit(pc_dtype dtype, double value);

#ifdef __cplusplus
}
#endif
#endif
