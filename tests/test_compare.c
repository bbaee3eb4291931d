/* Two tables of results beside each other. Rows are made here, without a simulation. */
#include "engine/alloc.h"
#include "results/columns.h"
#include "results/compare.h"
#include "tests/refusals.h"

#include <errno.h>
#include <math.h>

static const char csv_head[] = "scenario,name,column,a,b,difference,relative\n";

static pc_run_row make_row(int64_t run, const char *scenario, const char *name) {
    pc_run_row row;
    pc_run_row_clear(&row);
    row.run = run;
    snprintf(row.scenario, sizeof row.scenario, "%s", scenario);
    snprintf(row.name, sizeof row.name, "%s", name);
    snprintf(row.schedule, sizeof row.schedule, "zb-h1");
    row.gpus = row.pp = 8;
    row.status = PC_RUN_OK;
    row.iteration_s = 1.5;
    row.mfu = 0.5;
    row.trace_hash = 1;
    return row;
}

/* What differs, as text that the caller frees. */
static char *compare(const pc_run_row *a, int64_t a_count, const pc_run_row *b, int64_t b_count,
                     pc_compare_options options, pc_compare_summary *summary) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_int_equal(pc_compare(a, a_count, b, b_count, &options, stream, summary, NULL), PC_OK);
    fclose(stream);
    return text;
}

/* Of one row each: the CSV behind its header. */
static void assert_csv(const pc_run_row *a, const pc_run_row *b, double tolerance, const char *expected) {
    pc_compare_summary sum;
    char *text = compare(a, 1, b, 1, (pc_compare_options){.format = PC_FORMAT_CSV, .tolerance = tolerance}, &sum);
    assert_memory_equal(text, csv_head, strlen(csv_head));
    assert_string_equal(text + strlen(csv_head), expected);
    assert_int_equal(sum.both, 1);
    assert_int_equal(sum.different, *expected != '\0');
    free(text);
}

static void the_same_is_said_in_one_line(void **state) {
    (void)state;
    pc_run_row rows[] = {make_row(1, "s", "a"), make_row(2, "s", "b")};
    pc_compare_summary sum;
    char *text = compare(rows, 2, rows, 2, (pc_compare_options){.name_a = "x.h5", .name_b = "x.h5"}, &sum);
    assert_string_equal(text, "the same: 2 runs, every column\n");
    assert_int_equal(sum.both, 2);
    assert_int_equal(sum.different + sum.only_a + sum.only_b, 0);
    free(text);
    text = compare(rows, 1, rows, 1, (pc_compare_options){.tolerance = 1e-3}, &sum);
    assert_string_equal(text, "the same: 1 run, every column, within 0.001 of a; trace_hash left out\n");
    free(text);
    text = compare(rows, 0, rows, 0, (pc_compare_options){0}, &sum);
    assert_string_equal(text, "the same: 0 runs, every column\n");
    free(text);
    text = compare(rows, 2, rows, 2, (pc_compare_options){.format = PC_FORMAT_JSON}, &sum);
    assert_string_equal(text, "[]\n");
    free(text);
    text = compare(rows, 2, rows, 2, (pc_compare_options){.format = PC_FORMAT_CSV}, &sum);
    assert_string_equal(text, csv_head);
    free(text);
}

/* Another value of any type: what is told is that column, once, and nothing else. */
static void change(const pc_column *column, pc_run_row *row) {
    char *field = (char *)row + column->field.place;
    const double real = 0.25;
    const int64_t integer = 7;
    const uint64_t hash = 0x2a;
    if (column->field.type == PC_FIELD_TEXT)
        assert_true(pc_column_set_text(column, row, "changed"));
    else if (column->field.type == PC_FIELD_CHOICE)
        row->status = PC_RUN_INFEASIBLE;
    else
        memcpy(field,
               column->field.type == PC_FIELD_NUMBER  ? (const void *)&real
               : column->field.type == PC_FIELD_INT64 ? (const void *)&integer
                                                      : (const void *)&hash,
               8);
}

