/* Whether a trace that was read can be what a run wrote: whoever draws or exports it uses its numbers as indices, and
 * adds them up. */
#include "results/store/store_private.h"

#include <stdio.h>

/* The part of "pass_chunk", "transfer_chunk" and so on that is out of range; NULL if all is well. */
static const char *fault_of(const pc_trace_record *record, const pc_pass *pass, pc_time start_ps, pc_time end_ps) {
    if (!pc_store_is_within(pass->chunk, 0, record->chunks)) return "chunk";
    if (!pc_store_is_within(pass->kind, 0, PC_PASS_KINDS)) return "kind";
    if (!pc_store_is_within(pass->microbatch, 0, record->microbatches)) return "microbatch";
    if (start_ps < 0) return "start_ps";
    return end_ps < start_ps ? "end_ps" : NULL;
}

static pc_code refuse_part(pc_error *error, const char *of, const char *part) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", of, part);
    return pc_store_refuse(error, name);
}

/* A microbatch has at least an F and a B on every stage that it visits, and so on one chunk in two; whoever makes room
 * for what the shape says makes it for what the file has. A run that ended for want of memory has fewer. */
static bool has_its_passes(const pc_trace_record *record) {
    int64_t all = (int64_t)record->devices * record->chunks * record->microbatches;
    return record->replay.out_of_memory || all <= record->replay.trace.pass_count;
}

static bool adds_up(const pc_activation_bytes *kinds, int64_t sum) {
    for (int kind = 0; kind < PC_ACTIVATION_KINDS; kind++) {
        if (kinds->of[kind] < 0 || kinds->of[kind] > sum) return false;
        sum -= kinds->of[kind];
    }
    return sum == 0;
}

/* Adds up what a device holds beside activations; the first kind with which that cannot be counted, or
 * PC_MEMORY_KINDS. */
static int add_up(const pc_device_memory *memory, int64_t *sum) {
    *sum = 0;
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++) {
        bool is_activation = kind >= PC_MEMORY_ATTENTION && kind < PC_MEMORY_ATTENTION + PC_ACTIVATION_KINDS;
        int64_t bytes = memory->kinds[kind];
        if (bytes < 0 || (!is_activation && __builtin_add_overflow(*sum, bytes, sum))) return kind;
    }
    return PC_MEMORY_KINDS;
}

/* Whoever draws kinds over time adds up a device's, with a row's activations. */
static pc_code check_kinds(const pc_trace_record *record, pc_error *error) {
    const pc_replay_trace *trace = &record->replay.trace;
    int64_t held;
    char part[48];
    for (int d = 0; record->memory && d < record->devices; d++) {
        int kind = add_up(&record->memory[d], &held);
        if (kind == PC_MEMORY_KINDS) continue;
        snprintf(part, sizeof part, "%s_bytes", pc_memory_kind_names[kind]);
        return refuse_part(error, "device", part);
    }
    for (int64_t i = 0; i < trace->level_count; i++) {
        if (!adds_up(&trace->level_kinds[i], trace->level_bytes[i]))
            return refuse_part(error, "level", "attention_bytes");
        if (!record->memory) continue;
        (void)add_up(&record->memory[trace->level_device[i]], &held);
        if (trace->level_bytes[i] > INT64_MAX - held) return pc_store_refuse(error, "level_bytes");
    }
    return PC_OK;
}

/* Whoever draws or exports the trace uses these numbers as indices. */
static pc_code check_passes(const pc_trace_record *record, pc_error *error) {
    const pc_replay_trace *trace = &record->replay.trace;
    if (!has_its_passes(record)) return pc_store_refuse(error, "microbatches");
    for (int64_t i = 0; i < trace->pass_count; i++) {
        const char *fault = fault_of(record, &trace->pass[i], trace->pass_start_ps[i], trace->pass_end_ps[i]);
        if (!pc_store_is_within(trace->pass_device[i], 0, record->devices)) fault = "device";
        if (fault) return refuse_part(error, "pass", fault);
    }
    return PC_OK;
}

static pc_code check_levels(const pc_trace_record *record, pc_error *error) {
    const pc_replay_trace *trace = &record->replay.trace;
    for (int64_t i = 0; i < trace->level_count; i++) {
        if (!pc_store_is_within(trace->level_device[i], 0, record->devices))
            return pc_store_refuse(error, "level_device");
        if (trace->level_time_ps[i] < 0) return pc_store_refuse(error, "level_time_ps");
    }
    return trace->level_kinds ? check_kinds(record, error) : PC_OK;
}

static pc_code check_transfers(const pc_trace_record *record, pc_error *error) {
    const pc_replay_trace *trace = &record->replay.trace;
    for (int64_t i = 0; i < trace->transfer_count; i++) {
        int from = trace->transfer_from[i], to = trace->transfer_to[i];
        const char *fault =
            fault_of(record, &trace->transfer_pass[i], trace->transfer_start_ps[i], trace->transfer_end_ps[i]);
        if (!pc_store_is_within(from, 0, record->devices)) fault = "from";
        if (!pc_store_is_within(to, 0, record->devices) || from == to) fault = "to";
        if (fault) return refuse_part(error, "transfer", fault);
    }
    return PC_OK;
}

pc_code pc_store_trace_check(const pc_trace_record *record, pc_error *error) {
    pc_code code = check_passes(record, error);
    if (!code) code = check_levels(record, error);
    return code ? code : check_transfers(record, error);
}
