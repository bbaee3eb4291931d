#include "cli/doubt.h"

#include "storage/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool is_unknown(const char *basis) {
    static const char start[] = "the unknown";
    return strncmp(basis, start, sizeof start - 1) == 0;
}

void doubt_add(doubt *said, const pc_run_row *row) {
    if (isnan(row->iteration_s_low)) return;
    double low = row->iteration_s_low / row->iteration_s, high = row->iteration_s_high / row->iteration_s;
    if (said->runs == 0) said->first = *row;
    said->least = said->runs == 0 ? low : fmin(said->least, low);
    said->most = said->runs == 0 ? high : fmax(said->most, high);
    said->differs = said->differs || strcmp(row->iteration_basis, said->first.iteration_basis) != 0;
    said->unknown += is_unknown(row->iteration_basis);
    said->runs++;
}

/* "4.1 to 4.5 s, learned from 18 configurations of ...". */
static void note_basis(look_notes *notes, const char *of, const char *ends, const char *kind, const char *basis) {
    if (is_unknown(basis))
        look_note(notes, "%s, 80%%: %s; little or nothing was compared with %s: the wide interval of the unknown", of,
                  ends, kind);
    else
        look_note(notes, "%s, 80%%: %s, learned from %s", of, ends, basis);
}

static void note_run(const pc_run_row *row, look_notes *notes) {
    char ends[64];
    snprintf(ends, sizeof ends, "%.4g to %.4g s", row->iteration_s_low, row->iteration_s_high);
    note_basis(notes, "iteration", ends, row->kind, row->iteration_basis);
    if (isnan(row->memory_gib_low)) return;
    snprintf(ends, sizeof ends, "%.1f to %.1f GiB", row->memory_gib_low, row->memory_gib_high);
    note_basis(notes, "memory", ends, row->kind, row->memory_basis);
}

static void note_runs(const doubt *said, look_notes *notes) {
    char ends[64], unknown[80] = "";
    if (!said->differs) {
        snprintf(ends, sizeof ends, "%+.0f to %+.0f%%", 100 * (said->least - 1), 100 * (said->most - 1));
        note_basis(notes, "iteration", ends, "such runs", said->first.iteration_basis);
        return;
    }
    if (said->unknown > 0)
        snprintf(unknown, sizeof unknown, "; of %" PRId64 " run%s that of the unknown", said->unknown,
                 said->unknown > 1 ? "s" : "");
    look_note(notes, "iteration, 80%%: columns iteration_s_low and iteration_s_high, by kind of run%s", unknown);
}

/* Points in numbers, whatever the program's locale. */
void doubt_note(const doubt *said, look_notes *notes) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return;
    if (said->runs == 1) note_run(&said->first, notes);
    if (said->runs > 1) note_runs(said, notes);
    pc_number_scope_leave(&scope);
}
