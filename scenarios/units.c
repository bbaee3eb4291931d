#include "scenarios/units.h"

#include "engine/names.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A decimal as it was written: digits * 10^exponent, without leading zeros; no digits is zero. Numbers are kept in
 * this form until their unit is known, so that "18.522 ms" is 18522 * 10^6 ps and nothing is ever rounded twice. */
enum { DIGITS_MAX = 22 }; /* digits beyond these are below a hundredth of any result's last place */
typedef struct decimal {
    char digits[DIGITS_MAX + 1];
    int count;
    int64_t exponent;
} decimal;

__extension__ typedef unsigned __int128 wide;

/* One of them is factor * 10^power of what results are in. */
typedef struct unit {
    const char *name;
    uint64_t factor;
    int power;
} unit;

/* Of units that are the same, the first is the one that is written. */
static const unit time_units[] = {{"ps", 1, 0},        {"ns", 1, 3},        {"us", 1, 6},        {"ms", 1, 9},
                                  {"s", 1, 12},        {"min", 60, 12},     {"h", 3600, 12},     {"d", 86400, 12},
                                  {"\xc2\xb5s", 1, 6}, {"\xce\xbcs", 1, 6}, {"sec", 1, 12},      {"second", 1, 12},
                                  {"seconds", 1, 12},  {"minute", 60, 12},  {"minutes", 60, 12}, {"hr", 3600, 12},
                                  {"hour", 3600, 12},  {"hours", 3600, 12}, {"day", 86400, 12},  {"days", 86400, 12},
                                  {NULL, 0, 0}};
/* In seconds. */
static const unit duration_units[] = {
    {"ms", 1, -3},          {"s", 1, 0},         {"min", 60, 0},       {"h", 3600, 0},      {"d", 86400, 0},
    {"y", 31557600, 0},     {"sec", 1, 0},       {"second", 1, 0},     {"seconds", 1, 0},   {"minute", 60, 0},
    {"minutes", 60, 0},     {"hr", 3600, 0},     {"hour", 3600, 0},    {"hours", 3600, 0},  {"day", 86400, 0},
    {"days", 86400, 0},     {"week", 604800, 0}, {"weeks", 604800, 0}, {"yr", 31557600, 0}, {"year", 31557600, 0},
    {"years", 31557600, 0}, {NULL, 0, 0}};
enum { DURATIONS_WRITTEN = 6 };
static const unit size_units[] = {{"B", 1, 0},         {"kB", 1, 3},        {"MB", 1, 6},
                                  {"GB", 1, 9},        {"TB", 1, 12},       {"KiB", 1 << 10, 0},
                                  {"MiB", 1 << 20, 0}, {"GiB", 1 << 30, 0}, {"TiB", UINT64_C(1) << 40, 0},
                                  {NULL, 0, 0}};
/* As nvidia-smi, Slurm and ulimit mean them: powers of 1024. Read, and never written. */
static const unit short_size_units[] = {{"K", 1 << 10, 0}, {"k", 1 << 10, 0},           {"M", 1 << 20, 0},
                                        {"G", 1 << 30, 0}, {"T", UINT64_C(1) << 40, 0}, {NULL, 0, 0}};
/* In bits; the same names with B for bit are sizes a second. */
static const unit bit_units[] = {{"bit/s", 1, 0},  {"kbit/s", 1, 3},  {"Mbit/s", 1, 6},
                                 {"Gbit/s", 1, 9}, {"Tbit/s", 1, 12}, {"Mbps", 1, 6},
                                 {"Gbps", 1, 9},   {"Tbps", 1, 12},   {NULL, 0, 0}};

static const unit rate_units[] = {
    {"FLOP/s", 1, 0}, {"GFLOP/s", 1, 9}, {"TFLOP/s", 1, 12}, {"PFLOP/s", 1, 15}, {NULL, 0, 0}};

static const unit money_units[] = {{"", 1, 0}, {"k", 1, 3}, {"M", 1, 6}, {"B", 1, 9}, {NULL, 0, 0}};
static const unit power_units[] = {{"W", 1, 0}, {"kW", 1, 3}, {"MW", 1, 6}, {NULL, 0, 0}};

