#include "scenarios/plan_section.h"

#include "engine/alloc.h"
#include "scenarios/number_list.h"
#include "scenarios/recompute_keys.h"
#include "scenarios/units.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char objective_words[] = "throughput|memory|cost",
                  layout_words[] = "even|ends|own|balanced|balanced-memory|auto";
_Static_assert((int)PC_PLAN_THROUGHPUT == 0 && (int)PC_PLAN_MEMORY == 1 && (int)PC_PLAN_COST == 2 &&
                   (int)PC_CUT_EVEN == 0 && (int)PC_CUT_ENDS == 1 && (int)PC_CUT_OWN == 2 && (int)PC_CUT_LISTED == 3 &&
                   (int)PC_CUT_BALANCED == 4 && (int)PC_CUT_BALANCED_MEMORY == 5 && (int)PC_PLAN_LAYOUT_AUTO == 6,
               "the words stand in the order of the enums");

enum { TOP_MAX = 1000000 };

const char *const pc_plan_text_names[PC_PLAN_TEXTS] = {
    [PC_PLAN_TEXT_TOP] = "top",
    [PC_PLAN_TEXT_MOST_ITERATION] = "most_iteration",
    [PC_PLAN_TEXT_MOST_COST] = "most_cost",
    [PC_PLAN_TEXT_DEADLINE] = "deadline",
    [PC_PLAN_TEXT_BUDGET] = "budget",
    [PC_PLAN_TEXT_BATCH_PER] = "batch_per",
};

pc_choice_rule pc_choice_rule_of(pc_choice choice) {
#define KEY(id) PC_KEY_##id,
    static const pc_key keys[PC_CHOICES] = {PC_KEYS, PC_PLANNED(KEY)};
    if (choice == PC_CHOICE_OBJECTIVE) return (pc_choice_rule){"objective", PC_KEYS, PC_DIMENSIONS};
    pc_key key = keys[choice];
    const char *swept = pc_setting_rule_of(key)->sweep.name;
    pc_dimension dimension = swept ? 0 : PC_DIMENSIONS;
    while (swept && pc_dimension_key(dimension) != key) dimension++;
    return (pc_choice_rule){swept ? swept : pc_key_path(key), key, dimension};
}

const char *pc_plan_scenario_list_of(const char *key) {
    for (pc_choice c = 0; c < PC_CHOICES; c++) {
        const pc_choice_rule rule = pc_choice_rule_of(c);
        if (rule.key != PC_KEYS && strcmp(pc_key_path(rule.key), key) == 0) return rule.name;
    }
    return NULL;
}

const pc_node *pc_choice_node(const pc_document *document, pc_choice choice) {
    return pc_node_find(pc_node_find(document->tree.nodes, "plan"), pc_choice_rule_of(choice).name);
}

bool pc_choice_has_ranges(pc_choice choice) {
    pc_key key = pc_choice_rule_of(choice).key;
    return key != PC_KEYS && pc_key_is_whole(key);
}

void pc_choice_values(pc_choice choice, char *text, size_t size) {
    if (choice == PC_CHOICE_OBJECTIVE)
        pc_word_list(objective_words, text, size);
    else if (choice == PC_CHOICE_OFFLOAD)
        snprintf(text, size, "`none`, `selective`, `full`, `tensors`, `optimizer`, or several kinds joined by `+`");
    else if (choice == PC_CHOICE_RECOMPUTE)
        snprintf(text, size, "`none`, `selective`, `full`, or a name of docs/cluster-model.md");
    else if (choice == PC_CHOICE_LAYOUT)
        pc_word_list(layout_words, text, size);
    else if (choice == PC_CHOICE_SCHEDULE)
        snprintf(text, size, "name of `pipecast list schedules`");
    else
        pc_key_values(pc_choice_rule_of(choice).key, text, size);
    size_t used = strlen(text);
    if (pc_choice_has_ranges(choice))
        snprintf(text + used, size - used, ", or a range such as `%s`", choice == PC_CHOICE_ZERO ? "0..3" : "1..8");
    if (choice == PC_CHOICE_SCHEDULE) snprintf(text + used, size - used, ", or `all`");
}

/* ---- who is to blame ---- */

static void write_path(const pc_choice_list *list, pc_choice choice, int index, char path[PC_KEY_PATH_SIZE]) {
    int used =
        snprintf(path, PC_KEY_PATH_SIZE, "%s.%s", list->is_of_sweep ? "sweep" : "plan", pc_choice_rule_of(choice).name);
    if (index >= 0) snprintf(path + used, (size_t)(PC_KEY_PATH_SIZE - used), "[%d]", index);
}

