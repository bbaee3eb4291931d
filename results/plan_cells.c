#include "results/plan_cells.h"

#include "engine/alloc.h"
#include "results/plan_private.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *pc_plan_part_name(pc_plan_part part) {
    static const char *const names[PC_PLAN_PARTS] = {
        [PC_PLAN_PART_PLANS] = "plan", [PC_PLAN_PART_EACH] = "each",
        [PC_PLAN_PART_MAP] = "map",    [PC_PLAN_PART_SENSITIVITY] = "sensitivity",
        [PC_PLAN_PART_MIX] = "mix",    [PC_PLAN_PART_GOAL] = "goal"};
    return names[part];
}

void pc_plan_cells_free(pc_plan_cells *cells) {
    for (int i = 0; i < cells->axis_count; i++) pc_free(cells->value[i]);
    pc_free(cells->rows);
    *cells = (pc_plan_cells){.count = 0};
}

pc_plan_report pc_plan_report_of(const pc_plan_report *report, const pc_plan_cells *part) {
    pc_plan_report made = *report;
    made.best = report->rows;
    made.rows = part->rows;
    made.count = part->count;
    made.parts = NULL;
    made.part_count = 0;
    return made;
}

/* In the order of the rules, then memory and limits. */
const char pc_plan_letters[] = "GILEBSOHZMT";
_Static_assert(sizeof pc_plan_letters == PC_PLAN_RULES + 3, "a letter for each rule, for memory and for limits");

char pc_plan_cell_letter(const pc_plan_row *row) {
    if (!row->lacks_plan) return ' ';
    if (row->row.status == PC_RUN_OUT_OF_MEMORY) return 'M';
    if (row->rule >= PC_PLAN_RULES) return 'T';
    return pc_plan_letters[row->rule];
}

const char *pc_plan_letter_words(char letter) {
    static const char *const words[] = {"does not divide the GPUs",
                                        "nothing to interleave",
                                        "layers do not divide",
                                        "experts do not divide",
                                        "the batch does not divide",
                                        "the schedule cannot have it",
                                        "offload has no place",
                                        "heads, widths or sequence do not divide",
                                        "too few GPUs there, or a size too large",
                                        "over memory",
                                        "beyond the limits on time or cost"};
    const char *at = strchr(pc_plan_letters, letter);
    assert(at);
    return words[at - pc_plan_letters];
}

bool pc_plan_row_meets(const pc_plan_goal *goal, const pc_plan_row *row) {
    bool is_in_time = !(goal->deadline_s > 0.0) || row->row.training_days * 86400 <= goal->deadline_s;
    bool is_paid = !(goal->budget > 0.0) || row->row.training_cost <= goal->budget;
    return !row->lacks_plan && is_in_time && is_paid;
}

int64_t pc_plan_cells_least(const pc_plan_cells *cells, const pc_plan_goal *goal) {
    int64_t least = -1;
    for (int64_t i = 0; i < cells->count; i++) {
        const pc_run_row *row = &cells->rows[i].row, *best = least < 0 ? NULL : &cells->rows[least].row;
        if (!pc_plan_row_meets(goal, &cells->rows[i])) continue;
        bool is_less = !best || row->gpus < best->gpus;
        if (is_less || (row->gpus == best->gpus && row->training_days < best->training_days)) least = i;
    }
    return least;
}

static double value_of(pc_plan_objective objective, const pc_plan_row *row) {
    double parts[PC_PLAN_KINDS], whole = 0.0;
    const char *names[PC_PLAN_KINDS];
    pc_plan_parts(objective, row, parts, names);
    for (int k = 0; k < PC_PLAN_KINDS; k++) whole += parts[k];
    return whole;
}

double pc_plan_row_change(pc_plan_objective objective, const pc_plan_row *best, const pc_plan_row *row) {
    if (row->lacks_plan || row->row.status != PC_RUN_OK) return NAN;
    return value_of(objective, row) / value_of(objective, best) - 1.0;
}
