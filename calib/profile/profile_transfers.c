/* What a profile says of transfers, in the place of a machine's closed costs. Which fit answers is found once. */
#include "calib/profile/profile_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* From here on outside the measured range, a warning. */
static const double far = 1.25;

/* Processors that dispatch and combine keep busy where the fit lets one choose: DeepEP's default. */
static const double usual_processors = 20.0;

/* ---- collectives and messages ---- */

static int64_t find_fit(const pc_profile_transfers *transfers, pc_collective collective, int32_t ranks) {
    const pc_collective_fits *fits = &transfers->collective[collective];
    for (int32_t i = 0; i < fits->count; i++)
        if (fits->ranks[i] == ranks) return fits->fit[i];
    return fits->law;
}

/* What is smaller than all that was measured takes as long as the smallest; what is larger goes on at the last rate. */
static double transfer_s(const pc_profile_transfers *transfers, int64_t number, double size_bytes, int32_t ranks) {
    const pc_fit *fit = &transfers->profile->fit[number];
    const double x[PC_FIT_DIMENSIONS] = {size_bytes > fit->least[0] ? size_bytes : fit->least[0], ranks};
    for (int d = 0; d < fit->dimensions; d++)
        if (x[d] > far * fit->most[d]) pc_notes_far(transfers->notes, number, x, x[d] / fit->most[d], d);
    return pc_fit_seconds(fit, x);
}

static bool collective_s(const void *self, pc_collective collective, const pc_group *group, double size_bytes,
                         double *seconds) {
    const pc_profile_transfers *transfers = self;
    int64_t fit = group->domains == 1 ? find_fit(transfers, collective, group->ranks) : -1;
    if (fit < 0)
        pc_notes_unmeasured(transfers->notes, collective, group->ranks, group->domains);
    else
        *seconds = transfer_s(transfers, fit, size_bytes, group->ranks);
    return fit >= 0;
}

static bool message_s(const void *self, const pc_hop *hop, double size_bytes, double *seconds) {
    const pc_profile_transfers *transfers = self;
    int64_t fit = hop->in_domain ? find_fit(transfers, PC_COLLECTIVES, 2) : -1;
    if (fit < 0)
        pc_notes_unmeasured(transfers->notes, PC_COLLECTIVES, 2, hop->in_domain ? 1 : 2);
    else
        *seconds = transfer_s(transfers, fit, size_bytes, 2);
    return fit >= 0;
}

/* ---- dispatch and combine of experts ---- */

enum { TOKENS, BYTES, REACHED_RANKS, REACHED_NODES, RANKS, NODES, PROCESSORS };

static void place_exchange(const pc_fit *fit, const pc_group *group, const pc_exchange *exchange,
                           double x[PC_FIT_DIMENSIONS]) {
    x[TOKENS] = fmax(exchange->tokens, fit->least[TOKENS]);
    x[BYTES] = exchange->token_bytes;
    x[REACHED_RANKS] = exchange->ranks_reached;
    x[REACHED_NODES] = exchange->domains_reached;
    x[RANKS] = group->ranks;
    x[NODES] = group->domains;
    x[PROCESSORS] = fmin(fmax(usual_processors, fit->least[PROCESSORS]), fit->most[PROCESSORS]);
}

/* The fit whose measured numbers of ranks are nearest; the first of those that are as near. */
static int64_t find_exchange(const pc_profile_transfers *transfers, const pc_group *group, bool is_combine) {
    int64_t best = -1;
    double nearest = HUGE_VAL;
    for (int64_t i = 0; i < transfers->profile->fit_count; i++) {
        const pc_fit *fit = &transfers->profile->fit[i];
        if (fit->key.form != PC_FIT_DISPATCH || strcmp(fit->key.subject, is_combine ? "combine" : "dispatch") != 0)
            continue;
        bool is_between = fit->most[NODES] > 1.0;
        if (is_between != (group->domains > 1)) continue;
        double ranks = group->ranks, away = fmax(ranks / fit->most[RANKS], fit->least[RANKS] / ranks);
        away = fmax(away, 1.0);
        if (away < nearest) best = i, nearest = away;
    }
    return best;
}

