/* The device's side: one stage's layers, and the tensors of every microbatch that is under way.
 *
 * What is held from pass to pass is allocated where a kernel first writes it and freed behind the last that reads it.
 * What lives within a pass, and what comes from or goes to other stages, has memory of its own all the time. A B that
 * writes a gradient as large as the activation that it replaces writes into the memory that the layer before it gave up
 * for one: a spare piece goes round. Otherwise every B would need both for a moment.
 */
#include "calib/device/replay_private.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The addresses of one layer's slots. */
typedef struct slots {
    void *at[PC_LAYER_SLOTS];
} slots;

/* A gradient that takes the memory of an activation, and the spare piece. */
typedef struct exchange {
    int gradient, activation;
    void *spare;
} exchange;

/* Beside the layers: what other stages would send and get, and gradients from layer to layer. */
enum { RECEIVED, RECEIVED_GRADIENT, SENT, SENT_GRADIENT, BETWEEN, BETWEEN_TOO, BOUNDARIES };

typedef struct session {
    pc_device *device;
    const pc_replay_stage *stage;
    pc_layer layer;
    pc_layer_tape tape[PC_LAYER_KINDS];
    bool is_prepared[PC_LAYER_KINDS][2 * PC_LAYER_STEPS];
    int64_t offset[PC_LAYER_SLOTS];
    char *working; /* the memory of temporary slots */
    void *boundary[BOUNDARIES];
    const pc_kernel_family *copy;
    exchange exchanges[PC_LAYER_CHANGES];
    int exchange_count;
    slots **state;        /* by chunk: its layers' parameters and gradients */
    slots **held;         /* by microbatch and chunk: its layers' activations; NULL if it is not under way */
    double *seconds;      /* of marks, two a pass */
    int64_t before_bytes; /* allocated by others, before all */
    bool marks_kernels;   /* every kernel has marks, and passes have none */
    int next_mark;
} session;

/* Where a pass is, for messages. */
typedef struct place {
    pc_pass pass;
    int layer;
} place;

/* ---- allocation ---- */

static pc_code take(session *s, int64_t bytes, void **address, const char *what, const place *at, pc_error *error) {
    pc_code code = pc_device_allocate(s->device, bytes, address, error);
    if (!code) return PC_OK;
    int stage = s->stage->number;
    if (!at)
        pc_error_prefix(error, "replay: stage %d: %s, %" PRId64 " bytes", stage, what, bytes);
    else
        pc_error_prefix(error, "replay: stage %d: %s of microbatch %d, chunk %d, layer %d: %s, %" PRId64 " bytes",
                        stage, pc_pass_kind_name((pc_pass_kind)at->pass.kind), at->pass.microbatch, at->pass.chunk,
                        at->layer, what, bytes);
    return code;
}

static void give(session *s, void **address) {
    pc_device_free(s->device, *address);
    *address = NULL;
}

static pc_code take_slot(session *s, slots *of, int number, const place *at, pc_error *error) {
    const pc_slot *slot = &s->layer.slot[number];
    return take(s, pc_slot_bytes(slot), &of->at[number], slot->name, at, error);
}

static void give_layers(session *s, slots *layers, int64_t count) {
    for (int64_t l = 0; layers && l < count; l++)
        for (int i = 0; i < s->layer.slot_count; i++) give(s, &layers[l].at[i]);
    pc_free(layers);
}

static int64_t boundary_bytes(const session *s) {
    return pc_slot_bytes(&s->layer.slot[s->layer.input]);
}

/* ---- before the first pass ---- */

static pc_code fill_state(session *s, slots *of, uint64_t seed, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; !code && i < s->layer.slot_count; i++) {
        const pc_slot *slot = &s->layer.slot[i];
        if (slot->life != PC_SLOT_PARAMETER && slot->life != PC_SLOT_GRADIENT) continue;
        code = take_slot(s, of, i, NULL, error);
        if (!code)
            code = pc_device_fill(s->device, of->at[i], slot->dtype, slot->count, slot->fill, slot->scale,
                                  seed + (uint64_t)i, error);
    }
    return code;
}

