#include "models/cost/cost.h"

static bool is_collective(pc_operation_kind kind) {
    return kind >= PC_OPERATION_ALL_REDUCE;
}

/* Standard errors add up as if all estimates were wrong the same way: they come from the same few parameters. */
pc_pass_estimate pc_cost_pass(const pc_cost_model *cost, const pc_operations *operations) {
    pc_pass_estimate sum = {0};
    for (int i = 0; i < operations->count; i++) {
        const pc_operation *operation = &operations->list[i];
        double repeat = (double)operation->repeat;
        sum.launch_bound_s += repeat * (double)operation->launches * cost->launch_s;
        if (is_collective(operation->kind)) continue;
        pc_estimate estimate = cost->kernel(cost->self, operation);
        sum.kernel_s += repeat * estimate.seconds;
        sum.standard_error += repeat * estimate.standard_error;
    }
    return sum;
}
