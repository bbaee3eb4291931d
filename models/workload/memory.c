#include "models/workload/memory.h"

#include "models/workload/memory_private.h"
#include "models/workload/saved.h"

/* ---- activations ---- */

/* A tensor is of the kind of the module that reads it. */
static pc_activation_kind kind_of_module(pc_module module) {
    switch (module) {
    case PC_MODULE_ATTN_NORM:
    case PC_MODULE_ATTN_POST_NORM:
    case PC_MODULE_MLP_NORM:
    case PC_MODULE_MLP_POST_NORM:
        return PC_ACTIVATION_NORMS;
    case PC_MODULE_MLP_UP:
    case PC_MODULE_MLP_ACT:
    case PC_MODULE_MLP_DOWN:
    case PC_MODULE_MLP_RESIDUAL:
        return PC_ACTIVATION_MLP;
    default:
        return PC_ACTIVATION_ATTENTION;
    }
}

static bool has_kind(int kinds, pc_activation_kind kind) {
    return kinds & 1 << kind;
}

static void leave_kinds(pc_saved_list *saved, int kinds) {
    int count = 0;
    for (int i = 0; i < saved->count; i++)
        if (has_kind(kinds, kind_of_module(saved->list[i].module))) saved->list[count++] = saved->list[i];
    saved->count = count;
}

static pc_kept layer_of(const pc_model *model, const pc_slice *slice, pc_saved_sort sort, int32_t modules, int kinds) {
    pc_saved_list saved;
    pc_layer_saved(model, slice, sort, modules, &saved);
    leave_kinds(&saved, kinds);
    pc_wide found = pc_saved_by_f(&saved);
    bool has_input = has_kind(kinds, PC_ACTIVATION_NORMS), is_attention = has_kind(kinds, PC_ACTIVATION_ATTENTION);
    return (pc_kept){.input = has_input ? 2 * (pc_wide)slice->norm_tokens * slice->hidden : 0,
                     .whole = found + pc_saved_again(&saved),
                     .scores = is_attention ? pc_score_bytes(model, slice) : 0,
                     .found = found,
                     .w_needs = pc_saved_for_w(&saved),
                     .bw_peak = modules ? pc_saved_peak(&saved, false) : 0,
                     .b_peak = modules ? pc_saved_peak(&saved, true) : 0,
                     .cached = is_attention && slice->has_later ? 4 * (pc_wide)slice->tokens * slice->key : 0};
}

/* The layers of a part, of two sorts, as so many alike: the mean, rounded up; `second` of `all` are of the other. */
static pc_wide mean(pc_wide first, pc_wide other, int64_t second, int64_t all) {
    return (first * (all - second) + other * second + all - 1) / all;
}

static pc_kept mix(pc_kept first, const pc_kept *other, int64_t second, int64_t all) {
    if (second == 0) return first;
    first.whole = mean(first.whole, other->whole, second, all);
    first.found = mean(first.found, other->found, second, all);
    first.bw_peak = pc_max(first.bw_peak, other->bw_peak);
    first.b_peak = pc_max(first.b_peak, other->b_peak);
    first.w_needs = mean(first.w_needs, other->w_needs, second, all);
    return first;
}

/* Layers of the recipe and of 16 bits. */
static pc_kept kept_of_sort(const pc_model *model, const pc_slice *slice, const pc_part *part, bool has_experts,
                            int kinds) {
    bool is_low = pc_low_precision_is_on(&model->low);
    int32_t modules = part->recompute == PC_RECOMPUTE_MODULES ? part->recompute_modules : 0;
    pc_kept low = layer_of(model, slice, (pc_saved_sort){is_low, has_experts}, modules, kinds);
    if (!is_low || part->layers == 0 || part->wide_layers == 0) return low;
    pc_kept wide = layer_of(model, slice, (pc_saved_sort){false, has_experts}, modules, kinds);
    return mix(low, &wide, part->wide_layers, part->layers);
}

static pc_kept layer_kept(const pc_model *model, const pc_slice *slice, const pc_part *part, int kinds) {
    int64_t experts = part->expert_layers;
    pc_kept dense = {0}, other;
    if (experts < part->layers || part->layers == 0) dense = kept_of_sort(model, slice, part, false, kinds);
    if (experts == 0) return dense;
    other = kept_of_sort(model, slice, part, true, kinds);
    if (experts == part->layers) return other;
    return mix(dense, &other, experts, part->layers);
}

