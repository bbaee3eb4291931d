/* The scenario loader: what good files mean, and what --set makes of them. */
#include "models/schedule/generate.h"
#include "models/workload/activation_memory.h"
#include "results/row.h"
#include "scenarios/units.h"
#include "tests/scenario_files.h"

#include <inttypes.h>
#include <math.h>

/* ---- what files mean ---- */

static pc_scenario *load_good(const char *name) {
    char path[PATH_SIZE];
    data_path(name, path);
    return load_with(path, NULL, 0);
}

static void test_minimal(void **state) {
    (void)state;
    size_t size;
    pc_scenario *scenario = load_good("good/minimal.yaml");
    assert_string_equal(pc_scenario_name(scenario), "minimal");
    assert_string_equal(pc_scenario_title(scenario), "");
    assert_int_equal(pc_scenario_run_count(scenario), 1);
    const char *text = pc_scenario_text(scenario, &size);
    assert_int_equal(strlen(text), size);
    assert_starts(text, "# The least that a scenario needs");

    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_labels labels = labels_of(scenario, 0);
    assert_string_equal(labels.scenario, "minimal");
    assert_string_equal(labels.name, "minimal.1f1b");
    assert_string_equal(labels.model, "");
    assert_string_equal(labels.machine, "");
    assert_ptr_equal(spec.generator, pc_generator_find("1f1b"));
    assert_int_equal(spec.devices, 4);
    assert_int_equal(spec.microbatches, 8);
    assert_int_equal(spec.chunks, 1);
    assert_int_equal(spec.microbatch_size, -1);
    assert_int_equal(spec.seq_len, -1);
    assert_false(spec.has_activation);
    assert_false(spec.trace);
    assert_int_equal(spec.overhead_ps, 0);
    assert_null(spec.memory_limit_bytes);
    assert_int_equal(spec.costs.devices, 4);
    assert_int_equal(spec.costs.transfer.mode, PC_TRANSFER_DELAY);
    assert_int_equal(spec.costs.transfer.delay_ps, 0);
    assert_true(isnan(labels.published_bubble_rate_span));
    assert_true(isnan(labels.published_samples_per_s_per_gpu));
    assert_true(isnan(labels.published_iteration_s));
    for (int d = 0; d < 4; d++) {
        assert_int_equal(pc_costs_duration(&spec.costs, d, 0, PC_PASS_F), MS);
        assert_int_equal(pc_costs_duration(&spec.costs, d, 0, PC_PASS_BW), 2 * MS);
        assert_int_equal(pc_costs_duration(&spec.costs, d, 0, PC_PASS_B), PC_TIME_NOT_GIVEN);
        assert_int_equal(pc_costs_duration(&spec.costs, d, 0, PC_PASS_R), MS); /* F again */
    }
    pc_run_spec_free(&spec);
    assert_int_equal(pc_scenario_run_spec(scenario, 1, &spec, &labels, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_scenario_run_spec(scenario, -1, &spec, &labels, NULL), PC_ERROR_INPUT);
    pc_scenario_free(scenario);
    pc_scenario_free(NULL);
}

static void assert_times(const pc_run_spec *spec, int stage, int64_t f, int64_t b, int64_t w, int64_t bw) {
    assert_int_equal(pc_costs_duration(&spec->costs, stage, 0, PC_PASS_F), f);
    assert_int_equal(pc_costs_duration(&spec->costs, stage, 0, PC_PASS_B), b);
    assert_int_equal(pc_costs_duration(&spec->costs, stage, 0, PC_PASS_W), w);
    assert_int_equal(pc_costs_duration(&spec->costs, stage, 0, PC_PASS_BW), bw);
}

/* The run of this name; fails where there is none. */
static int64_t index_of(const pc_scenario *scenario, const char *name) {
    for (int64_t i = 0; i < pc_scenario_run_count(scenario); i++)
        if (strcmp(labels_of(scenario, i).name, name) == 0) return i;
    fail_msg("no run %s", name);
    abort();
}

static pc_run_spec find_run(const pc_scenario *scenario, const char *name) {
    return spec_of(scenario, index_of(scenario, name));
}

static void test_merged_times(void **state) {
    (void)state;
    static const struct {
        const char *run;
        int64_t times[2][4]; /* stage, F B W BW, in ms; -1 not given */
    } cases[] = {{"as-is.1f1b", {{1, 2, 3, 5}, {1, 2, 3, 5}}},
                 {"one-time.1f1b", {{4, 2, 3, 5}, {4, 2, 3, 5}}},
                 {"bw.1f1b", {{1, 2, 3, 4}, {1, 2, 3, 4}}},
                 {"own-stages.1f1b", {{1, -1, -1, 2}, {3, 4, 5, 9}}}};
    pc_scenario *scenario = load_good("good/merge.yaml");
    assert_string_equal(pc_scenario_title(scenario), "Merging");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_run_spec spec = find_run(scenario, cases[i].run);
        for (int d = 0; d < 2; d++) {
            int64_t t[4];
            for (int k = 0; k < 4; k++) t[k] = cases[i].times[d][k] < 0 ? PC_TIME_NOT_GIVEN : cases[i].times[d][k] * MS;
            assert_times(&spec, d, t[0], t[1], t[2], t[3]);
        }
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
}

static void test_merged_rest(void **state) {
    (void)state;
    pc_scenario *scenario = load_good("good/merge.yaml");
    pc_run_spec spec = find_run(scenario, "as-is.1f1b");
    assert_int_equal(spec.costs.transfer.mode, PC_TRANSFER_DELAY);
    assert_int_equal(spec.costs.transfer.delay_ps, 10000000);
    assert_int_equal(spec.overhead_ps, 5 * MS);
    assert_true(spec.trace);
    assert_int_equal(spec.seq_len, 128);
    pc_run_spec_free(&spec);

    spec = find_run(scenario, "link.1f1b");
    assert_int_equal(spec.costs.transfer.mode, PC_TRANSFER_LINK);
    assert_int_equal(spec.costs.transfer.delay_ps, 0);
    assert_int_equal(spec.costs.transfer.size_bytes, 1 << 20);
    assert_int_equal(spec.costs.transfer.latency_ps, 5000000);
    assert_true(spec.costs.transfer.bandwidth_bytes_per_s == 1e9);
    pc_run_spec_free(&spec);

    spec = find_run(scenario, "labels.1f1b");
    const pc_run_labels labels = labels_of(scenario, index_of(scenario, "labels.1f1b"));
    assert_string_equal(labels.model, "small");
    assert_string_equal(labels.machine, "other");
    assert_int_equal(spec.overhead_ps, 0);
    assert_false(spec.trace);
    assert_int_equal(spec.microbatch_size, 3);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* s 128, h 64, a 4, b 2: a layer keeps 34*128*2*64 + 5*4*128*128*2 = 557056 + 655360 = 1212416 bytes, of which B frees
 * 2*128*2*64 + 655360 = 688128. A stage of two has 4 of 8 layers, or 8 of 16. */
static void test_merged_activation(void **state) {
    (void)state;
    static const struct {
        const char *run;
        int64_t kept, b_frees;
    } cases[] = {{"as-is.1f1b", 4 * 1212416, 4 * 688128},
                 {"other-model.1f1b", 8 * 1212416, 8 * 688128},
                 {"explicit-activation.1f1b", 1001, 250}, /* 250.25 */
                 {"released-share.1f1b", 4 * 1212416, 2 * 1212416},
                 {"labels.1f1b", 6 * 1212416, 6 * 688128}}; /* half as many sequences again */
    pc_scenario *scenario = load_good("good/merge.yaml");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_run_spec spec = find_run(scenario, cases[i].run);
        assert_true(spec.has_activation);
        for (int d = 0; d < 2; d++) {
            assert_int_equal(spec.costs.activation_bytes[d], cases[i].kept);
            assert_int_equal(spec.costs.activation_b_bytes[d], cases[i].b_frees);
            assert_int_equal(pc_memory_limit_of(pc_run_memory_limit(&spec), d), i == 2 ? 2000 : PC_NO_LIMIT);
        }
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
}

static void test_stages(void **state) {
    (void)state;
    pc_scenario *scenario = load_good("good/stages.yaml");
    pc_run_spec spec = find_run(scenario, "unequal.zb-h1");
    assert_times(&spec, 0, 10500000000, 12 * MS, 8 * MS, 20 * MS);
    assert_times(&spec, 1, 9 * MS, 12 * MS, 8 * MS, 20 * MS);
    assert_int_equal(pc_costs_duration(&spec.costs, 1, 0, PC_PASS_R), MS);
    assert_times(&spec, 2, 14 * MS, 20001000000, 8 * MS, 27 * MS);
    pc_run_spec_free(&spec);
    spec = find_run(scenario, "equal.zb-h1");
    for (int d = 0; d < 3; d++) assert_times(&spec, d, 10 * MS, 12 * MS, 8 * MS, 20 * MS);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* An entry's memory before the setting's, a case's before both, and never the replica's: it is the device's. */
static void test_memory_of_stages(void **state) {
    (void)state;
    static const struct {
        const char *run;
        int devices;
        int64_t gib[3];
    } cases[] = {{"unequal.zb-h1", 3, {20, 30, 20}},
                 {"equal.zb-h1", 3, {20, 20, 20}},
                 {"same-memory.zb-h1", 3, {10, 10, 10}},
                 {"other-stages.chimera", 2, {5, 10}}};
    pc_scenario *scenario = load_good("good/stages.yaml");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_run_spec spec = find_run(scenario, cases[i].run);
        assert_int_equal(spec.costs.devices, cases[i].devices);
        for (int d = 0; d < cases[i].devices; d++) assert_int_equal(spec.memory_limit_bytes[d], cases[i].gib[d] << 30);
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
}

/* Case-major, then devices, chunks, microbatches, and the schedule innermost. */
static void test_sweep_order(void **state) {
    (void)state;
    static const char *const cases[] = {"a", "b"}, *const schedules[] = {"1f1b", "1f1b-interleaved"};
    static const int devices[] = {4, 8}, chunks[] = {2, 3}, microbatches[] = {8, 16};
    pc_scenario *scenario = load_good("good/sweep.yaml");
    assert_int_equal(pc_scenario_run_count(scenario), 32);
    for (int i = 0; i < 32; i++) {
        char name[PC_LABEL_SIZE];
        int p = devices[i / 8 % 2], v = chunks[i / 4 % 2], m = microbatches[i / 2 % 2];
        pc_run_spec spec = spec_of(scenario, i);
        pc_run_labels labels = labels_of(scenario, i);
        snprintf(name, sizeof name, "%s.%s.m%d.p%d.v%d", cases[i / 16], schedules[i % 2], m, p, v);
        assert_string_equal(labels.name, name);
        assert_int_equal(spec.devices, p);
        assert_int_equal(spec.microbatches, m);
        assert_int_equal(spec.chunks, i % 2 ? v : 1);
        assert_int_equal(spec.costs.chunks, spec.chunks);
        assert_int_equal(pc_costs_duration(&spec.costs, p - 1, 0, PC_PASS_BW), 12 * MS / spec.chunks);
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
}

/* Case b leaves its shape to the sweep, so that its figures are any run's of their schedule; case a has 16 devices of
 * its own, and none of the runs has them. */
static void test_published(void **state) {
    (void)state;
    pc_scenario *scenario = load_good("good/sweep.yaml");
    for (int i = 0; i < 32; i++) {
        pc_run_spec spec = spec_of(scenario, i);
        pc_run_labels labels = labels_of(scenario, i);
        bool here = i >= 16 && i % 2 == 0, by_microbatches = here && spec.microbatches == 16;
        assert_true(by_microbatches ? labels.published_bubble_rate_span == 0.125
                                    : isnan(labels.published_bubble_rate_span));
        assert_true(by_microbatches ? labels.published_iteration_s == 7.5992 : isnan(labels.published_iteration_s));
        assert_true(here && !by_microbatches ? labels.published_samples_per_s_per_gpu == 11.8
                                             : isnan(labels.published_samples_per_s_per_gpu));
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
}

/* For any stage time T and any v: chunks add up to T, and differ by a picosecond at most. Likewise bytes. */
static void test_chunks_add_up(void **state) {
    (void)state;
    test_random random = {1};
    for (long i = 0; i < test_cases(300, 1500); i++) {
        char text[1024];
        int64_t time = (int64_t)(test_draw(&random) >> (2 + i % 40)),
                bytes = (int64_t)(test_draw(&random) >> (12 + i % 40)) + 1;
        int v = (int)test_between(&random, 1, 37);
        snprintf(text, sizeof text,
                 "scenario: x\nsetting: {schedule: 1f1b-interleaved, devices: 2, microbatches: 2, chunks: %d, times: "
                 "{F: %" PRId64 " ps, BW: 0 s}, activation: {size: %" PRId64 " B, release_b: 0.3}}\n",
                 v, time, bytes);
        pc_scenario *scenario = load_text(text);
        pc_run_spec spec = spec_of(scenario, 0);
        int64_t time_sum = 0, bytes_sum = 0;
        assert_int_equal(spec.chunks, v);
        for (int c = 0; c < v; c++) {
            int64_t t = pc_costs_duration(&spec.costs, 1, c, PC_PASS_F), b = spec.costs.activation_bytes[v + c];
            assert_true(t == time / v || t == time / v + 1);
            assert_true(b == bytes / v || b == bytes / v + 1);
            assert_true(fabs((double)spec.costs.activation_b_bytes[v + c] - 0.3 * (double)b) <=
                        0.5 + 1e-15 * (double)b);
            time_sum += t;
            bytes_sum += b;
        }
        assert_int_equal(time_sum, time);
        assert_int_equal(bytes_sum, bytes);
        pc_run_spec_free(&spec);
        pc_scenario_free(scenario);
    }
}

/* What only the generator refuses is a run, not an error. */
static void test_infeasible_is_no_error(void **state) {
    (void)state;
    pc_scenario *scenario = load_text("scenario: x\nsetting: {schedule: v-half, devices: 4, microbatches: 6, "
                                      "times: {F: 1 ms, B: 1 ms, W: 1 ms}, activation: {size: 2 GiB}, "
                                      "memory: 1 GiB}\n");
    pc_run_spec spec = spec_of(scenario, 0);
    assert_int_equal(spec.chunks, spec.generator->chunks_default);
    assert_int_equal(pc_generator_check_memory(spec.generator, &spec.costs, pc_run_memory_limit(&spec), NULL),
                     PC_ERROR_INPUT);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

static void test_byte_order_mark_and_carriage_returns(void **state) {
    (void)state;
    pc_scenario *scenario = load_text("\xef\xbb\xbfscenario: x\r\nsetting:\r\n  schedule: 1f1b\r\n  devices: 2\r\n"
                                      "  microbatches: 2\r\n  times: {F: 1 ms, BW: 1 ms}\r\n");
    assert_string_equal(pc_scenario_name(scenario), "x");
    pc_scenario_free(scenario);
}

/* ---- sets ---- */

static void test_sets(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.microbatches=64",    "setting.times.F=12 ms", "setting.microbatches=32",
                                       "setting.transfer.time=3 us", "title=other # comment", "scenario=renamed",
                                       "setting.machine=H100: no"};
    char text[1024];
    snprintf(text, sizeof text, "%scases:\n  - {name: a}\n  - {name: b, microbatches: 16, times: {F: 4 ms, B: 5 ms}}\n",
             base);
    write_temporary(text, strlen(text));
    pc_scenario *scenario = load_with(temporary, sets, 6);
    assert_string_equal(pc_scenario_title(scenario), "other");
    assert_string_equal(pc_scenario_name(scenario), "renamed");
    for (int64_t i = 0; i < 2; i++) {
        /* The last one wins, over the case too; what stands beside it under `times` stays. */
        pc_run_spec spec = spec_of(scenario, i);
        pc_run_labels labels = labels_of(scenario, i);
        assert_string_equal(labels.scenario, "renamed");
        assert_int_equal(spec.microbatches, 32);
        assert_int_equal(spec.costs.transfer.delay_ps, 3000000);
        assert_times(&spec, 0, 12 * MS, (i ? 5 : 1) * MS, MS, (i ? 6 : 2) * MS);
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
    assert_starts(message_of(temporary, sets, 7),
                  "--set setting.machine=H100: no: not YAML: mapping values are not allowed in this context");
}

/* The file's own text is what is kept with results; what was set stands behind it. */
static void test_text_is_the_files(void **state) {
    (void)state;
    static const char *const set = "setting.devices=2";
    char expected[4096];
    size_t size;
    write_temporary(base, strlen(base));
    for (int sets = 0; sets < 2; sets++) {
        pc_scenario *scenario = load_with(temporary, &set, sets);
        snprintf(expected, sizeof expected, "%s%s", base, sets ? "# --set setting.devices=2\n" : "");
        assert_string_equal(pc_scenario_text(scenario, &size), expected);
        assert_int_equal(size, strlen(expected));
        pc_scenario_free(scenario);
    }
}

static int64_t count_with(const char *name, const char *const *sets, int set_count) {
    char path[PATH_SIZE];
    data_path(name, path);
    pc_scenario *scenario = load_with(path, sets, set_count);
    int64_t count = pc_scenario_run_count(scenario);
    pc_scenario_free(scenario);
    return count;
}

/* Of the sweep's 2 cases x 2 devices x 2 chunks x 2 microbatches x 2 schedules. */
static void test_sets_and_sweep(void **state) {
    (void)state;
    static const char *const replaced[] = {"sweep.schedule=[gpipe, 1f1b, zb-h1]"};
    static const char *const fixed[] = {"setting.schedule=zb-h1"};
    static const char *const fixed_then_swept[] = {"setting.schedule=zb-h1", "sweep.schedule=[gpipe, 1f1b, zb-h1]"};
    static const char *const swept_then_fixed[] = {"sweep.schedule=[gpipe, 1f1b, zb-h1]", "setting.schedule=zb-h1"};
    static const char *const added[] = {"sweep.microbatches=[1, 2, 3, 4, 5]"};
    assert_int_equal(count_with("good/sweep.yaml", NULL, 0), 32);
    assert_int_equal(count_with("good/sweep.yaml", replaced, 1), 48);
    assert_int_equal(count_with("good/sweep.yaml", fixed, 1), 16);
    assert_int_equal(count_with("good/sweep.yaml", fixed_then_swept, 2), 48);
    assert_int_equal(count_with("good/sweep.yaml", swept_then_fixed, 2), 16);
    assert_int_equal(count_with("good/minimal.yaml", added, 1), 5);
}

/* ---- the library's own scenarios ---- */

static void assert_runs(const pc_run_spec *spec) {
    pc_run_row row;
    pc_run_detail detail;
    assert_int_equal(pc_run_row_make(spec, NULL, &row, &detail, NULL), PC_OK);
    if (row.status != PC_RUN_OK) fail_msg("%s: %s", spec->generator->name, row.message);
    pc_run_detail_free(&detail);
}

/* Every block of the documentation that begins as a scenario does: it has these runs, and the first and the last can be
 * done. */
static void test_documentation(void **state) {
    (void)state;
    static const struct {
        int64_t runs;
        const char *first, *last;
    } expected[] = {{18, "as-measured.1f1b.m16", "balanced.zb-h2.m32"},
                    {16, "plain.1f1b.tp4.pp8", "frugal.1f1b-interleaved.tp8.pp16"},
                    {12, "room_for_activations.v-min.making-costs.mem4GiB",
                     "room_for_activations.v-adaptive.making-equal.mem8GiB"}};
    char path[PATH_SIZE], line[PATH_SIZE], text[8192] = "";
    bool inside = false;
    size_t found = 0;
    snprintf(path, sizeof path, "%s/docs/scenario-format.md", source_root());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        if (strcmp(line, "```\n") == 0 && inside) {
            pc_scenario *scenario = load_text(text);
            assert_true(found < sizeof expected / sizeof *expected);
            assert_int_equal(pc_scenario_run_count(scenario), expected[found].runs);
            pc_run_spec first = spec_of(scenario, 0), last = spec_of(scenario, expected[found].runs - 1);
            assert_string_equal(labels_of(scenario, 0).name, expected[found].first);
            assert_string_equal(labels_of(scenario, expected[found].runs - 1).name, expected[found].last);
            assert_runs(&first);
            assert_runs(&last);
            pc_run_spec_free(&first);
            pc_run_spec_free(&last);
            pc_scenario_free(scenario);
            found++;
            inside = false;
            text[0] = '\0';
        }
        if (inside) strcat(text, line);
        if (strcmp(line, "```yaml\n") == 0) inside = true;
    }
    fclose(file);
    assert_int_equal(found, sizeof expected / sizeof *expected);
}

static pc_scenario *load_table5(void) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/scenarios/paper/zero_bubble_table5.yaml", source_root());
    return load_with(path, NULL, 0);
}

/* layers + 2 = p * chunks in all of them, so that every chunk is a layer. */
static void test_table5(void **state) {
    (void)state;
    pc_scenario *scenario = load_table5();
    assert_int_equal(pc_scenario_run_count(scenario), 72);
    for (int64_t i = 0; i < 72; i++) {
        pc_run_spec spec = spec_of(scenario, i);
        pc_run_labels labels = labels_of(scenario, i);
        const bool is_handcrafted = i % 6 == 2 || i % 6 == 3; /* ZB-H1 and ZB-H2 were not measured */
        assert_true(spec.trace && spec.has_activation);
        assert_string_equal(labels.machine, "A100 SXM 80 GB");
        assert_true(labels.published_bubble_rate_span > 0);
        assert_int_equal(isnan(labels.published_samples_per_s_per_gpu) != 0, is_handcrafted);
        assert_int_equal(isnan(labels.published_memory_gib) != 0, is_handcrafted);
        assert_int_equal(pc_generator_check(spec.generator, spec.devices, spec.microbatches, spec.chunks, NULL), PC_OK);
        if (i % 6 == 1) {
            int64_t middle = spec.costs.activation_bytes[spec.chunks], first = spec.costs.activation_bytes[0];
            assert_true(middle > 0 && first == 0);
        }
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
}

/* A row of shared/data/zero_bubble.csv, which says in its first line what is where. */
typedef struct csv_row {
    char model[32];
    char cell[40][32];
} csv_row;

enum { DEVICES = 1, MICROBATCHES, MICROBATCH_SIZE, SEQ_LEN, HIDDEN, HEADS, LAYERS, T_F, T_B, T_W, T_COMM, BUBBLES };
static const char csv_header[] = "model,devices,microbatches,microbatch_size,seq_len,hidden,heads,layers,t_f_ms,t_b_ms,"
                                 "t_w_ms,t_comm_ms,bubble_1f1b,bubble_1f1b_i,bubble_zb_h1,bubble_zb_h2,bubble_zb_1p,"
                                 "bubble_zb_2p,samples_per_s_per_gpu_1f1b,samples_per_s_per_gpu_1f1b_i,"
                                 "samples_per_s_per_gpu_zb_1p,samples_per_s_per_gpu_zb_2p,memory_gb_1f1b,"
                                 "memory_gb_1f1b_i,memory_gb_zb_1p,memory_gb_zb_2p";
enum { SAMPLES = BUBBLES + 6, MEMORY = SAMPLES + 4 };

static void split_row(char *line, csv_row *row) {
    memset(row, 0, sizeof *row);
    line[strcspn(line, "\r\n")] = '\0';
    int column = 0;
    for (char *cell = strtok(line, ","); cell && column < 40; cell = strtok(NULL, ","), column++)
        snprintf(row->cell[column], sizeof row->cell[column], "%s", cell);
    snprintf(row->model, sizeof row->model, "%s", row->cell[0]);
}

static int64_t row_ps(const csv_row *row, int column) {
    char text[64];
    pc_time time = -1;
    snprintf(text, sizeof text, "%s ms", row->cell[column]);
    assert_int_equal(pc_parse_time(text, &time, NULL), PC_OK);
    return time;
}

static int64_t row_integer(const csv_row *row, int column) {
    return strtoll(row->cell[column], NULL, 10);
}

static int64_t sum_chunks(const pc_run_spec *spec, int stage, int kind) {
    int64_t sum = 0;
    for (int c = 0; c < spec->chunks; c++) sum += pc_costs_duration(&spec->costs, stage, c, kind);
    return sum;
}

static void compare_row(const pc_scenario *scenario, int64_t row_index, const csv_row *row) {
    static const char *const schedules[] = {"1f1b", "1f1b-interleaved", "zb-h1", "zb-h2", "zb-1p", "zb-2p"};
    for (int s = 0; s < 6; s++) {
        char name[PC_LABEL_SIZE];
        pc_run_spec spec = spec_of(scenario, 6 * row_index + s);
        pc_run_labels labels = labels_of(scenario, 6 * row_index + s);
        snprintf(name, sizeof name, "%s-m%s.%s", row->model, row->cell[MICROBATCHES], schedules[s]);
        assert_string_equal(labels.name, name);
        assert_string_equal(labels.model, row->model);
        assert_int_equal(spec.devices, row_integer(row, DEVICES));
        assert_int_equal(spec.microbatches, row_integer(row, MICROBATCHES));
        assert_int_equal(spec.microbatch_size, row_integer(row, MICROBATCH_SIZE));
        assert_int_equal(spec.seq_len, row_integer(row, SEQ_LEN));
        if (s == 1) assert_int_equal(spec.chunks * spec.devices, row_integer(row, LAYERS) + 2);
        for (int d = 0; d < spec.devices; d++) {
            assert_int_equal(sum_chunks(&spec, d, PC_PASS_F), row_ps(row, T_F));
            assert_int_equal(sum_chunks(&spec, d, PC_PASS_B), row_ps(row, T_B));
            assert_int_equal(sum_chunks(&spec, d, PC_PASS_W), row_ps(row, T_W));
            assert_int_equal(sum_chunks(&spec, d, PC_PASS_BW), row_ps(row, T_B) + row_ps(row, T_W));
        }
        assert_int_equal(spec.costs.transfer.delay_ps, row_ps(row, T_COMM));
        /* Hidden size and heads show in what a stage keeps: stage 1 holds (layers + 2) / p whole layers. */
        pc_shape shape = {row_integer(row, LAYERS), row_integer(row, HIDDEN), row_integer(row, HEADS),
                          row_integer(row, SEQ_LEN), row_integer(row, MICROBATCH_SIZE)};
        int64_t per_layer = 0, kept = 0;
        assert_true(pc_activation_bytes_per_layer(&shape, &per_layer));
        for (int c = 0; c < spec.chunks; c++) kept += spec.costs.activation_bytes[spec.chunks + c];
        assert_int_equal(kept, per_layer * (shape.layers + 2) / spec.devices);
        assert_true(labels.published_bubble_rate_span == strtod(row->cell[BUBBLES + s], NULL));
        if (s < 2 || s > 3) { /* of ZB-H1 and ZB-H2 there is neither */
            int measured = s < 2 ? s : s - 2;
            assert_true(labels.published_samples_per_s_per_gpu == strtod(row->cell[SAMPLES + measured], NULL));
            assert_true(labels.published_memory_gib == strtod(row->cell[MEMORY + measured], NULL));
        }
        pc_run_spec_free(&spec);
    }
}

static FILE *open_shared(const char *name) {
    char path[PATH_SIZE];
    const char *shared = getenv("PC_SHARED");
    if (shared)
        snprintf(path, sizeof path, "%s/%s", shared, name);
    else
        snprintf(path, sizeof path, "%s/../shared/%s", source_root(), name);
    return fopen(path, "r");
}

static void test_table5_is_the_papers(void **state) {
    (void)state;
    char line[PATH_SIZE];
    int64_t rows = 0;
    FILE *file = open_shared("data/zero_bubble.csv");
    if (!file) {
        print_message("no shared/data/zero_bubble.csv (PC_SHARED): skipped\n");
        skip();
    }
    pc_scenario *scenario = load_table5();
    assert_non_null(fgets(line, sizeof line, file));
    assert_starts(line, csv_header);
    for (; fgets(line, sizeof line, file); rows++) {
        csv_row row;
        split_row(line, &row);
        compare_row(scenario, rows, &row);
    }
    assert_int_equal(rows, 12);
    pc_scenario_free(scenario);
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_minimal),
        cmocka_unit_test(test_merged_times),
        cmocka_unit_test(test_merged_rest),
        cmocka_unit_test(test_merged_activation),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_memory_of_stages),
        cmocka_unit_test(test_sweep_order),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_chunks_add_up),
        cmocka_unit_test(test_infeasible_is_no_error),
        cmocka_unit_test(test_byte_order_mark_and_carriage_returns),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_text_is_the_files),
        cmocka_unit_test(test_sets_and_sweep),
        cmocka_unit_test(test_documentation),
        cmocka_unit_test(test_table5),
        cmocka_unit_test(test_table5_is_the_papers),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
