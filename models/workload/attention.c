#include "models/workload/attention.h"

#include "engine/numbers.h"

/* Mean of the squares over the mean, to whole tokens. */
static int64_t document_length(const pc_model *model, int64_t sequence) {
    int64_t mean = model->document_length, square = model->document_length_square;
    if (mean == 0) return sequence;
    int64_t length = square > 0 ? (square + mean / 2) / mean : mean;
    return pc_min(length, sequence);
}

/* Chunks of `size` tokens and what is left over, of which one may be shorter. */
static int64_t chunk_length(int64_t size, int64_t sequence) {
    if (size >= sequence) return sequence;
    int64_t rest = sequence % size;
    return ((sequence - rest) * size + rest * rest + sequence / 2) / sequence;
}

pc_sight pc_model_sight(const pc_model *model, int64_t sequence, bool is_local) {
    pc_sight sight = {.length = document_length(model, sequence)};
    if (!is_local) return sight;
    if (model->attention_chunk_size > 0)
        sight.length = pc_min(sight.length, chunk_length(model->attention_chunk_size, sequence));
    if (model->sliding_window > 0 && model->sliding_window < sight.length) sight.window = model->sliding_window;
    return sight;
}

int64_t pc_model_local_layers(const pc_model *model, int64_t first, int64_t count) {
    int64_t every = model->sliding_window_pattern;
    if (model->sliding_window == 0 && model->attention_chunk_size == 0) return 0;
    return every > 0 ? count - ((first + count) / every - first / every) : count;
}

bool pc_model_is_mixed(const pc_model *model, int64_t sequence) {
    pc_sight local = pc_model_sight(model, sequence, true), full = pc_model_sight(model, sequence, false);
    return local.length != full.length || local.window != full.window;
}
