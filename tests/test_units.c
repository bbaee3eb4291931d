/* The parser of numbers with units: exactness, and everything it must refuse. */
#include "scenarios/units.h"
#include "tests/comma_locale.h"

#include <inttypes.h>
#include <math.h>

static void assert_time(const char *text, pc_time expected) {
    pc_error error = {.code = PC_OK};
    pc_time time = -7;
    if (pc_parse_time(text, &time, &error)) fail_msg("%s", error.message);
    if (time != expected) fail_msg("%s: %" PRId64 " ps, not %" PRId64, text, time, expected);
}

static void test_times(void **state) {
    (void)state;
    assert_time("18.522 ms", 18522000000);
    assert_time("0.601 ms", 601000000);
    assert_time("7599.2 ms", 7599200000000);
    assert_time("1ps", 1);
    assert_time("1 ns", 1000);
    assert_time(" \t1 us \n", 1000000);
    assert_time("1s", 1000000000000);
    assert_time("1 min", 60000000000000);
    assert_time("1.5 h", 5400000000000000);
    assert_time("1.5 hours", 5400000000000000); /* 1.5 * 3600 * 10^12 */
    assert_time("1hr", 3600000000000000);
    assert_time("90 minutes", 5400000000000000);
    assert_time("30 seconds", 30000000000000);
    assert_time("2 days", 172800000000000000);
    assert_time("3 \xc2\xb5s", 3000000); /* the sign of micro, and the Greek letter */
    assert_time("3 \xce\xbcs", 3000000);
    assert_time("1e3 ms", 1000000000000);
    assert_time("1E+3 ms", 1000000000000);
    assert_time("25e-1 ns", 2500);
    assert_time("0 s", 0);
    assert_time("0e99 s", 0);
    assert_time("0.001000 s", 1000000000);
    assert_time(".5 ns", 500);
    assert_time("5. ns", 5000);
    /* To the nearest, halves up. */
    assert_time("0.4 ps", 0);
    assert_time("0.5 ps", 1);
    assert_time("2.5 ps", 3);
    assert_time("0.49999999999999999999999999999 ps", 0);
    assert_time("1e-400 h", 0);
    assert_time("1e-99999999999999999999 h", 0);
}

