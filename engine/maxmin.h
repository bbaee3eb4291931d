/* maxmin.h: max-min fair shares of links among the flows that cross them. Pure: arrays in, rates out. */
#ifndef PC_ENGINE_MAXMIN_H
#define PC_ENGINE_MAXMIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flow f crosses links route[offset[f]] to route[offset[f+1] - 1], at least one, none twice. Link l has capacity[l] >
 * 0. Writes rate[f]: no flow can get more without one that has no more getting less (Bertsekas and Gallager, 'Data
 * Networks', 1992, section 6.5.2: progressive filling). Ties are settled by the lowest link number, so equal input
 * gives equal bits. `left` and `waiting` are scratch, a number a link. Each round fixes the flows of one link at least.
 */
void pc_maxmin_rates(int32_t flow_count, const int32_t *offset, const int32_t *route, int32_t link_count,
                     const double *capacity, double *rate, double *left, int32_t *waiting);

#ifdef __cplusplus
}
#endif
#endif
