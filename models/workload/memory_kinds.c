#include "models/workload/memory_kinds.h"

#include "models/workload/memory_private.h"

/* ---- what is kept ---- */

/* A layer of the kinds up to each one: its kind's is the difference to the one before, and roundings add up. */
typedef struct layers_up_to {
    pc_kept layer[PC_ACTIVATION_NORMS + 1];
} layers_up_to;

static layers_up_to layers_of(const pc_model *model, const pc_cut *cut, const pc_slice *slice, const pc_part *part) {
    layers_up_to found;
    for (int kind = 0; kind <= PC_ACTIVATION_NORMS; kind++)
        found.layer[kind] = pc_kept_of_layer(model, cut, slice, part, (2 << kind) - 1);
    return found;
}

/* Spreads what layers have of a sum over their kinds. It is as much as they keep, but for what is on the host. */
static void add_layers(const layers_up_to *layers, const pc_kept_state *state, pc_wide of_layers,
                       pc_activation_bytes *bytes) {
    pc_wide all = pc_kept_in_state(&layers->layer[PC_ACTIVATION_NORMS], state), before = 0;
    for (int kind = 0; all > 0 && kind <= PC_ACTIVATION_NORMS; kind++) {
        pc_wide until = pc_kept_in_state(&layers->layer[kind], state);
        if (of_layers != all) until = until * of_layers / all;
        bytes->of[kind] = (int64_t)(until - before);
        before = until;
    }
}

static pc_activation_bytes split(const layers_up_to *layers, const pc_kept_state *state, pc_wide of_embedding,
                                 pc_wide of_head, int64_t sum) {
    pc_activation_bytes bytes = {{0}};
    of_embedding = pc_min(of_embedding, sum);
    of_head = pc_min(of_head, sum - of_embedding);
    bytes.of[PC_ACTIVATION_EMBEDDING] = (int64_t)of_embedding;
    bytes.of[PC_ACTIVATION_HEAD] = (int64_t)of_head;
    add_layers(layers, state, sum - of_embedding - of_head, &bytes);
    return bytes;
}

static pc_wide left_of(const pc_kept *end) {
    return end->whole - pc_max(end->whole - end->w_needs, 0);
}

pc_part_kinds pc_part_kinds_of(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_forms forms,
                               const pc_part_activation *sums) {
    pc_kept ends[2];
    pc_part_kinds kinds = {.kept = {{0}}};
    const pc_slice slice = pc_slice_of_part(model, cut, part);
    const layers_up_to layers = layers_of(model, cut, &slice, part);
    const pc_kept_states states = pc_kept_states_of(&layers.layer[PC_ACTIVATION_NORMS], part, forms);
    pc_kept_of_ends(model, cut, &slice, part, ends);
    kinds.kept = split(&layers, &states.kept, ends[0].whole, ends[1].whole, sums->kept);
    kinds.taken = split(&layers, &states.taken, ends[0].whole, ends[1].whole, sums->taken);
    if (forms.splits)
        kinds.left = split(&layers, &states.left, left_of(&ends[0]), left_of(&ends[1]), sums->taken - sums->b_frees);
    return kinds;
}

/* ---- what passes work with ---- */

pc_working_bytes pc_part_working_of(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_forms forms,
                                    const pc_part_activation *sums) {
    pc_kept ends[2];
    const pc_slice slice = pc_slice_of_part(model, cut, part);
    const pc_kept layer = pc_kept_of_layer(model, cut, &slice, part, PC_KEPT_OF_LAYERS);
    pc_kept_of_ends(model, cut, &slice, part, ends);
    const pc_working_sums of =
        pc_working_sums_of(model, &slice, cut, part, pc_working_on_layers(&layer, &ends[1], part, forms));
    pc_working_bytes found = {.recomputation = (int64_t)of.layers,
                              .loss = (int64_t)of.loss,
                              .sequence = (int64_t)pc_working_on_tokens(&slice, cut, part),
                              .context = (int64_t)((part->layers > 0 ? pc_working_on_context(&slice) : 0) +
                                                   pc_gradients_of_earlier(&slice, part))};
    found.copies = sums->working - found.recomputation - found.loss - found.sequence - found.context;
    return found;
}