pc_code pc_choice_pass_on(const pc_plan_scenario *scenario, pc_choice choice, int index, const pc_error *fault,
                          pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    write_path(&scenario->list[choice], choice, index, path);
    return pc_tree_pass_on(&scenario->list[choice].document->tree, path, fault, error);
}

pc_code pc_choice_refuse(const pc_plan_scenario *scenario, pc_choice choice, int index, pc_error *error,
                         const char *format, ...) {
    pc_error fault;
    va_list values;
    va_start(values, format);
    pc_error_set_list(&fault, PC_ERROR_INPUT, format, values);
    va_end(values);
    return pc_choice_pass_on(scenario, choice, index, &fault, error);
}

pc_code pc_plan_refuse_setting(const pc_plan_scenario *scenario, const pc_error *fault, pc_error *error) {
    const pc_document *documents = scenario->loaded->documents, *from = documents;
    const pc_case *of = &scenario->loaded->cases[0];
    const char *key = pc_error_part_of(fault, PC_ERROR_PART_KEY);
    char path[2 * PC_KEY_PATH_SIZE];
    for (int i = scenario->loaded->document_count - 1; i > 0 && from == documents; i--)
        if (pc_setting_gives(&documents[i].setting, key)) from = &documents[i];
    bool in_case = from == documents && pc_setting_gives(&of->setting, key);
    snprintf(path, sizeof path, "%s.%s", in_case ? of->path : "setting", key);
    return pc_tree_pass_on(&from->tree, path, fault, error);
}

/* ---- lists ---- */

static pc_code push(pc_choice_list *list, pc_value value, pc_error *cause) {
    if (list->count == PC_CHOICE_VALUES_MAX)
        return pc_error_set(cause, PC_ERROR_INPUT, "more than %d values; expected at most that many",
                            PC_CHOICE_VALUES_MAX);
    pc_value *values = pc_realloc(list->values, (size_t)list->count + 1, sizeof *values);
    if (!values) return pc_error_no_memory(cause);
    values[list->count++] = value;
    list->values = values;
    return PC_OK;
}

static pc_code take_number(void *list, pc_value value, pc_error *cause) {
    return push(list, value, cause);
}

/* Those that share the output layer are asked for by name: their cut is another one. */
static pc_code push_all_schedules(pc_choice_list *list, pc_error *cause) {
    int count;
    const pc_generator *generators = pc_generators(&count);
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++)
        if (generators[i].barriers == PC_BARRIERS_NONE)
            code = push(list, (pc_value){.generator = &generators[i]}, cause);
    return code;
}

static pc_code push_word(const char *words, const char *text, pc_choice_list *list, pc_error *cause) {
    pc_value value;
    pc_code code = pc_word_parse(words, text, &value.whole, cause);
    return code ? code : push(list, value, cause);
}

/* The words stand in the order of the enums, but for a list, which has no word. */
static pc_code read_layout(const char *text, int64_t *layout, pc_error *cause) {
    pc_code code = pc_word_parse(layout_words, text, layout, cause);
    if (!code && *layout >= PC_CUT_LISTED) ++*layout;
    return code;
}

static pc_code push_layout(const char *text, pc_choice_list *list, pc_error *cause) {
    pc_value value;
    pc_code code = read_layout(text, &value.whole, cause);
    return code ? code : push(list, value, cause);
}

static pc_code push_offload(const char *text, pc_choice_list *list, pc_error *cause) {
    int32_t kinds;
    pc_code code = pc_offload_parse(text, &kinds, cause);
    return code ? code : push(list, (pc_value){.whole = kinds}, cause);
}

static pc_code push_recomputation(const char *text, pc_choice_list *list, pc_error *cause) {
    pc_recomputation one;
    char names[512];
    pc_recomputation_names(", ", names, sizeof names);
    if (!pc_recomputation_parse(text, strlen(text), &one))
        return pc_error_set(cause, PC_ERROR_INPUT, "%.40s: unknown recomputation; expected one of %s", text, names);
    return push(list, (pc_value){.whole = pc_recomputation_code(one)}, cause);
}

