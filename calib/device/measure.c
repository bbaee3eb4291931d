#include "calib/device/measure_private.h"

#include "engine/alloc.h"
#include "engine/clock.h"
#include "kernels/attention_library.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- what it rests on ---- */

static double monotonic_s(void *self) {
    (void)self;
    return pc_now_s();
}

pc_measure_seams pc_measure_seams_usual(void) {
    pc_measure_seams seams = {.now_s = monotonic_s, .check = pc_kernel_check_run, .fit = pc_profile_fit};
    seams.families = pc_kernel_families(&seams.family_count);
    return seams;
}

pc_measure_protocol pc_measure_protocol_of(pc_calibrate_effort effort) {
    static const pc_measure_protocol protocols[] = {
        [PC_CALIBRATE_FULL] = {.budget_s = 525,
                               .transfers_s = 110,
                               .fits_s = 45,
                               .settle_window_s = 2,
                               .settle_most_s = 10,
                               .sample_s = 600e-6,
                               .graph_most = 256,
                               .check_share = 0.15,
                               .checks_most = 64,
                               .sentinel_every = 25,
                               .shape_limit_s = 0.5},
        [PC_CALIBRATE_QUICK] = {.budget_s = 55,
                                .transfers_s = 10,
                                .fits_s = 6,
                                .settle_window_s = 2,
                                .settle_most_s = 10,
                                .sample_s = 300e-6,
                                .graph_most = 128,
                                .check_share = 0.15,
                                .checks_most = 1,
                                .sentinel_every = 40,
                                .shape_limit_s = 0.1},
        [PC_CALIBRATE_TINY] = {.budget_s = 60,
                               .transfers_s = 10,
                               .fits_s = 10,
                               .sample_s = 0,
                               .graph_most = 8,
                               .check_share = 1,
                               .checks_most = 1,
                               .sentinel_every = 16,
                               .shape_limit_s = 0.05},
    };
    return protocols[effort];
}

/* ---- the session ---- */

double pc_measure_now(const pc_measure *session) {
    return session->seams.now_s(session->seams.self);
}

bool pc_measure_is_interrupted(pc_measure *session) {
    if (session->request->is_interrupted && *session->request->is_interrupted) session->is_interrupted = true;
    return session->is_interrupted;
}

pc_code pc_measure_warn(pc_measure *session, pc_error *error, const char *format, ...) {
    char line[PC_ERROR_MESSAGE_SIZE];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    return pc_warnings_add(session->warnings, line, error);
}

/* ---- the profile's head ---- */

#define COPY_TEXT(to, from) snprintf((to), sizeof(to), "%s", (from) ? (from) : "")

static void describe_device(pc_measure *session) {
    static const char *const origins[] = {[PC_CALIBRATE_FULL] = "pipecast calibrate",
                                          [PC_CALIBRATE_QUICK] = "pipecast calibrate --quick",
                                          [PC_CALIBRATE_TINY] = "pipecast calibrate, a few small shapes"};
    pc_profile_device *made = &session->profile->device;
    COPY_TEXT(made->name, session->about.name);
    COPY_TEXT(made->origin, origins[session->request->effort]);
    COPY_TEXT(made->pipecast, session->request->version);
    COPY_TEXT(made->driver, session->about.driver);
    COPY_TEXT(made->runtime, session->about.runtime);
    COPY_TEXT(made->blas, session->about.blas);
    COPY_TEXT(made->nccl, session->about.nccl);
    COPY_TEXT(made->attention, session->about.attention);
    made->compute_major = session->about.compute_major;
    made->compute_minor = session->about.compute_minor;
    made->processors = session->about.processors;
    made->memory_bytes = session->about.memory_bytes;
    made->reserved_bytes = session->about.reserved_bytes;
    made->l2_bytes = session->about.l2_bytes;
}

/* ---- checks ---- */

/* Every kernel is checked before it is timed: a wrong kernel's time means nothing. */

