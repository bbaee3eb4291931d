#include "scenarios/settings.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the table ---- */

enum { DAY_S = 86400, SAMPLES_MAX = 1000000, SPARE_NODES_MAX = 1000000, YEARS_OF_JOB = 100, YEARS_ALIVE = 1000000 };

/* Why there is no option. */
#define OF_A_MODEL "part of what a model is, which its file says"
#define OF_TIMES   "times are given by a scenario's file"
#define RARE       "seldom changed: --set setting.KEY=VALUE"

#define OF_ANY         .use = PC_KEY_FOR_ALL
#define OF_TIMES_GIVEN .use = PC_KEY_FOR_TIMES
#define OF_CLUSTERS    .use = PC_KEY_FOR_CLUSTERS

#define KIND(kind_, unit_)  .kind = PC_VALUE_##kind_, .field.unit = (unit_)
#define RANGE(low, high)    .least = (low), .most = (high)
#define COUNT(low, high)    KIND(COUNT, ""), RANGE(low, high)
#define NUMBER(low, high)   KIND(NUMBER, ""), RANGE(low, high)
#define DURATION(low, high) KIND(DURATION, "s"), RANGE(low, high)
#define WORD(words_)        KIND(WORD, ""), .words = (words_)
#define WORDS(words_)       KIND(WORDS, ""), .words = (words_)
#define NUMERAL(words_)     KIND(NUMERAL, ""), .words = (words_)
#define LABEL               KIND(LABEL, "")
#define REFERENCE           KIND(REFERENCE, "")
#define DATA_FILE           KIND(DATA_FILE, "")
#define AMOUNT              KIND(AMOUNT, "")
#define TIME                KIND(TIME, "ps")
#define SIZE                KIND(SIZE, "bytes")
#define BANDWIDTH           KIND(BANDWIDTH, "bytes/s")
#define FRACTION            KIND(FRACTION, "")
#define OVERHEAD            KIND(OVERHEAD, "")
#define LAYOUT              KIND(LAYOUT, "")
#define SCHEDULE            KIND(SCHEDULE, "")
#define SWITCH              KIND(SWITCH, "")
#define RECOMPUTATION       KIND(RECOMPUTATION, "")
#define RECOMPUTED_MODULES  KIND(MODULES, "")
#define ORDER               KIND(ORDER, "")
#define OFFLOAD             KIND(OFFLOAD, "")
#define OFFLOADED_MODULES   KIND(OFFLOAD_MODULES, "")
#define PRICE               KIND(PRICE, "1/h")
#define JITTER              KIND(JITTER, "")
#define SLOWDOWN            KIND(SLOWDOWN, "")
#define SHARE               KIND(SHARE, "")

#define FIELD(member)                                                                                                  \
    .field.type = PC_FIELD_TYPE(pc_run_spec, member), .field.place = offsetof(pc_run_spec, member),                    \
    .field.size = sizeof(((pc_run_spec *)NULL)->member)
#define FIELDS(member, other) FIELD(member), .twin = offsetof(pc_run_spec, other)
#define NO_FIELD              .twin = 0

#define STANDARD(number)    .has_standard = true, .standard = (number)
#define STANDARD_TEXT(text) .standard_text = (text)
#define OTHERWISE(words_)   .otherwise = (words_)
#define SAYS(words_)        .field.description = (words_)
#define NO_FLAG(why)        .flag.why_not = (why)
#define FLAG(place_, name_, value_, help_)                                                                             \
    .flag.place = (place_), .flag.name = (name_), .flag.value = (value_), .flag.help = (help_)
#define FLAG_OF_RUN(...) FLAG(__VA_ARGS__), .flag.is_of_run = true
#define SWEEP(name_, letters_, page, loop, in_names)                                                                   \
    .sweep.name = (name_), .sweep.letters = (letters_), .sweep.page_place = (page), .sweep.loop_place = (loop),        \
    .sweep.name_place = (in_names)

static const pc_setting_rule rules[PC_KEYS] = {
#define SETTING(id, path, ...) [PC_KEY_##id] = {.field.name = (path), __VA_ARGS__},
#define SWEPT(id, path, ...)   [PC_KEY_##id] = {.field.name = (path), .sweep.key = PC_KEY_##id, __VA_ARGS__},
#define GROUP(...)
#include "scenarios/settings.def"
#undef SETTING
#undef SWEPT
#undef GROUP
};

static const pc_setting_line lines[] = {
#define SETTING(id, ...)                     {.key = PC_KEY_##id},
#define SWEPT(id, ...)                       {.key = PC_KEY_##id},
#define GROUP(path, value, otherwise, words) {PC_KEYS, path, value, otherwise, words},
#include "scenarios/settings.def"
#undef SETTING
#undef SWEPT
#undef GROUP
};

static const pc_key key_of_dimension[PC_DIMENSIONS] = {
#define SETTING(...)
#define SWEPT(id, ...) [PC_DIMENSION_##id] = PC_KEY_##id,
#define GROUP(...)
#include "scenarios/settings.def"
};

