#include "models/training/recipe.h"

#include "engine/alloc.h"
#include "models/training/host_time.h"
#include "models/training/host_waits.h"
#include "models/training/pass_costs.h"

#include <math.h>
#include <string.h>

/* Adds to the step before where both are kernels of one block, and that one is not beside a collective. */
static void add_kernel(pc_recipe *recipe, int64_t repeat, double seconds) {
    pc_step_of_pass *last = recipe->count > 0 ? &recipe->steps[recipe->count - 1] : NULL;
    recipe->alone_s += (double)repeat * seconds;
    if (last && !last->is_collective && !last->runs_beside && last->repeat == repeat)
        last->seconds += seconds;
    else
        recipe->steps[recipe->count++] = (pc_step_of_pass){.repeat = repeat, .seconds = seconds};
}

/* All kernels beside a collective are a step. */
static void add_beside(pc_recipe *recipe, int64_t repeat, double seconds, double hides_s) {
    recipe->alone_s += (double)repeat * fmax(seconds, hides_s);
    recipe->steps[recipe->count++] = (pc_step_of_pass){.runs_beside = true, .repeat = repeat, .seconds = seconds};
}

/* With the kernels beside it, whose number it returns. */
static int add_collective(const pc_outline *outline, const pc_operations *operations, int number, pc_recipe *recipe) {
    const pc_operation *x = &operations->list[number];
    int beside = pc_operation_beside(outline, operations, number);
    pc_collective_course made = pc_outline_course(outline, x);
    bool is_in_pieces = outline->spec->pipelines_tp && !beside;
    double alone_s = is_in_pieces ? pc_outline_exposed_s(outline, operations, number, made.seconds) : made.seconds;
    double seconds = outline->pace * alone_s;
    if (made.phase_count == 0) return 0;
    if (!beside) recipe->alone_s += (double)x->repeat * seconds;
    recipe->steps[recipe->count++] = (pc_step_of_pass){.is_collective = true,
                                                       .runs_beside = beside > 0,
                                                       .repeat = x->repeat,
                                                       .seconds = seconds,
                                                       .collective = made,
                                                       .group = pc_outline_group(outline, x)};
    if (beside)
        add_beside(recipe, x->repeat, outline->pace * pc_outline_beside_s(outline, operations, number, made.seconds),
                   seconds);
    return beside;
}

/* The GPU waits for the host in front of a layer's dispatch: like a kernel, it holds the processor. */
static void add_host_wait(const pc_outline *outline, const pc_operations *operations, int number, pc_recipe *recipe) {
    double seconds = pc_host_wait_s(outline, operations, number);
    if (seconds > 0) add_kernel(recipe, operations->list[number].repeat, outline->pace * seconds);
}

static void add_operations(const pc_outline *outline, const pc_operations *operations, pc_recipe *recipe) {
    for (int i = 0; i < operations->count; i++) {
        const pc_operation *x = &operations->list[i];
        if (x->repeat < 1) continue;
        add_host_wait(outline, operations, i, recipe);
        if (pc_operation_is_collective(x))
            i += add_collective(outline, operations, i, recipe);
        else
            add_kernel(recipe, x->repeat, outline->pace * outline->cost.kernel(outline->cost.self, x).seconds);
    }
}

pc_code pc_recipe_make(const pc_outline *outline, const pc_part_cost *part, pc_pass_kind kind, pc_recipe *recipe,
                       pc_error *error) {
    pc_operations operations;
    bool has_r = outline->spec->generator->recomputes;
    pc_code code =
        pc_pass_operations(&outline->spec->model, &outline->cut, &part->part, kind, has_r, &operations, error);
    if (code) return code;
    pc_recipe made = {.steps = pc_alloc(2 * (size_t)operations.count + 1, sizeof *made.steps)}; /* and waits */
    if (!made.steps) return pc_error_no_memory(error);
    double launches_s = pc_host_pass_s(outline, &operations);
    made.launches_s = outline->pace * pc_outline_host_s(outline, part, kind, launches_s);
    add_operations(outline, &operations, &made);
    *recipe = made;
    return PC_OK;
}

void pc_recipe_free(pc_recipe *recipe) {
    pc_free(recipe->steps);
    memset(recipe, 0, sizeof *recipe);
}