/* Of tokens, as papers count them. M would be 10^6 here, and is 1024^2 of other numbers: it is not read. */
static const unit amount_units[] = {{"", 1, 0}, {"B", 1, 9}, {"T", 1, 12}, {NULL, 0, 0}};

static const char time_expected[] = "a time such as 12.96 ms (ps, ns, us, ms, s, min, h)";
static const char duration_expected[] = "a duration such as 90 days (ms, s, min, h, d, days, y, years)";
static const char size_expected[] = "a size such as 80 GiB (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)";
static const char bandwidth_expected[] =
    "a bandwidth above zero such as 400 Gbit/s (bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s) or 300 GB/s (any size a second)";
static const char rate_expected[] = "a rate above zero such as 312 TFLOP/s (FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s)";
static const char power_expected[] = "a power above zero such as 700 W (W, kW, MW)";
static const char money_expected[] = "money above zero such as 2M$, $2M, 500k EUR or 2000000 (k, M, B)";
static const char price_expected[] = "a price above zero of a GPU-hour such as 2.10, $2.10/h or 2.10 EUR/h";
static const char amount_expected[] = "a number above zero such as 15T (10^12), 300B (10^9) or 250000000";
static const char number_expected[] = "a number of at least zero, without a unit";

/* A piece of the caller's text. */
typedef struct span {
    const char *start;
    int length;
} span;

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The sign of micro, or the Greek letter that looks like it. */
static bool is_micro(span name) {
    return name.length > 2 && (memcmp(name.start, "\xc2\xb5", 2) == 0 || memcmp(name.start, "\xce\xbc", 2) == 0);
}

static span trim(const char *text) {
    while (is_space(*text)) text++;
    size_t length = strlen(text);
    while (length > 0 && is_space(text[length - 1])) length--;
    return (span){text, length < INT32_MAX ? (int)length : INT32_MAX};
}

/* Cut for a message: no more than 40 bytes, and no half of a UTF-8 character. */
static int quoted_length(span text) {
    int length = text.length;
    if (length <= 40) return length;
    for (length = 40; length > 0 && ((unsigned char)text.start[length] & 0xc0) == 0x80; length--) {
    }
    return length;
}

static const char *ellipsis(span text) {
    return text.length > 40 ? "..." : "";
}

static pc_code refuse(span text, const char *problem, const char *expected, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT, "%.*s%s%s%s; expected %s", quoted_length(text), text.start,
                        ellipsis(text), text.length ? ": " : "", problem, expected);
}

static pc_code refuse_rest(span text, const char *problem, span rest, const char *expected, pc_error *error) {
    char words[96];
    snprintf(words, sizeof words, "%s '%.*s%s'", problem, quoted_length(rest), rest.start, ellipsis(rest));
    return refuse(text, words, expected, error);
}

/* `units` NULL: none is proposed, for a letter's case tells bits from bytes. */
static pc_code refuse_unit(span text, span name, const unit *units, const char *expected, pc_error *error) {
    char word[48], hint[PC_NEAREST_TEXT], problem[48 + sizeof hint + 32];
    pc_nearest nearest = {.word = word};
    snprintf(word, sizeof word, "%.*s%s", quoted_length(name), name.start, ellipsis(name));
    for (const unit *u = units; u && u->name; u++) pc_nearest_offer(&nearest, u->name);
    snprintf(problem, sizeof problem, "unknown unit '%s'%s", word, pc_nearest_hint(&nearest, hint));
    return refuse(text, problem, expected, error);
}

static void add_digit(decimal *number, char digit, bool after_point) {
    if (number->count == DIGITS_MAX) {
        number->exponent += !after_point;
        return;
    }
    number->exponent -= after_point;
    if (number->count > 0 || digit != '0') number->digits[number->count++] = digit;
}

/* Reads the digits at `c`, and returns where they end. */
static const char *scan_digits(const char *c, bool after_point, decimal *number) {
    for (; is_digit(*c); c++) add_digit(number, *c, after_point);
    return c;
}

