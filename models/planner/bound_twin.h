/* bound_twin.h: the other outline of a point whose layers lie in one of two ways, which only a search would tell apart:
 * BALANCED_MEMORY of a named schedule that searches (outline_fit.h). Bounds are the lower one of both. Private to
 * models/planner/.
 */
#ifndef PC_MODELS_PLANNER_BOUND_TWIN_H
#define PC_MODELS_PLANNER_BOUND_TWIN_H

#include "models/planner/bounder.h"

typedef struct plan_twin {
    bool is_on;             /* the outline at work has one */
    pc_iteration_spec spec; /* its spec, with layout BALANCED */
    pc_outline outline;     /* of that */
    plan_bounder bounder;   /* which has taken it up; its memo is borrowed */
} plan_twin;

/* Of the outline at work; NULL: it has none. */
const plan_twin *plan_twin_of(const plan_bounder *bounder);

/* Makes that of an outline that was taken up, if it has one; otherwise there is none. */
pc_code plan_twin_take(plan_bounder *bounder, const pc_plan_space *space, int base, const pc_outline *outline,
                       pc_error *error);
void plan_twin_drop(plan_bounder *bounder); /* there is none any more */
void plan_twin_free(plan_bounder *bounder);

/* plan_bound_spans of it; where there is none it does nothing. */
pc_code plan_twin_spans(plan_bounder *bounder, bool is_close, pc_error *error);

/* bound_time.c: plan_bound_time of an outline without regard to a twin. */
pc_code plan_bound_alone(plan_bounder *bounder, const pc_outline *outline, plan_scope scope, pc_time *bound_ps,
                         pc_error *error);

#endif
