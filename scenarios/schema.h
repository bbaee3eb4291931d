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

#include <cyaml/cyaml.h>
#include <stdbool.h>

/* The values of a setting. Times stand in the order of pc_pass_kind, from PC_KEY_TIMES on. */
typedef enum pc_key {
    PC_KEY_MODEL_NAME,
    PC_KEY_LAYERS,
    PC_KEY_HIDDEN,
    PC_KEY_HEADS,
    PC_KEY_SEQ_LEN,
    PC_KEY_LAYOUT,
    PC_KEY_MACHINE,
    PC_KEY_SCHEDULE,
    PC_KEY_DEVICES,
    PC_KEY_MICROBATCHES,
    PC_KEY_MICROBATCH_SIZE,
    PC_KEY_CHUNKS,
    PC_KEY_TIMES,
    PC_KEY_TRANSFER_TIME = PC_KEY_TIMES + PC_PASS_KINDS,
    PC_KEY_TRANSFER_SIZE,
    PC_KEY_TRANSFER_LATENCY,
    PC_KEY_TRANSFER_BANDWIDTH,
    PC_KEY_ACTIVATION_SIZE,
    PC_KEY_RELEASE_B,
    PC_KEY_KEEP,
    PC_KEY_MEMORY,
    PC_KEY_OVERHEAD,
    PC_KEY_TRACE,
    PC_KEYS
} pc_key;

/* What a sweep can list, the outermost loop first. */
typedef enum pc_dimension {
    PC_DIMENSION_DEVICES,
    PC_DIMENSION_CHUNKS,
    PC_DIMENSION_MICROBATCHES,
    PC_DIMENSION_SCHEDULE,
    PC_DIMENSIONS
} pc_dimension;

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
    char *schedule, *microbatches, *bubble_rate_span, *samples_per_s_per_gpu, *iteration;
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

typedef struct pc_raw_scenario {
    pc_raw_setting setting;
    pc_raw_list sweep[PC_DIMENSIONS];
    char *scenario, *title, *source;
    pc_raw_case *cases;
    unsigned cases_count;
} pc_raw_scenario;

/* Loads a text that pc_source_scan has accepted. Nothing is required of a --set, and it has no cases. Never NULL on
 * success; free with pc_raw_free. */
pc_code pc_raw_load(const pc_source *source, pc_raw_scenario **raw, pc_error *error);
void pc_raw_free(const pc_source *source, pc_raw_scenario *raw);

/* What libcyaml said on its way to a failure: the message, and the frames it stood in, the innermost first. */
enum { PC_FRAMES_MAX = 16, PC_FRAME_SIZE = 64 };
typedef struct pc_complaint {
    char message[256];
    char frame[PC_FRAMES_MAX][PC_FRAME_SIZE]; /* "devices", "[3]"; empty where libcyaml names only "a mapping" */
    int frame_count;
} pc_complaint;

/* libcyaml's log function; `context` is a pc_complaint. */
void pc_complaint_log(cyaml_log_t level, void *context, const char *format, va_list arguments);

/* One line for the user from what libcyaml said. */
pc_code pc_complaint_explain(const pc_complaint *complaint, cyaml_err_t failure, const cyaml_schema_value_t *schema,
                             const pc_source *source, pc_error *error);

#endif
