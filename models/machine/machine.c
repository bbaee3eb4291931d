#include "models/machine/machine.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>

const char *pc_gpu_basis_name(pc_gpu_basis basis) {
    static const char *const names[PC_GPU_BASES] = {"datasheet", "fitted to runs", "measured kernels"};
    return names[basis];
}

/* ---- numbers and what they may be ---- */

typedef enum bound { POSITIVE, NOT_NEGATIVE, FRACTION, FRACTION_OR_ZERO } bound;

typedef struct rule {
    const char *name;
    double value;
    bound bound;
} rule;

static const char *const expected_of[] = {
    [POSITIVE] = "a number above zero",
    [NOT_NEGATIVE] = "a number not below zero",
    [FRACTION] = "a fraction above 0 and up to 1",
    [FRACTION_OR_ZERO] = "a fraction from 0 to 1",
};

static bool holds(const rule *limit) {
    if (!isfinite(limit->value)) return false;
    switch (limit->bound) {
    case POSITIVE:
        return limit->value > 0.0;
    case NOT_NEGATIVE:
        return limit->value >= 0.0;
    case FRACTION:
        return limit->value > 0.0 && limit->value <= 1.0;
    case FRACTION_OR_ZERO:
        return limit->value >= 0.0 && limit->value <= 1.0;
    }
    return false;
}

static pc_code check_rules(const pc_machine *machine, const char *part, const rule *rules, size_t count,
                           pc_error *error) {
    for (size_t i = 0; i < count; i++)
        if (!holds(&rules[i]))
            return pc_error_set(error, PC_ERROR_INPUT, "machine %s: %s%s: %g; expected %s", machine->name, part,
                                rules[i].name, rules[i].value, expected_of[rules[i].bound]);
    return PC_OK;
}

#define CHECK_RULES(part, rules) check_rules(machine, part, rules, sizeof(rules) / sizeof *(rules), error)

/* ---- the parts ---- */

static pc_code check_gpu(const pc_machine *machine, pc_error *error) {
    const pc_gpu *x = &machine->gpu;
    const rule rules[] = {
        {"matrix", x->matrix_flops_per_s, POSITIVE},
        {"matrix_fp8", x->matrix_fp8_flops_per_s, NOT_NEGATIVE},
        {"matrix_fp4", x->matrix_fp4_flops_per_s, NOT_NEGATIVE},
        {"vector", x->vector_flops_per_s, POSITIVE},
        {"memory_bandwidth", x->memory_bytes_per_s, POSITIVE},
        {"memory", (double)x->memory_bytes, POSITIVE},
        {"reserved", (double)x->memory_reserved_bytes, NOT_NEGATIVE},
        {"l2", (double)x->l2_bytes, NOT_NEGATIVE},
        {"processors", x->processors, POSITIVE},
        {"power", x->power_w, NOT_NEGATIVE},
        {"tile (rows)", x->tile_m, POSITIVE},
        {"tile (columns)", x->tile_n, POSITIVE},
        {"gemm_efficiency", x->gemm_efficiency, FRACTION},
        {"gemm_efficiency_fp8", x->gemm_efficiency_fp8, FRACTION_OR_ZERO},
        {"gemm_efficiency_fp4", x->gemm_efficiency_fp4, FRACTION_OR_ZERO},
        {"split_accumulator", x->split_accumulator, NOT_NEGATIVE},
        {"gemm_ramp_k", x->gemm_ramp_k, NOT_NEGATIVE},
        {"attention_efficiency", x->attention_efficiency, FRACTION},
        {"flash_1", x->flash_efficiency[0], FRACTION_OR_ZERO},
        {"flash_2", x->flash_efficiency[1], FRACTION_OR_ZERO},
        {"flash_3", x->flash_efficiency[2], FRACTION_OR_ZERO},
        {"attention_backward", x->attention_backward, POSITIVE},
        {"memory_efficiency", x->memory_efficiency, FRACTION},
        {"permute_efficiency", x->permute_efficiency, FRACTION_OR_ZERO},
        {"unfused", x->unfused, NOT_NEGATIVE},
        {"kernel", x->kernel_s, NOT_NEGATIVE},
        {"call", x->call_s, NOT_NEGATIVE},
        {"launch", x->launch_s, NOT_NEGATIVE},
        {"module", x->module_s, NOT_NEGATIVE},
        {"expert", x->expert_s, NOT_NEGATIVE},
        {"estimated_error", x->estimated_error, NOT_NEGATIVE},
    };
    pc_code code = CHECK_RULES("gpu: ", rules);
    if (code || x->memory_reserved_bytes < x->memory_bytes) return code;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "gpu: reserved: %" PRId64 " bytes of a memory of %" PRId64 "; expected less than all of it",
                        x->memory_reserved_bytes, x->memory_bytes);
}

static pc_code check_connection(const pc_machine *machine, const char *part, const pc_connection *connection,
                                pc_error *error) {
    const rule rules[] = {
        {"bandwidth", connection->bandwidth_bytes_per_s, POSITIVE},
        {"efficiency", connection->efficiency, FRACTION},
        {"latency", connection->latency_s, NOT_NEGATIVE},
        {"fast_latency", connection->fast_latency_s, NOT_NEGATIVE},
        {"fast_efficiency", connection->fast_efficiency,
         connection->fast_latency_s > 0.0 ? FRACTION : FRACTION_OR_ZERO},
    };
    return CHECK_RULES(part, rules);
}

