#include "kernels/cuda/blas.h"

#include "engine/alloc.h"
#include "kernels/cuda/gemm_choices.h"
#include "kernels/cuda/loaded_library.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/side_streams.h"

#include <stdio.h>
#include <string.h>

enum { WORKSPACE_BYTES = 64 << 20, MOST_WAYS = 16 };

/* ---- the library ---- */

typedef struct calls {
    __typeof__(cublasLtCreate) *create;
    __typeof__(cublasLtDestroy) *destroy;
    __typeof__(cublasLtGetVersion) *version;
    __typeof__(cublasLtGetStatusString) *words;
    __typeof__(cublasLtMatmulDescCreate) *operation_create;
    __typeof__(cublasLtMatmulDescDestroy) *operation_destroy;
    __typeof__(cublasLtMatmulDescSetAttribute) *operation_set;
    __typeof__(cublasLtMatrixLayoutCreate) *layout_create;
    __typeof__(cublasLtMatrixLayoutDestroy) *layout_destroy;
    __typeof__(cublasLtMatrixLayoutSetAttribute) *layout_set;
    __typeof__(cublasLtMatmulPreferenceCreate) *preference_create;
    __typeof__(cublasLtMatmulPreferenceDestroy) *preference_destroy;
    __typeof__(cublasLtMatmulPreferenceSetAttribute) *preference_set;
    __typeof__(cublasLtMatmulAlgoGetHeuristic) *heuristic;
    __typeof__(cublasLtMatmulAlgoConfigGetAttribute) *algo_get;
    __typeof__(cublasLtMatmul) *multiply;
} calls;

struct pc_blas {
    void *library;
    calls call;
    cublasLtHandle_t handle;
    void *workspace;       /* 256-byte aligned, as cudaMalloc gives it */
    pc_side_streams *side; /* NULL before they are asked for */
    pc_gemm_choices choices;
};

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

