#include "models/workload/offload_check.h"

#include "engine/numbers.h"

#include <inttypes.h>
#include <math.h>

#define ROUNDING 1e-9 /* of a layer: 0.1 x 3 chunks of ten layers are three, and not a bit more */

/* ---- whole layers, copied within their passes ---- */

static bool recomputes_layers(const pc_cut *cut) {
    bool is_by_module = cut->recompute == PC_RECOMPUTE_SELECTIVE || cut->recompute == PC_RECOMPUTE_MODULES;
    return cut->recompute_of_part || (cut->recompute != PC_RECOMPUTE_NONE && !is_by_module);
}

/* As Megatron-LM, which refuses both (megatron/core/transformer/transformer_config.py). */
static pc_code check_layers(const pc_model *model, const pc_cut *cut, pc_error *error) {
    if (cut->offload_layers == 0) return PC_OK;
    if (cut->offload_layers < 0 || cut->offload_layers > model->layers)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "activation_offload_layers %" PRId64 " of %" PRId64 " layers; expected 0 to all of them",
                            cut->offload_layers, model->layers);
    bool recomputes = cut->recompute_of_part || cut->recompute != PC_RECOMPUTE_NONE;
    if (cut->pp == 1 && cut->chunks <= 1 && !recomputes) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "activation_offload_layers %" PRId64 " beside %s; expected neither pipeline nor recomputation "
                        "with it, or offload fine-grained",
                        cut->offload_layers, recomputes ? "recompute" : "pp or chunks over 1");
}

/* ---- kinds ---- */

static pc_code check_activations(const pc_cut *cut, pc_error *error) {
    int32_t kinds = cut->offload.kinds & PC_OFFLOAD_ACTIVATIONS;
    if (kinds & (kinds - 1))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "offload of activations in several ways; expected one of fine-grained, selective, full "
                            "and tensors");
    if (cut->offload_layers > 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "activation_offload_layers %" PRId64 " beside offload of activations; expected one of both",
                            cut->offload_layers);
    if (recomputes_layers(cut))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "offload of activations beside recompute of whole layers or by a policy, which leaves "
                            "little to offload; expected recompute none, selective or by modules");
    if (kinds == PC_OFFLOAD_FINE_GRAINED && cut->offload.modules == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "offload fine-grained without offload_modules; expected some, such as core_attn+attn_proj");
    return PC_OK;
}

static pc_code check_fraction(const pc_offload *offload, pc_error *error) {
    if (offload->fraction >= 0 && offload->fraction <= 1) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "offload_fraction %g; expected 0 to 1, of a device's chunks",
                        offload->fraction);
}

static pc_code check_state(const pc_cut *cut, pc_error *error) {
    double fraction = cut->offload.optimizer_fraction;
    if (!(fraction >= 0 && fraction <= 1))
        return pc_error_set(error, PC_ERROR_INPUT, "optimizer_offload_fraction %g; expected 0 to 1", fraction);
    if (!(cut->offload.kinds & PC_OFFLOAD_PARAMETERS)) return PC_OK;
    if (cut->zero != 3 || pc_cut_replicas(cut) < 2)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "offload parameters with zero %d and dp %d; expected zero 3 and dp over 1, whose shares go "
                            "to the host",
                            cut->zero, pc_cut_replicas(cut));
    return PC_OK;
}

pc_code pc_offload_check(const pc_model *model, const pc_cut *cut, pc_error *error) {
    pc_code code = check_layers(model, cut, error);
    if (!code && cut->offload.modules && !(cut->offload.kinds & PC_OFFLOAD_FINE_GRAINED))
        code = pc_error_set(error, PC_ERROR_INPUT,
                            "offload_modules without offload fine-grained, which they are for; expected both");
    if (!code && cut->offload.kinds & PC_OFFLOAD_ACTIVATIONS) code = check_activations(cut, error);
    if (!code && cut->offload.kinds & PC_OFFLOAD_SELECTIVE) code = check_fraction(&cut->offload, error);
    return !code && cut->offload.kinds & PC_OFFLOAD_STATE ? check_state(cut, error) : code;
}

/* ---- which layers ---- */

/* A device's first chunks are held longest, for F visits them first and the backward pass last. Of v chunks the first
 * v times the fraction go; where that ends within a chunk, so much of its layers, rounded up. */
int64_t pc_offloaded_layers(const pc_cut *cut, int parts, int part, int64_t layers) {
    int32_t kinds = cut->offload.kinds;
    if (cut->offload_layers > 0) return pc_min(cut->offload_layers, layers);
    if (kinds & (PC_OFFLOAD_FULL | PC_OFFLOAD_FINE_GRAINED | PC_OFFLOAD_TENSORS)) return layers;
    if (!(kinds & PC_OFFLOAD_SELECTIVE)) return 0;
    int chunks = pc_max(parts / cut->pp, 1), chunk = part / cut->pp;
    double of_chunk = cut->offload.fraction * chunks - chunk;
    return pc_min(layers, pc_max(0, (int64_t)ceil((double)layers * of_chunk - ROUNDING)));
}
