/* What a profile says of transfers, in the place of a machine's closed costs. */
#include "calib/profile/profile_private.h"

#include <string.h>

/* From here on outside the measured range, a warning. */
static const double far = 1.25;

/* The fit of a transfer inside a domain. Loopback sockets are no link of a machine, nor is a network one of a domain.
 */
static int64_t find_transfer(const pc_profile_transfers *cost, const char *collective, int32_t ranks) {
    for (int64_t i = 0; i < cost->profile->fit_count; i++) {
        const pc_fit_key *key = &cost->profile->fit[i].key;
        bool is_inside = strcmp(key->link, "loopback") != 0 && strcmp(key->link, "network") != 0 && key->nodes <= 1;
        if (key->form == PC_FIT_TRANSFER && is_inside && key->ranks == ranks && strcmp(key->subject, collective) == 0)
            return i;
    }
    return -1;
}

/* What is smaller than all that was measured takes as long as the smallest; what is larger goes on at the last rate. */
static double transfer_s(const pc_profile_transfers *cost, int64_t number, double size_bytes) {
    const pc_fit *fit = &cost->profile->fit[number];
    double x = size_bytes > fit->least[0] ? size_bytes : fit->least[0];
    if (x > far * fit->most[0]) pc_notes_far(cost->notes, number, &x, x / fit->most[0], 0);
    return pc_fit_predict(fit, &x).seconds;
}

static bool collective_s(const void *self, pc_collective collective, const pc_group *group, double size_bytes,
                         double *seconds) {
    const pc_profile_transfers *cost = self;
    int64_t fit = group->domains == 1 ? find_transfer(cost, pc_measured_collective_name(collective), group->ranks) : -1;
    if (fit < 0)
        pc_notes_unmeasured(cost->notes, collective, group->ranks, group->domains);
    else
        *seconds = transfer_s(cost, fit, size_bytes);
    return fit >= 0;
}

static bool message_s(const void *self, const pc_hop *hop, double size_bytes, double *seconds) {
    const pc_profile_transfers *cost = self;
    int64_t fit = hop->in_domain ? find_transfer(cost, pc_measured_collective_name(PC_COLLECTIVES), 2) : -1;
    if (fit < 0)
        pc_notes_unmeasured(cost->notes, PC_COLLECTIVES, 2, hop->in_domain ? 1 : 2);
    else
        *seconds = transfer_s(cost, fit, size_bytes);
    return fit >= 0;
}

void pc_profile_transfers_set(pc_profile_transfers *transfers, const pc_profile *profile, pc_notes *notes) {
    *transfers = (pc_profile_transfers){profile, notes, {transfers, collective_s, message_s}};
}
