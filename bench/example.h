/* example.h: the iteration that benchmarks share: GPT-3 175B on A100, TP 8, sequence parallelism, selective
 * recomputation, ZeRO 1, microbatches of one sequence of 2,048 tokens. */
#ifndef PC_BENCH_EXAMPLE_H
#define PC_BENCH_EXAMPLE_H

#include "models/training/iteration.h"
#include "scenarios/library.h"

#include <stdlib.h>

static inline pc_iteration_spec bench_gpt3_spec(const char *schedule, int chunks, int pp, int dp, int microbatches) {
    pc_iteration_spec spec = pc_iteration_spec_default();
    pc_library_model model;
    pc_library_machine machine;
    if (pc_library_load_model("gpt3-175b", &model, NULL) || pc_library_load_machine("dgx-a100", &machine, NULL))
        abort();
    spec.model = model.model;
    spec.machine = machine.machine;
    spec.generator = pc_generator_find(schedule);
    spec.cut = (pc_cut){.tp = 8,
                        .pp = pp,
                        .dp = dp,
                        .chunks = chunks,
                        .sequence_parallel = true,
                        .zero = 1,
                        .microbatch_size = 1,
                        .microbatches = microbatches,
                        .seq_len = 2048,
                        .recompute = PC_RECOMPUTE_SELECTIVE};
    return spec;
}

#endif
