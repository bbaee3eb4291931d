#include "cli/plan_request.h"

#include "cli/cli.h"
#include "cli/plan_job.h"
#include "engine/alloc.h"
#include "results/plan_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char help_start[] =
    "usage: pipecast plan [SCENARIO.yaml] [OPTIONS]\n"
    "\n"
    "Looks for the best way to train a model on a cluster: how to cut it, which schedule, what to recompute and to\n"
    "shard, of all that the scenario's `plan` lists; what it does not list is all that makes sense, or what `setting`\n"
    "says. Options say the same without a scenario.\n"
    "\n"
    "      --objective KIND,...   throughput (default), memory or cost; of several the Pareto front\n"
    "      --top K                how many cuts (default 10; of a front all)\n"
    "      --most-iteration TIME  plans whose iteration takes no longer, such as '30 s'\n"
    "      --most-cost X          plans in which a million tokens cost no more\n"
    "      --deadline TIME        the fewest GPUs on which `--tokens` are trained in that time, such as 30d\n"
    "      --budget MONEY         and for no more than that, such as 2M$, at the `--price` of a GPU-hour\n"
    "      --batch-per WHAT       all (default): --global-batch is of all replicas; replica: of each, so that it "
    "follows dp\n"
    "      --each AXIS[,AXIS]     also the best plan of each value: gpus, machine, tp, schedule, ...\n"
    "      --map AXIS,AXIS        also a map of the best plan of each two values, such as tp,pp\n"
    "      --seq-mix N:PART,...   also the plans with sequences of several lengths, such as 8k:0.8,128k:0.2\n"
    "      --sensitivity          also what 20% less and more of bandwidths, memory, rates and batch make of plan 1\n"
    "      --anew                 with --sensitivity also the best plan then\n"
    "  -o RESULTS.h5              also keep the plans' runs in an HDF5 file\n"
    "      --format FORMAT        table, csv or json (default table); or the plans as arguments of Megatron-LM\n"
    "                             (megatron) or fields of torchtitan's configuration (torchtitan); then -o may also\n"
    "                             name such a file (job.toml, of further plans job-2.toml), and torchtitan's "
    "schedules\n"
    "                             lie beside it (job.csv)\n"
    "      --columns NAME,...     these columns alone, by their names in csv, in this order; all: every column\n"
    "      --color WHEN           auto (default), always or never; auto: on a terminal, unless NO_COLOR is set\n"
    "      --jobs N               threads (default: one a core); results do not depend on it\n"
    "      --cache FILE           keep what the search works out, for the next; given again, files that are read only\n"
    "      --shard I/N            only the I-th of N shares of the cuts, for `pipecast merge` or the --cache of all\n"
    "      --fresh                search anew, whatever the journal or the first cache has\n"
    "      --all-variants         every plan of its own, not the best of each cut (machine, GPUs and ranks) alone\n"
    "      --exhaustive           simulate every point, as a check of the search\n"
    "      --set KEY=VALUE        override a key of the scenario, such as plan.tp=[4, 8]; may be repeated\n"
    "      --allow-outside        let a scenario name files outside of its folder: ../gpu.yaml, /data/h100.h5, links\n"
    "  -q, --quiet                no progress bar, no messages but errors\n"
    "\n"
    "Keys of a setting. One value, short for --set setting.KEY=VALUE, is fixed; where ... stands, several values,\n"
    "short for --set plan.KEY=[VALUE, ...], and ranges (1..8, 512..16384x2) are chosen from:\n"
    "\n";

static const char help_end[] =
    "\n"
    "Exit status: 0 done; 1 no plan fits; 2 bad input; 3 a fault of the machine.\n"
    "\n"
    "example: pipecast plan --model llama3-70b --machine dgx-h100 --gpus 512\n"
    "example: pipecast plan --model llama3-70b --machine dgx-h100,dgx-a100 --price 2.10/h,1.20/h --gpus 256,512 \\\n"
    "             --objective cost\n"
    "example: pipecast plan scenarios/studies/plan_llama3_70b.yaml -o plans.h5\n";

enum { JOBS_MAX = 1024, SHARDS_MAX = 1 << 20 };

