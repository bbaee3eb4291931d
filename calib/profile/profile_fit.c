#include "calib/profile/profile_private.h"

#include "engine/alloc.h"

#include <stdio.h>
#include <string.h>

/* ---- which measurement belongs to which fit ---- */

/* A measurement as a fit sees it; of kernels and transfers alike. */
typedef struct point {
    pc_fit_key key;
    double x[PC_FIT_DIMENSIONS], seconds;
    bool is_taken; /* in a group, or of no use */
} point;

static void copy_text(char *to, size_t size, const char *from) {
    snprintf(to, size, "%.*s", (int)size - 1, from);
}

/* Others' tables say who measured, and with what library; their attention goes by the size of a head. */
static void take_flash(const pc_kernel_measurement *k, point *p) {
    const double shape[] = {(double)k->batch, (double)k->m, (double)k->n, 1.0};
    p->key.form = PC_FIT_FLASH;
    p->key.head_dim = (int32_t)k->k;
    p->key.window = k->window;
    copy_text(p->key.library, sizeof p->key.library, k->library);
    copy_text(p->key.site, sizeof p->key.site, k->site);
    for (int d = 0; d < 4; d++) p->x[d] = shape[d];
    if (k->heads > 0 && k->kv_heads > 0) p->x[3] = (double)k->heads / (double)k->kv_heads;
}

static point point_of_kernel(const pc_kernel_measurement *k) {
    point p = {.seconds = k->seconds.median};
    bool is_gemm = k->kind == PC_OPERATION_GEMM, is_attention = k->kind == PC_OPERATION_ATTENTION;
    p.key.form = is_gemm ? PC_FIT_GEMM : is_attention ? PC_FIT_ATTENTION : PC_FIT_MEMORY;
    copy_text(p.key.subject, sizeof p.key.subject, k->kernel);
    copy_text(p.key.dtype, sizeof p.key.dtype, k->dtype);
    p.key.cache = (int32_t)k->cache;
    p.key.is_causal = is_attention && k->is_causal;
    const int64_t shape[] = {k->batch, k->m, k->n, k->k};
    for (int d = 0; d < PC_FIT_DIMENSIONS; d++) p.x[d] = 1.0;
    for (int d = 0; d < 4 && p.key.form != PC_FIT_MEMORY; d++) p.x[d] = (double)shape[d];
    if (p.key.form == PC_FIT_MEMORY) p.x[0] = (double)k->bytes;
    if (is_attention && k->site[0] != '\0') take_flash(k, &p);
    return p;
}

static point point_of_transfer(const pc_transfer_measurement *t) {
    point p = {.seconds = t->seconds.median};
    for (int d = 0; d < PC_FIT_DIMENSIONS; d++) p.x[d] = d == 0 ? t->size_bytes : 1.0;
    p.key.form = PC_FIT_TRANSFER;
    copy_text(p.key.subject, sizeof p.key.subject, t->collective);
    copy_text(p.key.link, sizeof p.key.link, t->link);
    p.key.ranks = t->ranks;
    p.key.nodes = t->nodes;
    return p;
}

/* Throttled or not: what the device does under load is what training meets. */
static bool is_usable(const point *p) {
    for (int d = 0; d < PC_FIT_DIMENSIONS; d++)
        if (!(p->x[d] > 0.0 && p->x[d] < 1e18)) return false;
    return p->seconds > 1e-12 && p->seconds < 1e9;
}

/* A transfer that brought wrong numbers is none. */
static bool is_wrong(const pc_profile *profile, int64_t i) {
    return i >= profile->kernel_count && profile->transfer[i - profile->kernel_count].wrong > 0;
}

/* The shapes that are measured again and again for drift (measure.c) are there for that alone. */
static bool is_sentinel(const point *p) {
    return strncmp(p->key.subject, PC_PROFILE_SENTINEL, strlen(PC_PROFILE_SENTINEL)) == 0;
}

/* ---- one group after the other ---- */

