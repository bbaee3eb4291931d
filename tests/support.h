/* support.h: what the tests share: cmocka with what it needs, random numbers, places. */
#ifndef PC_TESTS_SUPPORT_H
#define PC_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/random.h"

#define MS INT64_C(1000000000) /* picoseconds */

/* Seeds tests; the same numbers everywhere. */
typedef struct test_random {
    uint64_t state;
} test_random;

static inline uint64_t test_draw(test_random *random) {
    return pc_splitmix64(&random->state);
}

/* Evenly from 0 to below 1. */
static inline double test_draw_unit(test_random *random) {
    return pc_unit_interval(test_draw(random));
}

/* A whole number from least to most. */
static inline int64_t test_between(test_random *random, int64_t least, int64_t most) {
    return least + (int64_t)(test_draw(random) % (uint64_t)(most - least + 1));
}

/* A template for mkstemp and mkdtemp: in TMPDIR, or in /tmp where that is not set or too long. */
static inline void test_temporary(char *path, size_t size, const char *name) {
    const char *folder = getenv("TMPDIR");
    if (!folder || strlen(folder) + strlen(name) + sizeof "/-XXXXXX" > size) folder = "/tmp";
    snprintf(path, size, "%s/%s-XXXXXX", folder, name);
}

/* How many cases a property test tries: `usual`, or PC_TEST_CASES where that is set (the slow suite sets it), and
 * PC_TEST_MOST at most (under valgrind). */
static inline long test_cases(long usual) {
    const char *wanted = getenv("PC_TEST_CASES"), *most = getenv("PC_TEST_MOST");
    long cases = wanted ? atol(wanted) : usual;
    return most && cases > atol(most) ? atol(most) : cases;
}

/* `whole`, or `part` of it where PC_TEST_PART is set: the quick suites take a part of what takes long. */
static inline long test_part(long whole, long part) {
    return getenv("PC_TEST_PART") ? part : whole;
}

/* Says that `count` things called `key` ("programs compared") were done, for docs/reliability.md: a line appended to
 * the file that PC_COUNTS names; nothing where it is not set, nor of a part, for the whole comes too. */
static inline void test_count(const char *key, long count) {
    const char *path = getenv("PC_COUNTS");
    FILE *file = path && !test_part(0, 1) ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s\t%ld\n", key, count);
    fclose(file);
}

#endif
