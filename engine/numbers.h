/* numbers.h: the smaller and the larger of two, division that rounds, and how many of a unit another one has. C only.
 * Private to the library.
 */
#ifndef PC_ENGINE_NUMBERS_H
#define PC_ENGINE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* ---- the smaller and the larger ---- */

/* Of one type: what C makes of their sum. Each is worked out once. Where one is no number, the second. */
#define pc_min(a, b) PC_OF_TYPE(pc_min, (a) + (b))(a, b)
#define pc_max(a, b) PC_OF_TYPE(pc_max, (a) + (b))(a, b)

/* clang-format off */
#define PC_OF_TYPE(name, number)                                                                                       \
    _Generic(number,                                                                                                   \
        int: name##_int,                                                                                               \
        long: name##_long,                                                                                             \
        long long: name##_long_long,                                                                                   \
        unsigned long: name##_size,                                                                                    \
        double: name##_real,                                                                                           \
        __int128: name##_wide)
/* clang-format on */

#define PC_MIN_AND_MAX(name, type)                                                                                     \
    static inline type pc_min_##name(type a, type b) {                                                                 \
        return a < b ? a : b;                                                                                          \
    }                                                                                                                  \
    static inline type pc_max_##name(type a, type b) {                                                                 \
        return a > b ? a : b;                                                                                          \
    }

PC_MIN_AND_MAX(int, int)
PC_MIN_AND_MAX(long, long)
PC_MIN_AND_MAX(long_long, long long)
PC_MIN_AND_MAX(size, unsigned long)
PC_MIN_AND_MAX(real, double)
PC_MIN_AND_MAX(wide, __int128)

/* ---- division, by a divisor above zero ---- */

static inline int64_t pc_divide_up(int64_t a, int64_t b) {
    return a / b + (a % b > 0);
}

static inline int64_t pc_divide_down(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* The least multiple of the step that is not below. */
static inline int64_t pc_round_up(int64_t number, int64_t step) {
    return pc_divide_up(number, step) * step;
}

/* The greatest common divisor. */
static inline int64_t pc_gcd(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* ---- units (picoseconds: simtime.h) ---- */

#define PC_BYTES_PER_MIB  (INT64_C(1) << 20)
#define PC_BYTES_PER_GIB  (INT64_C(1) << 30)
#define PC_BYTES_PER_GB   1e9
#define PC_FLOP_PER_TFLOP 1e12

#endif
