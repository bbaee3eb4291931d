/* The memory limit: read, compared with what orders need, and refused if it is too little. */
#include "results/schedule/schedule_private.h"

#include "engine/alloc.h"
#include "models/schedule/dependencies.h"
#include "scenarios/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double pc_schedule_answer_memory(const pc_schedule_answer *a, int64_t bytes) {
    return (double)bytes / a->report.microbatch_bytes;
}

pc_memory_limit pc_schedule_limit(const pc_schedule_answer *a) {
    return (pc_memory_limit){a->limit_bytes};
}

pc_memory_limit pc_schedule_limit_of_replay(const pc_schedule_answer *a) {
    return a->request.waits_for_memory ? pc_schedule_limit(a) : (pc_memory_limit){NULL};
}

/* ---- reading ---- */

static pc_code read_limit(const pc_schedule_request *r, const char *word, int device, double *limit, pc_error *error) {
    char *end;
    if (pc_schedule_counts_bytes(r)) return pc_schedule_read_size(r, word, device, limit, error);
    *limit = strtod(word, &end);
    if (end != word && *end == '\0' && *limit >= 0.0) return PC_OK; /* not a NaN either */
    if (r->times_file && end != word && !pc_parse_size(word, &(int64_t){0}, NULL))
        return pc_schedule_refuse(r, PC_ASK_MEMORY_LIMIT, error,
                                  "%s, but the file of passes has no activation; expected a number of microbatches, or "
                                  "activation: in the file",
                                  word);
    return pc_schedule_refuse(r, PC_ASK_MEMORY_LIMIT, error, "'%s'; expected a number from 0 up, or one a device",
                              word);
}

static pc_code read_limits(const pc_schedule_request *r, char *text, int devices, double *limit, pc_error *error) {
    int count = 0;
    for (char *word; (word = strsep(&text, ",")); count++) {
        double number;
        pc_code code = read_limit(r, word, count < devices ? count : 0, &number, error);
        if (code) return code;
        if (count < devices) limit[count] = number;
    }
    if (count != 1 && count != devices)
        return pc_schedule_refuse(r, PC_ASK_MEMORY_LIMIT, error,
                                  "%d numbers; expected one, or one for each of %d devices", count, devices);
    pc_code code = PC_OK;
    for (int d = 1; d < devices && count == 1 && !code; d++)
        code = read_limit(r, r->memory_limit, d, &limit[d], error); /* of bytes less what the device holds */
    return code;
}

/* Of every device, in microbatches, into limit[0 .. devices-1]: infinite where none was given. */
static pc_code read_limits_of(const pc_schedule_request *r, int devices, double *limit, pc_error *error) {
    for (int d = 0; d < devices; d++) limit[d] = INFINITY;
    if (!r->memory_limit) return PC_OK;
    char *copy = pc_strdup(r->memory_limit);
    if (!copy) return pc_error_no_memory(error);
    pc_code code = read_limits(r, copy, devices, limit, error);
    pc_free(copy);
    return code;
}

/* In bytes; what no memory has is no limit. */
static pc_code count_limits(pc_schedule_answer *a, int devices, pc_error *error) {
    if (!a->request.memory_limit) return PC_OK;
    a->limit_bytes = pc_alloc((size_t)devices, sizeof *a->limit_bytes);
    if (!a->limit_bytes) return pc_error_no_memory(error);
    for (int d = 0; d < devices; d++)
        a->limit_bytes[d] = a->limit[d] < 0.0   ? 0
                            : a->limit[d] < 1e9 ? (int64_t)(a->limit[d] * a->report.microbatch_bytes)
                                                : PC_NO_LIMIT;
    return PC_OK;
}

pc_code pc_schedule_read_limits(pc_schedule_answer *a, int devices, pc_error *error) {
    a->limit = pc_alloc((size_t)devices, sizeof *a->limit);
    if (!a->limit) return pc_error_no_memory(error);
    pc_code code = read_limits_of(&a->request, devices, a->limit, error);
    return code ? code : count_limits(a, devices, error);
}

/* ---- refusing ---- */

/* Of measured passes the limit is of all that a device holds. */
static pc_code refuse_bytes(pc_schedule_answer *a, int device, double enough, pc_error *error) {
    int64_t held = a->report.held_bytes && a->report.held_bytes[device] > 0 ? a->report.held_bytes[device] : 0;
    double held_gib = pc_schedule_answer_memory(a, held);
    a->enough = enough + held_gib;
    return pc_schedule_refuse(&a->request, PC_ASK_MEMORY_LIMIT, error,
                              "%s is too little for %s: device %d needs %.4g GiB for activations and holds %.4g GiB "
                              "beside; expected at least %.4gGiB",
                              a->request.memory_limit, a->request.name, device, enough, held_gib, enough + held_gib);
}

pc_code pc_schedule_refuse_limit(pc_schedule_answer *a, int device, double enough, pc_error *error) {
    char least[32], where[48] = ""; /* as many digits as it takes to be accepted */
    a->does_not_fit = true;
    a->enough = enough;
    if (pc_schedule_counts_bytes(&a->request)) return refuse_bytes(a, device, enough, error);
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(least, sizeof least, "%.*g", digits, enough);
        if (strtod(least, NULL) >= enough) break;
    }
    if (strchr(a->request.memory_limit, ',')) snprintf(where, sizeof where, " on device %d", device);
    return pc_schedule_refuse(&a->request, PC_ASK_MEMORY_LIMIT, error,
                              "%.6g is too little for %s%s; expected at least %s", a->limit[device], a->request.name,
                              where, least);
}

pc_code pc_schedule_refuse_standstill(pc_schedule_answer *a, pc_error *error) {
    const pc_out_of_memory *oom = &a->replay.oom;
    char name[PC_PASS_NAME_SIZE];
    a->does_not_fit = true;
    pc_pass_name(&a->schedule, oom->pass, name);
    return pc_schedule_refuse(
        &a->request, PC_ASK_MEMORY_LIMIT, error,
        "%.6g is too little for %s: %s on device %d waits for %.6g where %.6g are held, and nothing else can run",
        a->limit[oom->device], a->request.name, name, oom->device, pc_schedule_answer_memory(a, oom->requested_bytes),
        pc_schedule_answer_memory(a, oom->level_bytes));
}

pc_code pc_schedule_check_limits(pc_schedule_answer *a, const pc_generator *generator, pc_error *error) {
    for (int d = 0; d < a->costs.devices; d++) {
        double least = pc_schedule_answer_memory(a, pc_generator_least_memory(generator, &a->costs, d));
        if (least > a->limit[d]) return pc_schedule_refuse_limit(a, d, least, error);
    }
    return PC_OK;
}

/* By how much a device is above its limit; below zero if it is not. */
static double excess_of(const pc_schedule_answer *a, int device) {
    return pc_schedule_answer_memory(a, a->replay.device_peak_bytes[device]) - a->limit[device];
}

pc_code pc_schedule_answer_check_memory(pc_schedule_answer *a, pc_error *error) {
    int worst = 0;
    for (int d = 1; d < a->schedule.devices; d++)
        if (excess_of(a, d) > excess_of(a, worst)) worst = d;
    double held = pc_schedule_answer_memory(a, a->replay.device_peak_bytes[worst]);
    return held <= a->limit[worst] ? PC_OK : pc_schedule_refuse_limit(a, worst, held, error);
}
