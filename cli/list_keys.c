#include "cli/list_keys.h"

#include "cli/cli.h"
#include "cli/list_json.h"
#include "cli/run_flags.h"

#include "scenarios/key_list.h"

#include <stdio.h>
#include <string.h>

typedef struct section_text {
    const char *title, *text;
} section_text;

static const section_text sections[PC_KEY_SECTIONS] = {
    [PC_KEYS_OF_FILE] = {"A scenario file", "At the top of the file:"},
    [PC_KEYS_OF_SETTING] = {"A setting", "Under `setting`, and in every case. Keys for given times have a meaning only "
                                         "where `times` or `stages` are given, keys for clusters only where they are "
                                         "not:"},
    [PC_KEYS_OF_SWEEP] = {"A sweep", "Under `sweep`:"},
    [PC_KEYS_OF_PLAN] = {"A plan", "Under `plan`, which `pipecast plan` reads and `pipecast run` does not:"},
    [PC_KEYS_OF_CASE] = {"A case", "In every entry of `cases`, beside the keys of a setting:"},
    [PC_KEYS_OF_PUBLISHED] = {"Published figures", "In every entry of a case's `published`:"},
    [PC_KEYS_OF_FIGURE] = {"Figures", "In every entry of `figures`. Columns are those of `pipecast run --format csv`:"},
    [PC_KEYS_OF_MODEL_FILE] = {"A model's file",
                               "At the top of a model's file, beside the keys of `model` in a setting "
                               "but `name` and `from`:"},
};

static const char markdown_start[] =
    "# The keys of a scenario\n"
    "\n"
    "This page is what `pipecast list keys --format markdown` prints: it is made from the schema that reads "
    "scenarios.\n"
    "[scenario-format.md](scenario-format.md) says how they go together, with examples.\n"
    "\n"
    "Values with a dimension have their unit: times `ps ns us ms s min h d`; sizes `B kB MB GB TB`, `KiB MiB GiB "
    "TiB`;\n"
    "bandwidths `bit/s kbit/s Mbit/s Gbit/s Tbit/s` and any size `/s`. A whole number may end in `k` (1024) or `M` "
    "(1024 x "
    "1024):\n"
    "`32k` is 32768; one *without k* has digits alone. Lists of whole numbers may have "
    "[ranges](scenario-format.md#ranges).\n";

static const char *use_text(const pc_scenario_key *key) {
    static const char *const texts[] = {
        [PC_KEY_FOR_ALL] = "both", [PC_KEY_FOR_TIMES] = "given times", [PC_KEY_FOR_CLUSTERS] = "clusters"};
    return texts[key->use];
}

static void print_markdown(const pc_scenario_key *keys, int count) {
    fputs(markdown_start, stdout);
    for (int i = 0; i < count; i++) {
        const pc_scenario_key *key = &keys[i];
        bool has_use = key->section == PC_KEYS_OF_SETTING;
        if (i == 0 || keys[i - 1].section != key->section)
            printf("\n## %s\n\n%s\n\n| key | value |%s without it | meaning |\n|---|---|%s---|---|\n",
                   sections[key->section].title, sections[key->section].text, has_use ? " for |" : "",
                   has_use ? "---|" : "");
        printf("| `%s` | %s |", key->path, key->value);
        if (has_use) printf(" %s |", use_text(key));
        printf(" %s | %s |\n", key->otherwise, key->description);
    }
}

/* Without the marks of Markdown, in lines of at most WIDTH characters, each `indent` spaces in. */
static void print_wrapped(int indent, const char *text) {
    enum { WIDTH = 100 };
    int used = 0;
    for (const char *word = text; *word;) {
        int length = (int)strcspn(word, " ");
        if (used == 0 || used + 1 + length > WIDTH) {
            printf("%s%*s", used ? "\n" : "", indent, "");
            used = indent;
        } else {
            putchar(' ');
            used++;
        }
        for (int i = 0; i < length; i++)
            if (word[i] != '`') putchar(word[i]), used++;
        word += length + (word[length] == ' ');
    }
    putchar('\n');
}

static void print_key(const pc_scenario_key *key) {
    char line[sizeof *key];
    const char *of = key->use == PC_KEY_FOR_ALL ? "" : use_text(key);
    snprintf(line, sizeof line, "%s%s%s; without it: %s", of, *of ? ": " : "", key->value, key->otherwise);
    printf("  %s\n", key->path);
    print_wrapped(6, key->description);
    print_wrapped(6, line);
}

static void print_table(const pc_scenario_key *keys, int count) {
    for (int i = 0; i < count; i++) {
        const pc_scenario_key *key = &keys[i];
        if (i == 0 || keys[i - 1].section != key->section) {
            printf("%s%s\n\n", i ? "\n" : "", sections[key->section].title);
            print_wrapped(0, sections[key->section].text);
            putchar('\n');
        }
        print_key(key);
    }
}

/* For completion: "--recompute= run,plan list none selective full", a line an option that stands for a key. */
static int print_flags(void) {
    for (const run_flag *flag = run_flags(); flag->name; flag++) {
        printf("--%s= %s %s", flag->name, flag->is_for_plans ? "run,plan" : "run", flag->sweep ? "list" : "one");
        for (const char *word = flag->words; word; word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL)
            printf(" %.*s", (int)strcspn(word, "|"), word);
        putchar('\n');
    }
    return finish_output(EXIT_DONE);
}

/* The section by the key that it stands under in a file. */
static const char *const section_names[PC_KEY_SECTIONS] = {
    [PC_KEYS_OF_FILE] = "file",      [PC_KEYS_OF_SETTING] = "setting",      [PC_KEYS_OF_SWEEP] = "sweep",
    [PC_KEYS_OF_PLAN] = "plan",      [PC_KEYS_OF_CASE] = "cases",           [PC_KEYS_OF_PUBLISHED] = "cases.published",
    [PC_KEYS_OF_FIGURE] = "figures", [PC_KEYS_OF_MODEL_FILE] = "model file"};

static int print_json(const pc_scenario_key *keys, int count) {
    list_json json = {.objects = 0};
    for (int i = 0; i < count; i++) {
        list_json_next(&json);
        list_json_text(&json, "section", section_names[keys[i].section]);
        list_json_text(&json, "key", keys[i].path);
        list_json_text(&json, "value", keys[i].value);
        list_json_text(&json, "for", use_text(&keys[i]));
        list_json_text(&json, "otherwise", keys[i].otherwise);
        list_json_text(&json, "meaning", keys[i].description);
    }
    return list_json_end(&json);
}

int list_keys(const char *format) {
    enum { TABLE, JSON, MARKDOWN, FLAGS };
    int status = EXIT_DONE;
    pc_error error = {0};
    pc_scenario_key *keys;
    int count, look;
    if (!argument_word("list: --format", "format", "table|json|markdown|flags", format, &look)) return EXIT_BAD_INPUT;
    if (look == FLAGS) return print_flags();
    if (pc_scenario_keys(&keys, &count, &error)) return report(&error);
    if (look == MARKDOWN)
        print_markdown(keys, count);
    else if (look == JSON)
        status = print_json(keys, count);
    else
        print_table(keys, count);
    pc_scenario_keys_free(keys);
    return finish_output(status);
}