typedef struct grouping {
    point *point;
    int64_t count;
    double *x, *seconds; /* of a group */
    int64_t left_out;
} grouping;

static void grouping_free(grouping *g) {
    pc_free(g->point);
    pc_free(g->x);
    pc_free(g->seconds);
}

static void take_points(grouping *g, const pc_profile *profile, const bool *is_twin) {
    int64_t kernels = profile->kernel_count;
    for (int64_t i = 0; i < g->count; i++) {
        point *p = &g->point[i];
        *p = i < kernels ? point_of_kernel(&profile->kernel[i]) : point_of_transfer(&profile->transfer[i - kernels]);
        p->is_taken = is_sentinel(p) || !is_usable(p) || is_wrong(profile, i) || (i < kernels && is_twin[i]);
        g->left_out += p->is_taken && !is_sentinel(p);
    }
}

static pc_code grouping_make(grouping *g, const pc_profile *profile, pc_error *error) {
    *g = (grouping){.count = profile->kernel_count + profile->transfer_count};
    g->point = pc_alloc((size_t)g->count, sizeof *g->point);
    g->x = pc_alloc((size_t)g->count * PC_FIT_DIMENSIONS, sizeof *g->x);
    g->seconds = pc_alloc((size_t)g->count, sizeof *g->seconds);
    bool *is_twin = pc_alloc((size_t)profile->kernel_count, sizeof *is_twin);
    bool is_made = g->point && g->x && g->seconds && is_twin;
    pc_code code = is_made ? pc_profile_mark_twins(profile, is_twin, error) : pc_error_no_memory(error);
    if (!code) take_points(g, profile, is_twin);
    pc_free(is_twin);
    if (code) grouping_free(g);
    return code;
}

static int64_t gather(grouping *g, const pc_fit_key *key, int64_t from) {
    int64_t count = 0;
    int dimensions;
    pc_fit_form_dimensions(key->form, &dimensions);
    for (int64_t i = from; i < g->count; i++) {
        point *p = &g->point[i];
        if (p->is_taken || !pc_fit_key_is(&p->key, key)) continue;
        memcpy(g->x + count * dimensions, p->x, (size_t)dimensions * sizeof *p->x);
        g->seconds[count++] = p->seconds;
        p->is_taken = true;
    }
    return count;
}

/* Adds the fit of the points that are like point `at`; those that are too few count as left out. */
static pc_code fit_group(grouping *g, int64_t at, int32_t processors, pc_profile *fits, pc_error *error) {
    pc_fit fit;
    pc_fit_key key = g->point[at].key;
    if (pc_fit_form_has_processors(key.form) && processors < 1)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "nothing says how many processors the device has, which fits of %s need; expected their "
                            "number, as `pipecast profile fit --processors N` gives",
                            key.subject);
    int64_t count = gather(g, &key, at);
    pc_code code = pc_fit_make(&key, processors, g->x, g->seconds, count, &fit, error);
    if (code == PC_ERROR_INPUT) {
        g->left_out += count;
        if (error) *error = (pc_error){0};
        return PC_OK;
    }
    if (code) return code;
    code = pc_profile_add_fit(fits, &fit, error);
    if (code) pc_fit_free(&fit);
    return code;
}

pc_code pc_profile_fit(pc_profile *profile, int64_t *left_out, pc_error *error) {
    grouping g;
    pc_profile fits = {0}, before = {0};
    pc_code code = grouping_make(&g, profile, error);
    if (code) return code;
    for (int64_t i = 0; i < g.count && !code; i++)
        if (!g.point[i].is_taken) code = fit_group(&g, i, profile->device.processors, &fits, error);
    if (!code) {
        before.fit = profile->fit, before.fit_count = profile->fit_count;
        profile->fit = fits.fit, profile->fit_count = fits.fit_count, profile->fit_room = fits.fit_room;
        fits = (pc_profile){0};
        if (left_out) *left_out = g.left_out;
    }
    pc_profile_free(&before);
    pc_profile_free(&fits);
    grouping_free(&g);
    return code;
}
