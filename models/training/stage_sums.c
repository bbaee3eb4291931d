#include "models/training/stage_sums.h"

#include "engine/numbers.h"
#include "models/training/traffic.h"

#include <string.h>

void pc_outline_count_passes(const pc_schedule *schedule, int device, pc_pass_counts counts) {
    memset(counts, 0, (size_t)schedule->chunks * sizeof counts[0]);
    for (int64_t i = schedule->offsets[device]; i < schedule->offsets[device + 1]; i++)
        counts[schedule->passes[i].chunk][schedule->passes[i].kind]++;
}

pc_stage_sums pc_outline_sum_stage(const pc_outline *outline, const pc_schedule *schedule, int device) {
    pc_pass_counts counts;
    pc_stage_sums sums = {0};
    pc_outline_count_passes(schedule, device, counts);
    for (int c = 0; c < outline->chunks; c++)
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
            const pc_pass_cost *x = &pc_outline_part(outline, device, c)->pass[kind];
            double times = counts[c][kind];
            sums.compute_s += times * x->compute_s * outline->pace;
            sums.tp_s += times * x->tp_s * outline->pace;
            sums.cp_s += times * x->cp_s * outline->pace;
            sums.ep_s += times * x->ep_s * outline->pace;
            sums.standard_error_s += times * x->standard_error_s * outline->pace;
            sums.flops += times * x->flops;
        }
    return sums;
}

static double all_of(const pc_stage_sums *sums) {
    return sums->compute_s + sums->tp_s + sums->cp_s + sums->ep_s;
}

pc_stage_sums pc_outline_sum_busiest(const pc_outline *outline, const pc_schedule *schedule) {
    pc_stage_sums most = pc_outline_sum_stage(outline, schedule, 0);
    for (int d = 1; d < outline->devices; d++) {
        pc_stage_sums sums = pc_outline_sum_stage(outline, schedule, d);
        if (all_of(&sums) > all_of(&most)) most = sums;
    }
    return most;
}

void pc_outline_fill_in_rates(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs,
                              pc_iteration *iteration) {
    const pc_cut *cut = &outline->cut;
    double gpus = (double)cut->tp * cut->pp * pc_cut_replicas(cut),
           peak = outline->spec->machine.gpu.matrix_flops_per_s;
    double flops = 0;
    for (int d = 0; d < outline->devices; d++) flops += pc_outline_sum_stage(outline, schedule, d).flops;
    iteration->sequences = (double)cut->microbatch_size * (double)cut->microbatches * cut->dp;
    iteration->model_flops = iteration->sequences * pc_cut_flops_per_sequence(&outline->spec->model, cut);
    iteration->hardware_flops = flops * cut->tp * pc_cut_replicas(cut);
    double of_a_gpu = iteration->iteration_s * gpus;
    iteration->tflops_per_gpu = of_a_gpu > 0 ? iteration->model_flops / of_a_gpu / PC_FLOP_PER_TFLOP : 0;
    iteration->mfu = iteration->tflops_per_gpu * PC_FLOP_PER_TFLOP / peak;
    iteration->hfu = of_a_gpu > 0 ? iteration->hardware_flops / of_a_gpu / peak : 0;
    iteration->sent = pc_outline_sent(outline, schedule);
    pc_costs_longest(costs, iteration->longest_ps);
}
