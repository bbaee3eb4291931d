#include "tests/instance_example.h"

void instance_example_costs(test_random *random, const instance_example *e) {
    int64_t longest = test_between(random, 0, 3) ? 20 : 2;
    bool is_equal = test_between(random, 0, 4) == 0;
    for (int64_t i = 0; i < (int64_t)e->costs.devices * e->costs.chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            e->costs.duration_ps[i * PC_PASS_KINDS + kind] = is_equal ? 7 : test_between(random, 0, longest);
        e->costs.activation_bytes[i] = test_between(random, 0, 30);
        e->costs.activation_b_bytes[i] = test_between(random, 0, e->costs.activation_bytes[i]);
    }
}

/* Of each type of a device the microbatches in turn; a pass when those that it waits for have run. The next pass is
 * drawn from all that can run. */
static void draw_order(test_random *random, const pc_instance *instance, pc_instance_order *order) {
    int cells = instance->devices * instance->types, *done = calloc((size_t)cells, sizeof *done);
    int64_t *filled = calloc((size_t)instance->devices, sizeof *filled);
    for (int64_t left = instance->devices * instance->passes; left > 0;) {
        int i = (int)test_between(random, 0, cells - 1), device = i / instance->types;
        const pc_instance_cell *cell = &instance->cells[i];
        bool waits = (cell->before != PC_INSTANCE_NONE && done[cell->before] <= done[i]) ||
                     (cell->own != PC_INSTANCE_NONE && done[cell->own] <= done[i]);
        if (done[i] == instance->microbatches || waits) continue;
        order->pass[device * instance->passes + filled[device]++] =
            pc_instance_pass_make(i % instance->types, done[i]++);
        left--;
    }
    free(done);
    free(filled);
}

int64_t instance_example_peak(const pc_costs *costs, const pc_schedule *s, int device) {
    int64_t level = 0, peak = 0;
    for (int64_t k = s->offsets[device]; k < s->offsets[device + 1]; k++) {
        int64_t i = (int64_t)device * s->chunks + s->passes[k].chunk, kind = s->passes[k].kind;
        int64_t whole = costs->activation_bytes[i], by_b = costs->activation_b_bytes[i];
        level += kind == PC_PASS_F ? whole : kind == PC_PASS_B ? -by_b : kind == PC_PASS_W ? by_b - whole : -whole;
        if (level > peak) peak = level;
    }
    return peak;
}

pc_schedule instance_example_schedule(const instance_example *e) {
    pc_schedule s;
    assert_int_equal(pc_instance_to_schedule(&e->instance, &e->order, "example", &s, NULL), PC_OK);
    return s;
}

/* With limits that the order needs: just these, or a share more. */
static void draw_limits(test_random *random, instance_example *e) {
    pc_schedule s = instance_example_schedule(e);
    int64_t more = test_between(random, 0, 2) * 10;
    pc_instance_free(&e->instance);
    for (int d = 0; d < s.devices; d++) {
        int64_t peak = instance_example_peak(&e->costs, &s, d);
        e->limit[d] = test_between(random, 0, 5) ? peak + peak * test_between(random, 0, more) / 20 : PC_NO_LIMIT;
    }
    pc_schedule_free(&s);
    assert_int_equal(pc_instance_create(&e->costs, e->placement, e->splits, e->microbatches,
                                        (pc_memory_limit){e->limit}, &e->instance, NULL),
                     PC_OK);
}

void instance_example_draw(test_random *random, instance_example *e) {
    static const pc_placement two[] = {PC_PLACEMENT_V, PC_PLACEMENT_INTERLEAVED};
    int p = (int)test_between(random, 1, 6), chunks = (int)test_between(random, 1, 2);
    memset(e, 0, sizeof *e);
    e->placement = chunks == 1 ? PC_PLACEMENT_LINEAR : two[test_between(random, 0, 1)];
    e->splits = test_between(random, 0, 1);
    e->microbatches = (int)test_between(random, 1, 10);
    assert_int_equal(pc_costs_create(p, chunks, &e->costs, NULL), PC_OK);
    instance_example_costs(random, e);
    e->costs.transfer.delay_ps = test_between(random, 0, 1) * test_between(random, 0, 12);
    assert_int_equal(pc_instance_create(&e->costs, e->placement, e->splits, e->microbatches, (pc_memory_limit){NULL},
                                        &e->instance, NULL),
                     PC_OK);
    assert_int_equal(pc_instance_order_create(&e->instance, &e->order, NULL), PC_OK);
    draw_order(random, &e->instance, &e->order);
    draw_limits(random, e);
}

void instance_example_free(instance_example *e) {
    pc_instance_order_free(&e->order);
    pc_instance_free(&e->instance);
    pc_costs_free(&e->costs);
}
