#include "results/beside.h"

#include "engine/alloc.h"
#include "models/schedule/timing.h"
#include "results/export_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void pc_beside_free(pc_beside *beside) {
    pc_free(beside->start_ps);
    pc_free(beside->end_ps);
    pc_free(beside->delay_ps);
    pc_free(beside->device);
    memset(beside, 0, sizeof *beside);
}

/* What is at work. */
typedef struct work {
    const pc_trace_record *record;
    const pc_replay_trace *trace;
    const pc_traced_run *run;
    pc_trace_view view;
    int32_t *maker;  /* by position: whose message a pass waits for; PC_NO_PASS: none */
    pc_time *way_ps; /* by position: what that message takes, simulated */
    pc_beside *beside;
} work;

/* ---- the same passes ---- */

static pc_code check_shape(const work *w, pc_error *error) {
    const pc_trace_record *record = w->record;
    const pc_traced_run *run = w->run;
    if (record->devices == run->devices && record->chunks == run->chunks && record->microbatches == run->microbatches)
        return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "traces of %d devices, %d chunks and %d microbatches; expected those of the run: %d, %d and %d",
                        run->devices, run->chunks, run->microbatches, record->devices, record->chunks,
                        record->microbatches);
}

/* The measured passes of one iteration of replica 0: from `*first` on, how many. */
static int64_t find_iteration(const pc_traced_run *run, int64_t iteration, int64_t *first) {
    int64_t count = 0;
    for (int64_t i = 0; i < run->pass_count; i++) {
        if (run->passes[i].replica != 0 || run->passes[i].iteration != iteration) continue;
        if (count++ == 0) *first = i;
    }
    return count;
}

typedef struct length_of_iteration {
    int64_t iteration;
    pc_time length_ps;
} length_of_iteration;

static pc_time measure_length(const pc_traced_run *run, int64_t first, int64_t count) {
    pc_time start = INT64_MAX, end = 0;
    for (int64_t i = first; i < first + count; i++) {
        if (run->passes[i].start_ps < start) start = run->passes[i].start_ps;
        if (run->passes[i].end_ps > end) end = run->passes[i].end_ps;
    }
    return end - start;
}

static int by_length(const void *a, const void *b) {
    const length_of_iteration *x = a, *y = b;
    if (x->length_ps != y->length_ps) return x->length_ps < y->length_ps ? -1 : 1;
    return (x->iteration > y->iteration) - (x->iteration < y->iteration);
}

/* The whole iteration of median length. */
static pc_code choose_iteration(const work *w, int64_t *iteration, pc_error *error) {
    const pc_traced_run *run = w->run;
    int64_t whole = 0;
    length_of_iteration *list = pc_alloc((size_t)run->iterations, sizeof *list);
    if (!list) return pc_error_no_memory(error);
    for (int64_t i = 0; i < run->iterations; i++) {
        int64_t first = 0, count = find_iteration(run, i, &first);
        if (count == w->trace->pass_count) list[whole++] = (length_of_iteration){i, measure_length(run, first, count)};
    }
    if (whole > 0) {
        qsort(list, (size_t)whole, sizeof *list, by_length);
        *iteration = list[whole / 2].iteration;
    } else {
        pc_error_set(error, PC_ERROR_INPUT,
                     "traces without a whole iteration of %" PRId64 " passes, as the run has; expected one at least",
                     w->trace->pass_count);
    }
    pc_free(list);
    return whole > 0 ? PC_OK : PC_ERROR_INPUT;
}

static pc_code refuse_pass(const work *w, const pc_traced_run_pass *pass, const char *what, pc_error *error) {
    char name[PC_PASS_NAME_SIZE];
    pc_pass_name(&w->view.schedule, pass->pass, name);
    return pc_error_set(error, PC_ERROR_INPUT, "traces: %s of device %d %s; expected the passes of the run", name,
                        pass->device, what);
}

