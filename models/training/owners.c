#include "models/training/owners.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <stdlib.h>
#include <string.h>

/* ---- who has what ---- */

/* Descending. */
static int compare_sorts(const void *a, const void *b) {
    int64_t x = ((const pc_tensor_sort *)a)->parameters, y = ((const pc_tensor_sort *)b)->parameters;
    return (x < y) - (x > y);
}

/* Of one rank's tensors. */
typedef struct load {
    int64_t parameters, state_bytes, step_ps;
} load;

/* The root of a heap, which has fewest parameters, has got more. */
static void sink(load *heap, int64_t count) {
    int64_t at = 0;
    load grown = heap[0];
    for (int64_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && heap[child + 1].parameters < heap[child].parameters) child++;
        if (heap[child].parameters >= grown.parameters) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = grown;
}

/* `loads` [ranks], zero: a heap from beginning to end. */
static void give(const pc_tensor_sort *sorts, int sort_count, load *loads, int64_t ranks) {
    for (int i = 0; i < sort_count; i++)
        for (int64_t k = 0; k < sorts[i].count; k++) {
            loads[0].parameters += sorts[i].parameters;
            loads[0].state_bytes += sorts[i].state_bytes;
            loads[0].step_ps += sorts[i].step_ps;
            sink(loads, ranks);
        }
}

/* ---- how it comes back ---- */

static double divide(double bytes, double bytes_per_s) {
    return bytes > 0 ? bytes / bytes_per_s : 0;
}

/* Both phases one after the other as one: its rates are those at which all the bytes take as long. */
static void add_phase(pc_collective_phase *sum, const pc_collective_phase *x) {
    double domain_s =
        divide(sum->domain_bytes, sum->domain_bytes_per_s) + divide(x->domain_bytes, x->domain_bytes_per_s);
    double network_s =
        divide(sum->network_bytes, sum->network_bytes_per_s) + divide(x->network_bytes, x->network_bytes_per_s);
    sum->latency_s += x->latency_s;
    sum->domain_bytes += x->domain_bytes;
    sum->network_bytes += x->network_bytes;
    sum->domain_wire_bytes += x->domain_wire_bytes;
    sum->network_wire_bytes += x->network_wire_bytes;
    if (domain_s > 0) sum->domain_bytes_per_s = sum->domain_bytes / domain_s;
    if (network_s > 0) sum->network_bytes_per_s = sum->network_bytes / network_s;
}

static void add_course(pc_collective_course *sum, const pc_collective_course *x) {
    sum->algorithm = x->algorithm;
    if (x->phase_count > sum->phase_count) sum->phase_count = x->phase_count;
    for (int i = 0; i < x->phase_count; i++) add_phase(&sum->phase[i], &x->phase[i]);
}

/* What they all take alone: of each phase the slower bytes. */
static double seconds_of(const pc_collective_course *course) {
    double seconds = 0;
    for (int i = 0; i < course->phase_count; i++) {
        const pc_collective_phase *x = &course->phase[i];
        double domain_s = divide(x->domain_bytes, x->domain_bytes_per_s);
        double network_s = divide(x->network_bytes, x->network_bytes_per_s);
        seconds += x->latency_s + (domain_s > network_s ? domain_s : network_s);
    }
    return seconds;
}

pc_collective_course pc_course_share(const pc_collective_course *course, double share) {
    pc_collective_course made = *course;
    for (int i = 0; i < made.phase_count; i++) {
        pc_collective_phase *x = &made.phase[i];
        x->latency_s *= share;
        x->domain_bytes *= share;
        x->network_bytes *= share;
        x->domain_wire_bytes *= share;
        x->network_wire_bytes *= share;
    }
    made.seconds *= share;
    return made;
}

static void find_most(const load *loads, int64_t count, pc_owners *owners) {
    for (int64_t i = 0; i < count; i++) {
        owners->fullest = pc_max(owners->fullest, loads[i].parameters);
        owners->most_state_bytes = pc_max(owners->most_state_bytes, loads[i].state_bytes);
        owners->most_step_ps = pc_max(owners->most_step_ps, loads[i].step_ps);
    }
}

/* Equal loads, which lie together for the most part, are worked out once. */
static void add_broadcasts(const pc_machine *machine, const pc_group *group, const load *loads, int64_t count,
                           int parameter_bytes, pc_owners *owners) {
    pc_collective_course one = {0};
    for (int64_t i = 0; i < count; i++) {
        if (i == 0 || loads[i].parameters != loads[i - 1].parameters)
            one = pc_collective_course_of(machine, group, PC_COLLECTIVE_BROADCAST, PC_ALGORITHM_BEST,
                                          (double)loads[i].parameters * parameter_bytes);
        add_course(&owners->course, &one);
    }
    owners->course.seconds = seconds_of(&owners->course);
}

pc_code pc_owners_of(const pc_machine *machine, const pc_group *group, const pc_tensor_sort *sorts, int sort_count,
                     int parameter_bytes, pc_owners *owners, pc_error *error) {
    pc_owners made = {0};
    int64_t tensors = 0;
    for (int i = 0; i < sort_count && tensors <= PC_OWNED_TENSORS_MAX; i++) tensors += sorts[i].count;
    if (tensors > PC_OWNED_TENSORS_MAX)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "zero_partition tensor with over %d tensors on a GPU; expected fewer",
                            PC_OWNED_TENSORS_MAX);
    made.count = tensors < group->ranks ? tensors : group->ranks;
    *owners = made;
    if (tensors == 0) return PC_OK;
    load *loads = pc_alloc((size_t)made.count, sizeof *loads);
    pc_tensor_sort *sorted = pc_alloc((size_t)sort_count, sizeof *sorted);
    if (loads && sorted) {
        memcpy(sorted, sorts, (size_t)sort_count * sizeof *sorts);
        qsort(sorted, (size_t)sort_count, sizeof *sorted, compare_sorts);
        give(sorted, sort_count, loads, made.count);
        find_most(loads, made.count, &made);
        add_broadcasts(machine, group, loads, made.count, parameter_bytes, &made);
        *owners = made;
    }
    pc_code code = loads && sorted ? PC_OK : pc_error_no_memory(error);
    pc_free(loads);
    pc_free(sorted);
    return code;
}
