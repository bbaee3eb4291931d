/* Files of machines and GPUs: keys with units in, a pc_machine out. */
#include "scenarios/library_private.h"

#include "engine/field.h"
#include "scenarios/run_labels.h"
#include "scenarios/units.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { FROM_DEPTH_MAX = 8 }; /* of machines that say how they differ from another */

/* ---- what a number in a file is, and where it goes ---- */

typedef enum number_kind {
    RATE,
    BANDWIDTH,
    SIZE,
    TIME,
    COUNT,
    COUNT_OR_NONE,
    NUMBER,
    SHARE,
    TILE,
    SWITCH,
    POWER
} number_kind;

typedef struct number_rule {
    const char *path; /* as messages name it */
    number_kind kind;
    bool is_required; /* where the file stands on no other */
    size_t place;     /* in pc_gpu or pc_machine */
} number_rule;

/* A GPU's own numbers; then those of its profile, from which a machine's may depart. */
static const number_rule gpu_rules[] = {
    {"matrix", RATE, true, offsetof(pc_gpu, matrix_flops_per_s)},
    {"matrix_fp8", RATE, false, offsetof(pc_gpu, matrix_fp8_flops_per_s)},
    {"matrix_fp4", RATE, false, offsetof(pc_gpu, matrix_fp4_flops_per_s)},
    {"vector", RATE, true, offsetof(pc_gpu, vector_flops_per_s)},
    {"memory_bandwidth", BANDWIDTH, true, offsetof(pc_gpu, memory_bytes_per_s)},
    {"memory", SIZE, true, offsetof(pc_gpu, memory_bytes)},
    {"reserved", SIZE, false, offsetof(pc_gpu, memory_reserved_bytes)},
    {"l2", SIZE, true, offsetof(pc_gpu, l2_bytes)},
    {"processors", COUNT, true, offsetof(pc_gpu, processors)},
    {"power", POWER, false, offsetof(pc_gpu, power_w)},
    {"fp8_layouts", SWITCH, false, offsetof(pc_gpu, has_fp8_layouts)},
};
static const number_rule profile_rules[] = {
    {"profile.tile", TILE, true, offsetof(pc_gpu, tile_m)},
    {"profile.gemm_efficiency", SHARE, true, offsetof(pc_gpu, gemm_efficiency)},
    {"profile.gemm_efficiency_fp8", SHARE, false, offsetof(pc_gpu, gemm_efficiency_fp8)},
    {"profile.gemm_efficiency_fp4", SHARE, false, offsetof(pc_gpu, gemm_efficiency_fp4)},
    {"profile.split_accumulator", NUMBER, false, offsetof(pc_gpu, split_accumulator)},
    {"profile.gemm_ramp_k", NUMBER, true, offsetof(pc_gpu, gemm_ramp_k)},
    {"profile.attention_efficiency", SHARE, true, offsetof(pc_gpu, attention_efficiency)},
    {"profile.flash_1", SHARE, false, offsetof(pc_gpu, flash_efficiency[0])},
    {"profile.flash_2", SHARE, false, offsetof(pc_gpu, flash_efficiency[1])},
    {"profile.flash_3", SHARE, false, offsetof(pc_gpu, flash_efficiency[2])},
    {"profile.attention_backward", NUMBER, true, offsetof(pc_gpu, attention_backward)},
    {"profile.memory_efficiency", SHARE, true, offsetof(pc_gpu, memory_efficiency)},
    {"profile.permute_efficiency", SHARE, false, offsetof(pc_gpu, permute_efficiency)},
    {"profile.unfused", NUMBER, false, offsetof(pc_gpu, unfused)},
    {"profile.kernel", TIME, true, offsetof(pc_gpu, kernel_s)},
    {"profile.call", TIME, false, offsetof(pc_gpu, call_s)},
    {"profile.launch", TIME, true, offsetof(pc_gpu, launch_s)},
    {"profile.module", TIME, false, offsetof(pc_gpu, module_s)},
    {"profile.expert", TIME, false, offsetof(pc_gpu, expert_s)},
    {"profile.estimated_error", SHARE, true, offsetof(pc_gpu, estimated_error)},
};

