/* Collectives of any size and number of ranks: the law of fit_law.h, and what it leaves.
 *
 * At measured numbers of ranks the mean residual of each size is kept, and between sizes of one protocol a line in
 * bytes. Other numbers of ranks take it from the nearest that was measured, with an error that grows with the distance.
 */
#include "calib/fit/fit_law.h"
#include "calib/fit/fit_terms.h"
#include "engine/alloc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parameters: the terms of the protocols, the switches' law, then of each number of ranks its own switches ---- */

enum {
    TERMS = PC_LAW_PROTOCOLS * PC_LAW_TERMS,
    HEAD = TERMS + 2 * PC_LAW_SWITCHES,
    A_RANK = 1 + PC_LAW_SWITCHES,
};

/* Standard error of log(seconds) for a number of ranks twice or half of what was measured: laws of 2 and 4 GPUs that
 * foretell 8 of them, on five kinds of GPUs (docs/calibration.md). */
static const double error_an_octave = 0.1;

/* Scatter of repeated measurements is never less. */
static const double least_deviation = 1e-4;

static pc_parameter_label label(int i) {
    static const char *const names[PC_LAW_TERMS] = {"alpha", "step", "own", "link"};
    pc_parameter_label made = {.unit = ""};
    if (i < TERMS) {
        bool is_time = i % PC_LAW_TERMS < 2;
        snprintf(made.name, sizeof made.name, "%s %d", names[i % PC_LAW_TERMS], i / PC_LAW_TERMS + 1);
        made.unit = is_time ? "s" : "s/byte";
    } else if (i < HEAD) {
        bool is_size = (i - TERMS) % 2 == 0;
        snprintf(made.name, sizeof made.name, "%s %d", is_size ? "switch" : "power", (i - TERMS) / 2 + 2);
        made.unit = is_size ? "bytes" : "";
    } else {
        int number = (i - HEAD) / A_RANK + 1, what = (i - HEAD) % A_RANK;
        if (what == 0)
            snprintf(made.name, sizeof made.name, "ranks %d", number);
        else
            snprintf(made.name, sizeof made.name, "switch %d of ranks %d", what + 1, number);
        made.unit = what == 0 ? "" : "bytes";
    }
    return made;
}

static int count_ranks(const pc_fit *fit) {
    return (fit->parameter_count - HEAD) / A_RANK;
}

static const double *ranks_at(const pc_fit *fit, int i) {
    return fit->parameter + HEAD + (ptrdiff_t)A_RANK * i;
}

/* The row of the measured number of ranks that is nearest, by ratio. */
static const double *nearest_ranks(const pc_fit *fit, double ranks) {
    const double *nearest = ranks_at(fit, 0);
    int count = count_ranks(fit);
    for (int i = 1; i < count && nearest[0] < ranks; i++) {
        const double *next = ranks_at(fit, i);
        if (next[0] * nearest[0] > ranks * ranks) break;
        nearest = next;
    }
    return nearest;
}

/* The protocol of a size at this number of ranks; `nearest` is its row. */
static int protocol_at(const pc_fit *fit, const double *nearest, double bytes, double ranks) {
    int protocol = 0;
    for (int z = 0; z < PC_LAW_SWITCHES; z++) {
        const double *law = fit->parameter + TERMS + (ptrdiff_t)2 * z;
        double change = nearest[0] == ranks ? nearest[1 + z] : law[0] * pow(ranks / PC_LAW_RANKS_REFERENCE, law[1]);
        protocol += bytes > change;
    }
    return protocol;
}

static double seconds_at(const pc_fit *fit, const double *point, double *gradient, double *scatter) {
    double term[PC_LAW_TERMS];
    int first = PC_LAW_TERMS * protocol_at(fit, nearest_ranks(fit, point[1]), point[0], point[1]);
    (void)scatter;
    pc_law_terms(point[0], point[1], term);
    if (gradient) memcpy(gradient + first, term, sizeof term);
    return pc_law_sum(fit->parameter + first, term);
}

/* ---- what the law leaves: rows of x are by ranks, then bytes ---- */

static const double *row_of(const pc_fit *fit, int64_t i) {
    return fit->x + 2 * i;
}