/* The run's number and its key say which run it is, not what came of it. */
static void every_column_but_number_and_key_counts(void **state) {
    (void)state;
    int count;
    const pc_column *columns = pc_columns(&count);
    const pc_run_row a = make_row(1, "s", "n");
    for (int i = 0; i < count; i++) {
        const char *name = columns[i].field.name;
        if (strcmp(name, "scenario") == 0 || strcmp(name, "name") == 0) continue; /* another run then */
        pc_run_row b = a;
        change(&columns[i], &b);
        pc_compare_summary sum;
        char *text = compare(&a, 1, &b, 1, (pc_compare_options){.format = PC_FORMAT_CSV}, &sum);
        char start[64];
        snprintf(start, sizeof start, "s,n,%s,", name);
        const char *line = text + strlen(csv_head);
        bool counts = strcmp(name, "run") != 0 && strcmp(name, "key") != 0;
        if (!counts)
            assert_string_equal(line, "");
        else
            assert_memory_equal(line, start, strlen(start));
        assert_int_equal(sum.different, counts);
        assert_true(*line == '\0' || strchr(line, '\n')[1] == '\0');
        free(text);
    }
}

/* 1.5 to 1.875: 0.375 more, a quarter of 1.5; 0.5 to 0.375: a quarter less; 8 to 6 as whole numbers. All are exact. */
static void differences_are_relative_to_a(void **state) {
    (void)state;
    pc_run_row a = make_row(1, "s", "n"), b = a;
    b.iteration_s = 1.875;
    b.mfu = 0.375;
    b.pp = 6;
    assert_csv(&a, &b, 0,
               "s,n,pp,8,6,-2,-0.25\n"
               "s,n,iteration_s,1.5,1.875,0.375,0.25\n"
               "s,n,mfu,0.5,0.375,-0.125,-0.25\n");
    a.mfu = -0.5; /* of a negative number, more is up: 0.375 - -0.5 = 0.875, over 0.5 */
    a.iteration_s = 1.875;
    a.pp = 6;
    assert_csv(&a, &b, 0, "s,n,mfu,-0.5,0.375,0.875,1.75\n");
}

static void what_has_no_difference_has_none(void **state) {
    (void)state;
    pc_run_row a = make_row(1, "s", "n"), b = a;
    a.mfu = 0; /* nothing can be said relative to zero */
    b.mfu = 0.25;
    a.iteration_s = NAN;
    b.gpus = -1;
    b.status = 17; /* none that has a name */
    b.trace_hash = 0;
    snprintf(a.recompute, sizeof a.recompute, "full, \"all\"");
    assert_csv(&a, &b, 0,
               "s,n,gpus,8,,,\n"
               "s,n,recompute,\"full, \"\"all\"\"\",,,\n"
               "s,n,status,ok,,,\n"
               "s,n,iteration_s,,1.5,,\n"
               "s,n,mfu,0,0.25,0.25,\n"
               "s,n,trace_hash,0000000000000001,,,\n");
    a = b = make_row(1, "s", "n");
    a.seq_len = INT64_MIN; /* the difference is no 64-bit number; as a double it is 2^63 + 8, which rounds to 2^63 */
    b.seq_len = 8;
    a.hfu = 1e-308;
    b.hfu = 1e308; /* 1e616 times as much is more than any number */
    assert_csv(&a, &b, 0,
               "s,n,seq_len,-9223372036854775808,8,9.223372036854776e+18,1\n"
               "s,n,hfu,1e-308,1e+308,1e+308,\n");
}

/* Ways to say "not defined", and zeros of either sign, are one. */
static void equal_values_need_not_have_equal_bytes(void **state) {
    (void)state;
    pc_run_row a = make_row(1, "s", "n"), b = a;
    a.mfu = NAN;
    b.mfu = -INFINITY;
    a.hfu = 0.0;
    b.hfu = -0.0;
    a.status = 17;
    b.status = -1;
    memset(b.machine, 'x', sizeof b.machine);
    b.machine[0] = '\0';
    assert_csv(&a, &b, 0, "");
}

/* 1000 and 1001 are 0.001 of 1000 apart; the other way round it is less, of 1001. */
static void tolerance_is_relative_to_a(void **state) {
    (void)state;
    pc_run_row a = make_row(1, "s", "n"), b = a;
    a.iteration_s = a.seq_len = 1000;
    b.iteration_s = b.seq_len = 1001;
    assert_csv(&a, &b, 0.001, "");
    const char *both = "s,n,seq_len,1000,1001,1,0.001\ns,n,iteration_s,1000,1001,1,0.001\n";
    assert_csv(&a, &b, 0.00099, both);
    assert_csv(&b, &a, 0.0009991, "");
    a = b = make_row(1, "s", "n");
    a.mfu = 0;
    b.mfu = 1e-300; /* no share of zero is as much */
    assert_csv(&a, &b, 1e6, "s,n,mfu,0,1e-300,1e-300,\n");
    a.mfu = NAN;
    assert_csv(&a, &b, 1e6, "s,n,mfu,,1e-300,,\n");
}

