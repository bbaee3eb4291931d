#include "cli/batch.h"

#include "engine/alloc.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* A place in the ring: run i is worked on in place i % size, from when run i - size has been handed over. */
typedef struct place {
    pc_run_spec spec;
    pc_run_row row;
    pc_run_detail detail;
    pc_error error;
    bool is_done;
} place;

typedef struct batch {
    pthread_mutex_t lock;
    pthread_cond_t work_done, room_made;
    int64_t count, next, handed_over;
    bool is_cancelled;
    place *places;
    int64_t place_count;
    batch_source *source;
    void *context;
} batch;

static void work(batch *b, int64_t index, place *p) {
    if (!b->source(b->context, index, &p->spec, &p->error)) pc_run(&p->spec, &p->row, &p->detail, &p->error);
}

/* Empty again, as at the start: call with the lock held, for whoever waits for this place looks at is_done. */
static void clear_place(place *p) {
    pc_run_detail_free(&p->detail);
    pc_run_spec_free(&p->spec);
    memset(p, 0, sizeof *p);
}

/* The next run to work on, or -1 where there is none left; waits for room in the ring. Call with the lock held. */
static int64_t claim(batch *b) {
    while (!b->is_cancelled && b->next < b->count && b->next >= b->handed_over + b->place_count)
        pthread_cond_wait(&b->room_made, &b->lock);
    return b->is_cancelled || b->next >= b->count ? -1 : b->next++;
}

static void *worker(void *context) {
    batch *b = context;
    pthread_mutex_lock(&b->lock);
    for (int64_t index; (index = claim(b)) >= 0;) {
        place *p = &b->places[index % b->place_count];
        pthread_mutex_unlock(&b->lock);
        work(b, index, p);
        pthread_mutex_lock(&b->lock);
        p->is_done = true;
        pthread_cond_signal(&b->work_done);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* Waits for run `index` and gives it to the sink. */
static pc_code hand_over(batch *b, int64_t index, batch_sink *sink, pc_error *error) {
    place *p = &b->places[index % b->place_count];
    pthread_mutex_lock(&b->lock);
    while (!p->is_done) pthread_cond_wait(&b->work_done, &b->lock);
    pthread_mutex_unlock(&b->lock);
    pc_code code = p->error.code;
    if (code)
        pc_error_set(error, code, "%s", p->error.message);
    else
        code = sink(b->context, &p->spec, &p->row, &p->detail, error);
    pthread_mutex_lock(&b->lock);
    clear_place(p);
    b->handed_over = index + 1;
    if (code) b->is_cancelled = true;
    pthread_cond_broadcast(&b->room_made);
    pthread_mutex_unlock(&b->lock);
    return code;
}

/* Starts up to `jobs` threads; fewer, where the system gives no more. Returns how many. */
static int start_workers(batch *b, pthread_t *threads, int jobs) {
    int started = 0;
    while (started < jobs && pthread_create(&threads[started], NULL, worker, b) == 0) started++;
    return started;
}

static pc_code run_threads(batch *b, pthread_t *threads, int jobs, batch_sink *sink, pc_error *error) {
    pc_code code = PC_OK;
    int started = start_workers(b, threads, jobs);
    if (started == 0) return pc_error_set(error, PC_ERROR_IO, "--jobs: the system starts no thread");
    for (int64_t index = 0; index < b->count && !code; index++) code = hand_over(b, index, sink, error);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    for (int64_t i = 0; i < b->place_count; i++) clear_place(&b->places[i]);
    return code;
}

pc_code batch_run(int64_t count, int jobs, batch_source *source, batch_sink *sink, void *context, pc_error *error) {
    if (jobs > count) jobs = count > 0 ? (int)count : 1;
    batch b = {.count = count, .place_count = 4 * (int64_t)jobs, .source = source, .context = context};
    pthread_t *threads = pc_alloc((size_t)jobs, sizeof *threads);
    b.places = pc_alloc((size_t)b.place_count, sizeof *b.places);
    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.work_done, NULL);
    pthread_cond_init(&b.room_made, NULL);
    pc_code code = threads && b.places ? run_threads(&b, threads, jobs, sink, error) : pc_error_no_memory(error);
    pthread_cond_destroy(&b.room_made);
    pthread_cond_destroy(&b.work_done);
    pthread_mutex_destroy(&b.lock);
    pc_free(b.places);
    pc_free(threads);
    return code;
}
