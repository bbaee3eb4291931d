#include "calib/trace/traced_run_private.h"

#include "engine/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { NO_PART = -1 };

/* ---- which stage a rank is ---- */

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int by_part_and_rank(const void *a, const void *b) {
    const pc_placed_rank *x = a, *y = b;
    int order = compare(x->least_part, y->least_part);
    if (order == 0) order = compare(x->trace->rank, y->trace->rank);
    return order ? order : compare(x->index, y->index);
}

/* NO_PART if passes name chunks; PC_ERROR_INPUT if they name both. */
static pc_code find_least_part(const pc_rank_trace *trace, int32_t *least, pc_error *error) {
    int64_t with_part = 0;
    *least = NO_PART;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        const pc_traced_name *name = &trace->passes[i].name;
        with_part += name->has_part;
        if (name->has_part && (*least == NO_PART || name->chunk < *least)) *least = name->chunk;
    }
    if (with_part == 0 || with_part == trace->pass_count) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "some passes name a part of the model (PP:2F3) and some a chunk (F3); expected one of the two");
}

static pc_code refuse_count(int count, int64_t devices, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%d traces for %lld devices; expected one a device, or as many of every device", count,
                        (long long)devices);
}

/* Ranks of the same parts are one stage. */
static pc_code place_by_parts(pc_draft *draft, pc_error *error) {
    int stage = -1, replica = 0, most = 0;
    for (int i = 0; i < draft->rank_count; i++) {
        bool is_next = i == 0 || draft->ranks[i].least_part != draft->ranks[i - 1].least_part;
        replica = is_next ? 0 : replica + 1;
        stage += is_next;
        most = replica > most ? replica : most;
        draft->ranks[i].device = stage;
        draft->ranks[i].replica = replica;
    }
    draft->timeline.devices = stage + 1;
    draft->timeline.replicas = most + 1;
    if (draft->request->devices > 0 && draft->request->devices != stage + 1)
        return refuse_count(draft->rank_count, draft->request->devices, error);
    return draft->rank_count == (stage + 1) * (most + 1) ? PC_OK : refuse_count(draft->rank_count, stage + 1, error);
}

static pc_code place_in_order(pc_draft *draft, pc_error *error) {
    int64_t devices = draft->request->devices > 0 ? draft->request->devices : draft->rank_count;
    if (draft->rank_count % devices != 0) return refuse_count(draft->rank_count, devices, error);
    draft->timeline.devices = (int)devices;
    draft->timeline.replicas = draft->rank_count / (int)devices;
    for (int i = 0; i < draft->rank_count; i++) {
        draft->ranks[i].device = i / draft->timeline.replicas;
        draft->ranks[i].replica = i % draft->timeline.replicas;
    }
    return PC_OK;
}

static pc_code check_ranks(const pc_draft *draft, pc_error *error) {
    for (int i = 1; i < draft->rank_count; i++) {
        const pc_placed_rank *now = &draft->ranks[i], *before = now - 1;
        if ((now->least_part == NO_PART) != (before->least_part == NO_PART))
            return pc_error_set(error, PC_ERROR_INPUT,
                                "passes of some ranks name parts of the model (PP:2F3), and of "
                                "others chunks (F3); expected one of the two");
        if (now->trace->rank >= 0 && now->trace->rank == before->trace->rank)
            return pc_error_set(error, PC_ERROR_INPUT, "two traces of rank %lld; expected one of each",
                                (long long)now->trace->rank);
    }
    return PC_OK;
}

static pc_code place_ranks(pc_draft *draft, const pc_rank_trace *traces, pc_error *error) {
    for (int i = 0; i < draft->rank_count; i++) {
        draft->ranks[i] = (pc_placed_rank){.trace = &traces[i], .index = i};
        pc_code code = find_least_part(&traces[i], &draft->ranks[i].least_part, error);
        if (code) return code;
    }
    qsort(draft->ranks, (size_t)draft->rank_count, sizeof *draft->ranks, by_part_and_rank);
    pc_code code = check_ranks(draft, error);
    if (code) return code;
    return draft->ranks[0].least_part == NO_PART ? place_in_order(draft, error) : place_by_parts(draft, error);
}

/* ---- shape ---- */

