#include "calib/profile/profile_private.h"
#include "calib/profile/profile_show.h"

#include <math.h>
#include <string.h>

enum { SHAPES = 3 };

/* What both say of one shape. */
typedef struct comparison {
    double x[PC_FIT_DIMENSIONS];
    double a_s, b_s;
    bool is_within; /* the difference of the logarithms is no more than their two standard errors together allow */
} comparison;

static const pc_fit *find_like(const pc_profile *profile, const pc_fit *fit) {
    for (int64_t i = 0; i < profile->fit_count; i++)
        if (pc_fit_key_is(&profile->fit[i].key, &fit->key)) return &profile->fit[i];
    return NULL;
}

/* Shapes at a quarter, the half and three quarters of the way, in logarithms, through what both measured; between the
 * two ranges where they do not meet. */
static void place(const pc_fit *a, const pc_fit *b, int number, double *point) {
    double part = (number + 1) / (double)(SHAPES + 1);
    for (int d = 0; d < a->dimensions; d++) {
        double least = fmax(a->least[d], b->least[d]), most = fmin(a->most[d], b->most[d]);
        point[d] = floor(least * pow(most / least, part) + 0.5);
    }
}

static comparison compare_at(const pc_fit *a, const pc_fit *b, int number) {
    comparison made = {.is_within = false};
    place(a, b, number, made.x);
    pc_estimate first = pc_fit_predict(a, made.x), second = pc_fit_predict(b, made.x);
    double of_a = first.standard_error / first.seconds, of_b = second.standard_error / second.seconds;
    made.a_s = first.seconds;
    made.b_s = second.seconds;
    made.is_within = fabs(log(second.seconds / first.seconds)) <= 1.96 * sqrt(of_a * of_a + of_b * of_b);
    return made;
}

/* ---- for people ---- */

static void add_difference(pc_text *text, const pc_field *field, const void *a, const void *b) {
    pc_field_value left = pc_field_of(field, a), right = pc_field_of(field, b);
    const pc_field_value *values[] = {&left, &right};
    pc_text_printf(text, "%-18s", field->name);
    for (int i = 0; i < 2; i++) {
        if (i) pc_text_printf(text, "  ->  ");
        if (values[i]->text)
            pc_text_add_line(text, values[i]->text[0] ? values[i]->text : "not known", 120);
        else if (field->type == PC_FIELD_REAL || field->type == PC_FIELD_ANY)
            pc_text_printf(text, "%.6g", values[i]->real);
        else
            pc_text_printf(text, "%lld", (long long)values[i]->integer);
    }
    if (left.real > 0.0 && right.real > 0.0)
        pc_text_printf(text, "  (%+.2f%%)", 100.0 * (right.real / left.real - 1.0));
    pc_text_printf(text, "\n");
}

static bool is_different(const pc_field *field, const void *a, const void *b) {
    pc_field_value left = pc_field_of(field, a), right = pc_field_of(field, b);
    if (left.text) return strcmp(left.text, right.text) != 0;
    bool are_unknown = isnan(left.real) && isnan(right.real);
    return left.integer != right.integer || (left.real != right.real && !are_unknown);
}

static void add_device(pc_text *text, const pc_profile *a, const pc_profile *b) {
    const pc_fields *fields = &pc_profile_device_fields;
    int count = 0;
    for (size_t i = 0; i < fields->count; i++) {
        if (!is_different(&fields->field[i], &a->device, &b->device)) continue;
        add_difference(text, &fields->field[i], &a->device, &b->device);
        count++;
    }
    if (count == 0) pc_text_printf(text, "device and versions are the same\n");
}

static void add_shape(pc_text *text, const pc_fit *fit, const double *point) {
    int dimensions;
    const char *const *names = pc_fit_form_dimensions(fit->key.form, &dimensions);
    for (int d = 0; d < dimensions; d++) pc_text_printf(text, "%s%s %.15g", d ? ", " : "", names[d], point[d]);
}

static void add_heading(pc_text *text, const char *name) {
    pc_text_add(text, "\n", 1);
    pc_text_add_line(text, name, PC_FIELD_TEXT_SIZE);
    pc_text_add(text, "\n", 1);
}

