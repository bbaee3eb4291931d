/* A row of a table that is a kernel on a shape. */
#include "calib/import/import_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what a kernel is ---- */

typedef enum direction { DIRECTION_UNKNOWN, DIRECTION_FORWARD, DIRECTION_INPUT, DIRECTION_WEIGHT } direction;

/* BLAS's words for the layouts of the three products of a training step; or the direction itself. */
static direction direction_of(const char *cell) {
    static const struct {
        const char *name;
        direction what;
    } known[] = {{"TN", DIRECTION_FORWARD},
                 {"NN", DIRECTION_INPUT},
                 {"NT", DIRECTION_WEIGHT},
                 {"forward", DIRECTION_FORWARD},
                 {"input_gradient", DIRECTION_INPUT},
                 {"weight_gradient", DIRECTION_WEIGHT},
                 {"fwd", DIRECTION_FORWARD},
                 {"bwd", DIRECTION_INPUT},
                 {"bwd_grad_act", DIRECTION_INPUT},
                 {"bwd_grad_w", DIRECTION_WEIGHT},
                 {"backward", DIRECTION_INPUT},
                 {"F", DIRECTION_FORWARD},
                 {"B", DIRECTION_INPUT},
                 {"W", DIRECTION_WEIGHT}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (pc_import_same(cell, known[i].name)) return known[i].what;
    return DIRECTION_UNKNOWN;
}

/* The families of kernels/; `is_split`: with a direction behind the name. */
typedef struct family {
    const char *name;
    pc_operation_kind kind;
    bool is_split;
} family;

static const family families[] = {{"gemm", PC_OPERATION_GEMM, true},
                                  {"attention", PC_OPERATION_ATTENTION, true},
                                  {"grouped_gemm", PC_OPERATION_GEMM, true},
                                  {"moe_layer", PC_OPERATION_GEMM, false},
                                  {"layer_norm", PC_OPERATION_NORM, true},
                                  {"rms_norm", PC_OPERATION_NORM, true},
                                  {"softmax", PC_OPERATION_ELEMENTWISE, true},
                                  {"gelu", PC_OPERATION_ELEMENTWISE, true},
                                  {"swiglu", PC_OPERATION_ELEMENTWISE, true},
                                  {"rotary", PC_OPERATION_ELEMENTWISE, true},
                                  {"residual", PC_OPERATION_ELEMENTWISE, true},
                                  {"cross_entropy", PC_OPERATION_ELEMENTWISE, true},
                                  {"embedding", PC_OPERATION_ELEMENTWISE, true},
                                  {"add", PC_OPERATION_ELEMENTWISE, false},
                                  {"bias_gradient", PC_OPERATION_ELEMENTWISE, false},
                                  {"copy", PC_OPERATION_ELEMENTWISE, false},
                                  {"adam", PC_OPERATION_OPTIMIZER, false}};

enum { GEMM, ATTENTION, GROUPED_GEMM, MOE_LAYER }; /* the first of the families */

/* Of a table without a name for its rows, by what they have. */
static const family *family_by_columns(const pc_import_row *row) {
    if (pc_import_has(row->table, PC_COLUMN_INTER)) return &families[MOE_LAYER];
    if (pc_import_has(row->table, PC_COLUMN_GROUPS)) return &families[GROUPED_GEMM];
    bool has_heads = pc_import_has(row->table, PC_COLUMN_SEQ) && pc_import_has(row->table, PC_COLUMN_HEAD_DIM);
    return &families[has_heads ? ATTENTION : GEMM];
}

/* "gemm", "matmul", "gemm_forward" and the like; *rest: what stands behind the family's name and '_'. */
static const family *family_of(const char *name, const char **rest) {
    *rest = "";
    if (pc_import_same(name, "matmul") || pc_import_same(name, "mm")) return &families[GEMM];
    if (pc_import_same(name, "flash_attention")) return &families[ATTENTION];
    if (pc_import_same(name, "group_matmul")) return &families[GROUPED_GEMM];
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        size_t size = strlen(families[i].name);
        if (pc_import_same(name, families[i].name)) return &families[i];
        if (!families[i].is_split || strncmp(name, families[i].name, size) != 0 || name[size] != '_') continue;
        *rest = name + size + 1;
        return &families[i];
    }
    return NULL;
}

static const char *suffix_of(const family *f, direction way) {
    if (way == DIRECTION_FORWARD) return "forward";
    if (f->kind != PC_OPERATION_GEMM) return way == DIRECTION_INPUT ? "backward" : NULL;
    return way == DIRECTION_INPUT ? "input_gradient" : way == DIRECTION_WEIGHT ? "weight_gradient" : NULL;
}

