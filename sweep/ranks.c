#include "sweep/ranks.h"

#include "cli/cli.h"
#include "engine/alloc.h"
#include "sweep/ranks_private.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* A rank begins to ask for more when what it has lasts this long: messages are looked for once a millisecond, at both
 * ends. And it takes no more at once than lasts this long: the next runs may be much slower. */
enum { ASK_BEFORE_MS = 10, PIECE_MOST_MS = 50, MEASURE_MS = 5 };

ranks *ranks_over(const ranks_module *module, void *self, int64_t number, int64_t count) {
    ranks *x = pc_alloc(1, sizeof *x);
    rank_note *notes = pc_alloc((size_t)count, sizeof *notes);
    if (!x || !notes) {
        pc_free(x);
        pc_free(notes);
        return NULL;
    }
    *x = (ranks){.number = number, .count = count, .default_jobs = 1, .module = module, .self = self, .notes = notes};
    return x;
}

int ranks_number(const ranks *x) {
    return x ? (int)x->number : 0;
}

int ranks_count(const ranks *x) {
    return x ? (int)x->count : 1;
}

int ranks_default_jobs(const ranks *x) {
    return x ? x->default_jobs : 1;
}

int ranks_report(const ranks *x, const pc_error *error) {
    return ranks_number(x) == 0 ? report(error) : EXIT_DONE;
}

/* ---- messages ---- */

static double clock_ms(void) {
    return 1e3 * now_s();
}

static void sleep_ms(int ms) {
    struct timespec time = {.tv_nsec = ms * 1000000L};
    nanosleep(&time, NULL);
}

static void send(ranks *x, int64_t to, ranks_kind kind, const int64_t *numbers, int64_t count) {
    x->module->send(x->self, to, kind, numbers, count);
}

/* Whether `rank` has closed its ranks, and takes part in nothing any more. */
static bool has_left(ranks *x, int64_t rank) {
    int64_t from, numbers[RANKS_MESSAGE_MAX];
    while (x->module->receive(x->self, RANKS_LEAVE, &from, numbers) >= 0) x->notes[from].has_left = true;
    return x->notes[rank].has_left;
}

/* A message from rank 0, to which all others listen; false where it has left without one. Waits. */
static bool hear(ranks *x, ranks_kind kind, int64_t numbers[RANKS_MESSAGE_MAX]) {
    int64_t from;
    for (;;) {
        bool is_last = has_left(x, 0); /* what it sent before has come before */
        if (x->module->receive(x->self, kind, &from, numbers) >= 0) return true;
        if (is_last) return false;
        sleep_ms(1);
    }
}

static pc_code set_left(pc_error *error, int64_t rank) {
    return pc_error_set(error, PC_ERROR_IO, "rank %" PRId64 " ended before the others", rank);
}

/* ---- how much at a time ---- */

int64_t ranks_piece(int64_t left, int64_t jobs, int64_t all_jobs, int64_t idle, int64_t most) {
    int64_t share = (int64_t)((double)left * (double)jobs / (double)all_jobs);
    int64_t piece = share / 4 < most ? share / 4 : most;
    int64_t least = idle < share ? idle : share;
    if (piece < least) piece = least;
    if (piece < 1) piece = 1;
    return piece < left ? piece : left;
}

/* How fast a rank has been of late. */
typedef struct pace {
    double since_ms; /* when that was last looked at, and how many runs had been claimed */
    int64_t claimed;
    double runs_a_ms; /* over some MEASURE_MS before */
} pace;

/* Looks at the clock, where that was not just now. */
static void update_pace(pace *p, const batch_state *state) {
    double now = clock_ms(), elapsed = now - p->since_ms;
    if (p->since_ms > 0 && elapsed < MEASURE_MS) return;
    if (p->since_ms > 0) p->runs_a_ms = (double)(state->claimed - p->claimed) / elapsed;
    p->since_ms = now;
    p->claimed = state->claimed;
}

/* Whether it is time to ask for more. */
static bool is_hungry(pace *p, const batch_state *state) {
    update_pace(p, state);
    if (!state->has_room) return false;
    if (state->unclaimed == 0 && state->idle > 0) return true;
    return (double)state->unclaimed < ASK_BEFORE_MS * p->runs_a_ms;
}

/* The most to ask for: at first nobody knows how long a run takes. */
static int64_t appetite(const pace *p, const batch_state *state) {
    int64_t most = (int64_t)(PIECE_MOST_MS * p->runs_a_ms);
    int64_t least = INT64_C(2) * state->jobs;
    return most > least ? most : least;
}

/* ---- rank 0 hands out ---- */

