/* One search, of those that generate_answers.c compares, and its answer where a memo has it.
 *
 * What a search is asked for is reduced to what can decide its answer, and searched in that form, with a memo or
 * without. So the memo's key is a hash of all that the search is given, and what two requests differ in beside it
 * cannot count.
 */
#include "models/schedule/generate_private.h"

#include "engine/alloc.h"
#include "models/schedule/search_memo_private.h"

#include <stdio.h>
#include <string.h>

/* ---- what decides the answer ---- */

static pc_code create_reduced(const pc_costs *costs, pc_costs *reduced, pc_error *error) {
    pc_code code = pc_costs_create(costs->devices, costs->chunks, reduced, error);
    if (code) return code;
    reduced->transfer = costs->transfer;
    if (costs->hop_delay_ps) code = pc_costs_add_hop_delays(reduced, error);
    if (code) pc_costs_free(reduced);
    return code;
}

/* Times of its kinds of passes alone. */
static void fill_times(const pc_generator *name, const pc_costs *from, pc_costs *to) {
    for (int64_t i = 0; i < (int64_t)from->devices * from->chunks * PC_PASS_KINDS; i++)
        if (pc_generator_has_kind(name, (pc_pass_kind)(i % PC_PASS_KINDS))) to->duration_ps[i] = from->duration_ps[i];
}

/* What F keeps counts where B recomputes alone: there is no R. */
static void fill_bytes(const pc_costs *from, pc_costs *to) {
    size_t bytes = (size_t)from->devices * (size_t)from->chunks * sizeof *from->activation_bytes;
    memcpy(to->activation_bytes, from->activation_bytes, bytes);
    memcpy(to->activation_b_bytes, from->activation_b_bytes, bytes);
    if (from->recomputes_in_b) memcpy(to->activation_kept_bytes, from->activation_kept_bytes, bytes);
    to->recomputes_in_b = from->recomputes_in_b;
    to->leaves_gradients = from->leaves_gradients;
}

/* Only an interleaved placement leads from the last device to the first; but of two devices that is the way back
 * (pc_costs_delay). Hops that all take the same are a delay of all. */
static void fill_hops(const pc_generator *name, const pc_costs *from, pc_costs *to) {
    bool is_ring = name->placement == PC_PLACEMENT_INTERLEAVED || from->devices == 2;
    int hops = is_ring ? from->devices : from->devices - 1;
    bool are_equal = true;
    if (!from->hop_delay_ps) return;
    memset(to->hop_delay_ps, 0, (size_t)from->devices * sizeof *to->hop_delay_ps);
    for (int d = 0; d < hops; d++) {
        to->hop_delay_ps[d] = from->hop_delay_ps[d];
        are_equal = are_equal && from->hop_delay_ps[d] == from->hop_delay_ps[0];
    }
    to->transfer.delay_ps = are_equal && hops > 0 ? from->hop_delay_ps[0] : 0;
    if (!are_equal) return;
    pc_free(to->hop_delay_ps);
    to->hop_delay_ps = NULL;
}

/* Ready times count for the iteration alone. */
static pc_code fill_ready(const pc_costs *from, pc_goal goal, pc_costs *to, pc_error *error) {
    if (goal != PC_GOAL_ITERATION || !from->ready_ps) return PC_OK;
    pc_code code = pc_costs_add_ready(to, error);
    if (code) return code;
    memcpy(to->ready_ps, from->ready_ps, (size_t)from->devices * (size_t)from->chunks * sizeof *to->ready_ps);
    return PC_OK;
}

static pc_code reduce(const pc_generator *name, const pc_costs *costs, pc_goal goal, pc_costs *reduced,
                      pc_error *error) {
    pc_code code = create_reduced(costs, reduced, error);
    if (code) return code;
    code = fill_ready(costs, goal, reduced, error);
    if (code) {
        pc_costs_free(reduced);
        return code;
    }
    fill_times(name, costs, reduced);
    fill_bytes(costs, reduced);
    fill_hops(name, costs, reduced);
    return PC_OK;
}

/* ---- its key ---- */

static void add_numbers(pc_hash *hash, const int64_t *numbers, int64_t count) {
    pc_hash_add(hash, numbers ? (uint64_t)count : UINT64_MAX);
    if (numbers) pc_hash_add_bytes(hash, numbers, (size_t)count * sizeof *numbers);
}

