/* Attention as its formula stands, in double precision: all scores of a row, softmax over those that are seen. */
#include "kernels/attention.h"

#include <math.h>
#include <string.h>

/* One query's place, and what it needs of its sequence. */
typedef struct row {
    const pc_kernel_shape *shape;
    int64_t sequence, query, head, kv_head;
    int64_t keys; /* it sees the first so many */
} row;

static row row_at(const pc_kernel_shape *s, int64_t sequence, int64_t query, int64_t head) {
    int64_t keys = s->is_causal ? query + s->n - s->m + 1 : s->n;
    return (row){s, sequence, query, head, head / (s->heads / s->kv_heads), keys < 0 ? 0 : keys};
}

static int64_t query_place(const row *r) {
    const pc_kernel_shape *s = r->shape;
    return ((r->sequence * s->m + r->query) * s->heads + r->head) * s->k;
}

static int64_t key_place(const row *r, int64_t key) {
    const pc_kernel_shape *s = r->shape;
    return ((r->sequence * s->n + key) * s->kv_heads + r->kv_head) * s->k;
}

static int64_t row_place(const row *r) {
    const pc_kernel_shape *s = r->shape;
    return (r->sequence * s->heads + r->head) * s->m + r->query;
}

static double dot(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *to, double factor, const double *from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += factor * from[i];
}

static double score(const row *r, double *const *tensors, int64_t key) {
    const double *query = tensors[PC_ATTENTION_QUERY] + query_place(r);
    const double *keys = tensors[PC_ATTENTION_KEY] + key_place(r, key);
    return dot(query, keys, r->shape->k) / sqrt((double)r->shape->k);
}

/* The largest score goes out of the sum first, for the range of exp alone. */
static double log_sum(const row *r, double *const *tensors) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < r->keys; j++) largest = fmax(largest, score(r, tensors, j));
    for (int64_t j = 0; j < r->keys; j++) sum += exp(score(r, tensors, j) - largest);
    return r->keys > 0 ? largest + log(sum) : -INFINITY;
}

static void forward_row(const row *r, double *const *tensors) {
    int64_t k = r->shape->k;
    double *out = tensors[PC_ATTENTION_OUT] + query_place(r);
    double sum = tensors[PC_ATTENTION_LOG_SUM][row_place(r)] = log_sum(r, tensors);
    memset(out, 0, (size_t)k * sizeof *out);
    for (int64_t j = 0; j < r->keys; j++)
        add_scaled(out, exp(score(r, tensors, j) - sum), tensors[PC_ATTENTION_VALUE] + key_place(r, j), k);
}

/* With y = P V, P = softmax(S): dV = P^T dy, dP = dy V^T, dS = P * (dP - rowsum(P * dP)), and that sum is dy * y. */
static void backward_row(const row *r, double *const *tensors) {
    int64_t k = r->shape->k, query = query_place(r);
    const double *out_gradient = tensors[PC_ATTENTION_OUT_GRADIENT] + query;
    double delta = dot(out_gradient, tensors[PC_ATTENTION_OUT] + query, k);
    for (int64_t j = 0; j < r->keys; j++) {
        int64_t key = key_place(r, j);
        double probability = exp(score(r, tensors, j) - tensors[PC_ATTENTION_LOG_SUM][row_place(r)]);
        double gradient = dot(out_gradient, tensors[PC_ATTENTION_VALUE] + key, k);
        double score_gradient = probability * (gradient - delta) / sqrt((double)k);
        add_scaled(tensors[PC_ATTENTION_VALUE_GRADIENT] + key, probability, out_gradient, k);
        add_scaled(tensors[PC_ATTENTION_QUERY_GRADIENT] + query, score_gradient, tensors[PC_ATTENTION_KEY] + key, k);
        add_scaled(tensors[PC_ATTENTION_KEY_GRADIENT] + key, score_gradient, tensors[PC_ATTENTION_QUERY] + query, k);
    }
}

static void for_all_rows(const pc_kernel_shape *s, double *const *tensors,
                         void (*visit)(const row *, double *const *)) {
    for (int64_t sequence = 0; sequence < s->batch; sequence++)
        for (int64_t query = 0; query < s->m; query++)
            for (int64_t head = 0; head < s->heads; head++) {
                row r = row_at(s, sequence, query, head);
                visit(&r, tensors);
            }
}

void pc_attention_forward_reference(const pc_kernel_shape *shape, double *const *tensors) {
    for_all_rows(shape, tensors, forward_row);
}

void pc_attention_backward_reference(const pc_kernel_shape *s, double *const *tensors) {
    size_t queries = (size_t)(s->batch * s->m * s->heads * s->k), keys = (size_t)(s->batch * s->n * s->kv_heads * s->k);
    memset(tensors[PC_ATTENTION_QUERY_GRADIENT], 0, queries * sizeof(double));
    memset(tensors[PC_ATTENTION_KEY_GRADIENT], 0, keys * sizeof(double));
    memset(tensors[PC_ATTENTION_VALUE_GRADIENT], 0, keys * sizeof(double));
    for_all_rows(s, tensors, backward_row);
}
