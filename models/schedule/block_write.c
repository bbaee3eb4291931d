#include "models/schedule/block_write.h"

#include "engine/alloc.h"
#include "models/schedule/given_block.h"
#include "models/schedule/timing.h"

#include <inttypes.h>
#include <string.h>

/* ---- the schedule in cells ---- */

/* When every pass starts, with each as long as its cells and transfers free: [microbatches][devices][chunks]
 * [PC_PASS_KINDS], as in a block of all microbatches; PC_TIME_NOT_GIVEN where there is no such pass. */
typedef struct grid {
    int devices, chunks, microbatches;
    int64_t *start; /* owned */
    int64_t makespan;
} grid;

static int64_t grid_index(const grid *g, int microbatch, int device, int chunk, int kind) {
    return (((int64_t)microbatch * g->devices + device) * g->chunks + chunk) * PC_PASS_KINDS + kind;
}

static void fill_grid(const pc_schedule *schedule, const pc_time *start, grid *g) {
    int64_t count = grid_index(g, g->microbatches, 0, 0, 0);
    for (int64_t i = 0; i < count; i++) g->start[i] = PC_TIME_NOT_GIVEN;
    for (int d = 0; d < g->devices; d++)
        for (int64_t k = schedule->offsets[d]; k < schedule->offsets[d + 1]; k++) {
            pc_pass pass = schedule->passes[k];
            g->start[grid_index(g, pass.microbatch, d, pass.chunk, pass.kind)] = start[k];
        }
}

static pc_code time_grid(const pc_schedule *schedule, grid *g, pc_error *error) {
    pc_costs costs = {0};
    pc_timing *timing = NULL;
    pc_timing_result result;
    *g = (grid){.devices = schedule->devices, .chunks = schedule->chunks, .microbatches = schedule->microbatches};
    g->start = pc_alloc((size_t)grid_index(g, g->microbatches, 0, 0, 0), sizeof *g->start);
    pc_code code =
        g->start ? pc_costs_create(schedule->devices, schedule->chunks, &costs, error) : pc_error_no_memory(error);
    for (int64_t i = 0; !code && i < (int64_t)g->devices * g->chunks * PC_PASS_KINDS; i++)
        costs.duration_ps[i] = i % PC_PASS_KINDS == PC_PASS_BW ? 2 : 1;
    if (!code) code = pc_timing_create(&timing, error);
    if (!code) code = pc_timing_run(timing, schedule, &costs, &result, error);
    if (!code) {
        fill_grid(schedule, result.start_ps, g);
        g->makespan = result.totals.makespan_ps;
    }
    pc_timing_free(timing);
    pc_costs_free(&costs);
    return code;
}

/* ---- how the block makes the schedule ---- */

/* What is to be written. */
typedef struct recipe {
    const pc_block *block;
    pc_block_steps steps;
    pc_block_line *ends; /* end_count of them, a number a device each; owned */
    int end_count;
    bool is_reordered; /* whether the block alone, reordered, gives the schedule at its own times */
    bool is_own;
    pc_block whole; /* `block`, where that is the whole iteration; owned */
} recipe;

static void free_ends(recipe *draft) {
    for (int i = 0; i < draft->end_count; i++) pc_free(draft->ends[i].offset);
    pc_free(draft->ends);
    draft->ends = NULL;
    draft->end_count = 0;
}

static void free_recipe(recipe *draft) {
    free_ends(draft);
    pc_block_free(&draft->whole);
}

static bool is_same(const pc_schedule *a, const pc_schedule *b) {
    int64_t count = a->offsets[a->devices];
    if (count != b->offsets[b->devices]) return false;
    return memcmp(a->offsets, b->offsets, ((size_t)a->devices + 1) * sizeof *a->offsets) == 0 &&
           memcmp(a->passes, b->passes, (size_t)count * sizeof *a->passes) == 0;
}

/* Whether the recipe gives this schedule. */
static pc_code judge(const pc_block_text_request *wanted, const recipe *draft, bool *is_right, pc_error *error) {
    pc_schedule made;
    pc_error cause = {0};
    pc_code code = pc_schedule_of_block(draft->block, draft->ends, draft->end_count, wanted->schedule->name,
                                        wanted->schedule->microbatches, &made, NULL, &cause);
    *is_right = false;
    if (!code) {
        if (draft->steps == PC_BLOCK_REORDER)
            code = pc_schedule_reorder(draft->block, wanted->costs, wanted->memory_limit, &made, &cause);
        if (!code) *is_right = is_same(&made, wanted->schedule);
        pc_schedule_free(&made);
    }
    return code == PC_ERROR_NO_MEMORY ? pc_error_no_memory(error) : PC_OK;
}

