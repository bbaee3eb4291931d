/* pipecast import FORMAT: configurations of other programs, as scenarios. */
#include "cli/cli.h"
#include "cli/import.h"

#include "scenarios/import/import.h"

/* What it has to say goes to standard error too, unless nobody wants to hear it. */
static pc_code import(pc_import_format format, const import_request *r, pc_text *text, pc_error *error) {
    pc_import_text made = {{.data = NULL}, {.data = NULL}};
    if (r->path_count > 1)
        return pc_error_set(error, PC_ERROR_INPUT, "import %s: %d files; expected one", pc_import_format_name(format),
                            r->path_count);
    pc_code code = pc_import_file(format, r->paths[0], &made, error);
    if (!code) pc_text_add(text, made.scenario.data, made.scenario.size);
    if (!code && !r->is_quiet && made.notes.size > 0) say_warning(NULL, made.notes.data);
    pc_import_text_free(&made);
    return code;
}

pc_code import_hf(const import_request *request, pc_text *text, pc_error *error) {
    return import(PC_IMPORT_HF, request, text, error);
}

pc_code import_megatron(const import_request *request, pc_text *text, pc_error *error) {
    return import(PC_IMPORT_MEGATRON, request, text, error);
}

pc_code import_nemo(const import_request *request, pc_text *text, pc_error *error) {
    return import(PC_IMPORT_NEMO, request, text, error);
}

pc_code import_deepspeed(const import_request *request, pc_text *text, pc_error *error) {
    return import(PC_IMPORT_DEEPSPEED, request, text, error);
}
