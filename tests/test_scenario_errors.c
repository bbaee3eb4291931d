/* The scenario loader: what bad files and bad --set are told, and that no file and no refused allocation makes it
 * crash, leak or take its time.
 *
 * Every file in data/scenarios/bad begins with "# expect: " and the beginning of the message that it must get, behind
 * the file's name and a colon. */
#include "engine/alloc.h"
#include "tests/scenario_files.h"

#include <dirent.h>
#include <unistd.h>

/* The temporary file holds `text`; its message begins with "FILE" and `start`. */
static void assert_refused(const char *text, size_t size, const char *start) {
    char expected[PATH_SIZE];
    write_temporary(text, size);
    snprintf(expected, sizeof expected, "%s%s", temporary, start);
    assert_starts(message_of(temporary, NULL, 0), expected);
}

static void assert_text_refused(const char *text, const char *start) {
    assert_refused(text, strlen(text), start);
}

/* ---- bad sets ---- */

static void test_bad_sets(void **state) {
    (void)state;
    static const struct {
        const char *set, *message;
    } cases[] = {
        {"setting.devices=0", ": setting.devices: 0: out of range; expected a whole number from 1 to 65536"},
        {"setting.times.F=12", ": setting.times.F: 12: no unit; expected a time"},
        {"setting.devcies=4", ": setting.devcies: unknown key (did you mean devices?); expected one of model, "},
        {"setting.stages=[{F: 1 ms, BW: 2 ms}]", ": setting.stages: 1 entries for 4 devices; expected one a device"},
        {"setting.times=3 ms", ": setting.times: is a single value; expected a mapping of F, "},
        {"sweep.devices=4", ": sweep.devices: is a single value; expected a list"},
        {"sweep.devices=[4, x]", ": sweep.devices[1]: x: not a whole number"},
        {"cases=[]", ": cases: unknown key; expected one of scenario, title, source, setting, sweep"},
        {"figures=[]", ": figures: unknown key; expected one of scenario, title, source, setting, sweep"},
        {"sweep.memory=[40 GiB, 40960 MiB]", ": sweep.memory[1]: the same as entry 0; expected values that differ"},
        {"setting.making=both",
         ": setting.making: both: unknown word; expected one of costs, equal, published, torch, megatron"},
        {"setting.schedule=2f2b", ": setting.schedule: 2f2b: unknown schedule; expected one of gpipe"},
        {"setting.devices=", ": setting.devices: empty; expected a whole number"},
        {"setting.devices=[4", ": not YAML: did not find expected ',' or ']'"},
        {"setting.devices=*x", ": an alias"},
        {"setting.devices=4\n  microbatches: 1", ": the value has a line break; expected one line"},
        {"setting.devices=4\r  microbatches: 1", ": the value has a line break; expected one line"},
        {"title=\"a\xc2\x85"
         "b\"",
         ": the value has a line break; expected one line"}, /* U+0085, next line */
        {"title=\"a\xe2\x80\xa8"
         "b\"",
         ": the value has a line break; expected one line"}, /* U+2028, line separator */
        {"setting.devices=4 #\xe2\x80\xa9", ": the value has a line break; expected one line"}, /* U+2029, paragraph */
        {"setting.devices", ": no KEY=VALUE; expected KEY=VALUE such as setting.microbatches=64"},
        {"", ": no KEY=VALUE"},
        {"=4", ": no KEY=VALUE"},
        {".devices=4", ": no KEY=VALUE"},
        {"setting..devices=4", ": no KEY=VALUE"},
        {"setting.=4", ": no KEY=VALUE"},
        {"setting. devices=4", ": no KEY=VALUE"},
        {"a: b=4", ": no KEY=VALUE"},
        {"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t=4", ": nested too deep"},
        {"scenario=a b", ": scenario: a b: not a name"},
    };
    write_temporary(base, strlen(base));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[PATH_SIZE];
        snprintf(expected, sizeof expected, "--set %s%s", cases[i].set, cases[i].message);
        pc_error_make_plain(expected);
        assert_starts(message_of(temporary, &cases[i].set, 1), expected);
    }
    const char *layers = "setting.model.layers=3";
    assert_non_null(
        strstr(message_of(temporary, &layers, 1), ":4: setting.devices: 4 devices x 1 chunks are more than"));
}

