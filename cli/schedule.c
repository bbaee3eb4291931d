/* pipecast schedule: one schedule, replayed at the user's costs in the user's unit of time. */
#include "cli/cli.h"

#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/workload/activation.h"
#include "results/figure.h"
#include "results/report.h"
#include "scenarios/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: pipecast schedule NAME|FILE.csv -p DEVICES -m MICROBATCHES [OPTIONS]\n"
    "\n"
    "Generates the schedule NAME (pipecast list schedules), or loads FILE.csv as PyTorch's pipelining runtime writes "
    "it;\n"
    "checks it, replays it, and says what it costs.\n"
    "\n"
    "  -p, --devices DEVICES       pipeline stages\n"
    "  -m, --microbatches N        microbatches of an iteration\n"
    "  -v, --chunks N              model parts on a device, for the schedules that take several\n"
    "      --times F,B,W           times of a whole stage's passes, in any one unit (default 1,1,1)\n"
    "      --comm T                time of a transfer between neighbours, in the same unit (default 0)\n"
    "      --release-b FRACTION    how much of what F took B gives back; W the rest (default 0)\n"
    "      --keep FRACTION         how much of it F keeps where the schedule recomputes (default 2/34, a layer's "
    "input)\n"
    "      --memory-limit X        the most activations a device may hold, in microbatches of a stage\n"
    "      --format FORMAT         table, json, text (the passes) or torch-csv (default table)\n"
    "      --figure FILE           draw the timeline: .svg, .png or .pdf\n"
    "\n"
    "example: pipecast schedule 1f1b -p 8 -m 24 --times 18.522,18.086,9.337 --comm 0.601 --format json\n";

typedef enum schedule_format { FORMAT_TABLE, FORMAT_JSON, FORMAT_TEXT, FORMAT_TORCH_CSV } schedule_format;

typedef struct request {
    const char *name;
    int64_t devices, microbatches, chunks; /* 0 where not given */
    double times[3];                       /* F, B, W */
    double comm, release_b, keep;
    double memory_limit; /* infinite where not given */
    schedule_format format;
    const char *figure;
} request;

/* ---- arguments ---- */

enum { DEVICES, MICROBATCHES, CHUNKS, TIMES, COMM, RELEASE_B, KEEP, MEMORY_LIMIT, FORMAT, FIGURE, HELP };
static const option_spec options[] = {
    {"devices", 'p', "DEVICES"},
    {"microbatches", 'm', "MICROBATCHES"},
    {"chunks", 'v', "CHUNKS"},
    {"times", 0, "F,B,W"},
    {"comm", 0, "T"},
    {"release-b", 0, "FRACTION"},
    {"keep", 0, "FRACTION"},
    {"memory-limit", 0, "X"},
    {"format", 0, "FORMAT"},
    {"figure", 0, "FILE"},
    {"help", 'h', NULL},
    {NULL, 0, NULL},
};

static bool parse_times(const char *text, double times[3]) {
    char copy[256], *rest = copy;
    if (strlen(text) >= sizeof copy) {
        report_usage("--times: too long; expected F,B,W such as 18.5,18.1,9.3");
        return false;
    }
    strcpy(copy, text);
    for (int i = 0; i < 3; i++) {
        char *word = strsep(&rest, ",");
        if (!word || (i == 2 && rest)) {
            report_usage("--times: '%s'; expected three numbers F,B,W such as 18.5,18.1,9.3", text);
            return false;
        }
        if (!argument_number("--times", word, &times[i])) return false;
    }
    return true;
}

static bool parse_format(const char *text, schedule_format *format) {
    static const char *const names[] = {"table", "json", "text", "torch-csv"};
    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0) {
            *format = (schedule_format)i;
            return true;
        }
    report_usage("--format: unknown format '%s'; expected table, json, text or torch-csv", text);
    return false;
}

static bool parse_fraction(const char *option, const char *text, double *fraction) {
    if (!argument_number(option, text, fraction)) return false;
    if (*fraction <= 1.0) return true;
    report_usage("%s: %s is more than all; expected a fraction from 0 to 1", option, text);
    return false;
}

static bool take_operand(request *r, const char *text) {
    if (r->name) {
        report_usage("schedule: a second name '%s' after '%s'; expected one", text, r->name);
        return false;
    }
    r->name = text;
    return true;
}

static bool take_option(request *r, int option, const char *value) {
    switch (option) {
    case ARGUMENT_OPERAND:
        return take_operand(r, value);
    case DEVICES:
        return argument_integer("-p", value, 1, PC_DEVICES_MAX, &r->devices);
    case MICROBATCHES:
        return argument_integer("-m", value, 1, PC_MICROBATCHES_MAX, &r->microbatches);
    case CHUNKS:
        return argument_integer("-v", value, 1, PC_CHUNKS_MAX, &r->chunks);
    case TIMES:
        return parse_times(value, r->times);
    case COMM:
        return argument_number("--comm", value, &r->comm);
    case RELEASE_B:
        return parse_fraction("--release-b", value, &r->release_b);
    case KEEP:
        return parse_fraction("--keep", value, &r->keep);
    case MEMORY_LIMIT:
        return argument_number("--memory-limit", value, &r->memory_limit);
    case FORMAT:
        return parse_format(value, &r->format);
    case FIGURE:
        r->figure = value;
        return true;
    default:
        return false;
    }
}

