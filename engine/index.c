#include "engine/index.h"

#include "engine/alloc.h"

enum { SLOTS_LEAST = 64 };

pc_code pc_index_reserve(pc_index *index, int64_t count, pc_error *error) {
    if (index->slots && count <= index->slot_count / 4 * 3) return PC_OK;
    pc_index grown = {.slot_count = SLOTS_LEAST, .count = index->count};
    while (grown.slot_count / 4 * 3 < count) grown.slot_count *= 2;
    grown.slots = pc_alloc((size_t)grown.slot_count, sizeof *grown.slots);
    if (!grown.slots) return pc_error_no_memory(error);
    for (int64_t i = 0; index->slots && i < index->slot_count; i++)
        if (index->slots[i].number) *pc_index_slot_of(&grown, index->slots[i].key) = index->slots[i];
    pc_free(index->slots);
    *index = grown;
    return PC_OK;
}

void pc_index_free(pc_index *index) {
    pc_free(index->slots);
    *index = (pc_index){0};
}
