#include "results/export.h"

#include "engine/alloc.h"
#include "results/export_private.h"
#include "results/link_name.h"
#include "results/link_use.h"
#include "results/memory_curve.h"

#include <inttypes.h>

typedef struct tables {
    const pc_trace_record *record;
    const pc_replay_trace *trace;
    const pc_engine_trace *engine;
    pc_link_use *use; /* of LINKS */
    bool with_replica;
    pc_outlet out;
} tables;

/* --- cells: each but the first of a line stands behind a comma --- */

static void add_integer(tables *csv, int64_t value) {
    pc_text_printf(&csv->out.text, ",%" PRId64, value);
}

static void add_known(tables *csv, int64_t value) {
    if (value < 0)
        pc_text_add(&csv->out.text, ",", 1);
    else
        add_integer(csv, value);
}

static void add_real(tables *csv, double value) {
    char number[PC_NUMBER_SIZE];
    pc_number_format(value, number);
    pc_text_printf(&csv->out.text, ",%s", number);
}

static void add_word(tables *csv, const char *word) {
    pc_text_add(&csv->out.text, ",", 1);
    pc_text_add_csv(&csv->out.text, word);
}

static void add_pass_cells(tables *csv, const pc_pass *pass) {
    add_word(csv, pc_pass_kind_name((pc_pass_kind)pass->kind));
    add_integer(csv, pass->chunk);
    add_integer(csv, pass->microbatch);
}

/* --- a row of each table, from its second cell on --- */

static void add_pass(tables *csv, int64_t i) {
    add_pass_cells(csv, &csv->trace->pass[i]);
    add_integer(csv, csv->trace->pass_start_ps[i]);
    add_integer(csv, csv->trace->pass_end_ps[i]);
}

static void add_transfer(tables *csv, int64_t i) {
    add_integer(csv, csv->trace->transfer_to[i]);
    add_pass_cells(csv, &csv->trace->transfer_pass[i]);
    add_integer(csv, csv->trace->transfer_start_ps[i]);
    add_integer(csv, csv->trace->transfer_end_ps[i]);
}

static void add_level(tables *csv, int64_t i) {
    add_integer(csv, csv->trace->level_time_ps[i]);
    add_integer(csv, csv->trace->level_bytes[i]);
}

static void add_link(tables *csv, int64_t i) {
    const pc_engine_trace *trace = csv->engine;
    char name[PC_LINK_NAME_SIZE];
    pc_link_name(trace, i, csv->with_replica, name);
    add_word(csv, name);
    add_word(csv, pc_link_sort_name((pc_link_sort)trace->link_sort[i]));
    add_integer(csv, trace->link_replica[i]);
    add_integer(csv, trace->link_device[i]);
    add_known(csv, trace->link_peer[i]);
    add_word(csv, trace->link_is_in[i] ? "in" : "out");
    add_integer(csv, trace->link_shared[i]);
    add_real(csv, trace->link_bytes_per_s[i]);
    add_real(csv, csv->use[i].carried_bytes);
    add_real(csv, csv->use[i].peak_bytes_per_s);
}

static void add_load(tables *csv, int64_t i) {
    add_integer(csv, csv->engine->load_time_ps[i]);
    add_real(csv, csv->engine->load_bytes_per_s[i]);
}

static void add_flow(tables *csv, int64_t i) {
    const pc_engine_trace *trace = csv->engine;
    add_word(csv, pc_flow_sort_name((pc_flow_sort)trace->flow_sort[i]));
    add_integer(csv, trace->flow_replica[i]);
    add_integer(csv, trace->flow_from[i]);
    add_integer(csv, trace->flow_to[i]);
    add_known(csv, trace->flow_chunk[i]);
    add_known(csv, trace->flow_microbatch[i]);
    add_known(csv, trace->flow_out[i]);
    add_known(csv, trace->flow_in[i]);
    add_real(csv, trace->flow_bytes[i]);
    add_integer(csv, trace->flow_ready_ps[i]);
    add_integer(csv, trace->flow_start_ps[i]);
    add_integer(csv, trace->flow_end_ps[i]);
    add_integer(csv, trace->flow_alone_ps[i]);
}

static void add_queued(tables *csv, int64_t i) {
    add_pass_cells(csv, &csv->trace->pass[i]);
    add_integer(csv, csv->engine->queue_ready_ps[i]);
    add_integer(csv, csv->trace->pass_start_ps[i]);
    add_integer(csv, csv->trace->pass_start_ps[i] - csv->engine->queue_ready_ps[i]);
}

static void add_memory(tables *csv, int64_t i) {
    int device = csv->engine->memory_device[i];
    int64_t capacity = device < csv->engine->devices ? csv->engine->memory_capacity_bytes[device] : PC_NO_LIMIT;
    add_integer(csv, csv->engine->memory_time_ps[i]);
    add_integer(csv, csv->engine->memory_bytes[i]);
    add_known(csv, capacity != PC_NO_LIMIT ? capacity : -1);
}

