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

static void copy(finisher *svg, const char *from, const char *to) {
    pc_text_add(svg->out, from, (size_t)(to - from));
}

/* How long a piece of a tag is behind which an id stands, at its definition or where it is used; 0: it is none. */
static size_t id_mark(const char *at, const char *end) {
    static const char *const marks[] = {" id='", " id=\"", "href='#", "href=\"#", "url(#"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (starts(at, end, marks[i])) return strlen(marks[i]);
    return 0;
}

static void copy_tag(finisher *svg, const char *from, const char *to) {
    static const char bold[] = PC_SVG_BOLD "\"";
    const char *copied = from;
    for (const char *at = from; at < to; at++) {
        size_t length = id_mark(at, to);
        bool is_bold = starts(at, to, bold);
        if (!length && !is_bold) continue;
        copy(svg, copied, at + length);
        pc_text_printf(svg->out, "%s", is_bold ? "\" font-weight=\"bold\"" : svg->prefix);
        copied = at + length + (is_bold ? strlen(bold) : 0);
    }
    copy(svg, copied, to);
}

/* --- plots: <g id="picture_plot_1" ><title>$data using 1:2</title> --- */

static const char *end_of_line(const char *at, const char *end) {
    const char *found = memchr(at, '\n', (size_t)(end - at));
    return found ? found : end;
}

/* Whether the notes' next plot is of the data whose title stands at `at`; then we are in it. */
static bool enter_plot(finisher *svg, const char *at) {
    const char *line_end = end_of_line(svg->note, svg->notes_end), *blank;
    if (svg->note == svg->notes_end || !starts(at, svg->end, "<title>$")) return false;
    at += strlen("<title>$");
    blank = memchr(svg->note, ' ', (size_t)(line_end - svg->note));
    size_t length = (size_t)(blank - svg->note);
    if ((size_t)(svg->end - at) <= length || memcmp(at, svg->note, length) != 0 || at[length] != ' ') return false;
    snprintf(svg->shape, sizeof svg->shape, "<%.*s ", (int)(line_end - blank - 1), blank + 1);
    svg->note = line_end + 1;
    svg->plot_depth = svg->depth;
    return true;
}

/* Shapes of plots that say nothing, such as the numbers on passes, let the pointer through to what lies below. */
static void copy_group(finisher *svg, const char *tag, const char *tag_end) {
    bool is_plot = starts(tag, tag_end, "<g id=\"picture_plot_");
    if (is_plot && !enter_plot(svg, tag_end)) {
        copy_tag(svg, tag, tag_end - 1);
        pc_text_printf(svg->out, "pointer-events=\"none\">");
    } else
        copy_tag(svg, tag, tag_end);
    svg->depth++;
}

static void leave_group(finisher *svg, const char *tag, const char *tag_end) {
    copy(svg, tag, tag_end);
    if (--svg->depth != svg->plot_depth) return;
    svg->plot_depth = -1;
    if (svg->note < svg->notes_end && *svg->note == '\n')
        svg->note++;
    else
        svg->does_not_match = true; /* there are more notes than shapes */
}

/* <polygon .../> becomes <polygon ... ATTRIBUTES><title>TITLE</title></polygon>. */
static void copy_shape(finisher *svg, const char *tag, const char *tag_end) {
    const char *line_end = end_of_line(svg->note, svg->notes_end);
    const char *tab = memchr(svg->note, '\t', (size_t)(line_end - svg->note));
    if (!tab || tag_end[-2] != '/') {
        svg->does_not_match = true;
        return;
    }
    copy_tag(svg, tag, tag_end - 2);
    if (tab > svg->note) pc_text_add(svg->out, " ", 1);
    copy(svg, svg->note, tab);
    pc_text_printf(svg->out, "><title>");
    copy(svg, tab + 1, line_end);
    pc_text_printf(svg->out, "</title></%.*s>", (int)strlen(svg->shape) - 2, svg->shape + 1);
    svg->note = line_end + 1;
}

/* --- the picture --- */

static void copy_root(finisher *svg, const char *tag, const char *tag_end) {
    copy_tag(svg, tag, tag_end - 1);
    if (svg->title && *svg->title) {
        pc_text_printf(svg->out, " role=\"img\" aria-label=\"");
        add_escaped(svg->out, svg->title);
        pc_text_printf(svg->out, "\"\n");
    }
    copy(svg, tag_end - 1, tag_end);
}

/* The tag at `tag`; where to go on. */
static const char *take_tag(finisher *svg, const char *tag) {
    const char *tag_end = memchr(tag, '>', (size_t)(svg->end - tag));
    if (!tag_end) return copy(svg, tag, svg->end), svg->end;
    tag_end++;
    if (starts(tag, tag_end, "<title>")) {
        const char *closed = memmem(tag, (size_t)(svg->end - tag), "</title>", strlen("</title>"));
        return closed ? closed + strlen("</title>") : tag_end;
    }
    if (starts(tag, tag_end, "<svg"))
        copy_root(svg, tag, tag_end);
    else if (starts(tag, tag_end, "<g ") || starts(tag, tag_end, "<g>"))
        copy_group(svg, tag, tag_end);
    else if (starts(tag, tag_end, "</g>"))
        leave_group(svg, tag, tag_end);
    else if (svg->plot_depth >= 0 && starts(tag, tag_end, svg->shape))
        copy_shape(svg, tag, tag_end);
    else
        copy_tag(svg, tag, tag_end);
    return tag_end;
}

static bool finish(finisher *svg) {
    while (svg->at < svg->end && !svg->does_not_match) {
        const char *tag = memchr(svg->at, '<', (size_t)(svg->end - svg->at));
        copy(svg, svg->at, tag ? tag : svg->end);
        svg->at = tag ? take_tag(svg, tag) : svg->end;
    }
    return !svg->does_not_match && svg->note == svg->notes_end;
}

/* FNV-1a: names of parts in published figures hold it. */
static uint32_t hash_of(const char *bytes, size_t size) {
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)bytes[i]) * UINT32_C(16777619);
    return hash;
}

void pc_svg_finish(const char *drawn, size_t size, const pc_svg_notes *notes, pc_text *finished) {
    finisher svg = {.at = drawn, .end = drawn + size, .plot_depth = -1, .out = finished};
    size_t before = finished->size;
    if (!starts(drawn, svg.end, "<?xml")) return pc_text_add(finished, drawn, size);
    snprintf(svg.prefix, sizeof svg.prefix, "p%08" PRIx32 "-", hash_of(drawn, size));
    finisher plain = svg;
    plain.note = plain.notes_end = "";
    if (notes) svg.title = plain.title = notes->title;
    svg.note = notes && notes->text.data ? notes->text.data : "";
    svg.notes_end = notes && notes->text.data ? svg.note + notes->text.size : svg.note;
    if (finish(&svg)) return;
    if (!finished->failed) finished->size = before;
    finish(&plain);
}