static pc_code take_sizes(pc_draft *draft, pc_error *error) {
    int64_t chunks = 0, microbatches = 0, passes = 0;
    for (int i = 0; i < draft->rank_count; i++) {
        const pc_rank_trace *trace = draft->ranks[i].trace;
        passes += trace->pass_count;
        for (int64_t k = 0; k < trace->pass_count; k++) {
            const pc_traced_name *name = &trace->passes[k].name;
            int64_t chunk = name->has_part ? name->chunk / draft->timeline.devices : name->chunk;
            chunks = chunk >= chunks ? chunk + 1 : chunks;
            microbatches = name->microbatch >= microbatches ? name->microbatch + INT64_C(1) : microbatches;
        }
    }
    pc_code code = pc_schedule_check_size(draft->timeline.devices, microbatches, chunks, error);
    if (code) return code;
    draft->timeline.chunks = (int)chunks;
    draft->timeline.microbatches = (int)microbatches;
    draft->timeline.passes = pc_alloc((size_t)passes, sizeof *draft->timeline.passes);
    return draft->timeline.passes ? PC_OK : pc_error_no_memory(error);
}

/* Whether every part that a pass names lies where the placement has it. */
static bool suits(const pc_draft *draft, pc_placement placement) {
    const pc_traced_run *timeline = &draft->timeline;
    for (int i = 0; i < draft->rank_count; i++)
        for (int64_t k = 0; k < draft->ranks[i].trace->pass_count; k++) {
            int part = draft->ranks[i].trace->passes[k].name.chunk;
            if (part >= timeline->devices * timeline->chunks ||
                pc_placement_stage(placement, timeline->devices, part, 0) != draft->ranks[i].device)
                return false;
        }
    return true;
}

static pc_code take_placement(pc_draft *draft, pc_error *error) {
    static const pc_placement several[] = {PC_PLACEMENT_INTERLEAVED, PC_PLACEMENT_V};
    bool has_parts = draft->ranks[0].least_part != NO_PART, is_one = draft->timeline.chunks == 1;
    int asked = draft->request->placement;
    for (int i = 0; i < 2; i++) {
        pc_placement placement = is_one ? PC_PLACEMENT_LINEAR : several[i];
        bool is_wanted = is_one || asked < 0 || asked == (int)placement;
        if (!is_wanted || (has_parts && !suits(draft, placement))) continue;
        draft->timeline.placement = placement;
        return PC_OK;
    }
    return pc_error_set(error, PC_ERROR_INPUT,
                        "the parts that passes name lie neither interleaved nor as a v; expected one of the two");
}

/* ---- passes ---- */

static int by_chunk_and_microbatch(const void *a, const void *b) {
    const pc_traced_name *x = a, *y = b;
    int order = compare(x->chunk, y->chunk);
    return order ? order : compare(x->microbatch, y->microbatch);
}

/* Those that have a W of their own, sorted. */
static pc_code list_split(const pc_rank_trace *trace, pc_traced_name **split, size_t *count, pc_error *error) {
    *count = 0;
    *split = pc_alloc((size_t)trace->pass_count, sizeof **split);
    if (!*split) return pc_error_no_memory(error);
    for (int64_t i = 0; i < trace->pass_count; i++)
        if (trace->passes[i].name.kind == PC_TRACED_W) (*split)[(*count)++] = trace->passes[i].name;
    if (*count > 0) qsort(*split, *count, sizeof **split, by_chunk_and_microbatch);
    return PC_OK;
}

static pc_pass_kind kind_of(const pc_traced_name *name, const pc_traced_name *split, size_t count) {
    static const pc_pass_kind kinds[] = {
        [PC_TRACED_F] = PC_PASS_F, [PC_TRACED_B] = PC_PASS_BW,     [PC_TRACED_INPUT] = PC_PASS_B,
        [PC_TRACED_W] = PC_PASS_W, [PC_TRACED_WHOLE] = PC_PASS_BW, [PC_TRACED_R] = PC_PASS_R};
    bool is_split =
        name->kind == PC_TRACED_B && count > 0 && bsearch(name, split, count, sizeof *split, by_chunk_and_microbatch);
    return is_split ? PC_PASS_B : kinds[name->kind];
}

static bool to_ps(int64_t time_ns, pc_time *time_ps) {
    return !__builtin_mul_overflow(time_ns, 1000, time_ps) && llabs(*time_ps) <= PC_TRACED_SPAN_PS;
}

