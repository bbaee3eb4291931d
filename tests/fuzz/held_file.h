/* held_file.h: a file in memory with a path, for what opens files by name. */
#ifndef PC_TESTS_HELD_FILE_H
#define PC_TESTS_HELD_FILE_H

#include "results/row.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Makes these bytes the whole of the one file there is; its path. */
const char *held_file_put(const void *bytes, size_t size);

/* The same of what has the signature of an HDF5 file and a right seal, and nothing else: what is opened as HDF5 is then
 * up to fake_hdf5.h. */
const char *held_file_sealed(void);

/* The bytes' seal (storage/sealed.h). */
enum { HELD_SEAL_SIZE = 35 };
void held_file_seal(const void *bytes, size_t size, char seal[HELD_SEAL_SIZE + 1]);

/* Where what is printed goes: a stream that keeps nothing. */
FILE *held_nowhere(void);

/* Every text of a row that was read ends, and every status and hash has its words. */
void fuzz_check_row(const pc_run_row *row);

#endif
