#include "models/schedule/search/repeat.h"

/* The next pass of one type and one microbatch of the block while a device's order is merged. */
typedef struct lane {
    int64_t start;
    int32_t microbatch;
    int32_t type;
} lane;

enum { LANES_MAX = 2 * PC_PLAN_TYPES_MAX };

static int find_lanes(const pc_plan *plan, const pc_block *block, int device, lane lanes[LANES_MAX]) {
    int count = 0;
    for (int i = 0; i < block->microbatches && i < plan->microbatches; i++)
        for (int c = 0; c < block->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                int64_t start = pc_block_start(block, i, device, c, kind);
                if (start != PC_TIME_NOT_GIVEN)
                    lanes[count++] = (lane){start, i, pc_plan_type(plan, (pc_pass_kind)kind, c)};
            }
    return count;
}

static void repeat_on_device(const pc_plan *plan, const pc_block *block, int device, pc_plan_pass *passes) {
    lane lanes[LANES_MAX];
    int count = find_lanes(plan, block, device, lanes);
    for (int64_t k = 0; k < plan->passes; k++) {
        int first = 0;
        for (int i = 1; i < count; i++)
            if (lanes[i].start < lanes[first].start) first = i;
        lane *l = &lanes[first];
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): a block has every pass of its microbatches */
        passes[k] = pc_plan_pass_make(l->type, l->microbatch);
        l->start += block->interval;
        l->microbatch += block->microbatches;
        if (l->microbatch >= plan->microbatches) *l = lanes[--count];
    }
}

void pc_repeat_block(const pc_plan *plan, const pc_block *block, pc_plan_order *order) {
    for (int d = 0; d < plan->devices; d++) repeat_on_device(plan, block, d, order->pass + d * plan->passes);
}

void pc_repeat_one_by_one(const pc_plan *plan, pc_plan_order *order) {
    int chunks = plan->chunks, rows = plan->types / chunks;
    pc_plan_pass *next = order->pass;
    for (int d = 0; d < plan->devices; d++)
        for (int i = 0; i < plan->microbatches; i++) {
            for (int c = 0; c < chunks; c++) *next++ = pc_plan_pass_make(c, i);
            for (int c = chunks - 1; c >= 0; c--)
                for (int row = 1; row < rows; row++) *next++ = pc_plan_pass_make(row * chunks + c, i);
        }
}