/* The range's end, 2^63 - 1 ps, which no double holds. */
static void test_largest_times(void **state) {
    (void)state;
    pc_time time = -7;
    assert_time("9223372036854775807 ps", INT64_MAX);
    assert_time("9223372.036854775807 s", INT64_MAX);
    assert_time("9223372036854775807.49 ps", INT64_MAX);
    assert_int_equal(pc_parse_time("9223372036854775807.5 ps", &time, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_parse_time("9223372036854775808 ps", &time, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_parse_time("2562.05 h", &time, NULL), PC_ERROR_INPUT); /* 2^63 ps are 2562.0478 h */
    assert_int_equal(pc_parse_time("1e999999999999999999999 ps", &time, NULL), PC_ERROR_INPUT);
    assert_int_equal(time, -7);
}

/* N ps is N / 10^k of a unit of 10^k ps, written with k decimals: all must come back as exactly N. */
static void test_times_are_exact(void **state) {
    (void)state;
    static const struct {
        const char *unit;
        int decimals;
    } units[] = {{"ps", 0}, {"ns", 3}, {"us", 6}, {"ms", 9}, {"s", 12}};
    test_random random = {1};
    for (long i = 0; i < test_cases(5000, 20000); i++) {
        int64_t n = (int64_t)(test_draw(&random) >> (11 + i % 53)), power = 1;
        int u = (int)(i % 5);
        for (int d = 0; d < units[u].decimals; d++) power *= 10;
        char text[64];
        if (u == 0)
            snprintf(text, sizeof text, "%" PRId64 " ps", n);
        else
            snprintf(text, sizeof text, "%" PRId64 ".%0*" PRId64 " %s", n / power, units[u].decimals, n % power,
                     units[u].unit);
        assert_time(text, n);
    }
}

static void assert_size(const char *text, int64_t expected) {
    pc_error error = {.code = PC_OK};
    int64_t bytes = -7;
    if (pc_parse_size(text, &bytes, &error)) fail_msg("%s", error.message);
    if (bytes != expected) fail_msg("%s: %" PRId64 " bytes, not %" PRId64, text, bytes, expected);
}

static void test_sizes(void **state) {
    (void)state;
    static const char *const names[] = {"B", "kB", "MB", "GB", "TB", "B", "KiB", "MiB", "GiB", "TiB"};
    for (int i = 0; i < 10; i++) {
        char text[32];
        int64_t expected = 3;
        for (int k = 0; k < i % 5; k++) expected *= i < 5 ? 1000 : 1024;
        snprintf(text, sizeof text, "3 %s", names[i]);
        assert_size(text, expected);
    }
    assert_size("80GiB", INT64_C(80) << 30);
    assert_size("80G", INT64_C(80) << 30); /* as nvidia-smi, Slurm and ulimit have it; 80 GB is less */
    assert_size("512 M", INT64_C(512) << 20);
    assert_size("4k", 4096);
    assert_size("4K", 4096);
    assert_size("1.5T", INT64_C(3) << 39);
    char written[PC_SIZE_TEXT];
    pc_write_size(INT64_C(80) << 30, written);
    assert_string_equal(written, "80GiB"); /* names of runs stay what they were */
    assert_size("3.4 GiB", 3650722202);    /* 3650722201.6 */
    assert_size("0.1 TiB", 109951162778);  /* 109951162777.6 */
    assert_size("9223372036854775807 B", INT64_MAX);
    int64_t bytes = -7;
    assert_int_equal(pc_parse_size("8388608 TiB", &bytes, NULL), PC_ERROR_INPUT); /* 2^63 */
    assert_int_equal(bytes, -7);
}

static void test_bandwidths(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double bytes_per_s;
    } cases[] = {{"8 bit/s", 1},        {"1 kbit/s", 125},   {"1 Mbit/s", 125e3},    {"400 Gbit/s", 50e9},
                 {"0.8 Tbit/s", 100e9}, {"300 GB/s", 300e9}, {"3.35 TB/s", 3.35e12}, {"1 B/s", 1},
                 {"2 kB/s", 2000},      {"1 KiB/s", 1024},   {"1.5 MiB/s", 1572864}, {"1 GiB/s", 1073741824},
                 {"1TiB/s", 0x1p40},    {"400 Gbps", 50e9},  {"0.3 TB/s", 300e9},    {"1e-3 GB/s", 1e6},
                 {"600e9 B/s", 600e9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double rate = -7;
        assert_int_equal(pc_parse_bandwidth(cases[i].text, &rate, NULL), PC_OK);
        assert_true(rate == cases[i].bytes_per_s);
    }
}

static void test_compute_rates(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double flops_per_s;
    } cases[] = {{"1 FLOP/s", 1},
                 {"2 GFLOP/s", 2e9},
                 {"312 TFLOP/s", 312e12},
                 {"19.5 TFLOP/s", 19.5e12},
                 {"0.989PFLOP/s", 989e12}};
    static const char *const bad[] = {"312",        "312 TFLOPS", "312 TFLOP",    "0 TFLOP/s",
                                      "-1 TFLOP/s", "312 GB/s",   "1e400 FLOP/s", ""};
    pc_error error;
    double rate = -7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (pc_parse_rate(bad[i], &rate, &error) != PC_ERROR_INPUT) fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(error.message, "; expected a rate above zero such as 312 TFLOP/s"));
        assert_true(rate == -7);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(pc_parse_rate(cases[i].text, &rate, NULL), PC_OK);
        assert_true(rate == cases[i].flops_per_s);
    }
}

static void test_powers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double watts;
    } cases[] = {{"700 W", 700}, {"1.4kW", 1400}, {"0.5 MW", 5e5}};
    static const char *const bad[] = {"700", "0 W", "-1 W", "700 w", "700 J", ""};
    pc_error error;
    double watts = -7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (pc_parse_power(bad[i], &watts, &error) != PC_ERROR_INPUT) fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(error.message, "; expected a power above zero such as 700 W"));
        assert_true(watts == -7);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(pc_parse_power(cases[i].text, &watts, NULL), PC_OK);
        assert_true(watts == cases[i].watts);
    }
}

