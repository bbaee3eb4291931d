/* generate.h: the named schedules. */
#ifndef PC_MODELS_SCHEDULE_GENERATE_H
#define PC_MODELS_SCHEDULE_GENERATE_H

#include "engine/error.h"
#include "engine/names.h"
#include "models/schedule/block.h"
#include "models/schedule/costs.h"
#include "models/schedule/goal.h"
#include "models/schedule/memory_limit.h"
#include "models/schedule/schedule.h"
#include "models/schedule/search_memo.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_generator pc_generator;

/* What an order is made for. COSTS and EQUAL are of schedules that search: made for the costs' own times; or as if F, B
 * and W (and R) took equally long, BW twice that, and transfers no time. Activations and the limit count all the same.
 * The others are what people run today under a schedule's name (docs/schedules.md). Few of these look at costs, and
 * fewer at a limit; one that does keeps it. */
typedef enum pc_making {
    PC_MAKING_COSTS,
    PC_MAKING_EQUAL,
    PC_MAKING_PUBLISHED, /* not a search of ours, but the order that the public generator of the schedule's authors
                          * gives; of schedules that do not look at costs and that it does not have, their own */
    PC_MAKING_TORCH,     /* that PyTorch's pipelining runtime gives */
    PC_MAKING_MEGATRON,  /* that Megatron-LM gives */
    PC_MAKINGS
} pc_making;

/* "costs", "equal", ...; ends with NULL. */
extern const char *const pc_making_names[PC_MAKINGS + 1];

/* How much searches try (docs/searches.md). FULL: all that is known to help. QUICK: one search of few starts and few
 * rounds, a hundredth of the time, for who compares thousands of them; what it finds is seldom as short. */
typedef enum pc_search_effort_level { PC_EFFORT_FULL, PC_EFFORT_QUICK, PC_EFFORTS } pc_search_effort_level;

/* What a schedule is wanted for. */
typedef struct pc_generate_request {
    int64_t devices;       /* p */
    int64_t microbatches;  /* m */
    int64_t chunks;        /* v, or v parts of k slices each; 0: the generator's own default */
    int64_t slices;        /* k, where stages have several parts of slices; 0: the generator's own default */
    const pc_costs *costs; /* times and activations of these devices and chunks, and transfers; schedules that do not
                            * look at costs take NULL */
    pc_memory_limit memory_limit; /* of activations; schedules that search keep it, others do not look at it */
    int threads;                  /* for searches; 0: one a processor. The result does not depend on it */
    pc_making making;
    pc_goal goal;          /* what searches minimise; of making COSTS alone (pc_generator_check_goal) */
    const pc_tails *tails; /* for goal ITERATION; NULL: none. Borrowed */
    bool searches_once;    /* searches give what they find for these costs, and not the shortest of several answers
                            * (docs/searches.md): for who judges by more than the span of the passes */
    pc_search_effort_level effort; /* QUICK searches once, too */
    pc_search_memo *memo;   /* of searches that were done for other requests; NULL: none. The result does not depend on
                             * it. Borrowed */
    struct pc_bound *bound; /* becomes the bound (search/bound.h) of the whole iteration if a search for the span works
                             * that out, which takes time; NULL: nobody wants it. Borrowed */
} pc_generate_request;

/* Of a schedule that a file gives: what a named one does not have (given.h). */
typedef struct pc_given {
    int devices;      /* the one p that it is for; 0: any */
    int microbatches; /* the one m; 0: any */
    uint64_t hash;    /* of its content, for names alone do not tell files apart */
} pc_given;

/* What a schedule is, for lists and for defaults. */
struct pc_generator {
    const char *name;
    const char *summary; /* one line for `pipecast list schedules` */
    pc_placement placement;
    int chunks_min; /* the least, the most (0: any) and the usual number of chunks */
    int chunks_max;
    int chunks_default;
    int microbatches_min; /* the least number of microbatches, in multiples of p; 0: any */
    bool splits;          /* whether B and W are passes of their own */
    bool mixes;           /* whether some of its backward passes are BW nevertheless */
    bool recomputes;      /* whether R stands before each backward pass */
    bool searches; /* whether it looks at costs and keeps the memory limit; else its order depends on p, m and v only */
    bool adapts;   /* whether that limit is the user's alone; the others that search have one by their name, and keep to
                    * the smaller of both */
    const pc_given *given; /* NULL: a named one. Else what its maker began a structure of its own with, which `generate`
                            * reads the rest of */
    pc_barriers barriers;  /* of its schedules: whether all stages share the output layer, by passes S and T */
    /* The schedule for a request that pc_generator_check has accepted, with its chunks filled in; `block` as below. */
    pc_code (*generate)(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                        pc_block *block, pc_error *error);
    int extra; /* what tells two generators of one family apart; see generate.c */
};

/* All generators, `*count` of them, in the order in which they are listed. Static storage. */
const pc_generator *pc_generators(int *count);

