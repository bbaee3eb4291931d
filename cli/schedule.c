/* pipecast schedule: one schedule, replayed at the user's costs in the user's unit of time. */
#include "cli/cli.h"
#include "engine/alloc.h"
#include "engine/clock.h"

#include "models/schedule/block_write.h"
#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "models/schedule/given.h"
#include "models/schedule/given_block.h"
#include "models/schedule/improve.h"
#include "models/schedule/least_span.h"
#include "models/schedule/replay.h"
#include "models/schedule/robust.h"
#include "models/schedule/unit_costs.h"
#include "models/training/scatter.h"
#include "models/workload/activation_memory.h"
#include "results/figures/figure.h"
#include "results/report.h"
#include "scenarios/block_file.h"
#include "scenarios/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum schedule_format { FORMAT_TABLE, FORMAT_JSON, FORMAT_TEXT, FORMAT_TORCH_CSV, FORMAT_BLOCK } schedule_format;

enum { SAMPLES_USUAL = 1000 };

typedef struct schedule_request {
    const char *name;                      /* as messages call it; of a block what stands in its file */
    const char *block;                     /* the file of a block in place of a name; NULL if not given */
    int block_steps;                       /* a pc_block_steps; -1 if not given */
    int64_t devices, microbatches, chunks; /* 0 if not given */
    pc_unit_costs units;
    const char *memory_limit; /* one number, or one a device, in microbatches of a stage; NULL if not given */
    schedule_format format;
    const char *figure;
    pc_engine_mode engine;
    bool waits_for_memory;
    pc_making making;
    pc_goal goal;
    bool improves;
    pc_robust robust;
    pc_scatter scatter;
    int64_t slow_stage, samples, seed; /* -1 if not given */
    double (*part_times)[3]; /* units.part_times, owned */
} schedule_request;

static const char help[] =
    "usage: pipecast schedule NAME|FILE.csv|--block FILE.yaml -p DEVICES -m MICROBATCHES [OPTIONS]\n"
    "\n"
    "Generates the schedule NAME (pipecast list schedules), loads FILE.csv as PyTorch's pipelining runtime writes it, "
    "or\n"
    "makes one of a building block of your own; checks it, replays it, and says what it costs.\n"
    "\n"
    "  -p, --devices DEVICES       pipeline stages\n"
    "  -m, --microbatches N        microbatches of an iteration\n"
    "  -v, --chunks N              model parts on a device, for the schedules that take several\n"
    "      --times F,B,W           times of a whole stage's passes, in any one unit (default 1,1,1); or "
    "F,B,W/F,B,W/..., "
    "of each\n"
    "                              stage, or of each part of the model; F,B,W*6 stands for six of them\n"
    "      --comm T                time of a transfer between neighbours, in the same unit (default 0)\n"
    "      --release-b FRACTION    how much of what F took B gives back; W the rest (default 0)\n"
    "      --keep FRACTION         how much of it F keeps where the schedule recomputes (default 2/34, a layer's "
    "input)\n"
    "      --memory-limit X        the most activations a device may hold, in microbatches of a stage; or X,X,... one "
    "a device\n"
    "      --out-of-memory KIND    what a pass does that does not fit into --memory-limit: fail (default), or wait "
    "until "
    "others\n"
    "                              have given back enough\n"
    "      --making KIND           what the order is made for: costs (default) or equal times, where it is searched "
    "for; or "
    "whose\n"
    "                              order it is: published, torch or megatron (pipecast list schedules)\n"
    "      --goal GOAL             what the search for an order minimises: span (default) or makespan\n"
    "      --improve               make the order shorter within the memory that it holds, or that --memory-limit "
    "says\n"
    "      --robust KIND           the order whose span is the shortest in the mean, or at p95, when times scatter as "
    "the "
    "next say;\n"
    "                              none (default): the order stays, and its spans are sampled\n"
    "      --jitter FRACTION       of passes, their standard deviation\n"
    "      --gpu-jitter FRACTION   of the devices' speeds, likewise\n"
    "      --link-jitter FRACTION  of transfers, likewise\n"
    "      --slow-factor X         how many times as long one device takes, another one in every sample\n"
    "      --slow-stage N          which one that is, from 0, in all samples\n"
    "      --samples N             how often times are drawn (default 1000)\n"
    "      --seed N                of the drawing (default 0)\n"
    "      --engine KIND           how to work it out: auto (default), or events, one by one, which changes no result\n"
    "      --block FILE            a building block (YAML) in place of a name\n"
    "      --block-steps STEPS     what is done with it: none, squeeze or reorder (default the file's, else reorder)\n"
    "      --format FORMAT         table, json, text (the passes), torch-csv or block (default table)\n"
    "      --figure FILE           draw building block, timeline and memory: .svg, .png or .pdf\n"
    "\n"
    "example: pipecast schedule 1f1b -p 8 -m 24 --times 18.522,18.086,9.337 --comm 0.601 --format json\n";

/* ---- arguments ---- */

