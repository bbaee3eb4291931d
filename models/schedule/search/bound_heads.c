#include "models/schedule/search/bound_heads.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/search/bound_machine.h"

enum { ROWS = 3, TYPES = PC_HEADS_TYPES_MAX, CHUNKS = PC_HEADS_CHUNKS_MAX }; /* a row: F, B (or BW), W of all chunks */

/* What is always so for the passes of a cell. */
typedef struct cell_rule {
    uint32_t after; /* the types of its device that come before it in the same microbatch; bit by bit */
    int32_t latest; /* the last of them that is no W, if there is one; PC_INSTANCE_NONE where nothing comes before */
    bool is_limited;
    int64_t held;            /* what a microbatch holds once this pass has taken its memory */
    int64_t held_of[CHUNKS]; /* of each chunk */
    int32_t lag[TYPES];      /* pass j-lag of a type must come before pass j of this one, or the device stands still; or
                              * PC_INSTANCE_NONE */
} cell_rule;

/* What passes of a device give back. */
typedef struct device_rule {
    int64_t all_of[CHUNKS];                 /* of a microbatch */
    int64_t most_of, most[ROWS], all[ROWS]; /* the most of all_of; the most a pass of a row, and a microbatch of it */
    pc_time shortest[ROWS];                 /* pass, whether it gives or not */
    int taker;    /* the row of all that take memory, if those are all alike; or PC_INSTANCE_NONE */
    int64_t take; /* each of them */
} device_rule;

/* What must be done before the next pass of a cell, as far as it has come. */
typedef struct cell_state {
    pc_gaps busy;            /* with the passes of its own device that come before */
    pc_time latest;          /* when the last of them ends by its own head */
    int32_t count[TYPES];    /* how many of each type are in there */
    int32_t least[TYPES];    /* how many must be, at the least */
    int32_t row_count[ROWS]; /* the same, of all types of a row */
    int32_t row_least[ROWS];
    int64_t given;         /* by the passes that end first, */
    int32_t giving[TYPES]; /* so many of each type, */
    pc_time given_at;      /* until then */
} cell_state;

struct pc_heads {
    const pc_instance *instance;
    int types, chunks, m, rows;
    int order_count;
    int32_t *order; /* all cells, each after those that it waits for in the same microbatch */
    int32_t *place; /* a number a cell: its place on the way of a microbatch through the model and back; not of W */
    bool is_mirror;
    cell_rule *rule;
    device_rule *device;
    cell_state *state;
    pc_time *head;  /* [devices][types][microbatches] */
    pc_time *joint; /* [devices][chunks * microbatches]: when the n-th pass that takes memory can start */
    bool has_joint;
    uint8_t *types_as_they_come; /* [types * microbatches]: room for those of one device */
};

/* ---- what comes before what ---- */

static bool is_w(const pc_heads *h, int type) {
    return type >= 2 * h->chunks;
}

/* Whether a pass of type a must come before that of type b of the same microbatch and device. Forward in time nothing
 * waits for a W, and in the mirror a W waits for nothing. */
static bool comes_before(const pc_heads *h, int device, int a, int b) {
    const int32_t *place = h->place + (ptrdiff_t)device * h->types;
    if (is_w(h, h->is_mirror ? b : a)) return false;
    if (is_w(h, a)) return place[a - h->chunks] <= place[b];
    if (is_w(h, b)) return place[a] <= place[b - h->chunks];
    return place[a] < place[b];
}

/* Follows a microbatch through the model; a W stands behind its B, or in the mirror before it. */
static void find_order(pc_heads *h) {
    const pc_instance *in = h->instance;
    int cell = 0, count = in->devices * h->types, places = 0;
    while (cell < count && (is_w(h, cell % h->types) || in->cells[cell].before != PC_INSTANCE_NONE)) cell++;
    h->is_mirror = cell % h->types >= h->chunks;
    for (; cell != PC_INSTANCE_NONE; cell = in->cells[cell].after) {
        bool has_w = in->splits && cell % h->types >= h->chunks;
        if (has_w && h->is_mirror) h->order[h->order_count++] = cell + h->chunks;
        h->order[h->order_count++] = cell;
        h->place[cell] = places++;
        if (has_w && !h->is_mirror) h->order[h->order_count++] = cell + h->chunks;
    }
}

