/* Tables with named columns: a row after the other, each to the reader of what it is of. */
#include "calib/import/import_private.h"

#include "engine/alloc.h"

#include <stdio.h>
#include <string.h>

/* ---- lines ---- */

static bool is_comment(const char *line) {
    while (*line == ' ' || *line == '\t') line++;
    return *line == '\0' || *line == '#';
}

static char *next_row(pc_imported_table *text) {
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
    pc_imported_table text = {import->text.path, copy, import->text.line};
    char *row[PC_IMPORT_FIELDS], *line;
    seen_devices seen = {.second_line = 0};
    while ((line = next_row(&text)))
        if (pc_import_split_commas(line, row) == table->fields)
            see_device(import, pc_import_cell(table, row, PC_COLUMN_DEVICE), text.line, &seen);
    return seen;
}

static pc_code choose_device(pc_import *import, const pc_import_table *table, pc_error *error) {
    if (!pc_import_has(table, PC_COLUMN_DEVICE)) return PC_OK;
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

/* ---- what a row is of ---- */

/* Where a table has no shape, all of it is of transfers, if anything says how many ranks. */
static bool is_of_transfers(const pc_import *import, const pc_import_table *table) {
    bool has_shape = pc_import_has(table, PC_COLUMN_M) && pc_import_has(table, PC_COLUMN_N);
    bool has_bytes = pc_import_has(table, PC_COLUMN_BYTES) || pc_import_has(table, PC_COLUMN_INFERRED_BYTES);
    if (has_shape || pc_import_has(table, PC_COLUMN_SEQ) || !has_bytes) return false;
    return pc_import_has(table, PC_COLUMN_RANKS) || import->options->ranks > 0 || import->options->collective;
}

/* A collective among kernels: it has a size and ranks of its own. */
static bool is_transfer_row(const pc_import_row *row) {
    const char *name = pc_import_operation(row->table, row->cell);
    bool has_bytes = pc_import_row_cell(row, PC_COLUMN_BYTES)[0] != '\0';
    return name[0] != '\0' && has_bytes && pc_import_row_cell(row, PC_COLUMN_RANKS)[0] != '\0' &&
           pc_import_collective(name);
}

static bool says_what(const pc_import_table *table) {
    return pc_import_has(table, PC_COLUMN_OP) || pc_import_has(table, PC_COLUMN_KERNEL) ||
           pc_import_has(table, PC_COLUMN_M) || pc_import_has(table, PC_COLUMN_SEQ) ||
           pc_import_has(table, PC_COLUMN_INTER) || pc_import_has(table, PC_COLUMN_DISPATCH_TIME);
}

/* ---- the table ---- */

static pc_code read_row(pc_import *import, const pc_import_table *table, char *line, bool is_transfer,
                        pc_error *error) {
    char *cell[PC_IMPORT_FIELDS];
    const pc_import_row row = {import, table, cell};
    int count = pc_import_split_commas(line, cell);
    if (count != table->fields)
        return pc_import_refuse(&import->text, error, "%d fields; expected %d, as in the header%s",
                                count < 0 ? PC_IMPORT_FIELDS : count, table->fields,
                                count < 0 ? ", and quotes that end" : "");
    if (!is_wanted(import, pc_import_cell(table, cell, PC_COLUMN_DEVICE)) || !pc_import_is_asked(&row)) return PC_OK;
    if (pc_import_is_of_experts(&row)) return pc_import_experts_row(&row, error);
    return is_transfer || is_transfer_row(&row) ? pc_import_transfer_row(&row, error)
                                                : pc_import_kernel_row(&row, error);
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
    pc_code code = pc_import_find_columns(import, header, count, &table, error);
    if (!code) code = choose_device(import, &table, error);
    if (code) return code;
    bool is_transfer = is_of_transfers(import, &table);
    if (!is_transfer && !says_what(&table))
        return pc_import_refuse(&import->text, error,
                                "no column says what was measured; expected op, or collective and ranks, among them");
    while (!code && (line = next_row(&import->text))) code = read_row(import, &table, line, is_transfer, error);
    return code;
}
