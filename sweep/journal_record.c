#include "sweep/journal_private.h"

#include "results/columns.h"

#include <string.h>

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
