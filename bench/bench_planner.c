/* The planner: GPT-3 175B on 4,096 A100 (DGX A100, 80 GB) with a global batch of 4,096 sequences, over everything that
 * can be chosen. That is every tp, pp, number of chunks, layout and microbatch size that divides; recomputation, ZeRO,
 * sequence parallelism, overlaps; and all orders of ranks. First with 1F1B and its interleaved form, then with all
 * schedules that do not search. The argument `usual`: the first alone; `all`: every schedule, which takes long.
 * PC_PLANNER_THREADS: other than one a processor. */
#include "bench/bench.h"
#include "models/planner/planner.h"
#include "scenarios/library.h"

#include <string.h>

enum { GPUS = 4096, BATCH = 4096, LIST_MAX = 128 };

typedef struct numbers {
    int64_t values[LIST_MAX];
    int count;
} numbers;

static pc_plan_list list_of(const numbers *list) {
    return (pc_plan_list){list->values, list->count};
}

/* Every number from 1 to `most` that divides. */
static numbers divisors(int64_t of, int64_t most) {
    numbers list = {.count = 0};
    for (int64_t i = 1; i <= of && i <= most && list.count < LIST_MAX; i++)
        if (of % i == 0) list.values[list.count++] = i;
    return list;
}

static numbers all_up_to(int64_t most) {
    numbers list = {.count = 0};
    for (int64_t i = 1; i <= most && list.count < LIST_MAX; i++) list.values[list.count++] = i;
    return list;
}

/* 1F1B and its interleaved form; all that do not search; all. */
typedef enum selection { USUAL, STATIC, ALL } selection;

static int find_generators(selection wanted, const pc_generator **found) {
    int all, count = 0;
    const pc_generator *first = pc_generators(&all);
    for (int i = 0; i < all; i++) {
        bool is_usual = strcmp(first[i].name, "1f1b") == 0 || strcmp(first[i].name, "1f1b-interleaved") == 0;
        if (is_usual || wanted == ALL || (wanted == STATIC && !first[i].searches)) found[count++] = &first[i];
    }
    return count;
}

static const char *const recompute_names[] = {"none", "selective", "full"};

static void print_answer(const char *name, const pc_plan_answer *answer, double seconds) {
    const pc_plan_log *log = &answer->log;
    double points = (double)log->points;
    double possible = points - (double)log->broken_rule;
    printf("%s: %.0f points in %.1f s, %.0f a second; %.0f of them break no rule\n", name, points, seconds,
           points / seconds, possible);
    printf("    of these %.2f%% are over memory, %.2f%% too slow, %lld simulated (%lld over memory)\n",
           100 * (double)log->over_memory / possible, 100 * (double)log->too_slow / possible, (long long)log->simulated,
           (long long)log->simulated_over_memory);
    printf("    bounding %.1f s, simulating %.1f s; bounds are %.4f of the time, at least %.4f\n", log->bound_s,
           log->simulate_s, log->mean_bound, log->worst_bound);
    for (int64_t i = 0; i < answer->count; i++) {
        const pc_plan_found *x = &answer->found[i];
        const pc_plan_choice *c = &x->choice;
        printf("    %.3f s, MFU %.3f, %.1f GiB: %s, tp %d pp %d dp %d, %d chunks, microbatch %lld, %s, zero %d, sp %d, "
               "overlaps %d%d%d%d, bound %.4f%s\n",
               x->iteration_s, x->mfu, (double)x->memory_bytes / 0x1p30, c->generator->name, c->tp, c->pp, c->dp,
               c->chunks, (long long)c->microbatch_size, recompute_names[c->recompute], c->zero, c->sequence_parallel,
               c->overlaps_tp, c->overlaps_gradients, c->overlaps_parameters, c->overlaps_p2p,
               x->bound_s / x->iteration_s, x->memory_limits ? ", memory limits" : "");
    }
    fflush(stdout);
}

static void measure(const char *name, selection wanted, int top) {
    static const int64_t three[] = {PC_RECOMPUTE_NONE, PC_RECOMPUTE_SELECTIVE, PC_RECOMPUTE_FULL},
                         zero[] = {0, 1, 2, 3}, both[] = {0, 1}, layouts[] = {PC_CUT_EVEN, PC_CUT_ENDS, PC_CUT_OWN},
                         gpus[] = {GPUS}, batch[] = {BATCH};
    static const pc_rank_order orders[] = {
        {{PC_AXIS_TP, PC_AXIS_DP, PC_AXIS_PP}}, {{PC_AXIS_TP, PC_AXIS_PP, PC_AXIS_DP}},
        {{PC_AXIS_DP, PC_AXIS_TP, PC_AXIS_PP}}, {{PC_AXIS_DP, PC_AXIS_PP, PC_AXIS_TP}},
        {{PC_AXIS_PP, PC_AXIS_TP, PC_AXIS_DP}}, {{PC_AXIS_PP, PC_AXIS_DP, PC_AXIS_TP}}};
    const pc_generator *generators[64];
    pc_library_model model;
    pc_library_machine machine;
    if (pc_library_load_model("gpt3-175b", &model, NULL) || pc_library_load_machine("dgx-a100", &machine, NULL))
        abort();
    pc_plan_base base = {.spec = pc_iteration_spec_default(), .gpu_hour_price = NAN};
    base.spec.model = model.model;
    base.spec.model.attention =
        PC_ATTENTION_MATERIALISED; /* as that tool has it: selective recomputation is a choice */
    base.spec.machine = machine.machine;
    base.spec.cut.seq_len = 2048;
    int64_t most_parts = model.model.layers + 2; /* embedding and head count as layers, or have parts of their own */
    numbers tp = divisors(model.model.heads, GPUS), pp = divisors(GPUS, most_parts);
    numbers chunks = all_up_to(most_parts), sizes = divisors(BATCH, BATCH);
    pc_plan_space space = {.bases = &base,
                           .base_count = 1,
                           .gpus = {gpus, 1},
                           .global_batch = {batch, 1},
                           .tp = list_of(&tp),
                           .pp = list_of(&pp),
                           .chunks = list_of(&chunks),
                           .layouts = {layouts, 3},
                           .microbatch_size = list_of(&sizes),
                           .recompute = {three, 3},
                           .zero = {zero, 4},
                           .sequence_parallel = {both, 2},
                           .overlaps_tp = {both, 2},
                           .overlaps_gradients = {both, 2},
                           .overlaps_parameters = {both, 2},
                           .overlaps_p2p = {both, 2},
                           .generators = generators,
                           .generator_count = find_generators(wanted, generators),
                           .orders = orders,
                           .order_count = 6};
    const char *threads = getenv("PC_PLANNER_THREADS");
    pc_plan_request request = {
        .objective_count = 1, .top = top, .threads = threads ? (int)strtol(threads, NULL, 10) : 0};
    pc_plan_answer answer;
    pc_error error = {0};
    double begin = pc_now_s();
    if (pc_plan_run(&space, &request, &answer, &error)) {
        printf("%s: %s\n", name, error.message);
        return;
    }
    print_answer(name, &answer, pc_now_s() - begin);
    pc_plan_answer_free(&answer);
}

int main(int count, char **arguments) {
    const char *only = count > 1 ? arguments[1] : "";
    if (strcmp(only, "all") == 0) {
        measure("every schedule", ALL, 3);
        return 0;
    }
    measure("1F1B, interleaved or not", USUAL, 3);
    if (strcmp(only, "usual") != 0) measure("every schedule that does not search", STATIC, 3);
    return 0;
}