/* Options that stand for keys of `plan`. */
static const run_flag plan_flags[] = {
    {.name = "objective", .value = "KIND", .key = "objective", .sweep = "objective"},
    {.name = "top", .value = "K", .key = "top"},
    {.name = "most-iteration", .value = "TIME", .key = "most_iteration"},
    {.name = "most-cost", .value = "X", .key = "most_cost"},
    {.name = "deadline", .value = "TIME", .key = "deadline"},
    {.name = "budget", .value = "MONEY", .key = "budget"},
    {.name = "batch-per", .value = "WHAT", .key = "batch_per"},
};
enum { PLAN_FLAGS = sizeof plan_flags / sizeof *plan_flags };

enum {
    OUTPUT = PLAN_FLAGS,
    FORMAT,
    COLUMNS,
    COLOUR,
    JOBS,
    CACHE,
    SHARD,
    FRESH,
    ALL_VARIANTS,
    EACH,
    MAP,
    MIX,
    SENSITIVITY,
    ANEW,
    EXHAUSTIVE,
    SET,
    ALLOW_OUTSIDE,
    QUIET,
    HELP,
    FLAGS,
    FLAGS_MAX = FLAGS + PC_SETTING_FLAGS_MAX + 1
};
static const option_spec own_options[] = {
    [OUTPUT] = {"output", 'o', "RESULTS.h5"},
    [FORMAT] = {"format", 0, "FORMAT"},
    [COLUMNS] = {"columns", 0, "NAME,..."},
    [COLOUR] = {"color", 0, "WHEN"},
    [JOBS] = {"jobs", 'j', "N"},
    [CACHE] = {"cache", 0, "FILE"},
    [SHARD] = {"shard", 0, "I/N"},
    [FRESH] = {"fresh", 0, NULL},
    [ALL_VARIANTS] = {"all-variants", 0, NULL},
    [EACH] = {"each", 0, "AXIS,..."},
    [MAP] = {"map", 0, "AXIS,AXIS"},
    [MIX] = {"seq-mix", 0, "N:PART,..."},
    [SENSITIVITY] = {"sensitivity", 0, NULL},
    [ANEW] = {"anew", 0, NULL},
    [EXHAUSTIVE] = {"exhaustive", 0, NULL},
    [SET] = {"set", 0, "KEY=VALUE"},
    [ALLOW_OUTSIDE] = {"allow-outside", 0, NULL},
    [QUIET] = {"quiet", 'q', NULL},
    [HELP] = {"help", 'h', NULL},
};

/* `flags` says which key each of the options stands for. */
static void list_options(option_spec options[FLAGS_MAX], const run_flag *flags[FLAGS_MAX]) {
    int count = FLAGS;
    memcpy(options, own_options, sizeof own_options);
    for (int i = 0; i < PLAN_FLAGS; i++) {
        options[i] = (option_spec){plan_flags[i].name, 0, plan_flags[i].value};
        flags[i] = &plan_flags[i];
    }
    for (const run_flag *flag = run_flags(); flag->name; flag++) {
        if (!flag->is_for_plans) continue;
        flags[count] = flag;
        options[count++] = (option_spec){flag->name, 0, flag->value};
    }
    options[count] = (option_spec){NULL, 0, NULL};
}

/* What a run takes where nothing is said is no default of a plan that chooses it. */
static void print_flag_help(const run_flag *flag) {
    bool is_list = pc_plan_scenario_list_of(flag->key), is_layout = strcmp(flag->key, "model.layout") == 0;
    const char *text = is_layout ? "layers over parts: even, ends, own, balanced, balanced-memory or auto" : flag->help;
    const char *end = is_list ? strstr(text, " (default ") : NULL;
    printf("%.*s\n", end ? (int)(end - text) : (int)strlen(text), text);
}

static void print_help(void) {
    fputs(help_start, stdout);
    for (const run_flag *flag = run_flags(); flag->name; flag++) {
        char option[64];
        if (!flag->is_for_plans) continue;
        snprintf(option, sizeof option, "%s %s%s", flag->name, flag->value,
                 pc_plan_scenario_list_of(flag->key) ? ",..." : "");
        printf("      --%-26s ", option);
        print_flag_help(flag);
    }
    fputs(help_end, stdout);
}

