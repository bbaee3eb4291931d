/* loaded_library.h: shared libraries that are opened at run time: cuBLASLt, NCCL, NVML.
 *
 * So the command starts fast and runs everywhere; what is missing is one clear line, and only where it is needed.
 */
#ifndef PC_KERNELS_CUDA_LOADED_LIBRARY_H
#define PC_KERNELS_CUDA_LOADED_LIBRARY_H

#include "engine/error.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function of the library and where its address goes: `to` points to a pointer to a function of the type that the
 * library's own header gives (`__typeof__(f) *member`). An optional one that is not there becomes NULL. */
typedef struct pc_shared_library_entry {
    const char *name;
    void *to;
    bool is_optional;
} pc_shared_library_entry;

/* Opens the first of `names` (a list that NULL ends) that the machine has, and looks up all entries. `title` and
 * `expected` make the message, PC_ERROR_IO: "cuBLASLt: libcublasLt.so.13: cannot open ...; expected ...". */
pc_code pc_shared_library_open(const char *title, const char *expected, const char *const *names,
                               const pc_shared_library_entry *entries, int count, void **library, pc_error *error);
void pc_shared_library_close(void *library); /* NULL is fine; none of its functions may be called from here on */

#ifdef __cplusplus
}
#endif
#endif