static void test_money(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double money;
        const char *currency;
    } cases[] = {{"2M$", 2e6, "USD"},      {"$2M", 2e6, "USD"},  {"2 M USD", 2e6, "USD"}, {"500k EUR", 5e5, "EUR"},
                 {"EUR 500k", 5e5, "EUR"}, {"2000000", 2e6, ""}, {"1.5B", 1.5e9, ""}};
    static const char *const bad[] = {"", "0", "$", "-1", "2 millions", "2M/h", "2MM", "2M$$", "$2M EUR"};
    char currency[PC_CURRENCY_TEXT];
    pc_error error;
    double money = -7;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (pc_parse_money(bad[i], &money, &error) != PC_ERROR_INPUT) fail_msg("%s was taken", bad[i]);
        assert_non_null(strstr(error.message, "; expected money above zero such as 2M$"));
        assert_true(money == -7);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (pc_parse_money(cases[i].text, &money, &error)) fail_msg("%s", error.message);
        assert_true(money == cases[i].money);
        pc_money_currency(cases[i].text, currency);
        assert_string_equal(currency, cases[i].currency);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "empty; expected a time such as 12.96 ms (ps, ns, us, ms, s, min, h)"},
        {"  ", "empty; expected a time"},
        {"12", "12: no unit; expected a time"},
        {"12 parsecs",
         "12 parsecs: unknown unit 'parsecs'; expected a time such as 12.96 ms (ps, ns, us, ms, s, min, h)"},
        {"12 MS", "12 MS: unknown unit 'MS'"},
        {"12 m s", "12 m s: unknown unit 'm s'"},
        {"12 ms 3", "12 ms 3: unknown unit 'ms 3'"},
        {"12 GiB", "12 GiB: unknown unit 'GiB'"},
        {"1e ms", "1e ms: unknown unit 'e ms'"},
        {"12 ms;", "12 ms;: unknown unit 'ms;'"},
        {"1,5 ms", "1,5 ms: trailing ',5 ms'"},
        {"1.2.3 ms", "1.2.3 ms: trailing '.3 ms'"},
        {"05 ms", "05 ms: begins with a zero"},
        {"00.5 ms", "00.5 ms: begins with a zero"},
        {"nan", "nan: not a number"},
        {"NaN ms", "NaN ms: not a number"},
        {"inf s", "inf s: not a number"},
        {"ms", "ms: not a number"},
        {". ms", ". ms: not a number"},
        {"+1 ms", "+1 ms: not a number"},
        {"-1 ms", "-1 ms: negative"},
        {"-.5 ms", "-.5 ms: negative"},
        {"-0 ms", "-0 ms: negative"},
        {"-inf ms", "-inf ms: not a number"},
        {"0x10 ms", "0x10 ms: not a decimal number"},
        {"1e30 h", "1e30 h: too large"},
        {"\xc2\xb5s", "\xc2\xb5s: not a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_error error = {.code = PC_OK};
        pc_time time = -7;
        assert_int_equal(pc_parse_time(cases[i].text, &time, &error), PC_ERROR_INPUT);
        assert_int_equal(error.code, PC_ERROR_INPUT);
        assert_int_equal(time, -7);
        if (strncmp(error.message, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("'%s': %s", cases[i].text, error.message);
        assert_non_null(strstr(error.message, "; expected "));
    }
}

static void test_prices(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double price;
    } cases[] = {{"2.10/h", 2.10},
                 {"2.10 /h", 2.10},
                 {" 1e-3/h ", 1e-3},
                 {"3/h", 3},
                 {"2.10", 2.10},
                 {"$2.10/h", 2.10},
                 {"$2.10", 2.10},
                 {"2.10 $/h", 2.10},
                 {"2.10 USD/h", 2.10},
                 {"USD 2.10 /h", 2.10},
                 {"2.10EUR/GPU-hour", 2.10},
                 {"\xe2\x82\xac 2.10/gpu-h", 2.10},
                 {"2.10 CHF/hr", 2.10}};
    static const char *const bad[] = {"2.10/s",  "/h",          "0/h",           "0",     "-1/h",  "",
                                      "x/h",     "2.10/h/h",    "1e999/h",       "$",     "$$2/h", "$2 USD/h",
                                      "2 usd/h", "2 DOLLARS/h", "2.10 per hour", "-$2/h", "$-2/h"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double price = -7;
        assert_int_equal(pc_parse_price(cases[i].text, &price, NULL), PC_OK);
        assert_true(price == cases[i].price);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pc_error error;
        double price = -7;
        if (pc_parse_price(bad[i], &price, &error) != PC_ERROR_INPUT) fail_msg("%s was taken", bad[i]);
        assert_non_null(
            strstr(error.message, "; expected a price above zero of a GPU-hour such as 2.10, $2.10/h or 2.10 EUR/h"));
        assert_true(price == -7);
    }
}

