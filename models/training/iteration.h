/* iteration.h: one training iteration of a model on a machine: schedule x workload x machine x costs.
 *
 * What happens, in this order: the parameter all-gather (ZeRO 1 and 2); the passes of the schedule, with the
 * collectives of tensor parallelism inside them and transfers between them; the gradient reduce-scatter or all-reduce
 * in buckets. Then come the tied embedding's gradient, the global norm, the optimizer step, and a constant. Equal
 * replicas and tensor ranks are folded into one, unless the spec expands them.
 */
#ifndef PC_MODELS_TRAINING_ITERATION_H
#define PC_MODELS_TRAINING_ITERATION_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/cost/cost.h"
#include "models/machine/collective.h"
#include "models/machine/machine.h"
#include "models/machine/ranks.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/training/bad_days.h"
#include "models/workload/cut.h"
#include "models/workload/model.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PASS: a pass is one task, its collectives part of its time. OPERATIONS: the kernels between two collectives are a
 * task, and so is every collective, so that tensor-parallel traffic meets other traffic on links; over a CLOSED network
 * nothing meets, and it makes no difference. */
typedef enum pc_granularity { PC_GRANULARITY_PASS, PC_GRANULARITY_OPERATIONS } pc_granularity;

/* CLOSED: every message and collective takes what it takes alone. FLOWS: they are flows over links and share them,
 * messages of one stage one after the other, but for those that are part of passes: TP's unless granularity is
 * OPERATIONS, ZeRO 3's, ZeRO 2's that do not overlap. AUTO: FLOWS where two sorts of traffic can be under way on a link
 * at once (gradients overlapped with passes, and stages on several nodes), or where granularity is OPERATIONS; CLOSED
 * otherwise. */
typedef enum pc_network_mode { PC_NETWORK_AUTO, PC_NETWORK_CLOSED, PC_NETWORK_FLOWS } pc_network_mode;

/* What ZeRO 3 gathers and reduces at once. BUCKET: as many pieces of a chunk as bucket_bytes says (DeepSpeed). LAYER:
 * as torch's fully_shard, called on every unit_layers layers and then on the whole part: so many layers each, and the
 * part's ends, which stay gathered from F to the end of B (models/training/units.h). */
typedef enum pc_unit { PC_UNIT_BUCKET, PC_UNIT_LAYER } pc_unit;

/* Of units: whether F gives its layers' parameters back, for the backward pass to gather them again; torchtitan's
 * fsdp_reshard_after_forward. DEFAULT: NEVER in pipelines, ALWAYS without. In a pipeline NEVER is once an iteration. */
typedef enum pc_reshard { PC_RESHARD_DEFAULT, PC_RESHARD_ALWAYS, PC_RESHARD_NEVER } pc_reshard;

/* Of units: which microbatches' backward passes reduce gradients: EVERY one's, or the LAST one's alone, until which
 * they stand whole (FSDP1's no_sync, FSDP2's set_requires_gradient_sync). DEFAULT: LAST in pipelines, whose
 * reductions then overlap nothing, as in torch's; else EVERY. */
typedef enum pc_gradient_sync {
    PC_GRADIENT_SYNC_DEFAULT,
    PC_GRADIENT_SYNC_EVERY,
    PC_GRADIENT_SYNC_LAST
} pc_gradient_sync;

/* Buffers between stages. SHARED: one tensor a direction (Megatron). EACH: every microbatch its own, as in
 * torch.distributed.pipelining (_PipelineStageBase: grad_recv_info, output_chunks): what is sent is kept until the
 * iteration ends, of the last part the logits, and gradients are received where no other microbatch's are. */
typedef enum pc_stage_buffers { PC_STAGE_BUFFERS_SHARED, PC_STAGE_BUFFERS_EACH } pc_stage_buffers;

/* Of units. 2: fully_shard, whose gathers and reductions copy between parameters and their buffers. 1:
 * FullyShardedDataParallel, whose parameters are views of what is gathered. MEGATRON: Megatron-FSDP, whose parameters
 * are views as well, and whose state is as Megatron holds it: weights of 16 bits beside fp32 ones, gradients as they
 * are sent. */
