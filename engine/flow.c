/* Flows: tasks that last as long as their bytes take over a route of links, shared max-min fair.
 *
 * When a flow begins or ends, the flows that may notice are those it shares a link with, those they share a link with,
 * and so on. Only their rates are computed anew; a flow whose rate stays keeps its end event, so that one which is
 * never disturbed ends exactly latency + bytes / bandwidth after its start.
 */
#include "engine/simulation_internal.h"

#include "engine/alloc.h"
#include "engine/maxmin.h"

#include <math.h>
#include <string.h>

/* ---- memory ---- */

/* Room for `count` flows at once, over routes of `longest` links each. */
static bool fit_flows(flow_state *x, size_t count, size_t longest) {
    const array_spec of_flows[] = {ARRAY(x->flows), ARRAY(x->noticing), ARRAY(x->local_rate)};
    const array_spec of_offsets[] = {ARRAY(x->local_offset)}; /* one more than there are flows */
    const array_spec of_hops[] = {ARRAY(x->hops), ARRAY(x->local_route)};
    return count * longest <= INT32_MAX && FIT(of_hops, count * longest, &x->hop_capacity) &&
           FIT(of_offsets, count + 1, &x->offset_capacity) && FIT(of_flows, count, &x->flow_capacity);
}

static bool fit_links(flow_state *x, size_t links) {
    const array_spec of_links[] = {ARRAY(x->link_first), ARRAY(x->link_epoch),    ARRAY(x->links),
                                   ARRAY(x->local_link), ARRAY(x->local_waiting), ARRAY(x->local_capacity),
                                   ARRAY(x->local_left)};
    return FIT(of_links, links, &x->link_capacity);
}

bool pc_flow_prepare(pc_simulation *simulation) {
    enum { FLOWS = 64 };
    const pc_program *program = simulation->program;
    flow_state *x = &simulation->flow;
    size_t links = (size_t)program->link_count;
    if (program->longest_route == 0) return true;
    /* The room that is there may be for shorter routes. */
    size_t flows = x->flow_capacity > FLOWS ? x->flow_capacity : FLOWS;
    if (!fit_links(x, links) || !fit_flows(x, flows, (size_t)program->longest_route)) return false;
    memset(x->link_epoch, 0, links * sizeof *x->link_epoch);
    memset(x->link_first, 0xff, links * sizeof *x->link_first); /* -1 */
    x->epoch = 0;
    x->flow_count = 0;
    x->free = -1;
    return true;
}

void pc_flow_free(flow_state *x) {
    void *arrays[] = {x->flows,      x->hops,           x->link_first,   x->link_epoch,  x->noticing,
                      x->links,      x->local_link,     x->local_offset, x->local_route, x->local_waiting,
                      x->local_rate, x->local_capacity, x->local_left};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
}

/* A place for a flow that begins; -1, and the run over, where memory is short. The last one given back is the first one
 * taken: few are under way at once, and their places stay in the cache. */
static int32_t take_place(pc_simulation *s) {
    flow_state *x = &s->flow;
    int32_t place = x->free;
    if (place >= 0) {
        x->free = x->flows[place].next_free;
        return place;
    }
    if ((size_t)x->flow_count == x->flow_capacity &&
        !fit_flows(x, 2 * x->flow_capacity, (size_t)s->program->longest_route)) {
        pc_simulation_fail(s, &s->no_memory);
        return -1;
    }
    return x->flow_count++;
}

static void give_place(flow_state *x, int32_t place) {
    x->flows[place].next_free = x->free;
    x->free = place;
}

/* ---- which flows cross which links ---- */

static inline const int32_t *links_of(const pc_program *program, int32_t route, int32_t *count) {
    *count = program->route_offset[route + 1] - program->route_offset[route];
    return program->route_links + program->route_offset[route];
}

