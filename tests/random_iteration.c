#include "tests/random_iteration.h"

#include "models/schedule/generate.h"
#include "models/training/outline.h"
#include "tests/iteration_example.h"
#include "tests/iteration_experts.h"
#include "tests/random_frozen.h"

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

/* Searches take their time: a third as often as the others. */
static void draw_schedule(test_random *random, pc_iteration_spec *spec) {
    int count;
    const pc_generator *all = pc_generators(&count);
    do spec->generator = &all[test_between(random, 0, count - 1)];
    while (spec->generator->searches && test_between(random, 0, 2) > 0);
    spec->cut.chunks = spec->generator->chunks_default;
}

/* Iterations of bad days: slow GPUs, bad links, noise. */
static void draw_bad_days(test_random *random, pc_iteration_spec *spec) {
    int64_t gpus = (int64_t)spec->cut.tp * spec->cut.pp * spec->cut.dp;
    spec->jitter = toss(random) ? 0 : 0.1;
    spec->bad_days = (pc_bad_days){.samples = test_between(random, 1, 3),
                                   .gpu_jitter = toss(random) ? 0 : 0.05,
                                   .link_jitter = toss(random) ? 0 : 0.3,
                                   .slow_gpus = test_between(random, 0, gpus < 3 ? gpus : 3),
                                   .slow_factor = 1.5,
                                   .bad_links = test_between(random, 0, gpus < 3 ? gpus : 3),
                                   .bad_factor = 0.25};
}

/* What ZeRO 3 has of units: some in a unit or ahead, kept or not, reduced by every microbatch or the last. */
static void draw_units(test_random *random, pc_iteration_spec *spec) {
    spec->fsdp_prefetch = (int)test_between(random, 0, 3);
    spec->unit_layers = test_between(random, 0, 3);
    spec->fsdp_version = (pc_fsdp_version)test_between(random, 0, 2);
    if (spec->cut.zero != 3 || spec->unit != PC_UNIT_LAYER) return;
    spec->reshard_after_forward = (pc_reshard)test_between(random, 0, 2);
    spec->gradient_sync = (pc_gradient_sync)test_between(random, 0, 2);
}

/* Over links from a tenth of what passes need to ten times as much; with activations where the schedule can. */
static void draw_offload(test_random *own, pc_iteration_spec *spec) {
    static const int32_t kinds[] = {PC_OFFLOAD_FINE_GRAINED, PC_OFFLOAD_SELECTIVE, PC_OFFLOAD_FULL, PC_OFFLOAD_TENSORS,
                                    0};
    if (!toss(own)) return;
    spec->machine.host_link_bytes_per_s = 1e9 * (double)test_between(own, 2, 200);
    spec->machine.host_memory_bytes_per_s = 1e9 * (double)test_between(own, 100, 1000);
    spec->machine.host_link_gpus = (int32_t)test_between(own, 0, 2);
    bool can = !spec->generator->recomputes && !spec->generator->adapts;
    if (can) spec->cut.offload.kinds = kinds[test_between(own, 0, 4)];
    if (can && spec->cut.offload.kinds) spec->cut.recompute = toss(own) ? PC_RECOMPUTE_NONE : PC_RECOMPUTE_SELECTIVE;
    if (spec->cut.offload.kinds == PC_OFFLOAD_FINE_GRAINED)
        spec->cut.offload.modules = (int32_t)test_between(own, 1, 31) & 0x1f;
    if (toss(own)) spec->cut.offload.kinds |= PC_OFFLOAD_OPTIMIZER;
    spec->cut.offload.fraction = (double)test_between(own, 0, 4) / 4;
    spec->cut.offload.optimizer_fraction = (double)test_between(own, 0, 4) / 4;
    spec->cut.offload.overlaps_copies = toss(own);
    if (spec->cut.zero == 3 && spec->cut.dp > 1 && toss(own)) spec->cut.offload.kinds |= PC_OFFLOAD_PARAMETERS;
}

static void draw_slices(test_random *own, pc_iteration_spec *spec) {
    spec->cut.chunks = (int)test_between(own, 1, 4);
    if (pc_generator_has_sliced_parts(spec->generator)) spec->cut.slices = (int)test_between(own, 1, 3);
    if (spec->cut.slices > 0) spec->cut.chunks = spec->cut.slices * (int)test_between(own, 1, 2);
    spec->cut.sequence_split = (pc_sequence_split)toss(own);
    spec->cut.zero %= 2;
    spec->cut.cp = spec->cut.cp_a2a = 0;
    spec->model.attention = PC_ATTENTION_FLASH;
    spec->model.sliding_window = spec->model.attention_chunk_size = spec->model.sliding_window_pattern = 0;
    spec->model.document_length = spec->model.document_length_square = 0;
    spec->cut.offload.kinds &= ~PC_OFFLOAD_ACTIVATIONS;
}

/* Of what was drawn apart and cannot be together, one goes; other tests ask for the refusals. */
static void settle(pc_iteration_spec *spec) {
    pc_cut *cut = &spec->cut;
    if (spec->generator->barriers != PC_BARRIERS_NONE) {
        cut->lora = (pc_lora){0};
        cut->frozen = 0;
        if (cut->zero == 3) cut->zero = 2;
        if (cut->cross_entropy == PC_CROSS_ENTROPY_CHUNKED) cut->cross_entropy = PC_CROSS_ENTROPY_FUSED;
    }
    if (cut->kernels == PC_KERNELS_EAGER) cut->fuses_operations = cut->compiles = false;
    if (pc_cut_frozen(cut)) cut->zero_partition = PC_ZERO_PARTITION_EVEN;
    if (!(cut->offload.kinds & PC_OFFLOAD_FINE_GRAINED)) cut->offload.modules = 0;
    if (cut->zero < 3) cut->offload.kinds &= ~PC_OFFLOAD_PARAMETERS;
}

