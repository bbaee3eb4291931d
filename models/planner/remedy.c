/* What would lift a rule that points of a space break: found by trying. */
#include "models/planner/space.h"

#include "engine/numbers.h"

#include <stdio.h>
#include <stdlib.h>

/* Choices that are tried, over all remedies; what is not found by then is not claimed. */
enum { TRIES_MOST = 4000000, DISTANCES_MOST = 1000000, VALUES_MOST = 64, WAYS_MOST = 4 };

typedef struct remedy_search {
    const pc_plan_space *space;
    plan_numbers numbers;
    int64_t tries;
    pc_plan_remedy found;
} remedy_search;

/* ---- one value in the place of a choice's own ---- */

/* With other parts the first of the listed layouts that divides the layers over them. */
static void settle_layout(const pc_plan_space *space, pc_plan_choice *choice) {
    pc_plan_rule broken;
    for (int i = 0; i < space->layouts.count; i++) {
        choice->layout = plan_layout_of(space, choice, space->layouts.values[i]);
        if (plan_check_frame(space, choice, &broken) == PC_OK) return;
    }
}

static pc_plan_choice with_value(const pc_plan_space *of, pc_plan_choice choice, pc_plan_remedy remedy) {
    pc_plan_space with_dp = *of;
    const pc_plan_space *space = remedy.way == PC_PLAN_WAY_DP ? &with_dp : of;
    with_dp.dp = (pc_plan_list){&remedy.value, 1};
    switch (remedy.way) {
    case PC_PLAN_WAY_DP:
        break; /* plan_settle takes it */
    case PC_PLAN_WAY_CP:
        choice.cp = (int)remedy.value;
        break;
    case PC_PLAN_WAY_EP:
        choice.ep = (int)remedy.value;
        break;
    case PC_PLAN_WAY_ETP:
        choice.etp = (int)remedy.value;
        break;
    case PC_PLAN_WAY_LAYOUT:
        choice.layout = (pc_cut_layout)remedy.value;
        break;
    case PC_PLAN_WAY_PP:
        choice.pp = (int)remedy.value;
        break;
    case PC_PLAN_WAY_TP:
        choice.tp = (int)remedy.value;
        break;
    case PC_PLAN_WAY_CHUNKS:
        choice.chunks = plan_chunks_of(&choice, remedy.value);
        break;
    case PC_PLAN_WAY_MICROBATCH_SIZE:
        choice.microbatch_size = remedy.value;
        break;
    case PC_PLAN_WAY_BATCH:
        choice.global_batch = remedy.value;
        break;
    default:
        choice.generator = remedy.generator;
        choice.slices = plan_slices_of(space, &choice, choice.slices);
        choice.chunks = plan_chunks_of(&choice, choice.chunks);
    }
    plan_settle(space, &choice);
    if (remedy.way != PC_PLAN_WAY_LAYOUT) settle_layout(space, &choice);
    return choice;
}

/* How many points of a frame break `rule` and none with the remedy; at least one suffices but for layouts. */
static int64_t count_lifted(remedy_search *search, int64_t frame, pc_plan_remedy remedy) {
    const plan_numbers *numbers = &search->numbers;
    int64_t first = frame * numbers->of_frame, count = 0;
    pc_plan_rule broken;
    if (!plan_is_frame(numbers, frame)) return 0;
    pc_plan_choice of_frame = plan_choice_of(numbers, first * numbers->variants);
    bool is_frames = plan_check_frame(search->space, &of_frame, &broken) != PC_OK;
    bool is_of_frames = remedy.rule <= PC_PLAN_RULE_EXPERTS; /* plan_check_frame finds it */
    search->tries++;
    if (is_frames ? broken != remedy.rule : is_of_frames) return 0;
    pc_plan_choice other = with_value(search->space, of_frame, remedy);
    if (plan_check_frame(search->space, &other, &broken)) return 0;
    for (int64_t i = 0; i < numbers->of_frame && search->tries < TRIES_MOST; i++) {
        pc_plan_choice choice = plan_choice_of(numbers, (first + i) * numbers->variants);
        if (!plan_is_shape(numbers, &choice, first + i)) continue;
        bool is_broken = is_frames;
        if (!is_frames) is_broken = plan_check_rules(search->space, &choice, &broken) && broken == remedy.rule;
        other = with_value(search->space, choice, remedy);
        search->tries++;
        if (is_broken && !plan_check_rules(search->space, &other, &broken))
            count += plan_count_variants(numbers, &choice);
        if (count > 0 && remedy.way != PC_PLAN_WAY_LAYOUT) break;
    }
    return count;
}