static bool is_of_plan(const run_flag *flag) {
    return flag >= plan_flags && flag < plan_flags + PLAN_FLAGS;
}

/* The --set that an option stands for; the caller frees it. NULL if memory is short. */
static char *set_of(const run_flag *flag, const char *value) {
    bool is_several = run_flag_is_list(flag, value) || strchr(value, ',') || strcmp(value, "all") == 0;
    const char *list = is_of_plan(flag) ? flag->sweep : pc_plan_scenario_list_of(flag->key);
    bool is_list = list && (is_several || is_of_plan(flag));
    if (!is_list && !is_of_plan(flag)) return run_flag_set(flag, value);
    size_t size = strlen(flag->key) + strlen(value) + 32;
    char *set = malloc(size);
    if (set) snprintf(set, size, is_list ? "plan.%s=[%s]" : "plan.%s=%s", is_list ? list : flag->key, value);
    return set;
}

static bool take_path(plan_request *request, const char *path) {
    if (request->path) {
        report_usage("plan: two scenarios, %s and %s; expected one", request->path, path);
        return false;
    }
    request->path = path;
    return true;
}

/* table, csv and json, and behind them what others take. */
static bool take_format(plan_request *request, const char *value) {
    int index;
    if (!argument_word("--format", "format", "table|csv|json|megatron|torchtitan", value, &index)) return false;
    request->format = index < 3 ? (pc_format)index : PC_FORMAT_TABLE;
    request->writer = index < 3 ? PLAN_WRITES_NONE : index == 3 ? PLAN_WRITES_MEGATRON : PLAN_WRITES_TORCHTITAN;
    return true;
}

static bool take_cache(plan_request *request, const char *value) {
    if (request->cache_count == PLAN_CACHES_MAX) {
        report_usage("--cache: more than %d files; expected no more", PLAN_CACHES_MAX);
        return false;
    }
    request->caches[request->cache_count++] = value;
    return true;
}

static bool is_model(const run_flag *flag) {
    return strcmp(flag->key, "model.from") == 0;
}

static bool take_flag(plan_request *request, const run_flag *flag, const char *value) {
    if (!is_model(flag) || !strchr(value, ',')) return run_sets_take_flag(&request->sets, flag, value, set_of);
    request->models = value;
    return true;
}

bool plan_request_take_model(plan_request *request, const char *model) {
    const run_flag *flag = run_flags();
    while (!is_model(flag)) flag++;
    return run_sets_take_flag(&request->sets, flag, model, set_of);
}

void plan_request_drop_model(plan_request *request) {
    run_sets *sets = &request->sets;
    free(sets->flags[--sets->flag_count].set);
    sets->count--;
}

static bool take_option(plan_request *request, int option, const char *value, const run_flag *const *flags) {
    switch (option) {
    case ARGUMENT_OPERAND:
        return take_path(request, value);
    case OUTPUT:
        request->output = value;
        return true;
    case FORMAT:
        return take_format(request, value);
    case COLUMNS:
        return look_take_columns(&request->look, value, pc_plan_column_name);
    case COLOUR:
        return look_take_colour(&request->look, value);
    case JOBS:
        return argument_integer("--jobs", value, 1, JOBS_MAX, &request->jobs);
    case CACHE:
        return take_cache(request, value);
    case SHARD:
        return argument_shard(value, &request->shard, &request->shard_count, SHARDS_MAX);
    case FRESH:
        return request->is_fresh = true;
    case ALL_VARIANTS:
        return request->wants_variants = true;
    case EACH:
        request->each = value;
        return true;
    case MAP:
        request->map = value;
        return true;
    case MIX:
        request->mix = value;
        return true;
    case SENSITIVITY:
        return request->wants_changes = true;
    case ANEW:
        return request->plans_anew = true;
    case EXHAUSTIVE:
        return request->is_exhaustive = true;
    case SET:
        return run_sets_take(&request->sets, value);
    case ALLOW_OUTSIDE:
        return request->allows_outside = true;
    case QUIET:
        return request->is_quiet = true;
    default:
        return option >= 0 && take_flag(request, flags[option], value);
    }
}

