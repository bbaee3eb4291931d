/* block_file.h: files of building blocks (docs/schedules.md says what is in one). */
#ifndef PC_SCENARIOS_BLOCK_FILE_H
#define PC_SCENARIOS_BLOCK_FILE_H

#include "engine/error.h"
#include "models/schedule/given_block.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the file; PC_ERROR_INPUT says file, line, key and what was expected. What only the number of devices shows,
 * such as collisions, pc_given_block_make finds. Free it with pc_given_block_free. */
pc_code pc_block_file_read(const char *path, pc_given_block **block, pc_error *error);

/* The same of a text in memory, which messages call `name`. */
pc_code pc_block_text_read(const char *name, const char *text, pc_given_block **block, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
