/* Arguments of Megatron-LM and Megatron-Bridge that several columns say together. */
#include "scenarios/measured_arguments.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const names[] = {"recompute_granularity",
                                    "recompute_method",
                                    "recompute_num_layers",
                                    "recompute_modules",
                                    "use_megatron_fsdp",
                                    "data_parallel_sharding_strategy",
                                    "fine_grained_activation_offloading",
                                    "offload_modules",
                                    "overlap_moe_expert_parallel_comm",
                                    "delay_wgrad_compute"};

bool pc_measured_is_argument(const char *name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(names[i], name) == 0) return true;
    return false;
}

static const char *cell_of(const pc_measured *m, int64_t row, const char *name) {
    for (int i = 0; i < m->column_count; i++)
        if (strcasecmp(m->column[i], name) == 0) return m->cell[row * m->column_count + i];
    return "";
}

static bool says(const pc_measured *m, int64_t row, const char *name, const char *word) {
    return strcasecmp(cell_of(m, row, name), word) == 0;
}

/* "core_attn+mlp" of "['core_attn'  'mlp']"; "" of nothing. */
static void join_list(const char *cell, char list[PC_MEASURED_NAME_SIZE]) {
    size_t used = 0;
    bool is_first = true, is_inside = false;
    list[0] = '\0';
    if (strcasecmp(cell, "none") == 0) return;
    for (; *cell; cell++) {
        bool is_letter = isalnum((unsigned char)*cell) || *cell == '_';
        if (is_letter && !is_inside && !is_first && used + 1 < PC_MEASURED_NAME_SIZE) list[used++] = '+';
        if (is_letter && used + 1 < PC_MEASURED_NAME_SIZE) list[used++] = *cell;
        is_first = is_first && !is_letter;
        is_inside = is_letter;
    }
    list[used] = '\0';
}

static void add(char *settings, const char *key, const char *before, const char *value) {
    size_t used = strlen(settings);
    snprintf(settings + used, PC_MEASURED_ARGUMENTS_SIZE - used, "%s%s=%s%s", used ? ";" : "", key, before, value);
}

/* Megatron-LM reads modules with `selective` alone, and method and layers with `full`. */
static void add_recompute(const pc_measured *m, int64_t row, char *settings) {
    char list[PC_MEASURED_NAME_SIZE];
    const char *method = cell_of(m, row, "recompute_method"), *layers = cell_of(m, row, "recompute_num_layers");
    bool has_layers = layers[0] && strcasecmp(layers, "none") != 0;
    join_list(cell_of(m, row, "recompute_modules"), list);
    if (says(m, row, "recompute_granularity", "selective"))
        add(settings, "recompute", list[0] ? "selective:" : "selective", list);
    if (!says(m, row, "recompute_granularity", "full")) return;
    if (strcasecmp(method, "block") == 0 && has_layers)
        add(settings, "recompute", "full-block-", layers);
    else if (strcasecmp(method, "uniform") == 0 && has_layers && strcmp(layers, "1") != 0)
        add(settings, "recompute", "full-uniform-", layers);
    else
        add(settings, "recompute", "full", "");
}

static void add_sharding(const pc_measured *m, int64_t row, char *settings) {
    static const char *const strategies[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
    static const char *const levels[] = {"0", "1", "2", "3"};
    if (!says(m, row, "use_megatron_fsdp", "true")) return;
    for (int i = 0; i < 4; i++)
        if (says(m, row, "data_parallel_sharding_strategy", strategies[i])) add(settings, "zero", "", levels[i]);
    if (!says(m, row, "data_parallel_sharding_strategy", strategies[3])) return;
    add(settings, "fsdp_unit", "", "layer");
    add(settings, "fsdp_version", "", "megatron");
}

static void add_offload(const pc_measured *m, int64_t row, char *settings) {
    char list[PC_MEASURED_NAME_SIZE];
    join_list(cell_of(m, row, "offload_modules"), list);
    if (!says(m, row, "fine_grained_activation_offloading", "true") || !list[0]) return;
    add(settings, "offload", "", "fine-grained");
    add(settings, "offload_modules", "", list);
}

/* Megatron-LM runs 1F1B of its own then, whether there is one stage or several of several chunks. */
static void add_overlap(const pc_measured *m, int64_t row, char *settings) {
    if (!says(m, row, "overlap_moe_expert_parallel_comm", "true")) return;
    add(settings, "schedule", "", "1f1b-interleaved-overlap");
    add(settings, "overlap.moe_expert_parallel_comm", "", "true");
    if (says(m, row, "delay_wgrad_compute", "true")) add(settings, "overlap.delay_wgrad_compute", "", "true");
}

void pc_measured_read_arguments(const pc_measured *measured, int64_t row, pc_measured_said said,
                                char settings[PC_MEASURED_ARGUMENTS_SIZE]) {
    settings[0] = '\0';
    if (!said.recompute) add_recompute(measured, row, settings);
    if (!said.zero) add_sharding(measured, row, settings);
    add_offload(measured, row, settings);
    add_overlap(measured, row, settings);
}
