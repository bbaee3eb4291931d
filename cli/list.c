/* pipecast list: what there is to choose from. */
#include "cli/cli.h"
#include "cli/list_json.h"
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
    "usage: pipecast list schedules|models|machines|software|precisions|profiles|scenarios [--format table|json]\n"
    "       pipecast list keys [--format table|json|markdown|flags]\n"
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
    "      --format FORMAT   table (default) or json, an array with an object for each; of keys also markdown, or\n"
    "                        flags: the options that stand for one\n"
    "\n"
    "example: pipecast list machines\n"
    "example: pipecast list models --format json\n";

/* Whose orders there are under a name, beside its own: " (making: published, torch)". */
static void print_makings(const pc_generator *generator) {
    int count = 0;
    for (pc_making one = PC_MAKING_PUBLISHED; one < PC_MAKINGS; one++)
        if (pc_generator_has_making(generator, one))
            printf("%s%s", count++ ? ", " : " (making: ", pc_making_names[one]);
    if (count) putchar(')');
}

static void add_schedule(list_json *json, const pc_generator *generator) {
    char makings[128] = "[";
    size_t used = 1;
    for (pc_making one = PC_MAKING_PUBLISHED; one < PC_MAKINGS; one++)
        if (pc_generator_has_making(generator, one))
            used += (size_t)snprintf(makings + used, sizeof makings - used, "%s\"%s\"", used > 1 ? ", " : "",
                                     pc_making_names[one]);
    snprintf(makings + used, sizeof makings - used, "]");
    list_json_next(json);
    list_json_text(json, "name", generator->name);
    list_json_text(json, "summary", generator->summary);
    list_json_raw(json, "makings", makings);
}

/* `json` is NULL for a table, here and below. */
static int list_schedules(list_json *json) {
    int count, width = 0;
    const pc_generator *generators = pc_generators(&count);
    for (int i = 0; i < count && json; i++) add_schedule(json, &generators[i]);
    if (json) return list_json_end(json);
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
static void print_file(const char *path, const char *title, int64_t runs) {
    print_plain(stdout, path);
    printf("\n    ");
    print_plain(stdout, title);
    printf(" (%lld runs)\n", (long long)runs);
}

static void print_bad_file(const char *path, const char *message) {
    print_plain(stdout, path);
    printf("\n    does not load: %s\n", message);
}

static void add_file(list_json *json, const char *path, const char *title, int64_t runs) {
    list_json_next(json);
    list_json_text(json, "path", path);
    list_json_text(json, "title", title);
    list_json_integer(json, "runs", runs);
}

static void add_bad(list_json *json, const char *key, const char *name, const char *message) {
    list_json_next(json);
    list_json_text(json, key, name);
    list_json_text(json, "error", message);
}

static pc_code list_file(list_json *json, const char *path, pc_error *error) {
    pc_scenario *scenario;
    pc_code code = pc_scenario_load(path, NULL, 0, &scenario, error);
    if (code && code != PC_ERROR_INPUT) return code;
    if (code && json)
        add_bad(json, "path", path, error->message);
    else if (code)
        print_bad_file(path, error->message);
    else if (json)
        add_file(json, path, pc_scenario_title(scenario), pc_scenario_run_count(scenario));
    else
        print_file(path, pc_scenario_title(scenario), pc_scenario_run_count(scenario));
    if (!code) pc_scenario_free(scenario);
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
static pc_code list_folder(list_json *json, const char *folder, int depth, pc_error *error) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) return refuse_folder(folder, errno, error);
    pc_code code = PC_OK;
    for (int i = 0; i < count; i++) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        bool is_usable = entries[i]->d_name[0] != '.' && !is_library(entries[i]->d_name) && length < (int)sizeof path;
        if (!code && is_usable && is_folder(path) && depth > 0) code = list_folder(json, path, depth - 1, error);
        if (!code && is_usable && is_yaml(path)) code = list_file(json, path, error);
        free(entries[i]);
    }
    free(entries);
    return code;
}

