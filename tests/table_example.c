#include "tests/table_example.h"

#include <math.h>
#include <string.h>

char *write_text(const pc_run_row *rows, int64_t count, pc_format format) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_int_equal(pc_table_write(rows, count, format, stream, NULL), PC_OK);
    fclose(stream);
    return text;
}

pc_run_row example_row(int64_t run, const char *name, const char *schedule, double bubble, double published) {
    pc_run_row row;
    pc_run_row_clear(&row);
    row.run = run;
    snprintf(row.scenario, sizeof row.scenario, "zero-bubble");
    snprintf(row.name, sizeof row.name, "%s", name);
    snprintf(row.schedule, sizeof row.schedule, "%s", schedule);
    snprintf(row.machine, sizeof row.machine, "a100-80g");
    row.gpus = row.pp = 8;
    row.tp = row.dp = row.virtual_pp = 1;
    row.microbatch_size = 6;
    row.microbatches = 24;
    row.global_batch = 144;
    row.seq_len = 1024;
    row.status = PC_RUN_OK;
    row.iteration_s = 1.5228;
    row.samples_per_s_per_gpu = 144 / 1.5228 / 8;
    row.bubble_rate_span = bubble;
    row.bubble_rate_makespan = bubble + 0.01;
    row.published_bubble_rate_span = published;
    row.activation_gib_max = 21.5;
    row.trace_hash = UINT64_C(0x0123456789abcdef);
    return row;
}

void assert_lines_are_neat(const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        assert_true(length <= 120);
        assert_true(length == 0 || text[length - 1] != ' ');
        text += length + 1;
    }
}

pc_run_row cluster_row(int64_t run, const char *name, double mfu) {
    pc_run_row row = example_row(run, name, "1f1b", 0.05, NAN);
    row.iteration_s = 10;
    row.gpus = 512;
    row.tp = 8;
    row.dp = 8;
    row.mfu = row.hfu = mfu;
    row.tflops_per_gpu = row.hardware_tflops_per_gpu = 312 * mfu;
    row.peak_tflops = 312;
    row.exposed_tp_s = 1;
    row.exposed_pp_s = 0.2;
    row.exposed_dp_s = 0.35;
    row.exposed_optimizer_s = 0;
    row.memory_gib_max = 55.125;
    row.zero = row.sequence_parallel = 1;
    return row;
}

void change_results(pc_run_row *row) {
    double *const results[] = {&row->exposed_tp_s,
                               &row->exposed_pp_s,
                               &row->exposed_dp_s,
                               &row->samples_per_s_per_gpu,
                               &row->bubble_rate_span,
                               &row->bubble_rate_makespan,
                               &row->activation_gib_max,
                               &row->memory_gib_max,
                               &row->tflops_per_gpu,
                               &row->mfu,
                               &row->hfu};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) *results[i] *= 0.75;
    row->exposed_optimizer_s += 0.125;
}

pc_code give_row(void *context, int64_t index, pc_run_row *row, pc_error *error) {
    (void)error;
    *row = ((const pc_run_row *)context)[index];
    return PC_OK;
}

char *write_look(pc_run_row *rows, int64_t count, pc_format format, const pc_table_look *look) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_int_equal(pc_table_write_from(give_row, rows, count, format, look, stream, NULL), PC_OK);
    fclose(stream);
    return text;
}