static void find_after(pc_heads *h, int device) {
    cell_rule *rules = h->rule + (ptrdiff_t)device * h->types;
    for (int type = 0; type < h->types; type++) {
        rules[type].latest = PC_INSTANCE_NONE;
        for (int other = 0; other < h->types; other++) {
            if (!comes_before(h, device, other, type)) continue;
            rules[type].after |= UINT32_C(1) << other;
            int latest = rules[type].latest;
            if (latest == PC_INSTANCE_NONE || comes_before(h, device, latest, other)) rules[type].latest = other;
        }
    }
}

/* ---- memory ---- */

static int64_t taken_by(const pc_heads *h, int device, int type) {
    return h->instance->cells[device * h->types + type].taken;
}

static void find_given(pc_heads *h, int device) {
    device_rule *rule = &h->device[device];
    for (int type = 0; type < h->types; type++) {
        int64_t given = -taken_by(h, device, type);
        int row = type / h->chunks;
        if (given <= 0) continue;
        rule->all_of[type % h->chunks] += given;
        rule->all[row] += given;
        if (given > rule->most[row]) rule->most[row] = given;
    }
    for (int c = 0; c < h->chunks; c++)
        if (rule->all_of[c] > rule->most_of) rule->most_of = rule->all_of[c];
}

static void find_shortest(pc_heads *h, int device) {
    pc_time *shortest = h->device[device].shortest;
    for (int type = 0; type < h->types; type++) {
        pc_time duration = h->instance->cells[device * h->types + type].duration;
        int row = type / h->chunks;
        if (type % h->chunks == 0 || duration < shortest[row]) shortest[row] = duration;
    }
}

/* Whether those that take memory are of one row, and one is like another. */
static void find_taker(pc_heads *h, int device) {
    const pc_instance_cell *cells = h->instance->cells + (ptrdiff_t)device * h->types;
    device_rule *rule = &h->device[device];
    int takers = 0;
    rule->taker = PC_INSTANCE_NONE;
    if (!pc_instance_is_limited(h->instance, device)) return;
    for (int type = 0; type < h->types; type++) {
        const pc_instance_cell *first = &cells[(ptrdiff_t)rule->taker * h->chunks];
        if (cells[type].taken <= 0) continue;
        if (takers++ == 0)
            rule->taker = type / h->chunks;
        else if (type / h->chunks != rule->taker || cells[type].taken != first->taken ||
                 cells[type].duration != first->duration)
            takers = -h->types;
    }
    if (takers != h->chunks)
        rule->taker = PC_INSTANCE_NONE;
    else
        rule->take = cells[(ptrdiff_t)rule->taker * h->chunks].taken;
}

/* A pass that takes memory is limited where all that gives it back comes after it. */
static void find_held(pc_heads *h, int device, int type) {
    cell_rule *rule = &h->rule[device * h->types + type];
    rule->is_limited = taken_by(h, device, type) > 0 && pc_instance_is_limited(h->instance, device);
    for (int other = 0; other < h->types; other++) {
        int64_t taken = taken_by(h, device, other);
        if (taken < 0 && !comes_before(h, device, type, other)) rule->is_limited = false;
        if (taken <= 0 || (other != type && !(rule->after >> other & 1))) continue;
        rule->held += taken;
        rule->held_of[other % h->chunks] += taken;
    }
    if (rule->held > INT64_MAX / 8 / h->m) rule->is_limited = false;
}

/* Before pass k of another type that takes can run, the microbatches up to k hold what it and those that it waits for
 * take. The ones from k to j hold what pass j of this type and those that it waits for take. If that is too much, pass
 * k comes before pass j: only what comes after pass k could give anything back. */
