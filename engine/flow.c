/* Flows: tasks that last as long as their bytes take over a route of links, shared max-min fair.
 *
 * When a flow begins or ends, the flows that may notice are those it shares a link with, those they share a link with,
 * and so on. Only their rates are computed anew; a flow whose rate stays keeps its end event, so that one which is
 * never disturbed ends exactly latency + bytes / bandwidth after its start. Rates are computed once an instant, after
 * all that begins and ends at it, over links and flows in the order of their numbers. So they do not depend, to the
 * last bit, on the order in which beginnings and ends were handled.
 */
#include "engine/simulation_internal.h"

#include "engine/alloc.h"
#include "engine/maxmin.h"

#include <math.h>
#include <string.h>

/* ---- memory ---- */

/* Room for `count` flows at once, over routes of `longest` links each. */
static bool fit_flows(flow_state *flows, size_t count, size_t longest) {
    const array_spec of_flows[] = {ARRAY(flows->flows), ARRAY(flows->noticing), ARRAY(flows->local_rate)};
    const array_spec of_offsets[] = {ARRAY(flows->local_offset)}; /* one more than there are flows */
    const array_spec of_hops[] = {ARRAY(flows->hops), ARRAY(flows->local_route)};
    const array_spec of_locals[] = {ARRAY(flows->local_waiting), ARRAY(flows->local_capacity), ARRAY(flows->local_left),
                                    ARRAY(flows->key)};
    return count * longest <= INT32_MAX && FIT(of_hops, count * longest, &flows->hop_capacity) &&
           FIT(of_locals, flows->link_capacity + count, &flows->local_links_capacity) &&
           FIT(of_offsets, count + 1, &flows->offset_capacity) && FIT(of_flows, count, &flows->flow_capacity);
}

static bool fit_links(flow_state *flows, size_t links) {
    const array_spec of_links[] = {ARRAY(flows->link_first), ARRAY(flows->link_epoch), ARRAY(flows->links),
                                   ARRAY(flows->local_link), ARRAY(flows->touched),    ARRAY(flows->is_touched),
                                   ARRAY(flows->load)};
    return FIT(of_links, links, &flows->link_capacity);
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
    memset(x->is_touched, 0, links * sizeof *x->is_touched);
    for (size_t l = 0; l < links; l++) x->load[l] = 0.0;
    x->touched_count = 0;
    x->is_called = false;
    x->epoch = 0;
    x->flow_count = 0;
    x->free = -1;
    return true;
}

void pc_flow_free(flow_state *flows) {
    void *arrays[] = {flows->flows,       flows->hops,          flows->link_first, flows->link_epoch,
                      flows->noticing,    flows->links,         flows->local_link, flows->local_offset,
                      flows->local_route, flows->local_waiting, flows->local_rate, flows->local_capacity,
                      flows->local_left,  flows->key,           flows->touched,    flows->is_touched,
                      flows->load};
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

static void give_place(flow_state *flows, int32_t place) {
    flows->flows[place].next_free = flows->free;
    flows->free = place;
}

/* ---- which flows cross which links ---- */

static inline const int32_t *links_of(const pc_program *program, int32_t route, int32_t *count) {
    *count = program->route_offset[route + 1] - program->route_offset[route];
    return program->route_links + program->route_offset[route];
}

/* The rate that the flow has where it shares no link with another one; 0 if it shares some. Notes what its unshared
 * links leave it. */
static double enter_links(pc_simulation *s, int32_t place) {
    flow_state *x = &s->flow;
    int32_t count, number = place * s->program->longest_route;
    const int32_t *links = links_of(s->program, x->flows[place].route, &count);
    double alone = INFINITY, bound = INFINITY;
    for (int32_t i = 0; i < count; i++, number++) {
        int32_t first = x->link_first[links[i]];
        const pc_link *link = &s->program->links[links[i]];
        x->hops[number] = (hop){.next = first, .prev = -1, .flow = place};
        x->link_first[links[i]] = number;
        if (link->bandwidth_bytes_per_s < alone) alone = link->bandwidth_bytes_per_s;
        if (link->is_unshared && link->bandwidth_bytes_per_s < bound) bound = link->bandwidth_bytes_per_s;
        if (first < 0) continue;
        x->hops[first].prev = number;
        if (!link->is_unshared) alone = 0.0;
    }
    x->flows[place].bound = bound;
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
        was_alone = was_alone && ((next < 0 && prev < 0) || s->program->links[links[i]].is_unshared);
        if (next >= 0) x->hops[next].prev = prev;
        if (prev >= 0)
            x->hops[prev].next = next;
        else
            x->link_first[links[i]] = next;
    }
    return was_alone;
}

