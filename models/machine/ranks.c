#include "models/machine/ranks.h"

#include "engine/numbers.h"
#include "models/machine/shares.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- orders ---- */

static const char *const axis_names[PC_AXES] = {
    [PC_AXIS_CP] = "cp", [PC_AXIS_TP] = "tp", [PC_AXIS_PP] = "pp", [PC_AXIS_DP] = "dp"};

/* "tp-dp-pp" is three names of two letters and two dashes. */
enum { NAME_LENGTH = 2, STEP = NAME_LENGTH + 1, LONGEST = PC_AXES * STEP - 1, SHORTEST = LONGEST - STEP };

static void put_behind(pc_rank_order *order, int count, int at, pc_axis axis) {
    for (int i = count; i > at; i--) order->axis[i] = order->axis[i - 1];
    order->axis[at] = axis;
}

static bool parse_order(const char *text, pc_rank_order *order) {
    bool is_there[PC_AXES] = {false};
    size_t length = strlen(text);
    int count = length == LONGEST ? PC_AXES : PC_AXES - 1, of_tp = 0;
    if (length != LONGEST && length != SHORTEST) return false;
    for (int i = 0; i < count; i++) {
        const char *name = text + (ptrdiff_t)i * STEP;
        int axis = 0;
        while (axis < PC_AXES && strncmp(name, axis_names[axis], NAME_LENGTH) != 0) axis++;
        if (axis == PC_AXES || is_there[axis] || (i + 1 < count && name[NAME_LENGTH] != '-')) return false;
        is_there[axis] = true;
        order->axis[i] = (pc_axis)axis;
        if (axis == PC_AXIS_TP) of_tp = i;
    }
    if (count < PC_AXES && is_there[PC_AXIS_CP]) return false;
    if (count < PC_AXES) put_behind(order, count, of_tp + 1, PC_AXIS_CP);
    return true;
}

pc_code pc_rank_order_parse(const char *text, pc_rank_order *order, pc_error *error) {
    pc_rank_order parsed;
    if (!parse_order(text, &parsed))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "rank order: '%s'; expected tp, pp and dp, and cp or not, each once, the innermost first, "
                            "as in tp-dp-pp or tp-cp-dp-pp",
                            text);
    *order = parsed;
    return PC_OK;
}

void pc_rank_order_write(pc_rank_order order, char text[16]) {
    size_t length = 0;
    for (int i = 0; i < PC_AXES; i++) {
        bool is_usual = order.axis[i] == PC_AXIS_CP && i > 0 && order.axis[i - 1] == PC_AXIS_TP;
        if (is_usual) continue;
        memcpy(text + length, axis_names[order.axis[i]], NAME_LENGTH);
        text[length + NAME_LENGTH] = '-';
        length += STEP;
    }
    text[length - 1] = '\0';
}

/* "tp 5 x pp 5 x dp 1", with cp where there is one. */
static const char *write_counts(pc_rank_counts x, char text[64]) {
    char cp[24] = "";
    if (x.cp > 1) snprintf(cp, sizeof cp, " x cp %d", x.cp);
    snprintf(text, 64, "tp %d%s x pp %d x dp %d", x.tp, cp, x.pp, x.dp);
    return text;
}

pc_code pc_ranks_place(const pc_machine *machine, pc_rank_order order, pc_rank_counts counts, pc_ranks *ranks,
                       pc_error *error) {
    const int cp = counts.cp > 1 ? counts.cp : 1;
    pc_ranks placed = {
        .count = {[PC_AXIS_CP] = cp, [PC_AXIS_TP] = counts.tp, [PC_AXIS_PP] = counts.pp, [PC_AXIS_DP] = counts.dp}};
    int64_t gpus = 1, room = (int64_t)machine->nodes * machine->gpus_per_node;
    char text[64];
    if (counts.tp < 1 || counts.pp < 1 || counts.dp < 1)
        return pc_error_set(error, PC_ERROR_INPUT, "ranks: tp %d, pp %d, dp %d; expected one or more of each",
                            counts.tp, counts.pp, counts.dp);
    for (int i = 0; i < PC_AXES; i++) {
        placed.stride[order.axis[i]] = gpus;
        if (__builtin_mul_overflow(gpus, (int64_t)placed.count[order.axis[i]], &gpus))
            return pc_error_set(error, PC_ERROR_INPUT, "ranks: %s; expected fewer than 2^63 GPUs in all",
                                write_counts(counts, text));
    }
    if (room > 0 && gpus > room)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "ranks: %s are %" PRId64 " GPUs; expected at most the %" PRId64 " that %s has",
                            write_counts(counts, text), gpus, room, machine->name);
    *ranks = placed;
    return PC_OK;
}

