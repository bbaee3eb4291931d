#include "models/training/iteration.h"
#include "models/training/pass_costs.h"

#include <stddef.h>

/* What is counted, and what of that is masked. */
typedef struct counted {
    double model, masked_model, hardware, masked_hardware;
} counted;

/* Of s x s scores a causal mask leaves s (s + 1) / 2; with a window of w, of s x w it masks w (w - 1) / 2. Of a block
 * below the diagonal half of what counts is masked. */
static double masked_part(const pc_operation *operation) {
    bool is_masked = operation->kind == PC_OPERATION_ATTENTION && operation->is_causal;
    int64_t keys = operation->window > 0 ? operation->window : operation->n;
    if (operation->kind == PC_OPERATION_ATTENTION && operation->is_below) return 0.5;
    return is_masked ? ((double)keys - 1) / (2 * (double)operation->n) : 0;
}

static pc_code add_pass(const pc_outline *outline, const pc_part *part, pc_pass_kind kind, counted *sum,
                        pc_error *error) {
    pc_operations operations;
    bool has_r = outline->spec->generator->recomputes;
    pc_code code = pc_pass_operations(&outline->spec->model, &outline->cut, part, kind, has_r, &operations, error);
    for (int i = 0; !code && i < operations.count; i++) {
        const pc_operation *x = &operations.list[i];
        double model = (double)x->repeat * (double)x->model_flops, hardware = (double)x->repeat * (double)x->flops;
        sum->model += model;
        sum->hardware += hardware;
        sum->masked_model += model * masked_part(x);
        sum->masked_hardware += hardware * masked_part(x);
    }
    return code;
}

static pc_code add_kinds(const pc_outline *outline, const pc_part *part, counted *sum, pc_error *error) {
    pc_code code = PC_OK;
    for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++)
        if (pc_outline_has_kind(outline->spec->generator, (pc_pass_kind)kind))
            code = add_pass(outline, part, (pc_pass_kind)kind, sum, error);
    return code;
}

/* Every part once, and every slice of it: all see as many microbatches. */
static pc_code add_parts(const pc_outline *outline, counted *sum, pc_error *error) {
    pc_code code = PC_OK;
    for (int number = 0; !code && number < outline->parts; number++) {
        pc_part part = pc_cut_part(&outline->spec->model, &outline->cut, outline->parts, number);
        for (; !code && part.slice < pc_cut_slices(&outline->cut); part.slice++)
            code = add_kinds(outline, &part, sum, error);
    }
    return code;
}

pc_code pc_iteration_masked_flops(const pc_iteration_spec *spec, pc_masked_flops *masked, pc_error *error) {
    pc_outline outline;
    counted sum = {0};
    pc_code code = pc_outline_check(spec, error);
    if (!code) code = pc_outline_make(spec, NULL, &outline, error);
    if (code) return code;
    code = add_parts(&outline, &sum, error);
    pc_outline_free(&outline);
    if (code) return code;
    masked->of_model = sum.model > 0 ? sum.masked_model / sum.model : 0;
    masked->of_hardware = sum.hardware > 0 ? sum.masked_hardware / sum.hardware : 0;
    return PC_OK;
}