static pc_code open_state(session *s, pc_error *error) {
    pc_code code = PC_OK;
    uint64_t seed = 1;
    for (int c = 0; !code && c < s->stage->chunks; c++) {
        int64_t layers = s->stage->chunk[c].layers;
        s->state[c] = pc_alloc((size_t)layers, sizeof *s->state[c]);
        if (!s->state[c]) return pc_error_no_memory(error);
        for (int64_t l = 0; !code && l < layers; l++, seed += PC_LAYER_SLOTS)
            code = fill_state(s, &s->state[c][l], seed, error);
    }
    return code;
}

/* Random numbers of the size of a residual stream, and of a loss's gradient: that is all that a kernel's time may
 * depend on. */
static pc_code open_boundaries(session *s, pc_error *error) {
    const pc_slot *slot = &s->layer.slot[s->layer.input];
    pc_code code = PC_OK;
    for (int i = 0; !code && i < BOUNDARIES; i++)
        code = take(s, boundary_bytes(s), &s->boundary[i], "a tensor between stages", NULL, error);
    for (int i = RECEIVED; !code && i <= RECEIVED_GRADIENT; i++)
        code = pc_device_fill(s->device, s->boundary[i], slot->dtype, slot->count, PC_FILL_NORMAL,
                              i == RECEIVED ? 1.0 : 1e-2, (uint64_t)i, error);
    return code;
}

/* The step at which the activation is given up is the one that writes the gradient. */
static pc_code open_exchanges(session *s, pc_error *error) {
    const pc_layer_tape *tape = &s->tape[PC_LAYER_B];
    pc_code code = PC_OK;
    for (int i = 0; !code && i < tape->count; i++)
        for (int t = 0; !code && t < tape->moment[i].take_count; t++)
            for (int g = 0; !code && g < tape->moment[i].give_count; g++) {
                const pc_slot *taken = &s->layer.slot[tape->moment[i].take[t]];
                const pc_slot *given = &s->layer.slot[tape->moment[i].give[g]];
                if (pc_slot_bytes(taken) != pc_slot_bytes(given)) continue;
                exchange *x = &s->exchanges[s->exchange_count++];
                *x = (exchange){tape->moment[i].take[t], tape->moment[i].give[g], NULL};
                code = take(s, pc_slot_bytes(taken), &x->spare, taken->name, NULL, error);
                break;
            }
    return code;
}

static pc_code open_working(session *s, pc_error *error) {
    void *working = NULL;
    pc_code code = open_boundaries(s, error);
    if (!code) code = open_exchanges(s, error);
    if (!code) code = take(s, pc_layer_place(&s->layer, s->offset), &working, "working memory", NULL, error);
    s->working = working;
    return code;
}

static pc_layer_shape shape_of(const pc_replay_stage *stage) {
    const pc_model *model = &stage->model;
    int64_t t = stage->cut.tp;
    return (pc_layer_shape){.dtype = model->precision == PC_PRECISION_FP16 ? PC_FP16 : PC_BF16,
                            .sequences = stage->cut.microbatch_size,
                            .seq_len = stage->cut.seq_len,
                            .hidden = model->hidden,
                            .heads = model->heads / t,
                            .kv_heads = model->kv_heads < t ? 1 : model->kv_heads / t,
                            .head_dim = model->head_dim,
                            .ffn = model->ffn_hidden / t,
                            .is_rms_norm = model->norm == PC_NORM_RMS,
                            .is_swiglu = model->mlp == PC_MLP_SWIGLU,
                            .is_rotary = model->positions == PC_POSITIONS_ROTARY,
                            .has_bias = model->has_bias,
                            .is_causal = true,
                            .dropout = model->has_dropout ? 0.1F : 0.0F};
}