/* The one of the headers first; what is used here has been the same since cuBLAS 11. */
static pc_code open_library(pc_blas *blas, pc_error *error) {
    static const char *const names[] = {("libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)), "libcublasLt.so.13",
                                        "libcublasLt.so.12", "libcublasLt.so", NULL};
    calls *call = &blas->call;
    const pc_shared_library_entry entries[] = {
        {"cublasLtCreate", &call->create, false},
        {"cublasLtDestroy", &call->destroy, false},
        {"cublasLtGetVersion", &call->version, false},
        {"cublasLtGetStatusString", &call->words, true},
        {"cublasLtMatmulDescCreate", &call->operation_create, false},
        {"cublasLtMatmulDescDestroy", &call->operation_destroy, false},
        {"cublasLtMatmulDescSetAttribute", &call->operation_set, false},
        {"cublasLtMatrixLayoutCreate", &call->layout_create, false},
        {"cublasLtMatrixLayoutDestroy", &call->layout_destroy, false},
        {"cublasLtMatrixLayoutSetAttribute", &call->layout_set, false},
        {"cublasLtMatmulPreferenceCreate", &call->preference_create, false},
        {"cublasLtMatmulPreferenceDestroy", &call->preference_destroy, false},
        {"cublasLtMatmulPreferenceSetAttribute", &call->preference_set, false},
        {"cublasLtMatmulAlgoGetHeuristic", &call->heuristic, false},
        {"cublasLtMatmulAlgoConfigGetAttribute", &call->algo_get, false},
        {"cublasLtMatmul", &call->multiply, false},
    };
    return pc_shared_library_open("cuBLASLt", "cuBLAS where the loader looks (LD_LIBRARY_PATH)", names, entries,
                                  sizeof entries / sizeof *entries, &blas->library, error);
}

/* What the library refuses of a product is the shape's fault: a calibration leaves it out and goes on. */
static pc_code check(const pc_blas *blas, cublasStatus_t status, const char *where, pc_error *error) {
    if (status == CUBLAS_STATUS_SUCCESS) return PC_OK;
    bool is_of_shape = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
    pc_code code = status == CUBLAS_STATUS_ALLOC_FAILED ? PC_ERROR_NO_MEMORY
                   : is_of_shape                        ? PC_ERROR_INPUT
                                                        : PC_ERROR_IO;
    return pc_error_set(error, code, "%s: %s (status %d)", where,
                        blas->call.words ? blas->call.words(status) : "cuBLASLt refuses", (int)status);
}

pc_code pc_blas_open(pc_blas **blas, pc_error *error) {
    pc_blas *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = open_library(made, error);
    if (code == PC_OK) code = check(made, made->call.create(&made->handle), "cublasLtCreate", error);
    if (code == PC_OK)
        code =
            pc_cuda_check(cudaMalloc(&made->workspace, WORKSPACE_BYTES), "cudaMalloc of cuBLASLt's workspace", error);
    if (code != PC_OK) {
        pc_blas_close(made);
        return code;
    }
    *blas = made;
    return PC_OK;
}

void pc_blas_close(pc_blas *blas) {
    if (!blas) return;
    pc_gemm_choices_free(blas, &blas->choices);
    pc_side_streams_free(blas->side);
    if (blas->workspace) (void)cudaFree(blas->workspace);
    if (blas->handle) (void)blas->call.destroy(blas->handle);
    pc_shared_library_close(blas->library);
    pc_free(blas);
}

/* 13.0.2 says 130002. */
void pc_blas_version(const pc_blas *blas, char *text, int size) {
    size_t version = blas->call.version();
    snprintf(text, (size_t)size, "%zu.%zu.%zu", version / 10000, version % 10000 / 100, version % 100);
}

pc_gemm_choices *pc_blas_choices(pc_blas *blas) {
    return &blas->choices;
}

pc_code pc_blas_side_open(pc_blas *blas, pc_error *error) {
    return blas->side ? PC_OK : pc_side_streams_make(WORKSPACE_BYTES, &blas->side, error);
}

const pc_side_streams *pc_blas_side(const pc_blas *blas) {
    return blas->side;
}

/* ---- a product in the library's words ---- */

static cudaDataType_t type_of(pc_dtype dtype) {
    switch (dtype) {
    case PC_BF16:
        return CUDA_R_16BF;
    case PC_FP16:
        return CUDA_R_16F;
    case PC_E4M3:
        return CUDA_R_8F_E4M3;
    case PC_E5M2:
        return CUDA_R_8F_E5M2;
    default:
        return CUDA_R_32F;
    }
}

/* What goes in and comes out, in the library's order, and what is stored the other way round than it is needed. */
typedef struct operands {
    pc_dtype first, second, result;
    bool is_first_turned, is_second_turned;
} operands;

static operands operands_of(pc_kernel_role role, const pc_kernel_shape *s) {
    operands of = {s->dtype, s->dtype, s->dtype, role == PC_KERNEL_FORWARD, role == PC_KERNEL_WEIGHT_GRADIENT};
    if (role == PC_KERNEL_WEIGHT_GRADIENT) of.result = PC_FP32;
    if (s->scaling == PC_LOW_NONE) return of;
    of.first = pc_gemm_low_dtype(role, s, PC_GEMM_B);
    of.second = pc_gemm_low_dtype(role, s, PC_GEMM_A);
    of.is_first_turned = true;
    of.is_second_turned = false;
    return of;
}

static pc_code set_operation(pc_blas *blas, pc_blas_setup *setup, cublasLtMatmulDescAttributes_t which,
                             const void *value, size_t size, pc_error *error) {
    return check(blas, blas->call.operation_set(setup->operation, which, value, size), "cublasLtMatmulDescSetAttribute",
                 error);
}

/* A stored column-major matrix without gaps, `batch` of them one behind the other. */
static pc_code make_layout(pc_blas *blas, pc_dtype dtype, int64_t rows, int64_t columns, int64_t batch,
                           cublasLtMatrixLayout_t *layout, pc_error *error) {
    const calls *call = &blas->call;
    pc_code code = check(blas, call->layout_create(layout, type_of(dtype), (uint64_t)rows, (uint64_t)columns, rows),
                         "cublasLtMatrixLayoutCreate", error);
    if (code != PC_OK || batch == 1) return code;
    int32_t count = (int32_t)batch;
    int64_t stride = rows * columns;
    code = check(blas, call->layout_set(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                 "cublasLtMatrixLayoutSetAttribute", error);
    if (code != PC_OK) return code;
    return check(blas, call->layout_set(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
                 "cublasLtMatrixLayoutSetAttribute", error);
}

static pc_code make_layouts(pc_blas *blas, pc_kernel_role role, const pc_kernel_shape *s, pc_blas_setup *setup,
                            pc_error *error) {
    operands of = operands_of(role, s);
    pc_code code = make_layout(blas, of.first, of.is_first_turned ? s->k : s->n, of.is_first_turned ? s->n : s->k,
                               s->batch, &setup->first, error);
    if (code == PC_OK)
        code = make_layout(blas, of.second, of.is_second_turned ? s->m : s->k, of.is_second_turned ? s->k : s->m,
                           s->batch, &setup->second, error);
    if (code == PC_OK) code = make_layout(blas, of.result, s->n, s->m, s->batch, &setup->result, error);
    return code;
}

static pc_code make_operation(pc_blas *blas, pc_kernel_role role, const pc_kernel_shape *shape, pc_blas_setup *setup,
                              pc_error *error) {
    operands of = operands_of(role, shape);
    int32_t first = of.is_first_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    int32_t second = of.is_second_turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    pc_code code = check(blas, blas->call.operation_create(&setup->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                         "cublasLtMatmulDescCreate", error);
    if (code == PC_OK) code = set_operation(blas, setup, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first, error);
    if (code == PC_OK) code = set_operation(blas, setup, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second, error);
    return code;
}

/* Headers older than cuBLAS 12.9 do not know scales of blocks: pc_blas_can says so beforehand. */
#define HEADERS (CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH)
#if HEADERS >= 120900
enum { KNOWS_BLOCKS = 1 };

static pc_code make_scale_mode(pc_blas *blas, pc_blas_setup *setup, cublasLtMatmulDescAttributes_t which,
                               pc_scale_layout layout, pc_error *error) {
    static const int32_t modes[] = {[PC_SCALE_ONE] = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F,
                                    [PC_SCALE_ROW_128] = CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F,
                                    [PC_SCALE_BLOCK_128] = CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F,
                                    [PC_SCALE_ROW_32] = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0};
    if (layout == PC_SCALE_ONE) return PC_OK;
    return set_operation(blas, setup, which, &modes[layout], sizeof modes[layout], error);
}

static pc_code make_scale_modes(pc_blas *blas, pc_kernel_role role, const pc_kernel_shape *s, pc_blas_setup *setup,
                                pc_error *error) {
    pc_scale_layout first = pc_gemm_low_layout(role, s, PC_GEMM_B), second = pc_gemm_low_layout(role, s, PC_GEMM_A);
    pc_code code = make_scale_mode(blas, setup, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, first, error);
    return code ? code : make_scale_mode(blas, setup, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, second, error);
}
#else
enum { KNOWS_BLOCKS = 0 };

static pc_code make_scale_modes(pc_blas *blas, pc_kernel_role role, const pc_kernel_shape *s, pc_blas_setup *setup,
                                pc_error *error) {
    (void)blas, (void)role, (void)setup;
    if (s->scaling == PC_LOW_TENSOR) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: not in these headers; expected cuBLAS 12.9 or later",
                        pc_low_name(s->scaling));
}
#endif

static pc_code make_scales(pc_blas *blas, pc_kernel_role role, const pc_kernel_shape *s, pc_blas_setup *setup,
                           pc_error *error) {
    if (!setup->has_scales) return PC_OK;
    int8_t is_fast = pc_gemm_low_is_fast(role, s) ? 1 : 0;
    pc_code code = set_operation(blas, setup, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &is_fast, sizeof is_fast, error);
    return code ? code : make_scale_modes(blas, role, s, setup, error);
}

/* What cuBLAS's documentation says of cublasLtMatmul's 8-bit kernels: Ada and Hopper have one scale a tensor, Hopper
 * alone those of 128, and what came later those of 32. */
pc_code pc_blas_can(const pc_blas *blas, pc_low_scaling scaling, int major, int minor, pc_error *error) {
    static const struct {
        int least, most, library; /* compute capability, ten times; version of the library */
        const char *words;
    } needs[PC_LOW_SCALINGS] = {
        [PC_LOW_TENSOR] = {89, 1000, 110800, "8.9 or later, and cuBLAS 11.8"},
        [PC_LOW_BLOCK] = {90, 90, 120900, "9.0, and cuBLAS 12.9"},
        [PC_LOW_MX] = {100, 1000, 120900, "10.0 or later, and cuBLAS 12.9"},
    };
    int capability = 10 * major + minor;
    bool has_blocks = KNOWS_BLOCKS || scaling == PC_LOW_TENSOR;
    if (capability >= needs[scaling].least && capability <= needs[scaling].most && has_blocks &&
        blas->call.version() >= (size_t)needs[scaling].library)
        return PC_OK;
    char version[32];
    pc_blas_version(blas, version, sizeof version);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "products in %s: compute capability %d.%d, cuBLAS %s, headers %d.%d; expected %s or later",
                        pc_low_name(scaling), major, minor, version, CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR,
                        needs[scaling].words);
}

/* pre lies as c does: n rows of the column-major result, which the library wants to be a multiple of 8. */
static pc_code make_epilogue(pc_blas *blas, const pc_kernel_shape *s, pc_blas_setup *setup, pc_error *error) {
    if (!setup->has_bias) return PC_OK;
    uint32_t epilogue = setup->has_pre ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_BIAS;
    pc_code code = set_operation(blas, setup, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue, error);
    int64_t leading = s->n;
    if (code == PC_OK && setup->has_pre)
        code = set_operation(blas, setup, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &leading, sizeof leading, error);
    return code;
}

pc_code pc_blas_setup_make(pc_blas *blas, pc_kernel_role role, const pc_kernel_shape *shape, pc_blas_setup *setup,
                           pc_error *error) {
    memset(setup, 0, sizeof *setup);
    setup->accumulates = shape->accumulates;
    setup->has_bias = shape->epilogue != PC_EPILOGUE_NONE;
    setup->has_pre = shape->epilogue == PC_EPILOGUE_BIAS_GELU;
    setup->has_scales = shape->scaling != PC_LOW_NONE;
    pc_code code = make_operation(blas, role, shape, setup, error);
    if (code == PC_OK) code = make_scales(blas, role, shape, setup, error);
    if (code == PC_OK) code = make_epilogue(blas, shape, setup, error);
    if (code == PC_OK) code = make_layouts(blas, role, shape, setup, error);
    if (code != PC_OK) pc_blas_setup_free(blas, setup);
    return code;
}

void pc_blas_setup_free(pc_blas *blas, pc_blas_setup *setup) {
    cublasLtMatrixLayout_t layouts[] = {setup->first, setup->second, setup->result};
    for (int i = 0; i < 3; i++)
        if (layouts[i]) (void)blas->call.layout_destroy(layouts[i]);
    if (setup->operation) (void)blas->call.operation_destroy(setup->operation);
    memset(setup, 0, sizeof *setup);
}

static pc_code set_scales(pc_blas *blas, pc_blas_setup *setup, void *const *tensors, pc_error *error) {
    pc_code code = set_operation(blas, setup, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &tensors[PC_GEMM_B_SCALE],
                                 sizeof(void *), error);
    if (code != PC_OK) return code;
    return set_operation(blas, setup, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &tensors[PC_GEMM_A_SCALE], sizeof(void *),
                         error);
}

/* Where the epilogue finds bias and pre: also its choice of a way looks at how they are aligned. And the scales. */
static pc_code set_addresses(pc_blas *blas, pc_blas_setup *setup, void *const *tensors, pc_error *error) {
    pc_code code = setup->has_scales ? set_scales(blas, setup, tensors, error) : PC_OK;
    if (code != PC_OK) return code;
    if (setup->has_bias)
        code = set_operation(blas, setup, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &tensors[PC_GEMM_BIAS], sizeof(void *),
                             error);
    if (code == PC_OK && setup->has_pre)
        code = set_operation(blas, setup, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &tensors[PC_GEMM_PRE],
                             sizeof(void *), error);
    return code;
}

/* ---- ways to compute it ---- */

uint32_t pc_blas_alignment(const void *address) {
    uintptr_t place = (uintptr_t)address | 256;
    return (uint32_t)(place & -place);
}

/* Sums of a split k in fp32 and in a fixed order: not in the output's format, which would round them one by one. */
static pc_code set_preference(pc_blas *blas, cublasLtMatmulPreference_t preference, void *const *tensors,
                              pc_error *error) {
    uint64_t workspace = WORKSPACE_BYTES;
    uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint32_t first = pc_blas_alignment(tensors[PC_GEMM_B]), second = pc_blas_alignment(tensors[PC_GEMM_A]);
    uint32_t result = pc_blas_alignment(tensors[PC_GEMM_C]);
    const struct {
        cublasLtMatmulPreferenceAttributes_t which;
        const void *value;
        size_t size;
    } settings[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &first, sizeof first},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &second, sizeof second},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &result, sizeof result},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &result, sizeof result},
    };
    pc_code code = PC_OK;
    for (size_t i = 0; i < sizeof settings / sizeof *settings && code == PC_OK; i++)
        code =
            check(blas, blas->call.preference_set(preference, settings[i].which, settings[i].value, settings[i].size),
                  "cublasLtMatmulPreferenceSetAttribute", error);
    return code;
}

