#include "models/schedule/search/answers.h"

#include "models/schedule/search/bound.h"

#include <string.h>

pc_code pc_answers_create(const pc_plan *plan, pc_answers *answers, pc_error *error) {
    *answers = (pc_answers){.plan = plan, .least = pc_plan_least_span(plan)};
    pc_code code = pc_reorder_create(plan, &answers->room, error);
    if (!code) code = pc_plan_order_create(plan, &answers->best, error);
    if (!code) code = pc_plan_order_create(plan, &answers->other, error);
    return code;
}

void pc_answers_free(pc_answers *answers) {
    pc_reorder_free(answers->room);
    pc_plan_order_free(&answers->best);
    pc_plan_order_free(&answers->other);
    pc_block_free(&answers->block);
    memset(answers, 0, sizeof *answers);
}

/* Writes the passes of the plan that one of the schedule stands for; returns the place behind them. */
static pc_plan_pass *put_pass(const pc_plan *plan, pc_pass pass, pc_plan_pass *place) {
    if (pass.kind != PC_PASS_BW || !plan->splits) {
        *place++ = pc_plan_pass_make(pc_plan_type(plan, (pc_pass_kind)pass.kind, pass.chunk), pass.microbatch);
        return place;
    }
    *place++ = pc_plan_pass_make(pc_plan_type(plan, PC_PASS_B, pass.chunk), pass.microbatch);
    *place++ = pc_plan_pass_make(pc_plan_type(plan, PC_PASS_W, pass.chunk), pass.microbatch);
    return place;
}

static bool is_better(const pc_plan_order *a, const pc_plan_order *b) {
    if (a->span != b->span) return a->span < b->span;
    return a->makespan != b->makespan ? a->makespan < b->makespan : a->peak < b->peak;
}

pc_time pc_answers_offer(pc_answers *answers, pc_schedule *schedule, pc_block *block) {
    pc_plan_pass *place = answers->other.pass;
    bool has_kinds = true;
    for (int64_t i = 0; i < schedule->offsets[schedule->devices]; i++) {
        has_kinds = has_kinds && (schedule->passes[i].kind != PC_PASS_BW || !answers->plan->splits);
        place = put_pass(answers->plan, schedule->passes[i], place);
    }
    bool is_valid = pc_reorder_squeeze(answers->room, &answers->other);
    pc_time span = is_valid ? answers->other.span : INT64_MAX;
    if (is_valid && (!answers->has_answer || is_better(&answers->other, &answers->best))) {
        pc_plan_order best = answers->other;
        answers->other = answers->best;
        answers->best = best;
        answers->has_answer = true;
        pc_block_free(&answers->block);
        if (has_kinds) {
            answers->block = *block;
            *block = (pc_block){0};
        }
    }
    pc_schedule_free(schedule);
    pc_block_free(block);
    return span;
}

bool pc_answers_reach(const pc_answers *answers, pc_time least) {
    return answers->has_answer && answers->best.span <= least;
}
