/* parallel.h: the same work on many items, on several threads. */
#ifndef PC_ENGINE_PARALLEL_H
#define PC_ENGINE_PARALLEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Works on item `index`, 0 .. count-1, as worker `worker`, 0 .. threads-1; a worker does one item at a time. What an
 * item gives must not depend on the worker or on the other items, so that the number of threads does not show. */
typedef void pc_parallel_work(void *context, int worker, int64_t index);

/* The processors of this machine, at least 1. */
int pc_parallel_processors(void);

/* Returns when all items are done. The caller's thread is worker 0; where the system gives fewer threads, fewer work.
 */
void pc_parallel_run(int threads, int64_t count, pc_parallel_work *work, void *context);

#ifdef __cplusplus
}
#endif
#endif
