/* Which files a name can reach: by words, against a walk by hand; by links; and the flag of who loads a scenario. */
#define _GNU_SOURCE /* O_PATH */

#include "scenarios/place.h"

#include "engine/alloc.h"
#include "scenarios/plan_scenario.h"
#include "scenarios/scenario.h"
#include "tests/scenario_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[128];

static char *inside(const char *name) {
    static char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void write_file(const char *name, const char *text) {
    FILE *file = fopen(inside(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* root/home/a/b/ are folders; root/out.yaml is a file outside of home; root/home/door leads there. */
static int make_folders(void **state) {
    (void)state;
    test_temporary(root, sizeof root, "pipecast-place");
    if (!mkdtemp(root)) return -1;
    static const char *const folders[] = {"home", "home/a", "home/a/b"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) assert_int_equal(mkdir(inside(folders[i]), 0700), 0);
    write_file("out.yaml", "machine: out\nfrom: dgx-h100\n");
    write_file("home/x.yaml", "scenario: x\nsetting: {model: {from: gpt3-1.3b}, machine: ../out.yaml, gpus: 8, pp: 8,"
                              " schedule: 1f1b}\n");
    return symlink("..", inside("home/door"));
}

static int remove_folders(void **state) {
    (void)state;
    static const char *const files[] = {"home/door", "home/x.yaml", "out.yaml"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) assert_int_equal(unlink(inside(files[i])), 0);
    assert_int_equal(rmdir(inside("home/a/b")), 0);
    assert_int_equal(rmdir(inside("home/a")), 0);
    assert_int_equal(rmdir(inside("home")), 0);
    return rmdir(root);
}

static bool is_reached(pc_reach reach, const char *name) {
    char home[PATH_SIZE];
    pc_error error = {0};
    snprintf(home, sizeof home, "%s", inside("home"));
    pc_place place = {.folder = home, .root = home, .reach = reach};
    char *path = pc_place_join(home, name);
    assert_non_null(path);
    pc_code code = pc_place_check(&place, name, path, &error);
    pc_free(path);
    assert_true(code == PC_OK || code == PC_ERROR_INPUT);
    return code == PC_OK;
}

/* Random walks through home, a, b and nothing else: a walk that never was above home may go on, one that ends above it
 * may not. Those that leave and come back are home again only by home's own name, which no walk has. */
static void test_walks(void **state) {
    (void)state;
    static const char *const down[] = {"a", "b"};
    test_random random = {17};
    long refused = 0, cases = test_cases(2000, 10000);
    for (long i = 0; i < cases; i++) {
        char name[256] = "";
        int depth = 0, lowest = 0;
        for (int64_t steps = test_between(&random, 1, 8); steps > 0; steps--) {
            bool up = depth < 0 || depth == 2 || test_between(&random, 0, 1);
            if (up || depth == 2)
                depth--, strcat(name, "../");
            else
                strcat(name, down[depth++]), strcat(name, test_between(&random, 0, 1) ? "/" : "//./");
            if (depth < lowest) lowest = depth;
        }
        strcat(name, "missing.yaml");
        assert_int_equal(is_reached(PC_REACH_ROOT, name), lowest == 0);
        assert_true(is_reached(PC_REACH_USER, name) && is_reached(PC_REACH_ALL, name));
        refused += lowest < 0;
    }
    assert_true(refused > cases / 10 && refused < cases * 9 / 10);
    test_count("security.walks", cases);
}

static void test_links(void **state) {
    (void)state;
    assert_true(is_reached(PC_REACH_ROOT, "x.yaml"));
    assert_true(is_reached(PC_REACH_ROOT, "door/home/x.yaml"));
    assert_false(is_reached(PC_REACH_ROOT, "door/out.yaml"));
    assert_false(is_reached(PC_REACH_ROOT, "a/../door/out.yaml"));
    assert_false(is_reached(PC_REACH_ROOT, "door"));
    assert_false(is_reached(PC_REACH_ROOT, "/etc/passwd"));
    assert_false(is_reached(PC_REACH_ROOT, "//etc/passwd"));
}

/* What the program has open can be read by a link to it, also where it has no name any more; whatever else has now the
 * name that the link gives. */
static void test_links_without_a_name(void **state) {
    (void)state;
    static const char *const names[] = {"gone", "home/gone"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char link[64];
        write_file(names[i], "machine: gone\nfrom: dgx-h100\n");
        FILE *file = fopen(inside(names[i]), "r");
        assert_non_null(file);
        snprintf(link, sizeof link, "/proc/self/fd/%d", fileno(file));
        assert_int_equal(unlink(inside(names[i])), 0);
        assert_int_equal(symlink(link, inside("home/gone.yaml")), 0);
        write_file("home/gone (deleted)", "another");
        bool is_there = access(inside("home/gone.yaml"), R_OK) == 0; /* else there is no /proc here */
        assert_false(is_there && is_reached(PC_REACH_ROOT, "gone.yaml"));
        assert_int_equal(fclose(file), 0);
        assert_int_equal(unlink(inside("home/gone (deleted)")), 0);
        assert_int_equal(unlink(inside("home/gone.yaml")), 0);
    }
}

enum { LINKS = 3, WORDS_MOST = 4 };

/* A way of random words, over folders, files and the links l0 to l2; some begin at the top. */
static void draw_way(test_random *random, char *way, size_t size) {
    static const char *const words[] = {"..", "a", "b", "home", "x.yaml", "out.yaml", "l0", "l1", "l2"};
    static const char *const tops[] = {"", "/proc/self/root"};
    int64_t count = test_between(random, 1, WORDS_MOST);
    *way = '\0';
    if (test_between(random, 0, 3) == 0) snprintf(way, size, "%s%s/", tops[test_between(random, 0, 1)], root);
    for (int64_t i = 0; i < count; i++) {
        size_t used = strlen(way), word = (size_t)test_between(random, 0, sizeof words / sizeof *words - 1);
        snprintf(way + used, size - used, "%s%s", i ? "/" : "", words[word]);
    }
}

/* Where the kernel says that the path leads; false where to nothing. */
static bool find_place(const char *path, char real[PATH_SIZE]) {
    char link[64];
    int found = open(path, O_PATH);
    if (found < 0) return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", found);
    ssize_t length = readlink(link, real, PATH_SIZE - 1);
    close(found);
    if (length < 0) return false;
    real[length] = '\0';
    return true;
}

/* Links of home, in and out, to each other and to nothing: what is reached is what the kernel finds below home. */
static void test_walks_over_links(void **state) {
    (void)state;
    test_random random = {18};
    long inside_count = 0, outside_count = 0, cases = test_cases(1000, 5000);
    char home[PATH_SIZE], real[PATH_SIZE], way[256];
    assert_true(find_place(inside("home"), home));
    for (long i = 0; i < cases; i++) {
        for (int k = 0; k < LINKS; k++) {
            char name[16];
            snprintf(name, sizeof name, "home/l%d", k);
            draw_way(&random, way, sizeof way);
            assert_int_equal(symlink(way, inside(name)), 0);
        }
        for (int k = 0; k < 20; k++) {
            draw_way(&random, way, sizeof way);
            char *path = pc_place_join(inside("home"), way);
            if (find_place(path, real)) {
                bool is_below = strncmp(real, home, strlen(home)) == 0 && real[strlen(home)] == '/';
                if (is_reached(PC_REACH_ROOT, way) != is_below) fail_msg("%s is %s", way, real);
                inside_count += is_below;
                outside_count += !is_below;
            }
            pc_free(path);
        }
        for (int k = 0; k < LINKS; k++) {
            char name[16];
            snprintf(name, sizeof name, "home/l%d", k);
            assert_int_equal(unlink(inside(name)), 0);
        }
    }
    assert_true(inside_count > cases / 2 && outside_count > cases / 2);
    test_count("security.link_walks", inside_count + outside_count);
}

static void test_flag(void **state) {
    (void)state;
    pc_error error = {0};
    pc_scenario *scenario = NULL;
    pc_plan_scenario *plan = NULL;
    static const char *const sets[] = {"setting.global_batch=16"};
    pc_scenario_options options = {.sets = sets, .set_count = 1};
    const char *path = inside("home/x.yaml");
    assert_int_equal(pc_scenario_load(path, NULL, 0, &scenario, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "x.yaml:2: setting.machine: ../out.yaml: leads out of the folder "));
    assert_int_equal(pc_scenario_load_with(path, &options, &scenario, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_plan_scenario_load_with(path, &options, &plan, &error), PC_ERROR_INPUT);
    assert_null(scenario);
    assert_null(plan);
    options.allows_outside = true;
    if (pc_scenario_load_with(path, &options, &scenario, &error)) fail_msg("%s", error.message);
    if (pc_plan_scenario_load_with(path, &options, &plan, &error)) fail_msg("%s", error.message);
    pc_scenario_free(scenario);
    pc_plan_scenario_free(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_walks_over_links),
        cmocka_unit_test(test_links_without_a_name),
        cmocka_unit_test(test_flag),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
