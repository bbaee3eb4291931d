#include "api/handles.h"

#include "engine/alloc.h"
#include "models/schedule/generate.h"
#include "scenarios/key_list.h"
#include "scenarios/library.h"
#include "scenarios/setting_flags.h"

#include <stdio.h>
#include <string.h>

typedef struct list_row {
    char name[128], words[512], value[256], otherwise[192], option[64], sweep[64];
} list_row;

static const pc_field list_fields[] = {
    {"name", "", "what it is called", PC_FIELD_TEXT, PC_FIELD_AT(list_row, name)},
    {"words", "", "what it is", PC_FIELD_TEXT, PC_FIELD_AT(list_row, words)},
    {"value", "", "what may stand there", PC_FIELD_TEXT, PC_FIELD_AT(list_row, value)},
    {"otherwise", "", "what it is if it is not given", PC_FIELD_TEXT, PC_FIELD_AT(list_row, otherwise)},
    {"option", "", "the option of `pipecast run` that gives it, without its dashes", PC_FIELD_TEXT,
     PC_FIELD_AT(list_row, option)},
    {"sweep", "", "the key of `sweep:` that lists values of it", PC_FIELD_TEXT, PC_FIELD_AT(list_row, sweep)},
};
enum { SETTING_FIELDS = 6, OTHER_FIELDS = 2 };

static void write_row(const char *name, const char *words, list_row *row) {
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->words, sizeof row->words, "%s", words);
}

static pc_code make_rows(int64_t count, list_row **rows, pc_error *error) {
    *rows = pc_alloc((size_t)count, sizeof **rows);
    return *rows ? PC_OK : pc_error_no_memory(error);
}

static pc_code list_schedules(list_row **rows, int64_t *row_count, pc_error *error) {
    int count;
    const pc_generator *generators = pc_generators(&count);
    pc_code code = make_rows(count, rows, error);
    for (int i = 0; i < count && !code; i++) write_row(generators[i].name, generators[i].summary, &(*rows)[i]);
    *row_count = count;
    return code;
}

/* A model's or a machine's words are its title. */
static pc_code load_title(pc_library_kind kind, const char *name, list_row *row, pc_error *error) {
    pc_library_model model;
    pc_library_machine machine;
    pc_code code = kind == PC_LIBRARY_MODELS ? pc_library_load_model(name, &model, error)
                                             : pc_library_load_machine(name, &machine, error);
    if (!code) write_row(name, kind == PC_LIBRARY_MODELS ? model.title : machine.title, row);
    return code;
}

static pc_code list_library(pc_library_kind kind, list_row **rows, int64_t *row_count, pc_error *error) {
    int count;
    const pc_library_file *files = pc_library_files(kind, &count);
    pc_code code = make_rows(count, rows, error);
    for (int i = 0; i < count && !code; i++) code = load_title(kind, files[i].name, &(*rows)[i], error);
    *row_count = count;
    return code;
}

/* What can be swept and has no option says so too. */
static void name_option(const pc_setting_flag *flags, int flag_count, list_row *row) {
    const char *sweep = pc_scenario_sweep_of(row->name);
    snprintf(row->sweep, sizeof row->sweep, "%s", sweep ? sweep : "");
    for (int i = 0; i < flag_count; i++)
        if (strcmp(flags[i].key, row->name) == 0) snprintf(row->option, sizeof row->option, "%s", flags[i].name);
}

static pc_code list_settings(list_row **rows, int64_t *row_count, pc_error *error) {
    pc_scenario_key *keys;
    pc_setting_flag flags[PC_SETTING_FLAGS_MAX];
    int count, flag_count = pc_setting_flags(flags);
    pc_code code = pc_scenario_keys(&keys, &count, error);
    if (code) return code;
    code = make_rows(count, rows, error);
    for (int i = 0; i < count && !code; i++) {
        if (keys[i].section != PC_KEYS_OF_SETTING) continue;
        list_row *row = &(*rows)[(*row_count)++];
        write_row(keys[i].path, keys[i].description, row);
        snprintf(row->value, sizeof row->value, "%s", keys[i].value);
        snprintf(row->otherwise, sizeof row->otherwise, "%s", keys[i].otherwise);
        name_option(flags, flag_count, row);
    }
    pc_scenario_keys_free(keys);
    return code;
}

static pc_code list(int subject, list_row **rows, int64_t *count, pc_error *error) {
    switch (subject) {
    case PIPECAST_SCHEDULES:
        return list_schedules(rows, count, error);
    case PIPECAST_MODELS:
        return list_library(PC_LIBRARY_MODELS, rows, count, error);
    case PIPECAST_MACHINES:
        return list_library(PC_LIBRARY_MACHINES, rows, count, error);
    case PIPECAST_SETTINGS:
        return list_settings(rows, count, error);
    default:
        return pc_error_set(error, PC_ERROR_INPUT, "subject %d: there is none; expected 0 to %d", subject,
                            PIPECAST_SETTINGS);
    }
}

int pipecast_list(int subject, pipecast_results **result, pipecast_error *error) {
    pc_error why = {0};
    list_row *rows = NULL;
    int64_t count = 0;
    pc_code code = list(subject, &rows, &count, &why);
    pipecast_results *made = code ? NULL : api_results_create(count);
    if (!code && !made) code = pc_error_no_memory(&why);
    if (code) {
        pc_free(rows);
        return api_answer(code, &why, error);
    }
    made->rows = rows;
    api_results_add(made, list_fields, subject == PIPECAST_SETTINGS ? SETTING_FIELDS : OTHER_FIELDS, rows,
                    sizeof *rows);
    *result = made;
    return PIPECAST_OK;
}
