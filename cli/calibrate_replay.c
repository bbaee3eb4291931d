#include "cli/calibrate_replay.h"

#include "calib/device/replay.h"
#include "cli/cli.h"
#include "scenarios/scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

/* More of a scenario's runs would keep the GPU too long. */
enum { RUNS_MAX = 8 };

/* ---- what is printed ---- */

static double difference(double measured, double simulated) {
    return measured > 0 ? 100 * (simulated - measured) / measured : 0;
}

static void print_pass(const char *kind, int64_t count, double measured_s, double simulated_s) {
    printf("%-8s %8" PRId64 " %13.4f %13.4f %9.1f%%\n", kind, count, measured_s * 1e3, simulated_s * 1e3,
           difference(measured_s, simulated_s));
}

static void print_bytes(const char *what, int64_t measured, int64_t simulated) {
    const double mib = 1048576.0;
    printf("%-17s %13.2f %13.2f %9.1f%%\n", what, (double)measured / mib, (double)simulated / mib,
           difference((double)measured, (double)simulated));
}

static void print_outcome(const pc_replay_outcome *x) {
    const pc_replay_report *report = &x->report;
    printf("replay of ");
    print_plain(stdout, report->scenario);
    printf(": %s, stage %d, %" PRId64 " passes, simulated with %s\n\n", report->schedule, (int)report->stage,
           report->passes, x->is_roofline ? "the roofline" : "this profile");
    printf("%-8s %8s %13s %13s %10s\n", "pass", "count", "measured ms", "simulated ms", "off by");
    for (int i = 0; i < report->pass_kind_count; i++) {
        const pc_replay_pass_report *pass = &report->pass[i];
        print_pass(pass->kind, pass->count, pass->measured_s, pass->simulated_s);
    }
    print_pass("all", report->passes, report->measured_s, report->simulated_s);
    printf("\n%-17s %13s %13s %10s\n", "peak", "measured MiB", "simulated MiB", "off by");
    print_bytes("activations", x->measured_activations, x->simulated_activations);
    print_bytes("and state", report->measured_peak_bytes, report->simulated_peak_bytes);
    printf(
        "\nNot in the simulation: %.2f MiB of statistics and log-sum-exp. In neither: %.2f MiB for work within a pass",
        (double)x->vector_bytes / 1048576.0, (double)x->working_bytes / 1048576.0);
    printf("%s%s.\n", x->left_out[0] ? "; " : "", x->left_out);
}

/* ---- runs ---- */

typedef struct session {
    int device, stage;   /* of the request; stage -1: the middle one */
    const char *gpu;     /* what the user calls the device, or NULL */
    pc_profile *profile; /* NULL: to check alone */
    int done;
} session;

static pc_code measure(session *s, const pc_replay_request *request, pc_error *error) {
    pc_replay_outcome outcome;
    pc_code code = pc_replay_on_device(request, &outcome, error);
    if (!code) code = pc_profile_add_replay(s->profile, &outcome.report, error);
    if (code) return code;
    if (s->done > 0) putchar('\n');
    print_outcome(&outcome);
    return PC_OK;
}

/* Whether the run is on a machine of what the user calls the device. */
static pc_code check_gpu(const session *s, const pc_run_spec *spec, pc_error *error) {
    const char *gpu = spec->iteration.machine.gpu.name;
    if (!s->gpu || strcasecmp(s->gpu, gpu) == 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "the machine's GPU is %s; expected %s, as --gpu says", gpu, s->gpu);
}

static pc_code replay_run(session *s, const pc_run_spec *spec, const char *name, pc_error *error) {
    if (spec->infeasible[0]) return pc_error_set(error, PC_ERROR_INPUT, "%s: %s", name, spec->infeasible);
    pc_replay_request request = pc_replay_request_default();
    request.spec = &spec->iteration;
    request.scenario = name;
    request.device = s->device;
    request.stage = s->stage < 0 ? spec->iteration.cut.pp / 2 : s->stage;
    request.profile = s->profile;
    pc_code code = check_gpu(s, spec, error);
    if (!code) code = s->profile ? measure(s, &request, error) : pc_replay_check(&request, error);
    if (code)
        pc_error_prefix(error, "%s", name);
    else
        s->done++;
    return code;
}

/* Those of a model on a machine, not of given costs. */
static pc_code replay_runs(session *s, const pc_scenario *scenario, pc_error *error) {
    int64_t count = pc_scenario_run_count(scenario);
    pc_code code = PC_OK;
    for (int64_t i = 0; !code && i < count && s->done < RUNS_MAX; i++) {
        pc_run_spec spec;
        pc_run_labels labels;
        code = pc_scenario_run_spec(scenario, i, &spec, &labels, error);
        if (code) return code;
        if (spec.is_cluster) code = replay_run(s, &spec, labels.name, error);
        pc_run_spec_free(&spec);
    }
    if (code || s->done > 0) return code;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: none of its %" PRId64 " runs is of a model on a machine; expected one",
                        pc_scenario_name(scenario), count);
}

static pc_code open_and_replay(const replay_request *r, session *s, pc_error *error) {
    pc_scenario *scenario;
    pc_scenario_options options = {.allows_outside = r->allows_outside};
    s->stage = r->stage;
    pc_code code = pc_scenario_load_with(r->path, &options, &scenario, error);
    if (!code) {
        code = replay_runs(s, scenario, error);
        pc_scenario_free(scenario);
    }
    if (code) pc_error_prefix(error, "calibrate: --replay");
    return code;
}

pc_code calibrate_replay_check(const replay_request *r, const char *gpu, pc_error *error) {
    session s = {.gpu = gpu};
    return open_and_replay(r, &s, error);
}

int calibrate_replay(const replay_request *r, int device, pc_profile *profile) {
    pc_error error = {0};
    session s = {.device = device, .profile = profile};
    return open_and_replay(r, &s, &error) ? report(&error) : EXIT_DONE;
}
