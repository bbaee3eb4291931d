/* The small things that stand once, in engine/: hashes, random streams, an index of keys, order, rounding. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "engine/hash.h"
#include "engine/index.h"
#include "engine/numbers.h"
#include "engine/order.h"
#include "engine/random.h"

#include <math.h>

/* XXH3's own: of no bytes it is 0x2d06800538d394c2 (xxHash 0.8, tests/sanity_test_vectors.h, length 0, seed 0). */
static void test_hash_is_xxh3(void **state) {
    (void)state;
    assert_true(pc_hash_bytes("", 0) == UINT64_C(0x2d06800538d394c2));
}

static pc_hash hash_words(const uint64_t *words, int count) {
    pc_hash hash = {1, 2};
    for (int i = 0; i < count; i++) pc_hash_add(&hash, words[i]);
    return hash;
}

/* Zeros count, so does the order, and what one hash began with. */
static void test_hash_of_words(void **state) {
    (void)state;
    static const uint64_t words[] = {0, 0, 7, 9, 0};
    pc_hash seen[] = {hash_words(words, 0),     hash_words(words, 1),     hash_words(words, 2),
                      hash_words(words + 2, 2), hash_words(words + 3, 2), hash_words(words + 2, 3)};
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        for (size_t k = 0; k < i; k++) assert_false(pc_hash_equal(seen[i], seen[k]));
    assert_true(pc_hash_equal(hash_words(words + 2, 2), seen[3]));
    pc_hash other = {2, 2};
    pc_hash_add(&other, 0);
    assert_false(pc_hash_equal(other, seen[1]));
}

static pc_hash hash_texts(const char *one, const char *other) {
    pc_hash hash = {0};
    pc_hash_add_bytes(&hash, one, strlen(one));
    pc_hash_add_bytes(&hash, other, strlen(other));
    return hash;
}

static void test_hash_of_bytes(void **state) {
    (void)state;
    assert_true(pc_hash_equal(hash_texts("ab", "c"), hash_texts("ab", "c")));
    assert_false(pc_hash_equal(hash_texts("ab", "c"), hash_texts("a", "bc")));
    assert_false(pc_hash_equal(hash_texts("ab", ""), hash_texts("", "ab")));
}

/* ---- random streams ---- */

/* Of the state 0, as the paper's own program makes them (Steele, Lea, Flood 2014;
 * https://prng.di.unimi.it/splitmix64.c). */
static void test_splitmix64(void **state) {
    (void)state;
    static const uint64_t wanted[] = {UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4),
                                      UINT64_C(0x06c45d188009454f)};
    uint64_t stream = 0;
    assert_true(pc_seed_of(0) == wanted[0]);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) assert_true(pc_splitmix64(&stream) == wanted[i]);
}

/* From the state 1: 1 ^ 1 << 25 is 0x2000001, that ^ it >> 27 is itself, and the product's bits follow. */
static void test_xorshift64star(void **state) {
    (void)state;
    uint64_t stream = 1;
    uint64_t first = pc_xorshift64star(&stream);
    assert_true(stream == 0x2000001);
    assert_true(first == UINT64_C(0x2000001) * UINT64_C(2685821657736338717));
}

static void test_unit_interval(void **state) {
    (void)state;
    assert_true(pc_unit_interval(0) == 0);
    assert_true(pc_unit_interval(UINT64_MAX) < 1);
    assert_true(pc_unit_interval(UINT64_C(1) << 63) == 0.5);
}

/* ---- an index ---- */

/* Even numbers are put in, in an order of their own, and each stands for how many came before it; again, it keeps what
 * it has; odd ones have none. */
static void test_index_finds_what_was_put_in(void **state) {
    (void)state;
    enum { COUNT = 5000, STEP = 1777 }; /* no common factor: every number comes once */
    pc_index index = {0};
    assert_int_equal(pc_index_find(&index, pc_index_key(0)), -1);
    for (int64_t i = 0; i < COUNT; i++) {
        uint64_t number = 2 * (uint64_t)(i * STEP % COUNT);
        assert_int_equal(pc_index_reserve(&index, i + 1, NULL), PC_OK);
        assert_int_equal(pc_index_add(&index, pc_index_key(number), i), i);
        assert_int_equal(pc_index_add(&index, pc_index_key(number), COUNT), i);
        assert_int_equal(index.count, i + 1);
    }
    for (int64_t i = 0; i < COUNT; i++) {
        uint64_t number = 2 * (uint64_t)(i * STEP % COUNT);
        assert_int_equal(pc_index_find(&index, pc_index_key(number)), i);
        assert_int_equal(pc_index_find(&index, pc_index_key(number + 1)), -1);
    }
    pc_index_free(&index);
}

