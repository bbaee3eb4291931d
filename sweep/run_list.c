#include "sweep/run_list.h"

#include <inttypes.h>
#include <stdio.h>

void pc_run_list_add(pc_run_list *list, int64_t from, int64_t to) {
    if (from > to) return;
    list->count += to - from + 1;
    if (list->range_count > 0 && list->to[list->range_count - 1] == from - 1) {
        list->to[list->range_count - 1] = to;
    } else if (list->range_count < PC_RUN_LIST_RANGES) {
        list->from[list->range_count] = from;
        list->to[list->range_count++] = to;
    }
}

_Static_assert(PC_RUN_LIST_RANGES * 2 * 24 < PC_RUN_LIST_TEXT, "a number has at most 20 characters");

const char *pc_run_list_text(const pc_run_list *list, char text[PC_RUN_LIST_TEXT]) {
    int64_t named = 0;
    int used = 0;
    text[0] = '\0';
    for (int i = 0; i < list->range_count; i++) {
        int64_t from = list->from[i], to = list->to[i];
        used += snprintf(text + used, PC_RUN_LIST_TEXT - (size_t)used, "%s %" PRId64, i ? "," : "", from);
        if (to > from) used += snprintf(text + used, PC_RUN_LIST_TEXT - (size_t)used, "-%" PRId64, to);
        named += to - from + 1;
    }
    if (named < list->count) snprintf(text + used, PC_RUN_LIST_TEXT - (size_t)used, ", ...");
    return text;
}