typedef enum pc_fsdp_version { PC_FSDP_2, PC_FSDP_1, PC_FSDP_MEGATRON } pc_fsdp_version;

/* NORM: all stages wait for the global gradient norm before the step. POST_VALIDATION: nobody waits, a step is undone
 * in the rare case ('Zero Bubble', section 4): a stage's iteration ends with its own step (finish.h). */
typedef enum pc_step { PC_STEP_NORM, PC_STEP_POST_VALIDATION } pc_step;

/* FUSED: one kernel reads and writes all that Adam works with, and writes the 16-bit weights. SEPARATE: a kernel for
 * every step of the formula, as PyTorch's AdamW without `fused=True`, and one that copies the weights. */
typedef enum pc_optimizer_kernels { PC_OPTIMIZER_FUSED, PC_OPTIMIZER_SEPARATE } pc_optimizer_kernels;

typedef struct pc_iteration_spec {
    pc_model model;
    pc_cut cut;
    pc_machine machine;
    pc_rank_order order;
    int sequence_slices;           /* of schedules that have slices, where a plan chooses them; 0: their own */
    const pc_generator *generator; /* one that adapts gets the limit below; others may not fit */
    pc_making making;              /* what its order is made for */
    pc_goal goal;                  /* what its search minimises */
    pc_search_effort_level effort; /* how much that tries */
    bool overlaps_p2p;             /* a stage goes on while what it sent is under way; else it waits for it */
    bool overlaps_tp;    /* collectives with can_overlap run beside the kernel that follows them, as far as it lasts */
    bool pipelines_tp;   /* by passes: gathers and scatters run in pieces beside the products next to them */
    bool overlaps_pairs; /* of F and BW that the schedule has run together: outline_pairs.h */
    bool delays_weights; /* products of weights' gradients of such a BW wait until nothing else can run */
    bool overlaps_gradients; /* reduce-scatter or all-reduce in buckets behind the last microbatches' backward passes */
    bool overlaps_parameters; /* parameter all-gather behind the first forward passes */
    double overlap_slowdown;  /* what kernels lose of their speed while collectives of ZeRO 3 run beside them: 0 to 1 */
    bool scatters_boundary;   /* transfers between stages are cut over the TP ranks */
    pc_stage_buffers stage_buffers;
    int64_t bucket_bytes; /* of gradients; parameters in as many pieces. 0: 40 million of them (160 MB of 4 bytes, 80 MB
                           * of 2), but at most 16 buckets a chunk */
    pc_unit unit;         /* ZeRO 3's */
    int64_t unit_layers;  /* of LAYER: layers a unit; 0: 1 */
    int fsdp_prefetch;    /* units gathered ahead of the one at work: 0 to PC_PREFETCH_MAX (units.h) */
    pc_reshard reshard_after_forward;
    pc_gradient_sync gradient_sync;
    pc_fsdp_version fsdp_version;
    pc_step step;
    pc_optimizer_kernels optimizer_kernels;
    pc_granularity granularity;
    pc_network_mode network;
    pc_engine_mode engine;
    bool waits_for_memory; /* a pass that does not fit waits until others have given back enough, and its device goes on
                            * with the next ones of its order that can; else the run is out of memory */
    bool counts_modules;   /* the host takes module_s and expert_s of the GPU's file for what is not captured, not only
                            * launch_s a kernel (host_time.h) */
    double pass_overhead;  /* relative: every pass takes 1 + this of what the cost model says */
    pc_time overhead_ps;   /* a constant an iteration: data loading, logging */
    int64_t memory_limit_bytes; /* a device's room in all; PC_NO_LIMIT: the GPU's own less what it reserves */
    bool expands;               /* every data-parallel replica is simulated for itself */
    double jitter;              /* relative standard deviation of every pass's time, lognormal, mean 1; needs expands
                                 * or samples */
    uint64_t seed;
    pc_bad_days bad_days; /* its samples go by the closed network, whatever the good day's */
    int threads;          /* for expanded replicas and samples; 0: one. What comes out does not depend on it, nor on the
                           * memo */
    bool is_trial;        /* an order that does not fit is not timed: its message does not say when that would be */
    pc_search_memo *memo; /* of searches for schedules that other iterations had; NULL: this one's alone. Borrowed */
} pc_iteration_spec;