/* The mask of its dropout, if B comes so far; the table's gradient is B's work. */
static pc_kept embedding_kept(const pc_model *model, const pc_slice *slice) {
    bool has_mask = model->has_dropout && !(slice->frozen & (int32_t)PC_FROZEN_EMBEDDING);
    return (pc_kept){.whole = has_mask ? (pc_wide)slice->norm_tokens * slice->hidden : 0};
}

/* The inputs of the final norm and of the head, and the softmax in fp32, whose gradient is 16 bits wide when W needs
 * it. Of a fused loss it is that gradient instead, of a compiled one the logits. In pieces the head's input has its
 * gradient in its place, and there is nothing for W. Capped logits stand beside it where a kernel of their own caps
 * them. */
static pc_kept trained_head_kept(const pc_model *model, const pc_slice *slice, pc_cross_entropy loss) {
    pc_wide rows = (pc_wide)slice->norm_tokens * slice->hidden, logits = (pc_wide)slice->tokens * slice->vocab;
    pc_wide capped = pc_caps_logits_apart(model, loss) ? 2 * logits : 0;
    switch (loss) {
    case PC_CROSS_ENTROPY_CHUNKED:
        return (pc_kept){.whole = 4 * rows};
    case PC_CROSS_ENTROPY_FUSED:
    case PC_CROSS_ENTROPY_COMPILED:
        return (pc_kept){.whole = 4 * rows + 2 * logits + capped, .w_needs = 2 * rows + 2 * logits};
    default:
        return (pc_kept){.whole = 4 * rows + 4 * logits + capped, .w_needs = 2 * rows + 2 * logits};
    }
}

/* Nobody reads the input of a frozen one. */
static pc_kept head_kept(const pc_model *model, const pc_slice *slice, pc_cross_entropy loss) {
    pc_kept head = trained_head_kept(model, slice, loss);
    if (!(slice->frozen & (int32_t)PC_FROZEN_HEAD) || loss == PC_CROSS_ENTROPY_CHUNKED) return head;
    return (pc_kept){.whole = head.whole - 2 * (pc_wide)slice->norm_tokens * slice->hidden};
}

/* Of a head that all stages share: the final norm's input. The rest is held from S to T (pc_vocab_held_bytes). */
static pc_kept shared_head_kept(const pc_slice *slice) {
    return (pc_kept){.whole = 2 * (pc_wide)slice->norm_tokens * slice->hidden};
}

/* What the loss works with beside what is kept: 16-bit logits in F and their gradient in B. The plain loss has a second
 * fp32 copy of them, too; torch's two fp32 gradients at once in B, or over a cut vocabulary three; the fused one has
 * nothing. In pieces it is a piece's logits and, if the sequence is cut, the gradient of all tokens before it is summed
 * over the ranks. */
pc_wide pc_working_on_loss(const pc_slice *slice, pc_cross_entropy loss) {
    pc_wide logits = (pc_wide)slice->loss_tokens * slice->vocab, gradient = 2 * (pc_wide)slice->tokens * slice->hidden;
    switch (loss) {
    case PC_CROSS_ENTROPY_CHUNKED:
        return 2 * logits + (slice->is_sequence_cut ? gradient : 0);
    case PC_CROSS_ENTROPY_FUSED:
        return 0;
    case PC_CROSS_ENTROPY_PLAIN:
        return 6 * logits;
    case PC_CROSS_ENTROPY_TORCH:
        return (slice->is_cut ? 12 : 8) * logits;
    default:
        return 2 * logits;
    }
}

/* ---- recomputation ---- */

/* Products that attention, and the MLP, reads; the others norms read. */
enum { OF_ATTENTION = PC_KEEPS_QUERY | PC_KEEPS_KEY | PC_KEEPS_VALUE | PC_KEEPS_CONTEXT };
enum { OF_MLP = PC_KEEPS_GATE | PC_KEEPS_UP };

