/* tensors.h: the tensors that a part's parameters come in, as optimizers that give whole tensors to ranks see them. */
#ifndef PC_MODELS_WORKLOAD_TENSORS_H
#define PC_MODELS_WORKLOAD_TENSORS_H

#include "models/workload/cut.h"
#include "models/workload/model.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* So many tensors of so many parameters. */
typedef struct pc_tensor_sort {
    int64_t parameters, count;
    int64_t rows, columns; /* of a matrix; else 0 */
    int64_t key_columns;   /* of the columns, those of the keys, and as many of the values; 0: it has none */
    bool is_in_layer;      /* a matrix of a layer, and no table */
    bool is_expert;        /* of a routed expert */
    int64_t state_bytes;   /* optimizer state of one, and the time of its own step: for the caller to fill in */
    int64_t step_ps;
} pc_tensor_sort;

/* Of one part on one TP rank of a checked cut, in any order; none is empty. Their parameters come to
 * pc_part_parameters. Query, key and value are one matrix; gate and up are two. Returns how many sorts. */
enum { PC_TENSOR_SORTS_MAX = 32 };
int pc_part_tensors(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding,
                    pc_tensor_sort sorts[PC_TENSOR_SORTS_MAX]);

#ifdef __cplusplus
}
#endif
#endif
