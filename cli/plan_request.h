/* plan_request.h: what `pipecast plan` was asked for, and the words in which `pipecast run` would be asked for one of
 * its plans. */
#ifndef PC_CLI_PLAN_REQUEST_H
#define PC_CLI_PLAN_REQUEST_H

#include "cli/look.h"
#include "cli/run_sets.h"
#include "models/planner/planner.h"
#include "results/table.h"
#include "scenarios/plan_scenario.h"
#include "storage/text.h"
#include "sweep/plan_shares.h"

#include <stdbool.h>
#include <stdint.h>

/* A plan as another program takes it, in place of the table. */
typedef enum plan_writer { PLAN_WRITES_NONE, PLAN_WRITES_MEGATRON, PLAN_WRITES_TORCHTITAN } plan_writer;

enum { PLAN_CACHES_MAX = 4096 };

typedef struct plan_request {
    const char *path; /* of the scenario; NULL: options say everything */
    run_sets sets;
    const char *output; /* NULL: no results file */
    pc_format format;
    plan_writer writer;
    look_request look;
    int64_t jobs; /* 0: one a core */
    bool is_exhaustive, is_quiet, wants_variants;
    int64_t shard, shard_count;          /* of so many shares of the cuts this one, from 1; 0 and 0: all */
    bool is_fresh;                       /* nothing that is kept */
    const char *caches[PLAN_CACHES_MAX]; /* files of what is kept: the first is written to */
    int cache_count;
    const char *models; /* several, with commas between, of which the largest is wanted that keeps to a goal; or NULL */
    const char *each, *map; /* axes, as they were written; NULL: not asked */
    const char *mix;        /* of lengths of sequences, likewise */
    bool wants_changes, plans_anew;
    bool allows_outside;    /* of the scenario's folder, what it names */
    pc_text words;          /* what is asked, a line each: all arguments but those that a share has of its own */
    char *lines;            /* owned: what the pointers above point into, of plan_request_parse_words; or NULL */
    bool has_odd_word;      /* among them, which would be another one when the lines are read */
    pc_plan_shares *shares; /* borrowed: record what searches find, or answer them; NULL: neither */
} plan_request;

/* Reads the arguments. -1 if there is something to do; else the exit status, all having been said. */
int plan_request_parse(int argc, char **argv, plan_request *request);
void plan_request_free(plan_request *request);

/* The same of the words of shares, a line each, and of more behind them. */
int plan_request_parse_words(const char *words, int argc, char **argv, plan_request *request);

/* Plans for one model of several: as if --model had named it, the last of all options; and takes that back. False
 * after having printed why it cannot be. */
bool plan_request_take_model(plan_request *request, const char *model);
void plan_request_drop_model(plan_request *request);

/* "pipecast run FILE --tp 8 ...": the run of a choice, as a shell takes it; the caller frees it with free(). */
pc_code plan_request_command(const plan_request *request, const pc_plan_scenario *scenario,
                             const pc_plan_choice *choice, char **command, pc_error *error);

#endif