/* Reads "e3", "E-6" where it stands at `c`; an e without digits is left for the unit. */
static const char *scan_exponent(const char *c, decimal *number) {
    if (*c != 'e' && *c != 'E') return c;
    const char *digit = c + 1 + (c[1] == '-' || c[1] == '+');
    if (!is_digit(*digit)) return c;
    int64_t exponent = 0;
    for (; is_digit(*digit); digit++)
        if (exponent < 1000000) exponent = exponent * 10 + (*digit - '0'); /* beyond that it is zero or too large */
    number->exponent += c[1] == '-' ? -exponent : exponent;
    return digit;
}

/* Reads the number at the start of `text` and says what stands behind it; NULL, or why there is none. */
static const char *scan_number(span text, decimal *number, span *rest) {
    const char *c = text.start, *end = c + text.length;
    *number = (decimal){.count = 0};
    if (text.length == 0) return "empty";
    if (*c == '-' && (is_digit(c[1]) || c[1] == '.')) return "negative";
    if (!is_digit(*c) && !(*c == '.' && is_digit(c[1]))) return "not a number";
    if (*c == '0' && (c[1] == 'x' || c[1] == 'X')) return "not a decimal number";
    if (*c == '0' && is_digit(c[1])) return "begins with a zero"; /* what a comma left of 1,024, or of 1,05 */
    c = scan_digits(c, false, number);
    if (*c == '.') c = scan_digits(c + 1, true, number);
    c = scan_exponent(c, number);
    while (c < end && is_space(*c)) c++;
    *rest = (span){c, (int)(end - c)};
    return NULL;
}

static const unit *find_unit(const unit *units, span name) {
    for (const unit *u = units; u->name; u++)
        if (strlen(u->name) == (size_t)name.length && memcmp(u->name, name.start, (size_t)name.length) == 0) return u;
    return NULL;
}

static pc_code scan_plain(span text, decimal *number, const char *expected, pc_error *error) {
    span rest;
    const char *problem = scan_number(text, number, &rest);
    if (problem) return refuse(text, problem, expected, error);
    if (rest.length > 0) return refuse_rest(text, "trailing", rest, expected, error);
    return PC_OK;
}

/* Number, and the name of its unit. */
static pc_code scan_quantity(span text, decimal *number, span *name, const char *expected, pc_error *error) {
    const char *problem = scan_number(text, number, name);
    if (problem) return refuse(text, problem, expected, error);
    if (name->length == 0) return refuse(text, "no unit", expected, error);
    if (!is_letter(*name->start) && !is_micro(*name)) return refuse_rest(text, "trailing", *name, expected, error);
    return PC_OK;
}

static wide digits_value(const decimal *number) {
    wide value = 0;
    for (int i = 0; i < number->count; i++) value = value * 10 + (wide)(number->digits[i] - '0');
    return value;
}

/* value / 10^power to the nearest, halves up. */
static wide divide_by_power(wide value, int64_t power) {
    if (power > 38) return 0; /* 10^38 is the last power that fits; all values here are below half of it */
    wide divisor = 1;
    for (; power > 0; power--) divisor *= 10;
    wide quotient = value / divisor, remainder = value % divisor;
    return quotient + (remainder >= divisor - remainder);
}

/* number * unit as a whole number; false if it does not fit. 10^22 * 2^40 is below 2^114. */
static bool to_whole(const decimal *number, const unit *of, int64_t *whole) {
    wide value = digits_value(number) * of->factor;
    int64_t exponent = number->exponent + of->power;
    if (exponent < 0) value = divide_by_power(value, -exponent);
    for (; exponent > 0 && value > 0 && value <= (wide)INT64_MAX; exponent--) value *= 10;
    if (value > (wide)INT64_MAX) return false;
    *whole = (int64_t)value;
    return true;
}

/* number * 10^power, correctly rounded: strtod is given no decimal point, the one thing in which locales differ. */
static double to_real(const decimal *number, int power) {
    char text[DIGITS_MAX + 32];
    snprintf(text, sizeof text, "%.*se%" PRId64, number->count ? number->count : 1,
             number->count ? number->digits : "0", number->exponent + power);
    return strtod(text, NULL);
}

