#include "cli/calibrate_print.h"

#include "calib/profile/profile_cost.h"
#include "cli/cli.h"
#include "scenarios/library.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- which GPU it is ---- */

const char *calibrate_gpu(const pc_profile *profile) {
    int count;
    const pc_library_file *gpus = pc_library_files(PC_LIBRARY_GPUS, &count);
    pc_profile unnamed = {.device = profile->device};
    unnamed.device.gpu[0] = '\0'; /* so that the driver's name decides */
    for (int i = 0; i < count; i++)
        if (!pc_profile_check_gpu(&unnamed, gpus[i].name, NULL)) return gpus[i].name;
    return "";
}

/* ---- summary ---- */

static void print_device(const pc_profile_device *x) {
    printf("device     ");
    print_plain(stdout, x->name);
    printf("%s%s%s, %d SMs, %.1f GiB\n", x->gpu[0] ? " (" : "", x->gpu, x->gpu[0] ? ")" : "", x->processors,
           (double)x->memory_bytes / 0x1p30);
    if (x->sm_clock_hz > 0.0) printf("clock      %.0f MHz under load\n", x->sm_clock_hz * 1e-6);
    if (x->gemm_flops_per_s > 0.0)
        printf("product    %.1f TFLOP/s, the best large one, bf16\n", x->gemm_flops_per_s * 1e-12);
    if (x->copy_bytes_per_s > 0.0) printf("copy       %.1f GB/s, read and written\n", x->copy_bytes_per_s * 1e-9);
    if (x->launch_s > 0.0) printf("launch     %.2f us of the host\n", x->launch_s * 1e6);
}

static void print_fit(const pc_fit *fit, int width) {
    char name[160];
    pc_fit_name(&fit->key, name, sizeof name);
    printf("%-*s  %6" PRId64, width, name, fit->count);
    if (isnan(fit->cv_median)) /* too few to leave some out */
        printf("  %9s  %8s  %9s\n", "-", "-", "-");
    else
        printf("  %8.2f%%  %7.2f%%  %8.1f%%\n", 100.0 * fit->cv_median, 100.0 * fit->cv_p95, 100.0 * fit->cv_coverage);
}

static void print_fits(const pc_profile *profile) {
    int width = 3;
    for (int64_t i = 0; i < profile->fit_count; i++) {
        char name[160];
        pc_fit_name(&profile->fit[i].key, name, sizeof name);
        if ((int)strlen(name) > width) width = (int)strlen(name);
    }
    if (profile->fit_count == 0) return;
    printf("\nErrors of points that the fit has not seen (cross-validation), and how many of them its 95%% interval "
           "held:\n");
    printf("%-*s  points     median      p95   interval\n", width, "fit");
    for (int64_t i = 0; i < profile->fit_count; i++) print_fit(&profile->fit[i], width);
}

void calibrate_print(const pc_profile *profile) {
    print_device(&profile->device);
    printf("measured   %" PRId64 " of kernels, %" PRId64 " of transfers, %" PRId64 " samples\n", profile->kernel_count,
           profile->transfer_count, profile->sample_count);
    print_fits(profile);
}