/* A plan chooses how many stages, chunks and microbatches there are, which a file has of its own. */
static pc_code check_named(pc_value schedule, pc_error *cause) {
    if (!schedule.generator->given) return PC_OK;
    return pc_error_set(cause, PC_ERROR_INPUT,
                        "%s: the schedule of a file; expected the name of one, for a plan chooses stages and "
                        "microbatches",
                        schedule.generator->name);
}

/* One entry as `plan` has it: a value, or what stands for several. */
static pc_code push_entry(pc_plan_scenario *scenario, pc_choice choice, const pc_node *given, unsigned index,
                          const char *text, pc_choice_list *list, pc_error *cause) {
    pc_value value;
    pc_key key = pc_choice_rule_of(choice).key;
    if (choice == PC_CHOICE_OBJECTIVE) return push_word(objective_words, text, list, cause);
    if (choice == PC_CHOICE_RECOMPUTE) return push_recomputation(text, list, cause);
    if (choice == PC_CHOICE_OFFLOAD) return push_offload(text, list, cause);
    if (choice == PC_CHOICE_LAYOUT) return push_layout(text, list, cause);
    if (choice == PC_CHOICE_SCHEDULE && strcmp(text, "all") == 0) return push_all_schedules(list, cause);
    if (pc_choice_has_ranges(choice)) return pc_number_entry_read(key, given, index, take_number, list, cause);
    pc_code code = pc_value_parse(key, text, &value, cause);
    pc_place place = pc_loaded_place(scenario->loaded, list->document);
    if (!code) code = pc_reference_find(&scenario->loaded->references, key, &place, &value, cause);
    if (!code && choice == PC_CHOICE_SCHEDULE) code = check_named(value, cause);
    return code ? code : push(list, value, cause);
}

static bool are_same(pc_choice choice, pc_value a, pc_value b) {
    switch (choice) {
    case PC_CHOICE_MACHINE:
    case PC_CHOICE_PRECISION:
        return a.reference == b.reference;
    case PC_CHOICE_SCHEDULE:
        return a.generator == b.generator;
    case PC_CHOICE_RANK_ORDER:
        return memcmp(&a.order, &b.order, sizeof a.order) == 0;
    case PC_CHOICE_PRICE:
        return false; /* two machines may cost the same */
    default:
        return a.whole == b.whole;
    }
}

static pc_code check_differ(const pc_plan_scenario *scenario, pc_choice choice, pc_error *error) {
    const pc_choice_list *list = &scenario->list[choice];
    for (int i = 1; i < list->count; i++)
        for (int k = 0; k < i; k++)
            if (are_same(choice, list->values[k], list->values[i]))
                return pc_choice_refuse(scenario, choice, -1, error,
                                        "the same twice, values %d and %d; expected values that differ", k, i);
    return PC_OK;
}

static pc_code read_list(pc_plan_scenario *scenario, const pc_document *from, pc_choice choice, pc_error *error) {
    const pc_node *given = pc_choice_node(from, choice);
    pc_choice_list *list = &scenario->list[choice];
    unsigned index = 0;
    pc_free(list->values);
    *list = (pc_choice_list){.origin = PC_CHOICE_LISTED, .document = from};
    for (const pc_node *entry = pc_node_first(given); entry < pc_node_end(given); entry = pc_node_end(entry)) {
        pc_code code = push_entry(scenario, choice, given, index++, entry->text, list, error);
        if (code) return pc_node_blame(&from->tree, entry, code, error);
    }
    return check_differ(scenario, choice, error);
}

static void drop_list(pc_choice_list *list) {
    pc_free(list->values);
    *list = (pc_choice_list){.count = 0};
}

/* Whether a set gives in the setting, or in the sweep, what a document before it lists. */
static bool is_replaced(const pc_plan_scenario *scenario, const pc_document *from, pc_choice choice) {
    const pc_choice_rule rule = pc_choice_rule_of(choice);
    if (from == scenario->loaded->documents || rule.key == PC_KEYS) return false;
    pc_key alternative = pc_key_alternative(rule.key);
    return pc_setting_has(&from->setting, rule.key) ||
           (alternative != PC_KEYS && pc_setting_has(&from->setting, alternative)) ||
           (rule.dimension != PC_DIMENSIONS && pc_sweep_node(from, rule.dimension));
}

static pc_code read_lists(pc_plan_scenario *scenario, const pc_document *from, pc_error *error) {
    pc_code code = PC_OK;
    for (pc_choice c = 0; c < PC_CHOICES && !code; c++) {
        if (pc_choice_node(from, c))
            code = read_list(scenario, from, c, error);
        else if (is_replaced(scenario, from, c))
            drop_list(&scenario->list[c]);
    }
    return code;
}

