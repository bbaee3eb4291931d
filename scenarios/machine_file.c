/* Files of machines and GPUs: keys with units in, a pc_machine out. */
#include "scenarios/library_private.h"

#include "engine/alloc.h"
#include "scenarios/run_labels.h"
#include "scenarios/units.h"
#include "scenarios/yaml.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FROM_DEPTH_MAX = 8 }; /* of machines that say how they differ from another */

/* ---- what a number in a file is, and where it goes ---- */

typedef enum number_kind { RATE, BANDWIDTH, SIZE, TIME, COUNT, COUNT_OR_NONE, NUMBER, SHARE, TILE, SWITCH } number_kind;

typedef struct number_rule {
    const char *path; /* as messages name it */
    number_kind kind;
    bool is_required; /* where the file stands on no other */
    size_t place;     /* in pc_gpu or pc_machine */
} number_rule;

enum {
    GPU_MATRIX,
    GPU_VECTOR,
    GPU_MEMORY_BANDWIDTH,
    GPU_MEMORY,
    GPU_RESERVED,
    GPU_L2,
    GPU_PROCESSORS,
    GPU_PROFILE,
    GPU_TILE = GPU_PROFILE,
    GPU_GEMM_EFFICIENCY,
    GPU_GEMM_RAMP_K,
    GPU_ATTENTION_EFFICIENCY,
    GPU_ATTENTION_BACKWARD,
    GPU_MEMORY_EFFICIENCY,
    GPU_KERNEL,
    GPU_LAUNCH,
    GPU_ESTIMATED_ERROR,
    GPU_KEYS
};

static const number_rule gpu_rules[GPU_KEYS] = {
    [GPU_MATRIX] = {"matrix", RATE, true, offsetof(pc_gpu, matrix_flops_per_s)},
    [GPU_VECTOR] = {"vector", RATE, true, offsetof(pc_gpu, vector_flops_per_s)},
    [GPU_MEMORY_BANDWIDTH] = {"memory_bandwidth", BANDWIDTH, true, offsetof(pc_gpu, memory_bytes_per_s)},
    [GPU_MEMORY] = {"memory", SIZE, true, offsetof(pc_gpu, memory_bytes)},
    [GPU_RESERVED] = {"reserved", SIZE, false, offsetof(pc_gpu, memory_reserved_bytes)},
    [GPU_L2] = {"l2", SIZE, true, offsetof(pc_gpu, l2_bytes)},
    [GPU_PROCESSORS] = {"processors", COUNT, true, offsetof(pc_gpu, processors)},
    [GPU_TILE] = {"profile.tile", TILE, true, offsetof(pc_gpu, tile_m)},
    [GPU_GEMM_EFFICIENCY] = {"profile.gemm_efficiency", SHARE, true, offsetof(pc_gpu, gemm_efficiency)},
    [GPU_GEMM_RAMP_K] = {"profile.gemm_ramp_k", NUMBER, true, offsetof(pc_gpu, gemm_ramp_k)},
    [GPU_ATTENTION_EFFICIENCY] = {"profile.attention_efficiency", SHARE, true, offsetof(pc_gpu, attention_efficiency)},
    [GPU_ATTENTION_BACKWARD] = {"profile.attention_backward", NUMBER, true, offsetof(pc_gpu, attention_backward)},
    [GPU_MEMORY_EFFICIENCY] = {"profile.memory_efficiency", SHARE, true, offsetof(pc_gpu, memory_efficiency)},
    [GPU_KERNEL] = {"profile.kernel", TIME, true, offsetof(pc_gpu, kernel_s)},
    [GPU_LAUNCH] = {"profile.launch", TIME, true, offsetof(pc_gpu, launch_s)},
    [GPU_ESTIMATED_ERROR] = {"profile.estimated_error", SHARE, true, offsetof(pc_gpu, estimated_error)},
};

enum {
    CONNECTION_BANDWIDTH,
    CONNECTION_EFFICIENCY,
    CONNECTION_LATENCY,
    CONNECTION_FAST_LATENCY,
    CONNECTION_FAST_EFFICIENCY,
    CONNECTION_KEYS
};
enum {
    MACHINE_GPUS_PER_NODE,
    MACHINE_DOMAIN_GPUS,
    MACHINE_NICS_PER_NODE,
    MACHINE_NODES,
    MACHINE_LEAF_NODES,
    MACHINE_OVERSUBSCRIPTION,
    MACHINE_SWITCH_LATENCY,
    MACHINE_REDUCES_IN_SWITCH,
    MACHINE_IN_SWITCH_EFFICIENCY,
    MACHINE_IN_SWITCH_LATENCY,
    MACHINE_NIC_CROSSING,
    MACHINE_SPEED_VARIATION,
    MACHINE_COLLECTIVE_CALL,
    MACHINE_DOMAIN,
    MACHINE_NETWORK = MACHINE_DOMAIN + CONNECTION_KEYS,
    MACHINE_KEYS = MACHINE_NETWORK + CONNECTION_KEYS
};

