#include "engine/order.h"

#include <math.h>
#include <stdlib.h>

int pc_compare_reals(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int pc_compare_integers(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void pc_sort_reals(double *numbers, int64_t count) {
    if (count > 0) qsort(numbers, (size_t)count, sizeof *numbers, pc_compare_reals);
}

double pc_quantile_at(const double *sorted, int64_t count, double p) {
    double place = p * (double)(count - 1);
    int64_t below = (int64_t)floor(place);
    if (below < 0) return sorted[0];
    if (below >= count - 1) return sorted[count - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}