enum {
    DEVICES,
    MICROBATCHES,
    CHUNKS,
    TIMES,
    COMM,
    RELEASE_B,
    KEEP,
    MEMORY_LIMIT,
    OUT_OF_MEMORY,
    MAKING,
    GOAL,
    IMPROVE,
    ROBUST,
    JITTER,
    GPU_JITTER,
    LINK_JITTER,
    SLOW_FACTOR,
    SLOW_STAGE,
    SAMPLES,
    SEED,
    ENGINE,
    BLOCK,
    BLOCK_STEPS,
    FORMAT,
    FIGURE,
    HELP
};
static const option_spec options[] = {
    {"devices", 'p', "DEVICES"},
    {"microbatches", 'm', "MICROBATCHES"},
    {"chunks", 'v', "CHUNKS"},
    {"times", 0, "F,B,W"},
    {"comm", 0, "T"},
    {"release-b", 0, "FRACTION"},
    {"keep", 0, "FRACTION"},
    {"memory-limit", 0, "X"},
    {"out-of-memory", 0, "KIND"},
    {"making", 0, "KIND"},
    {"goal", 0, "GOAL"},
    {"improve", 0, NULL},
    {"robust", 0, "KIND"},
    {"jitter", 0, "FRACTION"},
    {"gpu-jitter", 0, "FRACTION"},
    {"link-jitter", 0, "FRACTION"},
    {"slow-factor", 0, "X"},
    {"slow-stage", 0, "N"},
    {"samples", 0, "N"},
    {"seed", 0, "N"},
    {"engine", 0, "KIND"},
    {"block", 0, "FILE"},
    {"block-steps", 0, "STEPS"},
    {"format", 0, "FORMAT"},
    {"figure", 0, "FILE"},
    {"help", 'h', NULL},
    {NULL, 0, NULL},
};

#define TIMES_EXPECTED "expected three numbers F,B,W such as 18.5,18.1,9.3"

static bool refuse_times(const char *text) {
    report_usage("--times: '%s'; " TIMES_EXPECTED, text);
    return false;
}

/* Three numbers; `rest` is cut. */
static bool parse_three(const char *text, char *rest, double times[3]) {
    for (int i = 0; i < 3; i++) {
        char *word = strsep(&rest, ",");
        if (!word || (i == 2 && rest)) return refuse_times(text);
        if (!argument_number("--times", word, &times[i])) return false;
    }
    return true;
}

/* F,B,W, or F,B,W*N, N times, into the list, which has room for `most` of them. */
static bool parse_group(const char *text, char *group, schedule_request *r, int64_t most) {
    char *star = strchr(group, '*');
    int64_t times = 1;
    double three[3];
    if (star) *star = '\0';
    if (star && !argument_integer("--times", star + 1, 1, most, &times)) return false;
    if (!parse_three(text, group, three)) return false;
    if (r->units.part_count + times > most) {
        report_usage("--times: over %lld parts; expected one F,B,W for each stage, or for each part of the model",
                     (long long)most);
        return false;
    }
    for (int64_t i = 0; i < times; i++) memcpy(r->part_times[r->units.part_count++], three, sizeof three);
    return true;
}

/* One F,B,W for all stages, or a list of them. */
static bool parse_times(const char *text, schedule_request *r) {
    enum { PARTS_MAX = 65536, LENGTH_MAX = 1 << 20 };
    char *copy = strnlen(text, LENGTH_MAX) < LENGTH_MAX ? strdup(text) : NULL, *rest = copy;
    pc_free(r->part_times);
    r->units.part_count = 0;
    r->part_times = copy ? pc_alloc(PARTS_MAX, sizeof *r->part_times) : NULL;
    bool is_good = copy && r->part_times;
    if (!is_good) report_usage("--times: too long; " TIMES_EXPECTED);
    for (char *group; is_good && (group = strsep(&rest, "/"));) is_good = parse_group(text, group, r, PARTS_MAX);
    free(copy);
    r->units.part_times = (const double(*)[3])r->part_times;
    if (!is_good || strpbrk(text, "/*")) return is_good;
    memcpy(r->units.times, r->part_times[0], sizeof r->units.times);
    r->units.part_count = 0;
    return true;
}

static bool parse_format(const char *text, schedule_format *format) {
    int index;
    if (!argument_word("--format", "format", "table|json|text|torch-csv|block", text, &index)) return false;
    *format = (schedule_format)index;
    return true;
}

static bool parse_engine(const char *text, pc_engine_mode *engine) {
    int index;
    if (!argument_word("--engine", "way", "auto|events", text, &index)) return false;
    *engine = (pc_engine_mode)index;
    return true;
}

static bool parse_making(const char *text, pc_making *making) {
    int index;
    if (!argument_word("--making", "word", "costs|equal|published|torch|megatron", text, &index)) return false;
    *making = (pc_making)index;
    return true;
}

static bool parse_goal(const char *text, pc_goal *goal) {
    int index;
    if (strcmp(text, pc_goal_names[PC_GOAL_ITERATION]) == 0) {
        report_usage("--goal: iteration: a schedule alone has no gradients or parameters to wait for; expected span or "
                     "makespan");
        return false;
    }
    if (!argument_word("--goal", "word", "span|makespan", text, &index)) return false;
    *goal = (pc_goal)index;
    return true;
}

