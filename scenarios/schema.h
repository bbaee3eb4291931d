/* schema.h: the file's structure: which keys stand where, as text that nobody has looked at yet. Private to scenarios/.
 *
 * libcyaml fills these structs and refuses what does not fit them. Every value is text here, so that numbers and units
 * have one parser, ours; a missing one is NULL.
 */
#ifndef PC_SCENARIOS_SCHEMA_H
#define PC_SCENARIOS_SCHEMA_H

#include "engine/error.h"
#include "models/schedule/schedule.h"
#include "scenarios/keys.h"
#include "scenarios/source.h"

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
