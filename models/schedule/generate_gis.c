/* The interleaved schedules of 'PipeOffload' (Wan et al. 2025, arXiv 2503.01328): a rule, and the block that it
 * repeats, as in generate.c and generate_blocks.c. The order is that of the authors' generator
 * (sail-sg/zero-bubble-pipeline- parallelism, group_interleaved_1f1b.py).
 */
#include "models/schedule/generate_private.h"

#include "engine/numbers.h"

/* `extra` is 1 for GIS, whose groups have p microbatches, and 2 for GIS-H: p/2, rounded up. */
static int group_of(int devices, int extra) {
    return (devices + extra - 1) / extra;
}

static void put_if_there(pc_stage_writer *writer, pc_pass_kind kind, int group, int64_t padded, int64_t k) {
    pc_pass pass = pc_interleaved_pass(group, (int)padded, writer->chunks, kind, k);
    if (pass.microbatch < writer->microbatches) *writer->next++ = pass;
}

/* Interleaved 1F1B in groups of n microbatches, n from p/2 to p, each B with its W right behind it: p-1-d + (v-1)n F,
 * then F, B and W in turn. A stage's last group may lack microbatches; their passes are left out of the order, and what
 * stays of an order that waits in no circle waits in none. Stage d holds its warm-up and one F more, (v-1)n + p-d
 * chunks: stage 0 of GIS p microbatches, as 1F1B; of GIS-H p/2 + p/(2v) for even p, about half of interleaved 1F1B.
 *
 * No stage idles between its first B and its last F where F, B and W take as long and n is at least p/2. For let d
 * start its k-th F in t(d) + 3k, so that its k-th B is in t(d) + 3(p-1-d + (v-1)n + k) + 1. F needs t(d+1) >= t(d) + 1,
 * and B t(d+1) <= t(d) + 2. From the last stage to the first one's next chunk F needs t(p-1) - t(0) <= 3n - 1, and the
 * other way B needs t(p-1) - t(0) >= 3(p-1-n) + 1. Both hold for some t if 3(p-1-n) + 1 <= 3n - 1, so: n >= p/2 - 1/6.
 * With BW in one piece t(d+1) = t(d) + 1, and n would be 2p/3 at the least. */
void pc_write_gis(pc_stage_writer *writer, int extra) {
    int p = writer->devices, v = writer->chunks, group = group_of(p, extra);
    int64_t padded = pc_round_up(writer->microbatches, group), total = padded * v;
    int64_t warm_up = pc_min(pc_interleaved_warm_up(p, writer->stage, v, group, 1), total);
    for (int64_t k = 0; k < warm_up; k++) put_if_there(writer, PC_PASS_F, group, padded, k);
    for (int64_t k = 0; k < total; k++) {
        if (warm_up + k < total) put_if_there(writer, PC_PASS_F, group, padded, warm_up + k);
        put_if_there(writer, PC_PASS_B, group, padded, k);
        put_if_there(writer, PC_PASS_W, group, padded, k);
    }
}

/* t(d) above, of the first F: d + min(d, e), where the first e = 2p-1 - 3n stages, if that is positive, are two cells
 * apart, so that t(p-1) is the least that B allow, or p-1. */
static int64_t first_cell(int device, int devices, int group) {
    return device + pc_min(device, pc_max(0, 2 * devices - 1 - 3 * group));
}

/* A group of n microbatches in an interval of 3nv. Lifespan of chunk c on stage d: 3(p-d + 2(v-1-c)n), so that it falls
 * from chunk to chunk, by 6n. */
pc_code pc_block_of_gis(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                        pc_error *error) {
    int p = (int)request->devices, v = (int)request->chunks, group = group_of(p, self->extra);
    int64_t passes = (int64_t)group * v;
    pc_code code = pc_block_begin(self, request, group, 3 * passes, block, error);
    for (int d = 0; !code && d < p; d++) {
        int64_t first_f = first_cell(d, p, group),
                first_b = first_f + 3 * pc_interleaved_warm_up(p, d, v, group, 1) + 1;
        for (int64_t k = 0; k < passes; k++) {
            pc_pass b = pc_interleaved_pass(group, group, v, PC_PASS_B, k), w = b;
            w.kind = PC_PASS_W;
            pc_block_put(block, d, pc_interleaved_pass(group, group, v, PC_PASS_F, k), first_f + 3 * k);
            pc_block_put(block, d, b, first_b + 3 * k);
            pc_block_put(block, d, w, first_b + 3 * k + 1);
        }
    }
    return code;
}

