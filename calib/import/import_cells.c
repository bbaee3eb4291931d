/* Cells of a row: extents, switches, times, and where they are from. */
#include "calib/import/import_private.h"

#include <stdio.h>
#include <string.h>

const char *pc_import_row_cell(const pc_import_row *row, pc_import_column column) {
    return pc_import_cell(row->table, row->cell, column);
}

pc_code pc_import_extent(const pc_import_row *row, pc_import_column column, const char *name, int64_t otherwise,
                         int64_t *extent, pc_error *error) {
    static const int64_t most = INT64_C(1) << 48;
    const char *cell = pc_import_row_cell(row, column);
    *extent = otherwise;
    if (cell[0] == '\0' && otherwise > 0) return PC_OK;
    if (pc_import_integer(cell, extent) && *extent <= most) return PC_OK;
    return pc_import_refuse(&row->import->text, error, "%s is '%.40s'; expected a whole number above zero", name, cell);
}

pc_code pc_import_switch(const pc_import_row *row, pc_import_column column, const char *name, bool *is_on,
                         pc_error *error) {
    const char *cell = pc_import_row_cell(row, column);
    *is_on = pc_import_same(cell, "true") || strcmp(cell, "1") == 0 || pc_import_same(cell, "yes");
    bool is_off =
        cell[0] == '\0' || pc_import_same(cell, "false") || strcmp(cell, "0") == 0 || pc_import_same(cell, "no");
    if (*is_on || is_off) return PC_OK;
    return pc_import_refuse(&row->import->text, error, "%s is '%.40s'; expected true or false", name, cell);
}

/* ---- times ---- */

/* Seconds of one unit, of the name of the column or of the cell beside it. */
static pc_code unit_of(const pc_import_row *row, pc_import_column column, double *unit_s, pc_error *error) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    *unit_s = row->table->seconds[column];
    if (*unit_s > 0.0) return PC_OK;
    const char *cell = pc_import_row_cell(row, PC_COLUMN_UNIT);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(cell, units[i].name) == 0) return *unit_s = units[i].seconds, PC_OK;
    return pc_import_refuse(&row->import->text, error, "the unit '%.40s'; expected s, ms, us or ns", cell);
}

/* Efficiencies beyond 1 are those of causal attention, whose FLOPs their tables count twice. */
static pc_code seconds_of_efficiency(const pc_import_row *row, double flops, double *seconds, pc_error *error) {
    const char *cell = pc_import_row_cell(row, PC_COLUMN_EFFICIENCY);
    double efficiency;
    *seconds = 0.0;
    if (pc_import_is_none(cell)) return PC_OK;
    if (pc_import_number(cell, &efficiency) && efficiency >= 1e-6 && efficiency <= 1e3 && flops > 0.0) {
        *seconds = flops / (efficiency * row->table->full_flops_per_s);
        if (*seconds >= 1e-10 && *seconds <= 1e6) return PC_OK;
    }
    return pc_import_refuse(&row->import->text, error,
                            "an efficiency of '%.40s'; expected a number of 1e-6 to 1000, of work that has FLOPs",
                            cell);
}

pc_code pc_import_seconds(const pc_import_row *row, pc_import_column column, double flops, double *seconds,
                          pc_error *error) {
    double unit_s;
    bool is_efficiency = column == PC_COLUMN_TIME && !pc_import_has(row->table, PC_COLUMN_TIME);
    if (is_efficiency) return seconds_of_efficiency(row, flops, seconds, error);
    pc_code code = unit_of(row, column, &unit_s, error);
    if (code) return code;
    const char *cell = pc_import_row_cell(row, column);
    *seconds = 0.0;
    if (pc_import_is_none(cell) || pc_import_time(cell, unit_s, seconds)) return PC_OK;
    return pc_import_refuse(&row->import->text, error, "a time of '%.40s'; expected " PC_IMPORT_TIME, cell);
}

/* ---- where they are from ---- */

/* The name of the folder that the file lies in, cut to size; "" if the path has none. */
static void folder_of(const char *path, char name[PC_IMPORT_SOURCE_SIZE]) {
    const char *end = strrchr(path, '/');
    const char *begin = end;
    while (begin && begin > path && begin[-1] != '/') begin--;
    int size = end ? (int)(end - begin) : 0;
    snprintf(name, PC_IMPORT_SOURCE_SIZE, "%.*s", size, begin ? begin : "");
}

/* Tables of efficiencies are one site's, without a column for it: they go by their folder. */
static void site_of(const pc_import_row *row, char site[PC_IMPORT_SOURCE_SIZE]) {
    const char *asked = row->import->options->site;
    if (pc_import_has(row->table, PC_COLUMN_SITE))
        snprintf(site, PC_IMPORT_SOURCE_SIZE, "%.31s", pc_import_row_cell(row, PC_COLUMN_SITE));
    else if (asked && !strchr(asked, ','))
        snprintf(site, PC_IMPORT_SOURCE_SIZE, "%.31s", asked);
    else if (pc_import_has(row->table, PC_COLUMN_EFFICIENCY))
        folder_of(row->import->text.path, site);
    else
        site[0] = '\0';
}

/* What the table is known for goes before what the user says of tables that do not say. */
static const char *library_of(const pc_import_row *row) {
    const char *asked = row->import->options->library;
    if (pc_import_has(row->table, PC_COLUMN_LIBRARY)) return pc_import_row_cell(row, PC_COLUMN_LIBRARY);
    if (pc_import_has(row->table, PC_COLUMN_DISPATCH_TIME)) return "deepep";
    if (pc_import_is_of_experts(row)) return pc_import_row_cell(row, PC_COLUMN_KERNEL);
    if (asked && !strchr(asked, ',')) return asked;
    return pc_import_has(row->table, PC_COLUMN_EFFICIENCY) ? "transformer_engine" : "";
}

void pc_import_source(const pc_import_row *row, char library[PC_IMPORT_SOURCE_SIZE],
                      char version[PC_IMPORT_SOURCE_SIZE], char site[PC_IMPORT_SOURCE_SIZE]) {
    snprintf(library, PC_IMPORT_SOURCE_SIZE, "%.31s", library_of(row));
    snprintf(version, PC_IMPORT_SOURCE_SIZE, "%.31s", pc_import_row_cell(row, PC_COLUMN_VERSION));
    site_of(row, site);
}

static bool is_among(const char *asked, const char *found) {
    return !asked || pc_import_is_listed(asked, found);
}

bool pc_import_is_asked(const pc_import_row *row) {
    const pc_import_options *options = row->import->options;
    bool has_library = pc_import_has(row->table, PC_COLUMN_LIBRARY),
         has_site = pc_import_has(row->table, PC_COLUMN_SITE);
    return (!has_library || is_among(options->library, pc_import_row_cell(row, PC_COLUMN_LIBRARY))) &&
           (!has_site || is_among(options->site, pc_import_row_cell(row, PC_COLUMN_SITE)));
}