/* ---- single values ---- */

static pc_code read_most_cost(const char *text, pc_plan_request *request, pc_error *cause) {
    pc_code code = pc_parse_number(text, &request->most_cost, cause);
    if (!code && request->most_cost <= 0)
        return pc_error_set(cause, PC_ERROR_INPUT, "%.40s: is zero; expected what a million tokens may cost", text);
    return code;
}

static pc_code read_most_iteration(const char *text, pc_plan_request *request, pc_error *cause) {
    pc_time time = 0;
    pc_code code = pc_parse_time(text, &time, cause);
    if (!code && time == 0)
        return pc_error_set(cause, PC_ERROR_INPUT, "%.40s: is zero; expected what an iteration may take", text);
    if (!code) request->most_iteration_s = pc_time_to_seconds(time);
    return code;
}

static pc_code read_top(const char *text, pc_plan_request *request, pc_error *cause) {
    int64_t whole = 0;
    pc_code code = pc_parse_integer(text, 1, TOP_MAX, &whole, cause);
    if (!code) request->top = (int)whole;
    return code;
}

static pc_code read_deadline(const char *text, double *deadline_s, pc_error *cause) {
    pc_code code = pc_parse_duration(text, deadline_s, cause);
    if (!code && *deadline_s <= 0)
        return pc_error_set(cause, PC_ERROR_INPUT, "%.40s: is zero; expected what the training may take", text);
    return code;
}

static pc_code read_batch_per(const char *text, bool *follows_dp, pc_error *cause) {
    int64_t word = 0;
    pc_code code = pc_word_parse("all|replica", text, &word, cause);
    if (!code) *follows_dp = word == 1;
    return code;
}

static pc_code read_text(const char *text, pc_plan_text which, pc_plan_scenario *scenario, pc_error *cause) {
    switch (which) {
    case PC_PLAN_TEXT_MOST_COST:
        return read_most_cost(text, &scenario->request, cause);
    case PC_PLAN_TEXT_TOP:
        return read_top(text, &scenario->request, cause);
    case PC_PLAN_TEXT_DEADLINE:
        return read_deadline(text, &scenario->goal.deadline_s, cause);
    case PC_PLAN_TEXT_BATCH_PER:
        return read_batch_per(text, &scenario->batch_follows_dp, cause);
    case PC_PLAN_TEXT_BUDGET:
        pc_money_currency(text, scenario->budget_currency);
        return pc_parse_money(text, &scenario->goal.budget, cause);
    default:
        return read_most_iteration(text, &scenario->request, cause);
    }
}

static pc_code read_texts(pc_plan_scenario *scenario, const pc_document *from, pc_error *error) {
    const pc_node *plan = pc_node_find(from->tree.nodes, "plan");
    pc_code code = PC_OK;
    for (pc_plan_text t = 0; t < PC_PLAN_TEXTS && !code; t++) {
        const pc_node *node = pc_node_find(plan, pc_plan_text_names[t]);
        if (node) code = pc_node_blame(&from->tree, node, read_text(node->text, t, scenario, error), error);
    }
    return code;
}

static void fill_request(pc_plan_scenario *scenario) {
    const pc_choice_list *list = &scenario->list[PC_CHOICE_OBJECTIVE];
    scenario->request.objective_count = list->count > 0 ? list->count : 1;
    for (int i = 0; i < list->count; i++) scenario->request.objectives[i] = (pc_plan_objective)list->values[i].whole;
    if (scenario->request.top == 0 && scenario->request.objective_count == 1) scenario->request.top = 10;
}

/* ---- the sweep and the setting ---- */

static pc_code read_offload(pc_value *value, pc_error *cause) {
    int32_t kinds;
    pc_code code = pc_offload_parse(value->text, &kinds, cause);
    if (!code) value->whole = kinds;
    return code;
}

