/* spread.h: what the slowest of many GPUs is like.
 *
 * GPUs of one type differ in speed by a few percent: silicon, power and cooling (Sinha et al. 2022, 'Not All GPUs Are
 * Created Equal', SC 2022). Synchronous training goes at the pace of the slowest, which is slower the more there are.
 */
#ifndef PC_MODELS_COST_SPREAD_H
#define PC_MODELS_COST_SPREAD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The largest, on average, of `count` numbers drawn from a normal distribution of mean 0 and standard deviation 1
 * (Tippett 1925, 'On the extreme individuals and the range of samples taken from a normal population'): 0 for one, 2.59
 * for 128, 3.44 for 2048. Never falls with `count`; exact for powers of two, up to 0.06 too small between
 * them; beyond 2^30 that of 2^30. The same bits on every machine. */
double pc_expected_largest(int64_t count);

#ifdef __cplusplus
}
#endif
#endif
