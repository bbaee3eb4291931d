/* The keys of a setting: how messages name them, and how their values are read. */
#include "scenarios/settings.h"

#include "engine/names.h"
#include "models/schedule/exchange.h"
#include "models/workload/activation_memory.h"
#include "models/workload/cut.h"
#include "models/workload/layout.h"
#include "scenarios/library_private.h"
#include "scenarios/recompute_keys.h"
#include "scenarios/references.h"
#include "scenarios/run_labels.h"
#include "scenarios/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };
static const double LEAST_SHARE = 0.001, YEAR_S = 365.25 * 86400;
enum { OVERHEAD_MAX = 1000 }; /* of a pass, as a fraction of it: what pc_iteration_run takes */
enum { SLOWDOWN_MAX = 1000 };

_Static_assert((int)PC_POSITIONS_ROTARY == 1 && (int)PC_NORM_RMS == 1 && (int)PC_MLP_SWIGLU == 1 &&
                   (int)PC_NORM_LAYER_NO_AFFINE == 2 && (int)PC_MLP_GEGLU == 4 && (int)PC_NORM_SANDWICH == 2 &&
                   (int)PC_QK_NORM_FULL == 2 && (int)PC_ATTENTION_FLASH == 1 && (int)PC_RECOMPUTE_FULL == 2 &&
                   (int)PC_CROSS_ENTROPY_PLAIN == 1 && (int)PC_CROSS_ENTROPY_CHUNKED == 3 &&
                   (int)PC_CROSS_ENTROPY_TORCH == 4 && (int)PC_CROSS_ENTROPY_COMPILED == 5 &&
                   (int)PC_KERNELS_EAGER == 1 && (int)PC_UNIT_LAYER == 1 && (int)PC_RESHARD_NEVER == 2 &&
                   (int)PC_OPTIMIZER_MUON == 4 && (int)PC_STATE_FP8 == 3 && (int)PC_GRADIENT_SYNC_LAST == 2 &&
                   (int)PC_FSDP_1 == 1 && (int)PC_FSDP_MEGATRON == 2,
               "the words stand in the order of the enums");

const char *pc_key_path(pc_key key) {
    return pc_setting_rule_of(key)->field.name;
}

bool pc_key_is_of_cluster(pc_key key) {
    return pc_setting_rule_of(key)->use == PC_KEY_FOR_CLUSTERS;
}

bool pc_key_is_whole(pc_key key) {
    return pc_setting_rule_of(key)->kind == PC_VALUE_COUNT;
}

bool pc_key_is_of_times(pc_key key) {
    return pc_setting_rule_of(key)->use == PC_KEY_FOR_TIMES;
}

pc_key pc_key_alternative(pc_key key) {
    switch (key) {
    case PC_KEY_PP:
        return PC_KEY_DEVICES;
    case PC_KEY_DEVICES:
        return PC_KEY_PP;
    case PC_KEY_MICROBATCHES:
        return PC_KEY_GLOBAL_BATCH;
    case PC_KEY_GLOBAL_BATCH:
        return PC_KEY_MICROBATCHES;
    default:
        return PC_KEYS;
    }
}

/* As messages quote it, where it may be empty. */
static const char *shown(const char *text) {
    return *text ? text : "''";
}

static pc_code parse_line(const char *text, size_t size, pc_value *value, pc_error *error) {
    if (pc_source_has_controls(text, ""))
        return pc_error_set(error, PC_ERROR_INPUT, "has control characters; expected one line of text");
    if (strlen(text) >= size)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s...: too long; expected at most %d bytes", text,
                            (int)size - 1);
    value->text = text;
    return PC_OK;
}

/* What results show has the size of a label; a path is but looked up. */
static pc_code parse_reference(const char *text, pc_value *value, pc_error *error) {
    return parse_line(text, pc_library_is_path(text) ? PATH_SIZE : PC_LABEL_SIZE, value, error);
}

/* A path; what is there is looked at by who opens it. */
static pc_code parse_data_file(const char *text, pc_value *value, pc_error *error) {
    if (!*text) return pc_error_set(error, PC_ERROR_INPUT, "empty; expected the path of a file");
    return parse_line(text, PATH_SIZE, value, error);
}

