/* fill.h: the numbers of pc_device_fill, the same on the host and on GPUs, to the last bit.
 *
 * Element i is a function of seed and i alone: splitmix64's mixer (engine/random.h) over a counter. Normal numbers are
 * sums of eight 16-bit uniform ones (Irwin-Hall): within 4.9 standard deviations, and no logarithm or cosine of which
 * two machines have two opinions. Only whole numbers and one multiplication of floats, so that nothing can be
 * contracted.
 */
#ifndef PC_KERNELS_FILL_H
#define PC_KERNELS_FILL_H

#include "engine/random.h"
#include "kernels/device.h"

PC_RANDOM_INLINE uint64_t pc_fill_bits(uint64_t seed, uint64_t i) {
    return pc_mix(pc_mix(seed ^ PC_GOLDEN) + i * PC_GOLDEN);
}

PC_RANDOM_INLINE int32_t pc_fill_sum_of_four(uint64_t bits) {
    return (int32_t)((bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48));
}

/* What fills of a scale multiply by: made once, on the host. The variance of a uniform whole number below 2^16 is
 * (2^32 - 1) / 12, so that of eight is 2 (2^32 - 1) / 3. */
static inline float pc_fill_factor(pc_fill fill, double scale) {
    if (fill == PC_FILL_NORMAL) return (float)(scale / 53509.91992145008); /* sqrt(2 (2^32 - 1) / 3) */
    if (fill == PC_FILL_UNIFORM) return (float)scale * 0x1p-24f;
    return 0;
}

/* PC_FILL_ZERO, ONE, NORMAL or UNIFORM, before it is rounded to the dtype (so that UNIFORM may come out as `scale`). */
PC_RANDOM_INLINE float pc_fill_float(pc_fill fill, float factor, uint64_t seed, uint64_t i) {
    uint64_t bits = pc_fill_bits(seed, i);
    switch (fill) {
    case PC_FILL_ONE:
        return 1;
    case PC_FILL_NORMAL: /* the mean of eight is 8 (2^16 - 1) / 2 */
        return (float)(pc_fill_sum_of_four(bits) + pc_fill_sum_of_four(pc_mix(bits)) - 262140) * factor;
    case PC_FILL_UNIFORM:
        return (float)(int32_t)(bits >> 40) * factor;
    default:
        return 0;
    }
}

/* PC_FILL_ZERO, ONE or INDEX; of INDEX 0 .. limit - 1. */
PC_RANDOM_INLINE int32_t pc_fill_whole(pc_fill fill, uint64_t limit, uint64_t seed, uint64_t i) {
    if (fill == PC_FILL_INDEX) return (int32_t)(((pc_fill_bits(seed, i) >> 32) * limit) >> 32);
    return fill == PC_FILL_ONE;
}

/* What an element of a poisoned tensor is made of, in its last bytes: NaN in all formats of numbers with a point; the
 * largest whole number. */
PC_RANDOM_INLINE uint32_t pc_fill_poison(pc_dtype dtype) {
    return dtype == PC_FP32 ? 0x7fffffff : dtype == PC_INT32 ? 0x7fffffff : dtype == PC_UINT8 ? 0xff : 0x7fff;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Of both implementations: PC_ERROR_INPUT where such a dtype cannot be filled so. */
pc_code pc_fill_check(pc_dtype dtype, pc_fill fill, double scale, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