/* A shape's check failed, or could not be made: the family is out. What is the device's fault goes on as an error. */
static pc_code put_out(pc_measure *session, int family, const pc_kernel_check *check, pc_code code, pc_error *why,
                       pc_error *error) {
    const char *name = session->seams.families[family]->name;
    session->family[family].is_out = true;
    if (code == PC_ERROR_IO) {
        pc_error_prefix(why, "%s: check", name);
        return pc_error_copy(error, why);
    }
    if (code)
        return pc_measure_warn(session, error, "%s: left out: its check could not be made: %s", name, why->message);
    return pc_measure_warn(session, error, "%s: left out: wrong result: %s", name, check->message);
}

static pc_code check_family(pc_measure *session, int family, double until_s, pc_error *error) {
    const pc_kernel_family *checked = session->seams.families[family];
    pc_measured_family *kept = &session->family[family];
    for (int number = 0; number < session->protocol.checks_most && !kept->is_out; number++) {
        pc_kernel_shape shape;
        pc_kernel_check check = {0};
        pc_error why = {0};
        if (!pc_kernel_check_shape(checked, number, &shape)) break;
        if (number > 0 && (pc_measure_is_interrupted(session) || pc_measure_now(session) > until_s)) break;
        pc_code code = session->seams.check(session->device, checked, &shape, session->request->seed + (uint64_t)number,
                                            &check, &why);
        if (code || !check.is_right) {
            code = put_out(session, family, &check, code, &why, error);
            if (code) return code;
        }
        if (!kept->is_out) kept->check_error = fmax(kept->check_error, check.worst_error); /* NaN gives way */
    }
    return PC_OK;
}

/* What the device or a library cannot do is no fault of the kernel: one line for all families that it is said of. */
static pc_code leave_out(pc_measure *session, int family, const pc_error *why, pc_error *error) {
    session->family[family].is_out = true;
    if (strcmp(session->left_out, why->message) == 0) return PC_OK;
    COPY_TEXT(session->left_out, why->message);
    return pc_measure_warn(session, error, "left out: %s", why->message);
}

static pc_code check_families(pc_measure *session, pc_error *error) {
    double until_s = pc_measure_now(session) + session->protocol.check_share * session->protocol.budget_s;
    for (int i = 0; i < session->seams.family_count; i++) {
        if (pc_measure_is_interrupted(session)) return PC_OK;
        const pc_low_family *low = session->seams.families[i]->low;
        pc_error why = {0};
        bool can = !low || low->can(session->device, &why) == PC_OK;
        pc_code code = can ? check_family(session, i, until_s, error) : leave_out(session, i, &why, error);
        if (code) return code;
    }
    return PC_OK;
}

/* ---- kernels ---- */

static const pc_measured_family *family_of(const pc_measure *session, const pc_kernel_family *family) {
    for (int i = 0; i < session->seams.family_count; i++)
        if (session->seams.families[i] == family) return &session->family[i];
    return NULL;
}

/* Of a sample: what is launched, and waiting for it; short ones are recorded into a graph first, launch by launch. */
static double sample_seconds(const pc_measure *session, double launch_s) {
    const double wait_s = 100e-6, node_s = 4e-6, graph_s = 400e-6;
    const pc_measure_protocol *protocol = &session->protocol;
    if (launch_s >= 1e-9 * PC_GRAPH_BELOW_NS) return fmax(launch_s, protocol->sample_s) + wait_s;
    double nodes = fmin(fmax(protocol->sample_s / launch_s, 1.0), protocol->graph_most);
    return nodes * (launch_s + node_s) + graph_s + wait_s;
}

/* Preparing tries algorithms, of attention only against a library, of grouped products none; filling writes every set.
 */
