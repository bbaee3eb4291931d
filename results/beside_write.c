#include "results/beside.h"

#include "engine/alloc.h"
#include "results/export_private.h"
#include "results/figures/figure.h"
#include "storage/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static double in_ms(pc_time time_ps) {
    return (double)time_ps / 1e9;
}

/* The steps from the simulated iteration to the measured one. */
typedef struct step {
    const char *key, *words;
    pc_time time_ps;
} step;
enum { STEPS = 4 };

static void list_steps(const pc_beside *b, step steps[STEPS]) {
    steps[0] = (step){"passes", "passes that take longer", b->with_passes_ps - b->simulated_ps};
    steps[1] = (step){"transfers", "transfers that take longer", b->with_messages_ps - b->with_passes_ps};
    steps[2] = (step){"order", "another order of passes", b->with_order_ps - b->with_messages_ps};
    steps[3] = (step){"gaps", "gaps in which a pass could have run", b->measured_ps - b->with_order_ps};
}

/* Kinds that there are. */
static int list_kinds(const pc_beside *b, int kinds[PC_PASS_KINDS]) {
    int count = 0;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        bool is_there = false;
        for (int d = 0; d < b->devices; d++) is_there = is_there || b->device[d].busy_ps[0][kind] > 0;
        if (is_there) kinds[count++] = kind;
    }
    return count;
}

static double ratio(pc_time measured_ps, pc_time simulated_ps) {
    return simulated_ps > 0 ? (double)measured_ps / (double)simulated_ps - 1.0 : 0.0;
}

/* ---- for people ---- */

static void add_head(const pc_beside *b, const char *name, pc_text *text) {
    step steps[STEPS];
    list_steps(b, steps);
    pc_text_add_line(text, name, PC_LABEL_SIZE);
    pc_text_printf(text, ": iteration %d of %d, from the first pass to the last\n", b->iteration + 1, b->iterations);
    pc_text_printf(text, "  simulated              %.6g ms\n", in_ms(b->simulated_ps));
    for (int i = 0; i < STEPS; i++)
        pc_text_printf(text, "  %-38s %+.4g ms%s\n", steps[i].words, in_ms(steps[i].time_ps),
                       i == 1 && !b->has_messages ? " (no messages were seen)" : "");
    pc_text_printf(text, "  measured               %.6g ms, %+.1f%%\n\n", in_ms(b->measured_ps),
                   100 * ratio(b->measured_ps, b->simulated_ps));
}

static void add_device(const pc_beside *b, int d, const int *kinds, int count, pc_text *text) {
    const pc_beside_device *device = &b->device[d];
    pc_text_printf(text, "  %6d", d);
    for (int i = 0; i < count; i++)
        pc_text_printf(text, "  %8.4g %8.4g %+6.1f%%", in_ms(device->busy_ps[0][kinds[i]]),
                       in_ms(device->busy_ps[1][kinds[i]]),
                       100 * ratio(device->busy_ps[1][kinds[i]], device->busy_ps[0][kinds[i]]));
    pc_text_printf(text, "  %8.4g %8.4g  %8.4g %8.4g", in_ms(device->idle_ps[0]), in_ms(device->idle_ps[1]),
                   in_ms(device->gap_ps[0]), in_ms(device->gap_ps[1]));
    if (device->moved) pc_text_printf(text, "  %" PRId64 " passes in another order", device->moved);
    pc_text_printf(text, "\n");
}

static void add_lines(const pc_beside *b, const char *name, pc_text *text) {
    int kinds[PC_PASS_KINDS], count = list_kinds(b, kinds);
    add_head(b, name, text);
    pc_text_printf(text, "  ms    ");
    for (int i = 0; i < count; i++) pc_text_printf(text, "  %-25s", pc_pass_kind_name((pc_pass_kind)kinds[i]));
    pc_text_printf(text, "  %-17s  %s\n  device", "idle", "of that gaps");
    for (int i = 0; i < count; i++) pc_text_printf(text, "  simulated measured       ");
    pc_text_printf(text, "  simulated measured  simulated measured\n");
    for (int d = 0; d < b->devices; d++) add_device(b, d, kinds, count, text);
}

/* ---- for programs ---- */

static void add_number(pc_text *text, const char *name, double value) {
    char number[PC_NUMBER_SIZE];
    pc_number_format(value, number);
    pc_text_printf(text, "\"%s\":%s", name, number);
}

static void add_json_device(const pc_beside *b, int d, pc_text *text) {
    static const char *const which[] = {"simulated", "measured"};
    const pc_beside_device *device = &b->device[d];
    pc_text_printf(text, "%s{\"device\":%d", d ? "," : "", d);
    for (int i = 0; i < 2; i++) {
        pc_text_printf(text, ",\"%s\":{", which[i]);
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
            add_number(text, pc_pass_kind_name((pc_pass_kind)kind), in_ms(device->busy_ps[i][kind]));
            pc_text_add(text, ",", 1);
        }
        add_number(text, "idle", in_ms(device->idle_ps[i]));
        pc_text_add(text, ",", 1);
        add_number(text, "gaps", in_ms(device->gap_ps[i]));
        pc_text_add(text, "}", 1);
    }
    pc_text_printf(text, ",\"moved\":%" PRId64 "}", device->moved);
}

