/* planner.h: how a model is best cut over a cluster: a search over everything that can be chosen.
 *
 * The space is the product of lists, less what breaks a rule. A point is an iteration (iteration.h), and its value is
 * what simulating it says. Most points are never simulated: first a lower bound on memory rules out what cannot fit,
 * then a lower bound on time rules out what cannot be among the best. The bounds never exceed what the simulation would
 * say, so the answer is that of simulating every point (tests/test_planner.c does).
 *
 * If several values of a list give the same iteration, only the first is a point:
 * - any sequence parallelism and overlaps_tp where tp is 1; overlaps_p2p where pp is 1;
 * - zero and the overlaps of data parallelism where nobody shares gradients; overlaps_parameters without ZeRO;
 * - shard groups that hold all replicas or do not divide them, of ZeRO 0, with cp, of experts that have other replicas,
 *   and of two replicas in one pipeline: all;
 * - selective recomputation of flash attention and none; none and full of a schedule that recomputes;
 * - how context ranks communicate where cp is 1; dispatchers where no token leaves its rank; orders that cannot place
 * experts, and the first that can;
 * - orders that differ in an axis of one rank only; layouts that give every part as many layers by their names
 *   (BALANCED, which goes by time, is a point of its own where there are several parts);
 * - values that stand twice.
 * A layout that does not divide the layers is no point beside one that does; if none of the listed layouts does, the
 * first one is a point, which breaks a rule.
 */
#ifndef PC_MODELS_PLANNER_H
#define PC_MODELS_PLANNER_H

#include "engine/error.h"
#include "models/cost/cost.h"
#include "models/training/iteration.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_PLAN_GROUPS_MAX = 64 };

/* A kind of GPU and network to plan for. `spec` is an iteration with its model, machine, switches, sequence length and
 * memory limit filled in; what the space lists is set over it. */
typedef struct pc_plan_base {
    pc_iteration_spec spec;
    const pc_cost_model *cost; /* NULL: the roofline of the machine's GPU */
    double gpu_hour_price;     /* in any currency; NaN: not given */
    int group; /* 0 to PC_PLAN_GROUPS_MAX - 1: of one objective the best are wanted of every group (a precision) */
} pc_plan_base;

/* What can be chosen. A list of no entries is an error, but for some. `cp` and `ep` are 1 then, `shard_group` all
 * replicas, and `cp_comm`, `etp`, `dispatchers` and `offload` the base's. `dp` follows as gpus / (tp x cp x pp),
 * whatever it is; listed, only those. Switches are lists of 0 and 1. All borrowed. */
typedef struct pc_plan_list {
    const int64_t *values;
    int count;
} pc_plan_list;

/* Beside those of pc_cut_layout: the first of EVEN, ENDS and OWN that divides the layers (pc_layout_auto). */
enum { PC_PLAN_LAYOUT_AUTO = PC_CUT_BALANCED_MEMORY + 1 };

typedef struct pc_plan_space {
    const pc_plan_base *bases;
    int base_count;
    pc_plan_list gpus;         /* in all; a point uses exactly as many */
    pc_plan_list global_batch; /* sequences an iteration, all replicas */
    bool batch_follows_dp;     /* global_batch is of each replica: a point has dp times as many */
    pc_plan_list tp, pp, dp, cp;
    pc_plan_list
        cp_comm; /* pc_cp_comm; rows of A2A_P2P as the base has them, or as many ranks as can (pc_cut_most_exchange) */
    pc_plan_list ep, etp;
    pc_plan_list dispatchers; /* pc_dispatcher; of collectives they send 16 bits, whatever the base says */
    pc_plan_list chunks;      /* of schedules that have a choice; others have their own number, and are one point */
    pc_plan_list slices;      /* of the sequence, of schedules that have them; empty: the bases' */
    pc_plan_list layouts;     /* pc_cut_layout but LISTED, or PC_PLAN_LAYOUT_AUTO; the bases' own does not count */
    pc_plan_list microbatch_size;
    pc_plan_list recompute; /* pc_recomputation_code */
    pc_plan_list offload;   /* kinds, PC_OFFLOAD_* bits; all else of it is the bases' */
    pc_plan_list zero;
    pc_plan_list shard_group;       /* replicas; 0: all */
    pc_plan_list sequence_parallel; /* with tp 1 there is no choice: one point */
    pc_plan_list overlaps_tp, overlaps_gradients, overlaps_parameters, overlaps_p2p;
    const pc_generator *const *generators;
    int generator_count;
    const pc_rank_order *orders;
    int order_count;
} pc_plan_space;

