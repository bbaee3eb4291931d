#include "results/store/store_private.h"

#include "engine/alloc.h"
#include "results/columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct pc_results_reader {
    char *path;
    hid_t file;
    char version[64]; /* of the pipecast that wrote it */
    char build[64];
    int64_t sweep_runs; /* -1 if the file does not say */
    int64_t count;
    pc_run_row *rows; /* all of them; NULL if the caller reads some at a time */
};

/* Rows first .. first + count - 1, on their way into `rows`. */
typedef struct row_range {
    int64_t first, count;
    pc_run_row *rows;
} row_range;

/* --- rows --- */

static pc_code refuse_column(const pc_results_reader *reader, const pc_column *column, pc_error *error) {
    return pc_error_set_file(error, PC_ERROR_INPUT, reader->path,
                             "column /runs/%s is damaged or not of the expected type", column->field.name);
}

/* A text that no choice or hash is, or that does not fit, is damage; what is "not defined" is not. */
static pc_code read_values(const pc_results_reader *reader, const pc_column *column, hid_t dataset,
                           const row_range *range, pc_error *error) {
    bool is_good;
    pc_code code = pc_field_read(dataset, &column->field, range->first, range->count, range->rows, sizeof *range->rows,
                                 &is_good, error);
    return code || is_good ? code : refuse_column(reader, column, error);
}

/* A column that is not there stays "not defined": the file may be from an older pipecast. */
static pc_code read_column(const pc_results_reader *reader, hid_t runs, const pc_column *column, const row_range *range,
                           pc_error *error) {
    if (!pc_h5_has(runs, column->field.name)) return PC_OK;
    int64_t count;
    hid_t dataset = pc_h5_column_open(runs, column->field.name, &count);
    if (dataset < 0) return refuse_column(reader, column, error);
    pc_code code = count == reader->count ? read_values(reader, column, dataset, range, error)
                                          : refuse_column(reader, column, error);
    H5Dclose(dataset);
    return code;
}

/* Callers count with them. */
static pc_code check_run_numbers(const pc_results_reader *reader, const row_range *range, pc_error *error) {
    int64_t most = reader->sweep_runs >= 0 ? reader->sweep_runs : PC_RESULTS_RUNS_MAX;
    for (int64_t i = 0; i < range->count; i++) {
        int64_t run = range->rows[i].run;
        if (run >= 1 && run <= most) continue;
        return pc_error_set_file(error, PC_ERROR_INPUT, reader->path,
                                 "column /runs/run: row %" PRId64 " has %" PRId64
                                 "; expected a run's number, 1 to %" PRId64 "%s",
                                 range->first + i + 1, run, most, reader->sweep_runs >= 0 ? " as sweep_runs says" : "");
    }
    return PC_OK;
}

/* `only` NULL: all columns. */
static pc_code read_range(const pc_results_reader *reader, hid_t runs, const char *only, const row_range *range,
                          pc_error *error) {
    int count;
    const pc_column *columns = pc_columns(&count);
    pc_code code = PC_OK;
    for (int64_t i = 0; i < range->count; i++) pc_run_row_clear(&range->rows[i]);
    for (int i = 0; i < count && !code; i++)
        if (!only || strcmp(columns[i].field.name, only) == 0)
            code = read_column(reader, runs, &columns[i], range, error);
    return code || only ? code : check_run_numbers(reader, range, error);
}

static pc_code count_rows(pc_results_reader *reader, hid_t runs, pc_error *error) {
    hid_t dataset = pc_h5_column_open(runs, "run", &reader->count);
    if (dataset < 0)
        return pc_error_set_file(error, PC_ERROR_INPUT, reader->path, "column /runs/run is missing or damaged");
    bool fits = pc_h5_can_hold_rows(dataset, reader->count, sizeof *reader->rows);
    H5Dclose(dataset);
    if (fits) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, reader->path,
                             "/runs/run has %" PRId64 " runs, more than the file can hold", reader->count);
}

static pc_code read_all(pc_results_reader *reader, hid_t runs, pc_error *error) {
    reader->rows = pc_alloc((size_t)reader->count, sizeof *reader->rows);
    if (!reader->rows) return pc_error_no_memory(error);
    const row_range all = {0, reader->count, reader->rows};
    return read_range(reader, runs, NULL, &all, error);
}

static pc_code open_runs(const pc_results_reader *reader, hid_t *runs, pc_error *error) {
    *runs = pc_h5_group_open(reader->file, "runs");
    if (*runs >= 0) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, reader->path, "group /runs is missing or damaged");
}

static pc_code open_and_read(const pc_results_reader *reader, const char *only, const row_range *range,
                             pc_error *error) {
    hid_t runs;
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    pc_code code = open_runs(reader, &runs, error);
    if (!code) {
        code = read_range(reader, runs, only, range, error);
        H5Gclose(runs);
    }
    pc_h5_quiet_end(quiet);
    return code;
}

