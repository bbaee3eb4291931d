/* From a block of one's own to a schedule: repeated, and reordered. */
#include "models/schedule/given_block.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/reorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- repeated ---- */

/* A pass and the cell that it starts in. */
typedef struct placed {
    int64_t cell;
    pc_pass pass;
} placed;

/* Every pass of the iteration by its cell. Two in one cell, as only ends can have it, are told apart by the model's
 * order. */
static int compare_placed(const void *left, const void *right) {
    const placed *a = left, *b = right;
    if (a->cell != b->cell) return a->cell < b->cell ? -1 : 1;
    if (a->pass.microbatch != b->pass.microbatch) return a->pass.microbatch < b->pass.microbatch ? -1 : 1;
    return a->pass.kind != b->pass.kind ? a->pass.kind - b->pass.kind : a->pass.chunk - b->pass.chunk;
}

/* The kinds of a block, one of which every microbatch has in every chunk that it visits. */
static int count_kinds(const pc_block *block) {
    int count = 0;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) count += block->duration[kind] > 0;
    return count;
}

/* The device's passes, [microbatches][visited chunks][kinds]. */
static int64_t place_block(const pc_block *block, int device, int microbatches, placed *list) {
    int64_t count = 0;
    for (int i = 0; i < microbatches; i++)
        for (int c = 0; c < block->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                int of_block = i % block->microbatches;
                int64_t start = pc_block_start(block, of_block, device, c, kind);
                if (start == PC_TIME_NOT_GIVEN) continue;
                list[count++] =
                    (placed){start + i / block->microbatches * block->interval, {i, (int16_t)c, (int16_t)kind}};
            }
    return count;
}

/* Where place_block has put the pass. */
static placed *find_placed(const pc_block *block, placed *list, pc_pass pass) {
    int visited = pc_placement_visited(block->placement, block->chunks), kinds = count_kinds(block), before = 0;
    for (int kind = 0; kind < pass.kind; kind++) before += block->duration[kind] > 0;
    int chunk = visited == block->chunks ? pass.chunk : 0;
    return &list[((int64_t)pass.microbatch * visited + chunk) * kinds + before];
}

void pc_block_line_blame(const pc_block_line *line, const char *key, pc_error *error) {
    char path[512];
    if (!line->file) return;
    snprintf(path, sizeof path, "%s%s%s", line->key, *key ? "." : "", key);
    pc_error_place(error, line->file, line->number, path);
}

/* Writes the start that a line gives to one device. */
static pc_code find_offset(const pc_block_line *line, const int64_t values[PC_RULE_NAMES], int64_t *offset,
                           pc_error *error) {
    int64_t d = values[PC_RULE_D], p = values[PC_RULE_P];
    if (line->offset && line->offset_count != p)
        return pc_error_set(error, PC_ERROR_INPUT, "%d numbers for %" PRId64 " devices; expected one each",
                            line->offset_count, p);
    pc_code code = PC_OK;
    if (line->offset)
        *offset = line->offset[d];
    else
        code = pc_rule_value(&line->rule, values, offset, error);
    if (code) pc_error_prefix(error, "with d = %" PRId64 " and p = %" PRId64, d, p);
    if (code || (*offset <= PC_BLOCK_CELLS_MAX && *offset >= -PC_BLOCK_CELLS_MAX)) return code;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%" PRId64 " cells with d = %" PRId64 " and p = %" PRId64 "; expected less than 2^31", *offset,
                        d, p);
}

pc_code pc_block_line_offset(const pc_block_line *line, const int64_t values[PC_RULE_NAMES], int64_t *offset,
                             pc_error *error) {
    pc_code code = find_offset(line, values, offset, error);
    if (code) pc_block_line_blame(line, line->offset ? "offsets" : "offset", error);
    return code;
}

/* What a line of ends says: its microbatch in this iteration; PC_ERROR_INPUT where there is none, or the pass is not in
 * the block. */