/* A value cannot smuggle in further keys, whatever it holds. */
static void test_set_holds_one_value(void **state) {
    (void)state;
    static const char *const sets[] = {"setting.machine=a, devices: 3", "setting.machine=a}, {devices: 3",
                                       "setting.machine='a', devices: 3"};
    write_temporary(base, strlen(base));
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        pc_scenario *scenario;
        if (pc_scenario_load(temporary, &sets[i], 1, &scenario, NULL)) continue;
        pc_run_spec spec = spec_of(scenario, 0);
        assert_int_equal(spec.devices, 4);
        pc_run_spec_free(&spec);
        pc_scenario_free(scenario);
    }
}

/* ---- what bad files are told ---- */

static void check_bad_file(const char *path) {
    char line[PATH_SIZE], expected[4 * PATH_SIZE];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    assert_starts(line, "# expect: ");
    /* Of a long path, a message has the end. */
    size_t length = strlen(path), cut = length > 255 ? length - 252 : 0;
    snprintf(expected, sizeof expected, "%s%s:%s", cut ? "..." : "", path + cut, line + strlen("# expect: "));
    const char *message = message_of(path, NULL, 0);
    assert_starts(message, expected);
    assert_non_null(strstr(message, "; expected "));
}

static void test_bad_files(void **state) {
    (void)state;
    char folder[PATH_SIZE], path[2 * PATH_SIZE];
    int count = 0;
    data_path("bad", folder);
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry; entry = readdir(entries)) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        check_bad_file(path);
        count++;
    }
    closedir(entries);
    assert_true(count >= 90);
}

static void test_no_file(void **state) {
    (void)state;
    assert_starts(message_of("/nonexistent/x.yaml", NULL, 0),
                  "/nonexistent/x.yaml: No such file or directory; expected");
    assert_starts(message_of("/", NULL, 0), "/: is a directory; expected a scenario file");
    assert_starts(message_of("", NULL, 0), ": No such file or directory; expected a scenario file");
    assert_starts(message_of("/dev/zero", NULL, 0), "/dev/zero: too large; expected a scenario file (YAML) of at most");
    assert_starts(message_of("/dev/null", NULL, 0), "/dev/null:1: empty; expected");
}

static void test_large_file(void **state) {
    (void)state;
    char expected[PATH_SIZE];
    write_temporary("", 0);
    assert_int_equal(truncate(temporary, 100 << 20), 0);
    snprintf(expected, sizeof expected, "%s: too large; expected a scenario file (YAML) of at most 4 MiB", temporary);
    assert_starts(message_of(temporary, NULL, 0), expected);
    /* The limit itself is fine: 4 MiB of comment. */
    size_t size = 4 << 20;
    char *text = malloc(size + 1);
    snprintf(text, size, "%s#", base);
    memset(text + strlen(text), 'x', size - strlen(text));
    write_temporary(text, size);
    pc_scenario_free(load_with(temporary, NULL, 0));
    text[size] = 'x';
    write_temporary(text, size + 1);
    assert_starts(message_of(temporary, NULL, 0), expected);
    free(text);
}

static void test_not_text(void **state) {
    (void)state;
    assert_refused("", 0, ":1: empty; expected a mapping of keys");
    assert_refused("# nothing\n", 10, ":1: empty");
    assert_refused("a: b\n\x7f"
                   "ELF\x01\x02\0\0\0",
                   15, ":2: not YAML: control characters are not allowed");
    assert_refused("\0\0\0\0", 4, ":1: not YAML");
    assert_refused("scenario: x\ntitle: \xff\xfe\n", 22, ":2: not YAML: invalid leading UTF-8 octet");
    assert_refused("scenario: x\ntitle: \xc0\x80\n", 22, ":2: not YAML: invalid length of a UTF-8 sequence");
    assert_refused("scenario: x\ntitle: \xe2\x82", 21, ":2: not YAML: incomplete UTF-8");
    assert_refused("\xff\xfes\0c\0e\0n\0", 10, ":1: not YAML");
    assert_refused("\xfe\xff\0s\0c\0e\0n", 10, ":1: not YAML");
    assert_text_refused("---\n", ":2: is a single value; expected a mapping of scenario");
    assert_text_refused("--- {}\n--- {}\n", ":2: a second document (---); expected one document a file");
    assert_text_refused("%YAML 7.0\n---\nscenario: x\n", ":1: not YAML: found incompatible YAML document");
    assert_text_refused("{}\n", ":1: scenario: missing; expected");
}

