/* The engine against the longest path, on random programs in which nothing waits for its turn on a link or in a memory;
 * and memories against a plain recount of what was taken and given. */
#include "tests/program_fixture.h"

#include "engine/numbers.h"

enum { TASKS = 48, EDGES = 8 * TASKS, LANES = 6, PROCESSORS = 5, LONGEST_ROUTE = 3 };

/* ---- the longest path ---- */

/* What must have ended before a task can start. The test's own: shares nothing with the program. */
typedef struct edge {
    int32_t from, to;
    pc_time delay;
} edge;

typedef struct paths {
    int32_t tasks, edges;
    edge edge[EDGES];
    pc_time duration[TASKS], wait[TASKS]; /* a part lasts from its task's start on, too: wait and duration */
    int32_t whole[TASKS];                 /* the task that a part is of, or itself */
    bool is_stuck[TASKS];                 /* on a cycle, or behind one */
    pc_time start[TASKS], end[TASKS];
} paths;

_Static_assert(TASKS <= 64, "a bit a task");

static void add_path(paths *known, int32_t from, int32_t to, pc_time delay) {
    assert_true(known->edges < EDGES);
    known->edge[known->edges++] = (edge){from, to, delay};
}

/* Who reaches whom, by every task in turn as a stop on the way (Warshall); who reaches itself is stuck, and so is who
 * is reached from there. */
static void find_stuck(paths *known) {
    uint64_t reaches[TASKS] = {0};
    for (int32_t i = 0; i < known->edges; i++) reaches[known->edge[i].from] |= UINT64_C(1) << known->edge[i].to;
    for (int32_t stop = 0; stop < known->tasks; stop++)
        for (int32_t t = 0; t < known->tasks; t++)
            if (reaches[t] >> stop & 1) reaches[t] |= reaches[stop];
    for (int32_t t = 0; t < known->tasks; t++)
        for (int32_t on = 0; on < known->tasks; on++)
            if ((reaches[on] >> on & 1) && (on == t || (reaches[on] >> t & 1))) known->is_stuck[t] = true;
    for (int32_t t = 0; t < known->tasks; t++) known->is_stuck[t] = known->is_stuck[known->whole[t]];
}

/* Everything ends no earlier than its start and its parts say, and starts no earlier than its edges say: raised until
 * nothing changes (Bellman and Ford). */
static void find_times(paths *known) {
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (int32_t i = 0; i < known->edges; i++) {
            const edge *e = &known->edge[i];
            if (known->is_stuck[e->from] || known->is_stuck[e->to] ||
                known->start[e->to] >= known->end[e->from] + e->delay)
                continue;
            known->start[e->to] = known->end[e->from] + e->delay;
            has_changed = true;
        }
        for (int32_t t = 0; t < known->tasks; t++) {
            int32_t whole = known->whole[t];
            pc_time end = known->start[whole] + known->wait[whole] + known->duration[t];
            has_changed |= known->end[t] < end || known->end[whole] < end;
            known->start[t] = known->start[whole];
            known->end[t] = pc_max(known->end[t], end);
            known->end[whole] = pc_max(known->end[whole], end);
        }
    }
    for (int32_t t = 0; t < known->tasks; t++)
        if (known->is_stuck[t]) known->start[t] = known->end[t] = -1;
}

/* ---- random programs ---- */

/* A processor in order, or one for who comes first, whose tasks follow each other anyway; a lane is a route over links
 * of its own, whose flows follow each other. `last` is who was there before, or -1. */
typedef struct drawing {
    test_random random;
    pc_program *program;
    paths *paths;
    bool has_order[PROCESSORS];
    int32_t last_on[PROCESSORS], last_in[LANES], memory;
    pc_time latency[LANES];
    int64_t bytes_per_ps[LANES];
} drawing;

static int64_t draw(drawing *drawn, int64_t least, int64_t most) {
    return test_between(&drawn->random, least, most);
}

