/* How the table looks: colour, width, what stands above it, and which columns there are. */
#include "results/column_choice.h"
#include "tests/refusals.h"
#include "tests/table_example.h"

#include <math.h>

/* AUTO follows the terminal, NO_COLOR (any text, no-color.org) and TERM; what the user says wins over all. */
static void colour_is_for_terminals(void **state) {
    (void)state;
    pc_colour_mode mode = PC_COLOUR_NEVER;
    assert_true(pc_colour_is_wanted(PC_COLOUR_AUTO, true, NULL, "xterm"));
    assert_true(pc_colour_is_wanted(PC_COLOUR_AUTO, true, "", "xterm"));
    assert_false(pc_colour_is_wanted(PC_COLOUR_AUTO, true, "0", "xterm"));
    assert_false(pc_colour_is_wanted(PC_COLOUR_AUTO, true, NULL, "dumb"));
    assert_false(pc_colour_is_wanted(PC_COLOUR_AUTO, true, NULL, NULL));
    assert_false(pc_colour_is_wanted(PC_COLOUR_AUTO, false, NULL, "xterm"));
    assert_true(pc_colour_is_wanted(PC_COLOUR_ALWAYS, false, "1", "dumb"));
    assert_false(pc_colour_is_wanted(PC_COLOUR_NEVER, true, NULL, "xterm"));
    assert_true(pc_colour_mode_parse("auto", &mode) && mode == PC_COLOUR_AUTO);
    assert_true(pc_colour_mode_parse("always", &mode) && mode == PC_COLOUR_ALWAYS);
    assert_true(pc_colour_mode_parse("never", &mode) && mode == PC_COLOUR_NEVER);
    assert_false(pc_colour_mode_parse("yes", &mode));
}

