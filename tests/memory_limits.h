/* memory_limits.h: memory limits of tests. */
#ifndef PC_TESTS_MEMORY_LIMITS_H
#define PC_TESTS_MEMORY_LIMITS_H

#include "models/schedule/memory_limit.h"

enum { TEST_LIMITED_MAX = 64 }; /* devices */

typedef struct test_limits {
    int64_t bytes[TEST_LIMITED_MAX];
} test_limits;

/* The same for all devices. */
static inline test_limits test_limit_all(int64_t bytes) {
    test_limits made;
    for (int d = 0; d < TEST_LIMITED_MAX; d++) made.bytes[d] = bytes;
    return made;
}

/* As requests take it; of what must outlive the result. */
static inline pc_memory_limit test_limit(const test_limits *limits) {
    return (pc_memory_limit){limits->bytes};
}

#endif
