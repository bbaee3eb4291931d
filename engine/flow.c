/* Flows: tasks that last as long as their bytes take over a route of links, shared max-min fair.
 *
 * When a flow begins or ends, the flows that may notice are those it shares a link with, those they share a link with,
 * and so on. Only their rates are computed anew; a flow whose rate stays keeps its end event, so that one which is
 * never disturbed ends exactly latency + bytes / bandwidth after its start.
 */
#include "engine/simulation_internal.h"

#include "engine/alloc.h"
#include "engine/maxmin.h"

#include <string.h>

/* ---- memory ---- */

static bool fit(flow_state *x, size_t tasks, size_t hops, size_t links) {
    const array_spec of_tasks[] = {ARRAY(x->rate),       ARRAY(x->left),  ARRAY(x->since),        ARRAY(x->end_event),
                                   ARRAY(x->task_epoch), ARRAY(x->flows), ARRAY(x->local_offset), ARRAY(x->local_rate)};
    const array_spec of_hops[] = {ARRAY(x->hop_next), ARRAY(x->hop_prev), ARRAY(x->hop_task), ARRAY(x->local_route)};
    const array_spec of_links[] = {ARRAY(x->link_first), ARRAY(x->link_epoch),    ARRAY(x->links),
                                   ARRAY(x->local_link), ARRAY(x->local_waiting), ARRAY(x->local_capacity),
                                   ARRAY(x->local_left)};
    return FIT(of_tasks, tasks, &x->task_capacity) && FIT(of_hops, hops, &x->hop_capacity) &&
           FIT(of_links, links, &x->link_capacity);
}

bool pc_flow_prepare(pc_simulation *simulation) {
    const pc_program *program = simulation->program;
    flow_state *x = &simulation->flow;
    size_t tasks = (size_t)program->task_count, hops = (size_t)program->hop_offset[tasks];
    size_t links = (size_t)program->link_count;
    if (hops == 0) return true;
    if (!fit(x, tasks + 1, hops, links)) return false; /* local_offset has one more than there are flows */
    memset(x->task_epoch, 0, tasks * sizeof *x->task_epoch);
    memset(x->link_epoch, 0, links * sizeof *x->link_epoch);
    memset(x->link_first, 0xff, links * sizeof *x->link_first); /* -1 */
    x->epoch = 0;
    return true;
}

void pc_flow_free(flow_state *flow) {
    flow_state *x = flow;
    void *arrays[] = {x->rate,          x->left,       x->since,          x->end_event,    x->hop_next,
                      x->hop_prev,      x->hop_task,   x->link_first,     x->task_epoch,   x->link_epoch,
                      x->flows,         x->links,      x->local_link,     x->local_offset, x->local_route,
                      x->local_waiting, x->local_rate, x->local_capacity, x->local_left};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
}

/* ---- which flows cross which links ---- */

static const int32_t *route_of(const pc_program *program, int32_t task, int32_t *count) {
    int32_t route = program->tasks[task].route;
    *count = program->route_offset[route + 1] - program->route_offset[route];
    return program->route_links + program->route_offset[route];
}

static void enter_links(pc_simulation *s, int32_t task) {
    flow_state *x = &s->flow;
    int32_t count, hop = s->program->hop_offset[task];
    const int32_t *links = route_of(s->program, task, &count);
    for (int32_t i = 0; i < count; i++, hop++) {
        int32_t first = x->link_first[links[i]];
        x->hop_task[hop] = task;
        x->hop_next[hop] = first;
        x->hop_prev[hop] = -1;
        if (first >= 0) x->hop_prev[first] = hop;
        x->link_first[links[i]] = hop;
    }
}

static void leave_links(pc_simulation *s, int32_t task) {
    flow_state *x = &s->flow;
    int32_t count, hop = s->program->hop_offset[task];
    const int32_t *links = route_of(s->program, task, &count);
    for (int32_t i = 0; i < count; i++, hop++) {
        int32_t next = x->hop_next[hop], prev = x->hop_prev[hop];
        if (next >= 0) x->hop_prev[next] = prev;
        if (prev >= 0)
            x->hop_next[prev] = next;
        else
            x->link_first[links[i]] = next;
    }
}

/* ---- who notices ---- */

static void add_links(pc_simulation *s, int32_t task, int32_t *link_count) {
    flow_state *x = &s->flow;
    int32_t count;
    const int32_t *links = route_of(s->program, task, &count);
    for (int32_t i = 0; i < count; i++) {
        if (x->link_epoch[links[i]] == x->epoch) continue;
        x->link_epoch[links[i]] = x->epoch;
        x->local_link[links[i]] = *link_count;
        x->local_capacity[*link_count] = s->program->links[links[i]].bandwidth_bytes_per_s;
        x->links[(*link_count)++] = links[i];
    }
}