/* cp away, and ep, which has its number, behind tp. */
static pc_rank_order order_of_experts(pc_rank_order order) {
    pc_rank_order made;
    int count = 0;
    for (int i = 0; i < PC_AXES; i++) {
        if (order.axis[i] == PC_AXIS_CP) continue;
        made.axis[count++] = order.axis[i];
        if (order.axis[i] == PC_AXIS_TP) made.axis[count++] = (pc_axis)PC_AXIS_EP;
    }
    return made;
}

pc_code pc_ranks_place_experts(const pc_ranks *ranks, pc_rank_order order, int etp, int ep, pc_ranks *experts,
                               pc_error *error) {
    const pc_rank_order own = order_of_experts(order);
    const int64_t of_stage = pc_ranks_gpus(ranks) / ranks->count[PC_AXIS_PP], wanted = (int64_t)etp * ep;
    if (of_stage % wanted)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "ep %d x etp %d with %" PRId64 " ranks in a stage; expected a divisor of tp x cp x dp", ep,
                            etp, of_stage);
    pc_ranks placed = {.count = {[PC_AXIS_EP] = ep,
                                 [PC_AXIS_TP] = etp,
                                 [PC_AXIS_PP] = ranks->count[PC_AXIS_PP],
                                 [PC_AXIS_DP] = (int32_t)(of_stage / wanted)}};
    int64_t gpus = 1;
    for (int i = 0; i < PC_AXES; i++) {
        placed.stride[own.axis[i]] = gpus;
        gpus *= placed.count[own.axis[i]];
    }
    if (ranks->count[PC_AXIS_PP] > 1 && placed.stride[PC_AXIS_PP] != ranks->stride[PC_AXIS_PP])
        return pc_error_set(error, PC_ERROR_INPUT,
                            "ep %d x etp %d in a rank order with pp before dp, whose stages are %" PRId64
                            " ranks in a row; expected as many, or pp as the last of the order",
                            ep, etp, ranks->stride[PC_AXIS_PP]);
    *experts = placed;
    return PC_OK;
}

/* ---- groups ---- */

/* The GPUs are cut into cells of one size (domains, leaves), and by an axis into blocks: a block is `count * stride`
 * GPUs in a row, which are `stride` groups, each a GPU of every `stride`. */
typedef struct grid {
    int64_t gpus, stride, block; /* of all, between ranks of a group, of a block */
    int64_t cell;
} grid;

/* How groups lie in cells. */
typedef struct spread {
    bool crosses;    /* some group has ranks in more than one cell */
    int64_t in_cell; /* the least ranks that such a group has in a cell */
    int64_t cells;   /* the most cells in which a group has ranks */
    int64_t leaving; /* the most such groups that have ranks in one cell: each of their rings leaves it once */
} spread;

static grid grid_of(const pc_ranks *ranks, pc_axis axis, int64_t cell) {
    return (grid){pc_ranks_gpus(ranks), ranks->stride[axis], ranks->stride[axis] * ranks->count[axis], cell};
}

/* Blocks after so many lie in cells of the size as the first ones do. */
static int64_t distinct_blocks(const grid *map, int64_t cell) {
    return pc_min(map->gpus / map->block, cell / pc_gcd(cell, map->block));
}

/* The groups that have ranks on both sides of GPU `gpu`: of those of its block, the ones that begin before it and end
 * behind it. */
static int64_t count_across(const grid *map, int64_t gpu) {
    int64_t before = gpu % map->block;
    return gpu >= map->gpus ? 0 : pc_min(map->stride, pc_min(before, map->block - before));
}

/* The groups that have ranks both in the cell and beyond it. */
static int64_t count_leaving(const grid *map, int64_t cell) {
    int64_t begin = cell * map->cell, end = begin + map->cell;
    bool is_covered =
        end < map->gpus && begin % map->block != 0 && end % map->block != 0 && begin / map->block == end / map->block;
    if (is_covered) return pc_min(map->stride, map->cell);
    return count_across(map, begin) + count_across(map, end);
}

/* Of the groups of a block of which a cell has `room` GPUs in a row, the least ranks that one has there, if any. */
static int64_t least_ranks(const grid *map, int64_t room) {
    return pc_max(1, room / map->stride);
}

/* The cells of the group that begins at `first`, where neighbours are less than a cell apart. */
static int64_t count_cells(const grid *map, int64_t first) {
    return (first + map->block - map->stride) / map->cell - first / map->cell + 1;
}