bool pc_layout_list(const char *layout, int32_t *layers, pc_layout_shape *shape) {
    return pc_layout_parse(layout, layers, shape, NULL) == PC_OK;
}

static bool is_layout_word(const char *text) {
    static const char *const words[] = {"auto", "even", "ends", "own", "balanced", "balanced-memory"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], text) == 0) return true;
    return false;
}

/* What looks like a list is told where it ends to be one. */
static pc_code parse_layout(const char *text, pc_value *value, pc_error *error) {
    pc_layout_shape shape;
    char hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = text};
    pc_nearest_offer_words(&nearest, "auto|even|ends|own|balanced|balanced-memory");
    bool is_list = strpbrk(text, "0123456789|*()") || (text[0] == 'E' && nearest.count == 0); /* EtL, and not EVEN */
    if (is_list && !is_layout_word(text)) {
        pc_code code = pc_layout_parse(text, NULL, &shape, error);
        if (code) return code;
    } else if (!is_layout_word(text)) {
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%.40s: unknown layout%s; expected even, ends, own, balanced, balanced-memory, auto, or "
                            "the layers of every part such as \"3,4,4,3\" or \"Et*3|(t*4|)*2t*3L\"",
                            shown(text), pc_nearest_hint(&nearest, hint));
    }
    value->text = text;
    return PC_OK;
}

/* "block:STEPS:FILE", of {block: FILE, steps: STEPS}: schema.h. */
static pc_code parse_block(const char *text, pc_value *value, pc_error *error) {
    const char *steps = text + 6, *path = strchr(steps, ':');
    char word[32];
    int64_t index;
    if (!path || !path[1])
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: no block's file; expected {block: FILE}", text);
    snprintf(word, sizeof word, "%.*s", (int)(path - steps < 31 ? path - steps : 31), steps);
    if (*word && pc_word_parse("none|squeeze|reorder", word, &index, error)) return PC_ERROR_INPUT;
    if (strcmp(word, "none") == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "steps none, which leaves a block on its own grid; expected squeeze or reorder, for a run "
                            "has times of its own");
    return parse_line(text, PATH_SIZE, value, error);
}

/* The text stays until references are found (references.h): only then is it known from where a file's path counts. */
static pc_code parse_schedule(const char *text, pc_value *value, pc_error *error) {
    char names[512], hint[PC_NEAREST_TEXT];
    if (strncmp(text, "block:", 6) == 0) return parse_block(text, value, error);
    if (pc_schedule_is_file(text)) return parse_line(text, PATH_SIZE, value, error);
    pc_generator_names(names, sizeof names);
    if (!pc_generator_find(text))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%.40s: unknown schedule%s; expected one of %s, a FILE.csv, or {block: FILE}", shown(text),
                            pc_generator_hint(text, hint), names);
    value->text = text;
    return PC_OK;
}

static pc_code parse_switch(const char *text, pc_value *value, pc_error *error) {
    bool is_on;
    pc_code code = pc_parse_switch(text, &is_on, error);
    if (!code) value->whole = is_on;
    return code;
}

static pc_code parse_offload(pc_value_kind kind, const char *text, pc_value *value, pc_error *error) {
    int32_t bits;
    pc_code code =
        kind == PC_VALUE_OFFLOAD ? pc_offload_parse(text, &bits, error) : pc_offload_modules_parse(text, &bits, error);
    if (!code) value->text = text;
    return code;
}

const char *pc_word_of(pc_key key, int64_t index, size_t *length) {
    const char *word = pc_setting_rule_of(key)->words;
    for (; index > 0; index--) word = strchr(word, '|') + 1;
    *length = strcspn(word, "|");
    return word;
}

