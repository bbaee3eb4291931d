#define _GNU_SOURCE /* memmem */
#include "results/figures/figure_svg.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* --- notes: a line "DATA SHAPE" for a plot, a line "ATTRIBUTES<tab>TITLE" for each of its shapes, an empty line --- */

static void add_escaped(pc_text *text, const char *source) {
    pc_text line = {0};
    pc_text_add_line(&line, source, SIZE_MAX);
    for (size_t i = 0; i < line.size; i++) {
        char c = line.data[i];
        if (c == '&')
            pc_text_printf(text, "&amp;");
        else if (c == '<')
            pc_text_printf(text, "&lt;");
        else if (c == '>')
            pc_text_printf(text, "&gt;");
        else if (c == '"')
            pc_text_printf(text, "&quot;");
        else
            pc_text_add(text, &c, 1);
    }
    text->failed = text->failed || line.failed;
    pc_text_free(&line);
}

void pc_svg_begin_plot(pc_svg_notes *notes, const char *data, const char *shape) {
    notes->plot_start = notes->text.size;
    pc_text_printf(&notes->text, "%s %s\n", data, shape);
    notes->note_start = notes->text.size;
}

void pc_svg_add_note(pc_svg_notes *notes, const char *attributes, const char *title) {
    pc_text_printf(&notes->text, "%s\t", attributes);
    add_escaped(&notes->text, title);
    pc_text_add(&notes->text, "\n", 1);
}

void pc_svg_end_plot(pc_svg_notes *notes) {
    bool is_empty = notes->text.size == notes->note_start;
    if (!is_empty)
        pc_text_add(&notes->text, "\n", 1);
    else if (!notes->text.failed)
        notes->text.size = notes->plot_start;
}

/* --- walking through the picture, tag by tag --- */

typedef struct finisher {
    const char *at, *end;
    const char *note, *notes_end; /* what is next of the notes */
    const char *title;            /* of the picture */
    char prefix[16];              /* of ids */
    int depth;                    /* of groups */
    int plot_depth;               /* outside of the plot that we are in; -1: in none that has notes */
    char shape[16];
    bool does_not_match;
    pc_text *out;
} finisher;

static bool starts(const char *at, const char *end, const char *text) {
    size_t length = strlen(text);
    return (size_t)(end - at) >= length && memcmp(at, text, length) == 0;
}

static void copy(finisher *x, const char *from, const char *to) {
    pc_text_add(x->out, from, (size_t)(to - from));
}

