#include "models/schedule/search/bound_machine.h"

#include <string.h>

/* ---- gaps ---- */

void pc_gaps_clear(pc_gaps *gaps) {
    gaps->count = 1;
    gaps->from[0] = PC_GAPS_EVER;
    gaps->to[0] = PC_GAPS_NEVER;
}

/* Moves the gaps from `at` on by so many places. */
static void move_gaps(pc_gaps *gaps, int at, int places) {
    int first = places < 0 ? at - places : at;
    size_t size = (size_t)(gaps->count - first) * sizeof *gaps->from;
    memmove(&gaps->from[first + places], &gaps->from[first], size);
    memmove(&gaps->to[first + places], &gaps->to[first], size);
    gaps->count += places;
}

/* What was done between the first two gaps counts no longer: they become one. */
static void forget_first_work(pc_gaps *gaps) {
    gaps->from[1] = gaps->from[0];
    move_gaps(gaps, 0, -1);
}

void pc_gaps_put(pc_gaps *gaps, pc_time ready, pc_time work) {
    int i = gaps->count - 1; /* most jobs are late ones */
    while (i > 0 && gaps->to[i - 1] > ready) i--;
    while (work > 0) {
        pc_time from = gaps->from[i] > ready ? gaps->from[i] : ready, room = gaps->to[i] - from;
        pc_time worked = work < room ? work : room;
        if (from > gaps->from[i] && worked < room) {
            if (gaps->count == PC_GAPS_MAX) {
                forget_first_work(gaps);
                if (i > 0) i--;
                continue;
            }
            move_gaps(gaps, i, 1);
            gaps->to[i] = from;
            gaps->from[i + 1] = from + worked;
        } else if (from > gaps->from[i]) {
            gaps->to[i++] = from;
        } else if (worked < room) {
            gaps->from[i] = from + worked;
        } else {
            move_gaps(gaps, i, -1);
        }
        work -= worked;
    }
}

/* ---- Jackson's rule ---- */

/* The jobs of one type: those from `next` to `ready` are waiting, in the order of their tails; the first of them has so
 * much left. */
typedef struct job_queue {
    const pc_time *head, *tail;
    pc_time duration, left;
    int next, ready;
} job_queue;

static void fill_queues(const pc_instance *instance, int device, const pc_time *head, const pc_time *tail,
                        job_queue *queues) {
    for (int type = 0; type < instance->types; type++) {
        pc_time duration = instance->cells[device * instance->types + type].duration;
        int64_t first = (int64_t)type * instance->microbatches;
        queues[type] = (job_queue){.head = head + first, .tail = tail + first, .duration = duration, .left = duration};
    }
}

/* Lets in the jobs that are ready now; returns when the next one will be. */
static pc_time let_in(job_queue *queues, int types, int m, pc_time now) {
    pc_time next = PC_GAPS_NEVER;
    for (job_queue *q = queues; q < queues + types; q++) {
        while (q->ready < m && q->head[q->ready] <= now) q->ready++;
        if (q->ready < m && q->head[q->ready] < next) next = q->head[q->ready];
    }
    return next;
}

static job_queue *most_urgent(job_queue *queues, int types, int m, pc_time *tail) {
    job_queue *found = NULL;
    for (job_queue *q = queues; q < queues + types; q++) {
        if (q->next == q->ready || (found && q->tail[m - 1 - q->next] <= *tail)) continue;
        found = q;
        *tail = q->tail[m - 1 - q->next];
    }
    return found;
}

pc_time pc_machine_least_span(const pc_instance *instance, int device, const pc_time *head, const pc_time *tail) {
    job_queue queues[PC_INSTANCE_TYPES_MAX];
    int types = instance->types, m = instance->microbatches;
    pc_time now = 0, least = 0, after = 0;
    fill_queues(instance, device, head, tail, queues);
    for (;;) {
        pc_time next = let_in(queues, types, m, now);
        job_queue *q = most_urgent(queues, types, m, &after);
        if (!q && next == PC_GAPS_NEVER) return least;
        if (!q || now + q->left > next) {
            if (q) q->left -= next - now;
            now = next;
            continue;
        }
        now += q->left;
        q->left = q->duration;
        q->next++;
        if (now + after > least) least = now + after;
    }
}
