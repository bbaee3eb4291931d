/* The orders that an iteration tries: what the spec asks for, and others that may take less. */
#include "models/training/iteration_private.h"

#include "models/training/outline.h"
#include "models/training/tails.h"

/* What a search is to give: what the spec asks for (of the costs the shortest of its answers); its answer for equal
 * times; the one that it finds first. All minimise the span; of these the one of the spec's goal does not. */
typedef enum search_for { SEARCH_AS_TOLD, SEARCH_EQUAL, SEARCH_ONCE, SEARCH_GOAL } search_for;

/* Of the schedules that are searched, only one adapts to the memory that there is; the others are what their name says,
 * whether that fits or not, and so get no limit. */
static pc_code generate_with(const pc_iteration_work *run, const pc_costs *costs, search_for what,
                             const pc_tails *tails, bool with_block, pc_schedule *schedule, pc_iteration *iteration,
                             pc_error *error) {
    pc_error why = {0};
    const pc_generator *generator = run->spec->generator;
    pc_generate_request request = pc_outline_request(&run->outline, costs);
    request.memory_limit = (pc_memory_limit){generator->adapts ? run->room_bytes : NULL};
    if (what == SEARCH_EQUAL) request.making = PC_MAKING_EQUAL;
    request.goal = what == SEARCH_GOAL ? run->spec->goal : PC_GOAL_SPAN;
    request.tails = tails;
    request.searches_once = what == SEARCH_ONCE;
    request.memo = run->memo;
    pc_code code = pc_generate(generator, &request, schedule, with_block ? &iteration->block : NULL, &why);
    if (code == PC_ERROR_INPUT) {
        pc_iteration_note_infeasible(iteration, why.message);
        return PC_OK;
    }
    return code ? pc_error_copy(error, &why) : PC_OK;
}

static pc_code generate(const pc_iteration_work *run, const pc_costs *costs, search_for what, bool with_block,
                        pc_schedule *schedule, pc_iteration *iteration, pc_error *error) {
    return generate_with(run, costs, what, NULL, with_block, schedule, iteration, error);
}

pc_code pc_iteration_search_first(const pc_iteration_work *run, bool with_block, pc_schedule *schedule,
                                  pc_iteration *iteration, pc_error *error) {
    return generate(run, &run->costs, SEARCH_AS_TOLD, with_block, schedule, iteration, error);
}

/* Searches take messages for delays, however many are under way. Where that was wrong, because the iteration takes more
 * than a hundredth longer over flows than by closed costs, what is searched as if stages waited for what they send may
 * be better: it has them send less at once. */
static bool wants_waiting(const pc_iteration_work *run, const pc_iteration *iteration) {
    const pc_iteration_spec *spec = run->spec;
    return spec->generator->searches && spec->making == PC_MAKING_COSTS && spec->overlaps_p2p &&
           spec->effort == PC_EFFORT_FULL && run->outline.devices > 1 && pc_iteration_wants_flows(run) &&
           iteration->iteration_s > 1.01 * pc_time_to_seconds(run->alone_ps);
}

static pc_code search_waiting(const pc_iteration_work *run, bool with_block, pc_schedule *schedule,
                              pc_iteration *iteration, pc_error *error) {
    pc_iteration_spec waiting = *run->spec;
    pc_outline outline = run->outline;
    pc_costs costs;
    waiting.overlaps_p2p = false;
    outline.spec = &waiting;
    pc_code code = pc_outline_costs(&outline, 0, &costs, error);
    if (code) return code;
    code = generate(run, &costs, SEARCH_AS_TOLD, with_block, schedule, iteration, error);
    pc_costs_free(&costs);
    return code;
}

/* Searches go by the span of the passes; what comes before and after them, and meetings of flows, can make a longer one
 * the shorter iteration. Made for equal times, one is found soon, and is what one would compare with; and over flows,
 * made as if every hop took as long as the slowest, stages wait less for messages that meet others. */
static bool wants_others(const pc_iteration_work *run, const pc_iteration *iteration) {
    (void)iteration;
    const pc_iteration_spec *spec = run->spec;
    return spec->generator->searches && spec->making == PC_MAKING_COSTS && run->outline.devices > 1 &&
           spec->effort == PC_EFFORT_FULL;
}

static pc_code search_equal(const pc_iteration_work *run, bool with_block, pc_schedule *schedule,
                            pc_iteration *iteration, pc_error *error) {
    return generate(run, &run->costs, SEARCH_EQUAL, with_block, schedule, iteration, error);
}

static bool wants_slowest_hop(const pc_iteration_work *run, const pc_iteration *iteration) {
    return wants_others(run, iteration) && pc_iteration_wants_flows(run);
}

static pc_code search_slowest_hop(const pc_iteration_work *run, bool with_block, pc_schedule *schedule,
                                  pc_iteration *iteration, pc_error *error) {
    pc_costs costs = run->costs;
    costs.hop_delay_ps = NULL; /* transfer.delay_ps is the slowest one's */
    return generate(run, &costs, SEARCH_ONCE, with_block, schedule, iteration, error);
}

/* What the goal finds stands beside all that the span finds, so that no iteration is longer for it. */
static bool wants_goal(const pc_iteration_work *run, const pc_iteration *iteration) {
    (void)iteration;
    const pc_iteration_spec *spec = run->spec;
    return spec->goal != PC_GOAL_SPAN && spec->generator->searches && spec->making == PC_MAKING_COSTS &&
           run->outline.devices > 1;
}

static pc_code search_goal(const pc_iteration_work *run, bool with_block, pc_schedule *schedule,
                           pc_iteration *iteration, pc_error *error) {
    pc_outline_tails made;
    pc_code code = pc_outline_tails_make(&run->outline, &run->costs, &made, error);
    if (code) return code;
    code = generate_with(run, &run->costs, SEARCH_GOAL, &made.tails, with_block, schedule, iteration, error);
    pc_outline_tails_free(&made);
    return code;
}

const pc_order_attempt pc_order_attempts[PC_ORDER_ATTEMPTS] = {{wants_waiting, search_waiting},
                                                               {wants_others, search_equal},
                                                               {wants_slowest_hop, search_slowest_hop},
                                                               {wants_goal, search_goal}};
