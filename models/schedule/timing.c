#include "models/schedule/timing.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/copies.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/timing_private.h"

#include <string.h>

/* ---- the workspace ---- */

/* All that the walk reads, writes and adds for a pass of one kind of one chunk of one stage, so that it has no case to
 * tell apart. A pass that waits for no other stage reads a row of zeros, and one that no other stage waits for writes
 * into a row that nobody reads. Rows are by microbatch. */
typedef struct lane {
    pc_time *input;  /* when the pass that it waits for ends, or why that is not known yet */
    pc_time *output; /* when it ends, for the one that waits */
    uint16_t *done;  /* bits of the kinds that its chunk has done */
    pc_time delay_ps;
    pc_time ready_ps; /* it starts no earlier */
    pc_time duration_ps;
    uint16_t care, expected; /* it may run where (done & care) == expected */
    bool waits_for_all;      /* its input comes by a collective, whose time is delay_ps always */
    struct meeting *meeting; /* of S and T: where all stages' come together; NULL of others */
} lane;

/* The ends of the S, or the T, of all stages by microbatch: a row as those of lanes, which is done with the last. */
typedef struct meeting {
    pc_time *ends, *latest;
    int32_t *count;
    int devices;
} meeting;

/* How far a stage has come. */
typedef struct stage_state {
    int64_t next;       /* the position of the pass it runs next */
    int32_t also_waits; /* the next stage that waits for the same pass; -1: none */
    pc_copy_lanes copy;
    pc_stage_timing sums;
} stage_state;

typedef struct buffer {
    void *block;
    size_t bytes;
} buffer;

struct pc_timing {
    /* These own what the pointers below point to. */
    buffer of_lanes, of_states, of_stages, of_ready, of_ends, of_done, of_start, of_end, of_meetings, of_counts;
    lane *lanes; /* [devices][chunks][PC_PASS_KINDS] */
    stage_state *states;
    pc_stage_timing *stages; /* as states, one a stage */
    int32_t *ready;          /* stages that may go on; a stack */
    int32_t ready_count;
    pc_time *f_ends, *b_ends; /* [devices][chunks][microbatches] */
    pc_time *zeros, *unread;  /* [microbatches] */
    meeting of_s, of_t;       /* zeroed without S and T */
    uint16_t *done;           /* [devices][chunks][microbatches] */
    pc_time *start, *end;     /* by position */
    const pc_time *durations; /* by position, in place of the lanes'; or NULL */
    const pc_time *delays;    /* likewise */
    const uint8_t *pairs;     /* the schedule's, where the costs run pairs as such; or NULL */
    const pc_copies *copies;  /* to the host, and: */
    pc_copy_plan plan;
};

/* In the rows of ends, what is no time: a pass that is not done, and one that is not done and that a stage waits for.
 * Only one part needs a pass's output; but all stages wait for the last part's F, and for all S and T, where these are:
 * also_waits leads from one to the next. */
enum { NOT_DONE = -1, WAITER_BASE = -2 };

static pc_time as_waiter(int stage) {
    return WAITER_BASE - stage;
}

pc_code pc_timing_create(pc_timing **timing, pc_error *error) {
    pc_timing *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    *timing = made;
    return PC_OK;
}

void pc_timing_free(pc_timing *timing) {
    if (!timing) return;
    buffer *buffers[] = {&timing->of_lanes,    &timing->of_states, &timing->of_stages, &timing->of_ready,
                         &timing->of_ends,     &timing->of_done,   &timing->of_start,  &timing->of_end,
                         &timing->of_meetings, &timing->of_counts};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) pc_free(buffers[i]->block);
    pc_copy_plan_free(&timing->plan);
    pc_free(timing);
}

/* Room for `count` elements of `size` bytes; what was there is not kept. */
static void *room(buffer *b, size_t count, size_t size) {
    if (count > SIZE_MAX / 2 / size) return NULL;
    if (b->block && count * size <= b->bytes) return b->block;
    void *block = pc_realloc(NULL, count, size);
    if (!block) return NULL;
    pc_free(b->block);
    *b = (buffer){block, count * size};
    return block;
}

