/* precision_file.h: recipes of scenarios/precision and of files: which products run in few bits, and what that takes.
 * Private to scenarios/. */
#ifndef PC_SCENARIOS_PRECISION_FILE_H
#define PC_SCENARIOS_PRECISION_FILE_H

#include "engine/error.h"
#include "engine/hash.h"
#include "models/machine/machine.h"
#include "models/workload/model.h"
#include "scenarios/library_private.h"
#include "scenarios/place.h"

/* A recipe, and the 16 bits of what stands in memory. */
typedef struct pc_precision_recipe {
    pc_precision precision;
    pc_low_precision low; /* its name is the file's, whether anything is low or not */
} pc_precision_recipe;

/* By the name of one in the library, or the path of a file that can be reached from `place`. `title` may be NULL.
 * PC_ERROR_INPUT, and what is wrong with it. */
pc_code pc_precision_file_read(const char *name, const pc_place *place, pc_precision_recipe *recipe,
                               char title[PC_TITLE_SIZE], pc_error *error);

/* PC_ERROR_INPUT if the GPU has no units for a format of the recipe: one line, without a place. */
pc_code pc_precision_check_gpu(const pc_low_precision *low, const pc_gpu *gpu, pc_error *error);

/* The recipe on a GPU that may need fewer copies. */
void pc_precision_fit_gpu(const pc_gpu *gpu, pc_low_precision *low);

/* Adds all that decides a result; of a recipe of few bits its name, too, since rows and messages say it. */
void pc_low_precision_hash(const pc_low_precision *low, pc_hash *hash);

#endif