/* Of the groups of a block: from its first one on, the count grows where a group's last rank comes into a new cell. */
static int64_t most_cells(const grid *map, int64_t begin) {
    int64_t into = (begin + map->block - map->stride) % map->cell, grows_at = into == 0 ? 0 : map->cell - into;
    if (map->stride >= map->cell) return map->block / map->stride;
    int64_t cells = count_cells(map, begin);
    return grows_at < map->stride ? pc_max(cells, count_cells(map, begin + grows_at)) : cells;
}

static void add_block(const grid *map, int64_t begin, spread *found) {
    int64_t end = begin + map->block, first = begin / map->cell, last = (end - 1) / map->cell;
    if (first == last) return;
    int64_t in_cell =
        pc_min(least_ranks(map, (first + 1) * map->cell - begin), least_ranks(map, end - last * map->cell));
    if (last - first > 1) in_cell = pc_min(in_cell, least_ranks(map, map->cell));
    int64_t leaving =
        pc_max(count_leaving(map, first), pc_max(count_leaving(map, first + 1), count_leaving(map, last)));
    found->cells = pc_max(found->cells, most_cells(map, begin));
    found->in_cell = found->crosses ? pc_min(found->in_cell, in_cell) : in_cell;
    found->leaving = pc_max(found->leaving, leaving);
    found->crosses = true;
}

static spread find_spread(const grid *map) {
    spread found = {.in_cell = map->block / map->stride, .cells = 1};
    if (map->block == map->stride) return found;
    for (int64_t i = 0; i < distinct_blocks(map, map->cell); i++) add_block(map, i * map->block, &found);
    return found;
}

/* Of an aligned domain. */
static int64_t count_beside(const grid *map) {
    int64_t cell = pc_min(map->cell, map->gpus);
    int64_t groups = map->block >= cell ? pc_min(map->stride, cell) : pc_divide_up(cell, map->block) * map->stride;
    return groups - 1;
}

static pc_group group_in(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis) {
    grid domains = grid_of(ranks, axis, machine->domain_gpus);
    spread in_domains = find_spread(&domains);
    pc_group group = {.ranks = ranks->count[axis],
                      .in_domain = (int32_t)in_domains.in_cell,
                      .domains = (int32_t)in_domains.cells,
                      .in_leaf = ranks->count[axis],
                      .groups_beside = (int32_t)pc_min(count_beside(&domains), INT32_MAX)};
    if (!in_domains.crosses) return group;
    group.nic_bytes_per_s = pc_nic_share(machine);
    group.crosses_nics = group.in_domain > 1 && domains.stride >= pc_nic_group_gpus(machine);
    if (group.crosses_nics) group.nic_bytes_per_s *= pc_nic_crossing(machine);
    if (pc_leaf_gpus(machine) == 0) return group;
    grid leaves = grid_of(ranks, axis, pc_leaf_gpus(machine));
    spread in_leaves = find_spread(&leaves);
    group.in_leaf = (int32_t)in_leaves.in_cell;
    if (!in_leaves.crosses) return group;
    group.crosses_leaves = true;
    group.uplink_bytes_per_s = pc_leaf_rate(machine) / (double)pc_leaf_gpus(machine);
    /* A ring through a domain leaves by the NICs of all its ranks there. */
    double of_ring = pc_leaf_rate(machine) / (double)in_leaves.leaving / group.in_domain;
    if (of_ring < group.nic_bytes_per_s) group.nic_bytes_per_s = of_ring;
    return group;
}

pc_group pc_group_of(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis) {
    pc_machine seen;
    return group_in(pc_machine_of_job(machine, pc_ranks_gpus(ranks), &seen), ranks, axis);
}

/* Ranks of one axis with all that stands before and behind it. */
static pc_ranks one_axis(pc_axis axis, int64_t before, int64_t count, int64_t behind) {
    pc_ranks made = {.count = {1, 1, 1, 1}, .stride = {1, 1, 1, 1}};
    pc_axis other = axis == PC_AXIS_TP ? PC_AXIS_PP : PC_AXIS_TP, last = axis == PC_AXIS_DP ? PC_AXIS_CP : PC_AXIS_DP;
    made.count[other] = (int32_t)before;
    made.count[axis] = (int32_t)count;
    made.stride[axis] = before;
    made.count[last] = (int32_t)behind;
    made.stride[last] = before * count;
    return made;
}

