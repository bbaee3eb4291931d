/* measure_private.h: between calib/measure*.c: the session of one calibration, and what tests put in place of a part.
 */
#ifndef PC_CALIB_DEVICE_MEASURE_PRIVATE_H
#define PC_CALIB_DEVICE_MEASURE_PRIVATE_H

#include "calib/device/measure.h"
#include "calib/device/sampler.h"
#include "calib/device/shapes.h"
#include "kernels/check.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a calibration rests on; pc_calibrate takes pc_measure_seams_usual. */
typedef struct pc_measure_seams {
    const pc_kernel_family *const *families;
    int family_count;
    const pc_device_info *about;                   /* in place of what the device says of itself; NULL: that */
    double (*now_s)(void *self);                   /* a clock that only goes forward */
    void (*opened)(void *self, pc_device *device); /* told of the device; NULL: nobody */
    void *self;
    pc_code (*check)(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape, uint64_t seed,
                     pc_kernel_check *check, pc_error *error);
    pc_code (*fit)(pc_profile *profile, int64_t *left_out, pc_error *error);
} pc_measure_seams;
pc_measure_seams pc_measure_seams_usual(void);

pc_code pc_calibrate_with(const pc_calibrate_request *request, const pc_measure_seams *seams, pc_profile *profile,
                          char **warnings, pc_error *error);

/* The numbers of the protocol; docs/calibration.md says why they are what they are. */
typedef struct pc_measure_protocol {
    double budget_s, transfers_s, fits_s; /* of all; of that for transfers, for fits and writing */
    double settle_window_s, settle_most_s;
    double sample_s;    /* a sample is as many launches as take so long, at least one */
    int32_t graph_most; /* and in a graph no more than so many */
    double check_share; /* of the budget: from then on a family gets one check */
    int32_t checks_most;
    int32_t sentinel_every; /* shapes */
    double shape_limit_s;   /* of a cache state: behind it the least samples do */
} pc_measure_protocol;
pc_measure_protocol pc_measure_protocol_of(pc_calibrate_effort effort);

enum { PC_SENTINELS = 2, PC_SAMPLES_MOST = 200 };
/* Launched one by one, a kernel that is shorter than this would be the host's time and not its own. */
enum { PC_GRAPH_BELOW_NS = 20000 };

/* A family's part of the session. */
typedef struct pc_measured_family {
    bool is_out;        /* it failed its check */
    double check_error; /* the worst of its checks, NaN before */
} pc_measured_family;

typedef struct pc_measure {
    const pc_calibrate_request *request;
    pc_measure_seams seams;
    pc_measure_protocol protocol;
    pc_device *device;
    pc_device_info about;
    pc_profile *profile;
    char **warnings;
    pc_measured_family *family; /* one each of seams.families; owned */
    pc_shape_plan plan;
    pc_shape_rates rates;
    pc_budget budget;
    double start_s;
    bool is_interrupted;
    bool did_not_fit;                                       /* the shape at hand, into the device's memory */
    int64_t out_of_time, out_of_memory, refused, throttled; /* shapes */
    double out_of_time_tier[PC_SHAPE_TIERS];
    double first_sentinel_s[PC_SENTINELS], worst_drift[PC_SENTINELS]; /* medians; of them the largest change */
    double sample[PC_SAMPLES_MOST], room[PC_SAMPLES_MOST];
} pc_measure;

double pc_measure_now(const pc_measure *x);
bool pc_measure_is_interrupted(pc_measure *x);
/* Adds a line to the warnings. */
pc_code pc_measure_warn(pc_measure *x, pc_error *error, const char *format, ...) PC_PRINTF(3, 4);

/* ---- measure_check.c ---- */

/* Checks every family, and puts those that fail out. */
pc_code pc_measure_check(pc_measure *x, pc_error *error);

/* ---- measure_shape.c ---- */

/* Tensors of one shape on the device, `sets` times: tensor t of set s at base[t] + s * stride[t]. */
typedef struct pc_bench {
    pc_device *device;
    const pc_kernel_family *family;
    const pc_kernel_shape *shape;
    int tensor_count;
    void *base[PC_KERNEL_TENSORS];
    int64_t stride[PC_KERNEL_TENSORS];
    int32_t sets;     /* that there are */
    int32_t rotation; /* that are used, one launch after the other */
    int32_t next;     /* the set of the next launch */
} pc_bench;

/* Allocates, fills with random data, prepares. PC_ERROR_NO_MEMORY where it does not fit on the device; then and on
 * other errors everything is freed. */
pc_code pc_bench_open(pc_bench *bench, pc_measure *x, const pc_planned_shape *planned, pc_error *error);
void pc_bench_close(pc_bench *bench);

/* Seconds of `repeats` launches, the sets going round. */
pc_code pc_bench_time(pc_bench *bench, int repeats, bool in_graph, double *seconds, pc_error *error);

/* Measures cold, and hot where that is another thing, and adds both to the profile under `name`, with the family's
 * check_error. *median_s: the cold one. */
pc_code pc_measure_shape(pc_measure *x, const pc_planned_shape *planned, const char *name, double check_error,
                         double *median_s, pc_error *error);

/* ---- measure_ceilings.c ---- */

/* Runs a large product until the clock is steady, and says in the profile at how much. */
pc_code pc_measure_settle(pc_measure *x, pc_error *error);
/* The host's time of a launch. */
pc_code pc_measure_launches(pc_measure *x, pc_error *error);
/* From the measurements of the first tier: the best product and the copy, into the profile and the estimates. */
void pc_measure_ceilings(pc_measure *x);
/* Measures the sentinels again. */
pc_code pc_measure_sentinels(pc_measure *x, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