/* `more` are units that are read too, and proposed to nobody; it may be NULL. */
static pc_code parse_whole_quantity(const char *input, const unit *units, const unit *more, const char *expected,
                                    int64_t *whole, pc_error *error) {
    decimal number;
    span text = trim(input), name;
    pc_code code = scan_quantity(text, &number, &name, expected, error);
    if (code) return code;
    const unit *of = find_unit(units, name);
    if (!of && more) of = find_unit(more, name);
    if (!of) return refuse_unit(text, name, units, expected, error);
    if (!to_whole(&number, of, whole)) return refuse(text, "too large", expected, error);
    return PC_OK;
}

pc_code pc_parse_time(const char *text, pc_time *time_ps, pc_error *error) {
    return parse_whole_quantity(text, time_units, NULL, time_expected, time_ps, error);
}

pc_code pc_parse_size(const char *text, int64_t *bytes, pc_error *error) {
    return parse_whole_quantity(text, size_units, short_size_units, size_expected, bytes, error);
}

pc_code pc_parse_duration(const char *input, double *seconds, pc_error *error) {
    static const double most_s = 1e6 * 31557600;
    decimal number;
    span text = trim(input), name;
    pc_code code = scan_quantity(text, &number, &name, duration_expected, error);
    if (code) return code;
    const unit *of = find_unit(duration_units, name);
    if (!of) return refuse_unit(text, name, duration_units, duration_expected, error);
    double value = to_real(&number, of->power) * (double)of->factor;
    if (!(value <= most_s)) return refuse(text, "too large", "at most a million years", error);
    *seconds = value;
    return PC_OK;
}

/* As few digits as read back as the same; false if no number does. */
static bool write_in_duration_unit(double seconds, const unit *of, char text[PC_DURATION_TEXT]) {
    double number = of->power < 0 ? seconds * 1000 : seconds / (double)of->factor, read = -1;
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, PC_DURATION_TEXT, "%.*g%s", digits, number, of->name);
        if (!strchr(text, '+') && !pc_parse_duration(text, &read, NULL) && read == seconds) return true;
    }
    return false;
}

void pc_write_duration(double seconds, char text[PC_DURATION_TEXT]) {
    for (int i = DURATIONS_WRITTEN - 1; i >= 0 && seconds > 0; i--)
        if (write_in_duration_unit(seconds, &duration_units[i], text) && !strchr(text, '.') && !strchr(text, '-'))
            return;
    if (!write_in_duration_unit(seconds, &duration_units[1], text)) snprintf(text, PC_DURATION_TEXT, "%.17gs", seconds);
}

/* bytes / (factor * 10^power) with so many decimals, to the nearest; false if it is less than 1. */
static bool write_in_unit(int64_t bytes, const unit *of, int decimals, char text[PC_SIZE_TEXT]) {
    wide scaled = (wide)bytes, divisor = of->factor, scale = 1;
    for (int i = 0; i < of->power; i++) divisor *= 10;
    for (int i = 0; i < decimals; i++) scale *= 10;
    if (scaled < divisor) return false;
    scaled = (scaled * scale + divisor / 2) / divisor;
    int length = snprintf(text, PC_SIZE_TEXT, "%" PRIu64, (uint64_t)(scaled / scale));
    if (decimals)
        length += snprintf(text + length, (size_t)(PC_SIZE_TEXT - length), ".%0*" PRIu64, decimals,
                           (uint64_t)(scaled % scale));
    return length + snprintf(text + length, (size_t)(PC_SIZE_TEXT - length), "%s", of->name) < PC_SIZE_TEXT;
}

void pc_write_size(int64_t bytes, char text[PC_SIZE_TEXT]) {
    enum { DECIMALS_MAX = 12 }; /* a byte of a TiB */
    char attempt[PC_SIZE_TEXT];
    int64_t read = -1;
    snprintf(text, PC_SIZE_TEXT, "%" PRId64 "B", bytes);
    for (int i = (int)(sizeof size_units / sizeof *size_units) - 2; i >= 0; i--) /* of equals, powers of 1024 */
        for (int decimals = 0; decimals <= DECIMALS_MAX; decimals++) {
            if (!write_in_unit(bytes, &size_units[i], decimals, attempt)) break;
            if (pc_parse_size(attempt, &read, NULL) || read != bytes) continue;
            if (strlen(attempt) < strlen(text)) memcpy(text, attempt, sizeof attempt);
            break;
        }
}