/* Keys that want the same slot stand behind each other, round the end of the slots; both halves of a key count. */
static void test_index_of_keys_that_meet(void **state) {
    (void)state;
    pc_index index = {0};
    assert_int_equal(pc_index_reserve(&index, 40, NULL), PC_OK);
    uint64_t last = (uint64_t)index.slot_count - 1;
    for (uint64_t i = 0; i < 40; i++) pc_index_add(&index, (pc_hash){i, last}, (int64_t)i);
    for (uint64_t i = 0; i < 40; i++) assert_int_equal(pc_index_find(&index, (pc_hash){i, last}), i);
    assert_int_equal(pc_index_find(&index, (pc_hash){40, last}), -1);
    pc_index_free(&index);
}

/* Where memory is short the index stays as it was. */
static void test_index_without_memory(void **state) {
    (void)state;
    pc_index index = {0};
    assert_int_equal(pc_index_reserve(&index, 1, NULL), PC_OK);
    pc_index_add(&index, pc_index_key(5), 7);
    pc_alloc_fail_after(0);
    assert_int_equal(pc_index_reserve(&index, 1000, NULL), PC_ERROR_NO_MEMORY);
    pc_alloc_fail_after(-1);
    assert_int_equal(pc_index_find(&index, pc_index_key(5)), 7);
    pc_index_free(&index);
}

/* ---- order ---- */

/* Of 1, 2, 4 the place of p is 2 p: 0.25 lies half way from 1 to 2, 0.75 half way from 2 to 4. */
static void test_quantiles(void **state) {
    (void)state;
    double numbers[] = {4, 1, 2};
    static const double wanted[][2] = {{0, 1}, {0.25, 1.5}, {0.5, 2}, {0.75, 3}, {1, 4}};
    pc_sort_reals(numbers, 3);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_true(pc_quantile_at(numbers, 3, wanted[i][0]) == wanted[i][1]);
    assert_true(pc_quantile_at(numbers, 1, 0.9) == 1);
    pc_sort_reals(NULL, 0);
}

/* Differences of such numbers would not fit an int, nor an int64_t. */
static void test_comparisons(void **state) {
    (void)state;
    const int64_t integers[] = {INT64_MIN, -1, INT64_MAX};
    const double reals[] = {-1e300, 1e-300, INFINITY};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            assert_int_equal(pc_compare_integers(&integers[i], &integers[k]), (i > k) - (i < k));
            assert_int_equal(pc_compare_reals(&reals[i], &reals[k]), (i > k) - (i < k));
        }
}

/* ---- the smaller, the larger, rounding ---- */

/* In the type of the two: neither do large whole numbers become doubles, nor long ones int. */
static void test_smaller_and_larger(void **state) {
    (void)state;
    assert_int_equal(pc_min(-1, 2), -1);
    assert_true(pc_max(INT64_MAX - 1, INT64_MAX) == INT64_MAX && pc_min(INT64_MAX, INT64_MAX - 1) == INT64_MAX - 1);
    assert_true(pc_max(3, INT64_C(1) << 40) == INT64_C(1) << 40);
    assert_true(pc_max(sizeof(int), (size_t)9) == 9);
    assert_true(pc_min(0.5, 1) == 0.5);
    assert_true(pc_max((__int128)1 << 100, 1) == (__int128)1 << 100);
    int times = 0;
    assert_int_equal(pc_max(++times, 0), 1);
    assert_int_equal(times, 1);
}

/* Every a in -20 .. 20 by every b in 1 .. 6: b up is in a .. a + b - 1, b down in a - b + 1 .. a. */
static void test_rounding(void **state) {
    (void)state;
    for (int64_t a = -20; a <= 20; a++)
        for (int64_t b = 1; b <= 6; b++) {
            int64_t up = pc_divide_up(a, b) * b, down = pc_divide_down(a, b) * b;
            assert_true(up >= a && up < a + b && pc_round_up(a, b) == up);
            assert_true(down <= a && down > a - b);
        }
    assert_true(pc_divide_up(INT64_MAX, 2) == INT64_MAX / 2 + 1); /* adding b - 1 first would run over */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash_is_xxh3),
        cmocka_unit_test(test_hash_of_words),
        cmocka_unit_test(test_hash_of_bytes),
        cmocka_unit_test(test_splitmix64),
        cmocka_unit_test(test_xorshift64star),
        cmocka_unit_test(test_unit_interval),
        cmocka_unit_test(test_index_finds_what_was_put_in),
        cmocka_unit_test(test_index_of_keys_that_meet),
        cmocka_unit_test(test_index_without_memory),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_smaller_and_larger),
        cmocka_unit_test(test_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
