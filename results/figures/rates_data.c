/* Which panels and lines a picture of rates has, and what a rate is of. */
#include "results/figures/rates_private.h"

#include "engine/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- work ---- */

/* The dimension's place; -1 if the form has none of that name. */
static int dimension_of(const pc_fit *fit, const char *name) {
    int count;
    const char *const *names = pc_fit_form_dimensions(fit->key.form, &count);
    for (int d = 0; d < count; d++)
        if (strcmp(names[d], name) == 0) return d;
    return -1;
}

static double number_of(const pc_fit *fit, const double *point, const char *name, double otherwise) {
    int d = dimension_of(fit, name);
    return d < 0 ? otherwise : point[d];
}

static bool is_of_bytes(const pc_fit *fit) {
    return fit->key.form == PC_FIT_MEMORY || pc_fit_form_is_transfer(fit->key.form);
}

/* Of dispatch and combine a rank's tokens, each once for every rank that it goes to. */
static double bytes_of(const pc_fit *fit, const double *point) {
    int bytes = dimension_of(fit, "bytes");
    if (bytes >= 0) return point[bytes];
    return number_of(fit, point, "tokens", 1.0) * number_of(fit, point, "token_bytes", 1.0) *
           number_of(fit, point, "ranks_reached", 1.0);
}

/* Of all pairs of query and key those that a mask leaves: half of a causal square; of n keys a window's w, less the
 * triangle that the first queries lack. */
static double share_of_pairs(const pc_fit_key *key, double m, double n) {
    double w = (double)key->window;
    if (!key->is_causal || m != n) return 1.0;
    return w > 0.0 && w < n ? w / n * (1.0 - 0.5 * w / n) : 0.5;
}

static double flops_of_attention(const pc_fit *fit, const double *point) {
    double m = number_of(fit, point, "m", 1.0), n = number_of(fit, point, "n", m);
    double k = number_of(fit, point, "k", fit->key.head_dim > 0 ? fit->key.head_dim : 1.0);
    double pass = strstr(fit->key.subject, "backward") ? 10.0 : 4.0;
    return pass * number_of(fit, point, "batch", 1.0) * m * n * k * share_of_pairs(&fit->key, m, n);
}

/* A rank's rows in all: its busiest expert has `skew` times the mean. Two matrices where there is no gate. */
static double flops_of_experts(const pc_fit *fit, const double *point) {
    double matrices = strstr(fit->key.variant, "nongated") ? 2.0 : 3.0;
    double rows =
        number_of(fit, point, "rows", 1.0) * number_of(fit, point, "experts", 1.0) / number_of(fit, point, "skew", 1.0);
    return 2.0 * matrices * rows * number_of(fit, point, "hidden", 1.0) * number_of(fit, point, "inter", 1.0);
}

double pc_rates_work(const pc_fit *fit, const double *point) {
    if (is_of_bytes(fit)) return bytes_of(fit, point);
    if (begins(fit->key.subject, "attention")) return flops_of_attention(fit, point);
    if (fit->key.form == PC_FIT_MOE) return flops_of_experts(fit, point);
    return 2.0 * number_of(fit, point, "batch", 1.0) * number_of(fit, point, "groups", 1.0) *
           number_of(fit, point, "m", 1.0) * number_of(fit, point, "n", 1.0) * number_of(fit, point, "k", 1.0);
}

/* ---- a line ---- */

/* Whether a dimension grows along the line: of layers of experts and messages the tokens alone do, of all else whatever
 * is an extent of a matrix, or bytes. */
static bool grows(const pc_fit *fit, const char *name) {
    static const char *const sizes[] = {"bytes", "batch", "m", "n", "k"};
    bool is_of_messages = dimension_of(fit, "tokens") >= 0 || fit->key.form == PC_FIT_MOE;
    if (is_of_messages) return strcmp(name, "tokens") == 0 || strcmp(name, "rows") == 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(name, sizes[i]) == 0) return true;
    return false;
}

/* What does not grow stands in the middle of what was measured, as a whole number. */
void pc_rates_way(const pc_rates_series *series, int step, double point[PC_FIT_DIMENSIONS]) {
    int count;
    const pc_fit *fit = series->fit;
    const char *const *names = pc_fit_form_dimensions(fit->key.form, &count);
    double part = (double)step / (PC_RATES_STEPS - 1);
    for (int d = 0; d < PC_FIT_DIMENSIONS; d++) point[d] = 1.0;
    for (int d = 0; d < count; d++) {
        double least = fit->least[d], most = fit->most[d];
        if (series->ranks > 0.0 && strcmp(names[d], "ranks") == 0)
            point[d] = series->ranks;
        else
            point[d] = grows(fit, names[d]) ? least * pow(most / least, part) : fmax(1.0, rint(sqrt(least * most)));
    }
}