pc_code pc_word_parse(const char *words, const char *text, int64_t *index, pc_error *error) {
    size_t length = strlen(text);
    const char *word = words;
    for (int64_t i = 0;; i++) {
        size_t end = strcspn(word, "|");
        if (end == length && memcmp(word, text, end) == 0) return *index = i, PC_OK;
        if (word[end] == '\0') break;
        word += end + 1;
    }
    char expected[64], hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = text};
    size_t used = 0;
    for (const char *c = words; *c && used + 2 < sizeof expected; c++) {
        expected[used++] = (char)(*c == '|' ? ',' : *c);
        if (*c == '|') expected[used++] = ' ';
    }
    expected[used] = '\0';
    if (!strchr(text, ',')) pc_nearest_offer_words(&nearest, words);
    return pc_error_set(error, PC_ERROR_INPUT, "%.40s: unknown word%s; expected one of %s", shown(text),
                        pc_nearest_hint(&nearest, hint), expected);
}

/* The place of a word, or of another name of it: "one=uno|two"; -1 if there is none. */
static int place_of(const char *words, const char *text, size_t length) {
    int place = 0;
    for (const char *word = words; *word;) {
        size_t end = strcspn(word, "|=");
        if (end == length && memcmp(word, text, end) == 0) return place;
        place += word[end] == '|';
        word += end + (word[end] != '\0');
    }
    return -1;
}

static pc_code refuse_words(const char *words, const char *text, size_t length, pc_error *error) {
    char expected[160];
    pc_words_list(words, "", expected, sizeof expected);
    return pc_error_set(error, PC_ERROR_INPUT, "%.*s: unknown word; expected %s, several with commas between, or none",
                        (int)(length > 40 ? 40 : length), *text ? text : "''", expected);
}

/* "one,two", "[one, two]", "all", "none". */
static pc_code parse_words(const char *words, const char *text, pc_value *value, pc_error *error) {
    static const char between[] = " ,[]'\"";
    int64_t sum = 0;
    for (const char *at = text + strspn(text, between); *at;) {
        size_t length = strcspn(at, between);
        int place = place_of(words, at, length);
        bool is_all = length == 3 && memcmp(at, "all", 3) == 0, is_none = length == 4 && memcmp(at, "none", 4) == 0;
        if (place < 0 && !is_all && !is_none) return refuse_words(words, at, length, error);
        if (place >= 0) sum |= INT64_C(1) << place;
        for (int i = pc_word_count(words) - 1; is_all && i >= 0; i--) sum |= INT64_C(1) << i;
        at += length;
        at += strspn(at, between);
    }
    value->whole = sum;
    return PC_OK;
}

static pc_code parse_numeral(const char *words, const char *text, pc_value *value, pc_error *error) {
    int64_t index;
    pc_code code = pc_word_parse(words, text, &index, error);
    return code ? code : pc_parse_integer(text, 0, INT32_MAX, &value->whole, error);
}

/* A number that may be larger than 1, but not by so much that costs run over. */
static pc_code parse_overhead(const char *text, pc_value *value, pc_error *error) {
    double number;
    pc_code code = pc_parse_number(text, &number, error);
    if (!code && number > OVERHEAD_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: out of range; expected at most %d", text, OVERHEAD_MAX);
    if (!code) value->real = number;
    return code;
}

static pc_code parse_duration(const char *text, const pc_setting_rule *rule, pc_value *value, pc_error *error) {
    double seconds;
    pc_code code = pc_parse_duration(text, &seconds, error);
    if (code) return code;
    if (seconds > (double)rule->most * YEAR_S)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: too long; expected at most %" PRId64 " years", text,
                            rule->most);
    if (rule->least && seconds == 0)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: is zero; expected more than that", text);
    value->real = seconds;
    return PC_OK;
}

static pc_code parse_jitter(const char *text, pc_value *value, pc_error *error) {
    char hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = text};
    pc_nearest_offer(&nearest, "profile");
    if (nearest.count > 0 && strcmp(text, "profile") != 0)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: not a number%s; expected a fraction from 0 to 1, or profile",
                            shown(text), pc_nearest_hint(&nearest, hint));
    if (nearest.count == 0) return pc_parse_fraction(text, &value->real, error);
    value->real = PC_JITTER_OF_PROFILE;
    return PC_OK;
}

