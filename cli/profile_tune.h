/* profile_tune.h: pipecast profile tune: a profile's tuning, fitted to measured runs. */
#ifndef PC_CLI_PROFILE_TUNE_H
#define PC_CLI_PROFILE_TUNE_H

#include "cli/run_sets.h"
#include "storage/format.h"

#include <stdbool.h>
#include <stdint.h>

enum { PROFILE_TUNE_BY = 8 };

typedef struct profile_tune {
    const char *path, *output, *base;
    const char *parameters; /* "gemm,network"; NULL: all */
    const char *by[PROFILE_TUNE_BY];
    char by_text[256]; /* of `by` */
    int by_count;
    pc_format format;
    run_sets sets;
    int64_t jobs;
    bool allows_outside, is_quiet;
    bool any_bad; /* a row could not be read */
} profile_tune;

/* Takes "COLUMN,..."; false after having printed what is wrong. */
bool profile_tune_take_by(profile_tune *tune, const char *columns);

/* Fits, writes and prints; the exit status. */
int profile_tune_answer(profile_tune *tune);

#endif
