/* Operation by operation: what one profile measured over what the fits of another say of the same shapes, whoever
 * computed and measured it. */
#include "calib/profile/profile_private.h"

#include "engine/alloc.h"
#include "engine/order.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Ratios of one fit, as they come. */
typedef struct ratios {
    double *single, *sustained;
    int64_t count, outside;
} ratios;

/* ---- which measurements are of what a fit is of ---- */

/* Ours of attention and those of tables are of two forms. */
static bool is_attention(pc_fit_form form) {
    return form == PC_FIT_ATTENTION || form == PC_FIT_FLASH;
}

static bool is_same_form(pc_fit_form a, pc_fit_form b) {
    return a == b || (is_attention(a) && is_attention(b)) ||
           (pc_fit_form_is_transfer(a) && pc_fit_form_is_transfer(b) && a != PC_FIT_DISPATCH && b != PC_FIT_DISPATCH);
}

/* Ours names none. */
static bool is_same_library(const char *a, const char *b) {
    return a[0] == '\0' || b[0] == '\0' || strcmp(a, b) == 0;
}

/* All of the key but site and what comes out. */
static bool is_same_kernel(const pc_fit *fit, const pc_profile_point *point, const pc_kernel_measurement *kernel) {
    const pc_fit_key *a = &fit->key, *b = &point->key;
    if (!is_same_form(a->form, b->form) || strcmp(a->subject, b->subject) != 0 || strcmp(a->dtype, b->dtype) != 0 ||
        !is_same_library(a->library, b->library) || strcmp(a->variant, b->variant) != 0 || a->cache != b->cache ||
        a->is_causal != b->is_causal)
        return false;
    return a->form != PC_FIT_FLASH || (a->head_dim == kernel->k && a->window == kernel->window);
}

/* Tables do not say their link; two ranks on one GPU have none. */
static bool is_same_link(const char *a, const char *b) {
    const char *unknown = "unknown", *loopback = "loopback";
    if (strcmp(a, b) == 0) return true;
    if (strcmp(a, loopback) == 0 || strcmp(b, loopback) == 0) return false;
    return strcmp(a, unknown) == 0 || strcmp(b, unknown) == 0;
}

static bool is_same_transfer(const pc_fit *fit, const pc_profile_point *point,
                             const pc_transfer_measurement *transfer) {
    const pc_fit_key *a = &fit->key, *b = &point->key;
    bool has_dtype = a->dtype[0] == '\0' || b->dtype[0] == '\0' || strcmp(a->dtype, b->dtype) == 0;
    if (!is_same_form(a->form, b->form) || strcmp(a->subject, b->subject) != 0 || !has_dtype) return false;
    if (!is_same_library(a->library, b->library)) return false;
    if (a->form != PC_FIT_DISPATCH && a->nodes != transfer->nodes) return false;
    return is_same_link(a->link, b->link) && (a->form != PC_FIT_TRANSFER || a->ranks == transfer->ranks);
}

/* ---- the ratios ---- */

/* A fit says nothing sure beyond what it was fitted to. */
static bool is_within(const pc_fit *fit, const double *x) {
    for (int d = 0; d < fit->dimensions; d++)
        if (!(x[d] >= fit->least[d] && x[d] <= fit->most[d])) return false;
    return true;
}

static void add_ratio(const pc_fit *fit, const pc_profile_point *point, ratios *found) {
    if (!(point->seconds > 0.0)) return;
    if (!is_within(fit, point->x)) {
        found->outside++;
        return;
    }
    found->single[found->count] = point->seconds / pc_fit_predict(fit, point->x).seconds;
    found->sustained[found->count++] = point->seconds / pc_fit_predict_sustained(fit, point->x).seconds;
}

static void gather(const pc_fit *fit, const pc_profile *measured, ratios *found) {
    pc_profile_point point;
    for (int64_t i = 0; i < measured->kernel_count; i++) {
        const pc_kernel_measurement *kernel = &measured->kernel[i];
        pc_profile_point_of_kernel(kernel, &point);
        if (!is_same_kernel(fit, &point, kernel)) continue;
        pc_profile_point_place_kernel(kernel, fit->key.form, &point);
        add_ratio(fit, &point, found);
    }
    for (int64_t i = 0; i < measured->transfer_count; i++) {
        const pc_transfer_measurement *transfer = &measured->transfer[i];
        pc_profile_point_of_transfer(transfer, &point);
        if (transfer->wrong > 0 || !is_same_transfer(fit, &point, transfer)) continue;
        pc_profile_point_place_transfer(transfer, fit->key.form, &point);
        add_ratio(fit, &point, found);
    }
}

