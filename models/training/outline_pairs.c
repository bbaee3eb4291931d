#include "models/training/outline_pairs.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/training/pair_overlap.h"
#include "models/training/recipe.h"
#include "models/training/stage_sums.h"

#include <math.h>

bool pc_outline_has_pairs(const pc_outline *outline) {
    return outline->spec->overlaps_pairs && pc_generator_pairs(outline->spec->generator, outline->chunks);
}

pc_code pc_iteration_check_pairs(const pc_iteration_spec *spec, pc_error *error) {
    const char *wrong = NULL;
    if (!spec->overlaps_pairs) return PC_OK;
    if (!spec->generator->mixes && !pc_generator_pairs(spec->generator, 2))
        wrong = "a schedule without pairs of F and BW; expected 1f1b-interleaved-overlap, dualpipe or dualpipe-v";
    else if (spec->granularity == PC_GRANULARITY_OPERATIONS)
        wrong = "granularity operations; expected passes";
    else if (!spec->overlaps_p2p)
        wrong = "overlap.p2p false; expected true";
    else if (spec->pipelines_tp)
        wrong = "overlap.tp_pieces; expected tp_pieces false";
    else if (spec->cut.zero == 3)
        wrong = "zero 3; expected at most 2";
    else if (spec->expands || spec->jitter > 0 || spec->bad_days.samples > 0)
        wrong = "expanded replicas, jitter or samples; expected undisturbed iterations";
    else if (pc_offload_is_beside_passes(&spec->cut.offload))
        wrong = "activations on the host; expected another offload";
    else if (spec->waits_for_memory)
        wrong = "passes that wait for memory; expected memory_full: fail";
    if (!wrong) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "overlap.moe_expert_parallel_comm beside %s", wrong);
}

/* ---- a pass's steps, one by one ---- */

typedef struct pass_steps {
    pc_pair_step *steps; /* owned */
    int count;
    double alone_s, launches_s;
} pass_steps;

static int end_of_block(const pc_recipe *recipe, int first) {
    int behind = first + 1;
    while (behind < recipe->count && recipe->steps[behind].repeat == recipe->steps[first].repeat) behind++;
    return behind;
}

/* Of a collective beside the kernels behind it, what these leave. */
static pc_pair_step step_of(const pc_recipe *recipe, int i, double slowdown) {
    const pc_step_of_pass *x = &recipe->steps[i];
    bool hides = x->is_collective && x->runs_beside && i + 1 < recipe->count;
    double seconds = hides ? fmax(x->seconds - recipe->steps[i + 1].seconds, 0) : x->seconds;
    return (pc_pair_step){seconds, x->is_collective, x->is_collective ? fmin(slowdown, 0.99) : 0};
}

static pc_code make_steps(const pc_outline *outline, int sort, pc_pass_kind kind, pass_steps *made, pc_error *error) {
    pc_recipe recipe;
    int64_t count = 0;
    pc_code code = pc_recipe_make(outline, &outline->part_costs[sort], kind, &recipe, error);
    if (code) return code;
    for (int i = 0; i < recipe.count; i++) count += recipe.steps[i].repeat;
    *made = (pass_steps){.steps = pc_alloc((size_t)count + 1, sizeof *made->steps), .launches_s = recipe.launches_s};
    if (!made->steps) code = pc_error_no_memory(error);
    for (int first = 0, behind; !code && first < recipe.count; first = behind) {
        behind = end_of_block(&recipe, first);
        for (int64_t k = 0; k < recipe.steps[first].repeat; k++)
            for (int i = first; i < behind; i++)
                made->steps[made->count++] = step_of(&recipe, i, outline->spec->overlap_slowdown);
    }
    made->alone_s = pc_pair_alone_s((pc_pair_steps){made->steps, made->count});
    pc_recipe_free(&recipe);
    return code;
}

/* Seconds that the two passes save together. Exactly none where neither communicates, or the host launches that long.
 */
