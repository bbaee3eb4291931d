#include "results/figures/links_private.h"

#include "engine/alloc.h"
#include "results/figures/style.h"
#include "results/link_use.h"

#include <math.h>
#include <stdlib.h>

static const double SAME = 1e-9; /* loads that differ by less differ by rounding alone */

/* --- colours --- */

static const struct {
    const char *name;
    uint32_t colour;
} colours[PC_LINKS_COLOURS] = {{"messages", PC_STYLE_BLUE},
                               {"tensor parallelism", PC_STYLE_ORANGE},
                               {"gathers of parameters", PC_STYLE_GREEN},
                               {"reductions of gradients", PC_STYLE_VERMILION},
                               {"tied embedding, loss and norm", PC_STYLE_PURPLE}};

static int colour_of(pc_flow_sort sort) {
    return sort < PC_FLOW_TIED ? (int)sort : PC_LINKS_COLOURS - 1;
}

const char *pc_links_colour_name(int colour) {
    return colours[colour].name;
}

uint32_t pc_links_colour(int colour) {
    return colours[colour].colour;
}

/* --- which links --- */

static pc_time last_time(const pc_links_figure *figure) {
    const pc_engine_trace *trace = figure->trace;
    pc_time last = figure->end_ps;
    if (trace->load_count > 0 && trace->load_time_ps[trace->load_count - 1] > last)
        last = trace->load_time_ps[trace->load_count - 1];
    for (int64_t i = 0; i < trace->flow_count; i++)
        if (trace->flow_end_ps[i] > last) last = trace->flow_end_ps[i];
    for (int64_t i = 0; i < trace->work_count; i++)
        if (trace->work_end_ps[i] > last) last = trace->work_end_ps[i];
    return last;
}

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

/* In the order in which they stand in the picture. */
static int compare_places(const void *a, const void *b) {
    const pc_links_row *x = a, *y = b;
    int order = compare(x->replica, y->replica);
    if (order == 0) order = compare(x->device, y->device);
    if (order == 0) order = compare(x->peer, y->peer);
    if (order == 0) order = compare(x->is_in, y->is_in);
    return order ? order : compare(x->link, y->link);
}

/* From the busiest on; those that differ by rounding alone in the order of the picture. */
static int compare_means(const void *a, const void *b) {
    const pc_links_row *x = a, *y = b;
    double mean_x = round(x->mean / SAME), mean_y = round(y->mean / SAME);
    if (mean_x != mean_y) return mean_x < mean_y ? 1 : -1;
    return compare_places(a, b);
}

/* The links of a sort that carry anything, into `found`; how many there are. */
static int64_t list_links(const pc_links_data *data, const pc_link_use *use, pc_link_sort sort, pc_links_row *found) {
    const pc_engine_trace *trace = data->trace;
    double seconds = pc_time_to_seconds(data->end_ps);
    int64_t count = 0;
    for (int64_t i = 0; i < trace->link_count; i++) {
        double bytes = use[i].carried_bytes;
        if (trace->link_sort[i] != sort || !(bytes > 0)) continue;
        found[count++] = (pc_links_row){.link = i,
                                        .replica = trace->link_replica[i],
                                        .device = trace->link_device[i],
                                        .peer = trace->link_peer[i],
                                        .is_in = trace->link_is_in[i],
                                        .mean = bytes / seconds / trace->link_bytes_per_s[i]};
    }
    return count;
}

static void choose_rows(const pc_link_use *use, int most, pc_links_row *found, pc_links_data *data) {
    for (int sort = 0; sort < PC_LINK_SORTS; sort++) {
        int64_t count = list_links(data, use, (pc_link_sort)sort, found);
        if (count == 0) continue;
        int kept = count < most ? (int)count : most;
        qsort(found, (size_t)count, sizeof *found, compare_means);
        qsort(found, (size_t)kept, sizeof *found, compare_places);
        data->panels[data->panel_count++] =
            (pc_links_panel){.sort = (pc_link_sort)sort, .of = count, .first = data->row_count, .count = kept};
        for (int i = 0; i < kept; i++) data->rows[data->row_count++] = found[i];
    }
}

