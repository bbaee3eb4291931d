/* The results table as text: CSV, JSON, and the aligned table. Rows are made here, without a simulation. */
#include "results/columns.h"
#include "results/table.h"
#include "tests/comma_locale.h"
#include "tests/refusals.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <unistd.h>

/* The text of the rows; the caller frees it. */
static char *write_text(const pc_run_row *rows, int64_t count, pc_format format) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_int_equal(pc_table_write(rows, count, format, stream, NULL), PC_OK);
    fclose(stream);
    return text;
}

/* A row as the Zero Bubble scenario has them. */
static pc_run_row example_row(int64_t run, const char *name, const char *schedule, double bubble, double published) {
    pc_run_row row;
    pc_run_row_clear(&row);
    row.run = run;
    snprintf(row.scenario, sizeof row.scenario, "zero-bubble");
    snprintf(row.name, sizeof row.name, "%s", name);
    snprintf(row.schedule, sizeof row.schedule, "%s", schedule);
    snprintf(row.machine, sizeof row.machine, "a100-80g");
    row.gpus = row.pp = 8;
    row.tp = row.dp = row.virtual_pp = 1;
    row.microbatch_size = 6;
    row.microbatches = 24;
    row.global_batch = 144;
    row.seq_len = 1024;
    row.status = PC_RUN_OK;
    row.iteration_s = 1.5228;
    row.samples_per_s_per_gpu = 144 / 1.5228 / 8;
    row.bubble_rate_span = bubble;
    row.bubble_rate_makespan = bubble + 0.01;
    row.published_bubble_rate_span = published;
    row.activation_gib_max = 21.5;
    row.trace_hash = UINT64_C(0x0123456789abcdef);
    return row;
}

/* --- columns --- */

/* clang-format off */
static const char *const column_names[] = {
    "run", "scenario", "model", "machine", "gpus", "tp", "pp", "dp", "virtual_pp", "schedule", "microbatch_size",
    "microbatches", "global_batch", "seq_len", "recompute", "status", "iteration_s", "samples_per_s_per_gpu",
    "tflops_per_gpu", "mfu", "hfu", "bubble_rate_span", "bubble_rate_makespan", "activation_gib_max",
    "memory_gib_max", "name", "published_bubble_rate_span", "published_samples_per_s_per_gpu",
    "published_iteration_s", "trace_hash", "message", "tokens_per_s_per_gpu", "hardware_tflops_per_gpu",
    "peak_tflops", "exposed_tp_s", "exposed_pp_s", "exposed_dp_s", "exposed_optimizer_s", "exposed_bubble_s",
    "parameters_gib_max", "gradients_gib_max", "optimizer_gib_max", "buffers_gib_max", "memory_peak_s",
    "standard_error_s", "zero", "sequence_parallel", "published_mfu", "published_tflops_per_gpu",
    "published_hardware_tflops_per_gpu", "published_activation_gib", "sent_tp_gib", "sent_pp_gib", "sent_dp_gib",
    "link_utilisation_max", "profile", "profile_hash", "pass_f_s", "pass_b_s", "pass_w_s", "model_parameters",
    "published_pass_f_s", "published_memory_gib", "published_best_mfu", "memory_limit_gib", "plan", "key",
    "gpu_hours_per_million_tokens", "cost_per_million_tokens", "samples", "jitter", "gpu_jitter", "link_jitter",
    "slow_gpus", "slow_stage", "slow_factor", "bad_links", "bad_factor", "other_nodes", "mtbf_s", "checkpoint_s",
    "spare_nodes", "iteration_good_s", "iteration_mean_s", "iteration_mean_error_s", "slowdown_mean",
    "iteration_p05_s", "iteration_p05_low_s", "iteration_p05_high_s", "iteration_p50_s", "iteration_p50_low_s",
    "iteration_p50_high_s", "iteration_p95_s", "iteration_p95_low_s", "iteration_p95_high_s", "iteration_p99_s",
    "iteration_p99_low_s", "iteration_p99_high_s", "goodput_mean", "goodput_mean_error", "goodput_p05",
    "goodput_p05_low", "goodput_p05_high", "goodput_p50", "goodput_p50_low", "goodput_p50_high", "goodput_p95",
    "goodput_p95_low", "goodput_p95_high", "failures_mean", "checkpoint_interval_s", "layout", "parameters",
};
/* clang-format on */

