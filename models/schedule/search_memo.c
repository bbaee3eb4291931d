#include "models/schedule/search_memo_private.h"

#include "engine/alloc.h"

#include <pthread.h>
#include <string.h>

enum { LISTS = 4096 }; /* of answers whose hashes end alike */

typedef struct answer {
    pc_hash key;
    pc_schedule schedule;
    pc_block block; /* without devices where none was asked for, or there is none */
    size_t bytes;
    struct answer *next;  /* in its list */
    struct answer *newer; /* of all */
} answer;

struct pc_search_memo {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work_done;
    size_t bytes_max;
    pc_search_memo_counts counts;
    answer *lists[LISTS];
    answer *oldest, *newest;
    pc_search_memo_work *works; /* under way; as many as threads, at most */
};

pc_code pc_search_memo_create(size_t bytes_max, pc_search_memo **memo, pc_error *error) {
    pc_search_memo *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    made->bytes_max = bytes_max;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->work_done, NULL);
    *memo = made;
    return PC_OK;
}

static void free_answer(answer *a) {
    pc_schedule_free(&a->schedule);
    pc_block_free(&a->block);
    pc_free(a);
}

void pc_search_memo_free(pc_search_memo *memo) {
    if (!memo) return;
    for (answer *a = memo->oldest, *newer; a; a = newer) {
        newer = a->newer;
        free_answer(a);
    }
    pthread_cond_destroy(&memo->work_done);
    pthread_mutex_destroy(&memo->lock);
    pc_free(memo);
}

pc_search_memo_counts pc_search_memo_count(pc_search_memo *memo) {
    pthread_mutex_lock(&memo->lock);
    pc_search_memo_counts counts = memo->counts;
    pthread_mutex_unlock(&memo->lock);
    return counts;
}

/* ---- copies ---- */

static int64_t starts_of(const pc_block *block) {
    return (int64_t)block->microbatches * block->devices * block->chunks * PC_PASS_KINDS;
}

static pc_code copy_block(const pc_block *from, pc_block *to, pc_error *error) {
    pc_block made;
    *to = (pc_block){0};
    if (from->devices == 0) return PC_OK;
    pc_code code = pc_block_create(from->placement, from->devices, from->chunks, from->microbatches, &made, error);
    if (code) return code;
    made.interval = from->interval;
    memcpy(made.start, from->start, (size_t)starts_of(from) * sizeof *from->start);
    memcpy(made.duration, from->duration, PC_PASS_KINDS * sizeof *from->duration);
    *to = made;
    return PC_OK;
}

static pc_code copy_schedule(const pc_schedule *from, pc_schedule *to, pc_error *error) {
    pc_schedule made = *from;
    size_t count = (size_t)from->devices + 1;
    made.offsets = pc_alloc(count, sizeof *made.offsets);
    made.passes = pc_alloc((size_t)from->offsets[from->devices], sizeof *made.passes);
    if (!made.offsets || !made.passes) {
        pc_schedule_free(&made);
        return pc_error_no_memory(error);
    }
    memcpy(made.offsets, from->offsets, count * sizeof *made.offsets);
    memcpy(made.passes, from->passes, (size_t)from->offsets[from->devices] * sizeof *made.passes);
    *to = made;
    return PC_OK;
}

/* The block where there is one, and one is wanted. */
static pc_code copy_both(const pc_schedule *schedule, const pc_block *block, pc_schedule *schedule_to,
                         pc_block *block_to, pc_error *error) {
    pc_code code = copy_schedule(schedule, schedule_to, error);
    if (code || !block || !block_to) return code;
    code = copy_block(block, block_to, error);
    if (code) pc_schedule_free(schedule_to);
    return code;
}

/* ---- the table; call with the lock held ---- */

static answer **list_of(pc_search_memo *memo, pc_hash key) {
    return &memo->lists[key.low % LISTS];
}

static answer *find(pc_search_memo *memo, pc_hash key) {
    answer *a = *list_of(memo, key);
    while (a && !pc_hash_equal(a->key, key)) a = a->next;
    return a;
}

static void forget_oldest(pc_search_memo *memo) {
    answer *a = memo->oldest, **place = list_of(memo, a->key);
    while (*place != a) place = &(*place)->next;
    *place = a->next;
    memo->oldest = a->newer;
    if (!memo->oldest) memo->newest = NULL;
    memo->counts.bytes -= a->bytes;
    memo->counts.forgotten++;
    free_answer(a);
}

static void insert(pc_search_memo *memo, answer *a) {
    answer **list = list_of(memo, a->key);
    a->next = *list;
    *list = a;
    *(memo->newest ? &memo->newest->newer : &memo->oldest) = a;
    memo->newest = a;
    memo->counts.bytes += a->bytes;
    memo->counts.kept++;
    while (memo->counts.bytes > memo->bytes_max) forget_oldest(memo);
}

static bool is_under_way(const pc_search_memo *memo, pc_hash key) {
    const pc_search_memo_work *work = memo->works;
    while (work && !pc_hash_equal(work->key, key)) work = work->next;
    return work;
}

static void remove_work(pc_search_memo *memo, const pc_search_memo_work *work) {
    pc_search_memo_work **place = &memo->works;
    while (*place != work) place = &(*place)->next;
    *place = work->next;
}

/* ---- searches ---- */

pc_code pc_search_memo_begin(pc_search_memo *memo, pc_hash key, pc_search_memo_work *work, pc_schedule *schedule,
                             pc_block *block, bool *found, pc_error *error) {
    pc_code code = PC_OK;
    pthread_mutex_lock(&memo->lock);
    while (is_under_way(memo, key)) pthread_cond_wait(&memo->work_done, &memo->lock);
    const answer *known = find(memo, key);
    *found = known;
    if (known) {
        code = copy_both(&known->schedule, &known->block, schedule, block, error);
        memo->counts.found += !code;
    } else {
        *work = (pc_search_memo_work){key, memo->works};
        memo->works = work;
    }
    pthread_mutex_unlock(&memo->lock);
    return code;
}

static size_t bytes_of(const pc_schedule *schedule, const pc_block *block) {
    size_t block_numbers = block && block->devices ? (size_t)starts_of(block) + PC_PASS_KINDS : 0;
    return sizeof(answer) + ((size_t)schedule->devices + 1) * sizeof *schedule->offsets +
           (size_t)schedule->offsets[schedule->devices] * sizeof *schedule->passes + block_numbers * sizeof(int64_t);
}

/* *made: NULL where it is too large. */
static pc_code make_answer(const pc_search_memo *memo, pc_hash key, const pc_schedule *schedule, const pc_block *block,
                           answer **made, pc_error *error) {
    size_t bytes = bytes_of(schedule, block);
    *made = NULL;
    if (bytes > memo->bytes_max) return PC_OK;
    answer *a = pc_alloc(1, sizeof *a);
    if (!a) return pc_error_no_memory(error);
    a->key = key;
    a->bytes = bytes;
    pc_code code = copy_both(schedule, block, &a->schedule, &a->block, error);
    if (code)
        pc_free(a);
    else
        *made = a;
    return code;
}

pc_code pc_search_memo_end(pc_search_memo *memo, pc_search_memo_work *work, const pc_schedule *schedule,
                           const pc_block *block, pc_error *error) {
    answer *made = NULL;
    pc_code code = schedule ? make_answer(memo, work->key, schedule, block, &made, error) : PC_OK;
    pthread_mutex_lock(&memo->lock);
    remove_work(memo, work);
    if (made) insert(memo, made);
    pthread_cond_broadcast(&memo->work_done);
    pthread_mutex_unlock(&memo->lock);
    return code;
}