static pc_code find_end(const pc_block *block, const pc_block_line *line, int microbatches, int *microbatch,
                        pc_error *error) {
    int64_t i = line->microbatch < 0 ? microbatches + line->microbatch : line->microbatch;
    const char *name = pc_pass_kind_name(line->kind);
    pc_code code = PC_OK;
    if (i < 0 || i >= microbatches)
        code = pc_error_set(error, PC_ERROR_INPUT,
                            "microbatch %" PRId64 " of an iteration of %d; expected one that it has", line->microbatch,
                            microbatches);
    else if (block->duration[line->kind] == 0 || line->chunk < 0 || line->chunk >= block->chunks ||
             !pc_placement_visits(block->placement, line->chunk, (int)i))
        code = pc_error_set(error, PC_ERROR_INPUT, "%s of chunk %d; expected a pass of the block", name, line->chunk);
    if (code)
        pc_block_line_blame(line, "", error);
    else
        *microbatch = (int)i;
    return code;
}

static pc_code place_ends(const pc_block *block, const pc_block_line *ends, int end_count, int device, int microbatches,
                          placed *list, pc_error *error) {
    for (int k = 0; k < end_count; k++) {
        int i = 0;
        int64_t offset;
        pc_code code = find_end(block, &ends[k], microbatches, &i, error);
        if (code) return code;
        const int64_t values[PC_RULE_NAMES] = {device, ends[k].chunk, i, block->devices, block->chunks, microbatches};
        code = pc_block_line_offset(&ends[k], values, &offset, error);
        if (code) return code;
        pc_pass pass = {i, (int16_t)ends[k].chunk, (int16_t)ends[k].kind};
        find_placed(block, list, pass)->cell = offset + i / block->microbatches * block->interval;
    }
    return PC_OK;
}

static pc_code repeat_on_device(const pc_block *block, const pc_block_line *ends, int end_count, int device,
                                placed *list, pc_schedule *schedule, int64_t *cells, pc_error *error) {
    int64_t count = place_block(block, device, schedule->microbatches, list), base = schedule->offsets[device];
    pc_code code = place_ends(block, ends, end_count, device, schedule->microbatches, list, error);
    if (code) return code;
    qsort(list, (size_t)count, sizeof *list, compare_placed);
    for (int64_t k = 0; k < count; k++) {
        schedule->passes[base + k] = list[k].pass;
        if (cells) cells[base + k] = list[k].cell;
        if (end_count && k > 0 && list[k - 1].cell + block->duration[list[k - 1].pass.kind] > list[k].cell)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "%s of microbatch %d and %s of microbatch %d collide on device %d: both take cell "
                                "%" PRId64 "; expected one pass a cell, at the ends too",
                                pc_pass_kind_name((pc_pass_kind)list[k - 1].pass.kind), list[k - 1].pass.microbatch,
                                pc_pass_kind_name((pc_pass_kind)list[k].pass.kind), list[k].pass.microbatch, device,
                                list[k].cell);
    }
    return PC_OK;
}

