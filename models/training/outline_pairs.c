#include "models/training/outline_pairs.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/training/outline_experts.h"
#include "models/training/outline_units.h"
#include "models/training/pair_overlap.h"
#include "models/training/pass_costs.h"
#include "models/training/recipe.h"
#include "models/training/stage_sums.h"

#include <math.h>

bool pc_outline_has_pairs(const pc_outline *outline) {
    return outline->spec->overlaps_pairs &&
           pc_generator_pairs(outline->spec->generator, outline->devices, outline->chunks);
}

static pc_code check_delay(const pc_iteration_spec *spec, pc_error *error) {
    if (!spec->delays_weights) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "overlap.delay_wgrad_compute without overlap.moe_expert_parallel_comm; expected both");
}

pc_code pc_iteration_check_pairs(const pc_iteration_spec *spec, pc_error *error) {
    const char *wrong = NULL;
    if (!spec->overlaps_pairs) return check_delay(spec, error);
    if (!pc_generator_pairs(spec->generator, 1, 1))
        wrong = "a schedule without pairs of F and BW; expected 1f1b-interleaved-overlap, dualpipe or dualpipe-v";
    else if (spec->cut.overlaps_shared)
        wrong = "moe_shared_expert_overlap; expected one of the two, as Megatron-LM does";
    if (!wrong) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "overlap.moe_expert_parallel_comm beside %s", wrong);
}

/* ---- a pass's steps, one by one ---- */

typedef struct pass_steps {
    pc_pair_step *steps; /* owned */
    int *of_recipe;      /* which of the recipe's, owned */
    int *behind;         /* of delayed ones (pc_delayed_steps), owned */
    int count;
    double alone_s, launches_s;
} pass_steps;

/* What a collective takes from the kernels beside it: an exchange its processors, others what the spec says. */
static double share_of(const pc_outline *outline, const pc_step_of_pass *x) {
    return fmin(fmax(pc_outline_processor_share(outline, x->group), outline->spec->overlap_slowdown), 0.99);
}

/* Megatron-LM has a stream for what moves tokens to experts and back; all else waits its turn among the kernels. Where
 * no experts are shared out, every collective is taken to hide. */
static bool can_hide(const pc_outline *outline, const pc_group *group) {
    bool has_experts = pc_cut_folds_experts(&outline->spec->model, &outline->cut);
    return !has_experts || group == &outline->experts.ep || group == &outline->experts.etp;
}

/* Of a collective beside the kernels behind it, what these leave. */
static pc_pair_step step_of(const pc_outline *outline, const pc_recipe *recipe, int i) {
    const pc_step_of_pass *x = &recipe->steps[i];
    bool hides = x->is_collective && x->runs_beside && i + 1 < recipe->count;
    double seconds = hides ? fmax(x->seconds - recipe->steps[i + 1].seconds, 0) : x->seconds;
    bool is_comm = x->is_collective && can_hide(outline, x->group);
    return (pc_pair_step){seconds, is_comm, is_comm ? share_of(outline, x) : 0};
}

static pc_code make_steps(const pc_outline *outline, int sort, pc_pass_kind kind, pass_steps *made, pc_error *error) {
    pc_recipe recipe;
    int64_t count = 0;
    pc_code code = pc_recipe_make(outline, &outline->part_costs[sort], kind, &recipe, error);
    if (code) return code;
    for (int i = 0; i < recipe.count; i++) count += recipe.steps[i].repeat;
    *made = (pass_steps){.steps = pc_alloc((size_t)count + 1, sizeof *made->steps), .launches_s = recipe.launches_s};
    made->of_recipe = pc_alloc((size_t)count + 1, sizeof *made->of_recipe);
    if (!made->steps || !made->of_recipe) code = pc_error_no_memory(error);
    for (int first = 0, behind; !code && first < recipe.count; first = behind) {
        behind = pc_recipe_block_end(&recipe, first);
        for (int64_t k = 0; k < recipe.steps[first].repeat; k++)
            for (int i = first; i < behind; i++) {
                made->of_recipe[made->count] = i;
                made->steps[made->count++] = step_of(outline, &recipe, i);
            }
    }
    made->alone_s = pc_pair_alone_s((pc_pair_steps){made->steps, made->count});
    pc_recipe_free(&recipe);
    return code;
}

