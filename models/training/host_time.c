#include "models/training/host_time.h"

#include "engine/numbers.h"

/* A profile of kernels may have measured its own launches. */
double pc_host_operation_s(const pc_outline *outline, const pc_operation *operation, double first_s) {
    const pc_gpu *gpu = &outline->spec->machine.gpu;
    double launch_s = outline->cost.launch_s, further_s = launch_s;
    bool counts = outline->spec->counts_modules && launch_s > 0;
    if (operation->launches == 0) return 0;
    first_s = pc_max(first_s, launch_s);
    if (counts && !operation->is_within) first_s = pc_max(first_s, gpu->module_s);
    if (counts && operation->is_by_expert) further_s = pc_max(further_s, gpu->expert_s);
    return first_s + (operation->launches - 1) * further_s;
}

double pc_host_pass_s(const pc_outline *outline, const pc_operations *operations) {
    double seconds = 0;
    for (int i = 0; i < operations->count; i++) {
        const pc_operation *x = &operations->list[i];
        seconds += (double)x->repeat * pc_host_operation_s(outline, x, 0);
    }
    return seconds;
}
