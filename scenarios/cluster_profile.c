#include "scenarios/cluster_profile.h"

#include "scenarios/library_private.h"
#include "scenarios/references.h"
#include "scenarios/settings.h"

#include <string.h>

static const pc_reference *reference_of(const pc_setting *setting, pc_key key) {
    return setting->value[key].reference;
}

/* NULL: the scenario names none of the library's. */
static const pc_library_file *profile_of_library(const pc_setting *setting) {
    if (!setting->given[PC_KEY_PROFILE]) return NULL;
    return pc_library_find(PC_LIBRARY_PROFILES, reference_of(setting, PC_KEY_PROFILE)->text);
}

pc_code pc_setting_check_profile(const pc_setting *setting, pc_error *error) {
    const pc_library_file *named = profile_of_library(setting);
    const pc_gpu *gpu = &reference_of(setting, PC_KEY_MACHINE)->machine.gpu;
    if (!named || strcmp(named->name, gpu->kernels) == 0) return PC_OK;
    return pc_error_blame(error, pc_key_path(PC_KEY_PROFILE),
                          "%s has the kernels of another GPU than the machine's, %s; expected %s", named->name,
                          gpu->name, gpu->kernels[0] ? gpu->kernels : "a file, or none: the library has none of it");
}

bool pc_setting_has_profile_file(const pc_setting *setting) {
    return setting->given[PC_KEY_PROFILE] && reference_of(setting, PC_KEY_PROFILE)->path;
}

void pc_setting_choose_profile(const pc_setting *setting, pc_run_spec *spec) {
    pc_gpu *gpu = &spec->iteration.machine.gpu;
    const pc_library_file *named = profile_of_library(setting);
    bool is_best = pc_setting_integer(setting, PC_KEY_ATTENTION_KERNEL) == PC_ATTENTION_KERNEL_BEST;
    if (named) {
        spec->shipped_profile = named->name;
        gpu->kernels_for = is_best ? PC_KERNELS_FOR_ALL : PC_KERNELS_FOR_ALL & ~PC_KERNELS_FOR_ATTENTION;
    } else if (setting->given[PC_KEY_PROFILE]) {
        spec->profile_path = setting->value[PC_KEY_PROFILE].reference->path;
    } else {
        spec->shipped_profile = pc_gpu_kernels_of(gpu, &spec->iteration.model);
    }
}
