#include "sweep/team_private.h"

#include "engine/alloc.h"
#include "engine/clock.h"
#include "engine/parallel.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

/* A rank begins to ask for more when what it has lasts this long: messages are looked for once a millisecond, at both
 * ends. And it takes no more at once than lasts this long: the next runs may be much slower. */
enum { ASK_BEFORE_MS = 10, PIECE_MOST_MS = 50, MEASURE_MS = 5 };

pc_team *pc_team_over(const pc_team_module *module, void *self, int64_t number, int64_t count) {
    pc_team *team = pc_alloc(1, sizeof *team);
    rank_note *notes = pc_alloc((size_t)count, sizeof *notes);
    if (!team || !notes) {
        pc_free(team);
        pc_free(notes);
        return NULL;
    }
    *team =
        (pc_team){.number = number, .count = count, .default_jobs = 1, .module = module, .self = self, .notes = notes};
    return team;
}

int pc_team_rank(const pc_team *team) {
    return team ? (int)team->number : 0;
}

int pc_team_size(const pc_team *team) {
    return team ? (int)team->count : 1;
}

int pc_team_default_jobs(const pc_team *team) {
    return team ? team->default_jobs : pc_parallel_processors();
}

/* ---- messages ---- */

static double clock_ms(void) {
    return 1e3 * pc_now_s();
}

static void sleep_ms(int ms) {
    struct timespec time = {.tv_nsec = ms * 1000000L};
    nanosleep(&time, NULL);
}

static void send(pc_team *team, int64_t to, pc_team_kind kind, const int64_t *numbers, int64_t count) {
    team->module->send(team->self, to, kind, numbers, count);
}

bool pc_team_has_left(pc_team *team, int64_t rank) {
    int64_t from, numbers[PC_TEAM_MESSAGE_MAX];
    while (team->module->receive(team->self, PC_TEAM_LEAVE, &from, numbers) >= 0) team->notes[from].has_left = true;
    return team->notes[rank].has_left;
}

/* A message from rank 0, to which all others listen; false if it has left without one. Waits. */
static bool hear(pc_team *team, pc_team_kind kind, int64_t numbers[PC_TEAM_MESSAGE_MAX]) {
    int64_t from;
    for (;;) {
        bool is_last = pc_team_has_left(team, 0); /* what it sent before has come before */
        if (team->module->receive(team->self, kind, &from, numbers) >= 0) return true;
        if (is_last) return false;
        sleep_ms(1);
    }
}

pc_code pc_team_set_left(pc_error *error, int64_t rank) {
    return pc_error_set(error, PC_ERROR_IO, "rank %" PRId64 " ended before the others", rank);
}

/* ---- how much at a time ---- */

