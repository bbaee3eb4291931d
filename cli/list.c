/* pipecast list: what there is to choose from. */
#include "cli/cli.h"
#include "cli/list_keys.h"

#include "models/schedule/generate.h"
#include "models/workload/model.h"
#include "scenarios/library.h"
#include "scenarios/scenario.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] = "usage: pipecast list schedules|models|machines|scenarios\n"
                           "       pipecast list keys [--format table|markdown]\n"
                           "\n"
                           "Models and machines are those of the library that is part of pipecast.\n"
                           "Scenarios are looked for in $PIPECAST_SCENARIOS, in ./scenarios, and where pipecast was\n"
                           "installed, in this order.\n"
                           "Keys are those of scenario files: what may stand there, and what it means.\n"
                           "\n"
                           "      --format FORMAT   of keys: table or markdown (default table)\n"
                           "\n"
                           "example: pipecast list machines\n";

static int list_schedules(void) {
    int count, width = 0;
    const pc_generator *generators = pc_generators(&count);
    for (int i = 0; i < count; i++)
        if ((int)strlen(generators[i].name) > width) width = (int)strlen(generators[i].name);
    for (int i = 0; i < count; i++) printf("%-*s  %s\n", width, generators[i].name, generators[i].summary);
    return finish_output(EXIT_DONE);
}

/* ---- scenarios ---- */

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static const char *scenarios_folder(void) {
    const char *chosen = getenv("PIPECAST_SCENARIOS");
    if (chosen && *chosen) return chosen;
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

/* Models and machines lie among the scenarios and are none. */
static bool is_library(const char *name) {
    return strcmp(name, "models") == 0 || strcmp(name, "machines") == 0;
}

static bool list_folder(const char *folder, int depth) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) return false;
    for (int i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        bool is_usable = entries[i]->d_name[0] != '.' && !is_library(entries[i]->d_name) && length < (int)sizeof path;
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
    if (!list_folder(folder, DEPTH))
        return report_usage("list: %s: no such folder; expected one of scenarios, as $PIPECAST_SCENARIOS may name",
                            folder);
    return finish_output(EXIT_DONE);
}

/* ---- the library ---- */

static int width_of_names(pc_library_kind kind) {
    int count, width = 0;
    const pc_library_file *files = pc_library_files(kind, &count);
    for (int i = 0; i < count; i++)
        if ((int)strlen(files[i].name) > width) width = (int)strlen(files[i].name);
    return width;
}

/* A file of the library that is wrong is our fault, but the others can still be listed. */
static void print_fault(int width, const char *name, const pc_error *error) {
    printf("%-*s  does not load: %s\n", width, name, error->message);
}

static void print_model(int width, const char *name) {
    pc_library_model m;
    pc_parameters parameters;
    pc_error error;
    if (pc_library_load_model(name, &m, &error) || pc_model_parameters(&m.model, 1, &parameters, &error))
        return print_fault(width, name, &error);
    printf("%-*s  %8.2f  %6lld  %6lld  %5lld  %7lld  %s\n", width, name, (double)parameters.total / 1e9,
           (long long)m.model.layers, (long long)m.model.hidden, (long long)m.model.heads, (long long)m.seq_len,
           m.title);
}

static int list_models(void) {
    int count, width = width_of_names(PC_LIBRARY_MODELS);
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MODELS, &count);
    printf("%-*s  param. B  layers  hidden  heads  seq_len  title\n", width, "name");
    for (int i = 0; i < count; i++) print_model(width, files[i].name);
    return finish_output(EXIT_DONE);
}

static void print_machine(int width, const char *name) {
    pc_library_machine m;
    pc_error error;
    if (pc_library_load_machine(name, &m, &error)) return print_fault(width, name, &error);
    char size[32] = "any";
    if (m.machine.nodes) snprintf(size, sizeof size, "%lld", (long long)m.machine.nodes * m.machine.gpus_per_node);
    printf("%-*s  %-14s  %9g  %9.4g  %6d  %6d  %4s  %s\n", width, name, m.machine.gpu.name,
           m.machine.gpu.matrix_flops_per_s / 1e12, (double)m.machine.gpu.memory_bytes / 1073741824.0,
           m.machine.gpus_per_node, m.machine.domain_gpus, size, m.title);
}

static int list_machines(void) {
    int count, width = width_of_names(PC_LIBRARY_MACHINES);
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MACHINES, &count);
    printf("%-*s  %-14s  %9s  %9s  %6s  %6s  %4s  title\n", width, "name", "GPU", "TFLOP/s", "mem. GiB", "a node",
           "domain", "GPUs");
    for (int i = 0; i < count; i++) print_machine(width, files[i].name);
    return finish_output(EXIT_DONE);
}

/* ---- the choice ---- */

enum { FORMAT, HELP };
static const option_spec options[] = {{"format", 0, "FORMAT"}, {"help", 'h', NULL}, {NULL, 0, NULL}};

#define EXPECTED "expected schedules, models, machines, scenarios or keys"

static int list(const char *what, const char *format) {
    if (strcmp(what, "keys") == 0) return list_keys(format ? format : "table");
    if (format) return report_usage("list: --format stands beside '%s'; expected it only with keys", what);
    if (strcmp(what, "schedules") == 0) return list_schedules();
    if (strcmp(what, "scenarios") == 0) return list_scenarios();
    if (strcmp(what, "models") == 0) return list_models();
    if (strcmp(what, "machines") == 0) return list_machines();
    return report_usage("list: '%s'; " EXPECTED, what);
}

int command_list(int argc, char **argv) {
    const char *what = NULL, *format = NULL;
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "list"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option == FORMAT) {
            format = x.value;
            continue;
        }
        if (what) return report_usage("list: '%s' is one too many; expected one word", x.value);
        what = x.value;
    }
    if (!what) return report_usage("list: of what? " EXPECTED);
    return list(what, format);
}