/* The smallest change of a time changes the hash of them; that of a profile stands for an input. */
static void a_tolerance_leaves_out_the_hash_of_times_alone(void **state) {
    (void)state;
    pc_run_row a = make_row(1, "s", "n"), b = a;
    b.trace_hash = 2;
    b.profile_hash = 3;
    const char *times = "s,n,trace_hash,0000000000000001,0000000000000002,,\n";
    const char *profile = "s,n,profile_hash,,0000000000000003,,\n";
    char both[256];
    snprintf(both, sizeof both, "%s%s", times, profile);
    assert_csv(&a, &b, 0, both);
    assert_csv(&a, &b, 1e-9, profile);
}

/* 20,000 rows against the same in reverse, other numbers on them, with two changed. */
static void rows_match_by_name_whatever_their_order(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    pc_run_row *a = pc_alloc(COUNT, sizeof *a), *b = pc_alloc(COUNT, sizeof *b);
    assert_true(a && b);
    for (int i = 0; i < COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "run-%d", i / 2);
        a[i] = b[COUNT - 1 - i] = make_row(i + 1, i % 2 ? "odd" : "even", name);
        b[COUNT - 1 - i].run = COUNT - i;
    }
    b[0].mfu = 1;        /* of row 19999 of A */
    b[COUNT - 1].tp = 4; /* of row 0 */
    pc_compare_summary sum;
    char *text = compare(a, COUNT, b, COUNT, (pc_compare_options){.format = PC_FORMAT_CSV}, &sum);
    assert_string_equal(text + strlen(csv_head), "even,run-0,tp,,4,,\nodd,run-9999,mfu,0.5,1,0.5,1\n");
    assert_int_equal(sum.both, COUNT);
    assert_int_equal(sum.different, 2);
    free(text);
    pc_free(a);
    pc_free(b);
}

static void runs_that_one_lacks_are_named(void **state) {
    (void)state;
    pc_run_row a[] = {make_row(1, "s", "a"), make_row(2, "s", "b")};
    pc_run_row b[] = {make_row(1, "t", "a"), make_row(2, "s", "b"), make_row(3, "sa", "")};
    pc_compare_summary sum;
    char *text = compare(a, 2, b, 3, (pc_compare_options){.format = PC_FORMAT_CSV}, &sum);
    assert_string_equal(text + strlen(csv_head), "s,a,run,1,,,\nt,a,run,,1,,\nsa,,run,,3,,\n");
    free(text);
    text = compare(a, 2, b, 3, (pc_compare_options){.format = PC_FORMAT_JSON}, &sum);
    assert_string_equal(text, "[\n"
                              "  {\"scenario\": \"s\", \"name\": \"a\", \"column\": \"run\", \"a\": 1, \"b\": null, "
                              "\"difference\": null, \"relative\": null},\n"
                              "  {\"scenario\": \"t\", \"name\": \"a\", \"column\": \"run\", \"a\": null, \"b\": 1, "
                              "\"difference\": null, \"relative\": null},\n"
                              "  {\"scenario\": \"sa\", \"name\": null, \"column\": \"run\", \"a\": null, \"b\": 3, "
                              "\"difference\": null, \"relative\": null}\n"
                              "]\n");
    free(text);
    text = compare(a, 2, b, 3, (pc_compare_options){.name_a = "x.h5", .name_b = "y.h5"}, &sum);
    assert_string_equal(text, "a: x.h5, 2 runs\nb: y.h5, 3 runs\n\n"
                              "only in a:\n  s: a\n\nonly in b:\n  t: a\n  sa: run 3\n\n"
                              "the same in the 1 run that both have; 1 only in a; 2 only in b\n");
    free(text);
    assert_int_equal(sum.both, 1);
    assert_int_equal(sum.only_a, 1);
    assert_int_equal(sum.only_b, 2);
}

