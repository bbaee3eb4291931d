#include "models/workload/optimizer.h"

#include "engine/numbers.h"
#include "models/workload/cut.h"

enum { FP32_BYTES = 4, WEIGHT_BYTES = 2 };

const char *pc_optimizer_name(pc_optimizer_kind kind) {
    static const char *const names[] = {"adam", "sgd", "adafactor", "adam-8bit", "muon"};
    return names[kind];
}

bool pc_optimizer_is_precision_aware(const pc_optimizer *x) {
    return x->main_grads != PC_MAIN_GRADS_FP32 || x->main_params != PC_MAIN_PARAMS_FP32 ||
           x->exp_avg != PC_STATE_FP32 || x->exp_avg_sq != PC_STATE_FP32;
}

/* ---- what it holds ---- */

static int dtype_bytes(pc_state_dtype dtype) {
    return dtype == PC_STATE_FP32 ? 4 : dtype == PC_STATE_FP8 ? 1 : 2;
}

bool pc_optimizer_has_remainders(const pc_optimizer *x) {
    return pc_optimizer_is_precision_aware(x) && x->main_params == PC_MAIN_PARAMS_FP32;
}

static int master_bytes(const pc_optimizer *x) {
    return x->main_params == PC_MAIN_PARAMS_FP16 || pc_optimizer_has_remainders(x) ? 2 : FP32_BYTES;
}

static int moments_bytes(const pc_optimizer *x) {
    return dtype_bytes(x->exp_avg) + dtype_bytes(x->exp_avg_sq);
}

int64_t pc_optimizer_moment_bytes(const pc_optimizer *x, int64_t parameters) {
    switch (x->kind) {
    case PC_OPTIMIZER_SGD:
    case PC_OPTIMIZER_ADAFACTOR:
        return FP32_BYTES * parameters;
    case PC_OPTIMIZER_ADAM_8BIT:
        return 2 * (parameters + FP32_BYTES * pc_divide_up(parameters, PC_OPTIMIZER_BLOCK));
    default:
        return moments_bytes(x) * parameters;
    }
}

int64_t pc_optimizer_state_bytes(const pc_optimizer *x, int64_t parameters) {
    return master_bytes(x) * parameters + pc_optimizer_moment_bytes(x, parameters);
}

int pc_optimizer_copied_bytes(const pc_optimizer *x) {
    int tensors =
        (x->main_params == PC_MAIN_PARAMS_FP16) + (x->exp_avg != PC_STATE_FP32) + (x->exp_avg_sq != PC_STATE_FP32);
    return FP32_BYTES * tensors;
}

int64_t pc_optimizer_tensor_bytes(const pc_optimizer *x, int64_t parameters, int64_t rows, int64_t columns,
                                  bool is_in_layer) {
    if (x->kind == PC_OPTIMIZER_ADAFACTOR && columns > 0) return FP32_BYTES * (parameters + rows + columns);
    if (x->kind == PC_OPTIMIZER_MUON && is_in_layer) return 2 * (FP32_BYTES * parameters);
    return pc_optimizer_state_bytes(x, parameters);
}

/* ---- what its step moves ---- */

/* PyTorch's _single_tensor_adamw: the weight decays (8); each moment decays (8) and takes the gradient in (12); a root,
 * a quotient and a sum make the denominator (8 each); the weight takes the quotient off (16). Its copy to 16 bits (6).
 */
static int moved_by_separate_adam(int width) {
    return 8 + 2 * (8 + 12) + 3 * 8 + 16 + 6 + width - FP32_BYTES;
}

/* PyTorch's _single_tensor_sgd: the gradient takes the weight's decay in (12), the momentum decays (8) and takes that
 * in (12), the weight takes it off (12), and is copied (6). */
static int moved_by_separate_sgd(int width) {
    return 12 + 8 + 12 + 12 + 6 + width - FP32_BYTES;
}

/* Transformers' Adafactor: squares (8), their means over rows and columns (4 each), the outer product of the factors
 * (4), the update (12), its norm (4), the quotient (8), the rate (8), the weight (12), and its copy (6). */
static int moved_by_separate_adafactor(int width) {
    return 8 + 2 * 4 + 4 + 12 + 4 + 8 + 8 + 12 + 6 + width - FP32_BYTES;
}

/* Of a tensor of state. In fp32 the kernel reads it and writes it. A narrower one has an fp32 copy (w + 4), which the
 * kernel reads and writes (8). Back in bf16 it is cast (6) and copied (4). In 16 bits with a scale the copy is
 * multiplied by it (8); then its largest is found (4), it is divided (8) and copied (6); in 8 bits found (4) and
 * copied (5). */
static int moved_by_state(pc_state_dtype dtype) {
    int whole = 2 * FP32_BYTES, copied = dtype_bytes(dtype) + FP32_BYTES;
    switch (dtype) {
    case PC_STATE_BF16:
        return copied + whole + 6 + 4;
    case PC_STATE_FP16:
        return copied + 8 + whole + 4 + 8 + 6;
    case PC_STATE_FP8:
        return copied + whole + 4 + 5;
    default:
        return whole;
    }
}