/* Layers, or recomputation, listed part by part have no place in a plan, which changes the parts. */
static pc_code convert(pc_choice choice, pc_value *value, pc_error *cause) {
    int count;
    pc_recomputation one = {.kind = PC_RECOMPUTE_NONE};
    if (choice == PC_CHOICE_LAYOUT && read_layout(value->text, &value->whole, NULL))
        return pc_error_set(cause, PC_ERROR_INPUT,
                            "no word for a layout; expected even, ends, own, balanced, balanced-memory or auto, for a "
                            "plan chooses the parts");
    if (choice == PC_CHOICE_SCHEDULE) return check_named(*value, cause);
    if (choice == PC_CHOICE_OFFLOAD) return read_offload(value, cause);
    if (choice != PC_CHOICE_RECOMPUTE) return PC_OK;
    pc_recompute_list(value->text, NULL, &count);
    if (count != 1)
        return pc_error_set(cause, PC_ERROR_INPUT,
                            "a word for every part; expected none, selective or full, for a plan chooses the parts");
    pc_recompute_list(value->text, &one, &count);
    value->whole = pc_recomputation_code(one);
    return PC_OK;
}

static pc_code take_sweep(pc_plan_scenario *scenario, pc_choice choice, pc_error *error) {
    const pc_sweep_list *sweep = &scenario->loaded->sweep[pc_choice_rule_of(choice).dimension];
    pc_choice_list *list = &scenario->list[choice];
    pc_error cause;
    *list = (pc_choice_list){.origin = PC_CHOICE_LISTED, .document = sweep->document, .is_of_sweep = true};
    for (int64_t i = 0; i < sweep->count; i++) {
        pc_value value = sweep->values[i];
        pc_code code = convert(choice, &value, &cause);
        if (!code) code = push(list, value, &cause);
        if (code == PC_ERROR_NO_MEMORY) return pc_error_no_memory(error);
        if (code) return pc_choice_pass_on(scenario, choice, (int)i, &cause, error);
    }
    return PC_OK;
}

static pc_code take_setting(pc_plan_scenario *scenario, pc_choice choice, pc_key key, pc_error *error) {
    pc_choice_list *list = &scenario->list[choice];
    pc_value value = scenario->given.value[key];
    pc_error fault;
    char own[PC_RECOMPUTATION_SIZE];
    pc_code code = PC_OK;
    if (choice == PC_CHOICE_RECOMPUTE) code = pc_recompute_of_setting(&scenario->given, own, &value.text, &fault);
    if (!code) code = convert(choice, &value, &fault);
    if (!code) code = push(list, value, &fault);
    list->origin = PC_CHOICE_FIXED;
    if (code == PC_ERROR_NO_MEMORY) return pc_error_no_memory(error);
    if (!code) return PC_OK;
    pc_error_set_key(&fault, pc_key_path(key));
    return pc_plan_refuse_setting(scenario, &fault, error);
}

/* A layout of `auto` is one that is not given. */
static bool is_given(const pc_plan_scenario *scenario, pc_key key) {
    bool is_auto =
        key == PC_KEY_LAYOUT && scenario->given.given[key] && strcmp(scenario->given.value[key].text, "auto") == 0;
    return key != PC_KEYS && !is_auto && pc_setting_has(&scenario->given, key);
}

static pc_code take_others(pc_plan_scenario *scenario, pc_error *error) {
    pc_code code = PC_OK;
    for (pc_choice c = 0; c < PC_CHOICES && !code; c++) {
        const pc_choice_rule rule = pc_choice_rule_of(c);
        if (scenario->list[c].count > 0) continue;
        bool is_devices = rule.key == PC_KEY_PP && pc_setting_has(&scenario->given, PC_KEY_DEVICES);
        if (rule.dimension != PC_DIMENSIONS && scenario->loaded->sweep[rule.dimension].count > 0)
            code = take_sweep(scenario, c, error);
        else if (is_devices)
            code = take_setting(scenario, c, PC_KEY_DEVICES, error);
        else if (is_given(scenario, rule.key))
            code = take_setting(scenario, c, rule.key, error);
    }
    return code;
}

/* A sweep of what a plan does not choose would be several plans. */
static pc_code check_sweep(const pc_plan_scenario *scenario, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    for (pc_dimension d = 0; d < PC_DIMENSIONS; d++) {
        const pc_dimension_rule *rule = pc_dimension_rule_of(d);
        const pc_sweep_list *sweep = &scenario->loaded->sweep[d];
        if (sweep->count == 0 || pc_plan_scenario_list_of(pc_key_path(rule->key))) continue;
        snprintf(path, sizeof path, "sweep.%s", rule->name);
        return pc_tree_refuse(&sweep->document->tree, path, error,
                              "no choice of a plan; expected one value, in the setting");
    }
    return PC_OK;
}