typedef struct desk {
    ranks *x;
    pace pace;
    int64_t next, count; /* runs that nobody has yet: next .. count-1 */
} desk;

static int64_t count_jobs(const desk *d) {
    int64_t jobs = 0;
    for (int64_t i = 0; i < d->x->count; i++) jobs += d->x->notes[i].jobs;
    return jobs;
}

/* The next piece, for `rank`; a count of BATCH_NO_MORE where there is none. */
static batch_piece hand_out(desk *d, int64_t rank, int64_t idle, int64_t most) {
    int64_t left = d->count - d->next;
    if (left <= 0) return (batch_piece){0, BATCH_NO_MORE};
    batch_piece piece = {d->next, ranks_piece(left, d->x->notes[rank].jobs, count_jobs(d), idle, most)};
    d->next += piece.count;
    return piece;
}

/* A question is jobs, idle, most; without a thread, that there will be no other. */
static void answer(desk *d, int64_t rank, const int64_t question[3]) {
    if (question[0] == 0) { /* it has failed, and so has the batch */
        d->next = d->count;
        d->x->notes[rank].is_told = true;
        return;
    }
    d->x->notes[rank].jobs = question[0];
    batch_piece piece = hand_out(d, rank, question[1], question[2]);
    send(d->x, rank, RANKS_WORK, (int64_t[]){piece.first, piece.count}, 2);
    d->x->notes[rank].is_told = piece.count == BATCH_NO_MORE;
}

static void answer_all(desk *d) {
    int64_t from, question[RANKS_MESSAGE_MAX];
    while (d->x->module->receive(d->x->self, RANKS_WORK, &from, question) >= 0) answer(d, from, question);
}

/* Whether a rank may still ask. One that has left without being told, against the rules, ends the batch. */
static bool is_anyone_there(desk *d) {
    bool is_anyone = false;
    for (int64_t i = 1; i < d->x->count; i++) {
        if (d->x->notes[i].is_told) continue;
        if (has_left(d->x, i))
            d->next = d->count;
        else
            is_anyone = true;
    }
    return is_anyone;
}

/* What this rank's own batch is fed with, and when the others are answered. */
static pc_code feed_at_desk(void *feeder, const batch_state *state, batch_piece *piece, pc_error *error) {
    (void)error;
    desk *d = feeder;
    answer_all(d);
    if (is_hungry(&d->pace, state) && d->next < d->count)
        *piece = hand_out(d, 0, state->idle, appetite(&d->pace, state));
    else if (d->next >= d->count && !is_anyone_there(d))
        piece->count = BATCH_NO_MORE;
    return PC_OK;
}

static pc_code run_desk(ranks *x, int64_t count, int jobs, batch_source *source, batch_sink *sink, void *context,
                        pc_error *error) {
    desk d = {.x = x, .count = count};
    for (int64_t i = 0; i < x->count; i++) { /* until it asks, a rank is taken to have as many threads as this one */
        x->notes[i].jobs = jobs;
        x->notes[i].is_told = false;
    }
    pc_code code = batch_run_fed(feed_at_desk, &d, jobs, source, sink, context, error);
    if (code) d.next = d.count;
    for (; is_anyone_there(&d); sleep_ms(1)) answer_all(&d);
    return code;
}

/* ---- the other ranks ask ---- */

typedef struct asker {
    ranks *x;
    pace pace;
    bool has_asked; /* and has no answer yet */
    bool is_told;   /* that there is no more */
} asker;

static void take_answer(asker *a, const int64_t *numbers, batch_piece *piece) {
    *piece = (batch_piece){numbers[0], numbers[1]};
    a->has_asked = false;
    a->is_told = piece->count == BATCH_NO_MORE;
}

static pc_code feed_by_asking(void *feeder, const batch_state *state, batch_piece *piece, pc_error *error) {
    asker *a = feeder;
    int64_t from, numbers[RANKS_MESSAGE_MAX];
    if (a->has_asked) {
        bool is_last = has_left(a->x, 0);
        if (a->x->module->receive(a->x->self, RANKS_WORK, &from, numbers) >= 0)
            take_answer(a, numbers, piece);
        else if (is_last)
            return set_left(error, 0);
    } else if (is_hungry(&a->pace, state)) {
        int64_t most = appetite(&a->pace, state);
        send(a->x, 0, RANKS_WORK, (int64_t[]){state->jobs, state->idle, most}, 3);
        a->has_asked = true;
    }
    return PC_OK;
}

