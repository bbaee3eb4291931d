#include "engine/engine.h"

#include "engine/alloc.h"

#include <assert.h>

typedef struct handler_entry {
    pc_handler *handler;
    void *context;
} handler_entry;

struct pc_engine {
    pc_queue *queue;
    pc_time now;
    uint64_t event_count;
    bool must_stop;
    enum { NO_FAULT, TIME_RAN_OVER, NO_MEMORY } fault;
    handler_entry handlers[PC_ENGINE_KINDS];
};

pc_code pc_engine_create(size_t capacity, pc_engine **engine, pc_error *error) {
    pc_engine *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = pc_queue_create(capacity, &made->queue, error);
    if (code) {
        pc_free(made);
        return code;
    }
    *engine = made;
    return PC_OK;
}

void pc_engine_free(pc_engine *engine) {
    if (!engine) return;
    pc_queue_free(engine->queue);
    pc_free(engine);
}

void pc_engine_clear(pc_engine *engine) {
    pc_queue_clear(engine->queue);
    engine->now = 0;
    engine->event_count = 0;
    engine->must_stop = false;
    engine->fault = NO_FAULT;
}

void pc_engine_set_handler(pc_engine *engine, uint32_t kind, pc_handler *handler, void *context) {
    assert(kind < PC_ENGINE_KINDS);
    engine->handlers[kind] = (handler_entry){handler, context};
}

pc_time pc_engine_now(const pc_engine *engine) {
    return engine->now;
}

static bool fail(pc_engine *engine, int fault) {
    engine->fault = fault;
    engine->must_stop = true;
    return false;
}

bool pc_engine_post(pc_engine *engine, pc_time delay, uint16_t priority, const pc_event *event,
                    pc_event_handle *handle) {
    pc_time time;
    assert(delay >= 0 && event->kind < PC_ENGINE_KINDS);
    if (!pc_time_add(engine->now, delay, &time)) return fail(engine, TIME_RAN_OVER);
    if (!pc_queue_push(engine->queue, time, priority, event, handle)) return fail(engine, NO_MEMORY);
    return true;
}

bool pc_engine_cancel(pc_engine *engine, pc_event_handle handle) {
    return pc_queue_cancel(engine->queue, handle);
}

static pc_code fault_code(const pc_engine *engine, pc_error *error) {
    switch (engine->fault) {
    case NO_FAULT:
        return PC_OK;
    case NO_MEMORY:
        return pc_error_no_memory(error);
    case TIME_RAN_OVER:
        break;
    }
    return pc_error_set(error, PC_ERROR_INPUT,
                        "simulated time: runs over; expected everything to end within 106 days of simulated time");
}

pc_code pc_engine_run(pc_engine *engine, pc_time until, pc_error *error) {
    pc_event event;
    pc_time time;
    while (!engine->must_stop) {
        if (until != PC_TIME_MAX && (!pc_queue_next_time(engine->queue, &time) || time > until)) break;
        if (!pc_queue_pop(engine->queue, &time, &event)) break;
        engine->now = time;
        engine->event_count++;
        const handler_entry *entry = &engine->handlers[event.kind];
        entry->handler(engine, &event, entry->context);
    }
    engine->must_stop = false;
    return fault_code(engine, error);
}

void pc_engine_stop(pc_engine *engine) {
    engine->must_stop = true;
}

uint64_t pc_engine_event_count(const pc_engine *engine) {
    return engine->event_count;
}

size_t pc_engine_bytes(const pc_engine *engine) {
    return sizeof *engine + pc_queue_bytes(engine->queue);
}
