#include "api/handles.h"

#include "engine/alloc.h"
#include "scenarios/import/import.h"

#include <string.h>

struct pipecast_imported {
    pc_import_text made;
};

static pc_code find_format(const char *name, pc_import_format *format, pc_error *error) {
    for (int i = 0; i < PC_IMPORT_FORMATS; i++)
        if (strcmp(name, pc_import_format_name((pc_import_format)i)) == 0) {
            *format = (pc_import_format)i;
            return PC_OK;
        }
    return pc_error_set(error, PC_ERROR_INPUT, "format: '%.40s'; expected %s", name, pc_import_format_names);
}

/* A sentence a line; the last one may lack its end. */
static void say_notes(char *notes, pipecast_warn *say, void *context) {
    for (char *line = notes; line && *line;) {
        char *end = strchr(line, '\n');
        if (end) *end++ = '\0';
        say(context, line);
        line = end;
    }
}

int pipecast_import_file(const char *format, const char *path, pipecast_warn *say, void *context,
                         pipecast_imported **imported, pipecast_error *error) {
    pc_error why = {0};
    pc_import_format known = PC_IMPORT_HF;
    pipecast_imported *made = NULL;
    pc_code code = find_format(format, &known, &why);
    if (!code && !(made = pc_alloc(1, sizeof *made))) code = pc_error_no_memory(&why);
    if (!code) code = pc_import_file(known, path, &made->made, &why);
    if (code) {
        pipecast_imported_free(made);
    } else {
        if (say) say_notes(made->made.notes.data, say, context);
        *imported = made;
    }
    return api_answer(code, &why, error);
}

void pipecast_imported_free(pipecast_imported *imported) {
    if (!imported) return;
    pc_import_text_free(&imported->made);
    pc_free(imported);
}

const char *pipecast_imported_text(const pipecast_imported *imported) {
    return imported->made.scenario.data;
}