static pc_code run_asking(ranks *x, int jobs, batch_source *source, batch_sink *sink, void *context, pc_error *error) {
    asker a = {.x = x};
    pc_code code = batch_run_fed(feed_by_asking, &a, jobs, source, sink, context, error);
    int64_t numbers[RANKS_MESSAGE_MAX];
    batch_piece piece;
    if (a.has_asked && hear(x, RANKS_WORK, numbers)) take_answer(&a, numbers, &piece);
    if (!a.is_told) send(x, 0, RANKS_WORK, (int64_t[]){0, 0, 0}, 3);
    return code;
}

pc_code ranks_run(ranks *x, int64_t count, int jobs, batch_source *source, batch_sink *sink, void *context,
                  pc_error *error) {
    if (!x->module) return batch_run(count, jobs, source, sink, context, error);
    if (x->number == 0) return run_desk(x, count, jobs, source, sink, context, error);
    return run_asking(x, jobs, source, sink, context, error);
}

/* ---- all together ---- */

/* A code with its text, as numbers; how many. */
static int64_t pack(pc_code code, const pc_error *error, int64_t numbers[RANKS_MESSAGE_MAX]) {
    memset(numbers, 0, RANKS_MESSAGE_MAX * sizeof *numbers);
    numbers[0] = code;
    if (code && error) memcpy(numbers + 1, error->message, sizeof error->message);
    return RANKS_MESSAGE_MAX;
}

static pc_code unpack(const int64_t numbers[RANKS_MESSAGE_MAX], pc_error *error) {
    pc_code code = (pc_code)numbers[0];
    return code ? pc_error_set(error, code, "%s", (const char *)(numbers + 1)) : PC_OK;
}

/* Keeps what came with a code, of the lowest rank that has one. */
typedef struct verdict {
    int64_t rank; /* -1: none so far */
    pc_code code;
    pc_error error;
} verdict;

static void consider(verdict *v, int64_t rank, pc_code code, const pc_error *error) {
    if (!code || (v->rank >= 0 && v->rank < rank)) return;
    *v = (verdict){rank, code, *error};
}

/* Takes what has come; whether anybody is still to be heard. */
static bool listen(ranks *x, verdict *v) {
    int64_t from, numbers[RANKS_MESSAGE_MAX];
    pc_error error = {0};
    bool is_waiting = false;
    has_left(x, 0); /* before: what a rank sent before it left is then here */
    while (x->module->receive(x->self, RANKS_VERDICT, &from, numbers) >= 0) {
        consider(v, from, unpack(numbers, &error), &error);
        x->notes[from].is_heard = true;
    }
    for (int64_t i = 1; i < x->count; i++) {
        if (x->notes[i].is_heard) continue;
        if (x->notes[i].has_left)
            consider(v, i, set_left(&error, i), &error);
        else
            is_waiting = true;
    }
    return is_waiting;
}

/* Rank 0 hears all, and tells all. */
static pc_code decide(ranks *x, pc_code code, pc_error *error) {
    verdict v = {.rank = -1};
    int64_t numbers[RANKS_MESSAGE_MAX];
    for (int64_t i = 1; i < x->count; i++) x->notes[i].is_heard = false;
    while (listen(x, &v)) sleep_ms(1);
    if (!code && v.rank > 0) code = pc_error_set(error, v.code, "%s", v.error.message);
    int64_t count = pack(code, error, numbers);
    for (int64_t i = 1; i < x->count; i++)
        if (x->notes[i].is_heard) send(x, i, RANKS_VERDICT, numbers, count);
    return code;
}

pc_code ranks_agree(ranks *x, pc_code code, pc_error *error) {
    int64_t numbers[RANKS_MESSAGE_MAX];
    if (!x->module) return code;
    if (x->number == 0) return decide(x, code, error);
    int64_t count = pack(code, error, numbers);
    send(x, 0, RANKS_VERDICT, numbers, count);
    return hear(x, RANKS_VERDICT, numbers) ? unpack(numbers, error) : set_left(error, 0);
}

/* Ranks wait here for each other without taking a core, which MPI itself would. */
static void leave(ranks *x) {
    for (int64_t i = 0; i < x->count; i++)
        if (i != x->number && (i == 0 || x->number == 0)) send(x, i, RANKS_LEAVE, &x->number, 1);
    for (int64_t i = 0; i < x->count; i++) {
        if (i == x->number || (i != 0 && x->number != 0)) continue;
        while (!has_left(x, i)) sleep_ms(1);
    }
    x->module->end(x->self);
}

void ranks_close(ranks *x) {
    if (!x) return;
    if (x->module) leave(x);
    pc_free(x->notes);
    pc_free(x);
}
