#include "results/figures/fits_choice.h"

#include <stdio.h>
#include <string.h>

static pc_code refuse_name(const pc_profile *profile, const char *part, pc_error *error) {
    char names[640] = "", name[256];
    size_t used = 0;
    if (profile->fit_count == 0) return pc_error_set(error, PC_ERROR_INPUT, "the profile has no fits to draw");
    for (int64_t i = 0; i < profile->fit_count && used < sizeof names; i++) {
        pc_fit_name(&profile->fit[i].key, name, sizeof name);
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? "; " : "", name);
    }
    return pc_error_set(error, PC_ERROR_INPUT, "--fit: no fit's name has '%.80s' in it; expected one of %s", part,
                        names);
}

pc_code pc_fits_choose(const pc_profile *profile, const char *part, const pc_fit **fit, int room, int *count,
                       pc_error *error) {
    char name[256];
    *count = 0;
    for (int64_t i = 0; i < profile->fit_count; i++) {
        pc_fit_name(&profile->fit[i].key, name, sizeof name);
        bool is_exact = part && strcmp(name, part) == 0;
        if (part && !strstr(name, part)) continue;
        if (is_exact) *count = 0;
        if (*count < room) fit[(*count)++] = &profile->fit[i];
        if (is_exact) break;
    }
    return *count > 0 ? PC_OK : refuse_name(profile, part ? part : "", error);
}
