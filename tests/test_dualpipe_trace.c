/* A chunk of four layers of DeepSeek-V3 beside its authors' own trace of one (github.com/deepseek-ai/profile-data,
 * train.json): 64 H800, experts over all of them, one sequence of 4,096 tokens, tokens spread evenly. F of a microbatch
 * runs beside B and W of another. So the kernels have the processors that dispatch and combine leave, 112 of 132
 * (arXiv 2412.19437, section 3.2.2), and take 132/112 of what they take alone.
 *
 * Attention is all from one combine to the next dispatch, with norms and router; MLP all from dispatch to combine, with
 * the shared expert. In B, norms, the latents' way up and the experts' activation run again (sections 3.2.3 and 3.3.3).
 */
#include "models/training/outline.h"
#include "models/training/pair_overlap.h"
#include "models/training/pass_costs.h"
#include "sweep/run_profiles.h"
#include "tests/scenario_files.h"

#include <math.h>

static const char *const chunk =
    "scenario: chunk\n"
    "title: four layers of DeepSeek-V3\n"
    "source: arXiv 2412.19437\n"
    "setting:\n"
    "  model: {from: deepseek-v3, layers: 4, first_k_dense_replace: 0, mtp_num_layers: 0, precision: fp8-deepseek}\n"
    "  machine: hgx-h800\n"
    "  gpus: 64\n"
    "  ep: 64\n"
    "  microbatches: 120\n"
    "  schedule: zb-h1\n"
    "  recompute: selective\n"
    "  recompute_modules: [layernorm, mla_up_proj, moe_act]\n"
    "  moe_token_dispatcher_type: flex\n"
    "  moe_fp8_dispatch: true\n"
    "  use_transformer_engine_op_fuser: true\n"; /* experts in one kernel, without padding, as DeepGEMM has them */
enum { LAYERS = 4 };

typedef enum phase { ATTENTION, MLP, DISPATCH, COMBINE, PHASES } phase;
static const char *const phase_names[PHASES] = {"attn", "mlp", "dispatch", "combine"};
static const char pass_names[] = "FBW";
static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W};

/* Microseconds a layer, by phase and pass, kernels beside dispatch and combine. */
typedef double phases[PHASES][3];

static bool is_of_mlp(const pc_operation *x) {
    static const char *const names[] = {"shared_", "expert_", "permute", "unpermute"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(x->name, names[i], strlen(names[i]))) return true;
    return false;
}

static double stretch(void) {
    return pc_stretch_beside(132, pc_dispatch_processors(PC_DISPATCHER_DEEPEP));
}

/* The trace names exchanges by what they are in F: what B sends as F combined is its combine. */
static void add_operation(const pc_outline *outline, const pc_operation *x, int pass, phases us) {
    if (pc_operation_is_exchange(x))
        us[strcmp(x->name, "dispatch") ? COMBINE : DISPATCH][pass] += 1e6 * pc_outline_course(outline, x).seconds;
    else
        us[is_of_mlp(x) ? MLP : ATTENTION][pass] +=
            1e6 * stretch() * outline->cost.kernel(outline->cost.self, x).seconds;
}

/* ---- F beside B and W ---- */

enum { STEPS = 2048 };
typedef struct steps_of_pass {
    pc_pair_step list[STEPS];
    int count;
} steps_of_pass;

static double pair_s, apart_s;

/* The kernels alone; exchanges take their processors from kernels of the other pass. */
static void take_steps(const pc_outline *outline, const pc_iteration_spec *spec, pc_pass_kind kind,
                       steps_of_pass *steps) {
    pc_operations made;
    assert_int_equal(
        pc_pass_operations(&spec->model, &outline->cut, &outline->part_costs[0].part, kind, false, &made, NULL), PC_OK);
    steps->count = 0;
    for (int n = 0; n < LAYERS * made.count; n++) {
        const pc_operation *x = &made.list[n % made.count];
        bool is_comm = pc_operation_is_exchange(x);
        if (x->repeat != LAYERS) continue;
        assert_true(steps->count < STEPS);
        steps->list[steps->count++] = (pc_pair_step){
            is_comm ? pc_outline_course(outline, x).seconds : outline->cost.kernel(outline->cost.self, x).seconds,
            is_comm, is_comm ? pc_dispatch_processors(PC_DISPATCHER_DEEPEP) / 132.0 : 0};
    }
}