static void a_run_that_stands_twice_is_refused(void **state) {
    (void)state;
    pc_run_row twins[] = {make_row(4, "s", "a"), make_row(5, "t", "a"), make_row(6, "s", "a")},
               one = make_row(1, "s", "b");
    pc_compare_options options = {.name_a = "x.h5"};
    pc_compare_summary sum = {.both = 77};
    pc_error error = {0};
    assert_int_equal(pc_compare(twins, 3, &one, 1, &options, stdout, &sum, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message,
                        "x.h5: runs 4 and 6 are both 'a' of scenario 's'; expected every name once, to know "
                        "which runs belong together");
    assert_int_equal(pc_compare(&one, 1, twins, 3, &options, stdout, &sum, &error), PC_ERROR_INPUT);
    assert_memory_equal(error.message, "b: runs 4 and 6 ", 16);
    assert_int_equal(sum.both, 77); /* written on success only */
}

/* --- the table --- */

static void assert_neat(const char *text) {
    for (; *text; text += strcspn(text, "\n") + 1) {
        size_t length = strcspn(text, "\n");
        assert_true(length <= 160 && (length == 0 || text[length - 1] != ' '));
    }
}

static void table_groups_by_run_and_sums_up_by_column(void **state) {
    (void)state;
    pc_run_row a[] = {make_row(1, "s", "one"), make_row(2, "s", "two"), make_row(3, "s", "three")}, b[3];
    memcpy(b, a, sizeof a);
    b[0].mfu = 0.625;
    b[0].trace_hash = 2;
    b[2].mfu = 0.25;
    pc_compare_summary sum;
    pc_compare_options options = {.name_a = "x.h5", .name_b = "y.h5", .version_a = "0.1.0", .version_b = "0.2.0"};
    char *text = compare(a, 3, b, 3, options, &sum);
    assert_string_equal(text, "written by different versions of pipecast: a by 0.1.0, b by 0.2.0\n"
                              "a: x.h5, 3 runs\n"
                              "b: y.h5, 3 runs\n"
                              "\n"
                              "run    column                     a                 b  difference\n"
                              "-----  ----------  ----------------  ----------------  ----------\n"
                              "one    mfu                      0.5             0.625        +25%\n"
                              "       trace_hash  0000000000000001  0000000000000002\n"
                              "three  mfu                      0.5              0.25        -50%\n"
                              "\n"
                              "column      runs  largest  in run\n"
                              "----------  ----  -------  ------\n"
                              "mfu            2     -50%  three\n"
                              "trace_hash     1\n"
                              "\n"
                              "different: 2 of 3 runs that both have, in 2 columns\n");
    assert_neat(text);
    free(text);
    options.version_b = options.version_a;
    options.tolerance = 0.25; /* 0.625 is just within */
    text = compare(a, 3, b, 3, options, &sum);
    assert_string_equal(text,
                        "a: x.h5, 3 runs\n"
                        "b: y.h5, 3 runs\n"
                        "\n"
                        "run    column    a     b  difference\n"
                        "-----  ------  ---  ----  ----------\n"
                        "three  mfu     0.5  0.25        -50%\n"
                        "\n"
                        "different: 1 of 3 runs that both have, in 1 column, within 0.25 of a; trace_hash left out\n");
    free(text);
}

/* The line that begins with the column's name, blanks squeezed. */
static void assert_cells(const pc_run_row *a, const pc_run_row *b, const char *column, const char *expected) {
    pc_compare_summary sum;
    char *text = compare(a, 1, b, 1, (pc_compare_options){0}, &sum), squeezed[512];
    const char *line = strstr(text, column);
    size_t size = 0;
    for (assert_non_null(line); *line && *line != '\n' && size + 1 < sizeof squeezed; line++)
        if (*line != ' ' || line[1] != ' ') squeezed[size++] = *line;
    squeezed[size] = '\0';
    assert_string_equal(squeezed, expected);
    assert_neat(text);
    free(text);
}

static void table_shows_where_values_part(void **state) {
    (void)state;
    pc_run_row a = make_row(1, "s", "n"), b = a;
    a.iteration_s = 1;
    b.iteration_s = 1 + 0x1p-52; /* the last bit */
    assert_cells(&a, &b, "iteration_s", "iteration_s 1 1.0000000000000002 +2.22e-14%");
    b.iteration_s = 1000; /* 999 times as much again */
    assert_cells(&a, &b, "iteration_s", "iteration_s 1 1000 +99900%");
    b.iteration_s = 1e9;
    assert_cells(&a, &b, "iteration_s", "iteration_s 1 1e+09 +1e+11%");
    a.iteration_s = 0; /* relative to which nothing is */
    assert_cells(&a, &b, "iteration_s", "iteration_s 0 1e+09");
    b = a;
    snprintf(a.message, sizeof a.message, "device 0: F of chunk 0, microbatch 3: 12 GiB wanted");
    assert_cells(&a, &b, "message", "message device 0: F of chunk 0, microbatch 3: 1\xe2\x80\xa6 not defined");
    snprintf(b.message, sizeof b.message, "device 0: F of chunk 0, microbatch 3: 13 GiB wanted");
    assert_cells(&a, &b, "message",
                 "message \xe2\x80\xa6 microbatch 3: 12 GiB wanted \xe2\x80\xa6 microbatch 3: 13 GiB wanted");
    snprintf(a.message, sizeof a.message, "%s%sx", "0123456789012345678901234",
             "\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6\xc3\xb6"
             "12345678901");
    snprintf(b.message, sizeof b.message, "%.*sy", (int)strlen(a.message) - 1, a.message);
    assert_cells(&a, &b, "message",
                 "message \xe2\x80\xa6\xc3\xb6\xc3\xb6\xc3\xb6"
                 "12345678901x \xe2\x80\xa6\xc3\xb6\xc3\xb6\xc3\xb6"
                 "12345678901y");
}

/* Nine runs of six columns: 54 differences, of which 24 are shown; and nine runs that only one has, of which 8. */
static void table_shows_the_first_unless_asked_for_all(void **state) {
    (void)state;
    enum { COUNT = 9 };
    pc_run_row a[2 * COUNT], b[COUNT];
    for (int i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "run-%d", i);
        a[i] = b[i] = make_row(i + 1, "s", name);
        b[i].tp = b[i].dp = b[i].zero = i;
        b[i].mfu = b[i].hfu = b[i].memory_peak_s = 0.125;
        snprintf(name, sizeof name, "alone-%d", i);
        a[COUNT + i] = make_row(COUNT + i + 1, "s", name);
    }
    pc_compare_summary sum;
    char *text = compare(a, 2 * COUNT, b, COUNT, (pc_compare_options){0}, &sum);
    assert_non_null(strstr(text, "\n30 more differences are left out; --all shows them\n"));
    assert_null(strstr(text, "run-4"));
    assert_non_null(strstr(text, "alone-7\n  and 1 more; --all shows them\n"));
    assert_non_null(strstr(text, "\ndifferent: 9 of 9 runs that both have, in 6 columns; 9 only in a\n"));
    free(text);
    text = compare(a, 2 * COUNT, b, COUNT, (pc_compare_options){.all = true}, &sum);
    assert_null(strstr(text, "--all"));
    assert_non_null(strstr(text, "run-8"));
    assert_non_null(strstr(text, "alone-8"));
    assert_neat(text);
    free(text);
}

