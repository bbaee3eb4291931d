/* optimizer.cu: one step of AdamW over fp32 master weights, moments and gradients, and the weights in 16 bits. */
#include "kernels/cuda/elementwise.cuh"

#include <cmath>

namespace {

constexpr int FOUR = 4; /* floats of a vector */

/* What of pc_adam a parameter needs: the corrections of the moments are the same for all. */
struct adam_numbers {
    float rate, beta1, rest1, beta2, rest2, epsilon, decay, correct1, correct2;
};

adam_numbers numbers_of(const pc_adam &adam) {
    double beta1 = adam.beta1, beta2 = adam.beta2;
    return {adam.rate,
            adam.beta1,
            (float)(1.0 - beta1),
            adam.beta2,
            (float)(1.0 - beta2),
            adam.epsilon,
            adam.decay,
            (float)(1.0 / (1.0 - std::pow(beta1, adam.step))),
            (float)(1.0 / (1.0 - std::pow(beta2, adam.step)))};
}

__device__ inline void update(const adam_numbers &by, float gradient, float *master, float *momentum, float *variance) {
    *momentum = by.beta1 * *momentum + by.rest1 * gradient;
    *variance = by.beta2 * *variance + by.rest2 * gradient * gradient;
    float wanted = *momentum * by.correct1 / (sqrtf(*variance * by.correct2) + by.epsilon);
    *master -= by.rate * (wanted + by.decay * *master);
}

template <class T> struct adam_op {
    static constexpr int unroll = 1; /* eight loads already */
    const float *gradient;
    float *master, *momentum, *variance;
    T *weight;
    adam_numbers by;

    struct held {
        pc_vector<float> gradient[2], master[2], momentum[2], variance[2];
    };
    __device__ held load(int64_t v) const {
        held found;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t at = v * PC_EIGHT + half * FOUR;
            found.gradient[half] = pc_load(gradient + at);
            found.master[half] = pc_load((const float *)master + at);
            found.momentum[half] = pc_load((const float *)momentum + at);
            found.variance[half] = pc_load((const float *)variance + at);
        }
        return found;
    }
    __device__ void store(int64_t v, held of) const {
        pc_vector<T> rounded;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int64_t at = v * PC_EIGHT + half * FOUR;
#pragma unroll
            for (int i = 0; i < FOUR; i++) {
                update(by, of.gradient[half].value[i], &of.master[half].value[i], &of.momentum[half].value[i],
                       &of.variance[half].value[i]);
                rounded.value[half * FOUR + i] = pc_from_float<T>(of.master[half].value[i]);
            }
            pc_store(master + at, of.master[half]);
            pc_store(momentum + at, of.momentum[half]);
            pc_store(variance + at, of.variance[half]);
        }
        pc_store(weight + v * PC_EIGHT, rounded);
    }
    __device__ void single(int64_t e) const {
        update(by, gradient[e], &master[e], &momentum[e], &variance[e]);
        weight[e] = pc_from_float<T>(master[e]);
    }
};

pc_code adam(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        adam_op<T> op = {task.tensor<const float>(0), task.tensor<float>(1), task.tensor<float>(2),
                         task.tensor<float>(3),       task.tensor<T>(4),     numbers_of(pc_adam_usual())};
        bool is_wide = pc_all_aligned(op.gradient, op.master, op.momentum, op.variance, op.weight);
        return pc_run_flat(task, PC_MAIN, "adam", op, s->m * s->n, is_wide);
    });
}

} // namespace

PC_MEMORY_FAMILY(adam, PC_KERNEL_OPTIMIZER, PC_KERNEL_FORWARD);
