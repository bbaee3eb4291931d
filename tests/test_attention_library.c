/* Somebody else's attention in a shared library (attention_shim.c): chosen where it is right and faster, and nowhere
 * else. Which is faster, a fake clock says. */
#include "tests/support.h"

#include "kernels/attention.h"
#include "kernels/attention_library.h"
#include "kernels/families.h"
#include "kernels/kernel_check.h"
#include "tests/emulated/emulated.h"

/* ---- a device with a library ---- */

/* Seconds of our own kernel and of the library's; who is timed is told by launches, as the library makes none. */
typedef struct race {
    pc_device *device;
    double own_s, other_s;
    int64_t launches;
} race;

static double race_seconds(void *self, int repeats) {
    race *r = self;
    int64_t before = r->launches;
    r->launches = pc_emulated_launches(r->device);
    return repeats * (r->launches > before ? r->own_s : r->other_s);
}

static pc_device *open_device(const char *kind, race *r) {
    setenv("PC_TEST_SHIM", kind, 1);
    assert_int_equal(pc_device_open(0, &r->device, NULL), PC_OK);
    pc_error error = {0};
    if (pc_attention_library_open(r->device, getenv("PC_TEST_SHIM_FILE"), &error)) fail_msg("%s", error.message);
    pc_emulated_set_clock(r->device, (pc_emulated_clock){.seconds = race_seconds, .self = r});
    return r->device;
}

static void close_device(pc_device *device) {
    pc_attention_library_close(device);
    assert_string_equal(pc_device_about(device)->attention, "");
    pc_device_close(device);
}

static const pc_kernel_shape causal = {
    .dtype = PC_FP16, .batch = 1, .m = 9, .n = 11, .k = 16, .heads = 2, .kv_heads = 1, .is_causal = true};

/* Checks the family (which prepares it), and gives the name of what ran. */
static const char *who_runs(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape) {
    static pc_kernel_attributes made;
    pc_kernel_check check;
    pc_error error = {0};
    if (pc_kernel_check_run(device, family, shape, 3, &check, &error)) fail_msg("%s", error.message);
    if (!check.is_right) fail_msg("%s", check.message);
    assert_int_equal(family->attributes(device, shape, &made, NULL), PC_OK);
    return made.kernel;
}

/* ---- what is chosen ---- */

static void test_faster(void **state) {
    (void)state;
    race r = {.own_s = 2, .other_s = 1};
    pc_device *device = open_device("", &r);
    assert_string_equal(pc_device_about(device)->attention, "formula 1.0");
    assert_string_equal(who_runs(device, &pc_family_attention_forward, &causal), "formula 1.0");
    assert_string_equal(who_runs(device, &pc_family_attention_backward, &causal), "formula 1.0");
    assert_string_equal(pc_attention_library_fault(device), "");
    pc_kernel_attributes made; /* of a shape that was never prepared */
    pc_kernel_shape other = causal;
    other.m = 10;
    assert_int_equal(pc_family_attention_forward.attributes(device, &other, &made, NULL), PC_OK);
    assert_string_equal(made.kernel, "pc_attention_forward<fp16,32>");
    close_device(device);
}

static void test_slower(void **state) {
    (void)state;
    race r = {.own_s = 1, .other_s = 2};
    pc_device *device = open_device("", &r);
    assert_string_equal(who_runs(device, &pc_family_attention_forward, &causal), "pc_attention_forward<fp16,32>");
    assert_string_equal(who_runs(device, &pc_family_attention_backward, &causal), "pc_attention_backward<fp16,32>");
    assert_string_equal(pc_attention_library_fault(device), "");
    close_device(device);
}

/* Of some shapes only: that is no fault. */
static void test_incapable(void **state) {
    (void)state;
    race r = {.own_s = 2, .other_s = 1};
    pc_device *device = open_device("incapable", &r);
    pc_kernel_shape full = causal;
    full.is_causal = false;
    assert_string_equal(who_runs(device, &pc_family_attention_forward, &causal), "pc_attention_forward<fp16,32>");
    assert_string_equal(who_runs(device, &pc_family_attention_forward, &full), "formula 1.0");
    assert_string_equal(pc_attention_library_fault(device), "");
    close_device(device);
}

/* Refused for one family's sake it runs nothing any more, what it was chosen for before included. */
static void check_refused(const char *kind, const char *words) {
    race r = {.own_s = 2, .other_s = 1};
    pc_device *device = open_device("", &r);
    assert_string_equal(who_runs(device, &pc_family_attention_forward, &causal), "formula 1.0");
    setenv("PC_TEST_SHIM", kind, 1);
    assert_string_equal(who_runs(device, &pc_family_attention_backward, &causal), "pc_attention_backward<fp16,32>");
    const char *fault = pc_attention_library_fault(device);
    if (!strstr(fault, words)) fail_msg("\"%s\"; expected \"%s\" in it", fault, words);
    assert_string_equal(who_runs(device, &pc_family_attention_forward, &causal), "pc_attention_forward<fp16,32>");
    close_device(device);
}

static void test_refused(void **state) {
    (void)state;
    /* 9 queries of 2 heads of 16: the element in the middle is number 144. */
    check_refused("wrong", "formula 1.0, attention_backward: query_gradient[144] is ");
    check_refused("silent", "formula 1.0, attention_backward: query_gradient[0] is nan; expected ");
    check_refused("failing", "formula 1.0, attention_backward: it returned 7; expected 0, or 1 where it cannot");
}

/* ---- what cannot be opened ---- */

static void check_closed(pc_device *device, const char *path, const char *words) {
    pc_error error = {0};
    assert_int_equal(pc_attention_library_open(device, path, &error), PC_ERROR_IO);
    if (!strstr(error.message, words)) fail_msg("\"%s\"; expected \"%s\" in it", error.message, words);
    assert_string_equal(pc_device_about(device)->attention, "");
    assert_string_equal(pc_attention_library_fault(device), "");
}

static void test_opening(void **state) {
    (void)state;
    pc_device *device;
    assert_int_equal(pc_device_open(0, &device, NULL), PC_OK);
    check_closed(device, "./no-such-library.so", "attention library: ./no-such-library.so: cannot open");
    check_closed(device, "libm.so.6", "the library has no pc_attention_shim_version");
    setenv("PC_TEST_SHIM", "foreign", 1);
    check_closed(device, getenv("PC_TEST_SHIM_FILE"), "version 2 of its functions; expected 1");
    pc_attention_library_close(device);
    pc_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faster),  cmocka_unit_test(test_slower),  cmocka_unit_test(test_incapable),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