/* "GB/s" is the size unit GB. */
static const unit *find_size_rate(span name) {
    if (name.length < 2 || memcmp(name.start + name.length - 2, "/s", 2) != 0) return NULL;
    return find_unit(size_units, (span){name.start, name.length - 2});
}

static pc_code accept_rate(span text, double rate, const char *expected, double *accepted, pc_error *error) {
    if (!isfinite(rate)) return refuse(text, "too large", expected, error);
    if (rate <= 0) return refuse(text, "zero", expected, error);
    *accepted = rate;
    return PC_OK;
}

pc_code pc_parse_bandwidth(const char *input, double *bytes_per_s, pc_error *error) {
    decimal number;
    span text = trim(input), name;
    pc_code code = scan_quantity(text, &number, &name, bandwidth_expected, error);
    if (code) return code;
    const unit *bits = find_unit(bit_units, name), *bytes = find_size_rate(name);
    if (!bits && !bytes) return refuse_unit(text, name, NULL, bandwidth_expected, error);
    double rate = bits ? to_real(&number, bits->power) / 8 : to_real(&number, bytes->power) * (double)bytes->factor;
    return accept_rate(text, rate, bandwidth_expected, bytes_per_s, error);
}

pc_code pc_parse_rate(const char *input, double *flops_per_s, pc_error *error) {
    decimal number;
    span text = trim(input), name;
    pc_code code = scan_quantity(text, &number, &name, rate_expected, error);
    if (code) return code;
    const unit *of = find_unit(rate_units, name);
    if (!of) return refuse_unit(text, name, rate_units, rate_expected, error);
    return accept_rate(text, to_real(&number, of->power), rate_expected, flops_per_s, error);
}

pc_code pc_parse_power(const char *input, double *watts, pc_error *error) {
    decimal number;
    span text = trim(input), name;
    pc_code code = scan_quantity(text, &number, &name, power_expected, error);
    if (code) return code;
    const unit *of = find_unit(power_units, name);
    if (!of) return refuse_unit(text, name, power_units, power_expected, error);
    return accept_rate(text, to_real(&number, of->power), power_expected, watts, error);
}

/* ---- money ---- */

/* What the text begins with: a currency's sign or its three letters (ISO 4217). Nothing where it does not. */
static span currency_at(span text) {
    static const char *const signs[] = {"$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5"}; /* also euro, pound, yen */
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strncmp(text.start, signs[i], strlen(signs[i])) == 0) return (span){text.start, (int)strlen(signs[i])};
    int letters = 0;
    while (letters < text.length && text.start[letters] >= 'A' && text.start[letters] <= 'Z') letters++;
    bool is_code = letters == 3 && !is_letter(text.start[3]);
    return (span){text.start, is_code ? 3 : 0};
}

static span behind(span text, int length) {
    text.start += length;
    text.length -= length;
    for (; text.length > 0 && is_space(*text.start); text.length--) text.start++;
    return text;
}

/* Whether it says "an hour", or nothing. */
static bool is_per_hour(span text) {
    static const char *const words[] = {"/h", "/hr", "/hour", "/GPU-h", "/GPU-hr", "/GPU-hour"};
    bool is_one = text.length == 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        is_one = is_one || (strlen(words[i]) == (size_t)text.length &&
                            strncasecmp(text.start, words[i], (size_t)text.length) == 0);
    return is_one;
}

/* The number, its currency (empty if none is said), and what stands behind both; NULL, or why there is none. */
static const char *scan_price(span text, decimal *number, span *currency, span *rest) {
    *currency = currency_at(text);
    bool is_before = currency->length > 0;
    const char *problem = scan_number(behind(text, currency->length), number, rest);
    if (problem || is_before) return problem;
    *currency = currency_at(*rest);
    *rest = behind(*rest, currency->length);
    return NULL;
}