static pc_code create_schedule(const pc_block *block, const char *name, int microbatches, pc_schedule *schedule,
                               pc_error *error) {
    int64_t *lengths = pc_alloc((size_t)block->devices, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(error);
    for (int d = 0; d < block->devices; d++)
        lengths[d] = (int64_t)microbatches * pc_placement_visited(block->placement, block->chunks) * count_kinds(block);
    pc_code code = pc_schedule_create(name, block->devices, microbatches, block->chunks, block->placement, lengths,
                                      schedule, error);
    pc_free(lengths);
    return code;
}

pc_code pc_schedule_of_block(const pc_block *block, const pc_block_line *ends, int end_count, const char *name,
                             int microbatches, pc_schedule *schedule, int64_t **cells, pc_error *error) {
    pc_schedule made;
    pc_code code = create_schedule(block, name, microbatches, &made, error);
    if (code) return code;
    int64_t *found = cells ? pc_alloc((size_t)made.offsets[made.devices], sizeof *found) : NULL;
    placed *list = pc_alloc((size_t)made.offsets[1], sizeof *list);
    if (!list || (cells && !found)) code = pc_error_no_memory(error);
    for (int d = 0; d < block->devices && !code; d++)
        code = repeat_on_device(block, ends, end_count, d, list, &made, found, error);
    if (!code && end_count) code = pc_schedule_check(&made, error); /* without them no order waits in a circle */
    pc_free(list);
    if (code) {
        pc_free(found);
        pc_schedule_free(&made);
        return code;
    }
    *schedule = made;
    if (cells) *cells = found;
    return PC_OK;
}

/* ---- reordered ---- */

enum { ROUNDS = 24 };

static pc_code check_reorder(const pc_block *block, const pc_costs *costs, const char *name, pc_error *error) {
    bool splits = block->duration[PC_PASS_W] > 0;
    int types = (splits ? 3 : 2) * block->chunks;
    if (block->duration[PC_PASS_R] > 0 || block->placement == PC_PLACEMENT_BIDIRECTIONAL ||
        types > PC_INSTANCE_TYPES_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: %s cannot be reordered; expected the steps none or squeeze",
                            name,
                            block->duration[PC_PASS_R] > 0  ? "a block with R"
                            : types > PC_INSTANCE_TYPES_MAX ? "a block of so many chunks"
                                                            : "a block of two replicas");
    bool needs[PC_PASS_KINDS];
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) needs[kind] = block->duration[kind] > 0;
    return pc_costs_check_times(costs, needs, name, "the schedule is reordered for it", error);
}

/* Each type's microbatches have to stand in their order: only then an instance says what waits for what. */
static pc_code write_order(const pc_instance *instance, const pc_schedule *schedule, pc_instance_order *order,
                           pc_error *error) {
    for (int d = 0; d < instance->devices; d++) {
        int32_t next[PC_INSTANCE_TYPES_MAX] = {0};
        for (int64_t k = schedule->offsets[d]; k < schedule->offsets[d + 1]; k++) {
            pc_pass pass = schedule->passes[k];
            int type = pc_instance_type(instance, (pc_pass_kind)pass.kind, pass.chunk);
            if (pass.microbatch != next[type]++)
                return pc_error_set(error, PC_ERROR_INPUT,
                                    "%s: %s of chunk %d runs microbatch %d before %d on device %d; expected their "
                                    "order, or the steps none or squeeze",
                                    schedule->name, pc_pass_kind_name((pc_pass_kind)pass.kind), pass.chunk,
                                    pass.microbatch, next[type] - 1, d);
            order->pass[k] = pc_instance_pass_make(type, pass.microbatch);
        }
    }
    return PC_OK;
}

static bool is_better(const pc_instance_order *a, const pc_instance_order *b) {
    return a->span < b->span || (a->span == b->span && a->makespan < b->makespan);
}

/* From the repeated order, and from the block packed on its own grid; each in both ways. `best` is the repeated one. */
static pc_code improve(const pc_instance *instance, const pc_block *block, pc_instance_order *best, pc_error *error) {
    pc_reorder *room = NULL;
    pc_instance_order trial = {0}, repeated = {0};
    pc_code code = pc_reorder_create(instance, &room, error);
    if (!code) code = pc_instance_order_create(instance, &trial, error);
    if (!code) code = pc_instance_order_create(instance, &repeated, error);
    if (!code && !pc_reorder_squeeze(room, best))
        code = pc_error_set(error, PC_ERROR_INPUT,
                            "the repeated block holds more than the memory limit; expected a larger limit, or a block "
                            "that holds less");
    if (!code) pc_instance_order_copy(instance, best, &repeated);
    for (int attempt = 0; attempt < 4 && !code; attempt++) {
        pc_instance_order_copy(instance, &repeated, &trial);
        if (attempt >= 2) {
            pc_reorder_pack(room, block, &trial);
            if (!pc_reorder_squeeze(room, &trial)) continue;
        }
        pc_reorder_improve(room, ROUNDS, attempt % 2 ? PC_REORDER_STRICT : PC_REORDER_EAGER, 0, &trial);
        if (is_better(&trial, best)) pc_instance_order_copy(instance, &trial, best);
    }
    pc_instance_order_free(&trial);
    pc_instance_order_free(&repeated);
    pc_reorder_free(room);
    return code;
}

