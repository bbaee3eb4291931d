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
} pc_tensor_sort;

/* Of one part on one TP rank of a checked cut, in any order; none is empty. Their parameters come to
 * pc_part_parameters. Query, key and value are one matrix; gate and up are two. Returns how many sorts. */
enum { PC_TENSOR_SORTS_MAX = 16 };
int pc_part_tensors(const pc_model *model, const pc_cut *cut, const pc_part *part, bool shares_embedding,
                    pc_tensor_sort sorts[PC_TENSOR_SORTS_MAX]);

#ifdef __cplusplus
}
#endif
#endif