const pc_setting_rule *pc_setting_rule_of(pc_key key) {
    assert(key < PC_KEYS);
    return &rules[key];
}

const pc_dimension_rule *pc_dimension_rule_of(pc_dimension dimension) {
    return &rules[key_of_dimension[dimension]].sweep;
}

const pc_setting_line *pc_setting_lines(int *count) {
    *count = (int)(sizeof lines / sizeof *lines);
    return lines;
}

static int place_of(pc_dimension dimension, pc_dimension_order order) {
    const pc_dimension_rule *rule = pc_dimension_rule_of(dimension);
    return order == PC_ORDER_OF_PAGE    ? rule->page_place
           : order == PC_ORDER_OF_LOOPS ? rule->loop_place
                                        : rule->name_place;
}

int pc_dimensions_in_order(pc_dimension_order order, pc_dimension list[PC_DIMENSIONS]) {
    int count = 0;
    for (pc_dimension d = 0; d < PC_DIMENSIONS; d++) {
        int place = place_of(d, order), at = count;
        if (place == 0) continue;
        for (; at > 0 && place_of(list[at - 1], order) > place; at--) list[at] = list[at - 1];
        list[at] = d;
        count++;
    }
    return count;
}

/* ---- defaults in words ---- */

static void write_word(const char *words, int64_t index, char *text, size_t size) {
    for (; index > 0; index--) words = strchr(words, '|') + 1;
    snprintf(text, size, "`%.*s`", (int)strcspn(words, "|"), words);
}

void pc_key_otherwise(pc_key key, char *text, size_t size) {
    const pc_setting_rule *rule = &rules[key];
    if (rule->otherwise)
        snprintf(text, size, "%s", rule->otherwise);
    else if (rule->standard_text)
        snprintf(text, size, "`%s`", rule->standard_text);
    else if (rule->kind == PC_VALUE_SWITCH)
        snprintf(text, size, "`%s`", rule->standard != 0 ? "true" : "false");
    else if (rule->kind == PC_VALUE_WORD)
        write_word(rule->words, (int64_t)rule->standard, text, size);
    else
        snprintf(text, size, rule->kind == PC_VALUE_NUMERAL ? "`%.15g`" : "%.15g", rule->standard);
}

/* ---- values ---- */

int64_t pc_setting_integer(const pc_setting *setting, pc_key key) {
    return setting->given[key] ? setting->value[key].whole : (int64_t)rules[key].standard;
}

double pc_setting_real(const pc_setting *setting, pc_key key) {
    return setting->given[key] ? setting->value[key].real : rules[key].standard;
}

const char *pc_setting_text(const pc_setting *setting, pc_key key) {
    return setting->given[key] ? setting->value[key].text : rules[key].standard_text;
}

enum {
    ITERATION = offsetof(pc_run_spec, iteration),
    ITERATION_END = ITERATION + sizeof(pc_iteration_spec),
    MODEL = offsetof(pc_run_spec, iteration.model),
    MODEL_END = MODEL + sizeof(pc_model)
};

static bool lies_in(size_t place, size_t start, size_t end) {
    return place >= start && place < end;
}

bool pc_setting_has_field(const pc_setting_rule *rule, bool is_cluster) {
    if (rule->field.size == 0) return false;
    return is_cluster ? rule->use != PC_KEY_FOR_TIMES
                      : rule->use != PC_KEY_FOR_CLUSTERS && !lies_in(rule->field.place, ITERATION, ITERATION_END);
}

/* Into `row`, where the field lies. What a field cannot have was refused when it was read. */
static void put(const pc_setting *setting, pc_key key, const pc_field *field, void *row) {
    if (!setting->given[key] && !rules[key].has_standard) return;
    bool is_put = pc_field_is_real(field) ? pc_field_set_real(field, row, pc_setting_real(setting, key))
                                          : pc_field_set_integer(field, row, pc_setting_integer(setting, key));
    (void)is_put;
}

void pc_setting_fill(const pc_setting *setting, bool is_cluster, pc_run_spec *spec) {
    for (pc_key key = 0; key < PC_KEYS; key++) {
        const pc_setting_rule *rule = &rules[key];
        if (rule->field.size == 0 || !pc_setting_has_field(rule, is_cluster)) continue;
        put(setting, key, &rule->field, spec);
        if (pc_setting_has_twin(rule, is_cluster))
            put(setting, key, &rule->field, (char *)spec + pc_setting_twin(rule));
    }
}

void pc_setting_fill_model(const pc_setting *setting, pc_model *model) {
    for (pc_key key = 0; key < PC_KEY_MODEL_END; key++) {
        pc_field field = rules[key].field;
        if (field.size == 0 || !lies_in(field.place, MODEL, MODEL_END)) continue;
        field.place -= MODEL;
        put(setting, key, &field, model);
    }
}
