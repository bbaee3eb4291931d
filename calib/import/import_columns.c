/* The columns of a table, by the names that tables have for them. */
#include "calib/import/import_private.h"

#include <stdlib.h>
#include <string.h>

typedef struct column_name {
    const char *name;
    pc_import_column column;
    double seconds; /* of a time: its unit; 0: the column `unit` says */
} column_name;

/* A name that stands further up is taken before one further down. */
static const column_name column_names[] = {
    {"device", PC_COLUMN_DEVICE, 0.0},
    {"collective", PC_COLUMN_OP, 0.0},
    {"operation", PC_COLUMN_OP, 0.0},
    {"op", PC_COLUMN_OP, 0.0},
    {"kernel", PC_COLUMN_KERNEL, 0.0},
    {"dtype", PC_COLUMN_DTYPE, 0.0},
    {"precision", PC_COLUMN_DTYPE, 0.0},
    {"out_dtype", PC_COLUMN_OUT_DTYPE, 0.0},
    {"main_grad_dtype", PC_COLUMN_GRADIENT_DTYPE, 0.0},
    {"library", PC_COLUMN_LIBRARY, 0.0},
    {"framework", PC_COLUMN_LIBRARY, 0.0},
    {"library_version", PC_COLUMN_VERSION, 0.0},
    {"version", PC_COLUMN_VERSION, 0.0},
    {"site", PC_COLUMN_SITE, 0.0},
    {"system", PC_COLUMN_SITE, 0.0},
    {"role", PC_COLUMN_ROLE, 0.0},
    {"layout", PC_COLUMN_ROLE, 0.0},
    {"stage", PC_COLUMN_ROLE, 0.0},
    {"batch", PC_COLUMN_BATCH, 0.0},
    {"b", PC_COLUMN_BATCH, 0.0},
    {"m", PC_COLUMN_M, 0.0},
    {"n", PC_COLUMN_N, 0.0},
    {"k", PC_COLUMN_K, 0.0},
    {"heads", PC_COLUMN_HEADS, 0.0},
    {"head_num", PC_COLUMN_HEADS, 0.0},
    {"kv_heads", PC_COLUMN_KV_HEADS, 0.0},
    {"kv_head_num", PC_COLUMN_KV_HEADS, 0.0},
    {"seq", PC_COLUMN_SEQ, 0.0},
    {"seq_len", PC_COLUMN_SEQ, 0.0},
    {"head_dim", PC_COLUMN_HEAD_DIM, 0.0},
    {"qk_head_dim", PC_COLUMN_HEAD_DIM, 0.0},
    {"v_head_dim", PC_COLUMN_V_HEAD_DIM, 0.0},
    {"window", PC_COLUMN_WINDOW, 0.0},
    {"qkv_contiguous", PC_COLUMN_CONTIGUOUS, 0.0},
    {"causal", PC_COLUMN_CAUSAL, 0.0},
    {"is_causal", PC_COLUMN_CAUSAL, 0.0},
    {"accumulate", PC_COLUMN_ACCUMULATE, 0.0},
    {"accumulates", PC_COLUMN_ACCUMULATE, 0.0},
    {"cache", PC_COLUMN_CACHE, 0.0},
    {"groups", PC_COLUMN_GROUPS, 0.0},
    {"ng", PC_COLUMN_GROUPS, 0.0},
    {"tokens", PC_COLUMN_TOKENS, 0.0},
    {"hidden", PC_COLUMN_HIDDEN, 0.0},
    {"inter", PC_COLUMN_INTER, 0.0},
    {"topk", PC_COLUMN_TOPK, 0.0},
    {"experts", PC_COLUMN_EXPERTS, 0.0},
    {"moe_tp", PC_COLUMN_MOE_TP, 0.0},
    {"moe_ep", PC_COLUMN_MOE_EP, 0.0},
    {"distribution", PC_COLUMN_DISTRIBUTION, 0.0},
    {"size_bytes", PC_COLUMN_BYTES, 0.0},
    {"bytes", PC_COLUMN_BYTES, 0.0},
    {"message_bytes_inferred", PC_COLUMN_INFERRED_BYTES, 0.0},
    {"oop_time_us", PC_COLUMN_TIME, 1e-6},
    {"time_us", PC_COLUMN_TIME, 1e-6},
    {"implied_time_us", PC_COLUMN_TIME, 1e-6},
    {"time_ms", PC_COLUMN_TIME, 1e-3},
    {"time_ns", PC_COLUMN_TIME, 1e-9},
    {"time_s", PC_COLUMN_TIME, 1.0},
    {"seconds", PC_COLUMN_TIME, 1.0},
    {"latency_us", PC_COLUMN_TIME, 1e-6},
    {"latency_ms", PC_COLUMN_TIME, 1e-3},
    {"latency_ns", PC_COLUMN_TIME, 1e-9},
    {"latency_s", PC_COLUMN_TIME, 1.0},
    {"latency", PC_COLUMN_TIME, 0.0},
    {"time", PC_COLUMN_TIME, 0.0},
    {"unit", PC_COLUMN_UNIT, 0.0},
    {"ip_time_us", PC_COLUMN_IN_PLACE_TIME, 1e-6},
    {"dispatch_us", PC_COLUMN_DISPATCH_TIME, 1e-6},
    {"combine_us", PC_COLUMN_COMBINE_TIME, 1e-6},
    {"sms", PC_COLUMN_SMS, 0.0},
    {"dispatch_sms", PC_COLUMN_DISPATCH_SMS, 0.0},
    {"combine_sms", PC_COLUMN_COMBINE_SMS, 0.0},
    {"ranks", PC_COLUMN_RANKS, 0.0},
    {"gpus", PC_COLUMN_RANKS, 0.0},
    {"ep", PC_COLUMN_RANKS, 0.0},
    {"nodes", PC_COLUMN_NODES, 0.0},
    {"link", PC_COLUMN_LINK, 0.0},
    {"fabric", PC_COLUMN_LINK, 0.0},
    {"suspect", PC_COLUMN_SUSPECT, 0.0},
};