#define CONNECTION(first, word)                                                                                        \
    [first + CONNECTION_BANDWIDTH] = {#word ".bandwidth", BANDWIDTH, true,                                             \
                                      offsetof(pc_machine, word.bandwidth_bytes_per_s)},                               \
             [first +                                                                                                  \
                 CONNECTION_EFFICIENCY] = {#word ".efficiency", SHARE, true, offsetof(pc_machine, word.efficiency)},   \
             [first + CONNECTION_LATENCY] = {#word ".latency", TIME, true, offsetof(pc_machine, word.latency_s)},      \
             [first + CONNECTION_FAST_LATENCY] = {#word ".fast_latency", TIME, false,                                  \
                                                  offsetof(pc_machine, word.fast_latency_s)},                          \
             [first + CONNECTION_FAST_EFFICIENCY] = {#word ".fast_efficiency", SHARE, false,                           \
                                                     offsetof(pc_machine, word.fast_efficiency)}

static const number_rule machine_rules[MACHINE_KEYS] = {
    [MACHINE_GPUS_PER_NODE] = {"gpus_per_node", COUNT, true, offsetof(pc_machine, gpus_per_node)},
    [MACHINE_DOMAIN_GPUS] = {"domain_gpus", COUNT, true, offsetof(pc_machine, domain_gpus)},
    [MACHINE_NICS_PER_NODE] = {"nics_per_node", COUNT, true, offsetof(pc_machine, nics_per_node)},
    [MACHINE_NODES] = {"nodes", COUNT_OR_NONE, false, offsetof(pc_machine, nodes)},
    [MACHINE_LEAF_NODES] = {"leaf_nodes", COUNT_OR_NONE, false, offsetof(pc_machine, leaf_nodes)},
    [MACHINE_OVERSUBSCRIPTION] = {"oversubscription", NUMBER, false, offsetof(pc_machine, oversubscription)},
    [MACHINE_SWITCH_LATENCY] = {"switch_latency", TIME, false, offsetof(pc_machine, switch_latency_s)},
    [MACHINE_REDUCES_IN_SWITCH] = {"reduces_in_switch", SWITCH, false, offsetof(pc_machine, reduces_in_switch)},
    [MACHINE_IN_SWITCH_EFFICIENCY] = {"in_switch_efficiency", SHARE, false, offsetof(pc_machine, in_switch_efficiency)},
    [MACHINE_IN_SWITCH_LATENCY] = {"in_switch_latency", TIME, false, offsetof(pc_machine, in_switch_latency_s)},
    [MACHINE_NIC_CROSSING] = {"nic_crossing_efficiency", SHARE, false, offsetof(pc_machine, nic_crossing_efficiency)},
    [MACHINE_SPEED_VARIATION] = {"speed_variation", SHARE, false, offsetof(pc_machine, speed_variation)},
    [MACHINE_COLLECTIVE_CALL] = {"collective_call", TIME, true, offsetof(pc_machine, collective_call_s)},
    CONNECTION(MACHINE_DOMAIN, domain),
    CONNECTION(MACHINE_NETWORK, network),
};

/* "128x256". */
static pc_code parse_tile(const char *text, int32_t *tile, pc_error *error) {
    char copy[32];
    int64_t m = 0, n = 0;
    const char *cross = strchr(text, 'x');
    bool is_good = cross && strlen(text) < sizeof copy;
    if (is_good) {
        snprintf(copy, sizeof copy, "%s", text);
        copy[cross - text] = '\0';
        is_good = !pc_parse_integer(copy, 1, 65536, &m, NULL) && !pc_parse_integer(cross + 1, 1, 65536, &n, NULL);
    }
    if (!is_good)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: no tile; expected rows x columns as 128x256", text);
    tile[0] = (int32_t)m;
    tile[1] = (int32_t)n;
    return PC_OK;
}

static pc_code parse_count(const char *text, int64_t least, int32_t *count, pc_error *error) {
    int64_t number;
    pc_code code = pc_parse_integer(text, least, INT32_MAX, &number, error);
    if (!code) *count = (int32_t)number;
    return code;
}

static pc_code parse_seconds(const char *text, double *seconds, pc_error *error) {
    pc_time time;
    pc_code code = pc_parse_time(text, &time, error);
    if (!code) *seconds = pc_time_to_seconds(time);
    return code;
}

static pc_code parse_number(number_kind kind, const char *text, void *to, pc_error *error) {
    switch (kind) {
    case RATE:
        return pc_parse_rate(text, to, error);
    case BANDWIDTH:
        return pc_parse_bandwidth(text, to, error);
    case SIZE:
        return pc_parse_size(text, to, error);
    case TIME:
        return parse_seconds(text, to, error);
    case COUNT:
    case COUNT_OR_NONE:
        return parse_count(text, kind == COUNT, to, error);
    case NUMBER:
        return pc_parse_number(text, to, error);
    case SHARE:
        return pc_parse_fraction(text, to, error);
    case TILE:
        return parse_tile(text, to, error);
    case SWITCH:
        return pc_parse_switch(text, to, error);
    }
    return PC_OK;
}

/* Reads `count` texts into the fields of `to`; what is not given stays as it is, where it may. */
static pc_code parse_numbers(const pc_source *source, const number_rule *rules, int count, char *const *text,
                             bool is_whole, void *to, pc_error *error) {
    for (int i = 0; i < count; i++) {
        pc_error cause;
        if (!text[i] && is_whole && rules[i].is_required)
            return pc_source_refuse(source, rules[i].path, error,
                                    "missing; expected a value, since this key is required");
        if (text[i] && parse_number(rules[i].kind, text[i], (char *)to + rules[i].place, &cause))
            return pc_source_refuse(source, rules[i].path, error, "%s", cause.message);
    }
    return PC_OK;
}

/* ---- files ---- */

/* GPUs and machines both have a profile, a machine's with what departs from its GPU's. */
typedef struct raw_profile {
    char *source;
    char *text[GPU_KEYS];
} raw_profile;

typedef struct raw_gpu {
    raw_profile numbers; /* first: the profile's keys and the GPU's own */
    char *gpu, *title, *source;
} raw_gpu;

typedef struct raw_machine {
    raw_profile profile;
    char *machine, *title, *source, *gpu, *from;
    char *text[MACHINE_KEYS];
} raw_machine;

#define TEXT                  PC_YAML_TEXT
#define NUMBER_OF(key, index) TEXT(key, PC_YAML_OPTIONAL_POINTER, raw_profile, text[index])

static const cyaml_schema_field_t profile_fields[] = {
    TEXT("source", PC_YAML_OPTIONAL_POINTER, raw_profile, source),
    NUMBER_OF("tile", GPU_TILE),
    NUMBER_OF("gemm_efficiency", GPU_GEMM_EFFICIENCY),
    NUMBER_OF("gemm_ramp_k", GPU_GEMM_RAMP_K),
    NUMBER_OF("attention_efficiency", GPU_ATTENTION_EFFICIENCY),
    NUMBER_OF("attention_backward", GPU_ATTENTION_BACKWARD),
    NUMBER_OF("memory_efficiency", GPU_MEMORY_EFFICIENCY),
    NUMBER_OF("kernel", GPU_KERNEL),
    NUMBER_OF("launch", GPU_LAUNCH),
    NUMBER_OF("estimated_error", GPU_ESTIMATED_ERROR),
    CYAML_FIELD_END,
};

_Static_assert(offsetof(raw_gpu, numbers) == 0 && offsetof(raw_machine, profile) == 0,
               "the offsets of profile_fields hold in both files");
static const cyaml_schema_field_t gpu_fields[] = {
    TEXT("gpu", PC_YAML_REQUIRED_POINTER, raw_gpu, gpu),
    TEXT("title", PC_YAML_OPTIONAL_POINTER, raw_gpu, title),
    TEXT("source", PC_YAML_OPTIONAL_POINTER, raw_gpu, source),
    NUMBER_OF("matrix", GPU_MATRIX),
    NUMBER_OF("vector", GPU_VECTOR),
    NUMBER_OF("memory_bandwidth", GPU_MEMORY_BANDWIDTH),
    NUMBER_OF("memory", GPU_MEMORY),
    NUMBER_OF("reserved", GPU_RESERVED),
    NUMBER_OF("l2", GPU_L2),
    NUMBER_OF("processors", GPU_PROCESSORS),
    PC_YAML_GROUP("profile", raw_profile, profile_fields),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t gpu_schema = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, raw_gpu, gpu_fields)};

#define MACHINE_NUMBER(key, index) TEXT(key, PC_YAML_OPTIONAL_POINTER, raw_machine, text[index])
#define CONNECTION_FIELDS(first)                                                                                       \
    {                                                                                                                  \
        MACHINE_NUMBER("bandwidth", (first) + CONNECTION_BANDWIDTH),                                                   \
            MACHINE_NUMBER("efficiency", (first) + CONNECTION_EFFICIENCY),                                             \
            MACHINE_NUMBER("latency", (first) + CONNECTION_LATENCY),                                                   \
            MACHINE_NUMBER("fast_latency", (first) + CONNECTION_FAST_LATENCY),                                         \
            MACHINE_NUMBER("fast_efficiency", (first) + CONNECTION_FAST_EFFICIENCY), CYAML_FIELD_END,                  \
    }
static const cyaml_schema_field_t domain_fields[] = CONNECTION_FIELDS(MACHINE_DOMAIN);
static const cyaml_schema_field_t network_fields[] = CONNECTION_FIELDS(MACHINE_NETWORK);

static const cyaml_schema_field_t machine_fields[] = {
    TEXT("machine", PC_YAML_REQUIRED_POINTER, raw_machine, machine),
    TEXT("title", PC_YAML_OPTIONAL_POINTER, raw_machine, title),
    TEXT("source", PC_YAML_OPTIONAL_POINTER, raw_machine, source),
    TEXT("from", PC_YAML_OPTIONAL_POINTER, raw_machine, from),
    TEXT("gpu", PC_YAML_OPTIONAL_POINTER, raw_machine, gpu),
    MACHINE_NUMBER("gpus_per_node", MACHINE_GPUS_PER_NODE),
    MACHINE_NUMBER("domain_gpus", MACHINE_DOMAIN_GPUS),
    MACHINE_NUMBER("nics_per_node", MACHINE_NICS_PER_NODE),
    MACHINE_NUMBER("nodes", MACHINE_NODES),
    PC_YAML_GROUP("domain", raw_machine, domain_fields),
    PC_YAML_GROUP("network", raw_machine, network_fields),
    MACHINE_NUMBER("leaf_nodes", MACHINE_LEAF_NODES),
    MACHINE_NUMBER("oversubscription", MACHINE_OVERSUBSCRIPTION),
    MACHINE_NUMBER("switch_latency", MACHINE_SWITCH_LATENCY),
    MACHINE_NUMBER("reduces_in_switch", MACHINE_REDUCES_IN_SWITCH),
    MACHINE_NUMBER("in_switch_efficiency", MACHINE_IN_SWITCH_EFFICIENCY),
    MACHINE_NUMBER("in_switch_latency", MACHINE_IN_SWITCH_LATENCY),
    MACHINE_NUMBER("nic_crossing_efficiency", MACHINE_NIC_CROSSING),
    MACHINE_NUMBER("speed_variation", MACHINE_SPEED_VARIATION),
    MACHINE_NUMBER("collective_call", MACHINE_COLLECTIVE_CALL),
    PC_YAML_GROUP("profile", raw_profile, profile_fields),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t machine_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, raw_machine, machine_fields)};