pc_code pc_parse_price(const char *input, double *price_per_hour, pc_error *error) {
    decimal number;
    span text = trim(input), currency, rest;
    const char *problem = scan_price(text, &number, &currency, &rest);
    if (problem) return refuse(text, problem, price_expected, error);
    if (!is_per_hour(rest)) return refuse_unit(text, rest, NULL, price_expected, error);
    return accept_rate(text, to_real(&number, 0), price_expected, price_per_hour, error);
}

static void write_currency(span found, char currency[PC_CURRENCY_TEXT]) {
    static const char *const known[][2] = {{"$", "USD"}, {"\xe2\x82\xac", "EUR"}, {"\xc2\xa3", "GBP"}};
    snprintf(currency, PC_CURRENCY_TEXT, "%.*s", found.length, found.start);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(currency, known[i][0]) == 0) snprintf(currency, PC_CURRENCY_TEXT, "%s", known[i][1]);
}

void pc_price_currency(const char *input, char currency[PC_CURRENCY_TEXT]) {
    span found, rest;
    decimal number;
    currency[0] = '\0';
    if (!scan_price(trim(input), &number, &found, &rest)) write_currency(found, currency);
}

/* As scan_price, with the unit between the number and a currency behind it. */
static const char *scan_money(span text, decimal *number, const unit **of, span *currency, span *rest) {
    *currency = currency_at(text);
    bool is_before = currency->length > 0;
    const char *problem = scan_number(behind(text, currency->length), number, rest);
    if (problem) return problem;
    bool has_unit = rest->length > 0 && strchr("kMB", *rest->start);
    *of = find_unit(money_units, (span){rest->start, has_unit ? 1 : 0});
    *rest = behind(*rest, has_unit ? 1 : 0);
    if (is_before) return NULL;
    *currency = currency_at(*rest);
    *rest = behind(*rest, currency->length);
    return NULL;
}

pc_code pc_parse_money(const char *input, double *money, pc_error *error) {
    decimal number;
    const unit *of = NULL;
    span text = trim(input), currency, rest;
    const char *problem = scan_money(text, &number, &of, &currency, &rest);
    if (problem) return refuse(text, problem, money_expected, error);
    if (rest.length > 0) return refuse_unit(text, rest, NULL, money_expected, error);
    return accept_rate(text, to_real(&number, of->power), money_expected, money, error);
}

void pc_money_currency(const char *input, char currency[PC_CURRENCY_TEXT]) {
    const unit *of;
    span found, rest;
    decimal number;
    currency[0] = '\0';
    if (!scan_money(trim(input), &number, &of, &found, &rest)) write_currency(found, currency);
}

pc_code pc_parse_number(const char *input, double *number, pc_error *error) {
    decimal scanned;
    span text = trim(input);
    pc_code code = scan_plain(text, &scanned, number_expected, error);
    if (code) return code;
    double value = to_real(&scanned, 0);
    if (!isfinite(value)) return refuse(text, "too large", number_expected, error);
    *number = value;
    return PC_OK;
}

pc_code pc_parse_fraction(const char *input, double *fraction, pc_error *error) {
    double number = 0;
    pc_code code = pc_parse_number(input, &number, error);
    if (code) return code;
    if (number > 1) return refuse(trim(input), "out of range", "a fraction from 0 to 1", error);
    *fraction = number;
    return PC_OK;
}

pc_code pc_parse_switch(const char *input, bool *is_on, pc_error *error) {
    static const char *const others[][2] = {{"true", "yes"}, {"true", "on"},   {"true", "1"},
                                            {"false", "no"}, {"false", "off"}, {"false", "0"}};
    bool on = strcmp(input, "true") == 0;
    char hint[PC_NEAREST_TEXT], problem[sizeof hint + 32];
    span text = trim(input);
    if (on || strcmp(input, "false") == 0) return *is_on = on, PC_OK;
    pc_nearest nearest = {.word = input};
    pc_nearest_offer_words(&nearest, "true|false");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        pc_nearest_offer_as(&nearest, others[i][0], others[i][1]);
    snprintf(problem, sizeof problem, "not a truth value%s", pc_nearest_hint(&nearest, hint));
    return refuse(text, text.length ? problem : "empty", "true or false", error);
}

