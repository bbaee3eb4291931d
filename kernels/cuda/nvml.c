/* NVML without its header, which not every toolkit has: the few functions, types and numbers below are those of
 * NVIDIA's 'NVML API Reference Guide' (modules Initialization, Device Queries and Clocks Event Reasons), stable since
 * NVML 5. */
#include "kernels/cuda/nvml.h"

#include "engine/alloc.h"
#include "kernels/cuda/loaded_library.h"

#include <math.h>
#include <stdio.h>

typedef int nvml_return; /* nvmlReturn_t: NVML_SUCCESS is 0 */
typedef struct nvml_device *nvml_handle;

enum { NVML_SUCCESS = 0 };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 }; /* nvmlClockType_t */
enum { NVML_TEMPERATURE_GPU = 0 };              /* nvmlTemperatureSensors_t */

/* Reasons for a clock below the highest one that are no choice and no lack of work (nvmlClocksEventReason*). */
enum {
    NVML_SW_POWER_CAP = 0x4,
    NVML_HW_SLOWDOWN = 0x8,
    NVML_SW_THERMAL_SLOWDOWN = 0x20,
    NVML_HW_THERMAL_SLOWDOWN = 0x40,
    NVML_HW_POWER_BRAKE_SLOWDOWN = 0x80,
    NVML_THROTTLED = NVML_SW_POWER_CAP | NVML_HW_SLOWDOWN | NVML_SW_THERMAL_SLOWDOWN | NVML_HW_THERMAL_SLOWDOWN |
                     NVML_HW_POWER_BRAKE_SLOWDOWN
};

struct pc_nvml {
    void *library;
    nvml_handle board;
    nvml_return (*init)(void);
    nvml_return (*shutdown)(void);
    nvml_return (*by_pci)(const char *, nvml_handle *);
    nvml_return (*clock)(nvml_handle, int, unsigned *);               /* MHz */
    nvml_return (*power)(nvml_handle, unsigned *);                    /* mW */
    nvml_return (*temperature)(nvml_handle, int, unsigned *);         /* degrees Celsius */
    nvml_return (*reasons)(nvml_handle, unsigned long long *);        /* a bit mask */
    nvml_return (*reasons_before)(nvml_handle, unsigned long long *); /* the same by its name until driver 535 */
    nvml_return (*driver)(char *, unsigned);
};

static pc_code open_library(pc_nvml *nvml) {
    static const char *const names[] = {"libnvidia-ml.so.1", "libnvidia-ml.so", NULL};
    const pc_shared_library_entry entries[] = {
        {"nvmlInit_v2", &nvml->init, false},
        {"nvmlShutdown", &nvml->shutdown, false},
        {"nvmlDeviceGetHandleByPciBusId_v2", &nvml->by_pci, false},
        {"nvmlDeviceGetClockInfo", &nvml->clock, true},
        {"nvmlDeviceGetPowerUsage", &nvml->power, true},
        {"nvmlDeviceGetTemperature", &nvml->temperature, true},
        {"nvmlDeviceGetCurrentClocksEventReasons", &nvml->reasons, true},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", &nvml->reasons_before, true},
        {"nvmlSystemGetDriverVersion", &nvml->driver, true},
    };
    return pc_shared_library_open("NVML", "NVIDIA's driver", names, entries, sizeof entries / sizeof *entries,
                                  &nvml->library, NULL);
}

pc_nvml *pc_nvml_open(const char *pci) {
    pc_nvml *nvml = pc_alloc(1, sizeof *nvml);
    if (!nvml) return NULL;
    if (open_library(nvml) != PC_OK) {
        pc_free(nvml);
        return NULL;
    }
    bool is_ready = nvml->init() == NVML_SUCCESS;
    if (is_ready && nvml->by_pci(pci, &nvml->board) == NVML_SUCCESS) return nvml;
    if (is_ready) (void)nvml->shutdown();
    pc_shared_library_close(nvml->library);
    pc_free(nvml);
    return NULL;
}

void pc_nvml_close(pc_nvml *nvml) {
    if (!nvml) return;
    (void)nvml->shutdown();
    pc_shared_library_close(nvml->library);
    pc_free(nvml);
}

static double scaled(nvml_return status, unsigned value, double scale) {
    return status == NVML_SUCCESS ? (double)value * scale : NAN;
}

static double clock_hz(pc_nvml *nvml, int which) {
    unsigned mhz = 0;
    if (!nvml->clock) return NAN;
    nvml_return status = nvml->clock(nvml->board, which, &mhz);
    return scaled(status, mhz, 1e6);
}

static bool is_throttled(pc_nvml *nvml) {
    unsigned long long reasons = 0;
    if (!nvml->reasons) nvml->reasons = nvml->reasons_before;
    if (!nvml->reasons || nvml->reasons(nvml->board, &reasons) != NVML_SUCCESS) return false;
    return (reasons & NVML_THROTTLED) != 0;
}

pc_device_state pc_nvml_state(pc_nvml *nvml) {
    pc_device_state state = {.sm_clock_hz = NAN, .memory_clock_hz = NAN, .watts = NAN, .celsius = NAN};
    if (!nvml) return state;
    state.sm_clock_hz = clock_hz(nvml, NVML_CLOCK_SM);
    state.memory_clock_hz = clock_hz(nvml, NVML_CLOCK_MEM);
    unsigned value = 0;
    if (nvml->power) {
        nvml_return status = nvml->power(nvml->board, &value);
        state.watts = scaled(status, value, 1e-3);
    }
    if (nvml->temperature) {
        nvml_return status = nvml->temperature(nvml->board, NVML_TEMPERATURE_GPU, &value);
        state.celsius = scaled(status, value, 1);
    }
    state.is_throttled = is_throttled(nvml);
    state.is_known = !isnan(state.sm_clock_hz);
    return state;
}

void pc_nvml_driver(pc_nvml *nvml, char *text, int size) {
    char found[96] = "";
    if (nvml && nvml->driver && nvml->driver(found, sizeof found) != NVML_SUCCESS) found[0] = '\0';
    snprintf(text, (size_t)size, "%s", found);
}