void pc_ranks_split(const pc_ranks *ranks, pc_axis axis, int first, pc_ranks *inner, pc_ranks *outer) {
    int64_t before = ranks->stride[axis], count = ranks->count[axis], behind = pc_ranks_gpus(ranks) / (before * count);
    *inner = one_axis(axis, before, first, count / first * behind);
    *outer = one_axis(axis, before * first, count / first, behind);
}

/* ---- groups of two axes ---- */

bool pc_ranks_join(const pc_ranks *ranks, pc_axis axis, pc_axis other, pc_ranks *joined) {
    const int64_t *stride = ranks->stride;
    const int32_t *count = ranks->count;
    bool is_outer = stride[other] == stride[axis] * count[axis],
         is_inner = stride[axis] == stride[other] * count[other];
    if (!is_outer && !is_inner && count[axis] != 1 && count[other] != 1) return false;
    if (!joined) return true;
    *joined = *ranks;
    joined->stride[axis] = count[other] == 1  ? stride[axis]
                           : count[axis] == 1 ? stride[other]
                                              : pc_min(stride[axis], stride[other]);
    joined->count[axis] = count[axis] * count[other];
    joined->count[other] = 1;
    return true;
}

/* The least of two of which 0 is none. */
static double slower(double a, double b) {
    return a > 0.0 && (b <= 0.0 || a < b) ? a : b;
}

static pc_group multiply(const pc_group *a, const pc_group *b) {
    return (pc_group){.ranks = a->ranks * b->ranks,
                      .in_domain = a->in_domain * b->in_domain,
                      .domains = a->domains * b->domains,
                      .in_leaf = a->in_leaf * b->in_leaf,
                      .groups_beside = (a->groups_beside + 1) / (b->in_domain > 1 ? b->in_domain : 1) - 1,
                      .nic_bytes_per_s = slower(a->nic_bytes_per_s, b->nic_bytes_per_s),
                      .uplink_bytes_per_s = slower(a->uplink_bytes_per_s, b->uplink_bytes_per_s),
                      .crosses_leaves = a->crosses_leaves || b->crosses_leaves,
                      .crosses_nics = a->crosses_nics || b->crosses_nics};
}

pc_group pc_group_of_both(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis, pc_axis other) {
    pc_ranks joined;
    if (pc_ranks_join(ranks, axis, other, &joined)) return pc_group_of(machine, &joined, axis);
    pc_group of_axis = pc_group_of(machine, ranks, axis), of_other = pc_group_of(machine, ranks, other);
    pc_group both = multiply(&of_axis, &of_other);
    both.groups_beside = both.groups_beside < 0 ? 0 : both.groups_beside;
    return both;
}

/* ---- hops ---- */

/* The GPUs of a stage, of which each sends `distance` GPUs further. They are a piece of `stride` GPUs in every block.
 */
typedef struct senders {
    grid grid; /* of the pipeline's axis */
    int64_t stage, distance;
} senders;

static bool is_same_cell(int64_t a, int64_t b, int64_t cell) {
    return a / cell == b / cell;
}

/* A piece that a cell does not hold has a message out of it, for messages go at least a piece's length. */
static bool is_piece_inside(const senders *sending, int64_t begin, int64_t cell) {
    int64_t last = begin + sending->grid.stride - 1;
    return is_same_cell(begin, last, cell) && is_same_cell(begin, begin + sending->distance, cell) &&
           is_same_cell(begin, last + sending->distance, cell);
}

/* How many of `size` GPUs in a row are of the stage and send out of their domain. */
static int64_t count_nic_senders(const senders *sending, int64_t begin, int64_t size) {
    int64_t count = 0;
    for (int64_t gpu = begin; gpu < pc_min(begin + size, sending->grid.gpus); gpu++)
        count += gpu % sending->grid.block / sending->grid.stride == sending->stage &&
                 !is_same_cell(gpu, gpu + sending->distance, sending->grid.cell);
    return count;
}

/* How many of the GPUs from `begin` to before `end` are of the stage and send to GPUs that are not. */
static int64_t count_leaf_senders(const senders *sending, int64_t begin, int64_t end) {
    int64_t count = 0;
    for (int64_t block = begin / sending->grid.block * sending->grid.block; block < pc_min(end, sending->grid.gpus);
         block += sending->grid.block) {
        int64_t first = pc_max(begin, block + sending->stage * sending->grid.stride);
        int64_t behind = pc_min(end, block + (sending->stage + 1) * sending->grid.stride);
        if (first >= behind) continue;
        int64_t inside = pc_min(behind, end - sending->distance) - pc_max(first, begin - sending->distance);
        count += behind - first - pc_max(inside, 0);
    }
    return count;
}

