/* `best`: of all schedules with a name, the one that is shortest for measured stages. */
#include "results/schedule/schedule_private.h"

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

/* Takes the answer's place, if it fits and is shorter. */
static void keep_better(pc_schedule_answer *best, pc_schedule_answer *a) {
    const pc_replay *now = &a->replay, *before = &best->replay;
    bool is_shorter = !best->schedule.passes || now->span_ps < before->span_ps ||
                      (now->span_ps == before->span_ps && now->peak_bytes < before->peak_bytes);
    if (!is_shorter || pc_schedule_answer_check_memory(a, NULL)) {
        pc_schedule_answer_free(a);
        return;
    }
    pc_schedule_answer_free(best);
    *best = *a;
    pc_schedule_link_report(best);
}

static pc_code try_one(const pc_schedule_request *r, const pc_generator *generator, pc_schedule_answer *best,
                       pc_error *error) {
    pc_schedule_answer a = {.request = *r};
    a.request.name = generator->name;
    a.request.chunks = chunks_of(r);
    pc_code code = pc_schedule_work_out(&a, error);
    if (code)
        pc_schedule_answer_free(&a);
    else
        keep_better(best, &a);
    return code == PC_ERROR_INPUT ? PC_OK : code; /* it cannot be made so */
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
    pc_code code = check(r, error);
    for (int i = 0; i < count && !code; i++)
        if (suits(r, &generators[i], chunks_of(r))) code = try_one(r, &generators[i], best, error);
    if (code || best->schedule.passes) return code;
    best->does_not_fit = true;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "best: no schedule of these stages holds at most %s; expected more, or other stages",
                        r->memory_limit ? r->memory_limit : "that");
}
