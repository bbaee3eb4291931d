#include "storage/text_file.h"

#include "engine/alloc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

pc_code pc_text_file_read(const char *path, const char *expected, char **content, pc_error *error) {
    FILE *file = fopen(path, "rb");
    if (!file) return pc_error_file(error, path, errno, "a file to read");
    size_t room = 1 << 16, size = 0;
    char *bytes = pc_alloc(room, 1);
    while (bytes) {
        size += fread(bytes + size, 1, room - 1 - size, file);
        if (size + 1 < room || room >= PC_TEXT_FILE_MOST) break;
        char *more = pc_realloc(bytes, 2 * room, 1);
        if (!more) pc_free(bytes);
        bytes = more;
        room *= 2;
    }
    int cause = errno; /* of the reading, where that failed */
    bool is_failed = ferror(file) != 0, is_too_long = size + 1 >= PC_TEXT_FILE_MOST;
    fclose(file);
    if (!bytes) return pc_error_no_memory(error);
    bytes[size] = '\0';
    bool is_text = strlen(bytes) == size;
    if (!is_failed && !is_too_long && is_text) {
        *content = bytes;
        return PC_OK;
    }
    pc_free(bytes);
    if (is_failed) return pc_error_file(error, path, cause, "a file to read");
    if (is_too_long)
        return pc_error_set_file(error, PC_ERROR_INPUT, path, "longer than %d bytes; expected less", PC_TEXT_FILE_MOST);
    return pc_error_set_file(error, PC_ERROR_INPUT, path, "has bytes that are no text; expected %s", expected);
}
