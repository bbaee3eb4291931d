#include "sweep/batch.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Threads share the lock once a stretch of runs, not once a run, and the calling thread is not woken for every run. A
 * run can be as short as 50 us, and each wake takes a core from a thread that works. No thread waits for another: one
 * that the system has put aside, or that is at a long run, would hold up all of them. */
enum { STRETCH_MAX = 8, PLACES = 32, CACHE_LINE = 64 };
static const double QUICK_MS = 0.5; /* a run that takes longer is a stretch of its own */

/* The calling thread looks for results at least this often; without any, it looks ever less often. */
enum { WAIT_LEAST_MS = 1, WAIT_MOST_MS = 32, HAND_OVER_MS = 2 };

typedef struct place {
    _Alignas(CACHE_LINE) pc_run_spec spec;
    pc_run_row row;
    pc_run_detail detail;
    pc_error error;
    int64_t index;
} place;

/* A thread that works, with its places: its i-th run is in place i % PLACES until it has been handed over. */
typedef struct lane {
    _Alignas(CACHE_LINE) struct batch *batch;
    place *places;
    pthread_t thread;
    _Alignas(CACHE_LINE) atomic_llong done;  /* runs; this thread's to write */
    _Alignas(CACHE_LINE) atomic_llong taken; /* those that were handed over; whoever holds `handing` writes it */
} lane;

typedef struct batch {
    pthread_mutex_t lock;
    pthread_mutex_t handing; /* who hands over; taken before `lock` where both are */
    pthread_cond_t work_done, work_given;
    pc_batch_piece now, next; /* what is not claimed yet; `next` is empty where `now` is */
    int64_t claimed;
    int jobs, running, idle;   /* idle: out of work */
    bool is_fed, is_cancelled; /* nothing more comes; nothing more is begun */
    atomic_bool is_dropped;    /* nor are results wanted */
    lane *lanes;
    int turn; /* the lane to look at first */
    pc_batch_source *source;
    pc_batch_sink *sink;
    void *context;
    int64_t failed; /* the first run, by index, of those that have failed */
    pc_error error; /* its error */
} batch;

/* ---- the threads that work ---- */

/* Some runs in a row, for one thread. */
typedef pc_batch_piece stretch;

/* One where runs take long; fewer at the end, so that all threads end together. */
static int64_t stretch_length(const batch *b, bool is_quick) {
    int64_t fair = is_quick ? (b->now.count + b->next.count) / (INT64_C(4) * b->jobs) : 1;
    return pc_min(fair < 1 ? 1 : pc_min(fair, STRETCH_MAX), b->now.count);
}

/* Waits until there is work; false if there will be none. */
static bool claim(batch *b, bool is_quick, stretch *s) {
    pthread_mutex_lock(&b->lock);
    b->idle++;
    while (!b->is_cancelled && b->now.count == 0 && !b->is_fed) {
        pthread_cond_signal(&b->work_done);
        pthread_cond_wait(&b->work_given, &b->lock);
    }
    b->idle--;
    bool is_claimed = !b->is_cancelled && b->now.count > 0;
    if (is_claimed) {
        *s = (stretch){b->now.first, stretch_length(b, is_quick)};
        b->claimed += s->count;
        b->now = (pc_batch_piece){b->now.first + s->count, b->now.count - s->count};
        if (b->now.count == 0) b->now = b->next, b->next = (pc_batch_piece){0, 0};
    }
    pthread_mutex_unlock(&b->lock);
    return is_claimed;
}

static int64_t places_used(const lane *l) {
    return atomic_load_explicit(&l->done, memory_order_acquire) - atomic_load_explicit(&l->taken, memory_order_acquire);
}

/* Nothing more is begun. Of several errors that of the first run counts. Call with `handing` held. */
static void note_error(batch *b, int64_t index, pc_code code, const pc_error *error) {
    pthread_mutex_lock(&b->lock);
    b->is_cancelled = true;
    pthread_cond_broadcast(&b->work_given);
    pthread_mutex_unlock(&b->lock);
    if (b->error.code && b->failed < index) return;
    b->failed = index;
    b->error = *error;
    b->error.code = code;
}

/* The lane's oldest result. Call with `handing` held. */
static void hand_over(lane *l) {
    batch *b = l->batch;
    place *p = &l->places[l->taken % PLACES];
    pc_error error = {0};
    pc_code code = p->error.code;
    if (code) {
        note_error(b, p->index, code, &p->error);
    } else if (!b->is_dropped) {
        code = b->sink(b->context, &p->spec, &p->row, &p->detail, &error);
        if (code) b->is_dropped = true;
        if (code) note_error(b, -1, code, &error); /* before all runs: nothing that comes later matters */
    }
    pc_run_detail_free(&p->detail); /* traces are large; all else stays for the next run */
    atomic_store_explicit(&l->taken, l->taken + 1, memory_order_release);
}