static void add_fit(pc_text *text, const pc_fit *a, const pc_fit *b) {
    char name[128];
    pc_fit_name(&a->key, name, sizeof name);
    add_heading(text, name);
    for (int i = 0; i < SHAPES; i++) {
        comparison x = compare_at(a, b, i);
        pc_text_printf(text, "  x %-8.4f %s  ", x.b_s / x.a_s,
                       x.is_within ? "within the intervals " : "outside the intervals");
        add_shape(text, a, x.x);
        pc_text_printf(text, ": %.4g -> %.4g us\n", 1e6 * x.a_s, 1e6 * x.b_s);
    }
}

static void add_alone(pc_text *text, const pc_profile *of, const pc_profile *other, const char *which) {
    for (int64_t i = 0; i < of->fit_count; i++) {
        char name[128];
        if (find_like(other, &of->fit[i])) continue;
        pc_fit_name(&of->fit[i].key, name, sizeof name);
        add_heading(text, name);
        pc_text_printf(text, "  only in the %s\n", which);
    }
}

/* What changes nothing where a profile has none. */
static double tuned(const pc_profile *profile, pc_tuned which) {
    return profile->tuning.is_there ? profile->tuning.number[which].value : pc_tuned_nothing(which);
}

static void add_tuning(pc_text *text, const pc_profile *a, const pc_profile *b) {
    for (pc_tuned i = 0; i < PC_TUNED; i++)
        if (tuned(a, i) != tuned(b, i))
            pc_text_printf(text, "tuned %-10s%.4g -> %.4g\n", pc_tuned_rule_of(i)->name, tuned(a, i), tuned(b, i));
}

/* The first's fits beside what the second measured. */
static pc_code add_judged(pc_text *text, const pc_profile *a, const pc_profile *b, pc_error *error) {
    pc_code code = PC_OK;
    int count = 0;
    for (int64_t i = 0; i < a->fit_count && !code; i++) {
        char name[128];
        pc_judged x = {0};
        code = pc_profile_judge(&a->fit[i], b, &x, error);
        if (code || x.count == 0) continue;
        if (count++ == 0) add_heading(text, "fits of the first at what the second measured");
        pc_fit_name(&a->fit[i].key, name, sizeof name);
        pc_text_printf(text, "  median error %.3g%%, 95th percentile %.3g%%, %.3g%% of %lld within the 95%% interval: ",
                       100.0 * x.median, 100.0 * x.p95, 100.0 * x.held, (long long)x.count);
        pc_text_add_line(text, name, PC_FIELD_TEXT_SIZE);
        pc_text_add(text, "\n", 1);
    }
    return code;
}

static void add_table(pc_text *text, const pc_profile *a, const pc_profile *b) {
    add_device(text, a, b);
    add_tuning(text, a, b);
    for (int64_t i = 0; i < a->fit_count; i++) {
        const pc_fit *other = find_like(b, &a->fit[i]);
        if (other) add_fit(text, &a->fit[i], other);
    }
    add_alone(text, a, b, "first");
    add_alone(text, b, a, "second");
}

/* ---- for programs ---- */

static void add_csv(pc_text *text, const pc_profile *a, const pc_profile *b) {
    pc_text_printf(text, "fit,bytes,batch,m,n,k,first_s,second_s,ratio,within\n");
    for (int64_t i = 0; i < a->fit_count; i++) {
        const pc_fit *fit = &a->fit[i], *other = find_like(b, fit);
        char name[128];
        pc_fit_name(&fit->key, name, sizeof name);
        for (int s = 0; other && s < SHAPES; s++) {
            comparison x = compare_at(fit, other, s);
            pc_text_add_csv(text, name);
            pc_text_add(text, ",", 1);
            if (fit->dimensions == 1)
                pc_text_printf(text, "%.15g,,,,", x.x[0]);
            else
                pc_text_printf(text, ",%.15g,%.15g,%.15g,%.15g", x.x[0], x.x[1], x.x[2], x.x[3]);
            pc_text_printf(text, ",%.9g,%.9g,%.9g,%d\n", x.a_s, x.b_s, x.b_s / x.a_s, x.is_within);
        }
    }
}

static void add_json_fit(pc_text *text, const pc_fit *a, const pc_fit *b) {
    char name[128];
    int dimensions;
    const char *const *names = pc_fit_form_dimensions(a->key.form, &dimensions);
    pc_fit_name(&a->key, name, sizeof name);
    pc_text_printf(text, "{\"fit\": ");
    pc_text_add_json(text, name);
    pc_text_printf(text, ", \"shapes\": [");
    for (int i = 0; i < SHAPES; i++) {
        comparison x = compare_at(a, b, i);
        pc_text_printf(text, "%s{", i ? ", " : "");
        for (int d = 0; d < dimensions; d++) pc_text_printf(text, "\"%s\": %.15g, ", names[d], x.x[d]);
        pc_text_printf(text, "\"first_s\": %.17g, \"second_s\": %.17g, \"ratio\": %.9g, \"within\": %s}", x.a_s, x.b_s,
                       x.b_s / x.a_s, x.is_within ? "true" : "false");
    }
    pc_text_printf(text, "]}");
}

