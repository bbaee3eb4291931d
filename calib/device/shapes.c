#include "calib/device/measure_private.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "engine/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *pc_shape_tier_name(pc_shape_tier tier) {
    static const char *const names[PC_SHAPE_TIERS] = {
        [PC_SHAPE_CEILING] = "ceilings", [PC_SHAPE_COARSE] = "coarse grid", [PC_SHAPE_MODELS] = "shapes of models",
        [PC_SHAPE_FINE] = "fine grid",   [PC_SHAPE_HALF] = "fp16",
    };
    return names[tier];
}

/* ---- random numbers ---- */

int64_t pc_shape_draw(pc_shape_builder *builder, int64_t least, int64_t most, int64_t step) {
    double part = pc_unit_interval(pc_splitmix64(&builder->random));
    double drawn = (double)least * exp(part * log((double)most / (double)least));
    int64_t whole = (int64_t)(drawn / (double)step + 0.5) * step;
    return whole < least ? least : whole > most ? most : whole;
}

/* ---- adding ---- */

/* Bytes of all tensors, each rounded up; 0 if the family refuses the shape. */
static int64_t bytes_of_set(const pc_kernel_family *family, const pc_kernel_shape *shape) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count = 0;
    int64_t sum = 0;
    if (family->tensors(shape, tensors, &count, NULL)) return 0;
    for (int i = 0; i < count; i++) {
        int64_t bytes = tensors[i].count * pc_dtype_bytes(tensors[i].dtype);
        sum += pc_round_up(bytes, PC_SHAPE_ALIGNMENT);
    }
    return sum;
}

/* Field by field: a struct's padding has no value. */
static bool is_same_shape(const pc_kernel_shape *a, const pc_kernel_shape *b) {
    return a->dtype == b->dtype && a->low == b->low && a->scaling == b->scaling && a->batch == b->batch &&
           a->m == b->m && a->n == b->n && a->k == b->k && a->heads == b->heads && a->kv_heads == b->kv_heads &&
           a->is_causal == b->is_causal && a->accumulates == b->accumulates && a->epilogue == b->epilogue &&
           !(a->probability < b->probability) && !(a->probability > b->probability) && a->seed == b->seed;
}

static bool is_there(const pc_shape_list *list, const pc_kernel_family *family, const pc_kernel_shape *shape) {
    for (int64_t i = list->count; i-- > 0;)
        if (list->shape[i].family == family && is_same_shape(&list->shape[i].shape, shape)) return true;
    return false;
}

static bool make_room(pc_shape_list *list) {
    if (list->count < list->room) return true;
    int64_t room = list->room ? 2 * list->room : 256;
    pc_listed_shape *grown = pc_realloc(list->shape, (size_t)room, sizeof *grown);
    if (!grown) return false;
    list->shape = grown;
    list->room = room;
    return true;
}

/* As many as touch three times what the cache holds, and no more than a few GiB: of a table of which a launch reads few
 * rows, that is fewer. */
static int32_t sets_for(int64_t touched_bytes, int64_t set_bytes, int64_t l2_bytes, int64_t usable_bytes) {
    const int64_t most_bytes = (int64_t)4 << 30;
    int64_t room = usable_bytes < most_bytes ? usable_bytes : most_bytes, fit = room / set_bytes;
    if (touched_bytes > set_bytes || touched_bytes < 1) touched_bytes = set_bytes;
    int64_t wanted = pc_divide_up(PC_SHAPE_L2_TIMES * l2_bytes, touched_bytes);
    int64_t sets = wanted < fit ? wanted : fit;
    return sets < 1 ? 1 : (int32_t)sets;
}

static pc_listed_shape listed(const pc_kernel_family *family, const pc_kernel_shape *shape, pc_shape_tier tier,
                              int64_t set_bytes, int64_t l2_bytes, int64_t usable_bytes) {
    return (pc_listed_shape){.family = family,
                             .shape = *shape,
                             .tier = tier,
                             .set_bytes = set_bytes,
                             .sets = sets_for(family->bytes(shape), set_bytes, l2_bytes, usable_bytes)};
}

void pc_shape_add(pc_shape_builder *b, pc_shape_tier tier, const pc_kernel_shape *shape) {
    if (b->code || is_there(b->list, b->family, shape)) return;
    int64_t bytes = bytes_of_set(b->family, shape);
    if (bytes == 0) return;
    if (bytes > b->usable_bytes) {
        b->list->too_large++;
        return;
    }
    if (!make_room(b->list)) {
        b->code = pc_error_no_memory(b->error);
        return;
    }
    b->list->shape[b->list->count++] = listed(b->family, shape, tier, bytes, b->l2_bytes, b->usable_bytes);
}

/* ---- the list ---- */

/* What the context, the library's workspace and fragments may take is left alone. */
static int64_t usable(const pc_device_info *info) {
    return (info->memory_bytes - info->reserved_bytes) / 10 * 9;
}

