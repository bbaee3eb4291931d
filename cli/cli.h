/* cli.h: what the subcommands share: exit statuses, the reading of arguments, messages, the progress bar. */
#ifndef PC_CLI_CLI_H
#define PC_CLI_CLI_H

#include "engine/error.h"
#include "results/table.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* As interface: 0 done, 1 something did not fit, 2 bad input or usage, 3 a fault of the machine. */
enum { EXIT_DONE = 0, EXIT_DID_NOT_FIT = 1, EXIT_BAD_INPUT = 2, EXIT_MACHINE = 3 };

typedef int command_function(int argc, char **argv);

command_function command_calibrate, command_calibrate_rank, command_compare, command_run, command_schedule,
    command_figure, command_list, command_profile, command_export, command_import, command_merge, command_plan,
    command_score;

/* Prints "pipecast: <message>" on standard error and returns the exit status that goes with the error. */
int report(const pc_error *error);

/* The same with a message of our own, as bad input. */
int report_usage(const char *format, ...) PC_PRINTF(1, 2);

/* PC_ERROR_INPUT where `output` is the file `input` under whatever name, which it would replace; `what` says what that
 * is. */
pc_code refuse_same_file(const char *input, const char *output, const char *what, pc_error *error);

/* Prints a text that came from a file, with a '?' for what may not be shown: it cannot end the line. */
void print_plain(FILE *stream, const char *text);

/* Prints what the library warns of, a plain line, on standard error. */
void say_warning(void *context, const char *text);

/* Flushes standard output; EXIT_MACHINE with a message where it could not take everything, else `status`. */
int finish_output(int status);

/* ---- arguments ---- */

/* An option: `--name`, or `-letter` where letter is not 0; `value` names its argument, NULL if it has none. */
typedef struct option_spec {
    const char *name;
    char letter;
    const char *value;
} option_spec;

/* Reads argv[1..] one by one. */
typedef struct arguments {
    int argc;
    char **argv;
    int next;
    const option_spec *options; /* ends with a NULL name */
    const char *command;
    const char *value;  /* the argument of the option just read */
    bool only_operands; /* behind "--" */
} arguments;

enum { ARGUMENT_END = -1, ARGUMENT_OPERAND = -2, ARGUMENT_ERROR = -3 };

/* The number of the next option in `options`, with its argument in x->value; ARGUMENT_OPERAND with the operand there;
 * ARGUMENT_END; or ARGUMENT_ERROR after having printed what is wrong. Takes "--name value", "--name=value", "-n value",
 * "-nvalue". */
int arguments_next(arguments *line);

/* Takes an option or an operand, of the command's own request; false after having printed what is wrong. */
typedef bool take_argument(void *request, int option, const char *value);

/* Hands all of them to `take`. ARGUMENT_END; or, after --help, which is answered with `help`, or after what was wrong,
 * the exit status. */
int arguments_take(arguments *line, const char *help, take_argument *take, void *request);

/* Room for every operand, and one more, for pc_free; NULL after having said that there is no memory. */
const char **arguments_room(int argc);

/* Parse the argument of option `name`; false after having printed what is wrong. */
bool argument_integer(const char *name, const char *text, int64_t least, int64_t most, int64_t *number);
bool argument_number(const char *name, const char *text, double *number);

/* Which of "one|two|three" the text is, from 0; and as what rows are printed: table, csv or json. `what` says what the
 * words are. */
bool argument_word(const char *name, const char *what, const char *words, const char *text, int *index);
/* I/N of --shard: I from 1 to N, and that at most `most`. */
bool argument_shard(const char *text, int64_t *shard, int64_t *count, int64_t most);
bool argument_format(const char *name, const char *text, pc_format *format);

/* ---- progress ---- */

/* A bar on standard error where that is a terminal and the user did not ask for silence; otherwise nothing. */
typedef struct progress {
    pthread_mutex_t lock; /* held while the bar is drawn or taken back */
    bool is_shown;
    int64_t total, done, first; /* first: what was done when the clock was started */
    double started_s, drawn_s;
    int drawn;        /* characters of it that stand on the terminal */
    const char *unit; /* what is counted; progress_start says "runs" */
    char note[80];    /* behind it, if there is room; empty: nothing */
} progress;

void progress_start(progress *bar, int64_t total, bool is_quiet);
void progress_step(progress *bar);
/* Where the work is; of another unit than before it is counted anew. */
void progress_at(progress *bar, int64_t done, int64_t total, const char *unit);
/* What there is to say beside it from now on, at once if the bar has been there for long enough. */
void progress_note(progress *bar, const char *note);
void progress_end(progress *bar);

/* Takes the bar back for good, from any thread, with what the terminal has put behind it (^C): before the last words of
 * a command that a signal ends. Who would draw it again waits for the end. */
void progress_stop(progress *bar);

#endif
