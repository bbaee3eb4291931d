#include "calib/profile/profile.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void pc_profile_free(pc_profile *profile) {
    for (int64_t i = 0; i < profile->fit_count; i++) pc_fit_free(&profile->fit[i]);
    pc_free(profile->kernel);
    pc_free(profile->transfer);
    pc_free(profile->sample);
    pc_free(profile->fit);
    pc_free(profile->replay);
    *profile = (pc_profile){0};
}

bool pc_profile_has_kernels(const pc_profile *profile) {
    for (int64_t i = 0; i < profile->fit_count; i++)
        if (!pc_fit_form_is_transfer(profile->fit[i].key.form)) return true;
    return false;
}

/* ---- appending ---- */

/* Room for `more` elements of `size` bytes in an array that holds `count` and has room for *room. */
static pc_code make_room(void **array, int64_t count, int64_t more, int64_t *room, size_t size, pc_error *error) {
    if (more <= *room - count) return PC_OK;
    int64_t wanted = *room ? 2 * *room : 16;
    if (wanted < count + more) wanted = count + more;
    void *grown = pc_realloc(*array, (size_t)wanted, size);
    if (!grown) return pc_error_no_memory(error);
    *array = grown;
    *room = wanted;
    return PC_OK;
}

#define MAKE_ROOM(profile, what, more, error)                                                                          \
    make_room((void **)&(profile)->what, (profile)->what##_count, more, &(profile)->what##_room,                       \
              sizeof *(profile)->what, error)

/* Keeps the raw samples behind all others; *first is where they begin, -1 if there are none. */
static pc_code add_samples(pc_profile *profile, const double *samples, int64_t count, int64_t *first, pc_error *error) {
    *first = -1;
    if (!samples || count < 1) return PC_OK;
    pc_code code = MAKE_ROOM(profile, sample, count, error);
    if (code) return code;
    memcpy(profile->sample + profile->sample_count, samples, (size_t)count * sizeof *samples);
    *first = profile->sample_count;
    profile->sample_count += count;
    return PC_OK;
}

pc_code pc_profile_add_kernel(pc_profile *profile, const pc_kernel_measurement *kernel, const double *samples,
                              pc_error *error) {
    int64_t first;
    pc_code code = MAKE_ROOM(profile, kernel, 1, error);
    if (!code) code = add_samples(profile, samples, kernel->seconds.count, &first, error);
    if (code) return code;
    pc_kernel_measurement *kept = &profile->kernel[profile->kernel_count++];
    *kept = *kernel;
    kept->first_sample = first;
    return PC_OK;
}

pc_code pc_profile_add_transfer(pc_profile *profile, const pc_transfer_measurement *transfer, const double *samples,
                                pc_error *error) {
    int64_t first;
    pc_code code = MAKE_ROOM(profile, transfer, 1, error);
    if (!code) code = add_samples(profile, samples, transfer->seconds.count, &first, error);
    if (code) return code;
    pc_transfer_measurement *kept = &profile->transfer[profile->transfer_count++];
    *kept = *transfer;
    kept->first_sample = first;
    return PC_OK;
}

pc_code pc_profile_add_fit(pc_profile *profile, pc_fit *fit, pc_error *error) {
    pc_code code = MAKE_ROOM(profile, fit, 1, error);
    if (code) return code;
    profile->fit[profile->fit_count++] = *fit;
    *fit = (pc_fit){0};
    return PC_OK;
}

pc_code pc_profile_add_replay(pc_profile *profile, const pc_replay_report *report, pc_error *error) {
    pc_code code = MAKE_ROOM(profile, replay, 1, error);
    if (!code) profile->replay[profile->replay_count++] = *report;
    return code;
}

static const double *samples_of(const pc_profile *profile, int64_t first) {
    return first >= 0 ? profile->sample + first : NULL;
}

pc_code pc_profile_append(pc_profile *to, const pc_profile *from, pc_error *error) {
    const pc_profile before = *to;
    pc_code code = PC_OK;
    for (int64_t i = 0; i < from->kernel_count && !code; i++)
        code = pc_profile_add_kernel(to, &from->kernel[i], samples_of(from, from->kernel[i].first_sample), error);
    for (int64_t i = 0; i < from->transfer_count && !code; i++)
        code = pc_profile_add_transfer(to, &from->transfer[i], samples_of(from, from->transfer[i].first_sample), error);
    for (int64_t i = 0; i < from->replay_count && !code; i++) code = pc_profile_add_replay(to, &from->replay[i], error);
    if (!code) return PC_OK;
    to->kernel_count = before.kernel_count;
    to->transfer_count = before.transfer_count;
    to->sample_count = before.sample_count;
    to->replay_count = before.replay_count;
    return code;
}