/* The rate that the flow has where it shares no link with another one; 0 where it shares some. */
static double enter_links(pc_simulation *s, int32_t place) {
    flow_state *x = &s->flow;
    int32_t count, number = place * s->program->longest_route;
    const int32_t *links = links_of(s->program, x->flows[place].route, &count);
    double alone = INFINITY;
    for (int32_t i = 0; i < count; i++, number++) {
        int32_t first = x->link_first[links[i]];
        double capacity = s->program->links[links[i]].bandwidth_bytes_per_s;
        x->hops[number] = (hop){.next = first, .prev = -1, .flow = place};
        x->link_first[links[i]] = number;
        if (capacity < alone) alone = capacity;
        if (first < 0) continue;
        x->hops[first].prev = number;
        alone = 0.0;
    }
    return alone;
}

/* Whether it shared no link with another one. */
static bool leave_links(pc_simulation *s, int32_t place) {
    flow_state *x = &s->flow;
    int32_t count, number = place * s->program->longest_route;
    const int32_t *links = links_of(s->program, x->flows[place].route, &count);
    bool was_alone = true;
    for (int32_t i = 0; i < count; i++, number++) {
        int32_t next = x->hops[number].next, prev = x->hops[number].prev;
        was_alone = was_alone && next < 0 && prev < 0;
        if (next >= 0) x->hops[next].prev = prev;
        if (prev >= 0)
            x->hops[prev].next = next;
        else
            x->link_first[links[i]] = next;
    }
    return was_alone;
}

/* ---- who notices ---- */

static void add_links(pc_simulation *s, int32_t place, int32_t *link_count) {
    flow_state *x = &s->flow;
    int32_t count;
    const int32_t *links = links_of(s->program, x->flows[place].route, &count);
    for (int32_t i = 0; i < count; i++) {
        if (x->link_epoch[links[i]] == x->epoch) continue;
        x->link_epoch[links[i]] = x->epoch;
        x->local_link[links[i]] = *link_count;
        x->local_capacity[*link_count] = s->program->links[links[i]].bandwidth_bytes_per_s;
        x->links[(*link_count)++] = links[i];
    }
}

/* Collects, from the links of a flow on, all links and flows that hang together; returns the number of flows. */
static int32_t collect(pc_simulation *s, int32_t place, int32_t *link_count) {
    flow_state *x = &s->flow;
    int32_t flow_count = 0;
    *link_count = 0;
    x->epoch++;
    add_links(s, place, link_count);
    for (int32_t l = 0; l < *link_count; l++)
        for (int32_t number = x->link_first[x->links[l]]; number >= 0; number = x->hops[number].next) {
            int32_t other = x->hops[number].flow;
            if (x->flows[other].epoch == x->epoch) continue;
            x->flows[other].epoch = x->epoch;
            x->noticing[flow_count++] = other;
            add_links(s, other, link_count);
        }
    return flow_count;
}

/* Numbers the routes of the collected flows anew, for pc_maxmin_rates. */
static void make_local_routes(pc_simulation *s, int32_t flow_count) {
    flow_state *x = &s->flow;
    int32_t used = 0;
    for (int32_t f = 0; f < flow_count; f++) {
        int32_t count;
        const int32_t *links = links_of(s->program, x->flows[x->noticing[f]].route, &count);
        x->local_offset[f] = used;
        for (int32_t i = 0; i < count; i++) x->local_route[used++] = x->local_link[links[i]];
    }
    x->local_offset[flow_count] = used;
}

/* ---- rates ---- */

static void set_rate(pc_simulation *s, int32_t place, double rate) {
    flow *x = &s->flow.flows[place];
    pc_time now = pc_engine_now(s->engine), delay;
    if (rate == x->rate) return;
    if (x->rate > 0.0) {
        x->left -= x->rate * pc_time_to_seconds(now - x->since);
        if (x->left < 0.0) x->left = 0.0;
        pc_engine_cancel(s->engine, x->end_event);
    }
    x->rate = rate;
    x->since = now;
    if (!pc_time_from_seconds(x->left / rate, &delay)) {
        pc_simulation_fail(s, &s->ran_over);
        return;
    }
    pc_event event = {EVENT_FLOW_END, (uint32_t)place, 0};
    pc_engine_post(s->engine, delay, PRIORITY_END, &event, &x->end_event);
}