static bool parse_out_of_memory(const char *text, bool *waits) {
    int index;
    if (!argument_word("--out-of-memory", "word", "fail|wait", text, &index)) return false;
    *waits = index == 1;
    return true;
}

static bool parse_fraction(const char *option, const char *text, double *fraction) {
    if (!argument_number(option, text, fraction)) return false;
    if (*fraction <= 1.0) return true;
    report_usage("%s: %s is more than all; expected a fraction from 0 to 1", option, text);
    return false;
}

static bool parse_robust(const char *text, pc_robust *robust) {
    int index;
    if (!argument_word("--robust", "word", "none|mean|p95", text, &index)) return false;
    *robust = (pc_robust)index;
    return true;
}

static bool parse_deviation(const char *option, const char *text, double *deviation) {
    if (!argument_number(option, text, deviation)) return false;
    if (*deviation <= 10.0) return true;
    report_usage("%s: %s; expected a standard deviation from 0 to 10, such as 0.02", option, text);
    return false;
}

static bool parse_slow_factor(const char *text, pc_scatter *scatter) {
    scatter->has_slow = true;
    if (!argument_number("--slow-factor", text, &scatter->slow_factor)) return false;
    if (scatter->slow_factor >= 1.0 && scatter->slow_factor <= 1e6) return true;
    report_usage("--slow-factor: %s; expected a number from 1 to 1000000, such as 1.1", text);
    return false;
}

/* Options of what is drawn. */
static bool take_scatter(schedule_request *r, int option, const char *value) {
    switch (option) {
    case ROBUST:
        return parse_robust(value, &r->robust);
    case JITTER:
        return parse_deviation("--jitter", value, &r->scatter.jitter);
    case GPU_JITTER:
        return parse_deviation("--gpu-jitter", value, &r->scatter.gpu_jitter);
    case LINK_JITTER:
        return parse_deviation("--link-jitter", value, &r->scatter.link_jitter);
    case SLOW_FACTOR:
        return parse_slow_factor(value, &r->scatter);
    case SLOW_STAGE:
        return argument_integer("--slow-stage", value, 0, PC_DEVICES_MAX - 1, &r->slow_stage);
    case SAMPLES:
        return argument_integer("--samples", value, 2, PC_ROBUST_SAMPLES_MAX, &r->samples);
    default:
        return argument_integer("--seed", value, 0, INT64_MAX, &r->seed);
    }
}

static bool take_operand(schedule_request *r, const char *text) {
    if (r->name) {
        report_usage("schedule: a second name '%s' after '%s'; expected one", text, r->name);
        return false;
    }
    r->name = text;
    return true;
}

static bool take_option(schedule_request *r, int option, const char *value) {
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
        return parse_times(value, r);
    case COMM:
        return argument_number("--comm", value, &r->units.comm);
    case RELEASE_B:
        return parse_fraction("--release-b", value, &r->units.release_b);
    case KEEP:
        return parse_fraction("--keep", value, &r->units.keep);
    case MEMORY_LIMIT:
        r->memory_limit = value;
        return true;
    case OUT_OF_MEMORY:
        return parse_out_of_memory(value, &r->waits_for_memory);
    case MAKING:
        return parse_making(value, &r->making);
    case GOAL:
        return parse_goal(value, &r->goal);
    case IMPROVE:
        r->improves = true;
        return true;
    case ROBUST:
    case JITTER:
    case GPU_JITTER:
    case LINK_JITTER:
    case SLOW_FACTOR:
    case SLOW_STAGE:
    case SAMPLES:
    case SEED:
        return take_scatter(r, option, value);
    case ENGINE:
        return parse_engine(value, &r->engine);
    case BLOCK:
        r->block = value;
        return true;
    case BLOCK_STEPS:
        return argument_word("--block-steps", "steps", "none|squeeze|reorder", value, &r->block_steps);
    case FORMAT:
        return parse_format(value, &r->format);
    case FIGURE:
        r->figure = value;
        return true;
    default:
        return false;
    }
}

/* ---- memory limits ---- */

static pc_code read_limit(const char *word, double *limit, pc_error *error) {
    char *end;
    *limit = strtod(word, &end);
    if (end != word && *end == '\0' && *limit >= 0.0) return PC_OK; /* not a NaN either */
    return pc_error_set(error, PC_ERROR_INPUT, "--memory-limit: '%s'; expected a number from 0 up, or one a device",
                        word);
}

static pc_code read_limits(char *text, int devices, double *limit, pc_error *error) {
    int count = 0;
    for (char *word; (word = strsep(&text, ",")); count++) {
        double number;
        pc_code code = read_limit(word, &number, error);
        if (code) return code;
        if (count < devices) limit[count] = number;
    }
    if (count != 1 && count != devices)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "--memory-limit: %d numbers; expected one, or one for each of %d devices", count, devices);
    for (int d = 1; d < devices && count == 1; d++) limit[d] = limit[0];
    return PC_OK;
}