/* --- failures --- */

static void a_full_device_is_an_error(void **state) {
    (void)state;
    pc_run_row a = make_row(1, "s", "n"), b = a;
    b.mfu = 0.25;
    for (int format = 0; format < 3; format++) {
        FILE *full = fopen("/dev/full", "w");
        if (!full) skip();
        pc_compare_options options = {.format = (pc_format)format};
        pc_compare_summary sum;
        pc_error error = {0};
        assert_int_equal(pc_compare(&a, 1, &b, 1, &options, full, &sum, &error), PC_ERROR_IO);
        assert_non_null(strstr(error.message, strerror(ENOSPC)));
        fclose(full);
    }
}

/* Of A's row: mfu 0.5 to 0.375 is 25% less, iteration_s 1.5 to 2.25 is 50% more, gpus 8 to 6 is 25% less, hfu appears
 * and cp goes from 0 to 2, which no share of A says; the schedule is a word. Among equals the order is that of columns.
 */
static void by_change_the_largest_comes_first(void **state) {
    (void)state;
    pc_run_row a[] = {make_row(1, "s", "n"), make_row(2, "s", "m")}, b[2];
    memcpy(b, a, sizeof a);
    b[0].mfu = 0.375;
    b[0].gpus = 6;
    snprintf(b[0].schedule, sizeof b[0].schedule, "1f1b");
    b[1].iteration_s = 2.25;
    b[1].hfu = 0.25;
    a[1].cp = 0;
    b[1].cp = 2;
    pc_compare_options options = {.format = PC_FORMAT_CSV, .by_change = true};
    pc_compare_summary sum;
    char *text = compare(a, 2, b, 2, options, &sum);
    assert_string_equal(text + strlen(csv_head), "s,m,hfu,,0.25,,\n"
                                                 "s,m,cp,0,2,2,\n"
                                                 "s,m,iteration_s,1.5,2.25,0.75,0.5\n"
                                                 "s,n,gpus,8,6,-2,-0.25\n"
                                                 "s,n,mfu,0.5,0.375,-0.125,-0.25\n"
                                                 "s,n,schedule,zb-h1,1f1b,,\n");
    free(text);
}

