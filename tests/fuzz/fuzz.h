/* fuzz.h: what the fuzz targets share. A target is one C file with LLVMFuzzerTestOneInput, which libFuzzer calls with
 * made-up inputs and replay.c with those of files. A target aborts where a property does not hold: see README.md. */
#ifndef PC_TESTS_FUZZ_H
#define PC_TESTS_FUZZ_H

#include "engine/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes an input; 0, or -1 where it is of no use and shall not be kept. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Prints the line and aborts where `holds` is false. */
void fuzz_require(bool holds, const char *what);

/* Requires of a failure that it is not for want of memory, and has a message: one line of plain text. */
void fuzz_check_error(pc_code code, const pc_error *error);

/* The input without the NULs in it and with one behind it, in a block of its own size; free() it. */
char *fuzz_text(const uint8_t *data, size_t size);

#endif
