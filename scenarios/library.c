#include "scenarios/library.h"

#include "engine/alloc.h"
#include "engine/names.h"
#include "scenarios/import/hf.h"
#include "scenarios/library_private.h"
#include "scenarios/references.h"
#include "scenarios/sections.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What messages call the kinds; where no command lists them, the message does. */
static const struct {
    const char *one, *folder, *list, *file;
} words[PC_LIBRARY_KINDS] = {
    [PC_LIBRARY_MODELS] = {"model", "models", "`pipecast list models`", "a model file (YAML) or a config.json"},
    [PC_LIBRARY_MACHINES] = {"machine", "machines", "`pipecast list machines`", "a machine file (YAML)"},
    [PC_LIBRARY_GPUS] = {"GPU", "machines/gpus", NULL, "a GPU file (YAML)"},
    [PC_LIBRARY_SOFTWARE] = {"software", "software", "`pipecast list software`", "a file of settings (YAML)"},
    [PC_LIBRARY_PROFILES] = {"profile", "machines/profiles", "`pipecast list profiles`", "a profile (HDF5)"},
    [PC_LIBRARY_PRECISIONS] = {"precision", "precision", "`pipecast list precisions`", "a recipe's file (YAML)"},
};

const pc_library_file *pc_library_files(pc_library_kind kind, int *count) {
    *count = pc_library_embedded_count[kind];
    return pc_library_embedded[kind];
}

const pc_library_file *pc_library_find(pc_library_kind kind, const char *name) {
    int count;
    const pc_library_file *files = pc_library_files(kind, &count);
    for (int i = 0; i < count; i++)
        if (strcmp(files[i].name, name) == 0) return &files[i];
    return NULL;
}

static bool ends_in(const char *name, const char *end) {
    size_t length = strlen(name), size = strlen(end);
    return length > size && strcmp(name + length - size, end) == 0;
}

bool pc_library_is_path(const char *name) {
    return strchr(name, '/') || ends_in(name, ".yaml") || ends_in(name, ".json");
}

/* The GPU that a machine of the library has, as its text says; empty if it says none, for it stands on another. */
static void gpu_of(const pc_library_file *machine, char gpu[PC_NEAREST_NAME]) {
    const char *line = strstr(machine->text, "\ngpu: ");
    gpu[0] = '\0';
    if (line) snprintf(gpu, PC_NEAREST_NAME, "%.*s", (int)strcspn(line + 6, " \n"), line + 6);
}

/* " (did you mean ...?)"; of a machine also where the name is its GPU's, or a part of that: "h100". */
static const char *hint_of(pc_library_kind kind, const char *name, char text[PC_NEAREST_TEXT]) {
    int count;
    char gpu[PC_NEAREST_NAME];
    const pc_library_file *files = pc_library_files(kind, &count);
    pc_nearest nearest = {.word = name};
    for (int i = 0; i < count; i++) {
        pc_nearest_offer(&nearest, files[i].name);
        if (kind != PC_LIBRARY_MACHINES) continue;
        gpu_of(&files[i], gpu);
        pc_nearest_offer_as(&nearest, files[i].name, gpu);
    }
    return pc_nearest_hint(&nearest, text);
}

static void list_names(pc_library_kind kind, char *text, size_t size) {
    int count;
    size_t used = 0;
    const pc_library_file *files = pc_library_files(kind, &count);
    text[0] = '\0';
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", files[i].name);
}

static pc_code refuse_name(pc_library_kind kind, const char *name, pc_error *error) {
    char names[512], hint[PC_NEAREST_TEXT];
    list_names(kind, names, sizeof names);
    return pc_error_set(
        error, PC_ERROR_INPUT, "%.80s: no such %s in the library%s; expected one of %s, or a file such as ./own.yaml",
        *name ? name : "''", words[kind].one, hint_of(kind, name, hint), words[kind].list ? words[kind].list : names);
}

static pc_code open_embedded(pc_library_kind kind, const char *name, pc_source *source, pc_error *error) {
    char title[PC_SOURCE_NAME_SIZE];
    const pc_library_file *file = pc_library_find(kind, name);
    if (!file) return refuse_name(kind, name, error);
    snprintf(title, sizeof title, "library/%s/%s.yaml", words[kind].folder, name);
    return pc_source_from_text(title, file->text, source, error);
}