static void test_currencies(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"2.10/h", ""},
                                           {"$2.10/h", "USD"},
                                           {"2.10 USD", "USD"},
                                           {"\xe2\x82\xac"
                                            "2/h",
                                            "EUR"},
                                           {"2 CHF/h", "CHF"},
                                           {"2 usd/h", ""},
                                           {"x", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char currency[PC_CURRENCY_TEXT] = "?";
        pc_price_currency(cases[i][0], currency);
        assert_string_equal(currency, cases[i][1]);
    }
}

/* A unit that is near is named; of rates of data none, for a letter's case tells bits from bytes. */
static void test_units_that_were_meant(void **state) {
    (void)state;
    pc_error error;
    int64_t whole;
    double real;
    assert_int_equal(pc_parse_time("12 MS", &whole, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "unknown unit 'MS' (did you mean ms?); expected a time"));
    assert_int_equal(pc_parse_size("80 gb", &whole, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "unknown unit 'gb' (did you mean GB?); expected a size"));
    assert_int_equal(pc_parse_duration("3 dayz", &real, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "unknown unit 'dayz' (did you mean day or days?); expected a duration"));
    assert_int_equal(pc_parse_bandwidth("5 gb/s", &real, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "unknown unit 'gb/s'; expected a bandwidth"));
}

static void test_refused_rates(void **state) {
    (void)state;
    static const char *const bad[] = {"0 GB/s",     "0 bit/s", "300 GB", "300 /s",    "300 GB/", "300",     "1e400 B/s",
                                      "1e-400 B/s", "5 GB /s", "5 gb/s", "5 KiBit/s", "-1 GB/s", "nan B/s", "5 B/s/s"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double rate = -7;
        if (pc_parse_bandwidth(bad[i], &rate, NULL) != PC_ERROR_INPUT) fail_msg("%s was taken", bad[i]);
        assert_true(rate == -7);
    }
}

/* Megabytes of digits, and messages about them that still end with what was expected. */
static void test_long_texts(void **state) {
    (void)state;
    size_t length = 1 << 20;
    char *text = malloc(length + 4);
    memset(text, '9', length);
    memcpy(text + length, " ms", 4);
    pc_error error;
    pc_time time;
    assert_int_equal(pc_parse_time(text, &time, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "...: too large; expected a time"));
    memset(text, 'x', length);
    memcpy(text, "1 ", 2);
    assert_int_equal(pc_parse_time(text, &time, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "...'; expected a time"));
    /* 0.000...0001 s */
    memset(text, '0', length);
    text[1] = '.';
    memcpy(text + length, "1s", 3);
    assert_int_equal(pc_parse_time(text, &time, &error), PC_OK);
    assert_int_equal(time, 0);
    free(text);
}