/* Of every device, in microbatches, into limit[0 .. devices-1]: infinite where none was given. */
static pc_code read_limits_of(const schedule_request *r, int devices, double *limit, pc_error *error) {
    for (int d = 0; d < devices; d++) limit[d] = INFINITY;
    if (!r->memory_limit) return PC_OK;
    char *copy = strdup(r->memory_limit);
    if (!copy) return pc_error_no_memory(error);
    pc_code code = read_limits(copy, devices, limit, error);
    free(copy);
    return code;
}

/* ---- what came of it ---- */

/* An answer before it is printed; the report points to the schedule and the replay. */
typedef struct answer {
    const schedule_request *request;
    double *limit;        /* a number a device, in microbatches; infinite: none */
    int64_t *limit_bytes; /* the same as pc_memory_limit has it; NULL if no limit was given */
    pc_costs costs;
    pc_given_block *given; /* the block of one's own; NULL if there is none */
    pc_schedule schedule;
    pc_block block;             /* the one that the schedule repeats; without devices where there is none */
    pc_improvement improvement; /* zeroed where nothing is to be improved */
    pc_robustness robustness;   /* zeroed where no times are drawn */
    pc_replay replay;
    pc_steady steady; /* zeroed where its middle does not repeat */
    pc_schedule_report report;
} answer;

static void free_answer(answer *a) {
    pc_steady_free(&a->steady);
    pc_replay_free(&a->replay);
    pc_improvement_free(&a->improvement);
    pc_robustness_free(&a->robustness);
    pc_block_free(&a->block);
    pc_schedule_free(&a->schedule);
    pc_costs_free(&a->costs);
    pc_given_block_free(a->given);
    pc_free(a->limit);
    pc_free(a->limit_bytes);
}

static pc_memory_limit limit_of(const answer *a) {
    return (pc_memory_limit){a->limit_bytes};
}

/* Where nothing waits, the replay is to say what the schedule needs, not where it stops. */
static pc_memory_limit limit_of_replay(const answer *a) {
    return a->request->waits_for_memory ? limit_of(a) : (pc_memory_limit){NULL};
}

static double in_microbatches(const answer *a, int64_t bytes) {
    return (double)bytes / a->report.microbatch_bytes;
}

/* What was given was read from a file already; it is written as its numbers for these devices. */
static pc_code print_block(const answer *a, pc_error *error) {
    pc_block_text_request wanted = {.schedule = &a->schedule,
                                    .block = a->block.devices ? &a->block : NULL,
                                    .costs = &a->costs,
                                    .memory_limit = limit_of_replay(a),
                                    .is_own = a->given != NULL};
    return pc_block_write(&wanted, stdout, error);
}

static pc_code print_answer(const answer *a, pc_error *error) {
    switch (a->request->format) {
    case FORMAT_TABLE:
        return pc_schedule_report_write(&a->report, false, stdout, error);
    case FORMAT_JSON:
        return pc_schedule_report_write(&a->report, true, stdout, error);
    case FORMAT_TORCH_CSV:
        return pc_schedule_write_torch_csv(&a->schedule, stdout, error);
    case FORMAT_BLOCK:
        return print_block(a, error);
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
    pc_write_message(
        subtitle, sizeof subtitle, "bubble rate %.4f (span), %.4f (makespan); at most %.4g microbatches held",
        a->replay.bubble_rate_span, a->replay.bubble_rate_makespan, in_microbatches(a, a->replay.peak_bytes));
    pc_timeline timeline = {.title = title,
                            .subtitle = subtitle,
                            .time_unit = "",
                            .time_unit_ps = a->report.time_unit_ps,
                            .devices = schedule->devices,
                            .chunks = schedule->chunks,
                            .trace = &a->replay.trace,
                            .block = a->report.block,
                            .explains_block = a->given != NULL,
                            .memory = true,
                            .memory_unit_bytes = a->report.microbatch_bytes,
                            .memory_unit = "microbatches"};
    return pc_figure_timeline(&timeline, a->request->figure, error);
}

/* Says which limit is too small, and the least that would do. */
static int report_too_little(const answer *a, int device, double enough) {
    char least[32], where[48] = ""; /* as many digits as it takes to be accepted */
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(least, sizeof least, "%.*g", digits, enough);
        if (strtod(least, NULL) >= enough) break;
    }
    if (strchr(a->request->memory_limit, ',')) snprintf(where, sizeof where, " on device %d", device);
    report_usage("--memory-limit: %.6g is too little for %s%s; expected at least %s", a->limit[device],
                 a->request->name, where, least);
    return EXIT_DID_NOT_FIT;
}

/* Says which pass waits for memory that nobody gives back. */
static int report_standstill(const answer *a) {
    const pc_out_of_memory *oom = &a->replay.oom;
    char name[PC_PASS_NAME_SIZE];
    pc_pass_name(&a->schedule, oom->pass, name);
    report_usage(
        "--memory-limit: %.6g is too little for %s: %s on device %d waits for %.6g where %.6g are held, and nothing "
        "else can run",
        a->limit[oom->device], a->request->name, name, oom->device, in_microbatches(a, oom->requested_bytes),
        in_microbatches(a, oom->level_bytes));
    return EXIT_DID_NOT_FIT;
}

