/* adam.h: the numbers of the fused optimizer step (family adam), shared by its kernel and its reference. */
#ifndef PC_KERNELS_ADAM_H
#define PC_KERNELS_ADAM_H

/* AdamW (Kingma, Ba: arXiv 1412.6980, algorithm 1; Loshchilov, Hutter: arXiv 1711.05101, algorithm 2). */
typedef struct pc_adam {
    float rate, beta1, beta2, epsilon, decay;
    int step; /* from 1: how far the moments are from their start at 0 */
} pc_adam;

/* The family has no room for them in its shape, and they cost no time: one step in the middle of a training with the
 * usual numbers (Brown et al.: arXiv 2005.14165, appendix B). */
static inline pc_adam pc_adam_usual(void) {
    pc_adam usual = {1e-4f, 0.9f, 0.95f, 1e-8f, 0.1f, 1000};
    return usual;
}

#endif
