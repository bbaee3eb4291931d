#include "scenarios/schema.h"

#include "scenarios/flatten.h"
#include "scenarios/scenario.h"
#include "scenarios/schema_tree.h"
#include "scenarios/yaml.h"

#include <stddef.h>

enum {
    OPTIONAL = PC_YAML_OPTIONAL,
    OPTIONAL_POINTER = PC_YAML_OPTIONAL_POINTER,
    REQUIRED_POINTER = PC_YAML_REQUIRED_POINTER,
    STAGES_MAX = PC_DEVICES_MAX,
    FIGURES_MAX = 1000
};

#define TEXT                     PC_YAML_TEXT
#define GROUP                    PC_YAML_GROUP
#define SETTING_TEXT(key, index) TEXT(key, OPTIONAL_POINTER, pc_raw_setting, text[index])
static const cyaml_schema_value_t text_value = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, CYAML_UNLIMITED)};

/* clang-format off */
#define TIMES_FIELDS                                                                                                   \
    TEXT("F", OPTIONAL_POINTER, pc_raw_times, text[PC_PASS_F]),                                                        \
    TEXT("B", OPTIONAL_POINTER, pc_raw_times, text[PC_PASS_B]),                                                        \
    TEXT("W", OPTIONAL_POINTER, pc_raw_times, text[PC_PASS_W]),                                                        \
    TEXT("BW", OPTIONAL_POINTER, pc_raw_times, text[PC_PASS_BW]),                                                      \
    TEXT("R", OPTIONAL_POINTER, pc_raw_times, text[PC_PASS_R])
/* clang-format on */

static const cyaml_schema_field_t times_fields[] = {TIMES_FIELDS, CYAML_FIELD_END};

_Static_assert(offsetof(pc_raw_stage, times) == 0, "the offsets of TIMES_FIELDS hold in a stage too");
static const cyaml_schema_field_t stage_fields[] = {
    TIMES_FIELDS,
    TEXT("memory", OPTIONAL_POINTER, pc_raw_stage, memory),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t stage_value = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, pc_raw_stage, stage_fields)};

/* clang-format off */
/* What a model's file and `model:` of a setting have in common. */
#define MODEL_FIELDS                                                                                                   \
    SETTING_TEXT("layers", PC_KEY_LAYERS),                                                                             \
    SETTING_TEXT("hidden", PC_KEY_HIDDEN),                                                                             \
    SETTING_TEXT("heads", PC_KEY_HEADS),                                                                               \
    SETTING_TEXT("seq_len", PC_KEY_SEQ_LEN),                                                                           \
    SETTING_TEXT("layout", PC_KEY_LAYOUT),                                                                             \
    SETTING_TEXT("ffn_hidden", PC_KEY_FFN_HIDDEN),                                                                     \
    SETTING_TEXT("kv_heads", PC_KEY_KV_HEADS),                                                                         \
    SETTING_TEXT("head_dim", PC_KEY_HEAD_DIM),                                                                         \
    SETTING_TEXT("vocab", PC_KEY_VOCAB),                                                                               \
    SETTING_TEXT("vocab_multiple", PC_KEY_VOCAB_MULTIPLE),                                                             \
    SETTING_TEXT("max_positions", PC_KEY_MAX_POSITIONS),                                                               \
    SETTING_TEXT("positions", PC_KEY_POSITIONS),                                                                       \
    SETTING_TEXT("norm", PC_KEY_NORM),                                                                                 \
    SETTING_TEXT("mlp", PC_KEY_MLP),                                                                                   \
    SETTING_TEXT("attention", PC_KEY_ATTENTION),                                                                       \
    SETTING_TEXT("precision", PC_KEY_PRECISION),                                                                       \
    SETTING_TEXT("tied", PC_KEY_TIED),                                                                                 \
    SETTING_TEXT("bias", PC_KEY_BIAS),                                                                                 \
    SETTING_TEXT("dropout", PC_KEY_DROPOUT),                                                                           \
    SETTING_TEXT("global_batch", PC_KEY_MODEL_BATCH)
/* clang-format on */

