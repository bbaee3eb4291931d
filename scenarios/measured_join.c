/* Which configuration of a table of conditions a measured run was. */
#include "scenarios/measured.h"

#include "scenarios/measured_arguments.h"

#include <string.h>

/* What the row must say to be anybody's. */
static bool says_cut(const pc_measured *conditions, int64_t row) {
    static const pc_measured_column wanted[] = {PC_MEASURED_TP, PC_MEASURED_PP, PC_MEASURED_MBS};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (pc_measured_cell(conditions, row, wanted[i])[0] == '\0') return false;
    return true;
}

static int64_t or_one(int64_t number) {
    return number > 0 ? number : 1;
}

static bool is_same(const pc_measured_run *a, const pc_measured_run *b) {
    bool is_named = a->model[0] && a->machine[0];
    return is_named && strcmp(a->model, b->model) == 0 && strcmp(a->machine, b->machine) == 0 &&
           strcmp(a->precision, b->precision) == 0 && (a->adapters[0] != 0) == (b->adapters[0] != 0) &&
           a->tp == b->tp && a->pp == b->pp && or_one(a->cp) == or_one(b->cp) &&
           a->microbatch_size == b->microbatch_size;
}

/* Whether two rows say the same of all that is a setting. */
static bool says_the_same(const pc_measured *m, int64_t a, int64_t b) {
    for (int i = 0; i < m->column_count; i++)
        if ((pc_measured_key_of_argument(m->column[i]) || pc_measured_is_argument(m->column[i])) &&
            strcmp(m->cell[a * m->column_count + i], m->cell[b * m->column_count + i]) != 0)
            return false;
    return true;
}

int64_t pc_measured_condition_of(const pc_measured *conditions, const pc_measured_run *run, int64_t *found) {
    int64_t count = 0;
    bool has_gpus = false, is_clear = true;
    *found = -1;
    for (int64_t i = 0; i < conditions->row_count; i++) {
        pc_measured_run other;
        pc_error ignored = {0};
        if (!says_cut(conditions, i) || pc_measured_run_of(conditions, i, &other, &ignored) || !is_same(run, &other))
            continue;
        bool is_better = other.gpus == run->gpus && !has_gpus, is_worse = other.gpus != run->gpus && has_gpus;
        count++;
        if (is_worse) continue;
        is_clear = *found < 0 || is_better || (is_clear && says_the_same(conditions, *found, i));
        if (*found < 0 || is_better) *found = i;
        has_gpus = has_gpus || other.gpus == run->gpus;
    }
    if (!is_clear) *found = -1;
    return count;
}