/* Whether its schedules of so many devices and chunks have pairs of passes that run together (pc_schedule_add_pairs).
 */
bool pc_generator_pairs(const pc_generator *generator, int devices, int chunks);

/* By name; NULL where there is none. */
const pc_generator *pc_generator_find(const char *name);

/* The slices k of a request for so many chunks and slices (pc_generate_request): all chunks of a stage, or, where it
 * has several parts of them, those asked for. If nobody asks these are the usual ones, or as many of them as divide the
 * chunks. 1 of schedules without. And the chunks, all parts' slices; and where its schedules have them. */
int pc_generator_slices(const pc_generator *generator, int64_t chunks, int64_t slices);
int64_t pc_generator_chunks(const pc_generator *generator, int64_t chunks, int64_t slices);
pc_placement pc_generator_placement(const pc_generator *generator, int64_t chunks, int64_t slices);

/* Whether stages have several parts of slices, and so a choice of both numbers. */
bool pc_generator_has_sliced_parts(const pc_generator *generator);

/* Whether its schedules have passes of this kind. */
bool pc_generator_has_kind(const pc_generator *generator, pc_pass_kind kind);

/* Writes "gpipe, 1f1b, ..." into text (cut to size), for messages. */
void pc_generator_names(char *text, int size);

/* Which generators the word probably means: pc_nearest_hint of their names, and of what PyTorch calls them. */
const char *pc_generator_hint(const char *word, char text[PC_NEAREST_TEXT]);

/* Whether this generator can make a schedule of p devices, m microbatches and v chunks; PC_ERROR_INPUT and the rule
 * that is broken otherwise. One that a file gives may be for one p and m alone. `chunks` 0 asks for the generator's own
 * default. */
pc_code pc_generator_check(const pc_generator *generator, int64_t devices, int64_t microbatches, int64_t chunks,
                           pc_error *error);

/* Whether the chunks are parts of so many slices each; PC_ERROR_INPUT otherwise. `slices` 0: nobody asks. */
pc_code pc_generator_check_slices(const pc_generator *generator, int64_t chunks, int64_t slices, pc_error *error);

/* Whether this making decides the generator's order: COSTS and EQUAL where it searches, the others where people run
 * such an order. */
bool pc_generator_has_making(const pc_generator *generator, pc_making making);

/* Whether a request may ask for this making: what does not search is its own for COSTS, EQUAL and PUBLISHED. Otherwise
 * PC_ERROR_INPUT, and which makings there are. */
pc_code pc_generator_check_making(const pc_generator *generator, pc_making making, pc_error *error);

/* Whether the goal decides the generator's order, which it does where that is searched for and made for the costs. */
bool pc_generator_has_goal(const pc_generator *generator, pc_making making);

/* Whether a request may ask for this goal: any with making COSTS, where schedules that do not search are what they are;
 * with the others SPAN alone. Otherwise PC_ERROR_INPUT. */
pc_code pc_generator_check_goal(const pc_generator *generator, pc_making making, pc_goal goal, pc_error *error);

/* The least memory, in bytes, that any schedule of this placement needs on a device: the activations of one microbatch,
 * all chunks that it visits there. Where B recomputes it is one chunk at a time, beside what the others' F kept. */
int64_t pc_generator_least_memory(const pc_generator *generator, const pc_costs *costs, int device);

/* The most, in bytes, that an order made by searching holds on a device by its name, whatever it is made of: of a
 * named schedule that searches and does not adapt, of making COSTS or EQUAL. */
int64_t pc_generator_named_memory(const pc_generator *generator, const pc_generate_request *request, int device);

/* Whether the limit leaves every device that much; PC_ERROR_INPUT and the first one that has less otherwise. */
pc_code pc_generator_check_memory(const pc_generator *generator, const pc_costs *costs, pc_memory_limit memory_limit,
                                  pc_error *error);

/* Checks, then generates. *block becomes the building block that the schedule repeats; NULL where it is not wanted. A
 * static schedule has one for any shape, but none if it mixes. One that searches gives what it repeats in its middle
 * (pc_block_of_schedule). If the iteration is too short for that, it is the block that it was made from. It has no
 * devices if it was made from none, because no block keeps the memory limit, or from one of other kinds of passes. A
 * schedule that searches is within the limit of every device, or there is PC_ERROR_INPUT: no schedule is
 * (pc_generator_check_memory). Others do not look at memory. Of those that were made elsewhere (pc_making) some do, as
 * their own makers do. Free the results with pc_schedule_free and pc_block_free. */
pc_code pc_generate(const pc_generator *generator, const pc_generate_request *request, pc_schedule *schedule,
                    pc_block *block, pc_error *error);

/* The same for costs where all F, B and W take the same time and the same memory and transfers are free. */
pc_code pc_schedule_generate(const pc_generator *generator, int64_t devices, int64_t microbatches, int64_t chunks,
                             pc_schedule *schedule, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
