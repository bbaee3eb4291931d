/* The results table as text: CSV, JSON, and the aligned table. Rows are made here, without a simulation. */
#include "tests/comma_locale.h"
#include "tests/refusals.h"
#include "tests/table_example.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <unistd.h>

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
    "published_pass_f_s", "published_memory_gib", "published_best_mfu", "memory_limit_gib", "making", "key",
    "gpu_hours_per_million_tokens", "cost_per_million_tokens", "samples", "jitter", "gpu_jitter", "link_jitter",
    "slow_gpus", "slow_stage", "slow_factor", "bad_links", "bad_factor", "other_nodes", "mtbf_s", "checkpoint_s",
    "spare_nodes", "iteration_good_s", "iteration_mean_s", "iteration_mean_error_s", "slowdown_mean",
    "iteration_p05_s", "iteration_p05_low_s", "iteration_p05_high_s", "iteration_p50_s", "iteration_p50_low_s",
    "iteration_p50_high_s", "iteration_p95_s", "iteration_p95_low_s", "iteration_p95_high_s", "iteration_p99_s",
    "iteration_p99_low_s", "iteration_p99_high_s", "goodput_mean", "goodput_mean_error", "goodput_p05",
    "goodput_p05_low", "goodput_p05_high", "goodput_p50", "goodput_p50_low", "goodput_p50_high", "goodput_p95",
    "goodput_p95_low", "goodput_p95_high", "failures_mean", "checkpoint_interval_s", "layout", "parameters",
    "engine", "training_days", "training_cost", "goal", "iteration_s_low", "iteration_s_high", "memory_gib_low",
    "memory_gib_high", "kind", "iteration_basis", "memory_basis", "precision", "sequence_slices",
    "sequence_split", "cp", "exposed_cp_s", "sent_cp_gib",
    "host_memory_gib_max", "offload_fraction",
    "memory_parameters_gib", "memory_gradients_gib", "memory_optimizer_gib", "memory_attention_gib",
    "memory_mlp_gib", "memory_norms_gib", "memory_embedding_gib", "memory_head_gib", "memory_offloaded_gib",
    "memory_boundary_gib", "memory_gathered_gib", "memory_context_gib", "memory_sequence_gib",
    "memory_recomputation_gib", "memory_loss_gib", "memory_copies_gib", "memory_step_gib",
    "memory_workspace_gib", "memory_allocated_gib",
    "ep", "etp", "exposed_ep_s", "sent_ep_gib", "training_gpu_hours", "training_mwh",
    "active_parameters",
};
/* clang-format on */

enum { COLUMNS = sizeof column_names / sizeof column_names[0] };

static void columns_are_those_of_the_interface(void **state) {
    (void)state;
    int count;
    const pc_column *columns = pc_columns(&count);
    assert_int_equal(count, COLUMNS);
    for (int i = 0; i < count; i++) {
        assert_string_equal(columns[i].field.name, column_names[i]);
        assert_ptr_equal(pc_column_find(column_names[i]), &columns[i]);
        assert_true(strlen(columns[i].field.description) > 0);
        bool number = columns[i].field.type == PC_FIELD_INT64 || columns[i].field.type == PC_FIELD_NUMBER;
        assert_int_equal(number, strlen(columns[i].field.unit) > 0);
        assert_true(columns[i].field.size <= PC_COLUMN_TEXT_SIZE);
    }
    assert_null(pc_column_find("no_such_column"));
}

/* What tables show of a column has a head, a place of its own, and names columns that there are. */
static void columns_say_how_they_are_shown(void **state) {
    (void)state;
    int count, published = 0;
    const pc_column *columns = pc_columns(&count);
    for (int i = 0; i < count; i++) {
        const pc_column *column = &columns[i];
        const char *const others[] = {column->of, column->instead, column->share_of};
        for (int k = 0; k < 3; k++)
            if (others[k]) assert_non_null(pc_column_find(others[k]));
        assert_true(!column->share_of == (column->style != PC_STYLE_SHARE));
        assert_true(column->shown_at == 0 || (column->top && column->bottom));
        for (int k = 0; k < i; k++) assert_true(column->shown_at == 0 || columns[k].shown_at != column->shown_at);
        if (column->of) assert_ptr_equal(pc_column_published(pc_column_find(column->of)), column);
        published += column->of != NULL;
    }
    assert_int_equal(published, 9); /* the best MFU of a sweep is nobody's */
    assert_null(pc_column_published(pc_column_find("microbatches")));
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

/* The cell of a row's line, by column number. */
static const char *find_cell(const char *line, int column) {
    for (; column > 0; column--) line = strchr(line, ',') + 1;
    return line;
}

static void csv_numbers_read_back_exactly(void **state) {
    (void)state;
    test_random random = {11};
    const int column = (int)(pc_column_find("mfu") - pc_columns(&(int){0}));
    for (int i = 0; i < 2000; i++) {
        uint64_t bits = test_draw(&random);
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
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_those_of_the_interface),
        cmocka_unit_test(columns_say_how_they_are_shown),
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
        cmocka_unit_test(a_full_device_is_an_error),
        cmocka_unit_test(every_refused_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
