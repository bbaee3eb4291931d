#include "scenarios/pass_times_file.h"

#include "scenarios/pass_times_private.h"
#include "scenarios/tree.h"
#include "scenarios/units.h"
#include "storage/csv.h"
#include "storage/text_file.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EXPECTED "a file of measured passes (YAML, JSON or CSV)"

static bool ends_in(const char *text, const char *ending) {
    size_t length = strlen(text), size = strlen(ending);
    return length > size && strcmp(text + length - size, ending) == 0;
}

bool pc_pass_times_is_file(const char *word) {
    static const char *const endings[] = {".yaml", ".yml", ".json", ".csv"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_in(word, endings[i])) return true;
    return strchr(word, '/') != NULL && !strchr(word, ',');
}

/* ---- YAML and JSON ---- */

static pc_code take_node(const pc_tree *tree, const pc_node *node, pc_pass_rows *rows, pc_error *error) {
    if (node->kind != PC_NODE_TEXT) return pc_node_refuse(tree, node, error, "expected one value");
    return pc_node_blame(tree, node, pc_pass_rows_take(rows, node->key, node->text, error), error);
}

static pc_code take_row(const pc_tree *tree, const pc_node *row, pc_pass_rows *rows, pc_error *error) {
    if (row->kind != PC_NODE_MAPPING)
        return pc_node_refuse(tree, row, error, "expected a mapping such as {F: 10 ms, B: 11 ms, W: 7 ms}");
    pc_code code = pc_pass_rows_add(rows, row->line, error);
    for (const pc_node *child = pc_node_first(row); child < pc_node_end(row) && !code; child = pc_node_end(child)) {
        if (pc_pass_key_is_of_all(child->key))
            return pc_node_refuse(tree, child, error, "is of all stages; expected it beside stages, at the top");
        code = take_node(tree, child, rows, error);
    }
    return code;
}

static bool is_label(const char *key) {
    return strcmp(key, "pass_times") == 0 || strcmp(key, "source") == 0;
}

static pc_code take_tree(const pc_tree *tree, pc_pass_rows *rows, pc_error *error) {
    const pc_node *top = tree->nodes, *stages = pc_node_find(top, "stages");
    pc_code code = PC_OK;
    if (top->kind != PC_NODE_MAPPING || !stages || stages->kind != PC_NODE_LIST)
        return pc_tree_refuse(tree, "stages", error, "missing; expected a list with a row for each stage");
    for (const pc_node *child = pc_node_first(top); child < pc_node_end(top) && !code; child = pc_node_end(child)) {
        if (child == stages || is_label(child->key)) continue;
        if (!pc_pass_key_is_of_all(child->key))
            return pc_node_refuse(tree, child, error,
                                  "unknown key; expected pass_times, source, placement, transfer, transfer_scatter, "
                                  "transfer_size or stages");
        code = take_node(tree, child, rows, error);
    }
    for (const pc_node *row = pc_node_first(stages); row < pc_node_end(stages) && !code; row = pc_node_end(row))
        code = take_row(tree, row, rows, error);
    return code;
}

/* Takes the tree, of which the source is there. */
static pc_code read_tree(pc_tree *tree, pc_pass_times *times, pc_error *error) {
    pc_pass_rows rows = pc_pass_rows_none();
    pc_code code = pc_tree_build(tree, error);
    if (!code) code = take_tree(tree, &rows, error);
    if (!code) code = pc_pass_rows_place(&rows, tree->source.name, times, error);
    pc_pass_rows_free(&rows);
    pc_tree_free(tree);
    return code;
}

/* ---- CSV ---- */

enum { COLUMNS_MAX = 64 };

static pc_code refuse_record(const char *name, const pc_csv *csv, int count, pc_error *error) {
    if (count == PC_CSV_BAD_QUOTE)
        return pc_error_refuse(error, name, (unsigned)csv->line, "", "a quote that does not end; expected another one");
    return pc_error_refuse(error, name, (unsigned)csv->line, "", "over %d fields; expected a column for each key",
                           COLUMNS_MAX);
}

static pc_code take_record(const char *name, const pc_csv *csv, char *const *head, char *const *field, int count,
                           pc_pass_rows *rows, pc_error *error) {
    pc_code code = pc_pass_rows_add(rows, (unsigned)csv->line, error);
    for (int i = 0; i < count && !code; i++) {
        if (!*field[i]) continue;
        code = pc_pass_rows_take(rows, head[i], field[i], error);
        if (code == PC_ERROR_INPUT) pc_error_place(error, name, (unsigned)csv->line, head[i]);
    }
    return code;
}

/* The first line that is no comment. */
static int read_head(pc_csv *csv, char **head) {
    int columns = pc_csv_record(csv, head, COLUMNS_MAX);
    while (columns > 0 && head[0][0] == '#') columns = pc_csv_record(csv, head, COLUMNS_MAX);
    return columns;
}

static pc_code take_records(const char *name, char *text, pc_pass_rows *rows, pc_error *error) {
    pc_csv csv = pc_csv_begin(text);
    char *head[COLUMNS_MAX], *field[COLUMNS_MAX];
    int columns = read_head(&csv, head), count;
    if (columns == PC_CSV_END) return pc_error_set_file(error, PC_ERROR_INPUT, name, "is empty; expected " EXPECTED);
    if (columns < 0) return refuse_record(name, &csv, columns, error);
    while ((count = pc_csv_record(&csv, field, COLUMNS_MAX)) != PC_CSV_END) {
        if (count < 0) return refuse_record(name, &csv, count, error);
        if (count == 1 && !*field[0]) continue;
        if (count != columns)
            return pc_error_refuse(error, name, (unsigned)csv.line, "", "%d fields; expected %d, as in the first line",
                                   count, columns);
        pc_code code = take_record(name, &csv, head, field, count, rows, error);
        if (code) return code;
    }
    return PC_OK;
}

