/* Fuzz target: schedules as CSV (models/schedule/exchange.h) and their check. What the check accepts replays to its
 * end, and what is written of it reads back as the same schedule. */
#include "models/schedule/check.h"
#include "models/schedule/costs.h"
#include "models/schedule/exchange.h"
#include "models/schedule/replay.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLAYED_MAX = 256 }; /* passes; libFuzzer is to try many files, not long ones */

static void check_same(const pc_schedule *a, const pc_schedule *b) {
    bool is_shaped = a->devices == b->devices && a->microbatches == b->microbatches && a->chunks == b->chunks &&
                     a->placement == b->placement;
    fuzz_require(is_shaped, "a schedule that was written reads as one of the same shape");
    for (int d = 0; d <= a->devices; d++)
        fuzz_require(a->offsets[d] == b->offsets[d], "a schedule that was written reads with as many passes a stage");
    fuzz_require(memcmp(a->passes, b->passes, (size_t)a->offsets[a->devices] * sizeof *a->passes) == 0,
                 "a schedule that was written reads with the same passes");
}

static void check_round_trip(const pc_schedule *schedule) {
    char *text = NULL;
    size_t size = 0;
    pc_error error = {0};
    pc_schedule again;
    FILE *stream = open_memstream(&text, &size);
    fuzz_require(stream, "memory is not short");
    pc_code code = pc_schedule_write_torch_csv(schedule, stream, &error);
    fclose(stream);
    fuzz_require(!code, "what was read can be written");
    memory_file_set((const uint8_t *)text, size);
    fuzz_require(!pc_schedule_read_torch_csv(MEMORY_FILE, &again, &error), "what was written can be read");
    check_same(schedule, &again);
    pc_schedule_free(&again);
    free(text);
}

static void check_replay(const pc_schedule *schedule) {
    pc_error error = {0};
    pc_costs costs;
    pc_replay replay;
    fuzz_require(!pc_costs_create(schedule->devices, schedule->chunks, &costs, &error), "memory is not short");
    for (int64_t i = 0; i < (int64_t)costs.devices * costs.chunks * PC_PASS_KINDS; i++) costs.duration_ps[i] = 1000;
    pc_code code = pc_replay_run(schedule, &costs, NULL, &replay, &error);
    fuzz_require(!code, "what the check accepts replays to its end");
    pc_replay_free(&replay);
    pc_costs_free(&costs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pc_error error = {0};
    pc_schedule schedule;
    memory_file_set(data, size);
    pc_code code = pc_schedule_read_torch_csv(MEMORY_FILE, &schedule, &error);
    fuzz_check_error(code, &error);
    if (code) return 0;
    code = pc_schedule_check(&schedule, &error);
    fuzz_check_error(code, &error);
    if (!code) check_round_trip(&schedule);
    if (!code && schedule.offsets[schedule.devices] <= REPLAYED_MAX) check_replay(&schedule);
    pc_schedule_free(&schedule);
    return 0;
}