enum { COLUMNS = sizeof column_names / sizeof column_names[0] };

static void columns_are_those_of_the_interface(void **state) {
    (void)state;
    int count;
    const pc_column *columns = pc_columns(&count);
    assert_int_equal(count, COLUMNS);
    for (int i = 0; i < count; i++) {
        assert_string_equal(columns[i].name, column_names[i]);
        assert_ptr_equal(pc_column_find(column_names[i]), &columns[i]);
        assert_true(strlen(columns[i].description) > 0);
        bool number = columns[i].type == PC_COLUMN_INTEGER || columns[i].type == PC_COLUMN_REAL;
        assert_int_equal(number, strlen(columns[i].unit) > 0);
        assert_true(columns[i].size <= PC_COLUMN_TEXT_SIZE);
    }
    assert_null(pc_column_find("no_such_column"));
}

static void a_cleared_row_defines_nothing(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_row_clear(&row);
    int count;
    const pc_column *columns = pc_columns(&count);
    for (int i = 0; i < count; i++) assert_false(pc_column_defined(&columns[i], &row));
    row.mfu = INFINITY;
    row.status = 17;
    assert_false(pc_column_defined(pc_column_find("mfu"), &row));
    assert_false(pc_column_defined(pc_column_find("status"), &row));
}

static void texts_go_into_a_row_and_back(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_row_clear(&row);
    const pc_column *status = pc_column_find("status"), *hash = pc_column_find("trace_hash");
    const pc_column *model = pc_column_find("model");
    assert_true(pc_column_set_text(status, &row, "infeasible"));
    assert_int_equal(row.status, PC_RUN_INFEASIBLE);
    assert_false(pc_column_set_text(status, &row, "fine"));
    assert_true(pc_column_set_text(hash, &row, "00000000000000ff"));
    assert_true(row.trace_hash == 255);
    assert_false(pc_column_set_text(hash, &row, "ff"));
    assert_false(pc_column_set_text(hash, &row, "00000000000000fg"));
    assert_true(pc_column_set_text(hash, &row, ""));
    assert_true(row.trace_hash == 0);

    char longest[PC_LABEL_SIZE + 1];
    memset(longest, 'x', sizeof longest);
    longest[PC_LABEL_SIZE] = '\0';
    assert_false(pc_column_set_text(model, &row, longest));
    longest[PC_LABEL_SIZE - 1] = '\0';
    assert_true(pc_column_set_text(model, &row, longest));
    assert_string_equal(row.model, longest);
}

static void formats_have_names(void **state) {
    (void)state;
    pc_format format = PC_FORMAT_TABLE;
    assert_true(pc_format_parse("csv", &format) && format == PC_FORMAT_CSV);
    assert_true(pc_format_parse("json", &format) && format == PC_FORMAT_JSON);
    assert_true(pc_format_parse("table", &format) && format == PC_FORMAT_TABLE);
    assert_false(pc_format_parse("CSV ", &format));
    assert_int_equal(format, PC_FORMAT_TABLE);
}

/* --- CSV --- */

/* The end of a row in which `columns` more are empty: a comma behind each but the last. */
static void assert_undefined(const char *text, size_t columns) {
    assert_int_equal(strspn(text, ","), columns - 1);
    assert_string_equal(text + columns - 1, "\n");
}

static void csv_leaves_the_undefined_empty(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_row_clear(&row);
    char *text = write_text(&row, 1, PC_FORMAT_CSV);
    assert_undefined(strchr(text, '\n') + 1, COLUMNS);
    free(text);
}

