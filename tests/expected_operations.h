/* expected_operations.h: operations of a pass as a test expects them, and whether a pass has them. */
#ifndef PC_TESTS_EXPECTED_OPERATIONS_H
#define PC_TESTS_EXPECTED_OPERATIONS_H

#include "tests/random_model.h"

typedef struct expected_operation {
    pc_operation_kind kind;
    const char *name;
    int64_t batch, m, n, k;
    int64_t bytes; /* of a collective, its size */
    bool can_overlap;
    int64_t repeat; /* 0: the part's layers */
} expected_operation;

static inline expected_operation matrix_work(pc_operation_kind kind, const char *name, int64_t batch, int64_t m,
                                             int64_t n, int64_t k, int64_t bytes) {
    return (expected_operation){kind, name, batch, m, n, k, bytes, false, 0};
}

static inline expected_operation gemm(const char *name, int64_t batch, int64_t m, int64_t n, int64_t k, int64_t bytes) {
    return matrix_work(PC_OPERATION_GEMM, name, batch, m, n, k, bytes);
}

static inline expected_operation attention(const char *name, int64_t batch, int64_t m, int64_t n, int64_t k,
                                           int64_t bytes) {
    return matrix_work(PC_OPERATION_ATTENTION, name, batch, m, n, k, bytes);
}

static inline expected_operation norm(const char *name, int64_t bytes) {
    return matrix_work(PC_OPERATION_NORM, name, 1, 0, 0, 0, bytes);
}

static inline expected_operation kernel(const char *name, int64_t bytes) {
    return matrix_work(PC_OPERATION_ELEMENTWISE, name, 1, 0, 0, 0, bytes);
}

static inline expected_operation all_reduce(const char *name, int64_t bytes, bool can_overlap) {
    return (expected_operation){PC_OPERATION_ALL_REDUCE, name, 1, 0, 0, 0, bytes, can_overlap, 0};
}

static inline expected_operation gather(const char *name, int64_t bytes, bool can_overlap) {
    return (expected_operation){PC_OPERATION_ALL_GATHER, name, 1, 0, 0, 0, bytes, can_overlap, 0};
}

static inline expected_operation scatter(const char *name, int64_t bytes, bool can_overlap) {
    return (expected_operation){PC_OPERATION_REDUCE_SCATTER, name, 1, 0, 0, 0, bytes, can_overlap, 0};
}

static inline void check_pass(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind,
                              const expected_operation *expected, int count) {
    pc_operations list;
    assert_int_equal(pc_pass_operations(model, cut, part, kind, false, &list, NULL), PC_OK);
    for (int i = 0; i < list.count && i < count; i++) {
        const pc_operation *x = &list.list[i];
        const expected_operation *e = &expected[i];
        assert_string_equal(x->name, e->name);
        assert_int_equal(x->kind, e->kind);
        assert_int_equal(x->batch, e->batch);
        assert_int_equal(x->m, e->m);
        assert_int_equal(x->n, e->n);
        assert_int_equal(x->k, e->k);
        assert_int_equal(x->kind >= PC_OPERATION_ALL_REDUCE ? x->size_bytes : x->bytes, e->bytes);
        assert_int_equal(x->can_overlap, e->can_overlap);
        assert_int_equal(x->repeat, e->repeat ? e->repeat : part->layers > 0 ? part->layers : 1);
    }
    assert_int_equal(list.count, count);
}

#define LENGTH(list) (int)(sizeof(list) / sizeof *(list))

#endif
