#include "calib/profile/profile_index.h"

#include "calib/profile/profile_private.h"
#include "models/machine/machine.h"

#include <stdlib.h>
#include <string.h>

static const char *const dtypes[] = {[PC_PRECISION_BF16] = "bf16", [PC_PRECISION_FP16] = "fp16"};
static const char *const products[] = {"gemm_forward", "gemm_input_gradient", "gemm_weight_gradient"};
static const char *const attentions[] = {"attention_forward", "attention_backward"};

_Static_assert(sizeof dtypes / sizeof *dtypes == PC_INDEX_PRECISIONS, "a place for every precision");

const char *pc_operation_dtype(const pc_operation *operation) {
    bool is_product = operation->kind == PC_OPERATION_GEMM || operation->kind == PC_OPERATION_ATTENTION;
    bool is_low = is_product && pc_product_format_is_low(operation->format);
    return is_low ? pc_product_format_name(operation->format) : dtypes[operation->precision];
}

/* ---- how well a fit answers ---- */

static bool is_half(const char *dtype) {
    return strcmp(dtype, "bf16") == 0 || strcmp(dtype, "fp16") == 0;
}

/* 3: measured in this; 2: of any; 1: of another that takes as long: 16 bits of 16, and 8 bits whatever their scales.
 * 0: not at all. */
static int likeness(const char *has, const char *wanted) {
    if (strcmp(has, wanted) == 0) return 3;
    if (is_half(wanted)) return has[0] == '\0' ? 2 : is_half(has);
    bool is_8_bits = strcmp(wanted, "mxfp8") == 0 || strcmp(wanted, "fp8_block") == 0;
    return is_8_bits && strcmp(has, "fp8") == 0;
}

