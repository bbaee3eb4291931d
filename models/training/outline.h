/* outline.h: what an iteration consists of, in numbers: every pass, transfer and collective at what it takes when
 * alone. Private to models/training/.
 */
#ifndef PC_MODELS_TRAINING_OUTLINE_H
#define PC_MODELS_TRAINING_OUTLINE_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/cost/dispatch.h"
#include "models/schedule/costs.h"
#include "models/training/iteration.h"
#include "models/training/owners.h"
#include "models/workload/memory.h"
#include "models/workload/operation.h"

#include <stdbool.h>
#include <stdint.h>

/* One pass of one sort of part on one GPU, seconds, before the spec's overhead. */
typedef struct pc_pass_cost {
    double kernel_s;
    double compute_s; /* kernels, or their launches where those take longer */
    double cp_s;      /* how much longer those of context parallelism then make it */
    double tp_s;      /* how much longer collectives of tensor parallelism make it: those that neither kernels hide nor
                       * the GPU's waiting for launches */
    double ep_s;      /* how much longer dispatch and combine do, behind both */
    double tp_bytes;  /* what they all send */
    double cp_bytes, ep_bytes;
    double standard_error_s;
    double flops;
    double head_share, embedding_share; /* of kernel_s, where ZeRO 3 has units (outline_units.h); else 0 */
} pc_pass_cost;

/* All that the pass takes alone. */
static inline double pc_pass_alone_s(const pc_pass_cost *pass) {
    return pass->compute_s + pass->tp_s + pass->cp_s + pass->ep_s;
}

/* What a collective takes alone, and what each of its ranks sends for it. */
typedef struct pc_alone {
    double seconds, sent_bytes;
} pc_alone;
pc_alone pc_outline_alone(const pc_machine *machine, const pc_group *group, pc_collective collective,
                          double size_bytes);
pc_alone pc_outline_alone_by(pc_collective_course course);

/* Parts of equal layers, ends and recomputation cost the same. */
typedef struct pc_part_cost {
    pc_part part;
    pc_pass_cost pass[PC_PASS_KINDS]; /* of the kinds that the schedule has */
    pc_part_activation activation;
    int64_t pooled, hidden;                    /* of a microbatch, in CUDA graphs' pools (graph_pools.h) */
    int64_t parameters;                        /* of one TP rank */
    int64_t trained;                           /* of them, those that have gradients (pc_part_trained) */
    int64_t low_weights;                       /* of them, those that a recipe has in few bits (pc_part_low_weights) */
    int64_t expert_parameters, expert_trained; /* of both, those of experts that are folded; else 0 */
} pc_part_cost;

/* What a unit of ZeRO 3 takes when alone, and what a GPU sends for it. Its copies are kernels. */
typedef struct pc_unit_traffic {
    pc_time gather_ps, reduce_ps, replicate_ps, copy_out_ps, copy_in_ps;
    double gather_bytes, reduce_bytes;
    double gathered_bytes, gradient_bytes; /* the whole tensors', but for folded experts */
    double expert_gathered_bytes, expert_gradient_bytes;
} pc_unit_traffic;

/* A chunk's: its ends, and `count` units of layers, of which one has what is left. Zeroed where ZeRO 3 has none. */
typedef struct pc_chunk_units {
    pc_unit_traffic root, each, rest;
    int count;
    double each_share; /* of the layers */
} pc_chunk_units;

/* Where experts lie that are folded (outline_experts.h): who shares those of a layer, and who has the same ones, adds
 * up their gradients and, with ZeRO, shares their state. Zeroed where experts are with the other parameters. */
typedef struct pc_expert_places {
    pc_group ep, etp, replicas; /* etp: who cuts an expert */
    pc_group shard, replicate;  /* of the replicas, as the outline's own of all */
} pc_expert_places;

/* A chunk's collectives of data parallelism come in `buckets` equal ones. */
typedef struct pc_chunk_outline {
    int sort; /* of its part: index into part_costs */
    int32_t buckets;
    pc_time reduce_ps;                 /* of one bucket's gradients; what is not done is 0 */
    pc_time gather_ps;                 /* of one bucket's parameters */
    double reduce_bytes, gather_bytes; /* what a GPU sends for them */
    pc_chunk_units units;
} pc_chunk_outline;

