/* import_text.h: what the targets of others' measurements share. */
#ifndef PC_TESTS_FUZZ_IMPORT_TEXT_H
#define PC_TESTS_FUZZ_IMPORT_TEXT_H

#include "calib/import/import.h"

#include <stddef.h>
#include <stdint.h>

/* Imports the bytes into a profile that has a kernel already, and requires: on failure it is as it was; on success
 * something was added, with names, and with numbers that are finite and above zero. */
void fuzz_import(const uint8_t *data, size_t size, const pc_import_options *options);

#endif