/* All sorts of noise: whatever it is, it is refused in one line, and nothing crashes. */
static void test_noise(void **state) {
    (void)state;
    static const char alphabet[] = "{}[]:,-?&*!|>'\"%@` \n\t#ab01~\\\x01\xc3\xa9";
    test_random random = {5};
    for (long i = 0; i < test_cases(250, 1000); i++) {
        char text[128];
        size_t size = strlen("scenario: x\n");
        memcpy(text, "scenario: x\n", size);
        for (size_t end = 20 + (size_t)i % 100; size < end; size++) {
            text[size] = alphabet[test_draw(&random) % (sizeof alphabet - 1)];
        }
        assert_refused(text, size, "");
    }
}

/* The base with one random change of a byte, hundreds of times: loaded or refused, but never anything else. */
static void test_mutations(void **state) {
    (void)state;
    char path[PATH_SIZE], text[8192];
    data_path("good/merge.yaml", path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    test_random random = {6};
    for (long i = 0; i < test_cases(175, 700); i++) {
        size_t at = (size_t)test_between(&random, 0, (int64_t)size - 1);
        char kept = text[at];
        text[at] = "\n {}[]:0-x\xff*&"[test_draw(&random) % 13];
        write_temporary(text, size);
        pc_error error = {.code = PC_OK};
        pc_scenario *scenario = NULL;
        pc_code code = pc_scenario_load(temporary, NULL, 0, &scenario, &error);
        if (code) assert_starts(error.message, temporary);
        for (int64_t r = 0; !code && r < pc_scenario_run_count(scenario); r++) {
            pc_run_spec spec = spec_of(scenario, r);
            pc_run_spec_free(&spec);
        }
        pc_scenario_free(scenario);
        text[at] = kept;
    }
}

/* `before`, then `count` times `unit`, then `after`; to be freed. */
static char *repeat(const char *before, const char *unit, size_t count, const char *after) {
    size_t unit_size = strlen(unit), used = strlen(before);
    char *text = malloc(used + count * unit_size + strlen(after) + 1);
    memcpy(text, before, used);
    for (size_t i = 0; i < count; i++, used += unit_size) memcpy(text + used, unit, unit_size);
    strcpy(text + used, after);
    return text;
}

static void assert_repeated_refused(const char *before, const char *unit, size_t count, const char *after,
                                    const char *start) {
    char *text = repeat(before, unit, count, after);
    assert_text_refused(text, start);
    free(text);
}

/* Small files that would make much of themselves. */
static void test_bombs(void **state) {
    (void)state;
    assert_repeated_refused("scenario: x\ntitle: ", "a", 4097, "\n", ":2: a text of more than 4096 bytes; expected");
    assert_repeated_refused("scenario: x\ntitle: ", "a", 4 << 20, "", ": too large");
    assert_repeated_refused("scenario: x\n", "k", 900, ": 1\n", ":2: kkkk");
    assert_repeated_refused("scenario: x\n", "k", 3000, ": 1\n", ":2: not YAML");
    assert_repeated_refused("a: ", "[", 1 << 20, "", ":1: nested too deep");
    assert_repeated_refused("a: ", "{a: ", 1 << 19, "", ":1: nested too deep");
    assert_repeated_refused("", "- ", 1 << 20, "", ":1: nested too deep");
    assert_repeated_refused("", "? ", 1 << 20, "", ":1: a key that is itself a list or a mapping");
    assert_repeated_refused("a: [", "1,", 2 << 20, "]", ": too large");
    assert_repeated_refused("a: [", "1,", (2 << 20) - 8, "]", ":1: too many values; expected at most a million");
    assert_repeated_refused("scenario: x\ncases:\n", "- {name: a}\n", 50000, "", ":4: cases[1].name: a is the name of");
}

/* 400 x 400 x 100 runs and a few are too many; the load must not take their time or their memory either. */
static void test_too_many_runs(void **state) {
    (void)state;
    size_t room = 1 << 16, used = 0;
    char *text = malloc(room);
    used += (size_t)snprintf(text, room, "%ssweep:\n", base);
    static const char *const keys[] = {"devices", "microbatches", "chunks"};
    static const int counts[] = {400, 400, 100};
    for (int k = 0; k < 3; k++) {
        used += (size_t)snprintf(text + used, room - used, "  %s: [1", keys[k]);
        for (int i = 2; i <= counts[k]; i++) used += (size_t)snprintf(text + used, room - used, ", %d", i);
        used += (size_t)snprintf(text + used, room - used, "]\n");
    }
    assert_text_refused(text, ":7: sweep: multiplies out to more than 10000000 runs; expected at most that many");
    free(text);
}

/* A large but honest file: a pipeline of as many stages as there may be. */
static void test_many_stages(void **state) {
    (void)state;
    char *text = repeat("scenario: x\nsetting:\n  schedule: 1f1b\n  devices: 65536\n  microbatches: 1\n  stages:\n",
                        "  - {F: 1 ms, BW: 2 ms}\n", PC_DEVICES_MAX, "");
    pc_scenario *scenario = load_text(text);
    pc_run_spec spec = spec_of(scenario, 0);
    assert_int_equal(pc_costs_duration(&spec.costs, PC_DEVICES_MAX - 1, 0, PC_PASS_BW), 2 * MS);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
    free(text);
}

/* A path of thousands of characters still leaves room for what is wrong. */
static void test_long_path(void **state) {
    (void)state;
    char *path = repeat("/nonexistent/", "abcdefgh/", 400, "x.yaml");
    const char *message = message_of(path, NULL, 0);
    assert_starts(message, "...");
    assert_non_null(strstr(message, "/x.yaml: No such file or directory; expected a scenario file"));
    free(path);
}

/* ---- no memory ---- */

/* Loads and makes every run, refusing the allocation after the next `after`; whether it came to that. */
static bool load_with_refusal(const char *path, const char *const *sets, int set_count, long after) {
    pc_error error = {.code = PC_OK};
    pc_scenario *scenario = NULL;
    pc_alloc_fail_after(after);
    long asked = pc_alloc_count();
    pc_code code = pc_scenario_load(path, sets, set_count, &scenario, &error);
    for (int64_t i = 0; !code && i < pc_scenario_run_count(scenario); i++) {
        pc_run_spec spec;
        pc_run_labels labels;
        code = pc_scenario_run_spec(scenario, i, &spec, &labels, &error);
        if (!code) pc_run_spec_free(&spec);
    }
    pc_alloc_fail_after(-1);
    pc_scenario_free(scenario);
    bool refused = pc_alloc_count() - asked > after;
    if (refused) {
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
        assert_int_equal(error.code, PC_ERROR_NO_MEMORY);
    } else {
        assert_int_equal(code, PC_OK);
    }
    return refused;
}

static void test_no_memory(void **state) {
    (void)state;
    static const char *const files[] = {"good/minimal.yaml", "good/merge.yaml",   "good/sweep.yaml", "good/stages.yaml",
                                        "good/cluster.yaml", "good/figures.yaml", "good/block.yaml"};
    static const char *const sets[] = {"setting.overhead=1 ms", "sweep.microbatches=[6, 12]"};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        char path[PATH_SIZE];
        long after = 0;
        data_path(files[f], path);
        while (load_with_refusal(path, sets, 2, after)) after++;
        assert_true(after > 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_sets),    cmocka_unit_test(test_set_holds_one_value),
        cmocka_unit_test(test_bad_files),   cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_large_file),  cmocka_unit_test(test_not_text),
        cmocka_unit_test(test_noise),       cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_bombs),       cmocka_unit_test(test_too_many_runs),
        cmocka_unit_test(test_many_stages), cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