static pc_code refuse_name(const pc_import_row *row, const char *name, pc_error *error) {
    if (pc_import_collective(name))
        return pc_import_refuse(&row->import->text, error,
                                "%.40s without ranks or bytes; expected columns ranks and bytes, or --ranks N", name);
    return pc_import_refuse(&row->import->text, error,
                            "the kernel '%.40s'; expected gemm, attention, grouped_gemm, moe_layer, layer_norm, "
                            "rms_norm, softmax, gelu, swiglu, rotary, residual, cross_entropy, embedding, add, "
                            "bias_gradient, copy or adam",
                            name);
}

/* What a row does not say, tables of inference do not have; tables of efficiencies have it in the file's name. */
static direction direction_by_table(const pc_import_row *row) {
    const char *path = row->import->text.path, *slash = strrchr(path, '/');
    bool is_in_name = pc_import_has(row->table, PC_COLUMN_EFFICIENCY);
    if (is_in_name && pc_import_contains(slash ? slash + 1 : path, "bwd")) return DIRECTION_INPUT;
    return DIRECTION_FORWARD;
}

static direction direction_of_row(const pc_import_row *row, const char *rest) {
    if (rest[0] != '\0') return direction_of(rest);
    if (pc_import_has(row->table, PC_COLUMN_ROLE)) return direction_of(pc_import_row_cell(row, PC_COLUMN_ROLE));
    return direction_by_table(row);
}

static pc_code name_kernel(const pc_import_row *row, pc_kernel_measurement *kernel, pc_error *error) {
    const char *rest = "", *name = pc_import_operation(row->table, row->cell);
    const family *f = name[0] ? family_of(name, &rest) : family_by_columns(row);
    if (!f) return refuse_name(row, name, error);
    kernel->kind = f->kind;
    snprintf(kernel->kernel, sizeof kernel->kernel, "%s", f->name);
    if (!f->is_split) return PC_OK;
    direction way = direction_of_row(row, rest);
    const char *suffix = suffix_of(f, way);
    if (!suffix)
        return pc_import_refuse(&row->import->text, error,
                                "the role or layout '%.40s' of %s; expected forward, or of a gemm input_gradient or "
                                "weight_gradient (TN, NN, NT), of others backward",
                                rest[0] ? rest : pc_import_row_cell(row, PC_COLUMN_ROLE), f->name);
    snprintf(kernel->kernel, sizeof kernel->kernel, "%s_%s", f->name, suffix);
    kernel->role = way == DIRECTION_FORWARD  ? PC_GEMM_FORWARD
                   : way == DIRECTION_WEIGHT ? PC_GEMM_WEIGHT_GRADIENT
                                             : PC_GEMM_INPUT_GRADIENT;
    return PC_OK;
}

/* ---- types ---- */

static pc_code read_dtype(const pc_import_row *row, pc_import_column column, char dtype[16], pc_error *error) {
    const char *cell = pc_import_row_cell(row, column);
    const pc_import_dtype *known = pc_import_dtype_of(cell);
    if (!known)
        return pc_import_refuse(&row->import->text, error,
                                "the dtype '%.40s'; expected bf16, fp16, fp32, fp8, fp8_block, mxfp8, nvfp4, int8, or "
                                "of inference int8_wo, int4_wo, sq, w4a16_mxfp4 or w4a8_mxfp4_mxfp8",
                                cell);
    snprintf(dtype, 16, "%s", known->profile);
    return PC_OK;
}

/* What comes out, where the table says so; of a weight gradient where a column is of these alone. */
static pc_code read_out_dtype(const pc_import_row *row, pc_kernel_measurement *kernel, pc_error *error) {
    bool is_weight = kernel->role == PC_GEMM_WEIGHT_GRADIENT && kernel->kind == PC_OPERATION_GEMM;
    bool has_own = is_weight && pc_import_has(row->table, PC_COLUMN_GRADIENT_DTYPE);
    pc_import_column column = has_own ? PC_COLUMN_GRADIENT_DTYPE : PC_COLUMN_OUT_DTYPE;
    if (pc_import_row_cell(row, column)[0] == '\0') return PC_OK;
    return read_dtype(row, column, kernel->out_dtype, error);
}

