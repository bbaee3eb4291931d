/* A row of a table that is a message of a size, or dispatch and combine of experts. */
#include "calib/import/import_private.h"

#include <stdio.h>
#include <string.h>

pc_code pc_import_add_transfer(pc_import *import, pc_transfer_measurement *transfer, double seconds, pc_error *error) {
    transfer->seconds = (pc_statistics){1, seconds, seconds, seconds, seconds, seconds, seconds};
    transfer->algbw = transfer->size_bytes / seconds;
    transfer->busbw = transfer->algbw * pc_import_bus_factor(transfer->collective, transfer->ranks);
    return pc_profile_add_transfer(import->into, transfer, NULL, error);
}

static pc_code take(const pc_import_row *row, pc_transfer_measurement *transfer, double seconds, pc_error *error) {
    if (!(seconds > 0.0)) return pc_import_leave_out(row->import, PC_IMPORT_NO_TIME), PC_OK;
    pc_code code = pc_import_add_transfer(row->import, transfer, seconds, error);
    return code ? code : pc_import_note_taken(row->import, true, error);
}

/* A type that kernels do not have is kept as it stands: messages are bytes. */
static double read_dtype(const pc_import_row *row, double otherwise, char dtype[16]) {
    const char *cell = pc_import_row_cell(row, PC_COLUMN_DTYPE);
    const pc_import_dtype *known = cell[0] ? pc_import_dtype_of(cell) : NULL;
    snprintf(dtype, 16, "%.15s", known ? known->profile : cell);
    return known ? known->bytes : otherwise;
}

/* ---- collectives ---- */

static pc_code read_names(const pc_import_row *row, pc_transfer_measurement *transfer, pc_error *error) {
    const pc_import_options *options = row->import->options;
    const char *name = pc_import_operation(row->table, row->cell), *link = pc_import_row_cell(row, PC_COLUMN_LINK);
    bool has_name = pc_import_has(row->table, PC_COLUMN_OP) || pc_import_has(row->table, PC_COLUMN_KERNEL);
    if (name[0] == '\0' && options->collective) name = options->collective;
    const char *collective = pc_import_collective(name);
    if (!collective && !has_name)
        return pc_import_refuse(&row->import->text, error,
                                "no column says which collective this is; expected one named collective, or "
                                "--collective with " PC_IMPORT_COLLECTIVES);
    if (!collective)
        return pc_import_refuse(&row->import->text, error, "the collective '%.40s'; expected " PC_IMPORT_COLLECTIVES,
                                name);
    snprintf(transfer->collective, sizeof transfer->collective, "%s", collective);
    snprintf(transfer->link, sizeof transfer->link, "%s", pc_import_link(options->link ? options->link : link));
    return PC_OK;
}

static pc_code read_ranks(const pc_import_row *row, pc_transfer_measurement *transfer, pc_error *error) {
    int64_t ranks, nodes, wanted_ranks = row->import->options->ranks, wanted_nodes = row->import->options->nodes;
    if (!pc_import_has(row->table, PC_COLUMN_RANKS) && wanted_ranks < 1)
        return pc_import_refuse(&row->import->text, error,
                                "no column says how many ranks there were; expected one named ranks, or --ranks N");
    pc_code code = pc_import_extent(row, PC_COLUMN_RANKS, "ranks", wanted_ranks, &ranks, error);
    if (!code)
        code = pc_import_extent(row, PC_COLUMN_NODES, "nodes", wanted_nodes > 0 ? wanted_nodes : 1, &nodes, error);
    if (code) return code;
    if (ranks < 2 || ranks > 1 << 24 || nodes > ranks)
        return pc_import_refuse(&row->import->text, error,
                                "%lld ranks on %lld nodes; expected at least 2, and no more nodes", (long long)ranks,
                                (long long)nodes);
    transfer->ranks = (int32_t)ranks;
    transfer->nodes = (int32_t)nodes;
    return PC_OK;
}

/* What aiconfigurator calls bytes are elements: of `half` the same count takes the time of twice as many of `int8`, on
 * every GPU and of every collective, and their rates are those of nccl-tests' whole tensors. */