/* Where the calling thread is behind with results, as where others keep the cores, this one hands over its own. */
static void make_room(lane *l) {
    batch *b = l->batch;
    int64_t used = places_used(l);
    if (used < PLACES / 2) return;
    if (used < PLACES && pthread_mutex_trylock(&b->handing)) return;
    if (used == PLACES) pthread_mutex_lock(&b->handing);
    while (places_used(l) > 0) hand_over(l);
    pthread_mutex_unlock(&b->handing);
}

/* What the last run left in the place is freed here: its memory is this thread's, and so is the cache. */
static void work(lane *l, int64_t index) {
    batch *b = l->batch;
    place *p = &l->places[l->done % PLACES];
    pc_run_labels labels;
    pc_run_spec_free(&p->spec);
    p->error.code = PC_OK;
    p->index = index;
    if (!b->source(b->context, index, &p->spec, &labels, &p->error))
        pc_run_row_make(&p->spec, &labels, &p->row, &p->detail, &p->error);
    atomic_store_explicit(&l->done, l->done + 1, memory_order_release);
}

static double clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* What was claimed is done to its end: of two runs that fail the first by index is then known. */
static void *worker(void *context) {
    lane *l = context;
    batch *b = l->batch;
    bool is_quick = false;
    for (stretch s; claim(b, is_quick, &s);) {
        double begin = clock_ms();
        for (int64_t i = 0; i < s.count && !b->is_dropped; i++) {
            make_room(l);
            work(l, s.first + i);
        }
        is_quick = clock_ms() - begin < QUICK_MS * (double)s.count;
    }
    pthread_mutex_lock(&b->lock);
    b->running--;
    pthread_cond_signal(&b->work_done);
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* ---- the calling thread ---- */

/* Asks for a piece where that is not over. */
static void take_piece(batch *b, pc_batch_feed *feed, void *feeder) {
    pc_error error = {0};
    pthread_mutex_lock(&b->lock);
    bool is_over = b->is_fed || b->is_cancelled;
    pc_batch_state state = {.jobs = b->jobs,
                            .idle = b->now.count ? 0 : b->idle,
                            .unclaimed = b->now.count + b->next.count,
                            .claimed = b->claimed,
                            .has_room = b->next.count == 0};
    pthread_mutex_unlock(&b->lock);
    if (is_over) return;
    pc_batch_piece piece = {0, PC_BATCH_LATER};
    pc_code code = feed(feeder, &state, &piece, &error);
    if (code) {
        pthread_mutex_lock(&b->handing);
        note_error(b, INT64_MAX, code, &error);
        pthread_mutex_unlock(&b->handing);
    }
    if (code || piece.count == PC_BATCH_LATER) return;
    pthread_mutex_lock(&b->lock);
    if (piece.count == PC_BATCH_NO_MORE)
        b->is_fed = true;
    else
        *(b->now.count ? &b->next : &b->now) = piece;
    pthread_cond_broadcast(&b->work_given);
    pthread_mutex_unlock(&b->lock);
}

/* Hands over what is done, for a few milliseconds at most; whether there was anything. */
static bool hand_over_done(batch *b) {
    double end = clock_ms() + HAND_OVER_MS;
    bool is_any = false;
    for (int i = 0; i < b->jobs && clock_ms() < end; i++, b->turn = (b->turn + 1) % b->jobs) {
        lane *l = &b->lanes[b->turn];
        if (places_used(l) == 0) continue;
        is_any = true;
        pthread_mutex_lock(&b->handing);
        while (places_used(l) > 0 && clock_ms() < end) hand_over(l);
        pthread_mutex_unlock(&b->handing);
    }
    return is_any;
}

static bool is_anything_done(const batch *b) {
    for (int i = 0; i < b->jobs; i++)
        if (places_used(&b->lanes[i]) > 0) return true;
    return false;
}

/* Sleeps until a thread is out of work, or for `ms`; false if all is over. */
static bool wait_for_results(batch *b, int ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&b->lock);
    bool is_ready = is_anything_done(b);
    if (!is_ready && b->running) pthread_cond_timedwait(&b->work_done, &b->lock, &until);
    bool is_over = !b->running && !is_anything_done(b);
    pthread_mutex_unlock(&b->lock);
    return !is_over;
}

