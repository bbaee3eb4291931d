#include "models/schedule/search/bound_machine.h"

/* ---- gaps ---- */

void pc_gaps_clear(pc_gaps *gaps) {
    gaps->count = 1;
    gaps->from[0] = PC_GAPS_EVER;
    gaps->to[0] = PC_GAPS_NEVER;
}

/* Makes room for a gap before `at`. One by one: there are so few of them that memmove would take longer. */
static void open_gap(pc_gaps *gaps, int at) {
    for (int i = gaps->count++; i > at; i--) {
        gaps->from[i] = gaps->from[i - 1];
        gaps->to[i] = gaps->to[i - 1];
    }
}

static void close_gap(pc_gaps *gaps, int at) {
    gaps->count--;
    for (int i = at; i < gaps->count; i++) {
        gaps->from[i] = gaps->from[i + 1];
        gaps->to[i] = gaps->to[i + 1];
    }
}

/* What was done between the first two gaps counts no longer: they become one. */
static void forget_first_work(pc_gaps *gaps) {
    gaps->from[1] = gaps->from[0];
    close_gap(gaps, 0);
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
            open_gap(gaps, i);
            gaps->to[i] = from;
            gaps->from[i + 1] = from + worked;
        } else if (from > gaps->from[i]) {
            gaps->to[i++] = from;
        } else if (worked < room) {
            gaps->from[i] = from + worked;
        } else {
            close_gap(gaps, i);
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
