#include "cli/cli.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum { BAR_WIDTH = 40 };
static const double QUIET_S = 0.4, REDRAW_S = 0.1; /* work that is done at once needs no bar */

void progress_start(progress *bar, int64_t total, bool is_quiet) {
    *bar = (progress){
        .is_shown = !is_quiet && isatty(STDERR_FILENO), .total = total, .started_s = now_s(), .unit = "runs"};
}

static void draw(const progress *bar, double now) {
    int full = (int)(BAR_WIDTH * bar->done / bar->total);
    double left = bar->done ? (now - bar->started_s) / (double)bar->done * (double)(bar->total - bar->done) : 0.0;
    fprintf(stderr, "\r[%.*s%*s] %" PRId64 "/%" PRId64 " %s, %.0f s left   ", full,
            "########################################", BAR_WIDTH - full, "", bar->done, bar->total, bar->unit, left);
    fflush(stderr);
}

static void draw_now_and_then(progress *bar) {
    double now;
    if (!bar->is_shown || (now = now_s()) - bar->started_s < QUIET_S || now - bar->drawn_s < REDRAW_S) return;
    draw(bar, now);
    bar->drawn_s = now;
}

void progress_step(progress *bar) {
    bar->done++;
    draw_now_and_then(bar);
}

void progress_at(progress *bar, int64_t done, int64_t total, const char *unit) {
    if (!bar->is_shown) return;
    if (strcmp(unit, bar->unit) != 0) {
        progress_end(bar);
        bar->started_s = now_s();
        bar->drawn_s = 0.0;
        bar->unit = unit;
    }
    bar->done = done;
    bar->total = total;
    draw_now_and_then(bar);
}

void progress_end(progress *bar) {
    if (bar->is_shown && bar->drawn_s > 0.0) fprintf(stderr, "\r%*s\r", BAR_WIDTH + 60, "");
}
