/* How ranks find together: what launched them, the module that knows MPI, and the cores that each may use. */
#define _GNU_SOURCE /* CPU_COUNT */
#include "calib/device/launched.h"
#include "sweep/team_build.h"
#include "sweep/team_private.h"

#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char module_file[] = "pipecast-mpi.so";

const char *pc_team_mpi_version(void) {
    return PC_MPI_VERSION;
}

/* ---- cores ---- */

/* Of every core that this rank may run on the part that falls to it, where other ranks of the machine may too. */
static int count_cores(const pc_team_module *module, void *self) {
    cpu_set_t mine;
    int64_t users[CPU_SETSIZE];
    double cores = 0;
    CPU_ZERO(&mine);
    bool is_known = sched_getaffinity(0, sizeof mine, &mine) == 0;
    for (int i = 0; i < CPU_SETSIZE; i++) users[i] = is_known && CPU_ISSET(i, &mine);
    if (module) module->sum_on_machine(self, users, CPU_SETSIZE);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (is_known && CPU_ISSET(i, &mine)) cores += 1.0 / (double)users[i];
    if (!is_known) cores = (double)sysconf(_SC_NPROCESSORS_ONLN); /* more cores than the set has room for */
    return cores < 1 ? 1 : (int)(cores + 1e-6);
}

/* ---- the module ---- */

/* The folder of the running program, with a slash at its end; empty if the system does not say. */
static void own_folder(char folder[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    folder[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(folder, '/');
    folder[slash ? slash + 1 - folder : 0] = '\0';
}

/* Beside the program, as it is built; where it goes with the program's folder as it is installed, also where all of
 * that was moved; or where it was to be installed. */
static void find_module(char path[PATH_MAX]) {
    char folder[PATH_MAX];
    const char *chosen = getenv("PIPECAST_MPI");
    own_folder(folder);
    const char *const folders[] = {folder, folder, PC_PREFIX "/"};
    const char *const within[] = {"", "../" PC_MODULE_FOLDER "/", PC_MODULE_FOLDER "/"};
    if (chosen) snprintf(path, PATH_MAX, "%s", chosen);
    for (size_t i = 0; !chosen && i < sizeof folders / sizeof *folders; i++) {
        int length = snprintf(path, PATH_MAX, "%s%s%s", folders[i], within[i], module_file);
        if (length < PATH_MAX && access(path, F_OK) == 0) return;
    }
}

/* What to do without. */
#define INSTEAD "or each of them alone with a share of its own (PIPECAST_MPI=off, --shard I/%d), then pipecast merge"

static pc_code refuse(const pc_launched *launched, const char *why, const char *expected, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT, "started as one of %d processes: %s; expected %s, " INSTEAD,
                        launched->ranks, why, expected, launched->ranks);
}

/* srun gives a process its number, and without --mpi no way to the others: an MPI library would end it. */
static bool has_way_to_others(void) {
    return getenv("OMPI_COMM_WORLD_RANK") || getenv("PMIX_RANK") || getenv("PMI_RANK");
}

/* Opens it; it stays open, for MPI libraries do not like to be closed. */
static pc_code open_module(const pc_launched *launched, const pc_team_module **module, pc_error *error) {
    char path[PATH_MAX], why[PATH_MAX + 512];
    find_module(path);
    if (access(path, F_OK) && !getenv("PIPECAST_MPI"))
        return refuse(launched, "this pipecast was built without MPI, or its pipecast-mpi.so is gone", "one with it",
                      error);
    /* Global: Open MPI's own parts look for its symbols there. */
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        snprintf(why, sizeof why, "%s", dlerror());
        return refuse(launched, why, "the MPI library that pipecast was built with", error);
    }
    const pc_team_module *found = dlsym(library, PC_TEAM_MODULE_SYMBOL);
    if (!found || found->layout != PC_TEAM_MODULE_LAYOUT) {
        snprintf(why, sizeof why, "%s belongs to another pipecast", path);
        dlclose(library);
        return refuse(launched, why, "the one that was built with this", error);
    }
    *module = found;
    /* cppcheck-suppress resourceLeak ; open until the program ends */
    return PC_OK;
}

/* Joins. A launcher of another MPI than ours leaves each process alone. */
static pc_code start_module(const pc_launched *launched, const pc_team_module *module, int64_t *number, int64_t *count,
                            pc_error *error) {
    char why[256];
    if (!module->start(NULL, number, count)) {
        snprintf(why, sizeof why, "%s does not start", module->name);
        return refuse(launched, why, "an MPI that works", error);
    }
    if (*count == launched->ranks) return PC_OK;
    snprintf(why, sizeof why, "%s finds %d of them", module->name, (int)*count);
    module->end(NULL);
    return refuse(launched, why, "the mpirun or srun --mpi that goes with it", error);
}

static pc_code join(const pc_launched *launched, const pc_team_module **module, int64_t *number, int64_t *count,
                    pc_error *error) {
    if (!has_way_to_others())
        return refuse(launched, "srun gave them no way to each other", "srun --mpi=pmix, or mpirun", error);
    pc_code code = open_module(launched, module, error);
    if (!code) code = start_module(launched, *module, number, count, error);
    if (code) *module = NULL;
    return code;
}

/* Whether a launcher started this process as one of several that are to work together. */
static bool is_one_of_several(pc_launched *launched) {
    const char *chosen = getenv("PIPECAST_MPI");
    return !(chosen && strcmp(chosen, "off") == 0) && pc_launched_ranks(launched);
}

pc_code pc_team_open(pc_team **made, pc_error *error) {
    pc_launched launched;
    const pc_team_module *module = NULL;
    int64_t number = 0, count = 1;
    pc_code code = PC_OK;
    *made = NULL;
    if (is_one_of_several(&launched)) {
        number = launched.rank;
        count = launched.ranks;
        code = join(&launched, &module, &number, &count, error);
    }
    pc_team *team = pc_team_over(module, NULL, number, count);
    if (!team) return pc_error_no_memory(error);
    team->default_jobs = count_cores(module, NULL);
    *made = team;
    return code;
}
