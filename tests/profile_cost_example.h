/* profile_cost_example.h: a profile's cost model over the example machine, and what tests ask of it. */
#ifndef PC_TESTS_PROFILE_COST_EXAMPLE_H
#define PC_TESTS_PROFILE_COST_EXAMPLE_H

#include "calib/profile/profile_cost.h"
#include "tests/iteration_example.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

static inline pc_machine example_machine(void) {
    pc_iteration_spec spec = example_spec();
    snprintf(spec.machine.gpu.name, sizeof spec.machine.gpu.name, "example");
    return spec.machine;
}

static inline pc_profile_cost *make_cost(const pc_profile *profile, const pc_machine *machine) {
    pc_profile_cost *cost;
    pc_error error = {0};
    if (pc_profile_cost_make(profile, machine, &cost, &error)) fail_msg("%s", error.message);
    return cost;
}

static inline pc_estimate ask(const pc_profile_cost *cost, const pc_operation *operation) {
    pc_cost_model model = pc_profile_cost_model(cost);
    pc_estimate first = model.kernel(model.self, operation), again = model.kernel(model.self, operation);
    assert_true(first.seconds == again.seconds && first.standard_error == again.standard_error);
    return first;
}

static inline int count_warnings(const pc_profile_cost *cost) {
    char line[512];
    int count = 0;
    while (pc_profile_cost_warning(cost, count, line, sizeof line)) count++;
    return count;
}

static inline void check_warning(const pc_profile_cost *cost, const char *part) {
    char line[512];
    for (int i = 0; pc_profile_cost_warning(cost, i, line, sizeof line); i++)
        if (strstr(line, part)) return;
    fail_msg("no warning has '%s'", part);
}

static inline pc_operation product(pc_gemm_role role, int64_t m, int64_t n, int64_t k) {
    return (pc_operation){.kind = PC_OPERATION_GEMM,
                          .role = role,
                          .name = "product",
                          .batch = 1,
                          .m = m,
                          .n = n,
                          .k = k,
                          .flops = 2 * m * n * k,
                          .bytes = 2 * (m * n + n * k + m * k),
                          .launches = 1,
                          .repeat = 1};
}

#endif