static pc_pair_steps list_of(const pass_steps *pass) {
    return (pc_pair_steps){pass->steps, pass->count};
}

/* ---- delayed products ---- */

/* Steps of the pass up to the end of the n-th time that it goes through the block, which begins at `first` of `recipe`;
 * `before`: those of the blocks before. */
static int steps_through(const pc_recipe *recipe, int first, int before, int64_t n) {
    return before + (int)(n + 1) * (pc_recipe_block_end(recipe, first) - first);
}

/* Kernels of W wait for those of B of the same layer: block by block, as far as both have blocks of as many layers. */
static void put_behind(const pc_recipe *w, const pc_recipe *b, pass_steps *delayed, int all) {
    int in_b = 0, before = 0, at = 0;
    for (int first = 0, behind; first < w->count; first = behind) {
        int64_t repeat = w->steps[first].repeat;
        behind = pc_recipe_block_end(w, first);
        while (in_b < b->count && b->steps[in_b].repeat != repeat) {
            int next = pc_recipe_block_end(b, in_b);
            before += (int)b->steps[in_b].repeat * (next - in_b);
            in_b = next;
        }
        for (int64_t k = 0; k < repeat; k++)
            for (int i = first; i < behind; i++)
                delayed->behind[at++] = in_b < b->count ? steps_through(b, in_b, before, k) : all;
    }
}

/* B and W of a sort, apart, whichever passes the schedule has. */
static pc_code make_delayed(const pc_outline *outline, int sort, pass_steps *input, pass_steps *delayed,
                            pc_error *error) {
    pc_recipe b = {0}, w = {0};
    pc_code code = make_steps(outline, sort, PC_PASS_B, input, error);
    if (!code) code = make_steps(outline, sort, PC_PASS_W, delayed, error);
    if (!code) code = pc_recipe_make(outline, &outline->part_costs[sort], PC_PASS_B, &b, error);
    if (!code) code = pc_recipe_make(outline, &outline->part_costs[sort], PC_PASS_W, &w, error);
    if (!code) delayed->behind = pc_alloc((size_t)delayed->count + 1, sizeof *delayed->behind);
    if (!code && !delayed->behind) code = pc_error_no_memory(error);
    if (!code) put_behind(&w, &b, delayed, input->count);
    for (int i = 0; !code && i < delayed->count; i++) delayed->steps[i].is_comm = false;
    pc_recipe_free(&b);
    pc_recipe_free(&w);
    return code;
}

/* ---- pairs of sorts ---- */

/* Of one sort: its passes, and B and W apart where W is delayed. */
typedef struct sort_steps {
    pass_steps f, back, input, delayed;
} sort_steps;

static pc_code make_sort(const pc_outline *outline, int sort, sort_steps *made, pc_error *error) {
    pc_code code = make_steps(outline, sort, PC_PASS_F, &made->f, error);
    if (!code) code = make_steps(outline, sort, PC_PASS_BW, &made->back, error);
    bool delays = outline->spec->delays_weights;
    return code || !delays ? code : make_delayed(outline, sort, &made->input, &made->delayed, error);
}

static void free_steps(pass_steps *pass) {
    pc_free(pass->steps);
    pc_free(pass->of_recipe);
    pc_free(pass->behind);
}

static void free_sorts(sort_steps *sorts, int count) {
    for (int i = 0; sorts && i < count; i++) {
        free_steps(&sorts[i].f);
        free_steps(&sorts[i].back);
        free_steps(&sorts[i].input);
        free_steps(&sorts[i].delayed);
    }
    pc_free(sorts);
}

static double pass_s(const pass_steps *pass) {
    return fmax(pass->alone_s, pass->launches_s);
}

static double apart_s(const pass_steps *f, const pass_steps *back) {
    return pass_s(f) + pass_s(back);
}

static const pass_steps *first_of(const sort_steps *of_back) {
    return of_back->delayed.steps ? &of_back->input : &of_back->back;
}

/* Seconds that the two passes save together. Exactly none where neither communicates, or the host launches that long.
 */
