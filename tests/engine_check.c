#include "tests/engine_check.h"

#include "models/schedule/check.h"
#include "tests/random_schedule.h"

pc_replay replay_of(const pc_schedule *schedule, const pc_costs *costs, const test_limits *limits,
                    pc_engine_mode engine, bool waits) {
    const pc_replay_options options = {
        .with_trace = true, .engine = engine, .waits_for_memory = waits, .memory_limit = test_limit(limits)};
    pc_replay replay;
    pc_error error = {0};
    if (pc_replay_run(schedule, costs, &options, &replay, &error)) fail_msg("%s: %s", schedule->name, error.message);
    return replay;
}

bool is_too_small(const pc_schedule *s, const pc_costs *costs, const test_limits *limits) {
    int64_t peaks[16];
    assert_int_equal(pc_schedule_peaks(s, costs, peaks, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++)
        if (peaks[d] > limits->bytes[d]) return true;
    return false;
}

void over_links(test_random *random, pc_costs *costs) {
    costs->transfer = (pc_transfer){.mode = PC_TRANSFER_LINK,
                                    .latency_ps = test_between(random, 0, 5),
                                    .bandwidth_bytes_per_s = test_between(random, 0, 1) ? 1e12 : 1e12 / 3,
                                    .size_bytes = test_between(random, 0, 30)};
}

void limit_memory(test_random *random, const pc_schedule *s, const pc_costs *costs, test_limits *limits) {
    int64_t peaks[16];
    assert_int_equal(pc_schedule_peaks(s, costs, peaks, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++)
        limits->bytes[d] =
            test_between(random, 0, s->devices) ? peaks[d] + 1 : test_between(random, peaks[d] / 2, peaks[d]);
}

void draw_costs(test_random *random, const pc_schedule *shape, pc_costs *costs) {
    random_costs(random, shape, costs);
    random_hops_and_ready(random, costs);
}

/* The loads of a link rise to its bandwidth and fall to nothing, each at its own instant, and carry what its flows say.
 */
static void check_link(const pc_engine_trace *engine, int32_t link) {
    bool is_full = false;
    pc_time since = 0, carried = 0, filled = 0;
    for (int64_t i = 0; i < engine->load_count; i++) {
        if (engine->load_link[i] != link) continue;
        if (is_full) carried += engine->load_time_ps[i] - since;
        is_full = !is_full;
        assert_true(engine->load_bytes_per_s[i] == (is_full ? engine->link_bytes_per_s[link] : 0.0));
        assert_true(is_full ? since == 0 || engine->load_time_ps[i] > since : engine->load_time_ps[i] > since);
        since = engine->load_time_ps[i];
    }
    assert_false(is_full);
    for (int64_t i = 0; i < engine->flow_count; i++)
        if (engine->flow_out[i] == link) filled += engine->flow_end_ps[i] - engine->flow_start_ps[i];
    int64_t flows = 0;
    for (int64_t i = 0; i < engine->flow_count; i++) flows += engine->flow_out[i] == link;
    assert_true(flows > 0);
    assert_int_equal(engine->link_sort[link], PC_LINK_STAGES);
    assert_true(engine->link_shared[link] && !engine->link_is_in[link] && engine->link_replica[link] == 0);
    assert_true(carried <= filled);
}

static void check_flows(const pc_engine_trace *engine, const pc_costs *costs, const pc_replay_trace *trace) {
    bool has_links = costs->transfer.mode == PC_TRANSFER_LINK;
    int64_t waited = 0, longer = 0;
    assert_int_equal(engine->flow_count, trace->transfer_count);
    for (int64_t i = 0; i < engine->flow_count; i++) {
        assert_true(i == 0 || engine->flow_start_ps[i - 1] <= engine->flow_start_ps[i]);
        assert_int_equal(engine->flow_sort[i], PC_FLOW_MESSAGE);
        assert_int_equal(engine->flow_end_ps[i] - engine->flow_start_ps[i], engine->flow_alone_ps[i]);
        assert_true(engine->flow_start_ps[i] >= engine->flow_ready_ps[i]);
        assert_int_equal(engine->flow_in[i], -1);
        waited += engine->flow_start_ps[i] - engine->flow_ready_ps[i];
        if (!has_links) {
            assert_true(engine->flow_out[i] == -1 && engine->flow_bytes[i] == 0 &&
                        engine->flow_start_ps[i] == engine->flow_ready_ps[i]);
            continue;
        }
        assert_int_equal(engine->link_device[engine->flow_out[i]], engine->flow_from[i]);
        assert_int_equal(engine->link_peer[engine->flow_out[i]], engine->flow_to[i]);
        assert_true(engine->flow_bytes[i] == (double)costs->transfer.size_bytes);
    }
    for (int64_t i = 0; i < trace->transfer_count; i++)
        longer += trace->transfer_end_ps[i] - trace->transfer_start_ps[i];
    for (int64_t i = 0; i < engine->flow_count; i++) longer -= engine->flow_alone_ps[i];
    assert_int_equal(waited, longer);
}

void check_engine_trace(const pc_schedule *s, const pc_costs *costs, const test_limits *limits,
                        const pc_replay *replay) {
    const pc_engine_trace *engine = &replay->engine;
    check_flows(engine, costs, &replay->trace);
    for (int32_t link = 0; link < engine->link_count; link++) check_link(engine, link);
    for (int64_t i = 1; i < engine->load_count; i++)
        assert_true(engine->load_time_ps[i - 1] <= engine->load_time_ps[i]);
    if (costs->transfer.mode == PC_TRANSFER_DELAY) assert_true(engine->link_count == 0 && engine->load_count == 0);
    assert_int_equal(engine->queue_count, s->offsets[s->devices]);
    for (int64_t i = 0; i < engine->queue_count; i++) {
        assert_true(engine->queue_ready_ps[i] >= 0 && engine->queue_ready_ps[i] <= replay->trace.pass_start_ps[i]);
        if (replay->trace.pass[i].kind == PC_PASS_F && costs->ready_ps)
            assert_true(engine->queue_ready_ps[i] >=
                        pc_costs_ready(costs, replay->trace.pass_device[i], replay->trace.pass[i].chunk));
    }
    assert_int_equal(engine->memory_count, replay->trace.level_count);
    assert_int_equal(engine->devices, s->devices);
    for (int d = 0; d < s->devices; d++) assert_int_equal(engine->memory_capacity_bytes[d], limits->bytes[d]);
    assert_int_equal(engine->work_count, 0);
}
