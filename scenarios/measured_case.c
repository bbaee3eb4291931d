/* A measured run as the case of a scenario that it is: keys and values, in the order in which they were said. */
#include "scenarios/measured_arguments.h"
#include "scenarios/measured_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Keys and values of one case, in the order in which they were said. */
enum { PAIRS_MOST = 96, PAIR_TEXT = PC_MEASURED_NAME_SIZE };
typedef struct pair {
    char key[PAIR_TEXT];
    char value[PAIR_TEXT];
} pair;
typedef struct pairs {
    pair list[PAIRS_MOST];
    int count;
} pairs;

/* The last word counts. */
static void put(pairs *p, const char *key, const char *value) {
    int i = 0;
    while (i < p->count && strcmp(p->list[i].key, key) != 0) i++;
    if (i == PAIRS_MOST) return;
    if (i == p->count) p->count++;
    snprintf(p->list[i].key, PAIR_TEXT, "%s", key);
    snprintf(p->list[i].value, PAIR_TEXT, "%s", value);
}

static void put_number(pairs *p, const char *key, int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    if (number >= 0) put(p, key, text);
}

static void put_text(pairs *p, const char *key, const char *text) {
    if (text[0]) put(p, key, text);
}

/* "memory=92 GiB", or several with ";" between. */
static void put_settings(pairs *p, const char *settings) {
    char key[PAIR_TEXT], value[PAIR_TEXT];
    while (*settings) {
        size_t length = strcspn(settings, ";"), name = strcspn(settings, "=");
        if (name < length) {
            snprintf(key, sizeof key, "%.*s", (int)name, settings);
            snprintf(value, sizeof value, "%.*s", (int)(length - name - 1), settings + name + 1);
            put(p, key, value);
        }
        settings += length + (settings[length] == ';');
    }
}

/* Megatron's arguments are Python's words. */
static void put_argument(pairs *p, const char *key, const char *cell) {
    bool is_true = strcmp(cell, "True") == 0, is_false = strcmp(cell, "False") == 0;
    bool is_word = strcmp(key, "cuda_graph_impl") == 0 && strcmp(cell, "none") == 0;
    if (!pc_measured_is_nothing(cell) || is_word) put(p, key, is_true ? "true" : is_false ? "false" : cell);
}

static void put_own(pairs *p, const pc_measured *m, int64_t row, pc_measured_said said) {
    char settings[PC_MEASURED_ARGUMENTS_SIZE];
    pc_measured_read_arguments(m, row, said, settings);
    put_settings(p, settings);
    for (int i = 0; i < m->column_count; i++) {
        const char *cell = m->cell[row * m->column_count + i], *key = pc_measured_key_of_argument(m->column[i]);
        if (key) put_argument(p, key, cell);
        if (strncasecmp(m->column[i], "setting.", 8) == 0) put_text(p, m->column[i] + 8, cell);
    }
}

static const char *value_of(const pairs *p, const char *key) {
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->list[i].key, key) == 0) return p->list[i].value;
    return "";
}

static bool is_of_flex(const char *key) {
    return !strcmp(key, "moe_flex_dispatcher_backend") || !strcmp(key, "moe_deepep_num_sms") ||
           !strcmp(key, "moe_hybridep_num_sms");
}

/* Megatron-LM reads the backend of `flex` alone: another dispatcher leaves it without effect. */
static void drop_backend(pairs *p) {
    int kept = 0;
    if (strcmp(value_of(p, "moe_token_dispatcher_type"), "flex") == 0) return;
    for (int i = 0; i < p->count; i++)
        if (!is_of_flex(p->list[i].key)) p->list[kept++] = p->list[i];
    p->count = kept;
}

static void put_run(pairs *p, const pc_measured_run *run) {
    put(p, "model.from", run->model);
    put_number(p, "model.seq_len", run->seq_len);
    put_text(p, "model.precision", run->precision);
    put_number(p, "model.layers", run->layers);
    put(p, "machine", run->machine);
    put_number(p, "gpus", run->gpus);
    put_number(p, "tp", run->tp);
    put_number(p, "pp", run->pp);
    if (run->cp > 1) put_number(p, "cp", run->cp);
    if (run->ep > 1) put_number(p, "ep", run->ep);
    put_number(p, "microbatch_size", run->microbatch_size);
    put_number(p, "global_batch", run->global_batch);
    put_number(p, "zero", run->zero);
    put_number(p, "shard_group", run->shard_group);
    put_text(p, "software", run->software);
    put_text(p, "recompute", run->recompute);
    put_settings(p, run->adapters);
    put_settings(p, run->experts);
    if (run->ep > 1) put_number(p, "etp", run->etp);
    if (run->says_recompute) put_text(p, "recompute", run->recompute);
    put_text(p, "schedule", run->schedule);
    if (run->chunks > 1) put_number(p, "chunks", run->chunks);
    put_settings(p, run->settings);
}

static size_t group_of(const char *key) {
    const char *dot = strchr(key, '.');
    return dot ? (size_t)(dot - key) : 0;
}

static void add_pair(pc_text *yaml, const char *key, const char *value) {
    pc_text_add_json(yaml, key);
    pc_text_add(yaml, ": ", 2);
    pc_text_add_json(yaml, value);
}

/* Keys of one group stand together: "model: {from: ..., seq_len: ...}". */
static void add_group(pc_text *yaml, const pairs *p, int first) {
    const char *key = p->list[first].key;
    size_t group = group_of(key);
    for (int i = 0; i < first; i++)
        if (group_of(p->list[i].key) == group && strncmp(p->list[i].key, key, group) == 0) return;
    char name[PAIR_TEXT];
    snprintf(name, sizeof name, "%.*s", (int)group, key);
    pc_text_add(yaml, ", ", 2);
    pc_text_add_json(yaml, name);
    pc_text_add(yaml, ": {", 3);
    for (int i = first, any = 0; i < p->count; i++) {
        if (group_of(p->list[i].key) != group || strncmp(p->list[i].key, key, group) != 0) continue;
        if (any++) pc_text_add(yaml, ", ", 2);
        add_pair(yaml, p->list[i].key + group + 1, p->list[i].value);
    }
    pc_text_add(yaml, "}", 1);
}

void pc_measured_add_case(const pc_measured *measured, int64_t row, const pc_measured_run *run, pc_text *yaml) {
    const pc_measured_said said = {run->says_recompute, pc_measured_cell(measured, row, PC_MEASURED_ZERO)[0] != '\0'};
    pairs p = {.count = 0};
    put_run(&p, run);
    if (run->conditions) put_own(&p, run->conditions, run->condition, said);
    put_own(&p, measured, row, said);
    drop_backend(&p);
    pc_text_printf(yaml, "- {name: r%" PRId64, row);
    for (int i = 0; i < p.count; i++) {
        if (group_of(p.list[i].key) > 0) {
            add_group(yaml, &p, i);
            continue;
        }
        pc_text_add(yaml, ", ", 2);
        add_pair(yaml, p.list[i].key, p.list[i].value);
    }
    pc_text_add(yaml, "}\n", 2);
}
