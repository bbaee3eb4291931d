#include "cli/interrupt.h"

#include "storage/replace.h"

#include <stddef.h>

/* Those that whoever started us has ignored (nohup, a script's background) stay so: waiting would take them. */
static void fill(sigset_t *signals) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    sigemptyset(signals);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction now;
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(signals, numbers[i]);
    }
}

void interrupt_block(interrupt *state) {
    sigset_t signals;
    fill(&signals);
    state->is_blocked = pthread_sigmask(SIG_BLOCK, &signals, &state->before) == 0;
}

/* The signal's own default ends the command, so that whoever started it sees what ended it. */
static void *watch(void *context) {
    interrupt *state = context;
    sigset_t signals;
    int number = 0;
    fill(&signals);
    while (sigwait(&signals, &number) != 0) {
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* else interrupt_end might cut the line in two */
    state->say(state->context);
    pc_replacement_stop();
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    raise(number);
    return NULL;
}

void interrupt_watch(interrupt *state, interrupt_say *say, void *context) {
    state->say = say;
    state->context = context;
    state->is_watched = state->is_blocked && pthread_create(&state->thread, NULL, watch, state) == 0;
    if (!state->is_watched) interrupt_end(state); /* then without a last line */
}

void interrupt_end(interrupt *state) {
    if (state->is_watched) {
        pthread_cancel(state->thread); /* it waits for a signal, or is about to end everything */
        pthread_join(state->thread, NULL);
    }
    if (state->is_blocked) pthread_sigmask(SIG_SETMASK, &state->before, NULL);
    state->is_watched = state->is_blocked = false;
}