/* What a policy keeps of a layer that is read: columns of the products, what attention puts out, and the output
 * product, whole or, where the sequence is cut and its sums are scattered, of this rank's tokens. A norm behind the MLP
 * reads the last product likewise. */
static pc_wide policy_found(const pc_model *model, const pc_slice *slice, int named, int kinds) {
    bool has_norms = has_kind(kinds, PC_ACTIVATION_NORMS);
    pc_wide columns = 0, rows = has_norms ? (pc_wide)slice->norm_tokens * slice->hidden : 0;
    if (!has_kind(kinds, PC_ACTIVATION_ATTENTION)) named &= ~OF_ATTENTION;
    if (!has_kind(kinds, PC_ACTIVATION_MLP)) named &= ~OF_MLP;
    if (named & PC_KEEPS_QUERY) columns += slice->query;
    if (named & PC_KEEPS_KEY) columns += slice->key;
    if (named & PC_KEEPS_VALUE) columns += slice->key;
    if (named & PC_KEEPS_CONTEXT) columns += slice->query;
    if (named & PC_KEEPS_GATE) columns += slice->ffn;
    if (named & PC_KEEPS_UP) columns += slice->up - slice->ffn;
    bool is_scattered = named & PC_KEEPS_REDUCED && slice->is_sequence_cut;
    bool has_output = named & PC_KEEPS_OUTPUT || is_scattered;
    bool has_down = pc_model_has_post_norms(model) && (named & PC_KEEPS_DOWN || is_scattered);
    return 2 * rows + 2 * (pc_wide)slice->tokens * columns + (has_output ? 2 * rows : 0) + (has_down ? 2 * rows : 0);
}

/* Eagerly, what is named is kept: the last product, for all tokens, and what comes of it where it is scattered; less
 * what a norm behind the MLP reads of them. */
static pc_wide policy_unread(const pc_model *model, const pc_slice *slice, int named) {
    pc_wide down = named & PC_KEEPS_DOWN ? 2 * (pc_wide)slice->tokens * slice->hidden : 0;
    bool is_scattered = named & PC_KEEPS_REDUCED && slice->is_sequence_cut;
    pc_wide rows = 2 * (pc_wide)slice->norm_tokens * slice->hidden, all = down + (is_scattered ? rows : 0);
    return pc_model_has_post_norms(model) ? pc_max(all - rows, 0) : all;
}

static void add_policy(const pc_model *model, const pc_cut *cut, const pc_slice *slice, pc_recompute kind, int kinds,
                       pc_kept *layer) {
    if (!pc_recompute_is_policy(kind)) return;
    int named = pc_recompute_kept(model, kind);
    int both = !(named & PC_KEEPS_KEY) + !(named & PC_KEEPS_VALUE);
    bool has_unread = cut->kernels == PC_KERNELS_EAGER && has_kind(kinds, PC_ACTIVATION_MLP);
    layer->found = policy_found(model, slice, named, kinds) + both * layer->cached / 2;
    layer->unread = has_unread ? policy_unread(model, slice, named) : 0;
}

/* The part's layers: those of which something is recomputed, as `recompute` says, and the others. */
typedef struct layers_of {
    pc_wide all, again;
    int64_t n;      /* UNIFORM: recomputed at once */
    pc_wide behind; /* others, behind the last one that is recomputed: the backward pass has them first */
    pc_recompute recompute;
    bool leaves_w; /* B makes again what W needs, and leaves it: more than the head's products */
} layers_of;

static layers_of layers_of_part(const pc_part *part, pc_pass_forms forms) {
    int64_t n = part->recompute_layers, again = pc_recomputed_layers(pc_part_recomputation(part), part->layers);
    bool is_more = part->recompute >= PC_RECOMPUTE_FULL;
    return (layers_of){.all = part->layers,
                       .again = again,
                       .n = part->recompute == PC_RECOMPUTE_UNIFORM ? n : 1,
                       .behind = part->recompute == PC_RECOMPUTE_EVERY ? part->layers % n : part->layers - again,
                       .recompute = part->recompute,
                       .leaves_w = is_more && forms.splits && !forms.has_r};
}

