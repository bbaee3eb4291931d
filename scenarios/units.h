/* units.h: the one parser of numbers with units, as scenario files and flags write them. Pure: text in, number out.
 *
 * A dimensioned value is a number and a unit: "12.96 ms", "400 Gbit/s", "80 GiB". The unit is never left out, but of a
 * price, which is of an hour. The decimal point is a point whatever the locale. Not a number, infinite and negative
 * values are refused.
 */
#ifndef PC_SCENARIOS_UNITS_H
#define PC_SCENARIOS_UNITS_H

#include "engine/error.h"
#include "engine/simtime.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ps, ns, us, ms, s, min, h, d; also their names: seconds, minutes, hours, days. */
pc_code pc_parse_time(const char *text, pc_time *time_ps, pc_error *error);

/* A time of the world outside: ms, s, min, h, d, y (of 365.25 days), weeks; also seconds, minutes, hours, days, years;
 * in seconds, at most a million years. */
pc_code pc_parse_duration(const char *text, double *seconds, pc_error *error);

/* What pc_parse_duration reads as these seconds, without a space: "15min", "5y": of the units in which it is a whole
 * number the largest; seconds where there is none. At most PC_DURATION_TEXT bytes with the terminating zero. */
enum { PC_DURATION_TEXT = 32 };
void pc_write_duration(double seconds, char text[PC_DURATION_TEXT]);

/* B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024), and K, M, G, T for the latter, as in "80G";
 * whole bytes after rounding. */
pc_code pc_parse_size(const char *text, int64_t *bytes, pc_error *error);

/* The shortest text without a space that pc_parse_size reads as these bytes: "40GiB", "1.5GB". At most 24 bytes with
 * the terminating zero; `bytes` at least 0. */
enum { PC_SIZE_TEXT = 24 };
void pc_write_size(int64_t bytes, char text[PC_SIZE_TEXT]);

/* bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (Mbps, Gbps, Tbps), and every size a second ("300 GB/s"). More than zero. */
pc_code pc_parse_bandwidth(const char *text, double *bytes_per_s, pc_error *error);

/* FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s (powers of 1000). More than zero. */
pc_code pc_parse_rate(const char *text, double *flops_per_s, pc_error *error);

/* W, kW, MW (powers of 1000). More than zero. */
pc_code pc_parse_power(const char *text, double *watts, pc_error *error);

/* Money an hour in any currency: "2.10", "2.10/h", "$2.10/h", "2.10 EUR/GPU-hour". More than zero. */
pc_code pc_parse_price(const char *text, double *price_per_hour, pc_error *error);

/* The currency that such a price names: its three letters, "USD" of "$"; empty if it names none. At most
 * PC_CURRENCY_TEXT bytes with the terminating zero. */
enum { PC_CURRENCY_TEXT = 8 };
void pc_price_currency(const char *text, char currency[PC_CURRENCY_TEXT]);

/* Money in any currency: "2M$", "$2M", "500k EUR", "2000000". More than zero. Its currency is pc_money_currency's, as
 * a price's. */
pc_code pc_parse_money(const char *text, double *money, pc_error *error);
void pc_money_currency(const char *text, char currency[PC_CURRENCY_TEXT]);

/* A plain number, at least zero, without a unit. */
pc_code pc_parse_number(const char *text, double *number, pc_error *error);

/* Likewise, at most 1. */
pc_code pc_parse_fraction(const char *text, double *fraction, pc_error *error);

/* "true" or "false". */
pc_code pc_parse_switch(const char *text, bool *is_on, pc_error *error);

/* A whole number between `least` and `most`, decimal, without a unit or a fraction, or zeros in front. */
pc_code pc_parse_integer(const char *text, int64_t least, int64_t most, int64_t *number, pc_error *error);

/* The same of a number of things, which may end in k (1024) or M (1024^2), as tokens are counted: "32k" is 32768. */
pc_code pc_parse_count(const char *text, int64_t least, int64_t most, int64_t *number, pc_error *error);

/* A large number as papers count tokens: "15T" is 15 * 10^12, "1.5B" 1.5 * 10^9; plain digits too, no k and no M. To
 * the nearest whole number, more than zero. */
pc_code pc_parse_amount(const char *text, int64_t *amount, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
