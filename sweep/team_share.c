/* Bytes of all ranks for all ranks, in messages of a few numbers: to the first rank, and from it.
 *
 * A rank's first message is its code, its error and how many bytes follow. The first rank answers alike. */
#include "sweep/team_private.h"

#include "engine/alloc.h"

#include <string.h>
#include <time.h>

enum { PIECE = PC_TEAM_MESSAGE_MAX * 8, WAIT_LEAST_US = 20, WAIT_MOST_US = 1000 };

/* A text of bytes on its way. */
typedef struct parcel {
    bool has_head, is_lost; /* lost: there is no memory for it, or who sends it has left */
    pc_code code;
    pc_error error;
    char *bytes;
    size_t size, come;
} parcel;

static bool is_whole(const parcel *p) {
    return p->is_lost || (p->has_head && p->come == p->size);
}

/* Waits a little, each time longer. */
static void wait_longer(int *us) {
    struct timespec time = {.tv_nsec = *us * 1000L};
    nanosleep(&time, NULL);
    *us = *us < WAIT_MOST_US / 2 ? *us * 2 : WAIT_MOST_US;
}

/* ---- sending ---- */

static void send_head(pc_team *team, int64_t to, pc_code code, const pc_error *error, size_t size) {
    int64_t numbers[PC_TEAM_MESSAGE_MAX] = {0};
    numbers[0] = code;
    if (code && error) memcpy(numbers + 1, error, sizeof *error);
    numbers[PC_TEAM_MESSAGE_MAX - 1] = (int64_t)size;
    team->module->send(team->self, to, PC_TEAM_BYTES, numbers, PC_TEAM_MESSAGE_MAX);
}

static void send_all(pc_team *team, int64_t to, pc_code code, const pc_error *error, const void *bytes, size_t size) {
    if (code) size = 0;
    send_head(team, to, code, error, size);
    for (size_t at = 0; at < size; at += PIECE) {
        int64_t numbers[PC_TEAM_MESSAGE_MAX] = {0};
        size_t part = size - at < PIECE ? size - at : PIECE;
        memcpy(numbers, (const char *)bytes + at, part);
        team->module->send(team->self, to, PC_TEAM_BYTES, numbers, (int64_t)(part + 7) / 8);
    }
}

/* ---- receiving ---- */

static void take_head(parcel *p, const int64_t *numbers) {
    p->has_head = true;
    p->code = (pc_code)numbers[0];
    p->size = (size_t)numbers[PC_TEAM_MESSAGE_MAX - 1];
    if (p->code) memcpy(&p->error, numbers + 1, sizeof p->error);
    p->bytes = pc_alloc(p->size + 1, 1);
    if (!p->bytes) p->code = p->code ? p->code : pc_error_no_memory(&p->error);
}

/* Bytes that there is no memory for are counted and dropped, so that nothing of them is left for the next time. */
static void take_message(parcel *p, const int64_t *numbers) {
    if (!p->has_head) return take_head(p, numbers);
    size_t part = p->size - p->come < PIECE ? p->size - p->come : PIECE;
    if (p->bytes) memcpy(p->bytes + p->come, numbers, part);
    p->come += part;
}

/* Takes what has come from ranks `first` and on. */
static void take_messages(pc_team *team, parcel *parcels) {
    int64_t from, numbers[PC_TEAM_MESSAGE_MAX];
    while (team->module->receive(team->self, PC_TEAM_BYTES, &from, numbers) >= 0) take_message(&parcels[from], numbers);
}

/* Until all that is to come of ranks first .. end-1 is there, or who should send it has left. */
static void receive_all(pc_team *team, parcel *parcels, int64_t first, int64_t end) {
    int us = WAIT_LEAST_US;
    for (;;) {
        bool is_done = true;
        for (int64_t i = first; i < end; i++) (void)pc_team_has_left(team, i); /* what it sent before has come then */
        take_messages(team, parcels);
        for (int64_t i = first; i < end; i++) {
            if (is_whole(&parcels[i])) continue;
            if (team->notes[i].has_left) {
                parcels[i].is_lost = true;
                parcels[i].code = pc_team_set_left(&parcels[i].error, i);
            } else {
                is_done = false;
            }
        }
        if (is_done) return;
        wait_longer(&us);
    }
}

/* ---- all together ---- */

/* Of the lowest rank that has one. */
static pc_code first_code(const parcel *parcels, int64_t count, pc_code code, pc_error *error) {
    for (int64_t i = 1; i < count && !code; i++)
        if (parcels[i].code) code = pc_error_copy(error, &parcels[i].error);
    return code;
}

static pc_code join(const parcel *parcels, int64_t count, const void *bytes, size_t size, char **all, size_t *all_size,
                    pc_error *error) {
    *all_size = size;
    for (int64_t i = 1; i < count; i++) *all_size += parcels[i].size;
    *all = pc_alloc(*all_size + 1, 1);
    if (!*all) return pc_error_no_memory(error);
    if (size > 0) memcpy(*all, bytes, size);
    size_t at = size;
    for (int64_t i = 1; i < count; at += parcels[i++].size)
        if (parcels[i].size > 0) memcpy(*all + at, parcels[i].bytes, parcels[i].size);
    return PC_OK;
}

static pc_code share_first(pc_team *team, pc_code code, const void *bytes, size_t size, void **all, size_t *all_size,
                           pc_error *error) {
    parcel *parcels = pc_alloc((size_t)team->count, sizeof *parcels);
    char *joined = NULL;
    if (!parcels) return pc_error_no_memory(error); /* the others see that this rank leaves */
    receive_all(team, parcels, 1, team->count);
    code = first_code(parcels, team->count, code, error);
    if (!code) code = join(parcels, team->count, bytes, size, &joined, all_size, error);
    for (int64_t i = 1; i < team->count; i++)
        if (!parcels[i].is_lost) send_all(team, i, code, error, joined, *all_size);
    for (int64_t i = 1; i < team->count; i++) pc_free(parcels[i].bytes);
    pc_free(parcels);
    if (code)
        pc_free(joined);
    else
        *all = joined;
    return code;
}

static pc_code share_other(pc_team *team, pc_code code, const void *bytes, size_t size, void **all, size_t *all_size,
                           pc_error *error) {
    parcel answer = {.has_head = false};
    send_all(team, 0, code, error, bytes, size);
    receive_all(team, &answer, 0, 1);
    if (answer.code) {
        pc_free(answer.bytes);
        return pc_error_copy(error, &answer.error);
    }
    *all = answer.bytes;
    *all_size = answer.size;
    return PC_OK;
}

pc_code pc_team_share(pc_team *team, pc_code code, const void *bytes, size_t size, void **all, size_t *all_size,
                      pc_error *error) {
    *all = NULL;
    *all_size = 0;
    if (!team || !team->module) {
        char *copy = NULL;
        if (!code) code = join(NULL, 1, bytes, size, &copy, all_size, error);
        *all = copy;
        return code;
    }
    if (team->number == 0) return share_first(team, code, bytes, size, all, all_size, error);
    return share_other(team, code, bytes, size, all, all_size, error);
}
