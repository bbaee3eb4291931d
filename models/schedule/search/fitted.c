#include "models/schedule/search/fitted.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "engine/random.h"

#include <string.h>

enum { MICROBATCHES_MAX = 2, WAITS_MAX = 4 /* longest ways and intervals that a block may take */ };

/* ---- one block ---- */

/* A pass in its device's interval. */
typedef struct slot {
    pc_time at, duration; /* 0 <= at < interval */
    double behind;        /* how many intervals later than the first pass */
    double taken;
} slot;

/* A block under construction. */
typedef struct fitting {
    const pc_instance *instance;
    int first; /* the cell of a microbatch's first pass */
    int microbatches;
    pc_time interval;
    pc_time latest;   /* a block that has a pass behind this is given up */
    slot *slots;      /* [devices][MICROBATCHES_MAX * types], sorted by `at` */
    int *filled;      /* a number a device */
    pc_time *start;   /* [MICROBATCHES_MAX][devices][types] */
    pc_time *waiting; /* a number a cell: when the B of a W that is not placed yet ends; -1: none waits */
    uint64_t stream;
} fitting;

static uint64_t draw(fitting *f) {
    return pc_xorshift64star(&f->stream) >> 32;
}

static slot *slots_of(const fitting *f, int device) {
    return f->slots + (size_t)device * MICROBATCHES_MAX * (size_t)f->instance->types;
}

/* How much later than `at` a pass may begin at the earliest because of one that is there. */
static pc_time push(const fitting *f, const slot *there, pc_time at, pc_time duration) {
    pc_time since = at - there->at + (at < there->at ? f->interval : 0), until = f->interval - since;
    if (since < there->duration) return there->duration - since;
    return duration > until ? until + there->duration : 0;
}

/* The start of the first gap from `ready` on; -1 where none is long enough. */
static pc_time find_gap(const fitting *f, int device, pc_time ready, pc_time duration) {
    const slot *slots = slots_of(f, device);
    for (pc_time start = ready; start <= ready + f->interval;) {
        pc_time at = start % f->interval, move = 0;
        for (int i = 0; i < f->filled[device]; i++) {
            pc_time pushed = push(f, &slots[i], at, duration);
            if (pushed > move) move = pushed;
        }
        if (move == 0) return start;
        start += move;
    }
    return -1;
}

static void put_slot(const fitting *f, int device, const pc_instance_cell *cell, pc_time start) {
    slot *slots = slots_of(f, device);
    int i = f->filled[device]++;
    pc_time at = start % f->interval, turn = start / f->interval;
    for (; i > 0 && slots[i - 1].at > at; i--) slots[i] = slots[i - 1];
    slots[i] = (slot){at, cell->duration, (double)turn, (double)cell->taken};
}

/* Puts a pass into the first gap from `ready` on; *end becomes its end. False where there is none. */
static bool place(fitting *f, int microbatch, int cell_index, pc_time ready, pc_time *end) {
    const pc_instance *instance = f->instance;
    const pc_instance_cell *cell = &instance->cells[cell_index];
    int device = cell_index / instance->types;
    pc_time start = find_gap(f, device, ready, cell->duration);
    if (start < 0 || start > f->latest) return false;
    put_slot(f, device, cell, start);
    f->start[(int64_t)microbatch * instance->devices * instance->types + cell_index] = start;
    *end = start + cell->duration;
    return true;
}

/* How one microbatch's passes are placed. */
typedef struct manner {
    int waits;     /* so many of 32 passes wait, for as long as another pass of their device takes */
    int w_at_once; /* so many of 4 W come right behind their B; the others when all else stands */
    pc_time start;
} manner;

static manner draw_manner(fitting *f, int microbatch) {
    manner m = {.waits = draw(f) % 3 == 0 ? 0 : (int)(draw(f) % 6)};
    static const int at_once[] = {0, 0, 4, 2, 2, 2};
    m.w_at_once = at_once[draw(f) % 6];
    if (microbatch > 0) m.start = draw(f) % 2 == 0 ? f->start[f->first] : (pc_time)(draw(f) % (uint64_t)f->interval);
    return m;
}

static bool has_w(const pc_instance *instance, int cell) {
    int type = cell % instance->types;
    return instance->splits && type >= instance->chunks && type < 2 * instance->chunks;
}

static bool place_waiting(fitting *f, int microbatch) {
    int cells = f->instance->devices * f->instance->types;
    pc_time end;
    for (int cell = 0; cell < cells; cell++)
        if (f->waiting[cell] >= 0 && !place(f, microbatch, cell, f->waiting[cell], &end)) return false;
    return true;
}

