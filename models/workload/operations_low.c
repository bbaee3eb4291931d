/* What a recipe of low_precision.h adds to a layer's passes: casts, largest numbers, transpositions, rotations. A
 * forward product reads its input and its weights by rows. The products of gradients read columns of the input, of the
 * output's gradient and of the weights, which are other copies where the recipe says so. */
#include "models/workload/lora_base.h"
#include "models/workload/operations_private.h"

#include <assert.h>

typedef struct pc_operand {
    const char *name;
    pc_wide elements;
    int launches;     /* of what reads it once: one for each expert's rows */
    bool is_gathered; /* sequence parallelism gathers it, of which `elements` are this rank's part */
    bool is_fused;    /* what makes it stands last in the list, and may cast it too */
    bool is_adapted;  /* an adapter reads it in 16 bits */
    bool is_frozen;   /* W does not read it */
    bool is_low;      /* nobody casts it; W makes its own copy, if that is another */
} pc_operand;

static bool is_low(const pc_builder *b, pc_gemm_role role) {
    return b->low && pc_product_format_is_low(b->low->product[role]);
}

pc_product_format pc_low_format(const pc_builder *b, pc_gemm_role role) {
    if (is_low(b, role)) return b->low->product[role];
    return b->model->precision == PC_PRECISION_FP16 ? PC_PRODUCT_FP16 : PC_PRODUCT_BF16;
}

static pc_wide bytes_of(pc_product_format format, pc_wide elements) {
    return (elements * pc_product_format_bytes_of_32(format) + 31) / 32;
}

pc_wide pc_low_bytes(const pc_builder *b, pc_gemm_role role, pc_wide elements) {
    return bytes_of(pc_low_format(b, role), elements);
}

static void add(pc_builder *b, const char *name, const char *function, pc_product_format format, pc_wide bytes,
                int launches) {
    pc_add_kernel(b, PC_OPERATION_ELEMENTWISE, name, function, bytes, 1, launches);
    b->operations->list[b->operations->count - 1].format = format;
}

/* ---- activations and gradients ---- */

/* The rank has a part of the tensor, and a scale is of the whole. */
static void add_amax(pc_builder *b, const pc_operand *x, pc_product_format format) {
    if (!pc_low_precision_needs_amax(b->low)) return;
    if (!x->is_fused) {
        add(b, x->name, "amax", format, 2 * x->elements, x->launches);
        b->operations->list[b->operations->count - 1].is_within = true;
    }
    if (x->is_gathered && b->low->gathers_activations) pc_add_collective(b, PC_OPERATION_ALL_REDUCE, "amax", 4, false);
}

/* Its maker writes it in few bits, in place of the 16 unless these are kept, or an adapter reads them. */
static void fuse_cast(pc_builder *b, const pc_operand *x, pc_wide written) {
    pc_operation *maker = &b->operations->list[b->operations->count - 1];
    maker->bytes += (int64_t)(written - (b->low->keeps_inputs && !x->is_adapted ? 2 * x->elements : 0));
}

/* Reads 16 bits and writes `copies` in few. */
static void add_cast(pc_builder *b, const pc_operand *x, pc_product_format format, int copies) {
    pc_wide written = copies * bytes_of(format, x->elements);
    add_amax(b, x, format);
    if (x->is_fused && !pc_low_precision_needs_amax(b->low))
        fuse_cast(b, x, written);
    else {
        add(b, x->name, copies > 1 ? "cast_transpose" : "cast", format, 2 * x->elements + written, x->launches);
        b->operations->list[b->operations->count - 1].is_by_expert = x->launches > 1;
    }
}

/* What a tensor's transposition waits for: it is of the gathered bits. */
static bool is_late(const pc_builder *b, const pc_operand *x) {
    return x->is_gathered && b->low->gathers_activations && pc_low_precision_is_per_tensor(b->low);
}

/* Whether the cast for F, or for B, makes W's copy too. */
static bool is_for_w(const pc_builder *b, const pc_operand *x) {
    return b->low->keeps_inputs && is_low(b, PC_GEMM_WEIGHT_GRADIENT) && b->low->copies > 1 && !is_late(b, x) &&
           !x->is_frozen;
}

