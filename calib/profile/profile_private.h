/* profile_private.h: private to calib/profile/: the parts of a profile's file and of its cost model. */
#ifndef PC_CALIB_PROFILE_PROFILE_PRIVATE_H
#define PC_CALIB_PROFILE_PROFILE_PRIVATE_H

#include "calib/profile/profile.h"
#include "models/cost/cost.h"
#include "models/machine/collective.h"
#include "models/machine/transfer_model.h"
#include "storage/fields.h"
#include "storage/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* ---- the file: what its groups are made of (docs/profile-format.md) ---- */

extern const pc_fields pc_profile_device_fields;     /* of pc_profile_device */
extern const pc_fields pc_profile_kernel_fields;     /* of pc_kernel_measurement */
extern const pc_fields pc_profile_transfer_fields;   /* of pc_transfer_measurement */
extern const pc_fields pc_profile_fit_fields;        /* of pc_fit: all but its arrays */
extern const pc_fields pc_profile_fit_origin_fields; /* of pc_fit: what files have since version 3 */
extern const pc_fields pc_profile_replay_fields;     /* of pc_replay_report: all but its passes */
extern const pc_fields pc_profile_pass_fields;       /* of pc_replay_pass_report */
extern const pc_fields pc_profile_tuning_fields;     /* of pc_tuning: all but its numbers */
extern const pc_fields pc_profile_tuned_fields;      /* of pc_tuned_number */

const char *pc_fit_form_name(pc_fit_form form); /* "transfer", "gemm" */

/* The groups of fits and replays: pc_profile.fit and .replay, one group each. */
pc_code pc_profile_write_fits(hid_t file, const pc_profile *profile, pc_error *error);
pc_code pc_profile_read_fits(hid_t file, pc_profile *profile, pc_error *error);
/* The smoothed residuals in a fit's group (profile_file_grid.c); fit->grid.axes is known before. */
pc_code pc_profile_write_grid(hid_t group, const pc_log_grid *grid, pc_error *error);
pc_code pc_profile_read_grid(hid_t group, const char *name, int32_t dimensions, pc_log_grid *grid, pc_error *error);
/* Whether ->least and ->most are sizes that can have been measured (profile_fit_edges.c). */
bool pc_profile_has_edges(const pc_fit *fit);
pc_code pc_profile_write_replays(hid_t file, const pc_profile *profile, pc_error *error);
pc_code pc_profile_read_replays(hid_t file, pc_profile *profile, pc_error *error);

/* ---- the file as text (profile_text.h) ---- */

#define PC_TEXT_FORMAT    "pipecast-profile-text"
#define PC_TEXT_GRID_UNIT 1e-4 /* of log(seconds) */
enum { PC_TEXT_VERSION = 1, PC_TEXT_DIGITS = 6 };

/* Whether a field of a fit follows from the others, so that no line says it. */
bool pc_profile_text_follows(const char *name);

/* ---- fits: a measurement as a fit sees it (profile_points.c) ---- */

/* All of it is set, also what lies between the members of the key: keys are the same where their bytes are. */
typedef struct pc_profile_point {
    pc_fit_key key;
    double x[PC_FIT_DIMENSIONS], seconds; /* x by the names that the form has for its dimensions; NaN: not known */
} pc_profile_point;

void pc_profile_point_of_kernel(const pc_kernel_measurement *kernel, pc_profile_point *point);
void pc_profile_point_of_transfer(const pc_transfer_measurement *transfer, pc_profile_point *point);
/* The same measurement as a fit of another form would see it: x alone. Forms of experts stay as they are. */
void pc_profile_point_place_kernel(const pc_kernel_measurement *kernel, pc_fit_form form, pc_profile_point *point);
void pc_profile_point_place_transfer(const pc_transfer_measurement *transfer, pc_fit_form form,
                                     pc_profile_point *point);

/* ---- how far off a fit is of what another profile measured (profile_judge.c) ---- */

typedef struct pc_judged {
    int64_t count;            /* of measurements that the fit is for; 0: the rest is 0 too */
    double median, p95, held; /* relative errors; the part of measurements that the 95% interval held */
} pc_judged;

pc_code pc_profile_judge(const pc_fit *fit, const pc_profile *measured, pc_judged *judged, pc_error *error);

/* ---- the same, whoever computed and measured it, and with its sign (profile_differences.c) ---- */

