/* Sums of few terms by weighted least squares of relative errors: the best of all subsets of terms. */
#include "calib/fit/fit_terms.h"

#include <math.h>
#include <string.h>

enum { T = PC_TERMS_MAX };

typedef struct normal {
    int terms;
    double a[T][T], b[T];
} normal;

/* Errors beyond this count by their size alone, not squared. */
static const double usual_error = 0.08;

static double sum_of(const pc_terms *terms, int64_t i, const double *parameter) {
    double sum = 0.0;
    for (int k = 0; k < terms->terms; k++) sum += parameter[k] * terms->row[i * terms->terms + k];
    return sum;
}

static void add_row(normal *n, const double *row, double seconds, double weight) {
    for (int i = 0; i < n->terms; i++) {
        n->b[i] += weight * row[i] / seconds;
        for (int j = 0; j < n->terms; j++) n->a[i][j] += weight * (row[i] / seconds) * (row[j] / seconds);
    }
}

static void add_rows(normal *n, const pc_terms *terms, const double *before) {
    for (int64_t i = 0; i < terms->count; i++) {
        if (terms->is_in && !terms->is_in[i]) continue;
        double error = before ? fabs(sum_of(terms, i, before) / terms->seconds[i] - 1.0) : 0.0;
        double weight = error > usual_error ? usual_error / error : 1.0;
        add_row(n, terms->row + i * terms->terms, terms->seconds[i], weight);
    }
}

/* Every term in units in which its own sum is 1; what cannot be told apart is shared. */
static void scale(normal *n, double unit[T]) {
    static const double ridge = 1e-9;
    for (int i = 0; i < n->terms; i++) unit[i] = n->a[i][i] > 0.0 ? 1.0 / sqrt(n->a[i][i]) : 0.0;
    for (int i = 0; i < n->terms; i++) {
        n->b[i] *= unit[i];
        for (int j = 0; j < n->terms; j++) n->a[i][j] *= unit[i] * unit[j];
        n->a[i][i] = 1.0 + ridge;
    }
}

static bool has(unsigned set, int i) {
    return i < T && set >> i & 1u;
}

/* l l' = a, of the terms in `set`. */
static void decompose(const normal *n, unsigned set, double l[T][T]) {
    for (int i = 0; i < n->terms; i++) {
        if (!has(set, i)) continue;
        double rest = n->a[i][i];
        for (int j = 0; j < i; j++) {
            if (!has(set, j)) continue;
            double entry = n->a[i][j];
            for (int k = 0; k < j; k++)
                if (has(set, k)) entry -= l[i][k] * l[j][k];
            l[i][j] = entry / l[j][j];
            rest -= l[i][j] * l[i][j];
        }
        l[i][i] = sqrt(rest > 1e-12 ? rest : 1e-12);
    }
}

/* a x = b of the terms in `set`; the others are 0. */
static void solve(const normal *n, unsigned set, const double b[T], double x[T]) {
    double l[T][T];
    decompose(n, set, l);
    for (int i = 0; i < n->terms; i++) {
        x[i] = 0.0;
        if (!has(set, i)) continue;
        double sum = b[i];
        for (int j = 0; j < i; j++)
            if (has(set, j)) sum -= l[i][j] * x[j];
        x[i] = sum / l[i][i];
    }
    for (int i = n->terms - 1; i >= 0; i--) {
        if (!has(set, i)) continue;
        for (int k = i + 1; k < n->terms; k++)
            if (has(set, k)) x[i] -= l[k][i] * x[k];
        x[i] /= l[i][i];
    }
}

static double loss_of(const normal *n, const double x[T]) {
    double sum = 0.0;
    for (int i = 0; i < n->terms; i++) {
        sum -= 2.0 * n->b[i] * x[i];
        for (int j = 0; j < n->terms; j++) sum += x[i] * n->a[i][j] * x[j];
    }
    return sum;
}

/* The set of terms that is kept. A term without a row that has it is none. */
static unsigned solve_above_zero(const normal *n, const double unit[T], double best[T]) {
    double least = 0.0;
    unsigned kept = 0;
    memset(best, 0, T * sizeof *best);
    for (unsigned set = 1; set < 1u << n->terms; set++) {
        double x[T];
        bool is_right = true;
        for (int i = 0; i < n->terms; i++) is_right = is_right && (!has(set, i) || unit[i] > 0.0);
        if (!is_right) continue;
        solve(n, set, n->b, x);
        for (int i = 0; i < n->terms; i++) is_right = is_right && x[i] >= 0.0;
        double loss = is_right ? loss_of(n, x) : 0.0;
        if (!(loss < least - 1e-12)) continue;
        least = loss;
        kept = set;
        memcpy(best, x, (size_t)n->terms * sizeof *x);
    }
    return kept;
}

static void keep_covariance(const normal *n, unsigned set, const double unit[T], double *covariance) {
    for (int i = 0; i < n->terms; i++) {
        double one[T] = {0}, column[T];
        one[i] = 1.0;
        solve(n, has(set, i) ? set : 0u, one, column);
        for (int j = 0; j < n->terms; j++) covariance[i * n->terms + j] = unit[i] * unit[j] * column[j];
    }
}

void pc_terms_fit(const pc_terms *terms, double *parameter, double *covariance) {
    enum { ROUNDS = 4 };
    for (int round = 0; round < ROUNDS; round++) {
        normal n = {.terms = terms->terms};
        double unit[T], best[T];
        add_rows(&n, terms, round > 0 ? parameter : NULL);
        scale(&n, unit);
        unsigned set = solve_above_zero(&n, unit, best);
        if (round + 1 == ROUNDS && covariance) keep_covariance(&n, set, unit, covariance);
        for (int i = 0; i < n.terms; i++) parameter[i] = best[i] * unit[i];
    }
}