static void add_transfer(pc_hash *hash, const pc_transfer *transfer) {
    uint64_t bandwidth;
    memcpy(&bandwidth, &transfer->bandwidth_bytes_per_s, sizeof bandwidth);
    const uint64_t words[] = {(uint64_t)transfer->mode, (uint64_t)transfer->delay_ps, (uint64_t)transfer->latency_ps,
                              bandwidth, (uint64_t)transfer->size_bytes};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) pc_hash_add(hash, words[i]);
}

/* All of the costs, whatever a search looks at: what is to be left out `reduce` leaves out. */
static void add_costs(pc_hash *hash, const pc_costs *costs) {
    int64_t cells = (int64_t)costs->devices * costs->chunks;
    pc_hash_add(hash, (uint64_t)costs->devices);
    pc_hash_add(hash, (uint64_t)costs->chunks);
    add_numbers(hash, costs->duration_ps, cells * PC_PASS_KINDS);
    add_numbers(hash, costs->activation_bytes, cells);
    add_numbers(hash, costs->activation_b_bytes, cells);
    add_numbers(hash, costs->activation_kept_bytes, cells);
    pc_hash_add(hash, costs->recomputes_in_b);
    pc_hash_add(hash, costs->leaves_gradients);
    add_transfer(hash, &costs->transfer);
    add_numbers(hash, costs->hop_delay_ps, costs->devices);
    add_numbers(hash, costs->ready_ps, cells);
}

/* What is minimised; tails only where they count. */
static void add_goal(pc_hash *hash, const pc_generate_request *request) {
    const pc_tails *tails = request->goal == PC_GOAL_ITERATION ? request->tails : NULL;
    int64_t cells = (int64_t)request->costs->devices * request->costs->chunks;
    pc_hash_add(hash, (uint64_t)request->goal);
    pc_hash_add(hash, tails ? 1 + (uint64_t)tails->from_begin : 0);
    if (!tails) return;
    add_numbers(hash, tails->stream_ps, cells);
    add_numbers(hash, tails->after_ps, cells);
    add_numbers(hash, tails->own_ps, request->costs->devices);
}

/* Names that are one search have one number; the schedule gets the name of the one that asks. */
static pc_hash key_of(const pc_generator *name, const pc_generate_request *request, bool is_tight, bool with_block) {
    pc_hash hash = {UINT64_C(0x7365617263686573), UINT64_C(0x72656d656d626572)};
    const int numbers[] = {pc_searched_number(name), name->placement, name->splits, is_tight, with_block,
                           (int)request->effort};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) pc_hash_add(&hash, (uint64_t)numbers[i]);
    pc_hash_add(&hash, (uint64_t)request->microbatches);
    add_costs(&hash, request->costs);
    add_goal(&hash, request);
    for (int d = 0; d < request->costs->devices; d++)
        pc_hash_add(&hash, (uint64_t)pc_memory_limit_of(request->memory_limit, d));
    return hash;
}

/* ---- the answer ---- */

static pc_code remember(const pc_generator *self, const pc_generate_request *request, bool is_tight,
                        pc_schedule *schedule, pc_block *block, pc_error *error) {
    pc_hash key = key_of(self, request, is_tight, block != NULL);
    pc_search_memo_work work;
    bool found;
    pc_code code = pc_search_memo_begin(request->memo, key, &work, schedule, block, &found, error);
    if (code) return code;
    if (found) {
        snprintf(schedule->name, sizeof schedule->name, "%s", self->name);
        return PC_OK;
    }
    code = pc_searched_find(self, request, is_tight, schedule, block, error);
    if (code) {
        pc_search_memo_end(request->memo, &work, NULL, NULL, NULL);
        return code;
    }
    code = pc_search_memo_end(request->memo, &work, schedule, block, error);
    if (!code) return PC_OK;
    pc_schedule_free(schedule);
    if (block) pc_block_free(block);
    return code;
}

pc_code pc_searched_run(const pc_generator *self, const pc_generate_request *request, bool is_tight,
                        pc_schedule *schedule, pc_block *block, pc_error *error) {
    pc_costs reduced;
    pc_generate_request asked = *request;
    pc_code code = reduce(self, request->costs, request->goal, &reduced, error);
    if (code) return code;
    asked.costs = &reduced;
    code = request->memo ? remember(self, &asked, is_tight, schedule, block, error)
                         : pc_searched_find(self, &asked, is_tight, schedule, block, error);
    pc_costs_free(&reduced);
    return code;
}