static void add_lane(drawing *drawn, int lane) {
    int32_t links[LONGEST_ROUTE], route;
    int count = (int)draw(drawn, 1, LONGEST_ROUTE), narrow = (int)draw(drawn, 0, count - 1);
    drawn->bytes_per_ps[lane] = draw(drawn, 1, 9);
    drawn->latency[lane] = 0;
    drawn->last_in[lane] = -1;
    for (int i = 0; i < count; i++) {
        int64_t bytes_per_ps = drawn->bytes_per_ps[lane] + (i == narrow ? 0 : draw(drawn, 0, 5));
        pc_link link = {draw(drawn, 0, 1) * draw(drawn, 1, 5000), (double)bytes_per_ps * 1e12, false};
        drawn->latency[lane] += link.latency_ps;
        assert_int_equal(pc_program_add_link(drawn->program, &link, &links[i], NULL), PC_OK);
    }
    assert_int_equal(pc_program_add_route(drawn->program, links, count, &route, NULL), PC_OK);
    assert_int_equal(route, lane);
}

static void add_edge(drawing *drawn, int32_t from, int32_t to, pc_time delay) {
    assert_int_equal(pc_program_add_edge(drawn->program, from, to, delay, NULL), PC_OK);
    add_path(drawn->paths, from, to, delay);
}

/* A flow of whole picoseconds: so many times what the lane carries in one. */
static pc_task draw_flow(drawing *drawn, int lane, int32_t number, int32_t whole) {
    pc_task task = pc_task_default();
    pc_time duration = draw(drawn, 0, 7) ? draw(drawn, 1, 1000003) : 0;
    task.route = lane;
    task.is_part = number != whole;
    task.flow_bytes = duration * drawn->bytes_per_ps[lane];
    drawn->paths->duration[number] = duration;
    drawn->paths->wait[number] = drawn->latency[lane];
    drawn->paths->whole[number] = whole;
    return task;
}

static void add_task(drawing *drawn, pc_task task) {
    int32_t number;
    assert_int_equal(pc_program_add_task(drawn->program, &task, &number, NULL), PC_OK);
    assert_int_equal(number, drawn->paths->tasks++);
}

/* After who was there before; `whole` alone has edges. */
static void follow(drawing *drawn, int32_t *last, int32_t whole) {
    if (*last >= 0 && *last != whole) add_edge(drawn, *last, whole, draw(drawn, 0, 1) * draw(drawn, 0, 999));
    *last = whole;
}

/* A flow, and up to two more side by side with it in other lanes. */
static void add_flows(drawing *drawn, int32_t processor) {
    int lane = (int)draw(drawn, 0, LANES - 1);
    int32_t whole = drawn->paths->tasks;
    pc_task task = draw_flow(drawn, lane, whole, whole);
    task.processor = processor;
    add_task(drawn, task);
    follow(drawn, &drawn->last_in[lane], whole);
    for (int64_t parts = draw(drawn, -2, 2); parts > 0 && drawn->paths->tasks < TASKS; parts--) {
        lane = (lane + 1) % LANES;
        add_task(drawn, draw_flow(drawn, lane, drawn->paths->tasks, whole));
        follow(drawn, &drawn->last_in[lane], whole);
    }
}

static void add_work(drawing *drawn, int32_t processor) {
    int32_t number = drawn->paths->tasks;
    pc_task task = pc_task_default();
    task.processor = processor;
    task.duration_ps = draw(drawn, 0, 7) ? draw(drawn, 1, 1000003) : 0;
    task.memory = drawn->memory;
    if (task.memory >= 0) task.take_bytes = task.give_bytes = draw(drawn, 0, 100);
    drawn->paths->duration[number] = task.duration_ps;
    drawn->paths->whole[number] = number;
    add_task(drawn, task);
}

/* Edges from earlier tasks; now and then one from anywhere, which may close a circle. */
static void add_edges(drawing *drawn, int32_t to, bool can_lock) {
    for (int64_t k = draw(drawn, 0, 2); k > 0 && to > 0; k--) {
        int32_t from = drawn->paths->whole[draw(drawn, 0, to - 1)];
        pc_time delay = draw(drawn, 0, 1) * draw(drawn, 0, 100003);
        add_edge(drawn, from, to, delay);
        if (can_lock && draw(drawn, 0, 9) == 0) add_edge(drawn, to, drawn->paths->whole[draw(drawn, 0, to - 1)], delay);
    }
}

