#include "scenarios/references.h"

#include "engine/alloc.h"
#include "scenarios/block_file.h"
#include "scenarios/expert_counts_file.h"
#include "scenarios/import/imported.h"
#include "scenarios/pass_times_file.h"

#include <string.h>
#include <sys/stat.h>

/* "llama" of "llama/config.json" and of "llama/". */
static char *foreign_name(const char *text) {
    pc_imported name = {.count = 0};
    pc_imported_name_of_path(&name, text);
    return pc_strdup(name.name);
}

static bool is_foreign(const char *text) {
    size_t length = strlen(text);
    return (length > 5 && strcmp(text + length - 5, ".json") == 0) || (length > 1 && text[length - 1] == '/');
}

/* "dgx-h100" of "own/dgx-h100.yaml", with nothing in it that a run's name may not have. */
static char *short_name(const char *text) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *slash = strrchr(text, '/');
    if (is_foreign(text)) return foreign_name(text);
    char *name = pc_strdup(slash ? slash + 1 : text);
    if (!name) return NULL;
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".yaml") == 0) name[length - 5] = '\0';
    if (length > 3 && strcmp(name + length - 3, ".h5") == 0) name[length - 3] = '\0';
    for (char *c = name; *c; c++)
        if (!strchr(allowed, *c)) *c = '_';
    return name;
}

static pc_reference *find(pc_reference *list, pc_key key, const pc_place *place, const char *text) {
    for (; list; list = list->next)
        if (list->key == key && strcmp(list->text, text) == 0 && pc_place_equal(&list->place, place)) return list;
    return NULL;
}

/* "none", or a profile of the library: neither has a path. */
static bool is_word(pc_key key, const char *text) {
    return key == PC_KEY_PROFILE && (strcmp(text, "none") == 0 || pc_library_find(PC_LIBRARY_PROFILES, text));
}

/* A profile is not opened here: who runs the scenario does. */
static void find_profile(pc_reference *reference) {
    if (is_word(PC_KEY_PROFILE, reference->text)) return;
    reference->path = pc_place_join(reference->place.folder, reference->text);
    if (reference->path) pc_place_check(&reference->place, reference->text, reference->path, &reference->error);
}

/* A pipe or device that a scenario names could keep the program waiting. What is not there is for the reader to say. */
static pc_code check_regular(const char *path, pc_error *error) {
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return pc_error_set_file(error, PC_ERROR_INPUT, path, "is no regular file; expected a CSV file");
    return PC_OK;
}

static void read_data(pc_reference *reference) {
    pc_error *error = &reference->error;
    reference->path = pc_place_join(reference->place.folder, reference->text);
    if (!reference->path) {
        pc_error_no_memory(error);
        return;
    }
    if (pc_place_check(&reference->place, reference->text, reference->path, error)) return;
    if (reference->key == PC_KEY_PASS_TIMES)
        pc_pass_times_read(reference->path, &reference->pass_times, error);
    else if (!check_regular(reference->path, error))
        pc_expert_counts_read(reference->path, &reference->counts, error);
}

static void read_reference(pc_reference *reference) {
    const pc_place *place = &reference->place;
    if (reference->key == PC_KEY_PROFILE)
        find_profile(reference);
    else if (reference->key == PC_KEY_PASS_TIMES || reference->key == PC_KEY_MOE_LOAD_COUNTS)
        read_data(reference);
    else if (reference->key == PC_KEY_MODEL_FROM)
        pc_model_file_read(reference->text, place, &reference->model, &reference->error);
    else if (reference->key == PC_KEY_PRECISION)
        pc_precision_file_read(reference->text, place, &reference->recipe, NULL, &reference->error);
    else if (reference->key == PC_KEY_SOFTWARE)
        pc_software_file_read(reference->text, place, &reference->model, &reference->error);
    else if (reference->key == PC_KEY_OTHER_GPU)
        pc_gpu_file_read(reference->text, place, &reference->machine.gpu, &reference->error);
    else
        pc_machine_file_read(reference->text, place, &reference->machine, NULL, &reference->error);
}

/* Puts an empty one in front of the list, which owns it. */
static pc_code add(pc_reference **list, pc_key key, const pc_place *place, const char *text, pc_error *error) {
    pc_reference *reference = pc_alloc(1, sizeof *reference);
    if (!reference) return pc_error_no_memory(error);
    *reference = (pc_reference){.key = key, .text = text, .place = *place, .name = short_name(text), .next = *list};
    *list = reference;
    return reference->name ? PC_OK : pc_error_no_memory(error);
}

/* Of "block:STEPS:FILE" the file; else the text itself. */
static const char *path_of(const char *text) {
    return strncmp(text, "block:", 6) == 0 ? strchr(text + 6, ':') + 1 : text;
}

