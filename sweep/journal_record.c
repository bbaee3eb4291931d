#include "sweep/journal_private.h"

#include "engine/alloc.h"
#include "results/columns.h"
#include "results/store/store_private.h"

#include <string.h>

/* --- rows --- */

static bool is_text(const pc_column *column) {
    return column->field.type == PC_FIELD_TEXT;
}

_Static_assert(PC_COLUMN_TEXT_SIZE <= 256, "the length of a text is one byte");

/* Which code's columns these are, the build in the header says. */
size_t pc_journal_row_encode(const pc_run_row *row, unsigned char bytes[PC_JOURNAL_ROW_MAX]) {
    int count;
    const pc_column *columns = pc_columns(&count);
    unsigned char *to = bytes;
    for (int i = 0; i < count; i++) {
        const char *field = (const char *)row + columns[i].field.place;
        size_t size = is_text(&columns[i]) ? strnlen(field, columns[i].field.size - 1) : columns[i].field.size;
        if (is_text(&columns[i])) *to++ = (unsigned char)size;
        memcpy(to, field, size);
        to += size;
    }
    return (size_t)(to - bytes);
}

bool pc_journal_row_decode(const unsigned char *bytes, size_t size, pc_run_row *row) {
    int count;
    const pc_column *columns = pc_columns(&count);
    memset(row, 0, sizeof *row);
    for (int i = 0; i < count; i++) {
        size_t length = columns[i].field.size;
        if (is_text(&columns[i])) {
            if (size == 0 || *bytes >= columns[i].field.size) return false;
            length = *bytes++;
            size--;
        }
        if (length > size) return false;
        memcpy((char *)row + columns[i].field.place, bytes, length);
        bytes += length;
        size -= length;
    }
    return size == 0;
}

/* --- traces --- */

static pc_code fail(const char *path, pc_error *error) {
    return pc_error_set(error, PC_ERROR_IO, "%s: HDF5 could not build a trace in memory", path);
}

static pc_code take_image(hid_t file, const char *path, unsigned char **result, size_t *result_size, pc_error *error) {
    ssize_t size = H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 ? H5Fget_file_image(file, NULL, 0) : -1;
    if (size <= 0) return fail(path, error);
    unsigned char *image = pc_realloc(NULL, (size_t)size, 1);
    if (!image) return pc_error_no_memory(error);
    if (H5Fget_file_image(file, image, (size_t)size) == size) {
        *result = image;
        *result_size = (size_t)size;
        return PC_OK;
    }
    pc_free(image);
    return fail(path, error);
}

pc_code pc_journal_trace_encode(const char *path, const pc_schedule *schedule, const pc_run_detail *detail,
                                unsigned char **image, size_t *size, pc_error *error) {
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    hid_t file = pc_h5_memory_file(detail), root = -1;
    if (file >= 0) root = H5Gopen2(file, "/", H5P_DEFAULT);
    pc_code code = root >= 0 ? pc_store_trace_write(root, schedule, detail, error) : fail(path, error);
    if (code == PC_ERROR_IO) code = fail(path, error);
    if (root >= 0) H5Gclose(root);
    if (!code) code = take_image(file, path, image, size, error);
    if (file >= 0) H5Fclose(file);
    pc_h5_quiet_end(quiet);
    return code;
}

pc_code pc_journal_trace_decode(const char *path, const unsigned char *image, size_t size, pc_trace_record *record,
                                pc_error *error) {
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    hid_t file = pc_h5_memory_open(image, image, size), root = -1;
    if (file >= 0) root = H5Gopen2(file, "/", H5P_DEFAULT);
    pc_code code = root >= 0 ? pc_store_trace_read(root, record, error) : fail(path, error);
    if (code == PC_ERROR_INPUT) pc_error_prefix(error, "%s", path);
    if (root >= 0) H5Gclose(root);
    if (file >= 0) H5Fclose(file);
    pc_h5_quiet_end(quiet);
    return code;
}
