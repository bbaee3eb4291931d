/* `best`: of all schedules with a name, the one that is shortest for measured stages. */
#include "results/schedule/schedule_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool pc_schedule_asks_for_best(const pc_schedule_request *r) {
    return r->name && strcmp(r->name, "best") == 0;
}

/* Whether the stages can be run in the generator's order: whole microbatches in parts of the measured model, without
 * passes that were not measured. */
static bool suits(const pc_schedule_request *r, const pc_generator *generator, int64_t chunks) {
    const pc_part_times *part = &r->measured.parts[0];
    bool has_split = part->time_ps[PC_PASS_B] != PC_TIME_NOT_GIVEN && part->time_ps[PC_PASS_W] != PC_TIME_NOT_GIVEN;
    if (!pc_placement_is_plain(generator->placement) || generator->recomputes) return false;
    if (generator->barriers != PC_BARRIERS_NONE || (generator->splits && !has_split)) return false;
    if (pc_generator_check(generator, r->devices, r->microbatches, chunks, NULL)) return false;
    int made = (int)pc_generator_chunks(generator, chunks, 0);
    return !pc_pass_times_suit(&r->measured, (int)r->devices, made, pc_generator_placement(generator, chunks, 0), NULL);
}

/* The user's, or those that were measured: who wants stages cut up further says so. */
static int64_t chunks_of(const pc_schedule_request *r) {
    return r->chunks ? r->chunks : r->measured.chunks;
}

/* What became of the orders so far. */
typedef struct trials {
    pc_schedule_answer *best;
    pc_error cause; /* of the first that could not be made, for another reason than memory */
    bool is_short;  /* one was short of memory */
    double enough;  /* the least that is known to do for one of these; 0: none is */
} trials;

static void note_shortage(trials *so_far, const pc_schedule_answer *a) {
    so_far->is_short = true;
    if (a->enough > 0 && (so_far->enough == 0 || a->enough < so_far->enough)) so_far->enough = a->enough;
}

/* Takes the best one's place, if it is shorter. */
static void keep_better(trials *so_far, pc_schedule_answer *a) {
    pc_schedule_answer *best = so_far->best;
    const pc_replay *now = &a->replay, *before = &best->replay;
    bool is_shorter = !best->schedule.passes || now->span_ps < before->span_ps ||
                      (now->span_ps == before->span_ps && now->peak_bytes < before->peak_bytes);
    if (!is_shorter) {
        pc_schedule_answer_free(a);
        return;
    }
    pc_schedule_answer_free(best);
    *best = *a;
    pc_schedule_link_report(best);
}

static pc_code try_one(const pc_schedule_request *r, const pc_generator *generator, trials *so_far, pc_error *error) {
    pc_schedule_answer a = {.request = *r};
    pc_error cause = {0};
    a.request.name = generator->name;
    a.request.chunks = chunks_of(r);
    pc_code code = pc_schedule_work_out(&a, &cause);
    if (!code) code = pc_schedule_answer_check_memory(&a, &cause);
    if (!code) {
        keep_better(so_far, &a);
        return PC_OK;
    }
    if (a.does_not_fit)
        note_shortage(so_far, &a);
    else if (!so_far->cause.message[0])
        so_far->cause = cause;
    pc_schedule_answer_free(&a);
    if (code == PC_ERROR_INPUT) return PC_OK; /* it cannot be made so */
    if (error) *error = cause;
    return code;
}

/* That all are short of memory is an answer; that a word of the request is wrong is what each of them says. */
static pc_code refuse(const pc_schedule_request *r, const trials *so_far, pc_error *error) {
    char least[48] = "more";
    if (!so_far->is_short && so_far->cause.message[0]) {
        if (error) *error = so_far->cause;
        return PC_ERROR_INPUT;
    }
    if (!so_far->is_short)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "best: no schedule has %d devices with %" PRId64
                            " chunks as measured; expected other stages",
                            (int)r->devices, chunks_of(r));
    so_far->best->does_not_fit = true;
    if (so_far->enough > 0 && !strchr(r->memory_limit, ','))
        snprintf(least, sizeof least, "at least %.4g%s", so_far->enough, pc_schedule_counts_bytes(r) ? "GiB" : "");
    return pc_error_set(error, PC_ERROR_INPUT,
                        "best: no schedule of these stages holds at most %s; expected %s, or other stages",
                        r->memory_limit, least);
}

static pc_code check(const pc_schedule_request *r, pc_error *error) {
    const char *times = pc_schedule_option_name(r, PC_ASK_TIMES), *m = pc_schedule_option_name(r, PC_ASK_MICROBATCHES);
    if (!r->times_file)
        return pc_error_set(error, PC_ERROR_INPUT, "best: no measured stages; expected %s FILE beside it", times);
    if (r->microbatches == 0)
        return pc_error_set(error, PC_ERROR_INPUT, "schedule: %s is missing; expected %s MICROBATCHES", m, m);
    if (r->making == PC_MAKING_COSTS) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "best: %s %s; expected costs", pc_schedule_option_name(r, PC_ASK_MAKING),
                        pc_making_names[r->making]);
}

pc_code pc_schedule_find_best(const pc_schedule_request *r, pc_schedule_answer *best, pc_error *error) {
    int count;
    const pc_generator *generators = pc_generators(&count);
    trials so_far = {.best = best};
    pc_code code = check(r, error);
    if (!code) code = pc_pass_times_suit(&r->measured, (int)r->devices, r->measured.chunks, PC_PLACEMENT_LINEAR, error);
    for (int i = 0; i < count && !code; i++)
        if (suits(r, &generators[i], chunks_of(r))) code = try_one(r, &generators[i], &so_far, error);
    return code || best->schedule.passes ? code : refuse(r, &so_far, error);
}
