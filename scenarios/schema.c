#include "scenarios/schema.h"

#include "engine/alloc.h"

#include <stddef.h>
#include <string.h>

enum {
    OPTIONAL = CYAML_FLAG_OPTIONAL,
    OPTIONAL_POINTER = CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER,
    REQUIRED_POINTER = CYAML_FLAG_POINTER,
    STAGES_MAX = PC_DEVICES_MAX
};

#define TEXT(key, flags, structure, member) CYAML_FIELD_STRING_PTR(key, flags, structure, member, 0, CYAML_UNLIMITED)
#define SETTING_TEXT(key, index)            TEXT(key, OPTIONAL_POINTER, pc_raw_setting, text[index])
/* A mapping in the file whose values stand beside those of its parent in the struct. */
#define GROUP(key_, structure, fields_)                                                                                \
    {                                                                                                                  \
        .key = (key_), .data_offset = 0, .value = { CYAML_VALUE_MAPPING(OPTIONAL, structure, fields_) }                \
    }

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

static const cyaml_schema_field_t model_fields[] = {
    SETTING_TEXT("name", PC_KEY_MODEL_NAME),
    SETTING_TEXT("layers", PC_KEY_LAYERS),
    SETTING_TEXT("hidden", PC_KEY_HIDDEN),
    SETTING_TEXT("heads", PC_KEY_HEADS),
    SETTING_TEXT("seq_len", PC_KEY_SEQ_LEN),
    SETTING_TEXT("layout", PC_KEY_LAYOUT),
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

/* clang-format off */
#define SETTING_FIELDS                                                                                                 \
    GROUP("model", pc_raw_setting, model_fields),                                                                      \
    SETTING_TEXT("machine", PC_KEY_MACHINE),                                                                           \
    SETTING_TEXT("schedule", PC_KEY_SCHEDULE),                                                                         \
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
    SETTING_TEXT("overhead", PC_KEY_OVERHEAD),                                                                         \
    SETTING_TEXT("trace", PC_KEY_TRACE)
/* clang-format on */

static const cyaml_schema_field_t setting_fields[] = {SETTING_FIELDS, CYAML_FIELD_END};

static const cyaml_schema_field_t published_fields[] = {
    TEXT("schedule", REQUIRED_POINTER, pc_raw_published, schedule),
    TEXT("microbatches", OPTIONAL_POINTER, pc_raw_published, microbatches),
    TEXT("bubble_rate_span", OPTIONAL_POINTER, pc_raw_published, bubble_rate_span),
    TEXT("samples_per_s_per_gpu", OPTIONAL_POINTER, pc_raw_published, samples_per_s_per_gpu),
    TEXT("iteration", OPTIONAL_POINTER, pc_raw_published, iteration),
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
    SWEEP_LIST("chunks", PC_DIMENSION_CHUNKS),
    CYAML_FIELD_END,
};

#define SCENARIO_FIELDS(name_flags)                                                                                    \
    TEXT("scenario", name_flags, pc_raw_scenario, scenario), TEXT("title", OPTIONAL_POINTER, pc_raw_scenario, title),  \
        TEXT("source", OPTIONAL_POINTER, pc_raw_scenario, source),                                                     \
        CYAML_FIELD_MAPPING("setting", OPTIONAL, pc_raw_scenario, setting, setting_fields),                            \
        CYAML_FIELD_MAPPING("sweep", OPTIONAL, pc_raw_scenario, sweep, sweep_fields)

static const cyaml_schema_field_t file_fields[] = {
    SCENARIO_FIELDS(REQUIRED_POINTER),
    CYAML_FIELD_SEQUENCE("cases", OPTIONAL_POINTER, pc_raw_scenario, cases, &case_value, 1, CYAML_UNLIMITED),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t set_fields[] = {SCENARIO_FIELDS(OPTIONAL_POINTER), CYAML_FIELD_END};

static const cyaml_schema_value_t file_schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, pc_raw_scenario, file_fields)};
static const cyaml_schema_value_t set_schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, pc_raw_scenario, set_fields)};

static const cyaml_schema_value_t *schema_of(const pc_source *source) {
    return source->is_file ? &file_schema : &set_schema;
}

/* Stands in front of every block that libcyaml gets. */
typedef struct block_header {
    _Alignas(max_align_t) size_t capacity; /* bytes behind it */
} block_header;

/* libcyaml lets a list grow entry by entry; here blocks grow by doubling, so that long lists take linear time. */
static void *allocate(void *context, void *block, size_t size) {
    (void)context;
    block_header *header = block ? (block_header *)block - 1 : NULL;
    if (size == 0) {
        pc_free(header);
        return NULL;
    }
    if (header && size <= header->capacity) return block;
    size_t capacity = header && size < 2 * header->capacity ? 2 * header->capacity : size;
    header = pc_realloc(header, sizeof *header + capacity, 1);
    if (!header) return NULL;
    header->capacity = capacity;
    return header + 1;
}

static cyaml_config_t configuration(pc_complaint *complaint) {
    return (cyaml_config_t){.log_fn = complaint ? pc_complaint_log : NULL,
                            .log_ctx = complaint,
                            .mem_fn = allocate,
                            .log_level = CYAML_LOG_ERROR,
                            .flags = CYAML_CFG_NO_ALIAS};
}

pc_code pc_raw_load(const pc_source *source, pc_raw_scenario **raw, pc_error *error) {
    pc_complaint complaint = {.frame_count = 0};
    cyaml_config_t config = configuration(&complaint);
    cyaml_data_t *data = NULL;
    cyaml_err_t failure =
        cyaml_load_data((const uint8_t *)source->text, source->size, &config, schema_of(source), &data, NULL);
    if (failure) return pc_complaint_explain(&complaint, failure, schema_of(source), source, error);
    /* libcyaml allocates at the first key it fills in; without one there is nothing. */
    if (!data) {
        data = allocate(NULL, NULL, sizeof **raw);
        if (!data) return pc_error_no_memory(error);
        memset(data, 0, sizeof **raw);
    }
    *raw = data;
    return PC_OK;
}

void pc_raw_free(const pc_source *source, pc_raw_scenario *raw) {
    cyaml_config_t config = configuration(NULL);
    if (raw) cyaml_free(&config, schema_of(source), raw, 0);
}