static void forecast_pair(const pc_outline *outline, const pc_iteration_spec *spec) {
    static steps_of_pass f, bw;
    take_steps(outline, spec, PC_PASS_F, &f);
    take_steps(outline, spec, PC_PASS_BW, &bw);
    const pc_pair_steps forward = {f.list, f.count}, backward = {bw.list, bw.count};
    pair_s = pc_pair_seconds(forward, backward);
    apart_s = pc_pair_alone_s(forward) + pc_pair_alone_s(backward);
}

/* ---- all ---- */

static void forecast(phases us) {
    pc_scenario *scenario = load_text(chunk);
    pc_run_spec spec = spec_of(scenario, 0);
    pc_run_profiles profiles = {0};
    pc_error error = {0};
    pc_outline outline;
    memset(us, 0, sizeof(phases));
    if (pc_run_profiles_open(&profiles, &spec, &error)) fail_msg("%s", error.message);
    pc_run_profiles_use(&profiles, &spec);
    if (pc_outline_make(&spec.iteration, spec.cost, &outline, &error)) fail_msg("%s", error.message);
    for (int pass = 0; pass < 3; pass++) {
        pc_operations made;
        const pc_part *part = &outline.part_costs[0].part;
        assert_int_equal(
            pc_pass_operations(&spec.iteration.model, &outline.cut, part, kinds[pass], false, &made, &error), PC_OK);
        for (int i = 0; i < made.count; i++)
            if (made.list[i].repeat == LAYERS) add_operation(&outline, &made.list[i], pass, us);
    }
    forecast_pair(&outline, &spec.iteration);
    pc_outline_free(&outline);
    pc_run_profiles_close(&profiles);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* ---- what was measured ---- */

/* By phase, pass, and stream: 7 is the main one of compute; -1: of whichever stream is for communication. */
typedef struct trace {
    phases main, comm, other;
} trace;

static void add_row(trace *of, const char *name, int stream, bool is_comm, double us) {
    for (int p = 0; p < PHASES; p++)
        for (int pass = 0; pass < 3; pass++) {
            char expected[32];
            snprintf(expected, sizeof expected, "%s(%c)", phase_names[p], pass_names[pass]);
            if (strcmp(name, expected) != 0) continue;
            (is_comm ? of->comm : stream == 7 ? of->main : of->other)[p][pass] += us;
        }
}

static bool read_trace(trace *of) {
    char path[PATH_SIZE], line[512], name[32], kind[16];
    snprintf(path, sizeof path, "%s/../shared/data/training/deepseek_v3_dualpipe_trace_phases_h800.csv", source_root());
    FILE *file = fopen(path, "r");
    if (!file) return false;
    memset(of, 0, sizeof *of);
    while (fgets(line, sizeof line, file)) {
        int stream;
        double total, layer;
        if (sscanf(line, "%*[^,],%*[^,],H800,64,1,7168,4096,4,%31[^,],4,%15[^,],%d,%lf,%lf", name, kind, &stream,
                   &total, &layer) == 5)
            add_row(of, name, stream, !strcmp(kind, "comm"), layer);
    }
    fclose(file);
    return true;
}

static trace measured;
static phases found;

static int prepare(void **state) {
    int failed = make_temporary(state);
    if (failed) return failed;
    forecast(found);
    if (!read_trace(&measured)) print_message("the trace is not there: nothing to compare with\n");
    return 0;
}

static void check(const char *what, double forecast_us, double measured_us, double within) {
    double off = forecast_us / measured_us - 1;
    print_message("%-22s forecast %7.0f us, measured %7.0f us: %+.1f%%\n", what, forecast_us, measured_us, 100 * off);
    if (!(fabs(off) <= within)) fail_msg("%s: %+.1f%%", what, 100 * off);
}

static void need_trace(void) {
    if (measured.main[ATTENTION][0] > 0) return;
    skip();
}

/* ---- comparisons ---- */

/* Nothing is fitted to the trace: products and attention are those of the H100's profile. */
static void test_forward_and_backward(void **state) {
    (void)state;
    need_trace();
    for (int p = ATTENTION; p <= MLP; p++)
        for (int pass = 0; pass < 2; pass++) {
            char what[32];
            snprintf(what, sizeof what, "%s(%c)", phase_names[p], pass_names[pass]);
            check(what, found[p][pass], measured.main[p][pass], 0.10);
        }
    for (int pass = 0; pass < 2; pass++)
        check(pass ? "B, both" : "F, both", found[ATTENTION][pass] + found[MLP][pass],
              measured.main[ATTENTION][pass] + measured.main[MLP][pass], 0.05);
}

/* Attention's is too short: the copies that weights' gradients read are made of 8 bits in the backward pass (section
 * 3.5.2), and here with F's, in one kernel. Of the MLP's a part runs on a second stream, beside others: the whole takes
 * no less than one of them, and no more than both. */
static void test_weights(void **state) {
    (void)state;
    need_trace();
    check("attn(W)", found[ATTENTION][2], measured.main[ATTENTION][2], 0.20);
    assert_true(found[MLP][2] >= measured.main[MLP][2]);
    assert_true(found[MLP][2] <= measured.main[MLP][2] + measured.other[MLP][2]);
}

/* The kernels of the trace wait for other ranks and for each other, which no rank's own work tells. If that is as
 * long for a dispatch as for the combine of its pass, what a combine takes longer is what it sends, 16 bits for 8. */
static void test_exchanges(void **state) {
    (void)state;
    need_trace();
    check("combine less dispatch, F", found[COMBINE][0] - found[DISPATCH][0],
          measured.comm[COMBINE][0] - measured.comm[DISPATCH][0], 0.10);
    check("and in B", found[DISPATCH][1] - found[COMBINE][1], measured.comm[DISPATCH][1] - measured.comm[COMBINE][1],
          0.10);
    for (int p = DISPATCH; p <= COMBINE; p++)
        for (int pass = 0; pass < 2; pass++) assert_true(found[p][pass] < measured.comm[p][pass]);
}

static double sum_of(phases us) {
    double sum = 0;
    for (int p = 0; p < PHASES; p++)
        for (int pass = 0; pass < 3; pass++) sum += us[p][pass];
    return sum;
}

/* F of one microbatch beside B and W of another, as a pair of passes runs (pair_overlap.h). The trace does not say how
 * long it took: at least the main stream's kernels, which run one after the other, and at most about all kernels. */
static void test_chunk(void **state) {
    (void)state;
    need_trace();
    check("chunk, main stream", 1e6 * pair_s, LAYERS * sum_of(measured.main), 0.08);
    check("chunk, all kernels", 1e6 * pair_s, LAYERS * (sum_of(measured.main) + sum_of(measured.other)), 0.08);
    assert_true(pair_s < 0.85 * apart_s);
}

/* Kernels in every pass; exchanges in F and B. */
static void test_every_phase_is_there(void **state) {
    (void)state;
    for (int p = 0; p < PHASES; p++)
        for (int pass = 0; pass < 3; pass++) assert_true((found[p][pass] > 0) == (p <= MLP || pass < 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_phase_is_there),
        cmocka_unit_test(test_forward_and_backward),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_chunk),
    };
    return cmocka_run_group_tests(tests, prepare, remove_temporary);
}