/* How long a piece of a tag is behind which an id stands, at its definition or where it is used; 0: it is none. */
static size_t id_mark(const char *at, const char *end) {
    static const char *const marks[] = {" id='", " id=\"", "href='#", "href=\"#", "url(#"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (starts(at, end, marks[i])) return strlen(marks[i]);
    return 0;
}

static void copy_tag(finisher *x, const char *from, const char *to) {
    static const char bold[] = PC_SVG_BOLD "\"";
    const char *copied = from;
    for (const char *at = from; at < to; at++) {
        size_t length = id_mark(at, to);
        bool is_bold = starts(at, to, bold);
        if (!length && !is_bold) continue;
        copy(x, copied, at + length);
        pc_text_printf(x->out, "%s", is_bold ? "\" font-weight=\"bold\"" : x->prefix);
        copied = at + length + (is_bold ? strlen(bold) : 0);
    }
    copy(x, copied, to);
}

/* --- plots: <g id="picture_plot_1" ><title>$data using 1:2</title> --- */

static const char *end_of_line(const char *at, const char *end) {
    const char *found = memchr(at, '\n', (size_t)(end - at));
    return found ? found : end;
}

/* Whether the notes' next plot is of the data whose title stands at `at`; then we are in it. */
static bool enter_plot(finisher *x, const char *at) {
    const char *line_end = end_of_line(x->note, x->notes_end), *blank;
    if (x->note == x->notes_end || !starts(at, x->end, "<title>$")) return false;
    at += strlen("<title>$");
    blank = memchr(x->note, ' ', (size_t)(line_end - x->note));
    size_t length = (size_t)(blank - x->note);
    if ((size_t)(x->end - at) <= length || memcmp(at, x->note, length) != 0 || at[length] != ' ') return false;
    snprintf(x->shape, sizeof x->shape, "<%.*s ", (int)(line_end - blank - 1), blank + 1);
    x->note = line_end + 1;
    x->plot_depth = x->depth;
    return true;
}

/* Shapes of plots that say nothing, such as the numbers on passes, let the pointer through to what lies below. */
static void copy_group(finisher *x, const char *tag, const char *tag_end) {
    bool is_plot = starts(tag, tag_end, "<g id=\"picture_plot_");
    if (is_plot && !enter_plot(x, tag_end)) {
        copy_tag(x, tag, tag_end - 1);
        pc_text_printf(x->out, "pointer-events=\"none\">");
    } else
        copy_tag(x, tag, tag_end);
    x->depth++;
}

static void leave_group(finisher *x, const char *tag, const char *tag_end) {
    copy(x, tag, tag_end);
    if (--x->depth != x->plot_depth) return;
    x->plot_depth = -1;
    if (x->note < x->notes_end && *x->note == '\n')
        x->note++;
    else
        x->does_not_match = true; /* there are more notes than shapes */
}

/* <polygon .../> becomes <polygon ... ATTRIBUTES><title>TITLE</title></polygon>. */
static void copy_shape(finisher *x, const char *tag, const char *tag_end) {
    const char *line_end = end_of_line(x->note, x->notes_end);
    const char *tab = memchr(x->note, '\t', (size_t)(line_end - x->note));
    if (!tab || tag_end[-2] != '/') {
        x->does_not_match = true;
        return;
    }
    copy_tag(x, tag, tag_end - 2);
    if (tab > x->note) pc_text_add(x->out, " ", 1);
    copy(x, x->note, tab);
    pc_text_printf(x->out, "><title>");
    copy(x, tab + 1, line_end);
    pc_text_printf(x->out, "</title></%.*s>", (int)strlen(x->shape) - 2, x->shape + 1);
    x->note = line_end + 1;
}

/* --- the picture --- */

static void copy_root(finisher *x, const char *tag, const char *tag_end) {
    copy_tag(x, tag, tag_end - 1);
    if (x->title && *x->title) {
        pc_text_printf(x->out, " role=\"img\" aria-label=\"");
        add_escaped(x->out, x->title);
        pc_text_printf(x->out, "\"\n");
    }
    copy(x, tag_end - 1, tag_end);
}

/* The tag at `tag`; where to go on. */
static const char *take_tag(finisher *x, const char *tag) {
    const char *tag_end = memchr(tag, '>', (size_t)(x->end - tag));
    if (!tag_end) return copy(x, tag, x->end), x->end;
    tag_end++;
    if (starts(tag, tag_end, "<title>")) {
        const char *closed = memmem(tag, (size_t)(x->end - tag), "</title>", strlen("</title>"));
        return closed ? closed + strlen("</title>") : tag_end;
    }
    if (starts(tag, tag_end, "<svg"))
        copy_root(x, tag, tag_end);
    else if (starts(tag, tag_end, "<g ") || starts(tag, tag_end, "<g>"))
        copy_group(x, tag, tag_end);
    else if (starts(tag, tag_end, "</g>"))
        leave_group(x, tag, tag_end);
    else if (x->plot_depth >= 0 && starts(tag, tag_end, x->shape))
        copy_shape(x, tag, tag_end);
    else
        copy_tag(x, tag, tag_end);
    return tag_end;
}

static bool finish(finisher *x) {
    while (x->at < x->end && !x->does_not_match) {
        const char *tag = memchr(x->at, '<', (size_t)(x->end - x->at));
        copy(x, x->at, tag ? tag : x->end);
        x->at = tag ? take_tag(x, tag) : x->end;
    }
    return !x->does_not_match && x->note == x->notes_end;
}

/* FNV-1a: names of parts in published figures hold it. */
static uint32_t hash_of(const char *bytes, size_t size) {
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)bytes[i]) * UINT32_C(16777619);
    return hash;
}

void pc_svg_finish(const char *drawn, size_t size, const pc_svg_notes *notes, pc_text *finished) {
    finisher x = {.at = drawn, .end = drawn + size, .plot_depth = -1, .out = finished};
    size_t before = finished->size;
    if (!starts(drawn, x.end, "<?xml")) return pc_text_add(finished, drawn, size);
    snprintf(x.prefix, sizeof x.prefix, "p%08" PRIx32 "-", hash_of(drawn, size));
    finisher plain = x;
    plain.note = plain.notes_end = "";
    if (notes) x.title = plain.title = notes->title;
    x.note = notes && notes->text.data ? notes->text.data : "";
    x.notes_end = notes && notes->text.data ? x.note + notes->text.size : x.note;
    if (finish(&x)) return;
    if (!finished->failed) finished->size = before;
    finish(&plain);
}
