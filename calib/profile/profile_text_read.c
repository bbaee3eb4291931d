/* Profiles as text, read: in one pass over the text, which is not copied. */
#include "calib/profile/profile_text.h"

#include "calib/profile/profile_private.h"
#include "engine/alloc.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_SIZE = 32 };

typedef struct reader {
    const char *name; /* of the text, for messages */
    const char *at;   /* behind the key of the line that is read: ',' or the line's end */
    unsigned line;
    char key[KEY_SIZE];
    bool is_in_fit, has_least, has_most, has_covariance, is_ended;
    int64_t room; /* of the fit's points */
    pc_fit fit;
    pc_profile profile;
    pc_error *error;
} reader;

#define REFUSE(r, ...) pc_error_refuse((r)->error, (r)->name, (r)->line, (r)->key, __VA_ARGS__)

bool pc_profile_text_follows(const char *name) {
    return strcmp(name, "parameter_count") == 0 || strcmp(name, "dimensions") == 0 || strcmp(name, "grid_axes") == 0;
}

/* ---- values ---- */

/* The next ",NUMBER" of the line, finite. */
static bool next_number(reader *r, double *number) {
    char *end;
    bool is_there = r->at[0] == ',' && !isspace((unsigned char)r->at[1]); /* strtod would go on to the next line */
    if (!is_there) return false;
    *number = strtod(r->at + 1, &end);
    bool is_good = end > r->at + 1 && (*end == ',' || *end == '\n' || *end == '\0') && isfinite(*number);
    if (is_good) r->at = end;
    return is_good;
}

static bool is_line_over(const reader *r) {
    return *r->at == '\n' || *r->at == '\0';
}

static pc_code take_numbers(reader *r, double *numbers, int count) {
    for (int i = 0; i < count; i++)
        if (!next_number(r, &numbers[i])) return REFUSE(r, "number %d of it; expected %d of them", i + 1, count);
    return is_line_over(r) ? PC_OK : REFUSE(r, "more behind; expected %d numbers", count);
}

static pc_code take_count(reader *r, int64_t most, int64_t *count) {
    double number;
    if (!next_number(r, &number) || !is_line_over(r) || number < 0.0 || number > (double)most ||
        number != floor(number))
        return REFUSE(r, "no count; expected 0 to %lld", (long long)most);
    *count = (int64_t)number;
    return PC_OK;
}

static bool set_number(const pc_field *field, void *row, const char *text) {
    char *end;
    if (text[0] == '\0') return pc_field_is_real(field) && pc_field_set_real(field, row, NAN);
    if (pc_field_is_real(field)) {
        double real = strtod(text, &end);
        return *end == '\0' && isfinite(real) && pc_field_set_real(field, row, real);
    }
    long long integer = strtoll(text, &end, 10);
    return *end == '\0' && pc_field_set_integer(field, row, integer);
}

static const pc_field *find_field(const pc_fields *fields, const char *key) {
    for (size_t i = 0; i < fields->count; i++)
        if (strcmp(fields->field[i].name, key) == 0) return &fields->field[i];
    return NULL;
}

/* What is behind the first comma, commas and all, is the value. */
static pc_code take_field(reader *r, const pc_fields *fields, void *row) {
    char text[PC_FIELD_TEXT_SIZE];
    const pc_field *field = find_field(fields, r->key);
    if (!field && r->is_in_fit) field = find_field(&pc_profile_fit_origin_fields, r->key);
    if (!field || pc_profile_text_follows(r->key))
        return REFUSE(r, "is no key of a %s; expected one that this version knows", r->is_in_fit ? "fit" : "device");
    size_t length = *r->at == ',' ? strcspn(++r->at, "\n") : 0;
    if (length >= sizeof text) return REFUSE(r, "%zu characters; expected fewer", length);
    memcpy(text, r->at, length);
    text[length] = '\0';
    r->at += length;
    bool is_set = pc_field_is_text(field) ? pc_field_set_text(field, row, text) : set_number(field, row, text);
    return is_set ? PC_OK : REFUSE(r, "'%.40s'; expected %s", text, field->description);
}

/* ---- a fit ---- */

static pc_code take_parameters(reader *r) {
    pc_fit *fit = &r->fit;
    if (fit->parameter_count > 0) return REFUSE(r, "stands there twice; expected it once");
    while (fit->parameter_count < PC_FIT_PARAMETERS && next_number(r, &fit->parameter[fit->parameter_count]))
        fit->parameter_count++;
    if (!is_line_over(r) || !pc_fit_has_parameters(fit))
        return REFUSE(r, "%d numbers; expected those of the form %s", (int)fit->parameter_count,
                      pc_fit_form_name(fit->key.form));
    for (int i = 0; i < fit->parameter_count; i++) {
        pc_parameter_label label = pc_fit_label(fit->key.form, i);
        snprintf(fit->parameter_name[i], sizeof fit->parameter_name[i], "%s", label.name);
        snprintf(fit->parameter_unit[i], sizeof fit->parameter_unit[i], "%s", label.unit);
    }
    return PC_OK;
}

