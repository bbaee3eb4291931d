/* Whole training iterations: GPT-3 175B, TP 8, folded, with memory curves, as a run inside a sweep does them. A mixture
 * of experts stands beside a dense model on as many GPUs, which may take half as long. Then every data-parallel replica
 * is expanded and each pass 5% noisy, up to 131,072 GPUs. By events: the engine runs it whole, and keeps its trace. */
#include "bench/bench.h"
#include "bench/example.h"
#include "models/training/iteration.h"
#include "scenarios/library.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct example {
    const char *name;
    int pp, dp, microbatches;
    const char *schedule;
    int chunks;
    pc_network_mode network;
    bool expands;
    pc_engine_mode engine;
    int rounds;
    int cp; /* over 1: of the ranks of dp, and with recomputation by module; 1: as much attention without them; 0:
               neither */
    const char *model; /* NULL: GPT-3's; else of the library, on H100 */
} example;

enum { EXPERT_RANKS = 8 };

static const example examples[] = {
    {"4,096 GPUs, folded, closed", 8, 64, 24, "1f1b", 1, PC_NETWORK_CLOSED, false, PC_ENGINE_AUTO, 501, 0, NULL},
    {"4,096 GPUs, folded, flows", 8, 64, 24, "1f1b", 1, PC_NETWORK_FLOWS, false, PC_ENGINE_AUTO, 501, 0, NULL},
    {"4,096 GPUs, folded, auto", 8, 64, 24, "1f1b", 1, PC_NETWORK_AUTO, false, PC_ENGINE_AUTO, 501, 0, NULL},
    {"4,096 GPUs, closed, by events", 8, 64, 24, "1f1b", 1, PC_NETWORK_CLOSED, false, PC_ENGINE_EVENTS, 501, 0, NULL},
    {"4,096 GPUs, flows, by events", 8, 64, 24, "1f1b", 1, PC_NETWORK_FLOWS, false, PC_ENGINE_EVENTS, 501, 0, NULL},
    {"4,096 GPUs, v-half, closed", 8, 64, 24, "v-half", 2, PC_NETWORK_CLOSED, false, PC_ENGINE_AUTO, 51, 0, NULL},
    {"4,096 GPUs, flash, closed", 8, 64, 24, "1f1b", 1, PC_NETWORK_CLOSED, false, PC_ENGINE_AUTO, 501, 1, NULL},
    {"cp 2, by module, closed", 8, 32, 24, "1f1b", 1, PC_NETWORK_CLOSED, false, PC_ENGINE_AUTO, 501, 2, NULL},
    {"4,096 GPUs, flash, flows", 8, 64, 24, "1f1b", 1, PC_NETWORK_FLOWS, false, PC_ENGINE_AUTO, 501, 1, NULL},
    {"cp 2, by module, flows", 8, 32, 24, "1f1b", 1, PC_NETWORK_FLOWS, false, PC_ENGINE_AUTO, 501, 2, NULL},
    {"4,096 GPUs, Llama 3 70B, closed", 8, 64, 24, "1f1b", 1, PC_NETWORK_CLOSED, false, PC_ENGINE_AUTO, 501, 1,
     "llama3-70b"},
    {"4,096 GPUs, Mixtral 8x22B, closed", 8, 64, 24, "1f1b", 1, PC_NETWORK_CLOSED, false, PC_ENGINE_AUTO, 501, 1,
     "mixtral-8x22b"},
    {"4,096 GPUs, Llama 3 70B, flows", 8, 64, 24, "1f1b", 1, PC_NETWORK_FLOWS, false, PC_ENGINE_AUTO, 51, 1,
     "llama3-70b"},
    {"4,096 GPUs, Mixtral 8x22B, flows", 8, 64, 24, "1f1b", 1, PC_NETWORK_FLOWS, false, PC_ENGINE_AUTO, 51, 1,
     "mixtral-8x22b"},
    {"16,384 GPUs, expanded, jitter", 16, 128, 64, "1f1b", 1, PC_NETWORK_CLOSED, true, PC_ENGINE_AUTO, 5, 0, NULL},
    {"131,072 GPUs, expanded, jitter", 16, 1024, 64, "1f1b", 1, PC_NETWORK_CLOSED, true, PC_ENGINE_AUTO, 3, 0, NULL},
};

/* Experts over ranks of attention's tensor parallelism, a whole one each (etp 1). */
static void load(const char *name, pc_iteration_spec *spec) {
    pc_library_model model;
    pc_library_machine machine;
    if (pc_library_load_model(name, &model, NULL) || pc_library_load_machine("dgx-h100", &machine, NULL)) abort();
    spec->model = model.model;
    spec->machine = machine.machine;
    spec->cut.ep = model.model.experts.num_experts > 0 ? EXPERT_RANKS : 1;
    spec->cut.etp = 1;
}

static pc_iteration_spec spec_of(const example *subject) {
    pc_iteration_spec spec =
        bench_gpt3_spec(subject->schedule, subject->chunks, subject->pp, subject->dp, subject->microbatches);
    if (subject->model) load(subject->model, &spec);
    spec.network = subject->network;
    spec.expands = subject->expands;
    spec.engine = subject->engine;
    spec.jitter = subject->expands ? 0.05 : 0;
    if (subject->cp > 0) {
        spec.model.attention = PC_ATTENTION_FLASH;
        spec.cut.recompute = PC_RECOMPUTE_NONE;
    }
    if (subject->cp > 1) {
        spec.cut.cp = subject->cp;
        spec.cut.recompute = PC_RECOMPUTE_MODULES;
        spec.cut.recompute_modules = PC_RECOMPUTES_CORE_ATTN | PC_RECOMPUTES_MLP;
    }
    return spec;
}

static void measure(const example *subject) {
    double times[1024] = {0};
    pc_iteration_spec spec = spec_of(subject);
    pc_iteration iteration = {0};
    pc_error error = {0};
    for (int i = 0; i < subject->rounds; i++) {
        double begin = pc_now_s();
        if (pc_iteration_run(&spec, NULL, true, &iteration, &error)) {
            printf("%-34s %s\n", subject->name, error.message);
            return;
        }
        times[i] = pc_now_s() - begin;
        if (i + 1 < subject->rounds) pc_iteration_free(&iteration);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    pc_sort_reals(times, subject->rounds);
    printf("%-34s %10.3f ms (least %.3f), %5ld MB, iteration %.3f s, %s%s\n", subject->name,
           1e3 * times[subject->rounds / 2], 1e3 * times[0], usage.ru_maxrss / 1024, iteration.iteration_s,
           iteration.message, iteration.status ? " (not ok)" : "");
    pc_iteration_free(&iteration);
}

/* A process of its own each: the peak of its memory is its own. */
int main(void) {
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            measure(&examples[i]);
            fflush(stdout);
            _exit(0);
        }
        if (child < 0) abort();
        waitpid(child, NULL, 0);
    }
    return 0;
}
