#include "scenarios/measured.h"

#include "engine/alloc.h"
#include "engine/names.h"
#include "scenarios/measured_arguments.h"
#include "storage/csv.h"
#include "storage/text_file.h"

#include <string.h>
#include <strings.h>

enum { FIELDS_MOST = 512 };

/* What a column may be called, the published tables' name first; pipecast's own tables' behind it. */
static const struct column_name {
    const char *name;
    pc_measured_column column;
} names[] = {
    {"model", PC_MEASURED_MODEL},
    {"system", PC_MEASURED_SYSTEM},
    {"machine", PC_MEASURED_SYSTEM},
    {"gpus", PC_MEASURED_GPUS},
    {"precision", PC_MEASURED_PRECISION},
    {"gbs", PC_MEASURED_GBS},
    {"global_batch", PC_MEASURED_GBS},
    {"mbs", PC_MEASURED_MBS},
    {"microbatch_size", PC_MEASURED_MBS},
    {"seq", PC_MEASURED_SEQ},
    {"seq_len", PC_MEASURED_SEQ},
    {"num_gpus", PC_MEASURED_GPUS},
    {"global_batch_size", PC_MEASURED_GBS},
    {"micro_batch_size", PC_MEASURED_MBS},
    {"seq_length", PC_MEASURED_SEQ},
    {"tensor_model_parallel_size", PC_MEASURED_TP},
    {"pipeline_model_parallel_size", PC_MEASURED_PP},
    {"virtual_pipeline_model_parallel_size", PC_MEASURED_VP},
    {"context_parallel_size", PC_MEASURED_CP},
    {"expert_model_parallel_size", PC_MEASURED_EP},
    {"expert_tensor_parallel_size", PC_MEASURED_ETP},
    {"fsdp_shard", PC_MEASURED_FSDP_SHARD},
    {"tp", PC_MEASURED_TP},
    {"pp", PC_MEASURED_PP},
    {"cp", PC_MEASURED_CP},
    {"vp", PC_MEASURED_VP},
    {"virtual_pp", PC_MEASURED_VP},
    {"ep", PC_MEASURED_EP},
    {"etp", PC_MEASURED_ETP},
    {"ga", PC_MEASURED_GA},
    {"zero", PC_MEASURED_ZERO},
    {"recompute", PC_MEASURED_RECOMPUTE},
    {"schedule", PC_MEASURED_SCHEDULE},
    {"variant", PC_MEASURED_VARIANT},
    {"task", PC_MEASURED_TASK},
    {"framework", PC_MEASURED_FRAMEWORK},
    {"software", PC_MEASURED_FRAMEWORK},
    {"release", PC_MEASURED_RELEASE},
    {"tokens_per_s_per_gpu", PC_MEASURED_TOKENS},
    {"step_s", PC_MEASURED_STEP},
    {"iteration_s", PC_MEASURED_STEP},
    {"memory_gib", PC_MEASURED_MEMORY},
    {"memory_gib_max", PC_MEASURED_MEMORY},
    {"memory_allocated_gb", PC_MEASURED_ALLOCATED},
    /* Known, and not read. */
    {"source", PC_MEASURED_COLUMNS},
    {"commit", PC_MEASURED_COLUMNS},
    {"tflops_per_gpu", PC_MEASURED_COLUMNS},
    {"mfu_percent", PC_MEASURED_COLUMNS},
    {"other_metric", PC_MEASURED_COLUMNS},
    {"other_value", PC_MEASURED_COLUMNS},
};

/* ---- columns ---- */

static int column_named(const pc_measured *m, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcasecmp(m->column[i], name) == 0) return i;
    return -1;
}

static bool is_setting(const char *name) {
    return strncasecmp(name, "setting.", 8) == 0 || pc_measured_key_of_argument(name) != NULL ||
           pc_measured_is_argument(name);
}

