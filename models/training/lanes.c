#include "models/training/lanes.h"

#include "engine/alloc.h"
#include "models/machine/shares.h"

#include <string.h>

/* A link carries as many bytes a second as there are picoseconds in it. */
#define LANE_BYTES_PER_S ((double)PC_PICOSECONDS_PER_SECOND)

enum { OUT, IN, WAYS };
enum { TO_ITSELF, TO_NEXT, TO_BEFORE, ROUTES };

int64_t pc_lanes_link(int place, pc_lane lane, int way) {
    return ((int64_t)place * PC_LANES + lane) * WAYS + way;
}

double pc_lanes_bytes_per_s(const pc_lanes *lanes, pc_lane lane) {
    const pc_machine *machine = &lanes->outline->spec->machine;
    if (lane == PC_LANE_DOMAIN) return pc_domain_rate(machine);
    if (lane == PC_LANE_NIC || pc_leaf_gpus(machine) == 0) return lanes->nic_bytes_per_s;
    double share = pc_leaf_rate(machine) / (double)pc_leaf_gpus(machine);
    return share < lanes->nic_bytes_per_s ? share : lanes->nic_bytes_per_s;
}

/* ---- what is sent ---- */

static pc_code to_fill(double seconds, pc_time *fill_ps, pc_error *error) {
    return pc_outline_time("flow", seconds > 0 ? seconds : 0, 1, fill_ps, error);
}

/* Through NICs, and where leaves are crossed through an uplink, which is then the slower one: the NIC is filled as long
 * as the bytes take at its own rate. */
static pc_code fill_network(const pc_lanes *lanes, double seconds, double bytes_per_s, bool crosses_leaves,
                            pc_sending *s, pc_error *error) {
    double of_nic = bytes_per_s < lanes->nic_bytes_per_s ? bytes_per_s / lanes->nic_bytes_per_s : 1;
    pc_code code = to_fill(crosses_leaves ? seconds * of_nic : seconds, &s->fill_ps[PC_LANE_NIC], error);
    if (!code && crosses_leaves) code = to_fill(seconds, &s->fill_ps[PC_LANE_UPLINK], error);
    return code;
}

static double divide(double bytes, double bytes_per_s) {
    return bytes > 0 ? bytes / bytes_per_s : 0;
}

pc_code pc_lanes_sendings(const pc_lanes *lanes, const pc_group *group, const pc_collective_course *collective,
                          double stretch, pc_sendings *sendings, pc_error *error) {
    pc_code code = PC_OK;
    *sendings = (pc_sendings){.count = collective->phase_count};
    for (int i = 0; !code && i < collective->phase_count; i++) {
        const pc_collective_phase *x = &collective->phase[i];
        pc_sending *s = &sendings->phase[i];
        double network_s = stretch * divide(x->network_bytes, x->network_bytes_per_s);
        double domain_s = stretch * divide(x->domain_bytes, x->domain_bytes_per_s);
        code = to_fill(domain_s, &s->fill_ps[PC_LANE_DOMAIN], error);
        if (!code) code = to_fill(stretch * x->latency_s, &s->latency_ps, error);
        if (!code && network_s > 0)
            code = fill_network(lanes, network_s, group->nic_bytes_per_s, group->crosses_leaves, s, error);
    }
    return code;
}

void pc_sendings_append(pc_sendings *sendings, const pc_sendings *second) {
    for (int i = 0; i < second->count; i++) sendings->phase[sendings->count++] = second->phase[i];
}

static pc_code fill_message(const pc_lanes *lanes, const pc_device_outline *held, pc_sending *s, pc_error *error) {
    double latency_s = held->hop.latency_s < held->message_s ? held->hop.latency_s : held->message_s;
    double bytes_s = held->message_s - latency_s;
    pc_code code = to_fill(latency_s, &s->latency_ps, error);
    if (!code && held->hop.in_domain) code = to_fill(bytes_s, &s->fill_ps[PC_LANE_DOMAIN], error);
    if (!code && !held->hop.in_domain)
        code = fill_network(lanes, bytes_s, held->hop.bytes_per_s, held->hop.crosses_leaves, s, error);
    return code;
}

static pc_code fill_messages(pc_lanes *lanes, pc_error *error) {
    pc_code code = PC_OK;
    for (int d = 0; !code && lanes->outline->devices > 1 && d < lanes->outline->devices; d++)
        code = fill_message(lanes, &lanes->outline->device[d], &lanes->message[d], error);
    return code;
}

/* ---- what takes a given time ---- */

/* What fills a link longer than this counts less of it, and more latency: the engine's bytes a second are doubles, in
 * which a longer time may lose a picosecond. 19 minutes. */
static const pc_time FILL_MOST = INT64_C(1) << 50;

static pc_time longest_fill(const pc_sending *s) {
    pc_time most = 0;
    for (int lane = 0; lane < PC_LANES; lane++)
        if (s->fill_ps[lane] > most) most = s->fill_ps[lane];
    return most;
}

