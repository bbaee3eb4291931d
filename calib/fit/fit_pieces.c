#include "calib/fit/fit_private.h"

#include "engine/alloc.h"

#include <math.h>
#include <string.h>

/* ---- points, and sums over them ---- */

/* Sums of relative residuals (alpha + gamma x) / seconds - 1, from which any stretch of points is fitted at once. */
typedef struct line_sums {
    double points, inverse, slope; /* 1, 1 / s, x / s */
    double squares[3];             /* 1 / s^2, x / s^2, x^2 / s^2 */
} line_sums;

typedef struct line {
    double alpha, gamma, loss;
} line;

/* Sizes stand in rising order, each once; a point belongs to one. */
typedef struct ground {
    const double *x, *seconds;
    int64_t count;
    double *weight;   /* of a point: 0 of one that does not fit its neighbours */
    double *residual; /* work: of a point */
    double *work;
    int64_t sizes;
    double *size;     /* each size that was measured */
    int64_t *first;   /* its first point; one more at the end */
    double deviation; /* of points around their neighbours */
    line_sums *below; /* over the points before first[i]; one more at the end */
} ground;

static void add_point(line_sums *sums, double weight, double bytes, double seconds) {
    double inverse = weight / seconds, square = inverse / seconds;
    sums->points += weight;
    sums->inverse += inverse;
    sums->slope += inverse * bytes;
    sums->squares[0] += square;
    sums->squares[1] += square * bytes;
    sums->squares[2] += square * bytes * bytes;
}

static line_sums between(const line_sums *below, int64_t from, int64_t to) {
    const line_sums *a = &below[from], *b = &below[to];
    return (line_sums){b->points - a->points,
                       b->inverse - a->inverse,
                       b->slope - a->slope,
                       {b->squares[0] - a->squares[0], b->squares[1] - a->squares[1], b->squares[2] - a->squares[2]}};
}

static double loss_of(const line_sums *s, double alpha, double gamma) {
    double loss = alpha * alpha * s->squares[0] + 2.0 * alpha * gamma * s->squares[1] + gamma * gamma * s->squares[2] -
                  2.0 * alpha * s->inverse - 2.0 * gamma * s->slope + s->points;
    return loss > 0.0 ? loss : 0.0;
}

/* The best line that does not fall, and lies above zero from `least` on. */
static line best_line(const line_sums *s, double least) {
    double determinant = s->squares[0] * s->squares[2] - s->squares[1] * s->squares[1];
    line flat = {s->squares[0] > 0.0 ? s->inverse / s->squares[0] : 0.0, 0.0, 0.0};
    line through = {0.0, s->squares[2] > 0.0 ? s->slope / s->squares[2] : 0.0, 0.0};
    flat.loss = loss_of(s, flat.alpha, 0.0);
    through.loss = loss_of(s, 0.0, through.gamma);
    line best = flat.loss < through.loss ? flat : through;
    if (!(determinant > 1e-12 * s->squares[0] * s->squares[2])) return best;
    line both = {(s->inverse * s->squares[2] - s->slope * s->squares[1]) / determinant,
                 (s->slope * s->squares[0] - s->inverse * s->squares[1]) / determinant, 0.0};
    both.loss = loss_of(s, both.alpha, both.gamma);
    return both.gamma >= 0.0 && both.alpha + both.gamma * least >= 0.0 ? both : best;
}

/* ---- points that do not fit their neighbours ---- */

enum { NEIGHBOURS = 4 };

/* How far log(seconds) of a point lies from the robust line (Theil 1950, Sen 1968) through its neighbours on either
 * side, in logarithms. */
static double away_from_neighbours(const ground *g, int64_t i) {
    double numbers[2 * NEIGHBOURS * (2 * NEIGHBOURS - 1) / 2];
    int64_t from = i - NEIGHBOURS < 0 ? 0 : i - NEIGHBOURS;
    int64_t to = i + NEIGHBOURS >= g->count ? g->count - 1 : i + NEIGHBOURS;
    int64_t slopes = 0, points = 0;
    for (int64_t a = from; a <= to; a++)
        for (int64_t b = a + 1; b <= to; b++)
            if (a != i && b != i && g->x[b] > g->x[a])
                numbers[slopes++] = log(g->seconds[b] / g->seconds[a]) / log(g->x[b] / g->x[a]);
    double slope = pc_fit_quantile(numbers, slopes, 0.5);
    for (int64_t a = from; a <= to; a++)
        if (a != i) numbers[points++] = log(g->seconds[i] / g->seconds[a]) - slope * log(g->x[i] / g->x[a]);
    return pc_fit_quantile(numbers, points, 0.5);
}

