/* fake_nvml.h: what the made-up libnvidia-ml says. */
#ifndef PC_TESTS_FAKE_NVML_H
#define PC_TESTS_FAKE_NVML_H

typedef struct fake_nvml {
    int init;                 /* what opening says: 0 is success */
    int status, power_status; /* what questions are answered with */
    unsigned sm_mhz, memory_mhz, milliwatts, celsius;
    unsigned long long reasons;
    int users; /* opened and not closed */
} fake_nvml;

fake_nvml *fake_nvml_now(void);

#endif