/* Each measured pass in its place. */
static pc_code place_passes(work *w, pc_error *error) {
    pc_beside *beside = w->beside;
    int64_t first = 0, count = find_iteration(w->run, beside->iteration, &first);
    pc_time origin = INT64_MAX;
    if (beside->iteration < 0 || beside->iteration >= w->run->iterations)
        return pc_error_set(error, PC_ERROR_INPUT, "there is no iteration %d; expected 1 to the traces' %d",
                            beside->iteration + 1, w->run->iterations);
    if (count != w->trace->pass_count)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "iteration %d has %" PRId64 " passes; expected %" PRId64 ", as the run has",
                            beside->iteration + 1, count, w->trace->pass_count);
    for (int64_t i = 0; i < count; i++) beside->end_ps[i] = PC_TIME_NOT_GIVEN;
    for (int64_t i = first; i < first + count; i++)
        if (w->run->passes[i].start_ps < origin) origin = w->run->passes[i].start_ps;
    for (int64_t i = first; i < first + count; i++) {
        const pc_traced_run_pass *pass = &w->run->passes[i];
        int32_t at = pc_pass_position(&w->view.index, pass->device, pass->pass.chunk, pass->pass.microbatch,
                                      (pc_pass_kind)pass->pass.kind);
        if (at == PC_NO_PASS) return refuse_pass(w, pass, "is not in the run", error);
        if (beside->end_ps[at] != PC_TIME_NOT_GIVEN) return refuse_pass(w, pass, "stands twice", error);
        beside->start_ps[at] = pass->start_ps - origin;
        beside->end_ps[at] = pass->end_ps - origin;
    }
    return PC_OK;
}

/* ---- messages ---- */

static pc_code join_transfers(work *w, pc_error *error) {
    for (int64_t i = 0; i < w->trace->pass_count; i++) w->maker[i] = PC_NO_PASS;
    for (int64_t i = 0; i < w->trace->transfer_count; i++) {
        int32_t maker, waiting;
        pc_code code = pc_trace_view_join(&w->view, w->trace, i, &maker, &waiting, error);
        if (code) return code;
        w->maker[waiting] = maker;
        w->way_ps[waiting] = w->trace->transfer_end_ps[i] - w->trace->pass_end_ps[maker];
    }
    return PC_OK;
}

/* A pass that waits for a message, as it is sorted by: ways, and in a way the order in which they were sent. */
typedef struct waiting_pass {
    int32_t from, to, position;
    pc_time sent_ps;
} waiting_pass;

static int by_way(const void *a, const void *b) {
    const waiting_pass *x = a, *y = b;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    if (x->sent_ps != y->sent_ps) return x->sent_ps < y->sent_ps ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

static int64_t count_messages(const pc_traced_run *run, int from, int to, int64_t *first) {
    int64_t count = 0;
    for (int64_t i = 0; i < run->message_count; i++) {
        if (run->messages[i].from != from || run->messages[i].to != to) continue;
        if (count++ == 0) *first = i;
    }
    return count;
}

/* Of one way the k-th message of every iteration is that of the k-th pass to send one; if their numbers are others,
 * nobody can say whose they are. */
static void give_messages(work *w, const waiting_pass *list, int64_t count) {
    int64_t first = 0, messages = count_messages(w->run, list[0].from, list[0].to, &first);
    if (messages != count * w->run->iterations) return;
    for (int64_t i = 0; i < count; i++)
        w->beside->delay_ps[list[i].position] = w->run->messages[first + w->beside->iteration * count + i].time_ps;
    w->beside->has_messages = true;
}

static pc_code find_messages(work *w, pc_error *error) {
    int64_t count = 0, passes = w->trace->pass_count;
    waiting_pass *list = pc_alloc((size_t)passes, sizeof *list);
    if (!list) return pc_error_no_memory(error);
    for (int64_t i = 0; i < passes; i++) {
        w->beside->delay_ps[i] = PC_TIME_NOT_GIVEN;
        if (w->maker[i] == PC_NO_PASS) continue;
        list[count++] = (waiting_pass){w->trace->pass_device[w->maker[i]], w->trace->pass_device[i], (int32_t)i,
                                       w->beside->end_ps[w->maker[i]]};
    }
    if (count > 0) qsort(list, (size_t)count, sizeof *list, by_way);
    for (int64_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && list[next].from == list[i].from && list[next].to == list[i].to;) next++;
        give_messages(w, &list[i], next - i);
    }
    pc_free(list);
    return PC_OK;
}

/* ---- where the difference goes ---- */

/* A pass's place in an order in time. */
typedef struct ordered_pass {
    pc_time start_ps;
    int64_t position;
} ordered_pass;

