/* gemm_roles.h: what a product takes in the backward pass where forward ones alone were measured, and how much two
 * sites that measure the same kernels differ. Both from operators/b200_training, one B200 that ran products as training
 * does, and operators/b200_sxm, another one's table of short bursts (SimuMax and AIConfigurator publish them).
 */
#ifndef PC_CALIB_FIT_GEMM_ROLES_H
#define PC_CALIB_FIT_GEMM_ROLES_H

#include "models/cost/cost.h"
#include "models/workload/operation.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `forward`: the seconds of a forward product of the same batch, m, n, k (shape[4], of this product, not of the forward
 * pass's). `memory_bytes_per_s` is what the memory reaches; above zero. Pure.
 * - Input gradient (layout NN against TN): the same time. 24 shapes measured both ways: median ratio 1.00, half of
 *   them within 0.97 to 1.03.
 * - Weight gradient (NT, added to in fp32): 1 / 0.98 of it, and half of the time that 6 bytes more an output element
 *   take (8 read and written for 2 written): the other half hides behind products. 140 shapes: the ratio is 1.03 where
 *   that traffic is 2 to 5% of the time, 1.08 at 10 to 20%, 1.18 above.
 * The error of the ratio, 5% (NT) and 3% (NN), is in the standard error. */
pc_estimate pc_gemm_role_estimate(pc_estimate forward, pc_gemm_role role, const double shape[4],
                                  double memory_bytes_per_s);

/* Of what one site measured, as another site's chips will run it: the same seconds, and a standard error with what lies
 * between sites in it, 14% of the time. Two B200 were compared: 131 shapes take 1.34 times as long at one as at the
 * other in bf16, of which 1.1 is the boost clock (fit_gemm_table.c). The logarithm of the rest, 0.2, is sqrt(2)
 * deviations of one site. */
pc_estimate pc_fit_any_site(pc_estimate one_site);

#ifdef __cplusplus
}
#endif
#endif
