/* pipecast schedule: one schedule, replayed at the user's costs in the user's unit of time. */
#include "models/schedule/schedule.h"
#include "cli/cli.h"
#include "cli/schedule_answer.h"
#include "models/workload/activation_memory.h"

#include <stdio.h>
#include <string.h>

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
    "      --times F,B,W           times of a whole stage's passes, in any one unit (default 1,1,1)\n"
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
    "      --improve               make the order shorter within the memory that it holds, or that --memory-limit "
    "says\n"
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
    IMPROVE,
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
    {"improve", 0, NULL},
    {"engine", 0, "KIND"},
    {"block", 0, "FILE"},
    {"block-steps", 0, "STEPS"},
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
    snprintf(copy, sizeof copy, "%s", text);
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
        return parse_times(value, r->units.times);
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
    case IMPROVE:
        r->improves = true;
        return true;
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

static int answer_request(schedule_request *r) {
    pc_error error = {0};
    answer a = {.request = r};
    int status = EXIT_DONE;
    pc_code code = work_out(r, &a, &status, &error);
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

int command_schedule(int argc, char **argv) {
    schedule_request r = {.units = {.times = {1.0, 1.0, 1.0}, .keep = PC_ACTIVATION_INPUT_FRACTION}, .block_steps = -1};
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "schedule"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option == ARGUMENT_ERROR || !take_option(&r, option, x.value)) return EXIT_BAD_INPUT;
    }
    if (r.name && r.block) return report_usage("--block: stands beside the name '%s'; expected one of the two", r.name);
    if (r.block_steps >= 0 && !r.block) return report_usage("--block-steps: no block; expected it with --block FILE");
    if (r.improves && r.waits_for_memory)
        return report_usage("--improve: what keeps --memory-limit waits for nothing; expected no --out-of-memory wait");
    if (!r.name && !r.block)
        return report_usage("schedule: no name; expected NAME, FILE.csv or --block FILE (pipecast list schedules)");
    return answer_request(&r);
}
