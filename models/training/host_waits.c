#include "models/training/host_waits.h"

#include "engine/numbers.h"
#include "models/training/host_time.h"
#include "models/training/pass_costs.h"

static double gpu_s(const pc_outline *outline, const pc_operation *x) {
    if (pc_operation_is_collective(x)) return pc_outline_course(outline, x).seconds;
    return outline->cost.kernel(outline->cost.self, x).seconds;
}

static bool waits_at(const pc_outline *outline, const pc_operation *x) {
    return outline->cost.launch_s > 0 && !outline->spec->model.experts.pads_to_capacity &&
           x->kind == PC_OPERATION_DISPATCH && x->role == PC_GEMM_FORWARD;
}

/* The copy of the counts, a kernel and its launch, is what the host waits for. */
double pc_host_wait_s(const pc_outline *outline, const pc_operations *operations, int first) {
    const pc_gpu *gpu = &outline->spec->machine.gpu;
    if (!waits_at(outline, &operations->list[first])) return 0;
    double host_s = gpu->kernel_s + gpu->launch_s, device_s = 0, idle_s = 0;
    for (int i = first; i < operations->count; i++) {
        const pc_operation *x = &operations->list[i];
        if (x->repeat != operations->list[first].repeat || x->role != PC_GEMM_FORWARD) break;
        host_s += pc_host_operation_s(outline, x, gpu->call_s);
        idle_s = pc_max(idle_s, host_s - device_s);
        device_s += gpu_s(outline, x);
    }
    return idle_s;
}

double pc_host_waits_s(const pc_outline *outline, const pc_operations *operations) {
    double seconds = 0;
    for (int i = 0; i < operations->count; i++)
        seconds += (double)operations->list[i].repeat * pc_host_wait_s(outline, operations, i);
    return seconds;
}
