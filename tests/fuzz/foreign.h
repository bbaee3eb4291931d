/* foreign.h: the common part of targets that import another program's configuration (scenarios/import/import.h). */
#ifndef PC_TESTS_FUZZ_FOREIGN_H
#define PC_TESTS_FUZZ_FOREIGN_H

#include "scenarios/import/import.h"

#include <stddef.h>
#include <stdint.h>

/* Imports the input; what is accepted is a YAML text of known keys only, which reads as a setting or is refused. */
void fuzz_foreign(pc_import_format format, const uint8_t *data, size_t size);

#endif
