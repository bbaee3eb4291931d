/* Runs that differ in one thing, and groups of runs that differ in how one model was cut. */
#include "results/score/score_private.h"

#include "engine/alloc.h"
#include "engine/hash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- things ---- */

typedef enum thing {
    THING_MODEL,
    THING_SYSTEM,
    THING_SOFTWARE, /* with its release */
    THING_GPUS,     /* the batch being the same */
    THING_SCALE,    /* GPUs, and the batch in proportion */
    THING_BATCH,
    THING_MICROBATCH,
    THING_SEQ,
    THING_TP,
    THING_PP,
    THING_VP,
    THING_ZERO,
    THING_RECOMPUTE,
    THING_SCHEDULE,
    THING_OWN,     /* what a row sets by itself */
    THING_VARIANT, /* what it says in words */
    THINGS
} thing;

static const char *const names[] = {[THING_MODEL] = "model",
                                    [THING_SYSTEM] = "system",
                                    [THING_SOFTWARE] = "software",
                                    [THING_GPUS] = "gpus",
                                    [THING_SCALE] = "gpus and gbs",
                                    [THING_BATCH] = "gbs",
                                    [THING_MICROBATCH] = "mbs",
                                    [THING_SEQ] = "seq",
                                    [THING_TP] = "tp",
                                    [THING_PP] = "pp",
                                    [THING_VP] = "vp",
                                    [THING_ZERO] = "zero",
                                    [THING_RECOMPUTE] = "recompute",
                                    [THING_SCHEDULE] = "schedule",
                                    [THING_OWN] = "setting.*",
                                    [THING_VARIANT] = "variant"};

static void add_text(pc_hash *hash, const char *text) {
    pc_hash_add_bytes(hash, text, strlen(text) + 1);
}

static void add_number(pc_hash *hash, double number) {
    uint64_t word;
    memcpy(&word, &number, sizeof word);
    pc_hash_add(hash, word);
}

/* Interleaving is said by the number of chunks. */
static const char *schedule_of(const pc_measured_run *run) {
    return strcmp(run->schedule, "1f1b-interleaved") == 0 ? "1f1b" : run->schedule;
}

static double number_of(const pc_measured_run *run, thing which) {
    switch (which) {
    case THING_GPUS:
    case THING_SCALE:
        return (double)run->gpus;
    case THING_BATCH:
        return (double)run->global_batch;
    case THING_MICROBATCH:
        return (double)run->microbatch_size;
    case THING_SEQ:
        return (double)run->seq_len;
    case THING_TP:
        return (double)run->tp;
    case THING_PP:
        return (double)run->pp;
    case THING_VP:
        return run->chunks > 1 ? (double)run->chunks : 1.0;
    default:
        return (double)run->zero;
    }
}

static bool is_number(thing which) {
    return which >= THING_GPUS && which <= THING_ZERO;
}

static void add_own(const pc_measured *m, int64_t row, pc_hash *hash) {
    for (int i = 0; i < m->column_count; i++)
        if (strncasecmp(m->column[i], "setting.", 8) == 0) add_text(hash, m->cell[row * m->column_count + i]);
}

static void add_thing(const pc_score *score, const pc_score_row *row, thing which, pc_hash *hash) {
    const pc_measured *m = score->measured;
    const pc_measured_run *run = &row->run;
    if (is_number(which)) add_number(hash, number_of(run, which));
    if (which == THING_MODEL) add_text(hash, run->model);
    if (which == THING_MODEL) add_number(hash, (double)run->layers);
    if (which == THING_MODEL) add_text(hash, run->precision);
    if (which == THING_SYSTEM) add_text(hash, pc_measured_cell(m, row->row, PC_MEASURED_SYSTEM));
    if (which == THING_SOFTWARE) add_text(hash, pc_measured_cell(m, row->row, PC_MEASURED_FRAMEWORK));
    if (which == THING_SOFTWARE) add_text(hash, pc_measured_cell(m, row->row, PC_MEASURED_RELEASE));
    if (which == THING_RECOMPUTE) add_text(hash, run->recompute);
    if (which == THING_SCHEDULE) add_text(hash, schedule_of(run));
    if (which == THING_VARIANT) add_text(hash, pc_measured_cell(m, row->row, PC_MEASURED_VARIANT));
    if (which == THING_OWN) add_own(m, row->row, hash);
}

static pc_hash hash_of(const pc_score *score, const pc_score_row *row, const bool has[THINGS]) {
    pc_hash hash = {0, 0};
    for (thing t = 0; t < THINGS; t++)
        if (has[t]) add_thing(score, row, t, &hash);
    return hash;
}

/* ---- pairs ---- */

/* A row under all but one thing, and that thing: its number, or a hash of it. */
typedef struct place {
    pc_hash others;
    double value;
    int64_t row;
} place;

static int compare_places(const void *left, const void *right) {
    const place *a = left, *b = right;
    int order = memcmp(&a->others, &b->others, sizeof a->others);
    if (order == 0) order = (a->value > b->value) - (a->value < b->value);
    return order ? order : (a->row > b->row) - (a->row < b->row);
}