/* EXIT_DID_NOT_FIT, after having said so, where the schedule holds more than --memory-limit. */
static int judge_memory(const answer *a) {
    int worst = 0;
    for (int d = 1; d < a->schedule.devices; d++)
        if (in_microbatches(a, a->replay.device_peak_bytes[d]) - a->limit[d] >
            in_microbatches(a, a->replay.device_peak_bytes[worst]) - a->limit[worst])
            worst = d;
    double held = in_microbatches(a, a->replay.device_peak_bytes[worst]);
    return held <= a->limit[worst] ? EXIT_DONE : report_too_little(a, worst, held);
}

/* ---- the work ---- */

static pc_code expect(const char *name, const char *what, int64_t given, int64_t found, pc_error *error) {
    if (given == 0 || given == found) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: %" PRId64 " %s; expected the %" PRId64 " that the command line says", name, found, what,
                        given);
}

static pc_code load(const schedule_request *r, pc_schedule *schedule, pc_error *error) {
    pc_code code = pc_schedule_load(r->name, schedule, error);
    if (code) return code;
    code = expect(r->name, "devices", r->devices, schedule->devices, error);
    if (!code) code = expect(r->name, "microbatches", r->microbatches, schedule->microbatches, error);
    if (!code) code = expect(r->name, "chunks", r->chunks, schedule->chunks, error);
    if (code) pc_schedule_free(schedule);
    return code;
}

static bool keeps_grid(const answer *a) {
    return a->given && pc_given_block_draft(a->given)->steps == PC_BLOCK_NONE;
}

/* Whether times are drawn. */
static bool samples(const schedule_request *r) {
    return pc_scatter_varies(&r->scatter);
}

/* On a grid nothing is left to wait for, for events to say, or to improve. */
static pc_code refuse_on_grid(const schedule_request *r, const answer *a, pc_error *error) {
    const char *option = r->improves                   ? "--improve"
                         : samples(r)                  ? "times that are drawn"
                         : r->waits_for_memory         ? "--out-of-memory: wait"
                         : r->engine != PC_ENGINE_AUTO ? "--engine: events"
                                                       : NULL;
    if (!keeps_grid(a) || !option) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s, of a block with steps none, whose passes start where their cells do; expected "
                        "--block-steps squeeze or reorder",
                        option);
}

/* A file's order is its own, as that of a block, and of a name that does not search, unless it is improved. */
static pc_code check_goal_of_file(const schedule_request *r, const char *whose, pc_error *error) {
    if (r->goal == PC_GOAL_SPAN || r->improves) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: goal %s: the order is the %s's; expected a name, or --improve",
                        r->name, pc_goal_names[r->goal], whose);
}

/* A block that is for one number of devices says which. */
static pc_code open_block(schedule_request *r, answer *a, const pc_generator **generator, pc_error *error) {
    pc_code code = pc_block_file_read(r->block, &a->given, error);
    if (!code && r->block_steps >= 0) code = pc_given_block_set_steps(a->given, (pc_block_steps)r->block_steps, error);
    if (!code) code = refuse_on_grid(r, a, error);
    if (code) return code;
    *generator = pc_given_block_generator(a->given);
    r->name = (*generator)->name;
    if (r->devices == 0) r->devices = (*generator)->given->devices;
    return check_goal_of_file(r, "block", error);
}

static pc_code find_named(const schedule_request *r, const pc_generator **generator, pc_error *error) {
    *generator = pc_generator_find(r->name);
    if (*generator) return PC_OK;
    char names[512], hint[PC_NEAREST_TEXT];
    pc_generator_names(names, sizeof names);
    return pc_error_set(error, PC_ERROR_INPUT, "unknown schedule '%s'%s; expected %s, a FILE.csv, or --block FILE",
                        r->name, pc_generator_hint(r->name, hint), names);
}

static pc_code find_generator(schedule_request *r, answer *a, const pc_generator **generator, pc_error *error) {
    pc_code code = r->block ? open_block(r, a, generator, error) : find_named(r, generator, error);
    if (code) return code;
    if (r->devices == 0 || r->microbatches == 0)
        return pc_error_set(error, PC_ERROR_INPUT, "schedule: %s is missing; expected %s",
                            r->devices == 0 ? "-p" : "-m", r->devices == 0 ? "-p DEVICES" : "-m MICROBATCHES");
    code = pc_generator_check(*generator, r->devices, r->microbatches, r->chunks, error);
    if (!code) code = pc_generator_check_making(*generator, r->making, error);
    return code || r->improves ? code : pc_generator_check_goal(*generator, r->making, r->goal, error);
}

