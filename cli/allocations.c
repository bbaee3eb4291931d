/* What HDF5 does not survive: the refusal of an allocation. Its own ways out (1.10) free twice, call what is not there,
 * or go round for ever when the process ends. So a refusal while it is at work ends the command here, as a fault of the
 * machine does: one line, exit status 3. What was there stands, since files are put in place whole, and so do finished
 * runs.
 *
 * The command is linked with --wrap for these four: all of it that is not the C library calls them, HDF5's archive too.
 */
#include "cli/allocations.h"

#include "cli/cli.h"
#include "storage/h5.h"

#include <string.h>
#include <unistd.h>

static bool is_starting = false;

static void *given(void *block) {
    static const char line[] = "pipecast: out of memory: HDF5 was refused an allocation\n";
    if (block || !(is_starting || pc_h5_is_at_work())) return block;
    if (write(STDERR_FILENO, line, sizeof line - 1) < 0) _exit(EXIT_MACHINE); /* nor is there anybody to tell */
    _exit(EXIT_MACHINE);
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker makes these names */

void *__wrap_malloc(size_t size) {
    return size ? given(__real_malloc(size)) : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size) {
    return count && size ? given(__real_calloc(count, size)) : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size) {
    return size ? given(__real_realloc(block, size)) : __real_realloc(block, size);
}

char *__wrap_strdup(const char *text) {
    return given(__real_strdup(text));
}

/* NOLINTEND(bugprone-reserved-identifier) */

/* What HDF5 tidies up when the process ends is closed by then, and doing it takes memory. */
__attribute__((constructor)) static void leave_the_end_alone(void) {
    is_starting = true;
    H5dont_atexit();
    is_starting = false;
}
