/* Schedules as `pipecast schedule` makes them: by options. */
#include "api/handles.h"

#include "engine/alloc.h"
#include "engine/names.h"
#include "models/schedule/replay.h"
#include "results/schedule/answer.h"
#include "storage/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMATS = PC_SCHEDULE_BLOCK + 1 };

/* How a schedule was made; it does not move, for the answer points into itself. */
struct api_made_schedule {
    pc_schedule_request request;
    pc_schedule_answer answer;
    char *text[FORMATS]; /* what pipecast_schedule_report has given, of malloc; NULL: not yet */
};

void api_made_schedule_free(struct api_made_schedule *made) {
    if (!made) return;
    for (int i = 0; i < FORMATS; i++) free(made->text[i]);
    pc_schedule_answer_free(&made->answer);
    pc_schedule_request_free(&made->request);
    pc_free(made);
}

/* ---- options ---- */

static pc_code take_option(pc_schedule_request *r, const char *text, pc_error *error) {
    char key[64];
    const char *value = strchr(text, '=');
    size_t length = value ? (size_t)(value - text) : 0;
    snprintf(key, sizeof key, "%.*s", (int)(length < sizeof key ? length : sizeof key - 1), text);
    pc_schedule_option option = value ? pc_schedule_option_find(key) : PC_SCHEDULE_OPTIONS;
    if (option < PC_SCHEDULE_OPTIONS) return pc_schedule_request_set(r, option, value + 1, error);
    if (value)
        return pc_error_set(error, PC_ERROR_INPUT, "'%s': there is no such option of a schedule; expected %s", key,
                            pc_schedule_option_names());
    return pc_error_set(error, PC_ERROR_INPUT, "'%.40s': no '='; expected KEY=VALUE", text);
}

/* A name that ends in ".yaml" is the file of a block. */
static pc_code take_name(pc_schedule_request *r, const char *name, pc_error *error) {
    size_t length = name ? strlen(name) : 0;
    if (!name) return PC_OK;
    if (length > 5 && strcmp(name + length - 5, ".yaml") == 0)
        return pc_schedule_request_set(r, PC_ASK_BLOCK, name, error);
    return pc_schedule_request_name(r, name, error);
}

static pc_code make(const char *name, const char *const *options, size_t count, struct api_made_schedule *made,
                    pc_error *error) {
    pc_code code = take_name(&made->request, name, error);
    for (size_t i = 0; i < count && !code; i++) code = take_option(&made->request, options[i], error);
    if (!code) code = pc_schedule_request_complete(&made->request, error);
    if (!code) code = pc_schedule_answer_find(&made->request, &made->answer, error);
    return code ? code : pc_schedule_answer_check_memory(&made->answer, error);
}

int pipecast_schedule_make(const char *name, const char *const *options, size_t count, pipecast_schedule **schedule,
                           pipecast_error *error) {
    pc_error why = {0};
    pc_number_scope scope = {0};
    pipecast_schedule *handle = pc_alloc(1, sizeof *handle);
    struct api_made_schedule *made = pc_alloc(1, sizeof *made);
    pc_code code = handle && made ? PC_OK : pc_error_no_memory(&why);
    if (made) pc_schedule_request_init(&made->request, false);
    if (made) made->request.wants_block = true;
    if (!code && !pc_number_scope_enter(&scope)) code = pc_error_no_memory(&why);
    if (!code) {
        code = make(name, options, count, made, &why);
        pc_number_scope_leave(&scope);
    }
    if (code) {
        api_made_schedule_free(made);
        pc_free(handle);
    } else {
        *handle = (pipecast_schedule){.schedule = made->answer.schedule, .made = made};
        *schedule = handle;
    }
    return api_answer(code, &why, error);
}

/* ---- what it came to ---- */

static pc_code write_report(struct api_made_schedule *made, pc_schedule_format format, char **text, pc_error *error) {
    size_t size;
    FILE *stream = open_memstream(text, &size);
    if (!stream) return pc_error_no_memory(error);
    pc_code code = pc_schedule_answer_write(&made->answer, format, stream, error);
    if (fclose(stream) != 0 && !code) code = pc_error_no_memory(error);
    if (!code) return PC_OK;
    free(*text);
    *text = NULL;
    return code;
}

static pc_code report(pipecast_schedule *schedule, const char *format, const char **text, pc_error *error) {
    int index;
    pc_number_scope scope = {0};
    if (!schedule->made)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: not made by options, so that there is no report; expected one of "
                            "pipecast_schedule_make",
                            schedule->schedule.name);
    pc_code code = pc_word_choose("format", PC_SCHEDULE_FORMATS, format, &index, error);
    if (code) return code;
    char **kept = &schedule->made->text[index];
    if (!*kept && !pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    if (!*kept) {
        code = write_report(schedule->made, (pc_schedule_format)index, kept, error);
        pc_number_scope_leave(&scope);
    }
    if (!code) *text = *kept;
    return code;
}

int pipecast_schedule_report(pipecast_schedule *schedule, const char *format, const char **text,
                             pipecast_error *error) {
    pc_error why = {0};
    return api_answer(report(schedule, format, text, &why), &why, error);
}

/* ---- at its own costs ---- */

pc_code api_made_replay(const struct api_made_schedule *made, pipecast_replay *replay, pc_error *error) {
    const pc_schedule_answer *a = &made->answer;
    replay->time_unit_ps = a->report.time_unit_ps;
    replay->memory_unit_bytes = a->report.microbatch_bytes;
    return pc_schedule_answer_replay(a, true, &replay->record.replay, error);
}

pc_code api_made_bound(const struct api_made_schedule *made, double *bound, pc_error *error) {
    pc_time bound_ps;
    pc_code code = pc_schedule_answer_bound(&made->answer, &bound_ps, error);
    if (!code) *bound = bound_ps == PC_TIME_NOT_GIVEN ? NAN : (double)bound_ps / made->answer.report.time_unit_ps;
    return code;
}