/* The first of what the layer's kernels lack; NULL: nothing. */
static const char *lacking(const pc_model *model) {
    const struct {
        bool is_asked;
        const char *name;
    } traits[] = {{model->mlp != PC_MLP_GELU && model->mlp != PC_MLP_SWIGLU, "this mlp"},
                  {model->norm == PC_NORM_LAYER_NO_AFFINE, "norm layernorm-no-affine"},
                  {model->norm_place != PC_NORM_PRE, "this norm_place"},
                  {model->qk_norm != PC_QK_NORM_NONE, "qk_norm"},
                  {!model->has_bias && (model->has_qkv_bias || model->has_norm_bias), "qkv_bias or norm_bias alone"},
                  {model->sliding_window > 0 || model->attention_chunk_size > 0, "a window"},
                  {model->document_length > 0, "document_length"},
                  {model->attn_logit_softcapping > 0, "attn_logit_softcapping"}};
    for (size_t i = 0; i < sizeof traits / sizeof *traits; i++)
        if (traits[i].is_asked) return traits[i].name;
    return NULL;
}

pc_code pc_replay_layer(const pc_replay_stage *stage, pc_layer *layer, pc_error *error) {
    pc_layer_shape shape = shape_of(stage);
    const char *lack = lacking(&stage->model);
    pc_code code = lack ? pc_error_set(error, PC_ERROR_INPUT,
                                       "model: %s, for which there are no kernels; expected a model without it", lack)
                        : pc_layer_make(&shape, layer, error);
    if (code) pc_error_prefix(error, "replay");
    return code;
}

static pc_code open_session(session *s, pc_error *error) {
    size_t chunks = (size_t)s->stage->chunks;
    pc_code code = pc_replay_layer(s->stage, &s->layer, error);
    if (code) return code;
    for (int kind = 0; kind < PC_LAYER_KINDS; kind++)
        pc_layer_tape_make(&s->layer, (pc_layer_kind)kind, &s->tape[kind]);
    s->copy = pc_kernel_family_find("copy");
    s->state = pc_alloc(chunks, sizeof *s->state);
    s->held = pc_alloc(chunks * (size_t)s->stage->microbatches, sizeof *s->held);
    s->seconds = pc_alloc(2 * (size_t)s->stage->pass_count, sizeof *s->seconds);
    return s->state && s->held && s->seconds && s->copy ? PC_OK : pc_error_no_memory(error);
}

static void close_session(session *s) {
    int64_t cells = (int64_t)s->stage->chunks * s->stage->microbatches;
    for (int64_t i = 0; s->held && i < cells; i++)
        give_layers(s, s->held[i], s->stage->chunk[i % s->stage->chunks].layers);
    for (int c = 0; s->state && c < s->stage->chunks; c++) give_layers(s, s->state[c], s->stage->chunk[c].layers);
    for (int i = 0; i < s->exchange_count; i++) give(s, &s->exchanges[i].spare);
    for (int i = 0; i < BOUNDARIES; i++) give(s, &s->boundary[i]);
    pc_device_free(s->device, s->working);
    pc_free(s->state);
    pc_free(s->held);
    pc_free(s->seconds);
}

/* ---- one layer ---- */

/* A layer of a pass: its own tensors, and those that it shares with its neighbours; NULL if it has none there. */
typedef struct context {
    slots *state, *held, *before, *behind;
    int64_t number; /* of the layer in its chunk */
    place at;
} context;

/* The output is the next layer's input; a gradient between two layers is memory of its own where it can be dropped, and
 * the lower layer's where its W needs it. */
static void *address_of(session *s, const context *here, int slot) {
    const pc_layer *layer = &s->layer;
    switch (layer->slot[slot].life) {
    case PC_SLOT_PARAMETER:
    case PC_SLOT_GRADIENT:
        return here->state->at[slot];
    case PC_SLOT_OUTPUT:
        return here->behind ? here->behind->at[layer->input] : s->boundary[SENT];
    case PC_SLOT_OUTPUT_GRADIENT:
        return here->behind ? s->boundary[BETWEEN + (here->number + 1) % 2] : s->boundary[RECEIVED_GRADIENT];
    case PC_SLOT_INPUT_GRADIENT:
        if (!here->before) return s->boundary[SENT_GRADIENT];
        if (layer->slot[layer->output_gradient].life == PC_SLOT_B_TO_W) return here->before->at[layer->output_gradient];
        return s->boundary[BETWEEN + here->number % 2];
    case PC_SLOT_TEMPORARY:
        return s->working + s->offset[slot];
    default:
        return here->held->at[slot];
    }
}

