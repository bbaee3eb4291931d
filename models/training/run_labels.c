#include "models/training/run_labels.h"

#include "engine/field.h"
#include "engine/hash.h"

#include <string.h>

#define AT(member)                                                                                                     \
    { .name = #member, .type = PC_FIELD_TYPE(pc_run_spec, member), PC_FIELD_AT(pc_run_spec, member) }

static const pc_field labels[] = {AT(run),
                                  AT(scenario),
                                  AT(name),
                                  AT(model),
                                  AT(machine),
                                  AT(layout),
                                  AT(published_bubble_rate_span),
                                  AT(published_samples_per_s_per_gpu),
                                  AT(published_iteration_s),
                                  AT(published_mfu),
                                  AT(published_tflops_per_gpu),
                                  AT(published_hardware_tflops_per_gpu),
                                  AT(published_activation_gib),
                                  AT(published_pass_f_s),
                                  AT(published_memory_gib),
                                  AT(published_best_mfu)};

uint64_t pc_run_labels_of(const pc_run_spec *spec) {
    pc_hash hash = {1, 1};
    const char *profile = spec->profile_text ? spec->profile_text : "";
    const pc_field path = {.type = PC_FIELD_TEXT, .size = strlen(profile)};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) pc_field_hash(&labels[i], spec, &hash);
    pc_field_hash(&path, profile, &hash);
    return hash.low ? hash.low : 1;
}
