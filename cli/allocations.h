/* allocations.h: the names that the linker's --wrap gives to the command's allocations (allocations.c). */
#ifndef PC_CLI_ALLOCATIONS_H
#define PC_CLI_ALLOCATIONS_H

#include <stddef.h>

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names */

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names */

/* As their namesakes; but where HDF5 is at work and there is no memory, they do not come back. */
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);

/* The C library's. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
char *__real_strdup(const char *text);

/* NOLINTEND(bugprone-reserved-identifier) */

/* NOLINTEND(bugprone-reserved-identifier) */

#endif
