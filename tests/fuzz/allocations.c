/* What a target's input makes the library allocate: a block of more than ALLOCATION_MAX for a few kilobytes of text is
 * a count from the text that nobody has bounded. For targets that wrap pc_alloc and pc_realloc. */
#include "engine/alloc.h"
#include "tests/fuzz/fuzz.h"

#include <stdint.h>

enum { ALLOCATION_MAX = 16 << 20 }; /* bytes */

static void check_block(size_t count, size_t size) {
    fuzz_require(count == 0 || size <= ALLOCATION_MAX / count, "a short input does not ask for a large block");
}

void *__real_pc_alloc(size_t count, size_t size);
void *__wrap_pc_alloc(size_t count, size_t size);
void *__wrap_pc_alloc(size_t count, size_t size) {
    check_block(count, size);
    return __real_pc_alloc(count, size);
}

void *__real_pc_realloc(void *block, size_t count, size_t size);
void *__wrap_pc_realloc(void *block, size_t count, size_t size);
void *__wrap_pc_realloc(void *block, size_t count, size_t size) {
    check_block(count, size);
    return __real_pc_realloc(block, count, size);
}
