/* How a table looks, by what is known of the terminal: table.h has the definitions. */
#include "results/table.h"

#include <stdlib.h>
#include <string.h>

bool pc_colour_mode_parse(const char *name, pc_colour_mode *mode) {
    static const char *const names[] = {
        [PC_COLOUR_AUTO] = "auto", [PC_COLOUR_ALWAYS] = "always", [PC_COLOUR_NEVER] = "never"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *mode = (pc_colour_mode)i;
        return true;
    }
    return false;
}

bool pc_colour_is_wanted(pc_colour_mode mode, bool is_terminal, const char *no_color, const char *term) {
    if (mode != PC_COLOUR_AUTO) return mode == PC_COLOUR_ALWAYS;
    bool is_dumb = !term || term[0] == '\0' || strcmp(term, "dumb") == 0;
    return is_terminal && !is_dumb && !(no_color && no_color[0] != '\0');
}

int pc_terminal_width(bool is_terminal, int said_by_terminal, const char *said_by_columns) {
    enum { USUAL = 80, MOST = 10000 };
    char *end = NULL;
    if (!is_terminal) return 0;
    if (said_by_terminal > 0) return said_by_terminal;
    long number = said_by_columns ? strtol(said_by_columns, &end, 10) : 0;
    return end && *end == '\0' && number > 0 && number <= MOST ? (int)number : USUAL;
}
