#include "models/schedule/search/answers.h"

#include "engine/numbers.h"

#include <string.h>

pc_code pc_answers_create(const pc_instance *instance, const pc_costs *costs, pc_answers *answers, pc_error *error) {
    *answers = (pc_answers){.instance = instance};
    pc_code code = pc_reorder_create(instance, &answers->room, error);
    if (!code) code = pc_stage_links_create(instance, &costs->transfer, &answers->links, error);
    if (!code) code = pc_instance_order_create(instance, &answers->best, error);
    if (!code) code = pc_instance_order_create(instance, &answers->other, error);
    return code;
}

void pc_answers_free(pc_answers *answers) {
    pc_reorder_free(answers->room);
    pc_stage_links_free(answers->links);
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

/* At the costs; false if it cannot run, or breaks a limit. */
static bool judge(const pc_answers *answers, pc_instance_order *order) {
    if (!pc_reorder_squeeze(answers->room, order)) return false;
    if (answers->links) pc_stage_links_squeeze(answers->links, order);
    return true;
}

static void take_other(pc_answers *answers) {
    pc_instance_order best = answers->other;
    answers->other = answers->best;
    answers->best = best;
    answers->has_answer = true;
}

pc_time pc_answers_offer(pc_answers *answers, pc_schedule *schedule, pc_block *block) {
    pc_instance_pass *place = answers->other.pass;
    bool has_kinds = true;
    for (int64_t i = 0; i < schedule->offsets[schedule->devices]; i++) {
        has_kinds = has_kinds && (schedule->passes[i].kind != PC_PASS_BW || !answers->instance->splits);
        place = put_pass(answers->instance, schedule->passes[i], place);
    }
    bool is_valid = judge(answers, &answers->other);
    pc_time span = is_valid ? answers->other.span : INT64_MAX;
    if (is_valid && (!answers->has_answer || is_better(&answers->other, &answers->best))) {
        take_other(answers);
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

enum { WAYS = 12, ROUNDS = 24, KICKS = 400, PATIENCE = 80, FULL_PASSES = 1600, MOST_PASSES = 4096 };

/* Less of larger instances, so that the time grows no faster than they; kicks of small ones alone. */
static int scale(const pc_instance *instance, int number) {
    int64_t passes = instance->devices * instance->passes;
    return passes <= FULL_PASSES ? number : pc_max((int)(number * (int64_t)FULL_PASSES / passes), 1);
}

static void go_on(pc_answers *answers, int way, pc_time enough) {
    const pc_instance *instance = answers->instance;
    bool is_kick = way == WAYS;
    pc_instance_order_copy(instance, &answers->best, &answers->other);
    if (!pc_reorder_squeeze(answers->room, &answers->other)) return;
    if (is_kick)
        pc_reorder_kick(answers->room, scale(instance, KICKS), PATIENCE, way, enough, &answers->other);
    else
        pc_reorder_improve(answers->room, scale(instance, ROUNDS), way < 2 ? way : pc_reorder_drawn(way), enough,
                           &answers->other);
    if (judge(answers, &answers->other) && is_better(&answers->other, &answers->best)) take_other(answers);
}

void pc_answers_improve(pc_answers *answers, pc_time enough) {
    const pc_instance *instance = answers->instance;
    int ways = instance->devices * instance->passes > MOST_PASSES ? WAYS : WAYS + 1;
    for (int way = 0; way < ways && answers->best.span > enough; way++) go_on(answers, way, enough);
}

pc_code pc_answers_reach(const pc_answers *answers, const pc_instance *instance, pc_bound *bound, bool *is_reached,
                         pc_error *error) {
    *is_reached = false;
    if (!answers->has_answer) return PC_OK;
    return pc_bound_reach(bound, instance, answers->best.span, is_reached, error);
}
