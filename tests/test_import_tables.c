/* Tables of others as they are: aiconfigurator's, SimuMax's and people's own, and the rows of them that cannot be. */
#include "calib/import/import.h"
#include "tests/folder.h"
#include "tests/refusals.h"

#include <math.h>

static void check_near(double found, double right, double tolerance) {
    if (!(fabs(found - right) <= tolerance)) fail_msg("%.17g; expected %.17g", found, right);
}

/* ---- files ---- */

static const char *path_of(const folder *at, const char *name, char path[256]) {
    snprintf(path, 256, "%s/%s", at->path, name);
    return path;
}

static void write_named(const folder *at, const char *name, const char *text) {
    char path[256];
    FILE *file = fopen(path_of(at, name, path), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

/* All tables are `input`, but where the name counts. */
static void import_named(const folder *at, const char *name, const char *text, const pc_import_options *options,
                         pc_profile *profile, pc_import_report *report) {
    static const pc_import_options nothing = {0};
    char path[256];
    const char *paths[] = {path_of(at, name, path)};
    pc_error error = {0};
    *profile = (pc_profile){0};
    write_named(at, name, text);
    if (pc_profile_import_all(profile, paths, 1, options ? options : &nothing, report, &error))
        fail_msg("%s", error.message);
}

static void import_well(const folder *at, const char *text, pc_profile *profile) {
    import_named(at, "input", text, NULL, profile, NULL);
}

static void check_kernel(const pc_kernel_measurement *k, const char *name, const char *dtype, const int64_t shape[4],
                         double seconds) {
    assert_string_equal(k->kernel, name);
    assert_string_equal(k->dtype, dtype);
    const int64_t found[] = {k->batch, k->m, k->n, k->k};
    for (int i = 0; i < 4; i++) assert_int_equal(found[i], shape[i]);
    check_near(k->seconds.median, seconds, 1e-12 * seconds);
    assert_int_equal(k->seconds.count, 1);
}
#define SHAPE(b, m, n, k)                                                                                              \
    (const int64_t[]) {                                                                                                \
        b, m, n, k                                                                                                     \
    }

/* ---- aiconfigurator ---- */

static void products_of_any_precision(void **state) {
    pc_profile p;
    import_well(*state,
                "system,framework,version,dtype,m,n,k,latency_ms\n"
                "b200_sxm,trtllm,1.3.0rc20,bfloat16,4096,8192,1024,0.5\n"
                "b200_sxm,trtllm,1.3.0rc20,fp8_block,4096,8192,1024,0.25\n"
                "b200_sxm,sglang,0.5.14,nvfp4,4096,8192,1024,0.125\n"
                "b200_sxm,trtllm,1.3.0rc20,sq,4096,8192,1024,0.125\n"
                "b200_sxm,trtllm,1.3.0rc20,w4a8_mxfp4_mxfp8,4096,8192,1024,0.125\n",
                &p);
    assert_int_equal(p.kernel_count, 5);
    check_kernel(&p.kernel[0], "gemm_forward", "bf16", SHAPE(1, 4096, 8192, 1024), 0.5e-3);
    check_kernel(&p.kernel[1], "gemm_forward", "fp8_block", SHAPE(1, 4096, 8192, 1024), 0.25e-3);
    check_kernel(&p.kernel[2], "gemm_forward", "nvfp4", SHAPE(1, 4096, 8192, 1024), 0.125e-3);
    assert_string_equal(p.kernel[3].dtype, "sq");
    assert_string_equal(p.kernel[4].dtype, "w4a8_mxfp4"); /* as long as the column */
    assert_int_equal(p.kernel[0].flops, INT64_C(2) * 4096 * 8192 * 1024);
    /* A byte of fp8 goes in, half a one of nvfp4; two come out. */
    const int64_t in = 1024 * (4096 + 8192), out = INT64_C(2) * 4096 * 8192;
    assert_int_equal(p.kernel[0].bytes, 2 * in + out);
    assert_int_equal(p.kernel[1].bytes, in + out);
    assert_int_equal(p.kernel[2].bytes, in / 2 + out);
    assert_string_equal(p.kernel[2].library, "sglang");
    assert_string_equal(p.kernel[2].library_version, "0.5.14");
    assert_string_equal(p.kernel[2].site, "b200_sxm");
    assert_string_equal(p.device.name, "");
    pc_profile_free(&p);
}

static void attention_by_sequences(void **state) {
    pc_profile p;
    import_well(*state,
                "system,framework,version,dtype,batch,seq,heads,kv_heads,head_dim,window,latency_ms\n"
                "x,trtllm,1,bfloat16,4,2048,32,8,128,0,2\n"
                "x,trtllm,1,fp8,4,2048,32,8,128,512,1\n"
                "x,trtllm,1,fp8,4,2048,32,8,128,2048,1\n",
                &p);
    assert_int_equal(p.kernel_count, 3);
    check_kernel(&p.kernel[0], "attention_forward", "bf16", SHAPE(4 * 32, 2048, 2048, 128), 2e-3);
    const pc_kernel_measurement *k = &p.kernel[0];
    assert_true(k->is_causal && k->heads == 32 && k->kv_heads == 8 && k->window == 0);
    assert_int_equal(k->flops, INT64_C(4) * 128 * 2048 * 2048 * 128);
    /* Queries and outputs of 32 heads, keys and values of 8, 2 bytes each. */
    assert_int_equal(k->bytes, INT64_C(2) * 4 * 2048 * 128 * (2 * 32 + 2 * 8));
    assert_int_equal(p.kernel[1].window, 512);
    assert_int_equal(p.kernel[2].window, 0); /* it sees all that there is */
    assert_string_equal(k->variant, "");
    pc_profile_free(&p);
}

static void layers_of_experts(void **state) {
    pc_profile p;
    import_well(*state,
                "system,framework,version,kernel,dtype,tokens,hidden,inter,topk,experts,moe_tp,moe_ep,distribution,"
                "latency_ms\n"
                "x,trtllm,1,moe_torch_flow_cutlass,fp8,2048,3072,1024,8,256,2,16,power_law_1.01,0.5\n"
                "x,trtllm,1,moe_torch_flow_nongated,fp8,2048,3072,1024,8,256,2,16,balanced,0.5\n",
                &p);
    assert_int_equal(p.kernel_count, 2);
    const pc_kernel_measurement *k = p.kernel;
    check_kernel(k, "moe_layer", "fp8", SHAPE(1, 2048, 1024, 3072), 0.5e-3);
    assert_true(k->topk == 8 && k->experts == 256 && k->moe_tp == 2 && k->moe_ep == 16);
    assert_string_equal(k->variant, "moe_torch_flow_cutlass power_law_1.01");
    assert_int_equal(k[0].flops, INT64_C(2) * 3 * 2048 * 8 * 3072 * 1024 / 32); /* three matrices: with a gate */
    assert_int_equal(k[1].flops, INT64_C(2) * 2 * 2048 * 8 * 3072 * 1024 / 32);
    assert_int_equal(k[0].bytes, INT64_C(3) * 256 * 3072 * 1024 / 32);
    pc_profile_free(&p);
}

static void check_transfer(const pc_transfer_measurement *t, const char *name, double size, int ranks, int nodes,
                           double seconds) {
    assert_string_equal(t->collective, name);
    check_near(t->size_bytes, size, 0.0);
    assert_int_equal(t->ranks, ranks);
    assert_int_equal(t->nodes, nodes);
    check_near(t->seconds.median, seconds, 1e-12 * seconds);
    check_near(t->algbw, size / seconds, 1e-6 * size / seconds);
}

/* What is called bytes are elements: of half twice as many bytes. */
static void collectives_of_elements(void **state) {
    pc_profile p;
    import_well(*state,
                "system,framework,version,op,dtype,gpus,message_bytes_inferred,latency_ms\n"
                "h100_sxm,nccl,2.29.2,all_gather,half,8,1048576,0.02\n"
                "h100_sxm,nccl,2.29.2,alltoall,int8,4,1048576,0.01\n",
                &p);
    assert_int_equal(p.transfer_count, 2);
    check_transfer(&p.transfer[0], "all_gather", 2097152.0, 8, 1, 20e-6);
    check_transfer(&p.transfer[1], "all_to_all", 1048576.0, 4, 1, 10e-6);
    check_near(p.transfer[0].busbw, 2097152.0 / 20e-6 * 7.0 / 8.0, 1.0);
    assert_string_equal(p.transfer[0].dtype, "fp16");
    assert_string_equal(p.transfer[1].dtype, "int8");
    assert_string_equal(p.transfer[0].library, "nccl");
    assert_string_equal(p.transfer[0].library_version, "2.29.2");
    assert_string_equal(p.transfer[0].site, "h100_sxm");
    pc_profile_free(&p);
}

static void dispatch_and_combine(void **state) {
    pc_profile p;
    import_well(*state,
                "system,version,nodes,hidden,tokens,topk,experts,dispatch_sms,dispatch_us,combine_sms,combine_us\n"
                "h100_sxm,0.5.12,2,7168,512,8,256,20,185.5,24,194\n",
                &p);
    assert_int_equal(p.transfer_count, 2);
    const double bytes = 512.0 * 8 * 7168; /* of 8 bits there, of 16 back */
    check_transfer(&p.transfer[0], "dispatch", bytes, 16, 2, 185.5e-6);
    check_transfer(&p.transfer[1], "combine", 2.0 * bytes, 16, 2, 194e-6);
    const pc_transfer_measurement *t = p.transfer;
    assert_true(t[0].sms == 20 && t[1].sms == 24 && t->hidden == 7168 && t->tokens == 512 && t->topk == 8);
    assert_int_equal(t->experts, 256);
    assert_string_equal(t->library, "deepep");
    assert_string_equal(t->link, "network");
    pc_profile_free(&p);
    import_well(*state,
                "system,op,kernel,dtype,tokens,hidden,topk,experts,ep,distribution,latency_ms\n"
                "gb200,alltoall_dispatch,NVLinkTwoSided,fp8,512,7168,8,256,4,balanced,0.05\n"
                "gb200,alltoall_combine_low_precision,NVLinkTwoSided,nvfp4,512,7168,8,256,64,balanced,0.1\n",
                &p);
    assert_int_equal(p.transfer_count, 2);
    check_transfer(&p.transfer[0], "dispatch", 512.0 * 8 * 7168, 4, 1, 50e-6);
    check_transfer(&p.transfer[1], "combine_low_precision", 512.0 * 8 * 7168 / 2, 64, 1, 100e-6);
    assert_string_equal(p.transfer[0].library, "NVLinkTwoSided");
    assert_string_equal(p.transfer[0].link, "nvlink");
    pc_profile_free(&p);
}

/* ---- SimuMax: efficiencies ---- */

/* 2 * 1024 * 2048 * 512 FLOPs at half of 1000 TFLOP/s. */
static void products_of_a_training_step(void **state) {
    pc_profile p;
    const double seconds = 2.0 * 1024 * 2048 * 512 / 500e12;
    import_well(*state,
                "b,m,k,n,layout,accumulate,out_dtype,efficiency_of_1000_tflops\n"
                "1,1024,512,2048,TN,False,bf16,0.5\n"
                "1,1024,512,2048,NN,False,bf16,0.5\n"
                "1,1024,512,2048,NT,True,fp32,0.25\n",
                &p);
    assert_int_equal(p.kernel_count, 3);
    check_kernel(&p.kernel[0], "gemm_forward", "bf16", SHAPE(1, 1024, 2048, 512), seconds);
    check_kernel(&p.kernel[1], "gemm_input_gradient", "bf16", SHAPE(1, 1024, 2048, 512), seconds);
    check_kernel(&p.kernel[2], "gemm_weight_gradient", "bf16", SHAPE(1, 1024, 2048, 512), 2.0 * seconds);
    assert_true(p.kernel[2].accumulates && !p.kernel[1].accumulates);
    assert_string_equal(p.kernel[2].out_dtype, "fp32");
    assert_string_equal(p.kernel[0].library, "transformer_engine");
    const folder *at = *state;
    assert_string_equal(p.kernel[0].site, strrchr(at->path, '/') + 1);
    /* An output of 4 bytes that is read and written. */
    assert_int_equal(p.kernel[2].bytes, 2 * 512 * (1024 + 2048) + INT64_C(8) * 1024 * 2048);
    pc_profile_free(&p);
}

static void grouped_products(void **state) {
    pc_profile p;
    const double seconds = 2.0 * 160 * 154 * 3072 * 5120 / (0.5 * 2250e12);
    import_well(*state,
                "ng,M,N,K,dtype,out_dtype,main_grad_dtype,stage,grad,accumulate,use_split_accumulator,single_output,"
                "efficiency_of_2250_tflops\n"
                "160,154,3072,5120,bf16,bf16,fp32,fwd,False,False,False,True,0.5\n"
                "160,154,3072,5120,bf16,bf16,fp32,bwd_grad_act,True,False,True,False,0.5\n"
                "160,154,3072,5120,bf16,bf16,fp32,bwd_grad_w,True,True,True,False,0.5\n",
                &p);
    assert_int_equal(p.kernel_count, 3);
    check_kernel(&p.kernel[0], "grouped_gemm_forward", "bf16", SHAPE(160, 154, 3072, 5120), seconds);
    check_kernel(&p.kernel[1], "grouped_gemm_input_gradient", "bf16", SHAPE(160, 154, 3072, 5120), seconds);
    check_kernel(&p.kernel[2], "grouped_gemm_weight_gradient", "bf16", SHAPE(160, 154, 3072, 5120), seconds);
    assert_string_equal(p.kernel[1].out_dtype, "bf16");
    assert_string_equal(p.kernel[2].out_dtype, "fp32");
    assert_int_equal(p.kernel[0].experts, 160);
    pc_profile_free(&p);
}

#define SDP "batch,seq_len,head_num,kv_head_num,qk_head_dim,v_head_dim,qkv_contiguous,efficiency_of_2250_tflops\n"

/* The whole square counts, though half of it is masked: an efficiency may be above 1. Backward is 2.5 times the work,
 * and says so in the file's name alone. */
static void attention_of_a_training_step(void **state) {
    static const char rows[] = SDP "1,4096,64,8,128,128,True,1.25\n"
                                   "1,4096,64,8,128,128,False,1.25\n"
                                   "1,4096,64,64,192,128,True,0.5\n";
    const double square = 2.0 * 64 * 4096 * 4096;
    pc_profile p;
    import_named(*state, "sdp_fwd.csv", rows, NULL, &p, NULL);
    assert_int_equal(p.kernel_count, 3);
    check_kernel(&p.kernel[0], "attention_forward", "bf16", SHAPE(64, 4096, 4096, 128),
                 square * 256 / (1.25 * 2250e12));
    check_kernel(&p.kernel[2], "attention_forward", "bf16", SHAPE(64, 4096, 4096, 192), square * 320 / (0.5 * 2250e12));
    assert_string_equal(p.kernel[0].variant, "");
    assert_string_equal(p.kernel[1].variant, "not contiguous");
    assert_string_equal(p.kernel[2].variant, "v128");
    pc_profile_free(&p);
    import_named(*state, "sdp_bwd.csv", rows, NULL, &p, NULL);
    check_kernel(&p.kernel[0], "attention_backward", "bf16", SHAPE(64, 4096, 4096, 128),
                 2.5 * square * 256 / (1.25 * 2250e12));
    assert_true(p.kernel[0].is_causal);
    pc_profile_free(&p);
}

/* ---- people's own ---- */

/* Every sort of row in one table, each with its own unit. */
static void a_table_of_everything(void **state) {
    pc_profile p;
    import_well(*state,
                "operation,layout,precision,m,n,k,batch,seq,heads,kv_heads,head_dim,causal,groups,bytes,ranks,latency,"
                "unit,library,library_version,site\n"
                "gemm,NT,fp8,64,128,256,,,,,,,,,,5,us,cublas,13.1,ours\n"
                "attention,forward,bf16,,,,2,1024,16,4,64,false,,,,7,ms,cudnn,9,ours\n"
                "grouped_gemm,TN,mxfp8,64,128,256,,,,,,,8,,,9000,ns,cublas,13.1,ours\n"
                "rms_norm,forward,bf16,,,,,,,,,,,1000000,,1e-5,s,,,ours\n"
                "all_reduce,,,,,,,,,,,,,1048576,8,30,us,nccl,2.29,ours\n",
                &p);
    assert_int_equal(p.kernel_count, 4);
    assert_int_equal(p.transfer_count, 1);
    check_kernel(&p.kernel[0], "gemm_weight_gradient", "fp8", SHAPE(1, 64, 128, 256), 5e-6);
    check_kernel(&p.kernel[1], "attention_forward", "bf16", SHAPE(32, 1024, 1024, 64), 7e-3);
    assert_false(p.kernel[1].is_causal);
    check_kernel(&p.kernel[2], "grouped_gemm_forward", "mxfp8", SHAPE(8, 64, 128, 256), 9e-6);
    assert_string_equal(p.kernel[3].kernel, "rms_norm_forward");
    check_near(p.kernel[3].seconds.median, 1e-5, 1e-17);
    check_transfer(&p.transfer[0], "all_reduce", 1048576.0, 8, 1, 30e-6);
    assert_string_equal(p.kernel[0].library, "cublas");
    assert_string_equal(p.kernel[0].site, "ours");
    pc_profile_free(&p);
}

static void who_and_where_can_be_chosen(void **state) {
    static const char rows[] = "system,framework,dtype,m,n,k,latency_ms\n"
                               "one,trtllm,bf16,64,64,64,1\n"
                               "one,sglang,bf16,64,64,64,2\n"
                               "two,trtllm,bf16,64,64,64,3\n";
    static const char silent[] = "m,n,k,latency_ms\n64,64,64,1\n";
    pc_profile p;
    const pc_import_options libraries = {.library = "SGLang,vllm"}, site = {.site = "two", .library = "trtllm,sglang"};
    const pc_import_options said = {.library = "ours", .site = "here"};
    import_named(*state, "input", rows, &libraries, &p, NULL);
    assert_int_equal(p.kernel_count, 1);
    check_near(p.kernel[0].seconds.median, 2e-3, 1e-15);
    pc_profile_free(&p);
    import_named(*state, "input", rows, &site, &p, NULL);
    assert_int_equal(p.kernel_count, 1);
    check_near(p.kernel[0].seconds.median, 3e-3, 1e-15);
    pc_profile_free(&p);
    import_named(*state, "input", silent, &said, &p, NULL); /* a table that does not say */
    assert_string_equal(p.kernel[0].library, "ours");
    assert_string_equal(p.kernel[0].site, "here");
    pc_profile_free(&p);
}

/* ---- rows that cannot be ---- */

#define GEMM "dtype,m,n,k,latency_us\n"

static void check_left_out(const folder *at, const pc_import_report *report, pc_import_reason reason, int64_t count,
                           const char *place) {
    char expected[512] = "";
    if (count > 0) snprintf(expected, sizeof expected, "%s/%s", at->path, place);
    assert_int_equal(report->left_out[reason].count, count);
    assert_string_equal(report->left_out[reason].first, expected);
}

/* A product of 2^31 FLOPs takes 2.147 us at 1 PFLOP/s, half as long in 8 bits; 4 bits have no rate, and are not
 * doubted. A causal mask halves attention's work: 2^30 FLOPs. */
static void what_is_faster_than_the_datasheet(void **state) {
    const pc_gpu gpu = {.matrix_flops_per_s = 1e15, .matrix_fp8_flops_per_s = 2e15};
    const pc_import_options options = {.gpu = &gpu};
    pc_import_report report;
    pc_profile p;
    import_named(*state, "input",
                 GEMM "bf16,1024,1024,1024,2.1\nbf16,1024,1024,1024,2.2\nfp8,1024,1024,1024,1.1\n"
                      "fp8_block,1024,1024,1024,1.0\nnvfp4,1024,1024,1024,0.1\nsq,1024,1024,1024,0.1\n",
                 &options, &p, &report);
    assert_int_equal(p.kernel_count, 4);
    check_left_out(*state, &report, PC_IMPORT_TOO_FAST, 2, "input:2");
    assert_string_equal(p.device.origin, "input (2 too fast rows left out)");
    pc_profile_free(&p);
    import_named(*state, "input",
                 "batch,seq,heads,head_dim,window,latency_us\n"
                 "1,2048,1,128,0,1.1\n1,2048,1,128,0,1.0\n"
                 "1,2048,1,128,512,0.48\n1,2048,1,128,512,0.46\n", /* 7/16 of the pairs: 0.4698 us */
                 &options, &p, &report);
    assert_int_equal(p.kernel_count, 2);
    check_left_out(*state, &report, PC_IMPORT_TOO_FAST, 2, "input:3");
    pc_profile_free(&p);
}

static void what_takes_no_time(void **state) {
    pc_import_report report;
    pc_profile p;
    import_named(*state, "input", GEMM "bf16,8,8,8,0\nbf16,8,8,8,1\nbf16,8,8,16,-3e2\nbf16,8,8,16,2\n", NULL, &p,
                 &report);
    assert_int_equal(p.kernel_count, 2);
    check_left_out(*state, &report, PC_IMPORT_NO_TIME, 2, "input:2");
    assert_string_equal(p.device.origin, "input (2 without a time rows left out)");
    pc_profile_free(&p);
    import_named(*state, "input", "m,n,k,efficiency_of_1_tflops\n8,8,8,-0.5\n8,8,8,0.5\n", NULL, &p, &report);
    check_left_out(*state, &report, PC_IMPORT_NO_TIME, 1, "input:2");
    pc_profile_free(&p);
}

/* One of each: of attention the slowest, of others the one with the median time, of two the faster. */
static void what_says_the_same_again(void **state) {
    static const char rows[] = GEMM "bf16,8,8,8,5\n"  /* 2: the median of 5, 3 and 9 */
                                    "bf16,8,8,16,4\n" /* 3 */
                                    "bf16,8,8,8,3\n"  /* 4 */
                                    "fp8,8,8,8,7\n"   /* 5 */
                                    "bf16,8,8,8,9\n"  /* 6 */
                                    "bf16,8,8,16,4\n" /* 7: as the third line */;
    pc_import_report report;
    pc_profile p;
    import_named(*state, "input", rows, NULL, &p, &report);
    assert_int_equal(p.kernel_count, 3);
    static const double right[] = {5e-6, 4e-6, 7e-6};
    for (int i = 0; i < 3; i++) check_near(p.kernel[i].seconds.median, right[i], 1e-15);
    check_left_out(*state, &report, PC_IMPORT_REPEATED, 3, "input:4");
    assert_string_equal(p.device.origin, "input (3 repeated rows left out)");
    pc_profile_free(&p);
    import_named(*state, "input", "batch,seq,heads,head_dim,latency_us\n1,64,1,64,5\n1,64,1,64,9\n1,64,1,64,7\n", NULL,
                 &p, &report);
    assert_int_equal(p.kernel_count, 1);
    check_near(p.kernel[0].seconds.median, 9e-6, 1e-15);
    check_left_out(*state, &report, PC_IMPORT_REPEATED, 2, "input:2");
    pc_profile_free(&p);
}

/* Also across files, and not what a profile had before. */
static void files_repeat_each_other(void **state) {
    const folder *at = *state;
    char one[256], two[256];
    const char *paths[] = {path_of(at, "one.csv", one), path_of(at, "two.csv", two)};
    const pc_import_options options = {0};
    pc_import_report report;
    pc_profile p = {0};
    const pc_kernel_measurement old = {.kernel = "copy", .bytes = 1};
    assert_int_equal(pc_profile_add_kernel(&p, &old, NULL, NULL), PC_OK);
    write_named(at, "one.csv", GEMM "bf16,8,8,8,5\nbf16,8,8,16,4\n");
    write_named(at, "two.csv",
                "op,ranks,bytes,time_us\nall_reduce,8,1024,5\nall_reduce,8,1024,5\nall_reduce,8,2048,6\n");
    assert_int_equal(pc_profile_import_all(&p, paths, 2, &options, &report, NULL), PC_OK);
    check_left_out(at, &report, PC_IMPORT_REPEATED, 1, "two.csv:3");
    assert_true(p.kernel_count == 3 && p.transfer_count == 2);
    assert_string_equal(p.kernel[0].kernel, "copy");
    check_near(p.kernel[2].seconds.median, 4e-6, 1e-15);
    check_near(p.transfer[1].size_bytes, 2048.0, 0.0);
    pc_profile_free(&p);
    write_named(at, "two.csv", GEMM "bf16,8,8,32,5\nbf16,8,8,16,4\n");
    assert_int_equal(pc_profile_import_all(&p, paths, 2, &options, &report, NULL), PC_OK);
    check_left_out(at, &report, PC_IMPORT_REPEATED, 1, "two.csv:3");
    assert_int_equal(p.kernel_count, 3);
    assert_string_equal(p.device.origin, "one.csv, two.csv (1 repeated rows left out)");
    pc_profile_free(&p);
}

/* ---- refusals ---- */

static void check_refused(const folder *at, const char *text, int line, const char *what) {
    pc_error error = {0};
    pc_profile profile = {0};
    char place[192], path[256];
    write_named(at, "input", text);
    assert_int_equal(pc_profile_import(&profile, path_of(at, "input", path), NULL, &error), PC_ERROR_INPUT);
    snprintf(place, sizeof place, "%s:%d: ", at->file, line);
    if (strncmp(error.message, place, strlen(place)) != 0) fail_msg("'%s' does not begin '%s'", error.message, place);
    if (!strstr(error.message, what) || !strstr(error.message, "expected")) fail_msg("%s", error.message);
    assert_int_equal(profile.kernel_count + profile.transfer_count, 0);
    pc_profile_free(&profile);
}

static void faulty_tables(void **state) {
    const folder *at = *state;
    check_refused(at, "m,n,k,latency\n8,8,8,1\n", 1, "'latency' without a unit");
    check_refused(at, "m,n,k,latency,unit\n8,8,8,1,minutes\n", 2, "the unit 'minutes'");
    check_refused(at, GEMM "bf17,8,8,8,1\n", 2, "the dtype 'bf17'");
    check_refused(at, "m,n,k,out_dtype,latency_us\n8,8,8,fp7,1\n", 2, "the dtype 'fp7'");
    check_refused(at, GEMM "bf16,8,8,8,fast\n", 2, "a time of 'fast'");
    check_refused(at, "m,n,k,efficiency_of_100_tflops\n8,8,8,x\n", 2, "an efficiency of 'x'");
    check_refused(at, "m,n,k,efficiency_of_100_tflops\n8,8,8,1e4\n", 2, "an efficiency of '1e4'");
    check_refused(at, "m,n,k,efficiency_of_x_tflops\n8,8,8,1\n", 1, "no column with a time");
    check_refused(at, "batch,seq,heads,kv_heads,head_dim,latency_us\n1,64,4,8,64,1\n", 2, "8 kv_heads of 4 heads");
    check_refused(at, "batch,seq,heads,head_dim,window,latency_us\n1,64,4,64,-1,1\n", 2, "the window is '-1'");
    check_refused(at, "tokens,hidden,inter,topk,experts,latency_us\n8,8,8,4,2,1\n", 2, "topk 4 of 2 experts");
    check_refused(at, "tokens,hidden,topk,experts,dispatch_us\n8,8,4,2,1\n", 2, "to 4 of 2 experts");
    check_refused(at, "tokens,hidden,topk,experts,nodes,dispatch_us\n8,8,2,4,9999999,1\n", 2, "9999999 nodes");
    check_refused(at, "ng,m,n,k,latency_us\n0,8,8,8,1\n", 2, "groups is '0'");
    check_refused(at, "op,m,n,k,latency_us\ngrouped_gem,8,8,8,1\n", 2, "the kernel 'grouped_gem'");
}

/* ---- memory ---- */

static void without_memory(void **state) {
    const folder *at = *state;
    char path[256];
    write_named(at, "input", GEMM "bf16,8,8,8,5\nbf16,8,8,8,6\nfp8,8,8,8,7\n");
    for (refusals x = {.most = 100}; next_refusal(&x);) {
        pc_profile p = {0};
        pc_error error;
        x.code = pc_profile_import(&p, path_of(at, "input", path), NULL, &error);
        assert_int_equal(p.kernel_count, x.code ? 0 : 2);
        pc_profile_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(products_of_any_precision, "input"),
        TEST_IN_FOLDER(attention_by_sequences, "input"),
        TEST_IN_FOLDER(layers_of_experts, "input"),
        TEST_IN_FOLDER(collectives_of_elements, "input"),
        TEST_IN_FOLDER(dispatch_and_combine, "input"),
        TEST_IN_FOLDER(products_of_a_training_step, "input"),
        TEST_IN_FOLDER(grouped_products, "input"),
        TEST_IN_FOLDER(attention_of_a_training_step, "input"),
        TEST_IN_FOLDER(a_table_of_everything, "input"),
        TEST_IN_FOLDER(who_and_where_can_be_chosen, "input"),
        TEST_IN_FOLDER(what_is_faster_than_the_datasheet, "input"),
        TEST_IN_FOLDER(what_takes_no_time, "input"),
        TEST_IN_FOLDER(what_says_the_same_again, "input"),
        TEST_IN_FOLDER(files_repeat_each_other, "input"),
        TEST_IN_FOLDER(faulty_tables, "input"),
        TEST_IN_FOLDER(without_memory, "input"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
