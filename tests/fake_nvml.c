/* A made-up libnvidia-ml, opened at run time as the real one is: the board at 0000:30:00.0, and what the test set. */
#include "tests/fake_nvml.h"

#include <stdio.h>
#include <string.h>

static fake_nvml now;
static int board;

fake_nvml *fake_nvml_now(void) {
    return &now;
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **to);
int nvmlDeviceGetClockInfo(void *of, int which, unsigned *mhz);
int nvmlDeviceGetPowerUsage(void *of, unsigned *milliwatts);
int nvmlDeviceGetTemperature(void *of, int sensor, unsigned *celsius);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *of, unsigned long long *mask);
int nvmlSystemGetDriverVersion(char *text, unsigned size);

int nvmlInit_v2(void) {
    now.users += now.init == 0;
    return now.init;
}

int nvmlShutdown(void) {
    now.users--;
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **to) {
    if (strcmp(pci, "0000:30:00.0") != 0) return 6; /* NVML_ERROR_NOT_FOUND */
    *to = &board;
    return 0;
}

static int tell(void *of, int status, unsigned value, unsigned *to) {
    if (of != &board) return 2; /* NVML_ERROR_INVALID_ARGUMENT */
    if (status == 0) *to = value;
    return status;
}

int nvmlDeviceGetClockInfo(void *of, int which, unsigned *mhz) {
    if (which != 1 && which != 2) return 2;
    return tell(of, now.status, which == 1 ? now.sm_mhz : now.memory_mhz, mhz);
}

int nvmlDeviceGetPowerUsage(void *of, unsigned *milliwatts) {
    return tell(of, now.power_status, now.milliwatts, milliwatts);
}

int nvmlDeviceGetTemperature(void *of, int sensor, unsigned *celsius) {
    return sensor == 0 ? tell(of, now.status, now.celsius, celsius) : 2;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *of, unsigned long long *mask) {
    if (of != &board || now.status != 0) return 2;
    *mask = now.reasons;
    return 0;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    snprintf(text, size, "580.65.06");
    return 0;
}