static bool place_microbatch(fitting *f, int microbatch) {
    const pc_instance *instance = f->instance;
    manner m = draw_manner(f, microbatch);
    pc_time time = m.start, end = 0;
    memset(f->waiting, 0xff, (size_t)instance->devices * (size_t)instance->types * sizeof *f->waiting);
    for (int cell = f->first; cell != PC_INSTANCE_NONE; cell = instance->cells[cell].after) {
        if (cell != f->first) time += instance->cells[cell].before_delay;
        if (m.waits > 0 && (int)(draw(f) % 32) < m.waits)
            time +=
                instance->cells[cell - cell % instance->types + (int)(draw(f) % (uint64_t)instance->types)].duration;
        if (!place(f, microbatch, cell, time, &time)) return false;
        if (!has_w(instance, cell)) continue;
        int w = cell + instance->chunks;
        bool is_at_once = (int)(draw(f) % 4) < m.w_at_once;
        if (!is_at_once) f->waiting[w] = time;
        if (is_at_once && !place(f, microbatch, w, time, &end)) return false;
    }
    return place_waiting(f, microbatch);
}

/* Whether the block, repeated for ever, keeps the limits. */
static bool keeps_limits(const fitting *f) {
    for (int d = 0; d < f->instance->devices; d++) {
        const slot *slots = slots_of(f, d);
        double level = 0, limit = (double)f->instance->limit[d];
        for (int i = 0; i < f->filled[d]; i++) level -= slots[i].taken * slots[i].behind;
        for (int i = 0; i < f->filled[d]; i++)
            if ((level += slots[i].taken) > limit) return false;
    }
    return true;
}

static bool draw_block(fitting *f) {
    for (int d = 0; d < f->instance->devices; d++) f->filled[d] = 0;
    for (int i = 0; i < f->microbatches; i++)
        if (!place_microbatch(f, i)) return false;
    return keeps_limits(f);
}

/* ---- which intervals ---- */

static int first_cell(const pc_instance *instance) {
    int cell = 0;
    while (instance->cells[cell].before != PC_INSTANCE_NONE) cell = instance->cells[cell].before;
    return cell;
}

/* A microbatch alone: how long it takes, and when each of its passes starts, a number a cell; W right behind their B.
 */
static pc_time run_alone(const pc_instance *instance, pc_time *start) {
    pc_time time = 0, last = 0;
    for (int cell = first_cell(instance); cell != PC_INSTANCE_NONE; cell = instance->cells[cell].after) {
        if (instance->cells[cell].before != PC_INSTANCE_NONE) time += instance->cells[cell].before_delay;
        start[cell] = time;
        time += instance->cells[cell].duration;
        if (time > last) last = time;
        if (!has_w(instance, cell)) continue;
        int w = cell + instance->chunks;
        start[w] = time;
        if (time + instance->cells[w].duration > last) last = time + instance->cells[w].duration;
    }
    return last;
}

static double longest_work(const pc_instance *instance) {
    double longest = 0;
    for (int d = 0; d < instance->devices; d++) {
        double work = 0;
        for (int type = 0; type < instance->types; type++)
            work += (double)instance->cells[d * instance->types + type].duration;
        if (work > longest) longest = work;
    }
    return longest;
}

/* In a shorter interval a device would hold more than its limit: what a microbatch holds alone, bytes times time. */
static double least_by_memory(const pc_instance *instance, const pc_time *start) {
    double least = 0;
    for (int d = 0; d < instance->devices; d++) {
        double held = 0, limit = (double)instance->limit[d];
        if (limit <= 0 || !pc_instance_is_limited(instance, d)) continue;
        for (int cell = d * instance->types; cell < (d + 1) * instance->types; cell++)
            held -= (double)instance->cells[cell].taken * (double)start[cell];
        if (held / limit > least) least = held / limit;
    }
    return least;
}

/* ---- what is found ---- */

static pc_code keep_block(const fitting *f, pc_fitted *fitted, pc_error *error) {
    size_t count = (size_t)f->microbatches * (size_t)f->instance->devices * (size_t)f->instance->types;
    pc_time *start = pc_alloc(count, sizeof *start);
    if (!start) return pc_error_no_memory(error);
    memcpy(start, f->start, count * sizeof *start);
    fitted->blocks[fitted->count++] = (pc_fitted_block){f->microbatches, f->interval, start};
    return PC_OK;
}

/* Whether one of `draws` blocks of this interval keeps the limits. */
static bool fits(fitting *f, double interval, int draws) {
    f->interval = (pc_time)(interval * f->microbatches);
    for (int i = 0; i < draws; i++)
        if (draw_block(f)) return true;
    return false;
}

#define TIGHT       0.8
#define WIDE_STEP   1.0625
#define NARROW_STEP 1.015625
enum { FEWER_DRAWS = 4, MISSES = 3 };

/* The shortest interval for which a block was found, by wide steps up and narrow ones down; 0: none is short enough to
 * be worth its while. */
