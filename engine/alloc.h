/* alloc.h: the one door to the allocator, so that a test can refuse any single allocation.
 *
 * All memory of the library comes from here and goes back through pc_free. Thread-safe.
 */
#ifndef PC_ENGINE_ALLOC_H
#define PC_ENGINE_ALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `count` elements of `size` bytes, zeroed; NULL if memory is short or count * size overflows. A count of zero
 * gives a pointer that may be freed and must not be read. */
void *pc_alloc(size_t count, size_t size);

/* As realloc for `count` elements of `size` bytes; new memory is not zeroed; on NULL the old block stands. */
void *pc_realloc(void *block, size_t count, size_t size);

/* `count` elements at an address that is a multiple of `alignment` (a power of two), not zeroed. */
void *pc_alloc_aligned(size_t alignment, size_t count, size_t size);

/* A copy of the string; NULL if memory is short. */
char *pc_strdup(const char *text);

/* Takes back what the functions above gave; NULL is fine. */
void pc_free(void *block);

/* For tests: the allocation after the next `after` ones on this thread fails, once; a negative number switches the
 * injection off. pc_alloc_count() says how many allocations this thread has asked for so far. */
void pc_alloc_fail_after(long after);
long pc_alloc_count(void);

#ifdef __cplusplus
}
#endif
#endif
