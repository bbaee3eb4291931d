/* The charts that a scenario declares under `figures`. */
#include "scenarios/loaded.h"

#include "engine/alloc.h"
#include "scenarios/units.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 255 }; /* bytes: what fits above a picture */

static const char *const keys[PC_FIGURE_TEXTS] = {
    [PC_FIGURE_NAME] = "name",       [PC_FIGURE_TITLE] = "title",         [PC_FIGURE_X] = "x",
    [PC_FIGURE_SERIES] = "series",   [PC_FIGURE_PANELS] = "panels",       [PC_FIGURE_STYLE] = "style",
    [PC_FIGURE_X_LABEL] = "x_label", [PC_FIGURE_PUBLISHED] = "published",
};

/* Where a figure is being read, for messages. */
typedef struct figure_place {
    const pc_source *source;
    unsigned index;
} figure_place;

static pc_code refuse(const figure_place *place, const char *key, const pc_error *cause, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    snprintf(path, sizeof path, "figures[%u].%s", place->index, key);
    return pc_source_refuse(place->source, path, error, "%s", cause->message);
}

static pc_code check_line(const char *text, pc_error *cause) {
    if (!*text) return pc_error_set(cause, PC_ERROR_INPUT, "empty; expected one line of text");
    if (pc_source_has_controls(text, ""))
        return pc_error_set(cause, PC_ERROR_INPUT, "has control characters; expected one line of text");
    if (strlen(text) > TEXT_MAX)
        return pc_error_set(cause, PC_ERROR_INPUT, "%.40s...: too long; expected at most %d bytes", text, TEXT_MAX);
    return PC_OK;
}

static pc_code check_texts(const figure_place *place, const pc_raw_figure *raw, pc_error *error) {
    pc_error cause;
    for (int i = 0; i < PC_FIGURE_TEXTS; i++)
        if (raw->text[i] && check_line(raw->text[i], &cause)) return refuse(place, keys[i], &cause, error);
    return PC_OK;
}

static pc_code check_list(const figure_place *place, const char *key, const pc_raw_list *list, pc_error *error) {
    pc_error cause;
    char entry[32];
    for (unsigned i = 0; i < list->text_count; i++) {
        if (!check_line(list->text[i], &cause)) continue;
        snprintf(entry, sizeof entry, "%s[%u]", key, i);
        return refuse(place, entry, &cause, error);
    }
    return PC_OK;
}

static pc_code check_lists(const figure_place *place, const pc_raw_figure *raw, pc_error *error) {
    pc_error cause;
    pc_code code = check_list(place, "y", &raw->y, error);
    if (!code) code = check_list(place, "y_label", &raw->y_label, error);
    if (code || raw->y_label.text_count <= raw->y.text_count) return code;
    pc_error_set(&cause, PC_ERROR_INPUT, "%u labels for %u columns; expected at most one a column of y",
                 raw->y_label.text_count, raw->y.text_count);
    return refuse(place, "y_label", &cause, error);
}

static pc_code check_words(const figure_place *place, const pc_raw_figure *raw, bool *published, pc_error *error) {
    pc_error cause;
    int64_t style;
    const char *style_text = raw->text[PC_FIGURE_STYLE], *published_text = raw->text[PC_FIGURE_PUBLISHED];
    if (style_text && pc_word_parse(PC_FIGURE_STYLES, style_text, &style, &cause))
        return refuse(place, keys[PC_FIGURE_STYLE], &cause, error);
    *published = false;
    if (published_text && pc_parse_switch(published_text, published, &cause))
        return refuse(place, keys[PC_FIGURE_PUBLISHED], &cause, error);
    return PC_OK;
}

static pc_code check_name(const figure_place *place, const pc_raw_scenario *raw, pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    pc_error cause;
    const char *name = raw->figures[place->index].text[PC_FIGURE_NAME];
    snprintf(path, sizeof path, "figures[%u].name", place->index);
    pc_code code = pc_name_check(place->source, path, name, error);
    if (code) return code;
    for (unsigned i = 0; i < place->index; i++) {
        if (strcmp(raw->figures[i].text[PC_FIGURE_NAME], name) != 0) continue;
        pc_error_set(&cause, PC_ERROR_INPUT, "%.40s is the name of figures[%u] too; expected names that differ", name,
                     i);
        return refuse(place, keys[PC_FIGURE_NAME], &cause, error);
    }
    return PC_OK;
}

