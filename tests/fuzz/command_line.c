/* Fuzz target: the command line. An input is the arguments, one a line; main is the command's own. What opens files,
 * and what simulates or searches, is replaced (meson.build wraps it): the work ends where it would begin. The exit
 * status is one of the documented ones, and with bad input there is one line on standard error, "pipecast: ...". */
#include "calib/import/import.h"
#include "calib/trace/kineto.h"
#include "models/planner/planner.h"
#include "models/schedule/exchange.h"
#include "models/schedule/replay.h"
#include "results/store/store.h"
#include "scenarios/import/import.h"
#include "scenarios/measured.h"
#include "sweep/sweep.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 32, MESSAGES_SIZE = 1 << 16 };

int pipecast_main(int argc, char **argv);

/* ---- instead of files and work ---- */

static pc_code refuse(pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT, "none; expected nothing in this test");
}

#define REFUSES(name, ...)                                                                                             \
    pc_code __wrap_##name(__VA_ARGS__, pc_error *error);                                                               \
    pc_code __wrap_##name(__VA_ARGS__, pc_error *error)

REFUSES(pc_results_open, const char *path, pc_results_reader **reader) {
    return (void)path, (void)reader, refuse(error);
}
REFUSES(pc_results_open_part, const char *path, pc_results_reader **reader) {
    return (void)path, (void)reader, refuse(error);
}
REFUSES(pc_results_create, const char *path, pc_results_writer **writer) {
    return (void)path, (void)writer, refuse(error);
}
REFUSES(pc_profile_read, const char *path, pc_profile *profile) {
    return (void)path, (void)profile, refuse(error);
}
REFUSES(pc_profile_write, const pc_profile *profile, const char *path) {
    return (void)path, (void)profile, refuse(error);
}
REFUSES(pc_profile_import, pc_profile *profile, const char *path, const pc_import_options *options) {
    return (void)path, (void)profile, (void)options, refuse(error);
}
REFUSES(pc_kineto_read, const char *path, pc_rank_trace *trace) {
    return (void)path, (void)trace, refuse(error);
}
REFUSES(pc_measured_read, const char *path, pc_measured_say *say, void *context, pc_measured *measured) {
    *measured = (pc_measured){0};
    return (void)path, (void)say, (void)context, refuse(error);
}
REFUSES(pc_schedule_read_torch_csv, const char *path, pc_schedule *schedule) {
    return (void)path, (void)schedule, refuse(error);
}
REFUSES(pc_generate, const pc_generator *generator, const pc_generate_request *request, pc_schedule *schedule,
        pc_block *block) {
    return (void)generator, (void)request, (void)schedule, (void)block, refuse(error);
}
REFUSES(pc_plan_run, const pc_plan_space *space, const pc_plan_request *request, pc_plan_answer *answer) {
    return (void)space, (void)request, (void)answer, refuse(error);
}
REFUSES(pc_replacement_probe, const char *path) {
    return (void)path, (void)error, PC_OK;
}
REFUSES(pc_sweep_files_check_target, const char *path) {
    return (void)path, (void)error, PC_OK;
}
REFUSES(pc_import_file, pc_import_format format, const char *path, pc_import_text *made) {
    fuzz_require(format < PC_IMPORT_FORMATS && path, "an import has a format and a file");
    return (void)made, refuse(error);
}
pc_code __wrap_refuse_same_file(const char *input, const char *output, const char *what, pc_error *error);
pc_code __wrap_refuse_same_file(const char *input, const char *output, const char *what, pc_error *error) {
    return (void)input, (void)output, (void)what, (void)error, PC_OK;
}
int __wrap_command_list(int argc, char **argv); /* reads folders */
int __wrap_command_list(int argc, char **argv) {
    return (void)argc, (void)argv, 0;
}

/* Of `pipecast run` all is read: files, too, as far as the input has them. */
REFUSES(pc_sweep_run, const pc_sweep_request *request, const pc_sweep_sink *sink, pc_sweep **sweep) {
    (void)sink, (void)sweep;
    bool is_whole = request->scenario_count > 0 && request->shard >= 1 && request->shard <= request->shard_count;
    fuzz_require(is_whole, "a request to run is whole");
    return refuse(error);
}

/* ---- the input as arguments ---- */

static int cut_words(char *text, char *words[WORDS_MAX + 1]) {
    int count = 0;
    words[count++] = "pipecast";
    for (char *word; count < WORDS_MAX && (word = strsep(&text, "\n"));) words[count++] = word;
    words[count] = NULL;
    return count;
}

static void check_messages(int status, const char *messages) {
    fuzz_require(status >= 0 && status <= 3, "the exit status is a documented one");
    if (status < 2) return;
    const char *newline = strchr(messages, '\n');
    bool is_one_line = strncmp(messages, "pipecast: ", 10) == 0 && newline && newline[1] == '\0';
    if (!is_one_line) fprintf(stdout, "%s", messages);
    fuzz_require(is_one_line, "bad input gives one line, 'pipecast: ...'");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char messages[MESSAGES_SIZE];
    static FILE *sink, *own_output;
    char *words[WORDS_MAX + 1], *text = fuzz_text(data, size);
    FILE *own_errors = stderr;
    if (!sink) sink = fopen("/dev/null", "w");
    FILE *errors = fmemopen(messages, sizeof messages, "w");
    fuzz_require(sink && errors, "memory is not short");
    own_output = stdout;
    messages[0] = '\0';
    stdout = sink;
    stderr = errors;
    int status = pipecast_main(cut_words(text, words), words);
    fclose(errors);
    stdout = own_output;
    stderr = own_errors;
    free(text);
    check_messages(status, messages);
    return 0;
}
