/* profile.h: what was measured on a device, and the fits of it: plain data, and its file.
 *
 * A profile comes from `pipecast calibrate`, or from others' measurements through `pipecast profile fit` (import.h).
 * Raw samples are kept. The file is HDF5; its layout is in docs/profile-format.md.
 */
#ifndef PC_CALIB_PROFILE_PROFILE_H
#define PC_CALIB_PROFILE_PROFILE_H

#include "calib/fit/fit.h"
#include "calib/profile/tuning.h"
#include "engine/error.h"
#include "engine/hash.h"
#include "models/workload/operation.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Versions that are read: 1 had no tuning, 2 always one. Neither knew libraries, sites and experts: a reader of theirs
 * would take measurements of several libraries for one's. */
enum { PC_PROFILE_VERSION = 3, PC_PROFILE_VERSION_TUNED = 2, PC_PROFILE_VERSION_UNTUNED = 1 };

/* Where the numbers come from. Empty texts and zeros: not known (others' measurements say little of their device). */
typedef struct pc_profile_device {
    char name[128];   /* as its driver says: "NVIDIA H100 80GB HBM3"; of an import what the user or the file says */
    char gpu[128];    /* the GPU of the library that it is ("h100-sxm"), where one matches or the user said so */
    char origin[256]; /* "pipecast calibrate", or the files that were imported */
    char pipecast[64], driver[64], runtime[64], blas[64], nccl[64], attention[64]; /* versions */
    int32_t compute_major, compute_minor, processors;
    int64_t memory_bytes, reserved_bytes, l2_bytes;
    double sm_clock_hz; /* settled, under load */
    double
        copy_bytes_per_s; /* device-to-device copy, read and written bytes: the memory's own ceiling; 0: not measured */
    double gemm_flops_per_s; /* the best large bf16 product on random data: the matrix units' own ceiling; 0 likewise */
    double launch_s;         /* host time a kernel launch; 0 likewise */
    bool is_complete;        /* false: interrupted, or its time was up; it has what was done until then */
} pc_profile_device;

typedef struct pc_statistics { /* of the raw samples, seconds; imports have the median alone, count 1 */
    int64_t count;
    double median, q1, q3, p5, p95, least;
} pc_statistics;

/* The names of kernels that are one shape measured again and again, for drift, begin so; they are not fitted. */
#define PC_PROFILE_SENTINEL "sentinel_"

/* One kernel on one shape. The fields of the shape mean what they mean in models/workload/operation.h. Of grouped
 * products `batch` counts the groups, m the rows of each, and n and k are those of the forward product in all roles. Of
 * expert layers m counts the tokens, k is the hidden and n the inner size. 0 and "": not known. */
typedef struct pc_kernel_measurement {
    char kernel[48]; /* the family, "gemm_forward"; imports use the same names */
    pc_operation_kind kind;
    pc_gemm_role role;
    char dtype[16];    /* "bf16", "fp16", "fp8", "fp8_block", "nvfp4": of activations and weights */
    char epilogue[16]; /* "", "bias", "bias_gelu" */
    bool is_causal, accumulates;
    int64_t batch, m, n, k, heads, kv_heads, flops, bytes;
    pc_cache_state cache;
    bool in_graph;
    pc_statistics seconds;
    double sm_clock_hz;
    bool is_throttled;
    char function[96]; /* what ran: a kernel's or a library's algorithm's name */
    int32_t grid[3], block[3], registers;
    int64_t shared_bytes;
    double check_error;   /* of the check before the timing, as a fraction of what is allowed; NaN: not checked */
    int64_t first_sample; /* in pc_profile.sample: seconds.count of them from here on; -1: none kept */
    char out_dtype[16];   /* of the output, where a table says so; "": as the role has it */
    char library[32], library_version[32]; /* "trtllm", "transformer_engine" */
    char site[32];                         /* who measured it: system and table, "b200_sxm", "b200_training" */
    char variant[48];                      /* of an expert layer: kernel and distribution of tokens, by a space */
    int64_t window;                        /* of attention: keys that a query sees; 0: all */
    int64_t experts, topk, moe_tp, moe_ep; /* of an expert layer: all experts, experts a token, how it is cut */
} pc_kernel_measurement;

/* One collective or message of one size. Size as in operation.h: the whole tensor; as nccl-tests count it. Of dispatch
 * and combine of experts the bytes of a rank's tokens, each once for every expert that it goes to. */
