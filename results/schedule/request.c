#include "results/schedule/schedule_private.h"

#include "engine/alloc.h"
#include "engine/names.h"
#include "models/workload/activation_memory.h"
#include "scenarios/units.h"

#include <string.h>

static const struct {
    const char *key, *option,
        *value; /* as the library and as the command have it; what the command says of its value */
} names[PC_SCHEDULE_OPTIONS] = {
    [PC_ASK_DEVICES] = {"devices", "-p", "DEVICES"},
    [PC_ASK_MICROBATCHES] = {"microbatches", "-m", "MICROBATCHES"},
    [PC_ASK_CHUNKS] = {"chunks", "-v", NULL},
    [PC_ASK_SLICES] = {"slices", "--slices", NULL},
    [PC_ASK_SLICE_TIMES] = {"slice_times", "--slice-times", NULL},
    [PC_ASK_TIMES] = {"times", "--times", NULL},
    [PC_ASK_VOCAB_TIMES] = {"vocab_times", "--vocab-times", NULL},
    [PC_ASK_COMM] = {"comm", "--comm", NULL},
    [PC_ASK_RELEASE_B] = {"release_b", "--release-b", NULL},
    [PC_ASK_KEEP] = {"keep", "--keep", NULL},
    [PC_ASK_MEMORY_LIMIT] = {"memory_limit", "--memory-limit", NULL},
    [PC_ASK_OUT_OF_MEMORY] = {"out_of_memory", "--out-of-memory", NULL},
    [PC_ASK_MAKING] = {"making", "--making", NULL},
    [PC_ASK_GOAL] = {"goal", "--goal", NULL},
    [PC_ASK_IMPROVE] = {"improve", "--improve", NULL},
    [PC_ASK_ROBUST] = {"robust", "--robust", NULL},
    [PC_ASK_JITTER] = {"jitter", "--jitter", NULL},
    [PC_ASK_GPU_JITTER] = {"gpu_jitter", "--gpu-jitter", NULL},
    [PC_ASK_LINK_JITTER] = {"link_jitter", "--link-jitter", NULL},
    [PC_ASK_SLOW_FACTOR] = {"slow_factor", "--slow-factor", NULL},
    [PC_ASK_SLOW_STAGE] = {"slow_stage", "--slow-stage", NULL},
    [PC_ASK_SAMPLES] = {"samples", "--samples", NULL},
    [PC_ASK_SEED] = {"seed", "--seed", NULL},
    [PC_ASK_ENGINE] = {"engine", "--engine", NULL},
    [PC_ASK_BLOCK] = {"block", "--block", NULL},
    [PC_ASK_BLOCK_STEPS] = {"block_steps", "--block-steps", NULL},
};

const char *pc_schedule_option_names(void) {
    return "devices, microbatches, chunks, slices, slice_times, times, vocab_times, comm, release_b, keep, "
           "memory_limit, out_of_memory, making, goal, improve, robust, jitter, gpu_jitter, link_jitter, slow_factor, "
           "slow_stage, samples, seed, engine, block or block_steps";
}

const char *pc_schedule_option_name(const pc_schedule_request *r, pc_schedule_option option) {
    return r->is_command ? names[option].option : names[option].key;
}

pc_schedule_option pc_schedule_option_find(const char *name) {
    for (int i = 0; i < PC_SCHEDULE_OPTIONS; i++) {
        const char *key = names[i].key, *at = name;
        while (*key && (*at == *key || (*at == '-' && *key == '_'))) at++, key++;
        if (!*key && !*at) return (pc_schedule_option)i;
    }
    return PC_SCHEDULE_OPTIONS;
}

pc_code pc_schedule_refuse(const pc_schedule_request *r, pc_schedule_option option, pc_error *error, const char *format,
                           ...) {
    va_list values;
    va_start(values, format);
    pc_code code = pc_error_set_list(error, PC_ERROR_INPUT, format, values);
    va_end(values);
    pc_error_set_key(error, pc_schedule_option_name(r, option));
    return code;
}