/* Reads a whole number; NULL, or why it is none. Counted downwards, since there is one more negative number than there
 * are positive ones. */
static const char *scan_whole(span text, int64_t *number) {
    int64_t value = 0;
    bool negative = text.length > 1 && *text.start == '-', overflow = false;
    if (text.length == 0) return "empty";
    for (int i = negative; i < text.length; i++) {
        if (!is_digit(text.start[i])) return "not a whole number";
        overflow |= __builtin_mul_overflow(value, INT64_C(10), &value);
        overflow |= __builtin_sub_overflow(value, (int64_t)(text.start[i] - '0'), &value);
    }
    if (text.length > negative + 1 && text.start[negative] == '0') return "begins with a zero";
    if (overflow || (!negative && value == INT64_MIN)) return "out of range";
    *number = negative ? value : -value;
    return NULL;
}

/* "1,024", as people write a thousand and more: the commas of lists are other ones. */
static bool has_thousands(span text) {
    int first = 0;
    while (first < text.length && is_digit(text.start[first])) first++;
    if (first < 1 || first > 3 || first == text.length || (text.length - first) % 4 != 0) return false;
    for (int i = first; i < text.length; i++)
        if ((i - first) % 4 == 0 ? text.start[i] != ',' : !is_digit(text.start[i])) return false;
    return true;
}

static pc_code refuse_thousands(span text, pc_error *error) {
    char digits[48];
    int count = 0;
    for (int i = 0; i < text.length && count < (int)sizeof digits - 1; i++)
        if (text.start[i] != ',') digits[count++] = text.start[i];
    digits[count] = '\0';
    return refuse(text, "has a comma", digits, error);
}

static pc_code take_integer(span text, const char *problem, int64_t value, int64_t least, int64_t most, int64_t *number,
                            pc_error *error) {
    char expected[80];
    snprintf(expected, sizeof expected, "a whole number from %" PRId64 " to %" PRId64, least, most);
    if (!problem && (value < least || value > most)) problem = "out of range";
    if (problem && has_thousands(text)) return refuse_thousands(text, error);
    if (problem && strstr(text.start, "..")) problem = "a range, and not in a list";
    if (problem) return refuse(text, problem, expected, error);
    *number = value;
    return PC_OK;
}

/* 1024 of "32k", 1024^2 of "1M"; 1 of what ends in a digit. */
static int64_t factor_of(span text) {
    if (text.length < 2 || !is_digit(text.start[text.length - 2])) return 1;
    char last = text.start[text.length - 1];
    return last == 'k' || last == 'K' ? 1 << 10 : last == 'M' ? 1 << 20 : 1;
}

pc_code pc_parse_integer(const char *input, int64_t least, int64_t most, int64_t *number, pc_error *error) {
    span text = trim(input);
    int64_t value = 0;
    const char *problem = scan_whole(text, &value);
    if (problem && factor_of(text) > 1) problem = "may mean thousands or 1024s";
    return take_integer(text, problem, value, least, most, number, error);
}

pc_code pc_parse_count(const char *input, int64_t least, int64_t most, int64_t *number, pc_error *error) {
    span text = trim(input);
    int64_t value = 0, factor = factor_of(text);
    const char *problem = scan_whole((span){text.start, text.length - (factor > 1)}, &value);
    if (!problem && __builtin_mul_overflow(value, factor, &value)) problem = "out of range";
    return take_integer(text, problem, value, least, most, number, error);
}

pc_code pc_parse_amount(const char *input, int64_t *amount, pc_error *error) {
    decimal number;
    span text = trim(input), name;
    int64_t value;
    const char *problem = scan_number(text, &number, &name);
    if (has_thousands(text)) return refuse_thousands(text, error);
    if (problem) return refuse(text, problem, amount_expected, error);
    const unit *of = find_unit(amount_units, name);
    if (!of) return refuse_unit(text, name, NULL, amount_expected, error);
    if (!to_whole(&number, of, &value)) return refuse(text, "too large", amount_expected, error);
    if (value == 0) return refuse(text, "is zero", amount_expected, error);
    *amount = value;
    return PC_OK;
}
