/* What passes cost as a replay gets them, with the collectives that are part of them, and a request for their order. */
#include "models/training/outline.h"

#include "models/training/buckets.h"
#include "models/training/expand_replicas.h"
#include "models/training/outline_pairs.h"
#include "models/training/outline_units.h"
#include "models/training/pass_costs.h"

#include <math.h>

double pc_outline_pass_s(const pc_outline *outline, int device, pc_pass pass) {
    const pc_pass_cost *x = &pc_outline_part(outline, device, pass.chunk)->pass[pass.kind];
    return pc_pass_alone_s(x) * outline->pace;
}

static pc_time with_units(const pc_outline *outline, int device, pc_pass pass, pc_time alone_ps) {
    pc_units units = pc_outline_units_of(outline, device, pass, alone_ps);
    pc_unit_rules rules = pc_outline_unit_rules(outline);
    return pc_units_run(&units, &rules, NULL);
}

pc_zero_traffic pc_outline_zero_traffic(const pc_outline *outline, int device, pc_pass pass) {
    const pc_chunk_outline *x = &outline->chunks_of[(int64_t)device * outline->chunks + pass.chunk];
    bool gathers = outline->cut.zero == 3 && pass.kind != PC_PASS_W;
    bool reduces = pc_pass_adds_gradients(pass) && (outline->cut.zero == 3 || !outline->spec->overlaps_gradients);
    return (pc_zero_traffic){gathers ? x->buckets * x->gather_ps : 0, reduces ? x->buckets * x->reduce_ps : 0};
}

pc_time pc_outline_beside_zero(const pc_outline *outline, pc_zero_traffic traffic, pc_time alone_ps) {
    pc_time beside_ps = (outline->spec->overlaps_parameters ? traffic.gather_ps : 0) +
                        (outline->spec->overlaps_gradients ? traffic.reduce_ps : 0);
    pc_time kernels_ps = alone_ps + (pc_time)(outline->spec->overlap_slowdown * (double)beside_ps);
    return (kernels_ps > beside_ps ? kernels_ps : beside_ps) + traffic.gather_ps + traffic.reduce_ps - beside_ps;
}

pc_time pc_outline_with_zero(const pc_outline *outline, int device, pc_pass pass, pc_time alone_ps) {
    if (pc_outline_has_units(outline)) return with_units(outline, device, pass, alone_ps);
    return pc_outline_beside_zero(outline, pc_outline_zero_traffic(outline, device, pass), alone_ps);
}

int pc_outline_receiver(const pc_outline *outline, int device, pc_pass pass) {
    int part = pc_placement_part(outline->placement, outline->devices, device, pass.chunk), next;
    if (pass.kind == PC_PASS_F)
        next = part + 1;
    else if (pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW)
        next = part - 1;
    else
        return -1;
    if (next < 0 || next == outline->parts) return -1;
    int to = pc_placement_stage(outline->placement, outline->devices, next, pass.chunk);
    return to == device ? -1 : to;
}

static pc_time with_collectives(const pc_outline *outline, int device, pc_pass pass, int without, pc_time alone_ps) {
    bool has_zero = outline->cut.zero >= 2 && !(without & PC_WITHOUT_DATA_PARALLEL);
    return has_zero ? pc_outline_with_zero(outline, device, pass, alone_ps) : alone_ps;
}

pc_time pc_outline_wait_behind(const pc_outline *outline, int device, pc_pass pass) {
    int to = pc_outline_receiver(outline, device, pass);
    return to < 0 ? 0 : outline->device[pc_outline_hop(outline, device, to)].hop_ps;
}

pc_time pc_outline_whole_pass(const pc_outline *outline, int device, pc_pass pass, int without, pc_time alone_ps) {
    bool waits = !outline->spec->overlaps_p2p && !(without & PC_WITHOUT_TRANSFERS);
    return with_collectives(outline, device, pass, without, alone_ps) +
           (waits ? pc_outline_wait_behind(outline, device, pass) : 0);
}

static pc_code set_duration(const pc_outline *outline, int device, pc_pass pass, int without, pc_costs *costs,
                            pc_error *error) {
    pc_time time;
    double seconds = pc_outline_pass_s(outline, device, pass);
    pc_code code = pc_outline_time(pc_pass_kind_name((pc_pass_kind)pass.kind), seconds, 1, &time, error);
    if (code) return code;
    costs->duration_ps[pc_costs_index(costs, device, pass.chunk) * PC_PASS_KINDS + pass.kind] =
        with_collectives(outline, device, pass, without, time);
    return PC_OK;
}