static pc_code ask(pc_blas *blas, pc_blas_setup *setup, cublasLtMatmulPreference_t preference, int most,
                   pc_blas_algorithm *ways, int *count, pc_error *error) {
    cublasLtMatmulHeuristicResult_t found[MOST_WAYS];
    int answers = 0;
    cublasStatus_t status =
        blas->call.heuristic(blas->handle, setup->operation, setup->first, setup->second, setup->result, setup->result,
                             preference, most < MOST_WAYS ? most : MOST_WAYS, found, &answers);
    *count = 0;
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return PC_OK;
    pc_code code = check(blas, status, "cublasLtMatmulAlgoGetHeuristic", error);
    for (int i = 0; i < answers && code == PC_OK; i++)
        if (found[i].state == CUBLAS_STATUS_SUCCESS && found[i].workspaceSize <= WORKSPACE_BYTES)
            ways[(*count)++] = (pc_blas_algorithm){found[i].algo, found[i].workspaceSize};
    return code;
}

pc_code pc_blas_setup_ways(pc_blas *blas, pc_blas_setup *setup, void *const *tensors, int most, pc_blas_algorithm *ways,
                           int *count, pc_error *error) {
    cublasLtMatmulPreference_t preference;
    pc_code code = check(blas, blas->call.preference_create(&preference), "cublasLtMatmulPreferenceCreate", error);
    if (code != PC_OK) return code;
    code = set_addresses(blas, setup, tensors, error);
    if (code == PC_OK) code = set_preference(blas, preference, tensors, error);
    if (code == PC_OK) code = ask(blas, setup, preference, most, ways, count, error);
    (void)blas->call.preference_destroy(preference);
    return code;
}