static void weigh_points(ground *g) {
    for (int64_t i = 0; i < g->count; i++) g->residual[i] = away_from_neighbours(g, i);
    memcpy(g->work, g->residual, (size_t)g->count * sizeof *g->work);
    double middle = pc_fit_quantile(g->work, g->count, 0.5);
    g->deviation = pc_robust_deviation(g->residual, g->count, g->work);
    double limit = 5.0 * g->deviation > 0.03 ? 5.0 * g->deviation : 0.03;
    for (int64_t i = 0; i < g->count; i++) g->weight[i] = fabs(g->residual[i] - middle) <= limit ? 1.0 : 0.0;
}

static void sum_points(ground *g) {
    line_sums sums = {0};
    g->sizes = 0;
    for (int64_t i = 0; i < g->count; i++) {
        if (i == 0 || g->x[i] > g->x[i - 1]) {
            g->size[g->sizes] = g->x[i];
            g->first[g->sizes] = i;
            g->below[g->sizes++] = sums;
        }
        add_point(&sums, g->weight[i], g->x[i], g->seconds[i]);
    }
    g->first[g->sizes] = g->count;
    g->below[g->sizes] = sums;
}

/* ---- where the pieces begin ---- */

/* A cut: the first size of a piece, by its place among the sizes. cut[0] is 0 and cut[pieces] is sizes. */
typedef struct cutting {
    int pieces;
    int64_t cut[PC_PIECES_MAX + 1];
    double loss;
} cutting;

/* The first piece goes down to nothing. */
static double least_size(const ground *g, int64_t from) {
    return from > 0 ? g->size[from] : 0.0;
}

static bool is_long_enough(const ground *g, int64_t from, int64_t to) {
    return to - from >= PC_TRANSFER_SIZES && g->first[to] - g->first[from] >= PC_TRANSFER_POINTS &&
           g->below[to].points - g->below[from].points >= PC_TRANSFER_SIZES;
}

/* Twice the negative logarithm of the likelihood, each piece with its own scatter: large messages run steadier than
 * small ones. What is usual counts as some points, so that few that happen to lie on a line do not pass for exact; and
 * data are rounded to some four digits: no fit is better than that. */
static double likelihood_loss(const ground *g, double loss, double points) {
    static const double usual_points = 5.0;
    double usual = g->deviation * g->deviation + 1e-7;
    return points * log((loss + usual_points * usual) / (points + usual_points) + 1e-7);
}

static double piece_loss(const ground *g, int64_t from, int64_t to) {
    if (!is_long_enough(g, from, to)) return HUGE_VAL;
    line_sums sums = between(g->below, from, to);
    return likelihood_loss(g, best_line(&sums, least_size(g, from)).loss, sums.points);
}

/* Cuts are looked for among at most so many sizes, evenly spread, and then moved to the best size of all. */
enum { PLACES = 192 };

typedef struct divisions {
    int places;
    int64_t place[PLACES + 1];              /* the last one is sizes */
    double loss[PC_PIECES_MAX][PLACES + 1]; /* the least of the first p + 1 pieces that end before a place */
    int from[PC_PIECES_MAX][PLACES + 1];    /* where the last of them begins */
} divisions;

static void lay_places(const ground *g, divisions *p) {
    p->places = g->sizes < PLACES ? (int)g->sizes : PLACES;
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): there is a point, and so a size */
    for (int i = 0; i <= p->places; i++) p->place[i] = g->sizes * i / p->places;
}

/* Dynamic programming: the best p + 1 pieces up to a place are the best p pieces up to another one and a line. */
static void find_cuts(const ground *g, divisions *p) {
    for (int end = 0; end <= p->places; end++) {
        p->loss[0][end] = piece_loss(g, 0, p->place[end]);
        for (int pieces = 1; pieces < PC_PIECES_MAX; pieces++) p->loss[pieces][end] = HUGE_VAL;
    }
    for (int start = 1; start < p->places; start++) {
        for (int end = start + 1; end <= p->places; end++) {
            double last = piece_loss(g, p->place[start], p->place[end]);
            for (int pieces = 1; pieces < PC_PIECES_MAX && last < HUGE_VAL; pieces++) {
                double loss = p->loss[pieces - 1][start] + last;
                if (loss >= p->loss[pieces][end]) continue;
                p->loss[pieces][end] = loss;
                p->from[pieces][end] = start;
            }
        }
    }
}