/* clang-format off */
#define CONNECTION(word)                                                                                               \
    {#word ".bandwidth", BANDWIDTH, true, offsetof(pc_machine, word.bandwidth_bytes_per_s)},                           \
    {#word ".efficiency", SHARE, true, offsetof(pc_machine, word.efficiency)},                                         \
    {#word ".latency", TIME, true, offsetof(pc_machine, word.latency_s)},                                              \
    {#word ".fast_latency", TIME, false, offsetof(pc_machine, word.fast_latency_s)},                                   \
    {#word ".fast_efficiency", SHARE, false, offsetof(pc_machine, word.fast_efficiency)}
/* clang-format on */

static const number_rule machine_rules[] = {
    {"gpus_per_node", COUNT, true, offsetof(pc_machine, gpus_per_node)},
    {"domain_gpus", COUNT, true, offsetof(pc_machine, domain_gpus)},
    {"segment_gpus", COUNT_OR_NONE, false, offsetof(pc_machine, segment_gpus)},
    {"nics_per_node", COUNT, true, offsetof(pc_machine, nics_per_node)},
    {"nodes", COUNT_OR_NONE, false, offsetof(pc_machine, nodes)},
    CONNECTION(domain),
    CONNECTION(network),
    {"leaf_nodes", COUNT_OR_NONE, false, offsetof(pc_machine, leaf_nodes)},
    {"oversubscription", NUMBER, false, offsetof(pc_machine, oversubscription)},
    {"switch_latency", TIME, false, offsetof(pc_machine, switch_latency_s)},
    {"reduces_in_switch", SWITCH, false, offsetof(pc_machine, reduces_in_switch)},
    {"in_switch_efficiency", SHARE, false, offsetof(pc_machine, in_switch_efficiency)},
    {"in_switch_latency", TIME, false, offsetof(pc_machine, in_switch_latency_s)},
    {"nic_crossing_efficiency", SHARE, false, offsetof(pc_machine, nic_crossing_efficiency)},
    {"speed_variation", SHARE, false, offsetof(pc_machine, speed_variation)},
    {"collective_call", TIME, true, offsetof(pc_machine, collective_call_s)},
    {"host_link", BANDWIDTH, false, offsetof(pc_machine, host_link_bytes_per_s)},
    {"host_link_gpus", COUNT_OR_NONE, false, offsetof(pc_machine, host_link_gpus)},
    {"host_memory", SIZE, false, offsetof(pc_machine, host_memory_bytes)},
    {"host_memory_bandwidth", BANDWIDTH, false, offsetof(pc_machine, host_memory_bytes_per_s)},
};

#define COUNT_OF(list) ((int)(sizeof(list) / sizeof *(list)))

/* Words first, then the file's numbers, then its profile. */
static pc_schema_field field_of(const pc_schema_field *words, int word_count, const number_rule *rules, int count,
                                int index) {
    if (index < word_count) return words[index];
    if (index < word_count + count) return (pc_schema_field){.path = rules[index - word_count].path};
    if (index == word_count + count) return (pc_schema_field){.path = "profile.source"};
    return (pc_schema_field){.path = profile_rules[index - word_count - count - 1].path};
}

#define TEXT(key)                                                                                                      \
    { .path = (key) }
static const pc_schema_field gpu_words[] = {
    {.path = "gpu", .is_required = true},     TEXT("title"), TEXT("source"),    TEXT("kernels"),
    {.path = "kernels_for", .is_list = true}, TEXT("basis"), TEXT("basis_date")};
static pc_schema_field gpu_field(int index) {
    return field_of(gpu_words, COUNT_OF(gpu_words), gpu_rules, COUNT_OF(gpu_rules), index);
}
static const pc_schema gpu_schema = {.count = COUNT_OF(gpu_words) + COUNT_OF(gpu_rules) + 1 + COUNT_OF(profile_rules),
                                     .field = gpu_field};

static const pc_schema_field machine_words[] = {
    {.path = "machine", .is_required = true}, TEXT("title"), TEXT("source"), TEXT("from"), TEXT("gpu")};
static pc_schema_field machine_field(int index) {
    return field_of(machine_words, COUNT_OF(machine_words), machine_rules, COUNT_OF(machine_rules), index);
}
static const pc_schema machine_schema = {
    COUNT_OF(machine_words) + COUNT_OF(machine_rules) + 1 + COUNT_OF(profile_rules), .field = machine_field};

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
    case POWER:
        return pc_parse_power(text, to, error);
    }
    return PC_OK;
}

/* Reads those of the file's numbers that have a rule into the fields of `to`; what is not given stays as it is, where
 * it may. */
static pc_code parse_numbers(const pc_tree *tree, const number_rule *rules, int count, bool is_whole, void *to,
                             pc_error *error) {
    for (int i = 0; i < count; i++) {
        const pc_node *node = pc_node_find(tree->nodes, rules[i].path);
        if (!node && is_whole && rules[i].is_required)
            return pc_tree_refuse(tree, rules[i].path, error, "missing; expected a value, since this key is required");
        pc_code code = node ? parse_number(rules[i].kind, node->text, (char *)to + rules[i].place, error) : PC_OK;
        if (code) return pc_node_blame(tree, node, code, error);
    }
    return PC_OK;
}

/* ---- files ---- */

/* One line of at most PC_LABEL_SIZE - 1 bytes, as all labels. */
static pc_code read_name(const pc_tree *tree, const char *key, char *name, pc_error *error) {
    pc_value value;
    const pc_node *node = pc_node_find(tree->nodes, key);
    _Static_assert((int)PC_MACHINE_NAME_SIZE >= (int)PC_LABEL_SIZE, "a label fits into a name");
    pc_code code = pc_value_parse(PC_KEY_MACHINE, node->text, &value, error);
    if (code) return pc_node_blame(tree, node, code, error);
    snprintf(name, PC_LABEL_SIZE, "%s", node->text);
    return PC_OK;
}

static pc_code read_gpu(const char *name, const pc_place *place, pc_gpu *gpu, pc_error *error) {
    pc_library_text text;
    pc_gpu made = {.name = ""};
    pc_code code = pc_library_open(PC_LIBRARY_GPUS, name, place, &gpu_schema, &text, error);
    if (code) return code;
    code = read_name(&text.tree, "gpu", made.name, error);
    if (!code) code = parse_numbers(&text.tree, gpu_rules, COUNT_OF(gpu_rules), true, &made, error);
    if (!code) code = parse_numbers(&text.tree, profile_rules, COUNT_OF(profile_rules), true, &made, error);
    if (!code) code = pc_gpu_kernels_read(&text.tree, &made, error);
    pc_library_text_free(&text);
    if (!code) *gpu = made;
    return code;
}

static pc_code read_machine(const char *name, const pc_place *place, int depth, pc_machine *machine, char *title,
                            pc_error *error);

/* A file or name that this file names; what is wrong with a name is this file's fault. */
/* NOLINTNEXTLINE(misc-no-recursion): FROM_DEPTH_MAX deep at most */
static pc_code read_base(const pc_library_text *text, const pc_node *from, int depth, pc_machine *machine,
                         pc_error *error) {
    if (depth == FROM_DEPTH_MAX)
        return pc_node_refuse(&text->tree, from, error,
                              "the %dth machine in a row that stands on another; expected fewer", depth);
    pc_code code = read_machine(from->text, &text->place, depth + 1, machine, NULL, error);
    return pc_node_blame(&text->tree, from, code, error);
}

static pc_code read_own_gpu(const pc_library_text *text, bool has_base, pc_gpu *gpu, pc_error *error) {
    const pc_node *node = pc_node_find(text->tree.nodes, "gpu");
    if (node) return pc_node_blame(&text->tree, node, read_gpu(node->text, &text->place, gpu, error), error);
    if (has_base) return PC_OK;
    return pc_tree_refuse(&text->tree, "gpu", error, "missing; expected the name of a GPU, or from, another machine");
}

/* Whoever departs from a GPU's profile means these numbers, which measured kernels would pass over. */
static bool has_own_profile(const pc_tree *tree) {
    for (int i = 0; i < COUNT_OF(profile_rules); i++)
        if (pc_node_find(tree->nodes, profile_rules[i].path)) return true;
    return false;
}

static void forget_kernels(pc_gpu *gpu) {
    memset(gpu->kernels, 0, sizeof gpu->kernels);
    gpu->kernels_for = 0;
    if (gpu->basis == PC_GPU_MEASURED) gpu->basis = PC_GPU_DATASHEET;
}

/* The numbers of this file over those of the machine that it stands on. */
/* NOLINTNEXTLINE(misc-no-recursion): as read_base */
static pc_code parse_machine(const pc_library_text *text, int depth, pc_machine *machine, pc_error *error) {
    const pc_tree *tree = &text->tree;
    const pc_node *from = pc_node_find(tree->nodes, "from");
    pc_machine made = {.oversubscription = 1};
    pc_code code = from ? read_base(text, from, depth, &made, error) : PC_OK;
    if (!code) code = read_name(tree, "machine", made.name, error);
    if (!code) code = read_own_gpu(text, from != NULL, &made.gpu, error);
    if (!code) code = parse_numbers(tree, machine_rules, COUNT_OF(machine_rules), !from, &made, error);
    if (!code) code = parse_numbers(tree, profile_rules, COUNT_OF(profile_rules), false, &made.gpu, error);
    if (code) return code;
    if (has_own_profile(tree)) forget_kernels(&made.gpu);
    code = pc_node_blame(tree, pc_node_find(tree->nodes, "machine"), pc_machine_check(&made, error), error);
    if (!code) *machine = made;
    return code;
}

/* NOLINTNEXTLINE(misc-no-recursion): as read_base */
static pc_code read_machine(const char *name, const pc_place *place, int depth, pc_machine *machine, char *title,
                            pc_error *error) {
    pc_library_text text;
    pc_code code = pc_library_open(PC_LIBRARY_MACHINES, name, place, &machine_schema, &text, error);
    if (code) return code;
    code = parse_machine(&text, depth, machine, error);
    if (!code && title) pc_library_title(&text.tree, title);
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

/* ---- hashes ---- */

/* As the struct has it. */
static pc_field_type type_of(number_kind kind) {
    if (kind == SWITCH) return PC_FIELD_FLAG;
    if (kind == SIZE) return PC_FIELD_INT64;
    return kind == COUNT || kind == COUNT_OR_NONE || kind == TILE ? PC_FIELD_INT32 : PC_FIELD_REAL;
}

static void hash_numbers(const number_rule *rules, int count, const void *row, pc_hash *hash) {
    pc_field field = {.name = ""};
    for (int i = 0; i < count; i++) {
        field.type = type_of(rules[i].kind);
        field.place = rules[i].place;
        pc_field_hash(&field, row, hash);
        field.place += sizeof(int32_t);
        if (rules[i].kind == TILE) pc_field_hash(&field, row, hash);
    }
}

void pc_gpu_hash(const pc_gpu *gpu, pc_hash *hash) {
    hash_numbers(gpu_rules, COUNT_OF(gpu_rules), gpu, hash);
    hash_numbers(profile_rules, COUNT_OF(profile_rules), gpu, hash);
}

void pc_machine_hash(const pc_machine *machine, pc_hash *hash) {
    const pc_field name = {.type = PC_FIELD_TEXT, PC_FIELD_AT(pc_machine, name)};
    pc_field_hash(&name, machine, hash);
    pc_gpu_hash(&machine->gpu, hash);
    hash_numbers(machine_rules, COUNT_OF(machine_rules), machine, hash);
    pc_hash_add(hash, machine->measured != NULL);
}