/* What was listed before it went wrong stands in a table, and in no JSON. */
static int finish(list_json *json, pc_code code, const pc_error *error) {
    if (code && json) pc_text_free(&json->text);
    if (code) return report(error);
    return json ? list_json_end(json) : finish_output(EXIT_DONE);
}

static int list_scenarios(list_json *json) {
    enum { DEPTH = 2 };
    pc_error error = {0};
    return finish(json, list_folder(json, scenarios_folder(), DEPTH, &error), &error);
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
static pc_code print_fault(list_json *json, int width, const char *name, const pc_error *error) {
    if (error->code != PC_ERROR_INPUT) return error->code;
    if (json)
        add_bad(json, "name", name, error->message);
    else
        printf("%-*s  does not load: %s\n", width, name, error->message);
    return PC_OK;
}

static void add_model(list_json *json, const char *name, const pc_library_model *m, const pc_parameters *parameters) {
    list_json_next(json);
    list_json_text(json, "name", name);
    list_json_text(json, "title", m->title);
    list_json_integer(json, "parameters", parameters->total);
    list_json_integer(json, "layers", m->model.layers);
    list_json_integer(json, "hidden", m->model.hidden);
    list_json_integer(json, "heads", m->model.heads);
    list_json_integer(json, "seq_len", m->seq_len);
}

static pc_code print_model(list_json *json, int width, const char *name, pc_error *error) {
    pc_library_model m;
    pc_parameters parameters;
    if (pc_library_load_model(name, &m, error) || pc_model_parameters(&m.model, 1, &parameters, error))
        return print_fault(json, width, name, error);
    if (json) {
        add_model(json, name, &m, &parameters);
        return PC_OK;
    }
    printf("%-*s  %8.2f  %6lld  %6lld  %5lld  %7lld  %s\n", width, name, (double)parameters.total / 1e9,
           (long long)m.model.layers, (long long)m.model.hidden, (long long)m.model.heads, (long long)m.seq_len,
           m.title);
    return PC_OK;
}

static int list_models(list_json *json) {
    int count, width = width_of_names(PC_LIBRARY_MODELS);
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MODELS, &count);
    if (!json) printf("%-*s  param. B  layers  hidden  heads  seq_len  title\n", width, "name");
    pc_error error = {0};
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) code = print_model(json, width, files[i].name, &error);
    return finish(json, code, &error);
}

static void add_machine(list_json *json, const char *name, const pc_library_machine *m) {
    const pc_machine *machine = &m->machine;
    list_json_next(json);
    list_json_text(json, "name", name);
    list_json_text(json, "title", m->title);
    list_json_text(json, "gpu", machine->gpu.name);
    list_json_text(json, "kernels_from", pc_gpu_basis_name((pc_gpu_basis)machine->gpu.basis));
    list_json_number(json, "peak_tflops", machine->gpu.matrix_flops_per_s / PC_FLOP_PER_TFLOP);
    list_json_number(json, "memory_gib", (double)machine->gpu.memory_bytes / PC_BYTES_PER_GIB);
    list_json_integer(json, "gpus_per_node", machine->gpus_per_node);
    list_json_integer(json, "domain_gpus", machine->domain_gpus);
    if (machine->nodes)
        list_json_integer(json, "gpus", (int64_t)machine->nodes * machine->gpus_per_node);
    else
        list_json_raw(json, "gpus", "null"); /* any number */
}

static pc_code print_machine(list_json *json, int width, const char *name, pc_error *error) {
    pc_library_machine m;
    if (pc_library_load_machine(name, &m, error)) return print_fault(json, width, name, error);
    if (json) {
        add_machine(json, name, &m);
        return PC_OK;
    }
    char size[32] = "any";
    if (m.machine.nodes) snprintf(size, sizeof size, "%lld", (long long)m.machine.nodes * m.machine.gpus_per_node);
    printf("%-*s  %-18s  %-16s  %9g  %9.4g  %6d  %6d  %4s  %s\n", width, name, m.machine.gpu.name,
           pc_gpu_basis_name((pc_gpu_basis)m.machine.gpu.basis), m.machine.gpu.matrix_flops_per_s / PC_FLOP_PER_TFLOP,
           (double)m.machine.gpu.memory_bytes / PC_BYTES_PER_GIB, m.machine.gpus_per_node, m.machine.domain_gpus, size,
           m.title);
    return PC_OK;
}

