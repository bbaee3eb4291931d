#include "results/columns.h"

#include <math.h>
#include <string.h>

enum {
    NEVER = PC_SACRIFICE_NEVER,
    WAITS = PC_SACRIFICE_WAITS,
    TOKENS = PC_SACRIFICE_TOKENS,
    BESIDE_COMPARED = PC_SACRIFICE_BESIDE_COMPARED,
    COMPARED = PC_SACRIFICE_COMPARED,
    NARROW = PC_SACRIFICE_NARROW,
};

static const char *const statuses[] = {"ok", "out_of_memory", "infeasible", NULL};

_Static_assert(sizeof statuses / sizeof *statuses == PC_RUN_INFEASIBLE + 2, "a word for every status");
_Static_assert(sizeof(pc_run_status) == sizeof(int32_t), "a choice is a whole number of 32 bits");

/* What a column is called, of which type, its unit, and what it means; behind that how tables show it, if not only
 * where it is asked for. */
#define COLUMN(member, kind, unit_text, ...)                                                                           \
    {                                                                                                                  \
        .field.name = #member, .field.type = PC_FIELD_##kind, .field.place = offsetof(pc_run_row, member),             \
        .field.size = sizeof(((pc_run_row *)NULL)->member), .field.is_optional = true, .field.unit = unit_text,        \
        .field.description = __VA_ARGS__                                                                               \
    }

/* A fraction of one, which charts show in percent. */
#define FRACTION(member, ...) COLUMN(member, NUMBER, "1", __VA_ARGS__, .is_fraction = true)

