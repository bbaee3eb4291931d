#include "models/schedule/check.h"

#include "engine/alloc.h"
#include "models/schedule/dependencies.h"

#include <inttypes.h>

/* ---- every pass once ---- */

static bool has(const pc_pass_index *index, int stage, int chunk, int microbatch, pc_pass_kind kind) {
    return pc_pass_position(index, stage, chunk, microbatch, kind) != PC_NO_PASS;
}

/* What is wrong with the kinds of passes that one chunk has of one microbatch; NULL where nothing is. */
static const char *fault_of(const pc_pass_index *index, int stage, int chunk, int microbatch) {
    bool f = has(index, stage, chunk, microbatch, PC_PASS_F), b = has(index, stage, chunk, microbatch, PC_PASS_B);
    bool w = has(index, stage, chunk, microbatch, PC_PASS_W), bw = has(index, stage, chunk, microbatch, PC_PASS_BW);
    if (!f) return "F is missing";
    if (bw && (b || w)) return "there is BW beside B or W";
    if (!bw && !b) return "the backward pass is missing";
    if (!bw && !w) return "W is missing";
    return NULL;
}

/* S and T once each, under chunk 0, in a schedule with barriers alone. */
static const char *vocab_fault_of(const pc_pass_index *index, int stage, int chunk, int microbatch) {
    bool has_vocab = index->schedule->barriers != PC_BARRIERS_NONE && chunk == 0;
    bool s = has(index, stage, chunk, microbatch, PC_PASS_S), t = has(index, stage, chunk, microbatch, PC_PASS_T);
    if (s == has_vocab && t == has_vocab) return NULL;
    return has_vocab ? (s ? "T is missing" : "S is missing") : s ? "there is S" : "there is T";
}

static bool has_any(const pc_pass_index *index, int stage, int chunk, int microbatch) {
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (has(index, stage, chunk, microbatch, (pc_pass_kind)kind)) return true;
    return false;
}

static pc_code check_chunk(const pc_pass_index *index, int stage, int chunk, int microbatch, pc_error *error) {
    if (!pc_placement_visits(index->schedule->placement, chunk, microbatch)) {
        if (!has_any(index, stage, chunk, microbatch)) return PC_OK;
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "schedule: stage %d, microbatch %d, chunk %d: has passes; expected none, for that microbatch "
            "goes through the other replica (placement %s)",
            stage, microbatch, chunk, pc_placement_name(index->schedule->placement));
    }
    const char *fault = vocab_fault_of(index, stage, chunk, microbatch);
    if (fault)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "schedule: stage %d, microbatch %d, chunk %d: %s; expected S and T once on every stage, "
                            "under chunk 0, or on none",
                            stage, microbatch, chunk, fault);
    fault = fault_of(index, stage, chunk, microbatch);
    if (!fault) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "schedule: stage %d, microbatch %d, chunk %d: %s; expected F once and either BW, or B and W, "
                        "once",
                        stage, microbatch, chunk, fault);
}

static pc_code check_complete(const pc_pass_index *index, int *stage, pc_error *error) {
    const pc_schedule *schedule = index->schedule;
    *stage = 0;
    if (schedule->barriers != PC_BARRIERS_NONE &&
        (schedule->devices > PC_VOCAB_DEVICES_MAX || schedule->placement == PC_PLACEMENT_BIDIRECTIONAL))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "schedule: S and T on %d devices, placement %s; expected up to %d devices, and one replica",
                            schedule->devices, pc_placement_name(schedule->placement), PC_VOCAB_DEVICES_MAX);
    if (schedule->placement == PC_PLACEMENT_BIDIRECTIONAL && schedule->chunks != 2)
        return pc_error_set(error, PC_ERROR_INPUT, "schedule: placement %s with %d chunks; expected 2, one a replica",
                            pc_placement_name(schedule->placement), schedule->chunks);
    for (*stage = 0; *stage < schedule->devices; ++*stage)
        for (int chunk = 0; chunk < schedule->chunks; chunk++)
            for (int i = 0; i < schedule->microbatches; i++) {
                pc_code code = check_chunk(index, *stage, chunk, i, error);
                if (code) return code;
            }
    return PC_OK;
}

pc_code pc_schedule_check_complete(const pc_pass_index *index, pc_error *error) {
    int stage;
    return check_complete(index, &stage, error);
}

/* ---- no deadlock ---- */

/* Runs all stages as far as they go: a pass is done once its predecessors are and it is its stage's next. */
typedef struct dry_run {
    const pc_pass_index *index;
    int64_t *next;       /* a number a stage: the position of the pass it runs next */
    int32_t *waits_here; /* a number a position: the first stage that waits for it, or -1 */
    int32_t *also_waits; /* a number a stage: the next one that waits for the same pass */
    int32_t *ready;      /* stages that may go on; a stack */
    int32_t ready_count;
} dry_run;

/* The first predecessor of a stage's pass that is not done; PC_NO_PASS where all are. */
static int32_t pass_blocked_by(const dry_run *run, int stage, pc_pass pass) {
    pc_predecessor predecessors[PC_PREDECESSORS_MAX];
    int count = pc_pass_predecessors(run->index, stage, pass, predecessors);
    for (int i = 0; i < count; i++)
        if (predecessors[i].position >= run->next[predecessors[i].stage]) return predecessors[i].position;
    return PC_NO_PASS;
}

