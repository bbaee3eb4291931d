/* From a request to a schedule: what a generator can make, of which makings, in which memory, and how it is asked. */
#include "models/schedule/generate_private.h"

#include "models/schedule/deployed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- sizes ---- */

static pc_code check_chunks(const pc_generator *generator, int64_t chunks, pc_error *error) {
    int least = generator->chunks_min, most = generator->chunks_max;
    if (chunks >= least && (!most || chunks <= most)) return PC_OK;
    if (!most)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: %" PRId64 " chunks a device; expected at least %d",
                            generator->name, chunks, least);
    if (most == least)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: %" PRId64 " chunks a device; expected %d", generator->name,
                            chunks, least);
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %" PRId64 " chunks a device; expected %d to %d", generator->name,
                        chunks, least, most);
}

static pc_code check_microbatches(const pc_generator *generator, int64_t devices, int64_t microbatches,
                                  pc_error *error) {
    int64_t least = generator->microbatches_min * devices;
    if (microbatches >= least) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: %" PRId64 " microbatches on %" PRId64 " devices; expected at least %" PRId64
                        ", %d a device",
                        generator->name, microbatches, devices, least, generator->microbatches_min);
}

static pc_code check_given(const pc_generator *generator, int64_t devices, int64_t microbatches, pc_error *error) {
    const pc_given *given = generator->given;
    const char *what = "devices";
    int64_t asked = devices;
    int own = given->devices;
    if (own == 0 || own == devices) {
        what = "microbatches";
        asked = microbatches;
        own = given->microbatches;
    }
    if (own == 0 || own == asked) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %" PRId64 " %s; expected the %d of that file", generator->name,
                        asked, what, own);
}

pc_code pc_generator_check(const pc_generator *generator, int64_t devices, int64_t microbatches, int64_t chunks,
                           pc_error *error) {
    if (chunks == 0) chunks = generator->chunks_default;
    pc_code code = pc_schedule_check_size(devices, microbatches, chunks, error);
    if (!code) code = check_chunks(generator, chunks, error);
    if (!code) code = check_microbatches(generator, devices, microbatches, error);
    bool is_halved = generator->mixes && generator->placement == PC_PLACEMENT_BIDIRECTIONAL;
    if (!code && is_halved && (devices % 2 != 0 || microbatches % 2 != 0))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: %" PRId64 " devices, %" PRId64
                            " microbatches; expected an even number of both, or schedule dualpipe-v",
                            generator->name, devices, microbatches);
    if (!code && generator->barriers != PC_BARRIERS_NONE && devices > PC_VOCAB_DEVICES_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: %" PRId64 " devices; expected up to %d, for all wait for all",
                            generator->name, devices, PC_VOCAB_DEVICES_MAX);
    return code || !generator->given ? code : check_given(generator, devices, microbatches, error);
}

/* ---- makings ---- */

const char *const pc_making_names[PC_MAKINGS + 1] = {"costs", "equal", "published", "torch", "megatron", NULL};

bool pc_generator_has_making(const pc_generator *generator, pc_making making) {
    return making <= PC_MAKING_EQUAL ? generator->searches : pc_deployed_find(generator, making) != NULL;
}

static bool takes_making(const pc_generator *generator, pc_making making) {
    bool is_own = making <= PC_MAKING_EQUAL || (making == PC_MAKING_PUBLISHED && !generator->searches);
    return is_own || pc_generator_has_making(generator, making);
}

/* "costs, equal or published" */
static const char *list_makings(const pc_generator *generator, char text[64]) {
    int made = 0, count = 0;
    text[0] = '\0';
    for (pc_making one = 0; one < PC_MAKINGS; one++) count += takes_making(generator, one);
    for (pc_making one = 0; one < PC_MAKINGS; one++) {
        if (!takes_making(generator, one)) continue;
        size_t used = strlen(text);
        made++;
        snprintf(text + used, 64 - used, "%s%s", made == 1 ? "" : made == count ? " or " : ", ", pc_making_names[one]);
    }
    return text;
}

bool pc_generator_has_goal(const pc_generator *generator, pc_making making) {
    return generator->searches && !generator->given && making == PC_MAKING_COSTS;
}

pc_code pc_generator_check_goal(const pc_generator *generator, pc_making making, pc_goal goal, pc_error *error) {
    if (making == PC_MAKING_COSTS || goal == PC_GOAL_SPAN) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: goal %s with making %s, whose order does not go by it; expected making costs",
                        generator->name, pc_goal_names[goal], pc_making_names[making]);
}

pc_code pc_generator_check_making(const pc_generator *generator, pc_making making, pc_error *error) {
    char makings[64];
    if (takes_making(generator, making)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: making %s: nobody gives such an order of it; expected %s",
                        generator->name, pc_making_names[making], list_makings(generator, makings));
}

/* ---- memory ---- */

/* Of one microbatch whose W follow their B at once: while a chunk is at it, those of the parts before it have what F
 * kept. */
static int64_t least_of_recomputing(const pc_costs *costs, int device) {
    int64_t kept = 0, most = 0;
    for (int c = 0; c < costs->chunks; c++) {
        int64_t i = pc_costs_index(costs, device, c), level = kept + costs->activation_bytes[i];
        if (level > most) most = level;
        kept += costs->activation_kept_bytes[i];
    }
    return most;
}