static pc_unit_shape shape_of(const schedule_request *r, const pc_generator *generator) {
    return (pc_unit_shape){.devices = (int)r->devices,
                           .microbatches = (int)r->microbatches,
                           .chunks = r->chunks ? (int)r->chunks : generator->chunks_default,
                           .placement = generator->placement,
                           .recomputes = generator->recomputes};
}

static pc_unit_shape shape_of_loaded(const pc_schedule *schedule) {
    return (pc_unit_shape){.devices = schedule->devices,
                           .microbatches = schedule->microbatches,
                           .chunks = schedule->chunks,
                           .placement = schedule->placement,
                           .recomputes = pc_schedule_has(schedule, PC_PASS_R)};
}

/* In bytes; what no memory has is no limit. */
static pc_code count_limits(const schedule_request *r, int devices, answer *a, pc_error *error) {
    if (!r->memory_limit) return PC_OK;
    a->limit_bytes = pc_alloc((size_t)devices, sizeof *a->limit_bytes);
    if (!a->limit_bytes) return pc_error_no_memory(error);
    for (int d = 0; d < devices; d++)
        a->limit_bytes[d] = a->limit[d] < 1e9 ? (int64_t)(a->limit[d] * a->report.microbatch_bytes) : PC_NO_LIMIT;
    return PC_OK;
}

static pc_code check_part_times(const schedule_request *r, const pc_unit_shape *shape, pc_error *error) {
    if (pc_unit_costs_suit(&r->units, shape)) return PC_OK;
    int parts = pc_placement_parts(shape->placement, shape->devices, shape->chunks);
    if (parts == shape->devices)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "--times: %d times F,B,W; expected one for all, or one for each of %d stages",
                            r->units.part_count, parts);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "--times: %d times F,B,W; expected one for all, one for each of %d stages, or one for each of "
                        "%d parts of the model",
                        r->units.part_count, shape->devices, parts);
}

/* Costs and limits for the shape. */
static pc_code prepare(const schedule_request *r, const pc_unit_shape *shape, answer *a, pc_error *error) {
    pc_code code = check_part_times(r, shape, error);
    if (code) return code;
    a->report.time_unit_ps = pc_unit_ticks(&r->units, shape);
    if (a->report.time_unit_ps == 0.0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "--times, --comm: too large or too far apart; expected all passes together to last less "
                            "than 10^18 times the shortest of them");
    a->report.microbatch_bytes = (double)PC_UNIT_CHUNK_BYTES * pc_placement_visited(shape->placement, shape->chunks);
    a->limit = pc_alloc((size_t)shape->devices, sizeof *a->limit);
    if (!a->limit) return pc_error_no_memory(error);
    code = read_limits_of(r, shape->devices, a->limit, error);
    if (!code) code = count_limits(r, shape->devices, a, error);
    return code ? code : pc_unit_costs_make(&r->units, shape, a->report.time_unit_ps, &a->costs, error);
}

/* EXIT_DID_NOT_FIT where no schedule can keep the limit. */
static int check_limits(const answer *a, const pc_generator *generator) {
    for (int d = 0; d < a->costs.devices; d++) {
        int64_t least = pc_generator_least_memory(generator, &a->costs, d);
        if (in_microbatches(a, least) > a->limit[d]) return report_too_little(a, d, in_microbatches(a, least));
    }
    return EXIT_DONE;
}

/* Where the block that the schedule repeats is to be read or drawn: to find it takes as long as to replay the schedule.
 * A table tells of one's own. */
static bool wants_block(const answer *a) {
    return a->given || a->request->figure || a->request->format == FORMAT_JSON || a->request->format == FORMAT_BLOCK;
}

/* A block keeps to the memory that it holds repeated, which is judged when that is known. */
static pc_code generate(const schedule_request *r, const pc_generator *generator, answer *a, pc_error *error) {
    pc_generate_request request = {.devices = r->devices,
                                   .microbatches = r->microbatches,
                                   .chunks = r->chunks,
                                   .costs = &a->costs,
                                   .making = r->making,
                                   .goal = a->given || r->making != PC_MAKING_COSTS ? PC_GOAL_SPAN : r->goal};
    if (!a->given) request.memory_limit = limit_of(a);
    return pc_generate(generator, &request, &a->schedule, wants_block(a) ? &a->block : NULL, error);
}

/* Likewise. */
static pc_code check_making_of_file(const schedule_request *r, pc_error *error) {
    if (r->making <= PC_MAKING_PUBLISHED) return check_goal_of_file(r, "file", error);
    return pc_error_set(error, PC_ERROR_INPUT, "%s: making %s: the order is the file's; expected a name", r->name,
                        pc_making_names[r->making]);
}

/* Where people or programs are to read of what the order comes to. On a grid passes start later than they could, and
 * take as long as cells. */
static bool wants_judgement(const answer *a) {
    return (a->request->format == FORMAT_TABLE || a->request->format == FORMAT_JSON) && !keeps_grid(a);
}

