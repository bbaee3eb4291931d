/* measure_private.h: private to the measuring program and its tests: when there are enough samples, which shapes are
 * measured, the session of one calibration, and what tests put in place of a part.
 */
#ifndef PC_CALIB_DEVICE_MEASURE_PRIVATE_H
#define PC_CALIB_DEVICE_MEASURE_PRIVATE_H

#include "calib/device/measure.h"
#include "kernels/kernel.h"
#include "kernels/kernel_check.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sampler.c: when there are enough samples, when a clock has settled, what still fits into the time ---- */

/* Pure decisions; nothing here looks at a clock or a device. */

/* Of `count` > 0 finite samples. `room` takes `count` numbers: afterwards the samples, ascending. */
void pc_statistics_of(const double *samples, int64_t count, double *room, pc_statistics *statistics);

/* The inter-quartile range as a fraction of the median; `room` as above. 0 if the median is 0. */
double pc_relative_range(const double *samples, int64_t count, double *room);

typedef struct pc_sampler_rule {
    int32_t least, most; /* samples */
    double steadiness;   /* by how much the relative inter-quartile range may differ, as a fraction of it */
    double floor;        /* ranges below this (a fraction of the median) are steady whatever they do */
    double limit_s;      /* of a shape; `least` samples are taken all the same */
} pc_sampler_rule;

/* 30 to 200 samples, 10%, 0.2%, and this limit. */
pc_sampler_rule pc_sampler_rule_default(double limit_s);

/* Whether these `count` samples, in the order in which they came, `spent_s` seconds after the first began, are enough:
 * the relative inter-quartile range of all agrees with that of the last two thirds. `room` takes `count` numbers. */
bool pc_sampler_is_done(const pc_sampler_rule *rule, const double *samples, int64_t count, double spent_s,
                        double *room);

/* Readings of one number that should stop changing: zero it, then add. */
typedef struct pc_settling {
    bool is_begun;
    double since_s, least, most; /* of the readings since then, which lie within the tolerance of each other */
} pc_settling;

/* Adds a reading, above 0, taken at `at_s`; true once all readings of the last `window_s` lie within `tolerance` (a
 * fraction) of each other. NaN begins anew. */
bool pc_settling_add(pc_settling *settling, double at_s, double reading, double window_s, double tolerance);

/* How the time for measuring is spent: what an estimate says, times what estimates were off by so far. */
typedef struct pc_budget {
    double end_s;  /* on the caller's clock; INFINITY: no end */
    double factor; /* what things took over what was estimated: a running mean, starts at 1 */
} pc_budget;

pc_budget pc_budget_until(double end_s);
/* Whether something estimated at `estimate_s` ends in time, with a fifth to spare, if begun at `now_s`. */
bool pc_budget_allows(const pc_budget *budget, double estimate_s, double now_s);
/* It took `actual_s`. */
void pc_budget_learn(pc_budget *budget, double estimate_s, double actual_s);

/* ---- shapes.c: what to measure: of every kernel family the shapes that training meets, by their importance ---- */

/* Pure: knows a device's numbers and no device. */

/* What a shape is for; lower ones are measured first. */
typedef enum pc_shape_tier {
    PC_SHAPE_CEILING, /* a large copy and large products: what the device can do at most */
    PC_SHAPE_COARSE,  /* the least that fits of every family need */
    PC_SHAPE_MODELS,  /* what layers of well-known models run */
    PC_SHAPE_FINE,    /* between those: drawn by the seed, odd ones too */
    PC_SHAPE_HALF,    /* some of them again in fp16 */
    PC_SHAPE_TIERS
} pc_shape_tier;
const char *pc_shape_tier_name(pc_shape_tier tier); /* "coarse grid" */

typedef struct pc_listed_shape {
    const pc_kernel_family *family;
    pc_kernel_shape shape;
    pc_shape_tier tier;
    int64_t set_bytes; /* of its tensors, each begun at a multiple of PC_SHAPE_ALIGNMENT */
    int32_t sets;      /* that a cold measurement rotates over: they touch three times the L2 cache; 1 if one does */
} pc_listed_shape;

enum { PC_SHAPE_ALIGNMENT = 256, PC_SHAPE_L2_TIMES = 3 };

typedef struct pc_shape_list {
    pc_listed_shape *shape; /* by tier, within a tier in random order; owned */
    int64_t count, room;
    int64_t too_large; /* shapes that do not fit into the device's memory and were left out */
} pc_shape_list;

/* Lists the shapes of `families` (others' shapes and those of families that it does not know are none) that fit into
 * the device's memory. The same arguments, the same list; no shape twice. Free with pc_shape_list_free. */
pc_code pc_shape_list_make(const pc_kernel_family *const *families, int family_count, const pc_device_info *info,
                           pc_calibrate_effort effort, uint64_t seed, pc_shape_list *list, pc_error *error);
void pc_shape_list_free(pc_shape_list *list); /* zeroes it */

/* What is measured again and again, for drift: 0 a product, 1 a copy. False behind the last, or where its family is not
 * among these. */
bool pc_shape_sentinel(const pc_kernel_family *const *families, int family_count, const pc_device_info *info,
                       pc_calibrate_effort effort, int number, pc_listed_shape *sentinel);

/* A device's rates, as far as they are known: for estimates. */
typedef struct pc_shape_rates {
    double flops_per_s, bytes_per_s, launch_s;
} pc_shape_rates;

/* A rough time of one launch, of a kernel that reaches half of the rates; to see what fits into the time. */
double pc_shape_kernel_seconds(const pc_listed_shape *shape, const pc_shape_rates *rates);