static pc_wide in_form(const pc_kept *layer, pc_kept_form form) {
    switch (form) {
    case PC_KEPT_BUT_SCORES:
        return layer->whole - layer->scores;
    case PC_KEPT_INPUT:
        return layer->input + layer->cached;
    case PC_KEPT_FOUND:
        return layer->found;
    case PC_KEPT_FOR_W:
        return layer->w_needs;
    default:
        return layer->whole;
    }
}

/* What F keeps of a layer that is recomputed, but for UNIFORM, which keeps that of every n-th. */
static pc_kept_form form_after_f(pc_recompute recompute) {
    if (pc_recompute_is_policy(recompute) || recompute == PC_RECOMPUTE_MODULES) return PC_KEPT_FOUND;
    if (recompute >= PC_RECOMPUTE_FULL) return PC_KEPT_INPUT;
    return recompute == PC_RECOMPUTE_SELECTIVE ? PC_KEPT_BUT_SCORES : PC_KEPT_WHOLE;
}

/* Only a policy leaves anything unread. */
static pc_wide left_by(const pc_kept *layer, pc_recompute recompute) {
    return in_form(layer, form_after_f(recompute)) + layer->unread;
}

/* What is held of a layer at most, of which F has left so much, but for what a pass needs while it is at it: as much,
 * or what B leaves W. With sequence parallelism that is more where no scores are kept. */
static pc_kept_form held(const pc_kept *layer, pc_kept_form form, pc_pass_forms forms) {
    return forms.splits && layer->w_needs > in_form(layer, form) ? PC_KEPT_FOR_W : form;
}

/* The same of one that B makes again and leaves: of a policy or of modules, beside what F has kept of it. */
static pc_kept_form form_for_w(const pc_kept *layer, const layers_of *x) {
    bool keeps = pc_recompute_is_policy(x->recompute) || x->recompute == PC_RECOMPUTE_MODULES;
    if (keeps) return layer->found >= layer->w_needs ? PC_KEPT_FOUND : PC_KEPT_FOR_W;
    /* Of adapters W may need less than the input, and of slices less than that and the keys kept for later ones. */
    return layer->w_needs >= in_form(layer, PC_KEPT_INPUT) ? PC_KEPT_FOR_W : PC_KEPT_INPUT;
}

static pc_wide found_by_w(const pc_kept *layer, const layers_of *x) {
    return in_form(layer, form_for_w(layer, x)) + layer->unread;
}

static pc_kept_form form_again(const pc_kept *layer, const layers_of *x, pc_pass_forms forms) {
    if (forms.has_r) return held(layer, PC_KEPT_WHOLE, forms);
    return x->leaves_w ? form_for_w(layer, x) : held(layer, form_after_f(x->recompute), forms);
}

static pc_kept_state state_after_f(const layers_of *x) {
    return (pc_kept_state){.again = (x->again + x->n - 1) / x->n,
                           .others = x->all - x->again,
                           .form = form_after_f(x->recompute),
                           .form_of_others = PC_KEPT_WHOLE,
                           .has_unread = true};
}

/* The most that is held of the layers, but for what a pass needs while it is at one. */
static pc_kept_state state_taken(const pc_kept *layer, const layers_of *x, pc_pass_forms forms) {
    if (!forms.has_r && !forms.splits) return state_after_f(x);
    return (pc_kept_state){.again = x->again,
                           .others = x->all - x->again,
                           .form = form_again(layer, x, forms),
                           .form_of_others = held(layer, PC_KEPT_WHOLE, forms),
                           .has_unread = true};
}

pc_kept_states pc_kept_states_of(const pc_kept *layer, const pc_part *part, pc_pass_forms forms) {
    const layers_of x = layers_of_part(part, forms);
    return (pc_kept_states){
        .kept = state_after_f(&x),
        .taken = state_taken(layer, &x, forms),
        .left = {.again = x.again, .others = x.all - x.again, .form = PC_KEPT_FOR_W, .form_of_others = PC_KEPT_FOR_W}};
}

pc_wide pc_kept_in_state(const pc_kept *layer, const pc_kept_state *state) {
    pc_wide unread = state->has_unread ? layer->unread : 0;
    return state->again * (in_form(layer, state->form) + unread) +
           state->others * in_form(layer, state->form_of_others);
}