/* One line of at most PC_LABEL_SIZE - 1 bytes, as all labels. */
static pc_code read_name(const pc_source *source, const char *key, const char *text, char *name, pc_error *error) {
    pc_value value;
    pc_error cause;
    _Static_assert((int)PC_MACHINE_NAME_SIZE >= (int)PC_LABEL_SIZE, "a label fits into a name");
    if (pc_value_parse(PC_KEY_MACHINE, text, &value, &cause))
        return pc_source_refuse(source, key, error, "%s", cause.message);
    snprintf(name, PC_LABEL_SIZE, "%s", text);
    return PC_OK;
}

static pc_code parse_gpu(const pc_source *source, const raw_gpu *raw, pc_gpu *gpu, pc_error *error) {
    pc_gpu made = {.name = ""};
    pc_code code = read_name(source, "gpu", raw->gpu, made.name, error);
    if (!code) code = parse_numbers(source, gpu_rules, GPU_KEYS, raw->numbers.text, true, &made, error);
    if (!code) *gpu = made;
    return code;
}

static pc_code read_gpu(const char *name, const pc_place *place, pc_gpu *gpu, pc_error *error) {
    pc_library_text text;
    void *raw;
    pc_code code = pc_library_open(PC_LIBRARY_GPUS, name, place, &text, error);
    if (code) return code;
    code = pc_yaml_load(&text.source, &gpu_schema, sizeof(raw_gpu), &raw, error);
    if (!code) {
        code = parse_gpu(&text.source, raw, gpu, error);
        pc_yaml_free(&gpu_schema, raw);
    }
    pc_library_text_free(&text);
    return code;
}

