/* calibrate_replay.h: `pipecast calibrate --replay SCENARIO`. */
#ifndef PC_CLI_CALIBRATE_REPLAY_H
#define PC_CLI_CALIBRATE_REPLAY_H

#include "calib/profile/profile.h"
#include "engine/error.h"

#include <stdbool.h>

/* What the user asked for. */
typedef struct replay_request {
    const char *path;
    int stage;           /* -1: the middle one, p / 2 */
    bool allows_outside; /* of the scenario's folder, what it names */
} replay_request;

/* Runs one stage of the scenario's runs of a model on a machine, the first 8 of them, on GPU `device`, simulates it
 * with the profile's fits, prints both to standard output, and adds the reports to the profile. The exit status, after
 * having printed what went wrong; reports made until then are in the profile. */
int calibrate_replay(const replay_request *r, int device, pc_profile *profile);

/* What of it can be known to fail before anything is measured. `gpu`: what the user calls the device, or NULL. */
pc_code calibrate_replay_check(const replay_request *r, const char *gpu, pc_error *error);

#endif
