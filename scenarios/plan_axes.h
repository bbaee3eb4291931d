/* plan_axes.h: parts of what a plan chooses from: one value of a list in the place of all. */
#ifndef PC_SCENARIOS_PLAN_AXES_H
#define PC_SCENARIOS_PLAN_AXES_H

#include "engine/error.h"
#include "models/planner/planner.h"
#include "scenarios/plan_scenario.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_PLAN_AXES_MOST = 2, PC_PLAN_VALUE_SIZE = 64 };

/* A list of a plan: `choice` is its number. */
typedef struct pc_plan_axis {
    int choice;
    const char *name; /* as `plan` calls it; static */
    int count;        /* values, at least 1 */
} pc_plan_axis;

/* Up to PC_PLAN_AXES_MOST names with commas between: "tp,pp". PC_ERROR_INPUT if one is no list of numbers or names that
 * a part can be made of, stands twice, or is `precision` beside several machines that are not the axis before it. */
pc_code pc_plan_axes_parse(const pc_plan_scenario *scenario, const char *text, pc_plan_axis axes[PC_PLAN_AXES_MOST],
                           int *count, pc_error *error);

/* The axis of this name, which is one. */
pc_plan_axis pc_plan_axis_of(const pc_plan_scenario *scenario, const char *name);

/* Value `index` as text: "8", "dgx-h100". */
void pc_plan_axis_value(const pc_plan_scenario *scenario, const pc_plan_axis *axis, int index,
                        char text[PC_PLAN_VALUE_SIZE]);

/* Leaves that value alone of the space's list; the space borrows what it borrowed. Its bases may be a part of those
 * that there were: choices count from their first one. */
void pc_plan_axis_narrow(const pc_plan_scenario *scenario, const pc_plan_axis *axis, int index, pc_plan_space *space);

#ifdef __cplusplus
}
#endif
#endif
