/* fake_nccl.h: a made-up libnccl, opened at run time as the real one is. Ranks are processes that share a file; each
 * call moves data at once, when all ranks have come. It refuses what the manual forbids, and what would never end.
 */
#ifndef PC_TESTS_FAKE_NCCL_H
#define PC_TESTS_FAKE_NCCL_H

#include <nccl.h>

typedef struct fake_nccl {
    int version;
    const char *fails; /* the next call of this name fails */
    int communicators; /* that are there */
    int destroyed, aborted;
    int depth; /* groups begun and not ended */
    int faults;
    char fault[128]; /* the first of them */
} fake_nccl;

fake_nccl *fake_nccl_now(void); /* of this process */

#endif
