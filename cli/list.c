/* pipecast list: what there is to choose from. */
#include "cli/cli.h"
#include "cli/list_keys.h"
#include "cli/profile_open.h"

#include "engine/names.h"
#include "engine/numbers.h"
#include "models/schedule/generate.h"
#include "models/workload/model.h"
#include "scenarios/library.h"
#include "scenarios/scenario.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "usage: pipecast list schedules|models|machines|software|precisions|profiles|scenarios\n"
    "       pipecast list keys [--format table|markdown|flags]\n"
    "\n"
    "Models, machines, software, precisions and profiles are those of the library that is part of pipecast.\n"
    "Behind a machine's GPU stands what its kernels' times are from: measured kernels (in bf16: of a profile\n"
    "below), runs that its file was fitted to, or a datasheet.\n"
    "Profiles have the kernels and collectives that others measured on a GPU, as fits.\n"
    "Below a software stands what it sets, where a scenario does not; below a precision, what its recipe does.\n"
    "Behind a schedule stands in brackets who gives an order of it too: a making.\n"
    "Scenarios are looked for in $PIPECAST_SCENARIOS, in ./scenarios, and where pipecast was\n"
    "installed, in this order.\n"
    "Keys are those of scenario files: what may stand there, and what it means.\n"
    "\n"
    "      --format FORMAT   of keys: table (default), markdown, or flags: the options that stand for one\n"
    "\n"
    "example: pipecast list machines\n";

/* Whose orders there are under a name, beside its own: " (making: published, torch)". */
static void print_makings(const pc_generator *generator) {
    int count = 0;
    for (pc_making one = PC_MAKING_PUBLISHED; one < PC_MAKINGS; one++)
        if (pc_generator_has_making(generator, one))
            printf("%s%s", count++ ? ", " : " (making: ", pc_making_names[one]);
    if (count) putchar(')');
}

static int list_schedules(void) {
    int count, width = 0;
    const pc_generator *generators = pc_generators(&count);
    for (int i = 0; i < count; i++)
        if ((int)strlen(generators[i].name) > width) width = (int)strlen(generators[i].name);
    for (int i = 0; i < count; i++) {
        printf("%-*s  %s", width, generators[i].name, generators[i].summary);
        print_makings(&generators[i]);
        putchar('\n');
    }
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

/* One line: the path and the title; a file that does not load says so in its place. Not so where the machine fails. */
static pc_code list_file(const char *path, pc_error *error) {
    pc_scenario *scenario;
    pc_code code = pc_scenario_load(path, NULL, 0, &scenario, error);
    if (code && code != PC_ERROR_INPUT) return code;
    print_plain(stdout, path);
    if (code) {
        printf("\n    does not load: %s\n", error->message);
        return PC_OK;
    }
    printf("\n    ");
    print_plain(stdout, pc_scenario_title(scenario));
    printf(" (%lld runs)\n", (long long)pc_scenario_run_count(scenario));
    pc_scenario_free(scenario);
    return PC_OK;
}

/* Models, machines, software and blocks lie among the scenarios and are none. */
static bool is_library(const char *name) {
    static const char *const folders[] = {"models", "machines", "software", "precision", "blocks"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strcmp(name, folders[i]) == 0) return true;
    return false;
}

static pc_code refuse_folder(const char *folder, int cause, pc_error *error) {
    if (cause == ENOMEM) return pc_error_no_memory(error);
    return pc_error_set(error, cause == EIO ? PC_ERROR_IO : PC_ERROR_INPUT,
                        "list: %s: %s; expected a folder of scenarios, as $PIPECAST_SCENARIOS may name", folder,
                        strerror(cause));
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as `depth` says */
static pc_code list_folder(const char *folder, int depth, pc_error *error) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) return refuse_folder(folder, errno, error);
    pc_code code = PC_OK;
    for (int i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        bool is_usable = entries[i]->d_name[0] != '.' && !is_library(entries[i]->d_name) && length < (int)sizeof path;
        if (!code && is_usable && is_folder(path) && depth > 0) code = list_folder(path, depth - 1, error);
        if (!code && is_usable && is_yaml(path)) code = list_file(path, error);
        free(entries[i]);
    }
    free(entries);
    return code;
}