/* A share is there for what it leaves to others. What needs plan 1 before a search is no share's to do. */
static int check_shard(const plan_request *request) {
    if (request->is_fresh && request->cache_count == 0 && !request->output)
        return report_usage("plan: --fresh without --cache and --output; expected a file to begin anew");
    if (request->shard_count == 0) return -1;
    if (request->cache_count == 0 && !request->output)
        return report_usage("plan: --shard without -o and --cache; expected a file of the share, for `pipecast merge`");
    if (request->output && plan_job_is_file(request->output))
        return report_usage("plan: --shard beside -o %s: a share's plans are not the best of all; expected a file such "
                            "as share.h5, for `pipecast merge`",
                            request->output);
    if (request->models)
        return report_usage("plan: --shard beside several models, of which one is chosen before the search for plans; "
                            "expected one model");
    if (request->plans_anew)
        return report_usage("plan: --shard beside --anew, which searches for what becomes of plan 1, and no share "
                            "knows that; expected --sensitivity alone, or the plan of all");
    if (request->has_odd_word && request->output)
        return report_usage("plan: --shard beside a word with a line break, or a scenario whose name begins with -; "
                            "expected words that a line can have");
    return -1;
}

/* Not where results go, how they look, and how the work is done; nor leave to look elsewhere, which is the user's alone
 * to give. */
static bool is_of_question(int option) {
    return option != OUTPUT && option != FORMAT && option != COLUMNS && option != COLOUR && option != JOBS &&
           option != CACHE && option != SHARD && option != FRESH && option != QUIET && option != ALLOW_OUTSIDE;
}

/* False after having printed why it cannot be. */
static bool add_word(plan_request *request, const option_spec *options, int option, const char *value) {
    pc_text *words = &request->words;
    if (!is_of_question(option)) return true;
    bool is_operand = option == ARGUMENT_OPERAND;
    request->has_odd_word = request->has_odd_word || (value && strchr(value, '\n')) || (is_operand && value[0] == '-');
    if (is_operand)
        pc_text_printf(words, "%s\n", value);
    else
        pc_text_printf(words, "--%s%s%s\n", options[option].name, value ? "=" : "", value ? value : "");
    pc_error error;
    if (words->failed && pc_error_no_memory(&error)) report(&error);
    return !words->failed;
}

int plan_request_parse(int argc, char **argv, plan_request *request) {
    option_spec options[FLAGS_MAX];
    const run_flag *flags[FLAGS_MAX] = {NULL};
    list_options(options, flags);
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "plan"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == HELP) {
            print_help();
            return finish_output(EXIT_DONE);
        }
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (!take_option(request, option, x.value, flags)) return run_sets_status(&request->sets);
        if (!add_word(request, options, option, x.value)) return EXIT_MACHINE;
    }
    if (!request->path && request->sets.count == 0 && !request->models)
        return report_usage("plan: no scenario; expected SCENARIO.yaml, or options such as --model and --machine");
    if (request->plans_anew && !request->wants_changes)
        return report_usage("plan: --anew without --sensitivity; expected both");
    return check_shard(request);
}

int plan_request_parse_words(const char *words, int argc, char **argv, plan_request *request) {
    size_t count = 0, room = strlen(words) / 2 + (size_t)argc + 2;
    char **list = pc_alloc(room, sizeof *list), *at = request->lines = pc_strdup(words);
    static char command[] = "plan";
    pc_error error;
    if (!list || !at) {
        pc_free(list);
        pc_error_no_memory(&error);
        return report(&error);
    }
    list[count++] = command;
    for (char *end; (end = strchr(at, '\n')) && count < room; at = end + 1) {
        *end = '\0';
        if (*at) list[count++] = at;
    }
    for (int i = 0; i < argc && count < room; i++) list[count++] = argv[i];
    int status = plan_request_parse((int)count, list, request);
    pc_free(list);
    return status;
}

void plan_request_free(plan_request *request) {
    pc_free(request->lines);
    pc_text_free(&request->words);
    run_sets_free(&request->sets);
}

/* ---- the run of a plan ---- */

/* A text that grows; once there is no memory for more, it stays and says so. */
typedef struct line {
    char *text;
    size_t size;
    bool has_failed;
} line;