/* A pass of all devices: what kind and chunk, of which microbatch of the iteration. */
typedef struct row {
    int microbatch, chunk, kind;
} row;

static int64_t shifted_start(const pc_block *block, row at, int device, int64_t shift) {
    int of_block = at.microbatch % block->microbatches;
    return pc_block_start(block, of_block, device, at.chunk, at.kind) +
           at.microbatch / block->microbatches * block->interval + shift;
}

static bool is_in_block(const pc_block *block, row at) {
    return block->duration[at.kind] > 0 && pc_placement_visits(block->placement, at.chunk, at.microbatch);
}

static bool differs(const grid *g, const pc_block *block, row at, int64_t shift) {
    if (!is_in_block(block, at)) return false;
    for (int d = 0; d < g->devices; d++)
        if (g->start[grid_index(g, at.microbatch, d, at.chunk, at.kind)] != shifted_start(block, at, d, shift))
            return true;
    return false;
}

static row row_of(const grid *g, int64_t index) {
    int kind = (int)(index % PC_PASS_KINDS), chunk = (int)(index / PC_PASS_KINDS % g->chunks);
    return (row){(int)(index / PC_PASS_KINDS / g->chunks), chunk, kind};
}

static int64_t rows_of(const grid *g) {
    return (int64_t)g->microbatches * g->chunks * PC_PASS_KINDS;
}

static int64_t count_rows(const grid *g, const pc_block *block, int64_t shift) {
    int64_t count = 0;
    for (int64_t i = 0; i < rows_of(g); i++) count += differs(g, block, row_of(g, i), shift);
    return count;
}

enum { ANCHORS = 48 }; /* from so many microbatches on not each is tried */

/* How far the block's grid lies behind the schedule's where most passes agree: that of the first F of one of its
 * microbatches. */
static int64_t find_shift(const grid *g, const pc_block *block) {
    int64_t best = INT64_MAX, found = 0, step = 1 + g->microbatches / ANCHORS;
    for (int64_t i = 0; i < g->microbatches; i += step) {
        row first = {(int)i, 0, PC_PASS_F};
        if (!is_in_block(block, first)) continue;
        int64_t shift = g->start[grid_index(g, (int)i, 0, 0, PC_PASS_F)] - shifted_start(block, first, 0, 0);
        int64_t count = count_rows(g, block, shift);
        if (count >= best) continue;
        best = count;
        found = shift;
    }
    return found;
}

/* Those of the second half count from the iteration's end. */
static pc_code add_end(const grid *g, const pc_block *block, row at, int64_t shift, recipe *draft, pc_error *error) {
    pc_block_line *line = &draft->ends[draft->end_count];
    *line = (pc_block_line){.kind = (pc_pass_kind)at.kind, .chunk = at.chunk, .microbatch = at.microbatch};
    line->offset = pc_alloc((size_t)g->devices, sizeof *line->offset);
    if (!line->offset) return pc_error_no_memory(error);
    line->offset_count = g->devices;
    if (at.microbatch >= g->microbatches / 2) line->microbatch = at.microbatch - g->microbatches;
    for (int d = 0; d < g->devices; d++)
        line->offset[d] = g->start[grid_index(g, at.microbatch, d, at.chunk, at.kind)] - shift -
                          at.microbatch / block->microbatches * block->interval;
    draft->end_count++;
    return PC_OK;
}

static pc_code list_ends(const grid *g, const pc_block *block, recipe *draft, pc_error *error) {
    int64_t shift = find_shift(g, block), count = count_rows(g, block, shift);
    draft->ends = pc_alloc((size_t)count + 1, sizeof *draft->ends);
    pc_code code = draft->ends ? PC_OK : pc_error_no_memory(error);
    for (int64_t i = 0; i < rows_of(g) && !code; i++)
        if (differs(g, block, row_of(g, i), shift)) code = add_end(g, block, row_of(g, i), shift, draft, error);
    return code;
}

