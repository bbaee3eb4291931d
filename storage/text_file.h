/* text_file.h: a whole file of text, read into memory. */
#ifndef PC_STORAGE_TEXT_FILE_H
#define PC_STORAGE_TEXT_FILE_H

#include "engine/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_TEXT_FILE_MOST = 1 << 26 }; /* bytes: a million rows of a table */

/* All of it, terminated; freed by the caller. `expected` says in messages what the text is to be. PC_ERROR_INPUT with
 * the path where it cannot be opened, has PC_TEXT_FILE_MOST bytes or more, or has a NUL in it. */
pc_code pc_text_file_read(const char *path, const char *expected, char **content, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
