#include "kernels/qkv.h"

#include <stddef.h>

void pc_qkv_split_reference(const pc_kernel_shape *shape, double *const *tensors) {
    int next = 0;
    pc_qkv_columns x = pc_qkv_columns_of(shape);
    const double *qkv = tensors[next++];
    const double *bias = shape->epilogue != PC_EPILOGUE_NONE ? tensors[next++] : NULL;
    double *query = tensors[next++], *key = tensors[next++], *value = tensors[next++];
    for (int64_t row = 0; row < shape->m; row++)
        for (int64_t i = 0; i < x.all; i++) {
            double sum = qkv[row * x.all + i] + (bias ? bias[i] : 0.0);
            if (i < x.query)
                query[row * x.query + i] = sum;
            else if (i < x.query + x.key)
                key[row * x.key + i - x.query] = sum;
            else
                value[row * x.key + i - x.query - x.key] = sum;
        }
}

void pc_qkv_merge_reference(const pc_kernel_shape *shape, double *const *tensors) {
    pc_qkv_columns x = pc_qkv_columns_of(shape);
    const double *query = tensors[0], *key = tensors[1], *value = tensors[2];
    double *qkv = tensors[3];
    for (int64_t row = 0; row < shape->m; row++) {
        for (int64_t i = 0; i < x.query; i++) *qkv++ = query[row * x.query + i];
        for (int64_t i = 0; i < x.key; i++) *qkv++ = key[row * x.key + i];
        for (int64_t i = 0; i < x.key; i++) *qkv++ = value[row * x.key + i];
    }
}