static pc_wide freed_by_b(const pc_kept *layer, const layers_of *x, pc_pass_forms forms) {
    pc_wide again = in_form(layer, form_again(layer, x, forms)) + layer->unread;
    pc_wide of_others = (x->all - x->again) * pc_max(layer->whole - layer->w_needs, 0);
    return x->again * pc_max(again - layer->w_needs, 0) + of_others;
}

/* Of modules, module by module; less what has gone, as below. */
static pc_wide working_on_modules(const pc_kept *layer, const pc_kept *head, bool is_for_w) {
    if (!is_for_w) return layer->bw_peak - head->whole;
    pc_wide over = layer->found + layer->b_peak - pc_max(layer->found, layer->w_needs);
    return over - (head->whole - head->w_needs);
}

/* What the recomputation of `count` layers at once needs beside, less what has gone in the backward pass then: of the
 * head, which comes first, and of `before` layers. A BW that recomputes is done with them; else W may still need its
 * part. `inputs` of checkpoints are there already. */
static pc_wide working_on(const pc_kept *layer, const pc_kept *head, const layers_of *x, bool is_for_w, pc_wide count,
                          pc_wide inputs) {
    bool is_done = x->recompute >= PC_RECOMPUTE_FULL && !is_for_w;
    pc_wide of_head = is_done ? head->whole : head->whole - head->w_needs;
    pc_wide of_others = x->behind * (is_done ? layer->whole : pc_max(layer->whole - layer->w_needs, 0));
    pc_wide found = pc_recompute_is_policy(x->recompute) ? layer->found : left_by(layer, x->recompute);
    pc_wide left = is_for_w ? count * (found_by_w(layer, x) - layer->unread) : inputs * found;
    return count * layer->whole - left - of_head - of_others;
}

/* Of UNIFORM the last group is the first, and may be smaller than that before it, which comes when its input has gone.
 */
static pc_wide working_on_groups(const pc_kept *layer, const pc_kept *head, const layers_of *x, bool is_for_w) {
    pc_wide first = x->again % x->n ? x->again % x->n : pc_min(x->n, x->again);
    pc_wide needed = working_on(layer, head, x, is_for_w, first, 1);
    if (first == x->again) return needed;
    return pc_max(needed, working_on(layer, head, x, is_for_w, x->n, 2));
}

pc_wide pc_working_on_layers(const pc_kept *layer, const pc_kept *head, const pc_part *part, pc_pass_forms forms) {
    const layers_of of_part = layers_of_part(part, forms), *x = &of_part;
    if (x->again == 0 || forms.has_r) return 0;
    if (x->recompute == PC_RECOMPUTE_MODULES) {
        pc_wide bw = working_on_modules(layer, head, false), b = working_on_modules(layer, head, true);
        return !forms.splits ? bw : forms.mixes ? pc_max(bw, b) : b;
    }
    pc_wide needed = working_on_groups(layer, head, x, x->leaves_w);
    return x->leaves_w && forms.mixes ? pc_max(needed, working_on_groups(layer, head, x, false)) : needed;
}

/* ---- the part ---- */

/* What attention works with beside what is kept, where the sequence is cut over ranks. Gathered, these are keys and
 * values of all and their gradients. A ring of n has in F the keys and values of n steps and the outputs of each, which
 * are merged at the end. Backward it has two buffers of keys, values and their gradients. */
pc_wide pc_working_on_context(const pc_slice *x) {
    pc_wide keys = 2 * (pc_wide)x->tokens * x->key, values = 2 * (pc_wide)x->tokens * x->value,
            outputs = 2 * (pc_wide)x->tokens * x->output;
    if (x->gathers_keys) return 2 * (pc_wide)x->context * (keys + values);
    if (x->ring < 2) return 0;
    return pc_max(x->ring * (keys + values + outputs), 4 * (keys + values));
}

/* A gathered sequence stands in one buffer, matrix after matrix; in two where inputs are kept gathered
 * (pc_tp_inputs). */
static pc_wide gathered_sequence(const pc_slice *slice) {
    pc_wide buffer = 2 * (pc_wide)slice->tokens * slice->hidden;
    if (!slice->is_sequence_cut) return 0;
    return slice->keeps_gathered ? 2 * buffer : buffer;
}