/* Measured over predicted seconds, of shapes within what the fit was fitted to. */
typedef struct pc_fit_difference {
    int64_t count, outside; /* shapes within, and beyond; without the first the rest is 0 */
    double q1, median, q3;
    double sustained; /* the median over what training is forecast with (pc_fit_predict_sustained) */
} pc_fit_difference;

pc_code pc_profile_difference(const pc_fit *fit, const pc_profile *measured, pc_fit_difference *difference,
                              pc_error *error);
/* A line or a member for every fit that a measurement is of. */
pc_code pc_profile_differences_table(pc_text *text, const pc_profile *fitted, const pc_profile *measured,
                                     pc_error *error);
pc_code pc_profile_differences_json(pc_text *text, const pc_profile *fitted, const pc_profile *measured,
                                    pc_error *error);

/* ---- text ---- */

/* Writes the text out and frees it. */
pc_code pc_text_out(pc_text *text, FILE *stream, pc_error *error);

/* ---- the cost model: an operation of the workload as runs of the kernels that a profile has ---- */

/* `times` runs of a kernel family, whose name is `function` and `direction` in one, both in static storage; `bytes` of
 * each. `own` is a family that answers instead if the profile has it; NULL if there is none. */
typedef struct pc_family_run {
    const char *function, *direction;
    double times, bytes;
    const char *own;
} pc_family_run;

enum { PC_FAMILY_RUNS = 2, PC_FAMILY_SIZE = 48 };

/* How many there are, of what goes by bytes: 1 or 2; 0 if no family computes this. */
int pc_operation_runs(const pc_operation *operation, pc_family_run runs[PC_FAMILY_RUNS]);

/* ---- the cost model: answers, remembered ---- */

/* The runs of a sweep ask for the same operations again and again. Any number of threads; what is full forgets nothing
 * and remembers no more. */
typedef struct pc_memo pc_memo;

pc_memo *pc_memo_make(void); /* NULL if memory is short */
void pc_memo_free(pc_memo *memo);
bool pc_memo_find(const pc_memo *memo, const pc_operation *operation, pc_estimate *estimate);
void pc_memo_keep(pc_memo *memo, const pc_operation *operation, pc_estimate estimate);

/* ---- the cost model: what it has to say of the answers that it gave ---- */

/* Any number of threads may add; what is kept does not depend on their order. */
typedef struct pc_notes pc_notes;

/* `profile` is borrowed. NULL if memory is short. */
pc_notes *pc_notes_make(const pc_profile *profile);
void pc_notes_free(pc_notes *notes); /* NULL is fine */

/* A fit was asked for a point `distance` times outside what was measured. `fit` is its number in the profile. */
void pc_notes_far(pc_notes *notes, int64_t fit, const double *point, double distance, int dimension);

/* Something is not in the profile: `family` for `dtype`; `instead` is the dtype that stood in for it, or NULL: then the
 * roofline did; it lasts as long as the profile. */
void pc_notes_missing(pc_notes *notes, const char *family, const char *dtype, bool is_causal, const char *instead);

/* A collective of a group that was not measured. PC_COLLECTIVES: a message between stages. */
void pc_notes_unmeasured(pc_notes *notes, pc_collective collective, int32_t ranks, int32_t domains);

/* The lines: pc_profile_cost_warning. */
bool pc_notes_line(const pc_notes *notes, int number, char *line, size_t size);

/* "all_reduce"; of PC_COLLECTIVES "send_recv". */
const char *pc_measured_collective_name(pc_collective collective);

/* ---- the cost model: transfers (profile_transfers.c) ---- */

enum { PC_TRANSFERS_RANKS = 16 }; /* numbers of ranks that a profile measured by themselves, at most */

/* The fits that answer for a collective; -1: none. */
typedef struct pc_collective_fits {
    int32_t count, ranks[PC_TRANSFERS_RANKS]; /* measured by themselves: TRANSFER */
    int64_t fit[PC_TRANSFERS_RANKS];
    int64_t law;
} pc_collective_fits;

/* Stays where it was set: `model` refers to it. */
typedef struct pc_profile_transfers {
    const pc_profile *profile; /* borrowed */
    pc_notes *notes;           /* borrowed */
    pc_collective_fits collective[PC_COLLECTIVES + 1];
    bool has_exchanges;
    pc_transfer_model model;
} pc_profile_transfers;

/* Only fits of transfers inside a domain count for collectives and messages; exchanges of experts also between nodes.
 */
void pc_profile_transfers_set(pc_profile_transfers *transfers, const pc_profile *profile, pc_notes *notes);

#endif
