#include "cli/utilisation.h"

#include "cli/cli.h"
#include "storage/text.h"

#include <inttypes.h>
#include <string.h>

/* Products of 4 bits run at four times the 16-bit rate that MFU divides by, and those of 8 at twice. */
static bool has_few_bits(const pc_run_row *row) {
    return *row->precision && strcmp(row->precision, "bf16") != 0 && strcmp(row->precision, "fp16") != 0;
}

/* NaN is not over 1. */
void utilisation_note(utilisation *used, int64_t index, const pc_run_row *row) {
    double most = has_few_bits(row) ? 4 : 1;
    bool is_over = row->mfu > most || row->hfu > most;
    if (row->run <= used->last) return;
    used->last = row->run;
    if (!is_over) return;
    pc_run_list_add(&used->over, row->run, row->run);
    if (used->over.count > 1 && !(row->hfu > used->hfu)) return;
    used->most = index;
    used->run = row->run;
    memcpy(used->name, row->name, sizeof used->name);
    used->mfu = row->mfu;
    used->hfu = row->hfu;
    used->peak_tflops = row->peak_tflops;
}

/* What is left without the masked part. */
static void say_why(const utilisation *used, const pc_masked_flops *masked) {
    double mfu = used->mfu * (1 - masked->of_model), hfu = used->hfu * (1 - masked->of_hardware);
    bool is_masked = masked->of_hardware > 0;
    if (is_masked)
        fprintf(stderr,
                "; they count the whole s x s of attention, of which a causal mask leaves half to compute: without the "
                "other half MFU %.4g, HFU %.4g",
                mfu, hfu);
    if (mfu > 1 || hfu > 1)
        fprintf(stderr, "%s more than a GPU can do: kernels take less than at that peak",
                is_masked ? ", still" : "; that is");
}

void utilisation_warn(const utilisation *used, const char *what, const pc_iteration_spec *spec) {
    char list[PC_RUN_LIST_TEXT];
    pc_masked_flops masked = {0};
    pc_number_scope scope = {0}; /* points in numbers, whatever the program's locale */
    if (used->over.count == 0) return;
    if (pc_iteration_masked_flops(spec, &masked, &(pc_error){0})) return; /* not of a run that was done */
    if (!pc_number_scope_enter(&scope)) return;
    fprintf(stderr, "pipecast: warning: ");
    if (used->over.count > 1)
        fprintf(stderr, "%ss%s: MFU or HFU over 1, most in ", what, pc_run_list_text(&used->over, list));
    fprintf(stderr, "%s %" PRId64 " (", what, used->run);
    print_plain(stderr, used->name);
    fprintf(stderr, "): MFU %.4g, HFU %.4g, over 1 of the peak that they divide by (matrix: %.4g TFLOP/s)", used->mfu,
            used->hfu, used->peak_tflops);
    say_why(used, &masked);
    fprintf(stderr, "\n");
    pc_number_scope_leave(&scope);
}