/* A remainder is read and written beside the 16-bit weight, of which it is the rest. */
static int moved_by_master(const pc_optimizer *x) {
    if (pc_optimizer_has_remainders(x)) return 2 * WEIGHT_BYTES + WEIGHT_BYTES;
    return moved_by_state(x->main_params == PC_MAIN_PARAMS_FP16 ? PC_STATE_FP16 : PC_STATE_FP32);
}

static int moved_by_fused_adam(const pc_optimizer *x, int width) {
    return width + moved_by_master(x) + moved_by_state(x->exp_avg) + moved_by_state(x->exp_avg_sq) + WEIGHT_BYTES;
}

/* One kernel reads the gradient, and reads and writes weight and moments. Adafactor reads the gradient three times: for
 * the factors, for the update's norm, and for the update. The scales of 8-bit blocks are left out. */
int pc_optimizer_moved_bytes(const pc_optimizer *x, bool is_separate, int width) {
    switch (x->kind) {
    case PC_OPTIMIZER_SGD:
        return is_separate ? moved_by_separate_sgd(width) : width + 2 * (FP32_BYTES + FP32_BYTES) + WEIGHT_BYTES;
    case PC_OPTIMIZER_ADAFACTOR:
        return is_separate ? moved_by_separate_adafactor(width) : 3 * width + 2 * FP32_BYTES + WEIGHT_BYTES;
    case PC_OPTIMIZER_ADAM_8BIT:
        return width + 2 * (FP32_BYTES + 1 + 1) + WEIGHT_BYTES;
    default:
        return is_separate ? moved_by_separate_adam(width) : moved_by_fused_adam(x, width);
    }
}

/* The momentum takes the gradient in (8), the update is written in 16 bits (2), its norm is taken (2), it is divided by
 * it (4); the weight, read and written, takes the result off (2 and 8), and is copied (2). */
int pc_muon_moved_bytes(int width) {
    return width + 8 + 2 + 2 + 4 + 2 + 8 + WEIGHT_BYTES;
}

/* ---- what can be ---- */

/* Of whole matrices, of which ZeRO leaves none whole. */
static pc_code check_tensors(const pc_cut *cut, pc_error *error) {
    const char *name = pc_optimizer_name(cut->optimizer.kind);
    if (!pc_optimizer_takes_tensors(&cut->optimizer)) return PC_OK;
    if (pc_cut_frozen(cut))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "optimizer %s with frozen parameters; expected adam, sgd or adam-8bit", name);
    if (cut->zero == 0) return PC_OK;
    if (cut->zero > 1)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "optimizer %s with zero %d, which cuts matrices; expected zero 0 or 1", name, cut->zero);
    if (cut->zero_partition == PC_ZERO_PARTITION_TENSOR) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "optimizer %s with zero_partition even, which cuts matrices; expected zero_partition tensor",
                        name);
}

/* Megatron-LM has these dtypes of its distributed optimizer, whose step is one kernel. */
static pc_code check_dtypes(const pc_cut *cut, bool is_separate, bool has_fp32_shards, pc_error *error) {
    const pc_optimizer *x = &cut->optimizer;
    const char *why = NULL;
    if (!pc_optimizer_is_precision_aware(x)) return PC_OK;
    if (x->kind != PC_OPTIMIZER_ADAM)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "optimizer %s with a dtype other than fp32 of its state or gradients; expected adam, or "
                            "fp32",
                            pc_optimizer_name(x->kind));
    if (cut->zero == 0) why = "zero 0; expected zero 1 to 3";
    if (is_separate) why = "optimizer_kernels separate; expected fused";
    if (has_fp32_shards) why = "torch's FSDP, whose shards are fp32; expected fp32, or fsdp_version megatron";
    if (x->main_grads == PC_MAIN_GRADS_BF16 && pc_cut_gradient_bytes(cut) != 2)
        why = "gradient_bytes 4 cannot have main_grads_dtype bf16; expected gradient_bytes 2";
    if (!why) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "optimizer with a dtype other than fp32, and %s", why);
}

/* The host has Adam's step in fp32 alone (state_host.h). */
static pc_code check_host(const pc_cut *cut, pc_error *error) {
    const pc_optimizer *x = &cut->optimizer;
    bool is_plain = x->kind == PC_OPTIMIZER_ADAM && !pc_optimizer_is_precision_aware(x);
    if (is_plain || !(cut->offload.kinds & (PC_OFFLOAD_OPTIMIZER | PC_OFFLOAD_PARAMETERS))) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "offload of the optimizer with optimizer %s%s; expected adam in fp32, which the host steps",
                        pc_optimizer_name(x->kind), x->kind == PC_OPTIMIZER_ADAM ? " in few bits" : "");
}

pc_code pc_optimizer_check(const pc_cut *cut, bool is_separate, bool has_fp32_shards, pc_error *error) {
    pc_code code = check_tensors(cut, error);
    if (!code) code = check_host(cut, error);
    return code ? code : check_dtypes(cut, is_separate, has_fp32_shards, error);
}
