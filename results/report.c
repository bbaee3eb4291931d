#include "results/report.h"

#include "engine/alloc.h"
#include "engine/order.h"
#include "models/training/bad_days.h"
#include "storage/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static double in_units(const pc_schedule_report *report, pc_time time) {
    return (double)time / report->time_unit_ps;
}

static double in_microbatches(const pc_schedule_report *report, int64_t bytes) {
    return (double)bytes / report->microbatch_bytes;
}

/* ---- JSON ---- */

static void add_number(pc_text *text, double value) {
    char number[PC_NUMBER_SIZE];
    pc_number_format(value, number);
    pc_text_add(text, number, strlen(number));
}

static void add_field(pc_text *text, const char *name, double value) {
    pc_text_printf(text, ",\"%s\":", name);
    add_number(text, value);
}

static void add_shape(pc_text *text, const pc_schedule *schedule) {
    pc_text_printf(text, "{\"name\":");
    pc_text_add_json(text, schedule->name);
    pc_text_printf(text, ",\"devices\":%d,\"microbatches\":%d,\"chunks\":%d,\"placement\":\"%s\"", schedule->devices,
                   schedule->microbatches, schedule->chunks, pc_placement_name(schedule->placement));
    if (pc_placement_has_slices(schedule->placement))
        pc_text_printf(text, ",\"slices\":%d", pc_placement_slices(schedule->placement, schedule->chunks));
}

/* Every pass of one block, where it starts on the block's own clock. */
static void add_block_passes(const pc_block *block, pc_text *text) {
    bool is_first = true;
    for (int i = 0; i < block->microbatches; i++)
        for (int d = 0; d < block->devices; d++)
            for (int c = 0; c < block->chunks; c++)
                for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                    int64_t start = pc_block_start(block, i, d, c, kind);
                    if (start == PC_TIME_NOT_GIVEN) continue;
                    pc_text_printf(text,
                                   "%s{\"microbatch\":%d,\"device\":%d,\"chunk\":%d,\"kind\":\"%s\",\"start\":%" PRId64
                                   ",\"duration\":%" PRId64 "}",
                                   is_first ? "" : ",", i, d, c, pc_pass_kind_name((pc_pass_kind)kind), start,
                                   block->duration[kind]);
                    is_first = false;
                }
}

static void add_lifespans(const pc_block *block, int device, pc_text *text) {
    bool is_first = true;
    pc_text_printf(text, device ? ",[" : "[");
    for (int c = 0; c < block->chunks; c++)
        for (int i = 0; i < block->microbatches; i++) {
            if (!pc_placement_visits(block->placement, c, i)) continue;
            pc_text_printf(text, "%s%" PRId64, is_first ? "" : ",", pc_block_lifespan(block, i, device, c));
            is_first = false;
        }
    pc_text_printf(text, "]");
}

static double bound_of(const pc_block *block, int device) {
    int visited = pc_placement_visited(block->placement, block->chunks);
    return (double)pc_block_peak_bound(block, device) / visited;
}

static double peak_of(const pc_schedule_report *report, int device) {
    return in_microbatches(report, pc_block_peak(report->block, report->costs, device, report->schedule->microbatches));
}

static void add_block(const pc_schedule_report *report, pc_text *text) {
    const pc_block *block = report->block;
    if (!block) {
        pc_text_printf(text, ",\"block\":null");
        return;
    }
    pc_text_printf(text, ",\"block\":{\"microbatches\":%d,\"interval\":%" PRId64 ",\"passes\":[", block->microbatches,
                   block->interval);
    add_block_passes(block, text);
    pc_text_printf(text, "],\"lifespan\":[");
    for (int d = 0; d < block->devices; d++) add_lifespans(block, d, text);
    for (int d = 0; d < block->devices; d++) {
        pc_text_printf(text, d ? "," : "],\"peak_bound\":[");
        add_number(text, bound_of(block, d));
    }
    for (int d = 0; report->costs && d < block->devices; d++) {
        pc_text_printf(text, d ? "," : "],\"peak\":[");
        add_number(text, peak_of(report, d));
    }
    pc_text_printf(text, "]}");
}

