/* outline_memo.h: what many outlines of one model on one machine have in common, worked out once. Private to models/.
 *
 * A search makes hundreds of thousands of outlines, of few different parts on few different layouts of ranks. A memo
 * holds what was worked out last, in a table of fixed size; what it gives is what would be worked out again, to the
 * bit.
 */
#ifndef PC_MODELS_TRAINING_OUTLINE_MEMO_H
#define PC_MODELS_TRAINING_OUTLINE_MEMO_H

#include "models/training/outline.h"

/* How groups and neighbouring stages lie for one order and one cut. */
typedef struct pc_outline_places {
    pc_rank_order order;
    int tp, pp, dp, cp; /* 0: empty */
    pc_group group[PC_AXES];
    int exchange; /* of context parallelism; the rest is not set where it has one rank */
    pc_group cp_groups[PC_GROUPS], replicas;
    pc_hop cp_hop;
    int ep, etp; /* 0: experts are not folded */
    pc_expert_places experts;
    pc_hop *hop; /* [pp]: from every stage to the next; owned */
} pc_outline_places;

/* All that the cost of a part depends on where model, machine and cost model are given, as numbers; what is over is 0.
 */
enum { PC_OUTLINE_KEY_NUMBERS = 144 };
typedef struct pc_outline_part_key {
    int64_t number[PC_OUTLINE_KEY_NUMBERS];
} pc_outline_part_key;

/* What the load of experts depends on, in a model, as numbers: of what it is, and how tokens are spread. */
typedef struct pc_outline_load {
    int64_t number[6];
    pc_known_load load; /* without tokens: empty */
} pc_outline_load;

/* One thread's, and for specs of one model, one machine and one cost model. */
enum { PC_OUTLINE_MEMO_PARTS = 4096, PC_OUTLINE_MEMO_PLACES = 64, PC_OUTLINE_MEMO_LOADS = 256 };
struct pc_outline_memo {
    struct {
        bool is_known;
        pc_outline_part_key key;
        pc_part_cost cost;
    } * parts; /* [PC_OUTLINE_MEMO_PARTS]; owned */
    pc_outline_places places[PC_OUTLINE_MEMO_PLACES];
    pc_outline_load loads[PC_OUTLINE_MEMO_LOADS];
    bool is_for_what_fits; /* whether layers that fit nowhere may lie anywhere, and what takes a search stays open
                            * (outline_fit.h) */
};

pc_code pc_outline_memo_create(pc_outline_memo **memo, pc_error *error);
void pc_outline_memo_free(pc_outline_memo *memo); /* NULL is fine */

/* Fills in what places have of context parallelism, of an outline whose spec, cut and ranks are there. */
void pc_outline_place_context(const pc_outline *outline, pc_outline_places *places);

/* The places of an outline whose spec, cut and ranks are there; the memo's, until the next call. */
pc_code pc_outline_memo_find_places(pc_outline_memo *memo, const pc_outline *outline, const pc_outline_places **places,
                                    pc_error *error);

/* Makes the cut of such an outline know its experts' load, which parts ask for again and again; with a memo or
 * without. */
void pc_outline_know_load(pc_outline *outline);

/* Whether parts of the same layers cost the same in two outlines with one model, machine and cost model. */
bool pc_outline_memo_has_same_parts(const pc_outline *a, const pc_outline *b);

/* As pc_part_cost_make of an outline that has a memo. */
pc_code pc_outline_memo_find_part(const pc_outline *outline, pc_part_cost *cost, pc_error *error);

#endif