static void csv_has_what_the_row_has(void **state) {
    (void)state;
    pc_run_row row = example_row(1, "1.5B.1f1b", "1f1b", 0.25, 0.2431);
    row.iteration_s = 1.5;
    row.samples_per_s_per_gpu = 12;
    row.bubble_rate_makespan = 0.1; /* 0.1 is what the shortest digits say, not 0.10000000000000001 */
    char *text = write_text(&row, 1, PC_FORMAT_CSV);
    const char *defined = "1,zero-bubble,,a100-80g,8,1,8,1,1,1f1b,6,24,144,1024,,ok,1.5,12,,,,0.25,0.1,21.5,,1.5B.1f1b,"
                          "0.2431,,,0123456789abcdef,",
               *line = strchr(text, '\n') + 1;
    assert_memory_equal(line, defined, strlen(defined));
    assert_undefined(line + strlen(defined), COLUMNS - 30);
    free(text);
}

static void csv_quotes_as_rfc_4180_says(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_row_clear(&row);
    snprintf(row.scenario, sizeof row.scenario, "a,b");
    snprintf(row.model, sizeof row.model, "7\" tall");
    snprintf(row.machine, sizeof row.machine, "two\nlines");
    snprintf(row.schedule, sizeof row.schedule, "b\xffq\xc3(");
    char *text = write_text(&row, 1, PC_FORMAT_CSV);
    const char *wanted = ",\"a,b\",\"7\"\" tall\",\"two\nlines\",,,,,,b\xef\xbf\xbdq\xef\xbf\xbd(,";
    assert_memory_equal(strchr(text, '\n') + 1, wanted, strlen(wanted));
    free(text);
}

static uint64_t next_random(uint64_t *state) { /* xorshift64 */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The cell of a row's line, by column number. */
static const char *find_cell(const char *line, int column) {
    for (; column > 0; column--) line = strchr(line, ',') + 1;
    return line;
}

static void csv_numbers_read_back_exactly(void **state) {
    (void)state;
    uint64_t random = 88172645463325252u;
    const int column = (int)(pc_column_find("mfu") - pc_columns(&(int){0}));
    for (int i = 0; i < 2000; i++) {
        uint64_t bits = next_random(&random);
        pc_run_row row;
        pc_run_row_clear(&row);
        memcpy(&row.mfu, &bits, sizeof bits);
        if (!isfinite(row.mfu)) continue;
        char *text = write_text(&row, 1, PC_FORMAT_CSV);
        assert_true(strtod(find_cell(strchr(text, '\n') + 1, column), NULL) == row.mfu);
        free(text);
    }
}

static void no_locale_changes_a_number(void **state) {
    (void)state;
    pc_run_row row = example_row(1, "a", "1f1b", 0.25, 0.2431);
    char *wanted[3], *found[3];
    for (int i = 0; i < 3; i++) wanted[i] = write_text(&row, 1, (pc_format)i);
    bool commas = take_comma_locale();
    for (int i = 0; i < 3; i++) found[i] = write_text(&row, 1, (pc_format)i);
    char number[16];
    snprintf(number, sizeof number, "%.1f", 0.5);
    setlocale(LC_ALL, "C");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(found[i], wanted[i]);
        free(found[i]);
        free(wanted[i]);
    }
    if (commas)
        assert_string_equal(number, "0,5"); /* the caller's locale is as it was */
    else
        print_message("no locale with decimal commas is installed or can be made: only \"C\" was tried\n");
}

/* --- JSON --- */

static void json_without_rows_is_an_empty_array(void **state) {
    (void)state;
    char *text = write_text(NULL, 0, PC_FORMAT_JSON);
    assert_string_equal(text, "[]\n");
    free(text);
}