static double saved_s(const pass_steps *f, const sort_steps *of_back) {
    const pass_steps *back = &of_back->back, *delayed = &of_back->delayed, *first = first_of(of_back);
    double both_s =
        pc_pair_seconds_with(list_of(f), list_of(first), (pc_delayed_steps){list_of(delayed), delayed->behind});
    if (both_s == f->alone_s + first->alone_s + delayed->alone_s) return 0;
    return fmax(apart_s(f, back) - fmax(both_s, f->launches_s + back->launches_s), 0);
}

/* ---- a pair's pieces ---- */

/* The steps of a plan's three passes, and how far each has come. */
typedef struct planning {
    const pass_steps *pass[3];
    pc_pass_kind kind[3];
    int next[3];
} planning;

static void add_piece(const planning *x, int pass, int step, double begin_s, double end_s, pc_pair_plan *plan) {
    plan->pieces[plan->count++] = (pc_pair_piece){.pass = pass,
                                                  .kind = x->kind[pass],
                                                  .step = x->pass[pass]->of_recipe[step],
                                                  .is_comm = x->pass[pass]->steps[step].is_comm,
                                                  .also = -1,
                                                  .begin_s = begin_s,
                                                  .end_s = end_s};
}

/* The steps of no time before it go with it. */
static void add_moment(planning *x, const pc_pair_moment *moment, pc_pair_plan *plan) {
    int pass = moment->pass;
    for (; x->next[pass] < moment->step; x->next[pass]++)
        add_piece(x, pass, x->next[pass], moment->begin_s, moment->begin_s, plan);
    add_piece(x, pass, x->next[pass]++, moment->begin_s, moment->end_s, plan);
}

/* The last piece of the backward pass among so many of its steps. */
static int find_also(const pc_pair_course *course, const int *piece_of, int until, int steps) {
    for (int i = until; i-- > 0;)
        if (course->moments[i].pass == 1 && course->moments[i].step < steps) return piece_of[i];
    return -1;
}

static pc_code fill_plan(planning *x, pc_pair_course *course, pc_pair_plan *plan, pc_error *error) {
    const int *behind = x->pass[2]->behind;
    int *piece_of = pc_alloc((size_t)course->count + 1, sizeof *piece_of);
    if (!piece_of) return pc_error_no_memory(error);
    for (int i = 0; i < course->count; i++) {
        const pc_pair_moment *moment = &course->moments[i];
        add_moment(x, moment, plan);
        piece_of[i] = plan->count - 1;
        if (moment->pass == 2) plan->pieces[piece_of[i]].also = find_also(course, piece_of, i, behind[moment->step]);
    }
    pc_free(piece_of);
    return PC_OK;
}

/* One pass behind the other, as they would be apart. */
static void plan_apart(const pass_steps *f, const pass_steps *back, pc_pair_plan *plan) {
    planning x = {{f, back, NULL}, {PC_PASS_F, PC_PASS_BW, PC_PASS_W}, {0}};
    double now_s = 0;
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < x.pass[p]->count; i++) {
            double end_s = now_s + x.pass[p]->steps[i].seconds;
            add_piece(&x, p, i, now_s, end_s, plan);
            now_s = end_s;
        }
    plan->least_s = apart_s(f, back);
}

static pc_code plan_together(const pass_steps *f, const sort_steps *of_back, pc_pair_plan *plan, pc_error *error) {
    bool delays = of_back->delayed.steps;
    const pass_steps *back = first_of(of_back), *delayed = &of_back->delayed;
    planning x = {{f, back, delayed}, {PC_PASS_F, delays ? PC_PASS_B : PC_PASS_BW, PC_PASS_W}, {0}};
    size_t steps = (size_t)f->count + (size_t)back->count + (size_t)delayed->count;
    pc_pair_course course = {pc_alloc(steps + 1, sizeof *course.moments), 0};
    if (!course.moments) return pc_error_no_memory(error);
    pc_pair_seconds_course(list_of(f), list_of(back), (pc_delayed_steps){list_of(delayed), delayed->behind}, &course);
    plan->least_s = fmax(f->launches_s + of_back->back.launches_s, fmax(pass_s(f), pass_s(&of_back->back)));
    pc_code code = fill_plan(&x, &course, plan, error);
    pc_free(course.moments);
    return code;
}

