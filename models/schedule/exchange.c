#include "models/schedule/exchange.h"

#include "engine/alloc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* ---- writing ---- */

static void write_pass(const pc_schedule *schedule, pc_pass pass, FILE *stream) {
    char kind[8];
    snprintf(kind, sizeof kind, "%s", pc_pass_kind_name((pc_pass_kind)pass.kind));
    if (schedule->chunks > 2) {
        fprintf(stream, "%s%d.%d", kind, pass.microbatch, pass.chunk);
        return;
    }
    if (pass.chunk == 1)
        for (char *c = kind; *c; c++) *c = (char)tolower((unsigned char)*c);
    fprintf(stream, "%s%d", kind, pass.microbatch);
}

void pc_schedule_write_text(const pc_schedule *schedule, FILE *stream) {
    for (int d = 0; d < schedule->devices; d++) {
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            if (i > schedule->offsets[d]) fputc(' ', stream);
            write_pass(schedule, schedule->passes[i], stream);
        }
        fputc('\n', stream);
    }
}

/* PyTorch's letters for our kinds: its B is the whole backward pass. */
static const char *const torch_action[PC_PASS_KINDS] = {
    [PC_PASS_F] = "F",  [PC_PASS_B] = "I", [PC_PASS_W] = "W", [PC_PASS_BW] = "B",
    [PC_PASS_R] = NULL, [PC_PASS_S] = "S", [PC_PASS_T] = "T"};

pc_code pc_schedule_write_torch_csv(const pc_schedule *schedule, FILE *stream, pc_error *error) {
    if (pc_schedule_has(schedule, PC_PASS_R))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: has recompute passes; expected only F, B, W and BW, which PyTorch's runtime knows",
                            schedule->name);
    if (schedule->placement == PC_PLACEMENT_BIDIRECTIONAL)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: has two replicas of the model; expected one, which PyTorch's runtime knows",
                            schedule->name);
    if (pc_placement_has_slices(schedule->placement))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: has slices of microbatches; expected whole ones, which PyTorch's runtime knows",
                            schedule->name);
    for (int d = 0; d < schedule->devices; d++) {
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            pc_pass pass = schedule->passes[i];
            int part = pc_placement_part(schedule->placement, schedule->devices, d, pass.chunk);
            bool is_second = pc_schedule_is_second(schedule, i);
            const char *before = i == schedule->offsets[d] ? "" : is_second ? ";" : ",";
            fprintf(stream, "%s%s%d%s%d%s", before, pc_schedule_pairs_at(schedule, i) ? "(" : "", part,
                    torch_action[pass.kind], pass.microbatch, is_second ? ")OVERLAP_F_B" : "");
        }
        fputc('\n', stream);
    }
    return PC_OK;
}

/* ---- reading ---- */

bool pc_schedule_is_file(const char *name) {
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 4 && strcmp(name + length - 4, ".csv") == 0);
}

enum { FILE_SIZE_MAX = 1 << 30 };

/* A cell before the shape is known: `part` is what the file says. */
typedef struct cell {
    int32_t part, microbatch;
    int16_t kind;
    bool begins_pair;
} cell;

typedef struct reader {
    const char *path;
    cell *cells;
    int64_t cell_count, cell_capacity;
    int64_t *ends; /* a number a line: the cells up to its end */
    int64_t line_count, line_capacity;
    pc_error *error;
} reader;

static pc_code read_file(const char *path, char **text, size_t *size, pc_error *error) {
    FILE *file = fopen(path, "rb");
    size_t used = 0, capacity = 1 << 16;
    char *buffer = NULL;
    if (!file) return pc_error_file(error, path, errno, "a CSV file");
    for (;; capacity *= 2) {
        char *grown = capacity <= FILE_SIZE_MAX ? pc_realloc(buffer, capacity, 1) : NULL;
        if (!grown) break;
        buffer = grown;
        used += fread(buffer + used, 1, capacity - 1 - used, file);
        if (used < capacity - 1) break;
    }
    bool failed = ferror(file) != 0, is_whole = feof(file) != 0;
    int reason = errno;
    fclose(file);
    if (buffer && is_whole && !failed) {
        buffer[used] = '\0';
        *text = buffer;
        *size = used;
        return PC_OK;
    }
    pc_free(buffer);
    if (failed) return pc_error_file(error, path, reason, "a CSV file");
    if (capacity > FILE_SIZE_MAX)
        return pc_error_set_file(error, PC_ERROR_INPUT, path, "over %d bytes; expected a schedule", FILE_SIZE_MAX);
    return pc_error_no_memory(error);
}

static pc_code cell_error(const reader *input, int64_t column, const char *start, const char *end,
                          const char *expected) {
    int length = end - start > 40 ? 40 : (int)(end - start);
    char key[32];
    snprintf(key, sizeof key, "cell %" PRId64, column);
    return pc_error_refuse(input->error, input->path, (unsigned)input->line_count + 1, key, "'%.*s'; expected %s",
                           length, start, expected);
}

