/* Starting the ranks of this machine and collecting what they measured. */
#include "calib/device/measure_private.h"

#include "engine/alloc.h"
#include "engine/clock.h"
#include "kernels/device.h"
#include "kernels/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { RANKS_MAX = 64, ENVIRONMENT_MAX = 4096 };
/* How much longer than its budget a group may take before it counts as stuck. */
static double patience_s(const pc_calibrate_request *request) {
    return request->effort == PC_CALIBRATE_FULL ? 90 : 30;
}

/* ---- one group's processes ---- */

typedef struct ranks {
    const pc_calibrate_request *request;
    int ranks, devices;
    double budget_s;
    int64_t most_bytes;
    char folder[64];
    pid_t process[RANKS_MAX]; /* 0: ended */
} ranks;

/* With one device for two ranks NCCL would refuse to join them; told that they are on two hosts, it takes the network,
 * which is the loopback interface here. */
static const char *const alone_settings[] = {
    "NCCL_SOCKET_IFNAME=lo", "NCCL_IB_DISABLE=1",  "NCCL_P2P_DISABLE=1",  "NCCL_SHM_DISABLE=1",
    "NCCL_NET=Socket",       "NCCL_NVLS_ENABLE=0", "NCCL_MNNVL_ENABLE=0",
};

typedef struct settings {
    char host[48];
    char *list[ENVIRONMENT_MAX + 8];
} settings;

/* Of two entries of a name the first would count, which is the one that was there before. */
static bool is_set_here(const char *entry) {
    if (strncmp(entry, "NCCL_HOSTID=", 12) == 0) return true;
    for (size_t i = 0; i < sizeof alone_settings / sizeof *alone_settings; i++)
        if (strncmp(entry, alone_settings[i], strcspn(alone_settings[i], "=") + 1) == 0) return true;
    return false;
}

static void make_settings(settings *s, const ranks *group, int rank) {
    int count = 0;
    bool shares = group->devices == 1;
    for (char **entry = environ; *entry && count < ENVIRONMENT_MAX; entry++)
        if (!shares || !is_set_here(*entry)) s->list[count++] = *entry;
    if (shares) {
        snprintf(s->host, sizeof s->host, "NCCL_HOSTID=pipecast-%d", rank);
        s->list[count++] = s->host;
        for (size_t i = 0; i < sizeof alone_settings / sizeof *alone_settings; i++)
            s->list[count++] = (char *)alone_settings[i]; /* posix_spawn does not write to it */
    }
    s->list[count] = NULL;
}

static const char *link_of(const ranks *group) {
    return group->devices == 1 ? "loopback" : pc_transfer_link(0, 1);
}

static pc_code start_rank(ranks *group, int rank, pc_error *error) {
    char number[PC_RANK_ARGUMENTS][32];
    snprintf(number[0], sizeof number[0], "%d", rank);
    snprintf(number[1], sizeof number[1], "%d", group->ranks);
    snprintf(number[2], sizeof number[2], "%d", group->devices == 1 ? group->request->device : rank);
    snprintf(number[3], sizeof number[3], "%.3f", group->budget_s);
    snprintf(number[4], sizeof number[4], "%lld", (long long)group->most_bytes);
    char *arguments[] = {
        (char *)group->request->program, PC_RANK_COMMAND, number[0], number[1], "1", number[2], group->folder,
        (char *)link_of(group),          number[3],       number[4], NULL};
    settings *s = pc_alloc(1, sizeof *s);
    if (!s) return pc_error_no_memory(error);
    make_settings(s, group, rank);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    const char *log = pc_rank_file(group->folder, "log", rank);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    int failed = posix_spawn(&group->process[rank], group->request->program, &files, NULL, arguments, s->list);
    posix_spawn_file_actions_destroy(&files);
    pc_free(s);
    if (!failed) return PC_OK;
    group->process[rank] = 0;
    return pc_error_set(error, PC_ERROR_IO, "%s: cannot be started: %s", group->request->program, strerror(failed));
}

static void kill_all(ranks *group) {
    for (int r = 0; r < group->ranks; r++)
        if (group->process[r]) {
            kill(group->process[r], SIGKILL);
            waitpid(group->process[r], NULL, 0);
            group->process[r] = 0;
        }
}

/* The last line that a rank printed says why it failed. */
static void last_line(const ranks *group, int rank, char *line, size_t size) {
    snprintf(line, size, "it said nothing");
    FILE *file = fopen(pc_rank_file(group->folder, "log", rank), "r");
    if (!file) return;
    char read[512];
    while (fgets(read, sizeof read, file)) {
        read[strcspn(read, "\n")] = 0;
        if (*read) snprintf(line, size, "%s", read);
    }
    fclose(file);
}

static pc_code say_failed(const ranks *group, int rank, pc_error *error) {
    char line[512];
    last_line(group, rank, line, sizeof line);
    return pc_error_set(error, PC_ERROR_IO, "transfers: rank %d of %d failed: %s", rank, group->ranks, line);
}

