/* pass_times.h: how long the passes of each part of a model took, and what they held: measured ones, as plain data.
 *
 * Parts lie on devices and chunks as in a schedule. A schedule with other chunks takes the same times: where it has
 * fewer parts, each is several of these; where it has more, each is an equal share of one.
 */
#ifndef PC_MODELS_SCHEDULE_PASS_TIMES_H
#define PC_MODELS_SCHEDULE_PASS_TIMES_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/costs.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PC_BYTES_NOT_GIVEN INT64_C(-1)

/* Of one part. Times are PC_TIME_NOT_GIVEN, and bytes PC_BYTES_NOT_GIVEN, if nobody says. */
typedef struct pc_part_times {
    pc_time time_ps[PC_PASS_KINDS]; /* of a microbatch, the mean; 0 of S and T counts as not given */
    double
        scatter[PC_PASS_KINDS];   /* the standard deviation of the times, as a share of the mean; 0: unknown, or none */
    int64_t count[PC_PASS_KINDS]; /* passes that were measured; 0: nobody counted */
    int64_t activation_bytes;     /* what F takes of a microbatch */
    int64_t b_bytes;              /* of that, what B gives back */
} pc_part_times;

typedef struct pc_pass_times {
    int devices, chunks;
    pc_placement placement; /* linear, interleaved or v */
    pc_part_times *parts;   /* [devices][chunks]; owned, as held_bytes is */
    int64_t *held_bytes;    /* [devices]: parameters, gradients, the optimizer's state: there all the time */
    pc_time transfer_ps;    /* from one stage to the next */
    double transfer_scatter;
    int64_t transfer_bytes;
} pc_pass_times;

/* Nothing given. Sizes as pc_schedule_check_size wants. Free it with pc_pass_times_free; a zeroed one is fine there. */
pc_code pc_pass_times_create(int devices, int chunks, pc_placement placement, pc_pass_times *times, pc_error *error);
void pc_pass_times_free(pc_pass_times *times);

static inline pc_part_times *pc_pass_times_at(const pc_pass_times *times, int device, int chunk) {
    return &times->parts[(int64_t)device * times->chunks + chunk];
}

/* PC_OK if a schedule of this shape can take the times: it has as many devices, neither replicas nor slices, and one of
 * the two numbers of parts divides the other. PC_ERROR_INPUT says what was expected. */
pc_code pc_pass_times_suit(const pc_pass_times *times, int devices, int chunks, pc_placement placement,
                           pc_error *error);

/* Fills in durations, activations and the transfer's delay of costs that pc_costs_create made for the shape. BW that
 * was not measured is B + W, and where BW alone was measured B and W stay without a time; R that was not measured is F.
 */
pc_code pc_pass_times_fill(const pc_pass_times *times, pc_placement placement, pc_costs *costs, pc_error *error);

/* Whether every part says what F takes. */
bool pc_pass_times_have_activations(const pc_pass_times *times);

/* The scatter of all passes together, weighted by their times: what `bad_days.jitter` is. */
double pc_pass_times_scatter(const pc_pass_times *times);

#ifdef __cplusplus
}
#endif
#endif
