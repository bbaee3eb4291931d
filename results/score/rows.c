#include "results/score/score.h"

#include <stddef.h>
#include <strings.h>

static const char *const status_names[] = {[PC_SCORE_OK] = "ok",
                                           [PC_SCORE_OUT_OF_MEMORY] = "out_of_memory",
                                           [PC_SCORE_INFEASIBLE] = "infeasible",
                                           [PC_SCORE_NOT_ASKED] = "not_asked",
                                           [PC_SCORE_BAD] = NULL};

const char *pc_score_status_name(pc_score_status status) {
    return status_names[status];
}

#define AT(member) PC_FIELD_AT(pc_score_row, member)
static const pc_field fields[] = {
    {"status", "", "whether it fits: ok, out_of_memory, infeasible, or not_asked", PC_FIELD_CHOICE, AT(status),
     .choices = status_names},
    {"missing", "", "features and facts without which it cannot be asked, with semicolons between", PC_FIELD_TEXT,
     AT(run.missing), .is_optional = true},
    {"measured_s", "s", "time of a step as measured: given, or from tokens per second", PC_FIELD_NUMBER,
     AT(run.step_s)},
    {"forecast_s", "s", "time of an iteration as forecast; of what does not fit, on a GPU with room enough",
     PC_FIELD_NUMBER, AT(forecast_s)},
    {"forecast_s_low", "s", "where an interval of 80% begins", PC_FIELD_NUMBER, AT(forecast_low_s)},
    {"forecast_s_high", "s", "where it ends", PC_FIELD_NUMBER, AT(forecast_high_s)},
    {"error", "1", "forecast over measured time, less one", PC_FIELD_NUMBER, AT(error)},
    {"memory_gib_forecast", "GiB", "memory of the fullest GPU as forecast", PC_FIELD_NUMBER, AT(forecast_gib)},
    {"memory_error", "1", "forecast over measured memory, less one", PC_FIELD_NUMBER, AT(memory_error)},
    {"memory_gib_low", "GiB", "where an interval of 80% of the memory begins", PC_FIELD_NUMBER, AT(forecast_gib_low)},
    {"memory_gib_high", "GiB", "where it ends", PC_FIELD_NUMBER, AT(forecast_gib_high)},
    {"kind", "", "what the run is compared as: family of GPUs, software, sharding", PC_FIELD_TEXT, AT(kind),
     .is_optional = true},
    {"basis", "", "the measured runs that the interval of the time is learned from", PC_FIELD_TEXT, AT(basis),
     .is_optional = true},
    {"message", "", "why it is infeasible or out of memory", PC_FIELD_TEXT, AT(message), .is_optional = true},
};

const pc_field *pc_score_fields(int *count) {
    *count = sizeof fields / sizeof *fields;
    return fields;
}

bool pc_score_is_column(const char *name) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcasecmp(fields[i].name, name) == 0) return true;
    return false;
}

void pc_score_row_judge(pc_score_row *row) {
    row->error = row->forecast_s / row->run.step_s - 1.0;
    row->memory_error = row->forecast_gib / row->run.memory_gib - 1.0;
}