/* Two rows each for S and T: when all are done, and the latest so far. */
static bool make_meetings(pc_timing *t, const pc_schedule *schedule) {
    size_t m = (size_t)schedule->microbatches;
    t->of_s = t->of_t = (meeting){.ends = NULL};
    if (schedule->barriers == PC_BARRIERS_NONE) return true;
    pc_time *rows = room(&t->of_meetings, 4 * m, sizeof *rows);
    int32_t *counts = room(&t->of_counts, 2 * m, sizeof *counts);
    if (!rows || !counts) return false;
    memset(rows, 0xff, 4 * m * sizeof *rows); /* NOT_DONE */
    memset(counts, 0, 2 * m * sizeof *counts);
    t->of_s = (meeting){rows, rows + m, counts, schedule->devices};
    t->of_t = (meeting){rows + 2 * m, rows + 3 * m, counts + m, schedule->devices};
    return true;
}

static bool make_room(pc_timing *t, const pc_schedule *schedule) {
    size_t devices = (size_t)schedule->devices, rows = devices * (size_t)schedule->chunks;
    size_t microbatches = (size_t)schedule->microbatches, passes = (size_t)schedule->offsets[schedule->devices];
    t->lanes = room(&t->of_lanes, rows * PC_PASS_KINDS, sizeof *t->lanes);
    t->states = room(&t->of_states, devices, sizeof *t->states);
    t->stages = room(&t->of_stages, devices, sizeof *t->stages);
    t->ready = room(&t->of_ready, devices, sizeof *t->ready);
    t->f_ends = room(&t->of_ends, (2 * rows + 2) * microbatches, sizeof *t->f_ends);
    t->done = room(&t->of_done, rows * microbatches, sizeof *t->done);
    t->start = room(&t->of_start, passes, sizeof *t->start);
    t->end = room(&t->of_end, passes, sizeof *t->end);
    if (!t->lanes || !t->states || !t->stages || !t->ready || !t->f_ends || !t->done || !t->start || !t->end ||
        !make_meetings(t, schedule))
        return false;
    t->b_ends = t->f_ends + rows * microbatches;
    t->unread = t->b_ends + rows * microbatches;
    t->zeros = t->unread + microbatches;
    return true;
}

/* ---- lanes ---- */

enum { F = 1 << PC_PASS_F, B = 1 << PC_PASS_B, W = 1 << PC_PASS_W, BW = 1 << PC_PASS_BW, R = 1 << PC_PASS_R };
enum { S = 1 << PC_PASS_S, T = 1 << PC_PASS_T };
enum { UNVISITED = 0x4000, NEVER = 0x8000 }; /* no kind's bits */

/* What must be done of a pass's own chunk and microbatch before it, and what must not: the dependencies within a stage,
 * and every pass once. They delay nothing, for a stage runs its passes one by one. */
static const struct rule {
    uint16_t before, not_yet;
} rules[PC_PASS_KINDS] = {
    [PC_PASS_F] = {0, F | B | W | BW | R | UNVISITED},
    [PC_PASS_B] = {F, B | W | BW},
    [PC_PASS_W] = {B, W | BW},
    [PC_PASS_BW] = {F, B | W | BW},
    [PC_PASS_R] = {F, B | W | BW | R},
    [PC_PASS_S] = {0, S | T},
    [PC_PASS_T] = {S, T},
};

/* Where a pass finds its input: on another stage or on its own, or nowhere. */
typedef struct source {
    pc_time *ends;
    pc_time delay_ps;
    bool is_collective;
} source;

/* Where chunk `chunk` of the stage finds what part `part` has done, in `ends`, [devices][chunks][microbatches]. */
static source find_source(const pc_timing *t, const pc_schedule *schedule, const pc_costs *costs, int stage, int chunk,
                          int part, pc_time *ends) {
    pc_placement placement = schedule->placement;
    int devices = schedule->devices;
    if (part < 0 || part == pc_placement_parts(placement, devices, schedule->chunks))
        return (source){t->zeros, 0, false};
    /* Where it matters which microbatch asks, chunk c is that of microbatch c. */
    int from = pc_placement_stage(placement, devices, part, chunk);
    pc_pass asks = {chunk, (int16_t)chunk, 0};
    int64_t row = (int64_t)from * schedule->chunks + pc_pass_chunk_in(schedule, asks, part);
    return (source){ends + row * schedule->microbatches, from == stage ? 0 : pc_costs_delay(costs, from, stage), false};
}

