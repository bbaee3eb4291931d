/* Fuzz target: files of counted tokens (scenarios/expert_counts_file.h). Shares of what is accepted are in range, and
 * the fullest rank has from the mean to all. */
#include "scenarios/expert_counts_file.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>

static void check_loads(const pc_expert_counts *counts, double ranks) {
    const pc_expert_spread spread = {.experts = (double)counts->experts, .ranks = ranks, .topk = 1, .tokens = 4096};
    double mean = pc_expert_load_counted(counts, &spread), drawn = pc_expert_load_drawn_counted(counts, &spread, 0.9);
    fuzz_require(mean >= 1 && mean <= ranks, "the mean is in range");
    fuzz_require(drawn >= 1 && drawn <= ranks, "what is drawn is in range");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pc_error error = {0};
    pc_expert_counts counts;
    char *text = fuzz_text(data, size);
    pc_code code = pc_expert_counts_read_text("counts", text, &counts, &error);
    free(text);
    fuzz_check_error(code, &error);
    if (code) return 0;
    fuzz_require(counts.layers > 0 && counts.experts > 0, "there is a layer with an expert");
    fuzz_require(counts.largest > 0 && counts.largest <= 1, "a share is one");
    check_loads(&counts, 1);
    if (counts.experts <= 64) check_loads(&counts, (double)counts.experts);
    pc_expert_counts_free(&counts);
    return 0;
}
