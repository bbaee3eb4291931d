#include "calib/profile/profile_private.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MISSING_MAX = 64, GROUPS_MAX = 32, NAME_SIZE = 80 };

/* The point farthest outside of a fit's range; distance 0: none was. */
typedef struct far_point {
    double distance, x[PC_FIT_DIMENSIONS];
    int dimension;
} far_point;

typedef struct missing {
    char what[NAME_SIZE];
    const char *instead;
} missing;

typedef struct group {
    pc_collective collective;
    int32_t domains, ranks;
} group;

struct pc_notes {
    pthread_mutex_t lock;
    const pc_profile *profile;
    bool is_silent;               /* a profile of the library: its user can do nothing about it */
    far_point *far;               /* one a fit */
    missing missing[MISSING_MAX]; /* sorted; of more than there is room for the first */
    int missing_count;
    group group[GROUPS_MAX]; /* likewise */
    int group_count;
};

pc_notes *pc_notes_make(const pc_profile *profile) {
    pc_notes *notes = pc_alloc(1, sizeof *notes);
    if (!notes) return NULL;
    notes->profile = profile;
    notes->is_silent = profile->is_shipped;
    notes->far = pc_alloc((size_t)profile->fit_count, sizeof *notes->far);
    if (!notes->far) {
        pc_free(notes);
        return NULL;
    }
    pthread_mutex_init(&notes->lock, NULL);
    return notes;
}

void pc_notes_free(pc_notes *notes) {
    if (!notes) return;
    pthread_mutex_destroy(&notes->lock);
    pc_free(notes->far);
    pc_free(notes);
}

/* ---- adding ---- */

/* Of two as far away the one with the larger numbers, whichever came first. */
static bool is_farther(const far_point *a, const far_point *b) {
    if (a->distance != b->distance) return a->distance > b->distance;
    for (int d = 0; d < PC_FIT_DIMENSIONS; d++)
        if (a->x[d] != b->x[d]) return a->x[d] > b->x[d];
    return false;
}

void pc_notes_far(pc_notes *notes, int64_t fit, const double *point, double distance, int dimension) {
    far_point found = {.distance = distance, .dimension = dimension};
    if (notes->is_silent) return;
    memcpy(found.x, point, (size_t)notes->profile->fit[fit].dimensions * sizeof *point);
    pthread_mutex_lock(&notes->lock);
    if (is_farther(&found, &notes->far[fit])) notes->far[fit] = found;
    pthread_mutex_unlock(&notes->lock);
}

/* Puts `item` into a sorted array of `*count` items without equals; where it is full, the last one goes. */
static void insert(void *array, int *count, int most, size_t size, const void *item,
                   int (*compare)(const void *, const void *)) {
    char *items = array;
    int place = 0;
    while (place < *count && compare(items + (size_t)place * size, item) < 0) place++;
    if (place == most || (place < *count && compare(items + (size_t)place * size, item) == 0)) return;
    if (*count < most) (*count)++;
    memmove(items + (size_t)(place + 1) * size, items + (size_t)place * size, (size_t)(*count - place - 1) * size);
    memcpy(items + (size_t)place * size, item, size);
}

static int compare_missing(const void *a, const void *b) {
    return strcmp(((const missing *)a)->what, ((const missing *)b)->what);
}

void pc_notes_missing(pc_notes *notes, const char *family, const char *dtype, bool is_causal, const char *instead) {
    missing item = {.instead = instead};
    if (notes->is_silent) return;
    snprintf(item.what, sizeof item.what, "%s%s%s%s", family, is_causal ? " causal" : "", dtype[0] ? " " : "", dtype);
    pthread_mutex_lock(&notes->lock);
    insert(notes->missing, &notes->missing_count, MISSING_MAX, sizeof item, &item, compare_missing);
    pthread_mutex_unlock(&notes->lock);
}

static int compare_groups(const void *one, const void *other) {
    const group *a = one, *b = other;
    if (a->collective != b->collective) return a->collective < b->collective ? -1 : 1;
    if (a->domains != b->domains) return a->domains < b->domains ? -1 : 1;
    return a->ranks < b->ranks ? -1 : a->ranks > b->ranks;
}

void pc_notes_unmeasured(pc_notes *notes, pc_collective collective, int32_t ranks, int32_t domains) {
    group item = {collective, domains > 1 ? 2 : 1, ranks};
    if (notes->is_silent) return;
    pthread_mutex_lock(&notes->lock);
    insert(notes->group, &notes->group_count, GROUPS_MAX, sizeof item, &item, compare_groups);
    pthread_mutex_unlock(&notes->lock);
}

/* ---- lines ---- */

