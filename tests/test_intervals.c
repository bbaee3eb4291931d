/* Intervals of forecasts: which line is a run's, what its interval comes to, and what rows say of it. No test depends
 * on the quantiles that the library has today. */
#include "results/row.h"
#include "scenarios/intervals.h"
#include "tests/scenario_files.h"

#include <math.h>

/* To the five digits that intervals are rounded to. */
static bool is_near(double a, double b) {
    return fabs(a - b) <= 5.0001e-5 * fabs(b);
}

/* ---- lines ---- */

static const pc_interval_line LINES[] = {
    {PC_INTERVAL_TIME, "h100", "megatron", "zero-1", 9, 64, 16, 64, 0.97, 1.0, 1.04, 0.01, 0.05, "small"},
    {PC_INTERVAL_TIME, "h100", "megatron", "zero-1", 65, 0, 128, 2048, 0.96, 1.0, 1.05, 0.01, 0.05, "large"},
    {PC_INTERVAL_TIME, "h100", "megatron", "zero-1", 0, 0, 16, 2048, 0.95, 1.0, 1.06, 0.01, 0.05, "kind"},
    {PC_INTERVAL_TIME, "h100", "", "", 0, 0, 8, 2048, 0.9, 1.0, 1.1, 0.02, 0.05, "family"},
    {PC_INTERVAL_TIME, "", "", "", 0, 0, 2, 3072, 0.7, 1.0, 1.4, 0.05, 0.1, "unknown"},
    {PC_INTERVAL_MEMORY, "", "", "", 0, 0, 8, 32, 0.8, 1.0, 1.2, 0, 0.1, "memory"}};
enum { COUNT = sizeof LINES / sizeof *LINES };

static void expect_line(const char *basis, const char *gpu, const char *software, const char *sharding, int64_t gpus) {
    pc_interval_kind kind = {.sharding = sharding, .gpus = gpus};
    snprintf(kind.gpu, sizeof kind.gpu, "%s", gpu);
    snprintf(kind.software, sizeof kind.software, "%s", software);
    assert_string_equal(pc_interval_find_in(LINES, COUNT, PC_INTERVAL_TIME, &kind)->basis, basis);
    assert_string_equal(pc_interval_find_in(LINES, COUNT, PC_INTERVAL_MEMORY, &kind)->basis, "memory");
}

/* Its kind at its scale, its kind, its family of GPUs, the unknown: what the next one less knows is missing. */
static void test_fall_back(void **state) {
    (void)state;
    expect_line("small", "h100", "megatron", "zero-1", 9);
    expect_line("small", "h100", "megatron", "zero-1", 64);
    expect_line("large", "h100", "megatron", "zero-1", 65);
    expect_line("kind", "h100", "megatron", "zero-1", 8);
    expect_line("family", "h100", "megatron", "zero-2", 64);
    expect_line("family", "h100", "other", "zero-1", 64);
    expect_line("unknown", "h200", "megatron", "zero-1", 64);
    assert_null(pc_interval_find_in(LINES, 2, PC_INTERVAL_MEMORY, &(pc_interval_kind){.sharding = ""}));
}

/* Of memory programs have lines, for any GPU and precision; of time they have none. */
static void test_programs_have_memory(void **state) {
    (void)state;
    pc_interval_kind kind = {
        .gpu = "h100", .software = "megatron", .sharding = "zero-1", .precision = "fp8", .gpus = 32};
    const pc_interval_line *memory = pc_interval_find(PC_INTERVAL_MEMORY, &kind);
    const pc_interval_line *time = pc_interval_find(PC_INTERVAL_TIME, &kind);
    assert_string_equal(memory->gpu, "");
    assert_string_equal(memory->software, "megatron");
    assert_string_equal(time->software, "");
    snprintf(kind.software, sizeof kind.software, "a program of its own");
    assert_string_equal(pc_interval_find(PC_INTERVAL_MEMORY, &kind)->software, "");
}

