/* A rank's arguments; what a rank leaves; ranks that a launcher started. */
#include "calib/device/transfers.h"

#include "calib/device/launched.h"

#include "kernels/device.h"
#include "kernels/transfer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool whole(const char *text, long long least, long long most, long long *number) {
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return *text && !*end && !errno && *number >= least && *number <= most;
}

pc_code pc_rank_task_parse(int count, char **arguments, pc_rank_task *task, pc_error *error) {
    const char *expected = "expected RANK RANKS NODES DEVICE FOLDER LINK SECONDS BYTES, as pipecast starts itself";
    if (count != PC_RANK_ARGUMENTS)
        return pc_error_set(error, PC_ERROR_INPUT, PC_RANK_COMMAND ": %d arguments; %s", count, expected);
    long long rank, ranks, nodes, device, bytes;
    char *end;
    double budget_s = strtod(arguments[6], &end);
    bool is_right = whole(arguments[1], 2, 1 << 20, &ranks) && whole(arguments[0], 0, ranks - 1, &rank) &&
                    whole(arguments[2], 1, 1 << 20, &nodes) && whole(arguments[3], 0, 1 << 20, &device) &&
                    whole(arguments[7], 1024, LLONG_MAX, &bytes) && !*end && budget_s > 0;
    if (!is_right) return pc_error_set(error, PC_ERROR_INPUT, PC_RANK_COMMAND ": %s", expected);
    *task = (pc_rank_task){.rank = (int)rank,
                           .ranks = (int)ranks,
                           .nodes = (int)nodes,
                           .device = (int)device,
                           .folder = arguments[4],
                           .link = arguments[5],
                           .budget_s = budget_s,
                           .most_bytes = bytes};
    return PC_OK;
}

pc_code pc_rank_take(const char *path, pc_profile *profile, pc_error *error) {
    pc_profile made;
    pc_code code = pc_profile_read(path, &made, error);
    if (code) return code;
    code = pc_profile_append(profile, &made, error);
    pc_profile_free(&made);
    return code;
}

/* ---- started by mpirun or srun ---- */

/* A rank that sees a single GPU has it for itself, as a launcher gave it out: NCCL joins no two ranks on one. How that
 * one is joined to the others, it cannot ask. */
static const char *link_of(int nodes, int devices) {
    if (nodes > 1) return "network";
    return devices > 1 ? pc_transfer_link(0, 1) : "unknown";
}

/* Ranks 0 .. ranks - 1 of the job as a group of their own; others have nothing to do. */
static pc_code measure_first(const pc_calibrate_request *request, const pc_launched *launched, int ranks,
                             const char *folder, int devices, double budget_s, pc_profile *profile, pc_error *error) {
    if (launched->rank >= ranks) return PC_OK;
    int nodes = (ranks + launched->local_ranks - 1) / launched->local_ranks;
    pc_rank_task task = {.rank = launched->rank,
                         .ranks = ranks,
                         .nodes = nodes,
                         .device = launched->local_rank % devices,
                         .folder = folder,
                         .link = link_of(nodes, devices),
                         .budget_s = budget_s,
                         .most_bytes = pc_transfers_most_bytes(request->effort)};
    pc_code code = pc_rank_measure(&task, error);
    if (code || launched->rank > 0) return code;
    code = pc_rank_take(pc_rank_file(folder, "transfers.h5", -1), profile, error);
    unlink(pc_rank_file(folder, "id", ranks));
    unlink(pc_rank_file(folder, "transfers.h5", -1));
    return code;
}

/* The one that another rank of ours made, and not what a stranger put there: its name can be guessed. */
static bool is_ours(const char *folder) {
    struct stat status;
    return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           !(status.st_mode & (S_IWGRP | S_IWOTH));
}

static pc_code make_folder(const char *folder, pc_error *error) {
    if (mkdir(folder, 0700) == 0 || (errno == EEXIST && is_ours(folder))) return PC_OK;
    return pc_error_set(error, PC_ERROR_IO, "%s: %s; expected a folder that all ranks see, and only they", folder,
                        strerror(errno));
}

pc_code pc_measure_launched(const pc_calibrate_request *request, const pc_launched *launched, const char *folder,
                            int devices, double budget_s, pc_profile *profile, pc_error *error) {
    pc_code code = make_folder(folder, error);
    if (code) return code;
    int groups = 1;
    for (int n = 2; n < launched->ranks; n *= 2) groups++;
    for (int n = 2; !code && n < launched->ranks; n *= 2)
        code = measure_first(request, launched, n, folder, devices, budget_s / groups, profile, error);
    if (!code)
        code = measure_first(request, launched, launched->ranks, folder, devices, budget_s / groups, profile, error);
    if (launched->rank == 0) rmdir(folder);
    return code;
}
