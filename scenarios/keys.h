/* keys.h: what stands in a scenario file, by number: the keys of a setting, and those of its sections. Private to
 * scenarios/. */
#ifndef PC_SCENARIOS_KEYS_H
#define PC_SCENARIOS_KEYS_H

#include "models/schedule/schedule.h"

/* The values of a setting, in the order of its table; below PC_KEY_MODEL_END those of a model. Times stand in the order
 * of pc_pass_kind, from PC_KEY_TIMES on; from PC_KEY_GPU_JITTER to PC_KEY_BAD_DAYS_END what only samples give a
 * meaning.
 */
typedef enum pc_key {
#define SETTING(id, ...) PC_KEY_##id,
#define SWEPT(id, ...)   PC_KEY_##id,
#define GROUP(...)
#include "scenarios/settings.def"
#undef SETTING
#undef SWEPT
    PC_KEYS,
    PC_KEY_MODEL_END = PC_KEY_MACHINE,
    PC_KEY_TIMES = PC_KEY_TIME_F,
    PC_KEY_BAD_DAYS_END = PC_KEY_HORIZON + 1
} pc_key;

/* What a sweep can list. */
typedef enum pc_dimension {
#define SETTING(...)
#define SWEPT(id, ...) PC_DIMENSION_##id,
#include "scenarios/settings.def"
#undef SETTING
#undef SWEPT
#undef GROUP
    PC_DIMENSIONS,
    PC_DIMENSION_MODEL = PC_DIMENSION_MODEL_FROM
} pc_dimension;

/* The settings that `plan` lists, in the order in which messages and tables name them. */
#define PC_PLANNED(EACH)                                                                                               \
    EACH(MACHINE)                                                                                                      \
    EACH(PRICE)                                                                                                        \
    EACH(PRECISION)                                                                                                    \
    EACH(GPUS)                                                                                                         \
    EACH(GLOBAL_BATCH)                                                                                                 \
    EACH(TP)                                                                                                           \
    EACH(PP)                                                                                                           \
    EACH(DP)                                                                                                           \
    EACH(CP)                                                                                                           \
    EACH(CP_COMM_TYPE)                                                                                                 \
    EACH(EP)                                                                                                           \
    EACH(ETP)                                                                                                          \
    EACH(MOE_TOKEN_DISPATCHER_TYPE)                                                                                    \
    EACH(MOE_FLEX_DISPATCHER_BACKEND)                                                                                  \
    EACH(CHUNKS)                                                                                                       \
    EACH(SEQUENCE_SLICES)                                                                                              \
    EACH(MICROBATCH_SIZE)                                                                                              \
    EACH(SCHEDULE)                                                                                                     \
    EACH(LAYOUT)                                                                                                       \
    EACH(RECOMPUTE)                                                                                                    \
    EACH(OFFLOAD)                                                                                                      \
    EACH(ZERO)                                                                                                         \
    EACH(SHARD_GROUP)                                                                                                  \
    EACH(SEQUENCE_PARALLEL)                                                                                            \
    EACH(RANK_ORDER)                                                                                                   \
    EACH(OVERLAP_P2P)                                                                                                  \
    EACH(OVERLAP_TP)                                                                                                   \
    EACH(OVERLAP_GRADIENTS)                                                                                            \
    EACH(OVERLAP_PARAMETERS)

/* What `plan` lists: what is wanted, then those. */
typedef enum pc_choice {
    PC_CHOICE_OBJECTIVE,
#define CHOICE(id) PC_CHOICE_##id,
    PC_PLANNED(CHOICE)
#undef CHOICE
        PC_CHOICES
} pc_choice;

/* What `plan` says in one value. */
typedef enum pc_plan_text {
    PC_PLAN_TEXT_TOP,
    PC_PLAN_TEXT_MOST_ITERATION,
    PC_PLAN_TEXT_MOST_COST,
    PC_PLAN_TEXT_DEADLINE,
    PC_PLAN_TEXT_BUDGET,
    PC_PLAN_TEXT_BATCH_PER,
    PC_PLAN_TEXTS
} pc_plan_text;

/* Published figures that are plain numbers. */
typedef enum pc_published_number {
    PC_PUBLISHED_BUBBLE_RATE_SPAN,
    PC_PUBLISHED_SAMPLES_PER_S_PER_GPU,
    PC_PUBLISHED_MFU,
    PC_PUBLISHED_TFLOPS_PER_GPU,
    PC_PUBLISHED_HARDWARE_TFLOPS_PER_GPU,
    PC_PUBLISHED_BEST_MFU,
    PC_PUBLISHED_NUMBERS
} pc_published_number;

/* How a chart can look; the first is what it does without. */
#define PC_FIGURE_STYLES "points|lines|bars"

#endif
