#include "models/schedule/given_block.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/block_fill.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/given.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

struct pc_given_block {
    pc_given given; /* first: what `generate` gets */
    pc_generator generator;
    pc_block_draft draft;
};

const char *pc_block_steps_name(pc_block_steps steps) {
    static const char *const names[PC_BLOCK_STEPS] = {"none", "squeeze", "reorder"};
    return names[steps];
}

static void free_lines(pc_block_line *lines, int count) {
    for (int i = 0; lines && i < count; i++) {
        pc_rule_free(&lines[i].rule);
        pc_free(lines[i].offset);
        pc_free(lines[i].key);
    }
    pc_free(lines);
}

void pc_block_draft_free(pc_block_draft *draft) {
    free_lines(draft->passes, draft->pass_count);
    free_lines(draft->ends, draft->end_count);
    pc_rule_free(&draft->interval);
    pc_rule_free(&draft->microbatches);
    pc_free(draft->place);
    memset(draft, 0, sizeof *draft);
}

/* ---- a block for p devices and m microbatches ---- */

/* A rule of the block itself; the numbers that it may name. */
static pc_code shape_rule(const pc_block_draft *draft, const pc_rule *rule, const char *key, int p, int m, int64_t most,
                          int64_t *value, pc_error *error) {
    const int64_t values[PC_RULE_NAMES] = {[PC_RULE_P] = p, [PC_RULE_V] = draft->chunks, [PC_RULE_M] = m};
    pc_code code = pc_rule_value(rule, values, value, error);
    if (!code && (*value < 1 || *value > most))
        code = pc_error_set(error, PC_ERROR_INPUT, "%" PRId64 " with p = %d and m = %d; expected 1 to %" PRId64, *value,
                            p, m, most);
    if (code) pc_error_place(error, draft->place, 0, key);
    return code;
}

static pc_code PC_PRINTF(4, 5)
    refuse_line(const pc_block_line *line, const char *key, pc_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pc_error_set_list(error, PC_ERROR_INPUT, format, arguments);
    va_end(arguments);
    pc_block_line_blame(line, key, error);
    return PC_ERROR_INPUT;
}

/* Of one microbatch and chunk, on all devices. */
static pc_code put_line(const pc_block_line *line, int microbatch, int chunk, int m, pc_block *block, pc_error *error) {
    for (int d = 0; d < block->devices; d++) {
        const int64_t values[PC_RULE_NAMES] = {d, chunk, microbatch, block->devices, block->chunks, m};
        int64_t *start = &block->start[pc_block_index(block, microbatch, d, chunk, (int)line->kind)], offset;
        if (*start != PC_TIME_NOT_GIVEN)
            return refuse_line(line, "", error, "%s of chunk %d stands above already; expected it once",
                               pc_pass_kind_name(line->kind), chunk);
        pc_code code = pc_block_line_offset(line, values, &offset, error);
        if (code) return code;
        if (offset < 0)
            return refuse_line(line, "", error,
                               "%s of chunk %d on device %d starts in cell %" PRId64 "; expected 0 or later",
                               pc_pass_kind_name(line->kind), chunk, d, offset);
        *start = offset;
    }
    return PC_OK;
}

/* Whether the line is about this chunk, which this microbatch of the block visits. A line that names both is, in any
 * case: then the check says what is wrong. */
static bool is_meant(const pc_block_line *line, const pc_block *block, int microbatch, int chunk) {
    bool has_chunk = line->chunk != PC_BLOCK_EVERY, has_microbatch = line->microbatch != PC_BLOCK_EVERY;
    if ((has_chunk && chunk != line->chunk) || (has_microbatch && microbatch != line->microbatch)) return false;
    return (has_chunk && has_microbatch) || pc_placement_visits(block->placement, chunk, microbatch);
}

/* Those of one kind that stand in free cells. */
static pc_code fill_free(const pc_block_draft *draft, pc_block *block, pc_error *error) {
    bool has_any = false;
    bool *is_free = pc_alloc((size_t)block->microbatches * (size_t)block->chunks, sizeof *is_free);
    if (!is_free) return pc_error_no_memory(error);
    for (int k = 0; k < draft->pass_count; k++)
        for (int i = 0; draft->passes[k].is_free && i < block->microbatches; i++)
            for (int c = 0; c < block->chunks; c++)
                if (is_meant(&draft->passes[k], block, i, c)) has_any = is_free[(int64_t)i * block->chunks + c] = true;
    pc_code code = has_any ? pc_block_fill_w(is_free, block, error) : PC_OK;
    pc_free(is_free);
    if (code) pc_error_place(error, draft->place, 0, "");
    return code;
}

