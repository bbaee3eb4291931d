/* Multiplies cases and sweep out into runs. */
#include "scenarios/loaded.h"

#include "scenarios/cluster.h"
#include "scenarios/expand.h"

#include <stdio.h>
#include <string.h>

enum { RUNS_MAX = 10000000 };

/* Where a run stands in the order of runs. */
typedef struct pc_coordinates {
    int64_t case_index;
    int64_t entry[PC_DIMENSIONS]; /* into the sweep's list */
} pc_coordinates;

static int64_t list_length(const pc_sweep_list *list) {
    return list->count ? list->count : 1;
}

static pc_coordinates locate_run(const pc_scenario *scenario, int64_t index) {
    pc_coordinates at;
    for (int i = PC_DIMENSIONS - 1; i >= 0; i--) {
        pc_dimension d = scenario->loops[i];
        int64_t length = list_length(&scenario->sweep[d]);
        at.entry[d] = index % length;
        index /= length;
    }
    at.case_index = index;
    return at;
}

/* What some values of a swept word read, and this run's does not, is left out of it: `cp_a2a` is of a2a+p2p alone. If
 * none of them reads it, it stays, and is refused. */
static void drop_unread(const pc_scenario *scenario, pc_setting *merged) {
    const pc_sweep_list *words = &scenario->sweep[PC_DIMENSION_CP_COMM_TYPE];
    bool is_read_by_some = false;
    for (int64_t i = 0; i < words->count; i++)
        is_read_by_some = is_read_by_some || words->values[i].whole == PC_CP_A2A_P2P;
    if (is_read_by_some && merged->value[PC_KEY_CP_COMM_TYPE].whole != PC_CP_A2A_P2P)
        merged->given[PC_KEY_CP_A2A] = false;
}

/* The file's setting, the case, the sets, the sweep: the later wins. */
static pc_setting merge_run(const pc_scenario *scenario, const pc_coordinates *at) {
    pc_setting merged = scenario->documents[0].setting;
    pc_setting_merge(&merged, &scenario->cases[at->case_index].setting);
    for (int i = 1; i < scenario->document_count; i++) pc_setting_merge(&merged, &scenario->documents[i].setting);
    for (int d = 0; d < PC_DIMENSIONS; d++) {
        if (scenario->sweep[d].count == 0) continue;
        pc_setting_set(&merged, pc_dimension_key(d), scenario->sweep[d].values[at->entry[d]]);
    }
    pc_setting_complete(&merged);
    drop_unread(scenario, &merged);
    return merged;
}

/* The dimension of the sweep that gives what `path` names; PC_DIMENSIONS where none does. */
static pc_dimension find_in_sweep(const pc_scenario *scenario, const char *path) {
    for (pc_dimension d = 0; d < PC_DIMENSIONS; d++)
        if (scenario->sweep[d].count && strcmp(pc_key_path(pc_dimension_key(d)), path) == 0) return d;
    return PC_DIMENSIONS;
}

/* The last set that gives what `path` names. */
static const pc_document *find_in_sets(const pc_scenario *scenario, const char *path) {
    for (int i = scenario->document_count - 1; i > 0; i--)
        if (pc_setting_gives(&scenario->documents[i].setting, path)) return &scenario->documents[i];
    return NULL;
}

/* Says what is wrong with a merged setting where the value to blame was written; what was written nowhere is missing
 * from the case. */
static pc_code refuse_run(const pc_scenario *scenario, int64_t case_index, const pc_error *fault, pc_error *error) {
    const pc_case *of = &scenario->cases[case_index];
    const char *key = pc_error_part_of(fault, PC_ERROR_PART_KEY);
    pc_dimension swept = find_in_sweep(scenario, key);
    const pc_document *file = &scenario->documents[0], *set = find_in_sets(scenario, key);
    const pc_document *from = swept != PC_DIMENSIONS ? scenario->sweep[swept].document : set ? set : file;
    bool inherited = !pc_setting_gives(&of->setting, key) && pc_setting_gives(&file->setting, key);
    const char *parent = set || inherited ? "setting" : of->path;
    char path[2 * PC_KEY_PATH_SIZE];
    if (swept != PC_DIMENSIONS)
        snprintf(path, sizeof path, "sweep.%s", pc_dimension_rule_of(swept)->name);
    else
        snprintf(path, sizeof path, "%s.%s", parent, key);
    return pc_tree_pass_on(&from->tree, path, fault, error);
}

/* The largest number of microbatches stands for all of them: nothing that is checked gets worse with fewer. */
static int64_t find_most_microbatches(const pc_scenario *scenario) {
    const pc_sweep_list *list = &scenario->sweep[PC_DIMENSION_MICROBATCHES];
    int64_t most = 0;
    for (int64_t i = 1; i < list->count; i++)
        if (list->values[i].whole > list->values[most].whole) most = i;
    return most;
}

/* Whether another value can make numbers contradict each other, or mend that. */
static bool is_number_of_a_rule(pc_dimension dimension) {
    return dimension != PC_DIMENSION_SCHEDULE && dimension != PC_DIMENSION_MAKING && dimension != PC_DIMENSION_GOAL &&
           dimension != PC_DIMENSION_MEMORY && dimension != PC_DIMENSION_ATTENTION;
}

/* Numbers of a sweep may contradict each other in some of the runs, which then have no result. */
static bool is_swept(const pc_scenario *scenario) {
    for (int d = 0; d < PC_DIMENSIONS; d++)
        if (is_number_of_a_rule(d) && scenario->sweep[d].count > 1) return true;
    return false;
}

