/* interrupt.h: says a last line when the user (SIGINT), the system (SIGTERM) or the terminal (SIGHUP) ends the command,
 * and ends it at once. */
#ifndef PC_CLI_INTERRUPT_H
#define PC_CLI_INTERRUPT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Says on standard error where things stand; from a thread of its own, while all others go on. */
typedef void interrupt_say(void *context);

/* Zero it to start. */
typedef struct interrupt {
    sigset_t before;
    pthread_t thread;
    bool is_blocked, is_watched;
    interrupt_say *say;
    void *context;
} interrupt;

/* From here on the signals wait, but for those that are ignored, in this thread and those that it starts. */
void interrupt_block(interrupt *state);

/* From here on they end the command as they ever do, after `say` has had its say. */
void interrupt_watch(interrupt *state, interrupt_say *say, void *context);

/* As before interrupt_block. */
void interrupt_end(interrupt *state);

#endif
