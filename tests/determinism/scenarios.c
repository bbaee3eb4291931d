#include "tests/determinism/scenarios.h"

#include "tests/support.h"

#include <assert.h>

/* A draw stands in a statement of its own: compilers differ in which argument of a call they work out first. */
typedef struct drawing {
    test_random random;
    drawn_scenario *scenario;
} drawing;

static int64_t draw(drawing *drawn, int64_t least, int64_t most) {
    return test_between(&drawn->random, least, most);
}

static bool toss(drawing *drawn) {
    return draw(drawn, 0, 1);
}

static int64_t pick(drawing *drawn, const int *choices, int count) {
    return choices[draw(drawn, 0, count - 1)];
}

static const char *pick_text(drawing *drawn, const char *const *choices, int count) {
    return choices[draw(drawn, 0, count - 1)];
}

#define PICK(drawn, ...)                                                                                               \
    pick(drawn, (const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#define PICK_TEXT(drawn, ...)                                                                                          \
    pick_text(drawn, (const char *const[]){__VA_ARGS__},                                                               \
              (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

__attribute__((format(printf, 2, 3))) static void set(drawing *drawn, const char *format, ...) {
    va_list values;
    drawn_scenario *s = drawn->scenario;
    assert(s->set_count < SCENARIO_SETS_MAX);
    va_start(values, format);
    int length = vsnprintf(s->set[s->set_count], SCENARIO_SET_SIZE, format, values);
    va_end(values);
    assert(length < SCENARIO_SET_SIZE);
    s->set_count++;
}

static void set_number(drawing *drawn, const char *key, int64_t value) {
    set(drawn, "%s=%lld", key, (long long)value);
}

static void set_switch(drawing *drawn, const char *key) {
    set(drawn, "%s=%s", key, toss(drawn) ? "true" : "false");
}

/* ---- given times ---- */

static const char *const named[] = {"gpipe",
                                    "1f1b",
                                    "1f1b-r",
                                    "eager-1f1b",
                                    "1f1b-interleaved",
                                    "looped-bfs",
                                    "zb-interleaved",
                                    "zb-h1",
                                    "zb-h2",
                                    "chimera",
                                    "gems",
                                    "1f1b-interleaved-low-memory",
                                    "gis",
                                    "gis-h",
                                    "gis-uniform",
                                    "gis-h-uniform"};
static const char *const searched[] = {"1f1b-v", "zb-1p", "zb-2p", "zb-two-thirds", "v-min",
                                       "v-half", "v-zb",  "zb-v",  "v-adaptive",    "interleaved-adaptive"};
enum { NAMED = sizeof named / sizeof *named, SEARCHED = sizeof searched / sizeof *searched };

static void draw_times(drawing *drawn) {
    int64_t f = draw(drawn, 1000, 9999), b = draw(drawn, 1000, 9999), w = draw(drawn, 500, 9999);
    set(drawn, "setting.times={F: %lld us, B: %lld us, W: %lld us}", (long long)f, (long long)b, (long long)w);
}

static void draw_transfer(drawing *drawn) {
    int64_t way = draw(drawn, 0, 2), amount = draw(drawn, 1, 900);
    if (way == 1) set(drawn, "setting.transfer.time=%lld us", (long long)amount);
    if (way == 2)
        set(drawn, "setting.transfer={size: %lld kB, latency: 3 us, bandwidth: 7.3 GB/s}", (long long)amount * 10);
}

static void draw_given(drawing *drawn, const char *const *schedules, int count) {
    set(drawn, "setting.schedule=%s", pick_text(drawn, schedules, count));
    int64_t devices = 2 * draw(drawn, 1, 4), rounds = draw(drawn, 1, 4);
    set_number(drawn, "setting.devices", devices);
    set_number(drawn, "setting.microbatches", devices * rounds);
    set(drawn, "setting.activation.size=%lld MiB", (long long)draw(drawn, 1, 2048));
    draw_times(drawn);
    draw_transfer(drawn);
    if (toss(drawn)) set(drawn, "setting.memory=%lld MiB", (long long)draw(drawn, 256, 4096));
    if (toss(drawn)) set(drawn, "setting.making=equal");
    if (toss(drawn)) set(drawn, "setting.overhead=%lld us", (long long)draw(drawn, 0, 999));
}

static void draw_given_named(drawing *drawn) {
    draw_given(drawn, named, NAMED);
}

static void draw_given_searched(drawing *drawn) {
    draw_given(drawn, searched, SEARCHED);
}

/* ---- clusters ---- */

static void draw_model(drawing *drawn) {
    const char *name = PICK_TEXT(drawn, "gpt3-1.3b", "gpt3-2.7b", "megatron-1.7b", "llama3-8b", "korthikanti-22b");
    set(drawn, "setting.model.from=%s", name);
    bool counts_ends = toss(drawn); /* as a layer each: 48 in all */
    set_number(drawn, "setting.model.layers", counts_ends ? 46 : 48);
    set(drawn, "setting.model.layout=%s", counts_ends ? "ends" : "even");
    set(drawn, "setting.model.attention=%s", PICK_TEXT(drawn, "flash", "materialised"));
    set_number(drawn, "setting.model.seq_len", 1024 * PICK(drawn, 1, 2));
}

static void draw_cut(drawing *drawn) {
    int64_t pp = PICK(drawn, 1, 2, 4, 8), rounds = draw(drawn, 1, 3);
    set_number(drawn, "setting.tp", PICK(drawn, 1, 2, 4, 8));
    set_number(drawn, "setting.pp", pp);
    set_number(drawn, "setting.dp", PICK(drawn, 1, 2, 4, 16));
    set_number(drawn, "setting.microbatches", 2 * pp * rounds);
    set_number(drawn, "setting.microbatch_size", PICK(drawn, 1, 2));
    set_number(drawn, "setting.zero", draw(drawn, 0, 3));
    set(drawn, "setting.recompute=%s", PICK_TEXT(drawn, "none", "selective", "full"));
    set(drawn, "setting.rank_order=%s", PICK_TEXT(drawn, "tp-dp-pp", "tp-pp-dp", "pp-tp-dp"));
}

static void draw_switches(drawing *drawn) {
    set_switch(drawn, "setting.overlap.p2p");
    set_switch(drawn, "setting.overlap.tp");
    set_switch(drawn, "setting.overlap.gradients");
    set_switch(drawn, "setting.overlap.parameters");
    set_switch(drawn, "setting.scatter_boundary");
    if (toss(drawn)) set(drawn, "setting.bucket=%lld MB", (long long)draw(drawn, 20, 200));
    if (toss(drawn)) set(drawn, "setting.pass_overhead=0.%02lld", (long long)draw(drawn, 0, 99));
    if (toss(drawn)) set(drawn, "setting.step=post-validation");
}

static void draw_cluster_of(drawing *drawn, const char *const *schedules, int count) {
    draw_model(drawn);
    set(drawn, "setting.machine=%s",
        PICK_TEXT(drawn, "dgx-a100", "dgx-h100", "dgx-b200", "a100-pcie", "a100-hdr-4-nics", "hgx-h200", "gb200-nvl72",
                  "mi300x", "selene"));
    set(drawn, "setting.schedule=%s", pick_text(drawn, schedules, count));
    draw_cut(drawn);
    draw_switches(drawn);
    set(drawn, "setting.memory=%s", PICK_TEXT(drawn, "30 GiB", "80 GiB", "400 GiB", "400 GiB"));
}

static void draw_closed(drawing *drawn) {
    draw_cluster_of(drawn, named, NAMED);
    set(drawn, "setting.network=%s", PICK_TEXT(drawn, "closed", "auto"));
}

static void draw_flows(drawing *drawn) {
    draw_cluster_of(drawn, named, NAMED);
    set(drawn, "setting.network=flows");
    set(drawn, "setting.granularity=%s", PICK_TEXT(drawn, "pass", "pass", "operations"));
}

static void draw_searched(drawing *drawn) {
    draw_cluster_of(drawn, searched, SEARCHED);
    if (toss(drawn)) set(drawn, "setting.making=equal");
}

/* ---- noise ---- */

static void draw_steady(drawing *drawn) {
    static const char *const schedules[] = {"gpipe", "1f1b", "1f1b-interleaved", "zb-h1", "v-half", "chimera"};
    draw_cluster_of(drawn, schedules, sizeof schedules / sizeof *schedules);
    drawn->scenario->draws_noise = true;
    set_number(drawn, "setting.seed", draw(drawn, 0, 1000));
    set(drawn, "setting.network=closed");
    set(drawn, "setting.memory=400 GiB"); /* of two that are given the last counts */
}

static void draw_expanded(drawing *drawn) {
    draw_steady(drawn);
    set(drawn, "setting.expand=true");
    set(drawn, "setting.jitter=0.%02lld", (long long)draw(drawn, 0, 20));
}

static void draw_bad_days(drawing *drawn) {
    draw_steady(drawn);
    set_number(drawn, "setting.samples", draw(drawn, 2, 12));
    if (toss(drawn)) set(drawn, "setting.jitter=0.%02lld", (long long)draw(drawn, 1, 20));
    if (toss(drawn)) set(drawn, "setting.bad_days.gpu_jitter=0.%02lld", (long long)draw(drawn, 1, 9));
    if (toss(drawn)) set(drawn, "setting.bad_days.link_jitter=0.%02lld", (long long)draw(drawn, 1, 30));
    if (toss(drawn)) set_number(drawn, "setting.bad_days.slow_stage", 0);
    set_number(drawn, "setting.bad_days.slow_gpus", draw(drawn, 0, 1));
    set(drawn, "setting.bad_days.slow_factor=1.%lld", (long long)draw(drawn, 0, 9));
    set_number(drawn, "setting.bad_days.bad_links", draw(drawn, 0, 1));
    set(drawn, "setting.bad_days.bad_factor=0.%lld", (long long)draw(drawn, 1, 9));
    if (draw(drawn, 0, 3) == 0) set(drawn, "setting.bad_days.robust=%s", toss(drawn) ? "mean" : "p95");
    if (toss(drawn)) return;
    set(drawn, "setting.bad_days.other_gpu=a100-pcie-80gb");
    set_number(drawn, "setting.bad_days.other_nodes", 1);
}

static void draw_job(drawing *drawn) {
    draw_steady(drawn);
    set_number(drawn, "setting.samples", draw(drawn, 2, 20));
    set(drawn, "setting.jitter=0.05");
    set(drawn, "setting.price=%lld.5/h", (long long)draw(drawn, 1, 5));
    set(drawn, "setting.job.mtbf=%lld days", (long long)draw(drawn, 3, 900));
    set(drawn, "setting.job.checkpoint=%lld s", (long long)draw(drawn, 0, 300));
    if (toss(drawn)) set(drawn, "setting.job.interval=%lld min", (long long)draw(drawn, 5, 300));
    set(drawn, "setting.job.restart=%lld min", (long long)draw(drawn, 0, 30));
    set(drawn, "setting.job.repair=%lld h", (long long)draw(drawn, 0, 90));
    set_number(drawn, "setting.job.spare_nodes", draw(drawn, 0, 2));
}

/* ---- plans ---- */

static void draw_plan(drawing *drawn) {
    drawn->scenario->is_plan = true;
    draw_model(drawn);
    set(drawn, "setting.memory=%lld GiB", (long long)draw(drawn, 12, 90));
    set(drawn, "setting.network=%s", PICK_TEXT(drawn, "closed", "auto", "flows"));
    set(drawn, "plan.machine=[%s]", PICK_TEXT(drawn, "dgx-a100", "dgx-h100", "dgx-a100, a100-pcie"));
    set(drawn, "plan.objective=[%s]", PICK_TEXT(drawn, "throughput", "cost", "throughput, memory"));
    set(drawn, "plan.price=[2.10/h]");
    set(drawn, "plan.gpus=[%s]", PICK_TEXT(drawn, "16", "8, 32", "24"));
    set(drawn, "plan.global_batch=[%s]", PICK_TEXT(drawn, "48", "96"));
    set(drawn, "plan.tp=[1, 4]");
    set(drawn, "plan.pp=[1, 2, 4]");
    set(drawn, "plan.chunks=[2, 3]");
    set(drawn, "plan.microbatch_size=[1, 2]");
    set(drawn, "plan.schedule=[1f1b, 1f1b-interleaved, %s]", PICK_TEXT(drawn, "zb-h1", "gpipe", "chimera"));
    set(drawn, "plan.zero=[0, %s]", PICK_TEXT(drawn, "1", "3"));
    set(drawn, "plan.rank_order=[tp-dp-pp]");
}

drawn_scenario draw_scenario(int number) {
    static const struct {
        const char *name;
        void (*draw)(drawing *);
    } kinds[] = {{"named", draw_given_named},
                 {"searched", draw_given_searched},
                 {"closed", draw_closed},
                 {"flows", draw_flows},
                 {"cluster-searched", draw_searched},
                 {"expanded", draw_expanded},
                 {"bad-days", draw_bad_days},
                 {"job", draw_job},
                 {"flows", draw_flows},
                 {"plan", draw_plan}};
    int kind = number % (int)(sizeof kinds / sizeof *kinds);
    drawn_scenario scenario = {.kind = kinds[kind].name};
    drawing drawn = {{(uint64_t)number + 801}, &scenario};
    kinds[kind].draw(&drawn);
    return scenario;
}
