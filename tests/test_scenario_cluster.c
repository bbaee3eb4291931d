/* The scenario loader: runs on a cluster, the library of models and machines, files of one's own. */
#include "models/schedule/generate.h"
#include "results/row.h"
#include "scenarios/library.h"
#include "tests/scenario_files.h"

#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static pc_scenario *load_cluster(void) {
    char path[PATH_SIZE];
    data_path("good/cluster.yaml", path);
    return load_with(path, NULL, 0);
}

/* ---- the library ---- */

static void test_library_is_whole(void **state) {
    (void)state;
    int count;
    for (pc_library_kind kind = 0; kind < PC_LIBRARY_KINDS; kind++) {
        const pc_library_file *files = pc_library_files(kind, &count);
        assert_true(count >= 3);
        for (int i = 0; i < count; i++) {
            assert_ptr_equal(pc_library_find(kind, files[i].name), &files[i]);
            assert_true(i == 0 || strcmp(files[i - 1].name, files[i].name) < 0);
            assert_non_null(strstr(files[i].text, "\nsource: ")); /* every number has one */
        }
        assert_null(pc_library_find(kind, "nothing"));
        assert_null(pc_library_find(kind, ""));
    }
}

/* Every model loads, is called as its file, and says what it is usually trained with. */
static void test_library_models(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MODELS, &count);
    for (int i = 0; i < count; i++) {
        pc_library_model m;
        pc_error error;
        if (pc_library_load_model(files[i].name, &m, &error)) fail_msg("%s", error.message);
        assert_string_equal(m.model.name, files[i].name);
        assert_true(strlen(m.title) > 0 && m.seq_len > 0 && m.global_batch > 0);
        assert_int_equal(pc_model_check(&m.model, NULL), PC_OK);
    }
}

static void test_library_machines(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MACHINES, &count);
    for (int i = 0; i < count; i++) {
        pc_library_machine m;
        pc_error error;
        if (pc_library_load_machine(files[i].name, &m, &error)) fail_msg("%s", error.message);
        assert_string_equal(m.machine.name, files[i].name);
        assert_true(strlen(m.title) > 0 && strlen(m.machine.gpu.name) > 0);
        assert_non_null(pc_library_find(PC_LIBRARY_GPUS, m.machine.gpu.name));
        assert_int_equal(pc_machine_check(&m.machine, NULL), PC_OK);
    }
}

/* What is built in is what lies in the folder, byte for byte. */
static void test_library_is_the_folder(void **state) {
    (void)state;
    char path[PATH_SIZE], text[65536];
    const pc_library_file *file = pc_library_find(PC_LIBRARY_MODELS, "gpt3-175b");
    snprintf(path, sizeof path, "%s/scenarios/models/gpt3-175b.yaml", source_root());
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    size_t size = fread(text, 1, sizeof text - 1, stream);
    fclose(stream);
    text[size] = '\0';
    assert_non_null(file);
    assert_string_equal(file->text, text);
}

