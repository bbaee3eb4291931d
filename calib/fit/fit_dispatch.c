/* What expert parallelism sends to experts (dispatch), and gets back from them (combine).
 *
 * A rank has t tokens of B bytes. Each goes to D ranks on M nodes of R ranks on N nodes (pc_expert_reached), by s
 * processors (SMs) that copy. The time is a start, and the longer of two:
 * - processors: t/s * (token + message * C + (read + write * C) * B) with C = D copies, and M more between nodes, whose
 *   messages are forwarded; and the link's bytes, link * t * B * D * (R-1)/R. They add up: a processor waits for its
 *   own messages.
 * - the network between nodes: t * B * m * (net + crowd * m), m = M * (N-1)/N messages that leave the node. `crowd`:
 * the more nodes a token goes to, the more senders meet at a receiver. The way of messages:
 * github.com/deepseek-ai/DeepEP, README. Dimensions are of one rank. Kernels that do not say how many processors they
 * keep busy have s = 1.
 */
#include "calib/fit/fit_private.h"
#include "calib/fit/fit_terms.h"
#include "engine/alloc.h"

#include <math.h>
#include <string.h>

enum { TOKENS, BYTES, REACHED_RANKS, REACHED_NODES, RANKS, NODES, PROCESSORS, DIMENSIONS };
enum { ALPHA, TOKEN, MESSAGE, READ, WRITE, LINK, NET, CROWD, TERMS };
_Static_assert((int)TERMS <= (int)PC_TERMS_MAX, "room for the terms");

enum { POINTS_LEAST = 16 };

/* Scatter is never less. */
static const double least_deviation = 1e-4;

static pc_parameter_label label(int i) {
    static const char *const names[TERMS] = {"alpha", "token", "message", "read", "write", "link", "net", "crowd"};
    pc_parameter_label made = {.unit = i >= READ ? "s/byte" : "s"};
    size_t length = strlen(names[i < TERMS ? i : 0]);
    memcpy(made.name, names[i < TERMS ? i : 0], length + 1);
    return made;
}

/* All terms; those of the processors and of the network are not added but compared. */
static void set_terms(const double *x, double term[TERMS]) {
    double tokens = x[TOKENS], bytes = tokens * x[BYTES], share = 1.0 / x[PROCESSORS];
    double copies = x[REACHED_RANKS] + (x[NODES] > 1.0 ? x[REACHED_NODES] : 0.0);
    double leave = x[REACHED_NODES] * (x[NODES] - 1.0) / x[NODES];
    term[ALPHA] = 1.0;
    term[TOKEN] = tokens * share;
    term[MESSAGE] = tokens * share * copies;
    term[READ] = bytes * share;
    term[WRITE] = bytes * share * copies;
    term[LINK] = bytes * x[REACHED_RANKS] * (x[RANKS] - 1.0) / x[RANKS];
    term[NET] = bytes * leave;
    term[CROWD] = bytes * leave * leave;
}

static void drop_terms(double term[TERMS], bool is_net) {
    for (int i = 1; i < TERMS; i++)
        if ((i >= NET) != is_net) term[i] = 0.0;
}

static double sum_terms(const double *parameter, const double *term, int from, int to) {
    double sum = 0.0;
    for (int i = from; i < to; i++) sum += parameter[i] * term[i];
    return sum;
}

/* Leaves the terms that count. */
static double seconds_of(const double *parameter, double term[TERMS]) {
    double by_processors = sum_terms(parameter, term, TOKEN, NET), by_net = sum_terms(parameter, term, NET, TERMS);
    bool is_net = by_net > by_processors;
    drop_terms(term, is_net);
    return parameter[ALPHA] + (is_net ? by_net : by_processors);
}

static double seconds_at(const pc_fit *fit, const double *point, double *gradient, double *scatter) {
    double term[TERMS];
    (void)scatter;
    set_terms(point, term);
    double seconds = seconds_of(fit->parameter, term);
    if (gradient) memcpy(gradient, term, sizeof term);
    return seconds;
}

/* ---- the fit: which points the network decides, and parameters, in turn ---- */

typedef struct work {
    double *row;  /* of the terms that count */
    bool *is_net; /* of count */
    double *away; /* of count */
} work;

static void work_free(work *w) {
    pc_free(w->row);
    pc_free(w->is_net);
    pc_free(w->away);
}

static bool work_make(work *w, int64_t count) {
    w->row = pc_alloc((size_t)count * TERMS, sizeof *w->row);
    w->is_net = pc_alloc((size_t)count, sizeof *w->is_net);
    w->away = pc_alloc((size_t)count, sizeof *w->away);
    return w->row && w->is_net && w->away;
}

static const double *row_of(const pc_fit *fit, int64_t i) {
    return fit->x + DIMENSIONS * i;
}

