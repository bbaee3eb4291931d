#include "results/store/store_private.h"

#include "engine/alloc.h"

#include <stddef.h>

/* A pass of the block; the file has a row for each, in the order of pc_block's `start`. */
typedef struct block_row {
    int32_t device, microbatch;
    int16_t chunk, kind;
    int64_t start_cells, duration_cells;
} block_row;

#define ROW(column_name, kind, member, text)                                                                           \
    { .name = column_name, .unit = "1", .description = text, .type = PC_FIELD_##kind, PC_FIELD_AT(block_row, member) }

static const pc_field columns[] = {
    ROW("block_device", INT32, device, "stage of the pipeline that runs the pass of the building block"),
    ROW("block_chunk", INT16, chunk, "chunk of the stage, from 0"),
    {.name = "block_kind",
     .unit = "1",
     .description = "F forward, B backward for the input, W for the weights, BW both, R recompute",
     .type = PC_FIELD_INT16,
     .choices = pc_pass_kind_names,
     PC_FIELD_AT(block_row, kind)},
    ROW("block_microbatch", INT32, microbatch, "microbatch within the block, from 0"),
    ROW("block_start_cells", INT64, start_cells, "start of the pass on the block's own clock, in cells"),
    ROW("block_duration_cells", INT64, duration_cells, "duration of the pass, in cells"),
};

static const pc_fields of_block = {columns, sizeof columns / sizeof *columns, sizeof(block_row)};

/* More than any block has; sums of a few of them can be counted. */
#define CELLS_MAX (INT64_C(1) << 48)

/* --- writing --- */

/* Fills `rows` where it is not NULL; returns how many there are. */
static int64_t list_rows(const pc_block *block, block_row *rows) {
    int64_t count = 0;
    for (int i = 0; i < block->microbatches; i++)
        for (int d = 0; d < block->devices; d++)
            for (int c = 0; c < block->chunks; c++)
                for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                    int64_t start = pc_block_start(block, i, d, c, kind);
                    if (start == PC_TIME_NOT_GIVEN) continue;
                    if (rows) rows[count] = (block_row){d, i, (int16_t)c, (int16_t)kind, start, block->duration[kind]};
                    count++;
                }
    return count;
}

pc_code pc_store_block_write(hid_t group, const pc_block *block, pc_error *error) {
    int64_t interval = block->devices ? block->interval : 0;
    if (!pc_h5_put_integer(group, "block_interval", interval)) return pc_store_fail(error);
    if (interval == 0) return PC_OK;
    int64_t count = list_rows(block, NULL);
    block_row *rows = pc_alloc((size_t)count, sizeof *rows);
    if (!rows) return pc_error_no_memory(error);
    list_rows(block, rows);
    pc_code code = pc_fields_write_whole(group, &of_block, rows, count, error);
    pc_free(rows);
    return code;
}

/* --- reading --- */

static pc_code check_row(const pc_trace_record *record, const block_row *row, pc_error *error) {
    if (!pc_store_is_within(row->device, 0, record->devices)) return pc_store_refuse(error, "block_device");
    if (!pc_store_is_within(row->chunk, 0, record->chunks)) return pc_store_refuse(error, "block_chunk");
    if (!pc_store_is_within(row->kind, 0, PC_PASS_KINDS)) return pc_store_refuse(error, "block_kind");
    if (!pc_store_is_within(row->microbatch, 0, PC_MICROBATCHES_MAX)) return pc_store_refuse(error, "block_microbatch");
    if (!pc_store_is_within(row->start_cells, 0, CELLS_MAX)) return pc_store_refuse(error, "block_start_cells");
    if (!pc_store_is_within(row->duration_cells, 1, CELLS_MAX)) return pc_store_refuse(error, "block_duration_cells");
    return PC_OK;
}

/* Puts a row into its place, which must be free, and whose kind must last as long elsewhere. */
static pc_code take_row(const block_row *row, pc_block *block, pc_error *error) {
    int64_t *start = &block->start[pc_block_index(block, row->microbatch, row->device, row->chunk, row->kind)];
    int64_t *duration = &block->duration[row->kind];
    if (*start != PC_TIME_NOT_GIVEN) return pc_store_refuse(error, "block_kind");
    if (*duration != 0 && *duration != row->duration_cells) return pc_store_refuse(error, "block_duration_cells");
    *start = row->start_cells;
    *duration = row->duration_cells;
    return PC_OK;
}

/* A microbatch has at least an F and a B on every stage that it visits, and so on one chunk in two: the number of rows,
 * which the file bears out, bounds what a block is made of. */
static pc_code make_block(const pc_trace_record *record, const block_row *rows, int64_t count, int64_t interval,
                          pc_block *block, pc_error *error) {
    int64_t last = 0;
    for (int64_t i = 0; i < count; i++) {
        pc_code code = check_row(record, &rows[i], error);
        if (code) return code;
        if (rows[i].microbatch > last) last = rows[i].microbatch;
    }
    if ((last + 1) * record->devices > count / record->chunks) return pc_store_refuse(error, "block_microbatch");
    pc_code code = pc_block_create(record->placement, record->devices, record->chunks, (int)last + 1, block, error);
    if (code) return code;
    block->interval = interval;
    for (int64_t i = 0; i < count && !code; i++) code = take_row(&rows[i], block, error);
    if (code) pc_block_free(block);
    return code;
}

pc_code pc_store_block_read(hid_t group, pc_trace_record *record, pc_error *error) {
    int64_t interval = 0, count = 0;
    void *rows = NULL;
    if (!pc_h5_has(group, columns[0].name)) return PC_OK;
    if (!pc_h5_get_integer(group, "block_interval", &interval) || !pc_store_is_within(interval, 1, CELLS_MAX))
        return pc_store_refuse(error, "block_interval");
    pc_code code = pc_fields_read(group, NULL, &of_block, &rows, &count, error);
    if (!code && count > PC_PASSES_MAX) code = pc_store_refuse(error, columns[0].name);
    if (!code) code = make_block(record, rows, count, interval, &record->block, error);
    pc_free(rows);
    return code;
}
