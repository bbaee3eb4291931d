/* Fuzz target: files of measured passes (scenarios/pass_times_file.h). The first byte says as what the rest is read:
 * CSV, or YAML, of which JSON is a part. What is accepted has a row for every chunk, fills costs or says why not, and
 * reads back as the same after it was written. */
#include "models/schedule/pass_times.h"
#include "scenarios/pass_times_file.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_same(const pc_pass_times *a, const pc_pass_times *b) {
    fuzz_require(a->devices == b->devices && a->chunks == b->chunks, "what was written reads with the same shape");
    for (int64_t i = 0; i < (int64_t)a->devices * a->chunks; i++) {
        fuzz_require(memcmp(a->parts[i].time_ps, b->parts[i].time_ps, sizeof a->parts[i].time_ps) == 0,
                     "what was written reads with the same times");
        fuzz_require(a->parts[i].activation_bytes == b->parts[i].activation_bytes,
                     "what was written reads with the same activations");
    }
}

static void check_written(const pc_pass_times *times) {
    pc_error error = {0};
    pc_pass_times again;
    pc_text text = {.data = NULL};
    pc_pass_times_write(times, "fuzz", &text);
    pc_code code = pc_pass_times_read_text("fuzz", text.data, false, &again, &error);
    fuzz_require(!code, "what was written can be read");
    check_same(times, &again);
    pc_pass_times_free(&again);
    pc_text_free(&text);
}

static void check_filled(const pc_pass_times *times, int chunks) {
    pc_error error = {0};
    pc_costs costs;
    pc_placement placement = chunks == 1 ? PC_PLACEMENT_LINEAR : PC_PLACEMENT_V;
    pc_code code = pc_pass_times_suit(times, times->devices, chunks, placement, &error);
    if (code) return;
    fuzz_require(!pc_costs_create(times->devices, chunks, &costs, &error), "memory is not short");
    code = pc_pass_times_fill(times, placement, &costs, &error);
    fuzz_check_error(code, &error);
    for (int64_t i = 0; !code && i < (int64_t)costs.devices * chunks; i++) {
        fuzz_require(costs.duration_ps[i * PC_PASS_KINDS] >= 0, "every F has a time");
        fuzz_require(costs.activation_b_bytes[i] <= costs.activation_bytes[i], "B frees a part of what F takes");
    }
    pc_costs_free(&costs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pc_error error = {0};
    pc_pass_times times;
    if (size == 0) return -1;
    char *text = fuzz_text(data + 1, size - 1);
    pc_code code = pc_pass_times_read_text("times", text, data[0] == 'c', &times, &error);
    free(text);
    fuzz_check_error(code, &error);
    if (code) return 0;
    check_written(&times);
    for (int chunks = 1; chunks <= 4; chunks++) check_filled(&times, chunks);
    pc_pass_times_free(&times);
    return 0;
}
