/* activation_memory.h: how many layers each part of a model holds, and what a forward pass keeps for the backward one.
 */
#ifndef PC_MODELS_WORKLOAD_ACTIVATION_MEMORY_H
#define PC_MODELS_WORKLOAD_ACTIVATION_MEMORY_H

#include "engine/error.h"
#include "engine/marks.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A transformer's dimensions, as far as its activation memory depends on them; 16-bit numbers, no dropout skipped, the
 * attention matrix materialised, no recomputation, no tensor parallelism. */
typedef struct pc_shape {
    int64_t layers;
    int64_t hidden;          /* h */
    int64_t heads;           /* a */
    int64_t seq_len;         /* s, tokens */
    int64_t microbatch_size; /* b, sequences */
} pc_shape;

/* EVEN: every part has layers / parts. ENDS: embedding and head count as a layer each, so that the first and the last
 * part have one layer less than the others ('Zero Bubble', section 5.1, and 'Controllable Memory', section 4). */
typedef enum pc_layer_layout { PC_LAYERS_EVEN, PC_LAYERS_ENDS } pc_layer_layout;

/* Bytes that one layer keeps of one microbatch from F on: 34*s*b*h + 5*a*s^2*b (Korthikanti et al. 2022, arXiv
 * 2205.05198, equation 1). False, and *bytes untouched, where a number is not positive or the sum overflows. */
PC_MUST_USE bool pc_activation_bytes_per_layer(const pc_shape *shape, int64_t *bytes);

/* Of those, what the backward pass for the input frees: 5*a*s^2*b + 2*s*b*h; W, which needs the 32*s*b*h of its
 * matrices' inputs, frees the rest ('Zero Bubble', arXiv 2401.10241, table 1 and section 2.3). As above. */
PC_MUST_USE bool pc_activation_b_bytes_per_layer(const pc_shape *shape, int64_t *bytes);

/* Of those, what is left where the whole layer is recomputed: its input, 2*s*b*h (Korthikanti et al. 2022, table 2). As
 * above. */
PC_MUST_USE bool pc_activation_input_bytes_per_layer(const pc_shape *shape, int64_t *bytes);

/* The same as a fraction, where nothing but a size is known: 2*s*b*h of the 34*s*b*h of a layer whose attention matrix
 * is never kept. */
#define PC_ACTIVATION_INPUT_FRACTION (2.0 / 34.0)

/* How many of `layers` part `part` of `parts` holds. PC_ERROR_INPUT if they do not divide as the layout asks. */
pc_code pc_layers_of_part(pc_layer_layout layout, int64_t layers, int64_t parts, int64_t part, int64_t *part_layers,
                          pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
