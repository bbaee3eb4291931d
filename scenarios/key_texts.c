#include "scenarios/key_texts.h"

#include <stddef.h>

#define FILE_KEY(path, value, otherwise, text)                                                                         \
    { PC_KEYS_OF_FILE, path, value, otherwise, text }
#define SETTING(path, otherwise, text)                                                                                 \
    { PC_KEYS_OF_SETTING, path, NULL, otherwise, text }
#define GROUP(path, value, otherwise, text)                                                                            \
    { PC_KEYS_OF_SETTING, path, value, otherwise, text }
#define SWEEP(path)                                                                                                    \
    { PC_KEYS_OF_SWEEP, path, NULL, "the case's own", NULL }
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

    /* ---- a setting ---- */
    GROUP(
        "model", "keys of a model", "empty; required on clusters",
        "the model. Where times are given, `layers`, `hidden`, `heads`, `seq_len` and `layout` count, and all else is "
        "without effect"),
    SETTING("model.name", "empty", "a label"),
    SETTING("model.layers", "none; required on clusters", "transformer layers"),
    SETTING("model.hidden", "none; required on clusters", "width of the model"),
    SETTING("model.heads", "none; required on clusters", "heads of attention"),
    SETTING("model.seq_len", "none; required on clusters", "tokens in a sequence"),
    SETTING(
        "model.layout", "`auto`",
        "layers over parts: `even`, alike; `ends`, with embedding and head counted as a layer each; `own`, with "
        "embedding and head as parts of their own; `auto`, the first of these with which they divide; or the layers of "
        "every part in the order of the forward pass, as text: numbers, or Megatron-LM's notation. Where times are "
        "given, `even` or `ends`, or `auto` of the two"),
    SETTING("model.ffn_hidden", "4 x `hidden`; required with `swiglu`", "width of the MLP"),
    SETTING("model.kv_heads", "`heads`", "heads of keys and values: as many as `heads`, 1, or between"),
    SETTING("model.head_dim", "`hidden` / `heads`", "width of a head"),
    SETTING("model.vocab", "none; required on clusters", "words of the vocabulary"),
    SETTING("model.vocab_multiple", "128", "the vocabulary is padded to a multiple of this times `tp`"),
    SETTING("model.max_positions", "`seq_len`; 0 with `rotary`", "rows of the table of learned positions"),
    SETTING("model.positions", "`learned`", "how positions are known"),
    SETTING("model.norm", "`layernorm`", "normalisation"),
    SETTING("model.mlp", "`gelu`", "the MLP's activation"),
    SETTING("model.attention", "`flash`", "with `materialised`, scores are written to memory"),
    SETTING("model.precision", "`bf16`", "of parameters and activations in passes"),
    SETTING("model.tied", "`true`", "whether the head is the embedding's matrix"),
    SETTING("model.bias", "`true`", "whether matrices have biases"),
    SETTING("model.dropout", "`true`", "whether dropout's masks are kept"),
    SETTING("model.global_batch", "none", "sequences of an iteration, where the setting says nothing"),
    SETTING(
        "model.from", "none",
        "a model of the library or a file, of which keys beside this one replace the same; required on clusters, or "
        "the model's dimensions"),
    SETTING("machine", "empty; required on clusters",
            "a machine of the library or a file; where times are given, a label"),
    SETTING("profile", "the machine's roofline and transfers",
            "what was measured on the machine's GPU (a profile, HDF5), in place of its roofline"),
    SETTING("schedule", "required; `1f1b` on clusters",
            "the pipeline schedule; a CSV file has its own p, m and v, which need not be said again"),
    SETTING(
        "plan", "`costs`",
        "what a schedule that searches is made for: the run's own costs; or as if F, B and W took the same time and "
        "transfers none, to be timed at the run's own costs then. Others are the same with both"),
    SETTING("devices", "required, or `pp`; 1 on clusters", "p, pipeline stages; `pp` means the same"),
    SETTING("microbatches", "required; from `global_batch` on clusters",
            "m, microbatches of a pipeline in an iteration"),
    SETTING("microbatch_size", "no rates per sample; 1 on clusters", "sequences in a microbatch"),
    SETTING("chunks", "the schedule's own",
            "v, model parts on a device; schedules that always have the same number ignore it, but for a file, whose "
            "number it must be"),
    GROUP("times", "`{F, B, W, BW, R}`", "required, or `stages`",
          "times of a whole stage, alike on all. A chunk takes 1/v of them; a chunk of a replica, which is a whole "
          "stage, all of them"),
    SETTING("times.F", "required", "forward pass"),
    SETTING("times.B", "required where B and W are apart", "backward pass, of the input"),
    SETTING("times.W", "required where B and W are apart", "backward pass, of the weights"),
    SETTING("times.BW", "B + W", "the backward pass as one, for schedules that do not split it"),
    SETTING("times.R", "F", "recomputation, for schedules that recompute (`1f1b-r`)"),
    GROUP("stages", "`{F, B, W, BW, R, memory}`, one a device", "required, or `times`",
          "times of every stage for itself; where a schedule has two replicas (`gems`, `chimera`) one entry a stage of "
          "the model, so that device d has entry d for the one and p-1-d for the other"),
    GROUP("stages[].F", "time", "as of `times`", "forward pass of this stage"),
    GROUP("stages[].B", "time", "as of `times`", "backward pass of this stage, of the input"),
    GROUP("stages[].W", "time", "as of `times`", "backward pass of this stage, of the weights"),
    GROUP("stages[].BW", "time", "B + W", "the backward pass of this stage as one"),
    GROUP("stages[].R", "time", "F", "recomputation of this stage"),
    GROUP("stages[].memory", "size", "`memory`", "room for activations on the device of this number"),
    GROUP("transfer", "`{time}`, or `{size, latency, bandwidth}`", "no time",
          "between neighbouring stages: a delay, whatever else is on its way; or over the directed link between two "
          "stages, which carries one transfer after the other"),
    SETTING("transfer.time", "0", "the delay"),
    SETTING("transfer.size", "required with `bandwidth`", "bytes of a transfer"),
    SETTING("transfer.latency", "0", "the link's latency"),
    SETTING("transfer.bandwidth", "required with `size`", "the link's bandwidth"),
    GROUP("activation", "`{size, release_b, keep}`", "from the model's shape",
          "what one microbatch keeps on one whole stage"),
    SETTING("activation.size", "from the model's shape", "what F takes"),
    SETTING("activation.release_b", "from the model's shape; 0 with `size`", "the fraction of it that B gives back"),
    SETTING("activation.keep", "the layers' inputs, 2/34 of `size`",
            "the fraction that F keeps where the schedule recomputes; R takes the rest"),
    SETTING("memory", "no limit; on clusters the GPU's, less what it reserves",
            "a device's room: for activations where times are given, for everything on clusters. What does not fit has "
            "the status `out_of_memory`"),
    SETTING(
        "out_of_memory", "`fail`",
        "what a pass does that does not fit: with `fail` the run ends there; with `wait` it waits until others have "
        "given back enough, and its device goes on with the next ones that can"),
    SETTING(
        "engine", "`auto`",
        "how the run is worked out, which changes no result: with `events` the engine runs everything, event by event; "
        "`auto` takes a shortcut where it gives the same to the picosecond"),
    SETTING("overhead", "0", "a constant added to every iteration"),
    SETTING("trace", "`false`",
            "whether the results file keeps every pass, and memory over time; on clusters also what it is taken by"),
    SETTING(
        "gpus", "`tp` x `pp` x `dp`",
        "GPUs in all; of the three axes one may follow from it: `dp`, or `pp` where `dp` is given, or `tp` where both "
        "are"),
    SETTING("tp", "1, or from `gpus`", "tensor-parallel ranks"),
    SETTING("pp", "`devices`; 1, or from `gpus`, on clusters", "p, pipeline stages; `devices` means the same"),
    SETTING("dp", "1, or from `gpus`", "data-parallel replicas"),
    SETTING("global_batch", "the model's",
            "sequences of all replicas in an iteration: `microbatches` x `microbatch_size` x `dp`"),
    SETTING("sequence_parallel", "`true` where `tp` > 1",
            "whether norms and dropout are cut along the sequence over the tensor-parallel ranks"),
    SETTING("zero", "1",
            "what is sharded over the replicas: 0 nothing, 1 optimizer state, 2 and gradients, 3 and "
            "parameters"),
    SETTING(
        "recompute", "`none`",
        "what the backward pass computes again: nothing; scores, softmax and dropout of attention; whole layers; or "
        "one of these for every part of the model, in the order in which F visits them"),
    SETTING(
        "cross_entropy", "`in-place`",
        "how the loss is computed: in fp32, `in-place` (Megatron, native) or `plain`, with a copy more; in 16 bits, "
        "`fused` (Transformer Engine, Liger) or, with the head, `chunked`; 6, 10, 2 bytes a logit, or 2 of a chunk"),
    SETTING("cross_entropy_chunks", "8", "pieces of a microbatch's tokens; only with `cross_entropy: chunked`"),
    SETTING("rank_order", "`tp-dp-pp`", "which ranks are neighbours in the machine, the innermost first"),
    GROUP("overlap", "`{p2p, tp, gradients, parameters}`", "all `true`", "what goes on behind computation"),
    SETTING("overlap.p2p", "`true`", "transfers between stages"),
    SETTING("overlap.tp", "`true`",
            "of tensor parallelism's collectives those that Megatron lets run beside the product of the weights' "
            "gradient, where B and W are one pass"),
    SETTING("overlap.gradients", "`true`", "reductions of gradients"),
    SETTING("overlap.parameters", "`true`", "gathers of parameters"),
    SETTING("scatter_boundary", "`true`", "whether transfers between stages are cut over the tensor-parallel ranks"),
    SETTING(
        "bucket", "40 million gradients, but at most 16 pieces a chunk",
        "gradients travel in pieces of this size, and parameters in as many. The default is Megatron's least bucket: "
        "160 MB, or 80 MB with `gradient_bytes: 2`"),
    SETTING("gradient_bytes", "`4`",
            "of a parameter's gradient, as it is held, added up and sent to other replicas (2: Megatron's "
            "`grad_reduce_in_fp32: false`, and bf16); the step then works on fp32 copies"),
    SETTING("step", "`norm`", "whether all stages wait for the gradient norm, or, with `post-validation`, none does"),
    SETTING("granularity", "`pass`", "what a task is: a pass, or every kernel and collective"),
    SETTING("network", "`auto`",
            "with `closed` every message takes what it takes alone; with `flows` they share links; `auto` chooses"),
    SETTING("pass_overhead", "0", "what every pass takes beyond its kernels and collectives, as a fraction of them"),
    SETTING("expand", "`false`", "whether every replica is simulated for itself; not with `granularity: operations`"),
    SETTING(
        "jitter", "0",
        "relative standard deviation of every pass's time, lognormal; or `profile`: as the profile's kernels scatter. "
        "Needs `samples`, or `expand: true`, which takes a number"),
    SETTING("seed", "0", "of all that is random"),
    SETTING("price", "no costs",
            "what a GPU costs an hour, in any currency, which is that of `cost_per_million_tokens` then"),

    SETTING("samples", "0: none", "iterations, and jobs, of which the quantiles are: docs/bad-days.md"),
    GROUP("bad_days", "`{gpu_jitter, slow_gpus, slow_factor, ...}`", "a good day",
          "what makes an iteration differ from the one that was planned. Needs `samples`"),
    SETTING("bad_days.gpu_jitter", "0",
            "relative standard deviation of the GPUs' speeds, lognormal, drawn once a sample; in place of the "
            "machine's `speed_variation`"),
    SETTING("bad_days.link_jitter", "0",
            "relative standard deviation of the time of every transfer between stages, and of every stage's "
            "collectives of data parallelism"),
    SETTING("bad_days.slow_gpus", "0", "so many GPUs, at random places, take `slow_factor` times as long"),
    SETTING("bad_days.slow_factor", "1", "how many times as long slow GPUs take"),
    SETTING("bad_days.slow_stage", "none", "this stage's GPUs, in one replica, are slow, from 0; beside `slow_gpus`"),
    SETTING("bad_days.bad_links", "0",
            "so many GPUs' links to the network, at random places, have `bad_factor` of their bandwidth"),
    SETTING("bad_days.bad_factor", "1", "what is left of a bad link's bandwidth"),
    SETTING("bad_days.other_gpu", "none", "the GPU of the last `other_nodes` nodes"),
    SETTING("bad_days.other_nodes", "0", "so many nodes, the last ones, have `other_gpu`"),
    GROUP("job", "`{mtbf, checkpoint, interval, ...}`", "no goodput",
          "a job of many iterations, with failures. Needs `samples`"),
    SETTING("job.mtbf", "nothing fails", "mean time between failures of one GPU, with its share of the node"),
    SETTING("job.checkpoint", "0", "how long training stands still for a checkpoint"),
    SETTING("job.interval", "the best, by Daly's formula; none where nothing fails",
            "work between checkpoints, to whole iterations"),
    SETTING("job.restart", "0", "from a failure to the first new iteration, where a spare node is there"),
    SETTING("job.repair", "0", "until a node that failed is back, as a spare"),
    SETTING("job.spare_nodes", "0", "nodes beyond those in use; without one left a failure waits for a repair"),
    SETTING("job.horizon", "30 days", "length of a job"),

    /* ---- the sweep ---- */
    SWEEP("schedule"),
    SWEEP("microbatches"),
    SWEEP("devices"),
    SWEEP("memory"),
    SWEEP("chunks"),
    SWEEP("plan"),
    SWEEP("model"),
    SWEEP("machine"),
    SWEEP("profile"),
    SWEEP("gpus"),
    SWEEP("tp"),
    SWEEP("pp"),
    SWEEP("dp"),
    SWEEP("microbatch_size"),
    SWEEP("global_batch"),
    SWEEP("seq_len"),
    SWEEP("recompute"),
    SWEEP("attention"),
    SWEEP("layout"),
    SWEEP("zero"),
    SWEEP("jitter"),
    SWEEP("gpu_jitter"),
    SWEEP("slow_gpus"),
    SWEEP("slow_factor"),
    SWEEP("slow_stage"),
    SWEEP("mtbf"),
    SWEEP("checkpoint"),
    SWEEP("interval"),
    SWEEP("spare_nodes"),

    /* ---- a plan ---- */
    PLAN("objective", NULL, "`throughput`",
         "sequences a second of the whole cluster; least memory on the fullest GPU; least money, or without prices "
         "GPU-hours, a token. Of several the Pareto front: plans that none beats in all of them"),
    PLAN("top", "whole number, 1 to 1000000", "10; of a front all",
         "how many cuts (machine, GPUs, tp, pp, dp) are wanted, each with its best plan; of a front, how many plans"),
    PLAN("most_iteration", "time", "no limit", "an iteration may not take longer"),
    PLAN("most_cost", "number", "no limit",
         "a million tokens may not cost more, in the prices' currency; without prices, in GPU-hours"),
    PLAN("machine", NULL, "the setting's", "kinds of GPUs and networks"),
    PLAN("price", NULL, "the setting's; no costs", "of a GPU-hour: one for all machines, or one each in their order"),
    PLAN("gpus", NULL, "the setting's", "GPUs in all; a plan has exactly as many"),
    PLAN("global_batch", NULL, "the setting's; the model's", "sequences of an iteration"),
    PLAN("tp", NULL, "the setting's; what cuts the model and the GPUs, up to a node or NVLink domain",
         "tensor-parallel ranks"),
    PLAN("pp", NULL, "the setting's; what cuts the layers and the GPUs", "pipeline stages"),
    PLAN("dp", NULL, "the setting's; what follows from `gpus`", "data-parallel replicas"),
    PLAN("chunks", NULL, "the setting's; what cuts the layers, from 2 on",
         "model parts on a device, of schedules that have a choice"),
    PLAN("microbatch_size", NULL, "the setting's; powers of 2 that divide a batch", "sequences in a microbatch"),
    PLAN("schedule", NULL, "the setting's; `1f1b`, `1f1b-interleaved`, `zb-h1`", "pipeline schedules"),
    PLAN("layout", NULL, "the setting's; `even`, `ends`, `own`",
         "how the layers are cut over the parts, as `model.layout` says"),
    PLAN("recompute", NULL, "the setting's; all, without `selective` where attention is `flash`",
         "what the backward pass computes again"),
    PLAN("zero", NULL, "the setting's; 0 to 3", "what is sharded over the replicas"),
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