/* What was learned from 16 bits says nothing of fewer: of these the unknown is the line, whatever the GPU. */
static void test_low_precision_is_unknown(void **state) {
    (void)state;
    char text[PC_KIND_SIZE];
    pc_interval_kind kind = {.gpu = "h100", .software = "megatron", .sharding = "zero-1", .gpus = 32};
    assert_string_equal(pc_interval_find_in(LINES, COUNT, PC_INTERVAL_TIME, &kind)->basis, "small");
    pc_interval_kind_text(&kind, text);
    assert_string_equal(text, "h100 megatron zero-1");
    kind.precision = "fp8";
    assert_string_equal(pc_interval_find_in(LINES, COUNT, PC_INTERVAL_TIME, &kind)->basis, "unknown");
    assert_string_equal(pc_interval_find_in(LINES, COUNT, PC_INTERVAL_MEMORY, &kind)->basis, "memory");
    pc_interval_kind_text(&kind, text);
    assert_string_equal(text, "h100 megatron zero-1 fp8");
}

/* ---- the interval ---- */

/* Of a forecast of 10 s: within what was measured 10 times the quantiles. A profile's standard error e adds in
 * quadrature: of high / middle - 1 = 0.06 and 1.2815515655446004 e = 0.08 it makes 0.1. */
static void test_interval(void **state) {
    (void)state;
    const pc_interval_line line = {
        .least_measured = 16, .most_measured = 64, .low = 1.0 / 1.15, .middle = 1, .high = 1.06};
    pc_interval x = pc_interval_of(&line, 10, 64, 0);
    assert_true(is_near(x.low, 10 / 1.15) && is_near(x.high, 10.6));
    x = pc_interval_of(&line, 10, 64, 0.08 / 1.2815515655446004);
    assert_true(is_near(x.low, 10 / 1.17) && is_near(x.high, 11.0)); /* 0.15 and 0.08: 0.17 */
    assert_true(isnan(pc_interval_of(&line, NAN, 64, 0).low) && isnan(pc_interval_of(&line, NAN, 64, 0).high));
}

/* Whatever the size: ends at 2.00002e-6 and 2.00002e8 are 2e-6 and 2e8. */
static void test_rounding(void **state) {
    (void)state;
    const pc_interval_line line = {.least_measured = 1, .most_measured = 8, .low = 1, .middle = 1, .high = 1.5};
    for (double size = 2e-6; size < 1e9; size *= 10) {
        pc_interval x = pc_interval_of(&line, 1.00001 * size, 8, 0);
        assert_true(fabs(x.low / size - 1.0) < 1e-14 && fabs(x.high / size - 1.5) < 1e-14);
    }
}

/* The middle is where errors spread from: of measured times that are 1.2 times the forecasts, 5% more or less. */
static void test_bias(void **state) {
    (void)state;
    const pc_interval_line line = {
        .least_measured = 1, .most_measured = 64, .low = 1.2 / 1.05, .middle = 1.2, .high = 1.2 * 1.05};
    pc_interval x = pc_interval_of(&line, 10, 8, 0.12 / 1.2815515655446004); /* 0.05 and 0.12: 0.13 */
    assert_true(is_near(x.low, 12 / 1.13) && is_near(x.high, 12 * 1.13));
}

/* Beyond 64 GPUs every doubling adds 0.02: 128 one, 192 one and a half (the second one half way), 256 two; below 16
 * likewise, 4 being two. */
static void test_beyond(void **state) {
    (void)state;
    const pc_interval_line line = {
        .least_measured = 16, .most_measured = 64, .low = 1.0 / 1.1, .middle = 1, .high = 1.1, .doubling = 0.02};
    static const struct {
        int64_t gpus;
        double more;
    } cases[] = {{16, 0}, {40, 0}, {64, 0}, {128, 0.02}, {192, 0.03}, {256, 0.04}, {8, 0.02}, {4, 0.04}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_interval x = pc_interval_of(&line, 10, cases[i].gpus, 0);
        assert_true(is_near(x.high, 10 * (1.1 + cases[i].more)) && is_near(x.low, 10 / (1.1 + cases[i].more)));
    }
}

/* ---- the library's own lines ---- */

