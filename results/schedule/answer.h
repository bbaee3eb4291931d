/* answer.h: one schedule as it was asked for: made or loaded, improved or made robust, replayed and judged. */
#ifndef PC_RESULTS_SCHEDULE_ANSWER_H
#define PC_RESULTS_SCHEDULE_ANSWER_H

#include "models/schedule/block.h"
#include "models/schedule/costs.h"
#include "models/schedule/given_block.h"
#include "models/schedule/improve.h"
#include "models/schedule/replay.h"
#include "models/schedule/robust.h"
#include "models/schedule/steady.h"
#include "results/report.h"
#include "results/schedule/request.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Start with zeros. It does not move: the report points into it. */
typedef struct pc_schedule_answer {
    pc_schedule_request request;   /* what was asked, as it was understood; its texts are those of the one given */
    bool does_not_fit;             /* with an error: whether that is a memory limit that is too little */
    double enough;                 /* then the limit that would do, in the unit of limits; 0: it is not known */
    const pc_generator *generator; /* NULL for a schedule from a file */
    double *slice_shares;          /* the request's units.slice_times */
    double *limit; /* a number a device, in microbatches (of measured passes: GiB) of activations; infinite: none */
    int64_t *limit_bytes; /* the same as pc_memory_limit has it; NULL if no limit was given */
    pc_costs costs;
    pc_given_block *given; /* the block of one's own; NULL if there is none */
    pc_schedule schedule;
    pc_block block;             /* the one that the schedule repeats; without devices where there is none */
    pc_improvement improvement; /* zeroed where nothing is to be improved */
    pc_robustness robustness;   /* zeroed where no times are drawn */
    pc_replay replay;
    bool is_judged;
    pc_steady steady; /* zeroed where its middle does not repeat, or it is not judged */
    pc_schedule_report report;
} pc_schedule_answer;

/* How an answer is written: a few lines for people; JSON; the passes; the CSV of PyTorch's runtime; the block. */
typedef enum pc_schedule_format {
    PC_SCHEDULE_TABLE,
    PC_SCHEDULE_JSON,
    PC_SCHEDULE_TEXT,
    PC_SCHEDULE_TORCH_CSV,
    PC_SCHEDULE_BLOCK
} pc_schedule_format;
#define PC_SCHEDULE_FORMATS "table|json|text|torch-csv|block"

/* Fills in the answer to a request that is complete and stays as long as the answer. What it holds is the caller's to
 * free, also on failure. PC_ERROR_INPUT if it cannot be made, with does_not_fit if a larger limit would do. */
pc_code pc_schedule_answer_find(const pc_schedule_request *r, pc_schedule_answer *a, pc_error *error);
void pc_schedule_answer_free(pc_schedule_answer *a);

/* Works out what only readers want to know: the bound of the span, and what repeats in the middle. Once is enough. */
pc_code pc_schedule_answer_judge(pc_schedule_answer *a, pc_error *error);

/* The bound alone; PC_TIME_NOT_GIVEN if none is known. */
pc_code pc_schedule_answer_bound(const pc_schedule_answer *a, pc_time *bound_ps, pc_error *error);

/* PC_ERROR_INPUT, with does_not_fit, if the schedule holds more than the memory limit. */
pc_code pc_schedule_answer_check_memory(pc_schedule_answer *a, pc_error *error);

/* Writes it; of a table or JSON it is judged first. The block is there if the request wants it. */
pc_code pc_schedule_answer_write(pc_schedule_answer *a, pc_schedule_format format, FILE *stream, pc_error *error);

/* Replays it as the answer was, with a trace if that is wanted. Free the replay with pc_replay_free. */
pc_code pc_schedule_answer_replay(const pc_schedule_answer *a, bool with_trace, pc_replay *replay, pc_error *error);

/* Bytes as the answer's unit of memory. */
double pc_schedule_answer_memory(const pc_schedule_answer *a, int64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