/* ---- microbatch by microbatch ---- */

/* Where the chunks of a microbatch stand: in slots, of which a microbatch has v, one a chunk. Chunk c is cn + c / (v/g)
 * behind the first one, g = gcd(v, n), so that no two chunks meet. For cn leaves multiples of g of v, all of them in
 * each v/g chunks. Every further v/g chunks are one slot more behind. */
typedef struct places {
    int64_t chunks, behind, common, apart, inverse; /* v, n, g, v/g, and of n/g modulo v/g */
} places;

static places places_of(int64_t chunks, int64_t behind) {
    int64_t a = chunks, b = behind, inverse = 0;
    while (b > 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    while (behind / a * inverse % (chunks / a) != 1 % (chunks / a)) inverse++;
    return (places){chunks, behind, a, chunks / a, inverse};
}

static int64_t place_of(const places *x, int64_t chunk) {
    return chunk * x->behind + chunk / x->apart;
}

/* Whose slot it is, whatever the microbatch. */
static int64_t chunk_in(const places *x, int64_t slot) {
    int64_t more = slot % x->common;
    return more * x->apart + (slot % x->chunks - more) / x->common * x->inverse % x->apart;
}

/* The pass of a slot: of B, that of the first chunk is the last one's. */
static void put_slot(pc_stage_writer *writer, const places *x, pc_pass_kind kind, int64_t slot) {
    int64_t chunk = chunk_in(x, slot), ahead = slot - place_of(x, chunk);
    if (ahead < 0 || ahead / x->chunks >= writer->microbatches) return;
    int64_t put = kind == PC_PASS_F ? chunk : x->chunks - 1 - chunk;
    pc_stage_put(writer, kind, (int)put, (int)(ahead / x->chunks));
}

/* The same with a group's microbatches spread evenly: each starts v slots behind the one before it, and its chunks
 * follow n slots apart, or one more. No chunk then lives longer, but for that one, and those that live short are no
 * longer held all at once: of the last v/2 chunks stage 0 holds about p/2 + (v/2-1)n/2 in the middle, and not vp/2. It
 * costs the start of an iteration, when F of later chunks are not there yet. */
void pc_write_gis_uniform(pc_stage_writer *writer, int extra) {
    int p = writer->devices, v = writer->chunks;
    places x = places_of(v, group_of(p, extra));
    int64_t last = place_of(&x, v - 1), first_b = last + p - 1 - writer->stage;
    int64_t slots = first_b + (int64_t)(writer->microbatches - 1) * v + last + 1;
    for (int64_t t = 0; t < slots; t++) {
        put_slot(writer, &x, PC_PASS_F, t);
        if (t < first_b) continue;
        put_slot(writer, &x, PC_PASS_B, t - first_b);
        put_slot(writer, &x, PC_PASS_W, t - first_b);
    }
}

/* One microbatch in an interval of 3v, with the first cells of pc_block_of_gis: what those need holds for chunks that
 * are n slots apart or more. */
pc_code pc_block_of_gis_uniform(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                                pc_error *error) {
    int p = (int)request->devices, v = (int)request->chunks, group = group_of(p, self->extra);
    places x = places_of(v, group);
    pc_code code = pc_block_begin(self, request, 1, 3 * (int64_t)v, block, error);
    for (int d = 0; !code && d < p; d++) {
        int64_t first_f = first_cell(d, p, group), first_b = first_f + 3 * (place_of(&x, v - 1) + p - 1 - d) + 1;
        for (int c = 0; c < v; c++) {
            int64_t b = first_b + 3 * place_of(&x, v - 1 - c);
            pc_block_put(block, d, (pc_pass){0, (int16_t)c, PC_PASS_F}, first_f + 3 * place_of(&x, c));
            pc_block_put(block, d, (pc_pass){0, (int16_t)c, PC_PASS_B}, b);
            pc_block_put(block, d, (pc_pass){0, (int16_t)c, PC_PASS_W}, b + 1);
        }
    }
    return code;
}
