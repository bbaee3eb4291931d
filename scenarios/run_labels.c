#include "scenarios/run_labels.h"

#include <math.h>

pc_run_labels pc_run_labels_none(void) {
    return (pc_run_labels){.published_bubble_rate_span = NAN,
                           .published_samples_per_s_per_gpu = NAN,
                           .published_iteration_s = NAN,
                           .published_mfu = NAN,
                           .published_tflops_per_gpu = NAN,
                           .published_hardware_tflops_per_gpu = NAN,
                           .published_activation_gib = NAN,
                           .published_pass_f_s = NAN,
                           .published_memory_gib = NAN,
                           .published_best_mfu = NAN};
}
