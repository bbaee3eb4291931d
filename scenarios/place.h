/* place.h: where the names in a file count from, and which files they can reach. Private to scenarios/.
 *
 * A scenario is data, often somebody else's: what it names stays in its folder, unless who runs it allows more.
 * What the user names is the user's own word; what that file names in turn is data again.
 */
#ifndef PC_SCENARIOS_PLACE_H
#define PC_SCENARIOS_PLACE_H

#include "engine/error.h"

#include <stdbool.h>

typedef enum pc_reach {
    PC_REACH_ROOT, /* files in `root` and below */
    PC_REACH_USER, /* any file; what that names lies in `root` where it does itself, in its own folder otherwise */
    PC_REACH_ALL   /* any file, and whatever that names */
} pc_reach;

typedef struct pc_place {
    const char *folder; /* from which paths count; borrowed */
    const char *root;   /* borrowed; NULL if there is none, with PC_REACH_USER */
    pc_reach reach;
} pc_place;

/* The user's own word, from where we are. */
pc_place pc_place_of_user(void);

bool pc_place_equal(const pc_place *a, const pc_place *b);

/* `path` as it counts from `folder`; the caller frees it. NULL if memory is short. */
char *pc_place_join(const char *folder, const char *path);

/* PC_ERROR_INPUT where `path`, which is `name` joined, cannot be reached: by its words, or by a link on its way. A file
 * that is not there is somebody else's to refuse, where its words alone lead nowhere else. */
pc_code pc_place_check(const pc_place *place, const char *name, const char *path, pc_error *error);

/* The place of the names in the file `path`, which is reached from `place`; NULL: a text of the library. `*folder`,
 * which `inner` borrows, is the caller's to free. */
pc_code pc_place_enter(const pc_place *place, const char *path, char **folder, pc_place *inner, pc_error *error);

#endif