typedef struct pc_plan_choice {
    int base;
    int64_t gpus, global_batch;
    int tp, pp, dp, cp, chunks; /* with slices all of a stage's parts */
    pc_cp_comm cp_comm;         /* cp 1: the base's */
    int ep, etp;                /* etp 0: as tp */
    pc_dispatcher dispatcher;
    int slices; /* of a part; 0: microbatches are whole */
    pc_cut_layout layout;
    int64_t microbatch_size, microbatches;
    const pc_generator *generator;
    pc_recompute recompute;
    int32_t recompute_layers;  /* of kinds that have a number */
    int32_t recompute_modules; /* of MODULES */
    int32_t offload;           /* PC_OFFLOAD_* */
    int zero, shard_group;
    bool sequence_parallel, overlaps_tp, overlaps_gradients, overlaps_parameters, overlaps_p2p;
    pc_rank_order order;
} pc_plan_choice;

/* The rules that a point can break, in the order in which they are looked at; the first one that it breaks counts. */
typedef enum pc_plan_rule {
    PC_PLAN_RULE_GPUS,         /* tp x cp x pp divides the GPUs, and dp is one of those listed */
    PC_PLAN_RULE_INTERLEAVING, /* model parts are interleaved on more stages than one, and more than one on each */
    PC_PLAN_RULE_LAYERS,       /* some listed layout divides the layers over the parts */
    PC_PLAN_RULE_EXPERTS,      /* ep and etp divide experts and a stage's ranks, and some order can place them */
    PC_PLAN_RULE_BATCH,        /* dp x microbatch_size divides the batch */
    PC_PLAN_RULE_SCHEDULE,     /* what the schedule says of stages, chunks and microbatches */
    PC_PLAN_RULE_OFFLOAD,      /* what an offload asks of recomputation, ZeRO, schedule and machine */
    PC_PLAN_RULE_TENSOR, /* tp divides heads, widths and, with sequence parallelism, the sequence; what cp asks for */
    PC_PLAN_RULE_SIZE,   /* the machine has so many GPUs, and other sizes that can be counted */
    PC_PLAN_RULES
} pc_plan_rule;

/* What is wanted. A cut is a machine, a number of GPUs, tp, pp, dp, cp, ep and etp; all else are its variants.
 * THROUGHPUT: most sequences a second, of the whole cluster. MEMORY: least bytes on the fullest GPU. COST: least money
 * a token; where no base has a price, least GPU-hours a token. Of plans that are equal in what was asked for the faster
 * one is better, then the one of less memory, then the one of the lower number. */
typedef enum pc_plan_objective {
    PC_PLAN_THROUGHPUT,
    PC_PLAN_MEMORY,
    PC_PLAN_COST,
    PC_PLAN_OBJECTIVES
} pc_plan_objective;

/* How far a search is. Every shape of the space is bounded (its points but for overlaps and orders of ranks, which come
 * to the same cut); then plans are simulated, `total` being how many that may be: most are ruled out by the first.
 * Where more were left than are kept, both come again. */
typedef enum pc_plan_phase { PC_PLAN_BOUNDS, PC_PLAN_SIMULATION } pc_plan_phase;

typedef struct pc_plan_found pc_plan_found;

typedef struct pc_plan_progress {
    void (*say)(void *self, pc_plan_phase phase, int64_t done, int64_t total); /* NULL: nobody asks */
    void (*better)(void *self, const pc_plan_found *best); /* a plan that fits, better than all before; NULL as above */
    void *self;
    bool (*is_stopped)(void *self); /* NULL: never. Asked before each piece of work, by several threads at once */
} pc_plan_progress;

