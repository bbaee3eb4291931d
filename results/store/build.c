#include "results/store/build.h"

#include "results/build_hash.h" /* made by build_hash.py */

#include <inttypes.h>
#include <stdio.h>

uint64_t pc_build_hash(void) {
    return PC_BUILD_HASH;
}

void pc_build_text(char text[PC_BUILD_TEXT_SIZE]) {
    snprintf(text, PC_BUILD_TEXT_SIZE, "%016" PRIx64, pc_build_hash());
}
