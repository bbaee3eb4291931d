/* Plans of sequences of several lengths. */
#include "engine/alloc.h"
#include "scenarios/units.h"
#include "sweep/plan_questions.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double ROUNDED = 0.01 + 1e-9;
static const char expected[] = "lengths with their parts of the tokens, such as 8k:0.8,128k:0.2";

static int64_t longest_of(const pc_plan_mix *mix) {
    int64_t longest = 0;
    for (int i = 0; i < mix->count; i++)
        if (mix->length[i] > longest) longest = mix->length[i];
    return longest;
}

/* Parts that were rounded, such as three of 0.33, are made to add up to 1; what is further off is a mistake. */
static pc_code check(pc_plan_mix *mix, const char *text, pc_error *error) {
    double whole = 0.0;
    int64_t longest = longest_of(mix);
    for (int i = 0; i < mix->count; i++) {
        whole += mix->weight[i];
        if (longest % mix->length[i] != 0)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "%" PRId64 " does not divide %" PRId64 "; expected lengths that do", mix->length[i],
                                longest);
    }
    for (int i = 1; i < mix->count; i++)
        for (int k = 0; k < i; k++)
            if (mix->length[k] == mix->length[i])
                return pc_error_set(error, PC_ERROR_INPUT, "%" PRId64 ": stands twice; expected lengths that differ",
                                    mix->length[i]);
    if (!(fabs(whole - 1.0) <= ROUNDED))
        return pc_error_set(error, PC_ERROR_INPUT, "%.80s: the parts of the tokens add up to %.6g; expected 1", text,
                            whole);
    for (int i = 0; i < mix->count; i++) mix->weight[i] /= whole;
    return PC_OK;
}

static pc_code take_length(const char *entry, pc_plan_mix *mix, pc_error *error) {
    char length[32];
    const char *colon = strchr(entry, ':');
    if (!colon || colon - entry >= (ptrdiff_t)sizeof length || mix->count == PC_PLAN_LENGTHS_MOST)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: expected %s, at most %d", entry, expected,
                            PC_PLAN_LENGTHS_MOST);
    snprintf(length, sizeof length, "%.*s", (int)(colon - entry), entry);
    pc_code code = pc_parse_count(length, 1, INT32_MAX, &mix->length[mix->count], error);
    if (!code) code = pc_parse_number(colon + 1, &mix->weight[mix->count], error);
    if (!code) mix->count++;
    return code;
}

pc_code pc_plan_mix_parse(const char *text, pc_plan_mix *mix, pc_error *error) {
    pc_code code = PC_OK;
    *mix = (pc_plan_mix){.count = 0};
    for (const char *at = text; !code; at++) {
        char entry[64];
        size_t length = strcspn(at, ",");
        snprintf(entry, sizeof entry, "%.*s", (int)(length < sizeof entry ? length : sizeof entry - 1), at);
        code = take_length(entry, mix, error);
        at += length;
        if (*at == '\0') break;
    }
    return code ? code : check(mix, text, error);
}

/* ---- one plan ---- */

static pc_code run_length(const pc_plan_asker *asker, const pc_plan_row *plan, int64_t length, int64_t times,
                          pc_plan_row *row, pc_error *error) {
    pc_run_detail detail = {.devices = 0};
    pc_run_spec spec;
    pc_run_labels labels;
    pc_plan_choice choice = plan->found.choice;
    choice.microbatch_size *= times;
    choice.global_batch *= times;
    pc_code code = pc_plan_scenario_run_of_length(asker->scenario, &choice, length, 1, &spec, &labels, error);
    if (code) return code;
    code = pc_run_profiles_open(asker->profiles, &spec, error);
    if (!code) pc_run_profiles_use(asker->profiles, &spec);
    spec.trace = false;
    if (!code) code = pc_plan_row_run(&spec, &labels, row, &detail, error);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    return code;
}