bool pc_rates_is_of(const pc_rates_series *series, const double *point) {
    int ranks = dimension_of(series->fit, "ranks");
    return !(series->ranks > 0.0) || ranks < 0 || point[ranks] == series->ranks;
}

/* ---- panels ---- */

/* Operation, library and site; of attention the head too, of layers of experts the type, of collectives the variant,
 * which is the library's version. */
static void name_panel(const pc_fit *fit, char *title, size_t size) {
    const pc_fit_key *key = &fit->key;
    char head[32] = "", library[96] = "", site[48] = "", dtype[24] = "";
    if (key->head_dim > 0) snprintf(head, sizeof head, ", %d a head", (int)key->head_dim);
    bool has_version = pc_fit_form_is_transfer(key->form) && key->variant[0];
    if (key->form == PC_FIT_MOE) snprintf(dtype, sizeof dtype, " %s", key->dtype);
    if (key->library[0])
        snprintf(library, sizeof library, ", %s%s%s", key->library, has_version ? " " : "",
                 has_version ? key->variant : "");
    if (key->site[0]) snprintf(site, sizeof site, " of %s", key->site);
    snprintf(title, size, "%s%s%s%s%s", key->subject, dtype, head, library, site);
}

static void add_words(char *label, size_t size, const char *format, const char *text) {
    size_t used = strlen(label);
    if (text[0] == '\0' || used >= size) return;
    snprintf(label + used, size - used, "%s", used > 0 ? ", " : "");
    used = strlen(label);
    snprintf(label + used, size - used, format, text);
}

/* What the panel's title does not say. */
static void name_series(pc_rates_series *series) {
    const pc_fit_key *key = &series->fit->key;
    char *label = series->label, number[32];
    size_t size = sizeof series->label;
    label[0] = '\0';
    if (key->form != PC_FIT_MOE) add_words(label, size, "%s", key->dtype);
    add_words(label, size, "to %s", key->out_dtype);
    if (!pc_fit_form_is_transfer(key->form)) add_words(label, size, "%s", key->variant);
    snprintf(number, sizeof number, "%lld", (long long)key->window);
    if (key->window > 0) add_words(label, size, "window %s", number);
    if (begins(key->subject, "attention") && !key->is_causal) add_words(label, size, "%s", "no mask");
    if (key->cache == PC_CACHE_HOT) add_words(label, size, "%s", "hot");
    snprintf(number, sizeof number, "%.0f", series->ranks > 0.0 ? series->ranks : (double)key->ranks);
    if (series->ranks > 0.0 || key->ranks > 0) add_words(label, size, "%s ranks", number);
    snprintf(number, sizeof number, "%d", (int)key->nodes);
    if (key->nodes > 1) add_words(label, size, "%s nodes", number);
    if (strcmp(key->link, "unknown") != 0) add_words(label, size, "%s", key->link);
}

static int panel_of(pc_rates *rates, const pc_fit *fit) {
    pc_rates_panel panel = {.is_bytes = is_of_bytes(fit)};
    name_panel(fit, panel.title, sizeof panel.title);
    for (int i = 0; i < rates->panels; i++)
        if (strcmp(rates->panel[i].title, panel.title) == 0) return i;
    rates->panel[rates->panels] = panel;
    return rates->panels++;
}

static void add_series(pc_rates *rates, const pc_fit *fit, int panel, double ranks) {
    if (rates->series_count == PC_RATES_SERIES) {
        rates->is_cut = true;
        return;
    }
    pc_rates_series *series = &rates->series[rates->series_count++];
    *series = (pc_rates_series){.fit = fit, .ranks = ranks, .panel = panel};
    name_series(series);
    rates->panel[panel].series++;
}

/* A law has a line for its least number of ranks, and for each doubling up to its most. */
static void add_fit(pc_rates *rates, const pc_fit *fit) {
    int panel = panel_of(rates, fit), ranks = dimension_of(fit, "ranks");
    if (ranks < 0 || dimension_of(fit, "bytes") < 0) {
        add_series(rates, fit, panel, 0.0);
        return;
    }
    for (double r = fmax(1.0, fit->least[ranks]); r <= fit->most[ranks]; r *= 2.0) add_series(rates, fit, panel, r);
}

pc_code pc_rates_make(const pc_rates_fits *fits, pc_rates *rates, pc_error *error) {
    *rates = (pc_rates){.panel = pc_alloc((size_t)fits->count, sizeof *rates->panel),
                        .series = pc_alloc(PC_RATES_SERIES, sizeof *rates->series)};
    if (!rates->panel || !rates->series) {
        pc_rates_free(rates);
        return pc_error_no_memory(error);
    }
    for (int i = 0; i < fits->count; i++) add_fit(rates, fits->fit[i]);
    return PC_OK;
}

void pc_rates_free(pc_rates *rates) {
    pc_free(rates->panel);
    pc_free(rates->series);
    *rates = (pc_rates){0};
}