/* ---- values ---- */

/* Says which option it was, of a cause that has no place. */
static pc_code blame(const pc_schedule_request *r, pc_schedule_option option, pc_code code, pc_error *error) {
    if (code) pc_error_set_key(error, pc_schedule_option_name(r, option));
    return code;
}

static pc_code take_count(const pc_schedule_request *r, pc_schedule_option option, const char *text, int64_t least,
                          int64_t most, int64_t *number, pc_error *error) {
    return blame(r, option, pc_parse_count(text, least, most, number, error), error);
}

pc_code pc_schedule_take_number(const pc_schedule_request *r, pc_schedule_option option, const char *text,
                                double *number, pc_error *error) {
    return blame(r, option, pc_parse_number(text, number, error), error);
}

static pc_code take_word(const pc_schedule_request *r, pc_schedule_option option, const char *what, const char *words,
                         const char *text, int *index, pc_error *error) {
    return blame(r, option, pc_word_choose(what, words, text, index, error), error);
}

static pc_code take_fraction(const pc_schedule_request *r, pc_schedule_option option, const char *text,
                             double *fraction, pc_error *error) {
    pc_code code = pc_schedule_take_number(r, option, text, fraction, error);
    if (code || *fraction <= 1.0) return code;
    return pc_schedule_refuse(r, option, error, "%s is more than all; expected a fraction from 0 to 1", text);
}

static pc_code take_deviation(const pc_schedule_request *r, pc_schedule_option option, const char *text,
                              double *deviation, pc_error *error) {
    pc_code code = pc_schedule_take_number(r, option, text, deviation, error);
    if (code || *deviation <= 10.0) return code;
    return pc_schedule_refuse(r, option, error, "%s; expected a standard deviation from 0 to 10, such as 0.02", text);
}

static pc_code take_slow_factor(pc_schedule_request *r, const char *text, pc_error *error) {
    pc_scatter *scatter = &r->scatter;
    pc_code code = pc_schedule_take_number(r, PC_ASK_SLOW_FACTOR, text, &scatter->slow_factor, error);
    scatter->has_slow = true;
    if (code || (scatter->slow_factor >= 1.0 && scatter->slow_factor <= 1e6)) return code;
    return pc_schedule_refuse(r, PC_ASK_SLOW_FACTOR, error, "%s; expected a number from 1 to 1000000, such as 1.1",
                              text);
}

static pc_code take_goal(pc_schedule_request *r, const char *text, pc_error *error) {
    int index = 0;
    if (strcmp(text, pc_goal_names[PC_GOAL_ITERATION]) == 0)
        return pc_schedule_refuse(r, PC_ASK_GOAL, error,
                                  "iteration: a schedule alone has no gradients or parameters to wait for; expected "
                                  "span or makespan");
    pc_code code = take_word(r, PC_ASK_GOAL, "word", "span|makespan", text, &index, error);
    if (!code) r->goal = (pc_goal)index;
    return code;
}

/* Options that are one word of several. */
static pc_code take_one_of(pc_schedule_request *r, pc_schedule_option option, const char *text, pc_error *error) {
    int index = 0;
    pc_code code = PC_OK;
    switch (option) {
    case PC_ASK_OUT_OF_MEMORY:
        code = take_word(r, option, "word", "fail|wait", text, &index, error);
        r->waits_for_memory = index == 1;
        return code;
    case PC_ASK_MAKING:
        code = take_word(r, option, "word", "costs|equal|published|torch|megatron", text, &index, error);
        r->making = (pc_making)index;
        return code;
    case PC_ASK_ROBUST:
        code = take_word(r, option, "word", "none|mean|p95", text, &index, error);
        r->robust = (pc_robust)index;
        return code;
    case PC_ASK_ENGINE:
        code = take_word(r, option, "way", "auto|events", text, &index, error);
        r->engine = (pc_engine_mode)index;
        return code;
    default:
        return take_word(r, option, "steps", "none|squeeze|reorder", text, &r->block_steps, error);
    }
}