/* The same of a backward pass: of the last part it may be a meeting of all stages. */
static source find_behind(const pc_timing *t, const pc_schedule *schedule, const pc_costs *costs, int stage, int chunk,
                          int part) {
    bool is_last = part + 1 == pc_placement_parts(schedule->placement, schedule->devices, schedule->chunks);
    if (is_last && schedule->barriers == PC_BARRIERS_ONE) return (source){t->of_s.ends, costs->vocab.exchange_ps, true};
    if (is_last && schedule->barriers == PC_BARRIERS_TWO) return (source){t->of_t.ends, costs->vocab.reduce_ps, true};
    return find_source(t, schedule, costs, stage, chunk, part + 1, t->b_ends);
}

/* S waits for the last part's F, T for all S. */
static void make_vocab_lanes(pc_timing *t, const pc_schedule *schedule, const pc_costs *costs, int stage) {
    int last = pc_placement_parts(schedule->placement, schedule->devices, schedule->chunks) - 1;
    source of_last = find_source(t, schedule, costs, stage, 0, last, t->f_ends);
    int from = pc_placement_stage(schedule->placement, schedule->devices, last, 0);
    lane *lanes = t->lanes + (int64_t)stage * schedule->chunks * PC_PASS_KINDS;
    lanes[PC_PASS_S].input = of_last.ends;
    lanes[PC_PASS_S].delay_ps = from == stage ? 0 : costs->vocab.broadcast_ps;
    lanes[PC_PASS_S].waits_for_all = lanes[PC_PASS_T].waits_for_all = true;
    lanes[PC_PASS_S].meeting = &t->of_s;
    lanes[PC_PASS_T].input = t->of_s.ends;
    lanes[PC_PASS_T].delay_ps = costs->vocab.exchange_ps;
    lanes[PC_PASS_T].meeting = &t->of_t;
}

static void make_lanes(const pc_timing *t, const pc_schedule *schedule, const pc_costs *costs, int stage, int chunk) {
    int64_t row = (int64_t)stage * schedule->chunks + chunk, cells = row * schedule->microbatches;
    int part = pc_placement_part(schedule->placement, schedule->devices, stage, chunk);
    source before = find_source(t, schedule, costs, stage, chunk, part - 1, t->f_ends);
    source behind = find_behind(t, schedule, costs, stage, chunk, part), nowhere = {t->zeros, 0, false};
    bool has_vocab = schedule->barriers != PC_BARRIERS_NONE && chunk == 0;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        bool is_forward = kind == PC_PASS_F, is_backward = kind == PC_PASS_B || kind == PC_PASS_BW;
        source from = is_forward ? before : is_backward ? behind : nowhere;
        pc_time duration = pc_costs_duration(costs, stage, chunk, kind);
        bool can_run = duration >= 0 && (kind < PC_PASS_S || has_vocab);
        t->lanes[row * PC_PASS_KINDS + kind] =
            (lane){.input = from.ends,
                   .output = is_forward    ? t->f_ends + cells
                             : is_backward ? t->b_ends + cells
                                           : t->unread,
                   .done = t->done + cells,
                   .delay_ps = from.delay_ps,
                   .waits_for_all = is_backward && behind.is_collective,
                   .ready_ps = is_forward ? pc_costs_ready(costs, stage, chunk) : 0,
                   .duration_ps = duration,
                   .care = can_run ? rules[kind].before | rules[kind].not_yet : NEVER,
                   .expected = can_run ? rules[kind].before : NEVER};
    }
}