typedef struct pc_transfer_measurement {
    char collective[24];  /* "send_recv", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast";
                             "dispatch" and "combine" of experts */
    char link[32];        /* "nvlink", "pcie", "network", "loopback"; "unknown" */
    int32_t ranks, nodes; /* nodes: 1 if not known */
    bool is_in_place;
    double size_bytes;
    pc_statistics seconds;
    double algbw, busbw; /* bytes/s, as nccl-tests define them: size / time, and times 2(n-1)/n, (n-1)/n or 1 */
    int64_t wrong;       /* elements that were wrong in the check; -1: not checked */
    int64_t first_sample;
    char dtype[16], library[32], library_version[32], site[32]; /* as of a kernel; "": not known */
    int64_t hidden, tokens, topk, experts; /* of dispatch and combine: tokens a rank has, their numbers; otherwise 0 */
    int32_t sms;                           /* processors that dispatch or combine keeps busy; 0: not known */
} pc_transfer_measurement;

/* Hardware in the loop: one stage's passes run on the device beside the same simulated. */
typedef struct pc_replay_pass_report {
    char kind[4]; /* "F", "B", "W", "BW" */
    int64_t count;
    double measured_s, simulated_s; /* mean a pass */
} pc_replay_pass_report;
enum { PC_REPLAY_PASSES = 8 };
typedef struct pc_replay_report {
    char scenario[256], schedule[64];
    int32_t stage, pass_kind_count;
    int64_t passes;                 /* in all */
    double measured_s, simulated_s; /* the stage's busy time: sum of its passes; median of repetitions */
    int64_t measured_peak_bytes, simulated_peak_bytes; /* the same kinds of memory in both */
    pc_replay_pass_report pass[PC_REPLAY_PASSES];
} pc_replay_report;

/* Each array is owned: allocated by engine/alloc.h, freed by pc_profile_free. */
typedef struct pc_profile {
    pc_profile_device device;
    pc_kernel_measurement *kernel;
    int64_t kernel_count, kernel_room;
    pc_transfer_measurement *transfer;
    int64_t transfer_count, transfer_room;
    double *sample; /* seconds, all raw samples */
    int64_t sample_count, sample_room;
    pc_fit *fit;
    int64_t fit_count, fit_room;
    pc_replay_report *replay;
    int64_t replay_count, replay_room;
    bool is_shipped;  /* it comes with pipecast and has fits alone (profile_text.h): of each what answers, without the
                       * measured seconds and residuals, which are NULL */
    pc_tuning tuning; /* of what it says, or, where it has no kernels, of the machine's file */
} pc_profile;

void pc_profile_free(pc_profile *profile); /* zeroes it */

/* Whether kernels were measured and fitted: if not, the machine's roofline answers, with what the setting says of it.
 */
bool pc_profile_has_kernels(const pc_profile *profile);

/* Append a copy; PC_ERROR_NO_MEMORY, and the profile as it was. `samples` may be NULL (seconds.count is then kept as it
 * is, first_sample -1). pc_profile_add_fit takes over the fit's arrays. */
pc_code pc_profile_add_kernel(pc_profile *profile, const pc_kernel_measurement *kernel, const double *samples,
                              pc_error *error);
pc_code pc_profile_add_transfer(pc_profile *profile, const pc_transfer_measurement *transfer, const double *samples,
                                pc_error *error);
pc_code pc_profile_add_fit(pc_profile *profile, pc_fit *fit, pc_error *error);
pc_code pc_profile_add_replay(pc_profile *profile, const pc_replay_report *report, pc_error *error);
/* All that another one measured, with its raw samples, and its replays; its fits are left. */
pc_code pc_profile_append(pc_profile *profile, const pc_profile *other, pc_error *error);

/* Replaces the file at once or leaves it as it was. Same profile, same bytes. */
pc_code pc_profile_write(const pc_profile *profile, const char *path, pc_error *error);
/* PC_ERROR_INPUT, one line with the path, where it is no profile, one of another kind of file, truncated, damaged, or
 * of a newer version. Then free with pc_profile_free. */
pc_code pc_profile_read(const char *path, pc_profile *profile, pc_error *error);

/* Fits everything that can be fitted of the measurements, in place of the fits that are there (fit.h): a kernel by
 * family, dtype and cache state; a transfer by collective, ranks, nodes and link. What has too few points is left out
 * and counted, and so is a transfer with wrong elements. Needs device.processors for GEMMs (108 where it is 0 would be
 * a guess: PC_ERROR_INPUT says so). */
pc_code pc_profile_fit(pc_profile *profile, int64_t *left_out, pc_error *error);

/* What the profile's fit says of a kernel that was measured as its own were, seconds; NaN: it has no such fit. */
double pc_profile_fitted_s(const pc_profile *profile, const pc_kernel_measurement *kernel);

/* A hash of all that a measurement says but what was measured: of two with the same one, one repeats the other. Not for
 * files: it differs between machines. */
pc_hash pc_kernel_conditions(const pc_kernel_measurement *kernel);
pc_hash pc_transfer_conditions(const pc_transfer_measurement *transfer);

/* A hash of all that decides what a simulation gets from it: device, fits and tuning. As 16 hexadecimal digits. */
void pc_profile_hash(const pc_profile *profile, char hash[17]);

#ifdef __cplusplus
}
#endif
#endif