static pc_code make_plan(const pass_steps *f, const sort_steps *of_back, pc_pair_plan *plan, pc_error *error) {
    int64_t apart = (int64_t)f->count + of_back->back.count;
    int64_t together = (int64_t)f->count + first_of(of_back)->count + of_back->delayed.count;
    plan->pieces = pc_alloc((size_t)pc_max(apart, together) + 1, sizeof *plan->pieces);
    if (!plan->pieces) return pc_error_no_memory(error);
    if (saved_s(f, of_back) > 0) return plan_together(f, of_back, plan, error);
    plan_apart(f, &of_back->back, plan);
    return PC_OK;
}

pc_code pc_outline_pair_plan(const pc_outline *outline, int f_sort, int back_sort, pc_pair_plan *plan,
                             pc_error *error) {
    pass_steps f = {0};
    sort_steps *of_back = pc_alloc(1, sizeof *of_back);
    *plan = (pc_pair_plan){0};
    pc_code code = of_back ? make_steps(outline, f_sort, PC_PASS_F, &f, error) : pc_error_no_memory(error);
    if (!code) code = make_sort(outline, back_sort, of_back, error);
    if (!code) code = make_plan(&f, of_back, plan, error);
    free_steps(&f);
    free_sorts(of_back, 1);
    if (code) pc_pair_plan_free(plan);
    return code;
}

void pc_pair_plan_free(pc_pair_plan *plan) {
    pc_free(plan->pieces);
    *plan = (pc_pair_plan){0};
}

/* ---- pairs of chunks ---- */

static pc_time stretched(pc_time time_ps, pc_time now_ps, pc_time usual_ps) {
    if (now_ps == usual_ps || usual_ps <= 0) return time_ps;
    return (pc_time)llround((double)time_ps * ((double)now_ps / (double)usual_ps));
}

/* Two passes whose kernels take so long together, f_ps and back_ps alone. */
static pc_time with_units(const pc_outline *outline, int device, pc_pass f, pc_pass back, pc_time together_ps,
                          pc_time f_ps, pc_time back_ps) {
    pc_unit_rules rules = pc_outline_unit_rules(outline);
    pc_time f_share = stretched(f_ps, together_ps, f_ps + back_ps);
    pc_units of_f = pc_outline_units_of(outline, device, f, f_share);
    pc_units of_back = pc_outline_units_of(outline, device, back, together_ps - f_share);
    return pc_units_run_both(&of_f, &of_back, &rules);
}

static pc_time with_zero(const pc_outline *outline, int device, pc_pass f, pc_pass back, pc_time together_ps) {
    pc_zero_traffic of_f = pc_outline_zero_traffic(outline, device, f);
    pc_zero_traffic of_back = pc_outline_zero_traffic(outline, device, back);
    pc_zero_traffic both = {of_f.gather_ps + of_back.gather_ps, of_f.reduce_ps + of_back.reduce_ps};
    return pc_outline_beside_zero(outline, both, together_ps);
}

pc_time pc_outline_pair_ps(const pc_outline *outline, const pc_costs *costs, int device, pc_pass f, pc_pass back,
                           int without, pc_time f_ps, pc_time back_ps) {
    int64_t at = pc_costs_pair_index(costs, device, f, back);
    pc_time together_ps = stretched(costs->pair_own_ps[at], f_ps + back_ps, costs->pair_apart_ps[at]);
    if (outline->cut.zero < 2 || without & PC_WITHOUT_DATA_PARALLEL) return together_ps;
    if (pc_outline_has_units(outline)) return with_units(outline, device, f, back, together_ps, f_ps, back_ps);
    return with_zero(outline, device, f, back, together_ps);
}

pc_time pc_outline_pair_wait_ps(const pc_outline *outline, int device, pc_pass f, pc_pass back) {
    if (outline->spec->overlaps_p2p) return 0;
    return pc_max(pc_outline_wait_behind(outline, device, f), pc_outline_wait_behind(outline, device, back));
}

