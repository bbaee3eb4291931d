/* schedule_answer.h: what `pipecast schedule` was asked for, and what came of it. */
#ifndef PC_CLI_SCHEDULE_ANSWER_H
#define PC_CLI_SCHEDULE_ANSWER_H

#include "cli/cli.h"
#include "models/schedule/block.h"
#include "models/schedule/costs.h"
#include "models/schedule/generate.h"
#include "models/schedule/given_block.h"
#include "models/schedule/improve.h"
#include "models/schedule/pass_times.h"
#include "models/schedule/replay.h"
#include "models/schedule/robust.h"
#include "models/schedule/steady.h"
#include "models/schedule/unit_costs.h"
#include "models/training/scatter.h"
#include "results/report.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum schedule_format { FORMAT_TABLE, FORMAT_JSON, FORMAT_TEXT, FORMAT_TORCH_CSV, FORMAT_BLOCK } schedule_format;

typedef struct schedule_request {
    const char *name;                      /* as messages call it; of a block what stands in its file */
    const char *block;                     /* the file of a block in place of a name; NULL if not given */
    int block_steps;                       /* a pc_block_steps; -1 if not given */
    int64_t devices, microbatches, chunks; /* 0 if not given */
    int64_t slices;                        /* of a microbatch; likewise */
    const char *slice_times;               /* a number a slice; NULL if not given */
    pc_unit_costs units;
    const char *times_file;   /* measured passes, in place of units' times; NULL if not given */
    pc_pass_times measured;   /* of that file, owned */
    bool keeps_quiet;         /* of limits that are too little, as whoever tries many schedules wants */
    const char *memory_limit; /* one number, or one a device, in microbatches of a stage; of measured passes sizes, such
                               * as 60GiB, of all that a device holds. NULL if not given */
    schedule_format format;
    const char *figure;
    pc_engine_mode engine;
    bool waits_for_memory;
    pc_making making;
    pc_goal goal;
    bool improves;
    pc_robust robust;
    pc_scatter scatter;
    int64_t slow_stage, samples, seed; /* -1 if not given */
    double (*part_times)[3];           /* units.part_times, owned */
    double *slice_shares;              /* units.slice_times, likewise */
} schedule_request;

/* An answer before it is printed; the report points to the schedule and the replay. */
typedef struct answer {
    const schedule_request *request;
    double *limit; /* a number a device, in microbatches (of measured passes: GiB) of activations; infinite: none */
    int64_t *limit_bytes; /* the same as pc_memory_limit has it; NULL if no limit was given */
    pc_costs costs;
    pc_given_block *given; /* the block of one's own; NULL if there is none */
    pc_schedule schedule;
    pc_block block;             /* the one that the schedule repeats; without devices where there is none */
    pc_improvement improvement; /* zeroed where nothing is to be improved */
    pc_robustness robustness;   /* zeroed where no times are drawn */
    pc_replay replay;
    pc_steady steady; /* zeroed where its middle does not repeat */
    pc_schedule_report report;
} answer;

/* Whether its times are drawn. */
bool draws_times(const schedule_request *r);

/* Fills in the answer, whose request is set; what it holds so far stays the caller's to free, also on failure.
 * *status is what the command ends with where the answer is not worked out for another reason than *error, which has
 * been said then. */
pc_code work_out(schedule_request *r, answer *a, int *status, pc_error *error);
void free_answer(answer *a);

/* The limit that it is replayed with: where nothing waits, the replay is to say what the schedule needs, not where it
 * stops. */
pc_memory_limit limit_of_replay(const answer *a);
double in_microbatches(const answer *a, int64_t bytes);

/* ---- in schedule_measured.c: passes that were measured ---- */

/* Reads the file; its number of stages is that of devices, and its scatter the jitter, if nobody says. */
pc_code take_measured(schedule_request *r, pc_error *error);

/* Whether memory counts in bytes: all of them say what F takes. */
bool counts_bytes(const schedule_request *r);

/* One word of --memory-limit, as GiB that device `d` has for activations. */
pc_code read_size_limit(const schedule_request *r, const char *word, int device, double *limit, pc_error *error);

/* Costs, and the units of the report. */
pc_code prepare_measured(const schedule_request *r, const pc_unit_shape *shape, answer *a, pc_error *error);

/* ---- in schedule_best.c ---- */

/* Whether the name is that of all schedules together; and the answer of the one whose span is the shortest of those
 * that measured stages can have, within the limit. `tried` has room for the request, which the answer points to. */
bool asks_for_best(const schedule_request *r);
pc_code find_best(const schedule_request *r, schedule_request *tried, answer *best, int *status, pc_error *error);

/* ---- in schedule_slices.c ---- */

/* The chunks of a schedule of slices become those, and the costs have their times. `generator`: NULL of a file. */
pc_code take_slices(schedule_request *r, const pc_generator *generator, pc_error *error);

/* ---- in schedule_show.c ---- */

/* Prints the answer in the form that was asked for; and draws the figure, if one was. */
pc_code print_answer(const answer *a, pc_error *error);
pc_code draw_answer(const answer *a, pc_error *error);

/* Say which limit is too small, and the least that would do; and which pass waits for memory that nobody gives back.
 * What the command ends with. */
int report_too_little(const answer *a, int device, double enough);
int report_standstill(const answer *a);

/* EXIT_DID_NOT_FIT, after having said so, where the schedule holds more than --memory-limit. */
int judge_memory(const answer *a);

#endif
