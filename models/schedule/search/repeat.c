#include "models/schedule/search/repeat.h"

/* The next pass of one type and one microbatch of the block while a device's order is merged. */
typedef struct lane {
    int64_t start;
    int32_t microbatch;
    int32_t type;
} lane;

enum { LANES_MAX = 2 * PC_INSTANCE_TYPES_MAX };

static int find_lanes(const pc_instance *instance, const pc_block *block, int device, lane lanes[LANES_MAX]) {
    int count = 0;
    for (int i = 0; i < block->microbatches && i < instance->microbatches; i++)
        for (int c = 0; c < block->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                int64_t start = pc_block_start(block, i, device, c, kind);
                if (start != PC_TIME_NOT_GIVEN)
                    lanes[count++] = (lane){start, i, pc_instance_type(instance, (pc_pass_kind)kind, c)};
            }
    return count;
}

static void repeat_on_device(const pc_instance *instance, const pc_block *block, int device, pc_instance_pass *passes) {
    lane lanes[LANES_MAX];
    int count = find_lanes(instance, block, device, lanes);
    for (int64_t k = 0; k < instance->passes; k++) {
        int first = 0;
        for (int i = 1; i < count; i++)
            if (lanes[i].start < lanes[first].start) first = i;
        lane *l = &lanes[first];
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): a block has every pass of its microbatches */
        passes[k] = pc_instance_pass_make(l->type, l->microbatch);
        l->start += block->interval;
        l->microbatch += block->microbatches;
        if (l->microbatch >= instance->microbatches) *l = lanes[--count];
    }
}

void pc_repeat_block(const pc_instance *instance, const pc_block *block, pc_instance_order *order) {
    for (int d = 0; d < instance->devices; d++)
        repeat_on_device(instance, block, d, order->pass + d * instance->passes);
}

void pc_repeat_one_by_one(const pc_instance *instance, pc_instance_order *order) {
    int chunks = instance->chunks, rows = instance->types / chunks;
    pc_instance_pass *next = order->pass;
    for (int d = 0; d < instance->devices; d++)
        for (int i = 0; i < instance->microbatches; i++) {
            for (int c = 0; c < chunks; c++) *next++ = pc_instance_pass_make(c, i);
            for (int c = chunks - 1; c >= 0; c--)
                for (int row = 1; row < rows; row++) *next++ = pc_instance_pass_make(row * chunks + c, i);
        }
}