/* ---- who notices ---- */

/* The link's flows came or went: rates are found anew at the end of this instant. */
static void touch(pc_simulation *s, int32_t link) {
    flow_state *x = &s->flow;
    if (!x->is_called) {
        pc_event event = {EVENT_SHARE, 0, 0};
        x->is_called = pc_engine_post(s->engine, 0, PRIORITY_SHARE, &event, NULL);
    }
    if (x->is_touched[link]) return;
    x->is_touched[link] = 1;
    x->touched[x->touched_count++] = link;
}

static void touch_all(pc_simulation *s, int32_t route) {
    int32_t count;
    const int32_t *links = links_of(s->program, route, &count);
    for (int32_t i = 0; i < count; i++) touch(s, links[i]);
}

static void add_link(pc_simulation *s, int32_t link, int32_t *link_count) {
    flow_state *x = &s->flow;
    if (x->link_epoch[link] == x->epoch || s->program->links[link].is_unshared) return;
    x->link_epoch[link] = x->epoch;
    x->links[(*link_count)++] = link;
}

/* Collects, from a link on, all links and flows that hang together; returns the number of flows. */
static int32_t collect(pc_simulation *s, int32_t link, int32_t *link_count) {
    flow_state *x = &s->flow;
    int32_t flow_count = 0, count;
    *link_count = 0;
    add_link(s, link, link_count);
    for (int32_t l = 0; l < *link_count; l++)
        for (int32_t number = x->link_first[x->links[l]]; number >= 0; number = x->hops[number].next) {
            int32_t other = x->hops[number].flow;
            if (x->flows[other].epoch == x->epoch) continue;
            x->flows[other].epoch = x->epoch;
            x->noticing[flow_count++] = other;
            const int32_t *links = links_of(s->program, x->flows[other].route, &count);
            for (int32_t i = 0; i < count; i++) add_link(s, links[i], link_count);
        }
    return flow_count;
}