typedef int64_t count_in_cell(const senders *sending, int64_t cell, int64_t size);

static int64_t count_in_nic_group(const senders *sending, int64_t cell, int64_t size) {
    return count_nic_senders(sending, cell * size, size);
}

static int64_t count_in_leaf(const senders *sending, int64_t cell, int64_t size) {
    return count_leaf_senders(sending, cell * size, (cell + 1) * size);
}

/* The most senders in a cell of `size` GPUs: the first two and the last two of each piece; those between are alike. */
static int64_t find_most(const senders *sending, count_in_cell *count, int64_t size, int64_t blocks) {
    int64_t most = 0;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t begin = i * sending->grid.block + sending->stage * sending->grid.stride,
                last = begin + sending->grid.stride - 1;
        most = pc_max(most, count(sending, begin / size, size));
        most = pc_max(most, count(sending, pc_min(begin / size + 1, last / size), size));
        most = pc_max(most, count(sending, pc_max(last / size - 1, begin / size), size));
        most = pc_max(most, count(sending, last / size, size));
    }
    return most;
}

/* Those that send, and those that receive: they would send the other way. */
static int64_t find_most_of_both(const senders *sending, count_in_cell *count, int64_t size, int64_t blocks) {
    senders back = {sending->grid, sending->stage + sending->distance / sending->grid.stride, -sending->distance};
    return pc_max(find_most(sending, count, size, blocks), find_most(&back, count, size, blocks));
}

static pc_hop hop_in(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis, int from, int to) {
    senders x = {grid_of(ranks, axis, machine->domain_gpus), from, (int64_t)(to - from) * ranks->stride[axis]};
    int64_t leaf = pc_leaf_gpus(machine), node = pc_max(machine->domain_gpus, machine->gpus_per_node);
    int64_t blocks = distinct_blocks(&x.grid, leaf > 0 ? leaf : node);
    pc_hop hop = {true, false, pc_domain_rate(machine), machine->domain.latency_s};
    for (int64_t i = 0; i < blocks && from != to && hop.in_domain; i++)
        hop.in_domain = is_piece_inside(&x, i * x.grid.block + from * x.grid.stride, x.grid.cell);
    if (hop.in_domain) return hop;
    int64_t nic_senders = find_most_of_both(&x, count_in_nic_group, pc_nic_group_gpus(machine), blocks);
    int64_t leaf_senders = leaf > 0 ? find_most_of_both(&x, count_in_leaf, leaf, blocks) : 0;
    hop.bytes_per_s = pc_nic_group_rate(machine) / (double)nic_senders;
    hop.latency_s = machine->network.latency_s;
    if (leaf_senders == 0) return hop;
    hop.crosses_leaves = true;
    hop.latency_s += machine->switch_latency_s;
    double of_leaf = pc_leaf_rate(machine) / (double)leaf_senders;
    if (of_leaf < hop.bytes_per_s) hop.bytes_per_s = of_leaf;
    return hop;
}

pc_hop pc_hop_between(const pc_machine *machine, const pc_ranks *ranks, int from, int to) {
    pc_machine seen;
    return hop_in(pc_machine_of_job(machine, pc_ranks_gpus(ranks), &seen), ranks, PC_AXIS_PP, from, to);
}

static bool is_slower(const pc_hop *a, const pc_hop *b) {
    return a->bytes_per_s < b->bytes_per_s || (a->bytes_per_s == b->bytes_per_s && a->latency_s > b->latency_s);
}

pc_hop pc_hop_round(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis) {
    pc_machine seen;
    const pc_machine *of_job = pc_machine_of_job(machine, pc_ranks_gpus(ranks), &seen);
    int count = ranks->count[axis];
    pc_hop worst = hop_in(of_job, ranks, axis, count - 1, 0);
    for (int i = 0; i + 1 < count; i++) {
        pc_hop hop = hop_in(of_job, ranks, axis, i, i + 1);
        if (is_slower(&hop, &worst)) worst = hop;
    }
    return worst;
}

pc_group pc_group_of_hop(const pc_hop *hop) {
    return (pc_group){.ranks = 2,
                      .in_domain = hop->in_domain ? 2 : 1,
                      .domains = hop->in_domain ? 1 : 2,
                      .in_leaf = hop->crosses_leaves ? 1 : 2,
                      .nic_bytes_per_s = hop->in_domain ? 0 : hop->bytes_per_s,
                      .uplink_bytes_per_s = hop->crosses_leaves ? hop->bytes_per_s : 0,
                      .crosses_leaves = hop->crosses_leaves};
}
