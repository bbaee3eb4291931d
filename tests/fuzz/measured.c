/* Fuzz target: tables of measured runs (scenarios/measured.h): every row is a run, whole, or refused with its line; as
 * a case it is one line of YAML. */
#include "scenarios/measured.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

#include <math.h>
#include <string.h>

static void check_bad(void *context, const pc_error *error) {
    (void)context;
    fuzz_check_error(error->code, error);
    fuzz_require(error->code == PC_ERROR_INPUT && error->line > 0, "a bad row has its line");
}

static void check_run(const pc_measured_run *run) {
    bool is_whole = run->gpus > 0 && run->global_batch > 0 && run->microbatch_size > 0 && run->seq_len > 0;
    fuzz_require(run->missing[0] || (is_whole && run->model[0] && run->machine[0] && run->schedule[0]),
                 "a run of which nothing is missing is whole");
    fuzz_require(run->tp >= 1 && run->pp >= 1 && run->zero >= 0 && run->zero <= 3, "a cut is one");
    fuzz_require(isnan(run->step_s) || run->step_s > 0.0, "a measured time is above zero");
}

static void check_case(const pc_measured *measured, int64_t row, const pc_measured_run *run) {
    pc_text yaml = {0};
    pc_measured_add_case(measured, row, run, &yaml);
    fuzz_require(!yaml.failed && strchr(yaml.data, '\n') == yaml.data + yaml.size - 1, "a case is one line");
    pc_text_free(&yaml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pc_measured measured;
    pc_error error = {0};
    pc_number_scope scope = {0};
    memory_file_set(data, size);
    fuzz_check_error(pc_measured_read(MEMORY_FILE, check_bad, NULL, &measured, &error), &error);
    fuzz_require(pc_number_scope_enter(&scope), "memory is not short");
    for (int64_t row = 0; !error.code && row < measured.row_count; row++) {
        pc_measured_run run;
        pc_error why = {0};
        if (pc_measured_run_of(&measured, row, &run, &why)) {
            check_bad(NULL, &why);
            continue;
        }
        check_run(&run);
        if (!run.missing[0]) check_case(&measured, row, &run);
    }
    pc_number_scope_leave(&scope);
    pc_measured_free(&measured);
    return 0;
}