static pc_code put_lines(const pc_block_line *line, int m, pc_block *block, pc_error *error) {
    if (line->chunk >= block->chunks)
        return refuse_line(line, "chunk", error, "%d; expected 0 to %d", line->chunk, block->chunks - 1);
    if (line->microbatch >= block->microbatches)
        return refuse_line(line, "microbatch", error, "%" PRId64 "; expected 0 to %d", line->microbatch,
                           block->microbatches - 1);
    for (int i = 0; i < block->microbatches; i++)
        for (int c = 0; c < block->chunks; c++) {
            if (line->is_free || !is_meant(line, block, i, c)) continue;
            pc_code code = put_line(line, i, c, m, block, error);
            if (code) return code;
        }
    return PC_OK;
}

static pc_code fill_block(const pc_block_draft *draft, int m, pc_block *block, pc_error *error) {
    pc_code code = PC_OK;
    memcpy(block->duration, draft->duration, sizeof draft->duration);
    for (int i = 0; i < draft->pass_count && !code; i++) code = put_lines(&draft->passes[i], m, block, error);
    return code ? code : fill_free(draft, block, error);
}

enum { MICROBATCHES_USUAL = 1024 };

/* A block of more than an iteration has, or than a group has that goes once round the devices, is none that somebody
 * wants; it would only take memory. */
static int64_t most_microbatches(int devices, int microbatches) {
    int64_t most = devices > microbatches ? devices : microbatches;
    return most > MICROBATCHES_USUAL ? most + 1 : MICROBATCHES_USUAL;
}

pc_code pc_given_block_make(const pc_given_block *given, int devices, int microbatches, pc_block *block,
                            pc_error *error) {
    const pc_block_draft *draft = &given->draft;
    int64_t interval, count;
    pc_block made;
    if (draft->devices && draft->devices != devices)
        return pc_error_refuse(error, draft->place, 0, "", "for %d devices, not %d; expected those", draft->devices,
                               devices);
    pc_code code =
        shape_rule(draft, &draft->interval, "interval", devices, microbatches, PC_BLOCK_CELLS_MAX, &interval, error);
    if (!code)
        code = shape_rule(draft, &draft->microbatches, "microbatches", devices, microbatches,
                          most_microbatches(devices, microbatches), &count, error);
    if (!code) code = pc_schedule_check_size(devices, count, draft->chunks, error);
    if (!code && draft->placement == PC_PLACEMENT_BIDIRECTIONAL && count % 2 != 0)
        code = pc_error_refuse(error, draft->place, 0, "microbatches",
                               "%" PRId64 "; expected an even number, for there are two replicas", count);
    if (!code) code = pc_block_create(draft->placement, devices, draft->chunks, (int)count, &made, error);
    if (code) return code;
    made.interval = interval;
    code = fill_block(draft, microbatches, &made, error);
    if (!code) {
        code = pc_block_check(&made, error);
        if (code) pc_error_place(error, draft->place, 0, "");
    }
    if (code)
        pc_block_free(&made);
    else
        *block = made;
    return code;
}

/* ---- schedules ---- */

static const pc_given_block *given_of(const pc_generator *generator) {
    return (const pc_given_block *)(const void *)generator->given;
}

/* What is wrong with an end has its place already. */
static pc_code repeat(const pc_given_block *given, const pc_block *block, int microbatches, pc_schedule *schedule,
                      int64_t **cells, pc_error *error) {
    const pc_block_draft *draft = &given->draft;
    pc_code code =
        pc_schedule_of_block(block, draft->ends, draft->end_count, draft->name, microbatches, schedule, cells, error);
    if (code && error && !pc_error_part_of(error, PC_ERROR_PART_FILE)[0]) pc_error_place(error, draft->place, 0, "");
    return code;
}

static pc_code generate(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                        pc_block *block, pc_error *error) {
    const pc_given_block *given = given_of(self);
    pc_block made;
    pc_code code = pc_given_block_make(given, (int)request->devices, (int)request->microbatches, &made, error);
    if (code) return code;
    code = repeat(given, &made, (int)request->microbatches, schedule, NULL, error);
    if (!code && given->draft.steps == PC_BLOCK_REORDER) {
        code = pc_schedule_reorder(&made, request->costs, request->memory_limit, schedule, error);
        if (code) pc_schedule_free(schedule);
    }
    if (!code && block)
        *block = made;
    else
        pc_block_free(&made);
    return code;
}

/* ---- the given one ---- */