pc_code pc_blas_setup_enqueue(pc_blas *blas, pc_blas_setup *setup, const pc_blas_algorithm *way, void *const *tensors,
                              cudaStream_t stream, void *workspace, pc_error *error) {
    pc_code code = set_addresses(blas, setup, tensors, error);
    if (code != PC_OK) return code;
    const float alpha = 1, beta = setup->accumulates ? 1 : 0; /* of the scale type, on the host */
    void *c = tensors[PC_GEMM_C];
    return check(blas,
                 blas->call.multiply(blas->handle, setup->operation, &alpha, tensors[PC_GEMM_B], setup->first,
                                     tensors[PC_GEMM_A], setup->second, &beta, c, setup->result, c, setup->result,
                                     &way->algo, workspace ? workspace : blas->workspace, WORKSPACE_BYTES, stream),
                 "cublasLtMatmul", error);
}

/* ---- names ---- */

static uint32_t config(const pc_blas *blas, const pc_blas_algorithm *way, cublasLtMatmulAlgoConfigAttributes_t which,
                       size_t size) {
    uint32_t value = 0;
    uint16_t small = 0;
    size_t written;
    void *to = size == sizeof small ? (void *)&small : (void *)&value;
    if (blas->call.algo_get(&way->algo, which, to, size, &written) != CUBLAS_STATUS_SUCCESS) return 0;
    return size == sizeof small ? small : value;
}

