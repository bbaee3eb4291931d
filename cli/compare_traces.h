/* compare_traces.h: `pipecast compare RESULTS.h5 TRACE...`: a forecast beside what was measured. */
#ifndef PC_CLI_COMPARE_TRACES_H
#define PC_CLI_COMPARE_TRACES_H

#include "results/table.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct traces_request {
    const char *results, *run, *figure; /* run NULL: the first that kept its trace; figure NULL: none */
    const char **traces;
    int trace_count;
    int64_t iteration; /* from 1; 0: the whole one of median length */
    bool is_dark;      /* of the figure */
    pc_format format;
} traces_request;

/* Reads, compares, prints and draws; what the command ends with. */
int compare_traces(const traces_request *request);

#endif