/* The same of the next pass and, where that begins a pair, of the one behind it. */
static int32_t blocked_by(const dry_run *run, int stage) {
    const pc_schedule *schedule = run->index->schedule;
    int64_t next = run->next[stage];
    int32_t blocker = pass_blocked_by(run, stage, schedule->passes[next]);
    if (blocker != PC_NO_PASS || !pc_schedule_pairs_at(schedule, next)) return blocker;
    return pass_blocked_by(run, stage, schedule->passes[next + 1]);
}

static void wake(dry_run *run, int64_t position) {
    for (int32_t stage = run->waits_here[position], after; stage >= 0; stage = after) {
        after = run->also_waits[stage];
        run->ready[run->ready_count++] = stage;
    }
    run->waits_here[position] = -1;
}

static void run_stage(dry_run *run, int stage) {
    int64_t end = run->index->schedule->offsets[stage + 1];
    while (run->next[stage] < end) {
        int32_t blocker = blocked_by(run, stage);
        if (blocker != PC_NO_PASS) {
            run->also_waits[stage] = run->waits_here[blocker];
            run->waits_here[blocker] = stage;
            return;
        }
        wake(run, run->next[stage]++);
    }
}

static void run_all(dry_run *run) {
    const pc_schedule *schedule = run->index->schedule;
    for (int64_t i = 0; i < schedule->offsets[schedule->devices]; i++) run->waits_here[i] = -1;
    for (int stage = 0; stage < schedule->devices; stage++) {
        run->next[stage] = schedule->offsets[stage];
        run->ready[run->ready_count++] = stage;
    }
    while (run->ready_count > 0) run_stage(run, run->ready[--run->ready_count]);
}

static pc_code explain_deadlock(const dry_run *run, int stage, pc_error *error) {
    const pc_schedule *schedule = run->index->schedule;
    int32_t blocker = blocked_by(run, stage);
    int other = pc_stage_of_position(schedule, blocker);
    char name[PC_PASS_NAME_SIZE], blocker_name[PC_PASS_NAME_SIZE];
    pc_pass_name(schedule, schedule->passes[run->next[stage]], name);
    pc_pass_name(schedule, schedule->passes[blocker], blocker_name);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "schedule: deadlock: stage %d, place %" PRId64 ": %s waits for %s of stage %d, place %" PRId64
                        ", which %s; expected an order in which every pass finds its input done",
                        stage, run->next[stage] - schedule->offsets[stage], name, blocker_name, other,
                        blocker - schedule->offsets[other],
                        other == stage ? "comes later on that stage" : "waits in turn");
}

/* The first stage that is not through and waits for a pass of its own, else the first that is not through; -1 where all
 * are. */
static int find_stuck(const dry_run *run) {
    const pc_schedule *schedule = run->index->schedule;
    int first = -1;
    for (int stage = schedule->devices - 1; stage >= 0; stage--)
        if (run->next[stage] < schedule->offsets[stage + 1]) first = stage;
    for (int stage = first; stage >= 0 && stage < schedule->devices; stage++)
        if (run->next[stage] < schedule->offsets[stage + 1] &&
            pc_stage_of_position(schedule, blocked_by(run, stage)) == stage)
            return stage;
    return first;
}

static pc_code check_no_deadlock(const pc_pass_index *index, int *stuck, pc_error *error) {
    const pc_schedule *schedule = index->schedule;
    size_t devices = (size_t)schedule->devices, passes = (size_t)schedule->offsets[devices];
    dry_run run = {.index = index,
                   .next = pc_alloc(devices, sizeof *run.next),
                   .waits_here = pc_alloc(passes, sizeof *run.waits_here),
                   .also_waits = pc_alloc(devices, sizeof *run.also_waits),
                   .ready = pc_alloc(devices, sizeof *run.ready)};
    pc_code code = PC_OK;
    if (!run.next || !run.waits_here || !run.also_waits || !run.ready) {
        code = pc_error_no_memory(error);
    } else {
        run_all(&run);
        int found = find_stuck(&run);
        if (found >= 0) {
            *stuck = found;
            code = explain_deadlock(&run, found, error);
        }
    }
    pc_free(run.next);
    pc_free(run.waits_here);
    pc_free(run.also_waits);
    pc_free(run.ready);
    return code;
}

pc_code pc_schedule_check(const pc_schedule *schedule, pc_error *error) {
    int stage;
    return pc_schedule_check_stages(schedule, &stage, error);
}

pc_code pc_schedule_check_stages(const pc_schedule *schedule, int *stage, pc_error *error) {
    pc_pass_index index;
    pc_code code = pc_pass_index_create_at(schedule, &index, stage, error);
    if (code) return code;
    code = check_complete(&index, stage, error);
    if (!code) code = pc_schedule_check_pairs(schedule, error);
    if (!code) code = check_no_deadlock(&index, stage, error);
    pc_pass_index_free(&index);
    return code;
}

/* ---- memory ---- */

pc_code pc_schedule_peaks(const pc_schedule *schedule, const pc_costs *costs, int64_t *peak_bytes, pc_error *error) {
    pc_pass_index index;
    pc_code code = pc_pass_index_create_if_recomputing(schedule, &index, error);
    if (code) return code;
    for (int stage = 0; stage < schedule->devices; stage++) {
        int64_t level = 0;
        peak_bytes[stage] = 0;
        for (int64_t i = schedule->offsets[stage]; i < schedule->offsets[stage + 1]; i++) {
            pc_pass pass = schedule->passes[i];
            level += pc_costs_taken_at(costs, schedule, stage, i, pc_pass_is_recomputed(&index, stage, pass));
            if (level > peak_bytes[stage]) peak_bytes[stage] = level;
            level -= pc_costs_given_at(costs, schedule, stage, i);
        }
    }
    pc_pass_index_free(&index);
    return PC_OK;
}
