/* folder.h: a folder of its own for every test, under TMPDIR. */
#ifndef PC_TESTS_FOLDER_H
#define PC_TESTS_FOLDER_H

#include "tests/support.h"

#include <dirent.h>
#include <unistd.h>

typedef struct folder {
    char path[64];
    char file[128]; /* the one in it that the test is about: not made yet */
} folder;

/* From the file's name; cmocka's state becomes the folder. */
static inline int make_folder(void **state) {
    const char *file_name = *state;
    folder *made = calloc(1, sizeof *made);
    *state = NULL; /* the teardown comes even where this fails */
    if (!made) return -1;
    test_temporary(made->path, sizeof made->path, "pipecast-test");
    if (!mkdtemp(made->path)) {
        free(made);
        return -1;
    }
    snprintf(made->file, sizeof made->file, "%s/%s", made->path, file_name);
    *state = made;
    return 0;
}

static inline int remove_folder(void **state) {
    folder *made = *state;
    char command[128];
    if (!made) return 0;
    snprintf(command, sizeof command, "rm -rf '%s'", made->path);
    int status = system(command);
    free(made);
    return status;
}

static inline int count_entries(const char *path) {
    int count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) count++;
    closedir(directory);
    return count;
}

/* A test that finds its folder in `state`. */
#define TEST_IN_FOLDER(function, file_name)                                                                            \
    cmocka_unit_test_prestate_setup_teardown(function, make_folder, remove_folder, file_name)

#endif