static void json_escapes_what_it_must(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_row_clear(&row);
    snprintf(row.scenario, sizeof row.scenario, "q\" b\\ n\n t\t \x01 \xff \xed\xa0\x80 \xc3\xa9");
    char *text = write_text(&row, 1, PC_FORMAT_JSON);
    const char *wanted = "[\n  {\"run\": null, \"scenario\": \"q\\\" b\\\\ n\\u000a t\\u0009 \\u0001 \xef\xbf\xbd "
                         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xc3\xa9\", \"model\": null, ";
    assert_memory_equal(text, wanted, strlen(wanted));
    free(text);
}

/* Python's parser reads the rows back, number for number. */
static void json_is_read_by_a_parser(void **state) {
    (void)state;
    char path[] = "/tmp/pipecast-json-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    FILE *stream = fdopen(file, "w");
    pc_run_row rows[3] = {example_row(1, "a\"b\\\x1f\x7f\xff", "1f1b", 0.1 + 0.2, 0.3),
                          example_row(2, "b", "zb", 0, 0)};
    pc_run_row_clear(&rows[2]);
    rows[1].iteration_s = 5e-324;
    rows[1].mfu = -INFINITY;
    rows[1].global_batch = INT64_MAX;
    assert_int_equal(pc_table_write(rows, 3, PC_FORMAT_JSON, stream, NULL), PC_OK);
    fclose(stream);
    char command[512];
    snprintf(command, sizeof command,
             "python3 -c \"import json; r = json.load(open('%s', encoding='utf-8'));"
             "assert len(r) == 3 and len(r[0]) == %d;"
             "assert r[0]['bubble_rate_span'] == 0.1 + 0.2 and r[1]['iteration_s'] == 5e-324;"
             "assert r[1]['mfu'] is None and r[1]['global_batch'] == 2**63 - 1;"
             "assert r[0]['name'] == 'a' + chr(34) + 'b' + chr(92) + chr(31) + chr(127) + chr(0xfffd);"
             "assert all(v is None for v in r[2].values())\"",
             path, (int)COLUMNS);
    bool python = system("python3 -c pass >/dev/null 2>&1") == 0;
    if (python) assert_int_equal(system(command), 0);
    unlink(path);
    if (!python) skip();
}

/* --- the table --- */

static void assert_lines_are_neat(const char *text) {
    while (*text) {
        size_t length = strcspn(text, "\n");
        assert_true(length <= 120);
        assert_true(length == 0 || text[length - 1] != ' ');
        text += length + 1;
    }
}

static void table_shows_what_a_person_compares(void **state) {
    (void)state;
    pc_run_row rows[] = {example_row(1, "1.5B-m24.1f1b", "1f1b", 0.2432, 0.2431),
                         example_row(2, "1.5B-m24.zb-h2", "zb-h2", 0.0045, 0.0045),
                         example_row(10, "1.5B-m24.zb-1p", "zb-1p", 0.15849, NAN)};
    rows[2].iteration_s = 12.7;
    rows[2].samples_per_s_per_gpu = 9;
    char *text = write_text(rows, 3, PC_FORMAT_TABLE);
    assert_string_equal(text, "scenario zero-bubble, machine a100-80g, GPUs 8, microbatch size 6, microbatches 24, "
                              "global batch 144, seq len 1024,\n"
                              "activ. max 21.50 GiB\n"
                              "\n"
                              "run  name            iteration  samples/s  bubble  published  differ-      bubble\n"
                              "                           [s]    per GPU  (span)     (span)     ence  (makespan)\n"
                              "---  --------------  ---------  ---------  ------  ---------  -------  ----------\n"
                              "  1  1.5B-m24.1f1b       1.523     11.820  0.2432     0.2431  +0.0001      0.2532\n"
                              "  2  1.5B-m24.zb-h2      1.523     11.820  0.0045     0.0045  +0.0000      0.0145\n"
                              " 10  1.5B-m24.zb-1p     12.700      9.000  0.1585                          0.1685\n");
    assert_lines_are_neat(text);
    free(text);
}

