/* run_list.h: numbers of runs, for messages that name them: how many there are, and the first ranges of them. */
#ifndef PC_CLI_RUN_LIST_H
#define PC_CLI_RUN_LIST_H

#include <stdint.h>
#include <stdio.h>

/* Zero it to start. */
enum { RUN_LIST_RANGES = 8 };
typedef struct run_list {
    int64_t count, from[RUN_LIST_RANGES], to[RUN_LIST_RANGES];
    int range_count;
} run_list;

/* Adds from .. to, which are behind all that are there; nothing where there are none. */
void run_list_add(run_list *x, int64_t from, int64_t to);

/* " 1-3, 7, ...": the last where there are more than are named. */
void run_list_print(const run_list *x, FILE *stream);

#endif