/* With a memory, which has room for all, the engine goes from event to event; without one it works ahead. */
static void draw_program(drawing *drawn, pc_program *program, paths *p) {
    bool can_lock = draw(drawn, 0, 3) == 0;
    int32_t number, tasks = (int32_t)draw(drawn, 1, TASKS - 8);
    memset(p, 0, sizeof *p);
    drawn->program = program;
    drawn->paths = p;
    drawn->memory = PC_NO_RESOURCE;
    pc_program_clear(program);
    for (int i = 0; i < LANES; i++) add_lane(drawn, i);
    if (draw(drawn, 0, 1))
        assert_int_equal(pc_program_add_memory(program, 100 * TASKS, PC_MEMORY_FAIL, &drawn->memory, NULL), PC_OK);
    for (int i = 0; i < PROCESSORS; i++) {
        drawn->has_order[i] = drawn->memory < 0 ? draw(drawn, 0, 9) : draw(drawn, 0, 1);
        drawn->last_on[i] = -1;
        pc_processor_order order = drawn->has_order[i] ? PC_PROCESSOR_IN_ORDER : PC_PROCESSOR_FIRST_COME;
        assert_int_equal(pc_program_add_processor(program, order, &number, NULL), PC_OK);
    }
    while (p->tasks < tasks) {
        int32_t processor = (int32_t)draw(drawn, -1, PROCESSORS - 1), task = p->tasks;
        if (draw(drawn, 0, 2) == 0)
            add_flows(drawn, processor);
        else
            add_work(drawn, processor);
        add_edges(drawn, task, can_lock);
        if (processor < 0) continue;
        if (!drawn->has_order[processor])
            follow(drawn, &drawn->last_on[processor], task);
        else if (drawn->last_on[processor] >= 0)
            add_path(p, drawn->last_on[processor], task, 0); /* the program says it by the order of its tasks */
        drawn->last_on[processor] = task;
    }
}

/* ---- the two beside each other ---- */

static void check(const paths *p, const pc_simulation_result *result, long number) {
    int32_t first_stuck = -1;
    pc_time last = 0;
    for (int32_t t = p->tasks; t-- > 0;) {
        if (p->is_stuck[t]) first_stuck = t;
        last = pc_max(last, p->end[t]);
        if (result->start_ps[t] != p->start[t] || result->end_ps[t] != p->end[t])
            fail_msg("program %ld: task %d from %lld to %lld; expected %lld to %lld", number, (int)t,
                     (long long)result->start_ps[t], (long long)result->end_ps[t], (long long)p->start[t],
                     (long long)p->end[t]);
    }
    assert_int_equal(result->outcome, first_stuck < 0 ? PC_OUTCOME_DONE : PC_OUTCOME_DEADLOCK);
    if (first_stuck >= 0) assert_int_equal(result->task, first_stuck);
    assert_int_equal(result->time_ps, last);
    assert_true(result->trace_hash == pc_trace_hash(p->start, p->end, p->tasks));
}

static void test_engine_is_the_longest_path(void **state) {
    fixture *test = *state;
    drawing d = {.random = {81}};
    paths p;
    long locked = 0, ahead = 0, cases = test_cases(4000, 100000);
    for (long i = 0; i < cases; i++) {
        pc_error error = {0};
        draw_program(&d, test->program, &p);
        find_stuck(&p);
        find_times(&p);
        pc_simulation_options options = {.with_trace = draw(&d, 0, 1), .every_event = draw(&d, 0, 1)};
        if (pc_program_seal(test->program, &error) ||
            pc_simulation_run(test->simulation, test->program, &options, &test->result, &error))
            fail_msg("%s", error.message);
        check(&p, &test->result, i);
        locked += test->result.outcome == PC_OUTCOME_DEADLOCK;
        ahead += d.memory < 0;
    }
    assert_true(locked > cases / 50 && locked < cases / 2);
    assert_true(ahead > cases / 4 && ahead < cases);
    test_count("programs.compared", cases);
}

/* ---- memories ---- */

enum { MEMORIES = 3, WORKERS = 4, HOLDERS = 40 };

/* Tasks that take from memories and give back, some of it, no more than they took; none without a duration, so that at
 * one instant all that is given back is given before anything is taken. */
typedef struct holders {
    int32_t count;
    int32_t memory[HOLDERS];
    int64_t take[HOLDERS], give[HOLDERS];
    int64_t capacity[MEMORIES];
    pc_memory_policy policy;
    bool all_in_order;
} holders;