/* What a step is the first to write in another layer's tensors. */
static pc_code take_of_neighbours(session *s, const context *here, const pc_layer_step *step, pc_error *error) {
    const pc_layer *layer = &s->layer;
    bool is_held = layer->slot[layer->output_gradient].life == PC_SLOT_B_TO_W;
    pc_code code = PC_OK;
    for (int i = 0; !code && i < step->tensor_count; i++) {
        if (step->slot[i] == layer->output && here->behind)
            code = take_slot(s, here->behind, layer->input, &here->at, error);
        if (step->slot[i] == layer->input_gradient && here->before && is_held)
            code = take_slot(s, here->before, layer->output_gradient, &here->at, error);
    }
    return code;
}

static exchange *find_exchange(session *s, int gradient, int activation) {
    for (int i = 0; i < s->exchange_count; i++)
        if (s->exchanges[i].gradient == gradient || s->exchanges[i].activation == activation) return &s->exchanges[i];
    return NULL;
}

static pc_code take_all(session *s, const context *here, const pc_layer_moment *moment, pc_error *error) {
    pc_code code = take_of_neighbours(s, here, moment->step, error);
    for (int i = 0; !code && i < moment->take_count; i++) {
        exchange *of = find_exchange(s, moment->take[i], -1);
        if (!of) {
            code = take_slot(s, here->held, moment->take[i], &here->at, error);
            continue;
        }
        here->held->at[of->gradient] = of->spare;
        of->spare = NULL;
    }
    return code;
}

static void give_all(session *s, const context *here, const pc_layer_moment *moment) {
    for (int i = 0; i < moment->give_count; i++) {
        exchange *of = find_exchange(s, -1, moment->give[i]);
        if (!of) {
            give(s, &here->held->at[moment->give[i]]);
            continue;
        }
        of->spare = here->held->at[of->activation];
        here->held->at[of->activation] = NULL;
    }
}

static pc_code run_step(session *s, const context *here, const pc_layer_step *step, bool *is_prepared,
                        pc_error *error) {
    void *tensors[PC_KERNEL_TENSORS];
    pc_code code = PC_OK;
    for (int i = 0; i < step->tensor_count; i++) tensors[i] = address_of(s, here, step->slot[i]);
    if (!*is_prepared && step->family->prepare) code = step->family->prepare(s->device, &step->shape, tensors, error);
    *is_prepared = true;
    return code ? code : step->family->launch(s->device, &step->shape, tensors, error);
}

/* Around a kernel, where kernels are timed. */
static pc_code mark_kernel(session *s, pc_error *error) {
    return s->marks_kernels ? pc_device_mark(s->device, s->next_mark++, error) : PC_OK;
}

static pc_code run_layer(session *s, const context *here, pc_layer_kind kind, pc_error *error) {
    const pc_layer_tape *tape = &s->tape[kind];
    pc_code code = PC_OK;
    for (int i = 0; !code && i < tape->count; i++) {
        const pc_layer_moment *moment = &tape->moment[i];
        code = take_all(s, here, moment, error);
        if (!code) code = mark_kernel(s, error);
        if (!code) code = run_step(s, here, moment->step, &s->is_prepared[kind][i], error);
        if (!code) code = mark_kernel(s, error);
        if (!code) give_all(s, here, moment);
    }
    return code;
}

/* ---- one pass ---- */

static slots **held_of(session *s, pc_pass pass) {
    return &s->held[(int64_t)pass.microbatch * s->stage->chunks + pass.chunk];
}

static pc_code receive(session *s, int from, void *to, pc_error *error) {
    const pc_layer_shape *x = &s->layer.shape;
    pc_kernel_shape shape = {.dtype = x->dtype, .m = x->sequences * x->seq_len, .n = x->hidden};
    void *tensors[] = {s->boundary[from], to};
    return s->copy->launch(s->device, &shape, tensors, error);
}