static double saved_s(const pass_steps *f, const pass_steps *back) {
    double both_s = pc_pair_seconds((pc_pair_steps){f->steps, f->count}, (pc_pair_steps){back->steps, back->count});
    if (both_s == f->alone_s + back->alone_s) return 0;
    double apart_s = fmax(f->alone_s, f->launches_s) + fmax(back->alone_s, back->launches_s);
    return fmax(apart_s - fmax(both_s, f->launches_s + back->launches_s), 0);
}

/* ---- pairs of chunks ---- */

static void set_pair(const pc_outline *outline, int device, int f_chunk, int back_chunk, const double *saved,
                     pc_costs *costs) {
    const pc_chunk_outline *chunks = outline->chunks_of + (int64_t)device * outline->chunks;
    pc_pass f = {1, (int16_t)f_chunk, PC_PASS_F}, back = {0, (int16_t)back_chunk, PC_PASS_BW};
    pc_time f_ps = pc_costs_duration(costs, device, f_chunk, PC_PASS_F);
    pc_time back_ps = pc_costs_duration(costs, device, back_chunk, PC_PASS_BW);
    double seconds = saved[(int64_t)chunks[f_chunk].sort * outline->sort_count + chunks[back_chunk].sort];
    pc_time less = (pc_time)llround(seconds * (double)PC_PICOSECONDS_PER_SECOND);
    costs->pair_ps[pc_costs_pair_index(costs, device, f, back)] = pc_max(f_ps + back_ps - less, pc_max(f_ps, back_ps));
}

static void set_all(const pc_outline *outline, const double *saved, pc_costs *costs) {
    for (int d = 0; d < outline->devices; d++)
        for (int f = 0; f < outline->chunks; f++)
            for (int back = 0; back < outline->chunks; back++) set_pair(outline, d, f, back, saved, costs);
}

pc_code pc_outline_set_pairs(const pc_outline *outline, pc_costs *costs, pc_error *error) {
    int sorts = outline->sort_count;
    if (!pc_outline_has_pairs(outline)) return PC_OK;
    pass_steps *steps = pc_alloc(2 * (size_t)sorts, sizeof *steps);
    double *saved = pc_alloc((size_t)sorts * (size_t)sorts, sizeof *saved);
    pc_code code = steps && saved ? pc_costs_add_pairs(costs, error) : pc_error_no_memory(error);
    for (int i = 0; !code && i < sorts; i++) {
        code = make_steps(outline, i, PC_PASS_F, &steps[i], error);
        if (!code) code = make_steps(outline, i, PC_PASS_BW, &steps[sorts + i], error);
    }
    for (int i = 0; !code && i < sorts * sorts; i++) saved[i] = saved_s(&steps[i / sorts], &steps[sorts + i % sorts]);
    if (!code) set_all(outline, saved, costs);
    for (int i = 0; steps && i < 2 * sorts; i++) pc_free(steps[i].steps);
    pc_free(saved);
    pc_free(steps);
    return code;
}

static int find_busiest(const pc_outline *outline) {
    int found = 0;
    double most = 0;
    for (int d = 0; d < outline->devices; d++) {
        pc_stage_sums sums = pc_outline_sum_stage(outline, d);
        double busy = sums.compute_s + sums.tp_s + sums.cp_s;
        if (d > 0 && busy <= most) continue;
        most = busy;
        found = d;
    }
    return found;
}

double pc_outline_hidden_s(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs) {
    pc_time hidden = 0;
    if (!costs->pair_ps || !schedule->pairs) return 0;
    int device = find_busiest(outline);
    for (int64_t i = schedule->offsets[device]; i < schedule->offsets[device + 1]; i++) {
        const pc_pass *pass = &schedule->passes[i];
        hidden += pc_costs_duration(costs, device, pass->chunk, pass->kind) -
                  pc_costs_busy_ps(costs, schedule, device, i, NULL);
    }
    return pc_time_to_seconds(hidden);
}