/* Adds the tasks again, alike but for the capacities. */
static void build(test_random random, pc_program *program, holders *h) {
    int32_t number;
    pc_program_clear(program);
    for (int i = 0; i < MEMORIES; i++)
        assert_int_equal(pc_program_add_memory(program, h->capacity[i], h->policy, &number, NULL), PC_OK);
    h->all_in_order = test_between(&random, 0, 1);
    for (int i = 0; i < WORKERS; i++) {
        pc_processor_order order = (pc_processor_order)test_between(&random, 0, 1);
        if (h->all_in_order) order = PC_PROCESSOR_IN_ORDER;
        assert_int_equal(pc_program_add_processor(program, order, &number, NULL), PC_OK);
    }
    h->count = (int32_t)test_between(&random, 1, HOLDERS);
    for (int32_t t = 0; t < h->count; t++) {
        pc_task task = pc_task_default();
        task.processor = (int32_t)test_between(&random, -1, WORKERS - 1);
        task.duration_ps = test_between(&random, 1, 50);
        h->memory[t] = task.memory = (int32_t)test_between(&random, -1, MEMORIES - 1);
        h->take[t] = task.take_bytes = task.memory < 0 ? 0 : test_between(&random, 0, 1000);
        h->give[t] = task.give_bytes = test_between(&random, 0, task.take_bytes);
        assert_int_equal(pc_program_add_task(program, &task, &number, NULL), PC_OK);
        if (t == 0 || test_between(&random, 0, 1)) continue;
        int32_t from = (int32_t)test_between(&random, 0, t - 1);
        assert_int_equal(pc_program_add_edge(program, from, t, test_between(&random, 0, 5), NULL), PC_OK);
    }
}

static int64_t level_at(const holders *h, const pc_time *start, const pc_time *end, int memory, pc_time time) {
    int64_t level = 0;
    for (int32_t t = 0; t < h->count; t++) {
        if (h->memory[t] != memory) continue;
        if (start[t] <= time) level += h->take[t];
        if (end[t] <= time) level -= h->give[t];
    }
    return level;
}

/* Levels change where tasks start and end; they rise where some start. */
static int64_t recount_peak(const holders *h, const pc_time *start, const pc_time *end, int memory) {
    int64_t peak = 0;
    for (int32_t t = 0; t < h->count; t++) {
        int64_t level = level_at(h, start, end, memory, start[t]);
        if (h->memory[t] == memory && level > peak) peak = level;
    }
    return peak;
}

/* The curve's last word on every instant is what a recount has there; it speaks of every instant that changes it. */
static void check_curves(const holders *h, const pc_simulation_result *result) {
    const pc_level_trace *curve = &result->levels;
    for (int64_t i = 0; i < curve->count; i++) {
        bool is_last = true;
        for (int64_t k = i + 1; k < curve->count && curve->time_ps[k] == curve->time_ps[i]; k++)
            is_last &= curve->memory[k] != curve->memory[i];
        int64_t level = level_at(h, result->start_ps, result->end_ps, curve->memory[i], curve->time_ps[i]);
        if (is_last) assert_int_equal(curve->level_bytes[i], level);
    }
    for (int32_t t = 0; t < h->count; t++)
        for (int is_end = 0; is_end < 2; is_end++) {
            bool is_told = (is_end ? h->give[t] : h->take[t]) == 0;
            for (int64_t i = 0; i < curve->count && !is_told; i++)
                is_told = curve->memory[i] == h->memory[t] &&
                          curve->time_ps[i] == (is_end ? result->end_ps : result->start_ps)[t];
            assert_true(is_told);
        }
}

/* The first instant at which some memory is to hold more than it can; -1 where none is. */
static pc_time first_overflow(const holders *h, const pc_time *start, const pc_time *end) {
    pc_time first = -1;
    for (int32_t t = 0; t < h->count; t++) {
        int m = h->memory[t];
        bool is_over = m >= 0 && level_at(h, start, end, m, start[t]) > h->capacity[m];
        if (is_over && (first < 0 || start[t] < first)) first = start[t];
    }
    return first;
}

static void run_holders(fixture *test, test_random random, holders *h) {
    pc_error error = {0};
    build(random, test->program, h);
    if (pc_program_seal(test->program, &error) ||
        pc_simulation_run(test->simulation, test->program, &(pc_simulation_options){.with_trace = true}, &test->result,
                          &error))
        fail_msg("%s", error.message);
}