static pc_fit_difference summarise(ratios *found) {
    pc_fit_difference made = {.count = found->count, .outside = found->outside};
    if (found->count == 0) return made;
    pc_sort_reals(found->single, found->count);
    pc_sort_reals(found->sustained, found->count);
    made.q1 = pc_quantile_at(found->single, found->count, 0.25);
    made.median = pc_quantile_at(found->single, found->count, 0.5);
    made.q3 = pc_quantile_at(found->single, found->count, 0.75);
    made.sustained = pc_quantile_at(found->sustained, found->count, 0.5);
    return made;
}

pc_code pc_profile_difference(const pc_fit *fit, const pc_profile *measured, pc_fit_difference *difference,
                              pc_error *error) {
    size_t room = (size_t)(measured->kernel_count + measured->transfer_count) + 1;
    ratios found = {.single = pc_alloc(2 * room, sizeof *found.single)};
    if (!found.single) return pc_error_no_memory(error);
    found.sustained = found.single + room;
    gather(fit, measured, &found);
    *difference = summarise(&found);
    pc_free(found.single);
    return PC_OK;
}

/* ---- all of them, written ---- */

static double percent(double ratio) {
    return 100.0 * (ratio - 1.0);
}

static void add_line(pc_text *text, const char *name, const pc_fit_difference *x) {
    pc_text_printf(text, "  %+8.1f%% %+8.1f%% %+8.1f%% %+9.1f%% %7" PRId64 " %7" PRId64 "  ", percent(x->median),
                   percent(x->q1), percent(x->q3), percent(x->sustained), x->count, x->outside);
    pc_text_add_line(text, name, PC_FIELD_TEXT_SIZE);
    pc_text_add(text, "\n", 1);
}

pc_code pc_profile_differences_table(pc_text *text, const pc_profile *fitted, const pc_profile *measured,
                                     pc_error *error) {
    pc_code code = PC_OK;
    int lines = 0;
    for (int64_t i = 0; i < fitted->fit_count && !code; i++) {
        char name[128];
        pc_fit_difference x = {0};
        code = pc_profile_difference(&fitted->fit[i], measured, &x, error);
        if (code || x.count == 0) continue;
        if (lines++ == 0)
            pc_text_printf(text, "\nwhat the second measured over what the first's fits say, by operation\n"
                                 "     median  quartile  quartile  sustained  shapes  beyond\n");
        pc_fit_name(&fitted->fit[i].key, name, sizeof name);
        add_line(text, name, &x);
    }
    return code;
}

pc_code pc_profile_differences_json(pc_text *text, const pc_profile *fitted, const pc_profile *measured,
                                    pc_error *error) {
    pc_code code = PC_OK;
    int count = 0;
    pc_text_printf(text, ", \"differences\": [");
    for (int64_t i = 0; i < fitted->fit_count && !code; i++) {
        char name[128];
        pc_fit_difference x = {0};
        code = pc_profile_difference(&fitted->fit[i], measured, &x, error);
        if (code || x.count == 0) continue;
        pc_fit_name(&fitted->fit[i].key, name, sizeof name);
        pc_text_printf(text, "%s{\"fit\": ", count++ ? ", " : "");
        pc_text_add_json(text, name);
        pc_text_printf(text, ", \"operation\": ");
        pc_text_add_json(text, fitted->fit[i].key.subject);
        pc_text_printf(text,
                       ", \"shapes\": %" PRId64 ", \"beyond\": %" PRId64
                       ", \"median\": %.9g, \"q1\": %.9g, \"q3\": %.9g, \"sustained_median\": %.9g}",
                       x.count, x.outside, x.median, x.q1, x.q3, x.sustained);
    }
    pc_text_printf(text, "]");
    return code;
}