static pc_code check_shape(const pc_machine *machine, pc_error *error) {
    const rule rules[] = {
        {"gpus_per_node", machine->gpus_per_node, POSITIVE},
        {"domain_gpus", machine->domain_gpus, POSITIVE},
        {"segment_gpus", machine->segment_gpus, NOT_NEGATIVE},
        {"nics_per_node", machine->nics_per_node, NOT_NEGATIVE},
        {"nodes", machine->nodes, NOT_NEGATIVE},
        {"leaf_nodes", machine->leaf_nodes, NOT_NEGATIVE},
        {"oversubscription", machine->oversubscription, machine->leaf_nodes > 0 ? POSITIVE : NOT_NEGATIVE},
        {"switch_latency", machine->switch_latency_s, NOT_NEGATIVE},
        {"in_switch_efficiency", machine->in_switch_efficiency, FRACTION_OR_ZERO},
        {"in_switch_latency", machine->in_switch_latency_s, NOT_NEGATIVE},
        {"nic_crossing_efficiency", machine->nic_crossing_efficiency, FRACTION_OR_ZERO},
        {"speed_variation", machine->speed_variation, FRACTION_OR_ZERO},
        {"collective_call", machine->collective_call_s, NOT_NEGATIVE},
        {"host_link", machine->host_link_bytes_per_s, NOT_NEGATIVE},
        {"host_link_gpus", machine->host_link_gpus, NOT_NEGATIVE},
        {"host_memory", (double)machine->host_memory_bytes, NOT_NEGATIVE},
        {"host_memory_bandwidth", machine->host_memory_bytes_per_s, NOT_NEGATIVE},
    };
    pc_code code = CHECK_RULES("", rules);
    if (code) return code;
    if (machine->domain_gpus % machine->gpus_per_node != 0 && machine->gpus_per_node % machine->domain_gpus != 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "machine %s: domain_gpus: %" PRId32 "; expected a multiple or a divisor of the %" PRId32
                            " GPUs of a node",
                            machine->name, machine->domain_gpus, machine->gpus_per_node);
    if (machine->segment_gpus > machine->domain_gpus || machine->segment_gpus % machine->gpus_per_node != 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "machine %s: segment_gpus: %" PRId32 "; expected whole nodes of %" PRId32
                            " GPUs, at most the %" PRId32 " of a domain",
                            machine->name, machine->segment_gpus, machine->gpus_per_node, machine->domain_gpus);
    if (machine->leaf_nodes > 0 && (int64_t)machine->leaf_nodes * machine->gpus_per_node % machine->domain_gpus != 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "machine %s: leaf_nodes: %" PRId32 " of %" PRId32
                            " GPUs; expected whole domains of %" PRId32 " GPUs under a leaf",
                            machine->name, machine->leaf_nodes, machine->gpus_per_node, machine->domain_gpus);
    return PC_OK;
}

pc_code pc_gpu_choose_attention(pc_gpu *gpu, pc_attention_kernel kernel, pc_error *error) {
    if (kernel == PC_ATTENTION_KERNEL_BEST) return PC_OK;
    double efficiency = gpu->flash_efficiency[kernel - PC_ATTENTION_KERNEL_FLASH_1];
    if (!(efficiency > 0.0))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "flash-%d: how fast it is on %s is not known; expected best, or profile.flash_%d in the "
                            "GPU's file",
                            (int)kernel, gpu->name, (int)kernel);
    gpu->attention_efficiency = efficiency;
    return PC_OK;
}

/* Whether all of its GPUs are in one domain, so that it needs no network. */
static bool is_one_domain(const pc_machine *machine) {
    return machine->nodes > 0 && (int64_t)machine->nodes * machine->gpus_per_node <= machine->domain_gpus;
}

/* ---- what a job sees ---- */

/* In how many segments all the machine's nodes are, those that fill no whole domain included; -1: any number. */
static int64_t segments_of(const pc_machine *machine) {
    int64_t gpus = (int64_t)machine->nodes * machine->gpus_per_node, domain = machine->domain_gpus;
    return machine->nodes == 0
               ? -1
               : gpus / domain * (domain / machine->segment_gpus) + gpus % domain / machine->segment_gpus;
}

static bool takes_segments(const pc_machine *machine, int64_t gpus) {
    if (machine->segment_gpus == 0 || gpus <= machine->domain_gpus) return false;
    if (gpus % machine->segment_gpus != 0 || gpus % machine->domain_gpus == 0) return false;
    int64_t there = segments_of(machine);
    return there < 0 || gpus / machine->segment_gpus <= there;
}

const pc_machine *pc_machine_of_job(const pc_machine *machine, int64_t gpus, pc_machine *seen) {
    if (!takes_segments(machine, gpus)) return machine;
    *seen = *machine;
    seen->domain_gpus = machine->segment_gpus;
    int64_t leaf_domains = (int64_t)machine->leaf_nodes * machine->gpus_per_node / machine->domain_gpus;
    seen->leaf_nodes = (int32_t)(leaf_domains * machine->segment_gpus / machine->gpus_per_node);
    return seen;
}

pc_code pc_machine_check(const pc_machine *machine, pc_error *error) {
    pc_code code = check_gpu(machine, error);
    if (!code) code = check_shape(machine, error);
    if (!code && machine->domain_gpus > 1) code = check_connection(machine, "domain: ", &machine->domain, error);
    if (code || is_one_domain(machine)) return code;
    if (machine->nics_per_node == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "machine %s: nics_per_node: 0; expected one or more, for a domain does not hold all GPUs",
                            machine->name);
    return check_connection(machine, "network: ", &machine->network, error);
}