/* ---- costs in whole ticks ---- */

/* The smallest time that is not zero; infinite where all are. */
static double smallest_time(const request *r) {
    const double times[] = {r->times[0], r->times[1], r->times[2], r->comm};
    double smallest = INFINITY;
    for (int i = 0; i < 4; i++)
        if (times[i] > 0.0 && times[i] < smallest) smallest = times[i];
    return smallest;
}

/* Whole ticks for times in the user's unit, 10^9 a unit. More where the smallest of them would be less than 10^6 ticks,
 * so that rounding does not show whatever the unit; fewer where the whole pipeline, one pass after the other, would not
 * fit into the clock; 0 where no number of ticks does. */
static double ticks_per_unit(const request *r, const pc_schedule *schedule) {
    const double most = 0x1p61, least = 1e6;
    double recompute = pc_schedule_has(schedule, PC_PASS_R) ? r->times[0] : 0.0;
    double microbatch = r->times[0] + r->times[1] + r->times[2] + recompute + 2.0 * r->comm * schedule->chunks;
    double whole = microbatch * schedule->devices * schedule->microbatches;
    double smallest = smallest_time(r) / schedule->chunks;
    double ticks = 1e9;
    while (ticks >= 1e-290 && whole * ticks > most) ticks /= 10.0;
    while (smallest * ticks < least && whole * ticks * 10.0 <= most) ticks *= 10.0;
    return smallest * ticks >= 1.0 && whole * ticks <= most ? ticks : 0.0;
}

/* A microbatch of one chunk takes this many of our bytes, so that fractions of --release-b and --keep are whole. */
#define CHUNK_BYTES (INT64_C(1) << 32)

/* `shares`: how many chunks a stage's time is shared among; where chunks are replicas each takes all of it. */
static void fill_costs(const request *r, double ticks, int shares, pc_costs *costs) {
    double of_kind[PC_PASS_KINDS] = {[PC_PASS_F] = r->times[0],
                                     [PC_PASS_B] = r->times[1],
                                     [PC_PASS_W] = r->times[2],
                                     [PC_PASS_BW] = r->times[1] + r->times[2],
                                     [PC_PASS_R] = r->times[0]};
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++) {
            int64_t i = pc_costs_index(costs, d, c);
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                double whole = of_kind[kind] * ticks; /* chunk by chunk so that the chunks sum up to the stage */
                int share = c % shares;
                costs->duration_ps[i * PC_PASS_KINDS + kind] =
                    llround(whole * (share + 1) / shares) - llround(whole * share / shares);
            }
            costs->activation_bytes[i] = CHUNK_BYTES;
            costs->activation_b_bytes[i] = llround(r->release_b * (double)CHUNK_BYTES);
            costs->activation_kept_bytes[i] = llround(r->keep * (double)CHUNK_BYTES);
        }
    costs->transfer.delay_ps = llround(r->comm * ticks);
}

/* ---- what came of it ---- */

/* An answer before it is printed; the report points to the schedule and the replay. */
typedef struct answer {
    const request *request;
    pc_schedule schedule;
    pc_replay replay;
    pc_schedule_report report;
} answer;

static double in_microbatches(const answer *a, int64_t bytes) {
    return (double)bytes / a->report.microbatch_bytes;
}

static pc_code print_answer(const answer *a, pc_error *error) {
    switch (a->request->format) {
    case FORMAT_TABLE:
        return pc_schedule_report_write(&a->report, false, stdout, error);
    case FORMAT_JSON:
        return pc_schedule_report_write(&a->report, true, stdout, error);
    case FORMAT_TORCH_CSV:
        return pc_schedule_write_torch_csv(&a->schedule, stdout, error);
    case FORMAT_TEXT:
        pc_schedule_write_text(&a->schedule, stdout);
        break;
    }
    return PC_OK;
}

static pc_code draw(const answer *a, pc_error *error) {
    char title[PC_SCHEDULE_NAME_SIZE + 64], subtitle[128];
    const pc_schedule *schedule = &a->schedule;
    if (!a->request->figure) return PC_OK;
    snprintf(title, sizeof title, "%s: %d devices, %d microbatches", schedule->name, schedule->devices,
             schedule->microbatches);
    snprintf(subtitle, sizeof subtitle, "bubble rate %.4f (span), %.4f (makespan); at most %.4g microbatches held",
             a->replay.bubble_rate_span, a->replay.bubble_rate_makespan, in_microbatches(a, a->replay.peak_bytes));
    pc_timeline timeline = {.title = title,
                            .subtitle = subtitle,
                            .time_unit = "",
                            .time_unit_ps = a->report.time_unit_ps,
                            .devices = schedule->devices,
                            .chunks = schedule->chunks,
                            .trace = &a->replay.trace};
    return pc_figure_timeline(&timeline, a->request->figure, error);
}