pc_code pc_results_read_rows(const pc_results_reader *reader, int64_t first, int64_t count, pc_run_row *rows,
                             pc_error *error) {
    const row_range range = {first, count, rows};
    return open_and_read(reader, NULL, &range, error);
}

pc_code pc_results_read_row_keys(const pc_results_reader *reader, int64_t first, int64_t count, pc_run_row *rows,
                                 pc_error *error) {
    const row_range range = {first, count, rows};
    return open_and_read(reader, "key", &range, error);
}

/* --- the file --- */

static pc_code read_attributes(pc_results_reader *reader, pc_error *error) {
    if (!pc_h5_get_text(reader->file, "pipecast_version", reader->version, sizeof reader->version))
        reader->version[0] = '\0';
    if (!pc_h5_get_text(reader->file, "build", reader->build, sizeof reader->build)) reader->build[0] = '\0';
    if (!pc_h5_get_integer(reader->file, "sweep_runs", &reader->sweep_runs)) return reader->sweep_runs = -1, PC_OK;
    if (reader->sweep_runs >= 0 && reader->sweep_runs <= PC_RESULTS_RUNS_MAX) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, reader->path,
                             "attribute sweep_runs is %" PRId64 "; expected 0 to %" PRId64, reader->sweep_runs,
                             PC_RESULTS_RUNS_MAX);
}

static pc_code load(pc_results_reader *reader, bool with_rows, pc_error *error) {
    hid_t runs;
    pc_code code = pc_sealed_open(reader->path, &pc_store_kind, &reader->file, error);
    if (code) return code;
    code = read_attributes(reader, error);
    if (code) return code;
    code = open_runs(reader, &runs, error);
    if (code) return code;
    code = count_rows(reader, runs, error);
    if (!code && with_rows) code = read_all(reader, runs, error);
    H5Gclose(runs);
    return code;
}

static pc_code open_reader(const char *path, bool with_rows, pc_results_reader **result, pc_error *error) {
    pc_results_reader *reader = pc_alloc(1, sizeof *reader);
    if (!reader) return pc_error_no_memory(error);
    pc_code code = PC_OK;
    reader->file = -1;
    reader->path = pc_strdup(path);
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    code = reader->path ? load(reader, with_rows, error) : pc_error_no_memory(error);
    pc_h5_quiet_end(quiet);
    if (code)
        pc_results_close(reader);
    else
        *result = reader;
    return code;
}

pc_code pc_results_open(const char *path, pc_results_reader **reader, pc_error *error) {
    return open_reader(path, true, reader, error);
}

pc_code pc_results_open_part(const char *path, pc_results_reader **reader, pc_error *error) {
    return open_reader(path, false, reader, error);
}

void pc_results_close(pc_results_reader *reader) {
    if (!reader) return;
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    if (reader->file >= 0) H5Fclose(reader->file);
    pc_h5_quiet_end(quiet);
    pc_free(reader->path);
    pc_free(reader->rows);
    pc_free(reader);
}

const char *pc_results_version(const pc_results_reader *reader) {
    return reader->version;
}

const char *pc_results_build(const pc_results_reader *reader) {
    return reader->build;
}

int64_t pc_results_sweep_runs(const pc_results_reader *reader) {
    return reader->sweep_runs;
}

int64_t pc_results_run_count(const pc_results_reader *reader) {
    return reader->count;
}

const pc_run_row *pc_results_row(const pc_results_reader *reader, int64_t index) {
    return &reader->rows[index];
}

/* --- scenarios --- */

/* The link's own name is the scenario's only where it can be one: the attribute is what counts. */
static bool is_named(hid_t dataset, const char *name) {
    char found[PC_COLUMN_TEXT_SIZE];
    return pc_h5_get_text(dataset, "name", found, sizeof found) && strcmp(found, name) == 0;
}

static bool has_number(hid_t dataset, int64_t number) {
    int64_t found;
    return pc_h5_get_integer(dataset, "number", &found) && found == number;
}

/* The first dataset of the group with this name, or, where that is NULL, this number; open; -1 if there is none. */
static hid_t find_scenario(hid_t group, const char *name, int64_t number) {
    H5G_info_t info;
    if (H5Gget_info(group, &info) < 0) return -1;
    for (hsize_t i = 0; i < info.nlinks; i++) {
        hid_t object = pc_h5_object_open(group, i);
        if (object < 0) continue;
        bool is_it = H5Iget_type(object) == H5I_DATASET && (name ? is_named(object, name) : has_number(object, number));
        if (is_it) return object;
        H5Oclose(object);
    }
    return -1;
}

static hid_t open_scenario(hid_t file, const char *name, int64_t number) {
    hid_t group = pc_h5_group_open(file, "scenarios");
    if (group < 0) return -1;
    hid_t dataset = find_scenario(group, name, number);
    H5Gclose(group);
    return dataset;
}

static pc_code read_text(hid_t dataset, const char *name, char **text, size_t *size, pc_error *error) {
    pc_code code = pc_store_text_read(dataset, text, size, error);
    return code == PC_ERROR_INPUT ? pc_error_set(error, PC_ERROR_INPUT, "scenario '%s' is damaged", name) : code;
}

