/* pipecast list: what there is to choose from. */
#include "cli/cli.h"

#include "models/schedule/generate.h"
#include "scenarios/scenario.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] = "usage: pipecast list schedules|models|machines|scenarios\n"
                           "\n"
                           "Scenarios are looked for in $PIPECAST_SCENARIOS, in ./scenarios, and where pipecast was\n"
                           "installed, in this order.\n"
                           "\n"
                           "example: pipecast list schedules\n";

static int list_schedules(void) {
    int count;
    const pc_generator *generators = pc_generators(&count);
    for (int i = 0; i < count; i++) printf("%-18s %s\n", generators[i].name, generators[i].summary);
    return finish_output(EXIT_DONE);
}

/* ---- scenarios ---- */

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static const char *scenarios_folder(void) {
    const char *chosen = getenv("PIPECAST_SCENARIOS");
    if (chosen) return chosen;
    return is_folder("scenarios/paper") ? "scenarios" : PC_SCENARIOS_FOLDER;
}

static bool is_yaml(const char *name) {
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".yaml") == 0;
}

/* One line: the path and the title; a file that does not load says so in its place. */
static void list_file(const char *path) {
    pc_scenario *scenario;
    pc_error error = {0};
    if (pc_scenario_load(path, NULL, 0, &scenario, &error)) {
        printf("%s\n    does not load: %s\n", path, error.message);
        return;
    }
    printf("%s\n    %s (%lld runs)\n", path, pc_scenario_title(scenario), (long long)pc_scenario_run_count(scenario));
    pc_scenario_free(scenario);
}

static bool list_folder(const char *folder, int depth) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) return false;
    for (int i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        bool is_usable = entries[i]->d_name[0] != '.' && length < (int)sizeof path;
        if (is_usable && is_folder(path) && depth > 0) list_folder(path, depth - 1);
        if (is_usable && is_yaml(path)) list_file(path);
        free(entries[i]);
    }
    free(entries);
    return true;
}

static int list_scenarios(void) {
    enum { DEPTH = 2 };
    const char *folder = scenarios_folder();
    if (!list_folder(folder, DEPTH)) return report_usage("list: %s: no such folder; expected one of scenarios", folder);
    return finish_output(EXIT_DONE);
}

/* ---- the choice ---- */

/* Models and machines come with the cluster model; until then there are none, and that is said. */
static int list_none(const char *what) {
    fprintf(stderr, "pipecast: list: this version has no library of %s yet; scenarios give pass times themselves\n",
            what);
    return EXIT_DONE;
}

static int list(const char *what) {
    if (strcmp(what, "schedules") == 0) return list_schedules();
    if (strcmp(what, "scenarios") == 0) return list_scenarios();
    if (strcmp(what, "models") == 0 || strcmp(what, "machines") == 0) return list_none(what);
    return report_usage("list: '%s'; expected schedules, models, machines or scenarios", what);
}

int command_list(int argc, char **argv) {
    static const option_spec options[] = {{"help", 'h', NULL}, {NULL, 0, NULL}};
    const char *what = NULL;
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "list"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (option == 0) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (what) return report_usage("list: '%s' is one too many; expected one word", x.value);
        what = x.value;
    }
    if (!what) return report_usage("list: of what? expected schedules, models, machines or scenarios");
    return list(what);
}
