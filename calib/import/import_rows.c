/* A row of a table: a kernel on a shape, or a message of a size. */
#include "calib/import/import_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- cells ---- */

static bool is_empty(const char *cell) {
    return cell[0] == '\0';
}

/* An extent above zero; `otherwise` where the cell is empty, or 0 to insist on one. */
static pc_code read_extent(const pc_import *import, const char *name, const char *cell, int64_t otherwise,
                           int64_t *extent, pc_error *error) {
    static const int64_t most = INT64_C(1) << 48;
    *extent = otherwise;
    if (is_empty(cell) && otherwise > 0) return PC_OK;
    if (pc_import_integer(cell, extent) && *extent <= most) return PC_OK;
    return pc_import_refuse(&import->text, error, "%s is '%.40s'; expected a whole number above zero", name, cell);
}

static pc_code read_time(const pc_import *import, const char *cell, double unit_s, double *seconds, pc_error *error) {
    if (pc_import_time(cell, unit_s, seconds)) return PC_OK;
    return pc_import_refuse(&import->text, error, "a time of '%.40s'; expected " PC_IMPORT_TIME, cell);
}

static pc_code read_switch(const pc_import *import, const char *name, const char *cell, bool *is_on, pc_error *error) {
    *is_on = pc_import_same(cell, "true") || strcmp(cell, "1") == 0 || pc_import_same(cell, "yes");
    bool is_off =
        is_empty(cell) || pc_import_same(cell, "false") || strcmp(cell, "0") == 0 || pc_import_same(cell, "no");
    if (*is_on || is_off) return PC_OK;
    return pc_import_refuse(&import->text, error, "%s is '%.40s'; expected true or false", name, cell);
}

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

