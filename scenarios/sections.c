#include "scenarios/sections.h"

#include "scenarios/loaded.h"
#include "scenarios/plan_section.h"
#include "scenarios/setting.h"

#include <string.h>

enum { FIGURES_MAX = 1000 };

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))
#define TEXT(key)                                                                                                      \
    { .path = (key) }

/* ---- a setting ---- */

/* Keys in the order in which messages and the reference page list them; `stages` comes before the first transfer. */
static const pc_key listed[] = {
    PC_KEY_MODEL_NAME,
    PC_KEY_LAYERS,
    PC_KEY_HIDDEN,
    PC_KEY_HEADS,
    PC_KEY_SEQ_LEN,
    PC_KEY_LAYOUT,
    PC_KEY_FFN_HIDDEN,
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
    PC_KEY_MODEL_BATCH,
    PC_KEY_MODEL_FROM,
    PC_KEY_MACHINE,
    PC_KEY_PROFILE,
    PC_KEY_SCHEDULE,
    PC_KEY_PLAN,
    PC_KEY_DEVICES,
    PC_KEY_MICROBATCHES,
    PC_KEY_MICROBATCH_SIZE,
    PC_KEY_CHUNKS,
    PC_KEY_TIMES + PC_PASS_F,
    PC_KEY_TIMES + PC_PASS_B,
    PC_KEY_TIMES + PC_PASS_W,
    PC_KEY_TIMES + PC_PASS_BW,
    PC_KEY_TIMES + PC_PASS_R,
    PC_KEY_TRANSFER_TIME,
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
    PC_KEY_GPUS,
    PC_KEY_TP,
    PC_KEY_PP,
    PC_KEY_DP,
    PC_KEY_GLOBAL_BATCH,
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
    PC_KEY_PRICE,
    PC_KEY_SAMPLES,
    PC_KEY_GPU_JITTER,
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
};
_Static_assert(sizeof listed / sizeof *listed == PC_KEYS, "every key is listed once");

enum { STAGES_AT = 35, SETTING_FIELDS = PC_KEYS + 1 };

static const pc_schema_field stage_fields[] = {TEXT("F"), TEXT("B"), TEXT("W"), TEXT("BW"), TEXT("R"), TEXT("memory")};
static const pc_schema stage_schema = {.count = COUNT(stage_fields), .fields = stage_fields};

static pc_schema_field setting_field(int index) {
    if (index == STAGES_AT)
        return (pc_schema_field){"stages",   PC_KIND_MAPPING,        .is_list = true,
                                 .least = 1, .most = PC_DEVICES_MAX, .schema = &stage_schema};
    pc_key key = listed[index < STAGES_AT ? index : index - 1];
    return (pc_schema_field){.path = pc_key_path(key),
                             .kind = key == PC_KEY_SCHEDULE ? PC_KIND_SCHEDULE : PC_KIND_TEXT};
}
const pc_schema pc_setting_schema = {.count = SETTING_FIELDS, .field = setting_field};

static pc_schema_field case_field(int index) {
    if (index == 0) return (pc_schema_field){"name", .is_required = true};
    if (index <= SETTING_FIELDS) return setting_field(index - 1);
    return (pc_schema_field){"published", PC_KIND_MAPPING, .is_list = true, .schema = &pc_published_schema};
}
const pc_schema pc_case_schema = {.count = SETTING_FIELDS + 2, .field = case_field};

/* ---- lists of values ---- */

