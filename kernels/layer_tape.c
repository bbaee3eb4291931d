/* When the slots of a layer come and go: what is held between passes, and where within a pass the rest lies. */
#include "kernels/layer.h"

#include <string.h>

static bool is_held(const pc_slot *slot) {
    return slot->life == PC_SLOT_F_TO_B || slot->life == PC_SLOT_F_TO_W || slot->life == PC_SLOT_B_TO_W ||
           slot->life == PC_SLOT_INPUT;
}

/* Whether this pass is the one that makes the slot, and the one behind which nobody reads it. */
static bool takes(const pc_layer *layer, pc_layer_kind kind, int slot) {
    pc_slot_life life = layer->slot[slot].life;
    if (kind == PC_LAYER_F) return life == PC_SLOT_F_TO_B || life == PC_SLOT_F_TO_W;
    return kind != PC_LAYER_W && life == PC_SLOT_B_TO_W && slot != layer->output_gradient;
}

static bool gives(const pc_layer *layer, pc_layer_kind kind, int slot) {
    pc_slot_life life = layer->slot[slot].life;
    bool is_for_b = life == PC_SLOT_F_TO_B || life == PC_SLOT_INPUT;
    bool is_for_w = life == PC_SLOT_F_TO_W || life == PC_SLOT_B_TO_W;
    return (is_for_b && (kind == PC_LAYER_B || kind == PC_LAYER_BW)) ||
           (is_for_w && (kind == PC_LAYER_W || kind == PC_LAYER_BW));
}

static bool uses(const pc_layer_step *step, int slot) {
    for (int i = 0; i < step->tensor_count; i++)
        if (step->slot[i] == slot) return true;
    return false;
}

static void add_pass(const pc_layer_pass *pass, pc_layer_tape *tape) {
    for (int i = 0; i < pass->count; i++) tape->moment[tape->count++] = (pc_layer_moment){.step = &pass->step[i]};
}

/* The first and the last step that uses a slot; false if none does. */
static bool find_span(const pc_layer_tape *tape, int slot, int *first, int *last) {
    *first = -1;
    for (int i = 0; i < tape->count; i++) {
        if (!uses(tape->moment[i].step, slot)) continue;
        if (*first < 0) *first = i;
        *last = i;
    }
    return *first >= 0;
}

void pc_layer_tape_make(const pc_layer *layer, pc_layer_kind kind, pc_layer_tape *tape) {
    tape->count = 0;
    if (kind == PC_LAYER_F) add_pass(&layer->f, tape);
    if (kind == PC_LAYER_B || kind == PC_LAYER_BW) add_pass(&layer->b, tape);
    if (kind == PC_LAYER_W || kind == PC_LAYER_BW) add_pass(&layer->w, tape);
    for (int slot = 0; slot < layer->slot_count; slot++) {
        int first, last;
        if (!is_held(&layer->slot[slot]) || !find_span(tape, slot, &first, &last)) continue;
        pc_layer_moment *start = &tape->moment[first], *end = &tape->moment[last];
        if (takes(layer, kind, slot)) start->take[start->take_count++] = slot;
        if (gives(layer, kind, slot)) end->give[end->give_count++] = slot;
    }
}

/* ---- temporaries ---- */

/* Of a temporary: the steps of its pass, and where it lies. */
typedef struct place {
    int slot, first, last;
    int64_t start, end;
} place;

static bool meets(const place *a, const place *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* Behind the last of those that it must not overlap, or in a gap between them: the lowest start that none of them
 * covers. */
static int64_t find_start(const place *placed, int count, const place *wanted, int64_t bytes) {
    int64_t start = 0;
    for (int i = 0; i < count; i++) {
        if (!meets(&placed[i], wanted) || placed[i].start >= start + bytes || placed[i].end <= start) continue;
        start = placed[i].end;
        i = -1; /* from the beginning: another may lie there */
    }
    return start;
}

static int64_t place_pass(const pc_layer *layer, pc_layer_kind kind, int64_t offset[PC_LAYER_SLOTS]) {
    pc_layer_tape tape;
    place placed[PC_LAYER_SLOTS];
    int count = 0;
    int64_t bytes = 0;
    pc_layer_tape_make(layer, kind, &tape);
    for (int slot = 0; slot < layer->slot_count; slot++) {
        place *wanted = &placed[count];
        wanted->slot = slot;
        if (layer->slot[slot].life != PC_SLOT_TEMPORARY || !find_span(&tape, slot, &wanted->first, &wanted->last))
            continue;
        int64_t room = (pc_slot_bytes(&layer->slot[slot]) + 255) / 256 * 256;
        wanted->start = offset[slot] = find_start(placed, count, wanted, room);
        wanted->end = wanted->start + room;
        if (wanted->end > bytes) bytes = wanted->end;
        count++;
    }
    return bytes;
}

int64_t pc_layer_place(const pc_layer *layer, int64_t offset[PC_LAYER_SLOTS]) {
    int64_t most = 0;
    for (int i = 0; i < PC_LAYER_SLOTS; i++) offset[i] = -1;
    for (int kind = PC_LAYER_F; kind <= PC_LAYER_W; kind++) {
        int64_t bytes = place_pass(layer, (pc_layer_kind)kind, offset);
        if (bytes > most) most = bytes;
    }
    return most;
}
