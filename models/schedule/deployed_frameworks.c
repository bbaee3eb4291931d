/* The orders of PyTorch (torch.distributed.pipelining, as of 2.15) and Megatron-LM (megatron-core, as of 0.16). Most
 * are the generators' own, for fewer shapes than these take; that of ZBVZeroBubble is no search.
 */
#include "models/schedule/deployed.h"
#include "models/schedule/generate_private.h"

#include "engine/numbers.h"

#include <inttypes.h>
#include <string.h>

/* ---- shapes ---- */

/* What a framework wants of a shape under one of the names. */
typedef enum shape_rule {
    ANY_SHAPE,
    A_MICROBATCH_A_DEVICE, /* PyTorch's 1F1B */
    EVEN_ROUNDS,           /* PyTorch's interleaved ones: as many microbatches in each of m/p rounds, rounded down */
    EVEN_ROUNDS_OF_CHUNKS, /* and with one chunk it warms up as eager 1F1B does */
    WHOLE_GROUPS           /* Megatron-LM's: p and m at least of a group */
} shape_rule;

static shape_rule rule_of(const char *name, pc_making making) {
    static const struct {
        const char *name;
        pc_making making;
        shape_rule rule;
    } rules[] = {{"1f1b", PC_MAKING_TORCH, A_MICROBATCH_A_DEVICE},
                 {"1f1b-interleaved", PC_MAKING_TORCH, EVEN_ROUNDS_OF_CHUNKS},
                 {"zb-interleaved", PC_MAKING_TORCH, EVEN_ROUNDS},
                 {"1f1b-interleaved", PC_MAKING_MEGATRON, WHOLE_GROUPS},
                 {"1f1b-interleaved-overlap", PC_MAKING_MEGATRON, WHOLE_GROUPS}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].making == making && strcmp(rules[i].name, name) == 0) return rules[i].rule;
    return ANY_SHAPE;
}

/* PyTorch sends all microbatches through in r = max(1, m/p) rounds of m/r; of its sizes that is the one that
 * pc_interleaved_group finds, as m < (r+1) p leaves less than p microbatches behind r smaller groups. */
static pc_code check_rounds(const pc_generate_request *request, const char *name, pc_error *error) {
    int64_t rounds = pc_max(1, request->microbatches / request->devices);
    if (request->microbatches % rounds == 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: making torch: %" PRId64 " microbatches on %" PRId64
                        " devices; expected a multiple of %" PRId64 ", PyTorch's number of rounds",
                        name, request->microbatches, request->devices, rounds);
}

static pc_code check_least(const pc_generate_request *request, const char *name, pc_error *error) {
    if (request->microbatches >= request->devices) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: making %s: %" PRId64 " microbatches on %" PRId64
                        " devices; expected at least one a device, as %s does",
                        name, pc_making_names[request->making], request->microbatches, request->devices,
                        request->making == PC_MAKING_TORCH ? "PyTorch" : "Megatron-LM");
}

/* With one chunk Megatron-LM runs 1F1B; several need several stages. */
static pc_code check_groups(const pc_generate_request *request, const char *name, pc_error *error) {
    if (request->chunks == 1) return PC_OK;
    if (request->devices == 1)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: making megatron: %" PRId64 " chunks on one device; expected at least 2 devices, as "
                            "Megatron-LM does",
                            name, request->chunks);
    return check_least(request, name, error);
}

static pc_code check_chunks(const pc_generate_request *request, const char *name, pc_error *error) {
    if (request->chunks > 1) return check_rounds(request, name, error);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: making torch: 1 chunk a device; expected at least 2, as PyTorch's order of one is "
                        "eager-1f1b",
                        name);
}

pc_code pc_framework_check(const pc_generator *generator, const pc_generate_request *request, pc_error *error) {
    switch (rule_of(generator->name, request->making)) {
    case A_MICROBATCH_A_DEVICE:
        return check_least(request, generator->name, error);
    case EVEN_ROUNDS:
        return check_rounds(request, generator->name, error);
    case EVEN_ROUNDS_OF_CHUNKS:
        return check_chunks(request, generator->name, error);
    case WHOLE_GROUPS:
        return check_groups(request, generator->name, error);
    case ANY_SHAPE:
        break;
    }
    return PC_OK;
}

/* ---- ZBVZeroBubble ---- */

/* The next microbatch of each pass of each chunk; those that the iteration does not have are counted, but not done. */
typedef struct zb_v_writer {
    pc_stage_writer *stage;
    int next[PC_PASS_KINDS][2];
} zb_v_writer;

static void put(zb_v_writer *x, pc_pass_kind kind, int chunk) {
    int microbatch = x->next[kind][chunk]++;
    if (microbatch < x->stage->microbatches) pc_stage_put(x->stage, kind, chunk, microbatch);
}

static void put_b_and_w(zb_v_writer *x, int chunk) {
    put(x, PC_PASS_B, chunk);
    put(x, PC_PASS_W, chunk);
}

/* ZB-V (Qi et al. 2024, arXiv 2401.10241, section 6) for F = B = W, as PyTorch's ScheduleZBVZeroBubble has it: of n
 * microbatches, m but at least 2p-1, stage d does
 *   2(p-d)-1 F of chunk 0; d times F of chunk 1 and of chunk 0; p-d times F, B, W of chunk 1
 *   n-p times F of chunk 0, while there are any, B, W of chunk 0 and F, B, W of chunk 1
 *   d times B of chunk 0 and of chunk 1; p-d times B of chunk 0 and its oldest W; what is left of W, chunk 1 first.
 * With equal stages and no transfer time it idles for nothing but the way down, and holds 2p chunks, p microbatches. */
static void write_zb_v(pc_stage_writer *writer, int extra) {
    int p = writer->devices, d = writer->stage, n = pc_max(writer->microbatches, 2 * p - 1);
    zb_v_writer x = {.stage = writer};
    (void)extra;
    for (int i = 0; i < 2 * (p - d) - 1; i++) put(&x, PC_PASS_F, 0);
    for (int i = 0; i < 2 * d; i++) put(&x, PC_PASS_F, 1 - i % 2);
    for (int i = 0; i < p - d; i++) {
        put(&x, PC_PASS_F, 1);
        put_b_and_w(&x, 1);
    }
    for (int i = 0; i < n - p; i++) {
        put(&x, PC_PASS_F, 0);
        put_b_and_w(&x, 0);
        put(&x, PC_PASS_F, 1);
        put_b_and_w(&x, 1);
    }
    for (int i = 0; i < 2 * d; i++) put(&x, PC_PASS_B, i % 2);
    for (int i = 0; i < p - d; i++) put_b_and_w(&x, 0);
    for (int chunk = 1; chunk >= 0; chunk--)
        for (int i = 0; i < d; i++) put(&x, PC_PASS_W, chunk);
}

pc_code pc_torch_zb_v(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                      pc_error *error) {
    return pc_schedule_of_rule(self, write_zb_v, request, schedule, error);
}