/* A whole number of at most `most`; -1 where there is none or it is larger. Moves *at behind the digits. */
static int32_t take_number(const char **at, const char *end, int32_t most) {
    const char *start = *at;
    int64_t number = 0;
    while (*at < end && isdigit((unsigned char)**at)) {
        number = number * 10 + (**at - '0');
        if (number > most) return -1;
        ++*at;
    }
    return *at == start ? -1 : (int32_t)number;
}

static int16_t kind_of_letter(char letter) {
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (torch_action[kind] && torch_action[kind][0] == letter) return (int16_t)kind;
    return -1;
}

static pc_code add_cell(reader *input, cell made) {
    if (input->cell_count == input->cell_capacity) {
        int64_t grown = input->cell_capacity ? 2 * input->cell_capacity : 1024;
        if (grown > 2 * PC_PASSES_MAX)
            return pc_error_set_file(input->error, PC_ERROR_INPUT, input->path,
                                     "over %" PRId64 " passes; expected at most %" PRId64, input->cell_count,
                                     PC_PASSES_MAX);
        cell *cells = pc_realloc(input->cells, (size_t)grown, sizeof *cells);
        if (!cells) return pc_error_no_memory(input->error);
        input->cells = cells;
        input->cell_capacity = grown;
    }
    input->cells[input->cell_count++] = made;
    return PC_OK;
}

/* What PyTorch's runtime adds to the passes, and writes unless it is told not to. Sending is the replay's own affair,
 * and nothing is sharded here. */
static bool is_communication(const char *start, const char *end) {
    static const char *const names[] = {"SEND_F",      "RECV_F",  "SEND_B",  "RECV_B",      "WAIT_SEND_F",
                                        "WAIT_SEND_B", "UNSHARD", "RESHARD", "REDUCE_GRAD", "WAIT_REDUCE_GRAD"};
    size_t length = (size_t)(end - start);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && memcmp(names[i], start, length) == 0) return true;
    return false;
}

/* A pass, or communication: its kind is -1, and it may lack the microbatch. */
static bool read_action(const char *start, const char *end, cell *made) {
    const char *at = start;
    made->part = take_number(&at, end, PC_DEVICES_MAX * 64);
    const char *name = at;
    while (at < end && (isupper((unsigned char)*at) || *at == '_')) at++;
    bool communicates = is_communication(name, at);
    made->kind = (int16_t)(at - name == 1 ? kind_of_letter(*name) : -1);
    made->microbatch = communicates && at == end ? 0 : take_number(&at, end, PC_MICROBATCHES_MAX - 1);
    return made->part >= 0 && (made->kind >= 0 || communicates) && made->microbatch >= 0 && at == end;
}

/* Two passes that PyTorch calls overlapped are one cell: (0F4;7B2)OVERLAP_F_B. */
static pc_code read_cell(reader *input, int64_t column, const char *start, const char *end) {
    static const char overlap[] = ")OVERLAP_F_B";
    const ptrdiff_t tail = sizeof overlap - 1;
    while (start < end && isspace((unsigned char)*start)) start++;
    while (end > start && isspace((unsigned char)end[-1])) end--;
    if (start == end) return PC_OK;
    bool is_overlap = *start == '(' && end - start > tail && memcmp(end - tail, overlap, (size_t)tail) == 0;
    const char *at = is_overlap ? start + 1 : start, *last = is_overlap ? end - tail : end;
    int64_t before = input->cell_count;
    for (;;) {
        const char *semicolon = is_overlap ? memchr(at, ';', (size_t)(last - at)) : NULL;
        cell made = {.begins_pair = false};
        if (!read_action(at, semicolon ? semicolon : last, &made))
            return cell_error(input, column, start, end,
                              "<part><F, I, W, B, S or T><microbatch> such as 0F0, or nothing");
        pc_code code = made.kind >= 0 ? add_cell(input, made) : PC_OK;
        bool is_pair = is_overlap && input->cell_count == before + 2;
        if (!code && is_pair) input->cells[before].begins_pair = true;
        if (code || !semicolon) return code;
        at = semicolon + 1;
    }
}

static pc_code end_line(reader *input) {
    if (input->line_count == PC_DEVICES_MAX)
        return pc_error_set_file(input->error, PC_ERROR_INPUT, input->path, "over %d lines; expected one for each rank",
                                 PC_DEVICES_MAX);
    if (input->line_count == input->line_capacity) {
        int64_t grown = input->line_capacity ? 2 * input->line_capacity : 64;
        int64_t *ends = pc_realloc(input->ends, (size_t)grown, sizeof *ends);
        if (!ends) return pc_error_no_memory(input->error);
        input->ends = ends;
        input->line_capacity = grown;
    }
    input->ends[input->line_count++] = input->cell_count;
    return PC_OK;
}

static pc_code read_line(reader *input, const char *start, const char *end) {
    for (int64_t column = 1;; column++) {
        const char *comma = memchr(start, ',', (size_t)(end - start));
        pc_code code = read_cell(input, column, start, comma ? comma : end);
        if (code) return code;
        if (!comma) return end_line(input);
        start = comma + 1;
    }
}

