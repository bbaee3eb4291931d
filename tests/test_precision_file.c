/* Files of precisions: what they say, what is refused of them, and GPUs without units for them. */
#include "tests/support.h"

#include "models/workload/low_precision.h"
#include "scenarios/library.h"
#include "scenarios/precision_file.h"

#include <unistd.h>

static pc_low_precision recipe(const char *name) {
    pc_precision_recipe made;
    pc_error error = {0};
    pc_place place = pc_place_of_user();
    if (pc_precision_file_read(name, &place, &made, NULL, &error)) fail_msg("%s", error.message);
    return made.low;
}

static void check_gpu(const char *name, const pc_gpu *gpu, const char *message) {
    const pc_low_precision low = recipe(name);
    pc_error error = {0};
    assert_int_equal(pc_precision_check_gpu(&low, gpu, &error), message ? PC_ERROR_INPUT : PC_OK);
    if (message) assert_string_equal(error.message, message);
}

static void test_gpus_without_units(void **state) {
    (void)state;
    const pc_gpu ampere = {.name = "ampere"}, hopper = {.name = "hopper", .matrix_fp8_flops_per_s = 1},
                 blackwell = {.name = "b", .matrix_fp8_flops_per_s = 1, .matrix_fp4_flops_per_s = 1};
    check_gpu("bf16", &ampere, NULL);
    check_gpu("fp16", &ampere, NULL);
    check_gpu("fp8-current", &ampere,
              "fp8-current: ampere has no units for fp8; expected bf16 or fp16, or a GPU whose file has matrix_fp8");
    check_gpu("fp8-deepseek", &hopper, NULL);
    check_gpu(
        "nvfp4", &hopper,
        "nvfp4: hopper has no units for nvfp4; expected fp8-delayed, fp8-current or fp8-blockwise, or a GPU whose "
        "file has matrix_fp4");
    check_gpu(
        "mxfp8", &hopper,
        "mxfp8: hopper has no units for mxfp8; expected fp8-delayed, fp8-current or fp8-blockwise, or a GPU whose "
        "file has matrix_fp4");
    check_gpu("nvfp4", &blackwell, NULL);
    check_gpu("mxfp8", &blackwell, NULL);
}

static void check_file(const char *text, const char *message) {
    char path[] = "/tmp/pipecast_precision_XXXXXX";
    int file = mkstemp(path);
    char named[64];
    pc_precision_recipe made;
    pc_error error = {0};
    pc_place place = pc_place_of_user();
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    snprintf(named, sizeof named, "%s", path);
    pc_code code = pc_precision_file_read(named, &place, &made, NULL, &error);
    unlink(path);
    assert_int_equal(code, message ? PC_ERROR_INPUT : PC_OK);
    if (message && !strstr(error.message, message)) fail_msg("%s: expected %s", error.message, message);
    if (!message) assert_int_equal(made.low.bf16_first, 2);
}

static void test_files(void **state) {
    (void)state;
    check_file("precision: mine\nfrom: fp8-current\nbf16_layers: {first: 2}\n", NULL);
    check_file("precision: mine\nmemory: fp16\nforward: fp8\n",
               ":3: forward: fp8 beside memory: fp16; expected memory: bf16, which has the range that is needed");
    check_file("precision: mine\nforward: fp8\nweight_gradient: mxfp8\n",
               ":3: weight_gradient: mxfp8 beside forward: fp8; expected the same, or bf16");
    check_file("precision: mine\nforward: fp16\n",
               ":2: forward: fp16 beside memory: bf16; expected bf16, or memory: fp16");
    check_file("precision: bf16\nforward: fp8\n",
               ":1: precision: bf16 beside forward: fp8; expected a name of the recipe's own");
    check_file("precision: mine\nforward: fp9\n", ":2: forward: fp9: unknown word (did you mean fp8");
    check_file("precision: mine\nforward: fp8\nhadamard: true\n",
               ":3: hadamard: true beside weight_gradient: bf16; expected a format of few bits, whose product it is");
    check_file("precision: mine\ncopies: 3\n", ":2: copies: 3: out of range");
    check_file("precision: ''\n", ":1: precision: no name; expected one line of 1 to 63 bytes");
    check_file("forward: fp8\n", "precision: missing");
    check_file("precision: mine\nfrom: nothing\n", ":2: from: nothing: no such precision in the library");
}

/* Every recipe of the library is read, and is named as its file. */
static void test_library(void **state) {
    (void)state;
    int count, low = 0;
    const pc_library_file *files = pc_library_files(PC_LIBRARY_PRECISIONS, &count);
    for (int i = 0; i < count; i++) {
        const pc_low_precision made = recipe(files[i].name);
        assert_string_equal(made.name, files[i].name);
        low += pc_low_precision_is_on(&made);
        if (pc_low_precision_is_on(&made)) assert_int_equal(made.copies, 2);
    }
    assert_int_equal(low, count - 2); /* bf16, fp16 */
    assert_int_equal(recipe("nvfp4").bf16_last, 0);
    assert_true(recipe("nvfp4").rotates && recipe("nvfp4").rounds_stochastically);
    assert_true(recipe("fp8-current").scaling == PC_SCALING_CURRENT && !recipe("fp8-current").fuses_norm);
    assert_true(recipe("fp8-deepseek").product[2] == PC_PRODUCT_FP8_BLOCK && recipe("fp8-deepseek").fuses_activation);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpus_without_units),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