static int list_machines(list_json *json) {
    int count, width = width_of_names(PC_LIBRARY_MACHINES);
    const pc_library_file *files = pc_library_files(PC_LIBRARY_MACHINES, &count);
    if (!json)
        printf("%-*s  %-18s  %-16s  %9s  %9s  %6s  %6s  %4s  title\n", width, "name", "GPU", "kernels from", "TFLOP/s",
               "mem. GiB", "a node", "domain", "GPUs");
    pc_error error = {0};
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) code = print_machine(json, width, files[i].name, &error);
    return finish(json, code, &error);
}

/* Adds the lines of its text that set something: all but its name, title, comments and where they are from. */
static void add_settings(const char *file, const char *indent, pc_text *text) {
    while (*file) {
        size_t length = strcspn(file, "\n");
        bool is_own = strncmp(file, "software:", 9) == 0 || strncmp(file, "precision:", 10) == 0 ||
                      strncmp(file, "title:", 6) == 0 || strncmp(file, "source:", 7) == 0 || *file == '#' ||
                      length == 0;
        if (!is_own) pc_text_printf(text, "%s%.*s\n", indent, (int)length, file);
        file += length + (file[length] == '\n');
    }
}

/* In a table below its title; in JSON as the YAML that it is. */
static pc_code print_titled(list_json *json, int width, const pc_library_file *file, const char *title,
                            pc_error *error) {
    pc_text settings = {.data = NULL};
    pc_text_add(&settings, "", 0);
    add_settings(file->text, json ? "" : "    ", &settings);
    pc_code code = settings.failed ? pc_error_no_memory(error) : PC_OK;
    if (!code && json) {
        list_json_next(json);
        list_json_text(json, "name", file->name);
        list_json_text(json, "title", title);
        list_json_text(json, "settings", settings.data);
    } else if (!code) {
        printf("%-*s  %s\n%s", width, file->name, title, settings.data);
    }
    pc_text_free(&settings);
    return code;
}

typedef pc_code load_title(const char *name, char title[PC_TITLE_SIZE], pc_error *error);

static int list_titled(list_json *json, pc_library_kind kind, load_title *load) {
    int count, width = width_of_names(kind);
    const pc_library_file *files = pc_library_files(kind, &count);
    pc_error error = {0};
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) {
        char title[PC_TITLE_SIZE];
        code = load(files[i].name, title, &error) ? print_fault(json, width, files[i].name, &error)
                                                  : print_titled(json, width, &files[i], title, &error);
    }
    return finish(json, code, &error);
}

/* ---- the choice ---- */

enum { FORMAT, HELP };
static const option_spec options[] = {{"format", 0, "FORMAT"}, {"help", 'h', NULL}, {NULL, 0, NULL}};

#define EXPECTED "expected schedules, models, machines, software, precisions, profiles, scenarios or keys"

static int list(const char *what, const char *format) {
    if (strcmp(what, "keys") == 0) return list_keys(format ? format : "table");
    list_json made = {.objects = 0}, *json = NULL;
    int look = 0;
    if (format && !argument_word("list: --format", "format", "table|json", format, &look)) return EXIT_BAD_INPUT;
    if (look) json = &made;
    if (strcmp(what, "schedules") == 0) return list_schedules(json);
    if (strcmp(what, "scenarios") == 0) return list_scenarios(json);
    if (strcmp(what, "models") == 0) return list_models(json);
    if (strcmp(what, "machines") == 0) return list_machines(json);
    if (strcmp(what, "software") == 0) return list_titled(json, PC_LIBRARY_SOFTWARE, pc_library_load_software);
    if (strcmp(what, "precisions") == 0) return list_titled(json, PC_LIBRARY_PRECISIONS, pc_library_load_precision);
    if (strcmp(what, "profiles") == 0) return list_profiles(json);
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