const char *pc_measured_collective_name(pc_collective collective) {
    static const char *const names[] = {
        [PC_COLLECTIVE_ALL_REDUCE] = "all_reduce",         [PC_COLLECTIVE_ALL_GATHER] = "all_gather",
        [PC_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter", [PC_COLLECTIVE_ALL_TO_ALL] = "all_to_all",
        [PC_COLLECTIVE_BROADCAST] = "broadcast",           [PC_COLLECTIVES] = "send_recv"};
    return names[collective];
}

static void write_far(const pc_fit *fit, const far_point *point, char *line, size_t size) {
    char name[128], shape[320] = "";
    int dimensions, used = 0;
    const char *const *names = pc_fit_form_dimensions(fit->key.form, &dimensions);
    double x = point->x[point->dimension], least = fit->least[point->dimension], most = fit->most[point->dimension];
    pc_fit_name(&fit->key, name, sizeof name);
    for (int d = 0; d < dimensions && dimensions > 1; d++) {
        pc_write_message(shape + used, sizeof shape - (size_t)used, "%s%s %.15g", d ? ", " : " (", names[d],
                         point->x[d]);
        used = (int)strlen(shape);
    }
    bool is_large = point->distance >= 1000.0;
    bool is_left = point->distance > 4.0 && !pc_fit_form_is_transfer(fit->key.form); /* laws of transfers go on */
    pc_write_message(line, size, "%s: %s %.15g%s%s is %.*g times %s what was measured, %.15g to %.15g%s", name,
                     names[point->dimension], x, shape, shape[0] ? ")" : "", is_large ? 15 : 3,
                     is_large ? rint(point->distance) : point->distance, x > most ? "above" : "below", least, most,
                     is_left ? "; the roofline goes on from there" : "");
}

static int count_missing(const pc_notes *notes) {
    int count = 0;
    for (int i = 0; i < notes->missing_count; i++) count += !notes->missing[i].instead;
    return count;
}

/* All that the roofline answers for, as far as the line has room; false if there is none. */
static bool write_missing(const pc_notes *notes, char *line, size_t size) {
    static const char start[] = "not in the profile, the roofline of the machine's file answers: ";
    enum { END = sizeof ", and 1000000 more" };
    int left = count_missing(notes);
    size_t used = 0;
    for (int i = 0; i < notes->missing_count && left > 0; i++) {
        const char *what = notes->missing[i].what;
        if (notes->missing[i].instead) continue;
        if (used > 0 && used + strlen(what) + END > size) break;
        used += (size_t)snprintf(line + used, size - used, "%s%s", used ? ", " : start, what);
        left--;
    }
    if (used > 0 && left > 0) snprintf(line + used, size - used, ", and %d more", left);
    return used > 0;
}

/* What another dtype answers for, a line each; *number counts down to the one that is asked for. */
static bool write_instead(const pc_notes *notes, int *number, char *line, size_t size) {
    for (int i = 0; i < notes->missing_count; i++) {
        const missing *x = &notes->missing[i];
        if (!x->instead || (*number)-- > 0) continue;
        snprintf(line, size, "%s: not in the profile; %s answers for it", x->what, x->instead);
        return true;
    }
    return false;
}

static bool is_sort(const group *a, const group *b) {
    return a->collective == b->collective && a->domains == b->domains;
}

/* One line for all groups of a collective that lie within a domain, and one for those that do not. */
static bool write_groups(const pc_notes *notes, int number, char *line, size_t size) {
    int first = 0, used = 0;
    for (; first < notes->group_count; first++) {
        bool is_new = first == 0 || !is_sort(&notes->group[first], &notes->group[first - 1]);
        if (is_new && number-- == 0) break;
    }
    if (first == notes->group_count) return false;
    const group *x = &notes->group[first];
    char ranks[16 * GROUPS_MAX] = "";
    for (int i = first; i < notes->group_count && is_sort(x, &notes->group[i]); i++)
        if (used + 16 < (int)sizeof ranks)
            used += snprintf(ranks + used, sizeof ranks - (size_t)used, "%s%d", i > first ? ", " : "",
                             (int)notes->group[i].ranks);
    snprintf(line, size, "%s of %s ranks %s: not in the profile; the machine's file answers",
             pc_measured_collective_name(x->collective), ranks, x->domains > 1 ? "across domains" : "in a domain");
    return true;
}

bool pc_notes_line(const pc_notes *notes, int number, char *line, size_t size) {
    for (int64_t i = 0; i < notes->profile->fit_count; i++) {
        if (!(notes->far[i].distance > 0.0) || number-- > 0) continue;
        write_far(&notes->profile->fit[i], &notes->far[i], line, size);
        return true;
    }
    if (write_instead(notes, &number, line, size)) return true;
    if (write_missing(notes, line, size) && number-- == 0) return true;
    return write_groups(notes, number, line, size);
}