/* Options of what is drawn. */
static pc_code take_scatter(pc_schedule_request *r, pc_schedule_option option, const char *text, pc_error *error) {
    switch (option) {
    case PC_ASK_JITTER:
        return take_deviation(r, option, text, &r->scatter.jitter, error);
    case PC_ASK_GPU_JITTER:
        return take_deviation(r, option, text, &r->scatter.gpu_jitter, error);
    case PC_ASK_LINK_JITTER:
        return take_deviation(r, option, text, &r->scatter.link_jitter, error);
    case PC_ASK_SLOW_FACTOR:
        return take_slow_factor(r, text, error);
    case PC_ASK_SLOW_STAGE:
        return take_count(r, option, text, 0, PC_DEVICES_MAX - 1, &r->slow_stage, error);
    case PC_ASK_SAMPLES:
        return take_count(r, option, text, 2, PC_ROBUST_SAMPLES_MAX, &r->samples, error);
    default:
        return take_count(r, option, text, 0, INT64_MAX, &r->seed, error);
    }
}

/* Options of the shape and the costs. */
static pc_code take_costs(pc_schedule_request *r, pc_schedule_option option, const char *text, pc_error *error) {
    switch (option) {
    case PC_ASK_DEVICES:
        return take_count(r, option, text, 1, PC_DEVICES_MAX, &r->devices, error);
    case PC_ASK_MICROBATCHES:
        return take_count(r, option, text, 1, PC_MICROBATCHES_MAX, &r->microbatches, error);
    case PC_ASK_CHUNKS:
        return take_count(r, option, text, 1, PC_CHUNKS_MAX, &r->chunks, error);
    case PC_ASK_SLICES:
        return take_count(r, option, text, 1, PC_CHUNKS_MAX, &r->slices, error);
    case PC_ASK_TIMES:
        return pc_schedule_take_times(r, text, error);
    case PC_ASK_VOCAB_TIMES:
        return pc_schedule_take_vocab_times(r, text, error);
    case PC_ASK_COMM:
        return pc_schedule_take_number(r, option, text, &r->units.comm, error);
    case PC_ASK_RELEASE_B:
        return take_fraction(r, option, text, &r->units.release_b, error);
    default:
        return take_fraction(r, option, text, &r->units.keep, error);
    }
}

/* Where options go that are taken as they are; NULL of others. */
static const char **text_of(pc_schedule_request *r, pc_schedule_option option) {
    switch (option) {
    case PC_ASK_SLICE_TIMES:
        return &r->slice_times;
    case PC_ASK_MEMORY_LIMIT:
        return &r->memory_limit;
    case PC_ASK_BLOCK:
        return &r->block;
    default:
        return NULL;
    }
}

pc_code pc_schedule_request_set(pc_schedule_request *r, pc_schedule_option option, const char *value, pc_error *error) {
    char *copy = pc_strdup(value ? value : "true");
    if (!copy) return pc_error_no_memory(error);
    pc_free(r->texts[option]);
    r->texts[option] = copy;
    const char **text = text_of(r, option);
    if (text) return *text = copy, PC_OK;
    switch (option) {
    case PC_ASK_IMPROVE:
        return blame(r, option, pc_parse_switch(copy, &r->improves, error), error);
    case PC_ASK_GOAL:
        return take_goal(r, copy, error);
    case PC_ASK_OUT_OF_MEMORY:
    case PC_ASK_MAKING:
    case PC_ASK_ROBUST:
    case PC_ASK_ENGINE:
    case PC_ASK_BLOCK_STEPS:
        return take_one_of(r, option, copy, error);
    default:
        return option >= PC_ASK_JITTER && option <= PC_ASK_SEED ? take_scatter(r, option, copy, error)
                                                                : take_costs(r, option, copy, error);
    }
}

pc_code pc_schedule_request_name(pc_schedule_request *r, const char *name, pc_error *error) {
    if (r->name)
        return pc_error_set(error, PC_ERROR_INPUT, "schedule: a second name '%s' after '%s'; expected one", name,
                            r->name);
    r->name_text = pc_strdup(name);
    r->name = r->name_text;
    return r->name ? PC_OK : pc_error_no_memory(error);
}

