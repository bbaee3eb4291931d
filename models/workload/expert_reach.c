#include "models/workload/expert_reach.h"

#include <math.h>
#include <stdbool.h>

int pc_routing_is_limited(const pc_routing *routing) {
    return routing->group_topk > 0 && routing->group_topk < routing->groups;
}

/* The chance that none of `here` of `experts` is among `topk` that are chosen. */
static double missed(double experts, double here, double topk) {
    static const double most = 4096.0; /* choices, one by one; nobody has as many, but a damaged table may */
    double chance = 1.0, others = experts - here;
    if (others <= topk - 1.0) return here > 0.0 ? 0.0 : 1.0;
    for (double chosen = 0.0; chosen < topk && chosen < most; chosen += 1.0)
        chance *= (others - chosen) / (experts - chosen);
    double middle = 0.5 * (most + topk); /* of those behind: as if all were chosen in their middle */
    if (topk > most) chance *= pow((others - middle) / (experts - middle), topk - most);
    return chance;
}

/* n over k; of at most PC_ROUTING_GROUPS_MAX, whose greatest is below 10^153. */
static double choose(int n, int k) {
    double ways = 1.0;
    if (k < 0 || k > n) return 0.0;
    for (int i = 0; i < k; i++) ways *= (double)(n - i) / (i + 1);
    return ways;
}

/* What a cell has of the groups: all of `whole` of them, and parts of one or two more; 0: no such part. */
typedef struct pieces {
    int whole;
    double first, last; /* of a group */
} pieces;

/* Rounding may leave a sliver of a group where there is none. */
static double without_sliver(double part) {
    return part < 1e-9 ? 0.0 : part;
}

static pieces pieces_of(double from, double to) {
    double begin = ceil(from - 1e-9), end = floor(to + 1e-9);
    if (begin > end) return (pieces){0, to - from, 0.0};
    return (pieces){(int)(end - begin), without_sliver(begin - from), without_sliver(to - end)};
}

static bool is_same(const pieces *a, const pieces *b) {
    return a->whole == b->whole && a->first == b->first && a->last == b->last;
}

/* The chance that a token goes to the cell: over which of its parts, and how many whole groups, are chosen. */
static double chance_of(const pc_routing *routing, const pieces *cell) {
    int has_first = cell->first > 0.0 ? 1 : 0, has_last = cell->last > 0.0 ? 1 : 0, ends = has_first + has_last,
        others = routing->groups - cell->whole - ends;
    double in_group = routing->experts / routing->groups, open = in_group * routing->group_topk, sum = 0.0;
    for (int first = 0; first <= has_first; first++)
        for (int last = 0; last <= has_last; last++)
            for (int whole = 0; whole <= cell->whole; whole++) {
                double ways = choose(cell->whole, whole) * choose(others, routing->group_topk - first - last - whole);
                double here = in_group * (first * cell->first + last * cell->last + whole);
                if (ways > 0.0) sum += ways * (1.0 - missed(open, here, routing->topk));
            }
    return sum / choose(routing->groups, routing->group_topk);
}

double pc_expert_reached(const pc_routing *routing, double cells) {
    if (!pc_routing_is_limited(routing))
        return cells * (1.0 - missed(routing->experts, routing->experts / cells, routing->topk));
    double groups_a_cell = routing->groups / cells, chance = 0.0, sum = 0.0;
    pieces last = {-1, 0.0, 0.0};
    for (double i = 0.0; i < cells; i += 1.0) {
        pieces cell = pieces_of(i * groups_a_cell, (i + 1.0) * groups_a_cell);
        if (!is_same(&cell, &last)) chance = chance_of(routing, &cell); /* mostly all are alike */
        last = cell;
        sum += chance;
    }
    return sum;
}