static bool is_infinite(double loss) {
    return !(loss < HUGE_VAL);
}

static cutting cuts_of(const ground *g, const divisions *p, int pieces) {
    cutting c = {.pieces = pieces, .loss = p->loss[pieces - 1][p->places]};
    int end = p->places;
    c.cut[pieces] = g->sizes;
    for (int i = pieces - 1; i > 0 && !is_infinite(c.loss); i--) {
        end = p->from[i][end];
        c.cut[i] = p->place[end];
    }
    return c;
}

static double loss_of_cuts(const ground *g, const cutting *c) {
    double loss = 0.0;
    for (int i = 0; i < c->pieces; i++) loss += piece_loss(g, c->cut[i], c->cut[i + 1]);
    return loss;
}

/* Moves each cut to the best size between its neighbours, until none moves. */
static void settle_cuts(const ground *g, cutting *c) {
    enum { ROUNDS = 8 };
    bool moved = true;
    for (int round = 0; round < ROUNDS && moved; round++) {
        moved = false;
        for (int i = 1; i < c->pieces; i++) {
            double least = HUGE_VAL;
            int64_t best = c->cut[i];
            for (int64_t at = c->cut[i - 1] + 1; at < c->cut[i + 1]; at++) {
                double loss = piece_loss(g, c->cut[i - 1], at) + piece_loss(g, at, c->cut[i + 1]);
                if (loss < least) least = loss, best = at;
            }
            moved = moved || best != c->cut[i];
            c->cut[i] = best;
        }
    }
    c->loss = loss_of_cuts(g, c);
}

/* Schwarz's criterion. A piece has its line, its scatter and its cut, which had its choice and counts double. */
static double criterion(const ground *g, const cutting *c) {
    enum { A_PIECE = 5 };
    return c->loss + (double)(A_PIECE * c->pieces) * log(g->below[g->sizes].points);
}

static cutting best_cuts(const ground *g, const divisions *p) {
    cutting best = cuts_of(g, p, 1);
    for (int pieces = 2; pieces <= PC_PIECES_MAX; pieces++) {
        cutting c = cuts_of(g, p, pieces);
        if (is_infinite(c.loss)) break;
        settle_cuts(g, &c);
        if (criterion(g, &c) < criterion(g, &best)) best = c;
    }
    return best;
}

/* ---- joined or not ---- */

/* Two lines that meet at `corner`: alpha + gamma x, and beyond it more * (x - corner) more. */
typedef struct bend {
    double alpha, gamma, more, corner, loss;
} bend;

/* Solves the 3 x 3 equations of least squares by elimination; they are symmetric and positive. */
static bool solve_three(double a[3][4], double out[3]) {
    for (int i = 0; i < 3; i++) {
        if (!(a[i][i] > 0.0)) return false;
        for (int row = i + 1; row < 3; row++) {
            double factor = a[row][i] / a[i][i];
            for (int column = i; column < 4; column++) a[row][column] -= factor * a[i][column];
        }
    }
    for (int i = 2; i >= 0; i--) {
        out[i] = a[i][3];
        for (int column = i + 1; column < 3; column++) out[i] -= a[i][column] * out[column];
        out[i] /= a[i][i];
    }
    return true;
}

/* Of the points of sizes from..to; columns 1, x, max(0, x - corner), all over seconds. */
static bend best_bend(const ground *g, int64_t from, int64_t to, double corner) {
    int64_t middle = from;
    while (middle < to && g->size[middle] <= corner) middle++;
    line_sums all = between(g->below, from, to), above = between(g->below, middle, to);
    const double *s = all.squares, *u = above.squares;
    double cross0 = u[1] - corner * u[0], cross1 = u[2] - corner * u[1];
    double a[3][4] = {{s[0], s[1], cross0, all.inverse},
                      {s[1], s[2], cross1, all.slope},
                      {cross0, cross1, cross1 - corner * cross0, above.slope - corner * above.inverse}};
    double right[3] = {a[0][3], a[1][3], a[2][3]}, found[3];
    bend b = {.corner = corner, .loss = HUGE_VAL};
    if (!solve_three(a, found)) return b;
    if (found[0] + found[1] * least_size(g, from) < 0.0 || found[1] < 0.0 || found[1] + found[2] < 0.0) return b;
    double loss = all.points;
    for (int i = 0; i < 3; i++) loss -= found[i] * right[i];
    return (bend){found[0], found[1], found[2], corner, loss > 0.0 ? loss : 0.0};
}

