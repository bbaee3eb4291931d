#include "models/planner/bound_twin.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

const plan_twin *plan_twin_of(const plan_bounder *bounder) {
    return bounder->twin && bounder->twin->is_on ? bounder->twin : NULL;
}

void plan_twin_drop(plan_bounder *bounder) {
    if (!bounder->twin) return;
    bounder->twin->is_on = false;
    pc_outline_free(&bounder->twin->outline);
}

void plan_twin_free(plan_bounder *bounder) {
    if (!bounder->twin) return;
    plan_twin_drop(bounder);
    bounder->twin->bounder.memo = NULL;
    plan_bounder_free(&bounder->twin->bounder);
    pc_free(bounder->twin);
    bounder->twin = NULL;
}

static void copy_spec(plan_twin *twin, const pc_outline *outline) {
    twin->spec = *outline->spec;
    twin->spec.cut.layout = PC_CUT_BALANCED;
}

/* NOLINTNEXTLINE(misc-no-recursion): a twin's outline is BALANCED and has none */
pc_code plan_twin_take(plan_bounder *bounder, const pc_plan_space *space, int base, const pc_outline *outline,
                       pc_error *error) {
    plan_twin_drop(bounder);
    if (!outline->may_be_balanced) return PC_OK;
    if (!bounder->twin) bounder->twin = pc_alloc(1, sizeof *bounder->twin);
    plan_twin *twin = bounder->twin;
    if (!twin) return pc_error_no_memory(error);
    copy_spec(twin, outline);
    twin->bounder.memo = bounder->memo;
    twin->bounder.memo_base = bounder->memo_base;
    pc_code code = plan_bounder_outline(&twin->bounder, space, base, &twin->spec, &twin->outline, error);
    twin->is_on = !code;
    return code;
}

pc_code plan_twin_spans(plan_bounder *bounder, bool is_close, pc_error *error) {
    plan_twin *twin = bounder->twin;
    return plan_twin_of(bounder) ? plan_bound_spans(&twin->bounder, &twin->outline, is_close, error) : PC_OK;
}

static pc_code bound_twin(plan_twin *twin, const pc_outline *outline, plan_scope scope, pc_time *bound_ps,
                          pc_error *error) {
    pc_time other_ps;
    copy_spec(twin, outline);
    pc_code code = plan_bound_alone(&twin->bounder, &twin->outline, scope, &other_ps, error);
    if (!code) *bound_ps = pc_min(*bound_ps, other_ps);
    return code;
}

pc_code plan_bound_time(plan_bounder *bounder, const pc_outline *outline, plan_scope scope, pc_time *bound_ps,
                        pc_error *error) {
    pc_code code = plan_bound_alone(bounder, outline, scope, bound_ps, error);
    return code || !plan_twin_of(bounder) ? code : bound_twin(bounder->twin, outline, scope, bound_ps, error);
}
