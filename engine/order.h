/* order.h: comparisons for qsort, and quantiles. Private to the library. */
#ifndef PC_ENGINE_ORDER_H
#define PC_ENGINE_ORDER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of a double each, none of which is no number; and of an int64_t each: ascending. */
int pc_compare_reals(const void *a, const void *b);
int pc_compare_integers(const void *a, const void *b);

/* Ascending. */
void pc_sort_reals(double *numbers, int64_t count);

/* The quantile p (0 .. 1) of `count` > 0 ascending values: linear between the two nearest, at the place p * (count - 1)
 * (definition 7 of Hyndman and Fan 1996, 'Sample Quantiles in Statistical Packages'). GSL's, of the same definition,
 * differs in the last bit. */
double pc_quantile_at(const double *sorted, int64_t count, double p);

#ifdef __cplusplus
}
#endif
#endif