/* The same costs, with activations that count chunks if nobody said how large they are. Free them with pc_costs_free.
 */
static pc_code copy_counting(const pc_costs *costs, bool has_any, pc_costs *copy, pc_error *error) {
    pc_code code = pc_costs_create(costs->devices, costs->chunks, copy, error);
    if (code) return code;
    size_t cells = (size_t)costs->devices * (size_t)costs->chunks;
    memcpy(copy->duration_ps, costs->duration_ps, cells * PC_PASS_KINDS * sizeof *costs->duration_ps);
    memcpy(copy->activation_bytes, costs->activation_bytes, cells * sizeof *costs->activation_bytes);
    memcpy(copy->activation_b_bytes, costs->activation_b_bytes, cells * sizeof *costs->activation_b_bytes);
    for (size_t i = 0; i < cells && !has_any; i++) copy->activation_bytes[i] = 1;
    copy->transfer = costs->transfer;
    return PC_OK;
}

/* Makes of what the repeated block holds on a device the device's limit, where the user's is not smaller. */
static void limit_to_held(pc_memory_limit memory_limit, int devices, int64_t *held_bytes) {
    for (int d = 0; d < devices; d++) {
        int64_t limit = pc_memory_limit_of(memory_limit, d);
        if (limit < held_bytes[d]) held_bytes[d] = limit;
    }
}

static pc_code make_instance(const pc_block *block, const pc_costs *costs, pc_memory_limit memory_limit,
                             const pc_schedule *schedule, pc_instance *instance, pc_error *error) {
    pc_costs counting = {0};
    bool has_any = pc_costs_have_activations(costs);
    int64_t *limit = pc_alloc((size_t)schedule->devices, sizeof *limit);
    pc_code code = limit ? copy_counting(costs, has_any, &counting, error) : pc_error_no_memory(error);
    if (!code) code = pc_schedule_peaks(schedule, &counting, limit, error);
    if (!code) {
        limit_to_held(has_any ? memory_limit : (pc_memory_limit){NULL}, schedule->devices, limit);
        code = pc_instance_create(&counting, block->placement, block->duration[PC_PASS_W] > 0, schedule->microbatches,
                                  (pc_memory_limit){limit}, instance, error);
    }
    pc_costs_free(&counting);
    pc_free(limit);
    return code;
}

pc_code pc_schedule_reorder(const pc_block *block, const pc_costs *costs, pc_memory_limit memory_limit,
                            pc_schedule *schedule, pc_error *error) {
    pc_instance instance = {0};
    pc_instance_order order = {0};
    pc_code code = check_reorder(block, costs, schedule->name, error);
    if (!code) code = make_instance(block, costs, memory_limit, schedule, &instance, error);
    if (!code) code = pc_instance_order_create(&instance, &order, error);
    if (!code) code = write_order(&instance, schedule, &order, error);
    if (!code) {
        code = improve(&instance, block, &order, error);
        if (code) pc_error_prefix(error, "%s", schedule->name);
    }
    for (int64_t k = 0; k < schedule->offsets[schedule->devices] && !code; k++)
        schedule->passes[k] = pc_instance_to_pass(&instance, order.pass[k]);
    pc_instance_order_free(&order);
    pc_instance_free(&instance);
    return code;
}
