/* build.h: which code this is: rows of other code may differ from ours, and no sweep goes on with them. */
#ifndef PC_RESULTS_BUILD_H
#define PC_RESULTS_BUILD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A hash of all sources that decide a result (build_hash.py), not of the version or the commit. */
uint64_t pc_build_hash(void);

enum { PC_BUILD_TEXT_SIZE = 17 };

/* As 16 hexadecimal digits. */
void pc_build_text(char text[PC_BUILD_TEXT_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