static void test_unknown_names(void **state) {
    (void)state;
    pc_library_model model;
    pc_library_machine machine;
    pc_error error;
    assert_int_equal(pc_library_load_model("lama3-70b", &model, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message,
                        "lama3-70b: no such model in the library (did you mean llama3-70b?); expected one "
                        "of `pipecast list models`, or a file such as ./own.yaml");
    assert_int_equal(pc_library_load_machine("my computer", &machine, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "my computer: no such machine in the library; expected one of `pipecast list "
                                       "machines`, or a file such as ./own.yaml");
    assert_int_equal(pc_library_load_machine("/dev/zero", &machine, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message,
                        "/dev/zero: is no regular file; expected a machine file (YAML) of at most 4 MiB");
}

/* ---- files of one's own ---- */

static void test_own_machine(void **state) {
    (void)state;
    pc_scenario *scenario = load_cluster();
    pc_run_spec spec = spec_of(scenario, 0);
    const pc_machine *m = &spec.iteration.machine;
    assert_string_equal(m->name, "own machine");
    assert_string_equal(m->gpu.name, "own-gpu");
    assert_true(m->gpu.matrix_flops_per_s == 100e12 && m->gpu.vector_flops_per_s == 10e12);
    assert_true(m->gpu.memory_bytes_per_s == 1000e9);
    assert_int_equal(m->gpu.memory_bytes, INT64_C(16) << 30);
    assert_int_equal(m->gpu.memory_reserved_bytes, 1 << 30);
    assert_int_equal(m->gpu.l2_bytes, 4 << 20);
    assert_int_equal(m->gpu.processors, 10);
    assert_int_equal(m->gpu.tile_m, 64);
    assert_int_equal(m->gpu.tile_n, 128);
    assert_true(m->gpu.gemm_efficiency == 0.75); /* the machine's, not the GPU's */
    assert_true(m->gpu.gemm_ramp_k == 10 && m->gpu.attention_efficiency == 0.25 && m->gpu.attention_backward == 2);
    assert_true(m->gpu.memory_efficiency == 0.75 && m->gpu.estimated_error == 0.2);
    assert_true(m->gpu.kernel_s == 2e-6 && m->gpu.launch_s == 1e-6);
    assert_int_equal(m->gpus_per_node, 4);
    assert_int_equal(m->domain_gpus, 2);
    assert_int_equal(m->nics_per_node, 2);
    assert_int_equal(m->nodes, 16);
    assert_true(m->domain.bandwidth_bytes_per_s == 50e9 && m->domain.efficiency == 0.5);
    assert_true(m->domain.latency_s == 2e-6 && m->domain.fast_latency_s == 1e-6 && m->domain.fast_efficiency == 0.125);
    assert_true(m->network.bandwidth_bytes_per_s == 10e9 && m->network.efficiency == 0.25);
    assert_true(m->network.latency_s == 4e-6 && m->network.fast_latency_s == 0);
    assert_int_equal(m->leaf_nodes, 8);
    assert_true(m->oversubscription == 2 && m->switch_latency_s == 500e-9 && m->collective_call_s == 6e-6);
    assert_true(m->reduces_in_switch && m->in_switch_efficiency == 0.375 && m->in_switch_latency_s == 5e-6);
    assert_true(m->nic_crossing_efficiency == 0.5 && m->speed_variation == 0.0625);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* A machine that stands on another has all of it but what it says itself. */
static void test_machine_from_another(void **state) {
    (void)state;
    pc_scenario *scenario = load_cluster();
    pc_run_spec first = spec_of(scenario, 0), second = spec_of(scenario, 1);
    pc_machine expected = first.iteration.machine, found = second.iteration.machine;
    memset(expected.name, 0, sizeof expected.name);
    strcpy(expected.name, "thinner");
    expected.oversubscription = 8;
    expected.network.bandwidth_bytes_per_s = 5e9;
    expected.gpu.kernel_s = 7e-6;
    assert_string_equal(found.name, expected.name);
    assert_memory_equal(&found.gpu, &expected.gpu, sizeof found.gpu);
    assert_memory_equal(&found.domain, &expected.domain, sizeof found.domain);
    assert_memory_equal(&found.network, &expected.network, sizeof found.network);
    assert_true(found.oversubscription == 8 && found.leaf_nodes == 8 && found.nodes == 16);
    pc_run_spec_free(&first);
    pc_run_spec_free(&second);
    pc_scenario_free(scenario);
}

/* Writes `text` into a file beside the temporary scenario, which then is on that machine or has that model; the message
 * about it. `name`: of that file, without its folder. */
static const char *message_about(bool is_model, const char *text, const char **name) {
    static char other[PATH_SIZE], scenario[3 * PATH_SIZE];
    snprintf(other, sizeof other, "%s.yaml", temporary);
    *name = strrchr(other, '/') + 1;
    FILE *file = fopen(other, "w");
    assert_non_null(file);
    fprintf(file, text, *name);
    fclose(file);
    snprintf(scenario, sizeof scenario, "scenario: x\nsetting:\n  model: {from: %s}\n  machine: %s\n",
             is_model ? *name : "gpt3-1.3b", is_model ? "dgx-a100" : *name);
    write_temporary(scenario, strlen(scenario));
    const char *message = message_of(temporary, NULL, 0);
    unlink(other);
    return message;
}

static void test_bad_parts(void **state) {
    (void)state;
    static const char gpu[] = "machine: m\ngpu: a100-sxm-80gb\ngpus_per_node: 8\ndomain_gpus: 8\nnics_per_node: 8\n"
                              "collective_call: 1 us\ndomain: {bandwidth: 1 GB/s, efficiency: 1, latency: 1 us}\n";
    static const struct {
        const char *key, *text, *message;
    } cases[] = {
        {"model", "model: m\nlayer: 8\n",
         ":2: layer: unknown key (did you mean layers?); expected one of model, title"},
        {"model", "layers: 8\n", ":1: model: missing; expected a value"},
        {"model", "model: m\nlayers: 0\n", ":2: layers: 0: out of range; expected a whole number from 1"},
        {"model", "model: m\nmlp: relu\n",
         ":2: mlp: relu: unknown word (did you mean gelu?); expected one of gelu, swiglu"},
        {"model", "model: m\nfrom: gpt3-1.3b\n", ":2: from: unknown key"},
        {"model", "", ":1: empty; expected"},
        {"machine", "machine: m\n", ":1: gpu: missing; expected the name of a GPU, or from, another machine"},
        {"machine", "machine: m\ngpu: a100\n",
         ":2: gpu: a100: no such GPU in the library (did you mean a100-sxm-40gb, a100-sxm-80gb or a100-pcie-80gb?); "
         "expected one of a100-"},
        {"machine", "machine: m\nfrom: nowhere\n", ":2: from: nowhere: no such machine in the library"},
        {"machine", "machine: m\nfrom: %s\n", ":2: from: "},
        {"machine", "machine: m\ngpu: a100-sxm-80gb\n", ":1: gpus_per_node: missing; expected a value"},
        {"machine", "machine: m\nfrom: dgx-a100\nnetwork: {bandwith: 1 GB/s}\n",
         ":3: network.bandwith: unknown key (did you mean bandwidth?); expected one of bandwidth, efficiency"},
        {"machine", "machine: m\nfrom: dgx-a100\nnetwork:\n  bandwidth: 1 GiB\n",
         ":4: network.bandwidth: 1 GiB: unknown unit 'GiB'; expected a bandwidth"},
        {"machine", "machine: m\nfrom: dgx-a100\nprofile: {tile: 128}\n",
         ":3: profile.tile: 128: no tile; expected rows x"},
        {"machine", "machine: m\nfrom: dgx-a100\nprofile: {gemm_efficiency: 1.5}\n",
         ":3: profile.gemm_efficiency: 1.5: out"},
        {"machine", "machine: m\nfrom: dgx-a100\nreduces_in_switch: maybe\n",
         ":3: reduces_in_switch: maybe: not a truth"},
        {"machine", "machine: m\nfrom: dgx-a100\ndomain_gpus: 3\n", ":1: machine: "}, /* as pc_machine_check says */
        {"machine", "machine: [m]\n", ":1: machine: is a list; expected a single value"},
        {"machine", gpu, ": network.bandwidth: missing; expected a value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name;
        bool is_model = strcmp(cases[i].key, "model") == 0;
        const char *message = message_about(is_model, cases[i].text, &name), *part = strstr(message, name);
        assert_starts(strchr(message, ':'), is_model ? ":3: setting.model.from: " : ":4: setting.machine: ");
        assert_non_null(part);
        if (!strstr(part, cases[i].message)) fail_msg("\n    got %s\n    not %s", message, cases[i].message);
    }
}

/* Bytes of a good file changed, cut out or put in: it loads or is refused with words, and nothing else happens. */
static void test_damaged_parts(void **state) {
    (void)state;
    static const struct {
        pc_library_kind kind;
        const char *name;
    } files[] = {{PC_LIBRARY_MODELS, "llama3-70b"}, {PC_LIBRARY_MACHINES, "dgx-h100"}, {PC_LIBRARY_GPUS, "h100-sxm"}};
    static const char alphabet[] = ":{}[],\n -#'\"0123456789.eE%&*!|>~GiBMus/x\t\x80\xff";
    test_random random = {11};
    char path[PATH_SIZE], machine[PATH_SIZE], text[8192];
    snprintf(path, sizeof path, "%s.yaml", temporary);
    snprintf(machine, sizeof machine, "%s-machine.yaml", temporary);
    FILE *file = fopen(machine, "w");
    assert_non_null(file);
    fprintf(file, "machine: m\nfrom: dgx-h100\ngpu: %s\n", path);
    fclose(file);
    for (long i = 0; i < test_cases(300); i++) {
        const pc_library_file *of = pc_library_find(files[i % 3].kind, files[i % 3].name);
        snprintf(text, sizeof text, "%s", of->text);
        for (int64_t k = test_between(&random, 1, 3); k > 0; k--)
            text[test_between(&random, 0, (int64_t)strlen(text) - 1)] =
                alphabet[test_between(&random, 0, sizeof alphabet - 2)];
        file = fopen(path, "w");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
        pc_library_model m;
        pc_library_machine c;
        pc_error error = {0};
        pc_code code = i % 3 ? pc_library_load_machine(i % 3 == 1 ? path : machine, &c, &error)
                             : pc_library_load_model(path, &m, &error);
        if (code) assert_true(code == PC_ERROR_INPUT && strlen(error.message) > 10);
    }
    unlink(path);
    unlink(machine);
}

/* A path in a set counts from where we are, one in a file from the file's folder. */
static void test_where_paths_count_from(void **state) {
    (void)state;
#define LONG                                                                                                           \
    "././././././././././././././././././././././././././././././././././././././././././././././././././././././././" \
    "././././././././"
    _Static_assert(sizeof LONG > PC_LABEL_SIZE, "a path may be longer than a label");
    char here[PATH_SIZE], folder[PATH_SIZE], path[PATH_SIZE];
    static const char *const sets[] = {"setting.machine=own-machine.yaml", "setting.model.from=" LONG "tiny.yaml",
                                       "setting.gpus=4"};
    assert_non_null(getcwd(here, sizeof here));
    data_path("good/parts", folder);
    assert_int_equal(chdir(folder), 0);
    pc_scenario *scenario = load_with(NULL, sets, 3);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_labels labels = labels_of(scenario, 0);
    assert_string_equal(labels.machine, "own machine");
    assert_string_equal(labels.model, "tiny");
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    assert_int_equal(chdir(here), 0);
    data_path("good/cluster.yaml", path);
    assert_starts(message_of(path, sets, 1),
                  "--set setting.machine=own-machine.yaml: setting.machine: own-machine.yaml: "
                  "No such file or directory; expected a machine file");
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
    assert_int_equal(s->memory_limit_bytes, 0);
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
    static const pc_axis order[] = {PC_AXIS_PP, PC_AXIS_TP, PC_AXIS_DP};
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
    for (long i = 0; i < test_cases(200); i++) {
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
    static const pc_recompute expected[] = {PC_RECOMPUTE_FULL, PC_RECOMPUTE_NONE, PC_RECOMPUTE_SELECTIVE,
                                            PC_RECOMPUTE_FULL};
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
        cmocka_unit_test(test_library_is_whole),
        cmocka_unit_test(test_library_models),
        cmocka_unit_test(test_library_machines),
        cmocka_unit_test(test_library_is_the_folder),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_own_machine),
        cmocka_unit_test(test_machine_from_another),
        cmocka_unit_test(test_bad_parts),
        cmocka_unit_test(test_damaged_parts),
        cmocka_unit_test(test_where_paths_count_from),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_key),
        cmocka_unit_test(test_what_follows_from_gpus),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_published_on_a_cluster),
        cmocka_unit_test(test_swept_names),
        cmocka_unit_test(test_contradictions_in_a_sweep),
        cmocka_unit_test(test_recomputation_by_part),
        cmocka_unit_test(test_sets_take_sweeps_away),
        cmocka_unit_test(test_text_of_options),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