static double estimate(const pc_measure *session, const pc_listed_shape *listed) {
    const double fixed_s = 0.02, samples = 40, trials = 40;
    double launch_s = pc_shape_kernel_seconds(listed, &session->rates), states = listed->sets > 1 ? 2 : 1;
    double fill_s = (double)listed->set_bytes * listed->sets / (0.1 * session->rates.bytes_per_s);
    bool is_tried = listed->family->prepare && listed->family->group != PC_KERNEL_GROUPED_GEMM &&
                    (listed->family->group != PC_KERNEL_ATTENTION || session->request->attention_library);
    return fixed_s + fill_s + (is_tried ? trials * launch_s : 0.0) +
           states * samples * sample_seconds(session, launch_s);
}

/* A shape that does not fit beside what else lies on the device, or that a library refuses, is left out; only what ends
 * everything is an error. */
static pc_code forgive(pc_measure *session, const pc_listed_shape *listed, pc_code code, const pc_error *why,
                       pc_error *error) {
    if (code == PC_OK) return PC_OK;
    if (code == PC_ERROR_NO_MEMORY && session->did_not_fit) {
        session->out_of_memory++;
        return PC_OK;
    }
    char text[160];
    pc_shape_text(listed->family, &listed->shape, text, sizeof text);
    if (code == PC_ERROR_INPUT && session->refused++ < 8)
        return pc_measure_warn(session, error, "%s: left out: %s", text, why->message);
    if (code == PC_ERROR_INPUT) return PC_OK;
    pc_error_copy(error, why);
    pc_error_prefix(error, "%s", text);
    return code;
}

static pc_code measure_listed(pc_measure *session, const pc_listed_shape *listed, pc_error *error) {
    double begun_s = pc_measure_now(session), estimated_s = estimate(session, listed), median_s;
    if (!pc_budget_allows(&session->budget, estimated_s, begun_s)) {
        session->out_of_time++;
        session->out_of_time_tier[listed->tier]++;
        return PC_OK;
    }
    const pc_measured_family *family = family_of(session, listed->family);
    pc_error why = {0};
    const char *name = listed->family->low ? listed->family->low->measured : listed->family->name;
    pc_code code = pc_measure_shape(session, listed, name, family->check_error, &median_s, &why);
    pc_budget_learn(&session->budget, estimated_s, pc_measure_now(session) - begun_s);
    return forgive(session, listed, code, &why, error);
}

static void tell(const pc_measure *session, int64_t done, const pc_listed_shape *listed) {
    char text[160];
    if (!session->request->progress.step) return;
    pc_shape_text(listed->family, &listed->shape, text, sizeof text);
    session->request->progress.step(session->request->progress.self, done, session->list.count, text);
}

/* Shapes one by one; behind the first tier the ceilings are known and the sentinels are measured for the first time. */
static pc_code measure_shapes(pc_measure *session, pc_error *error) {
    int64_t since_sentinel = 0;
    bool knows_ceilings = false;
    pc_code code = PC_OK;
    for (int64_t i = 0; i < session->list.count && !code; i++) {
        const pc_listed_shape *listed = &session->list.shape[i];
        if (pc_measure_is_interrupted(session)) break;
        bool is_due =
            knows_ceilings ? since_sentinel >= session->protocol.sentinel_every : listed->tier != PC_SHAPE_CEILING;
        if (is_due) {
            if (!knows_ceilings) pc_measure_ceilings(session);
            knows_ceilings = true;
            since_sentinel = 0;
            code = pc_measure_sentinels(session, error);
        }
        int64_t before = session->profile->kernel_count;
        if (!code && !family_of(session, listed->family)->is_out) code = measure_listed(session, listed, error);
        since_sentinel += session->profile->kernel_count > before; /* what is left out lets no clock drift */
        if (!code) tell(session, i + 1, listed);
    }
    if (!knows_ceilings) pc_measure_ceilings(session);
    return code || session->is_interrupted ? code : pc_measure_sentinels(session, error);
}