/* Texts have no order of their own: as their first rows have it. */
static double value_of(const pc_score *score, const pc_score_row *row, thing which) {
    if (is_number(which)) return number_of(&row->run, which);
    bool has[THINGS] = {false};
    has[which] = true;
    return (double)(hash_of(score, row, has).high >> 11);
}

static place place_of(const pc_score *score, int64_t index, thing which) {
    const pc_score_row *row = &score->rows[index];
    bool has[THINGS];
    for (thing t = 0; t < THINGS; t++) has[t] = t != which && t != THING_SCALE;
    if (which == THING_SCALE) has[THING_GPUS] = has[THING_BATCH] = false;
    place made = {hash_of(score, row, has), value_of(score, row, which), index};
    if (which == THING_SCALE) add_number(&made.others, (double)row->run.global_batch / (double)row->run.gpus);
    return made;
}

static void take_pair(const pc_score *score, const pc_score_row *a, const pc_score_row *b, pc_score_pair *pair) {
    double measured = b->run.step_s / a->run.step_s, forecast = b->forecast_s / a->forecast_s;
    double error = forecast / measured - 1.0;
    bool is_told = fabs(measured - 1.0) > 0.02;
    pair->pairs++;
    pair->told += is_told;
    pair->right += is_told && (measured > 1.0) == (forecast > 1.0) && forecast != 1.0;
    pair->mean += fabs(error);
    if (fabs(error) <= fabs(pair->worst)) return;
    pair->worst = error;
    pair->worst_first_line = score->measured->line[a->row];
    pair->worst_second_line = score->measured->line[b->row];
}

static pc_score_pair pair_thing(const pc_score *score, thing which, place *list) {
    int64_t count = 0;
    pc_score_pair pair = {.worst_first_line = -1, .worst_second_line = -1};
    snprintf(pair.thing, sizeof pair.thing, "%s", names[which]);
    for (int64_t i = 0; i < score->count; i++)
        if (isfinite(score->rows[i].error)) list[count++] = place_of(score, i, which);
    if (count > 0) qsort(list, (size_t)count, sizeof *list, compare_places);
    for (int64_t i = 1; i < count; i++) {
        bool are_alike = pc_hash_equal(list[i].others, list[i - 1].others);
        if (are_alike && list[i].value != list[i - 1].value)
            take_pair(score, &score->rows[list[i - 1].row], &score->rows[list[i].row], &pair);
    }
    pair.mean = pair.pairs > 0 ? pair.mean / (double)pair.pairs : NAN;
    return pair;
}

pc_code pc_score_make_pairs(pc_score *score, pc_error *error) {
    place *list = pc_alloc((size_t)score->count, sizeof *list);
    score->pairs = pc_alloc(THINGS, sizeof *score->pairs);
    pc_code code = list && score->pairs ? PC_OK : pc_error_no_memory(error);
    for (thing t = 0; t < THINGS && !code; t++) {
        pc_score_pair pair = pair_thing(score, t, list);
        if (pair.pairs > 0) score->pairs[score->pair_count++] = pair;
    }
    pc_free(list);
    return code;
}

/* ---- ranks ---- */

typedef struct ranked {
    double value;
    int64_t index;
} ranked;

static int compare_ranked(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    int order = (a->value > b->value) - (a->value < b->value);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* Ranks from 0; of ties the mean of theirs. */
static void rank(const double *values, int64_t count, ranked *list, double *ranks) {
    for (int64_t i = 0; i < count; i++) list[i] = (ranked){values[i], i};
    qsort(list, (size_t)count, sizeof *list, compare_ranked);
    for (int64_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && list[next].value == list[i].value;) next++;
        for (int64_t k = i; k < next; k++) ranks[list[k].index] = 0.5 * (double)(i + next - 1);
    }
}

double pc_score_rank_correlation(const double *a, const double *b, int64_t count, double *room) {
    _Static_assert(sizeof(ranked) == 2 * sizeof(double), "room is for 4 * count numbers");
    double *ranks_a = room, *ranks_b = room + count, mean = 0.5 * (double)(count - 1), both = 0.0, of_a = 0.0,
           of_b = 0.0;
    ranked *list = (ranked *)(room + 2 * count);
    if (count < 3) return NAN;
    rank(a, count, list, ranks_a);
    rank(b, count, list, ranks_b);
    for (int64_t i = 0; i < count; i++) {
        both += (ranks_a[i] - mean) * (ranks_b[i] - mean);
        of_a += (ranks_a[i] - mean) * (ranks_a[i] - mean);
        of_b += (ranks_b[i] - mean) * (ranks_b[i] - mean);
    }
    return of_a > 0.0 && of_b > 0.0 ? both / sqrt(of_a * of_b) : NAN;
}

/* ---- groups ---- */

/* A row under its group and, within that, its configuration. */
typedef struct member {
    pc_hash group, configuration;
    int64_t row;
} member;