static int field_named(char *const *header, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (pc_import_same(header[i], name)) return i;
    return -1;
}

/* The rate of "efficiency_of_2250_tflops", in FLOP/s; 0 if the column is called otherwise. */
static double rate_of(const char *name) {
    static const char before[] = "efficiency_of_", behind[] = "_tflops";
    char number[32];
    double tflops;
    size_t size = strlen(name), around = sizeof before - 1 + sizeof behind - 1;
    if (size <= around || size - around >= sizeof number || strncmp(name, before, sizeof before - 1) != 0) return 0.0;
    if (strcmp(name + size - (sizeof behind - 1), behind) != 0) return 0.0;
    memcpy(number, name + sizeof before - 1, size - around);
    number[size - around] = '\0';
    return pc_import_number(number, &tflops) && tflops < 1e9 ? 1e12 * tflops : 0.0;
}

static void find_efficiency(char *const *header, int count, pc_import_table *table) {
    for (int i = 0; i < count; i++) {
        double rate = rate_of(header[i]);
        if (!(rate > 0.0) || pc_import_has(table, PC_COLUMN_EFFICIENCY)) continue;
        table->at[PC_COLUMN_EFFICIENCY] = i;
        table->full_flops_per_s = rate;
    }
}

static void find_named(char *const *header, int count, pc_import_table *table) {
    *table = (pc_import_table){.fields = count};
    for (int c = 0; c < PC_COLUMNS; c++) table->at[c] = -1;
    for (size_t i = 0; i < sizeof column_names / sizeof *column_names; i++) {
        const column_name *known = &column_names[i];
        int at = field_named(header, count, known->name);
        if (at < 0 || table->at[known->column] >= 0) continue;
        table->at[known->column] = at;
        table->seconds[known->column] = known->seconds;
    }
    find_efficiency(header, count, table);
}

static bool has_time(const pc_import_table *table) {
    return pc_import_has(table, PC_COLUMN_TIME) || pc_import_has(table, PC_COLUMN_EFFICIENCY) ||
           pc_import_has(table, PC_COLUMN_DISPATCH_TIME) || pc_import_has(table, PC_COLUMN_COMBINE_TIME);
}

pc_code pc_import_find_columns(const pc_import *import, char *const *header, int count, pc_import_table *table,
                               pc_error *error) {
    find_named(header, count, table);
    for (int i = 0; i < count; i++)
        if (field_named(header, i, header[i]) >= 0)
            return pc_import_refuse(&import->text, error, "the column '%.40s' twice; expected each once", header[i]);
    if (!has_time(table))
        return pc_import_refuse(
            &import->text, error,
            "no column with a time; expected latency_us, latency_ms, time_us, time_ms or seconds among the columns");
    bool needs_unit = pc_import_has(table, PC_COLUMN_TIME) && table->seconds[PC_COLUMN_TIME] <= 0.0;
    if (!needs_unit || pc_import_has(table, PC_COLUMN_UNIT)) return PC_OK;
    return pc_import_refuse(&import->text, error,
                            "'%.40s' without a unit; expected it in the name (latency_us), or a column named unit",
                            header[table->at[PC_COLUMN_TIME]]);
}

bool pc_import_has(const pc_import_table *table, pc_import_column column) {
    return table->at[column] >= 0;
}

const char *pc_import_cell(const pc_import_table *table, char *const *row, pc_import_column column) {
    return table->at[column] < 0 ? "" : row[table->at[column]];
}

const char *pc_import_operation(const pc_import_table *table, char *const *row) {
    bool is_of_layer = pc_import_has(table, PC_COLUMN_INTER); /* `kernel` then is one of several for the same layer */
    if (pc_import_has(table, PC_COLUMN_OP)) return pc_import_cell(table, row, PC_COLUMN_OP);
    return is_of_layer ? "" : pc_import_cell(table, row, PC_COLUMN_KERNEL);
}
