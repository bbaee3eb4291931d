#include "scenarios/import/import.h"

#include "engine/alloc.h"
#include "scenarios/import/deepspeed.h"
#include "scenarios/import/hf.h"
#include "scenarios/import/megatron.h"
#include "scenarios/place.h"

#include <string.h>
#include <sys/stat.h>

typedef pc_code read_source(pc_source *source, pc_imported *import, pc_error *error);

static const struct {
    const char *name, *words;
    read_source *read;
} formats[PC_IMPORT_FORMATS] = {
    [PC_IMPORT_HF] = {"hf", "a config.json of Hugging Face", pc_import_hf},
    [PC_IMPORT_MEGATRON] = {"megatron", "Megatron-LM's arguments", pc_import_megatron},
    [PC_IMPORT_DEEPSPEED] = {"deepspeed", "a configuration of DeepSpeed", pc_import_deepspeed},
    [PC_IMPORT_NEMO] = {"nemo", "a recipe of NeMo or Megatron-Bridge", pc_import_nemo},
};

const char pc_import_format_names[] = "hf|megatron|nemo|deepspeed";

const char *pc_import_format_name(pc_import_format format) {
    return formats[format].name;
}

/* Names the file without its folders: the same file gives the same bytes wherever it lies. */
static void write(const pc_imported *import, pc_import_format format, const char *path, pc_import_text *made) {
    pc_text headline = {.data = NULL};
    const char *slash = strrchr(path, '/');
    pc_text_printf(&headline, "Imported from ");
    pc_text_add_line(&headline, slash ? slash + 1 : path, 80);
    pc_text_printf(&headline, ", %s.", formats[format].words);
    if (headline.failed)
        made->scenario.failed = true;
    else
        pc_imported_write_scenario(import, headline.data, &made->scenario);
    pc_imported_write_heading(import, &made->notes);
    pc_text_free(&headline);
}

/* Takes the source's text. */
static pc_code import(pc_import_format format, const char *path, pc_source *source, pc_import_text *made,
                      pc_error *error) {
    pc_imported import = {.count = 0};
    pc_imported_name_of_path(&import, path);
    pc_code code = formats[format].read(source, &import, error);
    if (!code) write(&import, format, path, made);
    if (!code && (made->scenario.failed || made->notes.failed)) code = pc_error_no_memory(error);
    pc_imported_free(&import);
    pc_source_free(source);
    return code;
}

pc_code pc_import_bytes(pc_import_format format, const char *path, const char *bytes, size_t size, pc_import_text *made,
                        pc_error *error) {
    pc_source source = {.text = NULL};
    pc_code code = pc_source_from_bytes(path, bytes, size, &source, error);
    return code ? code : import(format, path, &source, made, error);
}

pc_code pc_import_file(pc_import_format format, const char *path, pc_import_text *made, pc_error *error) {
    struct stat status;
    pc_source source = {.text = NULL};
    bool is_folder = format == PC_IMPORT_HF && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    char *file = is_folder ? pc_place_join(path, "config.json") : pc_strdup(path);
    if (!file) return pc_error_no_memory(error);
    pc_code code = pc_source_read_regular(file, formats[format].words, &source, error);
    if (!code) code = import(format, file, &source, made, error);
    pc_free(file);
    return code;
}

void pc_import_text_free(pc_import_text *text) {
    pc_text_free(&text->scenario);
    pc_text_free(&text->notes);
}