/* The first row of at least so many bytes among those of so many ranks. */
static int64_t find_row(const pc_fit *fit, double bytes, double ranks) {
    int64_t low = 0, high = fit->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        const double *x = row_of(fit, middle);
        if (x[1] < ranks || (x[1] == ranks && x[0] < bytes))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_of(const pc_fit *fit, int64_t i, const double *ranks, int protocol) {
    if (i < 0 || i >= fit->count || row_of(fit, i)[1] != ranks[0]) return false;
    return protocol_at(fit, ranks, row_of(fit, i)[0], ranks[0]) == protocol;
}

/* Of rows `before` and `behind`, where they are of this protocol. */
static double between(const pc_fit *fit, int64_t before, int64_t behind, const double *ranks, int protocol,
                      double bytes) {
    bool has_before = is_of(fit, before, ranks, protocol), has_behind = is_of(fit, behind, ranks, protocol);
    if (!has_before && !has_behind) return 0.0;
    if (!has_before || !has_behind) return fit->weight[has_before ? before : behind];
    double low = row_of(fit, before)[0], high = row_of(fit, behind)[0];
    double part = high > low ? (bytes - low) / (high - low) : 0.0;
    return fit->weight[before] + part * (fit->weight[behind] - fit->weight[before]);
}

/* The sizes of the protocol at the row's number of ranks, which may change it elsewhere than the one that is asked. */
static double move_in(const double *ranks, int protocol, double bytes) {
    double low = protocol > 0 ? nextafter(ranks[protocol], HUGE_VAL) : bytes;
    double high = protocol < PC_LAW_SWITCHES ? ranks[1 + protocol] : bytes;
    return bytes < low ? low : bytes > high ? high : bytes;
}

static double left_at(const pc_fit *fit, const double *point, double *variance) {
    if (!fit->weight) return 0.0;
    const double *ranks = nearest_ranks(fit, point[1]);
    int protocol = protocol_at(fit, ranks, point[0], point[1]);
    double bytes = point[0];
    if (ranks[0] != point[1]) {
        double away = error_an_octave * log2(point[1] / ranks[0]);
        *variance = away * away;
        bytes = move_in(ranks, protocol, bytes);
    }
    int64_t row = find_row(fit, bytes, ranks[0]);
    return between(fit, row - 1, row, ranks, protocol, bytes);
}

/* ---- the fit ---- */

typedef struct measured {
    double ranks, bytes, seconds;
} measured;

static int by_ranks(const void *a, const void *b) {
    const measured *x = a, *y = b;
    if (x->ranks != y->ranks) return x->ranks < y->ranks ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

static pc_code sort_rows(pc_fit *fit, pc_error *error) {
    measured *rows = pc_alloc((size_t)fit->count, sizeof *rows);
    if (!rows) return pc_error_no_memory(error);
    for (int64_t i = 0; i < fit->count; i++) rows[i] = (measured){fit->x[2 * i + 1], fit->x[2 * i], fit->seconds[i]};
    qsort(rows, (size_t)fit->count, sizeof *rows, by_ranks);
    for (int64_t i = 0; i < fit->count; i++) {
        fit->x[2 * i] = rows[i].bytes;
        fit->x[2 * i + 1] = rows[i].ranks;
        fit->seconds[i] = rows[i].seconds;
    }
    pc_free(rows);
    return PC_OK;
}

static bool is_same_site(const double *a, const double *b) {
    return a[0] == b[0] && a[1] == b[1];
}

/* The end of the rows that are of one size and number of ranks. */
static int64_t site_end(const pc_fit *fit, int64_t begin) {
    int64_t end = begin + 1;
    while (end < fit->count && is_same_site(row_of(fit, end), row_of(fit, begin))) end++;
    return end;
}

/* Rows are in order of seconds inside a site. */
static int64_t make_sites(const pc_fit *fit, pc_law_site *sites) {
    int64_t count = 0;
    for (int64_t i = 0, end; i < fit->count; i = end) {
        end = site_end(fit, i);
        double middle = 0.5 * (fit->seconds[i + (end - i - 1) / 2] + fit->seconds[i + (end - i) / 2]);
        sites[count++] = (pc_law_site){row_of(fit, i)[0], row_of(fit, i)[1], middle};
    }
    return count;
}

static void keep_law(const pc_law *law, pc_fit *fit) {
    memcpy(fit->parameter, law->term, sizeof law->term);
    for (int z = 0; z < PC_LAW_SWITCHES; z++) {
        fit->parameter[TERMS + 2 * z] = law->at[z];
        fit->parameter[TERMS + 2 * z + 1] = law->power[z];
    }
    for (int g = 0; g < law->ranks; g++) {
        double *row = fit->parameter + HEAD + (ptrdiff_t)A_RANK * g;
        row[0] = law->rank[g];
        memcpy(row + 1, law->change[g], sizeof law->change[g]);
    }
    fit->parameter_count = HEAD + A_RANK * law->ranks;
    pc_fit_name_parameters(fit);
}

/* Terms of a protocol once more, for how well they are known. Rows are those of the law's protocols. */
static void keep_covariance(pc_fit *fit, double *term, bool *is_in) {
    int n = fit->parameter_count;
    double squared = fit->residual_deviation * fit->residual_deviation;
    for (int64_t i = 0; i < fit->count; i++)
        pc_law_terms(row_of(fit, i)[0], row_of(fit, i)[1], term + PC_LAW_TERMS * i);
    for (int p = 0; p < PC_LAW_PROTOCOLS; p++) {
        double parameter[PC_LAW_TERMS], covariance[PC_LAW_TERMS * PC_LAW_TERMS] = {0};
        pc_terms terms = {PC_LAW_TERMS, fit->count, term, fit->seconds, is_in};
        for (int64_t i = 0; i < fit->count; i++) {
            const double *x = row_of(fit, i);
            is_in[i] = protocol_at(fit, nearest_ranks(fit, x[1]), x[0], x[1]) == p;
        }
        pc_terms_fit(&terms, parameter, covariance);
        for (int a = 0; a < PC_LAW_TERMS; a++)
            for (int b = 0; b < PC_LAW_TERMS; b++)
                fit->covariance[(PC_LAW_TERMS * p + a) * n + PC_LAW_TERMS * p + b] =
                    squared * covariance[PC_LAW_TERMS * a + b];
    }
}

/* Residuals of the law; of each row's site the mean, and what neighbours would say of it, which is how far they lie
 * from what was not measured. `away` has room for count. */
static void keep_left(pc_fit *fit, double *away) {
    for (int64_t i = 0, end; i < fit->count; i = end) {
        double sum = 0.0;
        end = site_end(fit, i);
        for (int64_t k = i; k < end; k++) sum += log(fit->seconds[k] / seconds_at(fit, row_of(fit, k), NULL, NULL));
        for (int64_t k = i; k < end; k++) fit->weight[k] = sum / (double)(end - i);
    }
    for (int64_t i = 0, end; i < fit->count; i = end) {
        const double *x = row_of(fit, i), *ranks = nearest_ranks(fit, x[1]);
        end = site_end(fit, i);
        double said = between(fit, i - 1, end, ranks, protocol_at(fit, ranks, x[0], x[1]), x[0]);
        for (int64_t k = i; k < end; k++) {
            double residual = log(fit->seconds[k] / seconds_at(fit, x, NULL, NULL));
            fit->residual[k] = residual - fit->weight[k];
            away[k] = residual - said;
        }
    }
}

static pc_code check_rows(const pc_fit *fit, pc_error *error) {
    int ranks = 0;
    for (int64_t i = 0; i < fit->count; i++) {
        if (row_of(fit, i)[1] < 2.0)
            return pc_error_set(error, PC_ERROR_INPUT, "%s: %g ranks; expected at least 2", fit->key.subject,
                                row_of(fit, i)[1]);
        ranks += i == 0 || row_of(fit, i)[1] > row_of(fit, i - 1)[1];
    }
    if (fit->count < PC_LAW_POINTS || ranks < PC_LAW_RANKS_LEAST)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%lld points of %d numbers of ranks; expected at least %d points of %d",
                            (long long)fit->count, ranks, PC_LAW_POINTS, PC_LAW_RANKS_LEAST);
    return PC_OK;
}

/* `work` has room for 4 times count. */
static pc_code fit_rows(pc_fit *fit, pc_law_site *sites, bool *is_in, double *work, pc_error *error) {
    pc_law law;
    int64_t count = make_sites(fit, sites);
    pc_code code = pc_law_search(sites, count, &law, error);
    if (code) return code;
    double *away = work + fit->count;
    keep_law(&law, fit);
    keep_left(fit, away);
    double deviation = pc_robust_deviation(away, fit->count, work);
    fit->residual_deviation = deviation > least_deviation ? deviation : least_deviation;
    keep_covariance(fit, work, is_in);
    return PC_OK;
}

static pc_code fit_law(pc_fit *fit, const double *near, pc_error *error) {
    (void)near;
    pc_code code = sort_rows(fit, error);
    if (!code) code = check_rows(fit, error);
    if (code) return code;
    pc_law_site *sites = pc_alloc((size_t)fit->count, sizeof *sites);
    bool *is_in = pc_alloc((size_t)fit->count, sizeof *is_in);
    double *work = pc_alloc(PC_LAW_TERMS * (size_t)fit->count, sizeof *work);
    code = sites && is_in && work ? fit_rows(fit, sites, is_in, work, error) : pc_error_no_memory(error);
    pc_free(sites);
    pc_free(is_in);
    pc_free(work);
    return code;
}

/* ---- what was read ---- */

static bool has_parameters(const pc_fit *fit) {
    int ranks = count_ranks(fit);
    return ranks >= 1 && ranks <= PC_LAW_RANKS && fit->parameter_count == HEAD + A_RANK * ranks;
}

static bool has_ranks(const pc_fit *fit) {
    int ranks = count_ranks(fit);
    for (int i = 0; i < ranks; i++)
        if (!(ranks_at(fit, i)[0] >= 2.0) || (i > 0 && !(ranks_at(fit, i)[0] > ranks_at(fit, i - 1)[0]))) return false;
    return true;
}

/* Terms not below zero, and of each protocol some above. */
static bool has_rates(const pc_fit *fit) {
    for (int p = 0; p < PC_LAW_PROTOCOLS; p++) {
        const double *term = fit->parameter + (ptrdiff_t)PC_LAW_TERMS * p;
        double sum = 0.0;
        for (int i = 0; i < PC_LAW_TERMS; i++) {
            if (!(term[i] >= 0.0)) return false;
            sum += term[i];
        }
        if (!(sum > 0.0)) return false;
    }
    return has_ranks(fit);
}

const pc_form pc_form_law = {.dimensions = 2,
                             .dimension = {"bytes", "ranks"},
                             .has_weights = true,
                             .label = label,
                             .fit = fit_law,
                             .seconds = seconds_at,
                             .left = left_at,
                             .has_parameters = has_parameters,
                             .has_rates = has_rates};
