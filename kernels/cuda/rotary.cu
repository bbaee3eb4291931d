/* rotary.cu: rotary position embedding, in place on query and key, forward and backward (the turn the other way).
 *
 * The angle of a token and pair is the same in all heads: a thread makes it once and turns a group of heads by it. It
 * counts whole turns in double precision and takes them off: in fp32 an angle of 10^5 radians would be wrong by 0.01.
 */
#include "kernels/cuda/elementwise.cuh"

namespace {

constexpr int THREADS = 256;
constexpr int HEADS = 8; /* of a block, at most */
constexpr int UNDER_WAY = 4;

template <class T> struct rotary {
    T *query, *key;
    int64_t tokens, sequence; /* a token's position is its number modulo that */
    int heads, kv_heads, k;
    float direction;

    __device__ T *head(int64_t token, int number) const {
        if (number < heads) return query + (token * heads + number) * k;
        return key + (token * kv_heads + number - heads) * k;
    }
};

/* Turns a position of one pair i of k / 2: 10000^(-2 i / k) / (2 pi). */
__device__ inline double turns_of(int i, int k) {
    const double LOG2_BASE = 13.287712379549449, PER_RADIAN = 0.15915494309189535;
    return exp2(-2.0 * i / k * LOG2_BASE) * PER_RADIAN;
}

/* Sine and cosine of so many turns. */
__device__ inline void sincos_of_turns(double turns, float *sine, float *cosine) {
    float part = (float)(turns - rint(turns));
#ifdef PC_EMULATED
    *sine = sinf(6.2831853072f * part);
    *cosine = cosf(6.2831853072f * part);
#else
    sincospif(2.0f * part, sine, cosine);
#endif
}

/* Eight pairs of a head: vectors of the first and of the second half. */
template <class T> struct pairs { pc_vector<T> first, second; };

template <class T> __device__ inline pairs<T> turned(const pairs<T> &x, const float *sine, const float *cosine) {
    pairs<T> result;
#pragma unroll
    for (int i = 0; i < PC_EIGHT; i++) {
        float a = pc_to_float(x.first.value[i]), b = pc_to_float(x.second.value[i]);
        result.first.value[i] = pc_from_float<T>(a * cosine[i] - b * sine[i]);
        result.second.value[i] = pc_from_float<T>(b * cosine[i] + a * sine[i]);
    }
    return result;
}

/* Eight pairs of one token, in some heads. */
template <class T> struct column_of_heads {
    const rotary<T> &of;
    int64_t token;
    int lane, end; /* heads below `end` */

    __device__ T *at(int head) const { return of.head(token, head) + lane * PC_EIGHT; }
    __device__ void load(int start, pairs<T> *held) const {
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++)
            if (start + u < end)
                held[u] = {pc_load((const T *)at(start + u)), pc_load((const T *)at(start + u) + of.k / 2)};
    }
    __device__ void store(int start, const pairs<T> *held, const float *sine, const float *cosine) const {
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++) {
            if (start + u >= end) continue;
            pairs<T> result = turned(held[u], sine, cosine);
            pc_store(at(start + u), result.first);
            pc_store(at(start + u) + of.k / 2, result.second);
        }
    }
};

/* A thread takes one token, eight neighbouring pairs and HEADS heads; blockIdx.y is the group of heads. The first heads
 * are under way while the angles are made. */
template <class T> __global__ void __launch_bounds__(THREADS) rotary_wide(rotary<T> of) {
    PC_SHARED(double, turns);
    int half = of.k / 2, lanes = half / PC_EIGHT, tokens_here = THREADS / lanes;
    int lane = (int)threadIdx.x % lanes, place = (int)threadIdx.x / lanes;
    int64_t token = (int64_t)blockIdx.x * tokens_here + place;
    bool is_idle = place >= tokens_here || token >= of.tokens;
    int first = (int)blockIdx.y * HEADS, end = is_idle ? first : min(first + HEADS, of.heads + of.kv_heads);
    const column_of_heads<T> column = {of, token, lane, end};
    pairs<T> held[UNDER_WAY];
    column.load(first, held);
    for (int i = (int)threadIdx.x; i < half; i += THREADS) turns[i] = turns_of(i, of.k);
    __syncthreads();
    double position = (double)(token % of.sequence);
    float sine[PC_EIGHT], cosine[PC_EIGHT];
#pragma unroll
    for (int i = 0; i < PC_EIGHT; i++) {
        sincos_of_turns(position * turns[lane * PC_EIGHT + i], &sine[i], &cosine[i]);
        sine[i] *= of.direction;
    }
    for (int start = first; start < end; start += UNDER_WAY) {
        if (start > first) column.load(start, held);
        column.store(start, held, sine, cosine);
    }
}

/* A thread takes one pair of one head: any even k. */
template <class T> __global__ void __launch_bounds__(THREADS) rotary_narrow(rotary<T> of, int64_t count) {
    int64_t number = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (number >= count) return;
    int half = of.k / 2;
    pc_place pair = pc_place_of(number, half), head = pc_place_of(pair.row, of.heads + of.kv_heads);
    float sine, cosine;
    sincos_of_turns((double)(head.row % of.sequence) * turns_of((int)pair.column, of.k), &sine, &cosine);
    sine *= of.direction;
    T *at = of.head(head.row, (int)head.column) + pair.column;
    float a = pc_to_float(at[0]), b = pc_to_float(at[half]);
    at[0] = pc_from_float<T>(a * cosine - b * sine);
    at[half] = pc_from_float<T>(b * cosine + a * sine);
}

pc_code turn(const pc_task &task, const char *name, float direction) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        rotary<T> of = {task.tensor<T>(0), task.tensor<T>(1), s->m,      s->n,
                        (int)s->heads,     (int)s->kv_heads,  (int)s->k, direction};
        int64_t all = s->heads + s->kv_heads, groups = pc_divide_up(all, HEADS), lanes = s->k / 2 / PC_EIGHT;
        bool is_wide = pc_all_aligned(of.query, of.key) && s->k % (2 * PC_EIGHT) == 0 && lanes <= THREADS;
        if (!is_wide || groups > 65535) {
            int64_t count = s->m * all * (s->k / 2);
            return pc_run(task, PC_MAIN, name, rotary_narrow<T>, dim3((unsigned)pc_divide_up(count, THREADS)), THREADS,
                          0, of, count);
        }
        dim3 grid((unsigned)pc_divide_up(s->m, THREADS / lanes), (unsigned)groups);
        return pc_run(task, PC_MAIN, name, rotary_wide<T>, grid, THREADS, (size_t)(s->k / 2) * sizeof(double), of);
    });
}

pc_code rotary_forward(const pc_task &task) {
    return turn(task, "rotary_forward", 1.0f);
}

pc_code rotary_backward(const pc_task &task) {
    return turn(task, "rotary_backward", -1.0f);
}

} // namespace

PC_MEMORY_FAMILY(rotary_forward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
PC_MEMORY_FAMILY(rotary_backward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_INPUT_GRADIENT);
