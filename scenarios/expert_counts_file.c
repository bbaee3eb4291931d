#include "scenarios/expert_counts_file.h"

#include "engine/alloc.h"
#include "scenarios/units.h"
#include "storage/csv.h"
#include "storage/text_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPECTED "a CSV file with a line for each layer, and in it a count for each expert"

enum { EXPERTS_MOST = 4096, LAYERS_MOST = 65536 };

typedef struct table {
    const char *name; /* of the file */
    pc_csv csv;
    char **field;  /* [EXPERTS_MOST + 1], owned */
    double *count; /* [layers][experts], owned */
    int64_t layers, experts, room;
    int first; /* column */
} table;

static pc_code refuse_record(const table *x, int count, pc_error *error) {
    if (count == PC_CSV_BAD_QUOTE)
        return pc_error_refuse(error, x->name, (unsigned)x->csv.line, "",
                               "a quote that does not end; expected another one");
    return pc_error_refuse(error, x->name, (unsigned)x->csv.line, "", "over %d numbers; expected one for each expert",
                           EXPERTS_MOST);
}

static pc_code take_number(const table *x, int column, double *count, pc_error *error) {
    pc_error why = {0};
    if (!pc_parse_number(x->field[column], count, &why)) return PC_OK;
    return pc_error_refuse(error, x->name, (unsigned)x->csv.line, "",
                           "'%.40s' for expert %d; expected a count, 0 or more", x->field[column], column - x->first);
}

static bool grow(table *x) {
    if (x->layers < x->room) return true;
    int64_t room = x->room > 0 ? 2 * x->room : 64;
    double *count = pc_realloc(x->count, (size_t)(room * x->experts), sizeof *count);
    if (!count) return false;
    x->count = count;
    x->room = room;
    return true;
}

static pc_code take_layer(table *x, int fields, pc_error *error) {
    int64_t experts = fields - x->first;
    double sum = 0.0;
    if (experts < 1)
        return pc_error_refuse(error, x->name, (unsigned)x->csv.line, "",
                               "1 number; expected 2 or more: the layer, and a count for each expert");
    if (x->layers == 0) x->experts = experts;
    if (experts != x->experts)
        return pc_error_refuse(error, x->name, (unsigned)x->csv.line, "",
                               "%d numbers; expected %d, as in the lines before", fields, (int)x->experts + x->first);
    if (x->layers == LAYERS_MOST)
        return pc_error_refuse(error, x->name, (unsigned)x->csv.line, "", "over %d lines; expected one for each layer",
                               LAYERS_MOST);
    if (!grow(x)) return pc_error_no_memory(error);
    double *count = x->count + x->layers * experts;
    for (int i = 0; i < experts; i++) {
        pc_code code = take_number(x, x->first + i, &count[i], error);
        if (code) return code;
        sum += count[i];
    }
    if (!(sum > 0))
        return pc_error_refuse(error, x->name, (unsigned)x->csv.line, "", "no tokens at all; expected a count over 0");
    x->layers++;
    return PC_OK;
}

/* Or what a program writes for a number that it has not: "nan", "inf". */
static bool is_number(const char *text) {
    char *end;
    if (*text && strspn(text, "+-.0123456789") > 0) return true;
    (void)strtod(text, &end);
    return end != text && *end == '\0';
}

/* A first line of words names columns. */
static bool is_head(table *x) {
    if (x->layers > 0 || is_number(x->field[0])) return false;
    x->first = strcmp(x->field[0], "layer") == 0 ? 1 : 0;
    return true;
}

static pc_code take_records(table *x, pc_error *error) {
    bool has_head = false;
    int count;
    while ((count = pc_csv_record(&x->csv, x->field, EXPERTS_MOST + 1)) != PC_CSV_END) {
        if (count < 0) return refuse_record(x, count, error);
        if (x->field[0][0] == '#' || (count == 1 && !*x->field[0])) continue;
        if (!has_head && is_head(x)) {
            has_head = true;
            continue;
        }
        pc_code code = take_layer(x, count, error);
        if (code) return code;
    }
    if (x->layers > 0) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, x->name, "has no counts; expected " EXPECTED);
}

pc_code pc_expert_counts_read_text(const char *name, char *text, pc_expert_counts *counts, pc_error *error) {
    table x = {.name = name, .csv = pc_csv_begin(text)};
    x.field = pc_alloc(EXPERTS_MOST + 1, sizeof *x.field);
    pc_code code = x.field ? take_records(&x, error) : pc_error_no_memory(error);
    if (!code) code = pc_expert_counts_make(x.count, x.layers, x.experts, counts, error);
    pc_free(x.field);
    pc_free(x.count);
    return code;
}

pc_code pc_expert_counts_read(const char *path, pc_expert_counts *counts, pc_error *error) {
    char *text;
    pc_code code = pc_text_file_read(path, EXPECTED, &text, error);
    if (code) return code;
    code = pc_expert_counts_read_text(path, text, counts, error);
    pc_free(text);
    return code;
}
