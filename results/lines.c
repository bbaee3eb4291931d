#include "results/lines.h"

#include <stdint.h>
#include <string.h>

/* ---- colour ---- */

/* ECMA-48, "select graphic rendition": faint, red and yellow in the terminal's own shades, and back to none. */
static const char *const codes[] = {
    [PC_INK_PLAIN] = "", [PC_INK_DIM] = "\x1b[2m", [PC_INK_RED] = "\x1b[31m", [PC_INK_YELLOW] = "\x1b[33m"};

static void add_inked(pc_text *text, const char *words, size_t size, pc_ink ink, bool is_coloured) {
    bool is_inked = is_coloured && ink != PC_INK_PLAIN && size > 0;
    if (is_inked) pc_text_printf(text, "%s", codes[ink]);
    pc_text_add(text, words, size);
    if (is_inked) pc_text_printf(text, "\x1b[0m");
}

void pc_lines_add_inked(pc_text *text, const char *words, pc_ink ink, bool is_coloured) {
    add_inked(text, words, strlen(words), ink, is_coloured);
}

void pc_lines_add_block(pc_text *text, const char *lines, pc_ink ink, bool is_coloured) {
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        add_inked(text, lines, length, ink, is_coloured);
        lines += length;
        if (*lines) pc_text_add(text, lines++, 1);
    }
}

/* ---- a line of a table ---- */

static void add_blanks(pc_text *text, size_t count) {
    pc_text_printf(text, "%*s", (int)count, "");
}

void pc_line_add(pc_line *line, const char *cell, size_t width, bool is_left, pc_ink ink) {
    size_t length = pc_utf8_length(cell), rest = width > length ? width - length : 0;
    if (length == 0) {
        line->waiting += width + PC_LINES_GAP;
        return;
    }
    add_blanks(line->text, line->waiting + (is_left ? 0 : rest));
    pc_lines_add_inked(line->text, cell, ink, line->is_coloured);
    line->waiting = (is_left ? rest : 0) + PC_LINES_GAP;
}

void pc_line_add_rule(pc_line *line, size_t width) {
    add_blanks(line->text, line->waiting);
    for (size_t i = 0; i < width; i++) pc_text_add(line->text, "-", 1);
    line->waiting = PC_LINES_GAP;
}

void pc_line_end(pc_line *line) {
    pc_text_add(line->text, "\n", 1);
    line->waiting = 0;
}

/* ---- lists and sentences ---- */

void pc_items_add(pc_items *items, const char *item) {
    size_t length = pc_utf8_length(item);
    bool is_first = items->used == 0, breaks = !is_first && items->used + 2 + length + 1 > items->width; /* a comma */
    pc_text_printf(items->text, "%s%s", is_first ? "" : breaks ? ",\n" : ", ", item);
    items->used = length + (is_first || breaks ? 0 : items->used + 2);
}

void pc_lines_add_wrapped(pc_text *text, const char *words, size_t width) {
    size_t used = 0;
    pc_text plain = {0};
    pc_text_add(&plain, "", 0);
    pc_text_add_line(&plain, words, SIZE_MAX);
    for (char *word = plain.data, *end; word && *word; word = end) {
        end = word + strcspn(word, " ");
        char *next = end + strspn(end, " ");
        *end = '\0'; /* also where it is one */
        size_t length = pc_utf8_length(word);
        bool breaks = used > 0 && used + 1 + length > width;
        pc_text_printf(text, "%s%s", used == 0 ? "" : breaks ? "\n" : " ", word);
        used = length + (used == 0 || breaks ? 0 : used + 1);
        end = next;
    }
    pc_text_add(text, "\n", 1);
    text->failed = text->failed || plain.failed;
    pc_text_free(&plain);
}