static void find_columns(pc_measured *m) {
    for (int c = 0; c < PC_MEASURED_COLUMNS; c++) m->at[c] = -1;
    for (int i = 0; i < m->column_count; i++) m->is_known[i] = is_setting(m->column[i]);
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        int i = column_named(m, m->column_count, names[n].name);
        if (i < 0) continue;
        bool is_free = names[n].column == PC_MEASURED_COLUMNS || m->at[names[n].column] < 0;
        m->is_known[i] = is_free;
        if (is_free && names[n].column != PC_MEASURED_COLUMNS) m->at[names[n].column] = i;
    }
}

static pc_code refuse_lack(const pc_measured *m, const char *name, int64_t line, pc_error *error) {
    char hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = name};
    for (int i = 0; i < m->column_count; i++) pc_nearest_offer(&nearest, m->column[i]);
    return pc_error_refuse(error, m->path, (unsigned)line, "",
                           "no column '%s'%s; expected a header with model, system and gpus", name,
                           pc_nearest_hint(&nearest, hint));
}

static pc_code check_columns(const pc_measured *m, int64_t line, pc_error *error) {
    static const struct {
        pc_measured_column column;
        const char *name;
    } needed[] = {{PC_MEASURED_MODEL, "model"}, {PC_MEASURED_SYSTEM, "system"}, {PC_MEASURED_GPUS, "gpus"}};
    for (int i = 0; i < m->column_count; i++)
        if (column_named(m, i, m->column[i]) >= 0)
            return pc_error_refuse(error, m->path, (unsigned)line, "", "the column '%.40s' twice; expected each once",
                                   m->column[i]);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (m->at[needed[i].column] < 0) return refuse_lack(m, needed[i].name, line, error);
    return PC_OK;
}

/* ---- records ---- */

static bool is_empty_line(char *const *field, int count) {
    return count == 1 && field[0][0] == '\0';
}

static pc_code read_header(pc_measured *m, pc_csv *csv, char **field, pc_error *error) {
    int count;
    do count = pc_csv_record(csv, field, FIELDS_MOST);
    while (count == 1 && field[0][0] == '\0');
    if (count == PC_CSV_END)
        return pc_error_set_file(error, PC_ERROR_INPUT, m->path, "empty; expected a header and a row a run");
    if (count < 0)
        return pc_error_refuse(error, m->path, (unsigned)csv->line, "",
                               count == PC_CSV_BAD_QUOTE ? "a quote that does not end its field; expected a header"
                                                         : "more than 512 columns; expected fewer");
    m->column = pc_alloc((size_t)count, sizeof *m->column);
    m->is_known = pc_alloc((size_t)count, sizeof *m->is_known);
    if (!m->column || !m->is_known) return pc_error_no_memory(error);
    memcpy(m->column, field, (size_t)count * sizeof *field);
    m->column_count = count;
    find_columns(m);
    return check_columns(m, csv->line, error);
}

static bool is_header(const pc_measured *m, char *const *field, int count) {
    for (int i = 0; i < count; i++)
        if (i == m->column_count || strcmp(m->column[i], field[i]) != 0) return false;
    return count == m->column_count;
}

static void say_bad_record(const pc_measured *m, int64_t line, int count, pc_measured_say *say, void *context) {
    pc_error error = {0};
    if (count == PC_CSV_BAD_QUOTE)
        pc_error_refuse(&error, m->path, (unsigned)line, "", "a quote that does not end its field; expected \"...\"");
    else if (count == PC_CSV_TOO_MANY)
        pc_error_refuse(&error, m->path, (unsigned)line, "", "more than 512 fields; expected %d, as in the header",
                        m->column_count);
    else
        pc_error_refuse(&error, m->path, (unsigned)line, "", "%d fields; expected %d, as in the header", count,
                        m->column_count);
    say(context, &error);
}

static pc_code add_row(pc_measured *m, char *const *field, int64_t line, int64_t *room, pc_error *error) {
    if (m->row_count == *room) {
        int64_t more = *room ? 2 * *room : 256;
        char **cells = pc_realloc(m->cell, (size_t)(more * m->column_count), sizeof *cells);
        if (cells) m->cell = cells;
        int64_t *lines = cells ? pc_realloc(m->line, (size_t)more, sizeof *lines) : NULL;
        if (!lines) return pc_error_no_memory(error);
        m->line = lines;
        *room = more;
    }
    memcpy(&m->cell[m->row_count * m->column_count], field, (size_t)m->column_count * sizeof *field);
    m->line[m->row_count++] = line;
    return PC_OK;
}

