/* Fuzz target: what a launcher left in the environment (calib/device/launched.h). An input is lines NAME=VALUE; getenv
 * is replaced (meson.build wraps it). Where there are ranks, this one is of them. */
#include "calib/device/launched.h"
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 16 };

static char *line[LINES_MAX];
static int line_count;

char *__wrap_getenv(const char *name);
char *__real_getenv(const char *name);
char *__wrap_getenv(const char *name) {
    size_t length = strlen(name);
    bool is_launchers = strncmp(name, "OMPI_", 5) == 0 || strncmp(name, "PMI", 3) == 0 ||
                        strncmp(name, "MPI_", 4) == 0 || strncmp(name, "SLURM_", 6) == 0;
    if (!is_launchers) return __real_getenv(name);
    for (int i = 0; i < line_count; i++)
        if (strncmp(line[i], name, length) == 0 && line[i][length] == '=') return line[i] + length + 1;
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = fuzz_text(data, size), *rest = text;
    pc_launched launched = {.rank = -1};
    line_count = 0;
    for (char *word; line_count < LINES_MAX && (word = strsep(&rest, "\n"));) line[line_count++] = word;
    bool is_launched = pc_launched_ranks(&launched);
    line_count = 0;
    free(text);
    if (!is_launched) return 0;
    fuzz_require(launched.ranks > 1 && launched.rank >= 0 && launched.rank < launched.ranks,
                 "a rank is one of several");
    fuzz_require(launched.local_ranks > 0 && launched.local_rank >= 0, "a rank is one on its node");
    size_t length = strnlen(launched.key, sizeof launched.key);
    fuzz_require(length < sizeof launched.key, "a job's key ends");
    for (size_t i = 0; i < length; i++)
        fuzz_require(isalnum((unsigned char)launched.key[i]) || launched.key[i] == '-',
                     "a job's key can name a folder");
    return 0;
}
