/* memory_file.h: the file MEMORY_FILE, which has an input's bytes: nothing is written to a disk. For targets that wrap
 * fopen (meson.build). */
#ifndef PC_TESTS_FUZZ_MEMORY_FILE_H
#define PC_TESTS_FUZZ_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

#define MEMORY_FILE "input.csv"

/* What MEMORY_FILE has from here on; borrowed. */
void memory_file_set(const uint8_t *data, size_t size);

#endif