/* Put down again when all is over. */
static pc_code take_whole(const pc_schedule *schedule, const grid *g, recipe *draft, pc_error *error) {
    int microbatches = g->microbatches;
    if (schedule->placement == PC_PLACEMENT_BIDIRECTIONAL) microbatches += microbatches % 2;
    pc_code code = pc_block_create(schedule->placement, g->devices, g->chunks, microbatches, &draft->whole, error);
    if (code) return code;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (pc_schedule_has(schedule, (pc_pass_kind)kind)) draft->whole.duration[kind] = kind == PC_PASS_BW ? 2 : 1;
    memcpy(draft->whole.start, g->start, (size_t)grid_index(g, g->microbatches, 0, 0, 0) * sizeof *g->start);
    draft->whole.interval = g->makespan;
    draft->block = &draft->whole;
    return PC_OK;
}

/* A microbatch that the block has and an odd iteration has not stands where the one before does, behind all else. */
static void complete_whole(const grid *g, recipe *draft) {
    pc_block *b = &draft->whole;
    if (b->microbatches == g->microbatches) return;
    int64_t end = 0;
    for (int d = 0; d < b->devices; d++)
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
            int chunk = g->microbatches % 2;
            if (b->duration[kind] == 0) continue;
            int part = pc_placement_part(b->placement, b->devices, d, chunk);
            int64_t at = kind == PC_PASS_F ? part : b->devices + 2 * (int64_t)(b->devices - 1 - part);
            b->start[pc_block_index(b, g->microbatches, d, chunk, kind)] = g->makespan + at;
            if (g->makespan + at + b->duration[kind] > end) end = g->makespan + at + b->duration[kind];
        }
    b->interval = end;
}

static bool can_reorder(const pc_block_text_request *wanted) {
    return wanted->costs && wanted->schedule->placement != PC_PLACEMENT_BIDIRECTIONAL &&
           !pc_schedule_has(wanted->schedule, PC_PASS_R);
}

/* Whether the block alone, reordered at the schedule's own times, gives it too. */
static pc_code judge_reorder(const pc_block_text_request *wanted, recipe *draft, pc_error *error) {
    recipe reordered = {.block = draft->block, .steps = PC_BLOCK_REORDER};
    return can_reorder(wanted) ? judge(wanted, &reordered, &draft->is_reordered, error) : PC_OK;
}

/* The block; with its ends, which the times that it is read back at do not change; or all. */
static pc_code find_recipe(const pc_block_text_request *wanted, const grid *g, recipe *draft, pc_error *error) {
    bool is_right = false;
    pc_code code = PC_OK;
    *draft = (recipe){.block = wanted->block, .steps = PC_BLOCK_SQUEEZE, .is_own = wanted->is_own};
    if (wanted->block) code = judge(wanted, draft, &is_right, error);
    if (code || is_right) return code;
    if (wanted->block) {
        code = list_ends(g, wanted->block, draft, error);
        if (!code) code = judge(wanted, draft, &is_right, error);
        if (code || is_right) return code ? code : judge_reorder(wanted, draft, error);
        free_ends(draft);
    }
    code = take_whole(wanted->schedule, g, draft, error);
    if (!code) complete_whole(g, draft);
    return code;
}

/* ---- the text ---- */

/* Even steps are a rule in d, which is shorter and says more. */
static bool is_even(const int64_t *offset, int count) {
    for (int d = 2; d < count; d++)
        if (offset[d] - offset[d - 1] != offset[1] - offset[0]) return false;
    return count > 1;
}

static void write_rule(const int64_t *offset, FILE *stream) {
    int64_t step = offset[1] - offset[0], first = offset[0];
    fprintf(stream, "offset: ");
    if (step == 0)
        fprintf(stream, "%" PRId64, first);
    else if (step < 0 && first > 0)
        fprintf(stream, step == -1 ? "%" PRId64 " - d" : "%" PRId64 " - %" PRId64 "*d", first, -step);
    else {
        fprintf(stream, step == 1 ? "d" : "%" PRId64 "*d", step);
        if (first) fprintf(stream, " %c %" PRId64, first < 0 ? '-' : '+', first < 0 ? -first : first);
    }
}

static void write_offsets(const int64_t *offset, int count, FILE *stream) {
    if (is_even(offset, count)) {
        write_rule(offset, stream);
        return;
    }
    fprintf(stream, "offsets: [");
    for (int d = 0; d < count; d++) fprintf(stream, "%s%" PRId64, d ? ", " : "", offset[d]);
    fprintf(stream, "]");
}