/* Of one rank, on its own clock yet, which starts at draft->origin_ns. */
static pc_code add_passes(pc_draft *draft, const pc_placed_rank *rank, pc_error *error) {
    pc_traced_run *timeline = &draft->timeline;
    pc_traced_name *split = NULL;
    size_t count;
    pc_code code = list_split(rank->trace, &split, &count, error);
    for (int64_t i = 0; i < rank->trace->pass_count && !code; i++) {
        const pc_traced_pass *pass = &rank->trace->passes[i];
        if (pass->occurrence < draft->request->skip) continue;
        pc_traced_run_pass *to = &timeline->passes[timeline->pass_count++];
        *to = (pc_traced_run_pass){
            .iteration = (int32_t)(pass->occurrence - draft->request->skip),
            .device = rank->device,
            .replica = rank->replica,
            .pass = {.microbatch = pass->name.microbatch,
                     .chunk = (int16_t)(pass->name.has_part ? pass->name.chunk / timeline->devices : pass->name.chunk),
                     .kind = (int16_t)kind_of(&pass->name, split, count)},
            .bytes = pass->bytes};
        if (to->iteration >= timeline->iterations) timeline->iterations = to->iteration + 1;
        bool is_counted = to_ps(pass->start_ns - draft->origin_ns, &to->start_ps) &&
                          to_ps(pass->end_ns - draft->origin_ns, &to->end_ps);
        if (!is_counted) code = pc_traced_run_refuse_span(error);
    }
    pc_free(split);
    return code;
}

/* On whatever clock the first pass of all begins. */
static void find_origin(pc_draft *draft) {
    draft->origin_ns = INT64_MAX;
    for (int i = 0; i < draft->rank_count; i++)
        if (draft->ranks[i].trace->passes[0].start_ns < draft->origin_ns)
            draft->origin_ns = draft->ranks[i].trace->passes[0].start_ns;
}

static pc_code add_all(pc_draft *draft, pc_error *error) {
    find_origin(draft);
    for (int i = 0; i < draft->rank_count; i++) {
        pc_code code = add_passes(draft, &draft->ranks[i], error);
        if (code) return code;
    }
    if (draft->timeline.pass_count > 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "no more than %lld iterations; expected more than are skipped",
                        (long long)draft->request->skip);
}

static int by_place(const void *a, const void *b) {
    const pc_traced_run_pass *x = a, *y = b;
    int order = compare(x->replica, y->replica);
    if (order == 0) order = compare(x->iteration, y->iteration);
    if (order == 0) order = compare(x->device, y->device);
    if (order == 0) order = compare(x->start_ps, y->start_ps);
    if (order == 0) order = compare(x->pass.kind, y->pass.kind);
    if (order == 0) order = compare(x->pass.chunk, y->pass.chunk);
    return order ? order : compare(x->pass.microbatch, y->pass.microbatch);
}

/* ---- memory ---- */

static pc_code take_memory(pc_draft *draft, pc_error *error) {
    pc_traced_run *timeline = &draft->timeline;
    timeline->held_bytes = pc_alloc((size_t)timeline->devices, sizeof *timeline->held_bytes);
    if (!timeline->held_bytes) return pc_error_no_memory(error);
    timeline->has_memory = true;
    for (int i = 0; i < draft->rank_count; i++) {
        const pc_placed_rank *rank = &draft->ranks[i];
        int64_t *held = &timeline->held_bytes[rank->device];
        timeline->has_memory = timeline->has_memory && rank->trace->has_memory;
        if (rank->trace->held_bytes > *held) *held = rank->trace->held_bytes;
    }
    return PC_OK;
}

/* ---- all of it ---- */

static pc_code fill(pc_draft *draft, const pc_rank_trace *traces, pc_error *error) {
    pc_code code = place_ranks(draft, traces, error);
    if (!code) code = take_sizes(draft, error);
    if (!code) code = take_placement(draft, error);
    if (!code) code = add_all(draft, error);
    if (!code) code = take_memory(draft, error);
    if (!code) code = pc_traced_run_add_messages(draft, error);
    if (code) return code;
    qsort(draft->timeline.passes, (size_t)draft->timeline.pass_count, sizeof *draft->timeline.passes, by_place);
    return PC_OK;
}

pc_code pc_traced_run_make(const pc_rank_trace *traces, int count, const pc_traced_run_request *request,
                           pc_traced_run *timeline, pc_error *error) {
    pc_draft draft = {.request = request, .rank_count = count};
    if (count < 1) return pc_error_set(error, PC_ERROR_INPUT, "no traces; expected one a stage");
    draft.ranks = pc_alloc((size_t)count, sizeof *draft.ranks);
    if (!draft.ranks) return pc_error_no_memory(error);
    pc_code code = fill(&draft, traces, error);
    pc_free(draft.ranks);
    if (code)
        pc_traced_run_free(&draft.timeline);
    else
        *timeline = draft.timeline;
    return code;
}

void pc_traced_run_free(pc_traced_run *timeline) {
    pc_free(timeline->held_bytes);
    pc_free(timeline->passes);
    pc_free(timeline->messages);
    memset(timeline, 0, sizeof *timeline);
}