int64_t pc_team_piece(int64_t left, int64_t jobs, int64_t all_jobs, int64_t idle, int64_t most) {
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
static void update_pace(pace *p, const pc_batch_state *state) {
    double now = clock_ms(), elapsed = now - p->since_ms;
    if (p->since_ms > 0 && elapsed < MEASURE_MS) return;
    if (p->since_ms > 0) p->runs_a_ms = (double)(state->claimed - p->claimed) / elapsed;
    p->since_ms = now;
    p->claimed = state->claimed;
}

/* Whether it is time to ask for more. */
static bool is_hungry(pace *p, const pc_batch_state *state) {
    update_pace(p, state);
    if (!state->has_room) return false;
    if (state->unclaimed == 0 && state->idle > 0) return true;
    return (double)state->unclaimed < ASK_BEFORE_MS * p->runs_a_ms;
}

/* The most to ask for: at first nobody knows how long a run takes. */
static int64_t appetite(const pace *p, const pc_batch_state *state) {
    int64_t most = (int64_t)(PIECE_MOST_MS * p->runs_a_ms);
    int64_t least = INT64_C(2) * state->jobs;
    return most > least ? most : least;
}

/* ---- rank 0 hands out ---- */

typedef struct desk {
    pc_team *team;
    pace pace;
    int64_t next, count; /* runs that nobody has yet: next .. count-1 */
} desk;

static int64_t count_jobs(const desk *d) {
    int64_t jobs = 0;
    for (int64_t i = 0; i < d->team->count; i++) jobs += d->team->notes[i].jobs;
    return jobs;
}

/* The next piece, for `rank`; a count of PC_BATCH_NO_MORE where there is none. */
static pc_batch_piece hand_out(desk *d, int64_t rank, int64_t idle, int64_t most) {
    int64_t left = d->count - d->next;
    if (left <= 0) return (pc_batch_piece){0, PC_BATCH_NO_MORE};
    pc_batch_piece piece = {d->next, pc_team_piece(left, d->team->notes[rank].jobs, count_jobs(d), idle, most)};
    d->next += piece.count;
    return piece;
}

/* A question is jobs, idle, most; without a thread, that there will be no other. */
static void answer(desk *d, int64_t rank, const int64_t question[3]) {
    if (question[0] == 0) { /* it has failed, and so has the batch */
        d->next = d->count;
        d->team->notes[rank].is_told = true;
        return;
    }
    d->team->notes[rank].jobs = question[0];
    pc_batch_piece piece = hand_out(d, rank, question[1], question[2]);
    send(d->team, rank, PC_TEAM_WORK, (int64_t[]){piece.first, piece.count}, 2);
    d->team->notes[rank].is_told = piece.count == PC_BATCH_NO_MORE;
}

static void answer_all(desk *d) {
    int64_t from, question[PC_TEAM_MESSAGE_MAX];
    while (d->team->module->receive(d->team->self, PC_TEAM_WORK, &from, question) >= 0) answer(d, from, question);
}

/* Whether a rank may still ask. One that has left without being told, against the rules, ends the batch. */
static bool is_anyone_there(desk *d) {
    bool is_anyone = false;
    for (int64_t i = 1; i < d->team->count; i++) {
        if (d->team->notes[i].is_told) continue;
        if (pc_team_has_left(d->team, i))
            d->next = d->count;
        else
            is_anyone = true;
    }
    return is_anyone;
}

/* What this rank's own batch is fed with, and when the others are answered. */
static pc_code feed_at_desk(void *feeder, const pc_batch_state *state, pc_batch_piece *piece, pc_error *error) {
    (void)error;
    desk *d = feeder;
    answer_all(d);
    if (is_hungry(&d->pace, state) && d->next < d->count)
        *piece = hand_out(d, 0, state->idle, appetite(&d->pace, state));
    else if (d->next >= d->count && !is_anyone_there(d))
        piece->count = PC_BATCH_NO_MORE;
    return PC_OK;
}

static pc_code run_desk(pc_team *team, int64_t count, int jobs, pc_batch_source *source, pc_batch_sink *sink,
                        void *context, pc_error *error) {
    desk d = {.team = team, .count = count};
    for (int64_t i = 0; i < team->count; i++) { /* until it asks, a rank is taken to have as many threads as this one */
        team->notes[i].jobs = jobs;
        team->notes[i].is_told = false;
    }
    pc_code code = pc_batch_run_fed(feed_at_desk, &d, jobs, source, sink, context, error);
    if (code) d.next = d.count;
    for (; is_anyone_there(&d); sleep_ms(1)) answer_all(&d);
    return code;
}

/* ---- the other ranks ask ---- */

typedef struct asker {
    pc_team *team;
    pace pace;
    bool has_asked; /* and has no answer yet */
    bool is_told;   /* that there is no more */
} asker;

static void take_answer(asker *a, const int64_t *numbers, pc_batch_piece *piece) {
    *piece = (pc_batch_piece){numbers[0], numbers[1]};
    a->has_asked = false;
    a->is_told = piece->count == PC_BATCH_NO_MORE;
}

static pc_code feed_by_asking(void *feeder, const pc_batch_state *state, pc_batch_piece *piece, pc_error *error) {
    asker *a = feeder;
    int64_t from, numbers[PC_TEAM_MESSAGE_MAX];
    if (a->has_asked) {
        bool is_last = pc_team_has_left(a->team, 0);
        if (a->team->module->receive(a->team->self, PC_TEAM_WORK, &from, numbers) >= 0)
            take_answer(a, numbers, piece);
        else if (is_last)
            return pc_team_set_left(error, 0);
    } else if (is_hungry(&a->pace, state)) {
        int64_t most = appetite(&a->pace, state);
        send(a->team, 0, PC_TEAM_WORK, (int64_t[]){state->jobs, state->idle, most}, 3);
        a->has_asked = true;
    }
    return PC_OK;
}

static pc_code run_asking(pc_team *team, int jobs, pc_batch_source *source, pc_batch_sink *sink, void *context,
                          pc_error *error) {
    asker a = {.team = team};
    pc_code code = pc_batch_run_fed(feed_by_asking, &a, jobs, source, sink, context, error);
    int64_t numbers[PC_TEAM_MESSAGE_MAX];
    pc_batch_piece piece;
    if (a.has_asked && hear(team, PC_TEAM_WORK, numbers)) take_answer(&a, numbers, &piece);
    if (!a.is_told) send(team, 0, PC_TEAM_WORK, (int64_t[]){0, 0, 0}, 3);
    return code;
}

pc_code pc_team_run(pc_team *team, int64_t count, int jobs, pc_batch_source *source, pc_batch_sink *sink, void *context,
                    pc_error *error) {
    if (!team || !team->module) return pc_batch_run(count, jobs, source, sink, context, error);
    if (team->number == 0) return run_desk(team, count, jobs, source, sink, context, error);
    return run_asking(team, jobs, source, sink, context, error);
}

/* ---- all together ---- */

/* A code with its error, as numbers; how many. */
static int64_t pack(pc_code code, const pc_error *error, int64_t numbers[PC_TEAM_MESSAGE_MAX]) {
    memset(numbers, 0, PC_TEAM_MESSAGE_MAX * sizeof *numbers);
    numbers[0] = code;
    if (code && error) memcpy(numbers + 1, error, sizeof *error);
    return PC_TEAM_MESSAGE_MAX;
}

static pc_code unpack(const int64_t numbers[PC_TEAM_MESSAGE_MAX], pc_error *error) {
    pc_code code = (pc_code)numbers[0];
    if (code && error) memcpy(error, numbers + 1, sizeof *error);
    return code;
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
static bool listen(pc_team *team, verdict *v) {
    int64_t from, numbers[PC_TEAM_MESSAGE_MAX];
    pc_error error = {0};
    bool is_waiting = false;
    pc_team_has_left(team, 0); /* before: what a rank sent before it left is then here */
    while (team->module->receive(team->self, PC_TEAM_VERDICT, &from, numbers) >= 0) {
        consider(v, from, unpack(numbers, &error), &error);
        team->notes[from].is_heard = true;
    }
    for (int64_t i = 1; i < team->count; i++) {
        if (team->notes[i].is_heard) continue;
        if (team->notes[i].has_left)
            consider(v, i, pc_team_set_left(&error, i), &error);
        else
            is_waiting = true;
    }
    return is_waiting;
}

/* Rank 0 hears all, and tells all. */
static pc_code decide(pc_team *team, pc_code code, pc_error *error) {
    verdict v = {.rank = -1};
    int64_t numbers[PC_TEAM_MESSAGE_MAX];
    for (int64_t i = 1; i < team->count; i++) team->notes[i].is_heard = false;
    while (listen(team, &v)) sleep_ms(1);
    if (!code && v.rank > 0) code = pc_error_copy(error, &v.error);
    int64_t count = pack(code, error, numbers);
    for (int64_t i = 1; i < team->count; i++)
        if (team->notes[i].is_heard) send(team, i, PC_TEAM_VERDICT, numbers, count);
    return code;
}

pc_code pc_team_agree(pc_team *team, pc_code code, pc_error *error) {
    int64_t numbers[PC_TEAM_MESSAGE_MAX];
    if (!team || !team->module) return code;
    if (team->number == 0) return decide(team, code, error);
    int64_t count = pack(code, error, numbers);
    send(team, 0, PC_TEAM_VERDICT, numbers, count);
    return hear(team, PC_TEAM_VERDICT, numbers) ? unpack(numbers, error) : pc_team_set_left(error, 0);
}

/* Ranks wait here for each other without taking a core, which MPI itself would. */
static void leave(pc_team *team) {
    for (int64_t i = 0; i < team->count; i++)
        if (i != team->number && (i == 0 || team->number == 0)) send(team, i, PC_TEAM_LEAVE, &team->number, 1);
    for (int64_t i = 0; i < team->count; i++) {
        if (i == team->number || (i != 0 && team->number != 0)) continue;
        while (!pc_team_has_left(team, i)) sleep_ms(1);
    }
    team->module->end(team->self);
}

void pc_team_close(pc_team *team) {
    if (!team) return;
    if (team->module) leave(team);
    pc_free(team->notes);
    pc_free(team);
}