typedef struct pc_device_outline {
    int64_t parameter_count;              /* of all its chunks, a shared embedding once */
    int64_t trained_count;                /* of them, those that have gradients */
    int64_t low_weights;                  /* of all, those of few bits */
    int64_t expert_count, expert_trained; /* of both, those of folded experts */
    int64_t fixed_parameters, fixed_gradients, fixed_optimizer, fixed_buffers; /* bytes held all the time */
    int64_t workspace_bytes; /* of the buffers, what libraries keep: dummy gradients (dummy_wgrad.h) */
    int64_t reserved_bytes;  /* of them, what is reserved and not allocated (pc_loss_buffers) */
    int64_t graph_bytes;     /* of them, what passes work with in a graph of the whole iteration */
    int64_t step_bytes;      /* what the step needs beside those, in the room that activations have left */
    int64_t capacity_bytes;  /* in all */
    int64_t host_bytes;      /* of state that is on the host */
    pc_hop hop;              /* to the next device */
    double message_s;        /* over it, alone */
    pc_time hop_ps;          /* a transfer to the next device, or back; 0 on the only one */
    pc_time step_ps;         /* of the optimizer */
    pc_owners owners;        /* of whole tensors; zeroed where none are given to ranks */
    pc_owners expert_owners; /* of folded experts' */
    pc_time slowed_ps; /* how much later its kernels end for the collectives of ZeRO 0 to 2 beside them (state.c) */
} pc_device_outline;

typedef struct pc_outline_memo pc_outline_memo;

typedef struct pc_outline {
    const pc_iteration_spec *spec; /* borrowed */
    pc_outline_memo *memo;         /* borrowed; NULL: none */
    pc_cut cut; /* the spec's, with its chunks filled in, what is balanced as a list, and recomputation where the
                   schedule has R */
    pc_cost_model cost;
    double pace; /* a pass takes so many times what the cost model says: overhead, and the slowest of all GPUs */
    pc_placement placement;
    int devices, chunks, parts;
    bool shares_embedding; /* first and last part are on one device, which holds the tied matrix once */
    pc_ranks ranks;
    pc_time gathering_ps;          /* of hop_ps, what the receivers take to gather a scattered boundary tensor */
    double transfer_bytes;         /* what a GPU sends for a transfer to another stage, that gathering with it */
    pc_group cp_groups[PC_GROUPS]; /* by pc_operation_group: of context parallelism; of a ring, its slowest hop's two */
    pc_hop cp_hop;                 /* that hop */
    pc_group tp, pp, dp; /* dp: of those who hold a chunk, over data and context parallelism, reduce its gradients and,
                          * with ZeRO, share its state; twice as many where a schedule has two replicas */
    pc_group shard, replicate; /* of dp, those that share ZeRO's state, and those that hold the same share of it: one
                                * rank, unless the cut has a shard_group */
    pc_expert_places experts;
    int32_t *layers_of_part; /* of what is balanced, [parts], which `cut` then has as a list; owned */
    bool fits_nowhere;       /* of BALANCED_MEMORY: for certain, no division has room on all GPUs */
    bool may_be_balanced;    /* likewise, of a memo that is for what fits: BALANCED takes the place of this division if
                              * the order that a search finds fits there */
    pc_part_cost *part_costs;
    int sort_count;
    pc_chunk_outline *chunks_of; /* [devices][chunks] */
    pc_device_outline *device;
    pc_vocab_costs vocab; /* of schedules with S and T */
    pc_time tied_ps;   /* all-reduce of the embedding's gradient between the first stage and the other that has it: */
    int tied_stage;    /* the tied head's, or that of multi-token prediction */
    double tied_bytes; /* what a GPU of either sends for it */
    pc_time norm_ps;   /* of the global norm; and of what all experts' adapters share, behind all reductions */
    pc_time loss_ps;   /* all-reduce of the loss */
} pc_outline;

/* What a counterfactual leaves out: transfers between stages (the tied embedding's gradient, too), collectives of data
 * parallelism. */
enum { PC_WITHOUT_TRANSFERS = 1, PC_WITHOUT_DATA_PARALLEL = 2 };

/* Whether the spec can be: PC_ERROR_INPUT if it breaks a rule of the cut, of the schedule or of the machine's size,
 * with the rule. What is wrong with the model or the machine itself is found before, by pc_iteration_run. */
pc_code pc_outline_check(const pc_iteration_spec *spec, pc_error *error);

/* For a spec that has passed. The spec must outlive the outline; pc_outline_free. `cost`: NULL for the roofline. */
pc_code pc_outline_make(const pc_iteration_spec *spec, const pc_cost_model *cost, pc_outline *outline, pc_error *error);
void pc_outline_free(pc_outline *outline);

/* Whether a B makes again what F did not keep, for itself and W: pc_costs has the same. */
bool pc_outline_recomputes_in_b(const pc_outline *outline);

/* The same outline, made faster where the memo (outline_memo.h) knows others like it; NULL: without. */
pc_code pc_outline_make_with(const pc_iteration_spec *spec, const pc_cost_model *cost, pc_outline_memo *memo,
                             pc_outline *outline, pc_error *error);

