#include "tests/goal_example.h"

#include "tests/longest_path.h"

const char *const goal_names[GOAL_NAMES] = {"zb-1p", "zb-2p", "v-min", "v-half", "v-zb", "1f1b-v", "zb-two-thirds"};

void goal_example_tails(test_random *random, goal_example *e, int64_t longest) {
    for (int i = 0; i < e->costs.devices * e->costs.chunks; i++) {
        e->stream[i] = test_between(random, 0, longest);
        e->after[i] = test_between(random, 0, longest);
        e->costs.ready_ps[i] = test_between(random, 0, 2) * test_between(random, 0, longest);
    }
    for (int d = 0; d < e->costs.devices; d++) e->own[d] = test_between(random, 0, longest / 2);
    e->tails = (pc_tails){e->stream, e->after, e->own, test_between(random, 0, 2) == 0};
}

void goal_example_draw(test_random *random, const char *name, int devices, int microbatches, goal_example *e) {
    memset(e, 0, sizeof *e);
    e->generator = pc_generator_find(name);
    e->microbatches = microbatches;
    assert_int_equal(pc_costs_create(devices, e->generator->chunks_default, &e->costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_ready(&e->costs, NULL), PC_OK);
    bool is_uniform = test_between(random, 0, 1);
    for (int i = 0; i < devices * e->costs.chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            e->costs.duration_ps[i * PC_PASS_KINDS + kind] =
                is_uniform && i > 0 ? e->costs.duration_ps[kind] : test_between(random, 1, 20);
        e->costs.activation_bytes[i] = 12;
        e->costs.activation_b_bytes[i] = test_between(random, 0, 1) * 4;
    }
    e->costs.transfer.delay_ps = test_between(random, 0, 1) * test_between(random, 0, 9);
    for (int d = 0; d < devices; d++)
        e->limit[d] = test_between(random, 0, 1) ? PC_NO_LIMIT : 12 * e->costs.chunks + 12 * test_between(random, 0, 6);
    goal_example_tails(random, e, 60);
}

void goal_example_free(goal_example *e) {
    pc_costs_free(&e->costs);
}

pc_schedule goal_example_schedule(const goal_example *e, pc_goal goal, const pc_costs *costs, pc_search_memo *memo) {
    const pc_generate_request request = {.devices = costs->devices,
                                         .microbatches = e->microbatches,
                                         .costs = costs,
                                         .memory_limit = {(int64_t *)e->limit},
                                         .threads = 1,
                                         .goal = goal,
                                         .tails = &e->tails,
                                         .memo = memo};
    pc_error error = {0};
    pc_schedule schedule;
    if (pc_generate(e->generator, &request, &schedule, NULL, &error)) fail_msg("%s", error.message);
    return schedule;
}

/* Of a device: chunks in the order of their ends wait for the network, in a plain loop over what is left. */
static pc_time count_device(const goal_example *e, const pc_schedule *s, const pc_time *start, const pc_time *end,
                            int d) {
    int chunks = s->chunks;
    pc_time last[2] = {0}, begin = INT64_MAX, network = 0;
    bool is_done[2] = {false}, is_begun[2] = {false};
    for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++) {
        int c = s->passes[i].chunk;
        pc_time before = start[i] - e->costs.ready_ps[d * chunks + c];
        if (!is_begun[c] && before < begin) begin = before;
        is_begun[c] = true;
        if (s->passes[i].kind == PC_PASS_W || s->passes[i].kind == PC_PASS_BW) last[c] = end[i];
    }
    for (int n = 0; n < chunks; n++) {
        int next = is_done[0] ? 1 : 0;
        for (int c = next + 1; c < chunks; c++)
            if (!is_done[c] && last[c] < last[next]) next = c;
        is_done[next] = true;
        pc_time queued = network + e->stream[d * chunks + next], alone = last[next] + e->after[d * chunks + next];
        network = queued > alone ? queued : alone;
    }
    pc_time stage_end = end[s->offsets[d + 1] - 1];
    return (network > stage_end ? network : stage_end) + e->own[d] - (e->tails.from_begin ? begin : 0);
}

goal_counted goal_count(const goal_example *e, const pc_schedule *s, bool with_ready) {
    size_t passes = (size_t)s->offsets[s->devices];
    pc_time *start = calloc(passes, sizeof *start), *end = calloc(passes, sizeof *end);
    pc_costs costs = e->costs;
    goal_counted made = {0};
    if (!with_ready) costs.ready_ps = NULL;
    assert_true(longest_path(s, &costs, start, end));
    for (int d = 0; d < s->devices; d++) {
        pc_time stage_end = end[s->offsets[d + 1] - 1], of_device = stage_end - start[s->offsets[d]];
        pc_time whole = count_device(e, s, start, end, d);
        if (of_device > made.span) made.span = of_device;
        if (stage_end > made.makespan) made.makespan = stage_end;
        if (whole > made.iteration) made.iteration = whole;
    }
    free(start);
    free(end);
    return made;
}

void goal_example_any(test_random *random, int most, goal_example *e) {
    int p = (int)test_between(random, 2, most), m = (int)test_between(random, 1, 2 * most);
    goal_example_draw(random, goal_names[test_between(random, 0, GOAL_NAMES - 1)], p, m, e);
}

pc_instance goal_example_instance(const goal_example *e, const pc_objective *objective) {
    pc_instance instance;
    assert_int_equal(pc_instance_create(&e->costs, e->generator->placement, e->generator->splits, e->microbatches,
                                        (pc_memory_limit){NULL}, &instance, NULL),
                     PC_OK);
    instance.objective = objective;
    return instance;
}

/* Any order that can run. */
void goal_example_order(test_random *random, const pc_instance *x, pc_instance_order *order) {
    int done[6 * GOAL_DEVICES_MOST] = {0}, filled[GOAL_DEVICES_MOST] = {0};
    for (int64_t left = x->devices * x->passes; left > 0;) {
        int i = (int)test_between(random, 0, x->devices * x->types - 1), d = i / x->types;
        const pc_instance_cell *cell = &x->cells[i];
        bool is_ready = done[i] < x->microbatches && (cell->before < 0 || done[cell->before] > done[i]) &&
                        (cell->own < 0 || done[cell->own] > done[i]);
        if (!is_ready) continue;
        order->pass[d * x->passes + filled[d]++] = pc_instance_pass_make(i % x->types, done[i]++);
        left--;
    }
}
