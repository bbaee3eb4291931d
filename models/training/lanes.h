/* lanes.h: the links of a pipeline, or of each replica's, and messages and collectives as flows over them. Private to
 * models/training/.
 *
 * One tensor rank stands for all, and where replicas are folded one of those for all. What a rank of stage d sends to
 * the next rank of its group arrives, by symmetry, from the one before at its own input. So a collective crosses the
 * stage's own links both ways, a message the sender's out and the receiver's in. A rank has a link into its domain, a
 * share of its node's NICs, and a share of its leaf's uplinks. Every link counts in time. A flow's size is the
 * picoseconds for which it would fill the link alone, and the capacity is one a picosecond. Undisturbed flows take
 * their closed cost; flows that meet share the link max-min fairly. Messages of one stage do not meet on its way out:
 * lower_traffic.c has them follow each other. Over a closed network links are not shared: whatever meets, all takes
 * what it takes alone.
 *
 * A place is a stage of a replica: replica * devices + device.
 */
#ifndef PC_MODELS_TRAINING_LANES_H
#define PC_MODELS_TRAINING_LANES_H

#include "engine/program.h"
#include "models/schedule/engine_trace.h"
#include "models/training/buckets.h"
#include "models/training/outline.h"

typedef enum pc_lane { PC_LANE_DOMAIN, PC_LANE_NIC, PC_LANE_UPLINK, PC_LANES } pc_lane;

/* A task that others wait for, and for how long after its end. */
typedef struct pc_after {
    int32_t task;
    pc_time delay_ps;
} pc_after;

/* Something that is sent: after a latency, flows side by side, each as long as it fills its lane when alone. */
typedef struct pc_sending {
    pc_time latency_ps;
    pc_time fill_ps[PC_LANES];
} pc_sending;

/* A collective, or a few, as what one rank of its group sends, one after the other. */
typedef struct pc_sendings {
    int count;
    pc_sending phase[PC_BUCKET_COURSES * PC_COLLECTIVE_PHASES];
} pc_sendings;

/* What a flow is, for the trace: its task; what it belongs to; and the task so long after whose end it could go. */
typedef struct pc_flow_note {
    pc_flow_sort sort;
    int32_t chunk, microbatch; /* -1: none */
    int32_t ready_task;
    pc_time ready_delay_ps;
    int32_t task;
    int32_t from, to; /* places */
    pc_lane lane;
    pc_time latency_ps, fill_ps;
} pc_flow_note;

typedef struct pc_lanes {
    const pc_outline *outline;
    pc_program *program;
    int replicas;
    bool is_shared;
    pc_sending *message; /* [devices]: to the next stage, or back */
    int32_t *route;      /* [places][PC_LANES][3]: to itself, to the next stage, to the one before; -1 until needed */
    pc_time *load_ps;    /* of each link: [places][PC_LANES][2], out and in; how long it is filled in all */
    int32_t start;       /* a task at time zero */
    double nic_bytes_per_s; /* a rank's share of the NICs, all of its node talking */
    bool keeps_notes;       /* of every flow that is added, in the order of their tasks: */
    pc_flow_note *notes;
    int64_t note_count, note_room;
    pc_flow_note now;  /* what is added next */
    int32_t processor; /* that it takes, too; PC_NO_RESOURCE */
} pc_lanes;

/* Adds the links. Free with pc_lanes_free; the program outlives the lanes. */
pc_code pc_lanes_make(const pc_outline *outline, pc_program *program, int replicas, bool is_shared, pc_lanes *lanes,
                      pc_error *error);
void pc_lanes_free(pc_lanes *lanes);

/* A link's number in the program. `way`: 0 out, 1 in. And what a lane carries, bytes a second. */
int64_t pc_lanes_link(int place, pc_lane lane, int way);
double pc_lanes_bytes_per_s(const pc_lanes *lanes, pc_lane lane);

/* What a collective of this group sends, stretched to `stretch` times what it takes. */
pc_code pc_lanes_sendings(const pc_lanes *lanes, const pc_group *group, const pc_collective_course *collective,
                          double stretch, pc_sendings *sendings, pc_error *error);

/* Adds the second's, which follow. */
void pc_sendings_append(pc_sendings *sendings, const pc_sendings *second);

/* Has them take exactly whole_ps alone, which differs by what was rounded: more latency, or less of it, or else of what
 * they send. None where whole_ps is 0. */
void pc_sendings_fit(pc_sendings *sendings, pc_time whole_ps);
pc_time pc_sendings_alone_ps(const pc_sendings *sendings);

/* Adds a collective of a group that the stage is in, which starts after all of `after`; *done is the task with which it
 * ends. Where nothing is sent that is a task of no time. What it sends goes to place `to`: the stage's own, or a
 * neighbour's (a pair's two ranks). */
pc_code pc_lanes_add_collective(pc_lanes *lanes, int place, int to, const pc_sendings *sendings, const pc_after *after,
                                int count, int32_t *done, pc_error *error);

/* Adds a message between neighbouring stages after `from`; it ends with *done, and outline->gathering_ps later it can
 * be used. `whole_ps`: what it takes until then, alone; -1: what the outline says. */
pc_code pc_lanes_add_message(pc_lanes *lanes, int32_t from, int from_place, int to_place, pc_time whole_ps,
                             int32_t *done, pc_error *error);

/* How long a message can be used after it has arrived, if it takes so long in all. */
pc_time pc_lanes_gathering_ps(const pc_lanes *lanes, pc_time whole_ps);

/* How long the link is filled that is filled longest. */
pc_time pc_lanes_filled_ps(const pc_lanes *lanes);

#endif
