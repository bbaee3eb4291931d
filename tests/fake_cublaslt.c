#include "tests/fake_cublaslt.h"

#include "kernels/dtype.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fake_cublaslt now;

fake_cublaslt *fake_cublaslt_now(void) {
    return &now;
}

/* ---- what descriptors hold ---- */

typedef struct operation {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int32_t turned[2];
    uint32_t epilogue;
    const void *bias;
    void *aux;
    int64_t aux_leading;
    int8_t is_fast;
    const void *scales[2]; /* of a and b */
    int32_t modes[2];
} operation;

typedef struct layout {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t leading, stride;
    int32_t batch;
} layout;

typedef struct preference {
    uint64_t workspace;
    uint32_t reduction, alignment[4];
} preference;

/* What stands in an algorithm's bytes, of which only the library knows the meaning. */
typedef struct algorithm {
    int32_t way, alignment;
} algorithm;

static cublasStatus_t fault(const char *what) {
    if (now.faults++ == 0) snprintf(now.fault, sizeof now.fault, "%s", what);
    return CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t put(void *to, size_t wanted, const void *from, size_t size) {
    if (size != wanted) return fault("the size of an attribute");
    memcpy(to, from, size);
    return CUBLAS_STATUS_SUCCESS;
}

static void *made(size_t size) {
    now.objects++;
    return calloc(1, size);
}

static cublasStatus_t gone(void *object) {
    if (!object) return fault("destroying nothing");
    free(object);
    now.objects--;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- making them ---- */

size_t cublasLtGetVersion(void) {
    return now.version ? now.version : 130002;
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_INITIALIZED ? "the library was not initialized" : "a made-up refusal";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    if (now.create == CUBLAS_STATUS_SUCCESS) *handle = made(1);
    return now.create;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    return gone(handle);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *to, cublasComputeType_t compute, cudaDataType_t scale) {
    operation *of = made(sizeof *of);
    of->compute = compute;
    of->scale = scale;
    *to = (cublasLtMatmulDesc_t)of;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t of) {
    return gone(of);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t which,
                                              const void *value, size_t size) {
    operation *of = (operation *)to;
    switch (which) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return put(&of->turned[0], 4, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return put(&of->turned[1], 4, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return put(&of->epilogue, 4, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return put(&of->bias, sizeof of->bias, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return put(&of->aux, sizeof of->aux, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return put(&of->aux_leading, 8, value, size);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
        return put(&of->is_fast, 1, value, size);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        return put(&of->scales[0], sizeof of->scales[0], value, size);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        return put(&of->scales[1], sizeof of->scales[1], value, size);
#if CUBLAS_VER_MAJOR >= 13
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
        return put(&of->modes[0], 4, value, size);
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
        return put(&of->modes[1], 4, value, size);
#endif
    default:
        return fault("an attribute of an operation that the fake does not know");
    }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *to, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
    layout *of = made(sizeof *of);
    *of = (layout){type, rows, columns, leading, 0, 1};
    *to = (cublasLtMatrixLayout_t)of;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t of) {
    return gone(of);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t to, cublasLtMatrixLayoutAttribute_t which,
                                                const void *value, size_t size) {
    layout *of = (layout *)to;
    if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return put(&of->batch, 4, value, size);
    if (which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return put(&of->stride, 8, value, size);
    return fault("an attribute of a layout that the fake does not know");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to) {
    preference *of = made(sizeof *of);
    *of = (preference){0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
    *to = (cublasLtMatmulPreference_t)of;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t of) {
    return gone(of);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void *value,
                                                    size_t size) {
    preference *of = (preference *)to;
    switch (which) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return put(&of->workspace, 8, value, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return put(&of->reduction, 4, value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return put(&of->alignment[which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], 4, value, size);
    default:
        return fault("an attribute of a preference that the fake does not know");
    }
}

/* ---- what cannot be multiplied ---- */

/* Of the matrix as it is used, after turning. */
static uint64_t used_rows(const layout *of, int32_t turned) {
    return turned == CUBLAS_OP_T ? of->columns : of->rows;
}
static uint64_t used_columns(const layout *of, int32_t turned) {
    return turned == CUBLAS_OP_T ? of->rows : of->columns;
}

static bool is_16_bit(cudaDataType type) {
    return type == CUDA_R_16BF || type == CUDA_R_16F;
}

static cublasStatus_t check_layout(const layout *of, int32_t batch) {
    if (of->rows == 0 || of->columns == 0) return fault("an empty matrix");
    if (of->leading < (int64_t)of->rows) return fault("a leading dimension below the rows");
    if (of->batch != batch) return fault("batches of different counts");
    if (batch > 1 && of->stride < (int64_t)of->columns * of->leading) return fault("a stride below the matrix");
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_epilogue(const operation *of, const layout *d) {
    bool has_aux = of->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    if (!of->epilogue) return fault("no epilogue is 1, not 0");
    if (of->epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
    if (!has_aux && of->epilogue != CUBLASLT_EPILOGUE_BIAS) return fault("an epilogue that the fake does not know");
    if (!of->bias) return fault("no bias");
    if (!has_aux) return CUBLAS_STATUS_SUCCESS;
    if (!of->aux || of->aux_leading < (int64_t)d->rows) return fault("no room for what goes into GELU");
    if (of->aux_leading % 8 != 0) return fault("a leading dimension of the auxiliary buffer that 8 does not divide");
    return CUBLAS_STATUS_SUCCESS;
}

static bool is_8_bit(cudaDataType type) {
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

/* As cuBLASLt's documentation has it of Hopper: inputs along k, sizes of 16, never e5m2 twice, 128 x 128 on one side.
 */
static cublasStatus_t check_low(const operation *of, const layout *a, const layout *b, const layout *d) {
    enum { BLOCKS = 5, VECTORS = 4 };
    if (!is_8_bit(b->type)) return fault("types that do not go together");
    if (a->type == CUDA_R_8F_E5M2 && b->type == CUDA_R_8F_E5M2) return fault("e5m2 times e5m2");
    if (of->turned[0] != CUBLAS_OP_T || of->turned[1] != CUBLAS_OP_N) return fault("8 bits that do not lie along k");
    if (a->rows % 16 || a->columns % 16 || b->columns % 16) return fault("8 bits of sizes that 16 does not divide");
    if (!is_16_bit(d->type) && d->type != CUDA_R_32F) return fault("the type of the output");
    if (of->modes[0] == BLOCKS && of->modes[1] == BLOCKS) return fault("blocks of 128 x 128 twice");
    if (of->modes[0] >= VECTORS && (of->is_fast || a->rows % 128)) return fault("blocks of 128, and not split or full");
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_types(const operation *of, const layout *a, const layout *b, const layout *d) {
    if (is_8_bit(a->type)) return check_low(of, a, b, d);
    if (!is_16_bit(a->type) || a->type != b->type) return fault("types that do not go together");
    if (d->type != a->type && d->type != CUDA_R_32F) return fault("the type of the output");
    if (of->is_fast || of->scales[0] || of->scales[1]) return fault("scales of 16 bits");
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_product(const operation *of, const layout *a, const layout *b, const layout *c,
                                    const layout *d) {
    if (of->compute != CUBLAS_COMPUTE_32F || of->scale != CUDA_R_32F) return fault("sums that are not fp32");
    if (c->type != d->type) return fault("types that do not go together");
    if (check_types(of, a, b, d) != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_INVALID_VALUE;
    if (used_columns(a, of->turned[0]) != used_rows(b, of->turned[1])) return fault("two different k");
    if (used_rows(a, of->turned[0]) != d->rows || used_columns(b, of->turned[1]) != d->columns)
        return fault("an output of another size");
    if (c->rows != d->rows || c->columns != d->columns || c->leading != d->leading) return fault("c is not as d");
    const layout *all[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        if (check_layout(all[i], d->batch) != CUBLAS_STATUS_SUCCESS) return CUBLAS_STATUS_INVALID_VALUE;
    operation with = *of;
    if (!with.epilogue) with.epilogue = CUBLASLT_EPILOGUE_DEFAULT; /* the default of an operation */
    return check_epilogue(&with, d);
}

/* ---- ways ---- */

/* Every way with an even number needs tensors that are aligned to 16 bytes, the others work with any. */
static int alignment_of_way(int way) {
    return way % 2 == 0 ? 16 : 2;
}

static bool suits(const operation *of, const preference *wants, int way) {
    if (now.seconds[way] == 0 || (now.has_no_gelu && of->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)) return false;
    if (now.has_no_bias && of->epilogue) return false;
    for (int i = 0; i < 4; i++)
        if (wants->alignment[i] < (uint32_t)alignment_of_way(way)) return false;
    uintptr_t places = (uintptr_t)of->bias | (uintptr_t)of->aux;
    return places % (uintptr_t)alignment_of_way(way) == 0;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t what,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t how, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int *count) {
    const operation *of = (const operation *)what;
    const preference *wants = (const preference *)how;
    now.asked++;
    if (!handle) return fault("no handle");
    cublasStatus_t status = check_product(of, (layout *)a, (layout *)b, (layout *)c, (layout *)d);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (wants->reduction != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) return fault("sums in the output's format");
    *count = 0;
    if (of->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS && now.gelu) return now.gelu;
    for (int way = 0; way < 8 && *count < most; way++) {
        if (!suits(of, wants, way)) continue;
        cublasLtMatmulHeuristicResult_t *result = &results[(*count)++];
        memset(result, 0, sizeof *result);
        const algorithm found = {way, alignment_of_way(way)};
        memcpy(&result->algo, &found, sizeof found);
        result->workspaceSize = 1 << 20;
        result->state = CUBLAS_STATUS_SUCCESS;
    }
    now.ways_given = *count;
    return *count ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t which, void *value,
                                                    size_t size, size_t *written) {
    algorithm of;
    memcpy(&of, algo, sizeof of);
    bool is_small = which == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID || which == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID;
    uint32_t found = which == CUBLASLT_ALGO_CONFIG_ID        ? 60 + (uint32_t)of.way
                     : which == CUBLASLT_ALGO_CONFIG_TILE_ID ? CUBLASLT_MATMUL_TILE_128x256
                                                             : (uint32_t)which;
    uint16_t small = (uint16_t)found;
    if (size != (is_small ? 2 : 4)) return fault("the size of an algorithm's attribute");
    memcpy(value, is_small ? (void *)&small : (void *)&found, size);
    *written = size;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- multiplying ---- */

typedef struct product {
    operation of;
    layout a, b, d;
    const char *from_a, *from_b;
    char *to;
    float alpha, beta;
} product;

static pc_dtype dtype_of(cudaDataType type) {
    if (type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2) return type == CUDA_R_8F_E4M3 ? PC_E4M3 : PC_E5M2;
    return type == CUDA_R_16BF ? PC_BF16 : type == CUDA_R_16F ? PC_FP16 : PC_FP32;
}

/* The scale of number (row, at) of an 8-bit operand with so many rows; places as the documentation has them. */
static double scale_at(const operation *of, int side, int64_t rows, int64_t k, int64_t row, int64_t at) {
    const float *scales = of->scales[side];
    int64_t parts = (k + 127) / 128, line = (parts + 3) / 4 * 4;
    if (!scales) return 1;
    switch (of->modes[side]) {
    case 2: { /* VEC32_UE8M0 */
        int64_t tiles = (k / 32 + 3) / 4, tile = row / 128 * tiles + at / 128;
        int64_t place = 512 * tile + 16 * (row % 32) + 4 * (row / 32 % 4) + at / 32 % 4;
        return ldexp(1, ((const uint8_t *)of->scales[side])[place] - 127);
    }
    case 4: /* VEC128_32F */
        return (double)scales[at / 128 * rows + row];
    case 5: /* BLK128x128_32F */
        return (double)scales[row / 128 * line + at / 128];
    default:
        return (double)scales[0];
    }
}

/* Element (row, column) of the matrix as it is used: columns lie behind each other. */
static double at(const layout *of, const char *data, int32_t turned, int64_t which, int64_t row, int64_t column) {
    int64_t stored_row = turned == CUBLAS_OP_T ? column : row, stored_column = turned == CUBLAS_OP_T ? row : column;
    return pc_dtype_get(dtype_of(of->type), data, which * of->stride + stored_column * of->leading + stored_row);
}

static void store(const product *p, int64_t which, int64_t row, int64_t column, double sum) {
    pc_dtype dtype = dtype_of(p->d.type);
    int64_t place = which * p->d.stride + column * p->d.leading + row;
    sum *= (double)p->alpha;
    if (p->beta != 0) sum += (double)p->beta * pc_dtype_get(dtype, p->to, place);
    if (p->of.epilogue & CUBLASLT_EPILOGUE_BIAS) sum += pc_dtype_get(dtype, p->of.bias, row);
    if (p->of.epilogue & CUBLASLT_EPILOGUE_GELU) {
        pc_dtype_set(dtype, p->of.aux, column * p->of.aux_leading + row, sum);
        sum = 0.5 * sum * (1 + tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum)));
    }
    pc_dtype_set(dtype, p->to, place, sum);
}

static void multiply(void *data) {
    const product *p = data;
    int64_t k = (int64_t)used_columns(&p->a, p->of.turned[0]);
    for (int64_t which = 0; which < p->d.batch; which++)
        for (int64_t column = 0; column < (int64_t)p->d.columns; column++)
            for (int64_t row = 0; row < (int64_t)p->d.rows; row++) {
                double sum = 0;
                for (int64_t i = 0; i < k; i++)
                    sum += at(&p->a, p->from_a, p->of.turned[0], which, row, i) *
                           scale_at(&p->of, 0, (int64_t)p->d.rows, k, row, i) *
                           at(&p->b, p->from_b, p->of.turned[1], which, i, column) *
                           scale_at(&p->of, 1, (int64_t)p->d.columns, k, column, i);
                store(p, which, row, column, sum);
            }
}

static cublasStatus_t check_way(const algorithm *way, const operation *of, const void *const *tensors,
                                const void *workspace, size_t bytes) {
    if (way->way < 0 || way->way > 7) return fault("an algorithm that is none");
    for (int i = 0; i < 4; i++)
        if (!tensors[i] || (uintptr_t)tensors[i] % (uintptr_t)way->alignment != 0)
            return fault("a tensor that is not aligned as the way needs it");
    if (((uintptr_t)of->bias | (uintptr_t)of->aux) % (uintptr_t)way->alignment != 0)
        return fault("an epilogue's tensor that is not aligned as the way needs it");
    if (!workspace || (uintptr_t)workspace % 256 != 0 || bytes < 1 << 20) return fault("the workspace");
    return now.refuses_at[way->way];
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t bytes, cudaStream_t stream) {
    const operation *of = (const operation *)what;
    const void *const tensors[] = {a, b, c, d};
    algorithm way;
    memcpy(&way, algo, sizeof way);
    if (!handle || !stream) return fault("no handle or no stream");
    cublasStatus_t status =
        check_product(of, (layout *)a_layout, (layout *)b_layout, (layout *)c_layout, (layout *)d_layout);
    if (status == CUBLAS_STATUS_SUCCESS) status = check_way(&way, of, tensors, workspace, bytes);
    if (status == CUBLAS_STATUS_SUCCESS && c != d) status = fault("c is not d");
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    product p = {*of, *(layout *)a_layout, *(layout *)b_layout, *(layout *)d_layout, a, b, d, 0, 0};
    memcpy(&p.alpha, alpha, sizeof p.alpha);
    memcpy(&p.beta, beta, sizeof p.beta);
    now.multiplied++;
    now.last_way = way.way;
    now.workspaces[now.multiplied % 8] = workspace;
    now.last_was_fast = of->is_fast != 0;
    now.enqueue(stream, multiply, &p, sizeof p, now.seconds[way.way]);
    return CUBLAS_STATUS_SUCCESS;
}