static void cast_operand(pc_builder *b, const pc_operand *x, pc_gemm_role role) {
    pc_product_format format = pc_low_format(b, role);
    if (!is_low(b, role) || x->is_low) return;
    add_cast(b, x, format, is_for_w(b, x) ? 2 : 1);
}

static bool fuses(const pc_builder *b, pc_maker maker) {
    if (b->is_eager) return false;
    if (maker == PC_MAKER_ACTIVATION && b->slice.fuses_operations) return true;
    return (maker == PC_MAKER_NORM && b->low->fuses_norm) || (maker == PC_MAKER_ACTIVATION && b->low->fuses_activation);
}

static pc_wide rows_of(const pc_builder *b) {
    return (pc_wide)b->slice.norm_tokens * b->slice.hidden;
}

static pc_operand input_of(const pc_builder *b, const pc_matrix *matrix) {
    bool is_column = matrix->is_column && !matrix->is_local;
    return (pc_operand){.name = matrix->name,
                        .launches = pc_grouped_launches(b, matrix),
                        .elements =
                            (is_column ? b->slice.norm_tokens : pc_matrix_rows(b, matrix)) * (pc_wide)matrix->inputs,
                        .is_gathered = is_column && b->slice.is_sequence_cut,
                        .is_adapted = pc_lora_is_at(&b->slice.lora, matrix->target),
                        .is_frozen = pc_matrix_is_frozen(b, matrix),
                        .is_low = matrix->input_is_low};
}

static pc_operand gradient_of(const pc_builder *b, const pc_matrix *matrix) {
    bool is_row = !matrix->is_column && !matrix->is_local;
    return (pc_operand){.name = matrix->name,
                        .launches = pc_grouped_launches(b, matrix),
                        .elements = is_row ? rows_of(b) : pc_matrix_rows(b, matrix) * (pc_wide)matrix->outputs,
                        .is_gathered = is_row && b->slice.is_sequence_cut,
                        .is_adapted = pc_lora_is_at(&b->slice.lora, matrix->target),
                        .is_frozen = pc_matrix_is_frozen(b, matrix),
                        .is_low = matrix->gradient_is_low};
}

void pc_add_input_cast(pc_builder *b, const pc_matrix *matrix, pc_maker maker) {
    if (!b->low) return;
    pc_operand x = input_of(b, matrix);
    x.is_fused = fuses(b, maker);
    cast_operand(b, &x, PC_GEMM_FORWARD);
}

void pc_add_gradient_cast(pc_builder *b, const pc_matrix *matrix, pc_maker maker) {
    if (!b->low) return;
    pc_operand x = gradient_of(b, matrix);
    x.is_fused = fuses(b, maker);
    cast_operand(b, &x, PC_GEMM_INPUT_GRADIENT);
}

/* ---- what W does itself ---- */

/* Of all tokens: a transposition of what was gathered, or came in few bits; or a cast of what was kept in 16 bits. */
static void add_late_copy(pc_builder *b, const pc_operand *x, pc_wide elements, pc_gemm_role cast_for) {
    pc_product_format format = pc_low_format(b, PC_GEMM_WEIGHT_GRADIENT);
    pc_wide low = bytes_of(format, elements);
    if (!b->low->keeps_inputs || !is_low(b, cast_for))
        add(b, x->name, b->low->rotates ? "hadamard" : "cast", format, 2 * elements + low, 1);
    else if ((is_late(b, x) || x->is_low) && b->low->copies > 1)
        add(b, x->name, "transpose", format, 2 * low, 1);
}

void pc_add_weight_gradient_casts(pc_builder *b, const pc_matrix *matrix) {
    if (matrix->is_wide || !is_low(b, PC_GEMM_WEIGHT_GRADIENT)) return;
    pc_operand input = input_of(b, matrix), gradient = gradient_of(b, matrix);
    add_late_copy(b, &input, pc_matrix_rows(b, matrix) * (pc_wide)matrix->inputs, PC_GEMM_FORWARD);
    add_late_copy(b, &gradient, pc_matrix_rows(b, matrix) * (pc_wide)matrix->outputs, PC_GEMM_INPUT_GRADIENT);
}

/* ---- gathers of sequence parallelism ---- */