static pc_code read_lines(reader *input, const char *text, size_t size) {
    const char *end = text + size;
    while (end > text && isspace((unsigned char)end[-1])) end--; /* empty lines at the end are none */
    if (end == text)
        return pc_error_set_file(input->error, PC_ERROR_INPUT, input->path, "empty; expected a line for each rank");
    for (const char *line = text; line <= end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        pc_code code = read_line(input, line, newline ? newline : end);
        if (code) return code;
        line = newline ? newline + 1 : end + 1;
    }
    return PC_OK;
}

/* ---- from cells to a schedule ---- */

typedef struct shape {
    int32_t devices, microbatches, chunks;
    pc_placement placement;
} shape;

/* The check makes room for every pass that the numbers promise: a short file shall not ask for much. One that lacks
 * some passes is left to the check, which says which. */
static pc_code check_numbers(const reader *input, int32_t microbatches, int32_t parts) {
    if ((int64_t)microbatches * parts <= 8 * input->cell_count) return PC_OK;
    return pc_error_set_file(input->error, PC_ERROR_INPUT, input->path,
                             "%" PRId64 " passes for microbatches up to %d of %d parts; expected a forward and a "
                             "backward pass of each",
                             input->cell_count, microbatches - 1, parts);
}

/* p from the lines; v and m from the largest numbers; the placement from the rank that holds part p, the first of the
 * second chunks. */
static pc_code find_shape(const reader *input, shape *found) {
    int32_t parts = 0;
    int64_t rank = 0;
    *found = (shape){.devices = (int32_t)input->line_count, .placement = PC_PLACEMENT_LINEAR};
    for (int64_t i = 0; i < input->cell_count; i++) {
        while (i >= input->ends[rank]) rank++;
        const cell *c = &input->cells[i];
        if (c->part >= parts) parts = c->part + 1;
        if (c->microbatch >= found->microbatches) found->microbatches = c->microbatch + 1;
        if (c->part == found->devices)
            found->placement = rank == found->devices - 1 && rank > 0 ? PC_PLACEMENT_V : PC_PLACEMENT_INTERLEAVED;
    }
    if (parts == 0 || parts % found->devices != 0)
        return pc_error_set_file(input->error, PC_ERROR_INPUT, input->path,
                                 "%d parts on %d ranks; expected the same number of parts on each rank", parts,
                                 found->devices);
    found->chunks = parts / found->devices;
    return check_numbers(input, found->microbatches, parts);
}

static pc_code place_cells(const reader *input, const shape *found, pc_schedule *schedule) {
    int64_t i = 0;
    for (int rank = 0; rank < found->devices; rank++)
        for (int64_t first = i; i < input->ends[rank]; i++) {
            const cell *c = &input->cells[i];
            int expected = pc_placement_stage(found->placement, found->devices, c->part, c->microbatch);
            if (expected != rank)
                return pc_error_refuse(input->error, input->path, (unsigned)rank + 1, "",
                                       "pass %" PRId64 ": part %d on rank %d; expected it on rank %d, as placement %s "
                                       "has it",
                                       i - first + 1, c->part, rank, expected, pc_placement_name(found->placement));
            int chunk = pc_placement_chunk(found->placement, found->devices, c->part, c->microbatch);
            schedule->passes[i] = (pc_pass){c->microbatch, (int16_t)chunk, c->kind};
            pc_code code = c->begins_pair ? pc_schedule_add_pairs(schedule, input->error) : PC_OK;
            if (code) return code;
            if (c->begins_pair) schedule->pairs[i] = 1;
        }
    return PC_OK;
}

static pc_code make_schedule(const reader *input, pc_schedule *schedule) {
    shape found;
    pc_code code = find_shape(input, &found);
    if (!code) code = pc_schedule_check_size(found.devices, found.microbatches, found.chunks, input->error);
    if (code) return code;
    const char *slash = strrchr(input->path, '/');
    int64_t *lengths = pc_alloc((size_t)found.devices, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(input->error);
    for (int rank = 0; rank < found.devices; rank++)
        lengths[rank] = input->ends[rank] - (rank ? input->ends[rank - 1] : 0);
    code = pc_schedule_create(slash ? slash + 1 : input->path, found.devices, found.microbatches, found.chunks,
                              found.placement, lengths, schedule, input->error);
    pc_free(lengths);
    if (code) return code;
    code = place_cells(input, &found, schedule);
    if (!code) schedule->barriers = pc_schedule_find_barriers(schedule);
    if (code) pc_schedule_free(schedule);
    return code;
}

pc_code pc_schedule_read_torch_csv(const char *path, pc_schedule *schedule, pc_error *error) {
    reader x = {.path = path, .error = error};
    char *text = NULL;
    size_t size = 0;
    pc_schedule made;
    pc_code code = read_file(path, &text, &size, error);
    if (!code) code = read_lines(&x, text, size);
    if (!code) code = make_schedule(&x, &made);
    if (!code) *schedule = made;
    pc_free(text);
    pc_free(x.cells);
    pc_free(x.ends);
    return code;
}