static void add_json_alone(pc_text *text, const char *key, const pc_profile *of, const pc_profile *other) {
    int count = 0;
    pc_text_printf(text, ", \"%s\": [", key);
    for (int64_t i = 0; i < of->fit_count; i++) {
        char name[128];
        if (find_like(other, &of->fit[i])) continue;
        pc_fit_name(&of->fit[i].key, name, sizeof name);
        if (count++) pc_text_printf(text, ", ");
        pc_text_add_json(text, name);
    }
    pc_text_printf(text, "]");
}

/* Nothing if neither is tuned. */
static void add_json_tuning(pc_text *text, const pc_profile *a, const pc_profile *b) {
    if (!a->tuning.is_there && !b->tuning.is_there) return;
    pc_text_printf(text, ", \"tuning\": {");
    for (pc_tuned i = 0; i < PC_TUNED; i++)
        pc_text_printf(text, "%s\"%s\": {\"first\": %.17g, \"second\": %.17g}", i ? ", " : "",
                       pc_tuned_rule_of(i)->name, tuned(a, i), tuned(b, i));
    pc_text_printf(text, "}");
}

static pc_code add_json_judged(pc_text *text, const pc_profile *a, const pc_profile *b, pc_error *error) {
    pc_code code = PC_OK;
    int count = 0;
    pc_text_printf(text, ", \"judged\": [");
    for (int64_t i = 0; i < a->fit_count && !code; i++) {
        char name[128];
        pc_judged x = {0};
        code = pc_profile_judge(&a->fit[i], b, &x, error);
        if (code || x.count == 0) continue;
        pc_fit_name(&a->fit[i].key, name, sizeof name);
        pc_text_printf(text, "%s{\"fit\": ", count++ ? ", " : "");
        pc_text_add_json(text, name);
        pc_text_printf(text, ", \"measured\": %lld, \"median\": %.9g, \"p95\": %.9g, \"held\": %.9g}",
                       (long long)x.count, x.median, x.p95, x.held);
    }
    pc_text_printf(text, "]");
    return code;
}

static pc_code add_json(pc_text *text, const pc_profile *a, const pc_profile *b, pc_error *error) {
    const pc_fields *fields = &pc_profile_device_fields;
    int count = 0;
    pc_text_printf(text, "{\"device_differences\": [");
    for (size_t i = 0; i < fields->count; i++) {
        if (!is_different(&fields->field[i], &a->device, &b->device)) continue;
        if (count++) pc_text_printf(text, ", ");
        pc_text_add_json(text, fields->field[i].name);
    }
    pc_text_printf(text, "], \"fits\": [");
    count = 0;
    for (int64_t i = 0; i < a->fit_count; i++) {
        const pc_fit *other = find_like(b, &a->fit[i]);
        if (!other) continue;
        if (count++) pc_text_printf(text, ", ");
        add_json_fit(text, &a->fit[i], other);
    }
    pc_text_printf(text, "]");
    add_json_alone(text, "only_first", a, b);
    add_json_alone(text, "only_second", b, a);
    add_json_tuning(text, a, b);
    pc_code code = add_json_judged(text, a, b, error);
    if (!code) code = pc_profile_differences_json(text, a, b, error);
    pc_text_printf(text, "}\n");
    return code;
}

pc_code pc_profile_compare(const pc_profile *a, const pc_profile *b, pc_format format, FILE *stream, pc_error *error) {
    pc_number_scope scope = {0};
    pc_text text = {0};
    pc_code code = PC_OK;
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    if (format == PC_FORMAT_JSON)
        code = add_json(&text, a, b, error);
    else if (format == PC_FORMAT_CSV)
        add_csv(&text, a, b);
    else {
        add_table(&text, a, b);
        code = add_judged(&text, a, b, error);
        if (!code) code = pc_profile_differences_table(&text, a, b, error);
    }
    pc_number_scope_leave(&scope);
    if (!code) return pc_text_out(&text, stream, error);
    pc_text_free(&text);
    return code;
}