/* A row of a run on a cluster: of 10 s, 1 s waits for tensor parallelism, 0.2 for transfers, 0.35 for replicas. */
static pc_run_row cluster_row(int64_t run, const char *name, double mfu) {
    pc_run_row row = example_row(run, name, "1f1b", 0.05, NAN);
    row.iteration_s = 10;
    row.gpus = 512;
    row.tp = 8;
    row.dp = 8;
    row.mfu = row.hfu = mfu;
    row.tflops_per_gpu = row.hardware_tflops_per_gpu = 312 * mfu;
    row.peak_tflops = 312;
    row.exposed_tp_s = 1;
    row.exposed_pp_s = 0.2;
    row.exposed_dp_s = 0.35;
    row.exposed_optimizer_s = 0;
    row.memory_gib_max = 55.125;
    row.zero = row.sequence_parallel = 1;
    return row;
}

/* All results that are not compared with published ones are other than before. */
static void change_results(pc_run_row *row) {
    double *const results[] = {&row->exposed_tp_s,
                               &row->exposed_pp_s,
                               &row->exposed_dp_s,
                               &row->samples_per_s_per_gpu,
                               &row->bubble_rate_span,
                               &row->bubble_rate_makespan,
                               &row->activation_gib_max,
                               &row->memory_gib_max,
                               &row->tflops_per_gpu,
                               &row->mfu,
                               &row->hfu};
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) *results[i] *= 0.75;
    row->exposed_optimizer_s += 0.125;
}

/* What an iteration waits for stands in percent of it, and the peak that MFU divides by above the table. */
static void table_says_where_the_time_goes(void **state) {
    (void)state;
    pc_run_row rows[] = {cluster_row(1, "a", 0.5), cluster_row(2, "b", 0.25)};
    rows[1].status = PC_RUN_INFEASIBLE;
    rows[1].exposed_tp_s = rows[1].iteration_s = NAN;
    rows[1].bubble_rate_span = 0.06;
    char *text = write_text(rows, 2, PC_FORMAT_TABLE);
    assert_non_null(strstr(text, ", peak TFLOP/s 312"));
    assert_non_null(strstr(text, "     MFU     TP    PP    DP  opti-  bubble"));
    assert_non_null(strstr(text, "  0.5000  10.0%  2.0%  3.5%   0.0%  0.0500"));
    assert_non_null(strstr(text, "  0.2500                            0.0600"));
    assert_null(strstr(text, "HFU")); /* the same as MFU */
    assert_lines_are_neat(text);
    free(text);
}

/* Where there is something to compare with, that is shown first; what memory in all says too goes before the rest. */
static void table_prefers_what_was_published(void **state) {
    (void)state;
    pc_run_row rows[] = {cluster_row(1, "a-long-name.1f1b-interleaved.dgx-a100", 0.5),
                         cluster_row(2, "a-long-name.1f1b-interleaved.dgx-h100", 0.25)};
    change_results(&rows[1]);
    for (int i = 0; i < 2; i++) rows[i].published_iteration_s = 8;
    char *text = write_text(rows, 2, PC_FORMAT_TABLE);
    assert_non_null(strstr(text, "  +25.0%  "));
    assert_null(strstr(text, " 10.0%"));
    assert_non_null(strstr(text, "left out for width"));
    assert_non_null(strstr(text, "exposed_tp_s,"));
    assert_lines_are_neat(text);
    free(text);
    for (int i = 0; i < 2; i++) rows[i].published_activation_gib = 20;
    text = write_text(rows, 2, PC_FORMAT_TABLE);
    assert_non_null(strstr(text, "  21.50      20.00  ")); /* beside what it compares with */
    free(text);
    for (int i = 0; i < 2; i++) {
        rows[i].published_activation_gib = NAN;
        snprintf(rows[i].name, sizeof rows[i].name, "%057d-%d", 0, i);
    }
    text = write_text(rows, 2, PC_FORMAT_TABLE);
    assert_non_null(strstr(text, "  +25.0%  ")); /* of what is left the bubble matters least */
    assert_non_null(strstr(text, "bubble_rate_span,"));
    free(text);
}

