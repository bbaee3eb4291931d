#include "api/handles.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)PIPECAST_ERROR_INPUT == (int)PC_ERROR_INPUT && (int)PIPECAST_OK == (int)PC_OK &&
                   (int)PIPECAST_ERROR_NO_MEMORY == (int)PC_ERROR_NO_MEMORY &&
                   (int)PIPECAST_ERROR_IO == (int)PC_ERROR_IO && (int)PIPECAST_ERROR_STOPPED == (int)PC_ERROR_STOPPED,
               "codes are what they are inside");
_Static_assert(sizeof(pipecast_error) == 2048, "it never changes its size");

int api_answer(pc_code code, const pc_error *why, pipecast_error *error) {
    if (!code || !error) return (int)code;
    memset(error, 0, sizeof *error);
    error->code = (int)code;
    error->line = why->line;
    snprintf(error->file, sizeof error->file, "%s", pc_error_part_of(why, PC_ERROR_PART_FILE));
    snprintf(error->key, sizeof error->key, "%s", pc_error_part_of(why, PC_ERROR_PART_KEY));
    snprintf(error->expected, sizeof error->expected, "%s", pc_error_part_of(why, PC_ERROR_PART_EXPECTED));
    snprintf(error->message, sizeof error->message, "%s", why->message);
    return (int)code;
}
