/* profile_json.h: private to calib/profile_*.c: parts of profiles as JSON. */
#ifndef PC_CALIB_PROFILE_PROFILE_JSON_H
#define PC_CALIB_PROFILE_PROFILE_JSON_H

#include "calib/profile/profile.h"
#include "storage/fields.h"
#include "storage/text.h"

#include <stdio.h>

/* A number that reads back exactly; null for what is none. Within a number scope. */
void pc_json_real(pc_text *text, double value);

/* The whole profile but its raw samples, one object and a newline. Within a number scope. */
void pc_profile_add_json(pc_text *text, const pc_profile *profile);

/* Root of the covariance's diagonal. */
double pc_fit_standard_error(const pc_fit *fit, int parameter);

/* Writes the text out and frees it. */
pc_code pc_text_out(pc_text *text, FILE *stream, pc_error *error);

#endif