pc_code pc_results_scenario_text(const pc_results_reader *reader, const char *name, char **text, size_t *size,
                                 pc_error *error) {
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    hid_t dataset = open_scenario(reader->file, name, 0);
    pc_code code = PC_OK;
    if (dataset < 0)
        code = pc_error_set(error, PC_ERROR_INPUT, "no scenario '%s'; expected the name of one in the file", name);
    else
        code = read_text(dataset, name, text, size, error);
    if (code == PC_ERROR_INPUT) pc_error_place(error, reader->path, 0, "");
    if (dataset >= 0) H5Oclose(dataset);
    pc_h5_quiet_end(quiet);
    return code;
}

pc_code pc_results_scenario_at(const pc_results_reader *reader, int64_t number, char name[PC_COLUMN_TEXT_SIZE],
                               char **text, size_t *size, pc_error *error) {
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    hid_t dataset = open_scenario(reader->file, NULL, number);
    pc_code code = PC_OK;
    *text = NULL;
    if (dataset >= 0 && pc_h5_get_text(dataset, "name", name, PC_COLUMN_TEXT_SIZE))
        code = read_text(dataset, name, text, size, error);
    if (code == PC_ERROR_INPUT) pc_error_place(error, reader->path, 0, "");
    if (dataset >= 0) H5Oclose(dataset);
    pc_h5_quiet_end(quiet);
    return code;
}

/* --- a share of a search for plans --- */

bool pc_results_has_share(const pc_results_reader *reader) {
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    bool is_there = pc_store_share_is_there(reader->file);
    pc_h5_quiet_end(quiet);
    return is_there;
}

pc_code pc_results_read_share(const pc_results_reader *reader, pc_plan_share *share, pc_error *error) {
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    pc_code code = pc_store_share_read(reader->file, share, error);
    pc_h5_quiet_end(quiet);
    if (code == PC_ERROR_INPUT) pc_error_place(error, reader->path, 0, "");
    return code;
}

/* --- traces --- */

static hid_t open_trace(hid_t file, const char *name) {
    hid_t traces = pc_h5_group_open(file, "traces");
    if (traces < 0) return -1;
    hid_t group = pc_h5_group_open(traces, name);
    H5Gclose(traces);
    return group;
}

/* Also where that cannot be read: reading the trace then says so. */
static bool has_trace(hid_t file, const char *name) {
    if (!pc_h5_has(file, "traces")) return false;
    hid_t traces = pc_h5_group_open(file, "traces");
    bool is_there = traces < 0 || pc_h5_has(traces, name);
    if (traces >= 0) H5Gclose(traces);
    return is_there;
}

bool pc_results_has_trace(const pc_results_reader *reader, int64_t run) {
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, run);
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    bool is_there = has_trace(reader->file, name);
    pc_h5_quiet_end(quiet);
    return is_there;
}

/* Whether the run kept a trace that has what `is_there_in` looks for in its group. */
static bool trace_has(const pc_results_reader *reader, int64_t run, bool (*is_there_in)(hid_t group)) {
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, run);
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    hid_t group = open_trace(reader->file, name);
    bool is_there = group >= 0 && is_there_in(group);
    if (group >= 0) H5Gclose(group);
    pc_h5_quiet_end(quiet);
    return is_there;
}

bool pc_results_has_memory_kinds(const pc_results_reader *reader, int64_t run) {
    return trace_has(reader, run, pc_store_kinds_are_there);
}

bool pc_results_has_engine_trace(const pc_results_reader *reader, int64_t run) {
    return trace_has(reader, run, pc_store_engine_is_there);
}

static void place_trace(const pc_results_reader *reader, int64_t run, pc_error *error) {
    pc_error_prefix(error, "trace of run %" PRId64, run);
    pc_error_place(error, reader->path, 0, "");
}

static pc_code read_trace(const pc_results_reader *reader, int64_t run, pc_trace_record *record, pc_error *error) {
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, run);
    hid_t group = open_trace(reader->file, name);
    if (group < 0 && has_trace(reader->file, name))
        return pc_error_set_file(error, PC_ERROR_INPUT, reader->path,
                                 "the trace of run %" PRId64 " is damaged or cannot be read", run);
    if (group < 0)
        return pc_error_set_file(error, PC_ERROR_INPUT, reader->path,
                                 "run %" PRId64 " kept no trace; expected one of a scenario with `trace: true`", run);
    pc_code code = pc_store_trace_read(group, record, error);
    if (code == PC_ERROR_INPUT) place_trace(reader, run, error);
    H5Gclose(group);
    return code;
}

pc_code pc_results_read_trace(const pc_results_reader *reader, int64_t run, pc_trace_record *record, pc_error *error) {
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    pc_code code = read_trace(reader, run, record, error);
    pc_h5_quiet_end(quiet);
    return code;
}
