#include "results/store/store_private.h"

#include "engine/alloc.h"
#include "results/columns.h"
#include "results/store/build.h"
#include "storage/h5_disk.h"
#include "storage/replace.h"
#include "storage/text.h"

#include <hdf5_hl.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_ROWS = 4096 }; /* rows that are held before they are written, and that a chunk of a column has */

struct pc_results_writer {
    pc_replacement replacement; /* whose file is being written */
    pc_h5_disk disk;
    hid_t file, scenarios, traces, runs;
    int64_t scenario_count;
    pc_run_row *block; /* written as columns: a row at a time would be a chunk update a value */
    size_t used, capacity;
    int64_t written; /* rows of blocks before it */
};

/* What HDF5 could not do, and what the disk did not take, of which HDF5 was not told. */
static pc_code fail(const pc_results_writer *writer, pc_error *error) {
    const char *path = writer->replacement.path;
    if (writer->disk.cause)
        return pc_error_set_file(error, PC_ERROR_IO, path, "cannot write: %s", strerror(writer->disk.cause));
    return pc_error_set_file(error, PC_ERROR_IO, path, "HDF5 could not build the file");
}

static pc_code check(const pc_results_writer *writer, bool done, pc_error *error) {
    return done && !writer->disk.cause ? PC_OK : fail(writer, error);
}

static bool start_file(pc_results_writer *writer) {
    char build[PC_BUILD_TEXT_SIZE];
    pc_build_text(build);
    writer->file = pc_h5_disk_file(&writer->disk, writer->replacement.descriptor);
    if (writer->file < 0 || !pc_sealed_describe(writer->file, &pc_store_kind)) return false;
    if (!pc_h5_put_text(writer->file, "build", build)) return false;
    writer->scenarios = pc_h5_group_create(writer->file, "scenarios");
    writer->traces = pc_h5_group_create(writer->file, "traces");
    writer->runs = pc_h5_group_create(writer->file, "runs");
    return writer->scenarios >= 0 && writer->traces >= 0 && writer->runs >= 0;
}

/* Whether HDF5 found nothing wrong. */
static bool close_file(pc_results_writer *writer) {
    const hid_t groups[] = {writer->scenarios, writer->traces, writer->runs};
    bool done = true;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (groups[i] >= 0) done = H5Gclose(groups[i]) >= 0 && done;
    if (writer->file >= 0) done = H5Fclose(writer->file) >= 0 && done;
    writer->file = writer->scenarios = writer->traces = writer->runs = -1;
    return done;
}

pc_code pc_results_create(const char *path, pc_results_writer **result, pc_error *error) {
    pc_results_writer *writer = pc_alloc(1, sizeof *writer);
    if (!writer) return pc_error_no_memory(error);
    writer->file = writer->scenarios = writer->traces = writer->runs = -1;
    pc_code code = pc_replacement_begin(path, &writer->replacement, error);
    if (code) {
        pc_free(writer);
        return code;
    }
    pc_replacement_guard(&writer->replacement, NULL);
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    code = check(writer, start_file(writer), error);
    pc_h5_quiet_end(quiet);
    if (code)
        pc_results_discard(writer);
    else
        *result = writer;
    return code;
}

void pc_results_guard(pc_results_writer *writer, const pc_standing *standing) {
    pc_replacement_guard(&writer->replacement, standing);
}

void pc_results_discard(pc_results_writer *writer) {
    if (!writer) return;
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    close_file(writer);
    pc_h5_disk_end(&writer->disk);
    pc_h5_quiet_end(quiet);
    if (writer->replacement.descriptor >= 0) pc_replacement_discard(&writer->replacement);
    pc_free(writer->block);
    pc_free(writer);
}

pc_code pc_results_set_sweep_runs(pc_results_writer *writer, int64_t count, pc_error *error) {
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    bool done = pc_h5_put_integer(writer->file, "sweep_runs", count);
    pc_h5_quiet_end(quiet);
    return check(writer, done, error);
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
    for (int number = 2; !link->failed && H5Lexists(group, link->data, H5P_DEFAULT) > 0; number++) {
        link->size = size;
        pc_text_printf(link, " (%d)", number);
    }
}

static bool write_scenario(pc_results_writer *writer, const char *link, const char *name, const char *text,
                           size_t size) {
    hid_t dataset = pc_store_text_write(writer->scenarios, link, text, size);
    if (dataset < 0) return false;
    bool done = pc_h5_put_integer(dataset, "number", ++writer->scenario_count) &&
                pc_h5_put_text(dataset, "name", name) && pc_h5_put_text(dataset, "unit", "") &&
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
    else
        code = check(writer, write_scenario(writer, link.data, name, text, size), error);
    pc_h5_quiet_end(quiet);
    pc_text_free(&link);
    return code;
}

