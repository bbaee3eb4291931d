/* pipecast schedule: one schedule, replayed at the user's costs in the user's unit of time. */
#include "models/schedule/schedule.h"
#include "cli/cli.h"
#include "cli/schedule_answer.h"
#include "engine/alloc.h"
#include "models/workload/activation_memory.h"
#include "scenarios/pass_times_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: pipecast schedule NAME|FILE.csv|--block FILE.yaml -p DEVICES -m MICROBATCHES [OPTIONS]\n"
    "       pipecast schedule NAME|best --times FILE -m MICROBATCHES [OPTIONS]\n"
    "\n"
    "Generates the schedule NAME (pipecast list schedules), loads FILE.csv as PyTorch's pipelining runtime writes it, "
    "or\n"
    "makes one of a building block of your own; checks it, replays it, and says what it costs.\n"
    "`best` tries every name that measured stages (--times FILE) can have within --memory-limit, and takes the "
    "shortest.\n"
    "\n"
    "  -p, --devices DEVICES       pipeline stages\n"
    "  -m, --microbatches N        microbatches of an iteration\n"
    "  -v, --chunks N              model parts on a device, for the schedules that take several\n"
    "      --slices N              slices of a microbatch along its sequence, of seq-1f1b and its like (default 4);\n"
    "                              of interleaved ones each of the -v parts has as many\n"
    "      --slice-times X,X,...   how long slices take, relative to each other (default alike)\n"
    "      --times F,B,W           times of a whole stage's passes, in any one unit (default 1,1,1); or "
    "F,B,W/F,B,W/..., "
    "of each\n"
    "                              stage, or of each part of the model; F,B,W*6 stands for six of them; or a FILE of\n"
    "                              measured ones (.yaml, .json, .csv; `pipecast import kineto` writes such)\n"
    "      --vocab-times S,T       times of S and T on every stage, of schedules that share the output layer (default "
    "0,0)\n"
    "      --comm T                time of a transfer between neighbours, in the same unit (default 0)\n"
    "      --release-b FRACTION    how much of what F took B gives back; W the rest (default 0)\n"
    "      --keep FRACTION         how much of it F keeps where the schedule recomputes (default 2/34, a layer's "
    "input)\n"
    "      --memory-limit X        the most activations a device may hold, in microbatches of a stage; or X,X,... one "
    "a device;\n"
    "                              of measured passes all that a device may hold, such as 60GiB\n"
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
    "example: pipecast schedule 1f1b -p 8 -m 24 --times 18.522,18.086,9.337 --comm 0.601 --format json\n"
    "example: pipecast schedule best -m 24 --times times.yaml --memory-limit 60GiB --format torch-csv\n";

/* ---- arguments ---- */

enum {
    DEVICES,
    MICROBATCHES,
    CHUNKS,
    SLICES,
    SLICE_TIMES,
    TIMES,
    VOCAB_TIMES,
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
    {"slices", 0, "N"},
    {"slice-times", 0, "X,X,..."},
    {"times", 0, "F,B,W"},
    {"vocab-times", 0, "S,T"},
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

static bool parse_vocab_times(const char *text, double times[2]) {
    char *copy = strdup(text), *rest = copy;
    char *first = copy ? strsep(&rest, ",") : NULL, *second = first ? strsep(&rest, ",") : NULL;
    bool has_two = second && !rest;
    if (!has_two) report_usage("--vocab-times: '%s'; expected two numbers S,T such as 2.5,4.1", text);
    bool is_good = has_two && argument_number("--vocab-times", first, &times[0]) &&
                   argument_number("--vocab-times", second, &times[1]);
    free(copy);
    return is_good;
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

/* One F,B,W for all stages, or a list of them; or a file of measured ones. */
static bool parse_times(const char *text, schedule_request *r) {
    enum { PARTS_MAX = 65536, LENGTH_MAX = 1 << 20 };
    r->times_file = NULL;
    if (pc_pass_times_is_file(text)) {
        r->times_file = text;
        return true;
    }
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

/* Where options go that are taken as they are; NULL of others. */
static const char **text_of(schedule_request *r, int option) {
    switch (option) {
    case SLICE_TIMES:
        return &r->slice_times;
    case MEMORY_LIMIT:
        return &r->memory_limit;
    case BLOCK:
        return &r->block;
    default:
        return NULL;
    }
}

static bool take_option(schedule_request *r, int option, const char *value) {
    const char **text = text_of(r, option);
    if (text) *text = value;
    if (text) return true;
    switch (option) {
    case ARGUMENT_OPERAND:
        return take_operand(r, value);
    case DEVICES:
        return argument_integer("-p", value, 1, PC_DEVICES_MAX, &r->devices);
    case MICROBATCHES:
        return argument_integer("-m", value, 1, PC_MICROBATCHES_MAX, &r->microbatches);
    case CHUNKS:
        return argument_integer("-v", value, 1, PC_CHUNKS_MAX, &r->chunks);
    case SLICES:
        return argument_integer("--slices", value, 1, PC_CHUNKS_MAX, &r->slices);
    case TIMES:
        return parse_times(value, r);
    case VOCAB_TIMES:
        return parse_vocab_times(value, r->units.vocab_times);
    case COMM:
        return argument_number("--comm", value, &r->units.comm);
    case RELEASE_B:
        return parse_fraction("--release-b", value, &r->units.release_b);
    case KEEP:
        return parse_fraction("--keep", value, &r->units.keep);
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

static int answer_request(schedule_request *r) {
    pc_error error = {0};
    answer a = {.request = r};
    schedule_request tried;
    int status = EXIT_DONE;
    pc_code code = asks_for_best(r) ? find_best(r, &tried, &a, &status, &error) : work_out(r, &a, &status, &error);
    bool is_there = !code && status == EXIT_DONE;
    if (is_there) code = draw_answer(&a, &error);
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
    else if (draws_times(r) && r->waits_for_memory)
        fault =
            "--robust, --jitter, ...: what keeps --memory-limit waits for nothing; expected no --out-of-memory wait";
    if (fault) report_usage("%s", fault);
    r->scatter.slow_stage = (int)r->slow_stage;
    r->scatter.seed = r->seed < 0 ? 0 : (uint64_t)r->seed;
    return !fault;
}

static int judge_request(schedule_request *r) {
    pc_error error = {0};
    if (r->times_file && take_measured(r, &error)) return report(&error);
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
    pc_free(r.slice_shares);
    pc_pass_times_free(&r.measured);
    return status;
}
