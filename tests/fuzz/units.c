/* Fuzz target: numbers with units (scenarios/units.h). What is accepted lies in its range, and what the library writes
 * of it reads back as the same. */
#include "scenarios/units.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_whole(const char *text) {
    pc_error error = {0};
    int64_t number = -7;
    pc_code code = pc_parse_time(text, &number, &error);
    fuzz_check_error(code, &error);
    fuzz_require(code ? number == -7 : number >= 0, "a time is at least zero, and stays where it was on failure");
    number = -7;
    code = pc_parse_integer(text, -5, 1000000, &number, &error);
    fuzz_check_error(code, &error);
    fuzz_require(code ? number == -7 : number >= -5 && number <= 1000000, "a whole number is in its range");
    int64_t count = -7;
    pc_code counted = pc_parse_count(text, -5, 1000000, &count, &error);
    fuzz_check_error(counted, &error);
    fuzz_require(counted ? count == -7 : count >= -5 && count <= 1000000, "a count is in its range");
    fuzz_require(code || (!counted && count == number), "a whole number is as many when counted");
    int64_t amount = -7;
    code = pc_parse_amount(text, &amount, &error);
    fuzz_check_error(code, &error);
    fuzz_require(code ? amount == -7 : amount > 0, "an amount is more than zero, and stays where it was on failure");
}

static void check_currency(const char *text) {
    char currency[PC_CURRENCY_TEXT];
    pc_price_currency(text, currency);
    fuzz_require(strlen(currency) <= 3, "a currency is a sign or three letters");
}

static void check_size(const char *text) {
    pc_error error = {0};
    int64_t bytes = -7, again = -7;
    char written[PC_SIZE_TEXT];
    pc_code code = pc_parse_size(text, &bytes, &error);
    fuzz_check_error(code, &error);
    fuzz_require(code ? bytes == -7 : bytes >= 0, "a size is at least zero, and stays where it was on failure");
    if (code) return;
    pc_write_size(bytes, written);
    fuzz_require(!pc_parse_size(written, &again, NULL) && again == bytes, "a size that was written reads as the same");
}

static void check_duration(const char *text) {
    pc_error error = {0};
    double seconds = -7, again = -7;
    char written[PC_DURATION_TEXT];
    pc_code code = pc_parse_duration(text, &seconds, &error);
    fuzz_check_error(code, &error);
    fuzz_require(code ? seconds == -7 : seconds >= 0 && seconds <= 1e6 * 31557600, "a duration is in its range");
    if (code) return;
    pc_write_duration(seconds, written);
    fuzz_require(!pc_parse_duration(written, &again, NULL) && again == seconds,
                 "a duration that was written reads as the same");
}

static void check_real(const char *text) {
    static pc_code (*const parsers[])(const char *, double *, pc_error *) = {
        pc_parse_bandwidth, pc_parse_rate, pc_parse_price, pc_parse_number, pc_parse_fraction};
    for (size_t i = 0; i < sizeof parsers / sizeof *parsers; i++) {
        pc_error error = {0};
        double number = -7;
        pc_code code = parsers[i](text, &number, &error);
        fuzz_check_error(code, &error);
        fuzz_require(code ? number == -7 : number >= 0 && isfinite(number), "a number is finite and at least zero");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pc_error error = {0};
    bool is_on;
    char *text = fuzz_text(data, size);
    check_whole(text);
    check_size(text);
    check_duration(text);
    check_real(text);
    check_currency(text);
    fuzz_check_error(pc_parse_switch(text, &is_on, &error), &error);
    free(text);
    return 0;
}
