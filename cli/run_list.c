#include "cli/run_list.h"

#include <inttypes.h>

void run_list_add(run_list *x, int64_t from, int64_t to) {
    if (from > to) return;
    x->count += to - from + 1;
    if (x->range_count > 0 && x->to[x->range_count - 1] == from - 1) {
        x->to[x->range_count - 1] = to;
    } else if (x->range_count < RUN_LIST_RANGES) {
        x->from[x->range_count] = from;
        x->to[x->range_count++] = to;
    }
}

void run_list_print(const run_list *x, FILE *stream) {
    int64_t named = 0;
    for (int i = 0; i < x->range_count; i++) {
        fprintf(stream, "%s %" PRId64, i ? "," : "", x->from[i]);
        if (x->to[i] > x->from[i]) fprintf(stream, "-%" PRId64, x->to[i]);
        named += x->to[i] - x->from[i] + 1;
    }
    if (named < x->count) fprintf(stream, ", ...");
}
