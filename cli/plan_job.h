/* plan_job.h: plans as files of another program, each with its schedule's order beside it. */
#ifndef PC_CLI_PLAN_JOB_H
#define PC_CLI_PLAN_JOB_H

#include "models/schedule/schedule.h"
#include "models/training/run.h"
#include "results/row.h"
#include "storage/text.h"

#include <stdbool.h>

/* Of plan 1 "job.toml", and its order "job.csv"; of plan 2 "job-2.toml" and "job-2.csv". */
typedef struct plan_job {
    char path[4096];
    char csv[4096];       /* empty if PyTorch cannot have its order, or there is one stage alone */
    const char *csv_name; /* within the folder; NULL likewise */
    char *order;          /* owned: plan_job_free; NULL likewise */
} plan_job;

/* Whether -o names such a file, and not a results file (.h5). */
bool plan_job_is_file(const char *output);

/* Of plan `index`, from 0. PC_ERROR_INPUT if the name is too long. */
pc_code plan_job_name(const char *output, int64_t index, plan_job *job, pc_error *error);

/* Whether such files could be written. For finding out before the work is done. */
pc_code plan_job_check(const char *output, pc_error *error);

/* Takes the order of a run that kept its trace. What PyTorch does not know is no error: there is no file then. */
pc_code plan_job_take_order(const pc_run_spec *spec, const pc_run_row *row, const pc_run_detail *detail, plan_job *job,
                            pc_error *error);

/* Replaces the files, the order first. */
pc_code plan_job_save(const plan_job *job, const pc_text *text, pc_error *error);

void plan_job_free(plan_job *job);

#endif