static void add_line(pc_hash *hash, const pc_block_line *line) {
    const int64_t numbers[] = {(int64_t)line->kind, line->chunk,      line->microbatch,
                               line->offset_count,  line->rule.count, line->is_free};
    pc_hash_add_bytes(hash, numbers, sizeof numbers);
    pc_rule_hash(&line->rule, hash);
    pc_hash_add_bytes(hash, line->offset, (size_t)line->offset_count * sizeof *line->offset);
}

static uint64_t hash_of(const pc_block_draft *draft) {
    const int64_t numbers[] = {(int64_t)draft->placement, draft->devices,    draft->chunks,
                               (int64_t)draft->steps,     draft->pass_count, draft->end_count};
    pc_hash hash = {0};
    pc_hash_add_bytes(&hash, numbers, sizeof numbers);
    pc_hash_add_bytes(&hash, draft->duration, sizeof draft->duration);
    pc_rule_hash(&draft->interval, &hash);
    pc_rule_hash(&draft->microbatches, &hash);
    for (int i = 0; i < draft->pass_count; i++) add_line(&hash, &draft->passes[i]);
    for (int i = 0; i < draft->end_count; i++) add_line(&hash, &draft->ends[i]);
    return hash.low;
}

static bool has_kind(const pc_block_draft *draft, pc_pass_kind kind) {
    return draft->duration[kind] > 0;
}

static bool can_reorder(const pc_block_draft *draft) {
    return !has_kind(draft, PC_PASS_R) && draft->placement != PC_PLACEMENT_BIDIRECTIONAL && draft->end_count == 0;
}

/* A kind that no line has is none of the block's, however long it would be. */
static pc_code check_kinds(pc_block_draft *draft, pc_error *error) {
    bool has[PC_PASS_KINDS] = {false};
    for (int i = 0; i < draft->pass_count; i++) has[draft->passes[i].kind] = true;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (!has[kind]) draft->duration[kind] = 0;
    bool splits = has[PC_PASS_B] && has[PC_PASS_W] && !has[PC_PASS_BW];
    bool is_whole = has[PC_PASS_BW] && !has[PC_PASS_B] && !has[PC_PASS_W];
    if (has[PC_PASS_F] && (splits || is_whole)) return PC_OK;
    return pc_error_refuse(error, draft->place, 0, "passes", "%s; expected F, and either BW or both B and W",
                           !has[PC_PASS_F]                    ? "no F"
                           : has[PC_PASS_BW]                  ? "BW beside B or W"
                           : has[PC_PASS_B] || has[PC_PASS_W] ? "one of B and W without the other"
                                                              : "no backward pass");
}

static void describe(pc_given_block *given) {
    const pc_block_draft *draft = &given->draft;
    given->given = (pc_given){.devices = draft->devices, .hash = hash_of(draft)};
    given->generator = pc_generator_of_given(draft->name, draft->placement, draft->chunks, &given->given);
    given->generator.splits = has_kind(draft, PC_PASS_W);
    given->generator.recomputes = has_kind(draft, PC_PASS_R);
    given->generator.searches = draft->steps == PC_BLOCK_REORDER;
    given->generator.generate = generate;
}

pc_code pc_given_block_set_steps(pc_given_block *given, pc_block_steps steps, pc_error *error) {
    if (steps == PC_BLOCK_REORDER && !can_reorder(&given->draft))
        return pc_error_refuse(error, given->draft.place, 0, "steps",
                               "reorder, of a block with %s; expected none or squeeze",
                               given->draft.end_count > 0           ? "ends of its own"
                               : has_kind(&given->draft, PC_PASS_R) ? "R"
                                                                    : "two replicas");
    given->draft.steps = steps;
    describe(given);
    return PC_OK;
}

/* Steps that nobody has chosen are the most that can be. */
static pc_code take_over(pc_given_block *made, pc_block_draft *draft, pc_error *error) {
    pc_code code = check_kinds(draft, error);
    if (code) return code;
    made->draft = *draft;
    if (draft->steps == PC_BLOCK_STEPS) made->draft.steps = can_reorder(draft) ? PC_BLOCK_REORDER : PC_BLOCK_SQUEEZE;
    return pc_given_block_set_steps(made, made->draft.steps, error);
}

pc_code pc_given_block_create(pc_block_draft *draft, pc_given_block **given, pc_error *error) {
    pc_given_block *made = pc_alloc(1, sizeof *made);
    pc_code code = made ? take_over(made, draft, error) : pc_error_no_memory(error);
    if (code) {
        pc_free(made);
        pc_block_draft_free(draft);
        return code;
    }
    *draft = (pc_block_draft){.place = NULL};
    *given = made;
    return PC_OK;
}

void pc_given_block_free(pc_given_block *given) {
    if (!given) return;
    pc_block_draft_free(&given->draft);
    pc_free(given);
}

