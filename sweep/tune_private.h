/* tune_private.h: private to sweep/tune*.c: which rows a fit goes by, and what they ask for. */
#ifndef PC_SWEEP_TUNE_PRIVATE_H
#define PC_SWEEP_TUNE_PRIVATE_H

#include "calib/profile/profile_cost.h"
#include "engine/hash.h"
#include "scenarios/scenario.h"
#include "sweep/tune.h"

/* A run that was measured once or more often, and the machine that it asks for. */
typedef struct pc_tune_configuration {
    pc_hash hash; /* of what it asks for */
    int64_t row;  /* of the score, the first */
    const pc_scenario *scenario;
    int64_t index; /* in it */
    int machine;
} pc_tune_configuration;

/* A machine with the costs of the numbers that are tried. */
typedef struct pc_tried_machine {
    pc_machine machine;
    pc_profile_cost *cost;
    pc_cost_model model;
} pc_tried_machine;

/* One fit. */
typedef struct pc_tune_session {
    const pc_tune_request *request;
    const pc_score *score;
    const pc_profile *base; /* empty: the machines' files */
    pc_tuned_group *group;
    int64_t *rows; /* of the score; count of them, and so many of what follows */
    int64_t count;
    int64_t *configuration_of;
    double *log_measured;
    pc_tune_configuration *configurations;
    int64_t configuration_count;
    int *fold; /* of each */
    int folds;
    pc_scenario **scenarios;
    int64_t scenario_count;
    pc_tried_machine *machines;
    int machine_count;
    pc_tuned number[PC_TUNED]; /* those that are fitted */
    int numbers;
    /* While a forecast is made. */
    pc_profile tried; /* the base with the tuning that is tried; borrows from it */
    int64_t *asked;   /* configurations; asked_count of them */
    int64_t asked_count;
    double *log_seconds; /* a pc_tune_configuration */
} pc_tune_session;

/* The number of a column, or -1. */
int pc_tune_find_column(const pc_measured *m, const char *name);

/* Whether the rows have all columns that they are to be grouped by. */
pc_code pc_tune_check_by(const pc_tune_request *request, pc_error *error);

/* Adds the groups that the rows fall into, and counts what each leaves out; result->groups is the caller's. */
pc_code pc_tune_find_groups(const pc_tune_request *request, const pc_score *score, pc_tune_result *result,
                            pc_error *error);

/* The line of the rows' file on which a configuration stands first. */
unsigned pc_tune_line_of(const pc_tune_session *s, int64_t number);

/* Of a session with request, score, base and group: all but what a forecast needs. Also after an error it is to be
 * freed. */
pc_code pc_tune_prepare(pc_tune_session *s, pc_error *error);
void pc_tune_free_session(pc_tune_session *s);

#endif