/* The best corner between the middles of both pieces, on a grid in the logarithm and then a finer one. */
static bend bend_between(const ground *g, int64_t from, int64_t cut, int64_t to) {
    enum { STEPS = 40, ROUNDS = 3 };
    double low = log(g->size[from + 1]), high = log(g->size[to - 2]);
    bend best = {.loss = HUGE_VAL, .corner = g->size[cut]};
    for (int round = 0; round < ROUNDS && high > low; round++) {
        double step = (high - low) / STEPS;
        for (int i = 0; i <= STEPS; i++) {
            bend b = best_bend(g, from, to, exp(low + step * i));
            if (b.loss < best.loss) best = b;
        }
        low = log(best.corner) - step, high = log(best.corner) + step;
    }
    return best;
}

/* A join has a parameter less than a jump, and its pieces share their scatter. */
static void join_pieces(const ground *g, const cutting *c, pc_pieces *pieces) {
    for (int i = 0; i + 1 < c->pieces; i++) {
        int64_t from = c->cut[i], cut = c->cut[i + 1], to = c->cut[i + 2];
        double points = g->below[to].points - g->below[from].points;
        double apart = piece_loss(g, from, cut) + piece_loss(g, cut, to);
        bend b = bend_between(g, from, cut, to);
        if (is_infinite(b.loss)) continue;
        pieces->is_joined[i] = likelihood_loss(g, b.loss, points) < apart + 2.0 * log(points);
        if (pieces->is_joined[i]) pieces->end[i] = b.corner;
    }
}

static void pieces_of(const ground *g, const cutting *c, pc_pieces *pieces) {
    *pieces = (pc_pieces){.count = c->pieces, .deviation = g->deviation};
    for (int i = 0; i < c->pieces; i++) {
        line_sums sums = between(g->below, c->cut[i], c->cut[i + 1]);
        line l = best_line(&sums, least_size(g, c->cut[i]));
        pieces->alpha[i] = l.alpha;
        pieces->gamma[i] = l.gamma;
        pieces->end[i] = i + 1 < c->pieces ? g->size[c->cut[i + 1] - 1] : HUGE_VAL;
        pieces->next[i] = i + 1 < c->pieces ? g->size[c->cut[i + 1]] : HUGE_VAL;
    }
    join_pieces(g, c, pieces);
}

/* ---- all of it ---- */

static void ground_free(ground *g) {
    pc_free(g->weight);
    pc_free(g->residual);
    pc_free(g->work);
    pc_free(g->size);
    pc_free(g->first);
    pc_free(g->below);
}

static bool ground_make(ground *g, const double *points, const double *seconds, int64_t count) {
    size_t n = (size_t)count;
    *g = (ground){.x = points, .seconds = seconds, .count = count};
    g->weight = pc_alloc(n, sizeof *g->weight);
    g->residual = pc_alloc(n, sizeof *g->residual);
    g->work = pc_alloc(n, sizeof *g->work);
    g->size = pc_alloc(n, sizeof *g->size);
    g->first = pc_alloc(n + 1, sizeof *g->first);
    g->below = pc_alloc(n + 1, sizeof *g->below);
    return g->weight && g->residual && g->work && g->size && g->first && g->below;
}

pc_code pc_pieces_find(const double *points, const double *seconds, int64_t count, pc_pieces *pieces, pc_error *error) {
    ground g;
    bool is_made = ground_make(&g, points, seconds, count);
    divisions *p = pc_alloc(1, sizeof *p);
    pc_code code = is_made && p ? PC_OK : pc_error_no_memory(error);
    if (!code) {
        weigh_points(&g);
        sum_points(&g);
        lay_places(&g, p);
        find_cuts(&g, p);
        cutting best = best_cuts(&g, p);
        pieces_of(&g, &best, pieces);
    }
    pc_free(p);
    ground_free(&g);
    return code;
}
