#include "calib/profile/profile_private.h"

#include "engine/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is of use ---- */

/* Throttled or not: what the device does under load is what training meets. */
static bool is_usable(const pc_profile_point *p) {
    for (int d = 0; d < PC_FIT_DIMENSIONS; d++)
        if (!(p->x[d] > 0.0 && p->x[d] < 1e18)) return false;
    return p->seconds > 1e-12 && p->seconds < 1e9;
}

/* A transfer that brought wrong numbers is none. */
static bool is_wrong(const pc_profile *profile, int64_t i) {
    return i >= profile->kernel_count && profile->transfer[i - profile->kernel_count].wrong > 0;
}

/* The shapes that are measured again and again for drift (measure.c) are there for that alone. */
static bool is_sentinel(const pc_profile_point *p) {
    return strncmp(p->key.subject, PC_PROFILE_SENTINEL, strlen(PC_PROFILE_SENTINEL)) == 0;
}

/* ---- groups: points of one fit ---- */

typedef struct group {
    const pc_profile_point **first;
    int64_t count;
} group;

typedef struct grouping {
    pc_profile_point *point;
    const pc_profile_point **sorted; /* those of use, group behind group */
    group *group;                    /* in the order of their first points */
    int64_t count, usable, groups;
    double *x, *seconds; /* of a group */
    int64_t left_out;
} grouping;

static void grouping_free(grouping *g) {
    pc_free(g->point);
    pc_free(g->sorted);
    pc_free(g->group);
    pc_free(g->x);
    pc_free(g->seconds);
}

static void take_points(grouping *g, const pc_profile *profile) {
    int64_t kernels = profile->kernel_count;
    for (int64_t i = 0; i < g->count; i++) {
        pc_profile_point *p = &g->point[i];
        if (i < kernels)
            pc_profile_point_of_kernel(&profile->kernel[i], p);
        else
            pc_profile_point_of_transfer(&profile->transfer[i - kernels], p);
        if (is_sentinel(p)) continue;
        if (is_usable(p) && !is_wrong(profile, i))
            g->sorted[g->usable++] = p;
        else
            g->left_out++;
    }
}

/* By key, in any order; of one key in that of the measurements. */
static int compare_points(const void *left, const void *right) {
    const pc_profile_point *a = *(const pc_profile_point *const *)left, *b = *(const pc_profile_point *const *)right;
    int order = pc_fit_key_order(&a->key, &b->key);
    return order ? order : a < b ? -1 : a > b;
}

static int compare_groups(const void *left, const void *right) {
    const pc_profile_point *a = *((const group *)left)->first, *b = *((const group *)right)->first;
    return a < b ? -1 : a > b;
}

static void find_groups(grouping *g) {
    qsort(g->sorted, (size_t)g->usable, sizeof *g->sorted, compare_points);
    for (int64_t at = 0, end; at < g->usable; at = end) {
        const pc_fit_key *key = &g->sorted[at]->key;
        for (end = at + 1; end < g->usable && pc_fit_key_is(key, &g->sorted[end]->key);) end++;
        g->group[g->groups++] = (group){&g->sorted[at], end - at};
    }
    qsort(g->group, (size_t)g->groups, sizeof *g->group, compare_groups);
}

static pc_code grouping_make(grouping *g, const pc_profile *profile, pc_error *error) {
    *g = (grouping){.count = profile->kernel_count + profile->transfer_count};
    g->point = pc_alloc((size_t)g->count, sizeof *g->point);
    g->sorted = pc_alloc((size_t)g->count, sizeof *g->sorted);
    g->group = pc_alloc((size_t)g->count, sizeof *g->group);
    g->x = pc_alloc((size_t)g->count * PC_FIT_DIMENSIONS, sizeof *g->x);
    g->seconds = pc_alloc((size_t)g->count, sizeof *g->seconds);
    if (!g->point || !g->sorted || !g->group || !g->x || !g->seconds) {
        grouping_free(g);
        return pc_error_no_memory(error);
    }
    take_points(g, profile);
    find_groups(g);
    return PC_OK;
}

static void gather(grouping *g, const group *points) {
    int dimensions;
    pc_fit_form_dimensions((*points->first)->key.form, &dimensions);
    for (int64_t i = 0; i < points->count; i++) {
        memcpy(g->x + i * dimensions, points->first[i]->x, (size_t)dimensions * sizeof *g->x);
        g->seconds[i] = points->first[i]->seconds;
    }
}

/* ---- fits ---- */

/* Adds the fit of a group; points that are too few count as left out. */
static pc_code fit_group(grouping *g, const group *points, int32_t processors, pc_profile *fits, pc_error *error) {
    pc_fit fit;
    pc_fit_key key = (*points->first)->key;
    if (pc_fit_form_has_processors(key.form) && processors < 1)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "nothing says how many processors the device has, which fits of %s need; expected their "
                            "number, as `pipecast profile fit --processors N` gives",
                            key.subject);
    gather(g, points);
    pc_code code = pc_fit_make(&key, processors, g->x, g->seconds, points->count, &fit, error);
    if (code == PC_ERROR_INPUT) {
        g->left_out += points->count;
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
    for (int64_t i = 0; i < g.groups && !code; i++)
        code = fit_group(&g, &g.group[i], profile->device.processors, &fits, error);
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
