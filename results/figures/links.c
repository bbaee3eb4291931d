#include "results/figures/links.h"

#include "results/figures/figure.h"
#include "results/figures/links_private.h"
#include "results/figures/picture.h"

static pc_code make_script(const pc_links_figure *figure, const char *path, pc_text *script, pc_svg_notes *notes,
                           pc_error *error) {
    pc_number_scope scope = {0};
    pc_links_data data = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    pc_code code = pc_links_collect(figure, &data, error);
    if (!code && data.row_count == 0)
        code = pc_error_set_file(error, PC_ERROR_INPUT, path,
                                 "nothing goes over any link; expected a run that sends something");
    if (!code) pc_links_add_script(figure, &data, path, script, notes);
    pc_links_free(&data);
    pc_number_scope_leave(&scope);
    return code;
}

pc_code pc_figure_links(const pc_links_figure *figure, const char *path, pc_error *error) {
    pc_text script = {0};
    pc_svg_notes notes = {.title = figure->title};
    pc_code code = pc_figure_check_path(path, error);
    if (!code) code = make_script(figure, path, &script, &notes, error);
    if (!code) code = pc_picture_draw(&script, figure->is_dark, &notes, path, error);
    pc_text_free(&script);
    pc_text_free(&notes.text);
    return code;
}