static void find_lags(const pc_heads *h, int device, int type) {
    cell_rule *rules = h->rule + (ptrdiff_t)device * h->types, *rule = &rules[type];
    for (int other = 0; other < h->types; other++) {
        rule->lag[other] = PC_INSTANCE_NONE;
        if (other == type || !rule->is_limited || !rules[other].is_limited || (rule->after >> other & 1)) continue;
        int64_t more = taken_by(h, device, other), room;
        for (int also = 0; also < h->types; also++)
            if (also != type && (rules[other].after & ~rule->after) >> also & 1 && taken_by(h, device, also) > 0)
                more += taken_by(h, device, also);
        room = h->instance->limit[device] - more;
        if (room >= rule->held && room < h->m * rule->held) rule->lag[other] = (int32_t)(room / rule->held);
    }
}

/* ---- the room ---- */

static void find_rules(pc_heads *h) {
    find_order(h);
    for (int d = 0; d < h->instance->devices; d++) {
        find_after(h, d);
        find_given(h, d);
        find_shortest(h, d);
        find_taker(h, d);
        for (int type = 0; type < h->types; type++) find_held(h, d, type);
        for (int type = 0; type < h->types; type++) find_lags(h, d, type);
    }
}

pc_code pc_heads_create(const pc_instance *instance, pc_heads **heads, pc_error *error) {
    size_t cells = (size_t)instance->devices * (size_t)instance->types;
    pc_heads *h = pc_alloc(1, sizeof *h);
    if (!h) return pc_error_no_memory(error);
    h->instance = instance;
    h->types = instance->types;
    h->chunks = instance->chunks;
    h->rows = h->types / h->chunks;
    h->m = instance->microbatches;
    h->order = pc_alloc(cells, sizeof *h->order);
    h->place = pc_alloc(cells, sizeof *h->place);
    h->rule = pc_alloc(cells, sizeof *h->rule);
    h->device = pc_alloc((size_t)instance->devices, sizeof *h->device);
    h->state = pc_alloc(cells, sizeof *h->state);
    h->head = pc_alloc(cells * (size_t)h->m, sizeof *h->head);
    h->joint = pc_alloc((size_t)instance->devices * (size_t)h->chunks * (size_t)h->m, sizeof *h->joint);
    h->types_as_they_come = pc_alloc((size_t)h->types, (size_t)h->m);
    if (!h->order || !h->place || !h->rule || !h->device || !h->state || !h->head || !h->joint ||
        !h->types_as_they_come) {
        pc_heads_free(h);
        return pc_error_no_memory(error);
    }
    find_rules(h);
    *heads = h;
    return PC_OK;
}

void pc_heads_free(pc_heads *h) {
    if (!h) return;
    pc_free(h->order);
    pc_free(h->place);
    pc_free(h->rule);
    pc_free(h->device);
    pc_free(h->state);
    pc_free(h->head);
    pc_free(h->joint);
    pc_free(h->types_as_they_come);
    pc_free(h);
}

/* ---- what must be done before ---- */

static pc_time head_of(const pc_heads *h, int cell, int microbatch) {
    return h->head[(int64_t)cell * h->m + microbatch];
}

static void raise_time(pc_time *time, pc_time least) {
    if (least > *time) *time = least;
}

static int64_t round_up(int64_t number, int64_t by) {
    return number <= 0 ? 0 : (number + by - 1) / by;
}

static void raise(int32_t *count, int64_t least) {
    if (least > *count) *count = (int32_t)least;
}

/* So many passes of a type, and with them all that come before them on the device, must be done. */
static void demand(const pc_heads *h, int cell, int type, int64_t count) {
    uint32_t after = h->rule[cell - cell % h->types + type].after;
    cell_state *s = &h->state[cell];
    raise(&s->least[type], count);
    for (int other = 0; other < h->types; other++)
        if (after >> other & 1) raise(&s->least[other], count);
}

