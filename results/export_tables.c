#include "results/export.h"

#include "engine/alloc.h"
#include "results/export_private.h"
#include "results/link_name.h"
#include "results/link_use.h"

#include <inttypes.h>

typedef struct tables {
    const pc_replay_trace *trace;
    const pc_engine_trace *engine;
    pc_link_use *use; /* of LINKS */
    bool with_replica;
    pc_outlet out;
} tables;

/* --- cells: each but the first of a line stands behind a comma --- */

static void add_integer(tables *x, int64_t value) {
    pc_text_printf(&x->out.text, ",%" PRId64, value);
}

static void add_known(tables *x, int64_t value) {
    if (value < 0)
        pc_text_add(&x->out.text, ",", 1);
    else
        add_integer(x, value);
}

static void add_real(tables *x, double value) {
    char number[PC_NUMBER_SIZE];
    pc_number_format(value, number);
    pc_text_printf(&x->out.text, ",%s", number);
}

static void add_word(tables *x, const char *word) {
    pc_text_add(&x->out.text, ",", 1);
    pc_text_add_csv(&x->out.text, word);
}

static void add_pass_cells(tables *x, const pc_pass *pass) {
    add_word(x, pc_pass_kind_name((pc_pass_kind)pass->kind));
    add_integer(x, pass->chunk);
    add_integer(x, pass->microbatch);
}

/* --- a row of each table, from its second cell on --- */

static void add_pass(tables *x, int64_t i) {
    add_pass_cells(x, &x->trace->pass[i]);
    add_integer(x, x->trace->pass_start_ps[i]);
    add_integer(x, x->trace->pass_end_ps[i]);
}

static void add_transfer(tables *x, int64_t i) {
    add_integer(x, x->trace->transfer_to[i]);
    add_pass_cells(x, &x->trace->transfer_pass[i]);
    add_integer(x, x->trace->transfer_start_ps[i]);
    add_integer(x, x->trace->transfer_end_ps[i]);
}

static void add_level(tables *x, int64_t i) {
    add_integer(x, x->trace->level_time_ps[i]);
    add_integer(x, x->trace->level_bytes[i]);
}

static void add_link(tables *x, int64_t i) {
    const pc_engine_trace *trace = x->engine;
    char name[PC_LINK_NAME_SIZE];
    pc_link_name(trace, i, x->with_replica, name);
    add_word(x, name);
    add_word(x, pc_link_sort_name((pc_link_sort)trace->link_sort[i]));
    add_integer(x, trace->link_replica[i]);
    add_integer(x, trace->link_device[i]);
    add_known(x, trace->link_peer[i]);
    add_word(x, trace->link_is_in[i] ? "in" : "out");
    add_integer(x, trace->link_shared[i]);
    add_real(x, trace->link_bytes_per_s[i]);
    add_real(x, x->use[i].carried_bytes);
    add_real(x, x->use[i].peak_bytes_per_s);
}

static void add_load(tables *x, int64_t i) {
    add_integer(x, x->engine->load_time_ps[i]);
    add_real(x, x->engine->load_bytes_per_s[i]);
}

static void add_flow(tables *x, int64_t i) {
    const pc_engine_trace *trace = x->engine;
    add_word(x, pc_flow_sort_name((pc_flow_sort)trace->flow_sort[i]));
    add_integer(x, trace->flow_replica[i]);
    add_integer(x, trace->flow_from[i]);
    add_integer(x, trace->flow_to[i]);
    add_known(x, trace->flow_chunk[i]);
    add_known(x, trace->flow_microbatch[i]);
    add_known(x, trace->flow_out[i]);
    add_known(x, trace->flow_in[i]);
    add_real(x, trace->flow_bytes[i]);
    add_integer(x, trace->flow_ready_ps[i]);
    add_integer(x, trace->flow_start_ps[i]);
    add_integer(x, trace->flow_end_ps[i]);
    add_integer(x, trace->flow_alone_ps[i]);
}

static void add_queued(tables *x, int64_t i) {
    add_pass_cells(x, &x->trace->pass[i]);
    add_integer(x, x->engine->queue_ready_ps[i]);
    add_integer(x, x->trace->pass_start_ps[i]);
    add_integer(x, x->trace->pass_start_ps[i] - x->engine->queue_ready_ps[i]);
}

static void add_memory(tables *x, int64_t i) {
    int device = x->engine->memory_device[i];
    int64_t capacity = device < x->engine->devices ? x->engine->memory_capacity_bytes[device] : PC_NO_LIMIT;
    add_integer(x, x->engine->memory_time_ps[i]);
    add_integer(x, x->engine->memory_bytes[i]);
    add_known(x, capacity != PC_NO_LIMIT ? capacity : -1);
}

static void add_work(tables *x, int64_t i) {
    add_integer(x, x->engine->work_replica[i]);
    add_integer(x, x->engine->work_device[i]);
    add_integer(x, x->engine->work_start_ps[i]);
    add_integer(x, x->engine->work_end_ps[i]);
}

/* --- the tables --- */

typedef void add_row(tables *x, int64_t row);

typedef struct table {
    const char *head;
    add_row *add;
    int64_t rows;
    const int32_t *first; /* cells; NULL: the row's number, or, of work, what it is */
} table;

static table find_table(const tables *x, pc_export_sort sort) {
    const pc_replay_trace *trace = x->trace;
    const pc_engine_trace *engine = x->engine;
    switch (sort) {
    case PC_EXPORT_PASSES:
        return (table){"device,kind,chunk,microbatch,start_ps,end_ps", add_pass, trace->pass_count, trace->pass_device};
    case PC_EXPORT_TRANSFERS:
        return (table){"from,to,kind,chunk,microbatch,start_ps,end_ps", add_transfer, trace->transfer_count,
                       trace->transfer_from};
    case PC_EXPORT_LEVELS:
        return (table){"device,time_ps,bytes", add_level, trace->level_count, trace->level_device};
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

static void add_rows(tables *x, pc_export_sort sort) {
    const table of = find_table(x, sort);
    pc_text_printf(&x->out.text, "%s\n", of.head);
    for (int64_t i = 0; i < of.rows; i++) {
        if (sort == PC_EXPORT_WORK)
            pc_text_printf(&x->out.text, "%s", pc_work_sort_name((pc_work_sort)x->engine->work_sort[i]));
        else
            pc_text_printf(&x->out.text, "%" PRId64, of.first ? of.first[i] : i);
        of.add(x, i);
        pc_text_add(&x->out.text, "\n", 1);
        pc_outlet_step(&x->out);
    }
}

static pc_code write_rows(tables *x, pc_export_sort sort, pc_error *error) {
    pc_number_scope scope = {0};
    pc_code code = sort == PC_EXPORT_LINKS ? pc_link_use_make(x->engine, &x->use, error) : PC_OK;
    if (code) return code;
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    add_rows(x, sort);
    pc_number_scope_leave(&scope);
    return pc_outlet_end(&x->out, error);
}

pc_code pc_export_table(pc_export_sort sort, const pc_trace_record *record, FILE *stream, pc_error *error) {
    tables x = {.trace = &record->replay.trace, .engine = &record->replay.engine, .out = {.stream = stream}};
    if (sort >= PC_EXPORT_LINKS && x.engine->queue_count == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "kept no trace of the engine; expected one of a run with "
                            "`engine: events` and `trace: true`");
    x.with_replica = pc_link_has_replicas(x.engine);
    pc_code code = write_rows(&x, sort, error);
    pc_free(x.use);
    return code;
}
