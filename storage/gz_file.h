/* gz_file.h: a file read piece by piece, whether it is compressed by gzip or not. */
#ifndef PC_STORAGE_GZ_FILE_H
#define PC_STORAGE_GZ_FILE_H

#include "engine/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_gz_file pc_gz_file;

/* PC_ERROR_INPUT with the path if it cannot be opened or is no regular file; `expected` says in messages what it is to
 * be. Close it with pc_gz_close; NULL is fine there. */
pc_code pc_gz_open(const char *path, const char *expected, pc_gz_file **file, pc_error *error);
void pc_gz_close(pc_gz_file *file);

/* As pc_json_read wants it, with the file as context. A compressed file that is damaged or cut off is PC_ERROR_INPUT.
 */
int64_t pc_gz_read(void *file, char *bytes, size_t size, pc_error *error);

/* Goes back to its beginning. */
pc_code pc_gz_rewind(pc_gz_file *file, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
