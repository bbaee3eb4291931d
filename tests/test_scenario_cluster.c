/* The scenario loader: runs on a cluster, sweeps of them, what a table says above its rows. */
#include "models/schedule/generate.h"
#include "results/row.h"
#include "scenarios/library.h"
#include "tests/scenario_files.h"

#include <inttypes.h>
#include <math.h>

static pc_scenario *load_cluster(void) {
    char path[PATH_SIZE];
    data_path("good/cluster.yaml", path);
    return load_with(path, NULL, 0);
}

/* ---- what a setting means ---- */

/* 16 GPUs, all of them replicas; 64 sequences of the model's file on 16 replicas are 4 microbatches. */
static void test_defaults(void **state) {
    (void)state;
    pc_scenario *scenario = load_cluster();
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_labels labels = labels_of(scenario, 0);
    const pc_iteration_spec *s = &spec.iteration, usual = pc_iteration_spec_default();
    assert_true(spec.is_cluster && spec.infeasible[0] == '\0');
    assert_string_equal(labels.name, "plain.1f1b");
    assert_string_equal(labels.model, "tiny");
    assert_int_equal(spec.gpus, 16);
    assert_int_equal(spec.devices, 1);
    assert_int_equal(spec.microbatches, 4);
    assert_int_equal(s->cut.tp, 1);
    assert_int_equal(s->cut.pp, 1);
    assert_int_equal(s->cut.dp, 16);
    assert_int_equal(s->cut.chunks, 1);
    assert_int_equal(s->cut.zero, 1);
    assert_int_equal(s->cut.recompute, PC_RECOMPUTE_NONE);
    assert_int_equal(s->cut.layout, PC_CUT_EVEN);
    assert_int_equal(s->cut.microbatch_size, 1);
    assert_int_equal(s->cut.microbatches, 4);
    assert_int_equal(s->cut.seq_len, 128);
    assert_false(s->cut.sequence_parallel); /* there is nothing to cut it over */
    assert_ptr_equal(s->generator, pc_generator_find("1f1b"));
    assert_int_equal(s->overlaps_p2p, usual.overlaps_p2p);
    assert_int_equal(s->overlaps_tp, usual.overlaps_tp);
    assert_int_equal(s->overlaps_gradients, usual.overlaps_gradients);
    assert_int_equal(s->scatters_boundary, usual.scatters_boundary);
    assert_int_equal(s->network, usual.network);
    assert_int_equal(s->step, usual.step);
    assert_memory_equal(&s->order, &usual.order, sizeof usual.order);
    assert_int_equal(s->memory_limit_bytes, PC_NO_LIMIT);
    const pc_model *m = &s->model;
    assert_int_equal(m->layers, 8);
    assert_int_equal(m->ffn_hidden, 256);
    assert_int_equal(m->kv_heads, 4);
    assert_int_equal(m->head_dim, 16);
    assert_int_equal(m->vocab_multiple, 128);
    assert_int_equal(m->max_positions, 128);
    assert_true(m->is_tied && m->has_bias && m->has_dropout);
    assert_int_equal(m->attention, PC_ATTENTION_FLASH);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

static void test_every_key(void **state) {
    (void)state;
    pc_scenario *scenario = load_cluster();
    pc_run_spec spec = spec_of(scenario, 1);
    pc_run_labels labels = labels_of(scenario, 1);
    const pc_iteration_spec *s = &spec.iteration;
    const pc_model *m = &s->model;
    static const int32_t layers[] = {1, 2, 3, 1, 2, 3};
    assert_string_equal(labels.model, "Tiny!");
    assert_true(m->layers == 12 && m->hidden == 64 && m->ffn_hidden == 128 && m->heads == 4 && m->kv_heads == 2);
    assert_true(m->head_dim == 32 && m->vocab == 2000 && m->vocab_multiple == 64 && m->max_positions == 512);
    assert_true(m->positions == PC_POSITIONS_ROTARY && m->norm == PC_NORM_RMS && m->mlp == PC_MLP_SWIGLU);
    assert_true(m->attention == PC_ATTENTION_MATERIALISED && m->precision == PC_PRECISION_FP16);
    assert_false(m->is_tied || m->has_bias || m->has_dropout);
    assert_true(s->cut.tp == 2 && s->cut.pp == 3 && s->cut.dp == 1 && s->cut.chunks == 2 && s->cut.zero == 3);
    assert_true(s->cut.microbatch_size == 2 && s->cut.microbatches == 6 && s->cut.seq_len == 256);
    assert_true(s->cut.recompute == PC_RECOMPUTE_SELECTIVE && !s->cut.sequence_parallel);
    assert_true(s->cut.cross_entropy == PC_CROSS_ENTROPY_CHUNKED && s->cut.cross_entropy_chunks == 3);
    assert_int_equal(s->cut.layout, PC_CUT_LISTED);
    assert_memory_equal(s->cut.layers_of_part, layers, sizeof layers);
    assert_ptr_equal(s->generator, pc_generator_find("1f1b-interleaved"));
    static const pc_axis order[] = {PC_AXIS_PP, PC_AXIS_TP, PC_AXIS_CP, PC_AXIS_DP};
    assert_memory_equal(s->order.axis, order, sizeof order);
    assert_true(!s->overlaps_p2p && s->overlaps_tp && !s->overlaps_gradients && !s->overlaps_parameters);
    assert_true(!s->scatters_boundary && s->bucket_bytes == 1 << 20 && s->cut.gradient_bytes == 2 &&
                s->step == PC_STEP_POST_VALIDATION);
    assert_true(s->granularity == PC_GRANULARITY_OPERATIONS && s->network == PC_NETWORK_FLOWS);
    assert_true(s->pass_overhead == 0.25 && s->overhead_ps == 3 * MS && s->memory_limit_bytes == INT64_C(10) << 30);
    assert_true(!s->expands && s->jitter == 0 && s->seed == 0 && spec.trace);
    pc_run_spec_free(&spec);
    spec = spec_of(scenario, 2);
    labels = labels_of(scenario, 2);
    assert_true(s->expands && s->jitter == 0.05 && s->seed == 7 && !spec.trace);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* Of gpus, tp, pp and dp any three say the fourth; where several are left, dp follows and the rest are 1. */
static void test_what_follows_from_gpus(void **state) {
    (void)state;
    test_random random = {3};
    for (long i = 0; i < test_cases(200, 1000); i++) {
        int64_t tp = test_between(&random, 1, 9), pp = test_between(&random, 1, 9), dp = test_between(&random, 1, 9);
        int given = (int)test_between(&random, 0, 15); /* bits: gpus, tp, pp, dp */
        bool has_gpus = given & 1, has_tp = given & 2, has_pp = given & 4, has_dp = given & 8;
        int missing = !has_tp + !has_pp + !has_dp;
        if (!has_tp && (!has_gpus || missing > 1)) tp = 1;
        if (!has_pp && (!has_gpus || (missing > 1 && !has_dp))) pp = 1;
        if (!has_dp && !has_gpus) dp = 1;
        char set[4][40];
        const char *sets[8] = {"setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100", "setting.microbatches=3"};
        const int64_t values[] = {tp * pp * dp, tp, pp, dp};
        static const char *const keys[] = {"gpus", "tp", "pp", "dp"};
        int count = 3;
        for (int k = 0; k < 4; k++) {
            snprintf(set[k], sizeof set[k], "setting.%s=%" PRId64, keys[k], values[k]);
            if (given >> k & 1) sets[count++] = set[k];
        }
        pc_scenario *scenario = load_with(NULL, sets, count);
        pc_run_spec spec = spec_of(scenario, 0);
        assert_int_equal(spec.iteration.cut.tp, tp);
        assert_int_equal(spec.iteration.cut.pp, pp);
        assert_int_equal(spec.iteration.cut.dp, dp);
        assert_int_equal(spec.gpus, tp * pp * dp);
        assert_int_equal(spec.iteration.cut.microbatches, 3);
        pc_run_spec_free(&spec);
        pc_scenario_free(scenario);
    }
}

/* The library's batch, or one's own; a later key of the two replaces the earlier. */
static void test_batches(void **state) {
    (void)state;
    static const struct {
        const char *set[2];
        int64_t microbatches;
    } cases[] = {{{"setting.dp=4", "setting.tp=1"}, 128},
                 {{"setting.dp=4", "setting.microbatch_size=8"}, 16},
                 {{"setting.global_batch=24", "setting.dp=3"}, 8},
                 {{"setting.global_batch=24", "setting.microbatches=7"}, 7},
                 {{"setting.microbatches=7", "setting.global_batch=24"}, 24}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const sets[] = {"setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100", cases[i].set[0],
                                    cases[i].set[1]};
        pc_scenario *scenario = load_with(NULL, sets, 4);
        pc_run_spec spec = spec_of(scenario, 0);
        assert_int_equal(spec.microbatches, cases[i].microbatches);
        pc_run_spec_free(&spec);
        pc_scenario_free(scenario);
    }
}

static void test_published_on_a_cluster(void **state) {
    (void)state;
    char path[PATH_SIZE];
    static const char *const other = "setting.tp=2";
    pc_scenario *scenario = load_cluster();
    pc_run_spec spec = spec_of(scenario, 2);
    pc_run_labels labels = labels_of(scenario, 2);
    assert_true(labels.published_mfu == 0.5 && labels.published_tflops_per_gpu == 150);
    assert_true(labels.published_hardware_tflops_per_gpu == 200 && labels.published_activation_gib == 3);
    assert_true(labels.published_iteration_s == 2 && isnan(labels.published_bubble_rate_span));
    assert_true(labels.published_pass_f_s == 4e-3 && labels.published_memory_gib == 7 &&
                labels.published_best_mfu == 0.625);
    assert_int_equal(spec.iteration.cut.dp, 2);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    /* The same recomputation, said again, is what was published; another, or another cut, is not. */
    data_path("good/cluster.yaml", path);
    static const char *const same[] = {"setting.recompute=none"}, *const more[] = {"setting.recompute=full"};
    for (int i = 0; i < 2; i++) {
        scenario = load_with(path, i ? more : same, 1);
        spec = spec_of(scenario, 2);
        labels = labels_of(scenario, 2);
        assert_int_equal(isnan(labels.published_mfu) != 0, i);
        pc_run_spec_free(&spec);
        pc_scenario_free(scenario);
    }
    const char *const sets[] = {
        other, "setting.pp=2", "setting.gpus=16", "setting.dp=4", "setting.model.layout=even", "setting.schedule=1f1b"};
    scenario = load_with(path, sets, 6);
    spec = spec_of(scenario, 2);
    labels = labels_of(scenario, 2);
    assert_true(isnan(labels.published_mfu) && isnan(labels.published_activation_gib));
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* ---- sweeps ---- */

static void test_swept_names(void **state) {
    (void)state;
    static const char *const sets[] = {"sweep.model=[gpt3-1.3b, llama3-8b]",
                                       "sweep.machine=[dgx-a100, dgx-h100]",
                                       "sweep.gpus=[64, 128]",
                                       "sweep.tp=[1, 2]",
                                       "sweep.pp=[2, 4]",
                                       "sweep.seq_len=[1024, 2048]",
                                       "sweep.microbatch_size=[1, 2]",
                                       "sweep.global_batch=[128, 256]",
                                       "sweep.zero=[0, 1]",
                                       "sweep.recompute=[none, full]",
                                       "sweep.schedule=[1f1b, gpipe]"};
    pc_scenario *scenario = load_with(NULL, sets, 11);
    assert_int_equal(pc_scenario_run_count(scenario), 1 << 11);
    pc_run_spec first = spec_of(scenario, 0), last = spec_of(scenario, (1 << 11) - 1);
    const pc_run_labels of_first = labels_of(scenario, 0), of_last = labels_of(scenario, (1 << 11) - 1);
    assert_string_equal(of_first.name, "flags.1f1b.gpt3-1.3b.dgx-a100.g64.tp1.pp2.s1024.b1.gb128.z0.recompute-none");
    assert_string_equal(of_last.name, "flags.gpipe.llama3-8b.dgx-h100.g128.tp2.pp4.s2048.b2.gb256.z1.recompute-full");
    assert_string_equal(of_last.model, "llama3-8b");
    assert_string_equal(of_last.machine, "dgx-h100");
    assert_true(last.iteration.cut.tp == 2 && last.iteration.cut.pp == 4 && last.iteration.cut.dp == 16);
    assert_true(last.iteration.cut.seq_len == 2048 && last.iteration.cut.zero == 1);
    assert_true(last.iteration.cut.microbatch_size == 2 && last.iteration.cut.microbatches == 8);
    assert_int_equal(last.iteration.cut.recompute, PC_RECOMPUTE_FULL);
    pc_run_spec_free(&first);
    pc_run_spec_free(&last);
    pc_scenario_free(scenario);
}

/* Alone, a contradiction is an error; in a sweep it is a run that has no result. */
static void test_contradictions_in_a_sweep(void **state) {
    (void)state;
    const char *sets[] = {"setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100", "setting.gpus=12",
                          "sweep.tp=[1, 2, 5]"};
    pc_scenario *scenario = load_with(NULL, sets, 4);
    for (int i = 0; i < 3; i++) {
        pc_run_spec spec = spec_of(scenario, i);
        assert_true(spec.is_cluster);
        if (i == 2)
            assert_starts(spec.infeasible, "gpus: 12 GPUs for tp 5 x pp 1 x dp 1, of which dp is to follow");
        else
            assert_starts(spec.infeasible, "global_batch: 512 sequences do not divide into");
        pc_run_spec_free(&spec);
    }
    pc_scenario_free(scenario);
    sets[3] = "sweep.tp=[5]";
    assert_starts(message_of(NULL, sets, 4), "--set setting.gpus=12: setting.gpus: 12 GPUs for tp 5");
    sets[3] = "sweep.schedule=[1f1b, gpipe]"; /* which is to blame for nothing */
    assert_starts(message_of(NULL, sets, 4), "options: setting.global_batch: 512 sequences do not divide");
}

/* A word for all parts, or one each; neither more nor fewer. */
static void test_recomputation_by_part(void **state) {
    (void)state;
    const char *sets[] = {"setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100", "setting.pp=4",
                          "setting.microbatches=8", "setting.recompute=full, none,selective,full"};
    static const pc_recomputation expected[] = {{.kind = PC_RECOMPUTE_FULL},
                                                {.kind = PC_RECOMPUTE_NONE},
                                                {.kind = PC_RECOMPUTE_SELECTIVE},
                                                {.kind = PC_RECOMPUTE_FULL}};
    pc_scenario *scenario = load_with(NULL, sets, 5);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_row row;
    pc_run_detail detail;
    assert_memory_equal(spec.iteration.cut.recompute_of_part, expected, sizeof expected);
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_OK);
    assert_int_equal(row.status, PC_RUN_OK);
    assert_string_equal(row.recompute, "mixed");
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    sets[4] = "setting.recompute=selective";
    scenario = load_with(NULL, sets, 5);
    spec = spec_of(scenario, 0);
    assert_null(spec.iteration.cut.recompute_of_part);
    assert_int_equal(spec.iteration.cut.recompute, PC_RECOMPUTE_SELECTIVE);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    sets[4] = "setting.recompute=full,none,full";
    assert_starts(message_of(NULL, sets, 5),
                  "--set setting.recompute=full,none,full: setting.recompute: 3 words for 4 devices x 1 chunks");
    sets[4] = "setting.recompute=full,all";
    assert_starts(
        message_of(NULL, sets, 5),
        "--set setting.recompute=full,all: setting.recompute: full,all: unknown recomputation; expected none");
    sets[4] = "setting.recompute=full,";
    assert_starts(message_of(NULL, sets, 5), "--set setting.recompute=full,: setting.recompute: full,: unknown");
}

static pc_part part_said(const char *const *sets, char label[PC_LABEL_SIZE]) {
    pc_scenario *scenario = load_with(NULL, sets, 5);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_row row;
    pc_run_detail detail;
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_OK);
    assert_int_equal(row.status, PC_RUN_OK);
    snprintf(label, PC_LABEL_SIZE, "%s", row.recompute);
    pc_part part = pc_cut_part(&spec.iteration.model, &spec.iteration.cut, 4, 2);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    return part;
}

/* Names with a number, one for all parts that have one; at most a part's layers, 6 of 24 on 4 stages. In a sweep each
 * is a run, and rows say what they were asked. */
static void test_recomputation_of_some_layers(void **state) {
    (void)state;
    const char *sets[] = {"setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100", "setting.pp=4",
                          "setting.microbatches=8", "setting.recompute=full-block-2"};
    char label[PC_LABEL_SIZE];
    pc_part part = part_said(sets, label);
    assert_true(part.recompute == PC_RECOMPUTE_BLOCK && part.recompute_layers == 2);
    assert_string_equal(label, "full-block-2");
    sets[4] = "setting.recompute=selective-3,none,selective-3, selective-op";
    part = part_said(sets, label);
    assert_true(part.recompute == PC_RECOMPUTE_EVERY && part.recompute_layers == 3);
    assert_string_equal(label, "mixed");
    sets[4] = "setting.recompute=save_dot_with_context_except_mlp";
    part = part_said(sets, label);
    assert_true(part.recompute == PC_RECOMPUTE_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP && part.recompute_layers == 0);
    assert_string_equal(label, "save_dot_with_context_except_mlp");
    sets[4] = "sweep.recompute=[full-uniform-2, selective-op]";
    pc_scenario *scenario = load_with(NULL, sets, 5);
    assert_int_equal(pc_scenario_run_count(scenario), 2);
    pc_run_spec spec = spec_of(scenario, 0);
    assert_true(spec.iteration.cut.recompute == PC_RECOMPUTE_UNIFORM && spec.iteration.cut.recompute_layers == 2);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    static const char *const unknown[] = {"full-block-0",  "full-block-",   "full-block-02",    "full-uniform-65536",
                                          "selective-ops", "selective:moes", "minimal_offloaded"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        char set[96], expected[192];
        snprintf(set, sizeof set, "setting.recompute=%s", unknown[i]);
        snprintf(expected, sizeof expected, "--set %s: setting.recompute: %s: unknown recomputation", set, unknown[i]);
        sets[4] = set;
        assert_starts(message_of(NULL, sets, 5), expected);
    }
    sets[4] = "setting.recompute=full-block-7";
    scenario = load_with(NULL, sets, 5);
    spec = spec_of(scenario, 0);
    pc_run_row row;
    pc_run_detail detail;
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_OK);
    assert_int_equal(row.status, PC_RUN_INFEASIBLE);
    assert_string_equal(row.message, "recompute full-block-7 with 6 layers a part of the model at most; expected a "
                                     "number from 1 to it, or full");
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* A set takes away what the file sweeps under its key, or under the key that says the same. */
static void test_sets_take_sweeps_away(void **state) {
    (void)state;
    static const char text[] = "scenario: x\nsetting: {model: {from: gpt3-1.3b}, machine: dgx-a100}\n"
                               "sweep: {devices: [2, 4], microbatches: [8, 16]}\n";
    static const char *const sets[] = {"setting.pp=8", "setting.global_batch=32"};
    write_temporary(text, strlen(text));
    for (int count = 0; count <= 2; count++) {
        pc_scenario *scenario = load_with(temporary, sets, count);
        assert_int_equal(pc_scenario_run_count(scenario), 4 >> count);
        pc_run_spec spec = spec_of(scenario, 0);
        assert_int_equal(spec.devices, count ? 8 : 2);
        assert_int_equal(spec.microbatches, count == 2 ? 32 : 8);
        pc_run_spec_free(&spec);
        pc_scenario_free(scenario);
    }
}

/* What was run without a file can be read in the results. */
static void test_text_of_options(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100"};
    size_t size;
    pc_scenario *scenario = load_with(NULL, sets, 2);
    const char *text = pc_scenario_text(scenario, &size);
    assert_string_equal(text,
                        "scenario: flags\n# --set setting.model.from=gpt3-1.3b\n# --set setting.machine=dgx-a100\n");
    assert_int_equal(strlen(text), size);
    assert_string_equal(pc_scenario_name(scenario), "flags");
    pc_scenario_free(scenario);
}

/* ---- what a table says above its rows ---- */

#define DIMENSIONS "layers: 2, hidden: 64, heads: 4, vocab: 128, seq_len: 32, global_batch: 4"

/* Of six traits in which GPT and Llama differ, those that nobody gives; once for each model that differs. */
static void test_assumed(void **state) {
    (void)state;
    static const char all[] = "positions learned, tied true, bias true, dropout true, norm layernorm, mlp gelu";
    static const struct {
        const char *text;
        int count;
        const char *model, *keys; /* of the last */
    } cases[] = {
        {"setting: {machine: dgx-a100, model: {" DIMENSIONS "}}\n", 1, "", all},
        {"setting: {machine: dgx-a100, model: {name: own, " DIMENSIONS ", tied: false, norm: layernorm}}\n", 1, "own",
         "positions learned, bias true, dropout true, mlp gelu"},
        {"setting: {machine: dgx-a100, model: {" DIMENSIONS ", positions: learned, tied: true, bias: true, "
         "dropout: true, norm: layernorm, mlp: gelu}}\n",
         0, NULL, NULL},
        {"setting: {machine: dgx-a100}\ncases:\n  - {name: a, model: {" DIMENSIONS "}}\n"
         "  - {name: b, model: {" DIMENSIONS "}}\n  - {name: c, model: {name: other, " DIMENSIONS ", mlp: gelu}}\n"
         "  - {name: d, model: {from: llama3-8b, global_batch: 4}}\n",
         2, "other", "positions learned, tied true, bias true, dropout true, norm layernorm"},
        {"setting: {schedule: 1f1b, devices: 2, microbatches: 4, times: {F: 1 ms, BW: 2 ms}, model: {name: label}}\n",
         0, NULL, NULL},
        {"setting: {machine: dgx-a100, global_batch: 64}\nsweep: {model: [llama3-8b, gpt3-1.3b]}\n", 0, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        pc_model_assumed list[PC_ASSUMED_MAX];
        snprintf(text, sizeof text, "scenario: x\n%s", cases[i].text);
        pc_scenario *scenario = load_text(text);
        int count = pc_scenario_assumed(scenario, list);
        assert_int_equal(count, cases[i].count);
        if (count > 0) assert_string_equal(list[count - 1].model, cases[i].model);
        if (count > 0) assert_string_equal(list[count - 1].keys, cases[i].keys);
        pc_scenario_free(scenario);
    }
}

/* Models of the library say everything themselves. */
static void test_library_assumes_nothing(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MODELS, &count);
    for (int i = 0; i < count; i++) {
        char from[128];
        pc_model_assumed list[PC_ASSUMED_MAX];
        snprintf(from, sizeof from, "setting.model.from=%s", files[i].name);
        const char *sets[] = {from, "setting.machine=dgx-a100", "setting.microbatches=1"};
        pc_scenario *scenario = load_with(NULL, sets, 3);
        if (pc_scenario_assumed(scenario, list) > 0) fail_msg("%s: %s", files[i].name, list[0].keys);
        pc_scenario_free(scenario);
    }
}

/* Several models than there is room for are cut off. */
static void test_many_assume(void **state) {
    (void)state;
    char text[4096];
    pc_model_assumed list[PC_ASSUMED_MAX];
    int used =
        snprintf(text, sizeof text, "scenario: x\nsetting: {machine: dgx-a100, model: {" DIMENSIONS "}}\ncases:\n");
    for (int i = 0; i < PC_ASSUMED_MAX + 2; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "  - {name: c%d, model: {name: m%d}}\n", i, i);
    pc_scenario *scenario = load_text(text);
    assert_int_equal(pc_scenario_assumed(scenario, list), PC_ASSUMED_MAX);
    assert_string_equal(list[PC_ASSUMED_MAX - 1].model, "m3");
    pc_scenario_free(scenario);
}

/* What is swept over one value alone is the same in all runs; of cases the names say more. */
static void test_only_sweeps(void **state) {
    (void)state;
    const char *columns[PC_SCENARIO_SWEPT_MAX];
    int count;
    pc_scenario *scenario = load_text("scenario: x\nsetting: {model: {from: gpt3-1.3b}, machine: dgx-a100}\n"
                                      "sweep: {tp: [1, 2], devices: [1, 2], chunks: [2, 4], zero: [1], "
                                      "schedule: [1f1b, gpipe]}\n");
    assert_true(pc_scenario_only_sweeps(scenario, columns, &count));
    assert_int_equal(count, 4);
    assert_string_equal(columns[0], "tp");
    assert_string_equal(columns[1], "pp");
    assert_string_equal(columns[2], "virtual_pp");
    assert_string_equal(columns[3], "schedule");
    pc_scenario_free(scenario);
    scenario = load_text("scenario: x\nsetting: {model: {from: gpt3-1.3b}, machine: dgx-a100}\n"
                         "cases: [{name: a, tp: 1}, {name: b, tp: 2}]\n");
    assert_false(pc_scenario_only_sweeps(scenario, columns, &count));
    pc_scenario_free(scenario);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assumed),
        cmocka_unit_test(test_library_assumes_nothing),
        cmocka_unit_test(test_many_assume),
        cmocka_unit_test(test_only_sweeps),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_key),
        cmocka_unit_test(test_what_follows_from_gpus),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_published_on_a_cluster),
        cmocka_unit_test(test_swept_names),
        cmocka_unit_test(test_contradictions_in_a_sweep),
        cmocka_unit_test(test_recomputation_by_part),
        cmocka_unit_test(test_recomputation_of_some_layers),
        cmocka_unit_test(test_sets_take_sweeps_away),
        cmocka_unit_test(test_text_of_options),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