/* Whether no schedule like this one is shorter; that one is, nobody says. */
static bool is_optimal(const pc_schedule_report *report) {
    return report->bound_ps != PC_TIME_NOT_GIVEN && report->replay->span_ps <= report->bound_ps;
}

static double gap_of(const pc_schedule_report *report) {
    return is_optimal(report) ? 0.0 : (double)report->replay->span_ps / (double)report->bound_ps - 1.0;
}

static void add_bound(const pc_schedule_report *report, pc_text *text) {
    if (report->bound_ps == PC_TIME_NOT_GIVEN) {
        pc_text_printf(text, ",\"bound\":null,\"gap\":null,\"optimal\":null");
        return;
    }
    add_field(text, "bound", in_units(report, report->bound_ps));
    add_field(text, "gap", gap_of(report));
    pc_text_printf(text, ",\"optimal\":%s", is_optimal(report) ? "true" : "null");
}

static void add_steady(const pc_schedule_report *report, pc_text *text) {
    const pc_steady *steady = report->steady;
    if (!steady) {
        pc_text_printf(text, ",\"interval\":null,\"interval_microbatches\":null,\"repeating_bubble\":null,"
                             "\"idle_per_microbatch\":null");
        return;
    }
    add_field(text, "interval", steady->interval_ps / report->time_unit_ps);
    pc_text_printf(text, ",\"interval_microbatches\":%d", steady->microbatches);
    add_field(text, "repeating_bubble", pc_steady_bubble_rate(steady));
    for (int d = 0; d < steady->devices; d++) {
        pc_text_printf(text, d ? "," : ",\"idle_per_microbatch\":[");
        add_number(text, pc_steady_idle_ps(steady, d) / report->time_unit_ps);
    }
    pc_text_printf(text, "]");
}

static void add_improvement(const pc_schedule_report *report, pc_text *text) {
    const pc_improvement *improvement = report->improvement;
    pc_text_printf(text, ",\"improved\":{\"changed\":%s", improvement->is_changed ? "true" : "false");
    add_field(text, "span_before", in_units(report, improvement->span_before_ps));
    add_field(text, "makespan_before", in_units(report, improvement->makespan_before_ps));
    for (int d = 0; d < report->schedule->devices; d++) {
        pc_text_printf(text, d ? "," : ",\"peak_activation_before\":[");
        add_number(text, in_microbatches(report, improvement->peak_before_bytes[d]));
    }
    pc_text_printf(text, "]}");
}

/* What samples come to, in units. */
typedef struct sampled {
    pc_span_mean mean;
    pc_quantile p95;
} sampled;

/* NaN for the quantile where memory is short: what is written then fails as well. */
static sampled sum_up(const pc_schedule_report *report, const double *span_ps) {
    int64_t count = report->robustness->samples;
    sampled made = {.mean = pc_robust_mean(span_ps, count)};
    double *sorted = pc_alloc((size_t)count, sizeof *sorted), unit = report->time_unit_ps;
    if (sorted) {
        memcpy(sorted, span_ps, (size_t)count * sizeof *sorted);
        pc_sort_reals(sorted, count);
    }
    made.p95 = pc_quantile_of(sorted, sorted ? count : 0, 0.95);
    pc_free(sorted);
    return (sampled){{made.mean.mean_ps / unit, made.mean.error_ps / unit},
                     {made.p95.value / unit, made.p95.low / unit, made.p95.high / unit}};
}

static void add_robust(const pc_schedule_report *report, pc_text *text) {
    const pc_robustness *x = report->robustness;
    sampled given = sum_up(report, x->given_ps);
    pc_span_mean gain = pc_robust_gain(x);
    pc_text_printf(text, ",\"robust\":{\"goal\":\"%s\",\"changed\":%s", pc_robust_names[x->goal],
                   x->is_changed ? "true" : "false");
    add_field(text, "span_before", in_units(report, x->span_before_ps));
    add_field(text, "mean_before", given.mean.mean_ps);
    add_field(text, "p95_before", given.p95.value);
    add_field(text, "gain", gain.mean_ps / report->time_unit_ps);
    add_field(text, "gain_error", gain.error_ps / report->time_unit_ps);
    pc_text_printf(text, "}");
}

