#include "models/schedule/search/links.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/search/objective.h"

#define NOT_YET INT64_C(-1)

struct pc_stage_links {
    const pc_instance *instance;
    pc_time latency_ps, filled_ps; /* of a transfer; how long it fills the link */
    pc_time *arrival;              /* [devices][types][microbatches]: of what a pass waits for from another device */
    pc_time *through; /* [devices][2]: when a device's links to the next one and to the one before are free */
    pc_time *free;    /* a number a device: when its last pass so far ends */
    int64_t *cursor;  /* a number a device: passes that have run */
    int32_t *waiting; /* devices that may go on; a stack */
    bool *is_waiting;
};

pc_code pc_stage_links_create(const pc_instance *instance, const pc_transfer *transfer, pc_stage_links **links,
                              pc_error *error) {
    pc_time filled_ps;
    size_t devices = (size_t)instance->devices;
    *links = NULL;
    if (transfer->mode != PC_TRANSFER_LINK || !(transfer->bandwidth_bytes_per_s > 0)) return PC_OK;
    if (!pc_time_from_seconds((double)transfer->size_bytes / transfer->bandwidth_bytes_per_s, &filled_ps)) return PC_OK;
    pc_stage_links *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    *made = (pc_stage_links){.instance = instance, .latency_ps = transfer->latency_ps, .filled_ps = filled_ps};
    made->arrival = pc_alloc(devices * (size_t)instance->passes, sizeof *made->arrival);
    made->through = pc_alloc(2 * devices, sizeof *made->through);
    made->free = pc_alloc(devices, sizeof *made->free);
    made->cursor = pc_alloc(devices, sizeof *made->cursor);
    made->waiting = pc_alloc(devices, sizeof *made->waiting);
    made->is_waiting = pc_alloc(devices, sizeof *made->is_waiting);
    *links = made;
    if (made->arrival && made->through && made->free && made->cursor && made->waiting && made->is_waiting) return PC_OK;
    pc_stage_links_free(made);
    *links = NULL;
    return pc_error_no_memory(error);
}

void pc_stage_links_free(pc_stage_links *links) {
    if (!links) return;
    void *const arrays[] = {links->arrival, links->through, links->free,
                            links->cursor,  links->waiting, links->is_waiting};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_free(links);
}

/* A device's transfers go over a link in the order of the passes that send them. */
static pc_time send(const pc_stage_links *links, int from, int to, pc_time end) {
    bool is_next = to == (from + 1) % links->instance->devices;
    pc_time *through = &links->through[2 * from + !is_next];
    *through = pc_max(end + links->latency_ps, *through) + links->filled_ps;
    return *through;
}

static bool comes_from_afar(const pc_instance *instance, int device, const pc_instance_cell *cell) {
    return cell->before != PC_INSTANCE_NONE && cell->before / instance->types != device;
}

/* Runs on until the device waits for another one; `stack` is the number of devices that may go on, and is returned with
 * those that this one lets go on. What a pass waits for on its own device stands before it in the order. */
static int run_device(const pc_stage_links *links, int device, pc_instance_order *order, int stack) {
    const pc_instance *instance = links->instance;
    const int64_t microbatches = instance->microbatches;
    for (; links->cursor[device] < instance->passes; links->cursor[device]++) {
        int64_t place = device * instance->passes + links->cursor[device];
        int cell_index = device * instance->types + pc_instance_pass_type(order->pass[place]),
            microbatch = pc_instance_pass_microbatch(order->pass[place]);
        const pc_instance_cell *cell = &instance->cells[cell_index];
        pc_time start = pc_max(links->free[device], pc_objective_ready(instance, cell_index));
        if (comes_from_afar(instance, device, cell)) {
            pc_time arrival = links->arrival[cell_index * microbatches + microbatch];
            if (arrival == NOT_YET) return stack;
            start = pc_max(start, arrival);
        }
        order->start[place] = start;
        links->free[device] = start + cell->duration;
        int to = cell->after == PC_INSTANCE_NONE ? device : cell->after / instance->types;
        if (to == device) continue;
        links->arrival[cell->after * microbatches + microbatch] = send(links, device, to, links->free[device]);
        if (!links->is_waiting[to]) links->waiting[stack++] = to;
        links->is_waiting[to] = true;
    }
    return stack;
}

static void begin(const pc_stage_links *links) {
    int devices = links->instance->devices;
    for (int64_t i = 0; i < devices * links->instance->passes; i++) links->arrival[i] = NOT_YET;
    for (int d = 0; d < devices; d++) {
        links->through[2 * (ptrdiff_t)d] = links->through[2 * (ptrdiff_t)d + 1] = links->free[d] = links->cursor[d] = 0;
        links->waiting[d] = d;
        links->is_waiting[d] = true;
    }
}

void pc_stage_links_squeeze(pc_stage_links *links, pc_instance_order *order) {
    const pc_instance *instance = links->instance;
    begin(links);
    for (int stack = instance->devices; stack > 0;) {
        int device = links->waiting[--stack];
        links->is_waiting[device] = false;
        stack = run_device(links, device, order, stack);
    }
    order->span = order->makespan = 0;
    for (int d = 0; d < instance->devices; d++) {
        order->makespan = pc_max(order->makespan, links->free[d]);
        order->span = pc_max(order->span, links->free[d] - order->start[d * instance->passes]);
    }
    if (instance->objective) order->span = pc_objective_of(instance, order);
}
