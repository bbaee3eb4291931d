/* Four terms, none below zero, by weighted least squares of relative errors: the best of all subsets of terms. */
#include "calib/fit/fit_law.h"

#include <math.h>
#include <string.h>

enum { T = PC_LAW_TERMS };

typedef struct normal {
    double a[T][T], b[T];
} normal;

/* Errors beyond this count by their size alone, not squared. */
static const double usual_error = 0.08;

static void add_site(normal *n, const pc_law_site *site, double weight) {
    double term[T];
    pc_law_terms(site->bytes, site->ranks, term);
    for (int i = 0; i < T; i++) {
        n->b[i] += weight * term[i] / site->seconds;
        for (int j = 0; j < T; j++) n->a[i][j] += weight * (term[i] / site->seconds) * (term[j] / site->seconds);
    }
}

/* Every term in units in which its own sum is 1; sums that cannot be told apart are shared. */
static void scale(normal *n, double unit[T]) {
    static const double ridge = 1e-9;
    for (int i = 0; i < T; i++) unit[i] = n->a[i][i] > 0.0 ? 1.0 / sqrt(n->a[i][i]) : 0.0;
    for (int i = 0; i < T; i++) {
        n->b[i] *= unit[i];
        for (int j = 0; j < T; j++) n->a[i][j] *= unit[i] * unit[j];
        n->a[i][i] = 1.0 + ridge;
    }
}

/* Of the terms in `set`, in place of the others 0. By Cholesky's way; `a` is positive definite. */
static void solve(const normal *n, unsigned set, const double b[T], double x[T]) {
    double l[T][T] = {{0}};
    for (int i = 0; i < T; i++) {
        x[i] = 0.0;
        if (!(set >> i & 1u)) continue;
        double sum = b[i];
        for (int j = 0; j < i; j++) {
            if (!(set >> j & 1u)) continue;
            double entry = n->a[i][j];
            for (int k = 0; k < j; k++) entry -= l[i][k] * l[j][k];
            l[i][j] = entry / l[j][j];
            sum -= l[i][j] * x[j];
        }
        double rest = n->a[i][i];
        for (int k = 0; k < i; k++) rest -= l[i][k] * l[i][k];
        l[i][i] = sqrt(rest > 1e-12 ? rest : 1e-12);
        x[i] = sum / l[i][i];
    }
    for (int i = T - 1; i >= 0; i--) {
        if (!(set >> i & 1u)) continue;
        for (int k = i + 1; k < T; k++) x[i] -= l[k][i] * x[k];
        x[i] /= l[i][i];
    }
}

static double loss_of(const normal *n, const double x[T]) {
    double sum = 0.0;
    for (int i = 0; i < T; i++) {
        sum -= 2.0 * n->b[i] * x[i];
        for (int j = 0; j < T; j++) sum += x[i] * n->a[i][j] * x[j];
    }
    return sum;
}

static unsigned solve_above_zero(const normal *n, double best[T]) {
    double least = HUGE_VAL;
    unsigned kept = 0;
    for (unsigned set = 1; set < 1u << T; set++) {
        double x[T];
        bool is_above = true;
        solve(n, set, n->b, x);
        for (int i = 0; i < T; i++) is_above = is_above && x[i] >= 0.0;
        double loss = is_above ? loss_of(n, x) : HUGE_VAL;
        if (!(loss < least - 1e-12)) continue;
        least = loss;
        kept = set;
        memcpy(best, x, sizeof x);
    }
    return kept;
}

static void keep_covariance(const normal *n, unsigned set, const double unit[T], double covariance[T][T]) {
    for (int i = 0; i < T; i++) {
        double one[T] = {0}, column[T];
        one[i] = 1.0;
        solve(n, set & (set >> i & 1u ? ~0u : 0u), one, column);
        for (int j = 0; j < T; j++) covariance[i][j] = unit[i] * unit[j] * column[j];
    }
}

void pc_law_fit_terms(const pc_law_site *sites, const bool *is_in, int64_t count, double parameter[T],
                      double covariance[T][T]) {
    enum { ROUNDS = 4 };
    memset(parameter, 0, T * sizeof *parameter);
    for (int round = 0; round < ROUNDS; round++) {
        normal n = {0};
        double unit[T];
        for (int64_t i = 0; i < count; i++) {
            if (!is_in[i]) continue;
            double term[T], error = usual_error;
            pc_law_terms(sites[i].bytes, sites[i].ranks, term);
            if (round > 0) error = fabs(pc_law_sum(parameter, term) / sites[i].seconds - 1.0);
            add_site(&n, &sites[i], error > usual_error ? usual_error / error : 1.0);
        }
        scale(&n, unit);
        unsigned set = solve_above_zero(&n, parameter);
        if (round + 1 == ROUNDS && covariance) keep_covariance(&n, set, unit, covariance);
        for (int i = 0; i < T; i++) parameter[i] *= unit[i];
    }
}
