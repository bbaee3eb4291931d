/* expert_counts_file.h: files of how many tokens went to each expert. Private to scenarios/.
 *
 *     # layer by layer, as a router counts them
 *     4096,3801,4410,...
 *
 * A line is a layer, a number an expert; all lines have as many. Lines that begin with # are left out, and so is a
 * first line of words ("nan" and "inf" are none). If its first word is `layer`, the first column numbers the layers and
 * is left out, too.
 */
#ifndef PC_SCENARIOS_EXPERT_COUNTS_FILE_H
#define PC_SCENARIOS_EXPERT_COUNTS_FILE_H

#include "models/workload/expert_counts.h"

/* PC_ERROR_INPUT with file and line. Free with pc_expert_counts_free. */
pc_code pc_expert_counts_read(const char *path, pc_expert_counts *counts, pc_error *error);

/* The same of a text, which is cut up; messages call it `name`. */
pc_code pc_expert_counts_read_text(const char *name, char *text, pc_expert_counts *counts, pc_error *error);

#endif