static pc_code measure_kernels(pc_measure *session, pc_error *error) {
    pc_code code = check_families(session, error);
    if (!code && !pc_measure_is_interrupted(session)) code = pc_measure_settle(session, error);
    if (!code && !pc_measure_is_interrupted(session)) code = pc_measure_launches(session, error);
    return code || pc_measure_is_interrupted(session) ? code : measure_shapes(session, error);
}

/* ---- what went wrong, in words ---- */

static pc_code warn_of_drift(pc_measure *session, pc_error *error) {
    static const char *const names[PC_SENTINELS] = {"product", "copy"};
    const double most = 0.02;
    pc_code code = PC_OK;
    for (int s = 0; s < PC_SENTINELS && !code; s++)
        if (fabs(session->worst_drift[s]) > most)
            code =
                pc_measure_warn(session, error,
                                "drift: the same %s took up to %+.1f%% of its first time during the run; expected at "
                                "most 2%%",
                                names[s], 100.0 * session->worst_drift[s]);
    return code;
}

static pc_code warn_of_time(pc_measure *session, pc_error *error) {
    char tiers[160] = "";
    size_t used = 0;
    if (session->out_of_time == 0) return PC_OK;
    for (int t = 0; t < PC_SHAPE_TIERS; t++)
        if (session->out_of_time_tier[t] > 0)
            used += (size_t)snprintf(tiers + used, sizeof tiers - used, "%s%.0f of %s", used ? ", " : "",
                                     session->out_of_time_tier[t], pc_shape_tier_name((pc_shape_tier)t));
    return pc_measure_warn(session, error, "the time was up: %" PRId64 " of %" PRId64 " shapes were left out (%s)",
                           session->out_of_time, session->list.count, tiers);
}

static pc_code warn_of_shapes(pc_measure *session, pc_error *error) {
    pc_code code = warn_of_time(session, error);
    if (!code && session->list.too_large + session->out_of_memory > 0)
        code =
            pc_measure_warn(session, error, "%" PRId64 " shapes do not fit into the device's memory and were left out",
                            session->list.too_large + session->out_of_memory);
    if (!code && session->refused > 0)
        code = pc_measure_warn(session, error, "%" PRId64 " shapes were refused and left out", session->refused);
    if (!code && session->throttled > 0)
        code = pc_measure_warn(session, error,
                               "the clock was held down (power or heat) at %" PRId64 " of %" PRId64
                               " measurements, which are marked",
                               session->throttled, session->profile->kernel_count);
    const char *fault = pc_attention_library_fault(session->device);
    if (!code && fault[0]) code = pc_measure_warn(session, error, "%s; the library was not used", fault);
    return code ? code : warn_of_drift(session, error);
}

/* ---- the whole ---- */

static pc_code open_session(pc_measure *session, pc_error *error) {
    pc_code code = pc_device_open(session->request->device, &session->device, error);
    if (code) return code;
    if (session->seams.opened) session->seams.opened(session->seams.self, session->device);
    if (session->request->attention_library)
        code = pc_attention_library_open(session->device, session->request->attention_library, error);
    if (code) return code;
    session->about = session->seams.about ? *session->seams.about : *pc_device_about(session->device);
    session->family = pc_alloc((size_t)session->seams.family_count, sizeof *session->family);
    if (!session->family) return pc_error_no_memory(error);
    for (int i = 0; i < session->seams.family_count; i++) session->family[i].check_error = NAN;
    describe_device(session);
    return pc_shape_list_make(session->seams.families, session->seams.family_count, &session->about,
                              session->request->effort, session->request->seed, &session->list, error);
}

static void close_session(pc_measure *session) {
    pc_shape_list_free(&session->list);
    pc_free(session->family);
    pc_attention_library_close(session->device);
    pc_device_close(session->device);
    session->family = NULL;
    session->device = NULL;
}