static bool exchange_s(const void *self, const pc_group *group, const pc_exchange *exchange, double *seconds) {
    const pc_profile_transfers *transfers = self;
    double x[PC_FIT_DIMENSIONS];
    int dimension;
    int64_t number = transfers->has_exchanges ? find_exchange(transfers, group, exchange->is_combine) : -1;
    if (number < 0 || group->ranks < 2) return false;
    const pc_fit *fit = &transfers->profile->fit[number];
    place_exchange(fit, group, exchange, x);
    double distance = pc_fit_distance(fit, x, &dimension);
    if (distance > far) pc_notes_far(transfers->notes, number, x, distance, dimension);
    *seconds = pc_fit_seconds(fit, x);
    return true;
}

/* ---- which fit answers ---- */

/* Loopback sockets are no link of a machine, nor is a network one of a domain. */
static bool is_inside(const pc_fit_key *key) {
    return strcmp(key->link, "loopback") != 0 && strcmp(key->link, "network") != 0 && key->nodes <= 1;
}

static bool is_half(const pc_fit_key *key) {
    return strcmp(key->dtype, "bf16") == 0 || strcmp(key->dtype, "fp16") == 0;
}

/* Above zero if version `a` ("2.29.2") is newer than `b`; an empty one is the oldest. */
static int compare_versions(const char *a, const char *b) {
    while (*a || *b) {
        char *end_a, *end_b;
        long x = strtol(a, &end_a, 10), y = strtol(b, &end_b, 10);
        if (x != y) return x > y ? 1 : -1;
        if (end_a == a || end_b == b) return strcmp(a, b);
        a = end_a + (*end_a == '.');
        b = end_b + (*end_b == '.');
    }
    return 0;
}

/* Of reductions numbers of 16 bits, then the newest library: its version is the variant. */
static bool is_better(const pc_fit_key *key, const pc_fit_key *than) {
    if (is_half(key) != is_half(than)) return is_half(key);
    return compare_versions(key->variant, than->variant) > 0;
}

static void take_fit(pc_profile_transfers *transfers, int64_t number, pc_collective_fits *fits) {
    const pc_fit *all = transfers->profile->fit;
    const pc_fit_key *key = &all[number].key;
    if (key->form == PC_FIT_LAW && (fits->law < 0 || is_better(key, &all[fits->law].key))) fits->law = number;
    if (key->form != PC_FIT_TRANSFER || fits->count == PC_TRANSFERS_RANKS) return;
    for (int32_t i = 0; i < fits->count; i++)
        if (fits->ranks[i] == key->ranks) return;
    fits->ranks[fits->count] = key->ranks;
    fits->fit[fits->count++] = number;
}

void pc_profile_transfers_set(pc_profile_transfers *transfers, const pc_profile *profile, pc_notes *notes) {
    *transfers = (pc_profile_transfers){
        .profile = profile, .notes = notes, .model = {transfers, collective_s, message_s, exchange_s}};
    for (int c = 0; c <= PC_COLLECTIVES; c++) {
        pc_collective_fits *fits = &transfers->collective[c];
        fits->law = -1;
        for (int64_t i = 0; i < profile->fit_count; i++) {
            const pc_fit_key *key = &profile->fit[i].key;
            bool is_of = strcmp(key->subject, pc_measured_collective_name((pc_collective)c)) == 0;
            if (is_of && is_inside(key)) take_fit(transfers, i, fits);
        }
    }
    for (int64_t i = 0; i < profile->fit_count; i++)
        transfers->has_exchanges = transfers->has_exchanges || profile->fit[i].key.form == PC_FIT_DISPATCH;
}
