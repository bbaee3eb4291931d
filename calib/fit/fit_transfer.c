/* Parameters of a fit of pieces: alpha, beta and scatter of the first, and for each further one where it begins and its
 * own three. Pieces that meet are fitted together, a chain at a time; a jump between chains stands still while they are
 * fitted: it lies between two sizes, and no derivative says where. */
#include "calib/fit/fit_private.h"

#include "engine/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ALPHA, BETA, SCATTER, BEGIN, A_PIECE }; /* BEGIN is that of the next piece */

/* ---- a chain, while it is fitted: what it takes where it begins, its first beta, then a corner and a beta for each
 * further piece ---- */

typedef struct chain {
    int first, pieces;    /* of all pieces */
    int64_t begin, count; /* of the points */
    double origin;        /* where it begins; 0 of the first */
} chain;

typedef struct intercept {
    double alpha, gradient[PC_FIT_PARAMETERS];
    int beta; /* which parameter is the piece's beta */
} intercept;

static void turn_corner(intercept *at, const double *parameter, int corner) {
    int before = at->beta, behind = corner + 1;
    double x = parameter[corner], slower = 1.0 / parameter[before] - 1.0 / parameter[behind];
    at->alpha += x * slower;
    at->gradient[corner] += slower;
    at->gradient[before] -= x / (parameter[before] * parameter[before]);
    at->gradient[behind] += x / (parameter[behind] * parameter[behind]);
    at->beta = behind;
}

/* Of the piece that x lies in, but none behind `last`. */
static intercept intercept_at(const chain *c, const double *parameter, double bytes, int last) {
    double before = c->origin / parameter[1];
    intercept at = {.alpha = parameter[0] - before, .gradient = {1.0, before / parameter[1]}, .beta = 1};
    for (int piece = 1; piece <= last && bytes > parameter[2 * (size_t)piece]; piece++)
        turn_corner(&at, parameter, 2 * piece);
    return at;
}

static double chain_seconds(const void *self, const double *parameter, const double *point, double *gradient) {
    const chain *c = self;
    intercept at = intercept_at(c, parameter, *point, c->pieces - 1);
    double beta = parameter[at.beta];
    if (gradient) {
        memcpy(gradient, at.gradient, sizeof at.gradient);
        gradient[at.beta] -= *point / (beta * beta);
    }
    return at.alpha + *point / beta;
}

/* Where to start: above zero, for the logarithms; a thousandth of the time stands for nothing. */
static void start_chain(const pc_fit *fit, const pc_pieces *pieces, const chain *c, double *parameter) {
    for (int i = 0; i < c->pieces; i++) {
        int piece = c->first + i;
        double from = piece == 0 ? fit->least[0] : pieces->end[piece - 1];
        double to = piece + 1 < pieces->count ? pieces->end[piece] : fit->most[0];
        double least = 1e-3 * (pieces->alpha[piece] + pieces->gamma[piece] * from);
        double value = pieces->alpha[piece] + pieces->gamma[piece] * c->origin;
        double gamma = pieces->gamma[piece] > least / to ? pieces->gamma[piece] : least / to;
        parameter[2 * (size_t)i] = i > 0 ? from : value > least ? value : least;
        parameter[2 * (size_t)i + 1] = 1.0 / gamma;
    }
}

/* ---- the parameters that are kept ---- */

static int at_piece(int piece, int what) {
    return A_PIECE * piece + what;
}

/* Row `at` of the derivatives of what is kept by what was fitted. */
typedef struct turned {
    int count, at[PC_FIT_PARAMETERS];
    double by[PC_FIT_PARAMETERS][PC_FIT_PARAMETERS];
} turned;

static double *turned_row(turned *t, pc_fit *fit, int at, double value) {
    fit->parameter[at] = value;
    t->at[t->count] = at;
    return t->by[t->count++];
}