/* Fisher and Yates, within each tier, which end up one behind the other. */
static void order(pc_shape_list *list, uint64_t *random) {
    for (int64_t i = list->count; i-- > 1;) {
        int64_t j = (int64_t)(pc_splitmix64(random) % (uint64_t)(i + 1));
        pc_listed_shape kept = list->shape[i];
        list->shape[i] = list->shape[j];
        list->shape[j] = kept;
    }
    int64_t done = 0;
    for (int tier = 0; tier < PC_SHAPE_TIERS; tier++)
        for (int64_t i = done; i < list->count; i++) {
            if ((int)list->shape[i].tier != tier) continue;
            pc_listed_shape found = list->shape[i];
            memmove(list->shape + done + 1, list->shape + done, (size_t)(i - done) * sizeof *list->shape);
            list->shape[done++] = found;
        }
}

static void add_family(pc_shape_builder *b, pc_calibrate_effort effort) {
    if (b->family->group == PC_KERNEL_GROUPED_GEMM)
        pc_shapes_of_grouped(b, effort);
    else if (b->family->low)
        pc_shapes_of_gemm_low(b, effort);
    else if (b->family->group == PC_KERNEL_GEMM)
        pc_shapes_of_gemm(b, effort);
    else if (b->family->group == PC_KERNEL_ATTENTION)
        pc_shapes_of_attention(b, effort);
    else
        pc_shapes_of_rows(b, effort);
}

pc_code pc_shape_list_make(const pc_kernel_family *const *families, int family_count, const pc_device_info *info,
                           pc_calibrate_effort effort, uint64_t seed, pc_shape_list *list, pc_error *error) {
    pc_shape_list made = {0};
    pc_shape_builder b = {
        .list = &made, .usable_bytes = usable(info), .l2_bytes = info->l2_bytes, .random = seed, .error = error};
    for (int i = 0; i < family_count && !b.code; i++) {
        b.family = families[i];
        add_family(&b, effort);
    }
    if (b.code) {
        pc_shape_list_free(&made);
        return b.code;
    }
    order(&made, &b.random);
    *list = made;
    return PC_OK;
}

void pc_shape_list_free(pc_shape_list *list) {
    pc_free(list->shape);
    *list = (pc_shape_list){0};
}

/* ---- sentinels ---- */

bool pc_shape_sentinel(const pc_kernel_family *const *families, int family_count, const pc_device_info *info,
                       pc_calibrate_effort effort, int number, pc_listed_shape *sentinel) {
    static const char *const names[] = {"gemm_forward", "copy"};
    const int64_t side = effort == PC_CALIBRATE_TINY ? 32 : 4096, rows = effort == PC_CALIBRATE_TINY ? 8 : 8192;
    const pc_kernel_shape shapes[] = {
        {.dtype = PC_BF16, .batch = 1, .m = side, .n = side, .k = side},
        {.dtype = PC_BF16, .m = rows, .n = effort == PC_CALIBRATE_TINY ? 64 : 8192},
    };
    if (number < 0 || number >= (int)(sizeof names / sizeof *names)) return false;
    for (int i = 0; i < family_count; i++) {
        if (strcmp(families[i]->name, names[number]) != 0) continue;
        int64_t bytes = bytes_of_set(families[i], &shapes[number]);
        if (bytes == 0 || bytes > usable(info)) return false;
        *sentinel = listed(families[i], &shapes[number], PC_SHAPE_CEILING, bytes, info->l2_bytes, usable(info));
        return true;
    }
    return false;
}

/* ---- estimates, words ---- */

double pc_shape_kernel_seconds(const pc_listed_shape *listed, const pc_shape_rates *rates) {
    const double share = 0.5; /* of the rates */
    double compute = (double)listed->family->flops(&listed->shape) / rates->flops_per_s;
    double memory = (double)listed->family->bytes(&listed->shape) / rates->bytes_per_s;
    return rates->launch_s + fmax(compute, memory) / share;
}

void pc_shape_text(const pc_kernel_family *family, const pc_kernel_shape *shape, char *text, int size) {
    char sizes[96], more[96] = "";
    if (family->group == PC_KERNEL_ATTENTION)
        snprintf(sizes, sizeof sizes,
                 "%" PRId64 " x %" PRId64 " heads (%" PRId64 "), %" PRId64 " x %" PRId64 " x %" PRId64, shape->batch,
                 shape->heads, shape->kv_heads, shape->m, shape->n, shape->k);
    else if (family->group == PC_KERNEL_GEMM || family->group == PC_KERNEL_GROUPED_GEMM)
        snprintf(sizes, sizeof sizes, "%" PRId64 " of %" PRId64 " x %" PRId64 " x %" PRId64, shape->batch, shape->m,
                 shape->n, shape->k);
    else
        snprintf(sizes, sizeof sizes, "%" PRId64 " x %" PRId64, shape->m, shape->n);
    if (shape->is_causal) snprintf(more, sizeof more, ", causal");
    snprintf(text, (size_t)size, "%s %s %s%s", family->name,
             family->low ? pc_low_name(shape->scaling) : pc_dtype_name(shape->dtype), sizes, more);
}
