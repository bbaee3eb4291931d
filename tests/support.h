/* support.h: what the tests share: cmocka with what it needs, random numbers, places. */
#ifndef PC_TESTS_SUPPORT_H
#define PC_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

/* How large a run is: PC_TEST_SIZE, which the set-ups of tests/meson.build give. `quick` (also where it is not set),
 * `full`, or `long` (by hand: full, with ten times the random cases). A number behind it, as in `quick:100`, is the most
 * random cases that a test draws where a tool makes it slow. */
static inline int test_size_is(const char *name) {
    const char *size = getenv("PC_TEST_SIZE");
    return strncmp(size ? size : "quick", name, strlen(name)) == 0;
}

/* What a quick run takes, or a full one. */
static inline long test_part(long quick, long full) {
    return test_size_is("quick") ? quick : full;
}

/* How many random cases a property test draws. */
static inline long test_cases(long quick, long full) {
    const char *size = getenv("PC_TEST_SIZE"), *most = size ? strchr(size, ':') : NULL;
    long cases = test_size_is("long") ? 10 * full : test_part(quick, full);
    return most && cases > atol(most + 1) ? atol(most + 1) : cases;
}

/* Whether random cases held enough of a kind to judge the test itself by; where a tool makes tests draw few, any number
 * is enough. */
static inline bool test_saw(long count, long least) {
    const char *size = getenv("PC_TEST_SIZE");
    return count >= least || (size && strchr(size, ':'));
}

/* Says that `count` things called `key` ("programs compared") were done, for docs/reliability.md: a line appended to
 * the file that PC_COUNTS names; nothing where it is not set. */
static inline void test_count(const char *key, long count) {
    const char *path = getenv("PC_COUNTS");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s\t%ld\n", key, count);
    fclose(file);
}

#endif
