/* nvml.h: what the board says of itself, through NVIDIA's management library where the machine has it. Never needed. */
#ifndef PC_KERNELS_CUDA_NVML_H
#define PC_KERNELS_CUDA_NVML_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_nvml pc_nvml;

/* `pci` as "0000:3B:00.0", the way in which CUDA and NVML name the same board. NULL if the library, the board or
 * the memory for it is missing: nothing is known then. */
pc_nvml *pc_nvml_open(const char *pci);
void pc_nvml_close(pc_nvml *nvml); /* NULL is fine */

/* All of it unknown where `nvml` is NULL; what a board does not tell is NaN. */
pc_device_state pc_nvml_state(pc_nvml *nvml);

/* The driver's own version, "580.65.06"; "" where unknown. */
void pc_nvml_driver(pc_nvml *nvml, char *text, int size);

#ifdef __cplusplus
}
#endif
#endif
