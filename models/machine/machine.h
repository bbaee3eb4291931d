/* machine.h: a cluster as plain data: GPU type, nodes, network; every number of a file comes with its source.
 *
 * Rates are of one direction. The network is: GPUs of a domain are joined by a switch (NVLink); beyond it messages
 * leave by the NICs of a node, reach a leaf switch, and, between leaves, cross the spine, which may be oversubscribed.
 */
#ifndef PC_MODELS_MACHINE_MACHINE_H
#define PC_MODELS_MACHINE_MACHINE_H

#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_MACHINE_NAME_SIZE = 128, PC_GPU_KERNELS_SIZE = 32, PC_GPU_DATE_SIZE = 12 };

/* What the times of a GPU's kernels stand on. */
typedef enum pc_gpu_basis { PC_GPU_DATASHEET, PC_GPU_FITTED, PC_GPU_MEASURED, PC_GPU_BASES } pc_gpu_basis;

/* "datasheet", "fitted to runs", "measured kernels". */
const char *pc_gpu_basis_name(pc_gpu_basis basis);

/* What measured kernels answer: products of a format, bit 1 << pc_product_format; flash attention; collectives,
 * messages and expert dispatch. */
enum { PC_KERNELS_FOR_ATTENTION = 1 << 16, PC_KERNELS_FOR_TRANSFERS = 1 << 17, PC_KERNELS_FOR_ALL = (1 << 18) - 1 };

/* A GPU: datasheet, and the profile by which roofline costs depart from it. */
typedef struct pc_gpu {
    char name[PC_MACHINE_NAME_SIZE];
    double matrix_flops_per_s;     /* dense, bf16 and fp16: the peak that MFU divides by */
    double matrix_fp8_flops_per_s; /* dense, of 8 bits; 0: it has none */
    double matrix_fp4_flops_per_s; /* dense, of 4 bits; 0: it has none */
    double vector_flops_per_s;     /* fp32 */
    double memory_bytes_per_s;
    double power_w; /* the most that the board takes, without its host; 0: not known */
    int64_t memory_bytes;
    int64_t memory_reserved_bytes; /* driver, context, communicators, fragments: not for tensors */
    int64_t l2_bytes;
    int32_t processors;   /* SMs, CUs */
    bool has_fp8_layouts; /* matrix units read 8 bits with a scale a tensor in any layout; else rows by rows alone */
    /* The profile. Fractions of the datasheet's rates are those of a large enough kernel alone. */
    int32_t tile_m, tile_n;      /* of GEMM kernels: work is quantised to whole waves of tiles over the processors */
    double gemm_efficiency;      /* of matrix_flops_per_s, full waves, k without end */
    double gemm_efficiency_fp4;  /* of the rate of 4 bits; 0: as gemm_efficiency_fp8 */
    double gemm_efficiency_fp8;  /* of the rate of 8 bits; 0: as gemm_efficiency */
    double split_accumulator;    /* times as long as products of 8 bits whose sums stay in the matrix units take those
                                  * that leave them for fp32 every so often; 0: the units add in fp32 */
    double gemm_ramp_k;          /* a GEMM of this k reaches half of that: prologue and epilogue of a tile */
    double attention_efficiency; /* flash kernels, forward */
    double flash_efficiency[3];  /* the same of FlashAttention 1, 2 and 3; 0: not known */
    double attention_backward;   /* times as long a FLOP as forward ones */
    double memory_efficiency;    /* of memory_bytes_per_s */
    double permute_efficiency;   /* likewise of copies of rows into the order of their experts and back; 0: the same */
    double unfused; /* how many times the bytes of fused kernels those between matrices move; 0: once, they are fused */
    double kernel_s;        /* what every kernel takes beside its work, on the GPU */
    double call_s;          /* host time of a framework's operator, with its first kernel; 0: launch_s */
    double launch_s;        /* host time a kernel: a pass takes no less than its launches */
    double module_s;        /* host time of an operation of an eager program of Transformer Engine's and Megatron's
                             * modules, with Python, autograd and its first kernel; 0: not known */
    double expert_s;        /* the same of each further expert that such an operation is launched for */
    double estimated_error; /* standard error of a pass's time, relative */
    /* Where the kernels are measured ones: the profile of the library that answers before the roofline does. */
    char kernels[PC_GPU_KERNELS_SIZE]; /* its name; "": there is none */
    int32_t kernels_for;               /* what it answers: bits as above; the roofline answers the rest */
    int32_t basis;                     /* pc_gpu_basis */
    char basis_date[PC_GPU_DATE_SIZE]; /* "2026-11-23": when these numbers were made; "": not known */
} pc_gpu;

/* A kind of connection, as messages see it: time = latency + bytes / (bandwidth * efficiency), the best of the
 * protocols; a low-latency protocol carries flags with the data and reaches a fraction of the bandwidth. */
