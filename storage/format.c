#include "storage/format.h"

#include <stddef.h>
#include <string.h>

bool pc_format_parse(const char *name, pc_format *format) {
    static const char *const names[] = {
        [PC_FORMAT_TABLE] = "table", [PC_FORMAT_CSV] = "csv", [PC_FORMAT_JSON] = "json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *format = (pc_format)i;
        return true;
    }
    return false;
}