/* Of FLOPs with recomputation the table speaks only where others did, and then says ours too. */
static void table_compares_hardware_flops(void **state) {
    (void)state;
    pc_run_row row = cluster_row(1, "a", 0.5);
    row.hardware_tflops_per_gpu = 110;
    for (int i = 0; i < 2; i++) {
        char *text = write_text(&row, 1, PC_FORMAT_TABLE);
        assert_int_equal(strstr(text, "  110.0      100.0   +10.0%  ") != NULL, i);
        assert_int_equal(strstr(text, "hardware") != NULL, i);
        free(text);
        row.published_hardware_tflops_per_gpu = 100;
    }
}

static void table_says_why_rows_are_not_ok(void **state) {
    (void)state;
    pc_run_row rows[] = {example_row(1, "a", "1f1b", 0.25, NAN), example_row(2, "b", "zb-2p", NAN, NAN)};
    rows[1].status = PC_RUN_OUT_OF_MEMORY;
    rows[1].iteration_s = rows[1].samples_per_s_per_gpu = rows[1].bubble_rate_makespan = NAN;
    snprintf(rows[1].message, sizeof rows[1].message, "device 0 wants\x1b[31m 2 GiB");
    char *text = write_text(rows, 2, PC_FORMAT_TABLE);
    assert_non_null(strstr(text, "  status\n"));
    assert_non_null(strstr(text, "  ok\n"));
    assert_non_null(strstr(text, "  out_of_memory\n"));
    assert_non_null(strstr(text, "\n\nrun 2: device 0 wants?[31m 2 GiB\n"));
    assert_lines_are_neat(text);
    free(text);
}

static void table_gives_up_columns_for_width(void **state) {
    (void)state;
    pc_run_row rows[] = {example_row(1, "28.3B-m192.1f1b-interleaved", "1f1b", 0.25, 0.24),
                         example_row(2, "28.3B-m192.zb-h2", "zb-h2", 0.125, 0.12)};
    for (int i = 0; i < 2; i++) {
        rows[i].published_samples_per_s_per_gpu = 10;
        rows[i].mfu = rows[i].hfu = 0.5;
        rows[i].tflops_per_gpu = 150;
    }
    change_results(&rows[1]);
    char *text = write_text(rows, 2, PC_FORMAT_TABLE);
    assert_lines_are_neat(text);
    assert_non_null(strstr(text, "left out for width"));
    assert_non_null(strstr(text, "published_samples_per_s_per_gpu"));
    assert_null(strstr(text, "HFU")); /* the same as MFU */
    free(text);
}

static void table_without_names_tells_runs_apart(void **state) {
    (void)state;
    pc_run_row rows[] = {example_row(1, "", "1f1b", 0.25, NAN), example_row(2, "", "zb-h2", 0.125, NAN)};
    rows[1].seq_len = 2048;
    rows[1].tp = 2;
    rows[1].gpus = 16;
    snprintf(rows[0].schedule, sizeof rows[0].schedule, "sch\xc3\xb6n");
    char *text = write_text(rows, 2, PC_FORMAT_TABLE);
    assert_non_null(strstr(text, "  1  sch\xc3\xb6n        8   1      1024  "));
    assert_non_null(strstr(text, "  2  zb-h2       16   2      2048  "));
    assert_non_null(strstr(text, "2048"));
    free(text);
}

static void table_without_rows_says_so(void **state) {
    (void)state;
    char *text = write_text(NULL, 0, PC_FORMAT_TABLE);
    assert_string_equal(text, "no runs\n");
    free(text);
}