/* All that goes by tokens a second takes so many times as long. */
static void scale(pc_run_row *row, double longer) {
    row->iteration_s *= longer;
    row->iteration_s_low *= longer;
    row->iteration_s_high *= longer;
    row->tokens_per_s_per_gpu /= longer;
    row->samples_per_s_per_gpu /= longer;
    row->gpu_hours_per_million_tokens *= longer;
    row->cost_per_million_tokens *= longer;
    row->training_days *= longer;
    row->training_gpu_hours *= longer;
    row->training_mwh *= longer;
    row->training_cost *= longer;
}

/* Seconds of a token are the parts' mean; FLOPs a second, so, those of each by its part of the time. */
static pc_code mix_plan(const pc_plan_asker *asker, const pc_plan_mix *mix, const pc_plan_row *plan, pc_plan_row *made,
                        pc_error *error) {
    double token_s = 0.0, flops = 0.0, memory = 0.0;
    int64_t longest = longest_of(mix);
    pc_code code = PC_OK;
    *made = *plan;
    made->command = NULL;
    made->part = PC_PLAN_PART_MIX;
    for (int i = 0; i < mix->count && !code; i++) {
        pc_plan_row row = {.part = PC_PLAN_PART_MIX};
        code = run_length(asker, plan, mix->length[i], longest / mix->length[i], &row, error);
        if (code) return code;
        if (row.row.status != PC_RUN_OK) {
            made->lacks_plan = true;
            made->row = row.row;
            return PC_OK;
        }
        token_s += mix->weight[i] / row.row.tokens_per_s_per_gpu;
        flops += mix->weight[i] / row.row.tokens_per_s_per_gpu * row.row.mfu;
        memory = fmax(memory, row.row.memory_gib_max);
    }
    scale(&made->row, token_s * plan->row.tokens_per_s_per_gpu);
    made->row.mfu = flops / token_s;
    made->row.hfu = made->row.tflops_per_gpu = made->row.hardware_tflops_per_gpu = NAN;
    made->row.memory_gib_max = memory;
    return code;
}

/* ---- all of them ---- */

static int compare_rows(const void *left, const void *right) {
    const pc_plan_row *a = left, *b = right;
    double of_a = a->lacks_plan ? 0.0 : a->row.tokens_per_s_per_gpu * (double)a->row.gpus;
    double of_b = b->lacks_plan ? 0.0 : b->row.tokens_per_s_per_gpu * (double)b->row.gpus;
    if (of_a != of_b) return of_a < of_b ? 1 : -1;
    return (a->row.run > b->row.run) - (a->row.run < b->row.run);
}

static pc_code check_longest(const pc_plan_asker *asker, const pc_plan_mix *mix, pc_error *error) {
    int count;
    int64_t planned = pc_plan_scenario_bases(asker->scenario, &count)->iteration.cut.seq_len;
    if (planned == longest_of(mix)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "the longest is %" PRId64 ", and plans are of %" PRId64 "; expected seq_len %" PRId64,
                        longest_of(mix), planned, longest_of(mix));
}

pc_code pc_plan_ask_mix(const pc_plan_asker *asker, const pc_plan_mix *mix, const pc_plan_row *plans, int64_t count,
                        pc_plan_cells *cells, pc_error *error) {
    pc_code code = check_longest(asker, mix, error);
    *cells = (pc_plan_cells){.part = PC_PLAN_PART_MIX};
    if (code) return code;
    cells->rows = pc_alloc((size_t)count, sizeof *cells->rows);
    if (!cells->rows) return pc_error_no_memory(error);
    for (int64_t i = 0; i < count && !code; i++) {
        pc_plan_row *row = &cells->rows[cells->count++];
        if (asker->say) asker->say(asker->self, i, count);
        code = mix_plan(asker, mix, &plans[i], row, error);
        row->row.run = i + 1;
        row->row.key[0] = '\0';
        snprintf(row->what, sizeof row->what, "plan %" PRId64, i + 1);
        snprintf(row->row.name, sizeof row->row.name, "mix.plan-%" PRId64, i + 1);
    }
    if (!code && count > 0) qsort(cells->rows, (size_t)count, sizeof *cells->rows, compare_rows);
    if (code) pc_plan_cells_free(cells);
    return code;
}
