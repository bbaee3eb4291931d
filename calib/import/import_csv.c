/* Tables with named columns: which column is what, and a row after the other. */
#include "calib/import/import_private.h"

#include "engine/alloc.h"

#include <stdio.h>
#include <string.h>

typedef struct column_name {
    const char *name;
    pc_import_column column;
    double seconds; /* of a time: its unit */
} column_name;

/* A name that stands further up is taken before one further down. */
static const column_name column_names[] = {
    {"device", PC_COLUMN_DEVICE, 0.0},
    {"kernel", PC_COLUMN_KERNEL, 0.0},
    {"collective", PC_COLUMN_KERNEL, 0.0},
    {"op", PC_COLUMN_KERNEL, 0.0},
    {"dtype", PC_COLUMN_DTYPE, 0.0},
    {"role", PC_COLUMN_ROLE, 0.0},
    {"layout", PC_COLUMN_ROLE, 0.0},
    {"batch", PC_COLUMN_BATCH, 0.0},
    {"b", PC_COLUMN_BATCH, 0.0},
    {"m", PC_COLUMN_M, 0.0},
    {"n", PC_COLUMN_N, 0.0},
    {"k", PC_COLUMN_K, 0.0},
    {"heads", PC_COLUMN_HEADS, 0.0},
    {"kv_heads", PC_COLUMN_KV_HEADS, 0.0},
    {"causal", PC_COLUMN_CAUSAL, 0.0},
    {"is_causal", PC_COLUMN_CAUSAL, 0.0},
    {"accumulate", PC_COLUMN_ACCUMULATE, 0.0},
    {"accumulates", PC_COLUMN_ACCUMULATE, 0.0},
    {"cache", PC_COLUMN_CACHE, 0.0},
    {"size_bytes", PC_COLUMN_BYTES, 0.0},
    {"bytes", PC_COLUMN_BYTES, 0.0},
    {"oop_time_us", PC_COLUMN_TIME, 1e-6},
    {"time_us", PC_COLUMN_TIME, 1e-6},
    {"implied_time_us", PC_COLUMN_TIME, 1e-6},
    {"time_ms", PC_COLUMN_TIME, 1e-3},
    {"time_ns", PC_COLUMN_TIME, 1e-9},
    {"time_s", PC_COLUMN_TIME, 1.0},
    {"seconds", PC_COLUMN_TIME, 1.0},
    {"ip_time_us", PC_COLUMN_IN_PLACE_TIME, 1e-6},
    {"ranks", PC_COLUMN_RANKS, 0.0},
    {"gpus", PC_COLUMN_RANKS, 0.0},
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

static pc_code find_columns(const pc_import *import, char *const *header, int count, pc_import_table *table,
                            pc_error *error) {
    *table = (pc_import_table){.fields = count};
    for (int c = 0; c < PC_COLUMNS; c++) table->at[c] = -1;
    for (size_t i = 0; i < sizeof column_names / sizeof *column_names; i++) {
        const column_name *known = &column_names[i];
        int at = field_named(header, count, known->name);
        if (at < 0 || table->at[known->column] >= 0) continue;
        table->at[known->column] = at;
        table->seconds[known->column] = known->seconds;
    }
    for (int i = 0; i < count; i++)
        if (field_named(header, i, header[i]) >= 0)
            return pc_import_refuse(&import->text, error, "the column '%.40s' twice; expected each once", header[i]);
    if (table->at[PC_COLUMN_TIME] >= 0) return PC_OK;
    return pc_import_refuse(&import->text, error,
                            "no column with a time; expected time_us, time_ms or seconds among the columns");
}

const char *pc_import_cell(const pc_import_table *table, char *const *row, pc_import_column column) {
    return table->at[column] < 0 ? "" : row[table->at[column]];
}

static bool has_columns(const pc_import_table *table, pc_import_column a, pc_import_column b) {
    return table->at[a] >= 0 && table->at[b] >= 0;
}

/* Of transfers, a row is a message and has ranks; of kernels it has a shape, or the bytes that it moves. */
static bool is_of_transfers(const pc_import *import, const pc_import_table *table) {
    if (has_columns(table, PC_COLUMN_M, PC_COLUMN_N) || table->at[PC_COLUMN_BYTES] < 0) return false;
    return table->at[PC_COLUMN_RANKS] >= 0 || import->options->ranks > 0 || import->options->collective;
}

/* ---- lines ---- */

static bool is_comment(const char *line) {
    while (*line == ' ' || *line == '\t') line++;
    return *line == '\0' || *line == '#';
}

static char *next_row(pc_import_text *text) {
    char *line;
    while ((line = pc_import_line(text)) && is_comment(line)) continue;
    return line;
}

/* ---- devices: a profile is of one ---- */

typedef struct seen_devices {
    char first[128], second[128];
    int64_t second_line;
    bool has_asked; /* a row is of the device that options name */
} seen_devices;

static void see_device(const pc_import *import, const char *device, int64_t line, seen_devices *seen) {
    const char *asked = import->options->device;
    if (device[0] == '\0') return;
    if (asked && pc_import_same(asked, device)) seen->has_asked = true;
    if (seen->first[0] == '\0') snprintf(seen->first, sizeof seen->first, "%s", device);
    if (seen->second[0] != '\0' || pc_import_same(seen->first, device)) return;
    snprintf(seen->second, sizeof seen->second, "%s", device);
    seen->second_line = line;
}

/* Over a copy of all rows, before any is taken. What is wrong with them is for the second reading. */
static seen_devices look_for_devices(const pc_import *import, const pc_import_table *table, char *copy) {
    pc_import_text text = {import->text.path, copy, import->text.line};
    char *row[PC_IMPORT_FIELDS], *line;
    seen_devices seen = {.second_line = 0};
    while ((line = next_row(&text)))
        if (pc_import_split_commas(line, row) == table->fields)
            see_device(import, pc_import_cell(table, row, PC_COLUMN_DEVICE), text.line, &seen);
    return seen;
}

static pc_code choose_device(pc_import *import, const pc_import_table *table, pc_error *error) {
    char *copy = pc_strdup(import->text.next ? import->text.next : "");
    if (!copy) return pc_error_no_memory(error);
    seen_devices seen = look_for_devices(import, table, copy);
    pc_free(copy);
    import->has_several_devices = seen.second[0] != '\0';
    const char *asked = import->options->device, *device = seen.has_asked ? asked : seen.first;
    snprintf(import->device, sizeof import->device, "%s", device);
    if (!import->has_several_devices || seen.has_asked) return PC_OK;
    import->text.line = seen.second_line;
    return pc_import_refuse(
        &import->text, error,
        "a row of the device '%.60s' beside rows of '%.60s'%s%.60s%s; expected one device, or the name of "
        "the one to take (--device)",
        seen.second, seen.first, asked ? ", and none of '" : "", asked ? asked : "", asked ? "'" : "");
}

static bool is_wanted(const pc_import *import, const char *device) {
    return !import->has_several_devices || pc_import_same(device, import->device);
}

/* ---- the table ---- */

static pc_code read_row(pc_import *import, const pc_import_table *table, char *line, bool is_transfer,
                        pc_error *error) {
    char *row[PC_IMPORT_FIELDS];
    int count = pc_import_split_commas(line, row);
    if (count != table->fields)
        return pc_import_refuse(&import->text, error, "%d fields; expected %d, as in the header%s",
                                count < 0 ? PC_IMPORT_FIELDS : count, table->fields,
                                count < 0 ? ", and quotes that end" : "");
    if (!is_wanted(import, pc_import_cell(table, row, PC_COLUMN_DEVICE))) return PC_OK;
    return is_transfer ? pc_import_transfer_row(import, table, row, error)
                       : pc_import_kernel_row(import, table, row, error);
}

pc_code pc_import_csv(pc_import *import, pc_error *error) {
    pc_import_table table;
    char *header[PC_IMPORT_FIELDS], *line = next_row(&import->text);
    int count = line ? pc_import_split_commas(line, header) : -1;
    if (count < 2)
        return pc_import_refuse(&import->text, error,
                                "no header; expected names of columns between commas, at most %d, "
                                "or what nccl-tests print, with its comments",
                                PC_IMPORT_FIELDS);
    pc_code code = find_columns(import, header, count, &table, error);
    if (!code) code = choose_device(import, &table, error);
    bool is_transfer = is_of_transfers(import, &table), has_name = table.at[PC_COLUMN_KERNEL] >= 0;
    if (!code && !is_transfer && !has_name && table.at[PC_COLUMN_M] < 0)
        return pc_import_refuse(&import->text, error,
                                "no column says what was measured; expected op, or collective and ranks, among them");
    while (!code && (line = next_row(&import->text))) code = read_row(import, &table, line, is_transfer, error);
    return code;
}
