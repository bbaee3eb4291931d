#include "sweep/run_profiles.h"

#include "calib/profile/profile.h"
#include "calib/profile/profile_cost.h"
#include "calib/profile/profile_text.h"
#include "engine/alloc.h"
#include "scenarios/library.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LINES_MAX = 24 }; /* of warnings, a profile and machine */

typedef struct opened_profile {
    const char *path; /* the scenario's; or the name of a profile of the library */
    bool is_shipped;
    dev_t device;
    ino_t inode;
    pc_profile *profile;
    bool is_shared; /* with an entry before: one file may be named in two ways */
    uint64_t hash;
    double *scatter; /* [PC_SCATTER_QUANTILES], where a run asks for it; owned */
} opened_profile;

typedef struct profile_cost {
    int profile;
    pc_machine machine; /* as its file has it */
    pc_profile_cost *cost;
    pc_cost_model model;
} profile_cost;

/* ---- profiles ---- */

/* Of two that have one name a file is one, and one of the library the other. */
static int find_profile(const pc_run_profiles *opened, const char *path, bool is_shipped) {
    for (int i = 0; i < opened->profile_count; i++)
        if (opened->profiles[i].is_shipped == is_shipped && strcmp(opened->profiles[i].path, path) == 0) return i;
    return -1;
}

/* NULL: none, the roofline answers. */
static const char *profile_of(const pc_run_spec *spec) {
    return spec->profile_path ? spec->profile_path : spec->shipped_profile;
}

static int find_own(const pc_run_profiles *opened, const pc_run_spec *spec) {
    return find_profile(opened, profile_of(spec), !spec->profile_path);
}

static bool is_opened(const pc_run_profiles *opened, const struct stat *status, opened_profile *made) {
    for (int i = 0; i < opened->profile_count; i++) {
        if (opened->profiles[i].is_shipped || opened->profiles[i].inode != status->st_ino ||
            opened->profiles[i].device != status->st_dev)
            continue;
        made->profile = opened->profiles[i].profile;
        made->hash = opened->profiles[i].hash;
        made->is_shared = true;
        return true;
    }
    return false;
}

/* Of the library, whose names come from its own files. */
static pc_code read_shipped(const char *name, pc_profile *profile, pc_error *error) {
    const pc_library_file *file = pc_library_find(PC_LIBRARY_PROFILES, name);
    return pc_profile_text_read(file->text, name, profile, error);
}

static pc_code read_profile(opened_profile *made, pc_error *error) {
    char hash[17];
    made->profile = pc_alloc(1, sizeof *made->profile);
    if (!made->profile) return pc_error_no_memory(error);
    pc_code code = made->is_shipped ? read_shipped(made->path, made->profile, error)
                                    : pc_profile_read(made->path, made->profile, error);
    if (code) return code;
    pc_profile_hash(made->profile, hash);
    made->hash = strtoull(hash, NULL, 16);
    return PC_OK;
}

static pc_code add_profile(pc_run_profiles *opened, const char *path, bool is_shipped, pc_error *error) {
    struct stat status = {0};
    opened_profile made = {.path = path, .is_shipped = is_shipped},
                   *all = pc_realloc(opened->profiles, (size_t)opened->profile_count + 1, sizeof *all);
    if (!all) return pc_error_no_memory(error);
    opened->profiles = all;
    bool is_there = !is_shipped && stat(path, &status) == 0;
    made.device = status.st_dev;
    made.inode = status.st_ino;
    pc_code code = is_there && is_opened(opened, &status, &made) ? PC_OK : read_profile(&made, error);
    if (!code)
        opened->profiles[opened->profile_count++] = made;
    else
        pc_free(made.profile); /* empty if it could not be read */
    return code;
}

/* ---- costs ---- */

static void take_kernels(const pc_gpu_kernels *kernels, pc_gpu *gpu) {
    gpu->attention_efficiency = kernels->attention_efficiency;
    gpu->unfused = kernels->unfused;
    gpu->launch_s = kernels->launch_s;
}

/* A profile of the library has some kernels of a GPU whose file says the rest, and the setting likewise; of any other
 * that has measured kernels what it says is what holds. */
static bool has_all_kernels(const pc_profile *profile) {
    return pc_profile_has_kernels(profile) && !profile->is_shipped;
}

/* The machine that the run asks for: where the profile has measured kernels, with those of its file. Whole copies, to
 * be compared. */
void pc_run_profile_machine(const pc_profile *profile, const pc_run_spec *spec, pc_machine *machine) {
    memcpy(machine, &spec->iteration.machine, sizeof *machine); /* with what is between, to be compared */
    if (has_all_kernels(profile)) take_kernels(&spec->beside_profile.own, &machine->gpu);
}

static pc_code check_kernels(const opened_profile *profile, const pc_run_spec *spec, pc_error *error) {
    if (!spec->beside_profile.said || !has_all_kernels(profile->profile)) return PC_OK;
    pc_error_set(error, PC_ERROR_INPUT, "has measured kernels, and %s stands beside it; expected one of the two",
                 spec->beside_profile.said);
    pc_error_place(error, profile->path, 0, "");
    return PC_ERROR_INPUT;
}

