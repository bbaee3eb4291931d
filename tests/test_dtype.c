/* The 8-bit formats: every code against the formula of its bits, every float against the nearest of all codes, ties,
 * what is beyond the largest number, and what fills make of them. */
#include "tests/support.h"

#include "kernels/device.h"
#include "kernels/dtype.h"

#include <math.h>

/* What each of the two is, from the table of arXiv 2209.05433. */
static const struct format_8 {
    pc_dtype dtype;
    int fraction_bits, bias, last; /* the code of the largest number */
    double largest;
    float (*to_float)(uint8_t code);
    uint8_t (*from_float)(float value);
} formats[] = {
    {PC_E4M3, 3, 7, 0x7e, 448, pc_e4m3_to_float, pc_e4m3_from_float},
    {PC_E5M2, 2, 15, 0x7b, 57344, pc_e5m2_to_float, pc_e5m2_from_float},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* (-1)^s 2^(e - bias) (1 + f / 2^bits), and without the one where e is 0. */
static double value_of(const struct format_8 *format, int code) {
    int fraction = code & ((1 << format->fraction_bits) - 1), exponent = (code & 0x7f) >> format->fraction_bits;
    double one = exponent > 0 ? 1.0 : 0.0, part = fraction / (double)(1 << format->fraction_bits);
    double size = ldexp(one + part, (exponent > 0 ? exponent : 1) - format->bias);
    return code & 0x80 ? -size : size;
}

static void test_codes(void **state) {
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        const struct format_8 *format = &formats[f];
        assert_true(value_of(format, format->last) == format->largest);
        for (int code = 0; code < 256; code++) {
            float value = format->to_float((uint8_t)code);
            uint8_t stored = (uint8_t)code;
            if ((code & 0x7f) > format->last) {
                bool is_infinite = format->dtype == PC_E5M2 && (code & 0x7f) == 0x7c;
                assert_true(is_infinite ? isinf(value) : isnan(value));
                assert_int_equal(format->from_float(value), is_infinite ? (code & 0x80) | format->last : 0x7f);
                continue;
            }
            assert_true((double)value == value_of(format, code) && !signbit(value) == !(code & 0x80));
            assert_int_equal(format->from_float(value), code);
            assert_true(pc_dtype_get(format->dtype, &stored, 0) == (double)value);
            assert_true(pc_dtype_round(format->dtype, (double)value) == (double)value);
        }
    }
}

static void check_both_signs(const struct format_8 *format, float value, int code) {
    assert_int_equal(format->from_float(value), code);
    assert_int_equal(format->from_float(-value), code | 0x80);
    assert_true(pc_dtype_round(format->dtype, (double)value) == value_of(format, code));
    uint8_t stored = 1;
    pc_dtype_set(format->dtype, &stored, 0, (double)-value);
    assert_int_equal(stored, code | 0x80);
}

/* Half way between two neighbours lies the one with the even code; a float more or less, the nearer one. */
static void test_ties(void **state) {
    (void)state;
    for (int f = 0; f < FORMATS; f++)
        for (int code = 0; code < formats[f].last; code++) {
            float middle = (float)((value_of(&formats[f], code) + value_of(&formats[f], code + 1)) / 2);
            check_both_signs(&formats[f], middle, code + code % 2);
            check_both_signs(&formats[f], nextafterf(middle, 0), code);
            check_both_signs(&formats[f], nextafterf(middle, INFINITY), code + 1);
        }
}

static void test_saturates(void **state) {
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        const struct format_8 *format = &formats[f];
        float largest = (float)format->largest;
        check_both_signs(format, nextafterf(largest, INFINITY), format->last);
        check_both_signs(format, 1.5f * largest, format->last);
        check_both_signs(format, 3e38f, format->last);
        check_both_signs(format, INFINITY, format->last);
        assert_int_equal(format->from_float(NAN), 0x7f);
        assert_int_equal(format->from_float(-NAN), 0x7f);
        assert_true(isnan(pc_dtype_round(format->dtype, (double)NAN)));
        assert_true(pc_dtype_half_unit(format->dtype, 1.5) == ldexp(0.5, -format->fraction_bits));
        assert_true(pc_dtype_half_unit(format->dtype, 0) == ldexp(0.5, 1 - format->bias - format->fraction_bits));
    }
}

/* The nearest of all codes, looked for one by one. */
static int nearest_of(const struct format_8 *format, double value) {
    int best = 0;
    for (int code = 1; code <= format->last; code++) {
        double nearer = fabs(fabs(value) - value_of(format, code)) - fabs(fabs(value) - value_of(format, best));
        if (nearer < 0 || (nearer == 0 && code % 2 == 0)) best = code;
    }
    return best;
}

static void test_nearest(void **state) {
    (void)state;
    test_random random = {8};
    for (int i = 0; i < 60000; i++) {
        const struct format_8 *format = &formats[i % FORMATS];
        float value = ldexpf((float)test_between(&random, 0, 1 << 20), (int)test_between(&random, -40, -2));
        check_both_signs(format, value, nearest_of(format, (double)value));
    }
}

/* An exponent alone: 2^(code - 127), and of a number the power of two below it. */
static void test_powers(void **state) {
    (void)state;
    for (int code = 0; code < 255; code++) {
        uint8_t stored = (uint8_t)code, got = 0;
        double value = pc_dtype_get(PC_E8M0, &stored, 0);
        assert_true(value == ldexp(1, code - 127) && pc_dtype_round(PC_E8M0, value) == value);
        pc_dtype_set(PC_E8M0, &got, 0, code < 254 ? 1.99 * value : value);
        assert_int_equal(got, code);
        assert_true(pc_dtype_round(PC_E8M0, -1.5 * value) == value);
    }
    assert_true(isnan(pc_e8m0_to_float(0xff)));
    assert_true(pc_dtype_round(PC_E8M0, 0) == 0x1p-127 && pc_dtype_round(PC_E8M0, 1e300) == 0x1p127);
}

static void test_fills(void **state) {
    (void)state;
    enum { COUNT = 1000 };
    pc_device *device;
    assert_int_equal(pc_device_open(0, &device, NULL), PC_OK);
    for (int f = 0; f < FORMATS; f++) {
        pc_dtype dtype = formats[f].dtype;
        uint8_t codes[COUNT];
        int negative = 0;
        assert_int_equal(pc_dtype_bytes(dtype), 1);
        assert_int_equal(pc_device_fill(device, codes, dtype, COUNT, PC_FILL_POISON, 0, 0, NULL), PC_OK);
        assert_true(isnan(pc_dtype_get(dtype, codes, COUNT - 1)));
        assert_int_equal(pc_device_fill(device, codes, dtype, COUNT, PC_FILL_NORMAL, 1, 3, NULL), PC_OK);
        for (int i = 0; i < COUNT; i++) negative += pc_dtype_get(dtype, codes, i) < 0;
        assert_in_range(negative, COUNT / 2 - 60, COUNT / 2 + 60);
        assert_int_equal(pc_device_fill(device, codes, dtype, COUNT, PC_FILL_INDEX, 9, 0, NULL), PC_ERROR_INPUT);
    }
    pc_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),   cmocka_unit_test(test_ties),   cmocka_unit_test(test_saturates),
        cmocka_unit_test(test_nearest), cmocka_unit_test(test_powers), cmocka_unit_test(test_fills),
    };
    return cmocka_run_group_tests_name("dtype", tests, NULL, NULL);
}
