/* A measurement as a fit sees it: which fit it belongs to, and where it lies there. */
#include "calib/profile/profile_experts.h"
#include "calib/profile/profile_private.h"
#include "models/workload/expert_reach.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static void copy_text(char *to, size_t size, const char *from) {
    snprintf(to, size, "%.*s", (int)size - 1, from);
}

/* ---- where: a form's dimensions, by their names ---- */

typedef struct extent {
    const char *name;
    size_t place; /* of an int64_t */
} extent;

/* Several names of one number: forms call things what they are to them. */
static const extent kernel_extents[] = {
    {"bytes", offsetof(pc_kernel_measurement, bytes)},       {"batch", offsetof(pc_kernel_measurement, batch)},
    {"groups", offsetof(pc_kernel_measurement, batch)},      {"m", offsetof(pc_kernel_measurement, m)},
    {"tokens", offsetof(pc_kernel_measurement, m)},          {"n", offsetof(pc_kernel_measurement, n)},
    {"inter", offsetof(pc_kernel_measurement, n)},           {"k", offsetof(pc_kernel_measurement, k)},
    {"hidden", offsetof(pc_kernel_measurement, k)},          {"heads", offsetof(pc_kernel_measurement, heads)},
    {"kv_heads", offsetof(pc_kernel_measurement, kv_heads)}, {"topk", offsetof(pc_kernel_measurement, topk)},
    {"experts", offsetof(pc_kernel_measurement, experts)},   {"moe_tp", offsetof(pc_kernel_measurement, moe_tp)},
    {"moe_ep", offsetof(pc_kernel_measurement, moe_ep)},     {NULL, 0}};
static const extent transfer_extents[] = {{"tokens", offsetof(pc_transfer_measurement, tokens)},
                                          {"hidden", offsetof(pc_transfer_measurement, hidden)},
                                          {"topk", offsetof(pc_transfer_measurement, topk)},
                                          {"experts", offsetof(pc_transfer_measurement, experts)},
                                          {NULL, 0}};

/* NaN if the measurement has no such number. */
static double extent_of(const extent *extents, const void *measurement, const char *name) {
    int64_t value;
    for (; extents->name; extents++) {
        if (strcmp(extents->name, name) != 0) continue;
        memcpy(&value, (const char *)measurement + extents->place, sizeof value);
        return (double)value;
    }
    return NAN;
}

/* Heads of queries that share one of keys; 1 where that is not known. */
static double group_of(const pc_kernel_measurement *k) {
    return k->heads > 0 && k->kv_heads > 0 ? (double)k->heads / (double)k->kv_heads : 1.0;
}

static double of_kernel(const void *measurement, const char *name) {
    if (strcmp(name, "group") == 0) return group_of(measurement);
    return extent_of(kernel_extents, measurement, name);
}

static bool is_combine(const pc_transfer_measurement *t) {
    return strncmp(t->collective, "combine", strlen("combine")) == 0;
}

/* What comes back from experts is of 16 bits, whatever went there. Tables of DeepEP do not say what went: of 16 bits
 * it would be faster than the links, so it is of 8. Numbers of 4 bits have a scale of 8 bits each 16. */
static double token_bytes(const pc_transfer_measurement *t) {
    static const struct {
        const char *dtype;
        double bytes;
    } known[] = {{"", 1.0}, {"fp8", 1.0}, {"fp8_block", 1.0}, {"nvfp4", 0.5625}};
    double element = 2.0;
    for (size_t i = 0; i < sizeof known / sizeof *known && !is_combine(t); i++)
        if (strcmp(t->dtype, known[i].dtype) == 0) element = known[i].bytes;
    return element * (double)t->hidden;
}

/* Ranks or nodes that a token goes to. Tables that say no processors (NVLink kernels) route in balance. */
static double reached(const pc_transfer_measurement *t, double groups) {
    double choices = (double)t->topk;
    if (t->sms == 0) return groups < choices ? groups : choices;
    return pc_expert_reached(&(pc_routing){.experts = (double)t->experts, .topk = choices}, groups);
}

static double of_transfer(const void *measurement, const char *name) {
    const pc_transfer_measurement *t = measurement;
    if (strcmp(name, "bytes") == 0) return t->size_bytes;
    if (strcmp(name, "ranks") == 0) return t->ranks;
    if (strcmp(name, "nodes") == 0) return t->nodes;
    if (strcmp(name, "sms") == 0) return t->sms > 0 ? t->sms : 1.0;
    if (strcmp(name, "token_bytes") == 0) return token_bytes(t);
    if (strcmp(name, "ranks_reached") == 0) return reached(t, t->ranks);
    if (strcmp(name, "nodes_reached") == 0) return reached(t, t->nodes);
    return extent_of(transfer_extents, measurement, name);
}

/* A dimension that the measurement does not know makes the point useless, as a zero does. */
static void place_point(pc_profile_point *point, const void *measurement,
                        double (*number)(const void *measurement, const char *name)) {
    int dimensions;
    const char *const *names = pc_fit_form_dimensions(point->key.form, &dimensions);
    for (int d = 0; d < PC_FIT_DIMENSIONS; d++) point->x[d] = d < dimensions ? number(measurement, names[d]) : 1.0;
}