/* How many times as long. */
static pc_code parse_slowdown(const char *text, pc_value *value, pc_error *error) {
    double number;
    pc_code code = pc_parse_number(text, &number, error);
    if (!code && (number < 1 || number > SLOWDOWN_MAX))
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: out of range; expected a number from 1 to %d", text,
                            SLOWDOWN_MAX);
    if (!code) value->real = number;
    return code;
}

/* What is left of something, which is not nothing. */
static pc_code parse_share(const char *text, pc_value *value, pc_error *error) {
    double number;
    pc_code code = pc_parse_fraction(text, &number, error);
    if (!code && number < LEAST_SHARE)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: out of range; expected a fraction from %g to 1", text,
                            LEAST_SHARE);
    if (!code) value->real = number;
    return code;
}

/* Sizes of zero would read as "no limit" or "nothing to send". */
pc_code pc_value_parse_size(const char *text, pc_value *value, pc_error *error) {
    int64_t bytes;
    pc_code code = pc_parse_size(text, &bytes, error);
    if (code) return code;
    if (bytes == 0) return pc_error_set(error, PC_ERROR_INPUT, "%.40s: is zero; expected at least one byte", text);
    value->whole = bytes;
    return PC_OK;
}

/* A device's room; what a pass does that finds too little is said elsewhere. */
static pc_code parse_memory(const char *text, pc_value *value, pc_error *error) {
    if (strcmp(text, "wait") == 0 || strcmp(text, "fail") == 0)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: no size; expected a size such as 80 GiB, or out_of_memory: %s",
                            text, text);
    return pc_value_parse_size(text, value, error);
}

pc_code pc_value_parse(pc_key key, const char *text, pc_value *value, pc_error *error) {
    const pc_setting_rule *rule = pc_setting_rule_of(key);
    switch (rule->kind) {
    case PC_VALUE_LABEL:
        return parse_line(text, PC_LABEL_SIZE, value, error);
    case PC_VALUE_REFERENCE:
        return parse_reference(text, value, error);
    case PC_VALUE_DATA_FILE:
        return parse_data_file(text, value, error);
    case PC_VALUE_COUNT:
        return pc_parse_count(text, rule->least, rule->most, &value->whole, error);
    case PC_VALUE_NUMBER:
        return pc_parse_integer(text, rule->least, rule->most, &value->whole, error);
    case PC_VALUE_AMOUNT:
        return pc_parse_amount(text, &value->whole, error);
    case PC_VALUE_TIME:
        return pc_parse_time(text, &value->whole, error);
    case PC_VALUE_SIZE:
        return key == PC_KEY_MEMORY ? parse_memory(text, value, error) : pc_value_parse_size(text, value, error);
    case PC_VALUE_BANDWIDTH:
        return pc_parse_bandwidth(text, &value->real, error);
    case PC_VALUE_FRACTION:
        return pc_parse_fraction(text, &value->real, error);
    case PC_VALUE_OVERHEAD:
        return parse_overhead(text, value, error);
    case PC_VALUE_LAYOUT:
        return parse_layout(text, value, error);
    case PC_VALUE_SCHEDULE:
        return parse_schedule(text, value, error);
    case PC_VALUE_SWITCH:
        return parse_switch(text, value, error);
    case PC_VALUE_WORD:
        return pc_word_parse(rule->words, text, &value->whole, error);
    case PC_VALUE_WORDS:
        return parse_words(rule->words, text, value, error);
    case PC_VALUE_NUMERAL:
        return parse_numeral(rule->words, text, value, error);
    case PC_VALUE_RECOMPUTATION:
        return pc_recompute_parse(text, value, error);
    case PC_VALUE_MODULES:
        return pc_recompute_parse_modules(text, value, error);
    case PC_VALUE_OFFLOAD:
    case PC_VALUE_OFFLOAD_MODULES:
        return parse_offload(rule->kind, text, value, error);
    case PC_VALUE_ORDER:
        return pc_rank_order_parse(text, &value->order, error);
    case PC_VALUE_PRICE:
        return pc_parse_price(text, &value->real, error);
    case PC_VALUE_DURATION:
        return parse_duration(text, rule, value, error);
    case PC_VALUE_JITTER:
        return parse_jitter(text, value, error);
    case PC_VALUE_SLOWDOWN:
        return parse_slowdown(text, value, error);
    case PC_VALUE_SHARE:
        return parse_share(text, value, error);
    }
    return PC_OK;
}

