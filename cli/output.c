/* What goes to standard output, and where other output may not go. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

pc_code refuse_same_file(const char *input, const char *output, const char *what, pc_error *error) {
    struct stat from, to;
    if (stat(output, &to) != 0 || stat(input, &from) != 0) return PC_OK;
    if (to.st_ino != from.st_ino || to.st_dev != from.st_dev) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "-o: %s: is %s; expected another file", output, what);
}

void print_plain(FILE *stream, const char *text) {
    char plain[2 * PATH_MAX];
    snprintf(plain, sizeof plain, "%s", text);
    pc_error_make_plain(plain);
    fputs(plain, stream);
}

void say_warning(void *context, const char *text) {
    (void)context;
    fprintf(stderr, "pipecast: warning: %s\n", text);
}

int finish_output(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    report_usage("standard output: %s; expected room for the results", strerror(errno));
    return EXIT_MACHINE;
}
