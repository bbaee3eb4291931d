/* gnuplot.h: private to results/: runs gnuplot on a script. */
#ifndef PC_RESULTS_GNUPLOT_H
#define PC_RESULTS_GNUPLOT_H

#include "engine/error.h"
#include "storage/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds `text` as a string of gnuplot in single quotes, in which nothing is expanded: control characters replaced, an
 * apostrophe made the typographic one (gnuplot takes a doubled one for the end where it comes first), at most
 * `characters` long. Text from users gets into a script in no other way: in double quotes, gnuplot would run what
 * stands between backquotes. */
void pc_gnuplot_add_string(pc_text *script, const char *text, size_t characters);

/* A file in memory, open for reading and writing, closed on exec; -1 and errno where there is none. gnuplot draws into
 * one because it does not notice a full disk: what it printed is then written out by us. */
int pc_memory_file(const char *name);

/* Runs the script, which must leave `set output` alone: what gnuplot prints goes to `output`, an open descriptor. No
 * shell is involved, nor the user's gnuplot settings. PC_ERROR_IO where gnuplot is not there or fails, with the line in
 * which it says why. */
pc_code pc_gnuplot_run(const pc_text *script, int output, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