static double shortest_interval(fitting *f, double least, double longest, int draws) {
    double interval = least, found;
    while (!fits(f, interval, pc_max(draws / FEWER_DRAWS, 1)))
        if ((interval *= WIDE_STEP) > longest) return 0;
    found = interval;
    for (int misses = 0; misses < MISSES && interval / NARROW_STEP >= least;) {
        interval /= NARROW_STEP;
        misses = fits(f, interval, draws) ? 0 : misses + 1;
        if (misses == 0) found = interval;
    }
    return found;
}

/* Blocks of the shortest interval and of those after it. */
static pc_code find_blocks(fitting *f, double least, double longest, int wanted, int draws, pc_fitted *fitted,
                           pc_error *error) {
    double interval = shortest_interval(f, least, longest, draws);
    pc_code code = PC_OK;
    if (interval == 0) return PC_OK;
    for (int found = 0; found < wanted && interval <= longest && !code; interval *= NARROW_STEP) {
        f->interval = (pc_time)(interval * f->microbatches);
        for (int i = 0; i < draws && found < wanted && !code; i++) {
            if (!draw_block(f)) continue;
            code = keep_block(f, fitted, error);
            found++;
        }
    }
    return code;
}

/* ---- the room ---- */

static bool allocate(fitting *f) {
    size_t devices = (size_t)f->instance->devices, cells = devices * (size_t)f->instance->types;
    f->slots = pc_alloc(cells * MICROBATCHES_MAX, sizeof *f->slots);
    f->filled = pc_alloc(devices, sizeof *f->filled);
    f->start = pc_alloc(cells * MICROBATCHES_MAX, sizeof *f->start);
    f->waiting = pc_alloc(cells, sizeof *f->waiting);
    return f->slots && f->filled && f->start && f->waiting;
}

static void free_room(fitting *f) {
    pc_free(f->slots);
    pc_free(f->filled);
    pc_free(f->start);
    pc_free(f->waiting);
}

pc_code pc_fitted_find(const pc_instance *instance, int wanted, int draws, bool if_tight, pc_fitted *fitted,
                       pc_error *error) {
    fitting f = {.instance = instance, .first = first_cell(instance), .stream = PC_GOLDEN};
    *fitted = (pc_fitted){.blocks = pc_alloc((size_t)wanted * MICROBATCHES_MAX, sizeof *fitted->blocks)};
    pc_code code = fitted->blocks && allocate(&f) ? PC_OK : pc_error_no_memory(error);
    pc_time alone = code ? 0 : run_alone(instance, f.start);
    double least = code ? 0 : longest_work(instance), by_memory = code ? 0 : least_by_memory(instance, f.start);
    bool is_wanted = least >= 1 && !(if_tight && by_memory < TIGHT * least);
    if (by_memory > least) least = by_memory;
    for (int many = 1; many <= MICROBATCHES_MAX && !code && is_wanted; many++) {
        f.microbatches = many;
        f.latest = WAITS_MAX * (alone + many * (pc_time)least);
        code = find_blocks(&f, least, (double)alone, wanted, draws, fitted, error);
    }
    free_room(&f);
    if (code) pc_fitted_free(fitted);
    return code;
}

void pc_fitted_free(pc_fitted *fitted) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the count is 0 without blocks */
    for (int i = 0; i < fitted->count; i++) pc_free(fitted->blocks[i].start);
    pc_free(fitted->blocks);
    memset(fitted, 0, sizeof *fitted);
}

/* ---- repeated ---- */

/* The next pass of a type and of one of the block's microbatches, and how many are left of them. */
typedef struct lane {
    pc_time start;
    int32_t type, left;
} lane;

static int find_lanes(const pc_fitted_block *block, const pc_instance *instance, int device, lane *lanes) {
    int count = 0, many = block->microbatches;
    for (int i = 0; i < many && i < instance->microbatches; i++) {
        const pc_time *start = block->start + ((int64_t)i * instance->devices + device) * instance->types;
        for (int type = 0; type < instance->types; type++)
            lanes[count++] = (lane){start[type], type, (instance->microbatches - i + many - 1) / many};
    }
    return count;
}

static void repeat_on_device(const pc_fitted_block *block, const pc_instance *instance, int device,
                             pc_instance_pass *passes) {
    lane lanes[MICROBATCHES_MAX * PC_INSTANCE_TYPES_MAX];
    int done[PC_INSTANCE_TYPES_MAX] = {0}, count = find_lanes(block, instance, device, lanes);
    for (int64_t k = 0; k < instance->passes; k++) {
        int first = 0;
        for (int i = 1; i < count; i++)
            if (lanes[i].start < lanes[first].start) first = i;
        lane *l = &lanes[first];
        /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): lanes hold as many as there are passes */
        passes[k] = pc_instance_pass_make(l->type, done[l->type]++);
        l->start += block->interval;
        if (--l->left == 0) *l = lanes[--count];
    }
}

void pc_fitted_repeat(const pc_fitted_block *block, const pc_instance *instance, pc_instance_order *order) {
    for (int d = 0; d < instance->devices; d++)
        repeat_on_device(block, instance, d, order->pass + d * instance->passes);
}
