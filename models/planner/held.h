/* held.h: what a schedule's order holds on each stage at its fullest moments, counted in microbatches. Private to
 * models/planner/.
 *
 * The order of a schedule that does not search depends on p, m and v alone, so that one walk over it serves every model
 * and every cut. A stage's level is a sum of counts times bytes; which moment is the fullest depends on the bytes,
 * which are not negative: only moments are kept that no other one of the stage equals or exceeds in every count.
 */
#ifndef PC_MODELS_PLANNER_HELD_H
#define PC_MODELS_PLANNER_HELD_H

#include "engine/error.h"
#include "models/schedule/generate.h"

#include <stdbool.h>
#include <stdint.h>

/* Parts are of three sorts: with the embedding, with the head, and between (the only part: with the embedding). What F
 * left of one is there in three states: all; what waits for an R, or a B that recomputes; what B leaves for W. */
typedef enum plan_part_sort { SORT_FIRST, SORT_LAST, SORT_BETWEEN, SORTS } plan_part_sort;
typedef enum plan_held_state { HELD_WHOLE, HELD_KEPT, HELD_AFTER_B, HELD_STATES } plan_held_state;

static inline plan_part_sort plan_sort_of(int part, int parts) {
    return part == 0 ? SORT_FIRST : part == parts - 1 ? SORT_LAST : SORT_BETWEEN;
}

typedef struct plan_moment {
    int32_t count[SORTS][HELD_STATES];
} plan_moment;

typedef struct plan_held {
    const pc_generator *generator;
    int devices, chunks, slices;
    int64_t microbatches;
    bool recomputes_in_b;
    int64_t *offsets; /* [devices + 1]: a stage's moments; NULL if there are none to be had */
    plan_moment *moments;
} plan_held;

/* Those that were asked for, the last of each slot; one thread's. Zeroed is empty. */
enum { HELD_SLOTS = 512 };
typedef struct plan_held_store {
    plan_held slots[HELD_SLOTS];
} plan_held_store;
void plan_held_store_free(plan_held_store *store);

/* Of a schedule whose order is its own (pc_generator_has_making) and that pc_generator_check accepts; the store's.
 * `recomputes_in_b`: pc_costs's.
 */
pc_code plan_held_find(plan_held_store *store, const pc_generator *generator, int devices, int64_t microbatches,
                       int chunks, int slices, bool recomputes_in_b, const plan_held **held, pc_error *error);

/* The most bytes over a stage's moments. bytes: of a part of each sort in each state. */
int64_t plan_held_most(const plan_held *held, int device, const int64_t bytes[SORTS][HELD_STATES]);

/* The most chunks of microbatches over a stage's moments whose F has begun and whose backward pass has not ended. */
int64_t plan_held_under_way(const plan_held *held, int device);

#endif