/* `generator` is NULL for a schedule from a file. */
static pc_code find_bound(const pc_generator *generator, answer *a, pc_error *error) {
    const pc_generate_request request = {
        .microbatches = a->schedule.microbatches, .costs = &a->costs, .memory_limit = limit_of(a)};
    a->report.bound_ps = a->request->improves ? a->improvement.bound_ps : PC_TIME_NOT_GIVEN;
    if (!wants_judgement(a) || a->request->improves) return PC_OK;
    int64_t *limits = pc_alloc((size_t)a->schedule.devices, sizeof *limits);
    if (!limits) return pc_error_no_memory(error);
    pc_least_span_limits(generator, &request, &a->replay, limits);
    pc_code code =
        pc_schedule_least_span(&a->schedule, &a->costs, (pc_memory_limit){limits}, &a->report.bound_ps, error);
    pc_free(limits);
    return code;
}

/* Makes or loads the schedule; *generator stays NULL for a file. *status is EXIT_DID_NOT_FIT where that cannot be,
 * which has been said then. */
static pc_code make(schedule_request *r, answer *a, const pc_generator **generator, int *status, pc_error *error) {
    pc_unit_shape shape;
    if (!r->block && pc_schedule_is_file(r->name)) {
        pc_code code = check_making_of_file(r, error);
        if (!code) code = load(r, &a->schedule, error);
        if (code) return code;
        shape = shape_of_loaded(&a->schedule);
        return prepare(r, &shape, a, error);
    }
    pc_code code = find_generator(r, a, generator, error);
    if (code) return code;
    shape = shape_of(r, *generator);
    code = prepare(r, &shape, a, error);
    if (!code && (*generator)->searches && !a->given) *status = check_limits(a, *generator);
    return code || *status != EXIT_DONE ? code : generate(r, *generator, a, error);
}

/* Another order takes the place of the one that was made or loaded, and what it repeats that of the block. */
static pc_code replace_order(answer *a, pc_schedule *other, bool is_changed, pc_error *error) {
    pc_schedule_free(&a->schedule);
    a->schedule = *other;
    if (!is_changed) return PC_OK;
    pc_block_free(&a->block);
    return pc_block_of_schedule(&a->schedule, &a->block, error);
}

static pc_code improve(answer *a, int *status, pc_error *error) {
    const pc_improve_request request = {
        .schedule = &a->schedule, .costs = &a->costs, .memory_limit = limit_of(a), .goal = a->request->goal};
    pc_generator like = pc_generator_of_given(a->schedule.name, a->schedule.placement, a->schedule.chunks, NULL);
    pc_schedule improved;
    pc_code code = pc_improve_check(&a->schedule, error);
    if (code) return code;
    *status = check_limits(a, &like);
    if (*status != EXIT_DONE) return PC_OK;
    code = pc_schedule_improve(&request, &improved, &a->improvement, error);
    return code ? code : replace_order(a, &improved, a->improvement.is_changed, error);
}

/* Within what the schedule's name, --memory-limit or the order itself limits each device to. */
static pc_code make_robust(answer *a, const pc_generator *generator, pc_error *error) {
    const schedule_request *r = a->request;
    const pc_generate_request limited = {.costs = &a->costs, .memory_limit = limit_of(a)};
    pc_robust_request request = {.schedule = &a->schedule, .costs = &a->costs, .goal = r->robust};
    pc_replay given;
    pc_schedule chosen;
    int64_t *limits = pc_alloc((size_t)a->schedule.devices, sizeof *limits);
    if (!limits) return pc_error_no_memory(error);
    if (r->slow_stage >= a->schedule.devices) {
        pc_free(limits);
        return pc_error_set(error, PC_ERROR_INPUT, "--slow-stage: %" PRId64 " of %d devices; expected at most %d",
                            r->slow_stage, a->schedule.devices, a->schedule.devices - 1);
    }
    pc_scatter_fill_request(&r->scatter, &request);
    request.samples = r->samples < 0 ? SAMPLES_USUAL : r->samples;
    request.memory_limit = (pc_memory_limit){limits};
    pc_code code = pc_replay_run(&a->schedule, &a->costs, NULL, &given, error);
    if (!code) {
        pc_least_span_limits(generator, &limited, &given, limits);
        pc_replay_free(&given);
        code = pc_schedule_robust(&request, &chosen, &a->robustness, error);
    }
    pc_free(limits);
    return code ? code : replace_order(a, &chosen, a->robustness.is_changed, error);
}

/* A block that is left as it is keeps to its grid. */
static pc_code replay(answer *a, const schedule_request *r, pc_error *error) {
    const pc_replay_options how = {.with_trace = r->figure != NULL,
                                   .engine = r->engine,
                                   .waits_for_memory = r->waits_for_memory,
                                   .memory_limit = limit_of_replay(a)};
    if (keeps_grid(a))
        return pc_given_block_replay(a->given, &a->schedule, &a->costs, how.with_trace, &a->replay, error);
    return pc_replay_run(&a->schedule, &a->costs, &how, &a->replay, error);
}

/* What a search for the order minimised; NULL: there was none. */
static const char *goal_of(const schedule_request *r, const pc_generator *generator) {
    bool is_searched = r->improves || (generator && pc_generator_has_goal(generator, r->making));
    return is_searched ? pc_goal_names[r->goal] : NULL;
}

