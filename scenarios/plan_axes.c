#include "scenarios/plan_axes.h"

#include "models/workload/layout.h"
#include "scenarios/plan_section.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The list of a space that an axis is; NULL: it is no list of numbers. */
static pc_plan_list *list_of(pc_plan_space *space, int choice) {
    switch (choice) {
    case PC_CHOICE_GPUS:
        return &space->gpus;
    case PC_CHOICE_GLOBAL_BATCH:
        return &space->global_batch;
    case PC_CHOICE_TP:
        return &space->tp;
    case PC_CHOICE_PP:
        return &space->pp;
    case PC_CHOICE_DP:
        return &space->dp;
    case PC_CHOICE_CP:
        return &space->cp;
    case PC_CHOICE_CP_COMM_TYPE:
        return &space->cp_comm;
    case PC_CHOICE_EP:
        return &space->ep;
    case PC_CHOICE_ETP:
        return &space->etp;
    case PC_CHOICE_CHUNKS:
        return &space->chunks;
    case PC_CHOICE_MICROBATCH_SIZE:
        return &space->microbatch_size;
    case PC_CHOICE_LAYOUT:
        return &space->layouts;
    case PC_CHOICE_RECOMPUTE:
        return &space->recompute;
    case PC_CHOICE_OFFLOAD:
        return &space->offload;
    case PC_CHOICE_ZERO:
        return &space->zero;
    default:
        return NULL;
    }
}

static bool is_axis(int choice) {
    pc_plan_space space;
    return list_of(&space, choice) || choice == PC_CHOICE_MACHINE || choice == PC_CHOICE_PRECISION ||
           choice == PC_CHOICE_SCHEDULE;
}

static int find_choice(const char *name) {
    for (int c = 0; c < PC_CHOICES; c++)
        if (is_axis(c) && strcmp(pc_choice_rule_of((pc_choice)c).name, name) == 0) return c;
    return PC_CHOICES;
}

static pc_code refuse_name(const char *name, pc_error *error) {
    char names[256] = "";
    for (int c = 0, used = 0; c < PC_CHOICES; c++)
        if (is_axis(c))
            used += snprintf(names + used, sizeof names - (size_t)used, "%s%s", used ? ", " : "",
                             pc_choice_rule_of((pc_choice)c).name);
    return pc_error_set(error, PC_ERROR_INPUT, "%.40s: no such axis; expected one or two of %s", name, names);
}

pc_plan_axis pc_plan_axis_of(const pc_plan_scenario *scenario, const char *name) {
    int choice = find_choice(name);
    assert(choice < PC_CHOICES);
    int count = scenario->list[choice].count;
    return (pc_plan_axis){choice, pc_choice_rule_of((pc_choice)choice).name, count > 0 ? count : 1};
}

/* Bases are machines, each with its precisions, so that those of one precision do not lie together. */
static bool can_narrow(const pc_plan_scenario *scenario, int choice, const pc_plan_axis *before, int count) {
    bool is_alone = scenario->list[PC_CHOICE_MACHINE].count <= 1;
    return choice != PC_CHOICE_PRECISION || is_alone || (count > 0 && before[0].choice == PC_CHOICE_MACHINE);
}

static pc_code take_axis(const pc_plan_scenario *scenario, const char *name, pc_plan_axis axes[PC_PLAN_AXES_MOST],
                         int *count, pc_error *error) {
    int choice = find_choice(name);
    if (choice == PC_CHOICES) return refuse_name(name, error);
    if (*count == PC_PLAN_AXES_MOST)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: a third axis; expected two at most", name);
    if (*count > 0 && axes[0].choice == choice)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: stands twice; expected two axes that differ", name);
    if (choice == PC_CHOICE_DP && scenario->list[choice].count == 0)
        return pc_error_set(error, PC_ERROR_INPUT, "dp: follows from the other choices; expected a list of plan.dp");
    if (!can_narrow(scenario, choice, axes, *count))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "precision: of several machines; expected machine,precision, or one machine");
    axes[(*count)++] = pc_plan_axis_of(scenario, name);
    return PC_OK;
}

pc_code pc_plan_axes_parse(const pc_plan_scenario *scenario, const char *text, pc_plan_axis axes[PC_PLAN_AXES_MOST],
                           int *count, pc_error *error) {
    pc_code code = PC_OK;
    *count = 0;
    for (const char *at = text; !code;) {
        char name[PC_PLAN_VALUE_SIZE];
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), at);
        code = take_axis(scenario, name, axes, count, error);
        if (at[length] == '\0') break;
        at += length + 1;
    }
    return code;
}

static const char *base_text(const pc_plan_scenario *scenario, int choice, int index) {
    const pc_choice_list *list = &scenario->list[choice];
    const pc_run_spec *first = &scenario->runs[0];
    if (list->count > 0) return list->values[index].reference->name;
    if (choice == PC_CHOICE_MACHINE) return first->iteration.machine.name;
    return first->iteration.model.low.name[0] ? first->iteration.model.low.name : "default";
}

void pc_plan_axis_value(const pc_plan_scenario *scenario, const pc_plan_axis *axis, int index,
                        char text[PC_PLAN_VALUE_SIZE]) {
    const pc_choice_list *list = &scenario->list[axis->choice];
    int64_t whole = index < list->count ? list->values[index].whole : 1;
    if (axis->choice == PC_CHOICE_MACHINE || axis->choice == PC_CHOICE_PRECISION)
        snprintf(text, PC_PLAN_VALUE_SIZE, "%.60s", base_text(scenario, axis->choice, index));
    else if (axis->choice == PC_CHOICE_SCHEDULE)
        snprintf(text, PC_PLAN_VALUE_SIZE, "%s", list->values[index].generator->name);
    else if (axis->choice == PC_CHOICE_CP_COMM_TYPE)
        snprintf(text, PC_PLAN_VALUE_SIZE, "%s",
                 pc_cp_comm_name(list->count > 0 ? (pc_cp_comm)whole : scenario->runs[0].iteration.cut.cp_comm));
    else if (axis->choice == PC_CHOICE_RECOMPUTE)
        snprintf(text, PC_PLAN_VALUE_SIZE, "%s", scenario->recompute_names[index]);
    else if (axis->choice == PC_CHOICE_OFFLOAD)
        snprintf(text, PC_PLAN_VALUE_SIZE, "%s", scenario->offload_names[index]);
    else if (axis->choice == PC_CHOICE_LAYOUT)
        snprintf(text, PC_PLAN_VALUE_SIZE, "%s",
                 whole == PC_PLAN_LAYOUT_AUTO ? "auto" : pc_layout_name((pc_cut_layout)whole));
    else
        snprintf(text, PC_PLAN_VALUE_SIZE, "%" PRId64, whole);
}

void pc_plan_axis_narrow(const pc_plan_scenario *scenario, const pc_plan_axis *axis, int index, pc_plan_space *space) {
    int precisions = scenario->list[PC_CHOICE_PRECISION].count > 0 ? scenario->list[PC_CHOICE_PRECISION].count : 1;
    pc_plan_list *list = list_of(space, axis->choice);
    if (axis->choice == PC_CHOICE_MACHINE) {
        space->bases += (ptrdiff_t)index * precisions;
        space->base_count = precisions;
    } else if (axis->choice == PC_CHOICE_PRECISION) {
        space->bases += index;
        space->base_count = 1;
    } else if (axis->choice == PC_CHOICE_SCHEDULE) {
        space->generators += index;
        space->generator_count = 1;
    } else if (list->count > 0) { /* an empty one has one value, the bases' */
        list->values += index;
        list->count = 1;
    }
}
