#include "models/schedule/copies.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <stdbool.h>
#include <string.h>

void pc_copy_plan_free(pc_copy_plan *plan) {
    pc_free(plan->mark);
    pc_free(plan->partner);
    pc_free(plan->after);
    pc_free(plan->run);
    pc_free(plan->out_end_ps);
    pc_free(plan->forward);
    memset(plan, 0, sizeof *plan);
}

static bool make_room(int64_t passes, int64_t cells, pc_copy_plan *plan) {
    if (plan->passes < passes || plan->cells < cells) {
        pc_copy_plan_free(plan);
        plan->mark = pc_alloc((size_t)passes, sizeof *plan->mark);
        plan->partner = pc_alloc((size_t)passes, sizeof *plan->partner);
        plan->after = pc_alloc((size_t)passes, sizeof *plan->after);
        plan->run = pc_alloc((size_t)passes, sizeof *plan->run);
        plan->out_end_ps = pc_alloc((size_t)passes, sizeof *plan->out_end_ps);
        plan->forward = pc_alloc((size_t)cells, sizeof *plan->forward);
        plan->passes = passes;
        plan->cells = cells;
    }
    return plan->mark && plan->partner && plan->after && plan->run && plan->out_end_ps && plan->forward;
}

static bool is_in_range(const pc_schedule *schedule, pc_pass pass) {
    return (uint32_t)pass.microbatch < (uint32_t)schedule->microbatches &&
           (uint32_t)pass.chunk < (uint32_t)schedule->chunks;
}

enum { NO_F = -1 };

static void count_runs(const pc_schedule *schedule, const pc_costs *costs, int device, pc_copy_plan *plan) {
    int64_t first = schedule->offsets[device];
    int32_t run = 0;
    for (int64_t i = first; i < schedule->offsets[device + 1]; i++) {
        bool is_second = i > first && costs->pair_ps && pc_schedule_is_second(schedule, i);
        if (i > first && !is_second) run++;
        plan->run[i] = run;
    }
}

/* The last pass of the run that is so many before the position's, which there is. */
static int32_t find_before(const pc_copy_plan *plan, int64_t position, int32_t runs) {
    int64_t at = position;
    while (plan->run[at] + runs > plan->run[position]) at--;
    return (int32_t)at;
}

/* The F and the backward pass of each microbatch. */
static void match(const pc_schedule *schedule, const pc_costs *costs, int device, pc_copy_plan *plan) {
    int64_t cells = (int64_t)schedule->chunks * schedule->microbatches;
    for (int64_t i = 0; i < cells; i++) plan->forward[i] = NO_F;
    for (int64_t i = schedule->offsets[device]; i < schedule->offsets[device + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        if (!is_in_range(schedule, pass)) continue;
        int32_t *f = &plan->forward[(int64_t)pass.chunk * schedule->microbatches + pass.microbatch];
        if (pass.kind == PC_PASS_F) *f = (int32_t)i;
        bool is_backward = pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW;
        if (!is_backward || *f == NO_F) continue;
        int64_t at = pc_costs_index(costs, device, pass.chunk);
        if (costs->copies.bytes[at] > 0 && plan->run[i] - plan->run[*f] >= PC_COPY_GAP) {
            plan->mark[*f] = PC_COPY_OUT;
            plan->mark[i] = PC_COPY_BACK;
            plan->partner[*f] = (int32_t)i;
            plan->partner[i] = *f;
            plan->after[i] = find_before(plan, i, 1 + costs->copies.ahead[at]);
        }
        *f = NO_F;
    }
}

pc_code pc_copy_plan_make(const pc_schedule *schedule, const pc_costs *costs, pc_copy_plan *plan, pc_error *error) {
    int64_t passes = schedule->offsets[schedule->devices];
    if (!make_room(passes + 1, (int64_t)schedule->chunks * schedule->microbatches, plan))
        return pc_error_no_memory(error);
    memset(plan->mark, PC_COPY_NONE, (size_t)passes * sizeof *plan->mark);
    memset(plan->out_end_ps, 0, (size_t)passes * sizeof *plan->out_end_ps);
    for (int d = 0; d < schedule->devices; d++) {
        count_runs(schedule, costs, d, plan);
        match(schedule, costs, d, plan);
    }
    return PC_OK;
}

int64_t pc_copy_plan_host_bytes(const pc_schedule *schedule, const pc_costs *costs, const pc_copy_plan *plan,
                                int device) {
    int64_t level = 0, most = 0;
    for (int64_t i = schedule->offsets[device]; i < schedule->offsets[device + 1]; i++) {
        int64_t bytes = costs->copies.bytes[pc_costs_index(costs, device, schedule->passes[i].chunk)];
        if (plan->mark[i] == PC_COPY_OUT) level += bytes;
        most = pc_max(most, level);
        if (plan->mark[i] == PC_COPY_BACK) level -= bytes;
    }
    return most;
}