static void table_copes_with_extreme_numbers(void **state) {
    (void)state;
    pc_run_row rows[] = {example_row(1, "a", "1f1b", 0.25, 0), example_row(2, "b", "1f1b", 0.25, -0.0)};
    rows[0].iteration_s = 1e300;
    rows[1].iteration_s = 1e-300;
    rows[0].activation_gib_max = DBL_MAX;
    rows[0].published_samples_per_s_per_gpu = 0; /* the difference is infinite: not a number to show */
    rows[0].gpus = INT64_MAX;
    for (int i = 0; i < 3; i++) free(write_text(rows, 2, (pc_format)i));
}

/* --- how it looks, and which columns there are --- */

/* As write_text, in a look of its own. */
static pc_code give_row(void *context, int64_t index, pc_run_row *row, pc_error *error) {
    (void)error;
    *row = ((const pc_run_row *)context)[index];
    return PC_OK;
}

static char *write_look(pc_run_row *rows, int64_t count, pc_format format, const pc_table_look *look) {
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    assert_int_equal(pc_table_write_from(give_row, rows, count, format, look, stream, NULL), PC_OK);
    fclose(stream);
    return text;
}

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
    assert_int_equal(choice.count, COLUMNS);
    char *text = write_look(&row, 1, PC_FORMAT_CSV, &look), *plain = write_text(&row, 1, PC_FORMAT_CSV);
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
        {"memory", " (did you mean memory_peak_s, memory_gib_max or memory_limit_gib?)"},
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

/* --- failures --- */

static void a_full_device_is_an_error(void **state) {
    (void)state;
    pc_run_row row = example_row(1, "a", "1f1b", 0.25, 0.25);
    for (int i = 0; i < 3; i++) {
        FILE *full = fopen("/dev/full", "w");
        if (!full) skip();
        pc_error error = {0};
        assert_int_equal(pc_table_write(&row, 1, (pc_format)i, full, &error), PC_ERROR_IO);
        assert_non_null(strstr(error.message, strerror(ENOSPC)));
        fclose(full);
    }
}

static void every_refused_allocation_is_reported(void **state) {
    (void)state;
    pc_run_row rows[] = {example_row(1, "a", "1f1b", 0.25, 0.25), example_row(2, "b", "1f1b", 0.25, 0.25)};
    for (int i = 0; i < 3; i++) {
        for (refusals x = {.most = 100}; next_refusal(&x);) {
            FILE *sink = fopen("/dev/null", "w");
            x.code = pc_table_write(rows, 2, (pc_format)i, sink, NULL);
            fclose(sink);
        }
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
        cmocka_unit_test(columns_are_those_of_the_interface),
        cmocka_unit_test(a_cleared_row_defines_nothing),
        cmocka_unit_test(texts_go_into_a_row_and_back),
        cmocka_unit_test(formats_have_names),
        cmocka_unit_test(csv_leaves_the_undefined_empty),
        cmocka_unit_test(csv_has_what_the_row_has),
        cmocka_unit_test(csv_quotes_as_rfc_4180_says),
        cmocka_unit_test(csv_numbers_read_back_exactly),
        cmocka_unit_test(no_locale_changes_a_number),
        cmocka_unit_test(json_without_rows_is_an_empty_array),
        cmocka_unit_test(json_escapes_what_it_must),
        cmocka_unit_test(json_is_read_by_a_parser),
        cmocka_unit_test(table_says_where_the_time_goes),
        cmocka_unit_test(table_prefers_what_was_published),
        cmocka_unit_test(table_compares_hardware_flops),
        cmocka_unit_test(table_shows_what_a_person_compares),
        cmocka_unit_test(table_says_why_rows_are_not_ok),
        cmocka_unit_test(table_gives_up_columns_for_width),
        cmocka_unit_test(table_without_names_tells_runs_apart),
        cmocka_unit_test(table_without_rows_says_so),
        cmocka_unit_test(table_copes_with_extreme_numbers),
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
        cmocka_unit_test(a_full_device_is_an_error),
        cmocka_unit_test(every_refused_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
