#include "models/workload/dummy_wgrad.h"

#include "models/workload/slice.h"

enum { SHAPES_MAX = 5, BYTES = 2 };

typedef struct shapes {
    int64_t rows[SHAPES_MAX], columns[SHAPES_MAX];
    int count;
} shapes;

static void add(shapes *known, int64_t rows, int64_t columns) {
    for (int i = 0; i < known->count; i++)
        if (known->rows[i] == rows && known->columns[i] == columns) return;
    known->rows[known->count] = rows;
    known->columns[known->count++] = columns;
}

/* Rows are what a matrix puts out. */
int64_t pc_dummy_wgrad_bytes(const pc_model *model, const pc_cut *cut, bool has_layers, bool has_head) {
    pc_slice x = pc_slice_of(model, cut);
    shapes known = {.count = 0};
    int64_t sum = 0;
    if (!cut->dummy_wgrad || cut->gradient_accumulation != PC_GRADIENT_ACCUMULATION_FUSED) return 0;
    if (has_layers && !(x.frozen & (int32_t)PC_FROZEN_LAYERS)) {
        add(&known, x.qkv, x.hidden);
        add(&known, x.hidden, x.query);
        add(&known, x.up, x.hidden);
        add(&known, x.hidden, x.ffn);
    }
    if (has_head && !(x.frozen & (int32_t)PC_FROZEN_HEAD)) add(&known, x.vocab, x.hidden);
    for (int i = 0; i < known.count; i++) sum += BYTES * known.rows[i] * known.columns[i];
    return sum;
}
