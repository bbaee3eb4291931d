/* layout.h: how many of a model's layers each of its parts has: the layouts that have a name, and lists of layers, as
 * numbers ("15,16,16,15") or in Megatron-LM's notation ("Et*15|(t*16|)*2t*15L", --pipeline-model-parallel-layout).
 */
#ifndef PC_MODELS_WORKLOAD_LAYOUT_H
#define PC_MODELS_WORKLOAD_LAYOUT_H

#include "engine/error.h"
#include "models/workload/cut.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a layout as text, with the terminating zero. */
enum { PC_LAYOUT_SIZE = 256 };

/* Whether a named layout can have `layers` over `parts` parts; LISTED: no. */
bool pc_layout_divides(pc_cut_layout layout, int64_t layers, int parts);

/* What counts if nobody says: the first of EVEN, ENDS and OWN that divides; EVEN if none does. */
pc_cut_layout pc_layout_auto(int64_t layers, int parts);

/* "even", "ends", "own", "listed", "balanced", "balanced-memory". */
const char *pc_layout_name(pc_cut_layout layout);

/* What a list says beside the layers of each part. */
typedef struct pc_layout_shape {
    int parts;
    int16_t mtp_layers; /* of multi-token prediction; 0: it does not say */
    int16_t mtp_ahead;  /* parts behind theirs */
} pc_layout_shape;

/* The layers of every part, without those of multi-token prediction, from a list of either kind. `layers` has room for
 * PC_PARTS_MAX; NULL where they are only counted. Megatron's notation as its parser reads it
 * (megatron/core/transformer/ pipeline_parallel_layer_layout.py): E the embedding, t a layer, m one of multi-token
 * prediction, L head and loss, | between two parts, x*n and (...)*n for n of them, commas without a meaning; groups do
 * not nest. E stands first and L last; all m are in one part, and behind them no t. PC_ERROR_INPUT, with the place of
 * what is wrong, for anything else. */
pc_code pc_layout_parse(const char *text, int32_t *layers, pc_layout_shape *shape, pc_error *error);

/* The way back, in the shorter of both kinds, or in Megatron's where the list says m; "listed" if it does not fit into
 * `text`, which has PC_LAYOUT_SIZE bytes. */
void pc_layout_write(const int32_t *layers, const pc_layout_shape *shape, char *text);

/* What to say to someone whose layers do not divide: "--layout ends", or "pp 5 or 13, or a list such as --layout
 * 2,3,3,2": the named layouts that divide; else the nearest numbers of stages with which one does, and
 * a list that does. At least PC_LAYOUT_REMEDY_SIZE bytes; cut to them. */
enum { PC_LAYOUT_REMEDY_SIZE = 192 };
void pc_layout_remedy(int64_t layers, const pc_cut *cut, int parts, char *text);

#ifdef __cplusplus
}
#endif
#endif
