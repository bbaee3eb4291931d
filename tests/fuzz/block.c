/* Fuzz target: files of building blocks (scenarios/block_file.h), the rules in them (models/schedule/rule.h), and what
 * becomes of them on a few devices. A block that is accepted is valid; its schedule passes the check, and reads back as
 * the same where it is written. */
#include "engine/alloc.h"
#include "models/schedule/block_write.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/given_block.h"
#include "scenarios/block_file.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 4, MICROBATCHES_MAX = 6, PASSES_MAX = 64, INTERVAL_MAX = 4096 };

/* What a rule makes of itself, of a text that need not be a file. */
static void check_rule(const char *text) {
    static const int64_t values[PC_RULE_NAMES] = {3, 1, 2, 8, 2, 24};
    pc_error error = {0};
    pc_rule rule;
    int64_t value = -7, again = -8;
    pc_code code = pc_rule_parse(text, PC_RULE_ALL_NAMES, &rule, &error);
    fuzz_check_error(code, &error);
    if (code) return;
    code = pc_rule_value(&rule, values, &value, &error);
    fuzz_check_error(code, &error);
    fuzz_require(code || (value <= PC_RULE_MOST && value >= -PC_RULE_MOST), "a rule comes to a number in its range");
    fuzz_require(code == pc_rule_value(&rule, values, &again, NULL) && (code || value == again), "the same again");
    pc_rule_free(&rule);
}

/* Large blocks are for those who ask for them: their text says how large. */
static bool is_small(const pc_block_draft *draft, int p, int m) {
    const int64_t values[PC_RULE_NAMES] = {[PC_RULE_P] = p, [PC_RULE_V] = draft->chunks, [PC_RULE_M] = m};
    int64_t interval = 0, microbatches = 0;
    if (pc_rule_value(&draft->interval, values, &interval, NULL)) return false;
    if (pc_rule_value(&draft->microbatches, values, &microbatches, NULL)) return false;
    return draft->chunks <= 8 && microbatches <= PASSES_MAX && interval <= INTERVAL_MAX;
}

static void check_written(const pc_schedule *schedule, const pc_block *block) {
    pc_error error = {0};
    char *text = NULL;
    size_t size = 0;
    pc_given_block *given;
    pc_schedule again;
    pc_block_text_request wanted = {.schedule = schedule, .block = block};
    FILE *stream = open_memstream(&text, &size);
    pc_code code = pc_block_write(&wanted, stream, &error);
    fclose(stream);
    fuzz_require(!code, "a schedule can be written as a block");
    fuzz_require(!pc_block_text_read("again", text, &given, &error), "what was written reads back");
    pc_generate_request request = {.devices = schedule->devices, .microbatches = schedule->microbatches};
    fuzz_require(!pc_generate(pc_given_block_generator(given), &request, &again, NULL, &error), "and makes a schedule");
    size_t bytes = (size_t)schedule->offsets[schedule->devices] * sizeof *schedule->passes;
    fuzz_require(memcmp(again.passes, schedule->passes, bytes) == 0, "which is the same");
    pc_schedule_free(&again);
    pc_given_block_free(given);
    free(text);
}

static void check_shape(pc_given_block *given, int p, int m) {
    pc_error error = {0};
    pc_block block;
    pc_schedule schedule;
    if (!is_small(pc_given_block_draft(given), p, m)) return;
    pc_code code = pc_given_block_make(given, p, m, &block, &error);
    fuzz_check_error(code, &error);
    if (code) return;
    fuzz_require(pc_block_is_valid(&block), "a block that is accepted is valid");
    pc_generate_request request = {.devices = p, .microbatches = m};
    code = pc_generate(pc_given_block_generator(given), &request, &schedule, NULL, &error);
    fuzz_check_error(code, &error);
    if (!code) {
        fuzz_require(!pc_schedule_check(&schedule, &error), "and so is its schedule");
        check_written(&schedule, &block);
        pc_schedule_free(&schedule);
    }
    pc_block_free(&block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_text(data, size);
    pc_error error = {0};
    pc_given_block *given = NULL;
    if (strlen(text) <= PC_RULE_TEXT_MAX) check_rule(text);
    pc_code code = pc_block_text_read("input.yaml", text, &given, &error);
    free(text);
    fuzz_check_error(code, &error);
    if (code) return 0;
    if (pc_given_block_set_steps(given, PC_BLOCK_SQUEEZE, NULL)) abort();
    for (int p = 1; p <= DEVICES_MAX; p++) check_shape(given, p, 1 + (p * 7 + (int)size) % MICROBATCHES_MAX);
    pc_given_block_free(given);
    return 0;
}