static pc_code make_rows(const pc_links_figure *figure, pc_links_data *data, pc_error *error) {
    pc_link_use *use = NULL;
    pc_links_row *found = pc_alloc((size_t)data->trace->link_count, sizeof *found);
    data->rows = pc_alloc(PC_LINK_SORTS * (size_t)figure->most, sizeof *data->rows);
    pc_code code = found && data->rows ? PC_OK : pc_error_no_memory(error);
    if (!code) code = pc_link_use_make(data->trace, &use, error);
    if (!code && data->end_ps > 0) choose_rows(use, figure->most, found, data);
    pc_free(use);
    pc_free(found);
    return code;
}

/* --- their loads over time: what happens to each row, in the order of time --- */

typedef struct event {
    pc_time time;
    int64_t number; /* for a definite order */
    double load;    /* from then on; or, where it is negative, something of a colour is under way, or no more */
    int32_t row;
    int16_t colour, change;
} event;

typedef struct state {
    pc_time since;
    double load;
    int64_t under_way[PC_LINKS_COLOURS], count;
} state;

typedef struct sweep {
    pc_links_data *data;
    int32_t *row_of; /* of each link; -1 if it is not drawn */
    event *events;
    int64_t count;
    state *states; /* of each row */
} sweep;

static int compare_events(const void *a, const void *b) {
    const event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void add_event(sweep *walk, event what) {
    if (what.row < 0) return;
    what.number = walk->count;
    walk->events[walk->count++] = what;
}

static void add_flow(sweep *walk, int64_t flow, int32_t link) {
    const pc_engine_trace *trace = walk->data->trace;
    int16_t colour = (int16_t)colour_of((pc_flow_sort)trace->flow_sort[flow]);
    int32_t row = walk->row_of[link];
    add_event(walk, (event){trace->flow_start_ps[flow], 0, -1, row, colour, 1});
    add_event(walk, (event){trace->flow_end_ps[flow], 0, -1, row, colour, -1});
}

static void list_events(sweep *walk) {
    const pc_engine_trace *trace = walk->data->trace;
    for (int64_t i = 0; i < trace->load_count; i++)
        add_event(walk, (event){trace->load_time_ps[i], 0, trace->load_bytes_per_s[i],
                                walk->row_of[trace->load_link[i]], 0, 0});
    for (int64_t i = 0; i < trace->flow_count; i++) {
        int32_t out = trace->flow_out[i], in = trace->flow_in[i];
        if (out >= 0) add_flow(walk, i, out);
        if (in >= 0 && in != out) add_flow(walk, i, in);
    }
    if (walk->count > 0) qsort(walk->events, (size_t)walk->count, sizeof *walk->events, compare_events);
}

/* Adds `load` of a colour from one time to another, as what it is of each column's time. */
static void add_load(pc_links_data *data, int row, int colour, pc_time from_ps, pc_time to_ps, double load) {
    double scale = (double)PC_LINKS_COLUMNS / (double)data->end_ps;
    double from = (double)from_ps * scale, to = fmin((double)to_ps * scale, PC_LINKS_COLUMNS);
    for (int column = (int)from; column < to; column++) {
        double part = fmin(to, column + 1) - fmax(from, column);
        double *at = &data->loads[((int64_t)row * PC_LINKS_COLUMNS + column) * PC_LINKS_COLOURS + colour];
        if (part > 0) *at += load * part;
    }
}

/* What the row had until now goes into its columns. Loads that nothing under way explains count as the last colour. */
static void settle(const sweep *walk, int32_t row, pc_time time) {
    state *of = &walk->states[row];
    double bandwidth = walk->data->trace->link_bytes_per_s[walk->data->rows[row].link];
    for (int colour = 0; colour < PC_LINKS_COLOURS && of->load > 0; colour++) {
        double part =
            of->count > 0 ? (double)of->under_way[colour] / (double)of->count : colour == PC_LINKS_COLOURS - 1;
        if (part > 0) add_load(walk->data, row, colour, of->since, time, part * of->load / bandwidth);
    }
    of->since = time;
}

static void take_event(const sweep *walk, const event *what) {
    state *of = &walk->states[what->row];
    settle(walk, what->row, what->time);
    if (what->load >= 0) {
        of->load = what->load;
        return;
    }
    of->under_way[what->colour] += what->change;
    of->count += what->change;
}

static pc_code make_loads(pc_links_data *data, pc_error *error) {
    const pc_engine_trace *trace = data->trace;
    sweep walk = {.data = data,
                  .row_of = pc_alloc((size_t)trace->link_count, sizeof *walk.row_of),
                  .events = pc_alloc((size_t)trace->load_count + 4 * (size_t)trace->flow_count, sizeof *walk.events),
                  .states = pc_alloc((size_t)data->row_count, sizeof *walk.states)};
    data->loads = pc_alloc((size_t)data->row_count, sizeof *data->loads * PC_LINKS_COLUMNS * PC_LINKS_COLOURS);
    pc_code code = walk.row_of && walk.events && walk.states && data->loads ? PC_OK : pc_error_no_memory(error);
    for (int64_t i = 0; i < trace->link_count && !code; i++) walk.row_of[i] = -1;
    for (int32_t row = 0; row < data->row_count && !code; row++) walk.row_of[data->rows[row].link] = row;
    if (!code) list_events(&walk);
    for (int64_t i = 0; i < walk.count; i++) take_event(&walk, &walk.events[i]);
    for (int32_t row = 0; row < data->row_count && !code; row++) settle(&walk, row, data->end_ps);
    pc_free(walk.row_of);
    pc_free(walk.events);
    pc_free(walk.states);
    return code;
}

/* --- what is true of rows and panels --- */

static void survey_row(pc_links_data *data, int row) {
    for (int column = 0; column < PC_LINKS_COLUMNS; column++) {
        const double *loads = pc_links_loads(data, row, column);
        double sum = 0;
        for (int colour = 0; colour < PC_LINKS_COLOURS; colour++) {
            sum += loads[colour];
            if (loads[colour] > 0) data->has_colour[colour] = true;
        }
        data->rows[row].most = fmax(data->rows[row].most, sum);
    }
}

static void survey_panel(pc_links_data *data, pc_links_panel *panel) {
    panel->scale = 1;
    panel->is_shared = true;
    for (int row = panel->first; row < panel->first + panel->count; row++) {
        survey_row(data, row);
        if (data->rows[row].most > 1 + SAME) panel->scale = fmax(panel->scale, data->rows[row].most);
        panel->is_shared = panel->is_shared && data->trace->link_shared[data->rows[row].link];
    }
}

pc_code pc_links_collect(const pc_links_figure *figure, pc_links_data *data, pc_error *error) {
    *data = (pc_links_data){.trace = figure->trace, .end_ps = last_time(figure)};
    pc_code code = make_rows(figure, data, error);
    if (!code) code = make_loads(data, error);
    for (int i = 0; i < data->panel_count && !code; i++) survey_panel(data, &data->panels[i]);
    return code;
}

void pc_links_free(pc_links_data *data) {
    pc_free(data->rows);
    pc_free(data->loads);
    *data = (pc_links_data){0};
}

static bool are_same(const double *a, const double *b) {
    for (int colour = 0; colour < PC_LINKS_COLOURS; colour++)
        if (fabs(a[colour] - b[colour]) > SAME * fmax(a[colour], b[colour])) return false;
    return true;
}

int pc_links_run_end(const pc_links_data *data, int row, int column) {
    const double *first = pc_links_loads(data, row, column);
    int end = column + 1;
    while (end < PC_LINKS_COLUMNS && are_same(first, pc_links_loads(data, row, end))) end++;
    return end;
}