/* Rows that a dispatcher's collective has on this rank, of all whose experts are shared out: the tokens of all of them,
 * or what its own tokens make. What the buffers of the others have is not counted. */
static pc_wide dispatched_rows(const pc_expert_slice *x, pc_dispatcher dispatcher) {
    if (x->ranks * x->cut < 2) return 0;
    if (dispatcher == PC_DISPATCHER_ALLGATHER) return (pc_wide)x->tokens * x->cut * x->ranks;
    return dispatcher == PC_DISPATCHER_ALLTOALL && x->ranks > 1 ? x->sent : 0;
}

/* In the backward pass the gradient of what the experts put out comes so, and the rows that are made of it stand beside
 * it (Megatron-LM's token_dispatcher.py: combine and unpermute of MoEAllGatherTokenDispatcher and
 * MoEAlltoAllTokenDispatcher). F has no more. No matrix works on a gathered sequence then. */
pc_wide pc_working_on_tokens(const pc_slice *slice, const pc_cut *cut, const pc_part *part) {
    pc_wide rows = part->expert_layers > 0 ? dispatched_rows(&slice->experts, cut->dispatcher) : 0;
    pc_wide exchanged = rows > 0 ? 2 * (rows + slice->experts.held_rows) * slice->hidden : 0;
    return pc_max(gathered_sequence(slice), exchanged);
}

/* The largest tensor of a loss: logits in fp32, or in 16 bits, of a piece if it has pieces. */
static pc_wide largest_of_loss(const pc_slice *slice, pc_cross_entropy loss) {
    bool is_wide =
        loss == PC_CROSS_ENTROPY_IN_PLACE || loss == PC_CROSS_ENTROPY_PLAIN || loss == PC_CROSS_ENTROPY_TORCH;
    return (is_wide ? 4 : 2) * (pc_wide)slice->loss_tokens * slice->vocab;
}

/* Gate, up and their product, all of them that F does not keep of a layer. Attention drops less. */
static pc_wide dropped_by_f(const pc_model *model, const pc_slice *slice, const pc_part *part) {
    pc_wide columns = slice->up + slice->ffn;
    if (pc_recomputed_layers(pc_part_recomputation(part), part->layers) == 0) return 0;
    if (pc_recompute_is_policy(part->recompute)) {
        int named = pc_recompute_kept(model, part->recompute);
        if (named & PC_KEEPS_GATE) columns -= slice->ffn;
        if (named & PC_KEEPS_UP) columns -= slice->up - slice->ffn;
    } else if (part->recompute < PC_RECOMPUTE_FULL && !(part->recompute_modules & PC_RECOMPUTES_MLP)) {
        return 0;
    }
    return 2 * (pc_wide)slice->tokens * columns;
}

static pc_wide left_reserved(const pc_model *model, const pc_slice *slice, const pc_cut *cut, const pc_part *part) {
    if (cut->loss_buffers == PC_LOSS_BUFFERS_SHARED || !pc_part_has_loss(cut, part)) return 0;
    pc_wide dropped = dropped_by_f(model, slice, part);
    return largest_of_loss(slice, cut->cross_entropy) > dropped ? dropped : 0;
}

pc_working_sums pc_working_sums_of(const pc_model *model, const pc_slice *slice, const pc_cut *cut, const pc_part *part,
                                   pc_wide of_layers) {
    pc_wide loss = pc_part_has_loss(cut, part) ? pc_working_on_loss(slice, cut->cross_entropy) : 0;
    pc_wide reserved = left_reserved(model, slice, cut, part);
    if (of_layers > loss + reserved) return (pc_working_sums){.layers = of_layers};
    return (pc_working_sums){.layers = reserved, .loss = loss, .reserved = reserved};
}

/* Of the loss, or of the layers' recomputation, whichever is more. */
static pc_wide working_bytes(const pc_slice *slice, const pc_cut *cut, const pc_part *part,
                             const pc_working_sums *sums) {
    pc_wide of_context = part->layers > 0 ? pc_working_on_context(slice) : 0;
    return sums->layers + sums->loss + pc_working_on_tokens(slice, cut, part) + of_context;
}

