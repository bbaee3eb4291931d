/* schema.h: the file's structure: which keys stand where, as text that nobody has looked at yet. Private to scenarios/.
 *
 * libcyaml fills these structs and refuses what does not fit them. Every value is text here, so that numbers and units
 * have one parser, ours; a missing one is NULL.
 */
#ifndef PC_SCENARIOS_SCHEMA_H
#define PC_SCENARIOS_SCHEMA_H

#include "engine/error.h"
#include "models/schedule/schedule.h"
#include "scenarios/source.h"

/* The values of a setting. Times stand in the order of pc_pass_kind, from PC_KEY_TIMES on. */
typedef enum pc_key {
    PC_KEY_MODEL_FROM,
    PC_KEY_MODEL_NAME,
    PC_KEY_LAYERS,
    PC_KEY_HIDDEN,
    PC_KEY_FFN_HIDDEN,
    PC_KEY_HEADS,
    PC_KEY_KV_HEADS,
    PC_KEY_HEAD_DIM,
    PC_KEY_VOCAB,
    PC_KEY_VOCAB_MULTIPLE,
    PC_KEY_MAX_POSITIONS,
    PC_KEY_POSITIONS,
    PC_KEY_NORM,
    PC_KEY_MLP,
    PC_KEY_ATTENTION,
    PC_KEY_PRECISION,
    PC_KEY_TIED,
    PC_KEY_BIAS,
    PC_KEY_DROPOUT,
    PC_KEY_SEQ_LEN,
    PC_KEY_MODEL_BATCH,
    PC_KEY_LAYOUT,
    PC_KEY_MODEL_END, /* all before it are of the model */
    PC_KEY_MACHINE = PC_KEY_MODEL_END,
    PC_KEY_PROFILE,
    PC_KEY_SCHEDULE,
    PC_KEY_PLAN,
    PC_KEY_GPUS,
    PC_KEY_TP,
    PC_KEY_PP,
    PC_KEY_DP,
    PC_KEY_DEVICES,
    PC_KEY_MICROBATCHES,
    PC_KEY_GLOBAL_BATCH,
    PC_KEY_MICROBATCH_SIZE,
    PC_KEY_CHUNKS,
    PC_KEY_SEQUENCE_PARALLEL,
    PC_KEY_ZERO,
    PC_KEY_RECOMPUTE,
    PC_KEY_CROSS_ENTROPY,
    PC_KEY_CROSS_ENTROPY_CHUNKS,
    PC_KEY_RANK_ORDER,
    PC_KEY_OVERLAP_P2P,
    PC_KEY_OVERLAP_TP,
    PC_KEY_OVERLAP_GRADIENTS,
    PC_KEY_OVERLAP_PARAMETERS,
    PC_KEY_SCATTER_BOUNDARY,
    PC_KEY_BUCKET,
    PC_KEY_GRADIENT_BYTES,
    PC_KEY_STEP,
    PC_KEY_GRANULARITY,
    PC_KEY_NETWORK,
    PC_KEY_PASS_OVERHEAD,
    PC_KEY_EXPAND,
    PC_KEY_JITTER,
    PC_KEY_SEED,
    PC_KEY_SAMPLES,
    PC_KEY_GPU_JITTER, /* from here to PC_KEY_BAD_DAYS_END what only samples give a meaning */
    PC_KEY_LINK_JITTER,
    PC_KEY_SLOW_GPUS,
    PC_KEY_SLOW_FACTOR,
    PC_KEY_SLOW_STAGE,
    PC_KEY_BAD_LINKS,
    PC_KEY_BAD_FACTOR,
    PC_KEY_OTHER_GPU,
    PC_KEY_OTHER_NODES,
    PC_KEY_MTBF,
    PC_KEY_CHECKPOINT,
    PC_KEY_INTERVAL,
    PC_KEY_RESTART,
    PC_KEY_REPAIR,
    PC_KEY_SPARE_NODES,
    PC_KEY_HORIZON,
    PC_KEY_BAD_DAYS_END,
    PC_KEY_PRICE = PC_KEY_BAD_DAYS_END,
    PC_KEY_TIMES,
    PC_KEY_TRANSFER_TIME = PC_KEY_TIMES + PC_PASS_KINDS,
    PC_KEY_TRANSFER_SIZE,
    PC_KEY_TRANSFER_LATENCY,
    PC_KEY_TRANSFER_BANDWIDTH,
    PC_KEY_ACTIVATION_SIZE,
    PC_KEY_RELEASE_B,
    PC_KEY_KEEP,
    PC_KEY_MEMORY,
    PC_KEY_OUT_OF_MEMORY,
    PC_KEY_ENGINE,
    PC_KEY_OVERHEAD,
    PC_KEY_TRACE,
    PC_KEYS
} pc_key;

