/* One rank: meets the others, checks every collective, times it. Whatever decides how often something runs is agreed
 * on over all ranks first, or they would wait for each other for ever. */
#include "calib/device/measure_private.h"

#include "engine/alloc.h"
#include "engine/clock.h"
#include "engine/random.h"
#include "kernels/device.h"
#include "kernels/transfer.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 40, SAMPLES_LEAST = 5, BLOCK_ELEMENTS = 1 << 21, ID_WAIT_S = 300 };
/* A sample lasts this long at least: the two events beside it take about a microsecond. */
static const double sample_s = 200e-6;

typedef struct member {
    const pc_rank_task *task;
    pc_device *device;
    pc_transfer_group *group;
    void *send, *receive;
    uint16_t *host; /* BLOCK_ELEMENTS */
    pc_profile profile;
    double start_s;
    double begun_s; /* behind the start: the first collective */
} member;

/* ---- the place where ranks meet ---- */

const char *pc_rank_file(const char *folder, const char *name, int number) {
    static _Thread_local char path[4096];
    if (number >= 0)
        snprintf(path, sizeof path, "%s/%s.%d", folder, name, number);
    else
        snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static pc_code write_id(const char *path, const pc_transfer_id *id, pc_error *error) {
    char part[4096 + 8];
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "wb");
    bool is_written = file && fwrite(id->bytes, sizeof id->bytes, 1, file) == 1;
    if (file && fclose(file)) is_written = false;
    if (!is_written || rename(part, path))
        return pc_error_set_file(error, PC_ERROR_IO, path, "%s; expected a folder that all ranks can write",
                                 strerror(errno));
    return PC_OK;
}

