/* store_arrays.h: private to results/store_*.c: structs of arrays, each array a dataset (or a few, of the fields of its
 * elements), said once for writing and reading. */
#ifndef PC_RESULTS_STORE_ARRAYS_H
#define PC_RESULTS_STORE_ARRAYS_H

#include "results/store/store.h"
#include "storage/fields.h"

/* A field of an array's elements, which may be the elements themselves. */
typedef struct pc_store_array {
    pc_field field;
    size_t stride;  /* from element to element */
    int axis;       /* which of the lengths it has */
    size_t pointer; /* offset in the struct of the pointer to the elements */
} pc_store_array;

/* A list of them, and what they are of. */
typedef struct pc_store_arrays {
    const pc_store_array *list;
    int count;
    int64_t rows_max; /* of any axis; a file with more is refused */
} pc_store_arrays;

/* Writes the arrays of `owner`, `lengths[axis]` values each; an array that is NULL is empty. */
pc_code pc_store_arrays_write(hid_t group, const pc_store_arrays *arrays, const void *owner, const int64_t *lengths,
                              pc_error *error);

/* Reads them into `owner`, whose pointers are NULL, or what an earlier call made along the same axis. A length of -1
 * is what the first dataset of that axis has; the others must agree. What was made stays the owner's, also on failure.
 */
pc_code pc_store_arrays_read(hid_t group, const pc_store_arrays *arrays, void *owner, int64_t *lengths,
                             pc_error *error);

/* Lists them, each once, of an owner at this offset in a record; returns how many. */
int pc_store_arrays_list(const pc_store_arrays *arrays, size_t owner, const int64_t *lengths, bool may_lack,
                         pc_trace_array *found);

#endif
