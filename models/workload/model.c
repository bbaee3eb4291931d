#include "models/workload/model.h"

#include "engine/numbers.h"
#include "models/workload/experts_check.h"

#include <inttypes.h>
#include <stddef.h>

/* ---- what cannot be ---- */

static pc_code check_sizes(const pc_model *model, pc_error *error) {
    const struct {
        const char *key;
        int64_t size;
    } sizes[] = {{"layers", model->layers},         {"hidden", model->hidden},
                 {"ffn_hidden", model->ffn_hidden}, {"heads", model->heads},
                 {"kv_heads", model->kv_heads},     {"head_dim", model->head_dim},
                 {"vocab", model->vocab},           {"vocab_multiple", model->vocab_multiple}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].size < 1 || sizes[i].size > INT32_MAX)
            return pc_error_set(error, PC_ERROR_INPUT, "%s is %" PRId64 "; expected 1 to %d", sizes[i].key,
                                sizes[i].size, INT32_MAX);
    return PC_OK;
}

static pc_code check_sight_sizes(const pc_model *model, pc_error *error) {
    const struct {
        const char *key;
        int64_t size;
    } sizes[] = {{"sliding_window", model->sliding_window},
                 {"attention_chunk_size", model->attention_chunk_size},
                 {"sliding_window_pattern", model->sliding_window_pattern},
                 {"document_length", model->document_length}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i].size < 0 || sizes[i].size > INT32_MAX)
            return pc_error_set(error, PC_ERROR_INPUT, "%s is %" PRId64 "; expected 0 to %d", sizes[i].key,
                                sizes[i].size, INT32_MAX);
    return PC_OK;
}

static pc_code check_documents(const pc_model *model, pc_error *error) {
    int64_t mean = model->document_length, square = model->document_length_square;
    if (square == 0) return PC_OK;
    if (mean == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "document_length_square is %" PRId64 " without document_length; expected the mean, too",
                            square);
    if (square >= mean * mean) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "document_length_square is %" PRId64 " with document_length %" PRId64
                        "; expected at least %" PRId64 ", the mean's square",
                        square, mean, mean * mean);
}

/* Which keys a query sees. */
static pc_code check_sight(const pc_model *model, pc_error *error) {
    pc_code code = check_sight_sizes(model, error);
    if (code) return code;
    if (model->sliding_window > 0 && model->attention_chunk_size > 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "sliding_window %" PRId64 " beside attention_chunk_size %" PRId64 "; expected one of them",
                            model->sliding_window, model->attention_chunk_size);
    if (model->sliding_window_pattern > 0 && model->sliding_window == 0 && model->attention_chunk_size == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "sliding_window_pattern is %" PRId64
                            " without a window; expected sliding_window or attention_chunk_size, too",
                            model->sliding_window_pattern);
    return check_documents(model, error);
}

pc_code pc_model_check_dimensions(const pc_model *model, pc_error *error) {
    pc_code code = check_sizes(model, error);
    if (code) return code;
    if (model->heads * model->head_dim > INT32_MAX)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "heads * head_dim is %" PRId64 " * %" PRId64 "; expected a product up to %d", model->heads,
                            model->head_dim, INT32_MAX);
    if (model->heads % model->kv_heads != 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "kv_heads %" PRId64 " do not divide %" PRId64 " heads; expected a divisor", model->kv_heads,
                            model->heads);
    if (model->max_positions < 0 || model->max_positions > INT32_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "max_positions is %" PRId64 "; expected 0 to %d",
                            model->max_positions, INT32_MAX);
    if (model->positions == PC_POSITIONS_LEARNED && model->max_positions == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "positions are learned and max_positions is 0; expected the rows of their table");
    if (model->mtp_layers < 0 || model->mtp_layers > INT16_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "mtp_num_layers is %" PRId64 "; expected 0 to %d", model->mtp_layers,
                            INT16_MAX);
    code = pc_experts_check(&model->experts, error);
    if (!code) code = pc_mla_check(model, error);
    return code ? code : check_sight(model, error);
}

pc_code pc_model_check(const pc_model *model, pc_error *error) {
    pc_code code = pc_model_check_dimensions(model, error);
    if (code) pc_error_prefix(error, "model");
    return code;
}

/* ---- parameters ---- */

int64_t pc_model_padded_vocab(const pc_model *model, int tp) {
    int64_t multiple = model->vocab_multiple * tp;
    return pc_round_up(model->vocab, multiple);
}

int64_t pc_model_norm_parameters(const pc_model *model) {
    bool has_shift = model->norm == PC_NORM_LAYER && (model->has_bias || model->has_norm_bias);
    if (model->norm == PC_NORM_LAYER_NO_AFFINE) return 0;
    return has_shift ? 2 * model->hidden : model->hidden;
}

int64_t pc_model_qk_norm_parameters(const pc_model *model) {
    switch (model->qk_norm) {
    case PC_QK_NORM_HEAD:
        return 2 * model->head_dim;
    case PC_QK_NORM_FULL:
        return (model->heads + model->kv_heads) * model->head_dim;
    default:
        return 0;
    }
}
