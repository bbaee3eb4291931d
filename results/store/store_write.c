#include "results/store/store_private.h"

#include "engine/alloc.h"
#include "results/columns.h"
#include "results/replace.h"
#include "results/text.h"

#include <hdf5_hl.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct pc_results_writer {
    char *path;
    hid_t file; /* in memory until it is committed */
    hid_t scenarios, traces;
    pc_run_row *rows; /* written as columns at the end: a row at a time would be a chunk update a value */
    size_t count, capacity;
};

static pc_code fail_in_memory(const pc_results_writer *writer, pc_error *error) {
    return pc_error_set(error, PC_ERROR_IO, "%s: HDF5 could not build the file in memory", writer->path);
}

static bool start_file(pc_results_writer *writer) {
    writer->file = pc_h5_memory_file(writer);
    if (writer->file < 0 || !pc_sealed_describe(writer->file, &pc_store_kind)) return false;
    writer->scenarios = pc_h5_group_create(writer->file, "scenarios");
    writer->traces = pc_h5_group_create(writer->file, "traces");
    return writer->scenarios >= 0 && writer->traces >= 0;
}

static void close_file(pc_results_writer *writer) {
    if (writer->scenarios >= 0) H5Gclose(writer->scenarios);
    if (writer->traces >= 0) H5Gclose(writer->traces);
    if (writer->file >= 0) H5Fclose(writer->file);
    writer->file = writer->scenarios = writer->traces = -1;
}

pc_code pc_results_create(const char *path, pc_results_writer **result, pc_error *error) {
    pc_code code = pc_replacement_probe(path, error);
    if (code) return code;
    pc_results_writer *writer = pc_alloc(1, sizeof *writer);
    if (!writer) return pc_error_no_memory(error);
    writer->file = writer->scenarios = writer->traces = -1;
    writer->path = pc_strdup(path);
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    if (!writer->path)
        code = pc_error_no_memory(error);
    else if (!start_file(writer))
        code = fail_in_memory(writer, error);
    pc_h5_quiet_end(quiet);
    if (code)
        pc_results_discard(writer);
    else
        *result = writer;
    return code;
}

void pc_results_discard(pc_results_writer *writer) {
    if (!writer) return;
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    close_file(writer);
    pc_h5_quiet_end(quiet);
    pc_free(writer->path);
    pc_free(writer->rows);
    pc_free(writer);
}

/* --- scenarios --- */

enum { LINK_NAME_LENGTH = 200 };

/* A name as HDF5 takes it: a slash would start a group within the group, and "." is the group itself. */
static void make_link_name(const char *name, pc_text *link) {
    pc_text_add_line(link, name, LINK_NAME_LENGTH);
    for (size_t i = 0; i < link->size; i++)
        if (link->data[i] == '/') link->data[i] = '_';
    if (link->size == 0 || strspn(link->data, ".") == link->size) pc_text_add(link, "_", 1);
}

/* Two scenarios may have one name: the second becomes "name (2)". */
static void make_link_unique(hid_t group, pc_text *link) {
    size_t size = link->size;
    for (int number = 2; !link->failed && pc_h5_has(group, link->data); number++) {
        link->size = size;
        pc_text_printf(link, " (%d)", number);
    }
}

/* A dataset of one text, byte for byte. */
static hid_t write_whole_text(hid_t group, const char *name, const char *text, size_t size) {
    const char *bytes = size ? text : ""; /* HDF5 has no text of no bytes: one zero byte */
    hid_t type = pc_h5_text_type(size ? size : 1), space = H5Screate(H5S_SCALAR);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), dataset = -1;
    if (type >= 0 && space >= 0 && creation >= 0 && H5Pset_obj_track_times(creation, false) >= 0)
        dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    bool written = dataset >= 0 && H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) >= 0;
    if (creation >= 0) H5Pclose(creation);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    if (written || dataset < 0) return dataset;
    H5Dclose(dataset);
    return -1;
}

static bool write_scenario(hid_t group, const char *link, const char *name, const char *text, size_t size) {
    hid_t dataset = write_whole_text(group, link, text, size);
    if (dataset < 0) return false;
    bool done = pc_h5_put_text(dataset, "name", name) && pc_h5_put_text(dataset, "unit", "") &&
                pc_h5_put_text(dataset, "description", "text of the scenario file, and what was set from outside");
    H5Dclose(dataset);
    return done;
}

pc_code pc_results_add_scenario(pc_results_writer *writer, const char *name, const char *text, size_t size,
                                pc_error *error) {
    pc_text link = {0};
    make_link_name(name, &link);
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    if (!link.failed) make_link_unique(writer->scenarios, &link);
    pc_code code = PC_OK;
    if (link.failed)
        code = pc_error_no_memory(error);
    else if (!write_scenario(writer->scenarios, link.data, name, text, size))
        code = fail_in_memory(writer, error);
    pc_h5_quiet_end(quiet);
    pc_text_free(&link);
    return code;
}

/* --- rows and traces --- */

static pc_code make_room(pc_results_writer *writer, pc_error *error) {
    if (writer->count < writer->capacity) return PC_OK;
    size_t capacity = writer->capacity ? 2 * writer->capacity : 16;
    pc_run_row *rows = pc_realloc(writer->rows, capacity, sizeof *rows);
    if (!rows) return pc_error_no_memory(error);
    writer->rows = rows;
    writer->capacity = capacity;
    return PC_OK;
}