/* What the pass gets from another stage, before its time begins: the input, and the gradient where W keeps it. */
static pc_code receive_input(session *s, pc_pass pass, int64_t layers, pc_error *error) {
    const pc_layer *layer = &s->layer;
    slots **held = held_of(s, pass);
    place first = {pass, 0}, last = {pass, (int)layers - 1};
    if (layers == 0 || pass.kind == PC_PASS_W) return PC_OK;
    if (pass.kind == PC_PASS_F) {
        *held = pc_alloc((size_t)layers, sizeof **held);
        if (!*held) return pc_error_no_memory(error);
        pc_code code = take_slot(s, &(*held)[0], layer->input, &first, error);
        return code ? code : receive(s, RECEIVED, (*held)[0].at[layer->input], error);
    }
    if (layer->slot[layer->output_gradient].life != PC_SLOT_B_TO_W) return PC_OK;
    slots *of = &(*held)[layers - 1];
    pc_code code = take_slot(s, of, layer->output_gradient, &last, error);
    return code ? code : receive(s, RECEIVED_GRADIENT, of->at[layer->output_gradient], error);
}

static pc_layer_kind kind_of(pc_pass pass) {
    static const pc_layer_kind kinds[PC_PASS_KINDS] = {
        [PC_PASS_F] = PC_LAYER_F, [PC_PASS_B] = PC_LAYER_B, [PC_PASS_W] = PC_LAYER_W, [PC_PASS_BW] = PC_LAYER_BW};
    return kinds[pass.kind];
}

static pc_code run_layers(session *s, pc_pass pass, int64_t layers, pc_error *error) {
    slots *held = *held_of(s, pass), *state = s->state[pass.chunk];
    bool is_up = pass.kind == PC_PASS_F;
    pc_code code = PC_OK;
    for (int64_t i = 0; !code && i < layers; i++) {
        int64_t l = is_up ? i : layers - 1 - i;
        context x = {.state = &state[l],
                     .held = &held[l],
                     .before = l > 0 ? &held[l - 1] : NULL,
                     .behind = l + 1 < layers ? &held[l + 1] : NULL,
                     .number = l,
                     .at = {pass, (int)l}};
        code = run_layer(s, &x, kind_of(pass), error);
    }
    return code;
}

static pc_code mark_pass(session *s, int64_t number, pc_error *error) {
    return s->marks_kernels ? PC_OK : pc_device_mark(s->device, (int)number, error);
}

static pc_code run_pass(session *s, int64_t number, pc_error *error) {
    pc_pass pass = s->stage->pass[number];
    int64_t layers = s->stage->chunk[pass.chunk].layers;
    pc_code code = receive_input(s, pass, layers, error);
    if (!code) code = mark_pass(s, 2 * number, error);
    if (!code) code = run_layers(s, pass, layers, error);
    if (!code) code = mark_pass(s, 2 * number + 1, error);
    if (code || (pass.kind != PC_PASS_W && pass.kind != PC_PASS_BW)) return code;
    slots **held = held_of(s, pass);
    give_layers(s, *held, layers); /* nothing is left in them */
    *held = NULL;
    return PC_OK;
}

/* ---- iterations ---- */

/* What is allocated when no microbatch is under way counts for none of them; a library's workspace, which its first
 * product asks for, is part of that. */
static pc_code run_iteration(session *s, pc_replay_measured *measured, pc_error *error) {
    int64_t base = 0, now = 0, peak = 0;
    measured->held_bytes = 0;
    pc_code code = pc_device_memory_reset_peak(s->device, error);
    if (!code) code = pc_device_allocated(s->device, &base, &peak, error);
    for (int64_t i = 0; !code && i < s->stage->pass_count; i++) {
        code = run_pass(s, i, error);
        if (!code) code = pc_device_allocated(s->device, &now, &peak, error);
        if (!code && now - base > measured->held_bytes) measured->held_bytes = now - base;
    }
    measured->peak_bytes = peak - base;
    measured->working_bytes = base - s->before_bytes - measured->state_bytes;
    return code ? code : pc_device_wait(s->device, error);
}