/* A line for people: "gemm_forward bf16 8192 x 4096 x 4096". */
void pc_shape_text(const pc_kernel_family *family, const pc_kernel_shape *shape, char *text, int size);

/* ---- shapes_matrix.c, shapes_low.c, shapes_grouped.c, shapes_rows.c: the recipes ---- */

/* The recipes of a family add through this; those that the family refuses, that do not fit or that are there already
 * are dropped. */
typedef struct pc_shape_builder {
    pc_shape_list *list;
    const pc_kernel_family *family;
    int64_t usable_bytes, l2_bytes;
    uint64_t random; /* state */
    pc_code code;
    pc_error *error;
} pc_shape_builder;

void pc_shape_add(pc_shape_builder *builder, pc_shape_tier tier, const pc_kernel_shape *shape);
/* A whole number from least to most, by the logarithm, a multiple of `step` where that is possible. */
int64_t pc_shape_draw(pc_shape_builder *builder, int64_t least, int64_t most, int64_t step);

void pc_shapes_of_gemm(pc_shape_builder *builder, pc_calibrate_effort effort);
void pc_shapes_of_gemm_low(pc_shape_builder *builder, pc_calibrate_effort effort);
void pc_shapes_of_grouped(pc_shape_builder *builder, pc_calibrate_effort effort);
void pc_shapes_of_attention(pc_shape_builder *builder, pc_calibrate_effort effort);
/* Everything else; false if the name is not known. */
bool pc_shapes_of_rows(pc_shape_builder *builder, pc_calibrate_effort effort);

/* ---- the session ---- */

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
    pc_shape_list list;
    pc_shape_rates rates;
    pc_budget budget;
    double start_s;
    bool is_interrupted;
    char left_out[PC_ERROR_MESSAGE_SIZE];                   /* why the last family was that the device cannot run */
    bool did_not_fit;                                       /* the shape at hand, into the device's memory */
    int64_t out_of_time, out_of_memory, refused, throttled; /* shapes */
    double out_of_time_tier[PC_SHAPE_TIERS];
    double first_sentinel_s[PC_SENTINELS], worst_drift[PC_SENTINELS]; /* medians; of them the largest change */
    double sample[PC_SAMPLES_MOST], room[PC_SAMPLES_MOST];
} pc_measure;

double pc_measure_now(const pc_measure *session);
bool pc_measure_is_interrupted(pc_measure *session);
/* Adds a line to the warnings. */
pc_code pc_measure_warn(pc_measure *session, pc_error *error, const char *format, ...) PC_PRINTF(3, 4);

/* Adds a line to the caller's warnings (pc_free); NULL before the first. */
pc_code pc_warnings_add(char **warnings, const char *line, pc_error *error);

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

/* Allocates, fills with random data, prepares. PC_ERROR_NO_MEMORY if it does not fit on the device; then and on
 * other errors everything is freed. */
pc_code pc_bench_open(pc_bench *bench, pc_measure *session, const pc_listed_shape *listed, pc_error *error);
void pc_bench_close(pc_bench *bench);

/* Seconds of `repeats` launches, the sets going round. */
pc_code pc_bench_time(pc_bench *bench, int repeats, bool in_graph, double *seconds, pc_error *error);

/* What a profile keeps of a family's shape, but its name, function and times. */
void pc_measure_describe(const pc_kernel_family *family, const pc_kernel_shape *shape, pc_kernel_measurement *made);

/* Measures cold, and hot where that is another thing, and adds both to the profile under `name`, with the family's
 * check_error. *median_s: the cold one. */
pc_code pc_measure_shape(pc_measure *session, const pc_listed_shape *listed, const char *name, double check_error,
                         double *median_s, pc_error *error);

/* ---- measure_ceilings.c ---- */

/* Runs a large product until the clock is steady, and says in the profile at how much. */
pc_code pc_measure_settle(pc_measure *session, pc_error *error);
/* The host's time of a launch. */
pc_code pc_measure_launches(pc_measure *session, pc_error *error);
/* From the measurements of the first tier: the best product and the copy, into the profile and the estimates. */
void pc_measure_ceilings(pc_measure *session);
/* Measures the sentinels again. */
pc_code pc_measure_sentinels(pc_measure *session, pc_error *error);

/* ---- transfers.c, transfers_rank.c: collectives and messages, one process a rank ---- */

/* A file of the folder where ranks meet; the text is valid until the next call of the same thread. */
const char *pc_rank_file(const char *folder, const char *name, int number);

/* Adds the transfers of the profile at `path` to another. */
pc_code pc_rank_take(const char *path, pc_profile *profile, pc_error *error);

/* The largest size that is measured. */
int64_t pc_transfers_most_bytes(pc_calibrate_effort effort);

/* Measures every group size of this machine's devices, and adds to the profile. With a single device two ranks share it
 * and talk over the loopback sockets: the link says so. A rank that fails ends its group: a line of `warnings`, which
 * is the caller's (pc_free) and may be NULL before; what other groups gave stays. */
pc_code pc_measure_transfers(const pc_calibrate_request *request, int devices, double budget_s, pc_profile *profile,
                             char **warnings, pc_error *error);

/* Measures as one of the ranks that mpirun or srun started (launched.h), which meet in `folder`: first 2, 4, 8 ... of
 * them, then all. On rank 0 the profile has the result. */
pc_code pc_measure_launched(const pc_calibrate_request *request, const pc_launched *launched, const char *folder,
                            int devices, double budget_s, pc_profile *profile, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
