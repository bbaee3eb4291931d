#include "cli/utilisation.h"

#include "cli/cli.h"

#include <inttypes.h>
#include <string.h>

/* NaN is not over 1. */
void utilisation_note(utilisation *x, int64_t index, const pc_run_row *row) {
    bool is_over = row->mfu > 1 || row->hfu > 1;
    if (row->run <= x->last) return;
    x->last = row->run;
    if (!is_over) return;
    run_list_add(&x->over, row->run, row->run);
    if (x->over.count > 1 && !(row->hfu > x->hfu)) return;
    x->most = index;
    x->run = row->run;
    memcpy(x->name, row->name, sizeof x->name);
    x->mfu = row->mfu;
    x->hfu = row->hfu;
    x->peak_tflops = row->peak_tflops;
}

/* What is left without the masked part. */
static void say_why(const utilisation *x, const pc_masked_flops *masked) {
    double mfu = x->mfu * (1 - masked->of_model), hfu = x->hfu * (1 - masked->of_hardware);
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

void utilisation_warn(const utilisation *x, const char *what, const pc_iteration_spec *spec) {
    pc_masked_flops masked = {0};
    if (x->over.count == 0) return;
    if (pc_iteration_masked_flops(spec, &masked, &(pc_error){0})) return; /* not of a run that was done */
    fprintf(stderr, "pipecast: warning: ");
    if (x->over.count > 1) {
        fprintf(stderr, "%ss", what);
        run_list_print(&x->over, stderr);
        fprintf(stderr, ": MFU or HFU over 1, most in ");
    }
    fprintf(stderr, "%s %" PRId64 " (", what, x->run);
    print_plain(stderr, x->name);
    fprintf(stderr, "): MFU %.4g, HFU %.4g, over 1 of the peak that they divide by (matrix: %.4g TFLOP/s)", x->mfu,
            x->hfu, x->peak_tflops);
    say_why(x, &masked);
    fprintf(stderr, "\n");
}