static pc_column_choice choose(const char *names) {
    pc_column_choice choice;
    assert_int_equal(pc_column_choice_parse(names, pc_table_column_name, &choice, NULL), PC_OK);
    return choice;
}

/* What is chosen is compared, be it a hash within a tolerance or the number of the run; what is not does not count. */
static void only_chosen_columns_are_compared(void **state) {
    (void)state;
    pc_run_row a = make_row(1, "s", "n"), b = make_row(2, "s", "n");
    b.mfu = 0.375;
    b.iteration_s = 3;
    b.trace_hash = 0x2a;
    const pc_column_choice mfu = choose("mfu"), both = choose("trace_hash,run"), neither = choose("gpus,pp"),
                           all = choose("all");
    pc_compare_options options = {.format = PC_FORMAT_CSV, .columns = &mfu};
    pc_compare_summary sum;
    char *text = compare(&a, 1, &b, 1, options, &sum);
    assert_string_equal(text + strlen(csv_head), "s,n,mfu,0.5,0.375,-0.125,-0.25\n");
    free(text);
    options = (pc_compare_options){.format = PC_FORMAT_CSV, .columns = &both, .tolerance = 1};
    text = compare(&a, 1, &b, 1, options, &sum);
    assert_non_null(strstr(text, "s,n,trace_hash,0000000000000001,000000000000002a,,\n"));
    assert_null(strstr(text, "mfu"));
    free(text);
    text = compare(&a, 1, &b, 1, (pc_compare_options){.columns = &neither, .tolerance = 0.5}, &sum);
    assert_string_equal(text, "the same: 1 run, 2 chosen columns, within 0.5 of a\n");
    assert_int_equal(sum.different, 0);
    free(text);
    text = compare(&a, 1, &b, 1, (pc_compare_options){.format = PC_FORMAT_CSV, .columns = &all}, &sum);
    assert_null(strstr(text, "s,n,run,"));
    assert_non_null(strstr(text, "s,n,iteration_s,1.5,3,1.5,1\n"));
    free(text);
}

static void every_refused_allocation_is_reported(void **state) {
    (void)state;
    pc_run_row a[] = {make_row(1, "s", "n"), make_row(2, "s", "m"), make_row(3, "s", "k")}, b[3];
    memcpy(b, a, sizeof a);
    b[0].mfu = b[1].mfu = 0.25;
    snprintf(b[2].name, sizeof b[2].name, "other");
    FILE *sink = fopen("/dev/null", "w");
    assert_non_null(sink);
    for (int format = 0; format < 3; format++) {
        refusals x = {0};
        while (next_refusal(&x)) {
            pc_compare_options options = {.format = (pc_format)format, .by_change = format > 0};
            pc_compare_summary sum;
            x.code = pc_compare(a, 3, b, 3, &options, sink, &sum, NULL);
        }
        assert_true(x.tried > 4);
    }
    fclose(sink);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_is_said_in_one_line),
        cmocka_unit_test(every_column_but_number_and_key_counts),
        cmocka_unit_test(differences_are_relative_to_a),
        cmocka_unit_test(what_has_no_difference_has_none),
        cmocka_unit_test(equal_values_need_not_have_equal_bytes),
        cmocka_unit_test(tolerance_is_relative_to_a),
        cmocka_unit_test(a_tolerance_leaves_out_the_hash_of_times_alone),
        cmocka_unit_test(rows_match_by_name_whatever_their_order),
        cmocka_unit_test(runs_that_one_lacks_are_named),
        cmocka_unit_test(a_run_that_stands_twice_is_refused),
        cmocka_unit_test(table_groups_by_run_and_sums_up_by_column),
        cmocka_unit_test(table_shows_where_values_part),
        cmocka_unit_test(table_shows_the_first_unless_asked_for_all),
        cmocka_unit_test(a_full_device_is_an_error),
        cmocka_unit_test(by_change_the_largest_comes_first),
        cmocka_unit_test(only_chosen_columns_are_compared),
        cmocka_unit_test(every_refused_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