/* Cuts up the text. */
static pc_code read_csv(const char *name, char *text, pc_pass_times *times, pc_error *error) {
    pc_pass_rows rows = pc_pass_rows_none();
    pc_code code = take_records(name, text, &rows, error);
    if (!code) code = pc_pass_rows_place(&rows, name, times, error);
    pc_pass_rows_free(&rows);
    return code;
}

/* ---- either ---- */

pc_code pc_pass_times_read_text(const char *name, const char *text, bool is_csv, pc_pass_times *times,
                                pc_error *error) {
    pc_tree tree = {.nodes = NULL};
    if (!is_csv) {
        pc_code code = pc_source_of_file(name, text, &tree.source, error);
        return code ? code : read_tree(&tree, times, error);
    }
    char *copy = pc_strdup(text);
    if (!copy) return pc_error_no_memory(error);
    pc_code code = read_csv(name, copy, times, error);
    pc_free(copy);
    return code;
}

pc_code pc_pass_times_read(const char *path, pc_pass_times *times, pc_error *error) {
    pc_tree tree = {.nodes = NULL};
    if (!ends_in(path, ".csv")) {
        pc_code code = pc_source_read_regular(path, EXPECTED, &tree.source, error);
        return code ? code : read_tree(&tree, times, error);
    }
    char *text;
    pc_code code = pc_text_file_read(path, EXPECTED, &text, error);
    if (code) return code;
    code = read_csv(path, text, times, error);
    pc_free(text);
    return code;
}

/* ---- writing ---- */

/* Milliseconds to the last picosecond, without zeros at their end. */
static void add_time(pc_text *text, const char *key, pc_time time_ps) {
    char number[48];
    int length = snprintf(number, sizeof number, "%" PRId64 ".%09" PRId64, time_ps / 1000000000, time_ps % 1000000000);
    while (length > 0 && number[length - 1] == '0') length--;
    if (length > 0 && number[length - 1] == '.') length--;
    pc_text_printf(text, "%s: %.*s ms", key, length, number);
}

static void add_size(pc_text *text, const char *key, int64_t bytes) {
    char size[PC_SIZE_TEXT];
    pc_write_size(bytes, size);
    pc_text_printf(text, "%s: %s", key, size);
}

static void add_kind(pc_text *text, const pc_part_times *part, int kind) {
    const char *name = pc_pass_kind_name((pc_pass_kind)kind);
    if (part->time_ps[kind] == PC_TIME_NOT_GIVEN) return;
    pc_text_add(text, ", ", 2);
    add_time(text, name, part->time_ps[kind]);
    if (part->scatter[kind] > 0) pc_text_printf(text, ", %s_scatter: %.4f", name, part->scatter[kind]);
    if (part->count[kind] > 0) pc_text_printf(text, ", %s_count: %" PRId64, name, part->count[kind]);
}

static void add_row(pc_text *text, const pc_pass_times *times, int device, int chunk) {
    const pc_part_times *part = pc_pass_times_at(times, device, chunk);
    const struct {
        const char *key;
        int64_t bytes;
    } sizes[] = {{", activation", part->activation_bytes},
                 {", freed_by_b", part->b_bytes},
                 {", held", chunk == 0 ? times->held_bytes[device] : PC_BYTES_NOT_GIVEN}};
    pc_text_printf(text, "  - {stage: %d, chunk: %d", device, chunk);
    for (int kind = 0; kind < PC_PASS_S; kind++) add_kind(text, part, kind);
    for (int i = 0; i < 3; i++)
        if (sizes[i].bytes != PC_BYTES_NOT_GIVEN) add_size(text, sizes[i].key, sizes[i].bytes);
    pc_text_add(text, "}\n", 2);
}

/* A line of YAML must not end in a word that a name brought along: only what may be shown, in quotes. */
static void add_source(pc_text *text, const char *source) {
    pc_text_add(text, "source: ", 8);
    pc_text_add_json(text, source);
    pc_text_add(text, "\n", 1);
}

static void write_in_scope(const pc_pass_times *times, const char *source, pc_text *text) {
    pc_text_printf(text, "# Measured passes: pipecast schedule NAME --times FILE, pipecast run --times FILE.\n"
                         "# Means of a microbatch; scatter is their standard deviation as a share of the mean.\n");
    add_source(text, source);
    if (times->chunks > 1) pc_text_printf(text, "placement: %s\n", pc_placement_name(times->placement));
    if (times->transfer_ps != PC_TIME_NOT_GIVEN) add_time(text, "transfer", times->transfer_ps);
    if (times->transfer_ps != PC_TIME_NOT_GIVEN) pc_text_add(text, "\n", 1);
    if (times->transfer_scatter > 0) pc_text_printf(text, "transfer_scatter: %.4f\n", times->transfer_scatter);
    if (times->transfer_bytes != PC_BYTES_NOT_GIVEN) {
        add_size(text, "transfer_size", times->transfer_bytes);
        pc_text_add(text, "\n", 1);
    }
    pc_text_printf(text, "stages:\n");
    for (int d = 0; d < times->devices; d++)
        for (int c = 0; c < times->chunks; c++) add_row(text, times, d, c);
}

void pc_pass_times_write(const pc_pass_times *times, const char *source, pc_text *text) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) {
        text->failed = true;
        return;
    }
    write_in_scope(times, source, text);
    pc_number_scope_leave(&scope);
}