/* While a slice's B is under way, the gradients of the keys and values before it, of all layers: they are summed until
 * the slices that made those have theirs. One microbatch's at a time, for its slices' B follow each other. */
pc_wide pc_gradients_of_earlier(const pc_slice *slice, const pc_part *part) {
    return 4 * (pc_wide)slice->keys_before * slice->key * part->layers;
}

/* What F keeps of the tensors of these modules, where it leaves others out. */
static pc_wide module_bytes(const pc_model *model, const pc_slice *slice, pc_saved_sort sort, int32_t again,
                            int32_t modules) {
    pc_saved_list saved;
    pc_wide sum = 0;
    pc_layer_saved(model, slice, sort, again, &saved);
    for (int i = 0; i < saved.count; i++)
        if (!saved.list[i].is_gradient && !saved.list[i].is_again && modules & 1 << saved.list[i].module)
            sum += saved.list[i].bytes;
    return sum;
}

/* Of a layer, what goes to the host: all that F keeps, or the named modules' part of it. */
static pc_wide sent_of_layer(const pc_model *model, const pc_cut *cut, const pc_slice *slice, const pc_part *part,
                             const pc_kept *layer) {
    int32_t modules = cut->offload.modules, again = part->recompute_modules;
    if (!(cut->offload.kinds & PC_OFFLOAD_FINE_GRAINED)) return left_by(layer, part->recompute);
    bool is_low = pc_low_precision_is_on(&model->low);
    bool is_left_out = part->recompute == PC_RECOMPUTE_SELECTIVE && modules & 1 << PC_MODULE_CORE_ATTN;
    pc_saved_sort sort = {is_low, part->expert_layers > 0}, wide = {false, sort.has_experts};
    pc_wide low = module_bytes(model, slice, sort, again, modules);
    if (is_low && part->layers > 0 && part->wide_layers > 0)
        low = mean(low, module_bytes(model, slice, wide, again, modules), part->wide_layers, part->layers);
    return low - (is_left_out ? layer->scores : 0);
}

/* As part of passes one layer's are on their way beside what is kept: Transformer Engine spreads the copies out and
 * back over the layers that stay (cpu_offload.py: layer_window_map), and brings back one at a time where
 * cpu_offloading_double_buffering is off, as it is by default. If none stays there are two: one at work and one on its
 * way. Where B leaves W what it needs, B fetches it. */
static void offload_in_passes(pc_wide sent, int64_t layers, int64_t all, bool splits, pc_part_activation *activation) {
    pc_wide bytes = layers * sent;
    activation->offloaded = (int64_t)bytes;
    activation->kept -= (int64_t)bytes;
    activation->working += (int64_t)(pc_min(layers, layers < all ? 1 : 2) * sent);
    if (splits) return;
    activation->taken -= (int64_t)bytes;
    activation->b_frees = pc_min(activation->b_frees, activation->taken);
}

static void offload_beside_passes(const pc_kept *layer, pc_wide sent, int64_t layers, pc_part_activation *activation) {
    pc_wide bytes = layers * sent, by_b = layers * pc_max(sent - layer->w_needs, 0);
    activation->offloaded = (int64_t)bytes;
    activation->offloaded_b = (int64_t)by_b;
    activation->taken -= (int64_t)bytes;
    activation->kept -= (int64_t)bytes;
    activation->b_frees -= (int64_t)by_b;
}

pc_kept pc_kept_of_layer(const pc_model *model, const pc_cut *cut, const pc_slice *slice, const pc_part *part,
                         int kinds) {
    pc_kept layer = layer_kept(model, slice, part, kinds);
    add_policy(model, cut, slice, part->recompute, kinds, &layer);
    return layer;
}

/* Each layer of multi-token prediction has its own logits and loss, and in front of it the inputs of two norms and,
 * side by side, what these put out, for the projection. */
static void add_mtp(const pc_slice *slice, const pc_part *part, pc_kept *head) {
    pc_wide rows = (pc_wide)slice->norm_tokens * slice->hidden;
    head->whole += part->mtp_heads * head->whole + 8 * rows * part->mtp_layers;
    head->w_needs += part->mtp_heads * head->w_needs + 6 * rows * part->mtp_layers;
}