static pc_code read_machine(const char *name, const pc_place *place, int depth, pc_machine *machine, char *title,
                            pc_error *error);

/* A file or name that this file names; what is wrong with a name is this file's fault. */
/* NOLINTNEXTLINE(misc-no-recursion): FROM_DEPTH_MAX deep at most */
static pc_code read_base(const pc_source *source, const raw_machine *raw, const pc_place *place, int depth,
                         pc_machine *machine, pc_error *error) {
    pc_error cause = {0};
    if (depth == FROM_DEPTH_MAX)
        return pc_source_refuse(source, "from", error,
                                "the %dth machine in a row that stands on another; expected fewer", depth);
    pc_code code = read_machine(raw->from, place, depth + 1, machine, NULL, &cause);
    if (code == PC_ERROR_INPUT) return pc_source_refuse(source, "from", error, "%s", cause.message);
    return code ? pc_error_set(error, code, "%s", cause.message) : PC_OK;
}

static pc_code read_own_gpu(const pc_source *source, const raw_machine *raw, const pc_place *place, pc_gpu *gpu,
                            pc_error *error) {
    pc_error cause = {0};
    if (!raw->gpu && raw->from) return PC_OK;
    if (!raw->gpu)
        return pc_source_refuse(source, "gpu", error, "missing; expected the name of a GPU, or from, another machine");
    pc_code code = read_gpu(raw->gpu, place, gpu, &cause);
    if (code == PC_ERROR_INPUT) return pc_source_refuse(source, "gpu", error, "%s", cause.message);
    return code ? pc_error_set(error, code, "%s", cause.message) : PC_OK;
}

