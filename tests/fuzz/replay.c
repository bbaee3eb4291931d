/* Feeds every file of the folders named to a fuzz target: what libFuzzer found, and what it started from, in every
 * build. A folder that is not there has no files. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* libFuzzer's, for targets with mutators of their own. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
    (void)data;
    return size < max_size ? size : max_size;
}

enum { INPUT_MAX = 4 << 20 };

static bool feed_file(const char *path) {
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_MAX);
    size_t size = file && data ? fread(data, 1, INPUT_MAX, file) : 0;
    bool is_read = file && data && !ferror(file);
    if (file) fclose(file);
    /* A block of its own size, so that sanitizers see a read beyond it. */
    uint8_t *exact = is_read ? realloc(data, size ? size : 1) : NULL;
    if (!exact) {
        perror(path);
        free(data);
        return false;
    }
    fprintf(stderr, "%s\n", path);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    /* cppcheck-suppress memleak ; realloc has taken `data` */
    return true;
}

static int is_shown(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

/* The number of files; -1 where one could not be read. */
static int feed_folder(const char *folder) {
    char path[4096];
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_shown, alphasort), fed = 0;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (fed >= 0) fed = feed_file(path) ? fed + 1 : -1;
        free(entries[i]);
    }
    free(entries);
    return fed;
}

int main(int argc, char **argv) {
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int fed = feed_folder(argv[i]);
        if (fed < 0) return 1;
        total += fed;
    }
    if (total == 0) fprintf(stderr, "no inputs\n");
    printf("%d inputs\n", total);
    return total == 0;
}
