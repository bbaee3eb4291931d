/* What the device can do at most, at which clock, and whether that stays so. */
#include "calib/device/measure_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- settling ---- */

static const pc_listed_shape *largest_product(const pc_shape_list *list) {
    const pc_listed_shape *found = NULL;
    for (int64_t i = 0; i < list->count && list->shape[i].tier == PC_SHAPE_CEILING; i++) {
        const pc_listed_shape *x = &list->shape[i];
        if (x->family->group != PC_KERNEL_GEMM) continue;
        if (!found || x->family->flops(&x->shape) > found->family->flops(&found->shape)) found = x;
    }
    return found;
}

/* Runs it until the clock, or the time of a product, is steady. *clock_hz: the last one, NaN where unknown. */
static pc_code run_until_steady(pc_measure *session, pc_bench *bench, bool *is_steady, double *clock_hz,
                                pc_error *error) {
    const double reading_s = 0.02, tolerance = 0.01;
    const pc_measure_protocol *protocol = &session->protocol;
    pc_settling of_clock = {0}, of_time = {0};
    double begun_s = pc_measure_now(session), at_s, seconds = 0.0;
    int repeats = 1;
    *is_steady = false;
    do {
        pc_code code = pc_bench_time(bench, repeats, false, &seconds, error);
        if (code) return code;
        *clock_hz = pc_device_state_now(session->device).sm_clock_hz;
        at_s = pc_measure_now(session);
        bool clock_is = pc_settling_add(&of_clock, at_s, *clock_hz, protocol->settle_window_s, tolerance);
        bool time_is = pc_settling_add(&of_time, at_s, seconds / repeats, protocol->settle_window_s, tolerance);
        *is_steady = clock_is || time_is;
        session->rates.flops_per_s = (double)bench->family->flops(bench->shape) * repeats / seconds;
        repeats = (int)fmin(fmax(reading_s / (seconds / repeats), 1.0), 1000.0);
    } while (!*is_steady && at_s - begun_s < protocol->settle_most_s && !pc_measure_is_interrupted(session));
    return PC_OK;
}

pc_code pc_measure_settle(pc_measure *session, pc_error *error) {
    const pc_listed_shape *product = largest_product(&session->list);
    if (!product)
        return pc_measure_warn(session, error, "the clock was not settled: no large product fits or is right");
    pc_bench bench;
    bool is_steady = false;
    double clock_hz = NAN;
    pc_code code = pc_bench_open(&bench, session, product, error);
    if (code) return code;
    code = run_until_steady(session, &bench, &is_steady, &clock_hz, error);
    pc_bench_close(&bench);
    if (code) return code;
    session->profile->device.sm_clock_hz = isnan(clock_hz) ? 0.0 : clock_hz;
    if (is_steady || pc_measure_is_interrupted(session)) return PC_OK;
    return pc_measure_warn(session, error,
                           "the clock did not settle within 1%% for %.0f s, in %.0f s of large products",
                           session->protocol.settle_window_s, session->protocol.settle_most_s);
}

/* ---- launches ---- */

/* Many copies of a few bytes, launched one by one: the device waits for the host. */
pc_code pc_measure_launches(pc_measure *session, pc_error *error) {
    enum { SAMPLES = 30, LAUNCHES = 1000, LAUNCHES_OF_TESTS = 4 };
    pc_listed_shape tiny = {.shape = {.dtype = PC_BF16, .batch = 1, .m = 1, .n = 8}, .sets = 1};
    pc_bench bench;
    int repeats = session->request->effort == PC_CALIBRATE_TINY ? LAUNCHES_OF_TESTS : LAUNCHES;
    for (int i = 0; i < session->seams.family_count; i++)
        if (strcmp(session->seams.families[i]->name, "copy") == 0 && !session->family[i].is_out)
            tiny.family = session->seams.families[i];
    if (!tiny.family) return PC_OK;
    pc_code code = pc_bench_open(&bench, session, &tiny, error);
    if (code) return code;
    double seconds;
    code = pc_bench_time(&bench, repeats, false, &seconds, error);
    for (int i = 0; i < SAMPLES && !code; i++) {
        code = pc_bench_time(&bench, repeats, false, &seconds, error);
        session->sample[i] = seconds / repeats;
    }
    pc_bench_close(&bench);
    if (code) return code;
    pc_statistics launch;
    pc_statistics_of(session->sample, SAMPLES, session->room, &launch);
    session->profile->device.launch_s = session->rates.launch_s = launch.median;
    return PC_OK;
}

/* ---- ceilings ---- */

static bool is_of_tier(const pc_measure *session, const pc_kernel_measurement *measured) {
    for (int64_t i = 0; i < session->list.count && session->list.shape[i].tier == PC_SHAPE_CEILING; i++) {
        const pc_listed_shape *listed = &session->list.shape[i];
        if (!listed->family->low && strcmp(listed->family->name, measured->kernel) == 0 &&
            listed->shape.m == measured->m && listed->shape.n == measured->n && listed->shape.k == measured->k &&
            strcmp(pc_dtype_name(listed->shape.dtype), measured->dtype) == 0)
            return true;
    }
    return false;
}

void pc_measure_ceilings(pc_measure *session) {
    pc_profile_device *device = &session->profile->device;
    for (int64_t i = 0; i < session->profile->kernel_count; i++) {
        const pc_kernel_measurement *measured = &session->profile->kernel[i];
        if (measured->cache != PC_CACHE_COLD || !is_of_tier(session, measured)) continue;
        if (measured->kind == PC_OPERATION_GEMM)
            device->gemm_flops_per_s =
                fmax(device->gemm_flops_per_s, (double)measured->flops / measured->seconds.median);
        else
            device->copy_bytes_per_s =
                fmax(device->copy_bytes_per_s, (double)measured->bytes / measured->seconds.median);
    }
    if (device->gemm_flops_per_s > 0.0) session->rates.flops_per_s = device->gemm_flops_per_s;
    if (device->copy_bytes_per_s > 0.0) session->rates.bytes_per_s = device->copy_bytes_per_s;
}

/* ---- drift ---- */

static bool is_out(const pc_measure *session, const pc_kernel_family *family) {
    for (int i = 0; i < session->seams.family_count; i++)
        if (session->seams.families[i] == family) return session->family[i].is_out;
    return true;
}

pc_code pc_measure_sentinels(pc_measure *session, pc_error *error) {
    pc_listed_shape sentinel;
    for (int s = 0; s < PC_SENTINELS; s++) {
        char name[48];
        double median_s;
        if (!pc_shape_sentinel(session->seams.families, session->seams.family_count, &session->about,
                               session->request->effort, s, &sentinel) ||
            is_out(session, sentinel.family))
            continue;
        snprintf(name, sizeof name, PC_PROFILE_SENTINEL "%s", sentinel.family->name);
        sentinel.sets = 1; /* one cache state: drift is that of the clock */
        pc_code code = pc_measure_shape(session, &sentinel, name, NAN, &median_s, error);
        if (code) return code;
        if (session->first_sentinel_s[s] > 0.0) {
            double drift = median_s / session->first_sentinel_s[s] - 1.0;
            if (fabs(drift) > fabs(session->worst_drift[s])) session->worst_drift[s] = drift;
        } else {
            session->first_sentinel_s[s] = median_s;
        }
    }
    return PC_OK;
}