/* Every text is either taken or refused with a message; none is read beyond its end (run under a sanitizer). */
static void test_random_texts(void **state) {
    (void)state;
    static const char alphabet[] = "0123456789..eE+-xnamsGiBkbt/h \t,\xc3";
    test_random random = {3};
    for (long i = 0; i < test_cases(20000, 100000); i++) {
        char *text = malloc(16);
        int length = (int)test_between(&random, 0, 14);
        for (int c = 0; c < length; c++) text[c] = alphabet[test_draw(&random) % (sizeof alphabet - 1)];
        text[length] = '\0';
        pc_error error = {.code = PC_OK};
        int64_t whole = -7;
        double real = -7;
        if (pc_parse_time(text, &whole, &error) == PC_OK) assert_true(whole >= 0);
        if (pc_parse_size(text, &whole, &error) == PC_OK) assert_true(whole >= 0);
        if (pc_parse_bandwidth(text, &real, &error) == PC_OK) assert_true(real > 0 && isfinite(real));
        if (pc_parse_number(text, &real, &error) == PC_OK) assert_true(real >= 0 && isfinite(real));
        if (pc_parse_integer(text, 1, 9, &whole, &error) == PC_OK) assert_true(whole >= 1 && whole <= 9);
        if (pc_parse_count(text, 1, 9999, &whole, &error) == PC_OK) assert_true(whole >= 1 && whole <= 9999);
        if (pc_parse_price(text, &real, &error) == PC_OK) assert_true(real > 0 && isfinite(real));
        free(text);
    }
}

static void test_durations(void **state) {
    static const struct {
        const char *text;
        double seconds;
        const char *written;
    } cases[] = {
        {"5 years", 5 * 31557600.0, "5y"},
        {"1 year", 31557600, "1y"},
        {"2111 days", 2111 * 86400.0, "2111d"},
        {"1day", 86400, "1d"},
        {"90 min", 5400, "90min"},
        {"90 minutes", 5400, "90min"},
        {"36 hours", 36 * 3600.0, "36h"},
        {"30d", 30 * 86400.0, "30d"},
        {"2 weeks", 14 * 86400.0, "14d"},
        {"0.5h", 1800, "30min"},
        {"1.5 d", 36 * 3600.0, "36h"},
        {"90 s", 90, "90s"},
        {"250 ms", 0.25, "250ms"},
        {"0 s", 0, "0s"},
        {"0.0001 s", 0.0001, "0.0001s"},
        {"1e6 y", 1e6 * 31557600, "1000000y"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char written[PC_DURATION_TEXT];
        double seconds = -1, again = -1;
        assert_int_equal(pc_parse_duration(cases[i].text, &seconds, NULL), PC_OK);
        assert_true(seconds == cases[i].seconds);
        pc_write_duration(seconds, written);
        assert_string_equal(written, cases[i].written);
        assert_int_equal(pc_parse_duration(written, &again, NULL), PC_OK);
        assert_true(again == seconds);
    }
    static const char *const wrong[] = {"5",           "",          "years", "-1 s",   "1 us",
                                        "1 fortnight", "1000001 y", "nan s", "1e400 s"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        double seconds = 7;
        assert_int_equal(pc_parse_duration(wrong[i], &seconds, NULL), PC_ERROR_INPUT);
        assert_true(seconds == 7);
    }
}

static void test_decimal_comma_locale(void **state) {
    double half = 0;
    if (!take_comma_locale()) {
        print_message("no locale with decimal commas is installed or can be made\n");
        skip();
    }
    test_times(state);
    test_bandwidths(state);
    assert_int_equal(pc_parse_number("0.5", &half, NULL), PC_OK);
    assert_true(half == 0.5);
    assert_int_equal(pc_parse_number("0,5", &half, NULL), PC_ERROR_INPUT);
    setlocale(LC_ALL, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_largest_times),
        cmocka_unit_test(test_times_are_exact),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_bandwidths),
        cmocka_unit_test(test_compute_rates),
        cmocka_unit_test(test_powers),
        cmocka_unit_test(test_money),
        cmocka_unit_test(test_prices),
        cmocka_unit_test(test_currencies),
        cmocka_unit_test(test_units_that_were_meant),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_rates),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_decimal_comma_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