static bool ends_in(const char *text, const char *end) {
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* Of several tables: sums of the right type, then the library of which there are thousands of shapes. 0 of our own
 * calibrations, which have one of each. */
static int preference(const pc_fit_key *key) {
    bool is_sum = ends_in(key->subject, "weight_gradient"), has_fp32 = strcmp(key->out_dtype, "fp32") == 0;
    if (key->site[0] == '\0') return 0;
    return 2 * (is_sum == has_fp32) + (strcmp(key->library, "trtllm") == 0);
}

/* 0: not at all. Buffers are cold in training: what a kernel reads was written long before. */
static int rank_of(const pc_fit_key *key, const char *family, const char *dtype) {
    enum { PREFERENCES = 4 };
    if (pc_fit_form_is_transfer(key->form) || strcmp(key->subject, family) != 0) return 0;
    int like = likeness(key->dtype, dtype);
    return like ? (2 * like + (key->cache == PC_CACHE_COLD)) * PREFERENCES + preference(key) : 0;
}

/* Others' tables are of short bursts, and of what an inference library does. */
static pc_answer_way way_of(const pc_fit_key *key) {
    return key->site[0] ? PC_ANSWER_SUSTAINED : PC_ANSWER_FIT;
}

static pc_kernel_answer answer_of(const pc_profile *profile, int64_t fit, const char *dtype) {
    if (fit < 0) return (pc_kernel_answer){.fit = -1};
    const pc_fit_key *key = &profile->fit[fit].key;
    return (pc_kernel_answer){fit, way_of(key), false, likeness(key->dtype, dtype) == 1 ? key->dtype : NULL};
}

/* The best of a form; of attention with its mask, or else any. */
static int64_t best_fit(const pc_profile *profile, pc_fit_form form, const char *family, const char *dtype,
                        bool is_causal) {
    int64_t best = -1;
    int best_rank = 0;
    for (int64_t i = 0; i < profile->fit_count; i++) {
        const pc_fit_key *key = &profile->fit[i].key;
        bool is_masked = form != PC_FIT_ATTENTION || key->is_causal == is_causal;
        int rank = key->form == form && is_masked ? rank_of(key, family, dtype) : 0;
        if (rank > best_rank) best = i, best_rank = rank;
    }
    return best;
}

/* ---- products ---- */

static const char *dtype_of(pc_product_format format) {
    return pc_product_format_name(format);
}

/* A product's own fit. Gradients of one site do not go with another site's forward products: where those are of a table
 * of inference, which has the forward pass alone, gradients follow from them. */
static pc_kernel_answer product_of(const pc_profile *profile, pc_gemm_role role, const char *dtype) {
    int64_t own = best_fit(profile, PC_FIT_GEMM, products[role], dtype, false);
    int64_t forward = best_fit(profile, PC_FIT_GEMM, products[PC_GEMM_FORWARD], dtype, false);
    if (role == PC_GEMM_FORWARD || forward < 0) return answer_of(profile, own, dtype);
    const char *site = profile->fit[forward].key.site;
    if (site[0] == '\0' || (own >= 0 && strcmp(profile->fit[own].key.site, site) == 0))
        return answer_of(profile, own, dtype);
    pc_kernel_answer answer = answer_of(profile, forward, dtype);
    answer.way = role == PC_GEMM_INPUT_GRADIENT ? PC_ANSWER_INPUT_GRADIENT : PC_ANSWER_WEIGHT_GRADIENT;
    return answer;
}

static void set_products(pc_profile_index *index, int32_t answers_for) {
    for (int role = 0; role < 3; role++)
        for (int format = 0; format < PC_PRODUCT_FORMATS; format++) {
            pc_kernel_answer answer =
                product_of(index->profile, (pc_gemm_role)role, dtype_of((pc_product_format)format));
            if (!(answers_for & 1 << format)) answer = (pc_kernel_answer){.fit = -1, .is_silent = true};
            index->product[role][format] = answer;
        }
}

const pc_kernel_answer *pc_index_product(const pc_profile_index *index, const pc_operation *operation) {
    static const pc_product_format halves[] = {
        [PC_PRECISION_BF16] = PC_PRODUCT_BF16, [PC_PRECISION_FP16] = PC_PRODUCT_FP16};
    bool is_low = pc_product_format_is_low(operation->format);
    return &index->product[operation->role][is_low ? operation->format : halves[operation->precision]];
}

/* ---- attention ---- */

static int by_size(const void *a, const void *b) {
    const pc_head_answer *x = a, *y = b;
    return (x->head_dim > y->head_dim) - (x->head_dim < y->head_dim);
}

/* Keeps the better of two fits of one size: one that was measured as it is asked for, then the rank. */
static void take_head(pc_profile_index *index, int direction, int64_t number, pc_answer_way way) {
    const pc_fit *fits = index->profile->fit;
    const pc_fit_key *key = &fits[number].key;
    const bool is_low = !is_half(key->dtype);
    const char *dtype = is_low ? "fp8" : "bf16";
    pc_head_answer *head = index->head[is_low][direction][key->is_causal];
    int *count = &index->heads[is_low][direction][key->is_causal], at = 0;
    while (at < *count && head[at].head_dim != key->head_dim) at++;
    if (at == PC_INDEX_HEADS) return;
    pc_kernel_answer made = {number, way, false, NULL};
    if (at < *count) {
        const pc_kernel_answer *before = &head[at].answer;
        const pc_fit_key *other = &fits[before->fit].key;
        bool was_own = before->way != PC_ANSWER_BACKWARD, is_own = way != PC_ANSWER_BACKWARD;
        bool is_better =
            is_own != was_own ? is_own : rank_of(key, key->subject, dtype) > rank_of(other, other->subject, dtype);
        if (!is_better) return;
    } else {
        ++*count;
    }
    head[at] = (pc_head_answer){key->head_dim, made};
}

static void sort_heads(pc_profile_index *index, int is_low) {
    for (int direction = 0; direction < 2; direction++)
        for (int causal = 0; causal < 2; causal++)
            qsort(index->head[is_low][direction][causal], (size_t)index->heads[is_low][direction][causal],
                  sizeof(pc_head_answer), by_size);
}

/* In 16 bits it takes as long in both kinds; in 8 where it was measured so. */
static void set_heads(pc_profile_index *index) {
    for (int64_t i = 0; i < index->profile->fit_count; i++) {
        const pc_fit_key *key = &index->profile->fit[i].key;
        bool has_type = is_half(key->dtype) || strcmp(key->dtype, "fp8") == 0;
        if (key->form != PC_FIT_FLASH || key->window > 0 || !has_type) continue;
        bool is_forward = strcmp(key->subject, attentions[0]) == 0;
        if (is_forward) take_head(index, 0, i, way_of(key));
        if (is_forward) take_head(index, 1, i, PC_ANSWER_BACKWARD);
        if (strcmp(key->subject, attentions[1]) == 0) take_head(index, 1, i, way_of(key));
    }
    sort_heads(index, 0);
    sort_heads(index, 1);
}

static void set_attention(pc_profile_index *index, int32_t answers_for) {
    bool is_asked = answers_for & PC_KERNELS_FOR_ATTENTION;
    for (int direction = 0; direction < 2; direction++)
        for (int causal = 0; causal < 2; causal++)
            for (int precision = 0; precision < PC_INDEX_PRECISIONS; precision++) {
                int64_t fit =
                    best_fit(index->profile, PC_FIT_ATTENTION, attentions[direction], dtypes[precision], causal);
                index->attention[direction][causal][precision] = is_asked
                                                                     ? answer_of(index->profile, fit, dtypes[precision])
                                                                     : (pc_kernel_answer){.fit = -1, .is_silent = true};
            }
    index->no_low_attention = (pc_kernel_answer){.fit = -1, .is_silent = !is_asked};
    if (is_asked) set_heads(index);
}

const pc_kernel_answer *pc_index_attention(const pc_profile_index *index, const pc_operation *operation,
                                           double *scale) {
    int direction = operation->role != PC_GEMM_FORWARD, causal = operation->is_causal;
    int is_low = pc_product_format_is_low(operation->format);
    const pc_kernel_answer *own =
        is_low ? &index->no_low_attention : &index->attention[direction][causal][operation->precision];
    const pc_head_answer *head = index->head[is_low][direction][causal];
    *scale = 1.0;
    if (own->fit >= 0) return own;
    for (int i = 0; i < index->heads[is_low][direction][causal]; i++)
        if (head[i].head_dim >= operation->k) {
            *scale = (double)operation->k / (double)head[i].head_dim;
            return &head[i].answer;
        }
    return own;
}

/* ---- what goes by bytes ---- */

static void add_hash(uint64_t *hash, const char *text) {
    for (; *text; text++) *hash = (*hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
}

static size_t slot_of(const char *function, const char *direction) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    add_hash(&hash, function);
    add_hash(&hash, direction);
    return (size_t)(hash >> 20) % PC_INDEX_FAMILIES;
}

static bool is_family(const char *family, const char *function, const char *direction) {
    while (*function && *family == *function) family++, function++;
    return *function == '\0' && strcmp(family, direction) == 0;
}

/* Whether it is a new one. */
static bool set_family(pc_profile_index *index, const char *family) {
    size_t at = slot_of(family, "");
    for (; index->family[at].family; at = (at + 1) % PC_INDEX_FAMILIES)
        if (strcmp(index->family[at].family, family) == 0) return false;
    index->family[at].family = family;
    for (int p = 0; p < PC_INDEX_PRECISIONS; p++)
        index->family[at].answer[p] =
            answer_of(index->profile, best_fit(index->profile, PC_FIT_MEMORY, family, dtypes[p], false), dtypes[p]);
    return true;
}

/* Of a profile of the library that answers for some operations only, none of these. */
static void set_families(pc_profile_index *index, int32_t answers_for) {
    int families = 0;
    index->none = (pc_kernel_answer){.fit = -1, .is_silent = answers_for != PC_KERNELS_FOR_ALL};
    if (index->none.is_silent) return;
    for (int64_t i = 0; i < index->profile->fit_count && families < PC_INDEX_FAMILIES / 2; i++) {
        if (index->profile->fit[i].key.form == PC_FIT_MEMORY)
            families += set_family(index, index->profile->fit[i].key.subject);
    }
}

const pc_kernel_answer *pc_index_family(const pc_profile_index *index, const char *function, const char *direction,
                                        pc_precision precision) {
    for (size_t at = slot_of(function, direction); index->family[at].family; at = (at + 1) % PC_INDEX_FAMILIES)
        if (is_family(index->family[at].family, function, direction)) return &index->family[at].answer[precision];
    return &index->none;
}

void pc_profile_index_set(pc_profile_index *index, const pc_profile *profile, int32_t answers_for) {
    memset(index, 0, sizeof *index);
    index->profile = profile;
    set_products(index, answers_for);
    set_attention(index, answers_for);
    set_families(index, answers_for);
}
