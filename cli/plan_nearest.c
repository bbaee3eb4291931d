#include "cli/plan_nearest.h"

#include "cli/cli.h"
#include "engine/alloc.h"
#include "engine/numbers.h"
#include "results/plan_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Of the points the best by `objective`, whatever time it takes and money it costs. */
static bool find_best(const pc_plan_space *space, const pc_plan_request *request, pc_plan_objective objective,
                      pc_plan_found *found) {
    pc_plan_request alone = {.objectives = {objective}, .objective_count = 1, .top = 1, .threads = request->threads};
    pc_plan_answer answer = {.count = 0};
    if (pc_plan_run(space, &alone, &answer, &(pc_error){0})) return false;
    bool has_one = answer.count > 0;
    if (has_one) *found = answer.found[0];
    pc_plan_answer_free(&answer);
    return has_one;
}

/* The smallest microbatches alone, where they divide every batch that larger ones do: these hold no less. */
static void keep_smallest(const pc_plan_list *sizes, int64_t *smallest, pc_plan_list *kept) {
    *smallest = sizes->count > 0 ? sizes->values[0] : 1;
    for (int i = 1; i < sizes->count; i++) *smallest = pc_min(*smallest, sizes->values[i]);
    for (int i = 0; i < sizes->count; i++)
        if (sizes->values[i] % *smallest) return;
    if (sizes->count > 1) *kept = (pc_plan_list){smallest, 1};
}

/* The same space with memory without end: of GPUs, and if nothing keeps within the hosts', of these too. */
static bool find_least_memory(const pc_plan_space *space, const pc_plan_request *request, pc_plan_found *found) {
    pc_plan_space roomy = *space;
    int64_t smallest;
    pc_plan_base *bases = pc_alloc((size_t)space->base_count, sizeof *bases);
    if (!bases) return false;
    memcpy(bases, space->bases, (size_t)space->base_count * sizeof *bases);
    for (int i = 0; i < space->base_count; i++) bases[i].spec.memory_limit_bytes = INT64_C(1) << 50;
    roomy.bases = bases;
    keep_smallest(&space->microbatch_size, &smallest, &roomy.microbatch_size);
    bool has_one = find_best(&roomy, request, PC_PLAN_MEMORY, found);
    for (int i = 0; i < space->base_count; i++) bases[i].spec.machine.host_memory_bytes = 0;
    if (!has_one) has_one = find_best(&roomy, request, PC_PLAN_MEMORY, found);
    pc_free(bases);
    return has_one;
}

static void write_choice(const pc_plan_choice *choice, char *text, size_t size) {
    char experts[32] = "";
    if (choice->ep > 1) snprintf(experts, sizeof experts, "ep %d, ", choice->ep);
    snprintf(text, size, "tp %d, pp %d, dp %d, %s%s, microbatches of %" PRId64 ", ZeRO %d", choice->tp, choice->pp,
             choice->dp, experts, choice->generator->name, choice->microbatch_size, choice->zero);
}

static void say_slow(const pc_plan_request *request, const pc_plan_found *fastest, const pc_plan_found *cheapest) {
    char choice[160];
    bool is_slow = request->most_iteration_s > 0.0 && fastest->iteration_s > request->most_iteration_s;
    const pc_plan_found *nearest = is_slow || !(request->most_cost > 0.0) ? fastest : cheapest;
    write_choice(&nearest->choice, choice, sizeof choice);
    pc_plan_amounts seconds = pc_plan_write_amounts(nearest->iteration_s, request->most_iteration_s);
    pc_plan_amounts cost = pc_plan_write_amounts(nearest->cost, request->most_cost);
    if (is_slow)
        report_usage("no plan fits: the fastest takes %s s, of %s s at most (%s)", seconds.found, seconds.limit,
                     choice);
    else if (nearest == cheapest && cheapest->cost > request->most_cost)
        report_usage("no plan fits: in the cheapest a million tokens cost %s, of %s at most (%s)", cost.found,
                     cost.limit, choice);
    else
        report_usage("no plan fits: none is within both the most time and the most cost");
}

/* Whether a list of offload has what leaves least on the GPU. */
static bool lists_most(const pc_plan_list *list) {
    for (int i = 0; i < list->count; i++)
        if (list->values[i] == (PC_OFFLOAD_FULL | PC_OFFLOAD_OPTIMIZER)) return true;
    return false;
}

/* Whether a plan fits with another list of offload, and what the fastest one offloads. */
static bool find_offload(const pc_plan_space *space, const pc_plan_request *request, int32_t *kinds) {
    static const int64_t all[] = {PC_OFFLOAD_SELECTIVE, PC_OFFLOAD_FULL, PC_OFFLOAD_OPTIMIZER,
                                  PC_OFFLOAD_SELECTIVE | PC_OFFLOAD_OPTIMIZER, PC_OFFLOAD_FULL | PC_OFFLOAD_OPTIMIZER};
    pc_plan_space offloaded = *space;
    pc_plan_found found;
    offloaded.offload = (pc_plan_list){all, sizeof all / sizeof *all};
    if (lists_most(&space->offload) || !find_best(&offloaded, request, PC_PLAN_THROUGHPUT, &found)) return false;
    *kinds = found.choice.offload;
    return true;
}

/* What leaves least on the GPU fits there, and so its host has no room for the rest. */
static void say_host(const pc_plan_space *space, const pc_plan_found *least) {
    char choice[160], offload[PC_OFFLOAD_SIZE];
    int64_t share = pc_machine_host_memory(&space->bases[least->choice.base].spec.machine);
    write_choice(&least->choice, choice, sizeof choice);
    pc_offload_write(least->choice.offload, offload);
    report_usage("no plan fits: with --offload %s a GPU has room, but not its host, with %.2f GiB for each GPU (%s)",
                 offload, (double)share / PC_BYTES_PER_GIB, choice);
}

static void say_memory(const pc_plan_space *space, const pc_plan_request *request, const pc_plan_found *least) {
    char choice[160], offload[PC_OFFLOAD_SIZE] = "";
    int32_t kinds;
    if (least->memory_bytes <= pc_iteration_capacity(&space->bases[least->choice.base].spec)) {
        say_host(space, least);
        return;
    }
    bool helps = find_offload(space, request, &kinds);
    write_choice(&least->choice, choice, sizeof choice);
    if (helps) pc_offload_write(kinds, offload);
    pc_plan_amounts gib =
        pc_plan_write_gib(least->memory_bytes, pc_iteration_capacity(&space->bases[least->choice.base].spec), 2);
    report_usage("no plan fits: the least memory is %s GiB of %s GiB (%s)%s%s%s", gib.found, gib.limit, choice,
                 helps ? "; with --offload " : "", offload, helps ? " a plan fits" : "");
}

void plan_nearest_say(const pc_plan_space *space, const pc_plan_request *request, const pc_plan_log *log,
                      const char *rule) {
    pc_plan_found fastest, cheapest, least;
    bool is_limited = request->most_iteration_s > 0.0 || request->most_cost > 0.0;
    if (is_limited && find_best(space, request, PC_PLAN_THROUGHPUT, &fastest) &&
        find_best(space, request, PC_PLAN_COST, &cheapest)) {
        say_slow(request, &fastest, &cheapest);
        return;
    }
    if (find_least_memory(space, request, &least))
        say_memory(space, request, &least);
    else
        report_usage("no plan fits: of %" PRId64 " points all break a rule%s%s", log->points,
                     rule[0] ? ", those that come furthest: " : "", rule);
}
