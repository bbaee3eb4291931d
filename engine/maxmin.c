#include "engine/maxmin.h"

static const double NOT_FIXED = -1.0;

/* The link whose waiting flows get least if they share what is left of it; -1 if no flow waits. */
static int32_t tightest_link(int32_t link_count, const double *left, const int32_t *waiting, double *share) {
    int32_t tightest = -1;
    for (int32_t l = 0; l < link_count; l++) {
        if (waiting[l] == 0) continue;
        double here = left[l] / waiting[l];
        if (tightest >= 0 && here >= *share) continue;
        tightest = l;
        *share = here;
    }
    return tightest;
}

void pc_maxmin_rates(int32_t flow_count, const int32_t *offset, const int32_t *route, int32_t link_count,
                     const double *capacity, double *rate, double *left, int32_t *waiting) {
    for (int32_t l = 0; l < link_count; l++) {
        left[l] = capacity[l];
        waiting[l] = 0;
    }
    for (int32_t f = 0; f < flow_count; f++) {
        rate[f] = NOT_FIXED;
        for (int32_t i = offset[f]; i < offset[f + 1]; i++) waiting[route[i]]++;
    }
    double share = 0.0;
    for (int32_t tightest; (tightest = tightest_link(link_count, left, waiting, &share)) >= 0;) {
        for (int32_t f = 0; f < flow_count; f++) {
            if (rate[f] != NOT_FIXED) continue;
            int32_t i = offset[f];
            while (i < offset[f + 1] && route[i] != tightest) i++;
            if (i == offset[f + 1]) continue;
            rate[f] = share;
            for (i = offset[f]; i < offset[f + 1]; i++) {
                left[route[i]] -= share;
                if (left[route[i]] < 0.0) left[route[i]] = 0.0; /* rounding */
                waiting[route[i]]--;
            }
        }
    }
}