/* What F gathers was cast, and so was what B gathers; W gathers what F kept. */
void pc_add_low_gather(pc_builder *b, const char *name, pc_gemm_role role, bool can_overlap) {
    bool is_kept_wide = b->low && role == PC_GEMM_WEIGHT_GRADIENT && !b->low->keeps_inputs;
    bool gathers_few = b->low && b->low->gathers_activations && !is_kept_wide && is_low(b, role);
    pc_wide elements = (pc_wide)b->slice.tokens * b->slice.hidden;
    if (!b->slice.is_sequence_cut) return;
    pc_add_collective(b, PC_OPERATION_ALL_GATHER, name, gathers_few ? pc_low_bytes(b, role, elements) : 2 * elements,
                      can_overlap);
}

/* ---- weights ---- */

/* Of a share of the passes, one in so many, as a mean: its launch, of so few passes, is left out then. */
static void add_share(pc_builder *b, const pc_matrix *matrix, const char *function, pc_wide bytes, int64_t passes) {
    add(b, matrix->name, function, b->low->product[0], bytes / passes, passes == 1 ? 1 : 0);
}

/* The first microbatch's F makes all copies. Where they are gathered in few bits there is only the transposition. */
static void add_once(pc_builder *b, const pc_matrix *matrix) {
    pc_wide elements = pc_matrix_weights(matrix), low = bytes_of(b->low->product[0], elements);
    bool is_there = b->low->weights == PC_LOW_WEIGHTS_HELD && b->low->gathers_parameters;
    if (is_there && b->low->copies > 1)
        add_share(b, matrix, "transpose", 2 * low, b->casts_over);
    else if (!is_there) {
        pc_wide read = pc_low_precision_needs_amax(b->low) ? 4 * elements : 2 * elements;
        add_share(b, matrix, "cast_transpose", read + b->low->copies * low, b->casts_over);
    }
}

/* Each pass makes its own copy, but for that which ZeRO 3 gathers in few bits: that has but to be transposed for B. */
static void add_each(pc_builder *b, const pc_matrix *matrix, pc_gemm_role role) {
    pc_wide elements = pc_matrix_weights(matrix), low = bytes_of(b->low->product[role], elements);
    pc_wide read = pc_low_precision_needs_amax(b->low) ? 4 * elements : 2 * elements;
    if (!b->gathers_low_weights)
        add(b, matrix->name, "cast", b->low->product[role], read + low, 1 + pc_low_precision_needs_amax(b->low));
    else if (role == PC_GEMM_INPUT_GRADIENT && b->low->copies > 1)
        add(b, matrix->name, "transpose", b->low->product[role], 2 * low, 1);
}

/* Frozen weights stay as they were cast before the first iteration. One that B must transpose stands once, and B does
 * so in every pass (NeMo's and Megatron-Bridge's disable_parameter_transpose_cache). */
static void add_frozen(pc_builder *b, const pc_matrix *matrix, pc_gemm_role role) {
    pc_wide low = bytes_of(b->low->product[role], pc_matrix_weights(matrix));
    bool is_once = pc_low_frozen_copies(b->low) < b->low->copies;
    if (role == PC_GEMM_INPUT_GRADIENT && is_once) add(b, matrix->name, "transpose", b->low->product[role], 2 * low, 1);
}

/* 4 bits become 16, which this product reads alone; expert by expert. */
static void add_from_nf4(pc_builder *b, const pc_matrix *matrix) {
    pc_wide elements = pc_matrix_weights(matrix);
    int launches = pc_grouped_launches(b, matrix);
    if (!matrix->target || matrix->is_wide || !pc_matrix_is_frozen(b, matrix)) return;
    add(b, matrix->name, "cast", PC_PRODUCT_NVFP4, pc_nf4_bytes((int64_t)elements) + 2 * elements, launches);
    b->operations->list[b->operations->count - 1].is_by_expert = launches > 1;
}

void pc_add_weight_cast(pc_builder *b, const pc_matrix *matrix, pc_gemm_role role) {
    if (b->slice.lora.base == PC_LORA_BASE_NF4) add_from_nf4(b, matrix);
    if (matrix->is_wide || !is_low(b, role)) return;
    if (pc_matrix_is_frozen(b, matrix) && b->low->weights != PC_LOW_WEIGHTS_EACH)
        add_frozen(b, matrix, role);
    else if (b->low->weights == PC_LOW_WEIGHTS_EACH)
        add_each(b, matrix, role);
    else if (role == PC_GEMM_FORWARD && !b->is_again)
        add_once(b, matrix);
}
