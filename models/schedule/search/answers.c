#include "models/schedule/search/answers.h"

#include <string.h>

pc_code pc_answers_create(const pc_instance *instance, pc_answers *answers, pc_error *error) {
    *answers = (pc_answers){.instance = instance};
    pc_code code = pc_reorder_create(instance, &answers->room, error);
    if (!code) code = pc_instance_order_create(instance, &answers->best, error);
    if (!code) code = pc_instance_order_create(instance, &answers->other, error);
    return code;
}

void pc_answers_free(pc_answers *answers) {
    pc_reorder_free(answers->room);
    pc_instance_order_free(&answers->best);
    pc_instance_order_free(&answers->other);
    pc_block_free(&answers->block);
    memset(answers, 0, sizeof *answers);
}

/* Writes the passes of the instance that one of the schedule stands for; returns the place behind them. */
static pc_instance_pass *put_pass(const pc_instance *instance, pc_pass pass, pc_instance_pass *place) {
    if (pass.kind != PC_PASS_BW || !instance->splits) {
        *place++ =
            pc_instance_pass_make(pc_instance_type(instance, (pc_pass_kind)pass.kind, pass.chunk), pass.microbatch);
        return place;
    }
    *place++ = pc_instance_pass_make(pc_instance_type(instance, PC_PASS_B, pass.chunk), pass.microbatch);
    *place++ = pc_instance_pass_make(pc_instance_type(instance, PC_PASS_W, pass.chunk), pass.microbatch);
    return place;
}

static bool is_better(const pc_instance_order *a, const pc_instance_order *b) {
    if (a->span != b->span) return a->span < b->span;
    return a->makespan != b->makespan ? a->makespan < b->makespan : a->peak < b->peak;
}

pc_time pc_answers_offer(pc_answers *answers, pc_schedule *schedule, pc_block *block) {
    pc_instance_pass *place = answers->other.pass;
    bool has_kinds = true;
    for (int64_t i = 0; i < schedule->offsets[schedule->devices]; i++) {
        has_kinds = has_kinds && (schedule->passes[i].kind != PC_PASS_BW || !answers->instance->splits);
        place = put_pass(answers->instance, schedule->passes[i], place);
    }
    bool is_valid = pc_reorder_squeeze(answers->room, &answers->other);
    pc_time span = is_valid ? answers->other.span : INT64_MAX;
    if (is_valid && (!answers->has_answer || is_better(&answers->other, &answers->best))) {
        pc_instance_order best = answers->other;
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

pc_code pc_answers_reach(const pc_answers *answers, const pc_instance *instance, pc_bound *bound, bool *is_reached,
                         pc_error *error) {
    *is_reached = false;
    if (!answers->has_answer) return PC_OK;
    return pc_bound_reach(bound, instance, answers->best.span, is_reached, error);
}