/* Shell's sort, with Ciura's gaps. */
static void sort(int64_t *key, int32_t count) {
    static const int32_t gaps[] = {1750, 701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (int32_t i = gaps[g]; i < count; i++) {
            int64_t moved = key[i];
            int32_t at = i;
            for (; at >= gaps[g] && key[at - gaps[g]] > moved; at -= gaps[g]) key[at] = key[at - gaps[g]];
            key[at] = moved;
        }
}

static void sort_links(flow_state *flows, int32_t *links, int32_t count) {
    for (int32_t i = 0; i < count; i++) flows->key[i] = links[i];
    sort(flows->key, count);
    for (int32_t i = 0; i < count; i++) links[i] = (int32_t)flows->key[i];
}

/* Places of flows, by the flows' numbers. */
static void sort_flows(flow_state *flows, int32_t *places, int32_t count) {
    for (int32_t i = 0; i < count; i++) flows->key[i] = (int64_t)flows->flows[places[i]].number << 32 | places[i];
    sort(flows->key, count);
    for (int32_t i = 0; i < count; i++) places[i] = (int32_t)(flows->key[i] & INT32_MAX);
}

/* Numbers the routes of the collected flows anew, for pc_maxmin_rates; behind the links that they share a link of its
 * own for each flow that goes over unshared ones. Returns how many links there are. */
static int32_t make_local_routes(pc_simulation *s, int32_t flow_count, int32_t link_count) {
    flow_state *x = &s->flow;
    int32_t used = 0, count;
    for (int32_t l = 0; l < link_count; l++) {
        x->local_link[x->links[l]] = l;
        x->local_capacity[l] = s->program->links[x->links[l]].bandwidth_bytes_per_s;
    }
    for (int32_t f = 0; f < flow_count; f++) {
        const flow *one = &x->flows[x->noticing[f]];
        const int32_t *links = links_of(s->program, one->route, &count);
        x->local_offset[f] = used;
        for (int32_t i = 0; i < count; i++)
            if (!s->program->links[links[i]].is_unshared) x->local_route[used++] = x->local_link[links[i]];
        if (isinf(one->bound)) continue;
        x->local_capacity[link_count] = one->bound;
        x->local_route[used++] = link_count++;
    }
    x->local_offset[flow_count] = used;
    return link_count;
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
    if (s->with_trace) touch_all(s, x->route);
}

static void share_component(pc_simulation *s, int32_t link) {
    flow_state *x = &s->flow;
    int32_t link_count, flow_count = collect(s, link, &link_count);
    if (flow_count == 0) return;
    sort_links(x, x->links, link_count);
    sort_flows(x, x->noticing, flow_count);
    int32_t local_count = make_local_routes(s, flow_count, link_count);
    pc_maxmin_rates(flow_count, x->local_offset, x->local_route, local_count, x->local_capacity, x->local_rate,
                    x->local_left, x->local_waiting);
    for (int32_t f = 0; f < flow_count; f++) set_rate(s, x->noticing[f], x->local_rate[f]);
}

/* ---- loads ---- */

static double load_of(flow_state *flows, int32_t link) {
    double load = 0.0;
    int32_t count = 0;
    for (int32_t number = flows->link_first[link]; number >= 0; number = flows->hops[number].next)
        flows->noticing[count++] = flows->hops[number].flow;
    sort_flows(flows, flows->noticing, count);
    for (int32_t i = 0; i < count; i++) load += flows->flows[flows->noticing[i]].rate;
    return load;
}

static void record_load(pc_simulation *s, int32_t link) {
    load_rows *rows = &s->loads;
    double load = load_of(&s->flow, link);
    if (load == s->flow.load[link]) return;
    s->flow.load[link] = load;
    const array_spec columns[] = {ARRAY(rows->link), ARRAY(rows->time_ps), ARRAY(rows->bytes_per_s)};
    if (rows->count == rows->capacity && !FIT(columns, more_rows(rows->capacity), &rows->capacity)) {
        pc_simulation_fail(s, &s->no_memory);
        return;
    }
    rows->link[rows->count] = link;
    rows->time_ps[rows->count] = pc_engine_now(s->engine);
    rows->bytes_per_s[rows->count++] = load;
}

/* After all that comes and goes at this instant. */
void pc_flow_on_share(pc_engine *engine, const pc_event *event, void *context) {
    (void)engine;
    (void)event;
    pc_simulation *s = context;
    flow_state *x = &s->flow;
    x->epoch++;
    for (int32_t i = 0; i < x->touched_count; i++) share_component(s, x->touched[i]);
    if (s->with_trace) {
        sort_links(x, x->touched, x->touched_count);
        for (int32_t i = 0; i < x->touched_count; i++) record_load(s, x->touched[i]);
    }
    for (int32_t i = 0; i < x->touched_count; i++) x->is_touched[x->touched[i]] = 0;
    x->touched_count = 0;
    x->is_called = false;
}

/* ---- events ---- */

void pc_flow_start(pc_simulation *simulation, int32_t task, pc_time wait) {
    int32_t count;
    const int32_t *links = links_of(simulation->program, simulation->program->tasks[task].route, &count);
    pc_time delay = wait;
    for (int32_t i = 0; i < count; i++)
        if (!pc_time_add(delay, simulation->program->links[links[i]].latency_ps, &delay)) {
            pc_simulation_fail(simulation, &simulation->ran_over);
            return;
        }
    pc_event event = {EVENT_FLOW_BEGIN, (uint32_t)task, 0};
    pc_engine_post(simulation->engine, delay, PRIORITY_END, &event, NULL);
}

/* `number`: the flow's own, which is the task's or that of a part. */
static void end_flow(pc_simulation *s, int32_t number, int32_t task) {
    if (number != task) {
        s->end[number] = pc_engine_now(s->engine);
        s->done_count++;
    }
    if (--s->waiting[task] == 0) pc_task_finish(s, task);
}

/* For a picosecond at least: one that ends at this instant may still meet others that begin at it. */
static bool lasts_a_while(int64_t bytes, double rate) {
    return (double)bytes >= rate * 1e-12;
}

static bool is_shared(const pc_program *program, int32_t route) {
    int32_t count;
    const int32_t *links = links_of(program, route, &count);
    for (int32_t i = 0; i < count; i++)
        if (!program->links[links[i]].is_unshared) return true;
    return false;
}

static void begin_flow(pc_simulation *s, int32_t number, int32_t task) {
    const pc_task *t = &s->program->tasks[number];
    s->start[number] = s->start[task];
    s->ready[number] = s->ready[task];
    if (t->flow_bytes == 0) {
        end_flow(s, number, task);
        return;
    }
    int32_t place = take_place(s);
    if (place < 0) return;
    s->flow.flows[place] = (flow){.left = (double)t->flow_bytes, .number = number, .task = task, .route = t->route};
    double alone = enter_links(s, place);
    if (alone > 0.0 && (lasts_a_while(t->flow_bytes, alone) || !is_shared(s->program, t->route)))
        set_rate(s, place, alone);
    else
        touch_all(s, t->route);
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
    if (!leave_links(s, place) || s->with_trace) touch_all(s, s->flow.flows[place].route);
    give_place(&s->flow, place);
    end_flow(s, number, task);
}