/* Of what there is, whatever ended the measuring. */
static pc_code fit(pc_measure *session, pc_error *error) {
    int64_t left_out = 0;
    if (session->profile->kernel_count + session->profile->transfer_count == 0) return PC_OK;
    pc_code code = session->seams.fit(session->profile, &left_out, error);
    if (code || left_out == 0) return code;
    return pc_measure_warn(session, error, "%" PRId64 " measurements have too few of their sort for a fit", left_out);
}

static pc_code measure_transfers(pc_measure *session, pc_error *error) {
    int devices = 0;
    pc_code code = pc_device_count(&devices, error);
    double left_s = session->start_s + session->protocol.budget_s - session->protocol.fits_s - pc_measure_now(session);
    if (code || left_s <= 0.0) return code;
    double budget_s = fmin(left_s, session->protocol.transfers_s);
    const pc_launched *launched = session->request->launched;
    if (!launched)
        return pc_measure_transfers(session->request, devices, budget_s, session->profile, session->warnings, error);
    return pc_measure_launched(session->request, launched, session->request->meeting, devices, budget_s,
                               session->profile, error);
}

static pc_code measure_device(pc_measure *session, pc_error *error) {
    pc_code code = open_session(session, error);
    if (!code && !session->request->without_kernels) {
        code = measure_kernels(session, error);
        pc_code warned = warn_of_shapes(session, code ? NULL : error);
        if (!code) code = warned;
    }
    close_session(session); /* ranks need the device's memory */
    return code;
}

/* Ranks of a launcher meet first: they do not wait for kernels, which are rank 0's alone. */
static pc_code measure_all(pc_measure *session, pc_error *error) {
    const pc_launched *launched = session->request->launched;
    bool has_transfers = !session->request->without_transfers;
    pc_code code = launched && has_transfers ? measure_transfers(session, error) : PC_OK;
    if (!code && (!launched || launched->rank == 0)) code = measure_device(session, error);
    if (!code && !launched && has_transfers && !pc_measure_is_interrupted(session))
        code = measure_transfers(session, error);
    return code;
}

/* Kernels end early enough for what comes behind them. */
static void make_budget(pc_measure *session) {
    pc_measure_protocol *protocol = &session->protocol;
    if (session->request->budget_s > 0.0) {
        double share = session->request->budget_s / protocol->budget_s;
        protocol->budget_s *= share;
        protocol->transfers_s *= share;
        protocol->fits_s *= share;
    }
    if (session->request->without_transfers) protocol->transfers_s = 0.0;
    session->budget = pc_budget_until(session->start_s + protocol->budget_s - protocol->transfers_s - protocol->fits_s);
}

pc_code pc_calibrate_with(const pc_calibrate_request *request, const pc_measure_seams *seams, pc_profile *profile,
                          char **warnings, pc_error *error) {
    *warnings = NULL;
    pc_measure *x = pc_alloc(1, sizeof *x);
    if (!x) return pc_error_no_memory(error);
    x->request = request;
    x->seams = *seams;
    x->protocol = pc_measure_protocol_of(request->effort);
    x->profile = profile;
    x->warnings = warnings;
    x->rates =
        (pc_shape_rates){.flops_per_s = 1e14, .bytes_per_s = 1e12, .launch_s = 5e-6}; /* until they are measured */
    x->start_s = pc_measure_now(x);
    make_budget(x);
    pc_code code = measure_all(x, error);
    pc_error of_fit = {0};
    pc_code fitted = fit(x, code ? &of_fit : error);
    profile->device.is_complete = !code && !fitted && !pc_measure_is_interrupted(x) && x->out_of_time == 0;
    pc_free(x);
    return code ? code : fitted;
}

pc_code pc_calibrate(const pc_calibrate_request *request, pc_profile *profile, char **warnings, pc_error *error) {
    pc_measure_seams seams = pc_measure_seams_usual();
    return pc_calibrate_with(request, &seams, profile, warnings, error);
}
