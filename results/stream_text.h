/* stream_text.h: private to results/: a text on its way to a stream, piece by piece, so that memory does not grow with
 * what is written.
 */
#ifndef PC_RESULTS_STREAM_TEXT_H
#define PC_RESULTS_STREAM_TEXT_H

#include "engine/error.h"
#include "engine/marks.h"
#include "storage/text.h"

#include <stdbool.h>
#include <stdio.h>

/* Sends the text on its way and empties it; false if it had failed, or the stream fails. */
PC_MUST_USE bool pc_stream_text_flush(pc_text *text, FILE *stream);

/* Writes all that there is by way of `text`, which is empty, and flushes it; false as above. */
typedef bool pc_stream_writer(void *context, pc_text *text, FILE *stream);

/* Runs the writer within a number scope, and flushes the stream. PC_ERROR_IO, "cannot write WHAT: ...", if that
 * fails. */
pc_code pc_stream_text_write(pc_stream_writer *writer, void *context, const char *what, FILE *stream, pc_error *error);

#endif