/* Fills in the answer; what it holds so far stays the caller's to free, also on failure. */
static pc_code work_out(schedule_request *r, answer *a, int *status, pc_error *error) {
    double start = pc_now_s();
    const pc_generator *generator = NULL;
    pc_code code = r->figure ? pc_figure_check_path(r->figure, error) : PC_OK;
    if (!code) code = make(r, a, &generator, status, error);
    if (!code && *status == EXIT_DONE && r->improves) code = improve(a, status, error);
    if (!code && *status == EXIT_DONE && samples(r)) code = make_robust(a, generator, error);
    if (code || *status != EXIT_DONE) return code;
    if (r->figure) code = pc_figure_check_size(r->figure, a->schedule.offsets[a->schedule.devices], error);
    if (code) return code;
    double made = pc_now_s(), replayed;
    code = replay(a, r, error);
    replayed = pc_now_s();
    if (!code && a->replay.out_of_memory) *status = report_standstill(a);
    if (!code && *status == EXIT_DONE) code = find_bound(generator, a, error);
    if (!code && *status == EXIT_DONE && wants_judgement(a))
        code = pc_steady_find(&a->schedule, &a->costs, &a->steady, error);
    a->report.schedule = &a->schedule;
    a->report.block = a->block.devices ? &a->block : NULL;
    a->report.costs = &a->costs;
    a->report.describes_block = a->given != NULL;
    a->report.keeps_grid = keeps_grid(a);
    a->report.goal = goal_of(r, generator);
    a->report.has_part_times = r->units.part_count > 0;
    a->report.memory_limit = r->memory_limit ? a->limit : NULL;
    a->report.replay = &a->replay;
    a->report.improvement = r->improves ? &a->improvement : NULL;
    a->report.steady = a->steady.microbatches ? &a->steady : NULL;
    a->report.robustness = samples(r) ? &a->robustness : NULL;
    a->report.generate_s = made - start;
    a->report.replay_s = replayed - made;
    return code;
}

static int answer_request(schedule_request *r) {
    pc_error error = {0};
    answer a = {.request = r};
    int status = EXIT_DONE;
    pc_code code = work_out(r, &a, &status, &error);
    bool is_there = !code && status == EXIT_DONE;
    if (is_there) code = draw(&a, &error);
    if (is_there && !code) code = print_answer(&a, &error);
    if (code)
        status = report(&error);
    else if (is_there)
        status = finish_output(judge_memory(&a));
    free_answer(&a);
    return status;
}

/* What is drawn, from what was given; false after having said what does not go together. */
static bool complete_scatter(schedule_request *r) {
    const char *fault = NULL;
    if (r->slow_stage >= 0 && !r->scatter.has_slow)
        fault = "--slow-stage: means nothing alone; expected --slow-factor beside it";
    else if (!pc_scatter_varies(&r->scatter) && (r->robust || r->samples >= 0 || r->seed >= 0))
        fault = "--robust, --samples, --seed: nothing scatters; expected --jitter, --gpu-jitter, --link-jitter or "
                "--slow-factor";
    else if (r->robust && r->improves)
        fault = "--robust: looks for another order itself; expected no --improve beside it";
    else if (samples(r) && r->waits_for_memory)
        fault =
            "--robust, --jitter, ...: what keeps --memory-limit waits for nothing; expected no --out-of-memory wait";
    if (fault) report_usage("%s", fault);
    r->scatter.slow_stage = (int)r->slow_stage;
    r->scatter.seed = r->seed < 0 ? 0 : (uint64_t)r->seed;
    return !fault;
}

static int judge_request(schedule_request *r) {
    if (r->name && r->block)
        return report_usage("--block: stands beside the name '%s'; expected one of the two", r->name);
    if (r->block_steps >= 0 && !r->block) return report_usage("--block-steps: no block; expected it with --block FILE");
    if (r->improves && r->waits_for_memory)
        return report_usage("--improve: what keeps --memory-limit waits for nothing; expected no --out-of-memory wait");
    if (!complete_scatter(r)) return EXIT_BAD_INPUT;
    if (!r->name && !r->block)
        return report_usage("schedule: no name; expected NAME, FILE.csv or --block FILE (pipecast list schedules)");
    return answer_request(r);
}

/* Takes the options, and does what they say. */
static int take_arguments(int argc, char **argv, schedule_request *r) {
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "schedule"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option == ARGUMENT_ERROR || !take_option(r, option, x.value)) return EXIT_BAD_INPUT;
    }
    return judge_request(r);
}

int command_schedule(int argc, char **argv) {
    schedule_request r = {.units = {.times = {1.0, 1.0, 1.0}, .keep = PC_ACTIVATION_INPUT_FRACTION},
                          .block_steps = -1,
                          .slow_stage = -1,
                          .samples = -1,
                          .seed = -1,
                          .scatter.slow_factor = 1.0};
    int status = take_arguments(argc, argv, &r);
    pc_free(r.part_times);
    return status;
}
