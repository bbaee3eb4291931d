#include "engine/version.h"

const char *pc_version(void) {
    return PC_VERSION;
}
