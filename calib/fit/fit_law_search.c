/* Which sizes go by which protocol: parameters for given sizes, sizes for given parameters, in turn, from several
 * starts. */
#include "calib/fit/fit_law.h"
#include "calib/fit/fit_terms.h"

#include "engine/alloc.h"

#include <math.h>
#include <string.h>

enum { P = PC_LAW_PROTOCOLS, SWITCHES = PC_LAW_SWITCHES };

/* Sizes where protocols may change, 4 an octave, from 512 bytes to 256 MiB. */
enum { GRID_FIRST = 36, GRID_COUNT = 77, POWERS = 3 };
static const double powers[POWERS] = {0.0, 0.5, 1.0};

/* A squared error of log(seconds) counts at most so much: a jump elsewhere is one outlier. */
static const double loss_most = 0.25;
/* For so much less loss the sizes of one number of ranks leave the common law. */
static const double loss_to_leave = 0.03;
/* Laws as good as the best. */
static const double loss_alike = 1e-3;

typedef struct search {
    const pc_law_site *sites;
    int64_t count;
    int groups;                            /* of as many ranks */
    int64_t begin[PC_LAW_RANKS + 1];       /* of the sites */
    int64_t place[PC_LAW_RANKS][SWITCHES]; /* the first site of the next protocol */
    bool *is_in;                           /* of count */
    double *loss;                          /* sums up to each place: of protocol p and place i of group g at
                                            * p * (count + groups) + i + g */
    pc_law law;
    double total;
    double *term, *seconds; /* of the sites */
} search;

static bool has_groups(search *s) {
    for (int64_t i = 0; i < s->count; i++) {
        bool is_next = i == 0 || s->sites[i].ranks > s->sites[i - 1].ranks;
        if (is_next && s->groups == PC_LAW_RANKS) return false;
        if (is_next) {
            s->law.rank[s->groups] = s->sites[i].ranks;
            s->begin[s->groups++] = i;
        }
    }
    s->begin[s->groups] = s->count;
    s->law.ranks = s->groups;
    return true;
}

