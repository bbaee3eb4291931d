/* format.h: the forms in which tables of any kind are written: aligned for people, CSV and JSON for programs. */
#ifndef PC_STORAGE_FORMAT_H
#define PC_STORAGE_FORMAT_H

#include "engine/marks.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_format { PC_FORMAT_TABLE, PC_FORMAT_CSV, PC_FORMAT_JSON } pc_format;

/* "table", "csv", "json"; false if the name is none of them. */
PC_MUST_USE bool pc_format_parse(const char *name, pc_format *format);

#ifdef __cplusplus
}
#endif
#endif