static const profile_cost *find_cost(const pc_run_profiles *opened, const pc_run_spec *spec) {
    int profile = find_own(opened, spec);
    pc_machine machine;
    pc_run_profile_machine(opened->profiles[profile].profile, spec, &machine);
    for (int i = 0; i < opened->cost_count; i++)
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): whole copies of one machine, with what is between */
        if (opened->costs[i].profile == profile && memcmp(&opened->costs[i].machine, &machine, sizeof machine) == 0)
            return &opened->costs[i];
    return NULL;
}

static pc_code add_cost(pc_run_profiles *opened, int profile, const pc_machine *machine, pc_error *error) {
    profile_cost made = {.profile = profile},
                 *all = pc_realloc(opened->costs, (size_t)opened->cost_count + 1, sizeof *all);
    if (!all) return pc_error_no_memory(error);
    opened->costs = all;
    pc_code code = pc_profile_cost_make(opened->profiles[profile].profile, machine, &made.cost, error);
    if (code == PC_ERROR_INPUT) pc_error_place(error, opened->profiles[profile].path, 0, "");
    if (code) return code;
    memcpy(&made.machine, machine, sizeof *machine);
    made.model = pc_profile_cost_model(made.cost);
    memcpy(&opened->costs[opened->cost_count++], &made, sizeof made);
    return PC_OK;
}

/* ---- scatter ---- */

static pc_code add_scatter(opened_profile *of, pc_error *error) {
    if (of->scatter) return PC_OK;
    double *made = pc_alloc(PC_SCATTER_QUANTILES, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = pc_profile_scatter(of->profile, made, error);
    if (code == PC_ERROR_INPUT) pc_error_place(error, of->path, 0, "jitter: profile");
    if (code)
        pc_free(made);
    else
        of->scatter = made;
    return code;
}

pc_code pc_run_profiles_open(pc_run_profiles *opened, const pc_run_spec *spec, pc_error *error) {
    const char *path = profile_of(spec);
    if (!path) return PC_OK;
    pc_code code = find_own(opened, spec) < 0 ? add_profile(opened, path, !spec->profile_path, error) : PC_OK;
    if (code) return code;
    int number = find_own(opened, spec);
    opened_profile *profile = &opened->profiles[number];
    code = check_kernels(profile, spec, error);
    if (!code && !find_cost(opened, spec)) {
        pc_machine machine;
        pc_run_profile_machine(profile->profile, spec, &machine);
        code = add_cost(opened, number, &machine, error);
    }
    return code || !spec->has_profile_jitter ? code : add_scatter(profile, error);
}

void pc_run_profile_apply(const pc_profile *profile, const pc_profile_cost *cost, const pc_cost_model *model,
                          pc_run_spec *spec) {
    const pc_tuning *tuning = &profile->tuning;
    spec->has_kernels = has_all_kernels(profile);
    if (spec->has_kernels) {
        take_kernels(&spec->beside_profile.other, &spec->iteration.bad_days.other_gpu);
        spec->iteration.cut.kernels = PC_KERNELS_FUSED;
    }
    spec->cost = model;
    spec->has_tuning = tuning->is_there;
    spec->iteration.machine = *pc_profile_cost_machine(cost);
    spec->iteration.overlap_slowdown = pc_tuning_overlap(tuning, spec->iteration.overlap_slowdown);
    spec->overhead_ps = spec->iteration.overhead_ps = pc_tuning_overhead_ps(tuning, spec->iteration.overhead_ps);
}

void pc_run_profiles_use(const pc_run_profiles *opened, pc_run_spec *spec) {
    if (!profile_of(spec)) return;
    const profile_cost *found = find_cost(opened, spec);
    const pc_profile *profile = opened->profiles[found->profile].profile;
    spec->profile_hash = opened->profiles[found->profile].hash;
    pc_run_profile_apply(profile, found->cost, &found->model, spec);
    if (spec->has_profile_jitter)
        spec->iteration.bad_days.passes =
            (pc_empirical){opened->profiles[found->profile].scatter, PC_SCATTER_QUANTILES};
}

/* ---- at the end ---- */

static void warn_of(const profile_cost *cost, const char *path, pc_run_profiles_say *warn, void *context) {
    char line[1024];
    pc_error text;
    int number = 0;
    for (; pc_profile_cost_warning(cost->cost, number, line, sizeof line); number++) {
        if (number >= LINES_MAX) continue;
        pc_error_set(&text, PC_OK, "%s: %s", path, line); /* which makes it one line */
        warn(context, text.message);
    }
    if (number <= LINES_MAX) return;
    pc_error_set(&text, PC_OK, "%s: and %d more", path, number - LINES_MAX);
    warn(context, text.message);
}

void pc_run_profiles_warn(const pc_run_profiles *opened, pc_run_profiles_say *warn, void *context) {
    for (int i = 0; i < opened->cost_count; i++) {
        const opened_profile *profile = &opened->profiles[opened->costs[i].profile];
        if (!profile->is_shipped) warn_of(&opened->costs[i], profile->path, warn, context);
    }
}

void pc_run_profiles_close(pc_run_profiles *opened) {
    for (int i = 0; i < opened->cost_count; i++) pc_profile_cost_free(opened->costs[i].cost);
    for (int i = 0; i < opened->profile_count; i++) {
        pc_free(opened->profiles[i].scatter);
        if (opened->profiles[i].is_shared) continue;
        pc_profile_free(opened->profiles[i].profile);
        pc_free(opened->profiles[i].profile);
    }
    pc_free(opened->costs);
    pc_free(opened->profiles);
    *opened = (pc_run_profiles){0};
}