/* Makes its parts and state anew, after another list of layers. */
pc_code pc_outline_divide_again(pc_outline *outline, pc_error *error);

/* Bytes held all the time on a device: all but activations. */
int64_t pc_outline_fixed(const pc_outline *outline, int device);

/* What that leaves for activations; 0 if nothing is left. */
int64_t pc_outline_room(const pc_outline *outline, int device);

/* The passes' costs as the replay gets them, less what `without` says. */
pc_code pc_outline_costs(const pc_outline *outline, int without, pc_costs *costs, pc_error *error);

/* A request for the order of these passes: of what the spec makes them for, on one thread, with no limit, and for the
 * shortest span. */
pc_generate_request pc_outline_request(const pc_outline *outline, const pc_costs *costs);

/* A pass at the outline's pace, its exposed collectives of TP included, transfers and data parallelism not. */
double pc_outline_pass_s(const pc_outline *outline, int device, pc_pass pass);

/* The device to which a pass's output goes, or -1. */
int pc_outline_receiver(const pc_outline *outline, int device, pc_pass pass);

/* Of an outline's hops, device[] by device[], the one between two devices that are neighbours in the ring of all. */
static inline int pc_outline_hop(const pc_outline *outline, int device, int neighbour) {
    return neighbour == (device + 1) % outline->devices ? device : neighbour;
}

/* How long a pass lasts with the collectives of data parallelism that are part of it, where it takes alone_ps without.
 * ZeRO 3 gathers a chunk's parameters for each pass that uses them and reduces gradients behind each that makes them;
 * what overlaps lasts beside the pass, the rest comes on top. Beside a collective of c, kernels get as far as they
 * would in (1 - s) c, s being the spec's overlap_slowdown; what is left of their k follows: k + s c in all, or c. ZeRO
 * 2 reduces likewise; where that overlaps, it may also run beside other passes (finish.c). For ZeRO 2 and 3, whose
 * units have their own order (units.h). */
pc_time pc_outline_with_zero(const pc_outline *outline, int device, pc_pass pass, pc_time alone_ps);

/* Of a pass without units, these collectives; and how long kernels of alone_ps last with them. */
typedef struct pc_zero_traffic {
    pc_time gather_ps, reduce_ps;
} pc_zero_traffic;
pc_zero_traffic pc_outline_zero_traffic(const pc_outline *outline, int device, pc_pass pass);
pc_time pc_outline_beside_zero(const pc_outline *outline, pc_zero_traffic traffic, pc_time alone_ps);

/* How long a stage that waits for what it sends does so behind a pass; 0 where that sends nothing. */
pc_time pc_outline_wait_behind(const pc_outline *outline, int device, pc_pass pass);

/* The same with, where stages wait for what they send, the transfer behind it: all that a pass lasts by closed costs,
 * less what `without` leaves out (PC_WITHOUT_*). */
pc_time pc_outline_whole_pass(const pc_outline *outline, int device, pc_pass pass, int without, pc_time alone_ps);

/* Sets in `costs`, which has room for it, when F of a device's chunks can start so that on its way they wait for no
 * bucket of their parameters. It goes by the times of F in `costs`, transfers not included. Not overlapped, all wait
 * for all. */
void pc_outline_set_ready(const pc_outline *outline, int device, pc_costs *costs);

/* The chunk of a device whose parameters are gathered as the n-th: they come in the order of their parts, which is that
 * of their first F. */
int pc_outline_nth_chunk(const pc_outline *outline, int device, int n);

/* Whether parameters are gathered before the first F (ZeRO 1 and 2), and whether gradients are reduced by a stream
 * beside and behind the passes (not by the passes themselves). */
bool pc_outline_gathers_first(const pc_outline *outline);
bool pc_outline_reduces_behind(const pc_outline *outline);

/* Whether these reductions run beside passes; torch's pipelines make them behind the last one. */
bool pc_outline_overlaps_gradients(const pc_outline *outline);

/* The longest that a pass, a transfer or the collectives of a chunk may take: a thousand chunks' sums can be counted.
 */
enum { PC_OUTLINE_SECONDS_MAX = 7200 };

/* `seconds` as a time. PC_ERROR_INPUT, naming `what`, where `times` of it take too long. */
pc_code pc_outline_time(const char *what, double seconds, int32_t times, pc_time *time, pc_error *error);

static inline const pc_part_cost *pc_outline_part(const pc_outline *outline, int device, int chunk) {
    return &outline->part_costs[outline->chunks_of[(int64_t)device * outline->chunks + chunk].sort];
}

#endif