static void write(line *to, const char *words) {
    size_t more = strlen(words);
    char *text = to->has_failed ? NULL : pc_realloc(to->text, to->size + more + 1, 1);
    to->has_failed = !text;
    if (!text) return;
    memcpy(text + to->size, words, more + 1);
    to->text = text;
    to->size += more;
}

/* What a terminal cannot show, as shells of today take it. */
static void write_codes(line *to, const char *word) {
    write(to, "$'");
    for (; *word; word++) {
        char code[8];
        bool is_plain = *word >= ' ' && *word < 0x7f && *word != '\'' && *word != '\\';
        snprintf(code, sizeof code, is_plain ? "%c" : "\\%03o", (unsigned char)*word);
        write(to, code);
    }
    write(to, "'");
}

/* As a shell takes it for one word. */
static void write_word(line *to, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+@%-";
    if (*word && word[strspn(word, plain)] == '\0') {
        write(to, word);
        return;
    }
    char shown[8192];
    snprintf(shown, sizeof shown, "%s", word);
    pc_error_make_plain(shown);
    if (strcmp(shown, word) != 0) return write_codes(to, word);
    write(to, "'");
    for (; *word; word++) write(to, *word == '\'' ? "'\\''" : (char[2]){*word});
    write(to, "'");
}

static void write_option(line *to, const run_flag *flag, const char *value) {
    write(to, " --");
    write(to, flag->name);
    write(to, " ");
    write_word(to, value);
}

/* "--tp 8"; a key without an option of its own as "--set setting.overlap.tp=false". */
static void write_key(void *context, const char *key, const char *value) {
    line *to = context, set = {0};
    for (const run_flag *flag = run_flags(); flag->name; flag++)
        if (strcmp(flag->key, key) == 0) return write_option(to, flag, value);
    write(&set, "setting.");
    write(&set, key);
    write(&set, "=");
    write(&set, value);
    write(to, " --set ");
    if (!set.has_failed) write_word(to, set.text);
    to->has_failed = to->has_failed || set.has_failed;
    pc_free(set.text);
}

/* Keys, with a line end before and behind each. */
static void note_key(void *context, const char *key, const char *value) {
    line *keys = context;
    (void)value;
    write(keys, key);
    write(keys, "\n");
}

/* Whether a set is replaced by a later one, or by what the plan says. */
static bool is_said_again(const plan_request *request, int set, const line *keys) {
    char key[256];
    const char *text = request->sets.list[set] + strlen("setting.");
    size_t length = strcspn(text, "=");
    if (length + 3 > sizeof key) return false;
    snprintf(key, sizeof key, "\n%.*s\n", (int)length, text);
    bool is_again = keys->text && strstr(keys->text, key);
    for (int i = set + 1; i < request->sets.count && !is_again; i++)
        is_again = strncmp(request->sets.list[i], request->sets.list[set], strlen("setting.") + length + 1) == 0;
    return is_again;
}

/* What the user said of the setting; what was said of the choices, the plan says anew. */
static void write_set(line *to, const plan_request *request, const char *set) {
    for (int i = 0; i < request->sets.flag_count; i++)
        if (request->sets.flags[i].set == set)
            return write_option(to, request->sets.flags[i].flag, request->sets.flags[i].value);
    write(to, " --set ");
    write_word(to, set);
}

pc_code plan_request_command(const plan_request *request, const pc_plan_scenario *scenario,
                             const pc_plan_choice *choice, char **command, pc_error *error) {
    line text = {0}, keys = {0};
    write(&keys, "\n");
    pc_code code = pc_plan_scenario_put(scenario, choice, note_key, &keys, error);
    write(&text, "pipecast run");
    if (request->path) {
        write(&text, " ");
        write_word(&text, request->path);
    }
    if (request->allows_outside) write(&text, " --allow-outside");
    for (int i = 0; i < request->sets.count; i++)
        if (strncmp(request->sets.list[i], "setting.", 8) == 0 && !is_said_again(request, i, &keys))
            write_set(&text, request, request->sets.list[i]);
    if (!code) code = pc_plan_scenario_put(scenario, choice, write_key, &text, error);
    pc_free(keys.text);
    if (!code && (text.has_failed || keys.has_failed)) code = pc_error_no_memory(error);
    if (code)
        pc_free(text.text);
    else
        *command = text.text;
    return code;
}