/* ---- all of it ---- */

void pc_schedule_request_init(pc_schedule_request *r, bool is_command) {
    *r = (pc_schedule_request){.is_command = is_command,
                               .units = {.times = {1.0, 1.0, 1.0}, .keep = PC_ACTIVATION_INPUT_FRACTION},
                               .block_steps = -1,
                               .slow_stage = -1,
                               .samples = -1,
                               .seed = -1,
                               .scatter.slow_factor = 1.0};
}

void pc_schedule_request_free(pc_schedule_request *r) {
    for (int i = 0; i < PC_SCHEDULE_OPTIONS; i++) pc_free(r->texts[i]);
    pc_free(r->name_text);
    pc_free(r->part_times);
    pc_pass_times_free(&r->measured);
}

bool pc_schedule_request_draws_times(const pc_schedule_request *r) {
    return pc_scatter_varies(&r->scatter);
}

/* What is drawn, from what was given. */
static pc_code complete_scatter(pc_schedule_request *r, pc_error *error) {
#define SAY(option) pc_schedule_option_name(r, PC_ASK_##option)
    r->scatter.slow_stage = (int)r->slow_stage;
    r->scatter.seed = r->seed < 0 ? 0 : (uint64_t)r->seed;
    bool varies = pc_schedule_request_draws_times(r);
    if (r->slow_stage >= 0 && !r->scatter.has_slow)
        return pc_schedule_refuse(r, PC_ASK_SLOW_STAGE, error, "means nothing alone; expected %s beside it",
                                  SAY(SLOW_FACTOR));
    if (!varies && (r->robust || r->samples >= 0 || r->seed >= 0))
        return pc_error_set(error, PC_ERROR_INPUT, "%s, %s, %s: nothing scatters; expected %s, %s, %s or %s",
                            SAY(ROBUST), SAY(SAMPLES), SAY(SEED), SAY(JITTER), SAY(GPU_JITTER), SAY(LINK_JITTER),
                            SAY(SLOW_FACTOR));
    if (r->robust && r->improves)
        return pc_schedule_refuse(r, PC_ASK_ROBUST, error, "looks for another order itself; expected no %s beside it",
                                  SAY(IMPROVE));
    if (varies && r->waits_for_memory)
        return pc_error_set(error, PC_ERROR_INPUT, "%s, %s, ...: what keeps %s waits for nothing; expected no %s wait",
                            SAY(ROBUST), SAY(JITTER), SAY(MEMORY_LIMIT), SAY(OUT_OF_MEMORY));
    return PC_OK;
}

pc_code pc_schedule_request_complete(pc_schedule_request *r, pc_error *error) {
    pc_code code = r->times_file ? pc_schedule_take_measured(r, error) : PC_OK;
    if (code) return code;
    if (r->name && r->block)
        return pc_schedule_refuse(r, PC_ASK_BLOCK, error, "stands beside the name '%s'; expected one of the two",
                                  r->name);
    if (r->block_steps >= 0 && !r->block)
        return pc_schedule_refuse(r, PC_ASK_BLOCK_STEPS, error, "no block; expected it with %s%s", SAY(BLOCK),
                                  r->is_command ? " FILE" : "");
    if (r->improves && r->waits_for_memory)
        return pc_schedule_refuse(r, PC_ASK_IMPROVE, error, "what keeps %s waits for nothing; expected no %s wait",
                                  SAY(MEMORY_LIMIT), SAY(OUT_OF_MEMORY));
    code = complete_scatter(r, error);
    if (code || r->name || r->block) return code;
    return pc_error_set(error, PC_ERROR_INPUT, "schedule: no name; expected NAME, FILE.csv or %s%s",
                        r->is_command ? "--block FILE" : "a block", r->is_command ? " (pipecast list schedules)" : "");
#undef SAY
}
