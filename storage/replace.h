/* replace.h: puts a complete file in the place of another in one step.
 *
 * The new content is written to a temporary file in the same folder and renamed: whoever opens the path sees the old
 * file or the new one, whole. Where the file system has files without a name the temporary one is such until it is
 * complete, and nothing is left of it where the process is killed. Devices, pipes and folders are refused.
 *
 * If the path is a link, the file that it leads to is replaced. A link in a folder where others than its owner may
 * write is followed only if it is our own or root's. Links to folders on the way to the path are followed.
 */
#ifndef PC_STORAGE_REPLACE_H
#define PC_STORAGE_REPLACE_H

#include "engine/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What stood at a path: nothing, or a file, by which it is known again. */
typedef struct pc_standing {
    bool is_there;
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec written;
} pc_standing;

typedef struct pc_replacement {
    char *path;           /* the final one, links resolved */
    char *temporary;      /* the path of the file being written; NULL while it has no name */
    char *beside;         /* where it came to stand, if not at its path; NULL till then */
    int descriptor;       /* of that file, for reading and writing; closed on exec */
    bool is_guarded;      /* only what stood there then may be replaced */
    pc_standing standing; /* what stood at the path, when the replacement began or the guard says */
} pc_replacement;

/* What stands at the path, or, if that is a link, at what it leads to. PC_ERROR_INPUT as below. */
pc_code pc_replacement_look(const char *path, pc_standing *found, pc_error *error);

/* Makes the temporary file. PC_ERROR_INPUT if the path cannot become a file (no such folder, not writable, a folder,
 * a device), PC_ERROR_IO if the machine fails. End it with pc_replacement_commit or pc_replacement_discard. */
pc_code pc_replacement_begin(const char *path, pc_replacement *replacement, pc_error *error);

/* Appends to the temporary file. */
pc_code pc_replacement_write(pc_replacement *replacement, const void *bytes, size_t size, pc_error *error);

/* From now on nothing is replaced but what stood there by `standing`, or, if that is NULL, when the replacement began.
 */
void pc_replacement_guard(pc_replacement *replacement, const pc_standing *standing);

/* Makes it durable and puts it in place; on failure it is gone and what was there stands. If a guard finds another file
 * there, that stays, too: the new one then stands beside it, as PATH.new, or PATH.new.2 and on, and the message of
 * PC_ERROR_INPUT says so. Ends the replacement. */
pc_code pc_replacement_commit(pc_replacement *replacement, pc_error *error);

/* All of that for a file whose bytes are at hand. */
pc_code pc_replacement_put(const char *path, const void *bytes, size_t size, pc_error *error);

/* For who is about to end the process: returns when no file stands under a temporary name, and lets none come to.
 * Signals that end it wait for that by themselves, where they are not taken by another thread. */
void pc_replacement_stop(void);

/* Removes the temporary file; what was there stands. */
void pc_replacement_discard(pc_replacement *replacement);

/* The file that would be replaced: the path, or where it is a link what that leads to, there or not. The caller frees
 * it. */
pc_code pc_replacement_target(const char *path, char **target, pc_error *error);

/* Whether a replacement of this path could begin now. For finding out before the work is done. */
pc_code pc_replacement_probe(const char *path, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
