/* pipecast schedule: one schedule, replayed at the user's costs in the user's unit of time. */
#include "cli/cli.h"
#include "cli/schedule_show.h"
#include "results/schedule/answer.h"

#include <stdio.h>

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
    "      --dark                  light on a dark ground, with --figure\n"
    "\n"
    "example: pipecast schedule 1f1b -p 8 -m 24 --times 18.522,18.086,9.337 --comm 0.601 --format json\n"
    "example: pipecast schedule best -m 24 --times times.yaml --memory-limit 60GiB --format torch-csv\n";

/* ---- arguments ---- */

/* Those of a request, in the order of pc_schedule_option, and the command's own behind them. */
enum { FORMAT = PC_SCHEDULE_OPTIONS, FIGURE, DARK, HELP };
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
    {"dark", 0, NULL},
    {"help", 'h', NULL},
    {NULL, 0, NULL},
};

/* What the command was asked for. */
typedef struct command_request {
    pc_schedule_request schedule;
    pc_schedule_format format;
    bool is_dark; /* of the figure */
    int status;   /* of an option that was refused: 0 if none was */
} command_request;

static bool parse_format(const char *text, pc_schedule_format *format) {
    int index;
    if (!argument_word("--format", "format", PC_SCHEDULE_FORMATS, text, &index)) return false;
    *format = (pc_schedule_format)index;
    return true;
}

static bool take_option(void *request, int option, const char *value) {
    command_request *r = request;
    pc_error error = {0};
    if (option == FORMAT) return parse_format(value, &r->format);
    if (option == FIGURE) return r->schedule.figure = value, true;
    if (option == DARK) return r->is_dark = true;
    pc_code code = option == ARGUMENT_OPERAND
                       ? pc_schedule_request_name(&r->schedule, value, &error)
                       : pc_schedule_request_set(&r->schedule, (pc_schedule_option)option, value, &error);
    if (code) r->status = report(&error);
    return !code;
}

/* What the command ends with after an error. */
static int refuse(const pc_schedule_answer *a, const pc_error *error) {
    int status = report(error);
    return a->does_not_fit ? EXIT_DID_NOT_FIT : status;
}

/* An answer that holds too much is shown, too. */
static int show_answer(pc_schedule_answer *a, const command_request *r, pc_error *error) {
    pc_code code = draw_answer(a, r->is_dark, error);
    if (!code) code = pc_schedule_answer_write(a, r->format, stdout, error);
    if (code) return report(error);
    int status = pc_schedule_answer_check_memory(a, error) ? refuse(a, error) : EXIT_DONE;
    return finish_output(status);
}

static int answer_request(command_request *r) {
    pc_error error = {0};
    pc_schedule_answer a = {.does_not_fit = false};
    if (r->is_dark && !r->schedule.figure)
        return report_usage("--dark: nothing is drawn; expected it with --figure FILE");
    r->schedule.wants_block = r->format == PC_SCHEDULE_JSON || r->format == PC_SCHEDULE_BLOCK;
    if (pc_schedule_request_complete(&r->schedule, &error)) return report(&error);
    int status = pc_schedule_answer_find(&r->schedule, &a, &error) ? refuse(&a, &error) : show_answer(&a, r, &error);
    pc_schedule_answer_free(&a);
    return status;
}

int command_schedule(int argc, char **argv) {
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "schedule"};
    command_request r = {.format = PC_SCHEDULE_TABLE};
    pc_schedule_request_init(&r.schedule, true);
    int status = arguments_take(&x, help, take_option, &r);
    if (r.status) status = r.status;
    if (status == ARGUMENT_END) status = answer_request(&r);
    pc_schedule_request_free(&r.schedule);
    return status;
}