static int compare_members(const void *left, const void *right) {
    const member *a = left, *b = right;
    int order = memcmp(&a->group, &b->group, sizeof a->group);
    if (order == 0) order = memcmp(&a->configuration, &b->configuration, sizeof a->configuration);
    return order ? order : (a->row > b->row) - (a->row < b->row);
}

static member member_of(const pc_score *score, int64_t index) {
    bool of_group[THINGS] = {false}, of_configuration[THINGS];
    static const thing alike[] = {THING_MODEL, THING_SYSTEM, THING_SOFTWARE, THING_GPUS, THING_BATCH, THING_SEQ};
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) of_group[alike[i]] = true;
    for (thing t = 0; t < THINGS; t++) of_configuration[t] = !of_group[t];
    of_configuration[THING_VARIANT] = of_configuration[THING_SCALE] = false;
    const pc_score_row *row = &score->rows[index];
    return (member){hash_of(score, row, of_group), hash_of(score, row, of_configuration), index};
}

/* Of one group's configurations, their times: forecast, and the mean of what was measured. */
typedef struct times {
    double *measured, *forecast;
    int64_t *line; /* of the first row */
    double *room;
    int64_t count;
} times;

static void take_configuration(const pc_score *score, const member *list, int64_t count, times *t) {
    double measured = 0.0;
    for (int64_t i = 0; i < count; i++) measured += score->rows[list[i].row].run.step_s;
    t->measured[t->count] = measured / (double)count;
    t->forecast[t->count] = score->rows[list[0].row].forecast_s;
    t->line[t->count++] = score->measured->line[score->rows[list[0].row].row];
}

static int64_t least_of(const double *values, int64_t count) {
    int64_t least = 0;
    for (int64_t i = 1; i < count; i++)
        if (values[i] < values[least]) least = i;
    return least;
}

static pc_score_group group_of(const pc_score *score, const member *list, int64_t count, times *t) {
    const pc_measured_run *run = &score->rows[list[0].row].run;
    t->count = 0;
    for (int64_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && pc_hash_equal(list[next].configuration, list[i].configuration);) next++;
        take_configuration(score, list + i, next - i, t);
    }
    int64_t best = least_of(t->measured, t->count), chosen = least_of(t->forecast, t->count);
    pc_score_group group = {.gpus = run->gpus,
                            .global_batch = run->global_batch,
                            .seq_len = run->seq_len,
                            .configurations = t->count,
                            .rank_correlation = pc_score_rank_correlation(t->measured, t->forecast, t->count, t->room),
                            .regret = t->measured[chosen] / t->measured[best] - 1.0,
                            .best_line = t->line[best],
                            .chosen_line = t->line[chosen]};
    snprintf(group.model, sizeof group.model, "%.*s", PC_SCORE_LABEL_SIZE - 1, run->model);
    snprintf(group.machine, sizeof group.machine, "%.*s", PC_SCORE_LABEL_SIZE - 1, run->machine);
    snprintf(group.precision, sizeof group.precision, "%s", run->precision);
    return group;
}

static int compare_groups(const void *left, const void *right) {
    const pc_score_group *a = left, *b = right;
    int order = (a->regret < b->regret) - (a->regret > b->regret);
    return order ? order : (a->best_line > b->best_line) - (a->best_line < b->best_line);
}

static pc_code find_groups(pc_score *score, const member *list, int64_t count, times *t, pc_error *error) {
    for (int64_t i = 0, next; i < count; i = next) {
        for (next = i; next < count && pc_hash_equal(list[next].group, list[i].group);) next++;
        pc_score_group group = group_of(score, list + i, next - i, t);
        if (group.configurations < 2) continue;
        pc_score_group *all = pc_realloc(score->groups, (size_t)score->group_count + 1, sizeof *all);
        if (!all) return pc_error_no_memory(error);
        score->groups = all;
        all[score->group_count++] = group;
    }
    if (score->group_count > 0) qsort(score->groups, (size_t)score->group_count, sizeof *score->groups, compare_groups);
    return PC_OK;
}

pc_code pc_score_make_groups(pc_score *score, pc_error *error) {
    size_t most = (size_t)score->count;
    member *list = pc_alloc(most, sizeof *list);
    times t = {pc_alloc(most, sizeof(double)), pc_alloc(most, sizeof(double)), pc_alloc(most, sizeof(int64_t)),
               pc_alloc(most, 4 * sizeof(double)), 0};
    pc_code code = list && t.measured && t.forecast && t.line && t.room ? PC_OK : pc_error_no_memory(error);
    int64_t count = 0;
    for (int64_t i = 0; i < score->count && !code; i++)
        if (isfinite(score->rows[i].error)) list[count++] = member_of(score, i);
    if (count > 0) qsort(list, (size_t)count, sizeof *list, compare_members);
    if (!code) code = find_groups(score, list, count, &t, error);
    pc_free(list);
    pc_free(t.measured);
    pc_free(t.forecast);
    pc_free(t.line);
    pc_free(t.room);
    return code;
}