static pc_code take_covariance(reader *r) {
    int n = r->fit.parameter_count;
    if (n == 0 || r->has_covariance) return REFUSE(r, "has no place here; expected it once, behind parameters");
    for (int a = 0; a < n; a++)
        for (int b = 0; b <= a; b++) {
            double number;
            if (!next_number(r, &number)) return REFUSE(r, "too few numbers; expected %d", n * (n + 1) / 2);
            r->fit.covariance[a * n + b] = r->fit.covariance[b * n + a] = number;
        }
    r->has_covariance = true;
    return is_line_over(r) ? PC_OK : REFUSE(r, "more behind; expected %d numbers", n * (n + 1) / 2);
}

/* A point has two bytes a number at least: no text makes us allocate what it cannot fill. */
static pc_code take_points(reader *r) {
    pc_fit *fit = &r->fit;
    pc_code code = fit->x ? REFUSE(r, "stands there twice; expected it once") : PC_OK;
    if (!code) code = take_count(r, (int64_t)strlen(r->at) / 2 + 1, &r->room);
    if (code || r->room == 0) return code;
    fit->x = pc_alloc((size_t)r->room * (size_t)fit->dimensions, sizeof *fit->x);
    fit->weight = pc_alloc((size_t)r->room, sizeof *fit->weight);
    return fit->x && fit->weight ? PC_OK : pc_error_no_memory(r->error);
}

static pc_code take_point(reader *r) {
    pc_fit *fit = &r->fit;
    double numbers[PC_FIT_DIMENSIONS + 1] = {0};
    if (fit->count >= r->room)
        return REFUSE(r, "one more than the %lld of points; expected so many", (long long)r->room);
    pc_code code = take_numbers(r, numbers, fit->dimensions + 1);
    for (int d = 0; d < fit->dimensions && !code; d++)
        if (!(numbers[d] > 0.0)) code = REFUSE(r, "%g; expected a size above zero", numbers[d]);
    if (code) return code;
    memcpy(fit->x + fit->count * fit->dimensions, numbers, (size_t)fit->dimensions * sizeof *numbers);
    fit->weight[fit->count++] = numbers[fit->dimensions];
    return PC_OK;
}

/* One axis of a grid. */
static pc_code take_axis(reader *r) {
    pc_log_grid *grid = &r->fit.grid;
    double axis, *place = grid->axes < PC_GRID_AXES ? grid->place[grid->axes] : NULL;
    int32_t nodes = 0;
    if (grid->value) return REFUSE(r, "stands behind grid_value; expected all axes before it");
    if (!place || !next_number(r, &axis) || axis != floor(axis) || axis < 0.0 || axis >= r->fit.dimensions)
        return REFUSE(r, "no axis; expected at most %d, each a dimension from 0 to %d", PC_GRID_AXES,
                      (int)r->fit.dimensions - 1);
    while (nodes < PC_GRID_NODES && next_number(r, &place[nodes])) {
        if (nodes > 0 && place[nodes] <= place[nodes - 1]) return REFUSE(r, "nodes that fall; expected them to rise");
        nodes++;
    }
    if (nodes == 0 || !is_line_over(r)) return REFUSE(r, "no nodes; expected 1 to %d numbers", PC_GRID_NODES);
    grid->axis[grid->axes] = (int32_t)axis;
    grid->nodes[grid->axes++] = nodes;
    return PC_OK;
}

static pc_code take_grid_values(reader *r) {
    pc_log_grid *grid = &r->fit.grid;
    int64_t count = pc_log_grid_count(grid);
    if (grid->value || count < 1 || count > PC_GRID_VALUES)
        return REFUSE(r, "%lld values of the axes above; expected 1 to %d, once", (long long)count, PC_GRID_VALUES);
    grid->value = pc_alloc((size_t)count, sizeof *grid->value);
    if (!grid->value) return pc_error_no_memory(r->error);
    pc_code code = take_numbers(r, grid->value, (int)count);
    for (int64_t i = 0; i < count && !code; i++) grid->value[i] *= PC_TEXT_GRID_UNIT;
    return code;
}

static pc_code take_edges(reader *r, double *edges, bool *has) {
    *has = true;
    return take_numbers(r, edges, r->fit.dimensions);
}

static bool has_range(const reader *r) {
    return r->has_least && r->has_most && pc_profile_has_edges(&r->fit);
}

