#include "calib/profile/profile.h"
#include "calib/profile/profile_private.h"
#include "storage/sealed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* All numbers as eight bytes, the least first; texts with their end: what is hashed does not depend on the machine. */
static uint64_t add_integer(uint64_t hash, int64_t value) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)value >> (8 * i));
    return pc_sealed_hash(hash, bytes, sizeof bytes);
}

static uint64_t add_reals(uint64_t hash, const double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double value = values[i] + 0.0; /* one zero */
        int64_t bits;
        memcpy(&bits, &value, sizeof bits);
        hash = add_integer(hash, bits);
    }
    return hash;
}

static uint64_t add_text(uint64_t hash, const char *text) {
    return pc_sealed_hash(hash, text, strlen(text) + 1);
}

/* Where the numbers come from, and versions, change nothing. */
static uint64_t add_device(uint64_t hash, const pc_profile_device *device) {
    const int64_t whole[] = {device->compute_major, device->compute_minor,  device->processors,
                             device->memory_bytes,  device->reserved_bytes, device->l2_bytes};
    const double rates[] = {device->sm_clock_hz, device->copy_bytes_per_s, device->gemm_flops_per_s, device->launch_s};
    hash = add_text(add_text(hash, device->name), device->gpu);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) hash = add_integer(hash, whole[i]);
    return add_reals(hash, rates, sizeof rates / sizeof *rates);
}

/* What fits have had since version 3; one without is hashed as before. */
static uint64_t add_origin(uint64_t hash, const pc_fit_key *key) {
    bool is_there = key->library[0] || key->site[0] || key->out_dtype[0] || key->variant[0] || key->head_dim != 0 ||
                    key->window != 0;
    if (!is_there) return hash;
    hash = add_text(add_text(hash, key->library), key->site);
    hash = add_text(add_text(hash, key->out_dtype), key->variant);
    return add_integer(add_integer(hash, key->head_dim), key->window);
}

static uint64_t add_key(uint64_t hash, const pc_fit_key *key) {
    const int64_t whole[] = {key->form, key->cache, key->ranks, key->nodes, key->is_causal};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) hash = add_integer(hash, whole[i]);
    return add_origin(add_text(add_text(add_text(hash, key->subject), key->dtype), key->link), key);
}

static uint64_t add_grid(uint64_t hash, const pc_log_grid *grid) {
    if (grid->axes == 0) return hash;
    for (int32_t a = 0; a < grid->axes; a++) {
        hash = add_integer(add_integer(hash, grid->axis[a]), grid->nodes[a]);
        hash = add_reals(hash, grid->place[a], grid->nodes[a]);
    }
    return add_reals(add_reals(hash, &grid->deviation, 1), grid->value, pc_log_grid_count(grid));
}

static uint64_t add_fit(uint64_t hash, const pc_fit *fit) {
    hash = add_grid(hash, &fit->grid);
    const double rest[] = {fit->residual_deviation, fit->surface_length, fit->surface_amplitude, fit->surface_noise};
    hash = add_integer(add_key(hash, &fit->key), fit->processors);
    hash = add_integer(hash, fit->parameter_count);
    for (int i = 0; i < fit->parameter_count; i++) hash = add_text(hash, fit->parameter_name[i]);
    hash = add_reals(hash, fit->parameter, fit->parameter_count);
    hash = add_reals(hash, fit->covariance, (int64_t)fit->parameter_count * fit->parameter_count);
    hash = add_reals(add_reals(hash, fit->least, fit->dimensions), fit->most, fit->dimensions);
    hash = add_reals(add_integer(hash, fit->count), rest, sizeof rest / sizeof *rest);
    hash = add_reals(hash, fit->x, fit->count * fit->dimensions);
    hash = add_reals(hash, fit->seconds, fit->seconds ? fit->count : 0);
    return add_reals(add_integer(hash, fit->weight != NULL), fit->weight, fit->weight ? fit->count : 0);
}

/* Whom it was fitted to changes nothing. */
static uint64_t add_tuning(uint64_t hash, const pc_tuning *tuning) {
    if (!tuning->is_there) return hash;
    for (pc_tuned i = 0; i < PC_TUNED; i++)
        hash = add_reals(add_text(hash, tuning->number[i].name), &tuning->number[i].value, 1);
    return hash;
}

void pc_profile_hash(const pc_profile *profile, char hash[17]) {
    uint64_t sum = add_device(PC_SEALED_HASH_START, &profile->device);
    for (int64_t i = 0; i < profile->fit_count; i++) sum = add_fit(sum, &profile->fit[i]);
    snprintf(hash, 17, "%016" PRIx64, add_tuning(sum, &profile->tuning));
}

static pc_hash hash_fields(const pc_fields *fields, const void *row) {
    pc_hash hash = {1, 2};
    for (size_t i = 0; i < fields->count; i++) pc_field_hash(&fields->field[i], row, &hash);
    return hash;
}

pc_hash pc_kernel_conditions(const pc_kernel_measurement *kernel) {
    pc_kernel_measurement row = *kernel;
    row.seconds = (pc_statistics){0};
    row.first_sample = -1;
    return hash_fields(&pc_profile_kernel_fields, &row);
}

pc_hash pc_transfer_conditions(const pc_transfer_measurement *transfer) {
    pc_transfer_measurement row = *transfer;
    row.seconds = (pc_statistics){0};
    row.algbw = row.busbw = 0.0;
    row.first_sample = -1;
    return hash_fields(&pc_profile_transfer_fields, &row);
}
