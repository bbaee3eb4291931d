/* import.h: others' measurements into a profile: what nccl-tests print, and tables of kernel times. */
#ifndef PC_CALIB_IMPORT_IMPORT_H
#define PC_CALIB_IMPORT_IMPORT_H

#include "calib/profile/profile.h"
#include "models/machine/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the user adds where the file does not say. Zero and NULL: nothing. */
typedef struct pc_import_options {
    const char *collective; /* of nccl-tests output that does not name its program */
    const char *link;
    int ranks, nodes;
    const char *device;         /* its name; of a table with rows of several devices the one whose rows are taken */
    const char *library, *site; /* of tables that do not say; of those that do, whose rows are taken: "trtllm,nccl" */
    const pc_gpu *gpu;          /* its datasheet: rows of products and attention beyond its peaks are left out */
} pc_import_options;

/* Why a row of a table is left out. */
typedef enum pc_import_reason {
    PC_IMPORT_TOO_FAST, /* for the datasheet's matrix units */
    PC_IMPORT_NO_TIME,  /* zero, or less */
    PC_IMPORT_REPEATED, /* another row of the same conditions stands */
    PC_IMPORT_SUSPECT,  /* the table says so itself */
    PC_IMPORT_REASONS
} pc_import_reason;

enum { PC_IMPORT_PLACE_SIZE = 256 };
typedef struct pc_import_left_out {
    int64_t count;
    char first[PC_IMPORT_PLACE_SIZE]; /* "file:line" of the first of them; "" if there is none */
} pc_import_left_out;
typedef struct pc_import_report {
    pc_import_left_out left_out[PC_IMPORT_REASONS];
} pc_import_report;

/* "faster than the datasheet's peak"; static storage. */
const char *pc_import_reason_text(pc_import_reason reason);

/* PC_ERROR_INPUT if the collective or the link is none that profiles know; in any spelling. */
pc_code pc_import_check_options(const pc_import_options *options, pc_error *error);

/* Adds what the file holds to the profile, and the file's name to its origin; names the device where the file or the
 * user does. The form is told by the content: plain output of nccl-tests (all_reduce_perf and its like), or a CSV of
 * kernels, transfers or both. docs/calibration.md has the columns, which are also those of aiconfigurator's and
 * SimuMax's tables. Rows that cannot be are left out, and counted in the origin. PC_ERROR_INPUT: file:line: what, and
 * what was expected; the profile stays as it was. */
pc_code pc_profile_import(pc_profile *profile, const char *path, const pc_import_options *options, pc_error *error);

/* Adds what each of the files holds, in their order: one of these forms, or a profile, whose fits are left. What a
 * profile says of its device counts more than what tables say; of several profiles the first one stands. All have to be
 * of one device, unless options->device says what they are of. Rows repeat each other across files too. `report` may be
 * NULL: which rows were left out. PC_ERROR_INPUT: the profile has some of what came before. */
pc_code pc_profile_import_all(pc_profile *profile, const char *const *paths, int count,
                              const pc_import_options *options, pc_import_report *report, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