/* NaN: too few samples say nothing. */
static void add_bound_field(pc_text *text, const char *name, double value) {
    if (isnan(value))
        pc_text_printf(text, ",\"%s\":null", name);
    else
        add_field(text, name, value);
}

static void add_samples(const pc_schedule_report *report, pc_text *text) {
    sampled chosen = sum_up(report, report->robustness->chosen_ps);
    pc_text_printf(text, ",\"samples\":{\"count\":%" PRId64, report->robustness->samples);
    add_field(text, "mean", chosen.mean.mean_ps);
    add_field(text, "mean_error", chosen.mean.error_ps);
    add_field(text, "p95", chosen.p95.value);
    add_bound_field(text, "p95_low", chosen.p95.low);
    add_bound_field(text, "p95_high", chosen.p95.high);
    pc_text_printf(text, "}");
    if (report->robustness->goal) add_robust(report, text);
}

static void add_stage_times(const pc_schedule_report *report, pc_text *text) {
    static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W};
    const pc_costs *costs = report->costs;
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++) {
            pc_text_printf(text, c ? "," : d ? "],[" : ",\"stage_times\":[[");
            for (int i = 0; i < 3; i++) {
                pc_text_printf(text, i ? "," : "[");
                add_number(text, in_units(report, pc_costs_duration(costs, d, c, kinds[i])));
            }
            pc_text_printf(text, "]");
        }
    pc_text_printf(text, "]]");
}

static void add_memory_limit(const pc_schedule_report *report, pc_text *text) {
    for (int d = 0; d < report->schedule->devices; d++) {
        pc_text_printf(text, d ? "," : ",\"memory_limit\":[");
        if (isinf(report->memory_limit[d]))
            pc_text_printf(text, "null");
        else
            add_number(text, report->memory_limit[d]);
    }
    pc_text_printf(text, "]");
}

static void add_held(const pc_schedule_report *report, pc_text *text) {
    for (int d = 0; d < report->schedule->devices; d++) {
        pc_text_printf(text, d ? "," : ",\"held\":[");
        if (report->held_bytes[d] < 0)
            pc_text_printf(text, "null");
        else
            add_number(text, in_microbatches(report, report->held_bytes[d]));
    }
    pc_text_printf(text, "]");
}

static void add_json(const pc_schedule_report *report, pc_text *text) {
    const pc_replay *replay = report->replay;
    add_shape(text, report->schedule);
    if (report->time_unit) pc_text_printf(text, ",\"time_unit\":\"%s\"", report->time_unit);
    if (report->memory_unit) pc_text_printf(text, ",\"memory_unit\":\"%s\"", report->memory_unit);
    if (report->held_bytes) add_held(report, text);
    add_field(text, "span", in_units(report, replay->span_ps));
    add_field(text, "makespan", in_units(report, replay->makespan_ps));
    add_field(text, "bubble_rate_span", replay->bubble_rate_span);
    add_field(text, "bubble_rate_makespan", replay->bubble_rate_makespan);
    add_bound(report, text);
    add_steady(report, text);
    for (int d = 0; d < replay->devices; d++) {
        pc_text_printf(text, d ? "," : ",\"peak_activation\":[");
        add_number(text, in_microbatches(report, replay->device_peak_bytes[d]));
    }
    pc_text_printf(text, "]");
    add_field(text, "max_peak_activation", in_microbatches(report, replay->peak_bytes));
    add_field(text, "generate_s", report->generate_s);
    add_field(text, "replay_s", report->replay_s);
    pc_text_printf(text, ",\"trace_hash\":\"%016" PRIx64 "\"", replay->trace_hash);
    pc_text_printf(text, ",\"engine\":\"%s\"", report->keeps_grid ? "cells" : pc_engine_way_name(replay->way));
    pc_text_printf(text, report->goal ? ",\"goal\":\"%s\"" : ",\"goal\":null", report->goal);
    if (report->has_part_times) add_stage_times(report, text);
    if (report->memory_limit) add_memory_limit(report, text);
    add_block(report, text);
    if (report->improvement) add_improvement(report, text);
    if (report->robustness) add_samples(report, text);
    pc_text_printf(text, "}\n");
}