static int by_start(const void *a, const void *b) {
    const ordered_pass *x = a, *y = b;
    if (x->start_ps != y->start_ps) return x->start_ps < y->start_ps ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

/* Each device's passes in the order of their starts. */
static void order_passes(const work *w, const pc_time *start_ps, ordered_pass *list) {
    const int64_t *offsets = w->view.schedule.offsets;
    for (int64_t i = 0; i < w->beside->pass_count; i++) list[i] = (ordered_pass){start_ps[i], i};
    for (int d = 0; d < w->beside->devices; d++)
        if (offsets[d + 1] > offsets[d])
            qsort(&list[offsets[d]], (size_t)(offsets[d + 1] - offsets[d]), sizeof *list, by_start);
}

/* What each pass and the message that it waits for take, by position. */
typedef struct step_times {
    pc_time *duration_ps, *delay_ps;
} step_times;

static bool make_times(int64_t passes, step_times *times) {
    times->duration_ps = pc_alloc((size_t)passes, sizeof *times->duration_ps);
    times->delay_ps = pc_alloc((size_t)passes, sizeof *times->delay_ps);
    return times->duration_ps && times->delay_ps;
}

static void free_times(step_times *times) {
    pc_free(times->duration_ps);
    pc_free(times->delay_ps);
}

static pc_code time_order(const pc_schedule *order, const pc_costs *costs, pc_timing *timing, const step_times *times,
                          pc_time *makespan_ps, pc_error *error) {
    pc_timing_result result;
    pc_code code = pc_timing_run_each(timing, order, costs, times->duration_ps, times->delay_ps, &result, error);
    if (!code) *makespan_ps = result.totals.makespan_ps;
    return code;
}

/* Times what was measured in the measured order, too. Where clocks are so far off that this order waits for itself, it
 * has no time of its own: what it costs is then among the gaps. */
static pc_code time_measured_order(const work *w, const pc_costs *costs, pc_timing *timing, const step_times *times,
                                   pc_error *error) {
    pc_beside *beside = w->beside;
    pc_schedule order = w->view.schedule;
    step_times moved = {NULL, NULL};
    order.passes = pc_alloc((size_t)beside->pass_count, sizeof *order.passes);
    ordered_pass *list = pc_alloc((size_t)beside->pass_count, sizeof *list);
    pc_code code = make_times(beside->pass_count, &moved) && order.passes && list ? PC_OK : pc_error_no_memory(error);
    if (!code) order_passes(w, beside->start_ps, list);
    for (int64_t i = 0; i < beside->pass_count && !code; i++) {
        order.passes[i] = w->view.schedule.passes[list[i].position];
        moved.duration_ps[i] = times->duration_ps[list[i].position];
        moved.delay_ps[i] = times->delay_ps[list[i].position];
    }
    beside->with_order_ps = beside->with_messages_ps;
    if (!code) code = time_order(&order, costs, timing, &moved, &beside->with_order_ps, NULL);
    if (code == PC_ERROR_NO_MEMORY) pc_error_no_memory(error);
    free_times(&moved);
    pc_free(order.passes);
    pc_free(list);
    return code == PC_ERROR_INPUT ? PC_OK : code;
}

/* Times the simulated order with the measured passes, then with the measured messages, then the measured order. */
static pc_code time_steps(const work *w, const pc_costs *costs, pc_timing *timing, const step_times *times,
                          pc_error *error) {
    pc_beside *beside = w->beside;
    const pc_schedule *simulated = &w->view.schedule;
    for (int64_t i = 0; i < beside->pass_count; i++) {
        times->duration_ps[i] = beside->end_ps[i] - beside->start_ps[i];
        times->delay_ps[i] = w->maker[i] == PC_NO_PASS ? 0 : w->way_ps[i];
    }
    pc_code code = time_order(simulated, costs, timing, times, &beside->with_passes_ps, error);
    for (int64_t i = 0; i < beside->pass_count; i++)
        if (beside->delay_ps[i] != PC_TIME_NOT_GIVEN) times->delay_ps[i] = beside->delay_ps[i];
    if (!code) code = time_order(simulated, costs, timing, times, &beside->with_messages_ps, error);
    return code ? code : time_measured_order(w, costs, timing, times, error);
}

static pc_code find_steps(work *w, pc_error *error) {
    pc_costs costs = {.duration_ps = NULL};
    pc_timing *timing = NULL;
    step_times times = {NULL, NULL};
    pc_code code = make_times(w->beside->pass_count, &times) ? PC_OK : pc_error_no_memory(error);
    if (!code) code = pc_costs_create(w->record->devices, w->record->chunks, &costs, error);
    if (!code) code = pc_timing_create(&timing, error);
    for (int64_t i = 0; !code && i < (int64_t)costs.devices * costs.chunks * PC_PASS_KINDS; i++)
        costs.duration_ps[i] = 0; /* each pass has a time of its own */
    if (!code) code = time_steps(w, &costs, timing, &times, error);
    pc_timing_free(timing);
    pc_costs_free(&costs);
    free_times(&times);
    return code;
}

/* ---- device by device ---- */

/* When what a pass waits for is there: of the simulation, or as it was measured. */
static pc_time arrival_of(const work *w, int64_t position, const pc_time *end_ps, bool is_measured) {
    int32_t maker = w->maker[position];
    if (maker == PC_NO_PASS) return 0;
    bool is_seen = is_measured && w->beside->delay_ps[position] != PC_TIME_NOT_GIVEN;
    return end_ps[maker] + (is_seen ? w->beside->delay_ps[position] : w->way_ps[position]);
}

static void sum_device(const work *w, const ordered_pass *list, int64_t count, int which, const pc_time *end_ps,
                       pc_time whole_ps, pc_beside_device *sum) {
    pc_time before_ps = 0;
    sum->idle_ps[which] = whole_ps;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = list[i].position;
        pc_time arrival_ps = arrival_of(w, at, end_ps, which == 1);
        pc_time could_ps = arrival_ps > before_ps ? arrival_ps : before_ps;
        pc_time takes_ps = end_ps[at] - list[i].start_ps;
        sum->busy_ps[which][w->trace->pass[at].kind] += takes_ps;
        sum->idle_ps[which] -= takes_ps;
        if (list[i].start_ps > could_ps) sum->gap_ps[which] += list[i].start_ps - could_ps;
        if (which == 1 && at != w->view.schedule.offsets[w->trace->pass_device[at]] + i) sum->moved++;
        before_ps = end_ps[at];
    }
}