/* What keys.c has let through; a run has times of its own, and no grid. */
static pc_code read_block(pc_reference *reference, const char *steps, pc_error *error) {
    static const char *const words[PC_BLOCK_STEPS] = {"none:", "squeeze:", "reorder:"};
    pc_code code = pc_block_file_read(reference->path, &reference->block, error);
    for (int i = 0; i < PC_BLOCK_STEPS && !code; i++)
        if (strncmp(steps, words[i], strlen(words[i])) == 0)
            code = pc_given_block_set_steps(reference->block, (pc_block_steps)i, error);
    if (!code && pc_given_block_draft(reference->block)->steps == PC_BLOCK_NONE)
        code = pc_error_set(error, PC_ERROR_INPUT,
                            "%.200s: steps: none; expected {block: FILE, steps: squeeze} or reorder, for a run has "
                            "times of its own",
                            reference->path);
    return code;
}

static pc_code read_csv(pc_reference *reference, pc_error *error) {
    pc_code code = check_regular(reference->path, error);
    if (code) return code;
    return pc_given_schedule_read(reference->path, reference->name, &reference->schedule, error);
}

/* The file's own error stays with it. */
static pc_code read_schedule(pc_reference *reference, pc_error *error) {
    const char *text = reference->text, *path = path_of(text);
    pc_error *own = &reference->error;
    reference->path = pc_place_join(reference->place.folder, path);
    if (!reference->path) return pc_error_no_memory(error);
    pc_code code = pc_place_check(&reference->place, path, reference->path, own);
    if (code) return code;
    return path != text ? read_block(reference, text + 6, own) : read_csv(reference, own);
}

/* Text to generator. A file is read once, however often it is named, so that its generators are one. */
static pc_code find_schedule(pc_reference **list, const pc_place *place, pc_value *value, pc_error *error) {
    const char *text = value->text;
    pc_code code = PC_OK;
    value->generator = pc_generator_find(text);
    if (value->generator) return PC_OK;
    pc_reference *reference = find(*list, PC_KEY_SCHEDULE, place, text);
    if (!reference) {
        code = add(list, PC_KEY_SCHEDULE, place, text, error);
        if (!code) code = read_schedule(reference = *list, error);
        if (code == PC_ERROR_NO_MEMORY) return pc_error_no_memory(error);
    }
    if (reference->error.code) return pc_error_copy(error, &reference->error);
    value->generator = reference->block ? pc_given_block_generator(reference->block)
                                        : pc_given_schedule_generator(reference->schedule);
    return PC_OK;
}

static const pc_key looked_up[] = {PC_KEY_MODEL_FROM, PC_KEY_PRECISION,       PC_KEY_MACHINE,
                                   PC_KEY_SOFTWARE,   PC_KEY_PROFILE,         PC_KEY_OTHER_GPU,
                                   PC_KEY_PASS_TIMES, PC_KEY_MOE_LOAD_COUNTS, PC_KEY_SCHEDULE};
enum { LOOKED_UP = sizeof looked_up / sizeof *looked_up };

static bool is_looked_up(pc_key key) {
    for (int i = 0; i < LOOKED_UP; i++)
        if (looked_up[i] == key) return true;
    return false;
}

pc_code pc_reference_find(pc_reference **list, pc_key key, const pc_place *place, pc_value *value, pc_error *error) {
    if (key == PC_KEY_SCHEDULE) return find_schedule(list, place, value, error);
    if (!is_looked_up(key)) return PC_OK;
    pc_reference *reference = find(*list, key, place, value->text);
    if (!reference) {
        pc_code code = add(list, key, place, value->text, error);
        if (code) return code;
        reference = *list;
        read_reference(reference);
        bool has_path = key != PC_KEY_PROFILE || reference->path || is_word(key, value->text);
        if (reference->error.code == PC_ERROR_NO_MEMORY || !has_path) return pc_error_no_memory(error);
    }
    value->reference = reference;
    return PC_OK;
}

pc_code pc_references_find(pc_reference **list, const pc_place *place, pc_setting *setting, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < LOOKED_UP && !code; i++)
        if (setting->given[looked_up[i]])
            code = pc_reference_find(list, looked_up[i], place, &setting->value[looked_up[i]], error);
    return code;
}

void pc_references_free(pc_reference *list) {
    while (list) {
        pc_reference *next = list->next;
        pc_model_file_free(&list->model);
        pc_free(list->name);
        pc_free(list->path);
        pc_given_schedule_free(list->schedule);
        pc_given_block_free(list->block);
        pc_pass_times_free(&list->pass_times);
        pc_expert_counts_free(&list->counts);
        pc_free(list);
        list = next;
    }
}