/* Takes the remedy if it lifts more points than what was found. */
static void try_remedy(remedy_search *search, pc_plan_remedy remedy) {
    bool counts = remedy.way == PC_PLAN_WAY_LAYOUT;
    for (int64_t frame = 0; frame < search->numbers.frames && search->tries < TRIES_MOST; frame++) {
        remedy.points += count_lifted(search, frame, remedy);
        if (remedy.points > 0 && !counts) break;
    }
    if (remedy.points > search->found.points && search->tries < TRIES_MOST) search->found = remedy;
}

/* ---- values ---- */

static bool is_listed(const pc_plan_list *list, int64_t value) {
    for (int i = 0; i < list->count; i++)
        if (list->values[i] == value) return true;
    return false;
}

static int64_t largest(const pc_plan_list *list) {
    int64_t most = 0;
    for (int i = 0; i < list->count; i++)
        if (list->values[i] > most) most = list->values[i];
    return most;
}

/* How far a number up to `most` is at least from any of a list, but 1. */
static int64_t least_distance(const pc_plan_list *list, int64_t most) {
    int64_t least = INT64_MAX;
    for (int i = 0; i < list->count; i++) least = pc_min(least, pc_max(list->values[i] - most, 1));
    return least;
}

static bool divides_one(const pc_plan_list *list, int64_t value) {
    for (int i = 0; list && i < list->count; i++)
        if (list->values[i] % value == 0) return true;
    return !list;
}

/* BALANCED, which nearly always can be and frameworks take as a list, where no other does. */
static void try_layouts(remedy_search *search, pc_plan_rule rule) {
    const pc_plan_list *layouts = &search->space->layouts;
    for (int64_t layout = PC_CUT_EVEN; layout <= PC_CUT_OWN; layout++)
        if (!is_listed(layouts, layout))
            try_remedy(search, (pc_plan_remedy){.rule = rule, .way = PC_PLAN_WAY_LAYOUT, .value = layout});
    if (search->found.points == 0 && !is_listed(layouts, PC_CUT_BALANCED))
        try_remedy(search, (pc_plan_remedy){.rule = rule, .way = PC_PLAN_WAY_LAYOUT, .value = PC_CUT_BALANCED});
}

/* Numbers up to `most` beside those of a list, the nearest to any of them first; `divides`: only those that divide one
 * of its values; NULL: all. */
static void try_nearest(remedy_search *search, pc_plan_rule rule, pc_plan_way way, const pc_plan_list *list,
                        int64_t most, const pc_plan_list *divides) {
    int values = 0;
    const int64_t first = least_distance(list, most), farthest = pc_max(most, largest(list));
    for (int64_t distance = first; distance < farthest && values < VALUES_MOST; distance++) {
        if (distance - first == DISTANCES_MOST) return;
        for (int i = 0; i < 2 * list->count && values < VALUES_MOST && search->found.points == 0; i++) {
            int64_t value = list->values[i / 2] + (i % 2 ? distance : -distance);
            if (value < 1 || value > most || is_listed(list, value) || !divides_one(divides, value)) continue;
            try_remedy(search, (pc_plan_remedy){.rule = rule, .way = way, .value = value});
            values++;
        }
    }
}

