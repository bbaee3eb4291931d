/* comma_locale.h: a locale with decimal commas, to see that it does not show. */
#ifndef PC_TESTS_COMMA_LOCALE_H
#define PC_TESTS_COMMA_LOCALE_H

#include "tests/support.h"

#include <locale.h>
#include <stdbool.h>
#include <unistd.h>

static inline bool set_comma_locale(const char *name) {
    return setlocale(LC_ALL, name) && *localeconv()->decimal_point == ',';
}

/* One that is installed, or made here of what glibc has to make it of; the program's until setlocale(LC_ALL, "C").
 * False where neither is to be had. */
static inline bool take_comma_locale(void) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "de_DE"};
    char place[64], command[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (set_comma_locale(names[i])) return true;
    test_temporary(place, sizeof place, "pipecast-locale");
    if (!mkdtemp(place)) return false;
    snprintf(command, sizeof command, "localedef -i de_DE -f ISO-8859-1 '%s/de_DE' >/dev/null 2>&1",
             place); /* UTF-8 takes five times as long */
    bool is_taken = system(command) <= 1 << 8 && setenv("LOCPATH", place, 1) == 0 && set_comma_locale("de_DE");
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -rf '%s'", place);
    return system(command) == 0 && is_taken;
}

#endif
