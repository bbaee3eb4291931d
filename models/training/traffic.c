#include "models/training/traffic.h"

#include "models/training/outline_units.h"
#include "models/training/pass_costs.h"

#include <math.h>

pc_sent pc_sent_none(void) {
    const double none = NAN;
    return (pc_sent){.tp_bytes = none, .cp_bytes = none, .ep_bytes = none, .pp_bytes = none, .dp_bytes = none};
}

pc_exposed pc_exposed_none(void) {
    const double none = NAN;
    return (pc_exposed){.tp = none, .cp = none, .ep = none, .pp = none, .dp = none, .optimizer = none, .bubble = none};
}

/* How often in an iteration a chunk goes through the passes of a kind. */
static double count_passes(const pc_outline *outline) {
    return (double)outline->cut.microbatches * pc_placement_visited(outline->placement, outline->chunks) /
           outline->chunks;
}

/* Of the n passes of each kind, which of them gather the chunk's parameters and reduce its gradients: ZeRO 3's all;
 * ZeRO 2's all reduce; otherwise it is once an iteration. */
static double sent_for_chunk(const pc_outline *outline, const pc_chunk_outline *chunk, double n) {
    if (pc_outline_has_units(outline)) return pc_outline_unit_traffic(outline, chunk, n);
    int zero = outline->cut.zero, forwards = outline->spec->generator->recomputes ? 2 : 1;
    double gathers = zero == 3 ? n * (forwards + 1) : zero > 0 ? 1 : 0, reduces = zero >= 2 ? n : 1;
    return chunk->buckets * (gathers * chunk->gather_bytes + reduces * chunk->reduce_bytes);
}

static void add_passes(const pc_outline *outline, int device, int chunk, double n, pc_sent *sum) {
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        if (!pc_outline_has_kind(outline->spec->generator, (pc_pass_kind)kind)) continue;
        sum->tp_bytes += n * pc_outline_part(outline, device, chunk)->pass[kind].tp_bytes;
        sum->cp_bytes += n * pc_outline_part(outline, device, chunk)->pass[kind].cp_bytes;
        sum->ep_bytes += n * pc_outline_part(outline, device, chunk)->pass[kind].ep_bytes;
        pc_pass pass = {0, (int16_t)chunk, (int16_t)kind};
        if (pc_outline_receiver(outline, device, pass) >= 0) sum->pp_bytes += n * outline->transfer_bytes;
    }
}

pc_sent pc_outline_sent(const pc_outline *outline) {
    double n = count_passes(outline);
    pc_sent sum = {.pp_bytes = 2 * outline->tied_bytes};
    for (int d = 0; d < outline->devices; d++)
        for (int c = 0; c < outline->chunks; c++) {
            add_passes(outline, d, c, n, &sum);
            sum.dp_bytes += sent_for_chunk(outline, &outline->chunks_of[(int64_t)d * outline->chunks + c], n);
        }
    return (pc_sent){sum.tp_bytes / outline->devices, sum.cp_bytes / outline->devices, sum.ep_bytes / outline->devices,
                     sum.pp_bytes / outline->devices, sum.dp_bytes / outline->devices};
}
