/* Rows that are left out: which, why, and the first of each kind. */
#include "calib/import/import_private.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *pc_import_reason_text(pc_import_reason reason) {
    static const char *const texts[PC_IMPORT_REASONS] = {[PC_IMPORT_TOO_FAST] = "faster than the datasheet's peak",
                                                         [PC_IMPORT_NO_TIME] = "a time of zero or less",
                                                         [PC_IMPORT_REPEATED] = "the same conditions as another row",
                                                         [PC_IMPORT_SUSPECT] = "suspect, as the table says"};
    return texts[reason];
}

static void count(pc_import_report *report, pc_import_reason reason, const char *path, int64_t line) {
    pc_import_left_out *left_out = &report->left_out[reason];
    if (left_out->count++ > 0) return;
    snprintf(left_out->first, sizeof left_out->first, "%.200s:%" PRId64, path, line);
}

void pc_import_leave_out(pc_import *import, pc_import_reason reason) {
    count(&import->ledger->report, reason, import->text.path, import->text.line);
}

/* ---- what was taken ---- */

pc_code pc_import_note_taken(pc_import *import, bool is_transfer, pc_error *error) {
    pc_import_ledger *ledger = import->ledger;
    const pc_profile *profile = import->into;
    if (ledger->count == ledger->room) {
        int64_t room = ledger->room ? 2 * ledger->room : 256;
        void *grown = pc_realloc(ledger->row, (size_t)room, sizeof *ledger->row);
        if (!grown) return pc_error_no_memory(error);
        ledger->row = grown;
        ledger->room = room;
    }
    int64_t last = (is_transfer ? profile->transfer_count : profile->kernel_count) - 1;
    pc_hash hash =
        is_transfer ? pc_transfer_conditions(&profile->transfer[last]) : pc_kernel_conditions(&profile->kernel[last]);
    ledger->row[ledger->count++] = (pc_import_taken){hash, is_transfer, last, import->text.line, import->text.path};
    return PC_OK;
}

void pc_import_ledger_free(pc_import_ledger *ledger) {
    pc_free(ledger->row);
    *ledger = (pc_import_ledger){0};
}

/* ---- repetitions ---- */

typedef struct candidate {
    const pc_import_taken *taken; /* of the ledger, in its order */
    double seconds;
    bool is_slowest_wanted;
} candidate;

static int compare_order(const candidate *a, const candidate *b) {
    return a->taken < b->taken ? -1 : a->taken > b->taken;
}

/* By conditions, of the same by time, of the same by place. */
static int compare(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    pc_hash x = a->taken->hash, y = b->taken->hash;
    if (x.high != y.high) return x.high < y.high ? -1 : 1;
    if (x.low != y.low) return x.low < y.low ? -1 : 1;
    if (a->seconds != b->seconds) return a->seconds < b->seconds ? -1 : 1;
    return compare_order(a, b);
}

static candidate candidate_of(const pc_profile *profile, const pc_import_taken *taken) {
    if (taken->is_transfer) return (candidate){taken, profile->transfer[taken->index].seconds.median, false};
    const pc_kernel_measurement *kernel = &profile->kernel[taken->index];
    return (candidate){taken, kernel->seconds.median, kernel->kind == PC_OPERATION_ATTENTION};
}

/* Marks all of a group but one. aiconfigurator's tables have each bf16 call of attention twice, once with keys and
 * values kept in 8 bits, which no column says: that call runs the fp8 kernel, and is the faster one. */
static void mark_group(const candidate *group, int64_t size, const pc_import_taken *first, bool *is_repeated) {
    int64_t stays = group->is_slowest_wanted ? size - 1 : (size - 1) / 2;
    for (int64_t i = 0; i < size; i++)
        if (i != stays) is_repeated[group[i].taken - first] = true;
}

static void mark_repeated(candidate *sorted, int64_t rows, const pc_import_taken *first, bool *is_repeated) {
    qsort(sorted, (size_t)rows, sizeof *sorted, compare);
    for (int64_t at = 0, end; at < rows; at = end) {
        for (end = at + 1; end < rows && pc_hash_equal(sorted[end].taken->hash, sorted[at].taken->hash);) end++;
        mark_group(&sorted[at], end - at, first, is_repeated);
    }
}

/* What stays closes up, in its order. Of each sort the ledger's rows stand in the order of their indices. */
static void drop_repeated(pc_profile *profile, pc_import_ledger *ledger, const bool *is_repeated) {
    int64_t kernels = 0, transfers = 0, dropped_kernels = 0, dropped_transfers = 0;
    for (int64_t i = 0; i < ledger->count; i++) {
        const pc_import_taken *row = &ledger->row[i];
        int64_t *dropped = row->is_transfer ? &dropped_transfers : &dropped_kernels;
        int64_t *next = row->is_transfer ? &transfers : &kernels;
        for (; *next < row->index; ++*next)
            if (row->is_transfer)
                profile->transfer[*next - *dropped] = profile->transfer[*next];
            else
                profile->kernel[*next - *dropped] = profile->kernel[*next];
        if (!is_repeated[i]) continue;
        ++*dropped, ++*next;
        count(&ledger->report, PC_IMPORT_REPEATED, row->path, row->line);
    }
    for (; kernels < profile->kernel_count; kernels++)
        profile->kernel[kernels - dropped_kernels] = profile->kernel[kernels];
    for (; transfers < profile->transfer_count; transfers++)
        profile->transfer[transfers - dropped_transfers] = profile->transfer[transfers];
    profile->kernel_count -= dropped_kernels;
    profile->transfer_count -= dropped_transfers;
}

pc_code pc_import_settle(pc_profile *profile, pc_import_ledger *ledger, pc_error *error) {
    candidate *sorted = pc_alloc((size_t)ledger->count, sizeof *sorted);
    bool *is_repeated = pc_alloc((size_t)ledger->count, sizeof *is_repeated);
    bool has_room = sorted && is_repeated;
    for (int64_t i = 0; has_room && i < ledger->count; i++) sorted[i] = candidate_of(profile, &ledger->row[i]);
    if (has_room) {
        mark_repeated(sorted, ledger->count, ledger->row, is_repeated);
        drop_repeated(profile, ledger, is_repeated);
    }
    pc_free(sorted);
    pc_free(is_repeated);
    ledger->count = 0;
    return has_room ? PC_OK : pc_error_no_memory(error);
}
