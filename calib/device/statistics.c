#include "calib/device/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double pc_quantile(const double *sorted, int64_t count, double p) {
    double place = p * (double)(count - 1);
    int64_t below = (int64_t)floor(place);
    if (below < 0) return sorted[0];
    if (below >= count - 1) return sorted[count - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort_into(const double *samples, int64_t count, double *room) {
    memcpy(room, samples, (size_t)count * sizeof *room);
    qsort(room, (size_t)count, sizeof *room, compare);
}

void pc_statistics_of(const double *samples, int64_t count, double *room, pc_statistics *statistics) {
    sort_into(samples, count, room);
    *statistics = (pc_statistics){.count = count,
                                  .median = pc_quantile(room, count, 0.5),
                                  .q1 = pc_quantile(room, count, 0.25),
                                  .q3 = pc_quantile(room, count, 0.75),
                                  .p5 = pc_quantile(room, count, 0.05),
                                  .p95 = pc_quantile(room, count, 0.95),
                                  .least = room[0]};
}

double pc_relative_range(const double *samples, int64_t count, double *room) {
    sort_into(samples, count, room);
    double median = pc_quantile(room, count, 0.5);
    return median > 0.0 ? (pc_quantile(room, count, 0.75) - pc_quantile(room, count, 0.25)) / median : 0.0;
}