/* What another pass of the same microbatch, which comes before, had to wait for; and it. */
static void demand_that_of(const pc_heads *h, int cell, int type, int j) {
    const cell_state *before = &h->state[cell - cell % h->types + type];
    cell_state *s = &h->state[cell];
    for (int other = 0; other < h->types; other++) raise(&s->least[other], before->least[other]);
    for (int row = 0; row < h->rows; row++) raise(&s->row_least[row], before->row_least[row]);
    raise(&s->least[type], j + 1);
}

static void demand_order(const pc_heads *h, int cell, int j) {
    int latest = h->rule[cell].latest, own = h->instance->cells[cell].own;
    raise(&h->state[cell].least[cell % h->types], j);
    if (latest != PC_INSTANCE_NONE) demand_that_of(h, cell, latest, j);
    if (own != PC_INSTANCE_NONE && own % h->types != latest) demand_that_of(h, cell, own % h->types, j);
}

/* Of one chunk: `need` bytes must have come back, and no more microbatches than j can have given. */
static void demand_chunk(const pc_heads *h, int cell, int chunk, int64_t need, int j) {
    int device = cell / h->types;
    int64_t all = h->device[device].all_of[chunk];
    for (int type = chunk; type < h->types && need > 0; type += h->chunks) {
        int64_t given = -taken_by(h, device, type);
        if (given <= 0) continue;
        int64_t count = round_up(need - j * (all - given), given);
        demand(h, cell, type, count < j ? count : j);
        if (type / h->chunks == 1) demand(h, cell, type, round_up(need, all) < j ? round_up(need, all) : j);
    }
}

/* Of all chunks together. No chunk gives anything back before its B. */
static void demand_rows(const pc_heads *h, cell_state *s, const device_rule *device, int64_t need, int j) {
    for (int row = 0; row < h->rows; row++) {
        int64_t others = -device->all[row];
        for (int other = 0; other < h->rows; other++) others += device->all[other];
        if (device->most[row] > 0) raise(&s->row_least[row], round_up(need - j * others, device->most[row]));
    }
    raise(&s->row_least[1], round_up(need, device->most_of));
}

/* When passes of the device can have given so much back, at the earliest. Where one type has given all that it can, the
 * rest is left open: the next pass of that type could still be first later on. */
static pc_time time_to_give(const pc_heads *h, cell_state *s, int device, int64_t need, int j) {
    int first = device * h->types;
    while (s->given < need) {
        int next = PC_INSTANCE_NONE;
        pc_time end = PC_GAPS_NEVER;
        for (int type = 0; type < h->types; type++) {
            const pc_instance_cell *giver = &h->instance->cells[first + type];
            if (giver->taken >= 0 || s->giving[type] >= h->m) continue;
            if (s->giving[type] >= j) return s->given_at;
            pc_time own = head_of(h, first + type, s->giving[type]) + giver->duration;
            if (own >= end) continue;
            end = own;
            next = type;
        }
        if (next == PC_INSTANCE_NONE) return s->given_at;
        s->giving[next]++;
        s->given -= h->instance->cells[first + next].taken;
        if (end > s->given_at) s->given_at = end;
    }
    return s->given_at;
}

/* Memory for pass j: what must have been taken before it and with it, less what the device has room for. */
static pc_time demand_memory(const pc_heads *h, int cell, int j) {
    const cell_rule *rule = &h->rule[cell];
    int device = cell / h->types;
    int64_t limit = h->instance->limit[device], need = (j + 1) * rule->held - limit;
    if (!rule->is_limited) return PC_GAPS_EVER;
    for (int type = 0; type < h->types; type++) {
        if (rule->lag[type] == PC_INSTANCE_NONE || j < rule->lag[type]) continue;
        int count = j + 1 - rule->lag[type];
        need += count * taken_by(h, device, type);
        demand(h, cell, type, count);
    }
    if (need <= 0) return PC_GAPS_EVER;
    for (int c = 0; c < h->chunks; c++)
        demand_chunk(h, cell, c, (j + 1) * rule->held_of[c] - (limit - (rule->held - rule->held_of[c])), j);
    demand_rows(h, &h->state[cell], &h->device[device], need, j);
    return time_to_give(h, &h->state[cell], device, need, j);
}

