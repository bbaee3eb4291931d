#include "tests/determinism/scenarios.h"

#include "tests/support.h"

#include <assert.h>

/* A draw stands in a statement of its own: compilers differ in which argument of a call they work out first. */
typedef struct drawing {
    test_random random;
    drawn_scenario *scenario;
} drawing;

static int64_t draw(drawing *x, int64_t least, int64_t most) {
    return test_between(&x->random, least, most);
}

static bool toss(drawing *x) {
    return draw(x, 0, 1);
}

static int64_t pick(drawing *x, const int *choices, int count) {
    return choices[draw(x, 0, count - 1)];
}

static const char *pick_text(drawing *x, const char *const *choices, int count) {
    return choices[draw(x, 0, count - 1)];
}

#define PICK(x, ...) pick(x, (const int[]){__VA_ARGS__}, (int)(sizeof((const int[]){__VA_ARGS__}) / sizeof(int)))
#define PICK_TEXT(x, ...)                                                                                              \
    pick_text(x, (const char *const[]){__VA_ARGS__}, (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

__attribute__((format(printf, 2, 3))) static void set(drawing *x, const char *format, ...) {
    va_list values;
    drawn_scenario *s = x->scenario;
    assert(s->set_count < SCENARIO_SETS_MAX);
    va_start(values, format);
    int length = vsnprintf(s->set[s->set_count], SCENARIO_SET_SIZE, format, values);
    va_end(values);
    assert(length < SCENARIO_SET_SIZE);
    s->set_count++;
}

static void set_number(drawing *x, const char *key, int64_t value) {
    set(x, "%s=%lld", key, (long long)value);
}

static void set_switch(drawing *x, const char *key) {
    set(x, "%s=%s", key, toss(x) ? "true" : "false");
}

/* ---- given times ---- */

static const char *const named[] = {
    "gpipe", "1f1b",  "1f1b-r",  "eager-1f1b", "1f1b-interleaved",           "looped-bfs", "zb-interleaved",
    "zb-h1", "zb-h2", "chimera", "gems",       "1f1b-interleaved-low-memory"};
static const char *const searched[] = {"1f1b-v", "zb-1p", "zb-2p", "zb-two-thirds", "v-min",
                                       "v-half", "v-zb",  "zb-v",  "v-adaptive"};
enum { NAMED = sizeof named / sizeof *named, SEARCHED = sizeof searched / sizeof *searched };

static void draw_times(drawing *x) {
    int64_t f = draw(x, 1000, 9999), b = draw(x, 1000, 9999), w = draw(x, 500, 9999);
    set(x, "setting.times={F: %lld us, B: %lld us, W: %lld us}", (long long)f, (long long)b, (long long)w);
}

static void draw_transfer(drawing *x) {
    int64_t way = draw(x, 0, 2), amount = draw(x, 1, 900);
    if (way == 1) set(x, "setting.transfer.time=%lld us", (long long)amount);
    if (way == 2)
        set(x, "setting.transfer={size: %lld kB, latency: 3 us, bandwidth: 7.3 GB/s}", (long long)amount * 10);
}

static void draw_given(drawing *x, const char *const *schedules, int count) {
    set(x, "setting.schedule=%s", pick_text(x, schedules, count));
    int64_t devices = 2 * draw(x, 1, 4), rounds = draw(x, 1, 4);
    set_number(x, "setting.devices", devices);
    set_number(x, "setting.microbatches", devices * rounds);
    set(x, "setting.activation.size=%lld MiB", (long long)draw(x, 1, 2048));
    draw_times(x);
    draw_transfer(x);
    if (toss(x)) set(x, "setting.memory=%lld MiB", (long long)draw(x, 256, 4096));
    if (toss(x)) set(x, "setting.making=equal");
    if (toss(x)) set(x, "setting.overhead=%lld us", (long long)draw(x, 0, 999));
}

static void draw_given_named(drawing *x) {
    draw_given(x, named, NAMED);
}

static void draw_given_searched(drawing *x) {
    draw_given(x, searched, SEARCHED);
}

/* ---- clusters ---- */

static void draw_model(drawing *x) {
    const char *name = PICK_TEXT(x, "gpt3-1.3b", "gpt3-2.7b", "megatron-1.7b", "llama3-8b", "korthikanti-22b");
    set(x, "setting.model.from=%s", name);
    bool counts_ends = toss(x); /* as a layer each: 48 in all */
    set_number(x, "setting.model.layers", counts_ends ? 46 : 48);
    set(x, "setting.model.layout=%s", counts_ends ? "ends" : "even");
    set(x, "setting.model.attention=%s", PICK_TEXT(x, "flash", "materialised"));
    set_number(x, "setting.model.seq_len", 1024 * PICK(x, 1, 2));
}

static void draw_cut(drawing *x) {
    int64_t pp = PICK(x, 1, 2, 4, 8), rounds = draw(x, 1, 3);
    set_number(x, "setting.tp", PICK(x, 1, 2, 4, 8));
    set_number(x, "setting.pp", pp);
    set_number(x, "setting.dp", PICK(x, 1, 2, 4, 16));
    set_number(x, "setting.microbatches", 2 * pp * rounds);
    set_number(x, "setting.microbatch_size", PICK(x, 1, 2));
    set_number(x, "setting.zero", draw(x, 0, 3));
    set(x, "setting.recompute=%s", PICK_TEXT(x, "none", "selective", "full"));
    set(x, "setting.rank_order=%s", PICK_TEXT(x, "tp-dp-pp", "tp-pp-dp", "pp-tp-dp"));
}

static void draw_switches(drawing *x) {
    set_switch(x, "setting.overlap.p2p");
    set_switch(x, "setting.overlap.tp");
    set_switch(x, "setting.overlap.gradients");
    set_switch(x, "setting.overlap.parameters");
    set_switch(x, "setting.scatter_boundary");
    if (toss(x)) set(x, "setting.bucket=%lld MB", (long long)draw(x, 20, 200));
    if (toss(x)) set(x, "setting.pass_overhead=0.%02lld", (long long)draw(x, 0, 99));
    if (toss(x)) set(x, "setting.step=post-validation");
}

static void draw_cluster_of(drawing *x, const char *const *schedules, int count) {
    draw_model(x);
    set(x, "setting.machine=%s",
        PICK_TEXT(x, "dgx-a100", "dgx-h100", "dgx-b200", "a100-pcie", "a100-hdr-4-nics", "hgx-h200", "gb200-nvl72",
                  "mi300x", "selene"));
    set(x, "setting.schedule=%s", pick_text(x, schedules, count));
    draw_cut(x);
    draw_switches(x);
    set(x, "setting.memory=%s", PICK_TEXT(x, "30 GiB", "80 GiB", "400 GiB", "400 GiB"));
}

static void draw_closed(drawing *x) {
    draw_cluster_of(x, named, NAMED);
    set(x, "setting.network=%s", PICK_TEXT(x, "closed", "auto"));
}

static void draw_flows(drawing *x) {
    draw_cluster_of(x, named, NAMED);
    set(x, "setting.network=flows");
    set(x, "setting.granularity=%s", PICK_TEXT(x, "pass", "pass", "operations"));
}

static void draw_searched(drawing *x) {
    draw_cluster_of(x, searched, SEARCHED);
    if (toss(x)) set(x, "setting.making=equal");
}

/* ---- noise ---- */

static void draw_steady(drawing *x) {
    static const char *const schedules[] = {"gpipe", "1f1b", "1f1b-interleaved", "zb-h1", "v-half", "chimera"};
    draw_cluster_of(x, schedules, sizeof schedules / sizeof *schedules);
    x->scenario->draws_noise = true;
    set_number(x, "setting.seed", draw(x, 0, 1000));
    set(x, "setting.network=closed");
    set(x, "setting.memory=400 GiB"); /* of two that are given the last counts */
}

static void draw_expanded(drawing *x) {
    draw_steady(x);
    set(x, "setting.expand=true");
    set(x, "setting.jitter=0.%02lld", (long long)draw(x, 0, 20));
}

static void draw_bad_days(drawing *x) {
    draw_steady(x);
    set_number(x, "setting.samples", draw(x, 2, 12));
    if (toss(x)) set(x, "setting.jitter=0.%02lld", (long long)draw(x, 1, 20));
    if (toss(x)) set(x, "setting.bad_days.gpu_jitter=0.%02lld", (long long)draw(x, 1, 9));
    if (toss(x)) set(x, "setting.bad_days.link_jitter=0.%02lld", (long long)draw(x, 1, 30));
    if (toss(x)) set_number(x, "setting.bad_days.slow_stage", 0);
    set_number(x, "setting.bad_days.slow_gpus", draw(x, 0, 1));
    set(x, "setting.bad_days.slow_factor=1.%lld", (long long)draw(x, 0, 9));
    set_number(x, "setting.bad_days.bad_links", draw(x, 0, 1));
    set(x, "setting.bad_days.bad_factor=0.%lld", (long long)draw(x, 1, 9));
    if (toss(x)) return;
    set(x, "setting.bad_days.other_gpu=a100-pcie-80gb");
    set_number(x, "setting.bad_days.other_nodes", 1);
}

static void draw_job(drawing *x) {
    draw_steady(x);
    set_number(x, "setting.samples", draw(x, 2, 20));
    set(x, "setting.jitter=0.05");
    set(x, "setting.price=%lld.5/h", (long long)draw(x, 1, 5));
    set(x, "setting.job.mtbf=%lld days", (long long)draw(x, 3, 900));
    set(x, "setting.job.checkpoint=%lld s", (long long)draw(x, 0, 300));
    if (toss(x)) set(x, "setting.job.interval=%lld min", (long long)draw(x, 5, 300));
    set(x, "setting.job.restart=%lld min", (long long)draw(x, 0, 30));
    set(x, "setting.job.repair=%lld h", (long long)draw(x, 0, 90));
    set_number(x, "setting.job.spare_nodes", draw(x, 0, 2));
}

/* ---- plans ---- */

static void draw_plan(drawing *x) {
    x->scenario->is_plan = true;
    draw_model(x);
    set(x, "setting.memory=%lld GiB", (long long)draw(x, 12, 90));
    set(x, "setting.network=%s", PICK_TEXT(x, "closed", "auto", "flows"));
    set(x, "plan.machine=[%s]", PICK_TEXT(x, "dgx-a100", "dgx-h100", "dgx-a100, a100-pcie"));
    set(x, "plan.objective=[%s]", PICK_TEXT(x, "throughput", "cost", "throughput, memory"));
    set(x, "plan.price=[2.10/h]");
    set(x, "plan.gpus=[%s]", PICK_TEXT(x, "16", "8, 32", "24"));
    set(x, "plan.global_batch=[%s]", PICK_TEXT(x, "48", "96"));
    set(x, "plan.tp=[1, 4]");
    set(x, "plan.pp=[1, 2, 4]");
    set(x, "plan.chunks=[2, 3]");
    set(x, "plan.microbatch_size=[1, 2]");
    set(x, "plan.schedule=[1f1b, 1f1b-interleaved, %s]", PICK_TEXT(x, "zb-h1", "gpipe", "chimera"));
    set(x, "plan.zero=[0, %s]", PICK_TEXT(x, "1", "3"));
    set(x, "plan.rank_order=[tp-dp-pp]");
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
    drawing x = {{(uint64_t)number + 801}, &scenario};
    kinds[kind].draw(&x);
    return scenario;
}
