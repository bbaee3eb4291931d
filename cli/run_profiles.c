#include "cli/run_profiles.h"

#include "calib/profile/profile.h"
#include "calib/profile/profile_cost.h"
#include "cli/cli.h"
#include "engine/alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LINES_MAX = 24 }; /* of warnings, a profile and machine */

typedef struct opened_profile {
    const char *path; /* the scenario's */
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

static int find_profile(const run_profiles *x, const char *path) {
    for (int i = 0; i < x->profile_count; i++)
        if (strcmp(x->profiles[i].path, path) == 0) return i;
    return -1;
}

static bool is_opened(const run_profiles *x, const struct stat *status, opened_profile *made) {
    for (int i = 0; i < x->profile_count; i++) {
        if (x->profiles[i].inode != status->st_ino || x->profiles[i].device != status->st_dev) continue;
        made->profile = x->profiles[i].profile;
        made->hash = x->profiles[i].hash;
        made->is_shared = true;
        return true;
    }
    return false;
}

static pc_code read_profile(opened_profile *made, pc_error *error) {
    char hash[17];
    made->profile = pc_alloc(1, sizeof *made->profile);
    if (!made->profile) return pc_error_no_memory(error);
    pc_code code = pc_profile_read(made->path, made->profile, error);
    if (code) return code;
    pc_profile_hash(made->profile, hash);
    made->hash = strtoull(hash, NULL, 16);
    return PC_OK;
}

static pc_code add_profile(run_profiles *x, const char *path, pc_error *error) {
    struct stat status = {0};
    opened_profile made = {.path = path}, *all = pc_realloc(x->profiles, (size_t)x->profile_count + 1, sizeof *all);
    if (!all) return pc_error_no_memory(error);
    x->profiles = all;
    bool is_there = stat(path, &status) == 0;
    made.device = status.st_dev;
    made.inode = status.st_ino;
    pc_code code = is_there && is_opened(x, &status, &made) ? PC_OK : read_profile(&made, error);
    if (!code)
        x->profiles[x->profile_count++] = made;
    else
        pc_free(made.profile); /* empty where it could not be read */
    return code;
}

/* ---- costs ---- */

static const profile_cost *find_cost(const run_profiles *x, const char *path, const pc_machine *machine) {
    int profile = find_profile(x, path);
    for (int i = 0; i < x->cost_count; i++)
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): whole copies of one machine, with what is between */
        if (x->costs[i].profile == profile && memcmp(&x->costs[i].machine, machine, sizeof *machine) == 0)
            return &x->costs[i];
    return NULL;
}

static pc_code add_cost(run_profiles *x, int profile, const pc_machine *machine, pc_error *error) {
    profile_cost made = {.profile = profile}, *all = pc_realloc(x->costs, (size_t)x->cost_count + 1, sizeof *all);
    if (!all) return pc_error_no_memory(error);
    x->costs = all;
    pc_code code = pc_profile_cost_make(x->profiles[profile].profile, machine, &made.cost, error);
    if (code == PC_ERROR_INPUT) pc_error_prefix(error, "%s", x->profiles[profile].path);
    if (code) return code;
    memcpy(&made.machine, machine, sizeof *machine);
    made.model = pc_profile_cost_model(made.cost);
    memcpy(&x->costs[x->cost_count++], &made, sizeof made);
    return PC_OK;
}

/* ---- scatter ---- */

static pc_code add_scatter(opened_profile *of, pc_error *error) {
    if (of->scatter) return PC_OK;
    double *made = pc_alloc(PC_SCATTER_QUANTILES, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = pc_profile_scatter(of->profile, made, error);
    if (code == PC_ERROR_INPUT) pc_error_prefix(error, "%s: jitter: profile", of->path);
    if (code)
        pc_free(made);
    else
        of->scatter = made;
    return code;
}

pc_code run_profiles_open(run_profiles *x, const pc_run_spec *spec, pc_error *error) {
    const char *path = spec->profile_path;
    if (!path) return PC_OK;
    pc_code code = find_profile(x, path) < 0 ? add_profile(x, path, error) : PC_OK;
    if (!code && !find_cost(x, path, &spec->iteration.machine))
        code = add_cost(x, find_profile(x, path), &spec->iteration.machine, error);
    if (code || !spec->has_profile_jitter) return code;
    return add_scatter(&x->profiles[find_profile(x, path)], error);
}

void run_profiles_use(const run_profiles *x, pc_run_spec *spec) {
    if (!spec->profile_path) return;
    const profile_cost *found = find_cost(x, spec->profile_path, &spec->iteration.machine);
    spec->cost = &found->model;
    spec->profile_hash = x->profiles[found->profile].hash;
    spec->iteration.machine = *pc_profile_cost_machine(found->cost);
    if (spec->has_profile_jitter)
        spec->iteration.bad_days.passes = (pc_empirical){x->profiles[found->profile].scatter, PC_SCATTER_QUANTILES};
}

/* ---- at the end ---- */

void run_profiles_warn(const run_profiles *x) {
    char line[1024];
    for (int i = 0; i < x->cost_count; i++) {
        const char *path = x->profiles[x->costs[i].profile].path;
        int number = 0;
        for (; pc_profile_cost_warning(x->costs[i].cost, number, line, sizeof line); number++)
            if (number < LINES_MAX) report_usage("warning: %s: %s", path, line);
        if (number > LINES_MAX) report_usage("warning: %s: and %d more", path, number - LINES_MAX);
    }
}

void run_profiles_close(run_profiles *x) {
    for (int i = 0; i < x->cost_count; i++) pc_profile_cost_free(x->costs[i].cost);
    for (int i = 0; i < x->profile_count; i++) {
        pc_free(x->profiles[i].scatter);
        if (x->profiles[i].is_shared) continue;
        pc_profile_free(x->profiles[i].profile);
        pc_free(x->profiles[i].profile);
    }
    pc_free(x->costs);
    pc_free(x->profiles);
    *x = (run_profiles){0};
}
