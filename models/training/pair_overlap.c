#include "models/training/pair_overlap.h"

#include <math.h>

enum { COMPUTE, COMM, RESOURCES, NOBODY = -1 };

/* How far a pass has come. */
typedef struct runner {
    pc_pair_steps pass;
    int next;
    double step_s, left_s; /* left of the step, in time alone; and of all behind and with it */
} runner;

static void begin_step(runner *x) {
    while (x->next < x->pass.count && !(x->pass.steps[x->next].seconds > 0)) x->next++;
    x->step_s = x->next < x->pass.count ? x->pass.steps[x->next].seconds : 0;
}

static bool is_done(const runner *x) {
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): both runners are set before */
    return x->next == x->pass.count;
}

static int wanted_by(const runner *x) {
    return x->pass.steps[x->next].is_comm ? COMM : COMPUTE;
}

double pc_pair_alone_s(pc_pair_steps pass) {
    double sum = 0;
    for (int i = 0; i < pass.count; i++) sum += pass.steps[i].seconds;
    return sum;
}

/* Gives the free resources to who wants them. */
static void serve(const runner runners[2], int holder[RESOURCES]) {
    int first = runners[1].left_s > runners[0].left_s;
    for (int k = 0; k < 2; k++) {
        int who = k ? 1 - first : first;
        bool is_served = holder[COMPUTE] == who || holder[COMM] == who;
        if (is_served || is_done(&runners[who])) continue;
        int resource = wanted_by(&runners[who]);
        if (holder[resource] == NOBODY) holder[resource] = who;
    }
}

static double rate_of(const runner runners[2], const int holder[RESOURCES], int resource) {
    if (resource == COMM || holder[COMM] == NOBODY) return 1;
    const runner *beside = &runners[holder[COMM]];
    return 1 - beside->pass.steps[beside->next].share;
}

/* Until the first of the steps under way is over; returns how long that takes. */
static double advance(runner runners[2], int holder[RESOURCES]) {
    double rate[RESOURCES], time = INFINITY;
    int ends = NOBODY;
    for (int r = 0; r < RESOURCES; r++) {
        if (holder[r] == NOBODY) continue;
        rate[r] = rate_of(runners, holder, r);
        double needed = runners[holder[r]].step_s / rate[r];
        if (needed < time) {
            time = needed;
            ends = r;
        }
    }
    for (int r = 0; r < RESOURCES; r++) {
        if (holder[r] == NOBODY) continue;
        runner *x = &runners[holder[r]];
        double done_s = r == ends ? x->step_s : time * rate[r];
        x->step_s -= done_s;
        x->left_s -= done_s;
        if (x->step_s > 0) continue;
        x->next++;
        begin_step(x);
        holder[r] = NOBODY;
    }
    return time;
}

static bool has_kind(pc_pair_steps pass, bool is_comm) {
    for (int i = 0; i < pass.count; i++)
        if (pass.steps[i].seconds > 0 && pass.steps[i].is_comm == is_comm) return true;
    return false;
}

double pc_pair_seconds(pc_pair_steps a, pc_pair_steps b) {
    runner runners[2] = {{.pass = a, .left_s = pc_pair_alone_s(a)}, {.pass = b, .left_s = pc_pair_alone_s(b)}};
    int holder[RESOURCES] = {NOBODY, NOBODY};
    double most = runners[0].left_s + runners[1].left_s, sum = 0;
    bool hides = (has_kind(a, true) && has_kind(b, false)) || (has_kind(a, false) && has_kind(b, true));
    if (!hides) return most;
    begin_step(&runners[0]);
    begin_step(&runners[1]);
    while (!is_done(&runners[0]) || !is_done(&runners[1])) {
        serve(runners, holder);
        sum += advance(runners, holder);
    }
    return fmin(sum, most);
}
