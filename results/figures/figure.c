#include "results/figures/figure_private.h"

#include "results/figures/gnuplot.h"
#include "results/figures/pdf.h"
#include "results/figures/picture.h"
#include "storage/replace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* --- file formats --- */

static const pc_figure_format formats[] = {
    {".svg", "svg noenhanced name 'picture' background '#ffffff'", "Helvetica", 1, "", 1, 0.75, false, true},
    {".png", "pngcairo noenhanced background '#ffffff'", "Helvetica", 1, "", 0.75, 1, false, false},
    {".pdf", "pdfcairo noenhanced background '#ffffff' fontscale 1", "Helvetica", 1.0 / 96, "in", 0.5625, 1, true,
     false},
};

static const pc_figure_format *find_format(const char *path) {
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        size_t ending = strlen(formats[i].ending);
        if (length > ending && strcasecmp(path + length - ending, formats[i].ending) == 0) return &formats[i];
    }
    return NULL;
}

pc_code pc_figure_check_path(const char *path, pc_error *error) {
    if (find_format(path)) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "unknown ending; expected a file name that ends in .svg, .png or .pdf");
}

/* --- the picture --- */

static pc_code make_script(pc_figure *figure, const char *path, pc_text *script, pc_error *error) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    pc_code code = pc_figure_lay_out(figure, error);
    if (!code && figure->passes.end > 0)
        pc_figure_add_script(figure, script);
    else if (!code)
        code = pc_error_set_file(error, PC_ERROR_INPUT, path, "there is no pass to draw; expected one that takes time");
    pc_number_scope_leave(&scope);
    return code;
}

/* Writes out what gnuplot drew. */
static pc_code copy_picture(int picture, pc_replacement *replacement, pc_error *error) {
    char bytes[1 << 16];
    ssize_t got;
    for (off_t at = 0; (got = pread(picture, bytes, sizeof bytes, at)) > 0; at += got) {
        pc_code code = pc_replacement_write(replacement, bytes, (size_t)got, error);
        if (code) return code;
    }
    return got == 0 ? PC_OK : pc_error_set(error, PC_ERROR_IO, "cannot read the picture: %s", strerror(errno));
}

static pc_code read_picture(int picture, pc_text *drawn, pc_error *error) {
    char bytes[1 << 16];
    ssize_t got;
    for (off_t at = 0; (got = pread(picture, bytes, sizeof bytes, at)) > 0; at += got)
        pc_text_add(drawn, bytes, (size_t)got);
    if (got < 0) return pc_error_set(error, PC_ERROR_IO, "cannot read the picture: %s", strerror(errno));
    return drawn->failed ? pc_error_no_memory(error) : PC_OK;
}

/* The same of an svg, with what gnuplot does not write. */
static pc_code copy_svg(int picture, const pc_svg_notes *notes, pc_replacement *replacement, pc_error *error) {
    pc_text drawn = {0}, finished = {0};
    pc_code code = read_picture(picture, &drawn, error);
    if (!code) pc_svg_finish(drawn.data, drawn.size, notes, &finished);
    if (!code && finished.failed) code = pc_error_no_memory(error);
    if (!code) code = pc_replacement_write(replacement, finished.data, finished.size, error);
    pc_text_free(&drawn);
    pc_text_free(&finished);
    return code;
}

static pc_code draw_into(const pc_text *script, const pc_figure_format *format, int picture, pc_error *error) {
    pc_code code = pc_gnuplot_run(script, picture, error);
    int cause = !code && format->dated ? pc_pdf_clear_date(picture) : 0;
    return cause ? pc_error_set(error, PC_ERROR_IO, "cannot draw: %s", strerror(cause)) : code;
}

static pc_code draw(const pc_text *script, const pc_svg_notes *notes, const pc_figure_format *format, const char *path,
                    pc_error *error) {
    pc_replacement replacement;
    pc_code code = pc_replacement_begin(path, &replacement, error);
    if (code) return code;
    int picture = pc_memory_file("pipecast-picture");
    if (picture < 0) code = pc_error_set(error, PC_ERROR_IO, "cannot draw: %s", strerror(errno));
    if (!code) code = draw_into(script, format, picture, error);
    bool is_drawn = !code;
    if (!code && format->is_svg) code = copy_svg(picture, notes, &replacement, error);
    if (!code && !format->is_svg) code = copy_picture(picture, &replacement, error);
    if (picture >= 0) close(picture);
    if (!code) return pc_replacement_commit(&replacement, error);
    if (!is_drawn) pc_error_place(error, path, 0, "");
    pc_replacement_discard(&replacement);
    return code;
}

void pc_picture_begin(pc_text *script, const char *path, double width, double height) {
    const pc_figure_format *format = find_format(path);
    pc_text_printf(script, "set encoding utf8\nset terminal %s size %.6g%s,%.6g%s font '%s,%.4g'\n", format->terminal,
                   width * format->size_scale, format->size_unit, height * format->size_scale, format->size_unit,
                   format->font, PC_STYLE_TEXT_FONT * format->font_scale);
}

void pc_picture_add_font(pc_text *script, const char *path, double pixels, bool is_bold) {
    const pc_figure_format *format = find_format(path);
    pc_text_printf(script, "font '%s%s,%.4g'", format->font, is_bold ? PC_SVG_BOLD : "", pixels * format->font_scale);
}

double pc_picture_point_size(const char *path, double size) {
    return size * find_format(path)->point_scale;
}

pc_code pc_picture_draw(pc_text *script, bool is_dark, const pc_svg_notes *notes, const char *path, pc_error *error) {
    if (script->failed || (notes && notes->text.failed)) return pc_error_no_memory(error);
    if (is_dark) pc_picture_darken(script);
    return draw(script, notes, find_format(path), path, error);
}

pc_code pc_picture_make(pc_picture_writer *add, const void *of, bool is_dark, const char *path, pc_error *error) {
    pc_text script = {0};
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    add(of, path, &script);
    pc_number_scope_leave(&scope);
    pc_code code = pc_picture_draw(&script, is_dark, NULL, path, error);
    pc_text_free(&script);
    return code;
}

pc_code pc_figure_check_size(const char *path, int64_t pass_count, pc_error *error) {
    if (pass_count <= PC_FIGURE_PASSES_MAX) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, path, "%" PRId64 " passes are too many to draw, at most %d can be",
                             pass_count, PC_FIGURE_PASSES_MAX);
}

pc_code pc_figure_timeline(const pc_timeline *timeline, const char *path, pc_error *error) {
    pc_code code = pc_figure_check_path(path, error);
    if (code) return code;
    code = pc_figure_check_size(path, timeline->trace->pass_count, error);
    if (code) return code;
    pc_svg_notes notes = {.title = timeline->title};
    pc_figure figure = {.timeline = timeline, .format = find_format(path), .notes = &notes};
    pc_text script = {0};
    code = make_script(&figure, path, &script, error);
    if (!code) code = pc_picture_draw(&script, timeline->is_dark, &notes, path, error);
    pc_text_free(&script);
    pc_text_free(&notes.text);
    pc_figure_block_free(&figure.repeated);
    pc_figure_cut_free(&figure.cut);
    return code;
}