/* How many still run; an error for the first that failed. */
static pc_code look_at(ranks *group, int *running, pc_error *error) {
    *running = 0;
    for (int r = 0; r < group->ranks; r++) {
        int status;
        if (!group->process[r]) continue;
        if (waitpid(group->process[r], &status, WNOHANG) == 0) {
            ++*running;
            continue;
        }
        group->process[r] = 0;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return say_failed(group, r, error);
    }
    return PC_OK;
}

/* Until all are done, one fails, the user interrupts, or they are stuck. */
static pc_code wait_for(ranks *group, pc_error *error) {
    double most_s = group->budget_s + patience_s(group->request), until_s = pc_now_s() + most_s;
    int running = group->ranks;
    pc_code code = PC_OK;
    while (!code && running > 0) {
        const volatile int *interrupted = group->request->is_interrupted;
        if (interrupted && *interrupted) break;
        if (pc_now_s() > until_s)
            code =
                pc_error_set(error, PC_ERROR_IO, "transfers: %d ranks did not end within %.0f s", group->ranks, most_s);
        else
            code = look_at(group, &running, error);
        if (!code && running > 0) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    kill_all(group);
    return code;
}

/* ---- what they leave ---- */

static void remove_folder(const ranks *group) {
    for (int r = 0; r < group->ranks; r++) unlink(pc_rank_file(group->folder, "log", r));
    unlink(pc_rank_file(group->folder, "id", group->ranks));
    unlink(pc_rank_file(group->folder, "transfers.h5", -1));
    rmdir(group->folder);
}

static pc_code make_folder(ranks *group, pc_error *error) {
    const char *temporary = getenv("TMPDIR");
    if (!temporary || strlen(temporary) > 40) temporary = "/tmp";
    snprintf(group->folder, sizeof group->folder, "%s/pipecast-XXXXXX", temporary);
    if (mkdtemp(group->folder)) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_IO, group->folder, "%s; expected a folder for temporary files",
                             strerror(errno));
}

static pc_code measure_group(ranks *group, pc_profile *profile, pc_error *error) {
    pc_code code = make_folder(group, error);
    if (code) return code;
    for (int r = 0; !code && r < group->ranks; r++) code = start_rank(group, r, error);
    if (code)
        kill_all(group);
    else
        code = wait_for(group, error);
    /* Also of a group that failed later: rank 0 writes after every collective. */
    const char *path = pc_rank_file(group->folder, "transfers.h5", -1);
    if (access(path, R_OK) == 0) {
        pc_code taken = pc_rank_take(path, profile, code ? NULL : error);
        if (!code) code = taken;
    }
    remove_folder(group);
    return code;
}

/* ---- all groups ---- */

int64_t pc_transfers_most_bytes(pc_calibrate_effort effort) {
    const int64_t mib = 1 << 20;
    return effort == PC_CALIBRATE_FULL ? 1024 * mib : effort == PC_CALIBRATE_QUICK ? 256 * mib : mib / 16;
}

/* Every size up to all devices; in a hurry powers of two and all. One device: two ranks. */
static int group_sizes(pc_calibrate_effort effort, int devices, int sizes[RANKS_MAX]) {
    int count = 0, all = devices > RANKS_MAX ? RANKS_MAX : devices;
    if (all == 1) sizes[count++] = 2;
    for (int n = 2; n <= all; n++)
        if (effort == PC_CALIBRATE_FULL || n == all || (n & (n - 1)) == 0) sizes[count++] = n;
    return count;
}

pc_code pc_warnings_add(char **warnings, const char *line, pc_error *error) {
    size_t before = *warnings ? strlen(*warnings) : 0;
    char *grown = pc_realloc(*warnings, before + strlen(line) + 2, 1);
    if (!grown) return pc_error_no_memory(error);
    snprintf(grown + before, strlen(line) + 2, "%s\n", line);
    *warnings = grown;
    return PC_OK;
}

pc_code pc_measure_transfers(const pc_calibrate_request *request, int devices, double budget_s, pc_profile *profile,
                             char **warnings, pc_error *error) {
    int sizes[RANKS_MAX], count = group_sizes(request->effort, devices, sizes);
    pc_code code = PC_OK;
    for (int i = 0; !code && i < count; i++) {
        ranks group = {.request = request,
                       .ranks = sizes[i],
                       .devices = devices,
                       .budget_s = budget_s / count,
                       .most_bytes = pc_transfers_most_bytes(request->effort)};
        pc_error why = {0};
        if (request->is_interrupted && *request->is_interrupted) break;
        pc_code failed = measure_group(&group, profile, &why);
        if (failed == PC_ERROR_NO_MEMORY) code = pc_error_no_memory(error);
        if (failed && !code) code = pc_warnings_add(warnings, why.message, error);
        if (request->progress.step) request->progress.step(request->progress.self, i + 1, count, "transfers");
    }
    return code;
}