pc_code pc_results_add_share(pc_results_writer *writer, const pc_plan_share *share, pc_error *error) {
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    pc_code code = pc_store_share_write(writer->file, share, error);
    pc_h5_quiet_end(quiet);
    return code == PC_ERROR_IO ? fail(writer, error) : code ? code : check(writer, true, error);
}

/* --- the table of runs, column by column --- */

/* The run number is the scale of the table's one dimension. */
static bool attach_scale(hid_t runs, const pc_column *column, hid_t dataset) {
    if (strcmp(column->field.name, "run") == 0) return H5DSset_scale(dataset, column->field.name) >= 0;
    hid_t scale = H5Dopen2(runs, "run", H5P_DEFAULT);
    bool done = scale >= 0 && H5DSattach_scale(dataset, scale, 0) >= 0;
    if (scale >= 0) H5Dclose(scale);
    return done;
}

/* The first block makes the dataset, the others are appended. It is closed, so that HDF5 keeps nothing of it. */
static pc_code add_column(const pc_results_writer *writer, const pc_column *column, bool is_last, pc_error *error) {
    hid_t dataset;
    bool is_first = writer->written == 0;
    pc_field_storing storing = !is_first ? PC_STORED_BEHIND : is_last ? PC_STORED_WHOLE : PC_STORED_GROWING;
    pc_code code = pc_field_write(writer->runs, &column->field, writer->block, sizeof *writer->block,
                                  (int64_t)writer->used, storing, &dataset, error);
    if (code) return code == PC_ERROR_IO ? fail(writer, error) : code;
    bool done = !is_first || attach_scale(writer->runs, column, dataset);
    done = H5Dclose(dataset) >= 0 && done;
    return check(writer, done, error);
}

/* Behind the last block, which is empty only where there are no rows, nothing comes. */
static pc_code write_block(pc_results_writer *writer, bool is_last, pc_error *error) {
    int count;
    const pc_column *columns = pc_columns(&count);
    pc_code code = PC_OK;
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    for (int i = 0; i < count && !code; i++) code = add_column(writer, &columns[i], is_last, error);
    pc_h5_quiet_end(quiet);
    writer->written += (int64_t)writer->used;
    writer->used = 0;
    return code;
}

/* --- rows and traces --- */

static pc_code make_room(pc_results_writer *writer, pc_error *error) {
    if (writer->used < writer->capacity) return PC_OK;
    if (writer->used == BLOCK_ROWS) return write_block(writer, false, error);
    size_t capacity = writer->capacity ? 4 * writer->capacity : 16;
    pc_run_row *rows = pc_realloc(writer->block, capacity, sizeof *rows);
    if (!rows) return pc_error_no_memory(error);
    writer->block = rows;
    writer->capacity = capacity;
    return PC_OK;
}

_Static_assert(BLOCK_ROWS == 16 << 8, "room that grows by four from 16 comes to a block");

static pc_code add_trace(pc_results_writer *writer, int64_t run, const pc_schedule *schedule,
                         const pc_run_detail *detail, pc_error *error) {
    char name[24];
    snprintf(name, sizeof name, "%" PRId64, run);
    if (pc_h5_has(writer->traces, name))
        return pc_error_set_file(error, PC_ERROR_INPUT, writer->replacement.path,
                                 "there are two runs with the number %" PRId64, run);
    hid_t group = pc_h5_group_create(writer->traces, name);
    if (group < 0) return fail(writer, error);
    pc_code code = pc_store_trace_write(group, schedule, detail, error);
    H5Gclose(group);
    if (!code) return check(writer, true, error);
    H5Ldelete(writer->traces, name, H5P_DEFAULT); /* half a trace is none */
    return code == PC_ERROR_IO ? fail(writer, error) : code;
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
    writer->block[writer->used++] = *row;
    return PC_OK;
}

/* --- the end --- */

pc_code pc_results_commit(pc_results_writer *writer, pc_error *error) {
    pc_code code = write_block(writer, true, error);
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    bool is_closed = close_file(writer);
    pc_h5_quiet_end(quiet);
    if (!code) code = check(writer, is_closed, error);
    if (!code) code = pc_sealed_finish(&writer->replacement, error);
    if (!code) {
        code = pc_replacement_commit(&writer->replacement, error); /* which ends it */
        writer->replacement.descriptor = -1;
    }
    pc_results_discard(writer);
    return code;
}
