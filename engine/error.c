#include "engine/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A message is one line whatever the user's strings hold: a newline in a file name must not forge a second one. */
static void make_one_line(char *message) {
    for (unsigned char *c = (unsigned char *)message; *c; c++)
        if (*c < 0x20 || *c == 0x7f) *c = '?';
}

pc_code pc_error_set(pc_error *error, pc_code code, const char *format, ...) {
    if (!error) return code;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    make_one_line(error->message);
    error->code = code;
    return code;
}

pc_code pc_error_prefix(pc_error *error, const char *format, ...) {
    if (!error) return PC_OK;
    char message[PC_ERROR_MESSAGE_SIZE];
    memcpy(message, error->message, sizeof message);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    size_t used = strlen(error->message);
    const char *parts[] = {": ", message};
    for (int i = 0; i < 2; i++)
        for (const char *c = parts[i]; *c && used + 1 < sizeof error->message; c++) error->message[used++] = *c;
    error->message[used] = '\0';
    make_one_line(error->message);
    return error->code;
}

pc_code pc_error_no_memory(pc_error *error) {
    return pc_error_set(error, PC_ERROR_NO_MEMORY, "out of memory: the allocation was refused");
}