static void add_json(const pc_beside *b, const char *name, pc_text *text) {
    step steps[STEPS];
    list_steps(b, steps);
    pc_text_printf(text, "{\"run\":");
    pc_text_add_json(text, name);
    pc_text_printf(text, ",\"time_unit\":\"ms\",\"iteration\":%d,\"iterations\":%d,\"saw_messages\":%s,",
                   b->iteration + 1, b->iterations, b->has_messages ? "true" : "false");
    add_number(text, "simulated", in_ms(b->simulated_ps));
    pc_text_add(text, ",", 1);
    add_number(text, "measured", in_ms(b->measured_ps));
    pc_text_printf(text, ",\"difference\":{");
    for (int i = 0; i < STEPS; i++) {
        if (i) pc_text_add(text, ",", 1);
        add_number(text, steps[i].key, in_ms(steps[i].time_ps));
    }
    pc_text_printf(text, "},\"devices\":[");
    for (int d = 0; d < b->devices; d++) add_json_device(b, d, text);
    pc_text_printf(text, "]}\n");
}

static void add_csv(const pc_beside *b, const pc_replay_trace *trace, pc_text *text) {
    pc_text_printf(text,
                   "device,kind,chunk,microbatch,simulated_start_ps,simulated_end_ps,measured_start_ps,measured_end_ps,"
                   "transfer_ps\n");
    for (int64_t i = 0; i < b->pass_count; i++) {
        pc_pass pass = trace->pass[i];
        pc_text_printf(text, "%d,%s,%d,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",", trace->pass_device[i],
                       pc_pass_kind_name((pc_pass_kind)pass.kind), pass.chunk, pass.microbatch, trace->pass_start_ps[i],
                       trace->pass_end_ps[i], b->start_ps[i], b->end_ps[i]);
        if (b->delay_ps[i] != PC_TIME_NOT_GIVEN) pc_text_printf(text, "%" PRId64, b->delay_ps[i]);
        pc_text_add(text, "\n", 1);
    }
}

pc_code pc_beside_write(const pc_beside *beside, const pc_trace_record *record, const char *name, pc_format format,
                        FILE *stream, pc_error *error) {
    pc_outlet outlet = {.stream = stream};
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    if (format == PC_FORMAT_TABLE) add_lines(beside, name, &outlet.text);
    if (format == PC_FORMAT_JSON) add_json(beside, name, &outlet.text);
    if (format == PC_FORMAT_CSV) add_csv(beside, &record->replay.trace, &outlet.text);
    pc_number_scope_leave(&scope);
    return pc_outlet_end(&outlet, error);
}

/* ---- the picture ---- */

/* Three rows a device: as simulated, as measured, and none. */
static pc_code fill_trace(const pc_beside *b, const pc_replay_trace *from, pc_replay_trace *both, pc_error *error) {
    size_t passes = 2 * (size_t)b->pass_count;
    both->pass_count = 2 * b->pass_count;
    both->pass = pc_alloc(passes, sizeof *both->pass);
    both->pass_device = pc_alloc(passes, sizeof *both->pass_device);
    both->pass_start_ps = pc_alloc(passes, sizeof *both->pass_start_ps);
    both->pass_end_ps = pc_alloc(passes, sizeof *both->pass_end_ps);
    if (!both->pass || !both->pass_device || !both->pass_start_ps || !both->pass_end_ps)
        return pc_error_no_memory(error);
    for (int64_t i = 0; i < b->pass_count; i++)
        for (int which = 0; which < 2; which++) {
            int64_t to = 2 * i + which;
            both->pass[to] = from->pass[i];
            both->pass_device[to] = PC_TIMELINE_ROWS_BESIDE * from->pass_device[i] + which;
            both->pass_start_ps[to] = which ? b->start_ps[i] : from->pass_start_ps[i];
            both->pass_end_ps[to] = which ? b->end_ps[i] : from->pass_end_ps[i];
        }
    return PC_OK;
}

static pc_code draw(const pc_beside *b, const pc_trace_record *record, const char *name, const pc_replay_trace *both,
                    bool is_dark, const char *path, pc_error *error) {
    char title[PC_LABEL_SIZE + 64], subtitle[256];
    step steps[STEPS];
    list_steps(b, steps);
    snprintf(title, sizeof title, "%.*s: simulated above, measured below", PC_LABEL_SIZE - 1, name);
    pc_write_message(
        subtitle, sizeof subtitle,
        "%.6g ms simulated; passes %+.3g, transfers %+.3g, order %+.3g, gaps %+.3g: %.6g ms measured (%+.1f%%)",
        in_ms(b->simulated_ps), in_ms(steps[0].time_ps), in_ms(steps[1].time_ps), in_ms(steps[2].time_ps),
        in_ms(steps[3].time_ps), in_ms(b->measured_ps), 100 * ratio(b->measured_ps, b->simulated_ps));
    pc_timeline timeline = {.title = title,
                            .subtitle = subtitle,
                            .time_unit = "ms",
                            .time_unit_ps = 1e9,
                            .devices = PC_TIMELINE_ROWS_BESIDE * b->devices - 1,
                            .is_beside = true,
                            .is_dark = is_dark,
                            .chunks = record->chunks,
                            .slices = pc_placement_slices(record->placement, record->chunks),
                            .trace = both,
                            .memory_unit_bytes = 1,
                            .memory_unit = ""};
    return pc_figure_timeline(&timeline, path, error);
}

pc_code pc_beside_draw(const pc_beside *beside, const pc_trace_record *record, const char *name, bool is_dark,
                       const char *path, pc_error *error) {
    pc_replay_trace both = {.pass_count = 0};
    pc_code code = fill_trace(beside, &record->replay.trace, &both, error);
    if (!code) code = draw(beside, record, name, &both, is_dark, path, error);
    pc_free(both.pass);
    pc_free(both.pass_device);
    pc_free(both.pass_start_ps);
    pc_free(both.pass_end_ps);
    return code;
}
