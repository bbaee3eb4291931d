#include "cli/plan_job.h"

#include "models/schedule/generate.h"
#include "results/export.h"
#include "results/store/store.h"
#include "storage/replace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool ends_in(const char *text, const char *ending) {
    size_t length = strlen(text), of_ending = strlen(ending);
    return length > of_ending && strcmp(text + length - of_ending, ending) == 0;
}

bool plan_job_is_file(const char *output) {
    return !ends_in(output, ".h5") && !ends_in(output, ".hdf5");
}

/* Where the ending of a file's name begins. */
static size_t stem_of(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return dot && dot > name ? (size_t)(dot - path) : strlen(path);
}

pc_code plan_job_name(const char *output, int64_t index, plan_job *job, pc_error *error) {
    char number[24] = "";
    const int stem = (int)stem_of(output);
    if (index > 0) snprintf(number, sizeof number, "-%" PRId64, index + 1);
    int length = snprintf(job->path, sizeof job->path, "%.*s%s%s", stem, output, number, output + stem);
    int of_csv = snprintf(job->csv, sizeof job->csv, "%.*s%s.csv", stem, output, number);
    if (length < (int)sizeof job->path && of_csv < (int)sizeof job->csv && strcmp(job->path, job->csv) != 0)
        return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "-o: %.80s: is no name for a job's file; expected one such as job.toml",
                        output);
}

pc_code plan_job_check(const char *output, pc_error *error) {
    plan_job first = {.order = NULL};
    pc_code code = plan_job_name(output, 0, &first, error);
    if (!code) code = pc_replacement_probe(first.path, error);
    return code ? code : pc_replacement_probe(first.csv, error);
}

/* The record borrows all from the detail. */
static pc_trace_record record_of(const pc_run_spec *spec, const pc_run_detail *detail) {
    return (pc_trace_record){.devices = spec->devices,
                             .microbatches = spec->microbatches,
                             .chunks = spec->chunks,
                             .placement = pc_generator_placement(spec->generator, spec->chunks, spec->slices),
                             .replay = detail->replay};
}

pc_code plan_job_take_order(const pc_run_spec *spec, const pc_run_row *row, const pc_run_detail *detail, plan_job *job,
                            pc_error *error) {
    size_t size = 0;
    const pc_trace_record record = record_of(spec, detail);
    FILE *stream = spec->devices > 1 ? open_memstream(&job->order, &size) : NULL;
    if (spec->devices > 1 && !stream) return pc_error_no_memory(error);
    pc_code code = stream ? pc_export_torch_csv(row, &record, stream, error) : PC_OK;
    if (stream && fclose(stream) != 0 && !code) code = pc_error_no_memory(error);
    const char *slash = strrchr(job->csv, '/');
    if (!code && job->order) job->csv_name = slash ? slash + 1 : job->csv;
    return code == PC_ERROR_INPUT ? PC_OK : code;
}

pc_code plan_job_save(const plan_job *job, const pc_text *text, pc_error *error) {
    pc_code code = job->csv_name ? pc_replacement_put(job->csv, job->order, strlen(job->order), error) : PC_OK;
    return code ? code : pc_replacement_put(job->path, text->data, text->size, error);
}

void plan_job_free(plan_job *job) {
    free(job->order);
    job->order = NULL;
}
