#include "models/workload/muon.h"

#include "engine/numbers.h"
#include "models/workload/optimizer.h"

enum { NUMBER_BYTES = 2, UPDATE_LAUNCHES = 4 }; /* momentum; norm; quotient; weight */

/* `adds`: it reads a tensor like its own besides. */
static void add_product(pc_operations *operations, int64_t m, int64_t n, int64_t k, bool adds, int64_t repeat) {
    operations->list[operations->count++] =
        (pc_operation){.kind = PC_OPERATION_GEMM,
                       .name = "newton_schulz",
                       .precision = PC_PRECISION_BF16,
                       .format = PC_PRODUCT_BF16,
                       .batch = 1,
                       .m = m,
                       .n = n,
                       .k = k,
                       .flops = 2 * m * n * k,
                       .bytes = NUMBER_BYTES * (m * k + k * n + (adds ? 2 : 1) * m * n),
                       .launches = 1,
                       .repeat = repeat};
}

static void add_steps(pc_operations *operations, int64_t rows, int64_t columns, int64_t blocks) {
    int64_t r = pc_min(rows, columns), c = pc_max(rows, columns), repeat = PC_MUON_STEPS * blocks;
    add_product(operations, r, r, c, false, repeat);
    add_product(operations, r, r, r, true, repeat);
    add_product(operations, r, c, r, true, repeat);
}

void pc_muon_operations(const pc_tensor_sort *sort, int width, pc_operations *operations) {
    int64_t keys = sort->key_columns;
    operations->count = 1;
    operations->list[0] = (pc_operation){.kind = PC_OPERATION_OPTIMIZER,
                                         .name = "step",
                                         .function = "adam",
                                         .batch = 1,
                                         .m = sort->parameters,
                                         .n = 1,
                                         .k = 1,
                                         .bytes = pc_muon_moved_bytes(width) * sort->parameters,
                                         .launches = UPDATE_LAUNCHES,
                                         .repeat = 1};
    add_steps(operations, sort->rows, sort->columns - 2 * keys, 1);
    if (keys > 0) add_steps(operations, sort->rows, keys, 2);
}