/* "gemm", "matmul", "gemm_forward" and the like; *rest: what stands behind the family's name and '_'. */
static const family *family_of(const char *name, const char **rest) {
    *rest = "";
    if (is_empty(name) || pc_import_same(name, "matmul") || pc_import_same(name, "mm")) return &families[0];
    if (pc_import_same(name, "flash_attention")) return &families[1];
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

static pc_code name_kernel(const pc_import *import, const char *name, const char *role, pc_kernel_measurement *kernel,
                           pc_error *error) {
    const char *rest;
    const family *f = family_of(name, &rest);
    if (!f && pc_import_collective(name))
        return pc_import_refuse(&import->text, error,
                                "%.40s without ranks or bytes; expected columns ranks and bytes, "
                                "or --ranks N",
                                name);
    if (!f)
        return pc_import_refuse(&import->text, error,
                                "the kernel '%.40s'; expected gemm, attention, layer_norm, rms_norm, softmax, gelu, "
                                "swiglu, rotary, residual, cross_entropy, embedding, add, bias_gradient, copy or adam",
                                name);
    kernel->kind = f->kind;
    snprintf(kernel->kernel, sizeof kernel->kernel, "%s", f->name);
    if (!f->is_split) return PC_OK;
    direction way = direction_of(is_empty(rest) ? role : rest);
    const char *suffix = suffix_of(f, way);
    if (!suffix)
        return pc_import_refuse(&import->text, error,
                                "the role or layout '%.40s' of %s; expected forward, or of a gemm input_gradient or "
                                "weight_gradient (TN, NN, NT), of others backward",
                                is_empty(rest) ? role : rest, f->name);
    snprintf(kernel->kernel, sizeof kernel->kernel, "%s_%s", f->name, suffix);
    kernel->role = way == DIRECTION_FORWARD  ? PC_GEMM_FORWARD
                   : way == DIRECTION_WEIGHT ? PC_GEMM_WEIGHT_GRADIENT
                                             : PC_GEMM_INPUT_GRADIENT;
    return PC_OK;
}

static pc_code read_dtype(const pc_import *import, const char *cell, pc_kernel_measurement *kernel, pc_error *error) {
    static const char *const known[][2] = {
        {"", "bf16"},     {"bf16", "bf16"}, {"bfloat16", "bf16"}, {"fp16", "fp16"},  {"float16", "fp16"},
        {"half", "fp16"}, {"fp32", "fp32"}, {"float32", "fp32"},  {"float", "fp32"}, {"fp8", "fp8"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (pc_import_same(cell, known[i][0])) {
            snprintf(kernel->dtype, sizeof kernel->dtype, "%s", known[i][1]);
            return PC_OK;
        }
    return pc_import_refuse(&import->text, error, "the dtype '%.40s'; expected bf16, fp16, fp32 or fp8", cell);
}

static pc_code read_cache(const pc_import *import, const char *cell, pc_kernel_measurement *kernel, pc_error *error) {
    kernel->cache = pc_import_same(cell, "hot") ? PC_CACHE_HOT : PC_CACHE_COLD;
    if (kernel->cache == PC_CACHE_HOT || is_empty(cell) || pc_import_same(cell, "cold")) return PC_OK;
    return pc_import_refuse(&import->text, error, "the cache '%.40s'; expected cold or hot", cell);
}

/* ---- the shape ---- */

static pc_code read_shape(const pc_import *import, const pc_import_table *table, char *const *row,
                          pc_kernel_measurement *kernel, pc_error *error) {
    struct {
        pc_import_column column;
        const char *name;
        int64_t otherwise, *to;
    } extents[] = {{PC_COLUMN_BATCH, "the batch", 1, &kernel->batch},
                   {PC_COLUMN_M, "m", 0, &kernel->m},
                   {PC_COLUMN_N, "n", 0, &kernel->n},
                   {PC_COLUMN_K, "k", 0, &kernel->k},
                   {PC_COLUMN_HEADS, "heads", 1, &kernel->heads},
                   {PC_COLUMN_KV_HEADS, "kv_heads", 1, &kernel->kv_heads}};
    pc_code code = PC_OK;
    for (size_t i = 0; i < sizeof extents / sizeof *extents && !code; i++)
        code = read_extent(import, extents[i].name, pc_import_cell(table, row, extents[i].column), extents[i].otherwise,
                           extents[i].to, error);
    return code;
}

/* As in models/workload/operation.h; beyond 2^62 no shape is one of today's. */
static pc_code count_work(const pc_import *import, pc_kernel_measurement *kernel, pc_error *error) {
    bool is_gemm = kernel->kind == PC_OPERATION_GEMM, is_weight = kernel->role == PC_GEMM_WEIGHT_GRADIENT;
    double b = (double)kernel->batch, m = (double)kernel->m, n = (double)kernel->n, k = (double)kernel->k;
    double element = strcmp(kernel->dtype, "fp32") == 0 ? 4.0 : strcmp(kernel->dtype, "fp8") == 0 ? 1.0 : 2.0;
    double output = is_weight ? 4.0 * (kernel->accumulates ? 2.0 : 1.0) : element;
    bool is_forward = kernel->role == PC_GEMM_FORWARD;
    double flops = b * m * n * k * (is_gemm ? 2.0 : is_forward ? 4.0 : 10.0);
    double bytes =
        is_gemm ? b * (element * k * (m + n) + output * m * n) : b * k * element * (m + n) * (is_forward ? 2.0 : 4.0);
    if (!(flops < 0x1p62 && bytes < 0x1p62))
        return pc_import_refuse(&import->text, error, "a shape of %g FLOPs; expected less than 2^62", flops);
    kernel->flops = (int64_t)flops;
    kernel->bytes = (int64_t)bytes;
    return PC_OK;
}

static pc_code read_work(const pc_import *import, const pc_import_table *table, char *const *row,
                         pc_kernel_measurement *kernel, pc_error *error) {
    bool has_shape = kernel->kind == PC_OPERATION_GEMM || kernel->kind == PC_OPERATION_ATTENTION;
    kernel->batch = 1;
    if (!has_shape)
        return read_extent(import, "the bytes moved", pc_import_cell(table, row, PC_COLUMN_BYTES), 0, &kernel->bytes,
                           error);
    pc_code code = read_shape(import, table, row, kernel, error);
    /* A table's batch is of sequences where it has heads, an operation's of heads. */
    if (!code && kernel->kind == PC_OPERATION_ATTENTION && table->at[PC_COLUMN_HEADS] >= 0) {
        if (kernel->batch > (INT64_C(1) << 60) / kernel->heads)
            return pc_import_refuse(&import->text, error, "a batch of more than 2^60 heads; expected fewer");
        kernel->batch *= kernel->heads;
    }
    return code ? code : count_work(import, kernel, error);
}

pc_code pc_import_kernel_row(pc_import *import, const pc_import_table *table, char *const *row, pc_error *error) {
    pc_kernel_measurement x = {.first_sample = -1, .check_error = NAN, .registers = -1};
    double seconds;
    pc_code code = name_kernel(import, pc_import_cell(table, row, PC_COLUMN_KERNEL),
                               pc_import_cell(table, row, PC_COLUMN_ROLE), &x, error);
    if (!code) code = read_dtype(import, pc_import_cell(table, row, PC_COLUMN_DTYPE), &x, error);
    if (!code) code = read_cache(import, pc_import_cell(table, row, PC_COLUMN_CACHE), &x, error);
    if (!code) code = read_switch(import, "causal", pc_import_cell(table, row, PC_COLUMN_CAUSAL), &x.is_causal, error);
    if (!code)
        code =
            read_switch(import, "accumulate", pc_import_cell(table, row, PC_COLUMN_ACCUMULATE), &x.accumulates, error);
    if (!code) code = read_work(import, table, row, &x, error);
    if (!code)
        code = read_time(import, pc_import_cell(table, row, PC_COLUMN_TIME), table->seconds[PC_COLUMN_TIME], &seconds,
                         error);
    if (code) return code;
    x.seconds = (pc_statistics){1, seconds, seconds, seconds, seconds, seconds, seconds};
    return pc_profile_add_kernel(import->into, &x, NULL, error);
}

/* ---- transfers ---- */

pc_code pc_import_add_transfer(pc_import *import, pc_transfer_measurement *transfer, double seconds, pc_error *error) {
    transfer->seconds = (pc_statistics){1, seconds, seconds, seconds, seconds, seconds, seconds};
    transfer->algbw = transfer->size_bytes / seconds;
    transfer->busbw = transfer->algbw * pc_import_bus_factor(transfer->collective, transfer->ranks);
    return pc_profile_add_transfer(import->into, transfer, NULL, error);
}

static pc_code read_names(const pc_import *import, const pc_import_table *table, char *const *row,
                          pc_transfer_measurement *transfer, pc_error *error) {
    const pc_import_options *options = import->options;
    const char *name = pc_import_cell(table, row, PC_COLUMN_KERNEL), *link = pc_import_cell(table, row, PC_COLUMN_LINK);
    if (is_empty(name) && options->collective) name = options->collective;
    const char *collective = pc_import_collective(name);
    if (!collective && table->at[PC_COLUMN_KERNEL] < 0)
        return pc_import_refuse(&import->text, error,
                                "no column says which collective this is; expected one named collective, or "
                                "--collective with " PC_IMPORT_COLLECTIVES);
    if (!collective)
        return pc_import_refuse(&import->text, error, "the collective '%.40s'; expected " PC_IMPORT_COLLECTIVES, name);
    snprintf(transfer->collective, sizeof transfer->collective, "%s", collective);
    snprintf(transfer->link, sizeof transfer->link, "%s", pc_import_link(options->link ? options->link : link));
    return PC_OK;
}

static pc_code read_ranks(const pc_import *import, const pc_import_table *table, char *const *row,
                          pc_transfer_measurement *transfer, pc_error *error) {
    int64_t ranks, nodes, wanted_ranks = import->options->ranks, wanted_nodes = import->options->nodes;
    if (table->at[PC_COLUMN_RANKS] < 0 && wanted_ranks < 1)
        return pc_import_refuse(&import->text, error,
                                "no column says how many ranks there were; expected one named ranks, or --ranks N");
    pc_code code =
        read_extent(import, "ranks", pc_import_cell(table, row, PC_COLUMN_RANKS), wanted_ranks, &ranks, error);
    if (!code)
        code = read_extent(import, "nodes", pc_import_cell(table, row, PC_COLUMN_NODES),
                           wanted_nodes > 0 ? wanted_nodes : 1, &nodes, error);
    if (code) return code;
    if (ranks < 2 || ranks > 1 << 24 || nodes > ranks)
        return pc_import_refuse(&import->text, error,
                                "%lld ranks on %lld nodes; expected at least 2, and no more nodes", (long long)ranks,
                                (long long)nodes);
    transfer->ranks = (int32_t)ranks;
    transfer->nodes = (int32_t)nodes;
    return PC_OK;
}

static pc_code read_result(pc_import *import, const pc_import_table *table, char *const *row, pc_import_column column,
                           pc_transfer_measurement *transfer, pc_error *error) {
    const char *cell = pc_import_cell(table, row, column);
    double seconds;
    bool is_second = column == PC_COLUMN_IN_PLACE_TIME;
    if (is_second && (is_empty(cell) || strcmp(cell, "N/A") == 0)) return PC_OK;
    pc_code code = read_time(import, cell, table->seconds[column], &seconds, error);
    transfer->is_in_place = is_second;
    return code ? code : pc_import_add_transfer(import, transfer, seconds, error);
}

/* Rows that whoever collected them calls suspect are left out, and counted. */
pc_code pc_import_transfer_row(pc_import *import, const pc_import_table *table, char *const *row, pc_error *error) {
    pc_transfer_measurement x = {.first_sample = -1, .wrong = -1};
    int64_t size;
    const char *suspect = pc_import_cell(table, row, PC_COLUMN_SUSPECT);
    pc_code code = read_names(import, table, row, &x, error);
    if (!code) code = read_ranks(import, table, row, &x, error);
    if (!code) code = read_extent(import, "the size", pc_import_cell(table, row, PC_COLUMN_BYTES), 0, &size, error);
    if (code) return code;
    if (!is_empty(suspect) && !pc_import_same(suspect, "false") && strcmp(suspect, "0") != 0) {
        import->suspect++;
        return PC_OK;
    }
    x.size_bytes = (double)size;
    code = read_result(import, table, row, PC_COLUMN_TIME, &x, error);
    return code ? code : read_result(import, table, row, PC_COLUMN_IN_PLACE_TIME, &x, error);
}