/* Marks what no microbatch goes through, where there are replicas. */
static void mark_unvisited(pc_timing *t, const pc_schedule *schedule) {
    uint16_t *done = t->done;
    for (int stage = 0; stage < schedule->devices; stage++)
        for (int chunk = 0; chunk < schedule->chunks; chunk++)
            for (int i = 0; i < schedule->microbatches; i++)
                *done++ = pc_placement_visits(schedule->placement, chunk, i) ? 0 : UNVISITED;
}

static void prepare(pc_timing *t, const pc_schedule *schedule, const pc_costs *costs) {
    size_t cells = (size_t)schedule->devices * (size_t)schedule->chunks * (size_t)schedule->microbatches;
    for (int stage = 0; stage < schedule->devices; stage++)
        for (int chunk = 0; chunk < schedule->chunks; chunk++) make_lanes(t, schedule, costs, stage, chunk);
    for (int stage = 0; schedule->barriers != PC_BARRIERS_NONE && stage < schedule->devices; stage++)
        make_vocab_lanes(t, schedule, costs, stage);
    memset(t->f_ends, 0xff, 2 * cells * sizeof *t->f_ends); /* NOT_DONE */
    memset(t->unread, 0, 2 * (size_t)schedule->microbatches * sizeof *t->unread);
    memset(t->done, 0, cells * sizeof *t->done);
    if (pc_placement_visited(schedule->placement, schedule->chunks) < schedule->chunks) mark_unvisited(t, schedule);
    t->ready_count = 0;
    for (int stage = schedule->devices; stage-- > 0;) { /* the first stage on top */
        t->states[stage] = (stage_state){.next = schedule->offsets[stage], .also_waits = -1};
        t->ready[t->ready_count++] = stage;
    }
}

static bool is_in_range(const pc_schedule *schedule, pc_pass pass) {
    return (uint32_t)pass.microbatch < (uint32_t)schedule->microbatches &&
           (uint32_t)pass.chunk < (uint32_t)schedule->chunks && (uint32_t)pass.kind < PC_PASS_KINDS;
}

/* ---- slices ---- */

/* Whether the slices of each microbatch stand in their order on a stage: forward in F, and back again in B and BW. A
 * slice's F and BW are done when the next one in that order comes. */