/* What exchanges hide behind: kernels of pairs, some of them delayed, or else shared experts. */
static void draw_overlaps(test_random *random, pc_iteration_spec *spec) {
    bool has_shared = spec->model.experts.shared_ffn_hidden > 0 && spec->cut.dispatcher != PC_DISPATCHER_ALLGATHER;
    bool runs_again = spec->cut.recompute_modules & PC_RECOMPUTES_SHARED_EXPERTS;
    spec->delays_weights = spec->overlaps_pairs && toss(random);
    spec->cut.overlaps_shared = has_shared && !runs_again && !spec->overlaps_pairs && toss(random);
}

pc_iteration_spec random_iteration(test_random *random) {
    pc_iteration_spec spec = random_spec(random);
    draw_schedule(random, &spec);
    static const int pps[] = {1, 2, 3, 4};
    spec.cut.pp = pps[test_between(random, 0, 3)];
    bool has_halves = spec.generator->mixes && spec.generator->placement == PC_PLACEMENT_BIDIRECTIONAL;
    if (has_halves) spec.cut.pp += spec.cut.pp % 2;
    if (spec.cut.dp > 8) spec.cut.dp = 3;
    spec.cut.microbatches = spec.cut.pp * 2 * test_between(random, 1, 2);
    spec.cut.zero = (int)test_between(random, 0, 3);
    spec.cut.gradient_bytes = toss(random) ? 4 : 2;
    spec.cut.recompute = (pc_recompute)test_between(random, 0, PC_RECOMPUTE_KINDS - 1);
    spec.cut.recompute_modules = (int32_t)test_between(random, 1, PC_RECOMPUTES_ALL);
    spec.cut.recompute_layers = 1;
    spec.cut.kernels = (pc_kernels)test_between(random, 0, 1);
    spec.unit = (pc_unit)test_between(random, 0, 1);
    spec.network = toss(random) ? PC_NETWORK_CLOSED : toss(random) ? PC_NETWORK_FLOWS : PC_NETWORK_AUTO;
    spec.expands = spec.cut.dp > 1 && test_between(random, 0, 3) == 0;
    if (spec.expands) spec.jitter = toss(random) ? 0 : 0.2;
    spec.seed = test_draw(random);
    test_random own = {spec.seed}; /* so that all else is drawn as without it */
    if (toss(&own)) spec.cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
    if (toss(&own)) spec.cut.gradient_accumulation = PC_GRADIENT_ACCUMULATION_SEPARATE;
    spec.cut.dummy_wgrad = spec.cut.seq_len % 3 > 0;
    draw_units(&own, &spec);
    draw_offload(&own, &spec);
    if (pc_placement_has_slices(spec.generator->placement)) draw_slices(&own, &spec);
    settle(&spec);
    random_base(&own, &spec.model, &spec.cut);
    bool can_have_muon = spec.cut.zero < 2 && !pc_cut_frozen(&spec.cut) && spec.cut.offload.kinds == 0;
    if (can_have_muon && toss(&own)) {
        spec.cut.optimizer.kind = PC_OPTIMIZER_MUON;
        spec.cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
    }
    spec.cut.graphs = (int32_t)test_between(&own, 0, PC_GRAPHS_ITERATION);
    spec.overlaps_tp = toss(random);
    spec.overhead_ps = toss(random) ? 0 : 123456789;
    spec.machine.leaf_nodes = (int32_t)test_between(random, 0, 2);
    spec.machine.oversubscription = 2;
    if (toss(random)) spec.overlap_slowdown = 0.25;
    if (toss(random) && spec.cut.zero > 0 && spec.generator->placement != PC_PLACEMENT_BIDIRECTIONAL)
        spec.cut.shard_group = spec.cut.dp % 2 == 0 ? spec.cut.dp / 2 : 1;
    if (!spec.expands && test_between(random, 0, 5) == 0) spec.granularity = PC_GRANULARITY_OPERATIONS;
    if (test_between(random, 0, 7) == 0) draw_bad_days(random, &spec);
    bool can_pair = pc_generator_pairs(spec.generator, spec.cut.pp, spec.cut.chunks);
    spec.overlaps_pairs = can_pair && toss(&own);
    test_random experts = {spec.seed};
    random_folded_experts(&experts, &spec);
    draw_overlaps(&own, &spec);
    return spec;
}

void random_pairs(test_random *random, pc_iteration_spec *spec) {
    static const char *const names[] = {"1f1b-interleaved-overlap", "dualpipe", "dualpipe-v"};
    spec->generator = pc_generator_find(names[test_between(random, 0, 2)]);
    spec->cut.chunks = 2;
    spec->cut.slices = 0;
    spec->cut.sequence_split = 0;
    spec->cut.pp = toss(random) ? 2 : 4;
    spec->cut.microbatches = spec->cut.pp * 2 * test_between(random, 1, 2);
    spec->cut.shard_group = 0;
    spec->overlaps_pairs = true;
    draw_overlaps(random, spec);
}