static void turn_piece(const double *fitted, const chain *c, int i, turned *t, pc_fit *fit) {
    int piece = c->first + i;
    intercept line = intercept_at(c, fitted, HUGE_VAL, i);
    if (i > 0) turned_row(t, fit, at_piece(piece - 1, BEGIN), fitted[2 * (size_t)i])[2 * (size_t)i] = 1.0;
    memcpy(turned_row(t, fit, at_piece(piece, ALPHA), line.alpha), line.gradient, sizeof line.gradient);
    turned_row(t, fit, at_piece(piece, BETA), fitted[2 * (size_t)i + 1])[2 * (size_t)i + 1] = 1.0;
}

static void keep_chain(const chain *c, const pc_robust_solution *solution, turned *t, pc_fit *fit) {
    int n = 2 * c->pieces;
    memset(t, 0, sizeof *t);
    for (int i = 0; i < c->pieces; i++) {
        turn_piece(solution->parameter, c, i, t, fit);
        fit->parameter[at_piece(c->first + i, SCATTER)] = solution->deviation;
    }
    for (int a = 0; a < t->count; a++)
        for (int b = 0; b < t->count; b++) {
            double sum = 0.0;
            for (int i = 0; i < n; i++)
                for (int j = 0; j < n; j++) sum += t->by[a][i] * solution->covariance[i * n + j] * t->by[b][j];
            fit->covariance[t->at[a] * fit->parameter_count + t->at[b]] = sum;
        }
}

/* Anywhere between the last size of one piece and the first of the next. */
static void keep_jump(const pc_pieces *pieces, int piece, pc_fit *fit) {
    int at = at_piece(piece, BEGIN);
    double end = pieces->end[piece], next = pieces->next[piece];
    fit->parameter[at] = sqrt(end * next);
    fit->covariance[at * fit->parameter_count + at] = (next - end) * (next - end) / 12.0;
}

static pc_parameter_label label(int i) {
    static const char *const names[A_PIECE][2] = {[ALPHA] = {"alpha", "s"},
                                                  [BETA] = {"beta", "bytes/s"},
                                                  [SCATTER] = {"scatter", ""},
                                                  [BEGIN] = {"begin", "bytes"}};
    int what = i % A_PIECE, piece = i / A_PIECE + (what == BEGIN);
    pc_parameter_label label = {.unit = names[what][1]};
    snprintf(label.name, sizeof label.name, "%s %d", names[what][0], piece + 1);
    return label;
}

/* ---- the fit ---- */

/* The pieces from `first` on that meet, and their points. */
static chain chain_from(const pc_fit *fit, const pc_pieces *pieces, int first, int64_t begin) {
    double origin = first > 0 ? sqrt(pieces->end[first - 1] * pieces->next[first - 1]) : 0.0;
    chain c = {.first = first, .pieces = 1, .begin = begin, .origin = origin};
    while (c.first + c.pieces < pieces->count && pieces->is_joined[c.first + c.pieces - 1]) c.pieces++;
    double end = pieces->end[c.first + c.pieces - 1];
    while (c.begin + c.count < fit->count && fit->x[c.begin + c.count] <= end) c.count++;
    return c;
}

static pc_code fit_chain(pc_fit *fit, const pc_pieces *pieces, const chain *c, turned *t, pc_error *error) {
    pc_robust_problem problem = {.seconds_at = chain_seconds,
                                 .self = c,
                                 .parameters = 2 * c->pieces,
                                 .dimensions = 1,
                                 .x = fit->x + c->begin,
                                 .seconds = fit->seconds + c->begin,
                                 .count = c->count,
                                 .usual_deviation = pieces->deviation};
    pc_robust_solution solution = {.residual = fit->residual + c->begin};
    start_chain(fit, pieces, c, solution.parameter);
    pc_code code = pc_robust_fit(&problem, &solution, error);
    if (!code) keep_chain(c, &solution, t, fit);
    return code;
}

static pc_code fit_chains(pc_fit *fit, const pc_pieces *pieces, turned *t, pc_error *error) {
    int64_t begin = 0;
    for (int first = 0; first < pieces->count;) {
        chain c = chain_from(fit, pieces, first, begin);
        pc_code code = fit_chain(fit, pieces, &c, t, error);
        if (code) return code;
        first += c.pieces, begin += c.count;
        if (first < pieces->count) keep_jump(pieces, first - 1, fit);
    }
    return PC_OK;
}