/* ---- which ---- */

static bool has_source(const pc_kernel_measurement *k) {
    return k->library[0] != '\0' || k->site[0] != '\0';
}

/* Others' tables of attention have many shapes of one size of head. */
static pc_fit_form form_of_kernel(const pc_kernel_measurement *k) {
    if (strcmp(k->kernel, "moe_layer") == 0) return PC_FIT_MOE;
    if (strncmp(k->kernel, "grouped_gemm", strlen("grouped_gemm")) == 0) return PC_FIT_GROUPED_GEMM;
    if (k->kind == PC_OPERATION_GEMM) return PC_FIT_GEMM;
    if (k->kind == PC_OPERATION_ATTENTION) return has_source(k) ? PC_FIT_FLASH : PC_FIT_ATTENTION;
    return PC_FIT_MEMORY;
}

/* What a calibration of ours does not say is empty: its fits have the keys that they always had. */
void pc_profile_point_of_kernel(const pc_kernel_measurement *k, pc_profile_point *point) {
    pc_fit_key *key = &point->key;
    memset(point, 0, sizeof *point);
    key->form = form_of_kernel(k);
    copy_text(key->subject, sizeof key->subject, k->kernel);
    copy_text(key->dtype, sizeof key->dtype, k->dtype);
    copy_text(key->library, sizeof key->library, k->library);
    copy_text(key->site, sizeof key->site, k->site);
    if (strcmp(k->out_dtype, k->dtype) != 0) copy_text(key->out_dtype, sizeof key->out_dtype, k->out_dtype);
    key->cache = (int32_t)k->cache;
    key->is_causal = k->kind == PC_OPERATION_ATTENTION && k->is_causal;
    if (key->form == PC_FIT_FLASH) {
        key->head_dim = k->k < INT32_MAX ? (int32_t)k->k : INT32_MAX;
        key->window = k->window;
    }
    point->seconds = k->seconds.median;
    if (!pc_experts_point(k, key, point->x)) place_point(point, k, of_kernel);
}

static bool is_of_experts(const pc_transfer_measurement *t) {
    return t->tokens > 0;
}

/* Tables that name their library measure one collective over many groups, whose law is one fit. */
static pc_fit_form form_of_transfer(const pc_transfer_measurement *t) {
    return is_of_experts(t) ? PC_FIT_DISPATCH : t->library[0] != '\0' ? PC_FIT_LAW : PC_FIT_TRANSFER;
}

/* Bytes alone decide how long they travel; reductions also compute. */
static bool is_reduction(const pc_transfer_measurement *t) {
    return strcmp(t->collective, "all_reduce") == 0 || strcmp(t->collective, "reduce_scatter") == 0;
}

void pc_profile_point_of_transfer(const pc_transfer_measurement *t, pc_profile_point *point) {
    pc_fit_key *key = &point->key;
    memset(point, 0, sizeof *point);
    key->form = form_of_transfer(t);
    copy_text(key->subject, sizeof key->subject, t->collective);
    copy_text(key->link, sizeof key->link, t->link);
    copy_text(key->library, sizeof key->library, t->library);
    copy_text(key->site, sizeof key->site, t->site);
    if (key->form == PC_FIT_LAW && is_reduction(t)) copy_text(key->dtype, sizeof key->dtype, t->dtype);
    if (key->form != PC_FIT_TRANSFER) copy_text(key->variant, sizeof key->variant, t->library_version);
    if (key->form == PC_FIT_TRANSFER) key->ranks = t->ranks;
    if (key->form != PC_FIT_DISPATCH) key->nodes = t->nodes;
    point->seconds = t->seconds.median;
    place_point(point, t, of_transfer);
}

/* ---- in another form ---- */

static bool is_of_expert_form(pc_fit_form form) {
    return form == PC_FIT_MOE || form == PC_FIT_GROUPED_GEMM;
}

void pc_profile_point_place_kernel(const pc_kernel_measurement *kernel, pc_fit_form form, pc_profile_point *point) {
    if (point->key.form == form || is_of_expert_form(form)) return;
    point->key.form = form;
    place_point(point, kernel, of_kernel);
}

void pc_profile_point_place_transfer(const pc_transfer_measurement *transfer, pc_fit_form form,
                                     pc_profile_point *point) {
    if (point->key.form == form) return;
    point->key.form = form;
    place_point(point, transfer, of_transfer);
}

/* ---- what a fit says of it ---- */

double pc_profile_fitted_s(const pc_profile *profile, const pc_kernel_measurement *kernel) {
    pc_profile_point point;
    pc_profile_point_of_kernel(kernel, &point);
    for (int64_t i = 0; i < profile->fit_count; i++)
        if (pc_fit_key_is(&profile->fit[i].key, &point.key)) return pc_fit_predict(&profile->fit[i], point.x).seconds;
    return NAN;
}
