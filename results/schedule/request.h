/* request.h: what is asked of one schedule, option by option: the same options for `pipecast schedule` and the library.
 */
#ifndef PC_RESULTS_SCHEDULE_REQUEST_H
#define PC_RESULTS_SCHEDULE_REQUEST_H

#include "engine/error.h"
#include "models/schedule/generate.h"
#include "models/schedule/pass_times.h"
#include "models/schedule/replay.h"
#include "models/schedule/robust.h"
#include "models/schedule/unit_costs.h"
#include "models/training/scatter.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every option; request.c has how the command and the library spell it. */
typedef enum pc_schedule_option {
    PC_ASK_DEVICES,
    PC_ASK_MICROBATCHES,
    PC_ASK_CHUNKS,
    PC_ASK_SLICES,
    PC_ASK_SLICE_TIMES,
    PC_ASK_TIMES,
    PC_ASK_VOCAB_TIMES,
    PC_ASK_COMM,
    PC_ASK_RELEASE_B,
    PC_ASK_KEEP,
    PC_ASK_MEMORY_LIMIT,
    PC_ASK_OUT_OF_MEMORY,
    PC_ASK_MAKING,
    PC_ASK_GOAL,
    PC_ASK_IMPROVE,
    PC_ASK_ROBUST,
    PC_ASK_JITTER,
    PC_ASK_GPU_JITTER,
    PC_ASK_LINK_JITTER,
    PC_ASK_SLOW_FACTOR,
    PC_ASK_SLOW_STAGE,
    PC_ASK_SAMPLES,
    PC_ASK_SEED,
    PC_ASK_ENGINE,
    PC_ASK_BLOCK,
    PC_ASK_BLOCK_STEPS,
    PC_SCHEDULE_OPTIONS
} pc_schedule_option;

typedef struct pc_schedule_request {
    bool is_command;                       /* whether messages call options as the command does: "--memory-limit" */
    const char *name;                      /* as messages call it; of a block what its file says. NULL if not given */
    const char *block;                     /* the file of a block in place of a name; NULL if not given */
    int block_steps;                       /* a pc_block_steps; -1 if not given */
    int64_t devices, microbatches, chunks; /* 0 if not given */
    int64_t slices;                        /* of a microbatch; likewise */
    const char *slice_times;               /* a number a slice; NULL if not given */
    pc_unit_costs units;
    const char *times_file;   /* measured passes, in place of units' times; NULL if not given */
    pc_pass_times measured;   /* of that file, owned */
    const char *memory_limit; /* one number, or one a device, in microbatches of a stage; of measured passes sizes, such
                               * as 60GiB, of all that a device holds. NULL if not given */
    pc_engine_mode engine;
    bool waits_for_memory;
    pc_making making;
    pc_goal goal;
    bool improves;
    pc_robust robust;
    pc_scatter scatter;
    int64_t slow_stage, samples, seed; /* -1 if not given */
    bool wants_block;                  /* to find what the schedule repeats takes as long as to replay it */
    const char *figure;                /* the file of a picture, borrowed: what cannot be one is refused at once. NULL:
                                        * there will be none, and the replay keeps no trace */
    double (*part_times)[3];           /* units.part_times, owned */
    char *texts[PC_SCHEDULE_OPTIONS];  /* what texts above point to, owned */
    char *name_text;                   /* likewise */
} pc_schedule_request;

/* Nothing given: F, B and W of one unit each. */
void pc_schedule_request_init(pc_schedule_request *r, bool is_command);
void pc_schedule_request_free(pc_schedule_request *r);

/* Takes the schedule's name, or its file. PC_ERROR_INPUT if there is one already. */
pc_code pc_schedule_request_name(pc_schedule_request *r, const char *name, pc_error *error);

/* The option of this name, with '-' or '_' in it; PC_SCHEDULE_OPTIONS if there is none. */
pc_schedule_option pc_schedule_option_find(const char *name);

/* The library's names of all options, with commas between. Static storage. */
const char *pc_schedule_option_names(void);

/* Takes the value of an option, of which the last one holds; NULL stands for "true". */
pc_code pc_schedule_request_set(pc_schedule_request *r, pc_schedule_option option, const char *value, pc_error *error);

/* Reads the file of measured passes, and checks what goes together, once all options are taken. */
pc_code pc_schedule_request_complete(pc_schedule_request *r, pc_error *error);

/* Whether its times are drawn. */
bool pc_schedule_request_draws_times(const pc_schedule_request *r);

#ifdef __cplusplus
}
#endif
#endif
