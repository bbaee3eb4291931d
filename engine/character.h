/* character.h: private to the library: characters of Unicode, as far as text that others wrote is shown, or stands in a
 * line. There is one table for all of it.
 */
#ifndef PC_ENGINE_CHARACTER_H
#define PC_ENGINE_CHARACTER_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_NO_CHARACTER = 0xFFFD }; /* what stands for bytes that are no UTF-8; it is a character, too */

/* Decodes the character at *bytes and moves past it; PC_NO_CHARACTER, and one byte further, if there is no valid one
 * (RFC 3629, section 4). The text must not be at its end. */
unsigned pc_utf8_next(const char **bytes);

/* Whether a terminal may get it. Not so controls (a terminal obeys them), the ends of lines and paragraphs, format
 * characters (they turn the text around, or cannot be seen), blanks that look like nothing, and the code points that
 * are no characters. Marks and the choice between text and picture (U+FE0F) may be shown. */
bool pc_character_is_shown(unsigned character);

/* Whether YAML 1.1 ends a line with it (yaml.org/spec/1.1, section 4.1.4): libyaml does. */
bool pc_character_ends_line(unsigned character);

#ifdef __cplusplus
}
#endif
#endif