static int list_scenarios(void) {
    enum { DEPTH = 2 };
    pc_error error = {0};
    if (list_folder(scenarios_folder(), DEPTH, &error)) return report(&error);
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
static pc_code print_fault(int width, const char *name, const pc_error *error) {
    if (error->code != PC_ERROR_INPUT) return error->code;
    printf("%-*s  does not load: %s\n", width, name, error->message);
    return PC_OK;
}

static pc_code print_model(int width, const char *name, pc_error *error) {
    pc_library_model m;
    pc_parameters parameters;
    if (pc_library_load_model(name, &m, error) || pc_model_parameters(&m.model, 1, &parameters, error))
        return print_fault(width, name, error);
    printf("%-*s  %8.2f  %6lld  %6lld  %5lld  %7lld  %s\n", width, name, (double)parameters.total / 1e9,
           (long long)m.model.layers, (long long)m.model.hidden, (long long)m.model.heads, (long long)m.seq_len,
           m.title);
    return PC_OK;
}

static int list_models(void) {
    int count, width = width_of_names(PC_LIBRARY_MODELS);
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MODELS, &count);
    printf("%-*s  param. B  layers  hidden  heads  seq_len  title\n", width, "name");
    pc_error error = {0};
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) code = print_model(width, files[i].name, &error);
    return code ? report(&error) : finish_output(EXIT_DONE);
}

static pc_code print_machine(int width, const char *name, pc_error *error) {
    pc_library_machine m;
    if (pc_library_load_machine(name, &m, error)) return print_fault(width, name, error);
    char size[32] = "any";
    if (m.machine.nodes) snprintf(size, sizeof size, "%lld", (long long)m.machine.nodes * m.machine.gpus_per_node);
    printf("%-*s  %-18s  %-16s  %9g  %9.4g  %6d  %6d  %4s  %s\n", width, name, m.machine.gpu.name,
           pc_gpu_basis_name((pc_gpu_basis)m.machine.gpu.basis), m.machine.gpu.matrix_flops_per_s / PC_FLOP_PER_TFLOP,
           (double)m.machine.gpu.memory_bytes / PC_BYTES_PER_GIB, m.machine.gpus_per_node, m.machine.domain_gpus, size,
           m.title);
    return PC_OK;
}

static int list_machines(void) {
    int count, width = width_of_names(PC_LIBRARY_MACHINES);
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MACHINES, &count);
    printf("%-*s  %-18s  %-16s  %9s  %9s  %6s  %6s  %4s  title\n", width, "name", "GPU", "kernels from", "TFLOP/s",
           "mem. GiB", "a node", "domain", "GPUs");
    pc_error error = {0};
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) code = print_machine(width, files[i].name, &error);
    return code ? report(&error) : finish_output(EXIT_DONE);
}

/* The lines of its text that set something, below its title: all but its name, comments and where they are from. */
static void print_settings(const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool is_own = strncmp(text, "software:", 9) == 0 || strncmp(text, "precision:", 10) == 0 ||
                      strncmp(text, "title:", 6) == 0 || strncmp(text, "source:", 7) == 0 || *text == '#' ||
                      length == 0;
        if (!is_own) printf("    %.*s\n", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

typedef pc_code load_title(const char *name, char title[PC_TITLE_SIZE], pc_error *error);

static int list_titled(pc_library_kind kind, load_title *load) {
    int count, width = width_of_names(kind);
    const pc_library_file *files = pc_library_files(kind, &count);
    pc_error error = {0};
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) {
        char title[PC_TITLE_SIZE];
        if (load(files[i].name, title, &error)) {
            code = print_fault(width, files[i].name, &error);
            continue;
        }
        printf("%-*s  %s\n", width, files[i].name, title);
        print_settings(files[i].text);
    }
    return code ? report(&error) : finish_output(EXIT_DONE);
}

/* ---- the choice ---- */

enum { FORMAT, HELP };
static const option_spec options[] = {{"format", 0, "FORMAT"}, {"help", 'h', NULL}, {NULL, 0, NULL}};

#define EXPECTED "expected schedules, models, machines, software, precisions, profiles, scenarios or keys"

static int list(const char *what, const char *format) {
    if (strcmp(what, "keys") == 0) return list_keys(format ? format : "table");
    if (format) return report_usage("list: --format stands beside '%s'; expected it only with keys", what);
    if (strcmp(what, "schedules") == 0) return list_schedules();
    if (strcmp(what, "scenarios") == 0) return list_scenarios();
    if (strcmp(what, "models") == 0) return list_models();
    if (strcmp(what, "machines") == 0) return list_machines();
    if (strcmp(what, "software") == 0) return list_titled(PC_LIBRARY_SOFTWARE, pc_library_load_software);
    if (strcmp(what, "precisions") == 0) return list_titled(PC_LIBRARY_PRECISIONS, pc_library_load_precision);
    if (strcmp(what, "profiles") == 0) return list_profiles();
    char hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = what};
    pc_nearest_offer_words(&nearest, "schedules|models|machines|software|precisions|profiles|scenarios|keys");
    pc_nearest_offer_as(&nearest, "machines", "gpus");
    return report_usage("list: '%s'%s; " EXPECTED, what, pc_nearest_hint(&nearest, hint));
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