/* ---- one machine ---- */

/* The type of the row whose next pass is to count: one that must be there, or else the one that can be there first. */
static int next_of_row(const pc_heads *h, const cell_state *s, int first, int row, int j) {
    int next = PC_INSTANCE_NONE;
    for (int type = row * h->chunks; type < (row + 1) * h->chunks; type++)
        if (s->count[type] < s->least[type]) return type;
    for (int type = row * h->chunks; type < (row + 1) * h->chunks; type++) {
        if (s->count[type] >= h->m) continue;
        if (s->count[type] >= j) return PC_INSTANCE_NONE; /* as in time_to_give */
        if (next == PC_INSTANCE_NONE ||
            head_of(h, first + type, s->count[type]) < head_of(h, first + next, s->count[next]))
            next = type;
    }
    return next;
}

/* When the next pass of a type that takes can start, since of those put in so far so many have heads no later. */
static pc_time joint_of(const pc_heads *h, const cell_state *s, int device, int type) {
    int first = device * h->types, row = type / h->chunks;
    int32_t rank = s->count[type];
    pc_time head = head_of(h, first + type, rank);
    for (int other = row * h->chunks; other < (row + 1) * h->chunks; other++) {
        int32_t before = s->count[other];
        if (other == type) continue;
        while (before > 0 && head_of(h, first + other, before - 1) > head) before--;
        rank += before;
    }
    return h->joint[(int64_t)device * h->chunks * h->m + rank];
}

/* Puts in what must be done before, row by row. A pass that was put in because it could be there first stays where
 * another one turns out to be needed later: it is no later than that one, and counts as no longer than any of its row.
 */
static void put_row(const pc_heads *h, cell_state *s, int device, int row, int j) {
    int first = device * h->types;
    int32_t named = 0;
    for (int type = row * h->chunks; type < (row + 1) * h->chunks; type++) named += s->least[type];
    while (s->row_count[row] < named || s->row_count[row] < s->row_least[row]) {
        int type = next_of_row(h, s, first, row, j);
        if (type == PC_INSTANCE_NONE) return;
        bool is_named = s->count[type] < s->least[type];
        pc_time head = head_of(h, first + type, s->count[type]);
        pc_time duration = is_named ? h->instance->cells[first + type].duration : h->device[device].shortest[row];
        if (h->has_joint && row == h->device[device].taker) raise_time(&head, joint_of(h, s, device, type));
        pc_gaps_put(&s->busy, head, duration);
        if (head + duration > s->latest) s->latest = head + duration;
        s->count[type]++;
        s->row_count[row]++;
    }
}

/* ---- the heads ---- */

static pc_time head_by_order(const pc_heads *h, int cell, int j, pc_time head) {
    const pc_instance_cell *cells = h->instance->cells, *own = &cells[cell];
    if (own->before != PC_INSTANCE_NONE)
        raise_time(&head, head_of(h, own->before, j) + cells[own->before].duration + own->before_delay);
    if (own->own != PC_INSTANCE_NONE) raise_time(&head, head_of(h, own->own, j) + cells[own->own].duration);
    if (j > 0) raise_time(&head, head_of(h, cell, j - 1) + own->duration);
    return head;
}

static pc_time find_head(const pc_heads *h, int cell, int j, pc_time head) {
    cell_state *s = &h->state[cell];
    head = head_by_order(h, cell, j, head);
    demand_order(h, cell, j);
    raise_time(&head, demand_memory(h, cell, j));
    for (int row = 0; row < h->rows; row++) put_row(h, s, cell / h->types, row, j);
    raise_time(&head, s->latest);
    raise_time(&head, pc_gaps_end(&s->busy));
    return head;
}

