/* parts.h: an input as several files in memory, for targets that wrap pc_source_read and pc_source_read_regular.
 *
 * A line "%% NAME" begins another file; what stands before the first is the input's own, INPUT_FILE. "%% set" begins
 * overrides, one a line. */
#ifndef PC_TESTS_FUZZ_PARTS_H
#define PC_TESTS_FUZZ_PARTS_H

#include <stddef.h>
#include <stdint.h>

#define INPUT_FILE "input.yaml"

enum { PARTS_SETS_MAX = 8 };

/* Cuts the input up. It is borrowed until the next call. */
void parts_set(const uint8_t *data, size_t size);

/* The overrides, `*count` of them; valid until the next parts_set. */
const char *const *parts_sets(int *count);

#endif