const pc_generator *pc_given_block_generator(const pc_given_block *given) {
    return &given->generator;
}

const pc_block_draft *pc_given_block_draft(const pc_given_block *given) {
    return &given->draft;
}

/* ---- on its own grid ---- */

/* The least length of a cell for one pass: to end within its cells, and after what it waits for. */
static pc_code cell_for_pass(const pc_block *block, const pc_pass_index *index, const pc_costs *costs,
                             const int64_t *cells, int stage, int64_t at, pc_time *cell, pc_error *error) {
    pc_predecessor before[PC_PREDECESSORS_MAX];
    pc_pass pass = index->schedule->passes[at];
    pc_time duration = pc_costs_duration(costs, stage, pass.chunk, pass.kind);
    if (duration == PC_TIME_NOT_GIVEN)
        return pc_error_set(error, PC_ERROR_INPUT, "the time of %s is not given; expected one",
                            pc_pass_kind_name((pc_pass_kind)pass.kind));
    pc_time least = pc_divide_up(duration, block->duration[pass.kind]);
    int count = pc_pass_predecessors(index, stage, pass, before);
    for (int k = 0; k < count; k++) {
        pc_pass other = index->schedule->passes[before[k].position];
        pc_time wait = pc_costs_duration(costs, before[k].stage, other.chunk, other.kind);
        if (before[k].stage != stage) wait += pc_costs_delay(costs, before[k].stage, stage);
        pc_time needed = pc_divide_up(wait, cells[at] - cells[before[k].position]);
        if (needed > least) least = needed;
    }
    if (least > *cell) *cell = least;
    return PC_OK;
}

static pc_code find_cell(const pc_block *block, const pc_schedule *schedule, const pc_costs *costs,
                         const int64_t *cells, pc_time *cell, pc_error *error) {
    pc_pass_index index;
    pc_code code = pc_pass_index_create(schedule, &index, error);
    if (code) return code;
    *cell = 0;
    for (int d = 0; d < schedule->devices && !code; d++)
        for (int64_t k = schedule->offsets[d]; k < schedule->offsets[d + 1] && !code; k++)
            code = cell_for_pass(block, &index, costs, cells, d, k, cell, error);
    pc_pass_index_free(&index);
    return code;
}

/* From cells to times; the first pass starts at 0. */
static pc_code time_grid(const pc_schedule *schedule, const pc_costs *costs, const int64_t *cells, pc_time cell,
                         pc_time *start, pc_time *end, pc_error *error) {
    int64_t first = INT64_MAX;
    for (int64_t k = 0; k < schedule->offsets[schedule->devices]; k++)
        if (cells[k] < first) first = cells[k];
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t k = schedule->offsets[d]; k < schedule->offsets[d + 1]; k++) {
            pc_pass pass = schedule->passes[k];
            if (__builtin_mul_overflow(cells[k] - first, cell, &start[k]) ||
                !pc_time_add(start[k], pc_costs_duration(costs, d, pass.chunk, pass.kind), &end[k]))
                return pc_error_set(error, PC_ERROR_INPUT,
                                    "the iteration is too long to count; expected less than 2^63 picoseconds");
        }
    return PC_OK;
}

static pc_code replay_grid(const pc_block *block, const pc_schedule *schedule, const pc_costs *costs,
                           const int64_t *cells, bool with_trace, pc_replay *replay, pc_error *error) {
    size_t count = (size_t)schedule->offsets[schedule->devices];
    pc_time cell, *start = pc_alloc(count, sizeof *start), *end = pc_alloc(count, sizeof *end);
    pc_code code = start && end ? PC_OK : pc_error_no_memory(error);
    if (!code) code = find_cell(block, schedule, costs, cells, &cell, error);
    if (!code) code = time_grid(schedule, costs, cells, cell, start, end, error);
    if (!code) code = pc_replay_from_times(schedule, costs, start, end, NULL, with_trace, replay, error);
    pc_free(start);
    pc_free(end);
    return code;
}

pc_code pc_given_block_replay(const pc_given_block *given, const pc_schedule *schedule, const pc_costs *costs,
                              bool with_trace, pc_replay *replay, pc_error *error) {
    pc_block block;
    pc_schedule repeated;
    int64_t *cells = NULL;
    pc_code code = pc_given_block_make(given, schedule->devices, schedule->microbatches, &block, error);
    if (code) return code;
    code = repeat(given, &block, schedule->microbatches, &repeated, &cells, error);
    if (!code) {
        code = replay_grid(&block, schedule, costs, cells, with_trace, replay, error);
        pc_schedule_free(&repeated);
    }
    pc_free(cells);
    pc_block_free(&block);
    return code;
}
