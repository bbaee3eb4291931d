#include "calib/profile/tuning.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void add_prior(pc_text *text, pc_tuned which, double width) {
    if (pc_tuned_rule_of(which)->is_factor)
        pc_text_printf(text, "1, within %-5.3g", exp(width));
    else
        pc_text_printf(text, "0, within %-5.3g", width);
}

/* Without the sign of what rounds to nothing. */
static double shown(double value) {
    return fabs(value) < 5e-4 ? 0.0 : value;
}

static void add_number(pc_text *text, pc_tuned which, const pc_tuned_number *x) {
    const pc_tuned_rule *rule = pc_tuned_rule_of(which);
    pc_text_printf(text, "  %-10s %-5s  ", rule->name, rule->unit);
    add_prior(text, which, x->prior_width);
    if (x->is_fitted)
        pc_text_printf(text, "  %7.3f  %8.2g  %s", shown(x->value), x->standard_error,
                       x->is_determined ? "yes" : "not determined by these runs");
    else
        pc_text_printf(text, "  %7.3f  %8s  not fitted", shown(x->value), "");
    pc_text_printf(text, "\n");
}

static void add_errors(pc_text *text, const char *name, const pc_tuning_errors *errors) {
    pc_text_printf(text, "  %-26s", name);
    if (isnan(errors->mean))
        pc_text_printf(text, "  not known: there is one configuration\n");
    else
        pc_text_printf(text, "  %5.1f%%  %5.1f%%  %+5.1f%%\n", 100.0 * errors->mean, 100.0 * errors->median,
                       100.0 * errors->bias);
}

/* "14 runs of 9 configurations of measured.csv, software nemo; 2 left out; over the machine's file" */
static void add_provenance(pc_text *text, const pc_tuning *tuning) {
    pc_text_printf(text, "  fitted to %" PRId64 " runs of %" PRId64 " configurations", tuning->rows,
                   tuning->configurations);
    if (tuning->source[0]) pc_text_printf(text, " of ");
    pc_text_add_line(text, tuning->source, sizeof tuning->source);
    if (tuning->only[0]) pc_text_printf(text, ", ");
    pc_text_add_line(text, tuning->only, sizeof tuning->only);
    pc_text_printf(text, "; %" PRId64 " left out\n  over ", tuning->left_out);
    if (tuning->base[0]) pc_text_printf(text, "the profile ");
    pc_text_add_line(text, tuning->base[0] ? tuning->base : "what the machine's file says", sizeof tuning->base);
    pc_text_printf(text, "\n\n");
}

void pc_tuning_add_table(pc_text *text, const pc_tuning *tuning) {
    char unseen[64] = "unseen";
    add_provenance(text, tuning);
    pc_text_printf(text, "  %-10s %-5s  %-15s  %7s  %8s  %s\n", "number", "", "prior", "fitted", "+-", "determined");
    for (pc_tuned i = 0; i < PC_TUNED; i++) add_number(text, i, &tuning->number[i]);
    if (tuning->folds > 0) snprintf(unseen, sizeof unseen, "unseen, %" PRId64 " folds", tuning->folds);
    pc_text_printf(text, "\n  %-26s  %6s  %6s  %6s\n", "error of these runs", "mean", "median", "bias");
    add_errors(text, "before", &tuning->before);
    add_errors(text, "after", &tuning->after);
    add_errors(text, unseen, &tuning->unseen);
    if (tuning->unseen.mean >= tuning->before.mean)
        pc_text_printf(text, "  these runs do not support a tuning: configurations that it has not seen are no better "
                             "than before\n");
}

static void add_csv_real(pc_text *text, double value) {
    char number[PC_NUMBER_SIZE] = "";
    if (!isnan(value)) pc_number_format(value, number);
    pc_text_printf(text, ",%s", number);
}

void pc_tuning_add_csv(pc_text *text, const char *name, const pc_tuning *tuning) {
    for (pc_tuned i = 0; i < PC_TUNED; i++) {
        const pc_tuned_number *x = &tuning->number[i];
        pc_text_add_csv(text, name);
        pc_text_printf(text, ",tuning,%s,%s,%" PRId64, pc_tuned_rule_of(i)->name, pc_tuned_rule_of(i)->unit,
                       tuning->rows);
        add_csv_real(text, x->value);
        add_csv_real(text, x->is_fitted ? x->standard_error : NAN);
        add_csv_real(text, tuning->scatter);
        add_csv_real(text, tuning->unseen.median);
        pc_text_printf(text, ",,\n");
    }
}
