/* import.h: what `pipecast import` was asked for; a function a format, in import_FORMAT.c. */
#ifndef PC_CLI_IMPORT_H
#define PC_CLI_IMPORT_H

#include "storage/text.h"

#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

/* What the command line said; what a format has no use for it refuses by `takes`. */
typedef struct import_request {
    const char **paths;
    int path_count;
    const char *output;    /* NULL: standard output */
    int64_t devices, skip; /* -1: not given, as `placement` */
    int placement;         /* a pc_placement */
    bool is_quiet;
} import_request;

/* Adds to `text` what is to be written; says what it has to say on standard error. */
typedef pc_code import_function(const import_request *request, pc_text *text, pc_error *error);

/* Of one file; from scenarios/import/import.h. */
import_function import_deepspeed, import_hf, import_megatron, import_nemo;
import_function import_kineto;

#endif