/* All overlaps on, scattered boundary, NORM, PASS, AUTO, no overhead, no memory limit, order TP, DP, PP; the rest
 * zeroed. */
pc_iteration_spec pc_iteration_spec_default(void);

/* What became of an iteration, or of a run. */
typedef enum pc_run_status { PC_RUN_OK, PC_RUN_OUT_OF_MEMORY, PC_RUN_INFEASIBLE } pc_run_status;

/* Of what a GPU's memory is made. Activations are by module (activation_kinds.h). All else is counted all the time.
 * Buffers are boundary tensors between stages; units or buckets of ZeRO 2 and 3, gathered or to be reduced; and keys
 * and values of context parallelism. Then come the gathered sequence, what is recomputed, what the loss works with, and
 * layers on their way to and from the host. Then comes what the step needs beyond the
 * activations' peak, and what libraries keep for themselves. */
typedef enum pc_memory_kind {
    PC_MEMORY_PARAMETERS,
    PC_MEMORY_GRADIENTS,
    PC_MEMORY_OPTIMIZER,
    PC_MEMORY_ATTENTION, /* from here on in the order of pc_activation_kind */
    PC_MEMORY_MLP,
    PC_MEMORY_NORMS,
    PC_MEMORY_EMBEDDING,
    PC_MEMORY_HEAD,
    PC_MEMORY_OFFLOADED,
    PC_MEMORY_BOUNDARY,
    PC_MEMORY_GATHERED,
    PC_MEMORY_CONTEXT,
    PC_MEMORY_SEQUENCE,
    PC_MEMORY_RECOMPUTATION,
    PC_MEMORY_LOSS,
    PC_MEMORY_COPIES,
    PC_MEMORY_STEP,
    PC_MEMORY_WORKSPACE,
    PC_MEMORY_KINDS
} pc_memory_kind;

/* "parameters", ...; NULL behind the last. */
extern const char *const pc_memory_kind_names[PC_MEMORY_KINDS + 1];

/* What one stage's GPU holds, in bytes. peak_bytes is their sum at the moment peak_ps, the first one of the
 * activations' peak. The optimizer's step, when no activations are left, may need more than they did: the difference is
 * in buffers. */
typedef struct pc_device_memory {
    int64_t parameters, gradients, optimizer, buffers, activations; /* activations: at the peak */
    int64_t peak_bytes;
    int64_t allocated_bytes; /* as torch counts them: less what CUDA graphs' pools hide (graph_pools.h) */
    pc_time peak_ps;
    int64_t capacity_bytes;
    int64_t host_bytes; /* of the host's memory, for this GPU, the most */
    /* Where all fits they add up to peak_bytes; without a trace of the fullest stage alone, else zeros. */
    int64_t kinds[PC_MEMORY_KINDS];
} pc_device_memory;

/* What an iteration's time goes into beside the kernels of the busiest stage and the spec's overhead, in seconds, none
 * below zero. Waiting (pp, dp) is the iteration less the same one, by closed costs, in which some things take no time.
 * For pp these are transfers between stages, and the tied embedding's gradient with them; for dp collectives of data
 * parallelism. What the iteration takes longer over FLOWS than by closed costs counts as dp. Where kinds hide each
 * other, each is small. With the kernels and the overhead they add up to the iteration; to more, the bubble being 0,
 * where only one of pp and dp could be saved. */