static void width_is_the_terminals(void **state) {
    (void)state;
    assert_int_equal(pc_terminal_width(true, 132, "80"), 132);
    assert_int_equal(pc_terminal_width(true, 0, "100"), 100);
    const char *const none[] = {NULL, "", "0", "-5", "wide", "100x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_int_equal(pc_terminal_width(true, 0, none[i]), 80);
    assert_int_equal(pc_terminal_width(false, 132, "100"), 0);
}

/* The longest line of a text, in characters; escape sequences of colours take no room. */
static size_t longest_line(const char *text) {
    size_t longest = 0, length = 0;
    for (; *text; text++) {
        if (*text == '\x1b')
            text += strcspn(text, "m");
        else if (*text == '\n')
            length = 0;
        else if ((*text & 0xc0) != 0x80)
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* However narrow the terminal, lines fit it, the iteration is there, and every column that is not is named. */
static void table_fits_the_terminal(void **state) {
    (void)state;
    pc_run_row rows[] = {cluster_row(1, "gpt3-175b.1f1b-interleaved.dgx-a100", 0.5),
                         cluster_row(2, "gpt3-175b.1f1b-interleaved.dgx-h100", 0.25)};
    change_results(&rows[1]);
    for (int i = 0; i < 2; i++) rows[i].tokens_per_s_per_gpu = 1000 + 100 * i;
    for (int width = 30; width <= 200; width++) {
        char *text = write_look(rows, 2, PC_FORMAT_TABLE, &(pc_table_look){.width = width});
        size_t room = width < 35 ? 35 : (size_t)width; /* "samples_per_s_per_gpu," and the like break nowhere */
        if (longest_line(text) > room) fail_msg("%d characters:\n%s", width, text);
        assert_non_null(strstr(text, "iteration"));
        char *left_out = strstr(text, "left out for width");
        if (left_out) left_out[-1] = '\0'; /* two texts */
        for (const char *const *name =
                 (const char *const[]){"mfu\0MFU", "memory_gib_max\0memory", "hfu\0HFU",
                                       "tokens_per_s_per_gpu\0tokens/s", "exposed_tp_s\0TP", NULL};
             *name; name++) {
            bool is_header = strstr(text, *name + strlen(*name) + 1) != NULL;
            bool is_named = left_out && strstr(left_out, *name);
            if (strcmp(*name, "hfu") != 0 && is_header == is_named) fail_msg("%s, %d:\n%s", *name, width, text);
        }
        free(text);
    }
}

/* Without a terminal, what does not fit into 120 goes as far as it may, and no further. */
static void table_in_a_file_is_as_on_paper(void **state) {
    (void)state;
    pc_run_row rows[] = {cluster_row(1, "a", 0.5), cluster_row(2, "b", 0.25)};
    char *plain = write_text(rows, 2, PC_FORMAT_TABLE);
    char *looked = write_look(rows, 2, PC_FORMAT_TABLE, &(pc_table_look){.width = 120});
    assert_string_equal(plain, looked);
    assert_null(strchr(plain, '\x1b'));
    free(plain);
    free(looked);
}

/* Colours are put around texts that were made plain: nothing foreign is left of an escape sequence, and without the
 * colours the table is the same. */
static void failures_stand_out(void **state) {
    (void)state;
    pc_run_row rows[] = {example_row(1, "a\x1b[31mb", "1f1b", 0.25, NAN), example_row(2, "b", "zb-2p", NAN, NAN),
                         example_row(3, "c", "zb-2p", NAN, NAN)};
    rows[1].status = PC_RUN_OUT_OF_MEMORY;
    rows[2].status = PC_RUN_INFEASIBLE;
    snprintf(rows[1].message, sizeof rows[1].message, "device 0 wants\x1b[31m 2 GiB");
    char *text = write_look(rows, 3, PC_FORMAT_TABLE, &(pc_table_look){.is_coloured = true});
    char *plain = write_text(rows, 3, PC_FORMAT_TABLE);
    assert_memory_equal(text, "\x1b[2mscenario zero-bubble", 24);
    assert_non_null(strstr(text, "  \x1b[31mout_of_memory\x1b[0m\n"));
    assert_non_null(strstr(text, "  \x1b[33minfeasible\x1b[0m\n"));
    assert_non_null(strstr(text, "\n\x1b[31mrun 2:\x1b[0m device 0 wants?[31m 2 GiB\n"));
    assert_non_null(strstr(text, "  1  a?[31mb"));
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from == '\x1b')
            from += strcspn(from, "m");
        else
            *to++ = *from;
    }
    *to = '\0';
    assert_string_equal(text, plain);
    free(text);
    free(plain);
}

/* What all of several rows say alike stands above, results too; of one row all results are below; the iteration is. */
static void what_is_alike_stands_above(void **state) {
    (void)state;
    pc_run_row rows[] = {cluster_row(1, "a", 0.5), cluster_row(2, "b", 0.5)};
    for (int i = 0; i < 2; i++) {
        rows[i].parameters = 32763876352;
        rows[i].schedule[0] = '\0';
        snprintf(rows[i].model, sizeof rows[i].model, "own");
    }
    char *text = write_text(rows, 2, PC_FORMAT_TABLE);
    assert_memory_equal(text, "scenario zero-bubble, model own, 32.76B parameters, machine a100-80g, GPUs 512, tp 8,",
                        85);
    assert_non_null(strstr(text, "MFU 0.5000, TP wait 10.0%"));
    assert_non_null(strstr(text, "optimizer 0.0%"));
    assert_non_null(strstr(text, "memory max 55.12 GiB")); /* 55.125: to even */
    assert_non_null(strstr(text, "\n\nrun  name  iteration\n                 [s]\n---  ----  ---------\n"));
    free(text);
    text = write_text(rows, 1, PC_FORMAT_TABLE);
    assert_non_null(strstr(text, ", GPUs 512, tp 8,"));
    assert_null(strstr(text, "TP wait 10.0%"));
    assert_non_null(strstr(text, "  0.5000  10.0%  "));
    free(text);
    rows[1].parameters = 1e9; /* models that differ */
    text = write_text(rows, 2, PC_FORMAT_TABLE);
    assert_non_null(strstr(text, "   para-"));
    assert_non_null(strstr(text, "  32.76B"));
    assert_non_null(strstr(text, "   1.00B"));
    free(text);
}

/* Four lines at most: of results that are alike those go that matter least, and are named. */
static void the_lines_above_are_few(void **state) {
    (void)state;
    pc_run_row rows[] = {cluster_row(1, "a", 0.5), cluster_row(2, "b", 0.5)};
    char *text = write_look(rows, 2, PC_FORMAT_TABLE, &(pc_table_look){.width = 70});
    const char *end = strstr(text, "\n\n");
    int lines = 1;
    for (const char *at = text; at < end; at++) lines += *at == '\n';
    assert_int_equal(lines, 4);
    assert_non_null(strstr(text, "MFU 0.5000"));
    assert_non_null(strstr(strstr(text, "left out for width"), "tflops_per_gpu"));
    free(text);
}

/* Names that say what the swept columns do go first; then those columns stay, however narrow the terminal. */
static void what_was_swept_stays(void **state) {
    (void)state;
    static const char *const swept[] = {"schedule", "zero"}, *const more[] = {"mtbf"};
    pc_run_row rows[] = {cluster_row(1, "flags.1f1b.z1", 0.5), cluster_row(2, "flags.zb-h1.z2", 0.25)};
    snprintf(rows[1].schedule, sizeof rows[1].schedule, "zb-h1");
    rows[1].zero = 2;
    change_results(&rows[1]);
    pc_table_look look = {.width = 50, .names_repeat = true, .swept = swept, .swept_count = 2};
    char *text = write_look(rows, 2, PC_FORMAT_TABLE, &look);
    assert_non_null(strstr(text, "run  schedule  ZeRO  "));
    assert_non_null(strstr(strstr(text, "left out for width"), " name,"));
    free(text);
    look.swept = more; /* has no column in the table */
    look.swept_count = 1;
    text = write_look(rows, 2, PC_FORMAT_TABLE, &look);
    assert_non_null(strstr(text, "run  name            "));
    free(text);
}

/* A price was asked for: its column stays. */
static void the_cost_stays(void **state) {
    (void)state;
    pc_run_row rows[] = {cluster_row(1, "a", 0.5), cluster_row(2, "b", 0.25)};
    change_results(&rows[1]);
    for (int i = 0; i < 2; i++) rows[i].cost_per_million_tokens = 1.5;
    char *text = write_look(rows, 2, PC_FORMAT_TABLE, &(pc_table_look){.width = 40});
    assert_non_null(strstr(text, "cost of 1M"));
    assert_null(strstr(text, "cost_per_million_tokens"));
    free(text);
}

static void notes_stand_above(void **state) {
    (void)state;
    pc_run_row row = cluster_row(1, "a", 0.5);
    const char *const notes[] = {"own\x1b[31m: not given, so as GPT's: positions learned, tied true"};
    pc_table_look look = {.width = 40, .notes = notes, .note_count = 1};
    char *text = write_look(&row, 1, PC_FORMAT_TABLE, &look);
    assert_non_null(strstr(text, "\nown?[31m: not given, so as GPT's:\npositions learned, tied true\n\nrun"));
    free(text);
    for (pc_format format = PC_FORMAT_CSV; format <= PC_FORMAT_JSON; format++) {
        char *plain = write_text(&row, 1, format);
        text = write_look(&row, 1, format, &look);
        assert_string_equal(text, plain);
        free(plain);
        free(text);
    }
}

static pc_column_choice choice_of(const char *text) {
    pc_column_choice choice;
    pc_error error = {0};
    if (pc_column_choice_parse(text, pc_table_column_name, &choice, &error)) fail_msg("%s", error.message);
    return choice;
}

static void columns_are_chosen_by_name(void **state) {
    (void)state;
    pc_run_row rows[] = {cluster_row(1, "a", 0.5), cluster_row(2, "b", 0.25)};
    rows[1].mfu = NAN;
    pc_column_choice choice = choice_of("mfu, name ,published_mfu,exposed_tp_s");
    pc_table_look look = {.width = 20, .columns = &choice};
    char *text = write_look(rows, 2, PC_FORMAT_CSV, &look);
    assert_string_equal(text, "mfu,name,published_mfu,exposed_tp_s\n0.5,a,,1\n,b,,1\n");
    free(text);
    text = write_look(rows, 2, PC_FORMAT_JSON, &look);
    assert_string_equal(text, "[\n  {\"mfu\": 0.5, \"name\": \"a\", \"published_mfu\": null, \"exposed_tp_s\": 1},\n"
                              "  {\"mfu\": null, \"name\": \"b\", \"published_mfu\": null, \"exposed_tp_s\": 1}\n]\n");
    free(text);
    text = write_look(rows, 2, PC_FORMAT_TABLE, &look); /* all that was asked for, whatever the width */
    assert_non_null(strstr(text, "\n\n   MFU  name  published  exposed_tp_s\n                    MFU           [s]\n"
                                 "------  ----  ---------  ------------\n"
                                 "0.5000  a                       1.000\n        b                       1.000\n"));
    free(text);
    choice = choice_of("published_mfu"); /* a line that is not there would be no row */
    text = write_look(rows, 2, PC_FORMAT_CSV, &look);
    assert_string_equal(text, "published_mfu\n\"\"\n\"\"\n");
    free(text);
}

static void all_columns_may_be_asked_for(void **state) {
    (void)state;
    pc_run_row row = cluster_row(1, "a", 0.5);
    pc_column_choice choice = choice_of("all");
    pc_table_look look = {.columns = &choice};
    char *text = write_look(&row, 1, PC_FORMAT_CSV, &look), *plain = write_text(&row, 1, PC_FORMAT_CSV);
    int columns = 1; /* of the header, whose names test_table.c has */
    for (const char *at = plain; *at != '\n'; at++) columns += *at == ',';
    assert_int_equal(choice.count, columns);
    assert_string_equal(text, plain);
    free(text);
    free(plain);
    text = write_look(&row, 1, PC_FORMAT_TABLE, &look);
    assert_non_null(strstr(text, "trace_hash"));
    assert_null(strstr(text, "goodput")); /* of which no row has anything */
    free(text);
}

static void refused(const char *text, const char *message) {
    pc_column_choice choice;
    pc_error error = {0};
    assert_int_equal(pc_column_choice_parse(text, pc_table_column_name, &choice, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
}

static void names_that_are_none_are_refused(void **state) {
    (void)state;
    static const char expected[] = "expected names of the columns that --format csv has, or all";
    char message[512];
    static const char *const near[][2] = {
        {"itration_s", " (did you mean iteration_s?)"},
        {"tokens_per_s", " (did you mean tokens_per_s_per_gpu?)"},
        {"memory", " (did you mean memory_peak_s, memory_basis or memory_gib_max?)"},
        {"tpp", " (did you mean tp or pp?)"},
        {"xyzzy", ""},
        {"%s%n", ""},
        {"all", NULL},
    };
    for (int i = 0; near[i][1]; i++) {
        snprintf(message, sizeof message, "'%s': no such column%s; %s", near[i][0], near[i][1], expected);
        refused(near[i][0], message);
    }
    refused("mfu,mfu", "'mfu' twice; expected it once");
    refused("mfu,,name", "an empty name; expected one comma between two names");
    refused("mfu,", "an empty name; expected one comma between two names");
    refused("", "an empty name; expected one comma between two names");
    char longest[4096];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    snprintf(message, sizeof message, "'%.63s': no such column; %s", longest, expected);
    refused(longest, message);
}

/* 999.949e9 is 999.9B, and 999.95e9 would be 1000.0B. */
static void counts_are_written_as_people_say_them(void **state) {
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {{32763876352.0, "32.76B"}, {174591000000.0, "174.6B"},
                 {8030261248.0, "8.03B"},   {355e6, "355.0M"},
                 {999.949e9, "999.9B"},     {999.951e9, "1.00T"},
                 {1e12, "1.00T"},           {2e15, "2000.0T"},
                 {1500, "1.50K"},           {999, "999"},
                 {99.996e9, "100.0B"}};
    pc_run_row rows[2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rows[0] = cluster_row(1, "a", 0.5);
        rows[0].parameters = cases[i].number;
        char wanted[64], *text = write_text(rows, 1, PC_FORMAT_TABLE);
        snprintf(wanted, sizeof wanted, " %s parameters,", cases[i].text);
        if (!strstr(text, wanted)) fail_msg("%s:\n%s", wanted, text);
        free(text);
    }
}

static void every_refused_allocation_is_reported(void **state) {
    (void)state;
    pc_run_row rows[] = {example_row(1, "a", "1f1b", 0.25, 0.25), example_row(2, "b", "1f1b", 0.25, 0.25)};
    for (int i = 0; i < 3; i++) {
        pc_column_choice choice = choice_of("mfu,name,trace_hash");
        const char *const notes[] = {"a note"};
        pc_table_look look = {.width = 40, .is_coloured = true, .notes = notes, .note_count = 1};
        for (int k = 0; k < 2; k++, look.columns = &choice)
            for (refusals x = {.most = 200}; next_refusal(&x);) {
                FILE *sink = fopen("/dev/null", "w");
                x.code = pc_table_write_from(give_row, rows, 2, (pc_format)i, &look, sink, NULL);
                fclose(sink);
            }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colour_is_for_terminals),
        cmocka_unit_test(width_is_the_terminals),
        cmocka_unit_test(table_fits_the_terminal),
        cmocka_unit_test(table_in_a_file_is_as_on_paper),
        cmocka_unit_test(failures_stand_out),
        cmocka_unit_test(what_is_alike_stands_above),
        cmocka_unit_test(the_lines_above_are_few),
        cmocka_unit_test(what_was_swept_stays),
        cmocka_unit_test(the_cost_stays),
        cmocka_unit_test(notes_stand_above),
        cmocka_unit_test(columns_are_chosen_by_name),
        cmocka_unit_test(all_columns_may_be_asked_for),
        cmocka_unit_test(names_that_are_none_are_refused),
        cmocka_unit_test(counts_are_written_as_people_say_them),
        cmocka_unit_test(every_refused_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
