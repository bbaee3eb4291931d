/* pipecast import: what others' programs wrote, as files of ours. */
#include "cli/import.h"
#include "cli/cli.h"

#include "engine/alloc.h"
#include "engine/names.h"
#include "storage/replace.h"

#include <string.h>

static const char help[] =
    "usage: pipecast import FORMAT FILE... [-o OUTPUT] [OPTIONS]\n"
    "\n"
    "Writes what other programs wrote as a file of ours.\n"
    "\n"
    "  hf            a config.json of Hugging Face, or its folder: a scenario with the model, which `--model` of run "
    "and plan\n"
    "                takes as it is. Comments say what each value is from, and, as warnings do, what was assumed, what "
    "is\n"
    "                not modelled, and which keys are not known\n"
    "  megatron      arguments of Megatron-LM: a launch script, a log's block of arguments, or YAML: a scenario, "
    "which\n"
    "                `run --megatron` runs as it is\n"
    "  nemo          a recipe of NeMo or Megatron-Bridge, as YAML or JSON: a scenario\n"
    "  deepspeed     a configuration of DeepSpeed: the batch, ZeRO, offload and precision of a scenario\n"
    "  kineto        traces of PyTorch's profiler, one a rank (JSON, or that in gzip): the times of passes, their\n"
    "                scatter, what they hold, and what transfers take, as a file for `run --times` and\n"
    "                `schedule --times`. Passes are annotations (torch.profiler.record_function) such as F0, B3, W1; "
    "F0.1 of\n"
    "                chunk 1; or PP:2F0, as PyTorch's pipelining runtime calls them\n"
    "\n"
    "  -o, --output FILE    where to (default: standard output)\n"
    "      --devices N      kineto: stages, if there are several ranks of each (default: as many as traces)\n"
    "      --placement KIND kineto: how parts lie, if passes name chunks: interleaved (default) or v\n"
    "      --skip N         kineto: iterations at the beginning that do not count (default 0)\n"
    "  -q, --quiet          no warnings\n"
    "\n"
    "example: pipecast import hf Qwen3-32B/config.json -o qwen3.yaml\n"
    "example: pipecast import kineto rank0.json.gz rank1.json.gz -o times.yaml\n";

enum { OUTPUT, DEVICES, PLACEMENT, SKIP, QUIET };
static const option_spec options[] = {{"output", 'o', "FILE"}, {"devices", 0, "N"},  {"placement", 0, "KIND"},
                                      {"skip", 0, "N"},        {"quiet", 'q', NULL}, {"help", 'h', NULL},
                                      {NULL, 0, NULL}};

enum { FOR_DEVICES = 1, FOR_PLACEMENT = 2, FOR_SKIP = 4 };

typedef struct import_format {
    const char *name;
    import_function *function;
    unsigned takes; /* options of its own */
} import_format;

static const import_format formats[] = {{"hf", import_hf, 0},
                                        {"megatron", import_megatron, 0},
                                        {"nemo", import_nemo, 0},
                                        {"deepspeed", import_deepspeed, 0},
                                        {"kineto", import_kineto, FOR_DEVICES | FOR_PLACEMENT | FOR_SKIP}};
enum { FORMATS = sizeof formats / sizeof *formats };

/* ---- what is written ---- */

/* Before the work is done. */
static pc_code check_output(const import_request *r, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; r->output && i < r->path_count && !code; i++)
        code = refuse_same_file(r->paths[i], r->output, "a file to import", error);
    return code || !r->output ? code : pc_replacement_probe(r->output, error);
}

static int answer(const import_format *format, const import_request *r) {
    pc_error error = {0};
    pc_text text = {.data = NULL};
    pc_code code = check_output(r, &error);
    if (!code) code = format->function(r, &text, &error);
    if (!code && text.failed) code = pc_error_no_memory(&error);
    if (!code && r->output) code = pc_replacement_put(r->output, text.data, text.size, &error);
    if (!code && !r->output) (void)fwrite(text.data, 1, text.size, stdout); /* finish_output looks at the stream */
    pc_text_free(&text);
    return code ? report(&error) : finish_output(EXIT_DONE);
}

/* ---- arguments ---- */

static const import_format *find_format(const char *name) {
    char hint[PC_NEAREST_TEXT], names[128] = "";
    pc_nearest nearest = {.word = name};
    for (int i = 0; i < FORMATS; i++) {
        if (strcmp(name, formats[i].name) == 0) return &formats[i];
        pc_nearest_offer(&nearest, formats[i].name);
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", formats[i].name);
    }
    report_usage("import: unknown format '%s'%s; expected one of: %s", name, pc_nearest_hint(&nearest, hint), names);
    return NULL;
}

static bool refuse_option(const import_format *format, const import_request *r) {
    const struct {
        const char *name;
        unsigned bit;
        bool is_given;
    } own[] = {{"--devices", FOR_DEVICES, r->devices >= 0},
               {"--placement", FOR_PLACEMENT, r->placement >= 0},
               {"--skip", FOR_SKIP, r->skip >= 0}};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i].is_given && !(format->takes & own[i].bit)) {
            report_usage("%s: means nothing to import %s; expected it with another format", own[i].name, format->name);
            return true;
        }
    return false;
}

typedef struct import_command {
    import_request request;
    const import_format *format; /* NULL until it is named */
} import_command;

static bool take_option(void *command, int option, const char *value) {
    import_command *c = command;
    import_request *r = &c->request;
    switch (option) {
    case ARGUMENT_OPERAND:
        if (!c->format) return (c->format = find_format(value)) != NULL;
        r->paths[r->path_count++] = value;
        return true;
    case OUTPUT:
        r->output = value;
        return true;
    case DEVICES:
        return argument_integer("--devices", value, 1, PC_DEVICES_MAX, &r->devices);
    case PLACEMENT:
        return argument_word("--placement", "placement", "linear|interleaved|v", value, &r->placement);
    case SKIP:
        return argument_integer("--skip", value, 0, INT32_MAX, &r->skip);
    case QUIET:
        return r->is_quiet = true;
    default:
        return false;
    }
}

static int judge_request(const import_format *format, const import_request *r) {
    if (!format) return report_usage("import: no format; expected one such as kineto, and FILE...");
    if (r->path_count == 0) return report_usage("import: no file; expected import %s FILE...", format->name);
    return refuse_option(format, r) ? EXIT_BAD_INPUT : answer(format, r);
}

int command_import(int argc, char **argv) {
    import_command c = {.request = {.devices = -1, .skip = -1, .placement = -1}};
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "import"};
    c.request.paths = arguments_room(argc);
    if (!c.request.paths) return EXIT_MACHINE;
    int status = arguments_take(&x, help, take_option, &c);
    if (status == ARGUMENT_END) status = judge_request(c.format, &c.request);
    pc_free(c.request.paths);
    return status;
}