static void fill_figure(const pc_raw_figure *raw, bool published, pc_scenario_figure *figure) {
    *figure = (pc_scenario_figure){.name = raw->text[PC_FIGURE_NAME],
                                   .title = raw->text[PC_FIGURE_TITLE],
                                   .x = raw->text[PC_FIGURE_X],
                                   .series = raw->text[PC_FIGURE_SERIES],
                                   .panels = raw->text[PC_FIGURE_PANELS],
                                   .style = raw->text[PC_FIGURE_STYLE],
                                   .x_label = raw->text[PC_FIGURE_X_LABEL],
                                   .y_count = (int)raw->y.text_count,
                                   .published = published};
    for (unsigned i = 0; i < raw->y.text_count; i++) figure->y[i] = raw->y.text[i];
    for (unsigned i = 0; i < raw->y_label.text_count; i++) figure->y_label[i] = raw->y_label.text[i];
}

static pc_code read_figure(const figure_place *place, const pc_raw_scenario *raw, pc_scenario_figure *figure,
                           pc_error *error) {
    const pc_raw_figure *from = &raw->figures[place->index];
    bool published = false;
    pc_code code = check_name(place, raw, error);
    if (!code) code = check_texts(place, from, error);
    if (!code) code = check_lists(place, from, error);
    if (!code) code = check_words(place, from, &published, error);
    if (!code) fill_figure(from, published, figure);
    return code;
}

pc_code pc_figures_read(const pc_source *source, const pc_raw_scenario *raw, pc_scenario_figure **figures, int *count,
                        pc_error *error) {
    if (raw->figures_count == 0) return *figures = NULL, *count = 0, PC_OK;
    pc_scenario_figure *made = pc_alloc(raw->figures_count, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = PC_OK;
    for (unsigned i = 0; i < raw->figures_count && !code; i++)
        code = read_figure(&(figure_place){source, i}, raw, &made[i], error);
    if (code) {
        pc_free(made);
        return code;
    }
    *figures = made;
    *count = (int)raw->figures_count;
    return PC_OK;
}

const pc_scenario_figure *pc_scenario_figures(const pc_scenario *scenario, int *count) {
    *count = scenario->figure_count;
    return scenario->figures;
}

/* ---- of a text alone ---- */

/* What a list of figures borrows its texts from. */
typedef struct figures_owner {
    pc_source source;
    pc_raw_scenario *raw;
    pc_scenario_figure *figures;
} figures_owner;

static void free_owner(figures_owner *owner) {
    if (!owner) return;
    pc_free(owner->figures);
    pc_raw_figures_free(owner->raw);
    pc_source_free(&owner->source);
    pc_free(owner);
}

static pc_code load_text(const char *text, size_t size, const char *name, figures_owner *owner, int *count,
                         pc_error *error) {
    pc_code code = pc_source_from_bytes(name, text, size, &owner->source, error);
    if (!code) code = pc_source_scan(&owner->source, error);
    if (!code) code = pc_raw_figures_load(&owner->source, &owner->raw, error);
    if (!code) code = pc_figures_read(&owner->source, owner->raw, &owner->figures, count, error);
    return code;
}

pc_code pc_scenario_figures_read(const char *text, size_t size, const char *name, pc_scenario_figures_list *list,
                                 pc_error *error) {
    int count;
    figures_owner *owner = pc_alloc(1, sizeof *owner);
    if (!owner) return pc_error_no_memory(error);
    pc_code code = load_text(text, size, name, owner, &count, error);
    if (code) {
        free_owner(owner);
        return code;
    }
    *list = (pc_scenario_figures_list){.figures = owner->figures, .count = count, .owner = owner};
    return PC_OK;
}

void pc_scenario_figures_free(pc_scenario_figures_list *list) {
    free_owner(list->owner);
    *list = (pc_scenario_figures_list){.count = 0};
}
