#define _GNU_SOURCE /* memfd_create */
#include "results/figures/gnuplot.h"

#include "engine/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RIGHT_QUOTATION_MARK = 0x2019, WORD_JOINER = 0x2060 /* has no width */ };

/* gnuplot writes "&#x1;" and "]]>" into an svg file as they are, which is then no XML. */
static bool spoils_svg(char before, char here) {
    return (before == '&' && here == '#') || (before == ']' && here == '>');
}

void pc_gnuplot_add_string(pc_text *script, const char *text, size_t characters) {
    pc_text line = {0};
    pc_text_add_line(&line, text, characters);
    script->failed = script->failed || line.failed;
    pc_text_add(script, "'", 1);
    for (size_t i = 0; i < line.size; i++) {
        if (i > 0 && spoils_svg(line.data[i - 1], line.data[i])) pc_text_add_character(script, WORD_JOINER);
        if (line.data[i] == '\'')
            pc_text_add_character(script, RIGHT_QUOTATION_MARK);
        else
            pc_text_add(script, &line.data[i], 1);
    }
    pc_text_add(script, "'", 1);
    pc_text_free(&line);
}

static pc_code fail(pc_error *error, const char *what, int cause) {
    return pc_error_set(error, PC_ERROR_IO, "gnuplot: %s: %s", what, strerror(cause));
}

/* --- files in memory: the script, and what gnuplot complains of. A pipe could break or fill up. --- */

/* A descriptor above 2, so that making it the child's stream overwrites none of the others. */
int pc_memory_file(const char *name) {
    int low = memfd_create(name, MFD_CLOEXEC);
    if (low < 0 || low > STDERR_FILENO) return low;
    int high = fcntl(low, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int cause = errno;
    close(low);
    errno = cause;
    return high;
}

static bool write_all(int descriptor, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t written = write(descriptor, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

static pc_code open_script(const pc_text *script, int *descriptor, pc_error *error) {
    int file = pc_memory_file("pipecast-script");
    if (file < 0) return fail(error, "cannot keep its script", errno);
    if (write_all(file, script->data, script->size) && lseek(file, 0, SEEK_SET) == 0) {
        *descriptor = file;
        return PC_OK;
    }
    int cause = errno;
    close(file);
    return fail(error, "cannot keep its script", cause);
}

/* `output` is 0 where our caller closed its standard input: then the script would take its place. */
static int copy_output(int output) {
    return fcntl(output, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* The first line that says something, without the blanks that gnuplot indents it by. */
static void read_complaint(int descriptor, char *line, size_t size) {
    ssize_t got = pread(descriptor, line, size - 1, 0);
    line[got > 0 ? got : 0] = '\0';
    char *start = line + strspn(line, " \t\r\n");
    start[strcspn(start, "\r\n")] = '\0';
    memmove(line, start, strlen(start) + 1);
}

/* --- the environment: ours, but for what would make the same script give other bytes --- */

static const char *const settings[] = {"LC_ALL=C.UTF-8", "SOURCE_DATE_EPOCH=0"};
enum { SETTINGS = sizeof settings / sizeof settings[0] };

static bool is_overruled(const char *variable) {
    for (int i = 0; i < SETTINGS; i++)
        if (strncmp(variable, settings[i], strcspn(settings[i], "=") + 1) == 0) return true;
    return false;
}

/* An array of strings that others own; the caller frees the array. */
static char **make_environment(void) {
    size_t count = 0, kept = 0;
    while (environ && environ[count]) count++;
    char **variables = pc_alloc(count + SETTINGS + 1, sizeof *variables);
    if (!variables) return NULL;
    for (size_t i = 0; i < count; i++)
        if (!is_overruled(environ[i])) variables[kept++] = environ[i];
    for (int i = 0; i < SETTINGS; i++) variables[kept++] = (char *)settings[i]; /* posix_spawn does not write there */
    return variables;
}

/* --- the process --- */

static int add_streams(posix_spawn_file_actions_t *actions, int input, int output, int complaints) {
    int cause = posix_spawn_file_actions_adddup2(actions, input, STDIN_FILENO);
    if (!cause) cause = posix_spawn_file_actions_adddup2(actions, output, STDOUT_FILENO);
    if (!cause) cause = posix_spawn_file_actions_adddup2(actions, complaints, STDERR_FILENO);
    return cause;
}

static int spawn(pid_t *process, int input, int output, int complaints, char **variables) {
    char *const arguments[] = {"gnuplot", "--default-settings", NULL};
    posix_spawn_file_actions_t actions;
    int cause = posix_spawn_file_actions_init(&actions);
    if (cause) return cause;
    cause = add_streams(&actions, input, output, complaints);
    if (!cause) cause = posix_spawnp(process, arguments[0], &actions, NULL, arguments, variables);
    posix_spawn_file_actions_destroy(&actions);
    return cause;
}

static pc_code wait_for(pid_t process, int output, int complaints, pc_error *error) {
    int status;
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR) return fail(error, "cannot wait for it", errno);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && lseek(output, 0, SEEK_END) > 0) return PC_OK;
    char line[256];
    read_complaint(complaints, line, sizeof line);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127 && !line[0]) return fail(error, "cannot be started", ENOEXEC);
    return pc_error_set(error, PC_ERROR_IO, "gnuplot: failed: %s", line[0] ? line : "it gives no reason");
}

static pc_code run(int input, int output, int complaints, pc_error *error) {
    char **variables = make_environment();
    if (!variables) return pc_error_no_memory(error);
    pid_t process;
    int cause = spawn(&process, input, output, complaints, variables);
    pc_free(variables);
    if (cause == ENOENT) return pc_error_set(error, PC_ERROR_IO, "gnuplot: not found; install gnuplot-nox");
    return cause ? fail(error, "cannot be started", cause) : wait_for(process, output, complaints, error);
}

pc_code pc_gnuplot_run(const pc_text *script, int output, pc_error *error) {
    int input = -1;
    if (script->failed) return pc_error_no_memory(error);
    pc_code code = open_script(script, &input, error);
    if (code) return code;
    int complaints = pc_memory_file("pipecast-complaints"), high = copy_output(output);
    if (complaints < 0 || high < 0)
        code = fail(error, "cannot be started", errno);
    else
        code = run(input, high, complaints, error);
    if (complaints >= 0) close(complaints);
    if (high >= 0) close(high);
    close(input);
    return code;
}
