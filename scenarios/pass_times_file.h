/* pass_times_file.h: files of measured passes, as YAML, JSON or CSV. docs/measured-passes.md has the format.
 *
 *     stages:
 *       - {F: 10.5 ms, B: 11 ms, W: 7.5 ms, activation: 1.2 GiB}
 *
 * A row is a stage, or a chunk of one. Keys and columns are the same in all three forms: `F` with a unit beside the
 * number, or `F_ms` and a number alone.
 */
#ifndef PC_SCENARIOS_PASS_TIMES_FILE_H
#define PC_SCENARIOS_PASS_TIMES_FILE_H

#include "engine/error.h"
#include "models/schedule/pass_times.h"
#include "storage/text.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a word names such a file: it ends in .yaml, .yml, .json or .csv, or has a '/'. */
bool pc_pass_times_is_file(const char *word);

/* Reads the file; CSV if its name ends so. PC_ERROR_INPUT with file, line and key. Free with pc_pass_times_free. */
pc_code pc_pass_times_read(const char *path, pc_pass_times *times, pc_error *error);

/* The same of a text, which messages call `name`. */
pc_code pc_pass_times_read_text(const char *name, const char *text, bool is_csv, pc_pass_times *times, pc_error *error);

/* Adds the file as YAML, which reads back as the same but for what a scatter loses behind four digits. `source` is what
 * it was made of, one line. */
void pc_pass_times_write(const pc_pass_times *times, const char *source, pc_text *text);

#ifdef __cplusplus
}
#endif
#endif
