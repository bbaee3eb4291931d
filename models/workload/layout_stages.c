#include "models/workload/layout_stages.h"

#include <inttypes.h>

/* The stages between those whose layers are given, and the layers for them. */
typedef struct middle {
    int64_t stages, layers;
} middle;

static middle middle_of(const pc_stage_layout *asked, int64_t layers, int devices) {
    return (middle){devices - (asked->first > 0) - (asked->last > 0), layers - asked->first - asked->last};
}

static pc_code check_middle(const pc_stage_layout *asked, int64_t layers, int devices, pc_error *error) {
    middle rest = middle_of(asked, layers, devices);
    bool has_no_stage = rest.stages <= 0 && (rest.stages < 0 || rest.layers != 0);
    bool fits = !has_no_stage && rest.layers >= 0 && (rest.stages == 0 || rest.layers % rest.stages == 0);
    if (fits) return PC_OK;
    if (has_no_stage || rest.layers < 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "first_stage_layers %" PRId64 " and last_stage_layers %" PRId64 " of %" PRId64
                            " layers on %d stages; expected all of them to have a stage, or layout auto without these",
                            asked->first, asked->last, layers, devices);
    int64_t over = rest.layers % rest.stages;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%" PRId64 " layers on the %" PRId64 " stages beside first_stage_layers and "
                        "last_stage_layers; expected a multiple of them: %s %" PRId64,
                        rest.layers, rest.stages, asked->last > 0 ? "last_stage_layers" : "first_stage_layers",
                        (asked->last > 0 ? asked->last : asked->first) + over);
}

static pc_code check_chunks(int64_t layers, int chunks, const char *where, pc_error *error) {
    if (layers % chunks == 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%" PRId64 " layers of %s over %d chunks; expected a multiple of them, or layout with a list",
                        layers, where, chunks);
}

static pc_code list_by_stage(const pc_stage_layout *asked, int64_t layers, pc_placement placement, int devices,
                             int chunks, int32_t *list, pc_error *error) {
    pc_code code = check_middle(asked, layers, devices, error);
    if (code) return code;
    middle rest = middle_of(asked, layers, devices);
    int64_t each = rest.stages > 0 ? rest.layers / rest.stages : 0;
    int in_stage = pc_placement_visited(placement, chunks) / pc_placement_slices(placement, chunks);
    if ((code = check_chunks(asked->first, in_stage, "the first stage", error))) return code;
    if ((code = check_chunks(asked->last, in_stage, "the last stage", error))) return code;
    if ((code = check_chunks(each, in_stage, "a stage", error))) return code;
    for (int part = 0; part < devices * in_stage; part++) {
        int stage = pc_placement_stage(placement, devices, part, 0);
        bool is_first = stage == 0 && asked->first > 0, is_last = stage == devices - 1 && asked->last > 0;
        list[part] = (int32_t)((is_first ? asked->first : is_last ? asked->last : each) / in_stage);
    }
    return PC_OK;
}

static pc_code list_with_ends(const pc_stage_layout *asked, int64_t layers, int parts, int32_t *list, pc_error *error) {
    int64_t all = layers + asked->counts_embedding + asked->counts_loss;
    if (all % parts != 0 || all < parts)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%" PRId64 " layers%s%s do not divide over %d parts of the model; expected a divisor of "
                            "%" PRId64 ", or layout with a list",
                            layers, asked->counts_embedding ? ", the embedding" : "",
                            asked->counts_loss ? ", the loss" : "", parts, all);
    for (int part = 0; part < parts; part++) list[part] = (int32_t)(all / parts);
    list[0] -= asked->counts_embedding;
    list[parts - 1] -= asked->counts_loss;
    if (list[0] >= 0 && list[parts - 1] >= 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "embedding and loss on one part of %" PRId64 " layers; expected more than one part", layers);
}

pc_code pc_stage_layout_list(const pc_stage_layout *asked, int64_t layers, pc_placement placement, int devices,
                             int chunks, int32_t *list, pc_error *error) {
    bool has_counts = asked->first > 0 || asked->last > 0;
    if (has_counts && (asked->counts_embedding || asked->counts_loss))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "first_stage_layers or last_stage_layers beside account_for_embedding_in_pipeline_split or "
                            "account_for_loss_in_pipeline_split; expected one or the other");
    if (has_counts) return list_by_stage(asked, layers, placement, devices, chunks, list, error);
    return list_with_ends(asked, layers, pc_placement_parts(placement, devices, chunks), list, error);
}
