#include "models/cost/spread.h"

/* Of 1, 2, 4, 8, ... numbers: the integral of x over the distribution of the largest, done numerically. */
static const double of_powers[] = {0.0,     0.56419, 1.02938, 1.42360, 1.76599, 2.06967, 2.34373, 2.59460,
                                   2.82686, 3.04390, 3.24824, 3.44180, 3.62608, 3.80228, 3.97135, 4.13408,
                                   4.29113, 4.44304, 4.59028, 4.73325, 4.87229, 5.00772, 5.13979, 5.26874,
                                   5.39477, 5.51808, 5.63883, 5.75718, 5.87325, 5.98718, 6.09908};
enum { LAST_POWER = sizeof of_powers / sizeof *of_powers - 1 };

/* On a straight line between two powers, which the curve runs above. */
double pc_expected_largest(int64_t count) {
    if (count < 2) return 0.0;
    int power = 0;
    while (power < LAST_POWER && count >> (power + 1) != 0) power++;
    if (power == LAST_POWER) return of_powers[LAST_POWER];
    int64_t below = INT64_C(1) << power;
    double part = (double)(count - below) / (double)below;
    return of_powers[power] + part * (of_powers[power + 1] - of_powers[power]);
}
