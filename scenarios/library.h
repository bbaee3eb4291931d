/* library.h: the models, machines, GPUs, profiles, software and precisions that come with pipecast: the texts of
 * scenarios/models, scenarios/machines, scenarios/software and scenarios/precision, part of the library itself, so that
 * names mean the same in every folder and without installation.
 */
#ifndef PC_SCENARIOS_LIBRARY_H
#define PC_SCENARIOS_LIBRARY_H

#include "engine/error.h"
#include "models/machine/machine.h"
#include "models/workload/model.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_library_kind {
    PC_LIBRARY_MODELS,
    PC_LIBRARY_MACHINES,
    PC_LIBRARY_GPUS,
    PC_LIBRARY_SOFTWARE,
    PC_LIBRARY_PRECISIONS,
    PC_LIBRARY_PROFILES, /* of measured kernels: `kernels` of a GPU's file names one; calib/profile/profile_text.h reads
                            it */
    PC_LIBRARY_KINDS
} pc_library_kind;

typedef struct pc_library_file {
    const char *name; /* the file's without ".yaml" or ".csv" */
    const char *text; /* YAML; of a profile CSV */
} pc_library_file;

/* All of one kind, `*count`, by name. Static storage. */
const pc_library_file *pc_library_files(pc_library_kind kind, int *count);

/* NULL if there is none of that name. */
const pc_library_file *pc_library_find(pc_library_kind kind, const char *name);

/* Whether it names a file or a folder, and nothing in the library: it has a '/', or ends in ".yaml" or ".json". */
bool pc_library_is_path(const char *name);

enum { PC_TITLE_SIZE = 256 };

typedef struct pc_library_model {
    char title[PC_TITLE_SIZE]; /* "" if there is none */
    pc_model model;
    int64_t seq_len, global_batch; /* what it is usually trained with; -1 if the file says nothing */
} pc_library_model;

typedef struct pc_library_machine {
    char title[PC_TITLE_SIZE];
    pc_machine machine;
} pc_library_machine;

/* By the name of one in the library, or the path of a file: what has a '/' or ends in ".yaml"; of a model also a
 * config.json of Hugging Face, or the folder that it is in. PC_ERROR_INPUT and what is wrong with it, or what it may
 * have meant. */
pc_code pc_library_load_model(const char *name, pc_library_model *model, pc_error *error);
pc_code pc_library_load_machine(const char *name, pc_library_machine *machine, pc_error *error);

/* The same of a GPU; of a machine's name its GPU. */
pc_code pc_library_load_gpu(const char *name, pc_gpu *gpu, pc_error *error);

/* Of a file of settings that a software is known by (`software`): its title, "" if it has none. */
pc_code pc_library_load_software(const char *name, char title[PC_TITLE_SIZE], pc_error *error);

/* The same of a recipe (`model.precision`). */
pc_code pc_library_load_precision(const char *name, char title[PC_TITLE_SIZE], pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
