/* Activations on their way to the host and back: tasks on two processors of each place, one each way. */
#include "models/training/lowering.h"

#include "engine/alloc.h"

#include <string.h>

pc_code lowering_add_copiers(lowering *lowered) {
    int64_t places = (int64_t)lowered->how.replicas * lowered->outline->devices;
    size_t rows = (size_t)(lowered->passes * lowered->how.replicas);
    pc_code code = PC_OK;
    if (!pc_costs_have_copies(&lowered->costs)) return PC_OK;
    lowered->copied_out = pc_alloc(rows, sizeof *lowered->copied_out);
    if (!lowered->copied_out) return pc_error_no_memory(lowered->error);
    memset(lowered->copied_out, 0xff, rows * sizeof *lowered->copied_out); /* PC_NO_TASK */
    code = pc_copy_plan_make(lowered->schedule, &lowered->costs, &lowered->copy_plan, lowered->error);
    for (int64_t i = 0; !code && i < 2 * places; i++) {
        int32_t number;
        code = pc_program_add_processor(lowered->program, PC_PROCESSOR_IN_ORDER, &number, lowered->error);
        if (i == 0) lowered->copier = number;
    }
    return code;
}

void lowering_add_copied_bytes(lowering *lowered, int device, pc_pass pass) {
    if (!pc_costs_have_copies(&lowered->costs)) return;
    int64_t at = lowering_cell(lowered, device, pass.chunk);
    int64_t bytes = lowered->costs.copies.bytes[at], by_b = lowered->costs.copies.b_bytes[at];
    if (pass.kind == PC_PASS_F) lowered->take_bytes += bytes;
    if (pass.kind == PC_PASS_B) lowered->give_bytes += by_b;
    if (pass.kind == PC_PASS_W) lowered->give_bytes += bytes - by_b;
    if (pass.kind == PC_PASS_BW) lowered->give_bytes += bytes;
}

static pc_code add_copy(lowering *lowered, int place, int way, pc_time time_ps, int64_t take, int64_t give,
                        int32_t *number) {
    pc_task task = pc_task_default();
    task.processor = lowered->copier + 2 * place + way;
    task.duration_ps = time_ps;
    if (lowered->how.has_memory) task.memory = place;
    if (lowered->how.has_memory) task.take_bytes = take;
    if (lowered->how.has_memory) task.give_bytes = give;
    return pc_program_add_task(lowered->program, &task, number, lowered->error);
}

static pc_code add_out(lowering *lowered, int place, int64_t row, int64_t at) {
    const pc_copies *copies = &lowered->costs.copies;
    pc_code code = add_copy(lowered, place, 0, copies->out_ps[at], 0, copies->bytes[at], &lowered->copied_out[row]);
    return code ? code : lowering_add_edge(lowered, lowered->last[row], lowered->copied_out[row], 0);
}

static pc_code add_back(lowering *lowered, int place, int64_t position, int64_t row, int64_t at) {
    const pc_copies *copies = &lowered->costs.copies;
    int64_t first_row = row - position, f_row = first_row + lowered->copy_plan.partner[position];
    int64_t after_row = first_row + lowered->copy_plan.after[position];
    int32_t number;
    pc_code code = add_copy(lowered, place, 1, copies->back_ps[at], copies->bytes[at], 0, &number);
    if (!code) code = lowering_add_edge(lowered, lowered->copied_out[f_row], number, 0);
    if (!code) code = lowering_add_edge(lowered, lowered->last[after_row], number, 0);
    if (!code && lowering_ends_pair(lowered, position))
        code = lowering_add_edge(lowered, number, lowered->first[row - 1], 0);
    return code ? code : lowering_add_edge(lowered, number, lowered->first[row], 0);
}

pc_code lowering_add_copies(lowering *lowered, int replica, int device, int64_t position) {
    if (!pc_costs_have_copies(&lowered->costs)) return PC_OK;
    int place = lowering_place(lowered, replica, device);
    int64_t row = lowering_row(lowered, replica, position),
            at = lowering_cell(lowered, device, lowered->schedule->passes[position].chunk);
    switch ((pc_copy_mark)lowered->copy_plan.mark[position]) {
    case PC_COPY_OUT:
        return add_out(lowered, place, row, at);
    case PC_COPY_BACK:
        return add_back(lowered, place, position, row, at);
    default:
        return PC_OK;
    }
}