static const cyaml_schema_field_t model_fields[] = {
    SETTING_TEXT("name", PC_KEY_MODEL_NAME),
    MODEL_FIELDS,
    SETTING_TEXT("from", PC_KEY_MODEL_FROM),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t overlap_fields[] = {
    SETTING_TEXT("p2p", PC_KEY_OVERLAP_P2P),
    SETTING_TEXT("tp", PC_KEY_OVERLAP_TP),
    SETTING_TEXT("gradients", PC_KEY_OVERLAP_GRADIENTS),
    SETTING_TEXT("parameters", PC_KEY_OVERLAP_PARAMETERS),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t transfer_fields[] = {
    SETTING_TEXT("time", PC_KEY_TRANSFER_TIME),
    SETTING_TEXT("size", PC_KEY_TRANSFER_SIZE),
    SETTING_TEXT("latency", PC_KEY_TRANSFER_LATENCY),
    SETTING_TEXT("bandwidth", PC_KEY_TRANSFER_BANDWIDTH),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t activation_fields[] = {
    SETTING_TEXT("size", PC_KEY_ACTIVATION_SIZE),
    SETTING_TEXT("release_b", PC_KEY_RELEASE_B),
    SETTING_TEXT("keep", PC_KEY_KEEP),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t bad_days_fields[] = {
    SETTING_TEXT("gpu_jitter", PC_KEY_GPU_JITTER),   SETTING_TEXT("link_jitter", PC_KEY_LINK_JITTER),
    SETTING_TEXT("slow_gpus", PC_KEY_SLOW_GPUS),     SETTING_TEXT("slow_factor", PC_KEY_SLOW_FACTOR),
    SETTING_TEXT("slow_stage", PC_KEY_SLOW_STAGE),   SETTING_TEXT("bad_links", PC_KEY_BAD_LINKS),
    SETTING_TEXT("bad_factor", PC_KEY_BAD_FACTOR),   SETTING_TEXT("other_gpu", PC_KEY_OTHER_GPU),
    SETTING_TEXT("other_nodes", PC_KEY_OTHER_NODES), CYAML_FIELD_END,
};

static const cyaml_schema_field_t job_fields[] = {
    SETTING_TEXT("mtbf", PC_KEY_MTBF),         SETTING_TEXT("checkpoint", PC_KEY_CHECKPOINT),
    SETTING_TEXT("interval", PC_KEY_INTERVAL), SETTING_TEXT("restart", PC_KEY_RESTART),
    SETTING_TEXT("repair", PC_KEY_REPAIR),     SETTING_TEXT("spare_nodes", PC_KEY_SPARE_NODES),
    SETTING_TEXT("horizon", PC_KEY_HORIZON),   CYAML_FIELD_END,
};

/* clang-format off */
#define SETTING_FIELDS                                                                                                 \
    GROUP("model", pc_raw_setting, model_fields),                                                                      \
    SETTING_TEXT("machine", PC_KEY_MACHINE),                                                                           \
    SETTING_TEXT("profile", PC_KEY_PROFILE),                                                                           \
    SETTING_TEXT("schedule", PC_KEY_SCHEDULE),                                                                         \
    SETTING_TEXT("plan", PC_KEY_PLAN),                                                                                 \
    SETTING_TEXT("devices", PC_KEY_DEVICES),                                                                           \
    SETTING_TEXT("microbatches", PC_KEY_MICROBATCHES),                                                                 \
    SETTING_TEXT("microbatch_size", PC_KEY_MICROBATCH_SIZE),                                                           \
    SETTING_TEXT("chunks", PC_KEY_CHUNKS),                                                                             \
    {.key = "times", .data_offset = offsetof(pc_raw_setting, text[PC_KEY_TIMES]),                                      \
     .value = {CYAML_VALUE_MAPPING(OPTIONAL, pc_raw_times, times_fields)}},                                            \
    CYAML_FIELD_SEQUENCE("stages", OPTIONAL_POINTER, pc_raw_setting, stages, &stage_value, 1, STAGES_MAX),             \
    GROUP("transfer", pc_raw_setting, transfer_fields),                                                                \
    GROUP("activation", pc_raw_setting, activation_fields),                                                            \
    SETTING_TEXT("memory", PC_KEY_MEMORY),                                                                             \
    SETTING_TEXT("out_of_memory", PC_KEY_OUT_OF_MEMORY),                                                               \
    SETTING_TEXT("engine", PC_KEY_ENGINE),                                                                             \
    SETTING_TEXT("overhead", PC_KEY_OVERHEAD),                                                                         \
    SETTING_TEXT("trace", PC_KEY_TRACE),                                                                               \
    SETTING_TEXT("gpus", PC_KEY_GPUS),                                                                                 \
    SETTING_TEXT("tp", PC_KEY_TP),                                                                                     \
    SETTING_TEXT("pp", PC_KEY_PP),                                                                                     \
    SETTING_TEXT("dp", PC_KEY_DP),                                                                                     \
    SETTING_TEXT("global_batch", PC_KEY_GLOBAL_BATCH),                                                                 \
    SETTING_TEXT("sequence_parallel", PC_KEY_SEQUENCE_PARALLEL),                                                       \
    SETTING_TEXT("zero", PC_KEY_ZERO),                                                                                 \
    SETTING_TEXT("recompute", PC_KEY_RECOMPUTE),                                                                       \
    SETTING_TEXT("cross_entropy", PC_KEY_CROSS_ENTROPY),                                                               \
    SETTING_TEXT("cross_entropy_chunks", PC_KEY_CROSS_ENTROPY_CHUNKS),                                                 \
    SETTING_TEXT("rank_order", PC_KEY_RANK_ORDER),                                                                     \
    GROUP("overlap", pc_raw_setting, overlap_fields),                                                                  \
    SETTING_TEXT("scatter_boundary", PC_KEY_SCATTER_BOUNDARY),                                                         \
    SETTING_TEXT("bucket", PC_KEY_BUCKET),                                                                             \
    SETTING_TEXT("gradient_bytes", PC_KEY_GRADIENT_BYTES),                                                             \
    SETTING_TEXT("step", PC_KEY_STEP),                                                                                 \
    SETTING_TEXT("granularity", PC_KEY_GRANULARITY),                                                                   \
    SETTING_TEXT("network", PC_KEY_NETWORK),                                                                           \
    SETTING_TEXT("pass_overhead", PC_KEY_PASS_OVERHEAD),                                                               \
    SETTING_TEXT("expand", PC_KEY_EXPAND),                                                                             \
    SETTING_TEXT("jitter", PC_KEY_JITTER),                                                                             \
    SETTING_TEXT("seed", PC_KEY_SEED),                                                                                 \
    SETTING_TEXT("price", PC_KEY_PRICE),                                                                               \
    SETTING_TEXT("samples", PC_KEY_SAMPLES),                                                                           \
    GROUP("bad_days", pc_raw_setting, bad_days_fields),                                                                \
    GROUP("job", pc_raw_setting, job_fields)
/* clang-format on */

static const cyaml_schema_field_t setting_fields[] = {SETTING_FIELDS, CYAML_FIELD_END};

#define PUBLISHED(key, index) TEXT(key, OPTIONAL_POINTER, pc_raw_published, number[index])
static const cyaml_schema_field_t published_fields[] = {
    TEXT("schedule", REQUIRED_POINTER, pc_raw_published, schedule),
    TEXT("microbatches", OPTIONAL_POINTER, pc_raw_published, microbatches),
    PUBLISHED("bubble_rate_span", PC_PUBLISHED_BUBBLE_RATE_SPAN),
    PUBLISHED("samples_per_s_per_gpu", PC_PUBLISHED_SAMPLES_PER_S_PER_GPU),
    TEXT("iteration", OPTIONAL_POINTER, pc_raw_published, iteration),
    PUBLISHED("mfu", PC_PUBLISHED_MFU),
    PUBLISHED("tflops_per_gpu", PC_PUBLISHED_TFLOPS_PER_GPU),
    PUBLISHED("hardware_tflops_per_gpu", PC_PUBLISHED_HARDWARE_TFLOPS_PER_GPU),
    PUBLISHED("best_mfu", PC_PUBLISHED_BEST_MFU),
    TEXT("pass_f", OPTIONAL_POINTER, pc_raw_published, pass_f),
    TEXT("activation", OPTIONAL_POINTER, pc_raw_published, activation),
    TEXT("memory", OPTIONAL_POINTER, pc_raw_published, memory),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t published_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, pc_raw_published, published_fields)};

_Static_assert(offsetof(pc_raw_case, setting) == 0, "the offsets of SETTING_FIELDS hold in a case too");
static const cyaml_schema_field_t case_fields[] = {
    TEXT("name", REQUIRED_POINTER, pc_raw_case, name),
    SETTING_FIELDS,
    CYAML_FIELD_SEQUENCE("published", OPTIONAL_POINTER, pc_raw_case, published, &published_value, 0, CYAML_UNLIMITED),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t case_value = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, pc_raw_case, case_fields)};

#define SWEEP_LIST(key_, dimension)                                                                                    \
    {                                                                                                                  \
        .key = (key_), .data_offset = sizeof(pc_raw_list) * (dimension) + offsetof(pc_raw_list, text),                 \
        .count_offset = sizeof(pc_raw_list) * (dimension) + offsetof(pc_raw_list, text_count),                         \
        .count_size = sizeof(unsigned), .value = {                                                                     \
            CYAML_VALUE_SEQUENCE(OPTIONAL_POINTER, char *, &text_value, 1, CYAML_UNLIMITED)                            \
        }                                                                                                              \
    }
static const cyaml_schema_field_t sweep_fields[] = {
    SWEEP_LIST("schedule", PC_DIMENSION_SCHEDULE),
    SWEEP_LIST("microbatches", PC_DIMENSION_MICROBATCHES),
    SWEEP_LIST("devices", PC_DIMENSION_DEVICES),
    SWEEP_LIST("memory", PC_DIMENSION_MEMORY),
    SWEEP_LIST("chunks", PC_DIMENSION_CHUNKS),
    SWEEP_LIST("plan", PC_DIMENSION_PLAN),
    SWEEP_LIST("model", PC_DIMENSION_MODEL),
    SWEEP_LIST("machine", PC_DIMENSION_MACHINE),
    SWEEP_LIST("profile", PC_DIMENSION_PROFILE),
    SWEEP_LIST("gpus", PC_DIMENSION_GPUS),
    SWEEP_LIST("tp", PC_DIMENSION_TP),
    SWEEP_LIST("pp", PC_DIMENSION_PP),
    SWEEP_LIST("dp", PC_DIMENSION_DP),
    SWEEP_LIST("microbatch_size", PC_DIMENSION_MICROBATCH_SIZE),
    SWEEP_LIST("global_batch", PC_DIMENSION_GLOBAL_BATCH),
    SWEEP_LIST("seq_len", PC_DIMENSION_SEQ_LEN),
    SWEEP_LIST("recompute", PC_DIMENSION_RECOMPUTE),
    SWEEP_LIST("attention", PC_DIMENSION_ATTENTION),
    SWEEP_LIST("layout", PC_DIMENSION_LAYOUT),
    SWEEP_LIST("zero", PC_DIMENSION_ZERO),
    SWEEP_LIST("jitter", PC_DIMENSION_JITTER),
    SWEEP_LIST("gpu_jitter", PC_DIMENSION_GPU_JITTER),
    SWEEP_LIST("slow_gpus", PC_DIMENSION_SLOW_GPUS),
    SWEEP_LIST("slow_factor", PC_DIMENSION_SLOW_FACTOR),
    SWEEP_LIST("slow_stage", PC_DIMENSION_SLOW_STAGE),
    SWEEP_LIST("mtbf", PC_DIMENSION_MTBF),
    SWEEP_LIST("checkpoint", PC_DIMENSION_CHECKPOINT),
    SWEEP_LIST("interval", PC_DIMENSION_INTERVAL),
    SWEEP_LIST("spare_nodes", PC_DIMENSION_SPARE_NODES),
    CYAML_FIELD_END,
};

#define CHOICE(key_, choice_)                                                                                          \
    {                                                                                                                  \
        .key = (key_), .data_offset = offsetof(pc_raw_plan, choice[choice_].text),                                     \
        .count_offset = offsetof(pc_raw_plan, choice[choice_].text_count), .count_size = sizeof(unsigned), .value = {  \
            CYAML_VALUE_SEQUENCE(OPTIONAL_POINTER, char *, &text_value, 1, CYAML_UNLIMITED)                            \
        }                                                                                                              \
    }
static const cyaml_schema_field_t plan_overlap_fields[] = {
    CHOICE("p2p", PC_CHOICE_OVERLAP_P2P),
    CHOICE("tp", PC_CHOICE_OVERLAP_TP),
    CHOICE("gradients", PC_CHOICE_OVERLAP_GRADIENTS),
    CHOICE("parameters", PC_CHOICE_OVERLAP_PARAMETERS),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t plan_fields[] = {
    CHOICE("objective", PC_CHOICE_OBJECTIVE),
    TEXT("top", OPTIONAL_POINTER, pc_raw_plan, text[PC_PLAN_TEXT_TOP]),
    TEXT("most_iteration", OPTIONAL_POINTER, pc_raw_plan, text[PC_PLAN_TEXT_MOST_ITERATION]),
    TEXT("most_cost", OPTIONAL_POINTER, pc_raw_plan, text[PC_PLAN_TEXT_MOST_COST]),
    CHOICE("machine", PC_CHOICE_MACHINE),
    CHOICE("price", PC_CHOICE_PRICE),
    CHOICE("gpus", PC_CHOICE_GPUS),
    CHOICE("global_batch", PC_CHOICE_GLOBAL_BATCH),
    CHOICE("tp", PC_CHOICE_TP),
    CHOICE("pp", PC_CHOICE_PP),
    CHOICE("dp", PC_CHOICE_DP),
    CHOICE("chunks", PC_CHOICE_CHUNKS),
    CHOICE("microbatch_size", PC_CHOICE_MICROBATCH_SIZE),
    CHOICE("schedule", PC_CHOICE_SCHEDULE),
    CHOICE("layout", PC_CHOICE_LAYOUT),
    CHOICE("recompute", PC_CHOICE_RECOMPUTE),
    CHOICE("zero", PC_CHOICE_ZERO),
    CHOICE("sequence_parallel", PC_CHOICE_SEQUENCE_PARALLEL),
    CHOICE("rank_order", PC_CHOICE_RANK_ORDER),
    GROUP("overlap", pc_raw_plan, plan_overlap_fields),
    CYAML_FIELD_END,
};

#define SCENARIO_FIELDS(name_flags)                                                                                    \
    TEXT("scenario", name_flags, pc_raw_scenario, scenario), TEXT("title", OPTIONAL_POINTER, pc_raw_scenario, title),  \
        TEXT("source", OPTIONAL_POINTER, pc_raw_scenario, source),                                                     \
        CYAML_FIELD_MAPPING("setting", OPTIONAL, pc_raw_scenario, setting, setting_fields),                            \
        CYAML_FIELD_MAPPING("sweep", OPTIONAL, pc_raw_scenario, sweep, sweep_fields),                                  \
        CYAML_FIELD_MAPPING("plan", OPTIONAL, pc_raw_scenario, plan, plan_fields)

#define FIGURE(key, flags, index) TEXT(key, flags, pc_raw_figure, text[index])
#define FIGURE_LIST(key_, flags, list, least)                                                                          \
    {                                                                                                                  \
        .key = (key_), .data_offset = offsetof(pc_raw_figure, list.text),                                              \
        .count_offset = offsetof(pc_raw_figure, list.text_count), .count_size = sizeof(unsigned), .value = {           \
            CYAML_VALUE_SEQUENCE(flags, char *, &text_value, least, PC_SCENARIO_FIGURE_Y_MAX)                          \
        }                                                                                                              \
    }
static const cyaml_schema_field_t figure_fields[] = {
    FIGURE("name", REQUIRED_POINTER, PC_FIGURE_NAME),
    FIGURE("title", OPTIONAL_POINTER, PC_FIGURE_TITLE),
    FIGURE("x", REQUIRED_POINTER, PC_FIGURE_X),
    FIGURE_LIST("y", REQUIRED_POINTER, y, 1),
    FIGURE("series", OPTIONAL_POINTER, PC_FIGURE_SERIES),
    FIGURE("panels", OPTIONAL_POINTER, PC_FIGURE_PANELS),
    FIGURE("style", OPTIONAL_POINTER, PC_FIGURE_STYLE),
    FIGURE("x_label", OPTIONAL_POINTER, PC_FIGURE_X_LABEL),
    FIGURE_LIST("y_label", OPTIONAL_POINTER, y_label, 1),
    FIGURE("published", OPTIONAL_POINTER, PC_FIGURE_PUBLISHED),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t figure_value = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, pc_raw_figure, figure_fields)};

#define FIGURES                                                                                                        \
    CYAML_FIELD_SEQUENCE("figures", OPTIONAL_POINTER, pc_raw_scenario, figures, &figure_value, 1, FIGURES_MAX)

static const cyaml_schema_field_t file_fields[] = {
    SCENARIO_FIELDS(REQUIRED_POINTER),
    CYAML_FIELD_SEQUENCE("cases", OPTIONAL_POINTER, pc_raw_scenario, cases, &case_value, 1, CYAML_UNLIMITED),
    FIGURES,
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t figures_fields[] = {FIGURES, CYAML_FIELD_END};
static const cyaml_schema_field_t set_fields[] = {SCENARIO_FIELDS(OPTIONAL_POINTER), CYAML_FIELD_END};

static const cyaml_schema_value_t file_schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, pc_raw_scenario, file_fields)};
static const cyaml_schema_value_t set_schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, pc_raw_scenario, set_fields)};