static void record_load(pc_simulation *s, int32_t link) {
    load_rows *rows = &s->loads;
    const array_spec columns[] = {ARRAY(rows->link), ARRAY(rows->time_ps), ARRAY(rows->bytes_per_s)};
    if (rows->count == rows->capacity && !FIT(columns, more_rows(rows->capacity), &rows->capacity)) {
        pc_simulation_fail(s, &s->no_memory);
        return;
    }
    double load = 0.0;
    for (int32_t number = s->flow.link_first[link]; number >= 0; number = s->flow.hops[number].next)
        load += s->flow.flows[s->flow.hops[number].flow].rate;
    rows->link[rows->count] = link;
    rows->time_ps[rows->count] = pc_engine_now(s->engine);
    rows->bytes_per_s[rows->count++] = load;
}

/* After a flow came or went: new rates for all who notice. */
static void share_anew(pc_simulation *s, int32_t place) {
    flow_state *x = &s->flow;
    int32_t link_count, flow_count = collect(s, place, &link_count);
    make_local_routes(s, flow_count);
    pc_maxmin_rates(flow_count, x->local_offset, x->local_route, link_count, x->local_capacity, x->local_rate,
                    x->local_left, x->local_waiting);
    for (int32_t f = 0; f < flow_count; f++) set_rate(s, x->noticing[f], x->local_rate[f]);
    if (s->with_trace)
        for (int32_t l = 0; l < link_count; l++) record_load(s, x->links[l]);
}

/* ---- events ---- */

void pc_flow_start(pc_simulation *simulation, int32_t task, pc_time wait, uint16_t priority) {
    int32_t count;
    const int32_t *links = links_of(simulation->program, simulation->program->tasks[task].route, &count);
    pc_time delay = wait;
    for (int32_t i = 0; i < count; i++)
        if (!pc_time_add(delay, simulation->program->links[links[i]].latency_ps, &delay)) {
            pc_simulation_fail(simulation, &simulation->ran_over);
            return;
        }
    pc_event event = {EVENT_FLOW_BEGIN, (uint32_t)task, 0};
    pc_engine_post(simulation->engine, delay, delay > wait ? PRIORITY_END : priority, &event, NULL);
}

/* `number`: the flow's own, which is the task's or that of a part. */
static void end_flow(pc_simulation *s, int32_t number, int32_t task) {
    if (number != task) {
        s->end[number] = pc_engine_now(s->engine);
        s->done_count++;
    }
    if (--s->waiting[task] == 0) pc_task_finish(s, task);
}

static void begin_flow(pc_simulation *s, int32_t number, int32_t task) {
    const pc_task *t = &s->program->tasks[number];
    s->start[number] = s->start[task];
    if (t->flow_bytes == 0) {
        end_flow(s, number, task);
        return;
    }
    int32_t place = take_place(s);
    if (place < 0) return;
    s->flow.flows[place] = (flow){.left = (double)t->flow_bytes, .number = number, .task = task, .route = t->route};
    double alone = enter_links(s, place);
    if (alone > 0.0 && !s->with_trace)
        set_rate(s, place, alone);
    else
        share_anew(s, place);
}

void pc_flow_on_begin(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    int32_t task = (int32_t)event->target, behind = task + 1;
    while (behind < s->program->task_count && s->program->tasks[behind].is_part) behind++;
    s->waiting[task] = behind - task;
    for (int32_t number = task; number < behind; number++) begin_flow(s, number, task);
}

void pc_flow_on_end(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    int32_t place = (int32_t)event->target;
    int32_t number = s->flow.flows[place].number, task = s->flow.flows[place].task;
    if (!leave_links(s, place) || s->with_trace) share_anew(s, place);
    give_place(&s->flow, place);
    end_flow(s, number, task);
}