/* Each is an interval; the last of either quantity fits all, and what is known is never wider. */
static void test_library(void **state) {
    (void)state;
    const pc_interval_kind nothing = {.gpu = "no", .software = "such", .sharding = "run", .gpus = 1};
    for (int i = 0; i < pc_interval_line_count; i++) {
        const pc_interval_line *line = &pc_interval_lines[i], *unknown = pc_interval_find(line->quantity, &nothing);
        assert_true(0.0 < line->low && line->low < line->middle && line->middle < line->high);
        bool is_mixture = strcmp(line->software, "experts") == 0; /* known to be off by more than others */
        assert_true(is_mixture || line->high / line->low <= (1 + 1e-3) * unknown->high / unknown->low);
        assert_true(line->least_measured >= 1 && line->most_measured >= line->least_measured && line->doubling >= 0.0);
        assert_true(line->pair >= 0.0 && strlen(line->basis) < PC_BASIS_SIZE);
        assert_true((line == unknown) == (line->gpu[0] == '\0' && line->software[0] == '\0'));
        assert_true((line == unknown) == (strncmp(line->basis, "the unknown", 11) == 0));
    }
}

/* ---- rows ---- */

static pc_run_row made(const pc_run_spec *spec, const pc_run_labels *labels) {
    pc_error error = {0};
    pc_run_row row;
    pc_run_detail detail;
    if (pc_run_row_make(spec, labels, &row, &detail, &error)) fail_msg("%s", error.message);
    pc_run_detail_free(&detail);
    return row;
}

static pc_run_row row_of(const char *const *sets, int count) {
    pc_scenario *scenario = load_with(NULL, sets, count);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_labels labels = labels_of(scenario, 0);
    pc_run_row row = made(&spec, &labels);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    return row;
}

#define CLUSTER(machine) "setting.model.from=gpt3-2.7b", ("setting.machine=" machine), "setting.tp=2", "setting.gpus=32"
#define ROW(...)                                                                                                       \
    row_of((const char *const[]){__VA_ARGS__}, (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))

/* What is compared: the GPU up to its first hyphen, the software, the sharding; no sharding among one replica. */
static void test_kinds(void **state) {
    (void)state;
    assert_string_equal(ROW(CLUSTER("dgx-a100")).kind, "a100 megatron zero-1");
    assert_string_equal(ROW(CLUSTER("dgx-a100-40gb"), "setting.software=nemo").kind, "a100 megatron zero-1");
    assert_string_equal(ROW(CLUSTER("hgx-h200"), "setting.software=mosaic", "setting.zero=3").kind,
                        "h200 mosaic zero-3");
    assert_string_equal(ROW(CLUSTER("dgx-h100"), "setting.zero=3", "setting.shard_group=4").kind,
                        "h100 megatron hybrid");
    assert_string_equal(ROW(CLUSTER("dgx-h100"), "setting.zero=3", "setting.shard_group=16").kind,
                        "h100 megatron zero-3");
    assert_string_equal(ROW(CLUSTER("dgx-h100"), "setting.zero=2").kind, "h100 megatron zero-2");
    assert_string_equal(ROW(CLUSTER("dgx-h100"), "setting.zero=3", "setting.pp=16").kind, "h100 megatron zero-1");
}

/* Rows have their line's interval of their own numbers, and its words; a GPU that nothing was compared with the wide
 * one. */
static void test_rows(void **state) {
    (void)state;
    pc_run_row known = ROW(CLUSTER("dgx-a100")), unknown = ROW(CLUSTER("mi300x"));
    pc_interval_kind kind = {.gpu = "a100", .software = "megatron", .sharding = "zero-1", .gpus = 32};
    const pc_interval_line *line = pc_interval_find(PC_INTERVAL_TIME, &kind);
    pc_interval time = pc_interval_of(line, known.iteration_s, 32, 0);
    assert_true(known.iteration_s_low == time.low && known.iteration_s_high == time.high && time.low < time.high);
    assert_string_equal(known.iteration_basis, line->basis);
    assert_true(0 < known.memory_gib_low && known.memory_gib_low < known.memory_gib_high);
    assert_true(unknown.iteration_s_low < unknown.iteration_s && unknown.iteration_s < unknown.iteration_s_high);
    assert_true(unknown.memory_gib_low < unknown.memory_gib_max && unknown.memory_gib_max < unknown.memory_gib_high);
    assert_true(unknown.iteration_s_high / unknown.iteration_s_low > time.high / time.low);
    assert_memory_equal(unknown.iteration_basis, "the unknown", 11);
}

