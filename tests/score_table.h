/* score_table.h: tables of measured runs for tests, from texts. */
#ifndef PC_TESTS_SCORE_TABLE_H
#define PC_TESTS_SCORE_TABLE_H

#include "engine/alloc.h"
#include "results/score/score.h"
#include "tests/folder.h"

#include <math.h>

static inline void write_table(const folder *at, const char *text) {
    FILE *file = fopen(at->file, "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static inline void note_bad(void *context, const pc_error *error) {
    strcat(context, strrchr(error->message, '/') + 1);
    strcat(context, "\n");
}

/* The table of that text; what is wrong with its rows is added to `bad`. */
static inline void read_table(const folder *at, const char *text, char *bad, pc_measured *measured) {
    pc_error error = {0};
    write_table(at, text);
    if (pc_measured_read(at->file, note_bad, bad, measured, &error)) fail_msg("%s", error.message);
}

static inline void free_score(pc_measured *m, pc_score *score) {
    pc_score_free(score);
    pc_measured_free(m);
}

static inline void check_near(double found, double right) {
    if (!(fabs(found - right) <= 1e-12)) fail_msg("%.17g; expected %.17g", found, right);
}

#endif
