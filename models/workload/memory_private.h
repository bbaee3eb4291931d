/* memory_private.h: what a part's activations are summed up from. Private to memory.c and memory_kinds.c. */
#ifndef PC_MODELS_WORKLOAD_MEMORY_PRIVATE_H
#define PC_MODELS_WORKLOAD_MEMORY_PRIVATE_H

#include "engine/numbers.h"
#include "models/schedule/activation_kinds.h"
#include "models/workload/memory.h"
#include "models/workload/slice.h"

/* Whether passes of the part compute the loss, or its share of the vocabulary. */
static inline bool pc_part_has_loss(const pc_cut *cut, const pc_part *part) {
    return cut->vocab_stages > 0 ? part->has_vocab : part->has_head;
}

/* What one layer, or an end of the model, keeps of a microbatch. */
typedef struct pc_kept {
    pc_wide input;   /* the layer's own input */
    pc_wide whole;   /* with nothing recomputed */
    pc_wide scores;  /* of that, what selective recomputation leaves out */
    pc_wide found;   /* of that, what a policy or a set of modules keeps, with the input */
    pc_wide unread;  /* what it keeps beside that, though the backward pass does not read it */
    pc_wide w_needs; /* inputs and output gradients of matrices */
    /* modules: the most that a BW, or a B, holds at once over `found` */
    pc_wide bw_peak, b_peak;
    pc_wide cached; /* keys and values that later slices of the sequence read: not recomputed, whatever else is */
} pc_kept;

/* What is there of a layer at some time: linear in what it keeps, so that kinds add up. */
typedef enum pc_kept_form {
    PC_KEPT_WHOLE,
    PC_KEPT_BUT_SCORES,
    PC_KEPT_INPUT,
    PC_KEPT_FOUND,
    PC_KEPT_FOR_W
} pc_kept_form;

/* Of a part's layers: so many that are recomputed, with what is unread of them or without, and the others. */
typedef struct pc_kept_state {
    pc_wide again, others;
    pc_kept_form form, form_of_others;
    bool has_unread;
} pc_kept_state;

/* Sets of pc_activation_kind; those of an end are no layer's. */
enum {
    PC_KEPT_OF_LAYERS = 1 << PC_ACTIVATION_ATTENTION | 1 << PC_ACTIVATION_MLP | 1 << PC_ACTIVATION_NORMS,
};

/* A layer of a part; of these kinds alone. */
pc_kept pc_kept_of_layer(const pc_model *model, const pc_cut *cut, const pc_slice *slice, const pc_part *part,
                         int kinds);

/* The ends of a part, embedding and head; zeros of one that it has not. */
void pc_kept_of_ends(const pc_model *model, const pc_cut *cut, const pc_slice *slice, const pc_part *part,
                     pc_kept ends[2]);

/* What F keeps; what is taken in all (pc_part_activation); and what B leaves W. */
typedef struct pc_kept_states {
    pc_kept_state kept, taken, left;
} pc_kept_states;
pc_kept_states pc_kept_states_of(const pc_kept *layer, const pc_part *part, pc_pass_forms forms);
pc_wide pc_kept_in_state(const pc_kept *layer, const pc_kept_state *state);

/* What passes of a part work with beside what is kept (pc_part_activation's `working` but for copies to the host). */
pc_wide pc_working_on_layers(const pc_kept *layer, const pc_kept *head, const pc_part *part, pc_pass_forms forms);
pc_wide pc_working_on_loss(const pc_slice *slice, pc_cross_entropy loss);
/* Of a part's layers and of its loss, whichever is more: with `layers`, what their recomputation needs, or, beside the
 * loss, what F's layers have freed and it cannot use (pc_loss_buffers), which is `reserved`. None is below 0. */
typedef struct pc_working_sums {
    pc_wide layers, loss, reserved;
} pc_working_sums;
pc_working_sums pc_working_sums_of(const pc_model *model, const pc_slice *slice, const pc_cut *cut, const pc_part *part,
                                   pc_wide of_layers);

pc_wide pc_working_on_context(const pc_slice *slice);
pc_wide pc_gradients_of_earlier(const pc_slice *slice, const pc_part *part);
pc_wide pc_working_on_tokens(const pc_slice *slice, const pc_cut *cut, const pc_part *part);

#endif
