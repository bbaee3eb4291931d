#include "engine/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS_MAX = 1024 };

typedef struct shared {
    atomic_llong next;
    int64_t count;
    pc_parallel_work *work;
    void *context;
} shared;

typedef struct worker {
    shared *shared;
    int number;
} worker;

static void *run_worker(void *context) {
    worker *w = context;
    for (int64_t i; (i = atomic_fetch_add(&w->shared->next, 1)) < w->shared->count;)
        w->shared->work(w->shared->context, w->number, i);
    return NULL;
}

int pc_parallel_processors(void) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online < 1 ? 1 : online > THREADS_MAX ? THREADS_MAX : (int)online;
}

void pc_parallel_run(int threads, int64_t count, pc_parallel_work *work, void *context) {
    shared all = {.count = count, .work = work, .context = context};
    pthread_t thread[THREADS_MAX];
    worker workers[THREADS_MAX];
    int started = 1;
    if (threads > THREADS_MAX) threads = THREADS_MAX;
    if (threads > count) threads = (int)count;
    for (; started < threads; started++) {
        workers[started] = (worker){&all, started};
        if (pthread_create(&thread[started], NULL, run_worker, &workers[started])) break;
    }
    workers[0] = (worker){&all, 0};
    run_worker(&workers[0]);
    /* cppcheck-suppress uninitvar ; pthread_create has filled those before `started` */
    for (int i = 1; i < started; i++) pthread_join(thread[i], NULL);
}