static double shortest_pass_s(const pc_outline *outline, int device) {
    double shortest = PC_OUTLINE_SECONDS_MAX;
    for (int c = 0; c < outline->chunks; c++)
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            if (pc_outline_has_kind(outline->spec->generator, (pc_pass_kind)kind))
                shortest = fmin(shortest, pc_outline_pass_s(outline, device, (pc_pass){0, (int16_t)c, (int16_t)kind}));
    return shortest;
}

/* Passes that a copy back may hide behind: so many of the shortest ones as hide it, that no faster link makes waits. No
 * more than a round of a schedule has: two with BW, three with B and W. */
static int32_t passes_ahead(const pc_outline *outline, int device, double seconds) {
    double shortest = shortest_pass_s(outline, device);
    if (seconds <= shortest) return 1;
    return seconds <= 2 * shortest || !outline->spec->generator->splits ? 2 : 3;
}

/* Out and back at the same rate. */
static pc_code set_copies(const pc_outline *outline, int device, const pc_part_activation *held, int64_t row,
                          pc_costs *costs, pc_error *error) {
    const pc_copies *copies = &costs->copies;
    double seconds = (double)held->offloaded / pc_machine_host_link(&outline->spec->machine);
    pc_code code = pc_outline_time("copy to the host", seconds, 1, &copies->out_ps[row], error);
    copies->back_ps[row] = copies->out_ps[row];
    copies->ahead[row] = passes_ahead(outline, device, seconds);
    copies->bytes[row] = held->offloaded;
    copies->b_bytes[row] = held->offloaded_b;
    return code;
}

static pc_code set_chunk(const pc_outline *outline, int device, int chunk, int without, pc_costs *costs,
                         pc_error *error) {
    const pc_part_activation *held = &pc_outline_part(outline, device, chunk)->activation;
    int64_t row = pc_costs_index(costs, device, chunk);
    pc_code code = PC_OK;
    costs->activation_bytes[row] = held->taken;
    costs->activation_b_bytes[row] = held->b_frees;
    costs->activation_kept_bytes[row] = held->kept;
    if (pc_costs_have_copies(costs)) code = set_copies(outline, device, held, row, costs, error);
    for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++)
        if (pc_outline_has_kind(outline->spec->generator, (pc_pass_kind)kind))
            code = set_duration(outline, device, (pc_pass){0, (int16_t)chunk, (int16_t)kind}, without, costs, error);
    return code;
}

/* Searches go by the slowest hop; the way from the last stage back to the first is like one of the others. */
static pc_code set_hops(const pc_outline *outline, pc_costs *costs, pc_error *error) {
    pc_code code = pc_costs_add_hop_delays(costs, error);
    for (int d = 0; !code && d < outline->devices; d++) {
        pc_time delay = costs->hop_delay_ps[d] = outline->device[d].hop_ps;
        if (delay > costs->transfer.delay_ps) costs->transfer.delay_ps = delay;
    }
    return code;
}

int pc_outline_nth_chunk(const pc_outline *outline, int device, int n) {
    bool is_reversed = outline->placement == PC_PLACEMENT_BIDIRECTIONAL && 2 * device >= outline->devices;
    return is_reversed ? outline->chunks - 1 - n : n;
}

void pc_outline_set_ready(const pc_outline *outline, int device, pc_costs *costs) {
    pc_time stream_ps = 0;
    for (int i = 0; i < outline->chunks; i++) {
        int c = pc_outline_nth_chunk(outline, device, i);
        const pc_chunk_outline *x = &outline->chunks_of[(int64_t)device * outline->chunks + c];
        pc_time f_ps = pc_costs_duration(costs, device, c, PC_PASS_F), latest = 0;
        for (int32_t k = 0; k < x->buckets; k++) {
            stream_ps += x->gather_ps;
            pc_time ready = stream_ps - f_ps / x->buckets * k;
            if (ready > latest) latest = ready;
        }
        costs->ready_ps[pc_costs_index(costs, device, c)] = latest;
    }
    for (int c = 0; !outline->spec->overlaps_parameters && c < outline->chunks; c++)
        costs->ready_ps[pc_costs_index(costs, device, c)] = stream_ps;
}

