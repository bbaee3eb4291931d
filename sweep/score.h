/* score.h: the runs of a table of measured ones, forecast: what pc_score_sum_up then sums up. A call of the library, as
 * sweep.h: nothing is printed, nothing written, and the same table gives the same rows on any number of threads.
 *
 *     pc_code code = pc_measured_read("measured.csv", say, NULL, &measured, &error);
 *     if (!code) code = pc_score_run(&(pc_score_request){.measured = &measured}, NULL, &score, &error);
 *     if (!code) code = pc_score_sum_up(&score, NULL, 0, &error);
 */
#ifndef PC_SWEEP_SCORE_H
#define PC_SWEEP_SCORE_H

#include "engine/error.h"
#include "results/score/score.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is wanted; all is borrowed. */
typedef struct pc_score_request {
    const pc_measured *measured;
    const char *const *sets; /* set_count overrides of every row, as pc_scenario_load's: "setting.profile=h100.h5" */
    int set_count;
    const pc_measured *conditions; /* what rows do not say: pc_measured_condition_of; or NULL */
    bool allows_outside; /* models, machines and profiles that rows name may lie outside of the table's folder */
    int jobs;            /* threads; 0: pc_team_default_jobs of a lone process */
} pc_score_request;

/* How rows found their conditions: one, none, or several that say different things. */
typedef struct pc_score_joins {
    int64_t found, none, unclear;
} pc_score_joins;

/* Who looks on; each may be NULL. Only one is called at a time. */
typedef struct pc_score_sink {
    void *context;
    pc_measured_say *say; /* what is wrong with a row: a line */
    void (*progress)(void *context, int64_t done, int64_t to_do);
    void (*warn)(void *context, const char *text);
    void (*joined)(void *context, pc_score_joins joins);
    bool (*is_stopped)(void *context); /* asked after every run; no other begins then */
} pc_score_sink;

/* Forecasts every row that can be asked, and judges it. A row that cannot be read goes to the sink, and is left out.
 * The score borrows the table; free it with pc_score_free. PC_ERROR_INPUT: a set or a profile is not as it must be.
 * PC_ERROR_STOPPED: the sink said so.
 */
pc_code pc_score_run(const pc_score_request *request, const pc_score_sink *sink, pc_score *score, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