static void add_kinds(tables *csv, int64_t i) {
    int64_t bytes[PC_MEMORY_KINDS];
    pc_memory_curve_at(csv->record, i, bytes);
    add_integer(csv, csv->trace->level_time_ps[i]);
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++) add_integer(csv, bytes[kind]);
    add_integer(csv, pc_memory_curve_sum(bytes));
}

static void add_work(tables *csv, int64_t i) {
    add_integer(csv, csv->engine->work_replica[i]);
    add_integer(csv, csv->engine->work_device[i]);
    add_integer(csv, csv->engine->work_start_ps[i]);
    add_integer(csv, csv->engine->work_end_ps[i]);
}

/* --- the tables --- */

typedef void add_row(tables *csv, int64_t row);

typedef struct table {
    const char *head;
    add_row *add;
    int64_t rows;
    const int32_t *first; /* cells; NULL: the row's number, or, of work, what it is */
} table;

static table find_table(const tables *csv, pc_export_sort sort) {
    const pc_replay_trace *trace = csv->trace;
    const pc_engine_trace *engine = csv->engine;
    switch (sort) {
    case PC_EXPORT_PASSES:
        return (table){"device,kind,chunk,microbatch,start_ps,end_ps", add_pass, trace->pass_count, trace->pass_device};
    case PC_EXPORT_TRANSFERS:
        return (table){"from,to,kind,chunk,microbatch,start_ps,end_ps", add_transfer, trace->transfer_count,
                       trace->transfer_from};
    case PC_EXPORT_LEVELS:
        return (table){"device,time_ps,bytes", add_level, trace->level_count, trace->level_device};
    case PC_EXPORT_KINDS:
        return (table){"", add_kinds, trace->level_count, trace->level_device};
    case PC_EXPORT_LINKS:
        return (table){"link,name,sort,replica,device,peer,direction,shared,bytes_per_s,carried_bytes,"
                       "peak_bytes_per_s",
                       add_link, engine->link_count, NULL};
    case PC_EXPORT_LOADS:
        return (table){"link,time_ps,bytes_per_s", add_load, engine->load_count, engine->load_link};
    case PC_EXPORT_FLOWS:
        return (table){"flow,sort,replica,from,to,chunk,microbatch,out,in,bytes,ready_ps,start_ps,end_ps,alone_ps",
                       add_flow, engine->flow_count, NULL};
    case PC_EXPORT_QUEUE:
        return (table){"device,kind,chunk,microbatch,ready_ps,start_ps,waited_ps", add_queued, engine->queue_count,
                       trace->pass_device};
    case PC_EXPORT_MEMORY:
        return (table){"device,time_ps,bytes,capacity_bytes", add_memory, engine->memory_count, engine->memory_device};
    case PC_EXPORT_WORK:
    default:
        return (table){"work,replica,device,start_ps,end_ps", add_work, engine->work_count, NULL};
    }
}

static void add_kinds_head(tables *csv) {
    pc_text_printf(&csv->out.text, "device,time_ps");
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++)
        pc_text_printf(&csv->out.text, ",%s_bytes", pc_memory_kind_names[kind]);
    pc_text_printf(&csv->out.text, ",bytes\n");
}

static void add_rows(tables *csv, pc_export_sort sort) {
    const table of = find_table(csv, sort);
    if (sort == PC_EXPORT_KINDS)
        add_kinds_head(csv);
    else
        pc_text_printf(&csv->out.text, "%s\n", of.head);
    for (int64_t i = 0; i < of.rows; i++) {
        if (sort == PC_EXPORT_WORK)
            pc_text_printf(&csv->out.text, "%s", pc_work_sort_name((pc_work_sort)csv->engine->work_sort[i]));
        else
            pc_text_printf(&csv->out.text, "%" PRId64, of.first ? of.first[i] : i);
        of.add(csv, i);
        pc_text_add(&csv->out.text, "\n", 1);
        pc_outlet_step(&csv->out);
    }
}

static pc_code write_rows(tables *csv, pc_export_sort sort, pc_error *error) {
    pc_number_scope scope = {0};
    pc_code code = sort == PC_EXPORT_LINKS ? pc_link_use_make(csv->engine, &csv->use, error) : PC_OK;
    if (code) return code;
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    add_rows(csv, sort);
    pc_number_scope_leave(&scope);
    return pc_outlet_end(&csv->out, error);
}

pc_code pc_export_table(pc_export_sort sort, const pc_trace_record *record, FILE *stream, pc_error *error) {
    tables csv = {
        .record = record, .trace = &record->replay.trace, .engine = &record->replay.engine, .out = {.stream = stream}};
    if (sort == PC_EXPORT_KINDS && !pc_memory_curve_is_known(record))
        return pc_error_set(error, PC_ERROR_INPUT, PC_MEMORY_CURVE_UNKNOWN);
    if (sort >= PC_EXPORT_LINKS && csv.engine->queue_count == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "kept no trace of the engine; expected one of a run with "
                            "`engine: events` and `trace: true`");
    csv.with_replica = pc_link_has_replicas(csv.engine);
    pc_code code = write_rows(&csv, sort, error);
    pc_free(csv.use);
    return code;
}
