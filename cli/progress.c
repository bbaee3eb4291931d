#include "cli/cli.h"
#include "engine/clock.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR_WIDTH = 40, NOTED_LEAST = 8, ECHO_WIDTH = 2 /* ^C */ };
static const double QUIET_S = 0.4, REDRAW_S = 0.1; /* work that is done at once needs no bar */

void progress_start(progress *bar, int64_t total, bool is_quiet) {
    *bar = (progress){.lock = PTHREAD_MUTEX_INITIALIZER,
                      .is_shown = !is_quiet && isatty(STDERR_FILENO),
                      .total = total,
                      .started_s = pc_now_s(),
                      .unit = "runs"};
}

static int columns(void) {
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static double seconds_left(const progress *bar, double now) {
    int64_t since = bar->done - bar->first;
    return since > 0 ? (now - bar->started_s) / (double)since * (double)(bar->total - bar->done) : 0.0;
}

/* In one row of the terminal, with what it echoes of a key: one that is longer could not be taken back. Where the words
 * alone do not fit, nothing. */
static void draw(progress *bar, double now) {
    char words[80 + sizeof bar->note];
    int length = snprintf(words, sizeof words, " %" PRId64 "/%" PRId64 " %s, %.0f s left", bar->done, bar->total,
                          bar->unit, seconds_left(bar, now));
    int noted = bar->note[0] ? (int)strlen(bar->note) + 2 : 0;
    if (noted > 0 && columns() - length - noted - 3 - ECHO_WIDTH >= NOTED_LEAST)
        length += snprintf(words + length, sizeof words - (size_t)length, "; %s", bar->note);
    int room = columns() - length - 3 - ECHO_WIDTH, width = room < BAR_WIDTH ? room : BAR_WIDTH;
    if (width < 1 || length >= (int)sizeof words) return;
    int full = (int)((double)width * (double)bar->done / (double)bar->total), drawn = length + width + 2;
    int over = bar->drawn > drawn ? bar->drawn - drawn : 0; /* of the last one */
    fprintf(stderr, "\r[%.*s%*s]%s%*s", full, "########################################", width - full, "", words, over,
            "");
    fflush(stderr);
    bar->drawn = drawn + over; /* behind it the cursor stands, and what a key echoes */
}

static void draw_now_and_then(progress *bar) {
    double now;
    if (!bar->is_shown || (now = pc_now_s()) - bar->started_s < QUIET_S || now - bar->drawn_s < REDRAW_S) return;
    pthread_mutex_lock(&bar->lock);
    draw(bar, now);
    pthread_mutex_unlock(&bar->lock);
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
        bar->started_s = pc_now_s();
        bar->first = done;
        bar->unit = unit;
    }
    bar->done = done;
    bar->total = total;
    draw_now_and_then(bar);
}

void progress_note(progress *bar, const char *note) {
    if (!bar->is_shown) return;
    pthread_mutex_lock(&bar->lock); /* which is drawn by this thread, and taken back by any */
    snprintf(bar->note, sizeof bar->note, "%s", note);
    pthread_mutex_unlock(&bar->lock);
    draw_now_and_then(bar);
}

static void take_back(progress *bar) {
    if (bar->drawn > 0) fprintf(stderr, "\r%*s\r", bar->drawn + ECHO_WIDTH, "");
    bar->drawn = 0;
}

void progress_end(progress *bar) {
    pthread_mutex_lock(&bar->lock);
    take_back(bar);
    pthread_mutex_unlock(&bar->lock);
}

void progress_stop(progress *bar) {
    pthread_mutex_lock(&bar->lock); /* and never lets go */
    take_back(bar);
    fflush(stderr);
}