/* The multiple of dp x microbatch size, for some cut, that is nearest to a listed batch. */
static void try_batch(remedy_search *search, pc_plan_rule rule) {
    const plan_numbers *numbers = &search->numbers;
    int64_t nearest = 0, least = INT64_MAX;
    for (int64_t shape = 0; shape < numbers->shapes && search->tries < TRIES_MOST; shape++, search->tries++) {
        pc_plan_choice choice = plan_choice_of(numbers, shape * numbers->variants);
        int64_t step = choice.dp * choice.microbatch_size, of = choice.global_batch;
        if (step == 0) continue;
        int64_t up = pc_round_up(of, step), down = of / step * step;
        int64_t value = down > 0 && of - down < up - of ? down : up, distance = llabs(value - of);
        if (distance > 0 && distance < least) nearest = value;
        if (distance > 0 && distance < least) least = distance;
    }
    if (nearest > 0) try_remedy(search, (pc_plan_remedy){.rule = rule, .way = PC_PLAN_WAY_BATCH, .value = nearest});
}

static void try_1f1b(remedy_search *search, pc_plan_rule rule) {
    const pc_generator *usual = pc_generator_find("1f1b");
    for (int i = 0; i < search->space->generator_count; i++)
        if (search->space->generators[i] == usual) return;
    try_remedy(search, (pc_plan_remedy){.rule = rule, .way = PC_PLAN_WAY_SCHEDULE, .generator = usual});
}

/* ---- ways ---- */

static void try_way(remedy_search *search, pc_plan_rule rule, pc_plan_way way) {
    const pc_plan_space *space = search->space;
    int64_t layers = space->bases[0].spec.model.layers, gpus = largest(&space->gpus);
    int64_t experts = space->bases[0].spec.model.experts.num_experts;
    const pc_plan_list count = {&experts, 1};
    int64_t parts = layers + 2 < PC_CHUNKS_MAX ? layers + 2 : PC_CHUNKS_MAX, ranks = gpus < parts ? gpus : parts;
    switch (way) {
    case PC_PLAN_WAY_LAYOUT:
        return try_layouts(search, rule);
    case PC_PLAN_WAY_PP:
        return try_nearest(search, rule, way, &space->pp, ranks, &space->gpus);
    case PC_PLAN_WAY_TP:
        return try_nearest(search, rule, way, &space->tp, gpus, &space->gpus);
    case PC_PLAN_WAY_DP:
        return try_nearest(search, rule, way, &space->dp, gpus, &space->gpus);
    case PC_PLAN_WAY_CP:
        return try_nearest(search, rule, way, &space->cp, gpus, &space->gpus);
    case PC_PLAN_WAY_EP:
        return try_nearest(search, rule, way, &space->ep, pc_max(experts, 1), experts > 0 ? &count : NULL);
    case PC_PLAN_WAY_ETP:
        return try_nearest(search, rule, way, &space->etp, gpus, &space->gpus);
    case PC_PLAN_WAY_CHUNKS:
        return try_nearest(search, rule, way, &space->chunks, parts, NULL);
    case PC_PLAN_WAY_MICROBATCH_SIZE:
        return try_nearest(search, rule, way, &space->microbatch_size,
                           pc_min(largest(&space->microbatch_size), largest(&space->global_batch)),
                           &space->global_batch);
    default:
        return try_1f1b(search, rule);
    }
}

/* ---- rules ---- */

pc_plan_rule pc_plan_log_blames(const pc_plan_log *log) {
    bool has_plans = log->broken_rule < log->points;
    pc_plan_rule blamed = 0;
    for (pc_plan_rule rule = 1; rule < PC_PLAN_RULES; rule++)
        if (has_plans ? log->broken[rule] > log->broken[blamed] : log->broken[rule] > 0) blamed = rule;
    return blamed;
}