static void write_line(const char *chunk, int64_t microbatch, const pc_block_line *line, FILE *stream) {
    fprintf(stream, "  - {kind: %s", pc_pass_kind_name(line->kind));
    if (microbatch != PC_BLOCK_EVERY || !chunk) fprintf(stream, ", microbatch: %" PRId64, microbatch);
    if (line->chunk >= 0) fprintf(stream, ", chunk: %d", line->chunk);
    fprintf(stream, ", ");
    write_offsets(line->offset, line->offset_count, stream);
    fprintf(stream, "}\n");
}

static void write_passes(const pc_block *block, int64_t *offset, FILE *stream) {
    fprintf(stream, "passes:\n");
    for (int i = 0; i < block->microbatches; i++)
        for (int c = 0; c < block->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                if (!is_in_block(block, (row){i, c, kind})) continue;
                for (int d = 0; d < block->devices; d++) offset[d] = pc_block_start(block, i, d, c, kind);
                pc_block_line line = {.kind = (pc_pass_kind)kind,
                                      .chunk = block->chunks > 1 ? c : PC_BLOCK_EVERY,
                                      .offset = offset,
                                      .offset_count = block->devices};
                write_line("", block->microbatches > 1 ? i : PC_BLOCK_EVERY, &line, stream);
            }
}

/* A name of its own, for those of named schedules are taken: of a file without its folder, and without what no name may
 * have. */
static void write_name(const char *name, bool is_own, FILE *stream) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const char *slash = strrchr(name, '/');
    size_t most = PC_SCHEDULE_NAME_SIZE - 1 - strlen(is_own ? "" : "own-");
    fprintf(stream, "block: %s", is_own ? "" : "own-");
    if (slash) name = slash + 1;
    for (size_t i = 0; i < most && name[i]; i++) fputc(strchr(allowed, name[i]) ? name[i] : '_', stream);
    fprintf(stream, "\n");
}

static void write_head(const pc_schedule *schedule, const recipe *draft, FILE *stream) {
    const pc_block *block = draft->block;
    write_name(schedule->name, draft->is_own, stream);
    fprintf(stream, "title: as repeated on %d devices, with %d microbatches\n", schedule->devices,
            schedule->microbatches);
    fprintf(stream, "devices: %d\nchunks: %d\nplacement: %s\n", block->devices, block->chunks,
            pc_placement_name(block->placement));
    fprintf(stream, "interval: %" PRId64 "\n", block->interval);
    if (block->microbatches > 1) fprintf(stream, "microbatches: %d\n", block->microbatches);
    fprintf(stream, "steps: %s", pc_block_steps_name(draft->steps));
    if (block == &draft->whole) fprintf(stream, "  # the whole iteration: it repeats no block that is shorter");
    if (draft->is_reordered)
        fprintf(stream, "  # reorder, without the ends, gives the same at the times it was made for");
    fprintf(stream, "\n");
}

static pc_code write_recipe(const pc_schedule *schedule, const recipe *draft, FILE *stream, pc_error *error) {
    int64_t *offset = pc_alloc((size_t)schedule->devices, sizeof *offset);
    if (!offset) return pc_error_no_memory(error);
    write_head(schedule, draft, stream);
    write_passes(draft->block, offset, stream);
    if (draft->end_count) fprintf(stream, "ends:\n");
    for (int i = 0; i < draft->end_count; i++) write_line(NULL, draft->ends[i].microbatch, &draft->ends[i], stream);
    pc_free(offset);
    return PC_OK;
}

pc_code pc_block_write(const pc_block_text_request *wanted, FILE *stream, pc_error *error) {
    const pc_schedule *schedule = wanted->schedule;
    grid g = {0};
    recipe x = {0};
    if (pc_schedule_has(schedule, PC_PASS_BW) && pc_schedule_has(schedule, PC_PASS_W))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: has both BW and W; expected one or the other, as blocks have it", schedule->name);
    if (pc_placement_has_slices(schedule->placement))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: has slices of microbatches, whose order no block keeps; expected whole ones",
                            schedule->name);
    if (schedule->barriers != PC_BARRIERS_NONE)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: has S and T, which blocks do not have; expected another schedule, or format torch-csv",
                            schedule->name);
    pc_code code = time_grid(schedule, &g, error);
    if (!code) code = find_recipe(wanted, &g, &x, error);
    if (!code) code = write_recipe(schedule, &x, stream, error);
    free_recipe(&x);
    pc_free(g.start);
    return code;
}
