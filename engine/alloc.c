#define _DEFAULT_SOURCE /* madvise */
#include "engine/alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static _Thread_local long allocations_left = -1; /* negative: no failure is wanted */
static _Thread_local long allocations_asked = 0;

static bool must_fail(void) {
    allocations_asked++;
    if (allocations_left < 0) return false;
    return allocations_left-- == 0;
}

static bool overflows(size_t count, size_t size) {
    return size != 0 && count > SIZE_MAX / 2 / size;
}

/* Blocks that are larger than the processor's caches, and touched here and there, take a miss in its address tables
 * with nearly every miss in the cache. Large pages save the first. Advice only: where there are none, nothing is lost.
 */
static void *advise(void *block, size_t bytes) {
    enum { LARGE = 8 << 20 };
#ifdef MADV_HUGEPAGE
    if (block && bytes >= LARGE) {
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t first = ((uintptr_t)block + page - 1) / page * page, end = ((uintptr_t)block + bytes) / page * page;
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
    }
#endif
    return block;
}

void *pc_alloc(size_t count, size_t size) {
    if (must_fail() || overflows(count, size)) return NULL;
    return calloc(count ? count : 1, size ? size : 1);
}

void *pc_realloc(void *block, size_t count, size_t size) {
    if (must_fail() || overflows(count, size)) return NULL;
    size_t bytes = count * size;
    return advise(realloc(block, bytes ? bytes : 1), bytes);
}

void *pc_alloc_aligned(size_t alignment, size_t count, size_t size) {
    if (must_fail() || overflows(count, size)) return NULL;
    size_t bytes = (count * size + alignment - 1) / alignment * alignment;
    return advise(aligned_alloc(alignment, bytes ? bytes : alignment), bytes);
}

char *pc_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = pc_realloc(NULL, bytes, 1);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

void pc_free(void *block) {
    free(block);
}

void pc_alloc_fail_after(long after) {
    allocations_left = after;
}

long pc_alloc_count(void) {
    return allocations_asked;
}
