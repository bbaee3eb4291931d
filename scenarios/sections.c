#include "scenarios/sections.h"

#include "scenarios/plan_section.h"
#include "scenarios/setting.h"
#include "scenarios/settings.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

enum { FIGURES_MAX = 1000 };

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))
#define TEXT(key)                                                                                                      \
    { .path = (key) }

/* ---- a setting ---- */

enum { STAGES_AT = PC_KEY_TRANSFER_TIME, SETTING_FIELDS = PC_KEYS + 1 }; /* behind `times` */

/* PC_KEYS: of what is no key of a setting, as what a search is for. */
static pc_schema_kind kind_of(pc_key key) {
    if (key == PC_KEYS) return PC_KIND_TEXT;
    if (key == PC_KEY_RECOMPUTE_MODULES || pc_setting_rule_of(key)->kind == PC_VALUE_WORDS) return PC_KIND_WORDS;
    return key == PC_KEY_SCHEDULE ? PC_KIND_SCHEDULE : PC_KIND_TEXT;
}

static const pc_schema_field stage_fields[] = {TEXT("F"), TEXT("B"), TEXT("W"), TEXT("BW"),
                                               TEXT("R"), TEXT("S"), TEXT("T"), TEXT("memory")};
static const pc_schema stage_schema = {.count = COUNT(stage_fields), .fields = stage_fields};

static pc_schema_field setting_field(int index) {
    if (index == STAGES_AT)
        return (pc_schema_field){"stages",   PC_KIND_MAPPING,        .is_list = true,
                                 .least = 1, .most = PC_DEVICES_MAX, .schema = &stage_schema};
    pc_key key = (pc_key)(index < STAGES_AT ? index : index - 1);
    return (pc_schema_field){.path = pc_key_path(key), .kind = kind_of(key)};
}
const pc_schema pc_setting_schema = {.count = SETTING_FIELDS, .field = setting_field};

static pc_schema_field case_field(int index) {
    if (index == 0) return (pc_schema_field){"name", .is_required = true};
    if (index <= SETTING_FIELDS) return setting_field(index - 1);
    return (pc_schema_field){"published", PC_KIND_MAPPING, .is_list = true, .schema = &pc_published_schema};
}
const pc_schema pc_case_schema = {.count = SETTING_FIELDS + 2, .field = case_field};

/* ---- lists of values ---- */

static pc_schema_field sweep_fields[PC_DIMENSIONS];

static void make_sweep_fields(void) {
    pc_dimension dimensions[PC_DIMENSIONS];
    int count = pc_dimensions_in_order(PC_ORDER_OF_PAGE, dimensions);
    assert(count == PC_DIMENSIONS);
    for (int i = 0; i < count; i++)
        sweep_fields[i] = (pc_schema_field){pc_dimension_rule_of(dimensions[i])->name,
                                            kind_of(pc_dimension_key(dimensions[i])), .is_list = true, .least = 1};
}

static pc_schema_field sweep_field(int index) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_sweep_fields);
    return sweep_fields[index];
}
const pc_schema pc_sweep_schema = {.count = PC_DIMENSIONS, .field = sweep_field};

/* What is wanted first; then what is chosen from. */
static pc_schema_field plan_field(int index) {
    bool is_text = index > 0 && index <= PC_PLAN_TEXTS;
    if (is_text) return (pc_schema_field){.path = pc_plan_text_names[index - 1]};
    pc_choice choice = index == 0 ? PC_CHOICE_OBJECTIVE : (pc_choice)(index - PC_PLAN_TEXTS);
    return (pc_schema_field){pc_choice_rule_of(choice).name, kind_of(pc_choice_rule_of(choice).key), .is_list = true,
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

/* The first key is the model's name, which is `model` here; the last of the model's is `from`. */
static pc_schema_field model_file_field(int index) {
    static const pc_schema_field own[] = {{"model", .is_required = true}, TEXT("title"), TEXT("source")};
    if (index < COUNT(own)) return own[index];
    return (pc_schema_field){.path = strchr(pc_key_path((pc_key)(index - COUNT(own) + 1)), '.') + 1};
}
const pc_schema pc_model_file_schema = {.count = PC_KEY_MODEL_END + 1, .field = model_file_field};

/* What a program decides, and not who runs it; those of one mapping stand together. */
const pc_key pc_software_keys[] = {PC_KEY_RECOMPUTE,
                                   PC_KEY_RECOMPUTE_MODULES,
                                   PC_KEY_RECOMPUTE_METHOD,
                                   PC_KEY_RECOMPUTE_LAYERS,
                                   PC_KEY_TRANSFORMER_IMPL,
                                   PC_KEY_COMPILE,
                                   PC_KEY_USE_TRANSFORMER_ENGINE_OP_FUSER,
                                   PC_KEY_CROSS_ENTROPY,
                                   PC_KEY_CROSS_ENTROPY_CHUNKS,
                                   PC_KEY_RANK_ORDER,
                                   PC_KEY_ATTENTION_KERNEL,
                                   PC_KEY_UNFUSED,
                                   PC_KEY_KERNELS,
                                   PC_KEY_LAUNCH,
                                   PC_KEY_CUDA_GRAPH_IMPL,
                                   PC_KEY_OVERLAP_P2P,
                                   PC_KEY_OVERLAP_TP,
                                   PC_KEY_OVERLAP_TP_PIECES,
                                   PC_KEY_OVERLAP_PAIRS,
                                   PC_KEY_OVERLAP_GRADIENTS,
                                   PC_KEY_OVERLAP_PARAMETERS,
                                   PC_KEY_OVERLAP_SLOWDOWN,
                                   PC_KEY_SCATTER_BOUNDARY,
                                   PC_KEY_STAGE_BUFFERS,
                                   PC_KEY_TP_INPUTS,
                                   PC_KEY_LOSS_BUFFERS,
                                   PC_KEY_BUCKET,
                                   PC_KEY_FSDP_UNIT,
                                   PC_KEY_FSDP_UNIT_LAYERS,
                                   PC_KEY_FSDP_PREFETCH,
                                   PC_KEY_RESHARD_AFTER_FORWARD,
                                   PC_KEY_GRADIENT_SYNC,
                                   PC_KEY_FSDP_VERSION,
                                   PC_KEY_GRADIENT_BYTES,
                                   PC_KEY_ZERO_PARTITION,
                                   PC_KEY_GRADIENT_ACCUMULATION,
                                   PC_KEY_DUMMY_WGRAD,
                                   PC_KEY_OPTIMIZER_KERNELS,
                                   PC_KEY_OPTIMIZER,
                                   PC_KEY_MAIN_PARAMS_DTYPE,
                                   PC_KEY_MAIN_GRADS_DTYPE,
                                   PC_KEY_EXP_AVG_DTYPE,
                                   PC_KEY_EXP_AVG_SQ_DTYPE,
                                   PC_KEY_STEP,
                                   PC_KEY_HOST_MODULES,
                                   PC_KEY_PASS_OVERHEAD,
                                   PC_KEY_OVERHEAD,
                                   PC_KEY_SEQUENCE_PARALLEL};
enum { SOFTWARE_KEYS = COUNT(pc_software_keys) };
const int pc_software_key_count = SOFTWARE_KEYS;

static pc_schema_field software_field(int index) {
    static const pc_schema_field own[] = {{"software", .is_required = true}, TEXT("title"), TEXT("source")};
    if (index < COUNT(own)) return own[index];
    return (pc_schema_field){.path = pc_key_path(pc_software_keys[index - COUNT(own)])};
}
const pc_schema pc_software_schema = {.count = 3 + SOFTWARE_KEYS, .field = software_field};
