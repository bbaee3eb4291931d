#include "cli/compare_traces.h"
#include "cli/cli.h"
#include "cli/find_run.h"

#include "calib/trace/kineto.h"
#include "calib/trace/traced_run.h"
#include "engine/alloc.h"
#include "results/beside.h"
#include "results/figures/figure.h"
#include "results/store/store.h"

static pc_code read_traces(const traces_request *r, const pc_trace_record *record, pc_traced_run *run,
                           pc_error *error) {
    const pc_traced_run_request request = {.devices = record->devices, .placement = (int)record->placement};
    pc_rank_trace *traces = pc_alloc((size_t)r->trace_count, sizeof *traces);
    pc_code code = traces ? PC_OK : pc_error_no_memory(error);
    for (int i = 0; i < r->trace_count && !code; i++) code = pc_kineto_read(r->traces[i], &traces[i], error);
    if (!code) code = pc_traced_run_make(traces, r->trace_count, &request, run, error);
    for (int i = 0; traces && i < r->trace_count; i++) pc_rank_trace_free(&traces[i]);
    pc_free(traces);
    return code;
}

static pc_code show(const traces_request *r, const pc_beside *beside, const pc_trace_record *record, const char *name,
                    pc_error *error) {
    pc_code code = r->figure ? pc_beside_draw(beside, record, name, r->is_dark, r->figure, error) : PC_OK;
    if (!code) code = pc_beside_write(beside, record, name, r->format, stdout, error);
    if (code == PC_ERROR_IO && !r->figure) pc_error_place(error, "standard output", 0, "");
    return code;
}

static pc_code compare_run(const traces_request *r, const pc_results_reader *reader, pc_error *error) {
    const pc_run_row *row = NULL;
    pc_trace_record record = {0};
    pc_traced_run run = {.pass_count = 0};
    pc_beside beside = {.pass_count = 0};
    pc_code code = find_traced_run(reader, r->results, r->run, NULL, &row, &record, error);
    if (code) return code;
    code = read_traces(r, &record, &run, error);
    if (!code) code = pc_beside_make(&record, &run, r->iteration - 1, &beside, error);
    if (!code) code = show(r, &beside, &record, row->name, error);
    pc_beside_free(&beside);
    pc_traced_run_free(&run);
    pc_trace_record_free(&record);
    return code;
}

int compare_traces(const traces_request *r) {
    pc_error error = {0};
    pc_results_reader *reader = NULL;
    pc_code code = r->figure ? pc_figure_check_path(r->figure, &error) : PC_OK;
    if (!code) code = pc_results_open(r->results, &reader, &error);
    if (!code) code = compare_run(r, reader, &error);
    pc_results_close(reader);
    return code ? report(&error) : finish_output(EXIT_DONE);
}
