#include "models/schedule/search/instance.h"

#include "engine/alloc.h"

#include <string.h>

/* ---- types ---- */

int pc_instance_type(const pc_instance *instance, pc_pass_kind kind, int chunk) {
    int row = kind == PC_PASS_F ? 0 : kind == PC_PASS_W ? 2 : 1;
    return row * instance->chunks + chunk;
}

static pc_pass_kind kind_of(const pc_instance *instance, int type) {
    switch (type / instance->chunks) {
    case 0:
        return PC_PASS_F;
    case 1:
        return instance->splits ? PC_PASS_B : PC_PASS_BW;
    default:
        return PC_PASS_W;
    }
}

pc_pass pc_instance_to_pass(const pc_instance *instance, pc_instance_pass pass) {
    int type = pc_instance_pass_type(pass);
    return (pc_pass){.microbatch = pc_instance_pass_microbatch(pass),
                     .chunk = (int16_t)(type % instance->chunks),
                     .kind = (int16_t)kind_of(instance, type)};
}

/* ---- the table of what waits for what ---- */

/* A pass either takes or gives (generate_recomputed.c). */
static int64_t bytes_taken(const pc_costs *costs, int device, pc_pass pass) {
    return pc_costs_taken(costs, device, pass, false) - pc_costs_given(costs, device, pass);
}

static int cell_of_part(const pc_instance *instance, int part, pc_pass_kind kind) {
    int device = pc_placement_stage(instance->placement, instance->devices, part, 0);
    return device * instance->types +
           pc_instance_type(instance, kind, pc_placement_chunk(instance->placement, instance->devices, part, 0));
}

/* The cell whose pass comes before that of `kind` on `part`: F of the part before; B of the part behind, or F of its
 * own on the last part. W waits for its own B only. */
static int32_t cell_before(const pc_instance *instance, int part, pc_pass_kind kind) {
    int parts = instance->devices * instance->chunks;
    if (kind == PC_PASS_F) return part == 0 ? PC_INSTANCE_NONE : cell_of_part(instance, part - 1, kind);
    if (kind == PC_PASS_W) return PC_INSTANCE_NONE;
    return part == parts - 1 ? cell_of_part(instance, part, PC_PASS_F) : cell_of_part(instance, part + 1, kind);
}

static void fill_cell(const pc_costs *costs, const pc_instance *instance, int device, int type) {
    pc_instance_cell *cell = &instance->cells[device * instance->types + type];
    pc_pass pass = {.chunk = (int16_t)(type % instance->chunks), .kind = (int16_t)kind_of(instance, type)};
    int part = pc_placement_part(instance->placement, instance->devices, device, pass.chunk);
    cell->duration = pc_costs_duration(costs, device, pass.chunk, pass.kind);
    cell->taken = bytes_taken(costs, device, pass);
    cell->before = cell_before(instance, part, (pc_pass_kind)pass.kind);
    cell->own = pass.kind == PC_PASS_W ? device * instance->types + type - instance->chunks : PC_INSTANCE_NONE;
    int from = cell->before / instance->types;
    cell->before_delay =
        cell->before == PC_INSTANCE_NONE || from == device ? 0 : pc_costs_delay_alone(costs, from, device);
}

static void link_after(pc_instance *instance) {
    int count = instance->devices * instance->types;
    for (int i = 0; i < count; i++) instance->cells[i].after = PC_INSTANCE_NONE;
    for (int i = 0; i < count; i++)
        if (instance->cells[i].before != PC_INSTANCE_NONE) instance->cells[instance->cells[i].before].after = i;
}

#define ENOUGH (INT64_MAX / 4) /* more than all passes can take; sums with it can be counted */

/* A device that holds nothing is within any limit, one of no bytes too. */
static int64_t limit_for(const pc_instance *instance, int device, int64_t limit) {
    bool takes = false;
    for (int type = 0; type < instance->types; type++)
        takes = takes || instance->cells[device * instance->types + type].taken > 0;
    return limit > ENOUGH || (limit == 0 && !takes) ? ENOUGH : limit;
}

bool pc_instance_is_limited(const pc_instance *instance, int device) {
    return instance->limit[device] < ENOUGH;
}

pc_code pc_instance_create(const pc_costs *costs, pc_placement placement, bool splits, int microbatches,
                           pc_memory_limit memory_limit, pc_instance *instance, pc_error *error) {
    pc_instance made = {.devices = costs->devices,
                        .types = (splits ? 3 : 2) * costs->chunks,
                        .microbatches = microbatches,
                        .chunks = costs->chunks,
                        .splits = splits,
                        .placement = placement};
    made.passes = (int64_t)made.types * microbatches;
    made.cells = pc_alloc((size_t)made.devices * (size_t)made.types, sizeof *made.cells);
    made.limit = pc_alloc((size_t)made.devices, sizeof *made.limit);
    if (!made.cells || !made.limit) {
        pc_instance_free(&made);
        return pc_error_no_memory(error);
    }
    for (int d = 0; d < made.devices; d++) {
        for (int type = 0; type < made.types; type++) fill_cell(costs, &made, d, type);
        made.limit[d] = limit_for(&made, d, pc_memory_limit_of(memory_limit, d));
    }
    link_after(&made);
    *instance = made;
    return PC_OK;
}

