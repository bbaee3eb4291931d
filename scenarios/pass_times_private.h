/* pass_times_private.h: a file of measured passes while it is read. Private to scenarios/pass_times_*.c. */
#ifndef PC_SCENARIOS_PASS_TIMES_PRIVATE_H
#define PC_SCENARIOS_PASS_TIMES_PRIVATE_H

#include "models/schedule/pass_times.h"

#include <stdbool.h>

typedef struct pc_pass_row {
    int64_t stage, chunk; /* -1: not given */
    pc_part_times part;
    int64_t held_bytes;
    unsigned line; /* 0: none */
} pc_pass_row;

typedef struct pc_pass_rows {
    pc_pass_row *rows; /* owned */
    int64_t count, room;
    int64_t placement; /* -1: not given */
    pc_time transfer_ps;
    double transfer_scatter;
    int64_t transfer_bytes;
} pc_pass_rows;

/* Nothing given yet; and another row of which nothing is. */
pc_pass_rows pc_pass_rows_none(void);
pc_code pc_pass_rows_add(pc_pass_rows *rows, unsigned line, pc_error *error);
void pc_pass_rows_free(pc_pass_rows *rows);

/* Takes what stands under a key, or in a column: of the last row, or of all (transfer, placement). The message lacks
 * its place. */
pc_code pc_pass_rows_take(pc_pass_rows *rows, const char *key, const char *text, pc_error *error);

/* Whether the key is of all of the file, and not of a row. */
bool pc_pass_key_is_of_all(const char *key);

/* The rows in their places. `name` is the file's, for messages. */
pc_code pc_pass_rows_place(const pc_pass_rows *rows, const char *name, pc_pass_times *times, pc_error *error);

#endif