/* Of what the fullest GPU's memory is made; together memory_gib_max. */
#define KIND(column_name, kind, text)                                                                                  \
    {                                                                                                                  \
        .field.name = column_name, .field.type = PC_FIELD_NUMBER,                                                      \
        .field.place = offsetof(pc_run_row, memory_gib_of[PC_MEMORY_##kind]), .field.size = sizeof(double),            \
        .field.is_optional = true, .field.unit = "GiB", .field.description = text                                      \
    }

/* A quantile and the bounds of its confidence interval. */
#define QUANTILE(member, unit_end, unit_text, is, ...)                                                                 \
    COLUMN(member##unit_end, NUMBER, unit_text, __VA_ARGS__, .is_fraction = is),                                       \
        COLUMN(member##_low##unit_end, NUMBER, unit_text, "lower bound of its 95% confidence interval",                \
               .is_fraction = is),                                                                                     \
        COLUMN(member##_high##unit_end, NUMBER, unit_text, "upper bound of its 95% confidence interval",               \
               .is_fraction = is)

/* Places are tens, so that a new column finds one between two. */
#define SHOWN(at, head, below, how, when, order)                                                                       \
    .shown_at = at, .top = head, .bottom = below, .style = PC_STYLE_##how, .shown = PC_SHOWN_##when, .sacrifice = order

static const pc_column columns[] = {
    COLUMN(run, INT64, "1", "number of the run in the whole list, from 1", SHOWN(10, "run", "", INTEGER, ALWAYS, NEVER),
           .tells_runs = true),
    COLUMN(scenario, TEXT, "", "name of the scenario", SHOWN(20, "scenario", "", TEXT, VARYING, 5)),
    COLUMN(model, TEXT, "", "name of the model", SHOWN(40, "model", "", TEXT, UNNAMED, NARROW + 9)),
    COLUMN(machine, TEXT, "", "name of the machine", SHOWN(60, "machine", "", TEXT, VARYING, NARROW + 9)),
    COLUMN(gpus, INT64, "1", "GPUs in all: tp * cp * pp * dp", SHOWN(80, "GPUs", "", INTEGER, VARYING, NARROW + 8),
           .label = "GPUs"),
    COLUMN(tp, INT64, "1", "tensor-parallel ranks", SHOWN(90, "tp", "", INTEGER, VARYING, NARROW + 8)),
    COLUMN(pp, INT64, "1", "pipeline stages", SHOWN(100, "pp", "", INTEGER, VARYING, NARROW + 8)),
    COLUMN(dp, INT64, "1", "data-parallel replicas", SHOWN(110, "dp", "", INTEGER, VARYING, NARROW + 4)),
    COLUMN(virtual_pp, INT64, "1", "chunks: model parts on each pipeline stage",
           SHOWN(120, "chunks", "", INTEGER, UNNAMED, NARROW + 4), .label = "chunks"),
    COLUMN(schedule, TEXT, "", "name of the pipeline schedule", SHOWN(70, "schedule", "", TEXT, UNNAMED, NARROW + 9)),
    COLUMN(microbatch_size, INT64, "1", "sequences in a microbatch",
           SHOWN(130, "microbatch", "size", INTEGER, UNNAMED, NARROW + 3)),
    COLUMN(microbatches, INT64, "1", "microbatches of a pipeline in an iteration",
           SHOWN(140, "micro-", "batches", INTEGER, VARYING, NARROW + 1)),
    COLUMN(global_batch, INT64, "1", "sequences in an iteration, over all replicas",
           SHOWN(150, "global", "batch", INTEGER, UNNAMED, 7)),
    COLUMN(seq_len, INT64, "1", "tokens in a sequence",
           SHOWN(160, "sequence", "[tokens]", INTEGER, UNNAMED, NARROW + 3)),
    COLUMN(recompute, TEXT, "", "what the backward pass recomputes",
           SHOWN(170, "recompute", "", TEXT, UNNAMED, NARROW + 3)),
    COLUMN(status, CHOICE, "", "ok, out_of_memory or infeasible", SHOWN(500, "status", "", TEXT, FAILED, NEVER),
           .field.choices = statuses, .field.stored_size = 16),
    COLUMN(iteration_s, NUMBER, "s", "time of one iteration",
           SHOWN(200, "iteration", "[s]", FOUR_DIGITS, ALWAYS, NEVER)),
    COLUMN(samples_per_s_per_gpu, NUMBER, "1/s", "sequences a second and GPU",
           SHOWN(290, "samples/s", "per GPU", FOUR_DIGITS, ALIKE_ABOVE, 3), .instead = "mfu"),
    COLUMN(tflops_per_gpu, NUMBER, "TFLOP/s", "model FLOPs (no recomputation) a second and GPU",
           SHOWN(310, "TFLOP/s", "per GPU", FOUR_DIGITS, ALIKE_ABOVE, 2)),
    FRACTION(mfu, "model FLOPs utilisation: model FLOPs a second over the peak rate",
             SHOWN(360, "MFU", "", RATE, ALIKE_ABOVE, NARROW + 12)),
    FRACTION(hfu, "hardware FLOPs utilisation: FLOPs with recomputation a second over the peak rate",
             SHOWN(380, "HFU", "", RATE, ALIKE_ABOVE, 1)),
    FRACTION(bubble_rate_span, "1 - work / longest span of a stage, from its first start to its last end",
             SHOWN(430, "bubble", "(span)", RATE, ALIKE_ABOVE, BESIDE_COMPARED), .instead = "mfu"),
    FRACTION(bubble_rate_makespan, "1 - work / makespan over all stages",
             SHOWN(450, "bubble", "(makespan)", RATE, ALIKE_ABOVE, 4)),
    COLUMN(activation_gib_max, NUMBER, "GiB", "peak activation memory, the most over stages",
           SHOWN(460, "activ.", "max [GiB]", GIB, ALIKE_ABOVE, 6), .instead = "memory_gib_max"),
    COLUMN(memory_gib_max, NUMBER, "GiB", "peak memory in all, the most over stages",
           SHOWN(480, "memory", "max [GiB]", GIB, ALIKE_ABOVE, NARROW + 11)),
    COLUMN(name, TEXT, "", "name of the run, unique in its scenario", SHOWN(30, "name", "", TEXT, ALWAYS, NEVER)),
    FRACTION(published_bubble_rate_span, "bubble rate over the longest span that others published for this run",
             SHOWN(440, "published", "(span)", RATE, ALWAYS, NARROW + 5), .of = "bubble_rate_span"),
    COLUMN(published_samples_per_s_per_gpu, NUMBER, "1/s",
           "sequences a second and GPU that others published for this run",
           SHOWN(300, "published", "", FOUR_DIGITS, ALWAYS, 3), .of = "samples_per_s_per_gpu"),
    COLUMN(published_iteration_s, NUMBER, "s", "time of one iteration that others published for this run",
           SHOWN(270, "published", "[s]", FOUR_DIGITS, ALWAYS, COMPARED), .of = "iteration_s"),
    COLUMN(trace_hash, HASH, "", "hash of the start and end of every pass, 16 hexadecimal digits", .is_of_times = true),
    COLUMN(message, TEXT, "", "why the status is not ok"),
    COLUMN(tokens_per_s_per_gpu, NUMBER, "1/s", "tokens a second and GPU",
           SHOWN(280, "tokens/s", "per GPU", FOUR_DIGITS, ALIKE_ABOVE, TOKENS)),
    COLUMN(hardware_tflops_per_gpu, NUMBER, "TFLOP/s", "FLOPs with recomputation a second and GPU",
           SHOWN(330, "hardware", "TFLOP/s", FOUR_DIGITS, COMPARED, 9)),
    COLUMN(peak_tflops, NUMBER, "TFLOP/s",
           "the peak rate of a GPU that MFU and HFU divide by: 16-bit, dense, whatever the precision",
           SHOWN(350, "peak", "TFLOP/s", PLAIN, VARYING, NARROW), .label = "peak TFLOP/s"),
    COLUMN(exposed_tp_s, NUMBER, "s", "of the iteration, waiting for collectives of tensor parallelism",
           SHOWN(390, "TP", "wait", SHARE, ALIKE_ABOVE, WAITS), .share_of = "iteration_s"),
    COLUMN(exposed_pp_s, NUMBER, "s", "of the iteration, waiting for transfers between stages",
           SHOWN(400, "PP", "wait", SHARE, ALIKE_ABOVE, WAITS), .share_of = "iteration_s"),
    COLUMN(exposed_dp_s, NUMBER, "s", "of the iteration, waiting for parameters and gradients of data parallelism",
           SHOWN(410, "DP", "wait", SHARE, ALIKE_ABOVE, WAITS), .share_of = "iteration_s"),
    COLUMN(exposed_optimizer_s, NUMBER, "s", "of the iteration, the optimizer step and the gradient norm",
           SHOWN(420, "opti-", "mizer", SHARE, ALIKE_ABOVE, WAITS), .share_of = "iteration_s"),
    COLUMN(exposed_bubble_s, NUMBER, "s", "of the iteration, the rest in which the busiest stage does nothing"),
    COLUMN(parameters_gib_max, NUMBER, "GiB", "parameters on a GPU, the most over stages"),
    COLUMN(gradients_gib_max, NUMBER, "GiB", "gradients on a GPU, the most over stages"),
    COLUMN(optimizer_gib_max, NUMBER, "GiB", "optimizer state on a GPU, the most over stages"),
    COLUMN(buffers_gib_max, NUMBER, "GiB", "buffers on a GPU, the most over stages"),
    COLUMN(memory_peak_s, NUMBER, "s", "when the fullest stage reaches its peak of memory first"),
    COLUMN(standard_error_s, NUMBER, "s", "standard error of iteration_s, as if all costs erred the same way"),
    COLUMN(zero, INT64, "1", "what is sharded over data parallelism: 0 nothing, 1 optimizer, 2 gradients, 3 parameters",
           SHOWN(190, "ZeRO", "", INTEGER, UNNAMED, NARROW + 3), .label = "ZeRO"),
    COLUMN(sequence_parallel, INT64, "1", "1 where norms and dropout are cut along the sequence, 0 where not"),
    FRACTION(published_mfu, "model FLOPs utilisation that others published for this run",
             SHOWN(370, "published", "MFU", RATE, ALWAYS, NARROW + 6), .of = "mfu"),
    COLUMN(published_tflops_per_gpu, NUMBER, "TFLOP/s",
           "model FLOPs a second and GPU that others published for this run",
           SHOWN(320, "published", "", FOUR_DIGITS, ALWAYS, COMPARED), .of = "tflops_per_gpu"),
    COLUMN(published_hardware_tflops_per_gpu, NUMBER, "TFLOP/s",
           "FLOPs with recomputation a second and GPU that others published for this run",
           SHOWN(340, "published", "hardware", FOUR_DIGITS, ALWAYS, COMPARED), .of = "hardware_tflops_per_gpu"),
    COLUMN(published_activation_gib, NUMBER, "GiB", "peak activation memory that others published for this run",
           SHOWN(470, "published", "[GiB]", GIB, ALWAYS, NARROW + 5), .of = "activation_gib_max"),
    COLUMN(sent_tp_gib, NUMBER, "GiB", "what a GPU sends in an iteration for tensor parallelism, the mean over GPUs"),
    COLUMN(sent_pp_gib, NUMBER, "GiB", "the same for transfers between stages"),
    COLUMN(sent_dp_gib, NUMBER, "GiB", "the same for data parallelism: parameters and gradients"),
    FRACTION(link_utilisation_max, "how much of the iteration the busiest link is filled, where links are shared"),
    COLUMN(profile, TEXT, "", "file of the measured costs, as the scenario names it; empty: the roofline"),
    COLUMN(profile_hash, HASH, "", "hash of the profile, 16 hexadecimal digits"),
    COLUMN(pass_f_s, NUMBER, "s", "time of one F of a chunk, the longest over stages and chunks"),
    COLUMN(pass_b_s, NUMBER, "s", "the same of B; of BW where B and W are one pass"),
    COLUMN(pass_w_s, NUMBER, "s", "the same of W"),
    COLUMN(model_parameters, NUMBER, "1", "parameters of the model, its vocabulary padded for tp ranks"),
    COLUMN(published_pass_f_s, NUMBER, "s", "time of one F of a chunk that others published for this run",
           .of = "pass_f_s"),
    COLUMN(published_memory_gib, NUMBER, "GiB", "peak memory in all that others published for this run",
           .of = "memory_gib_max"),
    FRACTION(published_best_mfu, "the best MFU that others published over a sweep of which this run is one"),
    COLUMN(memory_limit_gib, NUMBER, "GiB",
           "room on the device that has least: for activations where times are given, for everything on clusters"),
    COLUMN(making, TEXT, "",
           "what a schedule that searches was made for: the costs, or equal times of F, B and W; or whose order it is"),
    COLUMN(key, TEXT, "", "hash of all that decides the result: runs of one key have one, 32 hexadecimal digits",
           .tells_runs = true),
    COLUMN(gpu_hours_per_million_tokens, NUMBER, "h", "hours of a GPU that a million tokens take"),
    COLUMN(cost_per_million_tokens, NUMBER, "1", "the same at the price of a GPU-hour, in the price's currency",
           SHOWN(490, "cost of 1M", "tokens", FOUR_DIGITS, ALWAYS, NEVER)),
    COLUMN(samples, INT64, "1", "iterations, and jobs, that were sampled with what makes a day bad"),
    FRACTION(jitter, "relative standard deviation of passes in samples, where it is a number"),
    FRACTION(gpu_jitter, "relative standard deviation of GPUs' speeds in samples"),
    FRACTION(link_jitter, "relative standard deviation of transfers in samples"),
    COLUMN(slow_gpus, INT64, "1", "slow GPUs, at random places"),
    COLUMN(slow_stage, INT64, "1", "the stage, from 0, that is slow in one replica"),
    COLUMN(slow_factor, NUMBER, "1", "how many times as long slow GPUs take"),
    COLUMN(bad_links, INT64, "1", "bad links, at random places"),
    FRACTION(bad_factor, "what is left of a bad link's bandwidth"),
    COLUMN(other_nodes, INT64, "1", "nodes with another GPU"),
    COLUMN(mtbf_s, NUMBER, "s", "mean time between failures of one GPU"),
    COLUMN(checkpoint_s, NUMBER, "s", "how long training stands still for a checkpoint"),
    COLUMN(spare_nodes, INT64, "1", "nodes beyond those in use"),
    COLUMN(iteration_good_s, NUMBER, "s", "time of the iteration on a good day, by the costs of samples"),
    COLUMN(iteration_mean_s, NUMBER, "s", "time of an iteration, the mean over samples",
           SHOWN(210, "mean of", "samples [s]", FOUR_DIGITS, ALIKE_ABOVE, NEVER)),
    COLUMN(iteration_mean_error_s, NUMBER, "s", "standard error of iteration_mean_s"),
    COLUMN(slowdown_mean, NUMBER, "1", "iteration_mean_s over iteration_good_s",
           SHOWN(240, "mean over", "good day", RATE, ALIKE_ABOVE, NARROW + 1)),
    QUANTILE(iteration_p05, _s, "s", false, "time of an iteration, the 5% quantile over samples"),
    QUANTILE(iteration_p50, _s, "s", false, "time of an iteration, the median over samples",
             SHOWN(220, "median", "[s]", FOUR_DIGITS, ALIKE_ABOVE, NARROW + 1)),
    QUANTILE(iteration_p95, _s, "s", false, "time of an iteration, the 95% quantile over samples",
             SHOWN(230, "95%", "[s]", FOUR_DIGITS, ALIKE_ABOVE, NARROW + 2)),
    QUANTILE(iteration_p99, _s, "s", false, "time of an iteration, the 99% quantile over samples"),
    FRACTION(goodput_mean, "part of a job's time that makes lasting progress at a good day's speed, the mean over jobs",
             SHOWN(250, "goodput", "mean", RATE, ALIKE_ABOVE, NEVER)),
    FRACTION(goodput_mean_error, "standard error of goodput_mean"),
    QUANTILE(goodput_p05, , "1", true, "goodput, the 5% quantile over jobs",
             SHOWN(260, "goodput", "5%", RATE, ALIKE_ABOVE, NARROW + 2)),
    QUANTILE(goodput_p50, , "1", true, "goodput, the median over jobs"),
    QUANTILE(goodput_p95, , "1", true, "goodput, the 95% quantile over jobs"),
    COLUMN(failures_mean, NUMBER, "1", "failures of a job, the mean over jobs"),
    COLUMN(checkpoint_interval_s, NUMBER, "s", "work between two checkpoints, in whole iterations"),
    COLUMN(layout, TEXT, "",
           "layers over model parts: even, ends, own, balanced, balanced-memory, or a list of each part's, as --layout "
           "takes it",
           SHOWN(180, "layout", "", TEXT, VARYING, NARROW + 3), .plain = "even"),
    COLUMN(parameters, NUMBER, "1", "parameters of the model, however it is cut: as `pipecast list models` counts them",
           SHOWN(50, "para-", "meters", COUNT, VARYING, 8)),
    COLUMN(engine, TEXT, "", "how the run was worked out: paths, flows (events for these alone) or events (for all)"),
    COLUMN(training_days, NUMBER, "d",
           "the whole training, of so many tokens; on bad days by the goodput, or the mean iteration without jobs",
           SHOWN(494, "training", "[days]", FOUR_DIGITS, ALWAYS, NEVER)),
    COLUMN(training_cost, NUMBER, "1", "cost of the whole training: its GPU-hours at the price of one",
           SHOWN(497, "training", "cost", FOUR_DIGITS, ALWAYS, NEVER)),
    COLUMN(goal, TEXT, "", "what the search for the schedule minimised: span, makespan or iteration; empty: no search"),
    COLUMN(iteration_s_low, NUMBER, "s", "where the interval of 80% of iteration_s begins"),
    COLUMN(iteration_s_high, NUMBER, "s", "where it ends"),
    COLUMN(memory_gib_low, NUMBER, "GiB", "where the interval of 80% of memory_gib_max begins"),
    COLUMN(memory_gib_high, NUMBER, "GiB", "where it ends"),
    COLUMN(kind, TEXT, "", "what the run is compared as: family of GPUs, software, sharding"),
    COLUMN(iteration_basis, TEXT, "", "the measured runs that the interval of iteration_s is learned from"),
    COLUMN(memory_basis, TEXT, "", "the same of memory_gib_max"),
    COLUMN(precision, TEXT, "", "bf16, fp16, or the recipe by which products of layers run in 8 or 4 bits",
           SHOWN(65, "precision", "", TEXT, VARYING, NARROW + 9), .plain = "bf16"),
    COLUMN(sequence_slices, INT64, "1", "slices of a microbatch along its sequence; 1: it is whole",
           SHOWN(122, "sequence", "slices", INTEGER, VARYING, NARROW + 4)),
    COLUMN(sequence_split, TEXT, "", "even or flops, where there are slices",
           SHOWN(123, "sequence", "split", TEXT, VARYING, NARROW + 4)),
    COLUMN(cp, INT64, "1", "context-parallel ranks", SHOWN(95, "cp", "", INTEGER, VARYING, NARROW + 4)),
    COLUMN(exposed_cp_s, NUMBER, "s", "of the iteration, waiting for collectives of context parallelism"),
    COLUMN(sent_cp_gib, NUMBER, "GiB", "what a GPU sends in an iteration for context parallelism, the mean over GPUs"),
    COLUMN(host_memory_gib_max, NUMBER, "GiB",
           "of the host's memory for a GPU, what is offloaded to it, the most over stages"),
    FRACTION(offload_fraction, "of a device's chunks, what selective offload takes; empty without it"),
    KIND("memory_parameters_gib", PARAMETERS, "parameters on the fullest GPU"),
    KIND("memory_gradients_gib", GRADIENTS, "gradients on the fullest GPU"),
    KIND("memory_optimizer_gib", OPTIMIZER, "optimizer state on the fullest GPU"),
    KIND("memory_attention_gib", ATTENTION, "activations of attention and its matrices there, at its peak"),
    KIND("memory_mlp_gib", MLP, "the same of the MLP"),
    KIND("memory_norms_gib", NORMS, "the same of what norms read, with the inputs of recomputed layers"),
    KIND("memory_embedding_gib", EMBEDDING, "the same of the embedding"),
    KIND("memory_head_gib", HEAD, "the same of the head: its norm, logits and loss"),
    KIND("memory_offloaded_gib", OFFLOADED, "the same of what goes to the host, as long as it is here"),
    KIND("memory_boundary_gib", BOUNDARY, "buffers there: what goes between stages"),
    KIND("memory_gathered_gib", GATHERED, "the same: units or buckets of ZeRO 2 and 3, gathered or to be reduced"),
    KIND("memory_context_gib", CONTEXT, "the same: keys and values of context parallelism"),
    KIND("memory_sequence_gib", SEQUENCE, "the same: the gathered sequence of sequence parallelism"),
    KIND("memory_recomputation_gib", RECOMPUTATION, "the same: what a pass makes again"),
    KIND("memory_loss_gib", LOSS, "the same: what the loss works with"),
    KIND("memory_copies_gib", COPIES, "the same: layers on their way to the host and back"),
    KIND("memory_step_gib", STEP, "the same: what the step needs beyond the peak of activations"),
    KIND("memory_workspace_gib", WORKSPACE, "the same: what libraries keep, as gradients that nobody reads"),
    COLUMN(memory_allocated_gib, NUMBER, "GiB",
           "of memory_gib_max what torch counts as allocated: less what CUDA graphs hold for themselves"),
    COLUMN(ep, INT64, "1", "expert-parallel ranks", SHOWN(96, "ep", "", INTEGER, VARYING, NARROW + 4)),
    COLUMN(etp, INT64, "1", "ranks that cut one expert", SHOWN(97, "etp", "", INTEGER, VARYING, NARROW + 4)),
    COLUMN(exposed_ep_s, NUMBER, "s", "of the iteration, waiting for dispatch and combine of tokens"),
    COLUMN(sent_ep_gib, NUMBER, "GiB", "what a GPU sends in an iteration for expert parallelism, the mean over GPUs"),
    COLUMN(training_gpu_hours, NUMBER, "h", "that time of all GPUs, spare nodes not counted",
           SHOWN(495, "training", "GPU-hours", FOUR_DIGITS, ALWAYS, 4)),
    COLUMN(training_mwh, NUMBER, "MWh",
           "energy that the GPUs take for it: at `watts` each, or the power of their boards without hosts, network and "
           "cooling",
           SHOWN(496, "training", "[MWh]", FOUR_DIGITS, ALWAYS, 4)),
    COLUMN(active_parameters, NUMBER, "1",
           "of the parameters those that a token goes through: without experts that it does not choose and "
           "multi-token prediction"),
};

enum { COLUMN_COUNT = sizeof columns / sizeof columns[0] };

const pc_column *pc_columns(int *count) {
    *count = COLUMN_COUNT;
    return columns;
}

const pc_column *pc_column_find(const char *name) {
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (columns[i].field.name[0] == name[0] && strcmp(columns[i].field.name, name) == 0)
            return &columns[i]; /* for every cell */
    return NULL;
}

const pc_column *pc_column_published(const pc_column *column) {
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (columns[i].of && strcmp(columns[i].of, column->field.name) == 0) return &columns[i];
    return NULL;
}

void pc_run_row_clear(pc_run_row *row) {
    memset(row, 0, sizeof *row);
    for (int i = 0; i < COLUMN_COUNT; i++) pc_field_clear(&columns[i].field, row);
}

bool pc_column_is_number(const pc_column *column) {
    return !pc_field_is_text(&column->field);
}

int64_t pc_column_integer(const pc_column *column, const pc_run_row *row) {
    return pc_field_of(&column->field, row).integer;
}

double pc_column_real(const pc_column *column, const pc_run_row *row) {
    return pc_field_of(&column->field, row).real;
}

bool pc_column_defined(const pc_column *column, const pc_run_row *row) {
    return pc_field_is_defined(&column->field, row);
}

void pc_column_text(const pc_column *column, const pc_run_row *row, char *text, size_t size) {
    pc_field_get_text(&column->field, row, text, size);
}

bool pc_column_set_text(const pc_column *column, pc_run_row *row, const char *text) {
    if (text[0] == '\0') return pc_field_clear(&column->field, row), true;
    return pc_field_set_text(&column->field, row, text);
}
