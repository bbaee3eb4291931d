#include "models/training/pair_overlap.h"

#include <math.h>
#include <stddef.h>

enum { COMPUTE, COMM, RESOURCES, NOBODY = -1 };
enum { FIRST, SECOND, DELAYED, RUNNERS };

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

/* Whether it has a step that can begin: delayed ones wait for the second pass. */
static bool can_go(const runner runners[RUNNERS], const int *behind, int who) {
    const runner *x = &runners[who];
    if (is_done(x)) return false;
    if (who != DELAYED || !behind || is_done(&runners[SECOND])) return true;
    return runners[SECOND].next >= behind[x->next];
}

/* Gives the free resources to who wants them: of both passes first to the one that has more left, then to what is
 * delayed. */
static void serve(const runner runners[RUNNERS], const int *behind, int holder[RESOURCES]) {
    int first = runners[SECOND].left_s > runners[FIRST].left_s;
    const int order[RUNNERS] = {first, 1 - first, DELAYED};
    for (int k = 0; k < RUNNERS; k++) {
        int who = order[k];
        bool is_served = holder[COMPUTE] == who || holder[COMM] == who;
        if (is_served || !can_go(runners, behind, who)) continue;
        int resource = wanted_by(&runners[who]);
        if (holder[resource] == NOBODY) holder[resource] = who;
    }
}

static double rate_of(const runner runners[RUNNERS], const int holder[RESOURCES], int resource) {
    if (resource == COMM || holder[COMM] == NOBODY) return 1;
    const runner *beside = &runners[holder[COMM]];
    return 1 - beside->pass.steps[beside->next].share;
}

/* Until the first of the steps under way is over; returns how long that takes. */
static double advance(runner runners[RUNNERS], int holder[RESOURCES]) {
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

/* Whether communication of the one can run beside computation of another. */
static bool can_hide(pc_pair_steps a, pc_pair_steps b, pc_pair_steps delayed) {
    bool a_computes = has_kind(a, false), b_computes = has_kind(b, false), d_computes = has_kind(delayed, false);
    return (has_kind(a, true) && (b_computes || d_computes)) || (has_kind(b, true) && (a_computes || d_computes));
}

static void note(pc_pair_course *course, int pass, int step, double begin_s, double end_s) {
    course->moments[course->count++] = (pc_pair_moment){pass, step, begin_s, end_s};
}

/* What has a resource now and had it not before begins; its end is written when it is known. */
static void note_begun(const runner runners[RUNNERS], const int holder[RESOURCES], const int before[RESOURCES],
                       double now_s, int noted[RESOURCES], pc_pair_course *course) {
    for (int r = 0; r < RESOURCES; r++) {
        if (holder[r] == NOBODY || before[r] != NOBODY) continue;
        noted[r] = course->count;
        note(course, holder[r], runners[holder[r]].next, now_s, now_s);
    }
}

/* All steps one behind the other, pass by pass. */
static void note_apart(const pc_pair_steps passes[RUNNERS], pc_pair_course *course) {
    double now_s = 0;
    course->count = 0;
    for (int p = 0; p < RUNNERS; p++)
        for (int i = 0; i < passes[p].count; i++) {
            double seconds = passes[p].steps[i].seconds;
            if (seconds > 0) note(course, p, i, now_s, now_s + seconds);
            now_s += seconds;
        }
}

static double run_together(runner runners[RUNNERS], const int *behind, pc_pair_course *course) {
    int holder[RESOURCES] = {NOBODY, NOBODY}, noted[RESOURCES] = {0, 0};
    double sum = 0;
    while (!is_done(&runners[FIRST]) || !is_done(&runners[SECOND]) || !is_done(&runners[DELAYED])) {
        const int before[RESOURCES] = {holder[COMPUTE], holder[COMM]};
        serve(runners, behind, holder);
        if (course) note_begun(runners, holder, before, sum, noted, course);
        const int under_way[RESOURCES] = {holder[COMPUTE], holder[COMM]};
        sum += advance(runners, holder);
        for (int r = 0; course && r < RESOURCES; r++)
            if (under_way[r] != NOBODY && holder[r] == NOBODY) course->moments[noted[r]].end_s = sum;
    }
    return sum;
}

static double seconds_of(const pc_pair_steps passes[RUNNERS], const int *behind, pc_pair_course *course) {
    runner runners[RUNNERS];
    double most = 0, sum;
    for (int i = 0; i < RUNNERS; i++) {
        runners[i] = (runner){.pass = passes[i], .left_s = pc_pair_alone_s(passes[i])};
        most += runners[i].left_s;
        begin_step(&runners[i]);
    }
    if (course) course->count = 0;
    sum = can_hide(passes[FIRST], passes[SECOND], passes[DELAYED]) ? run_together(runners, behind, course) : most;
    if (sum >= most && course) note_apart(passes, course);
    return fmin(sum, most);
}

double pc_pair_seconds_with(pc_pair_steps a, pc_pair_steps b, pc_delayed_steps delayed) {
    return seconds_of((const pc_pair_steps[]){a, b, delayed.steps}, delayed.behind, NULL);
}

double pc_pair_seconds_course(pc_pair_steps a, pc_pair_steps b, pc_delayed_steps delayed, pc_pair_course *course) {
    return seconds_of((const pc_pair_steps[]){a, b, delayed.steps}, delayed.behind, course);
}

double pc_pair_seconds(pc_pair_steps a, pc_pair_steps b) {
    return pc_pair_seconds_with(a, b, (pc_delayed_steps){{NULL, 0}, NULL});
}