pc_time pc_sendings_alone_ps(const pc_sendings *sendings) {
    pc_time sum = 0;
    for (int i = 0; i < sendings->count; i++) sum += sendings->phase[i].latency_ps + longest_fill(&sendings->phase[i]);
    return sum;
}

static void limit_fill(pc_sending *s, pc_time most_ps) {
    for (int lane = 0; lane < PC_LANES; lane++)
        if (s->fill_ps[lane] > most_ps) s->fill_ps[lane] = most_ps;
}

/* Takes away what it can of `less_ps`, and returns the rest. */
static pc_time shorten(pc_sending *s, pc_time less_ps) {
    pc_time of_latency = s->latency_ps < less_ps ? s->latency_ps : less_ps, fill = longest_fill(s);
    pc_time of_fill = fill < less_ps - of_latency ? fill : less_ps - of_latency;
    s->latency_ps -= of_latency;
    limit_fill(s, fill - of_fill);
    return less_ps - of_latency - of_fill;
}

void pc_sendings_fit(pc_sendings *sendings, pc_time whole_ps) {
    if (whole_ps == 0) *sendings = (pc_sendings){0};
    if (whole_ps == 0) return;
    if (sendings->count == 0) sendings->phase[sendings->count++] = (pc_sending){0};
    for (int i = 0; i < sendings->count; i++) {
        pc_sending *s = &sendings->phase[i];
        pc_time fill = longest_fill(s);
        limit_fill(s, FILL_MOST);
        s->latency_ps += fill - longest_fill(s);
    }
    pc_time more_ps = whole_ps - pc_sendings_alone_ps(sendings);
    if (more_ps > 0) sendings->phase[sendings->count - 1].latency_ps += more_ps;
    for (int i = sendings->count - 1; more_ps < 0 && i >= 0; i--) more_ps = -shorten(&sendings->phase[i], -more_ps);
}

/* ---- links ---- */

pc_code pc_lanes_make(const pc_outline *outline, pc_program *program, int replicas, bool is_shared, pc_lanes *lanes,
                      pc_error *error) {
    const pc_machine *machine = &outline->spec->machine;
    size_t count = (size_t)replicas * (size_t)outline->devices * PC_LANES;
    pc_link link = {0, LANE_BYTES_PER_S, !is_shared};
    pc_lanes made = {.outline = outline,
                     .program = program,
                     .replicas = replicas,
                     .is_shared = is_shared,
                     .processor = PC_NO_RESOURCE,
                     .message = pc_alloc((size_t)outline->devices, sizeof *made.message),
                     .route = pc_alloc(count * ROUTES, sizeof *made.route),
                     .load_ps = pc_alloc(count * WAYS, sizeof *made.load_ps),
                     .nic_bytes_per_s = pc_nic_share(machine)};
    pc_code code = made.message && made.route && made.load_ps ? PC_OK : pc_error_no_memory(error);
    if (!code) memset(made.route, 0xff, count * ROUTES * sizeof *made.route); /* -1 */
    for (size_t i = 0; !code && i < count * WAYS; i++) {
        int32_t number; /* i, for nobody else adds links */
        code = pc_program_add_link(program, &link, &number, error);
    }
    pc_task start = pc_task_default();
    if (!code) code = fill_messages(&made, error);
    if (!code) code = pc_program_add_task(program, &start, &made.start, error);
    if (code)
        pc_lanes_free(&made);
    else
        *lanes = made;
    return code;
}

void pc_lanes_free(pc_lanes *lanes) {
    pc_free(lanes->message);
    pc_free(lanes->route);
    pc_free(lanes->load_ps);
    pc_free(lanes->notes);
    memset(lanes, 0, sizeof *lanes);
}

static bool is_next(const pc_lanes *lanes, int from, int to) {
    int devices = lanes->outline->devices;
    return to % devices == (from + 1) % devices;
}

static pc_code find_route(pc_lanes *lanes, int from, int to, pc_lane lane, int32_t *route, pc_error *error) {
    int direction = to == from ? TO_ITSELF : is_next(lanes, from, to) ? TO_NEXT : TO_BEFORE;
    int32_t *known = &lanes->route[((int64_t)from * PC_LANES + lane) * ROUTES + direction];
    const int32_t links[] = {(int32_t)pc_lanes_link(from, lane, OUT), (int32_t)pc_lanes_link(to, lane, IN)};
    pc_code code = *known < 0 ? pc_program_add_route(lanes->program, links, 2, known, error) : PC_OK;
    *route = *known;
    return code;
}

/* ---- flows ---- */

/* Where it goes, and what it waits for. */
typedef struct journey {
    int from, to;
    const pc_after *after;
    int count;
} journey;