/* The numbers of this file over those of the machine that it stands on. */
/* NOLINTNEXTLINE(misc-no-recursion): as read_base */
static pc_code parse_machine(const pc_source *source, const raw_machine *raw, const pc_place *place, int depth,
                             pc_machine *machine, pc_error *error) {
    pc_machine made = {.oversubscription = 1};
    pc_error cause;
    pc_code code = raw->from ? read_base(source, raw, place, depth, &made, error) : PC_OK;
    if (!code) code = read_name(source, "machine", raw->machine, made.name, error);
    if (!code) code = read_own_gpu(source, raw, place, &made.gpu, error);
    if (!code) code = parse_numbers(source, machine_rules, MACHINE_KEYS, raw->text, !raw->from, &made, error);
    if (!code) code = parse_numbers(source, gpu_rules, GPU_KEYS, raw->profile.text, false, &made.gpu, error);
    if (code) return code;
    if (pc_machine_check(&made, &cause)) return pc_source_refuse(source, "machine", error, "%s", cause.message);
    *machine = made;
    return PC_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): as read_base */
static pc_code read_machine(const char *name, const pc_place *place, int depth, pc_machine *machine, char *title,
                            pc_error *error) {
    pc_library_text text;
    void *data;
    pc_code code = pc_library_open(PC_LIBRARY_MACHINES, name, place, &text, error);
    if (code) return code;
    code = pc_yaml_load(&text.source, &machine_schema, sizeof(raw_machine), &data, error);
    if (!code) {
        const raw_machine *raw = data;
        code = parse_machine(&text.source, raw, &text.place, depth, machine, error);
        if (!code && title) snprintf(title, PC_TITLE_SIZE, "%s", raw->title ? raw->title : "");
        pc_yaml_free(&machine_schema, data);
    }
    pc_library_text_free(&text);
    return code;
}

pc_code pc_machine_file_read(const char *name, const pc_place *place, pc_machine *machine, char title[PC_TITLE_SIZE],
                             pc_error *error) {
    return read_machine(name, place, 0, machine, title, error);
}

pc_code pc_gpu_file_read(const char *name, const pc_place *place, pc_gpu *gpu, pc_error *error) {
    pc_machine machine;
    if (pc_library_find(PC_LIBRARY_GPUS, name) || !pc_library_find(PC_LIBRARY_MACHINES, name))
        return read_gpu(name, place, gpu, error);
    pc_code code = pc_machine_file_read(name, place, &machine, NULL, error);
    if (!code) *gpu = machine.gpu;
    return code;
}