void pc_kept_of_ends(const pc_model *model, const pc_cut *cut, const pc_slice *slice, const pc_part *part,
                     pc_kept ends[2]) {
    ends[0] = part->has_embedding ? embedding_kept(model, slice) : (pc_kept){0};
    ends[1] = (pc_kept){0};
    if (part->has_head)
        ends[1] = cut->vocab_stages > 0 ? shared_head_kept(slice) : head_kept(model, slice, cut->cross_entropy);
    add_mtp(slice, part, &ends[1]);
}

pc_code pc_part_activations(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_forms forms,
                            pc_part_activation *activation, pc_error *error) {
    pc_slice x = pc_slice_of_part(model, cut, part);
    pc_kept layer = pc_kept_of_layer(model, cut, &x, part, PC_KEPT_OF_LAYERS), ends[2];
    const layers_of layers = layers_of_part(part, forms);
    const pc_kept_states states = pc_kept_states_of(&layer, part, forms);
    pc_kept_of_ends(model, cut, &x, part, ends);
    pc_wide of_ends = ends[0].whole + ends[1].whole, sum = pc_kept_in_state(&layer, &states.taken) + of_ends;
    pc_wide b_frees = freed_by_b(&layer, &layers, forms);
    for (int i = 0; i < 2; i++) b_frees += pc_max(ends[i].whole - ends[i].w_needs, 0);
    const pc_working_sums sums =
        pc_working_sums_of(model, &x, cut, part, pc_working_on_layers(&layer, &ends[1], part, forms));
    pc_wide working = working_bytes(&x, cut, part, &sums);
    working += pc_gradients_of_earlier(&x, part);
    if (sum > INT64_MAX || working > INT64_MAX)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "activations: 2^63 bytes and more; expected fewer tokens or a smaller model");
    *activation = (pc_part_activation){.taken = (int64_t)sum,
                                       .b_frees = (int64_t)b_frees,
                                       .kept = (int64_t)(pc_kept_in_state(&layer, &states.kept) + of_ends),
                                       .working = (int64_t)working,
                                       .reserved = (int64_t)sums.reserved};
    if (part->offloaded_layers == 0) return PC_OK;
    pc_wide sent = sent_of_layer(model, cut, &x, part, &layer);
    if (pc_offload_is_beside_passes(&cut->offload))
        offload_beside_passes(&layer, sent, part->offloaded_layers, activation);
    else
        offload_in_passes(sent, part->offloaded_layers, part->layers, forms.splits, activation);
    return PC_OK;
}

/* The broadcast input; of the loss what head_kept has; with one barrier the input's gradient, of every slice. */
int64_t pc_vocab_held_bytes(const pc_model *model, const pc_cut *cut) {
    pc_slice x = pc_slice_of(model, cut);
    pc_kept head = head_kept(model, &x, cut->cross_entropy);
    pc_wide rows = (pc_wide)x.norm_tokens * x.hidden;
    return (int64_t)(head.whole - 2 * rows + (cut->vocab_barriers == 1 ? 2 * rows : 0));
}

/* ---- what stands all the time ---- */

static int64_t shard(int64_t bytes, int64_t ranks) {
    return pc_divide_up(bytes, ranks);
}

pc_state_bytes pc_state_of(const pc_cut *cut, int64_t parameters) {
    int ranks = pc_cut_replicas(cut);
    return (pc_state_bytes){
        .parameters = shard(2 * parameters, cut->zero >= 3 ? ranks : 1),
        .gradients = shard(pc_cut_gradient_bytes(cut) * parameters, cut->zero >= 2 ? ranks : 1),
        .optimizer = shard(pc_optimizer_state_bytes(&cut->optimizer, parameters), cut->zero >= 1 ? ranks : 1)};
}

int64_t pc_boundary_bytes(const pc_model *model, const pc_cut *cut, bool is_scattered) {
    bool is_cut = is_scattered || cut->sequence_parallel;
    int64_t whole = 2 * (cut->seq_len / pc_cut_cp(cut)) * cut->microbatch_size * model->hidden,
            bytes = pc_divide_up(whole, pc_cut_slices(cut));
    return is_cut ? bytes / cut->tp : bytes;
}
