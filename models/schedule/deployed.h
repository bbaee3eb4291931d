/* deployed.h: the orders that people run today under a schedule's name, as public generators and frameworks give them:
 * the makings `published`, `torch` and `megatron`. Private to the generators. */
#ifndef PC_MODELS_SCHEDULE_DEPLOYED_H
#define PC_MODELS_SCHEDULE_DEPLOYED_H

#include "models/schedule/generate.h"

/* One name's order in one making. */
typedef struct pc_deployed {
    const char *name; /* the generator's */
    pc_making making;
    /* For a request that pc_generator_check has accepted, with its chunks filled in, and costs, where the generator
     * searches; `making` is this one. Free *schedule with pc_schedule_free. NULL: the order is the generator's own, for
     * the shapes that pc_framework_check lets through. */
    pc_code (*generate)(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                        pc_error *error);
} pc_deployed;

/* NULL where nobody runs such an order under this name. */
const pc_deployed *pc_deployed_find(const pc_generator *generator, pc_making making);

/* In deployed_frameworks.c. Whether PyTorch or Megatron-LM take this shape under this name; PC_ERROR_INPUT and their
 * rule otherwise. The order of ZBVZeroBubble. */
pc_code pc_framework_check(const pc_generator *generator, const pc_generate_request *request, pc_error *error);
pc_code pc_torch_zb_v(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                      pc_error *error);

#endif