static pc_code open_file(pc_library_kind kind, const char *name, const char *path, const pc_place *place,
                         pc_source *source, pc_error *error) {
    pc_code code = pc_place_check(place, name, path, error);
    return code ? code : pc_source_read_regular(path, words[kind].file, source, error);
}

/* "FOLDER/config.json" of a model's folder, which it takes the place of. */
static pc_code enter_model_folder(char **path, pc_error *error) {
    struct stat status;
    if (stat(*path, &status) != 0 || !S_ISDIR(status.st_mode)) return PC_OK;
    char *file = pc_place_join(*path, "config.json");
    if (!file) return pc_error_no_memory(error);
    pc_free(*path);
    *path = file;
    return PC_OK;
}

/* A foreign model becomes a file of ours, of the same name in messages. */
static pc_code import_model(const char *path, pc_library_text *text, pc_error *error) {
    pc_imported import = {.count = 0};
    pc_text yaml = {.data = NULL};
    pc_source *source = &text->tree.source, own = {.text = NULL};
    char name[PC_SOURCE_NAME_SIZE];
    snprintf(name, sizeof name, "%s", source->name);
    pc_imported_name_of_path(&import, path);
    pc_code code = pc_import_hf(source, &import, error);
    if (!code) {
        pc_imported_write_model(&import, &yaml);
        pc_imported_write_heading(&import, &text->notes);
        if (yaml.failed || text->notes.failed) code = pc_error_no_memory(error);
    }
    if (!code) code = pc_source_from_bytes(name, yaml.data, yaml.size, &own, error);
    own.is_file = false; /* lines of the YAML mean nothing to the user */
    if (!code) *source = own;
    pc_text_free(&yaml);
    pc_imported_free(&import);
    return code;
}

static pc_code open_path(pc_library_kind kind, const char *name, char **path, const pc_place *place,
                         pc_library_text *text, pc_error *error) {
    bool is_model = kind == PC_LIBRARY_MODELS;
    pc_code code = is_model ? enter_model_folder(path, error) : PC_OK;
    if (!code) code = open_file(kind, name, *path, place, &text->tree.source, error);
    return code || !is_model || !ends_in(*path, ".json") ? code : import_model(*path, text, error);
}

pc_code pc_library_open(pc_library_kind kind, const char *name, const pc_place *place, const pc_schema *schema,
                        pc_library_text *text, pc_error *error) {
    pc_library_text made = {.folder = NULL};
    bool is_path = pc_library_is_path(name);
    char *path = is_path ? pc_place_join(place->folder, name) : NULL;
    pc_code code = is_path && !path ? pc_error_no_memory(error) : PC_OK;
    if (!code)
        code = is_path ? open_path(kind, name, &path, place, &made, error)
                       : open_embedded(kind, name, &made.tree.source, error);
    if (!code) code = pc_tree_build(&made.tree, error);
    if (!code) code = pc_schema_check(schema, &made.tree, error);
    if (!code) code = pc_place_enter(place, path, &made.folder, &made.place, error);
    pc_free(path);
    if (code)
        pc_library_text_free(&made);
    else
        *text = made;
    return code;
}

void pc_library_text_free(pc_library_text *text) {
    pc_tree_free(&text->tree);
    pc_free(text->folder);
    pc_text_free(&text->notes);
    *text = (pc_library_text){.folder = NULL};
}

/* ---- models ---- */

/* In a model's file its keys stand at the top. */
static const char *key_in_file(pc_key key) {
    if (key == PC_KEY_MODEL_NAME) return "model";
    const char *path = pc_key_path(key), *dot = strchr(path, '.');
    return dot ? dot + 1 : path;
}

static pc_code parse_value(const pc_tree *tree, pc_key key, const char *path, pc_setting *setting, pc_error *error) {
    const pc_node *node = pc_node_find(tree->nodes, path);
    if (!node) return PC_OK;
    pc_code code = pc_value_parse(key, node->text, &setting->value[key], error);
    setting->given[key] = !code;
    return pc_node_blame(tree, node, code, error);
}