/* Given times are given, and what does not fit has no time; but it has a memory. */
static void test_without(void **state) {
    (void)state;
    pc_run_row given = ROW("setting.schedule=1f1b", "setting.devices=4", "setting.microbatches=8",
                           "setting.times={F: 1 ms, B: 1 ms, W: 1 ms}");
    pc_run_row full = ROW(CLUSTER("dgx-a100"), "setting.memory=5 GiB");
    assert_true(given.iteration_s > 0 && isnan(given.iteration_s_low) && isnan(given.memory_gib_high));
    assert_string_equal(given.kind, "");
    assert_int_equal(full.status, PC_RUN_OUT_OF_MEMORY);
    assert_true(isnan(full.iteration_s_low) && isnan(full.iteration_s_high));
    assert_string_equal(full.iteration_basis, "");
}

/* What the costs of a profile do not know is added; what a roofline's error says is in the line already. */
static void test_profile(void **state) {
    (void)state;
    const char *const sets[] = {CLUSTER("dgx-a100")};
    pc_scenario *scenario = load_with(NULL, sets, 4);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_labels labels = labels_of(scenario, 0);
    pc_run_row row = made(&spec, &labels);
    pc_run_row measured = row;
    spec.profile_hash = 1; /* without kernels, as a tuned one: the roofline answers */
    pc_run_row_relabel(&spec, &labels, &measured);
    assert_true(measured.iteration_s_low == row.iteration_s_low && measured.iteration_s_high == row.iteration_s_high);
    spec.has_kernels = true;
    pc_run_row_relabel(&spec, &labels, &measured);
    pc_interval_kind kind = pc_interval_kind_of(&spec, "");
    pc_interval time = pc_interval_of(pc_interval_find(PC_INTERVAL_TIME, &kind), row.iteration_s, 32,
                                      row.standard_error_s / row.iteration_s);
    assert_true(measured.iteration_s_low == time.low && measured.iteration_s_high == time.high);
    assert_true(measured.iteration_s_low < row.iteration_s_low && measured.iteration_s_high > row.iteration_s_high);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* A tuned forecast has an interval as wide as before, relative to its middle, around itself. */
static void test_tuned(void **state) {
    (void)state;
    pc_interval_line line = {.low = 1.1, .middle = 1.2, .high = 1.5, .least_measured = 8, .most_measured = 8};
    pc_interval_line tuned = pc_interval_line_tuned(&line);
    pc_interval before = pc_interval_of(&line, 10, 8, 0), after = pc_interval_of(&tuned, 12, 8, 0);
    assert_true(before.low == 11 && before.high == 15 && after.low == 11 && after.high == 15);

    const char *const sets[] = {CLUSTER("dgx-a100")};
    pc_scenario *scenario = load_with(NULL, sets, 4);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_labels labels = labels_of(scenario, 0);
    pc_run_row row = made(&spec, &labels);
    spec.has_tuning = true;
    pc_run_row_relabel(&spec, &labels, &row);
    assert_true(row.iteration_s_low < row.iteration_s && row.iteration_s < row.iteration_s_high);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* Two names of one and the same setting have one key, and a row that was worked out for one gets the other's
 * interval. */
static void test_software_is_a_label(void **state) {
    (void)state;
    const char *const sets[] = {CLUSTER("dgx-h100")};
    pc_scenario *scenario = load_with(NULL, sets, 4);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_labels labels = labels_of(scenario, 0), other = labels;
    pc_run_row row = made(&spec, &labels);
    snprintf(other.software, sizeof other.software, "other");
    assert_true(pc_run_labels_hash(&labels) != pc_run_labels_hash(&other));
    pc_run_row relabelled = row;
    pc_run_row_relabel(&spec, &other, &relabelled);
    assert_string_equal(relabelled.kind, "h100 other zero-1");
    assert_string_not_equal(relabelled.iteration_basis, row.iteration_basis);
    pc_interval_kind kind = pc_interval_kind_of(&spec, "other");
    assert_string_equal(relabelled.iteration_basis, pc_interval_find(PC_INTERVAL_TIME, &kind)->basis);
    pc_run_row_relabel(&spec, &labels, &relabelled);
    assert_memory_equal(&relabelled, &row, sizeof row);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fall_back),
        cmocka_unit_test(test_low_precision_is_unknown),
        cmocka_unit_test(test_programs_have_memory),
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_beyond),
        cmocka_unit_test(test_library),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_without),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_tuned),
        cmocka_unit_test(test_software_is_a_label),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