/* What was worked out of a point, as plain bytes: of a simulation all, of a bound seconds and bytes alone. */
typedef enum pc_plan_work { PC_PLAN_SIMULATED, PC_PLAN_BOUNDED, PC_PLAN_BOUNDED_CLOSE } pc_plan_work;
typedef struct pc_plan_fact {
    int64_t status; /* pc_run_status; the rest only where it is OK */
    int64_t memory_bytes;
    double iteration_s, sequences, mfu;
    pc_exposed exposed;
} pc_plan_fact;

/* Who keeps such facts, of other searches too. It goes by the spec and the base's cost, which decide them. `find` is
 * called by several threads at once, `keep` by the caller's alone, while no other is at work; it may fail. What comes
 * out does not depend on it. Both NULL: nobody. */
typedef struct pc_plan_keeper {
    bool (*find)(void *self, const pc_plan_base *base, const pc_iteration_spec *spec, pc_plan_work work,
                 pc_plan_fact *fact);
    pc_code (*keep)(void *self, const pc_plan_base *base, const pc_iteration_spec *spec, pc_plan_work work,
                    const pc_plan_fact *fact, pc_error *error);
    void *self;
} pc_plan_keeper;

/* Others who do the same search at the same time, in other processes. Each works on a part and tells the others, step
 * by step, so that all have the same answer and log, which are those of one alone. `share` puts the bytes of all ranks
 * one behind the other, for all; the caller frees them by pc_free. If a rank comes with a code, all leave with that of
 * the lowest. Their keepers must know the same. Size 0: alone. */
typedef struct pc_plan_crew {
    int rank, size;
    pc_code (*share)(void *self, pc_code code, const void *bytes, size_t size, void **all, size_t *all_size,
                     pc_error *error);
    void *self;
} pc_plan_crew;

typedef struct pc_plan_request {
    pc_plan_objective objectives[PC_PLAN_OBJECTIVES]; /* one: the best variants of the `top` best
                                                       * cuts; several: the Pareto front of them */
    int objective_count;
    int top; /* cuts wanted (all_variants: plans) of each group, at least 1; of a front the `top` first, 0: all */
    double most_iteration_s;    /* a plan may not take longer; 0: any */
    double most_cost;           /* or cost more a million tokens; 0: any */
    int threads;                /* 0: one a processor; the answer and the log do not depend on it */
    bool all_variants;          /* of one objective: any number of plans a cut, not the best one alone */
    bool exhaustive;            /* simulate every point: what the search must equal, for tests and the curious */
    int64_t shard, shard_count; /* only the shard-th of so many shares of the cuts, from 1: every cut is in one of them,
                                 * and shares' points add up; 0 and 0: all */
    pc_plan_crew crew;
    pc_plan_keeper keeper;
    pc_plan_progress progress; /* said by the caller's thread alone, as often as it begins a piece of work */
} pc_plan_request;

/* A plan that fits, simulated. */
struct pc_plan_found {
    int64_t number; /* of the point: a digit a list, the bases' first, the overlaps' last; not all numbers are points */
    pc_plan_choice choice;
    double iteration_s, sequences_per_s; /* of the whole cluster */
    int64_t memory_bytes;                /* on the fullest GPU */
    double cost;                         /* a million tokens, in the prices' currency, or in GPU-hours; see COST */
    pc_exposed exposed;                  /* seconds */
    double mfu;
    double bound_s;     /* what the search knew before simulating it */
    bool memory_limits; /* the same with less recomputation or offload, a larger microbatch, more chunks or a lower
                         * level of ZeRO, one of them, has a lower bound on time below this one's time and one on memory
                         * above what there is */
};

/* Where the points went; they add up to `points`. */
typedef struct pc_plan_log {
    int64_t points;                /* in the product, one each where a list leaves no choice */
    int64_t broken_rule;           /* cannot be: what does not divide, what a schedule refuses */
    int64_t broken[PC_PLAN_RULES]; /* that, by rule */
    int64_t over_memory;           /* the lower bound on memory, of GPU or host, is above what there is */
    int64_t too_slow;              /* the lower bound on time is above what was found or allowed */
    int64_t simulated;             /* the rest: done, and of those */
    int64_t simulated_over_memory, simulated_infeasible;
    double bound_s, simulate_s;     /* wall-clock seconds of both halves; the only things that differ between calls */
    double worst_bound, mean_bound; /* of simulated plans: bound over simulated time, the least and the mean */
} pc_plan_log;

