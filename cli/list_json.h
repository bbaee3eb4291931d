/* list_json.h: what `pipecast list --format json` prints: an array with an object for each thing that there is. */
#ifndef PC_CLI_LIST_JSON_H
#define PC_CLI_LIST_JSON_H

#include "storage/text.h"

#include <stdint.h>

/* Zeroed, it has none. */
typedef struct list_json {
    pc_text text;
    int objects, members; /* members of the last object */
} list_json;

/* Begins the next object; then adds its members. A number that is not finite is null. */
void list_json_next(list_json *list);
void list_json_text(list_json *list, const char *name, const char *value);
void list_json_integer(list_json *list, const char *name, int64_t value);
void list_json_number(list_json *list, const char *name, double value);
/* The value is JSON already. */
void list_json_raw(list_json *list, const char *name, const char *value);

/* Prints all of it, and frees it; an exit code. */
int list_json_end(list_json *list);

#endif
