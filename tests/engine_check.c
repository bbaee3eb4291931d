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
static void check_link(const pc_engine_trace *x, int32_t link) {
    bool is_full = false;
    pc_time since = 0, carried = 0, filled = 0;
    for (int64_t i = 0; i < x->load_count; i++) {
        if (x->load_link[i] != link) continue;
        if (is_full) carried += x->load_time_ps[i] - since;
        is_full = !is_full;
        assert_true(x->load_bytes_per_s[i] == (is_full ? x->link_bytes_per_s[link] : 0.0));
        assert_true(is_full ? since == 0 || x->load_time_ps[i] > since : x->load_time_ps[i] > since);
        since = x->load_time_ps[i];
    }
    assert_false(is_full);
    for (int64_t i = 0; i < x->flow_count; i++)
        if (x->flow_out[i] == link) filled += x->flow_end_ps[i] - x->flow_start_ps[i];
    int64_t flows = 0;
    for (int64_t i = 0; i < x->flow_count; i++) flows += x->flow_out[i] == link;
    assert_true(flows > 0);
    assert_int_equal(x->link_sort[link], PC_LINK_STAGES);
    assert_true(x->link_shared[link] && !x->link_is_in[link] && x->link_replica[link] == 0);
    assert_true(carried <= filled);
}

static void check_flows(const pc_engine_trace *x, const pc_costs *costs, const pc_replay_trace *trace) {
    bool has_links = costs->transfer.mode == PC_TRANSFER_LINK;
    int64_t waited = 0, longer = 0;
    assert_int_equal(x->flow_count, trace->transfer_count);
    for (int64_t i = 0; i < x->flow_count; i++) {
        assert_true(i == 0 || x->flow_start_ps[i - 1] <= x->flow_start_ps[i]);
        assert_int_equal(x->flow_sort[i], PC_FLOW_MESSAGE);
        assert_int_equal(x->flow_end_ps[i] - x->flow_start_ps[i], x->flow_alone_ps[i]);
        assert_true(x->flow_start_ps[i] >= x->flow_ready_ps[i]);
        assert_int_equal(x->flow_in[i], -1);
        waited += x->flow_start_ps[i] - x->flow_ready_ps[i];
        if (!has_links) {
            assert_true(x->flow_out[i] == -1 && x->flow_bytes[i] == 0 && x->flow_start_ps[i] == x->flow_ready_ps[i]);
            continue;
        }
        assert_int_equal(x->link_device[x->flow_out[i]], x->flow_from[i]);
        assert_int_equal(x->link_peer[x->flow_out[i]], x->flow_to[i]);
        assert_true(x->flow_bytes[i] == (double)costs->transfer.size_bytes);
    }
    for (int64_t i = 0; i < trace->transfer_count; i++)
        longer += trace->transfer_end_ps[i] - trace->transfer_start_ps[i];
    for (int64_t i = 0; i < x->flow_count; i++) longer -= x->flow_alone_ps[i];
    assert_int_equal(waited, longer);
}

void check_engine_trace(const pc_schedule *s, const pc_costs *costs, const test_limits *limits,
                        const pc_replay *replay) {
    const pc_engine_trace *x = &replay->engine;
    check_flows(x, costs, &replay->trace);
    for (int32_t link = 0; link < x->link_count; link++) check_link(x, link);
    for (int64_t i = 1; i < x->load_count; i++) assert_true(x->load_time_ps[i - 1] <= x->load_time_ps[i]);
    if (costs->transfer.mode == PC_TRANSFER_DELAY) assert_true(x->link_count == 0 && x->load_count == 0);
    assert_int_equal(x->queue_count, s->offsets[s->devices]);
    for (int64_t i = 0; i < x->queue_count; i++) {
        assert_true(x->queue_ready_ps[i] >= 0 && x->queue_ready_ps[i] <= replay->trace.pass_start_ps[i]);
        if (replay->trace.pass[i].kind == PC_PASS_F && costs->ready_ps)
            assert_true(x->queue_ready_ps[i] >=
                        pc_costs_ready(costs, replay->trace.pass_device[i], replay->trace.pass[i].chunk));
    }
    assert_int_equal(x->memory_count, replay->trace.level_count);
    assert_int_equal(x->devices, s->devices);
    for (int d = 0; d < s->devices; d++) assert_int_equal(x->memory_capacity_bytes[d], limits->bytes[d]);
    assert_int_equal(x->work_count, 0);
}