/* Of the column-major result: n x m in our words. Those that training meets; others keep their number. */
static void write_tile(uint32_t tile, char *text, size_t size) {
    static const struct {
        uint32_t tile;
        int rows, columns;
    } known[] = {
        {CUBLASLT_MATMUL_TILE_64x64, 64, 64},     {CUBLASLT_MATMUL_TILE_64x128, 64, 128},
        {CUBLASLT_MATMUL_TILE_128x64, 128, 64},   {CUBLASLT_MATMUL_TILE_64x256, 64, 256},
        {CUBLASLT_MATMUL_TILE_128x128, 128, 128}, {CUBLASLT_MATMUL_TILE_256x64, 256, 64},
        {CUBLASLT_MATMUL_TILE_128x256, 128, 256}, {CUBLASLT_MATMUL_TILE_256x128, 256, 128},
        {CUBLASLT_MATMUL_TILE_64x96, 64, 96},     {CUBLASLT_MATMUL_TILE_96x64, 96, 64},
        {CUBLASLT_MATMUL_TILE_96x128, 96, 128},   {CUBLASLT_MATMUL_TILE_128x160, 128, 160},
        {CUBLASLT_MATMUL_TILE_160x128, 160, 128}, {CUBLASLT_MATMUL_TILE_192x128, 192, 128},
        {CUBLASLT_MATMUL_TILE_128x192, 128, 192}, {CUBLASLT_MATMUL_TILE_128x96, 128, 96},
        {CUBLASLT_MATMUL_TILE_32x128, 32, 128},   {CUBLASLT_MATMUL_TILE_128x32, 128, 32},
    };
    snprintf(text, size, "%u", tile);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].tile == tile) snprintf(text, size, "%dx%d", known[i].rows, known[i].columns);
}

void pc_blas_way_name(pc_blas *blas, const pc_blas_algorithm *way, char *text, int size) {
    char tile[16];
    write_tile(config(blas, way, CUBLASLT_ALGO_CONFIG_TILE_ID, 4), tile, sizeof tile);
    snprintf(text, (size_t)size, "cublasLt algo %u, tile %s, stages %u, split %u, swizzle %u, cluster %u",
             config(blas, way, CUBLASLT_ALGO_CONFIG_ID, 4), tile, config(blas, way, CUBLASLT_ALGO_CONFIG_STAGES_ID, 4),
             config(blas, way, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4),
             config(blas, way, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4),
             config(blas, way, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2));
}