static pc_schema_field sweep_field(int index) {
    static const pc_dimension dimensions[] = {
        PC_DIMENSION_SCHEDULE,     PC_DIMENSION_MICROBATCHES,
        PC_DIMENSION_DEVICES,      PC_DIMENSION_MEMORY,
        PC_DIMENSION_CHUNKS,       PC_DIMENSION_PLAN,
        PC_DIMENSION_MODEL,        PC_DIMENSION_MACHINE,
        PC_DIMENSION_PROFILE,      PC_DIMENSION_GPUS,
        PC_DIMENSION_TP,           PC_DIMENSION_PP,
        PC_DIMENSION_DP,           PC_DIMENSION_MICROBATCH_SIZE,
        PC_DIMENSION_GLOBAL_BATCH, PC_DIMENSION_SEQ_LEN,
        PC_DIMENSION_RECOMPUTE,    PC_DIMENSION_ATTENTION,
        PC_DIMENSION_LAYOUT,       PC_DIMENSION_ZERO,
        PC_DIMENSION_JITTER,       PC_DIMENSION_GPU_JITTER,
        PC_DIMENSION_SLOW_GPUS,    PC_DIMENSION_SLOW_FACTOR,
        PC_DIMENSION_SLOW_STAGE,   PC_DIMENSION_MTBF,
        PC_DIMENSION_CHECKPOINT,   PC_DIMENSION_INTERVAL,
        PC_DIMENSION_SPARE_NODES,
    };
    _Static_assert(sizeof dimensions / sizeof *dimensions == PC_DIMENSIONS, "every dimension is listed once");
    pc_dimension dimension = dimensions[index];
    return (pc_schema_field){pc_dimension_rule_of(dimension)->name,
                             dimension == PC_DIMENSION_SCHEDULE ? PC_KIND_SCHEDULE : PC_KIND_TEXT, .is_list = true,
                             .least = 1};
}
const pc_schema pc_sweep_schema = {.count = PC_DIMENSIONS, .field = sweep_field};

/* What is wanted first; then what is chosen from. */
static pc_schema_field plan_field(int index) {
    bool is_text = index > 0 && index <= PC_PLAN_TEXTS;
    if (is_text) return (pc_schema_field){.path = pc_plan_text_names[index - 1]};
    pc_choice choice = index == 0 ? PC_CHOICE_OBJECTIVE : (pc_choice)(index - PC_PLAN_TEXTS);
    return (pc_schema_field){pc_choice_rule_of(choice)->name,
                             choice == PC_CHOICE_SCHEDULE ? PC_KIND_SCHEDULE : PC_KIND_TEXT, .is_list = true,
                             .least = 1};
}
const pc_schema pc_plan_schema = {.count = PC_CHOICES + PC_PLAN_TEXTS, .field = plan_field};

/* ---- files ---- */

#define SCENARIO_FIELDS(is_name_required)                                                                              \
    {"scenario", .is_required = is_name_required}, TEXT("title"), TEXT("source"),                                      \
        {"setting", PC_KIND_MAPPING, .schema = &pc_setting_schema},                                                    \
        {"sweep", PC_KIND_MAPPING, .schema = &pc_sweep_schema}, {                                                      \
        "plan", PC_KIND_MAPPING, .schema = &pc_plan_schema                                                             \
    }
#define FIGURES                                                                                                        \
    { "figures", PC_KIND_MAPPING, .is_list = true, .least = 1, .most = FIGURES_MAX, .schema = &pc_figure_schema }

static const pc_schema_field file_fields[] = {
    SCENARIO_FIELDS(true), {"cases", PC_KIND_MAPPING, .is_list = true, .least = 1, .schema = &pc_case_schema}, FIGURES};
static const pc_schema_field set_fields[] = {SCENARIO_FIELDS(false)};
static const pc_schema_field figures_fields[] = {FIGURES};
const pc_schema pc_file_schema = {.count = COUNT(file_fields), .fields = file_fields};
const pc_schema pc_set_schema = {.count = COUNT(set_fields), .fields = set_fields};
const pc_schema pc_figures_schema = {.count = COUNT(figures_fields), .fields = figures_fields};

/* The first of the keys listed is the model's name, which is `model` here; the last of the model's is `from`. */
static pc_schema_field model_file_field(int index) {
    static const pc_schema_field own[] = {{"model", .is_required = true}, TEXT("title"), TEXT("source")};
    if (index < COUNT(own)) return own[index];
    return (pc_schema_field){.path = strchr(pc_key_path(listed[index - COUNT(own) + 1]), '.') + 1};
}
const pc_schema pc_model_file_schema = {.count = PC_KEY_MODEL_END + 1, .field = model_file_field};