static void clear_state(cell_state *s) {
    *s = (cell_state){.latest = PC_GAPS_EVER, .given_at = PC_GAPS_EVER};
    pc_gaps_clear(&s->busy);
}

static void find_heads(pc_heads *h) {
    int cells = h->instance->devices * h->types;
    for (int cell = 0; cell < cells; cell++) clear_state(&h->state[cell]);
    for (int j = 0; j < h->m; j++)
        for (int i = 0; i < h->order_count; i++) {
            pc_time *head = &h->head[(int64_t)h->order[i] * h->m + j];
            *head = find_head(h, h->order[i], j, *head);
        }
}

/* When the n-th pass of a device that takes memory can start. The one before it has ended, and so much was given back
 * as leaves room for n. With those have run all passes that must have been there for that. */
static void find_joint(pc_heads *h, int device) {
    const device_rule *rule = &h->device[device];
    pc_time *joint = h->joint + (int64_t)device * h->chunks * h->m, last = PC_GAPS_EVER;
    cell_state s;
    if (rule->taker == PC_INSTANCE_NONE) return;
    clear_state(&s);
    for (int n = 0; n < h->chunks * h->m; n++) {
        int64_t need = (n + 1) * rule->take - h->instance->limit[device];
        joint[n] = last;
        s.row_least[rule->taker] = n;
        if (need > 0) {
            demand_rows(h, &s, rule, need, n < h->m ? n : h->m);
            raise_time(&joint[n], time_to_give(h, &s, device, need, h->m));
        }
        for (int row = 0; row < h->rows; row++) put_row(h, &s, device, row, h->m);
        raise_time(&joint[n], s.latest);
        raise_time(&joint[n], pc_gaps_end(&s.busy));
        last = joint[n];
    }
}

enum { ROUNDS = 2 }; /* of joint heads; the second only where it may help */

/* Whether memory makes the device wait for every microbatch: the heads of the second half lie farther apart than it
 * works. */
static bool waits_for_memory(const pc_heads *h, int device) {
    pc_time work = 0, farthest = 0;
    int half = h->m / 2, last = h->m - 1;
    for (int type = 0; type < h->types; type++) {
        int cell = device * h->types + type;
        work += h->instance->cells[cell].duration;
        farthest = pc_max(farthest, head_of(h, cell, last) - head_of(h, cell, half));
    }
    return farthest > work * (last - half);
}

static void find_all_joint(pc_heads *h) {
    h->has_joint = true;
    for (int d = 0; d < h->instance->devices; d++) find_joint(h, d);
}

const pc_time *pc_heads_of(pc_heads *h, int device) {
    int64_t of_device = (int64_t)h->types * h->m, all = h->instance->devices * of_device;
    bool has_taker = false;
    for (int64_t i = 0; i < all; i++) h->head[i] = i / of_device == device ? 0 : PC_GAPS_EVER;
    for (int d = 0; d < h->instance->devices; d++) has_taker = has_taker || h->device[d].taker != PC_INSTANCE_NONE;
    h->has_joint = false;
    find_heads(h);
    for (int round = 0; round < ROUNDS && has_taker && h->chunks > 1; round++) {
        if (round > 0 && !waits_for_memory(h, device)) break;
        find_all_joint(h);
        find_heads(h);
    }
    return h->head + device * of_device;
}

/* ---- all passes of a device with tails ---- */

/* The types of a device's passes of the rows from `first` to `last`, but for the row `skipped`: of those that are next
 * of each type, the one that can be there first, and so on. Returns how many. */