static pc_code read_cache(const pc_import_row *row, pc_kernel_measurement *kernel, pc_error *error) {
    const char *cell = pc_import_row_cell(row, PC_COLUMN_CACHE);
    kernel->cache = pc_import_same(cell, "hot") ? PC_CACHE_HOT : PC_CACHE_COLD;
    if (kernel->cache == PC_CACHE_HOT || cell[0] == '\0' || pc_import_same(cell, "cold")) return PC_OK;
    return pc_import_refuse(&row->import->text, error, "the cache '%.40s'; expected cold or hot", cell);
}

/* ---- the shape ---- */

typedef struct extent {
    pc_import_column column;
    const char *name;
    int64_t otherwise, *to;
} extent;

static pc_code read_extents(const pc_import_row *row, const extent *extents, size_t count, pc_error *error) {
    pc_code code = PC_OK;
    for (size_t i = 0; i < count && !code; i++)
        code = pc_import_extent(row, extents[i].column, extents[i].name, extents[i].otherwise, extents[i].to, error);
    return code;
}
#define READ_EXTENTS(row, extents, error) read_extents(row, extents, sizeof(extents) / sizeof *(extents), error)

static pc_code read_product(const pc_import_row *row, pc_kernel_measurement *x, pc_error *error) {
    const extent extents[] = {{PC_COLUMN_BATCH, "the batch", 1, &x->batch},
                              {PC_COLUMN_M, "m", 0, &x->m},
                              {PC_COLUMN_N, "n", 0, &x->n},
                              {PC_COLUMN_K, "k", 0, &x->k}};
    pc_code code = READ_EXTENTS(row, extents, error);
    if (code || !pc_import_has(row->table, PC_COLUMN_GROUPS) || strncmp(x->kernel, "grouped", 7) != 0) return code;
    return pc_import_extent(row, PC_COLUMN_GROUPS, "groups", 0, &x->batch, error);
}

/* A window of 0, and one that sees all keys, is none. */
static pc_code read_window(const pc_import_row *row, pc_kernel_measurement *x, pc_error *error) {
    const char *cell = pc_import_row_cell(row, PC_COLUMN_WINDOW);
    if (cell[0] == '\0' || strcmp(cell, "0") == 0) return PC_OK;
    pc_code code = pc_import_extent(row, PC_COLUMN_WINDOW, "the window", 0, &x->window, error);
    if (!code && x->window >= x->n) x->window = 0;
    return code;
}

/* A table of sequences is of causal self-attention, unless it says so of neither. */
static pc_code read_sequences(const pc_import_row *row, pc_kernel_measurement *x, pc_error *error) {
    const extent extents[] = {{PC_COLUMN_SEQ, "the sequence", 0, &x->m}, {PC_COLUMN_HEAD_DIM, "head_dim", 0, &x->k}};
    pc_code code = READ_EXTENTS(row, extents, error);
    x->n = x->m;
    if (!pc_import_has(row->table, PC_COLUMN_CAUSAL)) x->is_causal = true;
    return code;
}

/* A table's batch is of sequences where it has heads, an operation's of heads. */
static pc_code read_attention(const pc_import_row *row, pc_kernel_measurement *x, pc_error *error) {
    bool has_sequences = pc_import_row_cell(row, PC_COLUMN_SEQ)[0] != '\0';
    pc_code code = has_sequences ? read_sequences(row, x, error) : read_product(row, x, error);
    if (!code) code = pc_import_extent(row, PC_COLUMN_BATCH, "the batch", 1, &x->batch, error);
    if (!code) code = pc_import_extent(row, PC_COLUMN_HEADS, "heads", 1, &x->heads, error);
    if (!code) code = pc_import_extent(row, PC_COLUMN_KV_HEADS, "kv_heads", x->heads, &x->kv_heads, error);
    if (!code) code = read_window(row, x, error);
    if (code) return code;
    if (x->kv_heads > x->heads)
        return pc_import_refuse(&row->import->text, error, "%lld kv_heads of %lld heads; expected no more",
                                (long long)x->kv_heads, (long long)x->heads);
    if (x->batch > (INT64_C(1) << 60) / x->heads)
        return pc_import_refuse(&row->import->text, error, "a batch of more than 2^60 heads; expected fewer");
    if (pc_import_has(row->table, PC_COLUMN_HEADS)) x->batch *= x->heads;
    return PC_OK;
}

