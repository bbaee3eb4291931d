#include "cli/look.h"

#include "cli/cli.h"
#include "engine/names.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* ---- what is asked for ---- */

bool look_take_colour(look_request *request, const char *value) {
    char hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = value};
    if (pc_colour_mode_parse(value, &request->colour)) return true;
    pc_nearest_offer_words(&nearest, "auto|always|never");
    report_usage("--color: '%s'%s; expected auto, always or never", value, pc_nearest_hint(&nearest, hint));
    return false;
}

bool look_take_columns(look_request *request, const char *value, pc_column_namer *name_of) {
    pc_error error = {0};
    request->has_columns = true;
    if (!pc_column_choice_parse(value, name_of, &request->columns, &error)) return true;
    pc_error_prefix(&error, "--columns");
    report(&error);
    return false;
}

/* ---- notes ---- */

void look_note(look_notes *notes, const char *format, ...) {
    char text[LOOK_NOTE_SIZE];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    for (int i = 0; i < notes->count; i++)
        if (strcmp(notes->list[i], text) == 0) return;
    if (notes->count == LOOK_NOTES_MAX) return;
    char *place = notes->text[notes->count];
    memcpy(place, text, sizeof text);
    notes->list[notes->count++] = place;
}

void look_note_assumed(look_notes *notes, const pc_model_assumed *list, int count, bool is_named) {
    for (int i = 0; i < count; i++) {
        bool has_name = is_named && list[i].model[0] != '\0';
        look_note(notes, "%s%snot given, so as GPT's: %s", has_name ? list[i].model : "", has_name ? ": " : "",
                  list[i].keys);
    }
}

/* ---- the terminal ---- */

static int said_by_terminal(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

pc_table_look look_of(const look_request *request, const look_notes *notes) {
    bool is_terminal = isatty(STDOUT_FILENO);
    return (pc_table_look){
        .width = pc_terminal_width(is_terminal, is_terminal ? said_by_terminal() : 0, getenv("COLUMNS")),
        .is_coloured = pc_colour_is_wanted(request->colour, is_terminal, getenv("NO_COLOR"), getenv("TERM")),
        .columns = request->has_columns ? &request->columns : NULL,
        .notes = notes->list,
        .note_count = notes->count};
}
