/* attention_shim.h: what a shared library has to offer to run attention in place of our kernels
 * (`--attention-library`).
 *
 * For who has a faster one: cuDNN, or a project's kernels behind a few lines of C++. This header stands alone. The
 * library is opened at run time. What it gives is compared with our own kernel's results before it is timed beside it,
 * and it runs where it is right and faster.
 *
 * Tensors lie on the device, row-major. Of shape [batch, m, heads, k] are query, out and their gradients; of [batch, n,
 * kv_heads, k] key, value and their gradients. The logarithms `log_sum`, float [batch, heads, m], are natural ones of
 * the sums of exp(score), with score = query * key / sqrt(k). Causal: query i of m sees the keys up to i + n - m; one
 * that sees none has out 0, log_sum -inf and gives no gradient. heads / kv_heads neighbouring query heads share a
 * key/value head.
 */
#ifndef PC_KERNELS_ATTENTION_SHIM_H
#define PC_KERNELS_ATTENTION_SHIM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_ATTENTION_SHIM_VERSION = 1 }; /* of this page: another one means another call */

enum { PC_ATTENTION_SHIM_BF16, PC_ATTENTION_SHIM_FP16 }; /* of all tensors but log_sum */

typedef struct pc_attention_shim_call {
    int32_t dtype, is_causal;
    int64_t batch, m, n, k, heads, kv_heads;
    void *stream; /* a cudaStream_t: everything is to be enqueued there, and nothing waited for */
    const void *query, *key, *value;
    void *out;                                            /* forward writes it; backward only reads it */
    float *log_sum;                                       /* likewise */
    const void *out_gradient;                             /* backward alone, as what follows; NULL in forward */
    void *query_gradient, *key_gradient, *value_gradient; /* written */
} pc_attention_shim_call;

enum { PC_ATTENTION_SHIM_DONE = 0, PC_ATTENTION_SHIM_UNSUPPORTED = 1 /* of such a shape; all others: a fault */ };

/* What the library defines, with C linkage. The first call of a shape may allocate and choose; later ones may be
 * recorded into a CUDA graph, and must not. The same input has to give the same bytes. */
int32_t pc_attention_shim_version(void);  /* returns PC_ATTENTION_SHIM_VERSION */
const char *pc_attention_shim_name(void); /* "cudnn 9.1": for the profile; static storage */
int32_t pc_attention_shim_forward(const pc_attention_shim_call *call);
int32_t pc_attention_shim_backward(const pc_attention_shim_call *call);

#ifdef __cplusplus
}
#endif
#endif
