#include "scenarios/place.h"

#include "engine/alloc.h"
#include "scenarios/source.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

pc_place pc_place_of_user(void) {
    return (pc_place){.folder = ".", .root = NULL, .reach = PC_REACH_USER};
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool pc_place_equal(const pc_place *a, const pc_place *b) {
    return a->reach == b->reach && same_text(a->folder, b->folder) && same_text(a->root, b->root);
}

char *pc_place_join(const char *folder, const char *path) {
    bool is_whole = path[0] == '/' || strcmp(folder, ".") == 0;
    size_t size = strlen(folder) + strlen(path) + 2;
    char *joined = pc_alloc(size, 1);
    if (joined) snprintf(joined, size, "%s%s%s", is_whole ? "" : folder, is_whole ? "" : "/", path);
    return joined;
}

/* What of the path stands below the folder, as both are written; NULL if the one does not begin with the other. */
static const char *below(const char *folder, const char *path) {
    size_t length = strlen(folder);
    if (strcmp(folder, "/") == 0) return path[0] == '/' ? path + 1 : NULL;
    return strncmp(path, folder, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

/* Whether a path goes above where it starts: "a/../../b". */
static bool climbs_out(const char *path) {
    int64_t depth = 0;
    while (*path && depth >= 0) {
        size_t length = strcspn(path, "/");
        if (length == 2 && path[0] == '.' && path[1] == '.')
            depth--;
        else if (length > 0 && !(length == 1 && path[0] == '.'))
            depth++;
        path += length;
        path += *path == '/';
    }
    return depth < 0;
}

/* Of a path at which there is nothing: by its words alone. */
static bool leads_out(const char *root, const char *real_root, const char *path) {
    const char *inside = below(root, path);
    if (!inside) inside = below(real_root, path);
    if (!inside && path[0] != '/' && strcmp(root, ".") == 0) inside = path;
    return !inside || climbs_out(inside);
}

/* Links of /proc have a path to be read that need not be what they lead to: in another namespace, or since it was
 * deleted. */
static bool is_same_file(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 && one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* Follows every link: what is left has no "..". Where links cannot be followed to their end, for their names are too
 * long or a folder may not be searched, who opens the file may get further than we do: that is not inside. Nor is what
 * is there without a path: /proc/self/fd has links to files that are deleted, and to pipes. */
static bool is_inside(const char *root, const char *path) {
    char real_root[PATH_MAX], real[PATH_MAX];
    if (!realpath(root, real_root)) return false;
    if (realpath(path, real)) return below(real_root, real) && is_same_file(path, real);
    bool is_absent = (errno == ENOENT || errno == ENOTDIR) && access(path, F_OK) != 0;
    return is_absent && !leads_out(root, real_root, path);
}

pc_code pc_place_check(const pc_place *place, const char *name, const char *path, pc_error *error) {
    if (place->reach != PC_REACH_ROOT || is_inside(place->root, path)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%.80s: leads out of the folder %.120s; expected a file in it, or the option --allow-outside",
                        name, place->root);
}

pc_code pc_place_enter(const pc_place *place, const char *path, char **folder, pc_place *inner, pc_error *error) {
    char *made = pc_source_folder(path ? path : ".");
    if (!made) return pc_error_no_memory(error);
    *folder = made;
    *inner = (pc_place){.folder = made, .root = place->root, .reach = place->reach};
    if (place->reach != PC_REACH_USER) return PC_OK;
    inner->reach = PC_REACH_ROOT;
    if (!path || !place->root || !is_inside(place->root, path)) inner->root = made;
    return PC_OK;
}