/* The rule that comes `nth`: the blamed one first, then those that more points break. */
static pc_plan_rule nth_rule(const pc_plan_log *log, int nth) {
    pc_plan_rule blamed = pc_plan_log_blames(log);
    for (int rule = 0; nth > 0 && rule < PC_PLAN_RULES; rule++) {
        int before = 1;
        for (int i = 0; i < PC_PLAN_RULES; i++)
            before += i != (int)blamed &&
                      (log->broken[i] > log->broken[rule] || (i < rule && log->broken[i] == log->broken[rule]));
        if (rule != (int)blamed && before == nth) return (pc_plan_rule)rule;
    }
    return blamed;
}

/* What the check of the first point says that breaks the rule. */
static void find_why(remedy_search *search, pc_plan_rule rule, char why[PC_PLAN_WHY_SIZE]) {
    const plan_numbers *numbers = &search->numbers;
    pc_plan_rule broken;
    pc_error error = {0};
    if (rule < PC_PLAN_RULE_SCHEDULE) return; /* what these say is all there is to say */
    for (int64_t shape = 0; shape < numbers->shapes && search->tries < TRIES_MOST; shape++, search->tries++) {
        pc_plan_choice choice = plan_choice_of(numbers, shape * numbers->variants);
        if (!plan_check_rules(search->space, &choice, &broken) || broken != rule) continue;
        plan_check_words(search->space, &choice, &error);
        snprintf(why, PC_PLAN_WHY_SIZE, "%.*s", PC_PLAN_WHY_SIZE - 1, error.message);
        return;
    }
}

pc_code pc_plan_find_remedy(const pc_plan_space *space, const pc_plan_log *log, pc_plan_remedy *remedy,
                            pc_error *error) {
    static const pc_plan_way ways[PC_PLAN_RULES][WAYS_MOST] = {
        [PC_PLAN_RULE_GPUS] = {PC_PLAN_WAY_PP, PC_PLAN_WAY_TP, PC_PLAN_WAY_DP, PC_PLAN_WAY_CP},
        [PC_PLAN_RULE_INTERLEAVING] = {PC_PLAN_WAY_PP, PC_PLAN_WAY_CHUNKS, PC_PLAN_WAY_SCHEDULE},
        [PC_PLAN_RULE_LAYERS] = {PC_PLAN_WAY_LAYOUT, PC_PLAN_WAY_PP, PC_PLAN_WAY_CHUNKS},
        [PC_PLAN_RULE_EXPERTS] = {PC_PLAN_WAY_EP, PC_PLAN_WAY_ETP},
        [PC_PLAN_RULE_BATCH] = {PC_PLAN_WAY_MICROBATCH_SIZE},
        [PC_PLAN_RULE_SCHEDULE] = {PC_PLAN_WAY_CHUNKS, PC_PLAN_WAY_SCHEDULE},
        [PC_PLAN_RULE_TENSOR] = {PC_PLAN_WAY_TP, PC_PLAN_WAY_CP},
    };
    remedy_search x = {.space = space};
    pc_code code = plan_numbers_make(space, &x.numbers, error);
    if (code) return code;
    bool has_plans = log->broken_rule < log->points;
    for (int nth = 0; nth < (has_plans ? 1 : PC_PLAN_RULES) && x.found.points == 0; nth++) {
        pc_plan_rule rule = nth_rule(log, nth);
        for (int i = 0; i < WAYS_MOST && ways[rule][i] && x.found.points == 0; i++)
            if (!has_plans || ways[rule][i] == PC_PLAN_WAY_LAYOUT) try_way(&x, rule, ways[rule][i]);
    }
    /* Another batch is another training: only if nothing else helps. */
    if (!has_plans && x.found.points == 0) try_batch(&x, PC_PLAN_RULE_BATCH);
    *remedy = x.found;
    remedy->blamed = nth_rule(log, 0);
    x.tries = 0;
    if (!has_plans) find_why(&x, remedy->blamed, remedy->why);
    return PC_OK;
}