int64_t pc_generator_least_memory(const pc_generator *generator, const pc_costs *costs, int device) {
    if (costs->recomputes_in_b) return least_of_recomputing(costs, device);
    int64_t sum = 0, most = 0;
    for (int c = 0; c < costs->chunks; c++) {
        int64_t bytes = costs->activation_bytes[pc_costs_index(costs, device, c)];
        sum += bytes;
        if (bytes > most) most = bytes;
    }
    return pc_placement_visited(generator->placement, costs->chunks) == costs->chunks ? sum : most;
}

pc_code pc_generator_check_memory(const pc_generator *generator, const pc_costs *costs, pc_memory_limit memory_limit,
                                  pc_error *error) {
    for (int d = 0; d < costs->devices; d++) {
        int64_t least_bytes = pc_generator_least_memory(generator, costs, d);
        int64_t room = pc_memory_limit_of(memory_limit, d);
        if (room < least_bytes)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "%s: device %d has %" PRId64 " bytes for activations; expected at least %" PRId64
                                ", which one microbatch takes",
                                generator->name, d, room, least_bytes);
    }
    return PC_OK;
}

/* ---- for a request ---- */

static pc_code check_costs(const pc_generator *generator, const pc_generate_request *request, pc_error *error) {
    const pc_costs *costs = request->costs;
    if (!generator->searches) return PC_OK;
    if (costs && costs->devices == request->devices && costs->chunks == request->chunks)
        return pc_memory_limit_check(request->memory_limit, costs->devices, error);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: costs for %d devices and %d chunks; expected %" PRId64 " and %" PRId64, generator->name,
                        costs ? costs->devices : 0, costs ? costs->chunks : 0, request->devices, request->chunks);
}

/* For costs that have the activations of the request's, and nothing else. */
static pc_code generate_at_equal_times(const pc_generator *generator, const pc_generate_request *request,
                                       pc_schedule *schedule, pc_block *block, pc_error *error) {
    const pc_costs *costs = request->costs;
    pc_costs times;
    pc_code code = pc_costs_create(costs->devices, costs->chunks, &times, error);
    if (code) return code;
    pc_searched_equal_times(&times);
    pc_costs equal = *costs;
    equal.duration_ps = times.duration_ps;
    equal.transfer = times.transfer;
    equal.hop_delay_ps = equal.ready_ps = NULL;
    pc_generate_request asked = *request;
    asked.costs = &equal;
    code = generator->generate(generator, &asked, schedule, block, error);
    pc_costs_free(&times);
    return code;
}

/* What repeats in it is looked for as in a searched schedule. */
static pc_code generate_deployed(const pc_deployed *deployed, const pc_generator *generator,
                                 const pc_generate_request *request, pc_schedule *schedule, pc_block *block,
                                 pc_error *error) {
    pc_code code = deployed->generate(generator, request, schedule, error);
    if (code || !block) return code;
    code = pc_block_of_schedule(schedule, block, error);
    if (code) pc_schedule_free(schedule);
    return code;
}

pc_code pc_generate_as_told(const pc_generator *generator, const pc_generate_request *request, pc_schedule *schedule,
                            pc_block *block, pc_error *error) {
    if (generator->searches && request->making == PC_MAKING_EQUAL)
        return generate_at_equal_times(generator, request, schedule, block, error);
    return generator->generate(generator, request, schedule, block, error);
}

pc_code pc_generate(const pc_generator *generator, const pc_generate_request *request, pc_schedule *schedule,
                    pc_block *block, pc_error *error) {
    pc_generate_request full = *request;
    int64_t chunks = pc_generator_chunks(generator, request->chunks, request->slices);
    pc_code code = pc_generator_check(generator, request->devices, request->microbatches, chunks, error);
    if (code) return code;
    full.chunks = chunks;
    code = pc_generator_check_slices(generator, full.chunks, full.slices, error);
    if (!code) code = check_costs(generator, &full, error);
    if (!code) code = pc_generator_check_making(generator, full.making, error);
    if (!code) code = pc_generator_check_goal(generator, full.making, full.goal, error);
    if (code) return code;
    if (block) memset(block, 0, sizeof *block);
    const pc_deployed *deployed = pc_deployed_find(generator, full.making);
    if (deployed && !deployed->generate)
        code = pc_framework_check(generator, &full, error);
    else if (deployed)
        return generate_deployed(deployed, generator, &full, schedule, block, error);
    if (code) return code;
    if (generator->searches && full.costs->recomputes_in_b)
        return pc_generate_recomputing(generator, &full, pc_generate_as_told, schedule, block, error);
    return pc_generate_as_told(generator, &full, schedule, block, error);
}

static void fill_equal_costs(pc_costs *costs) {
    pc_searched_equal_times(costs);
    for (int i = 0; i < costs->devices * costs->chunks; i++) costs->activation_bytes[i] = 1;
}

pc_code pc_schedule_generate(const pc_generator *generator, int64_t devices, int64_t microbatches, int64_t chunks,
                             pc_schedule *schedule, pc_error *error) {
    pc_costs costs = {0};
    pc_generate_request request = {
        .devices = devices, .microbatches = microbatches, .chunks = chunks, .costs = &costs, .threads = 1};
    pc_code code = pc_generator_check(generator, devices, microbatches, chunks, error);
    if (code) return code;
    if (generator->searches) {
        code = pc_costs_create((int)devices, (int)(chunks ? chunks : generator->chunks_default), &costs, error);
        if (!code) fill_equal_costs(&costs);
    }
    if (!code) code = pc_generate(generator, &request, schedule, NULL, error);
    pc_costs_free(&costs);
    return code;
}