/* What a sweep can list, the outermost loop first. */
typedef enum pc_dimension {
    PC_DIMENSION_MODEL,
    PC_DIMENSION_MACHINE,
    PC_DIMENSION_PROFILE,
    PC_DIMENSION_GPUS,
    PC_DIMENSION_TP,
    PC_DIMENSION_PP,
    PC_DIMENSION_DP,
    PC_DIMENSION_DEVICES,
    PC_DIMENSION_MEMORY,
    PC_DIMENSION_SEQ_LEN,
    PC_DIMENSION_MICROBATCH_SIZE,
    PC_DIMENSION_GLOBAL_BATCH,
    PC_DIMENSION_ZERO,
    PC_DIMENSION_RECOMPUTE,
    PC_DIMENSION_ATTENTION,
    PC_DIMENSION_LAYOUT,
    PC_DIMENSION_CHUNKS,
    PC_DIMENSION_PLAN,
    PC_DIMENSION_JITTER,
    PC_DIMENSION_GPU_JITTER,
    PC_DIMENSION_SLOW_GPUS,
    PC_DIMENSION_SLOW_FACTOR,
    PC_DIMENSION_SLOW_STAGE,
    PC_DIMENSION_MTBF,
    PC_DIMENSION_CHECKPOINT,
    PC_DIMENSION_INTERVAL,
    PC_DIMENSION_SPARE_NODES,
    PC_DIMENSION_MICROBATCHES,
    PC_DIMENSION_SCHEDULE,
    PC_DIMENSIONS
} pc_dimension;

/* What `plan` lists, in the order in which messages and tables name it. */
typedef enum pc_choice {
    PC_CHOICE_OBJECTIVE,
    PC_CHOICE_MACHINE,
    PC_CHOICE_PRICE,
    PC_CHOICE_GPUS,
    PC_CHOICE_GLOBAL_BATCH,
    PC_CHOICE_TP,
    PC_CHOICE_PP,
    PC_CHOICE_DP,
    PC_CHOICE_CHUNKS,
    PC_CHOICE_MICROBATCH_SIZE,
    PC_CHOICE_SCHEDULE,
    PC_CHOICE_LAYOUT,
    PC_CHOICE_RECOMPUTE,
    PC_CHOICE_ZERO,
    PC_CHOICE_SEQUENCE_PARALLEL,
    PC_CHOICE_RANK_ORDER,
    PC_CHOICE_OVERLAP_P2P,
    PC_CHOICE_OVERLAP_TP,
    PC_CHOICE_OVERLAP_GRADIENTS,
    PC_CHOICE_OVERLAP_PARAMETERS,
    PC_CHOICES
} pc_choice;

/* What `plan` says in one value. */
typedef enum pc_plan_text {
    PC_PLAN_TEXT_TOP,
    PC_PLAN_TEXT_MOST_ITERATION,
    PC_PLAN_TEXT_MOST_COST,
    PC_PLAN_TEXTS
} pc_plan_text;

typedef struct pc_raw_times {
    char *text[PC_PASS_KINDS];
} pc_raw_times;

typedef struct pc_raw_stage {
    pc_raw_times times;
    char *memory;
} pc_raw_stage;

typedef struct pc_raw_setting {
    char *text[PC_KEYS];
    pc_raw_stage *stages;
    unsigned stages_count;
} pc_raw_setting;

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

typedef struct pc_raw_published {
    char *schedule, *microbatches, *iteration, *pass_f, *activation, *memory;
    char *number[PC_PUBLISHED_NUMBERS];
} pc_raw_published;

typedef struct pc_raw_case {
    pc_raw_setting setting; /* first: a case has the keys of a setting beside its own */
    char *name;
    pc_raw_published *published;
    unsigned published_count;
} pc_raw_case;

typedef struct pc_raw_list {
    char **text;
    unsigned text_count;
} pc_raw_list;

typedef struct pc_raw_plan {
    pc_raw_list choice[PC_CHOICES];
    char *text[PC_PLAN_TEXTS];
} pc_raw_plan;

/* The keys of a figure that hold one value. */
typedef enum pc_figure_text {
    PC_FIGURE_NAME,
    PC_FIGURE_TITLE,
    PC_FIGURE_X,
    PC_FIGURE_SERIES,
    PC_FIGURE_PANELS,
    PC_FIGURE_STYLE,
    PC_FIGURE_X_LABEL,
    PC_FIGURE_PUBLISHED,
    PC_FIGURE_TEXTS
} pc_figure_text;

/* How a chart can look, as PC_FIGURE_STYLE has it; the first is what it does without. */
#define PC_FIGURE_STYLES "points|lines|bars"

typedef struct pc_raw_figure {
    char *text[PC_FIGURE_TEXTS];
    pc_raw_list y, y_label;
} pc_raw_figure;

typedef struct pc_raw_scenario {
    pc_raw_setting setting;
    pc_raw_list sweep[PC_DIMENSIONS];
    pc_raw_plan plan;
    char *scenario, *title, *source;
    pc_raw_case *cases;
    unsigned cases_count;
    pc_raw_figure *figures;
    unsigned figures_count;
} pc_raw_scenario;

/* A model file: the keys of a model stand at its top. */
typedef struct pc_raw_model {
    pc_raw_setting setting; /* of which the model's keys alone are filled in */
    char *title, *source;
} pc_raw_model;

pc_code pc_raw_model_load(const pc_source *source, pc_raw_model **raw, pc_error *error);
void pc_raw_model_free(pc_raw_model *raw);

/* Loads a text that pc_source_scan has accepted. Nothing is required of a --set, and it has no cases. Never NULL on
 * success; free with pc_raw_free. */
pc_code pc_raw_load(const pc_source *source, pc_raw_scenario **raw, pc_error *error);
void pc_raw_free(const pc_source *source, pc_raw_scenario *raw);

/* The same of `figures` alone: whatever else stands in the text is passed over, and so are keys of a figure that are
 * not known. Free with pc_raw_figures_free. */
pc_code pc_raw_figures_load(const pc_source *source, pc_raw_scenario **raw, pc_error *error);
void pc_raw_figures_free(pc_raw_scenario *raw);

#endif