static pc_code read_rows(pc_measured *m, pc_csv *csv, char **field, pc_measured_say *say, void *context,
                         pc_error *error) {
    int64_t room = 0;
    pc_code code = PC_OK;
    for (int count; !code && (count = pc_csv_record(csv, field, FIELDS_MOST)) != PC_CSV_END;) {
        if (count > 0 && (is_empty_line(field, count) || is_header(m, field, count))) continue;
        if (count == m->column_count)
            code = add_row(m, field, csv->line, &room, error);
        else
            say_bad_record(m, csv->line, count, say, context);
    }
    return code;
}

pc_code pc_measured_read(const char *path, pc_measured_say *say, void *context, pc_measured *measured,
                         pc_error *error) {
    *measured = (pc_measured){.path = pc_strdup(path)};
    if (!measured->path) return pc_error_no_memory(error);
    pc_code code = pc_text_file_read(path, "a CSV of measured runs", &measured->text, error);
    if (code) return code;
    char **field = pc_alloc(FIELDS_MOST, sizeof *field);
    if (!field) return pc_error_no_memory(error);
    pc_csv csv = pc_csv_begin(measured->text);
    code = read_header(measured, &csv, field, error);
    if (!code) code = read_rows(measured, &csv, field, say, context, error);
    pc_free(field);
    return code;
}

/* Arguments of Megatron-LM and Megatron-Bridge that are settings here. */
const char *pc_measured_key_of_argument(const char *name) {
    static const char *const keys[][2] = {{"cuda_graph_impl", "cuda_graph_impl"},
                                          {"cuda_graph_scope", "cuda_graph_scope"},
                                          {"overlap_grad_reduce", "overlap.gradients"},
                                          {"overlap_param_gather", "overlap.parameters"},
                                          {"tp_comm_overlap", "overlap.tp_pieces"},
                                          {"sequence_parallel", "sequence_parallel"},
                                          {"moe_token_dispatcher_type", "moe_token_dispatcher_type"},
                                          {"moe_flex_dispatcher_backend", "moe_flex_dispatcher_backend"},
                                          {"moe_deepep_num_sms", "moe_deepep_num_sms"},
                                          {"moe_hybridep_num_sms", "moe_hybridep_num_sms"},
                                          {"moe_shared_expert_overlap", "moe_shared_expert_overlap"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcasecmp(keys[i][0], name) == 0) return keys[i][1];
    return NULL;
}

void pc_measured_free(pc_measured *measured) {
    pc_free(measured->path);
    pc_free(measured->text);
    pc_free(measured->column);
    pc_free(measured->is_known);
    pc_free(measured->cell);
    pc_free(measured->line);
    *measured = (pc_measured){0};
}

const char *pc_measured_cell(const pc_measured *measured, int64_t row, pc_measured_column column) {
    int at = measured->at[column];
    return at < 0 ? "" : measured->cell[row * measured->column_count + at];
}

const char *pc_measured_column_of_key(const pc_measured *measured, const char *key) {
    static const struct {
        const char *key;
        pc_measured_column column;
    } from[] = {{"model.from", PC_MEASURED_MODEL},
                {"model", PC_MEASURED_MODEL},
                {"model.seq_len", PC_MEASURED_SEQ},
                {"machine", PC_MEASURED_SYSTEM},
                {"global_batch", PC_MEASURED_GBS},
                {"microbatch_size", PC_MEASURED_MBS},
                {"chunks", PC_MEASURED_VP},
                {"model.layers", PC_MEASURED_VARIANT},
                {"model.precision", PC_MEASURED_PRECISION},
                {"microbatches", PC_MEASURED_GBS}};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        if (strcmp(from[i].key, key) == 0 && measured->at[from[i].column] >= 0)
            return measured->column[measured->at[from[i].column]];
    return key;
}
