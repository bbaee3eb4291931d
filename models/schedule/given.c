#include "models/schedule/given.h"

#include "engine/alloc.h"
#include "engine/hash.h"
#include "models/schedule/check.h"
#include "models/schedule/exchange.h"

#include <stdio.h>
#include <string.h>

pc_generator pc_generator_of_given(const char *name, pc_placement placement, int chunks, const pc_given *given) {
    return (pc_generator){.name = name,
                          .summary = "given by a file",
                          .placement = placement,
                          .chunks_min = chunks,
                          .chunks_max = chunks,
                          .chunks_default = chunks,
                          .given = given};
}

/* A line of the file is a stage. */
pc_code pc_schedule_load(const char *path, pc_schedule *schedule, pc_error *error) {
    int stage;
    pc_schedule made;
    pc_code code = pc_schedule_read_torch_csv(path, &made, error);
    if (code) return code;
    code = pc_schedule_check_stages(&made, &stage, error);
    if (code == PC_ERROR_INPUT) pc_error_place(error, path, (unsigned)stage + 1, "");
    if (code)
        pc_schedule_free(&made);
    else
        *schedule = made;
    return code;
}

struct pc_given_schedule {
    pc_given given; /* first: what `generate` gets */
    pc_generator generator;
    pc_schedule order;
};

/* A copy of what was given, which the check of the request has found to be for it. */
static pc_code copy_order(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                          pc_block *block, pc_error *error) {
    const pc_schedule *order = &((const pc_given_schedule *)(const void *)self->given)->order;
    (void)request;
    int64_t *lengths = pc_alloc((size_t)order->devices, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(error);
    for (int d = 0; d < order->devices; d++) lengths[d] = order->offsets[d + 1] - order->offsets[d];
    pc_code code = pc_schedule_create(order->name, order->devices, order->microbatches, order->chunks, order->placement,
                                      lengths, schedule, error);
    pc_free(lengths);
    if (code) return code;
    schedule->barriers = order->barriers;
    memcpy(schedule->passes, order->passes, (size_t)order->offsets[order->devices] * sizeof *order->passes);
    code = block && order->barriers == PC_BARRIERS_NONE ? pc_block_of_schedule(schedule, block, error) : PC_OK;
    if (code) pc_schedule_free(schedule);
    return code;
}

static uint64_t hash_of(const pc_schedule *order) {
    const int32_t shape[] = {order->devices, order->microbatches, order->chunks, (int32_t)order->placement};
    pc_hash hash = {0};
    pc_hash_add_bytes(&hash, shape, sizeof shape);
    for (int d = 0; d < order->devices; d++) {
        int64_t length = order->offsets[d + 1] - order->offsets[d];
        pc_hash_add_bytes(&hash, order->passes + order->offsets[d], (size_t)length * sizeof *order->passes);
    }
    return hash.low;
}

static void describe(pc_given_schedule *given) {
    const pc_schedule *order = &given->order;
    bool splits = pc_schedule_has(order, PC_PASS_B);
    given->given = (pc_given){.devices = order->devices, .microbatches = order->microbatches, .hash = hash_of(order)};
    given->generator = pc_generator_of_given(order->name, order->placement, order->chunks, &given->given);
    given->generator.splits = splits;
    given->generator.mixes = splits && pc_schedule_has(order, PC_PASS_BW);
    given->generator.recomputes = pc_schedule_has(order, PC_PASS_R);
    given->generator.barriers = order->barriers;
    given->generator.generate = copy_order;
}

pc_code pc_given_schedule_read(const char *path, const char *name, pc_given_schedule **given, pc_error *error) {
    pc_given_schedule *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = pc_schedule_load(path, &made->order, error);
    if (code) {
        pc_given_schedule_free(made);
        return code;
    }
    size_t length = name ? strlen(name) : 0, most = sizeof made->order.name - 1;
    if (name) snprintf(made->order.name, sizeof made->order.name, "%s", length > most ? name + length - most : name);
    describe(made);
    *given = made;
    return PC_OK;
}

const pc_generator *pc_given_schedule_generator(const pc_given_schedule *given) {
    return &given->generator;
}

const pc_schedule *pc_given_schedule_order(const pc_given_schedule *given) {
    return &given->order;
}

void pc_given_schedule_free(pc_given_schedule *given) {
    if (!given) return;
    pc_schedule_free(&given->order);
    pc_free(given);
}
