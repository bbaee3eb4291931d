#include "calib/device/statistics.h"

#include "engine/order.h"

#include <string.h>

static void sort_into(const double *samples, int64_t count, double *room) {
    memcpy(room, samples, (size_t)count * sizeof *room);
    pc_sort_reals(room, count);
}

void pc_statistics_of(const double *samples, int64_t count, double *room, pc_statistics *statistics) {
    sort_into(samples, count, room);
    *statistics = (pc_statistics){.count = count,
                                  .median = pc_quantile_at(room, count, 0.5),
                                  .q1 = pc_quantile_at(room, count, 0.25),
                                  .q3 = pc_quantile_at(room, count, 0.75),
                                  .p5 = pc_quantile_at(room, count, 0.05),
                                  .p95 = pc_quantile_at(room, count, 0.95),
                                  .least = room[0]};
}

double pc_relative_range(const double *samples, int64_t count, double *room) {
    sort_into(samples, count, room);
    double median = pc_quantile_at(room, count, 0.5);
    return median > 0.0 ? (pc_quantile_at(room, count, 0.75) - pc_quantile_at(room, count, 0.25)) / median : 0.0;
}