/* ---- for names of runs ---- */

const char *pc_value_name(pc_key key, pc_value value) {
    switch (pc_setting_rule_of(key)->kind) {
    case PC_VALUE_REFERENCE:
    case PC_VALUE_DATA_FILE:
        return value.reference->name;
    case PC_VALUE_RECOMPUTATION:
    case PC_VALUE_LAYOUT:
    case PC_VALUE_OFFLOAD:
    case PC_VALUE_OFFLOAD_MODULES:
        return value.text;
    case PC_VALUE_SCHEDULE:
        return value.generator->name;
    default:
        return NULL;
    }
}

static void write_word(pc_key key, int64_t index, char text[PC_DIMENSION_TEXT]) {
    size_t length;
    const char *word = pc_word_of(key, index, &length);
    snprintf(text, PC_DIMENSION_TEXT, "%.*s", (int)length, word);
}

static bool is_real(pc_value_kind kind) {
    return kind == PC_VALUE_BANDWIDTH || kind == PC_VALUE_FRACTION || kind == PC_VALUE_OVERHEAD ||
           kind == PC_VALUE_PRICE || kind == PC_VALUE_JITTER || kind == PC_VALUE_SLOWDOWN || kind == PC_VALUE_SHARE;
}

static void write_number(pc_key key, pc_value value, char text[PC_DIMENSION_TEXT]) {
    pc_value_kind kind = pc_setting_rule_of(key)->kind;
    if (kind == PC_VALUE_SIZE)
        pc_write_size(value.whole, text);
    else if (kind == PC_VALUE_DURATION)
        pc_write_duration(value.real, text);
    else if (kind == PC_VALUE_WORD)
        write_word(key, value.whole, text);
    else if (kind == PC_VALUE_JITTER && value.real == PC_JITTER_OF_PROFILE)
        snprintf(text, PC_DIMENSION_TEXT, "profile");
    else if (is_real(kind))
        snprintf(text, PC_DIMENSION_TEXT, "%.15g", value.real);
    else
        snprintf(text, PC_DIMENSION_TEXT, "%" PRId64, value.whole);
}

size_t pc_dimension_write(pc_dimension dimension, pc_value value, char text[PC_DIMENSION_TEXT]) {
    pc_key key = pc_dimension_key(dimension);
    const char *name = pc_value_name(key, value);
    if (name) return (size_t)snprintf(text, PC_DIMENSION_TEXT, "%s", name);
    write_number(key, value, text);
    return strlen(text);
}

/* ---- in words, for lists of keys ---- */

void pc_word_list(const char *words, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (const char *word = words; *word && used < size;) {
        size_t length = strcspn(word, "|");
        bool is_last = word[length] == '\0', is_next_last = !is_last && !strchr(word + length + 1, '|');
        used += (size_t)snprintf(text + used, size - used, "`%.*s`%s", (int)length, word,
                                 is_last        ? ""
                                 : is_next_last ? " or "
                                                : ", ");
        word += length + !is_last;
    }
}

int pc_word_count(const char *words) {
    int count = 1;
    for (const char *c = words; *c; c++) count += *c == '|';
    return count;
}

void pc_words_list(const char *words, const char *quote, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (const char *word = words; *word && used < size;) {
        size_t length = strcspn(word, "|=");
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s%.*s%s", used ? ", " : "", quote, (int)length, word, quote);
        word += strcspn(word, "|");
        word += *word == '|';
    }
}

static void write_words(const char *words, char *text, size_t size) {
    char listed[256];
    pc_words_list(words, "`", listed, sizeof listed);
    snprintf(text, size, "list of %s; or `all` or `none`", listed);
}

