#include "scenarios/import/torchtitan_write.h"

#include "models/schedule/generate.h"
#include "models/workload/cut.h"

#include <inttypes.h>
#include <string.h>

/* Ours, and the class of torch.distributed.pipelining. */
static const char *const schedules[][2] = {{"gpipe", "GPipe"},
                                           {"1f1b", "1F1B"},
                                           {"1f1b-interleaved", "Interleaved1F1B"},
                                           {"zb-interleaved", "InterleavedZeroBubble"},
                                           {"zb-v", "ZBVZeroBubble"},
                                           {"dualpipe-v", "DualPipeV"},
                                           {"looped-bfs", "LoopedBFS"}};

static void number(pc_text *to, const char *name, int64_t value) {
    pc_text_printf(to, "%s = %" PRId64 "\n", name, value);
}

static void word(pc_text *to, const char *name, const char *value) {
    pc_text_printf(to, "%s = \"%s\"\n", name, value);
}

static void lack(pc_text *to, bool is_lacking, const char *what) {
    if (is_lacking) pc_text_printf(to, "# torchtitan has no field for: %s\n", what);
}

static const char *class_of(const char *name) {
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++)
        if (strcmp(name, schedules[i][0]) == 0) return schedules[i][1];
    return NULL;
}

/* With a file torchtitan takes from the class how many stages a rank has, and whether they lie as loops or as a V. */
static const char *class_of_placement(const pc_run_spec *spec) {
    if (spec->chunks == 1) return "1F1B";
    return pc_generator_placement(spec->generator, spec->chunks, spec->slices) == PC_PLACEMENT_V ? "ZBVZeroBubble"
                                                                                                 : "Interleaved1F1B";
}

static void write_schedule(const pc_run_spec *spec, const char *csv, pc_text *to) {
    const char *name = spec->generator->name, *class = class_of(name);
    if (spec->devices == 1) return;
    if (class && csv) pc_text_printf(to, "# this plan's own order: pipeline_parallel_schedule_csv = \"%s\"\n", csv);
    if (class) return word(to, "pipeline_parallel_schedule", class);
    if (!csv)
        pc_text_printf(to, "# pipecast schedule %s -p %d -m %d -v %d --format torch-csv > schedule.csv\n", name,
                       spec->devices, spec->microbatches, spec->chunks);
    pc_text_printf(to, "# the file's order is %s's; the class says how stages lie\n", name);
    word(to, "pipeline_parallel_schedule_csv", csv ? csv : "schedule.csv");
    word(to, "pipeline_parallel_schedule", class_of_placement(spec));
}

static void write_parallelism(const pc_run_spec *spec, const char *csv, pc_text *to) {
    const pc_cut *cut = &spec->iteration.cut;
    bool is_sharded = cut->zero > 0;
    int group = is_sharded && cut->shard_group > 0 ? cut->shard_group : is_sharded ? cut->dp : 1;
    pc_text_printf(to, "[parallelism]\n");
    number(to, "data_parallel_shard_degree", group < cut->dp ? group : is_sharded ? cut->dp : 1);
    number(to, "data_parallel_replicate_degree", is_sharded ? (group < cut->dp ? cut->dp / group : 1) : cut->dp);
    number(to, "tensor_parallel_degree", cut->tp);
    number(to, "context_parallel_degree", pc_cut_cp(cut));
    number(to, "expert_parallel_degree", pc_cut_ep(cut));
    number(to, "expert_tensor_parallel_degree", pc_model_has_experts(&spec->iteration.model) ? pc_cut_etp(cut) : 1);
    number(to, "pipeline_parallel_degree", cut->pp);
    if (cut->pp > 1) number(to, "pipeline_parallel_microbatch_size", cut->microbatch_size);
    if (cut->pp > 1 && spec->chunks > 1 && cut->layout == PC_CUT_EVEN)
        number(to, "pipeline_parallel_layers_per_stage",
               spec->iteration.model.layers / ((int64_t)cut->pp * spec->chunks));
    write_schedule(spec, csv, to);
    lack(to, cut->pp > 1 && cut->layout != PC_CUT_EVEN && cut->layout != PC_CUT_ENDS, "this layout of layers");
    lack(to, cut->zero == 1 || cut->zero == 2, "ZeRO 1 or 2: torchtitan shards parameters too");
    lack(to, cut->tp > 1 && !cut->sequence_parallel, "tensor parallelism without sequence parallelism");
}

static void write_training(const pc_run_spec *spec, pc_text *to) {
    const pc_cut *cut = &spec->iteration.cut;
    int64_t local = cut->microbatch_size * (cut->pp > 1 ? cut->microbatches : 1);
    pc_text_printf(to, "\n[training]\n");
    number(to, "local_batch_size", local);
    number(to, "global_batch_size", cut->microbatch_size * cut->microbatches * cut->dp);
    number(to, "seq_len", cut->seq_len);
    word(to, "mixed_precision_param", "bfloat16");
    word(to, "mixed_precision_reduce", pc_cut_gradient_bytes(cut) == 2 ? "bfloat16" : "float32");
    if (cut->offload.kinds & PC_OFFLOAD_PARAMETERS) pc_text_printf(to, "enable_cpu_offload = true\n");
    pc_text_printf(to, "\n[compile]\nenable = %s\n", cut->compiles ? "true" : "false");
    lack(to, spec->iteration.model.precision == PC_PRECISION_FP16, "fp16");
}

static void write_recomputation(const pc_cut *cut, pc_text *to) {
    pc_text_printf(to, "\n[activation_checkpoint]\n");
    bool is_full = cut->recompute == PC_RECOMPUTE_FULL, is_every = cut->recompute == PC_RECOMPUTE_EVERY;
    bool is_op = cut->recompute == PC_RECOMPUTE_OP;
    word(to, "mode", is_full ? "full" : is_op || is_every ? "selective" : "none");
    if (is_op) word(to, "selective_ac_option", "op");
    if (is_every) pc_text_printf(to, "selective_ac_option = \"%d\"\n", (int)cut->recompute_layers);
    lack(to, !is_full && !is_op && !is_every && cut->recompute != PC_RECOMPUTE_NONE, "this recomputation");
}

static void write_precision(const pc_low_precision *low, pc_text *to) {
    if (!pc_low_precision_is_on(low)) return;
    if (strcmp(low->name, "fp8-tensorwise") == 0)
        pc_text_printf(to, "\n[quantize.linear.float8]\nenable_fsdp_float8_all_gather = true\n"
                           "precompute_float8_dynamic_scale_for_fsdp = true\n");
    else if (strcmp(low->name, "fp8-rowwise") == 0)
        pc_text_printf(to, "\n[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n");
    else if (strcmp(low->name, "mxfp8") == 0)
        pc_text_printf(to, "\n[quantize.linear.mx]\nrecipe_name = \"mxfp8_cublas\"\n");
    else
        lack(to, true, "this recipe of few bits");
}

void pc_torchtitan_write(const pc_run_spec *spec, const char *csv, pc_text *to) {
    write_parallelism(spec, csv, to);
    write_training(spec, to);
    write_recomputation(&spec->iteration.cut, to);
    write_precision(&spec->iteration.model.low, to);
}
