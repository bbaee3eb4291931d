#include "tests/scenario_files.h"

#include <unistd.h>

const char *const base = "scenario: base\n"
                         "setting:\n"
                         "  schedule: 1f1b\n"
                         "  devices: 4\n"
                         "  microbatches: 8\n"
                         "  times: {F: 1 ms, B: 1 ms, W: 1 ms}\n";

const char *source_root(void) {
    const char *root = getenv("PC_SOURCE_ROOT");
    return root ? root : ".";
}

void data_path(const char *name, char *path) {
    snprintf(path, PATH_SIZE, "%s/tests/data/scenarios/%s", source_root(), name);
}

char temporary[128];

int make_temporary(void **state) {
    (void)state;
    test_temporary(temporary, sizeof temporary, "pipecast-scenario");
    int file = mkstemp(temporary);
    if (file < 0) return -1;
    return close(file);
}

int remove_temporary(void **state) {
    (void)state;
    return unlink(temporary);
}

void write_temporary(const char *text, size_t size) {
    FILE *file = fopen(temporary, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

pc_scenario *load_with(const char *path, const char *const *sets, int set_count) {
    pc_error error;
    pc_scenario *scenario = NULL;
    if (pc_scenario_load(path, sets, set_count, &scenario, &error)) fail_msg("%s", error.message);
    return scenario;
}

pc_scenario *load_text(const char *text) {
    write_temporary(text, strlen(text));
    return load_with(temporary, NULL, 0);
}

pc_run_spec spec_of(const pc_scenario *scenario, int64_t index) {
    pc_error error;
    pc_run_spec spec;
    pc_run_labels labels;
    if (pc_scenario_run_spec(scenario, index, &spec, &labels, &error)) fail_msg("%s", error.message);
    return spec;
}

pc_run_labels labels_of(const pc_scenario *scenario, int64_t index) {
    pc_error error;
    pc_run_spec spec;
    pc_run_labels labels;
    if (pc_scenario_run_spec(scenario, index, &spec, &labels, &error)) fail_msg("%s", error.message);
    pc_run_spec_free(&spec);
    return labels;
}

const char *message_of(const char *path, const char *const *sets, int set_count) {
    static pc_error error;
    pc_scenario *const mark = (pc_scenario *)&error, *scenario = mark;
    pc_code code = pc_scenario_load(path, sets, set_count, &scenario, &error);
    if (code == PC_OK) fail_msg("%s was loaded", path);
    assert_int_equal(code, PC_ERROR_INPUT);
    assert_int_equal(error.code, code);
    assert_ptr_equal(scenario, mark);
    assert_null(strchr(error.message, '\n'));
    /* Nobody has to ask for a message. */
    assert_int_equal(pc_scenario_load(path, sets, set_count, &scenario, NULL), PC_ERROR_INPUT);
    return error.message;
}

void assert_starts(const char *text, const char *start) {
    if (strncmp(text, start, strlen(start)) != 0) fail_msg("\n    got %s\n    not %s", text, start);
}