static pc_code sum_devices(work *w, pc_error *error) {
    pc_beside *beside = w->beside;
    ordered_pass *list = pc_alloc((size_t)beside->pass_count, sizeof *list);
    if (!list) return pc_error_no_memory(error);
    for (int which = 0; which < 2; which++) {
        const pc_time *start_ps = which ? beside->start_ps : w->trace->pass_start_ps;
        const pc_time *end_ps = which ? beside->end_ps : w->trace->pass_end_ps;
        pc_time *whole_ps = which ? &beside->measured_ps : &beside->simulated_ps;
        for (int64_t i = 0; i < beside->pass_count; i++)
            if (end_ps[i] > *whole_ps) *whole_ps = end_ps[i];
        order_passes(w, start_ps, list);
        for (int d = 0; d < beside->devices; d++) {
            int64_t from = w->view.schedule.offsets[d], count = w->view.schedule.offsets[d + 1] - from;
            sum_device(w, &list[from], count, which, end_ps, *whole_ps, &beside->device[d]);
        }
    }
    pc_free(list);
    return PC_OK;
}

/* ---- all of it ---- */

static pc_code make_room(work *w, pc_error *error) {
    pc_beside *beside = w->beside;
    size_t passes = (size_t)w->trace->pass_count;
    beside->pass_count = w->trace->pass_count;
    beside->devices = w->record->devices;
    beside->iterations = w->run->iterations;
    beside->start_ps = pc_alloc(passes, sizeof *beside->start_ps);
    beside->end_ps = pc_alloc(passes, sizeof *beside->end_ps);
    beside->delay_ps = pc_alloc(passes, sizeof *beside->delay_ps);
    beside->device = pc_alloc((size_t)beside->devices, sizeof *beside->device);
    w->maker = pc_alloc(passes, sizeof *w->maker);
    w->way_ps = pc_alloc(passes, sizeof *w->way_ps);
    bool is_there = beside->start_ps && beside->end_ps && beside->delay_ps && beside->device && w->maker && w->way_ps;
    return is_there ? PC_OK : pc_error_no_memory(error);
}

static pc_code fill(work *w, int64_t iteration, pc_error *error) {
    pc_code code = make_room(w, error);
    if (!code && iteration < 0) code = choose_iteration(w, &iteration, error);
    if (code) return code;
    w->beside->iteration = (int)iteration;
    code = place_passes(w, error);
    if (!code) code = join_transfers(w, error);
    if (!code) code = find_messages(w, error);
    if (!code) code = find_steps(w, error);
    return code ? code : sum_devices(w, error);
}

pc_code pc_beside_make(const pc_trace_record *record, const pc_traced_run *run, int64_t iteration, pc_beside *beside,
                       pc_error *error) {
    pc_beside made = {.pass_count = 0};
    work w = {.record = record, .trace = &record->replay.trace, .run = run, .beside = &made};
    pc_code code = check_shape(&w, error);
    if (!code) code = pc_trace_view_make(record, &w.view, error);
    if (code) return code;
    code = fill(&w, iteration, error);
    pc_free(w.maker);
    pc_free(w.way_ps);
    pc_trace_view_free(&w.view);
    if (code)
        pc_beside_free(&made);
    else
        *beside = made;
    return code;
}
