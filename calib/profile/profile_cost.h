/* profile_cost.h: a profile as a cost model: fits where something was measured, the roofline of the machine elsewhere.
 */
#ifndef PC_CALIB_PROFILE_PROFILE_COST_H
#define PC_CALIB_PROFILE_PROFILE_COST_H

#include "calib/profile/profile.h"
#include "models/cost/cost.h"
#include "models/machine/machine.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PC_ERROR_INPUT if the profile is of another GPU than `gpu`, a name as machines have it ("a100-sxm-80gb"), with
 * both names. A profile that names a GPU of the library has to name this one; otherwise its driver's name ("NVIDIA
 * A100-SXM4-80GB") has to have the same words in it. */
pc_code pc_profile_check_gpu(const pc_profile *profile, const char *gpu, pc_error *error);

typedef struct pc_profile_cost pc_profile_cost;

/* `profile` is borrowed and outlives it, `gpu` and the rest of `machine` are copied. PC_ERROR_INPUT if the profile
 * is of another GPU than the machine's (pc_profile_check_gpu). Free with pc_profile_cost_free. */
pc_code pc_profile_cost_make(const pc_profile *profile, const pc_machine *machine, pc_profile_cost **cost,
                             pc_error *error);
void pc_profile_cost_free(pc_profile_cost *cost);

/* For pc_iteration_run; borrowed from `cost`. Any number of threads may use it at once.
 *
 * An operation is one or more runs of a kernel family (calib/profile/profile_runs.c, docs/calibration.md), cold where
 * that was measured. Up to 4 times outside the measured range its fit answers, with a warning from 1.25 on; beyond, the
 * roofline of the machine, in proportion to what the fit says at 4 times. What was not measured, the roofline answers.
 *
 * A product asks the fit of its format (mxfp8 and fp8_block, where they have none, that of fp8). Of several tables the
 * one that was measured as training runs it, then a library of training, then TensorRT-LLM's. Others' tables answer for
 * a chip under load and with what lies between sites in their error; gradients and the backward pass of attention
 * follow from forward tables. A profile of the library answers what gpu.kernels_for says, without warnings. */
pc_cost_model pc_profile_cost_model(const pc_profile_cost *cost);

/* The machine with what was measured in place of what its file says. That is a launch's host time, and reserved memory
 * if it is more. It is also the collectives in one domain, of as many ranks as were measured or of any number if the
 * profile has a law for them (of reductions the one of 16 bits; of the newest library), and messages in it, over
 * anything but loopback sockets. Exchanges of experts have an answer beside them, also between nodes. Borrowed from
 * `cost`. */
const pc_machine *pc_profile_cost_machine(const pc_profile_cost *cost);

/* Warnings, a line each, the same for any number of threads. For each sort of operation there is the shape that was
 * farthest outside the measured range, with its distance, the dimension and the range. One line has what is not in the
 * profile at all; for that the roofline answers. `number` from 0; false behind the last. */
bool pc_profile_cost_warning(const pc_profile_cost *cost, int number, char *line, size_t size);

/* ---- how the times of kernels scatter, as a distribution of factors for what takes them ---- */

/* At probabilities 0, 0.001, ... 1. */
enum { PC_SCATTER_QUANTILES = 1001 };

/* Of all raw samples, each over the median of its point (a kernel on a shape), every point with the same weight: the
 * quantiles, linear between samples, over the distribution's mean, which is 1 then. Outliers stay in. The first and the
 * last quantile are set so that the thousandth of the distribution at their end has the mean of the samples there. So
 * one sample in a hundred thousand does not count as one in two thousand; the greatest itself may lie beyond. Points
 * without samples, such as imported ones, and those that only watch for drift (PC_PROFILE_SENTINEL) are left out.
 * PC_ERROR_INPUT if none has two samples, and where half of a point's are not above zero. */
pc_code pc_profile_scatter(const pc_profile *profile, double quantiles[PC_SCATTER_QUANTILES], pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
