#include "engine/version.h"

/* pipecast.h has it, too. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const char *
pc_version(void) {
    return PC_VERSION;
}