static pc_code check_run(const pc_scenario *scenario, const pc_coordinates *at, pc_error *error) {
    pc_setting merged = merge_run(scenario, at);
    pc_error fault;
    if (!pc_setting_check(&merged, &fault)) return PC_OK;
    if (fault.is_rule && is_swept(scenario)) return PC_OK;
    return refuse_run(scenario, at->case_index, &fault, error);
}

static pc_code check_runs(const pc_scenario *scenario, pc_error *error) {
    int64_t most = find_most_microbatches(scenario),
            microbatches = list_length(&scenario->sweep[PC_DIMENSION_MICROBATCHES]);
    int64_t schedules = list_length(&scenario->sweep[PC_DIMENSION_SCHEDULE]);
    pc_code code = PC_OK;
    for (int64_t i = 0; i < scenario->run_count / microbatches && !code; i++) {
        int64_t run = (i / schedules * microbatches + most) * schedules + i % schedules;
        pc_coordinates at = locate_run(scenario, run);
        code = check_run(scenario, &at, error);
    }
    return code;
}

static pc_code count_runs(pc_scenario *scenario, pc_error *error) {
    int64_t count = scenario->case_count;
    for (int d = 0; d < PC_DIMENSIONS && count <= RUNS_MAX; d++) count *= list_length(&scenario->sweep[d]);
    if (count > RUNS_MAX)
        return pc_tree_refuse(pc_loaded_file(scenario), "sweep", error,
                              "multiplies out to more than %d runs; expected at most that many", RUNS_MAX);
    scenario->run_count = count;
    return PC_OK;
}

/* "1.5B-m24.zb-h1.m64": case, schedule, and what is swept. */
static void write_run_name(const pc_scenario *scenario, const pc_case *of, const pc_setting *merged, char *name) {
    char text[PC_DIMENSION_TEXT];
    int used = snprintf(name, PC_LABEL_SIZE, "%s.%s", of->name, merged->value[PC_KEY_SCHEDULE].generator->name);
    for (int i = 0; i < scenario->name_count && used < PC_LABEL_SIZE; i++) {
        pc_dimension d = scenario->names[i];
        if (scenario->sweep[d].count == 0) continue;
        const pc_dimension_rule *rule = pc_dimension_rule_of(d);
        pc_dimension_write(d, merged->value[rule->key], text);
        used += snprintf(name + used, (size_t)(PC_LABEL_SIZE - used), ".%s%s", rule->letters, text);
    }
}

/* The longest of a list's values as names of runs have them; `least` where it has none. */
static size_t longest_value(const pc_sweep_list *list, pc_dimension dimension, size_t least) {
    for (int64_t i = 0; i < list->count; i++) {
        char text[PC_DIMENSION_TEXT];
        size_t length = pc_dimension_write(dimension, list->values[i], text);
        if (length > least) least = length;
    }
    return least;
}

/* Bytes that a run's name may have beside the case's: of the longest schedule, and of the longest of what is swept. */
static size_t suffix_room(const pc_scenario *scenario, const pc_setting *merged) {
    const char *schedule = merged->value[PC_KEY_SCHEDULE].generator->name;
    size_t room = 1 + longest_value(&scenario->sweep[PC_DIMENSION_SCHEDULE], PC_DIMENSION_SCHEDULE, strlen(schedule));
    for (int i = 0; i < scenario->name_count; i++) {
        pc_dimension d = scenario->names[i];
        const pc_sweep_list *list = &scenario->sweep[d];
        if (list->count == 0) continue;
        room += 1 + strlen(pc_dimension_rule_of(d)->letters) + longest_value(list, d, 0);
    }
    return room;
}

static pc_code check_run_names(const pc_scenario *scenario, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    for (int64_t i = 0; i < scenario->case_count; i++) {
        const pc_case *of = &scenario->cases[i];
        pc_setting merged = merge_run(scenario, &(pc_coordinates){.case_index = i});
        size_t room = suffix_room(scenario, &merged);
        if (strlen(of->name) + room < PC_LABEL_SIZE) continue;
        if (room + 1 >= PC_LABEL_SIZE)
            return pc_tree_refuse(pc_loaded_file(scenario), "sweep", error,
                                  "its values alone make names of runs too long; expected names of at most %d bytes",
                                  PC_LABEL_SIZE - 1);
        bool own = pc_node_find(pc_loaded_file(scenario)->nodes, "cases") != NULL;
        snprintf(path, sizeof path, "%s%s", own ? of->path : "scenario", own ? ".name" : "");
        return pc_tree_refuse(pc_loaded_file(scenario), path, error,
                              "%.40s...: too long for the names of its runs; expected at most %d bytes", of->name,
                              PC_LABEL_SIZE - 1 - (int)room);
    }
    return PC_OK;
}

pc_code pc_runs_check(pc_scenario *scenario, pc_error *error) {
    pc_dimensions_in_order(PC_ORDER_OF_LOOPS, scenario->loops);
    scenario->name_count = pc_dimensions_in_order(PC_ORDER_OF_NAMES, scenario->names);
    pc_code code = count_runs(scenario, error);
    if (!code) code = check_runs(scenario, error);
    if (!code) code = check_run_names(scenario, error);
    return code;
}

pc_setting pc_runs_of_model(const pc_scenario *scenario, int64_t case_index, int64_t model) {
    pc_coordinates at = {.case_index = case_index};
    at.entry[PC_DIMENSION_MODEL] = model;
    return merge_run(scenario, &at);
}

const pc_case *pc_runs_find(const pc_scenario *scenario, int64_t index, pc_setting *merged, char *name) {
    pc_coordinates at = locate_run(scenario, index);
    const pc_case *of = &scenario->cases[at.case_index];
    *merged = merge_run(scenario, &at);
    write_run_name(scenario, of, merged, name);
    return of;
}