/* Collects, from the links of `task` on, all links and flows that hang together; returns the number of flows. */
static int32_t collect(pc_simulation *s, int32_t task, int32_t *link_count) {
    flow_state *x = &s->flow;
    int32_t flow_count = 0;
    *link_count = 0;
    x->epoch++;
    add_links(s, task, link_count);
    for (int32_t l = 0; l < *link_count; l++)
        for (int32_t hop = x->link_first[x->links[l]]; hop >= 0; hop = x->hop_next[hop]) {
            int32_t other = x->hop_task[hop];
            if (x->task_epoch[other] == x->epoch) continue;
            x->task_epoch[other] = x->epoch;
            x->flows[flow_count++] = other;
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
        const int32_t *links = route_of(s->program, x->flows[f], &count);
        x->local_offset[f] = used;
        for (int32_t i = 0; i < count; i++) x->local_route[used++] = x->local_link[links[i]];
    }
    x->local_offset[flow_count] = used;
}

/* ---- rates ---- */

static void set_rate(pc_simulation *s, int32_t task, double rate) {
    flow_state *x = &s->flow;
    pc_time now = pc_engine_now(s->engine), delay;
    if (rate == x->rate[task]) return;
    if (x->rate[task] > 0.0) {
        x->left[task] -= x->rate[task] * pc_time_to_seconds(now - x->since[task]);
        if (x->left[task] < 0.0) x->left[task] = 0.0;
        pc_engine_cancel(s->engine, x->end_event[task]);
    }
    x->rate[task] = rate;
    x->since[task] = now;
    if (!pc_time_from_seconds(x->left[task] / rate, &delay)) {
        pc_simulation_fail(s, &s->ran_over);
        return;
    }
    pc_event event = {EVENT_FLOW_END, (uint32_t)task, 0};
    pc_engine_post(s->engine, delay, PRIORITY_END, &event, &x->end_event[task]);
}

static void record_load(pc_simulation *s, int32_t link) {
    load_rows *rows = &s->loads;
    const array_spec columns[] = {ARRAY(rows->link), ARRAY(rows->time_ps), ARRAY(rows->bytes_per_s)};
    if (rows->count == rows->capacity && !FIT(columns, more_rows(rows->capacity), &rows->capacity)) {
        pc_simulation_fail(s, &s->no_memory);
        return;
    }
    double load = 0.0;
    for (int32_t hop = s->flow.link_first[link]; hop >= 0; hop = s->flow.hop_next[hop])
        load += s->flow.rate[s->flow.hop_task[hop]];
    rows->link[rows->count] = link;
    rows->time_ps[rows->count] = pc_engine_now(s->engine);
    rows->bytes_per_s[rows->count++] = load;
}

/* After `task` came or went: new rates for all who notice. */
static void share_anew(pc_simulation *s, int32_t task) {
    flow_state *x = &s->flow;
    int32_t link_count, flow_count = collect(s, task, &link_count);
    make_local_routes(s, flow_count);
    pc_maxmin_rates(flow_count, x->local_offset, x->local_route, link_count, x->local_capacity, x->local_rate,
                    x->local_left, x->local_waiting);
    for (int32_t f = 0; f < flow_count; f++) set_rate(s, x->flows[f], x->local_rate[f]);
    if (s->with_trace)
        for (int32_t l = 0; l < link_count; l++) record_load(s, x->links[l]);
}

/* ---- events ---- */

void pc_flow_start(pc_simulation *simulation, int32_t task) {
    int32_t count;
    const int32_t *links = route_of(simulation->program, task, &count);
    pc_time latency = 0;
    for (int32_t i = 0; i < count; i++)
        if (!pc_time_add(latency, simulation->program->links[links[i]].latency_ps, &latency)) {
            pc_simulation_fail(simulation, &simulation->ran_over);
            return;
        }
    pc_event event = {EVENT_FLOW_BEGIN, (uint32_t)task, 0};
    pc_engine_post(simulation->engine, latency, PRIORITY_END, &event, NULL);
}

void pc_flow_on_begin(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    int32_t task = (int32_t)event->target;
    int64_t bytes = s->program->tasks[task].flow_bytes;
    if (bytes == 0) {
        pc_task_finish(s, task);
        return;
    }
    s->flow.rate[task] = 0.0;
    s->flow.left[task] = (double)bytes;
    enter_links(s, task);
    share_anew(s, task);
}

void pc_flow_on_end(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    pc_simulation *s = context;
    int32_t task = (int32_t)event->target;
    leave_links(s, task);
    share_anew(s, task);
    pc_task_finish(s, task);
}