/* Where two prices name two of them, or one names none, which is less is nobody's to say; -1 if all are alike. */
static int find_other_currency(const pc_node *prices, char one[PC_CURRENCY_TEXT], char other[PC_CURRENCY_TEXT]) {
    int index = 0;
    one[0] = '\0';
    for (const pc_node *price = pc_node_first(prices); price < pc_node_end(prices); price++, index++) {
        pc_price_currency(price->text, other);
        if (index > 0 && strcmp(one, other) != 0) return index;
        memcpy(one, other, PC_CURRENCY_TEXT);
    }
    return -1;
}

static pc_code check_prices(const pc_plan_scenario *scenario, pc_error *error) {
    const pc_choice_list *prices = &scenario->list[PC_CHOICE_PRICE];
    char one[PC_CURRENCY_TEXT], other[PC_CURRENCY_TEXT];
    int machines = scenario->list[PC_CHOICE_MACHINE].count;
    int at = prices->origin == PC_CHOICE_LISTED
                 ? find_other_currency(pc_choice_node(prices->document, PC_CHOICE_PRICE), one, other)
                 : -1;
    if (at >= 0)
        return pc_choice_refuse(scenario, PC_CHOICE_PRICE, at, error,
                                "is in %s, and one before in %s; expected one currency", *other ? other : "no currency",
                                *one ? one : "none");
    if (prices->count <= 1 || prices->count == machines) return PC_OK;
    return pc_choice_refuse(scenario, PC_CHOICE_PRICE, -1, error,
                            "%d prices for %d machines; expected one for all, or one each", prices->count, machines);
}

static pc_code refuse_lack(const pc_plan_scenario *scenario, const char *key, const char *expected, pc_error *error) {
    pc_error fault;
    pc_error_blame(&fault, key, "missing; expected %s", expected);
    return pc_plan_refuse_setting(scenario, &fault, error);
}

static pc_code check_budget_currency(const pc_plan_scenario *scenario, pc_error *error) {
    const pc_choice_list *prices = &scenario->list[PC_CHOICE_PRICE];
    char of_price[PC_CURRENCY_TEXT] = "";
    const pc_node *node = prices->origin == PC_CHOICE_LISTED ? pc_choice_node(prices->document, PC_CHOICE_PRICE) : NULL;
    if (node) pc_price_currency(pc_node_first(node)->text, of_price);
    if (!of_price[0] || !scenario->budget_currency[0] || strcmp(of_price, scenario->budget_currency) == 0) return PC_OK;
    return pc_choice_refuse(scenario, PC_CHOICE_PRICE, 0, error,
                            "is in %s, and the budget in %s; expected one currency", of_price,
                            scenario->budget_currency);
}

/* A deadline is of the whole training, and a budget in what GPUs cost. */
static pc_code check_goal(const pc_plan_scenario *scenario, pc_error *error) {
    const pc_plan_goal *goal = &scenario->goal;
    bool has_goal = goal->deadline_s > 0.0 || goal->budget > 0.0;
    if (has_goal && !pc_setting_has(&scenario->given, PC_KEY_TOKENS))
        return refuse_lack(scenario, "tokens", "those of the training beside a deadline or a budget", error);
    if (goal->budget > 0.0 && scenario->list[PC_CHOICE_PRICE].count == 0)
        return refuse_lack(scenario, "price", "that of a GPU-hour beside a budget", error);
    return goal->budget > 0.0 ? check_budget_currency(scenario, error) : PC_OK;
}

pc_code pc_plan_section_read(pc_plan_scenario *scenario, pc_error *error) {
    pc_scenario *loaded = scenario->loaded;
    pc_code code = PC_OK;
    if (loaded->case_count > 1)
        return pc_tree_refuse(pc_loaded_file(loaded), "cases", error,
                              "%" PRId64 " cases; expected one at most, for a plan is for one setting",
                              loaded->case_count);
    scenario->given = loaded->documents[0].setting;
    pc_setting_merge(&scenario->given, &loaded->cases[0].setting);
    for (int i = 0; i < loaded->document_count && !code; i++) {
        if (i > 0) pc_setting_merge(&scenario->given, &loaded->documents[i].setting);
        code = read_lists(scenario, &loaded->documents[i], error);
        if (!code) code = read_texts(scenario, &loaded->documents[i], error);
    }
    if (!code) code = check_sweep(scenario, error);
    if (!code) code = take_others(scenario, error);
    if (!code) code = check_prices(scenario, error);
    if (!code) code = check_goal(scenario, error);
    if (!code) fill_request(scenario);
    return code;
}