typedef struct pc_exposed {
    double tp;        /* what collectives add to the busiest stage's passes: neither kernels nor launches hide it */
    double cp;        /* what those of context parallelism add then */
    double ep;        /* what dispatch and combine of tokens add behind both */
    double pp, dp;    /* waiting for transfers; for parameters before passes, and gradients in and after them */
    double optimizer; /* the step of the slowest stage, and the global norm where stages wait for it */
    double bubble;    /* what is left: the busiest stage waits for others, or, expanded, for other replicas */
} pc_exposed;

/* Bytes that a GPU sends over its links in an iteration, the mean over GPUs, as algorithms move them: 2(n-1)/n of a
 * tensor for a ring's all-reduce. Those of tp, cp and ep are the collectives inside passes. Those of pp are what goes
 * between stages, with the gathering of scattered boundary tensors and the tied embedding's gradient. Those of dp are
 * parameters and gradients. A few bytes of loss and norm are left out. Schedules of one placement and as many chunks
 * send the same, but for what is recomputed. */
typedef struct pc_sent {
    double tp_bytes, cp_bytes, ep_bytes, pp_bytes, dp_bytes;
} pc_sent;

/* Of an iteration that could not be: all NaN. */
pc_exposed pc_exposed_none(void);
pc_sent pc_sent_none(void);

typedef struct pc_iteration {
    pc_run_status status;
    char message[256]; /* why the status is not OK: device, kind, when, how much too much; or the rule */
    double iteration_s;
    double sequences;                  /* in an iteration, all replicas */
    double model_flops;                /* of an iteration, all GPUs */
    double hardware_flops;             /* with recomputation */
    double tflops_per_gpu;             /* model FLOPs */
    double mfu, hfu;                   /* over machine.gpu.matrix_flops_per_s */
    pc_time longest_ps[PC_PASS_KINDS]; /* of each kind the longest pass, collectives and overhead included;
                                        * PC_TIME_NOT_GIVEN where the schedule has none */
    double standard_error_s;           /* of iteration_s, from the cost model's, as if all errors went one way */
    pc_exposed exposed;
    pc_sent sent;
    int devices;
    pc_device_memory *memory;    /* a stage; owned */
    pc_replay replay;            /* the pipeline of the first replica: times from the iteration's start; bubble rates */
    pc_block block;              /* with a trace: what its schedule repeats; without devices where that is not known */
    double link_utilisation_max; /* FLOWS: the most over links, of the iteration's time; NaN otherwise */
    pc_bad_days_result bad_days; /* of samples; the job's part is for others to fill in (job.h). NaN without */
    pc_time *sample_ps;          /* [bad_days.samples] iterations, in the order of samples; owned; NULL without */
} pc_iteration;

/* Not fitting and not being possible are results, not errors. `with_trace` keeps passes, transfers, memory levels and
 * the block. Pure but for memory; free with pc_iteration_free. `cost`: NULL for the roofline of machine.gpu. */
pc_code pc_iteration_run(const pc_iteration_spec *spec, const pc_cost_model *cost, bool with_trace,
                         pc_iteration *iteration, pc_error *error);
void pc_iteration_free(pc_iteration *iteration);

/* Of the FLOPs that MFU and HFU count, the part that is not computed: those of flash attention's scores that its causal
 * mask hides, s (s - 1) / 2 of s x s, and kernels skip. PC_ERROR_INPUT if the spec cannot be. */
typedef struct pc_masked_flops {
    double of_model, of_hardware; /* 0 .. 1 */
} pc_masked_flops;
pc_code pc_iteration_masked_flops(const pc_iteration_spec *spec, pc_masked_flops *masked, pc_error *error);

/* A device's room in bytes, for everything: the spec's limit, or what the GPU does not reserve. */
int64_t pc_iteration_capacity(const pc_iteration_spec *spec);

/* The costs of the passes as the replay gets them, for callers who want them themselves (timelines, tables): times with
 * collectives and overhead, activations, transfers. */
pc_code pc_iteration_costs(const pc_iteration_spec *spec, const pc_cost_model *cost, pc_costs *costs, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