static void hand_over_all(batch *b, pc_batch_feed *feed, void *feeder) {
    int ms = WAIT_LEAST_MS;
    do {
        take_piece(b, feed, feeder);
        ms = hand_over_done(b) || !b->is_fed ? WAIT_LEAST_MS : (int)pc_min(INT64_C(2) * ms, WAIT_MOST_MS);
    } while (wait_for_results(b, ms));
}

/* Starts a thread a lane; fewer, where the system gives no more. Returns how many. */
static int start_workers(batch *b) {
    int started = 0;
    b->running = b->jobs;
    while (started < b->jobs && pthread_create(&b->lanes[started].thread, NULL, worker, &b->lanes[started]) == 0)
        started++;
    pthread_mutex_lock(&b->lock);
    b->running -= b->jobs - started;
    pthread_mutex_unlock(&b->lock);
    return started;
}

static pc_code run_threads(batch *b, pc_batch_feed *feed, void *feeder, pc_error *error) {
    int started = start_workers(b);
    if (started == 0) return pc_error_set(error, PC_ERROR_IO, "--jobs: the system starts no thread");
    hand_over_all(b, feed, feeder);
    for (int i = 0; i < started; i++) pthread_join(b->lanes[i].thread, NULL);
    return b->error.code ? pc_error_copy(error, &b->error) : PC_OK;
}

static void open_batch(batch *b, place *places) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&b->lock, NULL);
    pthread_mutex_init(&b->handing, NULL);
    pthread_cond_init(&b->work_done, &attributes);
    pthread_cond_init(&b->work_given, NULL);
    pthread_condattr_destroy(&attributes);
    memset(places, 0, (size_t)b->jobs * PLACES * sizeof *places);
    memset(b->lanes, 0, (size_t)b->jobs * sizeof *b->lanes);
    for (int i = 0; i < b->jobs; i++) {
        b->lanes[i].batch = b;
        b->lanes[i].places = &places[(size_t)i * PLACES];
    }
}

static void close_batch(batch *b, place *places) {
    for (int i = 0; i < b->jobs * PLACES; i++) pc_run_spec_free(&places[i].spec);
    pthread_cond_destroy(&b->work_given);
    pthread_cond_destroy(&b->work_done);
    pthread_mutex_destroy(&b->handing);
    pthread_mutex_destroy(&b->lock);
}

pc_code pc_batch_run_fed(pc_batch_feed *feed, void *feeder, int jobs, pc_batch_source *source, pc_batch_sink *sink,
                         void *context, pc_error *error) {
    batch b = {.jobs = jobs, .source = source, .sink = sink, .context = context};
    place *places = pc_alloc_aligned(CACHE_LINE, (size_t)jobs * PLACES, sizeof *places);
    b.lanes = pc_alloc_aligned(CACHE_LINE, (size_t)jobs, sizeof *b.lanes);
    pc_code code = PC_ERROR_NO_MEMORY;
    if (places && b.lanes) {
        open_batch(&b, places);
        code = run_threads(&b, feed, feeder, error);
        close_batch(&b, places);
    } else {
        pc_error_no_memory(error);
    }
    pc_free(b.lanes);
    pc_free(places);
    return code;
}

/* ---- runs that are known from the start ---- */

/* All of them, as one piece. */
static pc_code feed_all(void *feeder, const pc_batch_state *state, pc_batch_piece *piece, pc_error *error) {
    (void)error;
    int64_t *left = feeder;
    if (!state->has_room) return PC_OK;
    *piece = (pc_batch_piece){0, *left > 0 ? *left : PC_BATCH_NO_MORE};
    *left = 0;
    return PC_OK;
}

/* One run is done by the calling thread: to start another takes as long as a short run. */
static pc_code run_one(pc_batch_source *source, pc_batch_sink *sink, void *context, pc_error *error) {
    place *p = pc_alloc_aligned(CACHE_LINE, 1, sizeof *p);
    if (!p) return pc_error_no_memory(error);
    memset(p, 0, sizeof *p);
    pc_run_labels labels;
    pc_code code = source(context, 0, &p->spec, &labels, error);
    if (!code) code = pc_run_row_make(&p->spec, &labels, &p->row, &p->detail, error);
    if (!code) code = sink(context, &p->spec, &p->row, &p->detail, error);
    pc_run_detail_free(&p->detail);
    pc_run_spec_free(&p->spec);
    pc_free(p);
    return code;
}

pc_code pc_batch_run(int64_t count, int jobs, pc_batch_source *source, pc_batch_sink *sink, void *context,
                     pc_error *error) {
    int64_t left = count;
    if (jobs > count) jobs = count > 0 ? (int)count : 1;
    if (count == 1) return run_one(source, sink, context, error);
    return pc_batch_run_fed(feed_all, &left, jobs, source, sink, context, error);
}
