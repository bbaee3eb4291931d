/* DualPipe and DualPipeV (DeepSeek-AI's DualPipe, arXiv 2412.19437; github.com/deepseek-ai/DualPipe). In their middle
 * each stage runs F of one microbatch together with BW of another, of its other chunk, so that the one's communication
 * hides behind the other's work: pairs (schedule.h). What their overlap gains, the costs of pairs say.
 *
 * Both are one order. DualPipeV folds a model of 2p parts to a V. DualPipe has a second replica run the other way, and
 * what DualPipeV does on p stages with the m microbatches of one model, DualPipe does on each half of 2p stages: with
 * m of either way. A stage has two phases: in phase 0 the chunk that comes by it first, in phase 1 the other.
 */
#include "models/schedule/generate_private.h"

#include "engine/numbers.h"

/* The next microbatch of each phase; and behind which of the passes written so far the oldest B without its W stands.
 */
typedef struct folded_writer {
    pc_stage_writer *stage;
    int chunk[2]; /* of each phase */
    bool has_replicas;
    int forward[2], backward[2];
    const pc_pass *waiting;
} folded_writer;

/* Of two replicas, even microbatches are of chunk 0. */
static int number_of(const folded_writer *x, int phase, int count) {
    return x->has_replicas ? 2 * count + x->chunk[phase] : count;
}

static void put_f(folded_writer *x, int phase) {
    pc_stage_put(x->stage, PC_PASS_F, x->chunk[phase], number_of(x, phase, x->forward[phase]++));
}

/* B or BW. */
static void put_back(folded_writer *x, int phase, pc_pass_kind kind) {
    pc_stage_put(x->stage, kind, x->chunk[phase], number_of(x, phase, x->backward[phase]++));
}

static void put_pair(folded_writer *x, int phase) {
    pc_stage_begin_pair(x->stage);
    put_f(x, phase);
    put_back(x, 1 - phase, PC_PASS_BW);
}

static void put_oldest_w(folded_writer *x) {
    while (x->waiting->kind != PC_PASS_B) x->waiting++;
    pc_stage_put(x->stage, PC_PASS_W, x->waiting->chunk, x->waiting->microbatch);
    x->waiting++;
}

/* From the turn: stages of `depth`, `before` of them up to this one, and `count` microbatches of each phase. Stage d of
 * DualPipeV is the (d+1)-th of p:
 * 2(p-1-d) F of phase 0, then d+1 of both in turn. Then p-1-d times B, W, F of phase 1, and count-2p+d+1 times the
 * pairs F, BW of phases 0, 1 and 1, 0. Behind them p-1-d times BW of phase 1 and the pair F of 1, BW of 0. Then 2(d+1)
 * backward passes of phases 1 and 0 in turn, the first half of them BW and the others B. At the end p-1-d times a W and
 * a B of phase 0, and d+1 W. So count is at least 2p. The stage of the turn runs its first pair one by one. */
static void write_folded(folded_writer *x, int depth, int before, int count) {
    int behind = depth - before;
    for (int i = 0; i < 2 * behind; i++) put_f(x, 0);
    for (int i = 0; i < 2 * before; i++) put_f(x, i % 2);
    for (int i = 0; i < behind; i++) {
        put_back(x, 1, PC_PASS_B);
        put_oldest_w(x);
        put_f(x, 1);
    }
    for (int i = 0; i < 2 * (count - 2 * depth + before); i++) {
        if (i > 0 || behind > 0) {
            put_pair(x, i % 2);
            continue;
        }
        put_f(x, 0);
        put_back(x, 1, PC_PASS_BW);
    }
    for (int i = 0; i < behind; i++) {
        put_back(x, 1, PC_PASS_BW);
        put_pair(x, 1);
    }
    for (int i = 0; i < 2 * before; i++) put_back(x, 1 - i % 2, i < before ? PC_PASS_BW : PC_PASS_B);
    for (int i = 0; i < behind; i++) {
        put_oldest_w(x);
        put_back(x, 0, PC_PASS_B);
    }
    for (int i = 0; i < before; i++) put_oldest_w(x);
}

/* Beside p-1-d B of phase 1 at the start, the last p of what is left at the end. */
int pc_dualpipe_v_split(int devices, int stage) {
    return 2 * devices - 1 - stage;
}

/* As many of chunk 1 as the rounds of F began with, for each that is done there another one came; the rest of chunk 0.
 */
int64_t pc_dualpipe_v_held(const pc_costs *costs, int device) {
    const int64_t *taken = costs->recomputes_in_b ? costs->activation_kept_bytes : costs->activation_bytes;
    int64_t cell = pc_costs_index(costs, device, 0);
    return (2 * costs->devices - device) * taken[cell] + (device + 1) * taken[cell + 1];
}

/* As PyTorch's ScheduleDualPipeV has it, too.
 * With equal stages, no transfer time, pairs that gain nothing and B <= F <= B+W the last stage works from its first F,
 * (p-1)F/2 after the start, without a pause but for the last B. Each stage behind lengthens the wait of that B by what
 * its W does not fill. So the bubble is (p-1)(F + max(B-W, 0))/2. Every stage holds 2p+1 chunks, p + 1/2 microbatches.
 */
void pc_write_dualpipe_v(pc_stage_writer *writer, int extra) {
    folded_writer x = {.stage = writer, .chunk = {0, 1}, .waiting = writer->next};
    (void)extra;
    write_folded(&x, writer->devices, writer->stage + 1, writer->microbatches);
}

static int distance_to_end(int devices, int stage) {
    return pc_min(stage, devices - 1 - stage);
}

/* Stage d is like stage h = min(d, p-1-d) of DualPipeV on p/2 stages, and phase 0 is the chunk whose first part is the
 * nearer. Every stage holds p+1 microbatches of its p parts, and two replicas of parameters. */
void pc_write_dualpipe(pc_stage_writer *writer, int extra) {
    int p = writer->devices, is_behind = writer->stage >= p / 2;
    folded_writer x = {
        .stage = writer, .chunk = {is_behind, !is_behind}, .has_replicas = true, .waiting = writer->next};
    (void)extra;
    write_folded(&x, p / 2, distance_to_end(p, writer->stage) + 1, writer->microbatches / 2);
}

int pc_dualpipe_split(int devices, int stage) {
    return pc_dualpipe_v_split(devices / 2, distance_to_end(devices, stage));
}

/* None: a block's backward passes are all of one kind. */
pc_code pc_block_of_dualpipe_v(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                               pc_error *error) {
    (void)self;
    (void)request;
    (void)block;
    (void)error;
    return PC_OK;
}