static pc_code read_size(const pc_import_row *row, pc_transfer_measurement *transfer, pc_error *error) {
    bool is_plain = pc_import_has(row->table, PC_COLUMN_BYTES);
    int64_t size;
    double element = read_dtype(row, 2.0, transfer->dtype);
    pc_code code =
        pc_import_extent(row, is_plain ? PC_COLUMN_BYTES : PC_COLUMN_INFERRED_BYTES, "the size", 0, &size, error);
    if (!code) transfer->size_bytes = (double)size * (is_plain ? 1.0 : element);
    return code;
}

static pc_code read_result(const pc_import_row *row, pc_import_column column, pc_transfer_measurement *transfer,
                           pc_error *error) {
    const char *cell = pc_import_row_cell(row, column);
    double seconds;
    bool is_second = column == PC_COLUMN_IN_PLACE_TIME;
    if (is_second && (cell[0] == '\0' || strcmp(cell, "N/A") == 0)) return PC_OK;
    pc_code code = pc_import_seconds(row, column, 0.0, &seconds, error);
    transfer->is_in_place = is_second;
    return code ? code : take(row, transfer, seconds, error);
}

pc_code pc_import_transfer_row(const pc_import_row *row, pc_error *error) {
    pc_transfer_measurement x = {.first_sample = -1, .wrong = -1};
    const char *suspect = pc_import_row_cell(row, PC_COLUMN_SUSPECT);
    pc_code code = read_names(row, &x, error);
    if (!code) code = read_ranks(row, &x, error);
    if (!code) code = read_size(row, &x, error);
    if (code) return code;
    if (suspect[0] != '\0' && !pc_import_same(suspect, "false") && strcmp(suspect, "0") != 0)
        return pc_import_leave_out(row->import, PC_IMPORT_SUSPECT), PC_OK;
    pc_import_source(row, x.library, x.library_version, x.site);
    code = read_result(row, PC_COLUMN_TIME, &x, error);
    return code ? code : read_result(row, PC_COLUMN_IN_PLACE_TIME, &x, error);
}

/* ---- experts ---- */

/* "dispatch" of "alltoall_dispatch"; NULL if it is of no experts' exchange. */
static const char *experts_name(const char *name) {
    static const char *const known[] = {"dispatch", "combine", "prepare", "combine_low_precision"};
    static const char before[] = "alltoall_";
    if (strncmp(name, before, sizeof before - 1) == 0) name += sizeof before - 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (pc_import_same(name, known[i])) return known[i];
    return NULL;
}

bool pc_import_is_of_experts(const pc_import_row *row) {
    if (pc_import_has(row->table, PC_COLUMN_DISPATCH_TIME) || pc_import_has(row->table, PC_COLUMN_COMBINE_TIME))
        return true;
    bool has_tokens = pc_import_has(row->table, PC_COLUMN_TOKENS) && pc_import_has(row->table, PC_COLUMN_HIDDEN);
    return has_tokens && experts_name(pc_import_operation(row->table, row->cell));
}

static pc_code read_tokens(const pc_import_row *row, pc_transfer_measurement *x, pc_error *error) {
    pc_code code = pc_import_extent(row, PC_COLUMN_TOKENS, "tokens", 0, &x->tokens, error);
    if (!code) code = pc_import_extent(row, PC_COLUMN_HIDDEN, "hidden", 0, &x->hidden, error);
    if (!code) code = pc_import_extent(row, PC_COLUMN_TOPK, "topk", 0, &x->topk, error);
    if (!code) code = pc_import_extent(row, PC_COLUMN_EXPERTS, "experts", 0, &x->experts, error);
    if (code) return code;
    x->size_bytes = (double)x->tokens * (double)x->hidden * (double)x->topk;
    if (x->topk <= x->experts && x->size_bytes < 1e17) return PC_OK;
    return pc_import_refuse(
        &row->import->text, error,
        "%lld tokens to %lld of %lld experts; expected no more than there are, and below 1e17 numbers",
        (long long)x->tokens, (long long)x->topk, (long long)x->experts);
}