static int32_t merge_types(const pc_heads *h, int device, int first, int last, int skipped, uint8_t *types) {
    int32_t next[TYPES] = {0}, count = 0;
    for (;;) {
        int found = PC_INSTANCE_NONE;
        pc_time least = PC_GAPS_NEVER;
        for (int type = first * h->chunks; type < (last + 1) * h->chunks; type++) {
            if (next[type] == h->m || type / h->chunks == skipped) continue;
            pc_time head = head_of(h, device * h->types + type, next[type]);
            if (found != PC_INSTANCE_NONE && head >= least) continue;
            found = type;
            least = head;
        }
        if (found == PC_INSTANCE_NONE) return count;
        next[found]++;
        types[count++] = (uint8_t)found;
    }
}

/* The passes of a device, those that take memory and the others, as they come; of each type the first `count`, that are
 * followed by so much, are wanted. */
typedef struct followed {
    const pc_heads *h;
    int device;
    const uint8_t *takers, *others;
    int32_t taker_count, other_count;
    int32_t count[TYPES], next[TYPES];
} followed;

/* The next of a list that is wanted; PC_INSTANCE_NONE when all have been. */
static int next_of(const followed *f, const uint8_t *types, int32_t count, int32_t *at) {
    while (*at < count && f->next[types[*at]] == f->count[types[*at]]) ++*at;
    return *at < count ? types[*at] : PC_INSTANCE_NONE;
}

/* When all of them have ended at the earliest, one after the other as they come. */
static pc_time end_of(followed *f) {
    const pc_heads *h = f->h;
    int first = f->device * h->types, taken = 0;
    int32_t taker_at = 0, other_at = 0;
    const pc_time *joint = h->joint + (int64_t)f->device * h->chunks * h->m;
    pc_time now = PC_GAPS_EVER;
    for (;;) {
        int taker = next_of(f, f->takers, f->taker_count, &taker_at);
        int other = next_of(f, f->others, f->other_count, &other_at);
        if (taker == PC_INSTANCE_NONE && other == PC_INSTANCE_NONE) return now;
        pc_time ready = PC_GAPS_NEVER, head = PC_GAPS_NEVER;
        if (taker != PC_INSTANCE_NONE) ready = pc_max(head_of(h, first + taker, f->next[taker]), joint[taken]);
        if (other != PC_INSTANCE_NONE) head = head_of(h, first + other, f->next[other]);
        int type = ready <= head ? taker : other;
        *(type == taker ? &taker_at : &other_at) += 1;
        taken += type == taker;
        now = pc_max(now, pc_min(ready, head)) + h->instance->cells[first + type].duration;
        f->next[type]++;
    }
}

static pc_time tail_of(const pc_heads *mirror, int cell, int microbatch) {
    return head_of(mirror, cell, mirror->m - 1 - microbatch);
}

/* Of all passes of a device that are followed by at least as much as the last one of the type; and that. */
static pc_time end_with_tail(const pc_heads *mirror, followed f, int type) {
    const pc_heads *h = f.h;
    int first = f.device * h->types;
    pc_time tail = tail_of(mirror, first + type, h->m - 1);
    if (tail < 0) return 0;
    for (int other = 0; other < h->types; other++) {
        f.count[other] = h->m;
        while (f.count[other] > 0 && tail_of(mirror, first + other, f.count[other] - 1) < tail) f.count[other]--;
    }
    return end_of(&f) + tail;
}

pc_time pc_heads_least_span(const pc_heads *h, const pc_heads *mirror) {
    pc_time least = 0;
    for (int d = 0; h->has_joint && d < h->instance->devices; d++) {
        int taker = h->device[d].taker;
        if (taker == PC_INSTANCE_NONE) continue;
        followed f = {.h = h, .device = d, .takers = h->types_as_they_come};
        f.taker_count = merge_types(h, d, taker, taker, PC_INSTANCE_NONE, h->types_as_they_come);
        f.others = f.takers + f.taker_count;
        f.other_count = merge_types(h, d, 0, h->rows - 1, taker, h->types_as_they_come + f.taker_count);
        for (int type = 0; type < h->types; type++) raise_time(&least, end_with_tail(mirror, f, type));
    }
    return least;
}