static const char *reference_words(pc_key key) {
    if (key == PC_KEY_OTHER_GPU) return "name of a GPU or a machine of the library, or the path of a GPU's file";
    if (key == PC_KEY_PRECISION) return "name of `pipecast list precisions`, or the path of a recipe's file";
    if (key == PC_KEY_SOFTWARE) return "name of `pipecast list software`, or the path of a file of settings";
    return key == PC_KEY_MODEL_FROM
               ? "name of `pipecast list models`, or the path of a model's file or of a config.json"
               : "name of `pipecast list machines`, or the path of a machine's file";
}

static void write_range(const pc_setting_rule *rule, char *text, size_t size) {
    const char *end = rule->kind == PC_VALUE_NUMBER ? ", without k" : "";
    if (rule->most == INT64_MAX)
        snprintf(text, size, "whole number from %" PRId64 "%s", rule->least, end);
    else if (rule->most == INT32_MAX)
        snprintf(text, size, "whole number, %" PRId64 " to 2^31 - 1%s", rule->least, end);
    else
        snprintf(text, size, "whole number, %" PRId64 " to %" PRId64 "%s", rule->least, rule->most, end);
}

void pc_key_values(pc_key key, char *text, size_t size) {
    static const char *const words[] = {
        [PC_VALUE_LABEL] = "text",
        [PC_VALUE_DATA_FILE] = "path of a file",
        [PC_VALUE_AMOUNT] = "number such as `15T` (10^12), `300B` (10^9) or plain digits",
        [PC_VALUE_TIME] = "time",
        [PC_VALUE_SIZE] = "size, more than zero",
        [PC_VALUE_BANDWIDTH] = "bandwidth",
        [PC_VALUE_FRACTION] = "number, 0 to 1",
        [PC_VALUE_LAYOUT] =
            "`auto`, `even`, `ends`, `own`, `balanced`, `balanced-memory`, or a list such as `\"3,4,4,3\"`",
        [PC_VALUE_SCHEDULE] = "name of `pipecast list schedules`, the path of a `FILE.csv`, or `{block: FILE}`",
        [PC_VALUE_SWITCH] = "`true` or `false`",
        [PC_VALUE_RECOMPUTATION] =
            "`none`, `selective`, `full`, `full-block-2`, `selective-op`, ..., or a list such as `\"full,none\"`",
        [PC_VALUE_MODULES] =
            "list of `core_attn`, `layernorm`, `mlp`, `moe`, `moe_act`, `shared_experts`, `mla_up_proj`",
        [PC_VALUE_ORDER] = "an order of `tp`, `dp` and `pp`, and `cp` or not, such as `tp-pp-dp`",
        [PC_VALUE_OFFLOAD] =
            "`none`, or some of `fine-grained`, `selective`, `full`, `tensors`, `optimizer`, `parameters`, joined by +",
        [PC_VALUE_OFFLOAD_MODULES] =
            "of `attn_norm`, `qkv_linear`, `core_attn`, `attn_proj` and `mlp_norm` some, joined by +",
        [PC_VALUE_PRICE] = "price of a GPU-hour, such as `2.10/h`",
        [PC_VALUE_JITTER] = "number, 0 to 1, or `profile`",
        [PC_VALUE_SHARE] = "number, 0.001 to 1",
    };
    const pc_setting_rule *rule = pc_setting_rule_of(key);
    if (rule->kind == PC_VALUE_COUNT || rule->kind == PC_VALUE_NUMBER)
        write_range(rule, text, size);
    else if (rule->kind == PC_VALUE_WORD || rule->kind == PC_VALUE_NUMERAL)
        pc_word_list(rule->words, text, size);
    else if (rule->kind == PC_VALUE_WORDS)
        write_words(rule->words, text, size);
    else if (rule->kind == PC_VALUE_OVERHEAD)
        snprintf(text, size, "number, 0 to %d", OVERHEAD_MAX);
    else if (rule->kind == PC_VALUE_SLOWDOWN)
        snprintf(text, size, "number, 1 to %d", SLOWDOWN_MAX);
    else if (rule->kind == PC_VALUE_DURATION)
        snprintf(text, size, "duration%s", rule->least ? ", more than zero" : "");
    else
        snprintf(text, size, "%s", rule->kind == PC_VALUE_REFERENCE ? reference_words(key) : words[rule->kind]);
}