/* ---- for people ---- */

enum { LIFESPANS_MAX = 8 /* of a device on its line; the JSON has them all */ };

static void add_lifespans_of(const pc_block *block, int device, pc_text *text) {
    int count = 0;
    for (int c = 0; c < block->chunks; c++)
        for (int i = 0; i < block->microbatches; i++) {
            if (!pc_placement_visits(block->placement, c, i)) continue;
            if (count++ < LIFESPANS_MAX) pc_text_printf(text, " %" PRId64, pc_block_lifespan(block, i, device, c));
        }
    if (count > LIFESPANS_MAX) pc_text_printf(text, " ...");
}

/* Device by device: how long its chunks live, in cells, and what that makes it hold. */
static void add_block_lines(const pc_schedule_report *report, pc_text *text) {
    const pc_block *block = report->block;
    pc_text_printf(text, "  block                  interval %" PRId64 " cells, %d microbatch%s\n", block->interval,
                   block->microbatches, block->microbatches > 1 ? "es" : "");
    pc_text_printf(text, "\n  device  bound  repeated  here  lifespan of each chunk in cells\n");
    for (int d = 0; d < block->devices; d++) {
        pc_text_printf(text, "  %6d  %5.4g  %8.4g  %4.4g ", d, bound_of(block, d), peak_of(report, d),
                       in_microbatches(report, report->replay->device_peak_bytes[d]));
        add_lifespans_of(block, d, text);
        pc_text_printf(text, "\n");
    }
}

static void add_improvement_lines(const pc_schedule_report *report, pc_text *text) {
    const pc_improvement *improvement = report->improvement;
    int64_t peak = 0;
    for (int d = 0; d < report->schedule->devices; d++)
        if (improvement->peak_before_bytes[d] > peak) peak = improvement->peak_before_bytes[d];
    pc_text_printf(text, "  improved from          span %.10g, makespan %.10g, peak activation %.6g%s\n",
                   in_units(report, improvement->span_before_ps), in_units(report, improvement->makespan_before_ps),
                   in_microbatches(report, peak), improvement->is_changed ? "" : "; nothing better was found");
}

static void add_sample_lines(const pc_schedule_report *report, pc_text *text) {
    const pc_robustness *x = report->robustness;
    sampled chosen = sum_up(report, x->chosen_ps), given = sum_up(report, x->given_ps);
    pc_span_mean gain = pc_robust_gain(x);
    pc_text_printf(text, "  span, sampled          mean %.6g, standard error %.2g; 95%% %.6g", chosen.mean.mean_ps,
                   chosen.mean.error_ps, chosen.p95.value);
    if (!isnan(chosen.p95.low) && !isnan(chosen.p95.high))
        pc_text_printf(text, ", from %.6g to %.6g", chosen.p95.low, chosen.p95.high);
    pc_text_printf(text, "; %" PRId64 " samples\n", x->samples);
    if (!x->goal) return;
    if (!x->is_changed) {
        pc_text_printf(text, "  robust                 nothing better was found\n");
        return;
    }
    pc_text_printf(text,
                   "  the order before       span %.10g; mean %.6g, %.3g longer, standard error %.2g; 95%% %.6g\n",
                   in_units(report, x->span_before_ps), given.mean.mean_ps, gain.mean_ps / report->time_unit_ps,
                   gain.error_ps / report->time_unit_ps, given.p95.value);
}

static void add_bound_line(const pc_schedule_report *report, pc_text *text) {
    if (report->bound_ps == PC_TIME_NOT_GIVEN) return;
    pc_text_printf(text, "  bound of the span      %.10g; ", in_units(report, report->bound_ps));
    if (is_optimal(report))
        pc_text_printf(text, "proved optimal\n");
    else
        pc_text_printf(text, "at most %.2f%% longer than the shortest\n", 100.0 * gap_of(report));
}