static int64_t count_sizes(const pc_fit *fit) {
    int64_t sizes = 0;
    for (int64_t i = 0; i < fit->count; i++) sizes += i == 0 || fit->x[i] > fit->x[i - 1];
    return sizes;
}

static pc_code fit_transfer(pc_fit *fit, const double *near, pc_error *error) {
    (void)near;
    pc_pieces pieces;
    int64_t sizes = count_sizes(fit);
    if (fit->count < PC_TRANSFER_POINTS || sizes < PC_TRANSFER_SIZES)
        return pc_error_set(error, PC_ERROR_INPUT, "%lld points of %lld sizes; expected at least %d points of %d sizes",
                            (long long)fit->count, (long long)sizes, PC_TRANSFER_POINTS, PC_TRANSFER_SIZES);
    turned *t = pc_alloc(1, sizeof *t);
    double *work = pc_alloc((size_t)fit->count, sizeof *work);
    pc_code code =
        t && work ? pc_pieces_find(fit->x, fit->seconds, fit->count, &pieces, error) : pc_error_no_memory(error);
    if (!code) {
        fit->parameter_count = A_PIECE * pieces.count - 1;
        pc_fit_name_parameters(fit);
        code = fit_chains(fit, &pieces, t, error);
    }
    if (!code) {
        fit->residual_deviation = pc_robust_deviation(fit->residual, fit->count, work);
        code = pc_local_fit(fit, error);
    }
    pc_free(work);
    pc_free(t);
    return code;
}

/* Of few points what all show counts as 5 of them. */
void pc_transfer_scatter(pc_fit *fit, const double *residual, double *work) {
    static const double usual_points = 5.0;
    int64_t from = 0;
    for (int piece = 0; at_piece(piece, SCATTER) < fit->parameter_count; piece++) {
        int begin = at_piece(piece, BEGIN);
        double end = begin < fit->parameter_count ? fit->parameter[begin] : HUGE_VAL;
        int64_t to = from;
        while (to < fit->count && fit->x[to] <= end) to++;
        double own = pc_robust_deviation(residual + from, to - from, work), count = (double)(to - from);
        double usual = fit->residual_deviation;
        fit->parameter[at_piece(piece, SCATTER)] =
            sqrt((count * own * own + usual_points * usual * usual) / (count + usual_points));
        from = to;
    }
}

static void widen(pc_fit *fit, double factor) {
    for (int piece = 0; at_piece(piece, SCATTER) < fit->parameter_count; piece++)
        fit->parameter[at_piece(piece, SCATTER)] *= factor;
}

static double seconds_at(const pc_fit *fit, const double *point, double *gradient, double *scatter) {
    int piece = 0;
    while (at_piece(piece, BEGIN) < fit->parameter_count && *point > fit->parameter[at_piece(piece, BEGIN)]) piece++;
    const double *parameter = fit->parameter + at_piece(piece, 0);
    if (gradient) {
        gradient[at_piece(piece, ALPHA)] = 1.0;
        gradient[at_piece(piece, BETA)] = -*point / (parameter[BETA] * parameter[BETA]);
    }
    *scatter = parameter[SCATTER];
    return parameter[ALPHA] + *point / parameter[BETA];
}

/* ---- the forms ---- */

/* Of pieces three of the first, four of each behind it. */
static bool has_parameters(const pc_fit *fit) {
    return fit->parameter_count % A_PIECE == A_PIECE - 1 && fit->parameter_count < A_PIECE * PC_PIECES_MAX;
}

#define PIECES_FORM                                                                                                    \
    {                                                                                                                  \
        .dimensions = 1, .dimension = {"bytes"}, .label = label, .fit = fit_transfer, .seconds = seconds_at,           \
        .left = pc_local_at, .has_parameters = has_parameters, .widen = widen                                          \
    }
const pc_form pc_form_transfer = PIECES_FORM;
const pc_form pc_form_memory = PIECES_FORM;