static pc_code take_times(session *s, int repeat, int repeats, pc_replay_measured *measured, pc_error *error) {
    pc_code code = pc_device_mark_times(s->device, (int)(2 * s->stage->pass_count), s->seconds, error);
    if (code) return code;
    measured->busy_s[repeat] = 0;
    for (int64_t i = 0; i < s->stage->pass_count; i++) {
        double pass_s = s->seconds[2 * i + 1] - s->seconds[2 * i];
        measured->pass_s[i] += pass_s / repeats;
        measured->busy_s[repeat] += pass_s;
    }
    return PC_OK;
}

/* ---- kernel by kernel ---- */

static int64_t count_launches(const session *s) {
    int64_t count = 0;
    for (int64_t i = 0; i < s->stage->pass_count; i++) {
        pc_pass pass = s->stage->pass[i];
        count += s->stage->chunk[pass.chunk].layers * s->tape[kind_of(pass)].count;
    }
    return count;
}

/* Marks stand in the order of the launches. */
static void share_out(const session *s, const double *seconds, pc_replay_step_times *steps) {
    for (int64_t i = 0; i < s->stage->pass_count; i++) {
        pc_layer_kind kind = kind_of(s->stage->pass[i]);
        for (int64_t l = 0; l < s->stage->chunk[s->stage->pass[i].chunk].layers; l++)
            for (int t = 0; t < s->tape[kind].count; t++, seconds += 2) {
                pc_replay_step_time *made = &(*steps)[kind][t];
                made->family = s->tape[kind].moment[t].step->family;
                made->shape = s->tape[kind].moment[t].step->shape;
                made->count++;
                made->seconds += seconds[1] - seconds[0];
            }
    }
}

/* One more iteration; its peaks are those of the last one again. */
static pc_code time_kernels(session *s, pc_replay_measured *measured, pc_error *error) {
    int64_t marks = 2 * count_launches(s);
    double *seconds = pc_alloc((size_t)marks, sizeof *seconds);
    if (!seconds) return pc_error_no_memory(error);
    s->marks_kernels = true;
    pc_code code = pc_device_marks(s->device, (int)marks, error);
    if (!code) code = run_iteration(s, measured, error);
    if (!code) code = pc_device_mark_times(s->device, (int)marks, seconds, error);
    if (!code) share_out(s, seconds, measured->steps);
    pc_free(seconds);
    return code;
}

static pc_code run_all(session *s, int warm_ups, int repeats, pc_replay_measured *measured, pc_error *error) {
    pc_code code = pc_device_marks(s->device, (int)(2 * s->stage->pass_count), error);
    memset(measured->pass_s, 0, (size_t)s->stage->pass_count * sizeof *measured->pass_s);
    for (int i = 0; !code && i < warm_ups + repeats; i++) {
        code = run_iteration(s, measured, error);
        if (!code && i >= warm_ups) code = take_times(s, i - warm_ups, repeats, measured, error);
    }
    if (!code && measured->steps) code = time_kernels(s, measured, error);
    return code;
}

/* Allocates what is there all the time, and notes how much it is. */
static pc_code open_memory(session *s, pc_replay_measured *measured, pc_error *error) {
    int64_t with_state, peak;
    pc_code code = pc_device_allocated(s->device, &s->before_bytes, &peak, error);
    if (!code) code = open_state(s, error);
    if (!code) code = pc_device_allocated(s->device, &with_state, &peak, error);
    if (!code) measured->state_bytes = with_state - s->before_bytes;
    return code ? code : open_working(s, error);
}

pc_code pc_replay_session(pc_device *device, const pc_replay_stage *stage, int warm_ups, int repeats,
                          pc_replay_measured *measured, pc_error *error) {
    session *s = pc_alloc(1, sizeof *s); /* too large for the stack */
    if (!s) return pc_error_no_memory(error);
    s->device = device;
    s->stage = stage;
    pc_code code = open_session(s, error);
    if (!code) code = open_memory(s, measured, error);
    if (!code) code = run_all(s, warm_ups, repeats, measured, error);
    close_session(s);
    pc_free(s);
    return code;
}