static pc_code set_pair(const pc_outline *outline, int device, int f_chunk, int back_chunk, int without,
                        const double *saved, pc_costs *costs, pc_error *error) {
    const pc_chunk_outline *chunks = outline->chunks_of + (int64_t)device * outline->chunks;
    pc_pass f = {1, (int16_t)f_chunk, PC_PASS_F}, back = {0, (int16_t)back_chunk, PC_PASS_BW};
    double seconds = saved[(int64_t)chunks[f_chunk].sort * outline->sort_count + chunks[back_chunk].sort];
    pc_time less = (pc_time)llround(seconds * (double)PC_PICOSECONDS_PER_SECOND), f_ps = 0, back_ps = 0;
    pc_code code = pc_outline_time("F", pc_outline_pass_s(outline, device, f), 1, &f_ps, error);
    if (!code) code = pc_outline_time("BW", pc_outline_pass_s(outline, device, back), 1, &back_ps, error);
    if (code) return code;
    int64_t at = pc_costs_pair_index(costs, device, f, back);
    costs->pair_own_ps[at] = pc_max(f_ps + back_ps - less, pc_max(f_ps, back_ps));
    costs->pair_apart_ps[at] = f_ps + back_ps;
    costs->pair_ps[at] = pc_outline_pair_ps(outline, costs, device, f, back, without, f_ps, back_ps);
    if (!(without & PC_WITHOUT_TRANSFERS)) costs->pair_ps[at] += pc_outline_pair_wait_ps(outline, device, f, back);
    return PC_OK;
}

/* Layers go one after the other. */
static void set_layer(const pc_outline *outline, int device, int chunk, pc_costs *costs) {
    const pc_part *part = &pc_outline_part(outline, device, chunk)->part;
    int64_t layers = pc_max(part->layers, 1);
    pc_pass f = {0, (int16_t)chunk, PC_PASS_F};
    costs->pair_layer_bytes[pc_costs_index(costs, device, chunk)] =
        pc_divide_up(pc_costs_taken(costs, device, f, false), layers);
}

static pc_code set_all(const pc_outline *outline, int without, const double *saved, pc_costs *costs, pc_error *error) {
    pc_code code = PC_OK;
    for (int d = 0; d < outline->devices; d++)
        for (int c = 0; c < outline->chunks; c++) set_layer(outline, d, c, costs);
    for (int d = 0; d < outline->devices; d++)
        for (int f = 0; f < outline->chunks; f++)
            for (int back = 0; !code && back < outline->chunks; back++)
                code = set_pair(outline, d, f, back, without, saved, costs, error);
    return code;
}

pc_code pc_outline_set_pairs(const pc_outline *outline, int without, pc_costs *costs, pc_error *error) {
    int count = outline->sort_count;
    if (!pc_outline_has_pairs(outline)) return PC_OK;
    sort_steps *sorts = pc_alloc((size_t)count, sizeof *sorts);
    double *saved = pc_alloc((size_t)count * (size_t)count, sizeof *saved);
    pc_code code = sorts && saved ? pc_costs_add_pairs(costs, error) : pc_error_no_memory(error);
    for (int i = 0; !code && i < count; i++) code = make_sort(outline, i, &sorts[i], error);
    for (int i = 0; !code && i < count * count; i++) saved[i] = saved_s(&sorts[i / count].f, &sorts[i % count]);
    if (!code) code = set_all(outline, without, saved, costs, error);
    free_sorts(sorts, count);
    pc_free(saved);
    return code;
}

static int find_busiest(const pc_outline *outline, const pc_schedule *schedule) {
    int found = 0;
    double most = 0;
    for (int d = 0; d < outline->devices; d++) {
        pc_stage_sums sums = pc_outline_sum_stage(outline, schedule, d);
        double busy = sums.compute_s + sums.tp_s + sums.cp_s + sums.ep_s;
        if (d > 0 && busy <= most) continue;
        most = busy;
        found = d;
    }
    return found;
}

double pc_outline_hidden_s(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs) {
    pc_time hidden = 0;
    if (!costs->pair_ps || !schedule->pairs) return 0;
    int device = find_busiest(outline, schedule);
    for (int64_t i = schedule->offsets[device]; i < schedule->offsets[device + 1]; i++) {
        if (!schedule->pairs[i]) continue;
        int64_t at = pc_costs_pair_index(costs, device, schedule->passes[i], schedule->passes[i + 1]);
        hidden += costs->pair_apart_ps[at] - costs->pair_own_ps[at];
    }
    return pc_time_to_seconds(hidden);
}
