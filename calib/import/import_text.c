#include "calib/import/import_private.h"

#include "storage/csv.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

char *pc_import_line(pc_imported_table *text) {
    char *line = text->next;
    if (!line) return NULL;
    char *end = strchr(line, '\n');
    text->next = end ? end + 1 : NULL;
    text->line++;
    if (end) *end = '\0';
    size_t size = strlen(line);
    if (size > 0 && line[size - 1] == '\r') line[size - 1] = '\0';
    return line;
}

pc_code pc_import_refuse(const pc_imported_table *text, pc_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pc_error_set_list(error, PC_ERROR_INPUT, format, arguments);
    va_end(arguments);
    pc_error_place(error, text->path, (unsigned)text->line, "");
    return PC_ERROR_INPUT;
}

/* ---- fields ---- */

static bool is_space(char c) {
    return c == ' ' || c == '\t';
}

int pc_import_split_commas(char *line, char *field[PC_IMPORT_FIELDS]) {
    pc_csv csv = pc_csv_begin(line);
    int count = pc_csv_record(&csv, field, PC_IMPORT_FIELDS);
    if (count != PC_CSV_END) return count < 0 ? -1 : count;
    field[0] = line;
    return 1;
}

int pc_import_split_spaces(char *line, char *field[PC_IMPORT_FIELDS]) {
    int count = 0;
    for (;;) {
        while (is_space(*line)) line++;
        if (*line == '\0') return count;
        if (count == PC_IMPORT_FIELDS) return -1;
        field[count++] = line;
        while (*line && !is_space(*line)) line++;
        if (*line) *line++ = '\0';
    }
}

/* ---- numbers ---- */

bool pc_import_number(const char *field, double *number) {
    if (field[0] == '\0' || field[strspn(field, "0123456789+-.eE")] != '\0') return false;
    char *end;
    double value = strtod(field, &end);
    if (*end != '\0' || !(value > 0.0 && value < 1e18)) return false;
    *number = value;
    return true;
}

bool pc_import_integer(const char *field, int64_t *number) {
    double value;
    if (!pc_import_number(field, &value) || value != floor(value) || value > 0x1p53) return false;
    *number = (int64_t)value;
    return true;
}

bool pc_import_time(const char *field, double unit_s, double *seconds) {
    double time;
    if (!pc_import_number(field, &time)) return false;
    time *= unit_s;
    if (!(time >= 1e-10 && time <= 1e6)) return false;
    *seconds = time;
    return true;
}

bool pc_import_is_none(const char *field) {
    if (field[0] == '\0' || field[strspn(field, "0123456789+-.eE")] != '\0') return false;
    char *end;
    double value = strtod(field, &end);
    return end != field && *end == '\0' && value <= 0.0;
}

/* ---- names ---- */

static char lower(char c) {
    return (char)tolower((unsigned char)c);
}

bool pc_import_same(const char *a, const char *b) {
    while (*a && lower(*a) == lower(*b)) a++, b++;
    return *a == '\0' && *b == '\0';
}

bool pc_import_contains(const char *text, const char *part) {
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && lower(text[i]) == lower(part[i])) i++;
        if (part[i] == '\0') return true;
    }
    return part[0] == '\0';
}

bool pc_import_is_listed(const char *list, const char *word) {
    while (*list) {
        size_t size = strcspn(list, ","), i = 0;
        while (i < size && word[i] && lower(list[i]) == lower(word[i])) i++;
        if (i == size && word[i] == '\0') return true;
        list += size + (list[size] == ',');
    }
    return false;
}

/* Letters alone, small: "allreduce" of "All-Reduce"; "perf" at the end is taken off. */
static void letters_of(const char *name, char *letters, size_t size) {
    size_t count = 0;
    for (; *name && count + 1 < size; name++)
        if (isalpha((unsigned char)*name)) letters[count++] = lower(*name);
    if (count > 4 && memcmp(letters + count - 4, "perf", 4) == 0) count -= 4;
    letters[count] = '\0';
}

const char *pc_import_collective(const char *name) {
    static const char *const known[][2] = {{"sendrecv", "send_recv"},   {"allreduce", "all_reduce"},
                                           {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
                                           {"alltoall", "all_to_all"},  {"broadcast", "broadcast"}};
    char letters[32];
    letters_of(name, letters, sizeof letters);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(letters, known[i][0]) == 0) return known[i][1];
    return NULL;
}

const char *pc_import_link(const char *name) {
    static const char *const known[][2] = {{"nvlink", "nvlink"},     {"nvswitch", "nvlink"},    {"pci", "pcie"},
                                           {"loopback", "loopback"}, {"infiniband", "network"}, {"roce", "network"},
                                           {"ethernet", "network"},  {"network", "network"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (pc_import_contains(name, known[i][0])) return known[i][1];
    return "unknown";
}

double pc_import_bus_factor(const char *collective, int ranks) {
    double n = ranks;
    if (strcmp(collective, "all_reduce") == 0) return 2.0 * (n - 1.0) / n;
    bool is_shared = strcmp(collective, "send_recv") != 0 && strcmp(collective, "broadcast") != 0;
    return is_shared ? (n - 1.0) / n : 1.0;
}
