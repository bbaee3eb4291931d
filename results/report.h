/* report.h: what `pipecast schedule` says of one schedule: a few lines for people, or one JSON object. */
#ifndef PC_RESULTS_REPORT_H
#define PC_RESULTS_REPORT_H

#include "engine/error.h"
#include "models/schedule/block.h"
#include "models/schedule/costs.h"
#include "models/schedule/improve.h"
#include "models/schedule/replay.h"
#include "models/schedule/robust.h"
#include "models/schedule/schedule.h"
#include "models/schedule/steady.h"

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_schedule_report {
    const pc_schedule *schedule;
    const pc_block *block;      /* what the schedule repeats; NULL if that is not known */
    const pc_costs *costs;      /* what the block's peak is counted with; NULL: it is not */
    bool describes_block;       /* whether the lines for people tell of the block, too */
    bool keeps_grid;            /* whether every pass starts where its cell does: nothing was worked out for that */
    const pc_replay *replay;    /* not out of memory */
    const char *goal;           /* what the search for the order minimised; NULL: no search was done */
    bool has_part_times;        /* whether the costs differ from stage to stage, so that they are said */
    const double *memory_limit; /* a number a device, in microbatches of a stage; NULL: none */
    const pc_improvement *improvement; /* if the schedule is another one improved; else NULL */
    const pc_robustness *robustness;   /* if its spans were sampled; else NULL */
    pc_time bound_ps;        /* no schedule like this one is shorter (least_span.h); PC_TIME_NOT_GIVEN: not known */
    const pc_steady *steady; /* NULL: nobody wants it, or its middle does not repeat */
    const char *time_unit;   /* what both of the next are, "ms" and "GiB"; NULL: the user's own, and microbatches */
    const char *memory_unit;
    const int64_t *held_bytes;   /* a number a device, beside activations; NULL: nobody says */
    double time_unit_ps;         /* simulated picoseconds in one of the user's units of time */
    double microbatch_bytes;     /* simulated bytes that F of a whole stage takes */
    double generate_s, replay_s; /* wall-clock seconds that generating (or loading) and replaying took */
} pc_schedule_report;

/* The span, makespan, bubble rates and peaks. Times are in the user's unit, activations in microbatches of a stage.
 * JSON has these fields:
 * - name, devices, microbatches, chunks, placement (with slices: slices, of a part), span, makespan, bubble_rate_span,
 * bubble_rate_makespan;
 * - bound, gap (span/bound - 1) and optimal (true if the span is the bound, else null), all null if no bound is known;
 * - interval (how long a microbatch takes in the middle of the schedule, start and end aside), interval_microbatches
 *   (after how many of them the middle repeats), repeating_bubble (the share of the interval that the most loaded
 * device idles) and idle_per_microbatch (a number a device), all null where nothing repeats (steady.h);
 * - peak_activation (a number a device), max_peak_activation, generate_s, replay_s, trace_hash;
 * - engine: pc_engine_way_name, or "cells" of a kept grid;
 * - block: null, or an object with microbatches, interval and passes (microbatch, device, chunk, kind, start, duration;
 *   all in cells). Its lifespan is a list a device of a number, in cells, for every chunk and microbatch that visits
 *   it. It has peak_bound (pc_block_peak_bound) and, with costs, peak (pc_block_peak): a number a device each, in
 *   microbatches of a stage.
 * - goal: "span" or "makespan", or null if no search was done;
 * - stage_times, if stages were given times of their own: a list a device, of [F, B, W] for every chunk;
 * - memory_limit, if one was given: a number a device (null: none there), in microbatches of a stage;
 * - of measured stages: time_unit ("ms"); and if they say what passes hold memory_unit ("GiB"), which is then that of
 * all memory here, and held, a number a device (null: not known), which counts in no other;
 * - improved, of an improved one alone: an object with changed, span_before, makespan_before and
 *   peak_activation_before (a number a device).
 * - samples, where its spans were sampled: an object with count, mean, mean_error, p95, p95_low and p95_high
 * (bad_days.h);
 * - robust, where the order was chosen by that: an object with goal, changed, and, of the order that it is compared
 * with, span_before, mean_before, p95_before; gain and gain_error, by how much the mean is shorter and the standard
 * error. Numbers read back exactly. PC_ERROR_IO if the stream fails. */
pc_code pc_schedule_report_write(const pc_schedule_report *report, bool as_json, FILE *stream, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
