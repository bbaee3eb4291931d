/* run_list.h: numbers of runs, for messages that name them: how many there are, and the first ranges of them. */
#ifndef PC_SWEEP_RUN_LIST_H
#define PC_SWEEP_RUN_LIST_H

#include <stdint.h>

/* Zero it to start. */
enum { PC_RUN_LIST_RANGES = 8, PC_RUN_LIST_TEXT = 512 };
typedef struct pc_run_list {
    int64_t count, from[PC_RUN_LIST_RANGES], to[PC_RUN_LIST_RANGES];
    int range_count;
} pc_run_list;

/* Adds from .. to, which are behind all that are there; nothing if there are none. */
void pc_run_list_add(pc_run_list *list, int64_t from, int64_t to);

/* " 1-3, 7, ...": the last where there are more than are named. Returns `text`. */
const char *pc_run_list_text(const pc_run_list *list, char text[PC_RUN_LIST_TEXT]);

#endif