typedef struct pc_connection {
    double bandwidth_bytes_per_s; /* datasheet: of a GPU into its switch; of a NIC */
    double efficiency;            /* of large messages */
    double latency_s;             /* a step of a collective, or a message; bulk protocol */
    double fast_latency_s;        /* the same of the low-latency protocol; 0: there is none */
    double fast_efficiency;
} pc_connection;

struct pc_transfer_model;

typedef struct pc_machine {
    char name[PC_MACHINE_NAME_SIZE];
    pc_gpu gpu;
    int32_t gpus_per_node;
    int32_t domain_gpus;  /* GPUs that a switch joins at full bandwidth; a multiple or a divisor of gpus_per_node */
    int32_t segment_gpus; /* of a domain that a job gets where it needs several domains and this divides it: whole
                           * nodes, as Slurm's `sbatch --segment` places them; 0: all of each domain */
    int32_t nics_per_node;
    int32_t nodes;                  /* how many there are; 0: as many as asked for */
    pc_connection domain;           /* NVLink, Infinity Fabric; bandwidth of a GPU */
    pc_connection network;          /* bandwidth of a NIC */
    int32_t leaf_nodes;             /* nodes under a leaf switch; 0: one switch joins all */
    double oversubscription;        /* of the leaves' uplinks: 1 is full bisection */
    double switch_latency_s;        /* more latency between leaves */
    bool reduces_in_switch;         /* all-reduce inside the domain in the switch (NVLS): (n+1)/n of the data instead of
                                     * 2(n-1)/n crosses a GPU's links */
    double in_switch_efficiency;    /* of domain.bandwidth_bytes_per_s, of such an all-reduce; 0: domain.efficiency */
    double in_switch_latency_s;     /* of the whole of it; 0: two steps of domain.latency_s */
    double nic_crossing_efficiency; /* a ring comes into a node and leaves it by different GPUs. Where none of its ranks
                                     * in the node have a NIC in common, it crosses from NIC to NIC (PCIe switches, host
                                     * bridges) and reaches this part of their rate; 0: all of it */
    double speed_variation;   /* relative standard deviation of speed from GPU to GPU: the slowest of those that work
                               * together sets the pace (models/cost/spread.h); 0: none */
    double collective_call_s; /* what starting any collective costs */
    double host_link_bytes_per_s;   /* of copies between a GPU and the host's memory, each way; 0: not known */
    int32_t host_link_gpus;         /* GPUs behind one such link, which share it where all copy; 0: one */
    int64_t host_memory_bytes;      /* of a node, shared evenly by its GPUs; 0: not known */
    double host_memory_bytes_per_s; /* of a node's processors and their memory, likewise; 0: not known */
    /* What was measured of its transfers (transfer_model.h): it answers first. Borrowed; NULL: nothing. */
    const struct pc_transfer_model *measured;
} pc_machine;

/* What is a GPU's while all copy: of the link to the host, of the host's memory and of its bandwidth; 0: not known. */
static inline double pc_machine_host_link(const pc_machine *machine) {
    return machine->host_link_bytes_per_s / (machine->host_link_gpus > 1 ? machine->host_link_gpus : 1);
}

static inline int64_t pc_machine_host_memory(const pc_machine *machine) {
    return machine->host_memory_bytes / machine->gpus_per_node;
}

static inline double pc_machine_host_bandwidth(const pc_machine *machine) {
    return machine->host_memory_bytes_per_s / machine->gpus_per_node;
}

/* Flash attention's kernels by their generation. BEST: attention_efficiency is theirs. */
typedef enum pc_attention_kernel {
    PC_ATTENTION_KERNEL_BEST,
    PC_ATTENTION_KERNEL_FLASH_1,
    PC_ATTENTION_KERNEL_FLASH_2,
    PC_ATTENTION_KERNEL_FLASH_3
} pc_attention_kernel;

/* Makes attention_efficiency that of these kernels. PC_ERROR_INPUT if it is not known; the gpu then stays. */
pc_code pc_gpu_choose_attention(pc_gpu *gpu, pc_attention_kernel kernel, pc_error *error);

/* The machine as a job of so many GPUs sees it: a job that takes segments has domains of segment_gpus, and under a leaf
 * as many nodes fewer. A job takes them if it is larger than a domain, a whole number of segments but not of domains,
 * and the machine has so many. Returns `machine` where it does not, and otherwise `seen`, written. Of a checked
 * machine.
 */
const pc_machine *pc_machine_of_job(const pc_machine *machine, int64_t gpus, pc_machine *seen);

/* PC_ERROR_INPUT names the first number that cannot be. */
pc_code pc_machine_check(const pc_machine *machine, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