typedef struct pc_plan_answer {
    pc_plan_found *found; /* best first; a front from its first objective's best on */
    int64_t count;
    pc_plan_log log;
} pc_plan_answer;

/* PC_ERROR_INPUT if a list is empty or has a value that no point can have, or if prices are given to some bases only
 * while cost is asked for. Also if a base has jitter, samples, expanded replicas or layers part by part. No plan that
 * fits is no error: an answer of none. PC_ERROR_STOPPED if `is_stopped` said so. Free with pc_plan_answer_free. */
pc_code pc_plan_run(const pc_plan_space *space, const pc_plan_request *request, pc_plan_answer *answer,
                    pc_error *error);
void pc_plan_answer_free(pc_plan_answer *answer);

/* The answer of the whole, of those of all its shares (pc_plan_request.shard): shares[i] is that of share i + 1, asked
 * for with the request, of a front with `top` 0. Of their plans all but choice and cost is taken; these follow. The
 * plans are those of the whole. So are, in the log, `points`, rules and `over_memory`; the other counts are sums of
 * what shares did, each of which knew its own best plans alone. PC_ERROR_INPUT if a plan is no point of the space, or
 * not of its share. */
pc_code pc_plan_combine(const pc_plan_space *space, const pc_plan_request *request, const pc_plan_answer *shares,
                        int count, pc_plan_answer *answer, pc_error *error);

/* Adds all that can be chosen to a hash, but for what bases are. */
struct pc_hash; /* engine/hash.h */
void pc_plan_space_hash(const pc_plan_space *space, struct pc_hash *hash);

/* The rule to blame, of a log with broken ones. If some points break none, that is the one that most break. Else it is
 * the last that any breaks: points count for the first rule that they break, so those of the last one keep all before
 * it, and nothing else stands in the way. */
pc_plan_rule pc_plan_log_blames(const pc_plan_log *log);

/* That rule, and a value that lifts a rule: of the points that break `rule`, `points` break none with that value in the
 * place of their own. The value is in none of the space's lists. If some points break no rule, only layouts are tried,
 * and only for the rule to blame; else what is tried lifts that rule, or of the others first the one that most break,
 * and another batch comes last. NONE: nothing that was tried lifts any. */
typedef enum pc_plan_way {
    PC_PLAN_WAY_NONE,
    PC_PLAN_WAY_LAYOUT,
    PC_PLAN_WAY_TP,
    PC_PLAN_WAY_PP,
    PC_PLAN_WAY_DP,
    PC_PLAN_WAY_CP,
    PC_PLAN_WAY_EP,
    PC_PLAN_WAY_ETP,
    PC_PLAN_WAY_CHUNKS,
    PC_PLAN_WAY_MICROBATCH_SIZE,
    PC_PLAN_WAY_BATCH,
    PC_PLAN_WAY_SCHEDULE
} pc_plan_way;

enum { PC_PLAN_WHY_SIZE = 160 };

typedef struct pc_plan_remedy {
    pc_plan_rule blamed, rule;
    char why[PC_PLAN_WHY_SIZE]; /* what the check of one of the points says that break the blamed rule, if all points
                                 * break some and the rule is one of schedules, offload, tensors or sizes; or empty */
    pc_plan_way way;
    int64_t value;                 /* a pc_cut_layout or a number */
    const pc_generator *generator; /* of SCHEDULE */
    int64_t points;                /* of LAYOUT; else only whether there are any */
} pc_plan_remedy;

pc_code pc_plan_find_remedy(const pc_plan_space *space, const pc_plan_log *log, pc_plan_remedy *remedy,
                            pc_error *error);

/* The iteration that a choice is; what it borrows is the space's. */
pc_iteration_spec pc_plan_spec(const pc_plan_space *space, const pc_plan_choice *choice);

#ifdef __cplusplus
}
#endif
#endif
