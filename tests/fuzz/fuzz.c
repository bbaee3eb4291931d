#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz: does not hold: %s\n", what);
    abort();
}

void fuzz_check_error(pc_code code, const pc_error *error) {
    if (code == PC_OK) return;
    fuzz_require(error->code == code, "the error has the code that was returned");
    fuzz_require(code != PC_ERROR_NO_MEMORY, "memory is not short");
    size_t size = strnlen(error->message, sizeof error->message);
    fuzz_require(size > 0 && size < sizeof error->message, "the error has a message");
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)error->message[i];
        if (c >= 0x20 && c != 0x7f) continue;
        fprintf(stderr, "fuzz: message: %s\n", error->message);
        fuzz_require(false, "the message is one line of plain text");
    }
}

char *fuzz_text(const uint8_t *data, size_t size) {
    size_t length = 0;
    char *text = malloc(size + 1);
    fuzz_require(text, "memory is not short");
    for (size_t i = 0; i < size; i++)
        if (data[i]) text[length++] = (char)data[i];
    text = realloc(text, length + 1);
    fuzz_require(text, "memory is not short");
    text[length] = '\0';
    return text;
}
