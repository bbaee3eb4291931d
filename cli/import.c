/* pipecast import: a configuration of another program, as a scenario. */
#include "scenarios/import/import.h"
#include "calib/device/launched.h"
#include "cli/cli.h"
#include "engine/names.h"
#include "storage/replace.h"

#include <string.h>

static const char help[] =
    "usage: pipecast import FORMAT FILE [-o SCENARIO.yaml]\n"
    "\n"
    "Writes what another program's configuration says as a scenario, with a comment where each value is from. What "
    "the\n"
    "file does not say, what of it is not modelled, and keys that are not known are comments at its top, and "
    "warnings.\n"
    "\n"
    "  hf        config.json of a model of Hugging Face, or its folder: a scenario's model. `--model FILE` of run and\n"
    "            plan takes it as it is\n"
    "\n"
    "  -o SCENARIO.yaml       where to write it (default: standard output)\n"
    "  -q, --quiet            no warnings\n"
    "\n"
    "Exit status: 0 written; 2 bad input, or a model that is none of ours; 3 a fault of the machine.\n"
    "\n"
    "example: pipecast import hf Qwen3-32B/config.json -o qwen3.yaml\n";

enum { OUTPUT, QUIET, HELP };
static const option_spec option_specs[] = {
    {"output", 'o', "SCENARIO.yaml"}, {"quiet", 'q', NULL}, {"help", 'h', NULL}, {NULL, 0, NULL}};

typedef struct import_request {
    const char *format, *path, *output;
    bool is_quiet;
} import_request;

static pc_code write_file(const char *path, const pc_text *text, pc_error *error) {
    pc_replacement file;
    pc_code code = pc_replacement_begin(path, &file, error);
    if (code) return code;
    code = pc_replacement_write(&file, text->data, text->size, error);
    if (!code) return pc_replacement_commit(&file, error);
    pc_replacement_discard(&file);
    return code;
}

static pc_code give(const import_request *r, const pc_import_text *made, pc_error *error) {
    if (r->output) return write_file(r->output, &made->scenario, error);
    fwrite(made->scenario.data, 1, made->scenario.size, stdout);
    return PC_OK;
}

static int answer(const import_request *r) {
    int format;
    pc_error error = {0};
    pc_import_text made = {{.data = NULL}, {.data = NULL}};
    if (!argument_word("import", "format", pc_import_format_names, r->format, &format)) return EXIT_BAD_INPUT;
    pc_code code = r->output ? refuse_same_file(r->path, r->output, "what is imported", &error) : PC_OK;
    if (!code) code = pc_import_file((pc_import_format)format, r->path, &made, &error);
    if (!code) code = give(r, &made, &error);
    if (!code && !r->is_quiet && made.notes.size > 0) say_warning(NULL, made.notes.data);
    pc_import_text_free(&made);
    return code ? report(&error) : finish_output(EXIT_DONE);
}

/* The work of one process: of several that a launcher started, the first's. */
int command_import(int argc, char **argv) {
    pc_launched launched;
    import_request r = {.format = NULL};
    if (pc_launched_ranks(&launched) && launched.rank > 0) return EXIT_DONE;
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = option_specs, .command = "import"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option == OUTPUT)
            r.output = x.value;
        else if (option == QUIET)
            r.is_quiet = true;
        else if (!r.format)
            r.format = x.value;
        else if (!r.path)
            r.path = x.value;
        else
            return report_usage("import: '%s' is one file too many; expected FORMAT FILE", x.value);
    }
    if (!r.path)
        return report_usage("import: no %s; expected FORMAT FILE, as hf config.json", r.format ? "file" : "format");
    return answer(&r);
}