/* The first site of the group that is larger. */
static int64_t place_of(const search *s, int group, double bytes) {
    int64_t low = s->begin[group], high = s->begin[group + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (s->sites[middle].bytes > bytes)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int64_t first_of(const search *s, int group, int protocol) {
    return protocol == 0 ? s->begin[group] : s->place[group][protocol - 1];
}

static int64_t last_of(const search *s, int group, int protocol) {
    return protocol + 1 == P ? s->begin[group + 1] : s->place[group][protocol];
}

static pc_terms terms_of(const search *s) {
    return (pc_terms){PC_LAW_TERMS, s->count, s->term, s->seconds, s->is_in};
}

static int64_t choose_sites(const search *s, int protocol) {
    int64_t chosen = 0;
    memset(s->is_in, 0, (size_t)s->count * sizeof *s->is_in);
    for (int g = 0; g < s->groups; g++)
        for (int64_t i = first_of(s, g, protocol); i < last_of(s, g, protocol); i++, chosen++) s->is_in[i] = true;
    return chosen;
}

/* A protocol that too few sites speak of stays as it was; false if it never was anything. */
static bool fit_protocols(search *s) {
    pc_terms terms = terms_of(s);
    for (int p = 0; p < P; p++) {
        double *term = s->law.term[p];
        if (choose_sites(s, p) >= PC_LAW_TERMS)
            pc_terms_fit(&terms, term, NULL);
        else if (term[0] + term[1] + term[2] + term[3] <= 0.0)
            return false;
    }
    return true;
}

static double *losses(const search *s, int protocol, int group) {
    return s->loss + protocol * (s->count + s->groups) + group;
}

static void sum_losses(const search *s) {
    for (int p = 0; p < P; p++)
        for (int g = 0; g < s->groups; g++) {
            double *sum = losses(s, p, g);
            sum[s->begin[g]] = 0.0;
            for (int64_t i = s->begin[g]; i < s->begin[g + 1]; i++) {
                const double *term = s->term + PC_LAW_TERMS * i;
                double error = log(pc_law_sum(s->law.term[p], term) / s->sites[i].seconds), squared = error * error;
                sum[i + 1] = sum[i] + (squared < loss_most ? squared : loss_most);
            }
        }
}

/* ---- where protocol z gives way to the next ---- */

/* What it costs that group g changes there, but for what does not depend on it. */
static double cost_at(const search *s, int z, int g, int64_t place) {
    return losses(s, z, g)[place] - losses(s, z + 1, g)[place];
}

static int64_t floor_of(const search *s, int z, int g) {
    return z == 0 ? s->begin[g] : s->place[g][z - 1];
}

static double change_by_law(double at, double power, double ranks) {
    return at * pow(ranks / PC_LAW_RANKS_REFERENCE, power);
}

static int64_t place_by_law(const search *s, int z, int g, double at, double power) {
    int64_t place = place_of(s, g, change_by_law(at, power, s->law.rank[g])), least = floor_of(s, z, g);
    return place > least ? place : least;
}

static double grid_size(int k) {
    return exp2(0.25 * (GRID_FIRST + k));
}

/* The power that has the most sizes among the laws that are as good as the best, the ring's if several have; of its
 * sizes the middle one. */
static void choose_law(search *s, int z) {
    static const double none = HUGE_VAL;
    double cost[POWERS][GRID_COUNT], least = none;
    int best = 0, most = 0, sizes[GRID_COUNT] = {0};
    for (int q = 0; q < POWERS; q++)
        for (int k = 0; k < GRID_COUNT; k++) {
            cost[q][k] = 0.0;
            for (int g = 0; g < s->groups; g++)
                cost[q][k] += cost_at(s, z, g, place_by_law(s, z, g, grid_size(k), powers[q]));
            if (cost[q][k] < least) least = cost[q][k];
        }
    for (int q = 0; q < POWERS; q++) {
        int alike = 0;
        for (int k = 0; k < GRID_COUNT; k++) alike += cost[q][k] <= least + loss_alike;
        if (alike >= most) best = q, most = alike;
    }
    for (int k = 0, at = 0; k < GRID_COUNT; k++)
        if (cost[best][k] <= least + loss_alike) sizes[at++] = k;
    s->law.at[z] = grid_size(sizes[most / 2]);
    s->law.power[z] = powers[best];
}

static int64_t best_place(const search *s, int z, int g) {
    int64_t best = floor_of(s, z, g);
    for (int64_t i = best; i <= s->begin[g + 1]; i++)
        if (cost_at(s, z, g, i) < cost_at(s, z, g, best)) best = i;
    return best;
}

static void place_switch(search *s, int z) {
    choose_law(s, z);
    for (int g = 0; g < s->groups; g++) {
        int64_t place = place_by_law(s, z, g, s->law.at[z], s->law.power[z]), better = best_place(s, z, g);
        if (cost_at(s, z, g, better) < cost_at(s, z, g, place) - loss_to_leave) place = better;
        s->place[g][z] = place;
    }
}

static double total_loss(const search *s) {
    double total = 0.0;
    for (int g = 0; g < s->groups; g++)
        for (int p = 0; p < P; p++) {
            const double *sum = losses(s, p, g);
            total += sum[last_of(s, g, p)] - sum[first_of(s, g, p)];
        }
    return total;
}

/* ---- all of it ---- */

static bool search_from(search *s, const double start[SWITCHES]) {
    enum { ROUNDS = 12 };
    double before = HUGE_VAL;
    memset(s->law.term, 0, sizeof s->law.term);
    for (int g = 0; g < s->groups; g++)
        for (int z = 0; z < SWITCHES; z++) s->place[g][z] = place_of(s, g, start[z]);
    for (int round = 0; round < ROUNDS; round++) {
        if (!fit_protocols(s)) return false;
        sum_losses(s);
        for (int z = 0; z < SWITCHES; z++) place_switch(s, z);
        s->total = total_loss(s);
        if (fabs(before - s->total) < 1e-9) break;
        before = s->total;
    }
    return true;
}

/* One protocol for all, where there is no room for three. */
static void search_single(search *s) {
    for (int64_t i = 0; i < s->count; i++) s->is_in[i] = true;
    pc_terms terms = terms_of(s);
    for (int p = 0; p < P; p++) pc_terms_fit(&terms, s->law.term[p], NULL);
    for (int z = 0; z < SWITCHES; z++) {
        s->law.at[z] = grid_size(GRID_COUNT - 1);
        s->law.power[z] = 0.0;
        for (int g = 0; g < s->groups; g++) s->place[g][z] = s->begin[g + 1];
    }
    sum_losses(s);
    s->total = total_loss(s);
}

/* Between the sizes around it: where the law says, or in their middle. */
static double change_of(const search *s, int z, int g) {
    int64_t place = s->place[g][z];
    double low = place > s->begin[g] ? s->sites[place - 1].bytes : 0.0;
    double high = place < s->begin[g + 1] ? s->sites[place].bytes : HUGE_VAL;
    double by_law = change_by_law(s->law.at[z], s->law.power[z], s->law.rank[g]);
    if (by_law >= low && by_law < high) return by_law;
    if (low == 0.0) return high / sqrt(2.0);
    return high < HUGE_VAL ? sqrt(low * high) : low * sqrt(2.0);
}

static void keep_changes(search *s) {
    for (int g = 0; g < s->groups; g++)
        for (int z = 0; z < SWITCHES; z++) {
            double change = change_of(s, z, g), before = z > 0 ? s->law.change[g][z - 1] : 0.0;
            s->law.change[g][z] = change > before ? change : before;
        }
}

static void take_terms(search *s) {
    for (int64_t i = 0; i < s->count; i++) {
        pc_law_terms(s->sites[i].bytes, s->sites[i].ranks, s->term + PC_LAW_TERMS * i);
        s->seconds[i] = s->sites[i].seconds;
    }
}

static void search_all(search *s, pc_law *law) {
    static const double first[] = {0x1p16, 0x1p18, 0x1p20}, second[] = {1.5 * 0x1p20, 6.0 * 0x1p20, 24.0 * 0x1p20};
    take_terms(s);
    search_single(s);
    keep_changes(s);
    *law = s->law;
    double best = s->total;
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            const double start[SWITCHES] = {first[a], second[b]};
            if (!search_from(s, start) || !(s->total < best)) continue;
            keep_changes(s);
            *law = s->law;
            best = s->total;
        }
}

pc_code pc_law_search(const pc_law_site *sites, int64_t count, pc_law *law, pc_error *error) {
    search s = {.sites = sites, .count = count};
    if (!has_groups(&s))
        return pc_error_set(error, PC_ERROR_INPUT, "more than %d numbers of ranks; expected at most so many",
                            PC_LAW_RANKS);
    s.is_in = pc_alloc((size_t)count, sizeof *s.is_in);
    s.loss = pc_alloc(P * (size_t)(count + s.groups), sizeof *s.loss);
    s.term = pc_alloc(PC_LAW_TERMS * (size_t)count, sizeof *s.term);
    s.seconds = pc_alloc((size_t)count, sizeof *s.seconds);
    bool is_made = s.is_in && s.loss && s.term && s.seconds;
    if (is_made) search_all(&s, law);
    pc_free(s.term);
    pc_free(s.seconds);
    pc_free(s.is_in);
    pc_free(s.loss);
    return is_made ? PC_OK : pc_error_no_memory(error);
}
