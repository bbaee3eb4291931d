/* offload.h: what is on the host while the GPU does not need it: activations, optimizer state, parameters.
 *
 * FINE_GRAINED: of every layer the inputs of the named modules (Megatron-LM's --fine-grained-activation-offloading).
 * Their copies are part of the pass: it ends no earlier than they do, and two layers' are there at a time, at work and on their way.
 * SELECTIVE and FULL: whole layers, copied beside later passes ('PipeOffload', arXiv 2503.01328). FULL takes all
 * layers; SELECTIVE a fraction, those that are held longest: the first of a device's chunks, or of a part's layers
 * where it has one chunk.
 * TENSORS: beside later passes, too, tensor by tensor as much as the link carries in the time of the part's backward pass
 * (offload_choice.h), so that hardly anything waits.
 * OPTIMIZER: a fraction of master weights and moments, and their step, by the CPU (Megatron-LM's
 * --optimizer-cpu-offload; ZeRO-Offload, arXiv 2101.06840).
 * PARAMETERS: ZeRO 3's shares of parameters, gradients and state, as torch's CPUOffloadPolicy has them.
 */
#ifndef PC_MODELS_WORKLOAD_OFFLOAD_H
#define PC_MODELS_WORKLOAD_OFFLOAD_H

#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PC_OFFLOAD_FINE_GRAINED = 1,
    PC_OFFLOAD_SELECTIVE = 2,
    PC_OFFLOAD_FULL = 4,
    PC_OFFLOAD_OPTIMIZER = 8,
    PC_OFFLOAD_PARAMETERS = 16,
    PC_OFFLOAD_TENSORS = 32,
    PC_OFFLOAD_BESIDE_PASSES = PC_OFFLOAD_SELECTIVE | PC_OFFLOAD_FULL | PC_OFFLOAD_TENSORS,
    PC_OFFLOAD_ACTIVATIONS = PC_OFFLOAD_FINE_GRAINED | PC_OFFLOAD_BESIDE_PASSES,
    PC_OFFLOAD_STATE = PC_OFFLOAD_OPTIMIZER | PC_OFFLOAD_PARAMETERS
};

typedef struct pc_offload {
    int32_t kinds;             /* PC_OFFLOAD_*, one bit each; 0: none */
    int32_t modules;           /* FINE_GRAINED: 1 << pc_module of saved.h */
    double fraction;           /* SELECTIVE: of a device's chunks, 0 to 1 */
    double optimizer_fraction; /* OPTIMIZER: of the parameters that a rank steps, 0 to 1 */
    bool overlaps_copies;      /* OPTIMIZER: copies both ways and the CPU's step run side by side, tensor by tensor */
} pc_offload;

/* "none", or kinds joined by +: "fine-grained+optimizer". PC_ERROR_INPUT names the word that is none. */
pc_code pc_offload_parse(const char *text, int32_t *kinds, pc_error *error);

/* As it is parsed, kinds in the order above; `text` has PC_OFFLOAD_SIZE bytes. */
enum { PC_OFFLOAD_SIZE = 64 };
void pc_offload_write(int32_t kinds, char *text);

/* Megatron-LM's names, joined by +: "core_attn+attn_proj". */
pc_code pc_offload_modules_parse(const char *text, int32_t *modules, pc_error *error);

/* The part of a parameter's state that is on the host, 0 to 1. */
static inline double pc_offload_state_fraction(const pc_offload *offload) {
    if (offload->kinds & PC_OFFLOAD_PARAMETERS) return 1;
    return offload->kinds & PC_OFFLOAD_OPTIMIZER ? offload->optimizer_fraction : 0;
}

/* Whether activations are copied beside later passes. */
static inline bool pc_offload_is_beside_passes(const pc_offload *offload) {
    return offload->kinds & PC_OFFLOAD_BESIDE_PASSES;
}

#ifdef __cplusplus
}
#endif
#endif