/* EXIT_DID_NOT_FIT, with the least limit that would do, where the schedule holds more than --memory-limit. */
static int judge_memory(const answer *a) {
    double most = in_microbatches(a, a->replay.peak_bytes);
    if (most <= a->request->memory_limit) return EXIT_DONE;
    char enough[32]; /* as many digits as it takes to be accepted */
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(enough, sizeof enough, "%.*g", digits, most);
        if (strtod(enough, NULL) >= most) break;
    }
    fprintf(stderr, "pipecast: --memory-limit: %.6g is too little for %s; expected at least %s\n",
            a->request->memory_limit, a->schedule.name, enough);
    return EXIT_DID_NOT_FIT;
}

/* ---- the work ---- */

static bool is_csv(const char *name) {
    size_t length = strlen(name);
    return strchr(name, '/') || (length > 4 && strcmp(name + length - 4, ".csv") == 0);
}

static pc_code expect(const char *name, const char *what, int64_t given, int64_t found, pc_error *error) {
    if (given == 0 || given == found) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: %" PRId64 " %s; expected the %" PRId64 " that the command line says", name, found, what,
                        given);
}

static pc_code load(const request *r, pc_schedule *schedule, pc_error *error) {
    pc_code code = pc_schedule_read_torch_csv(r->name, schedule, error);
    if (code) return code;
    code = expect(r->name, "devices", r->devices, schedule->devices, error);
    if (!code) code = expect(r->name, "microbatches", r->microbatches, schedule->microbatches, error);
    if (!code) code = expect(r->name, "chunks", r->chunks, schedule->chunks, error);
    if (!code && pc_schedule_check(schedule, error)) code = pc_error_prefix(error, "%s", r->name);
    if (code) pc_schedule_free(schedule);
    return code;
}

static pc_code generate(const request *r, pc_schedule *schedule, pc_error *error) {
    const pc_generator *generator = pc_generator_find(r->name);
    if (!generator) {
        char names[512];
        pc_generator_names(names, sizeof names);
        return pc_error_set(error, PC_ERROR_INPUT, "unknown schedule '%s'; expected %s, or a FILE.csv", r->name, names);
    }
    if (r->devices == 0 || r->microbatches == 0)
        return pc_error_set(error, PC_ERROR_INPUT, "schedule: %s is missing; expected %s",
                            r->devices == 0 ? "-p" : "-m", r->devices == 0 ? "-p DEVICES" : "-m MICROBATCHES");
    return pc_schedule_generate(generator, r->devices, r->microbatches, r->chunks, schedule, error);
}

static pc_code replay(const request *r, const pc_schedule *schedule, double ticks, pc_replay *result, pc_error *error) {
    pc_costs costs;
    if (ticks == 0.0)
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "--times, --comm: too large or too far apart; expected all passes together to last less than "
            "10^18 times the shortest of them");
    pc_code code = pc_costs_create(schedule->devices, schedule->chunks, &costs, error);
    if (code) return code;
    fill_costs(r, ticks, pc_placement_visited(schedule->placement, schedule->chunks), &costs);
    code = pc_replay_run(schedule, &costs, r->figure != NULL, result, error);
    pc_costs_free(&costs);
    return code;
}

/* Fills in the answer; what it holds so far stays the caller's to free, also on failure. */
static pc_code work_out(const request *r, answer *a, pc_error *error) {
    double start = now_s();
    pc_code code = r->figure ? pc_figure_check_path(r->figure, error) : PC_OK;
    if (!code) code = is_csv(r->name) ? load(r, &a->schedule, error) : generate(r, &a->schedule, error);
    if (!code && r->figure) code = pc_figure_check_size(r->figure, a->schedule.offsets[a->schedule.devices], error);
    if (code) return code;
    double generated = now_s();
    double ticks = ticks_per_unit(r, &a->schedule);
    int visited = pc_placement_visited(a->schedule.placement, a->schedule.chunks);
    code = replay(r, &a->schedule, ticks, &a->replay, error);
    a->request = r;
    a->report = (pc_schedule_report){&a->schedule,      &a->replay,         ticks, (double)CHUNK_BYTES * visited,
                                     generated - start, now_s() - generated};
    return code;
}

static int answer_request(const request *r) {
    pc_error error = {0};
    answer a = {0};
    pc_code code = work_out(r, &a, &error);
    if (!code) code = draw(&a, &error);
    if (!code) code = print_answer(&a, &error);
    int status = code ? report(&error) : finish_output(judge_memory(&a));
    pc_replay_free(&a.replay);
    pc_schedule_free(&a.schedule);
    return status;
}

int command_schedule(int argc, char **argv) {
    request r = {.times = {1.0, 1.0, 1.0}, .keep = PC_ACTIVATION_INPUT_FRACTION, .memory_limit = INFINITY};
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "schedule"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option == ARGUMENT_ERROR || !take_option(&r, option, x.value)) return EXIT_BAD_INPUT;
    }
    if (!r.name) return report_usage("schedule: no name; expected NAME or FILE.csv (pipecast list schedules)");
    return answer_request(&r);
}
