/* pipecast schedule best: of all schedules with a name, the one that is shortest for measured stages. */
#include "cli/schedule_answer.h"

#include <string.h>

bool asks_for_best(const schedule_request *r) {
    return r->name && strcmp(r->name, "best") == 0;
}

/* Whether the stages can be run in the generator's order: whole microbatches in parts of the measured model, without
 * passes that were not measured. */
static bool suits(const schedule_request *r, const pc_generator *generator, int64_t chunks) {
    const pc_part_times *part = &r->measured.parts[0];
    bool has_split = part->time_ps[PC_PASS_B] != PC_TIME_NOT_GIVEN && part->time_ps[PC_PASS_W] != PC_TIME_NOT_GIVEN;
    if (!pc_placement_is_plain(generator->placement) || generator->recomputes) return false;
    if (generator->barriers != PC_BARRIERS_NONE || (generator->splits && !has_split)) return false;
    if (pc_generator_check(generator, r->devices, r->microbatches, chunks, NULL)) return false;
    int made = (int)pc_generator_chunks(generator, chunks, 0);
    return !pc_pass_times_suit(&r->measured, (int)r->devices, made, pc_generator_placement(generator, chunks, 0), NULL);
}

/* The user's, or those that were measured: who wants stages cut up further says so. */
static int64_t chunks_of(const schedule_request *r) {
    return r->chunks ? r->chunks : r->measured.chunks;
}

/* Takes the answer's place, if it fits and is shorter. */
static void keep_better(answer *best, answer *a, schedule_request *kept, const schedule_request *tried) {
    const pc_replay *now = &a->replay, *before = &best->replay;
    bool is_shorter = !best->schedule.passes || now->span_ps < before->span_ps ||
                      (now->span_ps == before->span_ps && now->peak_bytes < before->peak_bytes);
    bool is_better = judge_memory(a) == EXIT_DONE && is_shorter;
    if (!is_better) {
        free_answer(a);
        return;
    }
    free_answer(best);
    *kept = *tried;
    *best = *a;
    best->request = kept;
    best->report.schedule = &best->schedule;
    best->report.costs = &best->costs;
    best->report.replay = &best->replay;
    best->report.block = best->block.devices ? &best->block : NULL;
    best->report.improvement = kept->improves ? &best->improvement : NULL;
    best->report.steady = best->steady.microbatches ? &best->steady : NULL;
    best->report.robustness = draws_times(kept) ? &best->robustness : NULL;
}

static pc_code try_one(const schedule_request *r, const pc_generator *generator, schedule_request *kept, answer *best,
                       pc_error *error) {
    schedule_request tried = *r;
    answer a = {.request = &tried};
    int status = EXIT_DONE;
    tried.name = generator->name;
    tried.chunks = chunks_of(r);
    tried.keeps_quiet = true;
    pc_code code = work_out(&tried, &a, &status, error);
    if (code || status != EXIT_DONE)
        free_answer(&a);
    else
        keep_better(best, &a, kept, &tried);
    return code == PC_ERROR_INPUT ? PC_OK : code; /* it cannot be made so */
}

static pc_code check(const schedule_request *r, pc_error *error) {
    if (!r->times_file)
        return pc_error_set(error, PC_ERROR_INPUT, "best: no measured stages; expected --times FILE beside it");
    if (r->microbatches == 0)
        return pc_error_set(error, PC_ERROR_INPUT, "schedule: -m is missing; expected -m MICROBATCHES");
    if (r->making == PC_MAKING_COSTS) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "best: --making %s; expected costs", pc_making_names[r->making]);
}

pc_code find_best(const schedule_request *r, schedule_request *kept, answer *best, int *status, pc_error *error) {
    int count;
    const pc_generator *generators = pc_generators(&count);
    pc_code code = check(r, error);
    for (int i = 0; i < count && !code; i++)
        if (suits(r, &generators[i], chunks_of(r)))
            code = try_one(r, &generators[i], kept, best, error);
    if (code || best->schedule.passes) return code;
    report_usage("best: no schedule of these stages holds at most %s; expected more, or other stages",
                 r->memory_limit ? r->memory_limit : "that");
    *status = EXIT_DID_NOT_FIT;
    return PC_OK;
}