static pc_code finish_fit(reader *r) {
    if (!r->is_in_fit) return PC_OK;
    snprintf(r->key, sizeof r->key, "form");
    r->is_in_fit = false;
    if (!pc_fit_has_parameters(&r->fit) || !r->has_covariance) /* processors may have changed since */
        return REFUSE(r, "the fit above has no parameters or no covariance; expected both");
    if (!has_range(r)) return REFUSE(r, "the fit above has no range; expected least and most of sizes that can be");
    if (r->fit.count != r->room)
        return REFUSE(r, "the fit above has %lld points; expected %lld", (long long)r->fit.count, (long long)r->room);
    if (r->fit.grid.axes > 0 && !r->fit.grid.value)
        return REFUSE(r, "the fit above has axes of a grid alone; expected grid_value behind them");
    if (!pc_log_grid_is_sound(&r->fit.grid))
        return REFUSE(r, "the fit above has a grid that changes times beyond reason; expected factors near 1");
    if (!pc_fit_foretells(&r->fit)) return REFUSE(r, "the fit above foretells nothing; expected times above zero");
    return pc_profile_add_fit(&r->profile, &r->fit, r->error);
}

static pc_code begin_fit(reader *r) {
    pc_code code = finish_fit(r);
    if (code) return code;
    r->fit = (pc_fit){.cv_median = 0.0};
    r->room = 0;
    r->is_in_fit = true;
    r->has_least = r->has_most = r->has_covariance = false;
    snprintf(r->key, sizeof r->key, "form");
    code = take_field(r, &pc_profile_fit_fields, &r->fit);
    if (!code) pc_fit_form_dimensions(r->fit.key.form, &r->fit.dimensions);
    return code;
}

static pc_code take_in_fit(reader *r) {
    pc_fit *fit = &r->fit;
    if (strcmp(r->key, "parameters") == 0) return take_parameters(r);
    if (strcmp(r->key, "covariance") == 0) return take_covariance(r);
    if (strcmp(r->key, "least") == 0) return take_edges(r, fit->least, &r->has_least);
    if (strcmp(r->key, "most") == 0) return take_edges(r, fit->most, &r->has_most);
    if (strcmp(r->key, "points") == 0) return take_points(r);
    if (strcmp(r->key, "point") == 0) return take_point(r);
    if (strcmp(r->key, "grid") == 0) return take_axis(r);
    if (strcmp(r->key, "grid_value") == 0) return take_grid_values(r);
    return take_field(r, &pc_profile_fit_fields, fit);
}

/* ---- the text ---- */

static pc_code take_end(reader *r) {
    int64_t count = 0;
    pc_code code = finish_fit(r);
    if (!code) code = take_count(r, INT32_MAX, &count);
    if (code) return code;
    r->is_ended = true;
    if (count == r->profile.fit_count) return PC_OK;
    return REFUSE(r, "%lld; expected %lld, as many as stand above", (long long)count, (long long)r->profile.fit_count);
}

static pc_code take_format(reader *r) {
    int64_t version = 0;
    if (strcmp(r->key, PC_TEXT_FORMAT) != 0)
        return REFUSE(r, "begins the text; expected '" PC_TEXT_FORMAT ",%d'", PC_TEXT_VERSION);
    pc_code code = take_count(r, INT32_MAX, &version);
    if (code || version == PC_TEXT_VERSION) return code;
    return REFUSE(r, "version %lld; expected %d", (long long)version, PC_TEXT_VERSION);
}

static pc_code take_line(reader *r) {
    if (r->line == 1) return take_format(r);
    if (r->is_ended) return REFUSE(r, "stands behind the end; expected nothing there");
    if (strcmp(r->key, "form") == 0) return begin_fit(r);
    if (strcmp(r->key, "fits") == 0) return take_end(r);
    return r->is_in_fit ? take_in_fit(r) : take_field(r, &pc_profile_device_fields, &r->profile.device);
}

/* The key of the next line; false behind the last. */
static bool next_line(reader *r) {
    if (*r->at == '\n') r->at++;
    if (*r->at == '\0') return false;
    size_t length = strcspn(r->at, ",\n");
    snprintf(r->key, sizeof r->key, "%.*s", (int)length, r->at);
    r->at += length;
    r->line++;
    return true;
}

static pc_code read_lines(reader *r) {
    pc_code code = PC_OK;
    while (!code && next_line(r)) {
        code = take_line(r);
        if (!code && !is_line_over(r)) code = REFUSE(r, "more behind; expected the line to end");
    }
    r->key[0] = '\0';
    if (!code && !r->is_ended) code = REFUSE(r, "ends too soon; expected 'fits' and their number as the last line");
    return code;
}

/* NOLINTNEXTLINE(bugprone-easily-swappable-parameters): the text, then what it is called */
pc_code pc_profile_text_read(const char *text, const char *name, pc_profile *profile, pc_error *error) {
    pc_number_scope scope = {0};
    reader *r = pc_alloc(1, sizeof *r);
    if (!r || !pc_number_scope_enter(&scope)) {
        pc_free(r);
        return pc_error_no_memory(error);
    }
    *r = (reader){.name = name, .at = text, .error = error, .profile = {.is_shipped = true}};
    pc_code code = read_lines(r);
    pc_number_scope_leave(&scope);
    pc_fit_free(&r->fit); /* empty if the profile took it over */
    if (code)
        pc_profile_free(&r->profile);
    else
        *profile = r->profile;
    pc_free(r);
    return code;
}
