/* What scenarios are made of: the library of models and machines, files of one's own. */
#include "scenarios/library.h"
#include "tests/scenario_files.h"

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
        assert_true(count >= 1);
        for (int i = 0; i < count; i++) {
            assert_ptr_equal(pc_library_find(kind, files[i].name), &files[i]);
            assert_true(i == 0 || strcmp(files[i - 1].name, files[i].name) < 0);
            const char *source = kind == PC_LIBRARY_PROFILES ? "\norigin," : "\nsource: ";
            assert_non_null(strstr(files[i].text, source)); /* every number has one */
        }
        assert_null(pc_library_find(kind, "nothing"));
        assert_null(pc_library_find(kind, ""));
    }
}

/* Every model loads, is called as its file, and says how long its sequences usually are. */
static void test_library_models(void **state) {
    (void)state;
    int count;
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MODELS, &count);
    for (int i = 0; i < count; i++) {
        pc_library_model m;
        pc_error error;
        if (pc_library_load_model(files[i].name, &m, &error)) fail_msg("%s", error.message);
        assert_string_equal(m.model.name, files[i].name);
        assert_true(strlen(m.title) > 0 && m.seq_len > 0 && m.global_batch != 0);
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
        {"model", "model: m\nmlp: rellu\n",
         ":2: mlp: rellu: unknown word (did you mean relu?); expected one of gelu, swiglu"},
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
    for (long i = 0; i < test_cases(300, 1500); i++) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library_is_whole),     cmocka_unit_test(test_library_models),
        cmocka_unit_test(test_library_machines),     cmocka_unit_test(test_library_is_the_folder),
        cmocka_unit_test(test_unknown_names),        cmocka_unit_test(test_own_machine),
        cmocka_unit_test(test_machine_from_another), cmocka_unit_test(test_bad_parts),
        cmocka_unit_test(test_damaged_parts),        cmocka_unit_test(test_where_paths_count_from),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
