/* recipe.h: a pass as steps that follow each other: kernels, and collectives of tensor and context parallelism. Private
 * to models/training/. */
#ifndef PC_MODELS_TRAINING_RECIPE_H
#define PC_MODELS_TRAINING_RECIPE_H

#include "models/training/outline.h"

/* Kernels in a row are one step, with what the GPU waits for the host among them (host_waits.h): nothing can come
 * between them. */
typedef struct pc_step_of_pass {
    bool is_collective;
    bool runs_beside; /* a collective for which the step behind it does not wait, but the one behind that; and that step
                       */
    int64_t repeat;   /* steps in a row of the same repeat are a block that is gone through so many times */
    double seconds;   /* at the outline's pace: of kernels; of the collective when alone, or, in pieces, what is left of
                       * it beside its product */
    pc_collective_course collective;
    const pc_group *group; /* of the collective; the outline's */
} pc_step_of_pass;

/* Alone, a pass takes alone_s, or launches_s if that is more (pass_costs.c). */
typedef struct pc_recipe {
    pc_step_of_pass *steps; /* owned */
    int count;
    double alone_s;    /* all steps, nothing else under way; at the outline's pace, as the next */
    double launches_s; /* their launches on the host */
} pc_recipe;

/* The steps of a pass, as pc_pass_operations has them. Free with pc_recipe_free. */
pc_code pc_recipe_make(const pc_outline *outline, const pc_part_cost *part, pc_pass_kind kind, pc_recipe *recipe,
                       pc_error *error);
void pc_recipe_free(pc_recipe *recipe);

/* Behind the steps that are repeated together with this one. */
static inline int pc_recipe_block_end(const pc_recipe *recipe, int first) {
    int behind = first + 1;
    while (behind < recipe->count && recipe->steps[behind].repeat == recipe->steps[first].repeat) behind++;
    return behind;
}

#endif
