#include "models/training/traffic.h"

#include "models/training/outline_units.h"
#include "models/training/stage_sums.h"

#include <math.h>

pc_sent pc_sent_none(void) {
    const double none = NAN;
    return (pc_sent){.tp_bytes = none, .cp_bytes = none, .ep_bytes = none, .pp_bytes = none, .dp_bytes = none};
}

pc_exposed pc_exposed_none(void) {
    const double none = NAN;
    return (pc_exposed){.tp = none, .cp = none, .ep = none, .pp = none, .dp = none, .optimizer = none, .bubble = none};
}

/* ZeRO 3 gathers a chunk's parameters for every pass but W and reduces its gradients behind every W or BW; ZeRO 2 does
 * the latter alone; otherwise it is once an iteration. */
static double sent_for_chunk(const pc_outline *outline, const pc_chunk_outline *chunk,
                             const int32_t count[PC_PASS_KINDS]) {
    int zero = outline->cut.zero;
    double uses = (double)count[PC_PASS_F] + count[PC_PASS_R] + count[PC_PASS_B] + count[PC_PASS_BW];
    if (pc_outline_has_units(outline)) return pc_outline_unit_traffic(outline, chunk, count[PC_PASS_F], uses);
    double gathers = zero == 3 ? uses : zero > 0 ? 1 : 0;
    double reduces = zero >= 2 ? (double)count[PC_PASS_W] + count[PC_PASS_BW] : 1;
    return chunk->buckets * (gathers * chunk->gather_bytes + reduces * chunk->reduce_bytes);
}

static void add_passes(const pc_outline *outline, int device, int chunk, const int32_t count[PC_PASS_KINDS],
                       pc_sent *sum) {
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        if (count[kind] == 0) continue;
        const pc_pass_cost *cost = &pc_outline_part(outline, device, chunk)->pass[kind];
        double n = count[kind];
        sum->tp_bytes += n * cost->tp_bytes;
        sum->cp_bytes += n * cost->cp_bytes;
        sum->ep_bytes += n * cost->ep_bytes;
        pc_pass pass = {0, (int16_t)chunk, (int16_t)kind};
        if (pc_outline_receiver(outline, device, pass) >= 0) sum->pp_bytes += n * outline->transfer_bytes;
    }
}

pc_sent pc_outline_sent(const pc_outline *outline, const pc_schedule *schedule) {
    pc_sent sum = {.pp_bytes = 2 * outline->tied_bytes};
    pc_pass_counts counts;
    for (int d = 0; d < outline->devices; d++) {
        pc_outline_count_passes(schedule, d, counts);
        for (int c = 0; c < outline->chunks; c++) {
            add_passes(outline, d, c, counts[c], &sum);
            sum.dp_bytes += sent_for_chunk(outline, &outline->chunks_of[(int64_t)d * outline->chunks + c], counts[c]);
        }
    }
    return (pc_sent){sum.tp_bytes / outline->devices, sum.cp_bytes / outline->devices, sum.ep_bytes / outline->devices,
                     sum.pp_bytes / outline->devices, sum.dp_bytes / outline->devices};
}