/* A byte less, noted: the times of a machine with room, and when that was first not enough. */
static void check_overdraft(fixture *test, test_random random, holders *h, const pc_time *start, const pc_time *end) {
    h->policy = PC_MEMORY_NOTE;
    run_holders(test, random, h);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    assert_memory_equal(test->result.start_ps, start, (size_t)h->count * sizeof *start);
    pc_time first = -1;
    for (int m = 0; m < MEMORIES; m++)
        if (test->result.overdrawn_ps[m] >= 0) first = test->result.overdrawn_ps[m];
    assert_int_equal(first, first_overflow(h, start, end));
}

/* And with tasks that wait: no level is ever beyond its capacity, and nobody starts before it is ready. What is left at
 * the end is one that waits for memory, which has not the room. */
static void check_waiting(fixture *test, test_random random, holders *h, long *waited) {
    pc_time start[HOLDERS], end[HOLDERS];
    h->policy = PC_MEMORY_WAIT;
    run_holders(test, random, h);
    for (int32_t t = 0; t < h->count; t++) {
        bool has_run = test->result.end_ps[t] >= 0;
        assert_true(test->result.start_ps[t] < 0 || test->result.start_ps[t] >= test->result.ready_ps[t]);
        start[t] = has_run ? test->result.start_ps[t] : PC_TIME_MAX;
        end[t] = has_run ? test->result.end_ps[t] : PC_TIME_MAX;
    }
    for (int32_t t = 0; t < h->count; t++)
        if (h->memory[t] >= 0 && start[t] < PC_TIME_MAX)
            assert_true(level_at(h, start, end, h->memory[t], start[t]) <= h->capacity[h->memory[t]]);
    *waited += test->result.outcome == PC_OUTCOME_DONE;
    if (test->result.outcome == PC_OUTCOME_DONE) return;
    int32_t task = test->result.task;
    assert_int_equal(test->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    assert_true(test->result.level_bytes + h->take[task] > h->capacity[h->memory[task]]);
    assert_int_equal(test->result.level_bytes, level_at(h, start, end, h->memory[task], test->result.time_ps));
}

/* With room enough; with just as much as the recount says; and with a byte less in one memory. */
static void check_memories(fixture *test, test_random random, int tight, long *waited) {
    holders h = {.capacity = {INT64_MAX, INT64_MAX, INT64_MAX}};
    pc_time start[HOLDERS], end[HOLDERS];
    run_holders(test, random, &h);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    memcpy(start, test->result.start_ps, (size_t)h.count * sizeof *start);
    memcpy(end, test->result.end_ps, (size_t)h.count * sizeof *end);
    check_curves(&h, &test->result);
    for (int m = 0; m < MEMORIES; m++) {
        h.capacity[m] = recount_peak(&h, start, end, m);
        assert_int_equal(test->result.peak_bytes[m], h.capacity[m]);
    }
    run_holders(test, random, &h);
    assert_int_equal(test->result.outcome, PC_OUTCOME_DONE);
    assert_memory_equal(test->result.start_ps, start, (size_t)h.count * sizeof *start);
    h.policy = PC_MEMORY_WAIT;
    run_holders(test, random, &h);
    /* Of two that get ready at one instant for one who serves who comes first, either may be first. */
    if (h.all_in_order) assert_memory_equal(test->result.start_ps, start, (size_t)h.count * sizeof *start);
    h.policy = PC_MEMORY_FAIL;
    if (h.capacity[tight]-- == 0) return;
    run_holders(test, random, &h);
    int32_t task = test->result.task;
    assert_int_equal(test->result.outcome, PC_OUTCOME_OUT_OF_MEMORY);
    assert_int_equal(test->result.time_ps, first_overflow(&h, start, end));
    assert_int_equal(start[task], test->result.time_ps);
    assert_int_equal(h.memory[task], tight);
    assert_true(test->result.level_bytes <= h.capacity[tight]);
    assert_true(test->result.level_bytes + h.take[task] > h.capacity[tight]);
    check_overdraft(test, random, &h, start, end);
    check_waiting(test, random, &h, waited);
}

static void test_memories_are_recounted(void **state) {
    fixture *test = *state;
    test_random random = {82};
    long cases = test_cases(2000, 100000), waited = 0;
    for (long i = 0; i < cases; i++) {
        test_random own = {test_draw(&random)};
        check_memories(test, own, (int)(i % MEMORIES), &waited);
    }
    assert_true(waited > cases / 20 && waited < cases);
    test_count("memory.recounted", cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_engine_is_the_longest_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memories_are_recounted, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