static bool keeps_slices(uint16_t *done, const pc_schedule *schedule, int stage) {
    int slices = pc_placement_slices(schedule->placement, schedule->chunks), m = schedule->microbatches;
    memset(done, 0, (size_t)schedule->chunks * (size_t)m * sizeof *done);
    for (int64_t i = schedule->offsets[stage]; i < schedule->offsets[stage + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        bool is_back = pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW;
        if (!is_in_range(schedule, pass)) return false;
        if (pass.kind != PC_PASS_F && !is_back) continue;
        uint16_t *own = &done[(int64_t)pass.chunk * m + pass.microbatch], mark = is_back ? BW : F;
        bool is_first = pass.chunk % slices == (is_back ? slices - 1 : 0);
        if (!is_first && !(own[is_back ? m : -m] & mark)) return false;
        *own |= mark;
    }
    return true;
}

/* The order within a stage delays nothing, so that the walk need not know it. */
static bool keeps_all_slices(const pc_timing *t, const pc_schedule *schedule) {
    for (int stage = 0; stage < schedule->devices; stage++)
        if (!keeps_slices(t->done, schedule, stage)) return false;
    return true;
}

/* ---- the walk ---- */

typedef enum verdict { RUNS, BROKEN, RAN_OVER } verdict;

/* Puts the end of a pass into its row, and those that wait for it onto the stack. */
static inline void put_end(pc_timing *t, pc_time *row, pc_time end) {
    pc_time waiter = *row;
    *row = end;
    if (waiter > WAITER_BASE) return;
    for (int32_t stage = (int32_t)(WAITER_BASE - waiter); stage >= 0;) {
        int32_t next = t->states[stage].also_waits;
        t->states[stage].also_waits = -1;
        t->ready[t->ready_count++] = stage;
        stage = next;
    }
}

static void meet(pc_timing *t, meeting *x, int microbatch, pc_time end) {
    if (end > x->latest[microbatch]) x->latest[microbatch] = end;
    if (++x->count[microbatch] == x->devices) put_end(t, &x->ends[microbatch], x->latest[microbatch]);
}

/* Runs one pass whose input is done, `*now` being the end of the one before. */
static inline verdict run_pass(pc_timing *t, const lane *way, pc_pass pass, int64_t position, pc_time delay,
                               pc_time duration, pc_time *now) {
    pc_time arrival, end;
    uint16_t *done = &way->done[pass.microbatch];
    if ((*done & way->care) != way->expected) return BROKEN;
    *done |= (uint16_t)(1 << pass.kind);
    if (!pc_time_add(way->input[pass.microbatch], delay, &arrival)) return RAN_OVER;
    pc_time start = arrival > *now ? arrival : *now;
    if (start < way->ready_ps) start = way->ready_ps;
    if (!pc_time_add(start, duration, &end)) return RAN_OVER;
    put_end(t, &way->output[pass.microbatch], end);
    if (way->meeting) meet(t, way->meeting, pass.microbatch, end);
    t->start[position] = start;
    t->end[position] = *now = end;
    return RUNS;
}

/* A backward pass whose activations are on the host waits for them. */
static pc_time wait_for_copy(pc_timing *t, const pc_schedule *schedule, int stage, int64_t position,
                             pc_copy_lanes *lanes, pc_time now) {
    int64_t at = (int64_t)stage * schedule->chunks + schedule->passes[position].chunk;
    if (t->plan.mark[position] != PC_COPY_BACK) return now;
    pc_time before_ps = t->end[t->plan.after[position]];
    pc_time back_ps =
        pc_copy_back(lanes, before_ps, t->plan.out_end_ps[t->plan.partner[position]], t->copies->back_ps[at]);
    return back_ps > now ? back_ps : now;
}

static void copy_out(pc_timing *t, const pc_schedule *schedule, int stage, int64_t position, pc_copy_lanes *lanes) {
    int64_t at = (int64_t)stage * schedule->chunks + schedule->passes[position].chunk;
    if (t->plan.mark[position] == PC_COPY_OUT)
        t->plan.out_end_ps[position] = pc_copy_out(lanes, t->end[position], t->copies->out_ps[at]);
}

/* Whether the input of a pass is done. Where it is not, the stage waits for it. */
static inline bool has_input(const lane *x, int32_t microbatch, int stage, stage_state *state) {
    pc_time input = x->input[microbatch];
    if (input >= 0) return true;
    if (input <= WAITER_BASE) state->also_waits = (int32_t)(WAITER_BASE - input);
    x->input[microbatch] = as_waiter(stage);
    return false;
}

static inline pc_time delay_of(const pc_timing *t, const lane *x, int64_t position) {
    return t->delays && !x->waits_for_all ? t->delays[position] : x->delay_ps;
}

/* The F at `position` begins a pair: it starts no earlier than the backward pass behind it could. *now becomes that. */
static verdict wait_for_second(pc_timing *t, const pc_schedule *schedule, int64_t position, stage_state *state,
                               int stage, pc_time *now, bool *waits) {
    pc_pass second = schedule->passes[position + 1];
    if (!is_in_range(schedule, second)) return BROKEN;
    const lane *x = &t->lanes[((int64_t)stage * schedule->chunks + second.chunk) * PC_PASS_KINDS + second.kind];
    pc_time arrival;
    *waits = !has_input(x, second.microbatch, stage, state);
    if (*waits) return RUNS;
    if (!pc_time_add(x->input[second.microbatch], delay_of(t, x, position + 1), &arrival)) return RAN_OVER;
    if (arrival > *now) *now = arrival;
    if (t->copies) *now = wait_for_copy(t, schedule, stage, position + 1, &state->copy, *now);
    return RUNS;
}

/* Runs a stage until it has to wait or has no more passes. */
static verdict run_stage(pc_timing *t, const pc_schedule *schedule, const pc_costs *costs, int stage) {
    stage_state state = t->states[stage];
    const lane *lanes = t->lanes + (int64_t)stage * schedule->chunks * PC_PASS_KINDS;
    const pc_time *durations = t->durations;
    pc_time now = state.sums.end_ps;
    for (; state.next < schedule->offsets[stage + 1]; state.next++) {
        pc_pass pass = schedule->passes[state.next];
        if (!is_in_range(schedule, pass)) return BROKEN;
        const lane *x = &lanes[pass.chunk * PC_PASS_KINDS + pass.kind];
        if (!has_input(x, pass.microbatch, stage, &state)) break;
        pc_time duration = durations ? durations[state.next] : x->duration_ps, delay = delay_of(t, x, state.next);
        if (t->pairs) {
            bool waits = false;
            if (!durations) duration = pc_costs_busy_ps(costs, schedule, stage, state.next);
            verdict found =
                t->pairs[state.next] ? wait_for_second(t, schedule, state.next, &state, stage, &now, &waits) : RUNS;
            if (found != RUNS) return found;
            if (waits) break;
        }
        bool is_second = t->pairs && pc_schedule_is_second(schedule, state.next);
        if (t->copies && !is_second) now = wait_for_copy(t, schedule, stage, state.next, &state.copy, now);
        verdict found = run_pass(t, x, pass, state.next, delay, duration, &now);
        if (found != RUNS) return found;
        if (t->copies) copy_out(t, schedule, stage, state.next, &state.copy);
        state.sums.busy_ps += duration;
        if (pass.kind != PC_PASS_R) state.sums.work_ps += duration;
    }
    state.sums.end_ps = now;
    t->states[stage] = state;
    return RUNS;
}

/* `vocab`: S and T, where the chunk has them. */
static bool is_complete(uint16_t done, int vocab) {
    int but_r = done & ~R;
    return but_r == (F | BW | vocab) || but_r == (F | B | W | vocab) || done == UNVISITED;
}

/* Whether every chunk has all of every microbatch. Then no pass is left in the orders either: it would be there twice,
 * its input would be done, and its stage would have come to it. */
static bool is_all_done(const pc_timing *t, const pc_schedule *schedule) {
    int64_t cells = (int64_t)schedule->devices * schedule->chunks * schedule->microbatches;
    bool has_vocab = schedule->barriers != PC_BARRIERS_NONE;
    for (int64_t i = 0; i < cells; i++) {
        bool is_first = has_vocab && i / schedule->microbatches % schedule->chunks == 0;
        if (!is_complete(t->done[i], is_first ? S | T : 0)) return false;
    }
    return true;
}

static verdict walk(pc_timing *t, const pc_schedule *schedule, const pc_costs *costs) {
    while (t->ready_count > 0) {
        verdict found = run_stage(t, schedule, costs, t->ready[--t->ready_count]);
        if (found != RUNS) return found;
    }
    return is_all_done(t, schedule) ? RUNS : BROKEN;
}

/* ---- memory ---- */

/* The most that a stage's order holds at once, after the walk: whether a chunk recomputes then stands in `done`. */
static int64_t find_peak(const pc_timing *t, const pc_schedule *schedule, const pc_costs *costs, int stage) {
    const uint16_t *done = t->done + (int64_t)stage * schedule->chunks * schedule->microbatches;
    int64_t level = 0, peak = 0;
    for (int64_t i = schedule->offsets[stage]; i < schedule->offsets[stage + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        bool is_recomputed = done[(int64_t)pass.chunk * schedule->microbatches + pass.microbatch] & R;
        level += pc_costs_taken_at(costs, schedule, stage, i, is_recomputed);
        if (level > peak) peak = level;
        level -= pc_costs_given_at(costs, schedule, stage, i);
    }
    return peak;
}

/* ---- what came of it ---- */

pc_timing_totals pc_timing_sum(const pc_stage_timing *stages, int devices) {
    pc_timing_totals totals = {0};
    for (int d = 0; d < devices; d++) {
        const pc_stage_timing *x = &stages[d];
        pc_time span = x->end_ps - x->start_ps;
        if (span > totals.span_ps) totals.span_ps = span;
        if (x->end_ps > totals.makespan_ps) totals.makespan_ps = x->end_ps;
        if (x->work_ps > totals.work_ps) totals.work_ps = x->work_ps;
        if (x->peak_bytes > totals.peak_bytes) totals.peak_bytes = x->peak_bytes;
    }
    return totals;
}

bool pc_timing_exceeds(const pc_stage_timing *stages, int devices, pc_memory_limit memory_limit) {
    for (int d = 0; d < devices; d++)
        if (stages[d].peak_bytes > pc_memory_limit_of(memory_limit, d)) return true;
    return false;
}

static pc_timing_result make_result(pc_timing *t, const pc_schedule *schedule, const pc_costs *costs,
                                    bool with_memory) {
    for (int d = 0; d < schedule->devices; d++) {
        t->stages[d] = t->states[d].sums;
        if (with_memory) t->stages[d].peak_bytes = find_peak(t, schedule, costs, d);
        if (schedule->offsets[d] < schedule->offsets[d + 1]) t->stages[d].start_ps = t->start[schedule->offsets[d]];
    }
    return (pc_timing_result){t->start, t->end, t->stages, pc_timing_sum(t->stages, schedule->devices)};
}

/* ---- the run ---- */

/* The walk only finds that it cannot go on. Why takes longer, and is asked for once. */
static pc_code explain(const pc_schedule *schedule, const pc_costs *costs, verdict found, pc_error *error) {
    if (found == RAN_OVER)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "simulated time: runs over; expected everything to end within 106 days of simulated time");
    pc_code code = pc_schedule_check(schedule, error);
    if (!code) code = pc_timing_check_given(schedule, costs, error);
    if (!code) code = pc_error_set(error, PC_ERROR_INPUT, "costs: a negative time; expected none below zero");
    return code;
}

static pc_code run(pc_timing *timing, const pc_schedule *schedule, const pc_costs *costs, bool with_memory,
                   pc_timing_result *result, pc_error *error) {
    pc_code code = pc_timing_check_costs(schedule, costs, error);
    if (code) return code;
    if (!make_room(timing, schedule)) return pc_error_no_memory(error);
    timing->pairs = costs->pair_ps ? schedule->pairs : NULL;
    if (timing->pairs) code = pc_schedule_check_pairs(schedule, error);
    if (code) return code;
    timing->copies = pc_costs_have_copies(costs) ? &costs->copies : NULL;
    if (timing->copies) code = pc_copy_plan_make(schedule, costs, &timing->plan, error);
    if (code) return code;
    bool is_cut = pc_placement_has_slices(schedule->placement);
    if (is_cut && !keeps_all_slices(timing, schedule)) return explain(schedule, costs, BROKEN, error);
    prepare(timing, schedule, costs);
    if (schedule->barriers != PC_BARRIERS_NONE && schedule->devices > PC_VOCAB_DEVICES_MAX)
        return pc_schedule_check(schedule, error);
    bool has_replicas = schedule->placement == PC_PLACEMENT_BIDIRECTIONAL; /* of two chunks, or not at all */
    verdict found = has_replicas && schedule->chunks != 2 ? BROKEN : walk(timing, schedule, costs);
    if (found != RUNS) return explain(schedule, costs, found, error);
    *result = make_result(timing, schedule, costs, with_memory);
    return PC_OK;
}

pc_code pc_timing_run_each(pc_timing *timing, const pc_schedule *schedule, const pc_costs *costs,
                           const pc_time *duration_ps, const pc_time *delay_ps, pc_timing_result *result,
                           pc_error *error) {
    timing->durations = duration_ps;
    timing->delays = delay_ps;
    return run(timing, schedule, costs, false, result, error);
}

pc_code pc_timing_run_passes(pc_timing *timing, const pc_schedule *schedule, const pc_costs *costs,
                             const pc_time *duration_ps, pc_timing_result *result, pc_error *error) {
    timing->durations = duration_ps;
    timing->delays = NULL;
    return run(timing, schedule, costs, true, result, error);
}

pc_code pc_timing_run(pc_timing *timing, const pc_schedule *schedule, const pc_costs *costs, pc_timing_result *result,
                      pc_error *error) {
    return pc_timing_run_passes(timing, schedule, costs, NULL, result, error);
}
