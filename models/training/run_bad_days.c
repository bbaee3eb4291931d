#include "models/training/run_bad_days.h"

#include "models/training/job.h"

#include <math.h>

static double if_positive(double number) {
    return number > 0 ? number : NAN;
}

static void describe_nothing(pc_run_row *row) {
    row->samples = row->slow_gpus = row->slow_stage = row->bad_links = row->other_nodes = row->spare_nodes = -1;
    row->jitter = row->gpu_jitter = row->link_jitter = row->slow_factor = row->bad_factor = NAN;
    row->mtbf_s = row->checkpoint_s = NAN;
}

void pc_run_describe_bad_days(const pc_iteration_spec *spec, pc_run_row *row) {
    describe_nothing(row);
    if (!spec || spec->bad_days.samples <= 0) return;
    const pc_bad_days *x = &spec->bad_days;
    row->samples = x->samples;
    row->jitter = x->passes.quantiles ? NAN : spec->jitter;
    row->gpu_jitter = x->gpu_jitter;
    row->link_jitter = x->link_jitter;
    row->slow_gpus = x->slow_gpus;
    if (x->has_slow_stage) row->slow_stage = x->slow_stage;
    if (x->slow_gpus > 0 || x->has_slow_stage) row->slow_factor = x->slow_factor;
    row->bad_links = x->bad_links;
    if (x->bad_links > 0) row->bad_factor = x->bad_factor;
    row->other_nodes = x->other_nodes;
    if (!pc_bad_days_of_job(x)) return;
    row->mtbf_s = if_positive(x->mtbf_s);
    row->checkpoint_s = x->checkpoint_s;
    if (x->mtbf_s > 0) row->spare_nodes = x->spare_nodes;
}

#define PUT_QUANTILE(from, field, unit)                                                                                \
    (row->field##unit = (from).value, row->field##_low##unit = (from).low, row->field##_high##unit = (from).high)

void pc_run_fill_bad_days(const pc_bad_days_result *x, pc_run_row *row) {
    row->iteration_good_s = x->good_s;
    row->iteration_mean_s = x->iteration_mean_s;
    row->iteration_mean_error_s = x->iteration_mean_error_s;
    row->slowdown_mean = x->good_s > 0 ? x->iteration_mean_s / x->good_s : NAN;
    PUT_QUANTILE(x->iteration_p05_s, iteration_p05, _s);
    PUT_QUANTILE(x->iteration_p50_s, iteration_p50, _s);
    PUT_QUANTILE(x->iteration_p95_s, iteration_p95, _s);
    PUT_QUANTILE(x->iteration_p99_s, iteration_p99, _s);
    row->goodput_mean = x->goodput_mean;
    row->goodput_mean_error = x->goodput_mean_error;
    PUT_QUANTILE(x->goodput_p05, goodput_p05, );
    PUT_QUANTILE(x->goodput_p50, goodput_p50, );
    PUT_QUANTILE(x->goodput_p95, goodput_p95, );
    row->failures_mean = x->failures_mean;
    row->checkpoint_interval_s = x->interval_s;
}

pc_code pc_run_jobs(const pc_run_spec *spec, pc_iteration *iteration, pc_error *error) {
    const pc_bad_days *x = &spec->iteration.bad_days;
    if (iteration->status != PC_ITERATION_OK || !iteration->sample_ps || !pc_bad_days_of_job(x)) return PC_OK;
    pc_job_spec job = {.bad_days = x,
                       .gpus = spec->gpus,
                       .iteration_ps = iteration->sample_ps,
                       .iterations = iteration->bad_days.samples,
                       .good_s = iteration->bad_days.good_s,
                       .seed = spec->iteration.seed,
                       .threads = spec->iteration.threads};
    return pc_job_run(&job, &iteration->bad_days, error);
}
