#include "results/stream_text.h"

#include <errno.h>
#include <string.h>

bool pc_stream_text_flush(pc_text *text, FILE *stream) {
    bool done = !text->failed && fwrite(text->data ? text->data : "", 1, text->size, stream) == text->size;
    text->size = 0;
    return done;
}

pc_code pc_stream_text_write(pc_stream_writer *writer, void *context, const char *what, FILE *stream, pc_error *error) {
    pc_text text = {0};
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    errno = 0;
    bool done = writer(context, &text, stream) && fflush(stream) == 0;
    int cause = errno;
    bool starved = text.failed;
    pc_number_scope_leave(&scope);
    pc_text_free(&text);
    if (done) return PC_OK;
    if (starved) return pc_error_no_memory(error);
    return pc_error_set(error, PC_ERROR_IO, "cannot write %s: %s", what, cause ? strerror(cause) : "stream error");
}