/* What waits for nothing waits for the start. */
static pc_code add_edges(pc_lanes *lanes, const journey *j, pc_time more_ps, int32_t task, pc_error *error) {
    bool waits = false;
    pc_code code = PC_OK;
    for (int i = 0; !code && i < j->count; i++) {
        if (j->after[i].task < 0) continue;
        waits = true;
        code = pc_program_add_edge(lanes->program, j->after[i].task, task, j->after[i].delay_ps + more_ps, error);
    }
    return code || waits ? code : pc_program_add_edge(lanes->program, lanes->start, task, more_ps, error);
}

static pc_code keep_note(pc_lanes *lanes, pc_lane lane, const pc_sending *s, const journey *j, int32_t task,
                         pc_error *error) {
    if (!lanes->keeps_notes) return PC_OK;
    if (lanes->note_count == lanes->note_room) {
        int64_t room = lanes->note_room ? 2 * lanes->note_room : 256;
        pc_flow_note *notes = pc_realloc(lanes->notes, (size_t)room, sizeof *notes);
        if (!notes) return pc_error_no_memory(error);
        lanes->notes = notes;
        lanes->note_room = room;
    }
    pc_flow_note note = lanes->now;
    note.task = task;
    note.from = j->from;
    note.to = j->to;
    note.lane = lane;
    note.latency_ps = s->latency_ps;
    note.fill_ps = s->fill_ps[lane];
    lanes->notes[lanes->note_count++] = note;
    return PC_OK;
}

static pc_code add_flow(pc_lanes *lanes, const pc_sending *s, pc_lane lane, const journey *j, bool is_part,
                        int32_t *number, pc_error *error) {
    pc_task task = pc_task_default();
    pc_time fill_ps = s->fill_ps[lane];
    task.is_part = is_part;
    if (!is_part) task.processor = lanes->processor;
    task.flow_bytes = fill_ps;
    pc_code code = find_route(lanes, j->from, j->to, lane, &task.route, error);
    if (!code) code = pc_program_add_task(lanes->program, &task, number, error);
    if (!code) code = keep_note(lanes, lane, s, j, *number, error);
    lanes->load_ps[pc_lanes_link(j->from, lane, OUT)] += fill_ps;
    lanes->load_ps[pc_lanes_link(j->to, lane, IN)] += fill_ps;
    return code;
}

/* One flow, and what goes by other lanes as parts of it; where it takes none, a task of no time. */
static pc_code add_sending(pc_lanes *lanes, const pc_sending *s, const journey *j, int32_t *done, pc_error *error) {
    pc_task nothing = pc_task_default();
    int32_t number = -1, part;
    pc_code code = PC_OK;
    for (int lane = 0; !code && lane < PC_LANES; lane++)
        if (s->fill_ps[lane] > 0)
            code = add_flow(lanes, s, (pc_lane)lane, j, number >= 0, number >= 0 ? &part : &number, error);
    if (!code && number < 0) code = pc_program_add_task(lanes->program, &nothing, &number, error);
    *done = number;
    return code ? code : add_edges(lanes, j, s->latency_ps, number, error);
}

pc_code pc_lanes_add_collective(pc_lanes *lanes, int place, int to, const pc_sendings *sendings, const pc_after *after,
                                int count, int32_t *done, pc_error *error) {
    static const pc_sending nothing = {0};
    pc_after before = {-1, 0};
    journey j = {place, to, after, count};
    pc_code code = PC_OK;
    for (int i = 0; !code && i < sendings->count; i++) {
        int32_t number = -1;
        code =
            add_sending(lanes, &sendings->phase[i], &j, &number, error); /* which reads `before` from the second on */
        before.task = number;
        lanes->now.ready_task = before.task;
        lanes->now.ready_delay_ps = 0;
        j.after = &before;
        j.count = 1;
    }
    if (!code && sendings->count == 0) code = add_sending(lanes, &nothing, &j, &before.task, error);
    *done = before.task;
    return code;
}

pc_time pc_lanes_gathering_ps(const pc_lanes *lanes, pc_time whole_ps) {
    return whole_ps < lanes->outline->gathering_ps ? whole_ps : lanes->outline->gathering_ps;
}

pc_code pc_lanes_add_message(pc_lanes *lanes, int32_t from, int from_place, int to_place, pc_time whole_ps,
                             int32_t *done, pc_error *error) {
    int devices = lanes->outline->devices;
    const pc_after after = {from, 0};
    const journey j = {from_place, to_place, &after, 1};
    pc_sendings sent = {1, {lanes->message[(is_next(lanes, from_place, to_place) ? from_place : to_place) % devices]}};
    if (whole_ps >= 0) pc_sendings_fit(&sent, whole_ps - pc_lanes_gathering_ps(lanes, whole_ps));
    return add_sending(lanes, &sent.phase[0], &j, done, error);
}

pc_time pc_lanes_filled_ps(const pc_lanes *lanes) {
    pc_time most = 0;
    int64_t count = pc_lanes_link(lanes->replicas * lanes->outline->devices, PC_LANE_DOMAIN, OUT);
    for (int64_t i = 0; i < count; i++)
        if (lanes->load_ps[i] > most) most = lanes->load_ps[i];
    return most;
}
