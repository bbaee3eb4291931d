#include "results/columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN(field, kind, unit_text, text)                                                                           \
    {                                                                                                                  \
        .name = #field, .type = PC_COLUMN_##kind, .offset = offsetof(pc_run_row, field),                               \
        .size = sizeof((pc_run_row *)0)->field, .unit = unit_text, .description = text                                 \
    }

/* A quantile and the bounds of its confidence interval. */
#define QUANTILE(field, unit_end, unit_text, text)                                                                     \
    COLUMN(field##unit_end, REAL, unit_text, text),                                                                    \
        COLUMN(field##_low##unit_end, REAL, unit_text, "lower bound of its 95% confidence interval"),                  \
        COLUMN(field##_high##unit_end, REAL, unit_text, "upper bound of its 95% confidence interval")

static const pc_column columns[] = {
    COLUMN(run, INTEGER, "1", "number of the run in the whole list, from 1"),
    COLUMN(scenario, TEXT, "", "name of the scenario"),
    COLUMN(model, TEXT, "", "name of the model"),
    COLUMN(machine, TEXT, "", "name of the machine"),
    COLUMN(gpus, INTEGER, "1", "GPUs in all: tp * pp * dp"),
    COLUMN(tp, INTEGER, "1", "tensor-parallel ranks"),
    COLUMN(pp, INTEGER, "1", "pipeline stages"),
    COLUMN(dp, INTEGER, "1", "data-parallel replicas"),
    COLUMN(virtual_pp, INTEGER, "1", "chunks: model parts on each pipeline stage"),
    COLUMN(schedule, TEXT, "", "name of the pipeline schedule"),
    COLUMN(microbatch_size, INTEGER, "1", "sequences in a microbatch"),
    COLUMN(microbatches, INTEGER, "1", "microbatches of a pipeline in an iteration"),
    COLUMN(global_batch, INTEGER, "1", "sequences in an iteration, over all replicas"),
    COLUMN(seq_len, INTEGER, "1", "tokens in a sequence"),
    COLUMN(recompute, TEXT, "", "what the backward pass recomputes"),
    COLUMN(status, STATUS, "", "ok, out_of_memory or infeasible"),
    COLUMN(iteration_s, REAL, "s", "time of one iteration"),
    COLUMN(samples_per_s_per_gpu, REAL, "1/s", "sequences a second and GPU"),
    COLUMN(tflops_per_gpu, REAL, "TFLOP/s", "model FLOPs (no recomputation) a second and GPU"),
    COLUMN(mfu, REAL, "1", "model FLOPs utilisation: model FLOPs a second over the peak rate"),
    COLUMN(hfu, REAL, "1", "hardware FLOPs utilisation: FLOPs with recomputation a second over the peak rate"),
    COLUMN(bubble_rate_span, REAL, "1", "1 - work / longest span of a stage, from its first start to its last end"),
    COLUMN(bubble_rate_makespan, REAL, "1", "1 - work / makespan over all stages"),
    COLUMN(activation_gib_max, REAL, "GiB", "peak activation memory, the most over stages"),
    COLUMN(memory_gib_max, REAL, "GiB", "peak memory in all, the most over stages"),
    COLUMN(name, TEXT, "", "name of the run, unique in its scenario"),
    COLUMN(published_bubble_rate_span, REAL, "1",
           "bubble rate over the longest span that others published for this run"),
    COLUMN(published_samples_per_s_per_gpu, REAL, "1/s",
           "sequences a second and GPU that others published for this run"),
    COLUMN(published_iteration_s, REAL, "s", "time of one iteration that others published for this run"),
    COLUMN(trace_hash, HASH, "", "hash of the start and end of every pass, 16 hexadecimal digits"),
    COLUMN(message, TEXT, "", "why the status is not ok"),
    COLUMN(tokens_per_s_per_gpu, REAL, "1/s", "tokens a second and GPU"),
    COLUMN(hardware_tflops_per_gpu, REAL, "TFLOP/s", "FLOPs with recomputation a second and GPU"),
    COLUMN(peak_tflops, REAL, "TFLOP/s", "the peak rate of a GPU that MFU and HFU divide by: 16-bit, dense"),
    COLUMN(exposed_tp_s, REAL, "s", "of the iteration, waiting for collectives of tensor parallelism"),
    COLUMN(exposed_pp_s, REAL, "s", "of the iteration, waiting for transfers between stages"),
    COLUMN(exposed_dp_s, REAL, "s", "of the iteration, waiting for parameters and gradients of data parallelism"),
    COLUMN(exposed_optimizer_s, REAL, "s", "of the iteration, the optimizer step and the gradient norm"),
    COLUMN(exposed_bubble_s, REAL, "s", "of the iteration, the rest in which the busiest stage does nothing"),
    COLUMN(parameters_gib_max, REAL, "GiB", "parameters on a GPU, the most over stages"),
    COLUMN(gradients_gib_max, REAL, "GiB", "gradients on a GPU, the most over stages"),
    COLUMN(optimizer_gib_max, REAL, "GiB", "optimizer state on a GPU, the most over stages"),
    COLUMN(buffers_gib_max, REAL, "GiB", "buffers on a GPU, the most over stages"),
    COLUMN(memory_peak_s, REAL, "s", "when the fullest stage reaches its peak of memory first"),
    COLUMN(standard_error_s, REAL, "s", "standard error of iteration_s, as if all costs erred the same way"),
    COLUMN(zero, INTEGER, "1",
           "what is sharded over data parallelism: 0 nothing, 1 optimizer, 2 gradients, 3 parameters"),
    COLUMN(sequence_parallel, INTEGER, "1", "1 where norms and dropout are cut along the sequence, 0 where not"),
    COLUMN(published_mfu, REAL, "1", "model FLOPs utilisation that others published for this run"),
    COLUMN(published_tflops_per_gpu, REAL, "TFLOP/s",
           "model FLOPs a second and GPU that others published for this run"),
    COLUMN(published_hardware_tflops_per_gpu, REAL, "TFLOP/s",
           "FLOPs with recomputation a second and GPU that others published for this run"),
    COLUMN(published_activation_gib, REAL, "GiB", "peak activation memory that others published for this run"),
    COLUMN(sent_tp_gib, REAL, "GiB", "what a GPU sends in an iteration for tensor parallelism, the mean over GPUs"),
    COLUMN(sent_pp_gib, REAL, "GiB", "the same for transfers between stages"),
    COLUMN(sent_dp_gib, REAL, "GiB", "the same for data parallelism: parameters and gradients"),
    COLUMN(link_utilisation_max, REAL, "1",
           "how much of the iteration the busiest link is filled, where links are shared"),
    COLUMN(profile, TEXT, "", "file of the measured costs, as the scenario names it; empty: the roofline"),
    COLUMN(profile_hash, HASH, "", "hash of the profile, 16 hexadecimal digits"),
    COLUMN(pass_f_s, REAL, "s", "time of one F of a chunk, the longest over stages and chunks"),
    COLUMN(pass_b_s, REAL, "s", "the same of B; of BW where B and W are one pass"),
    COLUMN(pass_w_s, REAL, "s", "the same of W"),
    COLUMN(model_parameters, REAL, "1", "parameters of the model, its vocabulary padded for tp ranks"),
    COLUMN(published_pass_f_s, REAL, "s", "time of one F of a chunk that others published for this run"),
    COLUMN(published_memory_gib, REAL, "GiB", "peak memory in all that others published for this run"),
    COLUMN(published_best_mfu, REAL, "1", "the best MFU that others published over a sweep of which this run is one"),
    COLUMN(memory_limit_gib, REAL, "GiB",
           "room on the device that has least: for activations where times are given, for everything on clusters"),
    COLUMN(plan, TEXT, "", "what a schedule that searches was made for: the costs, or equal times of F, B and W"),
    COLUMN(key, TEXT, "", "hash of all that decides the result: runs of one key have one, 32 hexadecimal digits"),
    COLUMN(gpu_hours_per_million_tokens, REAL, "h", "hours of a GPU that a million tokens take"),
    COLUMN(cost_per_million_tokens, REAL, "1", "the same at the price of a GPU-hour, in the price's currency"),
    COLUMN(samples, INTEGER, "1", "iterations, and jobs, that were sampled with what makes a day bad"),
    COLUMN(jitter, REAL, "1", "relative standard deviation of passes in samples, where it is a number"),
    COLUMN(gpu_jitter, REAL, "1", "relative standard deviation of GPUs' speeds in samples"),
    COLUMN(link_jitter, REAL, "1", "relative standard deviation of transfers in samples"),
    COLUMN(slow_gpus, INTEGER, "1", "slow GPUs, at random places"),
    COLUMN(slow_stage, INTEGER, "1", "the stage, from 0, that is slow in one replica"),
    COLUMN(slow_factor, REAL, "1", "how many times as long slow GPUs take"),
    COLUMN(bad_links, INTEGER, "1", "bad links, at random places"),
    COLUMN(bad_factor, REAL, "1", "what is left of a bad link's bandwidth"),
    COLUMN(other_nodes, INTEGER, "1", "nodes with another GPU"),
    COLUMN(mtbf_s, REAL, "s", "mean time between failures of one GPU"),
    COLUMN(checkpoint_s, REAL, "s", "how long training stands still for a checkpoint"),
    COLUMN(spare_nodes, INTEGER, "1", "nodes beyond those in use"),
    COLUMN(iteration_good_s, REAL, "s", "time of the iteration on a good day, by the costs of samples"),
    COLUMN(iteration_mean_s, REAL, "s", "time of an iteration, the mean over samples"),
    COLUMN(iteration_mean_error_s, REAL, "s", "standard error of iteration_mean_s"),
    COLUMN(slowdown_mean, REAL, "1", "iteration_mean_s over iteration_good_s"),
    QUANTILE(iteration_p05, _s, "s", "time of an iteration, the 5% quantile over samples"),
    QUANTILE(iteration_p50, _s, "s", "time of an iteration, the median over samples"),
    QUANTILE(iteration_p95, _s, "s", "time of an iteration, the 95% quantile over samples"),
    QUANTILE(iteration_p99, _s, "s", "time of an iteration, the 99% quantile over samples"),
    COLUMN(goodput_mean, REAL, "1",
           "part of a job's time that makes lasting progress at a good day's speed, the mean over jobs"),
    COLUMN(goodput_mean_error, REAL, "1", "standard error of goodput_mean"),
    QUANTILE(goodput_p05, , "1", "goodput, the 5% quantile over jobs"),
    QUANTILE(goodput_p50, , "1", "goodput, the median over jobs"),
    QUANTILE(goodput_p95, , "1", "goodput, the 95% quantile over jobs"),
    COLUMN(failures_mean, REAL, "1", "failures of a job, the mean over jobs"),
    COLUMN(checkpoint_interval_s, REAL, "s", "work between two checkpoints, in whole iterations"),
    COLUMN(layout, TEXT, "",
           "layers over model parts: even, ends, own, or a list of each part's, as --layout takes it"),
    COLUMN(parameters, REAL, "1", "parameters of the model, however it is cut: as `pipecast list models` counts them"),
    COLUMN(engine, TEXT, "", "how the run was worked out: paths, flows (events for these alone) or events (for all)"),
};

enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

const pc_column *pc_columns(int *count) {
    *count = COLUMN_COUNT;
    return columns;
}

const pc_column *pc_column_find(const char *name) {
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (columns[i].name[0] == name[0] && strcmp(columns[i].name, name) == 0)
            return &columns[i]; /* for every cell */
    return NULL;
}

static const char *field(const pc_column *column, const pc_run_row *row) {
    return (const char *)row + column->offset;
}

static void clear_field(const pc_column *column, pc_run_row *row) {
    const int64_t no_integer = -1;
    const double no_real = NAN;
    char *place = (char *)row + column->offset;
    memset(place, 0, column->size);
    if (column->type == PC_COLUMN_INTEGER || column->type == PC_COLUMN_STATUS)
        memcpy(place, &no_integer, sizeof no_integer);
    else if (column->type == PC_COLUMN_REAL)
        memcpy(place, &no_real, sizeof no_real);
}

void pc_run_row_clear(pc_run_row *row) {
    memset(row, 0, sizeof *row);
    for (int i = 0; i < COLUMN_COUNT; i++) clear_field(&columns[i], row);
}

int64_t pc_column_integer(const pc_column *column, const pc_run_row *row) {
    int64_t value;
    memcpy(&value, field(column, row), sizeof value);
    return value;
}

double pc_column_real(const pc_column *column, const pc_run_row *row) {
    double value;
    memcpy(&value, field(column, row), sizeof value);
    return value;
}

static uint64_t hash_value(const pc_column *column, const pc_run_row *row) {
    uint64_t value;
    memcpy(&value, field(column, row), sizeof value);
    return value;
}

static bool is_status(int64_t value) {
    return value >= PC_RUN_OK && value <= PC_RUN_INFEASIBLE;
}

bool pc_column_defined(const pc_column *column, const pc_run_row *row) {
    switch (column->type) {
    case PC_COLUMN_INTEGER:
        return pc_column_integer(column, row) != -1;
    case PC_COLUMN_REAL:
        return isfinite(pc_column_real(column, row));
    case PC_COLUMN_TEXT:
        return *field(column, row) != '\0';
    case PC_COLUMN_STATUS:
        return is_status(pc_column_integer(column, row));
    case PC_COLUMN_HASH:
        return hash_value(column, row) != 0;
    }
    return false;
}

void pc_column_text(const pc_column *column, const pc_run_row *row, char *text, size_t size) {
    text[0] = '\0';
    if (!pc_column_defined(column, row)) return;
    if (column->type == PC_COLUMN_TEXT)
        snprintf(text, size, "%.*s", (int)strnlen(field(column, row), column->size), field(column, row));
    else if (column->type == PC_COLUMN_STATUS)
        snprintf(text, size, "%s", pc_run_status_name((pc_run_status)pc_column_integer(column, row)));
    else
        snprintf(text, size, "%016" PRIx64, hash_value(column, row));
}

static bool set_status(const pc_column *column, pc_run_row *row, const char *text) {
    for (int64_t status = PC_RUN_OK; status <= PC_RUN_INFEASIBLE; status++) {
        if (strcmp(pc_run_status_name((pc_run_status)status), text) != 0) continue;
        memcpy((char *)row + column->offset, &status, sizeof status);
        return true;
    }
    return false;
}

static bool set_hash(const pc_column *column, pc_run_row *row, const char *text) {
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16) return false;
    uint64_t value = strtoull(text, NULL, 16);
    memcpy((char *)row + column->offset, &value, sizeof value);
    return true;
}

bool pc_column_set_text(const pc_column *column, pc_run_row *row, const char *text) {
    size_t length = strlen(text);
    if (length == 0) return clear_field(column, row), true;
    if (column->type == PC_COLUMN_STATUS) return set_status(column, row, text);
    if (column->type == PC_COLUMN_HASH) return set_hash(column, row, text);
    if (length >= column->size) return false;
    clear_field(column, row);
    memcpy((char *)row + column->offset, text, length);
    return true;
}