static pc_code read_id(const char *path, pc_transfer_id *id, pc_error *error) {
    for (int wait_ms = 0; wait_ms < ID_WAIT_S * 1000; wait_ms += 20) {
        FILE *file = fopen(path, "rb");
        bool is_read = file && fread(id->bytes, sizeof id->bytes, 1, file) == 1;
        if (file) fclose(file);
        if (is_read) return PC_OK;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return pc_error_set_file(error, PC_ERROR_IO, path, "rank 0 left no id within %d s", ID_WAIT_S);
}

static pc_code meet(member *r, pc_error *error) {
    const pc_rank_task *task = r->task;
    pc_transfer_id id;
    const char *path = pc_rank_file(task->folder, "id", task->ranks);
    pc_code code = PC_OK;
    if (task->rank == 0) {
        code = pc_transfer_id_make(&id, error);
        if (!code) code = write_id(path, &id, error);
    } else {
        code = read_id(path, &id, error);
        r->start_s = pc_now_s(); /* not of the groups before, that others were in */
    }
    if (!code) code = pc_transfer_open(r->device, &id, task->ranks, task->rank, &r->group, error);
    return code;
}

/* ---- data whose sums are exact ---- */

/* A whole number below 4 for up to 64 ranks, below 2 for more: their sums stay below 256, which bf16 holds exactly
 * (8 bits), in whatever order they are added. A mix of place and rank, so that what lands elsewhere is seen. */
static int value_at(int from_rank, int ranks, int64_t place) {
    return (int)(pc_seed_of((uint64_t)place * 64 + (uint64_t)from_rank) & (ranks <= 64 ? 3 : 1));
}

static uint16_t bf16_of(int whole) {
    float value = (float)whole;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static int sum_at(int ranks, int64_t place) {
    int sum = 0;
    for (int from = 0; from < ranks; from++) sum += value_at(from, ranks, place);
    return sum;
}

/* What element `place` of the receive buffer has to be; `count` elements are the whole tensor. */
static int expected_at(pc_transfer_kind transfer, int rank, int ranks, int64_t count, int64_t place) {
    int64_t part = count / ranks;
    switch (transfer) {
    case PC_TRANSFER_ALL_REDUCE:
        return sum_at(ranks, place);
    case PC_TRANSFER_REDUCE_SCATTER:
        return sum_at(ranks, rank * part + place);
    case PC_TRANSFER_ALL_GATHER:
        return value_at((int)(place / part), ranks, place % part);
    case PC_TRANSFER_ALL_TO_ALL:
        return value_at((int)(place / part), ranks, rank * part + place % part);
    default:
        return value_at((rank + ranks - 1) % ranks, ranks, place);
    }
}

static pc_code fill_send(member *r, int64_t elements, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t at = 0; !code && at < elements; at += BLOCK_ELEMENTS) {
        int64_t here = elements - at < BLOCK_ELEMENTS ? elements - at : BLOCK_ELEMENTS;
        for (int64_t i = 0; i < here; i++) r->host[i] = bf16_of(value_at(r->task->rank, r->task->ranks, at + i));
        code = pc_device_upload(r->device, (uint16_t *)r->send + at, r->host, 2 * here, error);
    }
    return code;
}

/* Counts what is wrong in one block of the receive buffer. */
static pc_code count_wrong(member *r, pc_transfer_kind transfer, int64_t count, int64_t at, int64_t here,
                           int64_t *wrong, pc_error *error) {
    pc_code code = pc_device_download(r->device, r->host, (const uint16_t *)r->receive + at, 2 * here, error);
    for (int64_t i = 0; !code && i < here; i++)
        *wrong += r->host[i] != bf16_of(expected_at(transfer, r->task->rank, r->task->ranks, count, at + i));
    return code;
}

/* Runs it once into a poisoned buffer. Of large ones the first, a middle and the last block are looked at. */
static pc_code check(member *r, pc_transfer_kind transfer, int64_t count, double *wrong, pc_error *error) {
    int64_t send, receive, bad = 0;
    pc_transfer_buffers(transfer, r->task->ranks, count, &send, &receive);
    pc_code code = pc_device_fill(r->device, r->receive, PC_BF16, receive, PC_FILL_POISON, 0, 0, error);
    if (!code) code = pc_transfer_enqueue(r->group, transfer, PC_BF16, r->send, r->receive, count, error);
    if (!code) code = pc_device_wait(r->device, error);
    int64_t block = receive < BLOCK_ELEMENTS ? receive : BLOCK_ELEMENTS;
    int64_t places[] = {0, (receive - block) / 2, receive - block};
    for (int i = 0; !code && i < 3; i++)
        if (i == 0 || places[i] != places[i - 1]) code = count_wrong(r, transfer, count, places[i], block, &bad, error);
    *wrong = (double)bad;
    return code ? code : pc_transfer_largest(r->group, wrong, 1, error);
}

/* ---- time ---- */

typedef struct repetition {
    member *member;
    pc_transfer_kind transfer;
    int64_t count;
} repetition;

static pc_code repeat(void *self, int number, pc_error *error) {
    (void)number;
    repetition *x = self;
    return pc_transfer_enqueue(x->member->group, x->transfer, PC_BF16, x->member->send, x->member->receive, x->count,
                               error);
}

/* Seconds of one, of the slowest rank. One before the clock starts brings the ranks together. */
static pc_code time_once(member *r, repetition *repeated, int repeats, double *seconds, pc_error *error) {
    pc_code code = repeat(repeated, 0, error);
    if (!code) code = pc_device_time(r->device, repeat, repeated, repeats, false, seconds, error);
    if (!code) *seconds /= repeats;
    return code;
}

static double elapsed_s(const member *r) {
    return pc_now_s() - r->start_s;
}

/* How often, from a first rough time and what is left of the budget; the same on all ranks, for what goes in is. */
static void decide(double rough_s, double left_s, int *repeats, int *samples) {
    double wanted = ceil(sample_s / rough_s);
    *repeats = wanted > 50 ? 50 : wanted < 1 ? 1 : (int)wanted;
    double fitting = left_s / 8 / (rough_s * (*repeats + 1));
    *samples = fitting > SAMPLES ? SAMPLES : fitting < SAMPLES_LEAST ? SAMPLES_LEAST : (int)fitting;
}

static pc_code add(member *r, pc_transfer_kind transfer, int64_t bytes, double wrong, const double *seconds,
                   int samples, pc_error *error) {
    pc_transfer_measurement x = {.ranks = r->task->ranks, .nodes = r->task->nodes, .size_bytes = (double)bytes};
    snprintf(x.collective, sizeof x.collective, "%s", pc_transfer_name(transfer));
    snprintf(x.link, sizeof x.link, "%s", r->task->link);
    x.wrong = (int64_t)wrong;
    double room[SAMPLES];
    pc_statistics_of(seconds, samples, room, &x.seconds);
    x.algbw = x.size_bytes / x.seconds.median;
    x.busbw = x.algbw * pc_transfer_bus_factor(transfer, r->task->ranks);
    return pc_profile_add_transfer(&r->profile, &x, seconds, error);
}

/* One size; *is_last where a larger one would take more time than is left. */
static pc_code measure_size(member *r, pc_transfer_kind transfer, int64_t bytes, double until_s, bool *is_last,
                            pc_error *error) {
    int64_t count = bytes / 2 / r->task->ranks * r->task->ranks;
    repetition x = {r, transfer, count};
    double wrong, agreed[2];
    pc_code code = check(r, transfer, count, &wrong, error);
    if (!code) code = time_once(r, &x, 1, &agreed[0], error);
    if (code) return code;
    agreed[1] = elapsed_s(r);
    code = pc_transfer_largest(r->group, agreed, 2, error);
    double seconds[SAMPLES], left_s = until_s - agreed[1];
    int repeats, samples;
    decide(agreed[0], left_s, &repeats, &samples);
    for (int i = 0; !code && i < samples; i++) code = time_once(r, &x, repeats, &seconds[i], error);
    if (!code) code = pc_transfer_largest(r->group, seconds, samples, error);
    if (!code) code = add(r, transfer, 2 * count, wrong, seconds, samples, error);
    double spent_s = elapsed_s(r);
    if (!code) code = pc_transfer_largest(r->group, &spent_s, 1, error);
    *is_last = spent_s + 2 * SAMPLES_LEAST * 2 * agreed[0] > until_s;
    return code;
}

static pc_code measure_transfer(member *r, pc_transfer_kind transfer, pc_error *error) {
    enum { LEAST_BYTES = 1024 };
    const double least_share = 0.4; /* of the budget, however long it took to come together */
    double left_s = fmax(r->task->budget_s - r->begun_s, least_share * r->task->budget_s);
    double until_s = r->begun_s + left_s * (double)(transfer + 1) / PC_TRANSFERS;
    bool is_last = false;
    pc_code code = PC_OK;
    for (int64_t bytes = LEAST_BYTES; !code && !is_last && bytes <= r->task->most_bytes; bytes *= 2)
        if (bytes / 2 >= r->task->ranks) code = measure_size(r, transfer, bytes, until_s, &is_last, error);
    if (!code && r->task->rank == 0)
        code = pc_profile_write(&r->profile, pc_rank_file(r->task->folder, "transfers.h5", -1), error);
    return code;
}

/* Contexts, libraries and meeting take seconds, which are part of the budget. */
static pc_code prepare(member *r, pc_error *error) {
    r->start_s = pc_now_s();
    pc_code code = pc_device_open(r->task->device, &r->device, error);
    if (!code) code = meet(r, error);
    if (!code) code = pc_device_allocate(r->device, r->task->most_bytes, &r->send, error);
    if (!code) code = pc_device_allocate(r->device, r->task->most_bytes, &r->receive, error);
    if (!code) r->host = pc_alloc(BLOCK_ELEMENTS, sizeof *r->host);
    if (!code && !r->host) code = pc_error_no_memory(error);
    if (!code) code = fill_send(r, r->task->most_bytes / 2, error);
    r->begun_s = elapsed_s(r);
    return code ? code : pc_transfer_largest(r->group, &r->begun_s, 1, error);
}

pc_code pc_rank_measure(const pc_rank_task *task, pc_error *error) {
    member r = {.task = task};
    pc_code code = prepare(&r, error);
    for (int t = 0; !code && t < PC_TRANSFERS; t++) code = measure_transfer(&r, (pc_transfer_kind)t, error);
    if (code)
        pc_transfer_abandon(r.group);
    else
        pc_transfer_close(r.group);
    if (r.device) {
        pc_device_free(r.device, r.send);
        pc_device_free(r.device, r.receive);
    }
    pc_device_close(r.device);
    pc_free(r.host);
    pc_profile_free(&r.profile);
    return code;
}

/* ---- a rank's arguments; what a rank leaves ---- */

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
    return pc_error_set_file(error, PC_ERROR_IO, folder, "%s; expected a folder that all ranks see, and only they",
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
