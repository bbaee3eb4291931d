#include "scenarios/key_texts.h"

#include <stddef.h>

#define FILE_KEY(path, value, otherwise, text)                                                                         \
    { PC_KEYS_OF_FILE, path, value, otherwise, text }
#define PLAN(path, value, otherwise, text)                                                                             \
    { PC_KEYS_OF_PLAN, path, value, otherwise, text }
#define CASE(path, value, otherwise, text)                                                                             \
    { PC_KEYS_OF_CASE, path, value, otherwise, text }
#define PUBLISHED(path, value, text)                                                                                   \
    { PC_KEYS_OF_PUBLISHED, path, value, "not shown", text }
#define FIGURE(path, value, otherwise, text)                                                                           \
    { PC_KEYS_OF_FIGURE, path, value, otherwise, text }
#define OF_MODEL(path, value, otherwise, text)                                                                         \
    { PC_KEYS_OF_MODEL_FILE, path, value, otherwise, text }

static const pc_key_text texts[] = {
    FILE_KEY("scenario", "name: letters, digits, `.`, `_`, `-`; at most 127", NULL,
             "the scenario's name, in results and messages"),
    FILE_KEY("title", "text", "empty", "what it is about"),
    FILE_KEY("source", "text", "empty", "where its numbers are from"),
    FILE_KEY("setting", "keys of a setting", "empty", "what all cases have"),
    FILE_KEY("sweep", "keys of a sweep", "empty", "lists that multiply out: a run for every combination of values"),
    FILE_KEY("plan", "keys of a plan", "all that makes sense, for the most throughput",
             "what `pipecast plan` chooses from, and what is wanted"),
    FILE_KEY("cases", "cases", "one case, named as the scenario", "each multiplied by the sweep"),
    FILE_KEY("figures", "figures", "none", "charts of the results, which `pipecast figure RESULTS.h5 NAME` draws"),

    /* ---- a plan ---- */
    PLAN("objective", NULL, "`throughput`",
         "sequences a second of the whole cluster; least memory on the fullest GPU; least money, or without prices "
         "GPU-hours, a token. Of several the Pareto front: plans that none beats in all of them"),
    PLAN("top", "whole number, 1 to 1000000", "10; of a front all",
         "how many cuts (machine, GPUs, tp, pp, dp, cp) are wanted, each with its best plan; of a front, how many "
         "plans"),
    PLAN("most_iteration", "time", "no limit", "an iteration may not take longer"),
    PLAN("most_cost", "number", "no limit",
         "a million tokens may not cost more, in the prices' currency; without prices, in GPU-hours"),
    PLAN(
        "deadline", "duration", "none",
        "the training of `tokens` may not take longer: the least number of GPUs is looked for whose best plan does it"),
    PLAN("budget", "money such as `2M$`", "none", "and it may not cost more, at the `price` of a GPU-hour"),
    PLAN("batch_per", "`all` or `replica`", "`all`",
         "whether `global_batch` is of all replicas, or of each one: then the batch follows dp"),
    PLAN("machine", NULL, "the setting's", "kinds of GPUs and networks"),
    PLAN("price", NULL, "the setting's; no costs", "of a GPU-hour: one for all machines, or one each in their order"),
    PLAN("precision", NULL, "the setting's; the model's", "precisions, each on every machine"),
    PLAN("gpus", NULL, "the setting's", "GPUs in all; a plan has exactly as many"),
    PLAN("global_batch", NULL, "the setting's; the model's", "sequences of an iteration"),
    PLAN("tp", NULL,
         "the setting's; what cuts the model and the GPUs, up to a node or NVLink domain, beyond it with fewer "
         "sequences than such",
         "tensor-parallel ranks"),
    PLAN("pp", NULL, "the setting's; what cuts the layers and the GPUs", "pipeline stages"),
    PLAN("dp", NULL, "the setting's; what follows from `gpus`", "data-parallel replicas"),
    PLAN("cp", NULL, "the setting's; 1, and with sequences of 16k tokens and more 2, 4, 8 where they cut them",
         "context-parallel ranks"),
    PLAN("cp_comm_type", NULL, "the setting's; `p2p`", "how context-parallel ranks come to each other's keys"),
    PLAN("ep", NULL, "the setting's; powers of 2 that divide the experts", "expert-parallel ranks"),
    PLAN("etp", NULL, "the setting's; 1", "ranks that cut one expert"),
    PLAN("moe_token_dispatcher_type", NULL, "the setting's; `alltoall`, `flex`", "how tokens come to their experts"),
    PLAN("moe_flex_dispatcher_backend", NULL, "the setting's; `deepep`", "whose kernels `flex` has"),
    PLAN("chunks", NULL, "the setting's; what cuts the layers, from 2 on",
         "model parts on a device, of schedules that have a choice"),
    PLAN("sequence_slices", NULL, "the setting's; the schedule's own",
         "slices of a microbatch's sequence, of schedules named `seq-...`"),
    PLAN("microbatch_size", NULL, "the setting's; powers of 2 that divide a batch", "sequences in a microbatch"),
    PLAN("schedule", NULL,
         "the setting's; nine that differ most, and for least memory four more (docs/planner.md has their names)",
         "pipeline schedules"),
    PLAN("layout", NULL, "the setting's; `even`, `ends`, `own`, `balanced`",
         "how the layers are cut over the parts, as `model.layout` says"),
    PLAN("recompute", NULL,
         "the setting's; `none`, `selective:mlp`, `full`; where attention is `materialised` `none`, `selective`, "
         "`selective:core_attn+mlp`, `full`",
         "what the backward pass computes again"),
    PLAN("offload", NULL, "the setting's; `none`, `optimizer` where the machine has a link to its host",
         "what goes to the host's memory"),
    PLAN("zero", NULL, "the setting's; 0 to 3", "what is sharded over the replicas"),
    PLAN("shard_group", NULL, "the setting's; all replicas, those of a node or NVLink domain, and of eight",
         "replicas that share what ZeRO shards; of plans whose replicas it does not divide, all"),
    PLAN("sequence_parallel", NULL, "the setting's; `true`", "whether norms and dropout are cut along the sequence"),
    PLAN("rank_order", NULL, "the setting's; `tp-dp-pp`, `tp-pp-dp`", "which ranks are neighbours in the machine"),
    PLAN("overlap", "`{p2p, tp, gradients, parameters}`", "the setting's; all `true`",
         "what goes on behind computation, each a list"),
    PLAN("overlap.p2p", NULL, "the setting's; `true`", "transfers between stages"),
    PLAN("overlap.tp", NULL, "the setting's; `true`", "tensor parallelism's collectives, where they can"),
    PLAN("overlap.gradients", NULL, "the setting's; `true`", "reductions of gradients"),
    PLAN("overlap.parameters", NULL, "the setting's; `true`", "gathers of parameters"),

    /* ---- cases ---- */
    CASE("name", "name, as of a scenario", NULL, "unlike the other cases'; the beginning of its runs' names"),
    CASE("published", "published figures", "none", "what others measured for the case, to stand beside our numbers"),
    {PC_KEYS_OF_PUBLISHED, "schedule", "name of `pipecast list schedules`, or the path of a `FILE.csv`", NULL,
     "runs of this schedule show the entry"},
    {PC_KEYS_OF_PUBLISHED, "microbatches", NULL, "any", "runs of so many microbatches do"},
    PUBLISHED("bubble_rate_span", NULL, "bubble rate over the longest span of a stage"),
    PUBLISHED("samples_per_s_per_gpu", NULL, "sequences a second and GPU"),
    PUBLISHED("iteration", "time", "time of an iteration"),
    PUBLISHED("mfu", NULL, "model FLOPs utilisation"),
    PUBLISHED("tflops_per_gpu", NULL, "model FLOPs a second and GPU, in TFLOP/s"),
    PUBLISHED("hardware_tflops_per_gpu", NULL, "the same with recomputation"),
    PUBLISHED("best_mfu", NULL, "the best model FLOPs utilisation of a sweep of which the run is one"),
    PUBLISHED("pass_f", "time", "time of one F of a chunk"),
    PUBLISHED("activation", "size", "peak activation memory, the most over stages"),
    PUBLISHED("memory", "size", "peak memory in all, the most over stages"),

    /* ---- figures ---- */
    FIGURE("name", "name, as of a scenario", NULL, "unlike the other figures'"),
    FIGURE("title", "text", "the name", "stands above the chart"),
    FIGURE("x", "column of the results", NULL, "what runs across: a number; with `bars` anything"),
    FIGURE("y", "columns", NULL, "numbers: a row of panels each"),
    FIGURE("series", "column", "one series", "a colour for each of its values"),
    FIGURE("panels", "column", "one panel", "a panel for each of its values, side by side"),
    FIGURE("style", NULL, "`points`", "how runs are drawn; `lines` join the best run of every x"),
    FIGURE("x_label", "text", "the column's description and unit", "below the chart"),
    FIGURE("y_label", "texts", "the columns' descriptions and units", "one for each of `y`, in order"),
    FIGURE("x_range", "`LOW:HIGH`, `LOW:` or `:HIGH`", "what the runs have", "part of the axis, in its own numbers"),
    FIGURE("y_range", "such ranges", "what the runs have", "one for each of `y`, in order"),
    FIGURE("log", "`x`, `y` or `xy`", "none", "which axes are logarithmic"),
    FIGURE("dark", "`true` or `false`", "`false`", "light on a dark ground"),
    FIGURE("published", "`true` or `false`", "`false`", "whether published figures are drawn too, hollow"),

    /* ---- a model's file ---- */
    OF_MODEL("model", "text", NULL, "the model's name"),
    OF_MODEL("title", "text", "empty", "what it is"),
    OF_MODEL("source", "text", "empty", "where its numbers are from"),
};

const pc_key_text *pc_key_texts(int *count) {
    *count = (int)(sizeof texts / sizeof *texts);
    return texts;
}
