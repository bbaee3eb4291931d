#include "kernels/cuda/loaded_library.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Once loaded they stay (NODELETE): libraries of GPUs leave threads and work at exit behind, which live in their code.
 * The loader's words, those of the first name: it is the one that is meant, the others are spares. */
static void *open_first(const char *const *names, char *words, size_t size) {
    for (int i = 0; names[i]; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (library) return library;
        const char *why = dlerror();
        if (i == 0) snprintf(words, size, "%s", why ? why : names[i]);
    }
    return NULL;
}

/* Pointers to functions and to data are of one size wherever there is dlsym; C has no cast between them. */
static bool look_up(void *library, const pc_shared_library_entry *entry) {
    void *address = dlsym(library, entry->name);
    memcpy(entry->to, &address, sizeof address);
    return address || entry->is_optional;
}

pc_code pc_shared_library_open(const char *title, const char *expected, const char *const *names,
                               const pc_shared_library_entry *entries, int count, void **library, pc_error *error) {
    assert(names[0]);
    char words[256];
    void *opened = open_first(names, words, sizeof words);
    if (!opened) return pc_error_set(error, PC_ERROR_IO, "%s: %s; expected %s", title, words, expected);
    for (int i = 0; i < count; i++) {
        if (look_up(opened, &entries[i])) continue;
        dlclose(opened);
        return pc_error_set(error, PC_ERROR_IO, "%s: the library has no %s; expected %s", title, entries[i].name,
                            expected);
    }
    *library = opened;
    return PC_OK;
}

void pc_shared_library_close(void *library) {
    if (library) dlclose(library);
}