static pc_code parse_model(const pc_tree *tree, pc_setting *setting, pc_error *error) {
    pc_code code = PC_OK;
    for (pc_key key = 0; key < PC_KEY_MODEL_END && !code; key++)
        code = parse_value(tree, key, key_in_file(key), setting, error);
    return code;
}

static pc_code parse_software(const pc_tree *tree, pc_setting *setting, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < pc_software_key_count && !code; i++)
        code = parse_value(tree, pc_software_keys[i], pc_key_path(pc_software_keys[i]), setting, error);
    return code;
}

typedef pc_code parse_file(const pc_tree *tree, pc_setting *setting, pc_error *error);

static pc_code read_file(pc_library_kind kind, const pc_schema *schema, parse_file *parse, const char *name,
                         const pc_place *place, pc_model_file *file, pc_error *error) {
    pc_library_text text;
    pc_setting setting = {.stages = NULL};
    pc_code code = pc_library_open(kind, name, place, schema, &text, error);
    if (code) return code;
    code = parse(&text.tree, &setting, error);
    pc_reference *references = NULL;
    if (!code && setting.given[PC_KEY_PRECISION]) {
        code = pc_reference_find(&references, PC_KEY_PRECISION, &text.place, &setting.value[PC_KEY_PRECISION], error);
        if (!code) references->place = (pc_place){.folder = NULL}; /* which the text takes with it */
    }
    if (!code) {
        *file = (pc_model_file){text.tree, setting, references, text.notes};
        text.tree = (pc_tree){.nodes = NULL};
        text.notes = (pc_text){.data = NULL};
    } else {
        pc_references_free(references);
    }
    pc_library_text_free(&text);
    return code;
}

pc_code pc_model_file_read(const char *name, const pc_place *place, pc_model_file *file, pc_error *error) {
    return read_file(PC_LIBRARY_MODELS, &pc_model_file_schema, parse_model, name, place, file, error);
}

pc_code pc_software_file_read(const char *name, const pc_place *place, pc_model_file *file, pc_error *error) {
    return read_file(PC_LIBRARY_SOFTWARE, &pc_software_schema, parse_software, name, place, file, error);
}

void pc_model_file_free(pc_model_file *file) {
    pc_references_free(file->references);
    pc_tree_free(&file->tree);
    pc_text_free(&file->notes);
    memset(file, 0, sizeof *file);
}

void pc_library_title(const pc_tree *tree, char title[PC_TITLE_SIZE]) {
    const char *own = pc_node_find_text(tree->nodes, "title");
    snprintf(title, PC_TITLE_SIZE, "%s", own ? own : "");
}

pc_code pc_library_load_model(const char *name, pc_library_model *model, pc_error *error) {
    pc_model_file file;
    pc_key culprit;
    pc_place place = pc_place_of_user();
    pc_code code = pc_model_file_read(name, &place, &file, error);
    if (code) return code;
    pc_library_model made = {.seq_len = pc_setting_whole(&file.setting, PC_KEY_SEQ_LEN, -1),
                             .global_batch = pc_setting_whole(&file.setting, PC_KEY_MODEL_BATCH, -1)};
    pc_library_title(&file.tree, made.title);
    code = pc_setting_model(&file.setting, &made.model, &culprit, error);
    if (code) pc_error_place(error, name, 0, culprit == PC_KEY_MODEL_END ? "model" : key_in_file(culprit));
    pc_model_file_free(&file);
    if (!code) *model = made;
    return code;
}

pc_code pc_library_load_software(const char *name, char title[PC_TITLE_SIZE], pc_error *error) {
    pc_model_file file;
    pc_place place = pc_place_of_user();
    pc_code code = pc_software_file_read(name, &place, &file, error);
    if (code) return code;
    pc_library_title(&file.tree, title);
    pc_model_file_free(&file);
    return PC_OK;
}

pc_code pc_library_load_machine(const char *name, pc_library_machine *machine, pc_error *error) {
    pc_library_machine made;
    pc_place place = pc_place_of_user();
    pc_code code = pc_machine_file_read(name, &place, &made.machine, made.title, error);
    if (!code) *machine = made;
    return code;
}

pc_code pc_library_load_gpu(const char *name, pc_gpu *gpu, pc_error *error) {
    pc_place place = pc_place_of_user();
    return pc_gpu_file_read(name, &place, gpu, error);
}