static void add_steady_line(const pc_schedule_report *report, pc_text *text) {
    const pc_steady *steady = report->steady;
    if (!steady) return;
    pc_text_printf(text, "  interval               %.10g a microbatch in the middle; repeating bubble %.4f\n",
                   steady->interval_ps / report->time_unit_ps, pc_steady_bubble_rate(steady));
}

static void add_memory_lines(const pc_schedule_report *report, pc_text *text) {
    const pc_replay *replay = report->replay;
    pc_text_printf(text, "  peak activation        %.6g %s\n", in_microbatches(report, replay->peak_bytes),
                   report->memory_unit ? report->memory_unit : "of a stage's microbatches");
    pc_text_printf(text, "  device by device      ");
    for (int d = 0; d < replay->devices; d++)
        pc_text_printf(text, " %.4g", in_microbatches(report, replay->device_peak_bytes[d]));
    pc_text_printf(text, "\n");
    if (!report->held_bytes) return;
    pc_text_printf(text, "  held beside that      ");
    for (int d = 0; d < replay->devices; d++)
        if (report->held_bytes[d] < 0)
            pc_text_printf(text, " ?");
        else
            pc_text_printf(text, " %.4g", in_microbatches(report, report->held_bytes[d]));
    pc_text_printf(text, "\n");
}

static void add_lines(const pc_schedule_report *report, pc_text *text) {
    const pc_schedule *schedule = report->schedule;
    const pc_replay *replay = report->replay;
    int slices = pc_placement_slices(schedule->placement, schedule->chunks), parts = schedule->chunks / slices;
    bool has_slices = pc_placement_has_slices(schedule->placement);
    pc_text_add_line(text, schedule->name, PC_SCHEDULE_NAME_SIZE);
    pc_text_printf(text, ": %d device%s, %d microbatch%s, ", schedule->devices, schedule->devices > 1 ? "s" : "",
                   schedule->microbatches, schedule->microbatches > 1 ? "es" : "");
    if (parts > 1 || !has_slices) pc_text_printf(text, "%d chunk%s a device, ", parts, parts > 1 ? "s" : "");
    if (has_slices) pc_text_printf(text, "%d slice%s a microbatch, ", slices, slices > 1 ? "s" : "");
    pc_text_printf(text, "placement %s\n", pc_placement_name(schedule->placement));
    const char *unit = report->time_unit ? report->time_unit : "", *space = report->time_unit ? " " : "";
    pc_text_printf(text, "  span                   %.10g%s%s\n", in_units(report, replay->span_ps), space, unit);
    pc_text_printf(text, "  makespan               %.10g%s%s\n", in_units(report, replay->makespan_ps), space, unit);
    pc_text_printf(text, "  bubble rate, span      %.4f\n", replay->bubble_rate_span);
    pc_text_printf(text, "  bubble rate, makespan  %.4f\n", replay->bubble_rate_makespan);
    if (report->goal && strcmp(report->goal, "span") != 0)
        pc_text_printf(text, "  goal                   %s\n", report->goal);
    add_bound_line(report, text);
    add_steady_line(report, text);
    if (report->improvement) add_improvement_lines(report, text);
    if (report->robustness) add_sample_lines(report, text);
    add_memory_lines(report, text);
    pc_text_printf(text, "  engine                 %s\n",
                   report->keeps_grid ? "none; every pass starts where its cell does"
                                      : pc_engine_way_words(replay->way));
    if (report->describes_block && report->block && report->costs) add_block_lines(report, text);
}

pc_code pc_schedule_report_write(const pc_schedule_report *report, bool as_json, FILE *stream, pc_error *error) {
    pc_text text = {0};
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    (as_json ? add_json : add_lines)(report, &text);
    pc_number_scope_leave(&scope);
    bool is_written = !text.failed && fwrite(text.data, 1, text.size, stream) == text.size;
    bool was_short = text.failed;
    pc_text_free(&text);
    if (was_short) return pc_error_no_memory(error);
    return is_written ? PC_OK : pc_error_set(error, PC_ERROR_IO, "output: %s", strerror(errno));
}