/* DeepEP's tables say how many nodes there were, and not how many GPUs: nodes of 8, but trays of Grace have 4 (there a
 * token of 22 choices takes no longer than one of 10: both go to all 4). */
static int64_t node_gpus(const pc_import_row *row) {
    char library[PC_IMPORT_SOURCE_SIZE], version[PC_IMPORT_SOURCE_SIZE], site[PC_IMPORT_SOURCE_SIZE];
    pc_import_source(row, library, version, site);
    return strncmp(site, "gb", 2) == 0 ? 4 : 8;
}

static pc_code read_places(const pc_import_row *row, pc_transfer_measurement *x, pc_error *error) {
    int64_t nodes, ranks;
    pc_code code = pc_import_extent(row, PC_COLUMN_NODES, "nodes", 1, &nodes, error);
    if (!code && nodes > 1 << 20)
        code = pc_import_refuse(&row->import->text, error, "%lld nodes; expected at most 2^20", (long long)nodes);
    if (!code) code = pc_import_extent(row, PC_COLUMN_RANKS, "ranks", node_gpus(row) * nodes, &ranks, error);
    if (!code && (ranks < 2 || ranks > 1 << 24))
        code = pc_import_refuse(&row->import->text, error, "%lld ranks; expected 2 to 2^24", (long long)ranks);
    if (code) return code;
    const char *link =
        row->import->options->link ? row->import->options->link : pc_import_row_cell(row, PC_COLUMN_LINK);
    x->nodes = (int32_t)nodes;
    x->ranks = (int32_t)ranks;
    snprintf(x->link, sizeof x->link, "%s", link[0] ? pc_import_link(link) : nodes > 1 ? "network" : "nvlink");
    return PC_OK;
}

/* Bytes of a number that is sent. What comes back is of 16 bits, unless it is said to be of less. Of DeepEP's tables,
 * which say no type, what goes is of 8: of 16 it would be faster than the links. */
static double read_element(const pc_import_row *row, const char *name, pc_transfer_measurement *x) {
    double element = read_dtype(row, 1.0, x->dtype);
    return strcmp(name, "combine") == 0 ? 2.0 : element;
}

/* `both` has no name yet, and its size in numbers. */
static pc_code read_exchange(const pc_import_row *row, const char *name, pc_import_column time, pc_import_column sms,
                             const pc_transfer_measurement *both, pc_error *error) {
    pc_transfer_measurement made = *both, *x = &made;
    int64_t count = 0;
    double seconds;
    if (pc_import_row_cell(row, time)[0] == '\0' && time != PC_COLUMN_TIME) return PC_OK;
    if (pc_import_row_cell(row, sms)[0] != '\0') {
        pc_code code = pc_import_extent(row, sms, "the SMs", 0, &count, error);
        if (code) return code;
    }
    if (count > INT32_MAX) return pc_import_refuse(&row->import->text, error, "more than 2^31 SMs; expected fewer");
    x->sms = (int32_t)count;
    snprintf(x->collective, sizeof x->collective, "%s", name);
    x->size_bytes *= read_element(row, name, x);
    pc_code code = pc_import_seconds(row, time, 0.0, &seconds, error);
    return code ? code : take(row, x, seconds, error);
}

pc_code pc_import_experts_row(const pc_import_row *row, pc_error *error) {
    pc_transfer_measurement x = {.first_sample = -1, .wrong = -1};
    pc_code code = read_tokens(row, &x, error);
    if (!code) code = read_places(row, &x, error);
    if (code) return code;
    pc_import_source(row, x.library, x.library_version, x.site);
    const char *name = experts_name(pc_import_operation(row->table, row->cell));
    if (name) return read_exchange(row, name, PC_COLUMN_TIME, PC_COLUMN_SMS, &x, error);
    code = read_exchange(row, "dispatch", PC_COLUMN_DISPATCH_TIME, PC_COLUMN_DISPATCH_SMS, &x, error);
    return code ? code : read_exchange(row, "combine", PC_COLUMN_COMBINE_TIME, PC_COLUMN_COMBINE_SMS, &x, error);
}