/* Returns whether some point changed sides. */
static bool choose_sides(const pc_fit *fit, const double *parameter, work *w) {
    bool has_changed = false;
    for (int64_t i = 0; i < fit->count; i++) {
        double term[TERMS];
        set_terms(row_of(fit, i), term);
        bool is_net = sum_terms(parameter, term, NET, TERMS) > sum_terms(parameter, term, TOKEN, NET);
        has_changed = has_changed || is_net != w->is_net[i];
        w->is_net[i] = is_net;
    }
    return has_changed;
}

static void fit_sides(const pc_fit *fit, work *w, double *parameter, double *covariance) {
    pc_terms terms = {TERMS, fit->count, w->row, fit->seconds, NULL};
    for (int64_t i = 0; i < fit->count; i++) {
        set_terms(row_of(fit, i), w->row + TERMS * i);
        drop_terms(w->row + TERMS * i, w->is_net[i]);
    }
    pc_terms_fit(&terms, parameter, covariance);
}

/* Sum of squared errors of log(seconds), each at most 1/4. */
static double loss_of(const pc_fit *fit, const double *parameter) {
    double sum = 0.0;
    for (int64_t i = 0; i < fit->count; i++) {
        double term[TERMS];
        set_terms(row_of(fit, i), term);
        double error = log(fit->seconds[i] / seconds_of(parameter, term)), squared = error * error;
        sum += squared < 0.25 ? squared : 0.25;
    }
    return sum;
}

/* The network decides from so many nodes and processors on: ways to start. */
static const struct start {
    double nodes, processors;
} starts[] = {{HUGE_VAL, 0.0}, {2.0, 0.0}, {2.0, 10.0}, {3.0, 0.0}, {3.0, 10.0}, {5.0, 0.0}};

static void fit_from(const pc_fit *fit, const struct start *start, work *w, double parameter[TERMS]) {
    enum { ROUNDS = 15 };
    for (int64_t i = 0; i < fit->count; i++) {
        const double *x = row_of(fit, i);
        w->is_net[i] = x[NODES] >= start->nodes && x[PROCESSORS] >= start->processors;
    }
    for (int round = 0; round < ROUNDS; round++) {
        fit_sides(fit, w, parameter, NULL);
        if (!choose_sides(fit, parameter, w)) break;
    }
}

static void keep(pc_fit *fit, work *w) {
    double parameter[TERMS], covariance[TERMS * TERMS] = {0};
    choose_sides(fit, fit->parameter, w);
    fit_sides(fit, w, parameter, covariance);
    for (int64_t i = 0; i < fit->count; i++)
        fit->residual[i] = log(fit->seconds[i] / seconds_at(fit, row_of(fit, i), NULL, NULL));
    double deviation = pc_robust_deviation(fit->residual, fit->count, w->away);
    fit->residual_deviation = deviation > least_deviation ? deviation : least_deviation;
    double squared = fit->residual_deviation * fit->residual_deviation;
    for (int i = 0; i < TERMS * TERMS; i++) fit->covariance[i] = squared * covariance[i];
}

/* A start takes some time, though the data may not show it. */
static double least_start(const pc_fit *fit) {
    double least = fit->seconds[0];
    for (int64_t i = 1; i < fit->count; i++) least = fmin(least, fit->seconds[i]);
    return 1e-3 * least;
}

static void fit_all(pc_fit *fit, work *w) {
    double least = HUGE_VAL;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        double parameter[TERMS] = {0};
        fit_from(fit, &starts[i], w, parameter);
        double loss = loss_of(fit, parameter);
        if (!(loss < least)) continue;
        least = loss;
        memcpy(fit->parameter, parameter, sizeof parameter);
    }
    fit->parameter[ALPHA] = fmax(fit->parameter[ALPHA], least_start(fit));
    fit->parameter_count = TERMS;
    pc_fit_name_parameters(fit);
    keep(fit, w);
}

static pc_code fit_dispatch(pc_fit *fit, const double *near, pc_error *error) {
    work w = {0};
    (void)near;
    if (fit->count < POINTS_LEAST)
        return pc_error_set(error, PC_ERROR_INPUT, "%lld points; expected at least %d", (long long)fit->count,
                            POINTS_LEAST);
    bool is_made = work_make(&w, fit->count);
    if (is_made) fit_all(fit, &w);
    work_free(&w);
    return is_made ? PC_OK : pc_error_no_memory(error);
}

/* ---- what was read ---- */

static bool has_parameters(const pc_fit *fit) {
    return fit->parameter_count == TERMS;
}

/* Something that tokens take. */
static bool has_rates(const pc_fit *fit) {
    for (int i = 0; i < TERMS; i++)
        if (!(fit->parameter[i] >= 0.0)) return false;
    return sum_terms(fit->parameter, (const double[TERMS]){0, 1, 1, 1, 1, 1, 1, 1}, TOKEN, TERMS) > 0.0;
}

const pc_form pc_form_dispatch = {
    .dimensions = DIMENSIONS,
    .dimension = {"tokens", "token_bytes", "ranks_reached", "nodes_reached", "ranks", "nodes", "sms"},
    .label = label,
    .fit = fit_dispatch,
    .seconds = seconds_at,
    .has_parameters = has_parameters,
    .has_rates = has_rates};