static pc_code add_trace(pc_results_writer *writer, int64_t run, const pc_schedule *schedule,
                         const pc_run_detail *detail, pc_error *error) {
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, run);
    if (pc_h5_has(writer->traces, name))
        return pc_error_set(error, PC_ERROR_INPUT, "%s: there are two runs with the number %" PRId64, writer->path,
                            run);
    hid_t group = pc_h5_group_create(writer->traces, name);
    if (group < 0) return fail_in_memory(writer, error);
    pc_code code = pc_store_trace_write(group, schedule, detail, error);
    H5Gclose(group);
    if (!code) return PC_OK;
    H5Ldelete(writer->traces, name, H5P_DEFAULT); /* half a trace is none */
    return code == PC_ERROR_IO ? fail_in_memory(writer, error) : code;
}

pc_code pc_results_add_run(pc_results_writer *writer, const pc_run_row *row, const pc_schedule *schedule,
                           const pc_run_detail *detail, pc_error *error) {
    pc_code code = make_room(writer, error);
    if (code) return code;
    if (detail && detail->replay.trace.pass_count > 0) {
        assert(schedule);
        pc_h5_quiet quiet = pc_h5_quiet_begin();
        code = add_trace(writer, row->run, schedule, detail, error);
        pc_h5_quiet_end(quiet);
        if (code) return code;
    }
    writer->rows[writer->count++] = *row;
    return PC_OK;
}

/* --- the table of runs, column by column --- */

static bool is_number(const pc_column *column) {
    return column->type == PC_COLUMN_INTEGER || column->type == PC_COLUMN_REAL;
}

/* What "not defined" looks like in the file. */
static const char *missing_of(const pc_column *column) {
    if (column->type == PC_COLUMN_INTEGER) return "-1";
    return column->type == PC_COLUMN_REAL ? "NaN" : "empty text";
}

static size_t stored_size(const pc_column *column) {
    if (is_number(column)) return sizeof(double);
    return column->type == PC_COLUMN_TEXT ? column->size - 1 : 16;
}

static hid_t file_type_of(const pc_column *column) {
    if (!is_number(column)) return pc_h5_text_type(stored_size(column));
    return H5Tcopy(column->type == PC_COLUMN_REAL ? H5T_IEEE_F64LE : H5T_STD_I64LE);
}

static hid_t memory_type_of(const pc_column *column) {
    if (!is_number(column)) return pc_h5_text_type(stored_size(column));
    return H5Tcopy(column->type == PC_COLUMN_REAL ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64);
}

_Static_assert(sizeof(double) == sizeof(int64_t), "numbers of both types are gathered as eight bytes");

/* `values` is zeroed, so that nothing but the text itself gets into the file. */
static void gather(const pc_results_writer *writer, const pc_column *column, char *values) {
    size_t size = stored_size(column);
    for (size_t i = 0; i < writer->count; i++) {
        char text[PC_COLUMN_TEXT_SIZE];
        const void *value = (const char *)&writer->rows[i] + column->offset;
        if (!is_number(column)) {
            pc_column_text(column, &writer->rows[i], text, sizeof text);
            value = text;
        }
        memcpy(values + i * size, value, is_number(column) ? size : strnlen(text, size));
    }
}

/* The dataset, still open, or -1. */
static hid_t write_column(const pc_results_writer *writer, hid_t runs, const pc_column *column, char *values) {
    gather(writer, column, values);
    pc_h5_column stored = {.name = column->name,
                           .unit = column->unit,
                           .description = column->description,
                           .missing = missing_of(column),
                           .file_type = file_type_of(column),
                           .memory_type = memory_type_of(column),
                           .count = writer->count,
                           .values = values};
    hid_t dataset = stored.file_type >= 0 && stored.memory_type >= 0 ? pc_h5_column_write(runs, &stored) : -1;
    if (stored.file_type >= 0) H5Tclose(stored.file_type);
    if (stored.memory_type >= 0) H5Tclose(stored.memory_type);
    return dataset;
}

/* The run number is the scale of the table's one dimension. */
static bool attach_scale(hid_t runs, const pc_column *column, hid_t dataset) {
    if (strcmp(column->name, "run") == 0) return H5DSset_scale(dataset, column->name) >= 0;
    hid_t scale = H5Dopen2(runs, "run", H5P_DEFAULT);
    bool done = scale >= 0 && H5DSattach_scale(dataset, scale, 0) >= 0;
    if (scale >= 0) H5Dclose(scale);
    return done;
}

static pc_code add_column(const pc_results_writer *writer, hid_t runs, const pc_column *column, pc_error *error) {
    char *values = pc_alloc(writer->count, stored_size(column));
    if (!values) return pc_error_no_memory(error);
    hid_t dataset = write_column(writer, runs, column, values);
    pc_free(values);
    if (dataset < 0) return fail_in_memory(writer, error);
    pc_code code = attach_scale(runs, column, dataset) ? PC_OK : fail_in_memory(writer, error);
    H5Dclose(dataset);
    return code;
}

static pc_code write_rows(const pc_results_writer *writer, pc_error *error) {
    hid_t runs = pc_h5_group_create(writer->file, "runs");
    if (runs < 0) return fail_in_memory(writer, error);
    int count;
    const pc_column *columns = pc_columns(&count);
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) code = add_column(writer, runs, &columns[i], error);
    H5Gclose(runs);
    return code;
}

/* --- from memory to the disk --- */

pc_code pc_results_commit(pc_results_writer *writer, pc_error *error) {
    char *image = NULL;
    size_t size = 0;
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    pc_code code = write_rows(writer, error);
    if (!code) code = pc_sealed_image(writer->file, writer->path, &image, &size, error);
    close_file(writer);
    pc_h5_quiet_end(quiet);
    if (!code) code = pc_sealed_put(writer->path, image, size, error);
    pc_free(image);
    pc_results_discard(writer);
    return code;
}
