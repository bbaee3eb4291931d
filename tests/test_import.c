/* Others' measurements: what nccl-tests print and tables, taken whole or refused with file, line and cause. */
#include "calib/import/import.h"
#include "tests/folder.h"
#include "tests/refusals.h"

#include <math.h>

static void check_near(double found, double right, double tolerance) {
    if (!(fabs(found - right) <= tolerance)) fail_msg("%.17g; expected %.17g", found, right);
}

/* ---- files ---- */

static void write_file(const folder *at, const char *text, size_t size) {
    FILE *file = fopen(at->file, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

static pc_code import_text(const folder *at, const char *text, const pc_import_options *options, pc_profile *profile,
                           pc_error *error) {
    write_file(at, text, strlen(text));
    return pc_profile_import(profile, at->file, options, error);
}

static void import_well(const folder *at, const char *text, const pc_import_options *options, pc_profile *profile) {
    pc_error error = {0};
    *profile = (pc_profile){0};
    if (import_text(at, text, options, profile, &error)) fail_msg("%s", error.message);
}

/* Refused, with "FILE:line: " before words that hold `what`; the profile has what it had: one kernel. */
static void check_refused(const folder *at, const char *text, const pc_import_options *options, int line,
                          const char *what) {
    pc_error error = {0};
    pc_profile profile = {0};
    pc_kernel_measurement old = {.kernel = "copy", .bytes = 1};
    char place[192];
    assert_int_equal(pc_profile_add_kernel(&profile, &old, NULL, NULL), PC_OK);
    assert_int_equal(import_text(at, text, options, &profile, &error), PC_ERROR_INPUT);
    if (line > 0)
        snprintf(place, sizeof place, "%s:%d: ", at->file, line);
    else
        snprintf(place, sizeof place, "%s: ", at->file);
    if (strncmp(error.message, place, strlen(place)) != 0) fail_msg("'%s' does not begin '%s'", error.message, place);
    if (!strstr(error.message, what) || !strstr(error.message, "expected")) fail_msg("%s", error.message);
    assert_int_equal(profile.kernel_count, 1);
    assert_int_equal(profile.transfer_count, 0);
    assert_string_equal(profile.device.name, "");
    assert_string_equal(profile.device.origin, "");
    pc_profile_free(&profile);
}

/* ---- output of nccl-tests ---- */

#define HEADER                                                                                                         \
    "#\n"                                                                                                              \
    "#                                                    out-of-place                       in-place          \n"     \
    "#       size  count   type  redop  root   time   algbw   busbw #wrong   time   algbw   busbw #wrong\n"            \
    "#        (B)  (elements)                  (us)  (GB/s)  (GB/s)          (us)  (GB/s)  (GB/s)       \n"

/* Of 4 ranks: busbw is 1.5 times algbw. */
static const char all_reduce[] =
    "$ ./build/all_reduce_perf -b 1M -e 4M -f 2 -g 4\n"
    "# nThread 1 nGpus 4 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid   7001 on  node-one device  0 [0x07] Some GPU 80GB\n"
    "#  Rank  1 Group  0 Pid   7001 on  node-one device  1 [0x0f] Some GPU 80GB\n"
    "#  Rank  2 Group  0 Pid   7002 on  node-two device  0 [0x07] Some GPU 80GB\n"
    "#  Rank  3 Group  0 Pid   7002 on  node-two device  1 [0x0f] Some GPU 80GB\n" HEADER
    "node-one:7001:7001 [0] NCCL INFO a line of its log\n"
    "     1048576  262144  float    sum    -1  50.00   20.97   31.46      0  40.00   26.21   39.32    N/A\n"
    "\n"
    "     4194304 1048576  float    sum    -1  80.00   52.43   78.64      2  100.0   41.94   62.91      0\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 53.08\n"
    "#\n";

static void check_transfer(const pc_transfer_measurement *measured, const char *collective, int ranks, int nodes,
                           double size, double seconds, double factor, bool is_in_place, int64_t wrong) {
    assert_string_equal(measured->collective, collective);
    assert_int_equal(measured->ranks, ranks);
    assert_int_equal(measured->nodes, nodes);
    check_near(measured->size_bytes, size, 0.0);
    check_near(measured->seconds.median, seconds, 1e-12);
    assert_int_equal(measured->seconds.count, 1);
    check_near(measured->algbw, size / seconds, 1.0);
    check_near(measured->busbw, size / seconds * factor, 1.0);
    assert_int_equal(measured->is_in_place, is_in_place);
    assert_int_equal(measured->wrong, wrong);
    assert_int_equal(measured->first_sample, -1);
}

static void nccl_output_is_taken(void **state) {
    pc_profile p;
    import_well(*state, all_reduce, NULL, &p);
    assert_int_equal(p.transfer_count, 4);
    assert_int_equal(p.kernel_count, 0);
    check_transfer(&p.transfer[0], "all_reduce", 4, 2, 1048576.0, 50e-6, 1.5, false, 0);
    check_transfer(&p.transfer[1], "all_reduce", 4, 2, 1048576.0, 40e-6, 1.5, true, -1);
    check_transfer(&p.transfer[2], "all_reduce", 4, 2, 4194304.0, 80e-6, 1.5, false, 2);
    check_transfer(&p.transfer[3], "all_reduce", 4, 2, 4194304.0, 100e-6, 1.5, true, 0);
    assert_string_equal(p.transfer[0].link, "unknown");
    assert_string_equal(p.device.name, "Some GPU 80GB");
    assert_string_equal(p.device.origin, "input");
    pc_profile_free(&p);
}

/* Collectives without an operation or a root have 12 or 11 columns; neither program nor ranks are named. */
static void short_rows_and_options(void **state) {
    pc_profile p;
    pc_import_options options = {.collective = "alltoall", .link = "nvlink", .ranks = 8, .device = "Mine"};
    import_well(*state,
                HEADER "  1048576  262144  float  50.00  20.97  18.35  0  N/A  N/A  N/A  N/A\n"
                       "        0       0  float  10.00   0.00   0.00  0  9.0  0.00  0.00  0\n"
                       "     1024     256  float  none  10.00   0.10   0.09  0  20.0  0.05  0.04  0\n",
                &options, &p);
    assert_int_equal(p.transfer_count, 3);
    check_transfer(&p.transfer[0], "all_to_all", 8, 1, 1048576.0, 50e-6, 7.0 / 8.0, false, 0);
    check_transfer(&p.transfer[1], "all_to_all", 8, 1, 1024.0, 10e-6, 7.0 / 8.0, false, 0);
    check_transfer(&p.transfer[2], "all_to_all", 8, 1, 1024.0, 20e-6, 7.0 / 8.0, true, 0);
    assert_string_equal(p.transfer[0].link, "nvlink");
    assert_string_equal(p.device.name, "Mine");
    pc_profile_free(&p);
}

static void faulty_nccl_output(void **state) {
    const folder *at = *state;
    pc_import_options options = {.collective = "all_reduce", .ranks = 8};
    pc_import_options no_ranks = {.collective = "all_reduce"}, no_name = {.ranks = 8};
#define ROW "1048576 262144 float sum -1 50.00 20.97 36.70 0 40.00 26.21 45.88 0\n"
    check_refused(at, HEADER ROW, &no_ranks, 5, "ranks");
    check_refused(at, HEADER ROW, &no_name, 5, "which collective");
    check_refused(at, HEADER ROW "1048576 262144 float sum\n", &options, 6, "4 columns");
    check_refused(at, HEADER ROW "what is this\n", &options, 6, "3 columns");
    check_refused(at, HEADER "1048x76 262144 float sum -1 50.00 20.97 36.70 0 40.00 26.21 45.88 0\n", &options, 5,
                  "1048x76");
    check_refused(at, HEADER "1048576 262144 float sum -1 5O.00 20.97 36.70 0 40.00 26.21 45.88 0\n", &options, 5,
                  "5O.00");
    /* A rate of it would be infinite. */
    check_refused(at, HEADER "1048576 262144 float sum -1 81e-308 20.97 36.70 0 40.00 26.21 45.88 0\n", &options, 5,
                  "a time of");
    check_refused(at, HEADER "1048576 262144 float sum -1 0.00 20.97 36.70 0 40.00 26.21 45.88 0\n", &options, 5,
                  "a time of");
    check_refused(at, HEADER "1048576 262144 float sum -1 50.00 20.97 36.70 0 80.00 26.21 45.88 0\n", &options, 5,
                  "algbw");
    check_refused(at, HEADER "1048576 262144 float sum -1 50.00 inf 36.70 0 40.00 26.21 45.88 0\n", &options, 5, "inf");
    check_refused(at, HEADER "1048576 262144 float sum -1 50.00 20.97 36.70 1e99 40.00 26.21 45.88 0\n", &options, 5,
                  "1e99");
    check_refused(at, HEADER, &options, 0, "no measurement");
}

static void options_are_names_that_profiles_know(void **state) {
    static const struct {
        const char *given, *taken;
    } links[] = {{"NVLink", "nvlink"},     {"PCIe", "pcie"},       {"Network", "network"},
                 {"Loopback", "loopback"}, {"unknown", "unknown"}, {"InfiniBand NDR", "network"}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        pc_profile p;
        pc_import_options options = {.link = links[i].given, .collective = "All-Reduce", .ranks = 4};
        import_well(*state, HEADER ROW, &options, &p);
        assert_string_equal(p.transfer[0].link, links[i].taken);
        assert_string_equal(p.transfer[0].collective, "all_reduce");
        pc_profile_free(&p);
        import_well(*state, "size_bytes,time_us\n1000,10\n", &options, &p);
        assert_string_equal(p.transfer[0].link, links[i].taken);
        pc_profile_free(&p);
    }
    pc_error error;
    pc_profile p = {0};
    pc_import_options odd = {.collective = "gather"}, wire = {.link = "wire"}, none = {0};
    assert_int_equal(import_text(*state, HEADER ROW, &odd, &p, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "the collective 'gather' (did you mean all_gather?); expected send_recv"));
    assert_int_equal(import_text(*state, HEADER ROW, &wire, &p, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "the link 'wire'; expected nvlink"));
    assert_int_equal(pc_import_check_options(&none, &error), PC_OK);
}

/* ---- tables ---- */

static void a_table_of_kernels(void **state) {
    pc_profile p;
    import_well(*state,
                "Op, b,m,k,n,layout,accumulate,dtype,time_us,cache,heads,causal,bytes\r\n"
                "matmul,1,4096,5120,1536,TN,False,bf16,250,,,,\r\n"
                "# a remark\r\n"
                "\"matmul\",2,10,20,30,NT,True,,1.5e1,hot,,,\r\n"
                "gemm_input_gradient,1,10,20,30,,,half,15,,,,\r\n"
                "attention,2,128,64,256,backward,,bf16,30,cold,8,true,\r\n"
                "adam,,,,,,,fp32,40,,,,1000000",
                NULL, &p);
    assert_int_equal(p.kernel_count, 5);
    const pc_kernel_measurement *k = p.kernel;
    assert_string_equal(k[0].kernel, "gemm_forward");
    assert_string_equal(k[0].dtype, "bf16");
    assert_int_equal(k[0].kind, PC_OPERATION_GEMM);
    assert_int_equal(k[0].m, 4096);
    assert_int_equal(k[0].n, 1536);
    assert_int_equal(k[0].k, 5120);
    assert_int_equal(k[0].flops, INT64_C(2) * 4096 * 1536 * 5120);
    assert_int_equal(k[0].bytes, INT64_C(2) * (4096 * 5120 + 5120 * 1536 + 4096 * 1536));
    check_near(k[0].seconds.median, 250e-6, 1e-15);
    assert_int_equal(k[0].cache, PC_CACHE_COLD);
    assert_string_equal(k[1].kernel, "gemm_weight_gradient");
    assert_int_equal(k[1].role, PC_GEMM_WEIGHT_GRADIENT);
    assert_int_equal(k[1].bytes, 2 * (2 * (10 * 20 + 20 * 30) + 8 * 10 * 30)); /* an fp32 gradient, read and written */
    assert_int_equal(k[1].cache, PC_CACHE_HOT);
    assert_string_equal(k[2].kernel, "gemm_input_gradient");
    assert_string_equal(k[2].dtype, "fp16");
    assert_string_equal(k[3].kernel, "attention_backward");
    assert_int_equal(k[3].batch, 16); /* two sequences of 8 heads */
    assert_int_equal(k[3].flops, INT64_C(10) * 16 * 128 * 256 * 64);
    assert_true(k[3].is_causal);
    assert_string_equal(k[4].kernel, "adam");
    assert_int_equal(k[4].kind, PC_OPERATION_OPTIMIZER);
    assert_int_equal(k[4].bytes, 1000000);
    pc_profile_free(&p);
}

static void a_table_of_transfers(void **state) {
    pc_profile p;
    import_well(*state,
                "nodes,ranks,fabric,op,size_bytes,oop_time_us,ip_time_us,suspect\n"
                "1,8,NVLink4/NVSwitch,sendrecv,1000000,20,25,\n"
                "1,8,NVLink4/NVSwitch,all_gather,1000000,1,1,too fast\n"
                "2,8,RoCE,AllReduce,1000000,50,,\n",
                NULL, &p);
    assert_int_equal(p.transfer_count, 3);
    check_transfer(&p.transfer[0], "send_recv", 8, 1, 1e6, 20e-6, 1.0, false, -1);
    check_transfer(&p.transfer[1], "send_recv", 8, 1, 1e6, 25e-6, 1.0, true, -1);
    check_transfer(&p.transfer[2], "all_reduce", 8, 2, 1e6, 50e-6, 1.75, false, -1);
    assert_string_equal(p.transfer[0].link, "nvlink");
    assert_string_equal(p.transfer[2].link, "network");
    assert_string_equal(p.device.origin, "input (1 suspect rows left out)");
    pc_profile_free(&p);
}

static const char two_devices[] = "device,op,ranks,size_bytes,time_us\n"
                                  "One,all_reduce,8,1000,10\n"
                                  "Two,all_reduce,8,1000,20\n"
                                  "Two,all_reduce,8,2000,30\n";

static void one_device_of_several(void **state) {
    pc_profile p;
    pc_import_options options = {.device = "two"}, other = {.device = "Three"};
    import_well(*state, two_devices, &options, &p);
    assert_int_equal(p.transfer_count, 2);
    check_near(p.transfer[0].seconds.median, 20e-6, 1e-15);
    check_refused(*state, two_devices, NULL, 3, "'Two'");
    check_refused(*state, two_devices, &other, 3, "'Two'");
    pc_profile_free(&p);
}

/* A profile is of one device, unless the user gives its name. */
static void another_file_of_another_device(void **state) {
    pc_profile p;
    pc_error error;
    pc_import_options options = {.device = "One"};
    const char *other = "device,op,ranks,size_bytes,time_us\nTwo,all_reduce,8,1000,20\n";
    import_well(*state, "device,op,ranks,size_bytes,time_us\nOne,all_reduce,8,1000,10\n", NULL, &p);
    assert_int_equal(import_text(*state, other, NULL, &p, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "'Two'; expected 'One'") ? error.message
                                                                   : strstr(error.message, "expected 'One'"));
    assert_int_equal(p.transfer_count, 1);
    assert_int_equal(import_text(*state, other, &options, &p, &error), PC_OK);
    assert_int_equal(p.transfer_count, 2);
    assert_string_equal(p.device.origin, "input, input");
    pc_profile_free(&p);
}

static void faulty_tables(void **state) {
    const folder *at = *state;
    pc_import_options options = {.collective = "all_reduce"};
#define KERNELS "op,m,n,k,layout,time_us\n"
    check_refused(at, "", NULL, 1, "no header");
    check_refused(at, "hello\n", NULL, 1, "no header");
    check_refused(at, "m,n,k\n1,2,3\n", NULL, 1, "time_us");
    check_refused(at, "m,n,k,m,time_us\n", NULL, 1, "twice");
    check_refused(at, KERNELS, NULL, 0, "no measurement");
    check_refused(at, KERNELS "gemm,1,2,3,TN,4\ngemm,1,2,3,TN\n", NULL, 3, "5 fields");
    check_refused(at, KERNELS "gemm,1,2,3,\"TN,4\n", NULL, 2, "quotes");
    check_refused(at, KERNELS "gemm,1,2,3,TT,4\n", NULL, 2, "'TT'");
    check_refused(at, KERNELS "gemmm,1,2,3,TN,4\n", NULL, 2, "gemmm");
    check_refused(at, KERNELS "gemm,1,2.5,3,TN,4\n", NULL, 2, "n is '2.5'");
    check_refused(at, KERNELS "gemm,1,-2,3,TN,4\n", NULL, 2, "n is '-2'");
    check_refused(at, KERNELS "gemm,1,0x2,3,TN,4\n", NULL, 2, "n is '0x2'");
    check_refused(at, KERNELS "gemm,1,2,1e300,TN,4\n", NULL, 2, "k is '1e300'");
    check_refused(at, KERNELS "gemm,1e14,1e14,1e14,TN,4\n", NULL, 2, "FLOPs");
    check_refused(at, KERNELS "gemm,1,2,3,TN,nan\n", NULL, 2, "'nan'");
    check_refused(at, KERNELS "gemm,1,2,3,TN,0\n", NULL, 0, "holds no measurement");
    check_refused(at, KERNELS "gemm,1,2,3,TN,1e-9\n", NULL, 2, "'1e-9'");
    check_refused(at, KERNELS "gemm,1,2,3,TN,\n", NULL, 2, "a time of ''");
    check_refused(at, KERNELS "layer_norm,1,2,3,forward,4\n", NULL, 2, "bytes");
    check_refused(at, "size_bytes,time_us\n1000,10\n", &options, 2, "ranks");
    check_refused(at, "op,size_bytes,ranks,time_us\ngather,1000,8,10\n", NULL, 2, "gather");
    check_refused(at, "op,size_bytes,time_us\nall_reduce,1000,10\n", NULL, 2, "all_reduce without ranks");
    check_refused(at, "ranks,size_bytes,time_us\n8,1000,10\n", NULL, 2, "no column says which collective");
    check_refused(at, "size_bytes,time_us\n1000,10\n", NULL, 1, "no column says what was measured");
    check_refused(at, "op,size_bytes,ranks,time_us\nall_reduce,1000,1,10\n", NULL, 2, "1 ranks");
    write_file(at, "m,n,k\0time_us\n", 14);
    pc_profile p = {0};
    pc_error error;
    assert_int_equal(pc_profile_import(&p, at->file, NULL, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "no text"));
    assert_int_equal(pc_profile_import(&p, at->path, NULL, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_profile_import(&p, "/nowhere/at/all", NULL, &error), PC_ERROR_INPUT);
}

/* ---- damage ---- */

static const char small_table[] = "device,op,b,m,k,n,layout,accumulate,time_us\n"
                                  "A,matmul,1,4096,5120,1536,TN,False,262.152\n"
                                  "A,matmul,1,4096,1536,5120,NN,False,279.983\n"
                                  "A,matmul,1,1536,4096,5120,NT,True,330.671\n";

/* Cuts, foreign bytes, huge numbers, lines that are doubled. */
static size_t damage(test_random *random, const char *text, char *damaged, size_t room) {
    static const char *const inserts[] = {
        "9999999999999999999999", "-", "e308", "\"", ",", "\n", "#", "nan", " ", "%s%n"};
    size_t size = strlen(text);
    memcpy(damaged, text, size + 1);
    for (int64_t i = test_between(random, 1, 4); i > 0; i--) {
        size_t at = (size_t)test_between(random, 0, (int64_t)size - 1);
        const char *insert = inserts[test_between(random, 0, 9)];
        switch (test_between(random, 0, 3)) {
        case 0:
            if (size > 40) size = at + 1;
            break;
        case 1:
            damaged[at] = (char)test_between(random, 1, 255);
            break;
        case 2:
            if (size + strlen(insert) >= room) break;
            memmove(damaged + at + strlen(insert), damaged + at, size - at);
            memcpy(damaged + at, insert, strlen(insert));
            size += strlen(insert);
            break;
        default:
            damaged[at] = (char)('a' + test_between(random, 0, 25));
        }
    }
    damaged[size] = '\0';
    return size;
}

/* Never half of it: a refusal leaves the profile as it was, and what is taken is sound. */
static void check_damaged(const folder *at, const char *text, size_t size) {
    pc_profile p = {0};
    pc_error error = {0};
    pc_import_options options = {.collective = "all_reduce", .ranks = 4};
    write_file(at, text, size);
    pc_code code = pc_profile_import(&p, at->file, &options, &error);
    if (code) {
        assert_int_equal(code, PC_ERROR_INPUT);
        assert_non_null(strstr(error.message, "expected"));
        assert_null(strchr(error.message, '\n'));
        assert_int_equal(p.kernel_count + p.transfer_count, 0);
        assert_string_equal(p.device.origin, "");
    }
    for (int64_t i = 0; i < p.kernel_count; i++)
        assert_true(p.kernel[i].seconds.median > 0.0 && p.kernel[i].m > 0 && p.kernel[i].flops > 0);
    for (int64_t i = 0; i < p.transfer_count; i++)
        assert_true(p.transfer[i].seconds.median > 0.0 && p.transfer[i].size_bytes > 0.0 && p.transfer[i].ranks > 1);
    pc_profile_free(&p);
}

static void damaged_files(void **state) {
    test_random random = {5};
    char damaged[8192];
    long cases = test_cases(3000, 15000);
    const char *const texts[] = {all_reduce, small_table, two_devices};
    for (long i = 0; i < cases; i++) {
        size_t size = damage(&random, texts[i % 3], damaged, sizeof damaged);
        check_damaged(*state, damaged, size);
    }
}

/* ---- memory ---- */

static void without_memory(void **state) {
    const folder *at = *state;
    const char *const texts[] = {all_reduce, small_table};
    for (int t = 0; t < 2; t++) {
        write_file(at, texts[t], strlen(texts[t]));
        for (refusals x = {.most = 100}; next_refusal(&x);) {
            pc_profile p = {0};
            pc_error error;
            x.code = pc_profile_import(&p, at->file, NULL, &error);
            if (x.code) assert_int_equal(p.kernel_count + p.transfer_count, 0);
            pc_profile_free(&p);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(nccl_output_is_taken, "input"),  TEST_IN_FOLDER(short_rows_and_options, "input"),
        TEST_IN_FOLDER(faulty_nccl_output, "input"),    TEST_IN_FOLDER(options_are_names_that_profiles_know, "input"),
        TEST_IN_FOLDER(a_table_of_kernels, "input"),    TEST_IN_FOLDER(a_table_of_transfers, "input"),
        TEST_IN_FOLDER(one_device_of_several, "input"), TEST_IN_FOLDER(another_file_of_another_device, "input"),
        TEST_IN_FOLDER(faulty_tables, "input"),         TEST_IN_FOLDER(damaged_files, "input"),
        TEST_IN_FOLDER(without_memory, "input"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