void pc_instance_free(pc_instance *instance) {
    pc_free(instance->cells);
    pc_free(instance->limit);
    memset(instance, 0, sizeof *instance);
}

/* ---- backwards ---- */

/* The cell of the same device that has this one as `own`. */
static int32_t own_of(const pc_instance *instance, int i) {
    int first = i - i % instance->types;
    for (int other = first; other < first + instance->types; other++)
        if (instance->cells[other].own == i) return other;
    return PC_INSTANCE_NONE;
}

/* Backwards, B waits for its W; what waited for a cell is what the cell waits for. */
static void mirror_cell(const pc_instance *instance, int i, pc_instance_cell *mirrored) {
    const pc_instance_cell *cell = &instance->cells[i];
    *mirrored = *cell;
    mirrored->taken = -cell->taken;
    mirrored->before = cell->after;
    mirrored->after = cell->before;
    mirrored->before_delay = cell->after == PC_INSTANCE_NONE ? 0 : instance->cells[cell->after].before_delay;
    mirrored->own = own_of(instance, i);
}

pc_code pc_instance_mirror(const pc_instance *instance, pc_instance *mirror, pc_error *error) {
    int count = instance->devices * instance->types;
    pc_instance_cell *cells = pc_alloc((size_t)count, sizeof *cells);
    if (!cells) return pc_error_no_memory(error);
    for (int i = 0; i < count; i++) mirror_cell(instance, i, &cells[i]);
    *mirror = *instance;
    mirror->cells = cells;
    mirror->objective = NULL;
    return PC_OK;
}

void pc_instance_mirror_free(pc_instance *mirror) {
    pc_free(mirror->cells);
    memset(mirror, 0, sizeof *mirror);
}

/* ---- orders ---- */

pc_code pc_instance_order_create(const pc_instance *instance, pc_instance_order *order, pc_error *error) {
    size_t count = (size_t)instance->devices * (size_t)instance->passes;
    /* not cleared: who makes an order writes all of it */
    pc_instance_order made = {.pass = pc_realloc(NULL, count, sizeof *made.pass),
                              .start = pc_realloc(NULL, count, sizeof *made.start)};
    if (!made.pass || !made.start) {
        pc_instance_order_free(&made);
        return pc_error_no_memory(error);
    }
    *order = made;
    return PC_OK;
}

void pc_instance_order_free(pc_instance_order *order) {
    pc_free(order->pass);
    pc_free(order->start);
    memset(order, 0, sizeof *order);
}

void pc_instance_order_copy(const pc_instance *instance, const pc_instance_order *from, pc_instance_order *to) {
    size_t count = (size_t)instance->devices * (size_t)instance->passes;
    pc_instance_pass *pass = to->pass;
    pc_time *start = to->start;
    *to = *from;
    to->pass = memcpy(pass, from->pass, count * sizeof *pass);
    to->start = memcpy(start, from->start, count * sizeof *start);
}

static pc_instance_pass put(const pc_instance *instance, pc_pass_kind kind, int chunk, int *done) {
    int type = pc_instance_type(instance, kind, chunk);
    return pc_instance_pass_make(type, done[type]++);
}

void pc_instance_of_schedule(const pc_instance *instance, const pc_schedule *schedule, pc_instance_order *order) {
    for (int d = 0; d < instance->devices; d++) {
        int done[PC_INSTANCE_TYPES_MAX] = {0};
        pc_instance_pass *next = order->pass + d * instance->passes;
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            pc_pass pass = schedule->passes[i];
            bool is_apart = pass.kind == PC_PASS_BW && instance->splits;
            *next++ = put(instance, is_apart ? PC_PASS_B : (pc_pass_kind)pass.kind, pass.chunk, done);
            if (is_apart) *next++ = put(instance, PC_PASS_W, pass.chunk, done);
        }
    }
}

pc_code pc_instance_to_schedule(const pc_instance *instance, const pc_instance_order *order, const char *name,
                                pc_schedule *schedule, pc_error *error) {
    int64_t *lengths = pc_alloc((size_t)instance->devices, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(error);
    for (int d = 0; d < instance->devices; d++) lengths[d] = instance->passes;
    pc_code code = pc_schedule_create(name, instance->devices, instance->microbatches, instance->chunks,
                                      instance->placement, lengths, schedule, error);
    pc_free(lengths);
    for (int64_t i = 0; !code && i < instance->devices * instance->passes; i++)
        schedule->passes[i] = pc_instance_to_pass(instance, order->pass[i]);
    return code;
}