static pc_code read_experts(const pc_import_row *row, pc_kernel_measurement *x, pc_error *error) {
    const extent extents[] = {
        {PC_COLUMN_TOKENS, "tokens", 0, &x->m},         {PC_COLUMN_INTER, "inter", 0, &x->n},
        {PC_COLUMN_HIDDEN, "hidden", 0, &x->k},         {PC_COLUMN_TOPK, "topk", 0, &x->topk},
        {PC_COLUMN_EXPERTS, "experts", 0, &x->experts}, {PC_COLUMN_MOE_TP, "moe_tp", 1, &x->moe_tp},
        {PC_COLUMN_MOE_EP, "moe_ep", 1, &x->moe_ep}};
    const char *kernel = pc_import_row_cell(row, PC_COLUMN_KERNEL);
    const char *distribution = pc_import_row_cell(row, PC_COLUMN_DISTRIBUTION);
    pc_code code = READ_EXTENTS(row, extents, error);
    if (code) return code;
    snprintf(x->variant, sizeof x->variant, "%.28s%s%.18s", kernel, kernel[0] && distribution[0] ? " " : "",
             distribution);
    if (x->topk <= x->experts) return PC_OK;
    return pc_import_refuse(&row->import->text, error, "topk %lld of %lld experts; expected no more",
                            (long long)x->topk, (long long)x->experts);
}

/* Heads of another size for values, and tensors that do not lie side by side, are other kernels than most. */
static void name_variant(const pc_import_row *row, int64_t v_head_dim, pc_kernel_measurement *x) {
    bool is_apart = pc_import_same(pc_import_row_cell(row, PC_COLUMN_CONTIGUOUS), "false");
    char values[24] = "";
    if (v_head_dim != x->k) snprintf(values, sizeof values, "v%lld", (long long)v_head_dim);
    snprintf(x->variant, sizeof x->variant, "%s%s%s", values, values[0] && is_apart ? " " : "",
             is_apart ? "not contiguous" : "");
}

static pc_code read_work(const pc_import_row *row, pc_kernel_measurement *x, pc_error *error) {
    bool is_attention = x->kind == PC_OPERATION_ATTENTION, is_layer = strcmp(x->kernel, "moe_layer") == 0;
    int64_t v_head_dim = 0;
    x->batch = 1;
    if (!is_attention && x->kind != PC_OPERATION_GEMM)
        return pc_import_extent(row, PC_COLUMN_BYTES, "the bytes moved", 0, &x->bytes, error);
    pc_code code = is_layer       ? read_experts(row, x, error)
                   : is_attention ? read_attention(row, x, error)
                                  : read_product(row, x, error);
    if (!code && is_attention)
        code = pc_import_extent(row, PC_COLUMN_V_HEAD_DIM, "v_head_dim", x->k, &v_head_dim, error);
    if (!code && is_attention) name_variant(row, v_head_dim, x);
    if (!code && strncmp(x->kernel, "grouped", 7) == 0) x->experts = x->batch;
    return code ? code : pc_import_count_work(row, x, v_head_dim, error);
}

/* ---- the row ---- */

static pc_code take(const pc_import_row *row, pc_kernel_measurement *x, double seconds, pc_error *error) {
    pc_import *import = row->import;
    if (!(seconds > 0.0)) return pc_import_leave_out(import, PC_IMPORT_NO_TIME), PC_OK;
    x->seconds = (pc_statistics){1, seconds, seconds, seconds, seconds, seconds, seconds};
    if (pc_import_is_too_fast(import, x)) return pc_import_leave_out(import, PC_IMPORT_TOO_FAST), PC_OK;
    pc_code code = pc_profile_add_kernel(import->into, x, NULL, error);
    return code ? code : pc_import_note_taken(import, false, error);
}

pc_code pc_import_kernel_row(const pc_import_row *row, pc_error *error) {
    pc_kernel_measurement x = {.first_sample = -1, .check_error = NAN, .registers = -1};
    double seconds;
    pc_code code = name_kernel(row, &x, error);
    if (!code) code = read_dtype(row, PC_COLUMN_DTYPE, x.dtype, error);
    if (!code) code = read_out_dtype(row, &x, error);
    if (!code) code = read_cache(row, &x, error);
    if (!code) code = pc_import_switch(row, PC_COLUMN_CAUSAL, "causal", &x.is_causal, error);
    if (!code) code = pc_import_switch(row, PC_COLUMN_ACCUMULATE, "accumulate", &x.accumulates, error);
    if (!code) code = read_work(row, &x, error);
    if (!code) code = pc_import_seconds(row, PC_COLUMN_TIME, (double)x.flops, &seconds, error);
    if (code) return code;
    pc_import_source(row, x.library, x.library_version, x.site);
    return take(row, &x, seconds, error);
}