bool pc_outline_gathers_first(const pc_outline *outline) {
    bool once = outline->cut.zero == 1 || outline->cut.zero == 2 || pc_outline_gathers_once(outline);
    return once && pc_outline_has_replicas(outline);
}

bool pc_outline_reduces_behind(const pc_outline *outline) {
    bool in_passes = outline->cut.zero == 3 || (outline->cut.zero == 2 && !outline->spec->overlaps_gradients);
    return pc_outline_has_replicas(outline) && (!in_passes || pc_outline_reduces_last(outline));
}

bool pc_outline_overlaps_gradients(const pc_outline *outline) {
    return outline->spec->overlaps_gradients && !(pc_outline_reduces_last(outline) && outline->devices > 1);
}

/* Where stages wait for what they send, that is part of the pass; but parameters come on the way of its kernels. */
static void add_waits(const pc_outline *outline, int device, pc_costs *costs) {
    for (int c = 0; c < outline->chunks; c++)
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
            pc_time *duration_ps = &costs->duration_ps[pc_costs_index(costs, device, c) * PC_PASS_KINDS + kind];
            if (*duration_ps >= 0)
                *duration_ps += pc_outline_wait_behind(outline, device, (pc_pass){0, (int16_t)c, (int16_t)kind});
        }
}

static pc_code set_transfers(const pc_outline *outline, pc_costs *costs, pc_error *error) {
    if (outline->spec->overlaps_p2p) return set_hops(outline, costs, error);
    for (int d = 0; d < outline->devices; d++) add_waits(outline, d, costs);
    return PC_OK;
}

bool pc_outline_recomputes_in_b(const pc_outline *outline) {
    for (int i = 0; i < outline->sort_count && !outline->spec->generator->recomputes; i++)
        if (outline->part_costs[i].activation.kept < outline->part_costs[i].activation.taken) return true;
    return false;
}

/* Whether no part makes anything again in B: what B leaves over what F kept is gradients. */
static bool leaves_gradients(const pc_outline *outline) {
    for (int i = 0; i < outline->sort_count; i++) {
        const pc_part *part = &outline->part_costs[i].part;
        bool is_whole = part->recompute < PC_RECOMPUTE_FULL;
        if (!is_whole && pc_recomputed_layers(pc_part_recomputation(part), part->layers) > 0) return false;
    }
    return pc_outline_recomputes_in_b(outline);
}

static pc_code fill_in_costs(const pc_outline *outline, int without, pc_costs *costs, pc_error *error) {
    bool gathers = pc_outline_gathers_first(outline) && !(without & PC_WITHOUT_DATA_PARALLEL);
    pc_code code = gathers ? pc_costs_add_ready(costs, error) : PC_OK;
    if (!code && pc_offload_is_beside_passes(&outline->cut.offload)) code = pc_costs_add_copies(costs, error);
    costs->recomputes_in_b = pc_outline_recomputes_in_b(outline);
    costs->leaves_gradients = leaves_gradients(outline);
    costs->vocab = outline->vocab;
    if (without & PC_WITHOUT_TRANSFERS) costs->vocab = (pc_vocab_costs){.held_bytes = outline->vocab.held_bytes};
    for (int d = 0; !code && d < outline->devices; d++) {
        for (int c = 0; !code && c < outline->chunks; c++) code = set_chunk(outline, d, c, without, costs, error);
        if (!code && gathers) pc_outline_set_ready(outline, d, costs);
    }
    if (!code && !(without & PC_WITHOUT_TRANSFERS)) code = set_transfers(outline, costs, error);
    return code ? code : pc_outline_set_pairs(outline, without, costs, error);
}

pc_code pc_outline_costs(const pc_outline *outline, int without, pc_costs *costs, pc_error *error) {
    pc_costs made;
    pc_code code = pc_costs_create(outline->devices, outline->chunks, &made, error);
    if (code) return code;
    code = fill_in_costs(outline, without, &made, error);
    if (code)
        pc_costs_free(&made);
    else
        *costs = made;
    return code;
}

pc_generate_request pc_outline_request(const pc_outline *outline, const pc_costs *costs) {
    const pc_iteration_spec *spec = outline->spec;
    return (pc_generate_request){.devices = outline->devices,
                                 .microbatches = outline->cut.microbatches,
                                 .chunks = outline->chunks,
                                 .slices = outline->cut.slices,
                                 .costs = costs,
                                 .threads = 1, /* runs go on beside each other */
                                 .making = spec->making,
                                 .effort = spec->effort,
                                 .memo = spec->memo};
}
