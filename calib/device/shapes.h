/* shapes.h: private to calib/: what to measure: of every kernel family the shapes that training meets, in the order of
 * their importance. Pure: knows a device's numbers and no device.
 */
#ifndef PC_CALIB_DEVICE_SHAPES_H
#define PC_CALIB_DEVICE_SHAPES_H

#include "calib/device/measure.h"
#include "kernels/kernel.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a shape is for; lower ones are measured first. */
typedef enum pc_shape_tier {
    PC_SHAPE_CEILING, /* a large copy and large products: what the device can do at most */
    PC_SHAPE_COARSE,  /* the least that fits of every family need */
    PC_SHAPE_MODELS,  /* what layers of well-known models run */
    PC_SHAPE_FINE,    /* between those: drawn by the seed, odd ones too */
    PC_SHAPE_HALF,    /* some of them again in fp16 */
    PC_SHAPE_TIERS
} pc_shape_tier;
const char *pc_shape_tier_name(pc_shape_tier tier); /* "coarse grid" */

typedef struct pc_planned_shape {
    const pc_kernel_family *family;
    pc_kernel_shape shape;
    pc_shape_tier tier;
    int64_t set_bytes; /* of its tensors, each begun at a multiple of PC_SHAPE_ALIGNMENT */
    int32_t sets;      /* that a cold measurement rotates over: they touch three times the L2 cache; 1 where one does */
} pc_planned_shape;

enum { PC_SHAPE_ALIGNMENT = 256, PC_SHAPE_L2_TIMES = 3 };

typedef struct pc_shape_plan {
    pc_planned_shape *shape; /* by tier, within a tier in random order; owned */
    int64_t count, room;
    int64_t too_large; /* shapes that do not fit into the device's memory and were left out */
} pc_shape_plan;

/* Plans the shapes of `families` (others' shapes and those of families that it does not know are none) that fit into
 * the device's memory. The same arguments, the same plan; no shape twice. Free with pc_shape_plan_free. */
pc_code pc_shape_plan_make(const pc_kernel_family *const *families, int family_count, const pc_device_info *info,
                           pc_calibrate_effort effort, uint64_t seed, pc_shape_plan *plan, pc_error *error);
void pc_shape_plan_free(pc_shape_plan *plan); /* zeroes it */

/* What is measured again and again, for drift: 0 a product, 1 a copy. False behind the last, or where its family is not
 * among these. */
bool pc_shape_sentinel(const pc_kernel_family *const *families, int family_count, const pc_device_info *info,
                       pc_calibrate_effort effort, int number, pc_planned_shape *sentinel);

/* A device's rates, as far as they are known: for estimates. */
typedef struct pc_shape_rates {
    double flops_per_s, bytes_per_s, launch_s;
} pc_shape_rates;

/* A rough time of one launch, of a kernel that reaches half of the rates; for planning alone. */
double pc_shape_kernel_seconds(const pc_planned_shape *shape, const pc_shape_rates *rates);

/* A line for people: "gemm_forward bf16 8192 x 4096 x 4096". */
void pc_shape_text(const pc_kernel_family *family, const pc_kernel_shape *shape, char *text, int size);

/* ---- between shapes.c and its parts ---- */

/* The recipes of a family add through this; those that the family refuses, that do not fit or that are there already
 * are dropped. */
typedef struct pc_shape_builder {
    pc_shape_plan *plan;
    const pc_kernel_family *family;
    int64_t usable_bytes, l2_bytes;
    uint64_t random; /* state */
    pc_code code;
    pc_error *error;
} pc_shape_builder;

void pc_shape_add(pc_shape_builder *builder, pc_shape_tier tier, const pc_kernel_shape *shape);
/* A whole number from least to most, by the logarithm, a multiple of `step` where that is possible. */
int64_t pc_shape_draw(pc_shape_builder *builder, int64_t least, int64_t most, int64_t step);

void pc_shapes_of_gemm(pc_shape_builder *builder, pc_calibrate_effort effort);
void pc_shapes_of_attention(pc_shape_builder *builder, pc_calibrate_effort effort);
/* Everything else; false where the name is not known. */
bool pc_shapes_of_rows(pc_shape_builder *builder, pc_calibrate_effort effort);

#ifdef __cplusplus
}
#endif
#endif