static const cyaml_schema_value_t figures_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, pc_raw_scenario, figures_fields)};

const cyaml_schema_value_t *pc_schema_of_scenarios(void) {
    return &file_schema;
}

static const cyaml_schema_value_t *schema_of(const pc_source *source) {
    return source->is_file ? &file_schema : &set_schema;
}

pc_code pc_raw_load(const pc_source *source, pc_raw_scenario **raw, pc_error *error) {
    void *data;
    pc_source flat;
    pc_code code = pc_source_flatten(source, &flat, error);
    if (code) return code;
    code = pc_yaml_load(flat.text ? &flat : source, schema_of(source), sizeof **raw, &data, error);
    pc_source_free(&flat);
    if (!code) *raw = data;
    return code;
}

void pc_raw_free(const pc_source *source, pc_raw_scenario *raw) {
    pc_yaml_free(schema_of(source), raw);
}

pc_code pc_raw_figures_load(const pc_source *source, pc_raw_scenario **raw, pc_error *error) {
    void *data;
    pc_code code = pc_yaml_load_known(source, &figures_schema, sizeof **raw, &data, error);
    if (!code) *raw = data;
    return code;
}

void pc_raw_figures_free(pc_raw_scenario *raw) {
    pc_yaml_free(&figures_schema, raw);
}

/* ---- a model's file ---- */

_Static_assert(offsetof(pc_raw_model, setting) == 0, "the offsets of MODEL_FIELDS hold in a model's file too");
static const cyaml_schema_field_t model_file_fields[] = {
    TEXT("model", REQUIRED_POINTER, pc_raw_setting, text[PC_KEY_MODEL_NAME]),
    TEXT("title", OPTIONAL_POINTER, pc_raw_model, title),
    TEXT("source", OPTIONAL_POINTER, pc_raw_model, source),
    MODEL_FIELDS,
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t model_file_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, pc_raw_model, model_file_fields)};

const cyaml_schema_value_t *pc_schema_of_models(void) {
    return &model_file_schema;
}

pc_code pc_raw_model_load(const pc_source *source, pc_raw_model **raw, pc_error *error) {
    void *data;
    pc_code code = pc_yaml_load(source, &model_file_schema, sizeof **raw, &data, error);
    if (!code) *raw = data;
    return code;
}

void pc_raw_model_free(pc_raw_model *raw) {
    pc_yaml_free(&model_file_schema, raw);
}
